/*
 * caffe_def.h: the table of the types of Caffe's layers. Each file of translations ends its parts with
 * CVY_CAFFE_DEFINE(id).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CAFFE_DEF_H
#define CVY_CAFFE_DEF_H

#include "base/base_status.h"

struct cvy_caffe_layer;

typedef struct cvy_caffe_def {
    const char *name; /* the type: "Convolution" */
    /* Adds the layers of ours, names their outputs with cvy_caffe_done(), and returns CVY_CAFFE_DECLINE(...) for what
     * they cannot do. */
    cvy_status (*translate)(const struct cvy_caffe_layer *layer);
    const char *same;     /* instead of translate: the layer of ours that does the same to bottom 0 */
    const char *declined; /* a sentence that says why it is not taken; with translate: unless it is a source of data,
                             which has no bottom */
    int is_loss;          /* its loss_weight is 1 if none is given */
} cvy_caffe_def;

#define CVY_CAFFE_DEFINE(id) const cvy_caffe_def cvy_caffe_##id##_def
const cvy_caffe_def *const *cvy_caffe_table(int *count_out);
const cvy_caffe_def *cvy_caffe_find(const char *name);

#endif
