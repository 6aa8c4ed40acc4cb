/* rows: clang asan */
/*
 * test_onnx_graphs.c: what is not supported in an ONNX file is named, and so is a damaged graph; names of layers do not
 * meet those of feeds; further inputs and outputs have the names that the messages say.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#if CVY_HAVE_PROTOBUF_C

#include <sys/stat.h>
#include <unistd.h>

#include <convoy/convoy.h>

#include "base/base_file.h"
#include "exchange/exchange.h"
#include "exchange/onnx_file.h"
#include "exchange/onnx_folder.h"
#include "job/job.h"

enum { SAMPLES = 2 };
#define SAMPLE .ndim = 3, .dim = {2, 3, 4}

static const struct {
    struct onnx_graph graph;
    const char *message; /* a part of it */
} refused[] = {
    {{SAMPLE, .node = {{"Transpose", "x", "y", "perm: 1 0 2 3"}}}, "the output y has the samples on axis 1: let"},
    {{SAMPLE, .node = {{"Transpose", "x", "y", NULL}}}, "the output y has the samples on axis 3"},
    {{SAMPLE, .node = {{"Det", "x", "y", NULL}}}, "not supported: Det (node y)"},
    {{SAMPLE, .node = {{"ReduceMean", "x", "y", NULL}}}, "needs axes"},
    {{SAMPLE, .node = {{"SplitToSequence", "x each", "s", "axis: 2"}, {"SequenceAt", "s two", "y", NULL}},
      .constant = {{"each", 1, .value = {2}}, {"two", 1, .value = {2}}}},
     "part 2 of 2 is read"},
    {{SAMPLE, .node = {{"SplitToSequence", "x each", "s", "axis: 2"}, {"Relu", "s", "y", NULL}},
      .constant = {{"each", 1, .value = {2}}}},
     "only SequenceAt"},
    {{SAMPLE, .node = {{"SplitToSequence", "x each", "s", "axis: 2"}, {"SequenceAt", "s one", "y", NULL}},
      .constant = {{"each", 1, .value = {9223372036854774784.0}}, {"one", 1, .value = {0}}}},
     "it has one part only"},
    {{SAMPLE, .node = {{"Transpose", "x", "y", "perm: 0 1 1 2"}}}, "is named twice"},
    {{SAMPLE, .node = {{"Add", "x c", "y", NULL}}, .constant = {{"c", .ndim = 1, .dim = {3}, .value = {1, 2, 3}}}},
     "a constant of shape 3 for a source 1x2x3x4"},
    {{SAMPLE, .node = {{"Div", "x c", "y", NULL}}, .constant = {{"c", .ndim = 1, .dim = {4}, .value = {1, 2, 0, 4}}}},
     "element 2 of the divisor is 0"},
    {{SAMPLE, .node = {{"Clip", "x c", "y", NULL}}, .constant = {{"c", .ndim = 1, .dim = {2}, .value = {1, 2}}}},
     "source 1 has 2 numbers"},
    {{SAMPLE, .batch = 2, .node = {{"Reshape", "x row", "r", NULL}, {"Gather", "r index", "y", "axis: 0"}},
      .constant = {{"row", 1, .ndim = 1, .dim = {1}, .value = {-1}},
                   {"index", 1, .ndim = 2, .dim = {2, 24}, .value = {0}, .step = 1, .period = 24}}},
     "entries of shape 2x24"},
    {{SAMPLE, .node = {{"Flatten", "x", "f", NULL}, {"Mul", "x f", "y", NULL}}}, "sources of 4 and 2 axes"},
    {{SAMPLE, .opset = 6, .node = {{"Mul", "x c", "y", "broadcast: 1;axis: 4"}},
      .constant = {{"c", .ndim = 1, .dim = {4}}}},
     "axis 4 with sources of 4 and 1 axes (operator set 6"},
    {{SAMPLE, .opset = 6, .node = {{"Flatten", "x", "f", NULL}, {"Mul", "x f", "y", "broadcast: 1;axis: 1"}}},
     "the samples of the second source would meet another axis"},
    {{SAMPLE, .node = {{"Add", "x x", "y", NULL}}, .type = CVY_ONNX_UINT8},
     "source 0 (x) has the data type UINT8; it is supported on real numbers only"},
    {{SAMPLE, .node = {{"Cast", "x", "y", "to: 2"}}, .type = CVY_ONNX_INT32}, "a cast from INT32 to UINT8"},
    {{SAMPLE, .node = {{"Cast", "x", "y", "to: 'STRING"}}, .opset = 5}, "to a data type that is not supported: STRING"},
    {{SAMPLE, .node = {{"Relu", "x", "y", NULL}}, .type = 8}, "has the data type 8 of ONNX"},
    {{SAMPLE, .node = {{"AveragePool", "x", "y", "kernel_shape: 2 2;dilations: 1 2"}}, .opset = 19}, "dilations 2"},
    {{SAMPLE, .node = {{"MaxPool", "x", "y", "kernel_shape: 2 2;auto_pad: 'same"}}}, "auto_pad same is not known"},
    {{SAMPLE,
      .node = {{"Pad", "x to low", "p", NULL}, {"MaxPool", "p", "y", "kernel_shape: 2 2;strides: 2 2;ceil_mode: 1"}},
      .constant = {{"to", 1, .ndim = 1, .dim = {8}, .value = {0, 0, 0, 0, 0, 0, 0, 1}}, {"low", .value = {-INFINITY}}}},
     "ceil_mode after a Pad"},
    {{SAMPLE, .node = {{"Relu", "x", "y", "alpha: =0.5"}}}, "its attribute alpha is not known"},
    {{SAMPLE, .node = {{"Pow", "c x", "y", NULL}}, .constant = {{"c", .value = {-2}}}}, "-2 to the power"},
    {{SAMPLE, .node = {{"Split", "x", "y z", "axis: 1;split: 9223372036854775807 2"}}, .opset = 11}, "part 0 has"},
    {{SAMPLE, .node = {{"Pad", "x", "y", "pads: 0 0 0 9223372036854775807 0 0 0 0"}}, .opset = 10}, "pads of"},
    {{SAMPLE, .node = {{"MaxPool", "x", "y", "kernel_shape: 9223372036854775807 1"}}}, "entry 0 of kernel_shape"},
    {{SAMPLE, .node = {{"Expand", "x to", "y", NULL}},
      .constant = {{"to", 1, .ndim = 1, .dim = {4}, .value = {1, 2, 3, 9e18}}}},
     "cannot get the length"},
    {{SAMPLE, .node = {{"Unsqueeze", "x", "y", "axes: 1 1"}}, .opset = 11}, "axis 1 is named twice"},
    {{SAMPLE, .node = {{"Resize", "x - s", "y", "coordinate_transformation_mode: 'tf_crop_and_resize"}},
      .constant = {{"s", .ndim = 1, .dim = {4}, .value = {1, 1, 2, 2}}}},
     "coordinate_transformation_mode tf_crop_and_resize with mode nearest"},
    {{SAMPLE, .node = {{"Resize", "x - s", "y", "antialias: 1;mode: 'cubic"}},
      .constant = {{"s", .ndim = 1, .dim = {4}, .value = {1, 1, 2, 2}}}},
     "antialias 1 is not supported"},
    {{SAMPLE, .node = {{"Upsample", "x", "y", "scales: =1 =2 =2 =2"}}, .opset = 7}, "axis 1 gets the size or scale 2"},
    {{SAMPLE, .node = {{"Resize", "x - s", "y", NULL}},
      .constant = {{"s", .ndim = 1, .dim = {4}, .value = {1, 1, 1e30, 1}}}},
     "a size or scale"},
    {{SAMPLE, .node = {{"ConstantOfShape", "s", "c", NULL}, {"Add", "x c", "y", NULL}},
      .constant = {{"s", 1, .ndim = 1, .dim = {2}, .value = {1 << 20, 1 << 19}}}},
     "from a file of"},
    {{SAMPLE, .node = {{"Shape", "x", "s", "end: 1"}, {"Slice", "x zero s one", "y", NULL}},
      .constant = {{"zero", 1, .ndim = 1, .dim = {1}, .value = {0}}, {"one", 1, .ndim = 1, .dim = {1}, .value = {1}}}},
     "y (Slice): it counts the samples"},
    {{SAMPLE, .node = {{"Shape", "x", "s", "end: 1"}, {"Slice", "c zero s zero", "d", NULL}, {"Add", "x d", "y", NULL}},
      .constant = {{"zero", 1, .ndim = 1, .dim = {1}, .value = {0}}, {"c", .ndim = 2, .dim = {3, 4}, .value = {1}}}},
     "d (Slice): it counts the samples"},
    {{SAMPLE, .node = {{"Shape", "x", "s", "end: 1"}, {"Cast", "s", "n", "to: 1"}, {"Div", "x n", "y", NULL}}},
     "n (Cast): it computes with the number of samples"},
    {{SAMPLE, .batch = 2,
      .node = {{"Transpose", "x", "t", "perm: 1 0 2 3"},
               {"Concat", "t c", "d", "axis: 0"},
               {"Transpose", "d", "y", "perm: 1 0 2 3"}},
      .constant = {{"c", .ndim = 4, .dim = {1, 2, 3, 4}, .value = {1}}}},
     "d (Concat): a constant of shape 1x2x3x4 beside a source that has the samples on axis 1"},
    {{SAMPLE, .node = {{"Cast", "c", "d", "to: 2"}, {"Cast", "d", "e", "to: 1"}, {"Add", "x e", "y", NULL}},
      .constant = {{"c", .ndim = 1, .dim = {4}, .value = {1, 2, -3, 4}}}},
     "a cast of the constant -3 to UINT8, which cannot hold it"},
    {{.ndim = 3, .dim = {1 << 30, 1 << 30, 2}, .node = {{"Relu", "x", "y", NULL}}}, "makes a sample too large"},
    {{SAMPLE, .node = {{"Identity", "x", "y", NULL}}}, "the output y is an input"},
};

