/* rows: clang asan */
/*
 * test_caffe_nets.c: published networks of Caffe, in all forms of its texts, have the published numbers of parameters
 * and shapes of blobs; the three forms give the same layers.
 *
 * The networks are written by the test after the descriptions in the papers and in Caffe's documentation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#if CVY_HAVE_PROTOBUF_C

#include <stdlib.h>

#include "caffe_text.h"
#include "exchange/exchange.h"

static const char path[] = "published.prototxt";

/* ---- the networks ---- */

static void lenet(void)
{
    caffe_add_conv("conv1", "data", (caffe_conv){20, 5, 1, 0, 1, 0.1, 0});
    caffe_add_pool("pool1", "conv1", "MAX", 2, 2);
    caffe_add_conv("conv2", "pool1", (caffe_conv){50, 5, 1, 0, 1, 0.1, 0});
    caffe_add_pool("pool2", "conv2", "MAX", 2, 2);
    caffe_add_product("ip1", "pool2", 500, 0.1, 0);
    caffe_add_relu("relu1", "ip1");
    caffe_add_product("ip2", "ip1", 10, 0.1, 0);
    caffe_add_softmax_loss("loss", "ip2 label");
}

static void cifar_quick(void)
{
    caffe_add_conv("conv1", "data", (caffe_conv){32, 5, 1, 2, 1, 0.0001, 0});
    caffe_add_pool("pool1", "conv1", "MAX", 3, 2);
    caffe_add_relu("relu1", "pool1");
    caffe_add_conv("conv2", "pool1", (caffe_conv){32, 5, 1, 2, 1, 0.01, 0});
    caffe_add_relu("relu2", "conv2");
    caffe_add_pool("pool2", "conv2", "AVE", 3, 2);
    caffe_add_conv("conv3", "pool2", (caffe_conv){64, 5, 1, 2, 1, 0.01, 0});
    caffe_add_relu("relu3", "conv3");
    caffe_add_pool("pool3", "conv3", "AVE", 3, 2);
    caffe_add_product("ip1", "pool3", 64, 0.1, 0);
    caffe_add_product("ip2", "ip1", 10, 0.1, 0);
    caffe_add_softmax_loss("loss", "ip2 label");
}

static void norm_within(const char *name, const char *bottom)
{
    cvy_text_add(&caffe_net,
                 caffe_write_as == CAFFE_NEW ? "layer { name: \"%s\" type: \"LRN\" bottom: \"%s\" top: \"%s\" "
                                             : "layers { name: \"%s\" type: LRN bottom: \"%s\" top: \"%s\" ",
                 name, bottom, name);
    cvy_text_add(&caffe_net, "lrn_param { local_size: 3 alpha: 5e-05 beta: 0.75 norm_region: WITHIN_CHANNEL } }\n");
}

static void cifar_full(void)
{
    caffe_add_conv("conv1", "data", (caffe_conv){32, 5, 1, 2, 1, 0.0001, 0});
    caffe_add_pool("pool1", "conv1", "MAX", 3, 2);
    caffe_add_relu("relu1", "pool1");
    norm_within("norm1", "pool1");
    caffe_add_conv("conv2", "norm1", (caffe_conv){32, 5, 1, 2, 1, 0.01, 0});
    caffe_add_relu("relu2", "conv2");
    caffe_add_pool("pool2", "conv2", "AVE", 3, 2);
    norm_within("norm2", "pool2");
    caffe_add_conv("conv3", "norm2", (caffe_conv){64, 5, 1, 2, 1, 0.01, 0});
    caffe_add_relu("relu3", "conv3");
    caffe_add_pool("pool3", "conv3", "AVE", 3, 2);
    caffe_add_product("ip1", "pool3", 10, 0.01, 0);
    caffe_add_softmax_loss("loss", "ip1 label");
}

