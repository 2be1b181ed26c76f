/*
 * Transfers: HTTP by libcurl, on the client's libuv loop.
 *
 * libcurl provides connections and their reuse, TLS, proxies, Unix sockets and HTTP/1.1. It names
 * the sockets that it waits for (CURLMOPT_SOCKETFUNCTION) and the time until it wants to be called
 * (CURLMOPT_TIMERFUNCTION); a uv_poll_t for each socket and one timer call it. Deadlines, tries and
 * the number of connections are the client's own (client.c): one time limit holds for all tries.
 *
 * What is set here and why:
 *  - libcurl sends a call again by itself when a kept connection has ended before the answer. A
 *    call that may not be repeated gets its body from a callback that cannot be rewound, and
 *    without a body a connection of its own: so it is never sent twice.
 *  - The peer is not trusted: heads, header counts, early answers and bodies have limits, and the
 *    announced length is checked before anything is kept. An ordinary answer must have a length or
 *    be chunked, since one that ends with the connection cannot be distinguished from one that was
 *    cut; only a stream of events may. Two framings, which libcurl would accept, are an error.
 *  - A loopback address never goes through a proxy of the environment. Redirects are not followed,
 *    so that a token goes only to the host it was meant for.
 *  - A library must not raise SIGPIPE. libcurl sends with MSG_NOSIGNAL, but older TLS libraries do
 *    not, so with TLS the signal is blocked in this thread while libcurl runs, and taken off if it
 *    came.
 *  - Names are resolved by a thread of libcurl; with CURLOPT_QUICK_EXIT (7.87) a call that is out
 *    of time does not wait for it.
 *
 * libcurl takes a URL apart for each call, which is a fifth of a short one's instructions. Where no
 * proxy needs it, the URL is the origin only, and the target is given apart.
 *
 * Polling: libcurl stops to watch a socket after each answer. libuv would need two system calls for
 * that and two for the next call, so the poll of a kept connection stays, without holding the loop,
 * until libcurl closes the socket (CURLOPT_CLOSESOCKETFUNCTION). A socket that never carried an
 * answer is no longer watched at once: libcurl 7.88 closes it without that function.
 *
 * Invariant: libcurl is not called within its callbacks; a transfer that is given up there goes to
 * the abandoned ones, which turn() removes.
 *
 * Source: libcurl's multi-uv example; RFC 9112.
 */
#include "client/lib/client.h"

#include "client/lib/error.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER_BYTES = 128 * 1024, UPLOAD_BYTES = 512 * 1024 };

struct socket_watch {
    uv_poll_t poll;
    struct kota_client *client;
    int wanted, polled; /* UV_READABLE | UV_WRITABLE */
};

/* ---- where ----------------------------------------------------------------------------------- */

static bool host_is_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "[::1]") == 0;
}

static bool place_take(struct place *place, CURLU *parts, const char *url)
{
    char *scheme = NULL, *host = NULL, *port = NULL, *other = NULL;
    bool is_fine = !curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) &&
                   !curl_url_get(parts, CURLUPART_HOST, &host, 0) &&
                   !curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) &&
                   (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0) && atol(port) > 0;

    for (CURLUPart part = CURLUPART_USER; part <= CURLUPART_FRAGMENT; part++)
        if (part == CURLUPART_USER || part == CURLUPART_QUERY || part == CURLUPART_FRAGMENT) {
            is_fine = is_fine && curl_url_get(parts, part, &other, 0) != CURLUE_OK;
            curl_free(other);
            other = NULL;
        }
    for (const char *at = url; *at; at++)
        is_fine = is_fine && *at > ' ' && *at < 127 && *at != '?' && *at != '#';
    if (is_fine) {
        place->is_tls = strcmp(scheme, "https") == 0;
        place->is_loopback = host_is_loopback(host);
    }
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    return is_fine;
}

