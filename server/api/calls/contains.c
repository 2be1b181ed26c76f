/*
 * POST …/contains  {"points":[[x,y,z]…],"layer"}
 *   ->  results: {"status":"inside|below|hole|outside","floor":bool,"ceiling":bool}
 * POST …/contains  binary: x y z  ->  one byte: bit 0 inside, bit 1 floor, bit 2 ceiling, bit 3
 * hole, bit 4 outside
 *
 * Text Q's question: a floor below and, unless the locale is open to the sky, a ceiling above.
 * Where that ceiling is missing a point is outside.
 */
#include "api/calls.h"

#include "api/batch.h"
#include "json/json_raw.h"
#include "api/options.h"

enum { BIT_FLOOR = 2, BIT_CEILING = 4 };

static const unsigned char status_bits[] = {
    [CONTAINED_INSIDE] = 1, [CONTAINED_BELOW] = 0, [CONTAINED_HOLE] = 8, [CONTAINED_OUTSIDE] = 16};

static enum err_code contains_binary(struct call *call, struct err *err)
{
    static const char *const names[] = {"layer", "base", NULL};
    struct layer_choice choice;
    struct batch batch;

    if (batch_open(call, 3, 0, names, &batch, err) || option_choose(call, &choice, err) ||
        call_check_budget_rays(call, &choice, err))
        return err->code;
    for (size_t i = 0; i < batch.count; i++) {
        bool has_floor, has_ceiling;
        enum contained contained;
        double in[3];

        if (call_check_budget(call, i, err) || batch_read(&batch, i, 3, false, in, err))
            return err->code;
        contained = locale_contains(
            &choice,
            (struct vec3){in[0] + batch.base[0], in[1] + batch.base[1], in[2] + batch.base[2]},
            &has_floor, &has_ceiling);
        batch.out[i] = (unsigned char)(status_bits[contained] | (has_floor ? BIT_FLOOR : 0) |
                                       (has_ceiling ? BIT_CEILING : 0));
    }
    batch_close(call, &batch, 0);
    return ERR_OK;
}

enum { ITEM_BYTES = 64 };

static char *encode(char *at, enum contained contained, bool has_floor, bool has_ceiling)
{
    static const char *const words[] = {"inside", "below", "hole", "outside"};

    at = JSON_RAW(at, "{\"status\":\"");
    at = json_raw_text(at, words[contained], strlen(words[contained]));
    at = JSON_RAW(at, "\",\"floor\":");
    at = json_raw_boolean(at, has_floor);
    at = JSON_RAW(at, ",\"ceiling\":");
    at = json_raw_boolean(at, has_ceiling);
    *at++ = '}';
    return at;
}

enum err_code contains_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"points", NULL};
    static const char *const names[] = {"layer", NULL};
    struct layer_choice choice;
    struct json_batch batch;

    if (batch_is_binary(call))
        return contains_binary(call, err);
    if (options_open_batch(call, items, names, err) || option_choose(call, &choice, err) ||
        option_batch(call, &json_shape_points3, &batch, err) ||
        call_check_budget_rays(call, &choice, err))
        return err->code;
    call_begin_results(call);
    for (size_t i = 0; i < batch.count; i++) {
        const double *p = batch.numbers + 3 * i;
        bool has_floor, has_ceiling;
        enum contained contained;
        char *at;

        if (call_check_budget(call, i, err))
            return err->code;
        contained =
            locale_contains(&choice, (struct vec3){p[0], p[1], p[2]}, &has_floor, &has_ceiling);
        at = call_open_item(call, i, ITEM_BYTES);
        if (!at)
            break;
        json_close_room(&call->out, encode(at, contained, has_floor, has_ceiling));
    }
    call_end_results(call);
    return ERR_OK;
}
API_HANDLER(contains_post, 1, CALL_NEEDS_GROUND)
