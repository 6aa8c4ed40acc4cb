/* rows: clang asan aarch64 minimal */
/*
 * test_kernel_conv_edges.c: at the limits of what they take, the Winograd kernels and those for few channels compute
 * what the reference kernels compute, and beyond the limits they decline.
 *
 * Each layer is compared with all its gradients, in every layout, on several threads and between guard zones
 * (sample_kernels.h), Winograd with vectors of each kind. The layers have odd sizes, more padding than source, slices
 * and rows of the filter that lie outside of the source, and lengths around a whole number of vectors.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "op/op_sample.h"
#include "sample/sample_kernels.h"

enum { KERNELS_MAX = 32 };

struct layer {
    const char *op, *src, *options;
    const char *kernel; /* a part of the names of the kernels */
    int is_taken;       /* whether one of them takes the layer or one of its gradients */
};

static const struct layer layers[] = {
    /* Winograd: one tile is larger than the result. */
    {"conv", "1x16x1x1", "kernel: 3, channels: 16, pad: 1", "winograd", 1},
    {"conv", "2x16x2x3", "kernel: 3, channels: 17, pad: 2", "winograd", 1},
    {"conv", "1x17x5x9", "kernel: 5, channels: 16, pad: 4, relu: true", "winograd", 1},
    {"conv", "1x16x1x23", "kernel: [1, 7], channels: 16, pad: [0, 6]", "winograd", 1},
    {"conv", "1x16x13x1", "kernel: [3, 1], channels: 16, pad: [2, 0], bias: false", "winograd", 1},
    /* Several chunks of tiles, whose number is odd, for each of several threads. */
    {"conv", "5x17x27x26", "kernel: 3, channels: 16, pad: 1", "winograd4", 1},
    /* Under stride 2: odd and even padding, one row of results, source rows that no result reads. */
    {"conv", "1x16x4x5", "kernel: 4, channels: 16, stride: 2", "winograd", 1},
    {"conv", "2x16x5x14", "kernel: 4, channels: 17, stride: 2, pad: 3", "winograd", 1},
    {"conv", "1x17x3x8", "kernel: [5, 6], channels: 16, stride: 2, pad: [3, 5]", "winograd", 1},
    {"conv", "1x16x11x12", "kernel: [9, 10], channels: 16, stride: 2, pad: [4, 1]", "winograd4", 1},
    {"deconv", "1x16x3x4", "kernel: 4, channels: 16, stride: 2, pad: 3, output_pad: 1, bias: false", "winograd", 1},
    {"deconv", "2x17x2x5", "kernel: [6, 5], channels: 16, stride: 2, pad: [2, 1]", "winograd", 1},
    {"deconv", "1x16x3x7", "kernel: 3, channels: 18, pad: 2, bias: false", "winograd", 1},
    /* Volumes: slices of the filter outside of the source, a filter of one slice, rows in each slice. Series. */
    {"conv", "1x16x2x4x5", "kernel: [4, 3, 3], channels: 16, pad: [3, 0, 1]", "winograd", 1},
    {"conv", "2x16x3x3x6", "kernel: [1, 5, 5], channels: 16, pad: [0, 2, 3]", "winograd", 1},
    {"conv", "1x18x4x3x9", "kernel: [3, 1, 3], channels: 17, pad: [1, 0, 2]", "winograd", 1},
    {"deconv", "1x16x4x3x4", "kernel: 3, channels: 16, pad: [2, 1, 0], bias: false", "winograd", 1},
    {"conv", "3x16x1", "kernel: 7, channels: 16, pad: 3", "winograd6", 1},
    {"conv", "2x17x19", "kernel: 5, channels: 16, pad: 4", "winograd4", 1},
    /* What Winograd does not take. */
    {"conv", "1x7x9x9", "kernel: 3, channels: 16", "winograd", 0},
    {"conv", "1x32x9x9", "kernel: 3, channels: 32, groups: 2", "winograd", 0},
    {"conv", "1x16x9x9", "kernel: 3, channels: 16, dilation: 2", "winograd", 0},
    {"conv", "1x16x9x9", "kernel: 3, channels: 16, pad: 3", "winograd", 0},
    {"conv", "1x16x9x9", "kernel: 5, channels: 16, stride: [2, 1]", "winograd", 0},
    {"conv", "1x16x9x9", "kernel: [4, 6], channels: 16, stride: 2", "winograd", 0},
    {"conv", "1x16x19", "kernel: 5, channels: 16, stride: 2", "winograd", 0},
    {"conv", "1x16x5x5x5", "kernel: [3, 5, 5], channels: 16, stride: [1, 2, 2]", "winograd", 0},
    /* Deconvolutions to few channels: filters of 1 to 7 columns, rows of one and two vectors and a rest; rows and
     * columns of the result that no source position reaches; rows cut off by the padding. */
    {"deconv", "1x5x2x16", "kernel: 1, channels: 1, stride: 3, output_pad: 2", "_few", 1},
    {"deconv", "2x3x3x17", "kernel: 2, channels: 2, stride: [3, 1]", "_few", 1},
    {"deconv", "1x2x1x31", "kernel: 3, channels: 4, stride: [1, 3], pad: [1, 4]", "_few", 1},
    {"deconv", "2x4x3x32", "kernel: [7, 4], channels: 3, pad: [4, 3], bias: false", "_few", 1},
    {"deconv", "1x3x2x33", "kernel: [1, 5], channels: 1, stride: 2, output_pad: 1", "_few", 1},
    {"deconv", "1x1x2x49", "kernel: [2, 6], channels: 2, stride: [2, 4], pad: [0, 5]", "_few", 1},
    {"deconv", "1x2x7x65", "kernel: 7, channels: 4, pad: 6", "_few", 1},
    {"deconv", "1x2x1x2100", "kernel: [1, 4], channels: 1, stride: [1, 2]", "_few", 1},
    {"deconv", "1x5x2x15", "kernel: 3, channels: 1", "_few", 0},
    {"deconv", "1x5x2x20", "kernel: 3, channels: 5", "_few", 0},
    {"deconv", "1x4x2x20", "kernel: 3, channels: 4, groups: 2", "_few", 0},
    {"deconv", "1x4x2x20", "kernel: 3, channels: 4, dilation: 2", "_few", 0},
    {"deconv", "1x4x2x20", "kernel: [8, 3], channels: 4", "_few", 0},
    {"deconv", "1x4x2x20", "kernel: [3, 8], channels: 4", "_few", 0},
    {"deconv", "1x4x20", "kernel: 3, channels: 4", "_few", 0},
    /* The gradient for a source of few channels. */
    {"conv", "2x1x3x21", "kernel: 3, channels: 5, pad: [0, 3]", "few_grad_src", 1},
    {"conv", "1x4x9x70", "kernel: [7, 6], channels: 3, stride: [3, 4], pad: [3, 1]", "few_grad_src", 1},
    {"conv", "1x5x9x40", "kernel: 3, channels: 3", "few_grad_src", 0},
    /* The gradient of the weights of a volume or series of few channels: filters of 1 to 7 columns, fewer and more rows
     * than chunks, source positions that no result reads, padding beyond the source. */
    {"conv", "1x1x1", "kernel: 1, channels: 1, stride: 7, pad: 3", "few_grad_weight", 1},
    {"conv", "19x3x9", "kernel: 2, channels: 17, stride: 3", "few_grad_weight", 1},
    {"conv", "2x4x3", "kernel: 7, channels: 33, pad: 5, bias: false", "few_grad_weight", 1},
    {"conv", "1x2x4", "kernel: 3, channels: 16, pad: 6", "few_grad_weight", 1},
    {"conv", "1x3x5x4x6", "kernel: [2, 3, 4], channels: 5, stride: [2, 1, 3], pad: [1, 2, 3]", "few_grad_weight", 1},
    {"conv", "2x1x3x5x7", "kernel: [3, 1, 5], channels: 16, pad: [4, 0, 0]", "few_grad_weight", 1},
    {"conv", "1x4x2x3x8", "kernel: [1, 2, 6], channels: 20, bias: false", "few_grad_weight", 1},
    {"conv", "1x1x11x4x5", "kernel: [9, 1, 1], channels: 2, pad: [4, 0, 1]", "few_grad_weight", 1},
    {"conv", "1x5x9", "kernel: 3, channels: 4", "few_grad_weight", 0},
    {"conv", "1x4x19", "kernel: 8, channels: 4", "few_grad_weight", 0},
    {"conv", "1x4x19", "kernel: 3, channels: 4, dilation: 2", "few_grad_weight", 0},
    {"conv", "1x4x19", "kernel: 3, channels: 4, groups: 2", "few_grad_weight", 0},
    {"conv", "1x4x9x9", "kernel: 3, channels: 4", "few_grad_weight", 0},
};

