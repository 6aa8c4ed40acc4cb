/*
 * caffe.h: what the parts of the reader of Caffe's networks share: the blobs of a network, and the translation of a
 * layer.
 *
 * The text is read (caffe_text.c), brought into the newest form and cut to the layers of its phase (caffe_upgrade.c).
 * Then each layer is translated in the order of the text by the table of its type. What cannot be translated is noted,
 * and its readers are left out, so that one message names all such layers. Weights are read last (caffe_weights.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CAFFE_H
#define CVY_CAFFE_H

#include "exchange/caffe/caffe_def.h"
#include "exchange/caffe/caffe_file.h"
#include "exchange/caffe/caffe_upgrade.h"
#include "exchange/exchange_build.h"

/* How the numbers of a blob become those of a variable. */
typedef enum cvy_caffe_use {
    CVY_CAFFE_AS_IS,
    CVY_CAFFE_TRANSPOSED, /* a matrix */
    CVY_CAFFE_DIVIDED,    /* by the only number of the layer's blob 2: batch norm's running sums */
} cvy_caffe_use;

/* A blob of a layer that is a variable of ours. */
typedef struct cvy_caffe_param {
    const Cvy__Caffe__LayerParameter *of;
    int blob;
    cvy_caffe_use use;
    const char *layer, *parameter; /* of ours: the variable "<layer>.<parameter>" */
    int has_shape;                 /* 1: the blob has another shape than the variable, for its transposition: `shape` */
    cvy_shape shape;
} cvy_caffe_param;

typedef struct cvy_caffe_blob {
    const char *output; /* in the model; NULL: its layer was declined, or: */
    /* it is a label or a target whose shape the text does not say: the input of this name in Caffe, which is added when
     * a layer reads it; else NULL */
    const char *awaits;
} cvy_caffe_blob;

typedef struct cvy_caffe {
    cvy_build build;
    const Cvy__Caffe__NetParameter *net;
    const cvy_caffe_opts *opts;
    cvy_keys names; /* of blobs */
    cvy_caffe_blob *blob;
    int blob_room;
    int64_t batch;          /* of the first input that has one; 0: none is known */
    cvy_caffe_param *param; /* [nparam] */
    int nparam, param_room;
    cvy_keys shared;    /* names of parameters that layers may share */
    const char **owner; /* [names]: "op a b", by which a layer finds the one whose variables it shares */
    int owner_room;
    cvy_index group;    /* such keys: the number of the layer that has the variables */
    uint8_t *absorbed;  /* [layers of the network]: 1: an earlier layer does its work */
    int has_losses;     /* the network has a loss, so it is to be trained */
    double main_weight; /* of the loss that reads `main` */
    const char *main;   /* what becomes the output of the model; NULL: the last layer */
    int unnamed;        /* the number of the layer that was added last, if its name may change; -1: it may not */
    cvy_text declined;
    int ndeclined;
} cvy_caffe;

typedef struct cvy_caffe_layer {
    cvy_caffe *x;
    const Cvy__Caffe__LayerParameter *p;
    const cvy_caffe_def *def;
    size_t at;         /* in the network */
    const char *where; /* "line 12: conv1 (Convolution)" */
    const char *name;  /* for layers of ours */
} cvy_caffe_layer;

/* Notes that a layer cannot be translated, and why. */
cvy_status cvy_caffe_decline(const cvy_caffe_layer *layer, const char *fmt, ...) CVY_PRINTF(2, 3);
#define CVY_CAFFE_CHECK(ok, layer, ...)                                                                                \
    do {                                                                                                               \
        if (!(ok))                                                                                                     \
            return cvy_caffe_decline(layer, __VA_ARGS__);                                                              \
    } while (0)

/* ---- blobs ---- */
/* The value of bottom i in the model. CVY_E_FORMAT: the layer has no such bottom. */
cvy_status cvy_caffe_bottom(const cvy_caffe_layer *layer, size_t i, const char **out);
/* The same for labels or targets that are compared with `output`: an input whose shape the text does not say gets the
 * shape that fits. */
cvy_status cvy_caffe_compared(const cvy_caffe_layer *layer, size_t i, const char *output, const char **out);
/* Adds the input that a blob awaits (caffe_data.c). output: the shape of what it is compared with; NULL: it is not. */
cvy_status cvy_caffe_add_awaited(const cvy_caffe_layer *layer, const cvy_shape *output, cvy_caffe_blob *blob);
/* Its shape, with one sample. */
const cvy_shape *cvy_caffe_shape(const cvy_caffe_layer *layer, const char *output);
/* Top i is this output of the model. If it is that of the layer that was added last, the layer gets the name of the
 * Caffe layer, or of the top if there are several. */
