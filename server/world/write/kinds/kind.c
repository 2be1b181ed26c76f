/*
 * The table of all kinds of change, by their number.
 *
 * Problem: a kind of change is made, written, sent to other daemons, read back, announced and
 * counted, and each of these is a place where a new kind could be forgotten. Approach: one table a
 * kind, whose members are all set; the places that are common (change.c, persist.c, record.c,
 * record_read.c, group_commit.c) call them and never test the kind itself.
 *
 * Invariant, checked at the start: every number up to the greatest has a table, each table has each
 * hook, and numbers of the shared log are distinct.
 */
#include "world/write/kinds/kind.h"

#include "base/check.h"
#include "base/log.h"

#define CHANGE_KIND_ROW(constant, number, log_number, table)                                       \
    [constant] = {&(table), (log_number), #constant},

static const struct {
    const struct change_kind *kind;
    int log_number;
    const char *name;
} kinds[] = {WORLD_CHANGE_KINDS(CHANGE_KIND_ROW)};

enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

const struct change_kind *change_kind(enum world_change_kind kind)
{
    CHECK((unsigned)kind < KIND_COUNT);
    return kinds[kind].kind;
}

int change_log_number(enum world_change_kind kind)
{
    CHECK((unsigned)kind < KIND_COUNT);
    return kinds[kind].log_number;
}

bool change_kind_of_log(int log_number, enum world_change_kind *kind)
{
    for (unsigned i = 0; i < KIND_COUNT; i++)
        if (log_number != 0 && kinds[i].log_number == log_number) {
            *kind = (enum world_change_kind)i;
            return true;
        }
    return false;
}

bool change_log_is_of_pin(int log_number)
{
    enum world_change_kind kind;

    return change_kind_of_log(log_number, &kind) && change_kind(kind)->scope == CHANGE_OF_PIN;
}

bool world_is_of_layer(enum world_change_kind kind)
{
    return change_kind(kind)->is_of_layer;
}

bool world_makes_locale(enum world_change_kind kind)
{
    return change_kind(kind)->makes_locale;
}

enum err_code world_check_bounds(const double bounds_m[4], const double rect_m[4], struct err *err)
{
    const double *b = bounds_m, *r = rect_m;

    if (r[0] >= b[0] && r[1] >= b[1] && r[2] <= b[2] && r[3] <= b[3])
        return ERR_OK;
    return err_set(err, ERR_CLAIMS,
                   "this token may change x %g to %g, y %g to %g, and this would change x %g to "
                   "%g, y %g to %g",
                   b[0], b[2], b[1], b[3], r[0], r[2], r[1], r[3]);
}

bool change_is_of_pose(enum world_change_kind kind)
{
    return change_kind(kind)->scope == CHANGE_OF_POSE;
}

/* Has it a table with each hook, and a log number of its own if any? */
static bool is_complete(unsigned i)
{
    const struct change_kind *kind = kinds[i].kind;
    int log_number = kinds[i].log_number;
    enum world_change_kind found;

    if (!kind || !kind->source || !kind->scope || !kind->make || !kind->persist || !kind->encode ||
        !kind->decode || !kind->announce || !kind->count)
        return false;
    if (log_number == 0)
        return true;
    return log_number > 0 && log_number < RECORD_SNAPSHOT &&
           change_kind_of_log(log_number, &found) && found == i &&
           (kind->scope == CHANGE_OF_LOCALE || kind->scope == CHANGE_OF_MODEL ||
            kind->scope == CHANGE_OF_PIN);
}

void change_kinds_check(void)
{
    for (unsigned i = 0; i < KIND_COUNT; i++)
        if (!is_complete(i)) {
            log_error("kind of change %u (%s): its table lacks a member, or its log number is used "
                      "twice",
                      i, kinds[i].name ? kinds[i].name : "without a line");
            CHECK(false);
        }
}

/* ---- for the tables -------------------------------------------------------------------------- */

enum err_code make_nothing(struct draft *draft, struct change_result *result, struct err *err)
{
    (void)draft;
    (void)result;
    (void)err;
    return ERR_OK;
}

enum err_code persist_nothing(struct store *store, const struct change_result *result,
                              struct store_edit *row, struct err *err)
{
    (void)store;
    (void)result;
    (void)row;
    (void)err;
    return ERR_OK;
}

void encode_nothing(struct record_sink *sink, const struct change_result *result)
{
    (void)sink;
    (void)result;
}

void decode_nothing(struct record_reader *reader, const struct cluster_entry *entry,
                    struct world_change *out)
{
    (void)reader;
    (void)entry;
    (void)out;
}

void announce_nothing(struct world *world, const struct change_result *result)
{
    (void)world;
    (void)result;
}

void count_nothing(struct world_stats *counted, const struct change_result *result)
{
    (void)counted;
    (void)result;
}

void kind_bound_locale(const struct locale *locale, struct feed_event *event)
{
    event->has_bounds = locale->has_bounds;
    event->bounds = locale->bounds;
}

void kind_bound_layer(const struct layer *layer, struct feed_event *event)
{
    struct box3 box;

    if (!layer || !layer_bounds(layer, &box))
        return;
    event->bounds = event->has_bounds ? box3_union(event->bounds, box) : box;
    event->has_bounds = true;
}