/* AlexNet normalises before pooling, CaffeNet after it; R-CNN is CaffeNet with another last layer. */
static void alexnet_like(int norm_first, const char *last, int classes)
{
    caffe_add_conv("conv1", "data", (caffe_conv){96, 11, 4, 0, 1, 0.01, 0});
    caffe_add_relu("relu1", "conv1");
    for (int i = 1; i <= 2; i++) {
        const char *conv = i == 1 ? "conv1" : "conv2", *norm = i == 1 ? "norm1" : "norm2",
                   *pool = i == 1 ? "pool1" : "pool2";
        if (norm_first)
            caffe_add_lrn(norm, conv, 5, 0.0001);
        caffe_add_pool(pool, norm_first ? norm : conv, "MAX", 3, 2);
        if (!norm_first)
            caffe_add_lrn(norm, pool, 5, 0.0001);
        if (i == 1) {
            caffe_add_conv("conv2", norm_first ? pool : norm, (caffe_conv){256, 5, 1, 2, 2, 0.01, 0.1});
            caffe_add_relu("relu2", "conv2");
        }
    }
    caffe_add_conv("conv3", norm_first ? "pool2" : "norm2", (caffe_conv){384, 3, 1, 1, 1, 0.01, 0});
    caffe_add_relu("relu3", "conv3");
    caffe_add_conv("conv4", "conv3", (caffe_conv){384, 3, 1, 1, 2, 0.01, 0.1});
    caffe_add_relu("relu4", "conv4");
    caffe_add_conv("conv5", "conv4", (caffe_conv){256, 3, 1, 1, 2, 0.01, 0.1});
    caffe_add_relu("relu5", "conv5");
    caffe_add_pool("pool5", "conv5", "MAX", 3, 2);
    caffe_add_product("fc6", "pool5", 4096, 0.005, 0.1);
    caffe_add_relu("relu6", "fc6");
    caffe_add_dropout("drop6", "fc6", 0.5);
    caffe_add_product("fc7", "fc6", 4096, 0.005, 0.1);
    caffe_add_relu("relu7", "fc7");
    caffe_add_dropout("drop7", "fc7", 0.5);
    caffe_add_product(last, "fc7", classes, 0.01, 0);
}

static void alexnet(void)
{
    alexnet_like(1, "fc8", 1000);
    caffe_add_softmax_loss("loss", "fc8 label");
}

static void caffenet(void)
{
    alexnet_like(0, "fc8", 1000);
    caffe_add_softmax_loss("loss", "fc8 label");
}

static void rcnn(void)
{
    alexnet_like(0, "fc-rcnn", 200);
}

/* GoogLeNet: filters of 1x1, of 3x3 with its reduction, of 5x5 with its reduction, and after pooling. */
static void inception(const char *name, const char *bottom, const int n[6])
{
    static const char *const part[] = {"1x1", "3x3_reduce", "3x3", "5x5_reduce", "5x5", "pool_proj"};
    static const int kernel[] = {1, 1, 3, 1, 5, 1};
    char blob[6][64], pool[64];
    snprintf(pool, sizeof pool, "%s/pool", name);
    for (int i = 0; i < 6; i++) {
        char relu[80];
        const char *from = i == 2 || i == 4 ? blob[i - 1] : i == 5 ? pool : bottom;
        snprintf(blob[i], sizeof blob[i], "%s/%s", name, part[i]);
        snprintf(relu, sizeof relu, "%s/relu_%s", name, part[i]);
        if (i == 5)
            cvy_text_add(
                &caffe_net,
                "layer { name: \"%s\" type: \"Pooling\" bottom: \"%s\" top: \"%s\" pooling_param { kernel_size: 3 "
                "stride: 1 pad: 1 } }\n",
                pool, bottom, pool);
        caffe_add_conv(blob[i], from, (caffe_conv){n[i], kernel[i], 1, kernel[i] / 2, 1, 0.1, 0.2});
        caffe_add_relu(relu, blob[i]);
    }
    cvy_text_add(&caffe_net,
                 "layer { name: \"%s/output\" type: \"Concat\" bottom: \"%s\" bottom: \"%s\" bottom: \"%s\" "
                 "bottom: \"%s\" top: \"%s/output\" }\n",
                 name, blob[0], blob[2], blob[4], blob[5], name);
}

