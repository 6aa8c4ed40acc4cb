/*
 * comm_mpi_node.c: the two-level all-reduce: through the memory that the ranks of a node share, and by messages between
 * nodes.
 *
 *     posted    a rank says that its operand is ready
 *     gather    each leader adds its part of the range over all ranks of the node, reading their memory
 *     across    the leaders of the same part reduce it over the nodes, in the order of the starts (not with one node)
 *     spread    each leader writes its part to all ranks of the node
 *     done      a rank says that it reads and writes no more; when all ranks have said so, the result is complete and
 *               the memory belongs to its owner again
 *
 * If only parts of the result are wanted, the reduction ends before `spread`: each rank of the node continues with its
 * own part, and the ranks pass a barrier before they write that memory again.
 *
 * The time at which the last rank of a node posts differs from node to node, and so does the order in which ranks test.
 * But the MPI library matches its collectives by their order, and transfers have few slots. So reductions between nodes
 * begin in the order of their starts, which is the same on all ranks.
 *
 * On one node all ranks are leaders. Then gather and spread are one pass over memory, in pieces that stay in cache:
 * each element is read once and written once. Elements are added in the order of the ranks on the node.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/mpi/comm_mpi_node.h"

#include <string.h>

#include "base/base_entry.h"
#include "comm/mpi/comm_mpi_impl.h"

enum { PIECE = 2048 }; /* elements: this piece of all ranks of a node fits in the caches, and the sum is on the stack */

enum phase { WAIT_POSTED, ACROSS, WAIT_DONE };

struct cvy_node_reduction {
    cvy_node_window *window;
    size_t at;          /* offset in bytes in the memory of each rank */
    int64_t first, end; /* this rank's part, in elements */
    cvy_dtype dtype;
    int threads, slot, in_parts; /* in_parts: there is no spread, and no rank waits for `done` of the others */
    uint64_t number;             /* number of the reduction that is under way: 1, 2, ... */
    enum phase phase;
    cvy_mpi *mpi;
    cvy_group_reduction *across; /* NULL: there is one node, or this rank has no part */
    uint64_t ticket;             /* its place in the order of starts of such reductions */
};

cvy_status cvy_node_reduction_create(cvy_comm *comm, cvy_node_window *window, const cvy_allreduce_opts *opts,
                                     const cvy_group_range *range, cvy_part *part_out, cvy_node_reduction **out)
{
    cvy_mpi *mpi = cvy_mpi_of(comm);
    cvy_node_reduction *s = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    *s = (cvy_node_reduction){.mpi = mpi,
                              .window = window,
                              .at = (size_t)((char *)range->data - window->memory),
                              .dtype = range->dtype,
                              .slot = window->nslots++,
                              .in_parts = part_out != NULL,
                              .threads = CVY_MAX(opts->threads, 1)};
    if (window->rank < mpi->leaders) {
        s->first = cvy_allreduce_part(range->count, window->rank, mpi->leaders);
        s->end = cvy_allreduce_part(range->count, window->rank + 1, mpi->leaders);
    }
    cvy_status status = CVY_OK;
    if (part_out)
        *part_out = (cvy_part){s->first, s->end};
    const cvy_group_range part = {(char *)range->data + (size_t)s->first * cvy_dtype_bytes(range->dtype),
                                  s->end - s->first, range->dtype, range->wire};
    if (comm->nnodes > 1 && part.count > 0)
        status = cvy_group_reduction_create(mpi, &mpi->across, opts, &part, &s->across);
    if (status != CVY_OK)
        cvy_mem_free(&s);
    else
        *out = s;
    return status;
}

void cvy_node_reduction_destroy(cvy_node_reduction **s)
{
    if (*s)
        cvy_group_reduction_destroy(&(*s)->across);
    cvy_mem_free(s);
}

int64_t cvy_node_reduction_sent(const cvy_node_reduction *s)
{
    return s->across ? cvy_group_reduction_sent(s->across) : 0;
}

/* ---- gather and spread ---- */

static void add_f32(float *restrict sum, const float *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += x[i];
}

static void add_f64(double *restrict sum, const double *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += x[i];
}

