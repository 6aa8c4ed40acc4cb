/* rows: clang asan onednn3 minimal */
/* seconds: 90 */
/*
 * test_op.c: one driver over the whole operator table.
 *
 * For every operator and each of its samples it checks:
 *
 * gradients  in f64: those that autodiff makes are compared with central finite differences of the reference kernel
 * kernels    every registered kernel is compared with the reference kernel in the same dtype, f64, f32 or bf16, and
 * with itself on several threads (sample_kernels.h)
 *
 * Arguments name the operators to test; without arguments all are tested.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>

#include "op/op_sample.h"
#include "sample/sample_gradient.h"

static int64_t gradients_checked;
static int64_t kernels_checked;

/* ---- the driver ---- */

static void check_sample(const cvy_op_def *op, const cvy_sample *sample, cvy_dtype dtype, int training, int is_wide)
{
    cvy_sample_graph b;
    const cvy_status status = cvy_sample_open(op, sample, dtype, training, &b);
    b.is_wide = is_wide;
    test_checks++;
    if (status != CVY_OK) {
        complain(&b, cvy_error_text());
    } else {
        cvy_sample_report report = {.complain = complain_of}, gradients = report;
        int count = 0;
        const cvy_kernel_def *const *kernels = cvy_kernel_table(&count);
        EXPECT_OK(cvy_sample_check_kernels(&b, kernels, count, &report));
        kernels_checked += report.runs;
        test_checks += (int)report.checks;
        EXPECT_OK(cvy_sample_check_gradients(&b, &gradients));
        gradients_checked += gradients.checks;
        test_checks += (int)gradients.checks;
    }
    cvy_sample_close(&b);
}

