/*
 * What the calls on patches share.
 */
#ifndef KOTA_API_PATCHES_H
#define KOTA_API_PATCHES_H

#include "api/call.h"
#include "sand/sand.h"

/*
 * The newest report of …/locales/{params[0]}/patches/{params[1]}, a reference; NULL: ERR_NOT_FOUND,
 * ERR_DAMAGED, or ERR_NO_DEVICE where there are no patches at all. Sets call->locale, if it exists.
 */
struct patch_report *patch_find(struct call *call, struct err *err);

/* ERR_CLAIMS: the token's bounds do not hold all whole cells of a patch, which it may change. */
enum err_code patch_check_place(const struct call *call, const struct convert_place *place,
                                struct err *err);

#endif
