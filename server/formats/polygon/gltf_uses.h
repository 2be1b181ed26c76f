/*
 * The nodes of a glTF scene that have a mesh, in its order, and which of them have the same mesh in
 * places that differ by a shift and a turn about one axis only.
 */
#ifndef KOTA_FORMATS_GLTF_USES_H
#define KOTA_FORMATS_GLTF_USES_H

#include "formats/polygon/affine.h"
#include "formats/polygon/polygon_set.h"

struct gltf_use {
    struct affine place;
    double cos, sin;          /* the turn from the place of the owner */
    uint32_t mesh, owner;     /* number of the use whose polygons it shares; its own: none */
    uint32_t shared;          /* of an owner: uses that share its polygons, itself included */
    uint32_t next;            /* of owners of the mesh */
    uint32_t first, polygons; /* of an owner: its polygons in the set, when they are filled in */
};

struct gltf_uses {
    struct gltf_use *at;
    size_t count, room;
    uint64_t copied; /* uses of meshes that are used again, but share nothing */
    bool is_shared;  /* some share polygons */
};

/* ERR_NO_MEMORY. */
enum err_code gltf_uses_add(struct gltf_uses *uses, uint32_t mesh, const struct affine *place,
                            struct err *err);

/* Finds owners; nothing is shared about an axis of no length. ERR_NO_MEMORY. O(uses). */
enum err_code gltf_uses_match(struct gltf_uses *uses, size_t mesh_count, struct vec3 axis,
                              struct err *err);

void gltf_uses_free(struct gltf_uses *uses);

#endif
