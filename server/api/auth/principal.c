/*
 * Principals: see principal.h.
 */
#include "api/auth/principal.h"

#include <stdlib.h>
#include <string.h>

struct principal *principal_create(const struct claims *claims, struct shares *shares,
                                   struct span signed_token)
{
    struct principal *principal = calloc(1, sizeof *principal + signed_token.length);

    if (!principal)
        return NULL;
    principal->share = share_of(shares, claims->name);
    if (!principal->share) {
        free(principal);
        return NULL;
    }
    atomic_init(&principal->refs, 1);
    principal->claims = *claims;
    principal->shares = shares;
    principal->token_length = signed_token.length;
    if (signed_token.length > 0)
        memcpy(principal->token, signed_token.at, signed_token.length);
    return principal;
}

void principal_release(struct principal *principal)
{
    if (!principal || atomic_fetch_sub_explicit(&principal->refs, 1, memory_order_acq_rel) > 1)
        return;
    share_release(principal->shares, principal->share);
    explicit_bzero(principal->token, principal->token_length);
    free(principal);
}
