/*
 * program_pipeline.c: the pipeline of a program: the grid of ranks, and which layers each stage holds.
 *
 * Rank 0 cuts by the times that it knows, and tells all ranks, so that they cut alike.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "plan/plan_cut.h"
#include "program/program.h"

static cvy_status read_order(cvy_program *p)
{
    static const char *const words[] = {[CVY_PIPELINE_1F1B] = "1f1b", [CVY_PIPELINE_GPIPE] = "gpipe"};
    const char *text = p->opts.pipeline_order;
    for (int i = 0; text && i < CVY_COUNT(words); i++)
        if (strcmp(text, words[i]) == 0) {
            p->pipeline.order = (cvy_pipeline_order)i;
            return CVY_OK;
        }
    CVY_CHECK(!text, CVY_E_CONFIG, "opts.pipeline_order is '%s', expected 1f1b or gpipe", text);
    p->pipeline.order = CVY_PIPELINE_1F1B;
    return CVY_OK;
}

cvy_status cvy_program_open_pipeline(cvy_program *p)
{
    CVY_TRY(read_order(p));
    CVY_CHECK(p->opts.pipeline >= 0, CVY_E_CONFIG, "opts.pipeline is %lld, expected a number of stages",
              (long long)p->opts.pipeline);
    CVY_TRY(cvy_grid_arrange(p->context->comm, CVY_MAX(p->opts.pipeline, 1), &p->pipeline.grid));
    if (p->pipeline.grid.nstages == 1)
        return CVY_OK;
    CVY_CHECK(p->opts.update_mode == CVY_UPDATE_SYNC && !p->opts.overlap_forward && !p->opts.shards &&
                  !p->opts.gradients_only,
              CVY_E_CONFIG,
              "opts.pipeline is %d, which goes with update mode sync only, without overlap_forward, shards and "
              "gradients_only",
              p->pipeline.grid.nstages);
    CVY_CHECK(cvy_space_is_host(&p->context->space), CVY_E_UNSUPPORTED,
              "opts.pipeline: stages exchange values in the host's memory, and those of the backend %s are elsewhere",
              p->context->space.backend->name);
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

cvy_status cvy_program_set_stage(cvy_program *p, const char *layer, int64_t stage)
{
    const int nstages = p->pipeline.grid.nstages;
    int number = 0;
    CVY_CHECK(stage >= 1 && stage <= nstages, CVY_E_CONFIG,
              "layer %s is placed on stage %lld, and opts.pipeline is %d: take a stage from 1 to %d", layer,
              (long long)stage, nstages, nstages);
    CVY_TRY(cvy_keys_add(&p->pipeline.placed, layer, &number));
    CVY_TRY(cvy_mem_reserve(&p->pipeline.placed_on, &p->pipeline.placed_room, number, sizeof *p->pipeline.placed_on));
    int *on = &p->pipeline.placed_on[number];
    CVY_CHECK(*on == 0 || *on == stage, CVY_E_CONFIG,
              "layer %s is placed on stage %d and on stage %lld: leave one of them out", layer, *on, (long long)stage);
    *on = (int)stage;
    return CVY_OK;
}

/* Cuts where the user has placed layers. A layer that is not placed stays with the layer before it. */
static cvy_status cut_as_placed(cvy_program *p, const cvy_cut *cut)
{
    int stage = 0; /* stages that have a layer so far */
    for (int k = 0; k < cut->nlayer; k++) {
        const int at = cvy_keys_find(&p->pipeline.placed, cut->layer[k].name);
        const int wanted = at >= 0 ? p->pipeline.placed_on[at] : CVY_MAX(stage, 1);
        CVY_CHECK(wanted >= stage, CVY_E_CONFIG,
                  "layer %s is placed on stage %d, but layers before it are on stage %d: take stage %d or a later one",
                  cut->layer[k].name, wanted, stage, stage);
        CVY_CHECK(wanted <= stage + 1, CVY_E_CONFIG,
                  "layer %s is placed on stage %d, but no layer before it is on stage %d: every stage needs a layer",
                  cut->layer[k].name, wanted, wanted - 1);
        if (wanted > stage)
            p->pipeline.first[stage++] = k;
    }
    CVY_CHECK(stage == p->pipeline.grid.nstages, CVY_E_CONFIG,
              "no layer is placed on stage %d of %d: every stage needs a layer", stage + 1, p->pipeline.grid.nstages);
    return CVY_OK;
}

