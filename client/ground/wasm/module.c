/*
 * libkota-ground as kota_ground.wasm, for client/web/kota_replica.js.
 *
 * Problem: JavaScript has no structs and no 64-bit numbers to pass. Approach: an instance of the
 * module follows one locale, so its memory goes with it. JavaScript brings the HTTP: it asks
 * module_next, fetches, and hands the bytes to module_give and module_feed. Structs of
 * kota-ground.h are read where they lie, at the offsets that are checked below; revisions are
 * doubles.
 */
#include "../kota-ground.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A function of the module, which no header declares. */
#pragma clang diagnostic ignored "-Wmissing-prototypes"
#define EXPORT(name) __attribute__((export_name(#name)))

enum { ID_BYTES = 68 };

static struct kota_ground_copy *copy;
static struct kota_ground_reader *reader;
static const struct kota_ground_locale *locale; /* of the newest view; NULL: none yet */
static char followed[ID_BYTES];

static struct kota_ground_need need;
static struct kota_ground_following following;
static struct kota_ground_error error;
static struct kota_ground_ray ray;
static struct kota_ground_hit hit;
static struct kota_ground_contact contact;
static struct kota_ground_sight sight;
static struct kota_ground_touch touch;
static struct kota_ground_moved moved;

/* What kota_replica.js reads. */
#define AT(type, member, offset)                                                                   \
    _Static_assert(offsetof(struct type, member) == (offset), #type " " #member)
AT(kota_ground_need, number, 0);
AT(kota_ground_need, kind, 4);
AT(kota_ground_need, is_samples, 8);
AT(kota_ground_need, accept, 80);
AT(kota_ground_need, if_none_match, 112);
AT(kota_ground_need, path, 368);
AT(kota_ground_error, code, 0);
AT(kota_ground_error, message, 168);
AT(kota_ground_following, revision, 0);
AT(kota_ground_following, transform_seq, 8);
AT(kota_ground_following, heard, 16);
AT(kota_ground_following, frames, 24);
AT(kota_ground_following, state, 32);
AT(kota_ground_following, is_fed, 36);
AT(kota_ground_following, error, 40);
AT(kota_ground_hit, velocity, 64);
AT(kota_ground_hit, layer, 88);
AT(kota_ground_hit, status, 96);
AT(kota_ground_hit, polygon, 116);
AT(kota_ground_surface, slope_deg, 56);
AT(kota_ground_surface, velocity, 64);
AT(kota_ground_surface, layer, 88);
AT(kota_ground_surface, polygon, 104);
AT(kota_ground_contact, ceiling, 112);
AT(kota_ground_contact, placed, 224);
AT(kota_ground_contact, status, 252);
AT(kota_ground_sight, point, 8);
AT(kota_ground_sight, is_visible, 32);
AT(kota_ground_sight, is_absent, 36);
AT(kota_ground_sweep, shape.kind, 32);
AT(kota_ground_sweep, from, 40);
AT(kota_ground_sweep, to, 64);
AT(kota_ground_touch, starts_inside, 120);
AT(kota_ground_move, from, 40);
AT(kota_ground_move, dt_s, 88);
AT(kota_ground_move, claimed, 120);
AT(kota_ground_moved, slope_deg, 24);
AT(kota_ground_moved, floor, 32);
AT(kota_ground_moved, hits, 152);
AT(kota_ground_moved, hit_count, 752);
AT(kota_ground_moved, is_absent, 768);

/* ---- following ------------------------------------------------------------------------------ */

/* What is whole is published, and asked from now on. */
static void refresh(void)
{
    kota_ground_publish(copy, NULL);
    locale = kota_ground_locale(kota_ground_newest(reader), followed);
}

/* Room for bytes of JavaScript, which calls free; 0: none. */
EXPORT(module_alloc)
void *module_alloc(uint32_t bytes)
{
    return malloc(bytes);
}

EXPORT(module_free)
void module_free(void *bytes)
{
    free(bytes);
}

EXPORT(module_error)
struct kota_ground_error *module_error(void)
{
    return &error;
}

/* Once. bounds: four doubles, or NULL. False: see module_error. */
EXPORT(module_follow)
bool module_follow(const char *id, const double *bounds)
{
    copy = kota_ground_open();
    reader = copy ? kota_ground_reader_open(copy) : NULL;
    if (!reader || strlen(id) >= sizeof followed) {
        strcpy(error.message, reader ? "the id of a locale is too long" : "no memory for a copy");
        return false;
    }
    strcpy(followed, id);
    return kota_ground_follow(copy, followed, bounds, &error);
}

/* Ends it: there is nothing to ask any more. */
EXPORT(module_close)
void module_close(void)
{
    kota_ground_unfollow(copy, followed);
    refresh();
}

/* What to GET next; NULL: nothing now. */
EXPORT(module_next)
struct kota_ground_need *module_next(void)
{
    return kota_ground_next(copy, &need) ? &need : NULL;
}

EXPORT(module_give)
bool module_give(uint32_t number, const void *body, uint32_t length, const char *layout,
                 const char *etag, double revision, uint32_t status)
{
    struct kota_ground_answer answer = {.body = body,
                                        .layout = layout,
                                        .etag = etag,
                                        .revision = (uint64_t)revision,
                                        .length = length,
                                        .status = status};
    bool is_taken = kota_ground_give(copy, number, &answer, &error);

    refresh();
    return is_taken;
}

EXPORT(module_give_up)
void module_give_up(uint32_t number)
{
    kota_ground_give_up(copy, number);
    refresh();
}

EXPORT(module_feed)
bool module_feed(uint32_t number, const void *bytes, uint32_t length)
{
    bool is_taken = kota_ground_feed(copy, number, bytes, length, &error);

    refresh();
    return is_taken;
}

EXPORT(module_following)
const struct kota_ground_following *module_following(void)
{
    kota_ground_following(copy, followed, &following);
    return &following;
}

/* Of the view that is asked; 0: none. */
EXPORT(module_revision)
double module_revision(void)
{
    return locale ? (double)kota_ground_revision(locale) : 0;
}

EXPORT(module_transform_seq)
double module_transform_seq(void)
{
    return locale ? (double)kota_ground_transform_seq(locale) : 0;
}

/* ---- questions ------------------------------------------------------------------------------ */

EXPORT(module_height)
double module_height(double x, double y)
{
    return locale ? kota_ground_height(locale, x, y) : NAN;
}

/* heights_m[count] of xy[2 * count]. */
EXPORT(module_heights)
bool module_heights(const double *xy, uint32_t count, double *heights_m)
{
    return locale && kota_ground_heights_only(locale, NULL, KOTA_GROUND_TRIANGLE, xy, count,
                                              heights_m, &error);
}

/* NULL: there is no view, or see module_error. */
EXPORT(module_ray)
const struct kota_ground_hit *module_ray(double ox, double oy, double oz, double dx, double dy,
                                         double dz, double t_max)
{
    ray = (struct kota_ground_ray){{ox, oy, oz}, {dx, dy, dz}, t_max};
    return locale && kota_ground_rays(locale, NULL, false, &ray, 1, &hit, &error) ? &hit : NULL;
}

/* Why the last ray is invalid. */
EXPORT(module_ray_fault)
const char *module_ray_fault(void)
{
    return kota_ground_ray_fault(&ray);
}

EXPORT(module_contact)
const struct kota_ground_contact *module_contact(double x, double y, double z, double reach_up_m,
                                                 double max_distance_m)
{
    const struct kota_ground_reach reach = {reach_up_m, max_distance_m, NAN, 0, 0};
    const double point[3] = {x, y, z};

    return locale && kota_ground_contacts(locale, NULL, &reach, point, 1, &contact, &error)
               ? &contact
               : NULL;
}

EXPORT(module_sight)
const struct kota_ground_sight *module_sight(double x0, double y0, double z0, double x1, double y1,
                                             double z1)
{
    const struct kota_ground_segment segment = {{x0, y0, z0}, {x1, y1, z1}};

    return locale && kota_ground_sights(locale, NULL, &segment, 1, &sight, &error) ? &sight : NULL;
}

EXPORT(module_sweep)
const struct kota_ground_touch *module_sweep(const struct kota_ground_sweep *sweep)
{
    return locale && kota_ground_sweeps(locale, NULL, sweep, 1, &touch, &error) ? &touch : NULL;
}

EXPORT(module_move)
const struct kota_ground_moved *module_move(const struct kota_ground_move *move)
{
    return locale && kota_ground_moves(locale, NULL, move, 1, &moved, &error) ? &moved : NULL;
}
