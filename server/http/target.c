/*
 * Request targets: see target.h.
 *
 * Approach: the path is split at '/' first and each segment decoded by itself, so that an encoded
 * slash stays inside its segment and can never change which route is meant. Queries are split at
 * '&' and '=' before decoding for the same reason. An encoded NUL is refused: it would cut the
 * text for any C function behind us. Dot segments are not resolved; no route has them, and a
 * handler sees them as the text they are.
 *
 * Invariants: every span made here points into the target or into the arena; the head check has
 * already refused control bytes, non-ASCII bytes and '#'.
 *
 * Source: RFC 3986 sections 2.1, 3; RFC 9112 section 3.2; WHATWG URL, form decoding, for '+'.
 */
#include "http/target.h"

#include <string.h>
#include <strings.h>

int http_hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

enum err_code http_percent_decode(char *out, size_t *out_length, const char *in, size_t length,
                                  bool plus_is_space, struct err *err)
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        char c = in[i];

        if (c == '+' && plus_is_space)
            c = ' ';
        if (c == '%') {
            int high = length - i > 2 ? http_hex_value(in[i + 1]) : -1;
            int low = length - i > 2 ? http_hex_value(in[i + 2]) : -1;

            if (high < 0 || low < 0)
                return err_set(err, ERR_BAD_INPUT,
                               "'%%' in the target is not followed by two hexadecimal digits");
            c = (char)(high * 16 + low);
            if (c == '\0')
                return err_set(err, ERR_BAD_INPUT, "the target holds an encoded NUL (%%00)");
            i += 2;
        }
        out[used++] = c;
    }
    *out_length = used;
    return ERR_OK;
}

/* The decoded form of text: itself where there is nothing to decode. */
static enum err_code decode(struct span *out, struct span text, bool plus_is_space,
                            struct http_arena *arena, struct err *err)
{
    char *copy;

    *out = text;
    if (text.length == 0 || (!memchr(text.at, '%', text.length) &&
                             !(plus_is_space && memchr(text.at, '+', text.length))))
        return ERR_OK;
    copy = http_arena_alloc(arena, text.length);
    if (!copy)
        return err_set(err, ERR_NO_MEMORY, "no memory to decode the request target");
    out->at = copy;
    return http_percent_decode(copy, &out->length, text.at, text.length, plus_is_space, err);
}

/* Cuts text at the first separator: what is before it is returned, text becomes the rest. */
static struct span cut(struct span *text, char separator, bool *found)
{
    struct span head = *text;
    const char *at = text->length ? memchr(text->at, separator, text->length) : NULL;

    *found = at != NULL;
    if (at) {
        head.length = (size_t)(at - text->at);
        text->length -= head.length + 1;
        text->at = at + 1;
    } else {
        text->at += text->length;
        text->length = 0;
    }
    return head;
}

static enum err_code parse_path(struct http_target *target, struct http_arena *arena,
                                struct err *err)
{
    struct span rest = {target->path.at + 1, target->path.length - 1};
    bool more = true;

    while (more) {
        struct span segment = cut(&rest, '/', &more), decoded;

        if (decode(&decoded, segment, false, arena, err))
            return err->code;
        if (target->segment_count < HTTP_SEGMENTS_MAX)
            target->segments[target->segment_count++] = decoded;
        else
            target->segment_count = HTTP_SEGMENTS_MAX + 1;
    }
    return ERR_OK;
}

static enum err_code parse_query(struct http_target *target, struct span query,
                                 struct http_arena *arena, struct err *err)
{
    size_t items_max = 1;
    bool more = true;

    for (size_t i = 0; i < query.length; i++)
        items_max += query.at[i] == '&';
    target->items = http_arena_alloc(arena, items_max * sizeof *target->items);
    if (!target->items)
        return err_set(err, ERR_NO_MEMORY, "no memory for the query");
    while (more) {
        struct span value = cut(&query, '&', &more), name;
        bool has_value;
        struct http_query_item *item = &target->items[target->item_count];

        if (value.length == 0)
            continue;
        name = cut(&value, '=', &has_value);
        if (decode(&item->name, name, true, arena, err) ||
            decode(&item->value, value, true, arena, err))
            return err->code;
        target->item_count++;
    }
    return ERR_OK;
}

/* Drops "http://authority" from an absolute-form target; an empty path becomes "/". */
static enum err_code strip_authority(struct span *text, struct err *err)
{
    size_t scheme_length = 0, end;

    if (text->length > 7 && strncasecmp(text->at, "http://", 7) == 0)
        scheme_length = 7;
    else if (text->length > 8 && strncasecmp(text->at, "https://", 8) == 0)
        scheme_length = 8;
    end = scheme_length;
    while (end < text->length && text->at[end] != '/' && text->at[end] != '?')
        end++;
    if (scheme_length == 0 || end == scheme_length)
        return err_set(err, ERR_BAD_INPUT,
                       "the request target is neither a path nor an absolute http URI");
    text->at += end;
    text->length -= end;
    return ERR_OK;
}

enum err_code http_target_parse(struct http_target *target, struct span text,
                                struct http_arena *arena, struct err *err)
{
    bool has_query;
    struct span rest = text;

    memset(target, 0, sizeof *target);
    if (text.length == 1 && text.at[0] == '*') {
        target->is_asterisk = true;
        target->path = text;
        return ERR_OK;
    }
    if (text.at[0] != '/' && strip_authority(&rest, err))
        return err->code;
    target->path = cut(&rest, '?', &has_query);
    if (target->path.length == 0)
        target->path = (struct span){"/", 1};
    if (parse_path(target, arena, err))
        return err->code;
    return has_query ? parse_query(target, rest, arena, err) : ERR_OK;
}
