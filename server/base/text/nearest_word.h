/*
 * "Did you mean …?": the word of a list that a misspelt one was meant to be.
 */
#ifndef KOTA_BASE_NEAREST_WORD_H
#define KOTA_BASE_NEAREST_WORD_H

#include <stddef.h>

/*
 * The fewest insertions, deletions, replacements and swaps of neighbours that make one word of the
 * other, up to `most`; most + 1 when there are more, or when a word is longer than 32 bytes.
 * No allocation; any thread.
 */
size_t word_distance(const char *a, size_t a_length, const char *b, size_t b_length, size_t most);

/*
 * The word of `words` (NULL-terminated, may be NULL) nearest to text[length]: with one mistake in
 * each three characters, and two at most. NULL when none is that near. Of equals the first.
 */
const char *nearest_word(const char *text, size_t length, const char *const *words);

/* How many mistakes count as a slip in a word of that length. */
size_t nearest_word_slips(size_t length);

#endif
