/* rows: clang asan */
/*
 * test_caffe_weights.c: caffemodels of all versions give the same values; what does not fit is named, and nothing is
 * half loaded. Old data layers are upgraded; phases, stages and levels select layers; layers with the same names of
 * parameters share variables.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#if CVY_HAVE_PROTOBUF_C

#include "caffe_text.h"
#include "exchange/caffe/caffe_upgrade.h"
#include "exchange/exchange.h"

static const char net[] = "blobs.prototxt", model[] = "blobs.caffemodel";

static const cvy_tensor_entry *find(const cvy_import *in, const char *name)
{
    for (int i = 0; i < in->ntensor; i++)
        if (strcmp(in->tensor[i].name, name) == 0)
            return &in->tensor[i];
    return NULL;
}

static double value(const cvy_import *in, const char *name, int i)
{
    const cvy_tensor_entry *t = find(in, name);
    return !t ? NAN : t->dtype == CVY_DTYPE_F64 ? ((const double *)t->data)[i] : (double)((const float *)t->data)[i];
}

static cvy_status import(cvy_import *in)
{
    return cvy_import_caffe(net, &(cvy_caffe_opts){.test = 1, .weights = model}, in);
}

static const char two_layers[] = "input: 'data' input_dim: 1 input_dim: 2 input_dim: 1 input_dim: 1\n"
                                 "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c' convolution_param { "
                                 "num_output: 3 kernel_size: 1 } }\n"
                                 "layer { name: 'ip' type: 'InnerProduct' bottom: 'c' top: 'ip' inner_product_param { "
                                 "num_output: 1 bias_term: false } }\n";

/* V1 and new layers; old dimensions and shapes; f32 and f64. */
static void models_of_all_versions_are_read(void)
{
    static const char *const models[] = {
        "layer { name: 'c' blobs { shape { dim: [3, 2, 1, 1] } data: [1, 2, 3, 4, 5, 6] } blobs { shape { dim: 3 } "
        "data: "
        "[7, 8, 9] } } layer { name: 'ip' blobs { shape { dim: [1, 3] } data: [-1, -2, -3] } }",
        "layers { name: 'c' type: CONVOLUTION blobs { num: 3 channels: 2 height: 1 width: 1 data: [1, 2, 3, 4, 5, 6] } "
        "blobs "
        "{ num: 1 channels: 1 height: 1 width: 3 data: [7, 8, 9] } } layers { name: 'ip' type: INNER_PRODUCT blobs { "
        "num: 1 "
        "channels: 1 height: 1 width: 3 data: [-1, -2, -3] } }",
        "layer { name: 'c' blobs { shape { dim: [3, 2, 1, 1] } double_data: [1, 2, 3, 4, 5, 6] } blobs { shape { dim: "
        "3 } "
        "double_data: [7, 8, 9] } } layer { name: 'ip' blobs { shape { dim: [1, 3] } double_data: [-1, -2, -3] } }",
    };
    caffe_put_text(net, two_layers);
    for (int i = 0; i < CVY_COUNT(models); i++) {
        cvy_import in = {0};
        caffe_put_model(model, models[i], 0);
        EXPECT_OK(import(&in));
        EXPECT_INT(in.ntensor, 3);
        for (int k = 0; k < 6; k++)
            EXPECT_NEAR(value(&in, "c.weight", k), k + 1, 0);
        for (int k = 0; k < 3; k++) {
            EXPECT_NEAR(value(&in, "c.bias", k), k + 7, 0);
            EXPECT_NEAR(value(&in, "ip.weight", k), -k - 1, 0);
        }
        EXPECT(in.notes.bytes == 0);
        cvy_import_free(&in);
    }
}

/* A new head keeps its filler, and the head of the file is left out; both are said. */
static void a_new_head_is_noted(void)
{
    cvy_import in = {0};
    caffe_put_text(net, two_layers);
    caffe_put_model(
        model,
        "layer { name: 'c' blobs { shape { dim: [3, 2, 1, 1] } data: [1, 2, 3, 4, 5, 6] } blobs { shape { dim: 3 "
        "} data: [7, 8, 9] } } layer { name: 'old' blobs { data: 1 shape { dim: 1 } } }",
        0);
    EXPECT_OK(import(&in));
    EXPECT_INT(in.ntensor, 2);
    EXPECT(in.notes.data &&
           strstr(in.notes.data, "blobs.caffemodel has 1 of the 2 layers with weights; these begin with "
                                 "their fillers: ip\n"));
    EXPECT(in.notes.data &&
           strstr(in.notes.data, "layers of blobs.caffemodel that the network does not have are left out: "
                                 "old\n"));
    cvy_import_free(&in);
}

