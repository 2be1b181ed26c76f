/*
 * Faults on order: a library for LD_PRELOAD that makes the n-th call of a kind fail.
 *
 * Problem: what a daemon does without memory, or when a call to the kernel is cut short, must be
 * tried at every place where it can happen, in the program that people run, with its libraries.
 * Approach: the functions that ask for memory and those that ask the kernel stand here before
 * libc's. A page shared with the test (KOTA_FAULTS names the file) says which kind counts, and
 * which of its calls fail, how. So one daemon is tried at many places one after the other: the test
 * writes the order, asks its question, and takes the order back.
 *
 * Invariants: nothing here allocates. Without an order every call is libc's own. Memory comes from
 * glibc's names for its allocator, so that no symbol has to be looked up by something that needs
 * memory itself. A call on a descriptor counts only where its fault can happen in truth: EAGAIN on
 * sockets, ENOSPC on files; an event counter is told EINTR alone, for libuv is right to end the
 * process when writing one fails.
 *
 * tests/faults/faults.py gives the orders.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* What faults.py calls by the same names. */
enum kind {
    KIND_MEMORY = 1,
    KIND_READ = 2,
    KIND_WRITE = 4,
    KIND_ACCEPT = 8,
    KIND_POLL = 16,
    KIND_OPEN = 32,
    KIND_SYNC = 64,
    KIND_FILE = 128, /* sizes and names of files */
    KIND_MAKE = 256, /* processes, threads, pipes */
    KIND_LIBRARY = 512,
};

enum where { ON_FILE = 1, ON_SOCKET = 2, ON_OTHER = 4 };

enum { SHORT = -1 };

struct order {
    _Atomic uint64_t kind;  /* 0: nothing counts */
    _Atomic uint64_t where; /* descriptors of which kind count */
    _Atomic int64_t fault;  /* an errno, SHORT, or below: so many milliseconds late, and no fault */
    _Atomic uint64_t first; /* of the calls that fail, from 1; 0: none */
    _Atomic uint64_t count; /* how many fail */
    _Atomic uint64_t calls; /* that were counted */
    _Atomic uint64_t failed;
};

static struct order no_order;
static struct order *order = &no_order;

__attribute__((constructor)) static void order_open(void)
{
    const char *path = getenv("KOTA_FAULTS");
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    long page;

    if (fd < 0)
        return;
    page = syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (page > 0)
        order = (struct order *)page; /* NOLINT: an address of the kernel */
}

static uint64_t where_is(int fd)
{
    struct stat status;

    if (syscall(SYS_fstat, fd, &status) != 0)
        return 0;
    return S_ISREG(status.st_mode) ? ON_FILE : S_ISSOCK(status.st_mode) ? ON_SOCKET : ON_OTHER;
}

static void wait_ms(int64_t ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0)
        ;
}

/* 0: go on; else the fault of this call. fd is -1 when there is none. */
static int fault_of(enum kind kind, int fd)
{
    uint64_t call, first;
    int64_t fault;
    int saved = errno;

    if (!(atomic_load_explicit(&order->kind, memory_order_relaxed) & kind))
        return 0;
    if (fd >= 0 && !(where_is(fd) & atomic_load(&order->where))) {
        errno = saved;
        return 0;
    }
    call = atomic_fetch_add(&order->calls, 1) + 1;
    first = atomic_load(&order->first);
    if (first == 0 || call < first || call - first >= atomic_load(&order->count))
        return 0;
    atomic_fetch_add(&order->failed, 1);
    fault = atomic_load(&order->fault);
    if (fault >= SHORT)
        return (int)fault;
    wait_ms(-fault);
    errno = saved;
    return 0;
}

