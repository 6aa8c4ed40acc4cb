/*
 * spectral_norm: divides the weight of a layer by its largest singular value, so that the layer, as a linear map of one
 * position, is no steeper than 1. Critics of generative networks have it. Source: Miyato, Kataoka, Koyama and Yoshida
 * 2018; the order of the iteration and its constants as in PyTorch's parametrizations.spectral_norm.
 *
 *     W      = the weight as a matrix: a row for each output feature
 *     u      = W v / |W v|,  v = W^T u / |W^T u|      one iteration in training; none in evaluation
 *     sigma  = u . W v
 *     dst    = weight / sigma
 *     dweight = (ddst - (sum of ddst * dst) u v^T) / sigma       u and v count as constants
 *
 * The vectors u and v are statistics like those of batch norm: a step reads those of the step before. All micro-batches
 * and all applications of a layer in one step use the same u and v. The new ones are summed over micro-batches and
 * ranks, like the gradients, and their direction is kept: so a rank without samples gets them, too. Until the first
 * step u is zero, which asks for more iterations.
 *
 * It is tested by its samples and by tests/op/test_op_spectral_norm.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/conv/op_spectral_norm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph_grad.h"

/* ---- for layers ---- */

cvy_status cvy_layer_take_weight(cvy_node *node, const cvy_layer_weight *weight)
{
    if (node->nsrc == 1)
        return cvy_node_param(node, "weight", &weight->shape, &weight->init, 1);
    CVY_CHECK(cvy_shape_equal(cvy_node_src(node, 1), &weight->shape), CVY_E_SHAPE,
              "the weight is %s, expected %s for a source %s", cvy_shape_text(cvy_node_src(node, 1)),
              cvy_shape_text(&weight->shape), cvy_shape_text(cvy_node_src(node, 0)));
    return CVY_OK;
}

int cvy_layer_weight_is_made(const cvy_node *node)
{
    return node->nsrc > 1 && node->src[1]->kind != CVY_VALUE_VARIABLE;
}

/* Ranks that share samples or positions need the whole weight, those that share channels their part of it. */
void cvy_layer_part_weight(const cvy_node *node, cvy_node_part *part, int axis)
{
    if (!cvy_layer_weight_is_made(node))
        return;
    if (part->split == CVY_SPLIT_SAMPLES || part->split == CVY_SPLIT_SPACE) {
        part->whole_src |= 1u << 1;
    } else {
        part->other_src = 1;
        part->other_dim = part->split == CVY_SPLIT_CHANNELS ? 0 : axis; /* groups of channels are along dimension 0 */
    }
}

static cvy_status add_node(cvy_graph *g, const char *op, const char *layer, const char *suffix, const void *options,
                           cvy_value *const *src, int nsrc, cvy_phase phase, cvy_node **out)
{
    char name[160];
    snprintf(name, sizeof name, "%s.%s", layer, suffix);
    return cvy_graph_add_parsed(g, cvy_op_find(op), name, layer, options, src, nsrc, phase, out);
}

/* The weight to use, if an earlier application of the layer has made it. */
static cvy_value *made_before(const cvy_graph *g, const char *layer, const char *node_name)
{
    if (cvy_index_find(&g->node_names, node_name) < 0) /* then no node need be looked at */
        return NULL;
    for (int i = 0; i < g->nnode; i++)
        if (strcmp(g->node[i]->op->name, "spectral_norm") == 0 && strcmp(g->node[i]->layer, layer) == 0)
            return g->node[i]->dst[0];
    return NULL;
}

