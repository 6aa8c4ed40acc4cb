/*
 * model.c: builds a model, and makes a graph of it for a known batch.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/model.h"

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/text/base_table.h"
#include "base/text/base_text.h"
#include "context/context.h"
#include "op/loss/op_loss.h"

cvy_status cvy_model_create(const char *name, cvy_model **model_out)
{
    CVY_ENTRY();
    cvy_model *m = NULL;
    CVY_CHECK(model_out, CVY_E_ARGUMENT, "cvy_model_create() needs a place for the model");
    CVY_TRY(cvy_handle_alloc(CVY_HANDLE_MODEL, sizeof *m, &m));
    cvy_status status = cvy_pool_create(&m->pool);
    if (status == CVY_OK)
        status = cvy_pool_strdup(m->pool, name, &m->name);
    if (status != CVY_OK)
        cvy_model_destroy(&m);
    else
        *model_out = m;
    return status;
}

void cvy_model_destroy(cvy_model **model)
{
    CVY_ENTRY();
    if (!CVY_IS_LIVE_AT(MODEL, model))
        return;
    cvy_mem_free(&(*model)->input);
    cvy_mem_free(&(*model)->layer);
    cvy_mem_free(&(*model)->count);
    cvy_index_free(&(*model)->layer_at);
    cvy_pool_destroy(&(*model)->pool);
    cvy_handle_free(model);
}

static int is_input(const cvy_model *m, const char *name)
{
    for (int i = 0; i < m->ninput; i++)
        if (strcmp(m->input[i].name, name) == 0)
            return 1;
    return 0;
}

int cvy_model_knows(const cvy_model *m, const char *name)
{
    return is_input(m, name) || cvy_index_find(&m->layer_at, name) >= 0;
}

cvy_status cvy_model_add_input(cvy_model *m, const char *name, cvy_dtype dtype, const cvy_shape *sample_shape)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(MODEL, m));
    CVY_CHECK(name && sample_shape, CVY_E_ARGUMENT, "cvy_model_add_input() needs a name and the shape of a sample");
    CVY_CHECK(!cvy_model_knows(m, name), CVY_E_ARGUMENT, "model %s: the name '%s' is taken", m->name, name);
    CVY_CHECK(sample_shape->ndim >= 0 && sample_shape->ndim < CVY_NDIM_MAX, CVY_E_SHAPE,
              "input %s: %d dimensions per sample, at most %d", name, sample_shape->ndim, CVY_NDIM_MAX - 1);
    for (int d = 0; d < sample_shape->ndim; d++)
        CVY_CHECK(sample_shape->dim[d] > 0, CVY_E_SHAPE, "input %s: dimension %d of a sample is %lld", name, d,
                  (long long)sample_shape->dim[d]);
    CVY_CHECK((int)dtype >= 0 && dtype < CVY_DTYPE_COUNT, CVY_E_ARGUMENT,
              "input %s is of dtype number %d, which does not exist", name, (int)dtype);
    CVY_TRY(cvy_mem_reserve(&m->input, &m->input_room, m->ninput, sizeof *m->input));
    cvy_model_input *input = &m->input[m->ninput];
    CVY_TRY(cvy_pool_strdup(m->pool, name, &input->name));
    input->dtype = dtype;
    input->sample_shape = *sample_shape;
    m->ninput++;
    return CVY_OK;
}

const char *cvy_model_last(const cvy_model *m)
{
    return m->nlayer ? m->layer[m->nlayer - 1].output : m->ninput ? m->input[0].name : NULL;
}

const char *cvy_model_output(const cvy_model *m)
{
    CVY_ENTRY();
    if (CVY_KNOWN(MODEL, m) != CVY_OK)
        return NULL;
    if (m->output)
        return m->output;
    for (int i = m->nlayer - 1; i >= 0; i--)
        if (!(m->layer[i].op->flags & CVY_OP_LOSS))
            return m->layer[i].output;
    return NULL;
}

int cvy_model_has_loss(const cvy_model *m)
{
    for (int i = 0; i < m->nlayer; i++)
        if (m->layer[i].op->flags & CVY_OP_LOSS)
            return 1;
    return 0;
}

static cvy_status count_of(cvy_model *m, const cvy_op_def *op, cvy_layer_count **out)
{
    for (int i = 0; i < m->ncount; i++)
        if (m->count[i].op == op) {
            *out = &m->count[i];
            return CVY_OK;
        }
    CVY_TRY(cvy_mem_reserve(&m->count, &m->count_room, m->ncount, sizeof *m->count));
    *out = &m->count[m->ncount++];
    **out = (cvy_layer_count){op, 0};
    return CVY_OK;
}

/* Counts only the layers that were added since the last call: a deep network has a hundred thousand. */
static cvy_status count_layers(cvy_model *m, const cvy_op_def *op, int *n_out)
{
    cvy_layer_count *count = NULL;
    for (; m->ncounted < m->nlayer; m->ncounted++) {
        CVY_TRY(count_of(m, m->layer[m->ncounted].op, &count));
        count->n++;
    }
    CVY_TRY(count_of(m, op, &count));
    *n_out = count->n;
    return CVY_OK;
}

