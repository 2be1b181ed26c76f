/*
 * A memo of paths: see path_memo.h.
 *
 * Problem: a client asks one path over and over, with other numbers behind the '?'. The head check
 * looks at each byte of the line, the target is cut at each '/', and the router compares what came
 * of it. Approach: what those say is a function of the method and the path. So the first bytes of
 * the last request lines, up to and including the '?' or the space behind the path, are kept with
 * what came of them. When a line begins with the very same bytes only its query is looked at: once,
 * eight bytes at a time, for what may not stand there and for what it is cut at. A query with
 * anything encoded, or with more items than few, goes the long way, and so does whatever is odd.
 *
 * Invariants: raw was taken by the head check as the beginning of a GET or POST, its path holds no
 * '%', and the router has found the route; pieces count from its first byte.
 */
#include "http/path_memo.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte is the lowest one");

#define EACH(byte) (~(uint64_t)0 / 255 * (byte))
#define VERSION " HTTP/1.1\r\n"
#define LEAST_BYTES ((size_t)8) /* of a line that is kept: they are compared as one word */

static uint64_t load_8(const char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof word);
    return word;
}

/* ---- the query --------------------------------------------------------------------------------
 */

/*
 * The bytes of a word that end or divide something, or that may not stand in a query as it is: bit
 * 7 of each that is below '\'', '+', '=', or beyond '~'. No sum carries into the next byte.
 */
static inline uint64_t marks_in(uint64_t word)
{
    uint64_t x = word & EACH(0x7f), above = x + EACH(0x80 - '\'');
    uint64_t no_is = (x ^ EACH('=')) + EACH(0x7f), no_plus = (x ^ EACH('+')) + EACH(0x7f);

    return (~(above & no_is & no_plus) | (x + EACH(1)) | word) & EACH(0x80);
}

/* What the reader of a query knows: the item that has begun, and where its '=' was. */
struct item {
    size_t start, is; /* is: 0 for none, since it is never at the beginning of a line */
};

/* An item that ends before `end`. False: one too many. */
static inline bool add_item(struct http_path_memo *memo, struct item item, size_t end)
{
    size_t stop = item.is ? item.is : end, value = item.is ? item.is + 1 : end;

    if (item.start == end)
        return true;
    if (memo->item_count == HTTP_PATH_MEMO_ITEMS_MAX)
        return false;
    memo->items[memo->item_count].name =
        (struct http_piece){(uint16_t)item.start, (uint16_t)(stop - item.start)};
    memo->items[memo->item_count].value =
        (struct http_piece){(uint16_t)value, (uint16_t)(end - value)};
    memo->item_count++;
    return true;
}

/*
 * Cuts the query from `start` on; where the space behind it is, or 0. The line is whole only with
 * more than a word behind that space, so no word of a whole one ends beyond `length`.
 */
static size_t cut_query(struct http_path_memo *memo, const char *at, size_t start, size_t length)
{
    struct item item = {start, 0};

    for (size_t i = start; length - i >= 8; i += 8) {
        for (uint64_t marks = marks_in(load_8(at + i)); marks; marks &= marks - 1) {
            size_t here = i + (size_t)__builtin_ctzll(marks) / 8;

            switch (at[here]) {
            case '=':
                item.is = item.is ? item.is : here;
                break;
            case '&':
                if (!add_item(memo, item, here))
                    return 0;
                item = (struct item){here + 1, 0};
                break;
            case ' ':
                return add_item(memo, item, here) ? here : 0;
            default:
                return 0;
            }
        }
    }
    return 0;
}

/* ---- finding ----------------------------------------------------------------------------------
 */

/* The last word tells most paths apart. */
static inline bool is_begun_by(const char *at, size_t length, const struct http_path *path)
{
    size_t last = path->length - LEAST_BYTES;

    return path->length && length > path->length && load_8(at + last) == load_8(path->raw + last) &&
           memcmp(at, path->raw, last) == 0;
}

static const struct http_path *find_path(const struct http_path_memo *memo, const char *at,
                                         size_t length)
{
    for (size_t i = 0; i < HTTP_PATH_MEMO_SETS; i++)
        if (is_begun_by(at, length, &memo->sets[i]))
            return &memo->sets[i];
    return NULL;
}

