/*
 * native_bn_train.h: what the loops of bn_train and bn_train_grad go by. They walk f32 or bf16 in runs of sixteen or
 * thirty-two elements: one position's block of channels, blocks of neighbouring positions, neighbouring positions of
 * one channel, or with channels last the channels of one position one run after the other. So sums and coefficients
 * have as many lanes as a run in every layout.
 */
#ifndef CVY_NATIVE_BN_TRAIN_H
#define CVY_NATIVE_BN_TRAIN_H

#include "kernel/native/native_common.h"

enum { CVY_BN_RUN_F32 = 16, CVY_BN_RUN_BF16 = 32, CVY_BN_LANES = 32 };

/* Of the channels of one run in one group of samples; padding lanes are zero. */
typedef struct cvy_bn_coef {
    float mean[CVY_BN_LANES], factor[CVY_BN_LANES], shift[CVY_BN_LANES]; /* y = (x - mean) * factor + shift */
    float slope[CVY_BN_LANES], offset[CVY_BN_LANES];                     /* dsrc = factor * d + slope * x + offset */
} cvy_bn_coef;

typedef double cvy_bn_sums[2][CVY_BN_LANES];

/* A piece of memory as rows of `step` elements, whole runs, that lie one behind the other; `elems` may cut off the last
 * row. What may be a slice of another tensor (the result, in the gradient what comes back) has its rows `pitch` apart.
 */
typedef struct cvy_bn_tile {
    int64_t elems, step, pitch;
    const char *x;
    const char *other; /* the residual, in the gradient bn_train's result; or NULL */
    const char *ddst;
    char *dst;  /* may be the residual, or ddst */
    char *dres; /* may be ddst; or NULL */
    int relu;
    int past; /* dst goes past the cache; all of its rows begin at whole lines */
} cvy_bn_tile;

/* Of one dtype. Coefficients and sums: one for each run of a row. */
typedef struct cvy_bn_loops {
    /* Adds x and x^2 to the sums, lane by lane. */
    void (*sums)(const cvy_bn_tile *t, cvy_bn_sums *sums);
    /* dst = y, plus residual, rectified with relu. */
    void (*apply)(const cvy_bn_tile *t, const cvy_bn_coef *coef);
    /* Adds d and d * (x - mean) to the sums. d: ddst, where the result is > 0 if that is given (then it is stored to
     * dres), where the normalised x is > 0 if relu is set. */
    void (*grad_sums)(const cvy_bn_tile *t, const cvy_bn_coef *coef, cvy_bn_sums *sums);
    /* dst = dsrc. */
    void (*grad_apply)(const cvy_bn_tile *t, const cvy_bn_coef *coef);
    int run;   /* elements */
    int lanes; /* of a vector */
} cvy_bn_loops;

/* Where element i of a run lies among the lanes. Two vectors of bf16 are loaded as one: first the even elements, then
 * the odd ones. */
static inline int64_t cvy_bn_lane(const cvy_bn_loops *l, int64_t i)
{
    if (l->run == CVY_BN_RUN_F32)
        return i;
    return i / (2 * l->lanes) * (2 * l->lanes) + i % 2 * l->lanes + i % (2 * l->lanes) / 2;
}

#endif
