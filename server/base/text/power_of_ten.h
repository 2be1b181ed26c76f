/*
 * Powers of ten to 128 bits, for conversions between decimal text and binary numbers.
 */
#ifndef KOTA_BASE_POWER_OF_TEN_H
#define KOTA_BASE_POWER_OF_TEN_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { POWER_OF_TEN_MIN = -342, POWER_OF_TEN_MAX = 324 };

/* ceil(10^k / 2^(floor(log2 10^k) - 127)): 128 bits, the leading one set; exact for k in 0..55. */
struct power_of_ten {
    uint64_t high, low;
};

extern const struct power_of_ten *_Atomic power_of_ten_table; /* NULL until it is filled */
const struct power_of_ten *power_of_ten_fill(void);

/*
 * The entry of 10^0; those of POWER_OF_TEN_MIN..POWER_OF_TEN_MAX lie around it. The first call
 * computes the table (a few milliseconds), later ones cost a load. Any thread.
 */
static inline const struct power_of_ten *powers_of_ten(void)
{
    const struct power_of_ten *table =
        atomic_load_explicit(&power_of_ten_table, memory_order_acquire);

    return table ? table : power_of_ten_fill();
}

/* floor(log2 10^k), exact for |k| <= 1233. */
static inline int floor_log2_power_of_ten(int k)
{
    return (k * 1741647) >> 19;
}

#endif
