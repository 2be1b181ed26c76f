/*
 * POST …/revert  {"rect"?,"layer"?,"author"?,"since"|"to_revision","conflicts"?:"keep|overwrite"}
 *   ->  {"locale","revision","rect","conflicts":[[c0,r0,cols,rows]…],"not_reverted":[revision…]}
 *
 * Read on a worker up to the request's snapshot (world/write/revert.h); the writer reads what has
 * come since and makes the edit. Where there is nothing to revert no revision is made, and the
 * answer names the one that is.
 */
#include "api/past/past.h"

#include "api/calls.h"
#include "api/encode.h"
#include "api/node.h"
#include "api/options.h"
#include "api/rect_set.h"
#include "api/upload.h"
#include "api/write.h"
#include "world/write/revert.h"

#include <stdlib.h>
#include <string.h>

static void add_run(void *context, const struct sample_rect *run)
{
    struct rect_set *set = context;
    struct sample_rect *last = set->count > 0 ? &set->rects[set->count - 1] : NULL;

    for (size_t i = set->count; i-- > 0 && set->count - i < 256;) {
        last = &set->rects[i];
        if (last->column == run->column && last->cols == run->cols &&
            last->row + last->rows == run->row) {
            last->rows++;
            return;
        }
    }
    rect_set_add(set, run);
}

static void encode(struct json_writer *w, const struct world_outcome *outcome,
                   const struct imported *import)
{
    struct rect_set *set = calloc(1, sizeof *set);
    size_t count;
    const uint64_t *left = revert_plan_left(outcome->revert, &count);

    (void)import;
    if (!set) {
        w->failed = true;
        return;
    }
    revert_plan_conflicts(outcome->revert, add_run, set);
    rect_set_finish(set);
    json_begin_object(w);
    encode_locale_members(w, outcome->locale);
    json_key(w, "rect");
    encode_rect(w, &outcome->rect);
    json_put_array(w, "conflicts");
    for (size_t i = 0; i < set->count; i++)
        encode_rect(w, &set->rects[i]);
    json_end_array(w);
    json_put_array(w, "not_reverted");
    for (size_t i = 0; i < count; i++)
        json_integer(w, left[i]);
    json_end_array(w);
    json_end_object(w);
    free(set);
}

static const struct write_kind revert_write = {
    .change = WORLD_REVERT,
    .method = "POST",
    .below = "/revert",
    .needs_locale = true,
    .encode = encode,
};

/* since or to_revision: one of the two. */
static enum err_code decode_since(struct call *call, uint64_t *out, struct err *err)
{
    bool has_since, has_to = json_given(call->json, "to_revision") != NULL;

    if (past_since(call, out, &has_since, err))
        return err->code;
    if (has_since == has_to)
        return err_set_at(err, has_to ? ERR_BAD_INPUT : ERR_MISSING, "/since",
                          "since which revision? one of since and to_revision is expected%s",
                          has_to ? ", not both" : "");
    if (has_to && option_integer(call, "to_revision", 0, INT64_MAX / 2, out, err))
        return err->code;
    if (*out <= call->locale->revision)
        return ERR_OK;
    return err_limit_at(
        err, ERR_REVISION_AHEAD, has_to ? "/to_revision" : "/since", (double)call->locale->revision,
        (double)*out, "revision %llu is in the future: locale %s is at revision %llu",
        (unsigned long long)*out, call->locale->id, (unsigned long long)call->locale->revision);
}

static enum err_code decode(struct call *call, struct revert_question *out,
                            const struct heightfield_spec **spec, struct err *err)
{
    static const char *const items[] = {"rect",        "layer",     "author", "since",
                                        "to_revision", "conflicts", NULL};
    static const char *const ways[] = {"keep", "overwrite", NULL};
    const struct layer *layer;
    int way = 0;

    if (options_open_json(call, items, NULL, err) || option_choose_field(call, &layer, err) ||
        option_rect(call, heightfield_spec(layer->field), &out->rect, &out->has_rect, err) ||
        past_author(call, out->author, &out->has_author, err) ||
        option_word(call, "conflicts", ways, &way, err) || decode_since(call, &out->since, err))
        return err->code;
    *spec = heightfield_spec(layer->field);
    memcpy(out->locale, call->locale->id, sizeof out->locale);
    memcpy(out->layer, layer->id, sizeof out->layer);
    out->names_layer = json_given(call->json, "layer") != NULL;
    out->overwrites = way == 1;
    out->samples_max = call_limits(call)->world.edit_samples_max;
    return ERR_OK;
}

/* What the plan may hold: two values and three bits of each sample. */
static uint64_t charge_of(const struct revert_question *question,
                          const struct heightfield_spec *spec)
{
    uint64_t samples = question->has_rect ? (uint64_t)question->rect.cols * question->rect.rows
                                          : (uint64_t)spec->cols * spec->rows;

    return 9 * (samples < 2 * question->samples_max ? samples : 2 * question->samples_max);
}

enum err_code revert_post_answer(struct call *call, struct err *err)
{
    struct world_change change = {.layer_id = ""};
    struct revert_question question = {.since = 0};
    const struct heightfield_spec *spec = NULL;
    bool is_answered;
    uint64_t charge;

    if (write_open(call, &revert_write, &change, err) ||
        write_repeat(call, &revert_write, &change, &is_answered, err) || is_answered)
        return err->code;
    node_catch_up(call, change.locale_id);
    if (!call->locale)
        return call_unknown_locale(call, err);
    if (decode(call, &question, &spec, err))
        return err->code;
    charge = charge_of(&question, spec);
    if (upload_charge(call->api, charge, err))
        return err->code;
    change.revert = revert_plan_create(&question, spec, err);
    if (!change.revert ||
        revert_plan_read(change.revert, call->api->world, call->locale->revision, false, err)) {
        world_drop(&change);
        upload_release(call->api, charge);
        return err->code;
    }
    return write_submit(call, &revert_write, &change, NULL, charge, err);
}
API_HANDLER(revert_post, 1, CALL_NEEDS_NOTHING)
