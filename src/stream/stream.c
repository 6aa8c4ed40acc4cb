/*
 * stream.c: makes and ends a stream: roles, which trainer serves which solver, and what all ranks must agree on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "stream/stream.h"

#include <math.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_mem.h"
#include "base/base_opts.h"
#include "base/machine/base_clock.h"
#include "context/context.h"
#include "program/program_update.h"

enum { QUEUE = 4096, LOST_S = 60 };
static const char owner[] = "the stream"; /* in messages */

void cvy_stream_rest(int round)
{
    enum { BUSY_ROUNDS = 200 };
    if (round > BUSY_ROUNDS)
        cvy_clock_sleep(50e-6);
}

cvy_status cvy_stream_progress(void *user)
{
    cvy_stream *s = user;
    if (s->solves)
        cvy_solver_progress(s);
    const cvy_status status = s->trains ? cvy_trainer_progress(s) : CVY_OK;
    if (status != CVY_OK && s->trainer.fault == CVY_OK)
        s->trainer.fault = status;
    return CVY_OK;
}

/* ---- options ---- */

static cvy_status check_program(const cvy_program *p)
{
    const cvy_program_opts *o = cvy_program_options(p);
    CVY_CHECK(cvy_program_is_ready(p), CVY_E_ARGUMENT, "opts.program is not planned");
    CVY_CHECK(!cvy_grid_is_used(cvy_program_grid(p)) && !o->share_weights, CVY_E_UNSUPPORTED,
              "opts.program %s, and a stream needs all weights in the memory of each rank",
              o->share_weights ? "has share_weights" : "shares layers or samples between ranks");
    CVY_CHECK(!cvy_program_update(p)->apart, CVY_E_UNSUPPORTED,
              "opts.program has an update mode in which ranks have different weights: a stream takes sync, delayed and "
              "zero1");
    CVY_CHECK(!cvy_program_has_thread(p), CVY_E_UNSUPPORTED,
              "opts.program has a progress thread, which would call MPI while the stream does: take poll or mpi");
    return CVY_OK;
}

static cvy_status read_opts(cvy_stream *s, const cvy_stream_opts *given, cvy_stream_opts *o)
{
    static const char *const roles[] = {"solver", "trainer", "both"};
    static const char *const policies[] = {"drop", "thin", "wait"};
    int role = 0, policy = 0;
    CVY_TRY(CVY_OPTS_READ(cvy_stream_opts, given, o));
    CVY_TRY(cvy_stream_find_word("role", o->role, roles, CVY_COUNT(roles), &role));
    CVY_TRY(cvy_stream_find_word("when_full", o->when_full, policies, CVY_COUNT(policies), &policy));
    CVY_CHECK(o->queue >= 0 && o->queue < INT64_MAX / 16, CVY_E_ARGUMENT,
              "opts.queue is %lld, expected a number of samples, or 0 for %d", (long long)o->queue, QUEUE);
    CVY_CHECK(isfinite(o->wait_s) && o->wait_s >= 0, CVY_E_ARGUMENT, "opts.wait_s is %g, expected 0 or more seconds",
              o->wait_s);
    CVY_CHECK(isfinite(o->lost_s) && o->lost_s >= 0, CVY_E_ARGUMENT, "opts.lost_s is %g, expected seconds, or 0 for %d",
              o->lost_s, LOST_S);
    s->solves = role != 1;
    s->trains = role != 0;
    s->solver.is_own = s->solves && s->trains;
    s->solver.when_full = (cvy_stream_full)policy;
    s->wait_s = o->wait_s;
    s->lost_s = o->lost_s > 0 ? o->lost_s : LOST_S;
    s->independent = o->independent != 0;
    s->program = o->program;
    s->trainer.reservoir = s->trains ? o->reservoir : NULL;
    CVY_CHECK(!s->trains || o->reservoir, CVY_E_ARGUMENT, "opts.reservoir is NULL on a trainer");
    if (s->trains)
        CVY_TRY(cvy_handle_check(o->reservoir, CVY_HANDLE_RESERVOIR, "opts.reservoir"));
    if (s->program)
        CVY_TRY(cvy_handle_check(s->program, CVY_HANDLE_PROGRAM, "opts.program"));
    CVY_CHECK(!s->trains || cvy_reservoir_fields(o->reservoir)->n > 0, CVY_E_ARGUMENT,
              "the reservoir of a trainer has no fields: add them first");
    return s->program ? check_program(s->program) : CVY_OK;
}

/* ---- who serves whom ---- */

