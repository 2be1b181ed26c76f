/*
 * The physics of test_sand_contact.c once more, on the OpenGL engine: the same tests, compiled with
 * another sand_make. KOTA_TEST_GPU takes another device than Mesa's software renderer.
 */
#include "sand/gl_engine.h"

#include "support/sand_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static struct context *context;

static struct sand_engine *gl_make(const struct granular_params *params, uint32_t threads)
{
    struct sand_engine_config config = sand_config(params);
    struct sand_engine *engine;
    struct err err;

    (void)threads;
    config.slots = 1;
    engine = gl_engine_create(context, &config, &err);
    if (!engine)
        fail_msg("%s", err.msg);
    return engine;
}

#define sand_make gl_make
#define main contact_tests
int contact_tests(void);
#include "unit/test_sand_contact.c"
#undef main

int main(void)
{
    const char *gpu = getenv("KOTA_TEST_GPU");
    struct err err = {0};
    int failed;

    context_prepare();
    context = context_create(gpu ? gpu : "software", true, &err);
    if (!context) {
        printf("1..0 # SKIP %s\n", err.msg);
        return 0;
    }
    failed = contact_tests();
    if (context_errors(context) > 0)
        failed++;
    context_destroy(context);
    return failed;
}
