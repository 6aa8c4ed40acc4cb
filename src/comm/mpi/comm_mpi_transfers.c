/*
 * comm_mpi_transfers.c: runs a list of transfers over MPI_Isend and MPI_Irecv, as a state machine that makes progress
 * when it is tested and never waits.
 *
 * Each transfer of the current round is a lane. Its range is sent or received in segments, some of them under way at
 * the same time. Data that will be added are first received into the buffer of the lane. With bf16 on the wire both
 * sides round: the sender continues with the rounded values that it has sent, so that all ranks get the same bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/mpi/comm_mpi_transfers.h"

#include <string.h>

#include "base/base_entry.h"
#include "base/base_mem.h"
#include "base/machine/base_clock.h"
#include "base/number/base_bf16.h"
#include "comm/mpi/comm_mpi_impl.h"

enum { PIECE_ELEMS = 8192 }; /* elements that are worth a thread */
enum { TAGS = 32000 };       /* MPI guarantees tags up to 32767 */

struct lane {
    const cvy_transfer *transfer;
    const struct lane *after; /* sends the same range, or NULL: a segment may change only after it was sent */
    char *buffer; /* room for CVY_SEGMENTS segments; NULL: messages use the memory of the reduction directly */
    int64_t nsegments, posted, done;
    MPI_Request request[CVY_SEGMENTS];
};

struct cvy_transfers {
    cvy_mpi *mpi;
    cvy_transfer_list list;
    const cvy_group *group;
    char *data;
    cvy_dtype dtype, wire;
    int64_t count, segment_elems;
    int tag, next, slot; /* next: index of the first transfer of the next round; slot: -1 if it has none */
    int newest_first, add_threads;
    double longer; /* in a simulation: how much longer messages take that share links with those of other nodes */
    cvy_transfers *younger; /* the next one in the order of starts, of those that are not done */
    struct lane lane[CVY_ROUND_TRANSFERS];
    int nlane;
};

/* The first reduction allocates the slots, so that no step allocates memory. */
static cvy_status need_slots(cvy_mpi *mpi)
{
    for (int i = 0; i < CVY_TRANSFER_SLOTS; i++)
        if (!mpi->queue.slot[i] && !mpi->simulated.folded)
            CVY_TRY(cvy_mem_alloc(CVY_SLOT_BYTES, &mpi->queue.slot[i]));
    return CVY_OK;
}

cvy_status cvy_transfers_create(cvy_mpi *mpi, const cvy_transfers_opts *opts, cvy_transfers **out)
{
    cvy_transfers *t = NULL;
    CVY_TRY(need_slots(mpi));
    CVY_TRY(cvy_mem_alloc(sizeof *t, &t));
    *t = (cvy_transfers){.mpi = mpi,
                         .group = opts->group,
                         .data = opts->data,
                         .count = opts->count,
                         .dtype = opts->dtype,
                         .wire = opts->wire,
                         .slot = -1,
                         .newest_first = opts->newest_first,
                         .add_threads = opts->threads,
                         .longer = mpi->of->simulated_nodes > 1 ? 1 / cvy_simulated_share(mpi, opts->def) : 1};
    t->segment_elems = CVY_SEGMENT_BYTES / (int64_t)cvy_dtype_bytes(opts->dtype);
    t->tag = opts->group->next_tag++ % TAGS;
    const cvy_group *g = opts->group;
    const cvy_status status = opts->half == CVY_WHOLE ? cvy_simulated_build(mpi, g, opts->def, opts->count, &t->list)
                                                      : cvy_allreduce_build_half(opts->def, g->me, g->n, opts->count,
                                                                                 opts->part_out, &t->list);
    if (status != CVY_OK)
        cvy_mem_free(&t);
    else
        *out = t;
    return status;
}

