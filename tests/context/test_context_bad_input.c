/* ranks: 1 2 */
/* rows: mpich asan */
/*
 * test_context_bad_input.c: what a host program passes wrongly is a status with a sentence, not an abort: communicators
 * that are none, and MPI that has not begun or has ended.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include "test_util.h"

static int rank, nranks;

/* ---- communicators ---- */

static void without_mpi(const char *text)
{
    cvy_context *none = NULL;
    EXPECT_FAULT(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &none), CVY_E_COMM, text);
    EXPECT_FAULT(cvy_context_create_mpi_fortran(0, NULL, &none), CVY_E_COMM, text);
    EXPECT(none == NULL);
}

static void before_mpi(void)
{
    without_mpi("not initialised");
}

static void after_mpi(void)
{
    without_mpi("finalised already");
}

static void wrong_communicators(void)
{
    cvy_context *none = NULL;
    EXPECT_FAULT(cvy_context_create_mpi(MPI_COMM_NULL, NULL, &none), CVY_E_ARGUMENT, "MPI_COMM_NULL");
    EXPECT_FAULT(cvy_context_create_mpi((MPI_Comm)0, NULL, &none), CVY_E_ARGUMENT, "the communicator is");
    EXPECT_FAULT(cvy_context_create_mpi_fortran((int)MPI_Comm_c2f(MPI_COMM_NULL), NULL, &none), CVY_E_ARGUMENT,
                 "MPI_COMM_NULL");
#if defined(OPEN_MPI)
    EXPECT_FAULT(cvy_context_create_mpi_fortran(-1, NULL, &none), CVY_E_ARGUMENT, "the communicator is");
    EXPECT_FAULT(cvy_context_create_mpi_fortran(12345, NULL, &none), CVY_E_ARGUMENT, "the communicator is");
#endif
    EXPECT(none == NULL);
}

static void intercommunicator(void)
{
    MPI_Comm part = MPI_COMM_NULL, inter = MPI_COMM_NULL;
    cvy_context *none = NULL;
    if (nranks != 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &part);
    MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, 1 - rank, 5, &inter);
    EXPECT_FAULT(cvy_context_create_mpi(inter, NULL, &none), CVY_E_ARGUMENT, "intercommunicator");
    MPI_Comm_free(&inter);
    MPI_Comm_free(&part);
}

int main(int argc, char **argv)
{
    TEST(before_mpi);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    TEST(wrong_communicators);
    TEST(intercommunicator);
    MPI_Finalize();
    TEST(after_mpi);
    return test_end();
}
