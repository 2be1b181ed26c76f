/*
 * PostgreSQL as a child; see postgres.h.
 *
 * The data lies in memory where it can, and without fsync: what a disk loses in a power cut is
 * PostgreSQL's to prove, and a crash of processes loses nothing either way.
 */
#include "support/postgres.h"

#include "base/check.h"
#include "support/pause.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VERSION_MIN = 15, START_MS_MAX = 120000, ARGUMENTS_MAX = 64, MEMORY_BYTES_MIN = 1 << 30 };

#define PLACE "/usr/lib/postgresql"

/* ---- what is installed ----------------------------------------------------------------------- */

static bool find_programs(char bin[256])
{
    const char *given = getenv("KOTA_PG_BIN");
    DIR *place = given ? NULL : opendir(PLACE);
    const struct dirent *entry;
    int newest = 0;
    char path[300];

    if (given) {
        snprintf(bin, 256, "%s", given);
    } else if (place) {
        while ((entry = readdir(place)) != NULL)
            if (atoi(entry->d_name) > newest)
                newest = atoi(entry->d_name);
        closedir(place);
        snprintf(bin, 256, PLACE "/%d/bin", newest);
    }
    snprintf(path, sizeof path, "%s/initdb", bin);
    return (given || newest >= VERSION_MIN) && access(path, X_OK) == 0;
}

bool postgres_is_there(const char **why)
{
    char bin[256] = "";
    bool has_user = getuid() != 0 || getpwnam("postgres") || getpwnam("nobody");

    *why = has_user ? "PostgreSQL 15 or newer is not installed (deploy/install-deps.sh test)"
                    : "PostgreSQL refuses root, and there is no user nobody";
    return has_user && find_programs(bin);
}

/* ---- children -------------------------------------------------------------------------------- */

static void become_unprivileged(void)
{
    const struct passwd *user = getpwnam("postgres");

    if (getuid() != 0)
        return;
    user = user ? user : getpwnam("nobody");
    if (!user || setgroups(0, NULL) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)
        _exit(126);
}

