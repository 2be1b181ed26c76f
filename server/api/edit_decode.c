/*
 * Decoding of edits.
 *
 * Problem: an edit may bring sixteen million samples; nothing of it may cost much before it is
 * clear that it can be taken, and an error that needs no field should not reach the writer.
 * Approach: rect first, its size against the limit, then the samples: of a JSON text from its tape
 * (json_tape.h), each the nearest float64 rounded to float32; an f32 body is copied and looked at
 * once.
 */
#include "api/edit_decode.h"

#include "api/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "f32 bodies are little-endian");

static const char *const edit_options[] = {"rect", "op", "layer", NULL};
static const char media_f32[] = "application/vnd.kota.f32";

/* ---- rect and op ----------------------------------------------------------------------------- */

static enum err_code at_rect(const struct call *call, struct err *err)
{
    return err_at(err, "%s", json_given(call->json, "rect") ? "/rect" : "rect");
}

static enum err_code check_rect(const struct call *call, const double *rect, struct err *err)
{
    const uint64_t most = call_limits(call)->world.edit_samples_max;
    double samples;

    for (size_t i = 0; i < 4; i++)
        if (rect[i] != floor(rect[i]))
            return err_set(err, ERR_BAD_INPUT, "rect is four whole numbers, %.17g is none",
                           rect[i]);
    if (rect[2] < 1 || rect[3] < 1)
        return err_set(err, ERR_BAD_INPUT,
                       "rect [c0,r0,cols,rows] has %.17g cols and %.17g rows, each is at least 1",
                       rect[2], rect[3]);
    samples = rect[2] * rect[3];
    if (samples > (double)most)
        return err_limit(err, ERR_TOO_LARGE, (double)most, samples,
                         "an edit changes at most %llu samples, this rect has %.17g",
                         (unsigned long long)most, samples);
    if (rect[0] < 0 || rect[1] < 0 || rect[0] + rect[2] > HEIGHTFIELD_SIDE_MAX ||
        rect[1] + rect[3] > HEIGHTFIELD_SIDE_MAX)
        return err_set(err, ERR_UNPROCESSABLE,
                       "rect [%.17g,%.17g,%.17g,%.17g] is not inside the field", rect[0], rect[1],
                       rect[2], rect[3]);
    return ERR_OK;
}

static enum err_code decode_rect(struct call *call, struct edit *edit, struct err *err)
{
    static const char *const ops[] = {"set", "add", NULL};
    bool is_given = false;
    double rect[4];
    int op = 0;

    if (option_word(call, "op", ops, &op, err) ||
        option_numbers(call, "rect", 4, rect, &is_given, err))
        return err->code;
    edit->kind = op == 0 ? EDIT_SET : EDIT_ADD;
    if (!is_given)
        return err_set_at(err, ERR_MISSING, call->json ? "/rect" : "rect",
                          "rect=c0,r0,cols,rows is missing");
    if (check_rect(call, rect, err))
        return at_rect(call, err);
    edit->rect = (struct sample_rect){(uint32_t)rect[0], (uint32_t)rect[1], (uint32_t)rect[2],
                                      (uint32_t)rect[3]};
    return ERR_OK;
}

static size_t sample_count(const struct edit *edit)
{
    return (size_t)edit->rect.cols * edit->rect.rows;
}

static enum err_code no_memory(size_t count, struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "no memory for %zu heights", count);
}

/* ---- f32 ------------------------------------------------------------------------------------- */

static enum err_code decode_f32(struct call *call, struct edit *edit, struct err *err)
{
    size_t count;
    float *heights_m;

    if (options_open_query(call, edit_options, err) || decode_rect(call, edit, err))
        return err->code;
    count = sample_count(edit);
    if (call->body.length != count * sizeof *heights_m)
        return err_limit(
            err, ERR_BAD_INPUT, (double)(count * sizeof *heights_m), (double)call->body.length,
            "the rect has %zu samples of 4 bytes, the body %zu bytes", count, call->body.length);
    heights_m = malloc(count * sizeof *heights_m);
    if (!heights_m)
        return no_memory(count, err);
    memcpy(heights_m, call->body.at, count * sizeof *heights_m);
    for (size_t i = 0; i < count; i++) {
        if (!isinf(heights_m[i]))
            continue;
        free(heights_m);
        err_set(err, ERR_BAD_INPUT, "height %zu is infinite; NaN makes a hole", i);
        return err_at(err, "/%zu", i);
    }
    edit->heights_m = heights_m;
    return ERR_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Item i of the heights. */
static enum err_code read_height(const struct json_token *token, size_t i, float *out,
                                 struct err *err)
{
    if (token->kind == JSON_NULL) {
        *out = NAN;
        return ERR_OK;
    }
    *out = token->kind == JSON_NUMBER ? (float)token->number : INFINITY;
    if (isfinite(*out))
        return ERR_OK;
    if (token->kind == JSON_NUMBER)
        err_set(err, ERR_BAD_INPUT, "the height %.17g is beyond float32", token->number);
    else
        err_set(err, ERR_BAD_INPUT, "a height is a number, or null for a hole");
    return err_at(err, "/heights/%zu", i);
}

static enum err_code read_heights(const struct call *call, struct edit *edit, struct err *err)
{
    uint32_t array = json_tape_array(&call->tape, 0, "heights"), item = array + 1;
    const struct json_token *tokens = call->tape.tokens;
    size_t count = sample_count(edit);
    float *heights_m;

