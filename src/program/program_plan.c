/*
 * program_plan.c: plans a program: graphs for each micro-batch size, passes, lowered graphs, plans.
 * program_allocate.c takes the memory.
 *
 * The first graph that reads a variable chooses its layout. Layouts must be equal on all ranks, although the ranks'
 * shares may differ by a sample. So a rank whose share is not the largest plans the largest share first, only for its
 * choices. In deterministic training, a micro-batch is a shard of the batch, and its graph knows nothing of the other
 * shards.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/machine/base_team.h"
#include "op/norm/op_batch_norm.h"
#include "program/program_impl.h"
#include "program/program_reduce.h"
#include "program/program_tune.h"

/* Kernels are timed with this work for each thread, or this number of samples, if the batch has more. */
static const double TIMED_FLOP = 5e10;
enum { TIMED_SAMPLES = 16 };

/* ---- micro-batches ---- */

int cvy_program_cuts_own_rows(const cvy_program *p, const cvy_program_task *s)
{
    return !s->training && p->grid.nstages > 1 && !p->update.shape.shards;
}

/* As many micro-batches as training has, and at least one for each stage, if there are so many rows. */
static int forward_micros(const cvy_program *p, const cvy_program_task *s)
{
    const cvy_grid *grid = &p->grid;
    const int64_t most = cvy_batch_share(s->batch, grid->ndata - 1, grid->ndata).local_n;
    int64_t n = grid->nstages;
    for (int i = 0; i < p->ntask; i++)
        n = CVY_MAX(n, p->task[i]->accumulate);
    return (int)CVY_MAX(CVY_MIN(n, most), 1);
}

/* Micro-batches are as even as possible, larger ones first: 10 samples in 3 micro-batches are 4, 3, 3. */
static cvy_status split_batch(cvy_program *p, cvy_program_task *s)
{
    s->nmicro = p->update.shape.shards ? (int)(p->update.shape.own_shards.end - p->update.shape.own_shards.first)
                : cvy_program_cuts_own_rows(p, s) ? forward_micros(p, s)
                                                  : (int)s->accumulate;
    if (!p->update.shape.shards)
        CVY_TRY(cvy_pool_alloc(p->pool, sizeof *s->split.micro_n * (size_t)s->nmicro, &s->split.micro_n));
    for (int m = 0; m < s->nmicro && !p->update.shape.shards; m++)
        s->split.micro_n[m] = s->batch / s->nmicro + (m < s->batch % s->nmicro);
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *s->split.graph * (size_t)s->nmicro, &s->split.graph));
    return cvy_pool_alloc(p->pool, sizeof *s->split.lowered * (size_t)s->nmicro, &s->split.lowered);
}

/* Part m of n of a rank's share, larger ones first. */
static cvy_batch part_of(cvy_batch share, int m, int n)
{
    const int64_t each = share.local_n / n, more = share.local_n % n;
    share.first += m * each + CVY_MIN(m, more);
    share.local_n = each + (m < more);
    return share;
}

cvy_batch cvy_program_share(const cvy_program *p, const cvy_program_task *s, int m, int largest)
{
    const cvy_update_shape *shape = &p->update.shape;
    if (shape->shards)
        return cvy_batch_share(s->batch, (int)(largest ? shape->shards - 1 : shape->own_shards.first + m),
                               (int)shape->shards);
    const int nranks = s->training ? cvy_program_nworkers(p) : p->grid.ndata;
    if (cvy_program_cuts_own_rows(p, s))
        return part_of(cvy_batch_share(s->batch, largest ? nranks - 1 : p->grid.data_rank, nranks), m, s->nmicro);
    return cvy_batch_share(s->split.micro_n[m], largest ? nranks - 1 : p->grid.data_rank, nranks);
}

/* The batch of the graph for this share. If a rank trains on its own, computes a shard, or cuts its own rows, this
 * batch has only its samples. */
