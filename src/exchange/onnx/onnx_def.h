/*
 * onnx_def.h: the table of ONNX operators that become layers. Each file of translations ends its parts with
 * CVY_ONNX_DEFINE(id).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_ONNX_DEF_H
#define CVY_ONNX_DEF_H

#include "base/base_status.h"

struct cvy_onnx_node;

typedef struct cvy_onnx_def {
    const char *name;
    cvy_status (*translate)(const struct cvy_onnx_node *node);
    const char *same; /* instead of translate: the layer of ours that does the same to source 0 */
} cvy_onnx_def;

#define CVY_ONNX_DEFINE(id) const cvy_onnx_def cvy_onnx_##id##_def
const cvy_onnx_def *const *cvy_onnx_table(int *count_out);
const cvy_onnx_def *cvy_onnx_find(const char *name);

#endif
