/*
 * exchange_build.c: builds the model and the graph of a foreign network; see exchange_build.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "exchange/exchange_build.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cvy_status cvy_build_open(cvy_build *b, const char *path, cvy_import *out)
{
    const cvy_graph_opts one = {
        .name = "import", .batch = {.global_n = 1, .local_n = 1}, .dtype = CVY_DTYPE_F32, .bn_group = 1};
    *b = (cvy_build){.path = path, .out = out};
    CVY_TRY(cvy_vars_create(&b->vars));
    return cvy_graph_create(b->vars, &one, &b->graph);
}

void cvy_build_close(cvy_build *b)
{
    cvy_graph_destroy(&b->graph);
    cvy_vars_destroy(&b->vars);
    cvy_mem_free(&b->value);
    cvy_index_free(&b->named);
    cvy_index_free(&b->set);
    cvy_index_free(&b->wished);
    cvy_mem_free(&b->suffix);
}

cvy_status cvy_build_input(cvy_build *b, const char *name, cvy_dtype dtype, const cvy_shape *sample)
{
    cvy_value *feed = NULL;
    CVY_TRY(cvy_model_add_input(b->out->model, name, dtype, sample));
    return cvy_graph_feed(b->graph, name, dtype, sample, 0, &feed);
}

cvy_value *cvy_build_value(const cvy_build *b, const char *output)
{
    const int at = cvy_index_find(&b->out->model->layer_at, output);
    return at >= 0 ? b->value[at] : cvy_graph_find(b->graph, output);
}

/* ---- names ---- */

cvy_status cvy_build_clean(cvy_pool *pool, const char *name, size_t bytes, char **out)
{
    enum { LONGEST = 100 };
    char *text = NULL;
    CVY_TRY(cvy_pool_printf(pool, out, "%.*s", (int)CVY_MIN(bytes, (size_t)LONGEST), name));
    if (!**out)
        CVY_TRY(cvy_pool_strdup(pool, "layer", out));
    for (text = *out; *text; text++)
        *text = *text == '/' ? '.' : isalnum((unsigned char)*text) || strchr("._-", *text) ? *text : '_';
    return CVY_OK;
}

int cvy_build_is_taken(const cvy_build *b, const char *name)
{
    static const char *const fields[] = {"x", "y", "label", CVY_SAMPLE_WEIGHT, "sample_id"};
    const cvy_model *m = b->out->model;
    for (int i = 0; i < CVY_COUNT(fields); i++)
        if (strcmp(fields[i], name) == 0)
            return 1;
    for (int i = 0; i < m->ninput; i++)
        if (strcmp(m->input[i].name, name) == 0)
            return 1;
    return cvy_index_find(&m->layer_at, name) >= 0 || cvy_index_find(&b->named, name) >= 0;
}

/* Many layers may have one name: the search goes on where the last one ended. */
cvy_status cvy_build_free_name(cvy_build *b, const char *wish, const char **out)
{
    char *name = NULL;
    CVY_TRY(cvy_pool_strdup(b->out->pool, wish, &name));
    if (cvy_build_is_taken(b, name)) {
        int at = cvy_index_find(&b->wished, name);
        if (at < 0) {
            at = b->wished.count;
            CVY_TRY(cvy_mem_reserve(&b->suffix, &b->suffix_room, at, sizeof *b->suffix));
            CVY_TRY(cvy_index_add(&b->wished, name, at));
            b->suffix[at] = 1;
        }
        do
            CVY_TRY(cvy_pool_printf(b->out->pool, &name, "%s_%d", wish, ++b->suffix[at]));
        while (cvy_build_is_taken(b, name));
    }
    *out = name;
    return CVY_OK;
}

/* ---- numbers ---- */

double cvy_build_decimal(double value)
{
    char text[40];
    double shortest = value;
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        shortest = strtod(text, NULL);
        if ((float)shortest == (float)value)
            break;
    }
    return shortest;
}

/* ---- layers ---- */

