/*
 * A heightfield: rows × cols float32 samples held as immutable tiles of 256×256 cells, and the
 * min/max pyramid over them (text T, chapter 3; design section 2, "Values").
 *
 * Sample (c, r) is at origin + (c·spacing_x, r·spacing_y); row 0 is at the smallest y. NaN is
 * no-data: a triangle that touches one does not exist. The closed triangles are the surface: a
 * point on a shared edge or vertex belongs to each triangle there.
 *
 * Values are immutable and counted: create gives one reference, heightfield_ref another,
 * heightfield_unref takes one back. All queries are const, allocate nothing and may run on any
 * thread that holds a reference.
 */
#ifndef KOTA_TERRAIN_HEIGHTFIELD_H
#define KOTA_TERRAIN_HEIGHTFIELD_H

#include "base/err.h"
#include "terrain/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a cell is split into two triangles. */
enum triangulation {
    TRIANGULATION_ANTI,       /* hypotenuse from (1,0) to (0,1): text H */
    TRIANGULATION_MAIN,       /* hypotenuse from (0,0) to (1,1) */
    TRIANGULATION_ALTERNATING /* anti where c + r is even, main where it is odd: T, figure 2.1 */
};

enum interpolation { INTERPOLATION_TRIANGLE, INTERPOLATION_BILINEAR, INTERPOLATION_NEAREST };

enum ground_status {
    GROUND_OK,
    GROUND_HOLE,   /* inside the field, but the query touches no-data */
    GROUND_OUTSIDE /* beyond the field's edges; the edges themselves belong to it */
};

enum {
    HEIGHTFIELD_LEAF_CELLS_DEFAULT = 8, /* measured: `make bench`, leaf size table */
    HEIGHTFIELD_SIDE_MAX = 1 << 20      /* samples along one axis; keeps every index in 32 bits */
};

/* Of uploaded fields: between these the slope of any float32 heights has a square. */
#define HEIGHTFIELD_SPACING_MIN_M 1e-30
#define HEIGHTFIELD_SPACING_MAX_M 1e30

struct heightfield_spec {
    uint32_t cols, rows; /* samples, each 2..HEIGHTFIELD_SIDE_MAX */
    double origin_x_m, origin_y_m;
    double spacing_x_m, spacing_y_m; /* > 0, finite */
    enum triangulation triangulation;
    uint32_t leaf_cells; /* side of a pyramid leaf in cells: a power of two, 1..256; 0: default */
};

/* All values of the ground at one point. */
struct ground_point {
    enum ground_status status;
    double height_m;    /* along the frame's Z; NaN unless GROUND_OK */
    struct vec3 normal; /* unit, up, of the triangle there; NaN where there is no triangle */
    uint32_t cell[2];   /* column, row; the upper edges belong to the last cell; 0,0 outside */
    int triangle;       /* 0 or 1, see ray_hit; -1 where there is no triangle */
};

struct heightfield_stats {
    uint64_t tiles, samples, bytes;
    uint32_t levels; /* of the min/max pyramid, the leaves' and the root's included */
};

struct heightfield;

/*
 * Builds a heightfield from heights_m[rows][cols], row 0 at the smallest y; copies them. Infinite
 * heights are refused, NaN is no-data.
 *
 * ERR_BAD_INPUT  a size, spacing, origin or leaf size out of range; an infinite height
 * ERR_NO_MEMORY
 * NULL on error. Cost O(rows·cols). Source: T, section 3.1 (with the leaf's far row and column,
 * which T leaves out).
 */
struct heightfield *heightfield_create(const struct heightfield_spec *spec, const float *heights_m,
                                       struct err *err);

