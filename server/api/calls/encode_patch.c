/*
 * The shapes of a patch: {"id","locale","layer","state","reason","scale","material","center",
 * "size","depth","rect","granule_diameter","granules","particles","asleep","steps","time_s",
 * "age_s","kinetic_energy_j","seed","fill","mode","estimated_ms":{"active","resting"},"behind_ms",
 * "closing","capped","bodies":[…],"timings",
 * "mass_ledger","revision","edit_rect"}.
 *
 * What is not there yet is null: ledger and revision before the first rest is written.
 */
#include "api/calls/encode_patch.h"

#include "api/encode.h"
#include "api/numbers.h"

#include <math.h>
#include <stddef.h>

static void put_numbers(struct json_writer *w, const char *key, const double *values, size_t count)
{
    json_key(w, key);
    json_begin_array(w);
    for (size_t i = 0; i < count; i++)
        json_number(w, values[i]);
    json_end_array(w);
}

static void put_number(struct json_writer *w, const char *key, double value)
{
    json_key(w, key);
    json_number(w, value);
}

static void put_integer(struct json_writer *w, const char *key, uint64_t value)
{
    json_key(w, key);
    json_integer(w, value);
}

static void put_string(struct json_writer *w, const char *key, const char *value)
{
    json_key(w, key);
    json_string(w, value);
}

static void put_boolean(struct json_writer *w, const char *key, bool value)
{
    json_key(w, key);
    json_boolean(w, value);
}

static void put_pose(struct json_writer *w, const struct patch_report_body *body, size_t index)
{
    put_integer(w, "body", index);
    put_numbers(w, "position", body->position, 3);
    put_numbers(w, "orientation", body->orientation, 4);
    put_numbers(w, "velocity", body->velocity, 3);
    put_numbers(w, "angular_velocity", body->angular_velocity, 3);
    put_numbers(w, "force", body->force_n, 3);
    put_numbers(w, "torque", body->torque_nm, 3);
}

/* That a body has become. */
static void put_layer(struct json_writer *w, const char *layer)
{
    json_key(w, "layer");
    json_string_or_null(w, layer);
}

static void put_bodies(struct json_writer *w, const struct patch_report *report)
{
    json_key(w, "bodies");
    json_begin_array(w);
    for (size_t i = 0; i < report->body_count; i++) {
        const struct patch_report_body *body = &report->bodies[i];

        if (body->is_removed)
            continue;
        json_begin_object(w);
        json_key(w, "model");
        json_string_or_null(w, body->model);
        if (!body->model[0])
            put_number(w, "radius", body->ball_m);
        put_boolean(w, "held", !body->is_in);
        put_number(w, "mass", body->mass_kg);
        put_integer(w, "particles", body->particles);
        put_pose(w, body, i);
        put_layer(w, body->layer);
        json_end_object(w);
    }
    json_end_array(w);
}

static void put_timings(struct json_writer *w, const struct patch_report *report)
{
    json_key(w, "timings");
    json_begin_object(w);
    numbers_put_phases(w, report->phase_ms);
    json_end_object(w);
}

static void put_ledger(struct json_writer *w, const struct patch_report *report)
{
    const struct mass_ledger *ledger = &report->ledger;

    json_key(w, "mass_ledger");
    if (!report->has_ledger) {
        json_null(w);
        return;
    }
    json_begin_object(w);
    put_number(w, "volume_before_m3", ledger->volume_before_m3);
    put_number(w, "volume_after_m3", ledger->volume_after_m3);
    put_number(w, "moved_m3", ledger->moved_m3);
    put_number(w, "compacted_m3", ledger->compacted_m3);
    put_number(w, "lost_m3", ledger->lost_m3);
    json_end_object(w);
}

static void put_revision(struct json_writer *w, const struct patch_report *report)
{
    json_key(w, "revision");
    if (report->has_revision)
        json_integer(w, report->revision);
    else
        json_null(w);
}

static void put_edit(struct json_writer *w, const struct patch_report *report)
{
    put_revision(w, report);
    json_key(w, "edit_rect");
    encode_rect(w, &report->rect);
}

