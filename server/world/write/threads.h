/*
 * Threads for work in parts (terrain/crew.h).
 */
#ifndef KOTA_WORLD_THREADS_H
#define KOTA_WORLD_THREADS_H

#include "terrain/crew.h"

enum { THREADS_MAX = 64 };

struct threads {
    struct crew crew; /* &threads.crew */
    unsigned count;   /* the caller's among them */
};

struct threads threads_of(unsigned count);

#endif
