/*
 * Replays a fuzz corpus without libFuzzer: runs the target over the files given as arguments, and
 * over each file in the folders given, in the order of their names, and prints TAP. So a crasher
 * that was committed with its fix is tried by every compiler and in every `make test`.
 *
 * Each input is read into a block of exactly its size, so that AddressSanitizer sees a read past
 * its end. The plan comes first: a crash leaves fewer lines than it promised. A path that cannot be
 * read and a folder without files are failures, for a corpus that is not there tests nothing.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct paths {
    char **at;
    size_t count, capacity;
};

/* Memory that a test program cannot do without. */
static void *must(void *block)
{
    if (!block) {
        printf("Bail out! no memory\n");
        exit(1);
    }
    return block;
}

static void paths_add(struct paths *paths, const char *path)
{
    if (paths->count == paths->capacity) {
        paths->capacity = paths->capacity * 2 + 16;
        paths->at = must(realloc(paths->at, paths->capacity * sizeof *paths->at));
    }
    paths->at[paths->count++] = must(strdup(path));
}

static int paths_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds a file, or the files of a folder and of those in it; an empty folder stands for itself. */
static void paths_collect(struct paths *paths, const char *path)
{
    size_t before = paths->count;
    DIR *folder = opendir(path);
    struct dirent *entry;

    if (!folder) {
        paths_add(paths, path);
        return;
    }
    while ((entry = readdir(folder))) {
        char *inner;

        if (entry->d_name[0] == '.')
            continue;
        if (asprintf(&inner, "%s/%s", path, entry->d_name) < 0)
            inner = must(NULL);
        paths_collect(paths, inner);
        free(inner);
    }
    closedir(folder);
    if (paths->count == before)
        paths_add(paths, path);
    qsort(paths->at + before, paths->count - before, sizeof *paths->at, paths_compare);
}

/* A whole regular file in a block of exactly its size; NULL when it cannot be read. */
static uint8_t *file_read(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;
    struct stat status;

    if (!file)
        return NULL;
    if (fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode)) {
        *length = (size_t)status.st_size;
        bytes = must(malloc(*length ? *length : 1));
        if (fread(bytes, 1, *length, file) != *length) {
            free(bytes);
            bytes = NULL;
        }
    }
    fclose(file);
    return bytes;
}

static bool replay(size_t number, const char *path)
{
    size_t length = 0;
    uint8_t *bytes = file_read(path, &length);

    if (!bytes) {
        printf("not ok %zu - %s: no file to replay\n", number, path);
        return false;
    }
    LLVMFuzzerTestOneInput(bytes, length);
    free(bytes);
    printf("ok %zu - %s\n", number, path);
    fflush(stdout);
    return true;
}

int main(int count, char **arguments)
{
    struct paths paths = {0};
    bool good = true;

    for (int i = 1; i < count; i++)
        paths_collect(&paths, arguments[i]);
    if (paths.count == 0) {
        fprintf(stderr, "usage: %s FILE|FOLDER…\n", arguments[0]);
        return 2;
    }
    printf("1..%zu\n", paths.count);
    fflush(stdout);
    for (size_t i = 0; i < paths.count; i++) {
        good &= replay(i + 1, paths.at[i]);
        free(paths.at[i]);
    }
    free(paths.at);
    return good ? 0 : 1;
}
