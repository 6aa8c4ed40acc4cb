/*
 * model_tree.c: the job file's `model`: a name of the zoo, a map {name: ..., options}, or a network written as a list
 * of layers.
 *
 *     model:
 *       inputs: {x: 3x32x32, mask: "1x32x32"}        # optional: the data's fields otherwise
 *       layers:
 *         - conv: {name: conv1, channels: 32, kernel: 3, pad: 1}
 *         - relu
 *         - repeat: {count: 3, layers: [{conv: {channels: 32, kernel: 3, pad: 1}}, relu]}
 *         - add: {from: [relu4, conv1], stage: 2}
 *       output: fc
 *
 * Networks that are parts of it, and may be applied several times with the same variables, are in `networks`:
 *
 *     model:
 *       networks:
 *         generator: {inputs: [z], layers: [...]}      # inputs: [x] if not given; its output is its last layer
 *       layers:
 *         - noise: {name: z, shape: 64}
 *         - generator: {name: fake, from: z}           # layers generator.fc1 ..., whose outputs are fake.fc1 ..., fake
 *
 * In a layer's map `name`, `from`, `output` and `stage` belong to the model, all else to the operator.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/text/base_table.h"
#include "base/text/base_text.h"
#include "model/model.h"

static cvy_status at_tree(cvy_status status, const cvy_tree *tree)
{
    const size_t n = strlen(tree->file);
    const int placed = strncmp(cvy_error_text(), tree->file, n) == 0 && cvy_error_text()[n] == ':';
    return status == CVY_OK || placed ? status : cvy_error_prefix(status, "%s", cvy_tree_where(tree));
}

/* The number in a name of this family: 110 for "resnet-110" and "resnet-N"; -1: the name does not match. */
static int64_t family_number(const cvy_model_def *def, const char *name)
{
    const size_t n = strlen(def->name) - 1, digits = strspn(strlen(name) > n ? name + n : "", "0123456789");
    if (!def->numbers || strncmp(def->name, name, n) != 0 || digits == 0 || digits > 9 || name[n + digits])
        return -1;
    return strtoll(name + n, NULL, 10);
}

/* Whether the name lacks only the hyphen of this family's names: "resnet20" or "resnet_20". Where its number begins. */
static const char *number_without_hyphen(const cvy_model_def *def, const char *name)
{
    const size_t n = strlen(def->name) - 2;
    if (!def->numbers || strncmp(def->name, name, n) != 0)
        return NULL;
    const char *number = name + n + (name[n] == '_' || name[n] == ' ');
    const size_t digits = strspn(number, "0123456789");
    return digits > 0 && digits <= 9 && !number[digits] ? number : NULL;
}

/* The name of a family ("resnet-N") is not the name of a network. */
static int is_network(const void *def)
{
    return !((const cvy_model_def *)def)->numbers;
}

cvy_status cvy_model_resolve(const char *name, const cvy_model_def **def_out, int64_t *number_out)
{
    int count = 0;
    const cvy_model_def *const *table = cvy_model_table(&count);
    static const cvy_table_query query = {"network", "`convoy models` lists them", is_network};
    *number_out = 0;
    if ((*def_out = cvy_model_find(name)) != NULL && !(*def_out)->numbers)
        return CVY_OK;
    for (int i = 0; i < count; i++)
        if ((*number_out = family_number(table[i], name)) >= 0) {
            *def_out = table[i];
            return CVY_OK;
        }
    for (int i = 0; i < count; i++) {
        const char *number = number_without_hyphen(table[i], name);
        CVY_CHECK(!number, CVY_E_CONFIG, "there is no network '%s', did you mean '%.*s%s'?; %s", name,
                  (int)strlen(table[i]->name) - 1, table[i]->name, number, query.hint);
    }
    return cvy_table_find(table, count, &query, name, def_out);
}

/* Adds the network `name` after an input of this shape. The number of outputs is its option `classes`, or else the
 * argument `classes`. */
