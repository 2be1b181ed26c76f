/*
 * The engines that the scenes run on.
 */
#include "sandscene/engines.h"

#include "sand/solver.h"

struct sand_engine *scene_engine_create(const char *gpu, const struct sand_engine_config *config,
                                        struct err *err)
{
    if (!gpu)
        return solver_create(config, err);
    err_set(err, ERR_NOT_IMPLEMENTED, "no OpenGL engine in this build");
    return NULL;
}

void scene_engines_close(void)
{
}
