/*
 * Poses of moved layers in the shared log (schema/002.sql).
 *
 * A pose is a state: the log has the last one of each layer, under a number that rises over all of
 * them. A reader asks for those above the number that it has seen.
 */
#include "replica/cluster_data.h"

#include <stdlib.h>
#include <string.h>

enum { POSE_VERSION = 1, POSE_BYTES = 1 + 8 * CLUSTER_POSE_NUMBERS, POSES_READ_MAX = 1024 };

enum err_code cluster_put_poses(struct cluster *cluster, const struct cluster_pose *poses,
                                size_t count, struct err *err)
{
    static const enum array_of of[] = {ARRAY_TEXT, ARRAY_TEXT, ARRAY_INT8, ARRAY_BYTES};
    struct array columns[4] = {{0}};
    struct params params = {0};

    if (cluster_ready(cluster, err))
        return err->code;
    params_text(&params, cluster->node);
    for (int i = 0; i < 4; i++)
        array_begin(&columns[i], of[i], count);
    for (size_t i = 0; i < count; i++) {
        uint8_t body[POSE_BYTES] = {POSE_VERSION};

        memcpy(body + 1, poses[i].numbers, sizeof poses[i].numbers);
        array_text(&columns[0], poses[i].locale);
        array_text(&columns[1], poses[i].layer);
        array_int8(&columns[2], (int64_t)poses[i].revision);
        array_bytes(&columns[3], body, sizeof body);
    }
    err->code = ERR_OK;
    for (int i = 0; i < 4; i++) {
        params_array(&params, &columns[i]);
        if (columns[i].has_failed)
            err_set(err, ERR_NO_MEMORY, "no memory for poses to the shared log");
    }
    if (err->code == ERR_OK)
        ask_one(cluster, STATEMENT_PUT_POSES, &params, NULL, NULL, err);
    for (int i = 0; i < 4; i++)
        array_free(&columns[i]);
    return err->code;
}

struct taken {
    struct cluster_pose *of;
    size_t count;
    bool has_failed, is_damaged;
};

static bool read_pose(const PGresult *result, int row, struct cluster_pose *out)
{
    int64_t number, revision;
    const uint8_t *body;
    size_t length;

    if (!result_int8(result, row, 0, &number) ||
        !result_text(result, row, 1, out->locale, sizeof out->locale) ||
        !result_text(result, row, 2, out->layer, sizeof out->layer) ||
        !result_int8(result, row, 3, &revision) || !result_bytes(result, row, 4, &body, &length) ||
        length != POSE_BYTES || body[0] != POSE_VERSION)
        return false;
    out->number = (uint64_t)number;
    out->revision = (uint64_t)revision;
    memcpy(out->numbers, body + 1, sizeof out->numbers);
    return true;
}

static void take_poses(struct ask *ask, unsigned index, const PGresult *result)
{
    struct taken *taken = ask->context;
    size_t rows = (size_t)PQntuples(result);

    (void)index;
    taken->of = calloc(rows + 1, sizeof *taken->of);
    taken->has_failed = !taken->of;
    while (taken->of && taken->count < rows && !taken->is_damaged) {
        taken->is_damaged = !read_pose(result, (int)taken->count, &taken->of[taken->count]);
        taken->count += !taken->is_damaged;
    }
}

enum err_code cluster_poses(struct cluster *cluster, uint64_t after, bool with_own,
                            struct cluster_pose **poses, size_t *count, struct err *err)
{
    struct taken taken = {0};
    struct params params = {0};

    *poses = NULL;
    *count = 0;
    params_int8(&params, (int64_t)after);
    params_text(&params, with_own ? "" : cluster->node);
    params_int8(&params, POSES_READ_MAX);
    err->code = ERR_OK;
    if (ask_one(cluster, STATEMENT_POSES, &params, take_poses, &taken, err) == ERR_OK) {
        if (taken.has_failed)
            err_set(err, ERR_NO_MEMORY, "no memory for the shared log's poses");
        else if (taken.is_damaged)
            err_set(err, ERR_DAMAGED, "the shared log's pose %zu cannot be", taken.count);
    }
    if (err->code != ERR_OK) {
        free(taken.of);
        return err->code;
    }
    *poses = taken.of;
    *count = taken.count;
    return ERR_OK;
}
