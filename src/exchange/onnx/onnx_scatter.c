/*
 * onnx_scatter.c: ScatterND with constant indices. The leading axes of the data that the indices name become rows:
 *
 *     none  the rows of the data and those of the updates are joined, and each row of the result is one of them
 *     add   each row of the result is one of the data plus one of the updates, or plus one of zeros; updates of the
 *           same row are added one after the other
 *
 * Indices cannot name samples, which are independent of each other, unless the file has a batch of one sample. The axis
 * of the samples lies behind the axes that they name, as exporters transpose it (onnx_batch.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx.h"
#include "exchange/onnx/onnx_fold.h"

enum { MOST_ROUNDS = 64 };

/* What an index names: rows of elements in the order of the file. */
typedef struct scatter {
    const cvy_onnx_tensor *index;
    cvy_shape data;         /* in the file */
    int named;              /* the axes that an index names */
    int64_t rows, elems, n; /* rows of the data, and the elements of each; updates */
    const int64_t *row;     /* of each update */
    int is_sum;
} scatter;

/* ---- the indices ---- */

static cvy_status read_index(const cvy_onnx_node *node, const scatter *s, int64_t i, int64_t *row)
{
    *row = 0;
    for (int d = 0; d < s->named; d++) {
        const int64_t given = cvy_onnx_i64(s->index)[i * s->named + d], size = s->data.dim[d],
                      at = given < 0 ? given + size : given;
        CVY_ONNX_CHECK(at >= 0 && at < size, node, "index %lld names entry %lld of axis %d, which has %lld",
                       (long long)i, (long long)given, d, (long long)size);
        *row = *row * size + at; /* the axis of the samples has the length 1 here */
    }
    return CVY_OK;
}

/* The shape that the updates have by the shapes of the data and the indices. */
static cvy_status check_updates(const cvy_onnx_node *node, const scatter *s, const cvy_shape *updates)
{
    cvy_shape shape = s->index->shape;
    shape.ndim--;
    CVY_ONNX_CHECK(shape.ndim + s->data.ndim - s->named <= CVY_NDIM_MAX, node,
                   "indices of shape %s for data of shape %s", cvy_shape_text(&s->index->shape),
                   cvy_shape_text(&s->data));
    for (int d = s->named; d < s->data.ndim; d++)
        shape.dim[shape.ndim++] = s->data.dim[d];
    CVY_ONNX_CHECK(cvy_shape_equal(&shape, updates), node, "updates of shape %s, expected %s for data of shape %s",
                   cvy_shape_text(updates), cvy_shape_text(&shape), cvy_shape_text(&s->data));
    return CVY_OK;
}

static cvy_status take_index(const cvy_onnx_node *node, const cvy_onnx_tensor *index, scatter *s)
{
    const int last = index->shape.ndim - 1;
    CVY_ONNX_CHECK(index->dtype == CVY_DTYPE_I64 && last >= 0 && index->elems > 0 &&
                       index->shape.dim[last] <= s->data.ndim,
                   node, "indices of shape %s for data of shape %s; they should be integers",
                   cvy_shape_text(&index->shape), cvy_shape_text(&s->data));
    s->index = index;
    s->named = (int)index->shape.dim[last];
    s->n = index->elems / s->named;
    s->rows = s->elems = 1;
    for (int d = 0; d < s->data.ndim; d++)
        *(d < s->named ? &s->rows : &s->elems) *= s->data.dim[d];
    return CVY_OK;
}

static cvy_status read_rows(const cvy_onnx_node *node, scatter *s)
{
    int64_t *row = NULL;
    CVY_TRY(cvy_onnx_take_memory(node->x, sizeof *row * (size_t)s->n));
    CVY_TRY(cvy_pool_alloc(node->x->out->pool, sizeof *row * (size_t)s->n, &row));
    for (int64_t i = 0; i < s->n; i++)
        CVY_TRY(read_index(node, s, i, &row[i]));
    s->row = row;
    return CVY_OK;
}

static cvy_status read_reduction(const cvy_onnx_node *node, scatter *s)
{
    const char *reduction = NULL;
    CVY_TRY(cvy_onnx_string(node, "reduction", &reduction));
    s->is_sum = strcmp(reduction, "add") == 0;
    CVY_ONNX_CHECK(s->is_sum || !*reduction || strcmp(reduction, "none") == 0, node,
                   "reduction %s is not supported; none and add are", reduction);
    return CVY_OK;
}

static cvy_status check_once(const cvy_onnx_node *node, const scatter *s, int64_t i, int is_again)
{
    CVY_ONNX_CHECK(s->is_sum || !is_again, node, "index %lld names the same place as another one", (long long)i);
    return CVY_OK;
}

