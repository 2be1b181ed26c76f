/*
 * Configuration from three places with one table.
 *
 * Problem: flags, environment and config file must have the same options under the same names.
 * Approach: one table of settings (settings.h); `--log-level`,
 * `KOTA_LOG_LEVEL` and `log-level = …` are the same entry. The places are applied from the weakest
 * to the strongest: config file, environment, flags; so --config is read first. Every value passes
 * the same parser, whose error names the place.
 */
#include "daemon/config.h"

#include "daemon/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define GIB ((uint64_t)1 << 30)

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
        .linger_ms = to_ms(limits->linger_s),
        .active_max_ms = to_ms(limits->active_max_s),
        .keep_ms = to_ms(limits->keep_s),
        .idle_ms = to_ms(sand->idle_s),
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
    strcpy(config->socket_mode, "0660");
    strcpy(config->cors_origin, "*");
    strcpy(config->trusted_proxies, "127.0.0.0/8,::1");
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
    if (uv_ip4_addr(host, 0, &(struct sockaddr_in){0}) != 0 &&
        uv_ip6_addr(host, 0, &(struct sockaddr_in6){0}) != 0)
        return err_set(err, ERR_BAD_INPUT, "%s: \"%s\" is neither a numeric address nor localhost",
                       place, host);
    *out_port = (uint16_t)port;
    return ERR_OK;
}

static enum err_code set_unix(char path[static CONFIG_UNIX_MAX], const char *value,
                              const char *place, struct err *err)
{
    if (value[0] == '\0' || strlen(value) >= CONFIG_UNIX_MAX)
        return err_set(err, ERR_BAD_INPUT, "%s: the path of unix:PATH has 1 to %d bytes", place,
                       CONFIG_UNIX_MAX - 1);
    strcpy(path, value);
    return ERR_OK;
}

/* Addresses with commas between. The first of a place replaces those of the weaker places. */
static enum err_code set_addresses(struct config *config, const char *value, const char *place,
                                   struct err *err)
{
    char one[CONFIG_TEXT_MAX];

