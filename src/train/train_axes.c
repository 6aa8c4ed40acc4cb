/*
 * train_axes.c: where the time of the steps went, for each axis of the process grid and each stage of a pipeline.
 *
 * Each rank adds up its own steps. The ranks compare their sums at the end of an epoch only, where they meet anyway, so
 * a step has no collective for it. Without a pipeline nothing is written, because seconds_exposed_comm says it all.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "train/trainer.h"

static const char *const axis_key[CVY_COMM_AXES] = {
    [CVY_COMM_DATA] = "seconds_exposed_data",
    [CVY_COMM_PIPELINE] = "seconds_exposed_pipeline",
    [CVY_COMM_TENSOR] = "seconds_exposed_tensor",
    [CVY_COMM_SPATIAL] = "seconds_exposed_spatial",
};

static const cvy_grid *grid_of(const cvy_trainer *t)
{
    return cvy_program_grid(t->session.program);
}

static int has_axes(const cvy_trainer *t)
{
    return grid_of(t)->ndata < grid_of(t)->all->nranks;
}

static void add(cvy_step_sums *sums, const cvy_step_time *time, double data_s)
{
    sums->steps++;
    sums->data_s += data_s;
    sums->compute_s += time->total - time->exposed_comm;
    for (int a = 0; a < CVY_COMM_AXES; a++)
        sums->axis_s[a] += cvy_step_time_axis(time, (cvy_comm_axis)a);
    sums->bubble_s += time->bubble;
}

void cvy_trainer_note_axes(cvy_trainer *t, const cvy_step_time *time, double data_s)
{
    add(&t->axes.window, time, data_s);
    add(&t->axes.epoch, time, data_s);
}

/* Adds means over the steps. An axis on which nobody waited is left out. */
static void add_axes(const cvy_step_sums *sums, cvy_json *json)
{
    for (int a = 0; a < CVY_COMM_AXES; a++)
        if (sums->axis_s[a] > 0)
            cvy_json_real(json, axis_key[a], sums->axis_s[a] / sums->steps);
    cvy_json_real(json, "seconds_bubble", sums->bubble_s / sums->steps);
}

void cvy_trainer_log_axes(cvy_trainer *t, cvy_json *json)
{
    if (has_axes(t) && t->axes.window.steps > 0)
        add_axes(&t->axes.window, json);
    t->axes.window = (cvy_step_sums){0};
}

/* ---- the stages of a pipeline, at the end of an epoch ---- */

static double total_s(const cvy_step_sums *s)
{
    double sum = s->data_s + s->compute_s + s->agree_s;
    for (int a = 0; a < CVY_COMM_AXES; a++)
        sum += s->axis_s[a];
    return sum;
}

static void merge(cvy_step_sums *into, const cvy_step_sums *s)
{
    into->steps += s->steps;
    into->data_s += s->data_s;
    into->compute_s += s->compute_s;
    into->agree_s += s->agree_s;
    into->bubble_s += s->bubble_s;
    for (int a = 0; a < CVY_COMM_AXES; a++)
        into->axis_s[a] += s->axis_s[a];
}

static void log_stage(cvy_trainer *t, int64_t epoch, int stage, const cvy_step_sums *sums)
{
    cvy_json json = {0};
    cvy_json_open(&json, NULL, '{');
    cvy_json_string(&json, "kind", "stage");
    cvy_json_int(&json, "step", t->step);
    cvy_json_int(&json, "epoch", epoch);
    cvy_json_int(&json, "stage", stage + 1);
    cvy_json_int(&json, "ranks", grid_of(t)->ndata);
    cvy_json_real(&json, "seconds_data", sums->data_s / sums->steps);
    cvy_json_real(&json, "seconds_compute", sums->compute_s / sums->steps);
    add_axes(sums, &json);
    cvy_json_real(&json, "seconds_agreement", sums->agree_s / sums->steps);
    cvy_json_close(&json, '}');
    cvy_trainer_write_line(t, &json);
}

/* all: of each rank, with its stage. */
static double log_stages(cvy_trainer *t, int64_t epoch, const cvy_step_sums *all)
{
    double bubble_s = 0, spent_s = 0;
    for (int stage = 0; stage < grid_of(t)->nstages; stage++) {
        cvy_step_sums sums = {0};
        for (int r = 0; r < grid_of(t)->all->nranks; r++)
            if ((int)all[r].stage == stage)
                merge(&sums, &all[r]);
        bubble_s += sums.bubble_s;
        spent_s += total_s(&sums);
        log_stage(t, epoch, stage, &sums);
    }
    return spent_s > 0 ? bubble_s / spent_s : 0;
}

cvy_status cvy_trainer_end_epoch_axes(cvy_trainer *t, int64_t epoch, double *bubble_out)
{
    cvy_comm *comm = t->session.context->comm;
    cvy_step_sums *all = NULL;
    *bubble_out = -1;
    if (grid_of(t)->nstages == 1 || t->axes.epoch.steps == 0)
        return CVY_OK;
    t->axes.epoch.stage = grid_of(t)->stage;
    CVY_TRY(cvy_comm_alloc(comm, sizeof *all * (size_t)comm->nranks, &all));
    const cvy_status status = comm->ops->allgather(comm, &t->axes.epoch, sizeof t->axes.epoch, all);
    if (status == CVY_OK && comm->rank == 0)
        *bubble_out = log_stages(t, epoch, all);
    cvy_mem_free(&all);
    t->axes.epoch = (cvy_step_sums){0};
    return status;
}
