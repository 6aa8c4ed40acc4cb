/*
 * metric.c: the code that all metrics share: it checks a batch of rows, adds it up on this rank, and merges the ranks
 * once at the end. A validation or test pass calls it after each forward pass, and calls cvy_metric_finish() at its
 * end, on all ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "metric/metric.h"

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/machine/base_system.h"
#include "base/number/base_exact.h"
#include "base/text/base_table.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sums of the weights of samples that all metrics have: of all, and of those below 0. */
enum { WEIGHTS, BELOW_0, NWEIGHTS };

struct cvy_metric {
    const cvy_metric_def *def;
    cvy_pool *pool;
    void *options;
    cvy_shape output; /* shape of one sample's output */
    int64_t nsums;
    double *sums; /* [nsums] of the latest batch; in cvy_metric_finish(), of all batches and ranks. Of a twofold
                     metric their lower halves follow */
    cvy_exact_window *totals; /* [nsums] of all batches so far, then the sums of weights, see NWEIGHTS */
    float *rows;              /* [nrows, ncols] */
    int64_t nrows, row_room, ncols;
    char why[CVY_METRIC_WHY]; /* the latest value is not finite */
};

static size_t sums_bytes(const cvy_metric *m)
{
    return sizeof *m->sums * (size_t)(m->def->twofold ? 2 * m->nsums : m->nsums);
}

/* ---- create and destroy ---- */

cvy_status cvy_metric_create(const char *name, const cvy_tree *options, const cvy_shape *output_sample,
                             cvy_metric **out)
{
    static const cvy_table_query query = {.what = "metric"};
    int count = 0;
    const cvy_metric_def *const *table = cvy_metric_table(&count), *def = NULL;
    cvy_metric *m = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_table_find(table, count, &query, name, &def));
    CVY_TRY(cvy_handle_alloc(CVY_HANDLE_METRIC, sizeof *m, &m));
    m->def = def;
    m->output = *output_sample;
    CVY_TRY_OUT(cvy_pool_create(&m->pool));
    CVY_TRY_OUT(cvy_pool_alloc(m->pool, CVY_MAX(def->options_size, sizeof(cvy_metric_labels)), &m->options));
    CVY_TRY_OUT(cvy_options_parse(m->pool, name, def->options, options, NULL, m->options, def->options_size));
    if (def->check)
        CVY_TRY_OUT(def->check(m->options, output_sample));
    if (def->open)
        CVY_TRY_OUT(def->open(m->pool, m->options, output_sample));
    m->ncols = def->width ? def->width(m->options, output_sample) : def->ncols;
    if (def->nsums) {
        m->nsums = def->nsums(m->options, &m->output);
        CVY_TRY_OUT(cvy_pool_alloc(m->pool, sums_bytes(m), &m->sums));
    }
    CVY_TRY_OUT(cvy_pool_alloc(m->pool, sizeof *m->totals * (size_t)(m->nsums + NWEIGHTS), &m->totals));
    *out = m;
    return CVY_OK;
out:
    cvy_metric_destroy(&m);
    return status;
}

void cvy_metric_ignore(cvy_metric *m, int64_t label)
{
    cvy_metric_labels *o = m->options;
    if (m->def->wants_labels && o->ignore_label.count < CVY_LIST_MAX)
        o->ignore_label.at[o->ignore_label.count++] = label;
}

const cvy_shape *cvy_metric_output(const cvy_metric *m)
{
    return &m->output;
}

int cvy_metric_wants_labels(const cvy_metric *m)
{
    return m->def->wants_labels;
}

int64_t cvy_metric_targets(const cvy_metric *m)
{
    const int64_t elems = cvy_shape_elems(&m->output);
    if (m->def->wants_labels && m->output.ndim > 0)
        return elems / m->output.dim[0];
    return m->def->targets ? m->def->targets(m->options, &m->output) : elems;
}

void cvy_metric_destroy(cvy_metric **m)
{
    CVY_ENTRY();
    if (!CVY_IS_LIVE_AT(METRIC, m))
        return;
    cvy_mem_free(&(*m)->rows);
    cvy_pool_destroy(&(*m)->pool);
    cvy_handle_free(m);
}

