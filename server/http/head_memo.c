/*
 * A memo of field lines: see head_memo.h.
 *
 * Problem: a client on a connection that stays open sends the same field lines with each request,
 * and two parsers that look at every byte of them take a fifth of a short answer's time.
 * Approach: the verdict of both on the lines is a function of the method and of their bytes. So the
 * lines of the last plain requests are kept with what came of them; when a head of the same method
 * has the very same bytes behind its request line, that is taken. The request line is checked each
 * time, by the same function as always (head.h), and must be of the kind about which llhttp has no
 * choice: GET or POST, a target that begins with '/' and is printable without '#', HTTP/1.1. Of one
 * that asks a path again nothing but the query is checked (path_memo.h).
 * Whatever is not plain goes the long way. Several sets are kept, since the bodies of one client
 * have lengths that differ, and several clients may share a loop; the oldest one goes.
 *
 * Invariants: raw is what http_head_feed and llhttp have taken together, with head as its result;
 * a request never points into the memo, since it may outlive it.
 *
 * Dropped: a memo for each connection (2 KiB for each of 10,000, where one a loop does the same for
 * the connections of one program).
 */
#include "http/head_memo.h"

#include <string.h>

static bool is_plain(const struct http_head *head, const char *at)
{
    return (head->method == METHOD_GET || head->method == METHOD_POST) && !head->is_head &&
           !head->is_options && !head->is_1_0 && head->begin == 0 && at[head->target_start] == '/';
}

/* A body of known length comes with POST, and none with GET. */
static bool has_plain_framing(const struct http_head *head)
{
    bool is_post = head->method == METHOD_POST;

    return !head->has_transfer_encoding && !head->expects_continue && !head->expects_other &&
           head->has_content_length == is_post && (head->content_length > 0) == is_post;
}

void http_head_memo_keep(struct http_head_memo *memo, const struct http_request *request,
                         const char *raw, const char *text)
{
    const struct http_head *head = &request->head;
    size_t start = head->target_start + head->target_length + sizeof " HTTP/1.1\r\n" - 1;
    size_t length = head->length - start;
    struct http_head_lines *lines = &memo->sets[(memo->kept + 1) % HTTP_MEMO_SETS];

    if (!is_plain(head, raw) || !has_plain_framing(head) || request->repeated ||
        !request->wants_keep_alive || length > HTTP_MEMO_BYTES_MAX ||
        request->media_type.length > HTTP_MEMO_TYPE_BYTES_MAX ||
        request->field_count > HTTP_MEMO_FIELDS_MAX)
        return;
    memo->found = memo->kept = (size_t)(lines - memo->sets);
    memcpy(lines->raw, raw + start, length);
    memcpy(lines->tidy, text + start, length);
    for (size_t i = 0; i < request->field_count; i++) {
        const struct http_field *field = &request->fields[i];
        bool has_value = field->value.length > 0;

        lines->fields[i].name = (uint16_t)(field->name.at - text - (ptrdiff_t)start);
        lines->fields[i].name_length = (uint16_t)field->name.length;
        lines->fields[i].value =
            has_value ? (uint16_t)(field->value.at - text - (ptrdiff_t)start) : 0;
        lines->fields[i].value_length = (uint16_t)field->value.length;
    }
    lines->field_count = request->field_count;
    lines->initials = request->initials;
    memcpy(lines->type, request->media_type.at, request->media_type.length);
    lines->type_length = request->media_type.length;
    lines->head = *head;
    lines->length = length;
}

static bool begins_with(const struct http_head_lines *lines, const char *at, size_t length)
{
    return lines->length && length >= lines->length && memcmp(at, lines->raw, lines->length) == 0;
}