/* For each row of the data an update that is not used yet, or `other`. *left: updates that are not used then. */
static cvy_status choose(const cvy_onnx_node *node, const scatter *s, int64_t other, uint8_t *used, int64_t *chosen,
                         int64_t *left)
{
    *left = 0;
    for (int64_t r = 0; r < s->rows; r++)
        chosen[r] = other;
    for (int64_t i = 0; i < s->n; i++) {
        if (used[i])
            continue;
        if (chosen[s->row[i]] != other) {
            CVY_TRY(check_once(node, s, i, 1));
            ++*left;
            continue;
        }
        chosen[s->row[i]] = i;
        used[i] = 1;
    }
    return CVY_OK;
}

static cvy_status new_choice(const cvy_onnx_node *node, const scatter *s, uint8_t **used, int64_t **chosen)
{
    const size_t bytes = sizeof **chosen * (size_t)s->rows + (size_t)s->n;
    CVY_TRY(cvy_onnx_take_memory(node->x, bytes));
    CVY_TRY(cvy_pool_alloc(node->x->out->pool, (size_t)s->n, used));
    return cvy_pool_alloc(node->x->out->pool, sizeof **chosen * (size_t)s->rows, chosen);
}

/* ---- constants ---- */

cvy_status cvy_onnx_fold_scatter_nd(const cvy_onnx_node *node, const cvy_onnx_tensor *const *src)
{
    const cvy_onnx_tensor *data = src[0], *updates = src[2];
    scatter s = {.data = data->shape};
    cvy_onnx_tensor *to = NULL;
    uint8_t *seen = NULL;
    CVY_TRY(read_reduction(node, &s));
    CVY_TRY(take_index(node, src[1], &s));
    CVY_TRY(read_rows(node, &s));
    CVY_TRY(check_updates(node, &s, &updates->shape));
    CVY_ONNX_CHECK(data->dtype == updates->dtype && (!s.is_sum || cvy_onnx_is_real(data)), node,
                   "data of %s and updates of %s", cvy_dtype_text(data->dtype), cvy_dtype_text(updates->dtype));
    CVY_TRY(cvy_onnx_new(node->x, data->dtype, &data->shape, &to));
    CVY_TRY(cvy_onnx_take_memory(node->x, (size_t)s.rows));
    CVY_TRY(cvy_pool_alloc(node->x->out->pool, (size_t)CVY_MAX(s.rows, (int64_t)1), &seen));
    for (int64_t i = 0; i < to->elems; i++)
        cvy_onnx_copy_elem(to, i, data, i);
    for (int64_t i = 0; i < updates->elems; i++) {
        const int64_t row = s.row[i / s.elems], k = row * s.elems + i % s.elems;
        CVY_TRY(check_once(node, &s, i / s.elems, i % s.elems == 0 && seen[row]));
        seen[row] = 1;
        if (s.is_sum)
            cvy_onnx_set_number(to, k, cvy_onnx_number(to, k) + cvy_onnx_number(updates, i));
        else
            cvy_onnx_copy_elem(to, k, updates, i);
    }
    return cvy_onnx_done_constant(node, 0, to);
}

/* ---- layers ---- */

/* Where the samples are in the data, and so in the result. */
static cvy_status find_samples(const cvy_onnx_node *node, const cvy_onnx_value *data, const cvy_onnx_value *updates,
                               const scatter *s, cvy_onnx_batch *b)
{
    const int named = s->named, behind = updates->batch.at - s->index->shape.ndim + 1; /* the axes that indices name */
    *b = data->layer ? data->batch : updates->batch;
    if (!data->layer)
        b->at = behind >= 0 ? behind + named : 0;
    const int shares = cvy_onnx_batch_dim(b) > 1;
    CVY_ONNX_CHECK(b->at >= named || (node->x->batch == 1 && !shares), node,
                   "its indices name entries of the axes 0 to %d, and axis %d is that of the samples, which are "
                   "independent of each other",
                   named - 1, b->at);
    if (!updates->layer)
        return CVY_OK;
    const cvy_onnx_batch *u = &updates->batch;
    CVY_ONNX_CHECK(b->at < named ? cvy_onnx_batch_dim(u) == 1 : behind + named == b->at && cvy_onnx_shares_alike(u, b),
                   node, "the samples are on axis %d of the data and on axis %d of the updates%s", b->at, u->at,
                   shares || cvy_onnx_batch_dim(u) > 1 ? ", with others" : "");
    return CVY_OK;
}

/* A source as rows of each sample. */
static cvy_status rows_of(const cvy_onnx_node *node, const cvy_onnx_value *v, int64_t rows, int64_t elems,
                          const char **output)
{
    const cvy_onnx_tensor *t = v->constant;
    cvy_onnx_tensor *to = NULL;
    if (v->layer)
        return cvy_onnx_reshape(node, v->layer, (const int64_t[]){rows, elems}, 2, output);
    CVY_ONNX_CHECK(cvy_onnx_is_real(t), node, "its constant %s should hold real numbers", v->name);
    CVY_TRY(cvy_pool_alloc(node->x->out->pool, sizeof *to, &to));
    *to = *t;
    to->shape = (cvy_shape){.ndim = 3, .dim = {1, rows, elems}};
    to->stored = t->stored ? t->stored : &t->shape;
    return cvy_onnx_repeat_constant(node, to, output);
}

