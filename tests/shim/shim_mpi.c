/*
 * shim_mpi.c: replaces MPI calls (LD_PRELOAD, MPI's profiling interface) and injects a fault into one of them.
 *
 * It counts the calls that exchange something. At one of them it does what a broken network, a broken node or a broken
 * program does.
 *
 * Environment:
 *   SHIM_MPI_RANK   the rank in MPI_COMM_WORLD that is affected; without it nothing is done
 *   SHIM_MPI_CALL   only calls of this name are counted (for example MPI_Allreduce)
 *   SHIM_MPI_FROM   counting begins when this file exists
 *   SHIM_MPI_AT     the number of the call that is affected, from 1
 *   SHIM_MPI_FAULT  error: from that call on all fail with MPI_ERR_OTHER, by the communicator's error handler
 *                   skip: the next collective returns without doing anything
 *                   count: it takes half as many elements
 *                   kill: the process is killed
 *                   exit: it calls exit(0)
 *                   slow: from that call on each one takes 20 ms longer
 *                   flip: a bit is flipped wherever memory holds the bytes of the file SHIM_MPI_BYTES
 *   SHIM_MPI_BYTES  file of at most 64 bytes
 *   SHIM_MPI_LOG    file that gets the name of each counted call
 *
 * Calls from MPI_Init_thread to MPI_Finalize count. MPI_Test is not counted while it finds nothing done, because the
 * number of such calls depends on timing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum fault { NONE, ERROR, SKIP, SHAPE, KILL, EXIT, SLOW, FLIP };

static const char *const fault_name[] = {[ERROR] = "error", [SKIP] = "skip", [SHAPE] = "count", [KILL] = "kill",
                                         [EXIT] = "exit",   [SLOW] = "slow", [FLIP] = "flip"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum fault fault;
static const char *only, *from;
static long calls, hit_at;
static int is_on, is_done;
static FILE *log_file;

static void begin(void)
{
    const char *rank = getenv("SHIM_MPI_RANK"), *at = getenv("SHIM_MPI_AT"), *name = getenv("SHIM_MPI_FAULT"),
               *path = getenv("SHIM_MPI_LOG");
    int mine = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &mine);
    if (!rank || atoi(rank) != mine)
        return;
    only = getenv("SHIM_MPI_CALL");
    from = getenv("SHIM_MPI_FROM");
    hit_at = at ? atol(at) : 0;
    for (int i = 1; name && i < (int)(sizeof fault_name / sizeof *fault_name); i++)
        if (strcmp(name, fault_name[i]) == 0)
            fault = (enum fault)i;
    log_file = path ? fopen(path, "w") : NULL;
    is_on = 1;
}

static void die(void)
{
    if (fault == KILL)
        kill(getpid(), SIGKILL);
    exit(0);
}

/* Flips bit 20 of the first float of each place in writable memory that holds the same bytes as the file. The copy of
 * these bytes here is inverted, so that it is not found itself. */
static void flip(void)
{
    FILE *maps = fopen("/proc/self/maps", "r"), *file = fopen(getenv("SHIM_MPI_BYTES"), "r");
    unsigned char turned[64];
    char line[512];
    unsigned long from_at, to_at;
    int places = 0;
    if (file)
        setvbuf(file, NULL, _IONBF, 0); /* a buffer would hold the bytes */
    const size_t n = file ? fread(turned, 1, sizeof turned, file) : 0;
    for (size_t i = 0; i < n; i++)
        turned[i] ^= 0xff;
    while (n && maps && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx rw", &from_at, &to_at) != 2 || !strstr(line, " rw") || strstr(line, "[stack]"))
            continue;
        for (unsigned char *at = (unsigned char *)from_at; at + n <= (unsigned char *)to_at; at += 4) {
            size_t same = 0;
            while (same < n && at[same] == (turned[same] ^ 0xff))
                same++;
            if (same < n)
                continue;
            at[2] ^= 0x10;
            places++;
        }
    }
    dprintf(STDERR_FILENO, "shim_mpi: a bit flipped in %d places\n", places);
    if (file)
        fclose(file);
    if (maps)
        fclose(maps);
}

