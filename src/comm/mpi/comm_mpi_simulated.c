/*
 * comm_mpi_simulated.c: what is different if MPI is SimGrid's SMPI, which runs all ranks as parts of one process and
 * advances a simulated time (docs/guide/speed.md). Only this file asks at compile time whether mpi.h is SMPI's.
 *
 * No data are sent: every message goes from and to memory that SMPI knows to be folded and does not copy. Additions
 * and copies take time but are not computed. A rank that waits blocks in MPI until any of its messages or transfers is
 * done, on any of its communicators (those of the axes of the grid), so that the simulated time jumps to the next
 * event; a real rank would test repeatedly. SMPI moves messages by itself, so they are looked for in waits only. A rank
 * that makes progress on a reduction and tests whether a message has arrived waits for this message or for a short
 * message to itself. The reason: if MPI_Test completes some requests and MPI_Wait others, SMPI 3.32 becomes slower with
 * each message. Algorithms are compared by the computed cost of their transfers on this network: it would take longer
 * to simulate trials among a thousand ranks than to simulate the step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/mpi/comm_mpi_simulated.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_mem.h"
#include "base/machine/base_clock.h"
#include "comm/mpi/comm_mpi_impl.h"
#include "comm/mpi/comm_mpi_transfers.h"

#define LOOK_AGAIN_S 1e-6
/* Of one core; CONVOY_SIMULATED_ADD and CONVOY_SIMULATED_MEMORY can set other rates. */
#define ADD_BYTES_PER_S 10e9
#define MOVE_BYTES_PER_S 30e9

#ifdef SMPI_SHARED_MALLOC
static double rate_of(const char *variable, double otherwise)
{
    const char *text = getenv(variable);
    const double rate = text ? strtod(text, NULL) : 0;
    return rate > 0 ? rate : otherwise;
}
#endif

void cvy_simulated_begin(cvy_mpi *mpi, size_t bytes)
{
#ifdef SMPI_SHARED_MALLOC
    mpi->simulated.tick = MPI_REQUEST_NULL;
    if (mpi->root != mpi) {
        cvy_simulated *root = &mpi->root->simulated;
        mpi->simulated.folded = root->folded;
        mpi->simulated.add_s = root->add_s;
        mpi->simulated.move_s = root->move_s;
        mpi->simulated.ranks = root->ranks;
        mpi->simulated.share = root->share;
        mpi->simulated.next = root->next;
        root->next = mpi;
        return;
    }
    mpi->simulated.folded = SMPI_SHARED_MALLOC(bytes);
    mpi->simulated.add_s = 1 / rate_of("CONVOY_SIMULATED_ADD", ADD_BYTES_PER_S);
    mpi->simulated.move_s = 1 / rate_of("CONVOY_SIMULATED_MEMORY", MOVE_BYTES_PER_S);
    mpi->simulated.ranks = (int)CVY_MIN(rate_of("CONVOY_SIMULATED_RANKS", 1), 1 << 20);
    mpi->simulated.share = CVY_MIN(rate_of("CONVOY_SIMULATED_SHARE", 1), 1);
#else
    (void)mpi, (void)bytes;
#endif
}

/* In a ring each rank sends to its neighbour, which is mostly below the same switch. */
double cvy_simulated_share(const cvy_mpi *mpi, const cvy_allreduce_def *def)
{
    return strcmp(def->name, "ring") == 0 ? 1 : mpi->simulated.share;
}

/* ---- ranks that stand for several nodes ---- */

/* Which of n ranks takes the place of `peer` among all. Neighbours (ring) stay neighbours; partners at a distance that
 * is a power of two (halving, doubling) become partners at a distance of one of n ranks. Both ranks of a pair find each
 * other so. All numbers are powers of two. In sums over data and spatial axes a far partner may become one of the same
 * sample, which is nearer: latencies are then a little too short. */
static int stand_in(int me, int peer, int n, int all)
{
    const int apart = (peer - me + all) % all, across = me ^ peer;
    int far = 0, bits = 0;
    if (apart == 1 || apart == all - 1)
        return (me + (apart == 1 ? 1 : n - 1)) % n;
    while (1 << far < across)
        far++;
    while (1 << bits < n)
        bits++;
    return me ^ (1 << (far % bits));
}

