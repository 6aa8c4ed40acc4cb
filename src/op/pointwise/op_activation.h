/*
 * op_activation.h: options of activations and dropout, for the operators and their fast kernels.
 */
#ifndef CVY_OP_ACTIVATION_H
#define CVY_OP_ACTIVATION_H

#include "base/number/base_rng.h"
#include "graph/graph_op.h"

struct cvy_leaky_relu {
    double slope;
};

struct cvy_dropout {
    double p;
};

/* The mask of dropout; all kernels use this definition. Element i (logical row-major index in its sample) is dropped if
 * word i of the sample's random stream is below the threshold. Word i is cvy_rng_u32(stream, i); one block of the
 * generator gives the words of four consecutive elements. */
static inline cvy_rng cvy_dropout_stream(uint64_t seed, uint64_t layer_hash, int64_t step, int64_t sample_id)
{
    return cvy_rng_make_hashed(seed, layer_hash, (uint64_t)step, (uint64_t)sample_id);
}

/* The threshold has 64 bits, so that with p = 1 every 32-bit word is below it. */
static inline uint64_t cvy_dropout_threshold(double p)
{
    return (uint64_t)(p * 4294967296.0 + 0.5);
}

static inline double cvy_dropout_scale(double p)
{
    return p < 1 ? 1 / (1 - p) : 0;
}

#endif