/* Makes a name such as "relu3"; the number counts the layers with this operator. */
static cvy_status default_name(cvy_model *m, const cvy_op_def *op, char **name_out)
{
    int n = 0;
    CVY_TRY(count_layers(m, op, &n));
    n++;
    do
        CVY_TRY(cvy_pool_printf(m->pool, name_out, "%s%d", op->name, n++));
    while (cvy_model_knows(m, *name_out));
    return CVY_OK;
}

cvy_status cvy_model_add_tree(cvy_model *m, const cvy_op_def *op, const char *name, const cvy_tree *options,
                              const char *output, char *const *from, int nfrom)
{
    CVY_TRY(cvy_mem_reserve(&m->layer, &m->layer_room, m->nlayer, sizeof *m->layer));
    cvy_layer layer = {.op = op, .options = options, .nfrom = nfrom};
    if (name)
        CVY_TRY(cvy_pool_strdup(m->pool, name, &layer.name));
    else
        CVY_TRY(default_name(m, op, &layer.name));
    CVY_TRY(cvy_pool_strdup(m->pool, output ? output : layer.name, &layer.output));
    const size_t longest = CVY_MAX(strlen(layer.name), strlen(layer.output));
    CVY_CHECK(longest <= CVY_LAYER_NAME_MAX, CVY_E_ARGUMENT,
              "model %s: a layer or its output has a name of %zu characters, expected at most %d: '%.40s...'", m->name,
              longest, CVY_LAYER_NAME_MAX, layer.name);
    CVY_CHECK(!strpbrk(layer.name, " ,\t\n") && !strpbrk(layer.output, " ,\t\n"), CVY_E_ARGUMENT,
              "model %s: the name of layer '%s' or of its output '%s' has a blank or a comma, which separate the names "
              "in lists of sources",
              m->name, layer.name, layer.output);
    CVY_CHECK(!cvy_model_knows(m, layer.output), CVY_E_ARGUMENT,
              "model %s: the name '%s' is taken already; layers that share variables need outputs of their own "
              "(output: NAME)",
              m->name, layer.output);
    CVY_CHECK(nfrom <= CVY_NODE_SRC_MAX, CVY_E_ARGUMENT, "layer %s: %d sources, at most %d", layer.name, nfrom,
              CVY_NODE_SRC_MAX);
    for (int i = 0; i < nfrom; i++) {
        CVY_CHECK(cvy_model_knows(m, from[i]), CVY_E_ARGUMENT, "layer %s: there is no input and no earlier layer '%s'",
                  layer.name, from[i]);
        CVY_TRY(cvy_pool_strdup(m->pool, from[i], &layer.from[i]));
        const int at = cvy_index_find(&m->layer_at, from[i]);
        layer.training_only |= at >= 0 && m->layer[at].training_only;
    }
    CVY_TRY(cvy_index_add(&m->layer_at, layer.output, m->nlayer));
    m->layer[m->nlayer++] = layer;
    return CVY_OK;
}

static int is_layer(const void *op)
{
    return !(((const cvy_op_def *)op)->flags & CVY_OP_HIDDEN);
}

