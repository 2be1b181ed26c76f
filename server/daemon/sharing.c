/*
 * Flags of a shared log.
 *
 * Problem: a connection string may hold a password, which must not get into a log or an error; and
 * a store that follows a log must not be edited without it by mistake, since it could not follow
 * afterwards. Approach: the string is passed on and never printed, and may be in a file (@FILE); a
 * store of a log starts only with --cluster, or with `--cluster none`, which leaves that log for
 * ever.
 *
 * A daemon's name is the host's with a suffix, made once and kept in the store, so that two on one
 * host differ and a restart does not.
 */
#include "daemon/sharing.h"

#include "base/check.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { CONNINFO_FILE_MAX = 16384 };

/* ---- flags ----------------------------------------------------------------------------------- */

/* The first line, without its end. */
static enum err_code read_file(const char *path, char **out, struct err *err)
{
    FILE *stream = fopen(path, "re");
    char *line = calloc(1, CONNINFO_FILE_MAX);

    err->code = ERR_OK;
    if (!stream || !line || !fgets(line, CONNINFO_FILE_MAX, stream))
        err_set(err, ERR_BAD_INPUT, "--cluster @%.200s: %s", path,
                errno ? strerror(errno) : "it is empty");
    if (stream)
        fclose(stream);
    if (line)
        line[strcspn(line, "\r\n")] = '\0';
    if (err->code == ERR_OK && line[0] == '\0')
        err_set(err, ERR_BAD_INPUT, "--cluster @%.200s: its first line is empty", path);
    if (err->code != ERR_OK) {
        free(line);
        line = NULL;
    }
    *out = line;
    return err->code;
}

static bool is_pattern(const char *text)
{
    return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-*?,") ==
           strlen(text);
}

static enum err_code check_flags(const struct config *config, struct err *err)
{
    const struct cluster_flags *flags = &config->cluster;
    const char *url = flags->url;

    if (config->data[0] == '\0')
        return err_set(err, ERR_BAD_INPUT, "--cluster needs --data DIR");
    if (flags->node[0] != '\0' && !world_id_is_valid(flags->node, strlen(flags->node)))
        return err_set(err, ERR_BAD_INPUT,
                       "--node: \"%s\" is not 1 to %d characters of A-Za-z0-9_-", flags->node,
                       CLUSTER_ID_MAX);
    if (!is_pattern(flags->locales))
        return err_set(err, ERR_BAD_INPUT,
                       "--locales: \"%.100s\" is no list of patterns: ids, with * and ? for any, "
                       "and commas between",
                       flags->locales);
    if (url[0] == '\0' && config->host[0] == '\0')
        return err_set(
            err, ERR_BAD_INPUT,
            "--cluster needs --node-url where --listen has no HOST:PORT: other nodes and "
            "redirected clients could not reach this daemon");
    if (url[0] != '\0' && strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return err_set(err, ERR_BAD_INPUT,
                       "--node-url: \"%.100s\" begins with neither http:// nor "
                       "https://",
                       url);
    for (const char *c = url; *c; c++)
        if (*c <= 0x20 || *c >= 0x7f)
            return err_set(err, ERR_BAD_INPUT, "--node-url: it takes visible ASCII only");
    return ERR_OK;
}

/*
 * Without a slash at its end, so that a target can follow. Who listens at all addresses is found by
 * the host's name.
 */
static void make_url(struct sharing *sharing, const struct config *config, uint16_t port)
{
    char host[sizeof config->host];
    bool is_v6;
    size_t length;

    snprintf(host, sizeof host, "%s", config->host);
    if (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0) {
        gethostname(host, sizeof host);
        host[sizeof host - 1] = '\0';
    }
    is_v6 = strchr(host, ':') != NULL;
    if (config->cluster.url[0] != '\0')
        snprintf(sharing->url, sizeof sharing->url, "%s", config->cluster.url);
    else if (port != 0 && host[0] != '\0')
        snprintf(sharing->url, sizeof sharing->url, "http://%s%.200s%s:%u", is_v6 ? "[" : "", host,
                 is_v6 ? "]" : "", port);
    length = strlen(sharing->url);
    while (length > 0 && sharing->url[length - 1] == '/')
        sharing->url[--length] = '\0';
}

enum err_code sharing_read(struct sharing *sharing, const struct config *config, struct err *err)
{
    const char *conninfo = config->cluster.conninfo;

