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

static void put_pose(struct json_writer *w, const struct patch_report_body *body, size_t index)
{
    json_put_integer(w, "body", index);
    json_put_numbers(w, "position", body->position, 3);
    json_put_numbers(w, "orientation", body->orientation, 4);
    json_put_numbers(w, "velocity", body->velocity, 3);
    json_put_numbers(w, "angular_velocity", body->angular_velocity, 3);
    json_put_numbers(w, "force", body->force_n, 3);
    json_put_numbers(w, "torque", body->torque_nm, 3);
}

static void put_bodies(struct json_writer *w, const struct patch_report *report)
{
    json_put_array(w, "bodies");
    for (size_t i = 0; i < report->body_count; i++) {
        const struct patch_report_body *body = &report->bodies[i];

        if (body->is_removed)
            continue;
        json_begin_object(w);
        json_put_string_or_null(w, "model", body->model);
        if (!body->model[0])
            json_put_number(w, "radius", body->ball_m);
        json_put_boolean(w, "held", !body->is_in);
        json_put_number(w, "mass", body->mass_kg);
        json_put_integer(w, "particles", body->particles);
        put_pose(w, body, i);
        json_put_string_or_null(w, "layer", body->layer); /* that it has become */
        json_end_object(w);
    }
    json_end_array(w);
}

static void put_timings(struct json_writer *w, const struct patch_report *report)
{
    json_put_object(w, "timings");
    numbers_put_phases(w, report->phase_ms);
    json_end_object(w);
}

static void put_ledger(struct json_writer *w, const struct patch_report *report)
{
    const struct mass_ledger *ledger = &report->ledger;

    if (!report->has_ledger) {
        json_put_null(w, "mass_ledger");
        return;
    }
    json_put_object(w, "mass_ledger");
    json_put_number(w, "volume_before_m3", ledger->volume_before_m3);
    json_put_number(w, "volume_after_m3", ledger->volume_after_m3);
    json_put_number(w, "moved_m3", ledger->moved_m3);
    json_put_number(w, "compacted_m3", ledger->compacted_m3);
    json_put_number(w, "lost_m3", ledger->lost_m3);
    json_end_object(w);
}

static void put_edit(struct json_writer *w, const struct patch_report *report)
{
    json_put_integer_or_null(w, "revision", report->has_revision, report->revision);
    json_key(w, "edit_rect");
    encode_rect(w, &report->rect);
}

static void put_estimate(struct json_writer *w, const struct patch_report *report)
{
    if (!report->has_estimate) {
        json_put_null(w, "estimated_ms");
        return;
    }
    json_put_object(w, "estimated_ms");
    json_put_number(w, "active", round(1e3 * report->estimate.active_s));
    json_put_number(w, "resting", round(1e3 * report->estimate.resting_s));
    json_end_object(w);
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
    json_put_number(w, "friction", (double)numbers->friction);
    json_put_number(w, "density", (double)numbers->density);
    json_put_number(w, "damping", (double)numbers->damping);
    json_put_number(w, "stiffness", (double)numbers->stiffness);
    json_end_object(w);
}

static void put_ground(struct json_writer *w, const struct patch_report *report)
{
    const struct convert_place *place = &report->place;
    const double center[2] = {place->low.x + place->size_m[0] / 2,
                              place->low.y + place->size_m[1] / 2};

    json_put_string(w, "layer", report->layer);
    json_put_string(w, "scale", scale_name(report->scale));
    put_material(w, report);
    json_put_numbers(w, "center", center, 2);
    json_put_numbers(w, "size", place->size_m, 2);
    json_put_number(w, "depth", place->depth_m);
    json_key(w, "rect");
    encode_rect(w, &place->samples);
    json_put_number(w, "granule_diameter", report->diameter_m);
    json_put_integer(w, "seed", report->seed);
    json_put_string(w, "fill", report->fill == CONVERT_STACKED ? "stacked" : "packed");
    json_put_string(w, "mode", report->mode == CONVERT_OVERWRITE ? "overwrite" : "difference");
}

void encode_patch(struct json_writer *w, const struct patch_report *report)
{
    json_begin_object(w);
    json_put_integer(w, "id", report->number);
    json_put_string(w, "locale", report->locale);
    json_put_string(w, "state", patch_state_name(report->state));
    json_put_string_or_null(w, "reason", report->reason);
    put_ground(w, report);
    json_put_integer(w, "granules", report->granules);
    json_put_integer(w, "particles", report->particles);
    json_put_integer(w, "asleep", report->asleep);
    json_put_integer(w, "steps", report->steps);
    json_put_number(w, "time_s", report->time_s);
    json_put_number(w, "age_s", report->age_s);
    json_put_number(w, "kinetic_energy_j", report->kinetic_energy_j);
    put_estimate(w, report);
    json_put_number(w, "behind_ms", round(1e3 * report->behind_s));
    json_put_boolean(w, "closing", report->is_closing);
    json_put_string_or_null(w, "leave", report->leaves ? "layer" : NULL);
    json_put_boolean(w, "capped", report->was_capped);
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
    json_put_integer(w, "id", report->number);
    json_put_string(w, "locale", report->locale);
    json_put_string(w, "state", patch_state_name(transition->state));
    json_put_number(w, "at_s", transition->at_s);
    if (patch_state_is_end(transition->state)) {
        json_put_string_or_null(w, "reason", report->reason);
        put_ledger(w, report);
        put_edit(w, report);
    }
    json_end_object(w);
}

void encode_patch_poses(struct json_writer *w, const struct patch_report *report)
{
    json_begin_object(w);
    json_put_integer(w, "id", report->number);
    json_put_number(w, "time_s", report->time_s);
    json_put_number(w, "kinetic_energy_j", report->kinetic_energy_j);
    json_put_number(w, "behind_ms", round(1e3 * report->behind_s));
    json_put_integer_or_null(w, "revision", report->has_revision, report->revision);
    json_put_array(w, "bodies");
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
