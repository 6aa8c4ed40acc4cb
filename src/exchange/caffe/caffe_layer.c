/*
 * caffe_layer.c: the blobs that Caffe's layers read, the layers of ours that they become, and the variables that these
 * share; see caffe.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "exchange/caffe/caffe.h"

enum { DECLINED_MAX = 50, PARAMS_MAX = 4 };

cvy_status cvy_caffe_decline(const cvy_caffe_layer *layer, const char *fmt, ...)
{
    char text[400];
    cvy_caffe *x = layer->x;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (x->ndeclined < DECLINED_MAX)
        cvy_text_add(&x->declined, "%s%s: %s", x->ndeclined ? "; " : "", layer->where, text);
    else if (x->ndeclined == DECLINED_MAX)
        cvy_text_add(&x->declined, "; and more");
    x->ndeclined++;
    return CVY_NOT_APPLICABLE;
}

/* ---- blobs ---- */

cvy_status cvy_caffe_compared(const cvy_caffe_layer *layer, size_t i, const char *output, const char **out)
{
    cvy_caffe *x = layer->x;
    CVY_CHECK(i < layer->p->n_bottom, CVY_E_FORMAT, "%s: %s has %zu bottoms, expected at least %zu", x->build.path,
              layer->where, layer->p->n_bottom, i + 1);
    cvy_caffe_blob *blob = &x->blob[cvy_keys_find(&x->names, layer->p->bottom[i])];
    if (blob->awaits)
        CVY_TRY(cvy_caffe_add_awaited(layer, output ? cvy_caffe_shape(layer, output) : NULL, blob));
    *out = blob->output;
    return CVY_OK;
}

cvy_status cvy_caffe_bottom(const cvy_caffe_layer *layer, size_t i, const char **out)
{
    return cvy_caffe_compared(layer, i, NULL, out);
}

const cvy_shape *cvy_caffe_shape(const cvy_caffe_layer *layer, const char *output)
{
    return &cvy_build_value(&layer->x->build, output)->shape;
}

/* Intermediate layers keep "<layer>.<operator>"; the last one is what users mean by the name of the Caffe layer. */
static cvy_status name_last(const cvy_caffe_layer *layer, size_t i, const char **output)
{
    cvy_caffe *x = layer->x;
    const cvy_model *m = x->build.out->model;
    char *name = (char *)(uintptr_t)layer->name;
    if (x->unnamed < 0 || x->unnamed != m->nlayer - 1 || strcmp(m->layer[x->unnamed].output, *output) != 0)
        return CVY_OK;
    if (layer->p->n_top > 1 && i < layer->p->n_top)
        CVY_TRY(cvy_build_clean(x->build.out->pool, layer->p->top[i], strlen(layer->p->top[i]), &name));
    x->unnamed = -1;
    CVY_TRY(cvy_build_free_name(&x->build, name, output));
    return cvy_build_rename_last(&x->build, *output);
}

cvy_status cvy_caffe_done(const cvy_caffe_layer *layer, size_t i, const char *output)
{
    const cvy_caffe *x = layer->x;
    CVY_TRY(name_last(layer, i, &output));
    if (i < layer->p->n_top)
        x->blob[cvy_keys_find(&x->names, layer->p->top[i])].output = output;
    return CVY_OK;
}

cvy_status cvy_caffe_axis(const cvy_caffe_layer *layer, int64_t axis, int ndim, int *out)
{
    const int64_t at = axis < 0 ? axis + ndim : axis;
    CVY_CHECK(at >= 0 && at < ndim, CVY_E_FORMAT, "%s: %s: axis %lld of a blob with %d dimensions",
              layer->x->build.path, layer->where, (long long)axis, ndim);
    CVY_CAFFE_CHECK(at > 0, layer, "axis %lld is that of the samples, which are independent of each other",
                    (long long)axis);
    *out = (int)at;
    return CVY_OK;
}

static int reads(const Cvy__Caffe__LayerParameter *p, const char *blob)
{
    for (size_t i = 0; i < p->n_bottom; i++)
        if (strcmp(p->bottom[i], blob) == 0)
            return 1;
    return 0;
}

static int makes(const Cvy__Caffe__LayerParameter *p, const char *blob)
{
    for (size_t i = 0; i < p->n_top; i++)
        if (strcmp(p->top[i], blob) == 0)
            return 1;
    return 0;
}

int cvy_caffe_reader(const cvy_caffe_layer *layer)
{
    const Cvy__Caffe__NetParameter *net = layer->x->net;
    int found = -1;
    for (size_t i = layer->at + 1; layer->p->n_top == 1 && i < net->n_layer; i++) {
        if (reads(net->layer[i], layer->p->top[0])) {
            if (found >= 0)
                return -1;
            found = (int)i;
        }
        if (makes(net->layer[i], layer->p->top[0])) /* later layers of this name read another value */
            return found;
    }
    return found;
}

/* ---- shared variables ---- */

