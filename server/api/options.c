/*
 * Options from query or body.
 *
 * Problem: each call exists as GET, as JSON and as a binary batch, with the same options; three
 * decoders would drift apart.
 * Approach: an option is looked up by name in the parsed body (if there is one) and in the query; a
 * value of either kind is read by one function. Unknown names are refused when the call is opened,
 * so that a typing error is not an option that silently does nothing.
 */
#include "api/options.h"

#include "base/text/json_text.h"
#include "base/text/nearest_word.h"
#include "world/ask/all_hits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Where an option was found: one of the two, or neither. */
struct found {
    const cJSON *json;
    const struct http_query_item *query;
};

/* span_equals for names of options, which are short and never empty. */
static inline bool is_named(struct span given, const char *name)
{
    size_t i = 0;

    while (i < given.length && given.at[i] == name[i] && name[i] != '\0')
        i++;
    return i == given.length && name[i] == '\0';
}

static bool is_among(struct span name, const char *const *names)
{
    for (; names && *names; names++)
        if (is_named(name, *names))
            return true;
    return false;
}

/* Names the stranger, a guess, and the parameters that the call takes. */
static enum err_code unknown_parameter(const struct call *call, struct span name,
                                       const char *const *names, struct err *err)
{
    int shown = (int)(name.length > 64 ? 64 : name.length);
    const char *guess = nearest_word(name.at, name.length, names);
    char list[200] = "";

    for (size_t i = 0; names && names[i]; i++) {
        strncat(list, i ? ", " : "", sizeof list - strlen(list) - 1);
        strncat(list, names[i], sizeof list - strlen(list) - 1);
    }
    if (call->may_be_earlier)
        strncat(list, *list ? ", at" : "at", sizeof list - strlen(list) - 1);
    if (call->may_be_live)
        strncat(list, ", live", sizeof list - strlen(list) - 1);
    if (call->may_have_note)
        strncat(list, *list ? ", note" : "note", sizeof list - strlen(list) - 1);
    err_set(err, ERR_UNKNOWN_PARAMETER,
            "this call has no query parameter \"%.*s\"%s%s%s; it takes %s", shown, name.at,
            guess ? " (did you mean \"" : "", guess ? guess : "", guess ? "\"?)" : "",
            *list ? list : "none");
    return err_at(err, "%.*s", shown, name.at);
}

/* The parameters that a call takes besides its own. */
static bool is_common(const struct call *call, struct span name)
{
    return (call->may_be_live && is_named(name, "live")) ||
           (call->may_be_earlier && is_named(name, "at")) ||
           (call->may_have_note && is_named(name, "note"));
}

enum err_code options_open_query(struct call *call, const char *const *names, struct err *err)
{
    char note[STORE_NOTE_MAX + 1];

    for (size_t i = 0; i < call->query_count; i++) {
        struct span name = call->query[i].name;
        int shown = (int)(name.length > 64 ? 64 : name.length);

        if (!is_among(name, names) && !is_common(call, name))
            return unknown_parameter(call, name, names, err);
        if (call->may_have_note && is_named(name, "note") && option_note(call, note, err))
            return err->code;
        for (size_t k = 0; k < i; k++) {
            struct span other = call->query[k].name;

            if (other.length == name.length && other.at[0] == name.at[0] &&
                memcmp(other.at, name.at, name.length) == 0) {
                err_set(err, ERR_BAD_INPUT, "the query parameter \"%.*s\" is given twice", shown,
                        name.at);
                return err_at(err, "%.*s", shown, name.at);
            }
        }
    }
    return ERR_OK;
}

enum { NAMES_MAX = 24 };

enum err_code options_wrong_media_type(const struct call *call, const char *taken, struct err *err)
{
    static const char json[] = "application/json";
    struct span given = call->media_type;
    bool from_curl = span_equals(given, "application/x-www-form-urlencoded");

    if (given.length == 0)
        err_set(err, ERR_UNSUPPORTED_MEDIA_TYPE, "no Content-Type was sent; this path takes %s",
                taken);
    else
        err_set(err, ERR_UNSUPPORTED_MEDIA_TYPE, "the body must be %s, not %.*s%s%s%s", taken,
                (int)(given.length > 64 ? 64 : given.length), given.at,
                from_curl ? " (curl: add -H 'Content-Type: " : "",
                !from_curl                                ? ""
                : strncmp(taken, json, strlen(json)) == 0 ? json
                                                          : "TYPE",
                from_curl ? "')" : "");
    return err_at(err, "Content-Type");
}

