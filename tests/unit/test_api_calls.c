/*
 * The calls without a connection: answers that can be written down by hand, errors that name their
 * place, and batches that are the bits of single answers.
 *
 * On `hills` the surface is the plane z = x/10 + y/5 (but for one hole about (60, 40)); on `twin`
 * the same stands 100 m higher a second time.
 */
#include "tests/support/api_call.h"

#include "tests/support/json_tape_check.h"
#include "tests/support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct api_test t;

static enum err_code ask(call_answer answer, const char *locale, const char *query,
                         const char *body)
{
    return api_test_ask(&t, answer, locale, "", query, "application/json", body, strlen(body));
}

struct question {
    const char *name;
    call_answer answer;
    const char *locale, *query, *body;
    const char *part; /* of the answer */
};

static const struct question answered[] = {
    {"height by GET", height_get_answer, "hills", "x=5&y=10", "",
     "{\"locale\":\"hills\",\"revision\":2,\"status\":\"ok\",\"height\":2.5}"},
    {"height with fields", height_get_answer, "hills", "x=5&y=12&fields=cell,height", "",
     "\"status\":\"ok\",\"height\":2.9,\"cell\":[0,1]}"},
    {"a hole", height_get_answer, "hills", "x=60&y=40&fields=height,normal,cell", "",
     "\"status\":\"hole\",\"height\":null,\"normal\":null,\"cell\":[6,4]}"},
    {"outside", height_get_answer, "hills", "x=-0.001&y=0&fields=cell", "",
     "\"status\":\"outside\",\"height\":null,\"cell\":null}"},
    {"the far corner belongs to the field", height_get_answer, "hills", "x=80&y=60", "",
     "\"status\":\"ok\",\"height\":20}"},
    {"nearest", height_get_answer, "hills", "x=14&y=16&interp=nearest", "", "\"height\":5}"},
    {"a chosen layer", height_get_answer, "twin", "x=0&y=0&layer=high", "", "\"height\":100}"},
    {"heights in a batch", height_post_answer, "hills", "", "{\"points\":[[0,0],[80,60]]}",
     "\"results\":[{\"status\":\"ok\",\"height\":0},{\"status\":\"ok\",\"height\":20}]}"},
    {"an option in the query of a POST", height_post_answer, "hills", "interp=nearest",
     "{\"points\":[[14,16]]}", "\"height\":5}"},
    {"a layer in the body", height_post_answer, "twin", "",
     "{\"points\":[[0,0]],\"layer\":\"low\"}", "\"height\":0}"},
    {"a hit", ray_post_answer, "hills", "",
     "{\"rays\":[{\"origin\":[5,0,10],\"direction\":[0,0,-2]}]}",
     "{\"status\":\"hit\",\"t\":4.75,\"distance\":9.5,\"point\":[5,0,0.5],"},
    {"a miss", ray_post_answer, "hills", "",
     "{\"rays\":[{\"origin\":[5,0,10],\"direction\":[0,0,1]}]}",
     "[{\"status\":\"miss\",\"t\":null,\"distance\":null,\"point\":null,\"normal\":null,\"layer\":"
     "null,\"cell\":null,"
     "\"triangle\":null,\"polygon\":null}]"},
    {"a ray too short", ray_post_answer, "hills", "",
     "{\"rays\":[{\"origin\":[5,0,10],\"direction\":[0,0,-1],\"t_max\":9.4}]}", "\"miss\""},
    {"t_max null is no end", ray_post_answer, "hills", "",
     "{\"rays\":[{\"origin\":[5,0,10],\"direction\":[0,0,-1],\"t_max\":null}]}", "\"hit\""},
    {"an impossible ray is an item", ray_post_answer, "hills", "",
     "{\"rays\":[{\"origin\":[5,0,10],\"direction\":[0,0,0]},"
     "{\"origin\":[5,0,10],\"direction\":[0,0,-1],\"t_max\":-1},"
     "{\"origin\":[5,0,10],\"direction\":[0,0,-1]}]}",
     "{\"status\":\"invalid\",\"detail\":\"t_max is "
     "negative\",\"t\":null,\"distance\":null,\"point\":null,"
     "\"normal\":null,\"layer\":null,\"cell\":null,\"triangle\":null,\"polygon\":null},{\"status\":"
     "\"hit\""},
    {"the nearest of two layers", ray_post_answer, "twin", "",
     "{\"rays\":[{\"origin\":[5,0,200],\"direction\":[0,0,-1]}]}", "\"layer\":\"high\""},
    {"one layer alone", ray_post_answer, "twin", "layer=low",
     "{\"rays\":[{\"origin\":[5,0,200],\"direction\":[0,0,-1]}]}", "\"layer\":\"low\""},
    {"a trace", ray_post_answer, "hills", "",
     "{\"rays\":[{\"origin\":[5,0,10],\"direction\":[0,0,-1]}],\"trace\":true}", "\"trace\":{"},
    {"nothing in a locale without layers", ray_post_answer, "bare", "",
     "{\"rays\":[{\"origin\":[5,0,10],\"direction\":[0,0,-1]}]}", "\"miss\""},
    {"a profile has both ends", profile_post_answer, "hills", "",
     "{\"path\":[[0,0],[80,0]],\"samples\":3}",
     "[{\"distance\":0,\"point\":[0,0,0],\"status\":\"ok\"},"
     "{\"distance\":40,\"point\":[40,0,4],\"status\":\"ok\"},"
     "{\"distance\":80,\"point\":[80,0,8],\"status\":\"ok\"}]"},
    {"a step that does not divide the path", profile_post_answer, "hills", "",
     "{\"path\":[[0,0],[80,0]],\"step\":50}",
     "{\"distance\":50,\"point\":[50,0,5],\"status\":\"ok\"},"
     "{\"distance\":80,\"point\":[80,0,8],\"status\":\"ok\"}]"},
    {"a profile turns corners, and stands on doubled points", profile_post_answer, "hills", "",
     "{\"path\":[[0,0],[0,0],[40,0],[40,0],[40,40],[40,40]],\"samples\":5}",
     "{\"distance\":20,\"point\":[20,0,2],\"status\":\"ok\"},"
     "{\"distance\":40,\"point\":[40,0,4],\"status\":\"ok\"},"
     "{\"distance\":60,\"point\":[40,20,8],\"status\":\"ok\"},"
     "{\"distance\":80,\"point\":[40,40,12],\"status\":\"ok\"}]"},
    {"a profile leaves the field", profile_post_answer, "hills", "",
     "{\"path\":[[-10,0],[0,0]],\"samples\":2}", "\"point\":[-10,0,null],\"status\":\"outside\""},
    {"a free sight line", los_post_answer, "hills", "",
     "{\"segments\":[{\"from\":[0,0,50],\"to\":[80,60,50]}]}",
     "[{\"visible\":true,\"fraction\":null,\"point\":null}]"},
    {"a blocked sight line", los_post_answer, "hills", "",
     "{\"segments\":[{\"from\":[5,0,10],\"to\":[5,0,-10]}]}",
     "[{\"visible\":false,\"fraction\":0.475,\"point\":[5,0,0.5]}]"},
    {"a picked tile", pick_post_answer, "hills", "",
     "{\"camera\":{\"eye\":[45,15,100],\"target\":[45,15,0],\"up\":[0,1,0],\"fov_y_deg\":40},"
     "\"viewport\":[800,600],\"pixel\":[400,300],\"tile_side\":2}",
     "\"tile\":{\"column\":2,\"row\":0,\"side\":2,\"center\":[50,10,7],"
     "\"bounds\":{\"min\":[40,0,4],\"max\":[60,20,10]}}}"},
    {"a pick into the sky", pick_post_answer, "hills", "",
     "{\"camera\":{\"eye\":[45,15,100],\"target\":[45,15,200],\"up\":[0,1,0],\"fov_y_deg\":40},"
     "\"viewport\":[800,600],\"pixel\":[400,300]}",
     "\"status\":\"miss\",\"hit\":null,\"tile\":null}"},
    {"floor and ceiling between two layers", contact_post_answer, "twin", "",
     "{\"points\":[[5,0,50]]}", "\"floor\":{\"point\":[5,0,0.5],\"distance\":49.5,"},
    {"the ceiling is the lowest above", contact_post_answer, "twin", "", "{\"points\":[[5,0,50]]}",
     "\"ceiling\":{\"point\":[5,0,100.5],\"distance\":50.5,"},
    {"below everything there is a ceiling only", contact_post_answer, "hills", "",
     "{\"points\":[[5,0,-1]]}",
     "\"status\":\"below\",\"floor\":null,\"ceiling\":{\"point\":[5,0,0.5],"},
    {"a step is reached unless said", contact_post_answer, "hills", "", "{\"points\":[[5,0,0]]}",
     "\"status\":\"ok\",\"floor\":{\"point\":[5,0,0.5],\"distance\":0.5,"},
    {"a given reach wins", contact_post_answer, "hills", "",
     "{\"points\":[[5,0,0]],\"reach_up\":0.4}", "\"status\":\"below\",\"floor\":null,"},
    {"a given reach wins over a clearance", contact_post_answer, "hills", "",
     "{\"points\":[[5,0,0]],\"reach_up\":0.4,\"clearance\":1}",
     "\"layer\":\"ground\",\"cell\":[0,0],\"polygon\":null},\"placed\":null}"},
    {"a floor that is too far", contact_post_answer, "twin", "",
     "{\"points\":[[5,0,50]],\"max_distance\":49}",
     "\"status\":\"too_far\",\"floor\":null,\"ceiling\":{\"point\":[5,0,100.5],"},
    {"a floor that is just near enough", contact_post_answer, "twin", "",
     "{\"points\":[[5,0,50]],\"max_distance\":49.5}", "\"status\":\"ok\",\"floor\":{"},
    {"a wheel too far", contact_post_answer, "hills", "",
     "{\"footprints\":[[[0,0,9],[10,0,9],[0,10,9]]],\"max_distance\":8.5}",
     "[{\"status\":\"too_far\",\"plane\":null,\"points\":[null,[10,0,1],[0,10,2]]}]"},
    {"a wheel below the ground", contact_post_answer, "hills", "",
     "{\"footprints\":[[[0,0,9],[10,0,-9],[0,10,9]]]}",
     "[{\"status\":\"below\",\"plane\":null,\"points\":[[0,0,0],null,[0,10,2]]}]"},
    {"reach_up lifts the point over the floor", contact_post_answer, "hills", "",
     "{\"points\":[[5,0,0]],\"reach_up\":0.5}", "\"floor\":{\"point\":[5,0,0.5],\"distance\":0.5,"},
    {"over the hole", contact_post_answer, "hills", "", "{\"points\":[[60,40,50]]}",
     "[{\"status\":\"hole\",\"floor\":null,\"ceiling\":null}]"},
    {"beyond the field", contact_post_answer, "hills", "", "{\"points\":[[81,40,50]]}",
     "[{\"status\":\"outside\",\"floor\":null,\"ceiling\":null}]"},
    {"a camera below the ground is raised", contact_post_answer, "hills", "",
     "{\"points\":[[5,0,-50]],\"clearance\":2}", "\"placed\":[5,0,2.5]}"},
    {"a flying camera is let be", contact_post_answer, "hills", "",
     "{\"points\":[[5,0,50]],\"clearance\":2}", "\"placed\":[5,0,50]}"},
    {"a walking camera is set down", contact_post_answer, "hills", "",
     "{\"points\":[[5,0,50]],\"clearance\":2,\"clearance_mode\":\"exact\"}",
     "\"placed\":[5,0,2.5]}"},
    {"nothing to be placed on", contact_post_answer, "hills", "",
     "{\"points\":[[60,40,50]],\"clearance\":2}", "\"placed\":null}"},
    {"another gravity looks along it", contact_post_answer, "tilted", "", "{\"points\":[[0,0,4]]}",
     "\"floor\":{\"point\":[40,0,4],\"distance\":40,"},
    {"a footprint has its contact points", contact_post_answer, "hills", "",
     "{\"footprints\":[[[0,0,9],[10,0,9],[0,10,9]]]}", "\"points\":[[0,0,0],[10,0,1],[0,10,2]]}"},
    {"a wheel over the hole", contact_post_answer, "hills", "",
     "{\"footprints\":[[[0,0,9],[60,40,99],[0,10,9]]]}",
     "[{\"status\":\"hole\",\"plane\":null,\"points\":[[0,0,0],null,[0,10,2]]}]"},
    {"inside under the open sky", contains_post_answer, "hills", "", "{\"points\":[[5,0,50]]}",
     "[{\"status\":\"inside\",\"floor\":true,\"ceiling\":false}]"},
    {"inside between floor and ceiling", contains_post_answer, "twin", "",
     "{\"points\":[[5,0,50],[5,0,150],[5,0,-1]]}",
     "[{\"status\":\"inside\",\"floor\":true,\"ceiling\":true},"
     "{\"status\":\"outside\",\"floor\":true,\"ceiling\":false},"
     "{\"status\":\"below\",\"floor\":false,\"ceiling\":true}]"},
    {"over the hole and beyond the field", contains_post_answer, "hills", "",
     "{\"points\":[[60,40,50],[81,40,50]]}",
     "[{\"status\":\"hole\",\"floor\":false,\"ceiling\":false},"
     "{\"status\":\"outside\",\"floor\":false,\"ceiling\":false}]"},
};

