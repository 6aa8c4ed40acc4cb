/*
 * comm_network.c: the cost of exchanges; see comm_network.h.
 *
 * A message of n bytes takes alpha + n beta. An all-reduce is the list of transfers that the ranks would run
 * (comm_allreduce.h), so its cost has no formula of its own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/comm_network.h"

#include <math.h>
#include <string.h>

cvy_network cvy_network_of_node(int node_ranks)
{
    const cvy_link memory = {.alpha_s = 2e-6, .beta_s = 2.5e-10, .gamma_s = 1e-10};
    return (cvy_network){.node_ranks = node_ranks < 1 ? 1 : node_ranks,
                         .inside = memory,
                         .across = memory,
                         .memory = {2e-6, 1e-10},
                         .copy_s = 1e-10};
}

const cvy_link *cvy_network_link(const cvy_network *n, int a, int b)
{
    return a / n->node_ranks == b / n->node_ranks ? &n->inside : &n->across;
}

/* The time of the fastest algorithm, or of the one that is named. */
static cvy_status by_messages(const cvy_link *link, int nranks, int64_t bytes, const char *algorithm,
                              cvy_exchange_time *out)
{
    const int64_t elems = (bytes + (int64_t)sizeof(float) - 1) / (int64_t)sizeof(float);
    const cvy_link wire = {link->alpha_s, link->beta_s, 0};
    int count = 0;
    const cvy_allreduce_def *const *def = cvy_allreduce_table(&count);
    double best = INFINITY;
    for (int i = 0; i < count; i++) {
        cvy_transfer_list list = {0};
        if (algorithm && strcmp(algorithm, "library") != 0 && strcmp(algorithm, def[i]->name) != 0)
            continue;
        CVY_TRY(cvy_allreduce_build(def[i], 0, nranks, elems, &list));
        const double wire_s = cvy_transfer_list_cost(&list, sizeof(float), &wire),
                     all_s = cvy_transfer_list_cost(&list, sizeof(float), link);
        cvy_transfer_list_free(&list);
        if (all_s < best)
            *out = (cvy_exchange_time){.work_s = all_s - wire_s, .wire_s = wire_s};
        best = CVY_MIN(best, all_s);
    }
    return CVY_OK;
}

cvy_status cvy_network_allreduce(const cvy_network *network, const int *ranks, int nranks, int64_t bytes, int by_memory,
                                 const char *algorithm, int crowd, cvy_exchange_time *out)
{
    int here = 0;
    cvy_exchange_time messages = {0}, memory = {0};
    if (nranks < 2) {
        *out = memory;
        return CVY_OK;
    }
    for (int i = 0; i < nranks; i++)
        here += ranks[i] / network->node_ranks == ranks[0] / network->node_ranks;
    const int shares = by_memory ? here : 1, groups = (nranks + shares - 1) / shares;
    if (shares > 1) {
        memory.work_s = (double)bytes * network->memory.beta_s;
        memory.wire_s = network->memory.alpha_s;
    }
    if (groups > 1) {
        cvy_link link = here == nranks ? network->inside : network->across;
        link.beta_s *= here == nranks ? 1 : CVY_MAX(crowd, 1);
        CVY_TRY(by_messages(&link, groups, bytes / shares, algorithm, &messages));
    }
    *out = (cvy_exchange_time){memory.work_s + messages.work_s, memory.wire_s + messages.wire_s};
    return CVY_OK;
}
