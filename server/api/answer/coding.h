/*
 * Which content coding an answer has: Accept-Encoding and Kota-Layout (RFC 9110, section 12.5.3).
 *
 * Only workers compress. An answer with an ETag is coded by its call, which makes the coding a part
 * of the tag; all others by the frame of calls, where they are large (coding_apply).
 */
#ifndef KOTA_API_CODING_H
#define KOTA_API_CODING_H

#include "api/call_data.h"
#include "formats/content_coding.h"
#include "formats/float_layout.h"

enum {
    CODING_BYTES_MIN = 1024,      /* bodies with a tag below that are sent as they are */
    CODING_JSON_BYTES_MIN = 8192, /* the same of those without */
};

struct coding {
    enum content_coding content;
    enum float_layout layout; /* plain unless the content is coded */
};

/*
 * The best coding that a header allows: the one of the greatest q, of equal ones zstd, gzip,
 * identity; or, where it is not worth it, identity unless that is refused. Without a header
 * identity. False: it allows none of them.
 */
bool coding_accepted(struct span header, bool is_worth_it, enum content_coding *out);

/*
 * Chooses for a body of some bytes, and writes Vary. One that does not get smaller (is_packed) or
 * is short is coded only where the request refuses identity.
 * ERR_NOT_ACCEPTABLE  no coding is allowed
 */
enum err_code coding_choose(struct call *call, uint64_t bytes, bool is_packed, bool has_layouts,
                            struct coding *out, struct err *err);

/* "", "-zstd", "-gzip-delta": what the coding adds to a tag. */
enum { CODING_SUFFIX_MAX = 16 };
void coding_suffix(const struct coding *coding, char out[CODING_SUFFIX_MAX]);

/* Content-Encoding and Kota-Layout, where there are any. */
void coding_headers(struct call *call, const struct coding *coding);

/*
 * The body in the coding, which is not identity: malloc, in *out. cols × rows are the samples of a
 * layout. ERR_NO_MEMORY. On a worker.
 */
enum err_code coding_pack(const struct coding *coding, const void *bytes, size_t length,
                          size_t cols, size_t rows, struct raster_bytes *out, struct err *err);
/* The same in place of the plain bytes, which are malloc; nothing for identity. */
enum err_code coding_pack_in_place(const struct coding *coding, size_t cols, size_t rows,
                                   struct raster_bytes *bytes, struct err *err);

/*
 * The frame, after a call has made its answer: compresses a large body of text or samples without a
 * tag, if the client accepts that. On a loop it begins again on a worker where the route allows it,
 * else the body stays as it is. An error leaves the body as it is.
 */
void coding_apply(struct call *call);

#endif