    if (!config->adds_listen)
        config->host[0] = config->unix_path[0] = '\0';
    config->adds_listen = true;
    for (size_t length;; value += length + 1) {
        length = strcspn(value, ",");
        snprintf(one, sizeof one, "%.*s", (int)length, value);
        if (strncmp(one, "unix:", 5) == 0
                ? set_unix(config->unix_path, one + 5, place, err)
                : set_listen(config->host, &config->port, one, place, err))
            return err->code;
        if (value[length] == '\0')
            return ERR_OK;
    }
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

static enum err_code set_count(const struct setting *option, void *field, const char *value,
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

static enum err_code option_set(struct config *config, const struct setting *option,
                                const char *value, const char *place, struct err *err)
{
    static const char *const formats[] = {"text", "json", NULL};
    static const char *const levels[] = {"debug", "info", "warn", "error", NULL};
    static const char *const booleans[] = {"false", "true", NULL};
    static const char *const helps[] = {"true", "all", "table", NULL};
    void *field = (char *)config + option->offset;
    int word = 0;

    switch (option->kind) {
    case SETTING_TEXT:
        if (strlen(value) >= option->size)
            return err_set(err, ERR_BAD_INPUT, "%s: longer than %zu characters", place,
                           option->size - 1);
        strcpy(field, value);
        return ERR_OK;
    case SETTING_HELP:
        if (set_word(helps, value, place, &word, err))
            return err->code;
        strcpy(field, value);
        return ERR_OK;
    case SETTING_FLAG:
        if (set_word(booleans, value, place, &word, err))
            return err->code;
        *(bool *)field = word != 0;
        return ERR_OK;
    case SETTING_COUNT:
        return set_count(option, field, value, place, err);
    case SETTING_LISTEN:
        return option->offset == offsetof(struct config, host)
                   ? set_addresses(config, value, place, err)
                   : set_listen(field, &config->ops_port, value, place, err);
    case SETTING_LOG_FORMAT:
        if (set_word(formats, value, place, &word, err))
            return err->code;
        config->log_format = word == 0 ? LOG_TEXT : LOG_JSON;
        return ERR_OK;
    case SETTING_LOG_LEVEL:
        if (set_word(levels, value, place, &word, err))
            return err->code;
        config->log_level = (enum log_level)word;
        return ERR_OK;
    case SETTING_GROUP:
        break;
    }
    return ERR_OK;
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
    config->adds_listen = false;
    for (int number = 1; err->code == ERR_OK && fgets(line, sizeof line, stream); number++) {
        char place[CONFIG_TEXT_MAX + 32];
        char *name, *equals;
        const struct setting *option;

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
        option = setting_find(name, strlen(name));
        if (!option)
            err_set(err, ERR_BAD_INPUT, "%s: there is no option \"%.64s\"", place, name);
        else
            option_set(config, option, trim(equals + 1), place, err);
    }
    fclose(stream);
    return err->code;
}

/* KOTA_LOG_LEVEL for log-level. */
static void environment_name(const struct setting *option, char out[static 64])
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
    config->adds_listen = false;
    for (size_t i = 0; i < setting_count; i++) {
        char name[64];
        const char *value;

        if (!settings[i].name)
            continue;
        environment_name(&settings[i], name);
        value = environment_value(environment, name);
        if (value && value[0] != '\0' && option_set(config, &settings[i], value, name, err))
            return err->code;
    }
    return ERR_OK;
}

/*
 * Reads one argument; *used is the number of words taken, 0 when it is no flag. With a NULL config
 * the value is only found: it goes to *value.
 */
static enum err_code read_flag(char *const *argv, int left, const struct setting **option,
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
    *option = strncmp(text, "--", 2) == 0 ? setting_find(text + 2, length - 2) : NULL;
    if (!*option)
        return err_set(err, ERR_BAD_INPUT, "there is no option %.*s; see --help", (int)length,
                       text);
    *used = 1;
    *value = equals ? equals + 1 : "true";
    if (equals || (*option)->kind == SETTING_FLAG || (*option)->kind == SETTING_HELP)
        return ERR_OK;
    if (left < 2)
        return err_set(err, ERR_BAD_INPUT, "%.*s needs a value: %s", (int)length, text,
                       setting_value(*option));
    *value = argv[1];
    *used = 2;
    return ERR_OK;
}

/* Goes through the flags; with only_config nothing but --config is applied, and files are left. */
static enum err_code read_flags(struct config *config, int argc, char *const *argv,
                                bool only_config, char **files, struct err *err)
{
    bool is_over = false;

    config->adds_listen = false;
    for (int i = 1, used = 0; i<argc; i += used> 0 ? used : 1) {
        const struct setting *option = NULL;
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

static enum err_code mode_apply(struct config *config, struct err *err)
{
    const char *mode = config->socket_mode;

    config->unix_mode = (unsigned)strtoul(mode, NULL, 8);
    if (mode[0] == '\0' || mode[strspn(mode, "01234567")] != '\0' || config->unix_mode > 0777)
        return err_set(err, ERR_BAD_INPUT, "--socket-mode: \"%s\" is not an octal mode up to 0777",
                       mode);
    return ERR_OK;
}

static enum err_code proxies_apply(struct config *config, struct err *err)
{
    struct err why;

    if (http_networks_read(config->trusted_proxies, &config->proxies, &why))
        return err_set(err, why.code, "--trusted-proxies: %s", why.msg);
    return ERR_OK;
}

/* The options of patches, as the sand thread takes them. */
static enum err_code patch_apply(struct config *config, struct err *err)
{
    const struct patch_options *patch = &config->patch;
    struct sand_config *sand = &config->limits.sand;

    if (!device_word_ok(patch->gpu))
        return err_set(err, ERR_BAD_INPUT,
                       "--gpu: \"%s\" is not auto, cpu, software, off or the number of a GPU, 0 to "
                       "63",
                       patch->gpu);
    if (!material_from_name(patch->material, &sand->device.material))
        return err_set(err, ERR_BAD_INPUT,
                       "--patch-material: \"%s\" is not sand, pebbles, rubble or snow",
                       patch->material);
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
    sand->limits.linger_s = (double)patch->linger_ms / 1000;
    sand->limits.active_max_s = (double)patch->active_max_ms / 1000;
    sand->limits.keep_s = (double)patch->keep_ms / 1000;
    sand->is_warm = patch->is_warm;
    sand->idle_s = (double)patch->idle_ms / 1000;
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
    if (mode_apply(config, err) || proxies_apply(config, err))
        return err->code;
    return patch_apply(config, err);
}

/* ---- a reload -------------------------------------------------------------------------------- */

static bool is_same(const struct setting *option, const struct config *a, const struct config *b)
{
    const char *x = (const char *)a + option->offset, *y = (const char *)b + option->offset;
    bool is_main = option->offset == offsetof(struct config, host);

    switch (option->kind) {
    case SETTING_TEXT:
        return strcmp(x, y) == 0;
    case SETTING_LISTEN:
        return strcmp(x, y) == 0 && (!is_main || strcmp(a->unix_path, b->unix_path) == 0) &&
               (is_main ? a->port == b->port : a->ops_port == b->ops_port);
    default:
        return memcmp(x, y, option->size) == 0;
    }
}

size_t config_differences(const struct config *now, const struct config *fresh,
                          void (*report)(void *context, const char *name, bool is_live),
                          void *context)
{
    size_t count = 0;

    for (size_t i = 0; i < setting_count; i++) {
        bool is_live = settings[i].is_live;

        if (!settings[i].name || is_same(&settings[i], now, fresh))
            continue;
        report(context, settings[i].name, is_live);
        count += is_live;
    }
    return count;
}

void config_adopt(struct config *now, const struct config *fresh)
{
    for (size_t i = 0; i < setting_count; i++)
        if (settings[i].is_live)
            memcpy((char *)now + settings[i].offset, (const char *)fresh + settings[i].offset,
                   settings[i].size);
    now->saves_patches = fresh->saves_patches;
}

bool config_is_loopback(const struct config *config)
{
    return config->host[0] == '\0' || strncmp(config->host, "127.", 4) == 0 ||
           strcmp(config->host, "::1") == 0;
}

char *config_help(const char *how)
{
    static struct config defaults;

    config_defaults(&defaults, true);
    return settings_help(&defaults, how);
}
