/*
 * selftest_kernels.c: the kernels that would run on this processor against the plain reference kernels, on the samples
 * of all operators. Every rank does this, because one processor may be broken, or of another kind.
 *
 * It takes the first sample of each operator, then the second of each, and so on, until the time is over. So each
 * operator is tried, also on a slow processor.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/machine/base_clock.h"
#include "health/selftest/selftest.h"
#include "sample/sample_kernels.h"

#define SECONDS 20.0

static const cvy_dtype dtypes[] = {CVY_DTYPE_F32, CVY_DTYPE_BF16}; /* f64 is for tests */

static void note_wrong(void *user, const cvy_sample_graph *b, const char *what)
{
    cvy_selftest_kernels_found *found = user;
    if (found->wrong++ == 0)
        snprintf(found->first, sizeof found->first, "%s(%s; %s) in %s: %s", b->op->name, b->sample->src,
                 b->sample->options ? b->sample->options : "", cvy_dtype_text(b->dtype), what);
}

static cvy_status try_sample(const cvy_space *space, const cvy_op_def *op, const cvy_sample *sample, cvy_dtype dtype,
                             const cvy_kernel_def *const *table, int count, cvy_selftest_kernels_found *found)
{
    cvy_sample_report report = {.space = space, .complain = note_wrong, .user = found};
    cvy_sample_graph b;
    cvy_status status = cvy_sample_open(op, sample, dtype, 1, &b);
    if (status == CVY_OK)
        status = cvy_sample_check_kernels(&b, table, count, &report);
    cvy_sample_close(&b);
    found->runs += report.runs;
    return status;
}

/* The k-th sample of an operator that is not only for timing; NULL: it has fewer. */
static const cvy_sample *sample_at(const cvy_op_def *op, int k)
{
    for (const cvy_sample *s = op->samples; s && s->src; s++)
        if (!(s->flags & CVY_SAMPLE_TIMING) && k-- == 0)
            return s;
    return NULL;
}

cvy_status cvy_selftest_compare_kernels(const cvy_space *space, const cvy_kernel_def *const *table, int count,
                                        double seconds, cvy_selftest_kernels_found *out)
{
    const double end_s = cvy_clock_s() + seconds;
    int nop = 0, any = 1;
    const cvy_op_def *const *op = cvy_op_table(&nop);
    *out = (cvy_selftest_kernels_found){0};
    for (int k = 0; any; k++) {
        any = 0;
        for (int i = 0; i < nop; i++) {
            const cvy_sample *sample = sample_at(op[i], k);
            any |= sample != NULL;
            for (int d = 0; d < CVY_COUNT(dtypes) && sample; d++) {
                out->of_samples++;
                if (cvy_clock_s() > end_s)
                    continue;
                CVY_TRY(try_sample(space, op[i], sample, dtypes[d], table, count, out));
                out->samples++;
            }
        }
    }
    return CVY_OK;
}

cvy_status cvy_selftest_kernels(cvy_selftest *t)
{
    cvy_comm *comm = t->context->comm;
    cvy_selftest_kernels_found found;
    int count = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    const double seconds = t->opts.kernel_s > 0 ? t->opts.kernel_s : SECONDS;
    const cvy_space *space = cvy_space_is_host(&t->context->space) ? NULL : &t->context->space;
    cvy_device device;
    cvy_space_about(space, &device);
    CVY_TRY(cvy_comm_agree(comm, cvy_selftest_compare_kernels(space, table, count, seconds, &found)));
    if (found.wrong)
        cvy_selftest_fail(t,
                          "%lld of %lld runs differ from the reference kernels, first %s: do not use this node, or set "
                          "plan.kernels: reference (slow), and report it with the output of convoy info",
                          (long long)found.wrong, (long long)found.runs, found.first);
    cvy_selftest_pass(t, "%lld of %lld runs on %lld samples agree with the reference kernels (%s)",
                      (long long)found.runs, (long long)found.runs, (long long)found.samples,
                      space ? device.name : cvy_selftest_isa_text());
    if (found.samples < found.of_samples)
        cvy_selftest_note(t, "%lld of %lld samples were tried within %.0f s (--seconds)", (long long)found.samples,
                          (long long)found.of_samples, seconds);
    return CVY_OK;
}
