/*
 * graph_op.h: what an operator is: one descriptor that says everything about it. See src/op/pointwise/op_relu.c for a
 * small complete one.
 *
 * Every operator, its gradient operators included, stands in a file of src/op (optimisers: src/optim) and ends in
 * CVY_OP_DEFINE(name). The build collects these into one table. Nothing else in the library names an operator, except
 * fast kernels that offer to run it and passes that rewrite it.
 */
#ifndef CVY_GRAPH_OP_H
#define CVY_GRAPH_OP_H

#include "base/base_bf16.h"
#include "graph/graph.h"

typedef struct cvy_cost {
    int64_t flop; /* multiply and add count as two */
    int64_t read_elems, write_elems;
} cvy_cost;

/* A tensor as a plain kernel sees it: row-major, any dtype, read and written through double (f32 and f64 lose nothing;
 * integers up to 2^53; bf16 is rounded). */
typedef struct cvy_span {
    cvy_dtype dtype;
    int ndim;
    int64_t dim[CVY_NDIM_MAX];
    int64_t elems;
    void *data; /* NULL: value not wanted */
} cvy_span;

/* Numbers, not counts or labels. */
static inline int cvy_dtype_is_real(cvy_dtype dtype)
{
    return dtype == CVY_DTYPE_F32 || dtype == CVY_DTYPE_F64 || dtype == CVY_DTYPE_BF16;
}

static inline double cvy_get(const cvy_span *s, int64_t i)
{
    switch (s->dtype) {
    case CVY_DTYPE_F32: return ((const float *)s->data)[i];
    case CVY_DTYPE_F64: return ((const double *)s->data)[i];
    case CVY_DTYPE_I64: return (double)((const int64_t *)s->data)[i];
    case CVY_DTYPE_I32: return ((const int32_t *)s->data)[i];
    case CVY_DTYPE_BF16: return cvy_bf16_get(((const cvy_bf16 *)s->data)[i]);
    default: return ((const uint8_t *)s->data)[i];
    }
}

static inline void cvy_set(const cvy_span *s, int64_t i, double x)
{
    switch (s->dtype) {
    case CVY_DTYPE_F32: ((float *)s->data)[i] = (float)x; break;
    case CVY_DTYPE_F64: ((double *)s->data)[i] = x; break;
    case CVY_DTYPE_I64: ((int64_t *)s->data)[i] = (int64_t)x; break;
    case CVY_DTYPE_I32: ((int32_t *)s->data)[i] = (int32_t)x; break;
    case CVY_DTYPE_BF16: ((cvy_bf16 *)s->data)[i] = cvy_bf16_of((float)x); break;
    default: ((uint8_t *)s->data)[i] = (uint8_t)x; break;
    }
}

/* Product of dims from..to-1. */
static inline int64_t cvy_span_prod(const cvy_span *s, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= s->dim[i];
    return n;
}

/* One case of the operator's test: shapes of its sources (without the variables that infer declares), options, flags.
 * The driver fills real sources with random values (an integer source gets 0 .. int_bound-1), compares kernels with the
 * reference, and differentiates numerically. */
enum {
    CVY_SAMPLE_TIMING = 1,   /* big: only for `convoy bench --op` style timing, not for correctness */
    CVY_SAMPLE_NO_GRAD = 2,  /* do not differentiate (not smooth at the sampled points) */
    CVY_SAMPLE_POSITIVE = 4, /* real sources are drawn from (0.1, 1) instead of (-1, 1) */
};
typedef struct cvy_sample {
    const char *
        src; /* "2x7x3x5" or "2x3x4,2" : one per source, ',' between; a dtype may follow: "2:i32"; NULL ends the list */
    const char *options;
    int flags;
    int64_t int_bound; /* default 2 */
} cvy_sample;