cvy_status cvy_caffe_done(const cvy_caffe_layer *layer, size_t i, const char *output);
/* An axis that may count from the end. Declines the batch. */
cvy_status cvy_caffe_axis(const cvy_caffe_layer *layer, int64_t axis, int ndim, int *out);
/* The number of the only layer that reads what this layer makes as top 0; -1: none or several do. */
int cvy_caffe_reader(const cvy_caffe_layer *layer);

/* ---- layers of ours ---- */
typedef struct cvy_caffe_new_layer {
    const char *op, *options; /* options NULL: the defaults */
    const char *from[CVY_NODE_SRC_MAX];
    int nfrom;
} cvy_caffe_new_layer;

/* Adds a layer without variables; it is called "<layer>.<operator>" until cvy_caffe_done() names it. */
cvy_status cvy_caffe_add(const cvy_caffe_layer *layer, const cvy_caffe_new_layer *added, const char **output_out);
/* Adds a layer whose first nparam parameters are blobs of the Caffe layer. *name_out: of its variables. If other layers
 * have the same names of parameters, they share the variables. */
cvy_status cvy_caffe_add_trained(const cvy_caffe_layer *layer, const cvy_caffe_new_layer *added, int nparam,
                                 const char **name_out, const char **output_out);
/* Blob number `blob` of the layer p is the variable name.parameter. If it is trained, it has the multipliers of p's
 * param number `blob`. */
cvy_status cvy_caffe_has(const cvy_caffe_layer *layer, const Cvy__Caffe__LayerParameter *p, int blob, const char *name,
                         const char *parameter, cvy_caffe_use use);
/* The shape of the blob that cvy_caffe_has() was called for last, if it has other axes than the variable. */
void cvy_caffe_has_shape(const cvy_caffe_layer *layer, const cvy_shape *shape);
/* One layer on one source, with printf-style options; *at is its source, then its output. */
cvy_status cvy_caffe_then(const cvy_caffe_layer *layer, const char **at, const char *op, const char *fmt, ...)
    CVY_PRINTF(4, 5);
/* The numbers as options have them, "[1, 2]", in the pool. */
cvy_status cvy_caffe_list(const cvy_caffe_layer *layer, const int64_t *at, int n, const char **out);
/* The axes from `first` on, likewise. */
cvy_status cvy_caffe_axes_from(const cvy_caffe_layer *layer, int first, int ndim, const char **out);
/* One layer on bottom 0, whose output is top 0. options may be NULL. */
cvy_status cvy_caffe_simple(const cvy_caffe_layer *layer, const char *op, const char *options);

/* ---- numbers and options ---- */
#define CVY_CAFFE_REAL(value) cvy_build_decimal((double)(value))

/* What a filler fills, for those that depend on the numbers of inputs and outputs. */
typedef struct cvy_caffe_fans {
    int64_t in, out;   /* as Caffe counts them: the elements of the blob divided by its first two dimensions */
    int same;          /* 1: our variable has these numbers, too */
    int64_t first;     /* the first dimension of the blob */
    int64_t positions; /* of a filter; 1: none */
} cvy_caffe_fans;
/* Adds ", init: ..., init_options: ..." for a weight. filler NULL: there is none. */
cvy_status cvy_caffe_fill(const cvy_caffe_layer *layer, const Cvy__Caffe__FillerParameter *filler,
                          const cvy_caffe_fans *fans, cvy_text *options);
/* The number of a filler that is constant; others are declined. filler NULL: `fallback`. */
cvy_status cvy_caffe_constant(const cvy_caffe_layer *layer, const char *what, const Cvy__Caffe__FillerParameter *filler,
                              double fallback, double *out);

/**
 * cvy_caffe_net_import - translate a network
 * @path: of its file, for messages; borrowed for the call, as the network is
 * @net: in the newest form (cvy_caffe_upgrade), with the layers of one phase (cvy_caffe_select)
 * @opts, @out: as of cvy_import_caffe(); test, level and stage are not read
 */
cvy_status cvy_caffe_net_import(const char *path, const Cvy__Caffe__NetParameter *net, const cvy_caffe_opts *opts,
                                cvy_import *out);
/* Reads a network as cvy_import_caffe() does, and calls then(x, user) at the end, if that is given. */
typedef cvy_status (*cvy_caffe_then_fn)(cvy_caffe *x, void *user);
cvy_status cvy_caffe_visit(const char *path, const cvy_caffe_opts *opts, cvy_import *out, cvy_caffe_then_fn then,
                           void *user);

/* ---- caffe_weights.c ---- */
/* Reads a caffemodel into the values of x's parameters. */
cvy_status cvy_caffe_read_weights(cvy_caffe *x, const char *path);
/* Makes the groups of weights of the multipliers of all parameters. */
cvy_status cvy_caffe_make_groups(cvy_caffe *x);

#endif
