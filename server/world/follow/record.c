/*
 * Changes and locales to bytes. The format is in record.h.
 *
 * Problem: a layer may have gigabytes, most of which other daemons have already. Approach: bytes
 * name large parts by their hash; the log has each part once. To be hashed a tile is packed as in
 * the store, without samples beyond the field. It is packed again only when the log does not have
 * it, so there is never a copy of a whole layer.
 *
 * The body of a change is written by its kind (world/write/kinds/); a new one needs an input in the
 * fuzzer's corpus.
 */
#include "world/follow/record.h"

#include "base/check.h"
#include "base/content_hash.h"
#include "world/write/history.h"
#include "world/write/kinds/kind.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- bytes that grow ------------------------------------------------------------------------- */

void record_put(struct record_sink *sink, const void *bytes, size_t length)
{
    struct record *r = sink->record;

    if (length == 0)
        return;
    if (sink->room - r->bytes < length) {
        size_t room = 2 * (r->bytes + length);
        uint8_t *grown = sink->has_no_memory ? NULL : realloc(r->data, room);

        if (!grown) {
            sink->has_no_memory = true;
            return;
        }
        r->data = grown;
        sink->room = room;
    }
    memcpy(r->data + r->bytes, bytes, length);
    r->bytes += length;
}

static void put_u8(struct record_sink *sink, unsigned value)
{
    record_put(sink, &(uint8_t){(uint8_t)value}, 1);
}

static void put_u16(struct record_sink *sink, size_t value)
{
    record_put(sink, &(uint16_t){(uint16_t)value}, 2);
}

static void put_u32(struct record_sink *sink, size_t value)
{
    record_put(sink, &(uint32_t){(uint32_t)value}, 4);
}

static void put_vec3(struct record_sink *sink, struct vec3 v)
{
    record_put(sink, (double[]){v.x, v.y, v.z}, 3 * sizeof(double));
}

static void put_u64(struct record_sink *sink, uint64_t value)
{
    record_put(sink, &value, sizeof value);
}

void record_put_id(struct record_sink *sink, const char *id)
{
    put_u8(sink, (unsigned)strlen(id));
    record_put(sink, id, strlen(id));
}

/* The bytes have a part that only readers of this version and later ones know. */
static void need_version(struct record_sink *sink, uint8_t version)
{
    if (!sink->has_no_memory && sink->record->data[0] < version)
        sink->record->data[0] = version;
}

/*
 * Hashes of tiles by their serials, which no other tile of this process ever has: a snapshot names
 * every tile of a locale, and few have changed since the last one.
 */
enum { REMEMBERED = 1 << 14 };
static struct {
    pthread_mutex_t mutex;
    struct {
        uint64_t serial; /* 0: none */
        uint8_t hash[CLUSTER_HASH_BYTES];
    } at[REMEMBERED];
} remembered = {.mutex = PTHREAD_MUTEX_INITIALIZER};

uint64_t record_history_key(void)
{
    static _Atomic uint64_t last;

    return ++last;
}

static bool recall(uint64_t serial, uint8_t hash[CLUSTER_HASH_BYTES])
{
    bool is_known;

    pthread_mutex_lock(&remembered.mutex);
    is_known = serial != 0 && remembered.at[serial % REMEMBERED].serial == serial;
    if (is_known)
        memcpy(hash, remembered.at[serial % REMEMBERED].hash, CLUSTER_HASH_BYTES);
    pthread_mutex_unlock(&remembered.mutex);
    return is_known;
}

static void remember(uint64_t serial, const uint8_t hash[CLUSTER_HASH_BYTES])
{
    pthread_mutex_lock(&remembered.mutex);
    remembered.at[serial % REMEMBERED].serial = serial;
    memcpy(remembered.at[serial % REMEMBERED].hash, hash, CLUSTER_HASH_BYTES);
    pthread_mutex_unlock(&remembered.mutex);
}

