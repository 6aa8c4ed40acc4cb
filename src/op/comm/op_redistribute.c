/*
 * redistribute: changes which entries of one dimension the ranks of an axis of the grid have: it gathers the shares of
 * all ranks (all-gather), takes a share of a tensor that all have, or fetches the neighbours' entries that a sliding
 * window needs (halo exchange). Tensor and spatial parallelism use it; pass_split.c adds it.
 *
 *     dst = src as the ranks have it with `to` instead of `from`
 *
 * The gradient is the same operator with `from` and `to` exchanged: an entry that several ranks have as part of a
 * window gets the sum of their gradients. A tensor that all ranks have whole has its whole gradient on all of them, so
 * the gradient of an all-gather is a share, without communication, and the other way around.
 *
 * redistribute_start and redistribute_wait are its two halves: the first packs and sends, the second receives. What is
 * between them runs while the messages are under way. pass_overlap_halo.c makes them of halo exchanges.
 *
 * Source and destination have the same layout, in which samples and channels may be blocked: a range of positions is
 * then a range of each row of memory. If all ranks of the axis have the same layout, ranges are sent as they lie in
 * memory; otherwise in plain order. If the host cannot read the tensors, op_redistribute_device.c exchanges them, or
 * the host works on page-locked copies of both.
 *
 * It is tested by tests/program/test_program_split.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/comm/op_redistribute.h"

#include <string.h>

#include "comm/comm_grid.h"
#include "comm/comm_underway.h"
#include "graph/graph_copy.h"
#include "graph/graph_grad.h"
#include "op/comm/op_redistribute_device.h"
#include "op/comm/op_stage.h"
#include "reduce/reduce_bucket.h"

/* ---- the exchange ---- */

/* All nodes run in the same order on all ranks of the axis, so one tag serves all messages. */
enum { TAG = 0 };

/* The tensor as a matrix: `outer` rows of entries of `inner` bytes. */
struct side {
    int64_t first, end; /* entries of this rank */
    char *data;         /* that the host reads or writes */
    cvy_stage stage;    /* of a copy; zeros: data is the tensor */
    size_t bytes;
    cvy_offsets offsets; /* if what is sent is in plain order */
};

struct piece {          /* entries that this rank sends to a peer, or receives from it */
    int64_t first, end; /* none if end <= first */
    char *packed;
    cvy_message *message;
    int active;
};

struct redistribution {
    cvy_underway exchange; /* the first member, because its functions get this alone */
    struct cvy_redistribute o;
    cvy_comm *comm;
    cvy_bucket_set *buckets;
    cvy_messages *messages; /* between the stages of a pipeline, or NULL */
    cvy_underway_set *exchanges;
    cvy_dtype dtype;
    cvy_shape shape;   /* of the source */
    cvy_layout layout; /* of both */
    int in_order;      /* 1: what is sent is in plain order, because ranks have other layouts */
    int64_t outer;
    size_t inner;
    struct side src, dst;
    struct piece *send, *receive; /* by rank of the axis */
    cvy_device_parts *device;     /* that exchanges them; NULL: the host does */
};

static void redistribute_destroy(void **state)
{
    struct redistribution *r = *state;
    for (int p = 0; r && p < r->o.parts; p++) {
        if (r->send && r->send[p].message)
            r->comm->message->destroy(&r->send[p].message);
        if (r->receive && r->receive[p].message)
            r->comm->message->destroy(&r->receive[p].message);
        if (r->send)
            cvy_mem_free(&r->send[p].packed);
        if (r->receive)
            cvy_mem_free(&r->receive[p].packed);
    }
    if (r) {
        cvy_offsets_free(&r->src.offsets);
        cvy_offsets_free(&r->dst.offsets);
        cvy_stage_free(&r->src.stage);
        cvy_stage_free(&r->dst.stage);
        cvy_device_parts_destroy(&r->device);
        cvy_mem_free(&r->send);
        cvy_mem_free(&r->receive);
    }
    cvy_mem_free(state);
}

