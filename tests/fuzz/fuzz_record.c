/*
 * Fuzzes what comes back from a shared log: entries and snapshots. Byte 0 says which: an entry of
 * kind b & 7 (0: of a kind that is none), + 32: of one 8 higher, + 8: a snapshot of a locale, +
 * 16: of the models. Bytes 1 and 2 are the length of the data, then the data, then what blobs are
 * cut out of: the blob of a hash begins at its first two bytes and is as long as the next two say,
 * but a hash that begins with ff ff is the image of a good mesh, fe ff its polygons, fd ff a good
 * model.
 *
 * What is taken must be sound; an error must give its reason.
 */
#include "base/check.h"
#include "tests/fuzz/fuzz.h"
#include "world/follow/record.h"
#include "world/write/kinds/kind.h"

#include <stdlib.h>
#include <string.h>

static const char tetrahedron[] = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
                                  "f 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n";

struct input {
    const uint8_t *at;
    size_t left;
};

/* Image and polygons of two triangles, made once. */
static struct record_blob *good_blobs(void)
{
    static const struct vec3 vertices[] = {{0, 0, 0}, {4, 0, 1}, {0, 4, 0}, {4, 4, 2}};
    static const uint32_t corners[] = {0, 1, 2, 1, 3, 2}, starts[] = {0, 3, 6};
    static struct record_blob blobs[2];
    struct polygon_set set;
    struct layer *layer;
    struct err err = {.code = ERR_OK};

    if (blobs[0].layer)
        return blobs;
    CHECK(polygon_set_allocate(4, 2, 6, &set, &err) == ERR_OK);
    memcpy(set.vertices, vertices, sizeof vertices);
    memcpy(set.corners, corners, sizeof corners);
    memcpy(set.starts, starts, sizeof starts);
    layer = layer_create_mesh("deck", LAYER_GROUND, &set, (struct vec3){0, 0, -1}, NULL, &err);
    CHECK(layer);
    blobs[0] = (struct record_blob){.part = RECORD_IMAGE, .layer = layer};
    blobs[1] = (struct record_blob){.part = RECORD_POLYGONS, .layer = layer};
    return blobs;
}

static enum err_code get_blob(void *context, const uint8_t hash[CLUSTER_HASH_BYTES], void **bytes,
                              size_t *length, struct err *err)
{
    const struct input *pool = context;
    const void *from = NULL;
    void *made = NULL;
    size_t at = hash[0] | (size_t)hash[1] << 8;

    *length = hash[2] | (size_t)hash[3] << 8;
    if (at >= 0xfffe) {
        from = record_blob_bytes(&good_blobs()[at == 0xffff ? 0 : 1], length, &made, err);
    } else if (at == 0xfffd) {
        from = tetrahedron;
        *length = strlen(tetrahedron);
    } else if (at <= pool->left && *length <= pool->left - at) {
        from = pool->at + at;
    } else {
        return err_set(err, ERR_NOT_FOUND, "there is no such part");
    }
    *bytes = malloc(*length ? *length : 1);
    CHECK(*bytes);
    memcpy(*bytes, from, *length);
    free(made);
    return ERR_OK;
}

static void check_error(const struct err *err)
{
    CHECK(err->code == ERR_OK || err->msg[0] != '\0');
}

static void check_layer(const struct layer *layer)
{
    struct err err = {.code = ERR_OK};

    CHECK(layer_validate(layer, &err));
}

static void read_entry(const struct input *data, const struct record_source *source, int kind)
{
    struct cluster_entry entry = {.revision = 7,
                                  .op_id = "key",
                                  .kind = kind,
                                  .layer = "ground",
                                  .has_rect = true,
                                  .rect = {1, 2, 2, 3},
                                  .data = data->at,
                                  .bytes = data->left};
    struct world_change change;
    struct err err = {.code = ERR_OK};
    enum world_change_kind known;
    bool is_of_model =
        change_kind_of_log(kind, &known) && change_kind(known)->scope == CHANGE_OF_MODEL;

    strcpy(entry.locale, is_of_model ? RECORD_MODELS : "land");
    record_change(&entry, source, &change, &err);
    check_error(&err);
    if (change.layer)
        check_layer(change.layer);
    world_drop(&change);
    free(change.context);
}

static bool take_past(void *context, const struct store_past *past, struct err *err)
{
    struct store_past unpacked = *past;
    void *plain = NULL;

    (void)context;
    CHECK(past->revision > 0 && (!past->has_before || past->has_rect));
    /* larger ones are refused by the same test, and would only take the fuzzer's memory */
    if (past->has_before && (uint64_t)past->rect.cols * past->rect.rows < 1 << 20)
        store_past_unpack(past->packed, &unpacked, &plain, &(struct err){.code = ERR_OK});
    free(plain);
    return err->code == ERR_OK;
}

static void read_locale(const struct input *data, const struct record_source *source)
{
    struct locale *locale;
    struct err err = {.code = ERR_OK};
    uint64_t revision;

    record_read_history(data->at, data->left, source, take_past, NULL, &err);
    check_error(&err);
    if (record_read_locale("land", 5, data->at, data->left, source, &locale, &revision, &err)) {
        check_error(&err);
        return;
    }
    CHECK(!locale || locale_validate(locale, &err));
    locale_unref(locale);
}

static void read_models(const struct input *data, const struct record_source *source)
{
    struct model_list *list;
    struct err err = {.code = ERR_OK};

    record_read_models(data->at, data->left, source, &list, &err);
    check_error(&err);
    model_list_unref(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct input data, pool;
    struct record_source source = {.get = get_blob, .context = &pool};
    size_t length;

    if (size < 3)
        return 0;
    length = bytes[1] | (size_t)bytes[2] << 8;
    if (length > size - 3)
        length = size - 3;
    data = (struct input){bytes + 3, length};
    pool = (struct input){bytes + 3 + length, size - 3 - length};
    if (bytes[0] & 16)
        read_models(&data, &source);
    else if (bytes[0] & 8)
        read_locale(&data, &source);
    else
        read_entry(&data, &source, (bytes[0] & 7) + (bytes[0] & 32 ? 8 : 0));
    return 0;
}
