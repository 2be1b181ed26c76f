/*
 * What steps the granules: the engines of the three scales on one device, as --gpu names it.
 *
 * auto is the first GPU that can do OpenGL 4.3, else the C engine; cpu the C engine; a number that
 * GPU; software OpenGL on Mesa's llvmpipe, for tests of the OpenGL engine; off none.
 */
#ifndef KOTA_SAND_DEVICE_H
#define KOTA_SAND_DEVICE_H

#include "sand/engine.h"
#include "sand/material.h"

enum { DEVICE_WORD_MAX = 32, DEVICE_TEXT_MAX = 256 };

/* Granules of one patch, where the device chooses: no more than these. */
enum { DEVICE_GRANULES_HARDWARE = 65536 };

/* The pool. */
struct device_config {
    char gpu[DEVICE_WORD_MAX]; /* auto, cpu, a number, software, off */
    enum granular_material material;
    uint32_t slots[SCALE_COUNT]; /* 0: none of this scale */
    uint32_t granules_max;       /* of one patch; 0: what suits the device */
    uint32_t bodies_max;         /* of one patch */
    uint32_t particles_max;      /* of the shells of one patch */
    uint32_t threads;            /* of the C engine; 0: half of the cores, at least 1 */
};

extern const struct device_config device_config_default;

/* May --gpu be this? */
bool device_word_ok(const char *word);

/* May OpenGL be opened at all, for patches or for pictures (view/view.h)? */
bool device_may_open_driver(const struct device_config *config);

/* Is it one device and no other? Then it is opened at the start, to report its absence. */
bool device_is_explicit(const struct device_config *config);

/* Before any other thread is started: sets what OpenGL reads from the environment. */
void device_prepare(const struct device_config *config);

struct device;

/* The description of a device. */
struct device_info {
    char engine[8];                 /* "gl" or "c"; "" when there is none */
    char name[2 * DEVICE_TEXT_MAX]; /* renderer and version */
    bool is_software;
    uint32_t rebuilds;            /* after losses */
    char reason[DEVICE_TEXT_MAX]; /* why there is none, or "" */
    bool is_coming;               /* there is none yet, or not again: it is being opened */
    struct device_config config;  /* with the pool as it was made */
};

/* Not open yet: it has no engines. Any thread. NULL: ERR_NO_MEMORY. */
struct device *device_create(const struct device_config *config, struct err *err);

/*
 * Opens the device, once. Where that fails it has a reason. This and all other calls on one thread,
 * which keeps the OpenGL context.
 */
void device_open(struct device *device);
void device_destroy(struct device *device); /* NULL is fine */

/* Any thread: opening may be given up, since the device is about to be destroyed. */
void device_give_up(struct device *device);

/*
 * Makes the engine of a scale, of a size that the device takes; nothing if it is there. The pool of
 * a scale is made with its first patch, because it may take hundreds of megabytes.
 * ERR_NO_DEVICE, ERR_UNPROCESSABLE, ERR_NO_MEMORY, ERR_BUSY (given up), ERR_INTERNAL.
 */
enum err_code device_engine_make(struct device *device, enum granular_scale scale, struct err *err);
/* Gives its memory and its threads back. */
void device_engine_free(struct device *device, enum granular_scale scale);

/* The engine of a scale; NULL when there is none. */
struct sand_engine *device_engine(const struct device *device, enum granular_scale scale);
void device_describe(const struct device *device, struct device_info *out);

/*
 * After a loss: destroys all engines and opens the device again. When that does not succeed it may
 * be tried again, and meanwhile there is no device. ERR_BUSY, ERR_INTERNAL, ERR_NO_MEMORY.
 */
enum err_code device_rebuild(struct device *device, struct err *err);

/* The configuration of an engine of this scale; the same for every kind of device. */
void device_engine_config(const struct device_config *config, enum granular_scale scale,
                          struct sand_engine_config *out);

#endif
