/*
 * native_bn_train.h: what the loops of bn_train and bn_train_grad go by. They walk planes of `elems` floats in runs of
 * sixteen: one position's block of channels, blocks of neighbouring positions, or neighbouring positions of one channel.
 * So sums and coefficients have sixteen lanes in every layout.
 */
#ifndef CVY_NATIVE_BN_TRAIN_H
#define CVY_NATIVE_BN_TRAIN_H

#include "kernel/native/native_common.h"

enum { CVY_BN_LANES = 16 };

/* Of one block of channels in one group of samples; padding lanes are zero. */
typedef struct cvy_bn_coef {
    float mean[CVY_BN_LANES], factor[CVY_BN_LANES], shift[CVY_BN_LANES]; /* y = (x - mean) * factor + shift */
    float slope[CVY_BN_LANES], offset[CVY_BN_LANES];                     /* dsrc = factor * d + slope * x + offset */
} cvy_bn_coef;

typedef double cvy_bn_sums[2][CVY_BN_LANES];

typedef struct cvy_bn_loops {
    /* Adds x and x^2 to the sums, lane by lane. */
    void (*sums)(const float *x, int64_t elems, cvy_bn_sums sums);
    /* y, plus residual (may be NULL, may be dst), rectified with relu. */
    void (*apply)(const float *x, const float *residual, const cvy_bn_coef *coef, int relu, int64_t elems, float *dst);
    /* Adds d and d * (x - mean) to the sums. d: ddst, where y > 0 if `y` is given (then it is stored to dres, which may
     * be ddst), where the normalised x is > 0 if relu is set. */
    void (*grad_sums)(const float *x, const float *ddst, const float *y, const cvy_bn_coef *coef, int relu,
                      int64_t elems, float *dres, cvy_bn_sums sums);
    /* dsrc, which may be ddst. */
    void (*grad_apply)(const float *x, const float *ddst, const cvy_bn_coef *coef, int relu, int64_t elems,
                       float *dsrc);
} cvy_bn_loops;

#endif
