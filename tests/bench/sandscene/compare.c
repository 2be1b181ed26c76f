/*
 * What conversions do to the ground, in tables of Markdown, beside what C. Leach 2014 found:
 *
 *   repeat   converts one place again and again, nothing falls; once with our difference and once
 *            as he did it, overwritten and smoothed (his figure 6.15: the ground rises)
 *   impacts  a barrel falls into the same place in each conversion: where the volume goes
 *   scales   one impact at each scale: how far what is written is from the granules' surface
 *            (his figure 6.14: 0.411 m on average at his base scale, linear in it)
 *   fill     ground from the settled packing beside his stacked columns (his 5.3): how long until
 *            it rests, how far it sinks, and what an impact presses together
 *
 * Volume is that of the whole field, so what would leave the patch counts.
 */
#include "bench/sandscene/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/sandscene/engines.h"

static const double BARREL_DENSITY = 1200, BARREL_SPEED = 6; /* kg/m3, m/s */

/* Sizes that were left to us. */
static struct stage_options stage_of(const struct compare_options *options,
                                     enum granular_scale scale)
{
    struct stage_options stage = options->stage;
    struct granular_params params;

    granular_params_make(MATERIAL_SAND, scale_radius_m(scale), &params);
    stage.scale = scale;
    if (stage.size_m == 0)
        stage.size_m = 8 * (double)params.diameter_m;
    if (stage.depth_m == 0)
        stage.depth_m = 3 * (double)params.diameter_m;
    return stage;
}

/* A barrel three radii high, whose radius is a tenth of the patch's side. */
static double barrel_kg(const struct stage *stage)
{
    return BARREL_DENSITY * 3 * M_PI * pow(0.1 * stage->place.size_m[0], 3);
}

/* Of the whole field above 0. */
static double field_volume(const struct heightfield *field)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    double sum = 0;

    for (uint32_t i = 0; i < spec->cols * spec->rows; i++)
        sum += heightfield_sample(field, i % spec->cols, i / spec->cols);
    return sum * spec->spacing_x_m * spec->spacing_y_m;
}

static void head(const struct stage *stage)
{
    printf("%s granules (D %.3f m), %.2f by %.2f m, %.2f m deep, samples %.3f m apart, engine %s\n",
           scale_name(stage->options->scale), (double)stage->params.diameter_m,
           stage->place.size_m[0], stage->place.size_m[1], stage->place.depth_m,
           stage->place.spacing_m[0], stage->engine->calls->name);
    fflush(stdout);
}

/* ---- repeat ---------------------------------------------------------------------------------- */

static enum err_code repeat(const struct compare_options *options, struct err *err)
{
    static const struct {
        enum convert_mode mode;
        const char *name;
    } ways[] = {{CONVERT_DIFFERENCE, "difference"}, {CONVERT_OVERWRITE, "overwrite"}};
    const struct stage_options how = stage_of(options, options->stage.scale);
    const uint32_t count = options->count ? options->count : 15;
    struct stage stage;

    for (int way = 0; way < 2; way++) {
        double first, drift;
        uint32_t changed = 0, outside = 0;

        if (stage_init(&stage, &how, err))
            break;
        if (way == 0) {
            head(&stage);
            printf(
                "\n| way | conversions | samples changed | outside | volume gained %% | mean rise "
                "m |\n|---|---|---|---|---|---|\n");
        }
        first = field_volume(stage.field);
        for (uint32_t i = 1; i <= count && !err->code; i++) {
            const struct cycle_how cycle_how = {.mode = ways[way].mode, .seed = i};
            struct cycle cycle;

            if (cycle_run(&stage, &cycle_how, &cycle, err))
                break;
            changed += cycle.changed;
            outside += cycle.outside;
            drift = field_volume(stage.field) - first;
            if (i == 1 || i == 5 || i == count)
                printf("| %s | %u | %u | %u | %.3f | %.4f |\n", ways[way].name, i, changed, outside,
                       100 * drift / stage.volume_m3,
                       drift / (stage.place.size_m[0] * stage.place.size_m[1]));
            fflush(stdout);
        }
        stage_finish(&stage);
        if (err->code)
            break;
    }
    return err->code;
}

/* ---- impacts --------------------------------------------------------------------------------- */

static enum err_code impacts(const struct compare_options *options, struct err *err)
{
    const struct stage_options how = stage_of(options, options->stage.scale);
    const uint32_t count = options->count ? options->count : 12;
    struct stage stage;
    uint32_t outside = 0, still = 0;
    double first;

