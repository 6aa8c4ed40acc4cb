/*
 * comm_mpi_thread.c: the progress thread (comm.progress: thread), which makes progress on reductions while a long
 * kernel runs.
 *
 * The thread starts the requests that the caller hands to it, in their order, and tests all of them until they are
 * done. The caller only reads a flag. Only the thread that has the lock calls MPI, so that one thread at a time does
 * (MPI_THREAD_SERIALIZED). The progress thread lets other threads go first. It sleeps while nothing is under way.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comm/mpi/comm_mpi_thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "base/base_entry.h"
#include "base/base_mem.h"
#include "base/base_process.h"
#include "comm/mpi/comm_mpi_impl.h"
#include "comm/mpi/comm_mpi_request.h"

struct cvy_progress_thread {
    pthread_t thread;
    pthread_mutex_t mpi_lock; /* the thread that holds it may call MPI */
    atomic_int nwaiting;      /* number of other threads that wait for mpi_lock */
    pthread_mutex_t lock;     /* protects all fields below */
    pthread_cond_t wake;
    cvy_request *first, *last; /* the requests that were handed over, in the order of their starts */
    int stop;
    cvy_status status; /* status of the first error; all later reductions return it */
    char text[512];
};

/* ---- who may call MPI ---- */

void cvy_mpi_lock(const struct cvy_mpi *mpi)
{
    struct cvy_progress_thread *p = mpi->root->thread;
    if (!p)
        return;
    atomic_fetch_add(&p->nwaiting, 1);
    pthread_mutex_lock(&p->mpi_lock);
    atomic_fetch_sub(&p->nwaiting, 1);
}

void cvy_mpi_unlock(const struct cvy_mpi *mpi)
{
    if (mpi->root->thread)
        pthread_mutex_unlock(&mpi->root->thread->mpi_lock);
}

/* ---- the thread ---- */

static void fail(struct cvy_progress_thread *p, cvy_status status)
{
    pthread_mutex_lock(&p->lock);
    if (p->status == CVY_OK) {
        p->status = status;
        snprintf(p->text, sizeof p->text, "%s", cvy_error_text());
    }
    pthread_mutex_unlock(&p->lock);
}

/* Tests each request once, while it holds the lock of MPI. A request that is done leaves the list. */
static cvy_status progress_all(struct cvy_progress_thread *p, cvy_request *first)
{
    for (cvy_request *r = first, *next; r; r = next) {
        int done = 0;
        pthread_mutex_lock(&p->lock);
        next = r->next; /* written by the thread that hands over a request */
        pthread_mutex_unlock(&p->lock);
        if (atomic_load_explicit(&r->state, memory_order_relaxed) == CVY_REQUEST_HANDED) {
            CVY_TRY(cvy_mpi_request_start_now(r));
            atomic_store_explicit(&r->state, CVY_REQUEST_UNDER_WAY, memory_order_relaxed);
        }
        CVY_TRY(cvy_mpi_request_test_now(r, &done));
        if (!done)
            continue;
        pthread_mutex_lock(&p->lock);
        cvy_request **at = &p->first, *before = NULL;
        for (; *at != r; at = &(*at)->next)
            before = *at;
        *at = r->next;
        p->last = p->last == r ? before : p->last;
        next = r->next;
        pthread_mutex_unlock(&p->lock);
        atomic_store_explicit(&r->state, CVY_REQUEST_DONE,
                              memory_order_release); /* from here on the caller may start it again */
    }
    return CVY_OK;
}

static cvy_request *wait_for_work(struct cvy_progress_thread *p)
{
    pthread_mutex_lock(&p->lock);
    while (!p->stop && (!p->first || p->status != CVY_OK))
        pthread_cond_wait(&p->wake, &p->lock);
    cvy_request *first = p->stop ? NULL : p->first;
    pthread_mutex_unlock(&p->lock);
    return first;
}

static void *run(void *arg)
{
    CVY_ENTRY();
    struct cvy_progress_thread *p = arg;
    for (cvy_request *first; (first = wait_for_work(p)) != NULL;) {
        pthread_mutex_lock(&p->mpi_lock);
        const cvy_status status = progress_all(p, first);
        pthread_mutex_unlock(&p->mpi_lock);
        if (status != CVY_OK)
            fail(p, status);
        do
            sched_yield(); /* ranks may share this core; and a waiting thread does not get a lock just because it is
                              free */
        while (atomic_load(&p->nwaiting) > 0);
    }
    return NULL;
}

/* ---- making and freeing ---- */

static cvy_status thread_create(cvy_mpi *root)
{
    int level = MPI_THREAD_SINGLE;
    struct cvy_progress_thread *p = NULL;
    MPI_Query_thread(&level);
    CVY_CHECK(level >= MPI_THREAD_SERIALIZED, CVY_E_UNSUPPORTED,
              "a progress thread needs MPI to be initialised with MPI_THREAD_SERIALIZED or more (MPI_Init_thread): set "
              "opts.reduce_progress: poll");
    CVY_TRY(cvy_mem_alloc(sizeof *p, &p));
    pthread_mutex_init(&p->mpi_lock, NULL);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    if (cvy_thread_start(&p->thread, run, p) != 0) {
        cvy_mem_free(&p);
        CVY_FAIL(CVY_E_MEMORY, "the system cannot start a progress thread: set opts.reduce_progress: poll");
    }
    root->thread = p;
    return CVY_OK;
}

cvy_status cvy_progress_thread_need(cvy_mpi *mpi, struct cvy_progress_thread **out)
{
    if (!mpi->root->thread)
        CVY_TRY(thread_create(mpi->root));
    *out = mpi->root->thread;
    return CVY_OK;
}

void cvy_progress_thread_free(cvy_mpi *mpi)
{
    struct cvy_progress_thread *p = mpi->thread;
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = 1;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->mpi_lock);
    cvy_mem_free(&mpi->thread);
}

/* ---- requests ---- */

void cvy_progress_thread_start(struct cvy_progress_thread *p, cvy_request *r)
{
    r->next = NULL;
    atomic_store_explicit(&r->state, CVY_REQUEST_HANDED, memory_order_relaxed);
    pthread_mutex_lock(&p->lock);
    if (p->last)
        p->last->next = r;
    else
        p->first = r;
    p->last = r;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

cvy_status cvy_progress_thread_test(struct cvy_progress_thread *p, const cvy_request *r, int *done_out)
{
    *done_out = atomic_load_explicit(&r->state, memory_order_acquire) == CVY_REQUEST_DONE;
    if (*done_out)
        return CVY_OK;
    pthread_mutex_lock(&p->lock);
    const cvy_status status = p->status == CVY_OK ? CVY_OK : cvy_error_set(p->status, "%s", p->text);
    pthread_mutex_unlock(&p->lock);
    return status;
}
