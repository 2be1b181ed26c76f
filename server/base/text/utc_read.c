/*
 * Times of RFC 3339, section 5.6. The form is checked digit by digit, because strptime also takes
 * blanks, signs and shorter numbers; and the day by timegm, which makes 2 March of 30 February.
 */
#include "base/text/utc_read.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

enum { SECONDS_END = 19 };

/* Does the text begin like the form, where 0 is a digit and a letter is of either case? */
static bool has_form(const char *text, const char *form)
{
    for (; *form; form++, text++)
        if (*form == '0' ? !isdigit((unsigned char)*text) : toupper((unsigned char)*text) != *form)
            return false;
    return true;
}

/* `Z`, `+01:30`, `-01:30`: minutes east of UTC. */
static bool read_offset(const char *text, int *minutes)
{
    *minutes = 0;
    if (has_form(text, "Z"))
        return text[1] == '\0';
    if ((*text != '+' && *text != '-') || !has_form(text + 1, "00:00") || text[6] != '\0' ||
        strncmp(text + 1, "23", 2) > 0 || text[4] > '5')
        return false;
    *minutes = ((text[1] - '0') * 10 + text[2] - '0') * 60 + (text[4] - '0') * 10 + text[5] - '0';
    if (*text == '-')
        *minutes = -*minutes;
    return true;
}

bool utc_read(const char *text, int64_t *time_ms)
{
    struct tm tm = {0}, day;
    int64_t ms = 0;
    int minutes;

    if (!has_form(text, "0000-00-00T00:00:00") || !strptime(text, "%Y-%m-%d", &tm) ||
        !strptime(text + 11, "%H:%M:%S", &tm) || tm.tm_sec > 60)
        return false;
    day = (struct tm){.tm_year = tm.tm_year, .tm_mon = tm.tm_mon, .tm_mday = tm.tm_mday};
    timegm(&day);
    if (day.tm_mday != tm.tm_mday)
        return false;
    text += SECONDS_END;
    if (*text == '.') {
        size_t digits = strspn(++text, "0123456789");

        for (size_t i = 0; i < 3; i++)
            ms = ms * 10 + (i < digits ? text[i] - '0' : 0);
        if (digits == 0)
            return false;
        text += digits;
    }
    if (!read_offset(text, &minutes))
        return false;
    *time_ms = ((int64_t)timegm(&tm) - minutes * 60) * 1000 + ms;
    return true;
}
