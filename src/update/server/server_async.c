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
 */
#include <string.h>

#include "update/server/server_impl.h"

enum { WORD_TAG = 0, LONG = 1000 }; /* LONG: turns without a message, until the watchdog is told */

/* ---- setup ---- */

cvy_status cvy_server_free_bucket(cvy_server_plan *sp, cvy_server_bucket *b)
{
    const cvy_server *s = sp->server;
    cvy_pool *pool = s->program->pool;
    const int owns = b->owner == s->comm->rank;
    const size_t n = (size_t)s->nworkers;
    cvy_served *served = NULL;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *b->note * (owns ? n : 1), &b->note));
    if (!owns)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *served, &served));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *served->taken * n, &served->taken));
    CVY_TRY(cvy_pool_alloc(pool, n, &served->owed));
    CVY_TRY(cvy_pool_alloc(pool, n, &served->sending));
    CVY_TRY(cvy_pool_alloc(pool, n, &served->heard));
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
    const cvy_range word = {&s->word, sizeof s->word};
    const size_t n = (size_t)s->nworkers;
    if (!cvy_server_is_worker(s)) {
        CVY_TRY(cvy_pool_alloc(pool, sizeof *s->begun * n, &s->begun));
        CVY_TRY(cvy_pool_alloc(pool, sizeof *s->rate * n, &s->rate));
        CVY_TRY(cvy_pool_alloc(pool, n, &s->left));
        return s->comm->message->create(s->comm, &word, 1, &s->hears);
    }
    CVY_TRY(cvy_pool_alloc(pool, sizeof *s->words * (size_t)s->nservers, &s->words));
    for (int i = 0; i < s->nservers; i++)
        CVY_TRY(s->comm->message->create(s->comm, &word, 1, &s->words[i]));
    return CVY_OK;
}

void cvy_server_free_destroy(cvy_server *s)
{
    s->comm->message->destroy(&s->hears);
    for (int i = 0; s->words && i < s->nservers; i++)
        s->comm->message->destroy(&s->words[i]);
}

/* ---- a worker ---- */

static cvy_status words_are_out(cvy_server *s)
{
    for (int i = 0; i < s->nservers; i++)
        for (int turn = 0, out = 0; !out; turn++) {
            CVY_TRY(s->comm->message->test(s->words[i], &out, NULL));
            CVY_TRY(s->comm->ops->rest(s->comm, turn));
        }
    return CVY_OK;
}

cvy_status cvy_worker_say(cvy_server *s, const cvy_server_word *word)
{
    CVY_TRY(words_are_out(s));
    s->word = *word;
    for (int i = 0; i < s->nservers; i++)
        CVY_TRY(s->comm->message->send(s->words[i], s->nworkers + i, WORD_TAG));
    return CVY_OK;
}

/* Takes the newest of what the first server told with the answers of a step. The counts of its buckets differ a little;
 * the largest is the latest. */
void cvy_worker_note(cvy_server_plan *sp)
{
    cvy_server *s = sp->server;
    for (int i = 0; i < sp->plan->buckets->n; i++) {
        const cvy_server_bucket *b = &sp->bucket[i];
        if (b->owner != s->nworkers)
            continue;
        s->note.meeting = CVY_MAX(s->note.meeting, b->note->meeting);
        if (b->note->answers > s->note.answers)
            s->note = (cvy_server_note){s->note.meeting, b->note->answers, b->note->ahead, b->note->most_ahead};
    }
}

void cvy_server_wish(cvy_server *s)
{
    s->wishes = 1;
}

int64_t cvy_server_meeting(const cvy_server *s)
{
    return s->note.meeting;
}

