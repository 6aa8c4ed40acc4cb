/*
 * caffe_upgrade.c: brings networks of Caffe into the newest form, and selects the layers of a phase;
 * see caffe_upgrade.h.
 *
 * V1 layers (`layers`, with an enum for the type) have the fields of LayerParameter under the same names, but for the
 * multipliers and names of parameters.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/caffe/caffe_upgrade.h"

#include <string.h>

enum { LAYERS_MAX = 16384 };

/* ---- V1 ---- */

static const char *type_name(Cvy__Caffe__V1LayerParameter__LayerType type)
{
    static const char *const names[] = {"",
                                        "Accuracy",
                                        "BNLL",
                                        "Concat",
                                        "Convolution",
                                        "Data",
                                        "Dropout",
                                        "EuclideanLoss",
                                        "Flatten",
                                        "HDF5Data",
                                        "HDF5Output",
                                        "Im2col",
                                        "ImageData",
                                        "InfogainLoss",
                                        "InnerProduct",
                                        "LRN",
                                        "MultinomialLogisticLoss",
                                        "Pooling",
                                        "ReLU",
                                        "Sigmoid",
                                        "Softmax",
                                        "SoftmaxWithLoss",
                                        "Split",
                                        "TanH",
                                        "WindowData",
                                        "Eltwise",
                                        "Power",
                                        "SigmoidCrossEntropyLoss",
                                        "HingeLoss",
                                        "MemoryData",
                                        "ArgMax",
                                        "Threshold",
                                        "DummyData",
                                        "Slice",
                                        "MVN",
                                        "AbsVal",
                                        "Silence",
                                        "ContrastiveLoss",
                                        "Exp",
                                        "Deconvolution"};
    const int at = (int)type;
    return at >= 0 && at < CVY_COUNT(names) ? names[at] : "";
}

/* Moves the value of a field, which both messages have with one type. */
static void move_field(ProtobufCMessage *from, const ProtobufCFieldDescriptor *f, ProtobufCMessage *to,
                       const ProtobufCFieldDescriptor *t)
{
    enum { NUMBER_BYTES = 4 }; /* V1 has no longer ones */
    const int is_list = f->label == PROTOBUF_C_LABEL_REPEATED;
    const int is_pointer = is_list || f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE;
    const size_t bytes = is_pointer ? sizeof(void *) : NUMBER_BYTES;
    const size_t count_bytes = is_list ? sizeof(size_t) : is_pointer ? 0 : sizeof(protobuf_c_boolean);
    memcpy((char *)to + t->offset, (const char *)from + f->offset, bytes);
    memcpy((char *)to + t->quantifier_offset, (const char *)from + f->quantifier_offset, count_bytes);
    memset((char *)from + f->offset, 0, bytes);
    memset((char *)from + f->quantifier_offset, 0, count_bytes);
}

/* Moves the fields that both forms have under the same name and type. `type` and `param` have other types. */
static void move_fields(ProtobufCMessage *from, ProtobufCMessage *to)
{
    for (unsigned i = 0; i < from->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &from->descriptor->fields[i];
        const ProtobufCFieldDescriptor *t = protobuf_c_message_descriptor_get_field_by_name(to->descriptor, f->name);
        if (t && t->type == f->type && t->label == f->label && t->descriptor == f->descriptor)
            move_field(from, f, to, t);
    }
}

