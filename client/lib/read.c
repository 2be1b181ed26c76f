/*
 * Pieces of JSON answers.
 *
 * A member that is null or absent becomes NaN, NULL or 0 by its reader; the caller decides whether
 * that is an error. Unknown members are ignored, so that an older library reads a newer daemon.
 */
#include "client/lib/read.h"

#include "base/text/base64.h"
#include "client/lib/answer_data.h"
#include "client/lib/error.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool read_fail(struct kota_answer *answer, const char *format, ...)
{
    char message[256];
    va_list args;

    if (!answer || answer->error.kind)
        return false;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    return error_set(&answer->error, KOTA_ERROR_CONTENT, "%s", message);
}

bool read_is_well(const struct kota_answer *answer)
{
    return answer && !answer->error.kind;
}

const cJSON *read_document(struct kota_answer *answer)
{
    return read_is_well(answer) ? kota_answer_json(answer) : NULL;
}

bool read_vector(const cJSON *object, const char *name, double *numbers, size_t count)
{
    const cJSON *item, *array = cJSON_GetObjectItemCaseSensitive(object, name);
    size_t i = 0;

    for (size_t j = 0; j < count; j++)
        numbers[j] = (double)NAN;
    if (!cJSON_IsArray(array))
        return false;
    for (item = array->child; item && i < count; item = item->next, i++)
        if (cJSON_IsNumber(item))
            numbers[i] = item->valuedouble;
    return i == count && !item;
}

size_t read_base64(const cJSON *object, const char *name)
{
    char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    size_t length = text ? strlen(text) : 0;
    long bytes;

    if (length % 4 != 0)
        return 0;
    while (length > 0 && text[length - 1] == '=')
        length--;
    bytes = base64_read(text, length, BASE64_OTHERS, (uint8_t *)text, length);
    return bytes > 0 ? (size_t)bytes : 0;
}

bool read_uints(const cJSON *object, const char *name, uint32_t *numbers, size_t count)
{
    double values[4];

    memset(numbers, 0, count * sizeof(*numbers));
    if (count > 4 || !read_vector(object, name, values, count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!(values[i] >= 0 && values[i] <= (double)UINT32_MAX))
            return false;
    for (size_t i = 0; i < count; i++)
        numbers[i] = (uint32_t)values[i];
    return true;
}

uint32_t read_uint(const cJSON *object, const char *name)
{
    double value = read_double(object, name);

    return value >= 0 && value <= (double)UINT32_MAX ? (uint32_t)value : 0;
}

bool read_true(const cJSON *object, const char *name)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, name));
}

bool read_bool(const cJSON *object, const char *name, bool *value)
{
    *value = read_true(object, name);
    return cJSON_IsBool(cJSON_GetObjectItemCaseSensitive(object, name));
}

double read_double(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
}

const char *read_string(const cJSON *object, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

bool read_box(const cJSON *object, const char *name, double min[3], double max[3])
{
    const cJSON *box = cJSON_GetObjectItemCaseSensitive(object, name);
    bool has_min = read_vector(box, "min", min, 3);

    return read_vector(box, "max", max, 3) && has_min;
}

bool read_word(const cJSON *object, const char *name, const char *const *words, int *place)
{
    const char *text = read_string(object, name);

    for (int i = 0; text && words[i]; i++)
        if (strcmp(text, words[i]) == 0) {
            *place = i;
            return true;
        }
    return false;
}
