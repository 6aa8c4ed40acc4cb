/*
 * model_deepcam.c: deepcam, the network of MLPerf HPC that finds tropical cyclones and atmospheric rivers in climate
 * data: DeepLabv3+ with a modified Xception as encoder, a class for each position of a map.
 *
 * The encoder halves the size four times. Its blocks are depthwise separable convolutions (a 3x3 convolution of each
 * channel, then a 1x1 convolution) around a shortcut. Five branches then look at 1, 6, 12 and 18 positions' distance
 * and at the whole map (atrous spatial pyramid pooling). The decoder enlarges by transposed convolutions and joins the
 * features of the first block. Defaults are the reference: 16 channels of 768x1152, 3 classes, 16 middle blocks. All
 * widths follow `filters`.
 *
 * Two details are those of the reference, not of the papers: the last convolution of a block that halves the size has
 * no batch norm, and the features that the decoder joins are rectified.
 *
 * Sources: Kurth et al. 2018, Exascale deep learning for climate analytics; Chen et al. 2018, Encoder-decoder with
 * atrous separable convolution; Chollet 2017, Xception; the reference of MLPerf HPC 1.0.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/model.h"

struct deepcam {
    int64_t filters, middle;
};

static const cvy_option deepcam_opts[] = {
    {"filters", CVY_TYPE_INT, CVY_FIELD(deepcam, filters), "32", "4..4096", "channels",
     "filters of the first convolution, a multiple of 4; all other widths are multiples of it"},
    {"middle", CVY_TYPE_INT, CVY_FIELD(deepcam, middle), "16", "1..64", "blocks",
     "blocks that keep size and channels, in the middle of the encoder"},
    {0},
};

enum { HALVINGS = 4 }; /* of the encoder; the decoder doubles as often */

/* ---- layers ---- */

/* The channels that are `widths` at 32 filters. */
static long long width(const struct deepcam *o, int widths)
{
    return (long long)(o->filters * widths / 32);
}

static cvy_status norm(cvy_model *m, const char *name, int has_relu)
{
    CVY_TRY(cvy_model_add(m, "batch_norm", cvy_labelf("%s_bn", name).text, NULL, NULL));
    return has_relu ? cvy_model_add(m, "relu", cvy_labelf("%s_relu", name).text, NULL, NULL) : CVY_OK;
}

/* A convolution that keeps the size or, with stride 2, halves it; no bias. */
static cvy_status conv(cvy_model *m, const char *name, const char *from, long long channels, int kernel, int stride,
                       int dilation)
{
    return cvy_model_addf(m, "conv", name, from,
                          "channels: %lld, kernel: %d, stride: %d, pad: %d, dilation: %d, bias: false", channels,
                          kernel, stride, kernel / 2 * dilation, dilation);
}

static cvy_status conv_relu(cvy_model *m, const char *name, const char *from, long long channels, int kernel,
                            int stride, int dilation)
{
    CVY_TRY(conv(m, name, from, channels, kernel, stride, dilation));
    return norm(m, name, 1);
}

/* The layers NAME_depth and NAME; c_in: the channels before them. */
static cvy_status separable(cvy_model *m, const char *name, long long c_in, long long channels, int stride,
                            int dilation)
{
    CVY_TRY(cvy_model_addf(m, "conv", cvy_labelf("%s_depth", name).text, NULL,
                           "channels: %lld, groups: %lld, kernel: 3, stride: %d, pad: %d, dilation: %d, bias: false",
                           c_in, c_in, stride, dilation, dilation));
    return conv(m, name, NULL, channels, 1, 1, 1);
}

/* Doubles the size. */
static cvy_status enlarge(cvy_model *m, const char *name, long long channels)
{
    return cvy_model_addf(m, "deconv", name, NULL,
                          "channels: %lld, kernel: 3, stride: 2, pad: 1, output_pad: 1, bias: false", channels);
}

/* ---- encoder ---- */

/* The separable convolutions of a block: `n` with batch norm, and after them one without, if it halves the size or is
 * said to end so (`tail`). ReLU stands between those with batch norm. The channels grow in the first of them, or in the
 * last. */
