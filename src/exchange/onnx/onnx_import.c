/*
 * onnx_import.c: reads an ONNX graph node by node; see onnx.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx.h"

/* ---- values ---- */

static cvy_status value_of(cvy_onnx *x, const char *name, cvy_onnx_value **out)
{
    int at = 0;
    const int before = x->names.count;
    CVY_TRY(cvy_mem_reserve(&x->value, &x->room, before, sizeof *x->value));
    CVY_TRY(cvy_keys_add(&x->names, name, &at));
    if (at == before)
        x->value[at] = (cvy_onnx_value){.name = x->names.text[at]};
    *out = &x->value[at];
    return CVY_OK;
}

static cvy_status cannot_be_made_twice(const cvy_onnx *x, const char *name)
{
    CVY_FAIL(CVY_E_FORMAT, "%s: the name %s stands for two values", x->path, name);
}

static cvy_status index_node(cvy_onnx *x, const Cvy__Onnx__NodeProto *p)
{
    cvy_onnx_value *value = NULL;
    for (size_t k = 0; k < p->n_input; k++)
        if (*p->input[k]) {
            CVY_TRY(value_of(x, p->input[k], &value));
            value->reader = value->readers++ ? value->reader : p;
            value->turns += strcmp(p->op_type, "Transpose") == 0;
        }
    for (size_t k = 0; k < p->n_output; k++)
        if (*p->output[k]) {
            CVY_TRY(value_of(x, p->output[k], &value));
            if (value->maker)
                return cannot_be_made_twice(x, value->name);
            value->maker = p;
        }
    CVY_CHECK(p->n_output > 0 && *p->output[0], CVY_E_FORMAT, "%s: node %s (%s) has no first output", x->path,
              *p->name ? p->name : "without a name", p->op_type);
    return CVY_OK;
}

/* All names, who makes their values, and who reads them. From here on no value moves. */
static cvy_status index_values(cvy_onnx *x)
{
    cvy_onnx_value *value = NULL;
    for (size_t i = 0; i < x->proto->n_initializer; i++)
        CVY_TRY(value_of(x, x->proto->initializer[i]->name, &value));
    for (size_t i = 0; i < x->proto->n_sparse_initializer; i++) {
        const Cvy__Onnx__TensorProto *values = x->proto->sparse_initializer[i]->values;
        CVY_TRY(value_of(x, values ? values->name : "", &value));
    }
    for (size_t i = 0; i < x->proto->n_input; i++)
        CVY_TRY(value_of(x, x->proto->input[i]->name, &value));
    for (size_t i = 0; i < x->proto->n_node; i++)
        CVY_TRY(index_node(x, x->proto->node[i]));
    for (size_t i = 0; i < x->proto->n_output; i++) {
        CVY_TRY(value_of(x, x->proto->output[i]->name, &value));
        value->readers += 2;
    }
    return CVY_OK;
}

static cvy_status take_constant(cvy_onnx *x, const char *name, cvy_onnx_tensor *t)
{
    cvy_onnx_value *value = NULL;
    CVY_TRY(value_of(x, name, &value));
    if (value->constant || value->maker)
        return cannot_be_made_twice(x, value->name);
    value->constant = t;
    t->kind = cvy_onnx_kind(x, t);
    x->constant.has_initializers |= t->kind >= CVY_ONNX_NAMED && cvy_onnx_is_real(t) && t->elems > 1;
    return CVY_OK;
}

static cvy_status read_constants(cvy_onnx *x)
{
    cvy_onnx_tensor *t = NULL;
    for (size_t i = 0; i < x->proto->n_sparse_initializer; i++) {
        CVY_TRY(cvy_onnx_take_sparse(x, x->proto->sparse_initializer[i], &t));
        CVY_TRY(take_constant(x, t->name, t));
    }
    for (size_t i = 0; i < x->proto->n_initializer; i++) {
        const Cvy__Onnx__TensorProto *from = x->proto->initializer[i];
        CVY_TRY(cvy_pool_alloc(x->out->pool, sizeof *t, &t));
        CVY_TRY(cvy_onnx_tensor_read(x->out->pool, x->folder, from, t));
        CVY_TRY(take_constant(x, from->name, t));
        if (from->data_location == 1) /* its bytes are in another file */
            x->file_bytes += (size_t)t->elems * cvy_dtype_bytes(t->dtype);
    }
    return CVY_OK;
}

