/*
 * Where OpenGL's drivers read and write beside the system's own folders, so that a process that
 * gives up the rest of the file system can leave these to them.
 */
#ifndef KOTA_SAND_DRIVER_PLACES_H
#define KOTA_SAND_DRIVER_PLACES_H

#include <stdbool.h>
#include <stddef.h>

enum { DRIVER_PLACES_MAX = 24, DRIVER_PLACE_MAX = 1024 };

struct driver_places {
    size_t count;
    char paths[DRIVER_PLACES_MAX][DRIVER_PLACE_MAX]; /* folders */
    bool is_written[DRIVER_PLACES_MAX];              /* a shader cache; else only read */
};

/*
 * The folders of LD_LIBRARY_PATH and of libglvnd's list of vendors, and the shader caches of Mesa
 * and NVIDIA, which are made where they are missing (of a home only what is below it; Mesa's is the
 * one of the user database). A path that is not absolute, too long, or beyond DRIVER_PLACES_MAX is
 * left out. Main thread, early.
 */
void driver_places_find(struct driver_places *out);

#endif
