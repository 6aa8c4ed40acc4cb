/*
 * test_onnx_export.c: an ONNX file gives back the layers and the values of the variables that it was written from; no
 * allocation that fails leaves memory or a file behind; values that are missing or have another shape are named.
 *
 * tests/exchange/onnx_export.sh has the same for whole runs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <stdlib.h>
#include <unistd.h>

#include "base/base_file.h"
#include "exchange/exchange.h"
#include "graph/graph_op.h"
#include "test_util.h"

enum { TENSORS = 32 };
static const char file[] = "net.onnx";
static cvy_model *model;
static cvy_tensor_entry tensor[TENSORS];
static cvy_export export;
static const double means[] = {1, -2, 0.5, 3}, stds[] = {2, 0.25, 1, 8};
static const cvy_export_output output = {"last", {.n = 4, .mean = means, .std = stds}};
static double shifts[] = {1, 2}, factors[] = {3, 4};
static const cvy_value_step step = {CVY_CURVE_AFFINE, 2, shifts, factors};

static void add(const char *op, const char *name, const char *options, const char *from)
{
    EXPECT_OK(cvy_model_add(model, op, name, options, from));
}

/* The variables of the model with numbers that differ from each other. */
static void make_values(void)
{
    const cvy_graph_opts one = {
        .name = "values", .batch = {.global_n = 1, .local_n = 1, .nranks = 1}, .dtype = CVY_DTYPE_F32, .bn_group = 1};
    const char *const wanted[] = {"last"};
    cvy_vars *vars = NULL;
    cvy_graph *graph = NULL;
    cvy_value *value = NULL;
    EXPECT_OK(cvy_vars_create(&vars));
    EXPECT_OK(cvy_model_instantiate(model, vars, &one, wanted, 1, &value, &graph));
    for (int i = 0; i < vars->count && i < TENSORS; i++) {
        const int64_t n = cvy_shape_elems(&vars->at[i]->shape);
        float *data = malloc(sizeof *data * (size_t)n);
        for (int64_t k = 0; k < n; k++)
            data[k] = (float)(i + 1) + (float)k / 64;
        tensor[i] = (cvy_tensor_entry){strdup(vars->at[i]->name), CVY_DTYPE_F32, vars->at[i]->shape, data};
    }
    export.ntensor = vars->count;
    cvy_graph_destroy(&graph);
    cvy_vars_destroy(&vars);
}

static void set_up(void)
{
    EXPECT_OK(cvy_model_create("small", &model));
    EXPECT_OK(cvy_model_add_input(model, "x", CVY_DTYPE_F32, &(cvy_shape){3, {2, 6, 5}}));
    add("conv", "first", "channels: 4, kernel: 3, pad: 1, bias: false", "x");
    add("batch_norm", "norm1", "eps: 0.001, momentum: 0.3", NULL);
    add("prelu", "slopes", "per_channel: true", NULL);
    add("layer_norm", "norm2", NULL, NULL);
    add("max_pool", "pool", "kernel: 2", NULL);
    add("dropout", "drop", NULL, NULL);
    add("fc", "last", "channels: 4", NULL);
    make_values();
    export.model = model;
    export.output = &output;
    export.noutput = 1;
    export.tensor = tensor;
    export.x_dtype = CVY_DTYPE_U8;
    export.step = &step;
    export.nstep = 1;
    export.network = "{\"about\": \"this network\"}";
    export.opset = 21;
}

static const cvy_tensor_entry *find(const cvy_import *in, const char *name)
{
    for (int i = 0; i < in->ntensor; i++)
        if (strcmp(in->tensor[i].name, name) == 0)
            return &in->tensor[i];
    return NULL;
}

static void same_network_is_read_back(void)
{
    static const char *const op[] = {"conv", "batch_norm", "prelu", "layer_norm", "max_pool", "reshape", "fc"};
    for (export.opset = CVY_ONNX_OPSET_MAX; export.opset >= 17; export.opset--) {
        cvy_import in = {0};
        EXPECT_OK(cvy_export_onnx(file, &export));
        EXPECT_OK(cvy_import_onnx(file, &in));
        EXPECT_TEXT(in.network, export.network);
        EXPECT_TEXT(cvy_model_output(in.model), "last");
        EXPECT_INT(in.model->nlayer, CVY_COUNT(op));
        for (int i = 0; i < in.model->nlayer && i < CVY_COUNT(op); i++)
            EXPECT_TEXT(in.model->layer[i].op->name, op[i]);
        EXPECT_INT(in.ntensor, export.ntensor);
        for (int i = 0; i < export.ntensor; i++) {
            const cvy_tensor_entry *got = find(&in, tensor[i].name);
            EXPECT(got && cvy_shape_equal(&got->shape, &tensor[i].shape) &&
                   memcmp(got->data, tensor[i].data, sizeof(float) * (size_t)cvy_shape_elems(&got->shape)) == 0);
        }
        cvy_import_free(&in);
    }
    export.opset = CVY_ONNX_OPSET_MAX;
}

