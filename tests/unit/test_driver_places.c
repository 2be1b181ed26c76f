/* Where OpenGL's drivers keep what they compile: the folders are made, the way there included. */
#include "sand/engine_gl/driver_places.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static const char *const names[] = {"HOME",
                                    "XDG_CACHE_HOME",
                                    "MESA_SHADER_CACHE_DIR",
                                    "__GL_SHADER_DISK_CACHE_PATH",
                                    "LD_LIBRARY_PATH",
                                    "__EGL_VENDOR_LIBRARY_DIRS"};

static int prepare(void **state)
{
    char folder[] = "/tmp/kota-test-XXXXXX";

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    *state = mkdtemp(folder) ? strdup(folder) : NULL;
    return *state == NULL;
}

static int clear(void **state)
{
    char command[64];
    int status;

    snprintf(command, sizeof command, "rm -r %s", (const char *)*state);
    status = system(command);
    free(*state);
    return status;
}

/* Expects the only place, that it is a folder, and that it is below. */
static void expect_made(const char *folder, const char *below)
{
    struct driver_places places;
    struct stat status;
    char path[256];

    snprintf(path, sizeof path, "%s%s", folder, below);
    driver_places_find(&places);
    for (size_t i = 0; i < places.count; i++)
        if (strcmp(places.paths[i], path) == 0) {
            assert_true(places.is_written[i]);
            assert_int_equal(stat(path, &status), 0);
            assert_true(S_ISDIR(status.st_mode));
            assert_int_equal(status.st_mode & 0777, 0700);
            return;
        }
    fail_msg("%s is none of %zu places", path, places.count);
}

/* Mesa's is not asked for here: it would be made in the home of whoever runs this. */
static void a_new_home_gets_its_cache(void **state)
{
    const char *home = *state;

    setenv("XDG_CACHE_HOME", home, 1);
    setenv("HOME", home, 1);
    expect_made(home, "/.nv");
    expect_made(home, "/.nv"); /* and once it is there */
}

static void a_cache_that_is_named_is_made_with_its_parents(void **state)
{
    char path[256];

    snprintf(path, sizeof path, "%s/a/b", (const char *)*state);
    setenv("XDG_CACHE_HOME", path, 1);
    expect_made(path, "/mesa_shader_cache");
    expect_made(path, "/mesa_shader_cache_db");
    setenv("MESA_SHADER_CACHE_DIR", path, 1);
    expect_made(path, "");
}

static void what_cannot_be_made_is_left(void **state)
{
    struct driver_places places;
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/file", (const char *)*state);
    file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    setenv("HOME", path, 1);
    setenv("XDG_CACHE_HOME", "not/absolute", 1);
    driver_places_find(&places);
    assert_int_equal(places.count, 1); /* .nv: whoever writes there finds out */
}

static void libraries_are_read_only(void **state)
{
    struct driver_places places;

    setenv("XDG_CACHE_HOME", *state, 1);
    setenv("LD_LIBRARY_PATH", "/opt/one::relative:/opt/two", 1);
    driver_places_find(&places);
    assert_int_equal(places.count, 4);
    for (size_t i = 2; i < 4; i++) {
        assert_string_equal(places.paths[i], i == 3 ? "/opt/two" : "/opt/one");
        assert_false(places.is_written[i]);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, prepare, clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_new_home_gets_its_cache),
        CASE(a_cache_that_is_named_is_made_with_its_parents),
        CASE(what_cannot_be_made_is_left),
        CASE(libraries_are_read_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
