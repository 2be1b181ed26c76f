/*
 * The signed distance field of a closed mesh.
 *
 * Distance: the nearest point by the tree of triangles. Along a row of samples the last distance
 * plus the spacing bounds the next one (distance grows no faster than one walks), so most of the
 * tree is left out.
 *
 * Sign: how often the surface winds around a sample, counted along the column of samples below it:
 * +1 where the column enters the mesh, -1 where it leaves. For a closed mesh that number is the
 * generalised winding number (A. Jacobson et al. 2013), but exact and whole. Plain parity (text S)
 * cannot distinguish a mesh that overlaps itself from a hollow one; normals at the nearest point
 * (Bærentzen and Aanæs 2005) need a mesh without slivers.
 *
 * Columns through edges and vertices: each row of columns (one y) is met by the edges that pass it,
 * and a triangle covers the columns from one of its two passages up to the other. A row at the y
 * of a vertex is just above it. The crossing of an edge is computed from its lower end for both of
 * its triangles. So at any column the passages of one triangle meet those of its neighbours, each
 * edge once with either sign: all crossings of a column sum to 0 for every mesh without border, at
 * any rounding, and a column can never leak. What rounding can move is the height of a crossing on
 * a steep triangle: it is held within the triangle, and a column that meets it touches its plane.
 *
 * Dropped: summing solid angles, which is right for open meshes, too, but costs all triangles for
 * each sample, and needs a threshold.
 */
#include "sand/body/sdf.h"

#include "base/array_reserve.h"
#include "base/check.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS_MAX = 64 };

/* Where the surface crosses a column of samples. */
struct crossing {
    uint32_t column; /* y * size[0] + x */
    int32_t sign;    /* +1: the mesh begins above it */
    double z;
};

struct crossings {
    struct crossing *at;
    size_t count, room;
};

double sdf_cells(const struct box3 *bounds, double spacing_m)
{
    struct vec3 size = vec3_sub(bounds->max, bounds->min);
    double extra = 2 * SDF_MARGIN + 1;

    return (ceil(size.x / spacing_m) + extra) * (ceil(size.y / spacing_m) + extra) *
           (ceil(size.z / spacing_m) + extra);
}

static enum err_code allocate(const struct triangle_mesh *mesh, const struct sdf_options *options,
                              struct sdf *out, struct err *err)
{
    struct box3 box = triangle_mesh_bounds(mesh);
    double h = options->spacing_m, cells = sdf_cells(&box, h);

    CHECK(h > 0 && options->band_m > 0 && options->threads >= 1);
    if (!(cells <= (double)options->cells_max) || options->cells_max > UINT32_MAX)
        return err_limit(err, ERR_TOO_LARGE, (double)options->cells_max, cells,
                         "a distance field of the mesh has %g samples at %g m, at most %llu are "
                         "allowed",
                         cells, h, (unsigned long long)options->cells_max);
    *out = (struct sdf){.spacing_m = h};
    out->origin = vec3_sub(box.min, (struct vec3){SDF_MARGIN * h, SDF_MARGIN * h, SDF_MARGIN * h});
    out->size[0] = (uint32_t)ceil((box.max.x - box.min.x) / h) + 2 * SDF_MARGIN + 1;
    out->size[1] = (uint32_t)ceil((box.max.y - box.min.y) / h) + 2 * SDF_MARGIN + 1;
    out->size[2] = (uint32_t)ceil((box.max.z - box.min.z) / h) + 2 * SDF_MARGIN + 1;
    out->distance_m = malloc((size_t)out->size[0] * out->size[1] * out->size[2] * sizeof(float));
    if (!out->distance_m)
        return err_set(err, ERR_NO_MEMORY, "no memory for a distance field");
    return ERR_OK;
}

/* ---- distance -------------------------------------------------------------------------------- */

struct slices {
    const struct triangle_tree *tree;
    struct sdf *sdf;
    double band_m;
    uint32_t next; /* atomic */
};

