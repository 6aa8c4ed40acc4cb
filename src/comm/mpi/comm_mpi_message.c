/*
 * comm_mpi_message.c: messages between two ranks, made of separate ranges of memory: gradients to a parameter server,
 * and weights from it.
 *
 * The ranges become one MPI datatype of absolute addresses. So MPI gathers and scatters them itself, and we copy
 * nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <limits.h>

#include "base/base_mem.h"
#include "comm/mpi/comm_mpi_impl.h"
#include "comm/mpi/comm_mpi_thread.h"

enum { FIRST_TAG = 64 }; /* gatherv and ping use smaller tags on the same communicator */

struct cvy_message {
    cvy_comm *owner;
    int64_t bytes;
    MPI_Datatype type;
    MPI_Request request;
    int from; /* the sender of the latest message received */
};

/* The number of pieces of a range whose sizes fit in an int. */
static int64_t pieces_of(const cvy_range *range)
{
    return (int64_t)((range->bytes + CVY_PIECE_ELEMS - 1) / CVY_PIECE_ELEMS);
}

static cvy_status list_pieces(const cvy_range *range, int nrange, int *length, MPI_Aint *at)
{
    int64_t n = 0;
    for (int i = 0; i < nrange; i++)
        for (size_t done = 0; done < range[i].bytes; done += CVY_PIECE_ELEMS, n++) {
            length[n] = (int)CVY_MIN(range[i].bytes - done, (size_t)CVY_PIECE_ELEMS);
            CVY_TRY_MPI(MPI_Get_address((char *)range[i].data + done, &at[n]));
        }
    return CVY_OK;
}

static cvy_status make_type(const cvy_range *range, int nrange, MPI_Datatype *out)
{
    int64_t count = 0;
    int *length = NULL;
    MPI_Aint *at = NULL;
    cvy_status status = CVY_OK;
    for (int i = 0; i < nrange; i++)
        count += pieces_of(&range[i]);
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *length * (size_t)count, &length));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *at * (size_t)count, &at));
    CVY_TRY_OUT(list_pieces(range, nrange, length, at));
    CVY_TRY_OUT(
        cvy_mpi_check(MPI_Type_create_hindexed((int)count, length, at, MPI_BYTE, out), "MPI_Type_create_hindexed"));
    CVY_TRY_OUT(cvy_mpi_check(MPI_Type_commit(out), "MPI_Type_commit"));
out:
    cvy_mem_free(&length);
    cvy_mem_free(&at);
    return status;
}

/* In a simulation a message has a size and no contents. */
static cvy_status check_simulated(const cvy_message *m)
{
    CVY_CHECK(m->bytes <= INT_MAX, CVY_E_UNSUPPORTED, "a message of %lld bytes cannot be simulated; at most %d can",
              (long long)m->bytes, INT_MAX);
    return CVY_OK;
}

static void message_destroy(cvy_message **m)
{
    int finalized = 0;
    if (*m && cvy_mpi_of((*m)->owner)->simulated.folded)
        cvy_simulated_forget(cvy_mpi_of((*m)->owner), &(*m)->request);
    MPI_Finalized(&finalized);
    if (*m && (*m)->type != MPI_DATATYPE_NULL && !finalized)
        MPI_Type_free(&(*m)->type);
    cvy_mem_free(m);
}

static cvy_status message_create(cvy_comm *comm, const cvy_range *range, int nrange, cvy_message **out)
{
    cvy_message *m = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *m, &m));
    *m = (struct cvy_message){.owner = comm, .type = MPI_DATATYPE_NULL, .request = MPI_REQUEST_NULL};
    for (int i = 0; i < nrange; i++)
        m->bytes += (int64_t)range[i].bytes;
    const cvy_status status =
        cvy_mpi_of(comm)->simulated.folded ? check_simulated(m) : make_type(range, nrange, &m->type);
    if (status != CVY_OK)
        message_destroy(&m);
    else
        *out = m;
    return status;
}

/* What MPI is told about the memory of a message. */
struct place {
    void *at;
    int count;
    MPI_Datatype type;
};

static struct place place_of(const cvy_message *m)
{
    void *folded = cvy_mpi_of(m->owner)->simulated.folded;
    return folded ? (struct place){folded, (int)m->bytes, MPI_BYTE} : (struct place){MPI_BOTTOM, 1, m->type};
}

static cvy_status message_send(cvy_message *m, int to, int tag)
{
    cvy_mpi *mpi = cvy_mpi_of(m->owner);
    const struct place p = place_of(m);
    m->owner->sent_bytes += m->bytes;
    cvy_mpi_lock(mpi);
    const cvy_status status =
        cvy_mpi_check(MPI_Isend(p.at, p.count, p.type, to, FIRST_TAG + tag, mpi->comm, &m->request), "MPI_Isend");
    cvy_mpi_unlock(mpi);
    return mpi->simulated.folded && status == CVY_OK ? cvy_simulated_await(mpi, &m->request) : status;
}

static cvy_status message_receive(cvy_message *m, int from, int tag)
{
    cvy_mpi *mpi = cvy_mpi_of(m->owner);
    const struct place p = place_of(m);
    cvy_mpi_lock(mpi);
    const cvy_status status =
        cvy_mpi_check(MPI_Irecv(p.at, p.count, p.type, from == CVY_ANY_RANK ? MPI_ANY_SOURCE : from, FIRST_TAG + tag,
                                mpi->comm, &m->request),
                      "MPI_Irecv");
    cvy_mpi_unlock(mpi);
    return mpi->simulated.folded && status == CVY_OK ? cvy_simulated_await(mpi, &m->request) : status;
}

static cvy_status message_test(cvy_message *m, int *done_out, int *from_out)
{
    const cvy_mpi *mpi = cvy_mpi_of(m->owner);
    *done_out = m->request == MPI_REQUEST_NULL;
    if (!*done_out && !mpi->simulated.folded) { /* in a simulation, waits complete requests */
        MPI_Status result;
        cvy_mpi_lock(mpi);
        const cvy_status status = cvy_mpi_check(MPI_Test(&m->request, done_out, &result), "MPI_Test");
        cvy_mpi_unlock(mpi);
        CVY_TRY(status);
        if (*done_out)
            m->from = result.MPI_SOURCE;
    }
    if (from_out)
        *from_out = m->from;
    return CVY_OK;
}

static cvy_status message_cancel(cvy_message *m)
{
    if (m->request == MPI_REQUEST_NULL)
        return CVY_OK;
    if (cvy_mpi_of(m->owner)->simulated.folded)
        cvy_simulated_forget(cvy_mpi_of(m->owner), &m->request);
    cvy_mpi_lock(cvy_mpi_of(m->owner));
    cvy_status status = cvy_mpi_check(MPI_Cancel(&m->request), "MPI_Cancel");
    if (status == CVY_OK)
        status = cvy_mpi_check(MPI_Wait(&m->request, MPI_STATUS_IGNORE), "MPI_Wait");
    cvy_mpi_unlock(cvy_mpi_of(m->owner));
    return status;
}

const cvy_comm_message_ops cvy_mpi_message_ops = {
    .create = message_create,
    .send = message_send,
    .receive = message_receive,
    .test = message_test,
    .cancel = message_cancel,
    .destroy = message_destroy,
};
