/*
 * The world at the start: files of the command line and directories of locales.
 */
#ifndef KOTA_API_LOAD_H
#define KOTA_API_LOAD_H

#include "api/api.h"

/*
 * Loads FILE or FILE?options as a locale of its own, whose id is the cleaned base name, with the
 * layer `ground`. A .hgt that is named after its corner (N42E001.hgt) has its spacing from the
 * WGS84 ellipsoid at the tile's middle unless one is given; .hgt and .asc are flipped unless told.
 * The error names file, option and value. The writer's thread is used; call before serving.
 */
enum err_code load_file(struct api *api, const char *argument, struct err *err);

/* Loads every DIR/<id>/locale.json, in the order of their names. The error names file and member.
 */
enum err_code load_world(struct api *api, const char *directory, struct err *err);

/* "N42E001" at the start of a name: the tile's middle latitude. False when it is none. */
bool load_hgt_latitude(const char *name, double *middle_deg);

/* Metres a degree of longitude and of latitude on the WGS84 ellipsoid. */
void load_metres_a_degree(double latitude_deg, double *east_m, double *north_m);

#endif
