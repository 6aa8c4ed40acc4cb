/*
 * comm_pretend.c: a communicator of many ranks of which only one exists. A rank's program is planned with it, as it
 * would be planned among real ranks, to predict its memory and time.
 *
 * Planning assumes that all ranks do the same, so a collective gives back what ranks equal to this one would give. It
 * has no messages, no reductions and no shared memory: nothing can run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_mem.h"
#include "base/base_status.h"
#include "comm/comm_network.h"
#include "comm/pretend/comm_pretend.h"

struct pretended {
    cvy_network network;
    int *ranks; /* [nranks]: the numbers of these ranks among all ranks */
};

static const struct pretended *state_of(const cvy_comm *comm)
{
    return comm->impl;
}

static void pretend_destroy(cvy_comm *comm)
{
    struct pretended *s = comm->impl;
    if (s)
        cvy_mem_free(&s->ranks);
    cvy_mem_free(&s);
    cvy_mem_free(&comm);
}

/* Who is in the new communicator depends on the other ranks: comm_grid.c knows it, and makes the communicator. */
static cvy_status pretend_split(cvy_comm *comm, int color, int key, cvy_comm **out)
{
    (void)comm, (void)color, (void)key, (void)out;
    CVY_FAIL(CVY_E_INTERNAL, "ranks that do not exist cannot be split by a color");
}

static cvy_status pretend_barrier(cvy_comm *comm)
{
    (void)comm;
    return CVY_OK;
}

static cvy_status pretend_broadcast(cvy_comm *comm, void *data, size_t bytes, int root)
{
    (void)comm, (void)data, (void)bytes, (void)root;
    return CVY_OK;
}

static cvy_status pretend_allreduce(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduce op)
{
    for (int64_t i = 0; i < count && op == CVY_REDUCE_SUM; i++)
        switch (dtype) {
        case CVY_DTYPE_F64: ((double *)data)[i] *= comm->nranks; break;
        case CVY_DTYPE_F32: ((float *)data)[i] *= (float)comm->nranks; break;
        case CVY_DTYPE_I64: ((int64_t *)data)[i] *= comm->nranks; break;
        case CVY_DTYPE_I32: ((int32_t *)data)[i] *= comm->nranks; break;
        default: CVY_FAIL(CVY_E_INTERNAL, "a sum of %s over ranks that do not exist", cvy_dtype_text(dtype));
        }
    return CVY_OK;
}

static cvy_status pretend_allreduce_progressing(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype,
                                                cvy_reduce op, cvy_status (*progress)(void *user), void *user)
{
    (void)progress, (void)user;
    return pretend_allreduce(comm, data, count, dtype, op);
}

static cvy_status pretend_allgather(cvy_comm *comm, const void *mine, size_t bytes, void *all_out)
{
    for (int r = 0; r < comm->nranks && bytes > 0; r++)
        memcpy((char *)all_out + (size_t)r * bytes, mine, bytes);
    return CVY_OK;
}

static cvy_status pretend_gatherv(cvy_comm *comm, const void *mine, size_t bytes, void *all_out, const size_t *bytes_of,
                                  int root)
{
    size_t at = 0;
    for (int r = 0; r < comm->nranks && comm->rank == root; at += bytes_of[r++])
        if (bytes > 0)
            memcpy((char *)all_out + at, mine, CVY_MIN(bytes, bytes_of[r]));
    return CVY_OK;
}

static cvy_status pretend_rest(cvy_comm *comm, int round)
{
    (void)comm, (void)round;
    return CVY_OK;
}

static const cvy_comm_ops pretend_ops = {
    .name = "pretend",
    .destroy = pretend_destroy,
    .split = pretend_split,
    .barrier = pretend_barrier,
    .broadcast = pretend_broadcast,
    .allreduce = pretend_allreduce,
    .allreduce_progressing = pretend_allreduce_progressing,
    .allgather = pretend_allgather,
    .gatherv = pretend_gatherv,
    .rest = pretend_rest,
};

/* ---- questions about the network ---- */

static void pretend_about(const cvy_comm *comm, cvy_comm_about *out)
{
    (void)comm;
    *out = (cvy_comm_about){.library = "", .threads = ""};
}

static cvy_status pretend_cost(cvy_comm *comm, const cvy_allreduce_opts *opts, cvy_comm_cost *out)
{
    enum { LARGE = 4 << 20 };
    const struct pretended *s = state_of(comm);
    cvy_exchange_time empty, large;
    CVY_TRY(cvy_network_allreduce(&s->network, s->ranks, comm->nranks, 4, !opts->no_node, opts->algorithm, 1, &empty));
    CVY_TRY(
        cvy_network_allreduce(&s->network, s->ranks, comm->nranks, LARGE, !opts->no_node, opts->algorithm, 1, &large));
    out->alpha_s = empty.work_s + empty.wire_s;
    out->beta_s = CVY_MAX(large.work_s + large.wire_s - out->alpha_s, 1e-9) / LARGE;
    return CVY_OK;
}

static void pretend_algorithms_text(const cvy_comm *comm, const cvy_allreduce_opts *opts, char *text)
{
    (void)comm, (void)opts;
    text[0] = 0;
}

static void pretend_set_algorithms(cvy_comm *comm, const char *text)
{
    (void)comm, (void)text;
}

static const cvy_comm_probe_ops pretend_probe_ops = {
    .about = pretend_about,
    .cost = pretend_cost,
    .algorithms_text = pretend_algorithms_text,
    .set_algorithms = pretend_set_algorithms,
};

/* ---- creation ---- */

static cvy_status make(const cvy_network *network, const int *ranks, int nranks, int rank, cvy_comm **out)
{
    cvy_comm *comm = NULL;
    struct pretended *s = NULL;
    cvy_status status = CVY_OK;
    CVY_CHECK(nranks > 0 && rank >= 0 && rank < nranks, CVY_E_ARGUMENT, "rank %d of %d ranks", rank, nranks);
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *s, &s));
    s->network = *network;
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *s->ranks * (size_t)nranks, &s->ranks));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *comm, &comm));
    *comm = (cvy_comm){.ops = &pretend_ops,
                       .probe = &pretend_probe_ops,
                       .pretended = 1,
                       .rank = rank,
                       .nranks = nranks,
                       .whole_rank = ranks ? ranks[rank] : rank,
                       .impl = s};
    const int node = (ranks ? ranks[rank] : rank) / network->node_ranks;
    for (int r = 0, before = -1; r < nranks; r++) { /* ranks are in the order of their numbers */
        s->ranks[r] = ranks ? ranks[r] : r;
        const int of = s->ranks[r] / network->node_ranks;
        comm->node = of == node && comm->node_nranks == 0 ? comm->nnodes - (of == before) : comm->node;
        comm->node_rank += of == node && r < rank;
        comm->node_nranks += of == node;
        comm->nnodes += of != before;
        comm->shares_nodes |= of == before;
        before = of;
    }
    *out = comm;
    s = NULL;
out:
    if (s)
        cvy_mem_free(&s->ranks);
    cvy_mem_free(&s);
    return status;
}

cvy_status cvy_comm_create_pretended(const cvy_network *network, int nranks, int rank, cvy_comm **out)
{
    return make(network, NULL, nranks, rank, out);
}

cvy_status cvy_comm_create_pretended_part(const cvy_comm *all, const int *ranks, int nranks, int rank, cvy_comm **out)
{
    return make(&state_of(all)->network, ranks, nranks, rank, out);
}
