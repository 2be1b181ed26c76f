/*
 * Worlds that share a log, in one process: each with a store of its own, at an engine in memory
 * (fake_cluster.h).
 */
#ifndef KOTA_TESTS_SUPPORT_FOLLOW_FIXTURE_H
#define KOTA_TESTS_SUPPORT_FOLLOW_FIXTURE_H

#include "tests/support/change_make.h"
#include "tests/support/follow/fake_cluster.h"

enum { COLS = 300, ROWS = 270, SAMPLES = COLS * ROWS, WAIT_MS = 600000 };

struct node {
    char directory[64], name[8];
    const char *pattern, *vfs;
    uint32_t poll_ms;
    uint64_t snapshot_every, keep;
    struct cluster *log;
    struct store *store;
    struct world *world;
};

struct nodes {
    struct node a, b, c;
};

/* A submitted change, and what came of it. */
struct waited {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool is_done;
    enum err_code code;
    char answer[64], message[320];
    uint64_t revision;
};

enum err_code open_node(struct node *n, struct err *err);
void start(struct node *n);
void stop(struct node *n);
int setup(void **state);
int teardown(void **state);
void copy_folder(const char *from, const char *to);
void apply(struct node *n, struct world_change change);
void put_locale(struct node *n, const char *locale);
void put_field(struct node *n, const char *locale, const char *layer, float height);
void put_mesh(struct node *n, const char *locale, const char *layer, double z,
              struct mesh_space space);
struct world_change edit_of(const char *locale, uint32_t column, uint32_t row, float height);
void edit(struct node *n, const char *locale, uint32_t column, uint32_t row, float height);
struct waited submit(struct node *n, struct world_change change);
struct world_change with_key(struct world_change change, const char *key, uint8_t request);
uint64_t revision_of(struct node *n, const char *locale);

/* Until the node has applied all that the engine has. */
void catch_up(struct node *n);

/* The same locales, layers and models, bit for bit. */
void expect_same(struct node *a, struct node *b);

/* Both caught up, equal, and equal again after a restart, with nothing damaged. */
void expect_all_same(struct node *a, struct node *b);

void start_two(struct nodes *all);
void put_model(struct node *n, const char *id, double side);

/* What a node has made without a log. */
void fill_alone(struct node *n);

#endif
