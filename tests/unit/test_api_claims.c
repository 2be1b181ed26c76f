/*
 * Claims of tokens: from words and from signed tokens, what they allow, and the buckets of a name.
 */
#include "api/auth/auth.h"
#include "api/auth/token_list.h"

#include <openssl/evp.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/kota-test-claims-XXXXXX";

/* ---- words ----------------------------------------------------------------------------------- */

static enum err_code set(struct claims *claims, const char *words, struct err *err)
{
    char text[512];
    uint32_t seen = 0;

    claims_init(claims, true);
    err->code = ERR_OK;
    snprintf(text, sizeof text, "%s", words);
    for (char *rest = text, *word; (word = strsep(&rest, " ")) != NULL;)
        if (claims_set_word(claims, word, &seen, err))
            break;
    return err->code;
}

static void words_become_claims(void **state)
{
    struct claims claims;
    struct err err;

    (void)state;
    assert_int_equal(set(&claims,
                         "name=alice locales=arena-*,lobby may=edits,patches bounds=-1,2,3.5,4e1 "
                         "rate=50/s items=1e6/s until=2026-12-31",
                         &err),
                     ERR_OK);
    assert_string_equal(claims.name, "alice");
    assert_true(claims_may(&claims, RIGHT_EDITS) && claims_may(&claims, RIGHT_PATCHES));
    assert_false(claims_may(&claims, RIGHT_READING) || claims_may(&claims, RIGHT_LOCALES));
    assert_memory_equal(claims.bounds_m, ((double[]){-1, 2, 3.5, 40}), 4 * sizeof(double));
    assert_true(claims.rate == 50 && claims.items == 1e6);
    assert_true(claims.end_s == 1798761600); /* the first second of 2027, UTC */
    assert_int_equal(set(&claims, "until=2026-02-28T23:30:00.5+01:30", &err), ERR_OK);
    assert_true(claims.end_s == 1772316000);
    assert_int_equal(set(&claims, "until=2026-02-28T22:00:00Z", &err), ERR_OK);
    assert_true(claims.end_s == 1772316000);
}

static void without_may_all_but_operating(void **state)
{
    struct claims claims;

    (void)state;
    claims_init(&claims, true);
    for (int right = 0; right < RIGHT_COUNT; right++)
        assert_int_equal(claims_may(&claims, (enum right)right), right != RIGHT_OPERATING);
    claims_init(&claims, false);
    for (int right = 0; right < RIGHT_COUNT; right++)
        assert_int_equal(claims_may(&claims, (enum right)right), right == RIGHT_READING);
}

static void bad_words_are_refused(void **state)
{
    static const char *const bad[] = {
        "name=",
        "name=a b",
        "name=\"a",
        "may=",
        "may=edits,",
        "may=Edits",
        "locales=",
        "locales=a,,b",
        "locales=a/b",
        "bounds=1,2,3",
        "bounds=1,2,3,4,5",
        "bounds=3,0,1,1",
        "bounds=0,0,nan,1",
        "rate=50",
        "rate=0/s",
        "rate=-1/s",
        "rate=1e13/s",
        "items=x/s",
        "until=2026-02-30",
        "until=2026-13-01",
        "until=26-01-01",
        "until=2026-01-01T00:00:00",
        "until=2026-01-01T25:00:00Z",
        "until=2026-01-01T00:00:00.Z",
        "until=2026-01-01T00:00:00+24:00",
        "nome=a",
        "=",
        "",
        "may=edits may=edits",
    };
    struct claims claims;
    struct err err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (set(&claims, bad[i], &err) != ERR_BAD_INPUT)
            fail_msg("\"%s\" is taken", bad[i]);
}

static void patterns_take_locales(void **state)
{
    static const struct {
        const char *patterns, *id;
        bool is_taken;
    } cases[] = {
        {"arena-*", "arena-1", true},
        {"arena-*", "arena-", true},
        {"arena-*", "arena", false},
        {"arena-*", "xarena-1", false},
        {"*", "any", true},
        {"a*b*c", "axxbyyc", true},
        {"a*b*c", "axxbyycd", false},
        {"a,b", "b", true},
        {"a,b", "ab", false},
        {"*-x", "y-x-x", true},
        {"a", "", false},
    };
    struct claims claims;
    struct err err;
    char word[128];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(word, sizeof word, "locales=%s", cases[i].patterns);
        assert_int_equal(set(&claims, word, &err), ERR_OK);
        if (claims_has_locale(&claims, cases[i].id, strlen(cases[i].id)) != cases[i].is_taken)
            fail_msg("%s, %s", cases[i].patterns, cases[i].id);
    }
    claims_init(&claims, true);
    assert_true(claims_has_locale(&claims, "any", 3));
}

/* ---- signed tokens --------------------------------------------------------------------------- */

