/*
 * fuzz_onnx.c: fuzzes the reader of ONNX files. A file that is accepted must give a network whose output is one of its
 * layers, whose tensors have names, shapes and data, and which can be written as a part of a job file. A file that is
 * refused must leave nothing, and say why. After the cut of fuzz_files.h comes a file with data of tensors, data.bin.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/exchange.h"
#include "fuzz_files.h"

static void check(const cvy_import *in)
{
    cvy_pool *pool = NULL;
    cvy_tree *tree = NULL;
    double sum = 0;
    if (!in->model || in->model->nlayer < 1 || in->model->ninput < 1 || !in->model->output)
        abort();
    if (cvy_index_find(&in->model->layer_at, in->model->output) < 0)
        abort();
    for (int i = 0; i < in->ntensor; i++) {
        const cvy_tensor_entry *t = &in->tensor[i];
        const int64_t elems = cvy_shape_elems(&t->shape);
        if (!t->name || elems < 1 || (t->dtype != CVY_DTYPE_F32 && t->dtype != CVY_DTYPE_F64))
            abort();
        for (int64_t k = 0; k < elems; k++)
            sum += t->dtype == CVY_DTYPE_F32 ? (double)((const float *)t->data)[k] : ((const double *)t->data)[k];
    }
    if (cvy_pool_create(&pool) != CVY_OK)
        return;
    if (cvy_model_write(in->model, pool, 1, &tree) != CVY_OK || (sum == 0.125 && !tree))
        abort();
    cvy_pool_destroy(&pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[FUZZ_FILES + 1] = {"net.onnx", "data.bin"};
    const int64_t held = cvy_memory_bytes();
    cvy_import in = {0};
    char path[512];
    if (!*fuzz_folder)
        fuzz_make_folder();
    fuzz_put_files(names, data, size);
    snprintf(path, sizeof path, "%s/net.onnx", fuzz_folder);
    const cvy_status status = cvy_import_onnx(path, &in);
    if (status == CVY_OK)
        check(&in);
    else if (!cvy_error_text()[0])
        abort();
    cvy_import_free(&in);
    if (cvy_memory_bytes() != held)
        abort();
    return 0;
}
