/*
 * measure_limit.c: the ruler for a step: the least time that this machine allows for an instruction of the plan. It is
 * the longer one of its operations at the speed of the fastest matrix product in this type, and of its bytes at the
 * speed of the cache level, or of the memory, that they fit into.
 *
 * Each tensor counts once for each instruction that reads or writes it. So a plan with fewer passes over memory has a
 * lower limit, and a kernel that does fewer operations than are counted (Winograd) may beat it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "base/base_mem.h"
#include "base/machine/base_clock.h"
#include "kernel/native/native_common.h"
#include "measure/measure_bench.h"

#define SECONDS 0.02 /* for each size */
enum { LEAST_BYTES = 128 << 10, MOST_BYTES = 256 << 20, REPEATS = 3 };

CVY_SIMD static void add_arrays(const float *x, const float *y, float *z, int64_t n, int64_t rounds)
{
    for (int64_t r = 0; r < rounds; r++)
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            z[i] = x[i] + y[i];
}

/* Adds two of three arrays of n numbers in all, `rounds` times. Each thread has a part of its own. */
static void add_rounds(float *at, int64_t n, int threads, int64_t rounds)
{
    const int64_t each = n / 3 / threads;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; t++)
        add_arrays(at + 3 * each * t, at + 3 * each * t + each, at + 3 * each * t + 2 * each, each, rounds);
}

/* Copies one half of the memory to the other on the device, `rounds` times. Both halves count, as for a kernel. */
static cvy_status copy_rounds(const cvy_space *space, char *at, int64_t bytes, int64_t rounds)
{
    for (int64_t r = 0; r < rounds; r++)
        CVY_TRY(cvy_space_copy(space, CVY_LANE_COMPUTE, at + bytes / 2, at, (size_t)(bytes / 2)));
    return cvy_space_sync(space);
}

static cvy_status move(const cvy_context *context, void *at, int64_t bytes, int64_t rounds, double *s_out)
{
    const double begin = cvy_clock_s();
    if (cvy_space_is_host(&context->space))
        add_rounds(at, bytes / (int64_t)sizeof(float), context->threads, rounds);
    else
        CVY_TRY(copy_rounds(&context->space, at, bytes, rounds));
    *s_out = cvy_clock_s() - begin;
    return CVY_OK;
}

/* Bytes per second of so many bytes in all, of which a third is written on the host, and a half on a device. */
static cvy_status time_bytes(const cvy_context *context, void *at, int64_t bytes, double *bytes_per_s_out)
{
    int64_t rounds = 1;
    double best = 0;
    for (int i = 0; i < REPEATS; i++) {
        double taken = 0;
        CVY_TRY(move(context, at, bytes, rounds, &taken));
        while (taken < SECONDS / 2) {
            rounds = (int64_t)((double)rounds * CVY_MIN(CVY_MAX(SECONDS / CVY_MAX(taken, 1e-9), 2), 1e3));
            CVY_TRY(move(context, at, bytes, rounds, &taken));
        }
        best = CVY_MAX(best, (double)bytes * (double)rounds / taken);
    }
    *bytes_per_s_out = best;
    return CVY_OK;
}

static cvy_status measure_levels(const cvy_context *context, void *at, int64_t most, cvy_limits *out)
{
    for (int64_t bytes = LEAST_BYTES; bytes <= most && out->nlevel < CVY_LIMIT_LEVELS; bytes *= 2) {
        out->bytes[out->nlevel] = (double)bytes;
        CVY_TRY(time_bytes(context, at, bytes, &out->bytes_per_s[out->nlevel]));
        out->nlevel++;
    }
    return CVY_OK;
}

/* Ranks that share a node, or a device, share its memory. A device has less left beside the network. */
cvy_status cvy_limits_measure(cvy_context *context, double peak_flop_per_s, cvy_limits *out)
{
    cvy_comm *comm = context->comm;
    const cvy_space *space = &context->space;
    const int is_host = cvy_space_is_host(space);
    int64_t most = MOST_BYTES / CVY_MAX(is_host ? comm->node_nranks : context->device_ranks, 1);
    void *at = NULL;
    *out = (cvy_limits){.flop_per_s = peak_flop_per_s / comm->nranks};
    const int64_t left = is_host ? -1 : cvy_space_left(space) / CVY_MAX(2 * context->device_ranks, 1);
    while (left >= 0 && most > CVY_MAX(left, LEAST_BYTES))
        most /= 2;
    cvy_status status = cvy_space_alloc(space, (size_t)most, 0, &at);
    if (status == CVY_OK && is_host)
        memset(at, 0, (size_t)most); /* pages that were never written are all one page */
    if (status == CVY_OK)
        status = measure_levels(context, at, most, out);
    cvy_space_free(space, &at, (size_t)most);
    CVY_TRY(cvy_comm_agree(comm, status));
    return comm->ops->barrier(comm);
}

/* Between two measured sizes the time of a byte is interpolated. */
static double time_of_byte(const cvy_limits *limits, double bytes)
{
    int i = 0;
    while (i < limits->nlevel && limits->bytes[i] < bytes)
        i++;
    if (i == 0 || i == limits->nlevel)
        return 1 / limits->bytes_per_s[CVY_MIN(i, limits->nlevel - 1)];
    const double part = log(bytes / limits->bytes[i - 1]) / log(limits->bytes[i] / limits->bytes[i - 1]);
    return (1 - part) / limits->bytes_per_s[i - 1] + part / limits->bytes_per_s[i];
}

cvy_limit cvy_limit_of(const cvy_limits *limits, double flop, double bytes)
{
    const double compute = limits->flop_per_s > 0 ? flop / limits->flop_per_s : 0,
                 memory = limits->nlevel > 0 ? bytes * time_of_byte(limits, bytes) : 0;
    return (cvy_limit){.ms = 1e3 * CVY_MAX(compute, memory), .by_bytes = memory > compute};
}