/* Bytes of entries first .. end - 1 without padding. */
static size_t plain_bytes(const struct redistribution *r, int64_t first, int64_t end)
{
    cvy_shape piece = r->shape;
    piece.dim[r->o.dim] = CVY_MAX(end - first, 0);
    return (size_t)cvy_shape_elems(&piece) * cvy_dtype_bytes(r->dtype);
}

/* The entries first .. end - 1 that this rank has on one side. */
static struct piece within(const struct redistribution *r, int64_t first, int64_t end, const struct side *side)
{
    return (struct piece){.first = CVY_MAX(CVY_MAX(first, side->first), 0),
                          .end = CVY_MIN(CVY_MIN(end, side->end), r->o.n)};
}

/* Only whole shares and windows are exchanged. Of a tensor that all have, each takes its own. */
static cvy_status cut_pieces(struct redistribution *r)
{
    const struct cvy_redistribute *o = &r->o;
    CVY_TRY(cvy_mem_alloc(sizeof *r->send * (size_t)o->parts, &r->send));
    CVY_TRY(cvy_mem_alloc(sizeof *r->receive * (size_t)o->parts, &r->receive));
    for (int p = 0; p < o->parts && o->from != CVY_HAS_WHOLE; p++) {
        int64_t from, from_end, to, to_end;
        if (p == o->me)
            continue;
        cvy_has_range(o, o->from, p, &from, &from_end);
        cvy_has_range(o, o->to, p, &to, &to_end);
        r->send[p] = within(r, to, to_end, &r->src);
        r->receive[p] = within(r, from, from_end, &r->dst);
    }
    return CVY_OK;
}

static cvy_status make_message(struct redistribution *r, struct piece *piece)
{
    const int64_t n = CVY_MAX(piece->end - piece->first, 0);
    const size_t bytes = r->in_order ? plain_bytes(r, piece->first, piece->end) : (size_t)(r->outer * n) * r->inner;
    if (bytes == 0) {
        piece->end = piece->first;
        return CVY_OK;
    }
    CVY_TRY(cvy_mem_alloc(bytes, &piece->packed));
    const cvy_range range = {piece->packed, bytes};
    return r->comm->message->create(r->comm, &range, 1, &piece->message);
}

static cvy_status make_messages(struct redistribution *r)
{
    for (int p = 0; p < r->o.parts; p++) {
        CVY_TRY(make_message(r, &r->send[p]));
        CVY_TRY(make_message(r, &r->receive[p]));
    }
    return CVY_OK;
}

/* The memory of a tensor with one entry, as rows: what is outside of the dimension, and what is inside of it. */
static cvy_status find_rows(struct redistribution *r)
{
    cvy_shape one = r->shape;
    cvy_blocking b;
    one.dim[r->o.dim] = 1;
    CVY_TRY(cvy_blocking_make(&r->layout, &one, &b));
    r->outer = 1;
    r->inner = (size_t)b.stride[r->o.dim] * cvy_dtype_bytes(r->dtype);
    for (int d = 0; d < one.ndim; d++) {
        const int64_t count = b.padded[d] / b.dim_block[d];
        if (d != r->o.dim && count != 1 && b.stride[d] >= b.stride[r->o.dim])
            r->outer *= count;
    }
    return CVY_OK;
}

/* Ranks whose parts differ in size may have other kernels, and so other layouts. */
static cvy_status compare_layouts(struct redistribution *r)
{
    cvy_layout *all = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *all * (size_t)r->comm->nranks, &all));
    const cvy_status status = r->comm->ops->allgather(r->comm, &r->layout, sizeof r->layout, all);
    for (int p = 0; p < r->comm->nranks && status == CVY_OK; p++)
        r->in_order |= !cvy_layout_equal(&all[p], &r->layout);
    cvy_mem_free(&all);
    return status;
}

