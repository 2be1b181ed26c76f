/*
 * Permission to read and to write.
 *
 * Problem: a daemon with public reads must not have public writes, and "only from this machine" is
 * weaker than it seems: a reverse proxy and a web page in a local browser both connect from
 * loopback. Approach: with a token file a write needs `Authorization: Bearer` and a token whose
 * claims allow it, and a read needs any token once the file has a read line. Without one, only
 * loopback peers may write, and not with an Origin of another host or with a header that a proxy
 * adds. A page of the same origin (the inspector) may write: its Origin names the Host of its
 * request. A foreign page can make a browser resolve a name to 127.0.0.1 and send its own name as
 * both Origin and Host (DNS rebinding), so such an origin must also be a loopback name.
 *
 * A process that connects to the Unix socket is known by its user, and a line `edit uid=1000` gives
 * that user the right without a token. A proxy connects as its own user for all others behind it,
 * so a user counts only where the loopback rule would let the request write, and never beside a
 * token.
 *
 * A token is found by its digest (token_list.h), or by its signature; both cost more than a short
 * answer. So each reader, a loop's thread, keeps the tokens that it has met lately, by their text,
 * in a table with one place for each value of a secret hash: a token costs the comparison of its
 * text, in constant time, whatever the number of tokens. A reader's table and its use of the list
 * are guarded by a lock of its own, which only a reload also takes: that swaps the list, then takes
 * each lock and empties each table. After that the former list has no reader.
 */
#include "api/auth/auth.h"

#include "api/auth/token_list.h"
#include "base/clock.h"

#include <arpa/inet.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { SLOTS = 64, KEPT = 256, MS_A_SECOND = 1000, RETRY_S_MAX = 3600 };

/* A token that a reader has met. */
struct kept_token {
    size_t length;
    char *text; /* NULL: the place is free */
    struct principal *principal;
};

struct auth {
    char *token_file; /* NULL: the loopback rule */
    bool is_read_only;
    struct shares *shares;
    uint64_t secret; /* of the hash of kept tokens; odd */
    _Atomic(struct token_list *) list;
    atomic_uint_fast64_t serial; /* of the list */
    struct slot {
        _Alignas(64) atomic_flag is_locked;
        struct kept_token *kept; /* [KEPT]; NULL: none yet */
    } slots[SLOTS];
};

static double unix_now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- the table of a reader ------------------------------------------------------------------- */

static struct slot *slot_lock(struct auth *auth, size_t reader)
{
    struct slot *slot = &auth->slots[reader % SLOTS];

    while (atomic_flag_test_and_set_explicit(&slot->is_locked, memory_order_acquire))
        sched_yield();
    return slot;
}

static void slot_unlock(struct slot *slot)
{
    atomic_flag_clear_explicit(&slot->is_locked, memory_order_release);
}

static void forget(struct kept_token *kept)
{
    if (!kept->text)
        return;
    explicit_bzero(kept->text, kept->length);
    free(kept->text);
    principal_release(kept->principal);
    kept->text = NULL;
}

static void forget_all(struct slot *slot)
{
    for (size_t i = 0; slot->kept && i < KEPT; i++)
        forget(&slot->kept[i]);
}

static uint64_t word_at(struct span text, size_t at)
{
    uint64_t word = 0;

    memcpy(&word, text.at + at, text.length - at < 8 ? text.length - at : 8);
    return word;
}

static struct kept_token *place_of(const struct auth *auth, const struct slot *slot,
                                   struct span text)
{
    uint64_t hash = text.length;

    for (size_t at = 0; at < text.length; at += 8) {
        hash = (hash ^ word_at(text, at)) * auth->secret;
        hash ^= hash >> 29;
    }
    return &slot->kept[hash * auth->secret >> 56];
}

/* Compares every byte. */
static bool is_kept(const struct kept_token *kept, struct span text)
{
    uint64_t differs = 0;

    if (!kept->text || kept->length != text.length)
        return false;
    for (size_t at = 0; at < text.length; at += 8)
        differs |= word_at((struct span){kept->text, kept->length}, at) ^ word_at(text, at);
    return differs == 0;
}

