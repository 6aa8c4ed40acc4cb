/*
 * comm_mpi_about.c: the version of the MPI library and the time of single messages, for `convoy doctor` and for
 * simulations. No step uses them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/mpi/comm_mpi_about.h"

#include <stdio.h>
#include <string.h>

#include "base/machine/base_clock.h"
#include "comm/mpi/comm_mpi_impl.h"

void cvy_mpi_about(const cvy_comm *comm, cvy_comm_about *out)
{
    static const struct {
        int level;
        const char *word;
    } levels[] = {
        {MPI_THREAD_SINGLE, "single"},
        {MPI_THREAD_FUNNELED, "funneled"},
        {MPI_THREAD_SERIALIZED, "serialized"},
        {MPI_THREAD_MULTIPLE, "multiple"},
    };
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0, level = MPI_THREAD_SINGLE;
    (void)comm;
    *out = (cvy_comm_about){.threads = ""};
    MPI_Get_library_version(text, &length);
    MPI_Query_thread(&level);
    snprintf(out->library, sizeof out->library, "%.*s", (int)strcspn(text, "\n"), text);
    for (int i = 0; i < CVY_COUNT(levels); i++)
        if (levels[i].level == level)
            out->threads = levels[i].word;
}

cvy_status cvy_mpi_ping(cvy_comm *comm, int other, void *data, size_t bytes, double *seconds_out)
{
    enum { TAG = 8 };
    const MPI_Comm ranks = cvy_mpi_of(comm)->comm;
    const int begins = comm->rank < other, n = (int)bytes;
    CVY_CHECK(bytes <= CVY_PIECE_ELEMS, CVY_E_ARGUMENT, "a message of %zu bytes; at most %d", bytes,
              (int)CVY_PIECE_ELEMS);
    const double start = cvy_clock_s();
    if (begins)
        CVY_TRY_MPI(MPI_Send(data, n, MPI_BYTE, other, TAG, ranks));
    CVY_TRY_MPI(MPI_Recv(data, n, MPI_BYTE, other, TAG, ranks, MPI_STATUS_IGNORE));
    if (!begins)
        CVY_TRY_MPI(MPI_Send(data, n, MPI_BYTE, other, TAG, ranks));
    *seconds_out = 0.5 * (cvy_clock_s() - start);
    return CVY_OK;
}