/* ---- inputs ---- */

static cvy_status input_shape(cvy_onnx *x, const Cvy__Onnx__ValueInfoProto *in, cvy_shape *sample)
{
    int64_t elems = 1;
    const Cvy__Onnx__TensorTypeProto *type = in->type ? in->type->tensor_type : NULL;
    const Cvy__Onnx__TensorShapeProto *shape = type ? type->shape : NULL;
    CVY_CHECK(shape && shape->n_dim > 0 && shape->n_dim <= CVY_NDIM_MAX, CVY_E_UNSUPPORTED,
              "%s: input %s has no shape with a batch and at most %d further dimensions", x->path, in->name,
              CVY_NDIM_MAX - 1);
    sample->ndim = (int)shape->n_dim - 1;
    for (int i = 0; i < sample->ndim; i++) {
        const Cvy__Onnx__DimensionProto *dim = shape->dim[i + 1];
        CVY_CHECK(dim->dim_value > 0, CVY_E_UNSUPPORTED,
                  "%s: input %s: dimension %d (%s) is free; only the first one, the batch, may be: export the network "
                  "with a fixed size",
                  x->path, in->name, i + 1, dim->dim_param && *dim->dim_param ? dim->dim_param : "?");
        CVY_CHECK(dim->dim_value <= CVY_ONNX_ELEMS / elems, CVY_E_UNSUPPORTED,
                  "%s: input %s: dimension %d is %lld, which makes a sample too large", x->path, in->name, i + 1,
                  (long long)dim->dim_value);
        elems *= dim->dim_value;
        sample->dim[i] = dim->dim_value;
    }
    const int64_t batch = shape->dim[0]->dim_value;
    x->batch = x->batch ? x->batch : CVY_MAX(batch, 0);
    return CVY_OK;
}

/* The sample [positions.., C] of a file becomes [C, positions..], as the data of jobs are. *order_out: the axes of the
 * file's, for its readers, which turn them. */
static cvy_status put_channels_first(cvy_onnx *x, const char *name, cvy_shape *sample, const int64_t **order_out)
{
    const int n = sample->ndim;
    const cvy_shape last = *sample;
    int64_t *order = NULL;
    CVY_TRY(cvy_pool_alloc(x->out->pool, sizeof *order * (size_t)(n + 1), &order));
    for (int i = 0; i < n; i++) {
        sample->dim[i] = last.dim[(i + n - 1) % n];
        order[i + 1] = i == n - 1 ? 1 : i + 2;
    }
    cvy_text_add(&x->out->notes,
                 "the input %s of the file has its channels last, %s; the data of a job have them first, %s\n", name,
                 cvy_shape_text(&last), cvy_shape_text(sample));
    *order_out = order;
    return x->out->notes.status;
}

/* A network that takes integers does with them what a real network leaves to the data of a job: bytes stay 0 to 255. */
static cvy_status take_type(cvy_onnx *x, const Cvy__Onnx__ValueInfoProto *in, const char *name, cvy_onnx_value *value)
{
    const int type = in->type->tensor_type->elem_type;
    CVY_CHECK(cvy_onnx_type_is_real(type) || cvy_onnx_type_is_whole(type), CVY_E_UNSUPPORTED,
              "%s: input %s has the data type %d of ONNX, and numbers are expected", x->path, in->name, type);
    value->whole = cvy_onnx_type_is_whole(type) ? type : 0;
    if (!value->whole || strcmp(name, "x") != 0 || (x->inside && x->skips_data))
        return CVY_OK;
    x->out->x_is_bytes = type == CVY_ONNX_UINT8;
    x->out->keeps_bytes = 1;
    cvy_text_add(&x->out->notes,
                 "the input %s of the file has the data type %s, so bytes of pictures stay 0 to 255, and are not "
                 "divided by 255 (data.augment gets {scale: 1})\n",
                 in->name, cvy_onnx_type_name(type));
    return x->out->notes.status;
}

