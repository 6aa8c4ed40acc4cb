/*
 * server_sync.c: a server's side of a step in which workers wait for each other: each bucket is summed over the
 * workers, its weights are updated, and all workers get them, while gradients of the next buckets arrive.
 *
 * Gradients are received and added in a fixed order: bucket by bucket as backward makes them, and in each bucket worker
 * by worker. So a run gives the same bits again. The gradients of the first worker are received in place. Those of the
 * others are received into a few slots, and added from there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "update/server/server_impl.h"

#include "program/program_impl.h"

enum { ADD_PIECE = 1 << 14 };

cvy_status cvy_server_run_list(cvy_plan *plan, const cvy_list *list)
{
    for (int i = 0; i < list->count; i++)
        CVY_TRY(cvy_plan_run(plan, list->at[i]));
    return CVY_OK;
}

/* ---- adding ---- */

static void add_f32(float *to, const float *from, int64_t n, int threads)
{
    if (threads <= 1) {
        for (int64_t i = 0; i < n; i++)
            to[i] += from[i];
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(static, ADD_PIECE)
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

static void add_up(const cvy_server_bucket *b, const void *from, int threads)
{
    if (b->dtype == CVY_DTYPE_F32) {
        add_f32(b->range.data, from, (int64_t)(b->range.bytes / sizeof(float)), threads);
        return;
    }
    double *to = b->range.data;
    const double *x = from;
    for (int64_t i = 0; i < (int64_t)(b->range.bytes / sizeof(double)); i++)
        to[i] += x[i];
}

/* ---- a step ---- */

/* The order in which gradients are taken: item i belongs to bucket sp->mine.at[i / nworkers] and worker i %
 * nworkers. */
struct serving {
    cvy_server_plan *sp;
    int nworkers, items, posted, taken;
    int slots_used, slots_freed; /* totals so far; they differ by at most CVY_SERVER_SLOTS */
};

static int bucket_of(const struct serving *s, int item)
{
    return s->sp->mine.at[item / s->nworkers];
}

/* Posts receives before their turn to be added, as long as slots are free. */
static cvy_status post(struct serving *s, int *moved)
{
    cvy_server *server = s->sp->server;
    for (; s->posted < s->items; s->posted++, *moved = 1) {
        const int b = bucket_of(s, s->posted), worker = s->posted % s->nworkers;
        cvy_message *into = s->sp->bucket[b].first;
        if (worker > 0 && s->slots_used - s->slots_freed == CVY_SERVER_SLOTS)
            return CVY_OK;
        if (worker > 0)
            into = server->into[s->slots_used++ % CVY_SERVER_SLOTS];
        CVY_TRY(server->comm->message->receive(into, worker, cvy_server_tag(b)));
    }
    return CVY_OK;
}

static cvy_status answer(const struct serving *s, int b)
{
    cvy_server *server = s->sp->server;
    const cvy_server_bucket *bucket = &s->sp->bucket[b];
    const double begin = cvy_clock_s();
    CVY_TRY(cvy_server_run_list(s->sp->plan, &bucket->update));
    server->busy_s += cvy_clock_s() - begin;
    for (int r = 0; r < server->comm->nranks; r++)
        if (bucket->to[r])
            CVY_TRY(server->comm->message->send(bucket->to[r], r, cvy_server_tag(b)));
    return CVY_OK;
}

static cvy_status take(struct serving *s, int *moved)
{
    cvy_server *server = s->sp->server;
    const int b = bucket_of(s, s->taken), worker = s->taken % s->nworkers, slot = s->slots_freed % CVY_SERVER_SLOTS;
    const cvy_server_bucket *bucket = &s->sp->bucket[b];
    int there = 0;
    atomic_store_explicit(&server->waits_bucket, b, memory_order_relaxed);
    atomic_store_explicit(&server->waits_rank, worker, memory_order_relaxed);
    if (s->taken == s->posted)
        return CVY_OK;
    CVY_TRY(server->comm->message->test(worker > 0 ? server->into[slot] : bucket->first, &there, NULL));
    if (!there)
        return CVY_OK;
    if (worker > 0) {
        const double begin = cvy_clock_s();
        if (!cvy_comm_simulates_copy(server->comm, bucket->range.bytes))
            add_up(bucket, server->slot[slot], server->program->context->threads);
        server->busy_s += cvy_clock_s() - begin;
        s->slots_freed++;
    }
    atomic_fetch_add_explicit(&server->moved, 1, memory_order_relaxed);
    s->taken++;
    *moved = 1;
    return worker == s->nworkers - 1 ? answer(s, b) : CVY_OK;
}

/* Tests the answers that are still being sent, and the sums that other servers own. */
static cvy_status finish(const cvy_server_plan *sp, int *done_out)
{
    const cvy_server *server = sp->server;
    *done_out = 1;
    for (int b = 0; b < sp->plan->buckets->n && *done_out; b++) {
        const cvy_server_bucket *bucket = &sp->bucket[b];
        if (bucket->answer)
            CVY_TRY(server->comm->message->test(bucket->answer, done_out, NULL));
        for (int r = 0; bucket->to && r < server->comm->nranks && *done_out; r++)
            if (bucket->to[r])
                CVY_TRY(server->comm->message->test(bucket->to[r], done_out, NULL));
    }
    return CVY_OK;
}

static cvy_status serve(cvy_server_plan *sp)
{
    cvy_server *server = sp->server;
    struct serving s = {.sp = sp, .nworkers = server->nworkers, .items = sp->mine.count * server->nworkers};
    for (int b = 0; b < sp->plan->buckets->n; b++)
        if (sp->bucket[b].answer)
            CVY_TRY(server->comm->message->receive(sp->bucket[b].answer, sp->bucket[b].owner, cvy_server_tag(b)));
    for (int idle = 0; s.taken < s.items; idle++) {
        int moved = 0;
        CVY_TRY(post(&s, &moved));
        CVY_TRY(take(&s, &moved));
        idle = moved ? 0 : idle;
        if (!moved) /* a rank of a simulation sleeps until a message arrives */
            CVY_TRY(server->comm->ops->rest(server->comm, idle));
    }
    for (int idle = 0, done = 0; !done; idle++) {
        CVY_TRY(finish(sp, &done));
        if (!done)
            CVY_TRY(server->comm->ops->rest(server->comm, idle));
    }
    return CVY_OK;
}

cvy_status cvy_server_serve_step(cvy_server_plan *sp)
{
    const double begin = cvy_clock_s();
    sp->server->busy_s = 0;
    for (int i = -1; i < sp->plan->ninstr; i++)
        sp->plan->times.end_s[i] =
            begin; /* instructions do not run in the plan's order, so a trace shows none of them */
    CVY_TRY(cvy_server_run_list(sp->plan, &sp->forward));
    CVY_TRY(cvy_server_run_list(sp->plan, &sp->constants));
    const cvy_status status = serve(sp);
    atomic_store_explicit(&sp->server->waits_bucket, -1, memory_order_relaxed);
    CVY_TRY(status);
    CVY_TRY(cvy_server_run_list(sp->plan, &sp->statistics_updates));
    atomic_store_explicit(&sp->plan->at, -1, memory_order_relaxed);
    const double total = cvy_clock_s() - begin;
    sp->task->time = (cvy_step_time){.total = total, .exposed_comm = total - sp->server->busy_s};
    return CVY_OK;
}
