/*
 * Configuration: flags over environment over file, and what is refused in one line.
 */
#include "daemon/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>

enum { ARGUMENTS_MAX = 12 };

static struct config config;
static struct err err;

static enum err_code read_config(char *const *arguments, char *const *environment)
{
    char *argv[ARGUMENTS_MAX + 2] = {"kotad"};
    int argc = 1;

    for (; arguments && arguments[argc - 1]; argc++)
        argv[argc] = arguments[argc - 1];
    free((void *)config.files);
    err = (struct err){.code = ERR_OK};
    return config_read(&config, argc, argv, environment, false, &err);
}

#define ARGUMENTS(...) ((char *[]){__VA_ARGS__, NULL})

static void defaults_are_those_of_the_contract(void **state)
{
    (void)state;
    assert_int_equal(read_config(NULL, NULL), ERR_OK);
    assert_string_equal(config.host, "127.0.0.1");
    assert_int_equal(config.port, 7420);
    assert_int_equal(config.log_format, LOG_JSON);
    assert_int_equal(config.limits.items_max, 10000);
    assert_int_equal(config.limits.binary_items_max, 1000000);
    assert_int_equal(config.limits.http.body_bytes_max, 64 << 20);
    assert_int_equal(config.limits.http.connections_per_address_max, 2000);
    assert_true(config.limits.http.idle_ms >= 10000);
    assert_true(config_is_loopback(&config));
}

static void flags_stand_before_and_after_files(void **state)
{
    (void)state;
    assert_int_equal(read_config(ARGUMENTS("a.png?spacing=1,1", "--loops", "3", "b.asc",
                                           "--listen=[::1]:0", "--read-only", "--", "--c.hgt"),
                                 NULL),
                     ERR_OK);
    assert_int_equal(config.loops, 3);
    assert_string_equal(config.host, "::1");
    assert_int_equal(config.port, 0);
    assert_true(config.is_read_only && config_is_loopback(&config));
    assert_int_equal(config.file_count, 3);
    assert_string_equal(config.files[0], "a.png?spacing=1,1");
    assert_string_equal(config.files[1], "b.asc");
    assert_string_equal(config.files[2], "--c.hgt");
}

/* A name; what this machine has is found at the start. */
static void the_vector_instructions_are_named(void **state)
{
    (void)state;
    assert_int_equal(read_config(NULL, NULL), ERR_OK);
    assert_string_equal(config.simd, "");
    assert_int_equal(read_config(NULL, ARGUMENTS("KOTA_SIMD=avx2")), ERR_OK);
    assert_string_equal(config.simd, "avx2");
    assert_int_equal(read_config(ARGUMENTS("--simd", "scalar"), ARGUMENTS("KOTA_SIMD=avx2")),
                     ERR_OK);
    assert_string_equal(config.simd, "scalar");
    assert_int_not_equal(
        read_config(ARGUMENTS("--simd", "a-name-much-longer-than-any-level"), NULL), ERR_OK);
}

static void flags_win_over_the_environment_and_that_over_the_file(void **state)
{
    char path[] = "/tmp/kota-test-config-XXXXXX";
    int fd = mkstemp(path);
    static const char text[] = "# of the machine\nloops = 1\nmax-items=10\n  log-level = warn \n"
                               "access-log = true\n\nmax-body = 2048\n";

    (void)state;
    assert_true(fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)(sizeof text - 1));
    close(fd);
    assert_int_equal(read_config(ARGUMENTS("--loops", "3", "--config", path),
                                 ARGUMENTS("KOTA_LOOPS=2", "KOTA_MAX_ITEMS=20", "HOME=/")),
                     ERR_OK);
    assert_int_equal(config.loops, 3);
    assert_int_equal(config.limits.items_max, 20);
    assert_int_equal(config.log_level, LOG_WARN);
    assert_true(config.has_access_log);
    assert_int_equal(config.limits.http.body_bytes_max, 2048);
    unlink(path);
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        char *arguments[3];
        char *environment[2];
        const char *part;
    } cases[] = {
        {{"--bogus"}, {NULL}, "--bogus"},
        {{"-x"}, {NULL}, "-x"},
        {{"--loops"}, {NULL}, "--loops"},
        {{"--loops", "many"}, {NULL}, "many"},
        {{"--loops=-1"}, {NULL}, "-1"},
        {{"--loops=257"}, {NULL}, "257"},
        {{"--listen", "127.0.0.1"}, {NULL}, "127.0.0.1"},
        {{"--listen", "127.0.0.1:65536"}, {NULL}, "65536"},
        {{"--listen", ":80"}, {NULL}, "--listen"},
        {{"--listen", "::1:80"}, {NULL}, "brackets"},
        {{"--listen", "unix:"}, {NULL}, "unix:PATH"},
        {{"--listen", "127.0.0.1:1,"}, {NULL}, "HOST:PORT"},
        {{"--socket-mode", "888"}, {NULL}, "888"},
        {{"--trusted-proxies", "10.0.0.0/33"}, {NULL}, "0 to 32"},
        {{"--trusted-proxies", "::1/129"}, {NULL}, "0 to 128"},
        {{"--trusted-proxies", "10.0.0.0/"}, {NULL}, "10.0.0.0/"},
        {{"--trusted-proxies", "10.0.0.1,proxy"}, {NULL}, "\"proxy\""},
        {{"--trusted-proxies", "10.0.0.1,"}, {NULL}, "\"\""},
        {{"--log-format", "xml"}, {NULL}, "xml"},
        {{"--read-only=perhaps"}, {NULL}, "perhaps"},
        {{"--config", "/nonexistent/kota.conf"}, {NULL}, "/nonexistent/kota.conf"},
        {{NULL}, {"KOTA_LOG_LEVEL=loud"}, "KOTA_LOG_LEVEL"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (read_config(cases[i].arguments, cases[i].environment) != ERR_BAD_INPUT ||
            !strstr(err.msg, cases[i].part) || strchr(err.msg, '\n'))
            fail_msg("case %zu: \"%s\" does not name \"%s\"", i, err.msg, cases[i].part);
    }
}

