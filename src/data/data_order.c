/*
 * data_order.c: the order of samples in an epoch: as stored, shuffled, shuffled within windows, or balanced by class.
 *
 * In the step: under the loader, when it prepares a step. Each order is computed from (seed, epoch, place); the numbers
 * of ranks and threads are not in it.
 *
 * A window shuffle is for storage that is read well in pieces only: spinning disks, compressed chunks. The set is cut
 * into blocks of consecutive samples and the blocks are permuted; then samples are permuted within windows of
 * WINDOW_BLOCKS blocks. So a block may go anywhere, and its samples stay within one window of each other (two, where
 * the set's last, shorter block has moved it over a border). A batch is drawn from all blocks of its window, but its
 * rows stand lane by lane, a lane being a quarter of the window's blocks: a rank's share of a batch, which is a run of
 * its rows, then touches few blocks, and from step to step the same ones. The batch is the same set of samples in the
 * same order for any number of ranks.
 *
 * A balanced epoch deals its places out to the classes in turn, through a permutation; a class gives its samples in
 * rounds, each a permutation of its own: a sample is not drawn again before all of its class were.
 */
#include "data/data_order.h"

#include "data/data_reader.h"

enum { WINDOW_BLOCKS = 16, WINDOW_LANES = 4, WINDOW_BLOCK = 256 };

struct cvy_epoch_order {
    cvy_order_opts o;
    int64_t nsamples, block;
    uint64_t window_stream, class_stream;
    /* of a balanced order: */
    int64_t nclasses; /* that have samples */
    int64_t *first;   /* [nclasses + 1] */
    int64_t *number;  /* [nsamples], by class */
};

/* A permutation of its own for (seed, stream, a, b). */
static cvy_permutation keyed_permutation(uint64_t seed, uint64_t stream, uint64_t a, uint64_t b, int64_t count)
{
    const cvy_rng rng = cvy_rng_make_hashed(seed, stream, a, b);
    return cvy_permutation_make((uint64_t)cvy_rng_u32(&rng, 0) << 32 | cvy_rng_u32(&rng, 1), 0, (uint64_t)count);
}

/* ---- windows ---- */

struct blocks { /* an epoch's row of blocks */
    cvy_permutation full;
    int64_t block, nfull, rest; /* samples of the last, shorter block */
    int64_t rest_at;            /* where it begins in the row */
};

static struct blocks make_blocks(const cvy_epoch_order *o, uint64_t epoch)
{
    const cvy_rng rng = cvy_rng_make_hashed(o->o.seed, o->window_stream, epoch, 0);
    struct blocks b = {.block = o->block, .nfull = o->nsamples / o->block, .rest = o->nsamples % o->block};
    b.full = cvy_permutation_make(o->o.seed, epoch, (uint64_t)b.nfull);
    b.rest_at = (int64_t)cvy_rng_below(&rng, 0, (uint64_t)b.nfull + 1) * b.block;
    return b;
}

/* The sample that stands at a position of the row. */
static int64_t number_at(const struct blocks *b, int64_t at)
{
    if (b->rest > 0 && at >= b->rest_at) {
        if (at < b->rest_at + b->rest)
            return b->nfull * b->block + at - b->rest_at;
        at -= b->rest;
    }
    return (int64_t)cvy_permutation_at(&b->full, (uint64_t)(at / b->block)) * b->block + at % b->block;
}

/* Of a batch, what lies in one window: lane by lane, within a lane by place. *row counts the batch's rows. */
static void get_window(const cvy_epoch_order *o, uint64_t epoch, const struct blocks *b, int64_t from, int64_t to,
                       int64_t first, int64_t end, int64_t *row, int64_t *number_out)
{
    const int64_t span = o->block * WINDOW_BLOCKS, window = from / span, begin = window * span;
    const int64_t length = CVY_MIN(span, o->nsamples - begin), lane_length = span / WINDOW_LANES;
    const cvy_permutation p = keyed_permutation(o->o.seed, o->window_stream, epoch, (uint64_t)window + 1, length);
    if (*row >= end || *row + to - from <= first) {
        *row += to - from;
        return;
    }
    for (int64_t lane = 0; lane < WINDOW_LANES; lane++)
        for (int64_t place = from; place < to; place++) {
            const int64_t at = (int64_t)cvy_permutation_at(&p, (uint64_t)(place - begin));
            if (at / lane_length != lane)
                continue;
            if (*row >= first && *row < end)
                number_out[*row - first] = number_at(b, begin + at);
            ++*row;
        }
}

