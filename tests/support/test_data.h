/*
 * The shared set of real terrain, which is not part of the repository: tests that use it ask here
 * and skip, with a reason, when it is absent. It is looked for under $KOTA_TEST_DATA, else under
 * ../shared/data from the current folder (tests run in the repository's root).
 */
#ifndef KOTA_TESTS_SUPPORT_TEST_DATA_H
#define KOTA_TESTS_SUPPORT_TEST_DATA_H

#include <stddef.h>
#include <stdint.h>

/*
 * Path of one file or folder of the set ("rasters/volcano/volcano.asc"); NULL when it cannot be
 * read. Borrowed: each thread keeps the last eight answers.
 */
const char *test_data_path(const char *relative);

/*
 * A whole file in a malloc'ed block of exactly its size (at least one byte), so that
 * AddressSanitizer sees a read past the end; free() it. NULL when it cannot be read.
 */
uint8_t *test_file_read(const char *path, size_t *length);

/* test_file_read(test_data_path(relative)); NULL when it is absent. */
uint8_t *test_data_read(const char *relative, size_t *length);

#endif
