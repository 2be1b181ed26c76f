/*
 * Fuzzes the reader of GeoTIFFs as it is in the jail, libtiff included; see fuzz_raster.h for the
 * first byte, of which bit 4 gives a spacing and bit 5 a scale of the request's own.
 */
#include "formats/raster/tiff_read.h"
#include "tests/fuzz/fuzz_raster.h"

struct grid {
    struct tiff_head head;
    struct raster raster;
    uint64_t samples; /* that blocks have brought */
};

static enum err_code head_take(void *context, const struct tiff_head *head, struct err *err)
{
    struct grid *grid = context;

    CHECK(head->block_cols > 0 && head->block_rows > 0);
    grid->head = *head;
    return raster_allocate((uint32_t)head->where.cols, (uint32_t)head->where.rows, &grid->raster,
                           err);
}

static enum err_code block_take(void *context, uint32_t first_col, uint32_t first_row,
                                const float *heights_m, struct err *err)
{
    struct grid *grid = context;
    const struct tiff_head *head = &grid->head;

    (void)err;
    for (uint32_t r = 0; r < head->block_rows && first_row + r < grid->raster.rows; r++)
        for (uint32_t c = 0; c < head->block_cols && first_col + c < grid->raster.cols; c++) {
            grid->raster.heights_m[(size_t)(first_row + r) * grid->raster.cols + first_col + c] =
                heights_m[(size_t)r * head->block_cols + c];
            grid->samples++;
        }
    return ERR_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct raster_options options = {.height_scale = 1};
    struct raster_limits limits = {.samples_max = 1 << 14, .side_max = 1 << 10};
    struct raster_source source = {.options = &options, .limits = &limits};
    struct grid grid = {.samples = 0};
    struct tiff_sink sink = {&grid, head_take, block_take};
    struct err err = {0};
    uint8_t *exact;
    enum err_code code;

    if (size < 1)
        return 0;
    options.flip_y = bytes[0] & 1;
    options.has_nodata = bytes[0] & 2;
    options.height_scale = bytes[0] & 4 ? -1e35 : 1;
    options.is_placed = bytes[0] & 16;
    options.is_scaled = bytes[0] & 32;
    limits.samples_max = bytes[0] & 8 ? 64 : limits.samples_max;
    exact = calloc(1, size);
    memcpy(exact, bytes + 1, size - 1);
    source.bytes = exact;
    source.length = size - 1;
    code = tiff_read(&source, &sink, &err);
    if (code == ERR_OK) {
        CHECK(grid.samples == (uint64_t)grid.raster.cols * grid.raster.rows);
        code = tiff_place(&grid.head, &options, &grid.raster, &err);
    }
    if (code)
        raster_free(&grid.raster);
    fuzz_raster_check(code, &grid.raster, &limits, &err);
    raster_free(&grid.raster);
    free(exact);
    return 0;
}