static void auxiliary(const char *name, const char *bottom)
{
    char pool[64], conv[64], fc[64], out[64], text[160];
    snprintf(pool, sizeof pool, "%s/ave_pool", name);
    snprintf(conv, sizeof conv, "%s/conv", name);
    snprintf(fc, sizeof fc, "%s/fc", name);
    snprintf(out, sizeof out, "%s/classifier", name);
    caffe_add_pool(pool, bottom, "AVE", 5, 3);
    caffe_add_conv(conv, pool, (caffe_conv){128, 1, 1, 0, 1, 0.08, 0.2});
    snprintf(text, sizeof text, "%s/relu_conv", name);
    caffe_add_relu(text, conv);
    caffe_add_product(fc, conv, 1024, 0.02, 0.2);
    caffe_add_dropout(text + 1, fc, 0.7);
    caffe_add_product(out, fc, 1000, 0.0009765625, 0);
    cvy_text_add(&caffe_net,
                 "layer { name: \"%s/loss\" type: \"SoftmaxWithLoss\" bottom: \"%s\" bottom: \"label\" "
                 "top: \"%s/loss\" loss_weight: 0.3 }\n",
                 name, out, name);
}

static void googlenet_with(int heads)
{
    static const struct {
        const char *name;
        int n[6];
    } blocks[] = {{"inception_3a", {64, 96, 128, 16, 32, 32}},     {"inception_3b", {128, 128, 192, 32, 96, 64}},
                  {"inception_4a", {192, 96, 208, 16, 48, 64}},    {"inception_4b", {160, 112, 224, 24, 64, 64}},
                  {"inception_4c", {128, 128, 256, 24, 64, 64}},   {"inception_4d", {112, 144, 288, 32, 64, 64}},
                  {"inception_4e", {256, 160, 320, 32, 128, 128}}, {"inception_5a", {256, 160, 320, 32, 128, 128}},
                  {"inception_5b", {384, 192, 384, 48, 128, 128}}};
    char bottom[64] = "pool2/3x3_s2";
    caffe_add_conv("conv1/7x7_s2", "data", (caffe_conv){64, 7, 2, 3, 1, 0.1, 0.2});
    caffe_add_relu("conv1/relu", "conv1/7x7_s2");
    caffe_add_pool("pool1/3x3_s2", "conv1/7x7_s2", "MAX", 3, 2);
    caffe_add_lrn("pool1/norm1", "pool1/3x3_s2", 5, 0.0001);
    caffe_add_conv("conv2/3x3_reduce", "pool1/norm1", (caffe_conv){64, 1, 1, 0, 1, 0.1, 0.2});
    caffe_add_relu("conv2/relu_reduce", "conv2/3x3_reduce");
    caffe_add_conv("conv2/3x3", "conv2/3x3_reduce", (caffe_conv){192, 3, 1, 1, 1, 0.1, 0.2});
    caffe_add_relu("conv2/relu_3x3", "conv2/3x3");
    caffe_add_lrn("conv2/norm2", "conv2/3x3", 5, 0.0001);
    caffe_add_pool("pool2/3x3_s2", "conv2/norm2", "MAX", 3, 2);
    for (int i = 0; i < CVY_COUNT(blocks); i++) {
        inception(blocks[i].name, bottom, blocks[i].n);
        snprintf(bottom, sizeof bottom, "%s/output", blocks[i].name);
        if (heads && (i == 2 || i == 5))
            auxiliary(i == 2 ? "loss1" : "loss2", bottom);
        if (i == 1 || i == 6) {
            caffe_add_pool(i == 1 ? "pool3/3x3_s2" : "pool4/3x3_s2", bottom, "MAX", 3, 2);
            snprintf(bottom, sizeof bottom, "pool%d/3x3_s2", i == 1 ? 3 : 4);
        }
    }
    caffe_add_pool("pool5/7x7_s1", bottom, "AVE", 7, 1);
    caffe_add_dropout("pool5/drop", "pool5/7x7_s1", 0.4);
    caffe_add_product("loss3/classifier", "pool5/7x7_s1", 1000, 0.03, 0);
    caffe_add_softmax_loss("loss3", "loss3/classifier label");
}

static void googlenet(void)
{
    googlenet_with(0);
}

static void googlenet_with_heads(void)
{
    googlenet_with(1);
}

