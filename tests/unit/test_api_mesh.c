/*
 * Calls over meshes, without a connection: answers by hand, uploads of OBJ with their options, and
 * what is refused.
 */
#include "api/options.h"
#include "api/upload.h"
#include "tests/support/api_call.h"
#include "tests/support/json_tape_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct api_test t;

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

static const struct {
    const char *name;
    call_answer answer;
    const char *locale, *tail, *query, *body, *part; /* part: of the answer */
} answered[] = {
    {"the height is the field's, not the bridge's", height_get_answer, "crossing", "", "x=30&y=25",
     "", "\"status\":\"ok\",\"height\":8}"},
    {"the height of meshes alone is their topmost ground", height_get_answer, "house", "",
     "x=30&y=25&fields=height,normal,cell", "", "\"height\":30,\"normal\":[0,0,1],\"cell\":null}"},
    {"beside the meshes", height_post_answer, "house", "", "",
     "{\"points\":[[19,25]],\"fields\":[\"cell\"]}",
     "[{\"status\":\"outside\",\"height\":null,\"cell\":null}]"},
    {"a hit on a polygon names it as the file does", ray_post_answer, "crossing", "", "",
     "{\"rays\":[{\"origin\":[30,25,40],\"direction\":[0,0,-1]}]}",
     "{\"status\":\"hit\",\"t\":10,\"distance\":10,\"point\":[30,25,30],\"normal\":[0,0,1],"
     "\"layer\":\"deck\","
     "\"cell\":null,\"triangle\":null,\"polygon\":1}"},
    {"a hit under it names the cell", ray_post_answer, "crossing", "", "",
     "{\"rays\":[{\"origin\":[30,25,20],\"direction\":[0,0,-1]}]}",
     "\"layer\":\"ground\",\"cell\":[3,2],\"triangle\":0,\"polygon\":null}"},
    {"a chosen mesh is asked alone", ray_post_answer, "crossing", "", "layer=roof",
     "{\"rays\":[{\"origin\":[30,25,20],\"direction\":[0,0,-1]}]}", "{\"status\":\"miss\","},
    {"a trace tells of meshes", ray_post_answer, "house", "", "",
     "{\"rays\":[{\"origin\":[30,25,40],\"direction\":[0,0,-1]}],\"trace\":true}",
     "\"entered\":true}],\"polygons\":[1]}],\"truncated\":false}"},
    {"a picked polygon has no tile", pick_post_answer, "crossing", "", "",
     "{\"camera\":{\"eye\":[30,30,45],\"target\":[30,30,0],\"up\":[0,1,0],\"fov_y_deg\":40},"
     "\"viewport\":[8,6],\"pixel\":[4,3]}",
     "\"polygon\":1},\"tile\":null}"},
    {"the bridge hides what is under it", los_post_answer, "crossing", "", "",
     "{\"segments\":[{\"from\":[30,25,40],\"to\":[30,25,20]}]}",
     "[{\"visible\":false,\"fraction\":0.5,\"point\":[30,25,30]}]"},
    {"on the bridge, under the roof", contact_post_answer, "crossing", "", "",
     "{\"points\":[[30,25,32]]}",
     "\"floor\":{\"point\":[30,25,30],\"distance\":2,\"normal\":[0,0,1],\"slope_deg\":0,"
     "\"layer\":\"deck\",\"cell\":null,\"polygon\":1},"
     "\"ceiling\":{\"point\":[30,25,50],\"distance\":18,"},
    {"under the bridge it is the ceiling", contact_post_answer, "crossing", "", "",
     "{\"points\":[[30,25,20]]}",
     "\"cell\":[3,2],\"polygon\":null},\"ceiling\":{\"point\":[30,25,30],\"distance\":10,"},
    {"over the roof the bridge is the floor", contact_post_answer, "crossing", "", "",
     "{\"points\":[[30,25,60]]}", "\"floor\":{\"point\":[30,25,30],\"distance\":30,"},
    {"a foot on the bridge, one beside it", contact_post_answer, "crossing", "", "",
     "{\"footprints\":[[[30,25,40],[38,25,40],[41,25,40]]]}",
     "\"points\":[[30,25,30],[38,25,30],[41,25,9.1]]"},
    {"beyond the field the bridge still bears", contains_post_answer, "crossing", "", "",
     "{\"points\":[[30,70,32],[50,70,32]]}",
     "[{\"status\":\"inside\",\"floor\":true,\"ceiling\":true},"
     "{\"status\":\"hole\",\"floor\":false,\"ceiling\":false}]"},
    {"stats of a mesh", layer_stats_get_answer, "crossing", "deck", "", "",
     "\"layer\":\"deck\",\"nodes\":1,\"leaves\":1,\"depth\":0,\"polygons\":1,\"bytes\":"},
    {"stats of a heightfield", layer_stats_get_answer, "crossing", "ground", "", "",
     "\"layer\":\"ground\",\"tiles\":1,\"samples\":63,"},
    {"a locale tells its layers", locale_get_answer, "house", "", "", "",
     "{\"id\":\"deck\",\"kind\":\"mesh\",\"role\":\"ground\",\"polygons\":1,"
     "\"frame\":\"cartesian\",\"bounds\":{\"min\":[20,20,30],\"max\":[40,80,30]},\"memory_"
     "bytes\":"},
    {"a ceiling says so", locale_get_answer, "crossing", "", "", "",
     "{\"id\":\"roof\",\"kind\":\"mesh\",\"role\":\"ceiling\","},
    {"a point of the world is located", locate_post_answer, NULL, "", "",
     "{\"points\":[[1030,25,40],[30,25,40],[30,25,-40]]}",
     "{\"results\":[{\"locale\":\"house\",\"point\":[30,25,40],\"changed\":false,"
     "\"revision\":2},"
     "{\"locale\":\"crossing\",\"point\":[30,25,40],\"changed\":false,\"revision\":4},"
     "{\"locale\":null,\"point\":null,\"changed\":false,\"revision\":null}]}"},
    {"a hint wins, or the answer has changed", locate_post_answer, NULL, "", "",
     "{\"points\":[[30,25,40],[30,25,40],[30,25,-40],[30,25,40]],"
     "\"hints\":[\"hills\",\"house\",\"hills\",\"gone\"]}",
     "{\"results\":[{\"locale\":\"hills\",\"point\":[30,25,40],\"changed\":false,"
     "\"revision\":2},"
     "{\"locale\":\"crossing\",\"point\":[30,25,40],\"changed\":true,\"revision\":4},"
     "{\"locale\":null,\"point\":null,\"changed\":true,\"revision\":null},"
     "{\"locale\":\"crossing\",\"point\":[30,25,40],\"changed\":true,\"revision\":4,"
     "\"hint\":\"unknown\"}]}"},
    {"limits of meshes", limits_get_answer, NULL, "", "", "",
     "\"polygons_max\":2000000,\"polygon_corners_max\":8000000,\"polygon_vertices_max\":8000000,"},
    {"memory of meshes", stats_get_answer, NULL, "", "", "",
     "\"mesh_layers\":3,\"mesh_polygons\":3,\"mesh_bytes\":"},
};

