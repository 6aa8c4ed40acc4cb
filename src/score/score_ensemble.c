/*
 * score_ensemble.c: combines the answers of several networks, or of several passes with dropout: see score_ensemble.h.
 *
 * The answers of a sample are combined on the rank that has computed them, in the order of members and passes, so the
 * result does not depend on the number of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "score/score_ensemble.h"

#include <convoy/score.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_hash.h"
#include "data/data_names.h"
#include "job/job_table.h"
#include "monitor/monitor_run_layout.h"
#include "op/loss/op_distribution.h"
#include "score/score_yes.h"
#include "session/session.h"
#include "session/session_values.h"

/* ---- probabilities ---- */

int cvy_is_single_logit(int64_t elems, int64_t nclasses)
{
    return elems == 1 && nclasses == 2;
}

/* The largest logit is subtracted, so that no exponential overflows. */
void cvy_class_probabilities(const float *logit, int64_t elems, int64_t nclasses, double temperature, double *out)
{
    const int single = cvy_is_single_logit(elems, nclasses);
    double largest = -INFINITY, sum = 0;
    for (int64_t k = 0; k < nclasses; k++) {
        out[k] = (single ? (k == 1 ? logit[0] : 0) : logit[k]) / (temperature > 0 ? temperature : 1);
        largest = CVY_MAX(out[k], largest); /* not fmax(), at which gcc 12 for aarch64 ends with a fault */
    }
    for (int64_t k = 0; k < nclasses; k++)
        sum += out[k] = exp(out[k] - largest);
    for (int64_t k = 0; k < nclasses; k++)
        out[k] /= sum;
}

/* In nats. */
static double entropy_of(const double *p, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum -= p[k] > 0 ? p[k] * log(p[k]) : p[k] == p[k] ? 0 : p[k];
    return sum;
}

/* ---- the members ---- */

static cvy_status add_member(cvy_ensemble *e, const char **name, const char *path)
{
    char *copy = NULL;
    CVY_CHECK(e->nmember < CVY_MEMBERS_MAX, CVY_E_ARGUMENT, "an ensemble has at most %d members", CVY_MEMBERS_MAX);
    CVY_TRY(cvy_pool_strdup(e->pool, path, &copy));
    name[e->nmember++] = copy;
    return CVY_OK;
}

/* Lists the runs in a folder that have a checkpoint, in the order of their names. *name_out is in the pool. */
static cvy_status list_runs(cvy_pool *pool, const char *folder, char ***name_out, int *count_out)
{
    char **entry = NULL, path[2 * CVY_RUN_PATH];
    const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
    int64_t nentry = 0;
    int count = 0;
    CVY_TRY(cvy_file_list(pool, folder, &entry, &nentry));
    for (int64_t i = 0; i < nentry; i++) {
        const int bytes = snprintf(path, sizeof path, "%s%s%s/%s", folder, slash, entry[i], CVY_RUN_CHECKPOINTS);
        if (entry[i][0] != '.' && bytes < (int)sizeof path && cvy_file_is_folder(path))
            CVY_TRY(cvy_pool_printf(pool, &entry[count++], "%s%s%s", folder, slash, entry[i]));
    }
    *name_out = entry;
    *count_out = count;
    return CVY_OK;
}

static cvy_status add_folder(cvy_ensemble *e, const char **name, const char *folder)
{
    char **run = NULL;
    int count = 0;
    CVY_TRY(list_runs(e->pool, folder, &run, &count));
    for (int i = 0; i < count; i++)
        CVY_TRY(add_member(e, name, run[i]));
    return count > 0 ? CVY_OK : CVY_NOT_APPLICABLE;
}

int cvy_ensemble_is_folder(const char *path)
{
    cvy_pool *pool = NULL;
    char **run = NULL;
    int count = 0;
    if (!path || !*path || !cvy_file_is_folder(path) || cvy_network_is_run(path) || cvy_pool_create(&pool) != CVY_OK)
        return 0;
    const cvy_status status = list_runs(pool, path, &run, &count);
    cvy_pool_destroy(&pool);
    return status == CVY_OK && count > 0;
}

