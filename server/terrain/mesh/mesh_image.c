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
 *    each number finite, the tree breadth first with each child's place given by its parent's rank
 *    (so it is a tree, without a mark per node) and no deeper than the header says, R a rotation.
 *    Then no query can leave the image or fail to end, for any numbers; whether they mean
 *    a terrain is mesh_validate's question.
 */
#include "terrain/mesh/mesh_data.h"

#include "base/check.h"
#include "base/content_hash.h"
#include "terrain/mesh/mesh_contact.h"
#include "terrain/radial/radial.h"

#include <stdlib.h>
#include <string.h>

static const size_t item_bytes[MESH_SECTIONS] = {
    [MESH_NODES] = sizeof(struct mesh_node), [MESH_POLYGONS] = sizeof(struct mesh_polygon),
    [MESH_LINES] = sizeof(struct mesh_line), [MESH_CORNERS] = sizeof(uint32_t),
    [MESH_REFS] = sizeof(uint32_t),          [MESH_VERTICES] = sizeof(struct vec3),
};

/* ---- layout and seal ------------------------------------------------------------------------ */

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + MESH_ALIGNMENT - 1) / MESH_ALIGNMENT * MESH_ALIGNMENT;
}

bool mesh_header_lay_out(struct mesh_header *header)
{
    uint64_t at = aligned(sizeof *header);

    for (int s = 0; s < MESH_SECTIONS; s++) {
        if (header->count[s] > UINT32_MAX)
            return false;
        header->offset[s] = at;
        at += aligned(header->count[s] * item_bytes[s]);
    }
    memcpy(header->magic, MESH_MAGIC, sizeof header->magic);
    header->version = MESH_VERSION;
    header->header_bytes = sizeof *header;
    header->bytes = at;
    return true;
}

