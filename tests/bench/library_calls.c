/*
 * What a call of libkota costs its process: microseconds of processor time, user and system.
 *
 *   library_calls URL LOCALE one|batch CALLS
 *
 * One height by kota_get_height, or a binary batch of 10,000 heights, one call after the other. The
 * first tenth is not counted. bench_library.py compares builds of the library and places of the
 * daemon by it, so it takes only what every version has.
 */
#include "processor_us.h"

#include <kota.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 10000 };

int main(int argc, char **argv)
{
    static double xy[2 * BATCH];
    struct kota_options options;
    struct kota_client *client;
    double begun_us = 0;
    long calls;

    if (argc != 5)
        return 2;
    calls = atol(argv[4]);
    kota_options_init(&options, sizeof(options));
    options.url = argv[1];
    client = kota_open(&options);
    for (int i = 0; i < BATCH; i++)
        xy[2 * i] = xy[2 * i + 1] = 1 + i % 200;
    for (long i = -calls / 10; i < calls; i++) {
        struct kota_answer *answer;

        if (i == 0)
            begun_us = processor_us();
        answer = kota_call(client, argv[3][0] == 'o'
                                       ? kota_get_height(argv[2], 3, 4, 0)
                                       : kota_batch_f64(KOTA_HEIGHT, argv[2], xy, BATCH, NULL));
        if (kota_answer_error(answer)) {
            fprintf(stderr, "%s\n", kota_answer_error(answer)->message);
            return 1;
        }
        kota_answer_free(answer);
    }
    printf("%.3f\n", (processor_us() - begun_us) / (double)calls);
    kota_close(client, NULL, NULL);
    return 0;
}
