/*
 * Folders of OpenGL's drivers: see driver_places.h.
 *
 * Without its cache Mesa compiles all shaders again at each start, about a second of processor
 * time; a driver in a folder of its own is named by LD_LIBRARY_PATH or by __EGL_VENDOR_LIBRARY_DIRS
 * and could not be loaded at all.
 *
 * Mesa's cache has a name for each form: a file for each shader, or a database, which is the
 * default of newer Mesa (Debian 13). Which one it is cannot be known before the driver is loaded.
 */
#include "sand/engine_gl/driver_places.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes the missing folders of a path after its first bytes; a failure is fine. */
static void make_folders(char *path, size_t there)
{
    for (char *end = path + there; *end; *end = '/') {
        end += 1 + strcspn(end + 1, "/");
        char after = *end;

        *end = '\0';
        mkdir(path, 0700);
        if (after == '\0')
            return;
    }
}

/* A folder, whether or not it is there. */
static char *add(struct driver_places *out, const char *folder, size_t length, const char *below)
{
    char *path = out->paths[out->count < DRIVER_PLACES_MAX ? out->count : 0];

    if (out->count == DRIVER_PLACES_MAX || length == 0 || folder[0] != '/' ||
        length + strlen(below) + 1 > DRIVER_PLACE_MAX)
        return NULL;
    memcpy(path, folder, length);
    strcpy(path + length, below);
    out->is_written[out->count++] = false;
    return path;
}

/* A cache below a folder: a user's home itself is never made, only folders below it. */
static void add_cache(struct driver_places *out, const char *folder, const char *below,
                      bool is_home)
{
    char *path = folder ? add(out, folder, strlen(folder), below) : NULL;

    if (path) {
        make_folders(path, is_home ? strlen(folder) : 0);
        out->is_written[out->count - 1] = true;
    }
}

static void add_list(struct driver_places *out, const char *list)
{
    while (list && *list) {
        size_t length = strcspn(list, ":");

        add(out, list, length, "");
        list += length + (list[length] == ':');
    }
}

void driver_places_find(struct driver_places *out)
{
    const char *caches = getenv("XDG_CACHE_HOME");
    const struct passwd *user = getpwuid(getuid()); /* Mesa ignores HOME */

    out->count = 0;
    add_cache(out, getenv("MESA_SHADER_CACHE_DIR"), "", false);
    add_cache(out, getenv("__GL_SHADER_DISK_CACHE_PATH"), "", false);
    if (caches) {
        add_cache(out, caches, "/mesa_shader_cache", false);
        add_cache(out, caches, "/mesa_shader_cache_db", false);
    } else if (user) {
        add_cache(out, user->pw_dir, "/.cache/mesa_shader_cache", true);
        add_cache(out, user->pw_dir, "/.cache/mesa_shader_cache_db", true);
    }
    add_cache(out, getenv("HOME"), "/.nv", true);
    add_list(out, getenv("LD_LIBRARY_PATH"));
    add_list(out, getenv("__EGL_VENDOR_LIBRARY_DIRS"));
}
