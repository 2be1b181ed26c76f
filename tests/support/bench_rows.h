/*
 * The rows of the tables that `make bench` and `make bench-all` print.
 *
 * A row is one ratio, measured in one run against a peer on the same input. It goes to standard
 * output and, where KOTA_BENCH_ROWS names a file, as one line of tab-separated text to its end:
 *
 *   section  work  peer  least|most  ratio  asked  note
 *
 * tests/bench/report.py makes the table of that. tests/bench/rows.py writes the same from Python.
 */
#ifndef KOTA_TESTS_BENCH_ROWS_H
#define KOTA_TESTS_BENCH_ROWS_H

#include "support/bench_time.h"

#include <stdint.h>

/*
 * KOTA_BENCH_SEED: the ground is drawn by this number, and the sections of the rows name it. 0
 * where it is not set: the ground that the tables are about.
 */
uint32_t bench_seed(void);

/*
 * How many times kota does better than `peer` at `work`; it is reached where ratio >= asked. An
 * asked ratio of 0 means that none was asked. The note (NULL: none) says what a reader has to know,
 * with absolute figures at most as an aside. No tabs or line ends in the texts.
 */
void bench_row(const char *section, const char *work, const char *peer, double ratio, double asked,
               const char *note);

/*
 * The same for a question's times: the ratio is that of the medians. The note begins with both in
 * ns and with the ratio of the least rounds, which others on the machine disturb less.
 */
void bench_row_times(const char *section, const char *work, const char *peer,
                     const struct bench_time *own, const struct bench_time *beside, double asked,
                     const char *note);

/* The same for a cost in units of the peer: it is reached where ratio <= asked. */
void bench_row_most(const char *section, const char *work, const char *peer, double ratio,
                    double asked, const char *note);

#endif
