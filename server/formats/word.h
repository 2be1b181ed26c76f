/*
 * Words of foreign files and headers: media types, and tokens as they are shown in an error.
 */
#ifndef KOTA_FORMATS_WORD_H
#define KOTA_FORMATS_WORD_H

#include <stdbool.h>
#include <stddef.h>

/* Does the value of a Content-Type header name this type? Case and parameters do not matter. */
bool media_type_is(const char *header, const char *type);

enum { WORD_SHOWN_MAX = 32 };

/* text[length] for a message: cut at WORD_SHOWN_MAX, other bytes than visible ASCII as '?'. */
void word_show(const char *text, size_t length, char shown[WORD_SHOWN_MAX + 1]);

#endif
