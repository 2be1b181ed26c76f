/*
 * Configuration from three places with one table.
 *
 * Problem: flags, environment and config file must have the same options under the same names, and
 * --help must not drift from any of them. Approach: one table of options; `--log-level`,
 * `KOTA_LOG_LEVEL` and `log-level = …` are the same entry. The places are applied from the weakest
 * to the strongest: config file, environment, flags; so --config is read first. Every value passes
 * the same parser, whose error names the place.
 */
#include "daemon/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum option_kind {
    OPTION_TEXT,
    OPTION_FLAG,
    OPTION_COUNT,
    OPTION_LISTEN,
    OPTION_LOG_FORMAT,
    OPTION_LOG_LEVEL
};

struct option {
    const char *name;
    enum option_kind kind;
    size_t offset;        /* of the field in struct config */
    size_t size;          /* of the field */
    uint64_t least, most; /* OPTION_COUNT */
    const char *value, *help;
};

#define FIELD(field) offsetof(struct config, field), sizeof((struct config *)0)->field
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static const struct option options[] = {
    {"listen", OPTION_LISTEN, FIELD(host), 0, 0, "HOST:PORT",
     "numeric address; [::1]:7420 for IPv6; port 0 takes a free one (127.0.0.1:7420)"},
    {"ops-listen", OPTION_LISTEN, FIELD(ops_host), 0, 0, "HOST:PORT",
     "a second address, for /livez /readyz /healthz /metrics /v1/stats only, on a thread of its "
     "own; "
     "open before the world is loaded"},
    {"data", OPTION_TEXT, FIELD(data), 0, 0, "DIR",
     "data directory, created if absent; without it everything ends with the process"},
    {"check", OPTION_FLAG, FIELD(is_check), 0, 0, NULL,
     "verify the data directory, say what is damaged, exit 0 if nothing is"},
    {"healthcheck", OPTION_FLAG, FIELD(is_healthcheck), 0, 0, NULL,
     "ask the daemon that listens there whether it is ready, exit 0 if so, else 1 and one line"},
    {"world", OPTION_TEXT, FIELD(world), 0, 0, "DIR",
     "load every DIR/<id>/locale.json; a world with an error refuses to start"},
    {"loops", OPTION_COUNT, FIELD(loops), 0, 256, "N", "event loops (one a core)"},
    {"token-file", OPTION_TEXT, FIELD(token_file), 0, 0, "FILE",
     "lines `read TOKEN` or `edit TOKEN`; read again on SIGHUP"},
    {"read-only", OPTION_FLAG, FIELD(is_read_only), 0, 0, NULL, "refuse every write"},
    {"cors-origin", OPTION_TEXT, FIELD(cors_origin), 0, 0, "ORIGIN[,ORIGIN]…|*|none",
     "pages of these origins may read the answers in a browser (*: all)"},
    {"user", OPTION_TEXT, FIELD(user), 0, 0, "NAME",
     "started as root, go on as this user before the first file is opened"},
    {"no-sandbox", OPTION_FLAG, FIELD(has_no_sandbox), 0, 0, NULL,
     "do without Landlock, which confines the daemon to its own files"},
    {"port-file", OPTION_TEXT, FIELD(port_file), 0, 0, "FILE",
     "holds the port once /readyz answers 200"},
    {"ops-port-file", OPTION_TEXT, FIELD(ops_port_file), 0, 0, "FILE",
     "holds the port of --ops-listen once it is open"},
    {"config", OPTION_TEXT, FIELD(config_file), 0, 0, "FILE", "lines `name = value`, # comments"},
    {"log-format", OPTION_LOG_FORMAT, FIELD(log_format), 0, 0, "text|json",
     "one line an event (text on a terminal, else json)"},
    {"log-level", OPTION_LOG_LEVEL, FIELD(log_level), 0, 0, "debug|info|warn|error",
     "the least that is logged (info)"},
    {"access-log", OPTION_FLAG, FIELD(has_access_log), 0, 0, NULL,
     "log every request but probes, not only slow and failed ones"},
    {"slow-ms", OPTION_COUNT, FIELD(slow_ms), 0, 3600000, "N",
     "log requests that take longer; 0: none (1000)"},
    {"drain-ms", OPTION_COUNT, FIELD(drain_ms), 0, 3600000, "N",
     "how long SIGTERM lets requests finish, and patches settle (10000)"},
    {"patches-at-end", OPTION_TEXT, FIELD(patch.at_end), 0, 0, "save|discard",
     "what SIGTERM does with patches: let them settle and write them, or not (save)"},
    {"max-body", OPTION_COUNT, FIELD(limits.http.body_bytes_max), 1024, 16 * GIB, "BYTES",
     "of an upload (67108864)"},
    {"max-bodies", OPTION_COUNT, FIELD(limits.http.bodies_bytes_max), MIB, (uint64_t)1 << 50,
     "BYTES", "of all requests under way (1073741824)"},
    {"max-answers", OPTION_COUNT, FIELD(limits.http.answers_bytes_max), MIB, (uint64_t)1 << 50,
     "BYTES", "of large answers together, until they are sent (1073741824)"},
    {"max-json", OPTION_COUNT, FIELD(limits.json_bytes_max), 1024, GIB, "BYTES",
     "of a JSON body (8388608)"},
    {"max-json-depth", OPTION_COUNT, FIELD(limits.json.depth_max), JSON_DEPTH_LEAST,
     JSON_DEPTH_MOST, "N", "arrays and objects within each other (32)"},
    {"max-json-values", OPTION_COUNT, FIELD(limits.json.values_max), JSON_VALUES_LEAST, 100000000,
     "N", "of a JSON body (1000000)"},
    {"max-items", OPTION_COUNT, FIELD(limits.items_max), 1, 10000000, "N",
     "of a JSON batch (10000)"},
    {"max-binary-items", OPTION_COUNT, FIELD(limits.binary_items_max), 1, 100000000, "N",
     "of a binary batch (1000000)"},
    {"max-items-in-flight", OPTION_COUNT, FIELD(limits.items_in_flight_max), 1, (uint64_t)1 << 40,
     "N", "of all batches that are answered at one time; a single one always may (4000000)"},
    {"max-batch-ms", OPTION_COUNT, FIELD(limits.batch_ms_max), 1, 3600000, "N",
     "what one batch may take (30000)"},
    {"max-import-ms", OPTION_COUNT, FIELD(limits.import_ms_max), 1, 3600000, "N",
     "what one upload or change of polygons may take (60000)"},
    {"max-samples", OPTION_COUNT, FIELD(limits.raster.samples_max), 4, (uint64_t)1 << 40, "N",
     "of an uploaded raster (134217728)"},
    {"max-edit-samples", OPTION_COUNT, FIELD(limits.world.edit_samples_max), 1, (uint64_t)1 << 40,
     "N", "that one edit may change (16777216)"},
    {"max-uploads", OPTION_COUNT, FIELD(limits.uploads_bytes_max), 1, (uint64_t)1 << 50, "BYTES",
     "of layers that are built at once; a single one always may (2147483648)"},
    {"tile-cache", OPTION_COUNT, FIELD(limits.tile_cache_bytes_max), 0, (uint64_t)1 << 50, "BYTES",
     "of encoded tiles that are kept; 0: none (67108864)"},
    {"light-cache", OPTION_COUNT, FIELD(limits.light_cache_bytes_max), 0, (uint64_t)1 << 50,
     "BYTES", "of trees of meshes under lights that are kept; 0: none is made (268435456)"},
    {"max-polygons", OPTION_COUNT, FIELD(limits.polygon.polygons_max), 1, UINT32_MAX - 1, "N",
     "of an uploaded mesh (2000000); four times as many vertices and corners"},
    {"max-wal", OPTION_COUNT, FIELD(wal_bytes_max), MIB, (uint64_t)1 << 50, "BYTES",
     "of the store's write-ahead log, which a long backup lets grow (1073741824)"},
    {"cluster", OPTION_TEXT, FIELD(cluster.conninfo), 0, 0, "CONNINFO|@FILE|none",
     "share the log of edits in PostgreSQL with other daemons: libpq's connection string, or the "
     "file that it stands in; needs --data; none: leave the log that the data directory is of"},
    {"node", OPTION_TEXT, FIELD(cluster.node), 0, 0, "NAME",
     "with --cluster: this daemon's name, one of a kind (the host's with a suffix)"},
    {"node-url", OPTION_TEXT, FIELD(cluster.url), 0, 0, "URL",
     "with --cluster: where other daemons send clients to (http:// and --listen)"},
    {"locales", OPTION_TEXT, FIELD(cluster.locales), 0, 0, "PATTERN[,PATTERN]…",
     "with --cluster: the locales that are followed and served here, * and ? stand for any (all)"},
    {"max-staleness", OPTION_COUNT, FIELD(cluster.max_staleness_s), 0, 86400, "SECONDS",
     "with --cluster: not ready when it has not been known for so long that all is here; 0: ready "
     "all the same (30)"},
    {"snapshot-every", OPTION_COUNT, FIELD(cluster.snapshot_every), 1, 1000000000, "N",
     "with --cluster: entries of a locale's log until the next snapshot of it is made (1000)"},
    {"keep-entries", OPTION_COUNT, FIELD(cluster.keep_entries), 1, 1000000000, "N",
     "with --cluster: entries that stay behind a snapshot (1000)"},
    {"lease-ms", OPTION_COUNT, FIELD(cluster.lease_ms), 1000, 3600000, "N",
     "with --cluster: how long a lease holds and a daemon counts as alive without a sign of life "
     "(10000)"},
    {"max-locales", OPTION_COUNT, FIELD(limits.world.locales_max), 1, 1000000, "N",
     "in the world (1000)"},
    {"max-models", OPTION_COUNT, FIELD(limits.world.models_max), 1, 1000000, "N",
     "in the world (1000)"},
    {"max-queued-changes", OPTION_COUNT, FIELD(limits.world.queue_max), 1, 1000000, "N",
     "writes that wait for the writer (1000)"},
    {"max-world-bytes", OPTION_COUNT, FIELD(limits.world.bytes_max), MIB, (uint64_t)1 << 50,
     "BYTES", "of all layers together (8589934592)"},
    {"max-connections", OPTION_COUNT, FIELD(limits.http.connections_max), 1, 1000000, "N",
     "in all (10000)"},
    {"max-connections-per-address", OPTION_COUNT, FIELD(limits.http.connections_per_address_max), 1,
     1000000, "N", "(2000)"},
    {"max-streams", OPTION_COUNT, FIELD(limits.http.streams_max), 1, 1000000, "N",
     "subscribers of events (4096)"},
    {"simd", OPTION_TEXT, FIELD(simd), 0, 0, "scalar|avx2",
     "vector instructions that questions about terrain use (the best of this machine)"},
    {"max-target", OPTION_COUNT, FIELD(limits.http.target_bytes_max), 256, MIB, "BYTES",
     "of a request target (8192)"},
    {"max-header-bytes", OPTION_COUNT, FIELD(limits.http.header_bytes_max), 1024, MIB, "BYTES",
     "of request line and headers (16384)"},
    {"max-header-count", OPTION_COUNT, FIELD(limits.http.header_count_max), 8, 4096, "N",
     "headers of a request (64)"},
    {"idle-ms", OPTION_COUNT, FIELD(limits.http.idle_ms), 10, 86400000, "N",
     "a connection may wait between requests (60000)"},
    {"header-ms", OPTION_COUNT, FIELD(limits.http.header_ms), 10, 3600000, "N",
     "for a request's head to arrive (10000)"},
    {"body-ms", OPTION_COUNT, FIELD(limits.http.body_ms), 10, 3600000, "N",
     "for a body to arrive, and more for a large one (60000)"},
    {"write-ms", OPTION_COUNT, FIELD(limits.http.write_ms), 10, 3600000, "N",
     "without a byte taken, until a reader is cut off (30000)"},
    {"stream-silence-ms", OPTION_COUNT, FIELD(limits.http.stream_silence_ms), 10, 3600000, "N",
     "until a silent stream of events sends a comment (15000)"},
    {"min-revision-wait-ms", OPTION_COUNT, FIELD(limits.http.park_ms_max), 0, 3600000, "N",
     "that a read may wait for Kota-Min-Revision (2000)"},
    {"workers", OPTION_COUNT, FIELD(limits.http.workers), 0, 256, "N",
     "threads for uploads, large batches, tiles; 0: one a core, 4 at least (0)"},
    {"max-queue-ms", OPTION_COUNT, FIELD(limits.http.queue_ms_max), 1, 3600000, "N",
     "that a request is expected to wait for a worker, else it is refused (1000)"},
    {"max-queued-requests", OPTION_COUNT, FIELD(limits.http.queued_max), 1, 1000000, "N",
     "that wait for a worker (1000)"},
    {"gpu", OPTION_TEXT, FIELD(patch.gpu), 0, 0, "auto|N|software|off",
     "what simulates patches: the first GPU that can or else the processor, the Nth GPU, Mesa's "
     "software renderer, nothing (auto)"},
    {"patches-fine", OPTION_COUNT, FIELD(patch.slots[SCALE_FINE]), 0, SAND_SLOTS_MAX, "N",
     "patches of fine granules that can be in use at once (3)"},
    {"patches-medium", OPTION_COUNT, FIELD(patch.slots[SCALE_MEDIUM]), 0, SAND_SLOTS_MAX, "N",
     "of medium granules (3)"},
    {"patches-coarse", OPTION_COUNT, FIELD(patch.slots[SCALE_COARSE]), 0, SAND_SLOTS_MAX, "N",
     "of coarse granules (3)"},
    {"patch-granules", OPTION_COUNT, FIELD(patch.granules), 0, 1 << 22, "N",
     "of one patch; 0: 65536 on a GPU, 16384 in software (0)"},
    {"patch-bodies", OPTION_COUNT, FIELD(patch.bodies), 1, 32, "N", "of one patch (16)"},
    {"patch-material", OPTION_TEXT, FIELD(patch.material), 0, 0, "sand|pebbles|rubble",
     "what the granules are (sand)"},
    {"patch-active", OPTION_COUNT, FIELD(patch.active), 1, 3 * SAND_SLOTS_MAX, "N",
     "patches that are stepped at once; the others wait (4)"},
    {"patch-speed", OPTION_COUNT, FIELD(patch.speed_percent), 0, 100000, "PERCENT",
     "of real time, if the device can; 0: as fast as it can (100)"},
    {"patch-pause-ms", OPTION_COUNT, FIELD(patch.pause_ms), 1, 3600000, "N",
     "of stillness, simulated, until a patch pauses (2000)"},
    {"patch-write-ms", OPTION_COUNT, FIELD(patch.write_ms), 0, 86400000, "N",
     "of pause until a patch is written back (30000)"},
    {"patch-active-max-ms", OPTION_COUNT, FIELD(patch.active_max_ms), 1, 86400000, "N",
     "simulated, after which a patch counts as at rest (60000)"},
    {"patch-keep-ms", OPTION_COUNT, FIELD(patch.keep_ms), 0, 86400000, "N",
     "how long a patch that has ended can be read (600000)"},
    {"patch-threads", OPTION_COUNT, FIELD(patch.threads), 1, 256, "N",
     "of the reference solver (--gpu reference), which is for tests (1)"},
    {"version", OPTION_FLAG, FIELD(is_version), 0, 0, NULL, "print the version"},
    {"help", OPTION_FLAG, FIELD(is_help), 0, 0, NULL, "print this"},
};

