/*
 * train_init.c: the first weights of a run that do not come from initialisers: those of a network that was imported, of
 * a file of weights, or of another run.
 *
 * It runs once, before step 0 of a new run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "checkpoint/checkpoint_adopt.h"
#include "job/job_table.h"
#include "model/model_import.h"
#include "train/trainer.h"

static cvy_status adopt(cvy_trainer *t, const struct cvy_job_init *init)
{
    cvy_comm *comm = t->session.context->comm;
    const cvy_checkpoint *run = &t->start.set;
    cvy_text report = {0};
    cvy_adopt_opts opts = {.from = init->from,
                           .path = &init->from,
                           .npath = 1,
                           .names = (cvy_names)init->names,
                           .model = t->session.model,
                           .pattern = init->pattern,
                           .replacement = init->replacement,
                           .nrename = init->nrename,
                           .skip = init->skip,
                           .nskip = init->nskip,
                           .lenient = init->on_mismatch == CVY_INIT_SKIP};
    if (run->path) {
        opts.path = run->weights_path;
        opts.npath = run->nweights;
    }
    const cvy_status status = cvy_weights_adopt(&opts, comm, cvy_program_vars(t->session.program), &report);
    if (status == CVY_OK && report.bytes)
        cvy_text_add(&t->session.notes, "train.init %s", report.data);
    cvy_text_free(&report);
    return status == CVY_OK
               ? t->session.notes.status
               : cvy_error_prefix(status, "%s: train.init", cvy_job_where(t->session.job, "train", "init"));
}

/* A run that continues one of Caffe begins with a later step. */
static cvy_status begin_later(cvy_trainer *t)
{
    const int64_t first = t->session.job->first_step;
    CVY_CHECK(
        first < t->order.last_step, CVY_E_CONFIG,
        "the state of Caffe is of step %lld, and the run has %lld steps (train.steps, max_iter): nothing is left to "
        "do",
        (long long)first, (long long)t->order.last_step);
    t->step = t->first_step = first;
    cvy_program_set_updates(t->session.program, t->task.full, first);
    return CVY_OK;
}

cvy_status cvy_trainer_initialise(cvy_trainer *t)
{
    cvy_comm *comm = t->session.context->comm;
    const cvy_import *import = t->session.job->import;
    cvy_status status = CVY_OK;
    if (import)
        status = cvy_weights_set(import->tensor, import->ntensor, cvy_program_vars(t->session.program));
    if (status == CVY_OK && t->session.job->first_step > 0)
        status = begin_later(t);
    CVY_TRY(cvy_comm_agree(comm, status));
    return t->session.job->train.init.from ? adopt(t, &t->session.job->train.init) : CVY_OK;
}
