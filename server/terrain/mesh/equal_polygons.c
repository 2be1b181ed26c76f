/*
 * Equal polygons, by a hash table of their corners.
 *
 * A pile of equal polygons would make each question as long as the pile is high. Of two at one
 * place the first answers, so the others need not be in a tree at all. Equal means the same bits:
 * the same triangle that begins at another corner is rounded in another way, and is kept.
 *
 * A search ends after PROBES_MAX places, so that corners chosen to collide cost no more than
 * others; an equal that is not found then is kept as a different polygon.
 */
#include "terrain/mesh/equal_polygons.h"

#include "base/huge.h"
#include "terrain/crew.h"

#include <stdlib.h>
#include <string.h>

enum { PROBES_MAX = 32, AHEAD = 16, CHUNK = 1 << 14 };

/* A place in the table: the index of a polygon, and above it half of its hash. */
#define EMPTY UINT64_MAX
#define INDEX UINT32_MAX

static const char *record_of(const struct ray_tree_polygons *p, size_t i)
{
    return (const char *)p->records + i * p->record_bytes;
}

static uint64_t hash_of(const struct ray_tree_polygons *p, size_t i)
{
    struct face face = ray_tree_face(p, i);
    uint64_t hash = face.count;

    for (uint32_t k = 0; k < face.count; k++) {
        struct vec3 at = face_at(&face, k);
        uint64_t bits[3];

        memcpy(bits, &at, sizeof bits);
        for (int a = 0; a < 3; a++) {
            hash = (hash ^ bits[a]) * 0x9e3779b97f4a7c15u;
            hash ^= hash >> 32;
        }
    }
    return hash;
}

bool equal_polygons_are(const struct ray_tree_polygons *p, size_t a, size_t b)
{
    struct face x = ray_tree_face(p, a), y = ray_tree_face(p, b);

    if (x.count != y.count ||
        (p->records && memcmp(record_of(p, a), record_of(p, b), p->record_bytes) != 0))
        return false;
    for (uint32_t k = 0; k < x.count; k++) {
        struct vec3 from_x = face_at(&x, k), from_y = face_at(&y, k);

        if (memcmp(&from_x, &from_y, sizeof from_x) != 0)
            return false;
    }
    return true;
}

struct hashing {
    const struct ray_tree_polygons *polygons;
    size_t first;
    uint64_t *hashes; /* from the first on */
};

static void hash_work(void *context, size_t chunk)
{
    const struct hashing *h = context;
    size_t begin = h->first + chunk * CHUNK, end = begin + CHUNK;

    for (size_t i = begin; i < end && i < h->polygons->count; i++)
        h->hashes[i - h->first] = hash_of(h->polygons, i);
}

/* The table is empty. */
static size_t table_fill(const struct hashing *h, uint64_t *table, size_t slots, uint32_t *same)
{
    const struct ray_tree_polygons *polygons = h->polygons;
    size_t others = 0;

    for (size_t i = h->first; i < polygons->count; i++) {
        uint64_t hash = h->hashes[i - h->first], own = (hash & ~(uint64_t)INDEX) | i;
        size_t at = hash & (slots - 1), ahead = i - h->first + AHEAD;
        unsigned probes = 0;

        if (ahead < polygons->count - h->first)
            __builtin_prefetch(&table[h->hashes[ahead] & (slots - 1)], 1);

        while (probes < PROBES_MAX && table[at] != EMPTY &&
               ((table[at] ^ own) > INDEX || !equal_polygons_are(polygons, table[at] & INDEX, i))) {
            at = (at + 1) & (slots - 1);
            probes++;
        }
        same[i] = (uint32_t)i;
        if (probes == PROBES_MAX)
            continue;
        if (table[at] == EMPTY)
            table[at] = own;
        same[i] = (uint32_t)table[at];
        others += same[i] != i;
    }
    return others;
}

size_t equal_polygons_find(const struct ray_tree_polygons *polygons, size_t first, uint32_t *same)
{
    size_t count = polygons->count - first, slots = 2 * PROBES_MAX, others = SIZE_MAX;
    struct hashing h = {polygons, first, huge_alloc(count * sizeof *h.hashes)};
    struct err err = {.code = ERR_OK};
    uint64_t *table;

    while (slots < 2 * count)
        slots *= 2;
    table = huge_alloc(slots * sizeof *table);
    if (h.hashes && table) {
        crew_run(polygons->crew, NULL, hash_work, &h, (count + CHUNK - 1) / CHUNK, &err);
        memset(table, 0xff, slots * sizeof *table);
        others = table_fill(&h, table, slots, same);
    }
    free(h.hashes);
    free(table);
    return others;
}
