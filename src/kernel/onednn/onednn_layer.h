/*
 * onednn_layer.h: what the kernels of layers with weights (convolution, deconvolution, fully connected) share: which of
 * a node's sources and destinations are the tensors of a pass, and running a ready call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_ONEDNN_LAYER_H
#define CVY_ONEDNN_LAYER_H

#include "kernel/onednn/onednn_api.h"

/* The layout, in the ask, of the tensor with this role. The nodes are x (src, weight, bias -> dst), x_grad_src (ddst,
 * weight -> dsrc) and x_grad_weight (src, ddst -> dweight, dbias). */
cvy_layout *cvy_onednn_ask_layout(cvy_kernel_ask *ask, cvy_layer_pass pass, int role);
/* The average number of samples of a rank, rounded up. Layouts of variables are chosen for it, so that ranks whose
 * shares differ by one sample make the same choice. */
int64_t cvy_onednn_typical_n(const cvy_node *node);
/* The layout that oneDNN would choose for the weights of this forward problem if it had n samples. */
cvy_status cvy_onednn_choose_weight(const cvy_onednn_problem *problem, int64_t n, cvy_layout *out);

/* Returns CVY_NOT_APPLICABLE unless a node's activations are f32 or bf16. */
cvy_status cvy_onednn_check_dtype(const cvy_node *node);
/* The dtype in which oneDNN computes with a node's activations. bf16 needs AVX512_BF16. On other CPUs oneDNN computes
 * in f32: the problem's `upcast` is set, and its activations are converted before and after (cvy_onednn_layer_run). */
cvy_dtype cvy_onednn_compute_dtype(const cvy_node *node);
/* Adds the scratch memory that this conversion needs to the ask. The problem must have its final layouts. */
cvy_status cvy_onednn_ask_upcast(const cvy_onednn_problem *problem, cvy_kernel_ask *ask);
/* Activations, and weights as a pass reads them, get `dtype`; gradients of weights, and biases, get f32. */
void cvy_onednn_set_dtypes(cvy_onednn_problem *problem, cvy_dtype dtype);

/* Create, run and destroy of a kernel. The problem must have its final layouts. */
cvy_status cvy_onednn_layer_create(const cvy_onednn_problem *problem, void **state_out);
cvy_status cvy_onednn_layer_run(void *state, void *const *src, void *const *dst, void *scratch);
void cvy_onednn_layer_destroy(void *state);

#endif
