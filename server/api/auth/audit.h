/*
 * The audit: a line of text for each write, in a file that operators read and rotate.
 */
#ifndef KOTA_API_AUDIT_H
#define KOTA_API_AUDIT_H

#include "base/err.h"
#include "world/world.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AUDIT_RECENT = 1000 };

struct audit_entry {
    uint64_t sequence; /* of this process, from 1 on */
    int64_t time_ms;   /* since 1970 */
    struct change_origin origin;
    char target[WORLD_ID_MAX + 1]; /* locale or model */
    struct sample_rect rect;       /* cols 0: none */
    uint64_t revision;             /* 0: none */
};

struct audit;

/*
 * Appends to the file. is_sync: audit_flush returns when the lines are on the disk.
 * ERR_BAD_INPUT: it cannot be opened. NULL then.
 */
struct audit *audit_create(const char *path, bool is_sync, struct err *err);
/* NULL is allowed. */
void audit_destroy(struct audit *audit);

/* The file of that name now, after a rotation. ERR_BAD_INPUT: the former one stays in use. */
enum err_code audit_reopen(struct audit *audit, struct err *err);

/* One write that was made. The line is kept until audit_flush. target NULL: none. Any thread. */
void audit_add(struct audit *audit, const struct change_origin *origin, const char *target,
               const struct sample_rect *rect, uint64_t revision);

/* Writes the lines, before their writes are acknowledged. Any thread. */
void audit_flush(struct audit *audit);

/*
 * May a write be acknowledged after audit_flush? ERR_AUDIT: is_sync, and a line is not on the disk;
 * it stays for the next flush. NULL: there is no audit. Any thread.
 */
enum err_code audit_acknowledge(struct audit *audit, struct err *err);

/* Has the last flush failed, so that later writes would have no line? ERR_AUDIT then. */
enum err_code audit_check(struct audit *audit, struct err *err);

/*
 * The entries after that sequence number, at most `most` of the last AUDIT_RECENT, oldest first;
 * returns how many. Any thread.
 */
size_t audit_recent(struct audit *audit, uint64_t after, struct audit_entry *out, size_t most);

#endif