enum { OPTION_COUNT_ALL = sizeof options / sizeof *options };

static uint64_t to_ms(double seconds)
{
    return (uint64_t)(seconds * 1000 + 0.5);
}

static void patch_defaults(struct patch_options *patch, const struct sand_config *sand)
{
    const struct manager_limits *limits = &sand->limits;

    *patch = (struct patch_options){
        .granules = sand->device.granules_max,
        .bodies = sand->device.bodies_max,
        .threads = sand->device.threads,
        .active = limits->active_max,
        .speed_percent = (uint64_t)(limits->speed * 100 + 0.5),
        .pause_ms = to_ms(limits->pause_after_s),
        .write_ms = to_ms(limits->write_after_s),
        .active_max_ms = to_ms(limits->active_max_s),
        .keep_ms = to_ms(limits->keep_s),
    };
    for (int scale = 0; scale < SCALE_COUNT; scale++)
        patch->slots[scale] = sand->device.slots[scale];
    snprintf(patch->gpu, sizeof patch->gpu, "%s", sand->device.gpu);
    snprintf(patch->at_end, sizeof patch->at_end, "save");
    snprintf(patch->material, sizeof patch->material, "%s", material_name(sand->device.material));
}

static void config_defaults(struct config *config, bool is_terminal)
{
    *config =
        (struct config){.port = 7420, .slow_ms = 1000, .drain_ms = 10000, .wal_bytes_max = GIB};
    config->cluster.max_staleness_s = 30;
    config->cluster.snapshot_every = config->cluster.keep_entries = 1000;
    config->cluster.lease_ms = 10000;
    strcpy(config->host, "127.0.0.1");
    strcpy(config->cors_origin, "*");
    config->log_format = is_terminal ? LOG_TEXT : LOG_JSON;
    config->log_level = LOG_INFO;
    api_limits_init(&config->limits);
    patch_defaults(&config->patch, &config->limits.sand);
}

