/*
 * emulated_lanes.c: the lanes of the emulated device: queues whose work runs late, and in an order that only marks
 * decide.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/emulated/emulated_parts.h"

enum kind { LAUNCH, COPY, ZERO, MARK, AWAIT, CALL };

struct cvy_mark {
    int64_t put, reached; /* how often it was put into a lane, and reached there */
    int pending;          /* work in queues that names it */
    int is_destroyed;
    struct timespec time; /* when it was last reached */
};

struct emulated_work {
    enum kind kind;
    emulated_launch *launch;
    void *to;
    const void *from;
    size_t bytes;
    cvy_mark *mark;
    int64_t generation;      /* of the mark */
    cvy_emulated_call *call; /* CALL: with `to`; is_over: it has returned 1 */
    int is_over;
    int64_t number; /* in the order in which work was put */
    struct emulated_work *next;
};

struct cvy_recording {
    struct emulated_work *first, *last;
    int parts;
};

/* How lanes go on while the host waits for one of them. The host puts work in an order that is right, so the opposite
 * order, as far as marks allow it, shows where one is missing. */
enum policy {
    LATEST, /* of the lanes that can go on, the one whose work was put last */
    MIXED,  /* one by chance */
    LAZY,   /* others only where that lane awaits them */
};

/* ---- work ---- */

static void work_free(struct emulated_work *w)
{
    if (w->mark && --w->mark->pending == 0 && w->mark->is_destroyed)
        cvy_mem_free(&w->mark);
    cvy_mem_free(&w->launch);
    cvy_mem_free(&w);
}

static void *address_of(const void *data, size_t bytes)
{
    if (emulated_host_has(data, bytes))
        return (void *)(uintptr_t)data;
    if (!emulated_memory_has(-1, data, bytes))
        emulated_fail("memory of a copy was freed before the copy ran");
    return emulated_memory_at(data);
}

static void work_run(struct emulated_work *w)
{
    switch (w->kind) {
    case LAUNCH:
        for (int i = 0; i < w->launch->nargs; i++)
            if (w->launch->pointer[i] && !emulated_memory_has(-1, w->launch->pointer[i], 1))
                emulated_fail("argument %d of kernel %s was freed before the kernel ran", i, w->launch->kernel->name);
        emulated_run(w->launch->module, w->launch->kernel, w->launch->grid, w->launch->threads, w->launch->at);
        break;
    case COPY:
        memmove(address_of(w->to, w->bytes), address_of(w->from, w->bytes), w->bytes);
        cvy_emulated_done_now.copies++;
        cvy_emulated_done_now.copied_bytes += (int64_t)w->bytes;
        break;
    case ZERO:
        memset(address_of(w->to, w->bytes), 0, w->bytes);
        cvy_emulated_done_now.zeros++;
        break;
    case MARK:
        w->mark->reached = w->generation;
        clock_gettime(CLOCK_MONOTONIC, &w->mark->time);
        break;
    case AWAIT:
    case CALL: break;
    }
}

static int can_step(const emulated_queues *q, int lane)
{
    struct emulated_work *w = q->first[lane];
    if (w && w->kind == CALL && !w->is_over)
        w->is_over = w->call(w->to);
    return w && (w->kind != AWAIT || w->mark->reached >= w->generation) && (w->kind != CALL || w->is_over);
}

/* Runs the first work of a lane; returns 0 if there is none, or if it awaits a mark. */
static int step(emulated_queues *q, int lane)
{
    struct emulated_work *w = q->first[lane];
    if (!can_step(q, lane))
        return 0;
    work_run(w);
    q->first[lane] = w->next;
    if (!w->next)
        q->last[lane] = NULL;
    work_free(w);
    return 1;
}

static int latest_lane(const emulated_queues *q)
{
    int latest = -1;
    for (int lane = 0; lane < CVY_LANES; lane++)
        if (can_step(q, lane) && (latest < 0 || q->first[lane]->number > q->first[latest]->number))
            latest = lane;
    return latest;
}

static int awaits_call(const emulated_queues *q)
{
    int awaits = 0;
    for (int lane = 0; lane < CVY_LANES; lane++)
        awaits |= q->first[lane] && q->first[lane]->kind == CALL;
    return awaits;
}

