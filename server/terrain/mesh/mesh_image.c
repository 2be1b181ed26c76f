/*
 * Images of meshes: layout, seal, and reading of untrusted bytes.
 *
 * The form on disk is the form in memory, so opening is verifying. Three things are checked, in an
 * order in which each may trust the ones before:
 *
 * 1. The header: magic, version, FNV-1a checksum, and that sizes and offsets are exactly those that
 *    its counts call for. There is one layout for given counts, so there is nothing to interpret.
 * 2. The content hash (BLAKE2b-256) over all that follows the header: damage ends here.
 * 3. The structure, for the author of a file can also make its hash: each index is in its array,
 *    each number finite, the corners of each polygon after those of the one before, R a rotation.
 *    Then no query can leave the image or fail to end, for any numbers; whether they mean
 *    a terrain is mesh_validate's question.
 */
#include "terrain/mesh/mesh_data.h"

#include "base/huge.h"
#include "base/check.h"
#include "base/content_hash.h"
#include "terrain/mesh/convex_parts.h"
#include "terrain/mesh/mesh_contact.h"
#include "terrain/instances/instances.h"
#include "terrain/radial/radial.h"

#include <stdlib.h>
#include <string.h>

static const size_t item_bytes[MESH_SECTIONS] = {
    [MESH_POLYGONS] = sizeof(struct mesh_polygon),
    [MESH_CORNERS] = sizeof(uint32_t),
    [MESH_VERTICES] = sizeof(struct vec3),
    [MESH_FIRSTS] = sizeof(uint32_t),
    [MESH_SOURCES] = sizeof(uint32_t),
};

/* ---- layout and seal ------------------------------------------------------------------------ */

uint64_t mesh_section_bytes(const struct mesh_header *header, enum mesh_section section)
{
    size_t bytes = item_bytes[section];

    return header->count[section] *
           (section == MESH_VERTICES && header->is_narrow ? sizeof(float[3]) : bytes);
}

bool mesh_header_lay_out(struct mesh_header *header)
{
    uint64_t at = mesh_aligned(sizeof *header);

    for (enum mesh_section s = 0; s < MESH_SECTIONS; s++) {
        if (header->count[s] > UINT32_MAX)
            return false;
        header->offset[s] = at;
        at += mesh_aligned(mesh_section_bytes(header, s));
    }
    memcpy(header->magic, MESH_MAGIC, sizeof header->magic);
    header->version = MESH_VERSION;
    header->header_bytes = sizeof *header;
    header->bytes = at;
    return true;
}

/* Of all before it. */
static uint64_t header_checksum(const struct mesh_header *header)
{
    return fnv1a(FNV1A_EMPTY, header, offsetof(struct mesh_header, checksum));
}

void mesh_image_clear_gaps(void *image, const struct mesh_header *h)
{
    uint8_t *bytes = image;

    memset(bytes + sizeof *h, 0, h->offset[0] - sizeof *h);
    for (enum mesh_section s = 0; s < MESH_SECTIONS; s++) {
        uint64_t end = h->offset[s] + mesh_section_bytes(h, s);
        uint64_t next = s + 1 < MESH_SECTIONS ? h->offset[s + 1] : h->bytes;

        memset(bytes + end, 0, next - end);
    }
}

void mesh_image_seal(void *image)
{
    struct mesh_header *h = image;

    content_hash((uint8_t *)image + sizeof *h, h->bytes - sizeof *h, h->content);
    h->checksum = header_checksum(h);
}

void mesh_seal(const struct mesh *mesh)
{
    struct mesh *own = (struct mesh *)(uintptr_t)mesh; /* for the members that change */
    unsigned state = MESH_UNSEALED;
    struct mesh_header h;

    if (atomic_load_explicit(&own->seal, memory_order_acquire) == MESH_SEALED)
        return;
    h = mesh_header_copy(mesh);
    content_hash((const uint8_t *)own->own + sizeof h, h.bytes - sizeof h, h.content);
    h.checksum = header_checksum(&h);
    if (atomic_compare_exchange_strong(&own->seal, &state, MESH_SEALING)) {
        struct mesh_header *to = own->own;

        memcpy(to->content, h.content, sizeof h.content);
        to->checksum = h.checksum;
        atomic_store_explicit(&own->seal, MESH_SEALED, memory_order_release);
    }
    while (atomic_load_explicit(&own->seal, memory_order_acquire) != MESH_SEALED)
        continue; /* Spin: the other thread copies 40 bytes. */
}

struct mesh_header mesh_header_copy(const struct mesh *mesh)
{
    enum { BEHIND = offsetof(struct mesh_header, rotation) };
    struct mesh_header header = {.version = 0};

