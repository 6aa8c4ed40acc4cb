/*
 * comm_self.c: the communicator of one rank. A sum over one rank changes nothing, and nothing is ever under way. It has
 * none of the optional tables, so it shows the minimum that a back end must have.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_mem.h"
#include "comm/comm.h"

static void self_destroy(cvy_comm *comm)
{
    cvy_mem_free(&comm);
}

static cvy_status self_split(cvy_comm *comm, int color, int key, cvy_comm **out)
{
    (void)comm, (void)key;
    *out = NULL;
    return color == CVY_NO_COLOR ? CVY_OK : cvy_comm_create_self(out);
}

static cvy_status self_barrier(cvy_comm *comm)
{
    (void)comm;
    return CVY_OK;
}

static cvy_status self_broadcast(cvy_comm *comm, void *data, size_t bytes, int root)
{
    (void)comm, (void)data, (void)bytes, (void)root;
    return CVY_OK;
}

static cvy_status self_allreduce(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduce op)
{
    (void)comm, (void)data, (void)count, (void)dtype, (void)op;
    return CVY_OK;
}

static cvy_status self_allreduce_progressing(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduce op,
                                             cvy_status (*progress)(void *user), void *user)
{
    (void)progress, (void)user;
    return self_allreduce(comm, data, count, dtype, op);
}

static cvy_status self_allgather(cvy_comm *comm, const void *mine, size_t bytes, void *all_out)
{
    (void)comm;
    if (bytes > 0)
        memcpy(all_out, mine, bytes);
    return CVY_OK;
}

static cvy_status self_gatherv(cvy_comm *comm, const void *mine, size_t bytes, void *all_out, const size_t *bytes_of,
                               int root)
{
    (void)bytes_of, (void)root;
    return self_allgather(comm, mine, bytes, all_out);
}

static cvy_status self_rest(cvy_comm *comm, int round)
{
    (void)comm, (void)round;
    return CVY_OK;
}

static const cvy_comm_ops self_ops = {
    .name = "self",
    .destroy = self_destroy,
    .split = self_split,
    .barrier = self_barrier,
    .broadcast = self_broadcast,
    .allreduce = self_allreduce,
    .allreduce_progressing = self_allreduce_progressing,
    .allgather = self_allgather,
    .gatherv = self_gatherv,
    .rest = self_rest,
};

cvy_status cvy_comm_create_self(cvy_comm **out)
{
    cvy_comm *comm = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *comm, &comm));
    *comm = (cvy_comm){.ops = &self_ops, .rank = 0, .nranks = 1, .node_rank = 0, .node_nranks = 1, .nnodes = 1};
    *out = comm;
    return CVY_OK;
}
