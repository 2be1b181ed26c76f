/*
 * The table of settings, and --help.
 *
 * Problem: a setting has its meaning, unit and default in five places: --help, manual page, the
 * example config file, docs/configuration.md and the parser. Approach: one table.
 * Defaults are not in it: they are read from a configuration in which nothing is set, so no text
 * can differ from the program. `--help=table` prints the table for programs: deploy/settings.py
 * writes the config file and the page from it, docs/man/page.py the manual.
 */
#include "daemon/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(field) offsetof(struct config, field), sizeof((struct config *)0)->field
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define PIB ((uint64_t)1 << 50)

#define GROUP(title)                                                                               \
    {                                                                                              \
        .kind = SETTING_GROUP, .help = title                                                       \
    }
#define TEXT(name_, field, value_, help_, ...)                                                     \
    {                                                                                              \
        .name = name_, .kind = SETTING_TEXT, FIELD(field), .value = value_, .help = help_,         \
        __VA_ARGS__                                                                                \
    }
#define FLAG(name_, field, help_, ...)                                                             \
    {                                                                                              \
        .name = name_, .kind = SETTING_FLAG, FIELD(field), .help = help_, __VA_ARGS__              \
    }
#define COUNT(name_, field, least_, most_, unit_, help_, ...)                                      \
    {                                                                                              \
        .name = name_, .kind = SETTING_COUNT, FIELD(field), .least = least_, .most = most_,        \
        .unit = unit_, .help = help_, __VA_ARGS__                                                  \
    }
#define SHORT .is_short = true
#define LIVE .is_live = true

