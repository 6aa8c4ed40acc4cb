/*
 * exchange_importers.c: the formats of networks, as the table of importers has them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/exchange.h"

static cvy_status at_key(cvy_status status, const cvy_tree *keys, const char *key)
{
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s", cvy_tree_where(cvy_tree_get(keys, key)));
}

/* ---- ONNX ---- */

typedef struct onnx_keys {
    const char *onnx;
    int constants;
} onnx_keys;

static const cvy_option onnx_rows[] = {
    {"onnx", CVY_TYPE_STRING, CVY_FIELD(onnx_keys, onnx), NULL, "", "", "a network in an ONNX file"},
    {"constants", CVY_TYPE_CHOICE, CVY_FIELD(onnx_keys, constants), "auto", "auto|kept|trained", "",
     "which of its constants are trained"},
    {0},
};

static cvy_status read_onnx(const cvy_tree *keys, const void *options, cvy_import *out)
{
    const onnx_keys *o = options;
    return at_key(cvy_import_onnx_constants(o->onnx, (cvy_onnx_constants)o->constants, out), keys, "onnx");
}

static cvy_status write_onnx(const char *path, const cvy_export *from, cvy_text *notes)
{
    (void)notes;
    return cvy_export_onnx(path, from);
}

CVY_IMPORTER_DEFINE(onnx) = {
    .name = "onnx",
    .suffix = ".onnx",
    .title = "an ONNX file",
    .options = onnx_rows,
    .options_size = sizeof(onnx_keys),
    .read = read_onnx,
    .written = ".onnx",
    .write = write_onnx,
};

/* ---- Caffe ---- */

typedef struct caffe_keys {
    const char *caffe, *weights, *input;
    int test;
} caffe_keys;

static const cvy_option caffe_rows[] = {
    {"caffe", CVY_TYPE_STRING, CVY_FIELD(caffe_keys, caffe), NULL, "", "", "a network of Caffe: a text"},
    {"weights", CVY_TYPE_STRING, CVY_FIELD(caffe_keys, weights), "", "", "", "a caffemodel: the first weights"},
    {"input", CVY_TYPE_STRING, CVY_FIELD(caffe_keys, input), "", "", "",
     "shape of a sample, such as 3x32x32, if the text does not say it"},
    {"phase", CVY_TYPE_CHOICE, CVY_FIELD(caffe_keys, test), "train", "train|test", "", "whose layers are taken"},
    {0},
};

static cvy_status read_caffe(const cvy_tree *keys, const void *options, cvy_import *out)
{
    const caffe_keys *o = options;
    cvy_caffe_input input = {0};
    cvy_caffe_opts opts = {.test = o->test, .weights = o->weights && *o->weights ? o->weights : NULL};
    if (o->input && *o->input) {
        CVY_TRY(at_key(cvy_shape_parse(o->input, &input.sample), keys, "input"));
        opts.input = &input;
        opts.ninput = 1;
    }
    return at_key(cvy_import_caffe(o->caffe, &opts, out), keys, "caffe");
}

static cvy_status write_caffemodel(const char *path, const cvy_export *from, cvy_text *notes)
{
    CVY_CHECK(from->net, CVY_E_ARGUMENT, "%s: a caffemodel has the layers of a network of Caffe: give its text, too",
              path);
    return cvy_export_caffemodel(path, from, notes);
}

CVY_IMPORTER_DEFINE(caffe) = {
    .name = "caffe",
    .suffix = ".prototxt",
    .title = "a network of Caffe",
    .weights = "weights",
    .applied = "phase: test",
    .options = caffe_rows,
    .options_size = sizeof(caffe_keys),
    .read = read_caffe,
    .read_job = cvy_caffe_read_job,
    .written = ".caffemodel",
    .writes_only_weights = 1,
    .write = write_caffemodel,
};
