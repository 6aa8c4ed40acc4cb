/*
 * op_conv.h: options of convolution and its gradients, for the operators and their kernels.
 *
 *     conv              src [N, C, ...], weight [K, C / groups, kernel...], bias [K] -> dst [N, K, ...]
 *     conv_grad_src     ddst, weight -> dsrc
 *     conv_grad_weight  src, ddst -> dweight, and dbias if bias is set
 *
 * deconv has the same sources and gradients, but its weight is [C, K / groups, kernel...], as in PyTorch's
 * ConvTranspose.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_OP_CONV_H
#define CVY_OP_CONV_H

#include "op/conv/op_spectral_norm.h"
#include "op/conv/op_window.h"

typedef struct cvy_conv_opts {
    cvy_ints kernel, stride, pad, dilation;
    int64_t channels, groups; /* channels: K */
    int bias;
    const char *init, *init_options;
    double bias_init;
    int relu; /* set by the fusion pass: dst = max(conv, 0). The gradient operators ignore it */
    int spectral_norm;
} cvy_conv_opts;

/* Options of conv_grad_src and conv_grad_weight. */
typedef struct cvy_conv_grad_opts {
    cvy_conv_opts conv;
    cvy_shape src; /* of the forward source */
} cvy_conv_grad_opts;

typedef struct cvy_deconv_opts {
    cvy_ints kernel, stride, pad, output_pad, dilation;
    int64_t channels, groups;
    int bias;
    const char *init, *init_options;
    double bias_init;
    int spectral_norm;
} cvy_deconv_opts;

/* Options of deconv_grad_src and deconv_grad_weight. */
typedef struct cvy_deconv_grad_opts {
    cvy_deconv_opts deconv;
    cvy_shape src; /* of the forward source */
} cvy_deconv_grad_opts;

/* The window and the channels of a convolution with a source of this shape. Kernels call it instead of reading the
 * option lists. */
cvy_status cvy_conv_window(const cvy_conv_opts *o, const cvy_shape *src, cvy_window *window_out,
                           cvy_window_channels *channels_out);
/* The same for a deconvolution. It gives the convolution that is transposed: window.src and nsrc belong to the
 * deconvolution's destination. */
cvy_status cvy_deconv_window(const cvy_deconv_opts *o, const cvy_shape *src, cvy_window *window_out,
                             cvy_window_channels *channels_out);

/* What `part` says about the channels of a convolution or deconvolution: changes these options of the part. Groups of
 * channels are split as a whole; of split inputs, the first part adds the bias. */
cvy_status cvy_conv_part_channels(const cvy_node_part *part, int64_t *channels, int64_t *groups, int *bias);

/* Adds the gradients of a convolution or deconvolution for its weight, bias and source; ddst is that of its
 * result. opts: options of the operators `weight_op` and `src_op` that compute them. */
cvy_status cvy_conv_add_grads(cvy_grad *g, const cvy_node *fwd, cvy_value *ddst, const char *weight_op,
                              const char *src_op, const void *opts);

#endif
