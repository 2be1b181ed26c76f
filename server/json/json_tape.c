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

#include <stdlib.h>
#include <string.h>

/* The one of `names` that the token is; NULL when it is none. */
static const char *one_of(const struct json_tape *tape, uint32_t name, const char *const *names)
{
    for (; names && *names; names++)
        if (json_tape_is(tape, name, *names))
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