static cvy_status build_zoo(const char *name, const cvy_tree *options, const cvy_shape *input, int64_t classes,
                            cvy_model *m)
{
    static const char *const extra[] = {"name", "classes", NULL};
    static const cvy_option none[] = {{0}};
    const cvy_model_def *def = NULL;
    cvy_model_ask ask = {0};
    void *fields = NULL;
    CVY_TRY(cvy_model_resolve(name, &def, &ask.number));
    CVY_TRY(cvy_pool_alloc(m->pool, CVY_MAX(def->options_size, 1), &fields));
    CVY_TRY(cvy_options_parse(m->pool, name, def->options ? def->options : none, options, extra, fields,
                              def->options_size));
    ask.options = fields;
    ask.input = input ? input : &def->input;
    ask.classes = classes > 0 ? classes : def->classes;
    const cvy_tree *given = options ? cvy_tree_get(options, "classes") : NULL;
    if (!cvy_tree_is_null(given)) {
        CVY_TRY(cvy_tree_int(given, &ask.classes));
        CVY_CHECK(ask.classes > 0, CVY_E_CONFIG, "%s: %lld classes, expected at least 1", cvy_tree_where(given),
                  (long long)ask.classes);
    }
    CVY_TRY(cvy_model_add_input(m, "x", CVY_DTYPE_F32, ask.input));
    const cvy_status status = def->build(m, &ask);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "network %s", name);
}

cvy_status cvy_model_zoo(const char *name, const char *options, const cvy_shape *input, int64_t classes,
                         cvy_model **model_out)
{
    CVY_ENTRY();
    cvy_model *m = NULL;
    cvy_tree *tree = NULL;
    cvy_status status = CVY_OK;
    CVY_CHECK(name && model_out, CVY_E_ARGUMENT,
              "cvy_model_zoo() needs the name of a network and a place for the model");
    CVY_TRY(cvy_model_create(name, &m));
    if (options && *options) {
        char *text = NULL;
        CVY_TRY_OUT(cvy_pool_printf(m->pool, &text, options[0] == '{' ? "%s" : "{%s}", options));
        CVY_TRY_OUT(cvy_tree_parse_text(m->pool, name, text, strlen(text), &tree));
    }
    CVY_TRY_OUT(build_zoo(name, tree, input, classes, m));
    *model_out = m;
    return CVY_OK;
out:
    cvy_model_destroy(&m);
    return status;
}

/* A network that is being applied. Its names are its own. */
typedef struct scope {
    cvy_model_part *part;
    const cvy_tree *inputs; /* a list of names; NULL: "x" */
    int first;              /* its first layer in the model */
} scope;

typedef struct reader {
    cvy_model *m;
    const cvy_tree *networks; /* a map, or NULL */
    scope *scope;             /* NULL: the model itself */
    int depth;
} reader;

/* The name in the model of what a layer of the network reads: an input of the network, or one of its layers. */
static cvy_status name_source(reader *r, const char *local, char **out)
{
    const scope *s = r->scope;
    *out = (char *)(uintptr_t)local;
    if (!s)
        return CVY_OK;
    for (int i = 0; i < (s->inputs ? s->inputs->count : 1); i++)
        if (strcmp(s->inputs ? s->inputs->child[i]->text : "x", local) == 0) {
            *out = s->part->from[i];
            return CVY_OK;
        }
    return cvy_pool_printf(r->m->pool, out, "%s.%s", s->part->name, local);
}

/* Reads `from`: a name or a list of names. */
static cvy_status read_from(reader *r, const cvy_tree *from, char **names, int *count_out)
{
    cvy_model *m = r->m;
    if (!from && r->scope && r->scope->first == m->nlayer) {
        names[0] = r->scope->part->from[0];
        *count_out = 1;
        return CVY_OK;
    }
    if (!from) {
        CVY_CHECK(cvy_model_last(m), CVY_E_CONFIG, "the first layer needs an input: give `from`");
        names[0] = (char *)(uintptr_t)cvy_model_last(m);
        *count_out = 1;
        return CVY_OK;
    }
    const int count = from->kind == CVY_TREE_LIST ? from->count : 1;
    CVY_CHECK(count <= CVY_NODE_SRC_MAX, CVY_E_CONFIG, "%s: %d sources, at most %d", cvy_tree_where(from), count,
              CVY_NODE_SRC_MAX);
    for (int i = 0; i < count; i++) {
        cvy_tree *item = from->kind == CVY_TREE_LIST ? from->child[i] : (cvy_tree *)(uintptr_t)from;
        CVY_CHECK(item->text, CVY_E_CONFIG, "%s: expected the name of a layer or input", cvy_tree_where(item));
        item->used = 1;
        CVY_TRY(name_source(r, item->text, &names[i]));
    }
    *count_out = count;
    return CVY_OK;
}

