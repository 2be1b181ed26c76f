/*
 * Answers about ground, as arrays of structs or of numbers.
 *
 * An answer has exactly as many results as the request has items; another count is an error, and so
 * is a result without its status. Nothing is written beyond the caller's count.
 */
#include "client/lib/read.h"

#include "client/lib/answer.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const char *const ground_words[] = {"ok", "below", "hole", "outside", "too_far", NULL};

/* The first of results[count]; NULL: there is none, or the answer's error is set. */
static const cJSON *first_result(struct kota_answer *answer, size_t count)
{
    const cJSON *document = read_document(answer);
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(document, "results");

    if (!document)
        return NULL;
    if (!cJSON_IsArray(array) || (size_t)cJSON_GetArraySize(array) != count) {
        read_fail(answer, "the answer has %d results, %zu were expected",
                  cJSON_IsArray(array) ? cJSON_GetArraySize(array) : 0, count);
        return NULL;
    }
    return array->child;
}

static bool read_ground(struct kota_answer *answer, const cJSON *item, size_t index,
                        enum kota_ground *status)
{
    int place;

    if (!read_word(item, "status", ground_words, &place))
        return read_fail(answer, "result %zu has no status", index);
    *status = (enum kota_ground)place;
    return true;
}

static bool read_height(struct kota_answer *answer, const cJSON *item, size_t index,
                        struct kota_height *height)
{
    if (!read_ground(answer, item, index, &height->status))
        return false;
    height->height_m = read_double(item, "height");
    read_vector(item, "normal", height->normal, 3);
    height->has_cell = read_uints(item, "cell", height->cell, 2);
    return true;
}

bool kota_read_height(struct kota_answer *answer, struct kota_height *heights, size_t count)
{
    const cJSON *document = read_document(answer), *item;

    /* the answer to a GET is the result itself */
    if (count == 1 && cJSON_HasObjectItem(document, "height"))
        return read_height(answer, document, 0, heights);
    item = first_result(answer, count);
    for (size_t i = 0; item; item = item->next, i++)
        if (!read_height(answer, item, i, &heights[i]))
            return false;
    return read_is_well(answer);
}

bool kota_read_profile(struct kota_answer *answer, struct kota_profile_point *points,
                       size_t capacity, size_t *count)
{
    const cJSON *document = read_document(answer), *item;
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(document, "results");
    size_t i = 0;

    if (!document)
        return false;
    if (!cJSON_IsArray(array))
        return read_fail(answer, "the answer has no results");
    cJSON_ArrayForEach(item, array)
    {
        struct kota_profile_point *point = &points[i];

        if (i < capacity) {
            if (!read_ground(answer, item, i, &point->status))
                return false;
            point->distance_m = read_double(item, "distance");
            read_vector(item, "point", point->point, 3);
        }
        i++;
    }
    *count = i;
    return true;
}

static void read_surface(const cJSON *object, const char *name, struct kota_surface *surface)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    surface->is_there = cJSON_IsObject(item);
    read_vector(item, "point", surface->point, 3);
    read_vector(item, "normal", surface->normal, 3);
    surface->distance_m = read_double(item, "distance");
    surface->slope_deg = read_double(item, "slope_deg");
    surface->layer = read_string(item, "layer");
    surface->has_cell = read_uints(item, "cell", surface->cell, 2);
    surface->polygon = read_uint(item, "polygon");
}

bool kota_read_contact(struct kota_answer *answer, struct kota_contact *contacts, size_t count)
{
    const cJSON *item = first_result(answer, count);

    for (size_t i = 0; item; item = item->next, i++) {
        if (!read_ground(answer, item, i, &contacts[i].status))
            return false;
        contacts[i].locale = read_string(item, "locale");
        contacts[i].hint_is_unknown = read_string(item, "hint") != NULL;
        read_surface(item, "floor", &contacts[i].floor);
        read_surface(item, "ceiling", &contacts[i].ceiling);
        contacts[i].has_placed = read_vector(item, "placed", contacts[i].placed, 3);
    }
    return read_is_well(answer);
}

bool kota_read_contact_footprints(struct kota_answer *answer, struct kota_footprint *footprints,
                                  size_t count)
{
    const cJSON *item = first_result(answer, count);

    for (size_t i = 0; item; item = item->next, i++) {
        const cJSON *plane = cJSON_GetObjectItemCaseSensitive(item, "plane");

        if (!read_ground(answer, item, i, &footprints[i].status))
            return false;
        footprints[i].has_plane = read_vector(plane, "normal", footprints[i].normal, 3);
        footprints[i].d = read_double(plane, "d");
    }
    return read_is_well(answer);
}

/* ---- rays, sight, picking -------------------------------------------------------------------- */

