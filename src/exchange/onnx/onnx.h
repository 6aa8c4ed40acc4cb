/*
 * onnx.h: what the parts of the ONNX reader share: the values of a graph, and the translation of a node.
 *
 * The reader goes through the nodes in their order. A node whose sources are all constant is computed (onnx_fold.c).
 * Any other is translated into layers of ours by the table of its operator. Each layer goes into the model and at once
 * into a graph of one sample, which knows the shapes.
 *
 * The batch is free: where a graph computes with its own shapes, CVY_ONNX_BATCH stands for the number of samples.
 *
 * A file may be hostile. All names are known before the first node is read, and each value has one maker. Numbers of
 * attributes are checked before they are computed with. CVY_ONNX_ELEMS bounds a tensor of the graph, and
 * cvy_onnx_take_memory() what is computed from constants.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_ONNX_H
#define CVY_ONNX_H

#include "exchange/exchange_build.h"
#include "exchange/onnx/onnx_def.h"
#include "exchange/onnx/onnx_file.h"

#define CVY_ONNX_BATCH ((int64_t)0x6261746368) /* a number that no shape has */
enum { CVY_ONNX_SOURCES = 512, CVY_ONNX_NO_LAYER = 1 << 30, CVY_ONNX_MORE = 4 };
/* The most elements of a sample, and the largest number that an attribute may have as a size, a position or a pad. */
#define CVY_ONNX_ELEMS CVY_BUILD_ELEMS
#define CVY_ONNX_SIZE ((int64_t)1 << 31)

typedef struct cvy_onnx_pads {
    int ndim;
    int64_t before[CVY_NDIM_MAX], after[CVY_NDIM_MAX]; /* of each axis */
} cvy_onnx_pads;

/* Where the samples of a value are: its axis `at` is [before, N, after] (onnx_batch.c); 0 for before and after is 1. */
typedef struct cvy_onnx_batch {
    int at;
    int64_t before, after;
} cvy_onnx_batch;

/* A value of the ONNX graph: a constant, or the output of a layer. */
typedef struct cvy_onnx_value {
    const char *name;                /* in the file */
    const cvy_onnx_tensor *constant; /* NULL: it depends on the input */
    const char *layer;               /* its name in the model */
    cvy_shape shape;                 /* with one sample */
    int64_t whole;                   /* of a layer: ONNX's number of its integer or bool type; 0: it is real */
    cvy_onnx_batch batch;            /* of a layer */
    const int64_t *turned; /* the value is the layer's with its axes in this order (onnx_transpose.c); NULL: as it is */
    const cvy_onnx_pads *pads; /* the value is the layer's, padded with numbers that never are a maximum; NULL: it is
                                  not padded. Only a MaxPool reads it */
    const Cvy__Onnx__NodeProto *maker, *reader; /* the node that makes it, and the first that reads it; NULL: none */
    int readers;                                /* sources that read it; an output of the graph counts twice */
    int turns;                                  /* of the readers, those that are Transpose */
} cvy_onnx_value;

/* A layer with variables that others may share, and the tensors of the file from which these were made. */
typedef struct cvy_onnx_owner {
    int layer, is_changed;
    const cvy_onnx_tensor *weight, *more[CVY_ONNX_MORE];
} cvy_onnx_owner;

/* Which constants of a file become variables (onnx_constant.c). */
typedef struct cvy_onnx_chosen {
    int rule;                      /* a cvy_onnx_constants */
    int has_initializers;          /* that may be parameters */
    const char *list;              /* of a file that convoy wrote: those that are not trained, "a b" */
    cvy_index kinds;               /* of initialisers, by name, as PyTorch's exporter writes them */
    cvy_keys kept;                 /* variables that are not trained */
    cvy_keys trained, not_trained; /* what the user is told: variables, and their names in the file */
    cvy_keys numbers;              /* parameters that are options of layers */
    cvy_index layers;              /* those that have such variables */
} cvy_onnx_chosen;