static cvy_status read_layers(reader *r, const cvy_tree *layers);

static cvy_status read_repeat(reader *r, const cvy_tree *repeat)
{
    int64_t count = 0;
    const cvy_tree *times = cvy_tree_get(repeat, "count"), *layers = cvy_tree_get(repeat, "layers");
    CVY_CHECK(times && layers, CVY_E_CONFIG, "%s: repeat needs `count` and `layers`", cvy_tree_where(repeat));
    CVY_TRY(cvy_tree_int(times, &count));
    CVY_CHECK(count >= 1 && count <= 10000, CVY_E_CONFIG, "%s: count is %lld, expected 1 to 10000",
              cvy_tree_where(times), (long long)count);
    r->depth++;
    for (int64_t i = 0; i < count; i++)
        CVY_TRY(read_layers(r, layers));
    r->depth--;
    return CVY_OK;
}

/* The options of the operator: the map without the model's keys. */
static cvy_status own_options(cvy_model *m, const cvy_tree *map, cvy_tree **out)
{
    *out = NULL;
    if (!map || map->kind != CVY_TREE_MAP)
        return CVY_OK;
    CVY_TRY(cvy_tree_new_map(m->pool, map->file, out));
    (*out)->line = map->line;
    (*out)->column = map->column;
    for (int i = 0; i < map->count; i++)
        if (strcmp(map->key[i], "name") != 0 && strcmp(map->key[i], "from") != 0 &&
            strcmp(map->key[i], "output") != 0 && strcmp(map->key[i], "stage") != 0 &&
            strcmp(map->key[i], "trained") != 0) {
            CVY_TRY(cvy_tree_set(m->pool, *out, map->key[i], map->child[i]));
            (*out)->key_at[(*out)->count - 1] = map->key_at[i];
        }
    return CVY_OK;
}

/* The stage of the layer that was added last. Which stages there are is known when the program is planned. */
static cvy_status read_stage(cvy_model *m, const cvy_tree *stage)
{
    if (!stage)
        return CVY_OK;
    CVY_TRY(cvy_tree_int(stage, &m->layer[m->nlayer - 1].stage));
    CVY_CHECK(m->layer[m->nlayer - 1].stage >= 1, CVY_E_CONFIG,
              "%s: stage is %s, expected a stage of the pipeline, which count from 1", cvy_tree_where(stage),
              stage->text);
    return CVY_OK;
}

/* Which parameters of the layer that was added last are trained: true, false, or a list of their names. */
static cvy_status read_trained(cvy_model *m, const cvy_tree *trained)
{
    cvy_layer *layer = &m->layer[m->nlayer - 1];
    char *names = NULL;
    int all = 0;
    if (!trained)
        return CVY_OK;
    CVY_TRY(cvy_pool_strdup(m->pool, "", &names));
    for (int i = 0; trained->kind == CVY_TREE_LIST && i < trained->count; i++) {
        CVY_CHECK(trained->child[i]->text && *trained->child[i]->text, CVY_E_CONFIG,
                  "%s: entry %d of trained is no name of a parameter", cvy_tree_where(trained), i);
        CVY_TRY(cvy_pool_printf(m->pool, &names, "%s%s%s", names, i ? ", " : "", trained->child[i]->text));
    }
    if (trained->kind != CVY_TREE_LIST)
        CVY_TRY(cvy_tree_bool(trained, &all));
    layer->trained = all ? NULL : names;
    return CVY_OK;
}

/* ---- networks that are parts ---- */

