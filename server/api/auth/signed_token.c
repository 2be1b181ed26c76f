/*
 * Signed tokens.
 *
 * Problem: a game's backend mints tokens without asking the daemon, and a holder of the public key
 * must not be able to mint one. Approach: one algorithm, Ed25519 by libcrypto, over the text of the
 * token. `kid` is read before the signature is checked, to find the key; every other claim only
 * afterwards. Base64url must be canonical, JSON is read by the strict scanner, and a claim that is
 * unknown, repeated or of another type refuses the token: it can hold nothing that this daemon
 * would ignore and its author relied on.
 *
 * Source: RFC 8032 (Ed25519), RFC 4648 section 5 (base64url), RFC 7519 (names of the claims).
 */
#include "api/auth/signed_token.h"

#include "base/text/base64.h"
#include "json/json_tape.h"

#include <openssl/evp.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "kota1."

enum { PREFIX_LENGTH = sizeof PREFIX - 1, SIGNATURE_BYTES = 64 };

/* ---- claims ---------------------------------------------------------------------------------- */

static enum err_code refuse(struct err *err, const char *why)
{
    return err_set(err, ERR_UNAUTHORIZED, "the signed token is refused: %s", why);
}

/* What the JSON holds beside the claims proper. */
struct envelope {
    const char *kid, *aud, *jti;
    double exp_s, nbf_s, iat_s;
};

static enum err_code read_strings(const cJSON *value, struct claims *claims,
                                  enum err_code (*add)(struct claims *, const char *, struct err *),
                                  struct err *err)
{
    const cJSON *item;
    const char *text;

    if (!cJSON_IsArray(value))
        return err_set(err, ERR_BAD_INPUT, "an array of strings was expected");
    cJSON_ArrayForEach(item, value) if (json_get_string(item, &text, err) ||
                                        add(claims, text, err)) return err->code;
    return ERR_OK;
}

static enum err_code read_claim(const cJSON *value, struct envelope *envelope,
                                struct claims *claims, struct err *err)
{
    const char *key = value->string, *text;
    double numbers[4];

    if (strcmp(key, "kid") == 0)
        return json_get_string(value, &envelope->kid, err);
    if (strcmp(key, "aud") == 0)
        return json_get_string(value, &envelope->aud, err);
    if (strcmp(key, "jti") == 0)
        return json_get_string(value, &envelope->jti, err);
    if (strcmp(key, "exp") == 0)
        return json_get_number(value, &envelope->exp_s, err);
    if (strcmp(key, "nbf") == 0)
        return json_get_number(value, &envelope->nbf_s, err);
    if (strcmp(key, "iat") == 0)
        return json_get_number(value, &envelope->iat_s, err);
    if (strcmp(key, "name") == 0)
        return json_get_string(value, &text, err) ? err->code : claims_set_name(claims, text, err);
    if (strcmp(key, "bounds") == 0)
        return json_get_numbers(value, 4, numbers, err) ? err->code
                                                        : claims_set_bounds(claims, numbers, err);
    if (strcmp(key, "rate") == 0 || strcmp(key, "items") == 0)
        return json_get_number(value, numbers, err) ? err->code
                                                    : claims_set_rate(claims, key, *numbers, err);
    if (strcmp(key, "may") == 0) {
        claims->has_may = true;
        claims->may = 0;
        return read_strings(value, claims, claims_add_right, err);
    }
    claims->has_locales = true; /* the last one that json_only_members lets through */
    return read_strings(value, claims, claims_add_locale, err);
}

/* All claims, and none but these, each once. The strings of the envelope are borrowed from root. */
static enum err_code read_claims(const cJSON *root, struct envelope *envelope,
                                 struct claims *claims, struct err *err)
{
    static const char *const names[] = {"kid", "aud",     "name",   "exp",  "jti",   "iat", "nbf",
                                        "may", "locales", "bounds", "rate", "items", NULL};
    const cJSON *item;

    *envelope = (struct envelope){.exp_s = NAN, .nbf_s = -INFINITY, .iat_s = -INFINITY};
    claims_init(claims, true);
    if (json_only_members(root, names, "", err))
        return refuse(err, "a claim is unknown or there twice");
    cJSON_ArrayForEach(item, root)
    {
        if (read_claim(item, envelope, claims, err)) {
            char why[sizeof err->msg];

            snprintf(why, sizeof why, "its claim %s: %.200s", item->string, err->msg);
            return refuse(err, why);
        }
    }
    if (!envelope->kid || !envelope->aud || claims->name[0] == '\0' || isnan(envelope->exp_s))
        return refuse(err, "kid, aud, name and exp are required");
    return ERR_OK;
}