    memcpy(&header, mesh->header, offsetof(struct mesh_header, content));
    memcpy((char *)&header + BEHIND, (const char *)mesh->header + BEHIND,
           offsetof(struct mesh_header, checksum) - BEHIND);
    return header;
}

/* ---- making --------------------------------------------------------------------------------- */

/* By its bits, for gcc 12 may leave a conversion to float and back out. */
static bool is_narrow(double x)
{
    const uint64_t lost = (1u << (DBL_MANT_DIG - FLT_MANT_DIG)) - 1;
    double size = fabs(x);
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return (bits & lost) == 0 && size <= (double)FLT_MAX && (size >= (double)FLT_MIN || size == 0);
}

bool mesh_vertices_are_narrow(const struct vec3 *vertices, size_t count)
{
    bool are = true;

    for (size_t i = 0; are && i < count; i++)
        are = is_narrow(vertices[i].x) && is_narrow(vertices[i].y) && is_narrow(vertices[i].z);
    return are;
}

/* Do the polygons' numbers in the file count up from 0? */
static bool is_counting(const uint32_t *sources, size_t count)
{
    bool is = true;

    for (size_t i = 0; i < count; i++)
        is &= sources[i] == i;
    return is;
}

/* Triangles that share no vertex: each is a corner once. */
static bool is_apart(const struct convex_parts *set)
{
    return set->corner_count == 3 * set->polygon_count && set->vertex_count == set->corner_count;
}

/* In the order of corners where the image has none. */
static void vertices_put(const struct mesh_header *h, const struct convex_parts *set, void *to)
{
    bool has_corners = h->count[MESH_CORNERS] > 0;
    struct vec3 *wide = to;
    float(*narrow)[3] = to;

    for (size_t i = 0; i < set->vertex_count; i++) {
        struct vec3 v = set->vertices[has_corners ? i : set->corners[i]];

        if (!h->is_narrow)
            wide[i] = v;
        else
            memcpy(narrow[i], (float[]){(float)v.x, (float)v.y, (float)v.z}, sizeof *narrow);
    }
}

void *mesh_image_make(struct mesh_header *h, const struct convex_parts *set, struct err *err)
{
    bool is_triangles = set->corner_count == 3 * set->polygon_count;
    const void *from[MESH_SECTIONS] = {[MESH_POLYGONS] = set->polygons,
                                       [MESH_CORNERS] = set->corners,
                                       [MESH_FIRSTS] = set->firsts,
                                       [MESH_SOURCES] = set->sources};
    uint8_t *image;

    h->is_narrow = mesh_vertices_are_narrow(set->vertices, set->vertex_count);
    h->count[MESH_POLYGONS] = set->polygon_count;
    h->count[MESH_CORNERS] = is_apart(set) ? 0 : set->corner_count;
    h->count[MESH_VERTICES] = set->vertex_count;
    h->count[MESH_FIRSTS] = is_triangles ? 0 : set->polygon_count + 1;
    h->count[MESH_SOURCES] = is_counting(set->sources, set->polygon_count) ? 0 : set->polygon_count;
    image = mesh_header_lay_out(h) ? huge_alloc(h->bytes) : NULL;
    if (image == NULL) {
        err_set(err, ERR_NO_MEMORY, "no memory for a mesh of %zu polygons", set->polygon_count);
        return NULL;
    }
    memcpy(image, h, sizeof *h);
    for (enum mesh_section s = 0; s < MESH_SECTIONS; s++)
        if (from[s] != NULL && h->count[s] > 0)
            memcpy(image + h->offset[s], from[s], mesh_section_bytes(h, s));
    vertices_put(h, set, image + h->offset[MESH_VERTICES]);
    mesh_image_clear_gaps(image, h);
    return image;
}

/* ---- verification --------------------------------------------------------------------------- */

static enum err_code damaged(struct err *err, const char *what, uint64_t at)
{
    return err_set(err, ERR_BAD_INPUT, "the mesh image is damaged: %s %llu", what,
                   (unsigned long long)at);
}

/* How many there are of each, by those of the others. */
static bool counts_fit(const struct mesh_header *h)
{
    const uint64_t *count = h->count;
    uint64_t triples = 3 * count[MESH_POLYGONS];

    return count[MESH_POLYGONS] > 0 && count[MESH_POLYGONS] < UINT32_MAX &&
           count[MESH_CORNERS] <= MESH_CORNERS_MAX && h->is_narrow <= 1 &&
           (count[MESH_SOURCES] == 0 || count[MESH_SOURCES] == count[MESH_POLYGONS]) &&
           (count[MESH_FIRSTS] == 0
                ? count[MESH_CORNERS] == triples ||
                      (count[MESH_CORNERS] == 0 && count[MESH_VERTICES] == triples)
                : count[MESH_FIRSTS] == count[MESH_POLYGONS] + 1 && count[MESH_CORNERS] >= triples);
}

