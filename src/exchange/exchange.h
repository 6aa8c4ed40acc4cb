/*
 * exchange.h: the readers and writers of ONNX (onnx/) and Caffe (caffe/). The rest of the library finds them in the
 * table of model/model_import.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_EXCHANGE_H
#define CVY_EXCHANGE_H

#include "model/model_import.h"

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

enum { CVY_ONNX_OPSET_MIN = 13, CVY_ONNX_OPSET_MAX = 21 }; /* of cvy_export.opset */

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
cvy_status cvy_export_caffemodel(const char *path, const cvy_export *from, cvy_text *notes);

/**
 * cvy_caffe_read_job - make a job of a solver
 * @path: the text of a solver, or of a network; the files that it names are read, too
 * @opts: a caffemodel as weights, a solverstate as snapshot
 * @out: the job; the caller frees it with cvy_import_job_free()
 *
 * Paths are relative to the current folder, as Caffe takes them; what is not there is looked for in the folder of the
 * solver. The data are opened for the shape of their samples. A network alone whose data are not here, or are made by a
 * layer that convoy does not run, and one whose input layer has shapes, get generated samples instead; without labels
 * if the network has no loss. Errors: CVY_E_IO, CVY_E_FORMAT, CVY_E_CONFIG (a value of the solver), CVY_E_UNSUPPORTED
 * (layers that are not known, data that cannot be read, a build without protobuf-c), CVY_E_SHAPE, CVY_E_MEMORY. *out is
 * empty then.
 */
cvy_status cvy_caffe_read_job(const char *path, const cvy_import_job_opts *opts, cvy_import_job *out);

#endif
