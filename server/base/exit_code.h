/*
 * How kotad, kota, kota-worldgen and kota-sand end; docs/command-line.md has the table.
 */
#ifndef KOTA_BASE_EXIT_CODE_H
#define KOTA_BASE_EXIT_CODE_H

enum exit_code {
    EXIT_DONE = 0,   /* all was done; kotad: it was ended by a signal */
    EXIT_FAILED = 1, /* a call, a file, the system or a check failed; the same again may succeed */
    EXIT_MISUSED = 2 /* the command line, the configuration or the input is wrong */
};

#endif
