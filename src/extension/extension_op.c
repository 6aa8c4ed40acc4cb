/*
 * extension_op.c: makes a forward and a gradient operator of a user's descriptor.
 *
 * The forward node has the user's sources, then the parameters. The gradient node "<name>_grad" has
 *
 *     sources       the gradient of the result; the sources (READS_SOURCES); the parameters; the result
 *                   (READS_RESULT); the saved results
 *     destinations  the gradients of the sources, then of the parameters; those that nothing needs are left out
 *
 * Its options are the shapes of the sources and which gradients are wanted, then the user's own options. They hold no
 * pointers, because the planner hashes them as bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/base_opts.h"
#include "extension/extension.h"
#include "graph/graph_grad.h"

enum {
    SOURCES = CVY_OPERATOR_SOURCES_MAX,
    PARAMS = CVY_OPERATOR_PARAMS_MAX,
    RESULTS = 1 + CVY_OPERATOR_SAVED_MAX,
    OPTIONS_BYTES_MAX = 1 << 16,
    OPTIONS_MAX = 64,
    SAMPLE_BYTES_MAX = 200,
    MESSAGE_BYTES = 256,
};
_Static_assert(1 + SOURCES + PARAMS + RESULTS <= CVY_NODE_SRC_MAX, "a gradient node has all tensors as sources");
_Static_assert(SOURCES + PARAMS <= CVY_NODE_DST_MAX, "a gradient node has all gradients as destinations");
#define SAME_BIT(name)                                                                                                 \
    _Static_assert((int)CVY_OPERATOR_SPLIT_##name == (int)CVY_SPLIT_##name,                                            \
                   "public names have the values of graph_op.h")
SAME_BIT(SAMPLES);
SAME_BIT(CHANNELS);
SAME_BIT(OUTPUTS);
SAME_BIT(INPUTS);
SAME_BIT(SPACE);

struct grad_shape { /* every byte is set: it is hashed */
    int64_t dtype, ndim, dim[CVY_NDIM_MAX];
};

/* The options of a gradient node; the user's options follow. */
struct grad_options {
    int64_t nsrc, wanted; /* wanted: bit i: destination i */
    struct grad_shape src[SOURCES], dst[RESULTS];
};

/* ---- tensors for the user's functions ---- */

static cvy_operator_tensor tensor_of(cvy_dtype dtype, const cvy_shape *shape)
{
    cvy_operator_tensor t = {.dtype = dtype, .ndim = shape->ndim, .elems = cvy_shape_elems(shape)};
    memcpy(t.dim, shape->dim, sizeof t.dim);
    return t;
}

static cvy_operator_tensor tensor_of_value(const cvy_value *v)
{
    return tensor_of(v->dtype, &v->shape);
}

static cvy_operator_tensor tensor_of_grad(const struct grad_shape *s)
{
    cvy_shape shape = {.ndim = (int)s->ndim};
    memcpy(shape.dim, s->dim, sizeof shape.dim);
    return tensor_of((cvy_dtype)s->dtype, &shape);
}

static struct grad_shape grad_shape_of(cvy_dtype dtype, const cvy_shape *shape)
{
    struct grad_shape s = {.dtype = dtype, .ndim = shape->ndim};
    for (int d = 0; d < shape->ndim; d++)
        s.dim[d] = shape->dim[d];
    return s;
}

/* All tensors of a call, of which some have data. */
struct tensors {
    cvy_operator_tensor src[SOURCES], param[PARAMS], dst[RESULTS], ddst, dsrc[SOURCES], dparam[PARAMS];
};

static const void *own_options(const cvy_node *node)
{
    const cvy_extension_op *x = node->op->family;
    if (!x->own.options_size)
        return NULL;
    return node->op == &x->forward ? node->options : (const char *)node->options + sizeof(struct grad_options);
}

static int is_backward(const cvy_node *node)
{
    return node->op == &((const cvy_extension_op *)node->op->family)->grad;
}

