/*
 * Errors as values: see err.h. Messages are cut, never overrun; nothing here allocates.
 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *word;
    int status;
    const char *title;
} err_table[] = {
#define ERR_ROW(name, word, status, title) {#word, status, title},
    ERR_LIST(ERR_ROW)
#undef ERR_ROW
};

__attribute__((format(printf, 3, 0))) static void err_fill(struct err *err, enum err_code code,
                                                           const char *format, va_list args)
{
    err->code = code;
    err->has_limit = false;
    err->limit = 0;
    err->got = 0;
    err->retry_in_s = 0;
    err->pointer[0] = err->log_only[0] = '\0';
    vsnprintf(err->msg, sizeof err->msg, format, args);
}

enum err_code err_set(struct err *err, enum err_code code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    err_fill(err, code, format, args);
    va_end(args);
    return code;
}

enum err_code err_set_at(struct err *err, enum err_code code, const char *at, const char *format,
                         ...)
{
    va_list args;

    va_start(args, format);
    err_fill(err, code, format, args);
    va_end(args);
    return err_at(err, "%s", at);
}

static void set_limit(struct err *err, double limit, double got)
{
    err->has_limit = true;
    err->limit = limit;
    err->got = got;
}

enum err_code err_limit(struct err *err, enum err_code code, double limit, double got,
                        const char *format, ...)
{
    va_list args;

    va_start(args, format);
    err_fill(err, code, format, args);
    va_end(args);
    set_limit(err, limit, got);
    return code;
}

enum err_code err_limit_at(struct err *err, enum err_code code, const char *at, double limit,
                           double got, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    err_fill(err, code, format, args);
    va_end(args);
    set_limit(err, limit, got);
    return err_at(err, "%s", at);
}

enum err_code err_at(struct err *err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(err->pointer, sizeof err->pointer, format, args);
    va_end(args);
    return err->code;
}

enum err_code err_log_only(struct err *err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(err->log_only, sizeof err->log_only, format, args);
    va_end(args);
    return err->code;
}

const char *err_write_for_log(const struct err *err, char text[ERR_LOG_BYTES])
{
    snprintf(text, ERR_LOG_BYTES, "%s%s%s", err->msg, err->log_only[0] ? ": " : "", err->log_only);
    return text;
}

int err_http_status(enum err_code code)
{
    return err_table[code].status;
}

const char *err_title(enum err_code code)
{
    return err_table[code].title;
}

const char *err_word(enum err_code code)
{
    return err_table[code].word;
}
