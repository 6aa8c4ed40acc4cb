/*
 * score_calibrate.c: cvy_run_calibrate(): fits the temperature of a classifier on its validation data. Source: Guo et
 * al. 2017.
 *
 * The negative log-likelihood of the labels, as a function of b = 1 / temperature, is convex: its derivative is the sum
 * over the samples of (mean of the logits under softmax(b logits)) - (logit of the label). So it has one least value,
 * which bisection on the sign of the derivative finds. Rank 0 does it on the logits of all samples, in the order of the
 * data, so the result does not depend on the number of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/score.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "metric/metric.h"
#include "network/network_calibration.h"
#include "score/score_applied.h"
#include "score/score_metrics.h"
#include "score/score_rows.h"

struct fit {
    cvy_applied applied;
    int64_t elems, labels; /* of a sample: logits, and positions that have a label */
    int64_t nclasses;      /* logits of a position; a single logit stands for two classes */
    int64_t row;           /* floats of a gathered row: logits, labels, weights of the labels */
    float *block;          /* [block, row], then on rank 0 those of all ranks */
    float *output;         /* [block, elems] */
    size_t *bytes_of;
    cvy_bytes weights; /* of a batch */
    cvy_ints ignored;  /* labels that do not count */
    float *all;        /* on rank 0: [samples, row] */
};

/* ---- gathering logits, labels and weights ---- */

static cvy_status check_classes(const cvy_network *n, const char *run)
{
    CVY_CHECK(n->spec.data.nclasses > 1 || n->output[0].kind != CVY_OUTPUT_YES_LOGITS, CVY_E_CONFIG,
              "each number of the output of %s is a yes or no, and its targets are numbers: only the probabilities of "
              "classes, whose labels are whole numbers, have a temperature",
              run);
    CVY_CHECK(
        n->spec.data.nclasses > 1, CVY_E_CONFIG,
        "%s was trained on numbers: only the probabilities of classes have a temperature; the losses gaussian_nll "
        "and quantile say how sure numbers are",
        run);
    CVY_CHECK(n->output[0].kind != CVY_OUTPUT_VALUES, CVY_E_CONFIG,
              "the output %s of %s has values, which are neither logits nor probabilities of its classes: only "
              "probabilities have a temperature",
              n->output[0].of, run);
    return CVY_OK;
}

static cvy_status check_data(struct fit *f)
{
    const cvy_network *n = f->applied.network;
    const cvy_shape *shape = &n->output[0].shape;
    const cvy_dataset_info *data = cvy_dataset_describe(f->applied.data);
    const cvy_field *target = cvy_dataset_target(data);
    f->elems = cvy_shape_elems(shape);
    f->nclasses = shape->ndim > 0 ? shape->dim[0] : 1;
    f->labels = f->elems / f->nclasses;
    f->row = f->elems + 2 * f->labels;
    CVY_CHECK(!cvy_dtype_is_real(target->dtype), CVY_E_CONFIG, "%s has numbers, %s, and no labels to calibrate on",
              data->path ? data->path : data->format, target->name);
    CVY_CHECK(cvy_shape_elems(&target->shape) == f->labels, CVY_E_SHAPE,
              "an output of %s for each sample, and a target of %s: a temperature needs a label for each position",
              cvy_shape_text(shape), cvy_shape_text(&target->shape));
    return cvy_score_ignored(n->spec.job, data, &f->ignored);
}

static cvy_status allocate(struct fit *f)
{
    const cvy_comm *comm = f->applied.context->comm;
    const size_t blocks = comm->rank == 0 ? (size_t)comm->nranks + 1 : 1, block = (size_t)f->applied.block;
    CVY_TRY(cvy_mem_alloc(sizeof *f->block * blocks * block * (size_t)f->row, &f->block));
    CVY_TRY(cvy_mem_alloc(sizeof *f->output * block * (size_t)f->elems, &f->output));
    CVY_TRY(cvy_mem_alloc(sizeof *f->bytes_of * (size_t)comm->nranks, &f->bytes_of));
    return comm->rank == 0 ? cvy_mem_alloc(sizeof *f->all * (size_t)(f->applied.nsamples * f->row), &f->all) : CVY_OK;
}

static cvy_status compute(struct fit *f, int64_t round)
{
    const cvy_rows *rows = NULL;
    cvy_score_rows with;
    CVY_TRY(cvy_applied_get(&f->applied, round, &rows));
    cvy_status status = cvy_applied_apply(&f->applied, round, rows, &f->output);
    if (status == CVY_OK)
        status = cvy_score_rows_of(cvy_dataset_describe(f->applied.data), rows, &f->weights, &with);
    for (int64_t i = 0; status == CVY_OK && i < rows->n; i++) {
        float *row = f->block + i * f->row;
        memcpy(row, f->output + i * f->elems, sizeof *row * (size_t)f->elems);
        for (int64_t p = 0; p < f->labels; p++) {
            row[f->elems + p] = (float)cvy_get(&with.target, i * f->labels + p);
            row[f->elems + f->labels + p] = (float)with.weight[i * with.weight_each + p % with.weight_each];
        }
    }
    cvy_loader_release(f->applied.loader, rows);
    return status;
}

