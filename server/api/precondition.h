/*
 * The preconditions of a request: If-Match and If-None-Match. The entity tag of a locale, and of
 * everything below it, is its revision in quotes (RFC 9110, section 13).
 */
#ifndef KOTA_API_PRECONDITION_H
#define KOTA_API_PRECONDITION_H

#include "api/call.h"

/* The result of a list of tags for a locale at one revision. */
struct tag_match {
    bool is_any; /* the header is `*` */
    /*
     * `current` when a tag names it; else of the named revisions the least above it, else the
     * greatest; UINT64_MAX, which no locale reaches, when no tag is a revision.
     */
    uint64_t revision;
};

/*
 * Reads `*` or a list of tags. Weak ones count only with `weak_too` (If-None-Match). False when it
 * is neither. O(length).
 */
bool tags_read(struct span header, uint64_t current, bool weak_too, struct tag_match *out);

/* The text between the quotes of a locale's ETag: 7, or 7.12 once layers have moved 12 times. */
enum { LOCALE_TAG_MAX = 41 };
void locale_tag(const struct locale *locale, char out[LOCALE_TAG_MAX + 1]);

/* GET of a locale: does If-None-Match name its tag? What is malformed matches nothing. */
bool precondition_is_unchanged(const struct call *call);

/*
 * Reads If-Match and If-None-Match of a write into change->if_revision and change->condition;
 * call->locale is NULL when there is none.
 * ERR_BAD_INPUT  malformed, both at once, If-None-Match with tags or unless may_create
 */
enum err_code precondition_decode(const struct call *call, bool may_create,
                                  struct world_change *change, struct err *err);

/*
 * Can the change be refused already, by the snapshot? The writer decides in the end, but then an
 * upload need not be decoded first.
 * ERR_PRECONDITION_FAILED
 */
enum err_code precondition_check(const struct call *call, const struct world_change *change,
                                 struct err *err);

/* Names the header in the writer's ERR_PRECONDITION_FAILED. */
void precondition_name(enum world_condition condition, struct err *err);

#endif