/* A name for a layer of the network that the file does not name: the operator and a number, as in a model. */
static cvy_status name_layer(const reader *r, const cvy_op_def *op, char **out)
{
    int n = 1;
    for (int i = r->scope->first; i < r->m->nlayer; i++)
        n += r->m->layer[i].op == op;
    for (int taken = 1; taken; n++) {
        CVY_TRY(cvy_pool_printf(r->m->pool, out, "%s%d", op->name, n));
        taken = 0;
        for (int i = r->scope->first; i < r->m->nlayer; i++)
            taken |= strcmp(r->m->layer[i].name + strlen(r->scope->part->network) + 1, *out) == 0;
    }
    return CVY_OK;
}

/* Adds a layer of the network: its variables are those of all applications. */
static cvy_status add_part(reader *r, const cvy_op_def *op, const char *name, const char *given,
                           const cvy_tree *options, char *const *from, int nfrom)
{
    char *local = (char *)(uintptr_t)name, *full = NULL, *output = NULL;
    if (!local)
        CVY_TRY(name_layer(r, op, &local));
    CVY_TRY(cvy_pool_printf(r->m->pool, &full, "%s.%s", r->scope->part->network, local));
    CVY_TRY(cvy_pool_printf(r->m->pool, &output, "%s.%s", r->scope->part->name, given ? given : local));
    CVY_TRY(cvy_model_add_tree(r->m, op, full, options, output, from, nfrom));
    r->m->layer[r->m->nlayer - 1].part = r->scope->part;
    return CVY_OK;
}

/* The output of the last layer gets the name of the application. */
static cvy_status end_network(reader *r, const scope *s, const cvy_tree *tree)
{
    cvy_model *m = r->m;
    CVY_CHECK(m->nlayer > s->first, CVY_E_CONFIG, "%s: network %s has no layers", cvy_tree_where(tree),
              s->part->network);
    cvy_layer *last = &m->layer[m->nlayer - 1];
    CVY_CHECK(!(last->op->flags & CVY_OP_LOSS), CVY_E_CONFIG, "%s: the last layer of network %s is a loss",
              cvy_tree_where(tree), s->part->network);
    CVY_TRY(cvy_pool_strdup(m->pool, s->part->name, &last->output));
    return cvy_index_add(&m->layer_at, last->output, m->nlayer - 1);
}

/* Describes the application of a network. from: names in the model. */
static cvy_status make_part(cvy_model *m, const char *network, const char *name, char *const *from, int nfrom,
                            cvy_model_part **out)
{
    cvy_model_part *part = NULL;
    char *text = NULL;
    CVY_TRY(cvy_pool_alloc(m->pool, sizeof *part, &part));
    CVY_TRY(cvy_pool_strdup(m->pool, network, &text));
    part->network = text;
    CVY_TRY(cvy_pool_strdup(m->pool, name, &text));
    part->name = text;
    for (; part->nfrom < nfrom; part->nfrom++)
        CVY_TRY(cvy_pool_strdup(m->pool, from[part->nfrom], &part->from[part->nfrom]));
    *out = part;
    return CVY_OK;
}

static int is_one_of(const char *word, const char *const *known, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(word, known[i]) == 0)
            return 1;
    return 0;
}

/* Checks the keys of a map that belongs to a network. */
static cvy_status check_keys(const cvy_tree *map, const char *network, const char *const *known, int n)
{
    for (int i = 0; map && i < map->count; i++)
        CVY_CHECK(is_one_of(map->key[i], known, n), CVY_E_CONFIG, "%s: network %s has no key '%s'%s",
                  cvy_tree_where(map->key_at[i]), network, map->key[i],
                  cvy_hint_name('\'', map->key[i], known, n).text);
    return CVY_OK;
}