static cvy_status check_size(const cvy_build *b, const char *where, const cvy_shape *shape)
{
    int64_t elems = 1;
    for (int d = 1; d < shape->ndim; d++) {
        CVY_CHECK(shape->dim[d] <= CVY_BUILD_ELEMS / elems, CVY_E_UNSUPPORTED, "%s: %s: its result %s is too large",
                  b->path, where, cvy_shape_text(shape));
        elems *= CVY_MAX(shape->dim[d], (int64_t)1);
    }
    return CVY_OK;
}

cvy_status cvy_build_add(cvy_build *b, const cvy_build_layer *layer)
{
    cvy_model *m = b->out->model;
    const cvy_op_def *op = NULL;
    cvy_tree *options = NULL;
    cvy_value *src[CVY_NODE_SRC_MAX] = {0};
    char *text = NULL;
    cvy_status status = cvy_model_find_layer(m, layer->op, &op);
    CVY_TRY(status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s: %s", b->path, layer->where));
    if (layer->options && *layer->options) {
        CVY_TRY(cvy_pool_printf(m->pool, &text, "{%s}", layer->options));
        CVY_TRY(cvy_tree_parse_text(m->pool, b->path, text, strlen(text), &options));
    }
    for (int i = 0; i < layer->nfrom; i++)
        src[i] = cvy_build_value(b, layer->from[i]);
    CVY_TRY(cvy_mem_reserve(&b->value, &b->room, m->nlayer, sizeof *b->value));
    CVY_TRY(cvy_model_add_tree(m, op, layer->name, options, layer->output, (char *const *)(uintptr_t)layer->from,
                               layer->nfrom));
    if (strcmp(layer->name, layer->output) != 0)
        CVY_TRY(cvy_index_add(&b->named, m->layer[m->nlayer - 1].name, 0));
    status = cvy_graph_layer_op(b->graph, op, layer->name, options, src, layer->nfrom, &b->value[m->nlayer - 1]);
    CVY_TRY(status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s: %s", b->path, layer->where));
    return check_size(b, layer->where, &b->value[m->nlayer - 1]->shape);
}

/* The old name stays taken. */
cvy_status cvy_build_rename_last(cvy_build *b, const char *free_name)
{
    cvy_model *m = b->out->model;
    cvy_layer *last = &m->layer[m->nlayer - 1];
    char *name = NULL;
    CVY_TRY(cvy_pool_strdup(m->pool, free_name, &name));
    CVY_TRY(cvy_index_add(&m->layer_at, name, m->nlayer - 1));
    last->name = last->output = name;
    return CVY_OK;
}

int cvy_build_holds(const cvy_build *b, const char *variable, cvy_dtype dtype, const void *data)
{
    const int at = cvy_index_find(&b->set, variable);
    const cvy_tensor_entry *t = at >= 0 ? &b->out->tensor[at] : NULL;
    const size_t bytes = t ? (size_t)cvy_shape_elems(&t->shape) * cvy_dtype_bytes(t->dtype) : 0;
    return t && t->dtype == dtype && (t->data == data || memcmp(t->data, data, bytes) == 0);
}

cvy_status cvy_build_set(cvy_build *b, const char *where, const char *layer, const char *parameter, cvy_dtype dtype,
                         const void *data, int64_t elems)
{
    char *name = NULL;
    CVY_TRY(cvy_pool_printf(b->out->pool, &name, "%s%s%s", layer, *parameter ? "." : "", parameter));
    const cvy_variable *v = cvy_vars_find(b->vars, name);
    if (cvy_index_find(&b->set, name) >= 0)
        return CVY_OK;
    CVY_CHECK(v, CVY_E_INTERNAL, "%s has no variable %s", where, name);
    CVY_CHECK(cvy_shape_elems(&v->shape) == elems, CVY_E_SHAPE, "%s: %s: %s has %lld elements, expected %lld, %s",
              b->path, where, parameter, (long long)elems, (long long)cvy_shape_elems(&v->shape),
              cvy_shape_text(&v->shape));
    CVY_TRY(cvy_index_add(&b->set, name, b->out->ntensor));
    return cvy_import_add_tensor(b->out, &(cvy_tensor_entry){name, dtype, v->shape, data});
}
