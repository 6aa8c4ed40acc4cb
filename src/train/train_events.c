/*
 * train_events.c: what a run writes for TensorBoard: the lines of metrics.jsonl as scalars, the graph of the network,
 * and histograms of the weights at the ends of epochs.
 *
 * Rank 0 writes. The files are in a folder of log.tensorboard with the name of the run folder, so that one folder may
 * have several runs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/base_file.h"
#include "checkpoint/checkpoint_tiles.h"
#include "train/trainer.h"

static int is_root(const cvy_trainer *t)
{
    return t->session.context->comm->rank == 0;
}

/* A fault is a warning, and the training continues. One warning is enough: on a full disk small events may still fit
 * between larger ones. */
static void warn_of(cvy_trainer *t, cvy_status status)
{
    if (status != CVY_OK && !t->folder.events_failed)
        cvy_log(t->session.context, CVY_LOG_WARN,
                "log.tensorboard: %s; the training continues, and events are lost as long as they cannot be written",
                cvy_error_text());
    t->folder.events_failed |= status != CVY_OK;
}

/* ---- the beginning ---- */

/* The whole network, with the losses and all layers that exist in training only, and without passes. */
static cvy_status write_graph(const cvy_trainer *t)
{
    cvy_vars *vars = NULL;
    cvy_graph *graph = NULL;
    const cvy_graph_opts opts = {
        .name = t->session.job->name, .batch = cvy_batch_share(1, 0, 1), .training = 1, .dtype = CVY_DTYPE_F32};
    CVY_TRY(cvy_vars_create(&vars));
    cvy_status status = cvy_model_instantiate(t->session.model, vars, &opts, NULL, 0, NULL, &graph);
    if (status == CVY_OK)
        status = cvy_events_add_graph(t->folder.events, graph);
    cvy_graph_destroy(&graph);
    cvy_vars_destroy(&vars);
    return status;
}

/* The folder of the run in log.tensorboard. */
static cvy_status folder_of(const cvy_trainer *t, char **out)
{
    char run[sizeof t->folder.path];
    snprintf(run, sizeof run, "%s", t->folder.path);
    for (size_t n = strlen(run); n > 1 && run[n - 1] == '/'; n--)
        run[n - 1] = 0;
    const char *name = cvy_file_base_name(run);
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        name = t->session.job->name;
    return cvy_mem_printf(out, "%s/%s", t->session.job->log.tensorboard, name);
}

static cvy_status open_events(cvy_trainer *t)
{
    char *folder = NULL;
    CVY_TRY(folder_of(t, &folder));
    cvy_status status = cvy_events_open(folder, t->opts->resume ? t->step : -1, &t->folder.events);
    if (status == CVY_OK && cvy_events_had_files(t->folder.events) && !t->opts->resume)
        cvy_log(t->session.context, CVY_LOG_WARN,
                "%s holds events of an earlier run of this name: TensorBoard shows those of the new run only", folder);
    else if (status != CVY_OK)
        status = cvy_error_prefix(status, "log.tensorboard");
    cvy_mem_free(&folder);
    return status;
}

cvy_status cvy_trainer_open_events(cvy_trainer *t)
{
    cvy_comm *comm = t->session.context->comm;
    const struct cvy_job_log *log = &t->session.job->log;
    cvy_status status = CVY_OK;
    t->folder.histograms = log->tensorboard ? log->tensorboard_histograms : 0;
    if (is_root(t) && log->tensorboard)
        status = open_events(t);
    CVY_TRY(cvy_comm_agree(comm, status));
    /* the section `log` may differ between ranks, and all ranks take part in histograms */
    CVY_TRY(comm->ops->broadcast(comm, &t->folder.histograms, sizeof t->folder.histograms, 0));
    if (t->folder.events && !(t->opts->resume && cvy_events_had_files(t->folder.events)))
        warn_of(t, write_graph(t));
    return CVY_OK;
}

void cvy_trainer_write_scalars(cvy_trainer *t, const cvy_json *line)
{
    warn_of(t, cvy_events_add_line(t->folder.events, line));
}

void cvy_trainer_close_events(cvy_trainer *t)
{
    const int reason = cvy_events_close(&t->folder.events);
    if (reason != 0)
        cvy_log(t->session.context, CVY_LOG_WARN,
                "log.tensorboard: cannot close the event file: %s; its last events may be missing", strerror(reason));
}