/* Sets the shapes of all tensors of a node. Returns the number of the user's sources. */
static int describe(const cvy_node *node, struct tensors *t)
{
    const cvy_extension_op *x = node->op->family;
    memset(t, 0, sizeof *t);
    if (!is_backward(node)) {
        const int nsrc = node->nsrc - x->nparam;
        for (int i = 0; i < nsrc; i++)
            t->src[i] = tensor_of_value(node->src[i]);
        for (int i = 0; i < x->nparam; i++)
            t->param[i] = tensor_of_value(node->src[nsrc + i]);
        t->dst[0] = tensor_of_value(node->dst[0]);
        for (int i = 1; i <= x->own.nsaved; i++)
            t->dst[i] = tensor_of(node->saved[i].dtype, &node->saved[i].shape);
        return nsrc;
    }
    const struct grad_options *o = node->options;
    const int params = 1 + (x->own.reads & CVY_OPERATOR_READS_SOURCES ? (int)o->nsrc : 0);
    for (int i = 0; i < o->nsrc; i++)
        t->src[i] = t->dsrc[i] = tensor_of_grad(&o->src[i]);
    for (int i = 0; i < x->nparam; i++)
        t->param[i] = t->dparam[i] = tensor_of_value(node->src[params + i]);
    for (int i = 0; i <= x->own.nsaved; i++)
        t->dst[i] = tensor_of_grad(&o->dst[i]);
    t->ddst = t->dst[0];
    return (int)o->nsrc;
}

/* The call of a node whose tensors have been described. */
static cvy_operator_call make_call(const cvy_node *node, const struct tensors *t, int nsrc, int threads, char *message)
{
    const int back = is_backward(node);
    message[0] = 0;
    return (cvy_operator_call){.size = sizeof(cvy_operator_call),
                               .options = own_options(node),
                               .threads = CVY_MAX(threads, 1),
                               .training = node->graph->training,
                               .nsrc = nsrc,
                               .src = t->src,
                               .param = t->param,
                               .dst = t->dst,
                               .ddst = back ? &t->ddst : NULL,
                               .dsrc = back ? t->dsrc : NULL,
                               .dparam = back ? t->dparam : NULL,
                               .message = message,
                               .message_bytes = MESSAGE_BYTES,
                               .user = ((const cvy_extension_op *)node->op->family)->own.user};
}

static cvy_status refuse(const cvy_extension_op *x, const char *what, cvy_status code, char *message)
{
    message[MESSAGE_BYTES - 1] = 0;
    CVY_FAIL(code, "%s (the %s function of %s in %s)", *message ? message : "it failed and gave no reason", what,
             x->own.name, x->file->path);
}

/* ---- shapes ---- */

static cvy_status check_shape(const cvy_extension_op *x, const char *what, int number, const cvy_shape *shape)
{
    size_t bytes = sizeof(double);
    int is_good = shape->ndim >= 0 && shape->ndim <= CVY_NDIM_MAX;
    for (int d = 0; is_good && d < shape->ndim; d++)
        is_good = shape->dim[d] >= 0 && cvy_size_mul(bytes, (size_t)shape->dim[d], &bytes) == CVY_OK;
    CVY_CHECK(is_good && bytes <= (size_t)INT64_MAX, CVY_E_SHAPE,
              "the shape function of %s in %s gives %s %d an impossible shape: expected 0 to %d dimensions, each at "
              "least 0, of a tensor that fits into memory",
              x->own.name, x->file->path, what, number, CVY_NDIM_MAX);
    return CVY_OK;
}

