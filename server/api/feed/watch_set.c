/*
 * Items of watches: reading them from a body, asking them, and the part of space that each depends
 * on.
 *
 * An item is kept as the text of its question, a group as the text of its options. To ask some
 * items of a group a body is written, and the call's own function answers it without a connection;
 * the array of its results is cut into the answers. So there is one way to ask, and an item of a
 * watch cannot differ from the same one asked once. Few items are asked at a time: reading and
 * writing them costs about a microsecond.
 */
#include "api/feed/watch_set.h"

#include "api/calls.h"
#include "api/shape_decode.h"
#include "base/array_reserve.h"
#include "json/json_buffer.h"
#include "json/json_raw.h"
#include "json/json_value.h"
#include "world/ask/all_hits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_ITEMS = 128, FOOTPRINT_WEIGHT = 16, ANSWER_BYTES_MAX = 64 << 20 };

enum { HEIGHT, CONTACT, RAY, LOS, LIT, CONTAINS, SWEEP };
const char *const watch_kinds[] = {"height", "contact",  "ray",   "los",
                                   "lit",    "contains", "sweep", NULL};
static const struct {
    call_answer ask;
    const char *members[3]; /* that items may be in */
} kinds[] = {
    [HEIGHT] = {height_post_answer, {"points"}},
    [CONTACT] = {contact_post_answer, {"points", "footprints"}},
    [RAY] = {ray_post_answer, {"rays"}},
    [LOS] = {los_post_answer, {"segments"}},
    [LIT] = {lit_post_answer, {"points"}},
    [CONTAINS] = {contains_post_answer, {"points"}},
    [SWEEP] = {sweep_post_answer, {"items"}},
};

bool watch_group_falls(const struct watch_group *group)
{
    return group->kind == CONTACT || group->kind == CONTAINS;
}

bool watch_group_is_slanted(const struct watch_group *group)
{
    return group->kind != HEIGHT && !watch_group_falls(group);
}

void watch_set_free(struct watch_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        free(set->items[i].id);
        free(set->items[i].answer);
    }
    for (size_t i = 0; i < set->group_count; i++) {
        free(set->groups[i].options);
        cJSON_Delete(set->groups[i].tree);
    }
    free(set->groups);
    free(set->items);
    free(set->extents);
    *set = (struct watch_set){0};
}

/* ---- decode ---------------------------------------------------------------------------------- */

struct text {
    char *at;
    size_t length, capacity;
    bool is_failed;
};

static void add(struct text *text, const char *bytes, size_t length)
{
    if (!array_reserve((void **)&text->at, &text->capacity, text->length + length + 1, 1)) {
        text->is_failed = true;
        return;
    }
    memcpy(text->at + text->length, bytes, length);
    text->length += length;
    text->at[text->length] = '\0';
}

/* The value at a token, as JSON. */
static void add_value(struct text *text, const struct json_tape *tape, uint32_t value)
{
    static const char *const words[] = {
        [JSON_NULL] = "null", [JSON_FALSE] = "false", [JSON_TRUE] = "true"};
    const struct json_token *token = &tape->tokens[value];
    char number[48];

    if (token->kind <= JSON_TRUE)
        add(text, words[token->kind], strlen(words[token->kind]));
    else if (token->kind == JSON_NUMBER)
        add(text, number, (size_t)(json_raw_number(number, token->number) - number));
    else
        add(text, tape->text + token->begin, token->end - token->begin);
}

