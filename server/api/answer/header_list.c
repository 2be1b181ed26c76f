/*
 * Lists in headers: see header_list.h. Quoted strings have no use in the two lists that are read.
 */
#include "api/answer/header_list.h"

#include <strings.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct span header_part(struct span *rest, char mark)
{
    const char *end = rest->length ? memchr(rest->at, mark, rest->length) : NULL;
    struct span part = {rest->at, end ? (size_t)(end - rest->at) : rest->length};

    if (rest->length > 0) {
        rest->at += part.length + (end != NULL);
        rest->length -= part.length + (end != NULL);
    }
    for (; part.length > 0 && is_blank(part.at[0]); part.length--)
        part.at++;
    while (part.length > 0 && is_blank(part.at[part.length - 1]))
        part.length--;
    return part;
}

bool header_is(struct span text, const char *word)
{
    return text.length == strlen(word) && strncasecmp(text.at, word, text.length) == 0;
}

struct span header_parameter(struct span parameters, const char *name)
{
    while (parameters.length > 0) {
        struct span value = header_part(&parameters, ';');

        if (header_is(header_part(&value, '='), name))
            return value.at ? value : (struct span){"", 0};
    }
    return (struct span){NULL, 0};
}

int header_weight(struct span parameters)
{
    struct span text = header_parameter(parameters, "q");
    double q;

    if (!text.at)
        return 1000;
    return span_number(text, &q) && q >= 0 && q <= 1 ? (int)(q * 1000 + 0.5) : -1;
}