/* Media type, size and query of a call with a JSON body. */
static enum err_code open_body(struct call *call, const char *const *names, struct err *err)
{
    size_t limit = call_limits(call)->json_bytes_max;

    if (call->media_type.length > 0 && !span_equals(call->media_type, "application/json"))
        return options_wrong_media_type(call, "application/json", err);
    if (call->body.length > limit)
        return err_limit(err, ERR_BODY_TOO_LARGE, (double)limit, (double)call->body.length,
                         "a JSON body has at most %zu bytes, this has %zu", limit,
                         call->body.length);
    if (options_open_query(call, names, err))
        return err->code;
    return call->body.length > 0
               ? ERR_OK
               : err_set(err, ERR_MISSING, "the body is empty; send a JSON object, at least {}");
}

static enum err_code only_members(const struct call *call, const char *const *items,
                                  const char *const *names, struct err *err)
{
    const char *all[NAMES_MAX];
    size_t count = 0;

    for (; items && *items && count < NAMES_MAX - 1; items++)
        all[count++] = *items;
    for (; names && *names && count < NAMES_MAX - 1; names++)
        all[count++] = *names;
    all[count] = NULL;
    return json_only_members(call->json, all, "", err);
}

enum err_code options_open_json(struct call *call, const char *const *items,
                                const char *const *names, struct err *err)
{
    if (open_body(call, names, err) ||
        json_parse(call->body.at, call->body.length, &call_limits(call)->json, &call->json, err))
        return err->code;
    return only_members(call, items, names, err);
}

/* ---- batches --------------------------------------------------------------------------------- */

enum err_code options_open_mixed(struct call *call, const char *const *batches,
                                 const char *const *items, const char *const *names,
                                 struct err *err)
{
    if (open_body(call, names, err) ||
        json_scan(call->body.at, call->body.length, &call_limits(call)->json, &call->tape, err) ||
        json_tape_root(&call->tape, batches, &call->json, err))
        return err->code;
    return only_members(call, items, names, err);
}

enum err_code options_open_batch(struct call *call, const char *const *items,
                                 const char *const *names, struct err *err)
{
    return options_open_mixed(call, items, items, names, err);
}

enum err_code option_array(struct call *call, const char *name, uint32_t *array, struct err *err)
{
    size_t limit = call_limits(call)->items_max, count;

    *array = json_tape_array(&call->tape, 0, name);
    if (*array == 0 && !json_member(call->json, name)) {
        err_set(err, ERR_MISSING, "is missing: an array of 1 to %zu items", limit);
        return err_at(err, "/%s", name);
    }
    if (*array == 0) {
        err_set(err, ERR_BAD_INPUT, "an array of 1 to %zu items was expected, not %s", limit,
                json_kind(json_member(call->json, name)));
        return err_at(err, "/%s", name);
    }
    count = call->tape.tokens[*array].count;
    if (count >= 1 && count <= limit)
        return ERR_OK;
    if (count == 0)
        err_limit(err, ERR_BAD_INPUT, 1, 0, "%s is empty; it takes 1 to %zu items", name, limit);
    else
        err_limit(err, ERR_TOO_MANY_ITEMS, (double)limit, (double)count,
                  "%s has %zu items, the most is %zu", name, count, limit);
    return err_at(err, "/%s", name);
}

enum err_code option_batch(struct call *call, const struct json_shape *shape,
                           struct json_batch *out, struct err *err)
{
    uint32_t array;
    size_t count;

    if (option_array(call, shape->member, &array, err))
        return err->code;
    count = call->tape.tokens[array].count;
    out->numbers = call_alloc(call, count * shape->stride * sizeof *out->numbers);
    if (!out->numbers)
        return err_set(err, ERR_NO_MEMORY, "no memory for %zu items", count);
    if (json_batch_read(&call->tape, array, shape, out, err))
        return err->code;
    return call_take_items(call, count, err);
}

static const struct http_query_item *find_in_query(const struct call *call, const char *name)
{
    for (size_t i = 0; i < call->query_count; i++)
        if (is_named(call->query[i].name, name))
            return &call->query[i];
    return NULL;
}

static enum err_code find(const struct call *call, const char *name, struct found *out,
                          struct err *err)
{
    *out =
        (struct found){call->json ? json_given(call->json, name) : NULL, find_in_query(call, name)};
    return out->json && out->query ? err_set_at(err, ERR_BAD_INPUT, name,
                                                "%s is given in the query and in the body", name)
                                   : ERR_OK;
}

/* Names the place of an error: a JSON pointer or a parameter's name. */
static enum err_code at(struct err *err, const struct found *found, const char *name)
{
    return err_at(err, "%s%s", found->json ? "/" : "", name);
}

