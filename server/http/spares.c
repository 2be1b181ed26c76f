/*
 * Spares: see spares.h.
 *
 * Problem: each page of new memory is a fault when the loop first writes to it. They were five
 * sixths of what reading a body of 5 MB cost a loop (37 of 44 ms where a hypervisor handles them),
 * and all other connections of the loop wait meanwhile. Approach: memory of a body that has ended
 * is that of the next one. A client that sends one batch after the other then faults once.
 *
 * What is kept is not charged to any budget, so it is little and short: HTTP_SPARES blocks of at
 * most CAPACITY_MAX a loop, until the second tick.
 */
#include "http/spares.h"

#include <stdlib.h>

#define CAPACITY_MAX ((size_t)8 * 1024 * 1024)

void http_spares_give(struct http_spares *spares, char *at, size_t capacity)
{
    struct http_spare *least = &spares->list[0];

    for (size_t i = 1; i < HTTP_SPARES; i++)
        if (spares->list[i].capacity < least->capacity)
            least = &spares->list[i];
    if (capacity < HTTP_SPARE_BYTES_MIN || capacity > CAPACITY_MAX || capacity <= least->capacity) {
        free(at);
        return;
    }
    free(least->at);
    *least = (struct http_spare){at, capacity, false};
}

char *http_spares_take(struct http_spares *spares, size_t *capacity)
{
    struct http_spare *most = &spares->list[0];
    char *at;

    for (size_t i = 1; i < HTTP_SPARES; i++)
        if (spares->list[i].capacity > most->capacity)
            most = &spares->list[i];
    at = most->at;
    *capacity = most->capacity;
    *most = (struct http_spare){NULL, 0, false};
    return at;
}

static void drop(struct http_spare *spare)
{
    free(spare->at);
    *spare = (struct http_spare){NULL, 0, false};
}

void http_spares_age(struct http_spares *spares)
{
    for (size_t i = 0; i < HTTP_SPARES; i++) {
        struct http_spare *spare = &spares->list[i];

        if (spare->is_old)
            drop(spare);
        spare->is_old = spare->at != NULL;
    }
}

void http_spares_drop(struct http_spares *spares)
{
    for (size_t i = 0; i < HTTP_SPARES; i++)
        drop(&spares->list[i]);
}
