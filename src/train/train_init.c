/*
 * train_init.c: the first weights of a run that do not come from initialisers: those of a network that was imported, of
 * a file of weights, or of another run.
 *
 * It runs once, before step 0 of a new run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "checkpoint/checkpoint_adopt.h"
#include "exchange/exchange.h"
#include "job/job_table.h"
#include "monitor/monitor_run_layout.h"
#include "train/trainer.h"

/* Finds the best checkpoint of a run. Rank 0 looks for all. */
static cvy_status find_run(cvy_trainer *t, const char *run, cvy_checkpoint *out)
{
    cvy_comm *comm = t->session.context->comm;
    cvy_status status = CVY_OK;
    char path[CVY_RUN_PATH];
    cvy_run_path(run, CVY_RUN_CHECKPOINTS, path);
    if (comm->rank == 0) {
        status = cvy_checkpoint_find_best(path, out);
        for (int i = 0; i < out->nmessage; i++)
            cvy_log(t->session.context, CVY_LOG_WARN, "%s", out->message[i]);
        if (status == CVY_END)
            status = cvy_error_set(CVY_E_IO,
                                   "%s is a folder without a checkpoint: expected a safetensors file, or the "
                                   "folder of a run",
                                   run);
    }
    return cvy_checkpoint_share(comm, status, out);
}

static cvy_status adopt(cvy_trainer *t, const struct cvy_job_init *init)
{
    cvy_comm *comm = t->session.context->comm;
    cvy_checkpoint run = {0};
    cvy_text report = {0};
    int is_run = comm->rank == 0 && cvy_file_is_folder(init->from);
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
    CVY_TRY(comm->ops->broadcast(comm, &is_run, sizeof is_run, 0));
    cvy_status status = is_run ? find_run(t, init->from, &run) : CVY_OK;
    if (status == CVY_OK && is_run) {
        opts.path = run.weights_path;
        opts.npath = run.nweights;
    }
    if (status == CVY_OK)
        status = cvy_weights_adopt(&opts, comm, t->session.program->vars, &report);
    if (status == CVY_OK && report.bytes)
        cvy_text_add(&t->session.notes, "train.init %s", report.data);
    cvy_checkpoint_close(&run);
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
        status = cvy_weights_set(import->tensor, import->ntensor, t->session.program->vars);
    if (status == CVY_OK && t->session.job->first_step > 0)
        status = begin_later(t);
    CVY_TRY(cvy_comm_agree(comm, status));
    return t->session.job->train.init.from ? adopt(t, &t->session.job->train.init) : CVY_OK;
}
