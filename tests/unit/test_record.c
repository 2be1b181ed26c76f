/*
 * Changes and locales as bytes: there and back bit for bit, and whatever bytes come back, an error
 * or something sound.
 */
#include "world/follow/record.h"

#include "base/content_hash.h"
#include "tests/support/change_make.h"
#include "tests/support/random.h"
#include "tests/support/store_fixture.h"
#include "world/write/kinds/kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COLS = 300, ROWS = 260, BLOBS_MAX = 64 };

static const char tetrahedron[] = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
                                  "f 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n";

/* What a log would keep of the blobs. */
struct blobs {
    uint8_t hash[BLOBS_MAX][CLUSTER_HASH_BYTES];
    void *bytes[BLOBS_MAX];
    size_t length[BLOBS_MAX];
    size_t count;
    bool lies; /* gives each with its last byte changed */
};

static enum err_code get_blob(void *context, const uint8_t hash[CLUSTER_HASH_BYTES], void **bytes,
                              size_t *length, struct err *err)
{
    const struct blobs *blobs = context;

    for (size_t i = 0; i < blobs->count; i++)
        if (memcmp(blobs->hash[i], hash, CLUSTER_HASH_BYTES) == 0) {
            *length = blobs->length[i];
            *bytes = malloc(*length);
            memcpy(*bytes, blobs->bytes[i], *length);
            if (blobs->lies)
                ((uint8_t *)*bytes)[*length - 1] ^= 0x40;
            return ERR_OK;
        }
    return err_set(err, ERR_NOT_FOUND, "there is no such part");
}

static void keep_blobs(struct blobs *blobs, const struct record *record)
{
    struct err err;

    for (size_t i = 0; i < record->blob_count; i++) {
        size_t at = blobs->count++, length;
        void *made;
        const void *bytes = record_blob_bytes(&record->blobs[i], &length, &made, &err);
        uint8_t hash[CLUSTER_HASH_BYTES];

        assert_true(at < BLOBS_MAX && bytes);
        content_hash(bytes, length, hash);
        assert_memory_equal(hash, record->hashes[i], sizeof hash);
        memcpy(blobs->hash[at], hash, sizeof hash);
        blobs->bytes[at] = malloc(length);
        memcpy(blobs->bytes[at], bytes, length);
        blobs->length[at] = length;
        free(made);
    }
}

/* A world that makes changes, one that follows it, and what is between them. */
struct pair {
    struct world *worlds[2];
    struct draft drafts[2];
    struct blobs blobs;
    struct record_source source;
    struct err err;
};

static int setup(void **state)
{
    struct pair *p = calloc(1, sizeof *p);

    p->source = (struct record_source){.get = get_blob, .context = &p->blobs};
    for (int i = 0; i < 2; i++) {
        p->worlds[i] = world_create(1, &world_limits_default, NULL, &p->err);
        assert_non_null(p->worlds[i]);
        draft_begin(&p->drafts[i], p->worlds[i]); /* the writers have nothing to do */
    }
    p->drafts[1].is_followed = true;
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct pair *p = *state;

    for (int i = 0; i < 2; i++) {
        draft_end(&p->drafts[i]);
        world_destroy(p->worlds[i]);
    }
    for (size_t i = 0; i < p->blobs.count; i++)
        free(p->blobs.bytes[i]);
    free(p);
    return 0;
}

static void drop(struct world_change *change)
{
    free(change->context);
    world_drop(change);
}

static void make(struct pair *p, int which, const struct world_change *change,
                 struct change_result *result)
{
    if (change_make(&p->drafts[which], change, result, &p->err))
        fail_msg("%s", p->err.msg);
}

static void expect_same_locale(struct pair *p, const char *id)
{
    struct record records[2];

    for (int i = 0; i < 2; i++)
        assert_int_equal(record_locale(snapshot_locale(p->drafts[i].snapshot, id), 9, 99, NULL,
                                       &records[i], &p->err),
                         ERR_OK);
    assert_int_equal(records[0].bytes, records[1].bytes);
    assert_memory_equal(records[0].data, records[1].data, records[0].bytes);
    record_finish(&records[0]);
    record_finish(&records[1]);
}

