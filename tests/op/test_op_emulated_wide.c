/* rows: clang asan */
/* seconds: 15 */
/*
 * test_op_emulated_wide.c: kernels for GPUs on samples that need many blocks, on the emulated device: sums that are cut
 * into parts, and elements that neighbouring threads read together.
 *
 * The threads and blocks run in three orders, which must give the same bits, and results are compared with those of the
 * reference kernels (test_op_emulated.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "backend/emulated/emulated.h"
#include "op/op_sample.h"
#include "sample/sample_kernels.h"

static cvy_space space;

static const struct {
    const char *op;
    cvy_sample sample;
} wide[] = {
    {"reduction", {.src = "2x3x80x90", .options = "axes: [2, 3]"}},
    {"reduction", {.src = "3x70x37", .options = "axes: 1, method: sum"}},
    {"reduction", {.src = "1x7001", .options = "axes: 1"}},
    {"affine", {.src = "5x40x23x23"}},
    {"affine", {.src = "9x23x5x40", .options = "shape: [1, 1, 40]"}},
    {"affine", {.src = "70x300"}},
    {"affine", {.src = "2x3x40x41", .options = "shape: [1, 40, 1], scale: false"}},
    {"prelu", {.src = "1x30001"}},
    {"prelu", {.src = "5x40x20x20", .options = "per_channel: true"}},
    {"multiply_channels", {.src = "2x40x61x31,2x40"}},
    {"expand", {.src = "3x1x40", .options = "shape: [900, 40]"}},
    {"embedding", {.src = "3x100:i32", .options = "rows: 40, channels: 270", .int_bound = 40}},
    {"add", {.src = "scalar:f64,scalar:f64,scalar:f64", .flags = CVY_SAMPLE_NO_GRAD}},
    {"maximum", {.src = "300:f64,300:f64,300:f64,300:f64", .flags = CVY_SAMPLE_NO_GRAD}},
    {"divide", {.src = "300:f64,300:f64", .flags = CVY_SAMPLE_NO_GRAD | CVY_SAMPLE_POSITIVE}},
    {"scale", {.src = "scalar:f64", .options = "by: 0.1", .flags = CVY_SAMPLE_NO_GRAD}},
    {"scale", {.src = "2x3x17:f64", .options = "by: 0.1", .flags = CVY_SAMPLE_NO_GRAD}},
    {"grad_norm2", {.src = "1x100001,50021,3"}},
    {"transpose", {.src = "3x20x31x37", .options = "order: [3, 1, 2]"}},
    {"concat", {.src = "2x64x9x9,2x32x9x9,2x96x9x9"}},
    {"concat", {.src = "2x64x9x9,2x31x9x9"}},
    {"slice", {.src = "2x96x9x9", .options = "first: 32, count: 64"}},
    {"dropout", {.src = "3x9001,3:i64,scalar:i64", .int_bound = 1000}},
    {"dropout", {.src = "3x20x15x16,3:i64,scalar:i64", .int_bound = 1000}},
    {"maximum", {.src = "1x20001,1x20001,1x20001"}},
    {"gelu", {.src = "1x20001"}},
    {"resize", {.src = "2x64x5x4", .options = "scale: 2, mode: bicubic"}},
    {"relu", {.src = "2x64x5x7"}},
    {"gelu", {.src = "2x32x3x3x3"}},
    {"add", {.src = "2x64x5x7,2x64x5x7"}},
    {"multiply", {.src = "2x32x5x7,2x32x5x7,2x32x5x7,2x32x5x7,2x32x5x7,2x32x5x7,2x32x5x7,2x32x5x7"}},
    {"reduction", {.src = "2x64x5x7", .options = "axes: [2, 3]"}},
    {"transpose", {.src = "2x32x5x7", .options = "order: [2, 3, 1]"}},
    {"expand", {.src = "2x64x1x1", .options = "shape: [64, 3, 4]"}},
    {"crop", {.src = "2x32x5x5", .options = "before: 1, after: 1"}},
    {"pad", {.src = "2x32x3x3", .options = "before: 1, after: [0, 2]"}},
    {"resize", {.src = "2x20x23x23", .options = "scale: 2, mode: bilinear"}},
};

static void check_sample(const cvy_op_def *op, const cvy_sample *sample, cvy_dtype dtype)
{
    cvy_sample_graph b;
    uint64_t bits[CVY_EMULATED_ANY] = {0};
    int count = 0;
    const cvy_kernel_def *const *kernels = cvy_kernel_table(&count);
    const cvy_status status = cvy_sample_open(op, sample, dtype, !(sample->flags & CVY_SAMPLE_NO_GRAD), &b);
    EXPECT_OK(status);
    for (int order = 0; status == CVY_OK && order < CVY_EMULATED_ANY; order++) {
        cvy_sample_report report = {.space = &space, .complain = complain_of};
        cvy_emulated_setup_now.order = order;
        EXPECT_OK(cvy_sample_check_kernels(&b, kernels, count, &report));
        EXPECT(report.runs > 0 || dtype == CVY_DTYPE_BF16);
        bits[order] = report.bits;
    }
    if (bits[0] != bits[1] || bits[0] != bits[2])
        complain(&b, "other bits with another order of threads and blocks");
    cvy_sample_close(&b);
}

int main(int argc, char **argv)
{
    EXPECT_OK(cvy_space_open_def(&cvy_emulated_backend, NULL, &space));
    for (int i = 0; i < CVY_COUNT(wide); i++) {
        if (argc > 1 && strcmp(argv[1], wide[i].op) != 0)
            continue;
        check_sample(cvy_op_find(wide[i].op), &wide[i].sample, CVY_DTYPE_F32);
        check_sample(cvy_op_find(wide[i].op), &wide[i].sample, CVY_DTYPE_BF16);
    }
    cvy_space_close(&space);
    return test_end();
}
