/* The demo world: all landscapes and the locales of polygons, made and written. */
#ifndef KOTA_DEMO_H
#define KOTA_DEMO_H

#include "deploy/demo/world_folder.h"

struct demo_options {
    const char *dir;
    uint32_t size, seed, threads;
    enum ground_format format;
};

/*
 * Makes every locale and writes them as one world directory, all or nothing. Tells on standard
 * error how far it is when that is a terminal. Errors as world_folder_open and ERR_NO_MEMORY.
 * About 6 s and 160 MiB for a size of 2048 on two threads.
 */
enum err_code demo_write(const struct demo_options *options, struct err *err);

#endif
