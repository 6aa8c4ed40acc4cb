/*
 * session_loss.c: the losses of a job: which layers they become, on which output and field, with which options.
 *
 * It runs when session_model.c has made the network of the job, before step 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "session/session_loss.h"

#include <stdio.h>
#include <string.h>

#include "base/text/base_table.h"
#include "data/data_agrees.h"
#include "job/job_table.h"
#include "op/loss/op_distribution.h"
#include "op/loss/op_label_loss.h"
#include "session/session_output.h"

/* ---- what the data offer ---- */

const char *cvy_main_target(const cvy_dataset_info *data)
{
    const cvy_field *target = cvy_dataset_target(data);
    return target ? target->name : NULL;
}

static int is_class(const cvy_dataset_info *data, const char *target)
{
    const cvy_field *field = target ? cvy_dataset_field(data, target) : NULL;
    return !field || !(field->dtype == CVY_DTYPE_F32 || field->dtype == CVY_DTYPE_F64);
}

static int has_option(const cvy_op_def *op, const char *name)
{
    for (const cvy_option *row = op ? op->options : NULL; row && row->name; row++)
        if (strcmp(row->name, name) == 0)
            return 1;
    return 0;
}

int cvy_loss_is_of_classes(const cvy_op_def *op)
{
    return op && (op->flags & CVY_OP_LOSS) && has_option(op, "class_weights");
}

/* Whether the job names a network of the zoo that has its outputs for each position of the input. */
static int is_map_network(const cvy_job *job)
{
    const cvy_tree *name = job->model->kind == CVY_TREE_MAP ? cvy_tree_get(job->model, "name") : job->model;
    const cvy_model_def *def = name && name->kind == CVY_TREE_SCALAR && name->text ? cvy_model_find(name->text) : NULL;
    return def && def->is_map;
}

/* ---- the losses ---- */

static const cvy_model_input *find_input(const cvy_model *m, const char *name)
{
    for (int i = 0; i < m->ninput; i++)
        if (strcmp(m->input[i].name, name) == 0)
            return &m->input[i];
    return NULL;
}

static int is_loss(const void *op)
{
    return (((const cvy_op_def *)op)->flags & CVY_OP_LOSS) != 0;
}

static cvy_status find_loss(const cvy_job *job, const char *name, const cvy_op_def **out)
{
    static const cvy_table_query query = {"loss", "`convoy models --layers` lists them", is_loss};
    int count = 0;
    const cvy_op_def *const *table = cvy_op_table(&count);
    const cvy_status status = cvy_table_find(table, count, &query, name, out);
    return status == CVY_OK ? CVY_OK
                            : cvy_error_prefix(status, "%s: train.loss",
                                               job->train.loss_tree ? cvy_tree_where(job->train.loss_tree) : job->file);
}

cvy_status cvy_job_count_outputs(const cvy_job *job, const cvy_dataset_info *data, int64_t *count_out)
{
    const cvy_job_loss *loss = job->train.nloss > 0 ? &job->train.loss[0] : NULL;
    const char *target = loss && loss->target ? loss->target : cvy_main_target(data);
    const cvy_field *field = target ? cvy_dataset_field(data, target) : NULL;
    const cvy_op_def *op = NULL;
    int each = 1;
    if (!field || (is_class(data, target) && (!loss || cvy_loss_is_of_classes(cvy_op_find(loss->name))))) {
        *count_out = data->nclasses;
        return CVY_OK;
    }
    if (loss) {
        CVY_TRY(find_loss(job, loss->name, &op));
        CVY_TRY(cvy_loss_count(op, loss->options, &each));
    }
    *count_out = each * (!is_map_network(job)                             ? cvy_shape_elems(&field->shape)
                         : field->shape.ndim == data->field[0].shape.ndim ? field->shape.dim[0]
                                                                          : 1);
    return CVY_OK;
}

