/*
 * comm_agree.c: agreement of all ranks on a setup fault, so that nobody goes on alone and one rank's message reaches every rank.
 */
#include <stdio.h>

#include "comm/comm.h"

cvy_status cvy_comm_agree(cvy_comm *comm, cvy_status mine)
{
    if (comm->nranks == 1)
        return mine;
    /* The worst status, and the lowest rank that has it: two reductions of one number each. */
    int64_t worst = mine;
    CVY_TRY(comm->ops->allreduce(comm, &worst, 1, CVY_DTYPE_I64, CVY_REDUCE_MIN));
    if (worst >= 0) {
        int64_t most = mine;
        CVY_TRY(comm->ops->allreduce(comm, &most, 1, CVY_DTYPE_I64, CVY_REDUCE_MAX));
        return (cvy_status)most;
    }
    int64_t who = mine == worst ? comm->rank : comm->nranks;
    CVY_TRY(comm->ops->allreduce(comm, &who, 1, CVY_DTYPE_I64, CVY_REDUCE_MIN));
    char text[1024] = "";
    if (who == comm->rank)
        snprintf(text, sizeof text, "%s", cvy_error_text());
    CVY_TRY(comm->ops->broadcast(comm, text, sizeof text, (int)who));
    if (who == comm->rank)
        return (cvy_status)worst;
    return cvy_error_set((cvy_status)worst, "rank %d: %s", (int)who, text);
}
