/*
 * op_counted_samples.c: which samples count in what layers compute from several samples: those with a weight. Skipped
 * samples, and those that only fill a batch up, have weight 0.
 *
 *     counted[n] = 1 if any element of any weight of sample n is not 0, else 0
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph_op.h"

static cvy_status counted_samples_infer(cvy_node *node)
{
    const cvy_shape counted = {.ndim = 1,
                               .dim = {cvy_node_src(node, 0)->ndim > 0 ? cvy_node_src(node, 0)->dim[0] : -1}};
    for (int i = 0; i < node->nsrc; i++)
        CVY_CHECK(cvy_node_src(node, i)->ndim > 0 && cvy_node_src(node, i)->dim[0] == counted.dim[0], CVY_E_SHAPE,
                  "weight %s is %s, expected one or more for each of the samples of %s, %s", node->src[i]->name,
                  cvy_shape_text(cvy_node_src(node, i)), node->src[0]->name, cvy_shape_text(cvy_node_src(node, 0)));
    return cvy_node_set_dst(node, 0, CVY_DTYPE_I32, &counted);
}

static cvy_status counted_samples_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    for (int64_t n = 0; n < dst->elems; n++) {
        int counts = 0;
        for (int i = 0; i < node->nsrc && !counts; i++) {
            const int64_t each = cvy_span_prod(&src[i], 1, src[i].ndim);
            for (int64_t e = n * each; e < (n + 1) * each && !counts; e++)
                counts = cvy_get(&src[i], e) != 0;
        }
        cvy_set(dst, n, counts);
    }
    return CVY_OK;
}

static const cvy_sample counted_samples_samples[] = {
    {.src = "5:i32"},
    {.src = "7:i32,7x3:i32"},
    {.src = "4x3x2"},
    {0},
};

CVY_OP_DEFINE(counted_samples) = {
    .name = "counted_samples",
    .summary = "which samples have a weight that is not 0",
    .nsrc_min = 1,
    .nsrc_max = CVY_NODE_SRC_MAX - 1,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN | CVY_OP_COUNTS_WEIGHTS,
    .splits = CVY_SPLIT_SAMPLES,
    .infer = counted_samples_infer,
    .reference = counted_samples_reference,
    .samples = counted_samples_samples,
};
