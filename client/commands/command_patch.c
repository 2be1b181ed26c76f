/*
 * kota patch: squares of granular ground, and the bodies that fall on them.
 *
 * One word after the command names the action; each action is a row of the table below, with its
 * words and options. An option of another action is refused, not passed over. Only the form of the
 * options is checked here; the daemon checks the patch.
 */
#include "client/batch.h"
#include "client/number.h"
#include "client/print.h"
#include "client/progress.h"
#include "client/target.h"
#include "client/lib/kota.h"
#include "client/watch.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct patch_options {
    const char *center, *size, *scale, *depth, *seed, *observer, *fill, *mode, *layer, *deadline;
    const char *material, *leave;
    struct args_list bodies;
    const char *velocity, *angular_velocity, *impulse;
    const char *width, *height;
    bool is_discarded, overflows;
};

/* What an action's options are, as bits. */
enum { FOR_CREATE = 1, FOR_BODY = 2, FOR_PUSH = 4, FOR_DELETE = 8, FOR_VIEW = 16 };

struct action {
    const char *name;
    size_t words; /* after it */
    int options;
    enum kota_exit (*run)(struct kota *kota, const struct patch_options *options);
};

/* ---- the request -------------------------------------------------------------------------- */

/* MODEL@X,Y,Z, or a whole body as JSON; NULL with the reason in err. */
static cJSON *read_body(const char *text, struct err *err)
{
    const char *at = strchr(text, '@');
    char model[80];
    double position[3];
    struct err cause;
    cJSON *body = NULL;

    if (*text == '{') {
        body = cJSON_ParseWithOpts(text, NULL, 1);
        if (!body)
            err_set(err, ERR_BAD_INPUT, "the body '%.80s' is no JSON", text);
        return body;
    }
    if (!at || (size_t)(at - text) >= sizeof(model)) {
        err_set(err, ERR_BAD_INPUT, "the body '%.80s' is neither MODEL@X,Y,Z nor JSON", text);
        return NULL;
    }
    snprintf(model, sizeof(model), "%.*s", (int)(at - text), text);
    if (kota_check_id(model, err))
        return NULL;
    if (number_exact_list(at + 1, position, 3, &cause)) {
        err_set(err, ERR_BAD_INPUT, "the body of %s: %s", model, cause.msg);
        return NULL;
    }
    body = cJSON_CreateObject();
    if (batch_add_text(body, "model", model) &&
        batch_add(body, "position", batch_numbers(position, 3)))
        return body;
    cJSON_Delete(body);
    err_set(err, ERR_NO_MEMORY, "out of memory");
    return NULL;
}

static enum err_code create_body(const struct patch_options *o, cJSON *body, struct err *err)
{
    cJSON *bodies;

    if (!o->center || !o->size)
        return err_set(err, ERR_BAD_INPUT, "a patch needs --center X,Y and --size W,H");
    if (batch_add_option(body, "center", "center", o->center, 2, err) ||
        batch_add_option(body, "size", "size", o->size, 2, err) ||
        batch_add_option(body, "depth", "depth", o->depth, 1, err) ||
        batch_add_option(body, "seed", "seed", o->seed, 1, err) ||
        batch_add_option(body, "observer", "observer", o->observer, 3, err) ||
        batch_add_option(body, "deadline_ms", "deadline-ms", o->deadline, 1, err))
        return err->code;
    bodies = cJSON_AddArrayToObject(body, "bodies");
    for (size_t i = 0; i < o->bodies.count; i++) {
        cJSON *one = read_body(o->bodies.at[i], err);

        if (!one || !cJSON_AddItemToArray(bodies, one)) {
            cJSON_Delete(one);
            return err->code ? err->code : err_set(err, ERR_NO_MEMORY, "out of memory");
        }
    }
    if (o->overflows && !cJSON_AddTrueToObject(body, "overflow"))
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    if (o->material && *o->material == '{') {
        cJSON *numbers = cJSON_ParseWithOpts(o->material, NULL, 1);

        if (!numbers)
            return err_set(err, ERR_BAD_INPUT, "--material '%.80s' is no JSON", o->material);
        cJSON_AddItemToObject(body, "material", numbers);
    } else if (!batch_add_text(body, "material", o->material)) {
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    }
    if (!batch_add_text(body, "scale", o->scale) || !batch_add_text(body, "fill", o->fill) ||
        !batch_add_text(body, "mode", o->mode) || !batch_add_text(body, "layer", o->layer) ||
        !batch_add_text(body, "leave", o->leave))
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    return ERR_OK;
}

