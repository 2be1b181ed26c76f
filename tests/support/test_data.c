/*
 * Finds and reads the shared test data: see test_data.h. The data is large and under several
 * licences, so it lies beside the checkout; a test must neither fail nor silently pass without it.
 */
#include "tests/support/test_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PATHS_KEPT = 8, PATH_BYTES_MAX = 4096 };

const char *test_data_path(const char *relative)
{
    static _Thread_local char paths[PATHS_KEPT][PATH_BYTES_MAX];
    static _Thread_local unsigned next;
    const char *root = getenv("KOTA_TEST_DATA");
    char *path = paths[next % PATHS_KEPT];
    int length;

    if (!root || !*root)
        root = "../shared/data";
    length = snprintf(path, PATH_BYTES_MAX, "%s/%s", root, relative);
    if (length < 0 || length >= PATH_BYTES_MAX || access(path, R_OK) != 0)
        return NULL;
    next++;
    return path;
}

uint8_t *test_file_read(const char *path, size_t *length)
{
    FILE *file = path ? fopen(path, "rb") : NULL;
    uint8_t *bytes = NULL;
    long size = -1;

    *length = 0;
    if (!file)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    if (size >= 0 && fseek(file, 0, SEEK_SET) == 0)
        bytes = malloc(size > 0 ? (size_t)size : 1);
    if (bytes && fread(bytes, 1, (size_t)size, file) != (size_t)size) {
        free(bytes);
        bytes = NULL;
    }
    if (bytes)
        *length = (size_t)size;
    fclose(file);
    return bytes;
}

uint8_t *test_data_read(const char *relative, size_t *length)
{
    return test_file_read(test_data_path(relative), length);
}