static void questions_have_the_answers_of_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof answered / sizeof *answered; i++) {
        const struct question *q = &answered[i];
        struct err err = {.code = ERR_OK};

        if (ask(q->answer, q->locale, q->query, q->body) != ERR_OK)
            fail_msg("%s: refused: %s (%s)", q->name, t.err.msg, t.err.pointer);
        if (!strstr(t.out, q->part))
            fail_msg("%s: expected %s in %s", q->name, q->part, t.out);
        if (json_check(t.out, t.out_used, &json_limits_default, &err) != ERR_OK)
            fail_msg("%s: %s", q->name, err.msg);
    }
}

static const struct {
    call_answer answer;
    const char *locale, *query, *body;
    enum err_code code;
    const char *pointer;
} refused[] = {
    {height_get_answer, "hills", "x=1", "", ERR_BAD_INPUT, "y"},
    {height_get_answer, "hills", "x=1&y=nan", "", ERR_BAD_INPUT, "y"},
    {height_get_answer, "hills", "x=1&y=1e999", "", ERR_BAD_INPUT, "y"},
    {height_get_answer, "hills", "x=1&y=0x10", "", ERR_BAD_INPUT, "y"},
    {height_get_answer, "hills", "x=1&y=", "", ERR_BAD_INPUT, "y"},
    {height_get_answer, "hills", "x=1&y=2&interp=cubic", "", ERR_BAD_INPUT, "interp"},
    {height_get_answer, "hills", "x=1&y=2&fields=height,colour", "", ERR_BAD_INPUT, "fields"},
    {height_get_answer, "hills", "x=1&y=2&z=3", "", ERR_BAD_INPUT, "z"},
    {height_get_answer, "hills", "x=1&y=2&x=3", "", ERR_BAD_INPUT, "x"},
    {height_get_answer, "hills", "x=1&y=2&layer=none", "", ERR_LAYER_UNKNOWN_OPTION, "layer"},
    {height_get_answer, "twin", "x=1&y=2", "", ERR_UNPROCESSABLE, "layer"},
    {height_get_answer, "bare", "x=1&y=2", "", ERR_UNPROCESSABLE, "layer"},
    {height_post_answer, "hills", "", "", ERR_BAD_INPUT, ""},
    {height_post_answer, "hills", "", "[]", ERR_BAD_INPUT, ""},
    {height_post_answer, "hills", "", "{}", ERR_BAD_INPUT, "/points"},
    {height_post_answer, "hills", "", "{\"points\":[]}", ERR_BAD_INPUT, "/points"},
    {height_post_answer, "hills", "", "{\"points\":{}}", ERR_BAD_INPUT, "/points"},
    {height_post_answer, "hills", "", "{\"points\":[[1]]}", ERR_BAD_INPUT, "/points/0"},
    {height_post_answer, "hills", "", "{\"points\":[[1,2],[1,2,3]]}", ERR_BAD_INPUT, "/points/1"},
    {height_post_answer, "hills", "", "{\"points\":[[1,\"2\"]]}", ERR_BAD_INPUT, "/points/0"},
    {height_post_answer, "hills", "", "{\"points\":[[1,null]]}", ERR_BAD_INPUT, "/points/0"},
    {height_post_answer, "hills", "", "{\"points\":[[1,true]]}", ERR_BAD_INPUT, "/points/0"},
    {height_post_answer, "hills", "", "{\"points\":[[1,1e999]]}", ERR_BAD_INPUT, "/points/0/1"},
    {height_post_answer, "hills", "", "{\"pionts\":[[1,1]]}", ERR_BAD_INPUT, "/pionts"},
    {height_post_answer, "hills", "", "{\"points\":[[1,1]],\"points\":[[1,1]]}", ERR_BAD_INPUT,
     "/points"},
    {height_post_answer, "hills", "", "{\"points\":[[1,1]],\"interp\":1}", ERR_BAD_INPUT,
     "/interp"},
    {height_post_answer, "hills", "", "{\"points\":[[1,1]],\"fields\":[\"x\"]}", ERR_BAD_INPUT,
     "/fields/0"},
    {height_post_answer, "hills", "", "{\"points\":[[1,1]],\"fields\":\"height\"}", ERR_BAD_INPUT,
     "/fields"},
    {height_post_answer, "hills", "interp=nearest", "{\"points\":[[1,1]],\"interp\":\"nearest\"}",
     ERR_BAD_INPUT, "interp"},
    {ray_post_answer, "hills", "", "{\"rays\":[1]}", ERR_BAD_INPUT, "/rays/0"},
    {ray_post_answer, "hills", "",
     "{\"rays\":[{\"origin\":[5,0,10],\"direction\":[0,0,-1],\"tmax\":1}]}", ERR_BAD_INPUT,
     "/rays/0/tmax"},
    {ray_post_answer, "hills", "", "{\"rays\":[{\"origin\":[1,2,3]}]}", ERR_BAD_INPUT,
     "/rays/0/direction"},
    {ray_post_answer, "hills", "",
     "{\"rays\":[{\"origin\":[1,2,3],\"direction\":[0,0,1],\"t_max\":\"far\"}]}", ERR_BAD_INPUT,
     "/rays/0/t_max"},
    {ray_post_answer, "hills", "",
     "{\"rays\":[{\"origin\":[1,2,3],\"direction\":[0,0,1]},{\"origin\":[1,2],\"direction\":"
     "[0,0,1]}]}",
     ERR_BAD_INPUT, "/rays/1/origin"},
    {ray_post_answer, "hills", "",
     "{\"rays\":[{\"origin\":[1,2,3],\"direction\":[0,0,1]},{\"origin\":[1,2,3],\"direction\":"
     "[0,0,1]}],\"trace\":true}",
     ERR_BAD_INPUT, "/trace"},
    {ray_post_answer, "hills", "",
     "{\"rays\":[{\"origin\":[1,2,3],\"direction\":[0,0,1]}],\"mode\":\"most\"}", ERR_BAD_INPUT,
     "/mode"},
    {profile_post_answer, "hills", "", "{\"path\":[[0,0],[1,1]]}", ERR_BAD_INPUT, "/samples"},
    {profile_post_answer, "hills", "", "{\"path\":[[0,0],[1,1]],\"samples\":2,\"step\":1}",
     ERR_BAD_INPUT, "/step"},
    {profile_post_answer, "hills", "", "{\"path\":[[0,0],[1,1]],\"samples\":1}", ERR_BAD_INPUT,
     "/samples"},
    {profile_post_answer, "hills", "", "{\"path\":[[0,0],[1,1]],\"samples\":2.5}", ERR_BAD_INPUT,
     "/samples"},
    {profile_post_answer, "hills", "", "{\"path\":[[0,0],[1,1]],\"samples\":10001}", ERR_TOO_LARGE,
     "/samples"},
    {profile_post_answer, "hills", "", "{\"path\":[[0,0],[1,1]],\"step\":0}", ERR_BAD_INPUT,
     "/step"},
    {profile_post_answer, "hills", "", "{\"path\":[[0,0],[1,1]],\"step\":1e-9}", ERR_TOO_LARGE,
     "/step"},
    {profile_post_answer, "hills", "", "{\"path\":[[0,0]],\"samples\":2}", ERR_BAD_INPUT, "/path"},
    {profile_post_answer, "hills", "", "{\"path\":[[0,0],[1]],\"samples\":2}", ERR_BAD_INPUT,
     "/path/1"},
    {los_post_answer, "hills", "", "{\"segments\":[{\"from\":[0,0,0]}]}", ERR_BAD_INPUT,
     "/segments/0/to"},
    {pick_post_answer, "hills", "", "{\"viewport\":[8,6],\"pixel\":[4,3]}", ERR_BAD_INPUT,
     "/camera"},
    {pick_post_answer, "hills", "",
     "{\"viewport\":[8,6],\"pixel\":[4,3],\"inverse_view_projection\":[1,2]}", ERR_BAD_INPUT,
     "/inverse_view_projection"},
    {pick_post_answer, "hills", "",
     "{\"viewport\":[8,6],\"pixel\":[4,3],\"inverse_view_projection\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
     "0,0]}",
     ERR_UNPROCESSABLE, "/inverse_view_projection"},
    {pick_post_answer, "hills", "",
     "{\"viewport\":[8,6],\"pixel\":[4,3],\"camera\":{\"eye\":[0,0,0],\"target\":[0,0,0],\"up\":"
     "[0,0,1],\"fov_y_deg\":40}}",
     ERR_UNPROCESSABLE, "/camera/target"},
    {pick_post_answer, "hills", "",
     "{\"viewport\":[8,6],\"pixel\":[4,3],\"tile_side\":0,\"camera\":{\"eye\":[0,0,9],\"target\":"
     "[0,1,0],\"up\":[0,0,1],\"fov_y_deg\":40}}",
     ERR_BAD_INPUT, "/tile_side"},
    {pick_post_answer, "hills", "",
     "{\"viewport\":[8,6],\"pixel\":[4,3],\"camera\":{\"eye\":[0,0,9],\"target\":[0,1,0],\"up\":"
     "[0,0,1],\"fov\":40}}",
     ERR_BAD_INPUT, "/camera/fov"},
    {contact_post_answer, "hills", "", "{}", ERR_BAD_INPUT, "/points"},
    {contact_post_answer, "hills", "", "{\"points\":[[0,0,0]],\"reach_up\":-1}", ERR_BAD_INPUT,
     "/reach_up"},
    {contact_post_answer, "hills", "", "{\"points\":[[0,0,0]],\"max_distance\":-1}", ERR_BAD_INPUT,
     "/max_distance"},
    {contact_post_answer, "hills", "", "{\"points\":[[0,0,0]],\"footprints\":[]}", ERR_BAD_INPUT,
     "/footprints"},
    {contact_post_answer, "hills", "", "{\"footprints\":[[[0,0,0],[1,0,0]]]}", ERR_BAD_INPUT,
     "/footprints/0"},
    {contact_post_answer, "hills", "", "{\"footprints\":[[[0,0,0],[1,0,0],[1,1]]]}", ERR_BAD_INPUT,
     "/footprints/0/2"},
    {contains_post_answer, "hills", "", "{\"points\":[[0,0]]}", ERR_BAD_INPUT, "/points/0"},
};

