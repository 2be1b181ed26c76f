/*
 * The head of a cloud-optimised GeoTIFF.
 *
 * One directory a level, the full size first; each is a list of tags in ascending order, and what
 * does not fit into a tag's value follows its directory. The frame is in GeoKeys on the first
 * directory only; readers take that of overviews from it.
 *
 * Sources: TIFF 6.0, 1992; OGC 19-008r4, "GeoTIFF Standard", 2019; the layout is that of
 * "Cloud Optimized GeoTIFF", OGC 21-026, 2023. Key 3075 has 21 for Orthographic; its centre is in
 * keys 3088 and 3089.
 */
#include "formats/raster/geotiff.h"

#include "base/check.h"

#include <string.h>

enum { TYPE_ASCII = 2, TYPE_SHORT = 3, TYPE_LONG = 4, TYPE_DOUBLE = 12, TYPE_LONG8 = 16 };
enum { TAGS_MAX = 18, KEYS_MAX = 12, CLASSIC_TAG_BYTES = 12, BIG_TAG_BYTES = 20 };

/* ---- sizes ----------------------------------------------------------------------------------- */

static uint64_t tiles_of(const struct geotiff_level *level)
{
    return (uint64_t)level->tile_cols * level->tile_rows;
}

/* Room for a level's directory and its values; a little more than they need. */
static uint64_t directory_bytes(const struct geotiff_level *level, bool is_big)
{
    uint64_t values = tiles_of(level) * (is_big ? 12u : 8u);

    return 64 + TAGS_MAX * (is_big ? (uint64_t)BIG_TAG_BYTES : CLASSIC_TAG_BYTES) + values + 256;
}

static uint64_t head_bytes(const struct geotiff *layout)
{
    uint64_t bytes = 16;

    for (uint32_t i = 0; i < layout->level_count; i++)
        bytes += directory_bytes(&layout->levels[i], layout->is_big);
    return (bytes + 15) & ~(uint64_t)15;
}