    if (array == 0 && !json_member(call->json, "heights"))
        return err_set_at(err, ERR_MISSING, "/heights", "is missing: an array of %zu heights",
                          count);
    if (array == 0)
        return err_set_at(err, ERR_BAD_INPUT, "/heights",
                          "an array of heights was expected, not %s",
                          json_kind(json_member(call->json, "heights")));
    if (tokens[array].count != count)
        return err_limit_at(
            err, ERR_BAD_INPUT, "/heights", (double)count, (double)tokens[array].count,
            "heights has %u items, the rect has %zu samples", tokens[array].count, count);
    heights_m = malloc(count * sizeof *heights_m);
    if (!heights_m)
        return no_memory(count, err);
    for (size_t i = 0; i < count; i++, item = tokens[item].next) {
        if (read_height(&tokens[item], i, &heights_m[i], err)) {
            free(heights_m);
            return err->code;
        }
    }
    edit->heights_m = heights_m;
    return ERR_OK;
}

static enum err_code decode_slope(const cJSON *json, struct brush *brush, struct err *err)
{
    const cJSON *given = json_given(json, "slope_deg");
    const double least = BRUSH_SLOPE_MIN_DEG, most = BRUSH_SLOPE_MAX_DEG;

    brush->slope_deg = BRUSH_SLOPE_DEG;
    if (given && json_get_number(given, &brush->slope_deg, err))
        return err_at(err, "/brush/slope_deg");
    if (brush->slope_deg >= least && brush->slope_deg <= most)
        return ERR_OK;
    return err_limit_at(err, ERR_BAD_INPUT, "/brush/slope_deg",
                        brush->slope_deg < least ? least : most, brush->slope_deg,
                        "slope_deg is %.17g degrees, it must be %g..%g", brush->slope_deg, least,
                        most);
}

static enum err_code decode_brush(struct call *call, const cJSON *json, struct edit *edit,
                                  struct err *err)
{
    static const char *const members[] = {"shape", "center", "radius", "amount", "slope_deg", NULL};
    static const char *const shapes[] = {"crater", "raise", "flatten", "smooth", "relax", NULL};
    static const char *const others[] = {"rect", "op", "heights", NULL};
    struct brush *brush = &edit->brush;
    const cJSON *amount;
    int shape = 0;

    for (size_t i = 0; others[i]; i++) {
        bool is_query = call_query(call, others[i]) != NULL;

        if (is_query || json_given(call->json, others[i])) {
            err_set(err, ERR_BAD_INPUT, "a brush takes no %s", others[i]);
            return err_at(err, "%s%s", is_query ? "" : "/", others[i]);
        }
    }
    if (json_only_members(json, members, "/brush", err))
        return err->code;
    if (json_get_word(json_member(json, "shape"), shapes, &shape, err))
        return err_at(err, "/brush/shape");
    if (json_get_vec2(json_member(json, "center"), &brush->center, err))
        return err_at(err, "/brush/center");
    if (json_get_number(json_member(json, "radius"), &brush->radius_m, err))
        return err_at(err, "/brush/radius");
    if (!(brush->radius_m > 0))
        return err_limit_at(err, ERR_BAD_INPUT, "/brush/radius", 0, brush->radius_m,
                            "radius is %.17g m, it must be above 0", brush->radius_m);
    edit->kind = EDIT_BRUSH;
    brush->shape = (enum brush_shape)shape;
    brush->amount_m = INFINITY;
    amount = json_given(json, "amount");
    if (shape == BRUSH_RELAX ? amount : json_given(json, "slope_deg")) {
        const char *other = shape == BRUSH_RELAX ? "amount" : "slope_deg";

        err_set(err, ERR_BAD_INPUT, "%s takes no %s", shapes[shape], other);
        return err_at(err, "/brush/%s", other);
    }
    if (shape == BRUSH_RELAX)
        return decode_slope(json, brush, err);
    if ((amount || shape == BRUSH_CRATER || shape == BRUSH_RAISE) &&
        json_get_number(amount, &brush->amount_m, err))
        return err_at(err, "/brush/amount");
    if (shape != BRUSH_RAISE && brush->amount_m < 0)
        return err_limit_at(err, ERR_BAD_INPUT, "/brush/amount", 0, brush->amount_m,
                            "amount of %s is %.17g m, it must not be below 0", shapes[shape],
                            brush->amount_m);
    return ERR_OK;
}

static enum err_code decode_json(struct call *call, struct edit *edit, struct err *err)
{
    static const char *const items[] = {"heights", "brush", NULL};
    const cJSON *brush;

    if (options_open_batch(call, items, edit_options, err))
        return err->code;
    brush = json_given(call->json, "brush");
    if (brush)
        return decode_brush(call, brush, edit, err);
    return decode_rect(call, edit, err) ? err->code : read_heights(call, edit, err);
}

enum err_code edit_decode(struct call *call, struct edit *edit, char layer[WORLD_ID_MAX + 1],
                          struct err *err)
{
    bool is_f32 = span_equals(call->media_type, media_f32);

    *edit = (struct edit){.kind = EDIT_SET};
    if (!is_f32 && call->media_type.length > 0 &&
        !span_equals(call->media_type, "application/json"))
        return options_wrong_media_type(call, "application/json or application/vnd.kota.f32", err);
    if ((is_f32 ? decode_f32(call, edit, err) : decode_json(call, edit, err)) == ERR_OK &&
        option_layer(call, layer, err) != ERR_OK) {
        free((void *)edit->heights_m);
        edit->heights_m = NULL;
    }
    return err->code;
}