static void mistakes_are_refused_at_their_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        enum err_code code =
            ask(refused[i].answer, refused[i].locale, refused[i].query, refused[i].body);

        if (err_http_status(code) != err_http_status(refused[i].code) ||
            strcmp(t.err.pointer, refused[i].pointer) != 0)
            fail_msg("case %zu, %s %s: got %d at \"%s\" (%s), expected %d at \"%s\"", i,
                     refused[i].query, refused[i].body, (int)code, t.err.pointer, t.err.msg,
                     (int)refused[i].code, refused[i].pointer);
    }
}

static void a_batch_has_a_limit_and_says_it(void **state)
{
    size_t count = 10001;
    char *body = malloc(16 + count * 6);
    size_t n = 0;

    (void)state;
    assert_non_null(body);
    n += (size_t)sprintf(body + n, "{\"points\":[");
    for (size_t i = 0; i < count; i++)
        n += (size_t)sprintf(body + n, "%s[1,2]", i ? "," : "");
    n += (size_t)sprintf(body + n, "]}");
    assert_int_equal(ask(height_post_answer, "hills", "", body), ERR_TOO_MANY_ITEMS);
    assert_true(t.err.has_limit && t.err.limit == 10000 && t.err.got == 10001);
    free(body);
}

static void other_media_types_are_refused(void **state)
{
    static const char body[] = "{\"points\":[[1,2]]}";

    (void)state;
    assert_int_equal(
        api_test_ask(&t, height_post_answer, "hills", "", "", "text/plain", body, sizeof body - 1),
        ERR_UNSUPPORTED_MEDIA_TYPE);
    assert_int_equal(
        api_test_ask(&t, height_post_answer, "hills", "", "", "", body, sizeof body - 1), ERR_OK);
}

