/*
 * Permission to read and to write.
 *
 * Problem: a daemon with public reads must not have public writes, and "only from this machine" is
 * weaker than it seems: a reverse proxy and a web page in a local browser both connect from
 * loopback. Approach: with a token file a write needs `Authorization: Bearer` and a token of scope
 * edit, and a read needs any token once the file has a read line. Without one, only loopback peers
 * may write, and not with an Origin of another host or with a header that a proxy adds. A page of
 * the same origin (the inspector) may write: its Origin names the Host of its request. A foreign
 * page can make a browser resolve a name to 127.0.0.1 and send its own name as both Origin and Host
 * (DNS rebinding), so such an origin must also be a loopback name. Tokens are compared in constant
 * time against every line, so that neither the time nor the order of the lines leaks anything.
 *
 * A process that connects to the Unix socket is known by its user, and a line `edit uid=1000` gives
 * that user the right without a token. A proxy connects as its own user for everyone behind it, so
 * a user counts only where the loopback rule would let the request write. A token adds rights to
 * the user's, and an unknown token is refused in any case.
 *
 * A reload swaps the whole list without a lock that a reader would wait for. A reader raises the
 * counter of its slot, loads the pointer, and lowers the counter afterwards; one slot a loop, on a
 * cache line of its own. The reload stores the new pointer and waits until it has seen each slot at
 * zero: earlier readers have finished then, later ones load the new list. Both sides are
 * sequentially consistent, so that one of the two sees the other (P. McKenney, Is Parallel
 * Programming Hard, chapter 9: hazard counters).
 */
#include "api/auth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* UID_UNKNOWN: what the kernel reports for users that a user namespace does not map */
enum { TOKEN_BYTES_MAX = 512, TOKENS_MAX = 1024, SLOTS = 64, UID_UNKNOWN = 65534 };

struct token {
    enum auth_scope scope;
    bool is_user; /* uid instead of text */
    uint32_t uid;
    size_t length;
    char text[TOKEN_BYTES_MAX];
};

struct token_list { /* immutable once it is in force */
    struct token *tokens;
    size_t count;
    bool has_read;
};

struct auth {
    char *token_file; /* NULL: the loopback rule */
    bool is_read_only;
    _Atomic(struct token_list *) list;
    struct slot {
        _Alignas(64) atomic_uint readers; /* that read a list now */
    } slots[SLOTS];
};

/* ---- the token file -------------------------------------------------------------------------- */

/* The number of `uid=1000`; -1 is no user. UID_UNKNOWN would be all of them together. */
static bool uid_read(const char *text, uint32_t *uid)
{
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(text + 4, &end, 10);
    *uid = (uint32_t)value;
    return text[4] >= '0' && text[4] <= '9' && *end == '\0' && errno == 0 && value < UINT32_MAX &&
           value != UID_UNKNOWN;
}

static enum err_code token_add(struct token_list *list, const char *scope, const char *text,
                               const char *file, int line, struct err *err)
{
    const bool is_user = strncmp(text, "uid=", 4) == 0;
    struct token *token;
    size_t length = strlen(text);
    uint32_t uid = 0;

    if (strcmp(scope, "read") != 0 && strcmp(scope, "edit") != 0)
        return err_set(err, ERR_BAD_INPUT, "%s:%d: a line is `read TOKEN` or `edit TOKEN`", file,
                       line);
    if (is_user && !uid_read(text, &uid))
        return err_set(err, ERR_BAD_INPUT,
                       "%s:%d: \"%.40s\" is not uid= and the number of one user; 65534 is any "
                       "that this process's user namespace does not know",
                       file, line, text);
    if (length >= TOKEN_BYTES_MAX)
        return err_set(err, ERR_BAD_INPUT, "%s:%d: a token has at most %d characters, this has %zu",
                       file, line, TOKEN_BYTES_MAX - 1, length);
    if (list->count >= TOKENS_MAX)
        return err_set(err, ERR_BAD_INPUT, "%s:%d: more than %d tokens", file, line, TOKENS_MAX);
    token = realloc(list->tokens, (list->count + 1) * sizeof *token);
    if (!token)
        return err_set(err, ERR_NO_MEMORY, "no memory for the tokens of %s", file);
    list->tokens = token;
    token = &list->tokens[list->count++];
    memset(token, 0, sizeof *token);
    token->scope = scope[0] == 'r' ? AUTH_READ : AUTH_EDIT;
    token->is_user = is_user;
    token->uid = uid;
    token->length = length;
    memcpy(token->text, text, length);
    list->has_read |= token->scope == AUTH_READ;
    return ERR_OK;
}

/* Where a comment begins: at a # that begins a word, since a token may hold one. NULL: nowhere. */
static char *comment_in(char *line)
{
    char *at = strchr(line, '#');

    while (at && at > line && at[-1] != ' ' && at[-1] != '\t')
        at = strchr(at + 1, '#');
    return at;
}

static enum err_code list_read(struct token_list *list, const char *file, struct err *err)
{
    FILE *stream = fopen(file, "re");
    char line[TOKEN_BYTES_MAX + 64];

