/*
 * Making and keeping meshes: Q's preprocessing in one call.
 *
 * 1. The frame: R turns gravity to -Z; far coordinates are moved to the middle, so that rounding is
 *    that of the mesh's size and not of its place.
 * 2. Pieces (convex_parts.c), the image, the floor grid (floor_grid.c), the tree of boxes
 *    (mesh_rays.c).
 * 3. The X-Y direction: Q suggests to turn the axes to a long terrain's own direction. The
 *    direction is that of the bounding rectangle of least area, if that is clearly less than the
 *    upright one.
 *
 * An image is immutable from the moment it is sealed. References are counted.
 */
#include "terrain/mesh/mesh.h"

#include "base/check.h"
#include "terrain/crew.h"
#include "terrain/mesh/mesh_contact.h"
#include "terrain/mesh/convex_parts.h"
#include "terrain/instances/instances.h"
#include "terrain/radial/radial.h"
#include "terrain/trig.h"

#include <stdlib.h>
#include <string.h>

#define FAR_PLACE 64.0 /* times its size from the origin: the mesh is moved to its middle */
#define TURN_AREA 0.7  /* of the upright rectangle: worth turning */

enum { TURN_STEPS = 30, TURN_POINTS_MAX = 4096 };

/* ---- the frame ------------------------------------------------------------------------------ */

/* The shortest rotation that takes `up` to +Z, or to -Z and then over; rows of R. */
static void rotation_set(double r[9], struct vec3 up, double yaw)
{
    double flip = up.z < 0 ? -1 : 1, cosine = trig_cos(yaw), sine = trig_sin(yaw);
    double x = up.x, y = flip * up.y, z = flip * up.z; /* of diag(1, flip, flip) up */
    struct vec3 e1 = {1 - x * x / (1 + z), flip * (-x * y / (1 + z)), flip * -x};
    struct vec3 e2 = {-x * y / (1 + z), flip * (1 - y * y / (1 + z)), flip * -y};
    struct vec3 a = vec3_add(vec3_scale(e1, cosine), vec3_scale(e2, sine));
    struct vec3 b = vec3_sub(vec3_scale(e2, cosine), vec3_scale(e1, sine));

    memcpy(r, (double[]){a.x, a.y, a.z, b.x, b.y, b.z, up.x, up.y, up.z}, 9 * sizeof *r);
}

static double middle_if_far(double low, double high, double size)
{
    double middle = low + (high - low) / 2;

    return fabs(middle) > FAR_PLACE * size ? rint(middle) : 0;
}

static void centre_set(struct mesh_header *h, const struct polygon_soup *soup)
{
    struct box3 box = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};

    for (size_t k = soup->starts[0]; k < soup->starts[soup->polygon_count]; k++)
        box3_take(&box, soup->vertices[soup->corners[k]]);
    double size = vec3_length(vec3_sub(box.max, box.min));

    h->centre = (struct vec3){middle_if_far(box.min.x, box.max.x, size),
                              middle_if_far(box.min.y, box.max.y, size),
                              middle_if_far(box.min.z, box.max.z, size)};
}

/* Area of the bounding rectangle at an angle to the axes. */
static double rectangle_area(const struct convex_parts *set, double angle)
{
    double c = trig_cos(angle), s = trig_sin(angle);
    double u0 = INFINITY, u1 = -INFINITY, v0 = INFINITY, v1 = -INFINITY;
    size_t step = set->vertex_count / TURN_POINTS_MAX + 1;

    for (size_t i = 0; i < set->vertex_count; i += step) {
        double u = c * set->vertices[i].x + s * set->vertices[i].y;
        double v = c * set->vertices[i].y - s * set->vertices[i].x;

        u0 = u < u0 ? u : u0;
        u1 = u > u1 ? u : u1;
        v0 = v < v0 ? v : v0;
        v1 = v > v1 ? v : v1;
    }
    return (u1 - u0) * (v1 - v0);
}

