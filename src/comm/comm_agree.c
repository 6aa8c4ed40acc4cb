/*
 * comm_agree.c: what ranks do together, whatever carries their messages: they agree on a setup fault, so that nobody goes on alone and one rank's message
 * reaches every rank, take memory on all or none, wait for a sum, and compare what all must have alike.
 */
#include <stdio.h>
#include <string.h>

#include "base/base_util.h"
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

cvy_status cvy_comm_alloc(cvy_comm *comm, size_t bytes, void *out)
{
    const cvy_status status = cvy_comm_agree(comm, cvy_mem_alloc(bytes, out));
    if (status < 0)
        cvy_mem_free(out);
    return status;
}

cvy_status cvy_comm_finish(cvy_comm *comm, cvy_request *request)
{
    int done = 0;
    CVY_TRY(comm->ops->request_start(request));
    for (int turn = 0; !done; turn++) {
        CVY_TRY(comm->ops->request_test(request, &done));
        if (!done)
            CVY_TRY(comm->ops->rest(comm, turn));
    }
    return CVY_OK;
}

/* ---- what all ranks must have alike ---- */

/* The first line in which two texts are not the same. */
static cvy_status find_line(const char *mine, const char *first, cvy_alike_fn *differ)
{
    for (int line = 0; *mine || *first; line++) {
        const size_t m = strcspn(mine, "\n"), f = strcspn(first, "\n");
        char here[256], there[256];
        if (m != f || memcmp(mine, first, m) != 0) {
            snprintf(here, sizeof here, "%.*s", (int)m, mine);
            snprintf(there, sizeof there, "%.*s", (int)f, first);
            return differ(line, *mine ? here : NULL, *first ? there : NULL);
        }
        mine += m + (mine[m] != '\0');
        first += f + (first[f] != '\0');
    }
    return CVY_OK;
}

/* Rank 0's text to all, who look for the difference. */
static cvy_status compare(cvy_comm *comm, const cvy_text *mine, cvy_alike_fn *differ)
{
    int64_t bytes = (int64_t)mine->bytes + 1;
    char *first = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(comm->ops->broadcast(comm, &bytes, sizeof bytes, 0));
    CVY_TRY_OUT(cvy_comm_alloc(comm, (size_t)bytes, &first));
    if (comm->rank == 0 && mine->data)
        memcpy(first, mine->data, mine->bytes);
    CVY_TRY_OUT(comm->ops->broadcast(comm, first, (size_t)bytes, 0));
    CVY_TRY_OUT(cvy_comm_agree(comm, find_line(mine->data ? mine->data : "", first, differ)));
out:
    cvy_mem_free(&first);
    return status;
}

cvy_status cvy_comm_alike(cvy_comm *comm, const cvy_text *mine, cvy_alike_fn *differ)
{
    if (comm->nranks == 1)
        return mine->status;
    CVY_TRY(cvy_comm_agree(comm, mine->status));
    const int64_t hash = (int64_t)(cvy_hash(mine->data, mine->bytes) >> 1);
    int64_t ends[2] = {hash, -hash};
    CVY_TRY(comm->ops->allreduce(comm, ends, 2, CVY_DTYPE_I64, CVY_REDUCE_MAX));
    return ends[0] == -ends[1] ? CVY_OK : compare(comm, mine, differ);
}
