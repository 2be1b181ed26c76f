/*
 * WORLD_KEEP_SHELL: spheres that the sand has made of a model go into the store. No snapshot has
 * them, other daemons make their own.
 */
#include "world/write/kinds/kind.h"

static enum err_code persist(struct store *store, const struct change_result *result,
                             struct store_edit *row, struct err *err)
{
    (void)row;
    return store_put_shell(store, &result->change->shell, err);
}

const struct change_kind keep_shell_kind = {
    .source = "",
    .scope = CHANGE_OF_MODEL,
    .make = make_nothing,
    .persist = persist,
    .encode = encode_nothing,
    .decode = decode_nothing,
    .announce = announce_nothing,
    .count = count_nothing,
};
