/*
 * stream_solver.c: the side of a stream that makes samples: a queue, batches to the trainer, weights from it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_mem.h"
#include "base/machine/base_clock.h"
#include "stream/stream.h"

static const char owner[] = "the stream"; /* in messages */

static int64_t unsent(const cvy_stream_solver *v)
{
    return v->end - v->sent;
}

static char *record_at(const cvy_stream_solver *v, int64_t i)
{
    return v->queue + (size_t)(i % v->room) * v->fields.record_bytes;
}

/* The weights of the next version go into s->weights. */
static cvy_status await_weights(cvy_stream *s)
{
    cvy_stream_solver *v = &s->solver;
    CVY_TRY(s->comm->message->receive(v->weights_message, v->trainer, CVY_TAG_WEIGHTS));
    v->awaits_weights = 1;
    return CVY_OK;
}

cvy_status cvy_solver_open(cvy_stream *s, int64_t queue)
{
    cvy_stream_solver *v = &s->solver;
    const size_t record = v->fields.record_bytes;
    v->room = queue;
    v->stride = 1;
    CVY_CHECK(record <= (size_t)(INT64_MAX / 2 / queue), CVY_E_MEMORY,
              "a queue of %lld samples of %zu bytes is more than memory can hold", (long long)queue, record);
    CVY_TRY(cvy_mem_alloc((size_t)queue * record, &v->queue));
    v->batch_max = cvy_stream_batch_max(record);
    v->looked_s = cvy_clock_s();
    if (v->is_own)
        return CVY_OK;
    const cvy_comm_message_ops *ops = s->comm->message;
    CVY_TRY(ops->create(s->comm, &(cvy_range){&v->answer, sizeof v->answer}, 1, &v->answers));
    CVY_TRY(ops->receive(v->answers, v->trainer, CVY_TAG_ANSWER));
    if (!s->program)
        return CVY_OK;
    CVY_TRY(ops->create(s->comm, &(cvy_range){s->weights.data, s->weights.bytes}, 1, &v->weights_message));
    return await_weights(s);
}

/* ---- what is under way ---- */

static void lose(cvy_stream *s, const char *why)
{
    cvy_stream_solver *v = &s->solver;
    snprintf(v->lost, sizeof v->lost, "%s", why);
    v->link = CVY_LINK_LOST;
}

/* Takes an answer that has come. */
static cvy_status take_answers(cvy_stream *s)
{
    cvy_stream_solver *v = &s->solver;
    const cvy_comm_message_ops *ops = s->comm->message;
    for (int done = 0; v->link == CVY_LINK_OPEN;) {
        CVY_TRY(ops->test(v->answers, &done, NULL));
        if (!done)
            return CVY_OK;
        v->silent_s = 0;
        for (; v->answered < CVY_MIN(v->answer.taken, v->batches); v->answered++) {
            cvy_stream_slot *slot = &v->slot[v->answered % CVY_STREAM_SLOTS];
            v->first += slot->head.n;
            s->count.delivered += slot->head.n;
        }
        if (v->answer.ended)
            v->link = CVY_LINK_ENDED;
        else
            CVY_TRY(ops->receive(v->answers, v->trainer, CVY_TAG_ANSWER));
    }
    return CVY_OK;
}

static cvy_status take_weights(cvy_stream *s)
{
    cvy_stream_solver *v = &s->solver;
    if (v->awaits_weights) {
        CVY_TRY(s->comm->message->test(v->weights_message, &v->has_weights, NULL));
        v->awaits_weights = !v->has_weights;
    }
    return CVY_OK;
}

/* Sends the next n records that wait. */
static cvy_status send_batch(cvy_stream *s, cvy_stream_slot *slot, int64_t n)
{
    cvy_stream_solver *v = &s->solver;
    const cvy_comm_message_ops *ops = s->comm->message;
    const size_t record = v->fields.record_bytes;
    const int64_t straight = CVY_MIN(n, v->room - v->sent % v->room);
    cvy_range range[3] = {{&slot->head, sizeof slot->head}};
    int nrange = 1;
    if (straight > 0)
        range[nrange++] = (cvy_range){record_at(v, v->sent), (size_t)straight * record};
    if (n > straight)
        range[nrange++] = (cvy_range){v->queue, (size_t)(n - straight) * record};
    slot->head = (cvy_stream_head){.n = n, .version = v->version, .ended = v->said_end};
    ops->destroy(&slot->message);
    CVY_TRY(ops->create(s->comm, range, nrange, &slot->message));
    CVY_TRY(ops->send(slot->message, v->trainer, CVY_TAG_BATCH));
    v->sent += n;
    v->told = v->version;
    return CVY_OK;
}