static cvy_status check_sources(const cvy_extension_op *x, const cvy_node *node)
{
    const cvy_graph *g = node->graph;
    CVY_CHECK(g->dtype != CVY_DTYPE_BF16, CVY_E_UNSUPPORTED,
              "an operator of a library computes in f32 or f64, not in bf16: train in f32 (train.dtype)");
    CVY_CHECK(g->batch.nranks == 1 || (x->own.splits & CVY_OPERATOR_SPLIT_SAMPLES), CVY_E_CONFIG,
              "a batch cannot be shared by %d ranks, because %s in %s does not declare CVY_OPERATOR_SPLIT_SAMPLES: "
              "declare it if each sample is computed by itself, or use one rank",
              g->batch.nranks, x->own.name, x->file->path);
    for (int i = 0; i < node->nsrc; i++) {
        const int is_integer = x->own.integer_src >> i & 1, is_real = node->src[i]->dtype == g->dtype;
        CVY_CHECK(is_integer ? !cvy_dtype_is_real(node->src[i]->dtype) : is_real, CVY_E_SHAPE,
                  "source %d of %s is %s, expected %s", i, x->own.name, cvy_dtype_text(node->src[i]->dtype),
                  is_integer ? "integers" : cvy_dtype_text(g->dtype));
    }
    return CVY_OK;
}

static cvy_status add_params(const cvy_extension_op *x, cvy_node *node, const cvy_operator_shapes *s)
{
    for (int i = 0; i < x->nparam; i++) {
        const cvy_operator_param *p = &x->own.params[i];
        const cvy_init init = {.method = p->init ? p->init : "constant",
                               .options = p->init ? p->init_options : "value: 0",
                               .fan_in = CVY_MAX(s->fan_in[i], 1),
                               .fan_out = CVY_MAX(s->fan_out[i], 1)};
        CVY_TRY(check_shape(x, "parameter", i, &s->param[i]));
        for (int d = 0; d < s->param[i].ndim; d++)
            CVY_CHECK(s->param[i].dim[d] > 0, CVY_E_SHAPE, "the parameter %s would be %s", p->name,
                      cvy_shape_text(&s->param[i]));
        CVY_TRY(cvy_node_param(node, p->name, &s->param[i], &init, p->decay));
    }
    return CVY_OK;
}

/* Without a shape function the result is [n, result...]. */
static int own_shape(const cvy_extension_op *x, cvy_operator_shapes *s)
{
    const cvy_shape *result = &x->own.result;
    if (x->own.shape)
        return x->own.shape(s);
    s->dst[0].ndim = 1 + result->ndim;
    s->dst[0].dim[0] = s->src[0].dim[0];
    memcpy(s->dst[0].dim + 1, result->dim, sizeof *result->dim * (size_t)result->ndim);
    return 0;
}

static cvy_status forward_infer(cvy_node *node)
{
    const cvy_extension_op *x = node->op->family;
    cvy_operator_tensor src[SOURCES] = {{0}};
    cvy_operator_shapes s = {.size = sizeof s,
                             .options = x->own.options_size ? node->options : NULL,
                             .nsrc = node->nsrc,
                             .src = src,
                             .user = x->own.user};
    const int64_t samples = node->src[0]->shape.ndim ? node->src[0]->shape.dim[0] : 1;
    CVY_TRY(check_sources(x, node));
    for (int i = 0; i < node->nsrc; i++)
        src[i] = tensor_of_value(node->src[i]);
    if (own_shape(x, &s) != 0)
        return refuse(x, "shape", CVY_E_SHAPE, s.message);
    for (int i = 0; i <= x->own.nsaved; i++)
        CVY_TRY(check_shape(x, "result", i, &s.dst[i]));
    CVY_CHECK(!(x->own.splits & CVY_OPERATOR_SPLIT_SAMPLES) || (s.dst[0].ndim > 0 && s.dst[0].dim[0] == samples),
              CVY_E_SHAPE,
              "the shape function of %s in %s gives a result of %s for %lld samples, but CVY_OPERATOR_SPLIT_SAMPLES "
              "means that axis 0 of the result counts them",
              x->own.name, x->file->path, cvy_shape_text(&s.dst[0]), (long long)samples);
    CVY_TRY(add_params(x, node, &s));
    CVY_TRY(cvy_node_set_dst(node, 0, node->graph->dtype, &s.dst[0]));
    for (int i = 1; i <= x->own.nsaved; i++)
        CVY_TRY(cvy_node_set_saved(node, i, node->graph->dtype, &s.dst[i]));
    return CVY_OK;
}

