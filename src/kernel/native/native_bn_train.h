/*
 * native_bn_train.h: what the loops of bn_train and bn_train_grad go by. They walk f32 or bf16 in runs of sixteen: one
 * position's block of channels, blocks of neighbouring positions, neighbouring positions of one channel, or with
 * channels last sixteen channels of one position after the other. So sums and coefficients have sixteen lanes in every
 * layout.
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

/* Of one dtype. A walk begins at element 0; its runs lie `step` elements apart, and before `elems`, which may cut off
 * the last one. */
typedef struct cvy_bn_loops {
    /* Adds x and x^2 to the sums, lane by lane. */
    void (*sums)(const void *x, int64_t elems, int64_t step, cvy_bn_sums sums);
    /* y, plus residual (may be NULL, may be dst), rectified with relu. */
    void (*apply)(const void *x, const void *residual, const cvy_bn_coef *coef, int relu, int64_t elems, int64_t step,
                  void *dst);
    /* Adds d and d * (x - mean) to the sums. d: ddst, where y > 0 if `y` is given (then it is stored to dres, which may
     * be ddst), where the normalised x is > 0 if relu is set. */
    void (*grad_sums)(const void *x, const void *ddst, const void *y, const cvy_bn_coef *coef, int relu, int64_t elems,
                      int64_t step, void *dres, cvy_bn_sums sums);
    /* dsrc, which may be ddst. */
    void (*grad_apply)(const void *x, const void *ddst, const cvy_bn_coef *coef, int relu, int64_t elems, int64_t step,
                       void *dsrc);
} cvy_bn_loops;

#endif