bool place_parse(struct place *place, const char *url, struct kota_error *error)
{
    size_t length = strlen(url);
    bool is_unix = strncmp(url, "unix:", 5) == 0, is_fine = false;
    CURLU *parts = is_unix ? NULL : curl_url();

    if (is_unix && length > 5 && length - 5 < sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
        text_adds(&place->unix_path, url + 5);
        text_adds(&place->url, "http://localhost");
        is_fine = place->is_loopback = true;
    } else if (parts && !curl_url_set(parts, CURLUPART_URL, url, 0)) {
        while (length > 0 && url[length - 1] == '/')
            length--;
        text_add(&place->url, url, length);
        is_fine = place_take(place, parts, url);
    }
    curl_url_cleanup(parts);
    if (!is_fine)
        return error_set(error, KOTA_ERROR_USAGE,
                         "'%.200s' is not a URL such as http://127.0.0.1:7420 or unix:PATH; it has "
                         "no user, query or fragment",
                         url);
    place->origin = strlen("http://") + place->is_tls;
    place->origin += strcspn(text_string(&place->url) + place->origin, "/");
    place->is_direct = place->is_tls || place->is_loopback;
    text_add(&place->origin_url, text_string(&place->url), place->origin);
    snprintf(place->name, sizeof(place->name), "%.*s", (int)length, url);
    return !(place->url.is_broken || place->origin_url.is_broken || place->unix_path.is_broken) ||
           error_set(error, KOTA_ERROR_MEMORY, "no memory for the URL");
}

void place_free(struct place *place)
{
    text_free(&place->url);
    text_free(&place->unix_path);
    text_free(&place->origin_url);
}

/* ---- running libcurl ------------------------------------------------------------------------- */

/* With TLS: SIGPIPE is blocked. */
static void enter(struct kota_client *client, sigset_t *before, bool *was_pending)
{
    sigset_t pipe, pending;

    client->transfers.in_curl++;
    if (!client->place.is_tls)
        return;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    *was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe, before);
}

static void leave(struct kota_client *client, const sigset_t *before, bool was_pending)
{
    client->transfers.in_curl--;
    if (!client->place.is_tls)
        return;
    if (!was_pending) {
        sigset_t pipe;

        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        while (sigtimedwait(&pipe, NULL, &(struct timespec){0}) < 0 && errno == EINTR)
            continue;
    }
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

#define IN_CURL(client, statement)                                                                 \
    do {                                                                                           \
        sigset_t before_;                                                                          \
        bool was_pending_ = false;                                                                 \
                                                                                                   \
        enter(client, &before_, &was_pending_);                                                    \
        statement;                                                                                 \
        leave(client, &before_, was_pending_);                                                     \
    } while (0)

static void act(struct kota_client *client, curl_socket_t socket, int events)
{
    int running;

    IN_CURL(client, curl_multi_socket_action(client->transfers.multi, socket, events, &running));
}

static void turn(struct kota_client *client);

/* ---- sockets --------------------------------------------------------------------------------- */

static void on_socket_closed(uv_handle_t *handle)
{
    struct socket_watch *watch = handle->data;
    struct kota_client *client = watch->client;

    free(watch);
    client_handle_closed(client);
}

static struct socket_watch *watch_of(const struct transfers *transfers, curl_socket_t fd)
{
    return fd >= 0 && (size_t)fd < transfers->socket_count ? transfers->sockets[fd] : NULL;
}

static void unwatch_socket(struct kota_client *client, curl_socket_t fd)
{
    struct socket_watch *watch = watch_of(&client->transfers, fd);

    if (!watch)
        return;
    client->transfers.sockets[fd] = NULL;
    uv_poll_stop(&watch->poll);
    uv_close((uv_handle_t *)&watch->poll, on_socket_closed);
}

static struct socket_watch *watch_socket(struct kota_client *client, curl_socket_t fd)
{
    struct transfers *transfers = &client->transfers;
    struct socket_watch *watch;

    if ((size_t)fd >= transfers->socket_count) {
        size_t count = 2 * (size_t)fd + 16;
        void *grown = realloc(transfers->sockets, count * sizeof(*transfers->sockets));

        if (!grown)
            return NULL;
        transfers->sockets = grown;
        memset(transfers->sockets + transfers->socket_count, 0,
               (count - transfers->socket_count) * sizeof(*transfers->sockets));
        transfers->socket_count = count;
    }
    unwatch_socket(client, fd); /* one that libcurl has closed */
    watch = calloc(1, sizeof(*watch));
    if (!watch || uv_poll_init(client->loop, &watch->poll, fd)) {
        free(watch);
        return NULL;
    }
    watch->poll.data = watch;
    watch->client = client;
    client->handles_open++;
    transfers->sockets[fd] = watch;
    return watch;
}

static curl_socket_t on_open_socket(void *context, curlsocktype purpose,
                                    struct curl_sockaddr *address)
{
    curl_socket_t fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);

    (void)purpose;
    if (fd < 0 || watch_socket(context, fd))
        return fd;
    close(fd);
    return CURL_SOCKET_BAD;
}