static EVP_PKEY *key, *other_key;

static void put_base64url(char *out, const uint8_t *bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    out += strlen(out);
    for (size_t i = 0; i < length; i += 3) {
        const size_t n = length - i < 3 ? length - i : 3;
        const uint32_t bits = (uint32_t)bytes[i] << 16 | (uint32_t)(n > 1 ? bytes[i + 1] : 0) << 8 |
                              (uint32_t)(n > 2 ? bytes[i + 2] : 0);

        for (size_t k = 0; k <= n; k++)
            *out++ = digits[bits >> (18 - 6 * k) & 63];
    }
    *out = '\0';
}

static const char *token_of(EVP_PKEY *signer, const char *json)
{
    static char text[8192];
    uint8_t signature[64];
    size_t length = sizeof signature;
    EVP_MD_CTX *context = EVP_MD_CTX_new();

    strcpy(text, "kota1.");
    put_base64url(text, (const uint8_t *)json, strlen(json));
    assert_int_equal(EVP_DigestSignInit(context, NULL, NULL, NULL, signer), 1);
    assert_int_equal(
        EVP_DigestSign(context, signature, &length, (const uint8_t *)text, strlen(text)), 1);
    EVP_MD_CTX_free(context);
    strcat(text, ".");
    put_base64url(text, signature, length);
    return text;
}

static void write_file(const char *more)
{
    FILE *stream = fopen(path, "w");
    char text[64] = "";
    uint8_t bytes[32];
    size_t length = sizeof bytes;

    assert_non_null(stream);
    assert_int_equal(EVP_PKEY_get_raw_public_key(key, bytes, &length), 1);
    put_base64url(text, bytes, length);
    fprintf(stream, "audience world-1\nkey k1 %s\n%s", text, more);
    fclose(stream);
}

#define HEAD "{\"kid\":\"k1\",\"aud\":\"world-1\",\"name\":\"match-7\","

static enum err_code read_signed(const struct token_list *list, const char *token, double now_s,
                                 struct claims *claims)
{
    struct err err;

    return signed_token_read(&list->signing, (struct span){token, strlen(token)}, now_s, claims,
                             &err);
}

static void a_signed_token_gives_its_claims(void **state)
{
    struct err err;
    struct shares *shares = shares_create(&err);
    struct token_list *list;
    struct claims claims;
    const char *token = token_of(
        key,
        HEAD "\"exp\":1000,\"nbf\":500,\"iat\":400,\"jti\":\"a\",\"may\":[\"edits\"],"
             "\"locales\":[\"arena-*\",\"lobby\"],\"bounds\":[0,1,2,3],\"rate\":5,\"items\":7}");

    (void)state;
    write_file("");
    list = token_list_read(path, shares, &err);
    assert_non_null(list);
    assert_int_equal(read_signed(list, token, 700, &claims), ERR_OK);
    assert_string_equal(claims.name, "match-7");
    assert_true(claims_may(&claims, RIGHT_EDITS) && !claims_may(&claims, RIGHT_READING));
    assert_true(claims_has_locale(&claims, "lobby", 5) && !claims_has_locale(&claims, "x", 1));
    assert_true(claims.rate == 5 && claims.items == 7 && claims.bounds_m[3] == 3);
    assert_int_equal(read_signed(list, token, 1029.9, &claims), ERR_OK);
    assert_int_equal(read_signed(list, token, 1030, &claims), ERR_UNAUTHORIZED);
    assert_int_equal(read_signed(list, token, 470, &claims), ERR_OK);
    assert_int_equal(read_signed(list, token, 469, &claims), ERR_UNAUTHORIZED);
    assert_int_equal(read_signed(list, token_of(key, HEAD "\"exp\":1000,\"may\":[]}"), 0, &claims),
                     ERR_OK);
    assert_int_equal(claims.may, 0);
    token_list_free(list);
    shares_destroy(shares);
}

