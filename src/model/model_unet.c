/*
 * model_unet.c: unet, the network for fields: it gives an output for each position of a picture or a volume.
 *
 * `depth` times, a block of two 3x3 convolutions is followed by max pooling that halves each dimension, and the filters
 * double. The way back doubles the dimensions, joins the result with that of the block of the same size, and applies a
 * block to both. Convolutions pad with zeros, so the output has the size of the input. In residual blocks, the source
 * of the block is added before the last ReLU, after a 1x1 convolution if the channels differ (He et al. 2016).
 *
 * An attention gate weighs the positions of a joined block x by the coarser level g: sigmoid(psi(relu(Wx x + Wg g))).
 * Wx is a convolution of kernel and stride 2, Wg and psi are 1x1 convolutions, and the weights are enlarged linearly.
 *
 * Sources: Ronneberger, Fischer and Brox 2015; in three dimensions Cicek et al. 2016; the gates: Oktay et al. 2018.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/model.h"

struct unet {
    int dimensions, norm, up;
    int64_t depth, filters, groups;
    int residual, attention;
};
enum { DIMENSIONS_AUTO, DIMENSIONS_2, DIMENSIONS_3 };
enum { NORM_NONE, NORM_BATCH, NORM_GROUP, NORM_INSTANCE };
enum { UP_DECONV, UP_RESIZE };

static const cvy_option unet_opts[] = {
    {"dimensions", CVY_TYPE_CHOICE, CVY_FIELD(unet, dimensions), "auto", "auto|2|3", "",
     "spatial dimensions; auto: those of the input"},
    {"depth", CVY_TYPE_INT, CVY_FIELD(unet, depth), "4", "1..10", "levels", "how often the size is halved"},
    {"filters", CVY_TYPE_INT, CVY_FIELD(unet, filters), "64", "1..65536", "channels",
     "filters of the first block; they double with each level"},
    {"norm", CVY_TYPE_CHOICE, CVY_FIELD(unet, norm), "batch", "none|batch|group|instance", "",
     "normalisation after each convolution of a block"},
    {"groups", CVY_TYPE_INT, CVY_FIELD(unet, groups), "8", "1..", "", "groups of channels of norm: group"},
    {"up", CVY_TYPE_CHOICE, CVY_FIELD(unet, up), "deconv", "deconv|resize", "",
     "how a level is enlarged: by a transposed convolution, or by a 1x1 convolution and linear interpolation"},
    {"residual", CVY_TYPE_BOOL, CVY_FIELD(unet, residual), "false", "", "",
     "add the source of each block to its result"},
    {"attention", CVY_TYPE_BOOL, CVY_FIELD(unet, attention), "false", "", "",
     "weigh the joined blocks by additive attention gates"},
    {0},
};

/* ---- sizes ---- */

/* Writes the spatial dimensions, each rounded to a multiple of `step`, upwards or downwards: "96x112". */
static cvy_label sizes(const cvy_shape *input, int64_t step, int upwards)
{
    cvy_shape s = {.ndim = input->ndim - 1};
    for (int d = 0; d < s.ndim; d++)
        s.dim[d] = (input->dim[d + 1] + (upwards ? step - 1 : 0)) / step * step;
    return cvy_labelf("%s", cvy_shape_text(&s));
}

static cvy_status check_input(const struct unet *o, const cvy_shape *input)
{
    const int nspace = input->ndim - 1;
    const int64_t step = (int64_t)1 << o->depth;
    CVY_CHECK(nspace == 2 || nspace == 3, CVY_E_SHAPE, "it needs samples [C, H, W] or [C, D, H, W], the input is %s",
              cvy_shape_text(input));
    CVY_CHECK(o->dimensions == DIMENSIONS_AUTO || nspace == o->dimensions - DIMENSIONS_2 + 2, CVY_E_SHAPE,
              "`dimensions` is %d, but the input %s has %d", o->dimensions - DIMENSIONS_2 + 2, cvy_shape_text(input),
              nspace);
    CVY_CHECK(o->norm != NORM_GROUP || o->filters % o->groups == 0, CVY_E_CONFIG,
              "`groups` %lld must divide `filters` %lld", (long long)o->groups, (long long)o->filters);
    int fits = 1, is_below = 1;
    for (int d = 1; d <= nspace; d++) {
        fits = fits && input->dim[d] % step == 0;
        is_below = is_below && input->dim[d] >= step;
    }
    if (fits)
        return CVY_OK;
    const cvy_label has = sizes(input, 1, 0), above = sizes(input, step, 1), below = sizes(input, step, 0);
    return cvy_error_set(CVY_E_SHAPE,
                         "depth %lld halves each dimension %lld times, so sizes must be multiples of %lld, and the "
                         "input has %s; the next sizes that fit are %s%s%s: crop or pad the samples, or take a smaller "
                         "depth",
                         (long long)o->depth, (long long)o->depth, (long long)step, has.text, above.text,
                         is_below ? " and " : "", is_below ? below.text : "");
}

