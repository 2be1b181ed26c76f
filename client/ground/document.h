/*
 * The documents of the daemon that a copy reads: a locale, and what has changed in a layer.
 */
#ifndef KOTA_GROUND_DOCUMENT_H
#define KOTA_GROUND_DOCUMENT_H

#include "client/ground/follow.h"

struct document {
    uint64_t revision, transform_seq;
    struct locale_manifest manifest;
    struct followed_layer *layers; /* [layer_count], malloc; only what the document says is set */
    size_t layer_count;
};

/* False, and the error: it is none, or lacks a member. Nothing is to be freed then. */
bool document_read(const void *text, size_t length, struct document *out, struct err *err);

/* The rects of a difference: malloc. */
bool diff_read(const void *text, size_t length, struct sample_rect **rects, size_t *count,
               struct err *err);

#endif