static cvy_status norm_weight(cvy_graph *g, const char *layer, const cvy_layer_weight *weight, cvy_value **out)
{
    cvy_spectral_norm_opts o = {.shape = {.count = weight->shape.ndim},
                                .axis = weight->axis,
                                .iterate = g->training,
                                .init = weight->init.method,
                                .init_options = weight->init.options,
                                .fan_in = weight->init.fan_in,
                                .fan_out = weight->init.fan_out};
    cvy_node *node = NULL, *sum = NULL, *keep = NULL;
    char name[160];
    memcpy(o.shape.at, weight->shape.dim, sizeof *o.shape.at * (size_t)o.shape.count);
    snprintf(name, sizeof name, "%s.spectral_norm", layer);
    *out = made_before(g, layer, name);
    if (*out) {
        CVY_CHECK(cvy_shape_equal(&(*out)->shape, &weight->shape), CVY_E_SHAPE,
                  "variable %s.weight is %s already, and is now declared as %s: layers that share a name must agree",
                  layer, cvy_shape_text(&(*out)->shape), cvy_shape_text(&weight->shape));
        return CVY_OK;
    }
    CVY_TRY(add_node(g, "spectral_norm", layer, "spectral_norm", &o, NULL, 0, CVY_PHASE_MICRO, &node));
    *out = node->dst[0];
    if (!g->training)
        return CVY_OK;
    CVY_TRY(add_node(g, "spectral_norm_sum", layer, "vectors", &o, &node->dst[1], 1, CVY_PHASE_MICRO, &sum));
    return add_node(g, "spectral_norm_keep", layer, "keep", &o, &sum->dst[0], 1, CVY_PHASE_UPDATE, &keep);
}

cvy_status cvy_layer_build(cvy_graph *g, const cvy_op_def *op, const char *name, const void *options,
                           cvy_layer_weight_fn normed, cvy_value *const *src, int nsrc, cvy_value **dst_out)
{
    cvy_value *from[2] = {NULL, NULL};
    cvy_layer_weight weight;
    cvy_node *node = NULL;
    CVY_CHECK(nsrc == 1, CVY_E_SHAPE, "%s takes 1 source, got %d", op->name, nsrc);
    from[0] = src[0];
    if (normed) {
        CVY_TRY(normed(options, &src[0]->shape, &weight));
        CVY_TRY(norm_weight(g, name, &weight, &from[1]));
    }
    CVY_TRY(cvy_graph_add_parsed(g, op, name, name, options, from, normed ? 2 : 1, CVY_PHASE_MICRO, &node));
    *dst_out = node->dst[0];
    return CVY_OK;
}

/* The gradient for the source is a product of ddst and the weight, like the layer itself. */
cvy_status cvy_layer_grad_again(cvy_grad *g, const cvy_node *fwd, const char *op, const void *options,
                                const char *weight_op, const void *weight_options)
{
    cvy_value *d = cvy_grad_of(g, fwd->dst[0]), *made = NULL;
    if (d && cvy_grad_wanted(g, fwd->src[0])) {
        cvy_value *const from[] = {d, fwd->src[1]};
        CVY_TRY(cvy_grad_emit(g, fwd, op, options, from, 2, &made, 1));
        CVY_TRY(cvy_grad_add(g, fwd->src[0], made));
    }
    if (d && cvy_grad_wanted(g, fwd->src[1])) {
        cvy_value *const from[] = {d, fwd->src[0]};
        CVY_TRY(cvy_grad_emit(g, fwd, weight_op, weight_options, from, 2, &made, 1));
        CVY_TRY(cvy_grad_add(g, fwd->src[1], made));
    }
    return CVY_OK;
}

/* ---- spectral_norm ---- */

static const cvy_option spectral_norm_rows[] = {
    {"shape", CVY_TYPE_INTS, CVY_FIELD(cvy_spectral_norm_opts, shape), NULL, "1..", "", "of the weight"},
    {"axis", CVY_TYPE_INT, CVY_FIELD(cvy_spectral_norm_opts, axis), "0", "0..1", "", "axis of the output features"},
    {"iterate", CVY_TYPE_BOOL, CVY_FIELD(cvy_spectral_norm_opts, iterate), "true", "", "",
     "improve the vectors by a power iteration"},
    {"init", CVY_TYPE_STRING, CVY_FIELD(cvy_spectral_norm_opts, init), "he", "", "", "initialiser of the weight"},
    {"init_options", CVY_TYPE_STRING, CVY_FIELD(cvy_spectral_norm_opts, init_options), "", "", "",
     "options of the initialiser"},
    {"fan_in", CVY_TYPE_INT, CVY_FIELD(cvy_spectral_norm_opts, fan_in), "1", "1..", "", "inputs of an output"},
    {"fan_out", CVY_TYPE_INT, CVY_FIELD(cvy_spectral_norm_opts, fan_out), "1", "1..", "", "outputs of an input"},
    {0},
};