/* Returns the pointer in the queue that points to t, or the last pointer (NULL) if t is not in the queue. */
static cvy_transfers **find_started(cvy_mpi *mpi, const cvy_transfers *t)
{
    cvy_transfers **at = &mpi->queue.oldest;
    while (*at && *at != t)
        at = &(*at)->younger;
    return at;
}

static void forget(cvy_transfers *t)
{
    cvy_transfers **at = find_started(t->mpi, t);
    if (*at)
        *at = t->younger;
    if (t->slot >= 0)
        t->mpi->queue.holder[t->slot] = NULL;
    t->slot = -1;
}

void cvy_transfers_destroy(cvy_transfers **t)
{
    if (*t) {
        forget(*t);
        cvy_transfer_list_free(&(*t)->list);
    }
    cvy_mem_free(t);
}

int64_t cvy_transfers_sent(const cvy_transfers *t)
{
    int64_t elems = 0;
    for (int i = 0; i < t->list.ntransfer; i++)
        elems += t->list.transfer[i].kind == CVY_TRANSFER_SEND ? t->list.transfer[i].count : 0;
    return elems * (int64_t)cvy_dtype_bytes(t->wire);
}

/* ---- segments ---- */

static int64_t segment_count(const cvy_transfers *t, const struct lane *lane, int64_t segment)
{
    return CVY_MIN(t->segment_elems, lane->transfer->count - segment * t->segment_elems);
}

static char *segment_data(const cvy_transfers *t, const struct lane *lane, int64_t segment)
{
    return t->data + (size_t)(lane->transfer->at + segment * t->segment_elems) * cvy_dtype_bytes(t->dtype);
}

static char *segment_buffer(const struct lane *lane, int64_t segment)
{
    return lane->buffer + (size_t)(segment % CVY_SEGMENTS) * CVY_SEGMENT_BYTES;
}

static void round_to_wire(float *x, cvy_bf16 *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        out[i] = cvy_bf16_of(x[i]);
        x[i] = cvy_bf16_get(out[i]);
    }
}

static void finish(cvy_transfers *t)
{
    float *x = (float *)(void *)t->data;
    const int rounds = t->list.rounds_at_end && t->wire != t->dtype && !t->mpi->simulated.folded;
    for (int64_t i = 0; rounds && i < t->count; i++)
        x[i] = cvy_bf16_get(cvy_bf16_of(x[i]));
    forget(t);
}

static cvy_status post(cvy_transfers *t, struct lane *lane)
{
    const int64_t n = segment_count(t, lane, lane->posted);
    char *data = segment_data(t, lane, lane->posted),
         *buffer = lane->buffer ? segment_buffer(lane, lane->posted) : data;
    MPI_Request *request = &lane->request[lane->posted % CVY_SEGMENTS];
    if (t->mpi->simulated.folded)
        data = buffer = t->mpi->simulated.folded;
    const int peer = lane->transfer->peer, bytes = (int)(t->longer * (double)((size_t)n * cvy_dtype_bytes(t->wire)));
    if (lane->transfer->kind != CVY_TRANSFER_SEND) {
        CVY_TRY_MPI(MPI_Irecv(buffer, bytes, MPI_BYTE, peer, t->tag, t->group->comm, request));
    } else {
        if (t->wire != t->dtype && !t->mpi->simulated.folded)
            round_to_wire((float *)data, (cvy_bf16 *)buffer, n);
        CVY_TRY_MPI(MPI_Isend(buffer, bytes, MPI_BYTE, peer, t->tag, t->group->comm, request));
    }
    lane->posted++;
    return CVY_OK;
}