typedef struct cvy_onnx {
    cvy_import *out;
    const char *path, *folder;
    int64_t opset;
    const Cvy__Onnx__GraphProto *proto;
    cvy_keys names;        /* of values */
    cvy_onnx_value *value; /* by number of the name */
    int room;
    int64_t batch;                 /* that the file fixes; 0: none */
    size_t file_bytes, made_bytes; /* of the file with its external data, and of what was computed from constants */
    /* Of a file that convoy wrote: the value that layers read in place of x, and the output before its scaling is
     * undone; NULL: none. skips_data: nodes for the data are left out. */
    const char *inside, *output;
    int skips_data;
    cvy_build build;
    cvy_onnx_chosen constant;
    cvy_index owner; /* names of weights in the file: the number in `owned` (onnx_share.c) */
    cvy_onnx_owner *owned;
    int nowned, owned_room;
    cvy_index shared;   /* names of the weights of `owned` */
    cvy_keys several;   /* of these, those that several of `owned` have */
    cvy_index absorbed; /* outputs of nodes whose work an earlier layer does: its number, or CVY_ONNX_NO_LAYER if no
                           node reads the output any more */
    cvy_index absorbed_moved; /* the same outputs, if their samples are not first: numbers in `moved` */
    cvy_onnx_batch *moved;
    int nmoved, moved_room;
} cvy_onnx;

typedef struct cvy_onnx_node {
    cvy_onnx *x;
    const Cvy__Onnx__NodeProto *proto;
    const char *op, *name;                      /* the name is for messages: never empty */
    const cvy_onnx_value *in[CVY_ONNX_SOURCES]; /* NULL: an optional source that is left out */
    int nin, nout;
    cvy_onnx_batch source, moved; /* where the samples are in the sources and in the results in the file. The sources
                                     are those of the layers, with the samples first (onnx_batch.c) */
} cvy_onnx_node;

/* ---- sources and attributes ---- */
/* Whether the node is of one of n operators. */
int cvy_onnx_is_one_of(const cvy_onnx_node *node, const char *const *ops, int n);
const Cvy__Onnx__AttributeProto *cvy_onnx_attribute(const cvy_onnx_node *node, const char *name);
int64_t cvy_onnx_int(const cvy_onnx_node *node, const char *name, int64_t fallback);
double cvy_onnx_real(const cvy_onnx_node *node, const char *name, double fallback);
/* "" if absent. Valid as long as the pool. */
cvy_status cvy_onnx_string(const cvy_onnx_node *node, const char *name, const char **out);
/* The integers of an attribute, or of source `source` if that is given (newer operator sets). *n_out 0: neither. */
cvy_status cvy_onnx_ints(const cvy_onnx_node *node, const char *name, int source, const int64_t **out, int *n_out);
/* The source; NULL: it is left out. */
static inline const cvy_onnx_value *cvy_onnx_source(const cvy_onnx_node *node, int i)
{
    return i < node->nin ? node->in[i] : NULL;
}
/* A source that must be constant, or left out (*out NULL). */
cvy_status cvy_onnx_constant(const cvy_onnx_node *node, int i, const cvy_onnx_tensor **out);
/* A source that must be there and depend on the input. */
cvy_status cvy_onnx_activation(const cvy_onnx_node *node, int i, const cvy_onnx_value **out);
/* Element i of a constant as a number. */
double cvy_onnx_number(const cvy_onnx_tensor *t, int64_t i);
/* Whether a constant is there and is made of real numbers. */
int cvy_onnx_is_real(const cvy_onnx_tensor *t);
/* An axis that may count from the end, as an axis of a source with ndim dimensions. CVY_E_UNSUPPORTED: it is the batch.
 */
cvy_status cvy_onnx_axis(const cvy_onnx_node *node, int64_t axis, int ndim, int *out);
/* CVY_E_UNSUPPORTED with the node's operator and name. */
#define CVY_ONNX_FAIL(node, fmt, ...)                                                                                  \
    CVY_FAIL(CVY_E_UNSUPPORTED, "%s: %s (%s): " fmt, (node)->x->path, (node)->name, (node)->op, __VA_ARGS__)
#define CVY_ONNX_CHECK(ok, node, fmt, ...)                                                                             \
    do {                                                                                                               \
        if (!(ok))                                                                                                     \
            CVY_ONNX_FAIL(node, fmt, __VA_ARGS__);                                                                     \
    } while (0)

/* ---- layers ---- */

typedef struct cvy_onnx_layer {
    const char *op, *options;                   /* of ours; options NULL: the defaults */
    const cvy_onnx_tensor *weight;              /* names the layer; NULL: the node's name does */
    const cvy_onnx_tensor *more[CVY_ONNX_MORE]; /* the other constants that become its variables; NULL: none */
    int is_changed;                     /* its variable is not `weight` as it is, but a transpose or an inverse */
    int is_bare;                        /* the layer, an affine, may have one variable with the name of the constant */
    const char *from[CVY_NODE_SRC_MAX]; /* names in the model */
    int nfrom;
} cvy_onnx_layer;

