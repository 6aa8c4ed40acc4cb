/*
 * caffe_state.c: a solverstate of Caffe: the number of the step, and the history of the solver as states of ours.
 *
 * The history has an array for each blob that layers own, in the order of the layers; solvers with two states have all
 * first states before all second ones. Of layers with the blobs weight and bias it becomes the state of our optimiser.
 * Source: sgd_solver.cpp and net.cpp of Caffe.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/base_file.h"
#include "exchange/caffe/caffe_job.h"
#include "exchange/exchange_build.h"

typedef Cvy__Caffe__LayerParameter layer_parameter;
typedef Cvy__Caffe__SolverState solver_state;

/* ---- the blobs of a layer ---- */

/* The number of blobs that a layer has, whether or not they are trained. */
static int blobs_of(const layer_parameter *p)
{
    static const struct {
        const char *type;
        int count;
    } fixed[] = {{"BatchNorm", 3}, {"PReLU", 1}, {"Parameter", 1}};
    const char *type = p->type ? p->type : "";
    if (strcmp(type, "Convolution") == 0 || strcmp(type, "Deconvolution") == 0)
        return 1 + (!p->convolution_param || p->convolution_param->bias_term);
    if (strcmp(type, "InnerProduct") == 0)
        return 1 + (!p->inner_product_param || p->inner_product_param->bias_term);
    if (strcmp(type, "Embed") == 0)
        return 1 + (!p->embed_param || p->embed_param->bias_term);
    if (strcmp(type, "Scale") == 0)
        return (p->n_bottom == 1) + (p->scale_param && p->scale_param->bias_term);
    if (strcmp(type, "Bias") == 0)
        return p->n_bottom == 1;
    for (int i = 0; i < CVY_COUNT(fixed); i++)
        if (strcmp(type, fixed[i].type) == 0)
            return fixed[i].count;
    return 0;
}

/* Whether the blobs are weight and bias in our order of elements. */
static int has_weight_and_bias(const layer_parameter *p)
{
    const char *type = p->type ? p->type : "";
    const int is_transposed = p->inner_product_param && p->inner_product_param->transpose;
    return strcmp(type, "Convolution") == 0 || (strcmp(type, "InnerProduct") == 0 && !is_transposed);
}

/* Whether an earlier layer owns the parameter of this name. */
static int is_shared(const Cvy__Caffe__NetParameter *net, size_t layer, int blob)
{
    const layer_parameter *p = net->layer[layer];
    const char *name = (size_t)blob < p->n_param ? p->param[blob]->name : NULL;
    for (size_t i = 0; name && *name && i < layer; i++)
        for (size_t k = 0; k < net->layer[i]->n_param; k++)
            if (net->layer[i]->param[k]->name && strcmp(net->layer[i]->param[k]->name, name) == 0)
                return 1;
    return 0;
}

/* ---- states of ours ---- */

/* The names of the states of the optimisers that caffe_train.c chooses, in Caffe's order. */
static const char *const *states_of(const cvy_caffe_solver *s, const char *type)
{
    static const char *const sgd[] = {"momentum", NULL}, *const adagrad[] = {"square_sum", NULL},
                             *const rmsprop[] = {"square_avg", NULL},
                             *const adadelta[] = {"square_avg", "acc_delta", NULL},
                             *const adam[] = {"exp_avg", "exp_avg_sq", NULL}, *const none[] = {NULL};
    if (strcmp(type, "AdaGrad") == 0)
        return adagrad;
    if (strcmp(type, "RMSProp") == 0)
        return rmsprop;
    if (strcmp(type, "AdaDelta") == 0)
        return adadelta;
    if (strcmp(type, "Adam") == 0)
        return adam;
    return s->momentum > 0 ? sgd : none;
}

typedef struct history {
    const cvy_caffe_work *w;
    const solver_state *state;
    cvy_import_job *out;
    size_t each; /* number of blobs, and of arrays of one state */
    int taken, left;
} history;

static const cvy_tensor_entry *find_tensor(const cvy_import *import, const char *name)
{
    for (int i = 0; i < import->ntensor; i++)
        if (strcmp(import->tensor[i].name, name) == 0)
            return &import->tensor[i];
    return NULL;
}

