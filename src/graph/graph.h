/*
 * graph.h: the graph of one training (or evaluation) step: values, the nodes that make them, and the variables that
 * outlive them.
 *
 * In the step: model -> graph (this) -> passes -> plan. Shapes are logical; layouts are chosen by the planner, never by
 * an operator. A graph is built for a known share of the batch (cvy_batch), so every shape is a number. All of a graph
 * lives in its pool.
 */
#ifndef CVY_GRAPH_H
#define CVY_GRAPH_H

#include "backend/backend.h"
#include "base/base_index.h"
#include "base/base_option.h"

struct cvy_op_def;
struct cvy_layer;

/* ---- shapes ---- */
int64_t cvy_shape_elems(const cvy_shape *s);
int cvy_shape_equal(const cvy_shape *a, const cvy_shape *b);
cvy_shape cvy_shape_make(int ndim, const int64_t *dim);
const char *cvy_shape_text(const cvy_shape *s); /* "32x3x224x224", "scalar"; a ring of static per-thread buffers */
/* "2x7x3x5" or "scalar". */
cvy_status cvy_shape_parse(const char *text, cvy_shape *out);

/* ---- layouts: how a tensor's elements lie in memory, written as in oneDNN's documentation ----
 * One letter per dimension, outermost first; a capital is also blocked, its blocks follow as size and letter: "aBcd16b"
 * is [N, C/16, H, W, 16c].
 * "" is plain: all dimensions in order. Blocked dimensions are padded up; padding lanes hold zeros, always. */
typedef struct cvy_layout {
    char tag[20];
} cvy_layout;

typedef struct cvy_blocking { /* a layout applied to a shape */
    int ndim, nblock;
    int64_t dim[CVY_NDIM_MAX]; /* logical */
    int64_t padded[CVY_NDIM_MAX];
    int64_t stride[CVY_NDIM_MAX]; /* elements between outer steps of the dimension (of a whole block where blocked) */
    int block_dim[4];             /* inner blocks, outermost first */
    int64_t block_size[4];
    int64_t dim_block[CVY_NDIM_MAX]; /* product of the dimension's blocks, 1 where not blocked */
    int64_t elems; /* with padding: what the buffer holds; of a slice, what the tensor that it lies in holds */
} cvy_blocking;

cvy_status cvy_blocking_make(const cvy_layout *layout, const cvy_shape *shape, cvy_blocking *out);
int64_t cvy_blocking_offset(const cvy_blocking *b, const int64_t *at); /* element offset of a logical position */
int cvy_layout_is_plain(const cvy_layout *layout);
int cvy_layout_equal(const cvy_layout *a, const cvy_layout *b);
cvy_layout cvy_layout_plain(void);
cvy_layout cvy_layout_make(const char *tag);
/* For activations [N, C, positions...]: block of C if the layout is "aBc..16b"-like, 1 if plain, 0 otherwise. What
 * elementwise-by-channel kernels ask. */
int64_t cvy_layout_channel_block(const cvy_layout *layout, int ndim);
cvy_layout cvy_layout_channels(int ndim, int64_t block); /* the inverse: 16 -> "aBcd16b", 1 -> plain */
cvy_layout cvy_layout_channels_last(int ndim); /* "acdb"; plain below three dimensions, where it is the same */
/* A tensor may lie as a slice of the channels of one that has `whole` of them: "aBcd16b/480" has the strides of the
 * 480. Only kernels that say so are given such layouts (kernel.h: slice_src, slice_dst). For the other functions here a
 * slice is blocked as what it is cut from. */
cvy_layout cvy_layout_slice(const cvy_layout *of, int64_t whole);
int64_t cvy_layout_whole(const cvy_layout *layout); /* 480; 0: not a slice */

/* ---- variables: weights, optimiser state, running statistics, counters. They belong to a cvy_vars and are the
 * checkpoint ---- */
typedef enum {
    CVY_ROLE_WEIGHT,
    CVY_ROLE_STATE,
    CVY_ROLE_STATISTIC
} cvy_role; /* trained; optimiser's; batch norm's running ones */

typedef struct cvy_init { /* how a variable is filled before step 0 */
    const char *method;   /* a name from the initialiser table: "he", "xavier", "gaussian", "constant" */
    const char *options;  /* option text, may be NULL: "value: 0" */
    int64_t fan_in, fan_out;
} cvy_init;