static int on_close_socket(void *context, curl_socket_t fd)
{
    unwatch_socket(context, fd);
    return close(fd);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct socket_watch *watch = poll->data;
    struct kota_client *client = watch->client;
    uv_os_fd_t fd;
    int flags = (events & UV_READABLE ? CURL_CSELECT_IN : 0) |
                (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0);

    if (!watch->wanted) { /* a kept connection has ended; libcurl sees that when it needs one */
        uv_poll_stop(poll);
        watch->polled = 0;
        return;
    }
    uv_fileno((const uv_handle_t *)poll, &fd);
    act(client, fd, status < 0 ? CURL_CSELECT_ERR : flags);
    turn(client);
}

static bool has_answered(CURL *easy)
{
    char *transfer = NULL;

    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
    return transfer && ((const struct transfer *)(const void *)transfer)->has_head;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *unused)
{
    struct kota_client *client = context;
    struct socket_watch *watch = watch_of(&client->transfers, fd);

    (void)unused;
    if (what == CURL_POLL_REMOVE && (!watch || !has_answered(easy))) {
        unwatch_socket(client, fd);
        return 0;
    }
    if (!watch && !(watch = watch_socket(client, fd)))
        return -1;
    watch->wanted =
        (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    if (what == CURL_POLL_REMOVE) {
        watch->wanted = 0;
        uv_unref((uv_handle_t *)&watch->poll);
    } else {
        uv_ref((uv_handle_t *)&watch->poll);
    }
    /* bytes of the answer are never unwelcome; to wait for room to write would spin */
    if ((watch->polled & watch->wanted) == watch->wanted &&
        !(watch->polled & ~watch->wanted & UV_WRITABLE))
        return 0;
    watch->polled = watch->wanted | UV_READABLE;
    return uv_poll_start(&watch->poll, watch->polled, on_poll) ? -1 : 0;
}

static void on_timer(uv_timer_t *timer)
{
    act(timer->data, CURL_SOCKET_TIMEOUT, 0);
    turn(timer->data);
}

static int on_time(CURLM *multi, long timeout_ms, void *context)
{
    struct kota_client *client = context;

    (void)multi;
    if (timeout_ms < 0)
        return uv_timer_stop(&client->transfers.timer);
    uv_update_time(client->loop);
    return uv_timer_start(&client->transfers.timer, on_timer, (uint64_t)timeout_ms, 0);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static bool is_feed(const struct transfer *transfer)
{
    return transfer->call->watch && transfer->status >= 200 && transfer->status < 300;
}

static bool has_no_body(const struct transfer *transfer)
{
    return transfer->status == 204 || transfer->status == 304 ||
           strcmp(transfer->call->request->method, "HEAD") == 0;
}

static bool too_long(struct transfer *transfer, double got)
{
    const size_t most = transfer->client->options.answer_bytes_max;

    error_set(&transfer->error, KOTA_ERROR_TOO_LONG, "the answer is longer than %zu bytes", most);
    transfer->error.has_limit = true;
    transfer->error.limit = (double)most;
    transfer->error.got = got;
    return false;
}

/* The head is whole: may its body come? */
static bool check_head(struct transfer *transfer)
{
    struct kota_error *error = &transfer->error;

    if (transfer->status < 200) {
        if (transfer->status == 101 || ++transfer->early_count > EARLY_MAX)
            return error_set(error, KOTA_ERROR_PROTOCOL, "an answer %d was not asked for",
                             transfer->status);
        return true;
    }
    transfer->has_head = true;
    transfer->call->answer->status = transfer->status;
    if (has_no_body(transfer))
        return true;
    if (transfer->has_coding || (transfer->is_chunked && transfer->has_length))
        return error_set(error, KOTA_ERROR_PROTOCOL, "the answer's length is said twice");
    if (is_feed(transfer) || request_takes(transfer->call->request, transfer->status))
        return true;
    if (!transfer->is_chunked && !transfer->has_length)
        return error_set(error, KOTA_ERROR_PROTOCOL, "the answer does not say its length");
    if (transfer->length > transfer->client->options.answer_bytes_max)
        return too_long(transfer, (double)transfer->length);
    return text_reserve(&transfer->call->answer->body, (size_t)transfer->length) ||
           error_set(error, KOTA_ERROR_MEMORY, "no memory for an answer of %llu bytes",
                     (unsigned long long)transfer->length);
}

/* What the framing of the body is. */
static bool take_framing(struct transfer *transfer, const char *name, const char *value)
{
    if (strcasecmp(name, "Transfer-Encoding") == 0) {
        transfer->has_coding |= transfer->is_chunked || strcasecmp(value, "chunked") != 0;
        transfer->is_chunked = true;
    } else if (strcasecmp(name, "Content-Length") == 0) {
        uint64_t length = strtoull(value, NULL, 10);

        if (!*value || strlen(value) > 19 || strspn(value, "0123456789") != strlen(value) ||
            (transfer->has_length && length != transfer->length))
            return error_set(&transfer->error, KOTA_ERROR_PROTOCOL,
                             "the answer's length is '%.40s'", value);
        transfer->has_length = true;
        transfer->length = length;
    }
    return true;
}

static bool take_field(struct transfer *transfer, const char *line, size_t length)
{
    struct text *headers = &transfer->call->answer->headers;
    const char *colon = memchr(line, ':', length), *value = colon + 1, *end = line + length;
    size_t from = headers->length, name;

    if (!colon || memchr(line, '\0', length))
        return error_set(&transfer->error, KOTA_ERROR_PROTOCOL, "a header of the answer is none");
    if (++transfer->header_count > HEADERS_MAX)
        return error_set(&transfer->error, KOTA_ERROR_TOO_LONG,
                         "the answer has more than %d headers", HEADERS_MAX);
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    name = (size_t)(colon - line);
    text_add(headers, line, name);
    text_add(headers, "", 1);
    text_add(headers, value, (size_t)(end - value));
    text_add(headers, "", 1);
    if (headers->is_broken)
        return error_set(&transfer->error, KOTA_ERROR_MEMORY, "no memory for the answer's head");
    return take_framing(transfer, headers->at + from, headers->at + from + name + 1);
}

/* One line of the head, with its end; after the head, of a trailer. */
static bool take_line(struct transfer *transfer, const char *line, size_t length)
{
    transfer->head_bytes += length;
    if (transfer->has_head)
        return true;
    if (transfer->head_bytes > HEAD_BYTES_MAX)
        return error_set(&transfer->error, KOTA_ERROR_TOO_LONG,
                         "the answer's head is longer than %d bytes", HEAD_BYTES_MAX);
    while (length > 0 && (line[length - 1] == '\r' || line[length - 1] == '\n'))
        length--;
    if (length == 0)
        return check_head(transfer);
    if (strncmp(line, "HTTP/", 5) != 0 || memchr(line, ':', length))
        return take_field(transfer, line, length);
    transfer->status = length > 9 ? atoi(line + 9) : 0;
    transfer->header_count = 0;
    transfer->is_chunked = transfer->has_length = transfer->has_coding = false;
    text_clear(&transfer->call->answer->headers);
    return true;
}

static size_t on_header(char *line, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;

    return transfer->call && take_line(transfer, line, size * count) ? size * count : 0;
}

static bool take_body(struct transfer *transfer, const char *bytes, size_t length)
{
    struct call *call = transfer->call;
    struct text *body = &call->answer->body;

    if (is_feed(transfer)) {
        transfer->is_left = !watch_take(call, bytes, length, &transfer->error);
        return !transfer->is_left;
    }
    if (request_takes(call->request, transfer->status))
        return client_take(call, bytes, length, &transfer->error);
    if (length > transfer->client->options.answer_bytes_max - body->length)
        return too_long(transfer, (double)(body->length + length));
    return text_add(body, bytes, length) ||
           error_set(&transfer->error, KOTA_ERROR_MEMORY, "no memory for an answer of %zu bytes",
                     body->length + length);
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;

    return transfer->call && take_body(transfer, bytes, size * count) ? size * count : 0;
}

/* ---- the request ----------------------------------------------------------------------------- */

/* The body of a call that may not be repeated: it cannot be rewound. */
static size_t on_read(char *out, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    const struct kota_request *request = transfer->call ? transfer->call->request : NULL;
    size_t room = size * count, left;

    if (!request)
        return CURL_READFUNC_ABORT;
    left = request->body_length - transfer->body_read;
    if (left > room)
        left = room;
    if (left > 0)
        memcpy(out, (const char *)request->body + transfer->body_read, left);
    transfer->body_read += left;
    return left;
}

/* Without a value: libcurl is to leave that header out. */
static void add_line(struct transfer *transfer, const char *name, const char *value)
{
    text_adds(&transfer->lines, name);
    text_adds(&transfer->lines, *value ? ": " : ":");
    text_adds(&transfer->lines, value);
    text_add(&transfer->lines, "", 1);
}

/* The request's own: "Name: value\r\n" each; libcurl writes one without a value as "Name;". */
static void add_own_lines(struct transfer *transfer, const struct text *headers)
{
    const char *at = text_string(headers), *end;

    for (; (end = strstr(at, "\r\n")); at = end + 2) {
        const bool is_empty = end - at > 2 && end[-1] == ' ' && end[-2] == ':';

        text_add(&transfer->lines, at, (size_t)(end - at) - (is_empty ? 2 : 0));
        text_add(&transfer->lines, is_empty ? ";" : "", is_empty ? 2 : 1);
    }
}

static bool make_lines(struct transfer *transfer)
{
    const struct call *call = transfer->call;
    const struct kota_request *request = call->request;
    struct text *lines = &transfer->lines;
    size_t count = 0;

    text_clear(lines);
    add_line(transfer, "Accept", request->accept ? request->accept : "");
    add_line(transfer, "Expect", "");
    add_line(transfer, "Content-Type", request->media_type ? request->media_type : "");
    if (call->client->authorization.length)
        add_line(transfer, "Authorization", text_string(&call->client->authorization));
    if (request->key[0])
        add_line(transfer, "Idempotency-Key", request->key);
    add_own_lines(transfer, &request->headers);
    if (call->watch)
        watch_headers(call->watch, lines);
    if (lines->is_broken)
        return false;
    for (size_t i = 0; i < lines->length; i++)
        count += lines->at[i] == '\0';
    if (count > transfer->node_capacity) {
        void *grown = realloc(transfer->nodes, 2 * count * sizeof(*transfer->nodes));

        if (!grown)
            return false;
        transfer->nodes = grown;
        transfer->node_capacity = 2 * count;
    }
    for (size_t i = 0, from = 0; i < count; i++, from += strlen(lines->at + from) + 1)
        transfer->nodes[i] = (struct curl_slist){
            .data = lines->at + from, .next = i + 1 < count ? &transfer->nodes[i + 1] : NULL};
    return true;
}

static void set_body(struct transfer *transfer)
{
    const struct kota_request *request = transfer->call->request;
    CURL *easy = transfer->easy;

    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_length);
    if (request->may_repeat || request->body_length == 0) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body_length ? request->body : "");
        return;
    }
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(easy, CURLOPT_READDATA, transfer);
}

