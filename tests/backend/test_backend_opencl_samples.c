/* rows: release */
/* seconds: 60 */
/*
 * test_backend_opencl_samples.c: every kernel for GPUs through OpenCL, on the samples of its operator, in f32 and bf16
 * against the reference kernel, as test_op.c does it for the kernels of the host.
 *
 * The driver compiles each kernel, so ctest tries the first and the last sample of each operator; CONVOY_TEST_LEVEL=2
 * tries all. Arguments name the operators to test.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/opencl.h"
#include "op/op_sample.h"
#include "sample/sample_kernels.h"

static cvy_space space;
static int64_t runs;

static void check_sample(const cvy_op_def *op, const cvy_sample *sample, cvy_dtype dtype, int training)
{
    cvy_sample_graph b;
    const cvy_status status = cvy_sample_open(op, sample, dtype, training, &b);
    test_checks++;
    if (status != CVY_OK) {
        complain(&b, cvy_error_text());
    } else {
        cvy_sample_report report = {.complain = complain_of, .space = &space};
        int count = 0;
        const cvy_kernel_def *const *kernels = cvy_kernel_table(&count);
        EXPECT_OK(cvy_sample_check_kernels(&b, kernels, count, &report));
        runs += report.runs;
        test_checks += (int)report.checks;
    }
    cvy_sample_close(&b);
}

/* In training, a layer also has the nodes of its gradients; when it is only applied, it may have others. */
static void check_operator(const cvy_op_def *op, int level)
{
    const int failures = test_failures;
    const int64_t before = runs;
    for (const cvy_sample *s = op->samples; s->src; s++)
        for (int mode = 0; mode < 4 && !(s->flags & CVY_SAMPLE_TIMING); mode++)
            if ((level >= 2 || s == op->samples || !s[1].src) && (mode < 2 || op->build))
                check_sample(op, s, mode % 2 ? CVY_DTYPE_BF16 : CVY_DTYPE_F32, mode < 2);
    if (runs > before || test_failures > failures)
        printf("%s %s\n", test_failures == failures ? "ok    " : "FAILED", op->name);
}

static int chosen(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return 1;
    return argc < 2;
}

int main(int argc, char **argv)
{
    const char *text = getenv("CONVOY_TEST_LEVEL");
    int count = 0;
    const cvy_op_def *const *table = cvy_op_table(&count);
    if (!opencl_is_there())
        return 77;
    EXPECT_OK(cvy_space_open("opencl", NULL, &space));
    for (int i = 0; i < count && space.state; i++)
        if (table[i]->samples && chosen(table[i]->name, argc, argv))
            check_operator(table[i], text ? atoi(text) : 1);
    EXPECT(runs > 0);
    printf("%lld runs of kernels\n", (long long)runs);
    cvy_space_close(&space);
    return test_end();
}
