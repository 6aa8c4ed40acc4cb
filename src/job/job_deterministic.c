/*
 * job_deterministic.c: the key `deterministic`: which values it needs in other keys, and which keys it excludes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/program.h>

#include <string.h>

#include "comm/comm_shards.h"
#include "job/job_table.h"
#include "program/program_options.h"
#include "program/program_update.h"

int64_t cvy_job_shards(const cvy_job *job)
{
    return job->deterministic ? job->program.shards : 0;
}

/* Refuses options that do not go with deterministic updates. update/update_deterministic.c knows which. */
static cvy_status refuse_options(const cvy_job *job)
{
    const cvy_program_opts opts = cvy_job_program_opts(job, NULL);
    cvy_update_conflict c = {0};
    if (!cvy_update_find("deterministic")->plan.conflict(&opts, &c))
        return CVY_OK;
    const cvy_program_option *o = cvy_program_option_of_field(c.option, strlen(c.option));
    const int is_mode = strcmp(c.option, "update_mode") == 0;
    return cvy_error_set(CVY_E_CONFIG, "%s: %s is %s, which does not go with deterministic: true: it %s",
                         is_mode ? cvy_job_where(job, NULL, "update") : cvy_job_where(job, o->section, o->row.name),
                         is_mode ? "update" : cvy_program_option_name(o).text,
                         c.value ? c.value : job->update.def->name, c.why);
}

/* Refuses values of other job keys that do not go with deterministic training. Each row gives the reason. */
static cvy_status refuse_others(const cvy_job *job)
{
    const int64_t group = job->program.batch_norm_group;
    const struct {
        int given;
        const char *section, *key, *value, *why;
    } others[] = {
        {job->train.accumulate > 1, "train", "accumulate", "more than 1",
         "splits a step once more, but its shards already are micro-batches: leave it out, and take more "
         "deterministic_shards to save memory"},
        {job->train.batch_per_rank > 0, "train", "batch_per_rank", "given",
         "makes the batch depend on the ranks: give train.batch"},
        {group == CVY_GROUP_RANK, "batch_norm", "group", "rank", "makes statistics depend on the ranks: take shard"},
        {group == CVY_GROUP_BATCH, "batch_norm", "group", "batch",
         "needs sums over shards in the forward pass: take shard"},
    };
    for (int i = 0; i < CVY_COUNT(others); i++)
        CVY_CHECK(!others[i].given, CVY_E_CONFIG, "%s: %s.%s is %s, which does not go with deterministic: true: it %s",
                  cvy_job_where(job, others[i].section, others[i].key), others[i].section, others[i].key,
                  others[i].value, others[i].why);
    return CVY_OK;
}

/* The default group is the shard; a smaller group may be given. */
static cvy_status resolve_group(cvy_job *job)
{
    const cvy_tree *given = cvy_tree_get(job->given, "batch_norm");
    const int64_t shards = job->program.shards, shard = job->train.batch / shards;
    if (!given || given->kind != CVY_TREE_MAP || !cvy_tree_get(given, "group"))
        job->program.batch_norm_group = CVY_GROUP_SHARD;
    CVY_CHECK(job->program.batch_norm_group <= shard, CVY_E_CONFIG,
              "%s: batch_norm.group is %lld samples, but with deterministic: true a shard has %lld (train.batch %lld "
              "by deterministic_shards %lld), and statistics are computed within a shard: take shard or at most %lld, "
              "a larger batch, or fewer shards",
              cvy_job_where(job, "batch_norm", "group"), (long long)job->program.batch_norm_group, (long long)shard,
              (long long)job->train.batch, (long long)shards, (long long)shard);
    return CVY_OK;
}

cvy_status cvy_job_interpret_deterministic(cvy_job *job)
{
    const int64_t shards = job->program.shards;
    CVY_CHECK(job->deterministic || job->program.batch_norm_group != CVY_GROUP_SHARD, CVY_E_CONFIG,
              "%s: batch_norm.group is shard, but only deterministic: true has shards: take a number of "
              "samples, batch or rank",
              cvy_job_where(job, "batch_norm", "group"));
    if (!job->deterministic)
        return CVY_OK;
    if (cvy_job_translate(cvy_shards_check(shards, 1)) != CVY_OK)
        return cvy_error_prefix(CVY_E_CONFIG, "%s", cvy_job_where(job, NULL, "deterministic_shards"));
    CVY_TRY(refuse_options(job));
    CVY_TRY(refuse_others(job));
    CVY_CHECK(job->train.batch >= shards, CVY_E_CONFIG,
              "%s: train.batch is %lld, but with deterministic: true a step is computed in %lld parts "
              "(deterministic_shards): take a larger batch, or fewer shards",
              cvy_job_where(job, "train", "batch"), (long long)job->train.batch, (long long)shards);
    return resolve_group(job);
}