/* header is a copy: the image itself may be shorter than one. */
static enum err_code header_check(const struct mesh_header *h, size_t length, struct err *err)
{
    struct mesh_header want = *h;

    if (memcmp(h->magic, MESH_MAGIC, sizeof h->magic) != 0)
        return err_set(err, ERR_BAD_INPUT, "not a mesh image");
    if (h->version != MESH_VERSION)
        return err_set(err, ERR_BAD_INPUT, "the mesh image has version %u, this is version %d",
                       h->version, MESH_VERSION);
    if (h->checksum != header_checksum(h))
        return damaged(err, "checksum of a header of bytes", sizeof *h);
    if (!mesh_header_lay_out(&want) || memcmp(&want, h, sizeof want) != 0)
        return damaged(err, "sizes do not fit counts, in bytes", h->bytes);
    if (h->bytes != length)
        return err_set(err, ERR_BAD_INPUT, "the mesh image has %zu bytes, it says %llu", length,
                       (unsigned long long)h->bytes);
    if (!counts_fit(h) || h->max_polygons == 0 || h->max_depth > MESH_DEPTH_MAX)
        return damaged(err, "counts do not fit, polygons", h->count[MESH_POLYGONS]);
    return ERR_OK;
}

static bool are_finite(const double *numbers, size_t count)
{
    bool finite = true;

    for (size_t i = 0; i < count; i++)
        finite &= isfinite(numbers[i]) != 0;
    return finite;
}

/* Finite numbers, a box that is one, and R times its transpose the unit matrix. */
static enum err_code frame_check(const struct mesh_header *h, struct err *err)
{
    const double *r = h->rotation;
    const double others[] = {h->centre.x,     h->centre.y,     h->centre.z,     h->root.x_min,
                             h->root.y_min,   h->root.x_max,   h->root.y_max,   h->bounds.min.x,
                             h->bounds.min.y, h->bounds.min.z, h->bounds.max.x, h->bounds.max.y,
                             h->bounds.max.z, h->slack,        h->near};

    if (!are_finite(r, 9) || !are_finite(others, sizeof others / sizeof *others))
        return damaged(err, "the frame is not finite, version", h->version);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            double product =
                r[3 * i] * r[3 * k] + r[3 * i + 1] * r[3 * k + 1] + r[3 * i + 2] * r[3 * k + 2];

            if (!(fabs(product - (i == k)) < 1e-9))
                return damaged(err, "the frame is no rotation, row", (uint64_t)i);
        }
    if (!(h->root.x_min <= h->root.x_max && h->root.y_min <= h->root.y_max) ||
        !(h->slack >= 0 && h->near >= h->slack) || !isfinite(h->z_min) || !isfinite(h->z_max))
        return damaged(err, "the root has no box, version", h->version);
    return ERR_OK;
}

static bool polygon_is_sound(const struct mesh *m, uint64_t i)
{
    const struct mesh_polygon *p = &m->polygons[i];
    bool is_plane = isfinite(p->slope_x) && isfinite(p->slope_y) && !isinf(p->height);
    bool is_wall = isnan(p->slope_x) && isnan(p->slope_y) && isnan(p->height);

    return (is_plane || is_wall) && isfinite(p->x_min) && isfinite(p->y_min) &&
           (!m->firsts || m->firsts[i + 1] >= (uint64_t)m->firsts[i] + 3);
}

static enum err_code arrays_check(const struct mesh *m, struct err *err)
{
    const uint64_t *count = m->header->count;

