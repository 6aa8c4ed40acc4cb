/*
 * comm_agree.c: operations that all ranks do together and that do not depend on the back end. The ranks agree on an
 * error during setup, so that no rank goes on alone and the message of one rank reaches every rank. They split a
 * communicator, allocate memory on all ranks or on none, wait for a reduction, sleep while rank 0 works, and compare
 * what must be the same on all ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/base_entry.h"
#include "base/base_hash.h"
#include "base/text/base_text.h"
#include "comm/comm.h"

/* This rank's message for the other ranks. If it came from another rank of a part, it names that one. */
static void describe_error(const cvy_comm *comm, char *text, size_t room)
{
    int named = 0;
    if (sscanf(cvy_error_text(), "rank %*d: %n", &named) >= 0 && named > 0)
        snprintf(text, room, "%s", cvy_error_text());
    else
        snprintf(text, room, "rank %d: %s", comm->whole_rank, cvy_error_text());
}

cvy_status cvy_comm_agree(cvy_comm *comm, cvy_status mine)
{
    if (comm->nranks == 1)
        return mine;
    /* One reduction gives the worst error and the largest status that is not an error. Only after an error two more
     * follow. */
    int64_t most[2] = {-(int64_t)mine, mine};
    CVY_TRY(comm->ops->allreduce(comm, most, 2, CVY_DTYPE_I64, CVY_REDUCE_MAX));
    const int64_t worst = -most[0];
    if (worst >= 0)
        return (cvy_status)most[1];
    int64_t who = mine == worst ? comm->rank : comm->nranks;
    CVY_TRY(comm->ops->allreduce(comm, &who, 1, CVY_DTYPE_I64, CVY_REDUCE_MIN));
    char text[1024] = "";
    if (who == comm->rank)
        describe_error(comm, text, sizeof text);
    CVY_TRY(comm->ops->broadcast(comm, text, sizeof text, (int)who));
    if (who == comm->rank)
        return (cvy_status)worst;
    return cvy_error_set((cvy_status)worst, "%s", text);
}

static cvy_status check_color(int color)
{
    CVY_CHECK(color >= CVY_NO_COLOR, CVY_E_ARGUMENT, "a communicator is split by the color %d; colors are 0 or more",
              color);
    return CVY_OK;
}

cvy_status cvy_comm_split(cvy_comm *comm, int color, int key, cvy_comm **out)
{
    cvy_comm *part = NULL;
    CVY_TRY(cvy_comm_agree(comm, check_color(color)));
    const cvy_status status = cvy_comm_agree(comm, comm->ops->split(comm, color, key, &part));
    if (status != CVY_OK && part)
        part->ops->destroy(part);
    else
        *out = part;
    return status;
}

cvy_status cvy_comm_alloc(cvy_comm *comm, size_t bytes, void *out)
{
    const cvy_status status = cvy_comm_agree(comm, cvy_mem_alloc(bytes, out));
    if (status < 0)
        cvy_mem_free(out);
    return status;
}

void cvy_comm_met(cvy_comm *comm)
{
    comm->met_call = cvy_entry_function();
    comm->met_step = comm->step;
}

cvy_status cvy_comm_finish(cvy_comm *comm, cvy_request *request)
{
    int done = 0;
    CVY_TRY(comm->reduce->start(request));
    for (int round = 0; !done; round++) {
        CVY_TRY(comm->reduce->test(request, &done));
        if (!done)
            CVY_TRY(comm->ops->rest(comm, round));
    }
    return CVY_OK;
}

/* ---- comparison of what must be the same on all ranks ---- */

/* Finds the first line that differs between the two texts. */
static cvy_status find_line(const char *mine, const char *first, cvy_comm_differ_fn *differ)
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

/* Rank 0 sends its text to all ranks, and each looks for the first difference. */
static cvy_status compare(cvy_comm *comm, const cvy_text *mine, cvy_comm_differ_fn *differ)
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

cvy_status cvy_comm_compare(cvy_comm *comm, const cvy_text *mine, cvy_comm_differ_fn *differ)
{
    if (comm->nranks == 1)
        return mine->status;
    CVY_TRY(cvy_comm_agree(comm, mine->status));
    const int64_t hash = (int64_t)(cvy_hash(mine->data, mine->bytes) >> 1);
    int64_t ends[2] = {hash, -hash};
    CVY_TRY(comm->ops->allreduce(comm, ends, 2, CVY_DTYPE_I64, CVY_REDUCE_MAX));
    return ends[0] == -ends[1] ? CVY_OK : compare(comm, mine, differ);
}

/* The request is complete when all ranks are here. A rank that waits sleeps. */
static cvy_status wait_asleep(const cvy_comm *comm, cvy_request *request)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    int done = 0;
    CVY_TRY(comm->reduce->start(request));
    while (!done) {
        CVY_TRY(comm->reduce->test(request, &done));
        if (!done)
            nanosleep(&pause, NULL);
    }
    return CVY_OK;
}

cvy_status cvy_comm_while_others_sleep(cvy_comm *comm, cvy_status (*work)(void *user), void *user)
{
    cvy_request *request = NULL;
    double ready = 1;
    const cvy_allreduce_opts reduce = {.algorithm = "library"}; /* one number: nothing needs to be measured for it */
    if (comm->nranks == 1)
        return work(user);
    const cvy_status made = comm->reduce->create(comm, &reduce, &ready, 1, CVY_DTYPE_F64, NULL, &request);
    const cvy_status agreed = cvy_comm_agree(comm, made);
    if (agreed != CVY_OK) {
        comm->reduce->destroy(&request);
        return agreed;
    }
    const cvy_status status = comm->rank == 0 ? work(user) : CVY_OK;
    const cvy_status waited = wait_asleep(comm, request);
    comm->reduce->destroy(&request);
    return status != CVY_OK ? status : waited;
}