static cvy_batch batch_of(const cvy_program *p, const cvy_program_task *s, int m, int largest)
{
    const cvy_batch share = cvy_program_share(p, s, m, largest);
    if (!p->update.shape.shards && !(p->update.shape.own_samples && s->training) && !cvy_program_cuts_own_rows(p, s))
        return share;
    return share.local_n > 0 ? cvy_batch_share(share.local_n, 0, 1) : cvy_batch_share(1, 0, 2);
}

/* ---- one graph ---- */

/* The caller will read the value after the step. A view has no memory of its own, so its source is kept, too. */
static void keep_output(cvy_value *v)
{
    v->is_output = 1;
    if (v->producer && (v->producer->op->flags & CVY_OP_VIEW))
        keep_output(v->producer->src[0]);
}

static cvy_status note_names(cvy_program *p, cvy_program_task *s, cvy_value *const *losses, cvy_value *const *outputs)
{
    for (int i = 0; i < s->nloss; i++) {
        losses[i]->is_output = 1;
        if (!s->loss[i].value)
            CVY_TRY(cvy_pool_strdup(p->pool, losses[i]->name, &s->loss[i].value));
    }
    for (int i = 0; i < s->noutput; i++) {
        keep_output(outputs[i]);
        if (!s->output[i].value)
            CVY_TRY(cvy_pool_strdup(p->pool, outputs[i]->name, &s->output[i].value));
    }
    return CVY_OK;
}

/* Whether this rank alone makes the gradients of a step, in one micro-batch, and updates with them at its end. The
 * fused update also needs its kernel. */
static int may_fuse_updates(const cvy_program *p, const cvy_program_task *s)
{
    const cvy_comm *comm = p->update.shape.comm;
    return !p->kernel.stores_gradients && comm->nranks == 1 && comm->simulated_ranks <= 1 && s->nmicro == 1 &&
           !cvy_grid_is_used(&p->grid) && p->update.def->fuses_updates && cvy_kernels_fuse_updates(&p->kernel.allowed);
}

/* Before the cut into stages is known, graphs are whole. */
static cvy_status run_passes(cvy_program *p, cvy_program_task *s, cvy_graph *g, cvy_value **losses, cvy_value **outputs)
{
    const cvy_stages stages = {.mine = p->grid.stage,
                               .nranks = p->grid.nstages,
                               .of_layer = &p->pipeline.of_layer,
                               .own_losses = p->update.shape.own_losses};
    CVY_TRY(note_names(p, s, losses, outputs));
    cvy_program_set_groups(p, s);
    if (s->training)
        CVY_TRY(cvy_program_check_groups(p, s));
    cvy_pass_run run = {
        .graph = g,
        .off = p->opts.passes_off,
        .training = s->training,
        .memory_price = p->memory.price,
        .loss = losses,
        .nloss = s->nloss,
        .trains = s->train.trains ? cvy_program_trains : NULL,
        .trains_user = s->train.trains,
        .stages = p->pipeline.of_layer.count > 0 ? &stages : NULL,
        .split_over = p->grid.length[CVY_AXIS_TENSOR] > 1 ? CVY_AXIS_BIT(CVY_AXIS_TENSOR) : 0,
        .reduce = {.nranks = CVY_MAX(p->update.shape.comm->nranks, p->update.shape.comm->simulated_ranks),
                   .bucket_bytes = (size_t)p->opts.bucket_bytes,
                   .cost = p->reduce.cost,
                   .apart = p->update.shape.halves},
        .optimise = p->update.shape.no_update ? NULL : &s->train.optimise,
        .may_fuse_updates = may_fuse_updates(p, s)};
    CVY_TRY(cvy_passes_run(&run));
    p->kernel.fuses_updates |= run.fused_updates > 0;
    s->recomputed = run.recomputed;
    return CVY_OK;
}