/* Two towers of LeNet on the halves of a pair, with the same parameters. */
static void siamese(void)
{
    cvy_text_add(&caffe_net,
                 "layer { name: \"cut\" type: \"Slice\" bottom: \"data\" top: \"a\" top: \"b\" slice_param { "
                 "slice_dim: 1 slice_point: 1 } }\n");
    for (int tower = 0; tower < 2; tower++) {
        const char *p = tower ? "_p" : "", *from = tower ? "b" : "a";
        static const char *const kind[] = {"conv1", "conv2", "ip1", "ip2", "feat"};
        static const int n[] = {20, 50, 500, 10, 2};
        char at[64];
        snprintf(at, sizeof at, "%s", from);
        for (int i = 0; i < 5; i++) {
            const int conv = i < 2;
            cvy_text_add(
                &caffe_net,
                "layer { name: \"%s%s\" type: \"%s\" bottom: \"%s\" top: \"%s%s\" param { name: \"%s_w\" lr_mult: 1 } "
                "param { name: \"%s_b\" lr_mult: 2 } %s { num_output: %d %s weight_filler { type: \"xavier\" } } }\n",
                kind[i], p, conv ? "Convolution" : "InnerProduct", at, kind[i], p, kind[i], kind[i],
                conv ? "convolution_param" : "inner_product_param", n[i], conv ? "kernel_size: 5" : "");
            snprintf(at, sizeof at, "%s%s", kind[i], p);
            if (conv) {
                char pool[64];
                snprintf(pool, sizeof pool, "pool%d%s", i + 1, p);
                caffe_add_pool(pool, at, "MAX", 2, 2);
                memcpy(at, pool, sizeof at);
            }
            if (i == 2)
                caffe_add_relu(tower ? "relu1_p" : "relu1", at);
        }
    }
    cvy_text_add(&caffe_net,
                 "layer { name: \"loss\" type: \"ContrastiveLoss\" bottom: \"feat\" bottom: \"feat_p\" bottom: "
                 "\"label\" top: \"loss\" contrastive_loss_param { margin: 1 } }\n");
}

static void autoencoder(void)
{
    static const int n[] = {1000, 500, 250, 30, 250, 500, 1000, 784};
    char from[64] = "flatdata", name[32];
    cvy_text_add(&caffe_net, "layer { name: \"flatdata\" type: \"Flatten\" bottom: \"data\" top: \"flatdata\" }\n"
                             "layer { name: \"quiet\" type: \"Silence\" bottom: \"label\" }\n");
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "%s%d", i < 4 ? "encode" : "decode", i < 4 ? i + 1 : 8 - i);
        cvy_text_add(&caffe_net,
                     "layer { name: \"%s\" type: \"InnerProduct\" bottom: \"%s\" top: \"%s\" inner_product_param { "
                     "num_output: %d weight_filler { type: \"gaussian\" std: 1 sparse: 15 } } }\n",
                     name, from, name, n[i]);
        snprintf(from, sizeof from, "%s", name);
        if (i == 3 || i == 7)
            continue;
        snprintf(from, sizeof from, "%sneuron", name);
        cvy_text_add(&caffe_net, "layer { name: \"%s\" type: \"Sigmoid\" bottom: \"%s\" top: \"%s\" }\n", from, name,
                     from);
    }
    cvy_text_add(&caffe_net,
                 "layer { name: \"loss\" type: \"SigmoidCrossEntropyLoss\" bottom: \"%s\" bottom: \"flatdata\" top: "
                 "\"cross\" loss_weight: 1 }\n"
                 "layer { name: \"sharp\" type: \"Sigmoid\" bottom: \"%s\" top: \"sharp\" }\n"
                 "layer { name: \"loss2\" type: \"EuclideanLoss\" bottom: \"sharp\" bottom: \"flatdata\" top: \"l2\" "
                 "loss_weight: 0 }\n",
                 from, from);
}

/* ---- what is known of them ---- */

