/*
 * Shells in the store.
 *
 * The key has all inputs of a shell: the model's content, the radius in micrometres, and the
 * version of the algorithm; so an entry is never stale, only absent. It is written by the world's
 * writer, in the same commits as edits, and read before a shell is built.
 */
#include "sand/body/shell_store.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)SHELL_HASH_BYTES == (int)STORE_HASH_BYTES, "hashes are as long in the store");

static struct store_shell key_of(const uint8_t *model_hash, double radius_m)
{
    struct store_shell key = {.version = SHELL_VERSION,
                              .radius_um = (uint32_t)lround(radius_m * 1e6)};

    memcpy(key.model, model_hash, sizeof key.model);
    return key;
}

enum err_code shell_store_load(struct store *store, const uint8_t *model_hash, double radius_m,
                               struct shell *out, struct err *err)
{
    struct store_shell key = key_of(model_hash, radius_m);
    size_t length;
    void *bytes;

    *out = (struct shell){.particles = 0};
    err->code = ERR_OK;
    if (!store || store_find_shell(store, &key, &bytes, &length, err))
        return err->code;
    if (bytes)
        shell_decode(bytes, length, model_hash, radius_m, out, err);
    free(bytes);
    return err->code;
}

enum err_code shell_store_save(struct world *world, const uint8_t *model_hash,
                               const struct shell *shell, struct err *err)
{
    struct world_change change = {.kind = WORLD_KEEP_SHELL,
                                  .shell = key_of(model_hash, shell->radius_m)};
    struct raster_bytes bytes;

    err->code = ERR_OK;
    if (!world_store(world) || shell_encode(shell, model_hash, &bytes, err))
        return err->code;
    change.shell.bytes = bytes.at;
    change.shell.length = bytes.length;
    return world_submit(world, &change, err);
}
