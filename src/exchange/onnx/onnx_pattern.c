/*
 * onnx_pattern.c: what the nodes after an output are, for layers of ours that several ONNX nodes form together.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx.h"

const Cvy__Onnx__NodeProto *cvy_onnx_reader(const cvy_onnx *x, const char *output)
{
    const int at = cvy_keys_find(&x->names, output);
    return at >= 0 && x->value[at].readers == 1 ? x->value[at].reader : NULL;
}

int cvy_onnx_is_read(const cvy_onnx_node *node, int i)
{
    const int at =
        i < node->nout && *node->proto->output[i] ? cvy_keys_find(&node->x->names, node->proto->output[i]) : -1;
    return at >= 0 && node->x->value[at].readers > 0;
}

const Cvy__Onnx__NodeProto *cvy_onnx_reader_of_two(const cvy_onnx *x, const char *output, const char *op,
                                                   const char **other_out)
{
    const Cvy__Onnx__NodeProto *reader = cvy_onnx_reader(x, output);
    if (!reader || strcmp(reader->op_type, op) != 0 || reader->n_input != 2)
        return NULL;
    *other_out = reader->input[strcmp(reader->input[0], output) == 0];
    return reader;
}

const cvy_onnx_tensor *cvy_onnx_find_constant(const cvy_onnx *x, const char *name)
{
    const int at = cvy_keys_find(&x->names, name);
    return at >= 0 ? x->value[at].constant : NULL;
}

int cvy_onnx_is_uniform(const cvy_onnx_tensor *t, double *out)
{
    *out = t->elems > 0 ? cvy_onnx_number(t, 0) : 0;
    for (int64_t i = 1; i < t->elems; i++)
        if (cvy_onnx_number(t, i) != *out)
            return 0;
    return t->elems > 0;
}