/* ---- a block ---- */

static cvy_status conv(cvy_model *m, const cvy_label *name, const cvy_label *from, int64_t channels, int kernel,
                       int bias)
{
    return cvy_model_addf(m, "conv", name->text, from->text, "channels: %lld, kernel: %d, pad: %d%s",
                          (long long)channels, kernel, kernel / 2, bias ? "" : ", bias: false");
}

/* A convolution and its normalisation. */
static cvy_status conv_norm(cvy_model *m, const struct unet *o, const cvy_label *name, const cvy_label *from,
                            int64_t channels, int kernel)
{
    static const char *const op[] = {NULL, "batch_norm", "group_norm", "instance_norm"};
    const cvy_label groups = cvy_labelf("groups: %lld", (long long)o->groups);
    CVY_TRY(conv(m, name, from, channels, kernel, o->norm == NORM_NONE));
    if (o->norm == NORM_NONE)
        return CVY_OK;
    return cvy_model_add(m, op[o->norm], cvy_labelf("%s_norm", name->text).text,
                         o->norm == NORM_GROUP      ? groups.text
                         : o->norm == NORM_INSTANCE ? "scale_shift: true"
                                                    : NULL,
                         NULL);
}

/* Two convolutions; the result is the layer `name`. c_in: the channels before it. */
static cvy_status block(cvy_model *m, const struct unet *o, const char *name, int64_t c_in, int64_t channels)
{
    const cvy_label from = cvy_model_here(m), a = cvy_labelf("%s_a", name), b = cvy_labelf("%s_b", name),
                    projection = cvy_labelf("%s_short", name);
    CVY_TRY(conv_norm(m, o, &a, &from, channels, 3));
    CVY_TRY(cvy_model_add(m, "relu", cvy_labelf("%s_relu", a.text).text, NULL, NULL));
    const cvy_label middle = cvy_model_here(m);
    CVY_TRY(conv_norm(m, o, &b, &middle, channels, 3));
    if (o->residual) {
        const cvy_label result = cvy_model_here(m);
        cvy_label shortcut = from;
        if (c_in != channels) {
            CVY_TRY(conv_norm(m, o, &projection, &from, channels, 1));
            shortcut = cvy_model_here(m);
        }
        CVY_TRY(cvy_model_add(m, "add", cvy_labelf("%s_add", name).text, NULL,
                              cvy_labelf("%s, %s", result.text, shortcut.text).text));
    }
    return cvy_model_add(m, "relu", name, NULL, NULL);
}

/* ---- the way back ---- */

/* The layer that was added last, [channels, size...], with each dimension doubled by linear interpolation; the result
 * is the layer `name`. A volume is enlarged along rows and columns, and then along its first dimension, in pictures
 * [channels * D, H, W] and [channels, D, 4 * H * W]: linear interpolation in three dimensions is a product of both. */
static cvy_status enlarge(cvy_model *m, const char *name, int64_t channels, const cvy_shape *size)
{
    static const char both[] = "scale: 2, mode: bilinear", first[] = "scale: [2, 1], mode: bilinear";
    if (size->ndim == 2)
        return cvy_model_add(m, "resize", name, both, NULL);
    const long long C = channels, D = size->dim[0], H = size->dim[1], W = size->dim[2];
    CVY_TRY(cvy_model_addf(m, "reshape", cvy_labelf("%s_planes", name).text, NULL, "shape: [%lld, %lld, %lld]", C * D,
                           H, W));
    CVY_TRY(cvy_model_add(m, "resize", cvy_labelf("%s_rows", name).text, both, NULL));
    CVY_TRY(cvy_model_addf(m, "reshape", cvy_labelf("%s_stack", name).text, NULL, "shape: [%lld, %lld, %lld]", C, D,
                           4 * H * W));
    CVY_TRY(cvy_model_add(m, "resize", cvy_labelf("%s_depth", name).text, first, NULL));
    return cvy_model_addf(m, "reshape", name, NULL, "shape: [%lld, %lld, %lld, %lld]", C, 2 * D, 2 * H, 2 * W);
}

/* The block `skip` of a level, weighed by the coarser level `gate` of half its size; the result is the layer
 * "gate<level>". */