static void *fill_slices(void *context)
{
    struct slices *work = context;
    struct sdf *sdf = work->sdf;
    uint32_t z;

    while ((z = __atomic_fetch_add(&work->next, 1, __ATOMIC_RELAXED)) < sdf->size[2]) {
        float *out = sdf->distance_m + (size_t)z * sdf->size[0] * sdf->size[1];

        for (uint32_t y = 0; y < sdf->size[1]; y++) {
            double within = work->band_m;

            for (uint32_t x = 0; x < sdf->size[0]; x++) {
                struct vec3 at = {sdf->origin.x + x * sdf->spacing_m,
                                  sdf->origin.y + y * sdf->spacing_m,
                                  sdf->origin.z + z * sdf->spacing_m};
                double d = triangle_tree_nearest(work->tree, at, within, NULL);

                *out++ = (float)d;
                within = fmin(work->band_m, (d + sdf->spacing_m) * (1 + 1e-9));
            }
        }
    }
    return NULL;
}

static void fill(const struct triangle_tree *tree, const struct sdf_options *options,
                 struct sdf *sdf)
{
    struct slices work = {.tree = tree, .sdf = sdf, .band_m = options->band_m};
    pthread_t helpers[THREADS_MAX];
    uint32_t started = 0;

    while (started + 1 < options->threads && started < THREADS_MAX &&
           pthread_create(&helpers[started], NULL, fill_slices, &work) == 0)
        started++;
    fill_slices(&work);
    while (started > 0)
        pthread_join(helpers[--started], NULL);
}

/* ---- sign ------------------------------------------------------------------------------------ */

/* Where an edge passes a row of columns: +1 when it rises (in y) from a to b, 0 when it does not.
 */
struct passage {
    double x;
    int sign;
};

static struct passage edge_passage(const struct vec3 *a, const struct vec3 *b, double y)
{
    struct passage passage = {0, 1};

    if ((a->y <= y) == (b->y <= y))
        return (struct passage){0, 0};
    if (a->y > b->y) {
        const struct vec3 *swap = a;

        a = b;
        b = swap;
        passage.sign = -1;
    }
    passage.x = a->x + (y - a->y) / (b->y - a->y) * (b->x - a->x);
    return passage;
}

static double crossing_z(const struct vec3 *const v[3], double x, double y)
{
    struct vec3 u = vec3_sub(*v[1], *v[0]), w = vec3_sub(*v[2], *v[0]);
    double area = u.x * w.y - u.y * w.x, px = x - v[0]->x, py = y - v[0]->y;
    double s = (px * w.y - py * w.x) / area, t = (u.x * py - u.y * px) / area;
    double z = v[0]->z + s * u.z + t * w.z;
    double low = fmin(v[0]->z, fmin(v[1]->z, v[2]->z));
    double high = fmax(v[0]->z, fmax(v[1]->z, v[2]->z));

    return z >= low ? fmin(z, high) : low; /* NaN: no area */
}

static bool push(struct crossings *list, struct crossing crossing)
{
    if (!array_reserve((void **)&list->at, &list->room, list->count + 1, sizeof crossing))
        return false;
    list->at[list->count++] = crossing;
    return true;
}

/* The columns of a row that the triangle covers: from one passage up to the other. */
static bool cross_row(const struct sdf *sdf, const struct vec3 *const v[3], uint32_t row,
                      struct crossings *list)
{
    double h = sdf->spacing_m, y = sdf->origin.y + row * h, x, first;
    struct passage low = {INFINITY, 0}, high = {-INFINITY, 0};

    for (int i = 0; i < 3; i++) {
        struct passage passage = edge_passage(v[i], v[i == 2 ? 0 : i + 1], y);

        if (passage.sign == 0)
            continue;
        if (passage.x < low.x)
            low = passage;
        if (passage.x > high.x)
            high = passage;
    }
    first = floor((low.x - sdf->origin.x) / h) - 1;
    for (uint32_t i = first > 0 ? (uint32_t)fmin(first, sdf->size[0]) : 0; i < sdf->size[0]; i++) {
        x = sdf->origin.x + i * h;
        if (!(x < high.x))
            break;
        /* The left edge of a face that points down rises; there the mesh begins. */
        if (x >= low.x &&
            !push(list, (struct crossing){row * sdf->size[0] + i, low.sign, crossing_z(v, x, y)}))
            return false;
    }
    return true;
}

