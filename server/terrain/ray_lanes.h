/*
 * Many rays by AVX-512, a lane a ray: ray_avx512.c includes this.
 *
 * Problem: a ray's next node depends on the answer of the last one. Alone, a ray waits for its
 * answers and guesses its jumps; rays that take turns (ray_descent.h) hide the waiting, but still
 * spend forty instructions and a guess on each node. Approach: the scalar walk of ray.c, for
 * sixteen rays at a time and without a branch. Each lane is at its own cell and asks a node of its
 * own level: float32 finds the line by which it leaves the node, and what the node's bounds say
 * makes it go down a level or jump over the line (ray_lanes_step.h). A lane whose ray is answered
 * waits until there are eight such, which take the next eight rays together (ray_begin_eight.h).
 * Groups of lanes go in turns, so that a group's loads are under way while others compute.
 *
 * float32 may decide what is certain only. Where two crossings are nearer to each other than their
 * error, or a jump lands within the error of a line, ray_leave_node decides in float64 for that
 * lane; so the path is that of ray.c, cell by cell. Heights are padded. A cell whose heights may be
 * met joins a list, and its lane waits; eight at once go through the walk's own arithmetic
 * (ray_eight.h). So the answer has the bits of ray.c's. Rays do not begin at the root, whose
 * heights nearly every ray meets, but at a node of 128×128 cells; the walk goes up from there by
 * itself.
 *
 * What nobody can guess is no branch: cells and idle lanes join their lists by compressed stores,
 * whether there are any or none.
 *
 * Invariants: column and row of a lane are the cell where its ray enters the node it asks next, on
 * the exact path; t is that of the entry within the pad. A lane without a ray is not moved.
 *
 * Left to ray_alone.h: rays that hardly move along an axis, whose crossings are uncertain all the
 * time. Left to ray_descent.h: fields so wide that float32 has too few bits for their cells, and
 * those with large leaves.
 */
#ifndef KOTA_TERRAIN_RAY_LANES_H
#define KOTA_TERRAIN_RAY_LANES_H
#ifdef __AVX512F__ /* empty for a file that is not compiled for it */

#include "terrain/ray_descent.h"
#include "terrain/ray_end_eight.h"
#include "terrain/ray_lanes_step.h"

enum {
    LANES_LATE = 4,  /* turns from a group's step until it asks: what was written is in the cache */
    LANES_LEAST = 64 /* rays that are worth it */
};

_Static_assert(sizeof(struct walk) % 64 == 0, "what eight share of a walk is in whole lines");

/* The rays of a batch: up to `next` they are begun. */
struct lanes_rays {
    const struct ray *rays;
    struct ray_hit *hits;
    size_t count, next;
};

/* All lanes, by id, and what they have. */
struct lanes_all {
    struct lanes groups[LANES_GROUPS];
    _Alignas(64) struct walk w[LANES_GROUPS * LANES];
    size_t ray[LANES_GROUPS * LANES];
    struct lanes_list cells; /* those that wait for the cell they have left to be tested */
    struct lanes_list idle;  /* those without a ray */
    struct lanes_rays rays;
    struct eight_begun begun;
};

/* A lane has ray k of those that have begun. */
static inline void lanes_put(struct lanes_all *all, uint32_t id, int k, size_t ray)
{
    const struct eight_begun *b = &all->begun;
    struct lanes *l = &all->groups[id / LANES];
    uint32_t i = id % LANES, falls = b->falls >> k & 1;

    l->inv_u[i] = b->inv_u[k];
    l->inv_v[i] = b->inv_v[k];
    l->off_u[i] = b->off_u[k];
    l->off_v[i] = b->off_v[k];
    l->u0[i] = b->u0[k];
    l->v0[i] = b->v0[k];
    l->du[i] = b->du[k];
    l->dv[i] = b->dv[k];
    l->pad_u[i] = b->pad_u[k];
    l->pad_v[i] = b->pad_v[k];
    l->z_low[i] = b->z_low[k];
    l->z_high[i] = b->z_high[k];
    l->dz[i] = b->dz[k];
    l->t_end[i] = b->t_end[k];
    l->t[i] = b->t[k];
    l->last_column[i] = b->last_column[k];
    l->last_row[i] = b->last_row[k];
    l->mirrors[i] = b->mirrors[k];
    l->column[i] = b->column[k];
    l->row[i] = b->row[k];
    l->level[i] = LANES_BEGIN;
    l->falls = (uint16_t)((l->falls & ~(1u << i)) | falls << i);
    l->busy |= (uint16_t)(1u << i);
    all->ray[id] = ray;
}

