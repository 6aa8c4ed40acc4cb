/*
 * onnx_def.h: the table of ONNX operators that become layers, and the table of our operators that become ONNX nodes.
 * Each file of the reader ends its parts with CVY_ONNX_DEFINE(id), each of the writer with CVY_ONNXOP_DEFINE(id).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_ONNX_DEF_H
#define CVY_ONNX_DEF_H

#include "base/base_status.h"

struct cvy_node;
struct cvy_onnx_node;
struct cvy_onnx_writer;

typedef struct cvy_onnx_def {
    const char *name;
    cvy_status (*translate)(const struct cvy_onnx_node *node);
    const char *same;       /* instead of translate: the layer of ours that does the same to source 0 */
    const char *attributes; /* all that are understood, ' ' between; NULL: none */
} cvy_onnx_def;

#define CVY_ONNX_DEFINE(id) const cvy_onnx_def cvy_onnx_##id##_def
const cvy_onnx_def *const *cvy_onnx_table(int *count_out);
const cvy_onnx_def *cvy_onnx_find(const char *name);

typedef struct cvy_onnxop_def {
    const char *name; /* of an operator of ours, in a graph for evaluation */
    cvy_status (*write)(struct cvy_onnx_writer *w, const struct cvy_node *node);
    const char *same; /* instead of write: the ONNX operator that does the same to source 0 */
} cvy_onnxop_def;

#define CVY_ONNXOP_DEFINE(id) const cvy_onnxop_def cvy_onnxop_##id##_def
const cvy_onnxop_def *const *cvy_onnxop_table(int *count_out);
const cvy_onnxop_def *cvy_onnxop_find(const char *name);

#endif
