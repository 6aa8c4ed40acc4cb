/*
 * comm_mpi.c: creates a communicator from a duplicate of the user's MPI communicator, splits it and frees it; and the
 * blocking collectives for setup. comm_mpi_request.c does the reductions of gradients.
 *
 * The library never uses MPI_COMM_WORLD and does not assume who initialised MPI. Large counts are split into pieces
 * whose size fits in an int.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_mem.h"
#include "base/base_process.h"
#include "comm/mpi/comm_mpi_impl.h"
#include "comm/mpi/comm_mpi_thread.h"
#include "comm/mpi/comm_mpi_watch.h"

enum { BUSY_ROUNDS = 100 }; /* before a rank that waits gives up its core */

cvy_status cvy_mpi_check(int code, const char *call)
{
    if (code == MPI_SUCCESS)
        return CVY_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    const int name = (int)strcspn(call, "("); /* length of the function's name: `call` is the source text of the call */
    int kind = 0;
    if (MPI_Error_class(code, &kind) != MPI_SUCCESS || kind != MPI_ERR_TRUNCATE)
        return cvy_error_set(CVY_E_COMM, "%.*s failed: %s", name, call, text);
    return cvy_error_set(
        CVY_E_COMM,
        "%.*s failed: the ranks do not make the same call: one of them has skipped a call, or passes another size: %s",
        name, call, text);
}
static MPI_Comm comm_of(const cvy_comm *comm)
{
    return cvy_mpi_of(comm)->comm;
}

MPI_Datatype cvy_mpi_type(cvy_dtype dtype)
{
    switch (dtype) {
    case CVY_DTYPE_F32: return MPI_FLOAT;
    case CVY_DTYPE_F64: return MPI_DOUBLE;
    case CVY_DTYPE_I64: return MPI_INT64_T;
    case CVY_DTYPE_I32: return MPI_INT32_T;
    default: return MPI_UINT8_T;
    }
}

static MPI_Op op_of(cvy_reduce op)
{
    return op == CVY_REDUCE_SUM ? MPI_SUM : op == CVY_REDUCE_MAX ? MPI_MAX : MPI_MIN;
}

static void mpi_destroy(cvy_comm *comm)
{
    cvy_mpi *mpi = cvy_mpi_of(comm);
    MPI_Comm *const all[] = {&mpi->comm, &mpi->node, &mpi->all.comm, &mpi->across.comm};
    int finalized = 0;
    cvy_progress_thread_free(mpi);
    cvy_mpi_watch_free(mpi);
    MPI_Finalized(&finalized);
    for (int i = 0; i < CVY_COUNT(all) && !finalized && !mpi->simulated.folded; i++)
        if (*all[i] != MPI_COMM_NULL)
            MPI_Comm_free(all[i]);
    if (mpi->owns_user && !finalized)
        MPI_Comm_free(&mpi->comm);
    for (int i = 0; i < CVY_TRANSFER_SLOTS; i++)
        cvy_mem_free(&mpi->queue.slot[i]);
    cvy_simulated_end(mpi);
    cvy_mem_free(&mpi);
    cvy_mem_free(&comm);
}

static int is_watched(const cvy_comm *comm)
{
    return cvy_mpi_of(comm)->root->watch != NULL;
}

static cvy_status mpi_rest(cvy_comm *comm, int round)
{
    if (cvy_mpi_of(comm)->simulated.folded)
        return cvy_simulated_wait_any(cvy_mpi_of(comm));
    if (is_watched(comm)) {
        cvy_mpi_lock(cvy_mpi_of(comm));
        cvy_mpi_watch_look(comm, round);
        cvy_mpi_unlock(cvy_mpi_of(comm));
    }
    if (round >= BUSY_ROUNDS)
        sched_yield(); /* the rank for which this one waits may need this core */
    return CVY_OK;
}

