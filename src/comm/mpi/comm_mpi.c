/*
 * comm_mpi.c: the engine: a duplicate of the user's communicator, blocking collectives for setup, non-blocking sums for gradients.
 *
 * Never touches the world communicator and never assumes who initialised MPI. Large counts are cut into pieces that an int can count.
 */
#include "comm/mpi/comm_mpi.h"

#include <string.h>

#include "base/base_mem.h"

struct mpi_impl { MPI_Comm comm; };

/* Largest piece of one MPI call, in elements: far below INT_MAX, a multiple of every SIMD width. */
enum { PIECE_ELEMS = 1 << 28 };

/* Every MPI call goes through here: an error becomes a status with the call's name and MPI's own words. */
static cvy_status check_mpi(int code, const char *call)
{
    if (code == MPI_SUCCESS)
        return CVY_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return cvy_error_set(CVY_E_COMM, "%s failed: %s", call, text);
}
#define TRY_MPI(call) CVY_TRY(check_mpi((call), #call))

static MPI_Comm comm_of(const cvy_comm *comm)
{
    return ((const struct mpi_impl *)comm->impl)->comm;
}

static MPI_Datatype type_of(cvy_dtype dtype)
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
    struct mpi_impl *impl = comm->impl;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized && impl->comm != MPI_COMM_NULL)
        MPI_Comm_free(&impl->comm);
    cvy_mem_free(&impl);
    cvy_mem_free(&comm);
}

static cvy_status mpi_barrier(cvy_comm *comm)
{
    TRY_MPI(MPI_Barrier(comm_of(comm)));
    return CVY_OK;
}

static cvy_status mpi_broadcast(cvy_comm *comm, void *data, size_t bytes, int root)
{
    for (size_t at = 0; at < bytes; at += PIECE_ELEMS)
        TRY_MPI(MPI_Bcast((char *)data + at, (int)CVY_MIN(bytes - at, (size_t)PIECE_ELEMS), MPI_BYTE, root, comm_of(comm)));
    return CVY_OK;
}

static cvy_status mpi_allreduce(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduce op)
{
    for (int64_t at = 0; at < count; at += PIECE_ELEMS)
        TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, (char *)data + (size_t)at * cvy_dtype_bytes(dtype), (int)CVY_MIN(count - at, (int64_t)PIECE_ELEMS),
                              type_of(dtype), op_of(op), comm_of(comm)));
    return CVY_OK;
}

static cvy_status mpi_allgather(cvy_comm *comm, const void *mine, size_t bytes, void *all_out)
{
    CVY_CHECK(bytes <= PIECE_ELEMS, CVY_E_ARGUMENT, "allgather of %zu bytes a rank; at most %d", bytes, (int)PIECE_ELEMS);
    TRY_MPI(MPI_Allgather(mine, (int)bytes, MPI_BYTE, all_out, (int)bytes, MPI_BYTE, comm_of(comm)));
    return CVY_OK;
}

/* Point to point in rank order: sizes may differ widely, and the root receives straight into place. */
static cvy_status mpi_gatherv(cvy_comm *comm, const void *mine, size_t bytes, void *all_out, const size_t *bytes_of, int root)
{
    enum { TAG = 7 };
    if (comm->rank != root) {
        for (size_t at = 0; at < bytes; at += PIECE_ELEMS)
            TRY_MPI(MPI_Send((const char *)mine + at, (int)CVY_MIN(bytes - at, (size_t)PIECE_ELEMS), MPI_BYTE, root, TAG, comm_of(comm)));
        return CVY_OK;
    }
    char *to = all_out;
    for (int r = 0; r < comm->nranks; r++) {
        if (r == root && bytes > 0)
            memcpy(to, mine, bytes);
        for (size_t at = 0; r != root && at < bytes_of[r]; at += PIECE_ELEMS)
            TRY_MPI(MPI_Recv(to + at, (int)CVY_MIN(bytes_of[r] - at, (size_t)PIECE_ELEMS), MPI_BYTE, r, TAG, comm_of(comm), MPI_STATUS_IGNORE));
        to += r == root ? bytes : bytes_of[r];
    }
    return CVY_OK;
}

/* ---- non-blocking sums ---- */

enum { PIECES_MAX = 8 };

struct cvy_request {
    MPI_Comm comm;
    char *data;
    int64_t count;
    cvy_dtype dtype;
    int npieces;
    MPI_Request piece[PIECES_MAX];
};

