/*
 * Typed reading of JSON values.
 *
 * Problem: a decoder that trusts types crashes or answers nonsense; one that checks by hand at
 * every place is unreadable. Approach: small getters, one for each kind of value; arrays are walked
 * by child and next, because cJSON's indexed access is linear. Numbers are finite already
 * (json_check.h), and checked again.
 */
#include "json/json_read.h"

#include "base/text/nearest_word.h"

#include <math.h>
#include <string.h>

enum { NAME_BYTES_MAX = 64 }; /* of a member that is named in an error */

static bool is_among(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* Points to a member, whose name may be any text (RFC 6901: ~ is ~0 and / is ~1 in it). */
static enum err_code at_member(struct err *err, const char *place, const char *name)
{
    char escaped[2 * NAME_BYTES_MAX + 1];
    size_t length = 0;

    for (size_t i = 0; name[i] && i < NAME_BYTES_MAX; i++) {
        bool is_special = name[i] == '~' || name[i] == '/';

        escaped[length++] = is_special ? '~' : name[i];
        if (is_special)
            escaped[length++] = name[i] == '~' ? '0' : '1';
    }
    escaped[length] = '\0';
    return err_at(err, "%s/%s", place, escaped);
}

/* Names the stranger, a guess, and the members that are taken. */
static void unknown_member(const char *name, const char *const *names, const char *place,
                           struct err *err)
{
    const char *guess = nearest_word(name, strlen(name), names);
    char list[200] = "";

    for (size_t i = 0; names[i]; i++) {
        strncat(list, i ? ", " : "", sizeof list - strlen(list) - 1);
        strncat(list, names[i], sizeof list - strlen(list) - 1);
    }
    err_set(err, ERR_UNKNOWN_MEMBER, "unknown member \"%.*s\"%s%s%s; %.64s takes %s",
            NAME_BYTES_MAX, name, guess ? " (did you mean \"" : "", guess ? guess : "",
            guess ? "\"?)" : "", *place ? place : "the body", *list ? list : "none");
}

enum err_code json_only_members(const cJSON *object, const char *const *names, const char *place,
                                struct err *err)
{
    if (!cJSON_IsObject(object))
        return err_set_at(err, ERR_BAD_INPUT, place, "an object was expected, not %s",
                          json_kind(object));
    for (const cJSON *m = object->child; m; m = m->next) {
        if (!is_among(m->string, names)) {
            unknown_member(m->string, names, place, err);
            return at_member(err, place, m->string);
        }
        if (json_member(object, m->string) != m) {
            err_set(err, ERR_BAD_INPUT, "the member \"%.*s\" is given twice", NAME_BYTES_MAX,
                    m->string);
            return at_member(err, place, m->string);
        }
    }
    return ERR_OK;
}

const cJSON *json_member(const cJSON *object, const char *name)
{
    for (const cJSON *m = object ? object->child : NULL; m; m = m->next)
        if (m->string && strcmp(m->string, name) == 0)
            return m;
    return NULL;
}

const cJSON *json_given(const cJSON *object, const char *name)
{
    const cJSON *m = json_member(object, name);

    return cJSON_IsNull(m) ? NULL : m;
}

const char *json_kind(const cJSON *value)
{
    if (!value)
        return "nothing";
    if (cJSON_IsNull(value))
        return "null";
    if (cJSON_IsBool(value))
        return "a boolean";
    if (cJSON_IsNumber(value))
        return "a number";
    if (cJSON_IsString(value))
        return "a string";
    return cJSON_IsArray(value) ? "an array" : "an object";
}

static enum err_code wrong_kind(const cJSON *value, const char *expected, struct err *err)
{
    if (!value)
        return err_set(err, ERR_MISSING, "is missing: %s", expected);
    return err_set(err, ERR_BAD_INPUT, "%s was expected, not %s", expected, json_kind(value));
}

enum err_code json_get_number(const cJSON *value, double *out, struct err *err)
{
    if (!cJSON_IsNumber(value) || !isfinite(value->valuedouble))
        return wrong_kind(value, "a finite number", err);
    *out = value->valuedouble;
    return ERR_OK;
}

enum err_code json_get_boolean(const cJSON *value, bool *out, struct err *err)
{
    if (!cJSON_IsBool(value))
        return wrong_kind(value, "true or false", err);
    *out = cJSON_IsTrue(value);
    return ERR_OK;
}

enum err_code json_get_integer(const cJSON *value, uint64_t least, uint64_t most, uint64_t *out,
                               struct err *err)
{
    double number = 0;

    if (json_get_number(value, &number, err))
        return err->code;
    if (number != floor(number))
        return err_set(err, ERR_BAD_INPUT, "a whole number was expected, not %.17g", number);
    if (!(number >= (double)least && number <= (double)most))
        return err_limit(err, ERR_BAD_INPUT, number < (double)least ? (double)least : (double)most,
                         number, "%.17g is outside %.17g..%.17g", number, (double)least,
                         (double)most);
    *out = (uint64_t)number;
    return ERR_OK;
}

enum err_code json_get_numbers(const cJSON *value, size_t count, double *out, struct err *err)
{
    double read[16];
    size_t n = 0;

    if (!value)
        return err_set(err, ERR_MISSING, "is missing: %zu numbers", count);
    if (!cJSON_IsArray(value) || count > 16) {
        err_set(err, ERR_BAD_INPUT, "an array of %zu numbers was expected, not %s", count,
                json_kind(value));
        return err->code;
    }
    for (const cJSON *item = value->child; item; item = item->next, n++) {
        if (n == count)
            return err_set(err, ERR_BAD_INPUT, "an array of %zu numbers was expected, it has more",
                           count);
        if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble))
            return err_set(err, ERR_BAD_INPUT,
                           "an array of %zu numbers was expected, item %zu is %s", count, n,
                           json_kind(item));
        read[n] = item->valuedouble;
    }
    if (n < count)
        return err_set(err, ERR_BAD_INPUT, "an array of %zu numbers was expected, it has %zu",
                       count, n);
    memcpy(out, read, count * sizeof *out);
    return ERR_OK;
}

enum err_code json_get_vec2(const cJSON *value, struct vec2 *out, struct err *err)
{
    double v[2];

    if (json_get_numbers(value, 2, v, err))
        return err->code;
    *out = (struct vec2){v[0], v[1]};
    return ERR_OK;
}

enum err_code json_get_vec3(const cJSON *value, struct vec3 *out, struct err *err)
{
    double v[3];

    if (json_get_numbers(value, 3, v, err))
        return err->code;
    *out = (struct vec3){v[0], v[1], v[2]};
    return ERR_OK;
}

enum err_code json_get_string(const cJSON *value, const char **out, struct err *err)
{
    if (!cJSON_IsString(value))
        return wrong_kind(value, "a string", err);
    *out = value->valuestring;
    return ERR_OK;
}

enum err_code json_get_word(const cJSON *value, const char *const *words, int *out, struct err *err)
{
    const char *text = "", *guess;
    char list[128] = "";

    if (json_get_string(value, &text, err))
        return err->code;
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0) {
            *out = i;
            return ERR_OK;
        }
        if (i > 0)
            strncat(list, ", ", sizeof list - strlen(list) - 1);
        strncat(list, words[i], sizeof list - strlen(list) - 1);
    }
    guess = nearest_word(text, strlen(text), words);
    return err_set(err, ERR_BAD_INPUT, "\"%.64s\"%s%s%s is none of %s", text,
                   guess ? " (did you mean \"" : "", guess ? guess : "", guess ? "\"?)" : "", list);
}