static cvy_status backward_infer(cvy_node *node)
{
    const cvy_extension_op *x = node->op->family;
    const struct grad_options *o = node->options;
    struct tensors t;
    const int nsrc = describe(node, &t);
    for (int i = 0; i < nsrc + x->nparam; i++) {
        const cvy_operator_tensor *d = i < nsrc ? &t.dsrc[i] : &t.dparam[i - nsrc];
        const cvy_shape shape = cvy_shape_make(d->ndim, d->dim);
        if (o->wanted >> i & 1)
            CVY_TRY(cvy_node_set_dst(node, i, d->dtype, &shape));
    }
    return CVY_OK;
}

/* ---- the gradient ---- */

static cvy_status fill_grad_options(cvy_grad *g, const cvy_node *fwd, int nsrc, struct grad_options *o)
{
    const cvy_extension_op *x = fwd->op->family;
    o->nsrc = nsrc;
    for (int i = 0; i < fwd->nsrc; i++)
        if (!(i < nsrc && (x->own.integer_src >> i & 1)) && cvy_grad_wanted(g, fwd->src[i]))
            o->wanted |= 1 << i;
    for (int i = 0; i < nsrc; i++)
        o->src[i] = grad_shape_of(fwd->src[i]->dtype, &fwd->src[i]->shape);
    o->dst[0] = grad_shape_of(fwd->dst[0]->dtype, &fwd->dst[0]->shape);
    for (int i = 1; i <= x->own.nsaved; i++)
        o->dst[i] = grad_shape_of(fwd->saved[i].dtype, &fwd->saved[i].shape);
    if (x->own.options_size)
        memcpy((char *)o + sizeof *o, fwd->options, x->own.options_size);
    return CVY_OK;
}

static cvy_status forward_grad(cvy_grad *g, const cvy_node *fwd)
{
    const cvy_extension_op *x = fwd->op->family;
    const int nsrc = fwd->nsrc - x->nparam;
    cvy_value *from[CVY_NODE_SRC_MAX] = {cvy_grad_of(g, fwd->dst[0])}, *d[CVY_NODE_DST_MAX] = {NULL};
    struct grad_options *o = NULL;
    int n = 1;
    if (!from[0])
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(g->g->pool, x->grad.options_size, &o));
    CVY_TRY(fill_grad_options(g, fwd, nsrc, o));
    if (!o->wanted)
        return CVY_OK;
    for (int i = 0; i < nsrc && (x->own.reads & CVY_OPERATOR_READS_SOURCES); i++)
        from[n++] = fwd->src[i];
    for (int i = 0; i < x->nparam; i++)
        from[n++] = fwd->src[nsrc + i];
    if (x->own.reads & CVY_OPERATOR_READS_RESULT)
        from[n++] = fwd->dst[0];
    for (int i = 1; i <= x->own.nsaved; i++)
        CVY_TRY(cvy_grad_saved(g, fwd, i, &from[n++]));
    CVY_TRY(cvy_grad_emit_op(g, fwd, &x->grad, o, from, n, d, fwd->nsrc));
    for (int i = 0; i < fwd->nsrc; i++)
        if (d[i])
            CVY_TRY(cvy_grad_add(g, fwd->src[i], d[i]));
    return CVY_OK;
}

/* ---- running ---- */

static cvy_status run_forward(const cvy_node *node, const cvy_span *src, const cvy_span *dst, int threads)
{
    const cvy_extension_op *x = node->op->family;
    char message[MESSAGE_BYTES];
    struct tensors t;
    const int nsrc = describe(node, &t);
    for (int i = 0; i < nsrc; i++)
        t.src[i].data = src[i].data;
    for (int i = 0; i < x->nparam; i++)
        t.param[i].data = src[nsrc + i].data;
    for (int i = 0; i <= x->own.nsaved; i++)
        t.dst[i].data = dst[i].data;
    const cvy_operator_call call = make_call(node, &t, nsrc, threads, message);
    return x->own.forward(&call) == 0 ? CVY_OK : refuse(x, "forward", CVY_E_ARGUMENT, message);
}

