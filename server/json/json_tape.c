/*
 * Values of a tape.
 *
 * Problem: a batch is long and plain, the options beside it are few and of every kind. Approach:
 * plain arrays of numbers are copied from the tokens, a few nanoseconds a number; small values
 * become nodes of cJSON, built from the tokens, and so does any unexpected value, so that there is
 * one source of messages. The text is checked and its numbers are converted once, by the scan.
 * Invariant: `next` of a token is at most the count of the tape, and never before the token.
 */
#include "json/json_tape.h"

#include "base/hex.h"

#include <stdlib.h>
#include <string.h>

/* ---- strings --------------------------------------------------------------------------------- */

static unsigned hex4(const char *at)
{
    unsigned code = 0;

    for (int i = 0; i < 4; i++)
        code = code * 16 + (unsigned)hex_value(at[i]);
    return code;
}

/* Writes a code point as UTF-8; returns the count of its bytes. */
static size_t write_utf8(unsigned code, char *out)
{
    static const unsigned lead[] = {0, 0, 0xc0, 0xe0, 0xf0}; /* by the count */
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    for (size_t i = length - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[length] | code);
    return length;
}

/* Reads an escape of a checked string; returns the count of the bytes that it is. */
static size_t read_escape(const char **at, char *out)
{
    static const char letters[] = "bfnrt", controls[] = "\b\f\n\r\t";
    char kind = (*at)[1];
    const char *letter = strchr(letters, kind);
    unsigned code;

    *at += 2;
    if (kind != 'u') {
        *out = letter ? controls[letter - letters] : kind;
        return 1;
    }
    code = hex4(*at);
    *at += 4;
    if (code >> 10 == 0xd800 >> 10) { /* a pair of surrogates */
        code = 0x10000 + ((code & 0x3ff) << 10 | (hex4(*at + 2) & 0x3ff));
        *at += 6;
    }
    return write_utf8(code, out);
}

/* The same of a byte or an escape. */
static inline size_t read_letter(const char **at, char *out)
{
    if (**at == '\\')
        return read_escape(at, out);
    *out = *(*at)++;
    return 1;
}

void json_tape_string(const struct json_tape *tape, uint32_t value, char *out)
{
    const char *at = tape->text + tape->tokens[value].begin + 1;
    const char *end = tape->text + tape->tokens[value].end - 1;

    while (at < end)
        out += read_letter(&at, out);
    *out = '\0';
}

static bool is_name(const struct json_tape *tape, uint32_t at_name, const char *name)
{
    const char *at = tape->text + tape->tokens[at_name].begin + 1;
    const char *end = tape->text + tape->tokens[at_name].end - 1;

    while (at < end) {
        char bytes[4];
        size_t length = read_letter(&at, bytes);

        for (size_t i = 0; i < length; i++)
            if (bytes[i] != *name++)
                return false;
    }
    return *name == '\0';
}

/* ---- values ---------------------------------------------------------------------------------- */

uint32_t json_tape_find(const struct json_tape *tape, uint32_t object, const char *name)
{
    if (tape->count == 0 || tape->tokens[object].kind != JSON_OBJECT)
        return 0;
    for (uint32_t at = object + 1; at < tape->tokens[object].next; at = tape->tokens[at + 1].next)
        if (is_name(tape, at, name))
            return at + 1;
    return 0;
}

uint32_t json_tape_array(const struct json_tape *tape, uint32_t object, const char *name)
{
    uint32_t value = json_tape_find(tape, object, name);

    return value != 0 && tape->tokens[value].kind == JSON_ARRAY ? value : 0;
}

/* The one of `names` that the token is; NULL when it is none. */
static const char *one_of(const struct json_tape *tape, uint32_t name, const char *const *names)
{
    for (; names && *names; names++)
        if (is_name(tape, name, *names))
            return *names;
    return NULL;
}

static char *copy_string(const struct json_tape *tape, uint32_t value)
{
    char *out = cJSON_malloc(tape->tokens[value].end - tape->tokens[value].begin);

    if (out)
        json_tape_string(tape, value, out);
    return out;
}

static cJSON *tree_of_string(const struct json_tape *tape, uint32_t value)
{
    cJSON *node = cJSON_CreateNull();

    if (!node)
        return NULL;
    node->type = cJSON_String;
    node->valuestring = copy_string(tape, value);
    if (node->valuestring)
        return node;
    cJSON_Delete(node);
    return NULL;
}

