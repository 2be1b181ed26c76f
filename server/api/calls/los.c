/*
 * POST …/los  {"segments":[{"from","to"}…],"layer"}  ->  results: {"visible","fraction","point"}
 * GET  …/los?from=&to=&layer=  ->  the members of one result
 *
 * fraction runs from 0 at `from` to 1 at `to`; it and the blocking point are null where nothing
 * blocks.
 */
#include "api/calls.h"

#include "json/json_raw.h"
#include "api/options.h"

enum { ITEM_BYTES = 256 };

static enum err_code check_end(struct vec3 end, struct err *err)
{
    const double p[3] = {end.x, end.y, end.z};

    for (int i = 0; i < 3; i++)
        if (!(fabs(p[i]) <= SIGHT_END_MAX))
            return err_limit(err, ERR_BAD_INPUT, SIGHT_END_MAX, p[i], "%g is beyond %g", p[i],
                             SIGHT_END_MAX);
    return ERR_OK;
}

static enum err_code check_segments(const struct json_batch *batch, struct err *err)
{
    for (size_t i = 0; i < batch->count; i++) {
        const double *p = batch->numbers + 6 * i;

        if (check_end((struct vec3){p[0], p[1], p[2]}, err))
            return err_at(err, "/segments/%zu/from", i);
        if (check_end((struct vec3){p[3], p[4], p[5]}, err))
            return err_at(err, "/segments/%zu/to", i);
    }
    return ERR_OK;
}

static char *encode(char *at, bool is_visible, const struct locale_hit *blocker)
{
    if (is_visible)
        return JSON_RAW(at, "{\"visible\":true,\"fraction\":null,\"point\":null}");
    at = JSON_RAW(at, "{\"visible\":false,\"fraction\":");
    at = json_raw_number(at, blocker->at.t);
    at = JSON_RAW(at, ",\"point\":");
    at = json_raw_vec3(at, blocker->at.point);
    *at++ = '}';
    return at;
}

enum err_code los_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"segments", NULL};
    static const char *const names[] = {"layer", NULL};
    struct layer_choice choice;
    struct json_batch batch;

    if (options_open_batch(call, items, names, err) || option_choose(call, &choice, err) ||
        option_batch(call, &json_shape_segments, &batch, err) || check_segments(&batch, err) ||
        call_check_budget_rays(call, &choice, err))
        return err->code;
    call_begin_results(call);
    for (size_t i = 0; i < batch.count; i++) {
        const double *p = batch.numbers + 6 * i;
        struct locale_hit blocker;
        bool is_visible;
        char *at;

        if (call_check_budget(call, i, err))
            return err->code;
        is_visible = locale_line_of_sight(&choice, (struct vec3){p[0], p[1], p[2]},
                                          (struct vec3){p[3], p[4], p[5]}, &blocker);
        at = json_open_room(&call->out, ITEM_BYTES);
        if (!at)
            break;
        if (i > 0)
            *at++ = ',';
        json_close_room(&call->out, encode(at, is_visible, &blocker));
    }
    call_end_results(call);
    return ERR_OK;
}
API_HANDLER(los_post, 1, CALL_NEEDS_LOCALE)

enum err_code los_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"from", "to", "layer", NULL};
    struct layer_choice choice;
    struct locale_hit blocker;
    struct vec3 from, to;
    bool is_visible;
    char *comma, *at;

    if (options_open_query(call, names, err) || option_needed(call, "from", 3, &from.x, err) ||
        option_needed(call, "to", 3, &to.x, err) || option_choose(call, &choice, err) ||
        call_check_budget_rays(call, &choice, err))
        return err->code;
    if (check_end(from, err))
        return err_at(err, "from");
    if (check_end(to, err))
        return err_at(err, "to");
    is_visible = locale_line_of_sight(&choice, from, to, &blocker);
    comma = call_open_answer(call, ITEM_BYTES);
    if (!comma)
        return ERR_OK; /* json_finish returns the error */
    at = encode(comma, is_visible, &blocker);
    *comma = ',';
    json_close_room(&call->out, at);
    return ERR_OK;
}
API_HANDLER(los_get, 1, CALL_NEEDS_LOCALE)