/* Returns what is to happen to this call. */
static enum fault look(const char *name, int is_collective)
{
    if (!is_on || (only && strcmp(only, name) != 0))
        return NONE;
    pthread_mutex_lock(&lock);
    if (from && calls == 0 && access(from, F_OK) != 0) {
        pthread_mutex_unlock(&lock);
        return NONE;
    }
    const long n = ++calls;
    if (log_file)
        fprintf(log_file, "%ld %s %s\n", n, name, is_collective ? "collective" : "message");
    const int is_hit = fault && n >= hit_at && (!is_done || fault == ERROR || fault == SLOW) &&
                       (is_collective || (fault != SKIP && fault != SHAPE));
    if (is_hit && !is_done)
        dprintf(STDERR_FILENO, "shim_mpi: %s at call %ld, %s\n", fault_name[fault], n, name);
    is_done |= is_hit;
    pthread_mutex_unlock(&lock);
    if (!is_hit)
        return NONE;
    if (fault == KILL || fault == EXIT)
        die();
    if (fault == FLIP)
        flip();
    if (fault == SLOW)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return fault;
}

static int broken(MPI_Comm comm)
{
    PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
    return MPI_ERR_OTHER;
}

/* A collective returns early from its caller if it fails or is skipped. `count` is halved for the fault of a wrong
 * count. */
#define COLLECTIVE(name, count)                                                                                        \
    do {                                                                                                               \
        const enum fault what = look(name, 1);                                                                         \
        if (what == ERROR)                                                                                             \
            return broken(comm);                                                                                       \
        if (what == SKIP)                                                                                              \
            return MPI_SUCCESS;                                                                                        \
        if (what == SHAPE)                                                                                             \
            (count) /= 2;                                                                                              \
    } while (0)

#define MESSAGE(name)                                                                                                  \
    do {                                                                                                               \
        if (look(name, 0) == ERROR)                                                                                    \
            return MPI_ERR_OTHER;                                                                                      \
    } while (0)

/* ---- beginning and end ---- */

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    const int code = PMPI_Init_thread(argc, argv, required, provided);
    begin();
    return code;
}

int MPI_Finalize(void)
{
    is_on = 0;
    if (log_file)
        fclose(log_file);
    return PMPI_Finalize();
}

/* ---- collectives ---- */

int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    COLLECTIVE("MPI_Allreduce", count);
    return PMPI_Allreduce(send, recv, count, type, op, comm);
}

int MPI_Iallreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    COLLECTIVE("MPI_Iallreduce", count);
    return PMPI_Iallreduce(send, recv, count, type, op, comm, request);
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    if (look("MPI_Bcast", 0) == ERROR) /* not skipped: its root does not wait for the others, so MPI could not notice */
        return broken(comm);
    return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Barrier(MPI_Comm comm)
{
    int none = 0;
    COLLECTIVE("MPI_Barrier", none);
    return PMPI_Barrier(comm);
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    int none = 0;
    *request = MPI_REQUEST_NULL;
    COLLECTIVE("MPI_Ibarrier", none);
    return PMPI_Ibarrier(comm, request);
}

int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                  MPI_Datatype recv_type, MPI_Comm comm)
{
    int divisor = 2;
    COLLECTIVE("MPI_Allgather", divisor);
    return PMPI_Allgather(send, divisor == 2 ? send_count : send_count / 2, send_type, recv,
                          divisor == 2 ? recv_count : recv_count / 2, recv_type, comm);
}

int MPI_Gather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
               MPI_Datatype recv_type, int root, MPI_Comm comm)
{
    COLLECTIVE("MPI_Gather", send_count);
    return PMPI_Gather(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
}

/* ---- messages ---- */

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    MESSAGE("MPI_Send");
    return PMPI_Send(buffer, count, type, to, tag, comm);
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    MESSAGE("MPI_Recv");
    return PMPI_Recv(buffer, count, type, from, tag, comm, status);
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    MESSAGE("MPI_Isend");
    return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    MESSAGE("MPI_Irecv");
    return PMPI_Irecv(buffer, count, type, from, tag, comm, request);
}

/* Only calls that find something done are counted. */
int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    const int was_open = *request != MPI_REQUEST_NULL, code = PMPI_Test(request, flag, status);
    if (was_open && code == MPI_SUCCESS && *flag)
        MESSAGE("MPI_Test");
    return code;
}

int MPI_Testall(int count, MPI_Request *request, int *flag, MPI_Status *status)
{
    const int code = PMPI_Testall(count, request, flag, status);
    if (count > 0 && code == MPI_SUCCESS && *flag)
        MESSAGE("MPI_Testall");
    return code;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    MESSAGE("MPI_Wait");
    return PMPI_Wait(request, status);
}

int MPI_Waitany(int count, MPI_Request *request, int *index, MPI_Status *status)
{
    MESSAGE("MPI_Waitany");
    return PMPI_Waitany(count, request, index, status);
}
