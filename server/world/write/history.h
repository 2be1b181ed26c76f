/*
 * The row of the history of a change: who, when, and what was there before. Private to world/.
 */
#ifndef KOTA_WORLD_HISTORY_H
#define KOTA_WORLD_HISTORY_H

#include "world/world_data.h"

/*
 * Fills the row of a result that is a revision of its locale. *samples and *changed (malloc, to be
 * freed; may be NULL) have what it points to. ERR_NO_MEMORY
 */
enum err_code history_describe(const struct change_result *result, struct store_past *out,
                               float **samples, uint8_t **changed, struct err *err);

/* Is it an edit that uploaded all samples of its rectangle, those too that stay as they are? */
bool history_is_set(const struct world_change *change);

/* Of a world without a store: the row of a result that was made. ERR_NO_MEMORY */
enum err_code history_remember(struct world *world, const struct change_result *result,
                               struct err *err);

#endif
