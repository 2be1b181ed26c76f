/*
 * One locale, checked from outside.
 *
 * The same random points, a twentieth of the extent beyond its border on each side, are sent as a
 * batch of JSON, as a batch of float64, and some of them one by one; the answers must have the same
 * bits. Then each heightfield is fetched and the height of every point is computed here, from the
 * triangle of its cell in double precision, by docs/terrain.md. After an edit in between the
 * revision differs, and the check is done again.
 *
 * Invariant: a check that cannot be made (no terrain, a field too large, edits without end) is
 * reported and does not count as passed: its detail begins with "not checked".
 */
#include "client/check_ground.h"

#include "client/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define F64 "application/vnd.kota.f64"
#define F32 "application/vnd.kota.f32"

enum { TRIES_MAX = 3, DETAIL_BYTES = 240 };

/* Closer to an edge than this share of a cell, two right answers may differ in status. */
#define EDGE_SHARE 1e-9

/* How far an answer may be from double precision, as a share of the cell's heights. */
#define HEIGHT_SHARE 1e-6

struct locale {
    const char *id;
    double min[3], max[3];
    double revision;
    char triangulation[16];
    char frame[16]; /* of its radial layers, "" when gravity has one direction */
    cJSON *document;
};

/* A call in its forms. */
static const struct form {
    const char *call, *member;
    size_t in;  /* numbers of an item */
    size_t out; /* numbers of a binary answer; 0: one byte */
} forms[] = {{"height", "points", 2, 1},
             {"contact", "points", 3, 6},
             {"ray", "rays", 7, 4},
             {"contains", "points", 3, 0}};
enum { FORM_COUNT = sizeof(forms) / sizeof(forms[0]) };

struct heap {
    char *bytes;
    size_t length;
};