static cvy_status add_input(cvy_onnx *x, const Cvy__Onnx__ValueInfoProto *in, const char *name)
{
    cvy_onnx_value *value = NULL;
    cvy_shape sample;
    const int64_t *order = NULL;
    CVY_TRY(input_shape(x, in, &sample));
    if (strcmp(name, "x") == 0 && cvy_onnx_is_channels_last(x, in->name, sample.ndim + 1))
        CVY_TRY(put_channels_first(x, in->name, &sample, &order));
    CVY_TRY(value_of(x, in->name, &value));
    if (value->layer || value->maker)
        return cannot_be_made_twice(x, value->name);
    CVY_TRY(cvy_build_input(&x->build, name, CVY_DTYPE_F32, &sample));
    CVY_TRY(cvy_pool_strdup(x->out->pool, name, (char **)(uintptr_t)&value->layer));
    value->shape = *cvy_onnx_shape(x, name);
    if (order)
        cvy_onnx_turn(value, order);
    return take_type(x, in, name, value);
}

static const char *meta(const Cvy__Onnx__ModelProto *file, const char *key)
{
    for (size_t i = 0; i < file->n_metadata_props; i++)
        if (strcmp(file->metadata_props[i]->key, key) == 0)
            return file->metadata_props[i]->value;
    return NULL;
}

/* A node of our own writer that does what the data section of a job does. */
static int is_data_node(const Cvy__Onnx__NodeProto *p)
{
    return p->name && strncmp(p->name, CVY_ONNX_DATA, strlen(CVY_ONNX_DATA)) == 0;
}

/* What the metadata of our own writer say. Another program may have changed the graph since: then the nodes for the
 * data are not there any more, and are read like all others. */
static void read_meta(cvy_onnx *x, const Cvy__Onnx__ModelProto *file)
{
    const char *inside = meta(file, CVY_ONNX_META_X), *output = meta(file, CVY_ONNX_META_OUTPUT);
    for (size_t i = 0; i < x->proto->n_node; i++) {
        const Cvy__Onnx__NodeProto *p = x->proto->node[i];
        if (inside && is_data_node(p) && p->n_output == 1 && strcmp(p->output[0], inside) == 0)
            x->inside = inside;
        if (output && p->n_output > 0 && strcmp(p->output[0], output) == 0)
            x->output = output;
    }
    x->skips_data = (!inside || x->inside) && (!output || x->output);
}

/* The layers read this value in place of x. */
static cvy_status name_inside(cvy_onnx *x)
{
    cvy_onnx_value *value = NULL;
    const cvy_value *feed = cvy_build_value(&x->build, "x");
    CVY_CHECK(feed, CVY_E_FORMAT, "%s: it has no input x", x->path);
    CVY_TRY(value_of(x, x->inside, &value));
    CVY_TRY(cvy_pool_strdup(x->out->pool, "x", (char **)(uintptr_t)&value->layer));
    value->shape = feed->shape;
    return CVY_OK;
}

/* The first input is "x", as the data of a job call it. In old files initialisers are inputs, too. */
static cvy_status add_inputs(cvy_onnx *x)
{
    int n = 0;
    for (size_t i = 0; i < x->proto->n_input; i++) {
        const Cvy__Onnx__ValueInfoProto *in = x->proto->input[i];
        const int at = cvy_keys_find(&x->names, in->name);
        if (at >= 0 && x->value[at].constant)
            continue;
        const char *name = "x";
        if (n > 0)
            CVY_TRY(cvy_onnx_input_name(x, in->name, &name));
        CVY_TRY(add_input(x, in, name));
        n++;
    }
    if (x->inside && x->skips_data)
        CVY_TRY(name_inside(x));
    CVY_CHECK(n > 0, CVY_E_UNSUPPORTED, "%s: the graph has no input", x->path);
    return CVY_OK;
}

/* ---- nodes ---- */

static int is_standard(const char *domain)
{
    return !domain || !*domain || strcmp(domain, "ai.onnx") == 0;
}

