/*
 * native_amx_split_weight.c: the gradient of an f32 convolution's weights and bias on tiles (AMX), each value in three
 * parts of bf16.
 *
 * This is the third pass of the convolutions of native_amx_split_conv.c. The sum runs over positions, so these must be
 * adjacent in the tiles. A tile of one operand, called transposed, is [16 channels][32 positions] (a transpose). A tile
 * of the other operand, called paired, is [16 pairs of positions][16 channels][2]. Both are made for one chunk of bands
 * (native_amx_window.h) at a time. The transposed side of a chunk is made as a whole and stays in the cache; the paired
 * side is made one group of channels at a time, just before it is multiplied.
 *
 * For a filter of several taps the source is the paired side. Each tap reads the same pairs from another start. Taps
 * that are an odd number of positions away read a second set of pairs, which begins one position later. For a filter of
 * one tap the side with fewer channels is transposed. ddst is 0 for positions of a row that do not exist.
 *
 * If the weights are small, each thread makes and sums its own chunks of bands, and the sums of the threads are added
 * in order. If they are large, all threads share the transposed side of a chunk, and each owns a part of the weights.
 * In both cases a result depends only on the number of threads. The arithmetic is described in native_amx_split.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "kernel/native/amx/native_amx_split.h"
#include "kernel/native/native_common.h"

enum {
    TRANSPOSED_VALUES = 1 << 17, /* of a chunk: 768 KB, a third of a core's second-level cache */
    PAIRED_VALUES = 3 << 15,     /* of a group: 576 KB */
    CHUNK_POSITIONS = 64,        /* at least: each chunk reads and writes the sums of the weights once */
    CHUNK_POSITIONS_MAX = 512,   /* so that a strip stays in the first-level cache */
    OWN_FLOATS = 1 << 18,        /* up to this size of weights each thread has its own sums: 1 MB */
    PARTS = CVY_SPLIT_PARTS,
    ROWS = CVY_AMX_ROWS,
    BLOCK = CVY_AMX_BLOCK,
    TILE = CVY_AMX_TILE,
    TILE_SUMS = ROWS * ROWS
};

struct split_weight;

/* Bands begin .. end - 1 and the sums over them. */
struct part {
    const struct split_weight *s;
    int64_t begin, end;
    int64_t first, count; /* the bands of the chunk */
    cvy_bf16 *transposed;
    float *sums, *bias; /* sums of the weights; of ddst, for each band of the chunk */
    double *total;      /* sums of ddst over all bands */
};

/* One of the two activations. */
struct operand {
    cvy_amx_window w; /* without taps for ddst */
    cvy_split_side side;
    int64_t each; /* positions of a band, in whole blocks of 32 */
    const float *data;
};

struct split_weight {
    const cvy_amx *tiles;
    const cvy_amx_split *split;
    struct operand x, d; /* the source; ddst */
    int transposes_x;    /* 1: the transposed side is the source; 0: ddst */
    int threads, has_bias, nparts;
    int64_t taps, chunk, bands;    /* chunk: bands of a chunk; bands: all bands */
    int64_t sets;                  /* sets of pairs: 2 if a tap may be an odd number of positions away */
    int64_t group;                 /* pairs of blocks of the paired side that are made together */
    int64_t a_part, b_set, b_part; /* elements between parts of a transposed block; sets, parts of a paired one */
    int64_t strip_floats, paired_elems, weight_floats; /* scratch memory: two of a thread, the last of a part */
    cvy_split_offsets at;
    int64_t shift[CVY_AMX_TAPS_MAX];      /* by the index of the tap in the filter */
    cvy_amx_shift band[CVY_AMX_TAPS_MAX]; /* where each band of the chunk begins on both sides */
    struct part *part;
    /* Of the running call. */
    float *dweight, *strips;
};

/* A thread and its share of the sums. column, row: pairs of blocks of the paired side, of the transposed side. */
struct worker {
    const struct part *part;
    int64_t column, column_end, row, row_end;
    int64_t strip, strip_end; /* strips of the transposed side which it makes */
    float *copy;
    cvy_bf16 *paired;
};