static void other_signed_tokens_are_refused(void **state)
{
    static const char *const claims_of[] = {
        HEAD "\"exp\":1000,\"admin\":true}",
        HEAD "\"exp\":1000,\"exp\":2000}",
        HEAD "\"exp\":\"1000\"}",
        HEAD "\"nbf\":1}",
        HEAD "\"exp\":1000,\"may\":\"edits\"}",
        HEAD "\"exp\":1000,\"may\":[\"all\"]}",
        HEAD "\"exp\":1000,\"may\":[1]}",
        HEAD "\"exp\":1000,\"bounds\":[0,0,1]}",
        HEAD "\"exp\":1000,\"rate\":0}",
        HEAD "\"exp\":1000,\"locales\":[\"a/b\"]}",
        HEAD "\"exp\":1000,\"jti\":\"gone\"}",
        HEAD "\"exp\":1000} ,",
        "[]",
        "",
        "null",
        "{\"kid\":\"k2\",\"aud\":\"world-1\",\"name\":\"a\",\"exp\":1000}",
        "{\"kid\":\"k1\",\"aud\":\"world-2\",\"name\":\"a\",\"exp\":1000}",
        "{\"kid\":\"k1\",\"name\":\"a\",\"exp\":1000}",
        "{\"kid\":\"k1\",\"aud\":\"world-1\",\"exp\":1000}",
        "{\"kid\":\"k1\",\"aud\":\"world-1\",\"name\":\"a b\",\"exp\":1000}",
    };
    struct err err;
    struct shares *shares = shares_create(&err);
    struct token_list *list;
    struct claims claims;
    char token[8192];

    (void)state;
    write_file("revoked b\nrevoked gone\n");
    list = token_list_read(path, shares, &err);
    assert_non_null(list);
    for (size_t i = 0; i < sizeof claims_of / sizeof *claims_of; i++)
        if (read_signed(list, token_of(key, claims_of[i]), 0, &claims) != ERR_UNAUTHORIZED)
            fail_msg("%s is taken", claims_of[i]);
    strcpy(token, token_of(other_key, HEAD "\"exp\":1000}"));
    assert_int_equal(read_signed(list, token, 0, &claims), ERR_UNAUTHORIZED);
    strcpy(token, token_of(key, HEAD "\"exp\":1000}"));
    assert_int_equal(read_signed(list, token, 0, &claims), ERR_OK);
    for (size_t i = 0; token[i]; i++) /* each byte, and each cut */
        for (int bit = 0; bit < 8; bit++) {
            token[i] ^= (char)(1 << bit);
            if (token[i] && read_signed(list, token, 0, &claims) != ERR_UNAUTHORIZED)
                fail_msg("taken with bit %d of byte %zu changed", bit, i);
            token[i] ^= (char)(1 << bit);
        }
    for (size_t length = strlen(token); length-- > 0;) {
        token[length] = '\0';
        assert_int_equal(read_signed(list, token, 0, &claims), ERR_UNAUTHORIZED);
    }
    token_list_free(list);
    shares_destroy(shares);
}

/* ---- a daemon's tokens ----------------------------------------------------------------------- */

static struct principal *granted(struct auth *auth, enum right right, const char *locale,
                                 const char *header, enum err_code *code)
{
    const struct auth_need need = {.right = right, .locale = {locale, locale ? strlen(locale) : 0}};
    const struct auth_request request = {.authorization = {header, strlen(header)}};
    struct principal *principal;
    struct err err;

    *code = auth_check(auth, &need, &request, &principal, &err);
    return principal;
}

static void expect(struct auth *auth, enum right right, const char *locale, const char *header,
                   enum err_code wanted)
{
    enum err_code code;

    principal_release(granted(auth, right, locale, header, &code));
    if (code != wanted)
        fail_msg("%s on %s with %s: %d", right_word(right), locale ? locale : "-", header, code);
}

static void claims_bind_requests(void **state)
{
    struct err err = {.code = ERR_OK};
    char header[4096 + 8];
    struct auth *auth;

    (void)state;
    write_file("edit tok-a locales=arena-* may=edits,reading\n"
               "edit sha256:9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08\n"
               "edit old until=2020-01-01\nedit slow name=s rate=2/s\n");
    auth = auth_create(path, false, &err);
    assert_non_null(auth);
    for (int again = 0; again < 2; again++) { /* found in the list, then kept */
        expect(auth, RIGHT_EDITS, "arena-1", "Bearer tok-a", ERR_OK);
        expect(auth, RIGHT_EDITS, "village", "Bearer tok-a", ERR_CLAIMS);
        expect(auth, RIGHT_LAYERS, "arena-1", "Bearer tok-a", ERR_SCOPE);
        expect(auth, RIGHT_READING, NULL, "Bearer tok-a", ERR_OK);
        expect(auth, RIGHT_LAYERS, "any", "Bearer test", ERR_OK); /* of that digest */
        expect(auth, RIGHT_OPERATING, NULL, "Bearer test", ERR_SCOPE);
        expect(auth, RIGHT_EDITS, "a", "Bearer old", ERR_UNAUTHORIZED);
    }
    snprintf(header, sizeof header, "Bearer %s", token_of(key, HEAD "\"exp\":9e9}"));
    expect(auth, RIGHT_EDITS, "a", header, ERR_OK);
    expect(auth, RIGHT_EDITS, "a", header, ERR_OK);
    header[strlen(header) - 1] ^= 4;
    expect(auth, RIGHT_EDITS, "a", header, ERR_UNAUTHORIZED);
    expect(auth, RIGHT_EDITS, "a", "Bearer slow", ERR_OK);
    expect(auth, RIGHT_EDITS, "a", "Bearer slow", ERR_OK);
    expect(auth, RIGHT_EDITS, "a", "Bearer slow", ERR_TOO_MANY);
    auth_destroy(auth);
}