static enum err_code query_wrong(const struct found *found, const char *name, const char *expected,
                                 struct err *err)
{
    struct span value = found->query->value;

    err_set(err, ERR_BAD_INPUT, "%s=%.*s: expected %s", name,
            (int)(value.length > 64 ? 64 : value.length), value.at ? value.at : "", expected);
    return at(err, found, name);
}

enum err_code option_number(struct call *call, const char *name, double *out, bool *is_given,
                            struct err *err)
{
    struct found found;

    if (is_given)
        *is_given = false;
    if (find(call, name, &found, err))
        return err->code;
    if (found.json && json_get_number(found.json, out, err))
        return at(err, &found, name);
    if (found.query && !span_number(found.query->value, out))
        return query_wrong(&found, name, "a finite number", err);
    if (is_given)
        *is_given = found.json || found.query;
    return ERR_OK;
}

enum err_code option_boolean(struct call *call, const char *name, bool *out, struct err *err)
{
    struct found found;

    if (find(call, name, &found, err))
        return err->code;
    if (found.json && json_get_boolean(found.json, out, err))
        return at(err, &found, name);
    if (found.query) {
        bool is_true = span_equals(found.query->value, "true");

        if (!is_true && !span_equals(found.query->value, "false"))
            return query_wrong(&found, name, "true or false", err);
        *out = is_true;
    }
    return ERR_OK;
}

enum err_code option_integer(struct call *call, const char *name, uint64_t least, uint64_t most,
                             uint64_t *out, struct err *err)
{
    struct found found;
    cJSON number = {.type = cJSON_Number};

    if (find(call, name, &found, err))
        return err->code;
    if (found.query && !span_number(found.query->value, &number.valuedouble))
        return query_wrong(&found, name, "a whole number", err);
    if ((found.json || found.query) &&
        json_get_integer(found.json ? found.json : &number, least, most, out, err))
        return at(err, &found, name);
    return ERR_OK;
}

static enum err_code copy_text(struct span text, char *out, size_t size, struct err *err)
{
    if (text.length >= size)
        return err_limit(err, ERR_BAD_INPUT, (double)size - 1, (double)text.length,
                         "at most %zu bytes were expected, not %zu", size - 1, text.length);
    if (!json_text_is_plain(text.at ? text.at : "", text.length))
        return err_set(err, ERR_BAD_INPUT, "UTF-8 without control characters was expected");
    memcpy(out, text.at ? text.at : "", text.length);
    out[text.length] = '\0';
    return ERR_OK;
}

enum err_code option_text(struct call *call, const char *name, char *out, size_t size,
                          bool *is_given, struct err *err)
{
    struct found found;
    const char *text;

    *is_given = false;
    if (find(call, name, &found, err))
        return err->code;
    if (found.json && json_get_string(found.json, &text, err))
        return at(err, &found, name);
    *is_given = found.json || found.query;
    if (*is_given && copy_text(found.json ? (struct span){text, strlen(text)} : found.query->value,
                               out, size, err))
        return at(err, &found, name);
    return ERR_OK;
}

enum err_code option_note(const struct call *call, char out[static STORE_NOTE_MAX + 1],
                          struct err *err)
{
    const struct http_query_item *note = find_in_query(call, "note");

    out[0] = '\0';
    if (note && copy_text(note->value, out, STORE_NOTE_MAX + 1, err))
        return err_at(err, "note");
    return ERR_OK;
}

/* Reads a query value as if it had been a JSON string. */
static bool as_string(struct span value, char *text, size_t size, cJSON *out)
{
    if (!span_copy(value, text, size))
        return false;
    *out = (cJSON){.type = cJSON_String, .valuestring = text};
    return true;
}

enum err_code option_word(struct call *call, const char *name, const char *const *words, int *out,
                          struct err *err)
{
    struct found found;
    cJSON string;
    char text[64];

    if (find(call, name, &found, err))
        return err->code;
    if (!found.json && !found.query)
        return ERR_OK;
    if (found.query && !as_string(found.query->value, text, sizeof text, &string))
        return query_wrong(&found, name, "one word", err);
    if (json_get_word(found.json ? found.json : &string, words, out, err))
        return at(err, &found, name);
    return ERR_OK;
}

enum err_code option_hits(struct call *call, const char *const *modes, int *mode, size_t *hits_max,
                          struct err *err)
{
    uint64_t most = 0;
    bool is_all;

