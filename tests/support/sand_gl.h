/*
 * Tests of granules once more on OpenGL: a sand_make for files that are compiled with another
 * engine. Include before cmocka's functions are needed; static, since each test program is one
 * file.
 */
#ifndef KOTA_TESTS_SAND_GL_H
#define KOTA_TESTS_SAND_GL_H

#include "sand/engine_gl/gl_engine.h"

#include "support/sand_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static struct context *gl_context; /* made by the program's main */

static struct sand_engine *gl_make(const struct granular_params *params, uint32_t threads)
{
    struct sand_engine_config config = sand_config(params);
    struct sand_engine *engine;
    struct err err;

    (void)threads;
    config.slots = 1;
    engine = gl_engine_create(gl_context, &config, &err);
    if (!engine)
        fail_msg("%s", err.msg);
    return engine;
}

#endif
