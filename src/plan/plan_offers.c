/*
 * plan_offers.c: asks the candidates for each node: every registered kernel of its operator, and the operator's plain
 * kernel.
 *
 * It runs before the first step. To ask a library for an implementation takes up to a millisecond, networks repeat
 * their layers, and the planner tries many plans; therefore each kernel is asked only once for each combination of the
 * node's signature and the layouts of its sources.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_offers.h"

#include <string.h>

#include "base/base_hash.h"
#include "extension/extension.h"
#include "plan/plan_call.h"

const cvy_kernel_def cvy_kernel_plain = {.name = "reference"};

/* ---- signatures ---- */

/* Hashes the options that can change an offer or a time: texts are left out, and of a real only counts whether it is
 * 0. */
static void hash_options(const cvy_op_def *op, const void *options, cvy_hasher *h)
{
    for (const cvy_option *row = op->options; row && row->name; row++) {
        const char *field = (const char *)options + row->offset;
        const cvy_ints *ints = (const void *)field;
        int flag;
        switch (row->type) {
        case CVY_TYPE_INT: cvy_hash_add(h, field, sizeof(int64_t)); break;
        case CVY_TYPE_INT3: cvy_hash_add(h, field, 3 * sizeof(int64_t)); break;
        case CVY_TYPE_BOOL:
        case CVY_TYPE_DTYPE:
        case CVY_TYPE_CHOICE: cvy_hash_add(h, field, sizeof(int)); break;
        case CVY_TYPE_INTS: cvy_hash_add(h, ints->at, sizeof *ints->at * (size_t)ints->count); break;
        case CVY_TYPE_REAL:
            flag = *(const double *)(const void *)field != 0;
            cvy_hash_add(h, &flag, sizeof flag);
            break;
        case CVY_TYPE_REALS: cvy_hash_add(h, field, sizeof(int)); break;
        case CVY_TYPE_STRING:
        case CVY_TYPE_WORD:
        case CVY_TYPE_NAMES:
        case CVY_TYPE_TREE: break;
        }
    }
    if (!op->options && options)
        cvy_hash_add(h, options, op->options_size);
    const cvy_extension_op *x = cvy_extension_op_of(op);
    if (x) /* another version of a user's library has other times */
        cvy_hash_add(h, &x->file->hash, sizeof x->file->hash);
}

/* The first index at which the node has source i: a source that is given twice is the same memory. */
static int first_place(const cvy_node *node, int i)
{
    int j = 0;
    while (node->src[j] != node->src[i])
        j++;
    return j;
}

static void add_value(cvy_text *t, const cvy_value *v)
{
    if (v)
        cvy_text_add(t, " %s:%s", cvy_shape_text(&v->shape), cvy_dtype_text(v->dtype));
    else
        cvy_text_add(t, " -");
}

/* The signature starts with the samples of all ranks, because kernels choose the layouts of variables by them. */
static void add_signature(cvy_text *t, const cvy_node *node)
{
    cvy_hasher h;
    cvy_hash_begin(&h);
    hash_options(node->op, node->options, &h);
    cvy_text_add(t, "%lld/%d|%s#%08x", (long long)node->graph->batch.global_n, node->graph->batch.nranks,
                 node->op->name, (unsigned)(cvy_hash_end(&h) & 0xffffffff));
    for (int i = 0; i < node->nsrc; i++) {
        const int same = first_place(node, i);
        if (same < i)
            cvy_text_add(t, " =%d", same);
        else
            add_value(t, node->src[i]);
    }
    cvy_text_add(t, " >");
    for (int i = 0; i < node->ndst; i++)
        add_value(t, node->dst[i]);
}

cvy_status cvy_offers_signature(cvy_offers *offers, const cvy_node *node, int *signature_out)
{
    cvy_text t = {0};
    const int before = offers->signature.count;
    add_signature(&t, node);
    cvy_status status = t.status;
    if (status == CVY_OK)
        status = cvy_mem_reserve(&offers->first, &offers->room, before, sizeof *offers->first);
    if (status == CVY_OK)
        status = cvy_keys_add(&offers->signature, t.data, signature_out);
    cvy_text_free(&t);
    return status;
}

