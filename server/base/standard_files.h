/*
 * Descriptors 0, 1 and 2 of a program.
 */
#ifndef KOTA_BASE_STANDARD_FILES_H
#define KOTA_BASE_STANDARD_FILES_H

#include <fcntl.h>
#include <unistd.h>

/*
 * First in main: takes the numbers of those that the program was started without, so that no socket
 * or file gets the number of standard error, and with it the log. To read or write them fails as
 * before.
 */
static inline void standard_files_hold(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

#endif