/* The number of a patch or body among the words. */
static enum err_code read_number(struct kota *kota, size_t word, const char *what, double least,
                                 double *out)
{
    struct err cause;

    if (number_count(kota->words[word], least, 9e15, out, &cause))
        return err_set(&kota->err, ERR_BAD_INPUT, "the %s '%.40s' is no number from %.0f", what,
                       kota->words[word], least);
    return ERR_OK;
}

/* "/v1/locales/ID/patches/N" + rest */
static enum err_code patch_path(struct kota *kota, const char *rest, char path[KOTA_PATH_MAX])
{
    char tail[256];
    double number;

    if (read_number(kota, 1, "patch", 1, &number))
        return kota->err.code;
    snprintf(tail, sizeof(tail), "/patches/%.0f%s", number, rest);
    return kota_locale_path(kota, tail, path);
}

/* ---- the answer --------------------------------------------------------------------------- */

static enum err_code show_list(struct kota *kota, const cJSON *patches)
{
    static const char *const headings[] = {"PATCH", "STATE",  "SCALE", "CENTER",
                                           "SIZE",  "BODIES", "TIME",  "REVISION"};
    static const char *const names[] = {"id",   "state",  "scale",  "center",
                                        "size", "bodies", "time_s", "revision"};
    struct table *table;
    cJSON *patch;

    if (!cJSON_IsArray(patches))
        return err_set(&kota->err, ERR_INTERNAL, "the answer has no array \"patches\"");
    if (kota->is_json) {
        cJSON_ArrayForEach(patch, patches) if (print_json_line(stdout, patch, &kota->err)) break;
        return kota->err.code;
    }
    table = table_open(headings, 8);
    if (!table)
        return err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
    cJSON_ArrayForEach(patch, patches) for (size_t i = 0; i < 8; i++)
    {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(patch, names[i]);

        if (cJSON_IsArray(value) && i == 5)
            table_number(table, cJSON_GetArraySize(value));
        else
            table_value(table, value);
    }
    table_print(table, stdout, &kota->err);
    table_close(table);
    return kota->err.code;
}

/* The patch, and on a terminal its bodies below it. */
static enum kota_exit show_patch(struct kota *kota, cJSON *patch)
{
    static const char *const headings[] = {"BODY", "MODEL", "POSITION", "VELOCITY"};
    cJSON *bodies = NULL, *body;
    struct table *table;
    int i = 0;

    if (!kota->err.code && !kota->is_json)
        bodies = cJSON_DetachItemFromObjectCaseSensitive(patch, "bodies");
    if (!kota->err.code && !kota_print(kota, patch) && cJSON_GetArraySize(bodies) > 0) {
        table = table_open(headings, 4);
        cJSON_ArrayForEach(body, bodies)
        {
            table_number(table, i++);
            table_value(table, cJSON_GetObjectItemCaseSensitive(body, "model"));
            table_value(table, cJSON_GetObjectItemCaseSensitive(body, "position"));
            table_value(table, cJSON_GetObjectItemCaseSensitive(body, "velocity"));
        }
        table_print(table, stdout, &kota->err);
        table_close(table);
    }
    cJSON_Delete(bodies);
    cJSON_Delete(patch);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

/* ---- the actions -------------------------------------------------------------------------- */

/* POST, done once however often it is sent. Takes body. */
static enum kota_exit post_patch(struct kota *kota, const char *path, cJSON *body)
{
    char *text = cJSON_PrintUnformatted(body);
    cJSON *answer = NULL;
    enum kota_exit done;