static bool hash_blob(struct record_blob *blob, struct err *err)
{
    uint64_t serial = blob->serial;
    const void *bytes;
    void *made = NULL;
    size_t length;

    if (blob->part == RECORD_FILE) {
        memcpy(blob->hash, blob->model->hash, sizeof blob->hash);
        return true;
    }
    if (blob->part == RECORD_TILE)
        serial = heightfield_tile_serial(blob->layer->field, blob->tile_column, blob->tile_row);
    if (recall(serial, blob->hash))
        return true;
    bytes = record_blob_bytes(blob, &length, &made, err);
    if (bytes)
        content_hash(bytes, length, blob->hash);
    if (bytes && serial != 0)
        remember(serial, blob->hash);
    free(made);
    return bytes != NULL;
}

/* Names a blob; its bytes are hashed here. */
static void put_blob(struct record_sink *sink, struct record_blob *blob)
{
    struct record *r = sink->record;
    void *grown;

    if (!sink->has_no_memory && !hash_blob(blob, &sink->failed))
        sink->has_no_memory = true;
    record_put(sink, blob->hash, sizeof blob->hash);
    if (r->blob_count == sink->blob_room && !sink->has_no_memory) {
        sink->blob_room = sink->blob_room ? 2 * sink->blob_room : 16;
        grown = realloc(r->blobs, sink->blob_room * sizeof *r->blobs);
        if (!grown)
            sink->has_no_memory = true;
        else
            r->blobs = grown;
    }
    if (!sink->has_no_memory)
        r->blobs[r->blob_count++] = *blob;
}

static int compare_blobs(const void *a, const void *b)
{
    return memcmp(((const struct record_blob *)a)->hash, ((const struct record_blob *)b)->hash,
                  CLUSTER_HASH_BYTES);
}

/* Each blob once; on error the record is emptied. */
static enum err_code finish(struct record_sink *sink, struct err *err)
{
    struct record *r = sink->record;
    size_t count = 0;

    if (!sink->has_no_memory && r->blob_count > 0) {
        qsort(r->blobs, r->blob_count, sizeof *r->blobs, compare_blobs);
        for (size_t i = 0; i < r->blob_count; i++)
            if (count == 0 || compare_blobs(&r->blobs[count - 1], &r->blobs[i]) != 0)
                r->blobs[count++] = r->blobs[i];
        r->blob_count = count;
        r->hashes = malloc(count * sizeof *r->hashes);
        sink->has_no_memory = !r->hashes;
        for (size_t i = 0; r->hashes && i < count; i++)
            memcpy(r->hashes[i], r->blobs[i].hash, sizeof r->hashes[i]);
    }
    if (!sink->has_no_memory)
        return ERR_OK;
    record_finish(r);
    if (sink->failed.code == ERR_OK)
        return err_set(err, ERR_NO_MEMORY, "no memory for an entry of the shared log");
    *err = sink->failed;
    return err->code;
}

void record_finish(struct record *record)
{
    free(record->data);
    free(record->blobs);
    free(record->hashes);
    *record = (struct record){.data = NULL};
}

/* ---- blobs ----------------------------------------------------------------------------------- */

static void *polygons_pack(const struct polygon_set *set, size_t *length)
{
    uint64_t counts[3] = {set->vertex_count, set->polygon_count, set->starts[set->polygon_count]};
    size_t parts[3] = {counts[0] * sizeof *set->vertices, (counts[1] + 1) * sizeof *set->starts,
                       counts[2] * sizeof *set->corners};
    size_t rest = polygon_instances_bytes(set);
    uint8_t *bytes = malloc(sizeof counts + parts[0] + parts[1] + parts[2] + rest), *to = bytes;

    if (!bytes)
        return NULL;
    to = (uint8_t *)memcpy(to, counts, sizeof counts) + sizeof counts;
    if (parts[0] > 0)
        memcpy(to, set->vertices, parts[0]);
    to = (uint8_t *)memcpy(to + parts[0], set->starts, parts[1]) + parts[1];
    if (parts[2] > 0)
        memcpy(to, set->corners, parts[2]);
    polygon_instances_put(set, to + parts[2]);
    *length = sizeof counts + parts[0] + parts[1] + parts[2] + rest;
    return bytes;
}

