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

#include "graph/graph_op.h"

static const cvy_option noise_opts[] = {
    {"shape", CVY_TYPE_INTS, CVY_FIELD(cvy_noise, shape), NULL, "1..", "", "dimensions of a sample"},
    {"distribution", CVY_TYPE_CHOICE, CVY_FIELD(cvy_noise, distribution), "normal", "normal|uniform", "",
     "normal: mean 0, deviation 1; uniform: from -1 to 1"},
    {0},
};

static cvy_status noise_build(cvy_graph *g, const cvy_op_def *op, const char *name, const cvy_tree *options,
                              cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    struct cvy_noise o;
    cvy_node *node = NULL;
    cvy_value *from[2] = {NULL};
    (void)src;
    CVY_CHECK(nsrc == 1, CVY_E_SHAPE, "noise takes one source, got %d", nsrc);
    CVY_TRY(cvy_options_parse(g->pool, name, op->options, options, NULL, &o, sizeof o));
    CVY_TRY(cvy_graph_sample_id(g, &from[0]));
    if (g->training)
        CVY_TRY(cvy_graph_step_number(g, &from[1]));
    CVY_TRY(cvy_graph_add_parsed(g, op, name, name, &o, from, g->training ? 2 : 1, CVY_PHASE_MICRO, &node));
    *dst_out = node->dst[0];
    return CVY_OK;
}

/* sample id i64 [N] [, step i64 scalar] -> dst [N, shape]. */
static cvy_status noise_infer(cvy_node *node)
{
    const struct cvy_noise *o = node->options;
    const cvy_shape *id = cvy_node_src(node, 0);
    cvy_shape dst = {.ndim = 1 + o->shape.count};
    CVY_CHECK(id->ndim == 1 && node->src[0]->dtype == CVY_DTYPE_I64, CVY_E_SHAPE, "noise needs sample ids, got %s",
              cvy_shape_text(id));
    CVY_CHECK(o->shape.count >= 1 && o->shape.count < CVY_NDIM_MAX, CVY_E_SHAPE,
              "noise has %d dimensions, expected 1 to %d", o->shape.count, CVY_NDIM_MAX - 1);
    dst.dim[0] = id->dim[0];
    for (int i = 0; i < o->shape.count; i++)
        dst.dim[1 + i] = o->shape.at[i];
    return cvy_node_set_dst(node, 0, node->graph->dtype, &dst);
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
    .infer = noise_infer,
    .build = noise_build,
    .cost = noise_cost,
    .reference = noise_reference,
    .samples = noise_samples,
};
