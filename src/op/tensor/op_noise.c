/*
 * noise: random numbers, independent for each sample, as the input of a generative network.
 *
 *     dst[n] = normal (0, 1), or uniform (-1, 1)
 *
 * The source gives the number of samples only. A number is a pure function of (seed, layer, step, sample id, element).
 * It does not depend on rank, layout or micro-batch. In evaluation there is no step: a sample has the same noise
 * whenever it is scored. Training steps that move different weights, with one count each, draw the same noise in a
 * layer of the same name. There is no gradient.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/tensor/op_noise.h"

static const cvy_option noise_opts[] = {
    {"shape", CVY_TYPE_INTS, CVY_FIELD(cvy_noise, of.shape), NULL, "1..", "", "dimensions of a sample"},
    {"distribution", CVY_TYPE_CHOICE, CVY_FIELD(cvy_noise, distribution), "normal", "normal|uniform", "",
     "normal: mean 0, deviation 1; uniform: from -1 to 1"},
    {0},
};

static cvy_status noise_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                              cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    struct cvy_noise o;
    CVY_TRY(cvy_per_sample_check(op, src, nsrc));
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    CVY_CHECK(o.of.shape.count > 0, CVY_E_SHAPE, "layer %s (noise): shape is empty, give the dimensions of a sample",
              name);
    return cvy_per_sample_add(g, op, name, &o, 1, dst_out);
}

/* The generator needs about thirty operations per element. */
static void noise_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = cvy_shape_elems(cvy_node_dst(node, 0));
    *cost_out = (cvy_cost){.flop = 30 * n, .write_elems = n};
}

static cvy_status noise_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const struct cvy_noise *o = node->options;
    const uint64_t layer = cvy_rng_name(node->layer);
    const int64_t N = dst->dim[0], each = cvy_span_prod(dst, 1, dst->ndim),
                  step = node->nsrc > 1 ? ((const int64_t *)src[1].data)[0] : -1;
    for (int64_t n = 0; n < N; n++) {
        const cvy_rng stream = cvy_noise_stream(node->graph->seed, layer, step, ((const int64_t *)src[0].data)[n]);
        for (int64_t i = 0; i < each; i++)
            cvy_set(dst, n * each + i,
                    o->distribution == CVY_NOISE_NORMAL ? cvy_rng_normal(&stream, (uint64_t)i)
                                                        : 2 * cvy_rng_uniform(&stream, (uint64_t)i) - 1);
    }
    return CVY_OK;
}

static const cvy_sample noise_samples[] = {
    {.src = "3:i64,scalar:i64", .options = "shape: 5", .int_bound = 1000},
    {.src = "2:i64", .options = "shape: [2, 3, 3], distribution: uniform", .int_bound = 1000},
    {.src = "3:i64,scalar:i64", .options = "shape: [2, 50, 21]", .int_bound = 1000},
    {0},
};

CVY_OP_DEFINE(noise) = {
    .name = "noise",
    .summary = "random numbers of each sample; its source gives their number",
    .options = noise_opts,
    .options_size = sizeof(struct cvy_noise),
    .flags = CVY_OP_COUNTS,
    .nsrc_min = 1,
    .nsrc_max = 2,
    .ndst = 1,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = cvy_per_sample_infer,
    .build = noise_build,
    .cost = noise_cost,
    .reference = noise_reference,
    .samples = noise_samples,
};