static bool put_past(void *context, const struct store_past *past, struct err *err)
{
    const char *texts[] = {past->layer, past->source, past->author, past->note};
    struct record_sink *sink = context;

    put_u64(sink, past->revision);
    record_put(sink, &past->time_ms, sizeof past->time_ms);
    put_u8(sink, (unsigned)change_log_number((enum world_change_kind)past->kind));
    put_u8(sink, past->is_birth + 2u * past->has_rect);
    put_u8(sink, (unsigned)past->packed->codec);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put_u16(sink, strlen(texts[i]));
        record_put(sink, texts[i], strlen(texts[i]));
    }
    if (past->has_rect)
        record_put(sink, &past->rect, sizeof past->rect);
    put_u64(sink, past->packed->length);
    record_put(sink, past->packed->data, past->packed->length);
    if (sink->has_no_memory)
        err_set(err, ERR_NO_MEMORY, "no memory for a history in the shared log");
    return !sink->has_no_memory;
}

static void *history_pack(const struct record_blob *blob, size_t *length, struct err *err)
{
    const struct store_history_question question = {.locale = blob->locale,
                                                    .after = blob->after,
                                                    .upto = blob->upto,
                                                    .wants_packed = true,
                                                    .is_writer = true};
    struct record part = {.data = NULL};
    struct record_sink sink = {.record = &part};
    uint64_t since;

    if (store_history(blob->store, &question, &since, put_past, &sink, err) == ERR_OK) {
        *length = part.bytes;
        return part.data;
    }
    record_finish(&part);
    return NULL;
}

const void *record_blob_bytes(const struct record_blob *blob, size_t *length, void **made,
                              struct err *err)
{
    const void *bytes = NULL;
    float *packed;

    *made = NULL;
    switch (blob->part) {
    case RECORD_TILE:
        bytes = heightfield_tile_pack(blob->layer->field, blob->tile_column, blob->tile_row, length,
                                      &packed);
        *made = packed;
        break;
    case RECORD_POLYGONS:
        bytes = *made = polygons_pack(layer_polygon_set(blob->layer), length);
        break;
    case RECORD_IMAGE:
        return mesh_image(blob->layer->mesh, length);
    case RECORD_FILE:
        *length = blob->model->length;
        return blob->model->bytes;
    case RECORD_HISTORY:
        return *made = history_pack(blob, length, err);
    }
    if (!bytes)
        err_set(err, ERR_NO_MEMORY, "no memory for a part of the shared log");
    return bytes;
}

/* ---- manifests and layers -------------------------------------------------------------------- */

void record_put_manifest(struct record_sink *sink, const struct locale_manifest *m)
{
    bool is_fork = m->from[0] != '\0';

    put_u16(sink, strlen(m->title));
    record_put(sink, m->title, strlen(m->title));
    put_vec3(sink, m->gravity);
    put_vec3(sink, m->placement.translation);
    record_put(sink, m->placement.rotation, sizeof m->placement.rotation);
    put_u8(sink, m->open_sky);
    put_u8(sink, (unsigned)m->triangulation);
    put_u8(sink, (m->crs != 0 ? 2u : m->has_geo) + (is_fork ? RECORD_FORK : 0u));
    if (m->crs == 0)
        record_put(sink, (double[]){m->geo_lat_deg, m->geo_lng_deg}, 2 * sizeof(double));
    else
        record_put(sink, (double[]){m->crs, 0}, 2 * sizeof(double));
    if (is_fork) {
        record_put_id(sink, m->from);
        put_u64(sink, m->from_revision);
    }
    need_version(sink, is_fork ? RECORD_VERSION : m->crs != 0 ? RECORD_VERSION_PLACE : 0);
}

