/*
 * op_activation.h: what activations share: the functions of those whose gradient is a factor for each element, the
 * options that fast kernels read, and the mask of dropout.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_ACTIVATION_H
#define CVY_OP_ACTIVATION_H

#include <math.h>

#include "base/number/base_rng.h"
#include "graph/graph_op.h"

/* ---- activations: the `family` of the operator and of its gradient is a cvy_activation_def ---- */

typedef double (*cvy_activation_fn)(const void *options, double x);
typedef struct cvy_activation_def {
    const char *grad;        /* name of the gradient's operator; its sources are ddst, and src or dst */
    cvy_activation_fn value; /* dst of a source x */
    cvy_activation_fn slope; /* the derivative of value as a function of src, or of dst if from_dst is set */
    int from_dst;            /* the gradient reads dst, so that src need not be kept */
    int flop, slope_flop;    /* of one element; an exponential counts as ten */
} cvy_activation_def;

cvy_status cvy_activation_infer(cvy_node *node);
cvy_status cvy_activation_grad(cvy_grad *g, const cvy_node *fwd);
cvy_status cvy_activation_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst);
void cvy_activation_cost(const cvy_node *node, cvy_cost *cost_out);
/* The `grad` of a gradient operator with the sources ddst and dst that is linear in ddst: the same operator once more.
 * It leaves out the derivative for dst, which is zero if the activation is piecewise linear. */
cvy_status cvy_activation_grad_again(cvy_grad *g, const cvy_node *fwd);
/* For the gradient's operator: ddst, src or dst -> dsrc. */
cvy_status cvy_activation_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst);
void cvy_activation_grad_cost(const cvy_node *node, cvy_cost *cost_out);

/* The fields that all descriptors of activations and of their gradients have alike. Add CVY_OP_ELEMENTWISE to the flags
 * only if the value at 0 is 0, or the padding of a blocked layout would not stay zero. */
/* clang-format off */
#define CVY_ACTIVATION_FIELDS                                                                                          \
    .nsrc_min = 1, .nsrc_max = 1, .ndst = 1, .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,       \
    .infer = cvy_activation_infer, .grad = cvy_activation_grad, .cost = cvy_activation_cost,                           \
    .reference = cvy_activation_reference
#define CVY_ACTIVATION_GRAD_FIELDS                                                                                     \
    .nsrc_min = 2, .nsrc_max = 2, .ndst = 1, .splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,       \
    .flags = CVY_OP_ELEMENTWISE | CVY_OP_HIDDEN, .infer = cvy_activation_infer, .cost = cvy_activation_grad_cost,      \
    .reference = cvy_activation_grad_reference
/* clang-format on */

/* ---- options ---- */

struct cvy_leaky_relu {
    double slope;
};

struct cvy_prelu {
    int per_channel;
    double init;
};

struct cvy_elu {
    double alpha;
};

struct cvy_gelu {
    int tanh; /* 0: by the error function; 1: its approximation by a hyperbolic tangent */
};

struct cvy_clamp {
    double min, max; /* from CVY_CLAMP_NONE on there is no bound: use cvy_clamp_low and cvy_clamp_high */
};

struct cvy_hard_sigmoid {
    double alpha, beta;
};

struct cvy_offset {
    double by;
};

struct cvy_softplus {
    double beta, threshold;
};

#define CVY_CLAMP_NONE 1e38

static inline double cvy_clamp_low(const struct cvy_clamp *o)
{
    return o->min <= -CVY_CLAMP_NONE ? -INFINITY : o->min;
}

static inline double cvy_clamp_high(const struct cvy_clamp *o)
{
    return o->max >= CVY_CLAMP_NONE ? INFINITY : o->max;
}

/* ---- dropout ---- */

struct cvy_dropout {
    double p;
    cvy_tile place; /* of a part: the shape of a whole sample, and where the part begins in it; whole.ndim 0: no part */
};

/* The mask of dropout; all kernels use this definition. Element i (logical row-major index in its whole sample) is
 * dropped if word i of the sample's random stream is below the threshold. Word i is cvy_rng_u32(stream, i); one block
 * of the generator gives the words of four consecutive elements. */
static inline cvy_rng cvy_dropout_stream(uint64_t seed, uint64_t layer_hash, int64_t step, int64_t sample_id)
{
    return cvy_rng_make_hashed(seed, layer_hash, (uint64_t)step, (uint64_t)sample_id);
}

/* The threshold has 64 bits, so that with p = 1 every 32-bit word is below it. */
static inline uint64_t cvy_dropout_threshold(double p)
{
    return (uint64_t)(p * 4294967296.0 + 0.5);
}

/* The index in the whole sample of element i of a sample of this shape. */
static inline int64_t cvy_dropout_index(const struct cvy_dropout *o, const cvy_shape *sample, int64_t i)
{
    return o->place.whole.ndim ? cvy_tile_index(&o->place, sample, i) : i;
}

static inline double cvy_dropout_scale(double p)
{
    return p < 1 ? 1 / (1 - p) : 0;
}

#endif
