/*
 * comm_agree.c: agreement of all ranks on a setup fault, so that nobody goes on alone and one rank's message reaches every rank.
 */
#include <stdio.h>

#include "comm/comm.h"

cvy_status cvy_comm_agree(cvy_comm *comm, cvy_status mine)
{
    if (comm->nranks == 1)
        return mine;
    /* One reduction for the worst fault and the largest answer that is none; two more only where somebody failed. */
    int64_t most[2] = {-(int64_t)mine, mine};
    CVY_TRY(comm->ops->allreduce(comm, most, 2, CVY_DTYPE_I64, CVY_REDUCE_MAX));
    const int64_t worst = -most[0];
    if (worst >= 0)
        return (cvy_status)most[1];
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
