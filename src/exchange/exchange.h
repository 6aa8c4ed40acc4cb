/*
 * exchange.h: networks in the formats of others, as layers of ours.
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
#include "format/format.h"
#include "model/model.h"

/* A network that was read. */
typedef struct cvy_import {
    cvy_pool *pool;           /* owns all of it but the model */
    cvy_model *model;         /* its first input is "x" */
    cvy_tensor_entry *tensor; /* [ntensor]: values of the model's variables, f32 or f64, by our names */
    int ntensor, tensor_room;
    cvy_text notes; /* what the user should know, a sentence a line; data NULL: nothing */
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

#endif
