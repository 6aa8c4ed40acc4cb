/*
 * onnx_pad.c: Pad: with a number, with the source mirrored at its ends (reflect), with its outermost entries (edge), or
 * with its other end (wrap).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "exchange/onnx/onnx.h"

/* The pads of all axes, or from operator set 18 on those of the axes in source 3. Negative ones crop. */
static cvy_status read_pads(const cvy_onnx_node *node, const cvy_shape *src, cvy_onnx_pads *out)
{
    const int64_t *pads = NULL, *axes = NULL;
    int n = 0, naxes = 0;
    CVY_TRY(cvy_onnx_ints(node, cvy_onnx_attribute(node, "paddings") ? "paddings" : "pads", 1, &pads, &n));
    CVY_TRY(cvy_onnx_ints(node, NULL, 3, &axes, &naxes));
    *out = (cvy_onnx_pads){.ndim = src->ndim};
    CVY_ONNX_CHECK(n == 2 * (naxes ? naxes : src->ndim), node, "%d pads for %s", n, cvy_shape_text(src));
    for (int i = 0; i < n / 2; i++) {
        int axis = i;
        if (pads[i] == 0 && pads[n / 2 + i] == 0)
            continue;
        CVY_TRY(cvy_onnx_axis(node, naxes ? axes[i] : i, src->ndim, &axis));
        CVY_ONNX_CHECK(pads[i] > -src->dim[axis] && pads[n / 2 + i] > -src->dim[axis] && pads[i] < CVY_ONNX_SIZE &&
                           pads[n / 2 + i] < CVY_ONNX_SIZE && pads[i] + pads[n / 2 + i] > -src->dim[axis],
                       node, "pads of %lld and %lld for axis %d of %s", (long long)pads[i], (long long)pads[n / 2 + i],
                       axis, cvy_shape_text(src));
        out->before[axis] = pads[i];
        out->after[axis] = pads[n / 2 + i];
    }
    return CVY_OK;
}

/* Negative pads: their entries are left out, and *p has zeros in place of them. */
static cvy_status crop(const cvy_onnx_node *node, cvy_onnx_pads *p, const char **output)
{
    for (int d = 1; d < p->ndim; d++) {
        const int64_t first = CVY_MAX(-p->before[d], (int64_t)0),
                      end = cvy_onnx_shape(node->x, *output)->dim[d] - CVY_MAX(-p->after[d], (int64_t)0);
        CVY_TRY(cvy_onnx_slice(node, *output, d, first, end - first, output));
        p->before[d] = CVY_MAX(p->before[d], (int64_t)0);
        p->after[d] = CVY_MAX(p->after[d], (int64_t)0);
    }
    return CVY_OK;
}

/* Zeros before and after: of the channels in a layer of its own, then of the positions. */
static cvy_status pad_with_zeros(const cvy_onnx_node *node, const cvy_onnx_pads *p, const char **output)
{
    const cvy_shape shape = *cvy_onnx_shape(node->x, *output);
    cvy_text options = {0};
    char *channels = NULL;
    int any = 0;
    for (int d = 2; d < p->ndim; d++)
        any |= p->before[d] > 0 || p->after[d] > 0;
    if (p->before[1] || p->after[1]) {
        CVY_TRY(cvy_pool_printf(node->x->out->pool, &channels, "axis: 1, first: %lld, whole: %lld",
                                (long long)p->before[1], (long long)(p->before[1] + shape.dim[1] + p->after[1])));
        CVY_TRY(cvy_onnx_step(node, "pad_slice", channels, *output, output));
    }
    if (!any)
        return CVY_OK;
    cvy_onnx_list(&options, "before", p->before + 2, p->ndim - 2);
    cvy_onnx_list(&options, "after", p->after + 2, p->ndim - 2);
    const cvy_status status =
        options.status == CVY_OK ? cvy_onnx_step(node, "pad", options.data, *output, output) : options.status;
    cvy_text_free(&options);
    return status;
}

/* `count` entries of an axis that are this number, whatever the source is. */
static cvy_status slab(const cvy_onnx_node *node, const char *from, int axis, int64_t count, double number,
                       const char **output)
{
    cvy_shape shape = *cvy_onnx_shape(node->x, from);
    shape.dim[axis] = count;
    CVY_TRY(cvy_onnx_slice(node, from, axis, 0, 1, output));
    CVY_TRY(cvy_onnx_step_real(node, "scale", "by", 0, *output, output));
    CVY_TRY(cvy_onnx_step_real(node, "offset", "by", number, *output, output));
    return cvy_onnx_expand(node, *output, shape.dim + 1, shape.ndim - 1, output);
}

/* A sum with the number and a difference after padding with zeros would round the source. */
static cvy_status pad_with_number(const cvy_onnx_node *node, const cvy_onnx_pads *p, double number, const char **output)
{
    for (int d = 1; d < p->ndim; d++) {
        const char *part[3] = {NULL};
        char *options = NULL;
        int n = 0;
        if (p->before[d] == 0 && p->after[d] == 0)
            continue;
        if (p->before[d])
            CVY_TRY(slab(node, *output, d, p->before[d], number, &part[n++]));
        part[n++] = *output;
        if (p->after[d] && p->after[d] == p->before[d])
            part[n++] = part[0];
        else if (p->after[d])
            CVY_TRY(slab(node, *output, d, p->after[d], number, &part[n++]));
        CVY_TRY(cvy_pool_printf(node->x->out->pool, &options, "axis: %d", d));
        CVY_TRY(cvy_onnx_join(node, "concat", options, part, n, output));
    }
    return CVY_OK;
}