/* Solvers that are no trainers are shared out to the trainers in the order of ranks. */
static cvy_status find_peers(cvy_stream *s, const int *role)
{
    const int n = s->comm->nranks, me = s->comm->rank;
    int solvers = 0, trainers = 0, most = 0;
    for (int r = 0; r < n; r++) {
        solvers += role[r] == 1;
        trainers += (role[r] & 2) != 0;
        most += (role[r] & 1) != 0;
    }
    CVY_CHECK(trainers > 0 && most > 0, CVY_E_ARGUMENT, "no rank of the stream has the role %s",
              trainers > 0 ? "solver" : "trainer");
    if (s->trains)
        CVY_TRY(cvy_mem_alloc(sizeof *s->trainer.peer * (size_t)CVY_MAX(solvers, 1), &s->trainer.peer));
    for (int r = 0, solver = 0; r < n; r++) {
        if (role[r] != 1)
            continue;
        int trainer = 0;
        for (int at = (int)((int64_t)solver++ * trainers / solvers); trainer < n; trainer++)
            if ((role[trainer] & 2) && at-- == 0)
                break;
        if (r == me)
            s->solver.trainer = trainer;
        if (trainer == me)
            s->trainer.peer[s->trainer.npeer++].rank = r;
    }
    CVY_CHECK(!s->trains || s->solves || s->trainer.npeer > 0, CVY_E_ARGUMENT,
              "rank %d trains and would get no samples: there are %d trainers and %d solvers", me, trainers, solvers);
    return CVY_OK;
}

static cvy_status split(cvy_stream *s)
{
    cvy_comm *comm = s->context->comm;
    int mine = s->solves + 2 * s->trains, *role = NULL;
    CVY_TRY(cvy_comm_split(comm, 0, comm->rank, &s->comm)); /* messages of its own */
    CVY_TRY(cvy_comm_split(s->comm, s->solves ? 0 : CVY_NO_COLOR, comm->rank, &s->solvers));
    CVY_TRY(cvy_comm_split(s->comm, s->trains ? 0 : CVY_NO_COLOR, comm->rank, &s->trainers));
    CVY_TRY(cvy_comm_alloc(comm, sizeof *role * (size_t)comm->nranks, &role));
    cvy_status status = comm->ops->allgather(comm, &mine, sizeof mine, role);
    if (status == CVY_OK)
        status = cvy_comm_agree(comm, find_peers(s, role));
    cvy_mem_free(&role);
    return status;
}

/* ---- what all ranks must agree on ---- */

enum { NAME_BYTES = 64 };

struct layout {
    int n, dtype[CVY_FIELDS_MAX];
    char name[CVY_FIELDS_MAX][NAME_BYTES];
    cvy_shape shape[CVY_FIELDS_MAX];
};

static cvy_status describe(const cvy_sample_fields *fields, struct layout *out)
{
    memset(out, 0, sizeof *out);
    out->n = fields->n;
    for (int i = 0; i < fields->n; i++) {
        const cvy_sample_field *f = &fields->field[i];
        CVY_CHECK(strlen(f->name) < NAME_BYTES, CVY_E_ARGUMENT, "field %s: a name in a stream has at most %d letters",
                  f->name, NAME_BYTES - 1);
        strcpy(out->name[i], f->name);
        out->dtype[i] = (int)f->dtype;
        out->shape[i].ndim = f->shape.ndim;
        memcpy(out->shape[i].dim, f->shape.dim, sizeof *f->shape.dim * (size_t)f->shape.ndim);
    }
    return CVY_OK;
}

/* Solvers get the fields of the first trainer; the other trainers have the same ones. */
static cvy_status share_fields(cvy_stream *s)
{
    struct layout mine, theirs;
    cvy_comm *comm = s->comm;
    memset(&mine, 0, sizeof mine);
    cvy_status status = s->trains ? describe(cvy_reservoir_fields(s->trainer.reservoir), &mine) : CVY_OK;
    int64_t first = s->trains ? comm->rank : comm->nranks;
    CVY_TRY(cvy_comm_agree(comm, status));
    CVY_TRY(comm->ops->allreduce(comm, &first, 1, CVY_DTYPE_I64, CVY_REDUCE_MIN));
    theirs = mine;
    CVY_TRY(comm->ops->broadcast(comm, &theirs, sizeof theirs, (int)first));
    if (s->trains && memcmp(&mine, &theirs, sizeof mine) != 0)
        status = cvy_error_set(CVY_E_DISAGREE, "the reservoir of this trainer has other fields than that of rank %d",
                               (int)first);
    for (int i = 0; i < theirs.n && s->solves && status == CVY_OK; i++)
        status = cvy_sample_fields_add(&s->solver.fields, owner, theirs.name[i], (cvy_dtype)theirs.dtype[i],
                                       &theirs.shape[i]);
    return cvy_comm_agree(comm, status);
}