/* ---- a chunk's tiles ---- */

static const struct operand *transposed_side(const struct split_weight *s)
{
    return s->transposes_x ? &s->x : &s->d;
}

static const struct operand *paired_side(const struct split_weight *s)
{
    return s->transposes_x ? &s->d : &s->x;
}

/* Returns a block of 16 channels of a band, and one more position: a pointer into the activation if the positions are
 * contiguous, else a copy in which padding, and the end, are zeros. */
static const float *strip_of(const struct split_weight *s, const struct operand *o, int64_t band, int64_t block,
                             float *copy)
{
    const int64_t staged = cvy_amx_window_staged(&o->w);
    for (int64_t at = 0; at < staged;) {
        cvy_split_run run = cvy_split_run_at(&o->w, &o->side, band / o->w.bands, band % o->w.bands, at);
        const float *from = o->data + run.from + block * o->side.plane;
        run.count = CVY_MIN(run.count, staged - at);
        if (run.from >= 0 && run.count == o->each && run.step == ROWS && s->sets == 1)
            return from;
        if (run.from >= 0)
            s->split->store(from, run.step, run.count, 0, 0, copy + at * ROWS, ROWS);
        else
            memset(copy + at * ROWS, 0, (size_t)(run.count * ROWS) * sizeof *copy);
        at += run.count;
    }
    memset(copy + staged * ROWS, 0, (size_t)((o->each + 1 - staged) * ROWS) * sizeof *copy);
    return copy;
}

/* The tiles are [block][part][band of the chunk][32 positions]. */
static void transpose_block(const struct part *part, int64_t i, int64_t block, const float *from)
{
    const struct split_weight *s = part->s;
    cvy_bf16 pairs[PARTS * TILE] __attribute__((aligned(64))),
        *to = part->transposed + block * PARTS * s->a_part + s->band[i].a;
    for (int64_t p = 0; p < transposed_side(s)->each; p += BLOCK, from += BLOCK * ROWS, to += TILE) {
        s->split->split(from, from + ROWS, (int64_t)2 * ROWS, ROWS, pairs, TILE);
        for (int k = 0; k < PARTS; k++)
            s->split->transpose(pairs + k * TILE, ROWS, to + k * s->a_part, ROWS);
    }
}

/* The tiles are [block of the group][part][set][band of the chunk][16 pairs]. */
static void pair_block(const struct part *part, int64_t i, const float *from, cvy_bf16 *to)
{
    const struct split_weight *s = part->s;
    for (int64_t set = 0; set < s->sets; set++)
        s->split->split(from + set * ROWS, from + (set + 1) * ROWS, (int64_t)2 * ROWS, paired_side(s)->each / 2,
                        to + s->band[i].b + set * s->b_set, s->b_part);
}

/* Returns a strip of either side. A strip of ddst is also summed, for the bias, by one of the threads that make it. */
static const float *make_strip(const struct worker *w, const struct operand *o, int64_t i, int64_t block)
{
    const struct part *part = w->part;
    const struct split_weight *s = part->s;
    const float *from = strip_of(s, o, part->first + i, block, w->copy);
    if (o == &s->d && s->has_bias && (o == transposed_side(s) || w->row == 0)) {
        float *sums = part->bias + (i * o->side.blocks + block) * ROWS;
        memset(sums, 0, ROWS * sizeof *sums);
        s->split->add_up(from, ROWS, o->each, sums);
    }
    return from;
}

static void transpose_strips(const struct worker *w)
{
    const struct part *part = w->part;
    for (int64_t item = w->strip; item < w->strip_end; item++) {
        const int64_t block = item / part->count, i = item % part->count;
        transpose_block(part, i, block, make_strip(w, transposed_side(part->s), i, block));
    }
}

