/*
 * Preconditions of RFC 9110, section 13, where the tag is a revision.
 *
 * Problem: of two editors that have read the same revision one must win and the other must get an
 * error; only the writer sees the world at the moment of a change, and it takes one revision, while
 * a header may list several. Approach: revisions only grow, so listed ones below the snapshot's
 * cannot match any more; the snapshot's own is taken if it is listed, else the next higher one. (A
 * client that lists two revisions which both become current while it waits may be refused; it reads
 * again.) If-Match compares strongly, so a weak tag never matches. Whether the target must be there
 * or must not is a condition of its own; it means the locale, or on a layer's path the layer.
 */
#include "api/precondition.h"

#include <stdio.h>
#include <string.h>

enum { REVISION_DIGITS_MAX = 18 };

static const char if_match[] = "If-Match", if_none_match[] = "If-None-Match";

static void skip(struct span *rest, const char *set)
{
    while (rest->length > 0 && *rest->at != '\0' && strchr(set, *rest->at)) {
        rest->at++;
        rest->length--;
    }
}

static void cut(struct span *rest, size_t length)
{
    rest->at += length;
    rest->length -= length;
}

/* Takes one tag; the text between its quotes goes to *opaque. False when there is none. */
static bool tag_next(struct span *rest, struct span *opaque, bool *is_weak)
{
    size_t length = 0;

    *is_weak = rest->length > 2 && memcmp(rest->at, "W/", 2) == 0;
    if (*is_weak)
        cut(rest, 2);
    if (rest->length == 0 || *rest->at != '"')
        return false;
    cut(rest, 1);
    while (length < rest->length && rest->at[length] != '"') {
        unsigned char c = (unsigned char)rest->at[length++];

        if (c <= 0x20 || c == 0x7f)
            return false;
    }
    if (length == rest->length)
        return false;
    *opaque = (struct span){rest->at, length};
    cut(rest, length + 1);
    return true;
}

/*
 * 0 when it is no revision as this daemon writes it: "7", or "7.12" of a locale whose layers have
 * moved 12 times (locale_tag).
 */
static uint64_t revision_of(struct span opaque)
{
    const char *dot = opaque.length > 0 ? memchr(opaque.at, '.', opaque.length) : NULL;
    uint64_t revision = 0, moves;

    if (dot) {
        struct span count = {dot + 1, (size_t)(opaque.at + opaque.length - dot) - 1};

        if (!span_count(count, &moves))
            return 0;
        opaque.length = (size_t)(dot - opaque.at);
    }
    if (opaque.length == 0 || opaque.length > REVISION_DIGITS_MAX || *opaque.at == '0')
        return 0;
    for (size_t i = 0; i < opaque.length; i++) {
        if (opaque.at[i] < '0' || opaque.at[i] > '9')
            return 0;
        revision = revision * 10 + (uint64_t)(opaque.at[i] - '0');
    }
    return revision;
}

/* Is a preferred to b, by the rule of struct tag_match? */
static bool is_better(uint64_t a, uint64_t b, uint64_t current)
{
    if (b == UINT64_MAX)
        return true;
    if (a >= current)
        return b < current || a < b;
    return b < current && a > b;
}

bool tags_read(struct span header, uint64_t current, bool weak_too, struct tag_match *out)
{
    struct span rest = header, opaque;
    size_t count = 0;

    *out = (struct tag_match){.revision = UINT64_MAX};
    if (!rest.at)
        return false;
    skip(&rest, " \t");
    while (rest.length > 0 && (rest.at[rest.length - 1] == ' ' || rest.at[rest.length - 1] == '\t'))
        rest.length--;
    if (rest.length == 1 && *rest.at == '*') {
        out->is_any = true;
        return true;
    }
    for (skip(&rest, " \t,"); rest.length > 0; count++) {
        uint64_t revision;
        bool is_weak;

        if (!tag_next(&rest, &opaque, &is_weak))
            return false;
        revision = is_weak && !weak_too ? 0 : revision_of(opaque);
        if (revision != 0 && is_better(revision, out->revision, current))
            out->revision = revision;
        skip(&rest, " \t");
        if (rest.length > 0 && *rest.at != ',')
            return false;
        skip(&rest, " \t,");
    }
    return count > 0;
}

