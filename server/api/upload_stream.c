/*
 * Fields that arrive piece by piece.
 *
 * Problem: a field of 2^27 samples is a body of 512 MiB. Buffered it needs that memory twice, as
 * bytes and as heights, before there is the first tile. Approach: the place of each sample is known
 * from the query, so each piece of the body is decoded into a few kilobytes and copied to its
 * tiles, which are begun when the first sample of theirs comes; their pyramids are made at the end.
 * What a client only announces takes no memory, but all of its charge: two fields that fit one
 * after the other must not both be half done when there is no more.
 *
 * A sample may be cut by the end of a piece: up to three bytes wait for the next. The locale's
 * triangulation is not asked before the end, for the locale may change meanwhile.
 *
 * Invariant: received bytes = 4 · samples put + split_length.
 * Tried and dropped: copying on the loop. Where the system has to find huge pages for a new slab,
 * single turns of the loop took 60 ms.
 */
#include "api/upload_stream.h"

#include "base/content_hash.h"

#include <string.h>

enum { SAMPLE_BYTES = 4, SAMPLES_AT_ONCE = 2048 };

struct upload_stream {
    struct api *api;
    const struct api_limits *limits; /* of the beginning */
    uint64_t charge;
    struct raster_options raster;
    struct heightfield_spec spec;
    struct heightfield_builder *builder;
    uint64_t samples, received; /* samples: put into tiles; received: bytes before the rest */
    uint8_t split[SAMPLE_BYTES];
    size_t split_length;
    bool is_keyed; /* only the hash of a keyed request is asked for */
    struct content_hasher hasher;
    uint8_t hash[32];
};

static uint64_t expected_bytes(const struct upload_stream *stream)
{
    return (uint64_t)stream->spec.cols * stream->spec.rows * SAMPLE_BYTES;
}

static void release_charge(struct upload_stream *stream)
{
    upload_release(stream->api, stream->charge);
    stream->charge = 0;
}

/* ---- the body arrives ------------------------------------------------------------------------ */

/* Samples that follow one another in the body, at most SAMPLES_AT_ONCE. */
static enum err_code put(struct upload_stream *stream, const uint8_t *bytes, size_t count,
                         struct err *err)
{
    uint32_t cols = stream->spec.cols, last_row = stream->spec.rows - 1;
    float heights_m[SAMPLES_AT_ONCE];

    if (raster_heights_f32(&stream->raster, stream->samples, bytes, count, heights_m, err))
        return err->code;
    for (size_t i = 0; i < count;) {
        uint32_t row = (uint32_t)(stream->samples / cols);
        uint32_t column = (uint32_t)(stream->samples % cols);
        uint32_t run = cols - column < count - i ? cols - column : (uint32_t)(count - i);

        if (heightfield_builder_put(stream->builder, column,
                                    stream->raster.flip_y ? last_row - row : row, heights_m + i,
                                    run, err))
            return err->code;
        stream->samples += run;
        i += run;
    }
    return ERR_OK;
}

static enum err_code put_bytes(struct upload_stream *stream, const uint8_t *at, size_t length,
                               struct err *err)
{
    while (length > 0) {
        size_t count = length / SAMPLE_BYTES, used = 1;

        count = count < SAMPLES_AT_ONCE ? count : SAMPLES_AT_ONCE;
        if (stream->split_length == 0 && count > 0) {
            used = count * SAMPLE_BYTES;
            if (put(stream, at, count, err))
                return err->code;
        } else {
            stream->split[stream->split_length++] = *at;
            if (stream->split_length == SAMPLE_BYTES && put(stream, stream->split, 1, err))
                return err->code;
            stream->split_length %= SAMPLE_BYTES;
        }
        at += used;
        length -= used;
    }
    return ERR_OK;
}

static enum err_code take(void *context, const char *at, size_t length, struct err *err)
{
    struct upload_stream *stream = context;
    uint64_t expected = expected_bytes(stream);