/* Adds one array of the history as a state of the variable. */
static cvy_status add_state(history *h, const char *variable, const char *state, const Cvy__Caffe__BlobProto *blob)
{
    cvy_import *import = &h->out->import;
    const cvy_tensor_entry *weight = find_tensor(import, variable);
    const int is_double = blob->n_double_data > 0;
    const size_t n = is_double ? blob->n_double_data : blob->n_data;
    cvy_tensor_entry entry = {.dtype = is_double ? CVY_DTYPE_F64 : CVY_DTYPE_F32};
    char *name = NULL;
    void *data = NULL;
    if (!weight) {
        h->left++;
        return CVY_OK;
    }
    CVY_CHECK((int64_t)n == cvy_shape_elems(&weight->shape), CVY_E_SHAPE,
              "%s: the history of %s has %zu numbers, and the variable is %s: it is of another network", h->w->path,
              variable, n, cvy_shape_text(&weight->shape));
    CVY_TRY(cvy_pool_printf(import->pool, &name, "%s.%s", variable, state));
    CVY_TRY(cvy_pool_alloc(import->pool, n * cvy_dtype_bytes(entry.dtype) + 1, &data));
    memcpy(data, is_double ? (const void *)blob->double_data : blob->data, n * cvy_dtype_bytes(entry.dtype));
    entry.name = name;
    entry.shape = weight->shape;
    entry.data = data;
    h->taken++;
    return cvy_import_add_tensor(import, &entry);
}

/* The states of blob number `at` of the history, which is weight or bias of a layer. */
static cvy_status add_states(history *h, const char *const *states, const char *variable, size_t at)
{
    for (size_t k = 0; states[k]; k++)
        CVY_TRY(add_state(h, variable, states[k], h->state->history[k * h->each + at]));
    return CVY_OK;
}

static cvy_status add_layers(history *h, const char *const *states)
{
    static const char *const parameter[] = {"weight", "bias"};
    const Cvy__Caffe__NetParameter *net = h->w->train.net;
    size_t at = 0;
    for (size_t i = 0; i < net->n_layer; i++)
        for (int b = 0; b < blobs_of(net->layer[i]); b++) {
            char *layer = NULL, *variable = NULL;
            const char *name = net->layer[i]->name ? net->layer[i]->name : "";
            if (is_shared(net, i, b))
                continue;
            if (has_weight_and_bias(net->layer[i])) {
                CVY_TRY(cvy_build_clean(h->out->import.pool, name, strlen(name), &layer));
                CVY_TRY(cvy_pool_printf(h->out->import.pool, &variable, "%s.%s", layer, parameter[b]));
                CVY_TRY(add_states(h, states, variable, at));
            } else {
                h->left++;
            }
            at++;
        }
    return CVY_OK;
}

static size_t count_blobs(const Cvy__Caffe__NetParameter *net)
{
    size_t n = 0;
    for (size_t i = 0; i < net->n_layer; i++)
        for (int b = 0; b < blobs_of(net->layer[i]); b++)
            n += !is_shared(net, i, b);
    return n;
}

/* ---- the file ---- */

cvy_status cvy_caffe_open_state(cvy_caffe_work *w, const char *path, cvy_caffe_file *file, const char **weights)
{
    CVY_CHECK(w->solver.message, CVY_E_ARGUMENT, "%s is a network; a solverstate needs the solver that wrote it",
              w->path);
    CVY_CHECK(!cvy_data_has_suffix(path, ".h5"), CVY_E_UNSUPPORTED,
              "%s is in HDF5; convoy reads states of snapshot_format BINARYPROTO, and begins with a caffemodel "
              "(--weights) without a state",
              path);
    CVY_TRY(cvy_caffe_binary_read(path, &cvy__caffe__solver_state__descriptor, file));
    const solver_state *s = (const solver_state *)file->message;
    CVY_CHECK(s->has_iter && s->iter >= 0, CVY_E_FORMAT, "%s is no solverstate of Caffe: it has no number of a step",
              path);
    if (!*weights && s->learned_net && *s->learned_net)
        return cvy_caffe_find_file(w, file, s, "learned_net", s->learned_net, weights);
    CVY_CHECK(*weights, CVY_E_CONFIG, "%s names no caffemodel: give the weights of step %d, too (--weights)", path,
              s->iter);
    return CVY_OK;
}

cvy_status cvy_caffe_add_state(cvy_caffe_work *w, const cvy_caffe_file *file, const char *type, cvy_import_job *out)
{
    history h = {.w = w, .state = (const solver_state *)file->message, .out = out, .each = count_blobs(w->train.net)};
    const char *const *states = states_of(cvy_caffe_solver_of(w), type);
    size_t nstate = 0;
    while (states[nstate])
        nstate++;
    out->first_step = h.state->iter;
    if (nstate == 0)
        return CVY_OK;
    CVY_CHECK(h.state->n_history == nstate * h.each, CVY_E_SHAPE,
              "%s has %zu arrays of history, and the network has %zu blobs with %zu each: it is of another solver or "
              "network",
              file->path, h.state->n_history, h.each, nstate);
    CVY_TRY(add_layers(&h, states));
    if (h.left > 0)
        cvy_text_add(&w->notes, "%s: the history of %d blobs is taken; that of %d others begins at 0\n", file->path,
                     h.taken, h.left);
    return w->notes.status;
}