/* Adds -1 to the labels that a loss ignores: in a map of labels, pixels of no class have it. */
static cvy_status ignore_outside(cvy_model *m, cvy_tree *map)
{
    const cvy_tree *given = cvy_tree_get(map, "ignore_label");
    const int count = !given ? 0 : given->kind == CVY_TREE_LIST ? given->count : 1;
    cvy_tree *list = NULL, **child = NULL;
    CVY_TRY(cvy_tree_parse_text(m->pool, "train.loss", "[]", 2, &list));
    CVY_TRY(cvy_pool_alloc(m->pool, sizeof(cvy_tree *) * (size_t)(count + 1), &child));
    for (int i = 0; i < count; i++)
        CVY_TRY(cvy_tree_copy(m->pool, given->kind == CVY_TREE_LIST ? given->child[i] : given, &child[i]));
    CVY_TRY(cvy_tree_new_scalar(m->pool, "train.loss", "-1", &child[count]));
    list->child = child;
    list->count = count + 1;
    return cvy_tree_set(m->pool, map, "ignore_label", list);
}

/* Makes the options of a loss, with its factor, in the model's pool. */
static cvy_status loss_options(cvy_model *m, const cvy_job_loss *loss, double weight, int is_label_map, cvy_tree **out)
{
    cvy_tree *map = NULL, *factor = NULL;
    char number[40];
    if (loss->options)
        CVY_TRY(cvy_tree_copy(m->pool, loss->options, &map));
    else
        CVY_TRY(cvy_tree_new_map(m->pool, "train.loss", &map));
    if (weight != 1) {
        snprintf(number, sizeof number, "%.17g", weight);
        CVY_TRY(cvy_tree_new_scalar(m->pool, "train.loss", number, &factor));
        CVY_TRY(cvy_tree_set(m->pool, map, "loss_weight", factor));
    }
    if (is_label_map)
        CVY_TRY(ignore_outside(m, map));
    *out = map;
    return CVY_OK;
}

static cvy_status loss_name(cvy_model *m, const char *output, int is_only, char **name_out)
{
    if (is_only)
        return cvy_pool_strdup(m->pool, "loss", name_out);
    CVY_TRY(cvy_pool_printf(m->pool, name_out, "%s_loss", output));
    for (int again = 2, i = 0; i < m->nlayer; i++)
        if (strcmp(m->layer[i].output, *name_out) == 0) {
            CVY_TRY(cvy_pool_printf(m->pool, name_out, "%s_loss%d", output, again++));
            i = -1;
        }
    return CVY_OK;
}

/* A scaled target has mean 0 and deviation 1. Losses on probabilities need targets of 0 .. 1. */
static cvy_status check_scaled(const cvy_job *job, const cvy_op_def *op, const char *target)
{
    const cvy_loss_each_def *each = op->build == cvy_loss_each_build ? op->family : NULL;
    const int has_any_target = cvy_distribution_of(op) || (each && each->target_min == each->target_max);
    CVY_CHECK(
        !job->data.normalize_targets || strcmp(target, "y") != 0 || has_any_target, CVY_E_CONFIG,
        "%s: data.normalize_targets does not go with the loss %s, whose targets have a fixed range; take mse, mae, "
        "huber, quantile or gaussian_nll, or leave the targets as they are",
        cvy_job_where(job, "data", "normalize_targets"), op->name);
    return CVY_OK;
}