/* ---- adding ---- */

static int is_ignored(const cvy_metric_labels *o, int64_t label)
{
    for (int i = 0; i < o->ignore_label.count; i++)
        if (o->ignore_label.at[i] == label)
            return 1;
    return 0;
}

static cvy_status check_labels(const cvy_metric *m, const cvy_metric_rows *rows)
{
    const cvy_metric_labels *o = m->options;
    const int64_t outputs = m->output.ndim ? m->output.dim[0] : 1, nclasses = CVY_MAX(outputs, 2),
                  each = cvy_shape_elems(&m->output) / outputs;
    CVY_CHECK(rows->target->dtype != CVY_DTYPE_F32 && rows->target->dtype != CVY_DTYPE_F64, CVY_E_CONFIG,
              "metric %s needs integer labels, the targets are %s: is this a regression (rmse, r2)?", m->def->name,
              cvy_dtype_text(rows->target->dtype));
    CVY_CHECK(rows->target->elems == rows->n * each, CVY_E_SHAPE,
              "metric %s: %lld labels for %lld samples of %lld positions", m->def->name, (long long)rows->target->elems,
              (long long)rows->n, (long long)each);
    for (int64_t i = 0; i < rows->target->elems; i++) {
        const int64_t label = (int64_t)cvy_get(rows->target, i);
        CVY_CHECK((label >= 0 && label < nclasses) || is_ignored(o, label) ||
                      cvy_rows_weight(rows, i / each, i % each) == 0,
                  CVY_E_FORMAT,
                  "metric %s: row %lld of the batch has label %lld, expected 0 .. %lld; correct the data, or name the "
                  "label in ignore_label",
                  m->def->name, (long long)(i / each), (long long)label, (long long)(nclasses - 1));
    }
    return CVY_OK;
}

static cvy_status add_rows(cvy_metric *m, const cvy_metric_rows *rows)
{
    const int64_t width = m->ncols;
    if (m->nrows + rows->n > m->row_room) {
        const int64_t room = CVY_MAX(2 * m->row_room, m->nrows + rows->n);
        const size_t row_bytes = sizeof *m->rows * (size_t)width;
        CVY_TRY(cvy_mem_grow(&m->rows, (size_t)m->row_room * row_bytes, (size_t)room * row_bytes));
        m->row_room = room;
    }
    for (int64_t i = 0; i < rows->n; i++) {
        if (cvy_rows_sample_weight(rows, i) == 0)
            continue;
        m->nrows += m->def->row(m->options, rows, i, m->rows + m->nrows * width);
    }
    return CVY_OK;
}

static void add_sums(cvy_metric *m, const cvy_metric_rows *rows)
{
    memset(m->sums, 0, sums_bytes(m));
    m->def->add(m->options, rows, m->sums);
    for (int64_t i = 0; i < m->nsums; i++) {
        cvy_exact_window_add(&m->totals[i], m->sums[i]);
        if (m->def->twofold)
            cvy_exact_window_add(&m->totals[i], m->sums[m->nsums + i]);
    }
}

static void add_weights(cvy_metric *m, const cvy_metric_rows *rows)
{
    double sum[NWEIGHTS] = {0};
    for (int64_t i = 0; i < rows->n; i++) {
        const double weight = cvy_rows_sample_weight(rows, i);
        sum[WEIGHTS] += weight;
        sum[BELOW_0] += weight < 0 ? weight : 0;
    }
    for (int i = 0; i < NWEIGHTS; i++)
        cvy_exact_window_add(&m->totals[m->nsums + i], sum[i]);
}