static bool set_request(struct transfer *transfer)
{
    const struct call *call = transfer->call;
    const struct kota_request *request = call->request;
    const struct place *place = &call->client->place;
    const char *method = request->method;
    CURL *easy = transfer->easy;

    text_clear(&transfer->url);
    text_adds(&transfer->url, text_string(&place->url));
    text_adds(&transfer->url, text_string(&request->path));
    if (transfer->url.is_broken || !make_lines(transfer) ||
        (place->is_direct
             ? curl_easy_setopt(easy, CURLOPT_REQUEST_TARGET, transfer->url.at + place->origin)
             : curl_easy_setopt(easy, CURLOPT_URL, transfer->url.at)))
        return false;
    if (request->media_type || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
        strcmp(method, "PATCH") == 0)
        set_body(transfer);
    else if (strcmp(method, "HEAD") == 0)
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    else
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST,
                     strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 ? NULL : method);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->nodes);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT,
                     call->watch || (!request->may_repeat && request->body_length == 0) ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, call->watch ? 1L : 0L);
    return true;
}

static int on_progress(void *context, curl_off_t all, curl_off_t now, curl_off_t up_all,
                       curl_off_t up)
{
    const struct transfer *transfer = context;

    (void)all, (void)now, (void)up_all;
    if (transfer->call)
        client_sent(transfer->call, (size_t)up);
    return 0;
}

