/*
 * A raster that GDAL reads, as an upload of float32.
 */
#ifndef KOTA_CLIENT_IMPORT_RASTER_H
#define KOTA_CLIENT_IMPORT_RASTER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Texts as the options of `kota import` have them; "" where there is nothing to say. */
struct import_raster {
    void *bytes; /* float32 [rows][cols], free() */
    size_t length;
    char cols[24], rows[24], spacing[72], origin[72], scale[32], offset[32];
    bool flip_y; /* the first row is the one with the greatest y */
    bool has_geo;
    double lat_deg, lng_deg; /* where the frame's origin is */
    char note[480];          /* a line for people: what it is, and how it was taken */
};

/*
 * name, band, tell: see gdal_read.
 * has_spacing  the spacing is given by hand, so the file need not say where it lies
 *
 * Errors as gdal_read and georef_place.
 */
enum err_code import_raster_read(const char *name, int band, bool has_spacing,
                                 void (*tell)(void *context, double done, double all),
                                 void *context, struct import_raster *out, struct err *err);

#endif