/* Waits within a collective. */
static cvy_status wait_for(const cvy_comm *comm, MPI_Request *request)
{
    int done = 0;
    if (!is_watched(comm))
        return cvy_mpi_check(MPI_Wait(request, MPI_STATUS_IGNORE), "MPI_Wait");
    for (int round = 0; !done; round++) {
        CVY_TRY_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE));
        if (!done)
            cvy_mpi_watch_look(comm, round);
        if (!done && round >= BUSY_ROUNDS)
            sched_yield();
    }
    return CVY_OK;
}

static cvy_status barrier_now(cvy_comm *comm)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (!is_watched(comm))
        return cvy_mpi_check(MPI_Barrier(comm_of(comm)), "MPI_Barrier");
    CVY_TRY_MPI(MPI_Ibarrier(comm_of(comm), &request));
    return wait_for(comm, &request);
}

static cvy_status broadcast_now(cvy_comm *comm, void *data, size_t bytes, int root)
{
    for (size_t at = 0; at < bytes; at += CVY_PIECE_ELEMS) {
        const int count = (int)CVY_MIN(bytes - at, (size_t)CVY_PIECE_ELEMS);
        MPI_Request request = MPI_REQUEST_NULL;
        if (!is_watched(comm)) {
            CVY_TRY_MPI(MPI_Bcast((char *)data + at, count, MPI_BYTE, root, comm_of(comm)));
            continue;
        }
        CVY_TRY_MPI(MPI_Ibcast((char *)data + at, count, MPI_BYTE, root, comm_of(comm), &request));
        CVY_TRY(wait_for(comm, &request));
    }
    return CVY_OK;
}

static cvy_status allreduce_now(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduce op)
{
    for (int64_t at = 0; at < count; at += CVY_PIECE_ELEMS) {
        void *piece = (char *)data + (size_t)at * cvy_dtype_bytes(dtype);
        const int elems = (int)CVY_MIN(count - at, (int64_t)CVY_PIECE_ELEMS);
        MPI_Request request = MPI_REQUEST_NULL;
        if (!is_watched(comm)) {
            CVY_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, piece, elems, cvy_mpi_type(dtype), op_of(op), comm_of(comm)));
            continue;
        }
        CVY_TRY_MPI(
            MPI_Iallreduce(MPI_IN_PLACE, piece, elems, cvy_mpi_type(dtype), op_of(op), comm_of(comm), &request));
        CVY_TRY(wait_for(comm, &request));
    }
    return CVY_OK;
}

static cvy_status allgather_now(cvy_comm *comm, const void *mine, size_t bytes, void *all_out)
{
    CVY_CHECK(bytes <= CVY_PIECE_ELEMS, CVY_E_ARGUMENT, "allgather of %zu bytes a rank; at most %d", bytes,
              (int)CVY_PIECE_ELEMS);
    if (cvy_mpi_of(comm)->simulated.folded) { /* SMPI's MPI_Allgather sends a message from each rank to each rank */
        CVY_TRY_MPI(MPI_Gather(mine, (int)bytes, MPI_BYTE, all_out, (int)bytes, MPI_BYTE, 0, comm_of(comm)));
        return broadcast_now(comm, all_out, bytes * (size_t)comm->nranks, 0);
    }
    MPI_Request request = MPI_REQUEST_NULL;
    if (!is_watched(comm))
        return cvy_mpi_check(MPI_Allgather(mine, (int)bytes, MPI_BYTE, all_out, (int)bytes, MPI_BYTE, comm_of(comm)),
                             "MPI_Allgather");
    CVY_TRY_MPI(MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all_out, (int)bytes, MPI_BYTE, comm_of(comm), &request));
    return wait_for(comm, &request);
}

/* Point-to-point messages in the order of ranks: the sizes may differ widely, and the root receives directly into
 * place. */