static cvy_status replace_rows(const cvy_onnx_node *node, const scatter *s, const char *updates, uint8_t *used,
                               int64_t *chosen, const char **output)
{
    const char *both[] = {updates, *output};
    int64_t left = 0;
    CVY_TRY(choose(node, s, s->n, used, chosen, &left));
    for (int64_t r = 0; r < s->rows; r++)
        chosen[r] += chosen[r] == s->n ? r : 0;
    CVY_TRY(cvy_onnx_join(node, "concat", "axis: 1", both, 2, output));
    return cvy_onnx_entries(node, *output, 1, chosen, s->rows, output);
}

static cvy_status add_rows(const cvy_onnx_node *node, const scatter *s, const char *updates, uint8_t *used,
                           int64_t *chosen, const char **output)
{
    const char *both[] = {updates, NULL}, *all = NULL, *more = NULL;
    char *options = NULL;
    int64_t left = 1;
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "value: 0, shape: [1, %lld]", (long long)s->elems));
    CVY_TRY(cvy_onnx_step(node, "constant", options, node->x->out->model->input[0].name, &both[1]));
    CVY_TRY(cvy_onnx_join(node, "concat", "axis: 1", both, 2, &all));
    for (int round = 0; left > 0; round++) {
        CVY_ONNX_CHECK(round < MOST_ROUNDS, node, "more than %d updates of one place are added", MOST_ROUNDS);
        CVY_TRY(choose(node, s, s->n, used, chosen, &left));
        CVY_TRY(cvy_onnx_entries(node, all, 1, chosen, s->rows, &more));
        CVY_TRY(cvy_onnx_add(node, &(cvy_onnx_layer){.op = "add", .from = {*output, more}, .nfrom = 2}, NULL, output));
    }
    return CVY_OK;
}

/* The axes of a sample of the result, as a layer has them. */
static int sample_of(const cvy_onnx_node *node, const cvy_onnx_value *data, int at, int64_t *sample)
{
    const cvy_shape *shape = data->layer ? cvy_onnx_shape(node->x, data->layer) : &data->constant->shape;
    int n = 0;
    for (int d = 0; d < shape->ndim; d++)
        if (d != (data->layer ? 0 : at))
            sample[n++] = shape->dim[d];
    return n;
}

static cvy_status translate_scatter_nd(const cvy_onnx_node *node)
{
    const cvy_onnx_value *data = cvy_onnx_source(node, 0), *updates = cvy_onnx_source(node, 2);
    const cvy_onnx_tensor *index = NULL;
    const char *output = NULL, *more = NULL;
    cvy_onnx_batch b;
    int64_t sample[CVY_NDIM_MAX], *chosen = NULL;
    uint8_t *used = NULL;
    scatter s = {0};
    CVY_ONNX_CHECK(data && updates, node, "%s", "a source is left out");
    CVY_TRY(read_reduction(node, &s));
    CVY_TRY(cvy_onnx_constant(node, 1, &index));
    CVY_ONNX_CHECK(index, node, "%s", "a source is left out");
    s.data = data->layer ? data->shape : data->constant->shape;
    CVY_TRY(take_index(node, index, &s));
    CVY_TRY(find_samples(node, data, updates, &s, &b));
    CVY_ONNX_CHECK(s.data.ndim > b.at && s.data.dim[b.at] == cvy_onnx_batch_dim(&b) &&
                       (data->layer || s.data.dim[b.at] == 1),
                   node, "data of shape %s; they must be the same for all samples, which are on axis %d",
                   cvy_shape_text(&s.data), b.at);
    CVY_TRY(read_rows(node, &s));
    CVY_TRY(check_updates(node, &s, updates->layer ? &updates->shape : &updates->constant->shape));
    CVY_TRY(new_choice(node, &s, &used, &chosen));
    CVY_TRY(rows_of(node, data, s.rows, s.elems, &output));
    CVY_TRY(rows_of(node, updates, s.n, s.elems, &more));
    CVY_TRY((s.is_sum ? add_rows : replace_rows)(node, &s, more, used, chosen, &output));
    const int n = sample_of(node, data, b.at, sample);
    CVY_TRY(cvy_onnx_reshape(node, output, sample, n, &output));
    return cvy_onnx_done_moved(node, 0, output, &b);
}
CVY_ONNX_DEFINE(scatter_nd) = {"ScatterND", .attributes = "reduction", .translate = translate_scatter_nd};
