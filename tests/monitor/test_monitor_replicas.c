/* ranks: 2 3 4 */
/* rows: mpich mpi asan */
/*
 * test_monitor_replicas.c: weights that should be equal on all ranks: a bit flipped anywhere on any rank is found, and
 * the rank is named if most others agree; equal weights, and values that are not weights, are not reported.
 *
 * CONVOY_TEST_FLIPS says how many bits are tried (60).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/mpi/comm_mpi.h"
#include "monitor/monitor_replicas.h"
#include "test_util.h"

static cvy_comm *comm;
static cvy_vars *vars;

static void make_vars(void)
{
    static const struct {
        const char *name;
        cvy_role role;
        int64_t n;
    } rows[] = {{"conv.weight", CVY_ROLE_WEIGHT, 1000},
                {"fc.weight", CVY_ROLE_WEIGHT, 3},
                {"fc.weight.momentum", CVY_ROLE_STATE, 3},
                {"fc.bias", CVY_ROLE_WEIGHT, 257}};
    EXPECT_OK(cvy_vars_create(&vars));
    for (int i = 0; i < CVY_COUNT(rows); i++) {
        cvy_variable *v = NULL;
        EXPECT_OK(
            cvy_vars_declare(vars, rows[i].name, rows[i].role, CVY_DTYPE_F32, &(cvy_shape){1, {rows[i].n}}, NULL, &v));
        v->bytes = (size_t)rows[i].n * 4;
        EXPECT_OK(cvy_mem_alloc_pages(v->bytes, &v->data));
    }
    for (int i = 0; i < vars->count; i++)
        for (size_t k = 0; k < vars->at[i]->bytes; k++)
            ((unsigned char *)vars->at[i]->data)[k] = (unsigned char)(7 * k + (size_t)i);
}

static void flip(int variable, size_t bit)
{
    ((unsigned char *)vars->at[variable]->data)[bit / 8] ^= (unsigned char)(1u << bit % 8);
}

static void every_flip_is_found(void)
{
    const char *text = getenv("CONVOY_TEST_FLIPS");
    const int tries = text ? atoi(text) : 60;
    srand(5); /* the same numbers on all ranks */
    for (int i = 0; i < tries; i++) {
        static const int weights[] = {0, 1, 3};
        const int v = weights[rand() % 3], rank = rand() % comm->nranks;
        const size_t bit = (size_t)rand() % ((size_t)cvy_shape_elems(&vars->at[v]->shape) * 32);
        char expected[160];
        if (comm->nranks > 2)
            snprintf(expected, sizeof expected, "rank %d has other weights than %d of %d ranks, first in %s", rank,
                     comm->nranks - 1, comm->nranks, vars->at[v]->name);
        else
            snprintf(expected, sizeof expected, "not the same any more, first in %s: rank 1 differs",
                     vars->at[v]->name);
        if (comm->rank == rank)
            flip(v, bit);
        EXPECT_FAULT(cvy_replicas_compare(comm, vars, 0), CVY_E_DISAGREE, expected);
        if (comm->rank == rank)
            flip(v, bit);
        EXPECT_OK(cvy_replicas_compare(comm, vars, 0));
    }
}

static void states_may_differ(void)
{
    if (comm->rank == 1)
        flip(2, 9);
    EXPECT_OK(cvy_replicas_compare(comm, vars, 0));
}

/* All ranks of this node share one copy, and the first rank checks it for them. */
static void one_copy_on_a_node(void)
{
    if (comm->rank == 1)
        flip(0, 3);
    EXPECT_OK(cvy_replicas_compare(comm, vars, 1));
    if (comm->rank == 1)
        flip(0, 3);
}

/* In a part of the ranks, as on a process grid, the message has the number in the job. */
static void parts_of_the_job(void)
{
    cvy_comm *part = NULL;
    if (comm->nranks < 4)
        return;
    EXPECT_OK(cvy_comm_split(comm, comm->rank / 2, comm->rank, &part));
    if (comm->rank == 3)
        flip(0, 3);
    if (comm->rank < 2)
        EXPECT_OK(cvy_replicas_compare(part, vars, 0));
    else
        EXPECT_FAULT(cvy_replicas_compare(part, vars, 0), CVY_E_DISAGREE, "first in conv.weight: rank 3 differs");
    if (comm->rank == 3)
        flip(0, 3);
    part->ops->destroy(part);
}

int main(int argc, char **argv)
{
    int level = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    EXPECT_OK(cvy_comm_create_mpi(MPI_COMM_WORLD, &comm));
    make_vars();
    TEST(every_flip_is_found);
    TEST(states_may_differ);
    TEST(one_copy_on_a_node);
    TEST(parts_of_the_job);
    cvy_vars_destroy(&vars);
    comm->ops->destroy(comm);
    MPI_Finalize();
    return test_end();
}
