/*
 * Options of a call. An option may stand in the query, or in a JSON body as a top-level member; one
 * decoder serves the GET, the JSON and the binary form of a call.
 */
#ifndef KOTA_API_OPTIONS_H
#define KOTA_API_OPTIONS_H

#include "api/call.h"

/*
 * Opens a call without a body: every query parameter must be among `names` (NULL-terminated).
 * ERR_BAD_INPUT names a stranger.
 */
enum err_code options_open_query(struct call *call, const char *const *names, struct err *err);

/*
 * Opens a call with a JSON body: parses it into call->json; its members must be among `items` and
 * `names`, the query's parameters among `names`.
 * ERR_UNSUPPORTED_MEDIA_TYPE, ERR_TOO_LARGE, ERR_BAD_INPUT.
 */
enum err_code options_open_json(struct call *call, const char *const *items,
                                const char *const *names, struct err *err);

/*
 * The same for a body with a batch of that shape, which is one of `items`: where the batch is plain
 * it is read from the text into call->batch, and call->json has no items, or is NULL when no other
 * member is there. Whoever does not know about batches finds an array of that name, or a NULL.
 */
enum err_code options_open_batch(struct call *call, const struct json_shape *shape,
                                 const char *const *items, const char *const *names,
                                 struct err *err);

/*
 * The batch of an opened call: 1..limits.items_max items of `shape`, all read. Call it after the
 * options, whose errors come first.
 * ERR_BAD_INPUT, ERR_TOO_LARGE, ERR_NO_MEMORY
 */
enum err_code option_batch(struct call *call, const struct json_shape *shape,
                           struct json_batch *out, struct err *err);

/*
 * Each leaves *out alone (its default) when the option is absent; a JSON null is absent. The same
 * option in query and body is ERR_BAD_INPUT. err->pointer names the member or parameter.
 */
enum err_code option_number(struct call *call, const char *name, double *out, bool *is_given,
                            struct err *err);
enum err_code option_boolean(struct call *call, const char *name, bool *out, struct err *err);
enum err_code option_integer(struct call *call, const char *name, uint64_t least, uint64_t most,
                             uint64_t *out, struct err *err);
/* The index of the given word in `words` (NULL-terminated). */
enum err_code option_word(struct call *call, const char *name, const char *const *words, int *out,
                          struct err *err);
/* `count` numbers: an array, or separated by commas in the query. */
enum err_code option_numbers(struct call *call, const char *name, size_t count, double *out,
                             bool *is_given, struct err *err);
/* A set of words as bits: an array of strings, or separated by commas in the query. */
enum err_code option_words(struct call *call, const char *name, const char *const *words,
                           unsigned *bits, struct err *err);
/* The `layer` option: "" when absent. What is no id is ERR_UNPROCESSABLE: there is no such layer.
 */
enum err_code option_layer(struct call *call, char out[static WORLD_ID_MAX + 1], struct err *err);

/* `layer` and locale_choose, locale_choose_ground or locale_choose_field. */
enum err_code option_choose(struct call *call, struct layer_choice *out, struct err *err);
enum err_code option_choose_ground(struct call *call, struct layer_choice *out, struct err *err);
enum err_code option_choose_field(struct call *call, const struct layer **out, struct err *err);

/* interp= and its default, the triangle. */
enum err_code option_interpolation(struct call *call, enum interpolation *out, struct err *err);

#endif
