/*
 * kotad as a child; see kotad_process.h.
 */
#include "support/kotad_process.h"

#include "base/check.h"
#include "support/pause.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_MS_MAX = 120000 };

static void run_it(const struct kotad_process *process)
{
    const char *build = getenv("KOTA_BIN_DIR");
    char program[512], listen[32], port_file[96], data[96], log[96];
    int fd;

    snprintf(program, sizeof(program), "%s/kotad", build ? build : "build/release");
    snprintf(listen, sizeof(listen), "127.0.0.1:%u", process->port);
    snprintf(port_file, sizeof(port_file), "%s/port", process->folder);
    snprintf(data, sizeof(data), "%s/data", process->folder);
    snprintf(log, sizeof(log), "%s/log", process->folder);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execl(program, program, "--listen", listen, "--port-file", port_file, "--data", data, "--gpu",
          "off", "--loops", "2", (char *)NULL);
    _exit(127);
}

void kotad_start(struct kotad_process *process)
{
    char port_file[96];
    unsigned port = 0;

    if (!process->folder[0]) {
        strcpy(process->folder, "/tmp/kota-test-XXXXXX");
        CHECK(mkdtemp(process->folder));
    }
    snprintf(port_file, sizeof(port_file), "%s/port", process->folder);
    unlink(port_file);
    process->pid = fork();
    CHECK(process->pid >= 0);
    if (process->pid == 0)
        run_it(process);
    for (int ms = 0; port == 0; ms += 10) {
        FILE *file = fopen(port_file, "r");

        CHECK(ms < START_MS_MAX);
        CHECK(waitpid(process->pid, NULL, WNOHANG) == 0);
        if (file) {
            if (fscanf(file, "%u", &port) != 1)
                port = 0;
            fclose(file);
        }
        pause_ms(10);
    }
    process->port = (uint16_t)port;
    snprintf(process->url, sizeof(process->url), "http://127.0.0.1:%u", port);
}

void kotad_stop(struct kotad_process *process)
{
    int status;

    CHECK(kill(process->pid, SIGTERM) == 0);
    CHECK(waitpid(process->pid, &status, 0) == process->pid);
    process->pid = 0;
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void kotad_kill(struct kotad_process *process)
{
    CHECK(kill(process->pid, SIGKILL) == 0);
    CHECK(waitpid(process->pid, NULL, 0) == process->pid);
    process->pid = 0;
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *where)
{
    (void)stat, (void)type, (void)where;
    return remove(path);
}

void kotad_remove(struct kotad_process *process)
{
    if (process->pid > 0)
        kotad_stop(process);
    if (process->folder[0])
        nftw(process->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    process->folder[0] = '\0';
}