void record_put_place(struct record_sink *sink, const struct locale_manifest *m)
{
    put_u8(sink, RECORD_PLACE);
    record_put_manifest(sink, m);
    need_version(sink, RECORD_VERSION_PLACE);
}

static void put_field(struct record_sink *sink, const struct layer *layer)
{
    const struct heightfield_spec *spec = heightfield_spec(layer->field);
    struct heightfield_tile_layout layout = heightfield_tile_layout(spec);

    put_u8(sink, 0);
    put_u32(sink, spec->cols);
    put_u32(sink, spec->rows);
    put_u32(sink, spec->leaf_cells);
    put_u8(sink, (unsigned)spec->triangulation);
    record_put(sink,
               (double[]){spec->origin_x_m, spec->origin_y_m, spec->spacing_x_m, spec->spacing_y_m},
               4 * sizeof(double));
    for (uint32_t ty = 0; ty < layout.tile_rows; ty++)
        for (uint32_t tx = 0; tx < layout.tile_cols; tx++)
            put_blob(sink,
                     &(struct record_blob){
                         .part = RECORD_TILE, .layer = layer, .tile_column = tx, .tile_row = ty});
}

void record_put_layer(struct record_sink *sink, const struct layer *layer)
{
    if (layer->kind == LAYER_HEIGHTFIELD) {
        put_field(sink, layer);
        return;
    }
    put_u8(sink, 1);
    put_u8(sink, (unsigned)layer->role);
    put_u8(sink, (unsigned)layer->space.frame);
    put_u8(sink, layer->space.is_outward);
    put_vec3(sink, layer->gravity);
    put_blob(sink, &(struct record_blob){.part = RECORD_POLYGONS, .layer = layer});
    put_blob(sink, &(struct record_blob){.part = RECORD_IMAGE, .layer = layer});
}

uint8_t *record_layer(const struct layer *layer, size_t *length)
{
    struct record record = {.data = NULL};
    struct record_sink sink = {.record = &record};
    uint8_t *bytes;

    record_put_layer(&sink, layer);
    bytes = sink.has_no_memory ? NULL : record.data;
    *length = record.bytes;
    record.data = bytes ? NULL : record.data;
    record_finish(&record);
    return bytes;
}

void record_put_poses(struct record_sink *sink, const struct locale *value)
{
    uint32_t count = 0;

    for (size_t i = 0; i < value->layer_count; i++)
        count += value->layers[i]->is_moved;
    put_u64(sink, value->transform_seq);
    put_u32(sink, count);
    for (size_t i = 0; i < value->layer_count; i++) {
        const struct layer *layer = value->layers[i];
        struct store_pose row;

        if (!layer->is_moved)
            continue;
        row = persist_pose_row(layer);
        record_put_id(sink, layer->id);
        record_put(sink, row.translation, sizeof row.translation);
        record_put(sink, &row.yaw_deg, sizeof row.yaw_deg);
        record_put(sink, row.rotation, sizeof row.rotation);
        put_u64(sink, row.transform_seq);
    }
}

void record_put_model(struct record_sink *sink, const struct model *model)
{
    put_blob(sink, &(struct record_blob){.part = RECORD_FILE, .model = model});
}

/* ---- an entry -------------------------------------------------------------------------------- */

bool record_takes(const struct change_result *result)
{
    return !result_makes_nothing(result) && change_log_number(result->change->kind) != 0;
}

/* A unique op_id: '~' and 128 random bits. */
static void make_op_id(char *out)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t random[16];

    CHECK(getrandom(random, sizeof random, 0) == (ssize_t)sizeof random);
    *out++ = '~';
    for (size_t i = 0; i < sizeof random; i++) {
        *out++ = digits[random[i] >> 4];
        *out++ = digits[random[i] & 15];
    }
    *out = '\0';
}