    cJSON_Delete(body);
    if (!text)
        err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
    else
        call_write(kota->call, "POST", path, "application/json", text, strlen(text), &answer,
                   &kota->err);
    done = show_patch(kota, answer);
    cJSON_free(text);
    return done;
}

static enum kota_exit create_run(struct kota *kota, const struct patch_options *options)
{
    char path[KOTA_PATH_MAX];
    cJSON *body = cJSON_CreateObject();

    if (!create_body(options, body, &kota->err) && !kota_locale_path(kota, "/patches", path))
        return post_patch(kota, path, body);
    cJSON_Delete(body);
    return kota_misused(kota);
}

static enum kota_exit list_run(struct kota *kota, const struct patch_options *options)
{
    char path[KOTA_PATH_MAX];
    cJSON *answer = NULL;

    (void)options;
    if (kota_locale_path(kota, "/patches", path))
        return kota_misused(kota);
    if (!call_get(kota->call, path, &answer, &kota->err))
        show_list(kota, cJSON_GetObjectItemCaseSensitive(answer, "patches"));
    cJSON_Delete(answer);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

static enum kota_exit show_run(struct kota *kota, const struct patch_options *options)
{
    char path[KOTA_PATH_MAX];
    cJSON *answer = NULL;

    (void)options;
    if (patch_path(kota, "", path))
        return kota_misused(kota);
    call_get(kota->call, path, &answer, &kota->err);
    return show_patch(kota, answer);
}

static enum kota_exit watch_run(struct kota *kota, const struct patch_options *options)
{
    char path[KOTA_PATH_MAX];

    (void)options;
    if (patch_path(kota, "/events", path))
        return kota_misused(kota);
    return watch_feed(kota, kota_request_new("GET", path));
}

static enum kota_exit body_run(struct kota *kota, const struct patch_options *options)
{
    char path[KOTA_PATH_MAX];
    cJSON *body;

    (void)options;
    if (patch_path(kota, "/bodies", path) || !(body = read_body(kota->words[2], &kota->err)))
        return kota_misused(kota);
    return post_patch(kota, path, body);
}

static enum kota_exit push_run(struct kota *kota, const struct patch_options *o)
{
    char path[KOTA_PATH_MAX], rest[64];
    cJSON *body = cJSON_CreateObject(), *answer = NULL;
    char *text = NULL;
    double number = 0;

    if (!o->velocity && !o->angular_velocity && !o->impulse)
        err_set(&kota->err, ERR_BAD_INPUT,
                "--velocity, --angular-velocity or --impulse says how to push");
    else if (!batch_add_option(body, "velocity", "velocity", o->velocity, 3, &kota->err) &&
             !batch_add_option(body, "angular_velocity", "angular-velocity", o->angular_velocity, 3,
                               &kota->err) &&
             !batch_add_option(body, "impulse", "impulse", o->impulse, 3, &kota->err) &&
             !read_number(kota, 2, "body", 0, &number)) {
        snprintf(rest, sizeof(rest), "/bodies/%.0f", number);
        patch_path(kota, rest, path);
        text = cJSON_PrintUnformatted(body);
    }
    cJSON_Delete(body);
    if (kota->err.code)
        return kota_misused(kota);
    if (!text)
        err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
    else
        call_write(kota->call, "PATCH", path, "application/json", text, strlen(text), &answer,
                   &kota->err);
    cJSON_free(text);
    return show_patch(kota, answer);
}

static enum kota_exit remove_run(struct kota *kota, const struct patch_options *options)
{
    char path[KOTA_PATH_MAX], rest[64];
    cJSON *answer = NULL;
    double number;

    (void)options;
    if (read_number(kota, 2, "body", 0, &number))
        return kota_misused(kota);
    snprintf(rest, sizeof(rest), "/bodies/%.0f", number);
    if (patch_path(kota, rest, path))
        return kota_misused(kota);
    call_write(kota->call, "DELETE", path, NULL, NULL, 0, &answer, &kota->err);
    return show_patch(kota, answer);
}

static enum kota_exit delete_run(struct kota *kota, const struct patch_options *options)
{
    char path[KOTA_PATH_MAX];
    cJSON *answer = NULL;