static cvy_status run_backward(const cvy_node *node, const cvy_span *src, const cvy_span *dst, int threads)
{
    const cvy_extension_op *x = node->op->family;
    char message[MESSAGE_BYTES];
    struct tensors t;
    const int nsrc = describe(node, &t);
    int n = 0;
    t.ddst.data = src[n++].data;
    for (int i = 0; i < nsrc && (x->own.reads & CVY_OPERATOR_READS_SOURCES); i++)
        t.src[i].data = src[n++].data;
    for (int i = 0; i < x->nparam; i++)
        t.param[i].data = src[n++].data;
    if (x->own.reads & CVY_OPERATOR_READS_RESULT)
        t.dst[0].data = src[n++].data;
    for (int i = 1; i <= x->own.nsaved; i++)
        t.dst[i].data = src[n++].data;
    for (int i = 0; i < nsrc; i++)
        t.dsrc[i].data = dst[i].data;
    for (int i = 0; i < x->nparam; i++)
        t.dparam[i].data = dst[nsrc + i].data;
    const cvy_operator_call call = make_call(node, &t, nsrc, threads, message);
    return x->own.backward(&call) == 0 ? CVY_OK : refuse(x, "backward", CVY_E_ARGUMENT, message);
}

cvy_status cvy_extension_run(const cvy_node *node, const cvy_span *src, const cvy_span *dst, int threads)
{
    const cvy_status status =
        is_backward(node) ? run_backward(node, src, dst, threads) : run_forward(node, src, dst, threads);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "layer %s", node->layer);
}

static cvy_status reference(const cvy_node *node, const cvy_span *src, const cvy_span *dst)
{
    return cvy_extension_run(node, src, dst, 1);
}

const cvy_extension_op *cvy_extension_op_of(const cvy_op_def *op)
{
    return op->reference == reference ? op->family : NULL;
}

static void cost(const cvy_node *node, cvy_cost *cost_out)
{
    const cvy_extension_op *x = node->op->family;
    cvy_operator_cost own = {0};
    char message[MESSAGE_BYTES];
    struct tensors t;
    const int nsrc = describe(node, &t);
    const cvy_operator_call call = make_call(node, &t, nsrc, 1, message);
    *cost_out = (cvy_cost){0};
    for (int i = 0; i < node->nsrc; i++)
        cost_out->read_elems += cvy_shape_elems(&node->src[i]->shape);
    for (int i = 0; i < node->ndst; i++)
        cost_out->write_elems += node->dst[i] ? cvy_shape_elems(&node->dst[i]->shape) : 0;
    if (x->own.cost)
        x->own.cost(&call, &own);
    else
        own.forward_flop = own.backward_flop = cost_out->write_elems;
    cost_out->flop = CVY_MAX(is_backward(node) ? own.backward_flop : own.forward_flop, 0);
}

/* As many values as the cost has operations for each element of the smallest result. */
static int64_t summands(const cvy_node *node)
{
    const cvy_cost c = cvy_node_cost(node);
    int64_t elems = INT64_MAX;
    for (int i = 0; i < node->ndst; i++)
        if (node->dst[i])
            elems = CVY_MIN(elems, CVY_MAX(cvy_shape_elems(&node->dst[i]->shape), 1));
    return CVY_MAX(c.flop / elems, 4);
}

/* ---- reading a descriptor ---- */

static int is_word(const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    return word && word[0] >= 'a' && word[0] <= 'z' && strlen(word) < 64 && word[strspn(word, letters)] == 0;
}

