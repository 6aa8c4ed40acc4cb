/*
 * model_import.h: networks in the formats of other programs: the table of these formats, what is read from a file, and
 * what is written to one.
 *
 * `model: {onnx: FILE}` of a job, cvy_model_from_file(), cvy_network_open() and cvy_network_export() ask the table, and
 * name no format. A format is described in src/exchange, in a file that ends with CVY_IMPORTER_DEFINE(id). What was
 * read is printed as the layers of a job file (cvy_model_write), so that a run, its checkpoints and `convoy predict`
 * need the foreign file no more.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MODEL_IMPORT_H
#define CVY_MODEL_IMPORT_H

#include "base/text/base_option.h"
#include "base/text/base_text.h"
#include "data/data_reader.h"
#include "format/format.h"
#include "model/model.h"

/* ---- a network that was read ---- */

/* Weights that are trained in their own way: a row of the job's train.groups. */
typedef struct cvy_import_group {
    const char *match; /* pattern of names of variables */
    double lr_mult, decay_mult;
    int frozen;
} cvy_import_group;

typedef struct cvy_import {
    cvy_pool *pool;           /* owns all of it but the model */
    cvy_model *model;         /* its first input is "x" */
    cvy_tensor_entry *tensor; /* [ntensor]: values of the model's variables, f32 or f64, by our names */
    int ntensor, tensor_room;
    int x_is_bytes;          /* the file declares x as uint8 */
    int keeps_bytes;         /* x is declared as integers: bytes stay 0 to 255 */
    cvy_text notes;          /* what the user should know, a sentence a line; data NULL: nothing */
    const char *network;     /* the description that cvy_network_export() has put into the file; NULL: it has none */
    cvy_import_group *group; /* [ngroup]: of a format that has multipliers; the first that matches counts */
    int ngroup, group_room;
} cvy_import;

/* Adds a value of a variable. The name and the data are borrowed; they live in the pool. */
cvy_status cvy_import_add_tensor(cvy_import *import, const cvy_tensor_entry *tensor);
void cvy_import_free(cvy_import *import);

/* ---- a file of another program that describes a whole training ---- */

typedef struct cvy_import_job_opts {
    const char *weights;  /* a file with the first weights; NULL: those of the initialisers */
    const char *snapshot; /* a file with the state to continue from; NULL: the run begins with step 0 */
    const char *init;     /* what the text names as train.init; NULL: nothing */
    cvy_shape input;      /* of a sample of x, if the file or its data do not say it; ndim 0: not given */
} cvy_import_job_opts;

typedef struct cvy_import_job {
    cvy_text text;      /* the job as YAML, with comments on what was decided */
    cvy_text notes;     /* the same decisions, a sentence a line; data NULL: there is none */
    cvy_import import;  /* the network; its tensors are the weights, and the history of the snapshot */
    int64_t first_step; /* of the snapshot; 0: a new run */
    cvy_text absent;    /* why the data of a network could not be read, whose place generated samples take; data NULL:
                           they were read, or there are none */
} cvy_import_job;
void cvy_import_job_free(cvy_import_job *job);

/* ---- a network of ours that is written ---- */

typedef struct cvy_export_output {
    const char *name;    /* of a layer */
    cvy_scaling scaling; /* that is undone in the file; n 0: none */
} cvy_export_output;

typedef struct cvy_export {
    const cvy_tensor_entry *tensor; /* [ntensor]: values of the variables by name, f32 or f64, row-major */
    int ntensor;
    /* Of a file that has the whole network: */
    const cvy_model *model; /* only what the outputs need (cvy_model_keep); it has no losses */
    const cvy_export_output *output;
    int noutput;
    cvy_dtype x_dtype;          /* of the file's input "x": u8 or f32 */
    const cvy_value_step *step; /* [nstep]: what is done to x first */
    int nstep;
    const char *network; /* the description of the network; it is kept in the file. NULL: none */
    int64_t opset;       /* of ONNX; 0: the newest that is written */
    /* Of a file of weights alone: */
    const char *net; /* the file with its network; NULL: not given */
    cvy_shape input; /* of a sample of x */
} cvy_export;

/* ---- the formats ---- */

typedef struct cvy_importer_def {
    const char *name;    /* of the format, and the key of a job's model that names its file: {onnx: FILE} */
    const char *suffix;  /* of files that hold a network, ".onnx" */
    const char *title;   /* in messages: "an ONNX file" */
    const char *weights; /* the key of a file with the weights, which the network itself does not hold; NULL: it does */
    const char *applied; /* further keys with which a network is read that is not trained, "phase: test"; NULL: none */
    const cvy_option *options; /* the keys of a job's model; the first is the file */
    size_t options_size;
    /* Reads a network. keys: the map, for places in messages. Errors: CVY_E_IO, CVY_E_FORMAT, CVY_E_CONFIG,
     * CVY_E_UNSUPPORTED, CVY_E_SHAPE, CVY_E_MEMORY. */
    cvy_status (*read)(const cvy_tree *keys, const void *options, cvy_import *out);
    /* Makes a job of a file that describes a training. NULL: the format has no such files. */
    cvy_status (*read_job)(const char *path, const cvy_import_job_opts *opts, cvy_import_job *out);
    const char *written;     /* the suffix of files that are written, ".onnx" */
    int writes_only_weights; /* 1: they have the weights, without the network */
    /* Writes a file whole or not at all; an older one is replaced. notes: gets sentences that the user should know. */
    cvy_status (*write)(const char *path, const cvy_export *from, cvy_text *notes);
} cvy_importer_def;

#define CVY_IMPORTER_DEFINE(id) const cvy_importer_def cvy_importer_##id##_def
const cvy_importer_def *const *cvy_importer_table(int *count_out);
const cvy_importer_def *cvy_importer_find(const char *name);

/* The format of a file that is read, or of one that is written, by its suffix; NULL: it is none of them. */
const cvy_importer_def *cvy_importer_of_file(const char *path);
const cvy_importer_def *cvy_importer_of_written(const char *path);
/* The suffixes of files that are read, or written: ".onnx or .prototxt". */
cvy_label cvy_importer_suffixes(int written);

/* Reads the file that a map names, {onnx: FILE}. CVY_NOT_APPLICABLE: it names none. Errors: those of `read`, with the
 * place of the key. */
cvy_status cvy_import_read(cvy_pool *pool, const cvy_tree *keys, cvy_import *out);
/* The same for a file and the further keys, "constants: kept"; NULL: none. CVY_E_ARGUMENT: the suffix is not known. */
cvy_status cvy_import_read_file(cvy_pool *pool, const char *path, const char *options, cvy_import *out);
/* The map with which the network of a file is read to be applied. weights: NULL if the format needs none. */
cvy_status cvy_import_applied_keys(cvy_pool *pool, const char *path, const char *weights, char **text_out);

#endif