    *hits_max = 0;
    if (option_word(call, "mode", modes, mode, err) ||
        option_integer(call, "hits_max", 1, ALL_HITS_MOST, &most, err))
        return err->code;
    is_all = strcmp(modes[*mode], "all") == 0;
    if (!is_all && most > 0) {
        err_set(err, ERR_BAD_INPUT, "hits_max belongs to mode=all, not to mode=%s", modes[*mode]);
        return err_at(err, "%shits_max", call->json ? "/" : "");
    }
    *hits_max = !is_all ? 0 : most > 0 ? (size_t)most : ALL_HITS_DEFAULT;
    return ERR_OK;
}

enum err_code option_hits_check(size_t count, size_t hits_max, const char *items, struct err *err)
{
    if (count * hits_max <= ALL_HITS_OF_ITEMS_MAX)
        return ERR_OK;
    return err_limit_at(err, ERR_TOO_MANY_ITEMS, items, ALL_HITS_OF_ITEMS_MAX,
                        (double)(count * hits_max),
                        "%zu items may have %zu hits with a hits_max of %zu, the most is %d", count,
                        count * hits_max, hits_max, ALL_HITS_OF_ITEMS_MAX);
}

/* The text up to the next comma; the rest stays in *value. */
static struct span next_part(struct span *value)
{
    const char *comma = memchr(value->at, ',', value->length);
    size_t length = comma ? (size_t)(comma - value->at) : value->length;
    struct span part = {value->at, length};

    value->at = comma ? comma + 1 : NULL;
    value->length = comma ? value->length - length - 1 : 0;
    return part;
}

enum err_code option_numbers(struct call *call, const char *name, size_t count, double *out,
                             bool *is_given, struct err *err)
{
    struct found found;
    double read[16];

    if (is_given)
        *is_given = false;
    if (find(call, name, &found, err))
        return err->code;
    if (found.json && json_get_numbers(found.json, count, out, err))
        return at(err, &found, name);
    if (found.query) {
        struct span rest = found.query->value;
        size_t n = 0;

        while (rest.at && n < count && span_number(next_part(&rest), &read[n]))
            n++;
        if (rest.at || n < count) {
            char expected[48];

            snprintf(expected, sizeof expected, "%zu numbers separated by commas%s", count,
                     count == 2   ? ": x,y"
                     : count == 3 ? ": x,y,z"
                                  : "");
            return query_wrong(&found, name, count == 1 ? "a finite number" : expected, err);
        }
        memcpy(out, read, count * sizeof *out);
    }
    if (is_given)
        *is_given = found.json || found.query;
    return ERR_OK;
}

enum err_code option_rect(struct call *call, const struct heightfield_spec *spec,
                          struct sample_rect *out, bool *is_given, struct err *err)
{
    const char *place = json_given(call->json, "rect") ? "/rect" : "rect";
    const double sides[2] = {spec->cols, spec->rows};
    double rect[4];

    if (option_numbers(call, "rect", 4, rect, is_given, err) || !*is_given)
        return err->code;
    for (int i = 0; i < 4; i++)
        if (rect[i] != floor(rect[i]) || rect[i] < (i < 2 ? 0 : 1))
            return err_set_at(
                err, ERR_BAD_INPUT, place,
                "rect is [c0,r0,cols,rows], whole numbers from 0 and 1; %.17g is none", rect[i]);
    if (rect[0] + rect[2] > sides[0] || rect[1] + rect[3] > sides[1])
        return err_set_at(err, ERR_UNPROCESSABLE, place,
                          "rect [%.17g,%.17g,%.17g,%.17g] is not inside %u × %u", rect[0], rect[1],
                          rect[2], rect[3], spec->cols, spec->rows);
    *out = (struct sample_rect){(uint32_t)rect[0], (uint32_t)rect[1], (uint32_t)rect[2],
                                (uint32_t)rect[3]};
    return ERR_OK;
}

enum err_code option_needed(struct call *call, const char *name, size_t count, double *out,
                            struct err *err)
{
    bool is_given;

    if (option_numbers(call, name, count, out, &is_given, err) || is_given)
        return err->code;
    return err_set_at(err, ERR_MISSING, name, "the query parameter %s is missing", name);
}

enum err_code option_bounds(struct call *call, double out[static 4], bool *is_given,
                            struct err *err)
{
    if (option_numbers(call, "bounds", 4, out, is_given, err))
        return err->code;
    for (int axis = 0; *is_given && axis < 2; axis++)
        if (out[axis] > out[axis + 2])
            return err_limit_at(err, ERR_BAD_INPUT, "bounds", out[axis + 2], out[axis],
                                "bounds is x0,y0,x1,y1: %c0 is %.17g, %c1 is %.17g, which is less",
                                "xy"[axis], out[axis], "xy"[axis], out[axis + 2]);
    return ERR_OK;
}