/* ---- the plain kernel ---- */

/* Elementwise operators and updates can work on any layout that their tensors have in common, because padding is zero.
 * 1: there is one. 0: the plain layout must be used. */
static int plain_common_layout(const cvy_node *node, const cvy_kernel_ask *ask, cvy_layout *common_out)
{
    int found = 0;
    if (node->op->flags & CVY_OP_PRODUCT ||
        (!(node->op->flags & CVY_OP_ELEMENTWISE) && node->phase != CVY_PHASE_UPDATE))
        return 0;
    for (int i = 0; i < node->nsrc; i++) {
        if (ask->src_free[i] || node->src[i]->shape.ndim == 0)
            continue;
        if (!found)
            *common_out = ask->src[i];
        else if (!cvy_layout_equal(&ask->src[i], common_out) && node->phase != CVY_PHASE_UPDATE)
            return 0;
        found = 1;
    }
    return found;
}

static cvy_status offer_plain(cvy_kernel_ask *ask)
{
    const cvy_node *node = ask->node;
    CVY_CHECK(node->op->reference, CVY_NOT_APPLICABLE, "the operator %s has no plain kernel", node->op->name);
    CVY_CHECK(!(node->op->flags & CVY_OP_PRODUCT) || cvy_layout_is_plain(&ask->src[0]), CVY_NOT_APPLICABLE,
              "the plain kernel cannot assign a variable that has another layout");
    cvy_layout common = cvy_layout_plain();
    const int any = plain_common_layout(node, ask, &common);
    for (int i = 0; i < node->nsrc; i++)
        if (!any || (ask->src_free[i] && node->src[i]->shape.ndim))
            ask->src[i] = any ? common : cvy_layout_plain();
    for (int i = 0; i < node->ndst; i++)
        if (node->dst[i]) {
            if (!(any && ask->dst_fixed[i]))
                ask->dst[i] = any && node->dst[i]->shape.ndim ? common : cvy_layout_plain();
            ask->inplace[i] = i == 0 && (node->op->flags & CVY_OP_ELEMENTWISE) != 0;
        }
    return CVY_OK;
}

/* ---- asking ---- */

static int equal_layouts(const cvy_layout *a, const cvy_layout *b, int n)
{
    for (int i = 0; i < n; i++)
        if (!cvy_layout_equal(&a[i], &b[i]))
            return 0;
    return 1;
}

static int equal_ask(const cvy_kernel_ask *a, const cvy_kernel_ask *b)
{
    return a->threads == b->threads && a->deterministic == b->deterministic && a->tf32 == b->tf32 &&
           equal_layouts(a->src, b->src, CVY_NODE_SRC_MAX) && equal_layouts(a->dst, b->dst, CVY_NODE_DST_MAX) &&
           memcmp(a->src_free, b->src_free, sizeof a->src_free) == 0 &&
           memcmp(a->dst_fixed, b->dst_fixed, sizeof a->dst_fixed) == 0;
}

static cvy_status ask_kernel(const cvy_kernel_def *kernel, const cvy_kernel_ask *in, cvy_offer *o)
{
    o->kernel = kernel;
    o->in = o->out = *in;
    o->in.kernel = o->out.kernel = kernel;
    o->ms = CVY_MS_UNKNOWN;
    o->status = kernel == &cvy_kernel_plain ? offer_plain(&o->out) : kernel->offer(&o->out);
    o->in.node = o->out.node = NULL;
    if (o->status < 0)
        return cvy_error_prefix(o->status, "kernel %s for %s", kernel->name, in->node->name);
    return o->status == CVY_OK ? CVY_OK : cvy_mem_strdup(cvy_error_text(), &o->reason);
}