static const struct {
    cvy_option_type type;
    size_t bytes;
} option_types[] = {
    [CVY_OPERATOR_INT] = {CVY_TYPE_INT, sizeof(int64_t)},
    [CVY_OPERATOR_REAL] = {CVY_TYPE_REAL, sizeof(double)},
    [CVY_OPERATOR_BOOL] = {CVY_TYPE_BOOL, sizeof(int)},
    [CVY_OPERATOR_CHOICE] = {CVY_TYPE_CHOICE, sizeof(int)},
};

static cvy_status check_option(const cvy_operator *own, const cvy_operator_option *o)
{
    static const char *const taken[] = {"name", "from", "output", "stage"};
    CVY_CHECK(is_word(o->name), CVY_E_ARGUMENT,
              "the option '%s' has no good name: expected lower-case letters, digits and '_'", o->name);
    for (int i = 0; i < CVY_COUNT(taken); i++)
        CVY_CHECK(strcmp(o->name, taken[i]) != 0, CVY_E_ARGUMENT,
                  "an option cannot be called '%s', which is a key of every layer: give it another name", o->name);
    CVY_CHECK((int)o->type >= 0 && (int)o->type < CVY_COUNT(option_types), CVY_E_ARGUMENT,
              "the option %s has the type %d, expected one of CVY_OPERATOR_INT, REAL, BOOL and CHOICE", o->name,
              (int)o->type);
    const size_t bytes = option_types[o->type].bytes;
    CVY_CHECK(o->offset % bytes == 0 && own->options_size >= bytes && o->offset <= own->options_size - bytes,
              CVY_E_ARGUMENT,
              "the option %s lies at byte %zu of a struct of %zu bytes: use offsetof() and sizeof, and a field of type "
              "%s",
              o->name, o->offset, own->options_size,
              bytes == sizeof(int)           ? "int"
              : o->type == CVY_OPERATOR_REAL ? "double"
                                             : "int64_t");
    CVY_CHECK(o->type != CVY_OPERATOR_CHOICE || (o->valid && *o->valid), CVY_E_ARGUMENT,
              "the option %s is a CHOICE: give its words in `valid`, such as \"zero|wrap\"", o->name);
    return CVY_OK;
}

static cvy_status make_options(cvy_pool *pool, const cvy_operator *own, cvy_op_def *def)
{
    cvy_option *rows = NULL;
    int n = 0;
    if (!own->options || !own->options[0].name) {
        CVY_CHECK(own->options_size == 0, CVY_E_ARGUMENT, "options_size is %zu, but there is no table of options",
                  own->options_size);
        return CVY_OK;
    }
    CVY_CHECK(own->options_size <= OPTIONS_BYTES_MAX, CVY_E_ARGUMENT, "options_size is %zu, expected at most %d",
              own->options_size, OPTIONS_BYTES_MAX);
    while (own->options[n].name)
        CVY_CHECK(++n < OPTIONS_MAX, CVY_E_ARGUMENT, "more than %d options: the table must end with {0}", OPTIONS_MAX);
    CVY_TRY(cvy_pool_alloc(pool, sizeof *rows * (size_t)(n + 1), &rows));
    for (int i = 0; i < n; i++) {
        const cvy_operator_option *o = &own->options[i];
        CVY_TRY(check_option(own, o));
        rows[i] = (cvy_option){.name = o->name,
                               .type = option_types[o->type].type,
                               .offset = o->offset,
                               .fallback = o->fallback,
                               .valid = o->valid ? o->valid : "",
                               .unit = "",
                               .help = o->help ? o->help : ""};
    }
    def->options = rows;
    def->options_size = own->options_size;
    return CVY_OK;
}