static cvy_status build_graph(cvy_program *p, cvy_program_task *s, const cvy_batch *batch, cvy_graph **out)
{
    const cvy_batch most = batch_of(p, s, 0, 1); /* the micro-batches after it are not larger */
    const cvy_graph_opts opts = {.name = s->model->name,
                                 .batch = *batch,
                                 .training = s->training,
                                 .dropout = p->keeps_dropout,
                                 .dtype = p->opts.dtype,
                                 .bn_group = p->bn_group,
                                 .bn_unit = cvy_bn_largest(&most, p->bn_group),
                                 .bn_frozen = p->opts.batch_norm_frozen,
                                 .precise = p->opts.precise,
                                 .seed = p->opts.seed};
    const int nwanted = s->nloss + s->noutput;
    const char **wanted = NULL;
    cvy_value **value = NULL;
    cvy_graph *g = NULL;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *wanted * ((size_t)nwanted + 1), &wanted));
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *value * ((size_t)nwanted + 1), &value));
    for (int i = 0; i < s->nloss; i++)
        wanted[i] = s->loss[i].name;
    for (int i = 0; i < s->noutput; i++)
        wanted[s->nloss + i] = s->output[i].name;
    cvy_status status = cvy_program_instantiate(p, s, &opts, wanted, nwanted, value, &g);
    if (status == CVY_OK && s->training)
        status = cvy_graph_check_batch(g);
    if (status == CVY_OK)
        status = run_passes(p, s, g, value, value + s->nloss);
    if (status == CVY_OK)
        *out = g;
    else
        cvy_graph_destroy(&g);
    return status == CVY_OK || !s->label ? status : cvy_error_prefix(status, "%s", s->label);
}

static cvy_plan_opts plan_opts(cvy_program *p)
{
    return (cvy_plan_opts){.comm = p->grid.data,
                           .grid = cvy_grid_is_used(&p->grid) ? &p->grid : NULL,
                           .order = p->pipeline.order,
                           .nchunks = p->pipeline.nchunks,
                           .space = &p->context->space,
                           .threads = p->context->threads,
                           .kernels = p->opts.dtype == CVY_DTYPE_F64 ? (cvy_kernels){.listed = 1} : p->kernel.allowed,
                           .no_inplace = !cvy_pass_is_on(p->opts.passes_off, "in-place"),
                           .no_reuse = !cvy_pass_is_on(p->opts.passes_off, "memory-reuse"),
                           .overlays =
                               p->kernel.by_clock && p->context->comm->simulated_cores > 0 && p->opts.memory_limit == 0,
                           .no_slices = !cvy_pass_is_on(p->opts.passes_off, "slices"),
                           .choices = p->kernel.choices,
                           .offers = p->kernel.offers,
                           .clock = p->kernel.by_clock ? &p->kernel.clock : NULL,
                           .blocking = p->opts.reduce_blocking,
                           .reduce = p->reduce.opts,
                           .deterministic = p->update.shape.shards > 0,
                           .tf32 = p->opts.tf32 != 0,
                           .compiles = p->kernel.planning != CVY_PLANNING_ESTIMATE};
}

static cvy_plan_opts step_opts(cvy_program *p, const cvy_program_task *s)
{
    const cvy_update_shape *shape = &p->update.shape;
    cvy_plan_opts opts = plan_opts(p);
    opts.micro_sums = !shape->shards ? CVY_MICRO_IN_ORDER : s->training ? CVY_MICRO_TREE : CVY_MICRO_SEPARATE;
    opts.sets = 1;
    if (s->training) {
        opts.comm = shape->comm;
        opts.deferred = shape->deferred;
        opts.zero1 = shape->halves;
        opts.sets = shape->gradient_sets;
        opts.feeds_ahead = p->update.def->end && !cvy_space_is_host(&p->context->space) && !p->kernel.by_clock;
    }
    return opts;
}

