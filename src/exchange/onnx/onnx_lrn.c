/*
 * onnx_lrn.c: finds normalisation within channels, which ONNX has no operator for, in the nodes that compute it:
 *
 *     x / (k + alpha * AveragePool(x * x))^beta
 *
 * The last of them, the division, becomes the layer lrn_within. The others are absorbed: their outputs have no other
 * reader.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx.h"

typedef Cvy__Onnx__NodeProto proto;

/* The node of this operator that makes a value which only one source reads; NULL: there is none. */
static const proto *sole_producer(const cvy_onnx *x, const char *value, const char *op)
{
    const int at = cvy_keys_find(&x->names, value);
    const cvy_onnx_value *v = at >= 0 ? &x->value[at] : NULL;
    return v && v->readers == 1 && v->maker && v->maker->n_output == 1 && strcmp(v->maker->op_type, op) == 0 ? v->maker
                                                                                                             : NULL;
}

/* The nodes of the formula, in their order. */
enum { SQUARE, MEAN, WEIGHTED, SUM, POWER, PARTS };

static int match(const cvy_onnx *x, const proto *division, const proto *part[PARTS])
{
    static const char *const op[PARTS] = {"Mul", "AveragePool", "Mul", "Add", "Pow"};
    const char *value = NULL;
    if (strcmp(division->op_type, "Div") != 0 || division->n_input != 2)
        return 0;
    value = division->input[1];
    for (int i = PARTS - 1; i >= 0; i--) {
        part[i] = sole_producer(x, value, op[i]);
        if (!part[i] || part[i]->n_input != (i == MEAN ? 1 : 2))
            return 0;
        value = part[i]->input[0];
    }
    return strcmp(part[SQUARE]->input[0], division->input[0]) == 0 &&
           strcmp(part[SQUARE]->input[1], division->input[0]) == 0;
}

cvy_status cvy_onnx_find_lrn(cvy_onnx *x)
{
    const proto *part[PARTS] = {NULL};
    for (size_t i = 0; i < x->proto->n_node; i++)
        for (int k = 0; k < PARTS && match(x, x->proto->node[i], part); k++)
            CVY_TRY(cvy_index_add(&x->absorbed, part[k]->output[0], CVY_ONNX_NO_LAYER));
    return CVY_OK;
}

/* The second source of a node, which is one number. */
static cvy_status number(const cvy_onnx_node *node, const proto *p, double *out)
{
    const int at = cvy_keys_find(&node->x->names, p->input[1]);
    const cvy_onnx_tensor *t = at >= 0 ? node->x->value[at].constant : NULL;
    CVY_ONNX_CHECK(t && t->elems == 1, node, "%s of the normalisation within channels is no constant number",
                   p->input[1]);
    *out = cvy_build_decimal(cvy_onnx_number(t, 0));
    return CVY_OK;
}

/* All numbers of an attribute are this one. */
static int is_all(const cvy_onnx_node *node, const char *name, int64_t expected, int if_absent)
{
    const Cvy__Onnx__AttributeProto *a = cvy_onnx_attribute(node, name);
    for (size_t i = 0; a && i < a->n_ints; i++)
        if (a->ints[i] != expected)
            return 0;
    return a ? a->n_ints > 0 : if_absent;
}

/* The width of the window, which must be the same in each dimension, and lie around its position. */
static cvy_status width_of(const cvy_onnx_node *node, const proto *p, int64_t *out)
{
    const cvy_onnx_node pool = {.x = node->x, .proto = p, .op = p->op_type, .name = node->name};
    const Cvy__Onnx__AttributeProto *kernel = cvy_onnx_attribute(&pool, "kernel_shape");
    const int64_t size = kernel && kernel->n_ints > 0 ? kernel->ints[0] : 0;
    CVY_ONNX_CHECK(size % 2 == 1 && is_all(&pool, "kernel_shape", size, 0) && is_all(&pool, "strides", 1, 1) &&
                       is_all(&pool, "pads", size / 2, size == 1) && is_all(&pool, "dilations", 1, 1) &&
                       (size == 1 || cvy_onnx_int(&pool, "count_include_pad", 0)) &&
                       !cvy_onnx_attribute(&pool, "auto_pad"),
                   node, "%s", "normalisation within channels needs a window around each position, with its padding");
    *out = size;
    return CVY_OK;
}

cvy_status cvy_onnx_translate_lrn(const cvy_onnx_node *node)
{
    const proto *part[PARTS] = {NULL};
    double alpha = 0, k = 0, beta = 0;
    int64_t size = 0;
    char *options = NULL;
    if (!match(node->x, node->proto, part))
        return CVY_NOT_APPLICABLE;
    CVY_TRY(number(node, part[WEIGHTED], &alpha));
    CVY_TRY(number(node, part[SUM], &k));
    CVY_TRY(number(node, part[POWER], &beta));
    CVY_TRY(width_of(node, part[MEAN], &size));
    CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "size: %lld, alpha: %.9g, beta: %.9g, k: %.9g",
                            (long long)size, alpha, beta, k));
    return cvy_onnx_simple(node, "lrn_within", options);
}
