/*
 * Slabs: blocks do not overlap, come back, and are given back.
 */
#include "base/slab.h"

#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { BLOCK_BYTES = 275190 };

/* Each block is full of its own number as long as it is used. */
static void block_mark(unsigned char *block, unsigned number)
{
    memset(block, (int)(number % 251), BLOCK_BYTES);
}

static void block_check(const unsigned char *block, unsigned number)
{
    for (size_t i = 0; i < BLOCK_BYTES; i += 97)
        assert_int_equal(block[i], number % 251);
    assert_int_equal(block[BLOCK_BYTES - 1], number % 251);
}

static void blocks_keep_what_is_in_them(void **state)
{
    enum { SLOTS = 70, STEPS = 3000 };
    struct slab_pool pool = SLAB_POOL_INIT;
    unsigned char *block[SLOTS] = {NULL};
    unsigned number[SLOTS];
    struct random random = {1};
    (void)state;

    for (unsigned n = 0; n < STEPS; n++) {
        uint32_t i = random_below(&random, SLOTS);

        if (block[i] != NULL) {
            block_check(block[i], number[i]);
            slab_free(&pool, block[i]);
            block[i] = NULL;
            continue;
        }
        block[i] = slab_alloc(&pool, BLOCK_BYTES);
        assert_non_null(block[i]);
        assert_int_equal((uintptr_t)block[i] % 64, 0);
        number[i] = n;
        block_mark(block[i], n);
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (block[i] != NULL)
            block_check(block[i], number[i]);
        slab_free(&pool, block[i]);
    }
    assert_true(pool.empty <= 1);
}

static long mapped_pages(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pages), 1);
    fclose(file);
    return pages;
}

static void what_is_free_is_given_back(void **state)
{
    enum { COUNT = 300, PER_SLAB = SLAB_BYTES / BLOCK_BYTES };
    struct slab_pool pool = SLAB_POOL_INIT;
    void *block[COUNT];
    long before = mapped_pages(), slab_pages = SLAB_BYTES / sysconf(_SC_PAGESIZE);
    (void)state;

#ifdef __SANITIZE_ADDRESS__
    print_message("blocks are malloc's under address sanitizer\n");
    skip();
#endif
    for (int i = 0; i < COUNT; i++)
        block[i] = slab_alloc(&pool, BLOCK_BYTES);
    assert_true(mapped_pages() - before >= COUNT / PER_SLAB * slab_pages);
    for (int i = 0; i < COUNT; i += 2) /* every slab is still used */
        slab_free(&pool, block[i]);
    assert_true(mapped_pages() - before >= COUNT / PER_SLAB * slab_pages);
    for (int i = 1; i < COUNT; i += 2)
        slab_free(&pool, block[i]);
    assert_int_equal(pool.empty, 1);
    assert_true(mapped_pages() - before <= slab_pages + 16);
}

struct worker {
    struct slab_pool *pool;
    uint64_t seed;
    bool is_good;
};

static void *work(void *context)
{
    struct worker *worker = context;
    struct random random = {worker->seed};
    unsigned char *block[8] = {NULL};

    worker->is_good = true;
    for (int n = 0; n < 5000; n++) {
        uint32_t i = random_below(&random, 8);

        if (block[i] == NULL) {
            block[i] = slab_alloc(worker->pool, BLOCK_BYTES);
            block[i][0] = (unsigned char)worker->seed;
            block[i][BLOCK_BYTES - 1] = (unsigned char)worker->seed;
        } else {
            worker->is_good = worker->is_good && block[i][0] == worker->seed &&
                              block[i][BLOCK_BYTES - 1] == worker->seed;
            slab_free(worker->pool, block[i]);
            block[i] = NULL;
        }
    }
    for (uint32_t i = 0; i < 8; i++)
        slab_free(worker->pool, block[i]);
    return NULL;
}

static void threads_share_a_pool(void **state)
{
    struct slab_pool pool = SLAB_POOL_INIT;
    struct worker worker[4];
    pthread_t thread[4];
    (void)state;

    for (int i = 0; i < 4; i++) {
        worker[i] = (struct worker){&pool, (uint64_t)i + 1, false};
        assert_int_equal(pthread_create(&thread[i], NULL, work, &worker[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        assert_true(worker[i].is_good);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_keep_what_is_in_them),
        cmocka_unit_test(what_is_free_is_given_back),
        cmocka_unit_test(threads_share_a_pool),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