static int find_kernels(const char *part, const cvy_kernel_def **out)
{
    int count = 0, found = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    for (int i = 0; i < count; i++)
        if (strstr(table[i]->name, part) && found < KERNELS_MAX)
            out[found++] = table[i];
    return found;
}

/* The kernels for few channels compute in f32 only, Winograd also in bf16. */
static void check_layer(const struct layer *l, cvy_dtype dtype)
{
    const cvy_sample sample = {.src = l->src, .options = l->options};
    const cvy_kernel_def *kernels[KERNELS_MAX];
    const int count = find_kernels(l->kernel, kernels),
              is_taken = l->is_taken && (dtype == CVY_DTYPE_F32 || strstr(l->kernel, "winograd"));
    cvy_sample_report report = {.complain = complain_of};
    cvy_sample_graph b;
    EXPECT(count > 0 && count < KERNELS_MAX);
    EXPECT_OK(cvy_sample_open(cvy_op_find(l->op), &sample, dtype, 1, &b));
    EXPECT_OK(cvy_sample_check_kernels(&b, kernels, count, &report));
    if ((report.runs > 0) != is_taken)
        complain(&b, is_taken ? "no kernel took the layer" : "a kernel took the layer");
    test_checks += (int)report.checks + 1;
    cvy_sample_close(&b);
}

/* In an emulator or with a sanitizer all layers would take minutes: there a third of them are tried, which
 * CONVOY_TEST_SEED chooses. */
static int is_tried(int layer)
{
    const char *emulator = getenv("EMULATOR"), *sanitize = getenv("CONVOY_SANITIZE"),
               *seed = getenv("CONVOY_TEST_SEED");
    const int is_slow = (emulator && *emulator) || (sanitize && strcmp(sanitize, "ON") == 0);
    return !is_slow || layer % 3 == (seed ? atoi(seed) : 0) % 3;
}

/* word: the widest vectors that Winograd may use; NULL: those of the machine. */
static void check_layers(const char *word)
{
    if (word)
        setenv("ONEDNN_MAX_CPU_ISA", word, 1);
    for (int i = 0; i < CVY_COUNT(layers); i++)
        if (is_tried(i) && (!word || strstr(layers[i].kernel, "winograd"))) {
            check_layer(&layers[i], CVY_DTYPE_F32);
            check_layer(&layers[i], CVY_DTYPE_BF16);
        }
}

int main(void)
{
    check_layers(NULL);
#ifdef __x86_64__ /* elsewhere Winograd has vectors of one kind */
    check_layers("AVX2");
    check_layers("SSE41");
#endif
    return test_end();
}
