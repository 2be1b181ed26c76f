/*
 * The inside of a copy: the locales that it holds, what it has published, and its readers.
 */
#ifndef KOTA_GROUND_COPY_H
#define KOTA_GROUND_COPY_H

#include "client/ground/kota-ground.h"

#include "terrain/field/edit.h"
#include "world/ask/query.h"
#include "world/values/snapshot.h"

#include <stdatomic.h>

/* What of a heightfield is held: these samples; all of them where is_part is not set. */
struct held_part {
    struct sample_rect rect;
    bool is_part;
};

/* A locale of a view. */
struct kota_ground_locale {
    const struct locale *locale;     /* of the view's snapshot */
    struct layer_choice ground;      /* without layers: there is none, or several */
    const struct heightfield *field; /* the whole ground, for the short way; NULL: another ground */
    struct held_part *parts;         /* [layers]; NULL: all layers are held whole */
};

struct kota_ground_view {
    struct world_snapshot *snapshot; /* owned */
    struct kota_ground_view *next;   /* among the retired ones */
    bool has_parts;
    struct kota_ground_locale locales[]; /* of the snapshot, in the order of ids */
};

struct kota_ground_reader {
    _Alignas(64) _Atomic(struct kota_ground_view *) held;
    struct kota_ground_copy *copy;
    struct kota_ground_reader *next; /* never changes once it is in the list */
    atomic_bool is_used;
};

struct following; /* follow.h */

struct held_locale {
    char id[WORLD_ID_MAX + 1];
    struct locale *draft;        /* with all changes so far; NULL: none yet */
    struct locale *shown;        /* of the next view; NULL: in none */
    struct following *following; /* NULL: it is changed by values */
    struct held_locale *next;
};

struct kota_ground_copy {
    _Atomic(struct kota_ground_view *) published;
    _Atomic(struct kota_ground_reader *) readers;
    struct kota_ground_view *retired;
    struct held_locale *locales;
    uint32_t last_number; /* of a need */
};

/* Writes the error, unless error is NULL. Returns false. */
bool ground_fail(struct kota_ground_error *error, const struct err *err);

/* NULL: none. */
struct held_locale *copy_find(const struct kota_ground_copy *copy, const char *id);
/* The one of that id, or a new one; NULL and the error. */
struct held_locale *copy_add(struct kota_ground_copy *copy, const char *id, struct err *err);
void copy_remove(struct kota_ground_copy *copy, struct held_locale *held);

/* Takes `draft` as the draft. */
void held_draft(struct held_locale *held, struct locale *draft);
/* The next view has the draft; or with false nothing of this locale. */
void held_show(struct held_locale *held, bool is_shown);

/* What is held of a layer of a locale that is followed (follow.c). */
struct held_part following_part(const struct following *following, const char *layer);
void following_free(struct following *following); /* NULL is fine */

#endif
