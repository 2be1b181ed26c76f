/*
 * Whole files.
 */
#ifndef KOTA_CLIENT_FILE_H
#define KOTA_CLIENT_FILE_H

#include "base/err.h"

#include <stddef.h>

/*
 * All bytes of a file, "-" being standard input; freed by free(). A NUL that is not counted follows
 * them.
 *
 * ERR_BAD_INPUT  it cannot be read, and why; longer than most
 */
enum err_code file_read(const char *path, size_t most, char **bytes, size_t *length,
                        struct err *err);

#endif
