#include "support/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- folders -------------------------------------------------------------------------------- */

void store_folder_make(char path[256])
{
    const char *top = getenv("TMPDIR");

    if (!top)
        top = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, 256, "%s/kota-store-XXXXXX", top);
    if (!mkdtemp(path))
        fail_msg("no temporary folder below %s", top);
}

static void shell(const char *command)
{
    if (system(command) != 0)
        fail_msg("%s", command);
}

void store_folder_remove(const char *path)
{
    char command[512];

    snprintf(command, sizeof command, "rm -rf '%s'", path);
    shell(command);
}

void store_folder_copy(const char *from, const char *to)
{
    char command[640];

    snprintf(command, sizeof command, "rm -rf '%s' && cp -a '%s' '%s'", to, from, to);
    shell(command);
}

void store_must(enum err_code code, const struct err *err)
{
    if (code != ERR_OK)
        fail_msg("%s: %s", err_title(code), err->msg);
}

struct store *store_must_open(const char *path)
{
    struct store_options options = {.directory = path, .threads = 2};
    struct err err;
    struct store *store = store_open(&options, &err);

    if (!store)
        fail_msg("%s", err.msg);
    return store;
}

/* ---- layers --------------------------------------------------------------------------------- */

static float random_height(struct random *random)
{
    return random_below(random, 40) == 0 ? __builtin_nanf("")
                                         : (float)random_in(random, -100, 1000);
}

struct model_layer *model_layer_make(const char *locale, const char *id, uint32_t cols,
                                     uint32_t rows, struct random *random)
{
    struct model_layer *layer = calloc(1, sizeof *layer);
    size_t samples = (size_t)cols * rows;

    assert_non_null(layer);
    snprintf(layer->locale, sizeof layer->locale, "%s", locale);
    snprintf(layer->id, sizeof layer->id, "%s", id);
    layer->spec = (struct heightfield_spec){cols, rows, -3.5, 7, 0.5, 2, TRIANGULATION_MAIN, 16};
    layer->heights_m = malloc(samples * sizeof(float));
    assert_non_null(layer->heights_m);
    for (size_t i = 0; i < samples; i++)
        layer->heights_m[i] = random_height(random);
    return layer;
}

void model_layer_free(struct model_layer *layer)
{
    free(layer->heights_m);
    free(layer);
}

struct heightfield *model_layer_field(const struct model_layer *layer)
{
    struct err err;
    struct heightfield *field = heightfield_create(&layer->spec, layer->heights_m, &err);

    if (!field)
        fail_msg("%s", err.msg);
    return field;
}

void model_layer_apply(struct model_layer *layer, const struct sample_rect *rect,
                       const float *heights_m)
{
    for (uint32_t row = 0; row < rect->rows; row++)
        memcpy(layer->heights_m + (size_t)(rect->row + row) * layer->spec.cols + rect->column,
               heights_m + (size_t)row * rect->cols, rect->cols * sizeof *heights_m);
}

/* The index of the first sample that differs, or -1. */
static long first_difference(const struct model_layer *layer, const struct heightfield *field)
{
    for (uint32_t row = 0; row < layer->spec.rows; row++)
        for (uint32_t column = 0; column < layer->spec.cols; column++) {
            size_t i = (size_t)row * layer->spec.cols + column;
            float got = heightfield_sample(field, column, row);

            if (memcmp(&got, &layer->heights_m[i], sizeof got) != 0)
                return (long)i;
        }
    return -1;
}

bool model_layer_equals(const struct model_layer *layer, const struct heightfield *field)
{
    const struct heightfield_spec *spec = heightfield_spec(field);

    return spec->cols == layer->spec.cols && spec->rows == layer->spec.rows &&
           first_difference(layer, field) < 0;
}