size_t http_path_memo_find(struct http_path_memo *memo, const char *at, size_t length,
                           const struct http_limits *limits, struct http_head *head)
{
    const struct http_path *path = find_path(memo, at, length);
    size_t space;

    memo->found = NULL;
    if (!path)
        return 0;
    memo->item_count = 0;
    space = path->raw[path->length - 1] == ' ' ? path->length - 1
                                               : cut_query(memo, at, path->length, length);
    if (space == 0 || length - space < sizeof VERSION - 1 ||
        memcmp(at + space, VERSION, sizeof VERSION - 1) != 0 || space > UINT16_MAX ||
        space - path->path.at > limits->target_bytes_max ||
        space + sizeof VERSION - 1 > limits->header_bytes_max)
        return 0;
    memo->found = path;
    memo->target_length = space - path->path.at;
    *head = (struct http_head){.has_request_line = true,
                               .method = path->method,
                               .target_start = path->path.at,
                               .target_length = memo->target_length};
    head->scanned = head->line_start = space + sizeof VERSION - 1;
    return head->line_start;
}

/* ---- applying and keeping ---------------------------------------------------------------------
 */

static inline struct span span_of(const char *text, struct http_piece piece)
{
    return (struct span){text + piece.at, piece.length};
}

static inline struct http_piece piece_of(const char *text, struct span span)
{
    return (struct http_piece){(uint16_t)(span.at - text), (uint16_t)span.length};
}

static enum err_code apply_query(const struct http_path_memo *memo, const char *text,
                                 struct http_request *request, struct err *err)
{
    const struct http_path *path = memo->found;
    struct http_target *target = &request->target;
    size_t end = path->path.at + memo->target_length;

    target->query = (struct span){text + path->length, end - path->length};
    if (memo->item_count == 0)
        return ERR_OK;
    target->items = http_arena_alloc(&request->arena, memo->item_count * sizeof *target->items);
    if (!target->items)
        return err_set(err, ERR_NO_MEMORY, "no memory for the query");
    for (size_t i = 0; i < memo->item_count; i++)
        target->items[i] = (struct http_query_item){span_of(text, memo->items[i].name),
                                                    span_of(text, memo->items[i].value)};
    target->item_count = memo->item_count;
    return ERR_OK;
}

enum err_code http_path_memo_apply(const struct http_path_memo *memo, const char *text,
                                   struct http_request *request, struct err *err)
{
    const struct http_path *path = memo->found;
    struct http_target *target = &request->target;
    struct http_match *match = &request->match;

    target->path = span_of(text, path->path);
    target->query = (struct span){NULL, 0};
    target->items = NULL;
    match->route = path->route;
    match->allowed = path->allowed;
    match->param_count = path->param_count;
    for (size_t i = 0; i < path->param_count; i++)
        match->params[i] = span_of(text, path->params[i]);
    return path->raw[path->length - 1] == '?' ? apply_query(memo, text, request, err) : ERR_OK;
}

static bool is_plain(const struct http_request *request, const char *text)
{
    const struct http_head *head = &request->head;
    struct span path = request->target.path;

    return (head->method == METHOD_GET || head->method == METHOD_POST) && !head->is_head &&
           !head->is_options && !head->is_1_0 && head->begin == 0 &&
           path.at == text + head->target_start && !memchr(path.at, '%', path.length);
}

void http_path_memo_keep(struct http_path_memo *memo, const struct http_request *request,
                         const char *text)
{
    const struct http_match *match = &request->match;
    struct span found = request->target.path;
    size_t length = (size_t)(found.at + found.length + 1 - text);
    struct http_path *path;

    if (!is_plain(request, text) || length < LEAST_BYTES || length > HTTP_PATH_MEMO_BYTES_MAX)
        return;
    memo->kept = (memo->kept + 1) % HTTP_PATH_MEMO_SETS;
    path = &memo->sets[memo->kept];
    memcpy(path->raw, text, length);
    path->length = length;
    path->method = request->head.method;
    path->path = piece_of(text, found);
    for (size_t i = 0; i < match->param_count; i++)
        path->params[i] = piece_of(text, match->params[i]);
    path->param_count = match->param_count;
    path->route = match->route;
    path->allowed = match->allowed;
}