/* By what a layer is found that has the same variables: "conv w b"; NULL: none of its parameters has a name. */
static cvy_status sharing_key(const cvy_caffe_layer *layer, const char *op, int nparam, char **out)
{
    cvy_pool *pool = layer->x->build.out->pool;
    int named = 0;
    CVY_TRY(cvy_pool_strdup(pool, op, out));
    for (int i = 0; i < nparam; i++) {
        const char *name = (size_t)i < layer->p->n_param ? layer->p->param[i]->name : NULL;
        named |= name && *name;
        CVY_TRY(cvy_pool_printf(pool, out, "%s %s", *out, name ? name : ""));
    }
    if (!named)
        *out = NULL;
    return CVY_OK;
}

/* Variables are shared if two layers of one kind have the same names for all of their parameters. */
static cvy_status check_shared(const cvy_caffe_layer *layer, const char *key, int nparam)
{
    cvy_caffe *x = layer->x;
    for (int i = 0; i < nparam && (size_t)i < layer->p->n_param; i++) {
        const char *name = layer->p->param[i]->name;
        const int before = x->shared.count;
        int at = 0;
        if (!name || !*name)
            continue;
        CVY_TRY(cvy_mem_reserve(&x->owner, &x->owner_room, before, sizeof *x->owner));
        CVY_TRY(cvy_keys_add(&x->shared, name, &at));
        if (at == before)
            x->owner[at] = key;
        CVY_CAFFE_CHECK(strcmp(x->owner[at], key) == 0, layer,
                        "it shares the parameter '%s' with a layer that has another type or other parameters; convoy's "
                        "layers share all of their variables or none",
                        name);
    }
    return CVY_OK;
}

/* ---- layers of ours ---- */

static cvy_status build(const cvy_caffe_layer *layer, const cvy_caffe_new_layer *added, const char *name,
                        const char *output)
{
    cvy_build_layer to = {.where = layer->where,
                          .op = added->op,
                          .options = added->options,
                          .name = name,
                          .output = output,
                          .nfrom = added->nfrom};
    memcpy(to.from, added->from, sizeof to.from);
    return cvy_build_add(&layer->x->build, &to);
}

cvy_status cvy_caffe_add(const cvy_caffe_layer *layer, const cvy_caffe_new_layer *added, const char **output_out)
{
    const char *output = NULL;
    char *wish = NULL;
    CVY_TRY(cvy_pool_printf(layer->x->build.out->pool, &wish, "%s.%s", layer->name, added->op));
    CVY_TRY(cvy_build_free_name(&layer->x->build, wish, &output));
    CVY_TRY(build(layer, added, output, output));
    layer->x->unnamed = layer->x->build.out->model->nlayer - 1;
    *output_out = output;
    return CVY_OK;
}

cvy_status cvy_caffe_add_trained(const cvy_caffe_layer *layer, const cvy_caffe_new_layer *added, int nparam,
                                 const char **name_out, const char **output_out)
{
    cvy_caffe *x = layer->x;
    const char *output = NULL;
    char *key = NULL;
    CVY_TRY(sharing_key(layer, added->op, CVY_MIN(nparam, (int)PARAMS_MAX), &key));
    if (key)
        CVY_TRY(check_shared(layer, key, nparam));
    CVY_TRY(cvy_build_free_name(&x->build, layer->name, &output));
    const int owner = key ? cvy_index_find(&x->group, key) : -1;
    const char *name = owner >= 0 ? x->build.out->model->layer[owner].name : output;
    CVY_TRY(build(layer, added, name, output));
    if (key && owner < 0)
        CVY_TRY(cvy_index_add(&x->group, key, x->build.out->model->nlayer - 1));
    *name_out = name;
    *output_out = output;
    return CVY_OK;
}

cvy_status cvy_caffe_has(const cvy_caffe_layer *layer, const Cvy__Caffe__LayerParameter *p, int blob, const char *name,
                         const char *parameter, cvy_caffe_use use)
{
    cvy_caffe *x = layer->x;
    CVY_TRY(cvy_mem_reserve(&x->param, &x->param_room, x->nparam, sizeof *x->param));
    x->param[x->nparam++] = (cvy_caffe_param){.of = p, .blob = blob, .use = use, .layer = name, .parameter = parameter};
    return CVY_OK;
}

void cvy_caffe_has_shape(const cvy_caffe_layer *layer, const cvy_shape *shape)
{
    cvy_caffe_param *last = &layer->x->param[layer->x->nparam - 1];
    last->has_shape = 1;
    last->shape = *shape;
}

cvy_status cvy_caffe_then(const cvy_caffe_layer *layer, const char **at, const char *op, const char *fmt, ...)
{
    char options[512];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(options, sizeof options, fmt, args);
    va_end(args);
    CVY_CHECK(n >= 0 && n < (int)sizeof options, CVY_E_INTERNAL, "%s: its options are too long", layer->where);
    return cvy_caffe_add(layer, &(cvy_caffe_new_layer){.op = op, .options = options, .from = {*at}, .nfrom = 1}, at);
}