/* The engine of the tests has limited room for the texts of a sample. */
static cvy_status check_sample(const cvy_operator *own, const cvy_operator_sample *s, int number)
{
    int nsrc = 1;
    for (const char *at = s->src; (at = strchr(at, ',')) != NULL; at++)
        nsrc++;
    CVY_CHECK(nsrc >= own->nsrc_min && nsrc <= own->nsrc_max, CVY_E_ARGUMENT,
              "sample %d has %d sources, expected %d to %d", number, nsrc, own->nsrc_min, own->nsrc_max);
    CVY_CHECK(strlen(s->src) <= SAMPLE_BYTES_MAX && (!s->options || strlen(s->options) <= SAMPLE_BYTES_MAX),
              CVY_E_ARGUMENT, "the texts of sample %d are longer than %d characters", number, SAMPLE_BYTES_MAX);
    return CVY_OK;
}

cvy_status cvy_extension_read_sample(const cvy_operator *own, const cvy_operator_sample *given, int number,
                                     cvy_sample *out)
{
    CVY_TRY(check_sample(own, given, number));
    *out = (cvy_sample){.src = given->src, .options = given->options, .int_bound = given->int_bound};
    if (given->flags & CVY_OPERATOR_SAMPLE_POSITIVE)
        out->flags |= CVY_SAMPLE_POSITIVE;
    if (given->flags & CVY_OPERATOR_SAMPLE_NO_GRADIENT)
        out->flags |= CVY_SAMPLE_NO_GRAD;
    return CVY_OK;
}

static cvy_status make_samples(cvy_pool *pool, const cvy_operator *own, const cvy_sample **out)
{
    enum { SAMPLES_MAX = 1000 };
    cvy_sample *list = NULL;
    int n = 0;
    while (own->samples && own->samples[n].src)
        CVY_CHECK(++n < SAMPLES_MAX, CVY_E_ARGUMENT, "more than %d samples: the table must end with {0}", SAMPLES_MAX);
    if (n == 0)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *list * (size_t)(n + 1), &list));
    for (int i = 0; i < n; i++)
        CVY_TRY(cvy_extension_read_sample(own, &own->samples[i], i, &list[i]));
    *out = list;
    return CVY_OK;
}

static cvy_status check_params(const cvy_operator *own, int *count_out)
{
    int n = 0;
    for (; own->params && own->params[n].name; n++) {
        CVY_CHECK(n < PARAMS, CVY_E_ARGUMENT, "more than %d parameters: the table must end with {0}", PARAMS);
        CVY_CHECK(is_word(own->params[n].name), CVY_E_ARGUMENT,
                  "the parameter '%s' has no good name: expected lower-case letters, digits and '_'",
                  own->params[n].name);
        for (int i = 0; i < n; i++)
            CVY_CHECK(strcmp(own->params[i].name, own->params[n].name) != 0, CVY_E_ARGUMENT,
                      "two parameters are called %s", own->params[n].name);
    }
    *count_out = n;
    return CVY_OK;
}

static cvy_status check_operator(const cvy_operator *own)
{
    const unsigned splits = CVY_OPERATOR_SPLIT_SAMPLES | CVY_OPERATOR_SPLIT_CHANNELS | CVY_OPERATOR_SPLIT_OUTPUTS |
                            CVY_OPERATOR_SPLIT_INPUTS | CVY_OPERATOR_SPLIT_SPACE;
    CVY_CHECK(own->forward, CVY_E_ARGUMENT, "it has no forward function, which every operator needs");
    CVY_CHECK(own->shape || !(own->nsaved || (own->params && own->params[0].name)), CVY_E_ARGUMENT,
              "it has parameters or saved results and no shape function, which gives their shapes");
    int fits = own->result.ndim >= 0 && own->result.ndim < CVY_NDIM_MAX;
    for (int d = 0; fits && d < own->result.ndim; d++)
        fits = own->result.dim[d] > 0;
    CVY_CHECK(fits && (!own->shape || own->result.ndim == 0), CVY_E_ARGUMENT,
              "result is %s, expected at most %d dimensions, each at least 1, and none if there is a shape function",
              fits ? cvy_shape_text(&own->result) : "no shape", CVY_NDIM_MAX - 1);
    CVY_CHECK(own->nsrc_min >= 1 && own->nsrc_max >= own->nsrc_min && own->nsrc_max <= SOURCES, CVY_E_ARGUMENT,
              "it takes %d to %d sources, expected 1 to %d", own->nsrc_min, own->nsrc_max, SOURCES);
    CVY_CHECK(own->nsaved >= 0 && own->nsaved < RESULTS, CVY_E_ARGUMENT, "nsaved is %d, expected 0 to %d", own->nsaved,
              RESULTS - 1);
    CVY_CHECK(!(own->integer_src >> own->nsrc_max), CVY_E_ARGUMENT,
              "integer_src is 0x%x, which names sources that it does not have", own->integer_src);
    CVY_CHECK(!(own->splits & ~splits), CVY_E_ARGUMENT, "splits is 0x%x, expected CVY_OPERATOR_SPLIT_* only",
              own->splits);
    CVY_CHECK(!(own->reads & ~(unsigned)(CVY_OPERATOR_READS_SOURCES | CVY_OPERATOR_READS_RESULT)), CVY_E_ARGUMENT,
              "reads is 0x%x, expected CVY_OPERATOR_READS_* only", own->reads);
    return CVY_OK;
}

