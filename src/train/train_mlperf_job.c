/*
 * train_mlperf_job.c: the lines of mlperf.log about the job: who submits, the data, the ranks, and the hyperparameters
 * under the names that the rules of MLPerf have for them.
 *
 * Names are those of the package mllog, and for deepcam also those of its reference, which has others for the optimiser
 * and the schedule. A key of log.mlperf.also replaces the value that is found here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "job/job_table.h"
#include "optim/optim.h"
#include "program/program_options.h"
#include "train/trainer.h"

typedef void (*add_fn)(cvy_trainer *t, const char *key, const char *value);

/* ---- values as JSON ---- */

struct head {
    cvy_trainer *t;
    add_fn add;
};

static int is_replaced(const struct head *h, const char *key)
{
    const cvy_tree *also = h->t->session.job->log.mlperf.also;
    return also && cvy_tree_get(also, key) != NULL;
}

static void put(const struct head *h, const char *key, cvy_json *value)
{
    if (!is_replaced(h, key) && value->text.status == CVY_OK)
        h->add(h->t, key, value->text.data);
    cvy_text_free(&value->text);
}

static void put_int(const struct head *h, const char *key, int64_t value)
{
    cvy_json j = {0};
    cvy_json_int(&j, NULL, value);
    put(h, key, &j);
}

static void put_real(const struct head *h, const char *key, double value)
{
    cvy_json j = {0};
    cvy_json_real(&j, NULL, value);
    put(h, key, &j);
}

static void put_text(const struct head *h, const char *key, const char *value)
{
    cvy_json j = {0};
    cvy_json_string(&j, NULL, value);
    put(h, key, &j);
}

static void put_bool(const struct head *h, const char *key, int value)
{
    cvy_json j = {0};
    cvy_json_bool(&j, NULL, value);
    put(h, key, &j);
}

/* A list, each number divided by `unit`. */
static void put_list(const struct head *h, const char *key, const double *value, int count, double unit)
{
    cvy_json j = {0};
    cvy_json_open(&j, NULL, '[');
    for (int i = 0; i < count; i++)
        cvy_json_real(&j, NULL, value[i] / unit);
    cvy_json_close(&j, ']');
    put(h, key, &j);
}

/* A value of the job file: a number, true or false, a text, or a list or map of these. */
static void write_tree(cvy_json *j, const char *key, const cvy_tree *node)
{
    double number = 0;
    int truth = 0;
    if (node->kind != CVY_TREE_SCALAR) {
        const int is_map = node->kind == CVY_TREE_MAP;
        cvy_json_open(j, key, is_map ? '{' : '[');
        for (int i = 0; i < node->count; i++)
            write_tree(j, is_map ? node->key[i] : NULL, node->child[i]);
        cvy_json_close(j, is_map ? '}' : ']');
    } else if (cvy_tree_is_null(node)) {
        cvy_json_string(j, key, NULL);
    } else if (!node->quoted && cvy_text_real(node->text, &number) == CVY_OK && isfinite(number)) {
        cvy_json_real(j, key, number);
    } else if (!node->quoted && cvy_tree_bool(node, &truth) == CVY_OK) {
        cvy_json_bool(j, key, truth);
    } else {
        cvy_json_string(j, key, node->text);
    }
}

static void put_further(const struct head *h)
{
    const cvy_tree *also = h->t->session.job->log.mlperf.also;
    for (int i = 0; also && i < also->count; i++) {
        cvy_json j = {0};
        write_tree(&j, NULL, also->child[i]);
        if (j.text.status == CVY_OK)
            h->add(h->t, also->key[i], j.text.data);
        cvy_text_free(&j.text);
    }
}

/* ---- submission, data, ranks ---- */

