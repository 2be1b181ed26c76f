/*
 * A time of RFC 3339, the way back from utc_text (base/clock.h).
 */
#ifndef KOTA_BASE_UTC_READ_H
#define KOTA_BASE_UTC_READ_H

#include <stdbool.h>
#include <stdint.h>

/*
 * 2026-12-31T18:00:00Z, with a fraction or an offset like +01:30, too: milliseconds since 1970,
 * more digits are cut off. False: it is none, or a day that no calendar has.
 */
bool utc_read(const char *text, int64_t *time_ms);

#endif
