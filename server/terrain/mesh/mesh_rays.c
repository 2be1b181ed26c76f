/*
 * The trees that rays walk through a mesh (ray_tree.h), of cartesian meshes.
 *
 * One is made with the mesh, of all its polygons. An edit must not pay for that: it copies the tree
 * with the numbers that its polygons have now, and those that are gone become empty places. What
 * was added since is in a second tree, which each edit makes again, and rays walk one after the
 * other. When the second has grown, or half of the first is gone, one is made of all. Of equal
 * polygons the trees have the first (mesh_same.c).
 *
 * Only a mesh that no ray is asked of, and whose grid has all floors, may be without (light/).
 */
#include "terrain/mesh/mesh_contact.h"

enum { MORE_LEAST = 1024, MORE_SHARE = 8 };

struct ray_tree_polygons mesh_ray_polygons(const struct mesh *mesh, size_t count)
{
    return (struct ray_tree_polygons){
        .points = mesh->points,
        .corners = mesh->corners,
        .firsts = mesh->firsts,
        .stride = sizeof *mesh->firsts,
        .records = mesh->polygons,
        .record_bytes = sizeof *mesh->polygons,
        .count = count,
        .slack = mesh->header->slack,
        .same = mesh->same,
    };
}

static struct mesh_ray_frame frame_of(const struct mesh *mesh)
{
    const struct mesh_header *h = mesh->header;
    double centre[3] = {h->centre.x, h->centre.y, h->centre.z};
    struct mesh_ray_frame frame = {.column = {{0}}};

    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++)
            frame.column[i][k] = h->rotation[3 * k + i];
        for (int k = 0; k < 4; k++)
            frame.centre[i][k] = centre[i];
    }
    return frame;
}

enum err_code mesh_rays_make(struct mesh *mesh, const struct mesh_making *making, struct err *err)
{
    uint64_t count = mesh->header->count[MESH_POLYGONS];
    struct ray_tree_polygons polygons = mesh_ray_polygons(mesh, count);

    polygons.pace = making->pace;
    polygons.crew = making->crew;
    mesh_rays_free(&mesh->rays);
    mesh->rays.frame = frame_of(mesh);
    if (ray_tree_build(&polygons, 0, &mesh->rays.first, err))
        return err->code;
    mesh->rays.split = (uint32_t)count;
    mesh->rays.is_whole = true;
    return err->code = ERR_OK;
}

enum err_code mesh_structures_make(struct mesh *mesh, const struct mesh_making *making,
                                   bool without_rays, struct err *err)
{
    if (pace_step(making->pace, PACE_UNITS, err) || floor_grid_make(mesh, making, err) ||
        pace_step(making->pace, PACE_UNITS, err))
        return err->code;
    if (!without_rays || mesh->grid.side == 0)
        mesh_rays_make(mesh, making, err);
    return err->code;
}

/* How many of the first tree's polygons stay. */
static uint32_t split_of(const struct mesh *old, const uint32_t *map)
{
    uint32_t split = old->rays.split;

    while (map && split > 0 && map[split - 1] == UINT32_MAX)
        split--;
    return map && split > 0 ? map[split - 1] + 1 : split;
}

enum err_code mesh_rays_edit(struct mesh *mesh, const struct mesh *old, const uint32_t *map,
                             const uint32_t *moved, const struct mesh_making *making,
                             struct err *err)
{
    uint64_t count = mesh->header->count[MESH_POLYGONS];
    uint32_t split = split_of(old, map);
    struct ray_tree_polygons polygons = mesh_ray_polygons(mesh, count);

    polygons.pace = making->pace;
    polygons.crew = making->crew;
    mesh->rays.frame = frame_of(mesh);
    if (split < old->rays.split / 2 + 1 ||
        (count - split > MORE_LEAST && count - split > split / MORE_SHARE))
        return mesh_rays_make(mesh, making, err);
    mesh->rays.split = split;
    if (ray_tree_copy(&old->rays.first, moved ? moved : map, &mesh->rays.first, err) ||
        (count > split && ray_tree_build(&polygons, split, &mesh->rays.more, err)))
        mesh_rays_free(&mesh->rays);
    return err->code;
}

void mesh_rays_free(struct mesh_rays *rays)
{
    ray_tree_free(&rays->first);
    ray_tree_free(&rays->more);
    rays->is_whole = false;
}

size_t mesh_rays_bytes(const struct mesh_rays *rays)
{
    return ray_tree_bytes(&rays->first) + ray_tree_bytes(&rays->more);
}

bool mesh_rays_validate(const struct mesh *mesh, struct err *err)
{
    const struct mesh_rays *rays = &mesh->rays;
    uint64_t count = mesh->header->count[MESH_POLYGONS];
    struct ray_tree_polygons first = mesh_ray_polygons(mesh, rays->split);
    struct ray_tree_polygons all = mesh_ray_polygons(mesh, count);

    if (rays->first.node_count == 0)
        return mesh->grid.side > 0;
    if (rays->split < count && rays->more.node_count == 0) {
        err_set(err, ERR_INTERNAL, "%llu polygons are in no tree of rays",
                (unsigned long long)(count - rays->split));
        return false;
    }
    return ray_tree_validate(&rays->first, &first, 0, err) &&
           (rays->more.node_count == 0 || ray_tree_validate(&rays->more, &all, rays->split, err));
}
