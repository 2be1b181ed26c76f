/*
 * Writes JSON straight into the bytes of an answer: commas, escapes and numbers are its work.
 */
#ifndef KOTA_JSON_JSON_WRITE_H
#define KOTA_JSON_JSON_WRITE_H

#include "terrain/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The sink of the bytes: reserve returns room for at least `bytes`, advance adds the written ones.
 */
struct json_sink {
    void *to;
    char *(*reserve)(void *to, size_t bytes);
    void (*advance)(void *to, size_t bytes);
};

struct json_writer {
    struct json_sink sink;
    char *start, *at, *end; /* the room reserved last */
    bool comma;             /* the next value is not the first of its array or object */
    bool failed;            /* the sink had no memory: nothing more is written */
};

static inline void json_init(struct json_writer *w, struct json_sink sink)
{
    *w = (struct json_writer){.sink = sink};
}

/* Hands the last bytes to the sink. False when the sink ran out of memory on the way. */
bool json_finish(struct json_writer *w);

/*
 * For items of raw JSON (json_raw.h): room for `bytes` more, after the text so far; raw JSON has
 * its own commas. NULL when the sink has no memory. Then json_close_room takes the end of the used
 * room; the next value has a comma before it.
 */
char *json_open_room(struct json_writer *w, size_t bytes);
void json_close_room(struct json_writer *w, char *end);

void json_begin_object(struct json_writer *w);
void json_end_object(struct json_writer *w);
void json_begin_array(struct json_writer *w);
void json_end_array(struct json_writer *w);
void json_key(struct json_writer *w, const char *name); /* plain ASCII, nothing to escape */

void json_number(struct json_writer *w, double value); /* null unless finite */
void json_integer(struct json_writer *w, uint64_t value);
void json_boolean(struct json_writer *w, bool value);
void json_null(struct json_writer *w);
void json_string(struct json_writer *w, const char *text);         /* UTF-8, NUL-terminated */
void json_string_or_null(struct json_writer *w, const char *text); /* null for NULL and for "" */
void json_vec3(struct json_writer *w, struct vec3 v);              /* [x,y,z] */
void json_box3(struct json_writer *w, struct box3 box);            /* {"min":[…],"max":[…]} */
void json_numbers(struct json_writer *w, const double *values, size_t count);

/* A key and its value: json_put_number(w, name, value), …; an array or object is left open. */
#define JSON_PUT(kind, type)                                                                       \
    static inline void json_put_##kind(struct json_writer *w, const char *name, type value)        \
    {                                                                                              \
        json_key(w, name);                                                                         \
        json_##kind(w, value);                                                                     \
    }
JSON_PUT(number, double)
JSON_PUT(integer, uint64_t)
JSON_PUT(boolean, bool)
JSON_PUT(string, const char *)
JSON_PUT(string_or_null, const char *)
JSON_PUT(vec3, struct vec3)
JSON_PUT(box3, struct box3)
#undef JSON_PUT
void json_put_null(struct json_writer *w, const char *name);
void json_put_integer_or_null(struct json_writer *w, const char *name, bool is_there,
                              uint64_t value);
void json_put_numbers(struct json_writer *w, const char *name, const double *values, size_t count);
void json_put_object(struct json_writer *w, const char *name);
void json_put_array(struct json_writer *w, const char *name);

#endif