static cvy_status find_offsets(const struct redistribution *r, struct side *side)
{
    cvy_shape shape = r->shape;
    shape.dim[r->o.dim] = side->end - side->first;
    return cvy_offsets_make(&r->layout, &shape, &side->offsets);
}

/* If the host cannot read the tensor, it gets a copy. */
static cvy_status make_stage(struct side *side, const cvy_comm_binding *binding, const cvy_span *tensor)
{
    side->bytes = (size_t)tensor->elems * cvy_dtype_bytes(tensor->dtype);
    return cvy_space_is_host(binding->space) ? CVY_OK : cvy_stage_make(&side->stage, binding->space, NULL, side->bytes);
}

/* ---- tensors of a device ---- */

/* What is exchanged needs NCCL, and one layout on all ranks. All ranks decide alike. */
static int may_use_device(const struct redistribution *r, const cvy_comm_binding *binding)
{
    if (cvy_space_is_host(binding->space) || r->comm->simulated_cores > 0 || r->in_order ||
        (r->o.from == CVY_HAS_WINDOW && r->dtype != CVY_DTYPE_F32 && r->dtype != CVY_DTYPE_BF16))
        return 0;
    return r->o.from == CVY_HAS_WHOLE || cvy_nccl_may(binding->space, r->comm, binding->reduce);
}

static cvy_status make_device(struct redistribution *r, const cvy_comm_binding *binding)
{
    cvy_entries *list = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *list * 2 * (size_t)r->o.parts, &list));
    for (int p = 0; p < r->o.parts; p++) {
        list[p] = (cvy_entries){r->send[p].first, r->send[p].end};
        list[r->o.parts + p] = (cvy_entries){r->receive[p].first, r->receive[p].end};
    }
    const cvy_device_parts_def def = {.space = binding->space,
                                      .comm = r->o.from == CVY_HAS_WHOLE ? NULL : r->comm,
                                      .dtype = r->dtype,
                                      .outer = r->outer,
                                      .inner = (int64_t)(r->inner / cvy_dtype_bytes(r->dtype)),
                                      .src = {r->src.first, r->src.end},
                                      .dst = {r->dst.first, r->dst.end},
                                      .n = r->o.n,
                                      .adds = r->o.from == CVY_HAS_WINDOW,
                                      .fill = r->o.fill,
                                      .send = list,
                                      .receive = list + r->o.parts};
    const cvy_status status = cvy_device_parts_create(&def, &r->device);
    cvy_mem_free(&list);
    return status == CVY_NOT_APPLICABLE ? CVY_OK : status;
}

static cvy_status set_up(struct redistribution *r, const cvy_comm_binding *binding, int only_starts)
{
    CVY_TRY(find_rows(r));
    if (r->o.from != CVY_HAS_WHOLE)
        CVY_TRY(compare_layouts(r));
    CVY_TRY(cut_pieces(r));
    if (may_use_device(r, binding))
        CVY_TRY(make_device(r, binding));
    if (r->device)
        return CVY_OK;
    CVY_TRY(make_stage(&r->src, binding, &binding->src[0]));
    if (!only_starts)
        CVY_TRY(make_stage(&r->dst, binding, &binding->dst[0]));
    if (r->in_order) {
        CVY_TRY(find_offsets(r, &r->src));
        CVY_TRY(find_offsets(r, &r->dst));
    }
    return make_messages(r);
}

static cvy_status progress(cvy_underway *exchange);

