/*
 * comm_nccl.c: communicators of NCCL: whether the ranks can use it, joining and leaving.
 *
 * Communicators are blocking ones. With a call on one that is not, the host has to wait until the work is in the lane
 * before it may put a mark after it. So that a rank which does not answer does not hold the others for ever, a thread
 * of its own joins, and the rank waits for it only so long.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_hash.h"
#include "base/base_process.h"
#include "base/machine/base_clock.h"
#include "comm/nccl/comm_nccl_impl.h"

#define JOIN_WITHIN_S 300.0 /* unless CONVOY_NCCL_WAIT says another number of seconds */
#define ABORT_WITHIN_S 5.0

struct cvy_nccl_memory {
    void *data;
    size_t bytes;
    cvy_nccl_memory *next;
};

/* All of this process. The watchdog breaks them off, from another thread. */
static cvy_nccl *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int cvy_nccl_may(const cvy_space *space, const cvy_comm *comm, const cvy_allreduce_opts *opts)
{
    return space && space->backend && space->backend->gpu == &cvy_cuda_driver && comm->nranks > 1 && !comm->pretended &&
           comm->simulated_cores == 0 && !(opts && (opts->algorithm || opts->staged));
}

const char *cvy_nccl_why(const cvy_nccl *nccl)
{
    return nccl->why[0] ? nccl->why : NULL;
}

cvy_status cvy_nccl_fault(cvy_nccl *n, const char *call, cvy_nccl_result result)
{
    const cvy_nccl_comm handle = atomic_load(&n->handle);
    const char *text = n->api->ncclGetErrorString(result), *more = n->api->ncclGetLastError(handle);
    n->is_broken = 1;
    CVY_TRY(cvy_cuda_check_whole(n->space.state));                /* the watchdog's sentence says more */
    return cvy_error_set(handle ? CVY_E_COMM : CVY_E_UNSUPPORTED, /* all ranks agree on an error of the setup */
                         "NCCL %d.%d.%d: %s fails with %d (%s)%s%s: NCCL_DEBUG=WARN in the environment says more, and "
                         "CONVOY_NCCL=off exchanges through the host",
                         n->api->version / 10000, n->api->version % 10000 / 100, n->api->version % 100, call, result,
                         text ? text : "it says no more", more && *more ? ": " : "", more && *more ? more : "");
}

cvy_status cvy_nccl_check(cvy_nccl *n)
{
    cvy_nccl_result later = 0;
    CVY_TRY(cvy_cuda_check_whole(n->space.state));
    CVY_NCCL(n, ncclCommGetAsyncError, atomic_load(&n->handle), &later);
    return later == 0 || later == CVY_NCCL_IN_PROGRESS ? CVY_OK
                                                       : cvy_nccl_fault(n, "an exchange that was started", later);
}

/* ---- whether the ranks can use it ---- */

typedef struct seat {
    uint64_t device; /* equal for the same device of a node; 0: this rank cannot use NCCL */
    int32_t node, version;
} seat;

/* Without an id of the device its number is used. A launcher may give each rank a device of its own, which then all
 * have the number 0: two of them look like one, and their sums are staged. */
static uint64_t name_of_device(const cvy_space *space)
{
    cvy_device device;
    cvy_hasher h;
    cvy_space_about(space, &device);
    cvy_hash_begin(&h);
    cvy_hash_add(&h, device.id, strlen(device.id));
    if (!*device.id)
        cvy_hash_add(&h, &device.number, sizeof device.number);
    const uint64_t name = cvy_hash_end(&h);
    return name ? name : 1;
}

static void compare_seats(const seat *seats, int nranks, char *why, size_t room)
{
    const int v = seats[0].version;
    for (int r = 0; r < nranks && !*why; r++) {
        const int w = seats[r].version;
        if (w != v)
            snprintf(why, room, "rank %d has NCCL %d.%d.%d, and rank 0 has %d.%d.%d", r, w / 10000, w % 10000 / 100,
                     w % 100, v / 10000, v % 10000 / 100, v % 100);
    }
    for (int r = 0; r < nranks && !*why; r++)
        for (int k = 0; k < r && !*why; k++)
            if (seats[r].device == seats[k].device && seats[r].node == seats[k].node)
                snprintf(why, room,
                         "ranks %d and %d compute on one device, which NCCL refuses: start one rank for each device", k,
                         r);
}

/* Gives all ranks the words of the first one that lacks NCCL. */
static cvy_status say_missing(cvy_comm *comm, const seat *seats, const char *words, char *why, size_t room)
{
    char text[600];
    int first = 0, n = 0;
    for (int r = comm->nranks - 1; r >= 0; r--)
        if (!seats[r].device) {
            first = r;
            n++;
        }
    if (n == 0)
        return CVY_OK;
    snprintf(text, sizeof text, "%s", words);
    CVY_TRY(comm->ops->broadcast(comm, text, sizeof text, first));
    if (n == comm->nranks)
        snprintf(why, room, "%s", text);
    else
        snprintf(why, room, "rank %d of %d: %s", first, comm->nranks, text);
    return CVY_OK;
}

