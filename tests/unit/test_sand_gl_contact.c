/*
 * The physics of test_sand_contact.c once more, on the OpenGL engine: the same tests, compiled with
 * another sand_make; one case of each and less time in make test. KOTA_TEST_GPU takes
 * another device than Mesa's software renderer.
 */
#include "support/long_form.h"
#include "support/sand_gl.h"

#define sand_make gl_make
#define contact_form long_form
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
    gl_context = context_create(gpu ? gpu : "software", CONTEXT_DEBUG, &err);
    if (!gl_context) {
        printf("1..0 # SKIP %s\n", err.msg);
        return 0;
    }
    failed = contact_tests();
    if (context_errors(gl_context) > 0)
        failed++;
    context_destroy(gl_context);
    return failed;
}
