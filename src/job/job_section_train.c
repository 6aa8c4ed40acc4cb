/*
 * job_section_train.c: the trees of the section `train`: optimiser, losses, metrics, groups of weights, early
 * stopping.
 *
 * All but the groups and early stopping are "a name, or a map with a name". The job layer takes its own keys out of
 * the map, and the owner checks the others with its own table.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "base/text/base_table.h"
#include "graph/graph_op.h"
#include "job/job_table.h"
#include "metric/metric.h"

static int has_row(const cvy_option *rows, const char *name)
{
    for (; rows->name; rows++)
        if (strcmp(rows->name, name) == 0)
            return 1;
    return 0;
}

/* Copies the entries of a map that the rows name (named 1), or those that they do not name (named 0). *out is NULL if
 * there are none. */
static cvy_status part_of(cvy_pool *pool, const cvy_tree *map, const cvy_option *rows, int named, cvy_tree **out)
{
    cvy_tree *part = NULL;
    *out = NULL;
    for (int i = 0; i < map->count; i++) {
        if (has_row(rows, map->key[i]) != named)
            continue;
        if (!part) {
            CVY_TRY(cvy_tree_copy(pool, map, &part));
            part->count = 0;
        }
        part->child[part->count] = map->child[i];
        part->key[part->count] = map->key[i];
        part->key_at[part->count++] = map->key_at[i];
        map->child[i]->used = 1;
    }
    *out = part;
    return CVY_OK;
}

/* Reads "name" or {name: ..., ours, theirs}. Our keys go into `fields` by the rows, their keys into *theirs_out. */
static cvy_status parse_named(cvy_pool *pool, const char *who, const cvy_option *rows, const cvy_tree *node,
                              void *fields, size_t size, const cvy_tree **theirs_out)
{
    CVY_CHECK(node->kind != CVY_TREE_LIST && !cvy_tree_is_null(node), CVY_E_CONFIG,
              "%s: %s: expected a name or a map {name: ...}", cvy_tree_where(node), who);
    cvy_tree *ours = NULL, *theirs = NULL, *name = NULL;
    if (node->kind == CVY_TREE_MAP) {
        CVY_TRY(part_of(pool, node, rows, 1, &ours));
        CVY_TRY(part_of(pool, node, rows, 0, &theirs));
        CVY_CHECK(ours && cvy_tree_get(ours, "name"), CVY_E_CONFIG, "%s: %s: the key \"name\" is missing",
                  cvy_tree_where(node), who);
    } else {
        CVY_TRY(cvy_tree_new_map(pool, node->file, &ours));
        CVY_TRY(cvy_tree_copy(pool, node, &name));
        CVY_TRY(cvy_tree_set(pool, ours, "name", name));
    }
    const char *given = cvy_tree_get(ours, "name")->text;
    CVY_CHECK(!given || *given, CVY_E_CONFIG, "%s: %s: the name is empty", cvy_tree_where(node), who);
    CVY_TRY(cvy_options_parse(pool, who, rows, ours, NULL, fields, size));
    *theirs_out = theirs;
    return CVY_OK;
}

/* The number of items. A single node stands for a list of one. */
static int item_count(const cvy_tree *node)
{
    return !node ? 0 : node->kind == CVY_TREE_LIST ? node->count : 1;
}

static const cvy_tree *item_at(const cvy_tree *node, int i)
{
    return node->kind == CVY_TREE_LIST ? node->child[i] : node;
}

/* ---- optimiser ---- */

/* The default learning rate. An unknown optimiser gets 0.01 here; it is refused later, when its options are read. */
static double usual_lr(const char *optimizer)
{
    const cvy_op_def *op = cvy_op_find(optimizer);
    return op && op->lr > 0 ? op->lr : 0.01;
}

/* Whether an option of an optimiser belongs to groups of weights or to turns. */
static int is_of_weights(const char *option)
{
    return strcmp(option, "lr_mult") == 0 || strcmp(option, "clip_weights") == 0;
}

/* The options of the optimiser that the job does not give. An unknown optimiser has none here. */
static cvy_status add_defaults(cvy_pool *pool, const char *optimizer, cvy_tree *map)
{
    const cvy_op_def *op = cvy_op_find(optimizer);
    if (!op || !(op->flags & CVY_OP_OPTIMIZER))
        return CVY_OK;
    for (const cvy_option *row = op->options; row->name; row++) {
        cvy_tree *value = NULL;
        if (cvy_tree_get(map, row->name) || is_of_weights(row->name))
            continue;
        CVY_TRY(cvy_tree_new_scalar(pool, map->file, row->fallback, &value));
        CVY_TRY(cvy_tree_set(pool, map, row->name, value));
    }
    return CVY_OK;
}

