/*
 * Shells kept in a world's store: found again after a restart, gone with their model, and nothing
 * of them in the world itself.
 */
#include "sand/body/shell_store.h"

#include "support/solid_make.h"
#include "support/store_fixture.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char obj[] =
    "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n";

struct place {
    char folder[256];
    struct store *store;
    struct world *world;
    uint8_t hash[MODEL_HASH_BYTES];
    struct shell shell;
    struct err err;
};

static void start(struct place *p)
{
    p->store = store_must_open(p->folder);
    p->world = world_create(1, &world_limits_default, p->store, &p->err);
    assert_non_null(p->world);
    store_must(world_load(p->world, &p->err), &p->err);
    world_readers_begin(p->world);
}

static void stop(struct place *p)
{
    world_destroy(p->world);
    store_close(p->store);
}

static void put_model(struct place *p)
{
    struct world_change change = {.kind = WORLD_PUT_MODEL, .model_id = "corner"};

    change.model = model_create("corner", obj, strlen(obj), NULL, &p->err);
    assert_non_null(change.model);
    memcpy(p->hash, change.model->hash, sizeof p->hash);
    store_must(world_apply(p->world, &change, &p->err), &p->err);
}

static void setup(struct place *p)
{
    struct polygon_set set;

    memset(p, 0, sizeof *p);
    store_folder_make(p->folder);
    start(p);
    put_model(p);
    store_must(
        polygon_decode(POLYGON_OBJ, (const uint8_t *)obj, strlen(obj), NULL, NULL, &set, &p->err),
        &p->err);
    store_must(shell_build(&set, 0.05, 1, &p->shell, &p->err), &p->err);
    polygon_set_free(&set);
}

static void teardown(struct place *p)
{
    stop(p);
    shell_free(&p->shell);
    store_folder_remove(p->folder);
}

/* Saves are queued; a change that is waited for comes behind them. */
static void flush(struct place *p)
{
    struct world_change change = {
        .kind = WORLD_PUT_LOCALE, .locale_id = "any", .manifest = locale_manifest_default};

    store_must(world_apply(p->world, &change, &p->err), &p->err);
}

static uint32_t kept(struct place *p, double radius_m)
{
    struct shell shell;
    uint32_t particles;

    store_must(shell_store_load(p->store, p->hash, radius_m, &shell, &p->err), &p->err);
    particles = shell.particles;
    if (particles)
        assert_memory_equal(shell.offsets_m, p->shell.offsets_m,
                            particles * sizeof *shell.offsets_m);
    shell_free(&shell);
    return particles;
}

static void a_shell_is_there_after_a_restart(void **state)
{
    struct world_stats before, after;
    struct place p;

    (void)state;
    setup(&p);
    assert_int_equal(kept(&p, 0.05), 0);
    flush(&p);
    world_stats(p.world, &before);
    store_must(shell_store_save(p.world, p.hash, &p.shell, &p.err), &p.err);
    flush(&p);
    world_stats(p.world, &after);
    assert_int_equal(after.publications - before.publications, 1); /* flush's own */
    assert_int_equal(kept(&p, 0.05), p.shell.particles);
    assert_int_equal(kept(&p, 0.1), 0);
    stop(&p);
    start(&p);
    assert_int_equal(kept(&p, 0.05), p.shell.particles);
    teardown(&p);
}

static void it_goes_with_its_model(void **state)
{
    struct world_change drop = {.kind = WORLD_DELETE_MODEL, .model_id = "corner"};
    struct place p;

    (void)state;
    setup(&p);
    store_must(shell_store_save(p.world, p.hash, &p.shell, &p.err), &p.err);
    store_must(world_apply(p.world, &drop, &p.err), &p.err);
    assert_int_equal(kept(&p, 0.05), 0);
    store_must(shell_store_save(p.world, p.hash, &p.shell, &p.err), &p.err); /* too late */
    flush(&p);
    assert_int_equal(kept(&p, 0.05), 0);
    teardown(&p);
}

static void a_damaged_one_is_told_and_mended(void **state)
{
    char path[300];
    struct shell shell;
    struct place p;
    sqlite3 *db;

    (void)state;
    setup(&p);
    store_must(shell_store_save(p.world, p.hash, &p.shell, &p.err), &p.err);
    stop(&p);
    snprintf(path, sizeof path, "%s/kota.db", p.folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "UPDATE shell SET data = x'4b53'", NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    start(&p);
    assert_int_equal(shell_store_load(p.store, p.hash, 0.05, &shell, &p.err), ERR_DAMAGED);
    assert_null(shell.offsets_m);
    store_must(shell_store_save(p.world, p.hash, &p.shell, &p.err), &p.err);
    flush(&p);
    assert_int_equal(kept(&p, 0.05), p.shell.particles);
    teardown(&p);
}

static void without_a_store_nothing_is_kept(void **state)
{
    struct place p;
    struct world *world;
    struct shell shell;

    (void)state;
    setup(&p);
    world = world_create(1, &world_limits_default, NULL, &p.err);
    assert_non_null(world);
    assert_int_equal(shell_store_save(world, p.hash, &p.shell, &p.err), ERR_OK);
    world_destroy(world);
    assert_int_equal(shell_store_load(NULL, p.hash, 0.05, &shell, &p.err), ERR_OK);
    assert_int_equal(shell.particles, 0);
    teardown(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shell_is_there_after_a_restart),
        cmocka_unit_test(it_goes_with_its_model),
        cmocka_unit_test(a_damaged_one_is_told_and_mended),
        cmocka_unit_test(without_a_store_nothing_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