struct block {
    long long c_in, channels;
    int n, stride, tail, grows_last, relu;
};

static cvy_status block(cvy_model *m, const char *name, const struct block *b)
{
    const cvy_label from = cvy_model_here(m);
    cvy_label shortcut = from;
    for (int i = 1; i <= b->n; i++) {
        const cvy_label part = cvy_labelf("%s_%c", name, 'a' + i - 1);
        const int wide_before = !b->grows_last && i > 1, wide_after = !b->grows_last || i == b->n;
        CVY_TRY(separable(m, part.text, wide_before ? b->channels : b->c_in, wide_after ? b->channels : b->c_in, 1, 1));
        CVY_TRY(norm(m, part.text, i < b->n));
    }
    if (b->stride > 1 || b->tail)
        CVY_TRY(separable(m, cvy_labelf("%s_end", name).text, b->channels, b->channels, b->stride, 1));
    const cvy_label result = cvy_model_here(m);
    if (b->stride > 1 || b->c_in != b->channels) {
        const cvy_label projection = cvy_labelf("%s_short", name);
        CVY_TRY(conv(m, projection.text, from.text, b->channels, 1, b->stride, 1));
        CVY_TRY(norm(m, projection.text, 0));
        shortcut = cvy_model_here(m);
    }
    CVY_TRY(cvy_model_add(m, "add", b->relu ? cvy_labelf("%s_add", name).text : name, NULL,
                          cvy_labelf("%s, %s", result.text, shortcut.text).text));
    return b->relu ? cvy_model_add(m, "relu", name, NULL, NULL) : CVY_OK;
}

static cvy_status encode(cvy_model *m, const struct deepcam *o)
{
    const long long w64 = width(o, 64), w128 = width(o, 128), w256 = width(o, 256), w728 = width(o, 728),
                    w1024 = width(o, 1024), w1536 = width(o, 1536);
    const int last = (int)o->middle + 4;
    CVY_TRY(conv_relu(m, "conv1", NULL, width(o, 32), 3, 2, 1));
    CVY_TRY(conv_relu(m, "conv2", NULL, w64, 3, 1, 1));
    CVY_TRY(block(m, "block1", &(struct block){.c_in = w64, .channels = w128, .n = 2, .stride = 2, .relu = 1}));
    CVY_TRY(block(m, "block2", &(struct block){.c_in = w128, .channels = w256, .n = 2, .stride = 2, .relu = 1}));
    CVY_TRY(block(m, "block3", &(struct block){.c_in = w256, .channels = w728, .n = 2, .stride = 2, .relu = 1}));
    for (int i = 4; i < last; i++)
        CVY_TRY(block(m, cvy_labelf("block%d", i).text,
                      &(struct block){.c_in = w728, .channels = w728, .n = 3, .stride = 1, .relu = 1}));
    CVY_TRY(block(m, cvy_labelf("block%d", last).text,
                  &(struct block){.c_in = w728, .channels = w1024, .n = 2, .stride = 1, .tail = 1, .grows_last = 1}));
    CVY_TRY(separable(m, "conv3", w1024, w1536, 1, 2));
    CVY_TRY(norm(m, "conv3", 1));
    CVY_TRY(separable(m, "conv4", w1536, w1536, 1, 2));
    CVY_TRY(norm(m, "conv4", 1));
    CVY_TRY(separable(m, "conv5", w1536, width(o, 2048), 1, 2));
    return norm(m, "conv5", 1);
}

/* ---- pyramid and decoder ---- */

/* The mean over the map, through a layer without batch norm, at each position. */
static cvy_status pool_branch(cvy_model *m, const struct deepcam *o, const char *from, const cvy_shape *size)
{
    const long long channels = width(o, 256), H = size->dim[0], W = size->dim[1];
    CVY_TRY(cvy_model_add(m, "global_avg_pool", "pool_mean", NULL, from));
    CVY_TRY(cvy_model_addf(m, "fc", "pool", NULL, "channels: %lld, bias: false", channels));
    CVY_TRY(cvy_model_add(m, "affine", "pool_affine", NULL, NULL));
    CVY_TRY(cvy_model_add(m, "relu", "pool_relu", NULL, NULL));
    CVY_TRY(cvy_model_addf(m, "reshape", "pool_point", NULL, "shape: [%lld, 1, 1]", channels));
    return cvy_model_addf(m, "expand", "pool_map", NULL, "shape: [%lld, %lld, %lld]", channels, H, W);
}