    if (stage_init(&stage, &how, err))
        return err->code;
    head(&stage);
    printf("a barrel of %.0f kg at %.0f m/s, each time in the middle\n\n", barrel_kg(&stage),
           BARREL_SPEED);
    printf("| impact | moved m3 | compacted m3 | lost m3 | samples changed | outside | unmoved | "
           "volume drift %% |\n|---|---|---|---|---|---|---|---|\n");
    first = field_volume(stage.field);
    for (uint32_t i = 1; i <= count; i++) {
        const struct cycle_how cycle_how = {
            .seed = i, .drop_kg = barrel_kg(&stage), .speed_m_s = BARREL_SPEED};
        struct cycle cycle;

        if (cycle_run(&stage, &cycle_how, &cycle, err))
            break;
        outside += cycle.outside;
        still += cycle.still;
        printf("| %u | %.3f | %.3f | %.3f | %u | %u | %u | %.3f |\n", i, cycle.ledger.moved_m3,
               cycle.ledger.compacted_m3, cycle.ledger.lost_m3, cycle.changed, outside, still,
               100 * (field_volume(stage.field) - first) / stage.volume_m3);
        fflush(stdout);
    }
    stage_finish(&stage);
    return err->code;
}

/* ---- scales ---------------------------------------------------------------------------------- */

static enum err_code scales(const struct compare_options *options, struct err *err)
{
    const uint32_t count = options->count ? options->count : 3;

    printf("| scale | D m | granules | samples changed | outside | unmoved | mean error m | error "
           "/ D | bias m |\n|---|---|---|---|---|---|---|---|---|\n");
    for (int scale = SCALE_COUNT - 1; scale >= 0 && !err->code; scale--) {
        const struct stage_options how = stage_of(options, (enum granular_scale)scale);
        struct stage stage;
        uint32_t changed = 0, outside = 0, still = 0, granules = 0;
        double error_m = 0, bias_m = 0;

        if (stage_init(&stage, &how, err) == ERR_OK) {
            for (uint32_t i = 1; i <= count; i++) {
                const struct cycle_how cycle_how = {
                    .seed = i, .drop_kg = barrel_kg(&stage), .speed_m_s = BARREL_SPEED};
                struct cycle cycle;

                if (cycle_run(&stage, &cycle_how, &cycle, err))
                    break;
                changed += cycle.changed;
                outside += cycle.outside;
                still += cycle.still;
                error_m += cycle.error_m / count;
                bias_m += cycle.bias_m / count;
                granules = cycle.granules;
            }
        }
        if (!err->code)
            printf("| %s | %.3f | %u | %u | %u | %u | %.4f | %.3f | %.4f |\n",
                   scale_name((enum granular_scale)scale), (double)stage.params.diameter_m,
                   granules, changed, outside, still, error_m,
                   error_m / (double)stage.params.diameter_m, bias_m);
        fflush(stdout);
        stage_finish(&stage);
    }
    printf("\nC. Leach 2014, figure 6.14: 0.411 m at his base scale\n");
    return err->code;
}

/* ---- fill ------------------------------------------------------------------------------------ */

static enum err_code fill(const struct compare_options *options, struct err *err)
{
    static const struct {
        enum convert_fill fill;
        const char *name;
    } ways[] = {{CONVERT_PACKED, "packing"}, {CONVERT_STACKED, "columns"}};
    const struct stage_options how = stage_of(options, options->stage.scale);
    struct stage stage;

    for (int way = 0; way < 2 && !err->code; way++) {
        struct cycle cycle = {.granules = 0};

        if (stage_init(&stage, &how, err) == ERR_OK) {
            const struct cycle_how cycle_how = {.fill = ways[way].fill,
                                                .seed = 1,
                                                .drop_kg = barrel_kg(&stage),
                                                .speed_m_s = BARREL_SPEED};

            if (way == 0) {
                head(&stage);
                printf(
                    "\n| fill | granules | spheres' part of the place | settled after s | sunk m "
                    "| rest after impact s | compacted m3 | %% of the place |\n"
                    "|---|---|---|---|---|---|---|---|\n");
            }
            if (cycle_run(&stage, &cycle_how, &cycle, err) == ERR_OK)
                printf("| %s | %u | %.3f | %.2f | %.3f | %.2f | %.3f | %.2f |\n", ways[way].name,
                       cycle.granules, cycle.fraction, cycle.settle_s, cycle.sunk_m, cycle.rest_s,
                       cycle.ledger.compacted_m3,
                       100 * cycle.ledger.compacted_m3 / stage.volume_m3);
            fflush(stdout);
        }
        stage_finish(&stage);
    }
    return err->code;
}

int compare_run(const struct compare_options *options)
{
    static const struct {
        const char *name;
        enum err_code (*run)(const struct compare_options *options, struct err *err);
    } all[] = {{"repeat", repeat}, {"impacts", impacts}, {"scales", scales}, {"fill", fill}};
    struct err err = {.code = ERR_OK};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i].name, options->what) != 0)
            continue;
        all[i].run(options, &err);
        scene_engines_close();
        if (err.code)
            fprintf(stderr, "kota-sand: %s\n", err.msg);
        return err.code ? 1 : 0;
    }
    return 2;
}
