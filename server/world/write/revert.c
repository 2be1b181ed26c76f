/*
 * Reverting: see revert.h.
 *
 * Problem: to know what each sample was before one author's edits, while the field, the tiles and
 * the log have only what is there now. Approach: the history's rows are read once, oldest first.
 * Each has the samples before its edit, so nothing is replayed: a sample needs the value before its
 * first edit in question, the value before the last run of them, and three bits. They are kept for
 * blocks of 64 × 64 samples that an edit in question touches, so the cost is that of the edits, not
 * of the field.
 *
 * The reading may go on: a worker reads what the client's snapshot has, and the writer only the
 * revisions that have come since.
 *
 * A revision that replaced the layer as a whole ends what can be reverted: earlier edits are under
 * it. Invariant: `left` and `asked` rise, and no revision is in both.
 */
#include "world/write/revert.h"

#include "base/array_reserve.h"
#include "base/check.h"
#include "world/world_data.h"

#include <stdlib.h>
#include <string.h>

enum { SIDE = 64, FIRST = 1, RUN = 2, CONFLICT = 4 };

struct block {
    float first_m[SIDE * SIDE]; /* before the first edit in question */
    float run_m[SIDE * SIDE];   /* before those since the last by others */
    uint8_t flags[SIDE * SIDE]; /* FIRST, RUN: the value is there */
};

struct revisions {
    uint64_t *at;
    size_t count, room;
};

struct revert_plan {
    struct revert_question question;
    struct heightfield_spec spec;
    struct sample_rect scope;
    uint64_t read; /* revisions up to it */
    uint32_t block_cols, block_rows;
    struct block **blocks; /* [block_rows][block_cols]; NULL: no edit in question */
    size_t block_count;
    struct revisions asked; /* in question, and in the blocks */
    struct revisions left;
    uint8_t *changed;
};

struct revert_plan *revert_plan_create(const struct revert_question *question,
                                       const struct heightfield_spec *spec, struct err *err)
{
    struct revert_plan *plan = calloc(1, sizeof *plan);

    if (plan) {
        plan->question = *question;
        plan->spec = *spec;
        plan->scope = question->has_rect ? question->rect
                                         : (struct sample_rect){0, 0, spec->cols, spec->rows};
        plan->read = question->since;
        plan->block_cols = (spec->cols + SIDE - 1) / SIDE;
        plan->block_rows = (spec->rows + SIDE - 1) / SIDE;
        plan->blocks = calloc((size_t)plan->block_cols * plan->block_rows, sizeof *plan->blocks);
    }
    if (plan && plan->blocks)
        return plan;
    free(plan);
    err_set(err, ERR_NO_MEMORY, "no memory to revert");
    return NULL;
}

struct revert_plan *revert_plan_logged(uint8_t *changed, struct err *err)
{
    struct revert_plan *plan = calloc(1, sizeof *plan);

    if (plan)
        plan->changed = changed;
    else
        free(changed);
    if (!plan)
        err_set(err, ERR_NO_MEMORY, "no memory to revert");
    return plan;
}

static void drop_blocks(struct revert_plan *plan)
{
    for (size_t i = 0; i < (size_t)plan->block_cols * plan->block_rows; i++) {
        free(plan->blocks[i]);
        plan->blocks[i] = NULL;
    }
    plan->block_count = 0;
}

void revert_plan_free(struct revert_plan *plan)
{
    if (!plan)
        return;
    drop_blocks(plan);
    free(plan->blocks);
    free(plan->asked.at);
    free(plan->left.at);
    free(plan->changed);
    free(plan);
}

const struct revert_question *revert_plan_question(const struct revert_plan *plan)
{
    return &plan->question;
}

