/*
 * convoy/mpi.h: a context over the user's MPI communicator. The only public header that sees MPI.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_MPI_H
#define CONVOY_MPI_H

#include <convoy/base.h>
#include <mpi.h>

CVY_BEGIN_DECLS

/**
 * cvy_mpi_prepare - set, before MPI_Init, what speeds up an all-reduce between nodes, unless the environment sets it
 *
 * For Open MPI over TCP this is OMPI_MCA_btl_tcp_eager_limit: segments of an all-reduce are then sent without asking
 * the receiver first, so they travel while both sides compute; otherwise they wait until both sides call MPI. Nothing
 * changes for other MPI libraries and networks. The call is optional; the command makes it. It sets variables of the
 * environment, so no other thread may use the environment during the call. Collective: no, but call it on all ranks or
 * on none. Errors: none.
 */
CVY_API void cvy_mpi_prepare(void);

/**
 * cvy_context_create_mpi - make a context over the ranks of a communicator
 * @comm: duplicated and not used itself; the caller may free it afterwards
 * @opts: NULL for the defaults; equal on all ranks
 * @context_out: the context; destroy it before MPI_Finalize
 *
 * MPI must be initialised, at any thread level. The library calls MPI only from the thread that calls it; if a progress
 * thread is asked for, that thread calls MPI too, but never both at once. A progress thread knows of its own context
 * only: if a program has several contexts, or calls MPI itself while reductions of a progress thread are under way, it
 * must have been granted MPI_THREAD_MULTIPLE. Collective: yes, over @comm. Errors:
 * CVY_E_ARGUMENT (size, threads; @comm is MPI_COMM_NULL or an intercommunicator), CVY_E_COMM (MPI is not initialised or
 * is finalised; a call of MPI fails), CVY_E_MEMORY. A handle that was never one, or was freed, is a fault of MPI's: MPI
 * ends the job, as with any other call, unless the program has changed its error handler.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_context_create_mpi(MPI_Comm comm, const cvy_context_opts *opts,
                                                         cvy_context **context_out);

/**
 * cvy_context_create_mpi_fortran - the same for a communicator of Fortran
 * @comm: its integer handle, which in mpi_f08 is comm%MPI_VAL
 *
 * For programs in Fortran and in other languages that know communicators by such numbers (py2f() of mpi4py). Collective
 * and errors: as cvy_context_create_mpi(). A number that is no handle is CVY_E_ARGUMENT if the MPI library converts it
 * to none (Open MPI does); otherwise it is that fault of MPI's.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_context_create_mpi_fortran(int comm, const cvy_context_opts *opts,
                                                                 cvy_context **context_out);

CVY_END_DECLS
#endif