static cvy_status gatherv_now(cvy_comm *comm, const void *mine, size_t bytes, void *all_out, const size_t *bytes_of,
                              int root)
{
    enum { TAG = 7 };
    MPI_Request request = MPI_REQUEST_NULL;
    if (comm->rank != root) {
        for (size_t at = 0; at < bytes; at += CVY_PIECE_ELEMS) {
            CVY_TRY_MPI(MPI_Isend((const char *)mine + at, (int)CVY_MIN(bytes - at, (size_t)CVY_PIECE_ELEMS), MPI_BYTE,
                                  root, TAG, comm_of(comm), &request));
            CVY_TRY(wait_for(comm, &request));
        }
        return CVY_OK;
    }
    char *to = all_out;
    for (int r = 0; r < comm->nranks; r++) {
        if (r == root && bytes > 0)
            memcpy(to, mine, bytes);
        for (size_t at = 0; r != root && at < bytes_of[r]; at += CVY_PIECE_ELEMS) {
            CVY_TRY_MPI(MPI_Irecv(to + at, (int)CVY_MIN(bytes_of[r] - at, (size_t)CVY_PIECE_ELEMS), MPI_BYTE, r, TAG,
                                  comm_of(comm), &request));
            CVY_TRY(wait_for(comm, &request));
        }
        to += r == root ? bytes : bytes_of[r];
    }
    return CVY_OK;
}

/* These two enclose a collective: they record it for the watchdog, and they keep other threads from calling MPI. */
static void enter(cvy_comm *comm, const char *collective)
{
    atomic_fetch_add_explicit(&comm->ncollectives, 1, memory_order_relaxed);
    atomic_store_explicit(&comm->collective, collective, memory_order_relaxed);
    cvy_mpi_lock(cvy_mpi_of(comm));
}

static void leave(cvy_comm *comm)
{
    cvy_mpi_unlock(cvy_mpi_of(comm));
    atomic_store_explicit(&comm->collective, NULL, memory_order_relaxed);
}

static cvy_status mpi_barrier(cvy_comm *comm)
{
    enter(comm, "a barrier");
    const cvy_status status = barrier_now(comm);
    leave(comm);
    if (status == CVY_OK)
        cvy_comm_met(comm);
    return status;
}

static cvy_status mpi_broadcast(cvy_comm *comm, void *data, size_t bytes, int root)
{
    enter(comm, "a broadcast");
    const cvy_status status = broadcast_now(comm, data, bytes, root);
    leave(comm);
    return status;
}

static cvy_status mpi_allreduce(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduce op)
{
    enter(comm, "an allreduce");
    const cvy_status status = allreduce_now(comm, data, count, dtype, op);
    leave(comm);
    if (status == CVY_OK)
        cvy_comm_met(comm);
    return status;
}

static cvy_status start_piece(cvy_comm *comm, void *data, int count, cvy_dtype dtype, cvy_reduce op, MPI_Request *out)
{
    cvy_mpi_lock(cvy_mpi_of(comm));
    const cvy_status status =
        cvy_mpi_check(MPI_Iallreduce(MPI_IN_PLACE, data, count, cvy_mpi_type(dtype), op_of(op), comm_of(comm), out),
                      "MPI_Iallreduce");
    cvy_mpi_unlock(cvy_mpi_of(comm));
    return status;
}

static cvy_status test_piece(cvy_comm *comm, MPI_Request *request, int *done_out)
{
    cvy_mpi_lock(cvy_mpi_of(comm));
    const cvy_status status = cvy_mpi_check(MPI_Test(request, done_out, MPI_STATUS_IGNORE), "MPI_Test");
    cvy_mpi_unlock(cvy_mpi_of(comm));
    return status;
}

static cvy_status mpi_allreduce_progressing(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduce op,
                                            cvy_status (*progress)(void *user), void *user)
{
    if (cvy_mpi_of(comm)->simulated.folded) /* in a simulation, reductions make progress while their rank waits */
        return mpi_allreduce(comm, data, count, dtype, op);
    for (int64_t at = 0; at < count; at += CVY_PIECE_ELEMS) {
        MPI_Request request = MPI_REQUEST_NULL;
        int done = 0;
        atomic_fetch_add_explicit(&comm->ncollectives, 1, memory_order_relaxed);
        CVY_TRY(start_piece(comm, (char *)data + (size_t)at * cvy_dtype_bytes(dtype),
                            (int)CVY_MIN(count - at, (int64_t)CVY_PIECE_ELEMS), dtype, op, &request));
        for (int round = 0; !done; round++) {
            CVY_TRY(test_piece(comm, &request, &done));
            CVY_TRY(progress(user));
            CVY_TRY(mpi_rest(comm, done ? 0 : round));
        }
    }
    cvy_comm_met(comm);
    return CVY_OK;
}

