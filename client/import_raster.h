/*
 * A raster that GDAL reads, as an upload of float32.
 */
#ifndef KOTA_CLIENT_IMPORT_RASTER_H
#define KOTA_CLIENT_IMPORT_RASTER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Texts in the form of the options of `kota import`; "" for none. */
struct import_raster {
    void *bytes; /* float32 [rows][cols], free() */
    size_t length;
    char cols[24], rows[24], spacing[72], origin[72], scale[32], offset[32];
    bool flip_y; /* the first row is the one with the greatest y */
    bool has_geo;
    double lat_deg, lng_deg; /* where the frame's origin is */
    char crs[16];            /* "EPSG:32633", of projected metres */
    char note[1600];         /* a line for people: the raster and its treatment */
};

/*
 * name, band, report: see gdal_read.
 * has_spacing  the spacing is an option, so the file needs no place
 *
 * Errors as gdal_read and georef_place.
 */
enum err_code import_raster_read(const char *name, int band, bool has_spacing,
                                 void (*report)(void *context, double done, double all),
                                 void *context, struct import_raster *out, struct err *err);

#endif
