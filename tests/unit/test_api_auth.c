/*
 * Who may read and write: every combination of token file, header, origin and proxy that matters.
 */
#include "api/auth/auth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/kota-test-tokens-XXXXXX";

static struct span span_of(const char *text)
{
    return (struct span){text, text ? strlen(text) : 0};
}

static void write_tokens(const char *text)
{
    FILE *stream = fopen(path, "w");

    assert_non_null(stream);
    fputs(text, stream);
    fclose(stream);
}

static struct auth *auth_of(const char *tokens, bool is_read_only)
{
    struct err err = {.code = ERR_OK};
    struct auth *auth;

    if (tokens)
        write_tokens(tokens);
    auth = auth_create(tokens ? path : NULL, is_read_only, &err);
    if (!auth)
        fail_msg("%s", err.msg);
    return auth;
}

static const struct {
    const char *name;
    struct {
        const char *origin, *host;
        bool is_forwarded, is_remote;
    } request;
    enum err_code code;
} loopback[] = {
    {"from this machine", {NULL, "127.0.0.1:7420", false, false}, ERR_OK},
    {"from another machine", {NULL, "10.0.0.1", false, true}, ERR_FORBIDDEN},
    {"through a proxy", {NULL, "127.0.0.1", true, false}, ERR_FORBIDDEN},
    {"a page of its own", {"http://127.0.0.1:7420", "127.0.0.1:7420", false, false}, ERR_OK},
    {"a page of its own, by name",
     {"http://localhost:7420", "localhost:7420", false, false},
     ERR_OK},
    {"a page of its own, IPv6", {"http://[::1]:7420", "[::1]:7420", false, false}, ERR_OK},
    {"another port", {"http://127.0.0.1:80", "127.0.0.1:7420", false, false}, ERR_FORBIDDEN},
    {"a foreign page", {"http://evil.example", "127.0.0.1:7420", false, false}, ERR_FORBIDDEN},
    {"a name that was bound anew",
     {"http://evil.example:7420", "evil.example:7420", false, false},
     ERR_FORBIDDEN},
    {"a name that begins like loopback",
     {"http://localhost.evil.example:7420", "localhost.evil.example:7420", false, false},
     ERR_FORBIDDEN},
    {"an origin that begins like this machine",
     {"http://127.0.0.1:7420.evil.example", "127.0.0.1:7420", false, false},
     ERR_FORBIDDEN},
    {"an origin that this machine begins like",
     {"http://127.0.0.1:742", "127.0.0.1:7420", false, false},
     ERR_FORBIDDEN},
    {"a page without an origin", {"null", "127.0.0.1:7420", false, false}, ERR_FORBIDDEN},
    {"an empty origin", {"", "127.0.0.1:7420", false, false}, ERR_FORBIDDEN},
};

static enum err_code check(struct auth *auth, enum right right, bool is_counters,
                           const struct auth_request *request, struct err *err)
{
    const struct auth_need need = {.right = right, .is_counters = is_counters};
    struct principal *principal;
    enum err_code code = auth_check(auth, &need, request, &principal, err);

    assert_true(code == ERR_OK || !principal);
    principal_release(principal);
    return code;
}

static void without_tokens_this_machine_alone_writes(void **state)
{
    struct auth *auth = auth_of(NULL, false);

    (void)state;
    for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++) {
        struct auth_request request = {
            .origin = span_of(loopback[i].request.origin),
            .host = span_of(loopback[i].request.host),
            .is_forwarded = loopback[i].request.is_forwarded,
            .is_loopback = !loopback[i].request.is_remote,
        };
        struct err err = {.code = ERR_OK};

        if (check(auth, RIGHT_EDITS, false, &request, &err) != loopback[i].code)
            fail_msg("%s: got %d (%s)", loopback[i].name, (int)err.code, err.msg);
        assert_int_equal(check(auth, RIGHT_READING, false, &request, &err), ERR_OK);
        request.authorization = span_of("Bearer any");
        assert_int_equal(check(auth, RIGHT_READING, true, &request, &err),
                         request.is_forwarded ? ERR_PROXIED : ERR_OK);
    }
    auth_destroy(auth);
}

static void assert_token(struct auth *auth, enum right right, const char *header,
                         enum err_code code)
{
    struct auth_request request = {.authorization = span_of(header), .is_loopback = true};
    struct err err = {.code = ERR_OK};

    if (check(auth, right, false, &request, &err) != code)
        fail_msg("right %d, %s: got %d (%s), expected %d", (int)right, header ? header : "none",
                 (int)err.code, err.msg, (int)code);
    if (header && err.code != ERR_OK && strlen(header) > 7)
        assert_null(strstr(err.msg, header + 7)); /* a token is never repeated */
}

