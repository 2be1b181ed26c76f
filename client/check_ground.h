/*
 * Random points of one locale, sent in every form, and the heights computed here.
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

/* Gets each check; false ends all. */
typedef bool check_report(void *context, const char *check, const char *locale,
                          const struct check_result *result);

struct check_ground {
    struct call *call;
    size_t points;  /* of each batch */
    size_t singles; /* of them are sent one by one, too */
    uint64_t seed;
    size_t samples_max; /* a field of more is not exported */
    check_report *report;
    void *context;
};

/*
 * Checks a locale of that id. Failures of calls are results, too. ERR_NO_MEMORY, or the error of
 * report.
 */
enum err_code check_ground_run(const struct check_ground *check, const char *id, struct err *err);

#endif
