/*
 * The token file as a list: immutable once it is read, so that a reload swaps the whole of it.
 */
#ifndef KOTA_API_TOKEN_LIST_H
#define KOTA_API_TOKEN_LIST_H

#include "api/auth/principal.h"
#include "api/auth/signed_token.h"

enum { TOKEN_BYTES_MAX = 512, TOKENS_MAX = 100000, TOKEN_LINE_BYTES_MAX = 4096 };

struct token_list {
    struct principal **tokens; /* sorted by digest; a reference on each */
    struct principal **users;  /* of lines `edit uid=1000`; a reference on each */
    size_t token_count, user_count;
    bool has_read; /* there is a read line: reading needs a token */
    struct signing signing;
    uint64_t serial; /* of this process, from 1 on */
};

/*
 * Lines of `file`, `#` begins a comment:
 *
 *   read TOKEN [CLAIM…]     the claims of claims_set_word, and of what is known of the token,
 *   edit TOKEN [CLAIM…]     `sha256:` and 64 hexadecimal digits may stand for it
 *   edit uid=1000 [CLAIM…]  the user at the other end of the Unix socket
 *   audience NAME           of signed tokens
 *   key KID BASE64URL       their public key of 32 bytes
 *   revoked JTI
 *
 * ERR_BAD_INPUT names file and line. A token or a user that is there twice is refused.
 */
struct token_list *token_list_read(const char *file, struct shares *shares, struct err *err);
/* NULL is allowed. */
void token_list_free(struct token_list *list);

/* NULL: it is not in the list. Borrowed. */
struct principal *token_list_find(const struct token_list *list, const uint8_t digest[32]);
struct principal *token_list_find_user(const struct token_list *list, uint32_t uid);

void token_digest(struct span token, uint8_t digest[32]);

#endif