/* ---- one value ------------------------------------------------------------------------------- */

static enum err_code set_listen(char *host, uint16_t *out_port, const char *value,
                                const char *place, struct err *err)
{
    const char *colon = strrchr(value, ':');
    size_t length = colon ? (size_t)(colon - value) : 0;
    bool has_brackets = length >= 2 && value[0] == '[' && value[length - 1] == ']';
    char *end;
    unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;

    if (!colon || colon[1] < '0' || colon[1] > '9' || *end != '\0' || port > 65535)
        return err_set(err, ERR_BAD_INPUT, "%s: \"%s\" is not HOST:PORT with a port of 0 to 65535",
                       place, value);
    if (has_brackets) {
        value++;
        length -= 2;
    } else if (memchr(value, ':', length)) {
        return err_set(err, ERR_BAD_INPUT, "%s: write an IPv6 address in brackets: [::1]:7420",
                       place);
    }
    if (length == 0 || length >= CONFIG_HOST_MAX)
        return err_set(err, ERR_BAD_INPUT, "%s: the host of HOST:PORT is empty or too long", place);
    memcpy(host, value, length);
    host[length] = '\0';
    if (strcmp(host, "localhost") == 0)
        strcpy(host, "127.0.0.1");
    *out_port = (uint16_t)port;
    return ERR_OK;
}