/* The options that all calls share. */
static void set_options(struct transfer *transfer)
{
    const struct kota_client *client = transfer->client;
    const char *ca_file = client->ca_file.length ? text_string(&client->ca_file)
                                                 : getenv("SSL_CERT_FILE"); /* as curl itself */
    CURL *easy = transfer->easy;

    curl_easy_setopt(easy, CURLOPT_URL, text_string(&client->place.origin_url));
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->message);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "libkota/0.1");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BYTES);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)ceil(1000 * client->options.connect_timeout_s));
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)ceil(client->options.idle_s) - 1);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, transfer);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, client);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close_socket);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, client);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
    if (ca_file && *ca_file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file);
    if (client->place.unix_path.length)
        curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, text_string(&client->place.unix_path));
    if (client->place.is_loopback)
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
}

static struct transfer *transfer_new(struct kota_client *client)
{
    struct transfer *transfer = client->transfers.idle;

    if (transfer) {
        client->transfers.idle = transfer->next;
        return transfer;
    }
    transfer = calloc(1, sizeof(*transfer));
    if (!transfer || !(transfer->easy = curl_easy_init())) {
        free(transfer);
        return NULL;
    }
    transfer->client = client;
    set_options(transfer);
    return transfer;
}

/* libcurl 7.88 counts its own repeats over all transfers of a handle, and fails after five. */
static void transfer_rest(struct transfer *transfer)
{
    struct transfers *transfers = &transfer->client->transfers;
    long connects = 0;

    curl_easy_getinfo(transfer->easy, CURLINFO_NUM_CONNECTS, &connects);
    if (connects > 0) {
        curl_easy_reset(transfer->easy);
        set_options(transfer);
    }
    transfer->call = NULL;
    transfer->next = transfers->idle;
    transfers->idle = transfer;
}

