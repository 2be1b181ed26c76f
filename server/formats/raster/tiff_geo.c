/*
 * GeoKeys: the coordinate system of a GeoTIFF.
 *
 * The directory of keys is a list of four numbers each: key, place of the value (0: it is the
 * fourth number itself; 34736: among the numbers), count, value. Only what places a grid of heights
 * is read: the kind of system, its EPSG code, units, ellipsoid, and the centre of an orthographic
 * plane, which is a locale's own frame (geotiff.h). The transformation of other systems without a
 * code is ignored: their coordinates are metres without a place on the Earth.
 *
 * Units: no key is metres and degrees, as GDAL and the standard have it.
 *
 * Source: OGC 19-008r4, "GeoTIFF Standard", 2019, annexes B and D.
 */
#include "formats/raster/tiff_read.h"

enum { KEY_WORDS = 4, TAG_NUMBERS = 34736, USER_DEFINED = 32767 };
enum { MODEL_PROJECTED = 1, MODEL_GEOGRAPHIC = 2, RASTER_POINT = 2, CT_ORTHOGRAPHIC = 21 };
enum { EPSG_FIRST = 1024, EPSG_LAST = 32766, WGS84 = 4326 };

enum geo_key {
    KEY_MODEL = 1024,
    KEY_RASTER = 1025,
    KEY_GEOGRAPHIC = 2048,
    KEY_ANGULAR_UNIT = 2054,
    KEY_SEMI_MAJOR = 2057,
    KEY_INVERSE_FLATTENING = 2059,
    KEY_PROJECTED = 3072,
    KEY_TRANSFORMATION = 3075,
    KEY_LINEAR_UNIT = 3076,
    KEY_FALSE_EASTING = 3082,
    KEY_FALSE_NORTHING = 3083,
    KEY_CENTRE_LNG = 3088,
    KEY_CENTRE_LAT = 3089,
    KEY_VERTICAL_UNIT = 4099
};

struct geo_keys {
    const uint16_t *keys;
    size_t key_count;
    const double *numbers;
    size_t number_count;
};

/* The value of a key, or `otherwise`. */
static double value_of(const struct geo_keys *geo, enum geo_key name, double otherwise)
{
    for (size_t i = KEY_WORDS; i + KEY_WORDS <= geo->key_count; i += KEY_WORDS) {
        const uint16_t *key = geo->keys + i;

        if (key[0] != name || (size_t)(i / KEY_WORDS) > geo->keys[3])
            continue;
        if (key[1] == 0)
            return key[3];
        if (key[1] == TAG_NUMBERS && key[3] < geo->number_count && isfinite(geo->numbers[key[3]]))
            return geo->numbers[key[3]];
    }
    return otherwise;
}

/* Metres or radians a unit; 0: not known here. */
static double unit_of(double epsg)
{
    static const struct {
        double epsg, size;
    } units[] = {{9001, 1},    {9002, 0.3048}, {9003, 1200.0 / 3937},
                 {9036, 1000}, {9101, 1},      {9102, 0.017453292519943295}};

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].epsg == epsg)
            return units[i].size;
    return 0;
}

static enum err_code unit_unknown(const char *what, double epsg, const char *option,
                                  struct err *err)
{
    err_set(err, ERR_UNPROCESSABLE,
            "TIFF: its %s unit is EPSG %g, which is neither metre, kilometre, foot nor US survey "
            "foot%s; %s states the metres",
            what, epsg, option[0] == 's' ? ", nor degree or radian" : "", option);
    return err_at(err, "%s", option);
}

static enum err_code vertical_unit(const struct geo_keys *geo, const struct raster_options *options,
                                   struct tiff_head *head, struct err *err)
{
    double epsg = value_of(geo, KEY_VERTICAL_UNIT, 0), unit = unit_of(epsg);

    if (epsg == 0 || epsg == USER_DEFINED || options->is_scaled)
        return ERR_OK;
    if (!(unit > 0) || epsg > 9100)
        return unit_unknown("vertical", epsg, "height_scale", err);
    head->import.vertical_unit_m = unit;
    return ERR_OK;
}

/* A locale's own frame, as kota writes it: its centre is the manifest's geo. */
static void read_orthographic(const struct geo_keys *geo, struct tiff_head *head)
{
    struct raster_import *import = &head->import;

    if (value_of(geo, KEY_TRANSFORMATION, 0) != CT_ORTHOGRAPHIC ||
        value_of(geo, KEY_GEOGRAPHIC, WGS84) != WGS84)
        return;
    import->lat_deg = value_of(geo, KEY_CENTRE_LAT, INFINITY);
    import->lng_deg = value_of(geo, KEY_CENTRE_LNG, INFINITY);
    import->has_geo = fabs(import->lat_deg) <= 90 && fabs(import->lng_deg) <= 180;
    head->where.transform[0] -= value_of(geo, KEY_FALSE_EASTING, 0);
    head->where.transform[3] -= value_of(geo, KEY_FALSE_NORTHING, 0);
}

enum err_code tiff_geo_keys(const uint16_t *keys, size_t key_count, const double *numbers,
                            size_t number_count, const struct raster_options *options,
                            struct tiff_head *head, struct err *err)
{
    struct geo_keys geo = {keys, key_count, numbers, number_count};
    struct georef_source *where = &head->where;
    double model, code, epsg_unit;

    if (key_count < KEY_WORDS)
        return ERR_OK;
    where->is_point = value_of(&geo, KEY_RASTER, 1) == RASTER_POINT;
    if (options->is_placed)
        return vertical_unit(&geo, options, head, err);
    model = value_of(&geo, KEY_MODEL, 0);
    where->is_geographic = model == MODEL_GEOGRAPHIC;
    where->is_projected = model == MODEL_PROJECTED;
    head->is_local = model == USER_DEFINED;
    epsg_unit = where->is_geographic ? value_of(&geo, KEY_ANGULAR_UNIT, 9102)
                                     : value_of(&geo, KEY_LINEAR_UNIT, 9001);
    where->unit = unit_of(epsg_unit);
    if (!(where->unit > 0) || where->is_geographic != (epsg_unit > 9100))
        return unit_unknown(where->is_geographic ? "angular" : "linear", epsg_unit, "spacing", err);
    where->semi_major_m = fmax(0, value_of(&geo, KEY_SEMI_MAJOR, 0));
    where->inverse_flattening = fmax(0, value_of(&geo, KEY_INVERSE_FLATTENING, 0));
    code = value_of(&geo, KEY_PROJECTED, 0);
    if (where->is_projected && where->unit == 1 && code >= EPSG_FIRST && code <= EPSG_LAST)
        head->import.crs = (uint32_t)code;
    else if (where->is_projected && where->unit == 1)
        read_orthographic(&geo, head);
    return vertical_unit(&geo, options, head, err);
}