/* Adds the received values, or with adds 0 (bf16 only) copies them. */
static void add_range(const cvy_transfers *t, char *to, const char *received, int adds, int64_t n)
{
    float *x = (float *)(void *)to;
    if (t->wire != t->dtype) {
        const cvy_bf16 *y = (const cvy_bf16 *)(const void *)received;
        for (int64_t i = 0; i < n; i++)
            x[i] = adds ? x[i] + cvy_bf16_get(y[i]) : cvy_bf16_get(y[i]);
    } else if (t->dtype == CVY_DTYPE_F64) {
        double *z = (double *)(void *)to;
        for (int64_t i = 0; i < n; i++)
            z[i] += ((const double *)(const void *)received)[i];
    } else {
        for (int64_t i = 0; i < n; i++)
            x[i] += ((const float *)(const void *)received)[i];
    }
}

/* Each element is added by one thread, so any number of threads gives the same bits. */
static void take_segment(const cvy_transfers *t, const struct lane *lane)
{
    const int64_t n = segment_count(t, lane, lane->done), npieces = (n + PIECE_ELEMS - 1) / PIECE_ELEMS;
    const int adds = lane->transfer->kind == CVY_TRANSFER_ADD;
    const size_t elem = cvy_dtype_bytes(t->dtype), wire_elem = cvy_dtype_bytes(t->wire);
    if (!lane->buffer || lane->transfer->kind == CVY_TRANSFER_SEND)
        return;
    if (t->mpi->simulated.folded) {
        cvy_clock_sleep((double)n * (double)elem * t->mpi->simulated.add_s);
        return;
    }
    char *to = segment_data(t, lane, lane->done);
    const char *received = segment_buffer(lane, lane->done);
    if (t->add_threads <= 1 || npieces < 2) { /* a team of one thread would cost an allocation */
        add_range(t, to, received, adds, n);
        return;
    }
#pragma omp parallel num_threads(t->add_threads)
    {
        CVY_TEAM_MATH();
#pragma omp for
        for (int64_t p = 0; p < npieces; p++) {
            const int64_t at = p * PIECE_ELEMS;
            add_range(t, to + (size_t)at * elem, received + (size_t)at * wire_elem, adds, CVY_MIN(PIECE_ELEMS, n - at));
        }
    }
}

static cvy_status progress_lane(cvy_transfers *t, struct lane *lane, int *advanced)
{
    while (lane->done < lane->posted) {
        MPI_Request *request = &lane->request[lane->done % CVY_SEGMENTS];
        int there = *request == MPI_REQUEST_NULL; /* in a simulation the wait has completed it */
        if (lane->after && lane->after->done <= lane->done)
            break;
        if (!t->mpi->simulated.folded)
            CVY_TRY_MPI(MPI_Test(request, &there, MPI_STATUS_IGNORE));
        if (!there)
            break;
        take_segment(t, lane);
        lane->done++;
        *advanced = 1;
    }
    while (lane->posted < lane->nsegments && lane->posted - lane->done < CVY_SEGMENTS) {
        CVY_TRY(post(t, lane));
        *advanced = 1;
    }
    return CVY_OK;
}

/* ---- rounds ---- */

static void begin_round(cvy_transfers *t)
{
    char *buffer = t->mpi->simulated.folded ? t->mpi->simulated.folded : t->mpi->queue.slot[t->slot];
    const int round = t->next < t->list.ntransfer ? t->list.transfer[t->next].round : 0;
    t->nlane = 0;
    for (; t->next < t->list.ntransfer && t->list.transfer[t->next].round == round; t->next++) {
        struct lane *lane = &t->lane[t->nlane++];
        *lane = (struct lane){.transfer = &t->list.transfer[t->next]};
        lane->nsegments = (lane->transfer->count + t->segment_elems - 1) / t->segment_elems;
        if (lane->transfer->kind == CVY_TRANSFER_ADD || t->wire != t->dtype) {
            lane->buffer = buffer;
            buffer += (size_t)CVY_SEGMENTS * CVY_SEGMENT_BYTES;
        }
        for (int i = 0; i < CVY_SEGMENTS; i++)
            lane->request[i] = MPI_REQUEST_NULL;
        for (int before = 0; before < t->nlane - 1; before++)
            if (t->lane[before].transfer->kind == CVY_TRANSFER_SEND &&
                t->lane[before].transfer->at == lane->transfer->at && lane->transfer->kind == CVY_TRANSFER_ADD)
                lane->after = &t->lane[before];
    }
}

