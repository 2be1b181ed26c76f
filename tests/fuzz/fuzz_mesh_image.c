/*
 * Fuzzes mesh_open(). Each input runs twice: as it is, which ends at a checksum nearly always, and
 * laid out and sealed anew, which lets the damage through to the structure. What is taken must
 * answer within its own bytes and come to an end.
 */
#include "base/check.h"
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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct mesh_header header;
    uint8_t *sealed;

    open_exact(bytes, size);
    if (radial_is_image(bytes, size)) {
        open_sealed_radial(bytes, size);
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
