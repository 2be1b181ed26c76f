/*
 * What the functions that make typed requests share.
 */
#ifndef KOTA_LIB_ASK_H
#define KOTA_LIB_ASK_H

#include "client/lib/request.h"

/*
 * A request whose path is put together by a pattern: %i an id (const char *, checked against
 * [A-Za-z0-9_-]{1,64}), %u an unsigned. NULL without memory.
 */
struct kota_request *ask_new(const char *method, const char *pattern, ...);
/* The same for what changes something: it has an Idempotency-Key. */
struct kota_request *ask_write(const char *method, const char *pattern, ...);
/* A POST that only reads: it may be repeated. */
struct kota_request *ask_question(const char *locale, const char *what);

/* Vectors into the JSON body: "[1,2,3]". What is not finite fails the request, by name and index.
 */
void ask_vector(struct kota_request *request, const double *numbers, size_t count, const char *name,
                size_t index);
/* "[[…],[…]]", count vectors of `side` numbers */
void ask_vectors(struct kota_request *request, const double *numbers, size_t count, size_t side,
                 const char *name);
/* `,"name":number` unless it is NaN. */
void ask_optional(struct kota_request *request, const char *name, double value);
/* The JSON that was written into own_body is the body. */
struct kota_request *ask_json(struct kota_request *request);

#endif
