/*
 * measure_peak.c: measures the fastest matrix product that this machine computes at this moment. The speed of a network
 * is compared with it.
 *
 * It is a layer that is planned and runs like any network, so it uses the best kernels of the build, and the same
 * threads and clock frequency as the network: a fully connected layer of 768 x 768 on 768 samples per rank.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>

#include "measure/measure_bench.h"

#define SIZE 768
#define SECONDS 0.1
#define SHORT_SECONDS 2e-3

static cvy_status make_program(cvy_context *context, cvy_dtype dtype, cvy_model *m, cvy_program **out, int *step_out)
{
    const cvy_program_opts opts = {.size = sizeof opts, .dtype = dtype, .seed = 1};
    char options[48];
    snprintf(options, sizeof options, "channels: %d, bias: false", SIZE);
    CVY_TRY(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {SIZE}}));
    CVY_TRY(cvy_model_add(m, "fc", "product", options, "x"));
    CVY_TRY(cvy_program_create(context, &opts, out));
    return cvy_program_add_forward(*out, m, (int64_t)SIZE * context->comm->nranks, NULL, step_out);
}

/* A step of a device returns before its work is done. Short ones are timed together, because to wait for a device takes
 * as long as a product of a fast one. */
static cvy_status run_rounds(const cvy_space *space, cvy_program *p, int step, int rounds, double *s_out)
{
    const double begin = cvy_clock_s();
    for (int i = 0; i < rounds; i++)
        CVY_TRY(cvy_program_step(p, step, 0));
    CVY_TRY(cvy_space_sync(space));
    *s_out = cvy_space_is_host(space) ? cvy_program_time(p, step)->total : (cvy_clock_s() - begin) / rounds;
    return CVY_OK;
}

static cvy_status run(const cvy_space *space, cvy_program *p, int step, double *best_s_out)
{
    const double begin = cvy_clock_s();
    double best = INFINITY, s = 0;
    CVY_TRY(run_rounds(space, p, step, 1, &s));
    const int rounds = !cvy_space_is_host(space) && s < SHORT_SECONDS ? 32 : 1;
    for (int i = 0; i < 3 || cvy_clock_s() - begin < SECONDS; i++) {
        CVY_TRY(run_rounds(space, p, step, rounds, &s));
        best = CVY_MIN(best, s);
    }
    *best_s_out = best;
    return CVY_OK;
}

/* Runs the product on all ranks at once. *flop_out: of this rank. *best_s_out: its fastest run. */
static cvy_status time_product(cvy_context *context, cvy_dtype dtype, double *flop_out, double *best_s_out)
{
    cvy_comm *comm = context->comm;
    cvy_model *m = NULL;
    cvy_program *p = NULL;
    int step = 0;
    cvy_status status = cvy_model_create("peak", &m);
    if (status == CVY_OK)
        status = make_program(context, dtype, m, &p, &step);
    CVY_TRY_OUT(cvy_comm_agree(comm, status));
    CVY_TRY_OUT(cvy_program_plan(p));
    CVY_TRY_OUT(comm->ops->barrier(comm));
    CVY_TRY_OUT(cvy_comm_agree(comm, run(&context->space, p, step, best_s_out)));
    *flop_out = cvy_step_work(cvy_program_task_plan(p, step)).flop;
out:
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
    return status;
}

cvy_status cvy_bench_peak(cvy_context *context, cvy_dtype dtype, double *flop_per_s_out)
{
    cvy_comm *comm = context->comm;
    double flop = 0, best_s = 0;
    *flop_per_s_out = NAN;
    if (dtype == CVY_DTYPE_F64) /* only plain kernels support f64, and they do not show the peak of the machine */
        return CVY_OK;
    CVY_TRY(time_product(context, dtype, &flop, &best_s));
    double sum = flop / best_s;
    CVY_TRY(comm->ops->allreduce(comm, &sum, 1, CVY_DTYPE_F64, CVY_REDUCE_SUM));
    *flop_per_s_out = sum;
    return CVY_OK;
}
