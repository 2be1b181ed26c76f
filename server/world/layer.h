/*
 * A layer: one surface of a locale, under its name. Immutable and counted, as the surface is.
 */
#ifndef KOTA_WORLD_LAYER_H
#define KOTA_WORLD_LAYER_H

#include "base/err.h"
#include "terrain/heightfield.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORLD_ID_MAX = 64 }; /* characters of [A-Za-z0-9_-] in the id of a locale or layer */

enum layer_kind { LAYER_HEIGHTFIELD };
enum layer_role { LAYER_GROUND, LAYER_CEILING };

struct layer {
    char id[WORLD_ID_MAX + 1];
    enum layer_kind kind;
    enum layer_role role;
    struct heightfield *field; /* LAYER_HEIGHTFIELD */
    uint64_t memory_bytes;
    uint32_t refs; /* atomic */
};

/* Is this an id: 1 to WORLD_ID_MAX characters of [A-Za-z0-9_-]? */
bool world_id_is_valid(const char *id, size_t length);

/* A ground layer over a heightfield; takes `field` even on error. NULL and ERR_NO_MEMORY. */
struct layer *layer_create_heightfield(const char *id, struct heightfield *field, struct err *err);

struct layer *layer_ref(struct layer *layer);
void layer_unref(struct layer *layer); /* NULL is fine */

#endif
