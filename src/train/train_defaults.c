/*
 * train_defaults.c: lines of the log about defaults that decide the results of a run, as far as the job leaves them
 * open: those that differ from PyTorch's, and batch norms of which only the weights are frozen.
 * docs/guide/coming-from.md explains them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <fnmatch.h>
#include <string.h>

#include "job/job_table.h"
#include "session/session_values.h"
#include "train/trainer.h"

static int is_given(const cvy_job *job, const char *path)
{
    return cvy_tree_at(job->given, path) != NULL;
}

static int has_running_statistics(const cvy_vars *vars)
{
    for (int i = 0; i < vars->count; i++)
        if (vars->at[i]->role == CVY_ROLE_STATISTIC && fnmatch("*.running_var", vars->at[i]->name, 0) == 0)
            return 1;
    return 0;
}

/* Whether a batch norm has weights, none of which is trained, and statistics that follow the data. */
static int only_statistics_move(const cvy_trainer *t, const cvy_layer *layer)
{
    const cvy_vars *vars = cvy_program_vars(t->session.program);
    const char *frozen = t->session.job->program.batch_norm_frozen;
    const cvy_tree *own = cvy_tree_get(layer->options, "frozen");
    const size_t n = strlen(layer->name);
    int is_frozen = 0, weights = 0;
    if (strcmp(layer->op->name, "batch_norm") != 0 || (frozen && cvy_names_match(frozen, layer->name)) ||
        (own && cvy_tree_bool(own, &is_frozen) == CVY_OK && is_frozen))
        return 0;
    for (int i = 0; i < vars->count; i++) {
        const cvy_variable *v = vars->at[i];
        if (v->role != CVY_ROLE_WEIGHT || strncmp(v->name, layer->name, n) != 0 || v->name[n] != '.')
            continue;
        if (!v->frozen)
            return 0;
        weights++;
    }
    return weights > 0;
}

static void note_statistics(cvy_trainer *t)
{
    const cvy_model *m = t->session.model;
    const char *first = NULL;
    int n = 0;
    for (int i = 0; i < m->nlayer; i++)
        if (only_statistics_move(t, &m->layer[i])) {
            first = first ? first : m->layer[i].name;
            n++;
        }
    if (n > 0)
        cvy_text_add(
            &t->session.notes,
            "%d batch norm%s with frozen weights, %s%s: the running statistics follow the training data, unless "
            "batch_norm.frozen names the layer\n",
            n, n > 1 ? "s" : "", n > 1 ? "the first " : "", first);
}

void cvy_trainer_look_at_values(cvy_trainer *t)
{
    const cvy_session *s = &t->session;
    cvy_values_ask ask = {.job = s->job, .model = s->model, .key = "data.train", .targets = 1};
    if (t->opts->resume || cvy_values_look(s->context, &ask, s->train))
        return; /* it was said, or the further data are like these */
    ask.key = s->val ? "data.val" : "data.test";
    ask.targets = 0;
    if (s->val || s->test)
        cvy_values_look(s->context, &ask, s->val ? s->val : s->test);
}

void cvy_trainer_note_defaults(cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    const int64_t group = job->program.batch_norm_group;
    const cvy_tree *own = job->train.optimizer_options, *momentum = cvy_tree_get(own, "momentum");
    cvy_text line = {0};
    double decay = 0;
    if (strcmp(job->train.optimizer, "sgd") == 0 && !momentum)
        cvy_text_add(&line, "momentum %s (train.optimizer.momentum)",
                     cvy_tree_get(job->train.optimizer_tree, "momentum")->text);
    if (cvy_tree_get(own, "weight_decay") && cvy_tree_real(cvy_tree_get(own, "weight_decay"), &decay) == CVY_OK &&
        decay > 0 && !is_given(job, "train.optimizer.decay_on"))
        cvy_text_add(&line, "%sno weight decay on biases and norms (train.optimizer.decay_on)", line.bytes ? ", " : "");
    if (group > 0 && group < t->order.batch && !is_given(job, "batch_norm.group") &&
        has_running_statistics(cvy_program_vars(t->session.program)))
        cvy_text_add(&line, "%sbatch norm by groups of %lld samples (batch_norm.group)", line.bytes ? ", " : "",
                     (long long)group);
    if (line.bytes)
        cvy_text_add(&t->session.notes, "by default: %s\n", line.data);
    cvy_text_free(&line);
    note_statistics(t);
}
