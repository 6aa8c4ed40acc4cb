/*
 * model.h: the description of a network: named inputs and a list of layers, without a batch size.
 *
 * Before the first step, the job file, the zoo and the C API all make a cvy_model. cvy_model_instantiate() makes a
 * graph of it for a known batch, as often as needed (training, evaluation, the last smaller batch). Layers of the same
 * name share their variables.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MODEL_H
#define CVY_MODEL_H

#include <convoy/model.h>

#include "base/base_index.h"
#include "base/text/base_text.h"
#include "extension/extension.h"

typedef struct cvy_model_input {
    char *name;
    cvy_dtype dtype;
    cvy_shape sample_shape;
} cvy_model_input;

/* An application of a network that is a part of the model. */
typedef struct cvy_model_part {
    const char *network, *name;   /* of the network, and of this application of it */
    char *from[CVY_NODE_SRC_MAX]; /* names of inputs or outputs of layers before it */
    int nfrom;
} cvy_model_part;

enum { CVY_LAYER_NAME_MAX = 120 }; /* the names of its variables and nodes are longer, and have room for that */

typedef struct cvy_layer {
    const cvy_op_def *op;
    char *name;              /* unique among layers, unless layers share variables: then `output` tells them apart */
    char *output;            /* name of its output value; by default `name` */
    const cvy_tree *options; /* a map, or NULL */
    char *from[CVY_NODE_SRC_MAX]; /* names of inputs or outputs of earlier layers */
    int nfrom;
    int is_looked_through; /* 1: it makes an output whose loss reads what comes before it */
    int training_only;   /* 1: it belongs to an auxiliary head or comes after one; graphs for evaluation leave it out */
    const char *trained; /* the parameters that are trained, "weight, bias"; "": none; NULL: all of them */
    int64_t stage;       /* the stage of a pipeline on which the user wants it, from 1; 0: any stage */
    const cvy_model_part *part; /* to which it belongs, in the pool; NULL: it is the model's own */
} cvy_layer;

typedef struct cvy_aux_head {
    char *output;
    double weight;
} cvy_aux_head;

typedef struct cvy_layer_count {
    const cvy_op_def *op;
    int n;
} cvy_layer_count;

struct cvy_model {
    cvy_pool *pool;
    char *name;
    const cvy_extensions *extensions; /* of a context, whose operators layers may name; or NULL */
    cvy_model_input *input;
    int ninput, input_room;
    cvy_layer *layer;
    int nlayer, layer_room;
    cvy_layer_count *count; /* of each operator, among the first `ncounted` layers */
    int ncount, count_room, ncounted;
    cvy_index layer_at;          /* indices of layers, by the names of their outputs */
    char *output;                /* name of the main output; by default the last layer that is not a loss */
    cvy_output_kind output_kind; /* of the main output, as session_output.c has found it */
    const char *scored;  /* the layer whose numbers scores read in place of the main output: logits, or values; NULL:
                            nobody has asked yet */
    cvy_aux_head aux[4]; /* further outputs that are trained with the main output's loss, times this weight */
    int naux;
};

cvy_status cvy_model_add_tree(cvy_model *m, const cvy_op_def *op, const char *name, const cvy_tree *options,
                              const char *output, char *const *from, int nfrom);
/* Finds the operator of a layer; for an unknown one, the message has the nearest name. */
cvy_status cvy_model_find_layer(const cvy_model *m, const char *name, const cvy_op_def **out);
/* Keeps only the layers and inputs on which these outputs depend, for a network that is applied and not trained: layers
 * that only lead to a loss would ask for targets. outputs: "a, b"; NULL: the main output. Unknown names are ignored. */
cvy_status cvy_model_keep(cvy_model *m, const char *outputs);
/* Puts a layer after all others. CVY_E_CONFIG: another one reads it. */
cvy_status cvy_model_put_last(cvy_model *m, int at);
/* Whether the variable of this name belongs to the layer, and the layer says that it is not trained. */
int cvy_model_keeps(const cvy_model *m, const cvy_layer *layer, const char *variable);
/* Appends the names of the layers that lead neither to the main output nor to a loss, "a, b", and counts them. */
cvy_status cvy_model_list_unused(const cvy_model *m, cvy_text *names, int *count_out);
/* Whether a layer is a loss. */
int cvy_model_has_loss(const cvy_model *m);
/* Whether an input or the output of a layer has this name. */
int cvy_model_knows(const cvy_model *m, const char *name);
/* Name of the output of the layer that was added last. */
const char *cvy_model_last(const cvy_model *m);
/* Makes the graph of the model for a batch. wanted: names of layers or inputs whose values the caller needs (losses,
 * outputs); the graph has the layers on which they depend, or all layers if nwanted is 0. Real inputs get the graph's
 * dtype. */
cvy_status cvy_model_instantiate(const cvy_model *m, cvy_vars *vars, const cvy_graph_opts *opts,
                                 const char *const *wanted, int nwanted, cvy_value **wanted_out, cvy_graph **out);

/* A short name, returned by value, which is valid as long as the expression that contains it. */
typedef struct cvy_label {
    char text[96];
} cvy_label;

