/*
 * graph_op.h: the descriptor of an operator, which says everything about it. src/op/pointwise/op_relu.c is a small
 * complete example.
 *
 * Every operator, gradient operators included, has a file in src/op (optimisers: src/optim), which ends with
 * CVY_OP_DEFINE(name). The build collects them into one table. No other code in the library names an operator, except
 * fast kernels that can run it and passes that rewrite it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GRAPH_OP_H
#define CVY_GRAPH_OP_H

#include "base/number/base_bf16.h"
#include "graph/graph.h"

typedef struct cvy_cost {
    int64_t flop; /* a multiplication and an addition count as two */
    int64_t read_elems, write_elems;
} cvy_cost;

/* A tensor as a plain kernel sees it: row-major, of any dtype, read and written as double (f32 and f64 lose nothing,
 * integers are exact up to 2^53, bf16 is rounded). */
typedef struct cvy_span {
    cvy_dtype dtype;
    int ndim;
    int64_t dim[CVY_NDIM_MAX];
    int64_t elems;
    void *data; /* NULL: the value is not needed */
} cvy_span;

/* Whether the dtype is for real numbers, not for counts or labels. */
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

/* Product of the dimensions from .. to-1. */
static inline int64_t cvy_span_prod(const cvy_span *s, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= s->dim[i];
    return n;
}

/* One case of the operator's test: shapes of its sources (without the variables that infer declares), options, flags.
 * The test fills real sources with random values and integer sources with 0 .. int_bound-1. It compares kernels with
 * the reference, and the gradient with numerical differentiation. */
enum {
    CVY_SAMPLE_TIMING = 1,   /* large: only for timing as in `convoy bench --op`, not for correctness */
    CVY_SAMPLE_NO_GRAD = 2,  /* do not differentiate (not smooth at the sampled points) */
    CVY_SAMPLE_POSITIVE = 4, /* real sources are drawn from (0.1, 1) instead of (-1, 1) */
    CVY_SAMPLE_TIES = 8, /* real sources are multiples of 1/4, so that some elements are equal, and have one NaN; the
                            gradient is not compared with numerical differentiation */
};
typedef struct cvy_sample {
    const char *
        src; /* "2x7x3x5" or "2x3x4,2" : one per source, ',' between; a dtype may follow: "2:i32"; NULL ends the list */
    const char *options;
    int flags;
    int64_t int_bound;           /* default 2 */
    const double *const *values; /* of each source; values[i] NULL, or NULL: random */
} cvy_sample;

enum {
    CVY_OP_ELEMENTWISE = 1, /* dst[0] has the shape of src[0]; element i depends only on element i of sources of this
                               shape, so any common layout is possible */
    CVY_OP_VIEW = 2, /* dst[0] is the memory of src[0] with another shape, in plain layout: no instruction is needed */
    CVY_OP_LOSS = 4, /* dst[0] is a scalar accumulator of dtype f64: this batch's contribution to the mean loss */
    CVY_OP_COMM = 8, /* communicates: it keeps its place in the order and also runs on ranks without samples */
    CVY_OP_ASSIGNS = 16,    /* its destinations are variables that are also sources: optimisers, running statistics */
    CVY_OP_HIDDEN = 32,     /* not for models: gradient, update and communication operators */
    CVY_OP_OPTIMIZER = 64,  /* updates a weight; optim/optim.h says which sources it has */
    CVY_OP_ONCE = 256,      /* belongs to the phase MICRO, but runs only with the last micro-batch */
    CVY_OP_STATEFUL = 512,  /* it may keep state between its runs, so it must not run more often than its place says */
    CVY_OP_PRODUCT = 16384, /* an update whose reference needs plain layouts, because it is not elementwise */
    CVY_OP_LAYER_NORMS = 4096,     /* an optimiser that computes norms of the whole weight */
    CVY_OP_FOLLOWS = 2048,         /* it may be applied to any part of its sources, and gives that part of the result */
    CVY_OP_RANDOM = 128,           /* uses graph->seed, node->layer, the step number and sample ids */
    CVY_OP_COUNTS = 8192,          /* a layer that reads the number of samples of its source, not their values */
    CVY_OP_SAMPLE_WEIGHTS = 32768, /* a layer whose results depend on several samples: in training, the weights of the
                                      samples are further sources, if all losses have weights */
    CVY_OP_INDICES = 1024, /* source 0 holds whole numbers, not an activation: an input that only such operators and
                              losses read keeps full precision if activations are bf16 */
    CVY_OP_COUNTS_WEIGHTS = 65536, /* its sources are weights of samples, which it adds or counts for the losses */
};

