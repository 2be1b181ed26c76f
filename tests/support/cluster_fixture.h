/*
 * Clusters for tests, on a real PostgreSQL (postgres.h).
 */
#ifndef KOTA_TESTS_CLUSTER_FIXTURE_H
#define KOTA_TESTS_CLUSTER_FIXTURE_H

#include "replica/cluster.h"

#include "support/postgres.h"

/* One server for a program; the tests skip when there is no PostgreSQL. */
extern struct postgres test_postgres;
int cluster_tests_begin(void **state);
int cluster_tests_end(void **state);
/* Skips the test without a server; else drops the schema, so that it begins with nothing. */
int cluster_test_begin(void **state);

/* Fails the test unless it is there. conninfo NULL: that of test_postgres. */
struct cluster *cluster_must(const char *conninfo, const char *node);
struct cluster *cluster_must_with(const struct cluster_options *options);
void cluster_ok(enum err_code code, const struct err *err);

/* An entry of made-up bytes that follow from (locale, revision, op_id); data is static per thread
 * and `bytes` long at most CLUSTER_TEST_BYTES_MAX. */
enum { CLUSTER_TEST_BYTES_MAX = 4096 };
struct cluster_entry cluster_test_entry(const char *locale, uint64_t revision, const char *op_id,
                                        size_t bytes, uint8_t *data);
/* Appends one, and fails the test unless that is acknowledged. */
void cluster_must_append(struct cluster *cluster, const char *locale, uint64_t revision,
                         const char *op_id);
/* The revision of a locale's head; 0: none. */
uint64_t cluster_must_head(struct cluster *cluster, const char *locale);

/* All entries of a locale behind a revision: their op_ids, checked to be without gap and with the
 * data of cluster_test_entry. Returns how many; op_ids is malloc, may be NULL. */
size_t cluster_must_read(struct cluster *cluster, const char *locale, uint64_t after,
                         char (**op_ids)[CLUSTER_OP_ID_MAX + 1]);

/* One value of an SQL statement on the server. */
long long cluster_sql(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
