/*
 * The world at the start: files of the command line and directories of locales.
 */
#ifndef KOTA_DAEMON_LOAD_H
#define KOTA_DAEMON_LOAD_H

#include "api/api.h"

/*
 * Loads FILE or FILE?options as a locale of its own, whose id is the cleaned base name, with the
 * layer `ground`. A .hgt that is named after its corner (N42E001.hgt) has its spacing from the
 * WGS84 ellipsoid at the tile's middle unless one is given; .hgt and .asc are flipped by default.
 * The error names file, option and value. The writer's thread is used; call before serving.
 */
enum err_code load_file(struct api *api, const char *argument, struct err *err);

/* Loads every DIR/<id>/locale.json, in the order of their names. The error names file and member.
 */
enum err_code load_world(struct api *api, const char *directory, struct err *err);

/* What a reload has done to the world. */
struct load_news {
    size_t added, replaced, removed, kept;
};

/*
 * Reads the sources of the start again, where a file has changed (by its inode, size and time) or a
 * folder is new or missing; for a world without a store. The result is published at once, all or
 * nothing; locales without a source are removed after that. A locale that is read again is replaced
 * whole, with its edits; all others stay as they are, edits included. gives_up, called
 * before each locale, ends it with ERR_BUSY. On error nothing has changed. As above the error names
 * file and member. Not a loop's thread, nor the writer's; one at a time.
 */
enum err_code load_again(struct api *api, const char *directory, char *const *files, size_t count,
                         bool (*gives_up)(void), struct load_news *news, struct err *err);

/* Frees the list of sources. */
void load_finish(struct api *api);

#endif