const struct setting settings[] = {
    GROUP("Address and world"),
    {.name = "listen",
     .kind = SETTING_LISTEN,
     FIELD(host),
     .value = "HOST:PORT|unix:PATH",
     .help = "API address; numeric or localhost, [::1]:7420 for IPv6; port 0 takes a free port; "
             "unix:PATH a Unix socket; for both repeat it, or write a comma between",
     SHORT},
    TEXT("socket-mode", socket_mode, "MODE",
         "permissions of the Unix socket, octal; who may connect, not what they may do"),
    {.name = "ops-listen",
     .kind = SETTING_LISTEN,
     FIELD(ops_host),
     .value = "HOST:PORT",
     .help = "second address, only for probes and counters; open before the world is loaded",
     SHORT,
     .absent = "none",
     .example = "127.0.0.1:7421"},
    TEXT("data", data, "DIR", "data directory, created if absent", SHORT,
         .absent = "none: nothing is kept", .example = "/var/lib/kota"),
    TEXT("world", world, "DIR", "world directory; each DIR/ID/locale.json is a locale", SHORT,
         .absent = "none", .example = "/srv/kota/world"),
    TEXT("config", config_file, "FILE", "config file; lines `name = value`, # comments", SHORT,
         .is_command = true, .absent = "none"),
    TEXT("port-file", port_file, "FILE", "file that gets the port when /readyz first answers 200",
         .absent = "none", .example = "/run/kota/port"),
    TEXT("ops-port-file", ops_port_file, "FILE", "file that gets the port of --ops-listen",
         .absent = "none", .example = "/run/kota/ops-port"),
    COUNT("max-wal", wal_bytes_max, MIB, PIB, UNIT_BYTES,
          "size of the store's write-ahead log; during a long backup it grows"),
    GROUP("Access"),
    TEXT("token-file", token_file, "FILE",
         "file with bearer tokens and their claims (docs/security.md); lines `read TOKEN` or `edit "
         "TOKEN`, or `edit uid=N` for a user of the Unix socket; a reload reads it again",
         SHORT, .absent = "none: no tokens", .example = "/etc/kota.tokens"),
    TEXT("audit", audit, "FILE",
         "append a line for each write: time, name, address, route, locale, rect, revision, "
         "request; a reload opens the file again",
         .absent = "none", .example = "/var/log/kota/audit.log"),
    FLAG("audit-sync", is_audit_sync, "put the line on the disk before its write is acknowledged"),
    FLAG("read-only", is_read_only, "refuse every write", SHORT),
    TEXT("cors-origin", cors_origin, "ORIGINS",
         "web origins that may read answers; between commas, * for all, or none", SHORT),
    TEXT("public-url", public_url, "URL",
         "address that readers of maps see, in documents with links; behind a proxy",
         .absent = "from X-Forwarded-* of a trusted proxy, else from Host",
         .example = "https://maps.example.net/kota"),
    TEXT("trusted-proxies", trusted_proxies, "NETWORKS",
         "addresses or ADDRESS/BITS of proxies, between commas, whose X-Forwarded-Proto, -Host and "
         "-Prefix are believed; none: nobody's; ::1 is the Unix socket, too"),
    TEXT("user", user, "NAME", "user to change to after a start as root", .absent = "none",
         .example = "kota"),
    FLAG("no-sandbox", has_no_sandbox,
         "no Landlock sandbox, which restricts the daemon to its own files"),
    GROUP("Log"),
    {.name = "log-format",
     .kind = SETTING_LOG_FORMAT,
     FIELD(log_format),
     .value = "text|json",
     .help = "form of a line",
     SHORT,
     LIVE,
     .absent = "text on a terminal, else json",
     .example = "json"},
    {.name = "log-level",
     .kind = SETTING_LOG_LEVEL,
     FIELD(log_level),
     .value = "LEVEL",
     .help = "least level: debug, info, warn or error",
     SHORT,
     LIVE},
    FLAG("access-log", has_access_log,
         "log every request; without it only slow and failed ones; never probes", SHORT, LIVE),
    COUNT("slow-ms", slow_ms, 0, 3600000, UNIT_MS,
          "duration after which a request is logged as slow; 0: never", SHORT, LIVE),
    GROUP("Shutdown"),
    COUNT("drain-ms", drain_ms, 0, 3600000, UNIT_MS,
          "time for requests to finish at SIGTERM; and for patches to settle", SHORT, LIVE),
    TEXT("patches-at-end", patch.at_end, "save|discard",
         "patches at SIGTERM; save: after they have settled", SHORT, LIVE),
    GROUP("Limits"),
    COUNT("max-body", limits.http.body_bytes_max, 1024, 16 * GIB, UNIT_BYTES,
          "size of one body; an f32 layer is streamed instead", SHORT, LIVE),
    COUNT("max-json", limits.json_bytes_max, 1024, GIB, UNIT_BYTES, "size of one JSON body", LIVE),
    COUNT("max-bodies", limits.http.bodies_bytes_max, MIB, PIB, UNIT_BYTES,
          "size of all request bodies in memory", LIVE),
    COUNT("max-answers", limits.http.answers_bytes_max, MIB, PIB, UNIT_BYTES,
          "size of all large answers that are not sent yet", LIVE),
    COUNT("max-json-depth", limits.json.depth_max, JSON_DEPTH_LEAST, JSON_DEPTH_MOST, UNIT_NONE,
          "depth of nested JSON arrays and objects", LIVE),
    COUNT("max-json-values", limits.json.values_max, JSON_VALUES_LEAST, 100000000, UNIT_NONE,
          "values in one JSON body", LIVE),
    COUNT("max-items", limits.items_max, 1, 10000000, UNIT_NONE, "items in one JSON batch", SHORT,
          LIVE),
    COUNT("max-binary-items", limits.binary_items_max, 1, 100000000, UNIT_NONE,
          "items in one binary batch", SHORT, LIVE),
    COUNT("max-items-in-flight", limits.items_in_flight_max, 1, (uint64_t)1 << 40, UNIT_NONE,
          "items of all batches in progress; one batch is always accepted", LIVE),
    COUNT("max-batch-ms", limits.batch_ms_max, 1, 3600000, UNIT_MS, "time for one batch", LIVE),
    COUNT("max-import-ms", limits.import_ms_max, 1, 3600000, UNIT_MS,
          "time for one upload or change of polygons", LIVE),
    COUNT("max-samples", limits.raster.samples_max, 4, (uint64_t)1 << 40, UNIT_NONE,
          "samples in one uploaded raster", LIVE),
    COUNT("max-edit-samples", limits.world.edit_samples_max, 1, (uint64_t)1 << 40, UNIT_NONE,
          "samples that one edit may change", LIVE),
    COUNT("max-polygons", limits.polygon.polygons_max, 1, UINT32_MAX - 1, UNIT_NONE,
          "polygons in one uploaded mesh; four times as many vertices and corners", LIVE),
    COUNT("max-uploads", limits.uploads_bytes_max, 1, PIB, UNIT_BYTES,
          "memory of all layers under construction; one upload is always accepted", LIVE),
    COUNT("max-locales", limits.world.locales_max, 1, 1000000, UNIT_NONE, "locales in the world",
          LIVE),
    COUNT("max-models", limits.world.models_max, 1, 1000000, UNIT_NONE, "models in the world",
          LIVE),
    COUNT("max-world-bytes", limits.world.bytes_max, MIB, PIB, UNIT_BYTES, "memory of all layers",
          SHORT, LIVE),
    COUNT("max-pins", limits.world.pins_max, 0, 1000, UNIT_NONE, "pins of one locale", LIVE),
    COUNT("max-past-bytes", limits.world.past_bytes_max, 0, PIB, UNIT_BYTES,
          "memory of the last revisions of all locales", LIVE),
    COUNT("max-history-bytes", limits.world.history_bytes_max, 0, PIB, UNIT_BYTES,
          "history of one locale in the data directory; 0: none", LIVE),
    COUNT("max-queued-changes", limits.world.queue_max, 1, 1000000, UNIT_NONE,
          "writes in the writer's queue", LIVE),
    COUNT("tile-cache", limits.tile_cache_bytes_max, 0, PIB, UNIT_BYTES,
          "memory of the cache of encoded tiles; 0: no cache"),
    COUNT("light-cache", limits.light_cache_bytes_max, 0, PIB, UNIT_BYTES,
          "memory of the cache of light trees; 0: no cache"),
    COUNT("max-watches", limits.watches_max, 1, 100000, UNIT_NONE, "watches at once", LIVE),
    COUNT("max-watch-items", limits.watch_items_max, 1, 100000000, UNIT_NONE,
          "items of all watches together", LIVE),
    COUNT("watch-linger-ms", limits.watch_linger_ms, 0, 86400000, UNIT_MS,
          "time without a reader after which a watch ends", LIVE),
    GROUP("Connections"),
    COUNT("max-connections", limits.http.connections_max, 1, 1000000, UNIT_NONE,
          "connections in all", SHORT),
    COUNT("max-connections-per-address", limits.http.connections_per_address_max, 1, 1000000,
          UNIT_NONE, "connections from one address; a proxy is one address", SHORT, LIVE),
    COUNT("max-streams", limits.http.streams_max, 1, 1000000, UNIT_NONE, "open streams of events",
          LIVE),
    COUNT("max-target", limits.http.target_bytes_max, 256, MIB, UNIT_BYTES,
          "length of a request's path and query", LIVE),
    COUNT("max-header-bytes", limits.http.header_bytes_max, 1024, MIB, UNIT_BYTES,
          "size of a request's line and headers", LIVE),
    COUNT("max-header-count", limits.http.header_count_max, 8, 4096, UNIT_NONE,
          "headers in one request", LIVE),
    COUNT("idle-ms", limits.http.idle_ms, 10, 86400000, UNIT_MS,
          "time until an idle connection is closed", LIVE),
    COUNT("header-ms", limits.http.header_ms, 10, 3600000, UNIT_MS,
          "time for a request's head to arrive", LIVE),
    COUNT("body-ms", limits.http.body_ms, 10, 3600000, UNIT_MS,
          "time for a body to arrive; longer for a large body", LIVE),
    COUNT("write-ms", limits.http.write_ms, 10, 3600000, UNIT_MS,
          "time that a client may accept no byte of an answer", LIVE),
    COUNT("stream-silence-ms", limits.http.stream_silence_ms, 10, 3600000, UNIT_MS,
          "silence on a stream of events until a comment is sent", LIVE),
    COUNT("min-revision-wait-ms", limits.http.park_ms_max, 0, 3600000, UNIT_MS,
          "time that a read may wait for Kota-Min-Revision", LIVE),
    GROUP("Threads and processor"),
    COUNT("loops", loops, 0, 256, UNIT_NONE, "event loops", SHORT, .absent = "one per core"),
    COUNT("workers", limits.http.workers, 0, 256, UNIT_NONE,
          "threads for uploads, large batches and tiles", .absent = "one per core, at least 4"),
    COUNT("max-queue-ms", limits.http.queue_ms_max, 1, 3600000, UNIT_MS,
          "expected wait for a worker above which a request is refused"),
    COUNT("max-queued-requests", limits.http.queued_max, 1, 1000000, UNIT_NONE,
          "requests that wait for a worker"),
    TEXT("simd", simd, "scalar|avx2", "vector instructions", .absent = "the best of this processor",
         .example = "avx2"),
    GROUP("Sand"),
    TEXT("gpu", patch.gpu, "auto|N|cpu|software|off",
         "solver of sand; auto: the first usable GPU, else the processor; N: the Nth GPU; "
         "cpu: the processor; software: Mesa, for tests; off: none",
         SHORT),
    FLAG("gpu-warm", patch.is_warm,
         "open the device and make all pools of patches at the start, not with the first patch"),
    COUNT("patches-fine", patch.slots[SCALE_FINE], 0, SAND_SLOTS_MAX, UNIT_NONE,
          "patches of fine granules in use at once"),
    COUNT("patches-medium", patch.slots[SCALE_MEDIUM], 0, SAND_SLOTS_MAX, UNIT_NONE,
          "patches of medium granules in use at once"),
    COUNT("patches-coarse", patch.slots[SCALE_COARSE], 0, SAND_SLOTS_MAX, UNIT_NONE,
          "patches of coarse granules in use at once"),
    COUNT("patch-granules", patch.granules, 0, 1 << 22, UNIT_NONE, "granules in one patch",
          .absent = "65536 on a GPU, 16384 without"),
    COUNT("patch-bodies", patch.bodies, 1, 32, UNIT_NONE, "bodies in one patch"),
    TEXT("patch-material", patch.material, "sand|pebbles|rubble|snow",
         "material of patches that name none"),
    COUNT("patch-active", patch.active, 1, 3 * SAND_SLOTS_MAX, UNIT_NONE,
          "patches in simulation at once; the others wait"),
    COUNT("patch-speed", patch.speed_percent, 0, 100000, UNIT_PERCENT,
          "simulation speed relative to real time; 0: as fast as possible"),
    COUNT("patch-pause-ms", patch.pause_ms, 1, 3600000, UNIT_MS,
          "simulated stillness after which a patch pauses"),
    COUNT("patch-linger-ms", patch.linger_ms, 0, 86400000, UNIT_MS,
          "time that a patch keeps its granules after it was written at rest"),
    COUNT("patch-active-max-ms", patch.active_max_ms, 1, 86400000, UNIT_MS,
          "simulated time after which a patch counts as at rest"),
    COUNT("patch-keep-ms", patch.keep_ms, 0, 86400000, UNIT_MS,
          "time that an ended patch remains readable"),
    COUNT("patch-idle-ms", patch.idle_ms, 1000, 86400000, UNIT_MS,
          "time without a patch after which the memory and threads of a pool are given back"),
    COUNT("patch-threads", patch.threads, 0, 64, UNIT_NONE,
          "threads that simulate when there is no GPU", .absent = "half of the cores, at least 1"),
    GROUP("Cluster"),
    TEXT("cluster", cluster.conninfo, "CONNINFO|@FILE|none",
         "PostgreSQL with the shared log; a connection string, a file with it, or none to leave "
         "the log",
         SHORT, .absent = "none",
         .example = "host=db1,db2 dbname=kota user=kota target_session_attrs=read-write"),
    TEXT("node", cluster.node, "NAME", "unique name of this daemon", SHORT,
         .absent = "host name with a suffix", .example = "north-1"),
    TEXT("node-url", cluster.url, "URL",
         "address for redirected clients; set it if --listen is not reachable", SHORT,
         .absent = "http:// and --listen", .example = "http://north-1.example.net:7420"),
    TEXT("locales", cluster.locales, "PATTERNS",
         "locales to follow and serve; patterns with * and ?, between commas", SHORT,
         .absent = "all", .example = "north-*,harbour"),
    COUNT("max-staleness", cluster.max_staleness_s, 0, 86400, UNIT_S,
          "age of the last contact after which /readyz fails; 0: never"),
    COUNT("snapshot-every", cluster.snapshot_every, 1, 1000000000, UNIT_NONE,
          "log entries of a locale between two snapshots"),
    COUNT("keep-entries", cluster.keep_entries, 1, 1000000000, UNIT_NONE,
          "log entries that are kept after a snapshot"),
    COUNT("lease-ms", cluster.lease_ms, 1000, 3600000, UNIT_MS,
          "duration of a lease, and silence after which a daemon counts as dead"),
    GROUP("Instead of serving"),
    FLAG("check", is_check,
         "verify the data directory; list the damage, exit with 0 if there is none", SHORT,
         .is_command = true),
    FLAG("healthcheck", is_healthcheck,
         "ask whether the daemon at --listen is ready; exit with 0 if so", SHORT,
         .is_command = true),
    FLAG("version", is_version, "print the version", SHORT, .is_command = true),
    {.name = "help",
     .kind = SETTING_HELP,
     FIELD(help),
     .value = "all|table",
     .help = "print this help; all: every setting; table: for programs",
     SHORT,
     .is_command = true},
};