/* All parts are equally long, so that the messages of ranks that stand in for each other are, too. */
cvy_status cvy_simulated_build(const cvy_mpi *mpi, const cvy_group *group, const cvy_allreduce_def *def, int64_t count,
                               cvy_transfer_list *out)
{
    const int all = group->n * mpi->of->simulated_nodes, line = 64 / (int)sizeof(float);
    if (mpi->of->simulated_nodes <= 1 || group->n < 2)
        return cvy_allreduce_build(def, group->me, group->n, count, out);
    const int64_t whole = (int64_t)line * all;
    CVY_TRY(cvy_allreduce_build(def, group->me, all, (count + whole - 1) / whole * whole, out));
    for (int i = 0; i < out->ntransfer; i++)
        out->transfer[i].peer = stand_in(group->me, out->transfer[i].peer, group->n, all);
    return CVY_OK;
}

/* In a node's shared memory each rank adds a part of the bytes: together they read what each of them has written, and
 * write the sums once. */
void cvy_simulated_sum_node(const cvy_mpi *mpi, size_t bytes)
{
    if (mpi->simulated.ranks > 1)
        cvy_clock_sleep((double)bytes * (mpi->simulated.ranks + 1) * mpi->simulated.move_s);
}

int cvy_simulated_nodes(void)
{
#ifdef SMPI_SHARED_MALLOC
    return (int)CVY_MIN(rate_of("CONVOY_SIMULATED_NODES", 1), 1 << 20);
#else
    return 0;
#endif
}

int cvy_simulated_cores(const cvy_mpi *mpi)
{
    const char *text = getenv("CONVOY_SIMULATED_CORES");
    const long cores = mpi->simulated.folded && text ? strtol(text, NULL, 10) : 0;
    return mpi->simulated.folded ? (int)CVY_MIN(CVY_MAX(cores, 2), 1 << 20) : 0;
}

void cvy_simulated_end(cvy_mpi *mpi)
{
#ifdef SMPI_SHARED_MALLOC
    if (mpi->simulated.folded && mpi->simulated.tick != MPI_REQUEST_NULL)
        MPI_Wait(&mpi->simulated.tick, MPI_STATUS_IGNORE);
    for (cvy_mpi *m = mpi->root; m; m = m->simulated.next)
        if (m->simulated.next == mpi)
            m->simulated.next = mpi->simulated.next;
    if (mpi->simulated.folded && mpi->root == mpi)
        SMPI_SHARED_FREE(mpi->simulated.folded);
    cvy_mem_free(&mpi->simulated.awaited);
    cvy_mem_free(&mpi->simulated.waited);
#endif
    mpi->simulated.folded = NULL;
}

/* ---- waits ---- */

cvy_status cvy_simulated_await(cvy_mpi *mpi, MPI_Request *request)
{
    cvy_simulated *root = &mpi->root->simulated;
    CVY_TRY(cvy_mem_reserve(&root->awaited, &root->awaited_room, root->nawaited, sizeof *root->awaited));
    root->awaited[root->nawaited++] = request;
    return CVY_OK;
}

void cvy_simulated_forget(cvy_mpi *mpi, const MPI_Request *request)
{
    cvy_simulated *root = &mpi->root->simulated;
    int n = 0;
    for (int i = 0; i < root->nawaited; i++)
        if (root->awaited[i] != request)
            root->awaited[n++] = root->awaited[i];
    root->nawaited = n;
}

/* Lists the requests of the messages that are not done, then those of the transfers of all communicators. */
static cvy_status list_awaited(cvy_mpi *mpi, int *n_out)
{
    cvy_simulated *root = &mpi->root->simulated;
    int n = 0;
    for (int i = 0; i < root->nawaited; i++)
        if (*root->awaited[i] != MPI_REQUEST_NULL)
            root->awaited[n++] = root->awaited[i];
    root->nawaited = n;
    for (cvy_mpi *m = mpi->root; m; m = m->simulated.next) {
        while (n + CVY_TRANSFERS_REQUESTS_MAX > root->awaited_room)
            CVY_TRY(cvy_mem_reserve(&root->awaited, &root->awaited_room, root->awaited_room, sizeof *root->awaited));
        n = cvy_transfers_list_requests(m, root->awaited, n);
    }
    while (n > root->waited_room)
        CVY_TRY(cvy_mem_reserve(&root->waited, &root->waited_room, root->waited_room, sizeof *root->waited));
    *n_out = n;
    return CVY_OK;
}