static void pair_group(const struct worker *w, int64_t column, int64_t end)
{
    const struct part *part = w->part;
    const struct split_weight *s = part->s;
    const struct operand *o = paired_side(s);
    for (int64_t block = 2 * column; block < CVY_MIN(2 * end, o->side.blocks); block++)
        for (int64_t i = 0; i < part->count; i++)
            pair_block(part, i, make_strip(w, o, i, block), w->paired + (block - 2 * column) * PARTS * s->b_part);
}

/* ---- a chunk's sums ---- */

static int64_t pairs_of(const struct operand *o)
{
    return (o->side.blocks + 1) / 2;
}

/* The strips that are made next, of bands first .. first + count - 1, block by block. They are prefetched into the
 * core's cache while the tiles work. */
struct prefetch {
    const struct operand *o;
    int64_t first, count, strip, end, at;
};

static void add_prefetch(struct prefetch *p, int64_t quota, cvy_split_sum *sum)
{
    const int64_t block = p->strip / p->count, band = p->first + p->strip % p->count;
    const cvy_amx_window *w = &p->o->w;
    const cvy_split_side *side = &p->o->side;
    const int64_t height = side->flat ? side->positions : w->src_h, row = band % w->bands * w->rows + w->src_base;
    const int64_t sample = side->flat ? row / height : band / w->bands, y = CVY_MAX(0, side->flat ? row % height : row);
    /* Without a stride, the rows of a strip are contiguous in memory, so they are one run of vectors. Strided rows are
     * left to the hardware prefetcher. */
    const int64_t width = side->flat ? 1 : w->src_w,
                  have = w->src_step == 1 ? CVY_MIN(height - y, w->rows + w->reach) * width - p->at : 0;
    const int64_t count = CVY_MIN(have, quota), products = 6 * sum->blocks * sum->taps;
    if (count > 0) {
        sum->prefetch = p->o->data + sample * side->sample + block * side->plane + (y * width + p->at) * ROWS;
        sum->prefetch_step = ROWS;
        sum->prefetch_count = (int)((count + products - 1) / products);
    }
    p->at += count;
    if (count >= have) {
        p->at = 0;
        p->strip++;
    }
}

/* Finds what a worker makes after the group that ends before column `end`: its next group, or its part of the next
 * chunk. */
static void plan_prefetch(const struct worker *w, int64_t end, struct prefetch *p)
{
    const struct part *part = w->part;
    const struct split_weight *s = part->s;
    const int64_t next = part->first + part->count, count = CVY_MIN(s->chunk, part->end - next),
                  blocks = paired_side(s)->side.blocks;
    p[0] = (struct prefetch){.o = transposed_side(s), .first = next, .count = count};
    p[1] = (struct prefetch){.o = paired_side(s), .first = part->first, .count = part->count};
    int64_t column = end;
    if (end == w->column_end) {
        column = w->column;
        p[1].first = next;
        p[1].count = count;
        if (count > 0 && part->count > 0) {
            p[0].strip = w->strip * count / part->count;
            p[0].end = w->strip_end * count / part->count;
        }
    }
    if (p[1].count > 0) {
        p[1].strip = 2 * column * p[1].count;
        p[1].end = CVY_MIN(2 * CVY_MIN(column + s->group, w->column_end), blocks) * p[1].count;
    }
}

/* The sum for 32 x 32 channels and one tap. The sums are [block of rows][block of columns][tap][16][16]. */
static cvy_split_sum sum_of(const struct worker *w, int64_t row, int64_t column, int64_t group, int64_t tap)
{
    const struct part *part = w->part;
    const struct split_weight *s = part->s;
    const int64_t columns = paired_side(s)->side.blocks;
    return (cvy_split_sum){
        .a = part->transposed + 2 * row * PARTS * s->a_part,
        .b = w->paired + 2 * (column - group) * PARTS * s->b_part + s->shift[tap],
        .a_block = TILE,
        .a_part = s->a_part,
        .a_row = PARTS * s->a_part,
        .b_block = TILE,
        .b_part = s->b_part,
        .b_column = PARTS * s->b_part,
        .blocks = transposed_side(s)->each / BLOCK,
        .taps = part->count,
        .tap = s->band,
        .c = part->sums + ((2 * row * columns + 2 * column) * s->taps + tap) * TILE_SUMS,
        .c_line = ROWS,
        .c_row = columns * s->taps * TILE_SUMS,
        .c_column = s->taps * TILE_SUMS,
        .rows = (int)CVY_MIN(2, transposed_side(s)->side.blocks - 2 * row),
        .columns = (int)CVY_MIN(2, columns - 2 * column),
        .add = part->first > part->begin,
    };
}