/* Whether the slot of the next batch is free: its last batch is answered, and MPI has let go of it. */
static cvy_status find_slot(cvy_stream *s, int *free_out)
{
    const cvy_stream_solver *v = &s->solver;
    const cvy_stream_slot *slot = &v->slot[v->batches % CVY_STREAM_SLOTS];
    *free_out = v->batches - v->answered < CVY_STREAM_SLOTS;
    return *free_out && slot->message ? s->comm->message->test(slot->message, free_out, NULL) : CVY_OK;
}

/* Tests the batches under way: MPI libraries without a progress thread need such calls. *all_out: MPI has let go of all
 * of them. */
static cvy_status test_batches(cvy_stream *s, int *all_out)
{
    cvy_stream_solver *v = &s->solver;
    *all_out = 1;
    for (int i = 0; i <= CVY_STREAM_SLOTS; i++) {
        const cvy_stream_slot *slot = i < CVY_STREAM_SLOTS ? &v->slot[i] : &v->last;
        int done = 1;
        if (slot->message)
            CVY_TRY(s->comm->message->test(slot->message, &done, NULL));
        *all_out = *all_out && done;
    }
    return CVY_OK;
}

static cvy_status send_what_waits(cvy_stream *s)
{
    cvy_stream_solver *v = &s->solver;
    for (int is_free = 1; v->link == CVY_LINK_OPEN && !v->said_end && (unsent(v) > 0 || v->told < v->version);) {
        CVY_TRY(find_slot(s, &is_free));
        if (!is_free)
            return CVY_OK;
        CVY_TRY(send_batch(s, &v->slot[v->batches % CVY_STREAM_SLOTS], CVY_MIN(unsent(v), v->batch_max)));
        v->batches++;
    }
    return CVY_OK;
}

/* A batch of no records says that no more will come. */
static cvy_status say_end(cvy_stream *s)
{
    if (s->solver.said_end)
        return CVY_OK;
    s->solver.said_end = 1;
    return send_batch(s, &s->solver.last, 0);
}

/* Counts how long the trainer has not answered. Between two calls that are far apart it could not: a large message
 * moves only while this rank is in a call. */
static void check_silence(cvy_stream *s)
{
    cvy_stream_solver *v = &s->solver;
    const double now_s = cvy_clock_s(), since_s = now_s - v->looked_s;
    v->looked_s = now_s;
    if (v->link != CVY_LINK_OPEN || (v->answered == v->batches && !v->said_end)) {
        v->silent_s = 0;
        return;
    }
    v->silent_s += CVY_MIN(since_s, s->lost_s / 4);
    if (v->silent_s <= s->lost_s)
        return;
    char text[200];
    snprintf(text, sizeof text,
             "the trainer, rank %d, has taken no samples for %g s (opts.lost_s): this solver goes on without it",
             v->trainer, s->lost_s);
    lose(s, text);
}

/* Records that will not be delivered, and the last message, which says so. Those under way are not touched again: no
 * later push fills the queue. */
static cvy_status give_up(cvy_stream *s)
{
    cvy_stream_solver *v = &s->solver;
    s->count.dropped += v->end - v->first;
    v->first = v->sent = v->end;
    return say_end(s);
}

static cvy_status progress(cvy_stream *s)
{
    int ignored = 0;
    CVY_TRY(take_answers(s));
    CVY_TRY(take_weights(s));
    CVY_TRY(test_batches(s, &ignored));
    return send_what_waits(s);
}

void cvy_solver_progress(cvy_stream *s)
{
    cvy_stream_solver *v = &s->solver;
    if (v->is_own || v->link == CVY_LINK_LOST)
        return;
    if (progress(s) != CVY_OK)
        lose(s, cvy_error_text());
    check_silence(s);
    if (v->link != CVY_LINK_OPEN && give_up(s) != CVY_OK)
        lose(s, cvy_error_text());
}

