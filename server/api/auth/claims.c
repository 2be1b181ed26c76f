/*
 * Claims of a token, from text.
 */
#include "api/auth/claims.h"

#include "base/span.h"
#include "base/text/utc_read.h"
#include "world/values/locale.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const right_words[] = {
#define RIGHT_WORD(name, word) #word,
    RIGHT_LIST(RIGHT_WORD)
#undef RIGHT_WORD
};

#define RIGHTS_OF_EDIT ((((uint32_t)1 << RIGHT_COUNT) - 1) & ~((uint32_t)1 << RIGHT_OPERATING))

static const double rate_max = 1e12;

const char *right_word(enum right right)
{
    return right < RIGHT_COUNT ? right_words[right] : "";
}

void claims_init(struct claims *claims, bool may_edit)
{
    memset(claims, 0, sizeof *claims); /* with its padding: claims are compared by their bytes */
    claims->may = may_edit ? RIGHTS_OF_EDIT : (uint32_t)1 << RIGHT_READING;
    claims->begin_s = -INFINITY;
    claims->end_s = INFINITY;
}

/* Of text that goes into metrics and the audit as it is. */
static bool is_name(const char *text, const char *others, size_t length_max)
{
    const size_t length = strlen(text);

    if (length == 0 || length > length_max)
        return false;
    for (size_t i = 0; i < length; i++) {
        const char c = text[i];

        if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
              strchr(others, c)))
            return false;
    }
    return true;
}

enum err_code claims_set_name(struct claims *claims, const char *name, struct err *err)
{
    if (!is_name(name, "_-.@:", CLAIMS_NAME_MAX))
        return err_set(err, ERR_BAD_INPUT,
                       "name=%.80s: 1 to %d characters of A-Za-z0-9_-.@: were "
                       "expected",
                       name, CLAIMS_NAME_MAX);
    strcpy(claims->name, name);
    return ERR_OK;
}

enum err_code claims_add_right(struct claims *claims, const char *word, struct err *err)
{
    for (int right = 0; right < RIGHT_COUNT; right++) {
        if (strcmp(word, right_words[right]) != 0)
            continue;
        if (!claims->has_may)
            claims->may = 0;
        claims->has_may = true;
        claims->may |= (uint32_t)1 << right;
        return ERR_OK;
    }
    return err_set(err, ERR_BAD_INPUT,
                   "may=%.40s: there is no such right; reading, edits, layers, locales, patches, "
                   "bodies, impacts, models, moves, pins and operating are",
                   word);
}

enum err_code claims_add_locale(struct claims *claims, const char *pattern, struct err *err)
{
    const size_t length = strlen(claims->locales);

    if (!is_name(pattern, "_-*", WORLD_ID_MAX))
        return err_set(err, ERR_BAD_INPUT,
                       "locales=%.80s: an id with `*` for any text was expected", pattern);
    if (length + 1 + strlen(pattern) >= CLAIMS_LOCALES_BYTES)
        return err_set(err, ERR_BAD_INPUT, "locales=: more than %d characters",
                       CLAIMS_LOCALES_BYTES - 1);
    if (length > 0)
        strcat(claims->locales, ",");
    strcat(claims->locales, pattern);
    return ERR_OK;
}

enum err_code claims_set_bounds(struct claims *claims, const double bounds_m[4], struct err *err)
{
    for (int i = 0; i < 4; i++)
        if (!isfinite(bounds_m[i]) || (i >= 2 && bounds_m[i] < bounds_m[i - 2]))
            return err_set(err, ERR_BAD_INPUT,
                           "bounds: x0,y0,x1,y1 with x0 <= x1 and y0 <= y1 were expected");
    memcpy(claims->bounds_m, bounds_m, sizeof claims->bounds_m);
    claims->has_bounds = true;
    return ERR_OK;
}

enum err_code claims_set_rate(struct claims *claims, const char *key, double a_second,
                              struct err *err)
{
    if (!(a_second > 0 && a_second <= rate_max))
        return err_set(err, ERR_BAD_INPUT, "%s: %g is not above 0 and at most %g a second", key,
                       a_second, rate_max);
    *(strcmp(key, "rate") == 0 ? &claims->rate : &claims->items) = a_second;
    return ERR_OK;
}

/* ---- words of a line ------------------------------------------------------------------------- */

static enum err_code read_name(struct claims *claims, char *value, struct err *err)
{
    return claims_set_name(claims, value, err);
}

static enum err_code read_list(struct claims *claims, char *value,
                               enum err_code (*add)(struct claims *, const char *, struct err *),
                               struct err *err)
{
    for (char *rest = value, *word; (word = strsep(&rest, ",")) != NULL;)
        if (add(claims, word, err))
            return err->code;
    return ERR_OK;
}