/* Names all operators that are not known, before anything is built. */
static cvy_status check_operators(const cvy_onnx *x)
{
    cvy_text missing = {0};
    int n = 0;
    for (size_t i = 0; i < x->proto->n_node; i++) {
        const Cvy__Onnx__NodeProto *p = x->proto->node[i];
        if (x->skips_data && is_data_node(p))
            continue;
        if (cvy_index_find(&x->absorbed, p->output[0]) >= 0)
            continue;
        if (is_standard(p->domain) && (cvy_onnx_find(p->op_type) || cvy_onnx_folds(p->op_type)))
            continue;
        cvy_text_add(&missing, "%s%s%s%s (node %s)", n ? ", " : "", is_standard(p->domain) ? "" : p->domain,
                     is_standard(p->domain) ? "" : ".", p->op_type, p->name && *p->name ? p->name : "without a name");
        n++;
    }
    cvy_status status = missing.status;
    if (status == CVY_OK && n > 0)
        status = cvy_error_set(CVY_E_UNSUPPORTED, "%s: %d node%s use%s operators that are not supported: %s", x->path,
                               n, n == 1 ? "" : "s", n == 1 ? "s" : "", missing.data);
    cvy_text_free(&missing);
    return status;
}

static cvy_status open_node(cvy_onnx *x, const Cvy__Onnx__NodeProto *p, cvy_onnx_node *node)
{
    node->x = x;
    node->proto = p;
    node->op = p->op_type;
    node->name = p->name && *p->name ? p->name : p->n_output > 0 ? p->output[0] : "?";
    node->nin = (int)p->n_input;
    node->nout = (int)p->n_output;
    node->source = node->moved = (cvy_onnx_batch){0};
    CVY_CHECK(p->n_input <= CVY_ONNX_SOURCES, CVY_E_UNSUPPORTED, "%s: node %s has %zu sources, the limit is %d",
              x->path, node->name, p->n_input, CVY_ONNX_SOURCES);
    for (int i = 0; i < node->nin; i++) {
        node->in[i] = NULL;
        if (!*p->input[i])
            continue;
        const int at = cvy_keys_find(&x->names, p->input[i]);
        const int is_made = at >= 0 && (x->value[at].constant || x->value[at].layer);
        CVY_CHECK(is_made || cvy_index_find(&x->absorbed, p->input[i]) >= 0, CVY_E_FORMAT,
                  "%s: node %s reads %s, which no earlier node makes", x->path, node->name, p->input[i]);
        node->in[i] = is_made ? &x->value[at] : NULL; /* what an absorbed node makes has no value */
    }
    return CVY_OK;
}

static int is_word(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = words; at && *at; at += strcspn(at, " "), at += *at == ' ')
        if (strncmp(at, word, n) == 0 && (at[n] == ' ' || !at[n]))
            return 1;
    return 0;
}

/* An attribute that is not known, as newer operator sets may have, could change what the node does. */
static cvy_status check_attributes(const cvy_onnx_node *node, const cvy_onnx_def *op)
{
    for (size_t i = 0; i < node->proto->n_attribute; i++) {
        const char *name = node->proto->attribute[i]->name;
        CVY_ONNX_CHECK(is_word(op->attributes, name) || strcmp(name, "consumed_inputs") == 0, node,
                       "its attribute %s is not known", name);
    }
    return CVY_OK;
}

static cvy_status translate(cvy_onnx_node *node)
{
    const cvy_onnx_def *op = cvy_onnx_find(node->op);
    const cvy_status status = cvy_onnx_folds(node->op) ? cvy_onnx_fold(node) : CVY_NOT_APPLICABLE;
    if (status != CVY_NOT_APPLICABLE)
        return status;
    CVY_ONNX_CHECK(op, node, "%s", "it works on the input, and is supported on constants only");
    CVY_TRY(check_attributes(node, op));
    CVY_TRY(cvy_onnx_check_types(node));
    CVY_TRY(cvy_onnx_enter_moved(node));
    return op->same ? cvy_onnx_simple(node, op->same, NULL) : op->translate(node);
}

/* A node whose work an earlier layer does. */
static cvy_status take_absorbed(cvy_onnx_node *node, const Cvy__Onnx__NodeProto *p, int layer)
{
    const int moved = cvy_index_find(&node->x->absorbed_moved, p->output[0]);
    node->proto = p;
    node->nout = 1;
    node->moved = moved >= 0 ? node->x->moved[moved] : (cvy_onnx_batch){0};
    return layer == CVY_ONNX_NO_LAYER ? CVY_OK : cvy_onnx_done(node, 0, node->x->out->model->layer[layer].output);
}

