/*
 * comm_mpi_simulated.c: what differs where MPI is SimGrid's SMPI, which runs all ranks as parts of one process and moves a simulated time
 * (docs/simulate.md). Only here something is asked at compile time: whether mpi.h is SMPI's.
 *
 * Numbers do not travel: every message goes from and to a piece of memory that SMPI knows to be folded and does not copy. Additions take time in
 * place of being made. Who waits blocks in MPI, so that the time jumps to the next event, where a real rank looks again and again. Who looks whether a
 * message is there waits for it or for a short one to himself: what MPI_Test and what MPI_Wait ends, mixed, makes SMPI 3.32 slower with each message.
 * Ways of summing are compared by what their moves cost on this network: trials among a thousand ranks would take longer to simulate than the step.
 */
#include <math.h>
#include <stdlib.h>

#include "base/base_util.h"
#include "comm/mpi/comm_mpi_impl.h"

#define ADD_BYTES_PER_S 10e9           /* of one core, where CONVOY_SIMULATED_ADD does not say otherwise */

void cvy_simulated_begin(struct cvy_mpi *mpi, size_t bytes)
{
#ifdef SMPI_SHARED_MALLOC
    const char *text = getenv("CONVOY_SIMULATED_ADD");
    const double rate = text ? strtod(text, NULL) : 0;
    mpi->folded = SMPI_SHARED_MALLOC(bytes);
    mpi->tick = MPI_REQUEST_NULL;
    mpi->add_s = 1 / (rate > 0 ? rate : ADD_BYTES_PER_S);
#else
    (void)mpi, (void)bytes;
#endif
}

int cvy_simulated_cores(const struct cvy_mpi *mpi)
{
    const char *text = getenv("CONVOY_SIMULATED_CORES");
    const long cores = mpi->folded && text ? strtol(text, NULL, 10) : 0;
    return mpi->folded ? (int)CVY_MIN(CVY_MAX(cores, 2), 1 << 20) : 0;
}

void cvy_simulated_end(struct cvy_mpi *mpi)
{
#ifdef SMPI_SHARED_MALLOC
    if (mpi->folded && mpi->tick != MPI_REQUEST_NULL)
        MPI_Wait(&mpi->tick, MPI_STATUS_IGNORE);
    if (mpi->folded)
        SMPI_SHARED_FREE(mpi->folded);
#endif
    mpi->folded = NULL;
}

cvy_status cvy_simulated_tick(struct cvy_mpi *mpi)
{
    enum { TAG = 32001 };              /* above those of sums */
    MPI_Request sent;
    if (mpi->tick != MPI_REQUEST_NULL)
        return CVY_OK;
    CVY_TRY_MPI(MPI_Irecv(mpi->folded, 1, MPI_BYTE, mpi->all.me, TAG, mpi->all.comm, &mpi->tick));
    CVY_TRY_MPI(MPI_Isend(mpi->folded, 1, MPI_BYTE, mpi->all.me, TAG, mpi->all.comm, &sent));
    CVY_TRY_MPI(MPI_Request_free(&sent));
    return CVY_OK;
}

/* An empty message and a long one, between the first rank and the last: as far apart as ranks are. */
static cvy_status find_link(cvy_comm *comm, cvy_link *link)
{
    enum { LONG_BYTES = 1 << 20 };
    struct cvy_mpi *mpi = cvy_mpi_of(comm);
    const int last = comm->nranks - 1, takes_part = comm->rank == 0 || comm->rank == last;
    double empty_s = 0, long_s = 0;
    if (takes_part)
        CVY_TRY(comm->ops->ping(comm, last - comm->rank, mpi->folded, 1, &empty_s));
    if (takes_part)
        CVY_TRY(comm->ops->ping(comm, last - comm->rank, mpi->folded, LONG_BYTES, &long_s));
    *link = (cvy_link){empty_s, (long_s - empty_s) / LONG_BYTES, mpi->add_s};
    return comm->ops->broadcast(comm, link, sizeof *link, 0);
}

cvy_status cvy_simulated_measure(cvy_comm *comm, struct cvy_group *group)
{
    int count = 0;
    const cvy_sum_def *const *def = cvy_sum_table(&count);
    cvy_link link;
    CVY_TRY(find_link(comm, &link));
    for (int size = 0; size < CVY_GROUP_SIZES; size++)
        for (int way = 0; way < CVY_GROUP_WAYS; way++) {
            cvy_sum sum = {0};
            if (way < count)
                CVY_TRY(cvy_sum_build(def[way], group->me, group->n, cvy_group_size(size) / (int64_t)sizeof(float), &sum));
            group->seconds[size][way] = way < count ? cvy_sum_cost(&sum, sizeof(float), &link) : (double)INFINITY;
            group->tried[way] = 1;
            cvy_sum_free(&sum);
        }
    return comm->ops->allreduce(comm, &group->seconds[0][0], (int64_t)CVY_GROUP_SIZES * CVY_GROUP_WAYS, CVY_DTYPE_F64, CVY_REDUCE_MAX);
}