static void questions_over_meshes_have_the_answers_of_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof answered / sizeof *answered; i++) {
        const char *body = answered[i].body;
        struct err err = {.code = ERR_OK};

        if (api_test_ask(&t, answered[i].answer, answered[i].locale, answered[i].tail,
                         answered[i].query, "application/json", body, strlen(body)))
            fail_msg("%s: refused: %s (%s)", answered[i].name, t.err.msg, t.err.pointer);
        if (!strstr(t.out, answered[i].part))
            fail_msg("%s: expected %s in %s", answered[i].name, answered[i].part, t.out);
        if (json_check(t.out, t.out_used, &json_limits_default, &err))
            fail_msg("%s: %s", answered[i].name, err.msg);
    }
}

static const struct {
    call_answer answer;
    const char *locale, *query, *body;
    enum err_code code;
    const char *pointer;
} refused[] = {
    {height_get_answer, "house", "x=1&y=2&interp=nearest", "", ERR_UNPROCESSABLE, "interp"},
    {height_get_answer, "crossing", "x=1&y=2&layer=roof", "", ERR_LAYER_KIND, "layer"},
    {profile_post_answer, "house", "", "{\"path\":[[0,0],[1,1]],\"samples\":2}", ERR_NO_HEIGHTFIELD,
     "/layer"},
    {profile_post_answer, "crossing", "layer=deck", "{\"path\":[[0,0],[1,1]],\"samples\":2}",
     ERR_LAYER_KIND, "layer"},
    {tile_get_answer, "house", "", "", ERR_NO_HEIGHTFIELD, "layer"},
    {locate_post_answer, NULL, "", "{\"points\":[]}", ERR_BAD_INPUT, "/points"},
    {locate_post_answer, NULL, "", "{\"points\":[[1,2]]}", ERR_BAD_INPUT, "/points/0"},
    {locate_post_answer, NULL, "", "{\"points\":[[1,2,3]],\"hints\":[]}", ERR_BAD_INPUT, "/hints"},
    {locate_post_answer, NULL, "", "{\"points\":[[1,2,3]],\"hints\":[null,\"a\"]}", ERR_BAD_INPUT,
     "/hints"},
    {locate_post_answer, NULL, "", "{\"points\":[[1,2,3]],\"hints\":[7]}", ERR_BAD_INPUT,
     "/hints/0"},
    {locate_post_answer, NULL, "", "{\"points\":[[1,2,3]],\"hints\":[\"no id\"]}", ERR_BAD_INPUT,
     "/hints/0"},
    {world_contact_post_answer, NULL, "", "{\"points\":[[1,2,3]],\"hints\":[\"\"]}", ERR_BAD_INPUT,
     "/hints/0"},
    {locate_post_answer, NULL, "", "{\"points\":[[1,2,3]],\"hint\":[null]}", ERR_UNKNOWN_MEMBER,
     "/hint"},
    {locate_post_answer, NULL, "layer=a", "{\"points\":[[1,2,3]]}", ERR_UNKNOWN_PARAMETER, "layer"},
};

