/*
 * convoy/mpi.h: a context over the user's MPI communicator. The only public header that sees MPI.
 */
#ifndef CONVOY_MPI_H
#define CONVOY_MPI_H

#include <convoy/base.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * cvy_mpi_prepare - before MPI_Init: what sums between nodes profit from, where the environment says nothing else
 *
 * Open MPI over TCP (OMPI_MCA_btl_tcp_eager_limit): segments of a sum are sent without asking the receiver first, so they travel while both sides compute; asked for,
 * they wait until both have looked. Other MPI libraries and networks are not touched. Optional; the command calls it. Sets variables of the environment, so no other
 * thread may use it meanwhile. Collective: no, but on all ranks or none. Errors: none.
 */
CVY_API void cvy_mpi_prepare(void);

/**
 * cvy_context_create_mpi - make a context over the ranks of a communicator
 * @comm: duplicated, never used itself; the caller may free it afterwards
 * @opts: NULL for the defaults; equal on all ranks
 * @context_out: the context; destroy it before MPI_Finalize
 *
 * MPI must be initialised (at any thread level); the library calls MPI only from the thread that calls it.
 * Collective: yes, over @comm. Errors: CVY_E_COMM, CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_context_create_mpi(MPI_Comm comm, const cvy_context_opts *opts, cvy_context **context_out);

#ifdef __cplusplus
}
#endif
#endif