    for (uint64_t i = 0; i < count[MESH_CORNERS]; i++)
        if (m->corners[i] >= count[MESH_VERTICES])
            return damaged(err, "corner", i);
    if (m->firsts && (m->firsts[0] != 0 || m->firsts[count[MESH_POLYGONS]] != count[MESH_CORNERS]))
        return damaged(err, "the ends of corners", count[MESH_CORNERS]);
    for (uint64_t i = 0; i < count[MESH_POLYGONS]; i++)
        if (!polygon_is_sound(m, i))
            return damaged(err, "polygon", i);
    for (uint64_t i = 0; i < count[MESH_VERTICES]; i++)
        if (!vec3_is_finite(point_at(&m->points, i)))
            return damaged(err, "vertex", i);
    return ERR_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* NULL: it has none. */
static const void *section_of(const struct mesh_header *h, enum mesh_section section)
{
    return h->count[section] > 0 ? (const uint8_t *)h + h->offset[section] : NULL;
}

static void sections_set(struct mesh *m, const void *image)
{
    const struct mesh_header *h = image;

    m->header = h;
    memcpy(m->content, h->content, sizeof m->content);
    m->lift = vec3_dot(mesh_up(h), h->centre);
    m->is_turned = false;
    for (int i = 0; i < 9; i++)
        m->is_turned |= h->rotation[i] != (i % 4 == 0);
    m->polygons = section_of(h, MESH_POLYGONS);
    m->corners = section_of(h, MESH_CORNERS);
    m->firsts = section_of(h, MESH_FIRSTS);
    m->sources = section_of(h, MESH_SOURCES);
    if (h->is_narrow)
        m->points.narrow = section_of(h, MESH_VERTICES);
    else
        m->points.wide = section_of(h, MESH_VERTICES);
}

void mesh_image_move(struct mesh *mesh, const void *image)
{
    free(mesh->own);
    mesh->own = NULL;
    sections_set(mesh, image);
}

struct mesh *mesh_over(void *image, struct err *err)
{
    struct mesh *mesh = calloc(1, sizeof *mesh);

    if (mesh == NULL) {
        err_set(err, ERR_NO_MEMORY, "no memory for a mesh");
        return NULL;
    }
    atomic_init(&mesh->refs, 1);
    mesh->own = image;
    sections_set(mesh, image);
    return mesh;
}

/* The image itself when it may stay where it is, else a copy of our own; NULL: no memory. */
static void *image_keep(const void *image, size_t length, bool is_borrowed)
{
    void *own;

    if (is_borrowed)
        return (void *)(uintptr_t)image;
    own = huge_alloc(mesh_aligned(length));
    if (own != NULL)
        memcpy(own, image, length);
    return own;
}

/* Of an image of an older version, which is not kept. */
static struct mesh *open_old(struct crew *crew, const void *image, size_t length, struct err *err)
{
    size_t new_length;
    void *own = mesh_image_of_old(image, length, &new_length, err);
    struct mesh *mesh = own ? mesh_open_by(crew, own, new_length, NULL, NULL, err) : NULL;

    free(own);
    return mesh;
}

struct mesh *mesh_open(const void *image, size_t length, void (*release)(void *context),
                       void *context, struct err *err)
{
    return mesh_open_by(NULL, image, length, release, context, err);
}

struct mesh *mesh_open_by(struct crew *crew, const void *image, size_t length,
                          void (*release)(void *context), void *context, struct err *err)
{
    struct mesh_header header;
    uint8_t content[32];
    bool is_borrowed = release != NULL;
    struct mesh *mesh;

    if (radial_is_image(image, length))
        return radial_open(image, length, release, context, err);
    if (instances_is_image(image, length))
        return instances_open(crew, image, length, release, context, err);
    if (length < sizeof header) {
        err_set(err, ERR_BAD_INPUT, "a mesh image has at least %zu bytes, this has %zu",
                sizeof header, length);
        return NULL;
    }
    CHECK(!is_borrowed || (uintptr_t)image % MESH_ALIGNMENT == 0);
    if (mesh_image_is_old(image, length)) {
        mesh = open_old(crew, image, length, err);
        if (mesh != NULL && is_borrowed)
            release(context);
        return mesh;
    }
    memcpy(&header, image, sizeof header);
    if (header_check(&header, length, err) || frame_check(&header, err))
        return NULL;
    content_hash((const uint8_t *)image + sizeof header, length - sizeof header, content);
    if (memcmp(content, header.content, sizeof content) != 0) {
        damaged(err, "content hash of bytes", length);
        return NULL;
    }
    void *kept = image_keep(image, length, is_borrowed);

    if (kept == NULL) {
        err_set(err, ERR_NO_MEMORY, "no memory for a mesh image of %zu bytes", length);
        return NULL;
    }
    mesh = mesh_over(kept, err);
    if (mesh == NULL) {
        if (!is_borrowed)
            free(kept);
        return NULL;
    }
    if (is_borrowed)
        mesh->own = NULL;
    if (arrays_check(mesh, err) || mesh_same_make(mesh, crew, err) ||
        mesh_structures_make(mesh, &(struct mesh_making){.crew = crew}, false, err)) {
        mesh_unref(mesh); /* release is not set yet: the image stays the caller's */
        return NULL;
    }
    mesh->release = release;
    mesh->context = context;
    return mesh;
}