static void what_meshes_cannot_answer_is_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *body = refused[i].body;
        enum err_code code = api_test_ask(&t, refused[i].answer, refused[i].locale, "0/0/0",
                                          refused[i].query, "application/json", body, strlen(body));

        if (code != refused[i].code || strcmp(t.err.pointer, refused[i].pointer) != 0)
            fail_msg("%zu: got %d at \"%s\" (%s), expected %d at \"%s\"", i, (int)code,
                     t.err.pointer, t.err.msg, (int)refused[i].code, refused[i].pointer);
    }
}

static void batches_are_the_bits_of_single_answers(void **state)
{
    const double point[3] = {30, 25, 32}, ray[7] = {30, 25, 60, 0.1, 0, -1, INFINITY};
    double contact[6], hit[4];

    (void)state;
    assert_int_equal(api_test_ask(&t, contact_post_answer, "crossing", "", "",
                                  "application/vnd.kota.f64", point, sizeof point),
                     ERR_OK);
    assert_int_equal(t.out_used, sizeof contact);
    memcpy(contact, t.out, sizeof contact);
    assert_true(contact[0] == 30 && contact[3] == 1 && contact[4] == 50);
    assert_int_equal(api_test_ask(&t, ray_post_answer, "crossing", "", "layer=deck",
                                  "application/vnd.kota.f64", ray, sizeof ray),
                     ERR_OK);
    memcpy(hit, t.out, sizeof hit);
    assert_true(fabs(hit[0] - 30) < 1e-12 && hit[3] == 1);
    assert_int_equal(api_test_ask(&t, contains_post_answer, "crossing", "", "",
                                  "application/vnd.kota.f64", point, sizeof point),
                     ERR_OK);
    assert_int_equal(t.out_used, 1);
    assert_int_equal(t.out[0], 7);
}

/* ---- uploads --------------------------------------------------------------------------------- */

/* Y up, one unit is a metre: a square at y = 2, and a triangle of no area. */
static const char square[] = "v 0 2 0\nv 1 2 0\nv 1 2 -1\nv 0 2 -1\nf 1 2 3 4\nf 1 2 1\n";

static enum err_code upload(const char *query, struct uploaded *out)
{
    struct call call = {.api = &t.api};
    struct upload_format format = {.kind = LAYER_HEIGHTFIELD};
    struct upload options;
    char copy[128];