/* One step on the way to the end of `lane`. Nothing can go on while a call waits for another process. */
static cvy_status step_towards(emulated_queues *q, int lane)
{
    const int latest = latest_lane(q);
    if (latest < 0 && awaits_call(q)) {
        usleep(20);
        return CVY_OK;
    }
    if (latest < 0)
        emulated_fail("lane %d awaits a mark that is never reached", lane);
    if (q->policy == MIXED && step(q, (int)emulated_chance(CVY_LANES)))
        return CVY_OK;
    if (q->policy == LAZY && step(q, lane))
        return CVY_OK;
    step(q, latest);
    return CVY_OK;
}

static void choose_policy(emulated_queues *q)
{
    const unsigned chance = emulated_chance(32);
    q->policy = chance == 0 ? LAZY : chance == 1 ? MIXED : LATEST;
}

/* What a driver would refuse, or do in another way than is meant, ends the process. */
static void keep(cvy_recording *r, struct emulated_work *w)
{
    if (w->kind == MARK || w->kind == AWAIT)
        emulated_fail("a mark is put into a recording");
    if (w->kind == COPY && (emulated_host_has(w->to, w->bytes) || emulated_host_has(w->from, w->bytes)))
        emulated_fail("a recording has a copy of %zu bytes of the host's memory", w->bytes);
    *(r->last ? &r->last->next : &r->first) = w;
    r->last = w;
    r->parts++;
}

static cvy_status put(emulated_queues *q, cvy_lane lane, const struct emulated_work *work)
{
    struct emulated_work *w = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *w, &w));
    *w = *work;
    w->next = NULL;
    if (q->recording && lane == CVY_LANE_COMPUTE) {
        keep(q->recording, w);
        return CVY_OK;
    }
    w->number = ++q->put;
    if (w->mark)
        w->mark->pending++;
    *(q->last[lane] ? &q->last[lane]->next : &q->first[lane]) = w;
    q->last[lane] = w;
    /* A device may also be faster than the host: memory may not be filled after a copy of it was put. */
    if (emulated_chance(64) == 0)
        for (int i = (int)emulated_chance(8); i > 0; i--)
            step(q, (int)emulated_chance(CVY_LANES));
    return CVY_OK;
}

cvy_status emulated_put_launch(emulated_queues *q, cvy_lane lane, emulated_launch *launch)
{
    return put(q, lane, &(struct emulated_work){.kind = LAUNCH, .launch = launch});
}

cvy_status emulated_put_copy(emulated_queues *q, cvy_lane lane, void *to, const void *from, size_t bytes)
{
    return put(q, lane, &(struct emulated_work){.kind = COPY, .to = to, .from = from, .bytes = bytes});
}

cvy_status emulated_put_zero(emulated_queues *q, cvy_lane lane, void *data, size_t bytes)
{
    return put(q, lane, &(struct emulated_work){.kind = ZERO, .to = data, .bytes = bytes});
}

cvy_status emulated_put_call(emulated_queues *q, cvy_lane lane, cvy_emulated_call *call, void *arg)
{
    return put(q, lane, &(struct emulated_work){.kind = CALL, .call = call, .to = arg});
}

void emulated_go_on(emulated_queues *q)
{
    for (int steps = 0; steps < 64 && (q->first[0] || q->first[1] || q->first[2]); steps++) {
        const int lane = latest_lane(q);
        if (lane < 0 || !step(q, lane))
            return;
    }
}

/* ---- recordings ---- */

cvy_status emulated_record_begin(emulated_queues *q)
{
    if (q->recording)
        emulated_fail("a recording begins within another one");
    return cvy_mem_alloc(sizeof *q->recording, &q->recording);
}

void emulated_record_end(emulated_queues *q, cvy_recording **out, int *parts_out)
{
    if (!q->recording)
        emulated_fail("a recording ends that has not begun");
    *parts_out = q->recording->parts;
    *out = q->recording;
    q->recording = NULL;
}

/* The arguments are in the launch itself. */
static cvy_status copy_launch(const emulated_launch *from, emulated_launch **out)
{
    CVY_TRY(cvy_mem_alloc(sizeof **out, out));
    **out = *from;
    for (int i = 0; i < from->nargs; i++)
        (*out)->at[i] = (*out)->values + ((const char *)from->at[i] - from->values);
    return CVY_OK;
}

