/*
 * op_noise.h: the options of the operator noise, for its kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_NOISE_H
#define CVY_OP_NOISE_H

#include "base/number/base_rng.h"
#include "op/tensor/op_per_sample.h"

enum { CVY_NOISE_NORMAL, CVY_NOISE_UNIFORM };
struct cvy_noise {
    struct cvy_per_sample of; /* first */
    int distribution;
};

/* The numbers of a sample: element i is the normal or uniform number i of the stream. step: -1 in evaluation. */
static inline cvy_rng cvy_noise_stream(uint64_t seed, uint64_t layer, int64_t step, int64_t id)
{
    return cvy_rng_make_hashed(seed, layer, (uint64_t)step, (uint64_t)id);
}

#endif
