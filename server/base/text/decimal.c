/*
 * strtod() reads on until something is not a number, follows the process's locale (a German one
 * reads "12.5" as 12), and takes hexadecimal and "infinity". Files and requests need none of that:
 * number_read.c reads the decimal grammar. Here are the words that programs write in place of
 * numbers.
 */
#include "base/text/decimal.h"

#include "base/text/number_read.h"

#include <math.h>
#include <strings.h>

static enum decimal_status decimal_word(const char *text, size_t length)
{
    if (length > 0 && (*text == '-' || *text == '+')) {
        text++;
        length--;
    }
    if (length == 3 && strncasecmp(text, "nan", 3) == 0)
        return DECIMAL_NAN;
    if ((length == 3 && strncasecmp(text, "inf", 3) == 0) ||
        (length == 8 && strncasecmp(text, "infinity", 8) == 0))
        return DECIMAL_INFINITE;
    return DECIMAL_MALFORMED;
}

enum decimal_status decimal_parse(const char *text, size_t length, double *out)
{
    double value;
    const char *end = decimal_read(text, text + length, &value);

    if (!end || end != text + length)
        return decimal_word(text, length);
    if (isinf(value))
        return DECIMAL_INFINITE;
    *out = value;
    return DECIMAL_OK;
}