static cvy_status redistribute_create(const cvy_node *node, const cvy_comm_binding *binding, void **state_out)
{
    const struct cvy_redistribute *o = node->options;
    struct redistribution *r = NULL;
    CVY_CHECK(binding->grid && binding->grid[CVY_AXIS_BIT(o->axis)], CVY_E_INTERNAL, "%s: the plan has no axis %s",
              node->name, cvy_axis_name((cvy_axis)o->axis));
    CVY_TRY(cvy_mem_alloc(sizeof *r, &r));
    *r = (struct redistribution){.exchange.progress = progress,
                                 .o = *o,
                                 .comm = binding->grid[CVY_AXIS_BIT(o->axis)],
                                 .buckets = binding->progresses ? binding->buckets : NULL,
                                 .messages = binding->messages,
                                 .exchanges = binding->exchanges,
                                 .dtype = binding->src[0].dtype,
                                 .shape = *cvy_node_src(node, 0)};
    memcpy(&r->layout, binding->src_layout, sizeof r->layout);
    cvy_has_range(o, o->from, o->me, &r->src.first, &r->src.end);
    cvy_has_range(o, o->to, o->me, &r->dst.first, &r->dst.end);
    const cvy_status status = set_up(r, binding, node->op->comm->starts);
    *state_out = r;
    if (status != CVY_OK)
        redistribute_destroy(state_out);
    return status;
}

static char *entry(const struct redistribution *r, const struct side *side, int64_t row, int64_t at)
{
    return side->data + (size_t)(row * (side->end - side->first) + at - side->first) * r->inner;
}

/* Copies a piece between one side and plain order; adds: what comes in is added. */
static void copy_in_order(const struct redistribution *r, const struct piece *piece, const struct side *side,
                          int comes_in, int adds)
{
    cvy_copy c = {.ndim = r->shape.ndim, .from_dtype = r->dtype, .to_dtype = r->dtype, .adds = adds};
    const int64_t **terms = comes_in ? c.to : c.from;
    const size_t bytes = plain_bytes(r, piece->first, piece->end);
    memcpy(c.dim, r->shape.dim, sizeof c.dim);
    memcpy(terms, side->offsets.term, sizeof c.from);
    c.dim[r->o.dim] = piece->end - piece->first;
    terms[r->o.dim] += piece->first - side->first;
    cvy_copy_run(&c, 0, (int64_t)(bytes / cvy_dtype_bytes(r->dtype)), comes_in ? piece->packed : side->data,
                 comes_in ? side->data : piece->packed);
}

static void pack(const struct redistribution *r, const struct piece *piece)
{
    const size_t bytes = (size_t)(piece->end - piece->first) * r->inner;
    if (cvy_comm_simulates_copy(r->comm, (size_t)r->outer * bytes))
        return;
    if (r->in_order)
        copy_in_order(r, piece, &r->src, 0, 0);
    for (int64_t row = 0; row < r->outer && !r->in_order; row++)
        memcpy(piece->packed + (size_t)row * bytes, entry(r, &r->src, row, piece->first), bytes);
}

/* Overlapping windows are summed: to += from, in the tensor's dtype. */
static void add(cvy_dtype dtype, void *to, const void *from, size_t bytes)
{
    const int64_t n = (int64_t)(bytes / cvy_dtype_bytes(dtype));
    const cvy_span x = {.dtype = dtype, .data = to}, y = {.dtype = dtype, .data = (void *)(uintptr_t)from};
    if (dtype == CVY_DTYPE_F32)
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i] += ((const float *)from)[i];
    else
        for (int64_t i = 0; i < n; i++)
            cvy_set(&x, i, cvy_get(&x, i) + cvy_get(&y, i));
}

static void unpack(const struct redistribution *r, const struct piece *piece)
{
    const size_t bytes = (size_t)(piece->end - piece->first) * r->inner;
    const int adds = r->o.from == CVY_HAS_WINDOW;
    if (bytes == 0 || cvy_comm_simulates_copy(r->comm, (size_t)r->outer * bytes))
        return;
    if (r->in_order)
        copy_in_order(r, piece, &r->dst, 1, adds);
    for (int64_t row = 0; row < r->outer && !r->in_order; row++) {
        char *to = entry(r, &r->dst, row, piece->first), *from = piece->packed + (size_t)row * bytes;
        if (adds)
            add(r->dtype, to, from, bytes);
        else
            memcpy(to, from, bytes);
    }
}