/* Checks a member of `networks`. *inputs_out: the list of its inputs; NULL: none is given. */
static cvy_status check_network(const cvy_tree *definition, const char *network, const cvy_tree **inputs_out)
{
    static const char *const known[] = {"inputs", "layers"};
    CVY_CHECK(definition->kind == CVY_TREE_MAP && cvy_tree_get(definition, "layers"), CVY_E_CONFIG,
              "%s: network %s needs `layers`", cvy_tree_where(definition), network);
    CVY_TRY(check_keys(definition, network, known, CVY_COUNT(known)));
    const cvy_tree *inputs = cvy_tree_get(definition, "inputs");
    CVY_CHECK(!inputs || inputs->kind == CVY_TREE_LIST, CVY_E_CONFIG,
              "%s: `inputs` of network %s is a list of names, such as [z]", cvy_tree_where(inputs), network);
    for (int i = 0; inputs && i < inputs->count; i++) {
        CVY_CHECK(inputs->child[i]->text, CVY_E_CONFIG, "%s: expected the name of an input",
                  cvy_tree_where(inputs->child[i]));
        for (int k = 0; k < i; k++)
            CVY_CHECK(strcmp(inputs->child[k]->text, inputs->child[i]->text) != 0, CVY_E_CONFIG,
                      "%s: network %s has two inputs '%s': give each a name of its own",
                      cvy_tree_where(inputs->child[i]), network, inputs->child[i]->text);
    }
    *inputs_out = inputs;
    return CVY_OK;
}

/* `generator: {name: fake, from: z}`: applies a network of `networks`. */
static cvy_status read_part(reader *r, const cvy_tree *layer, const char *network, const cvy_tree *definition)
{
    static const char *const known[] = {"name", "from"};
    const cvy_tree *map = layer->kind == CVY_TREE_MAP && layer->child[0]->kind == CVY_TREE_MAP ? layer->child[0] : NULL;
    const cvy_tree *name = map ? cvy_tree_get(map, "name") : NULL;
    scope s = {.first = r->m->nlayer};
    char *from[CVY_NODE_SRC_MAX] = {0};
    int nfrom = 0;
    CVY_CHECK(!r->scope, CVY_E_CONFIG, "%s: network %s cannot be a part of network %s", cvy_tree_where(layer), network,
              r->scope->part->network);
    CVY_TRY(check_keys(map, network, known, CVY_COUNT(known)));
    CVY_TRY(check_network(definition, network, &s.inputs));
    CVY_CHECK(!name || name->text, CVY_E_CONFIG, "%s: `name` of network %s is a word, such as fake",
              cvy_tree_where(name), network);
    CVY_TRY(read_from(r, map ? cvy_tree_get(map, "from") : NULL, from, &nfrom));
    CVY_TRY(make_part(r->m, network, name ? name->text : network, from, nfrom, &s.part));
    const int inputs = s.inputs ? s.inputs->count : 1;
    CVY_CHECK(nfrom == inputs, CVY_E_CONFIG, "%s: network %s has %d input%s, and `from` names %d",
              cvy_tree_where(layer), network, inputs, inputs == 1 ? "" : "s", nfrom);
    CVY_CHECK(!cvy_model_knows(r->m, s.part->name), CVY_E_CONFIG,
              "%s: the name '%s' is taken already: give this application of network %s another one (name: NAME)",
              cvy_tree_where(layer), s.part->name, network);
    r->scope = &s;
    CVY_TRY(read_layers(r, cvy_tree_get(definition, "layers")));
    r->scope = NULL;
    return end_network(r, &s, layer);
}

/* A layer `relu` would be the network of this name. */
static cvy_status check_network_names(const cvy_tree *networks)
{
    CVY_CHECK(!networks || networks->kind == CVY_TREE_MAP, CVY_E_CONFIG,
              "%s: `networks` is a map of names and networks", cvy_tree_where(networks));
    for (int i = 0; networks && i < networks->count; i++)
        CVY_CHECK(!cvy_op_find(networks->key[i]) && strcmp(networks->key[i], "repeat") != 0, CVY_E_CONFIG,
                  "%s: network %s has the name of a layer: give it another one", cvy_tree_where(networks->key_at[i]),
                  networks->key[i]);
    return CVY_OK;
}

/* A network that nothing applies would not be read: probably its name was mistaken for that of a layer. */
static cvy_status check_applied(const reader *r)
{
    for (int i = 0; r->networks && i < r->networks->count; i++) {
        int applied = 0;
        for (int k = 0; k < r->m->nlayer && !applied; k++)
            applied = r->m->layer[k].part && strcmp(r->m->layer[k].part->network, r->networks->key[i]) == 0;
        CVY_CHECK(applied, CVY_E_CONFIG, "%s: no layer applies network %s: add `- %s: {from: ...}`, or take it out",
                  cvy_tree_where(r->networks->key_at[i]), r->networks->key[i], r->networks->key[i]);
    }
    return CVY_OK;
}

