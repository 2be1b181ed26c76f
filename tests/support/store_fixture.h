/*
 * Stores for tests: a temporary folder, fields of random samples, and a plain array beside each
 * layer that knows what the heights should be.
 */
#ifndef KOTA_TESTS_SUPPORT_STORE_FIXTURE_H
#define KOTA_TESTS_SUPPORT_STORE_FIXTURE_H

#include "store/store.h"

#include "support/random.h"

/* A new folder below $TMPDIR, or one in memory where there is one. */
void store_folder_make(char path[256]);
void store_folder_remove(const char *path);
void store_folder_copy(const char *from, const char *to); /* files and meshes/ */

/* Opens, or fails the test. */
struct store *store_must_open(const char *path);
void store_must(enum err_code code, const struct err *err);

/* What a heightfield layer should be. */
struct model_layer {
    char locale[STORE_ID_MAX + 1], id[STORE_ID_MAX + 1];
    struct heightfield_spec spec;
    float *heights_m;
};

struct model_layer *model_layer_make(const char *locale, const char *id, uint32_t cols,
                                     uint32_t rows, struct random *random);
void model_layer_free(struct model_layer *layer);
struct heightfield *model_layer_field(const struct model_layer *layer);
void model_layer_apply(struct model_layer *layer, const struct sample_rect *rect,
                       const float *heights_m);
/* Fails with the first sample that differs; validates the field. */
void model_layer_expect(const struct model_layer *layer, const struct heightfield *field);
bool model_layer_equals(const struct model_layer *layer, const struct heightfield *field);

/* A random edit of it: a row of the log; heights_m is malloc. */
struct store_edit model_layer_edit(const struct model_layer *layer, uint32_t side_max,
                                   uint64_t revision, uint64_t sequence, struct random *random);

/* A mesh of two triangles whose place depends on n, and its polygons. */
struct mesh *store_test_mesh(int n, struct polygon_set *polygons);

/* A locale's row with everything set. */
struct store_locale store_test_locale(const char *id, uint64_t revision);
struct store_layer store_test_layer(const struct model_layer *layer,
                                    const struct heightfield *field);

/* ---- what a load gives ----------------------------------------------------------------------- */

struct loaded {
    struct store_locale locales[16];
    struct store_loaded_layer layers[32];
    size_t pin_of[32]; /* of a layer, its pin: 1 + its index; 0: it is the locale's own */
    struct {
        char locale[STORE_ID_MAX + 1], name[STORE_ID_MAX + 1];
        uint64_t revision;
    } pins[16];
    size_t locale_count, layer_count, pin_count, edit_count, damage_count;
    struct store_edit *edits;                                  /* answers are copied */
    char damage_locale[16][STORE_ID_MAX + 1], damage[16][320]; /* the first ones */
    struct err err;
    enum err_code code;
};

struct loaded *loaded_make(struct store *store); /* store_load */
void loaded_free(struct loaded *loaded);
const struct store_loaded_layer *loaded_layer(const struct loaded *loaded, const char *locale,
                                              const char *id);
/* The same of pin `pin` - 1 of the list; 0: the locale's own. */
const struct store_loaded_layer *loaded_layer_of(const struct loaded *loaded, size_t pin,
                                                 const char *locale, const char *id);
const struct store_locale *loaded_locale(const struct loaded *loaded, const char *id);
/* Fails, with the messages, if there was damage or an error. */
void loaded_expect_whole(const struct loaded *loaded);

#endif