/* A folder that is neither a run nor holds any is left to the network, which says what it is not. */
static cvy_status list_members(cvy_ensemble *e, const cvy_ensemble_opts *o)
{
    const char **name = NULL;
    CVY_TRY(cvy_pool_create(&e->pool));
    CVY_TRY(cvy_pool_alloc(e->pool, sizeof *name * CVY_MEMBERS_MAX, &name));
    for (int i = 0; i < o->ntarget; i++) {
        const char *target = o->target[i];
        const int is_folder = cvy_file_is_folder(target) && *target && !cvy_network_is_run(target);
        const cvy_status status = is_folder ? add_folder(e, name, target) : CVY_NOT_APPLICABLE;
        CVY_TRY(status == CVY_NOT_APPLICABLE ? add_member(e, name, target) : status);
    }
    e->name = name;
    return cvy_pool_alloc(e->pool, sizeof *e->member * (size_t)CVY_MAX(e->nmember, 1), &e->member);
}

static int has_dropout(const cvy_network *n)
{
    for (int i = 0; i < n->model->nlayer; i++)
        if (strcmp(n->model->layer[i].op->name, "dropout") == 0)
            return 1;
    return 0;
}

/* The distribution that the first loss of a job trains, or NULL. */
static const cvy_distribution_def *distribution_of(const cvy_job *job)
{
    const cvy_op_def *op = job->train.nloss > 0 ? cvy_op_find(job->train.loss[0].name) : NULL;
    return op ? cvy_distribution_of(op) : NULL;
}

/* Outputs of one shape may mean different things: means, or quantiles of several levels. */
static cvy_status check_meaning(const cvy_ensemble *e, int m)
{
    const cvy_job *a = e->member[0].network->spec.job, *b = e->member[m].network->spec.job;
    const cvy_distribution_def *of_a = distribution_of(a), *of_b = distribution_of(b);
    struct cvy_distribution x = {0}, y = {0};
    if (!of_a && !of_b)
        return CVY_OK;
    CVY_CHECK(of_a == of_b, CVY_E_CONFIG,
              "%s was trained with the loss %s and %s with %s, so their outputs mean different things: they make no "
              "ensemble",
              e->name[0], a->train.nloss ? a->train.loss[0].name : "of its data", e->name[m],
              b->train.nloss ? b->train.loss[0].name : "of its data");
    const cvy_op_def *op = cvy_op_find(a->train.loss[0].name);
    CVY_TRY(cvy_distribution_parse(op, a->train.loss[0].options, &x));
    CVY_TRY(cvy_distribution_parse(op, b->train.loss[0].options, &y));
    for (int i = 0; i < x.levels.count && i < y.levels.count; i++)
        CVY_CHECK(x.levels.at[i] == y.levels.at[i], CVY_E_CONFIG,
                  "level %d of the quantiles is %g in %s and %g in %s: they make no ensemble", i + 1, x.levels.at[i],
                  e->name[0], y.levels.at[i], e->name[m]);
    return CVY_OK;
}

/* Targets of tables have names, and outputs are in their order. */
static cvy_status check_targets(const cvy_ensemble *e, int m)
{
    const cvy_columns *a = &e->member[0].network->spec.stored.columns, *b = &e->member[m].network->spec.stored.columns;
    char text[2][CVY_DATA_NAMES_TEXT];
    cvy_data_names relation = CVY_DATA_NAMES_SAME;
    if (a->x && b->x)
        CVY_TRY(cvy_data_names_relate(a->y, a->ny, b->y, b->ny, &relation));
    CVY_CHECK(relation == CVY_DATA_NAMES_SAME, CVY_E_CONFIG,
              "the targets are %s in %s and %s in %s: they make no ensemble", cvy_data_names_text(a->y, a->ny, text[0]),
              e->name[0], cvy_data_names_text(b->y, b->ny, text[1]), e->name[m]);
    return CVY_OK;
}