static void other_hosts_are_not_loopback(void **state)
{
    (void)state;
    assert_int_equal(read_config(ARGUMENTS("--listen", "0.0.0.0:7420"), NULL), ERR_OK);
    assert_false(config_is_loopback(&config));
    assert_int_equal(read_config(ARGUMENTS("--listen", "[::]:7420"), NULL), ERR_OK);
    assert_false(config_is_loopback(&config));
    assert_int_equal(read_config(ARGUMENTS("--listen", "127.9.9.9:7420"), NULL), ERR_OK);
    assert_true(config_is_loopback(&config));
}

static bool is_trusted(const char *networks, const char *peer)
{
    unsigned char address[16];

    assert_int_equal(read_config(ARGUMENTS("--trusted-proxies", (char *)networks), NULL), ERR_OK);
    assert_int_equal(inet_pton(AF_INET6, peer, address), 1);
    return http_networks_have(&config.proxies, address);
}

static void proxies_are_addresses_and_networks(void **state)
{
    static const struct {
        const char *networks, *peer;
        bool is_in;
    } cases[] = {
        {"127.0.0.0/8,::1", "::ffff:127.3.2.1", true},
        {"127.0.0.0/8,::1", "::1", true},
        {"127.0.0.0/8,::1", "::2", false},
        {"127.0.0.0/8", "7f00::", false},
        {"10.1.2.3", "::ffff:10.1.2.3", true},
        {"10.1.2.3", "::ffff:10.1.2.4", false},
        {"10.1.2.3/31", "::ffff:10.1.2.2", true},
        {"10.1.2.0/23", "::ffff:10.1.3.255", true},
        {"10.1.2.0/23", "::ffff:10.1.4.0", false},
        {"0.0.0.0/0", "::ffff:200.1.1.1", true},
        {"0.0.0.0/0", "2001:db8::1", false},
        {"::/0", "::ffff:200.1.1.1", true},
        {"10.0.0.1,2001:db8::/33", "2001:db8:7fff::1", true},
        {"10.0.0.1,2001:db8::/33", "2001:db8:8000::1", false},
        {"none", "::1", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (is_trusted(cases[i].networks, cases[i].peer) != cases[i].is_in)
            fail_msg("%s in %s: not %d", cases[i].peer, cases[i].networks, cases[i].is_in);
}

static void a_unix_socket_is_beside_tcp_or_alone(void **state)
{
    char *environment[] = {"KOTA_LISTEN=unix:/run/weaker.sock,127.0.0.1:1", NULL};

    (void)state;
    assert_int_equal(read_config(ARGUMENTS("--listen", "unix:/run/a.sock"), environment), ERR_OK);
    assert_string_equal(config.unix_path, "/run/a.sock");
    assert_string_equal(config.host, "");
    assert_int_equal(config.unix_mode, 0660);
    assert_true(config_is_loopback(&config));
    assert_int_equal(
        read_config(ARGUMENTS("--listen", "unix:/run/a.sock", "--listen", "127.0.0.2:7"), NULL),
        ERR_OK);
    assert_string_equal(config.unix_path, "/run/a.sock");
    assert_string_equal(config.host, "127.0.0.2");
    assert_int_equal(config.port, 7);
    assert_int_equal(read_config(ARGUMENTS("--listen", "127.0.0.3:8", "--socket-mode=600"), NULL),
                     ERR_OK);
    assert_string_equal(config.unix_path, "");
    assert_int_equal(config.unix_mode, 0600);
    assert_int_equal(read_config(ARGUMENTS("--read-only"), environment), ERR_OK);
    assert_string_equal(config.unix_path, "/run/weaker.sock");
    assert_int_equal(config.port, 1);
}

static void help_names_every_flag(void **state)
{
    char *help = config_help("all");

    (void)state;
    assert_non_null(help);
    assert_non_null(strstr(help, "--listen"));
    assert_non_null(strstr(help, "--max-world-bytes"));
    assert_non_null(strstr(help, "--check"));
    assert_non_null(strstr(help, "--max-wal"));
    free(help);
}

static int free_files(void **state)
{
    (void)state;
    free((void *)config.files);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_contract),
        cmocka_unit_test(flags_stand_before_and_after_files),
        cmocka_unit_test(the_vector_instructions_are_named),
        cmocka_unit_test(flags_win_over_the_environment_and_that_over_the_file),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(other_hosts_are_not_loopback),
        cmocka_unit_test(proxies_are_addresses_and_networks),
        cmocka_unit_test(a_unix_socket_is_beside_tcp_or_alone),
        cmocka_unit_test(help_names_every_flag),
    };

    return cmocka_run_group_tests(tests, NULL, free_files);
}
