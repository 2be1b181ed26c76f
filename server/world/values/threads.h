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

/* As many as the machine has processors. */
struct threads threads_of_machine(void);

#endif