/* The map {name, lr, options} of an optimiser with all its defaults, so that the resolved file shows what was used.
 * rows: of the job's keys in it. theirs: its own keys, or NULL. */
static cvy_status whole_optimizer(cvy_pool *pool, const cvy_option *rows, const struct cvy_job_optimizer *o,
                                  const cvy_tree *theirs, cvy_tree **out)
{
    cvy_tree *map = NULL;
    CVY_TRY(cvy_options_tree(pool, rows, o, &map));
    for (int i = 0; theirs && i < theirs->count; i++)
        CVY_TRY(cvy_tree_set(pool, map, theirs->key[i], theirs->child[i]));
    CVY_TRY(add_defaults(pool, o->name, map));
    *out = map;
    return CVY_OK;
}

static cvy_status resolve_optimizer(cvy_job *job)
{
    struct cvy_job_train *t = &job->train;
    const struct cvy_job_optimizer o = {.name = t->optimizer, .lr = t->lr, .decay_on = t->decay_on};
    cvy_tree *map = NULL;
    CVY_TRY(whole_optimizer(job->pool, cvy_job_optimizer_rows, &o, t->optimizer_options, &map));
    t->optimizer_tree = map;
    return CVY_OK;
}

static cvy_status parse_optimizer(cvy_job *job)
{
    struct cvy_job_train *t = &job->train;
    struct cvy_job_optimizer o;
    CVY_TRY(parse_named(job->pool, "train.optimizer", cvy_job_optimizer_rows, t->optimizer_tree, &o, sizeof o,
                        &t->optimizer_options));
    if (o.lr == 0)
        o.lr = usual_lr(o.name);
    t->optimizer = o.name;
    t->lr = o.lr;
    t->decay_on = o.decay_on;
    return resolve_optimizer(job);
}

cvy_status cvy_job_leave_out_momentum(cvy_job *job, int *changed_out)
{
    struct cvy_job_train *t = &job->train;
    cvy_tree *options = NULL, *zero = NULL;
    *changed_out = 0;
    if (strcmp(t->optimizer, "sgd") != 0 || cvy_tree_get(t->optimizer_options, "momentum"))
        return CVY_OK;
    if (t->optimizer_options)
        CVY_TRY(cvy_tree_copy(job->pool, t->optimizer_options, &options));
    else
        CVY_TRY(cvy_tree_new_map(job->pool, job->file, &options));
    CVY_TRY(cvy_tree_new_scalar(job->pool, job->file, "0", &zero));
    CVY_TRY(cvy_tree_set(job->pool, options, "momentum", zero));
    t->optimizer_options = options;
    *changed_out = 1;
    return resolve_optimizer(job);
}

/* ---- losses and metrics ---- */

static cvy_status parse_losses(cvy_job *job)
{
    struct cvy_job_train *t = &job->train;
    t->nloss = item_count(t->loss_tree);
    if (!t->loss_tree)
        return CVY_OK;
    CVY_CHECK(t->nloss > 0, CVY_E_CONFIG, "%s: train.loss is an empty list, expected at least one loss",
              cvy_tree_where(t->loss_tree));
    CVY_TRY(cvy_pool_alloc(job->pool, (size_t)t->nloss * sizeof *t->loss, &t->loss));
    for (int i = 0; i < t->nloss; i++) {
        const cvy_tree *options = NULL;
        CVY_TRY(parse_named(job->pool, "train.loss", cvy_job_loss_rows, item_at(t->loss_tree, i), &t->loss[i],
                            sizeof t->loss[i], &options));
        t->loss[i].options = options;
    }
    return CVY_OK;
}

/* The name and the options are checked here, because a run without validation data never makes its metrics. */
static cvy_status check_metric(cvy_job *job, const cvy_tree *item, const cvy_job_metric *metric)
{
    static const cvy_table_query query = {.what = "metric"};
    int count = 0;
    const cvy_metric_def *const *table = cvy_metric_table(&count), *def = NULL;
    void *fields = NULL;
    const cvy_status status = cvy_table_find(table, count, &query, metric->name, &def);
    if (status != CVY_OK)
        return cvy_error_prefix(status, "%s: train.metrics", cvy_tree_where(item));
    CVY_TRY(cvy_pool_alloc(job->pool, CVY_MAX(def->options_size, 1), &fields));
    return cvy_options_parse(job->pool, def->name, def->options, metric->options, NULL, fields, def->options_size);
}

