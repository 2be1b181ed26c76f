/*
 * The shaders of the sand, as they are put together for a driver, held against the language by
 * glslangValidator (package glslang-tools): Mesa takes more than GLSL 4.30, and another driver
 * would find that out in front of a user. Skipped where there is no such program.
 */
#include "sand/engine_gl/gl_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char path[] = "/tmp/kota-test-XXXXXX.comp";

/* What the validator says of these parts; its status. -1: it is not installed. */
static int validated(const char *const *parts, int count, char *said, size_t bytes)
{
    char command[128];
    size_t got;
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    for (int i = 0; i < count; i++)
        assert_true(fputs(parts[i], file) >= 0);
    assert_int_equal(fclose(file), 0);
    if (system("command -v glslangValidator >/dev/null"))
        return -1;
    snprintf(command, sizeof command, "glslangValidator -S comp %s 2>&1", path);
    file = popen(command, "r");
    assert_non_null(file);
    got = fread(said, 1, bytes - 1, file);
    said[got] = '\0';
    return pclose(file);
}

static void shaders_are_glsl_4_30(void **state)
{
    (void)state;
    for (int pass = 0; pass < GL_PASS_COUNT; pass++) {
        const char *parts[GL_SOURCE_PARTS];
        char head[GL_HEAD_BYTES], said[4096];
        int status;

        gl_program_source((enum gl_pass)pass, head, sizeof head, parts);
        status = validated(parts, GL_SOURCE_PARTS, said, sizeof said);
        if (status < 0) {
            print_message("# glslangValidator is not installed (glslang-tools)\n");
            skip();
        }
        if (status > 0)
            fail_msg("%s: %s", gl_program_name((enum gl_pass)pass), said);
    }
}

/* What Mesa lets pass and others do not: the test above would see it. */
static void what_is_no_glsl_4_30_is_refused(void **state)
{
    static const char *const wrong[] = {
        "layout(local_size_x = 1) in; void main() { uint active = 1u; }",
        "layout(local_size_x = 1) in; void main() { if (1) return; }",
        "layout(local_size_x = 1) in; void main() { int i = 1u; }",
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *parts[] = {"#version 430 core\n", wrong[i]};
        char said[4096];
        int status = validated(parts, 2, said, sizeof said);

        if (status < 0)
            skip();
        if (status == 0)
            fail_msg("it takes: %s", wrong[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shaders_are_glsl_4_30),
        cmocka_unit_test(what_is_no_glsl_4_30_is_refused),
    };
    int file = mkstemps(path, 5), failed;

    if (file < 0)
        return 1;
    close(file);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
