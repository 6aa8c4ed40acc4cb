/*
 * server_async.c: workers that do not wait for each other: a server takes each worker's gradients as they come, updates
 * with them alone and answers. If the worker is more steps ahead of the slowest than `staleness` allows, its answer is
 * delayed.
 *
 * No weight changes while it is being sent, and a bucket's gradients are received only when the ones before are
 * applied. A worker's gradients are the mean over its own share and the rate is divided by the number of workers, so
 * the updates of a step add up to that of the whole batch. Losses and statistics are summed over the latest step of
 * every worker.
 *
 * Source: Ho et al. 2013 (the bound); Dean et al. 2012, Large Scale Distributed Deep Networks (without a bound).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "update/server/server_impl.h"

#include "program/program_impl.h"

enum { REQUEST_TAG = 0, LONG_WAIT = 1000 }; /* LONG_WAIT: polls without a message until the watchdog is told */

/* ---- setup ---- */

cvy_status cvy_server_free_bucket(cvy_server_plan *sp, cvy_server_bucket *b)
{
    const cvy_server *s = sp->server;
    cvy_pool *pool = s->program->pool;
    const int owns = b->owner == s->comm->rank;
    const size_t n = (size_t)s->nworkers;
    cvy_served *served = NULL;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *b->reply_info * (owns ? n : 1), &b->reply_info));
    if (!owns)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *served, &served));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *served->taken * n, &served->taken));
    CVY_TRY(cvy_pool_alloc(pool, n, &served->unanswered));
    CVY_TRY(cvy_pool_alloc(pool, n, &served->sending));
    CVY_TRY(cvy_pool_alloc(pool, n, &served->has_sums));
    for (int i = 0; i < b->nsum; i++)
        served->sum_bytes += b->sum[i].bytes;
    CVY_TRY(cvy_pool_alloc(pool, served->sum_bytes + 1, &served->total));
    CVY_TRY(cvy_pool_alloc(pool, served->sum_bytes * n + 1, &served->latest));
    served->from = -1;
    b->served = served;
    return CVY_OK;
}

cvy_status cvy_server_free_connect(cvy_server *s)
{
    cvy_pool *pool = s->program->pool;
    const cvy_range request = {&s->request, sizeof s->request};
    const size_t n = (size_t)s->nworkers;
    if (!cvy_server_is_worker(s)) {
        CVY_TRY(cvy_pool_alloc(pool, sizeof *s->begun * n, &s->begun));
        CVY_TRY(cvy_pool_alloc(pool, sizeof *s->rate * n, &s->rate));
        CVY_TRY(cvy_pool_alloc(pool, n, &s->left));
        return s->comm->message->create(s->comm, &request, 1, &s->request_in);
    }
    CVY_TRY(cvy_pool_alloc(pool, sizeof *s->request_out * (size_t)s->nservers, &s->request_out));
    for (int i = 0; i < s->nservers; i++)
        CVY_TRY(s->comm->message->create(s->comm, &request, 1, &s->request_out[i]));
    return CVY_OK;
}

void cvy_server_free_destroy(cvy_server *s)
{
    s->comm->message->destroy(&s->request_in);
    for (int i = 0; s->request_out && i < s->nservers; i++)
        s->comm->message->destroy(&s->request_out[i]);
}

/* ---- a worker ---- */

static cvy_status finish_requests(cvy_server *s)
{
    for (int i = 0; i < s->nservers; i++)
        for (int idle = 0, out = 0; !out; idle++) {
            CVY_TRY(s->comm->message->test(s->request_out[i], &out, NULL));
            CVY_TRY(s->comm->ops->rest(s->comm, idle));
        }
    return CVY_OK;
}

cvy_status cvy_worker_send_request(cvy_server *s, const cvy_server_request *request)
{
    CVY_TRY(finish_requests(s));
    s->request = *request;
    for (int i = 0; i < s->nservers; i++)
        CVY_TRY(s->comm->message->send(s->request_out[i], s->nworkers + i, REQUEST_TAG));
    return CVY_OK;
}

/* Takes the newest of what the first server told with the answers of a step. The counts of its buckets differ a little;
 * the largest is the latest. */
void cvy_worker_keep_reply_info(cvy_server_plan *sp)
{
    cvy_server *s = sp->server;
    for (int i = 0; i < sp->plan->buckets->n; i++) {
        const cvy_server_bucket *b = &sp->bucket[i];
        if (b->owner != s->nworkers)
            continue;
        s->reply_info.next_sync = CVY_MAX(s->reply_info.next_sync, b->reply_info->next_sync);
        if (b->reply_info->answers > s->reply_info.answers)
            s->reply_info = (cvy_server_reply_info){s->reply_info.next_sync, b->reply_info->answers,
                                                    b->reply_info->ahead, b->reply_info->most_ahead};
    }
}

void cvy_server_request_sync(cvy_server *s)
{
    s->requests_sync = 1;
}

int64_t cvy_server_next_sync(const cvy_server *s)
{
    return s->reply_info.next_sync;
}

