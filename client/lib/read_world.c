/*
 * Answers about the world: locales, layers, edits, patches.
 *
 * Texts are borrowed from the answer's document. Where an answer may be one thing or a list of
 * them, index 0 of the one is the thing itself.
 */
#include "client/lib/read.h"

#include <math.h>
#include <string.h>

/* The index-th of a list, or the document itself when it is no list. */
static const cJSON *at_index(struct kota_answer *answer, const char *list, size_t index)
{
    const cJSON *document = read_document(answer);
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(document, list);
    const cJSON *item = array || index > 0
                            ? index <= INT32_MAX ? cJSON_GetArrayItem(array, (int)index) : NULL
                            : document;

    if (document && !cJSON_IsObject(item))
        read_fail(answer, "the answer has no item %zu of %s", index, list);
    return cJSON_IsObject(item) ? item : NULL;
}

static uint64_t read_revision(const cJSON *object)
{
    double revision = read_double(object, "revision");

    return revision >= 0 && revision <= 9007199254740992.0 ? (uint64_t)revision : 0;
}

/* ---- locales and layers ---------------------------------------------------------------------- */

bool kota_read_locale_count(struct kota_answer *answer, size_t *count)
{
    const cJSON *document = read_document(answer);
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(document, "locales");

    if (!document)
        return false;
    if (cJSON_IsArray(array))
        *count = (size_t)cJSON_GetArraySize(array);
    else if (read_string(document, "id"))
        *count = 1;
    else
        return read_fail(answer, "the answer is no locale");
    return true;
}

struct kota_request *kota_locales_next(struct kota_answer *answer)
{
    const char *path = read_string(read_document(answer), "next");

    return path ? kota_request_new("GET", path) : NULL;
}

bool kota_read_locale(struct kota_answer *answer, size_t index, struct kota_locale *locale)
{
    static const char *const words[] = {"anti", "main", "alternating", NULL};
    const cJSON *item = at_index(answer, "locales", index);
    const cJSON *placement = cJSON_GetObjectItemCaseSensitive(item, "placement");
    const cJSON *layers = cJSON_GetObjectItemCaseSensitive(item, "layers");
    int place;

    if (!item)
        return false;
    locale->id = read_string(item, "id");
    locale->title = read_string(item, "title");
    locale->revision = read_revision(item);
    if (!locale->id || !read_vector(item, "gravity", locale->gravity, 3) ||
        !read_vector(placement, "translation", locale->translation, 3) ||
        !read_vector(placement, "rotation", locale->rotation, 4) ||
        !read_word(item, "triangulation", words, &place) || (layers && !cJSON_IsArray(layers)))
        return read_fail(answer, "the answer is no locale");
    locale->triangulation = (enum kota_triangulation)place;
    locale->has_bounds = read_box(item, "bounds", locale->min, locale->max);
    locale->open_sky = read_true(item, "open_sky");
    locale->memory_bytes = read_double(item, "memory_bytes");
    locale->layer_count = (size_t)cJSON_GetArraySize(layers);
    return true;
}

bool kota_read_layer(struct kota_answer *answer, size_t index, size_t layer_index,
                     struct kota_layer *layer)
{
    static const char *const kinds[] = {"heightfield", "mesh", NULL};
    static const char *const frames[] = {"cartesian", "spherical", "cylindrical", NULL};
    static const char *const gravities[] = {"in", "out", NULL};
    const cJSON *item = at_index(answer, "locales", index);
    const cJSON *layers = cJSON_GetObjectItemCaseSensitive(item, "layers");
    const char *role;
    int place;

    if (!item)
        return false;
    item = layer_index <= INT32_MAX ? cJSON_GetArrayItem(layers, (int)layer_index) : NULL;
    layer->id = read_string(item, "id");
    if (!layer->id || !read_word(item, "kind", kinds, &place))
        return read_fail(answer, "the answer has no layer %zu", layer_index);
    layer->kind = (enum kota_layer_kind)place;
    role = read_string(item, "role");
    layer->is_ceiling = role && strcmp(role, "ceiling") == 0;
    layer->has_bounds = read_box(item, "bounds", layer->min, layer->max);
    layer->cols = read_uint(item, "cols");
    layer->rows = read_uint(item, "rows");
    read_vector(item, "spacing", layer->spacing, 2);
    read_vector(item, "origin", layer->origin, 2);
    layer->polygons = read_uint(item, "polygons");
    layer->memory_bytes = read_double(item, "memory_bytes");
    layer->frame =
        read_word(item, "frame", frames, &place) ? (enum kota_frame)place : KOTA_CARTESIAN;
    layer->gravity = read_word(item, "gravity", gravities, &place)
                         ? (enum kota_layer_gravity)(place + 1)
                         : KOTA_GRAVITY_USUAL;
    return true;
}