/*
 * A heightfield whose tiles come one by one, for a store. The caller brings the threads: different
 * tiles may be begun, written and sealed on different threads at once, in any order, without a
 * lock; create, finish and free belong to one thread, before and after the others.
 *
 *   builder = heightfield_builder_create(spec, err)
 *   for each tile, anywhere:
 *       samples_m = heightfield_builder_begin(builder, tile_column, tile_row, err)
 *       write the tile's own [rows][cols] of heightfield_tile_size, by heightfield_builder_stride
 *       heightfield_builder_seal(builder, tile_column, tile_row, err)
 *   field = heightfield_builder_finish(builder, err)
 *
 * begin   samples_m[][stride], borrowed until seal: samples beyond the field are NaN already, the
 *         rest is to be written, each tile its own apron. NULL and ERR_NO_MEMORY. Once a tile.
 * put     instead of begin, on one thread: heights_m[count] of one row, from that column on, go to
 *         the tiles that hold them, aprons included. Samples that are never put are no data.
 *         ERR_NO_MEMORY.
 * share   instead of begin and seal: the tile of another field of the same size and leaf size.
 * seal    builds the tile's pyramid, best while its samples are still in the cache. ERR_BAD_INPUT:
 *         an infinite height, named with its place in the field.
 * over    after seal: of a tile like that of another field, which has all that is kept, only what
 *         differs is kept (heightfield_share).
 * rest    after all that will be put: seals the tiles that were begun; all others are one tile
 *         without data, which they share. The errors of seal, and ERR_NO_MEMORY.
 * finish  takes the builder, on an error, too. ERR_BAD_INPUT: a tile that was not sealed, or that
 *         disagrees with a neighbour on their apron (bit for bit), named. O(tiles · 257).
 * free    for a builder that is not to be finished; NULL is fine.
 */
struct heightfield_builder;
struct heightfield_builder *heightfield_builder_create(const struct heightfield_spec *spec,
                                                       struct err *err); /* as heightfield_create */
size_t heightfield_builder_stride(const struct heightfield_builder *builder);
float *heightfield_builder_begin(struct heightfield_builder *builder, uint32_t tile_column,
                                 uint32_t tile_row, struct err *err);
void heightfield_builder_share(struct heightfield_builder *builder, uint32_t tile_column,
                               uint32_t tile_row, const struct heightfield *from);
enum err_code heightfield_builder_put(struct heightfield_builder *builder, uint32_t column,
                                      uint32_t row, const float *heights_m, uint32_t count,
                                      struct err *err);
enum err_code heightfield_builder_seal(struct heightfield_builder *builder, uint32_t tile_column,
                                       uint32_t tile_row, struct err *err);
void heightfield_builder_over(struct heightfield_builder *builder, uint32_t tile_column,
                              uint32_t tile_row, const struct heightfield *other);
enum err_code heightfield_builder_rest(struct heightfield_builder *builder, struct err *err);
struct heightfield *heightfield_builder_finish(struct heightfield_builder *builder,
                                               struct err *err);
void heightfield_builder_free(struct heightfield_builder *builder);

/* Tiles of a field of this size, and how many samples of one lie inside the field (up to 257). */
struct heightfield_tile_layout {
    uint32_t tile_cols, tile_rows;
};
struct heightfield_tile_layout heightfield_tile_layout(const struct heightfield_spec *spec);
void heightfield_tile_size(const struct heightfield_spec *spec, uint32_t tile_column,
                           uint32_t tile_row, uint32_t *cols, uint32_t *rows);

/* A row of the samples of one tile, borrowed from the field. */
const float *heightfield_tile_row(const struct heightfield *field, uint32_t tile_column,
                                  uint32_t tile_row, uint32_t row);

/*
 * A tile's samples inside the field, without a gap: borrowed, or packed into *made, which is the
 * caller's to free. *bytes: their length. NULL without memory.
 */
const float *heightfield_tile_pack(const struct heightfield *field, uint32_t tile_column,
                                   uint32_t tile_row, size_t *bytes, float **made);

/* A number that no other tile of this process has: values made of a tile are cached by it. */
uint64_t heightfield_tile_serial(const struct heightfield *field, uint32_t tile_column,
                                 uint32_t tile_row);

/* The same samples and tiles, split the other way; NULL and ERR_NO_MEMORY when there is none. */
struct heightfield *heightfield_with_triangulation(const struct heightfield *field,
                                                   enum triangulation triangulation,
                                                   struct err *err);