static int is_newest_waiting(const cvy_transfers *t)
{
    const cvy_transfers *y = t->younger;
    while (y && y->slot >= 0)
        y = y->younger;
    return !y;
}

/* The last free slot is kept for the oldest reduction, if that has none. */
static int take_slot(cvy_transfers *t)
{
    const cvy_transfers *oldest = t->mpi->queue.oldest;
    int nfree = 0, last = -1;
    if (t != oldest && t->newest_first && !is_newest_waiting(t))
        return 0;
    for (int i = 0; i < CVY_TRANSFER_SLOTS; i++)
        if (!t->mpi->queue.holder[i]) {
            nfree++;
            last = i;
        }
    if (nfree == 0 || (nfree == 1 && t != oldest && oldest->slot < 0))
        return 0;
    t->mpi->queue.holder[last] = t;
    t->slot = last;
    return 1;
}

void cvy_transfers_start(cvy_transfers *t)
{
    t->next = t->nlane = 0;
    t->younger = NULL;
    *find_started(t->mpi, t) = t;
}

/* ---- under a simulator: waits instead of tests, see comm_mpi_simulated.c ---- */

static int add_requests(cvy_transfers *t, MPI_Request **from, int n)
{
    for (int l = 0; l < t->nlane; l++)
        for (int64_t s = t->lane[l].done; s < t->lane[l].posted; s++)
            from[n++] = &t->lane[l].request[s % CVY_SEGMENTS];
    return n;
}

/* Waits for one of the requests, which becomes MPI_REQUEST_NULL. */
static cvy_status wait_any(MPI_Request **from, int n, int *which_out)
{
    MPI_Request all[CVY_TRANSFERS_REQUESTS_MAX];
    for (int i = 0; i < n; i++)
        all[i] = *from[i];
    CVY_TRY_MPI(MPI_Waitany(n, all, which_out, MPI_STATUS_IGNORE));
    if (*which_out != MPI_UNDEFINED)
        *from[*which_out] = all[*which_out];
    return CVY_OK;
}

static cvy_status wait_for_arrivals(cvy_transfers *t)
{
    MPI_Request *from[CVY_TRANSFERS_REQUESTS_MAX];
    const int n = add_requests(t, from, 0);
    CVY_TRY(cvy_simulated_tick(t->mpi));
    from[n] = &t->mpi->simulated.tick;
    for (int which = 0; which < n;)
        CVY_TRY(wait_any(from, n + 1, &which));
    return CVY_OK;
}

int cvy_transfers_list_requests(const cvy_mpi *mpi, MPI_Request **from, int n)
{
    for (int i = 0; i < CVY_TRANSFER_SLOTS; i++)
        if (mpi->queue.holder[i])
            n = add_requests(mpi->queue.holder[i], from, n);
    return n;
}

/* ---- the state machine ---- */

cvy_status cvy_transfers_progress(cvy_transfers *t, int *done_out)
{
    *done_out = 0;
    if (t->slot < 0) {
        if (!take_slot(t))
            return CVY_OK;
        begin_round(t);
    }
    if (t->mpi->simulated.folded)
        CVY_TRY(wait_for_arrivals(t));
    for (int advanced = 1; advanced;) {
        int open = 0;
        advanced = 0;
        for (int i = 0; i < t->nlane; i++) {
            CVY_TRY(progress_lane(t, &t->lane[i], &advanced));
            open += t->lane[i].done < t->lane[i].nsegments;
        }
        if (open)
            continue;
        if (t->next == t->list.ntransfer) {
            finish(t);
            *done_out = 1;
            return CVY_OK;
        }
        begin_round(t);
        advanced = 1;
    }
    return CVY_OK;
}
