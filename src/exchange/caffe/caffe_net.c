/*
 * caffe_net.c: reads a network of Caffe layer by layer; see caffe.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/caffe/caffe.h"

/* ---- what is declined ---- */

static cvy_status decline_type(const cvy_caffe_layer *layer, const char *type)
{
    enum { NAMES = 256 };
    const char *names[NAMES];
    int count = 0, n = 0;
    const cvy_caffe_def *const *table = cvy_caffe_table(&count);
    for (int i = 0; i < count && n < NAMES; i++)
        names[n++] = table[i]->name;
    const char *near = cvy_text_nearest(type, names, n);
    return cvy_caffe_decline(layer, "there is no such type of layer%s%s%s", near ? ", did you mean '" : "",
                             near ? near : "", near ? "'?" : "");
}

/* One message for all layers that were declined. */
static cvy_status report_declined(const cvy_caffe *x)
{
    CVY_TRY(x->declined.status);
    if (x->ndeclined == 0)
        return CVY_OK;
    return cvy_error_set(CVY_E_UNSUPPORTED, "%s: %d layer%s of Caffe %s not supported: %s", x->build.path, x->ndeclined,
                         x->ndeclined == 1 ? "" : "s", x->ndeclined == 1 ? "is" : "are", x->declined.data);
}

/* ---- layers ---- */

static cvy_status name_tops(cvy_caffe *x, const Cvy__Caffe__LayerParameter *p)
{
    for (size_t i = 0; i < p->n_top; i++) {
        const int before = x->names.count;
        int at = 0;
        CVY_TRY(cvy_mem_reserve(&x->blob, &x->blob_room, before, sizeof *x->blob));
        CVY_TRY(cvy_keys_add(&x->names, p->top[i], &at));
        if (at == before)
            x->blob[at] = (cvy_caffe_blob){0};
    }
    return CVY_OK;
}

/* What a declined layer should have made is not known to its readers. */
static void forget_tops(cvy_caffe *x, const Cvy__Caffe__LayerParameter *p)
{
    for (size_t i = 0; i < p->n_top; i++)
        x->blob[cvy_keys_find(&x->names, p->top[i])] = (cvy_caffe_blob){0};
}

static cvy_status check_bottoms(const cvy_caffe_layer *layer)
{
    const cvy_caffe *x = layer->x;
    for (size_t i = 0; i < layer->p->n_bottom; i++)
        if (cvy_keys_find(&x->names, layer->p->bottom[i]) < 0) {
            const char *near =
                cvy_text_nearest(layer->p->bottom[i], (const char *const *)x->names.text, x->names.count);
            CVY_FAIL(CVY_E_FORMAT, "%s: %s reads '%s', which no earlier layer of this phase makes%s%s%s", x->build.path,
                     layer->where, layer->p->bottom[i], near ? ", did you mean '" : "", near ? near : "",
                     near ? "'?" : "");
        }
    return CVY_OK;
}

/* Weights in the sum of losses make sense for losses only. */
static cvy_status check_loss_weight(const cvy_caffe_layer *layer)
{
    for (size_t i = layer->def->is_loss; i < layer->p->n_loss_weight; i++)
        CVY_CAFFE_CHECK(layer->p->loss_weight[i] == 0, layer,
                        "a loss_weight of %g for top %zu, which is no loss of convoy", (double)layer->p->loss_weight[i],
                        i);
    return CVY_OK;
}

static cvy_status translate(cvy_caffe_layer *layer)
{
    const Cvy__Caffe__LayerParameter *p = layer->p;
    const char *type = p->type ? p->type : "";
    char *name = NULL;
    layer->def = cvy_caffe_find(type);
    if (!layer->def)
        return decline_type(layer, type);
    if (layer->def->declined && (!layer->def->translate || p->n_bottom > 0))
        return cvy_caffe_decline(layer, "%s", layer->def->declined);
    for (size_t i = 0; i < p->n_bottom; i++) {
        const cvy_caffe_blob *blob = &layer->x->blob[cvy_keys_find(&layer->x->names, p->bottom[i])];
        if (!blob->output && !blob->awaits)
            return CVY_NOT_APPLICABLE; /* its source was declined */
    }
    CVY_TRY(check_loss_weight(layer));
    const char *wish = p->name && *p->name ? p->name : p->n_top > 0 && *p->top[0] ? p->top[0] : type;
    CVY_TRY(cvy_build_clean(layer->x->build.out->pool, wish, strlen(wish), &name));
    layer->name = name;
    return layer->def->same ? cvy_caffe_simple(layer, layer->def->same, NULL) : layer->def->translate(layer);
}

static cvy_status translate_all(cvy_caffe *x)
{
    for (size_t i = 0; i < x->net->n_layer; i++) {
        cvy_caffe_layer layer = {.x = x, .p = x->net->layer[i], .at = i};
        if (x->absorbed[i])
            continue;
        CVY_TRY(cvy_caffe_where(x->build.out->pool, layer.p, (char **)(uintptr_t)&layer.where));
        CVY_TRY(check_bottoms(&layer)); /* a layer does not read its own top, unless an earlier one has made it */
        CVY_TRY(name_tops(x, layer.p));
        const cvy_status status = translate(&layer);
        if (status == CVY_NOT_APPLICABLE)
            forget_tops(x, layer.p);
        else
            CVY_TRY(status);
    }
    return report_declined(x);
}