static void get_windows(const cvy_epoch_order *o, uint64_t epoch, int64_t batch_first, int64_t batch_n, int64_t first,
                        int64_t n, int64_t *number_out)
{
    const struct blocks b = make_blocks(o, epoch);
    const int64_t span = o->block * WINDOW_BLOCKS, end = batch_first + batch_n;
    int64_t row = 0;
    for (int64_t from = batch_first, to; from < end; from = to) {
        to = CVY_MIN((from / span + 1) * span, end);
        get_window(o, epoch, &b, from, to, first, first + n, &row, number_out);
    }
}

/* ---- classes ---- */

static int64_t balanced_at(const cvy_epoch_order *o, const cvy_permutation *order, uint64_t epoch, int64_t place)
{
    const int64_t turn = (int64_t)cvy_permutation_at(order, (uint64_t)place), c = turn % o->nclasses;
    const int64_t nth = turn / o->nclasses, n = o->first[c + 1] - o->first[c];
    const uint64_t round = (uint64_t)(nth / n);
    const cvy_permutation p = keyed_permutation(o->o.seed, o->class_stream ^ round, epoch, (uint64_t)c, n);
    return o->number[o->first[c] + (int64_t)cvy_permutation_at(&p, (uint64_t)(nth % n))];
}

/* Numbers by class, classes without samples left out. */
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
    CVY_CHECK(info->nclasses > 0, CVY_E_CONFIG, "data.balance is class, but %s has no classes",
              info->path ? info->path : info->format);
    CVY_CHECK(o->o.shuffle == CVY_SHUFFLE_ALL, CVY_E_CONFIG,
              "data.balance: class draws samples from everywhere: it goes with data.shuffle: true only");
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

void cvy_epoch_order_get(const cvy_epoch_order *o, uint64_t epoch, int64_t batch_first, int64_t batch_n, int64_t first,
                         int64_t n, int64_t *number_out)
{
    if (o->block > 0) {
        get_windows(o, epoch, batch_first, batch_n, first, n, number_out);
        return;
    }
    const cvy_permutation order = cvy_permutation_make(o->o.seed, epoch, (uint64_t)o->nsamples);
    for (int64_t i = 0; i < n; i++) {
        const int64_t place = batch_first + first + i;
        if (o->nclasses > 0)
            number_out[i] = balanced_at(o, &order, epoch, place);
        else
            number_out[i] =
                o->o.shuffle == CVY_SHUFFLE_ALL ? (int64_t)cvy_permutation_at(&order, (uint64_t)place) : place;
    }
}

int64_t cvy_epoch_order_block(const cvy_epoch_order *o)
{
    return o->block;
}

/* What the job gives, in whole blocks of the format. */
static int64_t choose_block(int64_t asked, int64_t stored)
{
    if (asked <= 0)
        return stored > 0 ? stored : WINDOW_BLOCK;
    return stored > 0 ? (asked + stored - 1) / stored * stored : asked;
}

cvy_status cvy_epoch_order_create(cvy_dataset *d, const cvy_order_opts *opts, cvy_epoch_order **out)
{
    cvy_epoch_order *o = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *o, &o));
    o->o = *opts;
    o->nsamples = cvy_dataset_describe(d)->nsamples;
    o->window_stream = cvy_rng_name("order.window");
    o->class_stream = cvy_rng_name("order.class");
    if (opts->shuffle == CVY_SHUFFLE_WINDOW)
        o->block = CVY_MIN(choose_block(CVY_MIN(opts->window, o->nsamples), cvy_dataset_reader_info(d)->window_block),
                           o->nsamples);
    const cvy_status status = opts->balance ? prepare_balance(o, d) : CVY_OK;
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
    cvy_mem_free(&(*o)->first);
    cvy_mem_free(&(*o)->number);
    cvy_mem_free(o);
}