static const struct {
    const char *model;
    size_t cut;
    cvy_status code;
    const char *message; /* a part of it */
} refused[] = {
    {"layer { name: 'c' blobs { shape { dim: [2, 3, 1, 1] } data: [1, 2, 3, 4, 5, 6] } }", 0, CVY_E_SHAPE,
     "blobs.caffemodel: blob 0 of layer c is 2x3, but c.weight of the network is 3x2x1x1; to train the layer from its "
     "filler, "
     "give it another name"},
    {"layer { name: 'c' blobs { shape { dim: [3, 2, 1, 1] } data: [1, 2, 3, 4, 5] } }", 0, CVY_E_FORMAT,
     "layer c has a blob of 6 elements with 5 values"},
    {"layer { name: 'c' blobs { shape { dim: [3, 2, 1, 1] } data: [1, 2, 3, 4, 5, 6] } }", 0, CVY_E_SHAPE,
     "layer c has 1 blobs, but the network needs blob 1, which is c.bias"},
    {"layer { name: 'c' blobs { shape { dim: [1099511627776, 1099511627776] } data: 1 } }", 0, CVY_E_FORMAT,
     "layer c has a blob with the dimension 1099511627776"},
    {"layer { name: 'c' blobs { shape { dim: -1 } data: 1 } }", 0, CVY_E_FORMAT, "a blob with the dimension -1"},
    {"layer { name: 'conv1' blobs { shape { dim: 1 } data: 1 } } layer { name: 'conv2' blobs { shape { dim: 1 } data: "
     "1 } }",
     0, CVY_E_SHAPE,
     "blobs.caffemodel is of another network: of the 2 layers of blobs.prototxt with weights it has none (c, ip); it "
     "has "
     "conv1, "
     "conv2"},
    {"name: 'empty'", 0, CVY_E_SHAPE, "it has no weights"},
    {"layer { name: 'c' blobs { shape { dim: [3, 2, 1, 1] } data: [1, 2, 3, 4, 5, 6] } }", 3, CVY_E_FORMAT,
     "blobs.caffemodel is no binary NetParameter of Caffe, or it is truncated"},
};

static void what_does_not_fit_is_named(void)
{
    caffe_put_text(net, two_layers);
    for (int i = 0; i < CVY_COUNT(refused); i++) {
        cvy_import in = {0};
        caffe_put_model(model, refused[i].model, refused[i].cut);
        EXPECT_FAULT(import(&in), refused[i].code, refused[i].message);
        EXPECT(!in.model && !in.pool && !in.tensor);
    }
    cvy_import in = {0};
    EXPECT_FAULT(cvy_import_caffe(net, &(cvy_caffe_opts){.weights = "none.caffemodel"}, &in), CVY_E_IO,
                 "none.caffemodel");
    EXPECT_FAULT(cvy_import_caffe("none.prototxt", &(cvy_caffe_opts){0}, &in), CVY_E_IO, "none.prototxt");
}

static cvy_status import_and_free(void)
{
    cvy_import in = {0};
    const cvy_status status = import(&in);
    cvy_import_free(&in);
    return status;
}

static void missing_memory_is_reported(void)
{
    caffe_put_text(net, two_layers);
    caffe_put_model(
        model,
        "layers { name: 'c' blobs { num: 3 channels: 2 height: 1 width: 1 data: [1, 2, 3, 4, 5, 6] } blobs "
        "{ num: 1 channels: 1 height: 1 width: 3 data: [7, 8, 9] } } layers { name: 'o' blobs { data: 1 num: "
        "1 channels: 1 height: 1 width: 1 } }",
        0);
    cvy_text_free(&caffe_net);
    const int64_t held = cvy_memory_bytes();
    EXPECT_SURVIVES_NO_MEMORY(import_and_free());
    EXPECT_INT(cvy_memory_bytes(), held);
}

