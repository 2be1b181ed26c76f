/*
 * kota edit: changes samples of a heightfield.
 *
 * Samples are sent as float32, their own type; a single value is repeated here, so that the daemon
 * has one form. Every edit has an Idempotency-Key of its own (call.h): when the connection breaks
 * and it is sent again, it is still done once.
 */
#include "client/batch.h"
#include "client/number.h"
#include "client/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than any daemon takes. */
#define SAMPLES_MAX 268435456.0

struct edit_options {
    const char *rect, *op, *heights;
    const char *brush, *center, *radius, *amount, *slope;
    const char *layer;
};

/* ---- rectangles --------------------------------------------------------------------------- */

/* out[count] from one value, or from a file of just as many. */
static enum err_code heights_read(const char *text, float *out, size_t count, struct err *err)
{
    double value = 0;
    bool is_hole = strcmp(text, "hole") == 0;
    FILE *file;
    size_t got;
    bool is_end;

    if (is_hole || number_exact_list(text, &value, 1, err) == ERR_OK) {
        for (size_t i = 0; i < count; i++)
            out[i] = is_hole ? __builtin_nanf("") : (float)value;
        return isinf(out[0])
                   ? err_set(err, ERR_BAD_INPUT, "--heights %.40s is beyond float32", text)
                   : ERR_OK;
    }
    file = fopen(text, "rb");
    if (!file)
        return err_set(err, ERR_BAD_INPUT,
                       "--heights '%.200s' is no number, not `hole`, and no file that can be read",
                       text);
    got = fread(out, sizeof(*out), count, file);
    is_end = fgetc(file) == EOF;
    fclose(file);
    if (got != count || !is_end)
        return err_set(err, ERR_BAD_INPUT,
                       "%.200s does not hold %zu float32: %zu bytes are wanted, row by row from "
                       "the smallest y",
                       text, count, count * sizeof(*out));
    err->code = ERR_OK;
    return ERR_OK;
}

static enum err_code rect_read(const char *text, double rect[4], struct err *err)
{
    if (number_rect(text, rect, err))
        return err->code;
    if (rect[2] * rect[3] > SAMPLES_MAX)
        return err_limit(err, ERR_BAD_INPUT, SAMPLES_MAX, rect[2] * rect[3],
                         "--rect '%.80s' has more than %.0f samples", text, SAMPLES_MAX);
    return ERR_OK;
}

static enum err_code rect_path(struct kota *kota, const struct edit_options *o,
                               const double rect[4], char path[KOTA_PATH_MAX])
{
    const char *op = o->op ? o->op : "set";
    char rest[256];

    if (strcmp(op, "set") != 0 && strcmp(op, "add") != 0)
        return err_set(&kota->err, ERR_BAD_INPUT, "--op '%.40s' is neither set nor add", op);
    snprintf(rest, sizeof(rest), "/edits?rect=%.0f,%.0f,%.0f,%.0f&op=%s%s%s", rect[0], rect[1],
             rect[2], rect[3], op, o->layer ? "&layer=" : "", o->layer ? o->layer : "");
    return kota_locale_path(kota, rest, path);
}

static enum kota_exit finish(struct kota *kota, cJSON *answer)
{
    if (!kota->err.code)
        kota_print(kota, answer);
    cJSON_Delete(answer);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

static enum kota_exit edit_rect(struct kota *kota, const struct edit_options *o)
{
    char path[KOTA_PATH_MAX];
    double rect[4];
    float *heights = NULL;
    size_t count = 0;
    cJSON *answer = NULL;
    enum kota_exit done;

