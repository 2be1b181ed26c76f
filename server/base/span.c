/*
 * Numbers and words in a span. Each reader takes the whole span or fails: nothing before the number
 * or after it is skipped.
 */
#include "base/span.h"

#include "base/text/decimal.h"

#define NUMBER_LENGTH_MAX 63 /* as JSON_NUMBER_BYTES_MAX */

bool span_copy(struct span s, char *out, size_t size)
{
    if (!s.at || s.length >= size || memchr(s.at, '\0', s.length))
        return false;
    memcpy(out, s.at, s.length);
    out[s.length] = '\0';
    return true;
}

bool span_number(struct span s, double *out)
{
    return s.at && s.length <= NUMBER_LENGTH_MAX &&
           decimal_parse(s.at, s.length, out) == DECIMAL_OK;
}

bool span_count(struct span s, uint64_t *out)
{
    uint64_t value = 0;

    if (!s.at || s.length == 0 || s.length > 18)
        return false;
    for (size_t i = 0; i < s.length; i++) {
        if (s.at[i] < '0' || s.at[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(s.at[i] - '0');
    }
    *out = value;
    return true;
}

bool span_index(struct span s, uint64_t *out)
{
    return span_count(s, out) && (s.length == 1 || s.at[0] != '0');
}
