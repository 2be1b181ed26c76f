/*
 * Rasters through GDAL, where it is installed.
 */
#ifndef KOTA_CLIENT_GDAL_H
#define KOTA_CLIENT_GDAL_H

#include "base/err.h"
#include "formats/raster/georef.h"

#include <stdbool.h>
#include <stddef.h>

struct gdal_raster {
    float *numbers; /* [rows][cols], as the file has them, its first row first; NaN: none. free() */
    struct georef_source where; /* its size, too */
    double scale, offset;       /* height in metres = offset + scale * number */
    char epsg[8];               /* its code, "" for none */
    char frame[96];             /* the coordinate system's name, "" for none */
    char driver[32];
    char height_unit[32]; /* as the file calls it */
    bool is_unit_unknown; /* height_unit is none that is known here: taken as metres */
};

/*
 * Reads one band, from 1. name is a file, or another name that GDAL opens ("NETCDF:a.nc:depth").
 *
 * report         is called with the rows read so far; may be NULL
 *
 * ERR_NO_DEVICE  there is no GDAL here: the message names the package
 * ERR_BAD_INPUT  it cannot be read, with GDAL's message; no such band; smaller than 2 x 2
 * ERR_TOO_LARGE  over 1 GiB of samples
 */
enum err_code gdal_read(const char *name, int band,
                        void (*report)(void *context, double done, double all), void *context,
                        struct gdal_raster *out, struct err *err);
void gdal_free(struct gdal_raster *raster);

#endif