static cvy_status mpi_request_create(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_request **out)
{
    const int64_t npieces = (count + PIECE_ELEMS - 1) / PIECE_ELEMS;
    CVY_CHECK(npieces <= PIECES_MAX, CVY_E_UNSUPPORTED, "a bucket of %lld elements; at most %lld: set comm.bucket lower", (long long)count,
              (long long)PIECE_ELEMS * PIECES_MAX);
    cvy_request *r = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *r, &r));
    *r = (cvy_request){.comm = comm_of(comm), .data = data, .count = count, .dtype = dtype, .npieces = (int)npieces};
    for (int i = 0; i < PIECES_MAX; i++)
        r->piece[i] = MPI_REQUEST_NULL;
    *out = r;
    return CVY_OK;
}

static cvy_status mpi_request_start(cvy_request *r)
{
    for (int i = 0; i < r->npieces; i++) {
        const int64_t at = (int64_t)i * PIECE_ELEMS;
        TRY_MPI(MPI_Iallreduce(MPI_IN_PLACE, r->data + (size_t)at * cvy_dtype_bytes(r->dtype), (int)CVY_MIN(r->count - at, (int64_t)PIECE_ELEMS),
                               type_of(r->dtype), MPI_SUM, r->comm, &r->piece[i]));
    }
    return CVY_OK;
}

static cvy_status mpi_request_test(cvy_request *r, int *done_out)
{
    TRY_MPI(MPI_Testall(r->npieces, r->piece, done_out, MPI_STATUSES_IGNORE));
    return CVY_OK;
}

static cvy_status mpi_request_wait(cvy_request *r)
{
    TRY_MPI(MPI_Waitall(r->npieces, r->piece, MPI_STATUSES_IGNORE));
    return CVY_OK;
}

static void mpi_request_destroy(cvy_request **r)
{
    cvy_mem_free(r);
}

static const cvy_comm_ops mpi_ops = {
    .name = "mpi",
    .destroy = mpi_destroy,
    .barrier = mpi_barrier,
    .broadcast = mpi_broadcast,
    .allreduce = mpi_allreduce,
    .allgather = mpi_allgather,
    .gatherv = mpi_gatherv,
    .request_create = mpi_request_create,
    .request_start = mpi_request_start,
    .request_test = mpi_request_test,
    .request_wait = mpi_request_wait,
    .request_destroy = mpi_request_destroy,
};

/* Ranks of this node, and this rank's place among them. */
static cvy_status find_node(cvy_comm *comm)
{
    MPI_Comm node = MPI_COMM_NULL;
    TRY_MPI(MPI_Comm_split_type(comm_of(comm), MPI_COMM_TYPE_SHARED, comm->rank, MPI_INFO_NULL, &node));
    cvy_status status = check_mpi(MPI_Comm_rank(node, &comm->node_rank), "MPI_Comm_rank");
    if (status == CVY_OK)
        status = check_mpi(MPI_Comm_size(node, &comm->node_nranks), "MPI_Comm_size");
    MPI_Comm_free(&node);
    return status;
}

static cvy_status start(cvy_comm *comm, MPI_Comm user)
{
    struct mpi_impl *impl = comm->impl;
    TRY_MPI(MPI_Comm_dup(user, &impl->comm));
    TRY_MPI(MPI_Comm_set_errhandler(impl->comm, MPI_ERRORS_RETURN));
    TRY_MPI(MPI_Comm_rank(impl->comm, &comm->rank));
    TRY_MPI(MPI_Comm_size(impl->comm, &comm->nranks));
    return find_node(comm);
}

cvy_status cvy_comm_create_mpi(MPI_Comm user, cvy_comm **out)
{
    int initialized = 0;
    MPI_Initialized(&initialized);
    CVY_CHECK(initialized, CVY_E_COMM, "MPI is not initialised: call MPI_Init or MPI_Init_thread first");
    struct mpi_impl *impl = NULL;
    cvy_comm *comm = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *impl, &impl));
    impl->comm = MPI_COMM_NULL;
    cvy_status status = cvy_mem_alloc(sizeof *comm, &comm);
    if (status != CVY_OK) {
        cvy_mem_free(&impl);
        return status;
    }
    *comm = (cvy_comm){.ops = &mpi_ops, .impl = impl};
    status = start(comm, user);
    if (status != CVY_OK) {
        mpi_destroy(comm);
        return status;
    }
    *out = comm;
    return CVY_OK;
}