enum err_code watch_id_decode(const struct json_tape *tape, uint32_t token,
                              char out[WATCH_ID_BYTES], struct err *err)
{
    const struct json_token *id = &tape->tokens[token];

    if (id->kind == JSON_NUMBER && id->number >= 0 && id->number <= 9007199254740992.0 &&
        id->number == (double)(uint64_t)id->number) {
        snprintf(out, WATCH_ID_BYTES, "%llu", (unsigned long long)id->number);
        return ERR_OK;
    }
    if (id->kind == JSON_STRING) {
        const char *text = tape->text + id->begin;
        size_t length = id->end - id->begin;
        bool is_plain = length > 2 && length <= WATCH_ID_CHARS_MAX + 2;

        for (size_t i = 1; is_plain && i + 1 < length; i++)
            is_plain = text[i] >= ' ' && text[i] <= '~' && text[i] != '\\';
        if (is_plain) {
            memcpy(out, text, length);
            out[length] = '\0';
            return ERR_OK;
        }
    }
    return err_set(err, ERR_BAD_INPUT,
                   "an id is a whole number, or a string of 1 to %d characters of ASCII without "
                   "escapes",
                   WATCH_ID_CHARS_MAX);
}

/* The group's options, and where its items and ids are. */
static enum err_code decode_group(struct call *call, uint32_t object, const char *place, int kind,
                                  struct watch_group *out, uint32_t *items, uint32_t *ids,
                                  struct err *err)
{
    const struct json_tape *tape = &call->tape;
    const struct json_token *tokens = tape->tokens;
    struct text options = {0};
    uint32_t name = object + 1;

    *out = (struct watch_group){.kind = kind};
    *items = *ids = 0;
    if (tokens[object].kind != JSON_OBJECT)
        return err_set(err, ERR_BAD_INPUT, "an object was expected, not %s",
                       json_tape_kind(tape, object)),
               err_at(err, "%s", place);
    add(&options, "", 0);
    for (uint32_t i = 0; i < tokens[object].count; i++, name = tokens[name + 1].next) {
        const char *member = NULL;

        for (int k = 0; k < 3 && kinds[kind].members[k]; k++)
            if (json_tape_is(tape, name, kinds[kind].members[k]))
                member = kinds[kind].members[k];
        if (json_tape_is(tape, name, "ids")) {
            *ids = name + 1;
        } else if (json_tape_is(tape, name, "trace")) {
            err_set(err, ERR_BAD_INPUT, "a trace explains a ray once, it cannot be watched");
            err_at(err, "%s/trace", place);
        } else if (member) {
            *items = name + 1;
            out->member = member;
        } else {
            add(&options, ",", 1);
            add_value(&options, tape, name);
            add(&options, ":", 1);
            add_value(&options, tape, name + 1);
        }
    }
    out->options = options.at;
    out->tree = json_tape_tree(tape, object);
    if (options.is_failed || !out->tree)
        return err_set(err, ERR_NO_MEMORY, "no memory for a watch");
    if (err->code)
        return err->code;
    for (int k = 0; k < 3 && kinds[kind].members[k]; k++)
        cJSON_DeleteItemFromObjectCaseSensitive(out->tree, kinds[kind].members[k]);
    cJSON_DeleteItemFromObjectCaseSensitive(out->tree, "ids");
    if (*items == 0 || tokens[*items].kind != JSON_ARRAY || tokens[*items].count == 0) {
        err_set(err, *items ? ERR_BAD_INPUT : ERR_MISSING, "an array of items is expected");
        return err_at(err, "%s/%s", place, out->member ? out->member : kinds[kind].members[0]);
    }
    if (*ids == 0 || tokens[*ids].kind != JSON_ARRAY ||
        tokens[*ids].count != tokens[*items].count) {
        err_set(err, *ids ? ERR_BAD_INPUT : ERR_MISSING,
                "an array of %u ids is expected, one for each item", tokens[*items].count);
        return err_at(err, "%s/ids", place);
    }
    return ERR_OK;
}

static size_t weight_of(const struct watch_group *group)
{
    const cJSON *mode = cJSON_GetObjectItemCaseSensitive(group->tree, "mode");
    const cJSON *most = cJSON_GetObjectItemCaseSensitive(group->tree, "hits_max");

    if (strcmp(group->member, "footprints") == 0)
        return FOOTPRINT_WEIGHT;
    if (!cJSON_IsString(mode) || strcmp(mode->valuestring, "all") != 0)
        return 1;
    return cJSON_IsNumber(most) && most->valuedouble >= 1 && most->valuedouble <= ALL_HITS_MOST
               ? (size_t)most->valuedouble
               : 8;
}