static int is_none(const cvy_tree *node)
{
    return node && (node->kind == CVY_TREE_LIST ? node->count == 0 : node->text && strcmp(node->text, "none") == 0);
}

static cvy_status parse_metrics(cvy_job *job)
{
    struct cvy_job_train *t = &job->train;
    t->no_metrics = is_none(t->metrics_tree);
    t->nmetric = t->no_metrics ? 0 : item_count(t->metrics_tree);
    CVY_TRY(cvy_pool_alloc(job->pool, (size_t)t->nmetric * sizeof *t->metric, &t->metric));
    for (int i = 0; i < t->nmetric; i++) {
        const cvy_tree *options = NULL;
        CVY_TRY(parse_named(job->pool, "train.metrics", cvy_job_metric_rows, item_at(t->metrics_tree, i), &t->metric[i],
                            sizeof t->metric[i], &options));
        t->metric[i].options = options;
        CVY_TRY(check_metric(job, item_at(t->metrics_tree, i), &t->metric[i]));
    }
    return cvy_job_name_metrics(job);
}

/* ---- groups and stop ---- */

cvy_status cvy_job_read_groups(cvy_job *job)
{
    struct cvy_job_train *t = &job->train;
    t->ngroup = item_count(t->groups_tree);
    CVY_TRY(cvy_pool_alloc(job->pool, (size_t)t->ngroup * sizeof *t->group, &t->group));
    for (int i = 0; i < t->ngroup; i++)
        CVY_TRY(cvy_options_parse(job->pool, "train.groups", cvy_job_group_rows, item_at(t->groups_tree, i), NULL,
                                  &t->group[i], sizeof t->group[i]));
    return CVY_OK;
}

/* Adds a word and, if it may be the name of a network, the pattern of the network's weights. */
static void add_trained(cvy_text *t, const char *word)
{
    cvy_text_add(t, strpbrk(word, "*?.") ? "%s%s" : "%s%s, %s.*", t->bytes ? ", " : "", word, word);
}

/* A turn without an optimiser has that of the job. */
static cvy_status read_turn_optimizer(cvy_job *job, cvy_job_turn *turn)
{
    struct cvy_job_optimizer o;
    cvy_tree *map = NULL;
    if (!turn->optimizer_tree)
        return CVY_OK;
    CVY_TRY(parse_named(job->pool, "train.turns: optimizer", cvy_job_turn_optimizer_rows, turn->optimizer_tree, &o,
                        sizeof o, &turn->optimizer_options));
    turn->optimizer = o.name;
    turn->lr = o.lr = o.lr > 0 ? o.lr : usual_lr(o.name);
    CVY_TRY(whole_optimizer(job->pool, cvy_job_turn_optimizer_rows, &o, turn->optimizer_options, &map));
    map->file = turn->optimizer_tree->file;
    map->line = turn->optimizer_tree->line;
    map->column = turn->optimizer_tree->column;
    turn->optimizer_tree = map;
    return CVY_OK;
}

/* Writes the turns back into the tree, each with all its keys and their defaults. */
static cvy_status resolve_turns(cvy_job *job)
{
    struct cvy_job_train *t = &job->train;
    cvy_tree *list = NULL, **child = NULL;
    if (t->nturn == 0)
        return CVY_OK;
    CVY_TRY(cvy_tree_copy(job->pool, t->turns_tree, &list));
    CVY_TRY(cvy_pool_alloc(job->pool, sizeof *child * (size_t)t->nturn, &child));
    for (int i = 0; i < t->nturn; i++)
        CVY_TRY(cvy_options_tree(job->pool, cvy_job_turn_rows, &t->turn[i], &child[i]));
    list->kind = CVY_TREE_LIST;
    list->child = child;
    list->count = t->nturn;
    t->turns_tree = list;
    return CVY_OK;
}

static cvy_status read_turns(cvy_job *job)
{
    static const cvy_job_names losses = {.key = "train.turns: losses", .example = "[real, fake]", .may_be_one = 1},
                               trained = {.key = "train.turns: train",
                                          .example = "[critic]",
                                          .may_be_one = 1,
                                          .add = add_trained};
    struct cvy_job_train *t = &job->train;
    t->nturn = item_count(t->turns_tree);
    CVY_CHECK(t->nturn <= CVY_TURNS_MAX, CVY_E_CONFIG, "%s: train.turns has %d turns, at most %d are possible",
              cvy_tree_where(t->turns_tree), t->nturn, CVY_TURNS_MAX);
    CVY_TRY(cvy_pool_alloc(job->pool, (size_t)t->nturn * sizeof *t->turn, &t->turn));
    for (int i = 0; i < t->nturn; i++) {
        cvy_job_turn *turn = &t->turn[i];
        CVY_TRY(cvy_options_parse(job->pool, "train.turns", cvy_job_turn_rows, item_at(t->turns_tree, i), NULL, turn,
                                  sizeof *turn));
        CVY_TRY(cvy_job_join_names(job, turn->losses_tree, &losses, &turn->losses));
        CVY_TRY(cvy_job_join_names(job, turn->train_tree, &trained, &turn->train));
        CVY_TRY(read_turn_optimizer(job, turn));
    }
    CVY_CHECK(t->nturn == 0 || t->turn[0].every == 1, CVY_E_CONFIG,
              "%s: train.turns: every is %lld in the first turn, which each step takes; put another turn first",
              cvy_tree_where(item_at(t->turns_tree, 0)), (long long)t->turn[0].every);
    return resolve_turns(job);
}

