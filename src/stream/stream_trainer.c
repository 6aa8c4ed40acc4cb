/*
 * stream_trainer.c: the side of a stream that trains: batches from its solvers into the reservoir, weights to them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_mem.h"
#include "base/machine/base_clock.h"
#include "stream/stream.h"

static const cvy_stream_head *head_of(const cvy_stream_peer *peer)
{
    return (const cvy_stream_head *)(const void *)peer->inbox;
}

static cvy_status open_peer(cvy_stream *s, cvy_stream_peer *peer, size_t inbox_bytes)
{
    const cvy_comm_message_ops *ops = s->comm->message;
    CVY_TRY(cvy_mem_alloc(inbox_bytes, &peer->inbox));
    CVY_TRY(ops->create(s->comm, &(cvy_range){peer->inbox, inbox_bytes}, 1, &peer->batches));
    CVY_TRY(ops->create(s->comm, &(cvy_range){&peer->told, sizeof peer->told}, 1, &peer->answers));
    if (s->program)
        CVY_TRY(ops->create(s->comm, &(cvy_range){s->weights.data, s->weights.bytes}, 1, &peer->weights));
    return ops->receive(peer->batches, peer->rank, CVY_TAG_BATCH);
}

cvy_status cvy_trainer_open(cvy_stream *s)
{
    const size_t record = cvy_reservoir_fields(s->trainer.reservoir)->record_bytes;
    const size_t bytes = sizeof(cvy_stream_head) + (size_t)cvy_stream_batch_max(record) * record;
    for (int i = 0; i < s->trainer.npeer; i++)
        CVY_TRY(open_peer(s, &s->trainer.peer[i], bytes));
    return CVY_OK;
}

/* ---- samples ---- */

/* Takes the batches of a solver that have come. Its samples go into the reservoir, or nowhere. */
static cvy_status take_batches(cvy_stream *s, cvy_stream_peer *peer, cvy_reservoir *into)
{
    const cvy_comm_message_ops *ops = s->comm->message;
    for (int i = 0, done = 0; i < CVY_STREAM_SLOTS && !peer->ended; i++) { /* no more, so that a fast one does not keep
                                                                              the trainer here */
        CVY_TRY(ops->test(peer->batches, &done, NULL));
        if (!done)
            break;
        const cvy_stream_head *head = head_of(peer);
        if (into)
            cvy_reservoir_add_records(into, peer->inbox + sizeof *head, head->n);
        s->count.received += into ? head->n : 0;
        peer->version = head->version;
        peer->ended = head->ended != 0;
        peer->answer.taken += into && !peer->ended; /* the solver counts the others as dropped */
        if (!peer->ended)
            CVY_TRY(ops->receive(peer->batches, peer->rank, CVY_TAG_BATCH));
    }
    return CVY_OK;
}

/* Sends an answer if there is anything new, and the one before is gone. Weights that are under way come before the
 * answer that says the end. */
static cvy_status send_answer(cvy_stream *s, cvy_stream_peer *peer)
{
    const cvy_comm_message_ops *ops = s->comm->message;
    int gone = 1, weights_gone = 1;
    if (peer->told.ended)
        return ops->test(peer->answers, &gone, NULL);
    CVY_TRY(ops->test(peer->answers, &gone, NULL));
    if (peer->weights)
        CVY_TRY(ops->test(peer->weights, &weights_gone, NULL));
    peer->answer.ended = weights_gone && (peer->ended || s->trainer.ends);
    if (!gone || memcmp(&peer->answer, &peer->told, sizeof peer->told) == 0)
        return CVY_OK;
    peer->told = peer->answer;
    return ops->send(peer->answers, peer->rank, CVY_TAG_ANSWER);
}

cvy_status cvy_trainer_progress(cvy_stream *s)
{
    for (int i = 0; i < s->trainer.npeer; i++)
        CVY_TRY(send_answer(s, &s->trainer.peer[i]));
    return CVY_OK;
}

/* Whether this trainer could publish: its solvers have taken all weights, and those are not under way. */
static cvy_status is_ready(cvy_stream *s, int *ready_out)
{
    *ready_out = !s->solves || s->solver.version == s->trainer.version;
    for (int i = 0; i < s->trainer.npeer && *ready_out; i++) {
        const cvy_stream_peer *peer = &s->trainer.peer[i];
        int gone = 1;
        if (peer->weights)
            CVY_TRY(s->comm->message->test(peer->weights, &gone, NULL));
        *ready_out = gone && (peer->ended || peer->version == s->trainer.version);
    }
    return CVY_OK;
}

/* Takes all that has come; *open_out: solvers that may send more. */
static cvy_status take_all(cvy_stream *s, int64_t *taken_out, int *open_out)
{
    cvy_stream_trainer *t = &s->trainer;
    const int64_t before = s->count.received;
    *open_out = 0;
    for (int i = 0; i < t->npeer; i++) {
        CVY_TRY(take_batches(s, &t->peer[i], t->reservoir));
        *open_out += !t->peer[i].ended;
    }
    *taken_out = s->count.received - before;
    return cvy_trainer_progress(s);
}

/* What trainers tell each other in a call of receive. The smallest of each number counts, so that all decide alike. */
enum { ALL_STATUS, ALL_HAVE_SAMPLES, ALL_READY, ALL_PATIENT, ALL_CLOSED, NREPORT };

