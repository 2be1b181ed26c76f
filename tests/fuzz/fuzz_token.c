/*
 * Fuzzes tokens. Byte 0: 0 a word of the token file's claims, 1 a whole signed token, else the
 * claims of a token that is signed here, since no mutation finds a signature.
 */
#include "api/auth/signed_token.h"
#include "base/check.h"
#include "tests/fuzz/fuzz.h"

#include <openssl/evp.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct signing_key key = {.kid = "k"};
static char audience[1][SIGNED_NAME_MAX + 1] = {"a"};
static const struct signing signing = {
    .keys = &key, .key_count = 1, .audiences = audience, .audience_count = 1};

static EVP_PKEY *signer(void)
{
    static const uint8_t seed[32] = {7};
    static EVP_PKEY *pair;
    size_t length = sizeof key.public_key;

    if (!pair) {
        pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, sizeof seed);
        CHECK(pair && EVP_PKEY_get_raw_public_key(pair, key.public_key, &length) == 1);
    }
    return pair;
}

static size_t put_base64url(char *out, const uint8_t *bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t at = 0, bits = 0, held = 0;

    for (size_t i = 0; i < length; i++) {
        bits = bits << 8 | bytes[i];
        for (held += 8; held >= 6; held -= 6)
            out[at++] = digits[bits >> (held - 6) & 63];
    }
    if (held > 0)
        out[at++] = digits[bits << (6 - held) & 63];
    return at;
}

static void read_signed(const uint8_t *json, size_t length)
{
    const size_t room = 16 + length * 2;
    char *token = malloc(room + 128);
    uint8_t signature[64];
    size_t signature_length = sizeof signature, at = 6;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    struct claims claims;
    struct err err;

    CHECK(token && context);
    memcpy(token, "kota1.", 6);
    at += put_base64url(token + at, json, length);
    CHECK(EVP_DigestSignInit(context, NULL, NULL, NULL, signer()) == 1 &&
          EVP_DigestSign(context, signature, &signature_length, (const uint8_t *)token, at) == 1);
    token[at++] = '.';
    at += put_base64url(token + at, signature, sizeof signature);
    if (signed_token_read(&signing, (struct span){token, at}, 100, &claims, &err) == ERR_OK) {
        CHECK(claims.name[0] != '\0' && claims.end_s > 100 && at <= SIGNED_TOKEN_BYTES_MAX);
        CHECK(claims.may < (uint32_t)1 << RIGHT_COUNT);
        CHECK(!claims.has_bounds || claims.bounds_m[0] <= claims.bounds_m[2]);
        claims_has_locale(&claims, "arena-1", 7);
    } else {
        CHECK(err.code == ERR_UNAUTHORIZED);
    }
    EVP_MD_CTX_free(context);
    free(token);
}

static void read_word(char *word)
{
    struct claims claims;
    struct err err = {.code = ERR_OK};
    uint32_t seen = 0;

    claims_init(&claims, true);
    if (claims_set_word(&claims, word, &seen, &err) == ERR_OK)
        CHECK(seen != 0 && !isnan(claims.end_s) && claims.rate >= 0 && claims.items >= 0);
    else
        CHECK(err.code == ERR_BAD_INPUT);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct claims claims;
    struct err err;
    char *text;

    if (size < 1 || size > 8192)
        return 0;
    text = malloc(size);
    CHECK(text);
    memcpy(text, bytes + 1, size - 1);
    text[size - 1] = '\0';
    if (bytes[0] == 0)
        read_word(text);
    else if (bytes[0] == 1)
        CHECK(signed_token_read(&signing, (struct span){text, size - 1}, 0, &claims, &err) !=
              ERR_OK);
    else
        read_signed(bytes + 1, size - 1);
    free(text);
    return 0;
}
