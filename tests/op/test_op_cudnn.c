/* rows: clang */
/*
 * test_op_cudnn.c: the kernels of cuDNN on the samples of conv, deconv and fc, in f32, bf16 and TF32, deterministic and
 * not, with all engines and fused, are compared with the reference kernels. TF32 rounds: its bits differ from f32's. It
 * needs a device of CUDA with cuDNN: one that is there, or those of tests/fake_cuda and tests/fake_cudnn
 * (tests/backend/cudnn.sh). Else it is skipped.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#include "kernel/cudnn/cudnn_graph.h"
#include "kernel/kernel_library.h"
#include "op/op_sample.h"
#include "sample/sample_kernels.h"

enum { KERNELS = 80 };

static const cvy_kernel_def *kernels[KERNELS];
static int nkernel;
static cvy_space space;
static int64_t runs, checks;

/* How the kernels are asked: with the first engine of each alone, or with all. */
struct way {
    const char *name;
    cvy_dtype dtype;
    int tf32, first;
};

static void check_sample(const cvy_op_def *op, const cvy_sample *sample, const struct way *way, uint64_t *bits)
{
    const cvy_kernel_def *some[KERNELS];
    int n = 0;
    for (int i = 0; i < nkernel; i++)
        if (!way->first || kernels[i]->variant % CVY_CUDNN_ENGINES == 0)
            some[n++] = kernels[i];
    cvy_sample_graph b;
    const cvy_status status = cvy_sample_open(op, sample, way->dtype, 1, &b);
    cvy_sample_report report = {
        .bits = *bits, .tf32 = way->tf32, .compiles = 1, .space = &space, .complain = complain_of};
    if (status != CVY_OK)
        complain(&b, cvy_error_text());
    else
        EXPECT_OK(cvy_sample_check_kernels(&b, some, n, &report));
    runs += report.runs;
    checks += report.checks;
    *bits = report.bits;
    cvy_sample_close(&b);
}

static uint64_t check_operator(const char *name, const struct way *way)
{
    const int64_t before = runs;
    const cvy_op_def *op = cvy_op_find(name);
    uint64_t bits = 0;
    for (const cvy_sample *s = op->samples; s->src; s++)
        if (!(s->flags & CVY_SAMPLE_TIMING))
            check_sample(op, s, way, &bits);
    printf("%s %s%s: %lld runs\n", name, way->name, way->first ? ", first engines" : "", (long long)(runs - before));
    EXPECT(runs > before);
    return bits;
}

static void samples(void)
{
    static const char *const ops[] = {"conv", "deconv", "fc"};
    static const struct way exact = {"f32", CVY_DTYPE_F32, 0, 1}, rounded = {"TF32", CVY_DTYPE_F32, 1, 1},
                            half = {"bf16", CVY_DTYPE_BF16, 0, 1};
    for (int i = 0; i < CVY_COUNT(ops); i++) {
        EXPECT(check_operator(ops[i], &exact) != check_operator(ops[i], &rounded));
        (void)check_operator(ops[i], &half);
    }
}

static void all_engines(void)
{
    static const struct way ways[] = {
        {"f32", CVY_DTYPE_F32, 0, 0}, {"TF32", CVY_DTYPE_F32, 1, 0}, {"bf16", CVY_DTYPE_BF16, 0, 0}};
    for (int w = 0; w < CVY_COUNT(ways); w++)
        (void)check_operator("fc", &ways[w]);
}

int main(void)
{
    int count = 0;
    cvy_cudnn_device *device = NULL;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    if (cvy_space_open("cuda", NULL, &space) != CVY_OK || cvy_cudnn_device_of(&space, &device) != CVY_OK) {
        printf("skipped: %s\n", cvy_error_text());
        if (space.backend)
            cvy_space_close(&space);
        return 77;
    }
    for (int i = 0; i < count && nkernel < KERNELS; i++)
        if (strcmp(cvy_kernel_library(table[i])->name, "cudnn") == 0)
            kernels[nkernel++] = table[i];
    TEST(samples);
    TEST(all_engines);
    printf("%d kernels, %lld runs, %lld results compared\n", nkernel, (long long)runs, (long long)checks);
    cvy_space_close(&space);
    return test_end();
}