bool transfer_begin(struct kota_client *client, struct call *call, struct kota_error *error)
{
    struct transfer *transfer = transfer_new(client);
    CURLMcode code = CURLM_OUT_OF_MEMORY;

    if (!transfer)
        return error_set(error, KOTA_ERROR_MEMORY, "no memory for a connection");
    transfer->call = call;
    transfer->status = 0;
    transfer->head_bytes = transfer->body_read = 0;
    transfer->early_count = 0;
    transfer->has_head = transfer->is_left = false;
    transfer->length = 0;
    transfer->message[0] = '\0';
    error_clear(&transfer->error);
    curl_easy_setopt(transfer->easy, CURLOPT_NOPROGRESS, call->request->on_sent ? 0L : 1L);
    if (set_request(transfer))
        IN_CURL(client, code = curl_multi_add_handle(client->transfers.multi, transfer->easy));
    if (code != CURLM_OK) {
        transfer_rest(transfer);
        return error_set(error, KOTA_ERROR_MEMORY, "no memory for the request");
    }
    call->transfer = transfer;
    client->transfers.active += !call->watch;
    return true;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void detach(struct transfer *transfer)
{
    struct call *call = transfer->call;

    transfer->client->transfers.active -= !call->watch;
    call->transfer = NULL;
    transfer->call = NULL;
}

static void take_out(struct transfer *transfer)
{
    struct kota_client *client = transfer->client;

    IN_CURL(client, curl_multi_remove_handle(client->transfers.multi, transfer->easy));
    transfer_rest(transfer);
}

void transfer_abandon(struct transfer *transfer)
{
    struct transfers *transfers = &transfer->client->transfers;

    detach(transfer);
    if (!transfers->in_curl) {
        take_out(transfer);
        return;
    }
    transfer->next = transfers->abandoned;
    transfers->abandoned = transfer;
}

static enum kota_error_kind kind_of(const struct transfer *transfer, CURLcode code)
{
    switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL: /* HTTP/0.9 */
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
        return KOTA_ERROR_PROTOCOL;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return KOTA_ERROR_ADDRESS;
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT: /* of connecting: there is no other time limit of libcurl */
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PROXY:
        return KOTA_ERROR_CONNECT;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
        return KOTA_ERROR_TLS;
    case CURLE_OUT_OF_MEMORY: { /* before 8.6 also a line of the head that is too long */
        curl_off_t begun_us = 0;

        curl_easy_getinfo(transfer->easy, CURLINFO_STARTTRANSFER_TIME_T, &begun_us);
        return begun_us > 0 && !transfer->has_head ? KOTA_ERROR_TOO_LONG : KOTA_ERROR_MEMORY;
    }
#if LIBCURL_VERSION_NUM >= 0x080600
    case CURLE_TOO_LARGE:
        return KOTA_ERROR_TOO_LONG;
#endif
    default: /* a chunk that is none has the code of a broken connection */
        return strstr(transfer->message, "chunk") ? KOTA_ERROR_PROTOCOL : KOTA_ERROR_LOST;
    }
}