static void a_reload_ends_what_is_not_granted_any_more(void **state)
{
    struct err err = {.code = ERR_OK};
    struct token_list *fresh;
    struct principal *held[4];
    enum err_code code;
    char header[4096 + 8];
    struct auth *auth;

    (void)state;
    write_file("edit same\nedit narrowed\nedit gone\n");
    auth = auth_create(path, false, &err);
    assert_non_null(auth);
    snprintf(header, sizeof header, "Bearer %s", token_of(key, HEAD "\"jti\":\"j\",\"exp\":9e9}"));
    held[0] = granted(auth, RIGHT_READING, NULL, "Bearer same", &code);
    held[1] = granted(auth, RIGHT_READING, NULL, "Bearer narrowed", &code);
    held[2] = granted(auth, RIGHT_READING, NULL, "Bearer gone", &code);
    held[3] = granted(auth, RIGHT_READING, NULL, header, &code);
    for (int i = 0; i < 4; i++)
        assert_true(auth_left_ms(auth, 0, held[i]) > 1000);
    write_file("edit same\nedit narrowed locales=a\nrevoked other\n");
    assert_int_equal(auth_read(auth, &fresh, &err), ERR_OK);
    auth_swap(auth, fresh);
    assert_int_equal(auth_left_ms(auth, 0, held[0]), UINT32_MAX);
    assert_int_equal(auth_left_ms(auth, 0, held[1]), 0);
    assert_int_equal(auth_left_ms(auth, 0, held[2]), 0);
    assert_true(auth_left_ms(auth, 0, held[3]) > 1000);
    write_file("edit same\nrevoked j\n");
    assert_int_equal(auth_read(auth, &fresh, &err), ERR_OK);
    auth_swap(auth, fresh);
    assert_int_equal(auth_left_ms(auth, 0, held[3]), 0);
    expect(auth, RIGHT_READING, NULL, header, ERR_UNAUTHORIZED);
    for (int i = 0; i < 4; i++)
        principal_release(held[i]);
    auth_destroy(auth);
}

/* ---- buckets --------------------------------------------------------------------------------- */

static void a_bucket_holds_one_second(void **state)
{
    const uint64_t second_ns = 1000000000;
    atomic_uint_fast64_t free_ns = 0;
    uint64_t now_ns = 5 * second_ns;
    double wait_s = 0;

    (void)state;
    for (int i = 0; i < 50; i++)
        assert_true(share_take(&free_ns, 50, 1, now_ns, &wait_s));
    assert_false(share_take(&free_ns, 50, 1, now_ns, &wait_s));
    assert_true(fabs(wait_s - 0.02) < 1e-6);
    assert_true(share_take(&free_ns, 50, 1, now_ns + second_ns / 50, &wait_s));
    assert_false(share_take(&free_ns, 50, 1, now_ns + second_ns / 50, &wait_s));
    now_ns += 100 * second_ns;
    assert_true(share_take(&free_ns, 50, 50, now_ns, &wait_s));
    assert_false(share_take(&free_ns, 50, 51, now_ns + 10 * second_ns, &wait_s));
    free_ns = 0;
    assert_true(share_take(&free_ns, 0.25, 1, now_ns, &wait_s)); /* at least one */
    assert_false(share_take(&free_ns, 0.25, 1, now_ns + 3 * second_ns, &wait_s));
    assert_true(share_take(&free_ns, 0.25, 1, now_ns + 4 * second_ns, &wait_s));
}

static void a_name_has_one_share(void **state)
{
    struct err err;
    struct shares *shares = shares_create(&err);
    struct share *a = share_of(shares, "a"), *again = share_of(shares, "a"),
                 *b = share_of(shares, "b");

    (void)state;
    assert_ptr_equal(a, again);
    assert_ptr_not_equal(a, b);
    assert_int_not_equal(a->flow, b->flow);
    share_release(shares, a);
    share_release(shares, again);
    share_release(shares, b);
    shares_destroy(shares);
}

static int make_file(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    other_key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    return fd < 0 || !key || !other_key ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    EVP_PKEY_free(key);
    EVP_PKEY_free(other_key);
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_become_claims),
        cmocka_unit_test(without_may_all_but_operating),
        cmocka_unit_test(bad_words_are_refused),
        cmocka_unit_test(patterns_take_locales),
        cmocka_unit_test(a_signed_token_gives_its_claims),
        cmocka_unit_test(other_signed_tokens_are_refused),
        cmocka_unit_test(claims_bind_requests),
        cmocka_unit_test(a_reload_ends_what_is_not_granted_any_more),
        cmocka_unit_test(a_bucket_holds_one_second),
        cmocka_unit_test(a_name_has_one_share),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