/* Each truncated length, in a buffer of exactly that size: an error that says something. */
static void expect_no_part_is_taken(struct pair *p, const struct cluster_entry *entry)
{
    size_t result = entry->bytes > 4096 ? 97 : 1;

    for (size_t length = 0; length < entry->bytes; length += result) {
        struct cluster_entry cut = *entry;
        struct world_change change;
        void *bytes = malloc(length ? length : 1);

        memcpy(bytes, entry->data, length);
        cut.data = bytes;
        cut.bytes = length;
        assert_int_equal(record_change(&cut, &p->source, &change, &p->err), ERR_DAMAGED);
        assert_non_null(strstr(p->err.msg, "the shared log's entry of"));
        free(bytes);
    }
}

/* Bytes changed at random: an error or something that can be made or refused, never a crash. */
static void expect_nothing_breaks(struct pair *p, const struct cluster_entry *entry, uint64_t seed)
{
    struct random random = {seed};
    uint8_t *bytes = malloc(entry->bytes);
    size_t first = entry->bytes < 400 ? entry->bytes : 400;

    for (int i = 0; i < 300; i++) {
        struct cluster_entry changed = *entry;
        struct world_change change;

        memcpy(bytes, entry->data, entry->bytes);
        for (uint32_t k = 0; k <= random_below(&random, 3); k++)
            bytes[random_below(&random, (uint32_t)first)] ^=
                (uint8_t)(1u << random_below(&random, 8));
        changed.data = bytes;
        if (record_change(&changed, &p->source, &change, &p->err) == ERR_OK) {
            if (change.layer && !layer_validate(change.layer, &p->err))
                fail_msg("seed %llu: %s", (unsigned long long)seed, p->err.msg);
            drop(&change);
        } else {
            assert_true(p->err.msg[0] != '\0');
        }
    }
    free(bytes);
}

/* Makes a change, sends it over as bytes, makes it there. Takes what the change brings. */
static void send(struct pair *p, struct world_change change)
{
    struct world_change got;
    struct cluster_entry entry;
    struct record record;
    struct change_result results[2];
    struct world_outcome outcome;

    make(p, 0, &change, &results[0]);
    assert_true(record_takes(&results[0]));
    assert_int_equal(record_result(&results[0], &record, &entry, &p->err), ERR_OK);
    keep_blobs(&p->blobs, &record);
    assert_true(entry.op_id[0] == (change.op_id[0] ? change.op_id[0] : '~'));
    expect_no_part_is_taken(p, &entry);
    expect_nothing_breaks(p, &entry, 17);
    if (record_change(&entry, &p->source, &got, &p->err))
        fail_msg("%s", p->err.msg);
    assert_string_equal(got.op_id, change.op_id);
    assert_string_equal(got.author.name, change.author.name);
    assert_string_equal(got.author.note, change.author.note);
    assert_int_equal(got.author.time_ms, result_is_of_model(&results[0]) ? 0 : results[0].time_ms);
    make(p, 1, &got, &results[1]);
    assert_int_equal(results[1].event.revision, results[0].event.revision);
    assert_string_equal(results[1].event.source, results[0].event.source);
    assert_int_equal(results[1].event.has_rect, results[0].event.has_rect);
    assert_memory_equal(&results[1].event.rect, &results[0].event.rect, sizeof(struct sample_rect));
    assert_memory_equal(&results[1].event.bounds, &results[0].event.bounds, sizeof(struct box3));
    assert_int_equal(results[1].answer_bytes, results[0].answer_bytes);
    if (results[0].answer)
        assert_memory_equal(results[1].answer, results[0].answer, results[0].answer_bytes);
    outcome = result_outcome(&results[1], NULL);
    assert_int_equal(outcome.is_new, results[0].is_new);
    expect_same_locale(p, change.locale_id);
    for (int i = 0; i < 2; i++)
        result_finish(&results[i]);
    drop(&got);
    world_drop(&change);
    record_finish(&record);
}