cvy_spectral_matrix cvy_spectral_matrix_of(const cvy_spectral_norm_opts *o)
{
    cvy_spectral_matrix m = {.rows = o->shape.at[o->axis], .cols = 1, .inner = 1};
    for (int d = 0; d < o->shape.count; d++) {
        m.cols *= d == o->axis ? 1 : o->shape.at[d];
        m.inner *= d > o->axis ? o->shape.at[d] : 1;
    }
    return m;
}

static int64_t element(const cvy_spectral_matrix *m, int64_t r, int64_t c)
{
    return (c / m->inner * m->rows + r) * m->inner + c % m->inner;
}

/* Appends the two statistics. */
static cvy_status take_vectors(cvy_node *node, const cvy_spectral_matrix *m)
{
    const cvy_shape u = {.ndim = 1, .dim = {m->rows}}, v = {.ndim = 1, .dim = {m->cols}};
    const cvy_init zero = {"constant", "value: 0", 1, 1}, random = {"gaussian", "std: 1", 1, 1};
    CVY_TRY(cvy_node_statistic(node, "weight_u", &u, &zero));
    return cvy_node_statistic(node, "weight_v", &v, &random);
}

static cvy_status spectral_norm_infer(cvy_node *node)
{
    const cvy_spectral_norm_opts *o = node->options;
    const cvy_dtype dtype = cvy_graph_weight_dtype(node->graph);
    CVY_CHECK(o->shape.count >= 2 && o->shape.count <= CVY_NDIM_MAX && o->axis < o->shape.count, CVY_E_SHAPE,
              "spectral_norm needs a weight of 2 to %d dimensions, got %d", CVY_NDIM_MAX, o->shape.count);
    const cvy_shape shape = cvy_shape_make(o->shape.count, o->shape.at);
    const cvy_init init = {o->init, o->init_options, o->fan_in, o->fan_out};
    const cvy_spectral_matrix m = cvy_spectral_matrix_of(o);
    const cvy_shape vectors = {.ndim = 1, .dim = {m.rows + m.cols + 1}};
    CVY_TRY(cvy_node_param(node, "weight", &shape, &init, 1));
    CVY_TRY(take_vectors(node, &m));
    CVY_TRY(cvy_node_set_dst(node, 0, dtype, &shape));
    return cvy_node_set_dst(node, 1, dtype, &vectors);
}

static cvy_status spectral_norm_backward(cvy_grad *g, const cvy_node *fwd)
{
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dweight = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    cvy_value *const from[] = {ddst, fwd->dst[0], fwd->dst[1]};
    CVY_TRY(cvy_grad_emit(g, fwd, "spectral_norm_grad", fwd->options, from, 3, &dweight, 1));
    return cvy_grad_add(g, fwd->src[0], dweight);
}

static int64_t weight_elems(const cvy_node *node)
{
    const cvy_spectral_matrix m = cvy_spectral_matrix_of(node->options);
    return m.rows * m.cols;
}

static void spectral_norm_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const cvy_spectral_norm_opts *o = node->options;
    const int64_t n = weight_elems(node), products = o->iterate ? 3 : 1;
    *cost_out = (cvy_cost){.flop = (2 * products + 1) * n, .read_elems = (products + 1) * n, .write_elems = n};
}

/* Divides n elements from `first` on by their norm. */
static void normalise(const cvy_span *x, int64_t first, int64_t n)
{
    double squares = 0;
    for (int64_t i = first; i < first + n; i++)
        squares += cvy_get(x, i) * cvy_get(x, i);
    const double norm = fmax(sqrt(squares), CVY_SPECTRAL_EPS);
    for (int64_t i = first; i < first + n; i++)
        cvy_set(x, i, cvy_get(x, i) / norm);
}

