/*
 * The orders that were taken under an Idempotency-Key, and what each was answered, so that a repeat
 * has the first answer however the patch has fared since. The last REPEATS_MAX are known, while the
 * daemon runs. Any thread.
 */
#ifndef KOTA_SAND_REPEATS_H
#define KOTA_SAND_REPEATS_H

#include "sand/patch/patch.h"

enum { REPEATS_MAX = 1024 };

/* The identity of an order: the Idempotency-Key, or "", and the hash of the request. */
struct order_key {
    char key[PATCH_KEY_MAX + 1];
    uint8_t request[STORE_REQUEST_BYTES];
};

struct repeats;

struct repeats *repeats_create(void);          /* NULL without memory */
void repeats_destroy(struct repeats *repeats); /* NULL is fine */

/* Keeps the report that an order was answered with. Without a key there is nothing to do. */
void repeats_keep(struct repeats *repeats, const struct order_key *key,
                  struct patch_report *report);

/*
 * A reference to the first answer; NULL, with ERR_OK, when the key is new or there is none.
 * ERR_UNPROCESSABLE: the key is known from another request.
 */
struct patch_report *repeats_find(struct repeats *repeats, const struct order_key *key,
                                  struct err *err);

#endif