/*
 * The axes along which an operator may be split over ranks, for tensor and spatial parallelism. A split is named by an
 * axis of the forward layer. Each part is the same operator. It is inferred again from its part of the sources (and of
 * the option "channels"). The shapes that infer gives then say how the parts form the whole:
 *
 *   source, variable  shorter than in the whole along one axis: it is split along that axis. Of the same shape: each
 *                     rank has all of it. The initial values of a variable are those of the whole variable
 *   destination       shorter along one axis: it is that part of the whole. Of the same shape: it is a partial sum,
 *                     and the whole is the sum over the parts
 *
 * A gradient operator is split together with its forward operator, along the same axis of that layer. A split that an
 * operator does not declare is not possible or not tested. An axis is declared only if no part needs data of another
 * part: not if windows overlap (a halo would have to be exchanged), and not if elements are normalised along the axis.
 * A layer of several nodes (build without infer) declares nothing; its nodes do. tests/op/test_op_splits.c tests every
 * declared split.
 */
enum {
    CVY_SPLIT_SAMPLES = 1,  /* axis 0 of all sources that have axes; the graph of a part has its cvy_batch_share */
    CVY_SPLIT_CHANNELS = 2, /* axis 1 of all sources and of the result: each channel is computed independently */
    CVY_SPLIT_OUTPUTS = 4,  /* the option "channels", so axis 1 of the result: output features; the source is whole */
    CVY_SPLIT_INPUTS = 8, /* axis 1 of the source: input features. The result is a partial sum; the first part gets the
                             bias, the others get zeros */
    CVY_SPLIT_SPACE = 16, /* any axis from 2 on of all sources, and the same axis of the result */
};

/* How one part of a node differs from the whole node. pass_split.c fills in the first fields; the operator's `part`
 * changes the options, and the rest. */
typedef struct cvy_node_part {
    unsigned split;             /* CVY_SPLIT_*: along which axis */
    int dim;                    /* that axis, as a dimension of the destination */
    int64_t first, count;       /* entries of this dimension that the part of the destination has */
    int number, parts;          /* of the part, from 0; their number */
    int slides;                 /* out: 1: the source is needed by a sliding window */
    int64_t stride, pad, reach; /* out: of the window, see cvy_slide */
    int transposed;             /* out */
    double fill;                /* out: of positions outside the source */
    unsigned whole_src;         /* out: a bit for each source that has no samples or channels to split */
    int sums_samples;           /* out: of a split by samples: the results are sums over samples */
    int scaled;                 /* out: this source is multiplied by `factor`; 0: none */
    double factor;
    double share; /* out: the result is a partial mean, and counts so much of the whole one; 0: it is a sum */
    int maxima;   /* out: 1: the whole result is the maximum of the results of the parts */
    int other_src, other_dim; /* out: this source is split along this dimension of it; 0: all are split along dim */
    unsigned lacks_channels;  /* out: a bit for each source without the axis of channels: it is split along dim - 1 */
    unsigned has_axis;        /* out: a bit for each source that is split along dim, whatever its dtype */
} cvy_node_part;

/* Options of allreduce: the axis of the grid over which it sums, a cvy_axis. */
struct cvy_allreduce_axis {
    int axis;
};

typedef struct cvy_grad cvy_grad;

/* ---- communication ---- */
struct cvy_comm;
struct cvy_allreduce_opts;
struct cvy_bucket_set;
struct cvy_messages;

/* What a communication operator exchanges with other ranks. */
typedef enum {
    CVY_EXCHANGE_SUM,     /* its source, which is added over the ranks */
    CVY_EXCHANGE_PARTS,   /* its source, of which other ranks want entries (op/comm/op_redistribute.h) */
    CVY_EXCHANGE_BUCKET,  /* the gradients in the bucket of its option "bucket" (op/comm/op_reduce.h) */
    CVY_EXCHANGE_MESSAGE, /* a value between stages, in the message of its option "tag" (op/comm/op_message.h) */
} cvy_exchange_kind;