cvy_status emulated_replay(emulated_queues *q, const cvy_recording *recording)
{
    if (q->recording)
        emulated_fail("a recording is played into another one");
    for (const struct emulated_work *w = recording->first; w; w = w->next) {
        struct emulated_work copy = *w;
        if (w->launch)
            CVY_TRY(copy_launch(w->launch, &copy.launch));
        CVY_TRY(put(q, CVY_LANE_COMPUTE, &copy));
    }
    return CVY_OK;
}

void emulated_recording_free(cvy_recording *recording)
{
    while (recording && recording->first) {
        struct emulated_work *w = recording->first;
        recording->first = w->next;
        work_free(w);
    }
    cvy_mem_free(&recording);
}

/* ---- marks ---- */

cvy_status emulated_mark_create(cvy_mark **out)
{
    return cvy_mem_alloc(sizeof **out, out);
}

void emulated_mark_destroy(cvy_mark *mark)
{
    mark->is_destroyed = 1;
    if (mark->pending == 0)
        cvy_mem_free(&mark);
}

cvy_status emulated_put_mark(emulated_queues *q, cvy_lane lane, cvy_mark *mark)
{
    return put(q, lane, &(struct emulated_work){.kind = MARK, .mark = mark, .generation = ++mark->put});
}

cvy_status emulated_put_await(emulated_queues *q, cvy_lane lane, cvy_mark *mark)
{
    return put(q, lane, &(struct emulated_work){.kind = AWAIT, .mark = mark, .generation = mark->put});
}

static int lane_of(const emulated_queues *q, const cvy_mark *mark)
{
    for (int lane = 0; lane < CVY_LANES; lane++)
        for (const struct emulated_work *w = q->first[lane]; w; w = w->next)
            if (w->kind == MARK && w->mark == mark && w->generation == mark->put)
                return lane;
    return -1;
}

/* A mark that was never put is reached, as on devices. */
cvy_status emulated_reached(emulated_queues *q, cvy_mark *mark, int wait, int *reached_out)
{
    choose_policy(q);
    const int64_t generation = mark->put;
    const int lane = mark->reached < generation ? lane_of(q, mark) : -1;
    if (wait)
        while (mark->reached < generation)
            CVY_TRY(step_towards(q, lane));
    else if (lane >= 0)
        for (int i = (int)emulated_chance(4); i > 0 && mark->reached < generation; i--)
            CVY_TRY(step_towards(q, lane));
    *reached_out = mark->reached >= generation;
    return CVY_OK;
}

cvy_status emulated_elapsed(cvy_mark *from, cvy_mark *to, double *s_out)
{
    CVY_CHECK(from->reached && from->reached == from->put && to->reached && to->reached == to->put, CVY_E_INTERNAL,
              "the time between two marks is asked for before both are reached");
    *s_out = (double)(to->time.tv_sec - from->time.tv_sec) + 1e-9 * (double)(to->time.tv_nsec - from->time.tv_nsec);
    return CVY_OK;
}

cvy_status emulated_finish(emulated_queues *q, cvy_lane lane)
{
    choose_policy(q);
    while (q->first[lane])
        CVY_TRY(step_towards(q, lane));
    return CVY_OK;
}

/* ---- whose memory is in use ---- */

static int is_within(const void *at, const void *data, size_t bytes)
{
    return at && (const char *)at >= (const char *)data && (const char *)at < (const char *)data + bytes;
}

int emulated_is_used(const emulated_queues *q, const void *data, size_t bytes)
{
    for (int lane = 0; lane < CVY_LANES; lane++)
        for (const struct emulated_work *w = q->first[lane]; w; w = w->next) {
            int used = w->kind != CALL && (is_within(w->to, data, bytes) || is_within(w->from, data, bytes));
            for (int i = 0; w->launch && i < w->launch->nargs; i++)
                used |= is_within(w->launch->pointer[i], data, bytes);
            if (used)
                return 1;
        }
    return 0;
}

void emulated_drop(emulated_queues *q)
{
    for (int lane = 0; lane < CVY_LANES; lane++)
        while (q->first[lane]) {
            struct emulated_work *w = q->first[lane];
            q->first[lane] = w->next;
            work_free(w);
        }
    memset(q->last, 0, sizeof q->last);
    emulated_recording_free(q->recording);
    q->recording = NULL;
}
