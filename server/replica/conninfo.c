/*
 * libpq can try several hosts by itself, but then the time for one is unbounded: connect_timeout
 * counts only for its blocking calls, and a machine that is switched off does not answer for two
 * minutes. So the lists are split, and each host is an attempt with its own timeout.
 *
 * Errors: libpq quotes the part of the string that it does not understand, and with
 * `password=two words` that is half of the password. Quotes in its messages about the string are
 * replaced by their position; in messages about a connection the password is replaced everywhere.
 */
#include "replica/conninfo.h"

#include "base/check.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECT_MS = 2000, CONNECT_S_MAX = 600 };

static const PQconninfoOption *option_of(const struct conninfo *info, const char *keyword)
{
    for (const PQconninfoOption *o = info->options; o && o->keyword; o++)
        if (strcmp(o->keyword, keyword) == 0)
            return o;
    return NULL;
}

/* The value in the string; NULL: none. */
static const char *value_of(const struct conninfo *info, const char *keyword)
{
    const PQconninfoOption *option = option_of(info, keyword);

    return option && option->val && option->val[0] ? option->val : NULL;
}

/* The same, or else the value in the environment. */
static const char *value_or_environment(const struct conninfo *info, const char *keyword)
{
    const PQconninfoOption *option = option_of(info, keyword);
    const char *value = value_of(info, keyword);

    if (!value && option && option->envvar)
        value = getenv(option->envvar);
    return value && value[0] ? value : NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static enum err_code cannot_read(const char *text, const char *reason, struct err *err)
{
    char words[160] = "";
    size_t length = 0;
    const char *place = NULL;

    for (const char *c = reason; *c && *c != '\n' && length + 8 < sizeof words; c++) {
        const char *end = *c == '"' ? strchr(c + 1, '"') : NULL;

        words[length++] = *c;
        if (!end)
            continue;
        if (end == c + 2 && c[1] == '=') { /* libpq's own word */
            memcpy(words + length, "=\"", 2);
            length += 2;
            c = end;
            continue;
        }
        if (end - c - 1 < 128) {
            char quoted[128];

            snprintf(quoted, sizeof quoted, "%.*s", (int)(end - c - 1), c + 1);
            place = strstr(text, quoted);
        }
        memcpy(words + length, "\xe2\x80\xa6\"", 4);
        length += 4;
        c = end;
    }
    words[length] = '\0';
    if (place)
        return err_set(err, ERR_BAD_INPUT, "conninfo cannot be read: %s, at byte %zu", words,
                       (size_t)(place - text));
    return err_set(err, ERR_BAD_INPUT, "conninfo cannot be read: %s", words);
}

/* Takes a list apart at its commas: *count parts, malloc, NULL where one is empty. */
static enum err_code split(const char *list, const char *name, char *parts[CONNINFO_HOSTS_MAX],
                           size_t *count, struct err *err)
{
    *count = 0;
    while (list) {
        const char *comma = strchr(list, ',');
        size_t length = comma ? (size_t)(comma - list) : strlen(list);

        if (*count == CONNINFO_HOSTS_MAX)
            return err_limit(err, ERR_BAD_INPUT, CONNINFO_HOSTS_MAX, CONNINFO_HOSTS_MAX + 1,
                             "conninfo: %s has more than %d parts", name, CONNINFO_HOSTS_MAX);
        parts[*count] = length > 0 ? strndup(list, length) : NULL;
        if (length > 0 && !parts[*count])
            return err_set(err, ERR_NO_MEMORY, "no memory for the connection string");
        ++*count;
        list = comma ? comma + 1 : NULL;
    }
    return ERR_OK;
}

static void free_parts(char *parts[CONNINFO_HOSTS_MAX], size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(parts[i]);
}

/* One port for each host, or one for all of them. */
static enum err_code pair(struct conninfo *info, char *hosts[], size_t host_count,
                          char *addresses[], size_t address_count, char *ports[], size_t port_count,
                          struct err *err)
{
    size_t count = host_count > address_count ? host_count : address_count;

    if (host_count > 0 && address_count > 0 && host_count != address_count)
        return err_set(err, ERR_BAD_INPUT, "conninfo: host has %zu parts and hostaddr %zu",
                       host_count, address_count);
    info->count = count > 0 ? count : 1;
    if (port_count > 1 && port_count != info->count)
        return err_set(err, ERR_BAD_INPUT, "conninfo: port has %zu parts for %zu hosts", port_count,
                       info->count);
    for (size_t i = 0; i < info->count; i++) {
        const char *port = port_count == 0 ? NULL : ports[port_count == 1 ? 0 : i];

        info->hosts[i].host = i < host_count && hosts[i] ? strdup(hosts[i]) : NULL;
        info->hosts[i].hostaddr = i < address_count && addresses[i] ? strdup(addresses[i]) : NULL;
        info->hosts[i].port = port ? strdup(port) : NULL;
        if ((i < host_count && hosts[i] && !info->hosts[i].host) ||
            (i < address_count && addresses[i] && !info->hosts[i].hostaddr) ||
            (port && !info->hosts[i].port))
            return err_set(err, ERR_NO_MEMORY, "no memory for the connection string");
    }
    return ERR_OK;
}

static enum err_code read_hosts(struct conninfo *info, struct err *err)
{
    char *parts[3][CONNINFO_HOSTS_MAX];
    static const char *const names[3] = {"host", "hostaddr", "port"};
    size_t counts[3] = {0};
    bool is_service = value_or_environment(info, "service") && !value_of(info, "host") &&
                      !value_of(info, "hostaddr");
    enum err_code code = ERR_OK;

    /* the file of services may name hosts: only libpq reads it */
    for (int i = 0; i < 3 && !is_service && code == ERR_OK; i++)
        code = split(value_or_environment(info, names[i]), names[i], parts[i], &counts[i], err);
    if (code == ERR_OK)
        code = pair(info, parts[0], counts[0], parts[1], counts[1], parts[2], counts[2], err);
    for (int i = 0; i < 3; i++)
        free_parts(parts[i], counts[i]);
    return code;
}

static bool is_number(const char *text, long low, long high, long *out)
{
    char *end;

    *out = strtol(text, &end, 10);
    return isdigit((unsigned char)text[0]) && *end == '\0' && *out >= low && *out <= high;
}

static enum err_code check_values(struct conninfo *info, struct err *err)
{
    static const char *const plain[] = {"host", "hostaddr", "port", "user", "dbname"};
    const char *attrs = value_or_environment(info, "target_session_attrs");
    const char *timeout = value_or_environment(info, "connect_timeout");
    long number;

    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        const char *value = value_of(info, plain[i]);

        /* quotes in the wrong place have put something else into it, a password perhaps */
        if (value && strchr(value, '='))
            return err_set(err, ERR_BAD_INPUT, "conninfo: %s holds a \"=\": is a quote missing?",
                           plain[i]);
    }
    for (size_t i = 0; i < info->count; i++)
        if (info->hosts[i].port && !is_number(info->hosts[i].port, 1, 65535, &number))
            return err_set(err, ERR_BAD_INPUT, "conninfo: port is \"%.40s\" and not 1..65535",
                           info->hosts[i].port);
    if (attrs && strcmp(attrs, "any") != 0 && strcmp(attrs, "read-write") != 0 &&
        strcmp(attrs, "primary") != 0)
        return err_set(err, ERR_BAD_INPUT,
                       "conninfo: target_session_attrs is \"%.40s\"; the log is written to: "
                       "read-write, primary or any",
                       attrs);
    info->connect_ms = CONNECT_MS;
    if (timeout && !is_number(timeout, 1, CONNECT_S_MAX, &number))
        return err_set(err, ERR_BAD_INPUT, "conninfo: connect_timeout is \"%.40s\" and not 1..%d",
                       timeout, CONNECT_S_MAX);
    if (timeout)
        info->connect_ms = 1000u * (uint32_t)number;
    return ERR_OK;
}