/* ---- changes --------------------------------------------------------------------------------- */

static struct world_change field_change(const char *locale, const char *layer, uint32_t cols,
                                        uint32_t rows)
{
    struct heightfield_spec spec = {cols, rows, -5.5, 7, 0.1, 3, TRIANGULATION_ANTI, 16};
    struct world_change change = change_of(WORLD_PUT_LAYER, locale, layer);
    float *heights = malloc((size_t)cols * rows * sizeof *heights);
    struct err err;

    for (size_t i = 0; i < (size_t)cols * rows; i++)
        heights[i] = i % 91 == 3 ? NAN : (float)(i % 1009) * 0.37f - 9;
    heights[0] = -0.0f;
    memcpy(&heights[1], &(uint32_t){0x7fc01234}, 4); /* a NaN keeps its bits */
    change.layer = layer_create_heightfield(layer, heightfield_create(&spec, heights, &err), &err);
    assert_non_null(change.layer);
    free(heights);
    return change;
}

static struct world_change mesh_change(const char *locale, const char *layer,
                                       struct mesh_space space)
{
    static const uint32_t corners[7] = {0, 1, 2, 0, 2, 3, 4}, starts[3] = {0, 3, 7};
    static const struct vec3 vertices[6] = {{0, 0, 1},  {10, 0, 1}, {10, 10, 3},
                                            {0, 10, 3}, {-1, 5, 2}, {7, 7, 7}};

    return change_of_mesh(locale, layer, vertices, 6, corners, starts, space);
}

/* Two polygons in three places. */
static struct world_change instances_change(const char *locale, const char *layer)
{
    static const struct vec3 vertices[4] = {{0, 0, 1}, {10, 0, 1}, {10, 10, 3}, {0, 10, 3}};
    static const uint32_t corners[6] = {0, 1, 2, 0, 2, 3}, starts[3] = {0, 3, 6};
    static const struct mesh_instance places[3] = {
        {.cos = 1, .count = 2},
        {.translation = {20, 0.1, -1}, .cos = 0.6, .sin = 0.8, .count = 2},
        {.translation = {0, 30, 0}, .cos = 0, .sin = -1, .count = 2}};
    struct world_change change = change_of(WORLD_PUT_LAYER, locale, layer);
    struct polygon_set set;
    struct err err = {.code = ERR_OK};

    assert_int_equal(polygon_set_allocate(4, 2, 6, &set, &err), ERR_OK);
    memcpy(set.vertices, vertices, sizeof vertices);
    memcpy(set.corners, corners, sizeof corners);
    memcpy(set.starts, starts, sizeof starts);
    set.instances = (struct mesh_instances){malloc(sizeof places), 3, {0, 0, 1}};
    memcpy(set.instances.at, places, sizeof places);
    change.layer =
        layer_create_mesh(layer, LAYER_GROUND, &set, (struct vec3){0, 0, -1}, NULL, &err);
    assert_non_null(change.layer);
    return change;
}

static struct world_change pin_change(const char *name)
{
    struct world_change change = change_of(WORLD_PUT_PIN, "land", "");

    snprintf(change.pin, sizeof change.pin, "%s", name);
    return change;
}

static struct world_change edit_change(const char *locale, const char *layer)
{
    struct world_change change = change_of(WORLD_EDIT, locale, layer);
    float *heights = malloc(6 * sizeof *heights);

    for (int i = 0; i < 6; i++)
        heights[i] = i == 4 ? NAN : (float)i / 3;
    change.edit = (struct edit){.kind = EDIT_ADD, .rect = {5, 6, 3, 2}, .heights_m = heights};
    return change;
}