/* Adds a layer. *name_out: the name of its variables, or of its only one, *output_out: that of its output; both may be
 * NULL. If another layer has the same weight and the same further constants, the name is that of the other one: both
 * share their variables. Exporters merge equal tensors, as the scales of untrained normalisations, so constants that
 * hold one number only are not shared. */
cvy_status cvy_onnx_add(const cvy_onnx_node *node, const cvy_onnx_layer *layer, const char **name_out,
                        const char **output_out);
/* The number of the layer whose variables a layer shares; -1: none has them yet. *key: for cvy_onnx_add_owner(), which
 * makes the layer that was added last the one that has them; NULL: it shares none. */
cvy_status cvy_onnx_find_owner(cvy_onnx *x, const cvy_onnx_layer *layer, const char **key, int *owner);
cvy_status cvy_onnx_add_owner(cvy_onnx *x, const cvy_onnx_layer *layer, const char *key);
/* Tells the user which tensors become several variables. */
cvy_status cvy_onnx_note_forms(cvy_onnx *x);
void cvy_onnx_free_owners(cvy_onnx *x);
/* Refuses two sources of different numbers of axes, which ONNX would align at the last one. */
cvy_status cvy_onnx_aligned(const cvy_onnx_node *node, const cvy_onnx_value *a, const cvy_onnx_value *b);
/* Operator sets 1 to 6: whether `broadcast` and `axis` say at which axes of the first source those of the second
 * lie. */
int cvy_onnx_has_old_axis(const cvy_onnx_node *node);
/* The shape of the second source, b, with axes of length 1 at its end, so that ONNX's newer rule, which aligns the last
 * axes, gives the same result. */
cvy_status cvy_onnx_old_shape(const cvy_onnx_node *node, const cvy_shape *a, const cvy_shape *b, cvy_shape *out);
/* The same for a layer on one source without weights. */
cvy_status cvy_onnx_step(const cvy_onnx_node *node, const char *op, const char *options, const char *from,
                         const char **output_out);
/* A layer with one real option. */
cvy_status cvy_onnx_step_real(const cvy_onnx_node *node, const char *op, const char *option, double value,
                              const char *from, const char **output_out);
/* Gives a sample another shape, or repeats it along axes of length 1. *output: `from` if it has this shape already. */
cvy_status cvy_onnx_reshape(const cvy_onnx_node *node, const char *from, const int64_t *sample, int n,
                            const char **output);
cvy_status cvy_onnx_expand(const cvy_onnx_node *node, const char *from, const int64_t *sample, int n,
                           const char **output);
/* `count` entries of an axis from `first` on. */
cvy_status cvy_onnx_slice(const cvy_onnx_node *node, const char *from, int axis, int64_t first, int64_t count,
                          const char **output);
/* Entries of an axis in any order, each any number of times. */
cvy_status cvy_onnx_entries(const cvy_onnx_node *node, const char *from, int axis, const int64_t *at, int64_t n,
                            const char **output);
/* `count` entries of an axis: first, first + step, .. */
cvy_status cvy_onnx_slice_steps(const cvy_onnx_node *node, const char *from, int axis, int64_t first, int64_t count,
                                int64_t step, const char **output);
/* Joins outputs along an axis, in several layers if need be. */
cvy_status cvy_onnx_join(const cvy_onnx_node *node, const char *op, const char *options, const char *const *from, int n,
                         const char **output);
/* Appends "name: [1, 2]" to options. */
void cvy_onnx_list(cvy_text *options, const char *name, const int64_t *at, int n);
/* The elements of a sample. */
int64_t cvy_onnx_sample_elems(const cvy_shape *shape);
/* A name for an input or an output, which no layer has. */
cvy_status cvy_onnx_input_name(cvy_onnx *x, const char *wish, const char **out);
/* The shape of an output of the model, with one sample. */
const cvy_shape *cvy_onnx_shape(const cvy_onnx *x, const char *output);
/* Gives the variable "<layer>.<parameter>", or "<layer>" if the parameter is "", the values of a constant, in another
 * shape of the same size if need be, and decides whether it is trained. */
cvy_status cvy_onnx_set(const cvy_onnx_node *node, const char *layer, const char *parameter, const cvy_onnx_tensor *t);
/* The same with values in the pool, and without the decision. */
cvy_status cvy_onnx_set_values(const cvy_onnx_node *node, const char *layer, const char *parameter, cvy_dtype dtype,
                               const void *data, int64_t elems);
