/*
 * Indices of AC3D files: what assimp would read as vertex 0 is refused, with its line; what real
 * files do is taken.
 */
#include "formats/polygon/ac3d.h"
#include "tests/support/polygon_check.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
#define HEAD "AC3Db\nMATERIAL \"\" rgb 1 1 1\nOBJECT world\nkids 2\nOBJECT poly\n"
#define THREE "numvert 3\n0 0 0\n-1 0 0\n0 1 0\n"
#define SURF "numsurf 1\nSURF 0x10\nmat 0\n"

static enum err_code check(const char *text, size_t length, struct err *err)
{
    uint8_t *exact = malloc(length ? length : 1);
    enum err_code code;

    memcpy(exact, text, length);
    memset(err, 0, sizeof *err);
    code = ac3d_check_indices(exact, length, err);
    free(exact);
    return code;
}

static void good_check(const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct err err;

        if (check(texts[i], strlen(texts[i]), &err))
            fail_msg("case %zu is refused: %s", i, err.msg);
    }
}

static void indices_within_their_objects_vertices_are_taken(void **state)
{
    static const char *const texts[] = {
        HEAD THREE SURF "refs 3\n0 0 0\n1 0 0\n2 0 0\nkids 0\n",
        HEAD THREE SURF "refs 3\n0\n1\n2",
        HEAD THREE "numsurf 2\nSURF 0x10\nrefs 1\n2 0 0 1 1\nrefs 1\n1 0 0\n",
        HEAD "numvert 0\nkids 0\n",
        HEAD "kids 0\nOBJECT group\nname \"refs\"\nkids 1\nOBJECT poly\n" THREE "kids 0\n",
        HEAD "numvert 1\r\n0 0 0\r\n\r\n" SURF "\trefs \t1\r\n  0 0 0\r\nkids 0\r\n",
        HEAD "numvert 1\r0 0 0\rrefs 1\r0 0 0\rkids 0",
        "AC3Db\n",
        "",
    };

    (void)state;
    good_check(texts, COUNT_OF(texts));
}

static void an_object_has_its_own_vertices(void **state)
{
    static const char *const good[] = {
        HEAD "numvert 1\n0 0 0\nrefs 1\n0 0 0\nkids 1\nOBJECT poly\n" THREE
             "refs 1\n2 0 0\nkids 0\nOBJECT poly\nnumvert 2\n0 0 0\n0 0 0\nrefs 1\n1 0 0\n"};
    struct err err;
    static const char bad[] = HEAD THREE "refs 1\n2 0 0\nkids 1\nOBJECT poly\nnumvert 1\n0 0 0\n"
                                         "refs 1\n1 0 0\n";

    (void)state;
    good_check(good, COUNT_OF(good));
    assert_int_equal(check(bad, strlen(bad), &err), ERR_BAD_INPUT);
    assert_string_equal(err.msg,
                        "AC3D: line 17: index 1 is out of range, the object has 1 vertices");
}

static void what_is_wrong_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {HEAD THREE SURF "refs 2\n0 0 0\n3 0 0\n", "line 15: index 3 is out of range, the object "
                                                   "has 3 vertices"},
        {HEAD THREE "\n\r\nrefs 1\n66 0 0\n", "line 13: index 66 is out of range"},
        {HEAD THREE "refs 1\n-1 0 0\n", "line 11: index -1 is out of range"},
        {HEAD THREE "refs 1\n4294967296 0 0\n", "line 11: index 4294967296 is out of range"},
        {HEAD THREE "refs 1\n1234567890123456789 0 0\n", "line 11: no index"},
        {HEAD THREE "refs 2\n0 0 0\nSURF 0x10\n", "line 12: no index, but refs is 2 and this is 1"},
        {HEAD THREE "refs 1\n0.5 0 0\n", "line 11: no index"},
        {HEAD THREE "refs 1\n \n", "line 11: no index"},
        {HEAD THREE "refs 2\n0 0 0", "line 10: refs 2, but the file ends after 1"},
        {HEAD THREE "refs\n0 0 0\n", "line 10: refs without a whole number"},
        {HEAD THREE "refs -3\n", "line 10: refs without a whole number"},
        {HEAD "refs 1\n0 0 0\n", "line 6: refs before the object's numvert"},
        {HEAD THREE "kids 0\nOBJECT poly\nrefs 1\n0 0 0\n", "line 12: refs before the object's"},
        {HEAD "numvert three\n", "line 6: numvert without a whole number"},
        {HEAD "numvert 2\n0 0 0\nnumsurf 1\n", "line 8: no vertex, but numvert is 2"},
        {HEAD "numvert 999999999999999999\n0 0 0\n", "line 6: numvert 999999999999999999, but the "
                                                     "file ends after 1 vertices"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct err err;
        enum err_code code = check(cases[i].text, strlen(cases[i].text), &err);

        if (code != ERR_BAD_INPUT || !strstr(err.msg, cases[i].message))
            fail_msg("case %zu: code %d \"%s\", expected \"%s\"", i, (int)code, err.msg,
                     cases[i].message);
    }
}

static void no_truncated_length_is_read_past(void **state)
{
    static const char text[] = HEAD THREE SURF "refs 3\n0 0 0\n1 0 0\n2 0 0\r\nkids 0\r\n";
    struct err err;

    (void)state;
    for (size_t cut = 0; cut < sizeof text; cut++) {
        enum err_code code = check(text, cut, &err);

        if (code && code != ERR_BAD_INPUT)
            fail_msg("the first %zu bytes: code %d \"%s\"", cut, (int)code, err.msg);
    }
}

static void an_index_out_of_range_is_refused_by_the_reader(void **state)
{
    static const char text[] = HEAD THREE SURF "refs 3\n0 0 0\n1 0 0\n3 0 0\nkids 0\n";

    (void)state;
    polygon_check_refused(POLYGON_AC3D, text, strlen(text), NULL, NULL, ERR_BAD_INPUT,
                          "AC3D: line 16: index 3");
}

static void a_real_file_is_taken(void **state)
{
    struct err err;
    size_t length;
    uint8_t *bytes = test_data_read("meshes-sharealike/torcs_g-track-2.acc", &length);

    (void)state;
    if (!bytes) {
        print_message("# torcs_g-track-2.acc is not here\n");
        skip();
    }
    if (check((const char *)bytes, length, &err))
        fail_msg("refused: %s", err.msg);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indices_within_their_objects_vertices_are_taken),
        cmocka_unit_test(an_object_has_its_own_vertices),
        cmocka_unit_test(what_is_wrong_is_refused_with_its_line),
        cmocka_unit_test(no_truncated_length_is_read_past),
        cmocka_unit_test(an_index_out_of_range_is_refused_by_the_reader),
        cmocka_unit_test(a_real_file_is_taken),
    };

    return cmocka_run_group_tests_name("ac3d", tests, NULL, NULL);
}
