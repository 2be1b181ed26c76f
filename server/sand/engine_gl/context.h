#ifndef KOTA_SAND_CONTEXT_H
#define KOTA_SAND_CONTEXT_H

/*
 * A headless OpenGL context: core profile, 4.3 or later, with compute shaders, without a window.
 *
 * One thread creates it, uses it and destroys it: the context is current on that thread from
 * context_create to context_destroy. A thread has one at a time, a process several.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* What the context is, for /v1/stats and the log. */
struct context_info {
    bool software;     /* Mesa's llvmpipe: computed by the CPU */
    int device;        /* index among the hardware devices, -1 for software */
    char platform[16]; /* EGL platform: "device" or "surfaceless" */
    char vendor[64];   /* the strings of OpenGL */
    char renderer[128];
    char version[128];
    int major, minor;            /* of OpenGL */
    bool robust;                 /* access out of bounds is harmless, and a reset is reported */
    int storage_blocks;          /* of one compute shader */
    int64_t storage_block_bytes; /* of one block */
    int group_invocations;       /* largest work group */
    int group_count;             /* work groups along x in one dispatch */
    int shared_bytes;            /* of a work group */
    int threads; /* software: LP_NUM_THREADS, 0 is the calling thread; 0 for hardware */
};

struct context;

/* Whether `word` is one that context_create takes: auto, software, off or a number 0..63. */
bool context_word_ok(const char *word);

/*
 * Prepares the environment for software rendering: sets LP_NUM_THREADS to half the cores, 8
 * at most, unless it is set already; 0 (the calling thread computes) when that is 1. Mesa reads it
 * when a context is made. Call from main() before other threads start, because setenv() is not safe
 * beside getenv().
 */
void context_prepare(void);

enum context_option {
    CONTEXT_DEBUG = 1, /* ask the driver for all its messages (they go to the log), synchronously */
    CONTEXT_PLAIN = 2  /* access out of bounds may do harm, which saves its checks; for measuring */
};

/*
 * Makes a context and makes it current.
 *
 * word   "auto": the first hardware device that can do it; a number: the hardware device of
 *        that index, in the order of EGL's list; "software": llvmpipe; "off": none
 * options  of enum context_option, or 0
 *
 * ERR_BUSY (503) with the reason when there is none: off, no libEGL, no device, too old, …;
 * ERR_BAD_INPUT for an unknown word. Costs 10..300 ms.
 */
struct context *context_create(const char *word, unsigned options, struct err *err);

/*
 * Long work in this context (compiling programs) checks *gives_up now and then, and ends with
 * ERR_BUSY once it is true. Borrowed; NULL: never.
 */
void context_set_gives_up(struct context *context, const atomic_bool *gives_up);
/* Sets the error, too. */
bool context_gives_up(const struct context *context, struct err *err);

/* NULL does nothing. What the driver keeps for itself stays until the process ends. */
void context_destroy(struct context *context);

const struct context_info *context_info(const struct context *context);

/*
 * What lives as long as the objects of OpenGL: one pointer (malloc), freed when they are gone, in
 * context_destroy and context_rebuild. NULL: nothing is kept yet.
 */
void *context_kept(const struct context *context);
void context_keep(struct context *context, void *kept);

/*
 * Whether the device was reset, or the context lost otherwise; queries the driver. When it is true
 * it stays so until context_rebuild: all GL objects are gone and calls have no effect.
 */
bool context_lost(struct context *context);

/*
 * Makes the context again after a loss, on the same device if that exists, with the same word. The
 * objects of the old one must have been destroyed (or dropped). On an error the context stays lost,
 * and rebuilding may be tried again later.
 */
enum err_code context_rebuild(struct context *context, struct err *err);

/* How often it was rebuilt. */
uint32_t context_rebuilds(const struct context *context);

/* Errors that OpenGL reported since the context was made; 0 in a healthy program. */
uint32_t context_errors(const struct context *context);

/* For tests: from now on context_lost returns true, as after a reset. */
void context_pretend_loss(struct context *context);

#endif
