/* rows: clang asan */
/*
 * test_op_emulated.c: the kernels for GPUs on the samples of all operators, on the emulated device, in f32 and bf16.
 *
 * Each sample runs with the threads and blocks of the device in ascending, descending and shuffled order, which must
 * give the same bits, and is compared with the reference kernels as on the host (sample_kernels.h). Guard zones, stale
 * memory and missing barriers: backend/emulated/emulated.h.
 *
 * Arguments name the operators to test; without arguments all are tested. At the end it lists the operators without
 * such a kernel: the host computes those.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#include "backend/emulated/emulated.h"
#include "kernel/kernel_library.h"
#include "op/op_sample.h"
#include "sample/sample_kernels.h"

static cvy_space space;
static int64_t runs, checks;

static void check_sample(const cvy_op_def *op, const cvy_sample *sample, cvy_dtype dtype, int training)
{
    cvy_sample_graph b;
    uint64_t bits[CVY_EMULATED_ANY] = {0};
    const cvy_status status = cvy_sample_open(op, sample, dtype, training, &b);
    int count = 0;
    const cvy_kernel_def *const *kernels = cvy_kernel_table(&count);
    if (status != CVY_OK)
        complain(&b, cvy_error_text());
    for (int order = 0; status == CVY_OK && order < CVY_EMULATED_ANY; order++) {
        cvy_sample_report report = {.space = &space, .complain = complain_of};
        cvy_emulated_setup_now.order = order;
        EXPECT_OK(cvy_sample_check_kernels(&b, kernels, count, &report));
        bits[order] = report.bits;
        runs += report.runs;
        checks += report.checks;
    }
    if (bits[0] != bits[1] || bits[0] != bits[2])
        complain(&b, "other bits with another order of threads and blocks");
    test_checks += CVY_EMULATED_ANY;
    cvy_sample_close(&b);
}

/* Samples that are large enough for kernels to cut their sums into parts. */
static const struct {
    const char *op;
    cvy_sample sample;
} wide[] = {
    {"conv", {.src = "3x70x13x11", .options = "kernel: 3, channels: 70, pad: 1, relu: true"}},
    {"conv", {.src = "4x36x12x12", .options = "kernel: 3, channels: 36, groups: 36, pad: 1"}},
    {"conv", {.src = "2x24x9x10", .options = "kernel: 5, channels: 40, groups: 4, stride: 2, dilation: 2, pad: 3"}},
    {"deconv", {.src = "3x40x7x6", .options = "kernel: 4, channels: 70, stride: [2, 3], pad: 1"}},
    {"fc", {.src = "9x12x7x5", .options = "channels: 140"}},
    {"fc", {.src = "2x80x700", .options = "channels: 90, flatten: false, relu: true"}},
    {"matmul", {.src = "2x1x70x130,2x3x130x66"}},
    {"batch_norm", {.src = "7x40x13x13"}},
    {"batch_norm", {.src = "7x24x13x11,7:i32"}},
    {"bn_train", {.src = "9x7x12x12,9x7x12x12", .options = "relu: true"}},
    {"bn_train", {.src = "9x33x9x9,9:i32", .options = "relu: true"}},
    {"group_norm", {.src = "2x40x19x19", .options = "groups: 4, relu: true"}},
    {"instance_norm", {.src = "3x6x31x31", .options = "scale_shift: true"}},
    {"layer_norm", {.src = "5x70x24"}},
    {"layer_norm", {.src = "3x300", .options = "eps: 0.01"}},
    {"layer_norm", {.src = "2x5x21x21", .options = "axes: 1"}},
    {"lrn", {.src = "2x40x7x7", .options = "size: 5, alpha: 0.2"}},
};

static int chosen(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return 1;
    return argc < 2;
}

/* Operators that the executor stages, which have a reference kernel but none for GPUs. */
static void list_staged(void)
{
    int nop = 0, nkernel = 0, nstaged = 0;
    const cvy_op_def *const *table = cvy_op_table(&nop);
    const cvy_kernel_def *const *kernels = cvy_kernel_table(&nkernel);
    printf("operators without a kernel for GPUs:");
    for (int i = 0; i < nop; i++) {
        int has = !table[i]->reference;
        for (int k = 0; k < nkernel; k++)
            has |= strcmp(kernels[k]->op, table[i]->name) == 0 && cvy_kernel_fits(kernels[k], &space);
        if (!has)
            printf("%s %s", nstaged++ % 8 ? "" : "\n   ", table[i]->name);
    }
    printf("\n%d operators without a kernel for GPUs\n", nstaged);
    EXPECT(nstaged < 25);
}

int main(int argc, char **argv)
{
    static const cvy_dtype dtypes[] = {CVY_DTYPE_F32, CVY_DTYPE_BF16};
    int count = 0;
    const cvy_op_def *const *table = cvy_op_table(&count);
    EXPECT_OK(cvy_space_open_def(&cvy_emulated_backend, NULL, &space));
    for (int i = 0; i < count; i++) {
        const cvy_op_def *op = table[i];
        const int failures = test_failures;
        const int64_t before = runs;
        if (!op->samples || !chosen(op->name, argc, argv))
            continue;
        for (const cvy_sample *s = op->samples; s->src; s++)
            for (int mode = 0; mode < 2 * CVY_COUNT(dtypes) && !(s->flags & CVY_SAMPLE_TIMING); mode++)
                if (mode < CVY_COUNT(dtypes) || op->build) /* such a layer has other nodes when it does not train */
                    check_sample(op, s, dtypes[mode % CVY_COUNT(dtypes)], mode < CVY_COUNT(dtypes));
        for (int w = 0; w < CVY_COUNT(wide); w++)
            for (int d = 0; d < CVY_COUNT(dtypes) && strcmp(wide[w].op, op->name) == 0; d++)
                check_sample(op, &wide[w].sample, dtypes[d], 1);
        if (runs > before || test_failures > failures || argc > 1)
            printf("%s %s: %lld runs\n", test_failures == failures ? "ok    " : "FAILED", op->name,
                   (long long)(runs - before));
    }
    if (argc < 2)
        list_staged();
    printf("%lld runs of kernels, %lld results compared\n", (long long)runs, (long long)checks);
    if (argc < 2)
        EXPECT(runs > 100);
    cvy_space_close(&space);
    return test_end();
}