/* Plans the largest share of any rank, to fix the layouts. */
static cvy_status fix_layouts(cvy_program *p, cvy_program_task *s, int m)
{
    const cvy_batch largest = batch_of(p, s, m, 1), mine = batch_of(p, s, m, 0);
    const cvy_plan_opts opts = step_opts(p, s);
    cvy_graph *g = NULL;
    cvy_lowered *u = NULL;
    int fixed = 1;
    for (int i = 0; i < p->vars->count; i++)
        fixed &= p->vars->at[i]->layout_fixed;
    if (largest.local_n == mine.local_n || (fixed && p->vars->count))
        return CVY_OK;
    CVY_TRY(build_graph(p, s, &largest, &g));
    const cvy_status status = cvy_lowered_create(g, &opts, &u);
    cvy_lowered_destroy(&u);
    cvy_graph_destroy(&g);
    return status;
}

/* Micro-batches of one size on this rank use the same graph and lowered graph, if the global and the local size are
 * equal. Their batch-norm groups are then at the same positions. */
static cvy_status lowered_for(cvy_program *p, cvy_program_task *s, int m, cvy_lowered **out)
{
    const cvy_batch batch = batch_of(p, s, m, 0);
    const cvy_plan_opts opts = step_opts(p, s);
    for (int i = 0; i < s->split.nlowered; i++)
        if (s->split.graph[i]->batch.global_n == batch.global_n && s->split.graph[i]->batch.local_n == batch.local_n) {
            *out = s->split.lowered[i];
            return CVY_OK;
        }
    CVY_TRY(fix_layouts(p, s, m));
    cvy_graph *g = NULL;
    CVY_TRY(build_graph(p, s, &batch, &g));
    const cvy_status status = cvy_lowered_create(g, &opts, &s->split.lowered[s->split.nlowered]);
    if (status != CVY_OK) {
        cvy_graph_destroy(&g);
        return status;
    }
    s->split.graph[s->split.nlowered] = g;
    *out = s->split.lowered[s->split.nlowered++];
    return CVY_OK;
}

static cvy_status plan_step(cvy_program *p, cvy_program_task *s)
{
    const cvy_plan_opts opts = step_opts(p, s);
    cvy_lowered **lowered = NULL;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *lowered * (size_t)s->nmicro, &lowered));
    for (int m = 0; m < s->nmicro; m++)
        CVY_TRY(lowered_for(p, s, m, &lowered[m]));
    s->split.first_row = cvy_program_share(p, s, 0, 0).first;
    CVY_TRY(cvy_plan_create(lowered, s->nmicro, &opts, &s->plan));
    return opts.sets > 1 ? cvy_plan_create(lowered, s->nmicro, &opts, &s->alternate) : CVY_OK;
}

size_t cvy_program_arena_offset(const cvy_program *p, const cvy_program_task *s)
{
    size_t head = 0;
    for (int i = 0; i < p->ntask && !s->training; i++)
        head = CVY_MAX(head, p->task[i]->alternate ? cvy_plan_head_bytes(p->task[i]->plan) : 0);
    return head;
}

/* The graph of the largest share of a task. Kernels are chosen for the first task and the other turns of its step;
 * other graphs take them by node name, if they apply. */
static cvy_status largest_graph(cvy_program *p, int task, cvy_graph **out)
{
    const cvy_batch largest = batch_of(p, p->task[task], 0, 1);
    p->pipeline.plans_largest = 1;
    const cvy_status status = build_graph(p, p->task[task], &largest, out);
    p->pipeline.plans_largest = 0;
    return status;
}

static cvy_status first_graph(cvy_program *p, cvy_graph **out)
{
    return largest_graph(p, 0, out);
}

static double flop_of(const cvy_graph *g)
{
    double sum = 0;
    for (int n = 0; n < g->nnode; n++)
        sum += g->node[n]->removed ? 0 : cvy_node_cost(g->node[n]).flop;
    return sum;
}

