/*
 * glTF and GLB; and a check of those that assimp reads: polygons that it drops without an error are
 * found by counts of the JSON.
 */
#ifndef KOTA_FORMATS_GLTF_H
#define KOTA_FORMATS_GLTF_H

#include "formats/polygon/polygon_set.h"

/*
 * Decodes bytes[length], a POLYGON_GLB whose header is well or a POLYGON_GLTF, in the file's own
 * frame. *out is as for assimp_decode() on entry and may be half filled after an error;
 * polygon_set_free() it.
 *
 * is_read  out: false where the file has something that is not read here (listed in gltf.c); *out
 * is then still empty
 *
 * ERR_BAD_INPUT, ERR_TOO_LARGE, ERR_UNPROCESSABLE, ERR_NO_MEMORY: as polygon_decode(), but that
 * vertices may be infinite or NaN.
 * Cost O(JSON, buffers and nodes visited); memory some 80 bytes for each value of the JSON, freed
 * again: so to be called where memory is bounded. Any thread.
 */
#define GLTF_INSTANCES_BYTES_MAX (UINT64_C(128) << 20) /* of its set; VISITS_MAX in gltf.c */
enum err_code gltf_decode(enum polygon_format format, const uint8_t *bytes, size_t length,
                          const struct polygon_limits *limits, bool *is_read,
                          struct polygon_set *out, struct err *err);

/*
 * ERR_OK when the scene of bytes[length], a POLYGON_GLB whose header is well or a POLYGON_GLTF,
 * promises no more polygons than the got that were read of it.
 *
 * ERR_BAD_INPUT  some are missing: an index is out of range; or the JSON is too large to be judged
 * ERR_NO_MEMORY
 * Cost O(JSON and nodes visited); memory some 80 bytes for each value of the JSON, freed again: so
 * to be called where memory is bounded. Any thread.
 */
enum err_code gltf_check_polygons(enum polygon_format format, const uint8_t *bytes, size_t length,
                                  uint64_t got, struct err *err);

#endif
