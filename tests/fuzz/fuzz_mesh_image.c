/*
 * Fuzzes mesh_open(). Each input runs twice: as it is, which ends at a checksum nearly always, and
 * laid out and sealed anew, which lets the damage through to the structure. What is taken must
 * answer within its own bytes and come to an end.
 */
#include "base/check.h"
#include "base/content_hash.h"
#include "terrain/instances/instances.h"
#include "terrain/radial/radial.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void ask(const struct mesh *mesh)
{
    struct box3 b = mesh_bounds(mesh);
    struct mesh_stats stats;
    size_t length;
    struct err err;

    for (int i = 0; i < 27; i++) {
        struct vec3 p = {b.min.x + (b.max.x - b.min.x) * (i % 3) / 2,
                         b.min.y + (b.max.y - b.min.y) * (i / 3 % 3) / 2,
                         b.min.z + (b.max.z - b.min.z) * (i / 9) / 2};
        struct ray ray = {p, {i % 5 - 2, i % 3 - 1, i % 7 - 3}, INFINITY};
        struct mesh_contact contact;
        struct mesh_hit hit;

        mesh_floor(mesh, p, i % 2 ? INFINITY : 0, &contact);
        mesh_ceiling(mesh, p, -INFINITY, 0, &contact);
        if (ray_is_valid(&ray))
            mesh_ray(mesh, &ray, i % 2 ? RAY_ANY : RAY_CLOSEST, &hit);
    }
    CHECK(mesh_image(mesh, &length) && length > 0);
    mesh_stats(mesh, &stats);
    mesh_validate(mesh, &err);
}

static void open_exact(const uint8_t *bytes, size_t size)
{
    uint8_t *exact = malloc(size > 0 ? size : 1);
    struct err err = {0};

    CHECK(exact);
    memcpy(exact, bytes, size);
    struct mesh *mesh = mesh_open(exact, size, NULL, NULL, &err);

    free(exact);
    CHECK(mesh != NULL || (err.code != ERR_OK && err.msg[0]));
    if (mesh != NULL)
        ask(mesh);
    mesh_unref(mesh);
}

/* The same for an image of a mesh under radial gravity, in a block of its own. */
static void open_sealed_radial(const uint8_t *bytes, size_t size)
{
    uint8_t *sealed = malloc(size);

    CHECK(sealed);
    memcpy(sealed, bytes, size);
    if (radial_image_seal(sealed, size))
        open_exact(sealed, size);
    free(sealed);
}

/* Of instances: the meshes in it, then the whole. */
static void open_sealed_instances(const uint8_t *bytes, size_t size)
{
    uint8_t *sealed = aligned_alloc(MESH_ALIGNMENT, (size + 63) / 64 * 64);
    struct instances_header *h = (struct instances_header *)(void *)sealed;
    uint64_t parts_at;

    CHECK(sealed);
    memcpy(sealed, bytes, size);
    h->version = INSTANCES_VERSION;
    h->header_bytes = sizeof *h;
    h->bytes = size;
    parts_at = sizeof *h + h->place_count % 1000 * sizeof(struct instances_place);
    for (uint64_t i = 0; i < h->mesh_count % 8; i++) {
        struct instances_part part = {0, 0};
        struct mesh_header own;

        if (parts_at + (i + 1) * sizeof part <= size)
            memcpy(&part, sealed + parts_at + i * sizeof part, sizeof part);
        if (part.offset % MESH_ALIGNMENT != 0 || part.offset >= size ||
            part.bytes > size - part.offset || part.bytes < sizeof own)
            continue;
        memcpy(&own, sealed + part.offset, sizeof own);
        if (!mesh_header_lay_out(&own) || own.bytes != part.bytes)
            continue;
        memcpy(sealed + part.offset, &own, sizeof own);
        mesh_image_seal(sealed + part.offset);
    }
    content_hash(h + 1, size - sizeof *h, h->content);
    h->checksum = fnv1a(FNV1A_EMPTY, h, offsetof(struct instances_header, checksum));
    open_exact(sealed, size);
    free(sealed);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct mesh_header header;
    uint8_t *sealed;

    open_exact(bytes, size);
    if (radial_is_image(bytes, size)) {
        open_sealed_radial(bytes, size);
        return 0;
    }
    if (instances_is_image(bytes, size)) {
        open_sealed_instances(bytes, size);
        return 0;
    }
    if (size < sizeof header)
        return 0;
    memcpy(&header, bytes, sizeof header);
    if (!mesh_header_lay_out(&header) || header.bytes != size)
        return 0;
    sealed = malloc(size);
    CHECK(sealed);
    memcpy(sealed, bytes, size);
    memcpy(sealed, &header, sizeof header);
    mesh_image_seal(sealed);
    open_exact(sealed, size);
    free(sealed);
    return 0;
}
