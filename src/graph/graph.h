/*
 * graph.h: the graph of one training (or evaluation) step: values, the nodes that make them, and the variables that
 * outlive them.
 *
 * The order of work is: model -> graph -> passes -> plan. Shapes are logical; the planner chooses layouts, an operator
 * never does. A graph is built for a known local batch (cvy_batch), so every shape is a number. Everything in a graph
 * is allocated in its pool.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_GRAPH_H
#define CVY_GRAPH_H

#include "backend/backend.h"
#include "base/base_index.h"
#include "base/text/base_option.h"

struct cvy_op_def;
struct cvy_layer;

/* ---- shapes ---- */
int64_t cvy_shape_elems(const cvy_shape *s);
/* 0: a dimension is negative, or there are more elements than any memory can hold. */
int cvy_shape_fits(const cvy_shape *s);
int64_t cvy_shape_positions(const cvy_shape *s); /* of a channel of one sample [N, C, positions...] */
int cvy_shape_equal(const cvy_shape *a, const cvy_shape *b);
cvy_shape cvy_shape_make(int ndim, const int64_t *dim);
const char *cvy_shape_text(const cvy_shape *s); /* "32x3x224x224", "scalar"; in a ring of static buffers per thread */
/* Parses "2x7x3x5" or "scalar". */
cvy_status cvy_shape_parse(const char *text, cvy_shape *out);

/*
 * ---- layouts: how the elements of a tensor are arranged in memory, written as in oneDNN's documentation ----
 *
 * One letter for each dimension, the outermost first. A capital letter means that the dimension is also blocked; the
 * blocks follow as size and letter: "aBcd16b" is [N, C/16, H, W, 16c]. "" is plain: all dimensions in order. Blocked
 * dimensions are padded to whole blocks; the padding always holds zeros.
 */
typedef struct cvy_layout {
    char tag[20];
} cvy_layout;

typedef struct cvy_blocking { /* a layout applied to a shape */
    int ndim, nblock;
    int64_t dim[CVY_NDIM_MAX]; /* logical */
    int64_t padded[CVY_NDIM_MAX];
    int64_t stride[CVY_NDIM_MAX]; /* elements between outer steps of the dimension (between whole blocks if it is
                                     blocked) */
    int block_dim[4];             /* inner blocks, outermost first */
    int64_t block_size[4];
    int64_t dim_block[CVY_NDIM_MAX]; /* product of the dimension's blocks; 1 if it is not blocked */
    int64_t elems; /* elements of the buffer, padding included; for a slice, of the tensor that contains it */
} cvy_blocking;

cvy_status cvy_blocking_make(const cvy_layout *layout, const cvy_shape *shape, cvy_blocking *out);
int64_t cvy_blocking_offset(const cvy_blocking *b, const int64_t *at); /* element offset of a logical position */
int cvy_layout_is_plain(const cvy_layout *layout);
int cvy_layout_equal(const cvy_layout *a, const cvy_layout *b);
cvy_layout cvy_layout_plain(void);
cvy_layout cvy_layout_make(const char *tag);
/* For activations [N, C, positions...]: the block size of C if the layout is like "aBc..16b", 1 if it is plain,
 * otherwise 0. Kernels that are elementwise by channel use it. */
int64_t cvy_layout_channel_block(const cvy_layout *layout, int ndim);
cvy_layout cvy_layout_channels(int ndim, int64_t block); /* the inverse: 16 -> "aBcd16b", 1 -> plain */
cvy_layout cvy_layout_channels_last(int ndim);           /* "acdb"; below three dimensions plain, which is the same */
/* A tensor may be a slice of the channels of a larger tensor, which has `whole` channels: "aBcd16b/480" has the strides
 * of the tensor with 480. Only kernels that accept such layouts get them (kernel.h: slice_src, slice_dst). For the
 * other functions here, a slice has the blocks of the tensor that contains it. */