/* The number of samples with which kernels are timed. Kernels that are fast with TIMED_FLOP of work for each thread are
 * fast with more, so planning takes no longer for larger batches. A power of two, because other batches then find these
 * times. Where times of kernels are more than a choice, all samples count. */
static int64_t timed_samples(const cvy_program *p, const cvy_graph *g)
{
    const double most = TIMED_FLOP * p->context->threads, flop = flop_of(g);
    const int64_t all = g->batch.local_n;
    int64_t n = TIMED_SAMPLES * p->context->threads;
    if (p->kernel.by_clock || p->context->comm->pretended || p->grid.nstages > 1 ||
        p->foreseen[CVY_AXIS_PIPELINE] > 1 || !cvy_space_is_host(&p->context->space))
        return all;
    while (n < all && flop * (double)n / (double)all < most)
        n *= 2;
    return CVY_MIN(n, all);
}

static cvy_status timed_graph(cvy_program *p, int task, cvy_graph **out)
{
    CVY_TRY(largest_graph(p, task, out));
    cvy_batch batch = (*out)->batch;
    const int64_t all = batch.local_n, n = timed_samples(p, *out);
    if (n == all)
        return CVY_OK;
    batch.local_n = n;
    p->kernel.timed_share = (double)n / (double)all;
    cvy_graph_destroy(out);
    return build_graph(p, p->task[task], &batch, out);
}

static cvy_status choose_kernels(cvy_program *p)
{
    const cvy_plan_opts opts = plan_opts(p);
    /* A deterministic program chooses by preference alone: measured times may lead to other choices elsewhere. */
    return cvy_kernels_are_reference(&opts.kernels) || p->update.shape.shards ? CVY_OK
                                                                              : cvy_program_tune(p, &opts, timed_graph);
}

static cvy_status cut(cvy_program *p)
{
    const cvy_plan_opts opts = plan_opts(p);
    CVY_TRY(cvy_program_cut(p, &opts, first_graph));
    return cvy_program_tune_stages(p, &opts, first_graph);
}

/* ---- the times of the parts that other ranks will have ---- */

/* Gives this rank a place in a grid of these lengths. NULL: in a grid of one rank. */
static void pretend(cvy_program *p, const int64_t *length, int64_t place)
{
    cvy_grid *grid = &p->grid;
    for (int a = CVY_AXIS_PIPELINE; a < CVY_AXES; a++) {
        grid->length[a] = length ? (int)CVY_MAX(length[a], 1) : 1;
        grid->at[a] = (int)(place % grid->length[a]);
        place /= grid->length[a];
    }
    grid->nstages = grid->length[CVY_AXIS_PIPELINE];
    grid->stage = grid->at[CVY_AXIS_PIPELINE];
    p->pipeline.nchunks = grid->nstages == 1 ? 1 : (int)CVY_MAX(p->opts.interleave, 1);
    p->pipeline.nstages = grid->nstages * p->pipeline.nchunks;
}

/* The graph of the largest micro-batch at this rank's place. */
static cvy_status graph_here(cvy_program *p, cvy_graph **out)
{
    const cvy_batch largest = batch_of(p, p->task[0], 0, 1);
    return build_graph(p, p->task[0], &largest, out);
}

cvy_status cvy_program_price_task(cvy_program *p, int task)
{
    cvy_program_task *s = p->task[task];
    cvy_plan_opts opts = step_opts(p, s);
    cvy_tuning tuning = {0};
    cvy_tree *none = NULL;
    const int looks_up = p->context->comm->nranks > 1 || p->kernel.timed_share > 0;
    if (!p->kernel.tuned || task == 0)
        return CVY_OK;
    CVY_TRY(cvy_tree_parse_text(p->pool, "no choices", "{}", 2, &none));
    opts.choices = opts.choices ? opts.choices : none;
    CVY_TRY(cvy_plan_tune(s->split.graph[0], &opts, looks_up ? CVY_PLANNING_ESTIMATE : p->kernel.planning,
                          p->kernel.wisdom, &tuning));
    cvy_mem_free(&tuning.choices);
    if (tuning.nmeasured > 0 && cvy_wisdom_save(p->kernel.wisdom) != CVY_OK)
        cvy_log(p->context, CVY_LOG_WARN, "wisdom could not be saved: %s", cvy_error_text());
    s->price.is_known = 1;
    s->price.micro_ms = tuning.micro_ms;
    s->price.update_ms = tuning.update_ms;
    s->price.ncall = tuning.ncall;
    s->price.nunknown = tuning.nunknown;
    return CVY_OK;
}