/* The axis of the process grid along which an operator communicates: its time is counted for this axis. A new operator
 * names its axis in its descriptor; nothing else has to know it. */
typedef enum {
    CVY_COMM_DATA,     /* ranks with other samples: reductions of gradients, normalisers, batch-norm statistics */
    CVY_COMM_PIPELINE, /* the stages of a pipeline */
    CVY_COMM_TENSOR,   /* ranks with other parts of a layer */
    CVY_COMM_SPATIAL,  /* ranks with other parts of a sample */
    CVY_COMM_AXES,     /* their number */
} cvy_comm_axis;

/* That of an axis of the grid, a cvy_axis. */
static inline cvy_comm_axis cvy_comm_axis_of(int axis)
{
    return axis > (int)CVY_COMM_SPATIAL ? CVY_COMM_SPATIAL : (cvy_comm_axis)axis;
}

/* The data that an instruction of such an operator works with. */
typedef struct cvy_comm_binding {
    struct cvy_comm *comm; /* the ranks that share the samples of a step */
    struct cvy_comm *const
        *grid;              /* cvy_grid.over: communicators by sets of axes; NULL: the grid has a data axis only */
    const cvy_space *space; /* memory space of the tensors; if the host cannot read it, the host exchanges copies */
    const struct cvy_allreduce_opts *reduce; /* how this plan reduces; borrowed for the call */
    struct cvy_bucket_set *buckets;          /* the buckets of this plan */
    struct cvy_messages *messages;           /* between the stages of a pipeline; NULL: there is one stage */
    int micro;                               /* the micro-batch of the instruction */
    int deterministic;                       /* 1: `reduce` fixes the order of additions, not the MPI library */
    int progresses; /* 1: buckets may be under way when it runs, so it makes progress on them while it waits */
    int blocking;   /* 1: it waits at once for what it starts */
    const cvy_span *src, *dst;          /* each is one flat row, padding included; data is set */
    const cvy_layout *src_layout;       /* of source 0 */
    struct cvy_underway_set *exchanges; /* of the plan: those under way (comm/comm_underway.h) */
} cvy_comm_binding;

typedef struct cvy_op_comm {
    cvy_exchange_kind exchange;
    unsigned starts : 1, waits : 1; /* it only starts the exchange, or only waits for its end; neither: it does both */
    unsigned receives : 1;          /* a message comes from the other stage; 0: it goes there */
    /* Collective, in the same order on all ranks. */
    cvy_status (*create)(const cvy_node *node, const cvy_comm_binding *binding, void **state_out);
    cvy_status (*run)(void *state, void *const *src, void *const *dst, void *scratch); /* scratch is NULL */
    void (*destroy)(void **state);
    cvy_comm_axis axis;
    cvy_comm_axis (*axis_of)(const cvy_node *node); /* if it depends on the options; NULL: it is `axis` */
    /* Whether source 0 and destination 0 may both have this layout; NULL: they are plain. */
    int (*takes_layout)(const cvy_node *node, const cvy_layout *layout);
} cvy_op_comm;

/* Which computation of a layer an operator is, for kernels that run several of them. */
typedef enum {
    CVY_LAYER_FORWARD,
    CVY_LAYER_GRAD_SRC,
    CVY_LAYER_GRAD_WEIGHT,
} cvy_layer_pass;

/* Of an operator that only copies along one axis, without another dtype: the functions return the axis. cuts: dst[0] is
 * the range of source 0 that begins at *first_out. joins: dst[0] is the sources one after another. NULL: it does more
 * than that. */
typedef struct cvy_op_copies {
    int64_t (*cuts)(const cvy_node *node, int64_t *first_out);
    int64_t (*joins)(const cvy_node *node);
} cvy_op_copies;