cvy_layout cvy_layout_slice(const cvy_layout *of, int64_t whole);
int64_t cvy_layout_whole(const cvy_layout *layout); /* 480 in the example; 0: not a slice */

/* ---- tiles: the part of a tensor that this rank has, if ranks share it. Along each dimension it is a range ---- */
typedef struct cvy_tile {
    cvy_shape whole;             /* the shape of the whole tensor */
    int64_t first[CVY_NDIM_MAX]; /* where the part begins in it */
} cvy_tile;

/* The index in the whole tensor, row-major, of element i of a part of this shape. tile NULL: the part is the whole. */
int64_t cvy_tile_index(const cvy_tile *tile, const cvy_shape *part, int64_t i);

/* ---- variables: weights, optimiser state, running statistics, counters. They belong to a cvy_vars and make up the
 * checkpoint ---- */
typedef enum {
    CVY_ROLE_WEIGHT,
    CVY_ROLE_STATE,
    CVY_ROLE_STATISTIC
} cvy_role; /* trained; state of the optimiser; running statistics of batch norm, vectors of spectral norm */

typedef struct cvy_init { /* how a variable is filled before step 0 */
    const char *method;   /* a name from the initialiser table: "he", "xavier", "gaussian", "constant" */
    const char *options;  /* option text, may be NULL: "value: 0" */
    int64_t fan_in, fan_out;
} cvy_init;

typedef struct cvy_variable {
    char *name; /* "conv1.weight" */
    cvy_role role;
    cvy_dtype dtype;
    cvy_shape shape;      /* logical; of this rank's part if there is a tile */
    const cvy_tile *tile; /* NULL: this rank has the whole variable. Borrowed from the pool of the set */
    cvy_layout layout;    /* fixed by the first plan that uses the variable */
    int layout_fixed;
    int decay; /* 1: weight decay applies (not to biases and norms, unless the job says so) */
    int frozen;
    double lr_mult, decay_mult;
    cvy_init init;
    const struct cvy_variable *of; /* STATE: the weight to which it belongs */
    struct cvy_variable *average;  /* of a weight: its running average, a STATE; else NULL */
    const cvy_space *space;        /* the memory space that has data; NULL: the host's memory. Borrowed */
    void *data;                    /* NULL until cvy_vars_allocate; page memory, in `layout` */
    size_t bytes;                  /* size of data, padding included */
    int has_shadow; /* a plan reads a shadow copy in bf16, also in `layout`, which is kept from step to step */
    void *shadow;   /* the shadow copy; NULL until cvy_vars_allocate */
    int elsewhere;  /* another stage of the pipeline, or another part, has it: there is no memory for it on this rank */
    int is_borrowed;             /* both are in shared memory of the node, which the program frees */
    uint64_t written, shadow_of; /* how often data was written; the value of `written` when the shadow copy was made, 0:
                                    never. If both are equal, the copy is up to date */
    int index;                   /* index in its cvy_vars */
} cvy_variable;

typedef struct cvy_vars { /* the set of variables that several graphs share, in the order of creation */
    cvy_pool *pool;
    cvy_variable **at;
    int count, room;
    cvy_index place; /* index in `at`, by name */
} cvy_vars;

cvy_status cvy_vars_create(cvy_vars **out);
void cvy_vars_destroy(cvy_vars **vars);
cvy_variable *cvy_vars_find(const cvy_vars *vars, const char *name);
/* Finds a variable by name or creates it. If it exists, shape, dtype and role must be the same (CVY_E_SHAPE: the
 * message has both). Texts are copied. */
cvy_status cvy_vars_declare(cvy_vars *vars, const char *name, cvy_role role, cvy_dtype dtype, const cvy_shape *shape,
                            const cvy_init *init, cvy_variable **out);