static void put_submission(const struct head *h)
{
    const struct cvy_job_mlperf *m = &h->t->session.job->log.mlperf;
    char host[256] = "unknown";
    if (gethostname(host, sizeof host) != 0)
        snprintf(host, sizeof host, "unknown");
    host[sizeof host - 1] = '\0';
    put_bool(h, "cache_clear", m->cache_clear);
    put_text(h, "submission_benchmark", m->benchmark);
    put_text(h, "submission_org", m->org);
    put_text(h, "submission_division", m->division == CVY_MLPERF_CLOSED ? "closed" : "open");
    put_text(h, "submission_status", m->status);
    put_text(h, "submission_platform", m->platform ? m->platform : host);
}

static void put_run(const struct head *h)
{
    cvy_trainer *t = h->t;
    const cvy_comm *comm = t->session.context->comm;
    const int64_t nodes = CVY_MAX(comm->nnodes, 1);
    put_int(h, "number_of_ranks", comm->nranks);
    put_int(h, "number_of_nodes", nodes);
    put_int(h, "accelerators_per_node",
            cvy_space_is_host(&t->session.context->space) ? 0 : (comm->nranks + nodes - 1) / nodes);
    put_int(h, "seed", (int64_t)t->session.job->program.seed);
    put_int(h, "global_batch_size", t->order.batch);
    put_int(h, "gradient_accumulation_steps", t->session.job->train.accumulate);
    put_int(h, "train_samples", cvy_dataset_describe(t->session.train)->nsamples);
    put_int(h, "eval_samples", cvy_dataset_describe(t->session.val)->nsamples);
}

/* ---- optimiser and schedule ---- */

struct rates {
    double peak, start; /* after the warm-up; at its start */
    double warmup;      /* samples */
    double epoch, step; /* samples of an epoch and of a step */
    const cvy_reals *at;
    const cvy_reals *factor; /* of a schedule with times; or NULL */
};

static struct rates rates_of(const cvy_trainer *t)
{
    const cvy_job *job = t->session.job;
    const double factor = cvy_job_lr_factor(job, t->order.batch), peak = job->train.lr * (factor > 0 ? factor : 1);
    return (struct rates){.peak = peak,
                          .start = peak * cvy_schedule_warmup_from(t->schedule),
                          .warmup = cvy_schedule_warmup(t->schedule),
                          .epoch = (double)cvy_order_samples_before(&t->order, t->order.steps_per_epoch),
                          .step = (double)t->order.batch,
                          .at = cvy_schedule_field(t->schedule, "at", CVY_TYPE_REALS),
                          .factor = cvy_schedule_field(t->schedule, "factor", CVY_TYPE_REALS)};
}

/* The rate after the warm-up over that at its start; `without` if it begins at 0 or there is none. */
static double warmup_factor(const struct rates *r, double without)
{
    return r->warmup > 0 && r->start > 0 ? r->peak / r->start : without;
}

static void put_optimizer(const struct head *h)
{
    static const struct {
        const char *option, *key;
    } row[] = {{"weight_decay", "opt_weight_decay"},
               {"momentum", "opt_momentum"},
               {"beta1", "opt_adam_beta_1"},
               {"beta2", "opt_adam_beta_2"},
               {"eps", "opt_adam_epsilon"}};
    const struct cvy_job_train *train = &h->t->session.job->train;
    const int is_deepcam = strcmp(h->t->session.job->log.mlperf.benchmark, "deepcam") == 0;
    const char *name = train->optimizer;
    if (is_deepcam) /* its rules have their own spelling */
        name = strcmp(name, "adam") == 0    ? "Adam"
               : strcmp(name, "adamw") == 0 ? "AdamW"
               : strcmp(name, "lamb") == 0  ? "LAMB"
                                            : name;
    put_text(h, "opt_name", name);
    for (int i = 0; i < CVY_COUNT(row); i++) {
        const double value = cvy_tree_real_at(train->optimizer_tree, row[i].option);
        if (!isnan(value))
            put_real(h, row[i].key, value);
    }
    if (train->clip_norm > 0)
        put_real(h, "opt_gradient_clip_norm", train->clip_norm);
}

