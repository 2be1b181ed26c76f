/*
 * Answers of the daemon: the locale's document, samples, images of meshes, differences.
 *
 * What comes is held against what was asked: sizes, tags of images and polygons, the version of an
 * image. An answer that says that a layer is another by now is no error: the document is asked for
 * again.
 */
#include "client/ground/follow.h"

#include "client/ground/document.h"
#include "client/ground/put.h"

#include "base/check.h"
#include "formats/float_layout.h"
#include "terrain/field/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRIP_SAMPLES = 1 << 20, STRIP_ROWS_MAX = 256 };

/* ---- needs ----------------------------------------------------------------------------------- */

/* The tags of a content in all the codings and layouts in which its form may come. */
static void put_tags(const char *content, const char *form, char *out, size_t size)
{
    static const char *const codings[] = {"", "-zstd-delta", "-zstd", "-gzip-delta", "-gzip"};
    size_t at = 0;

    out[0] = '\0';
    for (size_t i = 0; *content && i < sizeof codings / sizeof *codings; i++)
        at += (size_t)snprintf(out + at, size - at, "%s\"%.32s-%s%s\"", i > 0 ? ", " : "", content,
                               form, codings[i]);
}

/* As the daemon names the content of a window. */
static void window_tags(const struct followed_layer *layer, const struct sample_rect *rect,
                        char *out, size_t size)
{
    const struct window window = {*rect, 1};
    uint64_t hash[2];
    char content[33];

    if (!layer || !layer->value || layer->value->kind != LAYER_HEIGHTFIELD)
        return;
    window_hash(layer->value->field, &window, hash);
    snprintf(content, sizeof content, "%016llx%016llx", (unsigned long long)hash[0],
             (unsigned long long)hash[1]);
    put_tags(content, "f32", out, size);
}

static void feed_need(const struct following *f, struct kota_ground_need *out)
{
    const double *b = f->bounds;
    char *path = out->path;
    size_t size = sizeof out->path, at;
    const char *mark = "?";

    out->kind = KOTA_GROUND_NEED_FEED;
    snprintf(out->accept, sizeof out->accept, "application/vnd.kota.feed");
    at = (size_t)snprintf(path, size, "/v1/locales/%s/events", f->held->id);
    if (f->is_loaded || is_waiting(f)) {
        at += (size_t)snprintf(path + at, size - at, "?since=%llu", (unsigned long long)f->taken);
        mark = "&";
    }
    if (f->has_bounds)
        snprintf(path + at, size - at, "%sbounds=%.17g,%.17g,%.17g,%.17g", mark, b[0], b[1], b[2],
                 b[3]);
}