static enum err_code set_word(const char *const *words, const char *value, const char *place,
                              int *out, struct err *err)
{
    char all[64];
    size_t length = 0;

    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], value) == 0) {
            *out = i;
            return ERR_OK;
        }
    }
    for (int i = 0; words[i]; i++)
        length += (size_t)snprintf(all + length, sizeof all - length, "%s%s", i > 0 ? ", " : "",
                                   words[i]);
    return err_set(err, ERR_BAD_INPUT, "%s: \"%s\" is none of %s", place, value, all);
}

static enum err_code set_count(const struct option *option, void *field, const char *value,
                               const char *place, struct err *err)
{
    char *end;
    unsigned long long count;

    errno = 0;
    count = strtoull(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || count < option->least ||
        count > option->most)
        return err_set(err, ERR_BAD_INPUT, "%s: \"%s\" is not a whole number of %llu to %llu",
                       place, value, (unsigned long long)option->least,
                       (unsigned long long)option->most);
    if (option->size == sizeof(uint32_t))
        *(uint32_t *)field = (uint32_t)count;
    else
        *(uint64_t *)field = count;
    return ERR_OK;
}

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "limits of size_t are set as uint64_t");

static enum err_code option_set(struct config *config, const struct option *option,
                                const char *value, const char *place, struct err *err)
{
    static const char *const formats[] = {"text", "json", NULL};
    static const char *const levels[] = {"debug", "info", "warn", "error", NULL};
    static const char *const booleans[] = {"false", "true", NULL};
    void *field = (char *)config + option->offset;
    int word = 0;

    switch (option->kind) {
    case OPTION_TEXT:
        if (strlen(value) >= option->size)
            return err_set(err, ERR_BAD_INPUT, "%s: longer than %zu characters", place,
                           option->size - 1);
        strcpy(field, value);
        return ERR_OK;
    case OPTION_FLAG:
        if (set_word(booleans, value, place, &word, err))
            return err->code;
        *(bool *)field = word != 0;
        return ERR_OK;
    case OPTION_COUNT:
        return set_count(option, field, value, place, err);
    case OPTION_LISTEN:
        return set_listen(field,
                          option->offset == offsetof(struct config, host) ? &config->port
                                                                          : &config->ops_port,
                          value, place, err);
    case OPTION_LOG_FORMAT:
        if (set_word(formats, value, place, &word, err))
            return err->code;
        config->log_format = word == 0 ? LOG_TEXT : LOG_JSON;
        return ERR_OK;
    case OPTION_LOG_LEVEL:
        if (set_word(levels, value, place, &word, err))
            return err->code;
        config->log_level = (enum log_level)word;
        return ERR_OK;
    }
    return ERR_OK;
}

