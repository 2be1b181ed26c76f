/*
 * kota impact: a body hits the ground, and the fate of one that did.
 */
#include "client/batch.h"
#include "client/number.h"
#include "client/print.h"
#include "client/target.h"

#include <stdio.h>
#include <string.h>

struct impact_options {
    const char *model, *radius, *mass, *position, *velocity, *observer;
    bool is_waiting;
};

static enum err_code impact_body(const struct impact_options *o, cJSON *body, struct err *err)
{
    if (!o->mass || !o->position || !o->velocity || (o->model != NULL) == (o->radius != NULL))
        return err_set(err, ERR_BAD_INPUT,
                       "an impact needs --model MODEL or --radius M, --mass KG, --position X,Y,Z "
                       "and --velocity X,Y,Z; or the number of one to look at");
    if (batch_add_option(body, "radius", "radius", o->radius, 1, err) ||
        batch_add_option(body, "mass", "mass", o->mass, 1, err) ||
        batch_add_option(body, "position", "position", o->position, 3, err) ||
        batch_add_option(body, "velocity", "velocity", o->velocity, 3, err) ||
        batch_add_option(body, "observer", "observer", o->observer, 3, err))
        return err->code;
    if (!batch_add_text(body, "model", o->model) ||
        !batch_add_text(body, "until", o->is_waiting ? "written" : NULL))
        return err_set(err, ERR_NO_MEMORY, "out of memory");
    return ERR_OK;
}

static enum kota_exit print_answer(struct kota *kota, cJSON *answer)
{
    if (!kota->err.code)
        kota_print(kota, answer);
    cJSON_Delete(answer);
    return kota->err.code ? kota_failed(kota) : KOTA_OK;
}

static enum kota_exit impact_run(struct kota *kota)
{
    struct impact_options options = {0};
    cJSON *body = NULL, *answer = NULL;
    char rest[32] = "/impacts", path[KOTA_PATH_MAX];
    double number;
    char *text;
    enum kota_exit done;

    if (!kota_begin(kota, &options, 1, 2, &done))
        return done;
    if (kota_check_id(kota->words[0], &kota->err))
        return kota_misused(kota);
    if (kota->word_count == 2) {
        if (number_count(kota->words[1], 1, 9e15, &number, &kota->err))
            return kota_misused(kota);
        snprintf(rest, sizeof(rest), "/impacts/%.0f", number);
    }
    if (kota_locale_path(kota, rest, path))
        return kota_misused(kota);
    if (kota->word_count == 2) {
        call_get(kota->call, path, &answer, &kota->err);
        return print_answer(kota, answer);
    }
    body = cJSON_CreateObject();
    if (!body || impact_body(&options, body, &kota->err)) {
        cJSON_Delete(body);
        return kota_misused(kota);
    }
    text = cJSON_PrintUnformatted(body);
    cJSON_Delete(body);
    if (!text)
        err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
    else
        call_write(kota->call, "POST", path, "application/json", text, strlen(text), &answer,
                   &kota->err);
    cJSON_free(text);
    return print_answer(kota, answer);
}

#define OPTION(...) COMMAND_OPTION(struct impact_options, __VA_ARGS__)

static const struct kota_option impact_table[] = {
    OPTION(model, "model", "MODEL", "the body, a model of the daemon", .words = ":model"),
    OPTION(radius, "radius", "M", "or a ball of this radius"),
    OPTION(mass, "mass", "KG", "its mass"),
    OPTION(position, "position", "X,Y,Z", "of its centre of mass, on its way"),
    OPTION(velocity, "velocity", "X,Y,Z", "m/s; it falls when that is 0,0,0"),
    OPTION(observer, "observer", "X,Y,Z", "who looks: far away it is only a crater"),
    OPTION(is_waiting, "wait", NULL,
           "until granules have refined it, which may take longer than\n--timeout"),
    {0},
};

const struct kota_command command_impact = {
    .name = "impact",
    .synopsis = "ID [N] [OPTION…]",
    .summary = "a body hits the ground",
    .help =
        "It leaves a crater at once, which granules refine where that can be. Prints its fate;\n"
        "with its number N the fate of an earlier one.\n",
    .options = impact_table,
    .words = {":locale", NULL},
    .examples = (const char *const[]){"kota impact highlands --radius 0.5 --mass 1500 "
                                      "--position 1450,3000,400 --velocity 0,0,-15 "
                                      "--observer 1450,3000,2000",
                                      NULL},
    .run = impact_run,
};
