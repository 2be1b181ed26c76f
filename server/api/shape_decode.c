/*
 * Shapes of sweeps and moves.
 *
 * A shape has one member or parameter, named after its kind, with its sizes. Sizes have a limit
 * (SWEEP_SIZE_MAX_M): a shape may meet all triangles below it, and a call that meets many leaves
 * its loop.
 */
#include "api/shape_decode.h"

#include "api/options.h"

#define LOOP_TRIANGLES_MAX 20000 /* that items meet: about a millisecond */

static const char *const kinds[] = {"sphere", "capsule", "box", NULL};
static const size_t numbers_of[] = {1, 2, 4};

enum err_code shape_of_json(const cJSON *json, const char *place, struct shape *out,
                            struct err *err)
{
    const cJSON *given = NULL;
    double n[4];
    int kind = 0;

    if (!json)
        return err_set_at(err, ERR_MISSING, place,
                          "is missing: an object with sphere, capsule or box");
    if (json_only_members(json, kinds, place, err))
        return err->code;
    for (int i = 0, count = 0; kinds[i]; i++) {
        const cJSON *one = json_given(json, kinds[i]);

        if (one && count++ > 0)
            return err_set_at(err, ERR_BAD_INPUT, place,
                              "exactly one of sphere, capsule and box must be given");
        if (one) {
            given = one;
            kind = i;
        }
    }
    if (!given)
        return err_set_at(err, ERR_MISSING, place, "one of sphere, capsule and box must be given");
    if ((kind == SHAPE_SPHERE ? json_get_number(given, n, err)
                              : json_get_numbers(given, numbers_of[kind], n, err)) ||
        shape_set((enum shape_kind)kind, n, out, err))
        return err_at(err, "%s/%s", place, kinds[kind]);
    return ERR_OK;
}

enum err_code shape_of_query(struct call *call, struct shape *out, bool *is_given, struct err *err)
{
    *is_given = false;
    for (int i = 0; kinds[i]; i++) {
        bool has = false;
        double n[4];

        if (i == SHAPE_SPHERE ? option_number(call, kinds[i], n, &has, err)
                              : option_numbers(call, kinds[i], numbers_of[i], n, &has, err))
            return err->code;
        if (!has)
            continue;
        if (*is_given)
            err_set(err, ERR_BAD_INPUT, "exactly one of sphere, capsule and box must be given");
        if (*is_given || shape_set((enum shape_kind)i, n, out, err))
            return err_at(err, "%s", kinds[i]);
        *is_given = true;
    }
    return ERR_OK;
}

enum err_code shape_answer_items(struct call *call, shape_answer_fn *answer, void *options,
                                 size_t item_bytes, struct err *err)
{
    uint32_t token;
    size_t count;

    if (option_array(call, "items", &token, err))
        return err->code;
    count = call->tape.tokens[token].count;
    if (call_take_items(call, count, err))
        return err->code;
    call_begin_results(call);
    for (size_t i = 0; i < count; i++) {
        cJSON *json;
        char *at, *end;

        token = i == 0 ? token + 1 : call->tape.tokens[token].next;
        json = json_tape_tree(&call->tape, token);
        if (!json)
            return err_set(err, ERR_NO_MEMORY, "no memory for item %zu", i);
        at = call_open_item(call, i, item_bytes);
        if (!at) {
            cJSON_Delete(json);
            break;
        }
        end = answer(call, json, i, options, at, err);
        cJSON_Delete(json);
        if (!end)
            return err->code;
        json_close_room(&call->out, end);
    }
    call_end_results(call);
    return ERR_OK;
}

enum err_code sweep_check_cost(struct call *call, double cost, double *sum, struct err *err)
{
    *sum += cost;
    return *sum > LOOP_TRIANGLES_MAX ? call_offload(call, err) : ERR_OK;
}