static const struct known {
    const char *name;
    void (*write)(void);
    int C, H, W;
    caffe_form oldest; /* that can say it */
    int64_t parameters;
    const char *output;
    struct {
        const char *layer, *shape;
    } blob[8]; /* of one sample */
} known[] = {
    {"lenet",
     lenet,
     1,
     28,
     28,
     CAFFE_V1,
     431080,
     "ip2",
     {{"conv1", "1x20x24x24"},
      {"pool1", "1x20x12x12"},
      {"conv2", "1x50x8x8"},
      {"pool2", "1x50x4x4"},
      {"ip1", "1x500"},
      {"ip2", "1x10"}}},
    {"cifar_quick",
     cifar_quick,
     3,
     32,
     32,
     CAFFE_V1,
     145578,
     "ip2",
     {{"conv1", "1x32x32x32"}, {"pool1", "1x32x16x16"}, {"pool2", "1x32x8x8"}, {"pool3", "1x64x4x4"}, {"ip1", "1x64"}}},
    {"cifar_full",
     cifar_full,
     3,
     32,
     32,
     CAFFE_V1,
     89578,
     "ip1",
     {{"norm1", "1x32x16x16"}, {"norm2", "1x32x8x8"}, {"pool3", "1x64x4x4"}, {"ip1", "1x10"}}},
    {"alexnet",
     alexnet,
     3,
     227,
     227,
     CAFFE_V1,
     60965224,
     "fc8",
     {{"conv1", "1x96x55x55"},
      {"pool1", "1x96x27x27"},
      {"conv2", "1x256x27x27"},
      {"pool2", "1x256x13x13"},
      {"conv5", "1x256x13x13"},
      {"pool5", "1x256x6x6"},
      {"fc6", "1x4096"},
      {"fc8", "1x1000"}}},
    {"caffenet",
     caffenet,
     3,
     227,
     227,
     CAFFE_V1,
     60965224,
     "fc8",
     {{"conv1", "1x96x55x55"}, {"norm1", "1x96x27x27"}, {"norm2", "1x256x13x13"}, {"pool5", "1x256x6x6"}}},
    {"rcnn", rcnn, 3, 227, 227, CAFFE_V1, 57687624, "fc-rcnn", {{"pool5", "1x256x6x6"}, {"fc-rcnn", "1x200"}}},
    {"googlenet",
     googlenet,
     3,
     224,
     224,
     CAFFE_NEW,
     6998552,
     "loss3.classifier",
     {{"conv1.7x7_s2", "1x64x112x112"},
      {"pool2.3x3_s2", "1x192x28x28"},
      {"inception_3a.output", "1x256x28x28"},
      {"inception_4a.output", "1x512x14x14"},
      {"inception_4e.output", "1x832x14x14"},
      {"pool4.3x3_s2", "1x832x7x7"},
      {"inception_5b.output", "1x1024x7x7"},
      {"pool5.7x7_s1", "1x1024x1x1"}}},
    {"googlenet with heads",
     googlenet_with_heads,
     3,
     224,
     224,
     CAFFE_NEW,
     13378280,
     "loss3.classifier",
     {{"loss1.ave_pool", "1x512x4x4"}, {"loss2.ave_pool", "1x528x4x4"}, {"loss2.classifier", "1x1000"}}},
    {"siamese",
     siamese,
     2,
     28,
     28,
     CAFFE_NEW,
     431102,
     "feat",
     {{"a", "1x1x28x28"}, {"b", "1x1x28x28"}, {"pool2_p", "1x50x4x4"}, {"feat_p", "1x2"}}},
    {"autoencoder", autoencoder, 1, 28, 28, CAFFE_NEW, 2837314, "decode1", {{"encode4", "1x30"}, {"decode1", "1x784"}}},
};

static cvy_status import(const struct known *k, caffe_form form, cvy_import *out)
{
    caffe_begin(form);
    cvy_text_add(&caffe_net, "input: \"data\" input_dim: 8 input_dim: %d input_dim: %d input_dim: %d\n", k->C, k->H,
                 k->W);
    if (k->write != rcnn)
        cvy_text_add(&caffe_net, "input: \"label\" input_dim: 8 input_dim: 1 input_dim: 1 input_dim: 1\n");
    k->write();
    caffe_put(path);
    return cvy_import_caffe(path, &(cvy_caffe_opts){0}, out);
}

static void check_shapes(const struct known *k, const cvy_model *m)
{
    const cvy_graph_opts one = {
        .name = "test", .batch = {.global_n = 1, .local_n = 1}, .dtype = CVY_DTYPE_F32, .bn_group = 1, .training = 1};
    cvy_vars *vars = NULL;
    cvy_graph *graph = NULL;
    const char *wanted[8];
    cvy_value *value[8];
    int n = 0;
    int64_t parameters = 0;
    while (n < 8 && k->blob[n].layer) {
        wanted[n] = k->blob[n].layer;
        n++;
    }
    EXPECT_OK(cvy_vars_create(&vars));
    EXPECT_OK(cvy_model_instantiate(m, vars, &one, wanted, n, value, &graph));
    for (int i = 0; graph && i < n; i++)
        EXPECT_TEXT(cvy_shape_text(&value[i]->shape), k->blob[i].shape);
    cvy_graph_destroy(&graph);
    EXPECT_OK(cvy_model_instantiate(m, vars, &one, NULL, 0, NULL, &graph)); /* with all layers */
    for (int i = 0; i < vars->count; i++)
        parameters += vars->at[i]->role == CVY_ROLE_WEIGHT ? cvy_shape_elems(&vars->at[i]->shape) : 0;
    EXPECT_INT(parameters, k->parameters);
    cvy_graph_destroy(&graph);
    cvy_vars_destroy(&vars);
}

