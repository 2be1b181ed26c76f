/*
 * POST …/los  {"segments":[{"from","to"}…],"mode":"closest|all","hits_max":8,"layer"}
 *   ->  results: {"visible","fraction","point"}
 *   ->  of mode all: results: {"hits":[{"fraction","point","normal","layer",…}…]}, in order
 * GET  …/los?from=&to=&mode=&hits_max=&layer=  ->  the members of one result
 *
 * fraction runs from 0 at `from` to 1 at `to`; it and the blocking point are null where nothing
 * blocks.
 */
#include "api/calls.h"

#include "json/json_raw.h"
#include "api/encode.h"
#include "api/options.h"
#include "world/ask/all_hits.h"

enum { ITEM_BYTES = 256 };

static const char *const modes[] = {"closest", "all", NULL};

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

/* The member hits. */
static void encode_all(struct json_writer *w, const struct layer_choice *choice, struct vec3 from,
                       struct vec3 to, size_t hits_max)
{
    struct locale_hit hits[ALL_HITS_MOST];
    size_t count = locale_sight_all(choice, from, to, hits_max, hits);

    json_put_array(w, "hits");
    for (size_t i = 0; i < count; i++) {
        char *at = json_open_room(w, ENCODED_HIT_BYTES);

        if (!at)
            return;
        if (i > 0)
            *at++ = ',';
        at = JSON_RAW(at, "{\"fraction\":");
        at = json_raw_number(at, hits[i].at.t);
        at = encode_hit_place_raw(at, &hits[i]);
        *at++ = '}';
        json_close_room(w, at);
    }
    json_end_array(w);
}

static enum err_code answer_all(struct call *call, const struct layer_choice *choice,
                                const struct json_batch *batch, size_t hits_max, struct err *err)
{
    for (size_t i = 0; i < batch->count; i++) {
        const double *p = batch->numbers + 6 * i;

        if (call_check_budget(call, i, err))
            return err->code;
        json_begin_object(&call->out);
        encode_all(&call->out, choice, (struct vec3){p[0], p[1], p[2]},
                   (struct vec3){p[3], p[4], p[5]}, hits_max);
        json_end_object(&call->out);
    }
    return ERR_OK;
}

enum err_code los_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"segments", NULL};
    static const char *const names[] = {"mode", "hits_max", "layer", NULL};
    struct layer_choice choice;
    struct json_batch batch;
    size_t hits_max;
    int mode = 0;

    if (options_open_batch(call, items, names, err) ||
        option_hits(call, modes, &mode, &hits_max, err) || option_choose(call, &choice, err) ||
        option_batch(call, &json_shape_segments, &batch, err) || check_segments(&batch, err) ||
        option_hits_check(batch.count, hits_max, "/segments", err) ||
        call_check_budget_rays(call, &choice, err))
        return err->code;
    call_begin_results(call);
    if (hits_max > 0) {
        if (answer_all(call, &choice, &batch, hits_max, err))
            return err->code;
        batch.count = 0;
    }
    for (size_t i = 0; i < batch.count; i++) {
        const double *p = batch.numbers + 6 * i;
        struct locale_hit blocker;
        bool is_visible;
        char *at;

        if (call_check_budget(call, i, err))
            return err->code;
        is_visible = locale_line_of_sight(&choice, (struct vec3){p[0], p[1], p[2]},
                                          (struct vec3){p[3], p[4], p[5]}, &blocker);
        at = call_open_item(call, i, ITEM_BYTES);
        if (!at)
            break;
        json_close_room(&call->out, encode(at, is_visible, &blocker));
    }
    call_end_results(call);
    return ERR_OK;
}
API_HANDLER(los_post, 1, CALL_NEEDS_GROUND)

enum err_code los_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"from", "to", "mode", "hits_max", "layer", NULL};
    struct layer_choice choice;
    struct locale_hit blocker;
    struct vec3 from, to;
    size_t hits_max;
    int mode = 0;
    bool is_visible;
    char *comma, *at;

    if (options_open_query(call, names, err) || option_needed(call, "from", 3, &from.x, err) ||
        option_needed(call, "to", 3, &to.x, err) ||
        option_hits(call, modes, &mode, &hits_max, err) || option_choose(call, &choice, err) ||
        call_check_budget_rays(call, &choice, err))
        return err->code;
    if (check_end(from, err))
        return err_at(err, "from");
    if (check_end(to, err))
        return err_at(err, "to");
    if (hits_max > 0) {
        call_begin_answer(call);
        encode_all(&call->out, &choice, from, to, hits_max);
        json_end_object(&call->out);
        return ERR_OK;
    }
    is_visible = locale_line_of_sight(&choice, from, to, &blocker);
    comma = call_open_answer(call, ITEM_BYTES);
    if (!comma)
        return ERR_OK; /* json_finish returns the error */
    at = encode(comma, is_visible, &blocker);
    *comma = ',';
    json_close_room(&call->out, at);
    return ERR_OK;
}
API_HANDLER(los_get, 1, CALL_NEEDS_GROUND)