enum err_code conninfo_read(struct conninfo *info, const char *text, struct err *err)
{
    char *reason = NULL;

    memset(info, 0, sizeof *info);
    info->options = PQconninfoParse(text, &reason);
    if (!info->options) {
        if (reason)
            cannot_read(text, reason, err);
        else
            err_set(err, ERR_NO_MEMORY, "no memory for the connection string");
        PQfreemem(reason);
        return err->code;
    }
    if (read_hosts(info, err) || check_values(info, err)) {
        conninfo_free(info);
        return err->code;
    }
    return ERR_OK;
}

void conninfo_free(struct conninfo *info)
{
    PQconninfoFree(info->options);
    for (size_t i = 0; i < info->count; i++) {
        free(info->hosts[i].host);
        free(info->hosts[i].hostaddr);
        free(info->hosts[i].port);
    }
    memset(info, 0, sizeof *info);
}

/* ---- connecting ------------------------------------------------------------------------------ */

enum { KEYWORDS_MAX = 80 };

struct keywords {
    const char *names[KEYWORDS_MAX + 1], *values[KEYWORDS_MAX + 1];
    int count;
};

static void keyword(struct keywords *words, const char *name, const char *value)
{
    CHECK(words->count < KEYWORDS_MAX);
    words->names[words->count] = name;
    words->values[words->count++] = value;
}

/* The default of this program where neither the string nor the environment has a value. */
static void keyword_default(struct keywords *words, const struct conninfo *info, const char *name,
                            const char *value)
{
    if (option_of(info, name) && !value_or_environment(info, name))
        keyword(words, name, value);
}