    if (!stream)
        return err_set(err, ERR_BAD_INPUT, "token file %s: %s", file, strerror(errno));
    for (int number = 1; fgets(line, sizeof line, stream); number++) {
        char scope[8] = "", text[sizeof line] = "", more[2] = "";
        char *comment = comment_in(line);
        int words;

        if (!strchr(line, '\n') && strlen(line) + 1 == sizeof line) {
            err_set(err, ERR_BAD_INPUT, "%s:%d: the line is too long", file, number);
            break;
        }
        if (comment)
            *comment = '\0';
        words = sscanf(line, "%7s %575s %1s", scope, text, more);
        if (words < 1)
            continue;
        if (words != 2)
            err_set(err, ERR_BAD_INPUT, "%s:%d: a line is `read TOKEN` or `edit TOKEN`", file,
                    number);
        else
            token_add(list, scope, text, file, number, err);
        if (err->code)
            break;
    }
    fclose(stream);
    return err->code;
}

void auth_drop(struct token_list *list)
{
    if (!list)
        return;
    if (list->tokens)
        explicit_bzero(list->tokens, list->count * sizeof *list->tokens);
    free(list->tokens);
    free(list);
}

enum err_code auth_read(const struct auth *auth, struct token_list **out, struct err *err)
{
    struct token_list *fresh;

    *out = NULL;
    err->code = ERR_OK;
    if (!auth->token_file)
        return ERR_OK;
    fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return err_set(err, ERR_NO_MEMORY, "no memory for tokens");
    if (list_read(fresh, auth->token_file, err)) {
        auth_drop(fresh);
        return err->code;
    }
    *out = fresh;
    return ERR_OK;
}

void auth_swap(struct auth *auth, struct token_list *fresh)
{
    struct token_list *old;

    if (!fresh)
        return;
    old = atomic_exchange(&auth->list, fresh);
    for (size_t i = 0; i < SLOTS; i++)
        while (atomic_load(&auth->slots[i].readers) != 0)
            sched_yield();
    auth_drop(old);
}

struct auth *auth_create(const char *token_file, bool is_read_only, struct err *err)
{
    struct auth *auth = aligned_alloc(_Alignof(struct auth), sizeof *auth);
    struct token_list *list = NULL;

    if (auth)
        memset(auth, 0, sizeof *auth);
    if (!auth || (token_file && !(auth->token_file = strdup(token_file)))) {
        free(auth);
        err_set(err, ERR_NO_MEMORY, "no memory for tokens");
        return NULL;
    }
    auth->is_read_only = is_read_only;
    if (auth_read(auth, &list, err)) {
        auth_destroy(auth);
        return NULL;
    }
    auth_swap(auth, list);
    return auth;
}

void auth_destroy(struct auth *auth)
{
    if (!auth)
        return;
    auth_drop(atomic_load(&auth->list));
    free(auth->token_file);
    free(auth);
}

size_t auth_tokens(const struct auth *auth)
{
    const struct token_list *list = atomic_load(&auth->list);

    return list ? list->count : 0;
}

bool auth_has_token_file(const struct auth *auth)
{
    return auth->token_file != NULL;
}

/* ---- one request ----------------------------------------------------------------------------- */

static bool span_is(struct span s, const char *text)
{
    return s.length == strlen(text) && strncasecmp(s.at, text, s.length) == 0;
}

/* host[:port] without its port. */
static struct span without_port(struct span authority)
{
    for (size_t i = authority.length; i > 0; i--) {
        char c = authority.at[i - 1];

        if (c == ':')
            return (struct span){authority.at, i - 1};
        if (c < '0' || c > '9')
            break;
    }
    return authority;
}

/* 127.0.0.0/8 as a dotted number: "127.evil.example" is a host name. */
static bool is_loopback_ipv4(struct span name)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr address;

    if (name.length >= sizeof text)
        return false;
    memcpy(text, name.at, name.length);
    text[name.length] = '\0';
    return inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

/* Is the page of the same host and port as the request, and is that this machine? */
static bool is_own_origin(struct span origin, struct span host)
{
    static const char *const schemes[] = {"http://", "https://"};
    struct span name;

    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(schemes[i]);

        if (origin.length <= n || strncasecmp(origin.at, schemes[i], n) != 0)
            continue;
        origin = (struct span){origin.at + n, origin.length - n};
        if (!host.at || origin.length != host.length ||
            strncasecmp(origin.at, host.at, host.length) != 0)
            return false;
        name = without_port(host);
        return span_is(name, "localhost") || span_is(name, "[::1]") || is_loopback_ipv4(name);
    }
    return false;
}

static enum err_code check_loopback(const struct auth_request *request, struct err *err)
{
    if (!request->is_loopback)
        return err_set(err, ERR_FORBIDDEN,
                       "without a token file only this machine may write, and this request came "
                       "from another");
    if (request->is_forwarded)
        return err_set(err, ERR_FORBIDDEN,
                       "without a token file a write must not come through a proxy, and this one "
                       "has an X-Forwarded or Forwarded header");
    if (request->origin.at && !is_own_origin(request->origin, request->host))
        return err_set(err, ERR_FORBIDDEN,
                       "without a token file a page of another origin may not write (Origin: %.*s)",
                       (int)(request->origin.length > 100 ? 100 : request->origin.length),
                       request->origin.at);
    return ERR_OK;
}

