/*
 * The daemon's configuration: flags over environment (KOTA_*) over a config file over defaults.
 */
#ifndef KOTA_DAEMON_CONFIG_H
#define KOTA_DAEMON_CONFIG_H

#include "daemon/config_data.h"

/*
 * Reads flags, environment and config file. is_terminal: standard error is one, so that logs are
 * text by default. The arguments are borrowed; flags may be before and after files.
 *
 * ERR_BAD_INPUT  an unknown flag or key, a value out of range: one line that names it
 */
enum err_code config_read(struct config *config, int argc, char *const *argv,
                          char *const *environment, bool is_terminal, struct err *err);

/* Does it listen on this machine's loopback, or on a Unix socket, only? */
bool config_is_loopback(const struct config *config);

/*
 * Each option whose value differs between the two, in the order of --help. is_live: it can change
 * while the daemon runs. Returns how many of those there are.
 */
size_t config_differences(const struct config *now, const struct config *fresh,
                          void (*report)(void *context, const char *name, bool is_live),
                          void *context);

/* The options that can change while the daemon runs take the values of `fresh`; the others stay. */
void config_adopt(struct config *now, const struct config *fresh);

/* The text of --help, by settings_help. */
char *config_help(const char *how);

#endif