/* x: {u, v}. Row r of W times v, and column c times u. */
static double row_times(const cvy_spectral_matrix *m, const cvy_span *weight, const cvy_span *x, int64_t r)
{
    double sum = 0;
    for (int64_t c = 0; c < m->cols; c++)
        sum += cvy_get(weight, element(m, r, c)) * cvy_get(x, m->rows + c);
    return sum;
}

static double column_times(const cvy_spectral_matrix *m, const cvy_span *weight, const cvy_span *x, int64_t c)
{
    double sum = 0;
    for (int64_t r = 0; r < m->rows; r++)
        sum += cvy_get(weight, element(m, r, c)) * cvy_get(x, r);
    return sum;
}

static int is_zero(const cvy_span *x)
{
    int zero = 1;
    for (int64_t i = 0; i < x->elems; i++)
        zero = zero && cvy_get(x, i) == 0;
    return zero;
}

static cvy_status spectral_norm_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_spectral_norm_opts *o = node->options;
    const cvy_spectral_matrix m = cvy_spectral_matrix_of(o);
    const cvy_span *weight = &src[0], *x = &dst[1];
    const int times = (o->iterate ? 1 : 0) + (is_zero(&src[1]) ? CVY_SPECTRAL_FIRST : 0);
    double sigma = 0;
    for (int64_t r = 0; r < m.rows; r++)
        cvy_set(x, r, cvy_get(&src[1], r));
    for (int64_t c = 0; c < m.cols; c++)
        cvy_set(x, m.rows + c, cvy_get(&src[2], c));
    for (int i = 0; i < times; i++) {
        for (int64_t r = 0; r < m.rows; r++)
            cvy_set(x, r, row_times(&m, weight, x, r));
        normalise(x, 0, m.rows);
        for (int64_t c = 0; c < m.cols; c++)
            cvy_set(x, m.rows + c, column_times(&m, weight, x, c));
        normalise(x, m.rows, m.cols);
    }
    for (int64_t r = 0; r < m.rows; r++)
        sigma += cvy_get(x, r) * row_times(&m, weight, x, r);
    cvy_set(x, m.rows + m.cols, sigma);
    for (int64_t i = 0; i < dst[0].elems; i++)
        cvy_set(&dst[0], i, cvy_get(weight, i) / sigma);
    return CVY_OK;
}

static const cvy_sample spectral_norm_samples[] = {
    {.src = "", .options = "shape: [5, 7], iterate: false"},
    {.src = "", .options = "shape: [4, 3, 3, 2], iterate: false"},
    {.src = "", .options = "shape: [6, 4, 2, 2], axis: 1, iterate: false"},
    {.src = "", .options = "shape: [5, 7]", .flags = CVY_SAMPLE_NO_GRAD}, /* its vectors depend on the weight */
    {.src = "", .options = "shape: [1, 20]", .flags = CVY_SAMPLE_NO_GRAD},
    {.src = "", .options = "shape: [40, 33, 3, 3]", .flags = CVY_SAMPLE_NO_GRAD},
    {.src = "", .options = "shape: [18, 6, 4, 4], axis: 1", .flags = CVY_SAMPLE_NO_GRAD},
    {.src = "", .options = "shape: [512, 256, 4, 4]", .flags = CVY_SAMPLE_TIMING},
    {0},
};

CVY_OP_DEFINE(spectral_norm) = {
    .name = "spectral_norm",
    .summary = "divides a weight by its largest singular value",
    .options = spectral_norm_rows,
    .options_size = sizeof(cvy_spectral_norm_opts),
    .nsrc_min = 0,
    .nsrc_max = 0,
    .ndst = 2,
    .flags = CVY_OP_HIDDEN,
    .infer = spectral_norm_infer,
    .grad = spectral_norm_backward,
    .cost = spectral_norm_cost,
    .reference = spectral_norm_reference,
    .summands = weight_elems,
    .samples = spectral_norm_samples,
};

/* ---- spectral_norm_grad ---- */

static cvy_status spectral_norm_grad_infer(cvy_node *node)
{
    const cvy_shape *weight = cvy_node_src(node, 1);
    CVY_CHECK(cvy_shape_equal(cvy_node_src(node, 0), weight), CVY_E_SHAPE, "the gradient is %s, the weight is %s",
              cvy_shape_text(cvy_node_src(node, 0)), cvy_shape_text(weight));
    return cvy_node_set_dst(node, 0, node->src[1]->dtype, weight);
}

