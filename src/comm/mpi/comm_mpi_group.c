/*
 * comm_mpi_group.c: reductions by messages in a group of ranks, either by our own transfers or by the library's
 * MPI_Iallreduce.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/mpi/comm_mpi_group.h"

#include "comm/mpi/comm_mpi_impl.h"

enum { PIECES_MAX = 8 };

struct cvy_group_reduction {
    cvy_transfers *transfers; /* NULL: the library does the reduction */
    cvy_mpi *mpi;
    const cvy_group *group;
    cvy_group_range range;
    int npieces;
    MPI_Request piece[PIECES_MAX];
};

static cvy_status by_library(cvy_group_reduction *s)
{
    const int64_t npieces = (s->range.count + CVY_PIECE_ELEMS - 1) / CVY_PIECE_ELEMS;
    CVY_CHECK(npieces <= PIECES_MAX, CVY_E_UNSUPPORTED,
              "a bucket of %lld elements; at most %lld: set opts.bucket_bytes lower", (long long)s->range.count,
              (long long)CVY_PIECE_ELEMS * PIECES_MAX);
    s->npieces = (int)npieces;
    for (int i = 0; i < PIECES_MAX; i++)
        s->piece[i] = MPI_REQUEST_NULL;
    return CVY_OK;
}

static cvy_transfers_opts transfers_of(cvy_group *group, const cvy_allreduce_def *def, const cvy_allreduce_opts *opts,
                                       const cvy_group_range *range)
{
    return (cvy_transfers_opts){.def = def,
                                .group = group,
                                .data = range->data,
                                .count = range->count,
                                .dtype = range->dtype,
                                .wire = range->wire,
                                .newest_first = opts->newest_first,
                                .threads = opts->threads};
}

/* With transfers NULL the library does the reduction. */
static cvy_status create(cvy_mpi *mpi, const cvy_group *group, const cvy_group_range *range,
                         const cvy_transfers_opts *transfers, cvy_group_reduction **out)
{
    cvy_group_reduction *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (cvy_group_reduction){.mpi = mpi, .group = group, .range = *range};
    const cvy_status status = transfers ? cvy_transfers_create(mpi, transfers, &s->transfers) : by_library(s);
    if (status != CVY_OK)
        cvy_mem_free(&s);
    else
        *out = s;
    return status;
}

cvy_status cvy_group_reduction_create(cvy_mpi *mpi, cvy_group *group, const cvy_allreduce_opts *opts,
                                      const cvy_group_range *range, cvy_group_reduction **out)
{
    const int64_t bytes = range->count * (int64_t)cvy_dtype_bytes(range->wire);
    const cvy_allreduce_def *def = cvy_allreduce_find(
        opts->algorithm ? opts->algorithm : cvy_group_algorithm(group, bytes, range->wire != range->dtype));
    const cvy_transfers_opts transfers = transfers_of(group, def, opts, range);
    return create(mpi, group, range, def ? &transfers : NULL, out);
}

cvy_status cvy_group_half_create(cvy_mpi *mpi, cvy_group *group, const cvy_allreduce_opts *opts,
                                 const cvy_group_range *range, cvy_part *part_out, cvy_group_reduction **out)
{
    const cvy_allreduce_def *def = opts->algorithm ? cvy_allreduce_find(opts->algorithm) : NULL;
    if (!def || !def->scatter)
        def = cvy_allreduce_find("halving");
    cvy_transfers_opts transfers = transfers_of(group, def, opts, range);
    transfers.half = part_out ? CVY_SCATTER : CVY_GATHER;
    transfers.part_out = part_out;
    return create(mpi, group, range, &transfers, out);
}

cvy_status cvy_group_reduction_start(cvy_group_reduction *s)
{
    if (s->transfers)
        cvy_transfers_start(s->transfers);
    else
        s->mpi->root->simulated.nlibrary++;
    for (int i = 0; i < s->npieces; i++) {
        const int64_t at = (int64_t)i * CVY_PIECE_ELEMS;
        CVY_TRY_MPI(MPI_Iallreduce(MPI_IN_PLACE, (char *)s->range.data + (size_t)at * cvy_dtype_bytes(s->range.dtype),
                                   (int)CVY_MIN(s->range.count - at, (int64_t)CVY_PIECE_ELEMS),
                                   cvy_mpi_type(s->range.dtype), MPI_SUM, s->group->comm, &s->piece[i]));
    }
    return CVY_OK;
}

cvy_status cvy_group_reduction_progress(cvy_group_reduction *s, int *done_out)
{
    if (s->transfers)
        return cvy_transfers_progress(s->transfers, done_out);
    CVY_TRY_MPI(MPI_Testall(s->npieces, s->piece, done_out, MPI_STATUSES_IGNORE));
    s->mpi->root->simulated.nlibrary -= *done_out;
    return CVY_OK;
}

int64_t cvy_group_reduction_sent(const cvy_group_reduction *s)
{
    const int n = s->group->n;
    return s->transfers ? cvy_transfers_sent(s->transfers)
                        : 2 * s->range.count * (int64_t)cvy_dtype_bytes(s->range.dtype) * (n - 1) / n;
}

void cvy_group_reduction_destroy(cvy_group_reduction **s)
{
    if (*s)
        cvy_transfers_destroy(&(*s)->transfers);
    cvy_mem_free(s);
}