static void put_estimate(struct json_writer *w, const struct patch_report *report)
{
    json_key(w, "estimated_ms");
    if (!report->has_estimate) {
        json_null(w);
        return;
    }
    json_begin_object(w);
    put_number(w, "active", round(1e3 * report->estimate.active_s));
    put_number(w, "resting", round(1e3 * report->estimate.resting_s));
    json_end_object(w);
}

static void put_reason(struct json_writer *w, const struct patch_report *report)
{
    json_key(w, "reason");
    json_string_or_null(w, report->reason);
}

static void put_material(struct json_writer *w, const struct patch_report *report)
{
    const struct material_numbers *numbers = &report->numbers;

    json_key(w, "material");
    if (report->material != MATERIAL_OWN) {
        json_string(w, material_name(report->material));
        return;
    }
    json_begin_object(w);
    put_number(w, "friction", (double)numbers->friction);
    put_number(w, "density", (double)numbers->density);
    put_number(w, "damping", (double)numbers->damping);
    put_number(w, "stiffness", (double)numbers->stiffness);
    json_end_object(w);
}

static void put_ground(struct json_writer *w, const struct patch_report *report)
{
    const struct convert_place *place = &report->place;
    const double center[2] = {place->low.x + place->size_m[0] / 2,
                              place->low.y + place->size_m[1] / 2};

    put_string(w, "layer", report->layer);
    put_string(w, "scale", scale_name(report->scale));
    put_material(w, report);
    put_numbers(w, "center", center, 2);
    put_numbers(w, "size", place->size_m, 2);
    put_number(w, "depth", place->depth_m);
    json_key(w, "rect");
    encode_rect(w, &place->samples);
    put_number(w, "granule_diameter", report->diameter_m);
    put_integer(w, "seed", report->seed);
    put_string(w, "fill", report->fill == CONVERT_STACKED ? "stacked" : "packed");
    put_string(w, "mode", report->mode == CONVERT_OVERWRITE ? "overwrite" : "difference");
}

void encode_patch(struct json_writer *w, const struct patch_report *report)
{
    json_begin_object(w);
    put_integer(w, "id", report->number);
    put_string(w, "locale", report->locale);
    put_string(w, "state", patch_state_name(report->state));
    put_reason(w, report);
    put_ground(w, report);
    put_integer(w, "granules", report->granules);
    put_integer(w, "particles", report->particles);
    put_integer(w, "asleep", report->asleep);
    put_integer(w, "steps", report->steps);
    put_number(w, "time_s", report->time_s);
    put_number(w, "age_s", report->age_s);
    put_number(w, "kinetic_energy_j", report->kinetic_energy_j);
    put_estimate(w, report);
    put_number(w, "behind_ms", round(1e3 * report->behind_s));
    put_boolean(w, "closing", report->is_closing);
    json_key(w, "leave");
    json_string_or_null(w, report->leaves ? "layer" : NULL);
    put_boolean(w, "capped", report->was_capped);
    put_bodies(w, report);
    put_timings(w, report);
    put_ledger(w, report);
    put_edit(w, report);
    json_end_object(w);
}

void encode_patch_state(struct json_writer *w, const struct patch_report *report,
                        const struct patch_transition *transition)
{
    json_begin_object(w);
    put_integer(w, "id", report->number);
    put_string(w, "locale", report->locale);
    put_string(w, "state", patch_state_name(transition->state));
    put_number(w, "at_s", transition->at_s);
    if (patch_state_is_end(transition->state)) {
        put_reason(w, report);
        put_ledger(w, report);
        put_edit(w, report);
    }
    json_end_object(w);
}

void encode_patch_poses(struct json_writer *w, const struct patch_report *report)
{
    json_begin_object(w);
    put_integer(w, "id", report->number);
    put_number(w, "time_s", report->time_s);
    put_number(w, "kinetic_energy_j", report->kinetic_energy_j);
    put_number(w, "behind_ms", round(1e3 * report->behind_s));
    put_revision(w, report);
    json_key(w, "bodies");
    json_begin_array(w);
    for (size_t i = 0; i < report->body_count; i++) {
        if (!report->bodies[i].is_in)
            continue;
        json_begin_object(w);
        put_pose(w, &report->bodies[i], i);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
}