cvy_status cvy_metric_add(cvy_metric *m, const cvy_metric_rows *rows)
{
    if (rows->n == 0)
        return CVY_OK;
    CVY_CHECK(rows->output->elems == rows->n * cvy_shape_elems(&m->output), CVY_E_SHAPE,
              "metric %s: the output has %lld elements, expected %lld samples of %s", m->def->name,
              (long long)rows->output->elems, (long long)rows->n, cvy_shape_text(&m->output));
    CVY_CHECK(
        rows->weight_each <= 1 || (rows->target->elems / rows->n) % rows->weight_each == 0, CVY_E_SHAPE,
        "metric %s: %lld weights for each sample, whose target has %lld elements: give one for each sample or for "
        "each element or position of the target",
        m->def->name, (long long)rows->weight_each, (long long)(rows->target->elems / rows->n));
    if (m->def->wants_labels)
        CVY_TRY(check_labels(m, rows));
    else
        CVY_CHECK(rows->target->elems == rows->n * cvy_metric_targets(m), CVY_E_SHAPE,
                  "metric %s: the target has %lld elements, the output %lld", m->def->name,
                  (long long)rows->target->elems, (long long)rows->output->elems);
    if (m->def->add)
        add_sums(m, rows);
    if (rows->weight)
        add_weights(m, rows);
    return m->def->row ? add_rows(m, rows) : CVY_OK;
}

static cvy_span part_of(const cvy_span *whole, int64_t rows, int64_t first, int64_t n)
{
    cvy_span part = *whole;
    const int64_t each = whole->elems / rows;
    part.dim[0] = n;
    part.elems = n * each;
    part.data = (char *)whole->data + (size_t)(first * each) * cvy_dtype_bytes(whole->dtype);
    return part;
}

cvy_status cvy_metric_add_part(cvy_metric *m, const cvy_metric_rows *rows, int64_t first, int64_t n)
{
    if (n == 0)
        return CVY_OK;
    const cvy_span output = part_of(rows->output, rows->n, first, n), target = part_of(rows->target, rows->n, first, n);
    const cvy_metric_rows part = {.n = n,
                                  .output = &output,
                                  .target = &target,
                                  .weight = rows->weight ? rows->weight + first * CVY_MAX(rows->weight_each, 1) : NULL,
                                  .weight_each = rows->weight_each};
    return cvy_metric_add(m, &part);
}

/* ---- merging ---- */

/* Descending by column 0, then by the other columns. This is a total order, so the result does not depend on which rank
 * sent which row. */
static int compare(const void *a, const void *b, void *ncols)
{
    const float *x = a, *y = b;
    for (int64_t i = 0; i < *(const int64_t *)ncols; i++)
        if (x[i] != y[i])
            return x[i] > y[i] ? -1 : 1;
    return 0;
}

/* Gathers all ranks' rows on rank 0, sorted. *all_out is NULL on other ranks; the caller frees it with
 * cvy_mem_free(). */
static cvy_status gather_rows(const cvy_metric *m, cvy_comm *comm, float **all_out, int64_t *nall_out)
{
    const size_t row_bytes = sizeof(float) * (size_t)m->ncols, mine = (size_t)m->nrows * row_bytes;
    int64_t ncols = m->ncols;
    size_t *bytes_of = NULL, total = 0;
    float *all = NULL;
    cvy_status status = cvy_mem_alloc(sizeof *bytes_of * (size_t)comm->nranks, &bytes_of);
    CVY_TRY_OUT(cvy_comm_agree(comm, status));
    CVY_TRY_OUT(comm->ops->allgather(comm, &mine, sizeof mine, bytes_of));
    for (int r = 0; r < comm->nranks; r++)
        total += bytes_of[r];
    if (comm->rank == 0)
        status = cvy_mem_alloc(total, &all);
    CVY_TRY_OUT(cvy_comm_agree(comm, status));
    CVY_TRY_OUT(comm->ops->gatherv(comm, m->rows, mine, all, bytes_of, 0));
    if (comm->rank == 0)
        cvy_sort(all, total / row_bytes, row_bytes, compare, &ncols);
    *all_out = all;
    *nall_out = (int64_t)(total / row_bytes);
    all = NULL;
out:
    cvy_mem_free(&all);
    cvy_mem_free(&bytes_of);
    return status;
}

