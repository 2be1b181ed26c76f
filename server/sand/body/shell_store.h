/*
 * Shells in the store: between shell.h and the store's rows.
 */
#ifndef KOTA_SAND_SHELL_STORE_H
#define KOTA_SAND_SHELL_STORE_H

#include "sand/body/shell.h"
#include "world/world.h"

/*
 * The shell kept for a model (its hash, MODEL_HASH_BYTES) at a radius; *out is empty when there is
 * none, also with a store of NULL. ERR_DAMAGED: there is one that cannot be trusted; make it and
 * save it again. Reads the disk: any thread that may wait.
 */
enum err_code shell_store_load(struct store *store, const uint8_t *model_hash, double radius_m,
                               struct shell *out, struct err *err);

/*
 * Queues a shell for the store; nothing waits for it, and it is dropped when the model is gone by
 * then. Nothing in a world without a store. Errors of world_submit, ERR_NO_MEMORY: it is not kept,
 * which costs its making after a restart and nothing else. Any thread.
 */
enum err_code shell_store_save(struct world *world, const uint8_t *model_hash,
                               const struct shell *shell, struct err *err);

#endif
