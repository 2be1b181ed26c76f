/*
 * Words of foreign files and headers: see word.h.
 *
 * What a stranger has sent goes into messages and logs. So it is never copied as it is: a control
 * character could end a line of the log, and a long word could fill it.
 */
#include "formats/word.h"

#include <string.h>
#include <strings.h>

bool media_type_is(const char *header, const char *type)
{
    size_t length;

    header += strspn(header, " \t");
    length = strcspn(header, "; \t");
    return strlen(type) == length && strncasecmp(header, type, length) == 0;
}

void word_show(const char *text, size_t length, char shown[WORD_SHOWN_MAX + 1])
{
    if (length > WORD_SHOWN_MAX)
        length = WORD_SHOWN_MAX;
    for (size_t i = 0; i < length; i++)
        shown[i] = text[i] > ' ' && text[i] < 0x7f ? text[i] : '?';
    shown[length] = '\0';
}