struct heightfield *heightfield_ref(const struct heightfield *field);
void heightfield_unref(struct heightfield *field); /* NULL is fine */

const struct heightfield_spec *heightfield_spec(const struct heightfield *field);
/* Bytes of the tiles of such a field, of a valid spec; the rest is some bytes a tile. O(1).
 */
uint64_t heightfield_tile_bytes(const struct heightfield_spec *spec);

/* Memory of all tiles of the process, each once, however many fields share it. Any thread. */
uint64_t heightfield_all_tiles_bytes(void);
void heightfield_stats(const struct heightfield *field, struct heightfield_stats *out);

/* The box of all samples; false (and a flat box at z 0) when there is no data at all. */
bool heightfield_bounds(const struct heightfield *field, struct box3 *out);

/*
 * The same field as a part of a larger one whose samples are in low_m..high_m: its bounds, and with
 * them the last bits of rays, which begin at the bounds, are those of the whole. low_m > high_m:
 * the whole has no samples. Samples are shared. O(cols · rows / 2^21). NULL and ERR_NO_MEMORY.
 */
struct heightfield *heightfield_widened(const struct heightfield *field, float low_m, float high_m,
                                        struct err *err);

/* One sample; column < cols, row < rows. NaN is no-data. O(1). */
float heightfield_sample(const struct heightfield *field, uint32_t column, uint32_t row);

/*
 * Least and greatest sample of columns column0..column1 × rows row0..row1, both inclusive and cut
 * at the field's edges; column0 and row0 are inside it. False, and both untouched, when all are
 * no-data. By the pyramid: O(samples on the rectangle's rim).
 */
bool heightfield_range(const struct heightfield *field, uint32_t column0, uint32_t row0,
                       uint32_t column1, uint32_t row1, float *min_m, float *max_m);

/*
 * Recomputes every invariant from the samples: aprons agree, each node's bounds are exactly those
 * of its samples. False and a message at the first that does not hold. O(samples).
 */
bool heightfield_validate(const struct heightfield *field, struct err *err);

/* Brings the samples around a point, if any, to the cache, for a question that follows soon. */
void heightfield_prefetch(const struct heightfield *field, struct vec2 at);

/*
 * Height of the ground at one point.
 *
 * nearest: the nearest sample; bilinear: over the cell's four corners (a corner of weight zero may
 * be no-data); triangle: the exact surface, equal to a vertical ray. Cost O(1).
 * Source: text H (its hypotenuse from (1,0) to (0,1) is TRIANGULATION_ANTI).
 */
void heightfield_height(const struct heightfield *field, struct vec2 at, enum interpolation mode,
                        struct ground_point *out);

/* Only the height: height_m and status as in ground_point, bit for bit. */
struct ground_height {
    double height_m; /* NaN unless GROUND_OK */
    enum ground_status status;
};

/* heightfield_height without normal, cell and triangle. O(1), some nanoseconds in the cache. */
struct ground_height heightfield_interpolate(const struct heightfield *field, struct vec2 at,
                                             enum interpolation mode);

/*
 * The same for each of points[count] into out[count], bit for bit. The memory is prefetched for
 * many points at once, so a batch of far points is several times as fast as its points one by one.
 */
void heightfield_heights(const struct heightfield *field, const struct vec2 *points, size_t count,
                         enum interpolation mode, struct ground_height *out);

/* The same without status: heights_m[count], NaN where there is none. */
void heightfield_heights_plain(const struct heightfield *field, const struct vec2 *points,
                               size_t count, enum interpolation mode, double *heights_m);

/*
 * The same for two float32 a point and one a height, at any address and relative to a base: each
 * point is base + (x, y) in float64, each height its height - base[2], rounded once. False when a
 * number is not finite; the contents of `out` are undefined then.
 */
bool heightfield_heights_f32(const struct heightfield *field, const unsigned char *floats,
                             size_t count, enum interpolation mode, const double base[3],
                             unsigned char *out);

#endif