static cvy_status gather(struct fit *f)
{
    const cvy_applied *b = &f->applied;
    cvy_comm *comm = b->context->comm;
    cvy_status mine = CVY_OK;
    int64_t done = 0, first = 0;
    for (int64_t round = 0; round < cvy_applied_rounds(b); round++) {
        int64_t n = 0;
        if (mine == CVY_OK)
            mine = compute(f, round);
        CVY_TRY(cvy_comm_agree(comm, mine));
        CVY_TRY(cvy_applied_gather(b, round, sizeof *f->block * (size_t)f->row, f->block, f->bytes_of));
        for (int r = 0; r < comm->nranks; r++)
            n += cvy_applied_range(b, round, r, &first);
        if (comm->rank == 0)
            memcpy(f->all + done * f->row, f->block + b->block * f->row, sizeof *f->all * (size_t)(n * f->row));
        done += n;
    }
    return cvy_comm_agree(comm, mine);
}

/* ---- the fit ---- */

/* The derivative of a position's negative log-likelihood with respect to b. */
static double slope_of(const struct fit *f, const float *row, int64_t p, double b)
{
    const int64_t K = f->nclasses, label = (int64_t)row[f->elems + p];
    double top = -INFINITY, sum = 0, mean = 0;
    if (K == 1) /* the logits are 0 and x */
        return row[p] * (1 / (1 + exp(-b * row[p])) - (double)label);
    for (int64_t k = 0; k < K; k++)
        top = CVY_MAX(row[k * f->labels + p], top); /* not fmax(), at which gcc 12 for aarch64 ends with a fault */
    for (int64_t k = 0; k < K; k++) {
        const double z = row[k * f->labels + p], e = exp(b * (z - top));
        sum += e;
        mean += e * z;
    }
    return mean / sum - row[label * f->labels + p];
}

static int is_ignored(const struct fit *f, int64_t label)
{
    for (int i = 0; i < f->ignored.count; i++)
        if (f->ignored.at[i] == label)
            return 1;
    return 0;
}

/* The metrics have checked that each label that counts is a class. */
static double slope(const struct fit *f, double b)
{
    double sum = 0;
    for (int64_t i = 0; i < f->applied.nsamples; i++) {
        const float *row = f->all + i * f->row, *label = row + f->elems, *weight = label + f->labels;
        for (int64_t p = 0; p < f->labels; p++)
            if (weight[p] != 0 && !is_ignored(f, (int64_t)label[p]))
                sum += weight[p] * slope_of(f, row, p, b);
    }
    return sum;
}

/* By bisection, between 0.001 and 1000. */
static cvy_status find_temperature(const struct fit *f, double *temperature_out)
{
    double low = log(1e-3), high = log(1e3);
    CVY_CHECK(slope(f, exp(high)) > 0, CVY_E_NUMERIC,
              "all answers to the samples of the calibration are right, so no temperature above 0.001 has the least "
              "nll: calibrate on more samples, or on harder ones (--calibrate-on)");
    CVY_CHECK(
        slope(f, exp(low)) < 0, CVY_E_NUMERIC,
        "the answers are no better than chance, so no temperature below 1000 has the least nll: are these the classes "
        "of the training, in the same order?");
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        *(slope(f, exp(middle)) < 0 ? &low : &high) = middle;
    }
    *temperature_out = exp(-(low + high) / 2);
    return CVY_OK;
}

/* The value of a metric on all rows with a temperature. */
static cvy_status measure(const struct fit *f, const char *name, double temperature, double *value_out)
{
    const cvy_applied *b = &f->applied;
    const cvy_shape *shape = &b->network->output[0].shape;
    cvy_span output = {.dtype = CVY_DTYPE_F32, .ndim = shape->ndim + 1, .dim = {1}, .elems = f->elems},
             target = {.dtype = CVY_DTYPE_I32, .ndim = 1, .dim = {f->labels}, .elems = f->labels};
    char text[48];
    cvy_pool *pool = NULL;
    cvy_tree *options = NULL;
    cvy_metric *metric = NULL;
    cvy_comm *self = NULL;
    int32_t *labels = NULL;
    double *weight = NULL;
    cvy_status status = CVY_OK;
    memcpy(output.dim + 1, shape->dim, sizeof *shape->dim * (size_t)shape->ndim);
    snprintf(text, sizeof text, "{temperature: %.17g}", temperature);
    CVY_TRY_OUT(cvy_pool_create(&pool));
    CVY_TRY_OUT(cvy_tree_parse_text(pool, "temperature", text, strlen(text), &options));
    CVY_TRY_OUT(cvy_metric_create(name, options, shape, &metric));
    CVY_TRY_OUT(cvy_comm_create_self(&self));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *labels * (size_t)f->labels, &labels));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *weight * (size_t)f->labels, &weight));
    for (int i = 0; i < f->ignored.count; i++)
        cvy_metric_ignore(metric, f->ignored.at[i]);
    for (int64_t i = 0; i < b->nsamples; i++) {
        float *row = f->all + i * f->row;
        for (int64_t p = 0; p < f->labels; p++) {
            labels[p] = (int32_t)row[f->elems + p];
            weight[p] = row[f->elems + f->labels + p];
        }
        output.data = row;
        target.data = labels;
        const cvy_metric_rows rows = {
            .n = 1, .output = &output, .target = &target, .weight = weight, .weight_each = f->labels};
        CVY_TRY_OUT(cvy_metric_add(metric, &rows));
    }
    CVY_TRY_OUT(cvy_metric_finish(metric, self, value_out, NULL));