static void read_hit(const cJSON *item, struct kota_hit *hit)
{
    hit->t = read_double(item, "t");
    hit->distance_m = read_double(item, "distance");
    read_vector(item, "point", hit->point, 3);
    read_vector(item, "normal", hit->normal, 3);
    hit->layer = read_string(item, "layer");
    hit->locale = read_string(item, "locale");
    hit->has_cell = read_uints(item, "cell", hit->cell, 2);
    hit->triangle = read_double(item, "triangle") == 1;
    hit->polygon = read_uint(item, "polygon");
}

/* A member that is a hit, or null: a miss. */
static const cJSON *read_hit_of(const cJSON *item, const char *name, struct kota_hit *hit)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(item, name);

    read_hit(member, hit);
    hit->status = cJSON_IsObject(member) ? KOTA_RAY_HIT : KOTA_RAY_MISS;
    return member;
}

bool kota_read_ray(struct kota_answer *answer, struct kota_hit *hits, size_t count)
{
    static const char *const words[] = {"hit", "miss", "invalid", NULL};
    const cJSON *item = first_result(answer, count);
    int place;

    for (size_t i = 0; item; item = item->next, i++) {
        if (!read_word(item, "status", words, &place))
            return read_fail(answer, "result %zu has no status", i);
        read_hit(item, &hits[i]);
        hits[i].status = (enum kota_ray_status)place;
    }
    return read_is_well(answer);
}

bool kota_read_all(struct kota_answer *answer, struct kota_hit *hits, size_t *found, size_t count,
                   unsigned hits_max)
{
    const cJSON *item = first_result(answer, count), *hit;

    for (size_t i = 0; item; item = item->next, i++) {
        const cJSON *all = cJSON_GetObjectItemCaseSensitive(item, "hits");

        if (!cJSON_IsArray(all))
            return read_fail(answer, "result %zu has no hits", i);
        found[i] = 0;
        cJSON_ArrayForEach(hit, all)
        {
            struct kota_hit *at = &hits[i * hits_max + found[i]];

            if (found[i] == hits_max)
                return read_fail(answer, "result %zu has more than %u hits", i, hits_max);
            read_hit(hit, at);
            if (isnan(at->t))
                at->t = read_double(hit, "fraction");
            at->status = KOTA_RAY_HIT;
            found[i]++;
        }
    }
    return read_is_well(answer);
}

bool kota_read_los(struct kota_answer *answer, struct kota_los *sights, size_t count)
{
    const cJSON *item = first_result(answer, count);

    for (size_t i = 0; item; item = item->next, i++) {
        if (!read_bool(item, "visible", &sights[i].visible))
            return read_fail(answer, "result %zu does not say whether it is visible", i);
        sights[i].fraction = read_double(item, "fraction");
        read_vector(item, "point", sights[i].point, 3);
    }
    return read_is_well(answer);
}

bool kota_read_lit(struct kota_answer *answer, struct kota_lit *lit, size_t count)
{
    const cJSON *item = first_result(answer, count);

    for (size_t i = 0; item; item = item->next, i++) {
        if (!read_bool(item, "lit", &lit[i].lit))
            return read_fail(answer, "result %zu does not say whether it is lit", i);
        read_hit_of(item, "occluder", &lit[i].occluder);
    }
    return read_is_well(answer);
}

bool kota_read_sweep(struct kota_answer *answer, struct kota_touch *touches, size_t count)
{
    const cJSON *item = first_result(answer, count);

    for (size_t i = 0; item; item = item->next, i++) {
        if (!read_bool(item, "starts_inside", &touches[i].starts_inside))
            return read_fail(answer, "result %zu does not say whether it starts inside", i);
        touches[i].fraction = read_double(item, "fraction");
        read_hit(item, &touches[i].hit);
        touches[i].hit.status = isnan(touches[i].fraction) ? KOTA_RAY_MISS : KOTA_RAY_HIT;
    }
    return read_is_well(answer);
}

static void read_moved(const cJSON *item, struct kota_moved *moved)
{
    const cJSON *hit;

    read_vector(item, "to", moved->to, 3);
    moved->starts_inside = read_true(item, "starts_inside");
    moved->is_reachable = read_true(item, "reachable");
    moved->slope_deg = read_double(read_hit_of(item, "floor", &moved->floor), "slope_deg");
    moved->hit_count = 0;
    cJSON_ArrayForEach(hit, cJSON_GetObjectItemCaseSensitive(item, "hits"))
    {
        if (moved->hit_count == KOTA_MOVE_HITS_MAX)
            break;
        read_hit(hit, &moved->hits[moved->hit_count]);
        moved->hits[moved->hit_count++].status = KOTA_RAY_HIT;
    }
}