/* Constants come first, because patterns look for those of later nodes. */
static cvy_status translate_all(cvy_onnx *x)
{
    cvy_onnx_node *node = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *node, &node));
    node->x = x;
    for (int constants = 1; constants >= 0; constants--)
        for (size_t i = 0; i < x->proto->n_node && status == CVY_OK; i++) {
            const Cvy__Onnx__NodeProto *p = x->proto->node[i];
            if ((strcmp(p->op_type, "Constant") == 0) != constants)
                continue;
            if (x->skips_data && is_data_node(p))
                continue;
            const int at = cvy_index_find(&x->absorbed, p->output[0]);
            if (at >= 0) {
                status = take_absorbed(node, p, at);
                continue;
            }
            status = open_node(x, p, node);
            if (status == CVY_OK)
                status = translate(node);
        }
    cvy_mem_free(&node);
    return status;
}

/* ---- the result ---- */

/* Says which layers the further outputs are, as those of auxiliary heads that a network has in training. */
static void note_outputs(cvy_onnx *x, const char *name, const char *layer)
{
    const char *other = NULL;
    for (size_t i = 1; i < x->proto->n_output; i++) {
        const int at = cvy_keys_find(&x->names, x->proto->output[i]->name);
        const char *one = at >= 0 ? x->value[at].layer : NULL;
        if (!one || cvy_index_find(&x->out->model->layer_at, one) < 0)
            continue;
        cvy_text_add(&x->out->notes, "%s%s (layer %s)",
                     other ? ", " : "the file has further outputs: ", x->value[at].name, one);
        other = other ? other : one;
    }
    if (other)
        cvy_text_add(
            &x->out->notes,
            "; the loss reads the first output, %s (layer %s), unless train.loss names others, as {name: LOSS, "
            "output: %s}\n",
            name, layer, other);
}

static cvy_status check_outputs(const cvy_onnx *x)
{
    for (size_t k = 0; k < x->proto->n_output; k++) {
        const int at = cvy_keys_find(&x->names, x->proto->output[k]->name);
        const cvy_onnx_value *v = at >= 0 ? &x->value[at] : NULL;
        CVY_CHECK(
            !cvy_onnx_is_moved(v), CVY_E_UNSUPPORTED,
            "%s: the output %s has the samples on axis %d%s: let the network end with the samples on its first axis",
            x->path, v->name, v->batch.at, cvy_onnx_batch_dim(&v->batch) > 1 ? ", merged with others" : "");
    }
    return CVY_OK;
}

/* The first output is the network's; the others are auxiliary. */
static cvy_status set_output(cvy_onnx *x)
{
    CVY_CHECK(x->proto->n_output > 0, CVY_E_FORMAT, "%s: the graph has no output", x->path);
    const char *name = x->output && x->skips_data ? x->output : x->proto->output[0]->name;
    const int at = cvy_keys_find(&x->names, name);
    CVY_CHECK(at >= 0 && x->value[at].layer, CVY_E_FORMAT, "%s: no node makes the output %s", x->path, name);
    CVY_TRY(check_outputs(x));
    CVY_CHECK(cvy_index_find(&x->out->model->layer_at, x->value[at].layer) >= 0, CVY_E_UNSUPPORTED,
              "%s: the output %s is an input, so there is no layer", x->path, name);
    note_outputs(x, name, x->value[at].layer);
    return cvy_pool_strdup(x->out->model->pool, x->value[at].layer, &x->out->model->output);
}

/* Whether the optimiser of PyTorch's exporter has made this node of a convolution and a batch norm. */
static int is_fused_norm(const Cvy__Onnx__NodeProto *p)
{
    for (size_t i = 0; i < p->n_metadata_props; i++)
        if (strcmp(p->metadata_props[i]->key, "pkg.onnxscript.rewriter.rule_name") == 0 &&
            strstr(p->metadata_props[i]->value, "FuseBatchNorm"))
            return 1;
    return 0;
}

/* Exporters fold batch norm into the convolution before it, though it is to be trained. PyTorch's older one and tf2onnx
 * give the result a name of its own; PyTorch's newer one says which rule has made a node. */
