/*
 * Less rights for the rest of the process's life.
 *
 * Problem: an exploit of a daemon that reads hostile bytes has the rights of the daemon. Approach:
 * root is given up first, before a file is made, so that the data directory belongs to the final
 * user; binding a port below 1024 is the one capability that may stay. Then Landlock (Linux 5.13),
 * which needs no privilege: every way to open, make or remove a file is refused but below the paths
 * that are named. A named file is allowed by its directory, since a token file is replaced by
 * renaming another over it, and the kernel's rule would belong to the old one. The graphics
 * libraries load their drivers later, hence /usr, /etc, /sys and /dev. Only written paths keep the
 * right to write. Invariant: when a rule cannot be made the process stays unconfined, with a
 * warning, rather than confined by half of them. Source: landlock(7), capabilities(7),
 * linux/landlock.h. Tried and dropped: seccomp (the drivers of graphics cards use many calls, and a
 * list that is too short ends the daemon later); dropping root after binding (files of the store
 * would belong to root).
 */
#include "daemon/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_BYTES_MAX = 1100 };

#define READING                                                                                    \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define TRUNCATING ((uint64_t)1 << 14) /* Landlock 3 */
#define MAKING                                                                                     \
    (LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |                              \
     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG)
#define SOCKETS (LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_SOCK)
#define NEVER                                                                                      \
    (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
     LANDLOCK_ACCESS_FS_MAKE_SYM)

/* ---- the user -------------------------------------------------------------------------------- */

static bool capabilities_set(uint32_t bits)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{.effective = bits, .permitted = bits}};

    return syscall(SYS_capset, &head, data) == 0;
}

enum err_code confine_user(const char *name, bool keeps_ports, struct err *err)
{
    const struct passwd *user;

    if (geteuid() != 0)
        return err_set(err, ERR_BAD_INPUT, "--user %s: only root can become another user", name);
    user = getpwnam(name);
    if (!user || user->pw_uid == 0)
        return err_set(err, ERR_BAD_INPUT, "--user %s: %s", name,
                       user ? "this is root again" : "there is no such user");
    if ((keeps_ports && prctl(PR_SET_KEEPCAPS, 1) != 0) || initgroups(name, user->pw_gid) != 0 ||
        setresgid(user->pw_gid, user->pw_gid, user->pw_gid) != 0 ||
        setresuid(user->pw_uid, user->pw_uid, user->pw_uid) != 0 ||
        !capabilities_set(keeps_ports ? 1u << CAP_NET_BIND_SERVICE : 0) || setuid(0) == 0)
        return err_set(err, ERR_INTERNAL, "--user %s: root could not be given up: %s", name,
                       strerror(errno));
    return ERR_OK;
}

enum err_code confine_give(const char *directory, const char *name, struct err *err)
{
    const struct passwd *user = getpwnam(name);

    if (!user)
        return err_set(err, ERR_BAD_INPUT, "--user %s: there is no such user", name);
    if (chown(directory, user->pw_uid, user->pw_gid) != 0)
        return err_set(err, ERR_INTERNAL, "%s cannot be given to %s: %s", directory, name,
                       strerror(errno));
    return ERR_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool rule_add(int rules, const char *path, uint64_t access)
{
    struct landlock_path_beneath_attr beneath = {.allowed_access = access};
    bool is_added;

    beneath.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (beneath.parent_fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES;
    is_added = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) == 0;
    close(beneath.parent_fd);
    return is_added;
}

/* A directory itself; a file, or a path that does not exist yet, by its directory. */
static bool path_add(int rules, const struct confine_path *path, uint64_t all)
{
    uint64_t access = READING | (path->access == CONFINE_WRITE
                                     ? MAKING | LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATING
                                 : path->access == CONFINE_SOCKET ? SOCKETS
                                                                  : 0);
    char directory[PATH_BYTES_MAX];
    struct stat status;
    char *slash;

    if (path->path[0] == '\0')
        return true;
    snprintf(directory, sizeof directory, "%s", path->path);
    if (stat(directory, &status) != 0 || !S_ISDIR(status.st_mode)) {
        slash = strrchr(directory, '/');
        if (!slash)
            strcpy(directory, ".");
        else
            slash[slash == directory] = '\0';
    }
    return rule_add(rules, directory, access & all);
}

static bool rules_add(int rules, const struct confine_path *paths, size_t count, uint64_t all)
{
    static const char *const systems[] = {"/usr",  "/lib", "/lib64", "/etc",
                                          "/proc", "/sys", "/opt"};

    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
        if (!rule_add(rules, systems[i], READING))
            return false;
    if (!rule_add(rules, "/dev", READING | LANDLOCK_ACCESS_FS_WRITE_FILE))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!path_add(rules, &paths[i], all))
            return false;
    return true;
}

int confine_files(const struct confine_path *paths, size_t count, struct err *err)
{
    int version =
        (int)syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);
    uint64_t all = READING | MAKING | SOCKETS | NEVER | LANDLOCK_ACCESS_FS_WRITE_FILE;
    struct landlock_ruleset_attr attributes = {0};
    int rules;

    if (version < 1) {
        err_set(err, ERR_NOT_IMPLEMENTED, "this kernel has no Landlock: %s", strerror(errno));
        return 0;
    }
    if (version >= 3)
        all |= TRUNCATING;
    attributes.handled_access_fs = all;
    rules = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    if (rules < 0 || !rules_add(rules, paths, count, all) ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_landlock_restrict_self, rules, 0) != 0) {
        err_set(err, ERR_INTERNAL, "Landlock refused: %s", strerror(errno));
        version = 0;
    }
    if (rules >= 0)
        close(rules);
    return version;
}
