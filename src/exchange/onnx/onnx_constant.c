/*
 * onnx_constant.c: which constants of an ONNX file are trained. ONNX itself does not say it.
 *
 * PyTorch's exporter with dynamo=True says of each initialiser whether it is a parameter or a buffer, and our own
 * writer names the tensors that are not trained. In other files the place and the name decide: weights of layers
 * (Conv, Gemm, MatMul, norms, ...) are trained; an operand of a sum or product is trained if its name ends as those of
 * parameters do (pos_embed, layer_scale), and is finite. Constant nodes, and what is computed from nothing else, are
 * kept, but for weights of layers in a file that has no initialisers.
 *
 * What is kept is `trained: false` in the layers of the job. The notes of the import name all that is no weight of a
 * layer, and all weights of layers that are kept.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exchange/onnx/onnx.h"

#define KIND "pkg.torch.export.graph_signature.InputSpec.kind"
#define FOLDED_FROM "pkg.onnxscript.optimizer.folded_from"
#define SIGNATURE "pkg.torch.export.ExportedProgram.graph_signature"

enum { NAME = 300 }; /* of a parameter in a signature, at most */

/* ---- what the file says ---- */

static const char *find(Cvy__Onnx__StringStringEntryProto *const *props, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(props[i]->key, key) == 0)
            return props[i]->value;
    return NULL;
}

static int kind_of_word(const char *word)
{
    return strcmp(word, "PARAMETER") == 0 ? CVY_ONNX_PARAMETER : CVY_ONNX_CONSTANT;
}

/* The names that a signature has as ": PARAMETER target='conv.weight'". */
static cvy_status list_parameters(const char *signature, cvy_keys *out)
{
    static const char before[] = ": PARAMETER target='";
    char name[NAME];
    int at = 0;
    for (const char *line = signature; (line = strstr(line, before)) != NULL;) {
        line += strlen(before);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(line, "'"), line);
        CVY_TRY(cvy_keys_add(out, name, &at));
    }
    return CVY_OK;
}

/* The exporter has computed a tensor of others, "['conv.weight', 'bn.weight']": it is a parameter if one of them is.
 * parameters: NULL if the file has no signature. */
static int kind_of_folded(const cvy_keys *parameters, const char *from)
{
    char name[NAME];
    int kind = CVY_ONNX_COMPUTED;
    for (const char *at = strchr(from, '\''); at; at = strchr(at + 1, '\'')) {
        const int n = (int)strcspn(++at, "'");
        snprintf(name, sizeof name, "%.*s", n, at);
        kind = CVY_MAX(kind, !parameters                            ? CVY_ONNX_NAMED
                             : cvy_keys_find(parameters, name) >= 0 ? CVY_ONNX_PARAMETER
                                                                    : kind);
        at += n;
        if (!*at)
            break;
    }
    return kind;
}

static cvy_status read_kinds(cvy_onnx *x, const Cvy__Onnx__GraphProto *g, const cvy_keys *parameters)
{
    const char *word = NULL;
    for (size_t i = 0; i < g->n_value_info; i++) {
        const Cvy__Onnx__ValueInfoProto *v = g->value_info[i];
        if ((word = find(v->metadata_props, v->n_metadata_props, KIND)) != NULL)
            CVY_TRY(cvy_index_add(&x->constant.kinds, v->name, kind_of_word(word)));
        else if ((word = find(v->metadata_props, v->n_metadata_props, FOLDED_FROM)) != NULL)
            CVY_TRY(cvy_index_add(&x->constant.kinds, v->name, kind_of_folded(parameters, word)));
    }
    return CVY_OK;
}

cvy_status cvy_onnx_read_kinds(cvy_onnx *x, const Cvy__Onnx__ModelProto *file)
{
    const Cvy__Onnx__GraphProto *g = file->graph;
    const char *signature = find(g->metadata_props, g->n_metadata_props, SIGNATURE);
    cvy_keys parameters = {0};
    cvy_status status = CVY_OK;
    if (!signature)
        signature = find(file->metadata_props, file->n_metadata_props, SIGNATURE);
    x->constant.list = find(file->metadata_props, file->n_metadata_props, CVY_ONNX_META_CONSTANTS);
    if (signature)
        status = list_parameters(signature, &parameters);
    if (status == CVY_OK)
        status = read_kinds(x, g, signature ? &parameters : NULL);
    cvy_keys_free(&parameters);
    return status;
}

/* Whether "a b" has this name. */
static int lists(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; n > 0 && (at = strstr(at, name)) != NULL; at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return 1;
    return 0;
}