/* Compares a member with the first one. */
static cvy_status check_member(const cvy_ensemble *e, int m)
{
    const cvy_network *a = e->member[0].network, *b = e->member[m].network;
    const cvy_dataset_info *x = &a->spec.data, *y = &b->spec.data;
    CVY_CHECK(e->passes == 0 || has_dropout(b), CVY_E_CONFIG,
              "%s has no dropout, so all of its passes give the same: name several runs as an ensemble instead",
              e->name[m]);
    CVY_CHECK(x->nclasses == y->nclasses, CVY_E_CONFIG, "%s has %lld classes and %s has %lld: they make no ensemble",
              e->name[0], (long long)x->nclasses, e->name[m], (long long)y->nclasses);
    for (int64_t k = 0; k < x->nclasses && x->class_name && y->class_name; k++)
        CVY_CHECK(strcmp(x->class_name[k], y->class_name[k]) == 0, CVY_E_CONFIG,
                  "class %lld is \"%s\" in %s and \"%s\" in %s: they make no ensemble", (long long)k, x->class_name[k],
                  e->name[0], y->class_name[k], e->name[m]);
    CVY_TRY(check_targets(e, m));
    CVY_CHECK(a->noutput == b->noutput, CVY_E_CONFIG, "%s has %d outputs and %s has %d: they make no ensemble",
              e->name[0], a->noutput, e->name[m], b->noutput);
    for (int k = 0; k < a->noutput; k++)
        CVY_CHECK(a->output[k].kind == b->output[k].kind, CVY_E_CONFIG,
                  "the output %s has %s in %s and %s in %s: as they are they make no ensemble; their probabilities may "
                  "(--probabilities)",
                  a->output[k].of, cvy_output_kind_text(a->output[k].kind), e->name[0],
                  cvy_output_kind_text(b->output[k].kind), e->name[m]);
    for (int k = 0; k < a->noutput; k++)
        CVY_CHECK(cvy_shape_equal(&a->output[k].shape, &b->output[k].shape), CVY_E_SHAPE,
                  "output %s is %s in %s and %s in %s: they make no ensemble", a->output[k].name,
                  cvy_shape_text(&a->output[k].shape), e->name[0], cvy_shape_text(&b->output[k].shape), e->name[m]);
    return check_meaning(e, m);
}

/* ---- what is computed ---- */

static int gives_classes(const cvy_network *n)
{
    const int64_t elems = cvy_shape_elems(&n->output[0].shape), nclasses = n->spec.data.nclasses;
    return n->noutput == 1 && nclasses > 1 && n->output[0].shape.ndim <= 1 && n->output[0].kind != CVY_OUTPUT_VALUES &&
           (elems >= nclasses || cvy_is_single_logit(elems, nclasses));
}

/* Whether the probabilities have the shape of the output, and not a column for each class. */
static int has_place(const cvy_network *n)
{
    const cvy_shape *shape = &n->output[0].shape;
    const int64_t nclasses = n->spec.data.nclasses;
    if (n->output[0].kind == CVY_OUTPUT_YES_LOGITS)
        return nclasses == 0 || shape->ndim > 1;
    return n->output[0].kind == CVY_OUTPUT_LOGITS && nclasses > 1 && shape->ndim > 1 && shape->dim[0] == nclasses;
}

static void add_answer(cvy_ensemble *e, const char *name, const char *of, const cvy_shape *shape, int by_class)
{
    e->answer[e->nanswer++] = (cvy_answer){name, of, *shape, cvy_shape_elems(shape), by_class};
}