/* The angle of the least rectangle, 0 when the upright one is about as good. */
static double own_direction(const struct convex_parts *set)
{
    const double quarter = 1.5707963267948966;
    double upright = rectangle_area(set, 0), least = upright, angle = 0;

    for (int i = 1; i < TURN_STEPS; i++) {
        double area = rectangle_area(set, quarter * i / TURN_STEPS);

        if (area < least) {
            least = area;
            angle = quarter * i / TURN_STEPS;
        }
    }
    if (least >= TURN_AREA * upright)
        return 0;
    /* to the last digit: then edges that run along it are cut along, too */
    for (double step = quarter / TURN_STEPS / 2; step > 1e-15; step /= 2)
        for (int side = -1; side <= 1; side += 2) {
            double area = rectangle_area(set, angle + side * step);

            if (area < least) {
                least = area;
                angle += side * step;
            }
        }
    return angle;
}

const char *const mesh_fate_text[MESH_FATES] = {
    [MESH_KEPT] = "is kept",
    [MESH_FEW_CORNERS] = "has under 3 different corners",
    [MESH_MANY_CORNERS] = "has over 4096 corners",
    [MESH_NO_AREA] = "has no area",
    [MESH_CROSSES_ITSELF] = "crosses itself",
    [MESH_AROUND_CENTRE] = "has the frame's origin or axis in it",
};

const char *const mesh_structure_name[MESH_STRUCTURES] = {
    [MESH_OF_POLYGONS] = "polygons", [MESH_OF_CORNERS] = "corners", [MESH_OF_VERTICES] = "vertices",
    [MESH_OF_QUADTREE] = "quadtree", [MESH_OF_BOXES] = "boxes",     [MESH_OF_OTHERS] = "others",
};

/* ---- building ------------------------------------------------------------------------------- */

struct draft {
    struct mesh_header header;
    struct convex_parts set;
    struct mesh_import import;
};

static uint32_t first_set(uint32_t a, uint32_t b, uint32_t c)
{
    return a > 0 ? a : b > 0 ? b : c;
}

/* The draft's header has rotation and centre; makes the pieces. */
static enum err_code draft_make(struct draft *draft, const struct polygon_soup *soup,
                                const struct mesh_options *options, struct err *err)
{
    struct mesh_header *h = &draft->header;

    h->max_polygons =
        first_set(options->max_polygons, options->space.max_polygons, MESH_MAX_POLYGONS);
    h->max_depth = first_set(options->max_depth, options->space.max_depth, MESH_MAX_DEPTH);
    if (convex_parts_make(soup, h, options, &draft->set, &draft->import, err))
        return err->code;
    h->root = draft->set.root;
    h->bounds = draft->set.bounds;
    h->z_min = draft->set.z_min;
    h->z_max = draft->set.z_max;
    h->slack = draft->set.slack;
    h->near = 4 * h->slack;
    return err->code = ERR_OK;
}

/* Replaces the draft by one that is turned to the terrain's own direction, if it has one. */
static enum err_code draft_turn(struct draft *draft, const struct polygon_soup *soup,
                                const struct mesh_options *options, struct err *err)
{
    double angle = own_direction(&draft->set);
    const double *r = draft->header.rotation;

    if (angle == 0)
        return ERR_OK;
    convex_parts_free(&draft->set);
    draft->header.slack = 0;
    rotation_set(draft->header.rotation, (struct vec3){r[6], r[7], r[8]}, angle);
    return draft_make(draft, soup, options, err);
}

/* The content hash, which one thread takes, beside all else that is made of an image. */
struct finish {
    void *image;
    struct mesh *mesh;
    const struct mesh_options *options;
    struct err *err; /* of the structures */
};

enum { SEAL, STRUCTURES, FINISHES };

static void finish_work(void *context, size_t part)
{
    const struct finish *f = context;
    struct mesh_making making = {f->options->crew, f->options->pace};

    if (part == SEAL) {
        mesh_image_seal(f->image);
        memcpy(f->mesh->content, f->mesh->header->content, sizeof f->mesh->content);
    } else if (pace_step(making.pace, PACE_UNITS, f->err) == ERR_OK &&
               mesh_same_make(f->mesh, making.crew, f->err) == ERR_OK) {
        mesh_structures_make(f->mesh, &making, f->options->without_rays, f->err);
    }
}

