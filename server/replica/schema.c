/*
 * Set-up of a new connection, before it is used: settings, the schema, the statements.
 *
 * Creation and migration: the version is in the table meta. Under an advisory lock, in one
 * transaction, each later script runs; so of two daemons that start at once the second finds the
 * tables. PostgreSQL rolls back tables like rows: there is never half a schema.
 *
 * The settings bound how long a session of a stopped node may hold a row that others wait for, and
 * ensure that a commit is on the disk before it is acknowledged: synchronous_commit is never off,
 * whatever the role's default is. Other values of an operator (local, remote_apply) stay.
 *
 * This part uses the simple protocol, in which one message may have many statements. After it the
 * connection is switched to pipeline mode and the statements are prepared. LISTEN comes before the
 * first read of the log, so no notification is missed.
 */
#include "replica/cluster_data.h"

#include "base/check.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef KOTA_CLUSTER_SCHEMA
#error "the build defines KOTA_CLUSTER_SCHEMA, the folder of the scripts to embed"
#endif

#define SCRIPT(name, file)                                                                         \
    extern const char name[];                                                                      \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global " #name "\n" #name ":\n"                                                      \
            ".incbin \"" KOTA_CLUSTER_SCHEMA "/" file "\"\n"                                       \
            ".byte 0\n"                                                                            \
            ".popsection\n")

SCRIPT(cluster_schema_001, "001.sql");
SCRIPT(cluster_schema_002, "002.sql");

static const char *const scripts[] = {cluster_schema_001, cluster_schema_002};
enum { SCHEMA_VERSION = sizeof scripts / sizeof *scripts, ENGINE_MIN = 150000 };

/* ---- statements ------------------------------------------------------------------------------ */

