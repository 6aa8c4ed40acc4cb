/*
 * onednn_api.h: the interface through which the kernels of this folder use oneDNN. It is the same for oneDNN 2.x and
 * 3.x.
 *
 * The caller describes a problem: what is to be computed, with which shapes and layouts. oneDNN answers with an
 * implementation, its layouts and its scratch memory. A ready call runs it. The vendor's headers (except the version
 * number) and the differences between versions stay inside onednn_api.c and onednn_desc.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_ONEDNN_API_H
#define CVY_ONEDNN_API_H

#include <oneapi/dnnl/dnnl_version.h>

#include "kernel/kernel.h"

/* Version 3 sums a source's gradient in an order that depends on the number of threads (seen with 7x7, stride 2, three
 * threads); version 2 does not. */
enum { CVY_ONEDNN_SPLITS_GRAD_SRC = DNNL_VERSION_MAJOR >= 3 };

typedef enum { CVY_ONEDNN_CONV, CVY_ONEDNN_DECONV, CVY_ONEDNN_FC, CVY_ONEDNN_REORDER } cvy_onednn_family;

/* Roles of tensors, which is also the order of a call's arguments in every pass (in a gradient pass, SRC may be the
 * gradient of the source, and so on). */
enum { CVY_ONEDNN_SRC, CVY_ONEDNN_WEIGHT, CVY_ONEDNN_BIAS, CVY_ONEDNN_DST, CVY_ONEDNN_ROLES };

#define CVY_ONEDNN_NDIM_MAX 6

typedef struct cvy_onednn_tensor {
    cvy_dtype dtype;
    int ndim;                         /* 0: absent */
    int64_t dim[CVY_ONEDNN_NDIM_MAX]; /* as oneDNN orders them: grouped weights are [G, K/G, C/G, positions...] */
    int any;                          /* oneDNN chooses the layout */
    cvy_layout layout;                /* if not any: this one, in oneDNN's dimensions; "" is plain */
} cvy_onednn_tensor;

typedef struct cvy_onednn_problem {
    cvy_onednn_family family;
    cvy_layer_pass pass;
    int threads;
    int winograd; /* CONV: Winograd's algorithm instead of the direct one */
    int sum;      /* FORWARD: the result is added to the content of dst */
    int relu;     /* FORWARD: dst = max(dst, 0), after the sum */
    int upcast;   /* the activations are bf16 in memory, although the problem has f32 (onednn_layer.h) */
    cvy_onednn_tensor tensor[CVY_ONEDNN_ROLES];
    int64_t stride[3], dilation[3], pad_begin[3], pad_end[3]; /* CONV, DECONV; dilation 1: none */
} cvy_onednn_problem;

typedef struct cvy_onednn_call cvy_onednn_call;

/* Asks for an implementation. Returns CVY_NOT_APPLICABLE, with the reason as error text, if oneDNN has none, or only
 * its reference implementation. */
cvy_status cvy_onednn_describe(const cvy_onednn_problem *problem, cvy_onednn_call **out);
/* The layout of one tensor; CVY_NOT_APPLICABLE if it cannot be written as a cvy_layout. */
cvy_status cvy_onednn_layout(const cvy_onednn_call *call, int role, cvy_layout *out);
size_t cvy_onednn_scratch_bytes(const cvy_onednn_call *call);
/* oneDNN's name of the implementation: "jit:avx512_core". */
const char *cvy_onednn_implementation(const cvy_onednn_call *call);
/* The same as a number, for `algorithm_id` in kernel.h. It differs if the number of threads decides how sums are made.
 */
uint64_t cvy_onednn_algorithm_id(const cvy_onednn_call *call);
/* Generates the code: after this the call may run. */
cvy_status cvy_onednn_ready(cvy_onednn_call *call);
/* arg is indexed by role, NULL if absent. */
cvy_status cvy_onednn_run(cvy_onednn_call *call, void *const arg[CVY_ONEDNN_ROLES], void *scratch);
void cvy_onednn_destroy(cvy_onednn_call *call);

/* Writes "oneDNN 2.6.3 instructions 0x3ff": the version as loaded, and the instruction sets that the processor and
 * ONEDNN_MAX_CPU_ISA allow. */
void cvy_onednn_library(char *text, size_t room);

/* Makes a ready call that copies from SRC to DST. CVY_NOT_APPLICABLE if oneDNN does not know the layouts or dtypes. */
cvy_status cvy_onednn_reorder(const cvy_shape *shape, const cvy_memory_format *from, const cvy_memory_format *to,
                              int threads, cvy_onednn_call **out);
/* Whether oneDNN computes convolutions in bf16 on this CPU, within the limit of ONEDNN_MAX_CPU_ISA. */
int cvy_onednn_has_bf16(void);

#endif
