/* After confine_files() nothing but the named paths can be opened; in a child, for it is for good.
 */
#include "daemon/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[64], inside[80], beside[80], token[80], other[80], fresh[80];

static void write_file(const char *path)
{
    FILE *stream = fopen(path, "w");

    assert_non_null(stream);
    fputs("x\n", stream);
    assert_int_equal(fclose(stream), 0);
}

static int make_files(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/kota-confine-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(inside, sizeof inside, "%s/data", folder);
    snprintf(beside, sizeof beside, "%s/secret", folder);
    snprintf(fresh, sizeof fresh, "%s/data/file", folder);
    snprintf(token, sizeof token, "%s/etc/tokens", folder);
    snprintf(other, sizeof other, "%s/etc/tokens.new", folder);
    mkdir(inside, 0755);
    write_file(beside);
    return 0;
}

static int remove_files(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) == 0 ? 0 : -1;
}

static bool opens(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* In the child: 0, or the number of the promise that was broken; 77 without Landlock. */
static int confined(void)
{
    const struct confine_path paths[] = {{inside, CONFINE_WRITE},
                                         {token, CONFINE_READ},
                                         {"", CONFINE_READ},
                                         {"/no/such", CONFINE_READ}};
    struct err err;

    if (confine_files(paths, 4, &err) == 0)
        return 77;
    if (!opens(fresh, O_RDWR | O_CREAT) || unlink(fresh) != 0)
        return 1;
    if (opens(beside, O_RDONLY) || errno != EACCES || opens(beside, O_WRONLY))
        return 2;
    if (!opens(token, O_RDONLY) || opens(token, O_WRONLY))
        return 3;
    if (!opens(other, O_RDONLY)) /* what may be renamed over it */
        return 4;
    if (!opens("/proc/self/statm", O_RDONLY) || !opens("/etc/passwd", O_RDONLY) ||
        !opens("/dev/null", O_RDWR))
        return 5;
    if (opens("/tmp/kota-confine-no", O_WRONLY | O_CREAT))
        return 6;
    return 0;
}

static void only_the_named_paths_can_be_opened(void **state)
{
    char etc[80];
    int status;
    pid_t child;

    (void)state;
    snprintf(etc, sizeof etc, "%s/etc", folder);
    assert_int_equal(mkdir(etc, 0755), 0);
    write_file(token);
    write_file(other);
    child = fork();
    if (child == 0)
        _exit(confined());
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_user_that_is_not_there_or_root_is_refused(void **state)
{
    struct err err;

    (void)state;
    assert_int_equal(confine_user("no-such-user-here", false, &err), ERR_BAD_INPUT);
    assert_int_equal(confine_user("root", false, &err), ERR_BAD_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_named_paths_can_be_opened),
        cmocka_unit_test(a_user_that_is_not_there_or_root_is_refused),
    };

    return cmocka_run_group_tests(tests, make_files, remove_files);
}
