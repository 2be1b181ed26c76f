/*
 * Signed tokens: `kota1.` + base64url(claims as JSON) + `.` + base64url(Ed25519 signature of the
 * ASCII bytes before the last dot), unpadded and canonical. There is no header, so no token can ask
 * for another algorithm.
 */
#ifndef KOTA_API_SIGNED_TOKEN_H
#define KOTA_API_SIGNED_TOKEN_H

#include "api/auth/claims.h"
#include "base/span.h"

enum {
    SIGNED_TOKEN_BYTES_MAX = 4096,
    SIGNED_NAME_MAX = 128, /* characters of a key id, an audience, a jti */
    SIGNED_SKEW_S = 30
};

/* A line `key KID BASE64URL` of the token file. */
struct signing_key {
    char kid[SIGNED_NAME_MAX + 1];
    uint8_t public_key[32];
};

/* What signed tokens are held against. */
struct signing {
    struct signing_key *keys;
    size_t key_count;
    char (*audiences)[SIGNED_NAME_MAX + 1];
    size_t audience_count;
    char (*revoked)[SIGNED_NAME_MAX + 1]; /* sorted by strcmp */
    size_t revoked_count;
};

/* Does it begin as a signed token does? */
bool signed_token_is(struct span token);

/*
 * Checks the form, the signature, audience, times and revocation at now_s (seconds since 1970), in
 * this order: claims of a token without a known signature are not looked at, but for `kid`.
 * out->begin_s and end_s include the skew of clocks.
 * ERR_UNAUTHORIZED  one sentence says why
 * Some 60 us. Any thread.
 */
enum err_code signed_token_read(const struct signing *signing, struct span token, double now_s,
                                struct claims *out, struct err *err);

#endif