cvy_status cvy_caffe_list(const cvy_caffe_layer *layer, const int64_t *at, int n, const char **out)
{
    cvy_text text = {0};
    char *list = NULL;
    cvy_text_add_ints(&text, at, n);
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_pool_strdup(layer->x->build.out->pool, text.data, &list);
    cvy_text_free(&text);
    *out = list;
    return status;
}

cvy_status cvy_caffe_axes_from(const cvy_caffe_layer *layer, int first, int ndim, const char **out)
{
    int64_t axis[CVY_NDIM_MAX];
    int n = 0;
    for (int d = first; d < ndim && n < CVY_NDIM_MAX; d++)
        axis[n++] = d;
    return cvy_caffe_list(layer, axis, n, out);
}

cvy_status cvy_caffe_simple(const cvy_caffe_layer *layer, const char *op, const char *options)
{
    const char *at = NULL;
    CVY_TRY(cvy_caffe_bottom(layer, 0, &at));
    CVY_TRY(cvy_caffe_then(layer, &at, op, "%s", options ? options : ""));
    return cvy_caffe_done(layer, 0, at);
}

/* ---- fillers ---- */

cvy_status cvy_caffe_constant(const cvy_caffe_layer *layer, const char *what, const Cvy__Caffe__FillerParameter *filler,
                              double fallback, double *out)
{
    *out = filler ? CVY_CAFFE_REAL(filler->value) : fallback;
    CVY_CAFFE_CHECK(!filler || strcmp(filler->type, "constant") == 0, layer,
                    "%s is filled by '%s'; convoy begins it with a constant", what, filler->type);
    return CVY_OK;
}

/* The number by which the variance is divided. */
static double fan_of(const Cvy__Caffe__FillerParameter *f, const cvy_caffe_fans *fans)
{
    return f->variance_norm == CVY__CAFFE__FILLER_PARAMETER__VARIANCE_NORM__FAN_OUT ? (double)fans->out
           : f->variance_norm == CVY__CAFFE__FILLER_PARAMETER__VARIANCE_NORM__AVERAGE
               ? (double)(fans->in + fans->out) / 2
               : (double)fans->in;
}

static void fill_gaussian(const Cvy__Caffe__FillerParameter *f, const cvy_caffe_fans *fans, cvy_text *to)
{
    cvy_text_add(to, ", init: gaussian, init_options: \"std: %.9g", CVY_CAFFE_REAL(f->std));
    if (f->mean != 0)
        cvy_text_add(to, ", mean: %.9g", CVY_CAFFE_REAL(f->mean));
    if (f->sparse >= 0)
        cvy_text_add(to, ", nonzero: %.17g", CVY_MIN((double)f->sparse / (double)fans->first, 1));
    cvy_text_add(to, "\"");
}

cvy_status cvy_caffe_fill(const cvy_caffe_layer *layer, const Cvy__Caffe__FillerParameter *f,
                          const cvy_caffe_fans *fans, cvy_text *to)
{
    static const char *const by[] = {"in", "out", "average"};
    if (!f) {
        if (layer->x->has_losses)
            cvy_text_add(to, ", init: constant, init_options: \"value: 0\"");
        return to->status;
    }
    const char *by_word = by[f->variance_norm];
    if (strcmp(f->type, "constant") == 0)
        cvy_text_add(to, ", init: constant, init_options: \"value: %.9g\"", CVY_CAFFE_REAL(f->value));
    else if (strcmp(f->type, "uniform") == 0)
        cvy_text_add(to, ", init: uniform, init_options: \"min: %.9g, max: %.9g\"", CVY_CAFFE_REAL(f->min),
                     CVY_CAFFE_REAL(f->max));
    else if (strcmp(f->type, "gaussian") == 0)
        fill_gaussian(f, fans, to);
    else if (strcmp(f->type, "xavier") == 0 && fans->same)
        cvy_text_add(to, ", init: xavier, init_options: \"fan: %s\"", by_word);
    else if (strcmp(f->type, "xavier") == 0)
        cvy_text_add(to, ", init: uniform, init_options: \"min: %.17g, max: %.17g\"", -sqrt(3 / fan_of(f, fans)),
                     sqrt(3 / fan_of(f, fans)));
    else if (strcmp(f->type, "msra") == 0 && fans->same)
        cvy_text_add(to, ", init: he, init_options: \"fan: %s\"", by_word);
    else if (strcmp(f->type, "msra") == 0)
        cvy_text_add(to, ", init: gaussian, init_options: \"std: %.17g\"", sqrt(2 / fan_of(f, fans)));
    else if (strcmp(f->type, "positive_unitball") == 0)
        cvy_text_add(to, ", init: positive_unit_sum, init_options: \"inputs: %lld\"", (long long)fans->in);
    else if (strcmp(f->type, "bilinear") == 0 && fans->positions > 1)
        cvy_text_add(to, ", init: bilinear, init_options: \"positions: %lld\"", (long long)fans->positions);
    else
        return cvy_caffe_decline(layer,
                                 "the filler '%s' is not known here; there are constant, uniform, gaussian, "
                                 "xavier, msra, positive_unitball, and bilinear for filters",
                                 f->type);
    return to->status;
}