cvy_status cvy_model_find_layer(const cvy_model *m, const char *name, const cvy_op_def **out)
{
    static const cvy_table_query query = {"layer type", "`convoy models --layers` lists them", is_layer};
    int count = 0;
    const cvy_op_def **table = NULL;
    CVY_TRY(cvy_extensions_table(m->extensions, &table, &count));
    const cvy_status status = cvy_table_find(table, count, &query, name, out);
    cvy_mem_free(&table);
    return status;
}

cvy_status cvy_model_use_context(cvy_model *m, const cvy_context *context)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(MODEL, m));
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    CVY_CHECK(!m->extensions || m->extensions == &context->extensions, CVY_E_ARGUMENT,
              "model %s uses the libraries of another context already: make a model of its own for each context",
              m->name);
    m->extensions = &context->extensions;
    return CVY_OK;
}

/* Splits "a, b" into names; the texts are in the pool. */
static cvy_status split_names(cvy_pool *pool, const char *text, char **names, int *count_out)
{
    int count = 0;
    for (const char *at = text; *at;) {
        while (*at == ',' || isspace((unsigned char)*at))
            at++;
        size_t n = strcspn(at, ", \t\n");
        if (n == 0)
            break;
        CVY_CHECK(count < CVY_NODE_SRC_MAX, CVY_E_ARGUMENT, "'%s' names more than %d sources", text, CVY_NODE_SRC_MAX);
        CVY_TRY(cvy_pool_printf(pool, &names[count++], "%.*s", (int)n, at));
        at += n;
    }
    *count_out = count;
    return CVY_OK;
}

cvy_status cvy_model_add(cvy_model *m, const char *op_name, const char *name, const char *options, const char *from)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(MODEL, m));
    const cvy_op_def *op = NULL;
    cvy_tree *tree = NULL;
    char *names[CVY_NODE_SRC_MAX] = {0}, *text = NULL;
    int nfrom = 0;
    CVY_CHECK(op_name, CVY_E_ARGUMENT, "cvy_model_add() needs the name of an operator");
    CVY_TRY(cvy_model_find_layer(m, op_name, &op));
    if (from) {
        CVY_TRY(split_names(m->pool, from, names, &nfrom));
    } else {
        CVY_CHECK(cvy_model_last(m), CVY_E_ARGUMENT, "model %s: add an input before the first layer", m->name);
        names[nfrom++] = (char *)(uintptr_t)cvy_model_last(m);
    }
    if (options && *options) {
        CVY_TRY(cvy_pool_printf(m->pool, &text, options[0] == '{' ? "%s" : "{%s}", options));
        char *label = NULL;
        CVY_TRY(cvy_pool_printf(m->pool, &label, "options of %s", name ? name : op_name));
        CVY_TRY(cvy_tree_parse_text(m->pool, label, text, strlen(text), &tree));
    }
    return cvy_model_add_tree(m, op, name, tree, NULL, names, nfrom);
}

cvy_status cvy_model_addf(cvy_model *m, const char *op, const char *name, const char *from, const char *options_fmt,
                          ...)
{
    char options[512];
    va_list args;
    va_start(args, options_fmt);
    const int n = vsnprintf(options, sizeof options, options_fmt, args);
    va_end(args);
    CVY_CHECK(n >= 0 && n < (int)sizeof options, CVY_E_ARGUMENT, "layer %s: its options are longer than %zu characters",
              name ? name : op, sizeof options);
    return cvy_model_add(m, op, name, options, from);
}

cvy_status cvy_model_set_stage(cvy_model *m, const char *layer, int64_t stage)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(MODEL, m));
    const char **names = NULL;
    int found = 0;
    CVY_CHECK(layer && stage >= 1, CVY_E_ARGUMENT, "layer %s on stage %lld, expected a name and a stage of at least 1",
              layer ? layer : "NULL", (long long)stage);
    for (int i = 0; i < m->nlayer; i++)
        if (strcmp(m->layer[i].name, layer) == 0) {
            m->layer[i].stage = stage;
            found = 1;
        }
    if (found)
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *names * ((size_t)m->nlayer + 1), &names));
    for (int i = 0; i < m->nlayer; i++)
        names[i] = m->layer[i].name;
    cvy_error_set(CVY_E_ARGUMENT, "model %s has no layer '%s'%s", m->name, layer,
                  cvy_hint_name('\'', layer, names, m->nlayer).text);
    cvy_mem_free(&names);
    return CVY_E_ARGUMENT;
}