/* Where the exporter says of tensors what they are, one that it says nothing of and that holds one number only is the
 * scale or shift of a norm without parameters. */
int cvy_onnx_kind(const cvy_onnx *x, const cvy_onnx_tensor *t)
{
    const int at = cvy_index_find(&x->constant.kinds, t->name);
    double number = 0;
    if (x->constant.list)
        return lists(x->constant.list, t->name) ? CVY_ONNX_CONSTANT : CVY_ONNX_PARAMETER;
    return at >= 0                                                          ? at
           : x->constant.kinds.count > 0 && cvy_onnx_is_uniform(t, &number) ? CVY_ONNX_COMPUTED
                                                                            : CVY_ONNX_NAMED;
}

/* ---- what its names say ---- */

static int has_word(const char *name, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (strstr(name, words[i]))
            return 1;
    return 0;
}

static const char *const parameters[] = {"weight", "bias",  "scale", "shift",  "gamma", "beta", "alpha",
                                         "embed",  "token", "param", "lambda", "slope", "gain", "kernel"};
static const char *const buffers[] = {"mask", "mean", "std", "var", "buffer", "const", "running", "sinus"};

typedef struct last_part {
    char text[100];
} last_part;

/* Behind the last dot or slash, in small letters. */
static last_part last_part_of(const char *name)
{
    last_part last;
    const char *dot = strrchr(name, '.'), *slash = strrchr(name, '/');
    snprintf(last.text, sizeof last.text, "%s", dot && dot > slash ? dot + 1 : slash ? slash + 1 : name);
    for (char *c = last.text; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return last;
}

/* Whether the last part of a name is one that parameters have, and no word of it one that buffers have. TensorFlow
 * reads all its variables by ReadVariableOp, and convoy's own names end in .scale and .shift. */
static int is_name_of_parameter(const char *name)
{
    const last_part last = last_part_of(name);
    return strstr(name, "ReadVariableOp") || (has_word(last.text, parameters, CVY_COUNT(parameters)) &&
                                              !has_word(last.text, buffers, CVY_COUNT(buffers)));
}

static const char *name_of(const cvy_onnx_tensor *t)
{
    return *t->name || !t->origin ? t->name : t->origin;
}

int cvy_onnx_may_be_bias(const cvy_onnx_tensor *t)
{
    const last_part last = last_part_of(name_of(t));
    if (strstr(last.text, "bias") || strstr(name_of(t), "ReadVariableOp"))
        return t->kind != CVY_ONNX_CONSTANT;
    return t->kind == CVY_ONNX_COMPUTED || (t->kind == CVY_ONNX_NAMED && !is_name_of_parameter(name_of(t)) &&
                                            !has_word(last.text, buffers, CVY_COUNT(buffers)));
}

static int is_finite(const cvy_onnx_tensor *t)
{
    for (int64_t i = 0; i < t->elems; i++)
        if (!isfinite(cvy_onnx_number(t, i)))
            return 0;
    return 1;
}

static int is_trained(const cvy_onnx *x, const cvy_onnx_tensor *t, int is_operand)
{
    if (x->constant.rule != CVY_ONNX_CONSTANTS_AUTO)
        return x->constant.rule == CVY_ONNX_CONSTANTS_TRAINED || (!is_operand && t->kind >= CVY_ONNX_NAMED);
    if (t->kind == CVY_ONNX_PARAMETER || t->kind == CVY_ONNX_CONSTANT)
        return t->kind == CVY_ONNX_PARAMETER;
    if (is_operand)
        return t->kind == CVY_ONNX_NAMED && is_name_of_parameter(name_of(t)) && is_finite(t);
    return t->kind == CVY_ONNX_NAMED || !x->constant.has_initializers;
}

/* ---- the layers ---- */

/* A weight of a layer that nobody doubts: the file says that it is a parameter, or its name does, or says nothing. */
static int is_plain_weight(const cvy_onnx_tensor *t, int is_operand)
{
    const char *name = name_of(t);
    return !is_operand && (t->kind != CVY_ONNX_NAMED || !*name || strncmp(name, "onnx::", 6) == 0 ||
                           isdigit((unsigned char)*name) || is_name_of_parameter(name));
}

/* Lists a variable, with the name that it has in the file if that is another one. */
static cvy_status note(cvy_onnx *x, cvy_keys *list, const char *variable, const cvy_onnx_tensor *t)
{
    char *text = NULL;
    int at = 0;
    const char *name = name_of(t);
    const int same = !*name || strcmp(name, variable) == 0;
    CVY_TRY(cvy_pool_printf(x->out->pool, &text,
                            same       ? "%s"
                            : *t->name ? "%s (%s)"
                                       : "%s (made of %s)",
                            variable, name));
    return cvy_keys_add(list, text, &at);
}

cvy_status cvy_onnx_settle(const cvy_onnx_node *node, const char *layer, const char *parameter,
                           const cvy_onnx_tensor *t)
{
    cvy_onnx *x = node->x;
    const cvy_layer *last = &x->out->model->layer[x->out->model->nlayer - 1];
    const int is_operand = strcmp(last->op->name, "affine") == 0, trains = is_trained(x, t, is_operand);
    char *variable = NULL;
    int at = 0;
    CVY_TRY(cvy_pool_printf(x->out->pool, &variable, "%s%s%s", layer, *parameter ? "." : "", parameter));
    const cvy_variable *v = cvy_vars_find(x->build.vars, variable);
    if (!v || v->role != CVY_ROLE_WEIGHT || (trains && is_plain_weight(t, is_operand)))
        return CVY_OK;
    if (trains)
        return note(x, &x->constant.trained, variable, t);
    CVY_TRY(cvy_keys_add(&x->constant.kept, variable, &at));
    CVY_TRY(note(x, &x->constant.not_trained, variable, t));
    return cvy_index_add(&x->constant.layers, last->name, 0);
}

cvy_status cvy_onnx_settle_number(cvy_onnx *x, const cvy_onnx_tensor *t)
{
    int at = 0;
    return *name_of(t) && is_trained(x, t, 1) ? cvy_keys_add(&x->constant.numbers, name_of(t), &at) : CVY_OK;
}

/* What of a layer is trained: its variables that are not kept. */
static cvy_status set_layer(const cvy_onnx *x, cvy_layer *layer)
{
    const size_t n = strlen(layer->name);
    char *names = NULL;
    CVY_TRY(cvy_pool_strdup(x->out->model->pool, "", &names));
    for (int i = 0; i < x->build.vars->count; i++) {
        const cvy_variable *v = x->build.vars->at[i];
        if (v->role == CVY_ROLE_WEIGHT && strncmp(v->name, layer->name, n) == 0 && v->name[n] == '.' &&
            !strchr(v->name + n + 1, '.') && cvy_keys_find(&x->constant.kept, v->name) < 0)
            CVY_TRY(cvy_pool_printf(x->out->model->pool, &names, "%s%s%s", names, *names ? ", " : "", v->name + n + 1));
    }
    layer->trained = names;
    return CVY_OK;
}

void cvy_onnx_list_some(const cvy_keys *names, cvy_text *out)
{
    enum { NAMED = 16 };
    for (int i = 0; i < names->count && i < NAMED; i++)
        cvy_text_add(out, "%s%s", i ? ", " : "", names->text[i]);
    if (names->count > NAMED)
        cvy_text_add(out, " and %d more", names->count - NAMED);
}

cvy_status cvy_onnx_keep_constants(cvy_onnx *x)
{
    cvy_model *m = x->out->model;
    cvy_text *notes = &x->out->notes;
    for (int i = 0; i < m->nlayer; i++)
        if (cvy_index_find(&x->constant.layers, m->layer[i].name) >= 0)
            CVY_TRY(set_layer(x, &m->layer[i]));
    if (x->constant.trained.count > 0) {
        cvy_text_add(notes, "also trained, as parameters of the file by their names or places: ");
        cvy_onnx_list_some(&x->constant.trained, notes);
        cvy_text_add(notes, "\n");
    }
    if (x->constant.not_trained.count > 0) {
        cvy_text_add(notes, "not trained, as constants of the file: ");
        cvy_onnx_list_some(&x->constant.not_trained, notes);
        cvy_text_add(notes, "; with `constants: trained` beside model.onnx they are\n");
    }
    if (x->constant.numbers.count > 0) {
        cvy_text_add(notes, "not trained, as a single number becomes an option of a layer: ");
        cvy_onnx_list_some(&x->constant.numbers, notes);
        cvy_text_add(notes, "\n");
    }
    return notes->status;
}

void cvy_onnx_free_kinds(cvy_onnx *x)
{
    cvy_index_free(&x->constant.kinds);
    cvy_index_free(&x->constant.layers);
    cvy_keys_free(&x->constant.kept);
    cvy_keys_free(&x->constant.numbers);
    cvy_keys_free(&x->constant.not_trained);
    cvy_keys_free(&x->constant.trained);
}