static void a_sink_without_memory_is_an_error_not_a_cut_answer(void **state)
{
    (void)state;
    t.out_limit = 16;
    assert_int_equal(ask(height_post_answer, "hills", "", "{\"points\":[[1,2]]}"), ERR_NO_MEMORY);
    t.out_limit = 0;
}

/* ---- binary batches -------------------------------------------------------------------------- */

enum { SEED = 42, ITEMS = 2000 };

static void ask_binary(call_answer answer, const char *locale, const char *query, size_t bytes,
                       const void *body, size_t length)
{
    const char *media = bytes == 4 ? "application/vnd.kota.f32" : "application/vnd.kota.f64";

    if (api_test_ask(&t, answer, locale, "", query, media, body, length) != ERR_OK)
        fail_msg("%s: %s (%s)", locale, t.err.msg, t.err.pointer);
}

static void binary_heights_are_the_bits_of_single_answers(void **state)
{
    struct random random = {SEED};
    static double in[ITEMS][2], out[ITEMS];

    (void)state;
    print_message("seed %d\n", SEED);
    for (size_t i = 0; i < ITEMS; i++) {
        in[i][0] = random_in(&random, -10, 90);
        in[i][1] = random_in(&random, -10, 70);
    }
    ask_binary(height_post_answer, "hills", "interp=bilinear", 8, in, sizeof in);
    assert_int_equal(t.out_used, sizeof out);
    memcpy(out, t.out, sizeof out);
    for (size_t i = 0; i < ITEMS; i++) {
        char query[128];
        const char *text;
        double height;

        snprintf(query, sizeof query, "interp=bilinear&x=%.17g&y=%.17g", in[i][0], in[i][1]);
        assert_int_equal(ask(height_get_answer, "hills", query, ""), ERR_OK);
        text = strstr(t.out, "\"height\":") + 9;
        height = *text == 'n' ? NAN : strtod(text, NULL);
        if (!(height == out[i] || (isnan(height) && isnan(out[i]))))
            fail_msg("%s: %.17g alone, %.17g in the batch", query, height, out[i]);
    }
}