static const struct {
    struct onnx_graph graph;
    const char *message;
} damaged[] = {
    {{SAMPLE, .node = {{"Relu", "x", "y", NULL}, {"Tanh", "x", "y", NULL}}}, "the name y stands for two values"},
    {{SAMPLE, .node = {{"Relu", "x", "x", NULL}}}, "the name x stands for two values"},
    {{SAMPLE, .node = {{"Relu", "y", "z", NULL}, {"Relu", "z", "y", NULL}}}, "reads y, which no earlier node makes"},
    {{SAMPLE, .node = {{"Relu", "x", "-", NULL}}}, "has no first output"},
    {{SAMPLE, .node = {{"Relu", "x", "z", NULL}}}, "no node makes the output y"},
    {{SAMPLE, .node = {{"Relu", "x", "y", NULL}}, .opset = -3}, "operator set -3"},
};

static void test_refused(void)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        cvy_import import = {0};
        onnx_write(&refused[i].graph, "small.onnx");
        EXPECT_FAULT(cvy_import_onnx("small.onnx", &import), CVY_E_UNSUPPORTED, refused[i].message);
        cvy_import_free(&import);
    }
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        cvy_import import = {0};
        onnx_write(&damaged[i].graph, "small.onnx");
        EXPECT_FAULT(cvy_import_onnx("small.onnx", &import), CVY_E_FORMAT, damaged[i].message);
        cvy_import_free(&import);
    }
}

