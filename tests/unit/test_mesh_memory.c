/*
 * A mesh is made and opened without memory: each call of the allocator fails once. The image that
 * was lent stays whole and the lender's, and the error says what is wanting.
 */
#include "terrain/mesh/mesh.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define HAS_OWN_ALLOCATOR 0 /* a sanitizer brings its own, another libc has other names */
static int calls_left;
#else
#define HAS_OWN_ALLOCATOR 1
/* Calls that still succeed, then one fails; below 0: all succeed. */
static int calls_left = -1;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static int fails(void)
{
    if (calls_left < 0 || calls_left-- > 0)
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *room = fails() ? NULL : __libc_memalign(alignment, size);

    if (room == NULL)
        return ENOMEM;
    *out = room;
    return 0;
}
#endif

static const struct vec3 vertices[] = {{0, 0, 0}, {4, 0, 1}, {0, 4, 0}, {4, 4, 2}};
static const uint32_t corners[] = {0, 1, 2, 1, 3, 2}, starts[] = {0, 3, 6};

static struct mesh *make(struct err *err)
{
    struct polygon_soup soup = {vertices, 4, corners, starts, 2};
    struct mesh_options options = {.gravity = {0, 0, -1}};

    return mesh_create(&soup, &options, NULL, err);
}

static void release(void *context)
{
    ++*(int *)context;
}

static void a_lent_image_stays_whole_when_it_cannot_be_opened(void **state)
{
    struct err err = {.code = ERR_OK};
    struct mesh *mesh, *opened = NULL;
    size_t length;
    const void *image;
    void *mapped;
    int released = 0, failed = 0;

    (void)state;
    if (!HAS_OWN_ALLOCATOR)
        skip();
    mesh = make(&err);
    assert_non_null(mesh);
    image = mesh_image(mesh, &length);
    mapped = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(mapped, MAP_FAILED);
    memcpy(mapped, image, length);
    for (int n = 0; !opened; n++) {
        err = (struct err){.code = ERR_OK};
        calls_left = n;
        opened = mesh_open(mapped, length, release, &released, &err);
        calls_left = -1;
        assert_int_equal(released, 0);
        assert_memory_equal(mapped, image, length);
        if (!opened)
            failed++;
        assert_int_equal(err.code, opened ? ERR_OK : ERR_NO_MEMORY);
    }
    assert_true(failed > 0);
    mesh_unref(opened);
    assert_int_equal(released, 1);
    munmap(mapped, length);
    mesh_unref(mesh);
}

static void a_mesh_is_made_or_refused(void **state)
{
    struct mesh *mesh = NULL;
    int failed = 0;

    (void)state;
    if (!HAS_OWN_ALLOCATOR)
        skip();
    for (int n = 0; !mesh; n++) {
        struct err err = {.code = ERR_OK};

        calls_left = n;
        mesh = make(&err);
        calls_left = -1;
        failed += !mesh;
        assert_int_equal(err.code, mesh ? ERR_OK : ERR_NO_MEMORY);
    }
    assert_true(failed > 0);
    mesh_unref(mesh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lent_image_stays_whole_when_it_cannot_be_opened),
        cmocka_unit_test(a_mesh_is_made_or_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
