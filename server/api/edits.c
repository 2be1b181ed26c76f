/*
 * POST …/edits  {"layer"?,"rect":[c0,r0,cols,rows],"op":"set|add","heights":[…]}
 * POST …/edits?rect=&op=&layer=  application/vnd.kota.f32
 * POST …/edits  {"layer"?,"brush":{"shape","center":[x,y],"radius","amount"}}
 *   ->  {"locale","revision","rect":[c0,r0,cols,rows]}
 *
 * Decoded on a worker; the writer evaluates it on the field as it is then (terrain/edit.h).
 */
#include "api/calls.h"

#include "api/edit_decode.h"
#include "api/upload.h"
#include "api/write.h"

#include <stdlib.h>

enum err_code edits_post_answer(struct call *call, struct err *err)
{
    struct world_change change = {.kind = WORLD_EDIT};
    uint64_t charge = 0;

    if (write_open(call, &change, err) || edit_decode(call, &change.edit, change.layer_id, err))
        return err->code;
    if (change.edit.heights_m)
        charge = (uint64_t)change.edit.rect.cols * change.edit.rect.rows * sizeof(float);
    if (upload_charge(call->api, charge, err)) {
        free((void *)change.edit.heights_m);
        return err->code;
    }
    return write_submit(call, &change, NULL, charge, err);
}
API_HANDLER(edits_post, 1, CALL_NEEDS_NOTHING)