/* ---- a part of it ---- */

/* Whether "a, b" has this name. */
static int names_it(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; *(at += strspn(at, ", \t\n"));) {
        const size_t n = strcspn(at, ", \t\n");
        if (n == length && memcmp(at, name, n) == 0)
            return 1;
        at += n;
    }
    return 0;
}

static int is_read(const cvy_model *m, const char *name)
{
    for (int i = 0; i < m->nlayer; i++)
        for (int k = 0; k < m->layer[i].nfrom; k++)
            if (strcmp(m->layer[i].from[k], name) == 0)
                return 1;
    return 0;
}

/* Marks the sources of the layers that are marked; they come before them. */
static void mark_sources(const cvy_model *m, uint8_t *is_needed)
{
    for (int i = m->nlayer - 1; i >= 0; i--)
        for (int k = 0; is_needed[i] && k < m->layer[i].nfrom; k++) {
            const int at = cvy_index_find(&m->layer_at, m->layer[i].from[k]);
            if (at >= 0)
                is_needed[at] = 1;
        }
}

cvy_status cvy_model_keep(cvy_model *m, const char *outputs)
{
    uint8_t *is_needed = NULL;
    cvy_index index = {0};
    cvy_status status = CVY_OK;
    int nlayer = 0, ninput = 0;
    outputs = outputs ? outputs : cvy_model_output(m);
    CVY_TRY(cvy_mem_alloc((size_t)m->nlayer + 1, &is_needed));
    for (int i = 0; outputs && i < m->nlayer; i++)
        is_needed[i] = (uint8_t)names_it(outputs, m->layer[i].output);
    mark_sources(m, is_needed);
    for (int i = 0, to = 0; i < m->nlayer; i++)
        if (is_needed[i])
            CVY_TRY_OUT(cvy_index_add(&index, m->layer[i].output, to++));
    for (int i = 0; i < m->nlayer; i++)
        if (is_needed[i])
            m->layer[nlayer++] = m->layer[i];
    m->nlayer = nlayer;
    m->ncount = m->ncounted = 0;
    m->naux = 0;
    cvy_index_free(&m->layer_at);
    m->layer_at = index;
    index = (cvy_index){0};
    for (int i = 0; i < m->ninput; i++)
        if (is_read(m, m->input[i].name) || (outputs && names_it(outputs, m->input[i].name)))
            m->input[ninput++] = m->input[i];
    m->ninput = ninput;
out:
    cvy_index_free(&index);
    cvy_mem_free(&is_needed);
    return status;
}

cvy_status cvy_model_put_last(cvy_model *m, int at)
{
    const cvy_layer layer = m->layer[at];
    cvy_index index = {0};
    cvy_status status = CVY_OK;
    CVY_CHECK(!is_read(m, layer.output), CVY_E_CONFIG,
              "model %s: layer %s has to read %s, which comes after it, and another layer reads %s: change their order",
              m->name, layer.output, layer.from[0], layer.output);
    memmove(m->layer + at, m->layer + at + 1, sizeof *m->layer * (size_t)(m->nlayer - at - 1));
    m->layer[m->nlayer - 1] = layer;
    for (int i = 0; i < m->nlayer && status == CVY_OK; i++)
        status = cvy_index_add(&index, m->layer[i].output, i);
    cvy_index_free(&m->layer_at);
    m->layer_at = index;
    return status;
}

/* The variables of a layer are called "layer.parameter", or as the layer. Parameters have no dots, layers may. */
int cvy_model_keeps(const cvy_model *m, const cvy_layer *layer, const char *variable)
{
    const size_t n = layer->trained ? strlen(layer->name) : 0;
    if (!layer->trained || strncmp(variable, layer->name, n) != 0)
        return 0;
    if (!variable[n])
        return 1;
    return variable[n] == '.' && !strchr(variable + n + 1, '.') && !names_it(layer->trained, variable + n + 1) &&
           cvy_index_find(&m->layer_at, variable) < 0;
}

