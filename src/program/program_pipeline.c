/*
 * program_pipeline.c: the pipeline of a program: the grid of ranks, and which layers each stage holds.
 *
 * Rank 0 cuts by the times that it knows, and tells all ranks, so that they cut alike.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "program/program_impl.h"
#include "program/program_options.h"

cvy_status cvy_program_open_pipeline(cvy_program *p)
{
    const int64_t length[CVY_AXES] = {[CVY_AXIS_PIPELINE] = CVY_MAX(p->opts.pipeline, 1),
                                      [CVY_AXIS_TENSOR] = CVY_MAX(p->opts.tensor, 1),
                                      [CVY_AXIS_SPACE0] = CVY_MAX(p->opts.spatial[0], 1),
                                      [CVY_AXIS_SPACE1] = CVY_MAX(p->opts.spatial[1], 1),
                                      [CVY_AXIS_SPACE2] = CVY_MAX(p->opts.spatial[2], 1)};
    p->pipeline.order = (cvy_pipeline_order)cvy_program_word_index("pipeline_order", p->opts.pipeline_order);
    CVY_TRY(cvy_grid_arrange(p->context->comm, length, &p->grid));
    p->pipeline.nchunks = p->grid.nstages == 1 ? 1 : (int)CVY_MAX(p->opts.interleave, 1);
    p->pipeline.nstages = p->grid.nstages * p->pipeline.nchunks;
    return CVY_OK;
}

static cvy_status list_layers(cvy_program *p, const cvy_cut *cut)
{
    for (int k = 0, number = 0; k < cut->nlayer; k++) {
        CVY_TRY(cvy_keys_add(&p->pipeline.layer, cut->layer[k].name, &number));
        p->pipeline.all_ms += cut->layer[k].ms;
    }
    return CVY_OK;
}

/* Reads the first layers of an earlier plan. Returns 0 if they are not a cut of these layers, with each placed layer on
 * its stage. */
static int read_saved_cut(cvy_program *p, const cvy_cut *cut, const cvy_tree *names)
{
    const int nstages = p->pipeline.nstages;
    int *first = p->pipeline.first, stage = 0;
    if (!names || names->kind != CVY_TREE_LIST || names->count != nstages)
        return 0;
    for (int s = 0; s < nstages; s++) {
        first[s] = names->child[s]->text ? cvy_keys_find(&p->pipeline.layer, names->child[s]->text) : -1;
        if (first[s] < 0 || (s == 0 ? first[s] != 0 : first[s] <= first[s - 1]))
            return 0;
    }
    for (int k = 0; k < cut->nlayer; k++) {
        stage += stage < nstages && k == first[stage];
        if (cut->layer[k].placed && cut->layer[k].placed != stage)
            return 0;
    }
    return 1;
}

static int64_t number_of(const cvy_tree *map, const char *key)
{
    const cvy_tree *node = map->kind == CVY_TREE_MAP ? cvy_tree_get(map, key) : NULL;
    int64_t value = 0;
    return node && cvy_tree_int(node, &value) == CVY_OK ? value : 0;
}

static int is_of_this_grid(cvy_program *p)
{
    const cvy_grid *grid = &p->grid;
    const int64_t nstages = number_of(p->pipeline.saved, "stages"), ndata = number_of(p->pipeline.saved, "ranks_each"),
                  nchunks = number_of(p->pipeline.saved, "interleave");
    if (nstages == p->pipeline.nstages && ndata == grid->ndata && nchunks == p->pipeline.nchunks)
        return 1;
    snprintf(
        p->pipeline.note, sizeof p->pipeline.note,
        "the plan was made for %lld stages of %lld rank%s each, and this run has %d of %d: the plan's cut is not used",
        (long long)nstages, (long long)ndata, ndata == 1 ? "" : "s", p->pipeline.nstages, grid->ndata);
    return 0;
}

/* Whether the cut of an earlier plan is used again, so that a resumed run computes the same bits. */
static int takes_saved_cut(cvy_program *p, const cvy_cut *cut)
{
    if (!p->pipeline.saved || !is_of_this_grid(p))
        return 0;
    if (read_saved_cut(p, cut, cvy_tree_get(p->pipeline.saved, "first_layers")))
        return 1;
    snprintf(
        p->pipeline.note, sizeof p->pipeline.note,
        "the plan's cut into stages does not fit the layers of this network or the stages on which they are placed: "
        "it is not used");
    return 0;
}

static cvy_status choose(cvy_program *p, const cvy_plan_opts *opts, cvy_graph *graph)
{
    const int nstages = p->pipeline.nstages;
    cvy_lowered *lowered = NULL;
    cvy_cut_places places = {0};
    cvy_cut cut = {0};
    cvy_status status = cvy_program_run_partitions(p, graph);
    if (status == CVY_OK)
        status = cvy_program_list_places(p, &places);
    if (status == CVY_OK)
        status = cvy_lowered_create(graph, opts, &lowered);
    if (status == CVY_OK)
        status = cvy_cut_list(lowered, p->kernel.wisdom, p->context->threads, &places, &cut);
    if (status == CVY_OK)
        status = list_layers(p, &cut);
    if (status == CVY_OK && !takes_saved_cut(p, &cut))
        status = cvy_cut_choose(&cut, nstages, p->pipeline.first);
    if (status == CVY_OK)
        p->pipeline.slowest_ms = cvy_cut_slowest_ms(&cut, nstages, p->pipeline.first);
    cvy_cut_free(&cut);
    cvy_program_free_places(&places);
    cvy_lowered_destroy(&lowered);
    return status;
}