static cvy_status attend(cvy_model *m, int level, const cvy_label *skip, const cvy_label *gate, int64_t channels,
                         const cvy_shape *half)
{
    const cvy_label name = cvy_labelf("gate%d", level), x = cvy_labelf("%s_x", name.text),
                    g = cvy_labelf("%s_g", name.text), sum = cvy_labelf("%s_sum", name.text),
                    psi = cvy_labelf("%s_psi", name.text), weight = cvy_labelf("%s_weight", name.text);
    const int64_t inner = CVY_MAX(channels / 2, 1);
    CVY_TRY(cvy_model_addf(m, "conv", x.text, skip->text, "channels: %lld, kernel: 2, stride: 2, bias: false",
                           (long long)inner));
    CVY_TRY(conv(m, &g, gate, inner, 1, 1));
    CVY_TRY(cvy_model_add(m, "add", sum.text, NULL, cvy_labelf("%s, %s", x.text, g.text).text));
    CVY_TRY(cvy_model_add(m, "relu", cvy_labelf("%s_relu", name.text).text, NULL, NULL));
    CVY_TRY(cvy_model_add(m, "conv", psi.text, "channels: 1, kernel: 1, init: xavier", NULL));
    CVY_TRY(cvy_model_add(m, "sigmoid", cvy_labelf("%s_sigmoid", name.text).text, NULL, NULL));
    CVY_TRY(enlarge(m, weight.text, 1, half));
    return cvy_model_add(m, "multiply", name.text, NULL, cvy_labelf("%s, %s", skip->text, weight.text).text);
}

/* From the coarser level, which was added last, to this one. half: the size of the coarser level. */
static cvy_status decode(cvy_model *m, const struct unet *o, int level, int64_t channels, const cvy_shape *half)
{
    const cvy_label coarse = cvy_model_here(m), name = cvy_labelf("up%d", level),
                    larger = cvy_labelf("%s_larger", name.text), mix = cvy_labelf("%s_mix", name.text);
    cvy_label skip = cvy_labelf("down%d", level);
    if (o->attention) {
        const cvy_label whole = skip;
        CVY_TRY(attend(m, level, &whole, &coarse, channels, half));
        skip = cvy_model_here(m);
    }
    if (o->up == UP_DECONV) {
        CVY_TRY(cvy_model_addf(m, "deconv", larger.text, coarse.text, "channels: %lld, kernel: 2, stride: 2",
                               (long long)channels));
    } else {
        /* The 1x1 convolution comes first: both are linear, so the result is the same, for fewer positions. */
        CVY_TRY(conv(m, &mix, &coarse, channels, 1, 1));
        CVY_TRY(enlarge(m, larger.text, channels, half));
    }
    CVY_TRY(cvy_model_add(m, "concat", cvy_labelf("%s_join", name.text).text, NULL,
                          cvy_labelf("%s, %s", skip.text, larger.text).text));
    return block(m, o, name.text, 2 * channels, channels);
}

static cvy_status unet_build(cvy_model *m, const cvy_model_ask *ask)
{
    const struct unet *o = ask->options;
    const int depth = (int)o->depth;
    int64_t channels = ask->input->dim[0];
    CVY_TRY(check_input(o, ask->input));
    for (int level = 1; level <= depth; level++) {
        const int64_t wider = o->filters << (level - 1);
        CVY_TRY(block(m, o, cvy_labelf("down%d", level).text, channels, wider));
        CVY_TRY(cvy_model_add(m, "max_pool", cvy_labelf("pool%d", level).text, "kernel: 2", NULL));
        channels = wider;
    }
    CVY_TRY(block(m, o, "bottom", channels, o->filters << depth));
    for (int level = depth; level >= 1; level--) {
        cvy_shape half = {.ndim = ask->input->ndim - 1};
        for (int d = 0; d < half.ndim; d++)
            half.dim[d] = ask->input->dim[d + 1] >> level;
        CVY_TRY(decode(m, o, level, o->filters << (level - 1), &half));
    }
    return cvy_model_addf(m, "conv", "head", NULL, "channels: %lld, kernel: 1, init: xavier", (long long)ask->classes);
}

CVY_MODEL_DEFINE(unet) = {
    .name = "unet",
    .summary = "U-Net for maps and volumes, with an output for each position",
    .source = "Ronneberger et al. 2015",
    .options = unet_opts,
    .options_size = sizeof(struct unet),
    .input = {3, {1, 256, 256}},
    .classes = 2,
    .is_map = 1,
    .build = unet_build,
};