static void a_base_moves_points_in_and_out(void **state)
{
    const float in[3] = {5, 10, 50};
    float out[6];

    (void)state;
    ask_binary(contact_post_answer, "twin", "base=10,20,-7", 4, in, sizeof in);
    assert_int_equal(t.out_used, sizeof out);
    memcpy(out, t.out, sizeof out);
    /* (15, 30, 43): floor 1.5 + 6 = 7.5, ceiling 107.5, both told from z = -7 */
    assert_true(out[0] == 14.5f && out[4] == 114.5f);
    assert_true(out[3] > 0.9f && out[3] <= 1);
    assert_true(out[5] == 0);
}

/* ok, below, over the hole, outside; ok again, but too far down */
static void binary_contacts_and_heights_have_their_status(void **state)
{
    const double in[5][3] = {{5, 0, 9}, {5, 0, -1}, {60, 40, 50}, {81, 40, 50}, {5, 0, 99}};
    const double at[3][2] = {{5, 0}, {60, 40}, {81, 40}};
    const double height_status[3] = {0, 2, 3};
    double out[5][6], heights[3][2];

    (void)state;
    ask_binary(contact_post_answer, "hills", "max_distance=90", 8, in, sizeof in);
    assert_int_equal(t.out_used, sizeof out);
    memcpy(out, t.out, sizeof out);
    for (int i = 0; i < 5; i++) {
        assert_true(out[i][5] == i);
        assert_int_equal(!isnan(out[i][0]), i == 0);
    }
    assert_true(out[1][4] == 0.5 && isnan(out[4][4]));
    for (size_t bytes = 4; bytes <= 8; bytes += 4) {
        const float narrow[3][2] = {{5, 0}, {60, 40}, {81, 40}};
        float few[3][2];

        ask_binary(height_post_answer, "hills", "status=true&base=0,0,-7", bytes,
                   bytes == 4 ? (const void *)narrow : at, bytes == 4 ? sizeof narrow : sizeof at);
        assert_int_equal(t.out_used, 6 * bytes);
        memcpy(heights, t.out, bytes == 8 ? sizeof heights : 0);
        memcpy(few, t.out, sizeof few);
        for (int i = 0; i < 3; i++) {
            double height = bytes == 8 ? heights[i][0] : (double)few[i][0];

            assert_true((bytes == 8 ? heights[i][1] : (double)few[i][1]) == height_status[i]);
            assert_true(i == 0 ? height == 7.5 : isnan(height));
        }
    }
}

