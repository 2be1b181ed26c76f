/*
 * `make bench`: batches of questions in JSON and in binary, decoded, asked and encoded in this
 * process by the handlers that a daemon runs.
 *
 * The peers are handlers built for this bench over the same terrain: they read with cJSON, walk by
 * child and next, ask the same function, and print a cJSON tree, or print as kota prints. The
 * binary batches' peer is the same request with the terrain work left out.
 *
 * Each work has 16 bodies in turn, so that no branch learns one of them. Rounds are interleaved and
 * the medians compared. Every answer of a peer must hold the numbers of kota's, and the bytes of an
 * answer are summed, so that nothing is lifted out of a loop. One thread.
 */
#include "api/batch.h"
#include "json/json_raw.h"
#include "api/options.h"
#include "support/bench_rows.h"
#include "support/bench_time.h"
#include "tests/support/api_call.h"
#include "tests/support/random.h"

#include <math.h>

enum { BODIES = 16, ROUNDS = 9, SIDE = 1025 };

#define ROUND_S 0.02

static uint64_t sum; /* of what was answered */

static void must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "bench_json: %s\n", what);
    exit(1);
}

/* ---- ground: `field` of the locale `bench`, 1024×1024 cells of 1 m, some octaves of hills
 * --------
 */

static float height_at(int c, int r)
{
    double h = 100;

    for (int octave = 0; octave < 6; octave++) {
        double f = ldexp(0.004, octave);

        h += ldexp(40, -octave) * (sin(f * c + octave) + cos(1.1 * f * r + 0.3 * f * c));
    }
    return (float)h;
}