enum {
    CVY_OP_ELEMENTWISE = 1, /* dst[0] has src[0]'s shape; element i depends only on element i of same-shaped sources:
                               any common layout will do */
    CVY_OP_VIEW = 2,        /* dst[0] is src[0]'s memory under another shape, in plain layout: no instruction at all */
    CVY_OP_LOSS = 4,        /* dst[0] is a scalar accumulator of the dtype f64: the batch's share of the mean loss */
    CVY_OP_COMM = 8,        /* talks to other ranks: keeps its place in the order, runs on ranks without samples too */
    CVY_OP_ASSIGNS = 16,    /* its destinations are variables (same as some source): optimisers, running statistics */
    CVY_OP_HIDDEN = 32,     /* not for models: gradient, update and communication operators */
    CVY_OP_OPTIMIZER = 64,  /* updates a weight: optim/optim.h says which sources it takes */
    CVY_OP_ONCE = 256,      /* of the micro-batch phase, but runs with the last micro-batch only */
    CVY_OP_CHEAP = 512,     /* about one pass over memory: may run again in backward rather than be kept (its saved
                               destinations left out) */
    CVY_OP_RANDOM = 128,    /* uses graph->seed, node->layer, step number, sample ids */
};

/*
 * Along which axes an operator may be cut over ranks: for tensor and spatial parallelism. A cut is named by an axis of
 * the forward layer. Each part is the same operator, inferred again from its part of the sources (and of the option
 * "channels"). The shapes that infer then gives say what belongs together:
 *
 *   source, variable  shorter along one axis than in the whole: it is cut along that axis; of the same shape: each rank
 *                     has all of it. A variable's initial values are those of the whole one
 *   destination       shorter along one axis: it is that part of the whole one; of the same shape: it is a partial sum,
 *                     and the whole one is the sum over the parts
 *
 * A gradient operator is cut with its forward operator, along the same axis of that layer; what it does not declare is
 * not possible or not tried. An axis is declared only if no part needs anything of another part: not if windows
 * overlap (a halo would have to be exchanged), and not if elements are normalised by what lies along the axis. A layer
 * of several nodes (build without infer) declares nothing; its nodes do. tests/op/test_op_splits.c tries what is
 * declared.
 */
enum {
    CVY_SPLIT_SAMPLES = 1,  /* axis 0 of all sources that have axes; the graph of a part has its cvy_batch_share */
    CVY_SPLIT_CHANNELS = 2, /* axis 1 of all sources and of the result: each channel is worked on alone */
    CVY_SPLIT_OUTPUTS = 4,  /* the option "channels", so axis 1 of the result: output features; the source is whole */
    CVY_SPLIT_INPUTS = 8,   /* axis 1 of the source: input features. The result is a partial sum; a bias goes to the
                               first part, the others take zeros */
    CVY_SPLIT_SPACE = 16,   /* any axis from 2 on of all sources, and the same axis of the result */
};

typedef struct cvy_grad cvy_grad;

/* ---- communication ---- */
struct cvy_comm;
struct cvy_allreduce_opts;
struct cvy_bucket_set;

/* What a communication operator does with the buckets of gradients of a plan. */
typedef enum {
    CVY_COMM_NO_BUCKET,     /* nothing: it exchanges its sources and destinations */
    CVY_COMM_STARTS_BUCKET, /* it starts the one of its option "bucket" (op/comm/op_reduce.h) */
    CVY_COMM_WAITS_BUCKET,  /* it waits for it */
} cvy_comm_role;

/* What an instruction of such an operator is bound to. */
typedef struct cvy_comm_binding {
    struct cvy_comm *comm;
    const cvy_space *space; /* of the tensors: what the host exchanges of them is a copy if it cannot read them */
    const struct cvy_allreduce_opts *reduce; /* how this plan reduces; borrowed for the call */
    struct cvy_bucket_set *buckets;          /* of this plan */
    int deterministic;                       /* the order of additions is fixed by `reduce`, not by the MPI library */
    int progresses;            /* buckets may be under way when it runs: progress is made on them while it waits */
    int blocking;              /* what is started is waited for at once */
    const cvy_span *src, *dst; /* one flat row each, padding included; data is bound */
} cvy_comm_binding;

typedef struct cvy_op_comm {
    cvy_comm_role role;
    /* Collective, in the same order on all ranks. */
    cvy_status (*create)(const cvy_node *node, const cvy_comm_binding *binding, void **state_out);
    cvy_status (*run)(void *state, void *const *src, void *const *dst, void *scratch); /* scratch is NULL */
    void (*destroy)(void **state);
} cvy_op_comm;

/* Which of a layer's computations an operator is, for kernels that run several of them. */
typedef enum {
    CVY_LAYER_FORWARD,
    CVY_LAYER_GRAD_SRC,
    CVY_LAYER_GRAD_WEIGHT,
} cvy_layer_pass;

