/*
 * model.h: a network as it is described: named inputs and a list of layers, with no batch size yet.
 *
 * Before the step: job file, zoo and C API all make a cvy_model; cvy_model_instantiate() makes a graph of it for a
 * known batch, as often as needed (training, evaluation, tail batches). Layers of one name share their variables.
 */
#ifndef CVY_MODEL_H
#define CVY_MODEL_H

#include <convoy/model.h>

#include "base/base_index.h"
#include "graph/graph_op.h"

typedef struct cvy_model_input {
    char *name;
    cvy_dtype dtype;
    cvy_shape sample_shape;
} cvy_model_input;

typedef struct cvy_layer {
    const cvy_op_def *op;
    char *name;                   /* unique among layers, unless it is meant to share variables: then output names it */
    char *output;                 /* name of its output value; name by default */
    const cvy_tree *options;      /* map or NULL */
    char *from[CVY_NODE_SRC_MAX]; /* names of inputs or outputs of earlier layers */
    int nfrom;
    int training_only; /* of an auxiliary head, or behind one: graphs that do not train go without it */
} cvy_layer;

typedef struct cvy_aux_head {
    char *output;
    double weight;
} cvy_aux_head;

struct cvy_model {
    cvy_pool *pool;
    char *name;
    cvy_model_input *input;
    int ninput, input_room;
    cvy_layer *layer;
    int nlayer, layer_room;
    cvy_index layer_at;  /* places of layers by the names of their outputs */
    char *output;        /* name of the main output; the last layer that is no loss, unless set */
    cvy_aux_head aux[4]; /* further outputs that the main output's loss is trained on too, with this weight */
    int naux;
};

cvy_status cvy_model_add_tree(cvy_model *m, const cvy_op_def *op, const char *name, const cvy_tree *options,
                              const char *output, char *const *from, int nfrom);
/* The operator of a layer; an unknown one is a fault that names the nearest. */
cvy_status cvy_model_find_layer(const char *name, const cvy_op_def **out);
/* Name of the latest layer's output, for branches. */
const char *cvy_model_last(const cvy_model *m);
/* The graph of the model for a batch; wanted: names of layers or inputs whose values the caller needs (losses,
 * outputs). Real inputs take the graph's dtype. */
cvy_status cvy_model_instantiate(const cvy_model *m, cvy_vars *vars, const cvy_graph_opts *opts,
                                 const char *const *wanted, int nwanted, cvy_value **wanted_out, cvy_graph **out);

/* ---- the zoo: one family a file, CVY_MODEL_DEFINE(id) at its end ---- */
typedef struct cvy_model_ask {
    const void *options;    /* the network's own, filled from its table */
    int64_t number;         /* of a family: the N of the name */
    const cvy_shape *input; /* of a sample, [C, positions...] */
    int64_t classes;
} cvy_model_ask;

typedef struct cvy_model_def {
    const char *name, *summary,
        *source;         /* source: the paper. A name that ends in "-N" is a family: any number stands there */
    const char *numbers; /* of a family: which numbers; NULL: no family */
    const cvy_option *options;
    size_t options_size;
    const char *bench; /* options under which the studies time it, "dropout: 0"; NULL: its defaults */
    cvy_shape input;   /* default sample shape, [C, positions...] */
    int64_t classes;   /* default number of outputs */
    /* Adds the layers behind input "x", ending in `classes` raw outputs (logits); no loss. */
    cvy_status (*build)(cvy_model *m, const cvy_model_ask *ask);
} cvy_model_def;

#define CVY_MODEL_DEFINE(id) const cvy_model_def cvy_model_##id##_def
const cvy_model_def *const *cvy_model_table(int *count_out);
const cvy_model_def *cvy_model_find(const char *name);
/* The network of this name, or the family with its number ("resnet-N", 110). A fault names the nearest; whether the
 * family has the number, its build says. */
cvy_status cvy_model_resolve(const char *name, const cvy_model_def **def_out, int64_t *number_out);
/* From the job file's `model`: a zoo name, a map {name: ..., options}, or {layers: [...], inputs: {...}}; input: the
 * data's sample shape (NULL: the model's own). field: further inputs that layers may read (labels, targets, weights:
 * the data's other fields), unless `inputs` names them itself. */
cvy_status cvy_model_from_fields(const cvy_tree *tree, const cvy_shape *input, int64_t classes,
                                 const cvy_model_input *field, int nfield, cvy_model **out);

/* ---- shorthand for zoo files ---- */
/* printf-style options. */
cvy_status cvy_model_addf(cvy_model *m, const char *op, const char *name, const char *from, const char *options_fmt,
                          ...) CVY_PRINTF(5, 6);
/* A short name that lives as long as the expression it stands in. */
typedef struct cvy_label {
    char text[96];
} cvy_label;
cvy_label cvy_labelf(const char *fmt, ...) CVY_PRINTF(1, 2);
/* The latest layer, for branches that start there. */
cvy_label cvy_model_here(const cvy_model *m);
/* The layers that are added from layer `first` on are an auxiliary head, which the last of them ends. */
cvy_status cvy_model_end_aux(cvy_model *m, int first, double weight);

/* Layers from a line of text, as papers write them (model_line.c):
 *
 *     "3x3-32/2v 3x3-64 max3/2v"              one behind the other: convolutions ROWSxCOLUMNS-CHANNELS, max and avg
 * pooling; /STRIDE; padded to keep the size, or not at all with a v ("valid") "1x1-64 | 1x1-96 3x3-128 | max3 1x1-32"
 * branches from one source, joined along the channels "1x1-384 1x3-384 & 3x1-384"             & : beside the step
 * before it, from the same source
 *
 * Behind every convolution stand batch norm with the options `norm` (NULL: none, but a bias) and ReLU. Layers are
 * called NAME_STEP, or NAME_BRANCH_STEP and NAME for what is joined. from: NULL, the latest layer. */
cvy_status cvy_model_add_line(cvy_model *m, const char *name, const char *from, const char *norm, const char *line);

#endif
