/*
 * metric_open.c: metrics of the public API, which are made from text and read plain memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "context/context.h"
#include "metric/metric.h"

static cvy_status open_text(cvy_pool *pool, const char *text, const cvy_shape *output, cvy_metric **out)
{
    cvy_tree *tree = NULL, *options = NULL;
    CVY_TRY(cvy_tree_parse_text(pool, "metric", text, strlen(text), &tree));
    const int is_map = tree->kind == CVY_TREE_MAP;
    const cvy_tree *name = is_map ? cvy_tree_get(tree, "name") : tree;
    CVY_CHECK(name && name->kind == CVY_TREE_SCALAR && name->text, CVY_E_CONFIG,
              "%s: a metric is a name, or a map with the key \"name\"", cvy_tree_where(tree));
    CVY_TRY(cvy_tree_new_map(pool, "metric", &options));
    for (int i = 0; is_map && i < tree->count; i++)
        if (strcmp(tree->key[i], "name") != 0)
            CVY_TRY(cvy_tree_set(pool, options, tree->key[i], tree->child[i]));
    return cvy_metric_create(name->text, options, output, out);
}

cvy_status cvy_metric_open(const char *metric, const cvy_shape *output, cvy_metric **metric_out)
{
    CVY_ENTRY();
    cvy_pool *pool = NULL;
    CVY_CHECK(metric && output && metric_out, CVY_E_ARGUMENT,
              "cvy_metric_open() needs a metric, the shape of an output and an output pointer for the metric");
    CVY_CHECK(output->ndim >= 0 && output->ndim < CVY_NDIM_MAX, CVY_E_ARGUMENT,
              "an output of %d dimensions, expected 0 .. %d without the batch", output->ndim, CVY_NDIM_MAX - 1);
    CVY_CHECK(cvy_shape_fits(output) && cvy_shape_elems(output) > 0, CVY_E_SHAPE,
              "an output of %s for each sample: a dimension is below 1, or no memory can hold it",
              cvy_shape_text(output));
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = open_text(pool, metric, output, metric_out);
    cvy_pool_destroy(&pool);
    return status;
}

/* Describes memory as [rows, sample...] in row-major layout. */
static cvy_span span_of(const void *data, cvy_dtype dtype, int64_t rows, const cvy_shape *sample)
{
    cvy_span span = {.dtype = dtype,
                     .ndim = sample->ndim + 1,
                     .dim = {rows},
                     .elems = rows * cvy_shape_elems(sample),
                     .data = (void *)(uintptr_t)data};
    for (int i = 0; i < sample->ndim; i++)
        span.dim[i + 1] = sample->dim[i];
    return span;
}

cvy_status cvy_metric_add_rows(cvy_metric *m, const cvy_metric_batch *batch)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(METRIC, m));
    cvy_metric_batch b;
    CVY_TRY(CVY_OPTS_READ(cvy_metric_batch, batch, &b));
    CVY_CHECK(b.rows >= 0 && (b.rows == 0 || (b.output && b.target)), CVY_E_ARGUMENT,
              "a batch of %lld rows needs outputs and targets", (long long)b.rows);
    CVY_CHECK(b.output_dtype == CVY_DTYPE_F32 || b.output_dtype == CVY_DTYPE_F64, CVY_E_ARGUMENT,
              "outputs are %s, expected f32 or f64", cvy_dtype_text(b.output_dtype));
    CVY_CHECK((int)b.target_dtype >= 0 && b.target_dtype < CVY_DTYPE_BF16, CVY_E_ARGUMENT,
              "targets are of dtype number %d, expected f32, f64, i64, i32 or u8", (int)b.target_dtype);
    const cvy_shape *output = cvy_metric_output(m);
    CVY_CHECK(cvy_shape_fits(&(cvy_shape){2, {b.rows, cvy_shape_elems(output)}}), CVY_E_ARGUMENT,
              "a batch of %lld rows: no memory can hold their outputs", (long long)b.rows);
    const int is_real = b.target_dtype == CVY_DTYPE_F32 || b.target_dtype == CVY_DTYPE_F64;
    const cvy_shape number = {1, {cvy_metric_targets(m)}};
    cvy_shape label = {0};
    for (int i = 1; i < output->ndim; i++) /* one label for each position */
        label.dim[label.ndim++] = output->dim[i];
    const cvy_shape *target = !is_real ? &label : cvy_metric_targets(m) == cvy_shape_elems(output) ? output : &number;
    const cvy_span outputs = span_of(b.output, b.output_dtype, b.rows, output),
                   targets = span_of(b.target, b.target_dtype, b.rows, target);
    return cvy_metric_add(m,
                          &(cvy_metric_rows){.n = b.rows, .output = &outputs, .target = &targets, .weight = b.weight});
}

cvy_status cvy_metric_reduce(cvy_metric *m, cvy_context *context, double *value_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(METRIC, m));
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    return cvy_metric_finish(m, context->comm, value_out, NULL);
}