/* The same with the samples there. */
cvy_status cvy_onnx_done_moved(const cvy_onnx_node *node, int i, const char *output, const cvy_onnx_batch *b);
/* Output i of the node is this output of the model. */
cvy_status cvy_onnx_done(const cvy_onnx_node *node, int i, const char *output);
/* The same with the axes of the output in this order, which lives in the pool. Only transpositions may read it. */
cvy_status cvy_onnx_done_turned(const cvy_onnx_node *node, int i, const char *output, const int64_t *order);
/* Puts the axes of a value into this order. */
void cvy_onnx_turn(cvy_onnx_value *value, const int64_t *order);
/* Multiplies by the constant (name "scale") or adds it ("shift"): a layer affine. */
cvy_status cvy_onnx_affine(const cvy_onnx_node *node, const char *from, const cvy_onnx_tensor *t, const char *name,
                           const char **output);

/* A fully connected layer by a matrix [inputs, outputs], or [outputs, inputs] if it is turned. bias: may be NULL. */
cvy_status cvy_onnx_fc(const cvy_onnx_node *node, const char *from, const cvy_onnx_tensor *weight, int is_turned,
                       const cvy_onnx_tensor *bias, const char **output);

/* The constant as the output of layers, the same for each sample. *output: as wide as the constant, which has an axis
 * of length 1, or of a fixed batch, for the samples. */
cvy_status cvy_onnx_repeat_constant(const cvy_onnx_node *node, const cvy_onnx_tensor *t, const char **output);
/* The constant of one sample: a file with a fixed batch may have a copy for each. CVY_E_UNSUPPORTED: they differ. */
cvy_status cvy_onnx_one_sample(const cvy_onnx_node *node, const cvy_onnx_tensor *t, cvy_onnx_tensor *out);
/* One layer on source 0 alone, whose output is that of the node. */
cvy_status cvy_onnx_simple(const cvy_onnx_node *node, const char *op, const char *options);
/* Makes output i of the node a constant. */
cvy_status cvy_onnx_done_constant(const cvy_onnx_node *node, int i, cvy_onnx_tensor *t);
/* A later node is left out, because the layer with this output does its work. output NULL: only nodes that are left
 * out, too, read what it computes. */
cvy_status cvy_onnx_absorb(const cvy_onnx_node *node, const Cvy__Onnx__NodeProto *later, const char *output);
/* Whether anything reads output i of the node. */
int cvy_onnx_is_read(const cvy_onnx_node *node, int i);
/* The only node that reads this output of a node; NULL: several do, or it is an output of the graph. */
const Cvy__Onnx__NodeProto *cvy_onnx_reader(const cvy_onnx *x, const char *output);
/* The only reader, if it is this operator on two sources, one of which is the output. *other_out: the name of the other
 * source. */
const Cvy__Onnx__NodeProto *cvy_onnx_reader_of_two(const cvy_onnx *x, const char *output, const char *op,
                                                   const char **other_out);
/* The constant of this name; NULL: there is none. */
const cvy_onnx_tensor *cvy_onnx_find_constant(const cvy_onnx *x, const char *name);
/* The only number of a constant that is the same everywhere. Returns 0 if there are several. */
int cvy_onnx_is_uniform(const cvy_onnx_tensor *t, double *out);
/* CVY_E_UNSUPPORTED if what is computed from constants would need much more memory than the file has. */
cvy_status cvy_onnx_take_memory(cvy_onnx *x, size_t bytes);
/* A sparse tensor of the file as a constant. */
cvy_status cvy_onnx_take_sparse(cvy_onnx *x, const Cvy__Onnx__SparseTensorProto *from, cvy_onnx_tensor **out);
/* A new constant of this dtype and shape in the pool, zeroed. */
cvy_status cvy_onnx_new(cvy_onnx *x, cvy_dtype dtype, const cvy_shape *shape, cvy_onnx_tensor **out);

/* ---- onnx_type.c ---- */
const char *cvy_onnx_type_name(int64_t type);
int cvy_onnx_type_is_real(int64_t type);
int cvy_onnx_type_is_whole(int64_t type);
/* Whether a number can be cast to the type; a bool is whether it is not 0. */
int cvy_onnx_type_holds(int64_t type, double number);
/* The data type that a Cast gives. */
cvy_status cvy_onnx_cast_type(const cvy_onnx_node *node, int64_t *out);
/* Refuses a cast that would change numbers. from: 0 or a type of real numbers, too. */
cvy_status cvy_onnx_check_cast(const cvy_onnx_node *node, int64_t from, int64_t to);
/* Refuses arithmetic of integers that real numbers would not give. */
cvy_status cvy_onnx_check_types(const cvy_onnx_node *node);
/* cvy_onnx_value.whole of what the node makes. */
int64_t cvy_onnx_result_type(const cvy_onnx_node *node);