static cvy_status mpi_allgather(cvy_comm *comm, const void *mine, size_t bytes, void *all_out)
{
    enter(comm, "an allgather");
    const cvy_status status = allgather_now(comm, mine, bytes, all_out);
    leave(comm);
    if (status == CVY_OK)
        cvy_comm_met(comm);
    return status;
}

static cvy_status mpi_gatherv(cvy_comm *comm, const void *mine, size_t bytes, void *all_out, const size_t *bytes_of,
                              int root)
{
    enter(comm, "a gather");
    const cvy_status status = gatherv_now(comm, mine, bytes, all_out, bytes_of, root);
    leave(comm);
    return status;
}

/* ---- making, splitting ---- */

/* If CONVOY_NODE_RANKS is set, so many consecutive ranks count as a node, however many ranks the machine really has.
 * This gives two levels on one machine, for experiments and tests. */
static cvy_status split_by_node(cvy_comm *comm)
{
    cvy_mpi *mpi = cvy_mpi_of(comm);
    const char *text = getenv("CONVOY_NODE_RANKS");
    char *end = NULL;
    const int given = text && *text;
    const long ranks = given ? strtol(text, &end, 10) : 0;
    CVY_CHECK(!given || (end != text && !*end && ranks > 0), CVY_E_CONFIG,
              "CONVOY_NODE_RANKS is '%s' in the environment, expected a number of ranks of a node, 1 or more", text);
    if (ranks > 0) {
        MPI_Comm here = MPI_COMM_NULL; /* such a node is a part of a real one */
        CVY_TRY_MPI(MPI_Comm_split_type(mpi->comm, MPI_COMM_TYPE_SHARED, comm->rank, MPI_INFO_NULL, &here));
        const cvy_status status =
            cvy_mpi_check(MPI_Comm_split(here, (int)(comm->rank / ranks), comm->rank, &mpi->node), "MPI_Comm_split");
        MPI_Comm_free(&here);
        return status;
    }
    CVY_TRY_MPI(MPI_Comm_split_type(mpi->comm, MPI_COMM_TYPE_SHARED, comm->rank, MPI_INFO_NULL, &mpi->node));
    return CVY_OK;
}

/* Finds the ranks of this node, this rank's number among them, and the leaders. The leaders are the first ranks of each
 * node; each node has as many leaders as the smallest node has ranks. */
static cvy_status find_node(cvy_comm *comm)
{
    cvy_mpi *mpi = cvy_mpi_of(comm);
    CVY_TRY(split_by_node(comm));
    CVY_TRY_MPI(MPI_Comm_rank(mpi->node, &comm->node_rank));
    CVY_TRY_MPI(MPI_Comm_size(mpi->node, &comm->node_nranks));
    const int first = comm->node_rank == 0;
    int most = 0, upto = 0;
    CVY_TRY_MPI(MPI_Scan(&first, &upto, 1, MPI_INT, MPI_SUM, mpi->comm));
    comm->node = upto - 1; /* correct on the first rank of a node, which then sends it to the others */
    CVY_TRY_MPI(MPI_Bcast(&comm->node, 1, MPI_INT, 0, mpi->node));
    CVY_TRY_MPI(MPI_Allreduce(&first, &comm->nnodes, 1, MPI_INT, MPI_SUM, mpi->comm));
    CVY_TRY_MPI(MPI_Allreduce(&comm->node_nranks, &mpi->leaders, 1, MPI_INT, MPI_MIN, mpi->comm));
    CVY_TRY_MPI(MPI_Allreduce(&comm->node_nranks, &most, 1, MPI_INT, MPI_MAX, mpi->comm));
    comm->shares_nodes = most > 1;
    CVY_TRY_MPI(MPI_Comm_split(mpi->comm, CVY_MIN(comm->node_rank, mpi->leaders), comm->rank, &mpi->across.comm));
    CVY_TRY_MPI(MPI_Comm_rank(mpi->across.comm, &mpi->across.me));
    CVY_TRY_MPI(MPI_Comm_size(mpi->across.comm, &mpi->across.n));
    mpi->all.me = comm->rank;
    mpi->all.n = comm->nranks;
    return CVY_OK;
}

