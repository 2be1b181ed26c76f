/*
 * Work in parts, on the caller's thread or on several. The caller has the threads (terrain/ knows
 * none).
 */
#ifndef KOTA_TERRAIN_CREW_H
#define KOTA_TERRAIN_CREW_H

#include "base/pace.h"

/* Ends of the stages of a mesh's build, for pace_stage: shares of its time (mesh_scenes.h). */
#define STAGE_PIECES 0.25
#define STAGE_FLOORS 0.4
#define STAGE_CELLS 0.7
#define STAGE_NODES 0.95
#define STAGE_BLOCKS 1.0

struct crew {
    /* crew_run, on several threads */
    enum err_code (*run)(struct crew *crew, struct pace *pace,
                         void (*work)(void *context, size_t part), void *context, size_t parts,
                         struct err *err);
};

/*
 * Calls work(context, part) for each part of 0 .. parts - 1. Parts may run at once, so they share
 * nothing that they write. The caller's thread asks the pace (NULL: no limit) between its parts;
 * after its error no part is begun. Returns that error, when no part runs any more. err->code is
 * ERR_OK before.
 *
 * crew  NULL: on the caller's thread
 */
static inline enum err_code crew_run(struct crew *crew, struct pace *pace,
                                     void (*work)(void *context, size_t part), void *context,
                                     size_t parts, struct err *err)
{
    if (crew)
        return crew->run(crew, pace, work, context, parts, err);
    for (size_t i = 0; i < parts && err->code == ERR_OK; i++) {
        work(context, i); /* which may ask the pace, too */
        pace_reach(pace, i + 1, parts);
        if (err->code == ERR_OK)
            pace_step(pace, PACE_UNITS, err);
    }
    return err->code;
}

#endif
