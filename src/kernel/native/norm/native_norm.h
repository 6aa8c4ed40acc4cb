/*
 * native_norm.h: the frame of norms that sum the channels of planes of memory and then apply coefficients to them:
 * bn_train, group_norm and their gradients, on f32 and bf16.
 *
 * An item is normalised by itself. It has some planes of memory, in one sample or in several. If there are enough items
 * for all threads, one thread walks over an item twice: it sums, makes coefficients of the sums, and applies them while
 * the item is still in the cache. Otherwise items are cut into parts: all parts are summed first, and then all are
 * applied.
 *
 * The channels of a plane repeat after `step` elements, the least common multiple of the block and the run of the loops
 * (native_bn_train.h); that is `cols` columns of runs. A plane is walked in tiles of several rows of `step` elements.
 * The second walk goes backwards, because what the first walk read last is still in the cache.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_NORM_H
#define CVY_NATIVE_NORM_H

#include "kernel/native/norm/native_bn_train.h"

typedef struct cvy_norm {
    cvy_planes p;
    const cvy_bn_loops *loops;
    size_t bytes;             /* of an element */
    int64_t step, cols, rows; /* a plane has `rows` rows of `step` elements, in `cols` runs */
    int64_t planes;           /* of an item that have channels of their own, at most */
    int64_t items, parts;     /* parts: of an item */
    int64_t slots;            /* whole items that have coefficients and sums at the same time */
    int threads, relu, scale_shift;
    /* See cvy_planes; of the tensor that may be a slice: the result; in the gradient, ddst. */
    int64_t sliced_pitch, sliced_step;
    double eps;
    /* Of the running call. */
    const char *x, *other, *ddst; /* other: the residual, or in the gradient the result; ddst: NULL in forward */
    const float *scale, *shift;   /* NULL: none */
    char *dst, *dres;
    int stream;        /* the result is written with non-temporal stores */
    cvy_bn_coef *coef; /* [planes][cols] for each slot, or for each item if items have parts; in scratch memory */
    cvy_bn_sums *sums; /* [planes][cols] for each slot, or for each part; in scratch memory */
} cvy_norm;

/* What a norm does with an item. coef: [planes][cols] of the item; sums: [planes][cols] of a part, or of all parts, one
 * after the other. */
typedef struct cvy_norm_walks {
    void (*prepare)(const cvy_norm *s, int64_t item, cvy_bn_coef *coef); /* before the sums; NULL: nothing */
    void (*sum)(const cvy_norm *s, int64_t item, int64_t part, const cvy_bn_coef *coef, cvy_bn_sums *sums);
    void (*finish)(const cvy_norm *s, int64_t item, const cvy_bn_sums *sums, cvy_bn_coef *coef);
    void (*apply)(const cvy_norm *s, int64_t item, int64_t part, const cvy_bn_coef *coef);
} cvy_norm_walks;
void cvy_norm_run(const cvy_norm *s, const cvy_norm_walks *walks);

/* ---- planning ---- */
/* CVY_NOT_APPLICABLE if the loops are not there for the node. */
cvy_status cvy_norm_check(const cvy_node *node);
/* All but the numbers of planes, items and parts. sliced: the planes of the tensor that may be a slice. */
cvy_norm cvy_norm_make(const cvy_kernel_ask *ask, const cvy_planes *p, const cvy_planes *sliced);
/* Chooses the parts of an item, at most `most`: as many as threads, if there are few items or a number that would leave
 * threads without work. In deterministic mode it is one, because sums must not depend on the number of threads. */
void cvy_norm_cut(cvy_norm *s, int deterministic, int64_t most);
/* Number of arrays [planes][cols] of coefficients; bytes of them and of the sums. */
int64_t cvy_norm_ncoef(const cvy_norm *s);
size_t cvy_norm_scratch(const cvy_norm *s);
/* Whether the result may be written with non-temporal stores: it must be large, not in the memory of a source, and each
 * row must begin at a cache line. */
int cvy_norm_may_stream(const cvy_norm *s);

/* ---- for the walks ---- */
/* Sums rows begin .. end - 1 of plane g of sample n; in the gradient, with these coefficients of the plane. */
void cvy_norm_sum_rows(const cvy_norm *s, int64_t n, int64_t g, int64_t begin, int64_t end, const cvy_bn_coef *coef,
                       cvy_bn_sums *sums);
void cvy_norm_apply_rows(const cvy_norm *s, int64_t n, int64_t g, int64_t begin, int64_t end, const cvy_bn_coef *coef);
/* Rows first .. end - 1 of a plane. */
cvy_bn_tile cvy_norm_tile(const cvy_norm *s, int64_t n, int64_t g, int64_t first, int64_t end);

/* Coefficients of one channel: see cvy_bn_coef. */
typedef struct cvy_norm_channel {
    double mean, factor, shift, slope, offset;
} cvy_norm_channel;
/* channel: of the item. */
void cvy_norm_set(const cvy_norm *s, cvy_bn_coef *coef, int64_t channel, const cvy_norm_channel *c);
/* Adds the two sums of a channel of an item over its parts. */
void cvy_norm_total(const cvy_norm *s, const cvy_bn_sums *sums, int64_t channel, double out[2]);

static inline int64_t cvy_norm_plane_elems(const cvy_norm *s)
{
    return s->p.positions * s->p.block;
}

static inline void cvy_norm_clear_sums(const cvy_norm *s, cvy_bn_sums *sums)
{
    memset(sums, 0, (size_t)(s->planes * s->cols) * sizeof *sums);
}

/* Padding lanes keep these coefficients, so that they stay zero. */
static inline void cvy_norm_clear_coef(const cvy_norm *s, cvy_bn_coef *coef)
{
    memset(coef, 0, (size_t)(s->planes * s->cols) * sizeof *coef);
}

#endif