static enum err_code add_item(const struct json_tape *tape, uint32_t group, uint32_t item,
                              const char *id, struct watch_set *out, struct err *err)
{
    size_t id_bytes = strlen(id) + 1;
    struct text text = {0};

    add(&text, id, id_bytes);
    add_value(&text, tape, item);
    if (text.is_failed ||
        !array_reserve((void **)&out->items, &out->capacity, out->count + 1, sizeof *out->items)) {
        free(text.at);
        return err_set(err, ERR_NO_MEMORY, "no memory for an item of a watch");
    }
    out->items[out->count++] =
        (struct watch_item){.id = text.at, .text = text.at + id_bytes, .group = group};
    return ERR_OK;
}

static enum err_code decode_items(const struct json_tape *tape, uint32_t items, uint32_t ids,
                                  const char *place, size_t weight_max, struct watch_set *out,
                                  struct err *err)
{
    const struct json_token *tokens = tape->tokens;
    uint32_t group = (uint32_t)out->group_count - 1, item = items + 1, id = ids + 1;
    size_t weight = weight_of(&out->groups[group]);

    if (weight > WATCH_HITS_MAX) {
        err_limit(err, ERR_BAD_INPUT, WATCH_HITS_MAX, (double)weight,
                  "hits_max is %zu, in a watch it is at most %d", weight, WATCH_HITS_MAX);
        return err_at(err, "%s/hits_max", place);
    }
    out->groups[group].weight = weight;
    out->weight += weight * tokens[items].count;
    if (out->weight > weight_max)
        return err_limit_at(err, ERR_TOO_MANY_ITEMS, place, (double)weight_max, (double)out->weight,
                            "watches may have %zu items more, this has %zu", weight_max,
                            out->weight);
    for (uint32_t i = 0; i < tokens[items].count; i++) {
        char text[WATCH_ID_BYTES];

        if (watch_id_decode(tape, id, text, err))
            return err_at(err, "%s/ids/%u", place, i);
        if (tokens[item].kind == JSON_OBJECT && json_tape_find(tape, item, "trace")) {
            err_set(err, ERR_BAD_INPUT, "a trace explains a ray once, it cannot be watched");
            return err_at(err, "%s/%s/%u/trace", place, out->groups[group].member, i);
        }
        if (add_item(tape, group, item, text, out, err))
            return err->code;
        item = tokens[item].next;
        id = tokens[id].next;
    }
    out->groups[group].items = tokens[items].count;
    return ERR_OK;
}

enum err_code watch_set_decode(struct call *call, uint32_t object, const char *place,
                               size_t weight_max, struct watch_set *out, struct err *err)
{
    *out = (struct watch_set){0};
    out->groups = calloc(sizeof kinds / sizeof *kinds, sizeof *out->groups);
    if (!out->groups)
        return err_set(err, ERR_NO_MEMORY, "no memory for a watch");
    for (int kind = 0; watch_kinds[kind]; kind++) {
        uint32_t value = json_tape_find(&call->tape, object, watch_kinds[kind]), items, ids;
        char at[64];

        if (value == 0)
            continue;
        snprintf(at, sizeof at, "%s/%s", place, watch_kinds[kind]);
        if (decode_group(call, value, at, kind, &out->groups[out->group_count++], &items, &ids,
                         err) ||
            decode_items(&call->tape, items, ids, at, weight_max, out, err))
            return err->code;
    }
    return ERR_OK;
}

/* ---- ask ------------------------------------------------------------------------------------- */

static int by_group(const void *left, const void *right, void *context)
{
    const struct watch_set *set = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    uint32_t group_a = set->items[a].group, group_b = set->items[b].group;

    return group_a != group_b ? (group_a > group_b) - (group_a < group_b) : (a > b) - (a < b);
}

/* The end of a JSON value of an array that was written here. */
static const char *end_of_value(const char *at)
{
    int depth = 0;

    for (;; at++) {
        if (*at == '"') {
            for (at++; *at != '"'; at++)
                at += *at == '\\';
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']') {
            if (depth == 0)
                return at;
            depth--;
        } else if (*at == ',' && depth == 0) {
            return at;
        }
    }
}

