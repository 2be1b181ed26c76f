/*
 * Polygons added to a mesh in place, and removed (Q: "polygons can be added at run time; a leaf
 * with too many is split").
 */
#ifndef KOTA_TERRAIN_MESH_EDIT_H
#define KOTA_TERRAIN_MESH_EDIT_H

#include "terrain/mesh/mesh.h"

/*
 * The change. A polygon's number is its index among all that were ever given to the mesh:
 * that of the file, or first_number and on for those that came later. Numbers of polygons that stay
 * never change.
 */
struct mesh_change {
    const struct polygon_soup *added; /* polygon i of it gets the number first_number + i */
    uint32_t first_number;            /* above every number in the mesh */
    const uint32_t *removed;          /* numbers, rising; those that are not there do not count */
    size_t removed_count;
    const struct polygon_soup *after; /* all polygons by their numbers, as they will be */
    struct pace *pace;                /* as of mesh_options */
    struct mesh_import *import;       /* out, of the added polygons, counted from 0; may be NULL */
};

/*
 * The mesh with polygons added and removed: another mesh, with the answers of one that is built of
 * `after`. Added polygons go to the cells that they reach into, cells that overflow are divided,
 * and all else is copied: no polygon that was there is cut, sorted or measured again.
 *
 * ERR_BAD_INPUT      as mesh_create of `added`
 * ERR_UNPROCESSABLE  no polygon would be left
 * ERR_CONFLICT       it is to be built again (mesh_create): a mesh under radial gravity or of
 *                    instances, a polygon beyond the coordinates that its roundings allow for
 * ERR_NO_MEMORY, ERR_TOO_LARGE
 * Source: Barrus & Waters 1996. O(bytes of the image) as a copy, and O(log n) for each polygon: a
 * twentieth of a build.
 */
struct mesh *mesh_edit(const struct mesh *mesh, const struct mesh_change *change, struct err *err);

/*
 * Are polygons within the coordinates that the mesh's roundings allow for? Else mesh_edit is
 * ERR_CONFLICT, and the mesh is built again, MESH_EDIT_SLACK as slack_times: spare range, so that
 * the next polygon farther out is added in place. A mesh under radial gravity: false.
 */
bool mesh_edit_fits(const struct mesh *mesh, const struct polygon_soup *added);
#define MESH_EDIT_SLACK 2

/* How many pieces each of the polygons first .. first + count - 1 has in the mesh: pieces[count].
 */
void mesh_count_pieces(const struct mesh *mesh, uint32_t first, size_t count, uint32_t *pieces);

#endif
