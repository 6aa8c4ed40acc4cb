/*
 * session_model.c: makes a model with its losses (session_loss.c) from a job and a description of its data, and the
 * options of a program.
 *
 * It runs before step 0. The network's input has the shape of the data's x. It has as many outputs as there are
 * classes, or numbers in the target.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "session/session_model.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/text/base_table.h"
#include "data/data_agrees.h"
#include "job/job_table.h"
#include "op/loss/op_label_loss.h"
#include "session/session_loss.h"
#include "session/session_output.h"

/* Lists all inputs that layers may read besides x. */
static int list_fields(const cvy_job *job, const cvy_dataset_info *data, cvy_model_input *field)
{
    static char weight[] = CVY_SAMPLE_WEIGHT;
    int n = 0;
    for (int i = 1; i < data->nfield; i++)
        field[n++] = (cvy_model_input){data->field[i].name, data->field[i].dtype, data->field[i].shape};
    if (job->data.on_bad_sample == CVY_BAD_SAMPLE_SKIP && !cvy_dataset_field(data, weight))
        field[n++] = (cvy_model_input){weight, CVY_DTYPE_F32, {0}};
    return n;
}

/* ---- the model ---- */

/* What may be wrong if the shapes of an input and of the data differ: the data have the channels last. */
static const char *shape_hint(const cvy_shape *input, const cvy_shape *data)
{
    const int n = input->ndim;
    int is_last = n >= 2 && data->ndim == n && input->dim[0] == data->dim[n - 1];
    for (int i = 1; i < n && is_last; i++)
        is_last = input->dim[i] == data->dim[i - 1];
    return is_last ? "; if their channels are the last axis, say so in the source: {path: .., channels: last} for npy, "
                     "axes "
                     "for HDF5"
                   : "";
}

/* Checks that a network which declares its own inputs gets them from the data. */
static cvy_status check_inputs(const cvy_dataset_info *data, const cvy_model *m)
{
    for (int i = 0; i < m->ninput; i++) {
        const cvy_model_input *input = &m->input[i];
        const cvy_field *field = cvy_dataset_field(data, input->name);
        if (!field) {
            CVY_CHECK(strcmp(input->name, CVY_SAMPLE_WEIGHT) == 0, CVY_E_CONFIG,
                      "the network reads '%s', but the data of %s have no such field", input->name,
                      cvy_dataset_name(data));
            continue;
        }
        CVY_CHECK(cvy_shape_equal(&input->sample_shape, &field->shape), CVY_E_SHAPE,
                  "the network's input %s is %s, but the data of %s have %s%s", input->name,
                  cvy_shape_text(&input->sample_shape), cvy_dataset_name(data), cvy_shape_text(&field->shape),
                  shape_hint(&input->sample_shape, &field->shape));
    }
    return CVY_OK;
}

/* Removes inputs that no layer reads, because they would take memory for feeds. */
static void drop_unread(cvy_model *m)
{
    int kept = 0;
    for (int i = 0; i < m->ninput; i++) {
        int read = 0;
        for (int k = 0; k < m->nlayer; k++)
            for (int s = 0; s < m->layer[k].nfrom; s++)
                read |= strcmp(m->layer[k].from[s], m->input[i].name) == 0;
        if (read)
            m->input[kept++] = m->input[i];
    }
    m->ninput = kept;
}

cvy_status cvy_job_load_libraries(cvy_job *job, cvy_extensions *extensions)
{
    for (int i = 0; job->libraries && i < job->libraries->count; i++) {
        const cvy_tree *item = job->libraries->child[i];
        const cvy_status status = cvy_extensions_load(extensions, item->text, NULL);
        if (status != CVY_OK)
            return cvy_error_prefix(status, "%s", cvy_tree_where(item));
    }
    job->libraries_loaded = 1;
    return CVY_OK;
}

/* A network that names an operator of a library which was not loaded, because its job came with the weights. */
static cvy_status explain_libraries(const cvy_job *job, cvy_status status)
{
    if (status == CVY_OK || job->libraries_loaded || !job->libraries || job->libraries->count == 0 ||
        !strstr(cvy_error_text(), "there is no layer type"))
        return status;
    return cvy_error_set(status,
                         "%s; the job that came with the weights names %s under `libraries`, and libraries are loaded "
                         "only for a job that you give yourself: give it too, as in --job JOB.yaml",
                         cvy_error_text(), job->libraries->child[0]->text);
}

/* A pattern that matches nothing is probably a typing error. */
static cvy_status check_frozen(const cvy_job *job, const cvy_model *m)
{
    char pattern[128];
    for (const char *at = job->program.batch_norm_frozen ? job->program.batch_norm_frozen : "";
         *(at += strspn(at, ", "));) {
        const size_t n = strcspn(at, ", ");
        int found = 0;
        const char *example = "it has none";
        snprintf(pattern, sizeof pattern, "%.*s", (int)n, at);
        for (int i = 0; i < m->nlayer; i++)
            if (strcmp(m->layer[i].op->name, "batch_norm") == 0) {
                found |= fnmatch(pattern, m->layer[i].name, 0) == 0;
                example = m->layer[i].name;
            }
        CVY_CHECK(found, CVY_E_CONFIG, "%s: batch_norm.frozen: no batch_norm of the network is called '%s' (%s)",
                  cvy_job_where(job, "batch_norm", "frozen"), pattern, example);
        at += n;
    }
    return CVY_OK;
}

