/*
 * Folders of OpenGL's drivers: see driver_places.h.
 *
 * Without its cache Mesa compiles all shaders anew at each start, about a second of processor time;
 * a driver that stands in a folder of its own is named by LD_LIBRARY_PATH or by
 * __EGL_VENDOR_LIBRARY_DIRS and could not be loaded at all.
 */
#include "sand/driver_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void add(struct driver_places *out, const char *folder, size_t length, const char *below,
                bool is_written)
{
    char *path = out->paths[out->count < DRIVER_PLACES_MAX ? out->count : 0];

    if (out->count == DRIVER_PLACES_MAX || length == 0 || folder[0] != '/' ||
        length + strlen(below) + 1 > DRIVER_PLACE_MAX)
        return;
    memcpy(path, folder, length);
    strcpy(path + length, below);
    if (is_written)
        mkdir(path, 0700); /* it may be there, or its parent may not: both are fine */
    out->is_written[out->count++] = is_written;
}

static void add_list(struct driver_places *out, const char *list)
{
    while (list && *list) {
        size_t length = strcspn(list, ":");

        add(out, list, length, "", false);
        list += length + (list[length] == ':');
    }
}

void driver_places_find(struct driver_places *out)
{
    const char *home = getenv("HOME"), *caches = getenv("XDG_CACHE_HOME");
    const char *chosen = getenv("MESA_SHADER_CACHE_DIR"),
               *nvidia = getenv("__GL_SHADER_DISK_CACHE_PATH");

    out->count = 0;
    if (chosen)
        add(out, chosen, strlen(chosen), "", true);
    if (nvidia)
        add(out, nvidia, strlen(nvidia), "", true);
    if (caches)
        add(out, caches, strlen(caches), "/mesa_shader_cache", true);
    else if (home)
        add(out, home, strlen(home), "/.cache/mesa_shader_cache", true);
    if (home)
        add(out, home, strlen(home), "/.nv", true);
    add_list(out, getenv("LD_LIBRARY_PATH"));
    add_list(out, getenv("__EGL_VENDOR_LIBRARY_DIRS"));
}