    *out = (struct uploaded){.layer = NULL};
    t.err = (struct err){.code = ERR_OK};
    snprintf(copy, sizeof copy, "%s", query);
    api_test_query(copy, &call);
    assert_true(upload_format_of_media_type("model/obj; charset=utf-8", &format));
    if (options_open_query(&call, upload_names(format.kind), &t.err) ||
        upload_decode(&call, format, false, &options, &t.err))
        return t.err.code;
    return upload_layer(&t.api, "up", square, strlen(square), &options, &locale_manifest_default,
                        NULL, out, &t.err);
}

static void options_of_polygons_say_role_axis_and_scale(void **state)
{
    struct uploaded got;
    struct box3 box;

    (void)state;
    assert_int_equal(upload("up=y&scale=10&role=ceiling&frame=cartesian", &got), ERR_OK);
    assert_int_equal(got.layer->role, LAYER_CEILING);
    assert_int_equal(got.import.mesh.kept, 1);
    assert_int_equal(got.import.mesh.dropped, 1);
    assert_true(layer_bounds(got.layer, &box));
    if (!(box.min.y == 0 && box.max.y == 10 && box.min.z == 20 && box.max.z == 20))
        fail_msg("y %g..%g, z %g..%g", box.min.y, box.max.y, box.min.z, box.max.z);
    assert_true(got.charge > 0);
    assert_int_equal(atomic_load(&t.api.upload_bytes), got.charge);
    upload_release(&t.api, got.charge);
    layer_unref(got.layer);
}

static void wrong_options_of_polygons_are_named(void **state)
{
    static const struct {
        const char *query;
        enum err_code code;
        const char *pointer;
    } cases[] = {
        {"role=wall", ERR_BAD_INPUT, "role"},
        {"up=x", ERR_BAD_INPUT, "up"},
        {"scale=0", ERR_BAD_INPUT, "scale"},
        {"scale=-1", ERR_BAD_INPUT, "scale"},
        {"scale=nan", ERR_BAD_INPUT, "scale"},
        {"spacing=1,1", ERR_UNKNOWN_PARAMETER, "spacing"},
        {"frame=flat", ERR_BAD_INPUT, "frame"},
        {"gravity=in", ERR_UNPROCESSABLE, "gravity"},
        {"frame=cartesian&gravity=out", ERR_UNPROCESSABLE, "gravity"},
        {"frame=spherical&gravity=up", ERR_BAD_INPUT, "gravity"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct uploaded got;
        enum err_code code = upload(cases[i].query, &got);

        if (code != cases[i].code || strcmp(t.err.pointer, cases[i].pointer) != 0 || got.layer)
            fail_msg("%s: got %d at \"%s\"", cases[i].query, (int)code, t.err.pointer);
    }
}

static void an_upload_over_the_limits_is_not_charged(void **state)
{
    struct uploaded got, other;

    (void)state;
    t.api.limits.polygon.polygons_max = 1;
    assert_int_equal(upload("", &got), ERR_TOO_LARGE);
    assert_true(t.err.has_limit && t.err.limit == 1);
    t.api.limits.polygon.polygons_max = 2;
    t.api.limits.uploads_bytes_max = 100;
    assert_int_equal(upload("", &got), ERR_OK); /* alone it may */
    assert_int_equal(upload("", &other), ERR_BUSY);
    assert_null(other.layer);
    upload_release(&t.api, got.charge);
    assert_int_equal(atomic_load(&t.api.upload_bytes), 0);
    layer_unref(got.layer);
    api_limits_init(&t.api.limits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_over_meshes_have_the_answers_of_hand),
        cmocka_unit_test(what_meshes_cannot_answer_is_refused_by_name),
        cmocka_unit_test(batches_are_the_bits_of_single_answers),
        cmocka_unit_test(options_of_polygons_say_role_axis_and_scale),
        cmocka_unit_test(wrong_options_of_polygons_are_named),
        cmocka_unit_test(an_upload_over_the_limits_is_not_charged),
    };

    return cmocka_run_group_tests(tests, open_world, close_world);
}