static void binary_rays_hit_miss_and_are_invalid(void **state)
{
    const double in[3][7] = {{5, 0, 10, 0, 0, -1, INFINITY},
                             {5, 0, 10, 0, 0, 1, INFINITY},
                             {5, 0, 10, 0, 0, 0, INFINITY}};
    double out[3][4];

    (void)state;
    ask_binary(ray_post_answer, "hills", "", 8, in, sizeof in);
    assert_int_equal(t.out_used, sizeof out);
    memcpy(out, t.out, sizeof out);
    assert_true(out[0][0] == 9.5 && out[0][3] > 0.9);
    assert_true(isinf(out[1][0]) && isnan(out[1][1]));
    assert_true(isnan(out[2][0]) && isnan(out[2][1]));
}

static void binary_containment_is_a_byte(void **state)
{
    const float in[4][3] = {{5, 0, 50}, {5, 0, 150}, {5, 0, -1}, {81, 0, 1}};
    static const unsigned char want[4] = {7, 18, 4, 16};
    const float over_hole[3] = {60, 40, 50};

    (void)state;
    ask_binary(contains_post_answer, "twin", "", 4, in, sizeof in);
    assert_int_equal(t.out_used, 4);
    assert_memory_equal(t.out, want, 4);
    ask_binary(contains_post_answer, "hills", "", 4, over_hole, sizeof over_hole);
    assert_int_equal(t.out[0], 8);
}