out:
    cvy_metric_destroy(&metric);
    cvy_mem_free(&labels);
    cvy_mem_free(&weight);
    cvy_pool_destroy(&pool);
    if (self)
        self->ops->destroy(self);
    return status;
}

/* The sum of the weights of all positions that count. */
static double weight_sum(const struct fit *f)
{
    double sum = 0;
    for (int64_t i = 0; i < f->applied.nsamples; i++) {
        const float *label = f->all + i * f->row + f->elems, *weight = label + f->labels;
        for (int64_t p = 0; p < f->labels; p++)
            sum += is_ignored(f, (int64_t)label[p]) ? 0 : weight[p];
    }
    return sum;
}

static cvy_status fit(struct fit *f, cvy_calibration *c)
{
    const double weights = weight_sum(f);
    CVY_CHECK(weights != 0, CVY_E_FORMAT,
              "no sample counts for the calibration: the weights sum to 0, or all labels are ignored; use other data "
              "(--calibrate-on)");
    CVY_CHECK(weights > 0, CVY_E_FORMAT,
              "the weights of the samples of the calibration sum to %g, so it has no least nll; use other data "
              "(--calibrate-on)",
              weights);
    CVY_TRY(measure(f, "nll", 1, &c->nll[0]));
    CVY_TRY(measure(f, "ece", 1, &c->ece[0]));
    CVY_CHECK(isfinite(c->nll[0]), CVY_E_NUMERIC,
              "an output of the network is not finite on the validation data, so no temperature can be fitted");
    CVY_TRY(find_temperature(f, &c->temperature));
    c->samples = f->applied.nsamples;
    CVY_TRY(measure(f, "nll", c->temperature, &c->nll[1]));
    return measure(f, "ece", c->temperature, &c->ece[1]);
}

static cvy_status calibrate(struct fit *f, cvy_context *context, const char *run, const char *data, cvy_calibration *c)
{
    char *checkpoint = NULL; /* rank 0 looks for it */
    cvy_comm *comm = context->comm;
    const cvy_network_opts opts = {.size = sizeof opts};
    cvy_status status = CVY_OK;
    if (!run || !cvy_file_is_folder(run))
        status =
            cvy_error_set(CVY_E_ARGUMENT, "%s is not a run folder, which keeps its calibration", run ? run : "NULL");
    else if (comm->rank == 0)
        status = cvy_run_checkpoint(run, &checkpoint);
    snprintf(c->checkpoint, sizeof c->checkpoint, "%s", checkpoint ? checkpoint : "");
    cvy_text_release(&checkpoint);
    CVY_TRY(cvy_comm_agree(comm, status));
    CVY_TRY(cvy_applied_open(&f->applied, context, run, &opts, 0, CVY_GIVES_SCORED));
    status = check_classes(f->applied.network, run);
    if (status == CVY_OK)
        status = cvy_applied_open_validation(&f->applied, data);
    if (status == CVY_OK)
        status = check_data(f);
    if (status == CVY_OK)
        status = cvy_applied_start(&f->applied, 0);
    if (status == CVY_OK)
        status = allocate(f);
    CVY_TRY(cvy_comm_agree(comm, status));
    CVY_TRY(gather(f));
    status = comm->rank == 0 ? fit(f, c) : CVY_OK;
    if (status == CVY_OK && comm->rank == 0)
        status = cvy_calibration_write(run, c);
    CVY_TRY(cvy_comm_agree(comm, status));
    return comm->ops->broadcast(comm, c, sizeof *c, 0);
}

cvy_status cvy_run_calibrate(cvy_context *context, const char *run, const char *data,
                             cvy_calibration_result *result_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    struct fit f = {0};
    cvy_calibration c = {0};
    CVY_TRY(CVY_RESULT_CHECK(cvy_calibration_result, result_out));
    const cvy_status status = calibrate(&f, context, run, data, &c);
    if (status == CVY_OK) {
        const cvy_calibration_result result = {.temperature = c.temperature,
                                               .samples = c.samples,
                                               .nll_before = c.nll[0],
                                               .nll_after = c.nll[1],
                                               .ece_before = c.ece[0],
                                               .ece_after = c.ece[1]};
        cvy_result_write(result_out, &result, sizeof result);
    }
    cvy_applied_close(&f.applied);
    cvy_mem_free(&f.weights.data);
    cvy_mem_free(&f.block);
    cvy_mem_free(&f.output);
    cvy_mem_free(&f.bytes_of);
    cvy_mem_free(&f.all);
    return status;
}