static void fill_entry(const struct change_result *result, const struct record *record,
                       struct cluster_entry *entry)
{
    const struct world_change *change = result->change;
    const struct feed_event *event = &result->event;

    *entry = (struct cluster_entry){
        .kind = change_log_number(change->kind),
        .has_rect = event->has_rect,
        .rect = {event->rect.column, event->rect.row, event->rect.cols, event->rect.rows},
        .data = record->data,
        .bytes = record->bytes,
        .blobs = (const uint8_t(*)[CLUSTER_HASH_BYTES])record->hashes,
        .blob_count = record->blob_count,
    };
    snprintf(entry->locale, sizeof entry->locale, "%s",
             result_is_of_model(result) ? RECORD_MODELS : change->locale_id);
    snprintf(entry->layer, sizeof entry->layer, "%s",
             result_is_of_model(result) ? change->model_id : event->layer);
    snprintf(entry->source, sizeof entry->source, "%s", event->source);
    memcpy(entry->request, change->request, sizeof entry->request);
    if (change->op_id[0] != '\0')
        snprintf(entry->op_id, sizeof entry->op_id, "%s", change->op_id);
    else
        make_op_id(entry->op_id);
}

/* What the history of each node has of the change. */
static void put_words(struct record_sink *sink, const struct change_result *result)
{
    const struct change_author *author = &result->change->author;

    record_put(sink, &result->time_ms, sizeof result->time_ms);
    record_put_id(sink, author->name);
    put_u16(sink, strlen(author->note));
    record_put(sink, author->note, strlen(author->note));
    put_u8(sink, history_is_set(result->change));
    need_version(sink, RECORD_VERSION);
}

enum err_code record_result(const struct change_result *result, struct record *out,
                            struct cluster_entry *entry, struct err *err)
{
    bool has_answer = result->change->op_id[0] != '\0' && result->answer;
    struct record_sink sink = {.record = out};

    CHECK(record_takes(result));
    *out = (struct record){.data = NULL};
    put_u8(&sink, RECORD_VERSION_FIRST);
    put_u8(&sink, (unsigned)change_log_number(result->change->kind));
    put_u16(&sink, 0);
    put_u32(&sink, has_answer ? result->answer_bytes : 0);
    if (has_answer)
        record_put(&sink, result->answer, result->answer_bytes);
    if (!result_is_of_model(result))
        put_words(&sink, result);
    change_kind(result->change->kind)->encode(&sink, result);
    if (finish(&sink, err))
        return err->code;
    fill_entry(result, out, entry);
    return ERR_OK;
}

/* ---- snapshots ------------------------------------------------------------------------------- */

static struct record_sink begin_snapshot(struct record *out, enum record_whole what)
{
    struct record_sink sink = {.record = out};

    *out = (struct record){.data = NULL};
    put_u8(&sink, RECORD_VERSION_FIRST);
    put_u8(&sink, RECORD_SNAPSHOT);
    put_u8(&sink, what);
    put_u8(&sink, 0);
    return sink;
}

void record_put_value(struct record_sink *sink, const struct locale *value)
{
    record_put_manifest(sink, &value->manifest);
    put_u32(sink, value->layer_count);
    for (size_t i = 0; i < value->layer_count; i++) {
        record_put_id(sink, value->layers[i]->id);
        record_put_layer(sink, value->layers[i]);
    }
}

static void put_pins(struct record_sink *sink, const struct earlier_list *pins)
{
    uint64_t last = 0;

    put_u32(sink, pins ? pins->count : 0);
    for (size_t done = 0; pins && done < pins->count;) {
        uint64_t next = UINT64_MAX;

        for (size_t i = 0; i < pins->count; i++) {
            uint64_t revision = pins->at[i].value->revision;

            next = revision > last && revision < next ? revision : next;
        }
        for (size_t i = 0; i < pins->count; i++) {
            if (pins->at[i].value->revision != next)
                continue;
            record_put_id(sink, pins->at[i].name);
            put_u64(sink, next);
            record_put_value(sink, pins->at[i].value);
            record_put_poses(sink, pins->at[i].value);
            done++;
        }
        last = next;
    }
}