/* A triangle and one that has no area come, the polygon 0 goes. */
static struct world_change polygons_change(const char *locale, const char *layer)
{
    static const struct vec3 vertices[5] = {{20, 0, 1}, {30, 0, 1}, {30, 10, 3}, {1, 1, 1}};
    static const uint32_t corners[6] = {3, 3, 3, 0, 1, 2}, starts[3] = {0, 3, 6};
    struct world_change change = change_of(WORLD_EDIT_POLYGONS, locale, layer);
    struct err err = {.code = ERR_OK};

    assert_int_equal(polygon_set_allocate(5, 2, 6, &change.polygons.add, &err), ERR_OK);
    memcpy(change.polygons.add.vertices, vertices, sizeof vertices);
    memcpy(change.polygons.add.corners, corners, sizeof corners);
    memcpy(change.polygons.add.starts, starts, sizeof starts);
    change.polygons.removed = calloc(1, sizeof *change.polygons.removed);
    change.polygons.removed_count = 1;
    return change;
}

static void *answer_of(void *context, const struct world_outcome *outcome, size_t *bytes)
{
    (void)context;
    *bytes = 1 + outcome->revision % 5;
    return calloc(1, *bytes);
}

static void every_kind_comes_back(void **state)
{
    struct pair *p = *state;
    struct world_change change = change_of(WORLD_PUT_LOCALE, "land", "");

    strcpy(change.manifest.title, "Höhe \"1\"");
    change.manifest.has_geo = true;
    change.manifest.geo_lat_deg = 59.3;
    change.manifest.placement.translation = (struct vec3){0.1, -0.0, 1e300};
    send(p, change);
    send(p, field_change("land", "ground", COLS, ROWS));
    send(p, field_change("land", "small", 2, 2));
    send(p, mesh_change("land", "roof", (struct mesh_space){.frame = MESH_CARTESIAN}));
    send(p, polygons_change("land", "roof"));
    send(p, instances_change("land", "houses"));
    send(p, instances_change("land", "changed"));
    send(p, polygons_change("land", "changed"));
    assert_int_equal(
        layer_polygon_set(locale_layer(snapshot_locale(p->drafts[1].snapshot, "land"), "houses"))
            ->instances.count,
        3);
    change = change_of(WORLD_PUT_LOCALE, "drum", "");
    change.manifest.crs = 32633;
    send(p, change);
    send(p, mesh_change("drum", "wall",
                        (struct mesh_space){.frame = MESH_CYLINDRICAL, .is_outward = true}));
    send(p, change_of(WORLD_PUT_LOCALE, "hill", ""));
    for (int i = 0; i < 2; i++) { /* the first gives the locale its place, the second comes late */
        change = field_change("hill", "ground", 3, 2);
        change.manifest.has_geo = i == 0;
        change.manifest.geo_lat_deg = i == 0 ? 47.25 : 0;
        change.manifest.crs = i == 0 ? 0 : 32632;
        send(p, change);
        assert_true(snapshot_locale(p->drafts[1].snapshot, "hill")->manifest.has_geo);
    }
    change = pin_change("start");
    change.author.time_ms = 0;
    send(p, change);
    change = edit_change("land", "ground");
    strcpy(change.author.name, "ann@example");
    strcpy(change.author.note, "Höhle");
    strcpy(change.op_id, "a key");
    memset(change.request, 7, sizeof change.request);
    change.answer = answer_of;
    send(p, change);
    send(p, pin_change("end"));
    change = pin_change("start");
    change.kind = WORLD_RESTORE;
    send(p, change);
    change = change_of(WORLD_FORK, "match", "");
    strcpy(change.fork.from, "land");
    strcpy(change.fork.pin, "end");
    strcpy(change.manifest.from, "land@end");
    send(p, change);
    assert_int_equal(snapshot_locale(p->drafts[1].snapshot, "match")->manifest.from_revision,
                     locale_pin(snapshot_locale(p->drafts[1].snapshot, "land"), "end")->revision);
    change = pin_change("start");
    change.kind = WORLD_DELETE_PIN;
    send(p, change);
    change = change_of(WORLD_PUT_LOCALE, "land", "");
    change.manifest.gravity = (struct vec3){0.6, 0, -0.8};
    change.manifest.triangulation = TRIANGULATION_ALTERNATING;
    strcpy(change.source, "reload");
    send(p, change);
    send(p, change_of(WORLD_DELETE_LAYER, "land", "small"));
    send(p, change_of(WORLD_DELETE_LOCALE, "land", ""));
}