/* Takes the reference. Without memory the token is only not kept. */
static void keep(struct kept_token *place, struct span text, struct principal *principal)
{
    char *copy = malloc(text.length);

    if (!copy) {
        principal_release(principal);
        return;
    }
    forget(place);
    memcpy(copy, text.at, text.length);
    *place = (struct kept_token){text.length, copy, principal};
}

/* ---- the token file -------------------------------------------------------------------------- */

void auth_drop(struct token_list *list)
{
    token_list_free(list);
}

enum err_code auth_read(const struct auth *auth, struct token_list **out, struct err *err)
{
    *out = NULL;
    err->code = ERR_OK;
    if (auth->token_file)
        *out = token_list_read(auth->token_file, auth->shares, err);
    return err->code;
}

void auth_swap(struct auth *auth, struct token_list *fresh)
{
    struct token_list *old;

    if (!fresh)
        return;
    old = atomic_exchange(&auth->list, fresh);
    atomic_store(&auth->serial, fresh->serial);
    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *slot = slot_lock(auth, i);

        forget_all(slot);
        slot_unlock(slot);
    }
    token_list_free(old);
}

struct auth *auth_create(const char *token_file, bool is_read_only, struct err *err)
{
    struct auth *auth = aligned_alloc(_Alignof(struct auth), sizeof *auth);
    struct token_list *list = NULL;

    if (auth)
        memset(auth, 0, sizeof *auth);
    if (!auth || !(auth->shares = shares_create(err)) ||
        (token_file && !(auth->token_file = strdup(token_file)))) {
        auth_destroy(auth);
        err_set(err, ERR_NO_MEMORY, "no memory for tokens");
        return NULL;
    }
    auth->is_read_only = is_read_only;
    if (getrandom(&auth->secret, sizeof auth->secret, 0) != sizeof auth->secret)
        auth->secret = monotonic_ns();
    auth->secret |= 1;
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
    for (size_t i = 0; i < SLOTS; i++) {
        forget_all(&auth->slots[i]);
        free(auth->slots[i].kept);
    }
    token_list_free(atomic_load(&auth->list));
    shares_destroy(auth->shares);
    free(auth->token_file);
    free(auth);
}

size_t auth_tokens(const struct auth *auth)
{
    const struct token_list *list = atomic_load(&auth->list);

    return list ? list->token_count + list->user_count : 0;
}

bool auth_has_token_file(const struct auth *auth)
{
    return auth->token_file != NULL;
}

struct shares *auth_shares(const struct auth *auth)
{
    return auth->shares;
}

/* ---- without a token file -------------------------------------------------------------------- */

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

/* Without tokens a proxy's bearer would open the counters to everyone. */
static enum err_code check_counters(const struct auth_request *request, struct err *err)
{
    if (!request->is_forwarded)
        return ERR_OK;
    return err_set(err, ERR_PROXIED,
                   "without a token file counters are not shown through a proxy, and this request "
                   "has an X-Forwarded or Forwarded header");
}

/* ---- tokens ---------------------------------------------------------------------------------- */

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

/* Of a token that no reader keeps. NULL: unknown, and err says what of a signed one is wrong. */
static struct principal *look_up(const struct auth *auth, const struct token_list *list,
                                 struct span token, struct err *err)
{
    struct principal *principal;
    struct claims claims;
    uint8_t digest[32];

    if (token.length > SIGNED_TOKEN_BYTES_MAX)
        return NULL;
    token_digest(token, digest);
    principal = token_list_find(list, digest);
    if (principal)
        return principal_ref(principal);
    if (!signed_token_is(token) ||
        signed_token_read(&list->signing, token, unix_now_s(), &claims, err))
        return NULL;
    principal = principal_create(&claims, auth->shares, token);
    if (principal) {
        atomic_store(&principal->list, list->serial);
        memcpy(principal->digest, digest, sizeof digest);
    } else {
        err_set(err, ERR_NO_MEMORY, "no memory for a token");
    }
    return principal;
}

