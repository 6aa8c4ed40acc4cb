/*
 * onednn_layer.h: what the kernels of layers with weights (convolution, deconvolution, fully connected) share: where the tensors of a pass
 * stand among a node's sources and destinations, and the running of a ready call.
 */
#ifndef CVY_ONEDNN_LAYER_H
#define CVY_ONEDNN_LAYER_H

#include "kernel/onednn/onednn_api.h"

/* The layout, in the ask, of the tensor in this role. The nodes are x (src, weight, bias -> dst), x_grad_src (ddst, weight -> dsrc) and
 * x_grad_weight (src, ddst -> dweight, dbias). */
cvy_layout *cvy_onednn_ask_layout(cvy_kernel_ask *ask, cvy_onednn_pass pass, int role);
/* Describes the problem once with oneDNN's choice of the weights' layout and, if `given`, once with that one; the given layout is taken if it
 * costs no better implementation. */
cvy_status cvy_onednn_describe_weight(cvy_onednn_problem *problem, const cvy_layout *given, cvy_onednn_call **out);

/* A kernel's create, run and destroy; problem: with its final layouts. */
cvy_status cvy_onednn_layer_create(const cvy_onednn_problem *problem, void **state_out);
cvy_status cvy_onednn_layer_run(void *state, void *const *src, void *const *dst, void *scratch);
void cvy_onednn_layer_destroy(void *state);

#endif