static bool keep(struct watch_answer *out, const char *text, size_t length)
{
    static const char name[] = "\"answer\":";

    out->length = sizeof name - 1 + length;
    out->text = malloc(out->length + 1);
    if (!out->text)
        return false;
    memcpy(out->text, name, sizeof name - 1);
    memcpy(out->text + sizeof name - 1, text, length);
    out->text[out->length] = '\0';
    return true;
}

/* Cuts the results of a call into its items' answers. */
static bool cut(const char *answer, struct watch_answer *out, size_t count)
{
    static const char begin[] = "\"results\":[";
    const char *at = strstr(answer, begin);

    if (!at)
        return false;
    at += sizeof begin - 1;
    for (size_t i = 0; i < count; i++) {
        const char *end = end_of_value(at);

        if (!keep(&out[i], at, (size_t)(end - at)))
            return false;
        at = end + 1;
    }
    return true;
}

/* The error as the answer of all items. */
static bool cut_error(const struct err *error, struct watch_answer *out, size_t count)
{
    struct json_buffer buffer = {.size_max = 8192};
    struct json_writer w;
    bool is_kept;

    json_init(&w, json_sink_of_buffer(&buffer));
    json_begin_object(&w);
    json_put_integer(&w, "status", (uint64_t)err_http_status(error->code));
    json_put_string(&w, "code", err_word(error->code));
    json_put_string(&w, "detail", error->msg);
    json_end_object(&w);
    is_kept = json_finish(&w);
    for (size_t i = 0; i < count && is_kept; i++) {
        struct text text = {0};

        add(&text, "null,\"problem\":", 15);
        add(&text, buffer.at, buffer.length);
        is_kept = !text.is_failed && keep(&out[i], text.at, text.length);
        free(text.at);
    }
    free(buffer.at);
    return is_kept;
}

/* Asks `count` items of one group; the answer is in *out, which the caller frees. */
static enum err_code ask_group(struct api *api, const struct world_snapshot *snapshot,
                               const struct locale *locale, const struct watch_set *set,
                               const uint32_t *which, size_t count, struct json_buffer *out,
                               struct err *err)
{
    const struct watch_group *group = &set->groups[set->items[*which].group];
    struct call call = {.api = api, .snapshot = snapshot, .locale = locale};
    struct text body = {0};

    err->code = ERR_OK;
    add(&body, "{\"", 2);
    add(&body, group->member, strlen(group->member));
    add(&body, "\":[", 3);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            add(&body, ",", 1);
        add(&body, set->items[which[i]].text, strlen(set->items[which[i]].text));
    }
    add(&body, "]", 1);
    add(&body, group->options, strlen(group->options));
    add(&body, "}", 1);
    call.body = (struct span){body.at, body.length};
    call.media_type = (struct span){"application/json", 16};
    json_init(&call.out, json_sink_of_buffer(out));
    if (body.is_failed)
        err_set(err, ERR_NO_MEMORY, "no memory to ask a watch");
    else if (kinds[group->kind].ask(&call, err) == ERR_OK &&
             (!json_finish(&call.out) ||
              !array_reserve((void **)&out->at, &out->size, out->length + 1, 1)))
        err_set(err, ERR_NO_MEMORY, "no memory for the answers of a watch");
    if (err->code == ERR_OK)
        out->at[out->length] = '\0';
    call_close(&call);
    free(body.at);
    return err->code;
}

/* The pointer of an item that is number `first` and more of its body, in the body of `place`. */
static enum err_code place_error(const struct watch_group *group, size_t first, const char *place,
                                 struct err *err)
{
    char rest[sizeof err->pointer], member[32];
    unsigned number;
    int used = 0;