static void models_come_back(void **state)
{
    struct pair *p = *state;
    struct world_change change = {.kind = WORLD_PUT_MODEL, .model_id = "rock"};
    struct record records[2];
    struct model_list *list;

    change.model =
        model_create("rock", tetrahedron, strlen(tetrahedron), &polygon_limits_default, &p->err);
    assert_non_null(change.model);
    model_ref(change.model);
    send(p, change);
    for (int i = 0; i < 2; i++)
        assert_int_equal(record_models(p->drafts[i].snapshot->models, &records[i], &p->err),
                         ERR_OK);
    assert_int_equal(records[0].bytes, records[1].bytes);
    assert_memory_equal(records[0].data, records[1].data, records[0].bytes);
    assert_int_equal(
        record_read_models(records[0].data, records[0].bytes, &p->source, &list, &p->err), ERR_OK);
    assert_int_equal(list->count, 1);
    assert_string_equal(list->at[0]->id, "rock");
    model_list_unref(list);
    for (size_t length = 0; length < records[0].bytes; length++)
        assert_int_equal(record_read_models(records[0].data, length, &p->source, &list, &p->err),
                         ERR_DAMAGED);
    model_unref(change.model);
    change = (struct world_change){.kind = WORLD_DELETE_MODEL, .model_id = "rock"};
    send(p, change);
    record_finish(&records[0]);
    record_finish(&records[1]);
}

static void a_whole_locale_comes_back(void **state)
{
    struct pair *p = *state;
    struct record records[2];
    struct locale *again;
    uint64_t revision;

    send(p, change_of(WORLD_PUT_LOCALE, "land", ""));
    send(p, field_change("land", "ground", COLS, ROWS));
    send(p, mesh_change("land", "roof", (struct mesh_space){.frame = MESH_CARTESIAN}));
    for (int with_pins = 0; with_pins < 2; with_pins++) {
        uint64_t number = 3 + 2 * (uint64_t)with_pins;

        if (with_pins) {
            send(p, pin_change("old"));
            send(p, edit_change("land", "ground"));
            send(p, pin_change("later")); /* of a later revision */
        }
        number = snapshot_locale(p->drafts[0].snapshot, "land")->revision + 2 * (uint64_t)with_pins;
        assert_int_equal(record_locale(snapshot_locale(p->drafts[0].snapshot, "land"), 0, number,
                                       NULL, &records[0], &p->err),
                         ERR_OK);
        assert_int_equal(*records[0].data, with_pins ? 3 : 1);
        keep_blobs(&p->blobs, &records[0]);
        if (record_read_locale("land", number, records[0].data, records[0].bytes, &p->source,
                               &again, &revision, &p->err))
            fail_msg("%s", p->err.msg);
        assert_int_equal(revision, with_pins ? 4 : 3);
        assert_true(locale_validate(again, &p->err));
        assert_int_equal(record_locale(again, 0, number, NULL, &records[1], &p->err), ERR_OK);
        assert_int_equal(records[0].bytes, records[1].bytes);
        assert_memory_equal(records[0].data, records[1].data, records[0].bytes);
        if (with_pins) { /* tiles are shared as they were: the edit is in one of four */
            struct heightfield *now = locale_layer(again, "ground")->field;
            struct heightfield *then = locale_layer(locale_pin(again, "old"), "ground")->field;

            assert_true(locale_layer(again, "roof") ==
                        locale_layer(locale_pin(again, "old"), "roof"));
            assert_int_equal(heightfield_tile_serial(now, 1, 1),
                             heightfield_tile_serial(then, 1, 1));
            assert_int_not_equal(heightfield_tile_serial(now, 0, 0),
                                 heightfield_tile_serial(then, 0, 0));
            assert_true(locale_layer(again, "ground") ==
                        locale_layer(locale_pin(again, "later"), "ground"));
        }
        locale_unref(again);
        for (size_t length = 0; length < records[0].bytes; length++)
            assert_int_equal(record_read_locale("land", number, records[0].data, length, &p->source,
                                                &again, &revision, &p->err),
                             ERR_DAMAGED);
        record_finish(&records[0]);
        record_finish(&records[1]);
    }
    for (uint64_t number = 7; number < 9; number++) {
        assert_int_equal(record_locale(NULL, 7, number, NULL, &records[0], &p->err), ERR_OK);
        assert_int_equal(record_read_locale("land", number, records[0].data, records[0].bytes,
                                            &p->source, &again, &revision, &p->err),
                         ERR_OK);
        assert_null(again);
        assert_int_equal(revision, 7);
        record_finish(&records[0]);
    }
}

