/*
 * Random questions about one locale, asked in every form, and the heights by hand.
 */
#ifndef KOTA_CLIENT_CHECK_GROUND_H
#define KOTA_CLIENT_CHECK_GROUND_H

#include "client/call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one check found. */
struct check_result {
    bool is_good;
    char detail[200];
};

/* Is told each check; false ends it all. */
typedef bool check_tell(void *context, const char *check, const char *locale,
                        const struct check_result *result);

struct check_ground {
    struct call *call;
    size_t points;  /* of each batch */
    size_t singles; /* of them are asked one by one, too */
    uint64_t seed;
    size_t samples_max; /* a field of more is not exported */
    check_tell *tell;
    void *context;
};

/*
 * Checks a locale of that id. Failures of calls are results, too. ERR_NO_MEMORY, or what tell set.
 */
enum err_code check_ground_run(const struct check_ground *check, const char *id, struct err *err);

#endif