/* Makes the state `average` the running average of the weight. Both belong to the set. */
void cvy_vars_set_average(cvy_vars *vars, const cvy_variable *weight, const cvy_variable *average);
/* The layouts of all variables, in their order, so that they can be as before after a plan was tried. */
typedef struct cvy_layouts {
    struct cvy_variable_layout {
        cvy_layout layout;
        int fixed;
    } * at; /* NULL: none are kept */
} cvy_layouts;
cvy_status cvy_layouts_keep(const cvy_vars *vars, cvy_layouts *out); /* freed by cvy_mem_free(&layouts.at) */
void cvy_layouts_restore(const cvy_vars *vars, const cvy_layouts *layouts);
int cvy_vars_have_averages(const cvy_vars *vars); /* whether any weight has one */
/* Gives v the memory of another variable, which must live longer, and its layout. */
void cvy_variable_borrow(cvy_variable *v, const cvy_variable *from);
/* Bytes of tensor memory of a variable in its layout, padding and shadow copy included; 0 if the layout does not fit.
 */
size_t cvy_variable_bytes(const cvy_variable *v);
size_t cvy_variable_shadow_bytes(const cvy_variable *v); /* of the shadow copy alone */
/* Copy a variable to or from plain layout: row-major, in the variable's dtype. */
cvy_status cvy_variable_read(const cvy_variable *v, void *plain_out);
cvy_status cvy_variable_write(cvy_variable *v, const void *plain);
/* The same for the elements [first, first + n). */
cvy_status cvy_variable_write_part(cvy_variable *v, int64_t first, int64_t n, const void *plain);

/* ---- the batch that a graph is built for ---- */
typedef struct cvy_batch {  /* one micro-batch, and this rank's consecutive part of it */
    int64_t global_n;       /* samples of the micro-batch over all ranks */
    int64_t first, local_n; /* this rank's samples are first .. first + local_n - 1 of them; local_n may be 0 */
    int nranks, rank;
} cvy_batch;

/* Where part p of P of n entries begins; where part p + 1 begins, it ends. */
static inline int64_t cvy_share_first(int64_t n, int part, int parts)
{
    return n * part / parts;
}

/* The rank's part of n samples: floor(n r / R) .. floor(n (r+1) / R). A rank r >= R, which is a parameter server, has
 * none. */
cvy_batch cvy_batch_share(int64_t global_n, int rank, int nranks);

/* ---- values and nodes ---- */
typedef enum {
    CVY_VALUE_TEMP,     /* made and used within the step; in the arena */
    CVY_VALUE_FEED,     /* filled by the caller before the step: inputs, targets, sample ids, scalars */
    CVY_VALUE_VARIABLE, /* a variable that is read; as a destination: a variable that is written (only by operators with
                           CVY_OP_ASSIGNS) */
    CVY_VALUE_ACCUMULATOR, /* summed over the micro-batches of a step: gradients, losses, metric sums */
} cvy_value_kind;

typedef enum {
    CVY_PHASE_PREPARE, /* once for each micro-batch, all before the first forward pass: the normalisers of the losses */
    CVY_PHASE_MICRO,   /* once for each micro-batch: forward and backward */
    CVY_PHASE_UPDATE,  /* once for each step */
} cvy_phase;

typedef struct cvy_node cvy_node;

typedef struct cvy_value {
    int index;  /* in graph->value */
    char *name; /* "conv1", "conv1.d", feed "x" */
    cvy_value_kind kind;
    cvy_dtype dtype;
    cvy_shape shape;        /* dim[0] is local_n for activations */
    cvy_variable *variable; /* VARIABLE; also ACCUMULATOR that is a variable's gradient */
    cvy_node *producer;     /* NULL for feeds and for variables that are read */
    int per_step; /* feed: one for the step (a scalar), not one for each micro-batch; temp: made in PREPARE or UPDATE */
    int reduced;  /* accumulator: must be summed over ranks before UPDATE reads it */
    unsigned over;  /* ... also along these axes of the grid, as well as along the data axis: a set of cvy_axis bits */
    unsigned split; /* ranks along these axes have different parts of the value */
    const cvy_tile *tile; /* the part; NULL: it is the whole, or no range of the whole */
    int shares_samples;   /* it has this rank's part of the samples: cvy_graph.sample_part */
    int bucket;           /* reduced accumulator: its bucket; -1 before the pass that assigns buckets */
    int elsewhere;        /* another stage of the pipeline makes it; a loss is 0 here, other outputs are not known */
    int is_output;        /* can be read after the step (named outputs, losses) */
} cvy_value;