cvy_status cvy_server_leave(cvy_server *s, int64_t steps_done)
{
    CVY_TRY(cvy_worker_say(s, &(cvy_server_word){.leaves = 1, .step = steps_done}));
    s->note.meeting = s->wishes = s->collected = 0;
    s->met = 1;
    return words_are_out(s);
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
static int all_heard(const cvy_server *s, const cvy_served *b)
{
    int all = 1;
    for (int w = 0; w < s->nworkers; w++)
        all &= b->heard[w] || s->left[w];
    return all;
}

static cvy_status hear(cvy_server *s, int64_t begin, int *moved)
{
    int there = 0, from = -1;
    CVY_TRY(s->comm->message->test(s->hears, &there, &from));
    if (!there)
        return CVY_OK;
    if (s->word.leaves) {
        s->left[from] = 1;
        s->left_step = CVY_MAX(s->left_step, s->word.step);
    } else {
        s->begun[from]++;
        s->rate[from] = s->word.rate;
    }
    /* The synchronisation is after a step for which no worker has an answer yet, so all are told in time. */
    if ((s->word.leaves || s->word.wishes) && s->comm->rank == s->nworkers && !s->note.meeting) {
        for (int w = 0; w < s->nworkers; w++)
            s->note.meeting = CVY_MAX(s->note.meeting, begin + s->begun[w] + 1);
    }
    *moved = 1;
    return s->comm->message->receive(s->hears, CVY_ANY_RANK, WORD_TAG);
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
    served->heard[worker] = 1;
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
    served->owed[worker] = 1;
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
        if (!served->owed[w] || !all_heard(s, served) || (s->staleness >= 0 && ahead > s->staleness))
            continue;
        s->note = (cvy_server_note){s->note.meeting, s->note.answers + 1, s->note.ahead + ahead,
                                    CVY_MAX(s->note.most_ahead, ahead)};
        b->note[w] = s->note;
        served->owed[w] = 0;
        served->sending[w] = 1;
        served->nsending++;
        *moved = 1;
        CVY_TRY(s->comm->message->send(b->to[w], w, cvy_server_tag(number)));
    }
    return CVY_OK;
}

/* ---- a server: from one synchronisation to the next ---- */

static cvy_status open_doors(cvy_server *s, cvy_server_plan *sp)
{
    const size_t n = (size_t)s->nworkers;
    memset(s->begun, 0, sizeof *s->begun * n);
    memset(s->left, 0, n);
    s->note.meeting = s->left_step = 0;
    for (int i = 0; i < sp->mine.count; i++) {
        cvy_served *served = sp->bucket[sp->mine.at[i]].served;
        memset(served->taken, 0, sizeof *served->taken * n);
        served->applied = 0;
    }
    CVY_TRY(cvy_server_run_list(sp->plan, &sp->constants));
    return s->comm->message->receive(s->hears, CVY_ANY_RANK, WORD_TAG);
}

/* All workers have left and got their answers. The receives that are still posted are cancelled. */
static cvy_status close_doors(cvy_server *s, cvy_server_plan *sp)
{
    CVY_TRY(s->comm->message->cancel(s->hears));
    for (int i = 0; i < sp->mine.count; i++) {
        cvy_server_bucket *b = &sp->bucket[sp->mine.at[i]];
        CVY_TRY(s->comm->message->cancel(b->first));
        b->served->receiving = 0;
        for (int turn = 0, moved = 0; b->served->nsending > 0; turn++) {
            CVY_TRY(answer(sp, sp->mine.at[i], &moved));
            CVY_TRY(s->comm->ops->rest(s->comm, turn));
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
    s->met = 1;
    CVY_TRY(open_doors(s, sp));
    for (int turn = 0; !all_left(s); turn++) {
        int moved = 0;
        CVY_TRY(hear(s, begin, &moved));
        for (int i = 0; i < sp->mine.count; i++) {
            CVY_TRY(take(sp, sp->mine.at[i], begin, &moved));
            CVY_TRY(answer(sp, sp->mine.at[i], &moved));
        }
        turn = moved ? 0 : turn;
        if (turn == LONG)
            note_waiting(s, sp, first);
        CVY_TRY(s->comm->ops->rest(s->comm, turn));
    }
    atomic_store_explicit(&s->waits_bucket, -1, memory_order_relaxed);
    atomic_store_explicit(&sp->plan->at, -1, memory_order_relaxed);
    *steps_done = CVY_MAX(begin, s->left_step);
    return close_doors(s, sp);
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
    *mean_out = s->note.answers > 0 ? (double)s->note.ahead / (double)s->note.answers : 0;
    *most_out = s->note.most_ahead;
}

long long cvy_server_moved(const cvy_server *s)
{
    return atomic_load_explicit(&s->moved, memory_order_relaxed);
}
