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

static cJSON *pair_encode(const char *second, const struct input_row *row)
{
    cJSON *item = cJSON_CreateObject();

    if (batch_add(item, "from", batch_numbers(row->values, 3)) &&
        batch_add(item, second, batch_numbers(row->values + 3, 3)))
        return item;
    cJSON_Delete(item);
    return NULL;
}

static cJSON *sweep_encode(const void *context, const struct input_row *row)
{
    (void)context;
    return pair_encode("to", row);
}

static cJSON *move_encode(const void *context, const struct input_row *row)
{
    (void)context;
    return pair_encode("velocity", row);
}

static const char *const sweep_headings[] = {"FRACTION", "POINT", "NORMAL", "LAYER", "INSIDE"};

static void sweep_show(const void *context, struct table *table, const struct input_row *row,
                       const cJSON *result)
{
    static const char *const names[] = {"fraction", "point", "normal", "layer", "starts_inside"};

    (void)context;
    (void)row;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        table_value(table, cJSON_GetObjectItemCaseSensitive(result, names[i]));
}

static const char *const move_headings[] = {"TO", "GROUNDED", "FLOOR", "SLOPE_DEG", "LAYER"};

static void move_show(const void *context, struct table *table, const struct input_row *row,
                      const cJSON *result)
{
    static const char *const names[] = {"point", "slope_deg", "layer"};
    const cJSON *floor = cJSON_GetObjectItemCaseSensitive(result, "floor");

    (void)context;
    (void)row;
    table_value(table, cJSON_GetObjectItemCaseSensitive(result, "to"));
    table_value(table, cJSON_GetObjectItemCaseSensitive(result, "grounded"));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        table_value(table, cJSON_GetObjectItemCaseSensitive(floor, names[i]));
}

/* An option of `count` numbers as a member of the body; one that is absent is none. */
static bool add_numbers(cJSON *body, const char *option, const char *name, const char *text,
                        size_t count, struct err *err)
{
    struct err cause;
    double numbers[4];

    if (!text)
        return true;
    if (number_exact_list(text, numbers, count, &cause)) {
        err_set(err, ERR_BAD_INPUT, "--%s %s", option, cause.msg);
        return false;
    }
    if (batch_add(body, name,
                  count == 1 ? batch_number(numbers[0]) : batch_numbers(numbers, count)))
        return true;
    err_set(err, ERR_NO_MEMORY, "out of memory");
    return false;
}

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
    else if (add_numbers(body, "sphere", "sphere", s->sphere, 1, err) &&
             add_numbers(body, "capsule", "capsule", s->capsule, 2, err) &&
             add_numbers(body, "box", "box", s->box, 4, err) &&
             add_numbers(body, "dt", "dt", o->dt, 1, err) &&
             add_numbers(body, "slope-max", "slope_max_deg", o->slope_max, 1, err) &&
             add_numbers(body, "step-up", "step_up", o->step_up, 1, err) &&
             add_numbers(body, "snap-down", "snap_down", o->snap_down, 1, err))
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
                                .encode = sweep_encode,
                                .headings = sweep_headings,
                                .columns = sizeof(sweep_headings) / sizeof(sweep_headings[0]),
                                .show = sweep_show};

    return ask(kota, &batch, false);
}

static enum kota_exit move_run(struct kota *kota)
{
    const struct batch batch = {.call = "/move",
                                .member = "items",
                                .shape = &input_moves,
                                .words_per_row = 2,
                                .encode = move_encode,
                                .headings = move_headings,
                                .columns = sizeof(move_headings) / sizeof(move_headings[0]),
                                .show = move_show};

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