void model_layer_expect(const struct model_layer *layer, const struct heightfield *field)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    struct err err;
    long at;

    if (memcmp(spec, &layer->spec, sizeof *spec) != 0)
        fail_msg("%s/%s: its sizes are %u×%u", layer->locale, layer->id, spec->cols, spec->rows);
    at = first_difference(layer, field);
    if (at >= 0)
        fail_msg("%s/%s: sample (%ld, %ld) is not %g", layer->locale, layer->id,
                 at % layer->spec.cols, at / layer->spec.cols, (double)layer->heights_m[at]);
    if (!heightfield_validate(field, &err))
        fail_msg("%s/%s: %s", layer->locale, layer->id, err.msg);
}

struct store_edit model_layer_edit(const struct model_layer *layer, uint32_t side_max,
                                   uint64_t revision, uint64_t sequence, struct random *random)
{
    struct store_edit edit = {.revision = revision, .sequence = sequence, .kind = 4};
    uint32_t cols = layer->spec.cols < side_max ? layer->spec.cols : side_max;
    uint32_t rows = layer->spec.rows < side_max ? layer->spec.rows : side_max;
    struct sample_rect *r = &edit.rect;
    float *heights_m;

    memcpy(edit.locale, layer->locale, sizeof edit.locale);
    memcpy(edit.layer, layer->id, sizeof edit.layer);
    snprintf(edit.source, sizeof edit.source, "test");
    r->cols = 1 + random_below(random, cols);
    r->rows = 1 + random_below(random, rows);
    r->column = random_below(random, layer->spec.cols - r->cols + 1);
    r->row = random_below(random, layer->spec.rows - r->rows + 1);
    heights_m = malloc((size_t)r->cols * r->rows * sizeof *heights_m);
    assert_non_null(heights_m);
    for (size_t i = 0; i < (size_t)r->cols * r->rows; i++)
        heights_m[i] = random_height(random);
    edit.has_rect = true;
    edit.heights_m = heights_m;
    edit.has_bounds = true;
    edit.bounds = (struct box3){{-0.0, 1, 2}, {3, 4, (double)sequence}};
    return edit;
}

struct mesh *store_test_mesh(int n, struct polygon_set *polygons)
{
    const struct vec3 vertices[] = {
        {10.0 * n, 0, 0}, {10.0 * n + 4, 0, 1}, {10.0 * n, 4, 0}, {10.0 * n + 4, 4, 2}};
    const uint32_t corners[] = {0, 1, 2, 1, 3, 2}, starts[] = {0, 3, 6};
    struct polygon_soup soup = {vertices, 4, corners, starts, 2};
    struct mesh_options options = {.gravity = {0, 0, -1}};
    struct err err;
    struct mesh *mesh = mesh_create(&soup, &options, NULL, &err);

    if (!mesh || polygon_set_allocate(4, 2, 6, polygons, &err))
        fail_msg("%s", err.msg);
    memcpy(polygons->vertices, vertices, sizeof vertices);
    memcpy(polygons->corners, corners, sizeof corners);
    memcpy(polygons->starts, starts, sizeof starts);
    return mesh;
}

struct store_locale store_test_locale(const char *id, uint64_t revision)
{
    struct store_locale locale = {.revision = revision,
                                  .title = "Hügel",
                                  .gravity = {-0.0, 0, -1},
                                  .translation = {1e9 + 0.25, -2, 3},
                                  .rotation = {0, 0, 0.6, 0.8},
                                  .open_sky = true,
                                  .triangulation = TRIANGULATION_MAIN,
                                  .has_geo = true,
                                  .geo_lat_deg = 48.5,
                                  .geo_lng_deg = -0.0};

    snprintf(locale.id, sizeof locale.id, "%s", id);
    return locale;
}

struct store_layer store_test_layer(const struct model_layer *layer,
                                    const struct heightfield *field)
{
    struct store_layer put = {.kind = STORE_HEIGHTFIELD, .role = 1, .field = field};

    memcpy(put.locale, layer->locale, sizeof put.locale);
    memcpy(put.id, layer->id, sizeof put.id);
    return put;
}

/* ---- loads ---------------------------------------------------------------------------------- */

static bool on_locale(void *context, const struct store_locale *locale, struct err *err)
{
    struct loaded *l = context;

    (void)err;
    assert_true(l->locale_count < 16);
    l->locales[l->locale_count++] = *locale;
    return true;
}