/* Layers have other names than feeds of a training step and fields of data. */
static void test_names(void)
{
    static const struct onnx_graph graph = {SAMPLE, .node = {{"Relu", "x", "weight", NULL},
                                                             {"Tanh", "weight", "label", NULL},
                                                             {"Abs", "label", "weight_2", NULL},
                                                             {"Exp", "weight_2", "y", NULL}}};
    static const char *const expected[] = {"weight_2", "label_2", "weight_2_2", "y_2"};
    cvy_import import = {0};
    onnx_write(&graph, "small.onnx");
    EXPECT_OK(cvy_import_onnx("small.onnx", &import));
    EXPECT_INT(import.model ? import.model->nlayer : 0, 4);
    for (int i = 0; i < 4 && import.model; i++)
        EXPECT_TEXT(import.model->layer[i].output, expected[i]);
    cvy_import_free(&import);
}

/* The first output is that of the network; the layer of another one is named, for train.loss. */
static void test_outputs(void)
{
    static const struct onnx_graph graph = {SAMPLE, .node = {{"Tanh", "x", "aux", NULL}, {"Relu", "aux", "y", NULL}},
                                            .second = "aux"};
    cvy_import import = {0};
    onnx_write(&graph, "small.onnx");
    EXPECT_OK(cvy_import_onnx("small.onnx", &import));
    EXPECT_TEXT(import.model ? import.model->output : NULL, "y_2");
    EXPECT(
        import.notes.data &&
        strstr(
            import.notes.data,
            "the file has further outputs: aux (layer aux); the loss reads the first output, y (layer y_2), unless"));
    cvy_import_free(&import);
}

