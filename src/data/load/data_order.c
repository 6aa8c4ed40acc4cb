/*
 * data_order.c: the order of samples in an epoch: as stored, shuffled, shuffled in windows, or balanced by class.
 *
 * The loader calls it when it prepares a step. Each order is computed from (seed, epoch, position) and does not depend
 * on the number of ranks or threads.
 *
 * A window shuffle is for storage that is fast only for large reads: spinning disks, compressed chunks. The set is a
 * sequence of blocks, which come from the format. Blocks may differ in length (the last chunk of a file, or chunks of
 * which a condition selects some samples). The blocks are permuted, and samples are permuted within windows of
 * WINDOW_BLOCKS blocks. So a block may go anywhere, and its samples stay within one window. A batch is drawn from all
 * blocks of its window, but its rows are ordered by lane. A lane is a quarter of the window's blocks. So a rank's share
 * of a batch, which is a run of its rows, reads few blocks, and the same ones from step to step. The batch has the same
 * samples in the same order for any number of ranks. Memory: 8 bytes for each block, and for each window of the current
 * epoch.
 *
 * A balanced epoch deals its positions to the classes in turn, through a permutation. A class gives its samples in
 * rounds, each with its own permutation: no sample is drawn again before all samples of its class have been drawn. The
 * number of the round tells the draws of a sample apart.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/load/data_order.h"

#include <pthread.h>
#include <string.h>

#include "base/number/base_rng.h"
#include "data/data_reader.h"

enum { WINDOW_BLOCKS = 16, WINDOW_LANES = 4, LANE_BLOCKS = WINDOW_BLOCKS / WINDOW_LANES };

struct cvy_epoch_order {
    cvy_order_opts o;
    int64_t nsamples;
    uint64_t window_stream, class_stream;
    /* for a window shuffle: */
    cvy_blocks blocks;
    pthread_mutex_t lock; /* protects the members up to `end` */
    int lock_made, has_epoch;
    uint64_t epoch;
    cvy_permutation block_order; /* permutation of the blocks in that epoch */
    int64_t nwindow, *end;       /* [nwindow]: position at which each window ends */
    /* for a balanced order: */
    int64_t nclasses; /* number of classes that have samples */
    int64_t *first;   /* [nclasses + 1]: where each class begins in number[] */
    int64_t *number;  /* [nsamples], sorted by class */
};

/* A permutation that depends on (seed, stream, a, b). */
static cvy_permutation keyed_permutation(uint64_t seed, uint64_t stream, uint64_t a, uint64_t b, int64_t count)
{
    const cvy_rng rng = cvy_rng_make_hashed(seed, stream, a, b);
    return cvy_permutation_make((uint64_t)cvy_rng_u32(&rng, 0) << 32 | cvy_rng_u32(&rng, 1), 0, (uint64_t)count);
}

/* ---- windows ---- */

struct window {
    int64_t begin, length;
    int64_t first[WINDOW_BLOCKS],
        end[WINDOW_BLOCKS]; /* of its blocks: first sample; end, counted from the window's start */
};

static int64_t block_length(const cvy_epoch_order *o, int64_t block)
{
    const int64_t end = block + 1 < o->blocks.count ? o->blocks.first[block + 1] : o->nsamples;
    return end - o->blocks.first[block];
}

/* The ends of an epoch's windows depend on which blocks are in them, so this takes one pass over the blocks. */
static void enter_epoch(cvy_epoch_order *o, uint64_t epoch)
{
    int64_t sum = 0;
    if (o->has_epoch && o->epoch == epoch)
        return;
    o->block_order = cvy_permutation_make(o->o.seed, epoch, (uint64_t)o->blocks.count);
    for (int64_t i = 0; i < o->blocks.count; i++) {
        sum += block_length(o, (int64_t)cvy_permutation_at(&o->block_order, (uint64_t)i));
        o->end[i / WINDOW_BLOCKS] = sum;
    }
    o->epoch = epoch;
    o->has_epoch = 1;
}