/* The answer of a ray whose walk tells how it hits. */
static inline void lanes_answer(struct lanes_rays *r, const struct walk *w, size_t ray)
{
    if (!ray_end(w, &r->rays[ray], &r->hits[ray]))
        r->hits[ray].t = INFINITY;
}

/* Ray k of those that have begun needs no lane, or is none for lanes, and is answered. */
static bool lanes_is_answered(struct lanes_all *all, int k, struct walk *w, size_t ray)
{
    const struct eight_begun *b = &all->begun;
    struct lanes_rays *r = &all->rays;

    if ((b->misses >> k & 1) != 0)
        return true;
    if ((b->alone >> k & 1) != 0) {
        if (!ray_alone_avx512(b->field, &r->rays[ray], &r->hits[ray]))
            r->hits[ray].t = INFINITY;
        return true;
    }
    if ((b->may_start_on >> k & 1) == 0 || !ray_touches(w, 0))
        return false;
    lanes_answer(r, w, ray);
    return true;
}

/* The next rays, up to eight of them, for lanes without one. */
static void lanes_refill(struct lanes_all *all, uint32_t count)
{
    struct lanes_rays *r = &all->rays;
    struct ray few[EIGHT];
    const struct ray *rays = &r->rays[r->next];
    uint32_t *idle = &all->idle.id[all->idle.count - count], kept = 0;
    struct walk spare, *w[EIGHT];

    for (size_t i = r->next + EIGHT; i < r->next + 2 * EIGHT && i < r->count; i++) {
        __builtin_prefetch(&r->rays[i]);
        __builtin_prefetch(&r->hits[i], 1); /* else stores wait for it, in order */
    }
    for (uint32_t i = 0; i < EIGHT; i++)
        w[i] = i < count ? &all->w[idle[i]] : &spare;
    if (count < EIGHT) { /* the last one again and again */
        for (uint32_t i = 0; i < EIGHT; i++)
            few[i] = rays[i < count ? i : count - 1];
        rays = few;
    }
    eight_begin(&all->begun, rays, w);
    uint32_t special = all->begun.misses | all->begun.alone | all->begun.may_start_on;

    for (uint32_t k = 0; k < count; k++) {
        size_t ray = r->next + k;

        r->hits[ray].t = INFINITY;
        if ((special >> k & 1) != 0 && lanes_is_answered(all, (int)k, w[k], ray))
            idle[kept++] = idle[k];
        else
            lanes_put(all, idle[k], (int)k, ray);
    }
    all->idle.count -= count - kept;
    r->next += count;
}

/* Eight lanes without a ray, or as many as there are rays left, get new ones. */
static inline void lanes_next(struct lanes_all *all)
{
    size_t left = all->rays.count - all->rays.next;
    uint32_t count = left < EIGHT ? (uint32_t)left : EIGHT;

    while (count != 0 && all->idle.count >= count) {
        lanes_refill(all, count);
        left = all->rays.count - all->rays.next;
        count = left < EIGHT ? (uint32_t)left : EIGHT;
    }
}

