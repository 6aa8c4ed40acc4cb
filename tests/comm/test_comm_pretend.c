/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_comm_pretend.c: a communicator of ranks that do not exist: its collectives, nodes and parts along the axes of a
 * grid; and the cost of an all-reduce on a network against a formula.
 */
#include "base/base_mem.h"
#include "comm/comm_grid.h"
#include "comm/pretend/comm_pretend.h"

#include "test_util.h"

static const cvy_link link = {.alpha_s = 1e-5, .beta_s = 1e-9, .gamma_s = 1e-10};

static cvy_network make_network(int node_ranks)
{
    cvy_network n = cvy_network_of_node(node_ranks);
    n.across = link;
    return n;
}

static void test_collectives(void)
{
    const cvy_network network = make_network(2);
    int64_t number[2] = {3, -1}, all[10];
    double real = 1.5;
    cvy_comm *comm = NULL;
    EXPECT_OK(cvy_comm_create_pretended(&network, 5, 3, &comm));
    EXPECT(comm->pretended && cvy_comm_decides(comm));
    EXPECT_INT(comm->node, 1);
    EXPECT_INT(comm->node_rank, 1);
    EXPECT_INT(comm->node_nranks, 2);
    EXPECT_INT(comm->nnodes, 3);
    EXPECT_OK(comm->ops->allreduce(comm, number, 2, CVY_DTYPE_I64, CVY_REDUCE_MAX));
    EXPECT_INT(number[0], 3);
    EXPECT_OK(comm->ops->allreduce(comm, number, 2, CVY_DTYPE_I64, CVY_REDUCE_SUM));
    EXPECT_INT(number[0], 15);
    EXPECT_INT(number[1], -5);
    EXPECT_OK(comm->ops->allreduce(comm, &real, 1, CVY_DTYPE_F64, CVY_REDUCE_SUM));
    EXPECT_NEAR(real, 7.5, 0);
    EXPECT_OK(comm->ops->allgather(comm, number, sizeof number, all));
    EXPECT_INT(all[8], 15);
    EXPECT_INT(all[9], -5);
    EXPECT_OK(cvy_comm_agree(comm, CVY_OK));
    EXPECT_INT(cvy_comm_agree(comm, cvy_error_set(CVY_E_CONFIG, "this")), CVY_E_CONFIG);
    comm->ops->destroy(comm);
    EXPECT_FAULT(cvy_comm_create_pretended(&network, 2, 2, &comm), CVY_E_ARGUMENT, "rank 2 of 2");
}

/* 8 ranks: pipeline 2 x data 2 x tensor 2; rank 5 has tensor place 1, data place 0, stage 1. */
static void test_grid(void)
{
    const cvy_network network = make_network(4);
    const int64_t length[CVY_AXES] = {0, 2, 2, 1, 1, 1};
    const unsigned data = CVY_AXIS_BIT(CVY_AXIS_DATA), both = data | CVY_AXIS_BIT(CVY_AXIS_PIPELINE);
    cvy_comm *comm = NULL;
    cvy_grid grid;
    int ranks[8];
    EXPECT_OK(cvy_comm_create_pretended(&network, 8, 5, &comm));
    EXPECT_OK(cvy_grid_arrange(comm, length, &grid));
    EXPECT_INT(cvy_grid_rank(&grid, grid.at), 5);
    EXPECT_INT(cvy_grid_members(&grid, data, ranks), 2);
    EXPECT(ranks[0] == 5 && ranks[1] == 7);
    EXPECT_INT(cvy_grid_members(&grid, both, ranks), 4);
    EXPECT(ranks[0] == 1 && ranks[1] == 3 && ranks[2] == 5 && ranks[3] == 7);
    EXPECT_OK(cvy_grid_connect(&grid));
    EXPECT_OK(cvy_grid_join(&grid, UINT64_C(1) << both));
    EXPECT(grid.data->nranks == 2 && grid.data->rank == 0 && grid.data->nnodes == 1);
    EXPECT(grid.pipeline->nranks == 2 && grid.pipeline->rank == 1 && grid.pipeline->nnodes == 2);
    EXPECT(grid.over[both]->nranks == 4 && grid.over[both]->rank == 2 && grid.over[both]->node_nranks == 2);
    cvy_grid_disconnect(&grid);
    comm->ops->destroy(comm);
}

/* A ring over p ranks has 2 (p - 1) rounds of n / p bytes; half of them add. */
static void test_allreduce(void)
{
    const cvy_network apart = make_network(1), together = make_network(4);
    const int64_t bytes = 4 << 20;
    const int ranks[4] = {0, 1, 2, 3};
    cvy_exchange_time t = {0};
    EXPECT_OK(cvy_network_allreduce(&apart, ranks, 4, bytes, 1, "ring", 1, &t));
    EXPECT_NEAR(t.wire_s, 6 * (link.alpha_s + bytes / 4.0 * link.beta_s), 1e-9);
    EXPECT_NEAR(t.work_s, 3 * bytes / 4.0 * link.gamma_s, 1e-9);
    EXPECT_OK(cvy_network_allreduce(&apart, ranks, 4, bytes, 1, "ring", 2, &t)); /* two groups share the links */
    EXPECT_NEAR(t.wire_s, 6 * (link.alpha_s + bytes / 2.0 * link.beta_s), 1e-9);
    EXPECT_OK(cvy_network_allreduce(&together, ranks, 4, bytes, 1, "ring", 4, &t)); /* in the node's memory */
    EXPECT_NEAR(t.work_s, (double)bytes * together.memory.beta_s, 1e-9);
    EXPECT_OK(cvy_network_allreduce(&apart, ranks, 1, bytes, 1, NULL, 1, &t));
    EXPECT_NEAR(t.work_s + t.wire_s, 0, 0);
}

int main(void)
{
    TEST(test_collectives);
    TEST(test_grid);
    TEST(test_allreduce);
    return test_end();
}
