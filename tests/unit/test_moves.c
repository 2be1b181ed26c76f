/*
 * The list of last poses (moves.h) against a plain model under a seed, and what it tells the
 * writer to do and when.
 */
#include "world/values/moves.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/random.h"

#define SEED 20171121

enum { LOCALES = 3, LAYERS = 20, ALL = LOCALES * LAYERS };

static struct moves *open_moves(void)
{
    struct err err;
    struct moves *moves = moves_create(&err);

    assert_non_null(moves);
    return moves;
}

static void note(struct moves *moves, const char *locale, const char *layer, uint64_t seq)
{
    const struct pose pose = {.translation = {(double)seq, 0, 0}};
    struct err err;

    assert_int_equal(moves_reserve(moves, locale, layer, &err), ERR_OK);
    moves_note(moves, locale, layer, seq, &(struct motion){.pose = pose});
}

/* ---- what readers see ------------------------------------------------------------------------ */

struct model {
    uint64_t sequence[LOCALES][LAYERS]; /* of the last move; 0: none */
    uint64_t last;
};

static void names_of(size_t locale, size_t layer, char *locale_name, char *layer_name)
{
    snprintf(locale_name, 8, "lo%zu", locale);
    snprintf(layer_name, 8, "la%zu", layer);
}

/* The first move of one locale (LOCALES: of all) above `after`; 0: none. */
static uint64_t model_next(const struct model *model, size_t locale, uint64_t after)
{
    uint64_t next = 0;

    for (size_t i = 0; i < LOCALES; i++)
        for (size_t k = 0; k < LAYERS; k++) {
            uint64_t sequence = model->sequence[i][k];

            if ((locale == LOCALES || i == locale) && sequence > after &&
                (next == 0 || sequence < next))
                next = sequence;
        }
    return next;
}

/* Reads in pieces of up to max: nothing is left out, told twice, or told of another locale. */
static void read_check(struct moves *moves, const struct model *model, size_t locale,
                       uint64_t after, size_t max)
{
    struct move_event events[ALL];
    uint64_t place = after, told = after;
    char name[8], ignored[8];
    size_t rounds = 0;

    names_of(locale, 0, name, ignored);
    while (model_next(model, locale, told) != 0 && rounds++ <= ALL) {
        size_t count = moves_read(moves, locale < LOCALES ? name : NULL, &place, events, max);

        for (size_t i = 0; i < count; i++) {
            assert_int_equal(events[i].sequence, model_next(model, locale, told));
            assert_int_equal(events[i].transform_seq, events[i].sequence);
            assert_true(events[i].motion.pose.translation.x == (double)events[i].sequence);
            told = events[i].sequence;
        }
    }
    assert_int_equal(model_next(model, locale, told), 0);
    while (place < model->last && rounds++ <= 2 * ALL) /* those of others behind the last */
        assert_int_equal(moves_read(moves, locale < LOCALES ? name : NULL, &place, events, max), 0);
    assert_int_equal(place, model->last);
    assert_int_equal(moves_read(moves, NULL, &place, events, max), 0);
}

static void readers_see_the_last_move_of_each_layer_in_order(void **state)
{
    struct random random = {SEED};
    struct moves *moves = open_moves();
    struct model model = {0};

    (void)state;
    print_message("seed %d\n", SEED);
    for (int step = 0; step < 3000; step++) {
        size_t locale = random_below(&random, LOCALES), layer = random_below(&random, LAYERS);
        uint32_t choice = random_below(&random, 20);
        char locale_name[8], layer_name[8];

        names_of(locale, layer, locale_name, layer_name);
        if (choice == 0) {
            moves_forget(moves, locale_name, NULL);
            memset(model.sequence[locale], 0, sizeof model.sequence[locale]);
        } else if (choice < 4) {
            moves_forget(moves, locale_name, layer_name);
            model.sequence[locale][layer] = 0;
        } else {
            note(moves, locale_name, layer_name, ++model.last);
            model.sequence[locale][layer] = model.last;
        }
        assert_int_equal(moves_last(moves), model.last);
        if (step % 7 == 0)
            read_check(moves, &model, random_below(&random, LOCALES + 1),
                       random_below(&random, (uint32_t)model.last + 1),
                       1 + random_below(&random, ALL));
    }
    moves_destroy(moves);
}

/* ---- what the writer owes -------------------------------------------------------------------- */

static void a_layer_is_told_to_rest_once_and_again_only_when_that_failed(void **state)
{
    struct moves *moves = open_moves();
    const struct move_event *event;
    double due_s;

    (void)state;
    assert_true(isinf(moves_rest_due_s(moves)));
    note(moves, "lo", "a", 1);
    note(moves, "lo", "b", 2);
    moves_touch(moves, "lo", "a", 10, false);
    moves_touch(moves, "lo", "b", 11, false);
    due_s = moves_rest_due_s(moves);
    assert_true(due_s > 10 && due_s < 11);
    assert_null(moves_take_rest(moves, 10));
    event = moves_take_rest(moves, due_s);
    assert_non_null(event);
    assert_string_equal(event->layer, "a");
    assert_null(moves_take_rest(moves, due_s));
    assert_true(moves_rest_due_s(moves) > 11);
    moves_rest_later(moves, event, due_s);
    assert_true(moves_rest_due_s(moves) > due_s && moves_rest_due_s(moves) < 11);
    assert_null(moves_take_rest(moves, due_s));
    assert_true(moves_rest_due_s(moves) > due_s && moves_rest_due_s(moves) < 11);
    event = moves_take_rest(moves, moves_rest_due_s(moves));
    assert_non_null(event);
    assert_string_equal(event->layer, "a");
    event = moves_take_rest(moves, 20);
    assert_non_null(event);
    assert_string_equal(event->layer, "b");
    assert_null(moves_take_rest(moves, 30));
    assert_true(isinf(moves_rest_due_s(moves)));
    moves_destroy(moves);
}

static size_t kept_count(const struct moves *moves)
{
    size_t count = 0, at = 0;

    while (moves_next_unwritten(moves, &at))
        count++;
    return count;
}

static void poses_are_kept_once(void **state)
{
    struct moves *moves = open_moves();

    (void)state;
    note(moves, "lo", "a", 1);
    note(moves, "lo", "b", 2);
    note(moves, "lo", "c", 3);
    moves_touch(moves, "lo", "a", 10, true);
    moves_touch(moves, "lo", "b", 10, true);
    moves_touch(moves, "lo", "c", 10, false);
    assert_int_equal(kept_count(moves), 2);
    moves_write_later(moves, 10);
    assert_true(moves_write_due_s(moves) > 11);
    assert_int_equal(kept_count(moves), 2);
    moves_written(moves);
    assert_true(isinf(moves_write_due_s(moves)));
    assert_int_equal(kept_count(moves), 0);
    moves_touch(moves, "lo", "b", 12, true);
    assert_int_equal(kept_count(moves), 1);
    moves_forget(moves, "lo", "b");
    assert_int_equal(kept_count(moves), 0);
    moves_destroy(moves);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_see_the_last_move_of_each_layer_in_order),
        cmocka_unit_test(a_layer_is_told_to_rest_once_and_again_only_when_that_failed),
        cmocka_unit_test(poses_are_kept_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
