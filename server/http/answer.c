/*
 * Encoding of answers: see answer.h.
 *
 * The head is written straight into the output chunk of the connection. A body up to
 * COPY_BYTES is copied after it into the same chunk, so that pipelined answers leave in one write;
 * a larger one keeps its memory and changes owner.
 *
 * Framing: Content-Length is on every answer but 204 and 304, which have no body by definition,
 * and streams, which end with their connection; HEAD has the headers of GET. Source: RFC 9110
 * sections 8.6, 15; RFC 9112 section 9.3.
 */
#include "http/answer.h"

#include "base/check.h"
#include "base/text/integer_text.h"
#include "http/loop_data.h"
#include "http/server_data.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define COPY_BYTES ((size_t)8 * 1024)
#define TYPE_BYTES_MAX 256
/* Status line, date, id, trace, type, length, connection: all of bounded length. */
#define FIXED_HEAD_BYTES ((size_t)896 + 2 * HTTP_ORIGIN_BYTES_MAX)
#define DATE_LOOK_NS 5000000u

/* The Date line, made again when the second changes, up to 5 ms late. */
static void refresh_date(struct http_loop *loop)
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct timespec now;
    struct tm tm;

    if (loop->date_length && loop->clock_ns - loop->date_ns < DATE_LOOK_NS)
        return;
    loop->date_ns = loop->clock_ns;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (now.tv_sec == loop->date_second && loop->date_length)
        return;
    loop->date_second = now.tv_sec;
    gmtime_r(&now.tv_sec, &tm);
    loop->date_length = (size_t)snprintf(
        loop->date, sizeof loop->date, "Date: %s, %02u %s %04u %02u:%02u:%02u GMT\r\n",
        days[tm.tm_wday], (unsigned)tm.tm_mday % 100, months[tm.tm_mon],
        (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)tm.tm_hour % 100,
        (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
}

struct cursor {
    char *at;
};

static void put(struct cursor *cursor, const char *bytes, size_t length)
{
    memcpy(cursor->at, bytes, length);
    cursor->at += length;
}

#define PUT_LITERAL(cursor, literal) put((cursor), "" literal, sizeof(literal) - 1)

static void put_number(struct cursor *cursor, size_t value)
{
    cursor->at += integer_text(value, cursor->at);
}

/* A page of a listed origin may read the answer. Source: Fetch standard, section 3.2. */
static void put_origin(struct cursor *cursor, const struct http_server *server,
                       const struct http_request *request)
{
    struct span origin = http_request_header(request, "origin");
    const char *at = server->cors_origins;

    if (!origin.at || origin.length == 0)
        return;
    for (size_t length; *at; at += length + (at[length] == ',')) {
        length = strcspn(at, ",");
        if (length != origin.length || memcmp(at, origin.at, length) != 0)
            continue;
        PUT_LITERAL(cursor, "Access-Control-Allow-Origin: ");
        put(cursor, at, length);
        PUT_LITERAL(cursor, "\r\nTiming-Allow-Origin: ");
        put(cursor, at, length);
        PUT_LITERAL(cursor, "\r\n");
        return;
    }
}

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {{200, "OK"},
                   {201, "Created"},
                   {202, "Accepted"},
                   {204, "No Content"},
                   {206, "Partial Content"},
                   {301, "Moved Permanently"},
                   {302, "Found"},
                   {303, "See Other"},
                   {304, "Not Modified"},
                   {307, "Temporary Redirect"},
                   {308, "Permanent Redirect"},
                   {400, "Bad Request"},
                   {401, "Unauthorized"},
                   {403, "Forbidden"},
                   {404, "Not Found"},
                   {405, "Method Not Allowed"},
                   {406, "Not Acceptable"},
                   {408, "Request Timeout"},
                   {409, "Conflict"},
                   {410, "Gone"},
                   {411, "Length Required"},
                   {412, "Precondition Failed"},
                   {413, "Content Too Large"},
                   {414, "URI Too Long"},
                   {415, "Unsupported Media Type"},
                   {416, "Range Not Satisfiable"},
                   {417, "Expectation Failed"},
                   {422, "Unprocessable Content"},
                   {429, "Too Many Requests"},
                   {431, "Request Header Fields Too Large"},
                   {500, "Internal Server Error"},
                   {501, "Not Implemented"},
                   {503, "Service Unavailable"},
                   {505, "HTTP Version Not Supported"},
                   {507, "Insufficient Storage"}};

    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].text;
    return "Other";
}

static void put_status_line(struct cursor *cursor, int status)
{
    const char *reason = reason_of(status);

    if (status == 200) {
        PUT_LITERAL(cursor, "HTTP/1.1 200 OK\r\n");
        return;
    }
    PUT_LITERAL(cursor, "HTTP/1.1 ");
    put_number(cursor, (size_t)status);
    PUT_LITERAL(cursor, " ");
    put(cursor, reason, strlen(reason));
    PUT_LITERAL(cursor, "\r\n");
}

