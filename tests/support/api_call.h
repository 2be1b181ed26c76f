/*
 * Calls without a connection: an api over a small world in memory, and a function that puts a body
 * and a query to one of its calls and gives back what was written. For unit tests and fuzzers; all
 * static, so that a fuzzer needs no more objects than the server's.
 *
 * The world: `hills` (9×7, spacing 10, a hole, anti), `twin` (two layers `low` and `high`, main,
 * not open to the sky), `tilted` (gravity along +X), `bare` (no layer), `crossing` (as `hills`, and
 * the meshes `deck`, polygon 1 of which is a bridge at z = 30 over x 20..40, y 20..80, and `roof`,
 * a ceiling at z = 50 over the bridge), `house` (the mesh `deck` alone, placed 1000 m to the east).
 */
#ifndef KOTA_TESTS_SUPPORT_API_CALL_H
#define KOTA_TESTS_SUPPORT_API_CALL_H

#include "api/api.h"
#include "api/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { API_TEST_QUERY_BYTES = 512 };

struct api_test {
    struct api api;
    struct world *world;
    struct auth *auth;
    const struct world_snapshot *snapshot;
    char *out; /* what the last call wrote, NUL-terminated */
    size_t out_used, out_size;
    size_t out_limit; /* the sink has no memory beyond; 0: no limit */
    struct err err;   /* of the last call */
};

static inline void api_test_must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "api_call.h: %s\n", what);
    abort();
}

static inline void api_test_locale(struct api_test *t, const char *id, struct vec3 gravity,
                                   bool open_sky, enum triangulation triangulation)
{
    struct world_change change = {.kind = WORLD_PUT_LOCALE, .manifest = locale_manifest_default};

    snprintf(change.locale_id, sizeof change.locale_id, "%s", id);
    change.manifest.gravity = gravity;
    change.manifest.open_sky = open_sky;
    change.manifest.triangulation = triangulation;
    api_test_must(world_apply(t->world, &change, &t->err) == ERR_OK, t->err.msg);
}

/* 9×7 samples, spacing 10 m: base + column + 2·row, and one hole at (6, 4). */
static inline void api_test_layer(struct api_test *t, const char *id, const char *layer,
                                  float base_m)
{
    struct world_change change = {.kind = WORLD_PUT_LAYER};
    struct heightfield_spec spec = {9, 7, 0, 0, 10, 10, TRIANGULATION_ANTI, 0};
    struct heightfield *field;
    float heights_m[7 * 9];

    for (int r = 0; r < 7; r++)
        for (int c = 0; c < 9; c++)
            heights_m[r * 9 + c] = base_m + (float)c + 2 * (float)r;
    heights_m[4 * 9 + 6] = __builtin_nanf("");
    snprintf(change.locale_id, sizeof change.locale_id, "%s", id);
    snprintf(change.layer_id, sizeof change.layer_id, "%s", layer);
    field = heightfield_create(&spec, heights_m, &t->err);
    api_test_must(field != NULL, "no field");
    change.layer = layer_create_heightfield(layer, field, &t->err);
    api_test_must(change.layer != NULL, "no layer");
    api_test_must(world_apply(t->world, &change, &t->err) == ERR_OK, t->err.msg);
}

/* Polygon 0 has no area, polygon 1 is a rectangle at height z. */
static inline void api_test_deck(struct api_test *t, const char *id, const char *layer,
                                 enum layer_role role, double z)
{
    struct world_change change = {.kind = WORLD_PUT_LAYER};
    const struct vec3 vertices[] = {{20, 20, z}, {40, 20, z}, {40, 80, z}, {20, 80, z}};
    const uint32_t corners[] = {0, 1, 0, 0, 1, 2, 3}, starts[] = {0, 3, 7};
    struct polygon_set set;

    api_test_must(polygon_set_allocate(4, 2, 7, &set, &t->err) == ERR_OK, "no polygons");
    memcpy(set.vertices, vertices, sizeof vertices);
    memcpy(set.corners, corners, sizeof corners);
    memcpy(set.starts, starts, sizeof starts);
    snprintf(change.locale_id, sizeof change.locale_id, "%s", id);
    snprintf(change.layer_id, sizeof change.layer_id, "%s", layer);
    change.layer = layer_create_mesh(layer, role, &set, (struct vec3){0, 0, -1}, NULL, &t->err);
    api_test_must(change.layer != NULL, "no mesh");
    api_test_must(world_apply(t->world, &change, &t->err) == ERR_OK, t->err.msg);
}

/* `house` of the world above: placed in the world. */
static inline void api_test_house(struct api_test *t)
{
    struct world_change change = {
        .kind = WORLD_PUT_LOCALE, .locale_id = "house", .manifest = locale_manifest_default};

    change.manifest.placement.translation.x = 1000;
    api_test_must(world_apply(t->world, &change, &t->err) == ERR_OK, t->err.msg);
    api_test_deck(t, "house", "deck", LAYER_GROUND, 30);
}