cvy_status cvy_server_leave(cvy_server *s, int64_t steps_done)
{
    CVY_TRY(cvy_worker_send_request(s, &(cvy_server_request){.leaves = 1, .step = steps_done}));
    s->reply_info.next_sync = s->requests_sync = s->collected = 0;
    s->synchronised = 1;
    return finish_requests(s);
}

/* ---- a server: progress of the workers ---- */

/* The steps of the slowest worker that has not left, for one bucket. INT64_MAX if all have left. */
static int64_t slowest(const cvy_server *s, const cvy_served *b)
{
    int64_t least = INT64_MAX;
    for (int w = 0; w < s->nworkers; w++)
        if (!s->left[w])
            least = CVY_MIN(least, b->taken[w]);
    return least;
}

/* Sums are complete when every worker has sent one or has left. */
static int all_have_sums(const cvy_server *s, const cvy_served *b)
{
    int all = 1;
    for (int w = 0; w < s->nworkers; w++)
        all &= b->has_sums[w] || s->left[w];
    return all;
}

static cvy_status receive_request(cvy_server *s, int64_t begin, int *moved)
{
    int there = 0, from = -1;
    CVY_TRY(s->comm->message->test(s->request_in, &there, &from));
    if (!there)
        return CVY_OK;
    if (s->request.leaves) {
        s->left[from] = 1;
        s->left_step = CVY_MAX(s->left_step, s->request.step);
    } else {
        s->begun[from]++;
        s->rate[from] = s->request.rate;
    }
    /* The synchronisation is after a step for which no worker has an answer yet, so all are told in time. */
    if ((s->request.leaves || s->request.requests_sync) && s->comm->rank == s->nworkers && !s->reply_info.next_sync) {
        for (int w = 0; w < s->nworkers; w++)
            s->reply_info.next_sync = CVY_MAX(s->reply_info.next_sync, begin + s->begun[w] + 1);
    }
    *moved = 1;
    return s->comm->message->receive(s->request_in, CVY_ANY_RANK, REQUEST_TAG);
}

static int all_left(const cvy_server *s)
{
    int all = 1;
    for (int w = 0; w < s->nworkers; w++)
        all &= s->left[w];
    return all;
}

/* ---- a server: one bucket ---- */

static void add_sums(cvy_dtype dtype, char *total, const char *part, size_t bytes, double factor)
{
    if (dtype == CVY_DTYPE_F32)
        for (size_t i = 0; i < bytes / sizeof(float); i++)
            ((float *)total)[i] += (float)factor * ((const float *)part)[i];
    else
        for (size_t i = 0; i < bytes / sizeof(double); i++)
            ((double *)total)[i] += factor * ((const double *)part)[i];
}

/* Replaces the sums that this worker has sent before. */
static void take_sums(const cvy_server *s, cvy_server_bucket *b, int worker)
{
    cvy_served *served = b->served;
    char *to = served->latest + (size_t)worker * served->sum_bytes;
    for (int i = 0; i < b->nsum; i++) {
        memcpy(to, b->sum[i].data, b->sum[i].bytes);
        to += b->sum[i].bytes;
    }
    served->has_sums[worker] = 1;
    memset(served->total, 0, served->sum_bytes);
    for (int w = 0; w < s->nworkers; w++)
        add_sums(b->dtype, served->total, served->latest + (size_t)w * served->sum_bytes, served->sum_bytes,
                 1.0 / s->nworkers);
}

static cvy_status apply(cvy_server_plan *sp, cvy_server_bucket *b, int64_t begin)
{
    cvy_server *s = sp->server;
    cvy_served *served = b->served;
    const int worker = served->from;
    if (sp->task->feed.lr)
        *sp->task->feed.lr = s->rate[worker] / s->nworkers;
    if (sp->task->feed.number)
        *sp->task->feed.number = begin * s->nworkers + served->applied;
    CVY_TRY(cvy_server_run_list(sp->plan, &b->update));
    take_sums(s, b, worker);
    served->applied++;
    served->taken[worker]++;
    served->unanswered[worker] = 1;
    served->from = -1;
    atomic_fetch_add_explicit(&s->moved, 1, memory_order_relaxed);
    return CVY_OK;
}

static cvy_status take(cvy_server_plan *sp, int number, int64_t begin, int *moved)
{
    const cvy_server *s = sp->server;
    cvy_server_bucket *b = &sp->bucket[number];
    cvy_served *served = b->served;
    if (served->receiving) {
        int there = 0, from = -1;
        CVY_TRY(s->comm->message->test(b->first, &there, &from));
        if (!there)
            return CVY_OK;
        served->receiving = 0;
        served->from = from;
        *moved = 1;
    }
    /* Weights that are being sent must not change. And the message with the rate may arrive after the gradients. */
    if (served->from >= 0 && (served->nsending > 0 || s->begun[served->from] <= served->taken[served->from]))
        return CVY_OK;
    if (served->from >= 0)
        CVY_TRY(apply(sp, b, begin));
    served->receiving = 1;
    *moved = 1;
    return s->comm->message->receive(b->first, CVY_ANY_RANK, cvy_server_tag(number));
}

