/*
 * fuzz_caffe.c: fuzzes networks of Caffe with their weights. The input is cut in two files (fuzz_files.h): a text and a
 * caffemodel, which may be missing. The text is read as a solver, too. A network that is accepted must have an output,
 * and values for its own variables only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fuzz_files.h"

#include "exchange/caffe/caffe_file.h"
#include "exchange/exchange.h"

static char text_path[512], model_path[512];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    fuzz_make_folder();
    snprintf(text_path, sizeof text_path, "%s/net.prototxt", fuzz_folder);
    snprintf(model_path, sizeof model_path, "%s/net.caffemodel", fuzz_folder);
    return 0;
}

static void check_status(cvy_status status)
{
    if (status < CVY_OK && !cvy_error_text()[0])
        abort();
}

static void read_network(int test)
{
    const int has_model = access(model_path, R_OK) == 0;
    cvy_import in = {0};
    const cvy_status status =
        cvy_import_caffe(text_path, &(cvy_caffe_opts){.test = test, .weights = has_model ? model_path : NULL}, &in);
    check_status(status);
    if (status == CVY_OK && (!in.model || in.model->ninput == 0 || in.model->nlayer == 0))
        abort();
    for (int i = 0; i < in.ntensor; i++)
        if (!in.tensor[i].name || !in.tensor[i].data || cvy_shape_elems(&in.tensor[i].shape) < 1)
            abort();
    cvy_import_free(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const files[] = {"net.prototxt", "net.caffemodel", NULL};
    cvy_caffe_file file = {0};
    fuzz_put_files(files, data, size);
    check_status(cvy_caffe_text_read(text_path, &cvy__caffe__solver_parameter__descriptor, &file));
    cvy_caffe_file_free(&file);
    read_network(0);
    read_network(1);
    return 0;
}