/* Fills entries first .. end - 1 of a row. */
static void fill(const struct redistribution *r, int64_t row, int64_t first, int64_t end)
{
    const cvy_span x = {.dtype = r->dtype, .data = first < end ? entry(r, &r->dst, row, first) : NULL};
    const int64_t n = (end - first) * (int64_t)(r->inner / cvy_dtype_bytes(r->dtype));
    if (r->o.fill == 0 && first < end)
        memset(x.data, 0, (size_t)(end - first) * r->inner);
    else
        for (int64_t i = 0; i < n; i++)
            cvy_set(&x, i, r->o.fill);
}

/* Copies what this rank has itself, and fills what no rank has, or what is going to be summed. */
static void copy_own(const struct redistribution *r)
{
    const int64_t from = CVY_MAX(CVY_MAX(r->src.first, r->dst.first), 0),
                  end = CVY_MIN(CVY_MIN(r->src.end, r->dst.end), r->o.n);
    const int sums = r->o.from == CVY_HAS_WINDOW;
    if (cvy_comm_simulates_copy(r->comm, (size_t)(r->outer * CVY_MAX(end - from, 0)) * r->inner))
        return;
    for (int64_t row = 0; row < r->outer; row++) {
        fill(r, row, r->dst.first, sums ? r->dst.end : CVY_MIN(0, r->dst.end));
        if (!sums)
            fill(r, row, CVY_MAX(r->o.n, r->dst.first), r->dst.end);
        if (from < end)
            memcpy(entry(r, &r->dst, row, from), entry(r, &r->src, row, from), (size_t)(end - from) * r->inner);
    }
}

/* Tests the messages of one direction; returns in *left_out how many are under way. */
static cvy_status test(const struct redistribution *r, struct piece *pieces, int *left_out)
{
    for (int p = 0; p < r->o.parts; p++) {
        int done = 0;
        if (!pieces[p].active)
            continue;
        CVY_TRY(r->comm->message->test(pieces[p].message, &done, NULL));
        pieces[p].active = !done;
        *left_out += !done;
    }
    return CVY_OK;
}

static cvy_status progress(cvy_underway *exchange)
{
    const struct redistribution *r = (const struct redistribution *)(const void *)exchange;
    int left = 0;
    CVY_TRY(test(r, r->receive, &left));
    return test(r, r->send, &left);
}

static cvy_status wait_for_all(const struct redistribution *r)
{
    for (int round = 0, left = 1; left; round++) {
        left = 0;
        CVY_TRY(test(r, r->receive, &left));
        CVY_TRY(test(r, r->send, &left));
        if (left && r->buckets)
            CVY_TRY(cvy_bucket_set_progress(r->buckets));
        if (left)
            CVY_TRY(r->comm->ops->rest(r->comm, round));
    }
    return CVY_OK;
}

static cvy_status send(struct redistribution *r)
{
    for (int p = 0; p < r->o.parts; p++)
        if (r->receive[p].message) {
            r->receive[p].active = 1;
            CVY_TRY(r->comm->message->receive(r->receive[p].message, p, TAG));
        }
    for (int p = 0; p < r->o.parts; p++)
        if (r->send[p].message) {
            pack(r, &r->send[p]);
            r->send[p].active = 1;
            CVY_TRY(r->comm->message->send(r->send[p].message, p, TAG));
        }
    return CVY_OK;
}

static cvy_status start(struct redistribution *r, void *tensor)
{
    r->src.data = tensor;
    if (r->device) {
        CVY_TRY(cvy_messages_settle(r->messages));
        return cvy_device_parts_start(r->device, tensor);
    }
    if (r->src.stage.host) {
        CVY_TRY(cvy_op_stage_out(&r->src.stage, tensor, r->src.bytes, r->comm, r->buckets, r->messages));
        r->src.data = r->src.stage.host;
    }
    return send(r);
}

