/*
 * Two places A and B differ by a turn T about an axis, and a shift, if T takes the columns of A's
 * 3 × 3 part to those of B's. The turn that comes nearest follows from the sums of the columns'
 * dot and cross products across the axis (Kabsch 1976, in a plane); then it is tried on each
 * column. What is off by a millionth may be: quaternions in files are often rounded to float32, and
 * the turn is exact where the matrix of one is not.
 *
 * Of each mesh the first OWNERS_MAX places that are unlike are looked at, and the one that most
 * others are like is shared, of KINDS_MAX meshes at the most: what is tilted, mirrored or of
 * another size than those is copied.
 */
#include "formats/polygon/gltf_uses.h"

#include "base/array_reserve.h"

#include <stdlib.h>

enum { OWNERS_MAX = 16, KINDS_MAX = 1000, NONE = UINT32_MAX };

#define TURN_OFF 1e-6

enum err_code gltf_uses_add(struct gltf_uses *uses, uint32_t mesh, const struct affine *place,
                            struct err *err)
{
    if (!array_reserve((void **)&uses->at, &uses->room, uses->count + 1, sizeof *uses->at))
        return err_set(err, ERR_NO_MEMORY, "no memory for %zu nodes with meshes", uses->count);
    uses->at[uses->count] = (struct gltf_use){.place = *place,
                                              .cos = 1,
                                              .mesh = mesh,
                                              .owner = (uint32_t)uses->count,
                                              .shared = 1,
                                              .next = NONE};
    uses->count++;
    return ERR_OK;
}

void gltf_uses_free(struct gltf_uses *uses)
{
    free(uses->at);
    *uses = (struct gltf_uses){.at = NULL};
}

static struct vec3 column(const struct affine *a, int i)
{
    return (struct vec3){a->m[0][i], a->m[1][i], a->m[2][i]};
}

static bool is_same_turn(const struct affine *a, const struct affine *b)
{
    for (int row = 0; row < 3; row++)
        for (int i = 0; i < 3; i++)
            if (a->m[row][i] != b->m[row][i])
                return false;
    return true;
}

/* Is b's place a's, turned about the axis and shifted? */
static bool is_turned(const struct affine *a, const struct affine *b, struct vec3 axis,
                      double *cosine, double *sine)
{
    double c = 0, s = 0, squares = 0;

    *cosine = 1;
    *sine = 0;
    if (is_same_turn(a, b))
        return true;
    for (int i = 0; i < 3; i++) {
        struct vec3 v = column(a, i), w = column(b, i);
        struct vec3 across = vec3_sub(v, vec3_scale(axis, vec3_dot(axis, v)));

        c += vec3_dot(across, w);
        s += vec3_dot(axis, vec3_cross(v, w));
        squares += vec3_dot(v, v);
    }
    double length = hypot(c, s);

    if (!(length > 0) || !isfinite(length) || !isfinite(squares))
        return false;
    c /= length;
    s /= length;
    for (int i = 0; i < 3; i++) {
        struct vec3 v = column(a, i), along = vec3_scale(axis, vec3_dot(axis, v));
        struct vec3 turned = vec3_add(vec3_add(along, vec3_scale(vec3_sub(v, along), c)),
                                      vec3_scale(vec3_cross(axis, v), s));

        if (!(vec3_length(vec3_sub(turned, column(b, i))) <= TURN_OFF * sqrt(squares)))
            return false;
    }
    *cosine = c;
    *sine = s;
    return true;
}

/* Gives a use its owner, or makes it one; last[mesh] is the newest owner of its mesh. */
static void owner_find(struct gltf_uses *uses, size_t i, uint32_t *last, struct vec3 axis)
{
    struct gltf_use *use = &uses->at[i];
    unsigned tried = 0;

    if (!vec3_is_finite(column(&use->place, 3)))
        return;
    for (uint32_t k = last[use->mesh]; k != NONE && tried < OWNERS_MAX; tried++) {
        struct gltf_use *owner = &uses->at[k];

        if (is_turned(&owner->place, &use->place, axis, &use->cos, &use->sin)) {
            use->owner = k;
            owner->shared++;
            return;
        }
        k = owner->next;
    }
    if (tried == OWNERS_MAX)
        return;
    use->next = last[use->mesh];
    last[use->mesh] = (uint32_t)i;
}

/* The owner of each mesh that most share, the first of equals; NONE: nothing is shared. */
static void best_find(const struct gltf_uses *uses, uint32_t *best)
{
    for (size_t i = 0; i < uses->count; i++) {
        const struct gltf_use *use = &uses->at[i];
        uint32_t *of = &best[use->mesh];

        if (use->owner == i && use->shared > (*of == NONE ? 1 : uses->at[*of].shared))
            *of = (uint32_t)i;
    }
}

/* Counts what is shared; kinds above KINDS_MAX are not. */
static void uses_count(struct gltf_uses *uses, const uint32_t *of_mesh, const uint32_t *best)
{
    unsigned kinds = 0;

    for (size_t i = 0; i < uses->count; i++) {
        struct gltf_use *use = &uses->at[i];

        if (use->owner == i && (best[use->mesh] != i || ++kinds > KINDS_MAX))
            use->shared = 1;
        if (uses->at[use->owner].shared == 1)
            use->owner = (uint32_t)i;
        if (use->owner != i || use->shared > 1)
            uses->is_shared = true;
        else
            uses->copied += of_mesh[use->mesh] > 1;
    }
}

enum err_code gltf_uses_match(struct gltf_uses *uses, size_t mesh_count, struct vec3 axis,
                              struct err *err)
{
    uint32_t *last = malloc((mesh_count + 1) * sizeof *last);
    uint32_t *of_mesh = calloc(mesh_count + 1, sizeof *of_mesh);

    if (!last || !of_mesh) {
        free(last);
        free(of_mesh);
        return err_set(err, ERR_NO_MEMORY, "no memory for %zu meshes", mesh_count);
    }
    for (size_t i = 0; i < mesh_count; i++)
        last[i] = NONE;
    for (size_t i = 0; i < uses->count; i++) {
        of_mesh[uses->at[i].mesh]++;
        if (vec3_length(axis) > 0)
            owner_find(uses, i, last, axis);
    }
    for (size_t i = 0; i < mesh_count; i++)
        last[i] = NONE;
    best_find(uses, last);
    uses_count(uses, of_mesh, last);
    free(last);
    free(of_mesh);
    return err->code = ERR_OK;
}