/* Eight cells of the queue, or what it has. */
static inline void lanes_take_cells(struct lanes_all *all)
{
    struct lanes_list *list = &all->cells;
    uint32_t count = list->count < EIGHT ? list->count : EIGHT, first = list->count - count;
    const float *at[EIGHT];
    int32_t column[EIGHT], row[EIGHT];
    struct eight_asked asked = {.cells = {.at = at, .column = column, .row = row}};

    list->count = first;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = list->id[first + i], place;
        const struct lanes *l = &all->groups[id / LANES];

        place = (uint32_t)l->place[id % LANES];
        asked.cells.w[i] = &all->w[id];
        asked.ray[i] = &all->rays.rays[all->ray[id]];
        asked.hit[i] = &all->rays.hits[all->ray[id]];
        at[i] = (const float *)(const void *)l->at[id % LANES];
        column[i] = (int32_t)(place & 0xffff);
        row[i] = (int32_t)(place >> 16);
    }
    uint32_t left, hits;

    if (count == EIGHT)
        hits = eight_cells_end(&asked, &left);
    else
        hits = left = eight_few_hit(&asked.cells, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = list->id[first + i], lane = id % LANES;
        struct lanes *l = &all->groups[id / LANES];
        uint32_t is_over = (hits >> i & 1) | (l->ending >> lane & 1);

        l->parked &= (uint16_t) ~(1u << lane);
        l->busy &= (uint16_t) ~(is_over << lane);
        all->idle.id[all->idle.count] = id;
        all->idle.count += is_over;
    }
    for (; left != 0; left &= left - 1) {
        uint32_t id = list->id[first + (uint32_t)__builtin_ctz(left)];

        lanes_answer(&all->rays, &all->w[id], all->ray[id]);
    }
}

static void lanes_init(struct lanes_all *all, const struct heightfield *field,
                       const struct ray *rays, size_t count, struct ray_hit *hits)
{
    all->rays = (struct lanes_rays){rays, hits, count, 0};
    eight_begun_init(&all->begun, field);
    memset(all->groups, 0, sizeof all->groups); /* a lane without a ray is at the first cell */
    all->cells.count = 0;
    all->idle.count = LANES_GROUPS * LANES;
    for (uint32_t id = 0; id < LANES_GROUPS * LANES; id++) {
        struct lanes *l = &all->groups[id / LANES];

        l->id[id % LANES] = (int32_t)id;
        l->at[id % LANES] = l->next_row[id % LANES] = (const char *)field->tiles[0]->nodes;
        eight_walk_init(&all->begun, &all->w[id]);
        all->idle.id[LANES_GROUPS * LANES - 1 - id] = id; /* the first group first */
    }
}

static void lanes_many(const struct lanes_field *lf, const struct ray *rays, size_t count,
                       struct ray_hit *hits)
{
    struct lanes_all all;
    struct lanes *before[LANES_LATE]; /* the last ones to step */
    uint32_t busy, active, turn = 0;

    lanes_init(&all, lf->field, rays, count, hits);
    lanes_next(&all);
    for (int g = 0; g < LANES_GROUPS; g++)
        lanes_ask(&all.groups[g], lf);
    for (uint32_t i = 0; i < LANES_LATE; i++)
        before[i] = &all.groups[0];
    do {
        busy = active = 0;
        for (int g = 0; g < LANES_GROUPS; g++) {
            struct lanes *l = &all.groups[g], **oldest = &before[turn++ % LANES_LATE];

            if (l->busy == 0)
                continue;
            if (!l->has_asked) /* there are few left */
                lanes_ask(l, lf);
            lanes_step(l, lf, &all.w[g * LANES], &all.cells, &all.idle);
            l->has_asked = false;
            if (!(*oldest)->has_asked)
                lanes_ask(*oldest, lf);
            *oldest = l;
            while (all.cells.count >= EIGHT)
                lanes_take_cells(&all);
            lanes_next(&all);
            busy |= l->busy;
            active |= l->busy & ~(uint32_t)l->parked;
        }
        if (active == 0 && all.cells.count != 0) {
            lanes_take_cells(&all);
            lanes_next(&all);
            busy |= 1; /* perhaps */
        }
    } while (busy != 0);
}
#endif
#endif