void fetch_need(const struct following *f, const struct fetch *fetch, struct kota_ground_need *out)
{
    const struct sample_rect *r = &fetch->rect;
    const struct followed_layer *layer = followed_layer((struct following *)f, fetch->layer);
    char *path = out->path;
    size_t size = sizeof out->path;

    *out = (struct kota_ground_need){.number = fetch->number};
    snprintf(out->locale, sizeof out->locale, "%s", f->held->id);
    switch (fetch->kind) {
    case FETCH_FEED:
        feed_need(f, out);
        break;
    case FETCH_DOCUMENT:
        snprintf(path, size, "/v1/locales/%s", f->held->id);
        break;
    case FETCH_STRIP:
    case FETCH_WINDOW:
        out->is_samples = true;
        snprintf(path, size, "/v1/locales/%s/layers/%s/samples?rect=%u,%u,%u,%u", f->held->id,
                 fetch->layer, r->column, r->row, r->cols, r->rows);
        if (fetch->is_check)
            window_tags(layer, r, out->if_none_match, sizeof out->if_none_match);
        break;
    case FETCH_IMAGE:
    case FETCH_POLYGONS:
        snprintf(path, size, "/v1/locales/%s/layers/%s?format=%s", f->held->id, fetch->layer,
                 fetch->kind == FETCH_IMAGE ? "qota" : "polygons");
        if (fetch->is_check && layer)
            put_tags(*layer->image_tag ? layer->image_tag + 1 : "", "qota", out->if_none_match,
                     sizeof out->if_none_match);
        break;
    case FETCH_DIFF:
        snprintf(path, size, "/v1/locales/%s/diff?since=%llu&layer=%s", f->held->id,
                 (unsigned long long)f->missed_since, fetch->layer);
        break;
    }
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The samples of an answer: borrowed from it, or *made (malloc). NULL and the error. */
static const float *samples_of(const struct fetch *fetch, const struct kota_ground_answer *answer,
                               float **made, struct err *err)
{
    const char *word = answer->layout ? answer->layout : "";
    size_t cols = fetch->rect.cols, rows = fetch->rect.rows;
    enum float_layout layout = LAYOUT_PLAIN;

    *made = NULL;
    for (int i = LAYOUT_BYTES; i <= LAYOUT_DELTA; i++)
        if (strcmp(word, float_layout_word((enum float_layout)i)) == 0)
            layout = (enum float_layout)i;
    if (answer->length != cols * rows * sizeof(float) || (*word && layout == LAYOUT_PLAIN)) {
        err_set(err, ERR_DAMAGED,
                "%zu bytes in layout \"%.16s\" came for %zu × %zu samples of layer %s",
                answer->length, word, cols, rows, fetch->layer);
        return NULL;
    }
    if (layout == LAYOUT_PLAIN && (uintptr_t)answer->body % _Alignof(float) == 0)
        return answer->body;
    *made = malloc(answer->length);
    if (!*made)
        err_set(err, ERR_NO_MEMORY, "no memory for %zu × %zu samples", cols, rows);
    else if (layout == LAYOUT_PLAIN)
        memcpy(*made, answer->body, answer->length);
    else
        float_layout_read(layout, answer->body, cols, rows, *made);
    return *made;
}

static bool take_window(struct following *f, struct followed_layer *layer,
                        const struct fetch *fetch, const float *samples, struct err *err)
{
    return followed_layer_set(f, layer,
                              layer_after_samples(layer->value, &fetch->rect, samples, err));
}

static bool finish_field(struct following *f, struct followed_layer *layer, struct err *err)
{
    struct heightfield_builder *builder = layer->builder;
    struct heightfield *field;

    if (heightfield_builder_rest(builder, err))
        return false;
    layer->builder = NULL;
    field = heightfield_builder_finish(builder, err);
    return field && followed_layer_set(f, layer, layer_create_heightfield(layer->id, field, err));
}

static bool take_strip(struct following *f, struct followed_layer *layer, const struct fetch *fetch,
                       const float *samples, struct err *err)
{
    const struct sample_rect *r = &fetch->rect;

    for (uint32_t i = 0; i < r->rows; i++)
        if (heightfield_builder_put(layer->builder, r->column, r->row + i,
                                    samples + (size_t)i * r->cols, r->cols, err))
            return false;
    return --layer->strips_left > 0 || finish_field(f, layer, err);
}

static bool take_samples(struct following *f, struct followed_layer *layer,
                         const struct fetch *fetch, const struct kota_ground_answer *answer,
                         struct err *err)
{
    float *made;
    const float *samples = samples_of(fetch, answer, &made, err);
    bool is_taken =
        samples && (fetch->kind == FETCH_STRIP ? take_strip(f, layer, fetch, samples, err)
                                               : take_window(f, layer, fetch, samples, err));

    free(made);
    return is_taken;
}

/* Fetches of `kind` for a rect, some rows at a time; how many, 0: no memory. */
static uint32_t fetch_strips(struct following *f, enum fetch_kind kind, const char *layer,
                             const struct sample_rect *rect, bool is_check)
{
    uint32_t rows = STRIP_SAMPLES / rect->cols, strips = 0;

    rows = rows < 1 ? 1 : rows > STRIP_ROWS_MAX ? STRIP_ROWS_MAX : rows;
    for (uint32_t row = 0; row < rect->rows; row += rows, strips++) {
        const struct sample_rect strip = {rect->column, rect->row + row, rect->cols,
                                          rect->rows - row < rows ? rect->rows - row : rows};

        if (!fetch_add(f, kind, layer, &strip, is_check))
            return 0;
    }
    return strips;
}

/* ---- fields and meshes in the making --------------------------------------------------------- */

/*
 * The samples first .. first + count - 1 of an axis that questions between low and high use. The
 * feed with these bounds has every change of one of them: its cells touch the bounds.
 */
static void part_along(double low, double high, double origin, double spacing, uint32_t all,
                       uint32_t *first, uint32_t *count)
{
    double from = ceil((low - origin) / spacing) - 1, to = floor((high - origin) / spacing) + 1;

    if (!(to >= 0 && from <= all - 1)) { /* nothing of the field */
        from = to = 0;
    }
    *first = from > 0 ? (uint32_t)from : 0;
    *count = (to < all - 1 ? (uint32_t)to : all - 1) - *first + 1;
}

static struct held_part part_of(const struct following *f, const struct heightfield_spec *spec)
{
    struct held_part part = {{0, 0, spec->cols, spec->rows}, false};

    if (!f->has_bounds)
        return part;
    part_along(f->bounds[0], f->bounds[2], spec->origin_x_m, spec->spacing_x_m, spec->cols,
               &part.rect.column, &part.rect.cols);
    part_along(f->bounds[1], f->bounds[3], spec->origin_y_m, spec->spacing_y_m, spec->rows,
               &part.rect.row, &part.rect.rows);
    part.is_part = part.rect.cols < spec->cols || part.rect.rows < spec->rows;
    return part;
}

static bool begin_layer(struct following *f, struct followed_layer *layer, struct err *err)
{
    layer->low = UINT64_MAX;
    layer->high = 0;
    if (layer->kind == LAYER_MESH) {
        if (fetch_add(f, FETCH_IMAGE, layer->id, NULL, false) &&
            fetch_add(f, FETCH_POLYGONS, layer->id, NULL, false))
            return true;
    } else {
        layer->part = part_of(f, &layer->spec);
        layer->builder = heightfield_builder_create(&layer->spec, err);
        if (!layer->builder)
            return false;
        layer->strips_left = fetch_strips(f, FETCH_STRIP, layer->id, &layer->part.rect, false);
        if (layer->strips_left > 0)
            return true;
    }
    err_set(err, ERR_NO_MEMORY, "no memory to fetch layer %s", layer->id);
    return false;
}

static bool keep_bytes(const struct kota_ground_answer *answer, void **bytes, size_t *length,
                       char tag[FETCH_TAG_BYTES], struct err *err)
{
    free(*bytes);
    *bytes = malloc(answer->length > 0 ? answer->length : 1);
    if (!*bytes) {
        err_set(err, ERR_NO_MEMORY, "no memory for a mesh of %zu bytes", answer->length);
        return false;
    }
    memcpy(*bytes, answer->body, answer->length);
    *length = answer->length;
    snprintf(tag, FETCH_TAG_BYTES, "%s", answer->etag ? answer->etag : "");
    return true;
}

/* Both are there: the layer is made of them if they are of one state. */
static bool finish_mesh(struct following *f, struct followed_layer *layer, struct err *err)
{
    struct layer *made;

    if (strncmp(layer->image_tag, layer->polygons_tag, CONTENT_TAG_CHARS) != 0) {
        free(layer->image);
        free(layer->polygons);
        layer->image = layer->polygons = NULL;
        return begin_layer(f, layer, err);
    }
    made = mesh_layer_of(layer->id, layer->role, f->manifest.gravity, layer->image,
                         layer->image_bytes, layer->polygons, layer->polygons_bytes, err);
    free(layer->image);
    free(layer->polygons);
    layer->image = layer->polygons = NULL;
    return followed_layer_set(f, layer, made);
}

static bool take_mesh(struct following *f, struct followed_layer *layer, const struct fetch *fetch,
                      const struct kota_ground_answer *answer, struct err *err)
{
    bool is_image = fetch->kind == FETCH_IMAGE;

    if (!keep_bytes(answer, is_image ? &layer->image : &layer->polygons,
                    is_image ? &layer->image_bytes : &layer->polygons_bytes,
                    is_image ? layer->image_tag : layer->polygons_tag, err))
        return false;
    if (fetch->is_check) { /* it is another one than the copy has: its polygons, too */
        layer->low = UINT64_MAX;
        return fetch_add(f, FETCH_POLYGONS, layer->id, NULL, false) ||
               (err_set(err, ERR_NO_MEMORY, "no memory to fetch layer %s", layer->id), false);
    }
    return !layer->image || !layer->polygons || finish_mesh(f, layer, err);
}

/* ---- the document ---------------------------------------------------------------------------- */

static bool has_geometry(const struct heightfield_spec *a, const struct heightfield_spec *b)
{
    return a->cols == b->cols && a->rows == b->rows && a->origin_x_m == b->origin_x_m &&
           a->origin_y_m == b->origin_y_m && a->spacing_x_m == b->spacing_x_m &&
           a->spacing_y_m == b->spacing_y_m;
}

/* Can the layer go on, as the document describes it now? */
static bool is_kept(const struct following *f, const struct followed_layer *old,
                    const struct followed_layer *now, const struct locale_manifest *manifest)
{
    (void)f;
    if (!old || !old->value || old->is_stale || old->kind != now->kind || old->role != now->role)
        return false;
    if (old->kind == LAYER_HEIGHTFIELD)
        return has_geometry(&old->spec, &now->spec);
    return layer_fits(old->value, manifest->triangulation, manifest->gravity) &&
           (now->is_posed || !old->value->is_moved);
}

/* Is it being fetched just as the document describes it? */
static bool is_coming(const struct followed_layer *old, const struct followed_layer *now)
{
    return old && !old->value && !old->is_stale && old->kind == now->kind &&
           old->role == now->role &&
           (old->kind == LAYER_MESH || (old->builder && has_geometry(&old->spec, &now->spec)));
}

/* Takes over what the copy has of the layer; what it has not is fetched. */
static bool carry_layer(struct following *f, struct followed_layer *now,
                        const struct locale_manifest *manifest, struct err *err)
{
    struct followed_layer *old = followed_layer(f, now->id);
    struct followed_layer fresh = *now;
    struct layer *fitted;

    if (!is_kept(f, old, now, manifest) && !is_coming(old, now)) {
        fetches_drop(f, now->id);
        if (old) {
            now->has_pose = old->has_pose;
            now->pose = old->pose;
            now->pose_seq = old->pose_seq;
        }
        return true; /* begun when all are listed */
    }
    *now = *old;
    *old = (struct followed_layer){.id = ""};
    now->is_posed = fresh.is_posed;
    now->posed = fresh.posed;
    memcpy(now->range, fresh.range, sizeof now->range);
    now->is_range_changed = true; /* perhaps */
    if (!now->value || layer_fits(now->value, manifest->triangulation, manifest->gravity))
        return true;
    now->spec.triangulation = manifest->triangulation;
    fitted = layer_fitted(now->value, manifest->triangulation, manifest->gravity, err);
    return followed_layer_set(f, now, fitted);
}

static bool take_document(struct following *f, const struct kota_ground_answer *answer,
                          struct err *err)
{
    struct document document;
    struct followed_layer *old = f->layers;
    size_t old_count = f->layer_count;
    bool is_taken = true;

    if (!document_read(answer->body, answer->length, &document, err))
        return false;
    for (size_t i = 0; i < document.layer_count && is_taken; i++)
        is_taken = carry_layer(f, &document.layers[i], &document.manifest, err);
    for (size_t i = 0; i < old_count; i++) {
        if (old[i].id[0] && is_taken) {
            bool is_listed = false;

            for (size_t k = 0; k < document.layer_count; k++)
                is_listed |= strcmp(document.layers[k].id, old[i].id) == 0;
            if (!is_listed)
                fetches_drop(f, old[i].id);
        }
        followed_layer_clear(&old[i]);
    }
    free(old);
    f->layers = document.layers;
    f->layer_count = document.layer_count;
    f->manifest = document.manifest;
    f->document = document.revision;
    f->document_seq = document.transform_seq;
    f->is_loaded = f->is_changed = true;
    if (document.revision > f->must)
        f->must = document.revision;
    for (size_t i = 0; i < f->layer_count && is_taken; i++)
        if (!f->layers[i].value && f->layers[i].low == 0)
            is_taken = begin_layer(f, &f->layers[i], err);
    return is_taken;
}

static bool is_at(const struct layer *layer, const struct pose *pose)
{
    return layer->is_moved && pose_is_equal(&layer->motion.pose, pose);
}

void following_count_poses(struct following *f)
{
    for (size_t i = 0; i < f->layer_count; i++)
        if (f->layers[i].is_posed && f->layers[i].value &&
            !is_at(f->layers[i].value, &f->layers[i].posed))
            return;
    if (f->document_seq > f->transform_seq)
        f->transform_seq = f->document_seq;
}

bool following_settle(struct following *f, struct err *err)
{
    if (!following_widen(f)) {
        err_set(err, ERR_NO_MEMORY, "no memory for the layers of %s", f->held->id);
        return false;
    }
    for (size_t i = 0; i < f->layer_count; i++) {
        struct followed_layer *layer = &f->layers[i];
        struct kota_ground_pose pose = {.yaw_deg = layer->posed.yaw_deg};

        memcpy(pose.rotation, layer->posed.rotation, sizeof pose.rotation);
        if (!layer->is_posed || !layer->value)
            continue;
        memcpy(pose.translation, &layer->posed.translation, sizeof pose.translation);
        if (layer->has_pose && pose.yaw_deg == layer->pose.yaw_deg &&
            memcmp(pose.rotation, layer->pose.rotation, sizeof pose.rotation) == 0 &&
            memcmp(pose.translation, layer->pose.translation, sizeof pose.translation) == 0)
            pose = layer->pose; /* with its velocity */
        if (!layer->value->is_moved &&
            !followed_layer_set(f, layer, layer_posed(layer->value, &pose, f->document_seq, err)))
            return false;
    }
    following_count_poses(f);
    return true;
}

/* ---- differences ----------------------------------------------------------------------------- */

static bool take_diff(struct following *f, const struct followed_layer *layer,
                      const struct kota_ground_answer *answer, struct err *err)
{
    struct sample_rect *rects;
    size_t count;
    bool is_taken = true;

    if (!diff_read(answer->body, answer->length, &rects, &count, err))
        return false;
    for (size_t i = 0; i < count && is_taken; i++)
        is_taken = following_window(f, layer, &rects[i]);
    free(rects);
    if (!is_taken)
        err_set(err, ERR_NO_MEMORY, "no memory to fetch layer %s", layer->id);
    return is_taken;
}

bool following_check(struct following *f)
{
    bool is_asked = fetch_add(f, FETCH_DOCUMENT, NULL, NULL, false);

    for (size_t i = 0; i < f->layer_count; i++) {
        const struct followed_layer *layer = &f->layers[i];

        if (!layer->value || layer->is_stale)
            continue;
        is_asked &= layer->kind == LAYER_MESH
                        ? fetch_add(f, FETCH_IMAGE, layer->id, NULL, true)
                        : fetch_strips(f, FETCH_WINDOW, layer->id, &layer->part.rect, true) > 0;
    }
    return is_asked;
}

/* ---- any answer ------------------------------------------------------------------------------ */

/* A refusal: for good, or of something that is another by now. */
static bool take_refusal(struct following *f, const struct fetch *fetch,
                         const struct kota_ground_answer *answer, struct err *err)
{
    struct followed_layer *layer = followed_layer(f, fetch->layer);
    bool is_over = answer->status == 401 || answer->status == 403 || answer->status == 413;

    err_set(err, is_over ? ERR_FORBIDDEN : ERR_CONFLICT, "locale %s: answer %u: %.*s", f->held->id,
            answer->status, (int)(answer->length < 200 ? answer->length : 200),
            answer->body ? (const char *)answer->body : "");
    if (fetch->kind == FETCH_DOCUMENT && answer->status == 404) {
        following_leave(f);
        return true;
    }
    return !is_over && fetch->kind != FETCH_DOCUMENT && following_reload(f, layer, err);
}

static void note_revision(struct following *f, struct followed_layer *layer, uint64_t revision)
{
    if (revision > f->fetched)
        f->fetched = revision;
    if (revision > f->must)
        f->must = revision;
    if (layer && revision < layer->low)
        layer->low = revision;
    if (layer && revision > layer->high)
        layer->high = revision;
}

bool following_take(struct following *f, const struct fetch *fetch,
                    const struct kota_ground_answer *answer, struct err *err)
{
    struct followed_layer *layer = fetch->layer[0] ? followed_layer(f, fetch->layer) : NULL;

    if (answer->status == 304)
        return true;
    if (answer->status < 200 || answer->status > 299)
        return take_refusal(f, fetch, answer, err);
    if (fetch->layer[0] && !layer)
        return true;
    note_revision(f, layer, answer->revision);
    switch (fetch->kind) {
    case FETCH_DOCUMENT:
        return take_document(f, answer, err);
    case FETCH_STRIP:
    case FETCH_WINDOW:
        return take_samples(f, layer, fetch, answer, err);
    case FETCH_IMAGE:
    case FETCH_POLYGONS:
        return take_mesh(f, layer, fetch, answer, err);
    case FETCH_DIFF:
        return take_diff(f, layer, answer, err);
    case FETCH_FEED:
        break;
    }
    return true;
}