/* Samples that are large enough for kernels to split their sums over threads. */
static const struct {
    const char *op;
    cvy_sample sample;
} wide[] = {
    {"conv", {.src = "3x32x19x19", .options = "channels: 48, kernel: 3, pad: 1"}},
    {"conv", {.src = "5x64x10x10", .options = "channels: 32, kernel: 1"}},
    {"conv", {.src = "2x64x14x14", .options = "channels: 96, kernel: 3, stride: 2, pad: 1"}},
    {"conv", {.src = "2x3x40x40", .options = "channels: 32, kernel: 7, stride: 2, pad: 3"}},
    {"conv", {.src = "1x256x6x6", .options = "channels: 64, kernel: 3, pad: 1"}},
    {"conv", {.src = "4x32x16x16", .options = "channels: 32, kernel: 5, pad: 2"}},
    {"conv", {.src = "4x32x8x8", .options = "channels: 64, kernel: 5, pad: 2"}},
    {"conv", {.src = "4x3x32x32", .options = "channels: 32, kernel: 5, pad: 2"}},
    {"conv", {.src = "5x40x20x20", .options = "kernel: 7, channels: 40, groups: 40, pad: 3"}},
    {"max_pool", {.src = "4x32x32x32", .options = "kernel: 3, stride: 2"}},
    {"deconv", {.src = "3x32x9x9", .options = "channels: 16, kernel: 4, stride: 2, pad: 1"}},
    {"fc", {.src = "4x900", .options = "channels: 70"}},
    {"matmul", {.src = "2x50x300,2x300x70"}},
    {"embedding", {.src = "7x300:i32", .options = "rows: 40, channels: 70", .int_bound = 40}},
    {"batch_norm", {.src = "7x40x13x13"}},
    {"batch_norm", {.src = "4x16x33x33"}},
    {"softmax_cross_entropy", {.src = "300x50,300:i32,scalar:f64", .flags = CVY_SAMPLE_POSITIVE, .int_bound = 50}},
    {"global_avg_pool", {.src = "5x40x30x30"}},
    {"global_max_pool", {.src = "5x40x30x30"}},
    {"avg_pool", {.src = "5x40x30x30", .options = "kernel: 3, stride: 2"}},
    {"tanh", {.src = "1x70001"}},
    {"sigmoid", {.src = "3x23x1001"}},
    {"dropout", {.src = "3x30001,3:i64,scalar:i64", .int_bound = 1000}},
    {"add", {.src = "1x70001,1x70001"}},
    {"multiply", {.src = "1x70001,1x70001"}},
    {"multiply_channels", {.src = "3x40x31x31,3x40"}},
    {"subtract", {.src = "1x70001,1x70001"}},
    {"maximum", {.src = "1x70001,1x70001"}},
    {"leaky_relu", {.src = "1x70001"}},
    {"prelu", {.src = "1x70001"}},
    {"prelu", {.src = "5x40x30x30", .options = "per_channel: true"}},
    {"silu", {.src = "1x70001"}},
    {"gelu", {.src = "1x70001"}},
    {"gelu", {.src = "1x70001", .options = "approximate: tanh"}},
    {"hard_swish", {.src = "1x70001"}},
    {"elu", {.src = "1x70001", .options = "alpha: 0.3"}},
    {"clamp", {.src = "1x70001", .options = "min: -0.26, max: 0.51"}},
    {"hard_sigmoid", {.src = "1x70001", .options = "alpha: 0.8"}},
    {"offset", {.src = "1x70001", .options = "by: 0.3"}},
    {"transpose", {.src = "3x20x31x37", .options = "order: [3, 1, 2]"}},
    {"transpose", {.src = "3x20x31x37", .options = "order: [2, 1, 3]"}},
    {"affine", {.src = "5x40x23x23"}},
    {"affine", {.src = "5x23x23x40", .options = "shape: [1, 1, 40]"}},
    {"fc", {.src = "3x30x20x40", .options = "channels: 24, flatten: false"}},
    {"clip_value", {.src = "1x70001", .options = "limit: 0.5"}},
    {"grad_norm2", {.src = "1x70001,50021"}},
    {"lrn", {.src = "4x40x25x25", .options = "size: 5"}},
    {"group_norm", {.src = "2x40x33x33", .options = "groups: 4"}},
    {"instance_norm", {.src = "3x40x21x21", .options = "scale_shift: true"}},
    {"layer_norm", {.src = "5x70x96"}},
    {"layer_norm", {.src = "3x40x21x21", .options = "axes: 1"}},
    {"resize", {.src = "3x20x23x23", .options = "scale: 2, mode: bilinear"}},
};

static int chosen(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return 1;
    return argc < 2;
}

int main(int argc, char **argv)
{
    static const cvy_dtype dtypes[] = {CVY_DTYPE_F64, CVY_DTYPE_F32, CVY_DTYPE_BF16};
    int count = 0;
    const cvy_op_def *const *table = cvy_op_table(&count);
    for (int i = 0; i < count; i++) {
        const cvy_op_def *op = table[i];
        const int failures = test_failures;
        if (!op->samples || !chosen(op->name, argc, argv))
            continue;
        for (const cvy_sample *s = op->samples; s->src; s++)
            for (int mode = 0; mode < 2 * CVY_COUNT(dtypes) && !(s->flags & CVY_SAMPLE_TIMING); mode++)
                if (mode < CVY_COUNT(dtypes) || op->build) /* such a layer has other nodes when it does not train */
                    check_sample(op, s, dtypes[mode % CVY_COUNT(dtypes)], mode < CVY_COUNT(dtypes), 0);
        for (int i = 0; i < CVY_COUNT(wide); i++)
            for (int d = 1; d < CVY_COUNT(dtypes) && strcmp(wide[i].op, op->name) == 0; d++)
                check_sample(op, &wide[i].sample, dtypes[d], 1, 1);
        printf("%s %s\n", test_failures == failures ? "ok    " : "FAILED", op->name);
    }
    printf("%lld derivatives, %lld runs of kernels\n", (long long)gradients_checked, (long long)kernels_checked);
    return test_end();
}