bool kota_read_move(struct kota_answer *answer, struct kota_moved *moved, size_t count)
{
    const cJSON *item = first_result(answer, count);

    for (size_t i = 0; item; item = item->next, i++) {
        if (!read_bool(item, "grounded", &moved[i].is_grounded))
            return read_fail(answer, "result %zu does not say whether it is grounded", i);
        read_moved(item, &moved[i]);
    }
    return read_is_well(answer);
}

bool kota_read_pick(struct kota_answer *answer, struct kota_picked *picked)
{
    static const char *const words[] = {"hit", "miss", NULL};
    const cJSON *document = read_document(answer);
    const cJSON *tile = cJSON_GetObjectItemCaseSensitive(document, "tile");
    const cJSON *locale = cJSON_GetObjectItemCaseSensitive(document, "locale");
    bool is_hex = cJSON_HasObjectItem(tile, "q"), is_plan = cJSON_HasObjectItem(tile, "shape");
    double column, row, side;
    int place;

    if (!document)
        return false;
    if (!read_word(document, "status", words, &place))
        return read_fail(answer, "the answer says neither hit nor miss");
    read_hit(cJSON_GetObjectItemCaseSensitive(document, "hit"), &picked->hit);
    picked->hit.status = (enum kota_ray_status)place;
    picked->hit.locale = cJSON_GetStringValue(locale);
    column = read_double(tile, is_hex ? "q" : "column");
    row = read_double(tile, is_hex ? "r" : "row");
    side = is_plan ? 0 : read_double(tile, "side");
    picked->has_tile =
        fabs(column) < 1e16 && fabs(row) < 1e16 && (is_plan || (side >= 1 && side < 4e9));
    picked->column = picked->has_tile ? (int64_t)column : 0;
    picked->row = picked->has_tile ? (int64_t)row : 0;
    picked->side = picked->has_tile ? (uint32_t)side : 0;
    read_vector(tile, "center", picked->center, 3);
    read_box(tile, "bounds", picked->min, picked->max);
    return true;
}

/* ---- containment ----------------------------------------------------------------------------- */

bool kota_read_contains(struct kota_answer *answer, uint8_t *bits, size_t count)
{
    static const char *const words[] = {"inside", "below", "hole", "outside", NULL};
    static const uint8_t status_bits[] = {KOTA_INSIDE, 0, KOTA_OVER_HOLE, KOTA_OUTSIDE};
    const cJSON *item = first_result(answer, count);
    int place;

    for (size_t i = 0; item; item = item->next, i++) {
        if (!read_word(item, "status", words, &place))
            return read_fail(answer, "result %zu has no status", i);
        bits[i] = status_bits[place];
        if (read_true(item, "floor"))
            bits[i] |= KOTA_HAS_FLOOR;
        if (read_true(item, "ceiling"))
            bits[i] |= KOTA_HAS_CEILING;
    }
    return read_is_well(answer);
}

bool kota_read_locate(struct kota_answer *answer, struct kota_place *places, size_t count)
{
    const cJSON *item = first_result(answer, count);

    for (size_t i = 0; item; item = item->next, i++) {
        places[i].locale = read_string(item, "locale");
        read_vector(item, "point", places[i].point, 3);
        places[i].changed = read_true(item, "changed");
        places[i].hint_is_unknown = read_string(item, "hint") != NULL;
    }
    return read_is_well(answer);
}

/* ---- binary ---------------------------------------------------------------------------------- */

/* The bytes come from malloc, so they are aligned for any number. */
static const void *numbers(struct kota_answer *answer, size_t count, size_t per_item, size_t size,
                           const char *media_type)
{
    const char *type;

    if (!answer || answer->error.kind)
        return NULL;
    type = kota_answer_header(answer, "Content-Type");
    if (!type || strncmp(type, media_type, strlen(media_type)) != 0)
        read_fail(answer, "the answer is '%.60s', '%s' was expected", type ? type : "", media_type);
    else if (per_item == 0 || count > SIZE_MAX / size / per_item ||
             answer->body.length != count * per_item * size)
        read_fail(answer, "the answer has %zu bytes, %zu × %zu numbers of %zu were expected",
                  answer->body.length, count, per_item, size);
    return answer->error.kind ? NULL : text_string(&answer->body);
}

const float *kota_read_f32(struct kota_answer *answer, size_t count, size_t per_item)
{
    return numbers(answer, count, per_item, sizeof(float), "application/vnd.kota.f32");
}

const double *kota_read_f64(struct kota_answer *answer, size_t count, size_t per_item)
{
    return numbers(answer, count, per_item, sizeof(double), "application/vnd.kota.f64");
}

const uint8_t *kota_read_bytes(struct kota_answer *answer, size_t count)
{
    return numbers(answer, count, 1, 1, "application/vnd.kota.f");
}

const float *kota_read_tile(struct kota_answer *answer)
{
    return kota_read_f32(answer, KOTA_TILE_SIDE, KOTA_TILE_SIDE);
}
