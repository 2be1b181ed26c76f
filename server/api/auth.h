/*
 * Authorization of reads and writes: bearer tokens and users of this machine, or without a token
 * file the loopback rule.
 */
#ifndef KOTA_API_AUTH_H
#define KOTA_API_AUTH_H

#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

enum auth_scope {
    AUTH_NONE, /* probes: anyone */
    AUTH_READ,
    AUTH_EDIT
};

struct auth;

/*
 * token_file: lines `read TOKEN` or `edit TOKEN`; `read uid=N` or `edit uid=N` for the processes of
 * that user at the Unix socket; `#` starts a comment. NULL: the loopback rule. The right to edit
 * includes the right to read. ERR_BAD_INPUT names file and line.
 */
struct auth *auth_create(const char *token_file, bool is_read_only, struct err *err);
void auth_destroy(struct auth *auth);

/*
 * Reads the token file again, in two steps, so that another part of a reload may fail in between:
 * the first reads, the second puts the new list in force. Requests are served meanwhile, each under
 * one list; when auth_swap returns, the former list has no reader and is wiped. auth_swap(NULL)
 * does nothing; a list that is not swapped is freed by auth_drop. One thread at a time.
 *
 * ERR_BAD_INPUT names file and line
 */
struct token_list;
enum err_code auth_read(const struct auth *auth, struct token_list **out, struct err *err);
void auth_swap(struct auth *auth, struct token_list *fresh);
void auth_drop(struct token_list *list);

/* How many tokens and users are in force. */
size_t auth_tokens(const struct auth *auth);

bool auth_has_token_file(const struct auth *auth);

/* The input of authorization, without the server's types (so that tests can build one). */
struct auth_request {
    size_t reader; /* the calling thread, a small number: threads of one number contend */
    struct span authorization; /* the header's value; at NULL: absent */
    struct span origin, host;
    bool is_forwarded; /* an X-Forwarded-* or Forwarded header is present */
    bool is_loopback;
    bool has_uid; /* it came over the Unix socket, from a process of that user */
    uint32_t uid;
    bool is_counters; /* it is for /metrics or /v1/stats */
};

/* Does the answer of auth_check depend on the request? If not, it is ERR_OK. */
bool auth_asks(const struct auth *auth, enum auth_scope scope, bool is_counters);

/*
 * ERR_UNAUTHORIZED  no token and no user of the list, or an unknown token
 * ERR_SCOPE         a token or user of the wrong scope
 * ERR_FORBIDDEN     a write that is not from this machine, without a token file
 * ERR_PROXIED       counters through a proxy, without a token file
 * ERR_READ_ONLY_DAEMON  a write of a daemon with --read-only
 * Tokens are compared in constant time. Any thread.
 */
enum err_code auth_check(struct auth *auth, enum auth_scope scope,
                         const struct auth_request *request, struct err *err);

#endif
