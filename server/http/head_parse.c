/*
 * llhttp over a head whose bytes are checked: see head.h.
 *
 * llhttp is given exactly the bytes that http_head_feed found to be the head, never more; so it
 * need not be paused, and where it disagrees about the end the request is refused. It splits the
 * head into target and fields, decides whether the connection is kept, and must itself accept the
 * framing of the body. The fields that decide something here (Host, Content-Length,
 * Transfer-Encoding, Expect, and those that may not be repeated) are checked in its callback, more
 * strictly than llhttp does in any version: one each, one encoding, plain digits.
 *
 * Invariants: a callback gets each span whole, since the input is one piece; the head counts as
 * parsed only when llhttp and the checks here agree on where it ends and whether a body follows.
 *
 * Source: RFC 9112 (2022) sections 3.2, 6, 9.3; RFC 9110 sections 7.2, 7.8, 10.1.1.
 */
#include "http/head.h"

#include "http/authority.h"

#include <llhttp.h>
#include <string.h>
#include <strings.h>

struct parse {
    struct http_head *head;
    char *text;
    struct err *err;
    size_t fields_taken;
    bool is_refused; /* err has the reason */
    bool is_complete, is_message_done;
};

static bool name_is(struct span name, const char *wanted)
{
    return name.length == strlen(wanted) && strncasecmp(name.at, wanted, name.length) == 0;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static enum err_code take_host(struct http_head *head, struct span value, struct err *err)
{
    if (head->has_host)
        return err_set(err, ERR_BAD_REQUEST, "there is more than one Host header");
    head->has_host = true;
    return http_authority_check(value, "the Host header", err);
}

static enum err_code take_content_length(struct http_head *head, struct span value, struct err *err)
{
    uint64_t bytes = 0;

    if (head->has_content_length)
        return err_set(err, ERR_BAD_REQUEST, "there is more than one Content-Length header");
    head->has_content_length = true;
    for (size_t i = 0; i < value.length; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return err_set(err, ERR_BAD_REQUEST, "Content-Length is not a decimal number");
        if (bytes > (UINT64_MAX - 9) / 10)
            bytes = UINT64_MAX;
        else
            bytes = bytes * 10 + (uint64_t)(value.at[i] - '0');
    }
    if (value.length == 0)
        return err_set(err, ERR_BAD_REQUEST, "Content-Length is empty");
    head->content_length = bytes;
    return ERR_OK;
}

static enum err_code take_transfer_encoding(struct http_head *head, struct span value,
                                            struct err *err)
{
    if (head->has_transfer_encoding)
        return err_set(err, ERR_BAD_REQUEST, "there is more than one Transfer-Encoding header");
    head->has_transfer_encoding = true;
    if (head->is_1_0)
        return err_set(err, ERR_BAD_REQUEST, "HTTP/1.0 has no Transfer-Encoding");
    if (value.length == 0)
        return err_set(err, ERR_BAD_REQUEST, "Transfer-Encoding is empty");
    if (!name_is(value, "chunked"))
        return err_set(err, ERR_NOT_IMPLEMENTED,
                       "Transfer-Encoding '%.*s' is not taken; only chunked is",
                       value.length < 64 ? (int)value.length : 64, value.at);
    head->is_chunked = true;
    return ERR_OK;
}

/* text[0..length) to lower case, in place. */
static struct span lower(char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] >= 'A' && text[i] <= 'Z')
            text[i] = (char)(text[i] + ('a' - 'A'));
    return (struct span){text, length};
}

static void take_content_type(struct parse *parse, struct span value)
{
    struct http_head *head = parse->head;
    size_t length = 0;

    if (head->has_content_type) {
        head->repeated = "content-type";
        return;
    }
    head->has_content_type = true;
    while (length < value.length && !strchr("; \t", value.at[length]))
        length++;
    if (length)
        head->media_type = lower(parse->text + (value.at - parse->text), length);
}

static void take_authorization(struct http_head *head)
{
    if (head->has_authorization)
        head->repeated = "authorization";
    head->has_authorization = true;
}

/* A field is complete: its name and its value, which may have blanks after it. */
static enum err_code take_field(struct parse *parse, struct http_field *field)
{
    struct http_head *head = parse->head;
    struct span *value = &field->value, name;

    while (value->length &&
           (value->at[value->length - 1] == ' ' || value->at[value->length - 1] == '\t'))
        value->length--;
    name = field->name = lower(parse->text + (field->name.at - parse->text), field->name.length);
    if (name_is(name, "host"))
        return take_host(head, *value, parse->err);
    if (name_is(name, "content-length"))
        return take_content_length(head, *value, parse->err);
    if (name_is(name, "transfer-encoding"))
        return take_transfer_encoding(head, *value, parse->err);
    if (name_is(name, "content-type"))
        take_content_type(parse, *value);
    else if (name_is(name, "authorization"))
        take_authorization(head);
    else if (name_is(name, "expect"))
        *(name_is(*value, "100-continue") ? &head->expects_continue : &head->expects_other) = true;
    return ERR_OK;
}

/* ---- callbacks of llhttp --------------------------------------------------------------------- */

static int on_target(llhttp_t *parser, const char *at, size_t length)
{
    struct parse *parse = parser->data;

    parse->head->target = (struct span){at, length};
    return 0;
}