static const struct option *option_find(const char *name, size_t length)
{
    for (size_t i = 0; i < OPTION_COUNT_ALL; i++)
        if (strlen(options[i].name) == length && memcmp(options[i].name, name, length) == 0)
            return &options[i];
    return NULL;
}

/* ---- the three places ------------------------------------------------------------------------ */

/* Cuts white space off both ends, in place. */
static char *trim(char *text)
{
    size_t length;

    text += strspn(text, " \t\r\n");
    length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]))
        text[--length] = '\0';
    return text;
}

static enum err_code read_file(struct config *config, const char *path, struct err *err)
{
    FILE *stream = fopen(path, "re");
    char line[2 * CONFIG_TEXT_MAX];

    if (!stream)
        return err_set(err, ERR_BAD_INPUT, "config file %s: %s", path, strerror(errno));
    for (int number = 1; err->code == ERR_OK && fgets(line, sizeof line, stream); number++) {
        char place[CONFIG_TEXT_MAX + 32];
        char *name, *equals;
        const struct option *option;

        snprintf(place, sizeof place, "%s:%d", path, number);
        name = trim(line);
        if (name[0] == '\0' || name[0] == '#')
            continue;
        equals = strchr(name, '=');
        if (!equals) {
            err_set(err, ERR_BAD_INPUT, "%s: a line is `name = value`", place);
            break;
        }
        *equals = '\0';
        name = trim(name);
        option = option_find(name, strlen(name));
        if (!option)
            err_set(err, ERR_BAD_INPUT, "%s: there is no option \"%.64s\"", place, name);
        else
            option_set(config, option, trim(equals + 1), place, err);
    }
    fclose(stream);
    return err->code;
}