static cvy_status list_answers(cvy_ensemble *e)
{
    const cvy_network *n = e->member[0].network;
    const cvy_shape classes = {1, {e->nclasses}}, number = {0};
    if (e->by_class) {
        add_answer(e, "probability", NULL, &classes, 1);
        add_answer(e, "entropy", NULL, &number, 0);
        add_answer(e, "mutual_information", NULL, &number, 0);
        return CVY_OK;
    }
    CVY_CHECK(e->nanswer_each == 1 || 2 * n->noutput <= CVY_NETWORK_ARRAYS, CVY_E_UNSUPPORTED,
              "mean and standard deviation of %d outputs, the limit is %d", n->noutput, CVY_NETWORK_ARRAYS / 2);
    for (int k = 0; k < n->noutput; k++) {
        const cvy_shape *shape = &n->output[k].shape;
        add_answer(e, n->output[k].of, NULL, shape, shape->ndim == 1 && cvy_shape_elems(shape) == e->nclasses);
    }
    for (int k = 0; k < n->noutput && e->nanswer_each > 1; k++)
        add_answer(e, n->output[k].of, "std", &n->output[k].shape, 0);
    return CVY_OK;
}

/* Ranks may see a folder at different times. */
static cvy_status check_same_members(const cvy_ensemble *e, cvy_comm *comm)
{
    cvy_hasher h;
    cvy_hash_begin(&h);
    for (int m = 0; m < e->nmember; m++)
        cvy_hash_add(&h, e->name[m], strlen(e->name[m]) + 1);
    const uint64_t mine = cvy_hash_end(&h);
    uint64_t first = mine;
    CVY_TRY(comm->ops->broadcast(comm, &first, sizeof first, 0));
    return cvy_comm_agree(comm, first == mine
                                    ? CVY_OK
                                    : cvy_error_set(CVY_E_DISAGREE,
                                                    "rank %d finds %d members, and they are not those of rank "
                                                    "0: name the runs, or use a folder that all ranks see alike",
                                                    comm->rank, e->nmember));
}

cvy_status cvy_ensemble_open(cvy_ensemble *e, cvy_context *context, const cvy_ensemble_opts *o)
{
    const cvy_network_opts opts = {.size = sizeof opts, .job = o->job, .outputs = o->outputs, .weights = o->weights};
    cvy_status status = CVY_OK;
    e->passes = o->passes;
    e->is_calibrated = o->calibrated;
    if (o->passes != 0 && (o->passes < 2 || o->passes > 100000))
        status = cvy_error_set(CVY_E_ARGUMENT, "%lld passes with dropout, expected 2 .. 100000", (long long)o->passes);
    if (status == CVY_OK)
        status = list_members(e, o);
    CVY_TRY(cvy_comm_agree(context->comm, status));
    CVY_TRY(check_same_members(e, context->comm));
    const int several = e->nmember * CVY_MAX(e->passes, 1) > 1;
    const cvy_network_gives gives =
        several && o->all_classes && !o->outputs && o->gives == CVY_GIVES_OUTPUTS ? CVY_GIVES_CLASSES : o->gives;
    for (int m = 0; m < e->nmember; m++) {
        status = cvy_applied_open(&e->member[m], context, e->name[m], &opts, o->passes > 0, gives);
        if (status != CVY_OK)
            return e->nmember > 1 ? cvy_error_prefix(status, "%s", e->name[m]) : status;
        CVY_TRY(cvy_comm_agree(context->comm, check_member(e, m)));
    }
    e->nanswer_each = e->nmember * CVY_MAX(e->passes, 1);
    e->nclasses = e->member[0].network->spec.data.nclasses;
    e->in_place = o->in_place && has_place(e->member[0].network);
    e->by_class = e->nanswer_each > 1 && o->all_classes && !o->outputs && gives_classes(e->member[0].network);
    return cvy_comm_agree(context->comm, list_answers(e));
}

static cvy_status allocate(cvy_ensemble *e)
{
    const cvy_network *n = e->member[0].network;
    const size_t block = (size_t)e->member[0].block, doubles = block * sizeof(double);
    for (int k = 0; k < n->noutput; k++) {
        const size_t elems = (size_t)cvy_shape_elems(&n->output[k].shape);
        CVY_TRY(cvy_mem_alloc(block * elems * sizeof(float), &e->output[k]));
        if (e->nanswer_each == 1 || e->by_class)
            continue;
        CVY_TRY(cvy_mem_alloc(doubles * elems, &e->mean[k]));
        CVY_TRY(cvy_mem_alloc(doubles * elems, &e->square[k]));
    }
    if (!e->by_class)
        return CVY_OK;
    /* and a row for one answer */
    CVY_TRY(cvy_mem_alloc(sizeof(double) * (block + 1) * (size_t)e->nclasses, &e->probability));
    return cvy_mem_alloc(doubles, &e->entropy);
}

