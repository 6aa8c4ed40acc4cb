/* rows: clang onednn3 minimal */
/*
 * test_kernel_winograd.c: the rounding error of every Winograd convolution, in each pass, with the channels and filters
 * of known networks' layers; the padding of blocked gradients is zero; and `precise` switches them all off.
 *
 * There are fewer filters and samples than in the networks, which changes no single result. The error is the root mean
 * square over that of the result, against sums in double, in f32 and on bf16 activations.
 *
 * The products of S channels (or tiles) are added one after the other, so the error grows with the square root of S as
 * that of a plain sum does. The transforms count as 64 more summands. Their factors amplify the error, by about as much
 * as the search over interpolation points found: bound = 1.3 eps sqrt(S + 64) for 6 points a side, 5 eps sqrt(S + 64)
 * for 8, and for 12 along a filter of one row or column. Under stride 2 four times as many channels are summed, in
 * volumes those of each slice of the filter.
 *
 * Kernels with products in bf16 round transformed values to 2^-9 of them, so the transforms amplify that error, and it
 * does not grow with S: bound = 2^-6 for 6x6 points or 8 along one dimension, and half of it for 6 along one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernel/conv_graph.h"

struct layer {
    const char *net, *src;
    const char *options;
};

static const struct layer layers[] = {
    {"alexnet-v2 conv2", "1x64x27x27", "kernel: 5, channels: 16, pad: 2"},
    {"alexnet-v2 conv3", "2x192x13x13", "kernel: 3, channels: 16, pad: 1"},
    {"cifar-convnet conv2", "4x32x16x16", "kernel: 5, channels: 32, pad: 2"},
    {"vgg-a conv2", "1x64x28x28", "kernel: 3, channels: 32, pad: 1"},
    {"vgg-a conv8", "1x512x14x14", "kernel: 3, channels: 16, pad: 1"},
    {"hep-cnn conv5", "4x128x14x14", "kernel: 3, channels: 16, pad: 1"},
    {"inception-v3 5x5", "1x48x35x35", "kernel: 5, channels: 16, pad: 2"},
    {"inception-v3 1x7", "1x192x17x17", "kernel: [1, 7], channels: 16, pad: [0, 3]"},
    {"inception-v3 7x1", "1x128x17x17", "kernel: [7, 1], channels: 32, pad: [3, 0]"},
    {"inception-v3 1x3", "2x384x8x8", "kernel: [1, 3], channels: 16, pad: [0, 1]"},
    {"inception-v3 3x1", "1x384x8x8", "kernel: [3, 1], channels: 16, pad: [1, 0]"},
    {"cosmogan conv2", "2x64x32x32", "kernel: 5, channels: 32, stride: 2, pad: 2"},
    {"dcgan conv3", "2x128x15x17", "kernel: 4, channels: 32, stride: 2, pad: 1"},
    {"stride 2, 6x5", "2x40x19x12", "kernel: [6, 5], channels: 24, stride: 2, pad: [3, 1]"},
    {"stride 2, 9x10", "1x32x21x18", "kernel: [9, 10], channels: 16, stride: 2, pad: 4"},
    {"stride 2, no pad", "1x32x14x13", "kernel: 4, channels: 16, stride: 2"},
    {"cosmoflow conv3", "2x32x6x9x10", "kernel: 3, channels: 16, pad: 1"},
    {"volume 2x3x3", "1x40x5x8x7", "kernel: [2, 3, 3], channels: 24, pad: [0, 1, 2]"},
    {"volume 3x5x5", "1x16x4x11x9", "kernel: [3, 5, 5], channels: 32, pad: [2, 2, 0]"},
    {"series 3", "2x48x50", "kernel: 3, channels: 32, pad: 1"},
    {"series 5", "3x16x33", "kernel: 5, channels: 16, pad: 2"},
    {"series 7", "1x16x40", "kernel: 7, channels: 24"},
    {"chunks, odd tiles", "3x16x28x28", "kernel: 3, channels: 16, pad: 1"},
    {"overfeat conv5", "1x1024x1x5", "kernel: 3, channels: 944, pad: 1"}, /* its weights are transformed in parts */
};

/* Results in bf16 equal the expected values if both are rounded in the same direction. This holds for all but a few,
 * which differ by 2^-8. */
#define ROUNDED_BF16 4e-4

static int measured;