cvy_status cvy_model_list_unused(const cvy_model *m, cvy_text *names, int *count_out)
{
    enum { NAMED = 12 };
    const char *output = cvy_model_output(m);
    uint8_t *is_needed = NULL;
    int n = 0;
    CVY_TRY(cvy_mem_alloc((size_t)m->nlayer + 1, &is_needed));
    for (int i = 0; i < m->nlayer; i++) {
        is_needed[i] = m->layer[i].op->flags & CVY_OP_LOSS || m->layer[i].is_looked_through ||
                       (output && strcmp(m->layer[i].output, output) == 0);
        for (int k = 0; k < m->naux; k++)
            is_needed[i] |= strcmp(m->layer[i].output, m->aux[k].output) == 0;
    }
    mark_sources(m, is_needed);
    for (int i = 0; i < m->nlayer; i++)
        if (!is_needed[i] && n++ < NAMED)
            cvy_text_add(names, "%s%s", n > 1 ? ", " : "", m->layer[i].output);
    if (n > NAMED)
        cvy_text_add(names, " and %d more", n - NAMED);
    cvy_mem_free(&is_needed);
    *count_out = n;
    return names->status;
}

/* ---- a graph of it ---- */

/* The value of a layer's output or of an input in the graph. value: the output of each layer. */
static cvy_value *find_value(const cvy_model *m, const cvy_graph *g, cvy_value *const *value, const char *name)
{
    const int at = cvy_index_find(&m->layer_at, name);
    return at >= 0 ? value[at] : is_input(m, name) ? cvy_graph_find(g, name) : NULL;
}

/* Whether any layer reads the input as an activation. An input that only losses and lookups read (a target, a weight,
 * or indices) keeps full precision if activations are bf16. */
static int is_activation(const cvy_model *m, const cvy_model_input *input)
{
    for (int i = 0; i < m->nlayer; i++)
        for (int k = 0; k < m->layer[i].nfrom; k++)
            if (strcmp(m->layer[i].from[k], input->name) == 0 &&
                !(m->layer[i].op->flags & (CVY_OP_LOSS | CVY_OP_INDICES)))
                return 1;
    return 0;
}

/* Marks the layers on which these outputs depend, or all if no outputs are named. Others are left out: their batch
 * norms would follow statistics of a step that does not use them. */
static cvy_status mark_needed(const cvy_model *m, const char *const *wanted, int nwanted, uint8_t **needed_out)
{
    uint8_t *needed = NULL;
    CVY_TRY(cvy_mem_alloc((size_t)m->nlayer + 1, &needed));
    for (int i = 0; i < nwanted; i++) {
        const int at = cvy_index_find(&m->layer_at, wanted[i]);
        if (at >= 0)
            needed[at] = 1;
    }
    if (nwanted == 0)
        memset(needed, 1, (size_t)m->nlayer);
    mark_sources(m, needed);
    *needed_out = needed;
    return CVY_OK;
}

/* Names the network in which a layer failed, with its sources: their shapes come from elsewhere in the job. */
static cvy_status name_part(const cvy_model *m, const cvy_graph *g, cvy_value *const *value, const cvy_model_part *part,
                            cvy_status status)
{
    cvy_text sources = {0};
    if (status == CVY_OK || !part)
        return status;
    for (int i = 0; i < part->nfrom; i++) {
        const int at = cvy_index_find(&m->layer_at, part->from[i]);
        const cvy_model_part *of = at >= 0 ? m->layer[at].part : NULL;
        const cvy_value *v = find_value(m, g, value, part->from[i]);
        cvy_text_add(&sources, "%s%s", i ? " and " : "", part->from[i]);
        if (of)
            cvy_text_add(&sources, " of network %s", of->network);
        if (v)
            cvy_text_add(&sources, ", which is %s", cvy_shape_text(&v->shape));
    }
    cvy_error_prefix(status, "network %s%s%s, applied to %s", part->network,
                     strcmp(part->network, part->name) == 0 ? "" : " as ",
                     strcmp(part->network, part->name) == 0 ? "" : part->name, sources.data ? sources.data : "nothing");
    cvy_text_free(&sources);
    return status;
}

/* The weights that the losses of a graph give to samples. */
struct weights {
    cvy_value *at[CVY_NODE_SRC_MAX - 1];
    int n;
};

/* Finds those that layers of the graph want. A sample counts if any loss counts it, so there are none if a loss has no
 * weight. */
