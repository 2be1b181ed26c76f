/*
 * kota sweep, kota move: what a moved shape touches first, and where one that walks comes to.
 *
 * The shape is one for all rows, and goes beside the items.
 */
#include "client/batch.h"
#include "client/number.h"

#include <stdint.h>

struct shape_options {
    const char *sphere, *capsule, *box;
};

struct sweep_options {
    struct shape_options shape;
    const char *layer;
    const char *dt, *slope_max, *step_up, *snap_down; /* of a move */
};

static const struct batch_column sweep_columns[] = {{"FRACTION", "fraction"},    {"POINT", "point"},
                                                    {"NORMAL", "normal"},        {"LAYER", "layer"},
                                                    {"INSIDE", "starts_inside"}, {NULL, NULL}};

static const struct batch_column move_columns[] = {{"TO", "to"},
                                                   {"GROUNDED", "grounded"},
                                                   {"FLOOR", "floor.point"},
                                                   {"SLOPE_DEG", "floor.slope_deg"},
                                                   {"LAYER", "floor.layer"},
                                                   {NULL, NULL}};

/* The request without its items; NULL (and err) when an option is wrong. */
static cJSON *sweep_body(const struct sweep_options *o, bool is_move, struct err *err)
{
    const struct shape_options *s = &o->shape;
    cJSON *body = batch_body(o->layer);

    if (!!s->sphere + !!s->capsule + !!s->box != 1)
        err_set(err, ERR_BAD_INPUT, "exactly one of --sphere, --capsule and --box is needed");
    else if (is_move && !o->dt)
        err_set(err, ERR_BAD_INPUT, "--dt is needed: the seconds of a move");
    else if (!body)
        err_set(err, ERR_NO_MEMORY, "out of memory");
    else if (!batch_add_option(body, "sphere", "sphere", s->sphere, 1, err) &&
             !batch_add_option(body, "capsule", "capsule", s->capsule, 2, err) &&
             !batch_add_option(body, "box", "box", s->box, 4, err) &&
             !batch_add_option(body, "dt", "dt", o->dt, 1, err) &&
             !batch_add_option(body, "slope_max_deg", "slope-max", o->slope_max, 1, err) &&
             !batch_add_option(body, "step_up", "step-up", o->step_up, 1, err) &&
             !batch_add_option(body, "snap_down", "snap-down", o->snap_down, 1, err))
        return body;
    cJSON_Delete(body);
    return NULL;
}

#define OPTION(...) COMMAND_OPTION(struct sweep_options, __VA_ARGS__)
#define SHAPE_TABLE                                                                                \
    OPTION(shape.sphere, "sphere", "R", "the shape is a sphere of this radius"),                   \
        OPTION(shape.capsule, "capsule", "R,H", "an upright capsule: radius, and whole height"),   \
        OPTION(shape.box, "box", "HX,HY,HZ,YAW", "a box: half extents, and degrees about up"),     \
        OPTION(layer, "layer", "LAYER", "only this layer, not all of them", .words = ":layer")

static const struct kota_option sweep_table[] = {SHAPE_TABLE, {0}};

static const struct kota_option move_table[] = {
    SHAPE_TABLE,
    OPTION(dt, "dt", "S", "how long it moves, in seconds"),
    OPTION(slope_max, "slope-max", "DEG", "it stands on nothing steeper (default 50)"),
    OPTION(step_up, "step-up", "M", "it steps up by no more (default 0.5)"),
    OPTION(snap_down, "snap-down", "M", "it keeps to a floor no farther below (default 0.5)"),
    {0},
};

static enum kota_exit ask(struct kota *kota, const struct batch *batch, bool is_move)
{
    struct sweep_options options = {{NULL, NULL, NULL}, NULL, NULL, NULL, NULL, NULL};
    enum kota_exit done;
    cJSON *body;

    if (!kota_begin(kota, &options, 1, SIZE_MAX, &done))
        return done;
    body = sweep_body(&options, is_move, &kota->err);
    return body ? batch_run(kota, batch, body) : kota_misused(kota);
}

static enum kota_exit sweep_run(struct kota *kota)
{
    const struct batch batch = {.call = "/sweep",
                                .member = "items",
                                .shape = &input_segments,
                                .words_per_row = 2,
                                .pair = {"from", "to"},
                                .columns = sweep_columns};

    return ask(kota, &batch, false);
}

static enum kota_exit move_run(struct kota *kota)
{
    const struct batch batch = {.call = "/move",
                                .member = "items",
                                .shape = &input_moves,
                                .words_per_row = 2,
                                .pair = {"from", "velocity"},
                                .columns = move_columns};

    return ask(kota, &batch, true);
}

const struct kota_command command_sweep = {
    .name = "sweep",
    .synopsis = "ID [X,Y,Z X,Y,Z]… (--sphere R | --capsule R,H | --box HX,HY,HZ,YAW)",
    .summary = "what a shape touches first on its way",
    .help =
        "The places are of the shape's middle. Without them they are read from standard input, "
        "one\n"
        "way a line: six numbers; CSV below a header with x1, y1, z1, x2, y2, z2; or JSON objects\n"
        "with from and to. FRACTION is the part of the way to the touch.\n",
    .options = sweep_table,
    .shared = kota_read_options,
    .words = {":locale", NULL},
    .examples =
        (const char *const[]){"kota sweep village 100,80,40 100,80,-40 --capsule 0.4,1.8", NULL},
    .run = sweep_run,
};

const struct kota_command command_move = {
    .name = "move",
    .synopsis = "ID [X,Y,Z VX,VY,VZ]… (--sphere R | --capsule R,H | --box HX,HY,HZ,YAW) --dt S",
    .summary = "where a shape that walks comes to",
    .help =
        "It slides along what it touches, steps up and snaps down. Each row is the place of its\n"
        "middle and its velocity in m/s. Without rows they are read from standard input, one a\n"
        "line: six numbers; CSV below a header with x, y, z, vx, vy, vz; or JSON objects with "
        "from\n"
        "and velocity.\n",
    .options = move_table,
    .shared = kota_read_options,
    .words = {":locale", NULL},
    .examples =
        (const char *const[]){"kota move village 100,80,6 2,0,-9 --capsule 0.4,1.8 --dt 1", NULL},
    .run = move_run,
};
