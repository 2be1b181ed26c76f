/*
 * Loading: names of SRTM tiles, metres a degree, and worlds that are refused with file and member.
 * (Whole worlds are started by the tests over a socket.)
 */
#include "daemon/load.h"

#include "base/degree_grid.h"
#include "tests/support/api_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/near.h"

static struct api_test t;
static char folder[] = "/tmp/kota-test-load-XXXXXX";

static void srtm_names_tell_their_middle(void **state)
{
    static const struct {
        const char *name;
        double middle_deg;
    } good[] = {{"N42E001.hgt", 42.5},
                {"S46W066.hgt", -45.5},
                {"N00E000", 0.5},
                {"s01e179.SRTMGL1.hgt", -0.5}};
    static const char *const bad[] = {"N42E01.hgt", "X42E001.hgt", "42E001", "N42", "N99E001",
                                      "",           "NE"};
    double middle_deg;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!hgt_name_latitude(good[i].name, &middle_deg) || middle_deg != good[i].middle_deg)
            fail_msg("%s: got %g, expected %g", good[i].name, middle_deg, good[i].middle_deg);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (hgt_name_latitude(bad[i], &middle_deg))
            fail_msg("accepted: %s", bad[i]);
}

static void a_degree_has_the_metres_of_the_ellipsoid(void **state)
{
    double east_m, north_m;

    (void)state;
    /* WGS84: prime vertical radius 6388838.29 m and meridian radius 6367381.82 m at 45 degrees */
    hgt_metres_a_degree(0, &east_m, &north_m);
    assert_near(east_m, 111319.49, 0.01);
    assert_near(north_m, 110574.28, 0.01);
    hgt_metres_a_degree(45, &east_m, &north_m);
    assert_near(east_m, 78846.835, 0.001);
    assert_near(north_m, 111131.78, 0.01);
    hgt_metres_a_degree(-90, &east_m, &north_m);
    assert_near(east_m, 0, 1e-6);
    assert_near(north_m, 111693.98, 0.05);
}

static void write_file(const char *name, const char *text)
{
    char path[256];
    FILE *stream;

    snprintf(path, sizeof path, "%s/world/%s", folder, name);
    stream = fopen(path, "w");
    assert_non_null(stream);
    fputs(text, stream);
    fclose(stream);
}

static const char asc[] = "ncols 3\nnrows 2\nxllcorner 0\nyllcorner 0\ncellsize 10\n1 2 3\n4 5 6\n";

static const struct {
    const char *json;
    const char *parts[2]; /* of the message; NULL: the world is taken */
} worlds[] = {
    {"{\"layers\":[{\"id\":\"ground\",\"file\":\"a.asc\"}]}", {NULL}},
    {"{\"title\":\"T\"}", {NULL}},
    {"{\"layers\":[{\"id\":\"ground\",\"file\":\"a.asc\",\"spacing\":[5,5],\"flip_y\":true}]}",
     {NULL}},
    {"{\"layers\":[{\"id\":\"roof\",\"file\":\"a.obj\",\"role\":\"ceiling\",\"up\":\"y\","
     "\"scale\":2}]}",
     {NULL}},
    {"{\"gravity\":[1,0,0],\"layers\":[{\"id\":\"a\",\"file\":\"a.obj\"},{\"id\":\"b\",\"file\":"
     "\"a.asc\"}]}",
     {NULL}},
    {"{\"layers\":[", {"locale.json", "byte 11"}},
    {"{\"tilte\":\"T\"}", {"locale.json", "/tilte"}},
    {"{\"gravity\":[0,0]}", {"locale.json", "/gravity"}},
    {"{\"gravity\":[0,0,-2]}", {"locale.json", "/gravity"}},
    {"{\"placement\":{\"rotation\":[0,0,0,2]}}", {"locale.json", "/placement/rotation"}},
    {"{\"triangulation\":\"best\"}", {"/triangulation", "best"}},
    {"{\"geo\":{\"lat\":91,\"lng\":0}}", {"/geo/lat", "91"}},
    {"{\"layers\":{}}", {"locale.json", "/layers"}},
    {"{\"layers\":[{\"file\":\"a.asc\"}]}", {"/layers/0/id", "string"}},
    {"{\"layers\":[{\"id\":\"a b\",\"file\":\"a.asc\"}]}", {"/layers/0/id", "a b"}},
    {"{\"layers\":[{\"id\":\"g\"}]}", {"/layers/0/file", "string"}},
    {"{\"layers\":[{\"id\":\"g\",\"file\":\"b.asc\"}]}", {"/layers/0/file", "b.asc"}},
    {"{\"layers\":[{\"id\":\"g\",\"file\":\"../outside.asc\"}]}", {"/layers/0/file", "out of"}},
    {"{\"layers\":[{\"id\":\"g\",\"file\":\"/etc/passwd\"}]}", {"/layers/0/file", "/etc/passwd"}},
    {"{\"layers\":[{\"id\":\"g\",\"file\":\"locale.json\"}]}",
     {"/layers/0", "locale.json ends in"}},
    {"{\"layers\":[{\"id\":\"g\",\"file\":\"a.asc\",\"spacing\":[0,1]}]}",
     {"/layers/0/spacing", "1e-30"}},
    {"{\"layers\":[{\"id\":\"g\",\"file\":\"a.asc\",\"spacing\":\"1,1\"}]}",
     {"/layers/0/spacing", "string"}},
    {"{\"layers\":[{\"id\":\"g\",\"file\":\"a.asc\",\"cols\":3}]}", {"/layers/0/cols", "f32"}},
    {"{\"layers\":[{\"id\":\"g\",\"file\":\"a.asc\"},{\"id\":\"g\",\"file\":\"a.asc\"}]}",
     {"/layers/1/id", "\"g\""}},
    {"{\"layers\":[{\"id\":\"g\",\"file\":\"a.obj\",\"spacing\":[1,1]}]}", {"/layers/0/spacing"}},
    {"{\"layers\":[{\"id\":\"g\",\"file\":\"a.asc\",\"up\":\"y\"}]}", {"/layers/0/up"}},
    {"{\"layers\":[{\"id\":\"g\",\"file\":\"a.asc\",\"role\":\"ceiling\"}]}",
     {"/layers/0/role", "ground"}},
    {"{\"layers\":[{\"id\":\"g\",\"file\":\"a.obj\",\"scale\":0}]}",
     {"/layers/0/scale", "above 0"}},
    {"{\"layers\":[{\"id\":\"g\",\"file\":\"cut.obj\"}]}", {"/layers/0", "cut.obj"}},
    {"{\"layers\":[{\"id\":\"g\",\"file\":\"cut.asc\",\"spacing\":[1,1]}]}",
     {"/layers/0", "cut.asc"}},
};

