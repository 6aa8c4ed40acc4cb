/*
 * comm_mpi_group.c: sums by messages among a group of ranks: by moves of our own, or by the library's MPI_Iallreduce.
 */
#include "comm/mpi/comm_mpi_impl.h"

enum { PIECES_MAX = 8 };

struct cvy_group_sum {
    cvy_moves *moves;                  /* NULL: the library */
    const struct cvy_group *group;
    char *data;
    int64_t count;
    cvy_dtype dtype;
    int npieces;
    MPI_Request piece[PIECES_MAX];
};

static cvy_status by_library(cvy_group_sum *s)
{
    const int64_t npieces = (s->count + CVY_PIECE_ELEMS - 1) / CVY_PIECE_ELEMS;
    CVY_CHECK(npieces <= PIECES_MAX, CVY_E_UNSUPPORTED, "a bucket of %lld elements; at most %lld: set comm.bucket lower", (long long)s->count,
              (long long)CVY_PIECE_ELEMS * PIECES_MAX);
    s->npieces = (int)npieces;
    for (int i = 0; i < PIECES_MAX; i++)
        s->piece[i] = MPI_REQUEST_NULL;
    return CVY_OK;
}

cvy_status cvy_group_sum_create(struct cvy_mpi *mpi, struct cvy_group *group, const char *name, void *data, int64_t count, cvy_dtype dtype, cvy_dtype wire,
                                cvy_group_sum **out)
{
    cvy_group_sum *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (cvy_group_sum){.group = group, .data = data, .count = count, .dtype = dtype};
    const cvy_sum_def *def = cvy_sum_find(name ? name : cvy_group_way(group, count * (int64_t)cvy_dtype_bytes(wire), wire != dtype)); /* NULL: the library */
    const cvy_moves_opts opts = {.def = def, .group = group, .data = data, .count = count, .dtype = dtype, .wire = wire};
    const cvy_status status = def ? cvy_moves_create(mpi, &opts, &s->moves) : by_library(s);
    if (status != CVY_OK)
        cvy_mem_free(&s);
    else
        *out = s;
    return status;
}

cvy_status cvy_group_half_create(struct cvy_mpi *mpi, struct cvy_group *group, const char *name, void *data, int64_t count, cvy_dtype dtype, cvy_dtype wire,
                                 cvy_part *part_out, cvy_group_sum **out)
{
    cvy_group_sum *s = NULL;
    const cvy_sum_def *def = name ? cvy_sum_find(name) : NULL;
    if (!def || !def->scatter)
        def = cvy_sum_find("halving");
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (cvy_group_sum){.group = group, .data = data, .count = count, .dtype = dtype};
    const cvy_moves_opts opts = {.def = def, .group = group, .data = data, .count = count, .dtype = dtype, .wire = wire,
                                 .half = part_out ? CVY_SCATTER : CVY_GATHER, .part_out = part_out};
    const cvy_status status = cvy_moves_create(mpi, &opts, &s->moves);
    if (status != CVY_OK)
        cvy_mem_free(&s);
    else
        *out = s;
    return status;
}

cvy_status cvy_group_sum_start(cvy_group_sum *s)
{
    if (s->moves)
        cvy_moves_start(s->moves);
    for (int i = 0; i < s->npieces; i++) {
        const int64_t at = (int64_t)i * CVY_PIECE_ELEMS;
        CVY_TRY_MPI(MPI_Iallreduce(MPI_IN_PLACE, s->data + (size_t)at * cvy_dtype_bytes(s->dtype), (int)CVY_MIN(s->count - at, (int64_t)CVY_PIECE_ELEMS),
                                   cvy_mpi_type(s->dtype), MPI_SUM, s->group->comm, &s->piece[i]));
    }
    return CVY_OK;
}

cvy_status cvy_group_sum_progress(cvy_group_sum *s, int *done_out)
{
    if (s->moves)
        return cvy_moves_progress(s->moves, done_out);
    CVY_TRY_MPI(MPI_Testall(s->npieces, s->piece, done_out, MPI_STATUSES_IGNORE));
    return CVY_OK;
}

int64_t cvy_group_sum_sent(const cvy_group_sum *s)
{
    const int n = s->group->n;
    return s->moves ? cvy_moves_sent(s->moves) : 2 * s->count * (int64_t)cvy_dtype_bytes(s->dtype) * (n - 1) / n;
}

void cvy_group_sum_destroy(cvy_group_sum **s)
{
    if (*s)
        cvy_moves_destroy(&(*s)->moves);
    cvy_mem_free(s);
}
