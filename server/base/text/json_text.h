/*
 * Text as the inside of a JSON string: quotes and control bytes escaped, bytes that are not UTF-8
 * replaced by U+FFFD, so that the result is always a valid document.
 */
#ifndef KOTA_BASE_JSON_TEXT_H
#define KOTA_BASE_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes the escaped form of text[length] to out[size], NUL-terminated and without quotes, cut
 * between two characters where it does not fit. Returns the bytes written without the NUL.
 * size must be at least 1. No allocation; any thread.
 */
size_t json_text_escape(char *out, size_t size, const char *text, size_t length);

/* Is text[length] well-formed UTF-8 without control characters? */
bool json_text_is_plain(const char *text, size_t length);

#endif