    if (patch_path(kota, options->is_discarded ? "?discard=true" : "", path))
        return kota_misused(kota);
    call_write(kota->call, "DELETE", path, NULL, NULL, 0, &answer, &kota->err);
    return show_patch(kota, answer);
}

static enum kota_exit view_run(struct kota *kota, const struct patch_options *o)
{
    char path[KOTA_PATH_MAX], rest[128];
    double width = 640, height = 480;
    struct target target;
    struct call_stream stream = {
        .silence_s = kota->timeout_s, .take = target_take, .context = &target};

    if ((o->width && number_count(o->width, 16, 1920, &width, &kota->err)) ||
        (o->height && number_count(o->height, 16, 1080, &height, &kota->err)))
        return kota_misused(kota);
    snprintf(rest, sizeof(rest), "/view.png?width=%.0f&height=%.0f", width, height);
    if (patch_path(kota, rest, path))
        return kota_misused(kota);
    if (target_open(&target, kota->words[2], &kota->err))
        return kota_failed(kota);
    if (!call_get_stream(kota->call, path, "image/png", &stream, &kota->err))
        target_keep(&target, &kota->err);
    target_drop(&target);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

/* ---- the command -------------------------------------------------------------------------- */

static const struct action actions[] = {
    {"create", 1, FOR_CREATE, create_run},
    {"ls", 1, 0, list_run},
    {"show", 2, 0, show_run},
    {"watch", 2, 0, watch_run},
    {"body", 3, 0, body_run},
    {"push", 3, FOR_PUSH, push_run},
    {"remove", 3, 0, remove_run},
    {"delete", 2, FOR_DELETE, delete_run},
    {"view", 3, FOR_VIEW, view_run},
};
enum { ACTION_COUNT = sizeof(actions) / sizeof(actions[0]) };

/* An option that is given and belongs to none of those actions; NULL when all is well. */
static const char *foreign_option(const struct patch_options *o, int allowed)
{
    const struct {
        bool is_given;
        int belongs;
        const char *name;
    } given[] = {
        {o->center, FOR_CREATE, "center"},
        {o->size, FOR_CREATE, "size"},
        {o->scale, FOR_CREATE, "scale"},
        {o->depth, FOR_CREATE, "depth"},
        {o->seed, FOR_CREATE, "seed"},
        {o->observer, FOR_CREATE, "observer"},
        {o->deadline, FOR_CREATE, "deadline-ms"},
        {o->fill, FOR_CREATE, "fill"},
        {o->mode, FOR_CREATE, "mode"},
        {o->material, FOR_CREATE, "material"},
        {o->overflows, FOR_CREATE, "overflow"},
        {o->leave, FOR_CREATE, "leave"},
        {o->layer, FOR_CREATE, "layer"},
        {o->bodies.count, FOR_CREATE, "body"},
        {o->velocity, FOR_PUSH, "velocity"},
        {o->angular_velocity, FOR_PUSH, "angular-velocity"},
        {o->impulse, FOR_PUSH, "impulse"},
        {o->is_discarded, FOR_DELETE, "discard"},
        {o->width, FOR_VIEW, "width"},
        {o->height, FOR_VIEW, "height"},
    };

    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
        if (given[i].is_given && !(given[i].belongs & allowed))
            return given[i].name;
    return NULL;
}

static enum kota_exit patch_run(struct kota *kota)
{
    struct patch_options options = {0};
    const struct action *action = actions;
    const char *name, *foreign;
    enum kota_exit done;