/* Whether the filter has three taps in one row or column. */
static int is_row_of_3(const struct layer *l)
{
    return strstr(l->net, "1x3") || strstr(l->net, "3x1") || strcmp(l->net, "series 3") == 0;
}

static double bound_of(const char *kernel, const cvy_node *node, const struct layer *l)
{
    const int is_half = strstr(l->options, "stride: 2") != NULL, /* 9x10 is cut into filters of 5x5 */
        is_5 = strstr(l->options, "9, 10]") || (!is_half && strstr(l->options, "kernel: 5")) ||
               strstr(l->options, "5, 5]"),
              points = (strstr(kernel, "winograd6") ? 6 : 4) + (is_5 ? 4 : 2);
    const int64_t parts = strstr(l->options, "stride: 2") && !strstr(kernel, "_grad") ? 4
                          : node->src[0]->shape.ndim == 5                             ? 3
                                                                                      : 1,
                  summed = strstr(kernel, "grad_weight") ? 64 : parts * node->src[0]->shape.dim[1];
    if (strstr(kernel, "_bf16"))
        return is_row_of_3(l) ? 0x1p-7 : 0x1p-6;
    const double rounded = node->dst[0]->dtype == CVY_DTYPE_BF16 ? ROUNDED_BF16 : 0;
    return (points == 6 ? 1.3 : 5) * 1.2e-7 * sqrt((double)summed + 64) + rounded;
}

static double relative_error(const cvy_span *got, const cvy_blocking *layout, const cvy_span *want)
{
    double error = 0, size = 0;
    for (int64_t i = 0; i < want->elems; i++) {
        int64_t at[CVY_NDIM_MAX] = {0};
        split_index(want->ndim, want->dim, i, at);
        const double is = cvy_get(got, cvy_blocking_offset(layout, at)), must = cvy_get(want, i);
        error += (is - must) * (is - must);
        size += must * must;
    }
    return sqrt(error / size);
}

static cvy_status try_kernel(const cvy_eval *e, const struct layer *l, const cvy_node *node, const cvy_kernel_def *k)
{
    cvy_kernel_ask ask = {.node = node, .threads = 1};
    void *src[CVY_NODE_SRC_MAX] = {NULL}, *dst[CVY_NODE_DST_MAX] = {NULL}, *state = NULL, *scratch = NULL;
    cvy_blocking b;
    if (k->offer(&ask) != CVY_OK)
        return CVY_OK;
    for (int i = 0; i < node->nsrc; i++)
        CVY_TRY(copy_in_layout(node->src[i], &ask.src[i], cvy_eval_of(e, node->src[i])->data, &b, &src[i]));
    for (int i = node->ndst - 1; i >= 0; i--)
        if (node->dst[i])
            CVY_TRY(copy_in_layout(node->dst[i], &ask.dst[i], NULL, &b, &dst[i]));
    CVY_TRY(cvy_mem_alloc(ask.scratch_bytes, &scratch));
    CVY_TRY(k->create(&ask, &state));
    CVY_TRY(k->run(state, src, dst, scratch));
    const cvy_span got = {.dtype = node->dst[0]->dtype, .data = dst[0]};
    const double error = relative_error(&got, &b, cvy_eval_of(e, node->dst[0])), bound = bound_of(k->name, node, l);
    printf("%-20s %-34s %s %.1e, bound %.1e\n", l->net, k->name, cvy_dtype_text(node->src[0]->dtype), error, bound);
    EXPECT(error <= bound);
    measured++;
    node->graph->precise = 1;
    EXPECT(k->offer(&ask) == CVY_NOT_APPLICABLE);
    node->graph->precise = 0;
    k->destroy(state);
    cvy_mem_free(&scratch);
    for (int i = 0; i < node->nsrc; i++)
        cvy_mem_free(&src[i]);
    for (int i = 0; i < node->ndst; i++)
        cvy_mem_free(&dst[i]);
    return CVY_OK;
}

static cvy_status try_layer(const struct layer *l, cvy_dtype dtype, cvy_vars *vars, cvy_graph **g, cvy_eval *e)
{
    uint64_t state = 99;
    CVY_TRY(conv_graph(l->net, dtype, l->src, l->options, vars, g));
    CVY_TRY(cvy_eval_create(*g, e));
    for (int i = 0; i < (*g)->nvalue; i++)
        if (!(*g)->value[i]->producer)
            cvy_sample_fill(&e->at[i], -1, 2, &state);
    CVY_TRY(cvy_eval_run(e, 1));
    int count = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    for (int n = 0; n < (*g)->nnode; n++)
        for (int k = 0; k < count; k++)
            if (strstr(table[k]->name, "winograd") && strcmp(table[k]->op, (*g)->node[n]->op->name) == 0)
                CVY_TRY(try_kernel(e, l, (*g)->node[n], table[k]));
    return CVY_OK;
}