bool revert_plan_is_of(const struct revert_plan *plan, const struct heightfield_spec *spec)
{
    return plan->spec.cols == spec->cols && plan->spec.rows == spec->rows;
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool add(struct revisions *list, uint64_t revision, struct err *err)
{
    if (!array_reserve((void **)&list->at, &list->room, list->count + 1, sizeof *list->at)) {
        err_set(err, ERR_NO_MEMORY, "no memory to revert");
        return false;
    }
    list->at[list->count++] = revision;
    return true;
}

/* What two rectangles have in common; false: nothing. */
static bool common(const struct sample_rect *a, const struct sample_rect *b,
                   struct sample_rect *out)
{
    const uint32_t column = a->column > b->column ? a->column : b->column;
    const uint32_t row = a->row > b->row ? a->row : b->row;
    const uint64_t a_right = (uint64_t)a->column + a->cols, a_top = (uint64_t)a->row + a->rows;
    const uint64_t b_right = (uint64_t)b->column + b->cols, b_top = (uint64_t)b->row + b->rows;
    const uint64_t right = a_right < b_right ? a_right : b_right,
                   top = a_top < b_top ? a_top : b_top;

    if (right <= column || top <= row)
        return false;
    *out = (struct sample_rect){column, row, (uint32_t)(right - column), (uint32_t)(top - row)};
    return true;
}

static struct block *block_at(struct revert_plan *plan, uint32_t column, uint32_t row, bool is_made,
                              struct err *err)
{
    struct block **at = &plan->blocks[(size_t)(row / SIDE) * plan->block_cols + column / SIDE];
    const uint64_t most = 2 * (plan->question.samples_max / (SIDE * SIDE)) + 1024;

    if (*at || !is_made)
        return *at;
    if (plan->block_count >= most) {
        err_limit(err, ERR_TOO_LARGE, (double)plan->question.samples_max,
                  (double)(plan->block_count * SIDE * SIDE),
                  "the edits to revert touch more than the %llu samples of one edit; give a rect",
                  (unsigned long long)plan->question.samples_max);
        return NULL;
    }
    *at = calloc(1, sizeof **at);
    if (*at)
        plan->block_count++;
    else
        err_set(err, ERR_NO_MEMORY, "no memory to revert");
    return *at;
}

/* One sample of an edit. */
static void touch(struct block *block, size_t i, bool is_asked, float before_m)
{
    uint8_t *flags = &block->flags[i];

    if (!is_asked) {
        *flags |= *flags & FIRST ? CONFLICT : 0;
        *flags &= (uint8_t)~RUN;
        return;
    }
    if (!(*flags & FIRST))
        block->first_m[i] = before_m;
    if (!(*flags & RUN))
        block->run_m[i] = before_m;
    *flags |= FIRST | RUN;
}

/* The samples of an edit within `cut`, a part of its rectangle. */
static bool touch_all(struct revert_plan *plan, const struct store_past *row,
                      const struct sample_rect *cut, bool is_asked, struct err *err)
{
    for (uint32_t r = cut->row; r < cut->row + cut->rows; r++)
        for (uint32_t c = cut->column; c < cut->column + cut->cols;) {
            struct block *block = block_at(plan, c, r, is_asked, err);
            uint32_t end = (c / SIDE + 1) * SIDE;

            if (is_asked && !block)
                return false;
            end = end < cut->column + cut->cols ? end : cut->column + cut->cols;
            for (; block && c < end; c++) {
                const size_t at =
                    (size_t)(r - row->rect.row) * row->rect.cols + (c - row->rect.column);

                if (!row->changed || row->changed[at / 8] >> at % 8 & 1)
                    touch(block, (size_t)(r % SIDE) * SIDE + c % SIDE, is_asked, row->before_m[at]);
            }
            c = end;
        }
    return true;
}

/* The layer was replaced as a whole: earlier edits can no longer be reverted. */
static bool bury(struct revert_plan *plan, struct err *err)
{
    drop_blocks(plan);
    for (size_t i = 0; i < plan->asked.count; i++)
        if (!add(&plan->left, plan->asked.at[i], err))
            return false;
    plan->asked.count = 0;
    return true;
}

static int by_revision(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static bool take(void *context, const struct store_past *row, struct err *err)
{
    struct revert_plan *plan = context;
    const struct revert_question *q = &plan->question;
    const bool is_of_layer = strcmp(row->layer, q->layer) == 0, is_of_all = row->layer[0] == '\0';
    const bool is_by = !q->has_author || strcmp(row->author, q->author) == 0;
    struct sample_rect cut;

    plan->read = row->revision;
    if (is_of_layer && row->before_m && sample_rect_fits(&row->rect, &plan->spec))
        return !common(&row->rect, &plan->scope, &cut) ||
               (touch_all(plan, row, &cut, is_by, err) &&
                (!is_by || add(&plan->asked, row->revision, err)));
    if ((is_of_layer || (is_of_all && row->kind != (int)WORLD_PUT_LOCALE)) && !bury(plan, err))
        return false;
    return !is_by || (q->names_layer && !is_of_layer && !is_of_all) ||
           add(&plan->left, row->revision, err);
}

enum err_code revert_plan_read(struct revert_plan *plan, struct world *world, uint64_t upto,
                               bool is_writer, struct err *err)
{
    struct store_history_question question = {.locale = plan->question.locale,
                                              .after = plan->read,
                                              .upto = upto,
                                              .wants_before = true,
                                              .is_writer = is_writer};
    const uint64_t from = plan->read;
    uint64_t since;

    if (from >= upto)
        return ERR_OK;
    if (world_history(world, &question, &since, NULL, NULL, err))
        return err->code;
    if (since > from) {
        err_set(err, ERR_GONE,
                "the history of locale %s is not held from revision %llu on; GET its history says "
                "since when it is",
                plan->question.locale, (unsigned long long)from);
        return err->code;
    }
    if (world_history(world, &question, &since, take, plan, err))
        return err->code;
    if (plan->read != upto)
        return err_set(err, ERR_GONE, "the history of locale %s ends at revision %llu, not %llu",
                       plan->question.locale, (unsigned long long)plan->read,
                       (unsigned long long)upto);
    if (plan->left.count > 0)
        qsort(plan->left.at, plan->left.count, sizeof *plan->left.at, by_revision);
    return ERR_OK;
}

/* ---- the edit ------------------------------------------------------------------------------- */

static uint8_t wanted_flag(const struct revert_plan *plan)
{
    return plan->question.overwrites ? FIRST : RUN;
}

/* The least rectangle of all samples that are reverted; false: there are none. */
static bool bound(const struct revert_plan *plan, struct sample_rect *out)
{
    uint32_t box[4] = {UINT32_MAX, UINT32_MAX, 0, 0};

    for (uint32_t b = 0; b < plan->block_cols * plan->block_rows; b++)
        for (uint32_t i = 0; plan->blocks[b] && i < SIDE * SIDE; i++) {
            const uint32_t c = b % plan->block_cols * SIDE + i % SIDE;
            const uint32_t r = b / plan->block_cols * SIDE + i / SIDE;

            if (!(plan->blocks[b]->flags[i] & wanted_flag(plan)))
                continue;
            box[0] = c < box[0] ? c : box[0];
            box[1] = r < box[1] ? r : box[1];
            box[2] = c > box[2] ? c : box[2];
            box[3] = r > box[3] ? r : box[3];
        }
    *out = (struct sample_rect){box[0], box[1], box[2] - box[0] + 1, box[3] - box[1] + 1};
    return box[0] <= box[2];
}

static void fill(struct revert_plan *plan, struct edit_outcome *out)
{
    const struct sample_rect *rect = &out->rect;

    for (uint32_t r = 0; r < rect->rows; r++)
        for (uint32_t c = 0; c < rect->cols; c++) {
            const uint32_t column = rect->column + c, row = rect->row + r;
            const struct block *block =
                plan->blocks[(size_t)(row / SIDE) * plan->block_cols + column / SIDE];
            const size_t i = (size_t)(row % SIDE) * SIDE + column % SIDE;
            const size_t at = (size_t)r * rect->cols + c;

            if (!block || !(block->flags[i] & wanted_flag(plan)))
                continue;
            out->heights_m[at] = plan->question.overwrites ? block->first_m[i] : block->run_m[i];
            plan->changed[at / 8] |= (uint8_t)(1u << at % 8);
        }
}

enum err_code revert_plan_make(struct revert_plan *plan, const struct heightfield *field,
                               struct edit_outcome *out, struct err *err)
{
    struct sample_rect rect;
    uint64_t samples;

    *out = (struct edit_outcome){.heights_m = NULL};
    if (!bound(plan, &rect))
        return ERR_OK;
    samples = (uint64_t)rect.cols * rect.rows;
    if (samples > plan->question.samples_max)
        return err_limit(err, ERR_TOO_LARGE, (double)plan->question.samples_max, (double)samples,
                         "the edits to revert are in a rectangle of %llu samples, one edit takes "
                         "%llu; give a rect",
                         (unsigned long long)samples,
                         (unsigned long long)plan->question.samples_max);
    free(plan->changed);
    plan->changed = calloc((size_t)(samples + 7) / 8, 1);
    out->heights_m = malloc((size_t)samples * sizeof *out->heights_m);
    if (!plan->changed || !out->heights_m) {
        edit_outcome_free(out);
        return err_set(err, ERR_NO_MEMORY, "no memory to revert");
    }
    out->rect = rect;
    heightfield_read_samples(field, &rect, out->heights_m);
    fill(plan, out);
    return ERR_OK;
}

const uint8_t *revert_plan_changed(const struct revert_plan *plan)
{
    return plan->changed;
}

/* ---- the report ----------------------------------------------------------------------------- */

static bool is_conflict(const struct revert_plan *plan, uint32_t column, uint32_t row)
{
    const struct block *block =
        plan->blocks[(size_t)(row / SIDE) * plan->block_cols + column / SIDE];

    return block && block->flags[row % SIDE * SIDE + column % SIDE] & CONFLICT;
}

/* The end of the blocks without edits that begin here. */
static uint32_t skip_empty(const struct revert_plan *plan, uint32_t column, uint32_t row)
{
    while (column < plan->spec.cols &&
           !plan->blocks[(size_t)(row / SIDE) * plan->block_cols + column / SIDE])
        column = (column / SIDE + 1) * SIDE;
    return column;
}

/* Calls take_run (NULL: only counts) with each run, until there are too many; their number. */
static size_t each_run(const struct revert_plan *plan,
                       void (*take_run)(void *context, const struct sample_rect *run),
                       void *context)
{
    size_t count = 0;

    for (uint32_t row = 0; row < plan->spec.rows && count <= REVERT_RUNS_MAX; row++)
        for (uint32_t column = skip_empty(plan, 0, row); column < plan->spec.cols;) {
            uint32_t end = column;

            while (end < plan->spec.cols && is_conflict(plan, end, row))
                end++;
            count += end > column;
            if (end > column && take_run)
                take_run(context, &(struct sample_rect){column, row, end - column, 1});
            column = skip_empty(plan, end + 1, row);
        }
    return count;
}

/* The bounds of a block's conflicts. */
static void take_block(const struct revert_plan *plan, uint32_t b,
                       void (*take_run)(void *context, const struct sample_rect *run),
                       void *context)
{
    const uint32_t column = b % plan->block_cols * SIDE, row = b / plan->block_cols * SIDE;
    uint32_t box[4] = {SIDE, SIDE, 0, 0};

    for (uint32_t i = 0; i < SIDE * SIDE; i++) {
        const uint32_t c = i % SIDE, r = i / SIDE;

        if (!(plan->blocks[b]->flags[i] & CONFLICT))
            continue;
        box[0] = c < box[0] ? c : box[0];
        box[1] = r < box[1] ? r : box[1];
        box[2] = c > box[2] ? c : box[2];
        box[3] = r;
    }
    if (box[0] < SIDE)
        take_run(context, &(struct sample_rect){column + box[0], row + box[1], box[2] - box[0] + 1,
                                                box[3] - box[1] + 1});
}

void revert_plan_conflicts(const struct revert_plan *plan,
                           void (*take_run)(void *context, const struct sample_rect *run),
                           void *context)
{
    if (each_run(plan, NULL, NULL) <= REVERT_RUNS_MAX) {
        each_run(plan, take_run, context);
        return;
    }
    for (uint32_t b = 0; b < plan->block_cols * plan->block_rows; b++)
        if (plan->blocks[b])
            take_block(plan, b, take_run, context);
}

const uint64_t *revert_plan_left(const struct revert_plan *plan, size_t *count)
{
    *count = plan->left.count;
    return plan->left.at;
}