/* ---- its history ----------------------------------------------------------------------------- */

enum { HISTORY_FIRST = 100, HISTORY_LAST = 300 };

/* Row r: every third without samples, every fifth with a bit for each. Its packed data: malloc. */
static struct store_past make_past(uint64_t r, struct store_packed_past *packed)
{
    static const uint8_t changed[3] = {0x55, 0xaa, 1};
    struct store_past past = {.revision = r,
                              .time_ms = 1790000000000 + (int64_t)r,
                              .kind = r % 3 == 0 ? WORLD_PUT_LOCALE : WORLD_FORK,
                              .is_birth = r == HISTORY_FIRST,
                              .author = "ann"};
    float before_m[17];
    struct err err;

    snprintf(past.note, sizeof past.note, "note %llu", (unsigned long long)r);
    *packed = (struct store_packed_past){.codec = 0};
    if (r % 3 == 0)
        return past;
    for (int i = 0; i < 17; i++)
        before_m[i] = (float)(r * 17 + (uint64_t)i) / 7;
    past.kind = WORLD_EDIT;
    past.has_rect = true;
    past.rect = (struct sample_rect){3, (uint32_t)r % 200, 17, 1};
    snprintf(past.layer, sizeof past.layer, "ground");
    past.before_m = before_m;
    past.changed = r % 5 == 0 ? changed : NULL;
    assert_int_equal(store_past_pack(&past, 1 << 20, packed, &err), ERR_OK);
    past.before_m = NULL;
    past.changed = NULL;
    past.has_before = true;
    return past;
}

static void put_pasts(struct store *store, uint64_t last)
{
    struct store_locale row = store_test_locale("land", last);
    struct err err = {.code = ERR_OK};

    store_set_history_max(store, 1 << 20);
    store_must(store_begin(store, &err), &err);
    store_must(store_put_locale(store, &row, &err), &err);
    for (uint64_t r = HISTORY_FIRST; r <= last; r++) {
        struct store_packed_past packed;
        struct store_past past = make_past(r, &packed);

        past.packed = &packed;
        store_must(store_put_past(store, "land", &past, &err), &err);
        free(packed.data);
    }
    store_must(store_commit(store, &err), &err);
}

static bool expect_past(void *context, const struct store_past *past, struct err *err)
{
    struct store_packed_past packed;
    uint64_t *next = context;
    struct store_past wanted = make_past((*next)++, &packed);

    (void)err;
    assert_int_equal(past->packed->codec, packed.codec);
    assert_int_equal(past->packed->length, packed.length);
    if (packed.length > 0)
        assert_memory_equal(past->packed->data, packed.data, packed.length);
    free(packed.data);
    wanted.packed = past->packed;
    assert_memory_equal(past, &wanted, sizeof wanted);
    return true;
}

