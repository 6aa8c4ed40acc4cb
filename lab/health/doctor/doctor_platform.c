/*
 * doctor_platform.c: what `convoy simulate` needs to know of a machine: how fast a node trains and adds, and how fast
 * its memory is; and the platform file that says so.
 *
 * Latency and bandwidth are those of single messages between two nodes. How the nodes are joined cannot be measured
 * from two of them, so the file describes a star, in which no link is shared.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_mem.h"
#include "base/machine/base_clock.h"
#include "health/doctor/doctor.h"
#include "kernel/native/native_common.h"
#include "measure/measure_bench.h"

#define NETWORK "resnet-50"
#define IMAGES_OF_RANK 8
#define SECONDS 5
#define ADD_SECONDS 0.3
#define NODES 1024                                        /* of the star */
enum { ADD_BYTES = 64 << 20, SEGMENT_BYTES = 256 << 10 }; /* of each rank; as reductions cut messages */

CVY_SIMD static void add_segment(float *sum, const float *segment, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        sum[i] += segment[i];
}

/* A rank adds segments that have just arrived, and are in its cache, to its own gradients, which are not. */
static double time_additions(const cvy_context *c, float *sum, const float *segment)
{
    const int64_t n = SEGMENT_BYTES / (int64_t)sizeof *sum, nsegments = ADD_BYTES / SEGMENT_BYTES;
    const double begin = cvy_clock_s();
    int64_t rounds = 0;
    (void)c; /* a build without OpenMP has one thread */
    for (; rounds < 2 || cvy_clock_s() - begin < ADD_SECONDS; rounds++) {
#pragma omp parallel for num_threads(c->threads)
        for (int64_t s = 0; s < nsegments; s++)
            add_segment(sum + s * n, segment, n);
    }
    return (double)rounds * ADD_BYTES / (cvy_clock_s() - begin);
}

static cvy_status measure_additions(const cvy_context *c, double *bytes_per_s_out)
{
    float *sum = NULL, *segment = NULL;
    cvy_status status = cvy_mem_alloc(ADD_BYTES, &sum);
    if (status == CVY_OK)
        status = cvy_mem_alloc(SEGMENT_BYTES, &segment);
    if (status == CVY_OK) {
        memset(sum, 0, ADD_BYTES);
        memset(segment, 0, SEGMENT_BYTES);
        *bytes_per_s_out = time_additions(c, sum, segment);
    }
    cvy_mem_free(&segment);
    cvy_mem_free(&sum);
    return status;
}

/* Each rank trains by itself: there are no reductions in this mode. */
static cvy_status measure_training(cvy_doctor *d)
{
    const cvy_comm *comm = d->context->comm;
    const cvy_bench_opts opts = {.size = sizeof opts,
                                 .model = NETWORK,
                                 .batch = (int64_t)IMAGES_OF_RANK * comm->nranks,
                                 .mode = CVY_BENCH_FORWARD_BACKWARD,
                                 .seconds = SECONDS};
    cvy_bench_result r = {.size = sizeof r};
    CVY_TRY(cvy_run_bench(d->context, &opts, &r));
    d->platform.images_per_s = r.images_per_s / comm->nnodes;
    d->platform.gflop_per_s = r.gflop_per_s / comm->nnodes;
    return CVY_OK;
}

cvy_status cvy_doctor_measure_platform(cvy_doctor *d)
{
    cvy_comm *comm = d->context->comm;
    cvy_limits limits;
    double speed[2] = {0}; /* of this rank, then of all: of the memory, and of additions */
    CVY_CHECK(comm->nnodes > 1, CVY_E_CONFIG,
              "a platform is measured between two nodes or more, but all %d ranks are on one: start a rank on each of "
              "two nodes",
              comm->nranks);
    CVY_TRY(measure_training(d));
    CVY_TRY(cvy_limits_measure(d->context, NAN, &limits));
    speed[0] = limits.bytes_per_s[limits.nlevel - 1];
    CVY_TRY(cvy_comm_agree(comm, measure_additions(d->context, &speed[1])));
    CVY_TRY(comm->ops->allreduce(comm, speed, CVY_COUNT(speed), CVY_DTYPE_F64, CVY_REDUCE_SUM));
    d->platform.memory_bytes_per_s = speed[0] / comm->nnodes;
    d->platform.add_bytes_per_s = speed[1] / comm->nnodes;
    d->platform.is_measured = 1;
    return CVY_OK;
}

/* ---- the file ---- */

cvy_status cvy_doctor_print_platform(const cvy_doctor *d, char **text_out)
{
    const cvy_comm *comm = d->context->comm;
    const cvy_doctor_link *link = &d->between;
    const cvy_doctor_node *node = &d->node[0];
    cvy_text t = {0};
    cvy_text_add(&t,
                 "# Measured by `convoy doctor --platform` on %d nodes with %lld rank%s of %lld threads in all on the "
                 "first one.\nsummary: measured on %d nodes, %s\n",
                 comm->nnodes, (long long)node->nranks, node->nranks == 1 ? "" : "s", (long long)node->threads,
                 comm->nnodes, d->rank[0].cpu);
    cvy_text_add(&t,
                 "# How the nodes are joined was not measured. In a star no link is shared: the network is as fast for "
                 "many nodes as for two.\n# Describe a fat_tree or dragonfly if you know yours.\n"
                 "topology: star\nnodes: %d\n",
                 NODES);
    cvy_text_add(&t, "# A message of %lld bytes, from rank %d to rank %d.\nbandwidth: %.4g\n",
                 (long long)link->bytes[link->npoints - 1], link->from, link->to, 1 / link->beta_s);
    cvy_text_add(&t,
                 "# Half of %.3g us, which is the time of a message of %lld bytes: it crosses two links. What a node "
                 "itself is busy with is in it.\nlatency: %.4g\nmessage: 0\n",
                 1e6 * link->alpha_s, (long long)link->bytes[0], link->alpha_s / 2);
    cvy_text_add(&t, "# Segments in the cache, added to gradients in memory, by all threads.\nadd: %.4g\n",
                 d->platform.add_bytes_per_s);
    cvy_text_add(&t, "# The sum of two tensors that are larger than the caches.\nmemory: %.4g\ncores: %d\n",
                 d->platform.memory_bytes_per_s, CVY_MAX(CPU_COUNT(&node->permitted), 2));
    cvy_text_add(&t,
                 "# Forward and backward of %s, %d images a rank, without reductions. Add networks of yours: `convoy "
                 "bench` measures them.\ngflop_per_s: %.4g\nrates: {%s: %.4g}\n",
                 NETWORK, IMAGES_OF_RANK, d->platform.gflop_per_s, NETWORK, d->platform.images_per_s);
    return cvy_text_take(&t, text_out);
}