/* ---- writing ---- */

static const char many[] =
    "input: 'data' input_dim: 1 input_dim: 2 input_dim: 3 input_dim: 3\n"
    "layer { name: 'b/n' type: 'BatchNorm' bottom: 'data' top: 'b' }\n"
    "layer { name: 'scale' type: 'Scale' bottom: 'b' top: 'b' scale_param { bias_term: true } }\n"
    "layer { name: 'p' type: 'PReLU' bottom: 'b' top: 'b' prelu_param { channel_shared: true } }\n"
    "layer { name: 'rows' type: 'Scale' bottom: 'b' top: 'r' scale_param { axis: 2 } }\n"
    "layer { name: 'up' type: 'Deconvolution' bottom: 'r' top: 'up' convolution_param { num_output: 1 kernel_size: 2 } "
    "}\n"
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'up' top: 'ip' inner_product_param { num_output: 2 transpose: "
    "true } }\n";
static const char many_values[] =
    "layer { name: 'b/n' blobs { shape { dim: 2 } data: [2, 4] } blobs { shape { dim: 2 } data: [6, 8] } blobs { shape "
    "{ dim: 1 "
    "} data: 2 } } layer { name: 'scale' blobs { shape { dim: 2 } data: [5, 6] } blobs { shape { dim: 2 } data: [7, 8] "
    "} }"
    "layer { name: 'p' blobs { shape { } data: 0.5 } } layer { name: 'rows' blobs { shape { dim: 3 } data: [1, 2, 3] } "
    "}"
    "layer { name: 'up' blobs { shape { dim: [2, 1, 2, 2] } data: [1, 2, 3, 4, 5, 6, 7, 8] } blobs { shape { dim: 1 } "
    "data: 9 } }"
    "layer { name: 'ip' blobs { shape { dim: [16, 2] } data: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, "
    "16, 17, 18, 19, "
    "20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31] } blobs { shape { dim: 2 } data: [1, 2] } }";

static cvy_status export(const cvy_import *in, cvy_text *notes)
{
    const cvy_export from = {.net = net, .input = {3, {2, 3, 3}}, .tensor = in->tensor, .ntensor = in->ntensor};
    return cvy_export_caffemodel("written.caffemodel", &from, notes);
}

/* What is written has Caffe's names, shapes and order, and is read back as the same values. */
static void weights_are_written_as_caffe_has_them(void)
{
    cvy_import in = {0}, again = {0};
    cvy_caffe_file file = {0};
    cvy_text notes = {0};
    caffe_put_text(net, many);
    caffe_put_model(model, many_values, 0);
    EXPECT_OK(import(&in));
    EXPECT_INT(in.ntensor, 10);
    EXPECT_OK(export(&in, &notes));
    EXPECT(notes.bytes == 0);
    EXPECT_OK(cvy_import_caffe(net, &(cvy_caffe_opts){.test = 1, .weights = "written.caffemodel"}, &again));
    EXPECT_INT(again.ntensor, in.ntensor);
    for (int i = 0; i < again.ntensor; i++)
        for (int k = 0; k < cvy_shape_elems(&again.tensor[i].shape); k++)
            EXPECT_NEAR(value(&again, again.tensor[i].name, k), value(&in, again.tensor[i].name, k), 0);
    EXPECT_OK(cvy_caffe_binary_read("written.caffemodel", &cvy__caffe__net_parameter__descriptor, &file));
    const Cvy__Caffe__NetParameter *got = (const Cvy__Caffe__NetParameter *)(const void *)file.message;
    EXPECT(got && got->n_layer == 6);
    if (got && got->n_layer == 6) {
        static const char *const names[] = {"b/n", "scale", "p", "rows", "up", "ip"};
        static const size_t blobs[] = {3, 2, 1, 1, 2, 2}, ndim[] = {1, 1, 0, 1, 4, 2};
        for (int i = 0; i < 6; i++) {
            EXPECT_TEXT(got->layer[i]->name, names[i]);
            EXPECT_INT(got->layer[i]->n_blobs, blobs[i]);
            EXPECT_INT(got->layer[i]->blobs[0]->shape->n_dim, ndim[i]);
        }
        EXPECT_NEAR(got->layer[0]->blobs[1]->data[1], 4, 0); /* divided by the factor, which becomes 1 */
        EXPECT_NEAR(got->layer[0]->blobs[2]->data[0], 1, 0);
        EXPECT_INT(got->layer[5]->blobs[0]->shape->dim[0], 16);
        for (int i = 0; i < 32; i++)
            EXPECT_NEAR(got->layer[5]->blobs[0]->data[i], i, 0);
    }
    cvy_caffe_file_free(&file);
    cvy_import_free(&again);
    const int64_t held = cvy_memory_bytes();
    EXPECT_SURVIVES_NO_MEMORY(export(&in, &notes));
    EXPECT_INT(cvy_memory_bytes(), held);
    in.ntensor = 2; /* batch norm's statistics */
    EXPECT_OK(export(&in, &notes));
    EXPECT(notes.data && strstr(notes.data, "layer ip is not in the file"));
    in.ntensor = 0;
    EXPECT_FAULT(export(&in, &notes), CVY_E_SHAPE, "it is another network");
    cvy_text_free(&notes);
    cvy_import_free(&in);
}

/* ---- phases ---- */

static const char rules[] =
    "input: 'data' input_dim: 1 input_dim: 2 input_dim: 1 input_dim: 1\n"
    "layer { name: 'train' type: 'ReLU' bottom: 'data' top: 'data' include { phase: TRAIN } }\n"
    "layer { name: 'test' type: 'ReLU' bottom: 'data' top: 'data' exclude { phase: TRAIN } }\n"
    "layer { name: 'high' type: 'ReLU' bottom: 'data' top: 'data' include { min_level: 2 max_level: 3 } }\n"
    "layer { name: 'deploy' type: 'ReLU' bottom: 'data' top: 'data' include { phase: TEST stage: 'a' not_stage: 'b' } "
    "}\n"
    "layer { name: 'always' type: 'ReLU' bottom: 'data' top: 'data' }\n";

static void expect_layers(cvy_caffe_opts opts, const char *expected)
{
    cvy_import in = {0};
    char names[256] = "";
    EXPECT_OK(cvy_import_caffe(net, &opts, &in));
    for (int i = 0; in.model && i < in.model->nlayer; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? " " : "", in.model->layer[i].name);
    EXPECT_TEXT(names, expected);
    cvy_import_free(&in);
}

static void phases_levels_and_stages_select_layers(void)
{
    static const char *const a[] = {"a"}, *const ab[] = {"b", "a"};
    caffe_put_text(net, rules);
    expect_layers((cvy_caffe_opts){0}, "train always");
    expect_layers((cvy_caffe_opts){.test = 1}, "test always");
    expect_layers((cvy_caffe_opts){.test = 1, .level = 2}, "test high always");
    expect_layers((cvy_caffe_opts){.level = 4}, "train always");
    expect_layers((cvy_caffe_opts){.test = 1, .stage = a, .nstage = 1}, "test deploy always");
    expect_layers((cvy_caffe_opts){.test = 1, .stage = ab, .nstage = 2}, "test always");
    expect_layers((cvy_caffe_opts){.stage = a, .nstage = 1}, "train always");
}

/* The transformation in the parameters of old data layers becomes that of new ones. */
static void old_data_layers_are_upgraded(void)
{
    static const char *const texts[] = {
        "layers { name: 'd' type: IMAGE_DATA top: 'x' image_data_param { source: 's' mean_file: 'm' batch_size: 7 "
        "scale: 0.5 "
        "crop_size: 3 mirror: true shuffle: true new_height: 9 new_width: 8 } }",
        "layer { name: 'd' type: 'ImageData' top: 'x' image_data_param { source: 's' batch_size: 7 shuffle: true "
        "new_height: 9 "
        "new_width: 8 } transform_param { scale: 0.5 mean_file: 'm' crop_size: 3 mirror: true } }",
    };
    for (int i = 0; i < CVY_COUNT(texts); i++) {
        cvy_caffe_file file = {0};
        EXPECT_OK(cvy_caffe_text_parse("t", texts[i], strlen(texts[i]), &cvy__caffe__net_parameter__descriptor, &file));
        Cvy__Caffe__NetParameter *got = (Cvy__Caffe__NetParameter *)(void *)file.message;
        EXPECT_OK(cvy_caffe_upgrade("t", got));
        EXPECT(got->n_layer == 1 && got->n_layers == 0);
        const Cvy__Caffe__LayerParameter *p = got->layer[0];
        EXPECT_TEXT(p->type, "ImageData");
        EXPECT_INT(p->convoy_line, 1);
        EXPECT_TEXT(p->top[0], "x");
        EXPECT_TEXT(p->image_data_param->source, "s");
        EXPECT_INT(p->image_data_param->batch_size, 7);
        EXPECT_INT(p->image_data_param->shuffle, 1);
        EXPECT_INT(p->image_data_param->new_height, 9);
        EXPECT_INT(p->image_data_param->new_width, 8);
        EXPECT(p->transform_param && p->transform_param->mean_file);
        EXPECT_TEXT(p->transform_param->mean_file, "m");
        EXPECT_NEAR(p->transform_param->scale, 0.5, 0);
        EXPECT_INT(p->transform_param->crop_size, 3);
        EXPECT_INT(p->transform_param->mirror, 1);
        cvy_caffe_file_free(&file);
    }
}

/* ---- shared variables, and multipliers ---- */

#define PRODUCT(name, from, params)                                                                                    \
    "layer { name: '" name "' type: 'InnerProduct' bottom: '" from "' top: '" name "' " params                         \
    " inner_product_param { num_output: 2 weight_filler { type: 'xavier' } } }\n"

static void parameters_with_one_name_are_shared(void)
{
    cvy_import in = {0};
    cvy_text_free(&caffe_net);
    cvy_text_add(&caffe_net, "%s",
                 "input: 'data' input_dim: 1 input_dim: 2 input_dim: 1 input_dim: 1\n" PRODUCT(
                     "a", "data", "param { name: 'w' lr_mult: 3 } param { name: 'b' lr_mult: 0 }")
                     PRODUCT("b", "a", "param { name: 'w' lr_mult: 3 } param { name: 'b' lr_mult: 0 }")
                         PRODUCT("c", "b", "param { lr_mult: 5 decay_mult: 0 }"));
    caffe_put(net);
    EXPECT_OK(cvy_import_caffe(net, &(cvy_caffe_opts){0}, &in));
    EXPECT(in.model && in.model->nlayer == 3);
    if (in.model && in.model->nlayer == 3) {
        EXPECT_TEXT(in.model->layer[1].name, "a");
        EXPECT_TEXT(in.model->layer[1].output, "b");
        EXPECT_TEXT(in.model->layer[2].name, "c");
    }
    EXPECT_INT(in.ngroup, 3); /* weights of a and c, and the bias of a; c's bias has nothing of its own */
    if (in.ngroup == 3) {
        EXPECT_TEXT(in.group[0].match, "a.weight");
        EXPECT_NEAR(in.group[0].lr_mult, 3, 0);
        EXPECT_TEXT(in.group[1].match, "a.bias");
        EXPECT_INT(in.group[1].frozen, 1);
        EXPECT_TEXT(in.group[2].match, "c.weight");
        EXPECT_NEAR(in.group[2].decay_mult, 0, 0);
    }
    cvy_import_free(&in);
    caffe_put_text(net, "input: 'data' input_dim: 1 input_dim: 2 input_dim: 1 input_dim: 1\n" PRODUCT(
                            "a", "data", "param { name: 'w' } param { name: 'b' }")
                            PRODUCT("b", "a", "param { name: 'w' }"));
    EXPECT_FAULT(
        cvy_import_caffe(net, &(cvy_caffe_opts){0}, &in), CVY_E_UNSUPPORTED,
        "b (InnerProduct): it shares the parameter 'w' with a layer that has another type or other parameters");
}

int main(void)
{
    TEST(models_of_all_versions_are_read);
    TEST(a_new_head_is_noted);
    TEST(what_does_not_fit_is_named);
    TEST(missing_memory_is_reported);
    TEST(weights_are_written_as_caffe_has_them);
    TEST(phases_levels_and_stages_select_layers);
    TEST(old_data_layers_are_upgraded);
    TEST(parameters_with_one_name_are_shared);
    cvy_text_free(&caffe_net);
    return test_end();
}

#else

int main(void)
{
    EXPECT_OK(CVY_OK);
    return test_end();
}

#endif
