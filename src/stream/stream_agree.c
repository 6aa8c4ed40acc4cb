/*
 * stream_agree.c: how solvers take new weights in the same call. In each call a solver adds to a count of those that
 * have newer weights, and reads the count of the call before. So it waits only for solvers that are a whole call
 * behind.
 *
 * A solver that leaves adds to one last count. From then on no solver starts another count, and the others keep the
 * weights that they have. Two counts may be under way: the one of the latest call, and the last one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_clock.h"
#include "stream/stream.h"

cvy_status cvy_agreement_open(cvy_stream *s)
{
    const cvy_allreduce_opts reduce = {.algorithm = "library"}; /* two numbers: nothing needs to be measured for them */
    double ends[2] = {s->independent, -s->independent};
    cvy_comm *comm = s->solvers;
    if (comm->nranks == 1)
        return CVY_OK;
    CVY_TRY(comm->ops->allreduce(comm, ends, 2, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    CVY_CHECK(ends[0] == -ends[1], CVY_E_DISAGREE, "opts.independent is set on some solvers only");
    for (int i = 0; i < 2 && s->program && !s->independent; i++)
        CVY_TRY(comm->reduce->create(comm, &reduce, s->solver.count[i].sum, 2, CVY_DTYPE_F64, NULL,
                                     &s->solver.count[i].request));
    return CVY_OK;
}

static cvy_status start(cvy_stream *s, int have, int leaves)
{
    cvy_solver_count *count = &s->solver.count[s->solver.counts++ % 2];
    count->sum[0] = have;
    count->sum[1] = leaves;
    count->is_under_way = 1;
    return s->solvers->reduce->start(count->request);
}

cvy_status cvy_agreement_start(cvy_stream *s, int have)
{
    return s->solver.count[0].request && !s->solver.someone_left ? start(s, have, 0) : CVY_OK;
}

/* Waits for a count; *done_out is 0 if it is not complete after lost_s. */
static cvy_status wait(cvy_stream *s, cvy_solver_count *count, int *done_out)
{
    const double until_s = cvy_clock_s() + s->lost_s;
    for (int round = 0; count->is_under_way; round++) {
        int done = 0;
        CVY_TRY(s->solvers->reduce->test(count->request, &done));
        count->is_under_way = !done;
        if (!done && cvy_clock_s() > until_s)
            break;
        if (!done) {
            CVY_TRY(cvy_stream_progress(s));
            cvy_stream_rest(round);
        }
    }
    *done_out = !count->is_under_way;
    if (*done_out && count->sum[1] > 0)
        s->solver.someone_left = 1;
    return CVY_OK;
}

cvy_status cvy_agreement_finish(cvy_stream *s, int *all_out)
{
    cvy_stream_solver *v = &s->solver;
    cvy_solver_count *count = &v->count[(v->counts + 1) % 2]; /* the latest */
    int done = 1;
    *all_out = 0;
    if (!count->request || !count->is_under_way)
        return CVY_OK;
    CVY_TRY(wait(s, count, &done));
    CVY_CHECK(done, CVY_E_COMM, "another solver has not called cvy_stream_take() for %g s (opts.lost_s)", s->lost_s);
    *all_out = count->sum[0] == s->solvers->nranks && !v->someone_left;
    return CVY_OK;
}

int cvy_agreement_leave(cvy_stream *s)
{
    cvy_stream_solver *v = &s->solver;
    cvy_solver_count *latest = &v->count[(v->counts + 1) % 2], *last = &v->count[v->counts % 2];
    int done = 1, last_done = 1;
    if (!last->request)
        return 1;
    if (latest->is_under_way && wait(s, latest, &done) != CVY_OK)
        return 0;
    if (v->someone_left)
        return done;
    if (start(s, 0, 1) != CVY_OK || wait(s, last, &last_done) != CVY_OK)
        return 0;
    return last_done && !latest->is_under_way;
}

void cvy_agreement_free(cvy_stream *s)
{
    for (int i = 0; i < 2; i++)
        if (s->solver.count[i].request)
            s->solvers->reduce->destroy(&s->solver.count[i].request);
}
