/*
 * Rows of the benchmarks: see bench_rows.h.
 *
 * Each program of the benchmark appends to the same file, one after the other; what one program has
 * written stays when a later one fails, so that a missing peer costs its rows only.
 */
#include "support/bench_rows.h"

#include "base/check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Would break the lines of the file. */
static bool is_cell(const char *text)
{
    return strpbrk(text, "\t\r\n") == NULL;
}

uint32_t bench_seed(void)
{
    const char *text = getenv("KOTA_BENCH_SEED");

    return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

static void row(const char *section, const char *work, const char *peer, bool is_most, double ratio,
                double asked, const char *note)
{
    const char *path = getenv("KOTA_BENCH_ROWS");
    bool is_reached = is_most ? ratio <= asked : ratio >= asked;

    if (note == NULL)
        note = "";
    CHECK(is_cell(section) && is_cell(work) && is_cell(peer) && is_cell(note));
    printf("  %-46s %-24s %8.3g", work, peer, ratio);
    if (asked > 0)
        printf("  asked: at %s %g, %s", is_most ? "most" : "least", asked,
               is_reached ? "reached" : "NOT reached");
    printf("%s%s\n", *note ? "  " : "", note);
    fflush(stdout);
    if (path == NULL || *path == 0)
        return;

    FILE *file = fopen(path, "ae");

    if (file == NULL) {
        fprintf(stderr, "bench_rows: cannot append to %s\n", path);
        exit(1);
    }
    fprintf(file, "%s", section);
    if (bench_seed() != 0)
        fprintf(file, ", ground of seed %u", bench_seed());
    fprintf(file, "\t%s\t%s\t%s\t%.6g\t%.6g\t%s\n", work, peer, is_most ? "most" : "least", ratio,
            asked, note);
    fclose(file);
}

void bench_row(const char *section, const char *work, const char *peer, double ratio, double asked,
               const char *note)
{
    row(section, work, peer, false, ratio, asked, note);
}

void bench_row_most(const char *section, const char *work, const char *peer, double ratio,
                    double asked, const char *note)
{
    row(section, work, peer, true, ratio, asked, note);
}

void bench_row_times(const char *section, const char *work, const char *peer,
                     const struct bench_time *own, const struct bench_time *beside, double asked,
                     const char *note)
{
    double own_ns = 1e9 * own->median_s, beside_ns = 1e9 * beside->median_s;
    bool is_noted = note != NULL && *note != 0;
    char whole[192];

    snprintf(whole, sizeof whole, "%.*f and %.0f ns; by the least rounds %.3g%s%s", own_ns < 100,
             own_ns, beside_ns, beside->least_s / own->least_s, is_noted ? "; " : "",
             is_noted ? note : "");
    row(section, work, peer, false, beside->median_s / own->median_s, asked, whole);
}