static cvy_status pyramid(cvy_model *m, const struct deepcam *o, const cvy_shape *size)
{
    static const int distance[] = {1, 6, 12, 18};
    const cvy_label from = cvy_model_here(m);
    for (int i = 0; i < CVY_COUNT(distance); i++)
        CVY_TRY(conv_relu(m, cvy_labelf("aspp%d", i + 1).text, from.text, width(o, 256), i ? 3 : 1, 1, distance[i]));
    CVY_TRY(pool_branch(m, o, from.text, size));
    CVY_TRY(cvy_model_add(m, "concat", "aspp_join", NULL, "aspp1_relu, aspp2_relu, aspp3_relu, aspp4_relu, pool_map"));
    return conv_relu(m, "aspp", NULL, width(o, 256), 1, 1, 1);
}

static cvy_status decode(cvy_model *m, const struct deepcam *o, int64_t classes)
{
    const long long channels = width(o, 256);
    CVY_TRY(enlarge(m, "up1", channels));
    CVY_TRY(norm(m, "up1", 1));
    CVY_TRY(enlarge(m, "up2", channels));
    CVY_TRY(norm(m, "up2", 1));
    const cvy_label coarse = cvy_model_here(m);
    CVY_TRY(conv_relu(m, "low", "block1", width(o, 48), 1, 1, 1));
    CVY_TRY(cvy_model_add(m, "concat", "join", NULL, cvy_labelf("%s, %s", coarse.text, cvy_model_here(m).text).text));
    CVY_TRY(conv_relu(m, "mix1", NULL, channels, 3, 1, 1));
    CVY_TRY(conv_relu(m, "mix2", NULL, channels, 3, 1, 1));
    CVY_TRY(cvy_model_addf(m, "conv", "mix3", NULL, "channels: %lld, kernel: 1", channels));
    CVY_TRY(enlarge(m, "up3", channels));
    CVY_TRY(norm(m, "up3", 1));
    return enlarge(m, "head", (long long)classes);
}

/* ---- sizes ---- */

static cvy_status check_input(const struct deepcam *o, const cvy_shape *input)
{
    const int64_t step = (int64_t)1 << HALVINGS;
    CVY_CHECK(o->filters % 4 == 0, CVY_E_CONFIG, "`filters` %lld must be a multiple of 4", (long long)o->filters);
    CVY_CHECK(input->ndim == 3, CVY_E_SHAPE, "it needs samples [C, H, W], the input is %s", cvy_shape_text(input));
    CVY_CHECK(
        input->dim[1] % step == 0 && input->dim[2] % step == 0, CVY_E_SHAPE,
        "it halves height and width %d times, so both must be multiples of %lld, and the input has %lldx%lld: crop "
        "or pad the samples",
        HALVINGS, (long long)step, (long long)input->dim[1], (long long)input->dim[2]);
    return CVY_OK;
}

static cvy_status deepcam_build(cvy_model *m, const cvy_model_ask *ask)
{
    const struct deepcam *o = ask->options;
    CVY_TRY(check_input(o, ask->input));
    const cvy_shape size = {2, {ask->input->dim[1] >> HALVINGS, ask->input->dim[2] >> HALVINGS}};
    CVY_TRY(encode(m, o));
    CVY_TRY(pyramid(m, o, &size));
    return decode(m, o, ask->classes);
}

CVY_MODEL_DEFINE(deepcam) = {
    .name = "deepcam",
    .summary = "DeepCAM of MLPerf HPC: DeepLabv3+ on Xception, with a class for each position of a map",
    .source = "Kurth et al. 2018; Chen et al. 2018",
    .options = deepcam_opts,
    .options_size = sizeof(struct deepcam),
    .input = {3, {16, 768, 1152}},
    .classes = 3,
    .is_map = 1,
    .build = deepcam_build,
};