/* ---- small things ---------------------------------------------------------------------------- */

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static double next_share(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u; /* splitmix64, S. Vigna, 2015 */

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* A JSON number; NaN for null and for nothing. */
static double number_of(const cJSON *value)
{
    return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

static bool is_same(double a, double b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof(a)) == 0 || (a == 0 && b == 0);
}

static bool report(const struct check_ground *check, const char *what, const struct locale *locale,
                   bool is_good, const char *detail)
{
    struct check_result result = {.is_good = is_good};

    snprintf(result.detail, sizeof(result.detail), "%.199s", detail);
    return check->report(check->context, what, locale->id, &result);
}

static bool read_corner(const cJSON *bounds, const char *name, double out[3])
{
    for (int i = 0; i < 3; i++) {
        out[i] = number_of(cJSON_GetArrayItem(member(bounds, name), i));
        if (!isfinite(out[i]))
            return false;
    }
    return true;
}

/* One gravity a locale, so its first radial layer decides. */
static void read_frame(struct locale *out)
{
    const cJSON *layer;

    out->frame[0] = '\0';
    cJSON_ArrayForEach(layer, member(out->document, "layers"))
    {
        const char *frame = cJSON_GetStringValue(member(layer, "frame"));

        if (frame && strcmp(frame, "cartesian") != 0 && out->frame[0] == '\0')
            snprintf(out->frame, sizeof(out->frame), "%s", frame);
    }
}

/* Fetches the locale; false when it has no terrain. */
static enum err_code locale_get(const struct check_ground *check, const char *id,
                                struct locale *out, bool *has_ground, struct err *err)
{
    char path[128];
    const char *split;

    cJSON_Delete(out->document);
    *out = (struct locale){.id = id};
    snprintf(path, sizeof(path), "/v1/locales/%.64s", id);
    if (call_get(check->call, path, &out->document, err))
        return err->code;
    split = cJSON_GetStringValue(member(out->document, "triangulation"));
    snprintf(out->triangulation, sizeof(out->triangulation), "%s", split ? split : "");
    read_frame(out);
    out->revision = number_of(member(out->document, "revision"));
    if (!(out->revision >= 1))
        return err_set(err, ERR_INTERNAL, "locale %.64s has no revision", id);
    *has_ground = read_corner(member(out->document, "bounds"), "min", out->min) &&
                  read_corner(member(out->document, "bounds"), "max", out->max);
    return ERR_OK;
}

/* ---- the same question in all its forms ------------------------------------------------------ */

/* values [count][form->in] */
static void make_items(const struct form *form, const struct locale *locale, uint64_t *state,
                       size_t count, double *values)
{
    for (size_t i = 0; i < count; i++) {
        double *item = values + i * form->in;

        for (size_t k = 0; k < 3 && k < form->in; k++) {
            double size = locale->max[k] - locale->min[k];

            item[k] = locale->min[k] + size * (1.1 * next_share(state) - 0.05);
        }
        if (form->in < 7)
            continue;
        item[2] = locale->max[2] + 1;
        for (size_t k = 3; k < 5; k++)
            item[k] = next_share(state) - 0.5;
        item[5] = -0.1 - next_share(state);
        item[6] = 1e6;
    }
}

static void write_values(FILE *out, const double *values, size_t count)
{
    char text[NUMBER_TEXT_MAX];

    fputc('[', out);
    for (size_t i = 0; i < count; i++) {
        number_format(values[i], text);
        fprintf(out, i ? ",%s" : "%s", text);
    }
    fputc(']', out);
}

static cJSON *json_body(const struct form *form, const double *values, size_t count)
{
    struct heap text = {NULL, 0};
    FILE *out = open_memstream(&text.bytes, &text.length);
    cJSON *body;

    if (!out)
        return NULL;
    fprintf(out, "{\"%s\":[", form->member);
    for (size_t i = 0; i < count; i++) {
        const double *item = values + i * form->in;

        fputs(i ? "," : "", out);
        if (form->in == 7) {
            fputs("{\"origin\":", out);
            write_values(out, item, 3);
            fputs(",\"direction\":", out);
            write_values(out, item + 3, 3);
            fprintf(out, ",\"t_max\":%g}", item[6]);
        } else {
            write_values(out, item, form->in);
        }
    }
    fputs("]}", out);
    /* Raw, so that no number is written by anybody else. */
    body = fclose(out) == 0 ? cJSON_CreateRaw(text.bytes) : NULL;
    free(text.bytes);
    return body;
}

/* The value of a point in the binary form: z, or its distance from the origin or the axis. */
static double flat_point(const struct locale *locale, const cJSON *point)
{
    double x = number_of(cJSON_GetArrayItem(point, 0)), y = number_of(cJSON_GetArrayItem(point, 1)),
           z = number_of(cJSON_GetArrayItem(point, 2));
    double m = fmax(fabs(x), fmax(fabs(y), fabs(z))); /* as the daemon does it, to the bit */

    if (strcmp(locale->frame, "spherical") == 0)
        return m > 0 ? m * sqrt(x / m * (x / m) + y / m * (y / m) + z / m * (z / m)) : m;
    return strcmp(locale->frame, "cylindrical") == 0 ? hypot(x, y) : z;
}

enum { NUMBERS_MAX = 6 };

/* The place of a word among them, their number if it is none. */
static size_t place_of(const char *word, const char *const *words)
{
    size_t i = 0;

    while (words[i] && !(word && strcmp(word, words[i]) == 0))
        i++;
    return i;
}

static const char *const contact_words[] = {"ok", "below", "hole", "outside", "too_far", NULL};
static const char *const contains_words[] = {"inside", "below", "hole", "outside", NULL};
static const int contains_bits[] = {1, 0, 8, 16, 0};

/* What a JSON result would be in the binary form; returns how many. */
static size_t flat_result(const struct form *form, const struct locale *locale, const cJSON *result,
                          double out[NUMBERS_MAX])
{
    const cJSON *floor = member(result, "floor"), *ceiling = member(result, "ceiling");
    const char *status = cJSON_GetStringValue(member(result, "status"));

    if (form->in == 2) {
        out[0] = number_of(member(result, "height"));
        return 1;
    }
    if (form->out == 0) {
        out[0] = contains_bits[place_of(status, contains_words)] + (cJSON_IsTrue(floor) ? 2 : 0) +
                 (cJSON_IsTrue(ceiling) ? 4 : 0);
        return 1;
    }
    if (form->in == 7) {
        out[0] = number_of(member(result, "t"));
        if (isnan(out[0]))
            out[0] = INFINITY;
        for (int i = 0; i < 3; i++)
            out[1 + i] = number_of(cJSON_GetArrayItem(member(result, "normal"), i));
        return 4;
    }
    out[0] = flat_point(locale, member(floor, "point"));
    for (int i = 0; i < 3; i++)
        out[1 + i] = number_of(cJSON_GetArrayItem(member(floor, "normal"), i));
    out[4] = flat_point(locale, member(ceiling, "point"));
    out[5] = (double)place_of(status, contact_words);
    return 6;
}

static bool has_bits(const struct form *form, const char *bytes, size_t i, const double *want)
{
    double got;

    if (form->out == 0)
        return (double)(unsigned char)bytes[i] == want[0];
    for (size_t k = 0; k < form->out; k++) {
        memcpy(&got, bytes + (i * form->out + k) * sizeof(got), sizeof(got));
        if (!is_same(got, want[k]))
            return false;
    }
    return true;
}

/* The binary batch against the results of the JSON one; a word about the first that differs. */
static enum err_code compare_binary(const struct check_ground *check, const struct form *form,
                                    const struct locale *locale, const char *path,
                                    const double *values, const cJSON *results,
                                    char detail[DETAIL_BYTES], struct err *err)
{
    size_t width = form->out ? form->out * sizeof(double) : 1, i = 0;
    struct heap got = {NULL, 0};
    const cJSON *result;

    if (call_post_bytes(check->call, path, F64, values, check->points * form->in * sizeof(*values),
                        &got.bytes, &got.length, err))
        return err->code;
    if (got.length != check->points * width)
        snprintf(detail, DETAIL_BYTES, "the binary answer has %zu bytes, not %zu", got.length,
                 check->points * width);
    cJSON_ArrayForEach(result, results)
    {
        double want[NUMBERS_MAX];

        flat_result(form, locale, result, want);
        if (!*detail && !has_bits(form, got.bytes, i, want))
            snprintf(detail, DETAIL_BYTES, "item %zu differs between JSON and float64", i);
        i++;
    }
    free(got.bytes);
    return ERR_OK;
}

/* Some of the items one by one. */
static enum err_code compare_singles(const struct check_ground *check, const struct form *form,
                                     const struct locale *locale, const char *path,
                                     const double *values, const cJSON *results,
                                     char detail[DETAIL_BYTES], struct err *err)
{
    for (size_t i = 0; i < check->singles && i < check->points && !*detail; i++) {
        size_t at = i * (check->points / check->singles ? check->points / check->singles : 1);
        cJSON *body = json_body(form, values + at * form->in, 1), *answer = NULL;
        double one[NUMBERS_MAX], many[NUMBERS_MAX];
        size_t count;

        if (!body)
            return err_set(err, ERR_NO_MEMORY, "out of memory");
        call_post(check->call, path, body, &answer, err);
        cJSON_Delete(body);
        if (err->code)
            return err->code;
        count = flat_result(form, locale, cJSON_GetArrayItem(member(answer, "results"), 0), one);
        flat_result(form, locale, cJSON_GetArrayItem(results, (int)at), many);
        for (size_t k = 0; k < count; k++)
            if (!is_same(one[k], many[k]))
                snprintf(detail, DETAIL_BYTES, "item %zu differs when asked by itself", at);
        cJSON_Delete(answer);
    }
    return ERR_OK;
}

/* One call in all its forms. detail "" is good. */
static enum err_code compare_form(const struct check_ground *check, const struct form *form,
                                  const struct locale *locale, double *values,
                                  char detail[DETAIL_BYTES], struct err *err)
{
    uint64_t state = check->seed;
    char path[128];
    cJSON *body, *answer = NULL;
    const cJSON *results;

    *detail = '\0';
    snprintf(path, sizeof(path), "/v1/locales/%.64s/%s", locale->id, form->call);
    make_items(form, locale, &state, check->points, values);
    body = json_body(form, values, check->points);
    if (!body)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    call_post(check->call, path, body, &answer, err);
    cJSON_Delete(body);
    if (err->code)
        return err->code;
    results = member(answer, "results");
    if ((size_t)cJSON_GetArraySize(results) != check->points)
        snprintf(detail, DETAIL_BYTES, "%d results for %zu points", cJSON_GetArraySize(results),
                 check->points);
    else if (!compare_binary(check, form, locale, path, values, results, detail, err))
        compare_singles(check, form, locale, path, values, results, detail, err);
    cJSON_Delete(answer);
    return err->code;
}

/* ---- heights by hand ------------------------------------------------------------------------- */

struct field {
    const char *layer;
    size_t cols, rows;
    double spacing[2], origin[2];
    const char *triangulation;
    float *heights;
};

struct taking {
    char *bytes;
    size_t length, most;
};

static enum err_code take(void *context, const char *bytes, size_t length, struct err *err)
{
    struct taking *taking = context;

    if (length > taking->most - taking->length)
        return err_set(err, ERR_INTERNAL, "the layer is longer than its size says");
    memcpy(taking->bytes + taking->length, bytes, length);
    taking->length += length;
    return ERR_OK;
}

static enum err_code field_get(const struct check_ground *check, const struct locale *locale,
                               struct field *field, struct err *err)
{
    struct taking taking = {.most = field->cols * field->rows * sizeof(float)};
    struct call_stream stream = {.silence_s = 60, .take = take, .context = &taking};
    char path[256];

    taking.bytes = malloc(taking.most);
    field->heights = (float *)(void *)taking.bytes;
    if (!taking.bytes)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    snprintf(path, sizeof(path), "/v1/locales/%.64s/layers/%.64s?format=f32", locale->id,
             field->layer);
    if (!call_get_stream(check->call, path, F32, &stream, err) && taking.length != taking.most)
        err_set(err, ERR_INTERNAL, "layer %.64s has %zu bytes, not %zu", field->layer,
                taking.length, taking.most);
    return err->code;
}

/*
 * The height at a point by its triangle, NaN for none, and how far off an answer may be.
 * False: too near to an edge for the status to be certain.
 */
static bool height_by_hand(const struct field *field, const double at[2], double *height,
                           double *slack)
{
    double g[2], f[2], h[4], a, b, most = 0;
    size_t cell[2], counts[2] = {field->cols, field->rows};
    bool is_anti = strcmp(field->triangulation, "anti") == 0, is_low;

    *height = NAN;
    for (int i = 0; i < 2; i++) {
        double last = (double)(counts[i] - 1);

        g[i] = (at[i] - field->origin[i]) / field->spacing[i];
        if (fabs(g[i]) < EDGE_SHARE * last || fabs(g[i] - last) < EDGE_SHARE * last)
            return false;
        if (!(g[i] > 0 && g[i] < last))
            return true;
        cell[i] = (size_t)g[i];
        f[i] = g[i] - (double)cell[i];
        if (f[i] < EDGE_SHARE * last || f[i] > 1 - EDGE_SHARE * last)
            return false;
    }
    if (strcmp(field->triangulation, "alternating") == 0)
        is_anti = (cell[0] + cell[1]) % 2 == 0;
    for (size_t k = 0; k < 4; k++) {
        h[k] = (double)field->heights[(cell[1] + k / 2) * field->cols + cell[0] + k % 2];
        most = isnan(h[k]) ? most : fmax(most, fabs(h[k]));
    }
    *slack = HEIGHT_SHARE * fmax(most, 1);
    a = f[0];
    b = is_anti ? f[1] : 1 - f[1];
    is_low = a + b <= 1;
    if (fabs(a + b - 1) < EDGE_SHARE * (double)field->cols)
        return false;
    if (is_anti)
        *height = is_low ? h[0] + (h[1] - h[0]) * f[0] + (h[2] - h[0]) * f[1]
                         : h[3] + (h[2] - h[3]) * (1 - f[0]) + (h[1] - h[3]) * (1 - f[1]);
    else
        *height = is_low ? h[2] + (h[3] - h[2]) * f[0] + (h[0] - h[2]) * (1 - f[1])
                         : h[1] + (h[0] - h[1]) * (1 - f[0]) + (h[3] - h[1]) * f[1];
    return true;
}

/* The answers of the daemon against those by hand. */
static enum err_code compare_field(const struct check_ground *check, const struct locale *locale,
                                   const struct field *field, double *values,
                                   char detail[DETAIL_BYTES], struct err *err)
{
    const struct form *form = &forms[0];
    uint64_t state = check->seed ^ 1;
    struct heap got = {NULL, 0};
    char path[256];
    size_t compared = 0;
    double worst = 0;

    snprintf(path, sizeof(path), "/v1/locales/%.64s/height?layer=%.64s", locale->id, field->layer);
    make_items(form, locale, &state, check->points, values);
    if (call_post_bytes(check->call, path, F64, values, check->points * 2 * sizeof(*values),
                        &got.bytes, &got.length, err))
        return err->code;
    if (got.length != check->points * sizeof(double))
        snprintf(detail, DETAIL_BYTES, "the answer has %zu bytes", got.length);
    for (size_t i = 0; i < check->points && !*detail; i++) {
        double want, answer, slack = 0;

        if (!height_by_hand(field, values + 2 * i, &want, &slack))
            continue;
        memcpy(&answer, got.bytes + i * sizeof(answer), sizeof(answer));
        compared++;
        if (isnan(want) != isnan(answer) || fabs(want - answer) > slack)
            snprintf(detail, DETAIL_BYTES, "layer %.64s at %.17g,%.17g: %.9g, by hand %.9g",
                     field->layer, values[2 * i], values[2 * i + 1], answer, want);
        else if (!isnan(want))
            worst = fmax(worst, fabs(want - answer));
    }
    free(got.bytes);
    if (!*detail)
        snprintf(detail, DETAIL_BYTES, "+layer %.64s: %zu heights by hand, at most %.2g m off",
                 field->layer, compared, worst);
    return ERR_OK;
}

static bool read_field(const struct locale *locale, const cJSON *layer, struct field *out)
{
    const char *kind = cJSON_GetStringValue(member(layer, "kind"));
    double cols = number_of(member(layer, "cols")), rows = number_of(member(layer, "rows"));

    *out = (struct field){.triangulation = locale->triangulation};
    out->layer = cJSON_GetStringValue(member(layer, "id"));
    if (!kind || strcmp(kind, "heightfield") != 0 || !out->layer || !(cols >= 2 && cols < 1e7) ||
        !(rows >= 2 && rows < 1e7))
        return false;
    out->cols = (size_t)cols;
    out->rows = (size_t)rows;
    for (int i = 0; i < 2; i++) {
        out->spacing[i] = number_of(cJSON_GetArrayItem(member(layer, "spacing"), i));
        out->origin[i] = number_of(cJSON_GetArrayItem(member(layer, "origin"), i));
    }
    return out->spacing[0] > 0 && out->spacing[1] > 0;
}

/* ---- one locale ------------------------------------------------------------------------------ */

/*
 * Runs one comparison, again while the revision moves under it: a form, or the layer of that index
 * by hand. False: report has ended it.
 */
static bool settled(const struct check_ground *check, const char *what, struct locale *locale,
                    const struct form *form, int layer, double *values, struct err *err)
{
    char detail[DETAIL_BYTES] = "";

    for (int i = 0; i < TRIES_MAX; i++) {
        struct field field = {.layer = NULL};
        double before = locale->revision;
        bool has_ground = false;
        struct err cause;

        detail[0] = '\0';
        err->code = ERR_OK;
        if (form) {
            compare_form(check, form, locale, values, detail, err);
        } else if (!read_field(locale,
                               cJSON_GetArrayItem(member(locale->document, "layers"), layer),
                               &field)) {
            snprintf(detail, sizeof(detail), "+not checked: layer %d went away", layer);
        } else if (!field_get(check, locale, &field, err)) {
            compare_field(check, locale, &field, values, detail, err);
        }
        free(field.heights);
        if (err->code == ERR_OK && (!*detail || *detail == '+'))
            return report(check, what, locale, true,
                          *detail ? detail + 1
                                  : "JSON, float64 and single answers are the same bits");
        cause = *err;
        if (locale_get(check, locale->id, locale, &has_ground, err) || locale->revision == before) {
            *err = cause;
            break;
        }
    }
    return report(check, what, locale, false, err->code ? err->msg : detail);
}

/*
 * Is height, without a layer, one question here? Of several heightfields it asks for the layer, and
 * each is compared by hand; polygons have heights along Z only, and ceilings have none.
 */
static bool has_one_height(const struct locale *locale)
{
    const cJSON *gravity = member(locale->document, "gravity"), *layer;
    size_t fields = 0, grounds = 0;

    cJSON_ArrayForEach(layer, member(locale->document, "layers"))
    {
        const char *role = cJSON_GetStringValue(member(layer, "role"));
        struct field field;

        fields += read_field(locale, layer, &field);
        grounds += role && strcmp(role, "ground") == 0;
    }
    if (fields > 0 || locale->frame[0] != '\0')
        return fields == 1;
    return grounds > 0 && number_of(cJSON_GetArrayItem(gravity, 0)) == 0 &&
           number_of(cJSON_GetArrayItem(gravity, 1)) == 0 &&
           number_of(cJSON_GetArrayItem(gravity, 2)) == -1;
}

static enum err_code run_forms(const struct check_ground *check, struct locale *locale,
                               double *values, struct err *err)
{
    bool goes_on = true;

    for (size_t i = 0; goes_on && i < FORM_COUNT; i++) {
        if (forms[i].in == 2 && !has_one_height(locale))
            continue;
        goes_on = settled(check, forms[i].call, locale, &forms[i], 0, values, err);
        err->code = ERR_OK;
    }
    return ERR_OK;
}

static enum err_code run_fields(const struct check_ground *check, struct locale *locale,
                                double *values, struct err *err)
{
    bool goes_on = true;

    for (int i = 0; goes_on && i < cJSON_GetArraySize(member(locale->document, "layers")); i++) {
        struct field field;
        char detail[DETAIL_BYTES];

        if (!read_field(locale, cJSON_GetArrayItem(member(locale->document, "layers"), i), &field))
            continue;
        if (field.cols > check->samples_max / field.rows) {
            snprintf(detail, sizeof(detail),
                     "not checked: layer %.64s has %zu x %zu samples, more than %zu", field.layer,
                     field.cols, field.rows, check->samples_max);
            goes_on = report(check, "by hand", locale, true, detail);
        } else {
            goes_on = settled(check, "by hand", locale, NULL, i, values, err);
        }
        err->code = ERR_OK;
    }
    return ERR_OK;
}

enum err_code check_ground_run(const struct check_ground *check, const char *id, struct err *err)
{
    struct locale locale = {.id = id};
    double *values = malloc(check->points * 7 * sizeof(*values));
    bool has_ground = false;

    if (!values)
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    if (locale_get(check, id, &locale, &has_ground, err)) {
        report(check, "locale", &locale, false, err->msg);
        err->code = ERR_OK;
    } else if (!has_ground) {
        report(check, "locale", &locale, true, "not checked: it has no terrain");
    } else {
        run_forms(check, &locale, values, err);
        run_fields(check, &locale, values, err);
    }
    cJSON_Delete(locale.document);
    free(values);
    return err->code;
}
