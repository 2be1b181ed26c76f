/*
 * Authorization: bearer tokens with claims and users of this machine, or without a token file the
 * loopback rule.
 */
#ifndef KOTA_API_AUTH_H
#define KOTA_API_AUTH_H

#include "api/auth/principal.h"

struct auth;

/*
 * token_file: see token_list.h; NULL: the loopback rule. ERR_BAD_INPUT names file and line.
 */
struct auth *auth_create(const char *token_file, bool is_read_only, struct err *err);
void auth_destroy(struct auth *auth);

/*
 * Reads the token file again, in two steps, so that another part of a reload may fail in between:
 * the first reads, the second puts the new list in force. Requests are served meanwhile, each under
 * one list; when auth_swap returns, the former list has no reader and is freed. auth_swap(NULL)
 * does nothing; a list that is not swapped is freed by auth_drop. One thread at a time.
 *
 * ERR_BAD_INPUT names file and line
 */
struct token_list;
enum err_code auth_read(const struct auth *auth, struct token_list **out, struct err *err);
void auth_swap(struct auth *auth, struct token_list *fresh);
void auth_drop(struct token_list *list);

/* How many tokens are in force. */
size_t auth_tokens(const struct auth *auth);

bool auth_has_token_file(const struct auth *auth);

struct shares *auth_shares(const struct auth *auth);

/* What a request is about. */
struct auth_need {
    enum right right;   /* RIGHT_NONE: anyone may */
    bool is_counters;   /* it is for /metrics or /v1/stats */
    struct span locale; /* that it names; at NULL: none */
};

/* The input of authorization, without the server's types (so that tests can build one). */
struct auth_request {
    size_t reader; /* the calling thread, a small number: threads of one number contend */
    struct span authorization; /* the header's value; at NULL: absent */
    struct span origin, host;
    bool is_forwarded; /* an X-Forwarded-* or Forwarded header is present */
    bool is_loopback;
    bool has_uid; /* of the other end of a Unix socket */
    uint32_t uid;
};

/* Does the answer of auth_check depend on the request? If not, it is ERR_OK without a principal. */
bool auth_asks(const struct auth *auth, const struct auth_need *need);

/*
 * *principal, with a reference, is the owner of the request's token; NULL: none was needed.
 *
 * ERR_UNAUTHORIZED  no token, or one that is unknown, expired or revoked
 * ERR_SCOPE         a token without that right
 * ERR_CLAIMS        a locale that is not among its claims
 * ERR_TOO_MANY      its bucket of requests is empty
 * ERR_FORBIDDEN     a write that is not from this machine, without a token file
 * ERR_PROXIED       counters through a proxy, without a token file
 * ERR_READ_ONLY_DAEMON  a write of a daemon with --read-only
 *
 * Any thread. A token that was met lately costs some 100 instructions, whatever their number; a
 * signed one is verified once (60 us) and then kept until it expires or others take its place.
 */
enum err_code auth_check(struct auth *auth, const struct auth_need *need,
                         const struct auth_request *request, struct principal **principal,
                         struct err *err);

/*
 * For how many milliseconds the principal's claims are still in force, as they were when they were
 * granted: 0 when the token has expired, was revoked, or has other claims now; UINT32_MAX: no end.
 */
uint32_t auth_left_ms(struct auth *auth, size_t reader, struct principal *principal);

/*
 * Takes n items from the bucket of the principal (NULL: there is none).
 * ERR_TOO_MANY  with the limit
 */
enum err_code auth_take_items(struct principal *principal, size_t n, struct err *err);

#endif