static char *of_rank(const cvy_node_reduction *s, int rank, int64_t elem)
{
    return s->window->of[rank] + s->at + (size_t)elem * cvy_dtype_bytes(s->dtype);
}

/* Writes to all ranks of the node except the one that has the data already (-1: none has). */
static void spread_piece(const cvy_node_reduction *s, const void *from, int64_t elem, size_t bytes, int except)
{
    for (int r = 0; r < s->window->nranks && bytes > 0; r++)
        if (r != except)
            memcpy(of_rank(s, r, elem), from, bytes);
}

static void gather_piece(const cvy_node_reduction *s, int64_t at, int spreads)
{
    union {
        float f32[PIECE];
        double f64[PIECE];
    } sum;
    const int64_t n = CVY_MIN(PIECE, s->end - at);
    const size_t bytes = (size_t)n * cvy_dtype_bytes(s->dtype);
    memcpy(&sum, of_rank(s, 0, at), bytes);
    for (int r = 1; r < s->window->nranks; r++)
        if (s->dtype == CVY_DTYPE_F64)
            add_f64(sum.f64, (const double *)of_rank(s, r, at), n);
        else
            add_f32(sum.f32, (const float *)of_rank(s, r, at), n);
    if (spreads)
        spread_piece(s, &sum, at, bytes, -1);
    else
        memcpy(of_rank(s, s->window->rank, at), &sum, bytes);
}

/* Each element is added by one thread in a fixed order, so any number of threads gives the same bits. A team of one
 * thread is avoided, because it would cost an allocation. */
static void gather(const cvy_node_reduction *s, int spreads)
{
    const int64_t npieces = (s->end - s->first + PIECE - 1) / PIECE;
    if (s->threads == 1 || npieces < 4 * s->threads) {
        for (int64_t i = 0; i < npieces; i++)
            gather_piece(s, s->first + i * PIECE, spreads);
        return;
    }
#pragma omp parallel num_threads(s->threads)
    {
        CVY_TEAM_MATH();
#pragma omp for
        for (int64_t i = 0; i < npieces; i++)
            gather_piece(s, s->first + i * PIECE, spreads);
    }
}

/* ---- the state machine ---- */

static struct cvy_flag *flag_of(const cvy_node_reduction *s, int rank)
{
    return &s->window->flag[rank][s->slot];
}

void cvy_node_reduction_start(cvy_node_reduction *s)
{
    s->number++;
    s->phase = WAIT_POSTED;
    if (s->across)
        s->ticket = s->mpi->across_started++;
    atomic_store_explicit(&flag_of(s, s->window->rank)->posted, s->number, memory_order_release);
}

static int all_done(const cvy_node_reduction *s)
{
    int all = 1;
    for (int r = 0; r < s->window->nranks && all; r++)
        all = atomic_load_explicit(&flag_of(s, r)->done, memory_order_acquire) >= s->number;
    return all;
}

static void finish_part(cvy_node_reduction *s)
{
    s->phase = WAIT_DONE;
    atomic_store_explicit(&flag_of(s, s->window->rank)->done, s->number, memory_order_release);
}

cvy_status cvy_node_reduction_progress(cvy_node_reduction *s, int *done_out)
{
    *done_out = 0;
    const int may_begin = !s->across || s->ticket == s->mpi->across_due;
    if (s->phase == WAIT_POSTED && may_begin && cvy_node_window_all_posted(s->window, s->slot, s->number)) {
        gather(s, !s->across && !s->in_parts);
        if (s->across) {
            s->mpi->across_due++;
            CVY_TRY(cvy_group_reduction_start(s->across));
            s->phase = ACROSS;
        } else {
            finish_part(s);
        }
    }
    if (s->phase == ACROSS) {
        int done = 0;
        CVY_TRY(cvy_group_reduction_progress(s->across, &done));
        if (done) {
            const size_t bytes = s->in_parts ? 0 : (size_t)(s->end - s->first) * cvy_dtype_bytes(s->dtype);
            spread_piece(s, of_rank(s, s->window->rank, s->first), s->first, bytes, s->window->rank);
            finish_part(s);
        }
    }
    *done_out = s->phase == WAIT_DONE && (s->in_parts || all_done(s));
    return CVY_OK;
}
