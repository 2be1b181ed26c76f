/*
 * kota token: the lines of a daemon's token file, which it needs no daemon for.
 *
 * A token is made of 32 random bytes and printed once; the file keeps its digest. A change is
 * written beside the file, read as the daemon will read it (token_list.h), and then takes the
 * file's place, so that a wrong claim changes nothing. The daemon reads the file again at SIGHUP.
 */
#include "api/auth/token_list.h"
#include "client/file.h"
#include "client/kota.h"
#include "client/print.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)64 << 20)

enum { TOKEN_RANDOM_BYTES = 32, DIGEST_BYTES = 32, PATH_BYTES_MAX = 4096 };

static void put_hex(const uint8_t *bytes, size_t count, char *out)
{
    for (size_t i = 0; i < count; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static enum err_code write_all(const char *path, const char *text, mode_t mode, struct err *err)
{
    FILE *file = fopen(path, "we");
    bool is_written;

    if (!file)
        return err_set(err, ERR_BAD_INPUT, "%.200s: %s", path, strerror(errno));
    is_written = fchmod(fileno(file), mode) == 0 && fputs(text, file) >= 0 && fflush(file) == 0 &&
                 fsync(fileno(file)) == 0;
    if (fclose(file) != 0 || !is_written)
        return err_set(err, ERR_BAD_INPUT, "%.200s cannot be written: %s", path, strerror(errno));
    return ERR_OK;
}

/* The file becomes this text, if a daemon would take it. */
static enum err_code replace(const char *path, const char *text, struct err *err)
{
    char beside[PATH_BYTES_MAX];
    struct shares *shares = shares_create(err);
    struct token_list *list = NULL;
    struct stat now;
    const mode_t mode = stat(path, &now) == 0 ? now.st_mode & 07777 : 0600;

    if (!shares)
        return err->code;
    snprintf(beside, sizeof beside, "%s.new", path);
    if (write_all(beside, text, mode, err) == ERR_OK)
        list = token_list_read(beside, shares, err);
    token_list_free(list);
    shares_destroy(shares);
    if (list && rename(beside, path) != 0)
        err_set(err, ERR_BAD_INPUT, "%.200s: %s", path, strerror(errno));
    if (err->code)
        unlink(beside);
    return err->code;
}

/* The whole file; "" where there is none. free() */
static char *read_text(const char *path, struct err *err)
{
    char *text = NULL;
    size_t length;

    if (access(path, F_OK) != 0 && errno == ENOENT)
        return calloc(1, 1);
    return file_read(path, FILE_BYTES_MAX, &text, &length, err) ? NULL : text;
}

static enum kota_exit token_add(struct kota *kota)
{
    uint8_t bytes[TOKEN_RANDOM_BYTES], digest[DIGEST_BYTES];
    char token[2 * TOKEN_RANDOM_BYTES + 1], hex[2 * DIGEST_BYTES + 1], *text, *grown;
    size_t length, size;

    if (strcmp(kota->words[1], "read") != 0 && strcmp(kota->words[1], "edit") != 0) {
        err_set(&kota->err, ERR_BAD_INPUT, "read or edit is wanted, not '%.40s'", kota->words[1]);
        return kota_misused(kota);
    }
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes ||
        !(text = read_text(kota->words[0], &kota->err)))
        return kota_failed(kota);
    put_hex(bytes, sizeof bytes, token);
    token_digest((struct span){token, strlen(token)}, digest);
    put_hex(digest, sizeof digest, hex);
    length = strlen(text);
    size = length + sizeof hex + 64;
    for (size_t i = 2; i < kota->word_count; i++)
        size += strlen(kota->words[i]) + 1;
    grown = realloc(text, size);
    if (!grown) {
        free(text);
        err_set(&kota->err, ERR_NO_MEMORY, "out of memory");
        return kota_failed(kota);
    }
    length +=
        (size_t)snprintf(grown + length, size - length, "%s%s sha256:%s",
                         length > 0 && grown[length - 1] != '\n' ? "\n" : "", kota->words[1], hex);
    for (size_t i = 2; i < kota->word_count; i++)
        length += (size_t)snprintf(grown + length, size - length, " %s", kota->words[i]);
    snprintf(grown + length, size - length, "\n");
    if (replace(kota->words[0], grown, &kota->err) == ERR_OK)
        printf("%s\n", token);
    free(grown);
    return kota->err.code ? kota_misused(kota) : KOTA_OK;
}

/* The owner that a line of a token names, as the daemon would; "": it is no such line. */
static void name_of_line(const char *line, char name[CLAIMS_NAME_MAX + 1])
{
    char text[TOKEN_LINE_BYTES_MAX];
    const char *key;
    uint8_t digest[DIGEST_BYTES];
    char kind[8], token[TOKEN_LINE_BYTES_MAX];

    name[0] = '\0';
    snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\r\n"), line);
    if (sscanf(text, "%7s %4095s", kind, token) != 2 ||
        (strcmp(kind, "read") != 0 && strcmp(kind, "edit") != 0))
        return;
    key = strstr(text, " name=");
    if (key)
        snprintf(name, CLAIMS_NAME_MAX + 1, "%.*s", (int)strcspn(key + 6, " \t"), key + 6);
    else if (strncmp(token, "uid=", 4) == 0)
        snprintf(name, CLAIMS_NAME_MAX + 1, "uid-%.32s", token + 4);
    else if (strncmp(token, "sha256:", 7) == 0)
        snprintf(name, CLAIMS_NAME_MAX + 1, "token-%.8s", token + 7);
    else {
        token_digest((struct span){token, strlen(token)}, digest);
        strcpy(name, "token-");
        put_hex(digest, 4, name + strlen(name));
    }
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end ? end + 1 : line + strlen(line);
}

static void list_line(const struct kota *kota, struct table *table, const char *line,
                      const char *name)
{
    char text[TOKEN_LINE_BYTES_MAX], *rest = text, *kind, *claims;
    cJSON *object;
    struct err ignored;

    snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\r\n"), line);
    kind = strsep(&rest, " \t");
    strsep(&rest, " \t");
    claims = rest ? rest : text + strlen(text);
    if (!kota->is_json) {
        table_text(table, name);
        table_text(table, kind);
        table_text(table, claims);
        return;
    }
    object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", name);
    cJSON_AddStringToObject(object, "kind", kind);
    cJSON_AddStringToObject(object, "claims", claims);
    print_json_line(stdout, object, &ignored);
    cJSON_Delete(object);
}

static enum kota_exit token_ls(struct kota *kota)
{
    static const char *const headings[] = {"NAME", "KIND", "CLAIMS"};
    char *text = read_text(kota->words[0], &kota->err), name[CLAIMS_NAME_MAX + 1];
    struct table *table = table_open(headings, 3);

    for (const char *line = text; text && table && *line; line = next_line(line)) {
        name_of_line(line, name);
        if (name[0] != '\0')
            list_line(kota, table, line, name);
    }
    if (text && table && !kota->is_json)
        table_print(table, stdout, &kota->err);
    if (table)
        table_close(table);
    free(text);
    return kota->err.code ? kota_misused(kota) : KOTA_OK;
}

/* Removes the lines of that name. */
static enum kota_exit token_rm(struct kota *kota)
{
    char *text = read_text(kota->words[0], &kota->err), name[CLAIMS_NAME_MAX + 1], *to = text;
    size_t removed = 0;

    for (const char *line = text; text && *line;) {
        const char *next = next_line(line);

        name_of_line(line, name);
        if (strcmp(name, kota->words[1]) == 0) {
            removed++;
        } else {
            memmove(to, line, (size_t)(next - line));
            to += next - line;
        }
        line = next;
    }
    if (text)
        *to = '\0';
    if (text && removed == 0)
        err_set(&kota->err, ERR_BAD_INPUT, "%.200s has no token of the name %.64s", kota->words[0],
                kota->words[1]);
    else if (text)
        replace(kota->words[0], text, &kota->err);
    free(text);
    return kota->err.code ? kota_misused(kota) : KOTA_OK;
}

static enum kota_exit token_run(struct kota *kota)
{
    static const struct {
        const char *name;
        size_t least, most;
        enum kota_exit (*run)(struct kota *kota);
    } actions[] = {{"add", 2, 16, token_add}, {"ls", 1, 1, token_ls}, {"rm", 2, 2, token_rm}};
    enum kota_exit done;
    const char *name;
    size_t action = 0;

    if (!kota_begin(kota, NULL, 0, 18, &done))
        return done;
    name = kota_shift_word(kota);
    while (action < 3 && name && strcmp(actions[action].name, name) != 0)
        action++;
    if (!name || action == 3)
        err_set(&kota->err, ERR_BAD_INPUT, "add, ls or rm is wanted%s%.40s%s",
                name ? ", not '" : "", name ? name : "", name ? "'" : "");
    else if (kota->word_count < actions[action].least || kota->word_count > actions[action].most)
        err_set(&kota->err, ERR_BAD_INPUT, "kota token %s takes other arguments: see --help", name);
    return kota->err.code ? kota_misused(kota) : actions[action].run(kota);
}

const struct kota_command command_token = {
    .name = "token",
    .synopsis = "add FILE read|edit [CLAIM…] | ls FILE | rm FILE NAME",
    .summary = "the tokens of a daemon's token file",
    .help =
        "Makes a token and prints it, once: FILE keeps its digest. A CLAIM narrows it: "
        "name=alice,\n"
        "may=edits,reading, locales=arena-*, bounds=x0,y0,x1,y1, rate=50/s, items=1e6/s,\n"
        "until=2026-12-31. Lists the tokens of a file, and removes those of a name. The daemon\n"
        "reads the file again at SIGHUP.\n",
    .words = {"add ls rm", ":file", "read edit", NULL},
    .examples =
        (const char *const[]){"kota token add tokens edit name=alice locales=arena-*", NULL},
    .is_offline = true,
    .run = token_run,
};
