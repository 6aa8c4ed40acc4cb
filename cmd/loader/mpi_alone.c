/*
 * mpi_alone.c: stands for the MPI library in a process that is alone, in an installation for several MPI libraries. It
 * has the ABI of MPICH and the calls of the library and the command, for one rank: a collective copies what it is
 * given, and is complete at once. There is nobody to send a message to, so those calls fail.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A type of MPICH has its size in the second byte. */
#define BYTES_OF(type) ((size_t)((unsigned)(type) >> 8 & 0xff))
_Static_assert(BYTES_OF(MPI_INT) == sizeof(int) && BYTES_OF(MPI_DOUBLE) == sizeof(double) && BYTES_OF(MPI_BYTE) == 1,
               "this is compiled with the headers of a library with MPICH's ABI");

enum { NO_SUCH_RANK = MPI_ERR_RANK, A_TYPE = 0x0c000000 /* a handle of no memory, for types that no message uses */ };

static int is_initialized, is_finalized;

static int copy(const void *from, void *to, int count, MPI_Datatype type)
{
    if (from != MPI_IN_PLACE && from != to && count > 0)
        memcpy(to, from, (size_t)count * BYTES_OF(type));
    return MPI_SUCCESS;
}

static int complete(MPI_Request *request, int code)
{
    *request = MPI_REQUEST_NULL;
    return code;
}

/* ---- begin, end, faults ---- */

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    is_initialized = 1;
    *provided = MPI_THREAD_MULTIPLE;
    return MPI_SUCCESS;
}

int MPI_Query_thread(int *provided)
{
    *provided = MPI_THREAD_MULTIPLE;
    return MPI_SUCCESS;
}

int MPI_Initialized(int *flag)
{
    *flag = is_initialized;
    return MPI_SUCCESS;
}

int MPI_Finalize(void)
{
    is_finalized = 1;
    return MPI_SUCCESS;
}

int MPI_Finalized(int *flag)
{
    *flag = is_finalized;
    return MPI_SUCCESS;
}

int MPI_Abort(MPI_Comm comm, int code)
{
    fflush(NULL);
    _exit(code);
}

int MPI_Get_library_version(char *text, int *length)
{
    *length = snprintf(text, MPI_MAX_LIBRARY_VERSION_STRING, "none: one rank works without an MPI library");
    return MPI_SUCCESS;
}

int MPI_Error_class(int code, int *kind)
{
    *kind = code;
    return MPI_SUCCESS;
}

int MPI_Error_string(int code, char *text, int *length)
{
    *length = snprintf(text, MPI_MAX_ERROR_STRING, "%s",
                       code == NO_SUCH_RANK ? "a message to another rank, but there is no MPI library" : "no error");
    return MPI_SUCCESS;
}

/* ---- communicators: each one has this rank ---- */

static int one_more(MPI_Comm *out)
{
    *out = MPI_COMM_SELF;
    return MPI_SUCCESS;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *out)
{
    return one_more(out);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *out)
{
    one_more(out);
    if (color == MPI_UNDEFINED)
        *out = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out)
{
    return MPI_Comm_split(comm, type, key, out);
}

int MPI_Comm_free(MPI_Comm *comm)
{
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    *rank = 0;
    return MPI_SUCCESS;
}

int MPI_Comm_size(MPI_Comm comm, int *size)
{
    *size = 1;
    return MPI_SUCCESS;
}

int MPI_Comm_test_inter(MPI_Comm comm, int *flag)
{
    *flag = 0;
    return MPI_SUCCESS;
}

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
    return MPI_SUCCESS;
}

/* ---- collectives ---- */

int MPI_Barrier(MPI_Comm comm)
{
    return MPI_SUCCESS;
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    return complete(request, MPI_SUCCESS);
}

int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    return MPI_SUCCESS;
}

int MPI_Ibcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
    return complete(request, MPI_SUCCESS);
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    return copy(from, to, count, type);
}

int MPI_Iallreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
    return complete(request, copy(from, to, count, type));
}

int MPI_Scan(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    return copy(from, to, count, type);
}

int MPI_Gather(const void *from, int count, MPI_Datatype type, void *to, int to_count, MPI_Datatype to_type, int root,
               MPI_Comm comm)
{
    return copy(from, to, count, type);
}

int MPI_Allgather(const void *from, int count, MPI_Datatype type, void *to, int to_count, MPI_Datatype to_type,
                  MPI_Comm comm)
{
    return copy(from, to, count, type);
}

int MPI_Iallgather(const void *from, int count, MPI_Datatype type, void *to, int to_count, MPI_Datatype to_type,
                   MPI_Comm comm, MPI_Request *request)
{
    return complete(request, copy(from, to, count, type));
}

/* ---- messages ---- */

int MPI_Get_address(const void *at, MPI_Aint *out)
{
    *out = (MPI_Aint)at;
    return MPI_SUCCESS;
}

int MPI_Type_create_hindexed(int count, const int *lengths, const MPI_Aint *at, MPI_Datatype type, MPI_Datatype *out)
{
    *out = A_TYPE;
    return MPI_SUCCESS;
}

int MPI_Type_commit(MPI_Datatype *type)
{
    return MPI_SUCCESS;
}

int MPI_Type_free(MPI_Datatype *type)
{
    *type = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    return NO_SUCH_RANK;
}

int MPI_Recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    return NO_SUCH_RANK;
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    return complete(request, NO_SUCH_RANK);
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    return complete(request, NO_SUCH_RANK);
}

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    *flag = 0;
    return MPI_SUCCESS;
}

/* ---- requests: each one is complete, so it is the one that stands for none ---- */

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    return complete(request, MPI_SUCCESS);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    *flag = 1;
    return complete(request, MPI_SUCCESS);
}

int MPI_Testall(int count, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    *flag = 1;
    return MPI_SUCCESS;
}

int MPI_Testany(int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
    *index = MPI_UNDEFINED;
    *flag = 1;
    return MPI_SUCCESS;
}

int MPI_Waitany(int count, MPI_Request *requests, int *index, MPI_Status *status)
{
    *index = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int MPI_Cancel(MPI_Request *request)
{
    return MPI_SUCCESS;
}

int MPI_Request_free(MPI_Request *request)
{
    return complete(request, MPI_SUCCESS);
}