static struct mesh *draft_image(struct draft *draft, const struct mesh_options *options,
                                struct err *err)
{
    void *image = mesh_image_make(&draft->header, &draft->set, err);

    if (image == NULL)
        return NULL;
    convex_parts_free(&draft->set);
    struct mesh *mesh = mesh_over(image, err);

    if (mesh == NULL) {
        free(image);
        return NULL;
    }
    struct finish finish = {image, mesh, options, err};
    struct err none = {.code = ERR_OK}; /* the pace is of the structures' thread */

    err->code = ERR_OK;
    crew_run(options->crew, NULL, finish_work, &finish, FINISHES, &none);
    if (err->code) {
        mesh_unref(mesh);
        return NULL;
    }
    return mesh;
}

static enum err_code options_check(const struct polygon_soup *soup,
                                   const struct mesh_options *options, struct err *err)
{
    struct vec3 g = options->gravity;

    if (options->space.frame == MESH_CARTESIAN &&
        (!vec3_is_finite(g) || !(fabs(vec3_length(g) - 1) < 1e-6)))
        return err_set(err, ERR_BAD_INPUT, "gravity is (%g, %g, %g), must be a unit vector", g.x,
                       g.y, g.z);
    if (options->max_depth > MESH_DEPTH_MAX)
        return err_limit(err, ERR_BAD_INPUT, MESH_DEPTH_MAX, options->max_depth,
                         "max_depth is %u, must be at most %d", options->max_depth, MESH_DEPTH_MAX);
    if (soup->polygon_count == 0)
        return err_set(err, ERR_UNPROCESSABLE, "there are no polygons");
    if (soup->polygon_count > UINT32_MAX - 1 || soup->vertex_count > UINT32_MAX - 1)
        return err_set(err, ERR_TOO_LARGE, "%zu polygons with %zu vertices, must be below 2^32",
                       soup->polygon_count, soup->vertex_count);
    return soup_check(soup, err);
}

/* The frame of `like`; false: its roundings do not allow for the polygons. */
static bool frame_take(struct mesh_header *h, const struct mesh *like,
                       const struct polygon_soup *soup)
{
    if (like == NULL || !like->header)
        return false;
    memcpy(h->rotation, like->header->rotation, sizeof h->rotation);
    h->centre = like->header->centre;
    h->slack = convex_parts_slack(soup, h) <= like->header->slack ? like->header->slack : 0;
    return h->slack > 0;
}

struct mesh *mesh_create(const struct polygon_soup *soup, const struct mesh_options *options,
                         struct mesh_import *import, struct err *err)
{
    struct draft draft = {0};
    struct mesh *mesh = NULL;

    err->code = ERR_OK;
    if (options_check(soup, options, err))
        return NULL;
    if (options->instances && options->instances->count > 0)
        return instances_create(soup, options, import, err);
    if (options->space.frame != MESH_CARTESIAN)
        return radial_create(soup, options, import, err);
    bool is_like = frame_take(&draft.header, options->like, soup);

    if (!is_like) {
        rotation_set(draft.header.rotation, vec3_unit(vec3_scale(options->gravity, -1)), 0);
        centre_set(&draft.header, soup);
    }
    if (draft_make(&draft, soup, options, err))
        return NULL;
    if (is_like || options->keep_axes || draft_turn(&draft, soup, options, err) == ERR_OK)
        mesh = draft_image(&draft, options, err);
    VALIDATE_THAT(mesh == NULL || mesh_validate(mesh, err));
    if (mesh != NULL && import != NULL)
        *import = draft.import;
    convex_parts_free(&draft.set);
    return mesh;
}

/* ---- keeping -------------------------------------------------------------------------------- */

struct mesh *mesh_ref(const struct mesh *mesh)
{
    struct mesh *counted = (struct mesh *)(uintptr_t)mesh; /* only the count changes */