/* In a simulation each rank stands for a node. The user's communicator itself is used: SMPI would take minutes to
 * duplicate or to split it with a thousand ranks. */
static cvy_status start_simulated(cvy_comm *comm, MPI_Comm user)
{
    cvy_mpi *mpi = cvy_mpi_of(comm);
    CVY_TRY_MPI(MPI_Comm_rank(user, &comm->rank));
    CVY_TRY_MPI(MPI_Comm_size(user, &comm->nranks));
    mpi->comm = mpi->all.comm = mpi->across.comm = user;
    mpi->all.me = mpi->across.me = comm->node = comm->rank;
    mpi->all.n = mpi->across.n = comm->nnodes = comm->nranks;
    comm->node_nranks = mpi->leaders = 1;
    return CVY_OK;
}

static cvy_status start(cvy_comm *comm, MPI_Comm user)
{
    cvy_mpi *mpi = cvy_mpi_of(comm);
    cvy_simulated_begin(mpi, CVY_SLOT_BYTES);
    comm->simulated_cores = cvy_simulated_cores(mpi);
    comm->simulated_ranks = mpi->simulated.ranks;
    comm->simulated_nodes = cvy_simulated_nodes();
    comm->simulated_copy_s = mpi->simulated.add_s;
    comm->simulated_move_s = mpi->simulated.move_s;
    if (mpi->root == mpi)
        CVY_TRY_MPI(MPI_Comm_rank(user, &comm->whole_rank));
    else
        comm->whole_rank = mpi->root->of->whole_rank;
    if (mpi->simulated.folded)
        return start_simulated(comm, user);
    CVY_TRY_MPI(MPI_Comm_dup(user, &mpi->comm));
    CVY_TRY_MPI(MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN));
    CVY_TRY_MPI(MPI_Comm_dup(mpi->comm, &mpi->all.comm));
    CVY_TRY_MPI(MPI_Comm_rank(mpi->comm, &comm->rank));
    CVY_TRY_MPI(MPI_Comm_size(mpi->comm, &comm->nranks));
    return find_node(comm);
}

void cvy_comm_prepare_mpi(void)
{
    enum { HEAD_BYTES = 4096 }; /* room for the header that the library puts before a segment */
    char text[16];
    snprintf(text, sizeof text, "%d", CVY_SEGMENT_BYTES + HEAD_BYTES);
    setenv("OMPI_MCA_btl_tcp_eager_limit", text, 0);
}

static cvy_status mpi_split(cvy_comm *comm, int color, int key, cvy_comm **out);

static const cvy_comm_ops mpi_ops = {
    .name = "mpi",
    .destroy = mpi_destroy,
    .split = mpi_split,
    .barrier = mpi_barrier,
    .broadcast = mpi_broadcast,
    .allreduce = mpi_allreduce,
    .allreduce_progressing = mpi_allreduce_progressing,
    .allgather = mpi_allgather,
    .gatherv = mpi_gatherv,
    .rest = mpi_rest,
};