/* Computes a worker's part of the sums of a chunk, one group of the paired side after the other. */
static void sum_groups(const struct worker *w)
{
    const struct split_weight *s = w->part->s;
    s->tiles->begin();
    for (int64_t group = w->column; group < w->column_end; group += s->group) {
        const int64_t end = CVY_MIN(group + s->group, w->column_end),
                      sums = (end - group) * (w->row_end - w->row) * s->taps;
        struct prefetch prefetch[2];
        plan_prefetch(w, end, prefetch);
        const int64_t quota = ((prefetch[0].end - prefetch[0].strip) * transposed_side(s)->each +
                               (prefetch[1].end - prefetch[1].strip) * paired_side(s)->each) /
                                  CVY_MAX(1, sums) +
                              1;
        pair_group(w, group, end);
        for (int64_t row = w->row; row < w->row_end; row++)
            for (int64_t column = group; column < end; column++)
                for (int64_t tap = 0; tap < s->taps; tap++) {
                    cvy_split_sum sum = sum_of(w, row, column, group, tap);
                    struct prefetch *next = prefetch[0].strip < prefetch[0].end ? &prefetch[0] : &prefetch[1];
                    if (next->strip < next->end)
                        add_prefetch(next, quota, &sum);
                    s->split->products(&sum);
                }
    }
    s->tiles->end();
}

static void add_bias_sums(const struct part *part)
{
    const struct split_weight *s = part->s;
    const int64_t each = s->d.side.blocks * ROWS;
    for (int64_t i = 0; s->has_bias && i < part->count; i++)
        for (int64_t k = 0; k < s->d.side.channels; k++)
            part->total[k] = (part->first + i > part->begin ? part->total[k] : 0) + (double)part->bias[i * each + k];
}

/* ---- running ---- */

static int next_chunk(struct part *part)
{
    part->first = part->count ? part->first + part->count : part->begin;
    part->count = CVY_MIN(part->s->chunk, part->end - part->first);
    return part->count > 0;
}

/* The share of thread t of those that share a part. Pairs of columns are distributed first, then pairs of rows. */
static struct worker worker_of(const struct part *part, int64_t t, int64_t threads)
{
    const struct split_weight *s = part->s;
    const int64_t columns = pairs_of(paired_side(s)), rows = pairs_of(transposed_side(s)),
                  across = CVY_MIN(threads, columns), down = threads / across, x = t % across, y = t / across,
                  strips = part->count * transposed_side(s)->side.blocks;
    struct worker w = {.part = part, .strip = strips * t / threads, .strip_end = strips * (t + 1) / threads};
    if (y < down) {
        w.column = columns * x / across;
        w.column_end = columns * (x + 1) / across;
        w.row = rows * y / down;
        w.row_end = rows * (y + 1) / down;
    }
    return w;
}

/* Gives thread t of the call its scratch memory. */
static void assign_scratch(const struct split_weight *s, int64_t t, struct worker *w)
{
    w->copy = s->strips + t * (s->strip_floats + s->paired_elems / 2);
    w->paired = (cvy_bf16 *)(void *)(w->copy + s->strip_floats);
}

/* Work item: one thread. */
static void transpose_of_thread(int64_t begin, int64_t end, void *arg)
{
    const struct part *part = arg;
    for (int64_t t = begin; t < end; t++) {
        struct worker w = worker_of(part, t, part->s->threads);
        assign_scratch(part->s, t, &w);
        transpose_strips(&w);
    }
}