/* program: beside initdb, or a path; input: what it reads, or -1. */
static pid_t spawn(const struct postgres *postgres, const char *program, int input,
                   char *arguments[])
{
    pid_t parent = getpid(), pid = fork();
    static char path[300];
    char bin[256] = "";
    int fd;

    CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    become_unprivileged();
    prctl(PR_SET_PDEATHSIG, SIGQUIT); /* after setuid, which clears it */
    if (getppid() != parent)
        _exit(125);
    setsid();
    fd = open(postgres->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    if (input >= 0)
        dup2(input, 0);
    if (chdir("/") != 0 || !find_programs(bin))
        _exit(124);
    if (program[0] == '/')
        snprintf(path, sizeof path, "%s", program);
    else
        snprintf(path, sizeof path, "%s/%s", bin, program);
    unsetenv("LD_PRELOAD");
    arguments[0] = path; /* they look for one another beside their own */
    execv(path, arguments);
    _exit(127);
}

static void show_log(const struct postgres *postgres)
{
    FILE *file = fopen(postgres->log, "r");
    char line[400];

    while (file && fgets(line, sizeof line, file))
        fprintf(stderr, "# %s", line);
    if (file)
        fclose(file);
}

static void run_initdb(const struct postgres *postgres)
{
    char data[80], bin[256] = "";
    char *arguments[] = {"sh", "-s", bin, data, NULL};
    const int script = open("tests/support/initdb.sh", O_RDONLY | O_CLOEXEC);
    int status;

    CHECK(script >= 0 && find_programs(bin));
    snprintf(data, sizeof data, "%s/data", postgres->folder);
    CHECK(waitpid(spawn(postgres, "/bin/sh", script, arguments), &status, 0) > 0);
    close(script);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        show_log(postgres);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static uint16_t free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    close(fd);
    return ntohs(address.sin_port);
}

/* ---- servers --------------------------------------------------------------------------------- */

/* False: it ended by itself, since the port was taken or another's memory was not yet free. */
static bool run_once(struct postgres *postgres)
{
    char data[80], port[8], words[sizeof postgres->settings];
    char *arguments[ARGUMENTS_MAX] = {"postgres",
                                      "-D",
                                      data,
                                      "-p",
                                      port,
                                      "-k",
                                      postgres->folder,
                                      "-c",
                                      "listen_addresses=127.0.0.1",
                                      "-c",
                                      "fsync=off",
                                      "-c",
                                      "shared_buffers=32MB",
                                      "-c",
                                      "max_connections=60",
                                      "-c",
                                      "dynamic_shared_memory_type=mmap",
                                      "-c",
                                      "log_line_prefix=%m [%p] %q%a ",
                                      "-c",
                                      "autovacuum_naptime=10s"};
    int count = 0;

    while (arguments[count])
        count++;
    snprintf(words, sizeof words, "%s", postgres->settings);
    for (char *word = strtok(words, " "); word && count < ARGUMENTS_MAX - 1;
         word = strtok(NULL, " "))
        arguments[count++] = word;
    snprintf(data, sizeof data, "%s/data", postgres->folder);
    snprintf(port, sizeof port, "%u", postgres->port);
    snprintf(postgres->conninfo, sizeof postgres->conninfo,
             "host=127.0.0.1 port=%u user=kota dbname=postgres", postgres->port);
    postgres->pid = spawn(postgres, "postgres", -1, arguments);
    for (int ms = 0; PQping(postgres->conninfo) != PQPING_OK; ms += 20) {
        CHECK(ms < START_MS_MAX);
        if (waitpid(postgres->pid, NULL, WNOHANG) != 0)
            return false;
        pause_ms(20);
    }
    return true;
}

void postgres_run(struct postgres *postgres)
{
    for (int tries = 0; !run_once(postgres); tries++) {
        if (tries == 20)
            show_log(postgres);
        CHECK(tries < 20);
        pause_ms(100);
    }
}

static bool has_memory(void)
{
    struct statvfs memory;

    return access("/dev/shm", W_OK) == 0 && statvfs("/dev/shm", &memory) == 0 &&
           (double)memory.f_bavail * (double)memory.f_frsize > MEMORY_BYTES_MIN;
}

void postgres_start(struct postgres *postgres)
{
    const char *why, *place = has_memory() ? "/dev/shm" : "/tmp";
    const struct passwd *user = getpwnam("postgres");

    CHECK(postgres_is_there(&why));
    snprintf(postgres->folder, sizeof postgres->folder, "%s/kota-test-XXXXXX", place);
    CHECK(mkdtemp(postgres->folder));
    user = user ? user : getpwnam("nobody");
    if (getuid() == 0)
        CHECK(chown(postgres->folder, user->pw_uid, user->pw_gid) == 0);
    snprintf(postgres->log, sizeof postgres->log, "%s/log", postgres->folder);
    run_initdb(postgres);
    postgres->port = free_port();
    postgres_run(postgres);
}

static void end(struct postgres *postgres, int number)
{
    CHECK(postgres->pid > 0 && kill(postgres->pid, number) == 0);
    CHECK(waitpid(postgres->pid, NULL, 0) == postgres->pid);
    postgres->pid = 0;
}

void postgres_crash(struct postgres *postgres)
{
    end(postgres, SIGQUIT);
}

void postgres_halt(struct postgres *postgres)
{
    end(postgres, SIGINT);
}

static void ignore_notice(void *context, const char *notice)
{
    (void)context, (void)notice;
}

void postgres_sql(const struct postgres *postgres, const char *sql, char *value, size_t room)
{
    PGconn *conn = PQconnectdb(postgres->conninfo);
    PGresult *result;
    ExecStatusType status;

    PQsetNoticeProcessor(conn, ignore_notice, NULL);
    result = PQexec(conn, sql);
    status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        fprintf(stderr, "# %s: %s%s\n", sql, PQerrorMessage(conn), PQresultErrorMessage(result));
    CHECK(status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK);
    if (value)
        snprintf(value, room, "%s",
                 PQntuples(result) > 0 && PQnfields(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    PQfinish(conn);
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *where)
{
    (void)stat, (void)type, (void)where;
    return remove(path);
}

void postgres_remove(struct postgres *postgres)
{
    if (postgres->pid > 0)
        postgres_crash(postgres);
    if (postgres->folder[0])
        nftw(postgres->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    postgres->folder[0] = '\0';
}