/* The one that was found last is looked at first. */
static const struct http_head_lines *find_lines(struct http_head_memo *memo, const char *at,
                                                size_t length, enum http_method method)
{
    for (size_t i = 0; i < HTTP_MEMO_SETS; i++) {
        size_t place = (memo->found + i) % HTTP_MEMO_SETS;
        const struct http_head_lines *lines = &memo->sets[place];

        if (lines->head.method == method && begins_with(lines, at, length)) {
            memo->found = place;
            return lines;
        }
    }
    return NULL;
}

/* Lines behind a request line of `start` bytes, if they keep the limits: a reload may have lowered
 * these. */
static const struct http_head_lines *find_allowed(struct http_head_memo *memo, const char *at,
                                                  size_t length, size_t start,
                                                  enum http_method method,
                                                  const struct http_limits *limits)
{
    const struct http_head_lines *lines = find_lines(memo, at + start, length - start, method);

    return lines && start + lines->length <= limits->header_bytes_max &&
                   lines->head.header_count <= limits->header_count_max
               ? lines
               : NULL;
}

/* The lines that are kept, behind a request line that is checked now. */
static const struct http_head_lines *find_checked(struct http_head_memo *memo, const char *at,
                                                  size_t length, const struct http_limits *limits,
                                                  struct http_head *head)
{
    /* a request line that is no method of ours finds nothing; the check below reads it whole */
    enum http_method method = *at == 'G' ? METHOD_GET : METHOD_POST;
    const char *newline = memchr(at, '\n', length);
    const struct http_head_lines *lines;
    size_t start = newline ? (size_t)(newline + 1 - at) : 0;
    struct err err;

    if (start < 2 || at[start - 2] != '\r')
        return NULL;
    lines = find_allowed(memo, at, length, start, method, limits);
    if (!lines)
        return NULL;
    *head = (struct http_head){0};
    if (http_head_check_request_line(head, at, 0, start - 2, limits, &err) || !is_plain(head, at) ||
        head->method != lines->head.method) {
        *head = (struct http_head){0};
        return NULL;
    }
    head->line_start = start;
    return lines;
}

const struct http_head_lines *http_head_memo_find(struct http_head_memo *memo, const char *at,
                                                  size_t length, const struct http_limits *limits,
                                                  struct http_head *head)
{
    size_t start = http_path_memo_find(&memo->paths, at, length, limits, head);
    const struct http_head_lines *lines =
        start ? find_allowed(memo, at, length, start, head->method, limits)
              : find_checked(memo, at, length, limits, head);

    if (!lines)
        return NULL;
    head->length = head->scanned = head->line_start = head->line_start + lines->length;
    head->header_count = lines->head.header_count;
    head->host_count = lines->head.host_count;
    head->has_content_length = lines->head.has_content_length;
    head->content_length = lines->head.content_length;
    return lines;
}

bool http_head_lines_apply(const struct http_head_lines *lines, struct http_request *request,
                           const char *at, char **text)
{
    size_t start = request->head.length - lines->length;
    char *copy = http_arena_alloc(&request->arena, request->head.length + lines->type_length);
    char *tidy = copy + start, *type = copy + request->head.length;

    request->fields =
        http_arena_alloc(&request->arena, lines->field_count * sizeof *request->fields);
    if (!copy || !request->fields)
        return false;
    memcpy(copy, at, start);
    memcpy(tidy, lines->tidy, lines->length);
    for (size_t i = 0; i < lines->field_count; i++) {
        request->fields[i].name =
            (struct span){tidy + lines->fields[i].name, lines->fields[i].name_length};
        request->fields[i].value =
            (struct span){tidy + lines->fields[i].value, lines->fields[i].value_length};
    }
    request->field_count = lines->field_count;
    request->initials = lines->initials;
    if (lines->type_length) {
        memcpy(type, lines->type, lines->type_length);
        request->media_type = (struct span){type, lines->type_length};
    }
    request->wants_keep_alive = request->is_head_parsed = true;
    request->is_message_done = request->head.content_length == 0;
    *text = copy;
    return true;
}
