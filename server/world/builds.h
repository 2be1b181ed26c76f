/*
 * Builds of meshes that are under way: uploads, edits of polygons, and trees that are rebuilt in
 * the background. For those who wait, and for operators.
 */
#ifndef KOTA_WORLD_BUILDS_H
#define KOTA_WORLD_BUILDS_H

#include "base/pace.h"
#include "world/values/layer.h"

#include <pthread.h>

enum build_kind { BUILD_UPLOAD, BUILD_EDIT, BUILD_REBUILD };

/* By enum build_kind: "upload", "edit", "rebuild". */
extern const char *const build_kind_name[];

/* One build; opaque but for `progress`, which its pace has. In the memory of the one who builds. */
struct build {
    struct build *next;
    char locale[WORLD_ID_MAX + 1], layer[WORLD_ID_MAX + 1];
    enum build_kind kind;
    uint64_t start_ns;
    struct pace_progress progress; /* items are polygons */
};

/* Those of a world. */
struct builds {
    pthread_mutex_t mutex; /* guards the list */
    struct build *first;
};

/* Any thread; build_end before the memory of the build goes. O(builds). */
void build_begin(struct builds *builds, struct build *build, enum build_kind kind,
                 const char *locale, const char *layer);
void build_end(struct builds *builds, struct build *build);

/* The pace asks as `pace` does and reports to the build; all of the work is the build's. */
struct pace build_pace(struct build *build, struct pace pace);

/* One build as it is now. */
struct build_state {
    char locale[WORLD_ID_MAX + 1], layer[WORLD_ID_MAX + 1];
    enum build_kind kind;
    uint64_t polygons; /* 0: not known yet, the file is being decoded */
    double done;       /* 0 to 1: the mesh is made, and being stored */
    double elapsed_ms;
};

/* The oldest first, out[most]; returns how many there are in all. Any thread. */
size_t builds_list(struct builds *builds, struct build_state *out, size_t most);

#endif
