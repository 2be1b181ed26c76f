/*
 * POST …/edits  {"layer"?,"rect":[c0,r0,cols,rows],"op":"set|add","heights":[…]}
 * POST …/edits?rect=&op=&layer=  application/vnd.kota.f32
 * POST …/edits  {"layer"?,"brush":{"shape","center":[x,y],"radius","amount"|"slope_deg"}}
 *   ->  {"locale","revision","rect":[c0,r0,cols,rows]}
 *
 * Decoded on a worker; the writer evaluates it on the field as it is then (terrain/field/edit.h).
 */
#include "api/calls.h"

#include "api/edit_decode.h"
#include "api/encode.h"
#include "api/upload.h"
#include "api/write.h"

#include <stdlib.h>

static void encode(struct json_writer *w, const struct world_outcome *outcome,
                   const struct imported *import)
{
    (void)import;
    json_begin_object(w);
    encode_locale_members(w, outcome->locale);
    json_key(w, "rect");
    encode_rect(w, &outcome->rect);
    json_end_object(w);
}

static const char *place(const struct call *call, const struct world_change *change)
{
    if (change->edit.kind == EDIT_BRUSH)
        return "/brush";
    return json_given(call->json, "rect") ? "/rect" : "rect";
}

static const struct write_kind edit_write = {
    .change = WORLD_EDIT,
    .method = "POST",
    .below = "/edits",
    .encode = encode,
    .place = place,
};

enum err_code edits_post_answer(struct call *call, struct err *err)
{
    struct world_change change = {.layer_id = ""};
    uint64_t charge = 0;

    if (write_open(call, &edit_write, &change, err) ||
        edit_decode(call, &change.edit, change.layer_id, err))
        return err->code;
    if (change.edit.heights_m)
        charge = (uint64_t)change.edit.rect.cols * change.edit.rect.rows * sizeof(float);
    if (upload_charge(call->api, charge, err)) {
        free((void *)change.edit.heights_m);
        return err->code;
    }
    return write_submit(call, &edit_write, &change, NULL, charge, err);
}
API_HANDLER(edits_post, 1, CALL_NEEDS_NOTHING)