/* ---- histograms ---- */

static cvy_status count_values(const cvy_variable *v, cvy_histogram *h)
{
    const int64_t n = cvy_shape_elems(&v->shape);
    void *plain = NULL;
    if (cvy_space_is_host(v->space) && cvy_layout_is_plain(&v->layout)) {
        cvy_histogram_add(h, v->data, v->dtype, n);
        return CVY_OK;
    }
    CVY_TRY(cvy_mem_alloc((size_t)n * cvy_dtype_bytes(v->dtype), &plain));
    const cvy_status status = cvy_variable_read(v, plain);
    if (status == CVY_OK)
        cvy_histogram_add(h, plain, v->dtype, n);
    cvy_mem_free(&plain);
    return status;
}

static cvy_status merge(cvy_comm *comm, cvy_histogram *h)
{
    double ends[] = {h->min, -h->max}, sums[] = {h->sum, h->sum_squares};
    CVY_TRY(comm->ops->allreduce(comm, ends, CVY_COUNT(ends), CVY_DTYPE_F64, CVY_REDUCE_MIN));
    CVY_TRY(comm->ops->allreduce(comm, sums, CVY_COUNT(sums), CVY_DTYPE_F64, CVY_REDUCE_SUM));
    CVY_TRY(comm->ops->allreduce(comm, h->count, CVY_HISTOGRAM_BUCKETS, CVY_DTYPE_I64, CVY_REDUCE_SUM));
    h->min = ends[0];
    h->max = -ends[1];
    h->sum = sums[0];
    h->sum_squares = sums[1];
    return CVY_OK;
}

/* One weight. whole: the variables that this rank counts, or NULL. comm: the ranks that have the others, or NULL. A
 * rank that cannot write goes on, because the others wait for it in the next all-reduce. */
static cvy_status write_weight(cvy_trainer *t, const cvy_vars *whole, const char *name, cvy_comm *comm,
                               cvy_histogram *h)
{
    char tag[256];
    const cvy_variable *v = whole ? cvy_vars_find(whole, name) : NULL;
    cvy_histogram_begin(h);
    cvy_status status = v && !v->elsewhere ? count_values(v, h) : CVY_OK;
    if (comm)
        CVY_TRY(cvy_comm_agree(comm, status));
    if (comm)
        CVY_TRY(merge(comm, h));
    snprintf(tag, sizeof tag, "weights/%s", name);
    if (status == CVY_OK)
        warn_of(t, cvy_events_add_histogram(t->folder.events, t->step, tag, h));
    return status;
}

static cvy_status write_weights(cvy_trainer *t, const cvy_vars *whole, cvy_comm *comm)
{
    const cvy_vars *vars = cvy_program_vars(t->session.program);
    cvy_variable **sorted = NULL;
    cvy_histogram *h = NULL;
    cvy_status status = cvy_vars_by_name(vars, &sorted);
    if (status == CVY_OK)
        status = cvy_mem_alloc(sizeof *h, &h);
    if (comm)
        status = cvy_comm_agree(comm, status);
    for (int i = 0; i < vars->count && status == CVY_OK; i++)
        if (sorted[i]->role == CVY_ROLE_WEIGHT)
            status = write_weight(t, whole, sorted[i]->name, comm, h);
    cvy_mem_free(&sorted);
    cvy_mem_free(&h);
    return status;
}

cvy_status cvy_trainer_write_histograms(cvy_trainer *t, int64_t epoch)
{
    cvy_program *p = t->session.program;
    const cvy_grid *grid = cvy_program_grid(p);
    cvy_vars *whole = NULL;
    if (t->folder.histograms == 0 || epoch % t->folder.histograms != 0)
        return CVY_OK;
    if (cvy_program_update(p)->flush_before_forward)
        CVY_TRY(cvy_program_flush(p));
    if (!cvy_grid_is_used(grid)) {
        if (is_root(t))
            warn_of(t, write_weights(t, cvy_program_vars(p), NULL));
        return CVY_OK;
    }
    CVY_TRY(cvy_tiles_gather(cvy_program_vars(p), grid, &whole));
    const cvy_status status = write_weights(t, whole, grid->all);
    cvy_vars_destroy(&whole);
    return status;
}