cvy_status cvy_offers_ask(cvy_offers *offers, int signature, const cvy_kernel_def *kernel, const cvy_kernel_ask *in,
                          cvy_offer **out)
{
    cvy_offer **at = &offers->first[signature], *made = NULL;
    for (; *at; at = &(*at)->next)
        if ((*at)->kernel == kernel && equal_ask(&(*at)->in, in)) {
            *out = *at;
            return CVY_OK;
        }
    CVY_TRY(cvy_mem_alloc(sizeof *made, &made));
    const cvy_status status = ask_kernel(kernel, in, made);
    if (status != CVY_OK) {
        cvy_mem_free(&made);
        return status;
    }
    *out = *at = made;
    return CVY_OK;
}

/* Kernels are asked in the order of their library in cvy_kernels, then by preference, then in the order of the
 * table. */
struct order {
    int place, preference, row;
};

static int before(const struct order *a, const struct order *b)
{
    if (a->place != b->place)
        return a->place < b->place;
    return a->preference != b->preference ? a->preference > b->preference : a->row < b->row;
}

static struct order order_of(const cvy_kernel_def *kernel, int row, const cvy_kernels *kernels)
{
    return (struct order){cvy_kernels_place(kernels, kernel), kernel->preference, row};
}

const cvy_kernel_def *cvy_kernel_next(const char *op, const cvy_kernel_def *after, const cvy_kernels *kernels)
{
    int count = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    const cvy_kernel_def *best = NULL;
    struct order last = {-1, 0, 0}, best_order = {0};
    for (int i = 0; after && i < count; i++)
        if (table[i] == after)
            last = order_of(after, i, kernels);
    for (int i = 0; i < count; i++) {
        if (strcmp(table[i]->op, op) != 0)
            continue;
        const struct order order = order_of(table[i], i, kernels);
        if (order.place >= 0 && (!after || before(&last, &order)) && (!best || before(&order, &best_order))) {
            best = table[i];
            best_order = order;
        }
    }
    return best;
}

cvy_status cvy_offers_create(cvy_offers **out)
{
    return cvy_mem_alloc(sizeof **out, out);
}

void cvy_offers_destroy(cvy_offers **offers)
{
    cvy_offers *o = *offers;
    if (!o)
        return;
    for (int s = 0; s < o->signature.count; s++)
        while (o->first[s]) {
            cvy_offer *offer = o->first[s];
            o->first[s] = offer->next;
            cvy_mem_free(&offer->reason);
            cvy_mem_free(&offer);
        }
    cvy_mem_free(&o->first);
    cvy_keys_free(&o->signature);
    cvy_mem_free(offers);
}

/* ---- keys of the wisdom ---- */

static void add_layout(cvy_text *t, const cvy_layout *layout)
{
    cvy_text_add(t, " %s", layout->tag[0] ? layout->tag : "plain");
}

void cvy_offer_key(const cvy_offers *offers, int signature, const cvy_node *node, const cvy_offer *offer, cvy_text *out)
{
    const char *text = strchr(offers->signature.text[signature], '|') + 1;
    cvy_text_add(out, "%s by %s of %d:", text, offer->kernel->name, offer->in.threads);
    for (int i = 0; i < node->nsrc; i++)
        add_layout(out, &offer->out.src[i]);
    cvy_text_add(out, " >");
    for (int i = 0; i < node->ndst; i++)
        if (node->dst[i])
            add_layout(out, &offer->out.dst[i]);
    if (offer->in.tf32)
        cvy_text_add(out, " tf32");
}

void cvy_reorder_key(const cvy_instance *from, const cvy_instance *to, int threads, cvy_text *out)
{
    cvy_text_add(out, "reorder %s:%s of %d:", cvy_shape_text(&from->value->shape), cvy_dtype_text(from->dtype),
                 threads);
    add_layout(out, &from->layout);
    cvy_text_add(out, " >%s", from->dtype == to->dtype ? "" : cvy_dtype_text(to->dtype));
    add_layout(out, &to->layout);
}

void cvy_call_key(const cvy_lowered *u, const cvy_call *call, int threads, cvy_text *out)
{
    if (cvy_call_reorders(call))
        cvy_reorder_key(&u->instance[call->src[0]], &u->instance[call->dst[0]], threads, out);
    else
        cvy_offer_key(u->offers, call->signature, call->node, call->offer, out);
}
