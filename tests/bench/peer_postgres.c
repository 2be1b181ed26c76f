/*
 * What bench_cluster.py is held against: a bare PostgreSQL append that notifies, and a follower
 * that reads what was appended. Nothing is encoded, stored a second time or served.
 *
 *     peer_postgres CONNINFO BYTES COUNT      two lines of microseconds, COUNT numbers each
 *
 * One connection appends by libpq's pipeline mode, in one flush and one round trip, as the cluster
 * does: BEGIN; UPDATE … rev = rev + 1 RETURNING rev; INSERT of BYTES bytes; NOTIFY; COMMIT. The
 * other listens, and asks for rows past its last when it is notified. Both are polled by one
 * thread. The first line is how long each append took until its COMMIT was answered; the second how
 * long after that answer (before it: negative) the row was in the follower's hands. Appends do not
 * overlap.
 */
#include <libpq-fe.h>

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char setup[] =
    "CREATE TABLE IF NOT EXISTS bench_head(id int PRIMARY KEY, rev bigint NOT NULL);"
    "CREATE TABLE IF NOT EXISTS bench_log(rev bigint PRIMARY KEY, data bytea NOT NULL);"
    "ALTER TABLE bench_log ALTER data SET STORAGE EXTERNAL;"
    "INSERT INTO bench_head VALUES (1, 0) ON CONFLICT DO NOTHING";

static void fail(const PGconn *c, const char *what)
{
    fprintf(stderr, "peer_postgres: %s: %s\n", what, PQerrorMessage(c));
    exit(1);
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static PGconn *join(const char *conninfo)
{
    PGconn *c = PQconnectdb(conninfo);

    if (PQstatus(c) != CONNECTION_OK)
        fail(c, "no connection");
    return c;
}

static void run(PGconn *c, const char *sql)
{
    PGresult *r = PQexec(c, sql);

    if (PQresultStatus(r) != PGRES_COMMAND_OK && PQresultStatus(r) != PGRES_TUPLES_OK)
        fail(c, sql);
    PQclear(r);
}

static int64_t head_of(PGconn *c)
{
    PGresult *r = PQexec(c, "SELECT rev FROM bench_head WHERE id = 1");
    int64_t rev;

    if (PQresultStatus(r) != PGRES_TUPLES_OK)
        fail(c, "head");
    rev = strtoll(PQgetvalue(r, 0, 0), NULL, 10);
    PQclear(r);
    return rev;
}

static void prepare(PGconn *writer, PGconn *reader)
{
    static const char *const texts[][2] = {
        {"up", "UPDATE bench_head SET rev = rev + 1 WHERE id = 1 RETURNING rev"},
        {"in", "INSERT INTO bench_log SELECT rev, $1 FROM bench_head WHERE id = 1"},
        {"no", "SELECT pg_notify('bench', '')"},
    };
    PGresult *r;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        r = PQprepare(writer, texts[i][0], texts[i][1], 0, NULL);
        if (PQresultStatus(r) != PGRES_COMMAND_OK)
            fail(writer, texts[i][0]);
        PQclear(r);
    }
    r = PQprepare(reader, "follow",
                  "SELECT rev, data FROM bench_log WHERE rev > $1::bigint ORDER BY rev LIMIT 128",
                  0, NULL);
    if (PQresultStatus(r) != PGRES_COMMAND_OK)
        fail(reader, "follow");
    PQclear(r);
    run(reader, "LISTEN bench");
    if (PQenterPipelineMode(writer) != 1)
        fail(writer, "pipeline mode");
}

static void append(PGconn *c, const char *data, int bytes)
{
    const char *values[] = {data};

    if (!PQsendQueryParams(c, "BEGIN", 0, NULL, NULL, NULL, NULL, 1) ||
        !PQsendQueryPrepared(c, "up", 0, NULL, NULL, NULL, 1) ||
        !PQsendQueryPrepared(c, "in", 1, values, &bytes, (int[]){1}, 1) ||
        !PQsendQueryPrepared(c, "no", 0, NULL, NULL, NULL, 1) ||
        !PQsendQueryParams(c, "COMMIT", 0, NULL, NULL, NULL, NULL, 1) || !PQpipelineSync(c) ||
        PQflush(c) < 0)
        fail(c, "append");
}

/* True when the pipeline's end has come. */
static bool take_answers(PGconn *c)
{
    if (!PQconsumeInput(c))
        fail(c, "the writer's connection");
    while (!PQisBusy(c)) {
        PGresult *r = PQgetResult(c);
        ExecStatusType status = PQresultStatus(r);

        if (r == NULL)
            continue; /* between two results of the pipeline */
        PQclear(r);
        if (status == PGRES_PIPELINE_SYNC)
            return true;
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
            fail(c, "an append was refused");
    }
    return false;
}

/* True when a row past *last has been read. */
static bool follow(PGconn *c, int64_t *last, int bytes)
{
    PGnotify *note;
    bool is_told = false;
    char text[24];
    const char *values[] = {text};
    PGresult *r;
    int rows;

    if (!PQconsumeInput(c))
        fail(c, "the follower's connection");
    while ((note = PQnotifies(c)) != NULL) {
        is_told = true;
        PQfreemem(note);
    }
    if (!is_told)
        return false;
    snprintf(text, sizeof text, "%lld", (long long)*last);
    r = PQexecPrepared(c, "follow", 1, values, NULL, NULL, 1);
    if (PQresultStatus(r) != PGRES_TUPLES_OK)
        fail(c, "follow");
    rows = PQntuples(r);
    if (rows > 1 || (rows == 1 && PQgetlength(r, 0, 1) != bytes))
        fail(c, "the follower read what nobody appended");
    *last += rows;
    PQclear(r);
    return rows == 1;
}

int main(int argc, char **argv)
{
    int bytes = argc == 4 ? atoi(argv[2]) : 0, count = argc == 4 ? atoi(argv[3]) : 0;
    PGconn *writer, *reader;
    char *data;
    double *took, *delay;
    int64_t last;

    if (bytes < 1 || count < 1) {
        fprintf(stderr, "usage: peer_postgres CONNINFO BYTES COUNT\n");
        return 2;
    }
    writer = join(argv[1]), reader = join(argv[1]);
    data = calloc(1, (size_t)bytes), took = calloc((size_t)count, sizeof *took);
    delay = calloc((size_t)count, sizeof *delay);
    if (!data || !took || !delay)
        return 1;
    run(writer, setup);
    last = head_of(writer);
    prepare(writer, reader);
    for (int i = 0; i < count; i++) {
        double start = now_us(), acknowledged = 0, visible = 0;

        append(writer, data, bytes);
        while (acknowledged == 0 || visible == 0) {
            struct pollfd fds[] = {{PQsocket(writer), POLLIN, 0}, {PQsocket(reader), POLLIN, 0}};

            if (poll(fds, 2, 10000) <= 0)
                fail(writer, "no answer for 10 s");
            if (acknowledged == 0 && (fds[0].revents & POLLIN) && take_answers(writer))
                acknowledged = now_us();
            if ((fds[1].revents & POLLIN) && follow(reader, &last, bytes))
                visible = now_us();
        }
        took[i] = acknowledged - start;
        delay[i] = visible - acknowledged;
    }
    for (int i = 0; i < count; i++)
        printf("%.1f%c", took[i], i + 1 < count ? ' ' : '\n');
    for (int i = 0; i < count; i++)
        printf("%.1f%c", delay[i], i + 1 < count ? ' ' : '\n');
    PQfinish(writer), PQfinish(reader);
    free(data), free(took), free(delay);
    return 0;
}