/* V1 has the names, multipliers and modes of sharing in lists of their own. */
static cvy_status make_params(const Cvy__Caffe__V1LayerParameter *from, Cvy__Caffe__LayerParameter *to)
{
    const size_t n =
        CVY_MAX(CVY_MAX(from->n_param, from->n_blobs_lr), CVY_MAX(from->n_weight_decay, from->n_blob_share_mode));
    for (size_t i = 0; i < n; i++) {
        Cvy__Caffe__ParamSpec *spec = NULL;
        CVY_TRY(cvy_caffe_push(&to->param, &to->n_param, sizeof(void *)));
        CVY_TRY(cvy_caffe_new(&cvy__caffe__param_spec__descriptor, &spec));
        to->param[i] = spec;
        if (i < from->n_param && *from->param[i])
            CVY_TRY(cvy_caffe_strdup(from->param[i], &spec->name));
        if (i < from->n_blobs_lr) {
            spec->has_lr_mult = 1;
            spec->lr_mult = from->blobs_lr[i];
        }
        if (i < from->n_weight_decay) {
            spec->has_decay_mult = 1;
            spec->decay_mult = from->weight_decay[i];
        }
        if (i < from->n_blob_share_mode) {
            spec->has_share_mode = 1;
            spec->share_mode = from->blob_share_mode[i];
        }
    }
    return CVY_OK;
}

static cvy_status upgrade_v1(Cvy__Caffe__V1LayerParameter *from, Cvy__Caffe__LayerParameter *to)
{
    move_fields(&from->base, &to->base);
    CVY_TRY(cvy_caffe_strdup(type_name(from->type), &to->type));
    return make_params(from, to);
}

static cvy_status upgrade_layers(const char *path, Cvy__Caffe__NetParameter *net)
{
    if (net->n_layers == 0)
        return CVY_OK;
    CVY_CHECK(net->n_layer == 0, CVY_E_FORMAT,
              "%s has both `layers`, the older form, and `layer`, the newer one: use one of them", path);
    for (size_t i = 0; i < net->n_layers; i++) {
        CVY_CHECK(
            !net->layers[i]->layer, CVY_E_UNSUPPORTED,
            "%s: its layers have the form of Caffe before 2014, `layers { layer { ... } }`; upgrade_net_proto_text "
            "of Caffe 1.0, or upgrade_net_proto_binary for a caffemodel, writes it in the newer form",
            path);
        Cvy__Caffe__LayerParameter *to = NULL;
        CVY_TRY(cvy_caffe_push(&net->layer, &net->n_layer, sizeof(void *)));
        CVY_TRY(cvy_caffe_new(&cvy__caffe__layer_parameter__descriptor, &to));
        net->layer[i] = to;
        CVY_TRY(upgrade_v1(net->layers[i], to));
    }
    for (size_t i = 0; i < net->n_layers; i++)
        cvy__caffe__v1_layer_parameter__free_unpacked(net->layers[i], cvy_caffe_allocator());
    cvy_mem_free(&net->layers);
    net->n_layers = 0;
    return CVY_OK;
}

/* ---- the transformation of a data layer ---- */

struct transform {
    float scale;
    char *mean_file;
    uint32_t crop_size;
    int mirror, given;
};

static cvy_status set_transform(Cvy__Caffe__LayerParameter *layer, const struct transform *from)
{
    Cvy__Caffe__TransformationParameter *to = layer->transform_param;
    if (!from->given)
        return CVY_OK;
    if (!to) {
        CVY_TRY(cvy_caffe_new(&cvy__caffe__transformation_parameter__descriptor, &to));
        layer->transform_param = to;
    }
    to->has_scale = to->has_crop_size = to->has_mirror = 1;
    to->scale = from->scale;
    to->crop_size = from->crop_size;
    to->mirror = from->mirror;
    if (from->mean_file && !to->mean_file)
        CVY_TRY(cvy_caffe_strdup(from->mean_file, &to->mean_file));
    return CVY_OK;
}

static cvy_status upgrade_transform(Cvy__Caffe__LayerParameter *layer)
{
    const Cvy__Caffe__DataParameter *d = layer->data_param;
    const Cvy__Caffe__ImageDataParameter *p = layer->image_data_param;
    if (d)
        CVY_TRY(set_transform(layer,
                              &(struct transform){d->scale, d->mean_file, d->crop_size, d->mirror,
                                                  d->has_scale || d->mean_file || d->has_crop_size || d->has_mirror}));
    if (p)
        CVY_TRY(set_transform(layer,
                              &(struct transform){p->scale, p->mean_file, p->crop_size, p->mirror,
                                                  p->has_scale || p->mean_file || p->has_crop_size || p->has_mirror}));
    return CVY_OK;
}