static int on_field(llhttp_t *parser, const char *at, size_t length)
{
    struct http_head *head = ((struct parse *)parser->data)->head;

    if (head->field_count == head->line_count)
        return -1;
    head->fields[head->field_count++] = (struct http_field){{at, length}, {"", 0}};
    return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t length)
{
    struct http_head *head = ((struct parse *)parser->data)->head;

    head->fields[head->field_count - 1].value = (struct span){at, length};
    return 0;
}

static int on_value_complete(llhttp_t *parser)
{
    struct parse *parse = parser->data;

    if (take_field(parse, &parse->head->fields[parse->fields_taken])) {
        parse->is_refused = true;
        return -1;
    }
    parse->fields_taken++;
    return 0;
}

static int on_headers_complete(llhttp_t *parser)
{
    struct parse *parse = parser->data;

    parse->head->wants_keep_alive = llhttp_should_keep_alive(parser) != 0;
    parse->is_complete = true;
    parser->upgrade = 0; /* an Upgrade that is not taken is ignored: RFC 9110 section 7.8 */
    return 0;
}

static int on_message_complete(llhttp_t *parser)
{
    ((struct parse *)parser->data)->is_message_done = true;
    return 0;
}

static const llhttp_settings_t parser_settings = {.on_url = on_target,
                                                  .on_header_field = on_field,
                                                  .on_header_value = on_value,
                                                  .on_header_value_complete = on_value_complete,
                                                  .on_headers_complete = on_headers_complete,
                                                  .on_message_complete = on_message_complete};

/* ---- the verdict ----------------------------------------------------------------------------- */

static enum err_code refuse_method(const struct http_head *head, const char *text, struct err *err)
{
    const char *name = text + head->begin;
    size_t length = (size_t)((const char *)memchr(name, ' ', head->length - head->begin) - name);

    return err_set(err, ERR_NOT_IMPLEMENTED, "method '%.*s' is not one that this server knows",
                   length < 32 ? (int)length : 32, name);
}

static enum err_code take_method(struct http_head *head, int method, const char *text,
                                 struct err *err)
{
    static const struct {
        int code;
        enum http_method method;
    } methods[] = {{HTTP_GET, METHOD_GET},     {HTTP_HEAD, METHOD_GET},
                   {HTTP_POST, METHOD_POST},   {HTTP_PUT, METHOD_PUT},
                   {HTTP_PATCH, METHOD_PATCH}, {HTTP_DELETE, METHOD_DELETE},
                   {HTTP_OPTIONS, METHOD_GET}};

    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (method == methods[i].code) {
            head->method = methods[i].method;
            head->is_options = method == HTTP_OPTIONS;
            return ERR_OK;
        }
    }
    return refuse_method(head, text, err);
}

/*
 * llhttp has refused the head. Where the reason is in a value that it did not report to its end,
 * the checks of fields put it into words.
 */
static enum err_code explain(struct parse *parse, llhttp_errno_t rc,
                             const struct http_limits *limits)
{
    struct http_head *head = parse->head;

    if (parse->is_refused)
        return parse->err->code;
    /* the line's form and its version were checked before: only the method is left */
    if (head->field_count == 0 && rc != HPE_INVALID_URL)
        return refuse_method(head, parse->text, parse->err);
    if (parse->fields_taken < head->field_count) {
        struct http_field *last = &head->fields[parse->fields_taken];
        const char *value = last->name.at + last->name.length + 1;
        const char *stop = memchr(value, '\r', (size_t)(parse->text + head->length - value));

        while (value < stop && (*value == ' ' || *value == '\t'))
            value++;
        last->value = (struct span){value, (size_t)(stop - value)};
        if (take_field(parse, last))
            return parse->err->code;
    }
    if (head->content_length == UINT64_MAX)
        return err_limit(parse->err, ERR_BODY_TOO_LARGE, (double)limits->body_bytes_max,
                         (double)UINT64_MAX, "Content-Length is beyond all limits");
    if (head->has_content_length && head->has_transfer_encoding)
        return err_set(parse->err, ERR_BAD_REQUEST,
                       "Transfer-Encoding and Content-Length exclude each other");
    return err_set(parse->err, ERR_BAD_REQUEST, "the head is malformed: %s", llhttp_errno_name(rc));
}

enum err_code http_head_parse(struct http_head *head, char *text, struct http_field *fields,
                              const struct http_limits *limits, struct err *err)
{
    struct parse parse = {.head = head, .text = text, .err = err};
    llhttp_t parser;
    llhttp_errno_t rc;

    head->fields = fields;
    head->media_type = (struct span){"", 0};
    llhttp_init(&parser, HTTP_REQUEST, &parser_settings);
    parser.data = &parse;
    rc = llhttp_execute(&parser, text + head->begin, head->length - head->begin);
    if (rc != HPE_OK)
        return explain(&parse, rc, limits);
    if (take_method(head, parser.method, text, err))
        return err->code;
    if (!head->is_1_0 && !head->has_host)
        return err_set(err, ERR_BAD_REQUEST, "the Host header is missing");
    if (head->has_content_length && head->has_transfer_encoding)
        return err_set(err, ERR_BAD_REQUEST,
                       "Transfer-Encoding and Content-Length exclude each other");
    if (!parse.is_complete ||
        parse.is_message_done == (head->is_chunked || head->content_length > 0))
        return err_set(err, ERR_BAD_REQUEST,
                       "the head is malformed: its end is not where it seems");
    return ERR_OK;
}