static void worlds_are_taken_whole_or_refused_by_name(void **state)
{
    char directory[256];

    (void)state;
    snprintf(directory, sizeof directory, "%s/world", folder);
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        struct err err = {.code = ERR_OK};
        enum err_code code;

        write_file("island/locale.json", worlds[i].json);
        api_test_open(&t);
        code = load_world(&t.api, directory, &err);
        if ((code == ERR_OK) != (worlds[i].parts[0] == NULL))
            fail_msg("%s: got %d (%s)", worlds[i].json, (int)code, err.msg);
        for (size_t k = 0; k < 2 && worlds[i].parts[k]; k++)
            if (!strstr(err.msg, worlds[i].parts[k]))
                fail_msg("%s: \"%s\" does not name %s", worlds[i].json, err.msg,
                         worlds[i].parts[k]);
        api_test_close(&t);
    }
}

static void files_take_options_after_a_question_mark(void **state)
{
    static const struct {
        const char *argument;
        const char *part; /* NULL: taken */
    } cases[] = {
        {"a.asc", NULL},
        {"a.asc?spacing=5,5&flip_y=false", NULL},
        {"a.asc?spacing=5%2C5", NULL},
        {"a.asc?spacing=5", "spacing"},
        {"a.asc?spacing=5,0", "spacing"},
        {"a.asc?colour=red", "colour"},
        {"a.asc?flip_y=maybe", "flip_y"},
        {"a.obj", NULL},
        {"a.obj?role=ceiling&up=y&scale=0.5", NULL},
        {"a.obj?spacing=5,5", "spacing"},
        {"a.obj?up=x", "up"},
        {"a.asc?up=y", "up"},
        {"cut.obj", "cut.obj"},
    };
    char argument[256];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {.code = ERR_OK};
        enum err_code code;

        snprintf(argument, sizeof argument, "%s/world/island/%s", folder, cases[i].argument);
        api_test_open(&t);
        code = load_file(&t.api, argument, &err);
        if ((code == ERR_OK) != (cases[i].part == NULL) ||
            (cases[i].part && !strstr(err.msg, cases[i].part)))
            fail_msg("%s: got %d (%s)", cases[i].argument, (int)code, err.msg);
        api_test_close(&t);
    }
}

static void two_files_of_one_id_are_refused(void **state)
{
    struct err err = {.code = ERR_OK};
    char argument[256];

    (void)state;
    snprintf(argument, sizeof argument, "%s/world/island/a.asc", folder);
    api_test_open(&t);
    assert_int_equal(load_file(&t.api, argument, &err), ERR_OK);
    assert_int_equal(load_file(&t.api, argument, &err), ERR_CONFLICT);
    api_test_close(&t);
}

static int make_folder(void **state)
{
    char path[256];

    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/world", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/world/island", folder);
    mkdir(path, 0700);
    write_file("outside.asc", asc);
    write_file("island/a.asc", asc);
    write_file("island/a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n");
    write_file("island/cut.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 4\n");
    write_file("island/cut.asc", "ncols 3\nnrows 2\ncellsize 10\n1 2 3\n4");
    return 0;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"world/island/locale.json", "world/island/a.asc",
                                        "world/island/cut.asc",     "world/outside.asc",
                                        "world/island/a.obj",       "world/island/cut.obj"};
    char path[256];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/world/island", folder);
    rmdir(path);
    snprintf(path, sizeof path, "%s/world", folder);
    rmdir(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(srtm_names_tell_their_middle),
        cmocka_unit_test(a_degree_has_the_metres_of_the_ellipsoid),
        cmocka_unit_test(worlds_are_taken_whole_or_refused_by_name),
        cmocka_unit_test(files_take_options_after_a_question_mark),
        cmocka_unit_test(two_files_of_one_id_are_refused),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