typedef struct cvy_variable {
    char *name; /* "conv1.weight" */
    cvy_role role;
    cvy_dtype dtype;
    cvy_shape shape;   /* logical */
    cvy_layout layout; /* fixed by the first plan that touches it */
    int layout_fixed;
    int decay; /* weight decay applies (not for biases and norms, unless the job says so) */
    int frozen;
    double lr_mult, decay_mult;
    cvy_init init;
    const struct cvy_variable *of; /* STATE: the weight that it belongs to */
    const cvy_space *space;        /* in which data lies; NULL: the host's memory. Borrowed */
    void *data;                    /* NULL until cvy_vars_allocate; page memory; in `layout` */
    size_t bytes;                  /* of data, padding included */
    int has_shadow; /* a plan reads a copy in bf16 that lies in `layout` too: it is kept from step to step */
    void *rounded;  /* that copy; NULL until cvy_vars_allocate */
    int in_common;  /* both lie in memory that all ranks of the node have in common, which the program frees */
    uint64_t written, shadow_of; /* how often data was written; which of these the copy was made of, 0: none. Equal:
                                     the copy is fresh */
    int index;                   /* in its cvy_vars */
} cvy_variable;

typedef struct cvy_vars { /* the one set of variables that several graphs share; the order is the order of creation */
    cvy_pool *pool;
    cvy_variable **at;
    int count, room;
    cvy_index place; /* in `at`, by name */
} cvy_vars;

cvy_status cvy_vars_create(cvy_vars **out);
void cvy_vars_destroy(cvy_vars **vars);
cvy_variable *cvy_vars_find(const cvy_vars *vars, const char *name);
/* Finds by name (shape, dtype and role must agree: CVY_E_SHAPE names both) or makes. Texts are copied. */
cvy_status cvy_vars_declare(cvy_vars *vars, const char *name, cvy_role role, cvy_dtype dtype, const cvy_shape *shape,
                            const cvy_init *init, cvy_variable **out);
/* Tensor memory of a variable in its layout, padding and copy included; 0 where the layout does not fit. */
size_t cvy_variable_bytes(const cvy_variable *v);
size_t cvy_variable_shadow_bytes(const cvy_variable *v); /* of the copy alone */
/* Copies to and from plain layout, row-major, of the variable's dtype. */
cvy_status cvy_variable_read(const cvy_variable *v, void *plain_out);
cvy_status cvy_variable_write(cvy_variable *v, const void *plain);
/* Elements [first, first + n). */
cvy_status cvy_variable_write_part(cvy_variable *v, int64_t first, int64_t n, const void *plain);

/* ---- the batch that a graph is built for ---- */
typedef struct cvy_batch {  /* one micro-batch, and this rank's consecutive share of it */
    int64_t global_n;       /* samples of the micro-batch over all ranks */
    int64_t first, local_n; /* this rank's samples are first .. first + local_n - 1 of them; local_n may be 0 */
    int nranks, rank;
} cvy_batch;

/* Rank's share of n samples: floor(n r / R) .. floor(n (r+1) / R). A rank behind these R, which only serves, has none.
 */
cvy_batch cvy_batch_share(int64_t global_n, int rank, int nranks);

/* ---- values and nodes ---- */
typedef enum {
    CVY_VALUE_TEMP,        /* made and used within the step; arena memory */
    CVY_VALUE_FEED,        /* filled from outside before the step: inputs, targets, sample ids, scalars */
    CVY_VALUE_VARIABLE,    /* a variable as read; as a destination: written (only by operators with CVY_OP_ASSIGNS) */
    CVY_VALUE_ACCUMULATOR, /* summed over the micro-batches of a step: gradients, losses, metric sums */
} cvy_value_kind;

typedef enum {
    CVY_PHASE_PREPARE, /* once a micro-batch, all before the first forward: the losses' normalisers */
    CVY_PHASE_MICRO,   /* once a micro-batch: forward and backward */
    CVY_PHASE_UPDATE,  /* once a step */
} cvy_phase;

typedef struct cvy_node cvy_node;

typedef struct cvy_value {
    int index;  /* in graph->value */
    char *name; /* "conv1", "conv1.d", feed "x" */
    cvy_value_kind kind;
    cvy_dtype dtype;
    cvy_shape shape;        /* dim[0] is local_n for activations */
    cvy_variable *variable; /* VARIABLE; also ACCUMULATOR that is a variable's gradient */
    cvy_node *producer;     /* NULL for feeds and variables as read */
    int per_step;  /* feed: one for the step (a scalar), not one per micro-batch; temp made in PREPARE or UPDATE */
    int reduced;   /* accumulator: must be summed over ranks before UPDATE reads it */
    int bucket;    /* reduced accumulator: its bucket, -1 before the pass */
    int is_output; /* kept readable after the step (named outputs, losses) */
} cvy_value;

#define CVY_NODE_SRC_MAX 12
#define CVY_NODE_DST_MAX 8

struct cvy_node {
    int index;         /* in graph->node: a topological order */
    char *name;        /* the layer's name, or "layer.grad", unique within the graph */
    const char *layer; /* name of the model's layer it stems from: random streams and reports use it */
    const struct cvy_op_def *op;
    void *options; /* the operator's own struct, filled from its option table */
    cvy_value *src[CVY_NODE_SRC_MAX];
    cvy_value *dst[CVY_NODE_DST_MAX]; /* NULL: not wanted (a saved value that no gradient asked for) */
    int nsrc, ndst;
    cvy_dtype saved_dtype[CVY_NODE_DST_MAX]; /* of saved destinations that no gradient has asked for yet */
    cvy_shape saved_shape[CVY_NODE_DST_MAX];
    cvy_phase phase;
    int backward; /* emitted by autodiff */
    int removed;  /* by a pass; skipped from then on */
    struct cvy_graph *graph;
};

