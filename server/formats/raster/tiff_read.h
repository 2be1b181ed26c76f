/*
 * GeoTIFFs by libtiff, in this very process: for the jail's child (tiff.c), and for a fuzzer.
 */
#ifndef KOTA_FORMATS_TIFF_READ_H
#define KOTA_FORMATS_TIFF_READ_H

#include "formats/raster/georef.h"
#include "formats/raster/raster_decode.h"

/* Bytes of one tile, or of one row of a file in strips, that are unpacked at a time. */
#define TIFF_BLOCK_BYTES_MAX (UINT64_C(64) << 20)

/* What a file says besides its samples. Plain numbers: it goes through a pipe. */
struct tiff_head {
    uint32_t block_cols, block_rows; /* of a tile; of a row */
    struct georef_source where;      /* cols and rows, too */
    bool is_local;                   /* its system is one of metres without a place on the Earth */
    struct raster_import import;     /* but for has_geo of a geographic file */
};

/*
 * Takes what is read: the head first, then blocks row by row of blocks, from the file's first row.
 * heights_m[rows][stride] of a block has samples beyond the raster's right and lower edge; take
 * only those inside.
 */
struct tiff_sink {
    void *context;
    enum err_code (*head)(void *context, const struct tiff_head *head, struct err *err);
    enum err_code (*block)(void *context, uint32_t first_col, uint32_t first_row,
                           const float *heights_m, struct err *err);
};

/*
 * Reads a file into a sink, whose errors end it. Errors as raster_decode; those of libtiff are
 * ERR_BAD_INPUT with its words. Memory: one block. Any thread; opens no file.
 */
enum err_code tiff_read(const struct raster_source *source, const struct tiff_sink *sink,
                        struct err *err);

/* A head's place and system in a raster: spacing, origin, direction of rows. */
enum err_code tiff_place(const struct tiff_head *head, const struct raster_options *options,
                         struct raster *out, struct err *err);

/* The head's coordinate system out of GeoKeys (tags 34735, 34736), for tiff_read and its tests:
 * keys[key_count], numbers[number_count]. ERR_UNPROCESSABLE: a unit that is not known here. */
enum err_code tiff_geo_keys(const uint16_t *keys, size_t key_count, const double *numbers,
                            size_t number_count, const struct raster_options *options,
                            struct tiff_head *head, struct err *err);

#endif