/* An array or an object; arrays that `emptied` (or NULL) names among its members are empty. */
static cJSON *tree_of_items(const struct json_tape *tape, uint32_t value,
                            const char *const *emptied)
{
    const struct json_token *tokens = tape->tokens;
    bool is_object = tokens[value].kind == JSON_OBJECT;
    cJSON *all = is_object ? cJSON_CreateObject() : cJSON_CreateArray();

    for (uint32_t at = value + 1; all && at < tokens[value].next; at = tokens[at].next) {
        uint32_t name = at;
        const char *kept;
        bool is_named;
        cJSON *item;

        at += is_object;
        kept = is_object && tokens[at].kind == JSON_ARRAY ? one_of(tape, name, emptied) : NULL;
        is_named = is_object && !kept; /* by a copy */
        item = kept ? cJSON_CreateArray() : json_tape_tree(tape, at);
        if (item && is_named)
            item->string = copy_string(tape, name);
        if (!item || (is_named && !item->string)) {
            cJSON_Delete(item);
            cJSON_Delete(all);
            return NULL;
        }
        if (kept)
            cJSON_AddItemToObjectCS(all, kept, item);
        else
            cJSON_AddItemToArray(all, item);
    }
    return all;
}

cJSON *json_tape_tree(const struct json_tape *tape, uint32_t value)
{
    switch (tape->tokens[value].kind) {
    case JSON_NULL:
        return cJSON_CreateNull();
    case JSON_FALSE:
        return cJSON_CreateFalse();
    case JSON_TRUE:
        return cJSON_CreateTrue();
    case JSON_NUMBER:
        return cJSON_CreateNumber(tape->tokens[value].number);
    case JSON_STRING:
        return tree_of_string(tape, value);
    default:
        return tree_of_items(tape, value, NULL);
    }
}

enum err_code json_tape_root(const struct json_tape *tape, const char *const *arrays, cJSON **out,
                             struct err *err)
{
    bool is_object = tape->tokens[0].kind == JSON_OBJECT;

    *out = is_object ? tree_of_items(tape, 0, arrays) : json_tape_tree(tape, 0);
    if (*out)
        return ERR_OK;
    return err_set(err, ERR_NO_MEMORY, "no memory to parse %zu values of JSON", tape->count);
}

enum err_code json_parse(const char *text, size_t length, const struct json_limits *limits,
                         cJSON **out, struct err *err)
{
    struct json_tape tape = {NULL, NULL, 0, 0};
    enum err_code code = json_scan(text, length, limits, &tape, err);

    if (code == ERR_OK)
        code = json_tape_root(&tape, NULL, out, err);
    free(tape.tokens);
    return code;
}

enum err_code json_tape_vec3(const struct json_tape *tape, uint32_t value, struct vec3 *out,
                             struct err *err)
{
    double v[3];
    cJSON *tree;

    if (json_token_numbers(&tape->tokens[value], 3, v)) {
        *out = (struct vec3){v[0], v[1], v[2]};
        return ERR_OK;
    }
    tree = json_tape_tree(tape, value); /* for the error's text */
    if (!tree)
        return err_set(err, ERR_NO_MEMORY, "no memory to parse a value of JSON");
    json_get_vec3(tree, out, err);
    cJSON_Delete(tree);
    return err->code;
}

enum err_code json_tape_integer(const struct json_tape *tape, uint32_t value, uint64_t least,
                                uint64_t most, uint64_t *out, struct err *err)
{
    const struct json_token *token = &tape->tokens[value];
    cJSON number = {.type = cJSON_Number, .valuedouble = token->number};

    if (token->kind != JSON_NUMBER)
        return err_set(err, ERR_BAD_INPUT, "a finite number was expected, not %s",
                       json_tape_kind(tape, value));
    return json_get_integer(&number, least, most, out, err);
}

const char *json_tape_kind(const struct json_tape *tape, uint32_t value)
{
    static const char *const kinds[] = {"null",     "a boolean", "a boolean", "a number",
                                        "a string", "an array",  "an object"};

    return kinds[tape->tokens[value].kind];
}