/* KOTA_LOG_LEVEL for log-level. */
static void environment_name(const struct option *option, char out[static 64])
{
    size_t n = 0;

    memcpy(out, "KOTA_", 5);
    for (n = 0; option->name[n] != '\0' && n < 58; n++) {
        char c = option->name[n];

        out[5 + n] = c == '-' ? '_' : (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    out[5 + n] = '\0';
}

static const char *environment_value(char *const *environment, const char *name)
{
    size_t length = strlen(name);

    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

static enum err_code read_environment(struct config *config, char *const *environment,
                                      struct err *err)
{
    for (size_t i = 0; i < OPTION_COUNT_ALL; i++) {
        char name[64];
        const char *value;

        environment_name(&options[i], name);
        value = environment_value(environment, name);
        if (value && value[0] != '\0' && option_set(config, &options[i], value, name, err))
            return err->code;
    }
    return ERR_OK;
}

/*
 * Reads one argument; *used is the number of words taken, 0 when it is no flag. With a NULL config
 * the value is only found: it goes to *value.
 */
static enum err_code read_flag(char *const *argv, int left, const struct option **option,
                               const char **value, int *used, struct err *err)
{
    const char *text = argv[0], *equals;
    size_t length;

    *used = 0;
    if (text[0] != '-' || text[1] == '\0')
        return ERR_OK;
    if (strcmp(text, "-h") == 0)
        text = "--help";
    equals = strchr(text, '=');
    length = equals ? (size_t)(equals - text) : strlen(text);
    *option = strncmp(text, "--", 2) == 0 ? option_find(text + 2, length - 2) : NULL;
    if (!*option)
        return err_set(err, ERR_BAD_INPUT, "there is no option %.*s; see --help", (int)length,
                       text);
    *used = 1;
    *value = equals ? equals + 1 : "true";
    if (equals || (*option)->kind == OPTION_FLAG)
        return ERR_OK;
    if (left < 2)
        return err_set(err, ERR_BAD_INPUT, "%.*s needs a value: %s", (int)length, text,
                       (*option)->value);
    *value = argv[1];
    *used = 2;
    return ERR_OK;
}

/* Goes through the flags; with only_config nothing but --config is applied, and files are left. */
static enum err_code read_flags(struct config *config, int argc, char *const *argv,
                                bool only_config, char **files, struct err *err)
{
    bool is_over = false;

    for (int i = 1, used = 0; i<argc; i += used> 0 ? used : 1) {
        const struct option *option = NULL;
        const char *value = NULL;
        char place[72];

        used = 0;
        if (!is_over && strcmp(argv[i], "--") == 0) {
            is_over = true;
            continue;
        }
        if (!is_over && read_flag(argv + i, argc - i, &option, &value, &used, err))
            return err->code;
        if (used == 0 && !only_config)
            files[config->file_count++] = argv[i];
        if (used == 0 || (only_config && strcmp(option->name, "config") != 0))
            continue;
        snprintf(place, sizeof place, "--%s", option->name);
        if (option_set(config, option, value, place, err))
            return err->code;
    }
    return ERR_OK;
}

/* The options of patches, as the sand thread takes them. */
static enum err_code patch_apply(struct config *config, struct err *err)
{
    const struct patch_options *patch = &config->patch;
    struct sand_config *sand = &config->limits.sand;

    if (!device_word_ok(patch->gpu))
        return err_set(err, ERR_BAD_INPUT,
                       "--gpu: \"%s\" is not auto, software, off or the number of a GPU, 0 to 63",
                       patch->gpu);
    if (!material_from_name(patch->material, &sand->device.material))
        return err_set(err, ERR_BAD_INPUT,
                       "--patch-material: \"%s\" is not sand, pebbles or rubble", patch->material);
    config->saves_patches = strcmp(patch->at_end, "save") == 0;
    if (!config->saves_patches && strcmp(patch->at_end, "discard") != 0)
        return err_set(err, ERR_BAD_INPUT, "--patches-at-end: \"%s\" is not save or discard",
                       patch->at_end);
    memcpy(sand->device.gpu, patch->gpu, sizeof sand->device.gpu);
    for (int scale = 0; scale < SCALE_COUNT; scale++)
        sand->device.slots[scale] = (uint32_t)patch->slots[scale];
    sand->device.granules_max = (uint32_t)patch->granules;
    sand->device.bodies_max = (uint32_t)patch->bodies;
    sand->device.threads = (uint32_t)patch->threads;
    sand->limits.active_max = (uint32_t)patch->active;
    sand->limits.speed = (double)patch->speed_percent / 100;
    sand->limits.pause_after_s = (double)patch->pause_ms / 1000;
    sand->limits.write_after_s = (double)patch->write_ms / 1000;
    sand->limits.active_max_s = (double)patch->active_max_ms / 1000;
    sand->limits.keep_s = (double)patch->keep_ms / 1000;
    return ERR_OK;
}

enum err_code config_read(struct config *config, int argc, char *const *argv,
                          char *const *environment, bool is_terminal, struct err *err)
{
    char **files = calloc((size_t)argc + 1, sizeof *files);
    const char *file = environment_value(environment, "KOTA_CONFIG");
    char path[CONFIG_TEXT_MAX];

    err->code = ERR_OK;
    config_defaults(config, is_terminal);
    if (!files)
        return err_set(err, ERR_NO_MEMORY, "no memory for %d arguments", argc);
    config->files = files;
    if (read_flags(config, argc, argv, true, files, err))
        return err->code;
    if (config->config_file[0] != '\0')
        file = config->config_file;
    if (file && file[0] != '\0') {
        snprintf(path, sizeof path, "%s", file);
        if (read_file(config, path, err))
            return err->code;
    }
    if (read_environment(config, environment, err))
        return err->code;
    if (read_flags(config, argc, argv, false, files, err))
        return err->code;
    return patch_apply(config, err);
}

/* ---- a reload -------------------------------------------------------------------------------- */

/* What may change while the daemon runs: where it is read for each request, or only at the end. */
static const char *const live[] = {
    "log-format",       "log-level",          "access-log",
    "slow-ms",          "drain-ms",           "patches-at-end",
    "max-body",         "max-bodies",         "max-answers",
    "max-json",         "max-json-depth",     "max-json-values",
    "max-items",        "max-binary-items",   "max-items-in-flight",
    "max-batch-ms",     "max-samples",        "max-edit-samples",
    "max-uploads",      "max-polygons",       "max-locales",
    "max-models",       "max-queued-changes", "max-world-bytes",
    "max-streams",      "max-target",         "max-connections-per-address",
    "max-header-bytes", "max-header-count",   "min-revision-wait-ms",
    "idle-ms",          "header-ms",          "body-ms",
    "write-ms",         "stream-silence-ms",  "max-import-ms",
};

bool config_is_live(const char *name)
{
    for (size_t i = 0; i < sizeof live / sizeof *live; i++)
        if (strcmp(live[i], name) == 0)
            return true;
    return false;
}

static bool is_same(const struct option *option, const struct config *a, const struct config *b)
{
    const char *x = (const char *)a + option->offset, *y = (const char *)b + option->offset;
    bool is_main = option->offset == offsetof(struct config, host);

    switch (option->kind) {
    case OPTION_TEXT:
        return strcmp(x, y) == 0;
    case OPTION_LISTEN:
        return strcmp(x, y) == 0 && (is_main ? a->port == b->port : a->ops_port == b->ops_port);
    default:
        return memcmp(x, y, option->size) == 0;
    }
}

size_t config_differences(const struct config *now, const struct config *fresh,
                          void (*report)(void *context, const char *name, bool is_live),
                          void *context)
{
    size_t count = 0;

    for (size_t i = 0; i < OPTION_COUNT_ALL; i++) {
        bool is_live = config_is_live(options[i].name);

        if (is_same(&options[i], now, fresh))
            continue;
        report(context, options[i].name, is_live);
        count += is_live;
    }
    return count;
}

void config_adopt(struct config *now, const struct config *fresh)
{
    for (size_t i = 0; i < OPTION_COUNT_ALL; i++)
        if (config_is_live(options[i].name))
            memcpy((char *)now + options[i].offset, (const char *)fresh + options[i].offset,
                   options[i].size);
    now->saves_patches = fresh->saves_patches;
}

bool config_is_loopback(const struct config *config)
{
    return strncmp(config->host, "127.", 4) == 0 || strcmp(config->host, "::1") == 0;
}

char *config_help(void)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    if (!stream)
        return NULL;
    fprintf(stream,
            "usage: kotad [OPTION]… [FILE[?OPTIONS]]…\n\n"
            "Serves terrain over HTTP. Each FILE (.png .f32 .hgt .asc, or a mesh: .obj .glb .gltf\n"
            ".ply .stl .ac .dae) becomes a locale with one layer `ground`; after `?` stand the\n"
            "query parameters of PUT …/layers/{layer}:\n"
            "  kotad 'volcano.asc' 'N42E001.hgt' 'relief.png?spacing=10,10&height_scale=0.1'\n\n");
    for (size_t i = 0; i < OPTION_COUNT_ALL; i++) {
        char flag[64];

        snprintf(flag, sizeof flag, "--%s%s%s", options[i].name, options[i].value ? " " : "",
                 options[i].value ? options[i].value : "");
        fprintf(stream, "  %-34s %s\n", flag, options[i].help);
    }
    fprintf(
        stream,
        "\nEach option may also stand in the environment (--log-level as KOTA_LOG_LEVEL) or in "
        "the\nconfig file (log-level = warn). Flags win over the environment, that over the "
        "file.\nSIGTERM drains and ends; SIGHUP reads config file, token file and world again.\n");
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