cvy_status cvy_ensemble_open_data(cvy_ensemble *e, const char *source, int needs_targets)
{
    for (int m = 0; m < e->nmember; m++) {
        CVY_TRY(cvy_applied_open_data(&e->member[m], source, needs_targets));
        CVY_TRY(cvy_applied_start(&e->member[m], m ? e->member[0].block : 0));
        CVY_CHECK(e->member[m].nsamples == e->member[0].nsamples, CVY_E_FORMAT,
                  "%s reads %lld samples and %s reads %lld: an ensemble needs the same data for all", e->name[0],
                  (long long)e->member[0].nsamples, e->name[m], (long long)e->member[m].nsamples);
    }
    const cvy_applied *b = &e->member[0];
    cvy_session_log_note(b->context, b->data);
    cvy_values_look(b->context,
                    &(cvy_values_ask){
                        .job = b->network->spec.job, .model = b->network->model, .key = source ? source : "data.test"},
                    b->data);
    return allocate(e);
}

/* ---- answers ---- */

/* Adds answer number `at` of n samples to the means: Welford's rule, which loses no digits for small deviations. */
static void add_numbers(cvy_ensemble *e, int64_t at, int64_t n)
{
    for (int k = 0; k < e->member[0].network->noutput; k++)
        for (int64_t i = 0; i < n * e->answer[k].elems; i++) {
            const double x = e->output[k][i], before = x - e->mean[k][i];
            e->mean[k][i] += before / (double)(at + 1);
            e->square[k][i] += before * (x - e->mean[k][i]);
        }
}

static void add_classes(cvy_ensemble *e, const cvy_network *network, int64_t n)
{
    const int64_t elems = cvy_shape_elems(&network->output[0].shape), K = e->nclasses;
    const double share = 1.0 / (double)e->nanswer_each;
    double *one = e->probability + e->member[0].block * K;
    for (int64_t i = 0; i < n; i++) {
        cvy_class_probabilities(e->output[0] + i * elems, elems, K, e->is_calibrated ? network->spec.temperature : 0,
                                one);
        for (int64_t k = 0; k < K; k++)
            e->probability[i * K + k] += share * one[k];
        e->entropy[i] += share * entropy_of(one, K);
    }
}

static void clear(cvy_ensemble *e, int64_t n)
{
    for (int k = 0; k < e->member[0].network->noutput && !e->by_class; k++) {
        memset(e->mean[k], 0, sizeof **e->mean * (size_t)(n * e->answer[k].elems));
        memset(e->square[k], 0, sizeof **e->square * (size_t)(n * e->answer[k].elems));
    }
    for (int64_t i = 0; i < n && e->by_class; i++) {
        memset(e->probability + i * e->nclasses, 0, sizeof *e->probability * (size_t)e->nclasses);
        e->entropy[i] = 0;
    }
}

/* The mutual information of answer and class: the entropy of the mean less the mean entropy. It is not negative, apart
 * from rounding. */
static void write_results(const cvy_ensemble *e, int64_t n, float *const *result)
{
    const int noutput = e->member[0].network->noutput;
    for (int k = 0; k < noutput && !e->by_class; k++)
        for (int64_t i = 0; i < n * e->answer[k].elems; i++) {
            result[k][i] = (float)e->mean[k][i];
            result[noutput + k][i] = (float)sqrt(e->square[k][i] / (double)(e->nanswer_each - 1));
        }
    for (int64_t i = 0; i < n && e->by_class; i++) {
        const double *p = e->probability + i * e->nclasses, whole = entropy_of(p, e->nclasses);
        for (int64_t k = 0; k < e->nclasses; k++)
            result[0][i * e->nclasses + k] = (float)p[k];
        result[1][i] = (float)whole;
        result[2][i] = (float)(whole > e->entropy[i] ? whole - e->entropy[i] : 0 * whole);
    }
}