static cvy_status add_loss_on(const cvy_job *job, const cvy_job_loss *loss, const char *output, double weight,
                              int is_only, const char *target, int is_old, cvy_model *m)
{
    static char sample_weight[] = CVY_SAMPLE_WEIGHT;
    const char *source = NULL;
    const cvy_op_def *op = NULL;
    cvy_tree *options = NULL;
    char *name = NULL, *from[] = {NULL, (char *)(uintptr_t)(loss->target ? loss->target : target), sample_weight};
    CVY_TRY(find_loss(job, loss->name, &op));
    CVY_CHECK(strcmp(op->name, "mean") != 0, CVY_E_CONFIG,
              "train.loss: mean compares nothing with a target: make it a layer of the model, `mean: {from: LAYER}`");
    CVY_TRY(cvy_loss_source(op, m, output, is_old, &source));
    from[0] = (char *)(uintptr_t)source;
    const cvy_model_input *input = find_input(m, from[1]);
    CVY_CHECK(input, CVY_E_CONFIG,
              "train.loss: %s compares with '%s', but the data have no such field; their target is '%s'", loss->name,
              from[1], target);
    CVY_TRY(check_scaled(job, op, from[1]));
    const int is_label_map = input->dtype == CVY_DTYPE_I32 && input->sample_shape.ndim > 0;
    CVY_TRY(loss_options(m, loss, weight, is_label_map && cvy_loss_is_of_classes(op), &options));
    CVY_TRY(loss_name(m, output, is_only, &name));
    return cvy_model_add_tree(m, op, name, options, NULL, from, find_input(m, sample_weight) ? 3 : 2);
}

/* A loss on the network's main output is also added to its auxiliary heads, with their weights. */
static cvy_status add_loss(const cvy_job *job, const cvy_job_loss *loss, int nloss, const char *target, int is_old,
                           cvy_model *m)
{
    const char *output = loss->output ? loss->output : cvy_model_output(m);
    CVY_TRY(add_loss_on(job, loss, output, loss->weight, nloss == 1, target, is_old, m));
    for (int i = 0; !loss->output && i < m->naux; i++)
        CVY_TRY(add_loss_on(job, loss, m->aux[i].output, loss->weight * m->aux[i].weight, 0, target, is_old, m));
    return CVY_OK;
}

static cvy_status check_target_keys(const cvy_job *job, const cvy_dataset_info *data)
{
    const char *key = job->data.roles && cvy_tree_get(job->data.roles, "y") ? "roles"
                      : job->data.normalize_targets                         ? "normalize_targets"
                                                                            : NULL;
    CVY_CHECK(!key || cvy_dataset_field(data, "y"), CVY_E_CONFIG,
              "%s: data.%s is about targets that are numbers, y, but the data of %s have %s",
              cvy_job_where(job, "data", key), key, cvy_dataset_name(data),
              cvy_main_target(data) ? "labels of classes" : "no target");
    return CVY_OK;
}

static cvy_status check_target(const cvy_job *job, const cvy_dataset_info *data)
{
    const cvy_tree *classes = cvy_tree_get(job->data.train, "classes"); /* 0: synthetic samples without a label */
    const int is_zero = classes && classes->text && strcmp(classes->text, "0") == 0;
    CVY_CHECK(
        cvy_main_target(data), CVY_E_CONFIG,
        "%s: a loss needs a target, but the data of %s have no labels%s: give data.train with labels or targets (in "
        "most formats `label` or `y` of the source names them)",
        is_zero ? cvy_tree_where(classes) : job->file, cvy_dataset_name(data), is_zero ? ", since classes is 0" : "");
    return CVY_OK;
}

cvy_status cvy_job_add_losses(const cvy_job *job, const cvy_dataset_info *data, cvy_losses losses, cvy_model *m)
{
    const struct cvy_job_train *t = &job->train;
    const char *target = cvy_main_target(data);
    const int is_old = losses == CVY_LOSSES_SCORED;
    cvy_job_loss usual = {.name = is_class(data, target) ? "softmax_cross_entropy" : "mse", .weight = 1};
    CVY_TRY(check_target_keys(job, data));
    if (t->nloss == 0 && cvy_model_has_loss(m))
        return CVY_OK;
    if (!target && t->nloss == 0 && losses == CVY_LOSSES_IF_TARGET)
        return CVY_OK;
    CVY_TRY(check_target(job, data));
    if (t->nloss == 0)
        return add_loss(job, &usual, 1, target, is_old, m);
    for (int i = 0; i < t->nloss; i++)
        CVY_TRY(add_loss(job, &t->loss[i], t->nloss, target, is_old, m));
    return CVY_OK;
}