    snprintf(rest, sizeof rest, "%s", err->pointer);
    if (sscanf(rest, "/%31[a-z]/%u%n", member, &number, &used) == 2 &&
        strcmp(member, group->member) == 0)
        return err_at(err, "%s/%s/%s/%zu%s", place, watch_kinds[group->kind], member,
                      first + number, rest + used);
    return err_at(err, "%s/%s%s", place, watch_kinds[group->kind], rest);
}

enum err_code watch_set_ask(struct api *api, const struct world_snapshot *snapshot,
                            const struct locale *locale, const struct watch_set *set,
                            uint32_t *which, size_t count, struct watch_answer *answers,
                            const char *place, struct err *err, bool *is_passing)
{
    size_t most = api_limits(api)->items_max, first_of_group = 0;
    struct err local = {.code = ERR_OK};

    memset(answers, 0, count * sizeof *answers);
    most = most < CHUNK_ITEMS ? most : CHUNK_ITEMS;
    if (count > 1)
        qsort_r(which, count, sizeof *which, by_group, (void *)set);
    for (size_t i = 0, n; i < count; i += n) {
        struct json_buffer out = {.size_max = ANSWER_BYTES_MAX};
        uint32_t group = set->items[which[i]].group;
        bool is_kept;

        if (i > 0 && group != set->items[which[i - 1]].group)
            first_of_group = i;
        for (n = 1; n < most && i + n < count && set->items[which[i + n]].group == group;)
            n++;
        if (ask_group(api, snapshot, locale, set, which + i, n, &out, &local) && err) {
            free(out.at);
            *err = local;
            return place_error(&set->groups[group], i - first_of_group, place, err);
        }
        is_kept = local.code ? cut_error(&local, answers + i, n) : cut(out.at, answers + i, n);
        if (is_passing && (local.code == ERR_BUSY || local.code == ERR_NO_MEMORY))
            *is_passing = true;
        free(out.at);
        if (!is_kept)
            return err ? err_set(err, ERR_NO_MEMORY, "no memory for the answers of a watch")
                       : ERR_NO_MEMORY;
    }
    return ERR_OK;
}

/* ---- extents --------------------------------------------------------------------------------- */

/* How far a shape {"sphere"|"capsule"|"box"} reaches, or is more than that. */
static double reach_of(const cJSON *shape)
{
    const cJSON *sphere = cJSON_GetObjectItemCaseSensitive(shape, "sphere");
    const cJSON *capsule = cJSON_GetObjectItemCaseSensitive(shape, "capsule");
    const cJSON *numbers = capsule ? capsule : cJSON_GetObjectItemCaseSensitive(shape, "box");
    const cJSON *number = NULL;
    double sum = 0;

    if (cJSON_IsNumber(sphere))
        return sphere->valuedouble;
    cJSON_ArrayForEach(number, numbers)
    {
        sum += fabs(number->valuedouble);
    }
    return sum;
}

static void numbers_at(const struct json_tape *tape, uint32_t object, const char *name,
                       size_t count, double *out)
{
    uint32_t value = object;

    if (name)
        value = json_tape_find(tape, object, name);
    if (value != 0 || !name)
        json_token_numbers(&tape->tokens[value], count, out);
}

static struct swept_box along_gravity(const struct locale *locale, struct vec3 point)
{
    return (struct swept_box){.origin = point,
                              .direction = locale_gravity(locale, point),
                              .t_min = -INFINITY,
                              .t_max = INFINITY};
}

static struct swept_box extent_of_footprint(const struct json_tape *tape,
                                            const struct locale *locale)
{
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    uint32_t point = 1;
    struct swept_box extent;

    for (uint32_t i = 0; i < tape->tokens[0].count; i++, point = tape->tokens[point].next) {
        double p[3] = {0, 0, 0};

        numbers_at(tape, point, NULL, 3, p);
        for (int axis = 0; axis < 3; axis++) {
            low[axis] = fmin(low[axis], p[axis]);
            high[axis] = fmax(high[axis], p[axis]);
        }
    }
    extent = along_gravity(locale, (struct vec3){(low[0] + high[0]) / 2, (low[1] + high[1]) / 2,
                                                 (low[2] + high[2]) / 2});
    extent.half =
        (struct vec3){(high[0] - low[0]) / 2, (high[1] - low[1]) / 2, (high[2] - low[2]) / 2};
    extent.is_everywhere = locale_space(locale).frame != MESH_CARTESIAN;
    return extent;
}

