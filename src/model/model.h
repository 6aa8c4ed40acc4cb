/*
 * model.h: a network as it is described: named inputs and a list of layers, with no batch size yet.
 *
 * Before the step: job file, zoo and C API all make a cvy_model; cvy_model_instantiate() makes a graph of it for a known batch, as often as
 * needed (training, evaluation, tail batches). Layers of one name share their variables.
 */
#ifndef CVY_MODEL_H
#define CVY_MODEL_H

#include <convoy/model.h>

#include "graph/graph_op.h"

typedef struct cvy_model_input { char *name; cvy_dtype dtype; cvy_shape sample_shape; } cvy_model_input;

typedef struct cvy_layer {
    const cvy_op_def *op;
    char *name;                        /* unique among layers, unless it is meant to share variables: then output names it */
    char *output;                      /* name of its output value; name by default */
    const cvy_tree *options;           /* map or NULL */
    char *from[CVY_NODE_SRC_MAX];      /* names of inputs or outputs of earlier layers */
    int nfrom;
} cvy_layer;

struct cvy_model {
    cvy_pool *pool;
    char *name;
    cvy_model_input *input;
    int ninput, input_room;
    cvy_layer *layer;
    int nlayer, layer_room;
    char *output;                      /* name of the main output; the last layer that is no loss, unless set */
};

/* Shorthand for zoo files: printf-style options. */
cvy_status cvy_model_addf(cvy_model *m, const char *op, const char *name, const char *from, const char *options_fmt, ...) CVY_PRINTF(5, 6);
cvy_status cvy_model_add_tree(cvy_model *m, const cvy_op_def *op, const char *name, const cvy_tree *options, const char *output, char *const *from, int nfrom);
/* The operator of a layer; an unknown one is a fault that names the nearest. */
cvy_status cvy_model_find_layer(const char *name, const cvy_op_def **out);
/* Name of the latest layer's output, for branches. */
const char *cvy_model_last(const cvy_model *m);
/* The graph of the model for a batch; wanted: names of layers or inputs whose values the caller needs (losses, outputs). Real inputs take the graph's dtype. */
cvy_status cvy_model_instantiate(const cvy_model *m, cvy_vars *vars, const cvy_graph_opts *opts, const char *const *wanted, int nwanted,
                                 cvy_value **wanted_out, cvy_graph **out);

/* ---- the zoo: one family a file, CVY_MODEL_DEFINE(id) at its end ---- */
typedef struct cvy_model_def {
    const char *name, *summary, *source;                                     /* source: the paper */
    const cvy_option *options;
    size_t options_size;
    cvy_shape input;                   /* default sample shape, [C, positions...] */
    int64_t classes;                   /* default number of outputs */
    /* Adds the layers behind input "x" of this sample shape, ending in `classes` raw outputs (logits); no loss. */
    cvy_status (*build)(cvy_model *m, const void *options, const cvy_shape *input, int64_t classes);
} cvy_model_def;

#define CVY_MODEL_DEFINE(id) const cvy_model_def cvy_model_##id##_def
const cvy_model_def *const *cvy_model_table(int *count_out);
const cvy_model_def *cvy_model_find(const char *name);
/* The same, or NULL with a fault that names the nearest. */
const cvy_model_def *cvy_model_find_or_explain(const char *name);
/* From the job file's `model`: a zoo name, a map {name: ..., options}, or {layers: [...], inputs: {...}}; input: the data's sample shape (NULL: the model's own). */
cvy_status cvy_model_from_tree(const cvy_tree *tree, const cvy_shape *input, int64_t classes, cvy_model **out);
/* The same with further inputs that layers may read (labels, targets, weights: the data's other fields), unless `inputs` names them itself. */
cvy_status cvy_model_from_fields(const cvy_tree *tree, const cvy_shape *input, int64_t classes, const cvy_model_input *field, int nfield, cvy_model **out);

#endif