/* The variables of a part have other shapes than those of this program. */
static cvy_status price_here(cvy_program *p)
{
    const cvy_plan_opts opts = plan_opts(p);
    cvy_vars *whole = p->vars;
    p->vars = NULL;
    cvy_status status = cvy_vars_create(&p->vars);
    if (status == CVY_OK)
        status = cvy_program_price(p, &opts, graph_here);
    cvy_vars_destroy(&p->vars);
    p->vars = whole;
    return status;
}

/* Chooses kernels for the parts of layers and samples as the simulated ranks will do, and finds their times at each
 * place of the grid. */
static cvy_status foresee_parts(cvy_program *p, int64_t nplaces)
{
    const cvy_tree *choices = p->kernel.choices;
    const cvy_tuning tuning = p->kernel.tuning;
    p->kernel.choices = NULL;
    p->kernel.tuning = (cvy_tuning){0};
    cvy_status status = choose_kernels(p);
    if (status == CVY_OK)
        status = cut(p);
    for (int64_t place = 0; place < nplaces && status == CVY_OK && p->kernel.planning != CVY_PLANNING_ESTIMATE;
         place++) {
        pretend(p, p->foreseen, place);
        status = price_here(p);
    }
    if (status == CVY_OK && cvy_wisdom_save(p->kernel.wisdom) != CVY_OK)
        cvy_log(p->context, CVY_LOG_WARN, "wisdom could not be saved: %s", cvy_error_text());
    cvy_mem_free(&p->kernel.tuning.choices);
    p->kernel.choices = choices;
    p->kernel.tuning = tuning;
    return status;
}

/* This rank keeps the whole network. */
static cvy_status foresee(cvy_program *p)
{
    const int64_t *length = p->foreseen;
    int64_t nplaces = 1;
    for (int a = CVY_AXIS_PIPELINE; a < CVY_AXES; a++)
        nplaces *= CVY_MAX(length[a], 1);
    if (nplaces == 1)
        return CVY_OK;
    pretend(p, length, 0);
    const cvy_status status = cvy_grid_splits(&p->grid) ? foresee_parts(p, nplaces) : cut(p);
    pretend(p, NULL, 0);
    cvy_index_free(&p->pipeline.of_layer);
    cvy_keys_free(&p->pipeline.layer);
    return status;
}

/* Finds which training steps use the same optimiser state: their updates are counted together. */
static cvy_status find_shares(cvy_program *p)
{
    uint64_t *users = NULL; /* of each variable: a bit for each step that writes it */
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *users * ((size_t)p->vars->count + 1), &users));
    for (int collect = 1; collect >= 0; collect--)
        for (int i = 0; i < p->ntask; i++) {
            const cvy_graph *g = p->task[i]->split.graph[0];
            p->task[i]->shares |= UINT64_C(1) << i;
            for (int v = 0; v < g->nvalue; v++) {
                const cvy_value *value = g->value[v];
                if (value->kind != CVY_VALUE_VARIABLE || value->variable->role != CVY_ROLE_STATE)
                    continue;
                if (collect)
                    users[value->variable->index] |= UINT64_C(1) << i;
                else
                    p->task[i]->shares |= users[value->variable->index];
            }
        }
    return CVY_OK;
}