/* ---- the result ---- */

/* The input "x" is the first one. */
static void put_x_first(cvy_model *m)
{
    for (int i = 1; i < m->ninput; i++)
        if (strcmp(m->input[i].name, "x") == 0) {
            const cvy_model_input first = m->input[0];
            m->input[0] = m->input[i];
            m->input[i] = first;
        }
}

static void note_statistics(const cvy_caffe *x)
{
    cvy_import *out = x->build.out;
    int n = 0;
    for (int i = 0; i < out->model->nlayer; i++)
        n += strcmp(out->model->layer[i].op->name, "batch_norm") == 0;
    if (n > 0 && !x->opts->test && !x->opts->weights)
        cvy_text_add(
            &out->notes,
            "the running statistics of %d BatchNorm layer%s begin at mean 0 and variance 1, those of Caffe with the "
            "first batch: evaluations in the first 1 / (1 - moving_average_fraction) steps differ\n",
            n, n == 1 ? "" : "s");
}

static cvy_status finish(cvy_caffe *x)
{
    cvy_model *m = x->build.out->model;
    CVY_CHECK(m->ninput > 0, CVY_E_UNSUPPORTED,
              "%s: no layer of this phase gives data: expected Data, ImageData, HDF5Data or Input", x->build.path);
    CVY_CHECK(m->nlayer > 0, CVY_E_FORMAT, "%s: no layer of this phase computes anything", x->build.path);
    put_x_first(m);
    note_statistics(x);
    if (x->main)
        CVY_TRY(cvy_pool_strdup(m->pool, x->main, &m->output));
    return x->build.out->notes.status;
}

static int has_losses(const Cvy__Caffe__NetParameter *net)
{
    for (size_t i = 0; i < net->n_layer; i++) {
        const cvy_caffe_def *def = net->layer[i]->type ? cvy_caffe_find(net->layer[i]->type) : NULL;
        if (def && def->is_loss)
            return 1;
    }
    return 0;
}

static cvy_status read_net(const char *path, const Cvy__Caffe__NetParameter *net, const cvy_caffe_opts *opts,
                           cvy_import *out, cvy_caffe_then_fn then, void *user)
{
    cvy_caffe x = {.net = net, .opts = opts, .has_losses = has_losses(net), .unnamed = -1};
    cvy_status status = CVY_OK;
    *out = (cvy_import){0};
    CVY_TRY_OUT(cvy_pool_create(&out->pool));
    CVY_TRY_OUT(cvy_model_create(net->name && *net->name ? net->name : "network", &out->model));
    CVY_TRY_OUT(cvy_build_open(&x.build, path, out));
    CVY_TRY_OUT(cvy_mem_alloc(net->n_layer + 1, &x.absorbed));
    CVY_TRY_OUT(translate_all(&x));
    CVY_TRY_OUT(finish(&x));
    CVY_TRY_OUT(cvy_caffe_make_groups(&x));
    if (opts->weights)
        CVY_TRY_OUT(cvy_caffe_read_weights(&x, opts->weights));
    if (then)
        CVY_TRY_OUT(then(&x, user));
    status = out->notes.status;
out:
    cvy_build_close(&x.build);
    cvy_keys_free(&x.names);
    cvy_keys_free(&x.shared);
    cvy_mem_free(&x.blob);
    cvy_mem_free(&x.param);
    cvy_mem_free(&x.owner);
    cvy_index_free(&x.group);
    cvy_mem_free(&x.absorbed);
    cvy_text_free(&x.declined);
    if (status != CVY_OK)
        cvy_import_free(out);
    return status;
}

cvy_status cvy_caffe_net_import(const char *path, const Cvy__Caffe__NetParameter *net, const cvy_caffe_opts *opts,
                                cvy_import *out)
{
    return read_net(path, net, opts, out, NULL, NULL);
}

cvy_status cvy_caffe_visit(const char *path, const cvy_caffe_opts *opts, cvy_import *out, cvy_caffe_then_fn then,
                           void *user)
{
    cvy_caffe_file file = {0};
    Cvy__Caffe__NetState state = CVY__CAFFE__NET_STATE__INIT;
    cvy_status status = CVY_OK;
    *out = (cvy_import){0};
    CVY_TRY(cvy_caffe_text_read(path, &cvy__caffe__net_parameter__descriptor, &file));
    Cvy__Caffe__NetParameter *net = (Cvy__Caffe__NetParameter *)(void *)file.message;
    state.phase = opts->test ? CVY__CAFFE__PHASE__TEST : CVY__CAFFE__PHASE__TRAIN;
    state.level = opts->level;
    state.n_stage = (size_t)opts->nstage;
    state.stage = (char **)(uintptr_t)opts->stage;
    status = cvy_caffe_upgrade(path, net);
    if (status == CVY_OK)
        status = cvy_caffe_select(path, &state, net);
    if (status == CVY_OK)
        status = read_net(path, net, opts, out, then, user);
    cvy_caffe_file_free(&file);
    return status;
}

cvy_status cvy_import_caffe(const char *path, const cvy_caffe_opts *opts, cvy_import *out)
{
    return cvy_caffe_visit(path, opts, out, NULL, NULL);
}
