/*
 * What the functions that make typed requests share.
 */
#ifndef KOTA_LIB_ASK_H
#define KOTA_LIB_ASK_H

#include "client/lib/request.h"

/*
 * A request whose path is put together by a pattern: %i an id (const char *, checked against
 * [A-Za-z0-9_-]{1,64}), %u an unsigned, %l a uint64_t. NULL without memory; all functions below
 * take it and do nothing.
 */
struct kota_request *ask_new(const char *method, const char *pattern, ...);
/* The same for what changes something: it has an Idempotency-Key. */
struct kota_request *ask_write(const char *method, const char *pattern, ...);
/* Returns the request, with that Accept; NULL: without. The text is static. */
struct kota_request *ask_accept(struct kota_request *request, const char *media_type);

/* The caller's options, of `size` bytes in its version of kota.h, become the defaults. */
void ask_init(void *options, size_t size, const void *defaults, size_t known);

/* ---- the JSON body: what is not finite or not UTF-8 fails the request, by name and index ----- */

void ask_raw(struct kota_request *request, const char *json); /* as it is */
void ask_number(struct kota_request *request, double finite);
void ask_uint(struct kota_request *request, uint64_t value);
void ask_string(struct kota_request *request, const char *text, const char *name);
/* "[1,2,3]" */
void ask_vector(struct kota_request *request, const double *numbers, size_t count, const char *name,
                size_t index);
/* "[[…],[…]]", count vectors of `side` numbers */
void ask_vectors(struct kota_request *request, const double *numbers, size_t count, size_t side,
                 const char *name);
/* `,"name":[…]` */
void ask_member(struct kota_request *request, const char *name, const double *numbers, size_t count,
                size_t index);
/* `,"name":number` unless it is NaN. */
void ask_optional(struct kota_request *request, const char *name, double value);
/* `,"name":"text"` unless it is NULL. */
void ask_optional_string(struct kota_request *request, const char *name, const char *text);
/* The JSON that was written into own_body is the body. */
struct kota_request *ask_json(struct kota_request *request);

/* "name=1,2" in the query */
void ask_query_numbers(struct kota_request *request, const char *name, const double *numbers,
                       size_t count);

#endif
