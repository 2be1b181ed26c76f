/*
 * A child process with its hands tied: see jail.h.
 *
 * fork() without exec is chosen because the work is one function on memory that is already here,
 * and no second program must be found or installed. Its price is the page tables of a big daemon
 * (about 10 ms a gibibyte) and the rules for a fork in a process of many threads: only the forking
 * thread lives on, and locks that others held stay locked. glibc takes its own (malloc, stdio,
 * the loader) across fork; libraries that run only in jails have no other holder.
 *
 * Memory is bounded by RLIMIT_DATA, which counts private writable pages, those of the parent's copy
 * included: so the bound is set above the child's initial size by /proc/self/statm. RLIMIT_AS would
 * count the shadow memory of sanitizers and mapped files, too.
 *
 * The wall clock is an alarm within the child, processor time a soft and a hard RLIMIT_CPU; both
 * end it by a signal that it neither blocks nor handles. Signals are blocked around fork, so that
 * no handler of the parent's (an event loop's self-pipe) ever runs in the child.
 *
 * Sources: fork(2), getrlimit(2), signal-safety(7), proc(5); tried and dropped: seccomp's strict
 * mode, which also forbids the allocator to ask for memory.
 */
#include "base/jail.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JAIL_EXIT_UNTIED = 99 }; /* the child could not bind itself */

/* Private writable bytes of this process; 0 when they cannot be had. */
static uint64_t memory_now(void)
{
    char text[256];
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    unsigned long long pages = 0;
    ssize_t length;

    if (file < 0)
        return 0;
    length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    if (sscanf(text, "%*s %*s %*s %*s %*s %llu", &pages) != 1)
        return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool limit_set(__rlimit_resource_t which, uint64_t soft, uint64_t hard)
{
    struct rlimit limit = {.rlim_cur = soft, .rlim_max = hard}, now;

    if (getrlimit(which, &now) != 0)
        return false;
    if (limit.rlim_max > now.rlim_max)
        limit.rlim_max = now.rlim_max;
    if (limit.rlim_cur > limit.rlim_max)
        limit.rlim_cur = limit.rlim_max;
    return setrlimit(which, &limit) == 0;
}

static void signals_default(void)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int number = 1; number < NSIG; number++)
        sigaction(number, &plain, NULL); /* refused for SIGKILL and SIGSTOP */
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

/* Leaves this process the pipe, as the returned descriptor, and standard error. */
static int descriptors_close(int pipe)
{
    if (pipe == STDIN_FILENO)
        return -1;
    if (dup2(pipe, STDOUT_FILENO) < 0)
        return -1;
    close(STDIN_FILENO);
    if (close_range(STDERR_FILENO + 1, ~0U, 0) != 0)
        return -1;
    return STDOUT_FILENO;
}

static bool child_bind(const struct jail_limits *limits)
{
    uint64_t memory = memory_now();

    signals_default();
    alarm(limits->wall_s);
    return memory > 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && limit_set(RLIMIT_CORE, 0, 0) &&
           limit_set(RLIMIT_NOFILE, 0, 0) && limit_set(RLIMIT_FSIZE, 0, 0) &&
           limit_set(RLIMIT_CPU, limits->cpu_s, limits->cpu_s + 1) &&
           limit_set(RLIMIT_DATA, memory + limits->memory_bytes, memory + limits->memory_bytes);
}

_Noreturn static void child_main(const struct jail_limits *limits,
                                 void (*body)(void *context, int pipe), void *context, int pipe)
{
    int out = descriptors_close(pipe);

    if (out < 0 || !child_bind(limits))
        _exit(JAIL_EXIT_UNTIED);
    body(context, out);
    _exit(0);
}

enum err_code jail_start(struct jail *jail, const struct jail_limits *limits,
                         void (*body)(void *context, int pipe), void *context, struct err *err)
{
    sigset_t all, before;
    int ends[2];
    int reason;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return err_set(err, ERR_INTERNAL, "no pipe to a child process: %s", strerror(errno));
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    jail->pid = fork();
    reason = errno;
    if (jail->pid == 0)
        child_main(limits, body, context, ends[1]);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    jail->pipe = ends[0];
    if (jail->pid > 0)
        return ERR_OK;
    close(ends[0]);
    return err_set(err, reason == ENOMEM ? ERR_NO_MEMORY : ERR_INTERNAL, "no child process: %s",
                   strerror(reason));
}

bool jail_read(struct jail *jail, void *block, size_t bytes)
{
    char *at = block;

    while (bytes > 0) {
        ssize_t got = read(jail->pipe, at, bytes);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

void jail_write(int pipe, const void *block, size_t bytes)
{
    const char *at = block;

    while (bytes > 0) {
        ssize_t put = write(pipe, at, bytes);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            _exit(1);
        at += put;
        bytes -= (size_t)put;
    }
}

enum jail_end jail_end(struct jail *jail)
{
    int status = 0;
    pid_t got;

    close(jail->pipe);
    do {
        got = waitpid(jail->pid, &status, 0);
    } while (got < 0 && errno == EINTR);
    if (got != jail->pid)
        return JAIL_CRASHED;
    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);

        return number == SIGALRM || number == SIGXCPU ? JAIL_TIMED_OUT : JAIL_CRASHED;
    }
    if (WEXITSTATUS(status) == JAIL_EXIT_UNTIED)
        return JAIL_UNTIED;
    return WEXITSTATUS(status) == 0 ? JAIL_DONE : JAIL_CRASHED;
}
