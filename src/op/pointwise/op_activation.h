/*
 * op_activation.h: option structs of activations and dropout that their fast kernels read too.
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

/* The mask of dropout, one definition for every kernel: element i (row-major within its sample, logical) is dropped
 * where word i of the sample's stream is below the threshold. Word i is cvy_rng_u32(stream, i): one block of the
 * generator serves four consecutive elements. */
static inline cvy_rng cvy_dropout_stream(uint64_t seed, uint64_t layer_hash, int64_t step, int64_t sample_id)
{
    return cvy_rng_make_hashed(seed, layer_hash, (uint64_t)step, (uint64_t)sample_id);
}

/* In 64 bits, so that p = 1 drops every 32-bit word. */
static inline uint64_t cvy_dropout_threshold(double p)
{
    return (uint64_t)(p * 4294967296.0 + 0.5);
}

static inline double cvy_dropout_scale(double p)
{
    return p < 1 ? 1 / (1 - p) : 0;
}

#endif