/* FNV-1a, 64 bits (Fowler, Noll, Vo), of the header but for the checksum itself. */
static uint64_t header_checksum(const struct mesh_header *header)
{
    const uint8_t *bytes = (const uint8_t *)header;
    uint64_t sum = 0xcbf29ce484222325;

    for (size_t i = 0; i < offsetof(struct mesh_header, checksum); i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3;
    return sum;
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

/* ---- verification --------------------------------------------------------------------------- */

static enum err_code damaged(struct err *err, const char *what, uint64_t at)
{
    return err_set(err, ERR_BAD_INPUT, "the mesh image is damaged: %s %llu", what,
                   (unsigned long long)at);
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
    if (h->count[MESH_NODES] == 0 || h->count[MESH_NODES] % 4 != 1 ||
        h->count[MESH_POLYGONS] == 0 || h->count[MESH_LINES] != h->count[MESH_CORNERS])
        return damaged(err, "counts do not fit, nodes", h->count[MESH_NODES]);
    if (h->depth > MESH_DEPTH_MAX)
        return damaged(err, "depth", h->depth);
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
        !(h->slack >= 0 && h->near >= h->slack))
        return damaged(err, "the root has no box, version", h->version);
    return ERR_OK;
}

/* Breadth first: the k-th inner node's children follow those of the one before. */
static enum err_code nodes_check(const struct mesh *m, struct err *err)
{
    const struct mesh_header *h = m->header;
    uint64_t children = 1, level_end = 1;
    uint32_t depth = 0;

    for (uint64_t i = 0; i < h->count[MESH_NODES]; i++) {
        const struct mesh_node *n = &m->nodes[i];

        if (i == level_end) {
            depth++;
            level_end = children;
        }
        if (isnan(n->z_min) || isnan(n->z_max))
            return damaged(err, "bounds of node", i);
        if (n->count != MESH_NODE_INNER) {
            if ((uint64_t)n->first + n->count > h->count[MESH_REFS] || n->as.leaf.floors > n->count)
                return damaged(err, "list of node", i);
            continue;
        }
        if (n->first != children || children + 4 > h->count[MESH_NODES] || !isfinite(n->as.cut.x) ||
            !isfinite(n->as.cut.y))
            return damaged(err, "children of node", i);
        children += 4;
    }
    if (children != h->count[MESH_NODES] || depth != h->depth)
        return damaged(err, "depth", depth);
    return ERR_OK;
}

static enum err_code arrays_check(const struct mesh *m, struct err *err)
{
    const uint64_t *count = m->header->count;

    for (uint64_t i = 0; i < count[MESH_REFS]; i++)
        if (m->leaf_refs[i] >= count[MESH_POLYGONS])
            return damaged(err, "leaf list at", i);
    for (uint64_t i = 0; i < count[MESH_CORNERS]; i++)
        if (m->corners[i] >= count[MESH_VERTICES])
            return damaged(err, "corner", i);
    for (uint64_t i = 0; i < count[MESH_POLYGONS]; i++) {
        const struct mesh_polygon *p = &m->polygons[i];

        if (p->count < 3 || (uint64_t)p->first + p->count > count[MESH_CORNERS] || p->is_wall > 1 ||
            !are_finite(&p->slope_x, 1) || !are_finite(&p->slope_y, 1) ||
            !are_finite(&p->height, 1) || !isfinite(p->x_min) || !isfinite(p->y_min) ||
            !isfinite(p->x_max) || !isfinite(p->y_max) || !isfinite(p->z_min) ||
            !isfinite(p->z_max))
            return damaged(err, "polygon", i);
    }
    if (!are_finite(&m->lines->a, 3 * count[MESH_LINES]))
        return damaged(err, "lines of polygons", count[MESH_POLYGONS]);
    if (!are_finite(&m->vertices->x, 3 * count[MESH_VERTICES]))
        return damaged(err, "vertices", count[MESH_VERTICES]);
    return ERR_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void sections_set(struct mesh *m, const void *image)
{
    const uint8_t *base = image;
    const struct mesh_header *h = image;

    m->header = h;
    memcpy(m->content, h->content, sizeof m->content);
    m->lift = vec3_dot(mesh_up(h), h->centre);
    m->is_turned = false;
    for (int i = 0; i < 9; i++)
        m->is_turned |= h->rotation[i] != (i % 4 == 0);
    m->nodes = (const void *)(base + h->offset[MESH_NODES]);
    m->polygons = (const void *)(base + h->offset[MESH_POLYGONS]);
    m->lines = (const void *)(base + h->offset[MESH_LINES]);
    m->corners = (const void *)(base + h->offset[MESH_CORNERS]);
    m->leaf_refs = (const void *)(base + h->offset[MESH_REFS]);
    m->vertices = (const void *)(base + h->offset[MESH_VERTICES]);
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
    own = aligned_alloc(MESH_ALIGNMENT, aligned(length));
    if (own != NULL)
        memcpy(own, image, length);
    return own;
}

struct mesh *mesh_open(const void *image, size_t length, void (*release)(void *context),
                       void *context, struct err *err)
{
    struct mesh_header header;
    uint8_t content[32];
    bool is_borrowed = release != NULL;
    struct mesh *mesh;

    if (radial_is_image(image, length))
        return radial_open(image, length, release, context, err);
    if (length < sizeof header) {
        err_set(err, ERR_BAD_INPUT, "a mesh image has at least %zu bytes, this has %zu",
                sizeof header, length);
        return NULL;
    }
    CHECK(!is_borrowed || (uintptr_t)image % MESH_ALIGNMENT == 0);
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
    if (nodes_check(mesh, err) || arrays_check(mesh, err) || mesh_same_make(mesh, err) ||
        floor_grid_make(mesh, NULL, err) || mesh_rays_make(mesh, NULL, err)) {
        mesh_unref(mesh); /* release is not set yet: the image stays the caller's */
        return NULL;
    }
    mesh->release = release;
    mesh->context = context;
    return mesh;
}
