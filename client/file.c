/*
 * Whole files, read with a limit that keeps a slip of the hand (/dev/zero) from filling the memory.
 * Their size is not read before: a pipe has none.
 */
#include "client/file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES ((size_t)1 << 16)

/* Reads to the end or one byte beyond most; false without memory. */
static bool read_all(FILE *file, size_t most, char **bytes, size_t *length)
{
    size_t capacity = FIRST_BYTES;

    *length = 0;
    *bytes = malloc(capacity);
    while (*bytes && !feof(file) && !ferror(file) && *length <= most) {
        if (*length + 1 == capacity) {
            char *grown = realloc(*bytes, 2 * capacity);

            if (!grown)
                return false;
            *bytes = grown;
            capacity *= 2;
        }
        *length += fread(*bytes + *length, 1, capacity - 1 - *length, file);
    }
    if (*bytes)
        (*bytes)[*length] = '\0';
    return *bytes != NULL;
}

enum err_code file_read(const char *path, size_t most, char **bytes, size_t *length,
                        struct err *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");

    *bytes = NULL;
    if (!file)
        return err_set(err, ERR_BAD_INPUT, "%.200s cannot be read: %s", path, strerror(errno));
    if (!read_all(file, most, bytes, length))
        err_set(err, ERR_NO_MEMORY, "out of memory");
    else if (ferror(file))
        err_set(err, ERR_BAD_INPUT, "%.200s cannot be read: %s", path, strerror(errno));
    else if (*length > most)
        err_limit(err, ERR_BAD_INPUT, (double)most, (double)*length,
                  "%.200s is longer than %zu bytes", path, most);
    if (file != stdin)
        fclose(file);
    if (err->code) {
        free(*bytes);
        *bytes = NULL;
    }
    return err->code;
}
