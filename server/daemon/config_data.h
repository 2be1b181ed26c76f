/*
 * The values of all settings; server/daemon/settings.c is the table of their names.
 */
#ifndef KOTA_DAEMON_CONFIG_DATA_H
#define KOTA_DAEMON_CONFIG_DATA_H

#include "api/api.h"
#include "base/log.h"
#include "replica/cluster.h"

enum {
    CONFIG_TEXT_MAX = 1024,
    CONFIG_HOST_MAX = 64,
    CONFIG_UNIX_MAX = 108 /* sun_path of unix(7) */
};

struct config {
    char host[CONFIG_HOST_MAX]; /* numeric; "": no TCP */
    uint16_t port;
    char unix_path[CONFIG_UNIX_MAX]; /* "": no Unix socket */
    char socket_mode[8];             /* octal */
    unsigned unix_mode;              /* the same, read */
    bool adds_listen; /* while settings are read: `listen` was there before in the same place */
    char ops_host[CONFIG_HOST_MAX]; /* of the listener for probes; "": none */
    uint16_t ops_port;
    uint64_t loops; /* 0: one a core */
    char data[CONFIG_TEXT_MAX], world[CONFIG_TEXT_MAX], token_file[CONFIG_TEXT_MAX];
    char audit[CONFIG_TEXT_MAX]; /* "": none */
    bool is_audit_sync;
    char cors_origin[CONFIG_TEXT_MAX], public_url[CLUSTER_URL_MAX + 1], user[CONFIG_HOST_MAX];
    char trusted_proxies[CONFIG_TEXT_MAX];
    struct http_networks proxies; /* the same, read */
    char ops_port_file[CONFIG_TEXT_MAX];
    char port_file[CONFIG_TEXT_MAX], config_file[CONFIG_TEXT_MAX]; /* "": none */
    bool is_read_only, has_no_sandbox, has_access_log, is_check, is_healthcheck;
    bool is_version;
    char help[8];  /* "": no --help; else "true", "all" or "table" */
    char simd[16]; /* a name of a simd_level; "": the best */
    enum log_format log_format;
    enum log_level log_level;
    uint64_t slow_ms, drain_ms;
    bool saves_patches;     /* at the end; else they are discarded */
    uint64_t wal_bytes_max; /* of the store */
    struct cluster_flags {
        char conninfo[CONFIG_TEXT_MAX]; /* or @FILE; "": none; may hold a password */
        char node[CLUSTER_ID_MAX + 1], url[CLUSTER_URL_MAX + 1], locales[CLUSTER_URL_MAX + 1];
        uint64_t max_staleness_s, snapshot_every, keep_entries, lease_ms;
    } cluster;
    struct patch_options { /* become limits.sand */
        char gpu[DEVICE_WORD_MAX], material[16], at_end[16];
        uint64_t slots[SCALE_COUNT], granules, bodies, threads;
        uint64_t active, speed_percent, pause_ms, linger_ms, active_max_ms, keep_ms, idle_ms;
        bool is_warm;
    } patch;
    struct api_limits limits;
    char *const *files; /* the words after the flags: FILE or FILE?options */
    size_t file_count;
};

#endif
