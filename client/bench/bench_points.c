/*
 * Random points for a load. They are uniform over the locale's bounds, from a generator with a
 * fixed seed: two runs send the same bytes, and can be compared. Several bodies are sent in turn,
 * so that no cache answers for the terrain.
 */
#include "client/bench/bench_points.h"

#include "client/number.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED 0x9e3779b97f4a7c15u
#define ABOVE_M 10.0

static const struct {
    const char *name, *member;
    size_t numbers;
} calls[] = {{"height", "points", 2},
             {"contact", "points", 3},
             {"ray", "rays", 7},
             {"contains", "points", 3}};
enum { CALL_COUNT = sizeof(calls) / sizeof(calls[0]) };

static int find_call(const char *name)
{
    for (int i = 0; i < CALL_COUNT; i++)
        if (strcmp(calls[i].name, name) == 0)
            return i;
    return -1;
}

/* splitmix64 (S. Vigna, 2015), as a number in 0..1 */
static double next_share(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* One item: x y [z], or a ray from above straight down. out [7] */
static void next_item(size_t numbers, const double min[3], const double max[3], uint64_t *state,
                      double out[7])
{
    for (int i = 0; i < 2; i++)
        out[i] = min[i] + (max[i] - min[i]) * next_share(state);
    out[2] = max[2] + ABOVE_M;
    out[3] = out[4] = 0;
    out[5] = -1;
    out[6] = numbers == 7 ? 2 * (max[2] - min[2] + ABOVE_M) : 0;
}

static void write_list(FILE *out, const double *values, size_t count)
{
    char text[NUMBER_TEXT_MAX];

    fputc('[', out);
    for (size_t i = 0; i < count; i++) {
        number_format(values[i], text);
        fprintf(out, "%s%s", i ? "," : "", text);
    }
    fputc(']', out);
}

static void write_json_item(FILE *out, size_t numbers, const double item[7])
{
    if (numbers < 7) {
        write_list(out, item, numbers);
        return;
    }
    fputs("{\"origin\":", out);
    write_list(out, item, 3);
    fputs(",\"direction\":", out);
    write_list(out, item + 3, 3);
    fprintf(out, ",\"t_max\":%.17g}", item[6]);
}

static enum err_code make_body(struct bench_text *body, int call, const double min[3],
                               const double max[3], size_t count, bool is_binary, uint64_t *state,
                               struct err *err)
{
    char *bytes = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&bytes, &length);

    if (!out)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    if (!is_binary)
        fprintf(out, "{\"%s\":[", calls[call].member);
    for (size_t i = 0; i < count; i++) {
        double item[7];

        next_item(calls[call].numbers, min, max, state, item);
        if (is_binary) {
            fwrite(item, sizeof(double), calls[call].numbers, out);
            continue;
        }
        if (i)
            fputc(',', out);
        write_json_item(out, calls[call].numbers, item);
    }
    if (!is_binary)
        fputs("]}", out);
    if (fclose(out) != 0) {
        free(bytes);
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    }
    *body = (struct bench_text){bytes, length};
    return ERR_OK;
}

static bool read_corner(const cJSON *locale, const char *name, double out[3])
{
    const cJSON *bounds = cJSON_GetObjectItemCaseSensitive(locale, "bounds");
    const cJSON *corner = cJSON_GetObjectItemCaseSensitive(bounds, name);

    for (int i = 0; i < 3; i++) {
        const cJSON *number = cJSON_GetArrayItem(corner, i);

        if (!cJSON_IsNumber(number) || !isfinite(number->valuedouble))
            return false;
        out[i] = number->valuedouble;
    }
    return true;
}

enum err_code bench_points_make(struct bench_points *out, const cJSON *locale, const char *name,
                                size_t count, bool is_binary, struct err *err)
{
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(locale, "id"));
    int call = find_call(name);
    uint64_t state = SEED;
    double min[3], max[3];

    if (!id || call < 0)
        return err_set(err, ERR_INTERNAL, "the answer is no locale");
    if (!read_corner(locale, "min", min) || !read_corner(locale, "max", max))
        return err_set(err, ERR_UNPROCESSABLE, "locale %.64s has no terrain", id);
    snprintf(out->target, sizeof(out->target), "/v1/locales/%.64s/%s", id, name);
    out->media_type = is_binary ? "application/vnd.kota.f64" : "application/json";
    for (size_t i = 0; i < BENCH_POINTS_BODIES; i++)
        if (make_body(&out->bodies[i], call, min, max, count, is_binary, &state, err)) {
            bench_points_free(out);
            return err->code;
        }
    return ERR_OK;
}

void bench_points_free(struct bench_points *points)
{
    for (size_t i = 0; i < BENCH_POINTS_BODIES; i++) {
        free((void *)(uintptr_t)points->bodies[i].at);
        points->bodies[i] = (struct bench_text){NULL, 0};
    }
}