/* ---- inputs ---- */

static cvy_status input_shape(const Cvy__Caffe__NetParameter *net, size_t i, Cvy__Caffe__BlobShape *to)
{
    const Cvy__Caffe__BlobShape *from = net->n_input_shape ? net->input_shape[i] : NULL;
    const size_t n = from ? from->n_dim : 4;
    for (size_t d = 0; d < n; d++) {
        CVY_TRY(cvy_caffe_push(&to->dim, &to->n_dim, sizeof *to->dim));
        to->dim[d] = from ? from->dim[d] : net->input_dim[4 * i + d];
    }
    return CVY_OK;
}

static cvy_status fill_input(const char *path, const Cvy__Caffe__NetParameter *net, Cvy__Caffe__LayerParameter *layer)
{
    const size_t n = net->n_input;
    CVY_CHECK(net->n_input_shape == n || (net->n_input_shape == 0 && (net->n_input_dim == 4 * n || !net->n_input_dim)),
              CVY_E_FORMAT,
              "%s has %zu `input`, with %zu input_shape and %zu input_dim; expected one shape or four input_dim "
              "for each",
              path, n, net->n_input_shape, net->n_input_dim);
    CVY_TRY(cvy_caffe_strdup("input", &layer->name));
    CVY_TRY(cvy_caffe_strdup("Input", &layer->type));
    CVY_TRY(cvy_caffe_new(&cvy__caffe__input_parameter__descriptor, &layer->input_param));
    for (size_t i = 0; i < n; i++) {
        Cvy__Caffe__InputParameter *to = layer->input_param;
        CVY_TRY(cvy_caffe_push(&layer->top, &layer->n_top, sizeof(void *)));
        CVY_TRY(cvy_caffe_strdup(net->input[i], &layer->top[i]));
        if (net->n_input_shape == 0 && net->n_input_dim == 0)
            continue;
        CVY_TRY(cvy_caffe_push(&to->shape, &to->n_shape, sizeof(void *)));
        CVY_TRY(cvy_caffe_new(&cvy__caffe__blob_shape__descriptor, &to->shape[i]));
        CVY_TRY(input_shape(net, i, to->shape[i]));
    }
    return CVY_OK;
}

/* The first layer that makes this blob without reading one, or NULL. */
static const Cvy__Caffe__LayerParameter *source_of(const Cvy__Caffe__NetParameter *net, const char *blob)
{
    for (size_t k = 0; k < net->n_layer; k++)
        for (size_t i = 0; i < net->layer[k]->n_top && net->layer[k]->n_bottom == 0; i++)
            if (strcmp(net->layer[k]->top[i], blob) == 0)
                return net->layer[k];
    return NULL;
}

/* Caffe leaves an `input` without a shape out. Here it is an input whose shape comes from elsewhere, unless a layer
 * makes the blob. */
static cvy_status drop_made_inputs(const char *path, Cvy__Caffe__NetParameter *net)
{
    const int has_shape = net->n_input_shape > 0 || net->n_input_dim > 0;
    size_t kept = 0;
    for (size_t i = 0; i < net->n_input; i++) {
        const Cvy__Caffe__LayerParameter *made = source_of(net, net->input[i]);
        CVY_CHECK(!made || !has_shape, CVY_E_FORMAT,
                  "%s: `input` gives '%s' a shape, and layer %s (%s) on line %u makes a blob of this name, too: remove "
                  "one of them",
                  path, net->input[i], made->name ? made->name : "", made->type ? made->type : "", made->convoy_line);
    }
    for (size_t i = 0; i < net->n_input; i++)
        if (source_of(net, net->input[i]))
            cvy_caffe_allocator()->free(NULL, net->input[i]);
        else
            net->input[kept++] = net->input[i];
    net->n_input = kept;
    return CVY_OK;
}

