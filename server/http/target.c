/*
 * Request targets: see target.h.
 *
 * Approach: the path is split at '/' first and each segment decoded separately, so that an encoded
 * slash stays inside its segment and can never change which route is meant. Queries are split at
 * '&' and '=' before decoding for the same reason. An encoded NUL is refused: it would end the text
 * for any C function. Dot segments are not resolved; no route has them, and a handler sees them as
 * the text they are.
 *
 * Invariants: every span made here points into the target or into the arena; the head check has
 * already refused control bytes, non-ASCII bytes and '#'.
 *
 * Source: RFC 3986 sections 2.1, 3; RFC 9112 section 3.2; WHATWG URL, form decoding, for '+'.
 */
#include "http/target.h"

#include "base/text/hex.h"
#include "http/authority.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

enum err_code http_percent_decode(char *out, size_t *out_length, const char *in, size_t length,
                                  bool plus_is_space, struct err *err)
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        char c = in[i];

        if (c == '+' && plus_is_space)
            c = ' ';
        if (c == '%') {
            int high = length - i > 2 ? hex_value(in[i + 1]) : -1;
            int low = length - i > 2 ? hex_value(in[i + 2]) : -1;

            if (high < 0 || low < 0)
                return err_set(err, ERR_BAD_REQUEST,
                               "'%%' in the target is not followed by two hexadecimal digits");
            c = (char)(high * 16 + low);
            if (c == '\0')
                return err_set(err, ERR_BAD_REQUEST, "the target holds an encoded NUL (%%00)");
            i += 2;
        }
        out[used++] = c;
    }
    *out_length = used;
    return ERR_OK;
}

/* Where decoded text goes. */
struct decoder {
    struct http_arena *arena;
    bool is_needed; /* there is a '%' or '+' somewhere in the target, which is rare */
};

/* The decoded form of text: itself where there is nothing to decode. */
static enum err_code decode_part(struct span *out, struct span text, bool plus_is_space,
                                 const struct decoder *decoder, struct err *err)
{
    char *copy;

    *out = text;
    if (text.length == 0 || (!memchr(text.at, '%', text.length) &&
                             !(plus_is_space && memchr(text.at, '+', text.length))))
        return ERR_OK;
    copy = http_arena_alloc(decoder->arena, text.length);
    if (!copy)
        return err_set(err, ERR_NO_MEMORY, "no memory to decode the request target");
    out->at = copy;
    return http_percent_decode(copy, &out->length, text.at, text.length, plus_is_space, err);
}

static inline enum err_code decode(struct span *out, struct span text, bool plus_is_space,
                                   const struct decoder *decoder, struct err *err)
{
    *out = text;
    return decoder->is_needed ? decode_part(out, text, plus_is_space, decoder, err) : ERR_OK;
}

#define IS_LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

/*
 * How many bytes are before the first `byte`, eight at a time: of those that became zero the lowest
 * has its highest bit set. The pieces are a few bytes long, so that a call of memchr() would cost
 * more than it finds.
 */
static inline size_t length_before(struct span text, char byte)
{
    const uint64_t each = ~(uint64_t)0 / 255;
    size_t used = 0;

    for (; IS_LITTLE && text.length - used >= 8; used += 8) {
        uint64_t x;

        memcpy(&x, text.at + used, 8);
        x ^= each * (unsigned char)byte;
        x = (x - each) & ~x & each << 7;
        if (x)
            return used + (size_t)__builtin_ctzll(x) / 8;
    }
    while (used < text.length && text.at[used] != byte)
        used++;
    return used;
}

/* Cuts text at the first separator: returns the part before it, text becomes the rest. */
static inline struct span cut(struct span *text, char separator, bool *found)
{
    struct span head = {text->at, length_before(*text, separator)};

    *found = head.length < text->length;
    text->at += head.length + *found;
    text->length -= head.length + *found;
    return head;
}

static enum err_code parse_path(struct http_target *target, const struct decoder *decoder,
                                struct err *err)
{
    struct span rest = {target->path.at + 1, target->path.length - 1};
    bool more = true;

    while (more) {
        struct span segment = cut(&rest, '/', &more), decoded;

        if (decode(&decoded, segment, false, decoder, err))
            return err->code;
        if (target->segment_count < HTTP_SEGMENTS_MAX)
            target->segments[target->segment_count++] = decoded;
        else
            target->segment_count = HTTP_SEGMENTS_MAX + 1;
    }
    return ERR_OK;
}

/* Room for more items; the memory of the old ones stays in the arena until the request ends. */
static bool grow_items(struct http_target *target, size_t *room, struct http_arena *arena)
{
    size_t wanted = *room ? 4 * *room : 4;
    struct http_query_item *items = http_arena_alloc(arena, wanted * sizeof *items);

    if (!items)
        return false;
    if (target->item_count)
        memcpy(items, target->items, target->item_count * sizeof *items);
    target->items = items;
    *room = wanted;
    return true;
}

static enum err_code parse_query(struct http_target *target, struct span query,
                                 const struct decoder *decoder, struct err *err)
{
    size_t room = 0;
    bool more = true;

    while (more) {
        struct span value = cut(&query, '&', &more), name;
        bool has_value;
        struct http_query_item *item;

        if (value.length == 0)
            continue;
        if (target->item_count == room && !grow_items(target, &room, decoder->arena))
            return err_set(err, ERR_NO_MEMORY, "no memory for the query");
        item = &target->items[target->item_count];
        name = cut(&value, '=', &has_value);
        if (decode(&item->name, name, true, decoder, err) ||
            decode(&item->value, value, true, decoder, err))
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
        return err_set(err, ERR_BAD_REQUEST,
                       "the request target is neither a path nor an absolute http URI");
    if (http_authority_check((struct span){text->at + scheme_length, end - scheme_length},
                             "the target's authority", err))
        return err->code;
    text->at += end;
    text->length -= end;
    return ERR_OK;
}

enum err_code http_target_parse(struct http_target *target, struct span text,
                                struct http_arena *arena, struct err *err)
{
    bool has_query;
    struct span rest = text;
    struct decoder decoder = {arena, text.length && (memchr(text.at, '%', text.length) ||
                                                     memchr(text.at, '+', text.length))};

    target->is_asterisk = false;
    target->path = target->query = (struct span){NULL, 0};
    target->segment_count = target->item_count = 0;
    target->items = NULL;
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
    if (parse_path(target, &decoder, err))
        return err->code;
    if (!has_query)
        return ERR_OK;
    target->query = rest;
    return parse_query(target, rest, &decoder, err);
}