/* The token of `Bearer TOKEN`; at is NULL when it is none. */
static struct span bearer_token(struct span header)
{
    static const char scheme[] = "bearer ";
    size_t n = sizeof scheme - 1;

    if (!header.at || header.length <= n || strncasecmp(header.at, scheme, n) != 0)
        return (struct span){NULL, 0};
    while (n < header.length && header.at[n] == ' ')
        n++;
    return (struct span){header.at + n, header.length - n};
}

/* Compares every byte of the stored token, for any input. */
static bool token_equals(const struct token *token, struct span given)
{
    unsigned char differs = token->length != given.length;

    for (size_t i = 0; i < TOKEN_BYTES_MAX; i++) {
        unsigned char theirs = i < given.length ? (unsigned char)given.at[i] : 0;

        differs |= (unsigned char)((unsigned char)token->text[i] ^ theirs);
    }
    return differs == 0;
}

/* AUTH_NONE when no token matches. */
static enum auth_scope token_scope(const struct token_list *list, struct span given)
{
    enum auth_scope scope = AUTH_NONE;

    for (size_t i = 0; i < list->count; i++)
        if (!list->tokens[i].is_user && token_equals(&list->tokens[i], given) &&
            list->tokens[i].scope > scope)
            scope = list->tokens[i].scope;
    return scope;
}

/* The rights of the user at the other end of the Unix socket. */
static enum auth_scope user_scope(const struct token_list *list, const struct auth_request *request)
{
    enum auth_scope scope = AUTH_NONE;
    struct err ignored = {.code = ERR_OK};

    if (!request->has_uid || check_loopback(request, &ignored))
        return AUTH_NONE;
    for (size_t i = 0; i < list->count; i++)
        if (list->tokens[i].is_user && list->tokens[i].uid == request->uid &&
            list->tokens[i].scope > scope)
            scope = list->tokens[i].scope;
    return scope;
}

static enum err_code check_token(struct auth *auth, enum auth_scope scope,
                                 const struct auth_request *request, struct err *err)
{
    struct span given = bearer_token(request->authorization);
    atomic_uint *readers = &auth->slots[request->reader % SLOTS].readers;
    const struct token_list *list;
    enum auth_scope has, user;
    bool reading_is_free;

    atomic_fetch_add(readers, 1);
    list = atomic_load(&auth->list);
    reading_is_free = !list->has_read;
    has = given.at ? token_scope(list, given) : AUTH_NONE;
    user = user_scope(list, request);
    atomic_fetch_sub(readers, 1);
    if (user > has && (has != AUTH_NONE || !request->authorization.at))
        has = user;
    if (has >= scope || (scope == AUTH_READ && reading_is_free && !request->authorization.at))
        return ERR_OK;
    if (has == AUTH_NONE && !request->authorization.at && request->has_uid)
        return err_set(
            err, ERR_UNAUTHORIZED,
            "a token is needed: Authorization: Bearer TOKEN; or a line `%s uid=%u` in the "
            "token file",
            scope == AUTH_EDIT ? "edit" : "read", (unsigned)request->uid);
    if (has == AUTH_NONE && !request->authorization.at)
        return err_set(err, ERR_UNAUTHORIZED, "a token is needed: Authorization: Bearer TOKEN");
    if (has == AUTH_NONE)
        return err_set(err, ERR_UNAUTHORIZED, "the Authorization header holds no known token");
    return err_set(err, ERR_SCOPE, "this %s may read, not edit",
                   request->authorization.at ? "token" : "user");
}

/* Without tokens a proxy's bearer would open the counters to everyone. */
static enum err_code check_counters(const struct auth_request *request, struct err *err)
{
    if (!request->is_counters || !request->is_forwarded)
        return ERR_OK;
    return err_set(err, ERR_PROXIED,
                   "without a token file counters are not shown through a proxy, and this request "
                   "has an X-Forwarded or Forwarded header");
}

bool auth_asks(const struct auth *auth, enum auth_scope scope, bool is_counters)
{
    return scope == AUTH_EDIT || (scope != AUTH_NONE && (auth->token_file || is_counters));
}

enum err_code auth_check(struct auth *auth, enum auth_scope scope,
                         const struct auth_request *request, struct err *err)
{
    if (scope == AUTH_NONE)
        return ERR_OK;
    if (auth->token_file && check_token(auth, scope, request, err))
        return err->code;
    if (scope != AUTH_EDIT)
        return auth->token_file ? ERR_OK : check_counters(request, err);
    if (auth->is_read_only)
        return err_set(err, ERR_READ_ONLY_DAEMON, "this daemon runs with --read-only");
    return auth->token_file ? ERR_OK : check_loopback(request, err);
}