/* Puts a layer before all others. The array of a binary file has no room for more, so there is a new one. */
static cvy_status add_input(const char *path, Cvy__Caffe__NetParameter *net)
{
    Cvy__Caffe__LayerParameter **all = NULL;
    CVY_TRY(drop_made_inputs(path, net));
    if (net->n_input == 0)
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *all * (net->n_layer + 1), &all));
    if (net->n_layer > 0)
        memcpy(all + 1, net->layer, sizeof *all * net->n_layer);
    cvy_mem_free(&net->layer);
    net->layer = all;
    net->n_layer++;
    CVY_TRY(cvy_caffe_new(&cvy__caffe__layer_parameter__descriptor, &all[0]));
    return fill_input(path, net, all[0]);
}

cvy_status cvy_caffe_upgrade(const char *path, Cvy__Caffe__NetParameter *net)
{
    CVY_CHECK(net->n_layer <= LAYERS_MAX && net->n_layers <= LAYERS_MAX, CVY_E_FORMAT,
              "%s has %zu layers, the limit is %d", path, CVY_MAX(net->n_layer, net->n_layers), LAYERS_MAX);
    CVY_TRY(upgrade_layers(path, net));
    for (size_t i = 0; i < net->n_layer; i++)
        CVY_TRY(upgrade_transform(net->layer[i]));
    return add_input(path, net);
}

/* ---- the layers of a phase ---- */

static int has_stage(const Cvy__Caffe__NetState *state, const char *stage)
{
    for (size_t i = 0; i < state->n_stage; i++)
        if (strcmp(state->stage[i], stage) == 0)
            return 1;
    return 0;
}

static int meets(const Cvy__Caffe__NetState *state, const Cvy__Caffe__NetStateRule *rule)
{
    int met = (!rule->has_phase || rule->phase == state->phase) &&
              (!rule->has_min_level || state->level >= rule->min_level) &&
              (!rule->has_max_level || state->level <= rule->max_level);
    for (size_t i = 0; i < rule->n_stage; i++)
        met &= has_stage(state, rule->stage[i]);
    for (size_t i = 0; i < rule->n_not_stage; i++)
        met &= !has_stage(state, rule->not_stage[i]);
    return met;
}

static int meets_any(const Cvy__Caffe__NetState *state, Cvy__Caffe__NetStateRule *const *rule, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (meets(state, rule[i]))
            return 1;
    return 0;
}

cvy_status cvy_caffe_select(const char *path, const Cvy__Caffe__NetState *state, Cvy__Caffe__NetParameter *net)
{
    size_t kept = 0;
    for (size_t i = 0; i < net->n_layer; i++) {
        const Cvy__Caffe__LayerParameter *p = net->layer[i];
        CVY_CHECK(p->n_include == 0 || p->n_exclude == 0, CVY_E_FORMAT,
                  "%s: line %u: layer %s has rules to include and to exclude it; use one kind", path, p->convoy_line,
                  p->name ? p->name : "?");
    }
    for (size_t i = 0; i < net->n_layer; i++) {
        Cvy__Caffe__LayerParameter *p = net->layer[i];
        if (p->n_include ? meets_any(state, p->include, p->n_include) : !meets_any(state, p->exclude, p->n_exclude))
            net->layer[kept++] = p;
        else
            protobuf_c_message_free_unpacked(&p->base, cvy_caffe_allocator());
    }
    net->n_layer = kept;
    return CVY_OK;
}

cvy_status cvy_caffe_where(cvy_pool *pool, const Cvy__Caffe__LayerParameter *p, char **out)
{
    const char *name = p->name && *p->name ? p->name : p->n_top > 0 ? p->top[0] : "a layer without a name";
    const char *type = p->type && *p->type ? p->type : "no type";
    return p->has_convoy_line ? cvy_pool_printf(pool, out, "line %u: %s (%s)", p->convoy_line, name, type)
                              : cvy_pool_printf(pool, out, "%s (%s)", name, type);
}