static int64_t find_window(const cvy_epoch_order *o, int64_t position)
{
    int64_t low = 0, high = o->nwindow - 1; /* finds the first window that ends after position */
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (o->end[middle] > position)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static struct window make_window(const cvy_epoch_order *o, int64_t number)
{
    struct window w = {.begin = number > 0 ? o->end[number - 1] : 0};
    for (int64_t i = 0; i < WINDOW_BLOCKS; i++) {
        const int64_t at = number * WINDOW_BLOCKS + i;
        if (at < o->blocks.count) {
            const int64_t block = (int64_t)cvy_permutation_at(&o->block_order, (uint64_t)at);
            w.first[i] = o->blocks.first[block];
            w.length += block_length(o, block);
        }
        w.end[i] = w.length;
    }
    return w;
}

/* The sample number at a position of the window; the position is in the given lane. */
static int64_t number_at(const struct window *w, int64_t lane, int64_t at)
{
    int64_t i = lane * LANE_BLOCKS;
    while (at >= w->end[i])
        i++;
    return w->first[i] + at - (i > 0 ? w->end[i - 1] : 0);
}

/* Handles the positions from .. to-1 of a batch, which lie in one window: lane by lane, and by position within a lane.
 * *row counts the rows of the batch; the caller needs rows first .. end - 1. */
static void get_window(const cvy_epoch_order *o, int64_t number, int64_t from, int64_t to, int64_t first, int64_t end,
                       int64_t *row, int64_t *number_out)
{
    if (*row >= end || *row + to - from <= first) {
        *row += to - from;
        return;
    }
    const struct window w = make_window(o, number);
    const cvy_permutation p = keyed_permutation(o->o.seed, o->window_stream, o->epoch, (uint64_t)number + 1, w.length);
    for (int64_t lane = 0, lane_begin = 0, lane_end; lane < WINDOW_LANES; lane++, lane_begin = lane_end) {
        lane_end = w.end[(lane + 1) * LANE_BLOCKS - 1];
        for (int64_t position = from; position < to; position++) {
            const int64_t at = (int64_t)cvy_permutation_at(&p, (uint64_t)(position - w.begin));
            if (at < lane_begin || at >= lane_end)
                continue;
            if (*row >= first && *row < end)
                number_out[*row - first] = number_at(&w, lane, at);
            ++*row;
        }
    }
}

static void get_windows(cvy_epoch_order *o, uint64_t epoch, int64_t batch_first, int64_t batch_n, int64_t first,
                        int64_t n, int64_t *number_out)
{
    const int64_t end = batch_first + batch_n;
    int64_t row = 0;
    pthread_mutex_lock(&o->lock);
    enter_epoch(o, epoch);
    for (int64_t from = batch_first, to, number = find_window(o, from); from < end; from = to, number++) {
        to = CVY_MIN(o->end[number], end);
        get_window(o, number, from, to, first, first + n, &row, number_out);
    }
    pthread_mutex_unlock(&o->lock);
}

/* Makes the blocks: those of the format, joined if the job asks for larger ones; or blocks of equal length if the
 * format has none. */
static cvy_status prepare_windows(cvy_epoch_order *o, cvy_dataset *d)
{
    const int64_t n = o->nsamples, asked = CVY_MIN(CVY_MAX(o->o.window, 0), n);
    cvy_blocks stored = {0};
    CVY_TRY(cvy_dataset_blocks(d, &stored));
    o->blocks.first = stored.first;
    for (int64_t i = 0; i < stored.count; i++) /* in place: never more blocks are kept than were visited */
        if (i == 0 || stored.first[i] - o->blocks.first[o->blocks.count - 1] >= asked)
            cvy_blocks_add(&o->blocks, stored.first[i]);
    if (stored.count == 0) {
        const int64_t each = asked > 0 ? asked : CVY_BLOCK_DEFAULT;
        CVY_TRY(cvy_mem_alloc((size_t)((n + each - 1) / each) * sizeof *o->blocks.first, &o->blocks.first));
        for (int64_t at = 0; at < n; at += each)
            cvy_blocks_add(&o->blocks, at);
    }
    o->nwindow = (o->blocks.count + WINDOW_BLOCKS - 1) / WINDOW_BLOCKS;
    CVY_TRY(cvy_mem_alloc((size_t)o->nwindow * sizeof *o->end, &o->end));
    o->lock_made = pthread_mutex_init(&o->lock, NULL) == 0;
    CVY_CHECK(o->lock_made, CVY_E_MEMORY, "cannot create a lock for an order");
    return CVY_OK;
}

/* ---- classes ---- */

static int64_t balanced_at(const cvy_epoch_order *o, const cvy_permutation *order, uint64_t epoch, int64_t position,
                           int64_t *round_out)
{
    const int64_t index = (int64_t)cvy_permutation_at(order, (uint64_t)position), c = index % o->nclasses;
    const int64_t nth = index / o->nclasses, n = o->first[c + 1] - o->first[c];
    *round_out = nth / n;
    const cvy_permutation p =
        keyed_permutation(o->o.seed, o->class_stream ^ (uint64_t)*round_out, epoch, (uint64_t)c, n);
    return o->number[o->first[c] + (int64_t)cvy_permutation_at(&p, (uint64_t)(nth % n))];
}

/* Sorts the numbers by class. Classes without samples are left out. */
static cvy_status sort_by_class(cvy_epoch_order *o, cvy_dataset *d, int64_t nclasses, int32_t *label, int64_t *at)
{
    for (int64_t i = 0; i < o->nsamples; i++) {
        CVY_TRY(cvy_dataset_label(d, i, &label[i]));
        at[label[i]]++;
    }
    int64_t sum = 0;
    for (int64_t c = 0; c < nclasses; c++) {
        const int64_t n = at[c];
        at[c] = sum;
        if (n > 0)
            o->first[o->nclasses++] = sum;
        sum += n;
    }
    o->first[o->nclasses] = sum;
    for (int64_t i = 0; i < o->nsamples; i++)
        o->number[at[label[i]]++] = i;
    return CVY_OK;
}

static cvy_status prepare_balance(cvy_epoch_order *o, cvy_dataset *d)
{
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    int32_t *label = NULL;
    int64_t *at = NULL;
    cvy_status status = CVY_OK;
    CVY_CHECK(cvy_dataset_reader_info(d)->has_label, CVY_E_CONFIG,
              "data.balance is class, but %s has no classes of samples", info->path ? info->path : info->format);
    CVY_CHECK(o->o.shuffle == CVY_SHUFFLE_ALL, CVY_E_CONFIG,
              "data.balance: class draws samples from the whole set: it needs data.shuffle: true");
    CVY_TRY_OUT(cvy_mem_alloc((size_t)o->nsamples * sizeof *label, &label));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)info->nclasses * sizeof *at, &at));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)(info->nclasses + 1) * sizeof *o->first, &o->first));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)o->nsamples * sizeof *o->number, &o->number));
    status = sort_by_class(o, d, info->nclasses, label, at);