PGconn *conninfo_start(const struct conninfo *info, size_t host, const char *node,
                       uint32_t timeout_ms)
{
    static const char *const ours[] = {"host", "hostaddr", "port", "client_encoding",
                                       "application_name"};
    struct keywords words = {.count = 0};
    char application[96], timeout[16];

    for (const PQconninfoOption *o = info->options; o->keyword; o++) {
        bool is_ours = false;

        for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
            is_ours = is_ours || strcmp(o->keyword, ours[i]) == 0;
        if (!is_ours && o->val && o->val[0])
            keyword(&words, o->keyword, o->val);
    }
    if (info->hosts[host].host)
        keyword(&words, "host", info->hosts[host].host);
    if (info->hosts[host].hostaddr)
        keyword(&words, "hostaddr", info->hosts[host].hostaddr);
    if (info->hosts[host].port)
        keyword(&words, "port", info->hosts[host].port);
    snprintf(application, sizeof application, "kota %s", node);
    keyword(&words, "client_encoding", "UTF8");
    keyword(&words, "application_name", application);
    snprintf(timeout, sizeof timeout, "%u", timeout_ms);
    keyword_default(&words, info, "target_session_attrs", "read-write");
    keyword_default(&words, info, "gssencmode", "disable");
    keyword_default(&words, info, "keepalives_idle", "5");
    keyword_default(&words, info, "keepalives_interval", "2");
    keyword_default(&words, info, "keepalives_count", "3");
    keyword_default(&words, info, "tcp_user_timeout", timeout);
    return PQconnectStartParams(words.names, words.values, 0);
}

void conninfo_name(const struct conninfo *info, size_t host, char out[CONNINFO_NAME_MAX])
{
    const char *name = info->hosts[host].host ? info->hosts[host].host : info->hosts[host].hostaddr;

    snprintf(out, CONNINFO_NAME_MAX, "%.90s:%.8s", name ? name : "(local)",
             info->hosts[host].port ? info->hosts[host].port : "5432");
}

/* ---- messages ---------------------------------------------------------------------------- */

static void hide(char *text, const char *secret)
{
    size_t length = secret ? strlen(secret) : 0;

    if (length < 3) /* a letter would be found in each word */
        return;
    for (char *found = strstr(text, secret); found; found = strstr(found + 3, secret)) {
        memset(found, '*', 3);
        memmove(found + 3, found + length, strlen(found + length) + 1);
    }
}

void conninfo_reason(const struct conninfo *info, const char *reason, char *out, size_t room,
                     char sqlstate[6])
{
    const char *severity = strstr(reason, "failed: ");
    size_t length;
    char *cut;

    if (severity && strncmp(reason, "connection to server", 20) == 0)
        reason = severity + 8;
    length = strcspn(reason, "\n");
    snprintf(out, room, "%.*s", (int)(length < room ? length : room), reason);
    sqlstate[0] = '\0';
    /* PQERRORS_VERBOSE: "FATAL:  28P01: password authentication failed …" */
    for (char *c = strstr(out, ":  "); c && !sqlstate[0]; c = strstr(c + 1, ":  ")) {
        if (strlen(c) > 8 && strspn(c + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 &&
            c[8] == ':') {
            memcpy(sqlstate, c + 3, 5);
            sqlstate[5] = '\0';
            memmove(c + 2, c + 9, strlen(c + 9) + 1);
        }
    }
    hide(out, value_of(info, "password"));
    hide(out, getenv("PGPASSWORD"));
    hide(out, value_of(info, "sslpassword"));
    cut = strstr(out, "password=");
    if (cut)
        cut[9] = '\0';
}

/* ---- files ----------------------------------------------------------------------------------- */

struct file_list {
    char (*paths)[CONNINFO_PATH_MAX];
    size_t count;
};

static void add_file(struct file_list *list, const char *path)
{
    size_t length = path ? strlen(path) : 0;

    if (length == 0 || length >= CONNINFO_PATH_MAX)
        return;
    CHECK(list->count < CONNINFO_FILES_MAX);
    memcpy(list->paths[list->count++], path, length + 1);
}

static void add_file_at_home(struct file_list *list, const char *name)
{
    const char *home = getenv("HOME");
    char path[CONNINFO_PATH_MAX];

    if (home && snprintf(path, sizeof path, "%s/%s", home, name) < (int)sizeof path)
        add_file(list, path);
}

enum err_code conninfo_files(const char *text, char paths[CONNINFO_FILES_MAX][CONNINFO_PATH_MAX],
                             size_t *count, struct err *err)
{
    static const char *const names[] = {"passfile", "sslrootcert", "sslcert",
                                        "sslkey",   "sslcrl",      "sslcrldir"};
    struct file_list list = {.paths = paths};
    struct conninfo info;

    *count = 0;
    if (conninfo_read(&info, text, err))
        return err->code;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        add_file(&list, value_or_environment(&info, names[i]));
    for (size_t i = 0; i < info.count && i < 4; i++)
        if (info.hosts[i].host && info.hosts[i].host[0] == '/')
            add_file(&list, info.hosts[i].host);
    add_file(&list, getenv("PGSERVICEFILE"));
    add_file_at_home(&list, ".pgpass");
    add_file_at_home(&list, ".postgresql");
    add_file_at_home(&list, ".pg_service.conf");
    add_file(&list, "/var/run/postgresql");
    conninfo_free(&info);
    *count = list.count;
    return ERR_OK;
}
