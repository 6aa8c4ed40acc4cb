/*
 * monitor_replicas.c: see monitor_replicas.h. Ranks compare one hash over all weights, 8 bytes for each rank. Only if
 * it differs do they compare the hashes of each variable.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "monitor/monitor_replicas.h"

#include "base/base_hash.h"
#include "base/base_mem.h"

static cvy_status add_weight(const cvy_variable *v, cvy_hasher *h)
{
    void *data = NULL;
    if (v->role != CVY_ROLE_WEIGHT || v->elsewhere)
        return CVY_OK;
    CVY_TRY(cvy_space_map(v->space, v->data, v->bytes, &data));
    cvy_hash_add(h, data, v->bytes);
    return cvy_space_unmap(v->space, v->data, v->bytes, 0, data);
}

static cvy_status hash_of(const cvy_variable *v, uint64_t *hash_out)
{
    cvy_hasher h;
    cvy_hash_begin(&h);
    CVY_TRY(add_weight(v, &h));
    *hash_out = cvy_hash_end(&h);
    return CVY_OK;
}

static cvy_status hash_all(const cvy_vars *vars, uint64_t *hash_out)
{
    cvy_hasher h;
    cvy_hash_begin(&h);
    for (int i = 0; i < vars->count; i++)
        CVY_TRY(add_weight(vars->at[i], &h));
    *hash_out = cvy_hash_end(&h);
    return CVY_OK;
}

struct vote {
    uint64_t hash, speaks, rank; /* rank: its number in the job */
};

/* The hash that most ranks have. If several are equally frequent, the one of the lowest rank. */
static uint64_t majority(const struct vote *vote, int n)
{
    uint64_t best = vote[0].hash;
    int most = 0;
    for (int r = 0; r < n; r++) {
        int same = 0;
        for (int k = 0; k < n && vote[r].speaks; k++)
            same += vote[k].speaks && vote[k].hash == vote[r].hash;
        if (same > most) {
            most = same;
            best = vote[r].hash;
        }
    }
    return best;
}

static int count_other(const struct vote *vote, int n, uint64_t hash, int *first_out)
{
    int others = 0;
    for (int r = n - 1; r >= 0; r--)
        if (vote[r].speaks && vote[r].hash != hash) {
            *first_out = r;
            others++;
        }
    return others;
}

/* Finds the first variable that is not the same on all ranks. */
static cvy_status find_variable(cvy_comm *comm, const cvy_vars *vars, struct vote *vote, const char **name_out)
{
    for (int i = 0; i < vars->count; i++) {
        struct vote mine = vote[comm->rank];
        int first = 0;
        CVY_TRY(hash_of(vars->at[i], &mine.hash));
        CVY_TRY(comm->ops->allgather(comm, &mine, sizeof mine, vote));
        if (count_other(vote, comm->nranks, majority(vote, comm->nranks), &first) > 0) {
            *name_out = vars->at[i]->name;
            return CVY_OK;
        }
    }
    return CVY_OK;
}

static cvy_status compare(cvy_comm *comm, const cvy_vars *vars, struct vote *vote, struct vote mine)
{
    const char *name = "?";
    int odd = 0, speakers = 0;
    CVY_TRY(comm->ops->allgather(comm, &mine, sizeof mine, vote));
    for (int r = 0; r < comm->nranks; r++)
        speakers += vote[r].speaks != 0;
    const int others = count_other(vote, comm->nranks, majority(vote, comm->nranks), &odd);
    if (others == 0)
        return CVY_OK;
    CVY_TRY(find_variable(comm, vars, vote, &name));
    CVY_CHECK(
        2 * others < speakers, CVY_E_DISAGREE,
        "the weights of the ranks are not the same any more, first in %s: rank %d differs from others, and no majority "
        "tells which are"
        " right; resume from the latest checkpoint, and check the memory and the network of these nodes",
        name, (int)vote[odd].rank);
    CVY_FAIL(CVY_E_DISAGREE,
             "rank %d has other weights than %d of %d ranks, first in %s: a bit has flipped in its memory, or an "
             "all-reduce returned a wrong result; resume from the"
             " latest checkpoint without its node",
             (int)vote[odd].rank, speakers - others, speakers, name);
}

cvy_status cvy_replicas_compare(cvy_comm *comm, const cvy_vars *vars, int once_on_node)
{
    struct vote mine = {.speaks = !once_on_node || comm->node_rank == 0, .rank = (uint64_t)comm->whole_rank};
    struct vote *vote = NULL;
    if (comm->nranks == 1)
        return CVY_OK;
    CVY_TRY(cvy_comm_alloc(comm, sizeof *vote * (size_t)comm->nranks, &vote));
    cvy_status status = mine.speaks ? hash_all(vars, &mine.hash) : CVY_OK;
    if (status == CVY_OK)
        status = compare(comm, vars, vote, mine);
    cvy_mem_free(&vote);
    return status;
}
