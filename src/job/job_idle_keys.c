/*
 * job_idle_keys.c: finds keys that have no effect with the other keys of the job. They are not errors, because a job
 * for a comparison may keep them. But a user who expects an effect is warned.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "job/job_table.h"
#include "program/program_update.h"

/* The reason why an option of the program has no effect with the job's update mode. NULL: it has an effect, or is not
 * given. */
static const char *by_mode(const cvy_job *job, const char *option, const char *value)
{
    const cvy_update_def *def = job->update.def;
    return value && def->plan.no_effect ? def->plan.no_effect(option, value) : NULL;
}

/* A number of the optimiser, as the job gives it or by default; 0: the optimiser has no such option. */
static double of_optimizer(const cvy_job *job, const char *option)
{
    const cvy_op_def *op = cvy_op_find(job->train.optimizer);
    const cvy_tree *given = job->train.optimizer_options ? cvy_tree_get(job->train.optimizer_options, option) : NULL;
    double value = 0;
    if (given)
        return cvy_tree_real(given, &value) == CVY_OK ? value : 0;
    for (const cvy_option *row = op ? op->options : NULL; row && row->name; row++)
        if (strcmp(row->name, option) == 0 && row->fallback)
            (void)cvy_text_real(row->fallback, &value);
    return value;
}

/* Whether weights decay, by the optimiser of the job or of a turn, or by an L1 norm. */
static int decays(const cvy_job *job)
{
    int found = of_optimizer(job, "weight_decay") != 0 || job->train.l1 != 0;
    for (int k = 0; k < job->train.nturn && !found; k++)
        found =
            job->train.turn[k].optimizer_options && cvy_tree_get(job->train.turn[k].optimizer_options, "weight_decay");
    return found;
}

/* Whether a group of weights asks for a factor that its own `frozen`, or a weight decay of 0, makes idle. A factor of 0
 * is what it comes to. */
static int has_idle_factor(const cvy_job *job, int of_decay)
{
    for (int i = 0; i < job->train.ngroup; i++) {
        const cvy_job_group *g = &job->train.group[i];
        const int decay = g->decay_mult != 1 && g->decay_mult != 0, lr = g->lr_mult != 1 && g->lr_mult != 0;
        if (of_decay ? decay && !g->frozen : g->frozen && (decay || lr))
            return 1;
    }
    return 0;
}

static int gives(const cvy_tree *map, const char *key)
{
    const cvy_tree *node = map && map->kind == CVY_TREE_MAP ? cvy_tree_get(map, key) : NULL;
    return node && !cvy_tree_is_null(node);
}

cvy_status cvy_job_list_idle_keys(const cvy_job *job, cvy_text *out)
{
    const cvy_program_opts *o = &job->program;
    const char *algorithm = o->reduce && strcmp(o->reduce, "auto") != 0 ? o->reduce : NULL;
    const struct cvy_job_data *d = &job->data;
    const struct cvy_job_train *t = &job->train;
    const int by_clock = cvy_job_kernels(job).by_clock, rounds = o->reduce_wire != CVY_DTYPE_F32;
    const int no_decay = !decays(job);
    const char *algorithm_idle = by_mode(job, "reduce", algorithm),
               *wire_idle = by_mode(job, "reduce_wire", rounds ? "bf16" : NULL);
    const struct {
        int idle;
        const char *section, *key, *why;
    } keys[] = {
        {!by_clock && o->clock_scale != 1, "plan", "clock_scale", "needs plan.kernels: clock"},
        {!by_clock && o->clock_noise != 0, "plan", "clock_noise", "needs plan.kernels: clock"},
        {!job->deterministic && o->shards != 8, NULL, "deterministic_shards", "needs deterministic: true"},
        {o->interleave > 1 && o->pipeline == 1, "parallel", "interleave", "needs parallel.pipeline of at least 2"},
        {o->first_layers && o->pipeline == 1, "parallel", "first_layers", "needs parallel.pipeline of at least 2"},
        {o->tensor_layers && o->tensor == 1, "parallel", "tensor_layers", "needs parallel.tensor of at least 2"},
        {job->train.validate_every > 0 && !job->data.val && !job->data.test, "train", "validate_every",
         "needs data.val"},
        {d->cache_limit > 0 && d->cache == 0, "data", "cache_limit", "needs data.cache"},
        {d->prefetch != 2 && strcmp(d->threads_text, "0") == 0, "data", "prefetch",
         "needs data.threads of at least 1, which prepare steps ahead"},
        {t->decay_on == CVY_DECAY_ALL && no_decay, "train", "optimizer.decay_on", "needs a weight_decay above 0"},
        {has_idle_factor(job, 0), "train", "groups.lr_mult",
         "applies to weights that are trained, and the same group has frozen: true"},
        {no_decay && has_idle_factor(job, 1), "train", "groups.decay_mult", "needs a weight_decay above 0"},
        {gives(t->schedule, "warmup_from") && !gives(t->schedule, "warmup"), "train", "schedule.warmup_from",
         "needs a warmup"},
        {algorithm_idle != NULL, "comm", "algorithm", algorithm_idle},
        {wire_idle != NULL, "comm", "wire", wire_idle},
        {rounds && algorithm && strcmp(algorithm, "library") == 0, "comm", "wire",
         "applies to convoy's own algorithms, but with comm.algorithm: library the MPI library sends gradients "
         "unchanged"},
        {job->log.tensorboard_histograms > 0 && !job->log.tensorboard, "log", "tensorboard_histograms",
         "needs log.tensorboard"},
        {o->overlap == CVY_OVERLAP_FORWARD && o->reduce_blocking, "comm", "overlap",
         "hides nothing with comm.blocking: true, which waits for each all-reduce where it starts"},
    };
    for (int i = 0; i < CVY_COUNT(keys); i++) {
        char key[64]; /* without what is below it, which has no line of its own */
        snprintf(key, sizeof key, "%.*s", (int)strcspn(keys[i].key, "."), keys[i].key);
        if (keys[i].idle)
            cvy_text_add(out, "%s%s: %s%s%s has no effect here: it %s", out->bytes ? "\n" : "",
                         cvy_job_where(job, keys[i].section, key), keys[i].section ? keys[i].section : "",
                         keys[i].section ? "." : "", keys[i].key, keys[i].why);
    }
    return out->status;
}
