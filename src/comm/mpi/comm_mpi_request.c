/*
 * comm_mpi_request.c: a non-blocking sum of one range: through the node's memory where the range lies in it, else by moves, or by the library's own
 * MPI_Iallreduce where that is asked for.
 */
#include "comm/mpi/comm_mpi_impl.h"

enum { PIECES_MAX = 8, SHORT_BYTES = 16 << 10 };

struct cvy_request {
    cvy_node_sum *node;                /* one of these two, or neither: */
    cvy_moves *moves;
    MPI_Comm comm;
    char *data;
    int64_t count;
    cvy_dtype dtype;
    int npieces;
    MPI_Request piece[PIECES_MAX];
};

static cvy_status by_library(cvy_request *r)
{
    const int64_t npieces = (r->count + CVY_PIECE_ELEMS - 1) / CVY_PIECE_ELEMS;
    CVY_CHECK(npieces <= PIECES_MAX, CVY_E_UNSUPPORTED, "a bucket of %lld elements; at most %lld: set comm.bucket lower", (long long)r->count,
              (long long)CVY_PIECE_ELEMS * PIECES_MAX);
    r->npieces = (int)npieces;
    for (int i = 0; i < PIECES_MAX; i++)
        r->piece[i] = MPI_REQUEST_NULL;
    return CVY_OK;
}

static cvy_status choose(cvy_comm *comm, cvy_request *r)
{
    struct cvy_mpi *mpi = cvy_mpi_of(comm);
    const size_t bytes = (size_t)r->count * cvy_dtype_bytes(r->dtype);
    const cvy_dtype wire = r->dtype == CVY_DTYPE_F32 && comm->sums.wire == CVY_DTYPE_BF16 ? CVY_DTYPE_BF16 : r->dtype;
    const cvy_sum_def *def = cvy_sum_find(comm->sums.algorithm ? comm->sums.algorithm : bytes <= SHORT_BYTES ? "doubling" : "halving");
    cvy_window *window = comm->sums.no_node ? NULL : cvy_window_find(mpi, r->data, bytes);
    if (!def)
        return by_library(r);
    if (window && window->nslots < CVY_WINDOW_SLOTS)
        return cvy_node_sum_create(comm, window, r->data, r->count, r->dtype, wire, def, &r->node);
    const cvy_moves_opts opts = {.def = def, .me = comm->rank, .n = comm->nranks, .data = r->data, .count = r->count, .dtype = r->dtype, .wire = wire};
    return cvy_moves_create(mpi, &opts, &r->moves);
}

cvy_status cvy_mpi_request_create(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_request **out)
{
    cvy_request *r = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *r, &r));
    *r = (cvy_request){.comm = cvy_mpi_of(comm)->comm, .data = data, .count = count, .dtype = dtype};
    const cvy_status status = choose(comm, r);
    if (status != CVY_OK)
        cvy_mem_free(&r);
    else
        *out = r;
    return status;
}

cvy_status cvy_mpi_request_start(cvy_request *r)
{
    if (r->node)
        cvy_node_sum_start(r->node);
    if (r->moves)
        cvy_moves_start(r->moves);
    for (int i = 0; i < r->npieces; i++) {
        const int64_t at = (int64_t)i * CVY_PIECE_ELEMS;
        CVY_TRY_MPI(MPI_Iallreduce(MPI_IN_PLACE, r->data + (size_t)at * cvy_dtype_bytes(r->dtype), (int)CVY_MIN(r->count - at, (int64_t)CVY_PIECE_ELEMS),
                                   cvy_mpi_type(r->dtype), MPI_SUM, r->comm, &r->piece[i]));
    }
    return CVY_OK;
}

cvy_status cvy_mpi_request_test(cvy_request *r, int *done_out)
{
    if (r->node)
        return cvy_node_sum_progress(r->node, done_out);
    if (r->moves)
        return cvy_moves_progress(r->moves, done_out);
    CVY_TRY_MPI(MPI_Testall(r->npieces, r->piece, done_out, MPI_STATUSES_IGNORE));
    return CVY_OK;
}

void cvy_mpi_request_destroy(cvy_request **r)
{
    if (*r) {
        cvy_node_sum_destroy(&(*r)->node);
        cvy_moves_destroy(&(*r)->moves);
    }
    cvy_mem_free(r);
}