static void make_ground(struct api_test *t)
{
    struct world_change change = {
        .kind = WORLD_PUT_LAYER, .locale_id = "bench", .layer_id = "field"};
    struct heightfield_spec spec = {SIDE, SIDE, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    float *heights_m = malloc((size_t)SIDE * SIDE * sizeof *heights_m);
    struct heightfield *field;

    must(heights_m != NULL, "no memory");
    for (int r = 0; r < SIDE; r++)
        for (int c = 0; c < SIDE; c++)
            heights_m[(size_t)r * SIDE + (size_t)c] = height_at(c, r);
    world_unpin(t->world, 0, t->snapshot);
    api_test_locale(t, "bench", (struct vec3){0, 0, -1}, true, TRIANGULATION_ANTI);
    field = heightfield_create(&spec, heights_m, &t->err);
    must(field != NULL, "no field");
    change.layer = layer_create_heightfield("field", field, &t->err);
    must(change.layer && world_apply(t->world, &change, &t->err) == ERR_OK, t->err.msg);
    t->snapshot = world_pin(t->world, 0);
    free(heights_m);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

struct body {
    char *bytes;
    size_t length;
};

struct work {
    const char *media_type;
    size_t count; /* items of a body */
    struct body bodies[BODIES];
};

static const char json_media[] = "application/json", f32_media[] = "application/vnd.kota.f32";

enum numbers { MILLIMETRES, SEVENTEEN_DIGITS };

static struct body points_body(struct random *random, size_t count, enum numbers numbers)
{
    const char *format = numbers == MILLIMETRES ? "%s[%.3f,%.3f]" : "%s[%.17g,%.17g]";
    size_t size = 32 + count * 48;
    struct body body = {malloc(size), 0};

    must(body.bytes != NULL, "no memory");
    body.length = (size_t)snprintf(body.bytes, size, "{\"points\":[");
    for (size_t i = 0; i < count; i++)
        body.length +=
            (size_t)snprintf(body.bytes + body.length, size - body.length, format, i > 0 ? "," : "",
                             random_in(random, 0, SIDE - 1), random_in(random, 0, SIDE - 1));
    body.length += (size_t)snprintf(body.bytes + body.length, size - body.length, "]}");
    return body;
}

static struct body rays_body(struct random *random, size_t count)
{
    size_t size = 32 + count * 200;
    struct body body = {malloc(size), 0};

    must(body.bytes != NULL, "no memory");
    body.length = (size_t)snprintf(body.bytes, size, "{\"rays\":[");
    for (size_t i = 0; i < count; i++)
        body.length += (size_t)snprintf(
            body.bytes + body.length, size - body.length,
            "%s{\"origin\":[%.17g,%.17g,%.17g],\"direction\":[%.17g,%.17g,%.17g]}",
            i > 0 ? "," : "", random_in(random, 0, SIDE - 1), random_in(random, 0, SIDE - 1),
            random_in(random, 300, 500), random_in(random, -1, 1), random_in(random, -1, 1),
            random_in(random, -1, -0.2));
    body.length += (size_t)snprintf(body.bytes + body.length, size - body.length, "]}");
    return body;
}

static struct body binary_body(struct random *random, size_t count)
{
    float *numbers = malloc(count * 2 * sizeof *numbers);

    must(numbers != NULL, "no memory");
    for (size_t i = 0; i < 2 * count; i++)
        numbers[i] = (float)random_in(random, 0, SIDE - 1);
    return (struct body){(char *)numbers, count * 2 * sizeof *numbers};
}

/* ---- the peers' handlers --------------------------------------------------------------------- */

static enum err_code parse(struct call *call, const char *member, const cJSON **first,
                           struct err *err)
{
    const cJSON *array;

    call->json = cJSON_ParseWithLength(call->body.at, call->body.length);
    array = cJSON_GetObjectItemCaseSensitive(call->json, member);
    if (!cJSON_IsArray(array))
        return err_set(err, ERR_BAD_INPUT, "no batch");
    *first = array->child;
    return ERR_OK;
}

static struct ground_point peer_height(struct call *call, const cJSON *point)
{
    struct layer_choice choice;
    struct ground_point ground;
    struct err err;

    must(locale_choose_ground(call->locale, NULL, &choice, &err) == ERR_OK, "no ground");
    locale_height(&choice,
                  (struct vec2){point->child->valuedouble, point->child->next->valuedouble},
                  INTERPOLATION_TRIANGLE, &ground);
    return ground;
}

/* cJSON in, cJSON out */
static enum err_code heights_by_cjson(struct call *call, struct err *err)
{
    cJSON *answer = cJSON_CreateObject(), *results;
    const cJSON *point;
    char *text;

    if (parse(call, "points", &point, err))
        return err->code;
    cJSON_AddStringToObject(answer, "locale", call->locale->id);
    cJSON_AddNumberToObject(answer, "revision", (double)call->locale->revision);
    results = cJSON_AddArrayToObject(answer, "results");
    for (; point; point = point->next) {
        struct ground_point ground = peer_height(call, point);
        cJSON *item = cJSON_CreateObject();

        cJSON_AddStringToObject(item, "status", "ok");
        cJSON_AddNumberToObject(item, "height", ground.height_m);
        cJSON_AddItemToArray(results, item);
    }
    text = cJSON_PrintUnformatted(answer);
    must(text != NULL, "no memory");
    call->out.sink.reserve(call->out.sink.to, strlen(text));
    memcpy(call->out.sink.reserve(call->out.sink.to, strlen(text)), text, strlen(text));
    call->out.sink.advance(call->out.sink.to, strlen(text));
    cJSON_free(text);
    cJSON_Delete(answer);
    return ERR_OK;
}

/* cJSON in, printed as kota prints */
static enum err_code heights_by_cjson_in(struct call *call, struct err *err)
{
    const cJSON *point;

    if (parse(call, "points", &point, err))
        return err->code;
    call_begin_results(call);
    for (; point; point = point->next) {
        struct ground_point ground = peer_height(call, point);
        char *at = json_open_room(&call->out, 128);

        at = JSON_RAW(at, "{\"status\":\"ok\",\"height\":");
        at = json_raw_number(at, ground.height_m);
        *at++ = '}';
        if (point->next)
            *at++ = ',';
        json_close_room(&call->out, at);
    }
    call_end_results(call);
    return ERR_OK;
}

static enum err_code rays_by_cjson_in(struct call *call, struct err *err)
{
    struct layer_choice choice;
    const cJSON *item;

    if (parse(call, "rays", &item, err) || locale_choose(call->locale, NULL, &choice, err))
        return err->code;
    call_begin_results(call);
    for (; item; item = item->next) {
        struct ray ray = {.t_max = INFINITY};
        struct locale_hit hit;

        must(!json_get_vec3(json_member(item, "origin"), &ray.origin, err) &&
                 !json_get_vec3(json_member(item, "direction"), &ray.direction, err),
             "no ray");
        json_begin_object(&call->out);
        json_key(&call->out, "t");
        json_number(&call->out,
                    locale_ray(&choice, &ray, RAY_CLOSEST, &hit, NULL) ? hit.at.t : NAN);
        json_end_object(&call->out);
    }
    call_end_results(call);
    return ERR_OK;
}

/* The binary request without terrain: decoded, checked and encoded. */
static enum err_code heights_left_out(struct call *call, struct err *err)
{
    static const char *const names[] = {"base", NULL};
    struct batch batch;

    if (batch_open(call, 2, 1, names, &batch, err))
        return err->code;
    for (size_t i = 0; i < batch.count; i += 64) {
        size_t count = batch.count - i < 64 ? batch.count - i : 64;
        double in[128];

        if (batch_read_many(&batch, i, count, 2, in, err))
            return err->code;
        for (size_t k = 0; k < 2 * count; k++)
            in[k] += batch.base[k & 1];
        batch_write_many(&batch, i, count, in, batch.base[2]);
    }
    batch_close(call, &batch, 1);
    return ERR_OK;
}

/* ---- measuring ------------------------------------------------------------------------------- */

struct side {
    const char *name;
    call_answer answer;
    double item_s[ROUNDS];
};

static void ask(struct api_test *t, const struct work *work, call_answer answer, size_t body)
{
    api_test_ask(t, answer, "bench", "", "", work->media_type, work->bodies[body % BODIES].bytes,
                 work->bodies[body % BODIES].length);
    must(t->err.code == ERR_OK, t->err.msg);
    sum += (unsigned char)t->out[t->out_used / 2] + t->out_used;
}

static double round_s(struct api_test *t, const struct work *work, call_answer answer)
{
    double start = bench_thread_s(), taken;
    size_t n = 0;

    do {
        for (size_t i = 0; i < BODIES; i++)
            ask(t, work, answer, n++);
        taken = bench_thread_s() - start;
    } while (taken < ROUND_S);
    return taken / (double)(n * work->count);
}

/* The numbers `key` of both answers must agree: cJSON prints 15 or 17 digits, kota the fewest. */
static void compare(struct api_test *t, const struct work *work, call_answer answer,
                    call_answer peer, const char *key)
{
    cJSON *a, *b;
    size_t n = 0;

    ask(t, work, answer, 0);
    a = cJSON_Parse(t->out);
    ask(t, work, peer, 0);
    b = cJSON_Parse(t->out);
    must(a && b, "an answer is no JSON");
    for (const cJSON *p = cJSON_GetObjectItem(a, "results")->child,
                     *q = cJSON_GetObjectItem(b, "results")->child;
         p && q; p = p->next, q = q->next, n++) {
        const cJSON *x = cJSON_GetObjectItem(p, key), *y = cJSON_GetObjectItem(q, key);

        must(x && y && x->type == y->type && fabs(x->valuedouble - y->valuedouble) < 1e-9,
             "the answers differ");
    }
    must(n == work->count, "items are missing");
    cJSON_Delete(a);
    cJSON_Delete(b);
}

static void measure(struct api_test *t, const struct work *work, struct side *sides, size_t count)
{
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < count; i++)
            sides[i].item_s[round] = round_s(t, work, sides[i].answer);
}

/* How many times `ours` is faster than `peer`, with the figures. */
static void row(const char *work, struct side *ours, struct side *peer, double asked)
{
    double a = bench_median(ours->item_s, ROUNDS), b = bench_median(peer->item_s, ROUNDS);
    char note[128];

    snprintf(note, sizeof note, "%.2f against %.2f M items/s", 1e-6 / a, 1e-6 / b);
    bench_row("Batches", work, peer->name, b / a, asked, note);
}

static void json_heights(struct api_test *t, struct random *random, size_t count,
                         enum numbers numbers, const char *name, double asked)
{
    struct work work = {json_media, count, {{0}}};
    struct side sides[] = {{"kota", height_post_answer, {0}},
                           {"cJSON in, cJSON out", heights_by_cjson, {0}},
                           {"cJSON in, kota's printer", heights_by_cjson_in, {0}}};

    for (size_t i = 0; i < BODIES; i++)
        work.bodies[i] = points_body(random, count, numbers);
    for (size_t i = 1; i < 3; i++)
        compare(t, &work, height_post_answer, sides[i].answer, "height");
    measure(t, &work, sides, 3);
    row(name, &sides[0], &sides[1], asked);
    row(name, &sides[0], &sides[2], asked);
    for (size_t i = 0; i < BODIES; i++)
        free(work.bodies[i].bytes);
}

static void json_rays(struct api_test *t, struct random *random)
{
    struct work work = {json_media, 1000, {{0}}};
    struct side sides[] = {{"kota", ray_post_answer, {0}},
                           {"cJSON in, t alone out", rays_by_cjson_in, {0}}};

    for (size_t i = 0; i < BODIES; i++)
        work.bodies[i] = rays_body(random, work.count);
    compare(t, &work, ray_post_answer, rays_by_cjson_in, "t");
    measure(t, &work, sides, 2);
    row("JSON batch, 1,000 rays, 17 digits", &sides[0], &sides[1], 0);
    for (size_t i = 0; i < BODIES; i++)
        free(work.bodies[i].bytes);
}

static void binary_heights(struct api_test *t, struct random *random, size_t count,
                           const char *name)
{
    struct work work = {f32_media, count, {{0}}};
    struct side sides[] = {{"kota", height_post_answer, {0}},
                           {"the same without terrain", heights_left_out, {0}}};

    for (size_t i = 0; i < BODIES; i++)
        work.bodies[i] = binary_body(random, count);
    measure(t, &work, sides, 2);
    row(name, &sides[0], &sides[1], 0.5);
    for (size_t i = 0; i < BODIES; i++)
        free(work.bodies[i].bytes);
}

int main(void)
{
    struct random random = {20261121};
    struct api_test t;

    api_test_open(&t);
    make_ground(&t);
    json_heights(&t, &random, 1000, SEVENTEEN_DIGITS, "JSON batch, 1,000 heights, 17 digits", 4.5);
    json_heights(&t, &random, 1000, MILLIMETRES, "JSON batch, 1,000 heights, millimetres", 4.5);
    json_heights(&t, &random, 1, SEVENTEEN_DIGITS, "JSON, 1 height, read and printed", 1);
    json_rays(&t, &random);
    binary_heights(&t, &random, 1000, "binary batch f32, 1,000 heights");
    binary_heights(&t, &random, 10000, "binary batch f32, 10,000 heights");
    api_test_close(&t);
    printf("# sum %llu\n", (unsigned long long)sum);
    return 0;
}