typedef struct cvy_op_def {
    const char *name, *summary;
    cvy_layer_pass pass;
    int transposed; /* 1: the operator belongs to deconv, whose forward pass is the source gradient of a convolution */
    const cvy_option *options; /* NULL: none */
    size_t options_size;
    int nsrc_min, nsrc_max; /* number of sources that the caller gives; infer may append variables (cvy_node_param) */
    int ndst, nsaved;       /* number of all destinations; the last nsaved exist only if a gradient asks for them
                               (cvy_grad_saved) */
    unsigned flags;
    unsigned splits;                               /* CVY_SPLIT_*, for all options; 0: it may not be split */
    unsigned (*node_splits)(const cvy_node *node); /* more splits that this node's options allow; NULL: none */
    unsigned part_splits; /* more splits, which need `part` or a neighbour's data: only pass_split.c makes such parts */
    /* Changes a copy of the options into those of one part. Returns CVY_NOT_APPLICABLE if this node cannot be split so.
     * NULL: the options stay as they are. */
    cvy_status (*part)(const cvy_node *node, cvy_node_part *part, void *options);
    cvy_status (*infer)(cvy_node *node);                  /* checks sources, declares parameters, sets destinations */
    cvy_status (*grad)(cvy_grad *g, const cvy_node *fwd); /* NULL: not differentiable */
    cvy_status (*build)(cvy_graph *g, const struct cvy_op_def *op, const char *name, const cvy_tree *options,
                        cvy_value *const *src, int nsrc,
                        cvy_value **dst_out);               /* for a layer of several nodes; NULL: one node */
    void (*cost)(const cvy_node *node, cvy_cost *cost_out); /* NULL: one flop for each element of the destinations */
    cvy_status (*reference)(const cvy_node *node, const cvy_span *src,
                            const cvy_span *dst); /* plain layouts; NULL for views and communication */
    const void *family; /* data by which functions that several operators share tell them apart */
    double lr;          /* of an optimiser: the learning rate if the job has none */
    /* Of an update that computes its gradient itself: the bits of the sources that the gradient is a product of. NULL:
     * it reads the gradient. */
    unsigned (*factors)(const cvy_node *node);
    cvy_op_copies copies;
    /* For a training graph: refuses a batch from which nothing would be learnt. NULL: any batch is good. */
    cvy_status (*check_batch)(const cvy_node *node);
    int64_t (*summands)(const cvy_node *node); /* number of values that are added for one result, for the error bound of
                                                  the test; NULL: 4 */
    const cvy_op_comm *comm;   /* of an operator with CVY_OP_COMM, which has no kernel; otherwise NULL */
    const cvy_sample *samples; /* ends with {0}; NULL: it is tested elsewhere (the head of the file says where) */
} cvy_op_def;

/* The cost of a node: computed by the operator, or else one flop for each element of its destinations. */
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

/* The axis along which a communication node communicates. */
static inline cvy_comm_axis cvy_node_comm_axis(const cvy_node *node)
{
    const cvy_op_comm *comm = node->op->comm;
    return comm->axis_of ? comm->axis_of(node) : comm->axis;
}

/* The axes along which a node may be split: CVY_SPLIT_*. */
static inline unsigned cvy_node_splits(const cvy_node *node)
{
    return node->op->splits | (node->op->node_splits ? node->op->node_splits(node) : 0);
}

#define CVY_OP_DEFINE(op) const cvy_op_def cvy_op_##op##_def

const cvy_op_def *cvy_op_find(const char *name);
const cvy_op_def *const *cvy_op_table(int *count_out);

/* ---- for infer ---- */
/* Creates destination i (kind TEMP, or ACCUMULATOR for losses and metrics) with this dtype. */
cvy_status cvy_node_set_dst(cvy_node *node, int i, cvy_dtype dtype, const cvy_shape *shape);
/* The same for a saved destination. It only stores dtype and shape; the value is created when a gradient asks for it.
 * Call it in any case. */
cvy_status cvy_node_set_saved(cvy_node *node, int i, cvy_dtype dtype, const cvy_shape *shape);
cvy_status cvy_node_set_accumulator(cvy_node *node, int i, cvy_dtype dtype, const cvy_shape *shape, int reduced);
/* Appends the variable "<layer>.<suffix>" as the next source. decay: weight decay applies by default. Its dtype is the
 * graph's dtype for weights. */
cvy_status cvy_node_param(cvy_node *node, const char *suffix, const cvy_shape *shape, const cvy_init *init, int decay);
/* The same for a statistic: it is not trained, and an operator with CVY_OP_ASSIGNS writes it. */
cvy_status cvy_node_statistic(cvy_node *node, const char *suffix, const cvy_shape *shape, const cvy_init *init);
/* Destination i writes the variable that source j reads. */
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