static void failed(const struct transfer *transfer, CURLcode code, struct kota_error *error)
{
    const char *name = transfer->client->place.name;

    error_clear(error);
    if (transfer->error.kind)
        *error = transfer->error;
    else if (code == CURLE_OK)
        error_set(error, KOTA_ERROR_LOST,
                  transfer->has_head ? "%s ended the stream" : "%s: there was no answer", name);
    else
        error_set(error, kind_of(transfer, code), "%s: %s", name,
                  transfer->message[0] ? transfer->message : curl_easy_strerror(code));
    error->status = transfer->status >= 200 ? transfer->status : 0;
}

static void ended(struct transfer *transfer, CURLcode code)
{
    struct call *call = transfer->call;
    const bool is_left = transfer->is_left && !transfer->error.kind;
    const bool is_answer = code == CURLE_OK && transfer->has_head && !is_feed(transfer);
    struct kota_error error;

    if (!is_answer)
        failed(transfer, code, &error);
    detach(transfer);
    take_out(transfer);
    if (is_left)
        call_finish(call); /* the callback of a feed has ended it */
    else if (is_answer)
        call_answered(call);
    else
        call_failed(call, &error);
}

/* Passes on what has ended. */
static void turn(struct kota_client *client)
{
    struct transfers *transfers = &client->transfers;
    const CURLMsg *message;
    int left;

    while (transfers->abandoned) {
        struct transfer *transfer = transfers->abandoned;

        transfers->abandoned = transfer->next;
        take_out(transfer);
    }
    while ((message = curl_multi_info_read(transfers->multi, &left))) {
        const CURLcode code = message->data.result;
        char *transfer = NULL;

        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
        if (message->msg == CURLMSG_DONE && transfer)
            ended((struct transfer *)(void *)transfer, code);
    }
    client_pump(client);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static bool is_global;

static void init_globally(void)
{
    is_global = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

bool transfers_open(struct kota_client *client)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct transfers *transfers = &client->transfers;
    CURLM *multi;

    pthread_once(&once, init_globally);
    multi = transfers->multi = is_global ? curl_multi_init() : NULL;
    if (!multi)
        return false;
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, client);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_time);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, client);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)client->options.connections_max);
    uv_timer_init(client->loop, &transfers->timer);
    uv_unref((uv_handle_t *)&transfers->timer); /* the clock of calls holds the loop */
    transfers->timer.data = client;
    return true;
}

static void on_timer_closed(uv_handle_t *handle)
{
    client_handle_closed(handle->data);
}

void transfers_close(struct kota_client *client)
{
    struct transfers *transfers = &client->transfers;

    while (transfers->idle) {
        struct transfer *transfer = transfers->idle;

        transfers->idle = transfer->next;
        IN_CURL(client, curl_easy_cleanup(transfer->easy));
        text_free(&transfer->url);
        text_free(&transfer->lines);
        free(transfer->nodes);
        free(transfer);
    }
    IN_CURL(client, curl_multi_cleanup(transfers->multi));
    uv_close((uv_handle_t *)&transfers->timer, on_timer_closed);
    free(transfers->sockets);
    transfers->sockets = NULL;
    transfers->socket_count = 0;
}