static const cvy_node *find_node(const cvy_graph *g, const char *op)
{
    for (int i = 0; i < g->nnode; i++)
        if (strcmp(g->node[i]->op->name, op) == 0)
            return g->node[i];
    return NULL;
}

/* Returns the number of elements in memory that are neither zero nor an element of the shape. */
static int64_t count_padding(const float *data, const cvy_blocking *b, const cvy_shape *shape)
{
    int64_t filled = 0, elems = cvy_shape_elems(shape);
    for (int64_t i = 0; i < b->elems; i++)
        filled += !(data[i] == 0);
    for (int64_t i = 0; i < elems; i++) {
        int64_t at[CVY_NDIM_MAX] = {0};
        split_index(shape->ndim, shape->dim, i, at);
        filled -= !(data[cvy_blocking_offset(b, at)] == 0);
    }
    return filled;
}

/* The gradient has the variable's layout, in blocks of 16 channels, but the vectors have 8 because the source has
 * blocks of 8. Its 24 channels fill the vectors and not the blocks, whose padding must be zero nevertheless. */
static cvy_status try_wide_blocks(cvy_vars *vars, cvy_graph **g)
{
    const cvy_kernel_def *k = cvy_kernel_find("native.conv_winograd4_grad_weight");
    void *src[2] = {NULL}, *dst[2] = {NULL}, *state = NULL, *scratch = NULL;
    cvy_blocking b;
    CVY_TRY(conv_graph("wide blocks", CVY_DTYPE_F32, "1x24x6x6", "kernel: 3, channels: 24, bias: false", vars, g));
    const cvy_node *node = find_node(*g, k->op);
    cvy_kernel_ask ask = {.node = node, .threads = 1, .dst_fixed = {1}, .dst = {cvy_layout_make("ABcd16b16a")}};
    ask.src[0] = ask.src[1] = cvy_layout_channels(4, 8);
    CVY_TRY(k->offer(&ask));
    EXPECT(cvy_layout_channel_block(&ask.src[0], 4) == 8);
    EXPECT(strcmp(ask.dst[0].tag, "ABcd16b16a") == 0);
    for (int i = 0; i < 2; i++) {
        CVY_TRY(copy_in_layout(node->src[i], &ask.src[i], NULL, &b, &src[i]));
        for (int64_t at = 0; at < b.elems; at++)
            ((float *)src[i])[at] = 1;
    }
    CVY_TRY(copy_in_layout(node->dst[0], &ask.dst[0], NULL, &b, &dst[0]));
    memset(dst[0], 0xff, (size_t)b.elems * sizeof(float));
    CVY_TRY(cvy_mem_alloc(ask.scratch_bytes, &scratch));
    CVY_TRY(k->create(&ask, &state));
    CVY_TRY(k->run(state, src, dst, scratch));
    EXPECT(count_padding(dst[0], &b, cvy_node_dst(node, 0)) == 0);
    k->destroy(state);
    cvy_mem_free(&scratch);
    for (int i = 0; i < 2; i++)
        cvy_mem_free(&src[i]);
    cvy_mem_free(&dst[0]);
    return CVY_OK;
}

static void wide_blocks(void)
{
    cvy_vars *vars = NULL;
    cvy_graph *g = NULL;
    EXPECT_OK(cvy_vars_create(&vars));
    EXPECT_OK(try_wide_blocks(vars, &g));
    cvy_graph_destroy(&g);
    cvy_vars_destroy(&vars);
}

int main(void)
{
    TEST(wide_blocks);
    for (int i = 0; i < 2 * CVY_COUNT(layers); i++) {
        cvy_vars *vars = NULL;
        cvy_graph *g = NULL;
        cvy_eval e = {0};
        EXPECT_OK(cvy_vars_create(&vars));
        EXPECT_OK(try_layer(&layers[i / 2], i % 2 ? CVY_DTYPE_BF16 : CVY_DTYPE_F32, vars, &g, &e));
        if (g)
            cvy_eval_destroy(&e);
        cvy_graph_destroy(&g);
        cvy_vars_destroy(&vars);
    }
    EXPECT(measured > 0);
    return test_end();
}
