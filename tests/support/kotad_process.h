/*
 * A kotad of the same build as a process of its own, for tests that must kill it.
 */
#ifndef KOTA_TESTS_KOTAD_PROCESS_H
#define KOTA_TESTS_KOTAD_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

struct kotad_process {
    pid_t pid;
    uint16_t port;
    char folder[64]; /* its own; "data" in it is for --data */
    char url[64];
};

/*
 * Starts $KOTA_BIN_DIR/kotad on a free port, or on process->port when that is set (again), with
 * --data in its folder, and waits until it is ready. Fails the running test when it does not come.
 */
void kotad_start(struct kotad_process *process);
/* SIGTERM, and must exit with 0; or SIGKILL. The folder stays. */
void kotad_stop(struct kotad_process *process);
void kotad_kill(struct kotad_process *process);
/* Stops it when it runs, and removes the folder. */
void kotad_remove(struct kotad_process *process);

#endif