static cvy_status answer(cvy_server_plan *sp, int number, int *moved)
{
    cvy_server *s = sp->server;
    cvy_server_bucket *b = &sp->bucket[number];
    cvy_served *served = b->served;
    const int64_t last = slowest(s, served);
    for (int w = 0; w < s->nworkers; w++) {
        int out = 0;
        if (served->sending[w]) {
            CVY_TRY(s->comm->message->test(b->to[w], &out, NULL));
            served->sending[w] = (char)!out;
            served->nsending -= out;
            *moved |= out;
        }
        const int64_t ahead = served->taken[w] - CVY_MIN(last, served->taken[w]);
        if (!served->unanswered[w] || !all_have_sums(s, served) || (s->staleness >= 0 && ahead > s->staleness))
            continue;
        s->reply_info = (cvy_server_reply_info){s->reply_info.next_sync, s->reply_info.answers + 1,
                                                s->reply_info.ahead + ahead, CVY_MAX(s->reply_info.most_ahead, ahead)};
        b->reply_info[w] = s->reply_info;
        served->unanswered[w] = 0;
        served->sending[w] = 1;
        served->nsending++;
        *moved = 1;
        CVY_TRY(s->comm->message->send(b->to[w], w, cvy_server_tag(number)));
    }
    return CVY_OK;
}

/* ---- a server: from one synchronisation to the next ---- */

static cvy_status begin_serving(cvy_server *s, cvy_server_plan *sp)
{
    const size_t n = (size_t)s->nworkers;
    memset(s->begun, 0, sizeof *s->begun * n);
    memset(s->left, 0, n);
    s->reply_info.next_sync = s->left_step = 0;
    for (int i = 0; i < sp->mine.count; i++) {
        cvy_served *served = sp->bucket[sp->mine.at[i]].served;
        memset(served->taken, 0, sizeof *served->taken * n);
        served->applied = 0;
    }
    CVY_TRY(cvy_server_run_list(sp->plan, &sp->constants));
    return s->comm->message->receive(s->request_in, CVY_ANY_RANK, REQUEST_TAG);
}

/* All workers have left and got their answers. The receives that are still posted are cancelled. */
static cvy_status end_serving(cvy_server *s, cvy_server_plan *sp)
{
    CVY_TRY(s->comm->message->cancel(s->request_in));
    for (int i = 0; i < sp->mine.count; i++) {
        cvy_server_bucket *b = &sp->bucket[sp->mine.at[i]];
        CVY_TRY(s->comm->message->cancel(b->first));
        b->served->receiving = 0;
        for (int idle = 0, moved = 0; b->served->nsending > 0; idle++) {
            CVY_TRY(answer(sp, sp->mine.at[i], &moved));
            CVY_TRY(s->comm->ops->rest(s->comm, idle));
        }
    }
    return CVY_OK;
}

/* Tells the watchdog the slowest worker that has not left. */
static void note_waiting(cvy_server *s, const cvy_server_plan *sp, int bucket)
{
    const cvy_served *served = sp->bucket[bucket].served;
    const int64_t last = slowest(s, served);
    atomic_store_explicit(&s->waits_bucket, bucket, memory_order_relaxed);
    for (int w = 0; w < s->nworkers; w++)
        if (!s->left[w] && served->taken[w] == last)
            atomic_store_explicit(&s->waits_rank, w, memory_order_relaxed);
}

cvy_status cvy_server_serve(cvy_server *s, int64_t *steps_done)
{
    cvy_server_plan *sp = cvy_server_first(s);
    const int first = sp->mine.at[0];
    const int64_t begin = *steps_done;
    s->collected = 0;
    s->synchronised = 1;
    CVY_TRY(begin_serving(s, sp));
    for (int idle = 0; !all_left(s); idle++) {
        int moved = 0;
        CVY_TRY(receive_request(s, begin, &moved));
        for (int i = 0; i < sp->mine.count; i++) {
            CVY_TRY(take(sp, sp->mine.at[i], begin, &moved));
            CVY_TRY(answer(sp, sp->mine.at[i], &moved));
        }
        idle = moved ? 0 : idle;
        if (idle == LONG_WAIT)
            note_waiting(s, sp, first);
        CVY_TRY(s->comm->ops->rest(s->comm, idle));
    }
    atomic_store_explicit(&s->waits_bucket, -1, memory_order_relaxed);
    atomic_store_explicit(&sp->plan->at, -1, memory_order_relaxed);
    *steps_done = CVY_MAX(begin, s->left_step);
    return end_serving(s, sp);
}

/* ---- queries ---- */

int cvy_server_runs_free(const cvy_server *s)
{
    return s && cvy_server_is_free(s);
}

int cvy_server_serves(const cvy_server *s)
{
    return s && !cvy_server_is_worker(s);
}

void cvy_server_staleness(const cvy_server *s, double *mean_out, int64_t *most_out)
{
    *mean_out = s->reply_info.answers > 0 ? (double)s->reply_info.ahead / (double)s->reply_info.answers : 0;
    *most_out = s->reply_info.most_ahead;
}

long long cvy_server_progress(const cvy_server *s)
{
    return atomic_load_explicit(&s->moved, memory_order_relaxed);
}
