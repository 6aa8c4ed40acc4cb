/*
 * onnx_share.c: layers that have the same tensors of an ONNX file share their variables. A tensor that is there in
 * several forms, as a matrix and its transpose, or for layers of different kinds, becomes a variable for each form.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/onnx/onnx.h"

enum { FORMS = 8 }; /* that are told from each other; layers with further ones share nothing */

/* By what a layer is found that has the same tensors; NULL: it shares none. */
static cvy_status sharing_key(cvy_onnx *x, const cvy_onnx_layer *layer, char **out)
{
    double number = 0;
    int varies = layer->weight && !cvy_onnx_is_uniform(layer->weight, &number);
    *out = NULL;
    for (int i = 0; i < CVY_ONNX_MORE; i++)
        varies |= layer->more[i] && !cvy_onnx_is_uniform(layer->more[i], &number);
    if (!layer->weight || !*layer->weight->name || !varies)
        return CVY_OK;
    CVY_TRY(cvy_pool_printf(x->out->pool, out, "%s %s", layer->op, layer->weight->name));
    for (int i = 0; i < CVY_ONNX_MORE; i++)
        if (layer->more[i])
            CVY_TRY(cvy_pool_printf(x->out->pool, out, "%s %s", *out, layer->more[i]->name));
    return CVY_OK;
}

static int is_same(const cvy_onnx_tensor *a, const cvy_onnx_tensor *b)
{
    return a == b ||
           (a && b && a->dtype == b->dtype && cvy_shape_equal(&a->shape, &b->shape) &&
            (a->data == b->data || memcmp(a->data, b->data, (size_t)a->elems * cvy_dtype_bytes(a->dtype)) == 0));
}

static int is_transpose(const cvy_onnx_tensor *a, const cvy_onnx_tensor *b)
{
    const size_t width = cvy_dtype_bytes(a->dtype);
    if (a->dtype != b->dtype || a->shape.dim[0] != b->shape.dim[1] || a->shape.dim[1] != b->shape.dim[0])
        return 0;
    const int64_t columns = a->shape.dim[1], rows = a->shape.dim[0];
    for (int64_t i = 0; i < a->elems; i++)
        if (memcmp((const char *)a->data + (size_t)i * width,
                   (const char *)b->data + (size_t)(i % columns * rows + i / columns) * width, width) != 0)
            return 0;
    return 1;
}

/* A tensor keeps its name when the reader transposes or scales it, so the name alone does not say its values. The
 * matrix of a layer fc is changed by a transpose. */
static int has_values_of(const cvy_onnx_owner *owner, const cvy_onnx_layer *layer)
{
    const cvy_onnx_tensor *a = owner->weight, *b = layer->weight;
    int same =
        owner->is_changed == layer->is_changed ? is_same(a, b) : strcmp(layer->op, "fc") == 0 && is_transpose(a, b);
    for (int i = 0; i < CVY_ONNX_MORE && same; i++)
        same = is_same(owner->more[i], layer->more[i]);
    return same;
}

cvy_status cvy_onnx_find_owner(cvy_onnx *x, const cvy_onnx_layer *layer, const char **key, int *owner)
{
    char *text = NULL;
    *key = NULL;
    *owner = -1;
    CVY_TRY(sharing_key(x, layer, &text));
    for (int form = 0; text && form < FORMS; form++) {
        const int at = cvy_index_find(&x->owner, text);
        if (at < 0 || has_values_of(&x->owned[at], layer)) {
            *key = text;
            *owner = at < 0 ? -1 : x->owned[at].layer;
            return CVY_OK;
        }
        CVY_TRY(cvy_pool_printf(x->out->pool, &text, "%s '", text));
    }
    return CVY_OK;
}

cvy_status cvy_onnx_add_owner(cvy_onnx *x, const cvy_onnx_layer *layer, const char *key)
{
    const char *name = layer->weight->name;
    int at = 0;
    CVY_TRY(cvy_mem_reserve(&x->owned, &x->owned_room, x->nowned, sizeof *x->owned));
    cvy_onnx_owner *owner = &x->owned[x->nowned];
    *owner = (cvy_onnx_owner){x->out->model->nlayer - 1, layer->is_changed, layer->weight, {NULL}};
    memcpy(owner->more, layer->more, sizeof owner->more);
    CVY_TRY(cvy_index_add(&x->owner, key, x->nowned++));
    if (cvy_index_find(&x->shared, name) >= 0)
        CVY_TRY(cvy_keys_add(&x->several, name, &at));
    return cvy_index_add(&x->shared, name, 0);
}

cvy_status cvy_onnx_note_forms(cvy_onnx *x)
{
    cvy_text *notes = &x->out->notes;
    if (x->several.count == 0)
        return CVY_OK;
    cvy_text_add(notes, "tensors of the file that layers have in several forms (transposed, scaled, or for layers of "
                        "different kinds) become a tensor for each form, and these are not tied to each other: ");
    cvy_onnx_list_some(&x->several, notes);
    cvy_text_add(notes, "\n");
    return notes->status;
}

void cvy_onnx_free_owners(cvy_onnx *x)
{
    cvy_index_free(&x->owner);
    cvy_index_free(&x->shared);
    cvy_keys_free(&x->several);
    cvy_mem_free(&x->owned);
}
