/*
 * model_write.c: writes a model as the `model` of a job file: the inverse of model_tree.c.
 *
 *     inputs: {x: 3x32x32}
 *     layers:
 *       - conv: {name: conv1, channels: 32, kernel: 3}
 *       - relu: {name: relu1}
 *       - add: {name: sum, from: [relu1, conv1]}
 *     output: sum
 *
 * All layers are named, so that their variables keep their names if layers are added. `from` is left out where it is
 * the layer before.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "model/model.h"

static const char place[] = "model";

static cvy_status new_list(cvy_pool *pool, int count, cvy_tree **out)
{
    CVY_TRY(cvy_tree_parse_text(pool, place, "[]", 2, out));
    CVY_TRY(cvy_pool_alloc(pool, sizeof(cvy_tree *) * ((size_t)count + 1), &(*out)->child));
    (*out)->count = count;
    return CVY_OK;
}

static cvy_status set_text(cvy_pool *pool, cvy_tree *map, const char *key, const char *text)
{
    cvy_tree *scalar = NULL;
    CVY_TRY(cvy_tree_new_scalar(pool, place, text, &scalar));
    return cvy_tree_set(pool, map, key, scalar);
}

static cvy_status set_from(cvy_pool *pool, const cvy_layer *layer, const char *before, cvy_tree *map)
{
    cvy_tree *list = NULL;
    if (layer->nfrom == 1 && before && strcmp(layer->from[0], before) == 0)
        return CVY_OK;
    if (layer->nfrom == 1)
        return set_text(pool, map, "from", layer->from[0]);
    CVY_TRY(new_list(pool, layer->nfrom, &list));
    for (int i = 0; i < layer->nfrom; i++)
        CVY_TRY(cvy_tree_new_scalar(pool, place, layer->from[i], &list->child[i]));
    return cvy_tree_set(pool, map, "from", list);
}

static cvy_status set_trained(cvy_pool *pool, const char *trained, cvy_tree *map)
{
    cvy_tree *list = NULL;
    char *text = NULL;
    if (!*trained)
        return set_text(pool, map, "trained", "false");
    CVY_TRY(cvy_pool_printf(pool, &text, "[%s]", trained));
    CVY_TRY(cvy_tree_parse_text(pool, place, text, strlen(text), &list));
    return cvy_tree_set(pool, map, "trained", list);
}

/* before: the output of the layer before; NULL: it is the first one. */
static cvy_status write_layer(cvy_pool *pool, const cvy_layer *layer, const char *before, cvy_tree **out)
{
    cvy_tree *map = NULL, *option = NULL;
    CVY_TRY(cvy_tree_new_map(pool, place, &map));
    CVY_TRY(set_text(pool, map, "name", layer->name));
    for (int i = 0; layer->options && i < layer->options->count; i++) {
        CVY_TRY(cvy_tree_copy(pool, layer->options->child[i], &option));
        CVY_TRY(cvy_tree_set(pool, map, layer->options->key[i], option));
    }
    CVY_TRY(set_from(pool, layer, before, map));
    if (strcmp(layer->output, layer->name) != 0)
        CVY_TRY(set_text(pool, map, "output", layer->output));
    if (layer->trained)
        CVY_TRY(set_trained(pool, layer->trained, map));
    if (layer->stage > 0) {
        char *number = NULL;
        CVY_TRY(cvy_pool_printf(pool, &number, "%lld", (long long)layer->stage));
        CVY_TRY(set_text(pool, map, "stage", number));
    }
    CVY_TRY(cvy_tree_new_map(pool, place, out));
    return cvy_tree_set(pool, *out, layer->op->name, map);
}

/* What only losses read are targets, which the data of a job give under the same name. */
static int is_target(const cvy_model *m, const char *name)
{
    int found = 0;
    for (int i = 0; i < m->nlayer; i++)
        for (int k = 0; k < m->layer[i].nfrom; k++)
            if (strcmp(m->layer[i].from[k], name) == 0) {
                if (!(m->layer[i].op->flags & CVY_OP_LOSS))
                    return 0;
                found = 1;
            }
    return found;
}

static cvy_status write_inputs(const cvy_model *m, cvy_pool *pool, cvy_tree *model)
{
    cvy_tree *map = NULL;
    CVY_TRY(cvy_tree_new_map(pool, place, &map));
    for (int i = 0; i < m->ninput; i++) {
        char shape[160];
        size_t n = 0;
        if (is_target(m, m->input[i].name))
            continue;
        for (int d = 0; d < m->input[i].sample_shape.ndim; d++)
            n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%lld", d ? "x" : "",
                                  (long long)m->input[i].sample_shape.dim[d]);
        CVY_TRY(set_text(pool, map, m->input[i].name, n ? shape : "1"));
    }
    return cvy_tree_set(pool, model, "inputs", map);
}

cvy_status cvy_model_add_layers(const cvy_tree *layers, cvy_text *t)
{
    for (int i = 0; i < layers->count; i++) {
        const cvy_tree *layer = layers->child[i];
        char *line = NULL;
        CVY_TRY(cvy_tree_print_line(layer->child[0], &line));
        cvy_text_add(t, "    - %s: %s\n", layer->key[0], line);
        cvy_mem_free(&line);
    }
    return CVY_OK;
}

cvy_status cvy_model_write(const cvy_model *m, cvy_pool *pool, int with_inputs, cvy_tree **out)
{
    cvy_tree *model = NULL, *layers = NULL;
    const char *before = m->ninput > 0 ? m->input[0].name : NULL;
    CVY_TRY(cvy_tree_new_map(pool, place, &model));
    if (with_inputs)
        CVY_TRY(write_inputs(m, pool, model));
    CVY_TRY(new_list(pool, m->nlayer, &layers));
    for (int i = 0; i < m->nlayer; i++) {
        CVY_TRY(write_layer(pool, &m->layer[i], before, &layers->child[i]));
        before = m->layer[i].output;
    }
    CVY_TRY(cvy_tree_set(pool, model, "layers", layers));
    if (cvy_model_output(m))
        CVY_TRY(set_text(pool, model, "output", cvy_model_output(m)));
    *out = model;
    return CVY_OK;
}
