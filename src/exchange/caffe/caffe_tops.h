/*
 * caffe_tops.h: the tops of Caffe's layers of data: their shapes, as the text says them, and what reads them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CAFFE_TOPS_H
#define CVY_CAFFE_TOPS_H

#include "convoy/base.h"
#include "exchange/caffe/caffe_file.h"

/* The dimensions of a top, with the batch, which is 0 if it is not known; n is 0 if the text does not say them, and may
 * be more than CVY_NDIM_MAX, which is an error. */
typedef struct cvy_caffe_dims {
    int64_t at[CVY_NDIM_MAX];
    size_t n;
    int guesses_channels; /* the text says height and width only */
} cvy_caffe_dims;
cvy_caffe_dims cvy_caffe_dims_of(const Cvy__Caffe__LayerParameter *layer, size_t top);

/* Whether a layer that takes classes, or targets, reads this blob as them. */
int cvy_caffe_is_label(const Cvy__Caffe__NetParameter *net, const char *blob);
int cvy_caffe_is_target(const Cvy__Caffe__NetParameter *net, const char *blob);
/* Whether any layer that computes something reads it. */
int cvy_caffe_is_read(const Cvy__Caffe__NetParameter *net, const char *blob);

#endif