/* A variable that no graph of this stage uses has no layout. */
static void find_elsewhere(cvy_program *p)
{
    for (int i = 0; i < p->vars->count; i++)
        p->vars->at[i]->elsewhere = cvy_grid_is_used(&p->grid) && !p->vars->at[i]->layout_fixed;
}

static cvy_status plan_steps(cvy_program *p)
{
    p->memory.arena_bytes = 0;
    for (int i = 0; i < p->ntask; i++) {
        cvy_program_drop_plan(p->task[i]);
        CVY_TRY(plan_step(p, p->task[i]));
    }
    find_elsewhere(p);
    for (int i = 0; i < p->ntask; i++)
        p->memory.arena_bytes =
            CVY_MAX(p->memory.arena_bytes, cvy_program_arena_offset(p, p->task[i]) + p->task[i]->plan->arena_bytes);
    if (p->update.def->plan.planned)
        CVY_TRY(p->update.def->plan.planned(p));
    return find_shares(p);
}

/* Makes the communicators of the sets of axes over which accumulators are summed: together with the data axis, or apart
 * from it (reduce_bucket.h: axes_in_turn). */
static cvy_status join_axes(cvy_program *p)
{
    const int apart = p->update.shape.shards || p->update.shape.comm->nranks == 1;
    const unsigned data = apart ? 0 : CVY_AXIS_BIT(CVY_AXIS_DATA);
    uint64_t wanted = 0;
    if (!cvy_grid_is_used(&p->grid))
        return CVY_OK;
    for (int i = 0; i < p->ntask; i++)
        for (int k = 0; k < p->task[i]->split.nlowered; k++) {
            const cvy_graph *g = p->task[i]->split.graph[k];
            for (int v = 0; v < g->nvalue; v++)
                if (g->value[v]->bucket >= 0 && g->value[v]->over)
                    wanted |= UINT64_C(1) << (g->value[v]->over | data);
        }
    return cvy_grid_join(&p->grid, wanted);
}

cvy_status cvy_program_prepare(cvy_program *p)
{
    CVY_CHECK(!p->planned && p->ntask > 0, CVY_E_ARGUMENT,
              "a program is planned once, after at least one step was added");
    CVY_TRY(cvy_grid_connect(&p->grid));
    p->update.shape.comm = p->update.shape.comm ? p->update.shape.comm : p->grid.data;
    cvy_team before;
    cvy_status status = cvy_team_enter(p->context->threads, &before);
    for (int i = 0; i < p->ntask && status == CVY_OK; i++)
        status = split_batch(p, p->task[i]);
    status = cvy_comm_agree(p->context->comm, status);
    if (status == CVY_OK)
        status = cvy_program_size_buckets(p);
    if (status == CVY_OK)
        status = choose_kernels(p);
    if (status == CVY_OK)
        status = foresee(p);
    if (status == CVY_OK)
        status = cut(p);
    if (status == CVY_OK)
        status = cvy_comm_agree(p->context->comm, plan_steps(p));
    if (status == CVY_OK)
        status = join_axes(p);
    if (status == CVY_OK)
        status = cvy_program_share_names(p);
    if (status == CVY_OK && p->opts.memory_limit > 0)
        status = cvy_program_fit_limit(p, plan_steps);
    cvy_team_leave(&before);
    p->planned = 1;
    CVY_TRY(cvy_comm_agree(p->context->comm, status));
    CVY_TRY(cvy_program_check_consistency(p));
    CVY_TRY(cvy_program_check_messages(p));
    return cvy_program_gather_choices(p);
}

cvy_status cvy_program_plan(cvy_program *p)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    CVY_TRY(cvy_context_check_idle(p->context, p));
    CVY_TRY(cvy_program_compare_options(p));
    cvy_team_start(p->context->threads);
    CVY_TRY(cvy_program_prepare(p));
    return cvy_program_allocate(p);
}