static enum err_code words_of_array(const cJSON *array, const char *name, const char *const *words,
                                    unsigned *bits, struct err *err)
{
    size_t i = 0;

    if (!cJSON_IsArray(array)) {
        err_set(err, ERR_BAD_INPUT, "an array of words was expected, not %s", json_kind(array));
        return err_at(err, "/%s", name);
    }
    *bits = 0;
    for (const cJSON *item = array->child; item; item = item->next, i++) {
        int word;

        if (json_get_word(item, words, &word, err))
            return err_at(err, "/%s/%zu", name, i);
        *bits |= 1u << word;
    }
    return ERR_OK;
}

enum err_code option_words(struct call *call, const char *name, const char *const *words,
                           unsigned *bits, struct err *err)
{
    struct found found;
    unsigned read = 0;

    if (find(call, name, &found, err))
        return err->code;
    if (found.json)
        return words_of_array(found.json, name, words, bits, err);
    if (!found.query)
        return ERR_OK;
    for (struct span rest = found.query->value; rest.at;) {
        cJSON string;
        char text[64];
        int word;

        if (!as_string(next_part(&rest), text, sizeof text, &string))
            return query_wrong(&found, name, "words separated by commas", err);
        if (json_get_word(&string, words, &word, err))
            return at(err, &found, name);
        read |= 1u << word;
    }
    *bits = read;
    return ERR_OK;
}

enum err_code option_layer(struct call *call, char out[static WORLD_ID_MAX + 1], struct err *err)
{
    struct found found;
    struct http_query_item member;
    const char *text;

    out[0] = '\0';
    if (find(call, "layer", &found, err))
        return err->code;
    if (found.json) {
        if (json_get_string(found.json, &text, err))
            return at(err, &found, "layer");
        member.value = (struct span){text, strlen(text)};
        found.query = &member;
    }
    if (!found.query)
        return ERR_OK;
    if (!span_copy(found.query->value, out, WORLD_ID_MAX + 1) || out[0] == '\0') {
        err_set(err, ERR_LAYER_UNKNOWN_OPTION,
                "there is no such layer: an id has 1 to %d characters", WORLD_ID_MAX);
        return at(err, &found, "layer");
    }
    return ERR_OK;
}

enum err_code option_id(struct call *call, const char *name, char out[static WORLD_ID_MAX + 1],
                        struct err *err)
{
    struct found found;

    out[0] = '\0';
    if (find(call, name, &found, err) || !found.query)
        return err->code;
    if (!span_copy(found.query->value, out, WORLD_ID_MAX + 1) ||
        !world_id_is_valid(out, strlen(out)))
        return query_wrong(&found, name, "an id: 1 to 64 of A-Z a-z 0-9 _ -", err);
    return ERR_OK;
}

/*
 * An error of world/ about a choice points to the member of a body; without one the option was in
 * the query.
 */
static enum err_code chosen(const struct call *call, enum err_code code, struct err *err)
{
    struct found found;
    struct err ignored;

    if (code != ERR_OK && strcmp(err->pointer, "/layer") == 0 &&
        find(call, "layer", &found, &ignored) == ERR_OK && (found.query || !call->json))
        return err_at(err, "layer");
    return code;
}

enum err_code option_choose(struct call *call, struct layer_choice *out, struct err *err)
{
    char layer[WORLD_ID_MAX + 1];

    if (option_layer(call, layer, err))
        return err->code;
    return chosen(call, locale_choose(call->locale, layer[0] != '\0' ? layer : NULL, out, err),
                  err);
}

enum err_code option_choose_ground(struct call *call, struct layer_choice *out, struct err *err)
{
    char layer[WORLD_ID_MAX + 1];

    if (option_layer(call, layer, err))
        return err->code;
    return chosen(
        call, locale_choose_ground(call->locale, layer[0] != '\0' ? layer : NULL, out, err), err);
}

enum err_code option_choose_field(struct call *call, const struct layer **out, struct err *err)
{
    char layer[WORLD_ID_MAX + 1];

    if (option_layer(call, layer, err))
        return err->code;
    return chosen(
        call, locale_choose_field(call->locale, layer[0] != '\0' ? layer : NULL, out, err), err);
}

enum err_code option_interpolation(struct call *call, enum interpolation *out, struct err *err)
{
    static const char *const words[] = {"triangle", "bilinear", "nearest", NULL};
    int word = INTERPOLATION_TRIANGLE;

    if (option_word(call, "interp", words, &word, err))
        return err->code;
    *out = (enum interpolation)word;
    return ERR_OK;
}