cvy_status cvy_nccl_look(cvy_comm *comm, const cvy_space *space, char *why, size_t room, int *version_out)
{
    const char *missing = NULL;
    const cvy_nccl_api *api = cvy_nccl_library(&missing);
    seat mine = {.node = comm->node}, *seats = NULL;
    *version_out = api ? api->version : 0;
    if (api)
        mine = (seat){name_of_device(space), comm->node, api->version};
    why[0] = 0;
    CVY_TRY(cvy_comm_alloc(comm, sizeof *seats * (size_t)comm->nranks, &seats));
    cvy_status status = comm->ops->allgather(comm, &mine, sizeof mine, seats);
    if (status == CVY_OK)
        status = say_missing(comm, seats, missing, why, room);
    if (status == CVY_OK)
        compare_seats(seats, comm->nranks, why, room);
    cvy_mem_free(&seats);
    return status;
}

/* ---- joining ---- */

/* What the thread that joins works with. If the rank gives up, it stays with the thread. */
struct joining {
    const cvy_nccl_api *api;
    const cvy_cuda_space *space;
    cvy_nccl_id id;
    int nranks, rank;
    cvy_nccl_comm handle;
    cvy_nccl_result result;
    atomic_int done;
};

static void *join(void *arg)
{
    struct joining *j = arg;
    j->space->cu->cuCtxSetCurrent(j->space->context);
    j->result = j->api->ncclCommInitRank(&j->handle, j->nranks, j->id, j->rank);
    atomic_store(&j->done, 1);
    return NULL;
}

static double join_within_s(void)
{
    const char *given = getenv("CONVOY_NCCL_WAIT");
    const double seconds = given ? strtod(given, NULL) : 0;
    return seconds > 0 ? seconds : JOIN_WITHIN_S;
}

static cvy_status late(const cvy_nccl *n, double seconds)
{
    char host[64] = "";
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = 0;
    return cvy_error_set(CVY_E_UNSUPPORTED, /* all ranks agree on it */
                         "NCCL %d.%d.%d on node %s: ncclCommInitRank has not connected the %d ranks within %.0f s: a "
                         "rank, or the network between them, does not answer; NCCL_DEBUG=INFO in the environment says "
                         "more, CONVOY_NCCL_WAIT=%.0f waits longer, and CONVOY_NCCL=off exchanges through the host",
                         n->api->version / 10000, n->api->version % 10000 / 100, n->api->version % 100, host,
                         n->comm->nranks, seconds, 2 * seconds);
}

static cvy_status join_by_thread(cvy_nccl *n, struct joining **joining)
{
    struct joining *j = *joining;
    const double within_s = join_within_s(), until = cvy_clock_s() + within_s;
    pthread_t thread;
    const int code = cvy_thread_start(&thread, join, j);
    CVY_CHECK(code == 0, CVY_E_MEMORY, "a thread for NCCL cannot be started: error %d", code);
    while (!atomic_load(&j->done) && cvy_clock_s() < until)
        cvy_clock_sleep(1e-3);
    if (!atomic_load(&j->done)) {
        pthread_detach(thread);
        *joining = NULL;
        return late(n, within_s);
    }
    pthread_join(thread, NULL);
    if (j->result != 0)
        return cvy_nccl_fault(n, "ncclCommInitRank", j->result);
    atomic_store(&n->handle, j->handle);
    return CVY_OK;
}

static cvy_status make_id(cvy_nccl *n, cvy_nccl_id *id)
{
    const cvy_cuda_space *s = n->space.state;
    CVY_CU(s, cuCtxSetCurrent, s->context);
    if (n->comm->rank == 0)
        CVY_NCCL(n, ncclGetUniqueId, id);
    return CVY_OK;
}

static cvy_status join_ranks(cvy_nccl *n)
{
    cvy_nccl_id id = {{0}};
    struct joining *j = NULL;
    CVY_TRY(cvy_comm_agree(n->comm, make_id(n, &id)));
    CVY_TRY(n->comm->ops->broadcast(n->comm, &id, sizeof id, 0));
    CVY_TRY(cvy_comm_alloc(n->comm, sizeof *j, &j));
    *j = (struct joining){n->api, n->space.state, id, n->comm->nranks, n->comm->rank, NULL, 0, 0};
    const cvy_status status = cvy_comm_agree(n->comm, join_by_thread(n, &j));
    cvy_mem_free(&j);
    return status;
}

void cvy_nccl_leave(cvy_nccl *n)
{
    cvy_nccl_comm handle = atomic_exchange(&n->handle, NULL);
    if (handle)
        (void)(n->is_broken ? n->api->ncclCommAbort(handle) : n->api->ncclCommDestroy(handle));
}

