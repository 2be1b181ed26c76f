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
    return store_exec(
        store,
        "INSERT INTO pose VALUES (?1, ?2, ?3, ?4, row_crc(?1, ?2, ?3, ?4)) ON CONFLICT (locale, "
        "layer) DO UPDATE SET pose = excluded.pose, seq = excluded.seq, crc = excluded.crc "
        "WHERE crc <> excluded.crc OR seq <> excluded.seq OR pose <> excluded.pose",
        SQL_VALUES(sql_text(locale), sql_text(layer), sql_blob(pose, numbers * sizeof *pose),
                   sql_integer(seq)),
        "cannot write a pose", err);
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
    CHECK(store->is_in_transaction && !store->has_failed);
    return store_exec(store, "DELETE FROM pose WHERE locale = ?1 AND layer = ?2",
                      SQL_VALUES(sql_text(locale), sql_text(layer)), "cannot remove a pose", err);
}

enum err_code poses_drop_locale(struct store *store, const char *locale, struct err *err)
{
    return store_exec(store, "DELETE FROM pose WHERE locale = ?1", SQL_VALUES(sql_text(locale)),
                      "cannot remove poses", err);
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
    struct rows rows = rows_open(store->db, sql, SQL_VALUES(sql_text(locale)));
    char id[STORE_ID_MAX + 1], clean[STORE_ID_MAX + 1];
    int rc;

    *err = (struct err){0};
    *transform_seq = 0;
    while (rows_next(&rows))
        if (!take_row(rows.row, transform_seq, layers, count, id, sizeof id) && !err->code) {
            store_clean(id, clean, sizeof clean);
            err_set(err, ERR_DAMAGED, "locale %s, layer %s: its pose is damaged (checksum)", locale,
                    clean);
        }
    rc = rows_close(&rows);
    if (rc != SQLITE_DONE && !err->code)
        store_sqlite_error(store, store->db, rc, false, "poses cannot be read", err);
    return err->code;
}

long poses_without_locale(struct store *store)
{
    static const char sql[] = "SELECT count(*) FROM pose WHERE locale NOT IN "
                              "(SELECT id FROM locale WHERE is_deleted = 0)";
    struct rows rows = rows_open(store->db, sql, NULL);
    long count = rows_next(&rows) ? (long)sqlite3_column_int64(rows.row, 0) : -1;

    rows_close(&rows);
    return count;
}