    atomic_fetch_add_explicit(&counted->refs, 1, memory_order_relaxed);
    return counted;
}

void mesh_unref(struct mesh *mesh)
{
    if (mesh == NULL || atomic_fetch_sub_explicit(&mesh->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (mesh->release != NULL)
        mesh->release(mesh->context);
    floor_grid_free(&mesh->grid);
    mesh_rays_free(&mesh->rays);
    free(mesh->same);
    radial_free(mesh->radial);
    instances_free(mesh->instances);
    free(mesh->own);
    free(mesh);
}

const void *mesh_image(const struct mesh *mesh, size_t *length)
{
    mesh_seal(mesh);
    if (mesh->instances) {
        *length = mesh->instances->header->bytes;
        return mesh->instances->header;
    }
    *length = mesh->radial ? mesh->radial->header->bytes : mesh->header->bytes;
    return mesh->radial ? (const void *)mesh->radial->header : mesh->header;
}

const uint8_t *mesh_content(const struct mesh *mesh)
{
    if (mesh->instances)
        return mesh->instances->header->content;
    return mesh->radial ? mesh->radial->header->content : mesh->content;
}

struct box3 mesh_bounds(const struct mesh *mesh)
{
    if (mesh->instances)
        return mesh->instances->bounds;
    return mesh->radial ? mesh->radial->header->bounds : mesh->header->bounds;
}

struct mesh_space mesh_space(const struct mesh *mesh)
{
    if (mesh->instances)
        return mesh_space(mesh->instances->meshes[0]);
    if (!mesh->radial)
        return (struct mesh_space){.frame = MESH_CARTESIAN,
                                   .max_polygons = mesh->header->max_polygons,
                                   .max_depth = mesh->header->max_depth};
    return (struct mesh_space){.frame = (enum mesh_frame)mesh->radial->header->frame,
                               .is_outward = mesh->radial->header->is_outward != 0};
}

struct vec3 mesh_space_gravity(struct mesh_space space, struct vec3 point)
{
    struct vec3 out = space.frame == MESH_SPHERICAL ? point : (struct vec3){point.x, point.y, 0};

    return space.is_outward ? vec3_unit(out) : vec3_opposite(vec3_unit(out));
}

struct z_range mesh_range_of_corners(const struct mesh *mesh, uint32_t polygon)
{
    struct face face = mesh_face(mesh, polygon);

    return convex_part_range(&face, &mesh->polygons[polygon], mesh->header->slack);
}

void mesh_stats(const struct mesh *mesh, struct mesh_stats *out)
{
    const struct mesh_header *h = mesh->header;

    memset(out, 0, sizeof *out);
    if (mesh->instances)
        instances_stats(mesh->instances, out);
    if (mesh->radial)
        radial_stats(mesh->radial, out);
    if (!h)
        return;
    floor_grid_stats(&mesh->grid, out);
    out->polygons = h->count[MESH_POLYGONS];
    out->bytes_of[MESH_OF_POLYGONS] = mesh_section_bytes(h, MESH_POLYGONS);
    out->bytes_of[MESH_OF_CORNERS] = mesh_section_bytes(h, MESH_CORNERS);
    out->bytes_of[MESH_OF_VERTICES] = mesh_section_bytes(h, MESH_VERTICES);
    out->bytes_of[MESH_OF_QUADTREE] = floor_grid_bytes(&mesh->grid);
    out->bytes_of[MESH_OF_BOXES] = mesh_rays_bytes(&mesh->rays);
    /* firsts and sources, too */
    out->bytes_of[MESH_OF_OTHERS] =
        sizeof *mesh + (mesh->same ? out->polygons * sizeof *mesh->same : 0) + h->bytes -
        out->bytes_of[MESH_OF_POLYGONS] - out->bytes_of[MESH_OF_CORNERS] -
        out->bytes_of[MESH_OF_VERTICES];
    for (int i = 0; i < MESH_STRUCTURES; i++)
        out->bytes += out->bytes_of[i];
}