static cvy_status finish(struct redistribution *r, void *tensor)
{
    if (r->device)
        return cvy_device_parts_finish(r->device, r->src.data, tensor);
    r->dst.data = r->dst.stage.host ? r->dst.stage.host : tensor;
    copy_own(r);
    CVY_TRY(wait_for_all(r));
    for (int p = 0; p < r->o.parts; p++)
        unpack(r, &r->receive[p]);
    if (!r->dst.stage.host)
        return CVY_OK;
    CVY_TRY(cvy_stage_follow(&r->dst.stage));
    CVY_TRY(cvy_stage_in(&r->dst.stage, tensor, 0, r->dst.bytes));
    return cvy_stage_await(&r->dst.stage);
}

static cvy_status redistribute_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct redistribution *r = state;
    (void)scratch;
    CVY_TRY(start(r, src[0]));
    return finish(r, dst[0]);
}

/* The destination is a token: the wait finds the exchange by it when the plan is bound. Nothing is written into it, so
 * simulated ranks may have it in one memory. */
static cvy_status start_create(const cvy_node *node, const cvy_comm_binding *binding, void **state_out)
{
    CVY_TRY(redistribute_create(node, binding, state_out));
    struct redistribution *r = *state_out;
    cvy_underway_know(r->exchanges, &r->exchange, node->dst[0], binding->micro);
    return CVY_OK;
}

static cvy_status start_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct redistribution *r = state;
    (void)dst, (void)scratch;
    cvy_underway_add(r->exchanges, &r->exchange);
    return start(r, src[0]);
}

static cvy_status wait_create(const cvy_node *node, const cvy_comm_binding *binding, void **state_out)
{
    cvy_underway *exchange = cvy_underway_find(binding->exchanges, node->src[1], binding->micro);
    CVY_CHECK(exchange, CVY_E_INTERNAL, "%s waits for an exchange that is not started before it", node->name);
    struct redistribution *r = (struct redistribution *)(void *)exchange;
    *state_out = r;
    return r->device ? CVY_OK : make_stage(&r->dst, binding, &binding->dst[0]);
}

static cvy_status wait_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct redistribution *r = state;
    (void)src, (void)scratch;
    cvy_underway_remove(r->exchanges, &r->exchange);
    return finish(r, dst[0]);
}

/* The exchange belongs to its start. */
static void wait_destroy(void **state)
{
    *state = NULL;
}

/* Only channels may be blocked. Padding of channels must stay zero, so it is not filled with another number. */
static int takes_layout(const cvy_node *node, const cvy_layout *layout)
{
    const struct cvy_redistribute *o = node->options;
    const cvy_shape *shape = cvy_node_src(node, 0);
    cvy_blocking b;
    if (cvy_layout_is_plain(layout))
        return 1;
    if (o->dim < 2 || cvy_layout_whole(layout) > 0 || cvy_blocking_make(layout, shape, &b) != CVY_OK)
        return 0;
    for (int i = 0; i < b.nblock; i++)
        if (b.block_dim[i] != 1)
            return 0;
    return o->fill == 0 || b.padded[1] == shape->dim[1];
}

static cvy_comm_axis axis_of(const cvy_node *node)
{
    return cvy_comm_axis_of(((const struct cvy_redistribute *)node->options)->axis);
}

static const cvy_op_comm redistribute_comm = {
    .exchange = CVY_EXCHANGE_PARTS,
    .create = redistribute_create,
    .run = redistribute_run,
    .destroy = redistribute_destroy,
    .axis_of = axis_of,
    .takes_layout = takes_layout,
};

static const cvy_op_comm start_comm = {
    .exchange = CVY_EXCHANGE_PARTS,
    .starts = 1,
    .create = start_create,
    .run = start_run,
    .destroy = redistribute_destroy,
    .axis_of = axis_of,
    .takes_layout = takes_layout,
};