out:
    cvy_mem_free(&label);
    cvy_mem_free(&at);
    return status;
}

/* ---- the order ---- */

void cvy_epoch_order_get(cvy_epoch_order *o, uint64_t epoch, int64_t batch_first, int64_t batch_n, int64_t first,
                         int64_t n, int64_t *number_out, int64_t *repeat_out)
{
    if (repeat_out)
        memset(repeat_out, 0, (size_t)n * sizeof *repeat_out);
    if (o->nwindow > 0) {
        get_windows(o, epoch, batch_first, batch_n, first, n, number_out);
        return;
    }
    const cvy_permutation order = cvy_permutation_make(o->o.seed, epoch, (uint64_t)o->nsamples);
    for (int64_t i = 0; i < n; i++) {
        const int64_t position = batch_first + first + i;
        int64_t round = 0;
        if (o->nclasses > 0)
            number_out[i] = balanced_at(o, &order, epoch, position, repeat_out ? &repeat_out[i] : &round);
        else
            number_out[i] =
                o->o.shuffle == CVY_SHUFFLE_ALL ? (int64_t)cvy_permutation_at(&order, (uint64_t)position) : position;
    }
}

cvy_status cvy_epoch_order_create(cvy_dataset *d, const cvy_order_opts *opts, cvy_epoch_order **out)
{
    cvy_epoch_order *o = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *o, &o));
    o->o = *opts;
    o->nsamples = cvy_dataset_describe(d)->nsamples;
    o->window_stream = cvy_rng_name("order.window");
    o->class_stream = cvy_rng_name("order.class");
    const cvy_status status = opts->balance                         ? prepare_balance(o, d)
                              : opts->shuffle == CVY_SHUFFLE_WINDOW ? prepare_windows(o, d)
                                                                    : CVY_OK;
    if (status != CVY_OK)
        cvy_epoch_order_destroy(&o);
    else
        *out = o;
    return status;
}

void cvy_epoch_order_destroy(cvy_epoch_order **o)
{
    if (!*o)
        return;
    if ((*o)->lock_made)
        pthread_mutex_destroy(&(*o)->lock);
    cvy_mem_free(&(*o)->blocks.first);
    cvy_mem_free(&(*o)->end);
    cvy_mem_free(&(*o)->first);
    cvy_mem_free(&(*o)->number);
    cvy_mem_free(o);
}