static void note_folded(cvy_onnx *x)
{
    int folded = 0, fused = 0, merged = 0, norms = 0;
    for (size_t i = 0; i < x->proto->n_initializer; i++) {
        const char *name = x->proto->initializer[i]->name;
        folded += strncmp(name, "onnx::Conv_", 11) == 0;
        merged += strstr(name, "/merged_input:") || strstr(name, "_weights_fused_bn");
    }
    for (size_t i = 0; i < x->proto->n_node; i++) {
        norms += strcmp(x->proto->node[i]->op_type, "BatchNormalization") == 0;
        fused += is_fused_norm(x->proto->node[i]);
    }
    if (fused > 0)
        cvy_text_add(&x->out->notes,
                     "the exporter has folded %d batch norms into other layers, so they are not trained as such: "
                     "export with torch.onnx.export(..., optimize=False)\n",
                     fused);
    else if (merged > 0)
        cvy_text_add(
            &x->out->notes,
            "tf2onnx has folded a multiplication into %d convolutions; if it was that of batch norm, this is not "
            "trained as such, and docs/guide/coming-from.md says how to keep it\n",
            merged);
    else if (folded > 0 && norms == 0)
        cvy_text_add(&x->out->notes,
                     "the exporter has folded batch norm into %d tensors of convolutions, so it cannot be trained: "
                     "export with torch.onnx.export(..., training=torch.onnx.TrainingMode.TRAINING, "
                     "do_constant_folding=False)\n",
                     folded);
}

static cvy_status read_graph(cvy_onnx *x, const Cvy__Onnx__ModelProto *file)
{
    for (size_t i = 0; i < file->n_opset_import; i++)
        if (is_standard(file->opset_import[i]->domain))
            x->opset = file->opset_import[i]->version;
    CVY_CHECK(x->opset >= 1, CVY_E_FORMAT, "%s: operator set %lld of ONNX, expected 1 or newer", x->path,
              (long long)x->opset);
    x->proto = file->graph;
    CVY_TRY(index_values(x));
    read_meta(x, file);
    if (x->skips_data && meta(file, CVY_ONNX_META_NETWORK))
        CVY_TRY(cvy_pool_strdup(x->out->pool, meta(file, CVY_ONNX_META_NETWORK), (char **)(uintptr_t)&x->out->network));
    CVY_TRY(cvy_onnx_read_kinds(x, file));
    CVY_TRY(cvy_onnx_find_lrn(x));
    CVY_TRY(check_operators(x));
    CVY_TRY(cvy_build_open(&x->build, x->path, x->out));
    CVY_TRY(read_constants(x));
    CVY_TRY(add_inputs(x));
    CVY_TRY(translate_all(x));
    CVY_TRY(set_output(x));
    CVY_TRY(cvy_onnx_keep_constants(x));
    CVY_TRY(cvy_onnx_note_forms(x));
    note_folded(x);
    return x->out->notes.status;
}

static cvy_status split_path(cvy_onnx *x, const char *path)
{
    const char *slash = strrchr(path, '/');
    x->path = path;
    return slash ? cvy_pool_printf(x->out->pool, (char **)(uintptr_t)&x->folder, "%.*s", (int)(slash - path + 1), path)
                 : cvy_pool_strdup(x->out->pool, ".", (char **)(uintptr_t)&x->folder);
}

cvy_status cvy_import_onnx_constants(const char *path, cvy_onnx_constants constants, cvy_import *out)
{
    Cvy__Onnx__ModelProto *file = NULL;
    cvy_onnx x = {.out = out, .constant.rule = constants};
    *out = (cvy_import){0};
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_pool_create(&out->pool));
    CVY_TRY_OUT(split_path(&x, path));
    CVY_TRY_OUT(cvy_onnx_file_read(path, &file));
    x.file_bytes = cvy__onnx__model_proto__get_packed_size(file);
    CVY_TRY_OUT(cvy_model_create(file->graph->name && *file->graph->name ? file->graph->name : "network", &out->model));
    CVY_TRY_OUT(read_graph(&x, file));
out:
    cvy_onnx_file_free(&file);
    cvy_build_close(&x.build);
    cvy_onnx_free_kinds(&x);
    cvy_keys_free(&x.names);
    cvy_onnx_free_owners(&x);
    cvy_index_free(&x.absorbed);
    cvy_index_free(&x.absorbed_moved);
    cvy_mem_free(&x.moved);
    cvy_mem_free(&x.value);
    if (status != CVY_OK)
        cvy_import_free(out);
    return status;
}