/* Work item: one thread. */
static void sum_of_thread(int64_t begin, int64_t end, void *arg)
{
    const struct part *part = arg;
    for (int64_t t = begin; t < end; t++) {
        struct worker w = worker_of(part, t, part->s->threads);
        assign_scratch(part->s, t, &w);
        sum_groups(&w);
    }
}

static void run_shared(struct part *part)
{
    const struct split_weight *s = part->s;
    while (next_chunk(part)) {
        cvy_parallel_for(s->threads, s->threads, 1, transpose_of_thread, part);
        cvy_parallel_for(s->threads, s->threads, 1, sum_of_thread, part);
        add_bias_sums(part);
    }
}

/* Work item: one part. */
static void run_parts(int64_t begin, int64_t end, void *arg)
{
    const struct split_weight *s = arg;
    for (int64_t t = begin; t < end; t++)
        for (struct part *part = &s->part[t]; next_chunk(part);) {
            struct worker w = worker_of(part, 0, 1);
            assign_scratch(s, t, &w);
            transpose_strips(&w);
            sum_groups(&w);
            add_bias_sums(part);
        }
}

/* Adds the sums of all parts for one tile. The result has a row for each channel of the source. */
static const float *tile_of(const struct split_weight *s, int64_t at, float *local)
{
    float transposed[TILE_SUMS];
    memcpy(local, s->part[0].sums + at, TILE_SUMS * sizeof *local);
    for (int p = 1; p < s->nparts; p++)
        for (int i = 0; i < TILE_SUMS; i++)
            local[i] += s->part[p].sums[at + i];
    if (!s->transposes_x) {
        s->split->transpose(local, ROWS, transposed, ROWS);
        memcpy(local, transposed, sizeof transposed);
    }
    return local;
}

/* Work item: a block of channels of the source. Copies its sums to the elements of the variable. */
static void unpack(int64_t begin, int64_t end, void *arg)
{
    const struct split_weight *s = arg;
    float local[TILE_SUMS];
    for (int64_t item = begin; item < end; item++)
        for (int64_t block = 0; block < s->d.side.blocks; block++)
            for (int64_t tap = 0; tap < s->taps; tap++) {
                const int64_t tile =
                    s->transposes_x ? item * s->d.side.blocks + block : block * s->x.side.blocks + item;
                const int64_t *c_at = s->at.c + item * ROWS, *k_at = s->at.k + block * ROWS;
                const float *from = tile_of(s, (tile * s->taps + tap) * TILE_SUMS, local);
                float *to = s->dweight + s->at.tap[tap];
                int64_t row = 0, column = 0;
                if (cvy_split_is_even(c_at, &row) & cvy_split_is_even(k_at, &column) & (column == 1)) {
                    s->split->store(from, ROWS, ROWS, 0, 0, to + c_at[0] + k_at[0], row);
                    continue;
                }
                for (int i = 0; i < ROWS; i++)
                    for (int j = 0; j < ROWS; j++)
                        if (c_at[i] >= 0 && k_at[j] >= 0)
                            to[c_at[i] + k_at[j]] = from[i * ROWS + j];
            }
}

/* Scratch memory of one part, in this order: transposed, sums, bias, total. */
static size_t part_bytes(const struct split_weight *s)
{
    const int64_t k = s->has_bias ? s->d.side.blocks * ROWS : 0;
    return (size_t)(PARTS * transposed_side(s)->side.blocks * s->a_part) * sizeof(cvy_bf16) +
           (size_t)(s->weight_floats + s->chunk * k) * sizeof(float) + (size_t)k * sizeof(double);
}

static size_t thread_bytes(const struct split_weight *s)
{
    return (size_t)s->strip_floats * sizeof(float) + (size_t)s->paired_elems * sizeof(cvy_bf16);
}

