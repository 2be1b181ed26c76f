/*
 * WORLD_FIND_OP: was the change under an op_id made before? Nothing is made; the answer is the
 * first one, or none. Every write looks for its own op_id the same way, so that is in change.c.
 */
#include "world/write/kinds/kind.h"

const struct change_kind find_op_kind = {
    .source = "",
    .scope = CHANGE_OF_NOTHING,
    .make = make_nothing,
    .persist = persist_nothing,
    .encode = encode_nothing,
    .decode = decode_nothing,
    .announce = announce_nothing,
    .count = count_nothing,
};