void geotiff_lay_out(uint32_t cols, uint32_t rows, bool has_overviews, struct geotiff *out)
{
    uint64_t at, tiles = 0;

    *out = (struct geotiff){.level_count = 0};
    for (uint32_t level = 0; level == 0 || has_overviews; level++) {
        struct geotiff_level *to = &out->levels[out->level_count++];

        CHECK(out->level_count <= GEOTIFF_LEVELS_MAX);
        to->cols = ((cols - 1) >> level) + 1;
        to->rows = ((rows - 1) >> level) + 1;
        to->tile_cols = (to->cols + GEOTIFF_TILE_SIDE - 1) / GEOTIFF_TILE_SIDE;
        to->tile_rows = (to->rows + GEOTIFF_TILE_SIDE - 1) / GEOTIFF_TILE_SIDE;
        tiles += tiles_of(to);
        if (tiles_of(to) == 1)
            break;
    }
    out->is_big = tiles * GEOTIFF_TILE_BYTES + head_bytes(out) > UINT32_MAX;
    at = out->head_bytes = head_bytes(out);
    for (uint32_t i = out->level_count; i-- > 0;) {
        out->levels[i].at = at;
        at += tiles_of(&out->levels[i]) * GEOTIFF_TILE_BYTES;
    }
    out->total_bytes = at;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct directory {
    uint8_t *head;
    bool is_big;
    uint8_t *tag;     /* the next one */
    uint8_t *values;  /* where values that are too long go */
    uint16_t written; /* tags */
};

static void put(uint8_t **to, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        *(*to)++ = (uint8_t)(value >> 8 * i);
}

static size_t type_bytes(int type)
{
    return type == TYPE_SHORT ? 2 : type == TYPE_LONG ? 4 : type == TYPE_ASCII ? 1 : 8;
}

/* Begins a tag of so many values and returns their place. */
static uint8_t *tag_open(struct directory *d, unsigned tag, int type, uint64_t count)
{
    size_t bytes = count * type_bytes(type), room = d->is_big ? 8 : 4;
    uint8_t *place;

    put(&d->tag, tag, 2);
    put(&d->tag, (unsigned)type, 2);
    put(&d->tag, count, room);
    d->written++;
    if (bytes <= room) {
        place = d->tag;
        memset(place, 0, room);
        d->tag += room;
        return place;
    }
    place = d->values;
    put(&d->tag, (uint64_t)(place - d->head), room);
    d->values += (bytes + 7) & ~(size_t)7;
    return place;
}

static void tag_number(struct directory *d, unsigned tag, int type, uint64_t value)
{
    uint8_t *to = tag_open(d, tag, type, 1);

    put(&to, value, type_bytes(type));
}

static void tag_doubles(struct directory *d, unsigned tag, const double *values, size_t count)
{
    memcpy(tag_open(d, tag, TYPE_DOUBLE, count), values, count * sizeof *values);
}

static void tag_tiles(struct directory *d, const struct geotiff_level *level)
{
    uint64_t count = tiles_of(level);
    int type = d->is_big ? TYPE_LONG8 : TYPE_LONG;
    uint8_t *to = tag_open(d, 324, type, count);

    for (uint64_t i = 0; i < count; i++)
        put(&to, level->at + i * GEOTIFF_TILE_BYTES, type_bytes(type));
    to = tag_open(d, 325, TYPE_LONG, count);
    for (uint64_t i = 0; i < count; i++)
        put(&to, GEOTIFF_TILE_BYTES, 4);
}

struct geo_keys {
    uint16_t keys[4 * (KEYS_MAX + 1)];
    size_t key_count;
    double numbers[4];
    size_t number_count;
};

static void key(struct geo_keys *keys, uint16_t name, uint16_t value)
{
    uint16_t *to = keys->keys + 4 * ++keys->key_count;

    CHECK(keys->key_count <= KEYS_MAX);
    to[0] = name;
    to[2] = 1;
    to[3] = value;
}

static void key_number(struct geo_keys *keys, uint16_t name, double value)
{
    key(keys, name, (uint16_t)keys->number_count);
    keys->keys[4 * keys->key_count + 1] = 34736;
    keys->numbers[keys->number_count++] = value;
}

static void tag_frame(struct directory *d, const struct geotiff_place *place)
{
    static const uint16_t models[] = {[GEOTIFF_NO_FRAME] = 32767,
                                      [GEOTIFF_EPSG] = 1,
                                      [GEOTIFF_ORTHOGRAPHIC] = 1,
                                      [GEOTIFF_GEOGRAPHIC] = 2};
    struct geo_keys keys = {.key_count = 0};
    uint8_t *to;

    key(&keys, 1024, models[place->frame]);
    key(&keys, 1025, place->is_point ? 2 : 1);
    if (place->frame == GEOTIFF_EPSG)
        key(&keys, 3072, place->epsg);
    if (place->frame == GEOTIFF_ORTHOGRAPHIC || place->frame == GEOTIFF_GEOGRAPHIC)
        key(&keys, 2048, 4326);
    if (place->frame == GEOTIFF_ORTHOGRAPHIC) {
        key(&keys, 3072, 32767);
        key(&keys, 3074, 32767);
        key(&keys, 3075, 21);
        key(&keys, 3076, 9001);
        key_number(&keys, 3082, 0);
        key_number(&keys, 3083, 0);
        key_number(&keys, 3088, place->lng_deg);
        key_number(&keys, 3089, place->lat_deg);
    }
    keys.keys[0] = keys.keys[1] = 1;
    keys.keys[3] = (uint16_t)keys.key_count;
    to = tag_open(d, 34735, TYPE_SHORT, 4 * (keys.key_count + 1));
    for (size_t i = 0; i < 4 * (keys.key_count + 1); i++)
        put(&to, keys.keys[i], 2);
    if (keys.number_count > 0)
        tag_doubles(d, 34736, keys.numbers, keys.number_count);
}

static void write_level(struct directory *d, const struct geotiff_level *level, bool is_first,
                        const struct geotiff_place *place)
{
    const double scale[3] = {place->spacing_x, place->spacing_y, 0};
    const double tie[6] = {0, 0, 0, place->left, place->top, 0};

    tag_number(d, 254, TYPE_LONG, is_first ? 0 : 1); /* 1: an overview */
    tag_number(d, 256, TYPE_LONG, level->cols);
    tag_number(d, 257, TYPE_LONG, level->rows);
    tag_number(d, 258, TYPE_SHORT, 32);
    tag_number(d, 259, TYPE_SHORT, 1); /* no compression */
    tag_number(d, 262, TYPE_SHORT, 1); /* black is zero */
    tag_number(d, 277, TYPE_SHORT, 1);
    tag_number(d, 284, TYPE_SHORT, 1);
    tag_number(d, 322, TYPE_SHORT, GEOTIFF_TILE_SIDE);
    tag_number(d, 323, TYPE_SHORT, GEOTIFF_TILE_SIDE);
    tag_tiles(d, level);
    tag_number(d, 339, TYPE_SHORT, 3); /* IEEE floating point */
    if (is_first) {
        tag_doubles(d, 33550, scale, 3);
        tag_doubles(d, 33922, tie, 6);
        tag_frame(d, place);
    }
    memcpy(tag_open(d, 42113, TYPE_ASCII, 4), "nan", 4);
}

/* The bytes before a directory's tags: their count, which is known once they are written. */
void geotiff_head(const struct geotiff *layout, const struct geotiff_place *place, uint8_t *out)
{
    uint64_t at = 16;
    uint8_t *to = out;

    memset(out, 0, layout->head_bytes);
    put(&to, 0x4949, 2);
    put(&to, layout->is_big ? 43 : 42, 2);
    if (layout->is_big)
        put(&to, 8, 4); /* bytes of an offset */
    put(&to, at, layout->is_big ? 8 : 4);
    for (uint32_t i = 0; i < layout->level_count; i++) {
        size_t tag_bytes = layout->is_big ? BIG_TAG_BYTES : CLASSIC_TAG_BYTES;
        size_t count_bytes = layout->is_big ? 8 : 2;
        struct directory d = {.head = out, .is_big = layout->is_big};
        uint64_t next = at + directory_bytes(&layout->levels[i], layout->is_big);

        next &= ~(uint64_t)7;
        d.tag = out + at + count_bytes;
        d.values = out + ((at + count_bytes + TAGS_MAX * tag_bytes + 8 + 7) & ~(uint64_t)7);
        write_level(&d, &layout->levels[i], i == 0, place);
        CHECK(d.written <= TAGS_MAX && d.values <= out + next);
        to = out + at;
        put(&to, d.written, count_bytes);
        put(&d.tag, i + 1 < layout->level_count ? next : 0, layout->is_big ? 8 : 4);
        at = next;
    }
}