static void record_land(struct pair *p, const struct record_history *history, struct record *out)
{
    const struct locale *land = snapshot_locale(p->drafts[0].snapshot, "land");

    if (record_locale(land, 0, land->revision, history, out, &p->err))
        fail_msg("%s", p->err.msg);
}

static void expect_history(struct pair *p, const struct record *record)
{
    struct record_source source = {.get = get_blob, .context = &p->blobs};
    uint64_t next = HISTORY_FIRST, revision;
    struct locale *again;

    if (record_read_locale("land", HISTORY_LAST, record->data, record->bytes, &source, &again,
                           &revision, &p->err) ||
        record_read_history(record->data, record->bytes, &source, expect_past, &next, &p->err))
        fail_msg("%s", p->err.msg);
    locale_unref(again);
    assert_int_equal(next, HISTORY_LAST + 1);
}

static void a_history_comes_with_its_locale(void **state)
{
    struct pair *p = *state;
    char folder[256];
    struct store *store;
    struct record_history history = {.key = record_history_key()};
    struct record plain, records[2];
    uint64_t next;

    store_folder_make(folder);
    history.store = store = store_must_open(folder);
    put_pasts(store, HISTORY_LAST - 1);
    send(p, change_of(WORLD_PUT_LOCALE, "land", ""));
    send(p, field_change("land", "ground", 20, 20));
    while (snapshot_locale(p->drafts[0].snapshot, "land")->revision < HISTORY_LAST)
        send(p, edit_change("land", "ground"));
    record_land(p, NULL, &plain);
    record_land(p, &history, &records[0]); /* the store's ends too early: it is left out */
    assert_int_equal(records[0].data[0], 1);
    assert_int_equal(records[0].bytes, plain.bytes);
    record_finish(&records[0]);
    store_close(store);
    store_folder_remove(folder);

    store_folder_make(folder);
    history.store = store = store_must_open(folder);
    put_pasts(store, HISTORY_LAST);
    record_land(p, &history, &records[0]);
    record_land(p, &history, &records[1]); /* with hashes that are remembered */
    assert_int_equal(records[0].data[0], 4);
    assert_int_equal(records[0].blob_count, plain.blob_count + 3); /* 128, 256 and 300 are ends */
    assert_int_equal(records[1].bytes, records[0].bytes);
    assert_memory_equal(records[1].data, records[0].data, records[0].bytes);
    keep_blobs(&p->blobs, &records[0]);
    expect_history(p, &records[0]);
    next = HISTORY_FIRST;
    for (size_t length = 0; length < 16 + 3 * CLUSTER_HASH_BYTES; length++)
        assert_int_equal(
            record_read_history(records[0].data, length, &p->source, expect_past, &next, &p->err),
            ERR_DAMAGED);
    records[0].data[4]++; /* the revision */
    next = HISTORY_FIRST;
    assert_int_equal(record_read_history(records[0].data, records[0].bytes, &p->source, expect_past,
                                         &next, &p->err),
                     ERR_DAMAGED);
    assert_non_null(strstr(p->err.msg, "does not end at its revision"));
    memset(records[0].data + 16, 7, CLUSTER_HASH_BYTES);
    assert_int_equal(record_read_history(records[0].data, records[0].bytes, &p->source, expect_past,
                                         &next, &p->err),
                     ERR_DAMAGED);
    for (int i = 0; i < 2; i++)
        record_finish(&records[i]);
    record_finish(&plain);
    store_close(store);
    store_folder_remove(folder);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void expect_refused(struct pair *p, const struct cluster_entry *entry, const char *why)
{
    struct world_change change;

    assert_int_equal(record_change(entry, &p->source, &change, &p->err), ERR_DAMAGED);
    if (!strstr(p->err.msg, why))
        fail_msg("\"%s\" does not say \"%s\"", p->err.msg, why);
}

static void what_does_not_fit_is_refused(void **state)
{
    struct pair *p = *state;
    uint8_t edit[8 + 8] = {1, (uint8_t)change_log_number(WORLD_EDIT)};
    struct cluster_entry good = {.locale = "land",
                                 .revision = 3,
                                 .op_id = "~1",
                                 .kind = change_log_number(WORLD_EDIT),
                                 .layer = "ground",
                                 .has_rect = true,
                                 .rect = {1, 1, 2, 1},
                                 .data = edit,
                                 .bytes = sizeof edit},
                         bad = good;
    struct world_change change;

    assert_int_equal(record_change(&good, &p->source, &change, &p->err), ERR_OK);
    drop(&change);
    bad.rect[2] = 3;
    expect_refused(p, &bad, "another number of samples");
    bad.rect[2] = UINT32_MAX;
    bad.rect[3] = UINT32_MAX;
    expect_refused(p, &bad, "another number of samples");
    bad = good;
    bad.has_rect = false;
    expect_refused(p, &bad, "another number of samples");
    bad = good;
    bad.kind = change_log_number(WORLD_PUT_LAYER);
    expect_refused(p, &bad, "disagree");
    bad = good;
    strcpy(bad.locale, RECORD_MODELS);
    expect_refused(p, &bad, "ids");
    bad = good;
    strcpy(bad.locale, "a b");
    expect_refused(p, &bad, "ids");
    bad = good;
    bad.layer[0] = '\0';
    expect_refused(p, &bad, "ids");
    edit[0] = 4;
    expect_refused(p, &good, "version");
    edit[0] = 1;
    edit[1] = 99;
    bad = good;
    bad.kind = 99;
    expect_refused(p, &bad, "newer");
    edit[1] = (uint8_t)change_log_number(WORLD_EDIT);
    edit[4] = 4;
    expect_refused(p, &good, "an answer to nobody");
}

static void parts_that_are_gone_or_changed_are_refused(void **state)
{
    struct pair *p = *state;
    struct world_change change;
    struct cluster_entry entry;
    struct record record;
    struct change_result result;

    send(p, change_of(WORLD_PUT_LOCALE, "land", ""));
    change = field_change("land", "ground", COLS, ROWS);
    make(p, 0, &change, &result);
    assert_int_equal(record_result(&result, &record, &entry, &p->err), ERR_OK);
    assert_int_equal(record.blob_count, 4);
    expect_refused(p, &entry, "there is no such part");
    keep_blobs(&p->blobs, &record);
    p->blobs.length[1] -= 4;
    expect_refused(p, &entry, "a tile has another size");
    p->blobs.length[1] += 4;
    p->blobs.lies = true; /* tiles then disagree at their seams */
    expect_refused(p, &entry, "");
    result_finish(&result);
    world_drop(&change);
    record_finish(&record);
    p->blobs.lies = false;
    change = mesh_change("land", "roof", (struct mesh_space){.frame = MESH_CARTESIAN});
    make(p, 0, &change, &result);
    assert_int_equal(record_result(&result, &record, &entry, &p->err), ERR_OK);
    keep_blobs(&p->blobs, &record);
    result_finish(&result);
    world_drop(&change);
    for (size_t i = 0; i < record.blob_count; i++)
        if (record.blobs[i].part == RECORD_IMAGE) /* of another builder: it is built anew */
            ((uint8_t *)p->blobs.bytes[p->blobs.count - record.blob_count + i])[9] ^= 1;
    if (record_change(&entry, &p->source, &change, &p->err))
        fail_msg("%s", p->err.msg);
    assert_true(layer_validate(change.layer, &p->err));
    drop(&change);
    record_finish(&record);
}

#define FACT(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FACT(every_kind_comes_back),        FACT(models_come_back),
        FACT(a_whole_locale_comes_back),    FACT(a_history_comes_with_its_locale),
        FACT(what_does_not_fit_is_refused), FACT(parts_that_are_gone_or_changed_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
