/*
 * The one table of settings: flags, environment and config file are read by it, --help, the manual
 * page, deploy/kotad.conf and docs/configuration.md are written from it.
 */
#ifndef KOTA_DAEMON_SETTINGS_H
#define KOTA_DAEMON_SETTINGS_H

#include "daemon/config_data.h"

enum setting_kind {
    SETTING_GROUP, /* a heading: only `help` is set */
    SETTING_TEXT,
    SETTING_FLAG,
    SETTING_HELP, /* a text that may be left out */
    SETTING_COUNT,
    SETTING_LISTEN,
    SETTING_LOG_FORMAT,
    SETTING_LOG_LEVEL
};

enum setting_unit { UNIT_NONE, UNIT_BYTES, UNIT_MS, UNIT_S, UNIT_PERCENT };

struct setting {
    const char *name;
    enum setting_kind kind;
    size_t offset;        /* of the field in struct config */
    size_t size;          /* of the field */
    uint64_t least, most; /* SETTING_COUNT */
    enum setting_unit unit;
    const char *value;   /* the word for its value; NULL: by the unit */
    const char *help;    /* a noun phrase, without the default */
    const char *absent;  /* the default in words: without a value, or of the value 0 */
    const char *example; /* for the config file, where the default has no value */
    bool is_short;       /* in the short --help */
    bool is_live;        /* a reload changes it */
    bool is_command;     /* makes sense on the command line only */
};

extern const struct setting settings[];
extern const size_t setting_count;

/* The setting of this name; NULL if there is none. The name ends after `length` bytes. */
const struct setting *setting_find(const char *name, size_t length);

/* The word for its value: "HOST:PORT", "BYTES"; NULL of a flag. */
const char *setting_value(const struct setting *setting);

/*
 * The text of --help, to be printed by the caller; from malloc, NULL without memory. defaults: a
 * configuration in which nothing is set. how: "true" the short one, "all", or "table": a line a
 * setting, cut by tabs: group, name, value, default, example, reload, text.
 */
char *settings_help(const struct config *defaults, const char *how);

#endif