static void spectral_norm_grad_cost(const cvy_node *node, cvy_cost *cost_out)
{
    const int64_t n = weight_elems(node);
    *cost_out = (cvy_cost){.flop = 6 * n, .read_elems = 3 * n, .write_elems = n};
}

static cvy_status spectral_norm_grad_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_spectral_matrix m = cvy_spectral_matrix_of(node->options);
    const double sigma = cvy_get(&src[2], m.rows + m.cols);
    double along = 0;
    for (int64_t i = 0; i < dst->elems; i++)
        along += cvy_get(&src[0], i) * cvy_get(&src[1], i);
    for (int64_t r = 0; r < m.rows; r++)
        for (int64_t c = 0; c < m.cols; c++) {
            const int64_t i = element(&m, r, c);
            const double outer = cvy_get(&src[2], r) * cvy_get(&src[2], m.rows + c);
            cvy_set(dst, i, (cvy_get(&src[0], i) - along * outer) / sigma);
        }
    return CVY_OK;
}

CVY_OP_DEFINE(spectral_norm_grad) = {
    .name = "spectral_norm_grad",
    .summary = "gradient of spectral_norm for its weight",
    .options = spectral_norm_rows,
    .options_size = sizeof(cvy_spectral_norm_opts),
    .nsrc_min = 3,
    .nsrc_max = 3,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .infer = spectral_norm_grad_infer,
    .cost = spectral_norm_grad_cost,
    .reference = spectral_norm_grad_reference,
    .summands = weight_elems,
};

/* ---- the vectors of the step ---- */

static cvy_status spectral_norm_sum_infer(cvy_node *node)
{
    const cvy_spectral_matrix m = cvy_spectral_matrix_of(node->options);
    const cvy_shape both = {.ndim = 1, .dim = {m.rows + m.cols}};
    return cvy_node_set_accumulator(node, 0, cvy_graph_weight_dtype(node->graph), &both, 1);
}

static cvy_status spectral_norm_sum_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    (void)node;
    for (int64_t i = 0; i < dst->elems; i++)
        cvy_set(dst, i, cvy_get(src, i));
    return CVY_OK;
}

CVY_OP_DEFINE(spectral_norm_sum) = {
    .name = "spectral_norm_sum",
    .summary = "sums the vectors of spectral_norm over micro-batches and ranks",
    .options = spectral_norm_rows,
    .options_size = sizeof(cvy_spectral_norm_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_HIDDEN,
    .infer = spectral_norm_sum_infer,
    .reference = spectral_norm_sum_reference,
};

static cvy_status spectral_norm_keep_infer(cvy_node *node)
{
    const cvy_spectral_matrix m = cvy_spectral_matrix_of(node->options);
    CVY_TRY(take_vectors(node, &m));
    CVY_TRY(cvy_node_assign(node, 0, 1));
    return cvy_node_assign(node, 1, 2);
}

/* Equal vectors that were added have the direction of each. If no sample was seen, the sum is zero, and the vectors
 * stay. */
static cvy_status spectral_norm_keep_reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    const cvy_spectral_matrix m = cvy_spectral_matrix_of(node->options);
    const int stays = is_zero(&src[0]);
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < dst[k].elems; i++)
            cvy_set(&dst[k], i, cvy_get(&src[stays ? 1 + k : 0], i + (stays || k == 0 ? 0 : m.rows)));
        if (!stays)
            normalise(&dst[k], 0, dst[k].elems);
    }
    return CVY_OK;
}

CVY_OP_DEFINE(spectral_norm_keep) = {
    .name = "spectral_norm_keep",
    .summary = "keeps the vectors of spectral_norm for the next step",
    .options = spectral_norm_rows,
    .options_size = sizeof(cvy_spectral_norm_opts),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 2,
    .flags = CVY_OP_ASSIGNS | CVY_OP_HIDDEN,
    .infer = spectral_norm_keep_infer,
    .reference = spectral_norm_keep_reference,
};
