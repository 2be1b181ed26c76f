/*
 * The token file.
 *
 * Tokens are kept as SHA-256 digests, whether the file has the token or its digest: a token is a
 * long random text, so a plain digest is enough, and finding one of 100,000 is a binary search
 * whose time reveals nothing of a token (base/text/hex.h reads the digits of `sha256:`).
 */
#include "api/auth/token_list.h"

#include "base/text/base64.h"
#include "base/text/hex.h"

#include <openssl/sha.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 16, UID_UNKNOWN = 65534 /* of users that a user namespace does not map */ };

/* One line on its way. */
struct line {
    const char *file;
    int number;
    char *words[WORDS_MAX];
    int count;
};

static enum err_code line_error(const struct line *line, struct err *err, const char *what)
{
    return err_set(err, ERR_BAD_INPUT, "%s:%d: %s", line->file, line->number, what);
}

/* The same of an error that is set already. */
static enum err_code at_line(const struct line *line, struct err *err)
{
    char what[sizeof err->msg];

    strcpy(what, err->msg);
    return line_error(line, err, what);
}

void token_digest(struct span token, uint8_t digest[32])
{
    SHA256((const unsigned char *)token.at, token.length, digest);
}

/* ---- tokens and users ------------------------------------------------------------------------ */

#define HASHED "sha256:"

