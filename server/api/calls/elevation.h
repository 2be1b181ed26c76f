/*
 * A request in the form of Open Topo Data or of the Google Elevation API.
 */
#ifndef KOTA_API_ELEVATION_H
#define KOTA_API_ELEVATION_H

#include "api/call.h"
#include "formats/polyline.h"

enum nodata { NODATA_NULL, NODATA_NAN, NODATA_NUMBER };

struct elevation_question {
    struct geo_place *places; /* of the call's memory; of a path those that are sampled */
    size_t count;
    enum interpolation interpolation;
    enum nodata nodata;
    double nodata_value; /* NODATA_NUMBER */
    bool is_geojson;
};

/*
 * Reads query, form or JSON body, and samples the path.
 * ERR_BAD_INPUT, ERR_TOO_LARGE, ERR_UNSUPPORTED_MEDIA_TYPE, ERR_NO_MEMORY, ERR_BUSY
 */
enum err_code elevation_decode(struct call *call, bool is_post, struct elevation_question *out,
                               struct err *err);

#endif