/* A rank that is its own trainer: all records go into its reservoir. */
static void take_own(cvy_stream *s)
{
    cvy_stream_solver *v = &s->solver;
    const int64_t n = unsent(v), straight = CVY_MIN(n, v->room - v->first % v->room);
    cvy_reservoir_add_records(s->trainer.reservoir, record_at(v, v->first), straight);
    cvy_reservoir_add_records(s->trainer.reservoir, v->queue, n - straight);
    v->first = v->sent = v->end;
    s->count.delivered += n;
    s->count.received += n;
}

/* ---- new samples ---- */

cvy_status cvy_stream_put(cvy_stream *s, const char *field, cvy_dtype dtype, const void *data, int64_t elems)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(STREAM, s));
    CVY_CHECK(s->solves, CVY_E_ARGUMENT, "cvy_stream_put() on a rank whose role is trainer");
    return cvy_sample_fields_put(&s->solver.fields, owner, field, dtype, data, elems);
}

/* Drops every second record that waits, and from now on takes only half as many new ones. */
static void thin_out(cvy_stream *s)
{
    cvy_stream_solver *v = &s->solver;
    int64_t to = v->sent;
    for (int64_t from = v->sent; from < v->end; from += 2, to++)
        if (to != from)
            memcpy(record_at(v, to), record_at(v, from), v->fields.record_bytes);
    s->count.dropped += v->end - to;
    v->end = to;
    v->stride *= 2;
}

/* Makes room for a record, as when_full says; *room_out: whether there is any. */
static void make_room(cvy_stream *s, double until_s, int *room_out)
{
    cvy_stream_solver *v = &s->solver;
    for (int round = 0;; round++) {
        *room_out = v->link == CVY_LINK_OPEN && v->end - v->first < v->room;
        if (*room_out || v->link != CVY_LINK_OPEN)
            return;
        if (v->is_own)
            take_own(s);
        else if (v->when_full == CVY_FULL_THIN && unsent(v) > 1)
            thin_out(s);
        else if (v->when_full == CVY_FULL_WAIT && cvy_clock_s() < until_s)
            cvy_stream_rest(round);
        else
            return;
        cvy_solver_progress(s);
    }
}

static void queue_samples(cvy_stream *s, int64_t n)
{
    cvy_stream_solver *v = &s->solver;
    const double until_s = cvy_clock_s() + s->wait_s;
    for (int64_t i = 0; i < n; i++, v->offered++) {
        int has_room = v->offered % v->stride == 0;
        if (has_room)
            make_room(s, until_s, &has_room);
        if (has_room && v->offered % v->stride == 0)
            cvy_sample_fields_to_record(&v->fields, i, record_at(v, v->end++));
        else
            s->count.dropped++;
    }
}

/* What a solver is told of its trainer. */
static cvy_status tell_link(const cvy_stream_solver *v)
{
    if (v->link == CVY_LINK_LOST)
        return cvy_error_set(CVY_E_COMM, "%s", v->lost);
    return v->link == CVY_LINK_ENDED ? CVY_END : CVY_OK;
}

cvy_status cvy_stream_push(cvy_stream *s)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(STREAM, s));
    cvy_stream_solver *v = &s->solver;
    const double began_s = cvy_clock_s();
    int64_t n = 0;
    CVY_CHECK(s->solves, CVY_E_ARGUMENT, "cvy_stream_push() on a rank whose role is trainer");
    CVY_TRY(cvy_sample_fields_count(&v->fields, owner, &n));
    cvy_solver_progress(s);
    if (unsent(v) == 0 && v->stride > 1)
        v->stride /= 2;
    queue_samples(s, n);
    s->count.pushed += n;
    cvy_sample_fields_clear(&v->fields);
    if (v->is_own)
        take_own(s);
    cvy_solver_progress(s);
    s->count.longest_push_s = CVY_MAX(s->count.longest_push_s, cvy_clock_s() - began_s);
    return tell_link(v);
}

cvy_status cvy_stream_flush(cvy_stream *s, double seconds)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(STREAM, s));
    cvy_stream_solver *v = &s->solver;
    const double until_s = cvy_clock_s() + seconds;
    CVY_CHECK(s->solves, CVY_E_ARGUMENT, "cvy_stream_flush() on a rank whose role is trainer");
    CVY_CHECK(seconds >= 0, CVY_E_ARGUMENT, "cvy_stream_flush() waits for %g seconds, expected 0 or more", seconds);
    for (int round = 0; v->end > v->first; round++) {
        (void)cvy_stream_progress(s);
        if (v->end > v->first && cvy_clock_s() >= until_s)
            return CVY_STOPPED;
        cvy_stream_rest(round);
    }
    return tell_link(v);
}