static const cvy_tree *find_network(const reader *r, const char *name)
{
    return r->networks ? cvy_tree_get(r->networks, name) : NULL;
}

/* What is no operator may be meant as a network. */
static cvy_status find_operator(const reader *r, const char *name, const cvy_op_def **out)
{
    const cvy_status status = cvy_model_find_layer(r->m, name, out);
    if (status == CVY_OK || !r->networks || r->networks->kind != CVY_TREE_MAP)
        return status;
    cvy_text names = {0};
    for (int i = 0; i < r->networks->count; i++)
        cvy_text_add(&names, "%s%s", i ? ", " : "", r->networks->key[i]);
    cvy_error_set(status, "%s; the networks of this model are %s", cvy_error_text(), names.data ? names.data : "-");
    cvy_text_free(&names);
    return status;
}

static cvy_status read_layer(reader *r, const cvy_tree *layer)
{
    cvy_model *m = r->m;
    const cvy_tree *map = layer->kind == CVY_TREE_MAP && layer->count == 1 ? layer->child[0] : NULL;
    const char *op_name = map ? layer->key[0] : layer->text;
    CVY_CHECK(op_name, CVY_E_CONFIG, "%s: a layer is written as `conv: {channels: 32, kernel: 3}` or just `relu`",
              cvy_tree_where(layer));
    if (strcmp(op_name, "repeat") == 0)
        return read_repeat(r, map ? map : layer);
    CVY_CHECK(cvy_tree_is_null(map) || map->kind == CVY_TREE_MAP || (map->text && !*map->text), CVY_E_CONFIG,
              "%s: the options of %s are a map", cvy_tree_where(map), op_name);
    const cvy_tree *network = find_network(r, op_name);
    if (network)
        return read_part(r, layer, op_name, network);
    char *from[CVY_NODE_SRC_MAX] = {0};
    int nfrom = 0;
    cvy_tree *options = NULL;
    const cvy_tree *name = map ? cvy_tree_get(map, "name") : NULL, *output = map ? cvy_tree_get(map, "output") : NULL;
    const cvy_op_def *op = NULL;
    CVY_TRY(find_operator(r, op_name, &op));
    CVY_TRY(read_from(r, map ? cvy_tree_get(map, "from") : NULL, from, &nfrom));
    CVY_TRY(own_options(m, map, &options));
    if (r->scope)
        CVY_TRY(add_part(r, op, name ? name->text : NULL, output ? output->text : NULL, options, from, nfrom));
    else
        CVY_TRY(
            cvy_model_add_tree(m, op, name ? name->text : NULL, options, output ? output->text : NULL, from, nfrom));
    CVY_TRY(read_trained(m, map ? cvy_tree_get(map, "trained") : NULL));
    return read_stage(m, map ? cvy_tree_get(map, "stage") : NULL);
}

static cvy_status read_layers(reader *r, const cvy_tree *layers)
{
    CVY_CHECK(layers->kind == CVY_TREE_LIST && layers->count > 0, CVY_E_CONFIG,
              "%s: `layers` is a list of at least one layer", cvy_tree_where(layers));
    CVY_CHECK(r->depth < 8 && r->m->nlayer < 200000, CVY_E_CONFIG,
              "%s: repeats are nested too deeply, or there are too many layers", cvy_tree_where(layers));
    for (int i = 0; i < layers->count; i++)
        CVY_TRY(at_tree(read_layer(r, layers->child[i]), layers->child[i]));
    return CVY_OK;
}