#define CVY_NODE_SRC_MAX 12
#define CVY_NODE_DST_MAX 8

struct cvy_node {
    int index;         /* in graph->node: a topological order */
    char *name;        /* the layer's name, or "layer.grad"; unique in the graph */
    const char *layer; /* name of the model's layer from which it comes; random streams and reports use it */
    const struct cvy_op_def *op;
    void *options; /* the operator's option struct, filled by its option table */
    cvy_value *src[CVY_NODE_SRC_MAX];
    cvy_value *dst[CVY_NODE_DST_MAX]; /* NULL: not needed (a saved value that no gradient asked for) */
    int nsrc, ndst;
    struct cvy_saved_dst { /* saved destinations that no gradient has asked for yet */
        cvy_dtype dtype;
        cvy_shape shape;
    } * saved; /* [ndst], in the graph's pool; NULL: the operator saves nothing */
    cvy_phase phase;
    unsigned split;          /* ranks along these axes compute different parts: a set of cvy_axis bits */
    int backward;            /* emitted by autodiff */
    int removed;             /* removed by a pass; skipped from then on */
    const cvy_node *copy_of; /* it repeats this node, with the same kernel; NULL: it is no copy */
    int chunk;               /* interleaved stages of a pipeline: to which of this rank's stages it belongs; else 0 */
    struct cvy_graph *graph;
};

typedef struct cvy_graph {
    cvy_pool *pool;
    char *name;
    cvy_vars *vars;
    cvy_batch batch;
    int sample_part, sample_parts; /* ranks along the tensor axis share the samples of some layers: this rank's place,
                                      and their number; 0, 1: they do not */
    int training;                  /* 1: dropout is active, and batch norm uses the statistics of the batch */
    int dropout;                   /* 1: dropout is active in evaluation, too */
    cvy_dtype dtype;               /* of activations and their gradients: f32, f64 or bf16 */
    int64_t bn_group;              /* batch_norm.group in samples; 0: the whole micro-batch; -1: this rank's part */
    int64_t bn_unit;               /* samples of a group of batch norm that weighs 1 in running statistics, equal in all
                                      graphs of a step; 0: those of the largest group */
    const char *bn_frozen;         /* patterns of the batch norms with frozen statistics, "a*, b"; borrowed; or NULL */
    int precise;                   /* 1: no kernel that rounds more than a plain sum does */
    uint64_t seed;
    cvy_node **node;
    int nnode, node_room;
    cvy_value **value;
    int nvalue, value_room;
    cvy_index node_names;  /* names in use; passes move nodes, so the numbers are not indices of nodes */
    cvy_index value_place; /* index in `value`, by name */
    cvy_value **read;      /* by the variable's index: the value that reads it, or NULL */
    int nread, read_room;
    int owns_vars;           /* 1: the set of variables is destroyed with the graph */
    struct cvy_graph *whole; /* the graph of which this one is a part. It owns options of the nodes; NULL: none */
} cvy_graph;

typedef struct cvy_graph_opts {
    const char *name;
    cvy_batch batch;
    int training, dropout; /* as in cvy_graph */
    cvy_dtype dtype;
    int64_t bn_group, bn_unit;
    const char *bn_frozen; /* as in cvy_graph */
    int precise;
    uint64_t seed;
} cvy_graph_opts;

/* The samples that a node works on: those of the graph, or this rank's part of them. */
cvy_batch cvy_node_batch(const cvy_node *node);
/* The dtype of weights, statistics and their gradients: the graph's dtype, but f32 if activations are bf16. */
cvy_dtype cvy_graph_weight_dtype(const cvy_graph *g);