/* The entry of an axis of this size that stands at position `at`, which may be outside. */
static int64_t entry_at(const char *mode, int64_t at, int64_t size)
{
    if (strcmp(mode, "edge") == 0)
        return CVY_MIN(CVY_MAX(at, (int64_t)0), size - 1);
    if (strcmp(mode, "wrap") == 0)
        return (at % size + size) % size;
    const int64_t period = CVY_MAX(2 * (size - 1), (int64_t)1), k = (at % period + period) % period;
    return CVY_MIN(k, period - k);
}

static cvy_status pad_with_entries(const cvy_onnx_node *node, const char *mode, const cvy_onnx_pads *p,
                                   const char **output)
{
    enum { MOST = 1 << 20 };
    for (int d = 1; d < p->ndim; d++) {
        const int64_t size = cvy_onnx_shape(node->x, *output)->dim[d], all = p->before[d] + size + p->after[d];
        int64_t *at = NULL;
        if (all == size)
            continue;
        CVY_ONNX_CHECK(all <= MOST, node, "axis %d gets %lld entries, at most %d", d, (long long)all, MOST);
        CVY_ONNX_CHECK(strcmp(mode, "reflect") != 0 || (p->before[d] < size && p->after[d] < size), node,
                       "mode reflect with pads of %lld and %lld for an axis of %lld, expected less",
                       (long long)p->before[d], (long long)p->after[d], (long long)size);
        CVY_TRY(cvy_pool_alloc(node->x->out->pool, sizeof *at * (size_t)all, &at));
        for (int64_t i = 0; i < all; i++)
            at[i] = entry_at(mode, i - p->before[d], size);
        CVY_TRY(cvy_onnx_entries(node, *output, d, at, all, output));
    }
    return CVY_OK;
}

static cvy_status read_mode(const cvy_onnx_node *node, const char **mode)
{
    CVY_TRY(cvy_onnx_string(node, "mode", mode));
    const int is_known = !**mode || strcmp(*mode, "constant") == 0 || strcmp(*mode, "reflect") == 0 ||
                         strcmp(*mode, "edge") == 0 || strcmp(*mode, "wrap") == 0;
    CVY_ONNX_CHECK(is_known, node, "mode %s is not supported; constant, reflect, edge and wrap are", *mode);
    return CVY_OK;
}

static cvy_status read_number(const cvy_onnx_node *node, double *out)
{
    const cvy_onnx_tensor *value = NULL;
    CVY_TRY(cvy_onnx_constant(node, 2, &value));
    CVY_ONNX_CHECK(!value || value->elems <= 1, node, "%lld numbers to pad with",
                   (long long)(value ? value->elems : 0));
    *out = value && value->elems ? cvy_onnx_number(value, 0) : cvy_onnx_real(node, "value", 0);
    return CVY_OK;
}

/* The only reader of a value, if it is a MaxPool, which ignores padding itself. */
static int feeds_max_pool(const cvy_onnx_node *node)
{
    const Cvy__Onnx__NodeProto *reader = cvy_onnx_reader(node->x, node->proto->output[0]);
    return reader && strcmp(reader->op_type, "MaxPool") == 0;
}

/* The pads before a maximum, if the node is a Pad with numbers that never are it. They are left to the MaxPool. */
static cvy_status leave_to_max_pool(const cvy_onnx_node *node, const cvy_onnx_value *src, const cvy_onnx_pads *pads)
{
    cvy_onnx_pads *copy = NULL;
    cvy_onnx_value *out = NULL;
    CVY_TRY(cvy_pool_alloc(node->x->out->pool, sizeof *copy, &copy));
    *copy = *pads;
    CVY_TRY(cvy_onnx_done(node, 0, src->layer));
    out = &node->x->value[cvy_keys_find(&node->x->names, node->proto->output[0])];
    out->pads = copy;
    return CVY_OK;
}

static cvy_status translate_pad(const cvy_onnx_node *node)
{
    const cvy_onnx_value *src = NULL;
    const char *mode = NULL, *output = NULL;
    cvy_onnx_pads pads;
    double number = 0;
    CVY_TRY(cvy_onnx_activation(node, 0, &src));
    CVY_TRY(read_mode(node, &mode));
    CVY_TRY(read_pads(node, &src->shape, &pads));
    CVY_TRY(read_number(node, &number));
    output = src->layer;
    const int is_constant = !*mode || strcmp(mode, "constant") == 0;
    if (is_constant && number < -1e38 && feeds_max_pool(node))
        return leave_to_max_pool(node, src, &pads);
    CVY_TRY(crop(node, &pads, &output));
    CVY_ONNX_CHECK(!is_constant || isfinite(number), node,
                   "%g to pad with; such a number is supported before MaxPool only", number);
    if (!is_constant)
        CVY_TRY(pad_with_entries(node, mode, &pads, &output));
    else if (number != 0)
        CVY_TRY(pad_with_number(node, &pads, number, &output));
    else
        CVY_TRY(pad_with_zeros(node, &pads, &output));
    return cvy_onnx_done(node, 0, output);
}
CVY_ONNX_DEFINE(pad) = {"Pad", .attributes = "mode paddings pads value", .translate = translate_pad};
