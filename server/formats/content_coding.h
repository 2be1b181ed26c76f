/*
 * Content codings of HTTP: whole bodies compressed by zstd or gzip. Pure, any thread.
 */
#ifndef KOTA_FORMATS_CONTENT_CODING_H
#define KOTA_FORMATS_CONTENT_CODING_H

#include "base/err.h"
#include "formats/raster/raster.h"

enum content_coding { CODING_IDENTITY, CODING_GZIP, CODING_ZSTD };

/* "gzip", "zstd"; NULL for CODING_IDENTITY. */
const char *content_coding_word(enum content_coding coding);

/*
 * The bytes in a coding that is not identity: malloc. ERR_NO_MEMORY leaves *out unchanged. The same
 * bytes have the same coding in one build of the library. zstd about 400 MB/s, gzip 60.
 */
enum err_code content_coding_pack(enum content_coding coding, const void *bytes, size_t length,
                                  struct raster_bytes *out, struct err *err);

#endif
