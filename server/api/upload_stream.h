/*
 * An f32 layer that is built while its body arrives: samples go into their tiles at once, so that
 * an upload needs little memory beside its field, and has no limit but that of samples.
 */
#ifndef KOTA_API_UPLOAD_STREAM_H
#define KOTA_API_UPLOAD_STREAM_H

#include "api/upload.h"

struct upload_stream;

/*
 * Before the body: checks sizes, lengths and spacing as upload_layer does, takes the charge of the
 * whole field (upload_charge), and makes the field the request's sink. Loop thread; O(1).
 */
enum err_code upload_stream_begin(struct call *call, const struct upload *upload, struct err *err);

/*
 * After the body, whose rest is call->body: the field, for upload_stream_free; NULL where the body
 * was buffered. With an Idempotency-Key call->body_hash is set until then.
 */
struct upload_stream *upload_stream_take(struct call *call);

/*
 * The layer, as upload_layer makes it of the whole body, with the rest of it. *out is empty on
 * error. O(samples): no loop's thread.
 */
enum err_code upload_stream_layer(struct upload_stream *stream, const char *id, struct span rest,
                                  enum triangulation triangulation, struct uploaded *out,
                                  struct err *err);

/* Frees a stream's tiles and charge, unless the layer has them; NULL is fine. O(tiles). */
void upload_stream_free(void *stream);

#endif
