/*
 * The progress of long work: a line on standard error that is drawn over itself, on a terminal
 * only.
 */
#ifndef KOTA_CLIENT_PROGRESS_H
#define KOTA_CLIENT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
    const char *what; /* "import" */
    const char *unit; /* "B": written as KiB, MiB …; "s"; else a word, "points" */
    bool is_shown, is_drawn;
    uint64_t start_ns, drawn_ns;
};

/* Nothing is ever written unless standard error is a terminal and is_wanted. */
void progress_begin(struct progress *progress, const char *what, const char *unit, bool is_wanted);

/* all 0: the total is unknown. Draws at most ten times a second. */
void progress_report(struct progress *progress, double done, double all);

/* The line is taken away again. */
void progress_end(struct progress *progress);

/*
 * The line itself, at most `columns` wide, without its end; "import  [#####.....]  52%  1.2 MiB of
 * 2.3 MiB". Visible for a test.
 */
#define PROGRESS_BYTES_MAX 256
void progress_line(const struct progress *progress, double done, double all, double elapsed_s,
                   size_t columns, char out[PROGRESS_BYTES_MAX]);

#endif