static cvy_status choose(cvy_program *p, const cvy_plan_opts *opts, cvy_graph *graph)
{
    const cvy_grid *grid = &p->pipeline.grid;
    cvy_lowered *lowered = NULL;
    cvy_cut cut = {0};
    CVY_TRY(cvy_program_run_partitions(p, graph));
    CVY_TRY(cvy_lowered_create(graph, opts, &lowered));
    cvy_status status = cvy_cut_list(lowered, p->kernel.wisdom, p->context->threads, &cut);
    if (status == CVY_OK)
        status = list_layers(p, &cut);
    if (status == CVY_OK)
        status =
            p->pipeline.placed.count ? cut_as_placed(p, &cut) : cvy_cut_choose(&cut, grid->nstages, p->pipeline.first);
    if (status == CVY_OK)
        p->pipeline.slowest_ms = cvy_cut_slowest_ms(&cut, grid->nstages, p->pipeline.first);
    cvy_cut_free(&cut);
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
    const int nstages = p->pipeline.grid.nstages;
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
    const size_t n = (size_t)p->pipeline.grid.nstages;
    cvy_graph *graph = NULL;
    if (n == 1)
        return CVY_OK;
    cvy_status status = cvy_pool_alloc(p->pool, sizeof *p->pipeline.first * n, &p->pipeline.first);
    if (status == CVY_OK)
        status = make(p, &graph);
    if (status == CVY_OK)
        status = choose(p, opts, graph);
    cvy_graph_destroy(&graph);
    forget_layouts(p);
    CVY_TRY(cvy_comm_agree(comm, status));
    CVY_TRY(comm->ops->broadcast(comm, p->pipeline.first, sizeof *p->pipeline.first * n, 0));
    return cvy_comm_agree(comm, number_layers(p));
}

void cvy_program_describe_pipeline(const cvy_program *p, int task, cvy_text *out)
{
    const cvy_grid *grid = &p->pipeline.grid;
    const int n = grid->nstages, nmicro = p->task[task]->nmicro;
    if (n == 1)
        return;
    cvy_text_add(out, "pipeline: %d stages of %d rank%s, %d micro-batch%s; ", n, grid->ndata,
                 grid->ndata == 1 ? "" : "s", nmicro, nmicro == 1 ? "" : "es");
    for (int s = 0; s < n; s++)
        cvy_text_add(out, "%s%s",
                     s == 0       ? "the stages begin with "
                     : s == n - 1 ? " and "
                                  : ", ",
                     p->pipeline.layer.text[p->pipeline.first[s]]);
    cvy_text_add(out, "\n");
    /* A step takes nmicro + n - 1 times the slowest stage, and every rank computes for all_ms / n of each micro-batch.
     */
    cvy_text_add(out, "pipeline: at least %.0f %% of a step is idle (bubble)%s\n",
                 100 * (1 - nmicro * p->pipeline.all_ms / n / ((nmicro + n - 1) * p->pipeline.slowest_ms)),
                 nmicro < 4 * n ? "; more micro-batches, by train.accumulate, make it less" : "");
}

void cvy_program_close_pipeline(cvy_program *p)
{
    cvy_index_free(&p->pipeline.of_layer);
    cvy_keys_free(&p->pipeline.layer);
    cvy_keys_free(&p->pipeline.placed);
    cvy_mem_free(&p->pipeline.placed_on);
    cvy_grid_disconnect(&p->pipeline.grid);
}
