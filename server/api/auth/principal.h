/*
 * The owner of a token, as a request holds him: his claims and his share. Immutable but for its
 * count of references; it outlives the list of tokens that it came from.
 */
#ifndef KOTA_API_PRINCIPAL_H
#define KOTA_API_PRINCIPAL_H

#include "api/auth/claims.h"
#include "api/auth/share.h"
#include "base/span.h"

#include <stdatomic.h>

struct principal {
    atomic_uint refs;
    struct claims claims;
    struct shares *shares;
    struct share *share;       /* a reference */
    atomic_uint_fast64_t list; /* the serial of the newest list that it was found in */
    bool is_user;              /* of the Unix socket: uid; else the token */
    uint32_t uid;
    size_t token_length; /* of a signed token, which is checked again by a later list; else 0 */
    uint8_t digest[32];  /* SHA-256 of the token */
    char token[];        /* [token_length] */
};

/* One reference. NULL: no memory. */
struct principal *principal_create(const struct claims *claims, struct shares *shares,
                                   struct span signed_token);
static inline struct principal *principal_ref(struct principal *principal)
{
    atomic_fetch_add_explicit(&principal->refs, 1, memory_order_relaxed);
    return principal;
}
/* NULL is allowed. */
void principal_release(struct principal *principal);

#endif
