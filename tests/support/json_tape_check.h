/*
 * A text read twice: scanned to a tape, and parsed by cJSON. The tape, and the tree that is built
 * from it, must have the same values, in the same order, with the same numbers bit by bit; a
 * difference aborts. For a unit test and a fuzzer.
 */
#ifndef KOTA_TESTS_JSON_TAPE_CHECK_H
#define KOTA_TESTS_JSON_TAPE_CHECK_H

#include "json/json_tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void json_tape_must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "json_tape_check.h: %s\n", what);
    abort();
}

static inline void json_tape_same_string(const struct json_tape *tape, uint32_t at,
                                         const char *wanted)
{
    char *text = malloc(tape->tokens[at].end - tape->tokens[at].begin);

    json_tape_must(text != NULL, "no memory");
    json_tape_string(tape, at, text);
    json_tape_must(strcmp(text, wanted) == 0, "a string differs");
    free(text);
}

/* Returns the token after the value. */
static inline uint32_t json_tape_same(const struct json_tape *tape, uint32_t at,
                                      const cJSON *wanted)
{
    const struct json_token *token = &tape->tokens[at];
    uint32_t next = at + 1, count = 0;

    json_tape_must(at < tape->count && strcmp(json_tape_kind(tape, at), json_kind(wanted)) == 0,
                   "the kinds differ");
    if (cJSON_IsNumber(wanted))
        json_tape_must(memcmp(&token->number, &wanted->valuedouble, sizeof(double)) == 0,
                       "a number differs");
    else if (cJSON_IsBool(wanted))
        json_tape_must((token->kind == JSON_TRUE) == cJSON_IsTrue(wanted), "a boolean differs");
    else if (cJSON_IsString(wanted))
        json_tape_same_string(tape, at, wanted->valuestring);
    for (const cJSON *item = wanted->child; item; item = item->next, count++) {
        if (cJSON_IsObject(wanted))
            json_tape_same_string(tape, next++, item->string);
        next = json_tape_same(tape, next, item);
    }
    json_tape_must(token->next == next && (!wanted->child || token->count == count),
                   "the places differ");
    return next;
}

static inline bool json_tree_same_text(const char *got, const char *wanted)
{
    return got && wanted ? strcmp(got, wanted) == 0 : got == wanted;
}

/* The lists of nodes; valueint of a boolean is set only by the parser, and is not read. */
static inline void json_tree_same(const cJSON *got, const cJSON *wanted)
{
    for (; got && wanted; got = got->next, wanted = wanted->next) {
        json_tape_must(got->type == wanted->type &&
                           (cJSON_IsBool(got) || got->valueint == wanted->valueint) &&
                           memcmp(&got->valuedouble, &wanted->valuedouble, sizeof(double)) == 0 &&
                           json_tree_same_text(got->valuestring, wanted->valuestring) &&
                           json_tree_same_text(got->string, wanted->string),
                       "a node differs");
        json_tree_same(got->child, wanted->child);
    }
    json_tape_must(!got && !wanted, "the counts of nodes differ");
}

/* The verdict about a text, without its values. */
static inline enum err_code json_check(const char *text, size_t length,
                                       const struct json_limits *limits, struct err *err)
{
    struct json_tape tape = {NULL, NULL, 0, 0};
    enum err_code code = json_scan(text, length, limits, &tape, err);

    free(tape.tokens);
    return code;
}

/* True when the text is JSON. */
static inline bool json_tape_check(const char *text, size_t length)
{
    struct err err = {.code = ERR_OK};
    struct json_tape tape = {NULL, NULL, 0, 0};
    bool is_taken = json_scan(text, length, &json_limits_default, &tape, &err) == ERR_OK;

    if (is_taken) {
        cJSON *wanted = cJSON_ParseWithLengthOpts(text, length, NULL, false);
        cJSON *tree = json_tape_tree(&tape, 0);

        json_tape_must(wanted && tree, "cJSON refuses it");
        json_tape_must(json_tape_same(&tape, 0, wanted) == tape.count, "values are left");
        json_tree_same(tree, wanted);
        cJSON_Delete(wanted);
        cJSON_Delete(tree);
    }
    free(tape.tokens);
    return is_taken;
}

#endif