static void edit_tokens_alone_leave_reading_free(void **state)
{
    struct auth *auth = auth_of("# who may write\nedit secret-edit # the editor\n\n", false);

    (void)state;
    assert_token(auth, RIGHT_READING, NULL, ERR_OK);
    assert_token(auth, RIGHT_EDITS, NULL, ERR_UNAUTHORIZED);
    assert_token(auth, RIGHT_EDITS, "Bearer secret-edit", ERR_OK);
    assert_token(auth, RIGHT_EDITS, "bearer  secret-edit", ERR_OK);
    assert_token(auth, RIGHT_EDITS, "Bearer secret-edi", ERR_UNAUTHORIZED);
    assert_token(auth, RIGHT_EDITS, "Bearer secret-edit2", ERR_UNAUTHORIZED);
    assert_token(auth, RIGHT_EDITS, "Bearer SECRET-EDIT", ERR_UNAUTHORIZED);
    assert_token(auth, RIGHT_EDITS, "Bearer ", ERR_UNAUTHORIZED);
    assert_token(auth, RIGHT_EDITS, "Basic secret-edit", ERR_UNAUTHORIZED);
    assert_token(auth, RIGHT_EDITS, "secret-edit", ERR_UNAUTHORIZED);
    auth_destroy(auth);
}

static void assert_user(struct auth *auth, uint32_t uid, const char *header, bool is_forwarded,
                        enum err_code to_read, enum err_code to_edit)
{
    struct auth_request request = {
        .authorization = span_of(header),
        .is_loopback = true,
        .is_forwarded = is_forwarded,
        .has_uid = true,
        .uid = uid,
    };
    struct err err = {.code = ERR_OK};

    if (check(auth, RIGHT_READING, false, &request, &err) != to_read)
        fail_msg("uid %u, to read: got %d (%s)", uid, (int)err.code, err.msg);
    err.code = ERR_OK;
    if (check(auth, RIGHT_EDITS, false, &request, &err) != to_edit)
        fail_msg("uid %u, to edit: got %d (%s)", uid, (int)err.code, err.msg);
}

static void users_of_the_unix_socket_need_no_token(void **state)
{
    struct auth *auth = auth_of("edit uid=1000\nread uid=1001\nedit secret\n", false);

    (void)state;
    assert_int_equal(auth_tokens(auth), 3);
    assert_user(auth, 1000, NULL, false, ERR_OK, ERR_OK);
    assert_user(auth, 1001, NULL, false, ERR_OK, ERR_SCOPE);
    assert_user(auth, 1001, "Bearer secret", false, ERR_OK, ERR_OK);
    assert_user(auth, 0, NULL, false, ERR_UNAUTHORIZED, ERR_UNAUTHORIZED);
    assert_user(auth, 0, "Bearer uid=1000", false, ERR_UNAUTHORIZED, ERR_UNAUTHORIZED);
    assert_user(auth, 1000, "Bearer wrong", false, ERR_UNAUTHORIZED, ERR_UNAUTHORIZED);
    assert_user(auth, 1000, NULL, true, ERR_UNAUTHORIZED, ERR_UNAUTHORIZED);
    assert_token(auth, RIGHT_READING, NULL, ERR_UNAUTHORIZED); /* uid 0 is not every TCP peer */
    auth_destroy(auth);
    auth = auth_of("edit uid=0\n", false);
    assert_user(auth, 0, NULL, false, ERR_OK, ERR_OK);
    assert_token(auth, RIGHT_EDITS, NULL, ERR_UNAUTHORIZED);
    assert_token(auth, RIGHT_READING, NULL, ERR_OK);
    auth_destroy(auth);
}

static void each_byte_of_a_token_counts(void **state)
{
    static const char right[] = "Bearer secret-edit";
    struct auth *auth = auth_of("edit secret-edit\t# the editor\n", false);

    (void)state;
    assert_token(auth, RIGHT_EDITS, right, ERR_OK);
    for (size_t i = strlen("Bearer "); right[i]; i++) {
        char wrong[sizeof right];

        memcpy(wrong, right, sizeof right);
        wrong[i] ^= 1;
        assert_token(auth, RIGHT_EDITS, wrong, ERR_UNAUTHORIZED);
    }
    auth_destroy(auth);
}

