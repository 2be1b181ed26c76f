/*
 * Plain text into an answer: metrics and the page at `/`.
 */
#ifndef KOTA_API_TEXT_H
#define KOTA_API_TEXT_H

#include "api/call.h"

/* Appends printf-style text of at most 2,000 bytes. */
void text_append(struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
