/*
 * Poses of moved layers.
 *
 * A pose changes many times a second and is written once in a while, many of them in a transaction.
 * So it has a table of its own: the layer's row, which names its files, is not written. A row is
 * written whole and has a checksum: translation and yaw, then a rotation where it has one. A row
 * without its mesh is damage, as rows are removed with their layers in one transaction.
 */
#include "store/store_data.h"

#include "base/check.h"
#include "terrain/motion.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { YAW_NUMBERS = 4 }; /* of a row */

static enum err_code put_row(struct store *store, const char *locale, const char *layer,
                             const double *pose, size_t numbers, uint64_t seq, struct err *err)
{
    sqlite3_stmt *write = store_statement(
        store,
        "INSERT INTO pose VALUES (?1, ?2, ?3, ?4, row_crc(?1, ?2, ?3, ?4)) ON CONFLICT (locale, "
        "layer) DO UPDATE SET pose = excluded.pose, seq = excluded.seq, crc = excluded.crc "
        "WHERE crc <> excluded.crc OR seq <> excluded.seq OR pose <> excluded.pose",
        err);

    if (!write)
        return err->code;
    sqlite3_bind_text(write, 1, locale, -1, SQLITE_STATIC);
    sqlite3_bind_text(write, 2, layer, -1, SQLITE_STATIC);
    sqlite3_bind_blob(write, 3, pose, (int)(numbers * sizeof *pose), SQLITE_STATIC);
    sqlite3_bind_int64(write, 4, (int64_t)seq);
    return store_run(store, write, "cannot write a pose", err);
}

size_t pose_numbers(const struct store_pose *pose, double numbers[POSE_NUMBERS_MAX])
{
    const double *q = pose->rotation;
    bool is_tilted = q[0] != 0 || q[1] != 0 || q[2] != 0 || q[3] != 0;

    memcpy(numbers, pose->translation, sizeof pose->translation);
    numbers[3] = pose->yaw_deg;
    memcpy(numbers + YAW_NUMBERS, q, sizeof pose->rotation);
    return is_tilted ? POSE_NUMBERS_MAX : YAW_NUMBERS;
}

enum err_code store_put_pose(struct store *store, const char *locale, const char *layer,
                             const struct store_pose *pose, struct err *err)
{
    const struct row_cache_layer *there = row_cache_layer(&store->cache, locale, layer);
    double row[POSE_NUMBERS_MAX];
    size_t numbers = pose_numbers(pose, row);

    CHECK(store->is_in_transaction && !store->has_failed);
    CHECK(there && there->kind == STORE_MESH);
    return put_row(store, locale, layer, row, numbers, pose->transform_seq, err);
}

enum err_code store_put_transform_seq(struct store *store, const char *locale, uint64_t seq,
                                      struct err *err)
{
    static const double none[YAW_NUMBERS] = {0};

    CHECK(store->is_in_transaction && !store->has_failed);
    return put_row(store, locale, "", none, YAW_NUMBERS, seq, err);
}

enum err_code store_drop_pose(struct store *store, const char *locale, const char *layer,
                              struct err *err)
{
    sqlite3_stmt *drop =
        store_statement(store, "DELETE FROM pose WHERE locale = ?1 AND layer = ?2", err);

    CHECK(store->is_in_transaction && !store->has_failed);
    if (!drop)
        return err->code;
    sqlite3_bind_text(drop, 1, locale, -1, SQLITE_STATIC);
    sqlite3_bind_text(drop, 2, layer, -1, SQLITE_STATIC);
    return store_run(store, drop, "cannot remove a pose", err);
}

enum err_code poses_drop_locale(struct store *store, const char *locale, struct err *err)
{
    sqlite3_stmt *drop = store_statement(store, "DELETE FROM pose WHERE locale = ?1", err);

    if (!drop)
        return err->code;
    sqlite3_bind_text(drop, 1, locale, -1, SQLITE_STATIC);
    return store_run(store, drop, "cannot remove poses", err);
}

/* ---- load ------------------------------------------------------------------------------------ */

bool pose_column(sqlite3_stmt *row, int column, struct store_pose *out)
{
    double numbers[POSE_NUMBERS_MAX] = {0}, length;

    if (!column_bytes(row, column, numbers, YAW_NUMBERS * sizeof *numbers) &&
        (!column_bytes(row, column, numbers, sizeof numbers) ||
         !rotation_is_unit(numbers + YAW_NUMBERS, &length)))
        return false;
    for (int i = 0; i < 3; i++)
        if (!(fabs(numbers[i]) <= POSE_TRANSLATION_MAX_M))
            return false;
    memcpy(out->translation, numbers, sizeof out->translation);
    out->yaw_deg = numbers[3];
    memcpy(out->rotation, numbers + YAW_NUMBERS, sizeof out->rotation);
    return fabs(out->yaw_deg) <= POSE_YAW_MAX_DEG;
}

/* One row of a locale; false when it cannot be. */
static bool take_row(sqlite3_stmt *row, uint64_t *transform_seq, struct store_loaded_layer *layers,
                     size_t count, char *id, size_t id_size)
{
    struct store_pose pose;
    struct store_loaded_layer *layer = NULL;
    uint64_t seq = (uint64_t)sqlite3_column_int64(row, 2);

    snprintf(id, id_size, "?");
    if (!column_text(row, 0, id, id_size) || sqlite3_column_int(row, 3) != 1 ||
        !pose_column(row, 1, &pose))
        return false;
    if (id[0] == '\0') {
        *transform_seq = seq;
        return true;
    }
    for (size_t i = 0; i < count; i++)
        if (strcmp(layers[i].id, id) == 0)
            layer = &layers[i];
    if (!layer || layer->kind != STORE_MESH)
        return false;
    pose.transform_seq = seq;
    layer->has_pose = true;
    layer->pose = pose;
    return true;
}

enum err_code poses_load(struct store *store, const char *locale, uint64_t *transform_seq,
                         struct store_loaded_layer *layers, size_t count, struct err *err)
{
    static const char sql[] = "SELECT layer, pose, seq, crc = row_crc(locale, layer, pose, seq) "
                              "FROM pose WHERE locale = ?1";
    sqlite3_stmt *row = NULL;
    char id[STORE_ID_MAX + 1], clean[STORE_ID_MAX + 1];
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &row, NULL);

    *err = (struct err){0};
    *transform_seq = 0;
    if (rc == SQLITE_OK) {
        sqlite3_bind_text(row, 1, locale, -1, SQLITE_STATIC);
        while ((rc = sqlite3_step(row)) == SQLITE_ROW)
            if (!take_row(row, transform_seq, layers, count, id, sizeof id) && !err->code) {
                store_clean(id, clean, sizeof clean);
                err_set(err, ERR_DAMAGED, "locale %s, layer %s: its pose is damaged (checksum)",
                        locale, clean);
            }
    }
    if (rc != SQLITE_DONE && !err->code)
        store_sqlite_error(store, store->db, rc, false, "poses cannot be read", err);
    sqlite3_finalize(row);
    return err->code;
}

long poses_without_locale(struct store *store)
{
    static const char sql[] = "SELECT count(*) FROM pose WHERE locale NOT IN "
                              "(SELECT id FROM locale WHERE is_deleted = 0)";
    sqlite3_stmt *row = NULL;
    long count = -1;

    if (sqlite3_prepare_v2(store->db, sql, -1, &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW)
        count = (long)sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return count;
}