static struct swept_box extent_of_light(const cJSON *light, struct vec3 point)
{
    const cJSON *way = cJSON_GetObjectItemCaseSensitive(light, "direction");
    bool is_directional = cJSON_IsArray(way);
    double v[3] = {0, 0, 0};

    if (!is_directional)
        way = cJSON_GetObjectItemCaseSensitive(light, "position");
    for (int i = 0; i < 3; i++) {
        const cJSON *number = cJSON_GetArrayItem(way, i);

        v[i] = number ? number->valuedouble : 0;
    }
    struct vec3 to = {v[0], v[1], v[2]};

    return (struct swept_box){.origin = point,
                              .direction = is_directional ? vec3_opposite(vec3_unit(to))
                                                          : vec3_sub(to, point),
                              .t_min = 0,
                              .t_max = is_directional ? INFINITY : 1};
}

static struct swept_box extent_of(const struct watch_group *group, const struct json_tape *tape,
                                  const struct locale *locale)
{
    struct swept_box extent = {.t_max = INFINITY};
    double p[3] = {0, 0, 0}, to[3] = {0, 0, 0}, reach;
    uint32_t t_max;

    numbers_at(tape, 0, NULL, group->kind == HEIGHT ? 2 : 3, p);
    switch (group->kind) {
    case HEIGHT:
        return (struct swept_box){.origin = {p[0], p[1], 0},
                                  .direction = {0, 0, -1},
                                  .t_min = -INFINITY,
                                  .t_max = INFINITY};
    case CONTACT:
    case CONTAINS:
        return strcmp(group->member, "footprints") == 0
                   ? extent_of_footprint(tape, locale)
                   : along_gravity(locale, (struct vec3){p[0], p[1], p[2]});
    case LIT:
        return extent_of_light(cJSON_GetObjectItemCaseSensitive(group->tree, "light"),
                               (struct vec3){p[0], p[1], p[2]});
    case RAY:
        numbers_at(tape, 0, "origin", 3, &extent.origin.x);
        numbers_at(tape, 0, "direction", 3, &extent.direction.x);
        t_max = json_tape_find(tape, 0, "t_max");
        if (t_max != 0 && tape->tokens[t_max].kind == JSON_NUMBER)
            extent.t_max = tape->tokens[t_max].number;
        return extent;
    default: /* LOS, SWEEP */
        numbers_at(tape, 0, "from", 3, p);
        numbers_at(tape, 0, "to", 3, to);
        extent.origin = (struct vec3){p[0], p[1], p[2]};
        extent.direction = vec3_sub((struct vec3){to[0], to[1], to[2]}, extent.origin);
        extent.t_max = 1;
        if (group->kind == SWEEP) {
            uint32_t shape = json_tape_find(tape, 0, "shape");
            cJSON *tree = shape ? json_tape_tree(tape, shape) : NULL;

            reach = reach_of(tree ? tree : group->tree);
            cJSON_Delete(tree);
            extent.half = (struct vec3){reach, reach, reach};
        }
        return extent;
    }
}

enum err_code watch_set_extents(struct watch_set *set, const struct locale *locale, struct err *err)
{
    if (!array_reserve((void **)&set->extents, &set->extent_capacity, set->count + 1,
                       sizeof *set->extents))
        return err_set(err, ERR_NO_MEMORY, "no memory for the extents of a watch");
    for (size_t i = 0; i < set->count; i++) {
        const struct watch_item *item = &set->items[i];
        struct json_tape tape = {0};

        if (json_scan(item->text, strlen(item->text), &json_limits_default, &tape, err) == ERR_OK)
            set->extents[i] = extent_of(&set->groups[item->group], &tape, locale);
        free(tape.tokens);
        if (err->code)
            return err->code;
    }
    return ERR_OK;
}
