/* The headless OpenGL context: words, software rendering, what is said when there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <epoxy/gl.h>

#include "sand/engine_gl/context.h"

/* NULL, with the reason printed, where this machine has no software renderer. */
static struct context *software(void)
{
    struct err err = {0};
    struct context *context = context_create("software", CONTEXT_DEBUG, &err);

    if (!context)
        print_message("# %s\n", err.msg);
    return context;
}

static void words_are_known(void **state)
{
    static const char *const good[] = {"auto", "software", "off", "0", "1", "63"};
    static const char *const bad[] = {"", "64", "-1", "Auto", "1x", "gpu0", "007"};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(context_word_ok(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err err = {0};

        assert_false(context_word_ok(bad[i]));
        assert_null(context_create(bad[i], 0, &err));
        assert_int_equal(err.code, ERR_BAD_INPUT);
    }
}

static void off_is_a_reason(void **state)
{
    struct err err = {0};

    (void)state;
    assert_null(context_create("off", 0, &err));
    assert_int_equal(err.code, ERR_BUSY);
    assert_non_null(strstr(err.msg, "--gpu off"));
}

static void a_device_that_is_not_there_is_a_reason(void **state)
{
    struct err err = {0};

    (void)state;
    assert_null(context_create("63", 0, &err));
    assert_int_equal(err.code, ERR_BUSY);
    assert_non_null(strstr(err.msg, "--gpu 63"));
}

static void software_computes_and_says_what_it_is(void **state)
{
    struct context *context = software();
    const struct context_info *info;

    (void)state;
    if (!context)
        skip();
    info = context_info(context);
    assert_true(info->software);
    assert_int_equal(info->device, -1);
    assert_true(info->major * 10 + info->minor >= 43);
    assert_true(strlen(info->renderer) > 0 && strlen(info->vendor) > 0);
    assert_true(info->storage_blocks >= 8);
    assert_true(info->storage_block_bytes >= 16 << 20);
    assert_true(info->group_invocations >= 256);
    assert_int_equal(context_errors(context), 0);
    assert_false(context_lost(context));
    glEnable(0x1806f); /* no such thing */
    assert_int_equal(context_errors(context), 1);
    context_destroy(context);
}

static void a_lost_context_is_made_anew(void **state)
{
    struct context *context = software();
    struct err err = {0};
    GLuint buffer;

    (void)state;
    if (!context)
        skip();
    for (uint32_t round = 1; round <= 2; round++) {
        glGenBuffers(1, &buffer);
        glBindBuffer(GL_SHADER_STORAGE_BUFFER, buffer);
        assert_true(glIsBuffer(buffer));
        context_pretend_loss(context);
        assert_true(context_lost(context));
        assert_int_equal(context_rebuild(context, &err), ERR_OK);
        assert_false(context_lost(context));
        assert_false(glIsBuffer(buffer));
        assert_int_equal(context_rebuilds(context), round);
    }
    context_destroy(context);
    context_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_known),
        cmocka_unit_test(off_is_a_reason),
        cmocka_unit_test(a_device_that_is_not_there_is_a_reason),
        cmocka_unit_test(software_computes_and_says_what_it_is),
        cmocka_unit_test(a_lost_context_is_made_anew),
    };

    context_prepare();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
