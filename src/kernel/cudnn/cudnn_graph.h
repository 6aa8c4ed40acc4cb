/*
 * cudnn_graph.h: convolutions as operation graphs of cuDNN, and the plans that run them.
 *
 * The heuristics of cuDNN give engines for a graph in an order, the fastest one first by its estimate. A plan has the
 * first few of those that keep the rules of the problem and need no more memory than is allowed: each is a kernel of
 * its own (`variant` in kernel.h), so that `planning: measure` can choose among them. Plans of equal problems are
 * shared, and kept for as long as the device is open.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CUDNN_GRAPH_H
#define CVY_CUDNN_GRAPH_H

#include "graph/graph_op.h"
#include "kernel/cudnn/cudnn_api.h"

enum { CVY_CUDNN_SPACE_MAX = 3, CVY_CUDNN_NDIM_MAX = 2 + CVY_CUDNN_SPACE_MAX };

/* [N, C, positions...] or a weight; strides in elements. */
typedef struct cvy_cudnn_tensor {
    cvy_dtype dtype;
    int64_t dim[CVY_CUDNN_NDIM_MAX], stride[CVY_CUDNN_NDIM_MAX];
} cvy_cudnn_tensor;

/* One pass of a convolution. Problems are compared byte by byte, so they begin as zeros (memset). */
typedef struct cvy_cudnn_problem {
    cvy_layer_pass pass;
    int nspace; /* 2 or 3 */
    int64_t stride[CVY_CUDNN_SPACE_MAX], pad[CVY_CUDNN_SPACE_MAX], dilation[CVY_CUDNN_SPACE_MAX];
    cvy_cudnn_tensor src, weight, dst; /* of the convolution, in each pass */
    int sum;                           /* the result is added to what its memory holds */
    int bias, relu;                    /* forward: an f32 bias is added to dst, a relu follows */
    int widen;                         /* the result is f32, and the operands are bf16 */
    int deterministic;                 /* only engines that give the same bits in each run */
    int tf32;                          /* also engines that round f32 operands to TF32 */
} cvy_cudnn_problem;

/* An engine with its settings, ready to run a problem. */
typedef struct cvy_cudnn_engine {
    cvy_cudnn_descriptor plan;
    int64_t workspace, number; /* bytes; of the engine, which may be there with several settings */
} cvy_cudnn_engine;

enum { CVY_CUDNN_ENGINES = 4 };

typedef struct cvy_cudnn_plan {
    cvy_cudnn_problem problem;
    cvy_cudnn_engine engine[CVY_CUDNN_ENGINES];
    int nengine;
    int asked, allowed, compiled; /* engines with settings that the heuristics gave; those that the rules allow; those
                                     of them that cuDNN compiles at run time */
    int64_t least;                /* workspace of one that is allowed but for its memory; 0: there is none */
    struct cvy_cudnn_plan *next;
} cvy_cudnn_plan;

struct cvy_cuda_space;

/* cuDNN on one device. */
typedef struct cvy_cudnn_device {
    const struct cvy_cuda_space *space; /* NULL: there is no device */
    const cvy_cudnn_api *api;
    cvy_cudnn_handle handle;         /* NULL: there are only properties: for plans that do not run */
    cvy_cudnn_descriptor properties; /* NULL: those of the handle */
    cvy_cudnn_plan *plans;
    char why[700]; /* not empty: it cannot be used, and why */
} cvy_cudnn_device;

/* The largest workspace of a plan. */
enum { CVY_CUDNN_WORKSPACE_MAX = 256 << 20 };

/* That of a space of the backend cuda, opened when first asked for. CVY_NOT_APPLICABLE: cuDNN cannot be used there. */
cvy_status cvy_cudnn_device_of(const cvy_space *space, cvy_cudnn_device **out);
/* A device that is described by cuDNN's text of its properties (JSON); for tests. */
cvy_status cvy_cudnn_device_described(const char *json, cvy_cudnn_device **out);
void cvy_cudnn_device_close(cvy_cudnn_device **d);

/* The plan of a problem, which may have no engine. */
cvy_status cvy_cudnn_plan_get(cvy_cudnn_device *d, const cvy_cudnn_problem *p, const cvy_cudnn_plan **out);
/* Engine number `place` of the plan. CVY_NOT_APPLICABLE: there are not so many. */
cvy_status cvy_cudnn_engine_get(cvy_cudnn_device *d, const cvy_cudnn_problem *p, int place,
                                const cvy_cudnn_engine **out);

/* The tensors of a problem. */
typedef struct cvy_cudnn_data {
    const void *src, *weight, *dst, *bias;
    void *workspace;
} cvy_cudnn_data;

/* An engine with the pointers that it got last. */
typedef struct cvy_cudnn_call {
    cvy_cudnn_device *device;
    const cvy_cudnn_engine *engine;
    int bias; /* the problem has one */
    cvy_cudnn_descriptor pack;
    cvy_cudnn_data data;
} cvy_cudnn_call;

/* Puts the engine into the lane COMPUTE. */
cvy_status cvy_cudnn_run(cvy_cudnn_call *call, const cvy_cudnn_data *data);
void cvy_cudnn_call_end(cvy_cudnn_call *call);

/* For cudnn_graph.c and cudnn_plan.c: descriptors. After a fault of cuDNN, they do nothing and return it. */
typedef struct cvy_cudnn_maker {
    const cvy_cudnn_device *device;
    cvy_status status;
    cvy_cudnn_descriptor made[64];
    int n;
} cvy_cudnn_maker;
cvy_cudnn_descriptor cvy_cudnn_make(cvy_cudnn_maker *m, cvy_cudnn_kind kind);
void cvy_cudnn_set(cvy_cudnn_maker *m, cvy_cudnn_descriptor d, cvy_cudnn_name name, cvy_cudnn_type type, int64_t n,
                   const void *values);
void cvy_cudnn_set_descriptor(cvy_cudnn_maker *m, cvy_cudnn_descriptor d, cvy_cudnn_name name,
                              cvy_cudnn_descriptor value);
void cvy_cudnn_finish(cvy_cudnn_maker *m, cvy_cudnn_descriptor d);
void cvy_cudnn_maker_end(cvy_cudnn_maker *m); /* destroys all that it made */
/* The operation graph of a problem, among what the maker made. */
cvy_status cvy_cudnn_graph_make(cvy_cudnn_maker *m, const cvy_cudnn_problem *p, cvy_cudnn_descriptor *out);

enum {
    CVY_CUDNN_ID_SRC = 1,
    CVY_CUDNN_ID_WEIGHT,
    CVY_CUDNN_ID_DST,
    CVY_CUDNN_ID_BIAS,
    CVY_CUDNN_ID_PRODUCT, /* these two are never in memory */
    CVY_CUDNN_ID_BIASED
};

#endif