/* Memory that could not be made is not in the list: a later exchange, of a smaller plan, asks again. */
cvy_status cvy_nccl_take_narrow(cvy_nccl *n, size_t bytes, void **out)
{
    cvy_nccl_memory *m = n->narrow;
    if (!m || m->bytes < bytes) {
        CVY_TRY(cvy_mem_alloc(sizeof *m, &m));
        *m = (cvy_nccl_memory){NULL, bytes, n->narrow};
        const cvy_status status = cvy_space_alloc(&n->space, bytes, 0, &m->data);
        if (status != CVY_OK) {
            cvy_mem_free(&m);
            return status;
        }
        n->narrow = m;
    }
    *out = m->data;
    return CVY_OK;
}

static void free_narrow(cvy_nccl *n)
{
    while (n->narrow) {
        cvy_nccl_memory *m = n->narrow;
        n->narrow = m->next;
        cvy_space_free(&n->space, &m->data, m->bytes);
        cvy_mem_free(&m);
    }
}

/* Returns the one of this communicator and space, with one more user; NULL: there is none yet. */
static cvy_nccl *find(const cvy_comm *comm, const cvy_space *space)
{
    cvy_nccl *n;
    pthread_mutex_lock(&lock);
    for (n = all; n && (n->comm != comm || n->space.state != space->state); n = n->next)
        ;
    if (n)
        n->users++;
    pthread_mutex_unlock(&lock);
    return n;
}

static void put_in_list(cvy_nccl *n)
{
    pthread_mutex_lock(&lock);
    n->next = all;
    all = n;
    pthread_mutex_unlock(&lock);
}

static int take_from_list(cvy_nccl *n)
{
    pthread_mutex_lock(&lock);
    const int is_last = --n->users == 0;
    if (is_last) {
        cvy_nccl **link = &all;
        while (*link != n)
            link = &(*link)->next;
        *link = n->next;
    }
    pthread_mutex_unlock(&lock);
    return is_last;
}

cvy_status cvy_nccl_open(cvy_comm *comm, const cvy_space *space, cvy_nccl **out)
{
    int version = 0;
    cvy_nccl *n = find(comm, space);
    *out = n;
    if (n)
        return CVY_OK;
    CVY_TRY(cvy_comm_alloc(comm, sizeof *n, &n));
    *n = (cvy_nccl){.api = cvy_nccl_library(NULL), .comm = comm, .space = *space, .users = 1};
    cvy_status status = cvy_nccl_look(comm, space, n->why, sizeof n->why, &version);
    if (status == CVY_OK && !n->why[0])
        status = join_ranks(n);
    if (status != CVY_OK) {
        n->is_broken = 1;
        cvy_nccl_leave(n);
        cvy_mem_free(&n);
        return status;
    }
    put_in_list(n);
    *out = n;
    return CVY_OK;
}

void cvy_nccl_close(cvy_nccl **nccl)
{
    cvy_nccl *n = *nccl;
    *nccl = NULL;
    if (!n || !take_from_list(n))
        return;
    cvy_nccl_leave(n);
    free_narrow(n);
    cvy_mem_free(&n);
}

/* ---- the watchdog ---- */

int cvy_nccl_is_used(void)
{
    int used = 0;
    pthread_mutex_lock(&lock);
    for (cvy_nccl *n = all; n; n = n->next)
        used |= atomic_load(&n->handle) != NULL;
    pthread_mutex_unlock(&lock);
    return used;
}

static void mark_spaces(int broken)
{
    pthread_mutex_lock(&lock);
    for (cvy_nccl *n = all; n; n = n->next)
        if (!n->why[0])
            atomic_store(&((cvy_cuda_space *)n->space.state)->broken, broken);
    pthread_mutex_unlock(&lock);
}

/* Takes one that is not broken off yet. */
static cvy_nccl_comm take_handle(const cvy_nccl_api **api)
{
    cvy_nccl_comm handle = NULL;
    pthread_mutex_lock(&lock);
    for (cvy_nccl *n = all; n && !handle; n = n->next) {
        handle = atomic_exchange(&n->handle, NULL);
        *api = n->api;
    }
    pthread_mutex_unlock(&lock);
    return handle;
}

static atomic_int abort_done;

static void *abort_all(void *arg)
{
    const cvy_nccl_api *api = NULL;
    for (cvy_nccl_comm handle; (handle = take_handle(&api)) != NULL;)
        (void)api->ncclCommAbort(handle);
    atomic_store(&abort_done, 1);
    return arg;
}

void cvy_nccl_abort(void)
{
    const double until = cvy_clock_s() + ABORT_WITHIN_S;
    pthread_t thread;
    mark_spaces(CVY_CUDA_BREAKING);
    atomic_store(&abort_done, 0);
    if (!cvy_nccl_is_used() || cvy_thread_start(&thread, abort_all, NULL) != 0)
        return;
    pthread_detach(thread);
    while (!atomic_load(&abort_done) && cvy_clock_s() < until)
        cvy_clock_sleep(1e-3);
}

void cvy_nccl_let_fail(void)
{
    mark_spaces(CVY_CUDA_BROKEN);
}