    if (!o->rect || !o->heights)
        err_set(&kota->err, ERR_BAD_INPUT, "--rect and --heights belong together");
    else if (!rect_read(o->rect, rect, &kota->err) && !rect_path(kota, o, rect, path)) {
        count = (size_t)(rect[2] * rect[3]);
        heights = malloc(count * sizeof(*heights));
        if (!heights)
            err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
        else
            heights_read(o->heights, heights, count, &kota->err);
    }
    if (kota->err.code) {
        free(heights);
        return kota_misused(kota);
    }
    call_write(kota->call, "POST", path, "application/vnd.kota.f32", heights,
               count * sizeof(*heights), &answer, &kota->err);
    done = finish(kota, answer);
    free(heights);
    return done;
}

/* ---- brushes ------------------------------------------------------------------------------ */

/* {"layer"?,"brush":{"shape","center","radius","amount"?|"slope_deg"?}}; NULL: see err */
static char *brush_text(const struct edit_options *o, struct err *err)
{
    double center[2], radius, amount = 0, slope = 0;
    struct err cause;
    cJSON *body, *brush, *at;
    char *text;

    if (!o->center || !o->radius) {
        err_set(err, ERR_BAD_INPUT, "--brush needs --center X,Y and --radius R");
        return NULL;
    }
    if (number_exact_list(o->center, center, 2, &cause))
        err_set(err, ERR_BAD_INPUT, "--center %s", cause.msg);
    else if (number_exact_list(o->radius, &radius, 1, &cause))
        err_set(err, ERR_BAD_INPUT, "--radius %s", cause.msg);
    else if (o->amount && number_exact_list(o->amount, &amount, 1, &cause))
        err_set(err, ERR_BAD_INPUT, "--amount %s", cause.msg);
    else if (o->slope && number_exact_list(o->slope, &slope, 1, &cause))
        err_set(err, ERR_BAD_INPUT, "--slope %s", cause.msg);
    if (err->code)
        return NULL;
    body = cJSON_CreateObject();
    batch_add_text(body, "layer", o->layer);
    brush = cJSON_AddObjectToObject(body, "brush");
    cJSON_AddStringToObject(brush, "shape", o->brush);
    at = cJSON_CreateDoubleArray(center, 2);
    cJSON_AddItemToObject(brush, "center", at);
    cJSON_AddNumberToObject(brush, "radius", radius);
    if (o->amount)
        cJSON_AddNumberToObject(brush, "amount", amount);
    if (o->slope)
        cJSON_AddNumberToObject(brush, "slope_deg", slope);
    text = at ? cJSON_PrintUnformatted(body) : NULL;
    cJSON_Delete(body);
    if (!text)
        err_set(err, ERR_NO_MEMORY, "out of memory");
    return text;
}

static enum kota_exit edit_brush(struct kota *kota, const struct edit_options *o)
{
    char path[KOTA_PATH_MAX];
    cJSON *answer = NULL;
    char *text = NULL;
    enum kota_exit done;

    if (kota_locale_path(kota, "/edits", path) || !(text = brush_text(o, &kota->err)))
        return kota_misused(kota);
    call_write(kota->call, "POST", path, "application/json", text, strlen(text), &answer,
               &kota->err);
    done = finish(kota, answer);
    cJSON_free(text);
    return done;
}

#define OPTION(...) COMMAND_OPTION(struct edit_options, __VA_ARGS__)

static const struct kota_option edit_table[] = {
    {.help = "A rectangle of samples:"},
    OPTION(rect, "rect", "C,R,COLS,ROWS", "the first column and row, and how many"),
    OPTION(op, "op", "set|add", "the samples become these (default), or grow by these",
           .words = "set add"),
    OPTION(heights, "heights", "H",
           "one number for all, `hole`, or a file of float32, row by row\n"
           "from the smallest y, NaN for holes",
           .words = ":file"),
    {.help = "A brush:"},
    OPTION(brush, "brush", "SHAPE", "crater, raise, flatten, smooth or relax",
           .words = "crater raise flatten smooth relax"),
    OPTION(center, "center", "X,Y", "its centre in metres", .also = "at"),
    OPTION(radius, "radius", "R", "nothing changes at or beyond it"),
    OPTION(amount, "amount", "A", "metres at the centre; flatten and smooth: at most so much"),
    OPTION(slope, "slope", "DEG", "relax: the angle of repose, 34 if it is not given"),
    {.help = "Both:"},
    OPTION(layer, "layer", "LAYER", "where the locale has several heightfields", .words = ":layer"),
    {0},
};

static enum kota_exit edit_run(struct kota *kota)
{
    struct edit_options o = {0};
    bool has_rect, has_brush;
    enum kota_exit done;

    if (!kota_begin(kota, &o, 1, 1, &done))
        return done;
    has_rect = o.rect || o.op || o.heights;
    has_brush = o.brush || o.center || o.radius || o.amount || o.slope;
    if (o.layer && kota_check_id(o.layer, &kota->err))
        return kota_misused(kota);
    if (has_rect == has_brush || !(o.rect || o.brush)) {
        err_set(&kota->err, ERR_BAD_INPUT,
                "an edit is either --rect --heights [--op] or --brush --center --radius --amount");
        return kota_misused(kota);
    }
    return has_rect ? edit_rect(kota, &o) : edit_brush(kota, &o);
}

const struct kota_command command_edit = {
    .name = "edit",
    .synopsis = "ID OPTION…",
    .summary = "changes samples of a heightfield",
    .help = "Prints the revision that it made. When the connection breaks it is sent again, and\n"
            "still done once.\n",
    .options = edit_table,
    .words = {":locale", NULL},
    .examples =
        (const char *const[]){"kota edit islands --brush crater --center 1500,1500 --radius "
                              "40 --amount 12",
                              "kota edit islands --rect 10,10,4,4 --op add --heights 1.5", NULL},
    .run = edit_run,
};