/* The owner of the token, with a reference; kept for the next time. Under the slot's lock. */
static struct principal *find_token(const struct auth *auth, struct slot *slot,
                                    const struct token_list *list, struct span token,
                                    struct err *err)
{
    struct kept_token *place = NULL;
    struct principal *principal;

    if (!slot->kept)
        slot->kept = calloc(KEPT, sizeof *slot->kept);
    if (slot->kept) {
        place = place_of(auth, slot, token);
        if (is_kept(place, token))
            return principal_ref(place->principal);
    }
    principal = look_up(auth, list, token, err);
    if (principal && place)
        keep(place, token, principal_ref(principal));
    return principal;
}

/* The user of the Unix socket, where the loopback rule would let the request write. */
static struct principal *find_user(const struct token_list *list,
                                   const struct auth_request *request)
{
    struct err ignored = {.code = ERR_OK};
    struct principal *principal;

    if (!request->has_uid || check_loopback(request, &ignored))
        return NULL;
    principal = token_list_find_user(list, request->uid);
    return principal ? principal_ref(principal) : NULL;
}

static enum err_code no_principal(const struct auth_need *need, const struct auth_request *request,
                                  bool reading_is_free, struct err *err)
{
    if (err->code)
        return err->code; /* of a signed token, or no memory */
    if (request->authorization.at)
        return err_set(err, ERR_UNAUTHORIZED, "the Authorization header holds no known token");
    if (need->right == RIGHT_READING && reading_is_free)
        return ERR_OK;
    if (request->has_uid)
        return err_set(err, ERR_UNAUTHORIZED,
                       "a token is needed: Authorization: Bearer TOKEN; or a line `%s uid=%u` in "
                       "the token file",
                       need->right == RIGHT_READING ? "read" : "edit", (unsigned)request->uid);
    return err_set(err, ERR_UNAUTHORIZED, "a token is needed: Authorization: Bearer TOKEN");
}

static enum err_code take(atomic_uint_fast64_t *bucket, const char *unit, double rate, double n,
                          struct share *share, struct err *err)
{
    double wait_s;

    if (rate <= 0 || share_take(bucket, rate, n, monotonic_ns(), &wait_s))
        return ERR_OK;
    atomic_fetch_add_explicit(&share->refused, 1, memory_order_relaxed);
    err_limit(err, ERR_TOO_MANY, rate, n, "%s may ask %g %s a second, and this is beyond them",
              share->name, rate, unit);
    err->retry_in_s = (unsigned)fmin(fmax(ceil(wait_s), 1), RETRY_S_MAX);
    return err->code;
}

/* May the owner do that, now? */
static enum err_code check_claims(const struct auth_need *need, struct principal *principal,
                                  struct err *err)
{
    const struct claims *claims = &principal->claims;
    struct share *share = principal->share;

    if (claims->end_s < INFINITY || claims->begin_s > -INFINITY) {
        const double now_s = unix_now_s();

        if (now_s >= claims->end_s)
            return err_set(err, ERR_UNAUTHORIZED, "this token has expired");
        if (now_s < claims->begin_s)
            return err_set(err, ERR_UNAUTHORIZED, "this token is not valid yet");
    }
    if (!claims_may(claims, need->right))
        return claims->has_may
                   ? err_set(err, ERR_SCOPE, "this token lacks the right \"%s\"",
                             right_word(need->right))
                   : err_set(err, ERR_SCOPE, "this %s may read, not edit%s",
                             principal->is_user ? "user" : "token",
                             need->right == RIGHT_OPERATING ? ": may=operating is needed" : "");
    if (need->locale.at && !claims_has_locale(claims, need->locale.at, need->locale.length))
        return err_set(err, ERR_CLAIMS, "this token is for the locales %s", claims->locales);
    if (take(&share->request_free_ns, "requests", claims->rate, 1, share, err))
        return err->code;
    atomic_fetch_add_explicit(&share->requests, 1, memory_order_relaxed);
    return ERR_OK;
}

