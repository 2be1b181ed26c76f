/*
 * Options of a call. An option is in the query, or in a JSON body as a top-level member; one
 * decoder serves the GET, the JSON and the binary form of a call.
 */
#ifndef KOTA_API_OPTIONS_H
#define KOTA_API_OPTIONS_H

#include "api/call.h"

/*
 * Opens a call without a body: every query parameter must be among `names` (NULL-terminated).
 * ERR_UNKNOWN_PARAMETER names a stranger.
 */
enum err_code options_open_query(struct call *call, const char *const *names, struct err *err);

/* ERR_UNSUPPORTED_MEDIA_TYPE: the body is not of the media types in `taken`, a list for people. */
enum err_code options_wrong_media_type(const struct call *call, const char *taken, struct err *err);

/*
 * Opens a call with a JSON body: parses it into call->json; its members must be among `items` and
 * `names`, the query's parameters among `names`.
 * ERR_UNSUPPORTED_MEDIA_TYPE, ERR_BODY_TOO_LARGE, ERR_BAD_JSON, ERR_UNKNOWN_MEMBER.
 */
enum err_code options_open_json(struct call *call, const char *const *items,
                                const char *const *names, struct err *err);

/*
 * The same for a body with long arrays: a member that is an array and among `items` stays on
 * call->tape, and is an empty array in call->json.
 */
enum err_code options_open_batch(struct call *call, const char *const *items,
                                 const char *const *names, struct err *err);

/* The same where only some of the items are long arrays, `batches`. */
enum err_code options_open_mixed(struct call *call, const char *const *batches,
                                 const char *const *items, const char *const *names,
                                 struct err *err);

/*
 * The array of that name of such a body, of 1..limits.items_max items: its token.
 * ERR_BAD_INPUT  it is absent, no array or empty
 * ERR_TOO_LARGE
 */
enum err_code option_array(struct call *call, const char *name, uint32_t *array, struct err *err);

/*
 * The same, all of whose items, of `shape`, are read. Call it after the options, whose errors come
 * first.
 * ERR_BAD_INPUT, ERR_TOO_LARGE, ERR_NO_MEMORY
 */
enum err_code option_batch(struct call *call, const struct json_shape *shape,
                           struct json_batch *out, struct err *err);

/*
 * Each leaves *out unchanged (its default) when the option is absent; a JSON null is absent. The
 * same option in query and body is ERR_BAD_INPUT. err->pointer names the member or parameter.
 */
enum err_code option_number(struct call *call, const char *name, double *out, bool *is_given,
                            struct err *err);
enum err_code option_boolean(struct call *call, const char *name, bool *out, struct err *err);
enum err_code option_integer(struct call *call, const char *name, uint64_t least, uint64_t most,
                             uint64_t *out, struct err *err);
/* A text of at most size - 1 bytes, UTF-8 without control characters. */
enum err_code option_text(struct call *call, const char *name, char *out, size_t size,
                          bool *is_given, struct err *err);
/* [column, row, cols, rows] within a heightfield. */
enum err_code option_rect(struct call *call, const struct heightfield_spec *spec,
                          struct sample_rect *out, bool *is_given, struct err *err);
/* note= of a write, "" when absent: a text in the query, also where there is a body. */
enum err_code option_note(const struct call *call, char out[static STORE_NOTE_MAX + 1],
                          struct err *err);
/*
 * mode, a word of `modes`, and hits_max, 1 to ALL_HITS_MOST, which only mode all has: *hits_max is
 * 0 for any other. Its check: the items together may have ALL_HITS_OF_ITEMS_MAX hits; `items` is
 * their pointer.
 */
enum { ALL_HITS_DEFAULT = 8, ALL_HITS_OF_ITEMS_MAX = 100000 };
enum err_code option_hits(struct call *call, const char *const *modes, int *mode, size_t *hits_max,
                          struct err *err);
enum err_code option_hits_check(size_t count, size_t hits_max, const char *items, struct err *err);
/* The index of the given word in `words` (NULL-terminated). */
enum err_code option_word(struct call *call, const char *name, const char *const *words, int *out,
                          struct err *err);
/* `count` numbers: an array, or separated by commas in the query. */
enum err_code option_numbers(struct call *call, const char *name, size_t count, double *out,
                             bool *is_given, struct err *err);
/* x0,y0,x1,y1 with x0 <= x1, y0 <= y1. */
enum err_code option_bounds(struct call *call, double out[static 4], bool *is_given,
                            struct err *err);
/* The same of required ones. */
enum err_code option_needed(struct call *call, const char *name, size_t count, double *out,
                            struct err *err);
/* A set of words as bits: an array of strings, or separated by commas in the query. */
enum err_code option_words(struct call *call, const char *name, const char *const *words,
                           unsigned *bits, struct err *err);
/* The `layer` option: "" when absent. What is no id is ERR_UNPROCESSABLE: there is no such layer.
 */
enum err_code option_layer(struct call *call, char out[static WORLD_ID_MAX + 1], struct err *err);

/* The id of a locale: "" when absent. It need not exist. */
enum err_code option_id(struct call *call, const char *name, char out[static WORLD_ID_MAX + 1],
                        struct err *err);

/* `layer` and locale_choose, locale_choose_ground or locale_choose_field. */
enum err_code option_choose(struct call *call, struct layer_choice *out, struct err *err);
enum err_code option_choose_ground(struct call *call, struct layer_choice *out, struct err *err);
enum err_code option_choose_field(struct call *call, const struct layer **out, struct err *err);

/* interp= and its default, the triangle. */
enum err_code option_interpolation(struct call *call, enum interpolation *out, struct err *err);

#endif
