/*
 * The load itself: many connections, one thread, as little work a request as possible.
 */
#ifndef KOTA_CLIENT_BENCH_ENGINE_H
#define KOTA_CLIENT_BENCH_ENGINE_H

#include "base/err.h"
#include "client/bench/bench_histogram.h"
#include "client/bench/bench_shots.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct bench_load {
    struct sockaddr_storage address;
    socklen_t address_length;
    const struct bench_shots *shots; /* their run is at least depth */
    size_t connections, depth;
    double rate;           /* requests a second, independent of answers; 0: closed loop */
    double warm_up_s;      /* not measured */
    double duration_s;     /* measured */
    uint64_t requests_max; /* end after so many; 0: by time only */
    double timeout_s;      /* without any answer */
    bool is_busy;          /* never sleeps */
    pid_t server;          /* whose processor time is reported; 0: none */
    /* Told about ten times a second how much of the time is over; NULL: none. */
    void (*report)(void *context, double done_s, double all_s);
    void *report_context;
};

struct bench_result {
    uint64_t requests; /* answered, within the measured time */
    uint64_t failed;   /* of them, by a status of 400 or more */
    uint64_t bytes_in, bytes_out;
    double elapsed_s;
    double client_cpu_s, server_cpu_s; /* server: NaN unless requested */
    struct bench_histogram latency;
};

/*
 * Runs the load. A time counts in an open loop from when the request was due, not from when it
 * could be sent; in a closed one from when its batch was written.
 *
 * ERR_BUSY      no connection, a connection that breaks or is closed, or no answer in timeout_s
 * ERR_INTERNAL  an answer that is no HTTP/1.1 with Content-Length
 * ERR_BAD_INPUT the server's process does not exist
 */
enum err_code bench_run(const struct bench_load *load, struct bench_result *result,
                        struct err *err);

#endif
