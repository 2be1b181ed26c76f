/*
 * Layers that move in a published world: no revision, poses that are whole, rest, what is told.
 */
#include "world/ask/query.h"
#include "world/world.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"
#include "support/pause.h"
#include "support/random.h"

enum { LAYERS = 60, MOVES_A_SECOND = 60, SECONDS = 2, READERS = 2 };

static struct err err;

static struct world_change change_of(enum world_change_kind kind, const char *layer)
{
    struct world_change change = {.kind = kind, .manifest = locale_manifest_default};

    snprintf(change.locale_id, sizeof change.locale_id, "a");
    snprintf(change.layer_id, sizeof change.layer_id, "%s", layer);
    return change;
}

static void apply(struct world *world, const struct world_change *change)
{
    if (world_apply(world, change, &err))
        fail_msg("change of kind %d: %s", (int)change->kind, err.msg);
}

/* A roof of two slopes, 20 by 20, its ridge along y at z = 5: its normal tells how it is turned. */
static struct layer *roof(const char *id)
{
    static const struct vec3 vertices[] = {{-10, -10, 0}, {0, -10, 5},  {0, 10, 5},
                                           {-10, 10, 0},  {10, -10, 0}, {10, 10, 0}};
    static const uint32_t corners[] = {0, 1, 2, 3, 1, 4, 5, 2};
    static const uint32_t starts[] = {0, 4, 8};
    struct polygon_set set;

    assert_int_equal(polygon_set_allocate(6, 2, 8, &set, &err), ERR_OK);
    memcpy(set.vertices, vertices, sizeof vertices);
    memcpy(set.corners, corners, sizeof corners);
    memcpy(set.starts, starts, sizeof starts);
    return layer_create_mesh(id, LAYER_GROUND, &set, (struct vec3){0, 0, -1}, NULL, &err);
}

static void put_roof(struct world *world, const char *id)
{
    struct world_change change = change_of(WORLD_PUT_LAYER, id);

    change.layer = roof(id);
    assert_non_null(change.layer);
    apply(world, &change);
}

static struct world *make_world(size_t readers)
{
    struct world *world = world_create(readers, &world_limits_default, NULL, &err);
    struct world_change change = change_of(WORLD_PUT_LOCALE, "");

    assert_non_null(world);
    apply(world, &change);
    return world;
}

static void move(struct world *world, const char *id, struct vec3 to, double yaw_deg)
{
    struct world_change change = change_of(WORLD_MOVE_LAYER, id);

    change.pose = (struct pose){.translation = to, .yaw_deg = yaw_deg};
    apply(world, &change);
}

/* The layer as it is published; to be let go of with layer_unref. */
static struct layer *published(struct world *world, const char *id, uint64_t *revision,
                               uint64_t *transform_seq)
{
    const struct world_snapshot *snapshot = world_pin(world, 0);
    const struct locale *locale = snapshot_locale(snapshot, "a");
    struct layer *layer = layer_ref((struct layer *)(uintptr_t)locale_layer(locale, id));

    assert_true(snapshot_validate(snapshot, &err));
    *revision = locale->revision;
    *transform_seq = locale->transform_seq;
    world_unpin(world, 0, snapshot);
    world_reader_quiet(world, 0);
    return layer;
}

static void a_move_counts_no_revision_and_is_told(void **state)
{
    struct world *world = make_world(1);
    struct move_event events[8];
    uint64_t revision, seq, after = 0, fed = 0;
    struct feed_event feed[8];
    struct world_stats stats;
    struct layer *layer;
    bool held;

    (void)state;
    world_readers_begin(world);
    put_roof(world, "r");
    put_roof(world, "s");
    move(world, "r", (struct vec3){1, 2, 3}, 90);
    move(world, "s", (struct vec3){4, 5, 6}, 0);
    move(world, "r", (struct vec3){7, 8, 9}, 45);
    layer = published(world, "r", &revision, &seq);
    assert_int_equal(revision, 3);
    assert_int_equal(seq, 3);
    assert_int_equal(layer->transform_seq, 3);
    assert_near(layer->motion.pose.translation.z, 9, 0);
    layer_unref(layer);
    /* each layer's last pose, in the order of the moves */
    assert_int_equal(moves_read(world_moves(world), "a", &after, events, 8), 2);
    assert_string_equal(events[0].layer, "s");
    assert_string_equal(events[1].layer, "r");
    assert_int_equal(events[1].transform_seq, 3);
    assert_near(events[1].motion.pose.yaw_deg, 45, 0);
    assert_int_equal(after, moves_last(world_moves(world)));
    assert_int_equal(moves_read(world_moves(world), "a", &after, events, 8), 0);
    after = 0;
    assert_int_equal(moves_read(world_moves(world), "other", &after, events, 8), 0);
    after = 0;
    assert_int_equal(moves_read(world_moves(world), NULL, &after, events, 1), 1);
    assert_int_equal(moves_read(world_moves(world), NULL, &after, events, 1), 1);
    assert_string_equal(events[0].layer, "r");
    /* the feed has changes alone */
    assert_int_equal(feed_read(world_feed(world), NULL, &fed, feed, 8, &held), 3);
    world_stats(world, &stats);
    assert_int_equal(stats.moves, 3);
    assert_int_equal(stats.changes, 3);
    world_destroy(world);
}

