/*
 * Numbers: text to double and back, without the process's locale.
 *
 * The grammar is that of base/text/number_read.h. Back to text, the fewest of 15, 16 or 17
 * significant digits that read back as the same bits are printed; cJSON's own printer compares
 * within an epsilon and so may lose the last bit.
 *
 * Invariant: number_scan never reads past the terminating NUL and never accepts a number that is
 * not finite.
 */
#include "client/number.h"

#include "base/text/decimal.h"
#include "base/text/number_read.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest piece of a refused text that a message repeats. */
#define QUOTE_BYTES_MAX 40

static size_t scan_digits(const char *text)
{
    return strspn(text, "0123456789");
}

size_t number_scan(const char *text, double *out)
{
    double value;
    const char *end = decimal_read(text, text + strnlen(text, DECIMAL_LENGTH_MAX + 1), &value);

    if (!end || !isfinite(value))
        return 0;
    *out = value;
    return (size_t)(end - text);
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static enum err_code list_fault(struct err *err, const char *text, const char *why)
{
    return err_set(err, ERR_BAD_INPUT, "'%.*s'%s: %s", QUOTE_BYTES_MAX, text,
                   strlen(text) > QUOTE_BYTES_MAX ? "…" : "", why);
}

static enum err_code count_fault(struct err *err, const char *text, size_t count_min,
                                 size_t count_max)
{
    char why[64];

    if (count_min == count_max)
        snprintf(why, sizeof(why), "needs exactly %zu number%s", count_min,
                 count_min == 1 ? "" : "s");
    else
        snprintf(why, sizeof(why), "needs %zu to %zu numbers", count_min, count_max);
    return list_fault(err, text, why);
}

/* Skips the separator of two numbers: false when there is none. */
static bool skip_separator(const char **at, bool comma_needed)
{
    const char *start = *at;

    *at = skip_blanks(*at);
    if (**at == ',') {
        *at = skip_blanks(*at + 1);
        return true;
    }
    return !comma_needed && *at != start;
}

static enum err_code separator_fault(struct err *err, const char *text, bool comma_needed,
                                     char found)
{
    char why[80];

    if (found == '\0') /* of an array */
        return list_fault(err, text, "the closing bracket is missing");
    if (!strchr(";:|/", found))
        return list_fault(err, text, "something follows a number that is no part of one");
    snprintf(why, sizeof(why), "numbers are separated by commas%s, not by '%c'",
             comma_needed ? "" : " or blanks", found);
    return list_fault(err, text, why);
}

enum err_code number_list(const char *text, double *values, size_t count_min, size_t count_max,
                          size_t *count, struct err *err)
{
    const char *at = skip_blanks(text);
    bool is_array = *at == '[';
    size_t n = 0;

    if (is_array)
        at = skip_blanks(at + 1);
    for (;;) {
        double value;
        size_t length = number_scan(at, &value);

        if (length == 0)
            return list_fault(err, text, "not a finite decimal number");
        if (n == count_max)
            return count_fault(err, text, count_min, count_max);
        values[n++] = value;
        at += length;
        if (*skip_blanks(at) == (is_array ? ']' : '\0'))
            break;
        if (!skip_separator(&at, is_array))
            return separator_fault(err, text, is_array, *at);
    }
    if (is_array && *skip_blanks(skip_blanks(at) + 1) != '\0')
        return list_fault(err, text, "something follows the closing bracket");
    if (n < count_min)
        return count_fault(err, text, count_min, count_max);
    *count = n;
    return ERR_OK;
}

enum err_code number_exact_list(const char *text, double *values, size_t count, struct err *err)
{
    size_t got;

    return number_list(text, values, count, count, &got, err);
}

enum err_code number_rect(const char *text, double rect[4], struct err *err)
{
    struct err cause;

    if (number_exact_list(text, rect, 4, &cause))
        return err_set(err, ERR_BAD_INPUT, "--rect %s", cause.msg);
    for (int i = 0; i < 4; i++)
        if (rect[i] != floor(rect[i]) || rect[i] < (i < 2 ? 0 : 1) || rect[i] > 1048576)
            return err_set(err, ERR_BAD_INPUT,
                           "--rect '%.80s' is not COLUMN,ROW,COLS,ROWS in whole numbers", text);
    return err->code = ERR_OK;
}

enum err_code number_count(const char *text, double least, double greatest, double *out,
                           struct err *err)
{
    size_t digits = scan_digits(text);
    double value;

    if (digits == 0 || text[digits] != '\0' || number_scan(text, &value) != digits)
        return list_fault(err, text, "not a whole number");
    if (!(value >= least && value <= greatest))
        return err_limit(err, ERR_BAD_INPUT, value < least ? least : greatest, value,
                         "%.0f is outside %.0f..%.0f", value, least, greatest);
    *out = value;
    return ERR_OK;
}

void number_format(double value, char out[NUMBER_TEXT_MAX])
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t previous = uselocale(c_locale);

    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, NUMBER_TEXT_MAX, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    uselocale(previous);
}