/* Status, date, CORS, and the type: nothing that differs from one answer to the next. */
static void put_start(struct cursor *cursor, const struct http_loop *loop,
                      const struct http_reply *reply, bool has_body)
{
    put_status_line(cursor, reply->status);
    put(cursor, loop->date, loop->date_length);
    put(cursor, loop->server->cors, loop->server->cors_length);
    if (has_body && reply->content_type) {
        size_t length = strlen(reply->content_type);

        CHECK(length <= TYPE_BYTES_MAX);
        PUT_LITERAL(cursor, "Content-Type: ");
        put(cursor, reply->content_type, length);
        PUT_LITERAL(cursor, "\r\n");
    }
}

/* Milliseconds with three digits. */
static void put_duration(struct cursor *cursor, uint64_t us)
{
    unsigned rest = (unsigned)(us % 1000);
    char digits[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
                      (char)('0' + rest % 10)};

    put_number(cursor, us / 1000);
    put(cursor, digits, sizeof digits);
}

/* From the head, or the whole body, to here. Source: W3C. */
static void put_timing(struct cursor *cursor, const struct http_request *request)
{
    PUT_LITERAL(cursor, "Server-Timing: total;dur=");
    put_duration(cursor, (request->loop->clock_ns - request->started_ns) / 1000);
    if (request->build_us > 0) {
        PUT_LITERAL(cursor, ", build;dur=");
        put_duration(cursor, request->build_us);
    }
    PUT_LITERAL(cursor, "\r\n");
}

static void put_head(struct cursor *cursor, const struct http_request *request,
                     size_t content_length, bool has_body, bool close)
{
    const struct http_reply *reply = &request->reply;
    const struct http_server *server = request->loop->server;

    put_start(cursor, request->loop, reply, has_body);
    put_timing(cursor, request);
    PUT_LITERAL(cursor, "X-Request-Id: ");
    memcpy(cursor->at, request->id, HTTP_ID_BYTES_MAX); /* of one length, which is quicker */
    cursor->at += request->id_length;
    PUT_LITERAL(cursor, "\r\n");
    if (request->trace[0] != '\0') {
        PUT_LITERAL(cursor, "traceparent: ");
        put(cursor, request->trace, HTTP_TRACE_BYTES);
        PUT_LITERAL(cursor, "\r\n");
    }
    if (server->cors_origins)
        put_origin(cursor, server, request);
    if (has_body && !reply->is_endless) {
        PUT_LITERAL(cursor, "Content-Length: ");
        put_number(cursor, content_length);
        PUT_LITERAL(cursor, "\r\n");
    }
    if (close)
        PUT_LITERAL(cursor, "Connection: close\r\n");
    else if (request->head.is_1_0)
        PUT_LITERAL(cursor, "Connection: keep-alive\r\n");
    put(cursor, reply->headers, reply->headers_length);
    PUT_LITERAL(cursor, "\r\n");
}

/* Adds a body that is too large to copy; the reply no longer owns it. */
static bool hand_over_body(struct http_connection *connection, struct http_reply *reply,
                           const void *body, size_t length)
{
    struct http_owned owned = {NULL, NULL, 0};

    if (!reply->static_body)
        owned = (struct http_owned){reply->body, reply->budget, reply->charged};
    if (!http_output_hand_over(&connection->output, body, length, owned))
        return false;
    if (owned.at) {
        reply->body = NULL;
        reply->body_length = reply->body_capacity = reply->charged = 0;
    }
    return true;
}

size_t http_answer_encode(struct http_connection *connection, struct http_request *request,
                          bool close, bool *ok)
{
    struct http_reply *reply = &request->reply;
    struct http_loop *loop = request->loop;
    const void *body = reply->static_body ? reply->static_body : reply->body;
    size_t length = reply->static_body ? reply->static_length : reply->body_length;
    bool has_body = reply->status != 204 && reply->status != 304;
    size_t sent = has_body && !request->head.is_head ? length : 0;
    size_t copied = sent <= COPY_BYTES ? sent : 0;
    struct cursor cursor;
    char *start;

    refresh_date(loop);
    start = http_output_reserve(&connection->output, &loop->chunks,
                                FIXED_HEAD_BYTES + loop->server->cors_length +
                                    reply->headers_length + copied);
    *ok = start != NULL;
    if (!start)
        return 0;
    cursor.at = start;
    put_head(&cursor, request, length, has_body, close);
    if (copied)
        put(&cursor, body, copied);
    http_output_advance(&connection->output, (size_t)(cursor.at - start));
    if (sent > copied)
        *ok = hand_over_body(connection, reply, body, sent);
    return sent;
}

bool http_answer_continue(struct http_connection *connection)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    char *at = http_output_reserve(&connection->output, &connection->loop->chunks, sizeof text - 1);

    if (!at)
        return false;
    memcpy(at, text, sizeof text - 1);
    http_output_advance(&connection->output, sizeof text - 1);
    return true;
}
