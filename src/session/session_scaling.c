/*
 * session_scaling.c: which outputs of a network are in the units of the scaled target, and how the scaling is undone.
 *
 * An output that is compared with the target, y or x (data.roles), has its scaling. The output of a loss of
 * distributions (op_distribution.h) has several numbers for each target: each is scaled as the target is, but a log
 * variance is shifted by twice the logarithm of the scale.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "op/loss/op_distribution.h"
#include "session/session_model.h"

/* The loss layer of the network that compares this output with the target, or NULL. */
static const cvy_layer *layer_that_compares(const cvy_model *m, const char *output, const char *target)
{
    for (int i = 0; i < m->nlayer; i++)
        if ((m->layer[i].op->flags & CVY_OP_LOSS) && m->layer[i].nfrom > 1 &&
            strcmp(m->layer[i].from[0], output) == 0 && strcmp(m->layer[i].from[1], target) == 0)
            return &m->layer[i];
    return NULL;
}

/* The field whose scaling is that of the data: y, or x if it is the target. */
static const char *scaled_target(const cvy_dataset_info *data)
{
    return data->target_is_input ? "x" : "y";
}

/* Whether add_loss() of session_model.c puts a loss on this output, the main one or an auxiliary head without `named`,
 * that compares it with the scaled target. target: that of the loss, or NULL. */
static int job_compares(const cvy_dataset_info *data, const cvy_model *m, const char *named, const char *target,
                        const char *output)
{
    target = target ? target : cvy_main_target(data);
    if (!target || strcmp(target, scaled_target(data)) != 0)
        return 0;
    if (named)
        return strcmp(named, output) == 0;
    for (int i = 0; i < m->naux; i++)
        if (strcmp(m->aux[i].output, output) == 0)
            return 1;
    return strcmp(cvy_model_output(m), output) == 0;
}

/* Finds the loss that compares the output with y, and its options. Returns 0 if there is none. op NULL: a loss of one
 * number for each target. */
static int find_comparison(const cvy_job *job, const cvy_dataset_info *data, const cvy_model *m, const char *output,
                           const cvy_op_def **op_out, const cvy_tree **options_out)
{
    const struct cvy_job_train *t = &job->train;
    const cvy_layer *layer = layer_that_compares(m, output, scaled_target(data));
    *op_out = layer ? layer->op : NULL;
    *options_out = layer ? layer->options : NULL;
    if (layer)
        return 1;
    if (data->target_is_input && strcmp(cvy_model_output(m), output) == 0)
        return 1; /* whatever a generator is trained by */
    if (t->nloss == 0 && !cvy_model_has_loss(m))
        return job_compares(data, m, NULL, NULL, output);
    for (int i = 0; i < t->nloss; i++)
        if (job_compares(data, m, t->loss[i].output, t->loss[i].target, output)) {
            *op_out = cvy_op_find(t->loss[i].name);
            *options_out = t->loss[i].options;
            return 1;
        }
    return 0;
}

/* Makes a scaling with a row for each number of a distribution, in the model's memory. */
static cvy_status repeat_scaling(const cvy_scaling *of, const cvy_distribution_def *def, int count, cvy_model *m,
                                 cvy_scaling *out)
{
    const int64_t n = of->n * count;
    double *mean = NULL, *std = NULL;
    CVY_TRY(cvy_pool_alloc(m->pool, sizeof *mean * (size_t)n, &mean));
    CVY_TRY(cvy_pool_alloc(m->pool, sizeof *std * (size_t)n, &std));
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = i % of->n;
        const int is_log = def->is_log_variance && def->is_log_variance((int)(i / of->n));
        mean[i] = is_log ? 2 * log(of->std[c]) : of->mean[c];
        std[i] = is_log ? 1 : of->std[c];
    }
    *out = (cvy_scaling){.n = n, .mean = mean, .std = std};
    return CVY_OK;
}

cvy_status cvy_job_output_scaling(const cvy_job *job, const cvy_dataset_info *data, cvy_model *m, const char *output,
                                  cvy_scaling *out)
{
    const cvy_op_def *op = NULL;
    const cvy_tree *options = NULL;
    int count = 1;
    *out = (cvy_scaling){0};
    if (data->scaling.n == 0 || !find_comparison(job, data, m, output, &op, &options))
        return CVY_OK;
    if (op)
        CVY_TRY(cvy_loss_count(op, options, &count));
    if (count > 1 && data->scaling.nstep > 0)
        return CVY_OK; /* the logarithm of a variance has no curve to undo: the output stays as it is */
    if (count > 1)
        return repeat_scaling(&data->scaling, cvy_distribution_of(op), count, m, out);
    *out = data->scaling;
    return CVY_OK;
}