static cvy_status find_meaning(const cvy_job *job, const cvy_dataset_info *data, cvy_model *m)
{
    cvy_output_meaning meaning;
    const char *output = cvy_model_output(m);
    if (!output)
        return CVY_OK;
    CVY_TRY(cvy_job_output_meaning(job, data, m, output, &meaning));
    m->output_kind = meaning.kind;
    m->scored = meaning.scored;
    return CVY_OK;
}

cvy_status cvy_job_model(const cvy_job *job, const cvy_context *context, const cvy_dataset_info *data,
                         cvy_losses losses, cvy_model **out)
{
    cvy_model_input field[CVY_FIELD_MAX + 1];
    cvy_model *m = NULL;
    cvy_status status = CVY_OK;
    int64_t noutput = 0;
    const int nfield = list_fields(job, data, field);
    CVY_TRY(cvy_job_count_outputs(job, data, &noutput));
    CVY_TRY(explain_libraries(job, cvy_model_from_fields(job->model, context ? &context->extensions : NULL,
                                                         &data->field[0].shape, noutput, field, nfield, &m)));
    if (losses != CVY_LOSSES_NONE) {
        CVY_TRY_OUT(cvy_job_correct_losses(context, m, losses == CVY_LOSSES_SCORED));
        CVY_TRY_OUT(cvy_job_add_losses(job, data, losses, m));
    }
    CVY_TRY_OUT(find_meaning(job, data, m));
    drop_unread(m);
    CVY_TRY_OUT(check_inputs(data, m));
    CVY_TRY_OUT(check_frozen(job, m));
    *out = m;
out:
    if (status != CVY_OK)
        cvy_model_destroy(&m);
    return status;
}

/* ---- options ---- */

/* An update that is a product too is no optimiser for a job: a pass makes it of one. */
static int is_optimizer(const void *op)
{
    return (((const cvy_op_def *)op)->flags & (CVY_OP_OPTIMIZER | CVY_OP_PRODUCT)) == CVY_OP_OPTIMIZER;
}

/* where: of the optimiser in the job, with its key. */
static cvy_status find_optimizer(const char *where, const char *name, const cvy_op_def **out)
{
    static const cvy_table_query query = {.what = "optimiser", .takes = is_optimizer};
    int count = 0;
    const cvy_op_def *const *table = cvy_op_table(&count);
    const cvy_status status = cvy_table_find(table, count, &query, name, out);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s", where);
}

/* The optimiser's options are checked here, because their places in the file are known here. They are passed on as
 * text. tree: its own keys, or NULL. */
static cvy_status take_optimizer(const cvy_job *job, const char *where, const char *name, const cvy_tree *tree,
                                 cvy_training_opts *o)
{
    const cvy_tree *decay = tree ? cvy_tree_get(tree, "weight_decay") : NULL;
    static const char *const also[] = {"lr", NULL}; /* a key of all optimisers; it is read elsewhere */
    const cvy_op_def *op = NULL;
    void *fields = NULL;
    char *text = NULL, *options = NULL;
    CVY_TRY(find_optimizer(where, name, &op));
    CVY_CHECK(!tree || !cvy_tree_get(tree, "lr_mult"), CVY_E_CONFIG,
              "%s: lr_mult belongs to a group of weights: train.groups: [{match: ..., lr_mult: ...}]", where);
    CVY_CHECK(!tree || !cvy_tree_get(tree, "clip_weights"), CVY_E_CONFIG,
              "%s: clip_weights belongs to a turn: train.turns: [{clip_weights: ...}]", where);
    CVY_TRY(cvy_pool_alloc(job->pool, op->options_size, &fields));
    CVY_TRY(cvy_options_parse(job->pool, op->name, op->options, tree, also, fields, op->options_size));
    o->weight_decay = 0;
    if (decay)
        CVY_TRY(cvy_tree_real(decay, &o->weight_decay));
    CVY_TRY(cvy_options_print(op->options, fields, &text));
    const cvy_status status = cvy_pool_strdup(job->pool, text, &options);
    cvy_mem_free(&text);
    o->optimizer = name;
    o->optimizer_options = options;
    return status;
}

cvy_status cvy_job_training_opts(const cvy_job *job, cvy_training_opts *out)
{
    const struct cvy_job_train *t = &job->train;
    cvy_training_opts o = {.size = sizeof o,
                           .clip_norm = t->clip_norm,
                           .clip_value = t->clip_value,
                           .l1 = t->l1,
                           .accumulate = t->accumulate};
    char where[400];
    snprintf(where, sizeof where, "%s: train.optimizer", cvy_job_where(job, "train", "optimizer"));
    CVY_TRY(take_optimizer(job, where, t->optimizer, t->optimizer_options, &o));
    *out = o;
    return CVY_OK;
}