static void what_is_put_anew_stands_where_its_file_says(void **state)
{
    struct world *world = make_world(1);
    struct world_change gone = change_of(WORLD_DELETE_LAYER, "s");
    struct move_event events[8];
    uint64_t revision, seq, after = 0;
    struct layer *layer;

    (void)state;
    world_readers_begin(world);
    put_roof(world, "r");
    put_roof(world, "s");
    move(world, "r", (struct vec3){1, 2, 3}, 90);
    move(world, "s", (struct vec3){1, 2, 3}, 90);
    put_roof(world, "r");
    apply(world, &gone);
    layer = published(world, "r", &revision, &seq);
    assert_false(layer->is_moved);
    assert_int_equal(seq, 2); /* it goes on counting */
    assert_int_equal(moves_read(world_moves(world), NULL, &after, events, 8), 0);
    layer_unref(layer);
    move(world, "r", (struct vec3){5, 0, 0}, 0);
    layer = published(world, "r", &revision, &seq);
    assert_int_equal(seq, 3);
    layer_unref(layer);
    world_destroy(world);
}

static void what_cannot_be_moved_is_refused(void **state)
{
    const struct heightfield_spec spec = {2, 2, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    const float heights_m[4] = {0, 0, 0, 0};
    struct world *world = make_world(1);
    struct world_change put = change_of(WORLD_PUT_LAYER, "field");
    struct world_change move_field = change_of(WORLD_MOVE_LAYER, "field");
    struct world_change move_none = change_of(WORLD_MOVE_LAYER, "none");

    (void)state;
    put.layer = layer_create_heightfield("field", heightfield_create(&spec, heights_m, &err), &err);
    apply(world, &put);
    assert_int_equal(world_apply(world, &move_field, &err), ERR_LAYER_KIND);
    assert_non_null(strstr(err.msg, "heightfield"));
    assert_int_equal(world_apply(world, &move_none, &err), ERR_LAYER_UNKNOWN);
    move_field.if_revision = 1;
    assert_int_equal(world_apply(world, &move_field, &err), ERR_PRECONDITION_FAILED);
    snprintf(move_none.locale_id, sizeof move_none.locale_id, "nowhere");
    assert_int_equal(world_apply(world, &move_none, &err), ERR_LOCALE_UNKNOWN);
    world_destroy(world);
}

static void a_layer_that_moves_no_more_comes_to_rest(void **state)
{
    struct world *world = make_world(1);
    double speed = 0;
    uint64_t revision, seq;
    struct layer *layer;

    (void)state;
    world_readers_begin(world);
    put_roof(world, "r");
    move(world, "r", (struct vec3){0, 0, 0}, 0);
    pause_ms(5);
    move(world, "r", (struct vec3){1, 0, 0}, 0);
    for (int i = 0; i < 1000; i++) {
        layer = published(world, "r", &revision, &seq);
        speed = layer->motion.velocity.x;
        layer_unref(layer);
        if (i == 0 && speed == 0) /* a machine so slow that it rests already */
            break;
        if (speed == 0)
            break;
        pause_ms(10);
    }
    assert_near(speed, 0, 0);
    assert_int_equal(seq, 2); /* it has not moved for that */
    world_destroy(world);
}

/* ---- sixty layers, sixty times a second, two readers ----------------------------------------- */

/* What stands at index k of a layer's way. */
static struct pose pose_at(size_t layer, uint64_t k)
{
    struct random random = {layer * 1000003 + k};

    return (struct pose){.translation = {50.0 * (double)layer + random_in(&random, -3, 3),
                                         random_in(&random, -3, 3), random_in(&random, 0, 100)},
                         .yaw_deg = random_in(&random, -180, 180)};
}

struct expected {
    double height;
    struct vec3 normal;
};

/* Brute force: the roof's two planes, turned by hand. */
static struct expected roof_at(const struct pose *pose, double x, double y)
{
    double angle = pose->yaw_deg * M_PI / 180, c = cos(angle), s = sin(angle);
    double dx = x - pose->translation.x, dy = y - pose->translation.y;
    double along = dx * c + dy * s, side = along < 0 ? -1 : 1;
    double nx = 0.5 * side / sqrt(1.25), nz = 1 / sqrt(1.25);

    return (struct expected){pose->translation.z + 5 - fabs(along) * 0.5, {nx * c, nx * s, nz}};
}

static bool is_like(const struct contact *floor, struct expected want)
{
    return fabs(floor->point.z - want.height) <= 1e-9 &&
           vec3_length(vec3_sub(floor->normal, want.normal)) <= 1e-9;
}

/* The frames of the way: every move up to `finished` is published, none above `started` is made. */
struct way {
    struct world *world;
    _Atomic uint64_t started, finished;
    atomic_int done;
    atomic_bool is_over;
};

struct reading {
    struct way *way;
    size_t reader;
    uint64_t reads, faults;
    char fault[200];
};

/* One request: what it says of a layer twice is of one pose, and that is one of the two. */
static void read_once(struct reading *r, struct random *random)
{
    uint64_t k = atomic_load(&r->way->finished), last;
    const struct world_snapshot *snapshot = world_pin(r->way->world, r->reader);
    const struct locale *locale = snapshot_locale(snapshot, "a");
    struct layer_choice all = {locale, locale->layers, locale->layer_count};
    size_t i = random_below(random, LAYERS);
    double x = 50.0 * (double)i + random_in(random, -4, 4), y = random_in(random, -4, 4);
    struct ray ray = {{x, y, 1000}, {0, 0, -1}, INFINITY};
    struct contacts contacts;
    struct locale_hit hit;
    bool is_one = false, is_hit;

    locale_contact(&all, (struct vec3){x, y, 0}, (struct contact_reach){INFINITY, INFINITY},
                   &contacts);
    is_hit = locale_ray(&all, &ray, RAY_CLOSEST, &hit, NULL);
    last = atomic_load(&r->way->started);
    for (; k <= last && contacts.has_floor; k++) {
        struct pose pose = pose_at(i, k);

        is_one = is_one || is_like(&contacts.floor, roof_at(&pose, x, y));
    }
    r->reads++;
    if (!is_one || !is_hit || hit.at.point.z != contacts.floor.point.z) {
        snprintf(r->fault, sizeof r->fault, "layer %zu at (%.17g %.17g): floor %.17g, ray %.17g", i,
                 x, y, contacts.floor.point.z, is_hit ? hit.at.point.z : NAN);
        r->faults++;
    }
    world_unpin(r->way->world, r->reader, snapshot);
}

static void *read_until_over(void *argument)
{
    struct reading *r = argument;
    struct random random = {r->reader + 1};

    while (!atomic_load(&r->way->is_over)) {
        world_reader_quiet(r->way->world, r->reader);
        for (int i = 0; i < 20; i++)
            read_once(r, &random);
    }
    world_reader_gone(r->way->world, r->reader);
    return NULL;
}

static void count_done(void *context, const struct world_outcome *outcome)
{
    atomic_fetch_add((atomic_int *)context, outcome->code == ERR_OK ? 1 : 1000000);
}

/* One frame: each layer to its next pose. */
static void move_all(struct way *way, uint64_t k)
{
    atomic_store(&way->started, k);
    atomic_store(&way->done, 0);
    for (size_t i = 0; i < LAYERS; i++) {
        struct world_change change = change_of(WORLD_MOVE_LAYER, "");

        snprintf(change.layer_id, sizeof change.layer_id, "l%zu", i);
        change.pose = pose_at(i, k);
        change.done = count_done;
        change.context = &way->done;
        if (world_submit(way->world, &change, &err))
            fail_msg("%s", err.msg);
    }
    while (atomic_load(&way->done) < LAYERS)
        pause_ms(1);
    assert_int_equal(atomic_load(&way->done), LAYERS);
    atomic_store(&way->finished, k);
}

static void readers_see_each_layer_in_one_pose_while_sixty_move(void **state)
{
    struct reading readings[READERS];
    pthread_t threads[READERS];
    struct way way = {.world = make_world(READERS)};

    (void)state;
    for (size_t i = 0; i < LAYERS; i++) {
        char id[8];

        snprintf(id, sizeof id, "l%zu", i);
        put_roof(way.world, id);
    }
    move_all(&way, 0);
    world_readers_begin(way.world);
    for (size_t i = 0; i < READERS; i++) {
        readings[i] = (struct reading){.way = &way, .reader = i};
        assert_int_equal(pthread_create(&threads[i], NULL, read_until_over, &readings[i]), 0);
    }
    for (uint64_t k = 1; k <= MOVES_A_SECOND * SECONDS; k++) {
        struct world_change manifest = change_of(WORLD_PUT_LOCALE, "");

        move_all(&way, k);
        pause_ms(1000 / MOVES_A_SECOND);
        if (k % 30 == 0) /* a revision among them */
            apply(way.world, &manifest);
    }
    atomic_store(&way.is_over, true);
    for (size_t i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        if (readings[i].faults != 0)
            fail_msg("reader %zu: %llu faults in %llu reads: %s", i,
                     (unsigned long long)readings[i].faults, (unsigned long long)readings[i].reads,
                     readings[i].fault);
        assert_true(readings[i].reads > 0);
    }
    world_destroy(way.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_move_counts_no_revision_and_is_told),
        cmocka_unit_test(what_is_put_anew_stands_where_its_file_says),
        cmocka_unit_test(what_cannot_be_moved_is_refused),
        cmocka_unit_test(a_layer_that_moves_no_more_comes_to_rest),
        cmocka_unit_test(readers_see_each_layer_in_one_pose_while_sixty_move),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