/* Layouts that were chosen for the whole graph are forgotten: each stage chooses those of its own weights. */
static void forget_layouts(const cvy_program *p)
{
    for (int i = 0; i < p->vars->count; i++) {
        p->vars->at[i]->layout = cvy_layout_plain();
        p->vars->at[i]->layout_fixed = 0;
    }
}

static cvy_status number_layers(cvy_program *p)
{
    const int nstages = p->pipeline.nstages;
    for (int k = 0, stage = 0; k < p->pipeline.layer.count; k++) {
        while (stage + 1 < nstages && k >= p->pipeline.first[stage + 1])
            stage++;
        CVY_TRY(cvy_index_add(&p->pipeline.of_layer, p->pipeline.layer.text[k], stage));
    }
    return CVY_OK;
}

cvy_status cvy_program_cut(cvy_program *p, const cvy_plan_opts *opts,
                           cvy_status (*make)(cvy_program *program, cvy_graph **out))
{
    cvy_comm *comm = p->context->comm;
    const size_t n = (size_t)p->pipeline.nstages;
    cvy_graph *graph = NULL;
    if (n == 1) {
        (void)(p->pipeline.saved && is_of_this_grid(p));
        return CVY_OK;
    }
    cvy_status status = cvy_pool_alloc(p->pool, sizeof *p->pipeline.first * n, &p->pipeline.first);
    if (status == CVY_OK)
        status = make(p, &graph);
    if (status == CVY_OK)
        status = choose(p, opts, graph);
    cvy_graph_destroy(&graph);
    forget_layouts(p);
    CVY_TRY(cvy_comm_agree(comm, status));
    CVY_TRY(comm->ops->broadcast(comm, p->pipeline.first, sizeof *p->pipeline.first * n, 0));
    status = number_layers(p);
    return cvy_comm_agree(comm, status == CVY_OK ? cvy_program_check_stages(p) : status);
}

/* Each loss is zero on all stages but one, so the order of the additions does not matter. */
cvy_status cvy_program_share_losses(const cvy_program *p, const cvy_program_task *s)
{
    cvy_comm *comm = p->grid.pipeline;
    if (!comm || !p->update.shape.own_losses)
        return CVY_OK;
    for (int i = 0; i < s->nloss; i++) {
        double *loss = cvy_plan_find(s->plan, s->loss[i].value, 0);
        CVY_CHECK(loss, CVY_E_INTERNAL, "the loss %s has no memory", s->loss[i].name);
        CVY_TRY(comm->ops->allreduce(comm, loss, 1, CVY_DTYPE_F64, CVY_REDUCE_SUM));
    }
    return CVY_OK;
}

/* A step takes nmicro + n - 1 times the slowest stage, and every rank computes for all_ms / n of each micro-batch. */
double cvy_program_bubble(const cvy_program *p, int task)
{
    const int n = p->grid.nstages, nmicro = p->task[task]->nmicro, each = p->pipeline.nchunks;
    return n == 1 ? 0 : 1 - nmicro * p->pipeline.all_ms / n / ((each * nmicro + n - 1) * p->pipeline.slowest_ms);
}

int64_t cvy_program_sent_bytes(const cvy_program *p)
{
    const cvy_grid *g = &p->grid;
    int64_t bytes = g->all->sent_bytes;
    for (int s = 0; s < CVY_AXIS_SETS; s++)
        bytes += g->is_own[s] ? g->over[s]->sent_bytes : 0;
    return bytes;
}

static void describe_pipeline(const cvy_program *p, int task, cvy_text *out)
{
    const cvy_grid *grid = &p->grid;
    const int n = p->pipeline.nstages, each = p->pipeline.nchunks, nmicro = p->task[task]->nmicro;
    if (*p->pipeline.note)
        cvy_text_add(out, "pipeline: %s\n", p->pipeline.note);
    if (n == 1)
        return;
    cvy_text_add(out, "pipeline: %d stages of %d rank%s, ", n, grid->ndata, grid->ndata == 1 ? "" : "s");
    if (each > 1)
        cvy_text_add(out, "%d on each rank, ", each);
    cvy_text_add(out, "%d micro-batch%s; ", nmicro, nmicro == 1 ? "" : "es");
    for (int s = 0; s < n; s++)
        cvy_text_add(out, "%s%s",
                     s == 0       ? "the stages begin with "
                     : s == n - 1 ? " and "
                                  : ", ",
                     p->pipeline.layer.text[p->pipeline.first[s]]);
    cvy_text_add(out, "\n");
    cvy_text_add(out, "pipeline: at least %.0f %% of a step is idle (bubble)%s\n", 100 * cvy_program_bubble(p, task),
                 nmicro < 4 * grid->nstages ? "; more micro-batches, by train.accumulate, make it less" : "");
    if (each > 1 && nmicro % grid->nstages != 0 && p->pipeline.order == CVY_PIPELINE_1F1B)
        cvy_text_add(out,
                     "pipeline: interleaved stages run all forward passes first, because %d micro-batches are not a "
                     "multiple of %d ranks\n",
                     nmicro, grid->nstages);
}

void cvy_program_describe_grid(const cvy_program *p, int task, cvy_text *out)
{
    describe_pipeline(p, task, out);
    cvy_program_describe_ways(p, out);
}

void cvy_program_close_pipeline(cvy_program *p)
{
    cvy_index_free(&p->pipeline.of_layer);
    cvy_keys_free(&p->pipeline.layer);
    cvy_keys_free(&p->placed.layer);
    cvy_keys_free(&p->ways.tensor_layer);
    cvy_index_free(&p->ways.of_layer);
    cvy_mem_free(&p->placed.stage);
    cvy_mem_free(&p->pipeline.choices);
    cvy_grid_disconnect(&p->grid);
}
