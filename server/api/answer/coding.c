/*
 * Negotiation of content codings: see coding.h.
 *
 * A layout changes what the decoded bytes mean, so it is given only to a client that asks for it: a
 * browser or a library that sends Accept-Encoding by itself would read it as samples.
 */
#include "api/answer/coding.h"

#include "api/answer/header_list.h"
#include "api/call_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Accept-Encoding ------------------------------------------------------------------------- */

bool coding_accepted(struct span header, bool is_worth_it, enum content_coding *out)
{
    int weight[CODING_ZSTD + 1] = {-1, -1, -1}, any = -1; /* -1: not named */
    int best;

    *out = CODING_IDENTITY;
    while (header.length > 0) {
        struct span rest = header_part(&header, ','), name = header_part(&rest, ';');

        if (header_is(name, "identity"))
            weight[CODING_IDENTITY] = header_weight(rest);
        else if (header_is(name, "gzip") || header_is(name, "x-gzip"))
            weight[CODING_GZIP] = header_weight(rest);
        else if (header_is(name, "zstd"))
            weight[CODING_ZSTD] = header_weight(rest);
        else if (header_is(name, "*"))
            any = header_weight(rest);
    }
    for (int i = CODING_IDENTITY; i <= CODING_ZSTD; i++)
        if (weight[i] < 0)
            weight[i] = any;
    best = weight[CODING_ZSTD] >= weight[CODING_GZIP] ? CODING_ZSTD : CODING_GZIP;
    if (weight[best] > 0 &&
        (weight[CODING_IDENTITY] == 0 || (is_worth_it && weight[best] >= weight[CODING_IDENTITY])))
        *out = (enum content_coding)best;
    return *out != CODING_IDENTITY || weight[CODING_IDENTITY] != 0;
}

/* ---- a call's coding ------------------------------------------------------------------------- */

/* The first layout of the request's header that is known. */
static enum float_layout read_layout(struct span header)
{
    while (header.length > 0) {
        struct span word = header_part(&header, ',');

        for (enum float_layout layout = LAYOUT_BYTES; layout <= LAYOUT_DELTA; layout++)
            if (header_is(word, float_layout_word(layout)))
                return layout;
    }
    return LAYOUT_PLAIN;
}

enum err_code coding_choose(struct call *call, uint64_t bytes, bool is_packed, bool has_layouts,
                            struct coding *out, struct err *err)
{
    bool is_worth_it = !is_packed && bytes >= CODING_BYTES_MIN;

    *out = (struct coding){CODING_IDENTITY, LAYOUT_PLAIN};
    if (call->reply)
        http_reply_header(call->reply, "Vary", "Accept-Encoding%s",
                          has_layouts ? ", Kota-Layout" : "");
    if (!coding_accepted(call_request_header(call, "accept-encoding"), is_worth_it, &out->content))
        return err_set_at(err, ERR_NOT_ACCEPTABLE, "Accept-Encoding",
                          "Accept-Encoding allows neither zstd nor gzip nor identity");
    if (has_layouts && out->content != CODING_IDENTITY)
        out->layout = read_layout(call_request_header(call, "kota-layout"));
    return ERR_OK;
}

void coding_suffix(const struct coding *coding, char out[CODING_SUFFIX_MAX])
{
    const char *layout = float_layout_word(coding->layout);

    out[0] = '\0';
    if (coding->content != CODING_IDENTITY)
        snprintf(out, CODING_SUFFIX_MAX, "-%s%s%s", content_coding_word(coding->content),
                 layout ? "-" : "", layout ? layout : "");
}

void coding_headers(struct call *call, const struct coding *coding)
{
    if (call->reply && coding->content != CODING_IDENTITY)
        http_reply_header(call->reply, "Content-Encoding", "%s",
                          content_coding_word(coding->content));
    if (call->reply && coding->layout != LAYOUT_PLAIN)
        http_reply_header(call->reply, "Kota-Layout", "%s", float_layout_word(coding->layout));
}

enum err_code coding_pack(const struct coding *coding, const void *bytes, size_t length,
                          size_t cols, size_t rows, struct raster_bytes *out, struct err *err)
{
    void *laid_out = NULL;

    if (coding->layout != LAYOUT_PLAIN) {
        laid_out = malloc(length);
        if (!laid_out)
            return err_set(err, ERR_NO_MEMORY, "no memory to compress %zu bytes", length);
        float_layout_write(coding->layout, bytes, cols, rows, laid_out);
    }
    content_coding_pack(coding->content, laid_out ? laid_out : bytes, length, out, err);
    free(laid_out);
    return err->code;
}

enum err_code coding_pack_in_place(const struct coding *coding, size_t cols, size_t rows,
                                   struct raster_bytes *bytes, struct err *err)
{
    struct raster_bytes plain = *bytes;

    if (coding->content != CODING_IDENTITY &&
        coding_pack(coding, plain.at, plain.length, cols, rows, bytes, err) == ERR_OK)
        free(plain.at);
    return err->code;
}

/* ---- the frame ------------------------------------------------------------------------------- */

static bool is_text_or_samples(const char *type)
{
    static const char *const types[] = {"application/json", "model/obj", "application/vnd.kota.f32",
                                        "application/vnd.oai.openapi+json"};

    for (size_t i = 0; type && i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i]) == 0)
            return true;
    return false;
}

void coding_apply(struct call *call)
{
    struct coding coding = {CODING_IDENTITY, LAYOUT_PLAIN};
    struct raster_bytes packed;
    struct err err = {.code = ERR_OK};
    size_t length;
    const void *body = http_reply_body(call->reply, &length);

    if (length < CODING_JSON_BYTES_MIN || !is_text_or_samples(http_reply_type(call->reply)) ||
        http_reply_has_header(call->reply, "ETag"))
        return;
    http_reply_header(call->reply, "Vary", "Accept-Encoding");
    if (!coding_accepted(call_request_header(call, "accept-encoding"), true, &coding.content) ||
        coding.content == CODING_IDENTITY)
        return;
    if (http_request_is_on_loop(call->request)) {
        call->is_offloaded = http_request_may_offload(call->request);
        return;
    }
    if (content_coding_pack(coding.content, body, length, &packed, &err) != ERR_OK)
        return;
    coding_headers(call, &coding);
    http_reply_replace_body(call->reply, packed.at, packed.length);
    free(packed.at);
}