static void share_scratch(struct split_weight *s, void *scratch)
{
    char *at = scratch;
    const int64_t k = s->has_bias ? s->d.side.blocks * ROWS : 0;
    s->strips = scratch;
    at += thread_bytes(s) * (size_t)s->threads;
    for (int p = 0; p < s->nparts; p++, at += part_bytes(s)) {
        struct part *part = &s->part[p];
        *part = (struct part){.s = s, .begin = s->bands * p / s->nparts, .end = s->bands * (p + 1) / s->nparts};
        part->transposed = (cvy_bf16 *)(void *)at;
        part->sums = (float *)(void *)(part->transposed + PARTS * transposed_side(s)->side.blocks * s->a_part);
        part->bias = part->sums + s->weight_floats;
        part->total = (double *)(void *)(part->bias + s->chunk * k);
    }
}

static cvy_status weight_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct split_weight *s = state;
    float *dbias = s->has_bias ? dst[1] : NULL;
    s->x.data = src[0];
    s->d.data = src[1];
    s->dweight = dst[0];
    share_scratch(s, scratch);
    if (s->nparts > 1)
        cvy_parallel_for(s->threads, s->nparts, 1, run_parts, s);
    else
        run_shared(&s->part[0]);
    if (s->at.floats > s->x.side.channels * s->d.side.channels * s->taps)
        memset(s->dweight, 0, (size_t)s->at.floats * sizeof *s->dweight);
    cvy_parallel_for(s->threads, s->x.side.blocks, 1, unpack, s);
    for (int64_t k = 0; dbias && k < s->d.side.channels; k++) {
        double total = 0;
        for (int p = 0; p < s->nparts; p++)
            total += s->part[p].total[k];
        dbias[k] = (float)total;
    }
    return CVY_OK;
}

/* ---- planning ---- */

/* The transposed side of a chunk and one group of its paired side fit into a core's second-level cache. */
static void divide_work(struct split_weight *s)
{
    cvy_amx_window *x = &s->x.w;
    s->weight_floats = s->x.side.blocks * s->d.side.blocks * s->taps * TILE_SUMS;
    s->sets = s->taps > 1 ? 2 : 1;
    const int own = s->weight_floats <= OWN_FLOATS && s->threads > 1;
    const int64_t each = s->sets * (s->transposes_x ? 1 : x->nplane) * BLOCK,
                  transposed = transposed_side(s)->side.blocks * ROWS,
                  room =
                      CVY_MAX(CHUNK_POSITIONS,
                              CVY_MIN(CHUNK_POSITIONS_MAX,
                                      CVY_MIN(TRANSPOSED_VALUES / transposed, PAIRED_VALUES / each) / BLOCK * BLOCK));
    cvy_amx_window_bands(x, (room + x->reach * x->pitch) * x->nplane, s->threads);
    cvy_amx_window_whole_blocks(x);
    cvy_amx_window_of_ddst(x, &s->d.w);
    s->bands = x->n * x->bands;
    s->nparts = own ? (int)CVY_MIN(s->threads, s->bands) : 1;
    s->d.each = cvy_amx_whole_blocks(x->rows * x->pitch);
    s->x.each = s->taps > 1 ? cvy_amx_whole_blocks(cvy_amx_window_staged(x) + BLOCK + x->pitch - x->w) : s->d.each;
    const int64_t bands = (s->bands + s->nparts - 1) / s->nparts,
                  most = CVY_MAX(1, CVY_MIN(CVY_AMX_TAPS_MAX, room / s->d.each)), nchunk = (bands + most - 1) / most;
    s->chunk = CVY_MAX(1, (bands + nchunk - 1) / nchunk);
    s->a_part = s->chunk * transposed_side(s)->each * ROWS;
    s->b_set = s->chunk * paired_side(s)->each * ROWS;
    s->b_part = s->sets * s->b_set;
    const int64_t across = own ? 1 : CVY_MIN(s->threads, pairs_of(paired_side(s))),
                  pairs = (pairs_of(paired_side(s)) + across - 1) / across,
                  most_pairs = CVY_MAX(1, PAIRED_VALUES / (2 * s->b_part)),
                  ngroup = (pairs + most_pairs - 1) / most_pairs;
    s->group = (pairs + ngroup - 1) / ngroup;
    s->paired_elems = 2 * s->group * PARTS * s->b_part;
    s->strip_floats = (CVY_MAX(s->x.each, s->d.each) + 1) * ROWS;
    for (int64_t i = 0; i < s->chunk; i++)
        s->band[i] = (cvy_amx_shift){i * transposed_side(s)->each * ROWS, i * paired_side(s)->each * ROWS};
    for (int t = 0; t < x->ntap; t++) {
        const int64_t away = cvy_amx_window_shift(x, &x->tap[t]), odd = away % 2;
        s->shift[x->tap[t].weight] = odd * s->b_set + (away - odd) * ROWS;
    }
}