static cvy_status find_weights(const cvy_model *m, const cvy_graph *g, const uint8_t *needed, struct weights *out)
{
    int wanted = 0;
    *out = (struct weights){0};
    for (int i = 0; i < m->nlayer; i++)
        wanted |= needed[i] && m->layer[i].op->flags & CVY_OP_SAMPLE_WEIGHTS;
    for (int i = 0; i < m->nlayer && wanted && g->training; i++) {
        const cvy_layer *loss = &m->layer[i];
        if (!needed[i] || !(loss->op->flags & CVY_OP_LOSS))
            continue;
        const int source = cvy_loss_weight_source(loss->op);
        cvy_value *weight = source < loss->nfrom ? cvy_graph_find(g, loss->from[source]) : NULL;
        int known = 0;
        if (!weight) {
            out->n = 0;
            return CVY_OK;
        }
        while (known < out->n && out->at[known] != weight)
            known++;
        CVY_CHECK(known < CVY_COUNT(out->at), CVY_E_UNSUPPORTED, "the losses have more than %d different weights",
                  CVY_COUNT(out->at));
        out->at[known] = weight;
        out->n = CVY_MAX(out->n, known + 1);
    }
    return CVY_OK;
}

/* Adds the feeds that layers read, then the layers in order. */
static cvy_status fill_graph(const cvy_model *m, cvy_graph *g, const uint8_t *needed, cvy_value **value)
{
    for (int i = 0; i < m->ninput; i++) {
        const cvy_model_input *input = &m->input[i];
        const cvy_dtype real = is_activation(m, input) ? g->dtype : cvy_graph_weight_dtype(g);
        const cvy_dtype dtype = cvy_dtype_is_real(input->dtype) ? real : input->dtype;
        cvy_value *feed = NULL;
        CVY_TRY(cvy_graph_feed(g, input->name, dtype, &input->sample_shape, 0, &feed));
    }
    struct weights weights;
    CVY_TRY(find_weights(m, g, needed, &weights));
    for (int i = 0; i < m->nlayer; i++) {
        const cvy_layer *layer = &m->layer[i];
        cvy_value *src[CVY_NODE_SRC_MAX] = {0};
        if (!needed[i] || (layer->training_only && !g->training))
            continue;
        for (int k = 0; k < layer->nfrom; k++)
            src[k] = find_value(m, g, value, layer->from[k]);
        const int nweight = layer->nfrom == 1 && layer->op->flags & CVY_OP_SAMPLE_WEIGHTS ? weights.n : 0;
        memcpy(src + 1, weights.at, sizeof *src * (size_t)nweight);
        const cvy_status status =
            cvy_graph_layer_op(g, layer->op, layer->name, layer->options, src, layer->nfrom + nweight, &value[i]);
        CVY_TRY(name_part(m, g, value, layer->part, status));
    }
    return CVY_OK;
}

cvy_status cvy_model_instantiate(const cvy_model *m, cvy_vars *vars, const cvy_graph_opts *opts,
                                 const char *const *wanted, int nwanted, cvy_value **wanted_out, cvy_graph **out)
{
    cvy_graph *g = NULL;
    cvy_value **value = NULL;
    uint8_t *needed = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *value * ((size_t)m->nlayer + 1), &value));
    CVY_TRY_OUT(mark_needed(m, wanted, nwanted, &needed));
    CVY_TRY_OUT(cvy_graph_create(vars, opts, &g));
    CVY_TRY_OUT(fill_graph(m, g, needed, value));
    for (int i = 0; i < nwanted; i++) {
        wanted_out[i] = find_value(m, g, value, wanted[i]);
        if (!wanted_out[i])
            CVY_FAIL_OUT(CVY_E_ARGUMENT, "model %s has no input and no layer '%s'%s", m->name, wanted[i],
                         cvy_model_knows(m, wanted[i])
                             ? " in evaluation: it belongs to an auxiliary head, which exists in training only"
                             : "");
    }
    CVY_TRY_OUT(cvy_graph_verify(g));
    *out = g;
out:
    cvy_mem_free(&needed);
    cvy_mem_free(&value);
    if (status != CVY_OK) {
        cvy_graph_destroy(&g);
        return cvy_error_prefix(status, "model %s", m->name);
    }
    return status;
}