static bool read_digest(const char *text, uint8_t digest[32])
{
    if (strlen(text) != 64)
        return false;
    for (int i = 0; i < 32; i++) {
        const int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        digest[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static enum err_code digest_of_word(const struct line *line, uint8_t digest[32], struct err *err)
{
    const char *text = line->words[1];
    const size_t length = strlen(text);

    if (strncmp(text, HASHED, sizeof HASHED - 1) == 0)
        return read_digest(text + sizeof HASHED - 1, digest)
                   ? ERR_OK
                   : line_error(line, err, "sha256: and 64 hexadecimal digits were expected");
    if (length >= TOKEN_BYTES_MAX)
        return err_set(err, ERR_BAD_INPUT, "%s:%d: a token has at most %d characters, this has %zu",
                       line->file, line->number, TOKEN_BYTES_MAX - 1, length);
    token_digest((struct span){text, length}, digest);
    return ERR_OK;
}

/* The number of `uid=1000`; -1 is no user, and UID_UNKNOWN would be all unknown ones together. */
static bool read_uid(const char *text, uint32_t *uid)
{
    uint64_t value;

    if (!span_index((struct span){text, strlen(text)}, &value) || value >= UINT32_MAX ||
        value == UID_UNKNOWN)
        return false;
    *uid = (uint32_t)value;
    return true;
}

static enum err_code read_claims(const struct line *line, bool may_edit, struct claims *claims,
                                 struct err *err)
{
    uint32_t seen = 0;

    claims_init(claims, may_edit);
    for (int i = 2; i < line->count; i++)
        if (claims_set_word(claims, line->words[i], &seen, err))
            return at_line(line, err);
    if (!may_edit && claims->may & ~((uint32_t)1 << RIGHT_READING | (uint32_t)1 << RIGHT_OPERATING))
        return line_error(line, err, "a read line may have the rights reading and operating only");
    return ERR_OK;
}

static enum err_code keep(struct principal ***list, size_t *count, struct principal *principal,
                          struct err *err)
{
    struct principal **grown = realloc(*list, (*count + 1) * sizeof **list);

    if (!grown) {
        principal_release(principal);
        return err_set(err, ERR_NO_MEMORY, "no memory for tokens");
    }
    *list = grown;
    grown[(*count)++] = principal;
    return ERR_OK;
}

static enum err_code add_token(struct token_list *list, const struct line *line,
                               struct shares *shares, struct err *err)
{
    static const char user[] = "uid=";
    const bool may_edit = line->words[0][0] == 'e';
    const bool is_user = strncmp(line->words[1], user, sizeof user - 1) == 0;
    struct principal *principal;
    struct claims claims;
    uint8_t digest[32] = {0};
    uint32_t uid = 0;

    if (list->token_count + list->user_count >= TOKENS_MAX)
        return err_set(err, ERR_BAD_INPUT, "%s:%d: more than %d tokens", line->file, line->number,
                       TOKENS_MAX);
    if (is_user && !read_uid(line->words[1] + sizeof user - 1, &uid))
        return line_error(line, err,
                          "uid= and the number of one user was expected; 65534 is any that this "
                          "process's user namespace does not know");
    if ((!is_user && digest_of_word(line, digest, err)) ||
        read_claims(line, may_edit, &claims, err))
        return err->code;
    if (claims.name[0] == '\0' && is_user)
        snprintf(claims.name, sizeof claims.name, "uid-%u", (unsigned)uid);
    else if (claims.name[0] == '\0')
        snprintf(claims.name, sizeof claims.name, "token-%02x%02x%02x%02x", digest[0], digest[1],
                 digest[2], digest[3]);
    principal = principal_create(&claims, shares, (struct span){NULL, 0});
    if (!principal)
        return err_set(err, ERR_NO_MEMORY, "no memory for tokens");
    principal->is_user = is_user;
    principal->uid = uid;
    principal->list = list->serial;
    memcpy(principal->digest, digest, sizeof digest);
    list->has_read |= !may_edit;
    return is_user ? keep(&list->users, &list->user_count, principal, err)
                   : keep(&list->tokens, &list->token_count, principal, err);
}

/* ---- signed tokens --------------------------------------------------------------------------- */

static enum err_code read_signed_name(const struct line *line, char out[SIGNED_NAME_MAX + 1],
                                      struct err *err)
{
    if (strlen(line->words[1]) > SIGNED_NAME_MAX)
        return err_set(err, ERR_BAD_INPUT, "%s:%d: a name has at most %d characters", line->file,
                       line->number, SIGNED_NAME_MAX);
    strcpy(out, line->words[1]);
    return ERR_OK;
}

static enum err_code add_name(char (**names)[SIGNED_NAME_MAX + 1], size_t *count,
                              const struct line *line, struct err *err)
{
    void *grown = realloc(*names, (*count + 1) * sizeof **names);

    if (!grown)
        return err_set(err, ERR_NO_MEMORY, "no memory for tokens");
    *names = grown;
    return read_signed_name(line, (*names)[(*count)++], err);
}

static enum err_code add_key(struct signing *signing, const struct line *line, struct err *err)
{
    struct signing_key key = {0}, *grown;
    const char *text = line->words[2];

    if (read_signed_name(line, key.kid, err))
        return err->code;
    if (base64_read(text, strlen(text), BASE64URL_OTHERS, key.public_key, sizeof key.public_key) !=
        sizeof key.public_key)
        return line_error(line, err, "key KID and 32 bytes as base64url were expected");
    for (size_t i = 0; i < signing->key_count; i++)
        if (strcmp(signing->keys[i].kid, key.kid) == 0)
            return line_error(line, err, "this key id is there twice");
    grown = realloc(signing->keys, (signing->key_count + 1) * sizeof *grown);
    if (!grown)
        return err_set(err, ERR_NO_MEMORY, "no memory for tokens");
    signing->keys = grown;
    grown[signing->key_count++] = key;
    return ERR_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Where a comment begins: at a # that begins a word, since a token may hold one. NULL: nowhere. */
static char *comment_in(char *line)
{
    char *at = strchr(line, '#');

    while (at && at > line && at[-1] != ' ' && at[-1] != '\t')
        at = strchr(at + 1, '#');
    return at;
}

static enum err_code read_line(struct token_list *list, const struct line *line,
                               struct shares *shares, struct err *err)
{
    static const char forms[] = "a line is `read TOKEN`, `edit TOKEN`, `audience NAME`, `key KID "
                                "BASE64URL` or `revoked JTI`";
    const char *kind = line->words[0];

    if ((strcmp(kind, "read") == 0 || strcmp(kind, "edit") == 0) && line->count >= 2)
        return add_token(list, line, shares, err);
    if (strcmp(kind, "audience") == 0 && line->count == 2)
        return add_name(&list->signing.audiences, &list->signing.audience_count, line, err);
    if (strcmp(kind, "revoked") == 0 && line->count == 2)
        return add_name(&list->signing.revoked, &list->signing.revoked_count, line, err);
    if (strcmp(kind, "key") == 0 && line->count == 3)
        return add_key(&list->signing, line, err);
    return line_error(line, err, forms);
}

static enum err_code cut_words(struct line *line, char *text, struct err *err)
{
    char *comment = comment_in(text);

    if (comment)
        *comment = '\0';
    line->count = 0;
    for (char *rest = text, *word; (word = strsep(&rest, " \t\r\n")) != NULL;) {
        if (*word == '\0')
            continue;
        if (line->count == WORDS_MAX)
            return line_error(line, err, "the line has too many words");
        line->words[line->count++] = word;
    }
    return ERR_OK;
}

static enum err_code read_lines(struct token_list *list, const char *file, struct shares *shares,
                                struct err *err)
{
    FILE *stream = fopen(file, "re");
    char text[TOKEN_LINE_BYTES_MAX];

    if (!stream)
        return err_set(err, ERR_BAD_INPUT, "token file %s: %s", file, strerror(errno));
    for (struct line line = {.file = file, .number = 1}; fgets(text, sizeof text, stream);
         line.number++) {
        if (!strchr(text, '\n') && strlen(text) + 1 == sizeof text)
            line_error(&line, err, "the line is too long");
        else if (cut_words(&line, text, err) == ERR_OK && line.count > 0)
            read_line(list, &line, shares, err);
        if (err->code)
            break;
    }
    explicit_bzero(text, sizeof text);
    fclose(stream);
    return err->code;
}

static int compare_digests(const void *a, const void *b)
{
    return memcmp((*(struct principal *const *)a)->digest, (*(struct principal *const *)b)->digest,
                  32);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Sorts, and refuses what is there twice. */
static enum err_code finish(struct token_list *list, const char *file, struct err *err)
{
    if (list->token_count > 0)
        qsort(list->tokens, list->token_count, sizeof *list->tokens, compare_digests);
    if (list->signing.revoked_count > 0)
        qsort(list->signing.revoked, list->signing.revoked_count, sizeof *list->signing.revoked,
              compare_names);
    for (size_t i = 1; i < list->token_count; i++)
        if (memcmp(list->tokens[i - 1]->digest, list->tokens[i]->digest, 32) == 0)
            return err_set(err, ERR_BAD_INPUT, "%s: a token is there twice, as %s and %s", file,
                           list->tokens[i - 1]->claims.name, list->tokens[i]->claims.name);
    for (size_t i = 0; i < list->user_count; i++)
        for (size_t k = 0; k < i; k++)
            if (list->users[i]->uid == list->users[k]->uid)
                return err_set(err, ERR_BAD_INPUT, "%s: uid=%u is there twice", file,
                               (unsigned)list->users[i]->uid);
    return ERR_OK;
}

struct token_list *token_list_read(const char *file, struct shares *shares, struct err *err)
{
    static atomic_uint_fast64_t serial;
    struct token_list *list = calloc(1, sizeof *list);

    err->code = ERR_OK;
    if (!list) {
        err_set(err, ERR_NO_MEMORY, "no memory for tokens");
        return NULL;
    }
    list->serial = atomic_fetch_add(&serial, 1) + 1;
    if (read_lines(list, file, shares, err) || finish(list, file, err)) {
        token_list_free(list);
        return NULL;
    }
    return list;
}

void token_list_free(struct token_list *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->token_count; i++)
        principal_release(list->tokens[i]);
    for (size_t i = 0; i < list->user_count; i++)
        principal_release(list->users[i]);
    free(list->tokens);
    free(list->users);
    free(list->signing.keys);
    free(list->signing.audiences);
    free(list->signing.revoked);
    free(list);
}

struct principal *token_list_find(const struct token_list *list, const uint8_t digest[32])
{
    size_t low = 0, high = list->token_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = memcmp(list->tokens[middle]->digest, digest, 32);

        if (order == 0)
            return list->tokens[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

struct principal *token_list_find_user(const struct token_list *list, uint32_t uid)
{
    for (size_t i = 0; i < list->user_count; i++)
        if (list->users[i]->uid == uid)
            return list->users[i];
    return NULL;
}