static bool cross_triangle(const struct sdf *sdf, const struct vec3 *const v[3],
                           struct crossings *list)
{
    double low = fmin(v[0]->y, fmin(v[1]->y, v[2]->y)), h = sdf->spacing_m;
    double high = fmax(v[0]->y, fmax(v[1]->y, v[2]->y));
    double first = floor((low - sdf->origin.y) / h) - 1;

    for (uint32_t row = first > 0 ? (uint32_t)fmin(first, sdf->size[1]) : 0; row < sdf->size[1];
         row++) {
        double y = sdf->origin.y + row * h;

        if (!(y < high))
            break;
        if (y >= low && !cross_row(sdf, v, row, list))
            return false;
    }
    return true;
}

static int by_place(const void *a, const void *b)
{
    const struct crossing *s = a, *t = b;

    if (s->column != t->column)
        return (s->column > t->column) - (s->column < t->column);
    return s->z != t->z ? (s->z > t->z) - (s->z < t->z) : t->sign - s->sign;
}

static enum err_code sign_column(struct sdf *sdf, uint32_t column, const struct crossing *crossing,
                                 size_t count, double doubt_m, struct err *err)
{
    size_t stride = (size_t)sdf->size[0] * sdf->size[1], passed = 0;
    int winding = 0;

    for (uint32_t z = 0; z < sdf->size[2]; z++) {
        float *d = &sdf->distance_m[z * stride + column];
        double at = sdf->origin.z + z * sdf->spacing_m;

        while (passed < count && crossing[passed].z < at)
            winding += crossing[passed++].sign;
        if (winding != 0 && winding != 1 && *d > doubt_m)
            return err_set(err, ERR_UNPROCESSABLE,
                           "the mesh intersects itself: around (%g, %g, %g) it closes %d times",
                           sdf->origin.x + column % sdf->size[0] * sdf->spacing_m,
                           sdf->origin.y + column / sdf->size[0] * sdf->spacing_m, at, winding);
        if (winding > 0)
            *d = -*d;
    }
    while (passed < count)
        winding += crossing[passed++].sign;
    CHECK(winding == 0);
    return ERR_OK;
}

static enum err_code set_signs(const struct triangle_mesh *mesh, struct sdf *sdf, struct err *err)
{
    struct box3 box = triangle_mesh_bounds(mesh);
    double doubt_m = 1e-9 * vec3_length(vec3_sub(box.max, box.min));
    struct crossings list = {0};

    for (uint32_t i = 0; i < mesh->triangles; i++) {
        const uint32_t *corner = mesh->corners + 3 * (size_t)i;
        const struct vec3 *v[3] = {&mesh->vertices[corner[0]], &mesh->vertices[corner[1]],
                                   &mesh->vertices[corner[2]]};

        if (!cross_triangle(sdf, v, &list)) {
            free(list.at);
            return err_set(err, ERR_NO_MEMORY, "no memory for %zu crossings", list.count);
        }
    }
    if (list.count > 0)
        qsort(list.at, list.count, sizeof *list.at, by_place);
    for (size_t first = 0, end; first < list.count && !err->code; first = end) {
        end = first + 1;
        while (end < list.count && list.at[end].column == list.at[first].column)
            end++;
        sign_column(sdf, list.at[first].column, list.at + first, end - first, doubt_m, err);
    }
    free(list.at);
    return err->code;
}

enum err_code sdf_build(const struct triangle_mesh *mesh, const struct triangle_tree *tree,
                        const struct sdf_options *options, struct sdf *out, struct err *err)
{
    err->code = ERR_OK;
    *out = (struct sdf){.distance_m = NULL};
    if (allocate(mesh, options, out, err))
        return err->code;
    fill(tree, options, out);
    if (set_signs(mesh, out, err))
        sdf_free(out);
    return err->code;
}

void sdf_free(struct sdf *sdf)
{
    free(sdf->distance_m);
    *sdf = (struct sdf){.distance_m = NULL};
}
