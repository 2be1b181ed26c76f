/*
 * Which polygons of a mesh are in its columns and in its trees of rays: of equal ones the first.
 *
 * same[i] is the first polygon that is equal to polygon i, among those that came with the mesh, or
 * among those that one edit added: an edit reads no polygon that was there. When the first of
 * its kind is removed, the next one takes its place: `moved` has its number where the columns and
 * trees know the one that is gone.
 */
#include "terrain/mesh/equal_polygons.h"
#include "terrain/mesh/mesh_contact.h"

#include <stdlib.h>
#include <string.h>

static enum err_code no_memory(const struct mesh *mesh, struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "no memory to compare %llu polygons",
                   (unsigned long long)mesh->header->count[MESH_POLYGONS]);
}

/* Those before `kept` are known already, `others` of them not the first of their kind. */
static enum err_code same_finish(struct mesh *mesh, uint32_t *same, size_t kept, size_t others,
                                 struct crew *crew, struct err *err)
{
    size_t count = mesh->header->count[MESH_POLYGONS], more = 0;
    struct ray_tree_polygons polygons = mesh_ray_polygons(mesh, count);

    polygons.crew = crew;
    if (kept < count)
        more = equal_polygons_find(&polygons, kept, same);
    free(mesh->same);
    mesh->same = same;
    if (more == SIZE_MAX)
        return no_memory(mesh, err);
    if (more + others == 0) {
        free(same);
        mesh->same = NULL;
    }
    return err->code = ERR_OK;
}

enum err_code mesh_same_make(struct mesh *mesh, struct crew *crew, struct err *err)
{
    uint32_t *same = malloc(mesh->header->count[MESH_POLYGONS] * sizeof *same);

    return same ? same_finish(mesh, same, 0, 0, crew, err) : no_memory(mesh, err);
}

enum err_code mesh_same_edit(struct mesh *mesh, const struct mesh *old, const uint32_t *map,
                             uint32_t kept, uint32_t **moved, struct err *err)
{
    uint32_t old_count = (uint32_t)old->header->count[MESH_POLYGONS];
    uint32_t *same = malloc(mesh->header->count[MESH_POLYGONS] * sizeof *same);
    size_t others = 0;

    *moved = map && old->same ? malloc(old_count * sizeof **moved) : NULL;
    if (!same || (map && old->same && !*moved)) {
        free(same);
        return no_memory(mesh, err);
    }
    if (*moved)
        memcpy(*moved, map, old_count * sizeof **moved);
    for (uint32_t i = 0; i < (old->same ? old_count : kept); i++) {
        uint32_t now = map && old->same ? map[i] : i, first = old->same ? old->same[i] : i;

        if (now == UINT32_MAX)
            continue;
        if (*moved) {
            if ((*moved)[first] == UINT32_MAX)
                (*moved)[first] = now;
            first = (*moved)[first];
        }
        same[now] = first;
        others += first != now;
    }
    return same_finish(mesh, same, kept, others, NULL, err);
}

bool mesh_same_validate(const struct mesh *mesh, struct err *err)
{
    size_t count = mesh->header->count[MESH_POLYGONS];
    struct ray_tree_polygons polygons = mesh_ray_polygons(mesh, count);

    for (size_t i = 0; mesh->same && i < count; i++) {
        uint32_t first = mesh->same[i];

        if (first > i || mesh->same[first] != first || !equal_polygons_are(&polygons, first, i)) {
            err_set(err, ERR_INTERNAL, "polygon %zu is not equal to %u", i, first);
            return false;
        }
    }
    return true;
}
