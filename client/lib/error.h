/*
 * Filling struct kota_error.
 */
#ifndef KOTA_LIB_ERROR_H
#define KOTA_LIB_ERROR_H

#include "client/lib/kota.h"

/* No error. */
void error_clear(struct kota_error *error);
/* Kind and message, printf-style; always false. The former error is dropped. */
bool error_set(struct kota_error *error, enum kota_error_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Of an answer that is no 2xx: reads its problem document, or describes the other content. */
void error_problem(struct kota_error *error, const char *method, const char *path, int status,
                   const char *body, size_t length);

#endif
