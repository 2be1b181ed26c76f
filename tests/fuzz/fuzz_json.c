/*
 * Fuzzes the JSON checker, its tape, the parser after it, and numbers there and back: what passes
 * the check is parsed, the tape names the same values, and every number of it reads back as the
 * same bits after it was printed.
 */
#include "base/text/json_number.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/json_tape_check.h"

#include <stdlib.h>
#include <string.h>

static void numbers_round_trip(const cJSON *json)
{
    for (; json; json = json->next) {
        if (cJSON_IsNumber(json)) {
            char text[JSON_NUMBER_TEXT_MAX + 1];
            double back;

            text[json_number_text(json->valuedouble, text)] = '\0';
            back = strtod(text, NULL);
            if (memcmp(&back, &json->valuedouble, sizeof back) != 0)
                abort();
        }
        numbers_round_trip(json->child);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct err err = {.code = ERR_OK};
    cJSON *json = NULL;

    if (json_parse((const char *)bytes, size, &json_limits_default, &json, &err) == ERR_OK)
        numbers_round_trip(json);
    else if (err.code == ERR_NO_MEMORY || err.msg[0] == '\0')
        abort(); /* passed the check and not the parser, or no reason given */
    cJSON_Delete(json);
    json_tape_check((const char *)bytes, size);
    return 0;
}