static cvy_status read_inputs(cvy_model *m, const cvy_tree *inputs, const cvy_shape *input)
{
    if (!inputs) {
        CVY_CHECK(input, CVY_E_CONFIG, "the network needs `inputs`, for example {x: 3x32x32}");
        return cvy_model_add_input(m, "x", CVY_DTYPE_F32, input);
    }
    CVY_CHECK(inputs->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: `inputs` is a map of names and shapes",
              cvy_tree_where(inputs));
    for (int i = 0; i < inputs->count; i++) {
        cvy_shape shape;
        CVY_CHECK(inputs->child[i]->text, CVY_E_CONFIG, "%s: expected a shape like 3x32x32",
                  cvy_tree_where(inputs->child[i]));
        CVY_TRY(at_tree(cvy_shape_parse(inputs->child[i]->text, &shape), inputs->child[i]));
        CVY_TRY(cvy_model_add_input(m, inputs->key[i], CVY_DTYPE_F32, &shape));
    }
    return CVY_OK;
}

/* Adds the data's other fields as inputs, before the layers that may read them. */
static cvy_status add_fields(cvy_model *m, const cvy_model_input *field, int nfield)
{
    for (int i = 0; i < nfield; i++) {
        int declared = 0;
        for (int k = 0; k < m->ninput; k++)
            declared |= strcmp(m->input[k].name, field[i].name) == 0;
        if (!declared)
            CVY_TRY(cvy_model_add_input(m, field[i].name, field[i].dtype, &field[i].sample_shape));
    }
    return CVY_OK;
}

static cvy_status read_network(const cvy_tree *tree, const cvy_shape *input, int64_t classes,
                               const cvy_model_input *field, int nfield, cvy_model *m)
{
    if (tree->kind == CVY_TREE_SCALAR || cvy_tree_get(tree, "name")) {
        const cvy_tree *name = tree->kind == CVY_TREE_SCALAR ? tree : cvy_tree_get(tree, "name");
        CVY_CHECK(name->text && *name->text, CVY_E_CONFIG, "%s: `model` needs the name of a network",
                  cvy_tree_where(tree));
        CVY_TRY(build_zoo(name->text, tree->kind == CVY_TREE_MAP ? tree : NULL, input, classes, m));
        return add_fields(m, field, nfield);
    }
    static const char *const known[] = {"inputs", "networks", "layers", "output", "name"};
    const cvy_tree *layers = cvy_tree_get(tree, "layers"), *output = cvy_tree_get(tree, "output"),
                   *inputs = cvy_tree_get(tree, "inputs");
    for (int i = 0; i < tree->count; i++)
        CVY_CHECK(is_one_of(tree->key[i], known, CVY_COUNT(known)), CVY_E_CONFIG, "%s: unknown key '%s' in `model`%s",
                  cvy_tree_where(tree->key_at[i]), tree->key[i],
                  cvy_hint_name('\'', tree->key[i], known, CVY_COUNT(known)).text);
    CVY_CHECK(layers, CVY_E_CONFIG, "%s: `model` needs `name` (a network of the zoo) or `layers`",
              cvy_tree_where(tree));
    CVY_TRY(read_inputs(m, inputs, input));
    CVY_TRY(add_fields(m, field, nfield));
    reader r = {.m = m, .networks = cvy_tree_get(tree, "networks")};
    CVY_TRY(check_network_names(r.networks));
    CVY_TRY(read_layers(&r, layers));
    CVY_TRY(check_applied(&r));
    if (output && output->text)
        CVY_TRY(cvy_pool_strdup(m->pool, output->text, &m->output));
    return CVY_OK;
}

cvy_status cvy_model_from_fields(const cvy_tree *tree, const cvy_extensions *extensions, const cvy_shape *input,
                                 int64_t classes, const cvy_model_input *field, int nfield, cvy_model **out)
{
    cvy_model *m = NULL;
    const cvy_tree *name = tree->kind == CVY_TREE_SCALAR ? tree : cvy_tree_get(tree, "name");
    CVY_TRY(cvy_model_create(name && name->text ? name->text : "network", &m));
    m->extensions = extensions;
    const cvy_status status = at_tree(read_network(tree, input, classes, field, nfield, m), tree);
    if (status != CVY_OK)
        cvy_model_destroy(&m);
    else
        *out = m;
    return status;
}

void cvy_text_release(char **text)
{
    CVY_ENTRY();
    cvy_mem_free(text);
}
