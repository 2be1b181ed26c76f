/*
 * kota check: does a daemon answer, and answer right?
 *
 * For a new installation, after a move of its data, or behind a new proxy. It calls the probes, the
 * limits and the statistics, and for each locale the same random points in every form, with the
 * heights computed here again (check_ground.h). It changes nothing. What a data directory holds is
 * checked where it lies, by `kotad --check --data DIR`.
 */
#include "client/check_ground.h"
#include "client/kota.h"
#include "client/number.h"
#include "client/print.h"
#include "client/progress.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define POINTS_MAX 10000
#define SAMPLES_MAX ((size_t)1 << 24)

struct check_options {
    const char *points, *singles, *seed;
};

struct check {
    struct kota *kota;
    struct table *table;
    struct progress progress;
    size_t done, failed;
};

static bool report(void *context, const char *what, const char *locale,
                   const struct check_result *result)
{
    struct check *check = context;
    cJSON *line;

    check->done++;
    check->failed += !result->is_good;
    progress_report(&check->progress, (double)check->done, 0);
    if (!check->kota->is_json) {
        table_text(check->table, result->is_good ? "ok" : "WRONG");
        table_text(check->table, what);
        table_text(check->table, locale ? locale : "-");
        table_text(check->table, result->detail);
        return true;
    }
    line = cJSON_CreateObject();
    cJSON_AddStringToObject(line, "check", what);
    if (locale)
        cJSON_AddStringToObject(line, "locale", locale);
    else
        cJSON_AddNullToObject(line, "locale");
    cJSON_AddBoolToObject(line, "ok", result->is_good);
    cJSON_AddStringToObject(line, "detail", result->detail);
    print_json_line(stdout, line, &check->kota->err);
    cJSON_Delete(line);
    return check->kota->err.code == ERR_OK;
}

/* A document of the daemon that must be there, with one member at least. */
static bool look(struct check *check, const char *what, const char *path, const char *member)
{
    struct check_result result = {.is_good = false};
    struct err err = {0};
    cJSON *answer = NULL;

    if (call_get(check->kota->call, path, &answer, &err))
        snprintf(result.detail, sizeof(result.detail), "%.190s", err.msg);
    else if (!cJSON_GetObjectItemCaseSensitive(answer, member))
        snprintf(result.detail, sizeof(result.detail), "%s has no member \"%s\"", path, member);
    else
        result.is_good = true;
    if (result.is_good)
        snprintf(result.detail, sizeof(result.detail), "%s", path);
    cJSON_Delete(answer);
    return report(check, what, NULL, &result) && result.is_good;
}

static void check_locales(struct check *check, struct check_ground *ground)
{
    struct kota *kota = check->kota;
    cJSON *locales;
    const cJSON *locale;

    if (kota->word_count > 0) {
        for (size_t i = 0; i < kota->word_count && !kota->err.code; i++)
            check_ground_run(ground, kota->words[i], &kota->err);
        return;
    }
    if (kota_get_locales(kota, false, &locales))
        return;
    cJSON_ArrayForEach(locale, locales)
    {
        const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(locale, "id"));

        if (!id || kota_check_id(id, &kota->err) || check_ground_run(ground, id, &kota->err))
            break;
    }
    cJSON_Delete(locales);
}

static enum kota_exit check_all(struct kota *kota, struct check_ground *ground)
{
    static const char *const headings[] = {"RESULT", "CHECK", "LOCALE", "DETAIL"};
    struct check check = {.kota = kota, .table = table_open(headings, 4)};

    if (!check.table) {
        err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
        return kota_failed(kota);
    }
    ground->call = kota->call;
    ground->report = report;
    ground->context = &check;
    progress_begin(&check.progress, "check", "checks", true);
    /* A daemon that is not there fails once, not in each check. */
    if (look(&check, "alive", "/livez", "status")) {
        look(&check, "ready", "/readyz", "status");
        look(&check, "limits", "/v1/limits", "locales_max");
        look(&check, "statistics", "/v1/stats", "http");
        check_locales(&check, ground);
    }
    progress_end(&check.progress);
    if (!kota->is_json && table_print(check.table, stdout, &kota->err))
        check.failed++;
    table_close(check.table);
    if (!kota->err.code && check.failed)
        err_set(&kota->err, ERR_INTERNAL, "%zu of %zu checks found something wrong (--seed %llu)",
                check.failed, check.done, (unsigned long long)ground->seed);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

static enum kota_exit check_run(struct kota *kota)
{
    struct check_options options = {0};
    struct check_ground ground = {.samples_max = SAMPLES_MAX};
    double points = 1000, singles = 20, seed = 0;
    uint32_t random = 1;
    enum kota_exit done;

    if (!kota_begin(kota, &options, 0, SIZE_MAX, &done))
        return done;
    for (size_t i = 0; i < kota->word_count; i++)
        if (kota_check_id(kota->words[i], &kota->err))
            return kota_misused(kota);
    if (getrandom(&random, sizeof(random), 0) == (ssize_t)sizeof(random))
        seed = random;
    if ((options.points && number_count(options.points, 1, POINTS_MAX, &points, &kota->err)) ||
        (options.singles && number_count(options.singles, 0, POINTS_MAX, &singles, &kota->err)) ||
        (options.seed && number_count(options.seed, 0, 9e15, &seed, &kota->err)))
        return kota_misused(kota);
    ground.points = (size_t)points;
    ground.singles = (size_t)singles;
    ground.seed = (uint64_t)seed;
    return check_all(kota, &ground);
}

#define OPTION(...) COMMAND_OPTION(struct check_options, __VA_ARGS__)

static const struct kota_option check_table[] = {
    OPTION(points, "points", "N", "of each batch (1000)"),
    OPTION(singles, "singles", "N", "of them are asked one by one, too (20)"),
    OPTION(seed, "seed", "N", "which points (other ones each time)"),
    {0},
};

const struct kota_command command_check = {
    .name = "check",
    .synopsis = "[ID…]",
    .summary = "whether a daemon answers, and answers right",
    .help =
        "Asks the probes, the limits and the statistics. Then asks random points of each locale,\n"
        "or of those named: heights, contacts, rays and containment, as JSON, as float64 and one\n"
        "by one, which must be the same bits; and computes the heights of each heightfield once\n"
        "more from its samples. Changes nothing. Exit code 1 when anything is wrong. A data\n"
        "directory is checked by kotad --check --data DIR.\n",
    .options = check_table,
    .words = {":locale", NULL},
    .examples = (const char *const[]){"kota check --points 200", NULL},
    .run = check_run,
};