static enum err_code check_token(struct auth *auth, const struct auth_need *need,
                                 const struct auth_request *request, struct principal **principal,
                                 struct err *err)
{
    const struct span token = bearer_token(request->authorization);
    struct slot *slot = slot_lock(auth, request->reader);
    const struct token_list *list = atomic_load(&auth->list);
    const bool reading_is_free = !list->has_read;

    err->code = ERR_OK;
    if (token.at)
        *principal = find_token(auth, slot, list, token, err);
    else if (!request->authorization.at)
        *principal = find_user(list, request);
    slot_unlock(slot);
    if (!*principal)
        return no_principal(need, request, reading_is_free, err);
    if (check_claims(need, *principal, err)) {
        principal_release(*principal);
        *principal = NULL;
    }
    return err->code;
}

bool auth_asks(const struct auth *auth, const struct auth_need *need)
{
    return need->right != RIGHT_NONE &&
           (need->right != RIGHT_READING || auth->token_file || need->is_counters);
}

enum err_code auth_check(struct auth *auth, const struct auth_need *need,
                         const struct auth_request *request, struct principal **principal,
                         struct err *err)
{
    *principal = NULL;
    if (need->right == RIGHT_NONE)
        return ERR_OK;
    if (auth->token_file && check_token(auth, need, request, principal, err))
        return err->code;
    if (need->right == RIGHT_READING)
        return auth->token_file || !need->is_counters ? ERR_OK : check_counters(request, err);
    if (auth->is_read_only && need->right != RIGHT_OPERATING) {
        principal_release(*principal);
        *principal = NULL;
        return err_set(err, ERR_READ_ONLY_DAEMON, "this daemon runs with --read-only");
    }
    return auth->token_file ? ERR_OK : check_loopback(request, err);
}

/* ---- later ----------------------------------------------------------------------------------- */

/* Does the present list still give the principal the same claims? Under the slot's lock. */
static bool is_in_force(const struct auth *auth, const struct token_list *list,
                        const struct principal *principal)
{
    struct principal *now = NULL;
    struct err ignored = {.code = ERR_OK};
    bool is_same;

    if (principal->is_user) {
        now = token_list_find_user(list, principal->uid);
        return now && memcmp(&now->claims, &principal->claims, sizeof now->claims) == 0;
    }
    if (principal->token_length == 0) {
        now = token_list_find(list, principal->digest);
        return now && memcmp(&now->claims, &principal->claims, sizeof now->claims) == 0;
    }
    now = look_up(auth, list, (struct span){principal->token, principal->token_length}, &ignored);
    is_same = now && memcmp(&now->claims, &principal->claims, sizeof now->claims) == 0;
    principal_release(now);
    return is_same;
}

uint32_t auth_left_ms(struct auth *auth, size_t reader, struct principal *principal)
{
    double left_ms;

    if (atomic_load_explicit(&principal->list, memory_order_relaxed) !=
        atomic_load_explicit(&auth->serial, memory_order_acquire)) {
        struct slot *slot = slot_lock(auth, reader);
        const struct token_list *list = atomic_load(&auth->list);
        const bool is_same = is_in_force(auth, list, principal);

        if (is_same)
            atomic_store(&principal->list, list->serial);
        slot_unlock(slot);
        if (!is_same)
            return 0;
    }
    if (principal->claims.end_s == INFINITY)
        return UINT32_MAX;
    left_ms = ceil((principal->claims.end_s - unix_now_s()) * MS_A_SECOND);
    return left_ms <= 0 ? 0 : left_ms >= UINT32_MAX ? UINT32_MAX - 1 : (uint32_t)left_ms;
}

enum err_code auth_take_items(struct principal *principal, size_t n, struct err *err)
{
    struct share *share;

    if (!principal)
        return ERR_OK;
    share = principal->share;
    if (take(&share->item_free_ns, "items", principal->claims.items, (double)n, share, err))
        return err->code;
    atomic_fetch_add_explicit(&share->items, n, memory_order_relaxed);
    return ERR_OK;
}
