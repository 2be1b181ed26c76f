/*
 * PostgreSQL servers of a test's own: in a temporary folder, on loopback, ended with the test.
 *
 * A server ends with the thread that started it. They run as an unprivileged user: root becomes
 * `postgres`, or else `nobody`. The programs are those of $KOTA_PG_BIN, or of the newest
 * /usr/lib/postgresql/NN.
 */
#ifndef KOTA_TESTS_POSTGRES_H
#define KOTA_TESTS_POSTGRES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct postgres {
    pid_t pid;
    uint16_t port;
    char folder[64];    /* data/ and the socket lie in it */
    char conninfo[128]; /* over TCP */
    char settings[512]; /* more of `postgres`: "-c name=value -c …"; before postgres_start */
    char log[96];
};

/* Is there a PostgreSQL of version 15 or newer? Else *why says what to do. */
bool postgres_is_there(const char **why);
/* A new cluster of databases, running. Fails the test when it cannot be. */
void postgres_start(struct postgres *postgres);
/* Ends it like a crash (no checkpoint, sessions are cut), or in order; it can run again. */
void postgres_crash(struct postgres *postgres);
void postgres_halt(struct postgres *postgres);
void postgres_run(struct postgres *postgres);
/* One statement, or several, in a session of its own; the first value of the last, or "". */
void postgres_sql(const struct postgres *postgres, const char *sql, char *value, size_t room);
/* Crashes it if it runs, and removes the folder. */
void postgres_remove(struct postgres *postgres);

#endif