static inline void api_test_open(struct api_test *t)
{
    const struct vec3 down = {0, 0, -1}, along = {1, 0, 0};
    struct api_limits limits;

    memset(t, 0, sizeof *t);
    api_limits_init(&limits);
    t->world = world_create(1, &limits.world, NULL, &t->err);
    api_test_must(t->world != NULL, "no world");
    t->auth = auth_create(NULL, false, &t->err);
    api_test_must(t->auth && api_init(&t->api, t->world, t->auth, &limits, &t->err) == ERR_OK,
                  "no api");
    api_test_locale(t, "hills", down, true, TRIANGULATION_ANTI);
    api_test_layer(t, "hills", "ground", 0);
    api_test_locale(t, "twin", down, false, TRIANGULATION_MAIN);
    api_test_layer(t, "twin", "low", 0);
    api_test_layer(t, "twin", "high", 100);
    api_test_locale(t, "tilted", along, true, TRIANGULATION_ALTERNATING);
    api_test_layer(t, "tilted", "ground", 0);
    api_test_locale(t, "bare", down, true, TRIANGULATION_ANTI);
    api_test_locale(t, "crossing", down, true, TRIANGULATION_ANTI);
    api_test_layer(t, "crossing", "ground", 0);
    api_test_deck(t, "crossing", "deck", LAYER_GROUND, 30);
    api_test_deck(t, "crossing", "roof", LAYER_CEILING, 50);
    api_test_house(t);
    t->snapshot = world_pin(t->world, 0);
}

static inline void api_test_close(struct api_test *t)
{
    world_unpin(t->world, 0, t->snapshot);
    api_finish(&t->api);
    world_destroy(t->world);
    auth_destroy(t->auth);
    free(t->out);
}

static inline char *api_test_reserve(void *to, size_t bytes)
{
    struct api_test *t = to;

    if (t->out_limit != 0 && t->out_used + bytes > t->out_limit)
        return NULL;
    if (t->out_used + bytes + 1 > t->out_size) {
        size_t size = 2 * (t->out_used + bytes + 1);
        char *grown = realloc(t->out, size);

        api_test_must(grown != NULL, "no memory");
        t->out = grown;
        t->out_size = size;
    }
    return t->out + t->out_used;
}

static inline void api_test_advance(void *to, size_t bytes)
{
    ((struct api_test *)to)->out_used += bytes;
}

/* Splits `a=b&c=d` (no escapes) over `copy`. */
static inline void api_test_query(char *copy, struct call *call)
{
    char *save = NULL;

    for (char *item = strtok_r(copy, "&", &save); item && call->query_count < CALL_QUERY_MAX;
         item = strtok_r(NULL, "&", &save)) {
        char *equals = strchr(item, '=');
        size_t length = equals ? (size_t)(equals - item) : strlen(item);

        struct span value = equals ? (struct span){equals + 1, strlen(equals + 1)}
                                   : (struct span){item + length, 0};

        call->query[call->query_count++] = (struct http_query_item){{item, length}, value};
    }
}

/*
 * Puts a question to a call of a locale; tail holds what follows the id in the path ("" for none,
 * "0/1/2" for a tile). The answer is in t->out, t->out_used; an error in t->err.
 */
static inline enum err_code api_test_ask(struct api_test *t, call_answer answer, const char *locale,
                                         const char *tail, const char *query,
                                         const char *media_type, const void *body, size_t length)
{
    char copy[API_TEST_QUERY_BYTES], parts[API_TEST_QUERY_BYTES], *save = NULL;
    struct call call = {.api = &t->api, .snapshot = t->snapshot};
    size_t n = 0;

    snprintf(copy, sizeof copy, "%s", query);
    snprintf(parts, sizeof parts, "%s", tail);
    t->out_used = 0;
    t->err = (struct err){.code = ERR_OK};
    call.locale = locale ? snapshot_locale(t->snapshot, locale) : NULL;
    call.params[n++] = (struct span){locale, locale ? strlen(locale) : 0};
    for (char *part = strtok_r(parts, "/", &save); part && n < CALL_PARAMS_MAX;
         part = strtok_r(NULL, "/", &save))
        call.params[n++] = (struct span){part, strlen(part)};
    call.body = (struct span){body, length};
    call.media_type = (struct span){media_type, strlen(media_type)};
    api_test_query(copy, &call);
    json_init(&call.out, (struct json_sink){t, api_test_reserve, api_test_advance});
    answer(&call, &t->err);
    if (!json_finish(&call.out) && t->err.code == ERR_OK)
        err_set(&t->err, ERR_NO_MEMORY, "no memory for the answer");
    call_close(&call);
    api_test_must(api_test_reserve(t, 0) != NULL || t->out_limit != 0, "no room");
    if (t->out)
        t->out[t->out_used] = '\0';
    return t->err.code;
}

#endif
