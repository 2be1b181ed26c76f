/*
 * A kind of change: a table with everything in which it differs from others. Private to world/.
 *
 * To add a kind: a line in WORLD_CHANGE_KINDS (world.h) with the members of struct world_change
 * that it needs, a file here with its table, and the file of its call in api/calls, which decodes
 * the request into a struct world_change and encodes the outcome. world/ includes nothing of api/.
 *
 * A table without a file does not link. A table that lacks a member, or a number that is used
 * twice, ends the process when a world is created (change_kinds_check): no hook is ever NULL. A
 * kind without work at some place names one of the functions ..._nothing.
 */
#ifndef KOTA_WORLD_KIND_H
#define KOTA_WORLD_KIND_H

#include "world/follow/record_data.h"
#include "world/world_data.h"

/* The products of a change besides its values. */
enum change_scope {
    CHANGE_OF_LOCALE = 1, /* a revision of a locale, an event, a row in the store's log */
    CHANGE_OF_POSE,       /* the next state of a locale at its revision; written later */
    CHANGE_OF_PIN,        /* the same state of a locale with other pins; no event */
    CHANGE_OF_MODEL,      /* no locale, no event: a model, or values that are derived from one */
    CHANGE_OF_NOTHING     /* a question */
};

struct change_kind {
    const char *source; /* of its event, unless the change or make() names another */
    enum change_scope scope;
    bool is_of_layer;  /* the change's path names a layer */
    bool makes_locale; /* its locale may be missing */
    bool logs_layer;   /* its entry in a shared log names a layer */

    /*
     * result->before (NULL: none, only where makes_locale) becomes result->after, with
     * result->layer and the event's layer, rect and bounds. CHANGE_OF_LOCALE, CHANGE_OF_POSE and
     * CHANGE_OF_PIN: the caller puts result->after into the draft. CHANGE_OF_MODEL: the hook
     * advances the draft.
     */
    enum err_code (*make)(struct draft *draft, struct change_result *result, struct err *err);

    /*
     * Writes the values into the store's open transaction. *row is the log's row of the result,
     * which is written next (not of CHANGE_OF_MODEL and CHANGE_OF_PIN); row->polygons may be set to
     * bytes of malloc, which the caller frees. Not called of CHANGE_OF_POSE and CHANGE_OF_NOTHING.
     */
    enum err_code (*persist)(struct store *store, const struct change_result *result,
                             struct store_edit *row, struct err *err);

    /* The body of its entry in a shared log (record.h), and back into *out, whose kind and ids are
     * set. Called only where it has a log number. */
    void (*encode)(struct record_sink *sink, const struct change_result *result);
    void (*decode)(struct record_reader *reader, const struct cluster_entry *entry,
                   struct world_change *out);

    /* After the publication: notifies moves and builder. The feed has the event by then. Called
     * only of CHANGE_OF_LOCALE and CHANGE_OF_POSE. */
    void (*announce)(struct world *world, const struct change_result *result);

    /* Counts a published result in the numbers of this kind. Under the world's mutex. */
    void (*count)(struct world_stats *counted, const struct change_result *result);
};

#define CHANGE_KIND_TABLE(constant, number, log_number, table)                                     \
    extern const struct change_kind table;
WORLD_CHANGE_KINDS(CHANGE_KIND_TABLE)
#undef CHANGE_KIND_TABLE

const struct change_kind *change_kind(enum world_change_kind kind);

/* Its number in a shared log; 0: it is not recorded. */
int change_log_number(enum world_change_kind kind);

/* The kind of an entry in a shared log. False: no kind has that number. */
bool change_kind_of_log(int log_number, enum world_change_kind *kind);

/* Makes an entry of that number no revision? */
bool change_log_is_of_pin(int log_number);

/* ---- for the tables -------------------------------------------------------------------------- */

enum err_code make_nothing(struct draft *draft, struct change_result *result, struct err *err);
enum err_code persist_nothing(struct store *store, const struct change_result *result,
                              struct store_edit *row, struct err *err);
void encode_nothing(struct record_sink *sink, const struct change_result *result);
void decode_nothing(struct record_reader *reader, const struct cluster_entry *entry,
                    struct world_change *out);
void announce_nothing(struct world *world, const struct change_result *result);
void count_nothing(struct world_stats *counted, const struct change_result *result);

/* The event's bounds and range, where a field became another in the event's rectangle. */
void kind_describe_samples(const struct heightfield *before, const struct heightfield *after,
                           struct feed_event *event);

/* Do these samples lie in the bounds of the change, if it has some? */
enum err_code kind_check_rect(const struct world_change *change,
                              const struct heightfield_spec *spec, const struct sample_rect *rect,
                              struct err *err);

/* Does this box? NULL: there is none. */
enum err_code kind_check_box(const struct world_change *change, const struct box3 *box,
                             struct err *err);

/*
 * result->outcome becomes the next samples of a layer of result->before: after, layer and the event
 * with its content. And what such a kind writes and counts.
 */
enum err_code kind_make_samples(struct change_result *result, const struct layer *old,
                                struct err *err);
enum err_code kind_persist_samples(struct store *store, const struct change_result *result,
                                   struct store_edit *row, struct err *err);
void kind_count_samples(struct world_stats *counted, const struct change_result *result);

/* The event's bounds become those of a whole locale, or grow by those of a layer (may be NULL). */
void kind_bound_locale(const struct locale *locale, struct feed_event *event);
void kind_bound_layer(const struct layer *layer, struct feed_event *event);

/* Are both over the same samples or polygons? */
bool kind_has_same_surface(const struct layer *a, const struct layer *b);

/* Do layers that both have come first in `after`, in the order of `before`? */
bool kind_keeps_order(const struct locale *before, const struct locale *after);

/* Writes a new locale where `from`, another one, is there (NULL: it is not): what both have is
 * shared. Poses are among it. */
enum err_code kind_persist_fork(struct store *store, const struct locale *from,
                                const struct locale *after, struct err *err);

/* Writes a value where the rows are those of `before` (NULL: there are none). */
enum err_code kind_persist_value(struct store *store, const struct locale *before,
                                 const struct locale *after, struct err *err);

/* Writes a layer of `after` where the rows are those of `old` (NULL: there are none): only what
 * differs, if they are heightfields of one grid. */
enum err_code kind_persist_difference(struct store *store, const struct layer *old,
                                      const struct locale *after, const struct layer *layer,
                                      struct err *err);

#endif
