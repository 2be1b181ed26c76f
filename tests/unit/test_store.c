/*
 * The store as it is meant to be used: what is committed comes back after a restart, bit for bit.
 */
#include "store/store.h"

#include "support/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { KIND_MANIFEST = 0, KIND_LAYER = 2 };

/* A world that is written: the next numbers, and what layers should be. */
struct writer {
    char folder[256];
    struct store *store;
    struct random random;
    struct err err;
    uint64_t sequence;
};

static void writer_open(struct writer *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->random.state = seed;
    store_folder_make(w->folder);
    w->store = store_must_open(w->folder);
}

static void writer_close(struct writer *w)
{
    store_close(w->store);
    store_folder_remove(w->folder);
}

static void begin(struct writer *w)
{
    store_must(store_begin(w->store, &w->err), &w->err);
}

static void commit(struct writer *w)
{
    store_must(store_commit(w->store, &w->err), &w->err);
}

/* A row of the log without samples. */
static void log_change(struct writer *w, const char *locale, uint64_t revision, int kind)
{
    struct store_edit edit = {.revision = revision, .sequence = ++w->sequence, .kind = kind};

    snprintf(edit.locale, sizeof edit.locale, "%s", locale);
    snprintf(edit.source, sizeof edit.source, "put");
    store_must(store_log(w->store, &edit, &w->err), &w->err);
}

static void put_locale(struct writer *w, const char *id, uint64_t revision)
{
    struct store_locale locale = store_test_locale(id, revision);

    store_must(store_put_locale(w->store, &locale, &w->err), &w->err);
    log_change(w, id, revision, KIND_MANIFEST);
}

static void put_field(struct writer *w, const struct model_layer *layer, uint32_t position,
                      uint64_t revision)
{
    struct heightfield *field = model_layer_field(layer);
    struct store_layer put = store_test_layer(layer, field);

    put.position = position;
    store_must(store_put_layer(w->store, &put, &w->err), &w->err);
    log_change(w, layer->locale, revision, KIND_LAYER);
    heightfield_unref(field);
}

static void edit_field(struct writer *w, struct model_layer *layer, uint32_t side,
                       uint64_t revision)
{
    struct store_edit edit = model_layer_edit(layer, side, revision, ++w->sequence, &w->random);

    store_must(store_log(w->store, &edit, &w->err), &w->err);
    model_layer_apply(layer, &edit.rect, edit.heights_m);
    free((void *)(uintptr_t)edit.heights_m);
}

/* Closes and opens; the load must be whole. */
static struct loaded *restart(struct writer *w)
{
    struct loaded *loaded;

    store_close(w->store);
    w->store = store_must_open(w->folder);
    loaded = loaded_make(w->store);
    loaded_expect_whole(loaded);
    return loaded;
}

/* ---- locales and layers --------------------------------------------------------------------- */

static void a_locale_comes_back_bit_for_bit(void **state)
{
    struct writer w;
    struct store_locale want = store_test_locale("hills", 1);
    struct loaded *loaded;

    (void)state;
    writer_open(&w, 1);
    begin(&w);
    put_locale(&w, "hills", 1);
    commit(&w);
    loaded = restart(&w);
    assert_int_equal(loaded->locale_count, 1);
    assert_memory_equal(loaded->locales[0].gravity, want.gravity, sizeof want.gravity);
    assert_memory_equal(loaded->locales[0].translation, want.translation, sizeof want.translation);
    assert_memory_equal(loaded->locales[0].rotation, want.rotation, sizeof want.rotation);
    assert_memory_equal(&loaded->locales[0].geo_lng_deg, &want.geo_lng_deg, sizeof(double));
    assert_string_equal(loaded->locales[0].title, want.title);
    assert_int_equal(loaded->locales[0].revision, 1);
    assert_true(loaded->locales[0].open_sky && loaded->locales[0].has_geo);
    assert_int_equal(loaded->edit_count, 1);
    loaded_free(loaded);
    writer_close(&w);
}

static void layers_of_odd_sizes_come_back_in_their_order(void **state)
{
    static const uint32_t sizes[][2] = {{2, 2},   {257, 257}, {256, 258}, {3, 700},
                                        {515, 2}, {300, 513}, {258, 256}, {513, 769}};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    struct model_layer *layers[COUNT];
    struct writer w;
    struct loaded *loaded;

    (void)state;
    writer_open(&w, 2);
    begin(&w);
    put_locale(&w, "hills", 1);
    for (uint32_t i = 0; i < COUNT; i++) {
        char id[8];

        snprintf(id, sizeof id, "L%u", (i * 5 + 3) % COUNT); /* not in the order of names */
        layers[i] = model_layer_make("hills", id, sizes[i][0], sizes[i][1], &w.random);
        put_field(&w, layers[i], i, 2 + i);
    }
    commit(&w);
    loaded = restart(&w);
    assert_int_equal(loaded->layer_count, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_string_equal(loaded->layers[i].id, layers[i]->id);
        assert_int_equal(loaded->layers[i].role, 1);
        model_layer_expect(layers[i], loaded->layers[i].field);
        model_layer_free(layers[i]);
    }
    loaded_free(loaded);
    writer_close(&w);
}

static void edits_come_back_applied(void **state)
{
    struct writer w;
    struct model_layer *layer;
    struct loaded *loaded;
    struct store_behind behind;

    (void)state;
    writer_open(&w, 3);
    layer = model_layer_make("hills", "ground", 700, 530, &w.random);
    begin(&w);
    put_locale(&w, "hills", 1);
    put_field(&w, layer, 0, 2);
    commit(&w);
    for (uint64_t revision = 3; revision < 60; revision++) {
        begin(&w);
        edit_field(&w, layer, 300, revision);
        commit(&w);
    }
    store_behind(w.store, &behind);
    assert_int_equal(behind.edits, 57);
    assert_true(behind.tiles > 0 && behind.tiles <= 9 && behind.log_bytes > 0);
    loaded = restart(&w);
    assert_int_equal(loaded->locales[0].revision, 59);
    assert_int_equal(loaded->edit_count, 59);
    model_layer_expect(layer, loaded_layer(loaded, "hills", "ground")->field);
    loaded_free(loaded);
    model_layer_free(layer);
    writer_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_locale_comes_back_bit_for_bit),
        cmocka_unit_test(layers_of_odd_sizes_come_back_in_their_order),
        cmocka_unit_test(edits_come_back_applied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