static cvy_status look_around(cvy_stream *s, double *heard_s, int64_t *report)
{
    int open = 0, ready = 0;
    int64_t taken = 0;
    cvy_comm *comm = s->trainers;
    cvy_status status = take_all(s, &taken, &open);
    if (s->trainer.fault != CVY_OK)
        status = s->trainer.fault;
    if (status == CVY_OK)
        status = is_ready(s, &ready);
    if (taken > 0)
        *heard_s = cvy_clock_s();
    const int has_samples = cvy_reservoir_held(s->trainer.reservoir) > 0;
    report[ALL_STATUS] = status;
    report[ALL_HAVE_SAMPLES] = has_samples;
    report[ALL_READY] = ready;
    report[ALL_PATIENT] = has_samples || (open > 0 && cvy_clock_s() - *heard_s <= s->lost_s);
    report[ALL_CLOSED] = open == 0 && !s->solves;
    CVY_TRY(comm->ops->allreduce_progressing
                ? comm->ops->allreduce_progressing(comm, report, NREPORT, CVY_DTYPE_I64, CVY_REDUCE_MIN,
                                                   cvy_stream_progress, s)
                : comm->ops->allreduce(comm, report, NREPORT, CVY_DTYPE_I64, CVY_REDUCE_MIN));
    CVY_CHECK(status != CVY_OK || report[ALL_STATUS] == CVY_OK, (cvy_status)report[ALL_STATUS],
              "another trainer of the stream has failed");
    return status;
}

cvy_status cvy_stream_receive(cvy_stream *s)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(STREAM, s));
    int64_t report[NREPORT] = {0};
    double heard_s = cvy_clock_s();
    CVY_CHECK(s->trains, CVY_E_ARGUMENT, "cvy_stream_receive() on a rank whose role is solver");
    for (int round = 0; !report[ALL_HAVE_SAMPLES]; round++) {
        cvy_stream_rest(round);
        CVY_TRY(look_around(s, &heard_s, report));
        if (report[ALL_CLOSED])
            return CVY_END;
        CVY_CHECK(
            report[ALL_PATIENT], CVY_E_COMM,
            "the reservoir of a trainer is empty, and no sample has come for %g s (opts.lost_s), or none can come",
            s->lost_s);
    }
    s->trainer.may_publish = report[ALL_READY] != 0;
    return CVY_OK;
}

/* ---- weights ---- */

cvy_status cvy_stream_publish(cvy_stream *s)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(STREAM, s));
    cvy_stream_trainer *t = &s->trainer;
    CVY_CHECK(s->trains && s->program, CVY_E_ARGUMENT, "cvy_stream_publish() %s",
              s->trains ? "of a stream without a program" : "on a rank whose role is solver");
    CVY_TRY(cvy_trainer_progress(s));
    if (!t->may_publish)
        return CVY_OK;
    t->may_publish = 0;
    t->version++;
    if (t->npeer > 0)
        CVY_TRY(cvy_stream_get_weights(s->program, &s->weights));
    for (int i = 0; i < t->npeer; i++) {
        cvy_stream_peer *peer = &t->peer[i];
        if (peer->ended)
            continue;
        peer->answer.version = t->version;
        CVY_TRY(s->comm->message->send(peer->weights, peer->rank, CVY_TAG_WEIGHTS));
    }
    if (!s->solves)
        s->count.version = t->version;
    return CVY_OK;
}

/* ---- the end ---- */

/* Whether nothing is under way from or to a solver. Batches that still come are dropped. */
static cvy_status is_quiet(cvy_stream *s, cvy_stream_peer *peer, int *quiet_out)
{
    int gone = 0;
    CVY_TRY(take_batches(s, peer, NULL));
    CVY_TRY(send_answer(s, peer));
    CVY_TRY(s->comm->message->test(peer->answers, &gone, NULL));
    *quiet_out = peer->ended && peer->told.ended && gone;
    return CVY_OK;
}

static void free_peer(cvy_stream *s, cvy_stream_peer *peer)
{
    const cvy_comm_message_ops *ops = s->comm->message;
    ops->destroy(&peer->batches);
    ops->destroy(&peer->answers);
    ops->destroy(&peer->weights);
    cvy_mem_free(&peer->inbox);
}

int cvy_trainer_close(cvy_stream *s)
{
    cvy_stream_trainer *t = &s->trainer;
    const double until_s = cvy_clock_s() + s->lost_s;
    int nquiet = s->is_open ? 0 : t->npeer;
    t->ends = 1;
    for (int round = 0; nquiet < t->npeer && cvy_clock_s() < until_s; round++) {
        nquiet = 0;
        for (int i = 0; i < t->npeer; i++) {
            int quiet = 0;
            if (is_quiet(s, &t->peer[i], &quiet) != CVY_OK)
                return 0;
            nquiet += quiet;
        }
        cvy_stream_rest(round);
    }
    if (nquiet < t->npeer)
        return 0;
    for (int i = 0; i < t->npeer; i++) {
        if (t->peer[i].batches && s->comm->message->cancel(t->peer[i].batches) != CVY_OK)
            return 0;
        free_peer(s, &t->peer[i]);
    }
    cvy_mem_free(&t->peer);
    return 1;
}