static enum err_code read_may(struct claims *claims, char *value, struct err *err)
{
    return read_list(claims, value, claims_add_right, err);
}

static enum err_code read_locales(struct claims *claims, char *value, struct err *err)
{
    claims->has_locales = true;
    return read_list(claims, value, claims_add_locale, err);
}

static bool read_number(const char *text, double *out)
{
    return span_number((struct span){text, strlen(text)}, out);
}

static enum err_code read_bounds(struct claims *claims, char *value, struct err *err)
{
    double bounds_m[4];
    int count = 0;

    for (char *rest = value, *word; (word = strsep(&rest, ",")) != NULL; count++)
        if (count == 4 || !read_number(word, &bounds_m[count]))
            return err_set(err, ERR_BAD_INPUT, "bounds=: four numbers were expected: x0,y0,x1,y1");
    if (count != 4)
        return err_set(err, ERR_BAD_INPUT, "bounds=: four numbers were expected, this has %d",
                       count);
    return claims_set_bounds(claims, bounds_m, err);
}

static enum err_code read_a_second(struct claims *claims, const char *key, char *value,
                                   struct err *err)
{
    char *end = strstr(value, "/s");
    double number;

    if (end && end[2] == '\0') {
        *end = '\0';
        if (read_number(value, &number))
            return claims_set_rate(claims, key, number, err);
    }
    return err_set(err, ERR_BAD_INPUT, "%s=%.40s: a number a second was expected, like 50/s", key,
                   value);
}

static enum err_code read_rate(struct claims *claims, char *value, struct err *err)
{
    return read_a_second(claims, "rate", value, err);
}

static enum err_code read_items(struct claims *claims, char *value, struct err *err)
{
    return read_a_second(claims, "items", value, err);
}

/* A date to its end, or a time of RFC 3339; fractions of a second are dropped. */
static bool read_time(const char *text, double *out_s)
{
    const bool is_date = strlen(text) == 10;
    char day[32];
    int64_t time_ms;

    snprintf(day, sizeof day, "%.10sT00:00:00Z", text);
    if (!utc_read(is_date ? day : text, &time_ms))
        return false;
    *out_s = floor((double)time_ms / 1000) + (is_date ? 86400 : 0);
    return true;
}

static enum err_code read_until(struct claims *claims, char *value, struct err *err)
{
    if (!read_time(value, &claims->end_s))
        return err_set(err, ERR_BAD_INPUT,
                       "until=%.40s: a date (2026-12-31) or a time (2026-12-31T18:00:00Z) was "
                       "expected",
                       value);
    return ERR_OK;
}

enum err_code claims_set_word(struct claims *claims, char *word, uint32_t *seen, struct err *err)
{
    static const struct {
        const char *key;
        enum err_code (*read)(struct claims *, char *, struct err *);
    } keys[] = {{"name", read_name},     {"may", read_may},   {"locales", read_locales},
                {"bounds", read_bounds}, {"rate", read_rate}, {"items", read_items},
                {"until", read_until}};
    char *value = strchr(word, '=');

    for (size_t i = 0; value && i < sizeof keys / sizeof *keys; i++) {
        const size_t length = (size_t)(value - word);

        if (strlen(keys[i].key) != length || strncmp(keys[i].key, word, length) != 0)
            continue;
        if (*seen >> i & 1)
            return err_set(err, ERR_BAD_INPUT, "%s= is there twice", keys[i].key);
        *seen |= (uint32_t)1 << i;
        return keys[i].read(claims, value + 1, err);
    }
    return err_set(err, ERR_BAD_INPUT,
                   "\"%.40s\" is not one of name= may= locales= bounds= rate= items= until=", word);
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Does text match the pattern, in which each `*` is any text? O(pattern · text) at worst. */
static bool matches(const char *pattern, size_t pattern_length, const char *text, size_t length)
{
    size_t p = 0, t = 0, star = SIZE_MAX, from = 0;

    while (t < length) {
        if (p < pattern_length && pattern[p] == '*') {
            star = p++;
            from = t;
        } else if (p < pattern_length && pattern[p] == text[t]) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern_length && pattern[p] == '*')
        p++;
    return p == pattern_length;
}

bool claims_has_locale(const struct claims *claims, const char *id, size_t length)
{
    if (!claims->has_locales)
        return true;
    for (const char *at = claims->locales; *at;) {
        const size_t n = strcspn(at, ",");

        if (matches(at, n, id, length))
            return true;
        at += n + (at[n] == ',');
    }
    return false;
}
