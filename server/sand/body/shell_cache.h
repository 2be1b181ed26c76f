/*
 * Shells of models that are in use or were lately, by the hash of the model's file and the radius.
 */
#ifndef KOTA_SAND_SHELL_CACHE_H
#define KOTA_SAND_SHELL_CACHE_H

#include "sand/patch/patch.h"
#include "sand/body/shell.h"
#include "world/values/models.h"

struct shell_cache;
struct shell_ref; /* a shell, counted */

struct shell_cache_stats {
    uint64_t hits, loaded, built, bytes, entries; /* loaded: from the store */
};

/*
 * bytes_max: of shells that are kept; those in use stay alive beyond it. The world is borrowed: its
 * store keeps them, too. NULL: ERR_NO_MEMORY.
 */
struct shell_cache *shell_cache_create(struct world *world, uint64_t bytes_max, struct err *err);
void shell_cache_destroy(struct shell_cache *cache); /* NULL is fine */

/*
 * The shell of a model at a radius, a reference; read from the store or built when it is not there,
 * which takes long: on a worker. Two threads that need the same at once both build it. NULL: the
 * error of shell_build.
 */
struct shell_ref *shell_cache_get(struct shell_cache *cache, const struct model *model,
                                  double radius_m, const struct polygon_limits *limits,
                                  struct err *err);
void shell_ref_drop(void *ref);

/* As a body's shape of that mass; the reference goes with it. */
void shell_ref_body(struct shell_ref *ref, double mass_kg, struct scaled_model *out);

void shell_cache_stats(struct shell_cache *cache, struct shell_cache_stats *out);

#endif