/* A network with two inputs is applied to arrays by their names. */
static void test_inputs(void)
{
    static const struct onnx_graph graph = {SAMPLE, .node = {{"Sub", "x weight", "y", NULL}}, .input = "weight"};
    static float x[SAMPLES * 24], z[SAMPLES * 24], y[SAMPLES * 24];
    const cvy_network_in in[] = {{"weight_2", CVY_DTYPE_F32, SAMPLES * 24, z, {0}},
                                 {"x", CVY_DTYPE_F32, SAMPLES * 24, x, {0}}};
    const cvy_network_out out = {NULL, CVY_DTYPE_F32, SAMPLES * 24, y};
    const char *name = NULL;
    cvy_network *network = NULL;
    for (int i = 0; i < SAMPLES * 24; i++) {
        x[i] = (float)(i % 7);
        z[i] = (float)(i % 5) / 4;
    }
    onnx_write(&graph, "small.onnx");
    EXPECT_OK(cvy_network_open(context, "small.onnx", NULL, &network));
    if (!network)
        return;
    EXPECT_OK(cvy_network_input(network, 1, &name, NULL, NULL));
    EXPECT_TEXT(name, "weight_2"); /* a training step has a feed `weight` */
    EXPECT_OK(cvy_network_apply(network, SAMPLES, in, 2, &out, 1));
    for (int i = 0; i < SAMPLES * 24; i++)
        EXPECT_NEAR(y[i], x[i] - z[i], 0);
    cvy_network_destroy(&network);
}

/* An input declared uint8 gets the bytes themselves; with other integers they are numbers as well. */
static void test_bytes(void)
{
    struct onnx_graph graph = {SAMPLE, .node = {{"Cast", "x", "r", "to: 1"}, {"Mul", "r c", "y", NULL}},
                               .constant = {{"c", .value = {0.5}}}, .type = CVY_ONNX_UINT8};
    static uint8_t bytes[SAMPLES * 24];
    static float reals[SAMPLES * 24], y[SAMPLES * 24];
    const cvy_network_in in[] = {{NULL, CVY_DTYPE_U8, SAMPLES * 24, bytes, {0}},
                                 {NULL, CVY_DTYPE_F32, SAMPLES * 24, reals, {0}}};
    const cvy_network_out out = {NULL, CVY_DTYPE_F32, SAMPLES * 24, y};
    for (int i = 0; i < SAMPLES * 24; i++) {
        bytes[i] = (uint8_t)(i * 5);
        reals[i] = (float)(i - 20);
    }
    for (int k = 0; k < 2; k++) {
        cvy_network *network = NULL;
        graph.type = k ? CVY_ONNX_INT8 : CVY_ONNX_UINT8;
        onnx_write(&graph, "small.onnx");
        EXPECT_OK(cvy_network_open(context, "small.onnx", NULL, &network));
        if (network)
            EXPECT_OK(cvy_network_apply(network, SAMPLES, &in[k], 1, &out, 1));
        for (int i = 0; i < SAMPLES * 24 && network; i++)
            EXPECT_NEAR(y[i], k ? reals[i] / 2 : bytes[i] / 2., 0);
        cvy_network_destroy(&network);
    }
}

