/*
 * zstd and gzip at their fastest levels: see content_coding.h.
 *
 * Heights do not get smaller at higher levels (54 % of the demo world at levels 1 and 3), and JSON
 * by a tenth for three times the time.
 */
#include "formats/content_coding.h"

#include "base/check.h"

#include <limits.h>
#include <stdlib.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>

enum { ZSTD_LEVEL = 1, GZIP_LEVEL = 1, GZIP_WINDOW = 15 + 16, GZIP_MEMORY = 8 };

const char *content_coding_word(enum content_coding coding)
{
    return coding == CODING_GZIP ? "gzip" : coding == CODING_ZSTD ? "zstd" : NULL;
}

/* Each packs into malloc'd memory, NULL without any. */
static void *pack_zstd(const void *bytes, size_t length, size_t *packed)
{
    size_t size = ZSTD_compressBound(length);
    void *to = malloc(size);

    *packed = to ? ZSTD_compress(to, size, bytes, length, ZSTD_LEVEL) : 0;
    if (!to || !ZSTD_isError(*packed))
        return to;
    free(to);
    return NULL;
}

static void *pack_gzip(const void *bytes, size_t length, size_t *packed)
{
    z_stream z = {.next_in = bytes, .avail_in = (uInt)length};
    uLong size;
    void *to;

    if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return NULL;
    size = deflateBound(&z, (uLong)length);
    to = malloc(size);
    if (to) {
        z.next_out = to;
        z.avail_out = (uInt)size;
        CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END); /* the bound holds */
        *packed = z.total_out;
    }
    deflateEnd(&z);
    return to;
}

enum err_code content_coding_pack(enum content_coding coding, const void *bytes, size_t length,
                                  struct raster_bytes *out, struct err *err)
{
    size_t packed;
    void *to, *less;

    CHECK(coding != CODING_IDENTITY && length <= UINT_MAX / 2);
    to = coding == CODING_ZSTD ? pack_zstd(bytes, length, &packed)
                               : pack_gzip(bytes, length, &packed);
    if (!to)
        return err_set(err, ERR_NO_MEMORY, "no memory to compress %zu bytes", length);
    less = realloc(to, packed);
    *out = (struct raster_bytes){less ? less : to, packed};
    return ERR_OK;
}
