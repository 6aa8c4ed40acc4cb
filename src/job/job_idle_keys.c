/*
 * job_idle_keys.c: finds keys that have no effect with the other keys of the job. They are not errors, because a job
 * for a comparison may keep them. But a user who expects an effect is warned.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "job/job_table.h"
#include "program/program_update.h"

/* The reason why an option of the program has no effect with the job's update mode. NULL: it has an effect, or is not
 * given. */
static const char *by_mode(const cvy_job *job, const char *option, const char *value)
{
    const cvy_update_def *def = job->update.def;
    return value && def->no_effect ? def->no_effect(option, value) : NULL;
}

cvy_status cvy_job_list_idle_keys(const cvy_job *job, cvy_text *out)
{
    const struct cvy_job_comm *c = &job->comm;
    const char *algorithm = c->algorithm && strcmp(c->algorithm, "auto") != 0 ? c->algorithm : NULL;
    const int by_clock = job->plan.kernels.by_clock;
    const char *algorithm_idle = by_mode(job, "reduce", algorithm),
               *wire_idle = by_mode(job, "reduce_wire", c->wire ? "bf16" : NULL);
    const struct {
        int idle;
        const char *section, *key, *why;
    } keys[] = {
        {!by_clock && job->plan.clock_scale != 1, "plan", "clock_scale", "needs plan.kernels: clock"},
        {!by_clock && job->plan.clock_noise != 0, "plan", "clock_noise", "needs plan.kernels: clock"},
        {!job->deterministic && job->deterministic_shards != 8, NULL, "deterministic_shards",
         "needs deterministic: true"},
        {job->parallel.interleave > 1 && job->parallel.pipeline == 1, "parallel", "interleave",
         "needs parallel.pipeline of at least 2"},
        {job->parallel.first_layers && job->parallel.pipeline == 1, "parallel", "first_layers",
         "needs parallel.pipeline of at least 2"},
        {job->parallel.tensor_layers && job->parallel.tensor == 1, "parallel", "tensor_layers",
         "needs parallel.tensor of at least 2"},
        {job->train.validate_every > 0 && !job->data.val && !job->data.test, "train", "validate_every",
         "needs data.val"},
        {algorithm_idle != NULL, "comm", "algorithm", algorithm_idle},
        {wire_idle != NULL, "comm", "wire", wire_idle},
        {c->wire && algorithm && strcmp(algorithm, "library") == 0, "comm", "wire",
         "applies to convoy's own algorithms, but with comm.algorithm: library the MPI library sends gradients "
         "unchanged"},
        {c->wire && c->progress && strcmp(c->progress, "mpi") == 0, "comm", "wire",
         "applies to convoy's own algorithms, but with comm.progress: mpi the MPI library sends gradients unchanged"},
        {job->log.tensorboard_histograms > 0 && !job->log.tensorboard, "log", "tensorboard_histograms",
         "needs log.tensorboard"},
        {c->forward && c->blocking, "comm", "overlap",
         "hides nothing with comm.blocking: true, which waits for each all-reduce where it starts"},
    };
    for (int i = 0; i < CVY_COUNT(keys); i++)
        if (keys[i].idle)
            cvy_text_add(out, "%s%s: %s%s%s has no effect here: it %s", out->bytes ? "\n" : "",
                         cvy_job_where(job, keys[i].section, keys[i].key), keys[i].section ? keys[i].section : "",
                         keys[i].section ? "." : "", keys[i].key, keys[i].why);
    return out->status;
}