static cvy_status parse_stop(cvy_job *job)
{
    struct cvy_job_train *t = &job->train;
    if (!t->stop_tree)
        return CVY_OK;
    CVY_TRY(
        cvy_options_parse(job->pool, "train.stop", cvy_job_stop_rows, t->stop_tree, NULL, &t->stop, sizeof t->stop));
    t->stop.has_target = !cvy_tree_is_null(cvy_tree_get(t->stop_tree, "target"));
    CVY_CHECK(isfinite(t->stop.target), CVY_E_CONFIG, "%s: train.stop: target is %g, expected a finite number",
              cvy_tree_where(t->stop_tree), t->stop.target);
    CVY_CHECK(t->stop.has_target || t->stop.patience > 0, CVY_E_CONFIG,
              "%s: train.stop: neither `patience` nor `target` is given; give one of them, or both",
              cvy_tree_where(t->stop_tree));
    CVY_CHECK(job->data.val, CVY_E_CONFIG,
              "%s: train.stop watches %s on validation data, but there is none; give data.val, such as 10%%",
              cvy_tree_where(t->stop_tree), t->stop.metric);
    return CVY_OK;
}

static cvy_status check_extent(cvy_job *job)
{
    struct cvy_job_train *t = &job->train;
    CVY_CHECK(!t->batch || !t->batch_per_rank, CVY_E_CONFIG,
              "%s: train.batch is %lld and train.batch_per_rank is %lld; give one of them",
              cvy_job_where(job, "train", "batch_per_rank"), (long long)t->batch, (long long)t->batch_per_rank);
    CVY_CHECK(!(t->epochs > 0) || !t->steps, CVY_E_CONFIG,
              "%s: train.epochs is %g and train.steps is %lld; give one of them", cvy_job_where(job, "train", "steps"),
              t->epochs, (long long)t->steps);
    if (!t->batch && !t->batch_per_rank)
        t->batch = 128;
    if (!t->steps && !(t->epochs > 0))
        t->epochs = 1;
    const int64_t batch = CVY_MAX(t->batch, t->batch_per_rank);
    CVY_CHECK(t->accumulate <= batch, CVY_E_CONFIG, "%s: train.accumulate is %lld, expected at most the batch, %lld",
              cvy_job_where(job, "train", "accumulate"), (long long)t->accumulate, (long long)batch);
    return CVY_OK;
}

static cvy_status check_lr_rule(cvy_job *job)
{
    struct cvy_job_train *t = &job->train;
    CVY_CHECK(!t->base_batch || t->lr_rule != CVY_LR_NONE, CVY_E_CONFIG,
              "%s: train.base_batch is %lld, but without a train.lr_rule the rate does not follow the batch; add "
              "lr_rule: linear (or sqrt), or leave base_batch out",
              cvy_job_where(job, "train", "base_batch"), (long long)t->base_batch);
    if (t->lr_rule != CVY_LR_NONE && !t->base_batch)
        t->base_batch = 256;
    return CVY_OK;
}

cvy_status cvy_job_interpret_train(cvy_job *job)
{
    const cvy_tree *schedule = job->train.schedule;
    CVY_CHECK(schedule->kind != CVY_TREE_LIST, CVY_E_CONFIG,
              "%s: train.schedule is a list, expected a name or a map {name: ...}", cvy_tree_where(schedule));
    CVY_TRY(check_extent(job));
    CVY_TRY(check_lr_rule(job));
    CVY_TRY(parse_optimizer(job));
    CVY_TRY(parse_losses(job));
    CVY_TRY(parse_metrics(job));
    CVY_TRY(cvy_job_read_groups(job));
    CVY_TRY(read_turns(job));
    CVY_TRY(cvy_job_interpret_init(job));
    return parse_stop(job);
}