static const cvy_op_comm wait_comm = {
    .exchange = CVY_EXCHANGE_PARTS,
    .waits = 1,
    .create = wait_create,
    .run = wait_run,
    .destroy = wait_destroy,
    .axis_of = axis_of,
    .takes_layout = takes_layout,
};

/* ---- the operator ---- */

static cvy_status redistribute_infer(cvy_node *node)
{
    const struct cvy_redistribute *o = node->options;
    cvy_shape shape = *cvy_node_src(node, 0);
    int64_t first = 0, end = 0;
    CVY_EXPECT(o->dim < shape.ndim && o->parts > 0);
    cvy_has_range(o, o->from, o->me, &first, &end);
    CVY_CHECK(shape.dim[o->dim] == end - first, CVY_E_INTERNAL,
              "%s: dimension %d of %s should be entries %lld to %lld of %lld", node->name, o->dim,
              cvy_shape_text(&shape), (long long)first, (long long)end - 1, (long long)o->n);
    cvy_has_range(o, o->to, o->me, &first, &end);
    shape.dim[o->dim] = end - first;
    CVY_TRY(cvy_node_set_dst(node, 0, node->src[0]->dtype, &shape));
    if (o->dim == 0)
        node->dst[0]->shares_samples = o->to == CVY_HAS_SHARE;
    return CVY_OK;
}

static cvy_status redistribute_grad(cvy_grad *g, const cvy_node *fwd)
{
    struct cvy_redistribute back = *(const struct cvy_redistribute *)fwd->options;
    cvy_value *ddst = cvy_grad_of(g, fwd->dst[0]), *dsrc = NULL;
    if (!ddst || !cvy_grad_wanted(g, fwd->src[0]))
        return CVY_OK;
    const cvy_has from = back.from;
    back.from = back.to;
    back.to = from;
    back.fill = 0;
    CVY_TRY(cvy_grad_emit(g, fwd, "redistribute", &back, &ddst, 1, &dsrc, 1));
    return cvy_grad_add(g, fwd->src[0], dsrc);
}

/* It may be split once more, along another dimension. */
static cvy_status redistribute_part(const cvy_node *node, cvy_node_part *part, void *options)
{
    (void)options;
    return part->dim == ((const struct cvy_redistribute *)node->options)->dim ? CVY_NOT_APPLICABLE : CVY_OK;
}

CVY_OP_DEFINE(redistribute) = {
    .name = "redistribute",
    .summary = "changes which part of a dimension each rank has",
    .options_size = sizeof(struct cvy_redistribute),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_COMM | CVY_OP_HIDDEN,
    .part_splits = CVY_SPLIT_SAMPLES | CVY_SPLIT_CHANNELS | CVY_SPLIT_SPACE,
    .part = redistribute_part,
    .infer = redistribute_infer,
    .grad = redistribute_grad,
    .comm = &redistribute_comm,
};

/* redistribute_start: src -> token. */
static cvy_status start_infer(cvy_node *node)
{
    return cvy_node_set_dst(node, 0, CVY_DTYPE_I64, &(cvy_shape){0});
}

CVY_OP_DEFINE(redistribute_start) = {
    .name = "redistribute_start",
    .summary = "starts a redistribute",
    .options_size = sizeof(struct cvy_redistribute),
    .nsrc_min = 1,
    .nsrc_max = 1,
    .ndst = 1,
    .flags = CVY_OP_COMM | CVY_OP_HIDDEN,
    .infer = start_infer,
    .comm = &start_comm,
};

/* redistribute_wait: src, token -> dst. */
CVY_OP_DEFINE(redistribute_wait) = {
    .name = "redistribute_wait",
    .summary = "waits for a redistribute",
    .options_size = sizeof(struct cvy_redistribute),
    .nsrc_min = 2,
    .nsrc_max = 2,
    .ndst = 1,
    .flags = CVY_OP_COMM | CVY_OP_HIDDEN,
    .infer = redistribute_infer,
    .comm = &wait_comm,
};
