/*
 * Text answers go through the same sink as JSON, so that they run without a connection, too.
 */
#include "api/text.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>

enum { TEXT_BYTES_MAX = 2048 };

void text_append(struct call *call, const char *format, ...)
{
    char *room =
        call->out.failed ? NULL : call->out.sink.reserve(call->out.sink.to, TEXT_BYTES_MAX);
    va_list args;
    int length;

    if (!room) {
        call->out.failed = true;
        return;
    }
    va_start(args, format);
    length = vsnprintf(room, TEXT_BYTES_MAX, format, args);
    va_end(args);
    CHECK(length >= 0 && length < TEXT_BYTES_MAX);
    call->out.sink.advance(call->out.sink.to, (size_t)length);
}