static void put_schedule(const struct head *h, const struct rates *r)
{
    put_real(h, "opt_base_learning_rate", r->peak);
    put_real(h, "opt_learning_rate_warmup_epochs", r->warmup / r->epoch);
    put_real(h, "opt_learning_rate_warmup_steps", ceil(r->warmup / r->step));
    put_real(h, "opt_learning_rate_warmup_factor", warmup_factor(r, 0));
    put_list(h, "opt_learning_rate_decay_boundary_epochs", r->at ? r->at->at : NULL, r->at ? r->at->count : 0,
             r->epoch);
    put_real(h, "opt_learning_rate_decay_factor", r->factor && r->factor->count ? r->factor->at[0] : 1);
}

/* How many ranks share the statistics of a batch norm. */
static int64_t ranks_of_norm(const cvy_trainer *t)
{
    const int64_t samples = t->session.job->program.batch_norm_group; /* below 0: a word */
    const int64_t group = samples > 0 ? samples : samples == CVY_GROUP_BATCH ? t->order.batch : 0;
    return CVY_MIN(CVY_MAX(group * t->order.nranks / t->order.batch, 1), t->order.nranks);
}

/* The names of deepcam's reference. There, the rate rises from 0 if scheduler_lr_warmup_factor is 1, and otherwise from
 * opt_lr to opt_lr times this factor. */
static void put_deepcam(const struct head *h, const struct rates *r)
{
    const cvy_trainer *t = h->t;
    const struct cvy_job_train *train = &t->session.job->train;
    const double factor = warmup_factor(r, 1),
                 betas[] = {cvy_tree_real_at(train->optimizer_tree, "beta1"),
                            cvy_tree_real_at(train->optimizer_tree, "beta2")},
                 eps = cvy_tree_real_at(train->optimizer_tree, "eps");
    const char *schedule = cvy_schedule_name(t->schedule);
    put_int(h, "num_workers", t->order.nranks);
    put_int(h, "batchnorm_group_size", ranks_of_norm(t));
    put_int(h, "gradient_accumulation_frequency", train->accumulate);
    put_real(h, "opt_lr", r->peak / factor);
    if (!isnan(betas[0]))
        put_list(h, "opt_betas", betas, 2, 1);
    if (!isnan(eps))
        put_real(h, "opt_eps", eps);
    if (strcmp(train->optimizer, "lamb") == 0) {
        put_bool(h, "opt_bias_correction", 1);
        put_bool(h, "opt_grad_averaging", 1);
        put_real(h, "opt_max_grad_norm", train->clip_norm);
    }
    put_real(h, "scheduler_lr_warmup_steps", ceil(r->warmup / r->step));
    put_real(h, "scheduler_lr_warmup_factor", factor);
    if (r->at) {
        put_text(h, "scheduler_type", "multistep");
        put_list(h, "scheduler_milestones", r->at->at, r->at->count, r->step);
        put_real(h, "scheduler_decay_rate", r->factor && r->factor->count ? r->factor->at[0] : 1);
    } else if (strcmp(schedule, "cosine") == 0) {
        const double *end = cvy_schedule_field(t->schedule, "end", CVY_TYPE_REAL);
        put_text(h, "scheduler_type", "cosine_annealing");
        put_real(h, "scheduler_t_max", (double)t->order.last_step);
        put_real(h, "scheduler_eta_min", end ? *end * r->peak : 0);
    } else {
        put_text(h, "scheduler_type", schedule);
    }
}

void cvy_trainer_mlperf_job(cvy_trainer *t, add_fn add)
{
    const struct head h = {t, add};
    const struct rates r = rates_of(t);
    put_submission(&h);
    put_run(&h);
    put_optimizer(&h);
    put_schedule(&h, &r);
    if (strcmp(t->session.job->log.mlperf.benchmark, "deepcam") == 0)
        put_deepcam(&h, &r);
    put_further(&h);
}