/* Is the locale's tag itself one of them? */
static bool has_tag(struct span header, const struct locale *locale)
{
    char tag[LOCALE_TAG_MAX + 1];
    struct span rest = header, opaque;
    bool is_weak;

    locale_tag(locale, tag);
    for (skip(&rest, " \t,"); rest.length > 0; skip(&rest, " \t,")) {
        if (!tag_next(&rest, &opaque, &is_weak))
            return false;
        if (span_equals(opaque, tag))
            return true;
    }
    return false;
}

void locale_tag(const struct locale *locale, char out[LOCALE_TAG_MAX + 1])
{
    if (locale->transform_seq == 0)
        snprintf(out, LOCALE_TAG_MAX + 1, "%llu", (unsigned long long)locale->revision);
    else
        snprintf(out, LOCALE_TAG_MAX + 1, "%llu.%llu", (unsigned long long)locale->revision,
                 (unsigned long long)locale->transform_seq);
}

bool precondition_is_unchanged(const struct call *call)
{
    struct tag_match match;

    if (call->locale->transform_seq != 0)
        return has_tag(call_request_header(call, "if-none-match"), call->locale) ||
               (tags_read(call_request_header(call, "if-none-match"), 1, true, &match) &&
                match.is_any);
    return tags_read(call_request_header(call, "if-none-match"), call->locale->revision, true,
                     &match) &&
           (match.is_any || match.revision == call->locale->revision);
}

static enum err_code decode_none_match(struct span header, bool may_create,
                                       struct world_change *change, struct err *err)
{
    struct tag_match match;

    if (!tags_read(header, 0, true, &match) || !match.is_any)
        err_set(err, ERR_BAD_INPUT, "If-None-Match of a write takes only *: only if it is new");
    else if (!may_create)
        err_set(err, ERR_BAD_INPUT, "If-None-Match belongs to a PUT: only if it is new");
    else {
        change->condition = WORLD_IF_ABSENT;
        return ERR_OK;
    }
    return err_at(err, if_none_match);
}

enum err_code precondition_decode(const struct call *call, bool may_create,
                                  struct world_change *change, struct err *err)
{
    struct span match_header = call_request_header(call, "if-match");
    struct span none_match_header = call_request_header(call, "if-none-match");
    struct tag_match match;

    if (none_match_header.at && match_header.at)
        return err_set_at(err, ERR_BAD_INPUT, if_none_match,
                          "If-Match and If-None-Match contradict each other");
    if (none_match_header.at)
        return decode_none_match(none_match_header, may_create, change, err);
    if (!match_header.at)
        return ERR_OK;
    if (!tags_read(match_header, call->locale ? call->locale->revision : 0, false, &match))
        return err_set_at(err, ERR_BAD_INPUT, if_match,
                          "If-Match is * or revisions in quotes, separated by commas, as in \"7\"");
    if (match.is_any)
        change->condition = WORLD_IF_PRESENT;
    else
        change->if_revision = match.revision;
    return ERR_OK;
}

enum err_code precondition_check(const struct call *call, const struct world_change *change,
                                 struct err *err)
{
    const struct locale *locale = call->locale;
    bool is_pin = change->kind == WORLD_PUT_PIN;
    bool is_there = locale &&
                    (!world_is_of_layer(change->kind) || locale_layer(locale, change->layer_id)) &&
                    (!is_pin || locale_pin(locale, change->pin));
    const char *what = is_pin ? "pin" : world_is_of_layer(change->kind) ? "layer" : "locale";

    if (!locale && change->if_revision != 0)
        err_set(err, ERR_PRECONDITION_FAILED, "there is no locale %s", change->locale_id);
    else if (locale && change->if_revision != 0 &&
             (change->if_revision < locale->revision || change->if_revision == UINT64_MAX))
        err_set(err, ERR_PRECONDITION_FAILED,
                "locale %s is at revision %llu, which If-Match does not name", locale->id,
                (unsigned long long)locale->revision);
    else if (change->condition == WORLD_IF_PRESENT && !is_there)
        err_set(err, ERR_PRECONDITION_FAILED, "there is no such %s yet", what);
    else if (change->condition == WORLD_IF_ABSENT && is_there)
        err_set(err, ERR_PRECONDITION_FAILED, "there is such a %s already", what);
    else
        return ERR_OK;
    precondition_name(change->condition, err);
    return err->code;
}

void precondition_name(enum world_condition condition, struct err *err)
{
    if (err->code == ERR_PRECONDITION_FAILED && err->pointer[0] == '\0')
        err_at(err, "%s", condition == WORLD_IF_ABSENT ? if_none_match : if_match);
}
