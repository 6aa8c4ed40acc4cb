/*
 * job_import.c: `model: {onnx: FILE}` and `model: {caffe: FILE}`: reads the file, and puts its layers in the place of
 * the key. From then on the job is one with `layers`, so that a run folder and its checkpoints need the file no more.
 * The values of its variables are kept: a new run begins with them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/exchange.h"
#include "job/job_table.h"

static cvy_status at_key(cvy_status status, const cvy_tree *key)
{
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s", cvy_tree_where(key));
}

/* ---- ONNX ---- */

/* Adds the operation `scale: 1` to data.augment, with which bytes are not divided by 255. */
static cvy_status keep_bytes(cvy_job *job)
{
    cvy_tree *list = NULL, *copy = NULL, **child = NULL;
    CVY_TRY(cvy_tree_parse_text(job->pool, "data.augment", "[{scale: 1}]", 12, &list));
    if (job->data.augment) {
        const int n = job->data.augment->count;
        CVY_TRY(cvy_tree_copy(job->pool, job->data.augment, &copy));
        CVY_TRY(cvy_pool_alloc(job->pool, sizeof *child * (size_t)(n + 1), &child));
        for (int i = 0; i < n; i++)
            child[i] = copy->child[i];
        child[n] = list->child[0];
        list->child = child;
        list->count = n + 1;
    }
    job->data.augment = list;
    return cvy_job_interpret_normalize(job);
}

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

static cvy_status read_onnx(cvy_job *job, const cvy_tree *file)
{
    onnx_keys keys = {0};
    CVY_CHECK(file->text && *file->text, CVY_E_CONFIG, "%s: model.onnx is the path of a file", cvy_tree_where(file));
    CVY_TRY(cvy_options_parse(job->pool, "model", onnx_rows, job->model, NULL, &keys, sizeof keys));
    CVY_TRY(at_key(cvy_import_onnx_constants(keys.onnx, (cvy_onnx_constants)keys.constants, job->import), file));
    return job->import->keeps_bytes ? keep_bytes(job) : CVY_OK;
}

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

/* The multipliers of the network are the groups of a job that has none. */
static cvy_status take_groups(cvy_job *job)
{
    const cvy_import *import = job->import;
    cvy_text text = {0};
    cvy_tree *list = NULL;
    if (job->train.ngroup > 0 || import->ngroup == 0)
        return CVY_OK;
    for (int i = 0; i < import->ngroup; i++) {
        const cvy_import_group *g = &import->group[i];
        cvy_text_add(&text, "%s{match: \"%s\"", i ? ", " : "[", g->match);
        if (g->frozen)
            cvy_text_add(&text, ", frozen: true}");
        else
            cvy_text_add(&text, ", lr_mult: %.9g, decay_mult: %.9g}", g->lr_mult, g->decay_mult);
    }
    cvy_text_add(&text, "]");
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_tree_parse_text(job->pool, job->file, text.data, text.bytes, &list);
    cvy_text_free(&text);
    CVY_TRY(status);
    job->train.groups_tree = list;
    return cvy_job_read_groups(job);
}

static cvy_status read_caffe(cvy_job *job, const cvy_tree *file)
{
    caffe_keys keys = {0};
    cvy_caffe_input input = {0};
    CVY_TRY(cvy_options_parse(job->pool, "model", caffe_rows, job->model, NULL, &keys, sizeof keys));
    cvy_caffe_opts opts = {.test = keys.test, .weights = keys.weights && *keys.weights ? keys.weights : NULL};
    if (keys.input && *keys.input) {
        CVY_TRY(at_key(cvy_shape_parse(keys.input, &input.sample), cvy_tree_get(job->model, "input")));
        opts.input = &input;
        opts.ninput = 1;
    }
    CVY_TRY(at_key(cvy_import_caffe(keys.caffe, &opts, job->import), file));
    return take_groups(job);
}

cvy_status cvy_job_read_import(cvy_job *job)
{
    const int is_map = job->model && job->model->kind == CVY_TREE_MAP;
    const cvy_tree *onnx = is_map ? cvy_tree_get(job->model, "onnx") : NULL;
    const cvy_tree *caffe = is_map ? cvy_tree_get(job->model, "caffe") : NULL;
    cvy_tree *model = NULL;
    if (!onnx && !caffe)
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *job->import, &job->import));
    CVY_TRY(onnx ? read_onnx(job, onnx) : read_caffe(job, caffe));
    CVY_TRY(cvy_model_write(job->import->model, job->pool, 1, &model));
    job->model = model;
    return CVY_OK;
}