static cvy_status fill_weight(const cvy_kernel_ask *ask, struct split_weight *s)
{
    const cvy_node *node = ask->node;
    const cvy_conv_grad_opts *g = node->options;
    cvy_window plain;
    cvy_window_channels c;
    CVY_TRY(cvy_native_f32(node));
    CVY_TRY(cvy_amx_split_get(&s->tiles, &s->split));
    CVY_TRY(cvy_conv_window(&g->conv, &g->src, &plain, &c));
    CVY_TRY(cvy_amx_window_make(&plain, &c, 0, &s->x.w));
    CVY_CHECK(c.nsrc >= ROWS && c.ndst >= ROWS, CVY_NOT_APPLICABLE,
              "split tiles need at least %d channels; this layer has %lld and %lld", ROWS, (long long)c.nsrc,
              (long long)c.ndst);
    CVY_CHECK(c.n > 0, CVY_NOT_APPLICABLE, "the batch is empty");
    s->x.side = cvy_split_side_make(&node->src[0]->shape, &ask->src[0], &plain);
    s->d.side = cvy_split_side_make(&node->src[1]->shape, &ask->src[1], &plain);
    s->threads = CVY_MAX(1, ask->threads);
    s->has_bias = g->conv.bias;
    s->taps = plain.taps;
    s->transposes_x = s->taps == 1 && s->x.side.blocks <= s->d.side.blocks;
    divide_work(s);
    return CVY_OK;
}

static cvy_status weight_offer(cvy_kernel_ask *ask)
{
    struct split_weight s = {0};
    ask->src[0] = ask->src[1] = cvy_layout_channels(4, ROWS);
    CVY_TRY(fill_weight(ask, &s));
    if (!ask->dst_fixed[0])
        ask->dst[0] = cvy_layout_make("ABcd16b16a");
    if (s.has_bias)
        ask->dst[1] = cvy_layout_plain();
    ask->scratch_bytes = (size_t)s.threads * thread_bytes(&s) + (size_t)s.nparts * part_bytes(&s);
    return CVY_OK;
}

static void weight_destroy(void *state)
{
    struct split_weight *s = state;
    if (s) {
        cvy_mem_free(&s->at.k);
        cvy_mem_free(&s->part);
    }
    cvy_mem_free(&s);
}

static cvy_status weight_create(const cvy_kernel_ask *ask, void **state_out)
{
    struct split_weight *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    cvy_status status = fill_weight(ask, s);
    if (status == CVY_OK)
        status = cvy_mem_alloc((size_t)s->nparts * sizeof *s->part, &s->part);
    if (status == CVY_OK)
        status = cvy_split_offsets_make(&ask->dst[0], cvy_node_dst(ask->node, 0), &s->at);
    if (status != CVY_OK) {
        weight_destroy(s);
        return status;
    }
    *state_out = s;
    return CVY_OK;
}

CVY_KERNEL_DEFINE(native_conv_split_grad_weight) = {
    .name = "native.conv_split_grad_weight",
    .op = "conv_grad_weight",
    .preference = 90,
    .thread_dependent = 1,
    .slice_src = 3,
    .offer = weight_offer,
    .create = weight_create,
    .run = weight_run,
    .destroy = weight_destroy,
};