static cvy_status make_defs(cvy_pool *pool, cvy_extension_op *x)
{
    cvy_operator *own = &x->own;
    char *name = NULL, *summary = NULL, *grad_name = NULL, *grad_summary = NULL;
    CVY_TRY(cvy_pool_strdup(pool, own->name, &name));
    CVY_TRY(cvy_pool_strdup(pool, own->summary ? own->summary : "", &summary));
    own->name = name;
    own->summary = summary;
    CVY_TRY(cvy_pool_printf(pool, &grad_name, "%s_grad", own->name));
    CVY_TRY(cvy_pool_printf(pool, &grad_summary, "gradient of %s", own->name));
    x->forward = (cvy_op_def){.name = own->name,
                              .summary = own->summary,
                              .nsrc_min = own->nsrc_min,
                              .nsrc_max = own->nsrc_max,
                              .ndst = 1 + own->nsaved,
                              .nsaved = own->nsaved,
                              .flags = CVY_OP_STATEFUL, /* and it may expect to be asked for what it saves */
                              .splits = own->splits,
                              .infer = forward_infer,
                              .grad = own->backward ? forward_grad : NULL,
                              .cost = cost,
                              .reference = reference,
                              .summands = summands,
                              .family = x};
    x->grad = (cvy_op_def){.name = grad_name,
                           .summary = grad_summary,
                           .options_size = sizeof(struct grad_options) + own->options_size,
                           .nsrc_min = 1,
                           .nsrc_max = CVY_NODE_SRC_MAX,
                           .ndst = own->nsrc_max + x->nparam,
                           .flags = CVY_OP_HIDDEN,
                           .splits = own->splits,
                           .infer = backward_infer,
                           .cost = cost,
                           .reference = reference,
                           .summands = summands,
                           .family = x};
    CVY_TRY(make_options(pool, own, &x->forward));
    return make_samples(pool, own, &x->forward.samples);
}

cvy_status cvy_extension_op_create(cvy_pool *pool, const cvy_extension_file *file, const cvy_operator *given,
                                   cvy_extension_op **out)
{
    cvy_extension_op *x = NULL;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *x, &x));
    x->file = file;
    CVY_TRY(CVY_OPTS_READ(cvy_operator, given, &x->own));
    CVY_CHECK(is_word(x->own.name), CVY_E_ARGUMENT,
              "an operator is called '%s', expected lower-case letters, digits and '_'",
              x->own.name ? x->own.name : "");
    cvy_status status = check_operator(&x->own);
    if (status == CVY_OK)
        status = check_params(&x->own, &x->nparam);
    if (status == CVY_OK)
        status = make_defs(pool, x);
    if (status != CVY_OK)
        return cvy_error_prefix(status, "operator %s", x->own.name);
    *out = x;
    return CVY_OK;
}