/* ---- weights ---- */

/* Replaces the program's weights and makes room for the next ones. */
static cvy_status adopt(cvy_stream *s)
{
    cvy_stream_solver *v = &s->solver;
    v->version++;
    s->count.version = v->version;
    if (v->is_own) /* the program has them already */
        return CVY_OK;
    v->has_weights = 0;
    CVY_TRY(cvy_stream_set_weights(s->program, &s->weights));
    return v->link == CVY_LINK_OPEN ? await_weights(s) : CVY_OK;
}

cvy_status cvy_stream_take(cvy_stream *s, int64_t *version_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(STREAM, s));
    cvy_stream_solver *v = &s->solver;
    const double began_s = cvy_clock_s();
    int adopts = 0;
    CVY_CHECK(s->solves && s->program, CVY_E_ARGUMENT, "cvy_stream_take() %s",
              s->solves ? "of a stream without a program" : "on a rank whose role is trainer");
    cvy_solver_progress(s);
    CVY_TRY(cvy_agreement_finish(s, &adopts));
    const int have = v->is_own ? s->trainer.version > v->version : v->has_weights;
    if (!v->count[0].request)
        adopts = have;
    CVY_TRY(cvy_agreement_start(s, have && !adopts));
    if (adopts)
        CVY_TRY(adopt(s));
    cvy_solver_progress(s);
    if (version_out)
        *version_out = v->version;
    s->count.longest_take_s = CVY_MAX(s->count.longest_take_s, cvy_clock_s() - began_s);
    return CVY_OK;
}

/* ---- the end ---- */

/* Whether all messages from the trainer have come, and it has all of this rank's. */
static cvy_status is_quiet(cvy_stream *s, int *quiet_out)
{
    cvy_stream_solver *v = &s->solver;
    CVY_TRY(test_batches(s, quiet_out));
    *quiet_out = *quiet_out && v->said_end && v->link == CVY_LINK_ENDED &&
                 (!s->program || v->version + v->has_weights >= v->answer.version);
    return CVY_OK;
}

/* After the records that wait, the solver says the end. The trainer answers when nothing more comes from it. */
static cvy_status close_step(cvy_stream *s, int *quiet_out)
{
    cvy_stream_solver *v = &s->solver;
    cvy_solver_progress(s);
    if (unsent(v) == 0 && v->link == CVY_LINK_OPEN)
        CVY_TRY(say_end(s));
    return is_quiet(s, quiet_out);
}

static void free_solver(cvy_stream *s)
{
    cvy_stream_solver *v = &s->solver;
    const cvy_comm_message_ops *ops = s->comm->message;
    for (int i = 0; i < CVY_STREAM_SLOTS && ops; i++)
        ops->destroy(&v->slot[i].message);
    if (ops) {
        ops->destroy(&v->last.message);
        ops->destroy(&v->answers);
        ops->destroy(&v->weights_message);
    }
    cvy_agreement_free(s);
    cvy_sample_fields_free(&v->fields);
    cvy_mem_free(&v->queue);
}

/* Receives for which nothing will come any more. */
static int cancel_receives(cvy_stream *s)
{
    const cvy_stream_solver *v = &s->solver;
    cvy_status status = v->answers ? s->comm->message->cancel(v->answers) : CVY_OK;
    if (status == CVY_OK && v->weights_message)
        status = s->comm->message->cancel(v->weights_message);
    return status == CVY_OK;
}

int cvy_solver_close(cvy_stream *s)
{
    cvy_stream_solver *v = &s->solver;
    int quiet = v->is_own || !s->is_open;
    const int left = !s->is_open || cvy_agreement_leave(s);
    double until_s = cvy_clock_s() + s->lost_s;
    for (int round = 0; !quiet && v->link != CVY_LINK_LOST && cvy_clock_s() < until_s; round++) {
        const int64_t answered = v->answered;
        const cvy_stream_link link = v->link;
        if (close_step(s, &quiet) != CVY_OK)
            return 0;
        if (answered != v->answered || link != v->link)
            until_s = cvy_clock_s() + s->lost_s;
        cvy_stream_rest(round);
    }
    if (!quiet || !left || !cancel_receives(s))
        return 0;
    free_solver(s);
    return 1;
}
