/*
 * The kept form of a shell.
 *
 *   0    4   "KSHL"
 *   4    4   version of the form and of the making, SHELL_VERSION
 *   8    32  the model's hash
 *   40   120 float64: radius, volume, centre x y z, inertia per kg row by row, extent
 *   160  8   float64: protrusion
 *   168  4   particles
 *   172  4   0
 *   176  12n float32: offsets
 *   end  32  BLAKE2b-256 of all before
 *
 * The hash at the end makes checks of single values needless, but for those that keep a reader
 * within the bytes; what this program wrote whole is what it reads.
 */
#include "sand/body/shell.h"

#include "base/content_hash.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "shells are little-endian");

struct shell_head {
    char magic[4];
    uint32_t version;
    uint8_t model_hash[SHELL_HASH_BYTES];
    double radius_m, volume_m3, centre[3], inertia_per_kg[3][3], extent_m, protrusion_m;
    uint32_t particles, zero;
};
_Static_assert(sizeof(struct shell_head) == 176, "the form of a shell");

enum { HASH_BYTES = 32 };

enum err_code shell_encode(const struct shell *shell, const uint8_t *model_hash,
                           struct raster_bytes *out, struct err *err)
{
    struct shell_head head = {.magic = {'K', 'S', 'H', 'L'},
                              .version = SHELL_VERSION,
                              .radius_m = shell->radius_m,
                              .volume_m3 = shell->volume_m3,
                              .centre = {shell->centre.x, shell->centre.y, shell->centre.z},
                              .extent_m = shell->extent_m,
                              .protrusion_m = shell->protrusion_m,
                              .particles = shell->particles};
    size_t offsets = shell->particles * sizeof *shell->offsets_m;
    uint8_t *bytes = malloc(sizeof head + offsets + HASH_BYTES);

    if (!bytes)
        return err_set(err, ERR_NO_MEMORY, "no memory for a shell of %u spheres", shell->particles);
    memcpy(head.model_hash, model_hash, sizeof head.model_hash);
    memcpy(head.inertia_per_kg, shell->inertia_per_kg, sizeof head.inertia_per_kg);
    memcpy(bytes, &head, sizeof head);
    memcpy(bytes + sizeof head, shell->offsets_m, offsets);
    content_hash(bytes, sizeof head + offsets, bytes + sizeof head + offsets);
    *out = (struct raster_bytes){bytes, sizeof head + offsets + HASH_BYTES};
    return err->code = ERR_OK;
}

static enum err_code check(const struct shell_head *head, const uint8_t *bytes, size_t length,
                           const uint8_t *model_hash, double radius_m, struct err *err)
{
    uint8_t hash[HASH_BYTES];

    if (memcmp(head->magic, "KSHL", 4) != 0)
        return err_set(err, ERR_DAMAGED, "a kept shell does not begin as one");
    if (head->version != SHELL_VERSION)
        return err_set(err, ERR_DAMAGED, "a kept shell has version %u, not %d", head->version,
                       SHELL_VERSION);
    if (head->particles == 0 || head->particles > SHELL_SPHERES_MAX ||
        length != sizeof *head + head->particles * 3 * sizeof(float) + HASH_BYTES)
        return err_set(err, ERR_DAMAGED, "a kept shell of %u spheres has %zu bytes",
                       head->particles, length);
    content_hash(bytes, length - HASH_BYTES, hash);
    if (memcmp(hash, bytes + length - HASH_BYTES, HASH_BYTES) != 0)
        return err_set(err, ERR_DAMAGED, "a kept shell is not what was written (checksum)");
    if (memcmp(head->model_hash, model_hash, SHELL_HASH_BYTES) != 0)
        return err_set(err, ERR_DAMAGED, "a kept shell is of another model");
    if (head->radius_m != radius_m)
        return err_set(err, ERR_DAMAGED, "a kept shell has a radius of %g m, not %g m",
                       head->radius_m, radius_m);
    return err->code = ERR_OK;
}

enum err_code shell_decode(const void *bytes, size_t length, const uint8_t *model_hash,
                           double radius_m, struct shell *out, struct err *err)
{
    struct shell_head head;

    *out = (struct shell){.particles = 0};
    if (length < sizeof head + HASH_BYTES)
        return err_set(err, ERR_DAMAGED, "a kept shell has %zu bytes", length);
    memcpy(&head, bytes, sizeof head);
    if (check(&head, bytes, length, model_hash, radius_m, err))
        return err->code;
    out->offsets_m = malloc(head.particles * sizeof *out->offsets_m);
    if (!out->offsets_m)
        return err_set(err, ERR_NO_MEMORY, "no memory for a shell of %u spheres", head.particles);
    memcpy(out->offsets_m, (const uint8_t *)bytes + sizeof head,
           head.particles * sizeof *out->offsets_m);
    out->radius_m = head.radius_m;
    out->volume_m3 = head.volume_m3;
    out->centre = (struct vec3){head.centre[0], head.centre[1], head.centre[2]};
    memcpy(out->inertia_per_kg, head.inertia_per_kg, sizeof out->inertia_per_kg);
    out->extent_m = head.extent_m;
    out->protrusion_m = head.protrusion_m;
    out->particles = head.particles;
    return ERR_OK;
}