typedef struct cvy_op_def {
    const char *name, *summary;
    cvy_layer_pass pass;
    int transposed;            /* of the family of deconv: its forward pass is the source gradient of a convolution */
    const cvy_option *options; /* NULL: none */
    size_t options_size;
    int nsrc_min, nsrc_max; /* sources that the caller gives; infer may append variables (cvy_node_param) */
    int ndst;               /* all destinations, saved ones last */
    int nsaved;             /* the last nsaved of ndst exist only where a gradient asked (cvy_grad_saved) */
    unsigned flags;
    unsigned splits;                                      /* CVY_SPLIT_*: whatever the options are; 0: may not be cut */
    unsigned (*node_splits)(const cvy_node *node);        /* those that this node's options allow besides; NULL: none */
    cvy_status (*infer)(cvy_node *node);                  /* checks sources, declares parameters, sets destinations */
    cvy_status (*grad)(cvy_grad *g, const cvy_node *fwd); /* NULL: not differentiable */
    cvy_status (*build)(cvy_graph *g, const struct cvy_op_def *op, const char *name, const cvy_tree *options,
                        cvy_value *const *src, int nsrc,
                        cvy_value **dst_out);               /* a layer that is several nodes; NULL: one node */
    void (*cost)(const cvy_node *node, cvy_cost *cost_out); /* NULL: elementwise, one flop a destination element */
    cvy_status (*reference)(const cvy_node *node, const cvy_span *src,
                            const cvy_span *dst); /* plain layouts; NULL for views and comm */
    const void *family; /* what functions that several operators share read: what this one does otherwise */
    double lr;          /* of an optimiser: the learning rate if the job gives none */
    int64_t (*summands)(const cvy_node *node); /* behind one result, for the test's bound; NULL: 4 */
    const cvy_op_comm *comm;   /* of an operator with CVY_OP_COMM, which has no kernel; NULL for all others */
    const cvy_sample *samples; /* ends with {0}; NULL: tested elsewhere (say where in the file's head) */
} cvy_op_def;

/* What a node costs: the operator's own count, else one flop an element of its destinations. */
static inline cvy_cost cvy_node_cost(const cvy_node *node)
{
    cvy_cost cost = {0};
    if (node->op->cost)
        node->op->cost(node, &cost);
    else
        for (int i = 0; i < node->ndst; i++)
            cost.flop += node->dst[i] ? cvy_shape_elems(&node->dst[i]->shape) : 0;
    return cost;
}

/* Along which axes a node may be cut: CVY_SPLIT_*. */
static inline unsigned cvy_node_splits(const cvy_node *node)
{
    return node->op->splits | (node->op->node_splits ? node->op->node_splits(node) : 0);
}

#define CVY_OP_DEFINE(op) const cvy_op_def cvy_op_##op##_def

const cvy_op_def *cvy_op_find(const char *name);
const cvy_op_def *const *cvy_op_table(int *count_out);

/* ---- for infer ---- */
/* Makes destination i (kind TEMP, or ACCUMULATOR for losses and metrics), dtype as given. */
cvy_status cvy_node_set_dst(cvy_node *node, int i, cvy_dtype dtype, const cvy_shape *shape);
/* The same for a saved destination: only noted; the value is made when a gradient asks. Call it always. */
cvy_status cvy_node_set_saved(cvy_node *node, int i, cvy_dtype dtype, const cvy_shape *shape);
cvy_status cvy_node_set_accumulator(cvy_node *node, int i, cvy_dtype dtype, const cvy_shape *shape, int reduced);
/* Appends the variable "<layer>.<suffix>" as the next source. decay: weight decay applies by default. dtype is the
 * graph's. */
cvy_status cvy_node_param(cvy_node *node, const char *suffix, const cvy_shape *shape, const cvy_init *init, int decay);
/* Destination i assigns the variable that source j reads. */
cvy_status cvy_node_assign(cvy_node *node, int i, int j);
static inline const cvy_shape *cvy_node_src(const cvy_node *node, int i)
{
    return &node->src[i]->shape;
}
static inline const cvy_shape *cvy_node_dst(const cvy_node *node, int i)
{
    return &node->dst[i]->shape;
}

#endif