typedef struct cvy_graph {
    cvy_pool *pool;
    char *name;
    cvy_vars *vars;
    cvy_batch batch;
    int training;     /* dropout drops, batch norm uses the batch's statistics */
    cvy_dtype dtype;  /* of activations and their gradients: f32, f64 or bf16 */
    int64_t bn_group; /* batch_norm.group in samples; 0: the whole micro-batch; -1: the rank's share */
    int precise;      /* no kernel that rounds more than the plain sum does */
    uint64_t seed;
    cvy_node **node;
    int nnode, node_room;
    cvy_value **value;
    int nvalue, value_room;
    cvy_index node_names;  /* names that are taken: passes move nodes, so the numbers are not places */
    cvy_index value_place; /* by name */
    cvy_value **read;      /* by the variable's index: the value that reads it, or NULL */
    int nread, read_room;
} cvy_graph;

typedef struct cvy_graph_opts {
    const char *name;
    cvy_batch batch;
    int training;
    cvy_dtype dtype;
    int64_t bn_group;
    int precise;
    uint64_t seed;
} cvy_graph_opts;

/* The dtype of weights, statistics and their gradients: the graph's own, but f32 where activations are bf16. */
cvy_dtype cvy_graph_weight_dtype(const cvy_graph *g);

cvy_status cvy_graph_create(cvy_vars *vars, const cvy_graph_opts *opts, cvy_graph **out);
void cvy_graph_destroy(cvy_graph **graph);

/* Finds the feed of this name or makes it. sample_shape has no batch dimension; per_step feeds have shape as given.
 * Same name, other shape: CVY_E_SHAPE. */
cvy_status cvy_graph_feed(cvy_graph *g, const char *name, cvy_dtype dtype, const cvy_shape *sample_shape, int per_step,
                          cvy_value **out);
/* Well-known feeds, made on first use. */
cvy_status cvy_graph_sample_id(cvy_graph *g,
                               cvy_value **out); /* i64 [N]: global id of each sample (its number in the data set) */
cvy_status cvy_graph_step_number(cvy_graph *g, cvy_value **out); /* i64 scalar, per step */
cvy_status cvy_graph_norm(
    cvy_graph *g,
    cvy_value **out); /* f64 scalar, per step: global samples of the step; the losses' default normaliser */
cvy_value *cvy_graph_find(const cvy_graph *g, const char *value_name);
/* The value that reads a variable (one per variable and graph). */
cvy_status cvy_graph_read_variable(cvy_graph *g, cvy_variable *v, cvy_value **out);
cvy_status cvy_graph_new_value(cvy_graph *g, const char *name, cvy_dtype dtype, const cvy_shape *shape,
                               cvy_value **out);

/* Adds a node: copies the sources, parses options (text, may be NULL) or takes a ready struct, runs op->infer, which
 * makes the destinations. A fault is prefixed by the node's name. phase is the graph's current one
 * (cvy_graph_set_phase), MICRO by default. */
cvy_status cvy_graph_add(cvy_graph *g, const char *op, const char *name, const char *layer, const char *options,
                         cvy_value *const *src, int nsrc, cvy_node **out);
cvy_status cvy_graph_add_parsed(cvy_graph *g, const struct cvy_op_def *op, const char *name, const char *layer,
                                const void *options, cvy_value *const *src, int nsrc, cvy_phase phase, cvy_node **out);
/* Adds a copy of a node, named "<name>.<suffix>", on other sources of the same shapes; saved destinations are left out.
 */
cvy_status cvy_graph_add_copy(cvy_graph *g, const cvy_node *node, const char *suffix, cvy_value *const *src,
                              cvy_node **out);
/* Adds a layer as a model names it: op->build if it has one (batch norm, losses, dropout in evaluation), else one node.
 * dst_out[0] is its output. */
cvy_status cvy_graph_layer(cvy_graph *g, const char *op, const char *name, const cvy_tree *options,
                           cvy_value *const *src, int nsrc, cvy_value **dst_out);

/* Shapes, producers, kinds, phases, topological order, writes after reads; run after every pass. CVY_E_INTERNAL naming
 * the node. */
cvy_status cvy_graph_verify(const cvy_graph *g);
/* Text (a line per node) or Graphviz dot, into a string of its own. */
cvy_status cvy_graph_print(const cvy_graph *g, char **text_out);
cvy_status cvy_graph_print_dot(const cvy_graph *g, char **text_out);

#endif