static const char *const statements[STATEMENT_COUNT] = {
    [STATEMENT_APPEND] =
        "SELECT append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
    [STATEMENT_HOLD] = "SELECT hold($1)",
    [STATEMENT_END_STOPPED] = "SELECT end_stopped($1::int8 * interval '1 ms')",
    [STATEMENT_HEADS] = "SELECT id, rev, first, snapshot FROM locale WHERE rev > 0 ORDER BY id",
    [STATEMENT_HEAD] = "SELECT rev, first FROM locale WHERE id = $1",
    [STATEMENT_OP_AT] = "SELECT op_id FROM edit WHERE locale = $1 AND rev = $2",
    [STATEMENT_FIND_OP] = "SELECT locale, rev FROM edit WHERE op_id = $1 UNION ALL "
                          "SELECT locale, rev FROM past WHERE op_id = $1 LIMIT 1",
    /* as many as are below a sum of bytes, one at least; the sums read no data */
    [STATEMENT_READ] =
        "SELECT e.rev, e.op_id, e.node, e.kind, e.layer, e.source, e.request, e.rect, e.fence, "
        "e.blobs, e.digest, e.data FROM edit AS e JOIN (SELECT rev, sum(bytes) OVER (ORDER BY rev "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM (SELECT rev, "
        "octet_length(data) AS bytes FROM edit WHERE locale = $1 AND rev > $2 ORDER BY rev "
        "LIMIT $3::int8) AS page) AS sums ON e.rev = sums.rev WHERE e.locale = $1 AND "
        "coalesce(sums.before, 0) < $4::int8 ORDER BY e.rev",
    [STATEMENT_PUT_BLOB] = "SELECT put_blob($1, $2, $3, $4, $5, $6)",
    [STATEMENT_TOUCH_BLOBS] = "SELECT touch($1)",
    [STATEMENT_HAVE_BLOBS] = "SELECT hash FROM blob WHERE hash = ANY ($1) AND NOT damaged",
    [STATEMENT_GET_BLOB] =
        "SELECT b.length, p.data FROM blob AS b JOIN blob_part AS p USING (hash) "
        "WHERE hash = $1 AND part = $2",
    /* those of one part */
    [STATEMENT_GET_BLOBS] =
        "SELECT b.hash, p.data FROM blob AS b JOIN blob_part AS p USING (hash) "
        "WHERE hash = ANY ($1) AND part = 0 AND b.length = octet_length(p.data)",
    [STATEMENT_BLOB_DAMAGED] = "UPDATE blob SET damaged = true, verified = false WHERE hash = $1",
    [STATEMENT_BLOBS_UNVERIFIED] =
        "SELECT hash, length FROM blob WHERE hash = ANY ($1) AND NOT verified",
    [STATEMENT_BLOBS_VERIFIED] =
        "UPDATE blob SET verified = true WHERE hash = ANY ($1) AND NOT damaged AND NOT verified",
    [STATEMENT_CLAIM_SNAPSHOT] = "SELECT claim_snapshot($1, $2, $3, $4, $5, $6)",
    [STATEMENT_RENEW_CLAIM] = "UPDATE snapshot SET written = clock_timestamp() WHERE node = $1 AND "
                              "locale = $2 AND rev = $3 AND NOT verified",
    [STATEMENT_CONFIRM_SNAPSHOT] = "SELECT confirm_snapshot($1, $2, $3)",
    [STATEMENT_TRIM] = "SELECT trim_log($1, $2, $3)",
    [STATEMENT_COLLECT] = "SELECT collect($1::int8 * interval '1 ms', $2::int8 * interval '1 ms')",
    [STATEMENT_GET_SNAPSHOT] =
        "SELECT rev, op_id, body FROM snapshot WHERE locale = $1 AND verified "
        "ORDER BY rev DESC LIMIT 1",
    [STATEMENT_ADOPT] = "SELECT adopt($1, $2, $3, $4, $5, $6)",
    [STATEMENT_TAKE_LEASE] = "SELECT take_lease($1, $2, $3, $4, $5, $6, $7)",
    [STATEMENT_LEASE_HOLDER] =
        "SELECT holder FROM lease WHERE locale = $1 AND x BETWEEN $2 AND $3 AND y BETWEEN $4 AND "
        "$5 AND expires > clock_timestamp() AND holder <> $6 ORDER BY expires DESC LIMIT 1",
    [STATEMENT_RENEW_LEASES] = "SELECT renew_leases($1, $2, $3)",
    [STATEMENT_LET_GO] = "DELETE FROM lease WHERE holder = $1 AND fence = ANY ($2)",
    [STATEMENT_LET_GO_OLD] = "DELETE FROM lease WHERE holder = $1 AND fence <> ALL ($2)",
    [STATEMENT_SIGN_OF_LIFE] = "SELECT sign_of_life($1, $2, $3, $4, $5, $6, $7)",
    /* the names of its leases' locales end with a blank each; one that is cut off has none */
    [STATEMENT_NODES] =
        "SELECT id, url, locales, patch_slots, patches, left(coalesce((SELECT "
        "string_agg(DISTINCT locale || ' ', '') FROM lease WHERE holder = node.id AND "
        "lease.expires > clock_timestamp()), ''), 1024) FROM node "
        "WHERE expires > clock_timestamp() ORDER BY id",
    [STATEMENT_PUT_POSES] = "SELECT put_poses($1, $2, $3, $4, $5)",
    [STATEMENT_POSES] = "SELECT number, locale, layer, rev, body FROM pose WHERE number > $1 AND "
                        "node <> $2 AND body <> '' ORDER BY number LIMIT $3::int8",
    [STATEMENT_SIGN_OFF] = "DELETE FROM node WHERE id = $1 AND instance = $2",
};

static void prepared(struct ask *ask)
{
    struct cluster *cluster = ask->cluster;
    bool is_done = ask->end == ASK_DONE;
    char why[320];

    snprintf(why, sizeof why, "its statements cannot be prepared: %s (%.5s)", ask->message,
             ask->sqlstate);
    free(ask);
    if (is_done)
        link_is_ready(cluster);
    else if (cluster->conn)
        link_no_use(cluster, LINK_REFUSES, why);
}

static void prepare(struct cluster *cluster)
{
    struct ask *ask = calloc(1, sizeof *ask);
    char listen[CLUSTER_SCHEMA_MAX + 32], name[16];
    bool is_sent = ask && PQenterPipelineMode(cluster->conn);

    for (int i = 0; is_sent && i < STATEMENT_COUNT; i++) {
        CHECK(statements[i]);
        snprintf(name, sizeof name, "s%d", i);
        is_sent = PQsendPrepare(cluster->conn, name, statements[i], 0, NULL);
    }
    snprintf(listen, sizeof listen, "LISTEN \"kota %s\"", cluster->schema);
    is_sent = is_sent && PQsendQueryParams(cluster->conn, listen, 0, NULL, NULL, NULL, NULL, 1);
    if (!is_sent) {
        free(ask);
        link_no_use(cluster, LINK_AWAY, PQerrorMessage(cluster->conn));
        return;
    }
    ask->sent = STATEMENT_COUNT + 1;
    ask->ended = prepared;
    cluster->state = LINK_READY; /* for the pipeline; the calls wait for is_away to fall */
    ask_send(cluster, ask);
}

/* ---- steps ----------------------------------------------------------------------------------- */

enum step { STEP_LOOK, STEP_VERSION, STEP_LOCK, STEP_VERSION_AGAIN, STEP_SCRIPTS };

/* By the tables of the catalogue: the caches of to_regclass still miss a table that was made during
 * the wait for the lock. */
#define HAS_META                                                                                   \
    "EXISTS (SELECT FROM pg_class JOIN pg_namespace AS s ON s.oid = relnamespace "                 \
    "WHERE relname = 'meta' AND nspname = '%s')"
#define HAS_SCHEMA "EXISTS (SELECT FROM pg_namespace WHERE nspname = '%s')"

static void send_query(struct cluster *cluster, enum step step, const char *sql)
{
    cluster->setup_step = (int)step;
    cluster->setup_error[0] = cluster->setup_state[0] = '\0';
    if (!PQsendQuery(cluster->conn, sql))
        link_no_use(cluster, LINK_AWAY, PQerrorMessage(cluster->conn));
    else
        link_flush(cluster);
}

void setup_begin(struct cluster *cluster)
{
    char sql[2048], why[80];
    const char *schema = cluster->schema;
    uint32_t wait_ms = cluster->wait_ms;

    if (PQserverVersion(cluster->conn) < ENGINE_MIN) {
        snprintf(why, sizeof why, "PostgreSQL %d is older than 15",
                 PQserverVersion(cluster->conn) / 10000);
        link_no_use(cluster, LINK_REFUSES, why);
        return;
    }
    snprintf(sql, sizeof sql,
             "SET search_path = %s; SET statement_timeout = %u; SET lock_timeout = %u;"
             "SET idle_in_transaction_session_timeout = %u; SET tcp_keepalives_idle = 5;"
             "SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;"
             "SET tcp_user_timeout = %u; SET jit = off; SET row_security = on;"
             "SET default_transaction_isolation = 'read committed';"
             "SELECT set_config('synchronous_commit', 'on', false) WHERE "
             "current_setting('synchronous_commit') = 'off';"
             "SELECT " HAS_META ", pg_is_in_recovery() OR "
             "current_setting('transaction_read_only')::bool, " HAS_SCHEMA,
             schema, wait_ms - wait_ms / 4, wait_ms / 2, wait_ms / 2, wait_ms, schema, schema);
    send_query(cluster, STEP_LOOK, sql);
}

static void look_at_version(struct cluster *cluster, enum step step)
{
    char sql[160];

    snprintf(sql, sizeof sql, "SELECT version, identity FROM %s.meta", cluster->schema);
    send_query(cluster, step, sql);
}

static void lock_schema(struct cluster *cluster)
{
    char sql[640];

    snprintf(sql, sizeof sql,
             "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('kota %s', 0));"
             "SELECT " HAS_META ", false, " HAS_SCHEMA,
             cluster->schema, cluster->schema, cluster->schema);
    send_query(cluster, STEP_LOCK, sql);
}

static void run_scripts(struct cluster *cluster)
{
    size_t room = 512;
    char *sql;
    size_t length;

    for (int i = cluster->setup_version; i < SCHEMA_VERSION; i++)
        room += strlen(scripts[i]) + 64;
    sql = malloc(room);
    if (!sql) {
        link_no_use(cluster, LINK_AWAY, "no memory");
        return;
    }
    sql[0] = '\0';
    length = 0;
    if (!cluster->setup_flags[2])
        length += (size_t)snprintf(sql, room, "CREATE SCHEMA %s;", cluster->schema);
    for (int i = cluster->setup_version; i < SCHEMA_VERSION; i++)
        length += (size_t)snprintf(sql + length, room - length, "%s;UPDATE meta SET version = %d;",
                                   scripts[i], i + 1);
    snprintf(sql + length, room - length, "COMMIT; SELECT version, identity FROM meta");
    if (cluster->setup_version < SCHEMA_VERSION)
        log_info("the shared log: its schema %s goes from version %d to %d", cluster->schema,
                 cluster->setup_version, (int)SCHEMA_VERSION);
    send_query(cluster, STEP_SCRIPTS, sql);
    free(sql);
}

static void version_known(struct cluster *cluster)
{
    char why[256];

    if (cluster->setup_version > SCHEMA_VERSION) {
        snprintf(why, sizeof why,
                 "its schema has version %d, made by a newer kotad; this one knows versions up to "
                 "%d",
                 cluster->setup_version, (int)SCHEMA_VERSION);
        link_no_use(cluster, LINK_REFUSES, why);
    } else if (cluster->setup_version == SCHEMA_VERSION && cluster->identity[0] &&
               strcmp(cluster->identity, cluster->setup_identity) != 0) {
        /* an append in doubt must not be tried again in another log */
        snprintf(why, sizeof why, "it is another log (%s) than before (%s)",
                 cluster->setup_identity, cluster->identity);
        link_no_use(cluster, LINK_REFUSES, why);
    } else if (cluster->setup_version == SCHEMA_VERSION) {
        memcpy(cluster->identity, cluster->setup_identity, sizeof cluster->identity);
        prepare(cluster);
    } else {
        lock_schema(cluster);
    }
}

static void step_over(struct cluster *cluster)
{
    char why[320];

    if (cluster->setup_error[0]) {
        snprintf(why, sizeof why, "ERROR:  %s: %s", cluster->setup_state, cluster->setup_error);
        link_no_use(cluster, LINK_AWAY, why);
        return;
    }
    switch ((enum step)cluster->setup_step) {
    case STEP_LOOK:
        if (cluster->setup_flags[1])
            link_no_use(cluster, LINK_AWAY, "it is a standby, or read-only");
        else if (cluster->setup_flags[0])
            look_at_version(cluster, STEP_VERSION);
        else
            lock_schema(cluster);
        break;
    case STEP_VERSION:
        version_known(cluster);
        break;
    case STEP_LOCK:
        cluster->setup_version = 0;
        if (cluster->setup_flags[0])
            look_at_version(cluster, STEP_VERSION_AGAIN);
        else
            run_scripts(cluster);
        break;
    case STEP_VERSION_AGAIN:
        run_scripts(cluster);
        break;
    case STEP_SCRIPTS:
        version_known(cluster);
        break;
    }
}

/* Of the results of a step the last row counts, and the first error. */
static void take_result(struct cluster *cluster, const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    if (status == PGRES_TUPLES_OK && PQntuples(result) == 1) {
        if (PQnfields(result) == 3) {
            for (int i = 0; i < 3; i++)
                cluster->setup_flags[i] = PQgetvalue(result, 0, i)[0] == 't';
        } else if (PQnfields(result) == 2) {
            cluster->setup_version = atoi(PQgetvalue(result, 0, 0));
            snprintf(cluster->setup_identity, sizeof cluster->setup_identity, "%s",
                     PQgetvalue(result, 0, 1));
        }
    } else if (status == PGRES_FATAL_ERROR && !cluster->setup_error[0]) {
        const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
        const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);

        snprintf(cluster->setup_error, sizeof cluster->setup_error, "%s",
                 message ? message : PQresultErrorMessage(result));
        snprintf(cluster->setup_state, sizeof cluster->setup_state, "%s",
                 sqlstate ? sqlstate : "08006");
    }
}

void setup_read(struct cluster *cluster)
{
    if (!PQconsumeInput(cluster->conn)) {
        link_no_use(cluster, LINK_AWAY, PQerrorMessage(cluster->conn));
        return;
    }
    while (cluster->state == LINK_SETTING_UP && !PQisBusy(cluster->conn)) {
        PGresult *result = PQgetResult(cluster->conn);

        if (!result) {
            step_over(cluster);
            return;
        }
        take_result(cluster, result);
        PQclear(result);
    }
    if (cluster->state == LINK_SETTING_UP && PQstatus(cluster->conn) == CONNECTION_BAD)
        link_no_use(cluster, LINK_AWAY, PQerrorMessage(cluster->conn));
}
