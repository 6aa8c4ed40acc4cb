/*
 * comm_grid.c: arranges ranks as a grid: a rank's stage is its number divided by the length of the data axis.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/comm_grid.h"

cvy_status cvy_grid_check(int64_t nstages, int nranks)
{
    cvy_text fits = {0};
    if (nstages >= 1 && nstages <= nranks && nranks % nstages == 0)
        return CVY_OK;
    for (int n = 1; n <= nranks; n++)
        if (nranks % n == 0)
            cvy_text_add(&fits, "%s%d", n == 1 ? "" : n == nranks ? " or " : ", ", n);
    cvy_error_set(CVY_E_CONFIG,
                  "%lld pipeline stages on %d rank%s: the number of ranks must be a multiple of the number of stages; "
                  "with %d rank%s there can be %s",
                  (long long)nstages, nranks, nranks == 1 ? "" : "s", nranks, nranks == 1 ? "" : "s",
                  fits.data ? fits.data : "1");
    cvy_text_free(&fits);
    return CVY_E_CONFIG;
}

cvy_status cvy_grid_arrange(cvy_comm *all, int64_t nstages, cvy_grid *out)
{
    CVY_TRY(cvy_grid_check(nstages, all->nranks));
    const int ndata = all->nranks / (int)nstages;
    *out = (cvy_grid){.all = all,
                      .nstages = (int)nstages,
                      .stage = all->rank / ndata,
                      .ndata = ndata,
                      .data_rank = all->rank % ndata,
                      .data = nstages == 1 ? all : NULL};
    return CVY_OK;
}

cvy_status cvy_grid_connect(cvy_grid *g)
{
    if (g->data)
        return CVY_OK;
    CVY_TRY(cvy_comm_split(g->all, g->stage, g->data_rank, &g->data));
    return cvy_comm_split(g->all, g->data_rank, g->stage, &g->pipeline);
}

void cvy_grid_disconnect(cvy_grid *g)
{
    if (g->pipeline)
        g->pipeline->ops->destroy(g->pipeline);
    if (g->data && g->data != g->all)
        g->data->ops->destroy(g->data);
    g->pipeline = g->data = NULL;
}