static void binary_mistakes_are_refused(void **state)
{
    static const float in[3] = {1, NAN, 3};
    static const struct {
        const char *query;
        size_t length;
        enum err_code code;
    } cases[] = {
        {"", 0, ERR_BAD_INPUT},
        {"", 7, ERR_BAD_INPUT},
        {"", 12, ERR_BAD_INPUT},
        {"", 8, ERR_BAD_INPUT},
        {"", 4, ERR_BAD_INPUT},
        {"base=1,2", 8, ERR_BAD_INPUT},
        {"fields=height", 8, ERR_BAD_INPUT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum err_code code = api_test_ask(&t, height_post_answer, "hills", "", cases[i].query,
                                          "application/vnd.kota.f32", in, cases[i].length);

        if (err_http_status(code) != err_http_status(cases[i].code))
            fail_msg("%zu bytes, %s: got %d (%s), expected %d", cases[i].length, cases[i].query,
                     (int)code, t.err.msg, (int)cases[i].code);
    }
}

static void tiles_beyond_the_field_are_not_there(void **state)
{
    static const struct {
        const char *place;
        enum err_code code;
    } cases[] = {
        {"0/0/0", ERR_OK},
        {"0/1/0", ERR_TILE_UNKNOWN},
        {"0/0/1", ERR_TILE_UNKNOWN},
        {"1/0/0", ERR_OK},
        {"3/0/0", ERR_OK},
        {"4/0/0", ERR_TILE_UNKNOWN},
        {"99/0/0", ERR_TILE_UNKNOWN},
        {"-1/0/0", ERR_TILE_UNKNOWN},
        {"0/0/0.5", ERR_TILE_UNKNOWN},
        {"0/99999999999/0", ERR_TILE_UNKNOWN},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum err_code code =
            api_test_ask(&t, tile_get_answer, "hills", cases[i].place, "format=f32", "", "", 0);

        if (code != cases[i].code)
            fail_msg("%s: got %d, expected %d", cases[i].place, (int)code, (int)cases[i].code);
    }
    api_test_ask(&t, tile_get_answer, "hills", "0/0/0", "format=f32", "", "", 0);
    assert_int_equal(t.out_used, 257 * 257 * 4);
}

static int open_world(void **state)
{
    (void)state;
    api_test_open(&t);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    api_test_close(&t);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_have_the_answers_of_hand),
        cmocka_unit_test(mistakes_are_refused_at_their_place),
        cmocka_unit_test(a_batch_has_a_limit_and_says_it),
        cmocka_unit_test(other_media_types_are_refused),
        cmocka_unit_test(a_sink_without_memory_is_an_error_not_a_cut_answer),
        cmocka_unit_test(binary_heights_are_the_bits_of_single_answers),
        cmocka_unit_test(a_base_moves_points_in_and_out),
        cmocka_unit_test(binary_contacts_and_heights_have_their_status),
        cmocka_unit_test(binary_rays_hit_miss_and_are_invalid),
        cmocka_unit_test(binary_containment_is_a_byte),
        cmocka_unit_test(binary_mistakes_are_refused),
        cmocka_unit_test(tiles_beyond_the_field_are_not_there),
    };

    return cmocka_run_group_tests(tests, open_world, close_world);
}