/* Makes probabilities of the logits of n samples, [K, positions...] each: softmax over K classes, or sigmoid. */
static void put_in_place(const cvy_ensemble *e, const cvy_network *network, int64_t n, float *x)
{
    const double temperature = e->is_calibrated && network->spec.temperature > 0 ? network->spec.temperature : 1;
    const int64_t K = network->output[0].kind == CVY_OUTPUT_LOGITS ? e->nclasses : 1, P = e->answer[0].elems / K;
    for (int64_t i = 0; i < n * P; i++) {
        float *logit = x + i / P * K * P + i % P;
        double top = -INFINITY, sum = 0;
        for (int64_t k = 0; k < K; k++)
            top = CVY_MAX(logit[k * P], top); /* not fmax(), as above */
        for (int64_t k = 0; k < K; k++)
            sum += exp((logit[k * P] - top) / temperature);
        for (int64_t k = 0; k < K; k++)
            logit[k * P] =
                (float)(K == 1 ? cvy_sigmoid(logit[0] / temperature) : exp((logit[k * P] - top) / temperature) / sum);
    }
}

static cvy_status apply(const cvy_ensemble *e, int m, int64_t round, const cvy_rows *rows, float *const *output)
{
    CVY_TRY(cvy_applied_apply(&e->member[m], round, rows, output));
    if (e->in_place)
        put_in_place(e, e->member[m].network, rows->n, output[0]);
    return CVY_OK;
}

/* Applies member m; its passes follow those of the members before. */
static cvy_status apply_member(cvy_ensemble *e, int m, int64_t round, const cvy_rows *rows)
{
    cvy_applied *b = &e->member[m];
    const int64_t passes = CVY_MAX(e->passes, 1);
    for (int64_t pass = 0; pass < passes; pass++) {
        b->network->pass = pass;
        CVY_TRY(apply(e, m, round, rows, e->output));
        if (e->by_class)
            add_classes(e, b->network, rows->n);
        else
            add_numbers(e, m * passes + pass, rows->n);
    }
    return CVY_OK;
}

cvy_status cvy_ensemble_compute(cvy_ensemble *e, int64_t round, float *const *result, uint8_t *is_bad)
{
    const int single = e->nanswer_each == 1;
    int64_t first = 0;
    const int64_t n = cvy_applied_range(&e->member[0], round, e->member[0].context->comm->rank, &first);
    cvy_status status = CVY_OK;
    if (!single)
        clear(e, n);
    for (int64_t i = 0; i < n; i++)
        is_bad[i] = 0;
    for (int m = 0; m < e->nmember && status == CVY_OK; m++) {
        const cvy_rows *rows = NULL;
        status = cvy_applied_get(&e->member[m], round, &rows);
        if (status == CVY_OK)
            status = single ? apply(e, m, round, rows, result) : apply_member(e, m, round, rows);
        for (int64_t i = 0; i < n && status == CVY_OK; i++)
            is_bad[i] |= rows->weight[i] == 0;
        if (rows)
            cvy_loader_release(e->member[m].loader, rows);
    }
    if (status == CVY_OK && !single)
        write_results(e, n, result);
    return status;
}

void cvy_ensemble_close(cvy_ensemble *e)
{
    for (int m = 0; m < e->nmember && e->member; m++)
        cvy_applied_close(&e->member[m]);
    for (int k = 0; k < CVY_NETWORK_ARRAYS; k++) {
        cvy_mem_free(&e->output[k]);
        cvy_mem_free(&e->mean[k]);
        cvy_mem_free(&e->square[k]);
    }
    cvy_mem_free(&e->probability);
    cvy_mem_free(&e->entropy);
    cvy_pool_destroy(&e->pool);
}
