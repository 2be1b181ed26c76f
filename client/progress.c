/*
 * Progress of long work: upload, download, a stream of points, a benchmark.
 *
 * It is for terminals only. Standard error that is a file or a pipe gets nothing, not even an
 * escape. Work that is over within a third of a second shows no line: it would only flicker.
 */
#include "client/progress.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FIRST_NS 300000000u
#define BETWEEN_NS 100000000u

enum { BAR_MAX = 30, BAR_MIN = 5, COLUMNS_DEFAULT = 80 };

static size_t terminal_columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return COLUMNS_DEFAULT;
}

/* "1.5 MiB", "3.2 s", "120000 points" */
static void amount_text(const char *unit, double amount, char out[48])
{
    static const char *const powers[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t power = 0;

    if (strcmp(unit, "s") == 0) {
        snprintf(out, 48, "%.1f s", amount);
    } else if (strcmp(unit, "B") != 0) {
        snprintf(out, 48, "%.0f %s", amount, unit);
    } else {
        for (; amount >= 1024 && power < 4; power++)
            amount /= 1024;
        snprintf(out, 48, power ? "%.1f %s" : "%.0f %s", amount, powers[power]);
    }
}

void progress_line(const struct progress *progress, double done, double all, double elapsed_s,
                   size_t columns, char out[PROGRESS_BYTES_MAX])
{
    char so_far[48], of[48], figures[128], rate[64];
    double share = all > 0 ? fmin(fmax(done / all, 0), 1) : 0;
    size_t used, bar;

    amount_text(progress->unit, done, so_far);
    amount_text(progress->unit, all, of);
    if (all > 0) {
        snprintf(figures, sizeof(figures), "%3.0f%%  %s of %s", floor(100 * share), so_far, of);
    } else {
        amount_text(progress->unit, elapsed_s > 0 ? done / elapsed_s : 0, rate);
        snprintf(figures, sizeof(figures), "%s, %s/s", so_far, rate);
    }
    used = strlen(progress->what) + strlen(figures) + 7;
    if (columns > PROGRESS_BYTES_MAX - 1)
        columns = PROGRESS_BYTES_MAX - 1;
    bar = columns > used ? columns - used : 0;
    if (bar > BAR_MAX)
        bar = BAR_MAX;
    if (all > 0 && bar >= BAR_MIN) {
        char cells[BAR_MAX + 1];
        size_t full = (size_t)(share * (double)bar);

        memset(cells, '.', bar);
        memset(cells, '#', full);
        cells[bar] = '\0';
        snprintf(out, PROGRESS_BYTES_MAX, "%s  [%s]  %s", progress->what, cells, figures);
    } else {
        snprintf(out, PROGRESS_BYTES_MAX, "%s  %s", progress->what, figures);
    }
    if (strlen(out) >= columns && columns > 0)
        out[columns - 1] = '\0'; /* the last column would move the cursor */
}

void progress_begin(struct progress *progress, const char *what, const char *unit, bool is_wanted)
{
    *progress = (struct progress){.what = what,
                                  .unit = unit,
                                  .is_shown = is_wanted && isatty(STDERR_FILENO),
                                  .start_ns = monotonic_ns()};
}

void progress_report(struct progress *progress, double done, double all)
{
    char line[PROGRESS_BYTES_MAX];
    uint64_t now;

    if (!progress->is_shown)
        return;
    now = monotonic_ns();
    if (now - progress->start_ns < FIRST_NS || now - progress->drawn_ns < BETWEEN_NS)
        return;
    progress_line(progress, done, all, (double)(now - progress->start_ns) * 1e-9,
                  terminal_columns(), line);
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
    progress->is_drawn = true;
    progress->drawn_ns = now;
}

void progress_end(struct progress *progress)
{
    if (progress->is_drawn)
        fprintf(stderr, "\r\033[K");
    progress->is_drawn = progress->is_shown = false;
}