static char *printed(const cvy_import *in)
{
    cvy_pool *pool = NULL;
    cvy_tree *tree = NULL;
    char *text = NULL;
    EXPECT_OK(cvy_pool_create(&pool));
    EXPECT_OK(cvy_model_write(in->model, pool, 1, &tree));
    if (tree)
        EXPECT_OK(cvy_tree_print_line(tree, &text));
    cvy_pool_destroy(&pool);
    return text;
}

static void networks_have_their_published_sizes(void)
{
    for (int i = 0; i < CVY_COUNT(known); i++) {
        const struct known *k = &known[i];
        char *first = NULL;
        const int failures = test_failures;
        for (int form = 0; form <= (int)k->oldest; form++) {
            cvy_import in = {0};
            EXPECT_OK(import(k, (caffe_form)form, &in));
            if (!in.model)
                continue;
            EXPECT_TEXT(cvy_model_output(in.model), k->output);
            if (form == CAFFE_NEW)
                check_shapes(k, in.model);
            char *text = printed(&in);
            if (first)
                EXPECT_TEXT(text, first);
            else
                first = text;
            if (text != first)
                cvy_mem_free(&text);
            cvy_import_free(&in);
        }
        cvy_mem_free(&first);
        if (failures != test_failures)
            printf("that was %s\n", k->name);
    }
    cvy_text_free(&caffe_net);
}

/* The multipliers and fillers of AlexNet. */
static void groups_and_fillers_are_kept(void)
{
    for (int form = 0; form < CAFFE_FORMS; form++) {
        cvy_import in = {0};
        EXPECT_OK(import(&known[3], (caffe_form)form, &in));
        EXPECT_INT(in.ngroup, 1);
        if (in.ngroup == 1) {
            EXPECT_TEXT(in.group[0].match, "*.bias");
            EXPECT_NEAR(in.group[0].lr_mult, 2, 0);
            EXPECT_NEAR(in.group[0].decay_mult, 0, 0);
            EXPECT_INT(in.group[0].frozen, 0);
        }
        char *text = in.model ? printed(&in) : NULL;
        EXPECT(text &&
               strstr(text, "conv: {name: conv2, channels: 256, kernel: 5, pad: 2, groups: 2, bias_init: 0.1, init: "
                            "gaussian, init_options: \"std: 0.01\"}"));
        EXPECT(text && strstr(text, "dropout: {name: drop6, p: 0.5}"));
        EXPECT(text && strstr(text, "softmax_cross_entropy: {name: loss, from: [fc8, label]}"));
        cvy_mem_free(&text);
        cvy_import_free(&in);
    }
    cvy_text_free(&caffe_net);
}

static cvy_status read_lenet(void)
{
    cvy_import in = {0};
    const cvy_status status = cvy_import_caffe(path, &(cvy_caffe_opts){0}, &in);
    cvy_import_free(&in);
    return status;
}

static void missing_memory_is_reported(void)
{
    for (int form = 0; form < CAFFE_FORMS; form++) {
        cvy_import in = {0};
        EXPECT_OK(import(&known[0], (caffe_form)form, &in));
        cvy_import_free(&in);
        cvy_text_free(&caffe_net);
        const int64_t held = cvy_memory_bytes();
        EXPECT_SURVIVES_NO_MEMORY(read_lenet());
        EXPECT_INT(cvy_memory_bytes(), held);
    }
}

int main(void)
{
    TEST(networks_have_their_published_sizes);
    TEST(groups_and_fillers_are_kept);
    TEST(missing_memory_is_reported);
    return test_end();
}

#else

int main(void)
{
    EXPECT_OK(CVY_OK);
    return test_end();
}

#endif