cvy_status cvy_graph_create(cvy_vars *vars, const cvy_graph_opts *opts, cvy_graph **out);
void cvy_graph_destroy(cvy_graph **graph);

/* Finds the feed of this name or creates it. sample_shape has no batch dimension; a per_step feed has the shape as
 * given. If a feed of this name has another shape: CVY_E_SHAPE. */
cvy_status cvy_graph_feed(cvy_graph *g, const char *name, cvy_dtype dtype, const cvy_shape *sample_shape, int per_step,
                          cvy_value **out);
/* Moves a node to `index` and renumbers the nodes between. The order must stay topological. */
void cvy_graph_move_node(cvy_graph *g, cvy_node *node, int index);
/* Well-known feeds, created on first use. */
cvy_status cvy_graph_sample_id(cvy_graph *g, cvy_value **out); /* i64 [N]: the number of each sample in the data set */
cvy_status cvy_graph_step_number(cvy_graph *g, cvy_value **out); /* i64 scalar, per step */
cvy_status cvy_graph_norm(
    cvy_graph *g,
    cvy_value **out); /* f64 scalar, per step: global number of samples of the step, the default normaliser of losses */
cvy_value *cvy_graph_find(const cvy_graph *g, const char *value_name);
/* The value that reads a variable. Each graph has one for each variable. */
cvy_status cvy_graph_read_variable(cvy_graph *g, cvy_variable *v, cvy_value **out);
cvy_status cvy_graph_new_value(cvy_graph *g, const char *name, cvy_dtype dtype, const cvy_shape *shape,
                               cvy_value **out);

/* Adds a node: copies the sources, parses the options (text, may be NULL) and calls op->infer, which makes the
 * destinations. The message of an error is prefixed by the node's name. The phase is MICRO. */
cvy_status cvy_graph_add(cvy_graph *g, const char *op, const char *name, const char *layer, const char *options,
                         cvy_value *const *src, int nsrc, cvy_node **out);
cvy_status cvy_graph_add_op(cvy_graph *g, const struct cvy_op_def *op, const char *name, const char *layer,
                            const char *options, cvy_value *const *src, int nsrc, cvy_node **out);
cvy_status cvy_graph_add_parsed(cvy_graph *g, const struct cvy_op_def *op, const char *name, const char *layer,
                                const void *options, cvy_value *const *src, int nsrc, cvy_phase phase, cvy_node **out);
/* Adds a copy of a node, named "<name>.<suffix>", with other sources of the same shapes. It has no saved destinations.
 */
cvy_status cvy_graph_add_copy(cvy_graph *g, const cvy_node *node, const char *suffix, cvy_value *const *src,
                              cvy_node **out);
/* Adds a layer of a model: by op->build if the operator has it (batch norm, losses, dropout in evaluation), otherwise
 * as one node. dst_out[0] is its output. */
cvy_status cvy_graph_layer(cvy_graph *g, const char *op, const char *name, const cvy_tree *options,
                           cvy_value *const *src, int nsrc, cvy_value **dst_out);
cvy_status cvy_graph_layer_op(cvy_graph *g, const struct cvy_op_def *op, const char *name, const cvy_tree *options,
                              cvy_value *const *src, int nsrc, cvy_value **dst_out);

/* Checks shapes, producers, kinds, phases, the topological order, and that nothing reads a variable after it was
 * written. It is called after every pass. CVY_E_INTERNAL: the message has the node. */
cvy_status cvy_graph_verify(const cvy_graph *g);
/* Whether the operators can learn from the batch of a training graph; CVY_E_CONFIG: one cannot. */
cvy_status cvy_graph_check_batch(const cvy_graph *g);
/* Prints a graph as text (a line for each node) or as Graphviz dot. The caller frees the text. */
cvy_status cvy_graph_print(const cvy_graph *g, char **text_out);
cvy_status cvy_graph_print_dot(const cvy_graph *g, char **text_out);

#endif
