/*
 * A memo of field lines: see head_memo.h.
 *
 * Problem: a client on a connection that stays open sends the same field lines with each request,
 * and two parsers that look at every byte of them take a fifth of a short answer's time.
 * Approach: the verdict of both on the lines is a function of their bytes. So the lines of the last
 * plain request are kept with what came of them; when a head has the very same bytes behind its
 * request line, that is taken. The request line is checked each time, by the same function as
 * always (head.h), and must be of the kind about which llhttp has no choice: GET, a target that
 * begins with '/' and is printable without '#', HTTP/1.1. Whatever is not plain goes the long way.
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
    return head->method == METHOD_GET && !head->is_head && !head->is_options && !head->is_1_0 &&
           head->begin == 0 && at[head->target_start] == '/';
}

void http_head_memo_keep(struct http_head_memo *memo, const struct http_request *request,
                         const char *raw, const char *text)
{
    const struct http_head *head = &request->head;
    size_t start = head->target_start + head->target_length + sizeof " HTTP/1.1\r\n" - 1;
    size_t length = head->length - start;

    if (!is_plain(head, raw) || head->has_content_length || head->has_transfer_encoding ||
        head->expects_continue || head->expects_other || request->media_type.length ||
        request->repeated || !request->wants_keep_alive || length > HTTP_MEMO_BYTES_MAX ||
        request->field_count > HTTP_MEMO_FIELDS_MAX)
        return;
    memcpy(memo->raw, raw + start, length);
    memcpy(memo->tidy, text + start, length);
    for (size_t i = 0; i < request->field_count; i++) {
        const struct http_field *field = &request->fields[i];
        bool has_value = field->value.length > 0;

        memo->fields[i].name = (uint16_t)(field->name.at - text - (ptrdiff_t)start);
        memo->fields[i].name_length = (uint16_t)field->name.length;
        memo->fields[i].value =
            has_value ? (uint16_t)(field->value.at - text - (ptrdiff_t)start) : 0;
        memo->fields[i].value_length = (uint16_t)field->value.length;
    }
    memo->field_count = request->field_count;
    memo->initials = request->initials;
    memo->head = *head;
    memo->length = length;
}

bool http_head_memo_find(const struct http_head_memo *memo, const char *at, size_t length,
                         const struct http_limits *limits, struct http_head *head)
{
    const char *newline;
    size_t start;
    struct err err;

    if (memo->length == 0 || length < memo->length)
        return false;
    newline = memchr(at, '\n', length);
    start = newline ? (size_t)(newline + 1 - at) : 0;
    if (start < 2 || length - start < memo->length || at[start - 2] != '\r' ||
        start + memo->length > limits->header_bytes_max ||
        memcmp(at + start, memo->raw, memo->length) != 0)
        return false;
    *head = (struct http_head){0};
    if (http_head_check_request_line(head, at, 0, start - 2, limits, &err) || !is_plain(head, at)) {
        *head = (struct http_head){0};
        return false;
    }
    head->length = head->scanned = head->line_start = start + memo->length;
    head->header_count = memo->head.header_count;
    head->host_count = memo->head.host_count;
    return true;
}

bool http_head_memo_apply(const struct http_head_memo *memo, struct http_request *request,
                          const char *at, char **text)
{
    size_t start = request->head.length - memo->length;
    char *copy = http_arena_alloc(&request->arena, request->head.length);
    char *lines = copy + start;

    request->fields =
        http_arena_alloc(&request->arena, memo->field_count * sizeof *request->fields);
    if (!copy || !request->fields)
        return false;
    memcpy(copy, at, start);
    memcpy(lines, memo->tidy, memo->length);
    for (size_t i = 0; i < memo->field_count; i++) {
        request->fields[i].name =
            (struct span){lines + memo->fields[i].name, memo->fields[i].name_length};
        request->fields[i].value =
            (struct span){lines + memo->fields[i].value, memo->fields[i].value_length};
    }
    request->field_count = memo->field_count;
    request->initials = memo->initials;
    request->wants_keep_alive = request->is_head_parsed = request->is_message_done = true;
    *text = copy;
    return true;
}