    if (!kota_begin(kota, &options, 0, 4, &done))
        return done;
    name = kota_shift_word(kota);
    while (name && action < actions + ACTION_COUNT && strcmp(action->name, name) != 0)
        action++;
    if (!name || action == actions + ACTION_COUNT)
        err_set(&kota->err, ERR_BAD_INPUT,
                "create, ls, show, watch, body, push, remove, delete or view is "
                "wanted%s%.40s%s",
                name ? ", not '" : "", name ? name : "", name ? "'" : "");
    else if (kota->word_count != action->words)
        err_set(&kota->err, ERR_BAD_INPUT, "kota patch %s takes %zu arguments, not %zu", name,
                action->words, kota->word_count);
    else if ((foreign = foreign_option(&options, action->options)))
        err_set(&kota->err, ERR_BAD_INPUT, "--%s is no option of kota patch %s", foreign, name);
    else
        kota_check_id(kota->words[0], &kota->err);
    return kota->err.code ? kota_misused(kota) : action->run(kota, &options);
}

#define OPTION(...) COMMAND_OPTION(struct patch_options, __VA_ARGS__)

static const struct kota_option patch_table[] = {
    {.help = "create:"},
    OPTION(center, "center", "X,Y", "the middle of the square, in metres"),
    OPTION(size, "size", "W,H", "its sides in metres"),
    OPTION(scale, "scale", "S", "granules: fine, medium, coarse or auto (default)",
           .words = "fine medium coarse auto"),
    OPTION(depth, "depth", "M", "so deep is the loose ground (2)"),
    OPTION(seed, "seed", "N", "of the packing (0)"),
    OPTION(observer, "observer", "X,Y,Z", "auto: who looks, from near by or from afar"),
    OPTION(deadline, "deadline-ms", "MS", "refuse what would not be at rest by then"),
    OPTION(fill, "fill", "F", "packed (default) or stacked", .words = "packed stacked"),
    OPTION(mode, "mode", "M", "what is written back: difference (default) or overwrite",
           .words = "difference overwrite"),
    OPTION(material, "material", "M",
           "sand, pebbles, rubble, snow, or an object of numbers as JSON",
           .words = "sand pebbles rubble snow"),
    OPTION(leave, "leave", "WORD", "layer: at its first rest bodies become mesh layers",
           .words = "layer"),
    OPTION(overflows, "overflow", NULL, "where its pool is full, coarser granules will do"),
    OPTION(layer, "layer", "LAYER", "where the locale has several heightfields", .words = ":layer"),
    OPTION(bodies, "body", "BODY",
           "falls on it: MODEL@X,Y,Z, or a whole body as JSON; any number of times",
           .repeats = true),
    {.help = "push:"},
    OPTION(velocity, "velocity", "X,Y,Z", "its velocity becomes this, m/s"),
    OPTION(angular_velocity, "angular-velocity", "X,Y,Z", "and this, rad/s"),
    OPTION(impulse, "impulse", "X,Y,Z", "a push at its centre, N s"),
    {.help = "delete:"},
    OPTION(is_discarded, "discard", NULL,
           "throw it away; else it is simulated to rest and written back,\n"
           "which may take longer than --timeout"),
    {.help = "view:"},
    OPTION(width, "width", "PX", "of the picture (640)"),
    OPTION(height, "height", "PX", "(480)"),
    {0},
};

const struct kota_command command_patch = {
    .name = "patch",
    .synopsis = "ACTION ID [N …] [OPTION…]",
    .summary = "granular ground, and bodies that fall on it",
    .help = "kota patch create ID      makes a patch, with bodies\n"
            "kota patch ls ID          lists the patches of a locale\n"
            "kota patch show ID N      prints patch N and its bodies\n"
            "kota patch watch ID N     prints its states and poses until it ends\n"
            "kota patch body ID N BODY lets one more body fall\n"
            "kota patch push ID N B    pushes body B\n"
            "kota patch remove ID N B  removes body B\n"
            "kota patch delete ID N    ends it: written back, or thrown away\n"
            "kota patch view ID N FILE writes how it looks now, a PNG\n"
            "\n"
            "Models are put by kota model.\n",
    .options = patch_table,
    .words = {"create ls show watch body push remove delete view", ":locale", NULL},
    .examples = (const char *const[]){"kota patch ls highlands", NULL},
    .run = patch_run,
};
