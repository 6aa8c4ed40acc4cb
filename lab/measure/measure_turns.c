/*
 * measure_turns.c: the turns of a step (train.turns) that bench and time take as train does: each has a task of its
 * own, and they run one after the other. A job without turns has one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "job/job_table.h"
#include "measure/measure_bench.h"
#include "train/trainer.h"

static cvy_status add_turn(cvy_bench *b, const cvy_training_opts *opts, int turn)
{
    const cvy_job *job = b->session.job;
    const cvy_job_turn *wish = &job->train.turn[turn];
    struct cvy_bench_turn *to = &b->turn[turn];
    cvy_training_opts own = *opts;
    CVY_TRY(cvy_job_turn_opts(job, turn, &own));
    CVY_TRY(
        cvy_job_translate(cvy_program_add_training(b->session.program, b->session.model, b->batch, &own, &to->number)));
    to->every = wish->every;
    to->lr_mult = cvy_job_turn_lr(job, turn) / job->train.lr;
    return CVY_OK;
}

cvy_status cvy_bench_add_turns(cvy_bench *b, const cvy_training_opts *opts)
{
    const cvy_job *job = b->session.job;
    CVY_TRY(cvy_trainer_check_mode(job, b->session.program));
    for (int k = 0; k < job->train.nturn; k++)
        CVY_TRY(add_turn(b, opts, k));
    b->nturn = job->train.nturn;
    b->number = b->turn[0].number;
    return CVY_OK;
}

cvy_plan *cvy_bench_turn_plan(const cvy_bench *b, int turn)
{
    return cvy_program_task_plan(b->session.program, b->turn[turn].number);
}

cvy_status cvy_bench_take_turns(cvy_bench *b)
{
    const double lr = b->session.job->train.lr;
    for (int k = 0; k < b->nturn; k++)
        if (b->nstep % b->turn[k].every == 0) {
            CVY_TRY(cvy_program_step(b->session.program, b->turn[k].number, b->turn[k].lr_mult * lr));
            cvy_step_time_join(&b->time, cvy_program_time(b->session.program, b->turn[k].number));
        }
    return CVY_OK;
}

/* A turn that is taken in every so many steps counts that part. */
cvy_work cvy_bench_work(const cvy_bench *b)
{
    cvy_work sum = {0};
    for (int k = 0; k < b->nturn; k++) {
        const cvy_work one = cvy_step_work(cvy_bench_turn_plan(b, k));
        sum.flop += one.flop / (double)b->turn[k].every;
        sum.macs += one.macs / (double)b->turn[k].every;
    }
    return sum;
}

int cvy_bench_ninstr(const cvy_bench *b, int nturn)
{
    int n = 0;
    for (int k = 0; k < nturn; k++)
        n += cvy_bench_turn_plan(b, k)->ninstr;
    return n;
}