/* A job with such a file has the operation that keeps bytes, after those of the user; one with floats has not. */
static void test_job_of_bytes(void)
{
    static const char *const text = "model: {onnx: small.onnx}\ndata: {train: none, augment: [mirror]}\n"
                                    "train: {epochs: 1, optimizer: {name: sgd, lr: 0.1}}\n";
    struct onnx_graph graph = {SAMPLE, .node = {{"Cast", "x", "r", "to: 1"}, {"Relu", "r", "y", NULL}}};
    for (int k = 0; k < 2; k++) {
        cvy_job *job = NULL;
        graph.type = k ? CVY_ONNX_UINT8 : CVY_ONNX_FLOAT;
        onnx_write(&graph, "small.onnx");
        EXPECT_OK(cvy_job_parse_text("job", text, NULL, 0, &job));
        EXPECT_INT(job ? job->data.augment->count : 0, k ? 2 : 1);
        EXPECT(!job || !k || strstr(job->import->notes.data, "bytes of pictures stay 0 to 255"));
        cvy_job_destroy(&job);
    }
}

/* Data in another file are read only below the folder of the ONNX file, and from a regular file. */
static void test_external(void)
{
    static const struct {
        const char *location, *message; /* NULL: it is read */
    } rows[] = {
        {"w.bin", NULL},
        {"./in//w.bin", NULL},
        {"up/w.bin", "up/w.bin: cannot open: its path has a symbolic link, which may lead elsewhere"},
        {"in/link", "its path has a symbolic link"},
        {"fifo", "cannot open: it is a FIFO, expected a regular file"},
        {"in", "cannot open: it is a folder, expected a regular file"},
        {"in/../w.bin", "which is not in the folder of the ONNX file"},
        {"/dev/zero", "which is not in the folder of the ONNX file"},
        {"", "which is not in the folder of the ONNX file"},
        {"short.bin", "it has 4 bytes, 8 are needed at 0"},
    };
    const float value[] = {1.5F, -2};
    char key[] = "location";
    int64_t dim[] = {2};
    Cvy__Onnx__StringStringEntryProto entry = CVY__ONNX__STRING_STRING_ENTRY_PROTO__INIT, *entries[] = {&entry};
    Cvy__Onnx__TensorProto tensor = CVY__ONNX__TENSOR_PROTO__INIT;
    cvy_pool *pool = NULL;
    EXPECT_OK(cvy_pool_create(&pool));
    EXPECT_OK(cvy_file_make_folder("ox/in"));
    EXPECT_OK(cvy_file_replace("ox/w.bin", value, sizeof value));
    EXPECT_OK(cvy_file_replace("ox/in/w.bin", value, sizeof value));
    EXPECT_OK(cvy_file_replace("ox/short.bin", value, 4));
    EXPECT(symlink(".", "ox/up") == 0 && symlink("w.bin", "ox/in/link") == 0 && mkfifo("ox/fifo", 0600) == 0);
    entry.key = key;
    tensor.name = key;
    tensor.data_type = CVY_ONNX_FLOAT;
    tensor.data_location = 1;
    tensor.dims = dim;
    tensor.n_dims = 1;
    tensor.external_data = entries;
    tensor.n_external_data = 1;
    for (int i = 0; i < CVY_COUNT(rows); i++) {
        cvy_onnx_tensor read = {0};
        entry.value = (char *)(uintptr_t)rows[i].location;
        const cvy_status status = cvy_onnx_tensor_read(pool, "ox", &tensor, &read);
        if (rows[i].message)
            EXPECT(status < 0 && strstr(cvy_error_text(), rows[i].message));
        else
            EXPECT(status == CVY_OK && ((const float *)read.data)[1] == -2);
    }
    cvy_pool_destroy(&pool);
    EXPECT_OK(cvy_file_remove_tree("ox"));
}

int main(void)
{
    enter_folder();
    TEST(test_refused);
    TEST(test_names);
    TEST(test_outputs);
    TEST(test_inputs);
    TEST(test_bytes);
    TEST(test_job_of_bytes);
    TEST(test_external);
    leave_folder();
    return test_end();
}

#else

int main(void)
{
    EXPECT_OK(CVY_OK);
    return test_end();
}

#endif