    *sharing = (struct sharing){.conninfo = NULL};
    err->code = ERR_OK;
    if (conninfo[0] == '\0' || strcmp(conninfo, "none") == 0)
        return ERR_OK;
    if (check_flags(config, err))
        return err->code;
    make_url(sharing, config, config->port);
    if (conninfo[0] == '@') {
        if (read_file(conninfo + 1, &sharing->conninfo, err))
            return err->code;
    } else {
        sharing->conninfo = strdup(conninfo);
        if (!sharing->conninfo)
            return err_set(err, ERR_NO_MEMORY, "no memory for --cluster");
    }
    return conninfo_files(sharing->conninfo, sharing->files, &sharing->file_count, err);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* host-1a2b3c4d, of characters of an id. */
static void make_node(char out[static CLUSTER_ID_MAX + 1])
{
    char host[CLUSTER_ID_MAX - 8] = "";
    uint32_t random;

    CHECK(getrandom(&random, sizeof random, 0) == (ssize_t)sizeof random);
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
        strcpy(host, "node");
    for (char *c = host; *c; c++)
        if (!world_id_is_valid(c, 1))
            *c = '-';
    snprintf(out, CLUSTER_ID_MAX + 1, "%s-%08x", host, random);
}

/* ---- the log --------------------------------------------------------------------------------- */

static enum err_code write_row(struct store *store, const struct store_shared_log *row,
                               struct err *err)
{
    if (store_begin(store, err))
        return err->code;
    if (row ? store_put_shared_log(store, row, err) : store_leave_shared_log(store, err)) {
        store_rollback(store);
        return err->code;
    }
    return store_commit(store, err);
}

/* --cluster none, or none at all. */
static enum err_code stay_alone(const struct config *config, struct store *store,
                                const struct store_shared_log *row, struct err *err)
{
    if (row->identity[0] == '\0')
        return ERR_OK;
    if (strcmp(config->cluster.conninfo, "none") != 0)
        return err_set(err, ERR_CONFLICT,
                       "the data directory %.160s follows the shared log %s: start with --cluster, "
                       "or with --cluster none to leave that log for good",
                       config->data, row->identity);
    if (write_row(store, NULL, err))
        return err->code;
    log_warn("the data directory has left the shared log %s", row->identity);
    return ERR_OK;
}

enum err_code sharing_open(struct sharing *sharing, const struct config *config,
                           struct store *store, struct err *err)
{
    struct store_shared_log row = {.identity = ""};
    struct cluster_options options = {
        .conninfo = sharing->conninfo,
        .node = sharing->node,
        .url = sharing->url,
        .locales = config->cluster.locales,
        .lease_ms = (uint32_t)config->cluster.lease_ms,
    };

    err->code = ERR_OK;
    if (!store)
        return ERR_OK;
    if (store_get_shared_log(store, &row, err))
        return err->code;
    if (!sharing->conninfo)
        return stay_alone(config, store, &row, err);
    if (config->cluster.node[0] != '\0') {
        snprintf(sharing->node, sizeof sharing->node, "%s", config->cluster.node);
    } else if (row.node[0] != '\0') {
        snprintf(sharing->node, sizeof sharing->node, "%s", row.node);
    } else {
        make_node(sharing->node);
        snprintf(row.node, sizeof row.node, "%s", sharing->node);
        if (write_row(store, &row, err))
            return err->code;
    }
    sharing->log = cluster_create(&options, err);
    return sharing->log ? ERR_OK : err->code;
}

void sharing_listens(struct sharing *sharing, const struct config *config, uint16_t port)
{
    if (!sharing->log || sharing->url[0] != '\0')
        return;
    make_url(sharing, config, port);
    cluster_set_url(sharing->log, sharing->url);
}

void sharing_close(struct sharing *sharing)
{
    cluster_destroy(sharing->log);
    sharing->log = NULL;
    free(sharing->conninfo);
    sharing->conninfo = NULL;
}
