/*
 * What assimp leaves out of a glTF without a word: counted by us in the JSON, and held against what
 * came.
 */
#ifndef KOTA_FORMATS_GLTF_H
#define KOTA_FORMATS_GLTF_H

#include "formats/polygon_file.h"

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
