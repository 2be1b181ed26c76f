/*
 * The history of a world without a store: the same rows in memory, by the same rules (store.h).
 */
#ifndef KOTA_WORLD_HISTORY_LIST_H
#define KOTA_WORLD_HISTORY_LIST_H

#include "store/store.h"

struct history_list;

struct history_list *history_list_create(void);       /* NULL without memory */
void history_list_destroy(struct history_list *list); /* NULL is fine */

/*
 * The row of the locale's next revision; rows of this and later ones, whose commit failed, and rows
 * before a gap are removed, and the oldest beyond bytes_max. past NULL: the locale is deleted.
 * Writer. ERR_NO_MEMORY
 */
enum err_code history_list_append(struct history_list *list, const char *locale,
                                  const struct store_past *past, uint64_t bytes_max,
                                  struct err *err);

/* As store_history; any thread. */
enum err_code history_list_read(struct history_list *list,
                                const struct store_history_question *question, uint64_t *since,
                                store_take_past take, void *context, struct err *err);

#endif
