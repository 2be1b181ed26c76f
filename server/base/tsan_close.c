/*
 * Closes that ThreadSanitizer sees. Empty in every other build.
 *
 * Problem: libuv closes files by syscall(SYS_close), which the tool does not intercept. When
 * another thread opens a file soon after, and the kernel gives it the same number, the tool takes
 * it for the old file, without a hand-over, and reports a race: the end of a loop against the
 * thread for checkpoints. Approach: the program's own syscall() comes before libc's for all
 * libraries; it calls close(), which the tool intercepts, for a close, and the kernel for
 * everything else as before. So no report is suppressed. libuv does the same where it is itself
 * built for the tool.
 */
#if defined(__SANITIZE_THREAD__)
#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef long system_call(long number, ...);

long syscall(long number, ...)
{
    static _Atomic(system_call *) next;
    system_call *libc = atomic_load(&next);
    long given[6];
    va_list args;

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        given[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_close)
        return close((int)given[0]);
    if (!libc) {
        *(void **)&libc = dlsym(RTLD_NEXT, "syscall");
        atomic_store(&next, libc);
    }
    return libc(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
#endif
