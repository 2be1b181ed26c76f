/*
 * Distance of words: see nearest_word.h.
 *
 * Optimal string alignment with three rows of the table. Words of a contract are short, so the
 * whole table is at most 33 × 33 steps, and it is made only for a request that is refused.
 *
 * Source: F. Damerau, A technique for computer detection and correction of spelling errors, 1964.
 */
#include "base/text/nearest_word.h"

#include <string.h>

enum { WORD_BYTES_MAX = 32, MISTAKES_MAX = 2 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t word_distance(const char *a, size_t a_length, const char *b, size_t b_length, size_t most)
{
    size_t rows[3][WORD_BYTES_MAX + 1], *before = rows[0], *last = rows[1], *now = rows[2];

    if (a_length > WORD_BYTES_MAX || b_length > WORD_BYTES_MAX)
        return most + 1;
    for (size_t k = 0; k <= b_length; k++)
        before[k] = last[k] = k;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *free_row = before;

        now[0] = i;
        for (size_t k = 1; k <= b_length; k++) {
            now[k] = least(least(last[k], now[k - 1]) + 1, last[k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                now[k] = least(now[k], before[k - 2] + 1);
        }
        before = last;
        last = now;
        now = free_row;
    }
    return least(last[b_length], most + 1);
}

size_t nearest_word_slips(size_t length)
{
    return length < 3 ? 1 : least(MISTAKES_MAX, length / 3);
}

const char *nearest_word(const char *text, size_t length, const char *const *words)
{
    size_t most = nearest_word_slips(length), found = most + 1;
    const char *nearest = NULL;

    for (; words && *words; words++) {
        size_t distance = word_distance(text, length, *words, strlen(*words), most);

        if (distance < found && distance < strlen(*words)) {
            found = distance;
            nearest = *words;
        }
    }
    return nearest;
}
