/*
 * job_model.c: see job_model.h.
 */
#include "job/job_model.h"

#include <fnmatch.h>
#include <string.h>

/* ---- the network ---- */

static int has_losses(const cvy_model *m)
{
    for (int i = 0; i < m->nlayer; i++)
        if (m->layer[i].op->flags & CVY_OP_LOSS)
            return 1;
    return 0;
}

static int has_input(const cvy_model *m, const char *name)
{
    for (int i = 0; i < m->ninput; i++)
        if (strcmp(m->input[i].name, name) == 0)
            return 1;
    return 0;
}

/* Outputs of the network: classes, or the numbers to be predicted. */
static int64_t count_outputs(const cvy_dataset_info *data)
{
    if (data->nclasses > 0)
        return data->nclasses;
    return data->nfield > 1 ? cvy_shape_elems(&data->field[1].shape) : 0;
}

static cvy_status add_fields(const cvy_job *job, const cvy_dataset_info *data, cvy_model *m)
{
    int weighs = job->data.on_bad_sample == CVY_BAD_SAMPLE_SKIP;
    for (int f = 0; f < data->nfield; f++) {
        weighs |= strcmp(data->field[f].name, "weight") == 0;
        if (strcmp(data->field[f].name, "weight") != 0 && !has_input(m, data->field[f].name))
            CVY_TRY(cvy_model_add_input(m, data->field[f].name, data->field[f].dtype, &data->field[f].shape));
    }
    return weighs && !has_input(m, "weight") ? cvy_model_add_input(m, "weight", CVY_DTYPE_F32, &(cvy_shape){0}) : CVY_OK;
}

static const char *target_field(const cvy_dataset_info *data)
{
    for (int f = 1; f < data->nfield; f++)
        if (strcmp(data->field[f].name, "weight") != 0)
            return data->field[f].name;
    return NULL;
}

static cvy_status add_loss(const cvy_job *job, const cvy_job_loss *loss, const cvy_dataset_info *data, int alone, cvy_model *m)
{
    const cvy_op_def *op = NULL;
    cvy_tree *options = NULL;
    char *name = NULL, number[40];
    const char *output = loss->output ? loss->output : cvy_model_output(m), *target = loss->target ? loss->target : target_field(data);
    char *from[] = {(char *)(uintptr_t)output, (char *)(uintptr_t)target, (char *)(uintptr_t)"weight"};
    CVY_CHECK(output && target, CVY_E_CONFIG, "%s: the loss %s needs a target, but %s has no labels", job->file, loss->name, data->path);
    CVY_TRY(cvy_model_find_layer(loss->name, &op));
    CVY_CHECK(op->flags & CVY_OP_LOSS, CVY_E_CONFIG, "%s: train.loss: '%s' is a layer, but not a loss", job->file, loss->name);
    CVY_TRY(cvy_tree_new_map(m->pool, job->file, &options));
    for (int i = 0; loss->options && i < loss->options->count; i++)
        CVY_TRY(cvy_tree_set(m->pool, options, loss->options->key[i], loss->options->child[i]));
    if (loss->weight != 1) {
        cvy_tree *weight = NULL;
        snprintf(number, sizeof number, "%.17g", loss->weight);
        CVY_TRY(cvy_tree_new_scalar(m->pool, job->file, number, &weight));
        CVY_TRY(cvy_tree_set(m->pool, options, "loss_weight", weight));
    }
    CVY_TRY(cvy_pool_printf(m->pool, &name, alone ? "loss" : "%s_loss", output));
    return cvy_model_add_tree(m, op, name, options, NULL, from, has_input(m, "weight") ? 3 : 2);
}

/* Classification by default; regression data without a named loss gets the mean squared error. */
static cvy_status add_losses(const cvy_job *job, const cvy_dataset_info *data, cvy_model *m)
{
    static const cvy_job_loss mse = {.name = "mse", .weight = 1};
    const int is_default = job->train.nloss == 1 && strcmp(job->train.loss[0].name, "softmax_cross_entropy") == 0 && !job->train.loss[0].options;
    if (has_losses(m))
        return CVY_OK;
    if (is_default && data->nclasses == 0)
        return add_loss(job, &mse, data, 1, m);
    for (int i = 0; i < job->train.nloss; i++)
        CVY_TRY(add_loss(job, &job->train.loss[i], data, job->train.nloss == 1, m));
    return CVY_OK;
}