/* ---- onnx_constant.c ---- */
/* Reads what the file says of its tensors; what that means for an initialiser: a CVY_ONNX_PARAMETER or another. */
cvy_status cvy_onnx_read_kinds(cvy_onnx *x, const Cvy__Onnx__ModelProto *file);
int cvy_onnx_kind(const cvy_onnx *x, const cvy_onnx_tensor *initializer);
/* Decides whether the variable "<layer>.<parameter>" of the layer that was added last, whose values are those of the
 * constant or made of it, is trained. */
cvy_status cvy_onnx_settle(const cvy_onnx_node *node, const char *layer, const char *parameter,
                           const cvy_onnx_tensor *t);
/* A constant of one number becomes an option: the user is told if it is a parameter. */
cvy_status cvy_onnx_settle_number(cvy_onnx *x, const cvy_onnx_tensor *t);
/* Whether a row that is added to the product with a matrix may be the bias of a layer: no other parameter by its name,
 * and no constant by its name or by what the file says. */
int cvy_onnx_may_be_bias(const cvy_onnx_tensor *t);
/* Tells the layers what is not trained, and the user which tensors are trained and which are not. */
cvy_status cvy_onnx_keep_constants(cvy_onnx *x);
/* The first of the names, and how many more there are. */
void cvy_onnx_list_some(const cvy_keys *names, cvy_text *out);
void cvy_onnx_free_kinds(cvy_onnx *x);

/* ---- onnx_fold.c ---- */
/* How often the number of samples is in a number of a shape; 0: it is not. */
int64_t cvy_onnx_batch_times(int64_t number);
/* Whether constants can go through this operator. */
int cvy_onnx_folds(const char *op);
/* Computes a node all of whose sources are constant, or Shape. CVY_NOT_APPLICABLE: it has no such sources. */
cvy_status cvy_onnx_fold(const cvy_onnx_node *node);

/* ---- onnx_transpose.c ---- */
/* Whether all that reads this input moves its last axis, the channels, to the first place of a sample. */
int cvy_onnx_is_channels_last(const cvy_onnx *x, const char *input, int ndim);

/* ---- onnx_batch.c ---- */
/* Whether the samples are not on the first axis, or share it. */
int cvy_onnx_is_moved(const cvy_onnx_value *v);
/* The length of the axis with the samples, with one sample. */
int64_t cvy_onnx_batch_dim(const cvy_onnx_batch *b);
/* Whether the same lies before and after the samples on their axis. */
int cvy_onnx_shares_alike(const cvy_onnx_batch *a, const cvy_onnx_batch *b);
/* The axis of the layer's output for another axis of a value. */
int cvy_onnx_layer_axis(const cvy_onnx_batch *b, int axis);
/* A value that has the shape of its layer's output gets that of the file. */
void cvy_onnx_move(cvy_onnx_value *v, const cvy_onnx_batch *b);
/* Prepares a node whose sources have their samples elsewhere: it reads the layers' outputs. CVY_E_UNSUPPORTED: they do
 * not fit each other, or the operator cannot be used so. */
cvy_status cvy_onnx_enter_moved(cvy_onnx_node *node);
/* The result of the node is the source with this shape in the file. */
cvy_status cvy_onnx_view(const cvy_onnx_node *node, const cvy_onnx_value *src, const cvy_shape *shape,
                         const cvy_onnx_batch *b);
cvy_status cvy_onnx_reshape_moved(const cvy_onnx_node *node, const cvy_onnx_value *src, const int64_t *to, int n);
cvy_status cvy_onnx_flatten_moved(const cvy_onnx_node *node, const cvy_onnx_value *src, int axis);
cvy_status cvy_onnx_unsqueeze_moved(const cvy_onnx_node *node, const cvy_onnx_value *src, const int64_t *axes, int n);
cvy_status cvy_onnx_squeeze_moved(const cvy_onnx_node *node, const cvy_onnx_value *src, const int64_t *axes, int n);
cvy_status cvy_onnx_transpose_moved(const cvy_onnx_node *node, const cvy_onnx_value *src, const int64_t *order);

/* ---- onnx_lrn.c ---- */
/* Absorbs nodes that are a part of a normalisation within channels. */
cvy_status cvy_onnx_find_lrn(cvy_onnx *x);
/* Translates the last node of one. CVY_NOT_APPLICABLE: the node is something else. */
cvy_status cvy_onnx_translate_lrn(const cvy_onnx_node *node);

#endif