const size_t setting_count = sizeof settings / sizeof *settings;

const struct setting *setting_find(const char *name, size_t length)
{
    for (size_t i = 0; i < setting_count; i++)
        if (settings[i].name && strlen(settings[i].name) == length &&
            memcmp(settings[i].name, name, length) == 0)
            return &settings[i];
    return NULL;
}

const char *setting_value(const struct setting *setting)
{
    static const char *const words[] = {[UNIT_NONE] = "N",
                                        [UNIT_BYTES] = "BYTES",
                                        [UNIT_MS] = "MS",
                                        [UNIT_S] = "SECONDS",
                                        [UNIT_PERCENT] = "PERCENT"};

    return setting->kind == SETTING_COUNT ? words[setting->unit] : setting->value;
}

/* ---- --help ---------------------------------------------------------------------------------- */

static uint64_t count_of(const struct setting *setting, const struct config *config)
{
    const char *field = (const char *)config + setting->offset;
    uint32_t narrow;
    uint64_t wide;

    if (setting->size == sizeof narrow) {
        memcpy(&narrow, field, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, field, sizeof wide);
    return wide;
}

/* 64 MiB, 60000 ms. out [64] */
static void with_unit(uint64_t value, enum setting_unit unit, char *out)
{
    static const char *const units[] = {[UNIT_NONE] = "",
                                        [UNIT_BYTES] = " bytes",
                                        [UNIT_MS] = " ms",
                                        [UNIT_S] = " s",
                                        [UNIT_PERCENT] = " %"};
    static const char *const powers[] = {" bytes", " KiB", " MiB", " GiB"};
    size_t power = 0;

    for (; unit == UNIT_BYTES && value > 0 && value % 1024 == 0 && power < 3; power++)
        value /= 1024;
    snprintf(out, 64, "%" PRIu64 "%s", value, power > 0 ? powers[power] : units[unit]);
}

/*
 * The default as the config file has it ("" if it has no value), and for people. raw, text
 * [CONFIG_TEXT_MAX]
 */
static void default_of(const struct setting *setting, const struct config *config, char *raw,
                       char *text)
{
    const char *field = (const char *)config + setting->offset;

    raw[0] = '\0';
    switch (setting->kind) {
    case SETTING_COUNT:
        snprintf(raw, CONFIG_TEXT_MAX, "%" PRIu64, count_of(setting, config));
        with_unit(count_of(setting, config), setting->unit, text);
        break;
    case SETTING_FLAG:
        strcpy(raw, "false");
        strcpy(text, "no");
        break;
    case SETTING_LOG_LEVEL:
        strcpy(raw, "info");
        strcpy(text, raw);
        break;
    case SETTING_LISTEN:
        if (!setting->absent)
            snprintf(raw, CONFIG_TEXT_MAX, "%s:%u", field, config->port);
        strcpy(text, raw);
        break;
    case SETTING_TEXT:
        snprintf(raw, CONFIG_TEXT_MAX, "%s", field);
        strcpy(text, raw);
        break;
    default:
        text[0] = '\0';
    }
    if (setting->absent)
        strcpy(text, setting->absent);
}

/* Characters of a text in UTF-8. */
static int width_of(const char *text, size_t length)
{
    int width = 0;

    for (size_t i = 0; i < length; i++)
        width += ((unsigned char)text[i] & 0xc0) != 0x80;
    return width;
}

/* Words in lines of at most LINE characters, from COLUMN on, where the first line is already. */
static void print_words(FILE *stream, const char *text)
{
    enum { COLUMN = 34, LINE = 100 };
    int at = COLUMN;

    while (*text) {
        size_t length = strcspn(text, " ");
        int width = width_of(text, length);

        if (at > COLUMN && at + 1 + width > LINE) {
            fprintf(stream, "\n%*s", COLUMN, "");
            at = COLUMN;
        }
        at += fprintf(stream, "%s%.*s", at > COLUMN ? " " : "", (int)length, text);
        text += length + strspn(text + length, " ");
    }
    fprintf(stream, "\n");
}

/* The short help has the noun phrase only, up to the first semicolon. */
static void print_setting(FILE *stream, const struct setting *setting,
                          const struct config *defaults, bool is_all)
{
    char flag[64], raw[CONFIG_TEXT_MAX], fallback[CONFIG_TEXT_MAX], text[3 * CONFIG_TEXT_MAX];
    const char *value = setting_value(setting);
    bool has_default = setting->kind != SETTING_FLAG && setting->kind != SETTING_HELP;
    int length = (int)(is_all ? strlen(setting->help) : strcspn(setting->help, ";"));

    default_of(setting, defaults, raw, fallback);
    if (setting->kind == SETTING_HELP)
        snprintf(flag, sizeof flag, "--%s[=%s]", setting->name, value);
    else
        snprintf(flag, sizeof flag, "--%s%s%s", setting->name, value ? " " : "",
                 value ? value : "");
    if (has_default)
        snprintf(text, sizeof text, "%.*s (default %s)", length, setting->help, fallback);
    else
        snprintf(text, sizeof text, "%.*s", length, setting->help);
    fprintf(stream, "  %-31s ", flag);
    print_words(stream, text);
}

/* Is there anything of this group in the help? */
static bool has_shown(const struct setting *group, bool is_all)
{
    for (const struct setting *at = group + 1; at < settings + setting_count && at->name; at++)
        if (is_all || at->is_short)
            return true;
    return false;
}

static void print_help(FILE *stream, const struct config *defaults, bool is_all)
{
    fprintf(stream,
            "usage: kotad [OPTION]… [FILE[?OPTIONS]]…\n\n"
            "Serves terrain over HTTP. Each FILE (.png .f32 .hgt .asc .tif .obj .glb .gltf .ply "
            ".stl .ac .dae)\n"
            "is a locale with the layer `ground`. OPTIONS are the query parameters of an upload:\n"
            "  kotad volcano.asc 'relief.png?spacing=10,10&height_scale=0.1'\n");
    for (const struct setting *at = settings; at < settings + setting_count; at++) {
        if (!at->name && has_shown(at, is_all))
            fprintf(stream, "\n%s\n", at->help);
        else if (at->name && (is_all || at->is_short))
            print_setting(stream, at, defaults, is_all);
    }
    fprintf(stream,
            "\nA setting can also be in the environment (KOTA_LOG_LEVEL=warn) or in the config "
            "file (log-level =\nwarn). Flags win over the environment, the environment over "
            "the file.\n");
    if (!is_all)
        fprintf(stream, "All settings: kotad --help=all\n");
}

static void print_table(FILE *stream, const struct config *defaults)
{
    const char *group = "";

    for (const struct setting *at = settings; at < settings + setting_count; at++) {
        char raw[CONFIG_TEXT_MAX], text[CONFIG_TEXT_MAX];
        const char *value = setting_value(at), *example;

        if (!at->name) {
            group = at->help;
            continue;
        }
        default_of(at, defaults, raw, text);
        example = at->example ? at->example : raw;
        fprintf(stream, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", group, at->name, value ? value : "", text,
                at->is_command ? "" : example, at->is_live ? "reload" : "", at->help);
    }
}

char *settings_help(const struct config *defaults, const char *how)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    if (!stream)
        return NULL;
    if (strcmp(how, "table") == 0)
        print_table(stream, defaults);
    else
        print_help(stream, defaults, strcmp(how, "all") == 0);
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