static cvy_status alloc(cvy_mpi *root, cvy_comm **out)
{
    cvy_mpi *mpi = NULL;
    cvy_comm *comm = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *mpi, &mpi));
    mpi->comm = mpi->node = mpi->all.comm = mpi->across.comm = MPI_COMM_NULL;
    mpi->root = root ? root : mpi;
    const cvy_status status = cvy_mem_alloc(sizeof *comm, &comm);
    if (status != CVY_OK) {
        cvy_mem_free(&mpi);
        return status;
    }
    *comm = (cvy_comm){.ops = &mpi_ops,
                       .reduce = &cvy_mpi_reduce_ops,
                       .message = &cvy_mpi_message_ops,
                       .node_memory = &cvy_mpi_node_ops,
                       .probe = &cvy_mpi_probe_ops,
                       .impl = mpi};
    mpi->of = comm;
    *out = comm;
    return CVY_OK;
}

cvy_status cvy_comm_check_mpi(void)
{
    int initialized = 0, finalized = 0;
    MPI_Initialized(&initialized);
    CVY_CHECK(initialized, CVY_E_COMM, "MPI is not initialised: call MPI_Init or MPI_Init_thread first");
    MPI_Finalized(&finalized);
    CVY_CHECK(!finalized, CVY_E_COMM, "MPI is finalised already: contexts come before MPI_Finalize");
    return CVY_OK;
}

/* Most MPI libraries end the job if they get such a communicator. No library has a communicator whose handle is 0; some
 * convert an unknown integer of Fortran to it. */
static cvy_status check_user(MPI_Comm user)
{
    int is_inter = 0;
    CVY_CHECK(user != MPI_COMM_NULL, CVY_E_ARGUMENT,
              "the communicator is MPI_COMM_NULL: ranks that are in no group make no context over one");
    CVY_CHECK(user != (MPI_Comm)0, CVY_E_ARGUMENT, "the communicator is no handle of MPI's: it was never set");
    CVY_TRY_MPI(MPI_Comm_test_inter(user, &is_inter));
    CVY_CHECK(!is_inter, CVY_E_ARGUMENT,
              "the communicator is an intercommunicator: merge its two groups first (MPI_Intercomm_merge)");
    return CVY_OK;
}

cvy_status cvy_comm_create_mpi(MPI_Comm user, cvy_comm **out)
{
    cvy_comm *comm = NULL;
    CVY_TRY(cvy_process_check());
    CVY_TRY(cvy_comm_check_mpi());
    cvy_process_bind();
    CVY_TRY(check_user(user));
    CVY_TRY(alloc(NULL, &comm));
    const cvy_status status = start(comm, user);
    if (status != CVY_OK) {
        mpi_destroy(comm);
        return status;
    }
    *out = comm;
    return CVY_OK;
}

/* Starts the new communicator, then frees the MPI communicator from MPI_Comm_split, unless the new one uses it
 * directly. */
static cvy_status start_part(cvy_comm *part, MPI_Comm *ranks)
{
    const cvy_status status = start(part, *ranks);
    cvy_mpi_of(part)->owns_user = cvy_mpi_of(part)->simulated.folded != NULL;
    if (!cvy_mpi_of(part)->owns_user)
        MPI_Comm_free(ranks);
    return status;
}

static cvy_status mpi_split(cvy_comm *comm, int color, int key, cvy_comm **out)
{
    cvy_mpi *mpi = cvy_mpi_of(comm);
    MPI_Comm ranks = MPI_COMM_NULL;
    cvy_comm *part = NULL;
    cvy_status status = cvy_comm_agree(comm, alloc(mpi->root, &part));
    if (status == CVY_OK)
        status = cvy_mpi_check(MPI_Comm_split(mpi->comm, color == CVY_NO_COLOR ? MPI_UNDEFINED : color, key, &ranks),
                               "MPI_Comm_split");
    const int is_in = status == CVY_OK && ranks != MPI_COMM_NULL;
    if (is_in)
        status = start_part(part, &ranks);
    if (is_in)
        part->simulated_nodes = comm->simulated_nodes;
    if (is_in && status == CVY_OK)
        *out = part;
    else if (part)
        mpi_destroy(part);
    return status;
}