/* ---- the zoo: each family has one file, which ends with CVY_MODEL_DEFINE(id) ---- */
typedef struct cvy_model_ask {
    const void *options;    /* the network's option struct, filled by its table */
    int64_t number;         /* of a family: the N in the name */
    const cvy_shape *input; /* shape of a sample, [C, positions...] */
    int64_t classes;
} cvy_model_ask;

/* Whose names of variables a file of weights has. */
typedef enum cvy_names { CVY_NAMES_OWN, CVY_NAMES_TORCHVISION, CVY_NAMES_TIMM } cvy_names;

typedef struct cvy_model_def {
    const char *name, *summary,
        *source;         /* source: the paper. A name that ends in "-N" is a family: N may be any number */
    const char *numbers; /* of a family: which numbers are possible; NULL: not a family */
    const cvy_option *options;
    size_t options_size;
    const char *bench; /* options with which the studies time it, "dropout: 0"; NULL: its defaults */
    cvy_shape input;   /* default sample shape, [C, positions...] */
    int64_t classes;   /* default number of outputs */
    int is_map;        /* 1: it has `classes` outputs for each position of the input */
    /* Adds the layers after input "x". The last one has `classes` raw outputs (logits); there is no loss. */
    cvy_status (*build)(cvy_model *m, const cvy_model_ask *ask);
    /* The name of layer number `at`, which has variables, in torchvision or timm, "layer1.0.conv1". The error says why
     * that network computes something else. NULL: neither has the same network. */
    cvy_status (*foreign)(const cvy_model *m, cvy_names names, int at, cvy_label *out);
    const char *instead; /* without `foreign`: the network of the zoo that is torchvision's of this name; or NULL */
} cvy_model_def;

#define CVY_MODEL_DEFINE(id) const cvy_model_def cvy_model_##id##_def
const cvy_model_def *const *cvy_model_table(int *count_out);
const cvy_model_def *cvy_model_find(const char *name);
/* The network of this name, or the family and its number ("resnet-N", 110). The message of an error has the nearest
 * name. The build function of the family checks whether the family has this number. */
cvy_status cvy_model_resolve(const char *name, const cvy_model_def **def_out, int64_t *number_out);
/* The name that a variable of the model, "block1_1_a.weight", has in files of torchvision or timm,
 * "layer1.0.conv1.weight" (model_foreign.c). CVY_E_UNSUPPORTED: they have no network that computes the same. */
cvy_status cvy_model_foreign_name(const cvy_model *m, cvy_names names, const char *variable, cvy_label *out);
const char *cvy_names_text(cvy_names names);
/* For networks that timm does not have. */
cvy_status cvy_model_only_torchvision(const cvy_model *m, cvy_names names);
/* Makes a model from `model` in the job file: a zoo name, a map {name: ..., options}, or {layers: [...], inputs:
 * {...}}. input: the shape of the data's samples (NULL: the model's own). field: the data's other fields (labels,
 * targets, weights), which become inputs that layers may read, unless `inputs` has them already. extensions: those of
 * the context, or NULL. */
cvy_status cvy_model_from_fields(const cvy_tree *tree, const cvy_extensions *extensions, const cvy_shape *input,
                                 int64_t classes, const cvy_model_input *field, int nfield, cvy_model **out);

/* Writes a model as `model` of a job file (model_write.c). Auxiliary heads are written as plain layers. The tree is in
 * the pool. */
cvy_status cvy_model_write(const cvy_model *m, cvy_pool *pool, int with_inputs, cvy_tree **out);
/* Adds the list of layers of such a tree to the text of a job, a line for each: "    - relu: {name: relu1}". */
cvy_status cvy_model_add_layers(const cvy_tree *layers, cvy_text *t);

/* ---- shorthand for zoo files ---- */
/* Adds a layer; the options are printf-style. */
cvy_status cvy_model_addf(cvy_model *m, const char *op, const char *name, const char *from, const char *options_fmt,
                          ...) CVY_PRINTF(5, 6);
cvy_label cvy_labelf(const char *fmt, ...) CVY_PRINTF(1, 2);
/* The layer that was added last, for branches that start there. */
cvy_label cvy_model_here(const cvy_model *m);
/* Makes the layers from number `first` to the last one an auxiliary head, whose output is that of the last one. */
cvy_status cvy_model_end_aux(cvy_model *m, int first, double weight);

/*
 * Adds layers from a line of text, as papers write them (model_line.c):
 *
 *     "3x3-32/2v 3x3-64 max3/2v"
 *         layers one after the other: convolutions ROWSxCOLUMNS-CHANNELS, and max and avg pooling. /STRIDE may follow.
 *         Padding keeps the size; with a v ("valid") there is no padding
 *     "1x1-64 | 1x1-96 3x3-128 | max3 1x1-32"
 *         branches from one source, joined along the channels
 *     "1x1-384 1x3-384 & 3x1-384"
 *         the layer after & has the same source as the layer before &; both are joined
 *
 * After each convolution come batch norm with the options `norm` (NULL: a bias instead of batch norm) and ReLU. Layers
 * are named NAME_STEP, or with branches NAME_BRANCH_STEP, and NAME for the joined result. from: NULL: the layer that
 * was added last.
 */
cvy_status cvy_model_add_line(cvy_model *m, const char *name, const char *from, const char *norm, const char *line);

#endif
