/*
 * native_bn_train.h: the parameters of the loops of bn_train and bn_train_grad.
 *
 * The loops walk f32 in runs of sixteen and bf16 in runs of thirty-two elements. Depending on the layout, a run is a
 * block of channels of one position, blocks of adjacent positions, adjacent positions of one channel, or (channels
 * last) some of the channels of one position. So in every layout sums and coefficients have as many lanes as a run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NATIVE_BN_TRAIN_H
#define CVY_NATIVE_BN_TRAIN_H

#include "kernel/native/native_common.h"

enum { CVY_BN_RUN_F32 = 16, CVY_BN_RUN_BF16 = 32, CVY_BN_LANES = 32 };

/* Coefficients for the channels of one run in one group of samples; padding lanes are zero. */
typedef struct cvy_bn_coef {
    float mean[CVY_BN_LANES], factor[CVY_BN_LANES], shift[CVY_BN_LANES]; /* y = (x - mean) * factor + shift */
    float slope[CVY_BN_LANES], offset[CVY_BN_LANES];                     /* dsrc = factor * d + slope * x + offset */
} cvy_bn_coef;

typedef double cvy_bn_sums[2][CVY_BN_LANES];

/* A part of an activation: contiguous rows of `step` elements, which are whole runs; the last row ends after `elems`
 * elements in total. The tensor that may be a slice of another one (the result; in the gradient, ddst) has its rows
 * `pitch` elements apart. */
typedef struct cvy_bn_tile {
    int64_t elems, step, pitch;
    const char *x;
    const char *other; /* the residual; in the gradient, the result of bn_train; or NULL */
    const char *ddst;
    char *dst;  /* may be the residual, or ddst */
    char *dres; /* may be ddst; or NULL */
    int relu;
    int stream; /* dst is written with non-temporal stores; each of its rows begins at a cache line */
} cvy_bn_tile;

/* The loops of one dtype. There is one element of coef and of sums for each run of a row. */
typedef struct cvy_bn_loops {
    /* Adds x and x^2 to the sums, lane by lane. */
    void (*sums)(const cvy_bn_tile *t, cvy_bn_sums *sums);
    /* dst = y, plus the residual if there is one, then ReLU if relu is set. */
    void (*apply)(const cvy_bn_tile *t, const cvy_bn_coef *coef);
    /* Adds d and d * (x - mean) to the sums. d is ddst, with these exceptions: if the result of bn_train is given, d is
     * 0 where that result is not positive, and d is stored to dres; else, if relu is set, d is 0 where the normalised x
     * is not positive. */
    void (*grad_sums)(const cvy_bn_tile *t, const cvy_bn_coef *coef, cvy_bn_sums *sums);
    /* Writes dsrc to dst. */
    void (*grad_apply)(const cvy_bn_tile *t, const cvy_bn_coef *coef);
    int run;   /* elements in a run */
    int lanes; /* floats in a vector */
} cvy_bn_loops;

/* The lane of element i of a run. Two vectors of bf16 are loaded as one: first the even elements, then the odd ones. */
static inline int64_t cvy_bn_lane(const cvy_bn_loops *l, int64_t i)
{
    if (l->run == CVY_BN_RUN_F32)
        return i;
    return i / (2 * l->lanes) * (2 * l->lanes) + i % 2 * l->lanes + i % (2 * l->lanes) / 2;
}

#endif