static void a_token_has_at_most_511_characters(void **state)
{
    static const size_t lengths[] = {511, 512, 560};
    char token[600], line[700], header[700];

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct err err = {.code = ERR_OK};
        struct auth *auth;

        snprintf(token, sizeof token, "%0*d", (int)lengths[i], 7);
        snprintf(line, sizeof line, "edit %s\n", token);
        snprintf(header, sizeof header, "Bearer %s", token);
        write_tokens(line);
        auth = auth_create(path, false, &err);
        if (lengths[i] > 511) {
            assert_null(auth);
            assert_non_null(strstr(err.msg, "511"));
            assert_null(strstr(err.msg, token));
            continue;
        }
        assert_non_null(auth);
        assert_token(auth, RIGHT_EDITS, header, ERR_OK);
        strcat(header, "0");
        assert_token(auth, RIGHT_EDITS, header, ERR_UNAUTHORIZED);
        auth_destroy(auth);
    }
}

static void a_read_line_makes_reading_need_a_token(void **state)
{
    struct auth *auth = auth_of("read secret-read\nedit secret-edit\n", false);

    (void)state;
    assert_token(auth, RIGHT_NONE, NULL, ERR_OK);
    assert_token(auth, RIGHT_READING, NULL, ERR_UNAUTHORIZED);
    assert_token(auth, RIGHT_READING, "Bearer secret-read", ERR_OK);
    assert_token(auth, RIGHT_READING, "Bearer secret-edit", ERR_OK);
    assert_token(auth, RIGHT_EDITS, "Bearer secret-read", ERR_SCOPE);
    assert_token(auth, RIGHT_EDITS, "Bearer secret-edit", ERR_OK);
    auth_destroy(auth);
}

static void read_only_refuses_every_write(void **state)
{
    struct auth *free_for_all = auth_of(NULL, true);
    struct auth *with_tokens = auth_of("edit secret-edit\n", true);

    (void)state;
    assert_token(free_for_all, RIGHT_READING, NULL, ERR_OK);
    assert_token(free_for_all, RIGHT_EDITS, NULL, ERR_READ_ONLY_DAEMON);
    assert_token(with_tokens, RIGHT_EDITS, "Bearer secret-edit", ERR_READ_ONLY_DAEMON);
    auth_destroy(free_for_all);
    auth_destroy(with_tokens);
}

static void a_reload_swaps_the_tokens_or_keeps_them(void **state)
{
    struct auth *auth = auth_of("edit first-token\n", false);
    struct err err = {.code = ERR_OK};
    struct token_list *fresh;

    (void)state;
    write_tokens("edit second-token\n");
    assert_token(auth, RIGHT_EDITS, "Bearer first-token", ERR_OK);
    assert_int_equal(auth_read(auth, &fresh, &err), ERR_OK);
    assert_token(auth, RIGHT_EDITS, "Bearer first-token", ERR_OK);
    auth_swap(auth, fresh);
    assert_token(auth, RIGHT_EDITS, "Bearer first-token", ERR_UNAUTHORIZED);
    assert_token(auth, RIGHT_EDITS, "Bearer second-token", ERR_OK);
    write_tokens("nonsense\n");
    assert_int_equal(auth_read(auth, &fresh, &err), ERR_BAD_INPUT);
    assert_token(auth, RIGHT_EDITS, "Bearer second-token", ERR_OK);
    auth_destroy(auth);
}

static void a_wrong_line_is_named(void **state)
{
    static const char *const bad[] = {
        "write secret-edit\n",
        "edit\n",
        "edit secret-edit more\n",
        "\nread a b\n",
        "edit secret-edit\nx",
        "# y\n\nread ",
        "edit uid=1\nread uid=1\n",
        "edit a\nread a\n",
        "audience\n",
        "key k AAAA\n",
        "edit sha256:12\n",
        "edit a may=edit\n",
        "edit a rate=5\n",
        "read a may=edits\n",
        "edit a x=1\n",
        "edit a name=x name=y\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err err = {.code = ERR_OK};
        char place[sizeof path + 2];

        write_tokens(bad[i]);
        snprintf(place, sizeof place, "%s:", path);
        if (auth_create(path, false, &err) || err.code != ERR_BAD_INPUT || !strstr(err.msg, place))
            fail_msg("\"%s\": %s", bad[i], err.msg);
    }
}

static int make_file(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_tokens_this_machine_alone_writes),
        cmocka_unit_test(edit_tokens_alone_leave_reading_free),
        cmocka_unit_test(users_of_the_unix_socket_need_no_token),
        cmocka_unit_test(each_byte_of_a_token_counts),
        cmocka_unit_test(a_token_has_at_most_511_characters),
        cmocka_unit_test(a_read_line_makes_reading_need_a_token),
        cmocka_unit_test(read_only_refuses_every_write),
        cmocka_unit_test(a_reload_swaps_the_tokens_or_keeps_them),
        cmocka_unit_test(a_wrong_line_is_named),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