cvy_status cvy_simulated_wait_any(cvy_mpi *mpi)
{
    const cvy_simulated *root = &mpi->root->simulated;
    int n = 0, which = MPI_UNDEFINED, found = 1;
    CVY_TRY(list_awaited(mpi, &n));
    for (int i = 0; i < n; i++)
        root->waited[i] = *root->awaited[i];
    if (n > 0 && root->nlibrary == 0)
        CVY_TRY_MPI(MPI_Waitany(n, root->waited, &which, MPI_STATUS_IGNORE));
    else { /* the rank waits for something else too */
        cvy_clock_sleep(LOOK_AGAIN_S);
        if (n > 0)
            CVY_TRY_MPI(MPI_Testany(n, root->waited, &which, &found, MPI_STATUS_IGNORE));
    }
    if (found && which != MPI_UNDEFINED)
        *root->awaited[which] = root->waited[which];
    return CVY_OK;
}

cvy_status cvy_simulated_tick(cvy_mpi *mpi)
{
    enum { TAG = 32001 }; /* above the tags of reductions */
    MPI_Request sent;
    if (mpi->simulated.tick != MPI_REQUEST_NULL)
        return CVY_OK;
    CVY_TRY_MPI(MPI_Irecv(mpi->simulated.folded, 1, MPI_BYTE, mpi->all.me, TAG, mpi->all.comm, &mpi->simulated.tick));
    CVY_TRY_MPI(MPI_Isend(mpi->simulated.folded, 1, MPI_BYTE, mpi->all.me, TAG, mpi->all.comm, &sent));
    CVY_TRY_MPI(MPI_Request_free(&sent));
    return CVY_OK;
}

/* Measures the link with a message of one byte and a long one between the first rank and the last one, which are as far
 * apart as ranks can be. */
static cvy_status find_link(cvy_comm *comm, cvy_link *link)
{
    enum { LONG_BYTES = 1 << 20 };
    cvy_mpi *mpi = cvy_mpi_of(comm);
    const int last = comm->nranks - 1, takes_part = comm->rank == 0 || comm->rank == last;
    double empty_s = 0, long_s = 0;
    if (takes_part)
        CVY_TRY(comm->probe->ping(comm, last - comm->rank, mpi->simulated.folded, 1, &empty_s));
    if (takes_part)
        CVY_TRY(comm->probe->ping(comm, last - comm->rank, mpi->simulated.folded, LONG_BYTES, &long_s));
    *link = (cvy_link){empty_s, (long_s - empty_s) / LONG_BYTES, mpi->simulated.add_s};
    return comm->ops->broadcast(comm, link, sizeof *link, 0);
}

/* In trials on a real machine all ranks send at once, and links between switches may be shared. Here one pair of ranks
 * measures, so the others have to be thought of. */
cvy_status cvy_simulated_measure(cvy_comm *comm, cvy_group *group)
{
    int count = 0;
    const cvy_allreduce_def *const *def = cvy_allreduce_table(&count);
    cvy_link link;
    CVY_TRY(find_link(comm, &link));
    for (int size = 0; size < CVY_GROUP_SIZES; size++)
        for (int i = 0; i < CVY_GROUP_ALGORITHMS; i++) {
            cvy_transfer_list list = {0};
            cvy_link seen = link;
            if (i < count)
                seen.beta_s /= cvy_simulated_share(cvy_mpi_of(comm), def[i]);
            if (i < count)
                CVY_TRY(cvy_simulated_build(cvy_mpi_of(comm), group, def[i],
                                            cvy_group_size(size) / (int64_t)sizeof(float), &list));
            group->seconds[size][i] =
                i < count ? cvy_transfer_list_cost(&list, sizeof(float), &seen) : (double)INFINITY;
            group->measured[i] = 1;
            cvy_transfer_list_free(&list);
        }
    return comm->ops->allreduce(comm, &group->seconds[0][0], (int64_t)CVY_GROUP_SIZES * CVY_GROUP_ALGORITHMS,
                                CVY_DTYPE_F64, CVY_REDUCE_MAX);
}