/* ---- edits ----------------------------------------------------------------------------------- */

bool kota_read_edit(struct kota_answer *answer, struct kota_edit *edit)
{
    const cJSON *document = read_document(answer);

    if (!document)
        return false;
    edit->revision = read_revision(document);
    if (!edit->revision || !read_uints(document, "rect", edit->rect, 4))
        return read_fail(answer, "the answer names no revision and rect");
    return true;
}

bool kota_read_diff(struct kota_answer *answer, uint32_t (*rects)[4], size_t capacity,
                    size_t *count)
{
    const cJSON *document = read_document(answer), *item;
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(document, "rects");
    size_t i = 0;

    if (!document)
        return false;
    if (!cJSON_IsArray(array))
        return read_fail(answer, "the answer has no rects");
    cJSON_ArrayForEach(item, array)
    {
        for (int j = 0; j < 4 && i < capacity; j++) {
            const cJSON *number = cJSON_GetArrayItem(item, j);

            if (!cJSON_IsNumber(number) || number->valuedouble < 0 ||
                number->valuedouble > (double)UINT32_MAX)
                return read_fail(answer, "rect %zu is none", i);
            rects[i][j] = (uint32_t)number->valuedouble;
        }
        i++;
    }
    *count = i;
    return true;
}

/* ---- patches --------------------------------------------------------------------------------- */

bool kota_read_patch(struct kota_answer *answer, size_t index, struct kota_patch *patch)
{
    static const char *const states[] = {"filling", "settling",  "active", "resting", "writing",
                                         "written", "discarded", "failed", NULL};
    const cJSON *item = at_index(answer, "patches", index);
    const cJSON *bodies = cJSON_GetObjectItemCaseSensitive(item, "bodies");
    int place;

    if (!item)
        return false;
    patch->id = read_uint(item, "id");
    if (patch->id == 0 || !read_word(item, "state", states, &place))
        return read_fail(answer, "the answer is no patch");
    patch->state = (enum kota_patch_state)place;
    patch->reason = read_string(item, "reason");
    read_uints(item, "rect", patch->rect, 4);
    patch->granules = read_double(item, "granules");
    patch->steps = read_double(item, "steps");
    patch->time_s = read_double(item, "time_s");
    patch->kinetic_energy_j = read_double(item, "kinetic_energy_j");
    patch->revision = read_revision(item);
    patch->body_count = (size_t)cJSON_GetArraySize(bodies);
    return true;
}

bool kota_read_impact(struct kota_answer *answer, struct kota_impact *impact)
{
    static const char *const states[] = {"accepted", "written", NULL};
    const cJSON *item = at_index(answer, "impacts", 0);
    const char *how;
    double number;
    int state;

    if (!item)
        return false;
    number = read_double(item, "impact");
    if (!(number >= 1) || !read_word(item, "state", states, &state))
        return read_fail(answer, "the answer is no impact");
    how = read_string(item, "how");
    *impact = (struct kota_impact){.number = (uint64_t)number,
                                   .is_written = state == 1,
                                   .by_patch = how && strcmp(how, "patch") == 0,
                                   .patch = read_uint(item, "patch"),
                                   .revision = read_revision(item),
                                   .reason = read_string(item, "reason")};
    return true;
}

bool kota_read_pose(struct kota_answer *answer, size_t index, size_t body_index,
                    struct kota_pose *pose)
{
    const cJSON *item = at_index(answer, "patches", index);
    const cJSON *bodies = cJSON_GetObjectItemCaseSensitive(item, "bodies");

    if (!item)
        return false;
    item = body_index <= INT32_MAX ? cJSON_GetArrayItem(bodies, (int)body_index) : NULL;
    if (!cJSON_IsObject(item))
        return read_fail(answer, "the patch has no body %zu", body_index);
    pose->body = read_uint(item, "body");
    pose->model = read_string(item, "model");
    pose->held = read_true(item, "held");
    if (!read_vector(item, "position", pose->position, 3) ||
        !read_vector(item, "orientation", pose->orientation, 4) ||
        !read_vector(item, "velocity", pose->velocity, 3) ||
        !read_vector(item, "angular_velocity", pose->angular_velocity, 3))
        return read_fail(answer, "body %zu has no pose", body_index);
    memset(pose->force_n, 0, sizeof(pose->force_n));
    memset(pose->torque_nm, 0, sizeof(pose->torque_nm));
    read_vector(item, "force", pose->force_n, 3);
    read_vector(item, "torque", pose->torque_nm, 3);
    return true;
}