/* ---- signature ------------------------------------------------------------------------------- */

static bool is_signed(const uint8_t public_key[32], struct span text,
                      const uint8_t signature[SIGNATURE_BYTES])
{
    EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key, 32);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const bool is_valid = key && context &&
                          EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1 &&
                          EVP_DigestVerify(context, signature, SIGNATURE_BYTES,
                                           (const unsigned char *)text.at, text.length) == 1;

    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    return is_valid;
}

static enum err_code check_signature(const struct signing *signing, const char *kid,
                                     struct span text, const uint8_t signature[SIGNATURE_BYTES],
                                     struct err *err)
{
    for (size_t i = 0; i < signing->key_count; i++)
        if (strcmp(signing->keys[i].kid, kid) == 0)
            return is_signed(signing->keys[i].public_key, text, signature)
                       ? ERR_OK
                       : refuse(err, "its signature is not that of its key");
    return refuse(err, "its key is not known here");
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Of claims that are signed. */
static enum err_code check_envelope(const struct signing *signing, const struct envelope *envelope,
                                    double now_s, struct err *err)
{
    size_t i = 0;

    while (i < signing->audience_count && strcmp(signing->audiences[i], envelope->aud) != 0)
        i++;
    if (i == signing->audience_count)
        return refuse(err, "it is for another audience");
    if (!(now_s < envelope->exp_s + SIGNED_SKEW_S))
        return refuse(err, "it has expired");
    if (now_s < envelope->nbf_s - SIGNED_SKEW_S || now_s < envelope->iat_s - SIGNED_SKEW_S)
        return refuse(err, "it is not valid yet");
    if (envelope->jti && signing->revoked_count > 0 &&
        bsearch(envelope->jti, signing->revoked, signing->revoked_count, sizeof *signing->revoked,
                compare_names))
        return refuse(err, "it was revoked");
    return ERR_OK;
}

/* ---- the whole token ------------------------------------------------------------------------- */

bool signed_token_is(struct span token)
{
    return token.length > PREFIX_LENGTH && memcmp(token.at, PREFIX, PREFIX_LENGTH) == 0;
}

static enum err_code check_all(const struct signing *signing, const cJSON *root, struct span text,
                               const uint8_t signature[SIGNATURE_BYTES], double now_s,
                               struct claims *out, struct err *err)
{
    const cJSON *kid = cJSON_GetObjectItemCaseSensitive(root, "kid");
    struct envelope envelope;

    if (!cJSON_IsObject(root) || !cJSON_IsString(kid))
        return refuse(err, "kid, aud, name and exp are required");
    if (check_signature(signing, kid->valuestring, text, signature, err) ||
        read_claims(root, &envelope, out, err) || check_envelope(signing, &envelope, now_s, err))
        return err->code;
    out->begin_s = fmax(envelope.nbf_s, envelope.iat_s) - SIGNED_SKEW_S;
    out->end_s = envelope.exp_s + SIGNED_SKEW_S;
    return ERR_OK;
}

enum err_code signed_token_read(const struct signing *signing, struct span token, double now_s,
                                struct claims *out, struct err *err)
{
    static const struct json_limits limits = {.depth_max = JSON_DEPTH_LEAST,
                                              .values_max = JSON_VALUES_LEAST};
    uint8_t json[SIGNED_TOKEN_BYTES_MAX], signature[SIGNATURE_BYTES];
    struct span text = {token.at, token.length}, payload, last;
    const char *dot;
    cJSON *root;
    long length;

    err->code = ERR_OK;
    if (token.length > SIGNED_TOKEN_BYTES_MAX)
        return refuse(err, "it has more than 4096 bytes");
    dot = memrchr(token.at, '.', token.length);
    if (!signed_token_is(token) || dot < token.at + PREFIX_LENGTH)
        return refuse(err, "its form is kota1.CLAIMS.SIGNATURE");
    text.length = (size_t)(dot - token.at);
    payload = (struct span){token.at + PREFIX_LENGTH, text.length - PREFIX_LENGTH};
    last = (struct span){dot + 1, token.length - text.length - 1};
    length = base64_read(payload.at, payload.length, BASE64URL_OTHERS, json, sizeof json);
    if (length < 0 || base64_read(last.at, last.length, BASE64URL_OTHERS, signature,
                                  sizeof signature) != SIGNATURE_BYTES)
        return refuse(err, "its form is kota1.CLAIMS.SIGNATURE");
    if (json_parse((const char *)json, (size_t)length, &limits, &root, err))
        return refuse(err, "its claims are not JSON");
    check_all(signing, root, text, signature, now_s, out, err);
    cJSON_Delete(root);
    return err->code;
}