cvy_status cvy_job_turn_opts(const cvy_job *job, int turn, cvy_training_opts *opts)
{
    const cvy_job_turn *t = &job->train.turn[turn];
    cvy_training_opts o = *opts;
    char *label = NULL;
    CVY_TRY(cvy_pool_printf(job->pool, &label, "train.turns: turn %d (%s)", turn + 1,
                            t->losses ? t->losses : "all losses"));
    o.label = label;
    o.losses = t->losses;
    o.trains = t->train;
    o.clip_weights = t->clip_weights;
    if (t->optimizer) {
        char where[400];
        snprintf(where, sizeof where, "%s: train.turns: optimizer", cvy_tree_where(t->optimizer_tree));
        CVY_TRY(take_optimizer(job, where, t->optimizer, t->optimizer_options, &o));
    }
    *opts = o;
    return CVY_OK;
}

double cvy_job_turn_lr(const cvy_job *job, int turn)
{
    const cvy_job_turn *t = &job->train.turn[turn];
    return t->lr_mult * (t->optimizer ? t->lr : job->train.lr);
}

/* ---- groups of weights ---- */

static void apply_group(void *user, cvy_variable *v)
{
    const struct cvy_job_train *t = &((const cvy_job *)user)->train;
    if (v->role != CVY_ROLE_WEIGHT)
        return;
    if (t->decay_on == CVY_DECAY_ALL)
        v->decay = 1;
    for (int i = 0; i < t->ngroup; i++)
        if (cvy_names_match(t->group[i].match, v->name)) {
            v->lr_mult = t->group[i].lr_mult;
            v->decay_mult = t->group[i].decay_mult;
            v->frozen = t->group[i].frozen;
            return;
        }
}

void cvy_job_group_variables(const cvy_job *job, cvy_program *program)
{
    cvy_program_group_variables(program, apply_group, (void *)(uintptr_t)job);
}

static const char *match_of(const void *groups, int k)
{
    return ((const cvy_job_group *)groups)[k].match;
}

cvy_status cvy_job_check_groups(const cvy_job *job, const cvy_program *program)
{
    const struct cvy_job_train *t = &job->train;
    const char *where = cvy_job_where(job, "train", "groups"), *example = "";
    const cvy_vars *vars = cvy_program_vars(program);
    int hidden_by = -1;
    const int idle = cvy_groups_idle(vars, match_of, t->group, t->ngroup, &hidden_by);
    for (int k = 0; k < vars->count; k++)
        example = vars->at[k]->role == CVY_ROLE_WEIGHT ? vars->at[k]->name : example;
    CVY_CHECK(idle < 0 || hidden_by >= 0, CVY_E_CONFIG,
              "%s: train.groups: no weight is called '%s'; `convoy plan --format text` lists their names, such as %s",
              where, t->group[idle].match, example);
    CVY_CHECK(
        idle < 0, CVY_E_CONFIG,
        "%s: train.groups: '%s' gets no weight: groups before it take all that it matches, '%s' the first, because "
        "the first group that matches counts. Put '%s' before them, or leave it out",
        where, t->group[idle].match, t->group[hidden_by].match, t->group[idle].match);
    return CVY_OK;
}

/* ---- outputs ---- */

static int ignores_a_class(const struct cvy_label_loss *o, int64_t nclasses)
{
    for (int i = 0; i < o->labels.ignore_label.count; i++)
        if (o->labels.ignore_label.at[i] >= 0 && o->labels.ignore_label.at[i] < nclasses)
            return 1;
    return 0;
}

cvy_status cvy_job_check_outputs(const cvy_dataset_info *data, const cvy_program *program, int task)
{
    const cvy_graph *g = cvy_program_task_plan(program, task)->lowered[0]->graph;
    for (int i = 0; i < g->nnode && data->nclasses > 0; i++) {
        const cvy_node *n = g->node[i];
        if (n->removed || !cvy_loss_is_of_classes(n->op) ||
            (strcmp(n->src[1]->name, "label") != 0 && strcmp(n->src[1]->name, "y") != 0))
            continue;
        const struct cvy_label_loss *o = n->options;
        const int64_t outputs = n->src[0]->shape.dim[1];
        const cvy_value *output = n->src[0];
        if (output->producer && strcmp(output->producer->layer, n->layer) == 0)
            output = output->producer->src[0]; /* a softmax that the loss has added */
        CVY_CHECK(outputs >= data->nclasses || ignores_a_class(o, data->nclasses), CVY_E_SHAPE,
                  "layer %s gives %lld outputs for each sample, but the data have %lld classes: give it %lld, or name "
                  "classes in the loss's ignore_label",
                  output->producer ? output->producer->layer : output->name, (long long)outputs,
                  (long long)data->nclasses, (long long)data->nclasses);
    }
    return CVY_OK;
}