/* Through the C API: the model of the file, and a program that begins with its weights. */
static void program_of_the_file(void)
{
    cvy_context *one = NULL;
    cvy_model *read = NULL;
    cvy_program *p = NULL;
    const cvy_tensor_entry *w = &tensor[0];
    float got[4 * 2 * 3 * 3] = {0};
    int task = 0;
    EXPECT_OK(cvy_export_onnx(file, &export));
    EXPECT_OK(cvy_model_from_file(file, NULL, &read));
    EXPECT_OK(cvy_context_create(NULL, &one));
    EXPECT_OK(cvy_program_create(one, NULL, &p));
    EXPECT_OK(cvy_program_add_forward(p, read, 1, NULL, &task));
    EXPECT_OK(cvy_program_plan(p));
    EXPECT_OK(cvy_program_load(p, file));
    EXPECT_OK(cvy_program_get(p, w->name, got, CVY_COUNT(got)));
    EXPECT(memcmp(got, w->data, sizeof got) == 0);
    cvy_program_destroy(&p);
    cvy_context_destroy(&one);
    cvy_model_destroy(&read);
    EXPECT_FAULT(cvy_model_from_file(file, "constants: some", &read), CVY_E_CONFIG, "auto");
    EXPECT_FAULT(cvy_model_from_file("net.pb", NULL, &read), CVY_E_ARGUMENT, ".onnx");
    EXPECT(!read);
}

static cvy_status read_back(void)
{
    cvy_import in = {0};
    const cvy_status status = cvy_import_onnx(file, &in);
    cvy_import_free(&in);
    return status;
}

static void no_memory(void)
{
    const int64_t held = cvy_memory_bytes();
    EXPECT_SURVIVES_NO_MEMORY(cvy_export_onnx(file, &export));
    EXPECT_INT(cvy_memory_bytes(), held);
    EXPECT_SURVIVES_NO_MEMORY(read_back());
    EXPECT_INT(cvy_memory_bytes(), held);
}

static void faults_are_named(void)
{
    const cvy_tensor_entry whole = tensor[0];
    unlink(file);
    export.ntensor--;
    EXPECT_FAULT(cvy_export_onnx(file, &export), CVY_E_ARGUMENT, "no values are given for the variable last.bias");
    export.ntensor++;
    tensor[0].shape.dim[0]++;
    EXPECT_FAULT(cvy_export_onnx(file, &export), CVY_E_SHAPE, "variable first.weight is 5x2x3x3 of f32");
    tensor[0] = whole;
    export.opset = 9;
    EXPECT_FAULT(cvy_export_onnx(file, &export), CVY_E_ARGUMENT, "operator set 9 of ONNX is not offered");
    export.opset = CVY_ONNX_OPSET_MAX;
    EXPECT_FAULT(cvy_export_onnx("no-folder/net.onnx", &export), CVY_E_IO, "no-folder");
    EXPECT(!cvy_file_exists(file));
}

int main(void)
{
    char folder[] = "/tmp/convoy-onnx-XXXXXX";
    if (!CVY_HAVE_PROTOBUF_C) {
        EXPECT_FAULT(cvy_export_onnx(file, &export), CVY_E_UNSUPPORTED, "build it with protobuf-c");
        return test_end();
    }
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return 1;
    set_up();
    TEST(same_network_is_read_back);
    TEST(program_of_the_file);
    TEST(no_memory);
    TEST(faults_are_named);
    for (int i = 0; i < export.ntensor; i++) {
        free((void *)(uintptr_t)tensor[i].name);
        free((void *)(uintptr_t)tensor[i].data);
    }
    cvy_model_destroy(&model);
    if (chdir("/") != 0 || cvy_file_remove_tree(folder) != CVY_OK)
        return 1;
    return test_end();
}
