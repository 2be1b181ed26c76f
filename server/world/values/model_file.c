/*
 * Models of files. The store has only the file, and the model is measured again when the store is
 * loaded, so the two cannot disagree.
 */
#include "world/values/models.h"

#include "base/check.h"
#include "base/content_hash.h"

#include <stdlib.h>
#include <string.h>

static enum err_code measure(const void *bytes, size_t length, const struct polygon_limits *limits,
                             struct solid *out, struct err *err)
{
    struct polygon_set set = {0};

    if (polygon_decode(POLYGON_OBJ, bytes, length, NULL, limits, &set, err) == ERR_OK)
        solid_measure(set.vertices, set.corners, set.starts, set.polygon_count, out, err);
    polygon_set_free(&set);
    return err->code;
}

struct model *model_create(const char *id, const void *bytes, size_t length,
                           const struct polygon_limits *limits, struct err *err)
{
    struct solid solid;
    struct model *model;

    CHECK(world_id_is_valid(id, strlen(id)));
    err->code = ERR_OK;
    if (measure(bytes, length, limits, &solid, err))
        return NULL;
    model = calloc(1, sizeof *model);
    if (model)
        model->bytes = malloc(length);
    if (!model || !model->bytes) {
        free(model);
        err_set(err, ERR_NO_MEMORY, "no memory for model %s", id);
        return NULL;
    }
    memcpy(model->id, id, strlen(id) + 1);
    memcpy(model->bytes, bytes, length);
    model->length = length;
    model->solid = solid;
    model->refs = 1;
    content_hash(bytes, length, model->hash);
    return model;
}