    if (stream->is_keyed)
        content_hash_add(&stream->hasher, at, length);
    stream->received += length;
    if (stream->received > expected)
        err_limit(err, ERR_BAD_INPUT, (double)expected, (double)stream->received,
                  "f32: %u x %u samples take %llu bytes, got more", stream->spec.cols,
                  stream->spec.rows, (unsigned long long)expected);
    else if (put_bytes(stream, (const uint8_t *)at, length, err) == ERR_OK)
        return ERR_OK;
    release_charge(stream); /* the tiles are freed later, the client may try again at once */
    return err->code;
}

/* ---- before and after ------------------------------------------------------------------------ */

enum err_code upload_stream_begin(struct call *call, const struct upload *upload, struct err *err)
{
    static const struct http_sink sink = {.take = take, .drop = upload_stream_free};
    const struct raster size = {.cols = upload->raster.cols, .rows = upload->raster.rows};
    struct upload_stream *stream = http_request_alloc(call->request, sizeof *stream);
    uint64_t announced;

    if (!stream)
        return err_set(err, ERR_NO_MEMORY, "no memory for an upload");
    memset(stream, 0, sizeof *stream);
    stream->api = call->api;
    stream->limits = call_limits(call);
    stream->raster = upload->raster;
    stream->is_keyed = http_request_header(call->request, "idempotency-key").at != NULL;
    content_hash_begin(&stream->hasher);
    if (upload_spec(upload, &size, TRIANGULATION_ANTI, &stream->spec, err))
        return err->code;
    if (!http_request_body_announced(call->request, &announced))
        announced = expected_bytes(stream);
    if (raster_check_f32(&upload->raster, &stream->limits->raster, announced, err))
        return err->code;
    stream->builder = heightfield_builder_create(&stream->spec, err);
    if (!stream->builder)
        return err->code;
    stream->charge = heightfield_tile_bytes(&stream->spec);
    if (upload_charge(call->api, stream->charge, err)) {
        heightfield_builder_free(stream->builder);
        return err->code;
    }
    http_request_set_sink(call->request, &sink, stream);
    return ERR_OK;
}

struct upload_stream *upload_stream_take(struct call *call)
{
    struct upload_stream *stream = call->request ? http_request_take_sink(call->request) : NULL;

    if (stream && stream->is_keyed) {
        content_hash_add(&stream->hasher, call->body.at, call->body.length);
        content_hash_end(&stream->hasher, stream->hash);
        call->body_hash = stream->hash;
    }
    return stream;
}

enum err_code upload_stream_layer(struct upload_stream *stream, const char *id, struct span rest,
                                  enum triangulation triangulation, struct uploaded *out,
                                  struct err *err)
{
    struct heightfield_tile_layout tiles = heightfield_tile_layout(&stream->spec);
    struct heightfield *field, *turned;

    *out = (struct uploaded){.layer = NULL};
    if (raster_check_f32(&stream->raster, &stream->limits->raster, stream->received + rest.length,
                         err) ||
        put_bytes(stream, (const uint8_t *)rest.at, rest.length, err))
        return err->code;
    for (uint32_t row = 0; row < tiles.tile_rows; row++)
        for (uint32_t column = 0; column < tiles.tile_cols; column++)
            if (heightfield_builder_seal(stream->builder, column, row, err))
                return err->code;
    field = heightfield_builder_finish(stream->builder, err);
    stream->builder = NULL;
    if (field && triangulation != stream->spec.triangulation) {
        turned = heightfield_with_triangulation(field, triangulation, err);
        heightfield_unref(field);
        field = turned;
    }
    out->layer = field ? layer_create_heightfield(id, field, err) : NULL;
    if (!out->layer)
        return err->code;
    out->charge = stream->charge;
    stream->charge = 0;
    return ERR_OK;
}

void upload_stream_free(void *context)
{
    struct upload_stream *stream = context;

    if (!stream)
        return;
    heightfield_builder_free(stream->builder);
    stream->builder = NULL;
    release_charge(stream);
}