static cvy_status weights_differ(int line, const char *here, const char *there)
{
    static const char none[] = "no program";
    const int lacks = here && strcmp(here, none) == 0, misses = there && strcmp(there, none) == 0;
    if (lacks || misses)
        return cvy_error_set(CVY_E_DISAGREE, "opts.program is NULL on %s: all ranks of a stream have one, or none",
                             lacks ? "this rank, and not on rank 0" : "rank 0, and not on this rank");
    return cvy_error_set(CVY_E_DISAGREE, "variable %d of the stream's program is '%s' here, and '%s' on rank 0", line,
                         here ? here : "none", there ? there : "none");
}

static cvy_status share_weights(cvy_stream *s)
{
    cvy_text text = {0};
    cvy_stream_list_weights(s->program, &text);
    const cvy_status status = cvy_comm_compare(s->comm, &text, weights_differ);
    cvy_text_free(&text);
    CVY_TRY(status);
    return cvy_comm_agree(s->comm, cvy_stream_alloc_weights(s->program, &s->weights));
}

int64_t cvy_stream_batch_max(size_t record_bytes)
{
    enum { BATCH_BYTES = 256 * 1024 };
    return CVY_MAX((int64_t)(BATCH_BYTES / record_bytes), 1);
}

static cvy_status open_both(cvy_stream *s, int64_t queue)
{
    if (s->solves)
        CVY_TRY(cvy_solver_open(s, queue > 0 ? queue : QUEUE));
    return s->trains ? cvy_trainer_open(s) : CVY_OK;
}

static cvy_status make(cvy_stream *s, const cvy_stream_opts *opts)
{
    cvy_stream_opts o;
    CVY_TRY(cvy_comm_agree(s->context->comm, read_opts(s, opts, &o)));
    CVY_TRY(split(s));
    CVY_TRY(share_fields(s));
    CVY_TRY(share_weights(s));
    CVY_TRY(cvy_comm_agree(s->comm, s->solves ? cvy_agreement_open(s) : CVY_OK));
    CVY_TRY(cvy_comm_agree(s->comm, open_both(s, o.queue)));
    s->is_open = 1;
    if (s->trains)
        cvy_reservoir_freeze(s->trainer.reservoir);
    return CVY_OK;
}

cvy_status cvy_stream_create(cvy_context *context, const cvy_stream_opts *opts, cvy_stream **stream_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_stream *s = NULL;
    cvy_status status = cvy_comm_agree(context->comm, cvy_handle_alloc(CVY_HANDLE_STREAM, sizeof *s, &s));
    if (status != CVY_OK) {
        cvy_handle_free(&s);
        return status;
    }
    s->context = context;
    status = make(s, opts);
    if (status != CVY_OK)
        cvy_stream_destroy(&s);
    else
        *stream_out = s;
    return status;
}

void cvy_stream_destroy(cvy_stream **stream)
{
    CVY_ENTRY();
    if (!CVY_IS_LIVE_AT(STREAM, stream))
        return;
    cvy_stream *s = *stream;
    int quiet = 1;
    *stream = NULL;
    cvy_handle_remove(s);
    cvy_comm *const comm[] = {s->solvers, s->trainers, s->comm};
    if (s->solves && s->comm)
        quiet = cvy_solver_close(s);
    if (s->trains && s->comm)
        quiet = cvy_trainer_close(s) && quiet;
    if (!quiet) /* MPI may still read or write this memory */
        return;
    for (int i = 0; i < CVY_COUNT(comm); i++)
        if (comm[i])
            comm[i]->ops->destroy(comm[i]);
    cvy_mem_free(&s->weights.data);
    cvy_mem_free(&s);
}

cvy_status cvy_stream_field(const cvy_stream *s, int i, const char **name_out, cvy_dtype *dtype_out,
                            cvy_shape *shape_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(STREAM, s));
    const cvy_sample_fields *fields = s->trains ? cvy_reservoir_fields(s->trainer.reservoir) : &s->solver.fields;
    return cvy_sample_fields_get(fields, i, name_out, dtype_out, shape_out);
}

cvy_status cvy_stream_get_counts(const cvy_stream *s, cvy_stream_counts *counts_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(STREAM, s));
    cvy_stream_counts counts = s->count;
    CVY_TRY(CVY_RESULT_CHECK(cvy_stream_counts, counts_out));
    counts.waiting = s->solver.end - s->solver.first;
    cvy_result_write(counts_out, &counts, sizeof counts);
    return CVY_OK;
}