enum { HISTORY_PART = 128 }; /* revisions; a part of them all never changes, and is sent once */

static bool take_revision(void *context, const struct store_past *past, struct err *err)
{
    (void)err;
    *(uint64_t *)context = past->revision;
    return false;
}

/* First and last revision of a locale's history; 0: there is none, or not up to its own. */
static enum err_code find_history(const struct locale *locale, const struct record_history *history,
                                  uint64_t *first, struct err *err)
{
    struct store_history_question question = {
        .locale = locale->id, .upto = UINT64_MAX, .is_newest_first = true, .is_writer = true};
    uint64_t last = 0, since;

    *first = 0;
    if (store_history(history->store, &question, &since, take_revision, &last, err) ||
        last != locale->revision)
        return err->code;
    question.is_newest_first = false;
    return store_history(history->store, &question, &since, take_revision, first, err);
}

static void put_history(struct record_sink *sink, const struct locale *locale,
                        const struct record_history *history, uint64_t first)
{
    const uint64_t before = (first - 1) / HISTORY_PART;
    const uint64_t end = (locale->revision - 1) / HISTORY_PART + 1;

    put_u32(sink, (size_t)(end - before));
    for (uint64_t i = before; i < end; i++) {
        struct record_blob part = {.part = RECORD_HISTORY,
                                   .store = history->store,
                                   .locale = locale->id,
                                   .after = i > before ? i * HISTORY_PART : first - 1,
                                   .upto = (i + 1) * HISTORY_PART};

        if (part.after % HISTORY_PART == 0 && part.upto <= locale->revision)
            /* of no tile, and spread over what is remembered */
            part.serial =
                UINT64_C(1) << 63 | history->key << 32 | (uint32_t)(i + 512 * history->key);
        put_blob(sink, &part);
    }
    need_version(sink, RECORD_VERSION_HISTORY);
}

static bool has_instances(const struct locale *locale)
{
    for (size_t i = 0; i < locale->layer_count; i++)
        if (locale->layers[i]->kind == LAYER_MESH &&
            layer_polygon_set(locale->layers[i])->instances.count > 0)
            return true;
    return false;
}

enum err_code record_locale(const struct locale *locale, uint64_t deleted, uint64_t number,
                            const struct record_history *history, struct record *out,
                            struct err *err)
{
    struct record_sink sink =
        begin_snapshot(out, locale ? RECORD_WHOLE_LOCALE : RECORD_DELETED_LOCALE);
    uint64_t revision = locale ? locale->revision : deleted, first = 0;
    bool has_pins = locale && locale->pins;

    if (locale && history && find_history(locale, history, &first, err)) {
        record_finish(out);
        return err->code;
    }
    if (has_pins || revision != number || first > 0 ||
        (locale && (locale->manifest.from[0] != '\0' || has_instances(locale)))) {
        need_version(&sink, RECORD_VERSION);
        put_u64(&sink, revision);
    }
    if (first > 0)
        put_history(&sink, locale, history, first);
    if (locale)
        record_put_value(&sink, locale);
    if (locale && !sink.has_no_memory && out->data[0] >= RECORD_VERSION)
        put_pins(&sink, locale->pins);
    return finish(&sink, err);
}

enum err_code record_models(const struct model_list *models, struct record *out, struct err *err)
{
    struct record_sink sink = begin_snapshot(out, RECORD_ALL_MODELS);

    put_u32(&sink, models ? models->count : 0);
    for (size_t i = 0; models && i < models->count; i++) {
        record_put_id(&sink, models->at[i]->id);
        record_put_model(&sink, models->at[i]);
    }
    return finish(&sink, err);
}