static bool on_layer(void *context, struct store_loaded_layer *layer, struct err *err)
{
    struct loaded *l = context;

    (void)err;
    assert_true(l->layer_count < 32 && l->locale_count > 0);
    assert_string_equal(layer->locale, l->locales[l->locale_count - 1].id);
    if (l->pin_count > 0 && strcmp(l->pins[l->pin_count - 1].locale, layer->locale) == 0)
        l->pin_of[l->layer_count] = l->pin_count;
    l->layers[l->layer_count++] = *layer;
    return true;
}

static bool on_pin(void *context, const char *name, const struct store_locale *value,
                   struct err *err)
{
    struct loaded *l = context;

    (void)err;
    assert_true(l->pin_count < 16);
    memcpy(l->pins[l->pin_count].locale, value->id, sizeof value->id);
    snprintf(l->pins[l->pin_count].name, sizeof l->pins[0].name, "%s", name);
    l->pins[l->pin_count++].revision = value->revision;
    return true;
}

static bool on_edit(void *context, const struct store_edit *edit, struct err *err)
{
    struct loaded *l = context;
    struct store_edit *to;

    (void)err;
    l->edits = realloc(l->edits, (l->edit_count + 1) * sizeof *l->edits);
    assert_non_null(l->edits);
    to = &l->edits[l->edit_count++];
    *to = *edit;
    to->heights_m = NULL;
    if (edit->answer) {
        void *copy = malloc(edit->answer_bytes + 1);

        assert_non_null(copy);
        to->answer = memcpy(copy, edit->answer, edit->answer_bytes);
    }
    return true;
}

static void on_damage(void *context, const char *locale, const char *message)
{
    struct loaded *l = context;

    if (l->damage_count < 16) {
        snprintf(l->damage_locale[l->damage_count], sizeof l->damage_locale[0], "%s", locale);
        snprintf(l->damage[l->damage_count], sizeof l->damage[0], "%s", message);
    }
    l->damage_count++;
}

struct loaded *loaded_make(struct store *store)
{
    struct loaded *loaded = calloc(1, sizeof *loaded);
    struct store_sink sink = {loaded, on_locale, on_layer, on_edit, on_damage, on_pin};

    assert_non_null(loaded);
    loaded->code = store_load(store, &sink, &loaded->err);
    return loaded;
}

void loaded_free(struct loaded *loaded)
{
    for (size_t i = 0; i < loaded->layer_count; i++) {
        heightfield_unref(loaded->layers[i].field);
        if (loaded->layers[i].mesh)
            mesh_unref(loaded->layers[i].mesh);
        polygon_set_free(&loaded->layers[i].polygons);
    }
    for (size_t i = 0; i < loaded->edit_count; i++)
        free((void *)(uintptr_t)loaded->edits[i].answer);
    free(loaded->edits);
    free(loaded);
}

const struct store_loaded_layer *loaded_layer_of(const struct loaded *loaded, size_t pin,
                                                 const char *locale, const char *id)
{
    for (size_t i = 0; i < loaded->layer_count; i++)
        if (loaded->pin_of[i] == pin && strcmp(loaded->layers[i].locale, locale) == 0 &&
            strcmp(loaded->layers[i].id, id) == 0)
            return &loaded->layers[i];
    return NULL;
}

const struct store_loaded_layer *loaded_layer(const struct loaded *loaded, const char *locale,
                                              const char *id)
{
    return loaded_layer_of(loaded, 0, locale, id);
}

const struct store_locale *loaded_locale(const struct loaded *loaded, const char *id)
{
    for (size_t i = 0; i < loaded->locale_count; i++)
        if (strcmp(loaded->locales[i].id, id) == 0)
            return &loaded->locales[i];
    return NULL;
}

void loaded_expect_whole(const struct loaded *loaded)
{
    if (loaded->code != ERR_OK)
        fail_msg("%s", loaded->err.msg);
    if (loaded->damage_count != 0)
        fail_msg("%zu damages, the first: %s", loaded->damage_count, loaded->damage[0]);
}
