/*
 * update_deterministic.c: deterministic training: the same bits on any number of ranks and threads.
 *
 * A step is computed in shards, which do not depend on the number of ranks (comm/comm_shards.h). Each shard is planned
 * for its own samples alone, as a micro-batch of the rank that has it. So the same kernels run on the same numbers on
 * any rank. Gradients, losses and statistics of the shards are summed as one binary tree: the schedule sums a rank's
 * own subtree (plan_schedule.c), and the algorithm "doubling" sums the rest over ranks. Kernels are chosen by
 * preference, as if there were one thread. A kernel that would split its sums among threads runs on one thread
 * (plan_select.c).
 *
 * In a pipeline the shards are shared by the ranks of each stage, and pass through the stages as its micro-batches. The
 * bits depend on the cut into stages, because layouts change there, and not on the number of ranks of a stage.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "comm/comm_shards.h"
#include "program/program_guard.h"
#include "program/program_impl.h"

/* ---- options ---- */

static int is_asked_for(const cvy_program_opts *o)
{
    return o->shards != 0;
}

/* Finds a value with which the bits would depend on ranks, threads or time. */
static int conflict(const cvy_program_opts *o, cvy_update_conflict *out)
{
    const struct {
        int given;
        cvy_update_conflict what;
    } others[] = {
        {o->update_mode != CVY_UPDATE_SYNC,
         {"update_mode", NULL, "adds gradients in another order: leave it out, which is sync"}},
        {o->overlap == CVY_OVERLAP_FORWARD, {"overlap", "forward", "is not built for it: leave it out"}},
        {o->gradients_only, {"gradients_only", "1", "has no reduction to fix the order of: leave one of them out"}},
        {o->reduce_wire == CVY_DTYPE_BF16,
         {"reduce_wire", "bf16", "rounds the values that are sent, but not those that stay on a rank: take f32"}},
        {o->reduce && strcmp(o->reduce, "auto") != 0 && strcmp(o->reduce, "doubling") != 0,
         {"reduce", o->reduce, "adds in another order than the shards' tree: take auto or doubling"}},
        {o->plan_file != NULL,
         {"plan_file", o->plan_file, "chooses kernels, but here they are chosen by preference alone: leave it out"}},
        {o->planning && strcmp(o->planning, "estimate") != 0,
         {"planning", o->planning, "chooses kernels by times, which differ from run to run: take estimate"}},
        {o->kernels && strcmp(o->kernels, "clock") == 0,
         {"kernels", "clock", "computes nothing: take auto, or leave determinism out, which has the same shapes"}},
    };
    for (int i = 0; i < CVY_COUNT(others); i++)
        if (others[i].given) {
            *out = others[i].what;
            return 1;
        }
    return 0;
}

static cvy_status check(const cvy_program *p)
{
    return cvy_shards_check(p->opts.shards, p->grid.ndata);
}

static void shape(const cvy_program *p, cvy_update_shape *shape)
{
    const cvy_grid *grid = &p->grid;
    shape->shards = p->opts.shards;
    shape->own_shards = cvy_shards_of(p->opts.shards, grid->data_rank, grid->ndata);
    shape->own_losses = 1; /* the tree of the shards is that of the data axis */
}

/* ---- its cost ---- */

/* Memory for the sums of subtrees, in addition to the gradients themselves. */
static size_t partial_bytes(const cvy_plan *plan)
{
    size_t bytes = 0;
    int levels = 0;
    while (2 << levels <= plan->nmicro)
        levels++;
    for (int i = 0; i < plan->nbuffer; i++)
        bytes += plan->buffer[i].region == CVY_REGION_STEP ? plan->buffer[i].bytes : 0;
    return bytes * (size_t)levels;
}

static void count_kernels(const cvy_lowered *u, int *all_out, int *alone_out)
{
    *all_out = *alone_out = 0;
    for (int c = 0; c < u->ncall; c++)
        if (cvy_call_kernel(&u->call[c])) {
            (*all_out)++;
            *alone_out += u->call[c].ask.threads == 1;
        }
}

static void describe(const cvy_program *p, int step, cvy_text *out)
{
    const cvy_program_task *s = p->task[step];
    const long long least = (long long)(s->batch / p->opts.shards),
                    most = (long long)((s->batch + p->opts.shards - 1) / p->opts.shards);
    int all = 0, alone = 0;
    count_kernels(s->plan->lowered[0], &all, &alone);
    cvy_text_add(out, "deterministic: %lld shards of %lld", (long long)p->opts.shards, least);
    if (most > least)
        cvy_text_add(out, " or %lld", most);
    cvy_text_add(out, " samples, %d on this rank", s->nmicro);
    if (s->nmicro > 1)
        cvy_text_add(out, ", %.1f MB for their partial sums", 1e-6 * (double)partial_bytes(s->plan));
    if (p->context->threads > 1)
        cvy_text_add(out, "; one thread in place of %d for %d of %d kernels, the sums of which would be split",
                     p->context->threads, alone, all);
    cvy_text_add(
        out, "; kernels by preference, sums by doubling in f32 (what that costs: convoy bench with and without it)\n");
}

CVY_UPDATE_DEFINE(deterministic) = {
    .name = "deterministic",
    .summary = "as sync, with the same bits on any number of ranks and threads",
    .mode = -1,
    .any_space = 1,
    .meets_in = 1,
    .asked_for = is_asked_for,
    .plan.conflict = conflict,
    .plan.check = check,
    .plan.shape = shape,
    .step = cvy_guarded_step,
    .end = cvy_guarded_end,
    .watch.describe = describe,
};