/* Adds the totals of all ranks. Their windows are brought to one place before. */
static cvy_status merge_totals(cvy_metric *m, cvy_comm *comm)
{
    int64_t *top = NULL;
    const int64_t count = m->nsums + NWEIGHTS;
    if (comm->nranks == 1)
        return CVY_OK;
    CVY_TRY(cvy_comm_alloc(comm, sizeof *top * (size_t)count, &top));
    for (int64_t i = 0; i < count; i++)
        top[i] = m->totals[i].top;
    cvy_status status = comm->ops->allreduce(comm, top, count, CVY_DTYPE_I64, CVY_REDUCE_MAX);
    for (int64_t i = 0; i < count && status == CVY_OK; i++) {
        cvy_exact_window_raise(&m->totals[i], top[i]);
        m->totals[i].top = 0;
    }
    if (status == CVY_OK)
        status = comm->ops->allreduce(comm, m->totals, count * CVY_EXACT_WINDOW_WORDS, CVY_DTYPE_I64, CVY_REDUCE_SUM);
    for (int64_t i = 0; i < count && status == CVY_OK; i++)
        m->totals[i].top = top[i];
    cvy_mem_free(&top);
    return status;
}

static void read_totals(cvy_metric *m)
{
    for (int64_t i = 0; i < m->nsums; i++) {
        m->sums[i] = cvy_exact_window_read(&m->totals[i]);
        if (!m->def->twofold)
            continue;
        cvy_exact_window_add(&m->totals[i], -m->sums[i]);
        m->sums[m->nsums + i] = cvy_exact_window_read(&m->totals[i]);
    }
}

static void start_again(cvy_metric *m)
{
    memset(m->totals, 0, sizeof *m->totals * (size_t)(m->nsums + NWEIGHTS));
    m->nrows = 0;
}

/* Scores are divided by sums of weights. With negative weights a total of 0 or less would make numbers that mean
 * nothing, such as a right share above 1. */
static int is_defined(const cvy_metric *m)
{
    return !(cvy_exact_window_read(&m->totals[m->nsums + BELOW_0]) < 0) ||
           cvy_exact_window_read(&m->totals[m->nsums + WEIGHTS]) > 0;
}

static int is_empty(const cvy_metric *m, int64_t nrows)
{
    for (int64_t i = 0; i < m->nsums; i++)
        if (m->sums[i] != 0)
            return 0;
    return nrows == 0;
}

static int are_finite(const cvy_metric *m)
{
    for (int64_t i = 0; i < m->nsums; i++)
        if (!isfinite(m->sums[i]))
            return 0;
    return 1;
}

/* Notes why a value is not finite. */
static void explain(cvy_metric *m, double value, const float *rows, int64_t nrows)
{
    const char *text = "it is not defined for these outputs and targets";
    m->why[0] = '\0';
    if (isfinite(value))
        return;
    if (!is_defined(m))
        text = "the weights of the samples sum to 0 or less";
    else if (is_empty(m, nrows))
        text = "no sample counts: all weights are 0, or all labels are ignored";
    else if (!are_finite(m))
        text = "outputs of the network, or numbers made of them, are not finite";
    else if (m->def->why)
        m->def->why(m->options, &m->output, m->sums, rows, nrows, m->why, sizeof m->why);
    if (!m->why[0])
        snprintf(m->why, sizeof m->why, "%s", text);
}

int cvy_metric_has_detail(const cvy_metric *m)
{
    return m->def->detail != NULL;
}

void cvy_metric_idle(const cvy_metric *m, char text[CVY_METRIC_WHY])
{
    text[0] = '\0';
    if (m->def->idle)
        m->def->idle(m->options, &m->output, text, CVY_METRIC_WHY);
}

const char *cvy_metric_why(const cvy_metric *m)
{
    return m->why;
}

cvy_status cvy_metric_finish(cvy_metric *m, cvy_comm *comm, double *value_out, cvy_json *detail)
{
    float *rows = NULL;
    int64_t nrows = 0;
    double value = 0;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(merge_totals(m, comm));
    read_totals(m);
    if (m->def->row)
        CVY_TRY_OUT(gather_rows(m, comm, &rows, &nrows));
    if (comm->rank == 0) {
        value = is_defined(m) ? m->def->finish(m->options, &m->output, m->sums, rows, nrows) : NAN;
        explain(m, value, rows, nrows);
        if (detail && m->def->detail)
            m->def->detail(m->options, &m->output, m->sums, rows, nrows, detail);
    }
    CVY_TRY_OUT(comm->ops->broadcast(comm, &value, sizeof value, 0));
    *value_out = value;
out:
    cvy_mem_free(&rows);
    start_again(m);
    return status;
}