static bool fails(enum kind kind, int fd)
{
    int fault = fault_of(kind, fd);

    if (fault > 0)
        errno = fault;
    return fault > 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    return fails(KIND_MEMORY, -1) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails(KIND_MEMORY, -1) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    return fails(KIND_MEMORY, -1) ? NULL : __libc_realloc(block, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return fails(KIND_MEMORY, -1) ? NULL : __libc_memalign(alignment, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    return fails(KIND_MEMORY, -1) ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *block = fails(KIND_MEMORY, -1) ? NULL : __libc_memalign(alignment, bytes);

    if (!block)
        return ENOMEM;
    *out = block;
    return 0;
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (fails(KIND_MEMORY, -1))
        return MAP_FAILED;
    /* NOLINTNEXTLINE: an address of the kernel */
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return mmap(address, bytes, protection, flags, fd, offset);
}

/* ---- reading and writing --------------------------------------------------------------------- */

/* Bytes that a call may ask for: all, or one when it is to be short; false: it has failed. */
static bool bytes_of(enum kind kind, int fd, size_t *bytes)
{
    int fault = fault_of(kind, fd);

    if (fault > 0) {
        errno = fault;
        return false;
    }
    if (fault == SHORT && *bytes > 1)
        *bytes = kind == KIND_READ ? 1 : *bytes / 2;
    return true;
}

ssize_t read(int fd, void *block, size_t bytes)
{
    return bytes_of(KIND_READ, fd, &bytes) ? syscall(SYS_read, fd, block, bytes) : -1;
}

ssize_t __read_chk(int fd, void *block, size_t bytes, size_t room);
ssize_t __read_chk(int fd, void *block, size_t bytes, size_t room)
{
    return bytes <= room ? read(fd, block, bytes) : -1;
}

ssize_t pread(int fd, void *block, size_t bytes, off_t at)
{
    return bytes_of(KIND_READ, fd, &bytes) ? syscall(SYS_pread64, fd, block, bytes, at) : -1;
}

ssize_t pread64(int fd, void *block, size_t bytes, off_t at)
{
    return pread(fd, block, bytes, at);
}

ssize_t readv(int fd, const struct iovec *parts, int count)
{
    size_t bytes = 2;

    if (!bytes_of(KIND_READ, fd, &bytes))
        return -1;
    if (bytes == 1 && count > 0 && parts[0].iov_len > 0)
        return syscall(SYS_read, fd, parts[0].iov_base, 1);
    return syscall(SYS_readv, fd, parts, count);
}

ssize_t recv(int fd, void *block, size_t bytes, int flags)
{
    return bytes_of(KIND_READ, fd, &bytes)
               ? syscall(SYS_recvfrom, fd, block, bytes, flags, NULL, NULL)
               : -1;
}

ssize_t write(int fd, const void *block, size_t bytes)
{
    return bytes_of(KIND_WRITE, fd, &bytes) ? syscall(SYS_write, fd, block, bytes) : -1;
}

ssize_t pwrite(int fd, const void *block, size_t bytes, off_t at)
{
    return bytes_of(KIND_WRITE, fd, &bytes) ? syscall(SYS_pwrite64, fd, block, bytes, at) : -1;
}

ssize_t pwrite64(int fd, const void *block, size_t bytes, off_t at)
{
    return pwrite(fd, block, bytes, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    size_t bytes = count > 0 ? parts[0].iov_len : 0, all = bytes;

    if (!bytes_of(KIND_WRITE, fd, &bytes))
        return -1;
    return bytes < all ? syscall(SYS_write, fd, parts[0].iov_base, bytes)
                       : syscall(SYS_writev, fd, parts, count);
}

ssize_t send(int fd, const void *block, size_t bytes, int flags)
{
    return bytes_of(KIND_WRITE, fd, &bytes) ? syscall(SYS_sendto, fd, block, bytes, flags, NULL, 0)
                                            : -1;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    size_t bytes = message->msg_iovlen > 0 ? message->msg_iov[0].iov_len : 0, all = bytes;

    if (!bytes_of(KIND_WRITE, fd, &bytes))
        return -1;
    return bytes < all
               ? syscall(SYS_sendto, fd, message->msg_iov[0].iov_base, bytes, flags, NULL, 0)
               : syscall(SYS_sendmsg, fd, message, flags);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    return fails(KIND_ACCEPT, -1) ? -1 : (int)syscall(SYS_accept4, fd, address, length, flags);
}

int epoll_pwait(int fd, struct epoll_event *events, int count, int timeout_ms, const sigset_t *mask)
{
    return fails(KIND_POLL, -1)
               ? -1
               : (int)syscall(SYS_epoll_pwait, fd, events, count, timeout_ms, mask, 8);
}

int epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms)
{
    return epoll_pwait(fd, events, count, timeout_ms, NULL);
}

int open(const char *path, int flags, ...)
{
    mode_t mode;
    va_list list;

    va_start(list, flags);
    mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;
    va_end(list);
    return fails(KIND_OPEN, -1) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    mode_t mode;
    va_list list;

    va_start(list, flags);
    mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;
    va_end(list);
    return open(path, flags, mode);
}

int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
    return open(path, flags, 0);
}

int __open64_2(const char *path, int flags);
int __open64_2(const char *path, int flags)
{
    return open(path, flags, 0);
}

int pipe2(int fds[2], int flags)
{
    return fails(KIND_MAKE, -1) ? -1 : (int)syscall(SYS_pipe2, fds, flags);
}

int fsync(int fd)
{
    return fails(KIND_SYNC, -1) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return fails(KIND_SYNC, -1) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

/* ---- sizes and names, processes and threads -------------------------------------------------- */

int ftruncate(int fd, off_t bytes)
{
    return fails(KIND_FILE, -1) ? -1 : (int)syscall(SYS_ftruncate, fd, bytes);
}

int ftruncate64(int fd, off_t bytes)
{
    return ftruncate(fd, bytes);
}

int rename(const char *from, const char *to)
{
    return fails(KIND_FILE, -1) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int mkdir(const char *path, mode_t mode)
{
    return fails(KIND_FILE, -1) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int unlink(const char *path)
{
    return fails(KIND_FILE, -1) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

pid_t fork(void)
{
    static pid_t (*real)(void);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fork");
    return fails(KIND_MAKE, -1) ? -1 : real();
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *context)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return fails(KIND_MAKE, -1) ? EAGAIN : real(thread, attributes, run, context);
}

/* ---- libraries ------------------------------------------------------------------------------- */

void *dlopen(const char *path, int flags)
{
    static void *(*real)(const char *, int);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "dlopen");
    return fails(KIND_LIBRARY, -1) ? NULL : real(path, flags);
}