cvy_status cvy_job_model(const cvy_job *job, const cvy_dataset_info *data, int with_losses, cvy_model **out)
{
    cvy_model *m = NULL;
    CVY_TRY(cvy_model_from_tree(job->model, &data->field[0].shape, count_outputs(data), &m));
    cvy_status status = add_fields(job, data, m);
    if (status == CVY_OK && with_losses)
        status = add_losses(job, data, m);
    if (status != CVY_OK)
        cvy_model_destroy(&m);
    else
        *out = m;
    return status;
}

/* ---- options ---- */

static cvy_status passes_off(const cvy_job *job, const char **out)
{
    char *text = NULL;
    for (int i = 0; i < job->plan.npass_off; i++)
        CVY_TRY(cvy_pool_printf(job->pool, &text, "%s%s%s", text ? text : "", text ? ", " : "", job->plan.pass_off[i]));
    if (!job->comm.overlap && !job->plan.passes_all_off)
        CVY_TRY(cvy_pool_printf(job->pool, &text, "%s%soverlap", text ? text : "", text ? ", " : ""));
    *out = job->plan.passes_all_off ? "all" : text;
    return CVY_OK;
}

cvy_status cvy_job_program_opts(const cvy_job *job, const char *plan_file, cvy_program_opts *out)
{
    static const char *const kernels[] = {"auto", "reference", "native", "onednn"};
    cvy_program_opts o = {.size = sizeof o, .dtype = job->train.dtype, .seed = (uint64_t)job->train.seed, .kernels = kernels[job->plan.kernels],
                          .bucket_bytes = job->comm.bucket_bytes, .plan_file = plan_file};
    o.batch_norm_group = job->batch_norm.group_by == CVY_NORM_GROUP_BATCH ? -2 : job->batch_norm.group_by == CVY_NORM_GROUP_RANK ? -1 : job->batch_norm.group;
    CVY_TRY(passes_off(job, &o.passes_off));
    *out = o;
    return CVY_OK;
}

cvy_status cvy_job_training_opts(const cvy_job *job, cvy_training_opts *out)
{
    const struct cvy_job_train *train = &job->train;
    cvy_training_opts o = {.size = sizeof o, .optimizer = train->optimizer, .clip_norm = train->clip_norm, .clip_value = train->clip_value,
                           .accumulate = train->accumulate};
    const cvy_tree *given = train->optimizer_options;
    cvy_tree *own = NULL;
    char *text = NULL, *copy = NULL;
    CVY_TRY(cvy_tree_new_map(job->pool, job->file, &own));
    for (int i = 0; given && i < given->count; i++)
        if (strcmp(given->key[i], "weight_decay") == 0)
            CVY_TRY(cvy_tree_real(given->child[i], &o.weight_decay));
        else
            CVY_TRY(cvy_tree_set(job->pool, own, given->key[i], given->child[i]));
    if (own->count) {
        CVY_TRY(cvy_tree_print(own, &text));
        const cvy_status status = cvy_pool_strdup(job->pool, text, &copy);
        cvy_mem_free(&text);
        CVY_TRY(status);
    }
    o.optimizer_options = copy;
    *out = o;
    return CVY_OK;
}

static void group_variable(void *user, cvy_variable *v)
{
    const cvy_job *job = user;
    for (int i = 0; i < job->train.ngroup; i++) {
        const cvy_job_group *group = &job->train.group[i];
        if (v->role != CVY_ROLE_WEIGHT || fnmatch(group->match, v->name, 0) != 0)
            continue;
        v->lr_mult = group->lr_mult;
        v->decay_mult = group->decay_mult;
        v->frozen = group->frozen;
        return;
    }
}

void cvy_job_group_variables(const cvy_job *job, cvy_program *program)
{
    program->group = group_variable;
    program->group_user = (void *)(uintptr_t)job;
}
