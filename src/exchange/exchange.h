/*
 * exchange.h: networks in the formats of others, as layers of ours, and networks of ours in these formats.
 *
 * A reader of a format (onnx/, caffe/) makes a cvy_import: a model, and the values of its variables. The model is
 * printed as the layers of a job file (cvy_model_print), so that a run, its checkpoints and `convoy predict` need the
 * foreign file no more.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_EXCHANGE_H
#define CVY_EXCHANGE_H

#include "base/text/base_text.h"
#include "data/data_reader.h"
#include "format/format.h"
#include "model/model.h"

/* Weights that are trained in their own way: a row of the job's train.groups. */
typedef struct cvy_import_group {
    const char *match; /* pattern of names of variables */
    double lr_mult, decay_mult;
    int frozen;
} cvy_import_group;

/* A network that was read. */
typedef struct cvy_import {
    cvy_pool *pool;           /* owns all of it but the model */
    cvy_model *model;         /* its first input is "x" */
    cvy_tensor_entry *tensor; /* [ntensor]: values of the model's variables, f32 or f64, by our names */
    int ntensor, tensor_room;
    int x_is_bytes;          /* the file declares x as uint8 */
    int keeps_bytes;         /* x is declared as integers: bytes stay 0 to 255 */
    cvy_text notes;          /* what the user should know, a sentence a line; data NULL: nothing */
    const char *network;     /* the description that cvy_export_onnx() was given; NULL: the file has none */
    cvy_import_group *group; /* [ngroup]: of a format that has multipliers; the first that matches counts */
    int ngroup, group_room;
} cvy_import;

/* Adds a value of a variable. The name and the data are borrowed; they live in the pool. */
cvy_status cvy_import_add_tensor(cvy_import *import, const cvy_tensor_entry *tensor);
void cvy_import_free(cvy_import *import);

/**
 * cvy_import_onnx - read an ONNX file
 * @path: the file; data in files beside it are read, too
 * @out: the network; the caller frees it with cvy_import_free()
 *
 * The batch is free, whatever the file says. Errors: CVY_E_IO, CVY_E_FORMAT (no ONNX file, damaged, data outside of its
 * folder), CVY_E_UNSUPPORTED (all operators that are not known, with their nodes; a dimension other than the batch that
 * is free), CVY_E_SHAPE, CVY_E_MEMORY.
 */
cvy_status cvy_import_onnx(const char *path, cvy_import *out);
/* Which constants of a file are trained (onnx_constant.c): what the file says, or its names and the places of tensors
 * if it says nothing; weights of layers only; or all of them. cvy_import_onnx() takes the first. */
typedef enum { CVY_ONNX_CONSTANTS_AUTO, CVY_ONNX_CONSTANTS_KEPT, CVY_ONNX_CONSTANTS_TRAINED } cvy_onnx_constants;
cvy_status cvy_import_onnx_constants(const char *path, cvy_onnx_constants constants, cvy_import *out);

/* The state of a Caffe network, which selects its layers, and what its text does not say. */
typedef struct cvy_caffe_input {
    const char *top; /* of a data layer or an Input layer; NULL: the first one of the network */
    cvy_shape sample;
} cvy_caffe_input;

typedef struct cvy_caffe_opts {
    int test; /* 1: phase TEST, 0: TRAIN */
    int level;
    const char *const *stage; /* [nstage] */
    int nstage;
    const cvy_caffe_input *input; /* [ninput]: shapes of samples; they go before those of the text */
    int ninput;
    const char *weights; /* a caffemodel; NULL: none */
} cvy_caffe_opts;

/**
 * cvy_import_caffe - read a network of Caffe
 * @path: a text of a NetParameter, of any version
 * @opts: {0}: the network for training, without weights
 * @out: the network; the caller frees it with cvy_import_free()
 *
 * The first top of the first data layer is the input "x"; integer labels are "label", and other tops that only losses
 * read "y". Batch sizes are ignored. Multipliers of learning rates and of weight decay become out->group, for a job
 * whose weight decay applies to all variables. Errors: CVY_E_IO; CVY_E_FORMAT (no such text, with its line; a damaged
 * caffemodel); CVY_E_UNSUPPORTED (all layers that are not supported, with their lines; the text does not say the shape
 * of the input); CVY_E_SHAPE (blobs that do not fit, a caffemodel of another network); CVY_E_MEMORY.
 */
cvy_status cvy_import_caffe(const char *path, const cvy_caffe_opts *opts, cvy_import *out);

/* A network of ours that is written. */
typedef struct cvy_export_output {
    const char *name;    /* of a layer */
    cvy_scaling scaling; /* that is undone in the file; n 0: none */
} cvy_export_output;

typedef struct cvy_export {
    const cvy_model *model; /* only what the outputs need (cvy_model_keep); it has no losses */
    const cvy_export_output *output;
    int noutput;
    const cvy_tensor_entry *tensor; /* [ntensor]: values of the variables by name, f32 or f64, row-major */
    int ntensor;
    cvy_dtype x_dtype;          /* of the file's input "x": u8 or f32 */
    const cvy_value_step *step; /* [nstep]: what is done to x first */
    int nstep;
    const char *network; /* the description of the network; it is kept in the file. NULL: none */
    int64_t opset;       /* CVY_ONNX_OPSET_MIN to CVY_ONNX_OPSET_MAX */
} cvy_export;
enum { CVY_ONNX_OPSET_MIN = 13, CVY_ONNX_OPSET_MAX = 21 };

/**
 * cvy_export_onnx - write a network as an ONNX file
 * @path: the file, which is written whole or not at all; an older one is replaced
 * @from: the network; all is borrowed for the call
 *
 * The file computes what a graph for evaluation computes, in f32: dropout is left out, batch norm uses the running
 * statistics. The inputs are those of the model, with a free first dimension "N". The initialisers have the names of
 * the variables, so cvy_import_onnx() gives them the same names. What is done to x, and to outputs in units of the
 * target, is inside; cvy_import_onnx() leaves these nodes out again, because the job's data section does the same.
 * Errors: CVY_E_UNSUPPORTED (an operator that has no ONNX form, with its layer; more than 2 GiB), CVY_E_ARGUMENT (the
 * operator set), CVY_E_IO, CVY_E_MEMORY.
 */
cvy_status cvy_export_onnx(const char *path, const cvy_export *from);

/* Weights that are written for a network of Caffe. */
typedef struct cvy_export_caffe {
    const char *net;                /* its text; the layers of phase TRAIN */
    cvy_shape input;                /* of a sample of x */
    const cvy_tensor_entry *tensor; /* [ntensor]: values of the variables by name, f32 or f64, row-major */
    int ntensor;
} cvy_export_caffe;

/**
 * cvy_export_caffemodel - write weights as a caffemodel
 * @path: the file, which is written whole or not at all; an older one is replaced
 * @from: the network of Caffe and the values of its variables, by the names that cvy_import_caffe() gives them
 * @notes: gets a sentence for each layer whose variables have no values; it is left out
 *
 * The file has the names, types and blobs of the layers with weights. Errors: those of cvy_import_caffe();
 * CVY_E_SHAPE (a variable has another shape in the network of Caffe, or none has values), CVY_E_UNSUPPORTED (more than
 * 2 GiB), CVY_E_IO.
 */
cvy_status cvy_export_caffemodel(const char *path, const cvy_export_caffe *from, cvy_text *notes);

#endif
