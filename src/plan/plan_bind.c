/*
 * plan_bind.c: makes the instructions of a schedule runnable: it creates the kernels and resolves every pointer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_round.h"
#include "extension/extension.h"
#include "op/comm/op_reduce.h"
#include "optim/optim_update.h"
#include "plan/plan.h"

/* ---- the plain kernels of operators ---- */

struct reference {
    const cvy_node *node;
    int threads; /* that a user's function may use; 0: the operator is one of convoy's */
    cvy_span src[CVY_NODE_SRC_MAX], dst[CVY_NODE_DST_MAX];
};

/* A tensor that is not plain is passed as one flat row, padding included. Only elementwise operators and updates get
 * such tensors. */
static cvy_span make_span(const cvy_instance *instance)
{
    cvy_span span = {.dtype = instance->dtype, .ndim = instance->value->shape.ndim, .elems = instance->elems};
    memcpy(span.dim, instance->value->shape.dim, sizeof span.dim);
    if (!cvy_layout_is_plain(&instance->layout)) {
        span.ndim = 1;
        span.dim[0] = instance->elems;
    }
    return span;
}

static cvy_status reference_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    struct reference *r = state;
    (void)scratch;
    for (int i = 0; i < r->node->nsrc; i++)
        r->src[i].data = src[i];
    for (int i = 0; i < r->node->ndst; i++)
        r->dst[i].data = dst[i];
    return r->threads ? cvy_extension_run(r->node, r->src, r->dst, r->threads)
                      : r->node->op->reference(r->node, r->src, r->dst);
}

static cvy_status reference_create(const cvy_plan_opts *opts, const cvy_lowered *u, const cvy_call *call,
                                   void **state_out)
{
    struct reference *r = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *r, &r));
    r->node = call->node;
    r->threads = !cvy_extension_op_of(call->node->op) ? 0 : opts->deterministic ? 1 : CVY_MAX(opts->threads, 1);
    for (int i = 0; i < call->nsrc; i++)
        if (call->src[i] >= 0)
            r->src[i] = make_span(&u->instance[call->src[i]]);
    for (int i = 0; i < call->ndst; i++)
        if (call->dst[i] >= 0)
            r->dst[i] = make_span(&u->instance[call->dst[i]]);
    *state_out = r;
    return CVY_OK;
}

/* ---- instructions of the plan itself ---- */

static cvy_status reorder_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    cvy_reorder_run(state, src[0], dst[0]);
    return CVY_OK;
}

static cvy_status barrier_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_plan *plan = state;
    cvy_comm *comm = plan->opts.comm;
    (void)src, (void)dst, (void)scratch;
    if (!plan->head.barrier)
        return CVY_OK;
    comm->node_memory->barrier_enter(comm, plan->head.barrier);
    for (int round = 0; !comm->node_memory->barrier_test(comm, plan->head.barrier); round++) {
        CVY_TRY(cvy_bucket_set_progress(plan->buckets));
        CVY_TRY(comm->ops->rest(comm, round));
    }
    return CVY_OK;
}

static cvy_status noop_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)state, (void)src, (void)dst, (void)scratch;
    return CVY_OK;
}

/* State of an instruction that adds a part to an accumulator. */
struct cvy_adding {
    int64_t elems;
    cvy_dtype dtype;
    int threads;
};
enum { ADDED_AT_ONCE = 1 << 15 }; /* elements that one thread adds at a time */

static void add_range(const struct cvy_adding *a, const void *part, void *sum, int64_t first, int64_t end)
{
    const double *y = part;
    const float *x = part;
    double *sums = sum;
    float *narrow = sum;
    if (a->dtype == CVY_DTYPE_F32)
        for (int64_t i = first; i < end; i++)
            narrow[i] += x[i];
    else
        for (int64_t i = first; i < end; i++)
            sums[i] += y[i];
}

/* It does not use cvy_parallel_for(), which flushes denormals to zero. All-reduces keep denormals, and sums over shards
 * must be the same on any number of ranks. */
static cvy_status accumulate_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct cvy_adding *a = state;
    const int64_t npieces = (a->elems + ADDED_AT_ONCE - 1) / ADDED_AT_ONCE;
    (void)scratch;
    if (a->threads <= 1 || npieces < 2) {
        add_range(a, src[0], dst[0], 0, a->elems);
        return CVY_OK;
    }
#pragma omp parallel for num_threads(a->threads)
    for (int64_t p = 0; p < npieces; p++)
        add_range(a, src[0], dst[0], p * ADDED_AT_ONCE, CVY_MIN((p + 1) * ADDED_AT_ONCE, a->elems));
    return CVY_OK;
}

static cvy_status zero_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)src, (void)scratch;
    memset(dst[0], 0, (size_t)(uintptr_t)state);
    return CVY_OK;
}

/* ---- binding ---- */

cvy_status cvy_call_ready(const cvy_plan_opts *opts, const cvy_lowered *u, cvy_call *call)
{
    if (call->state)
        return CVY_OK;
    switch (call->kind) {
    case CVY_CALL_KERNEL: {
        const cvy_status status = call->kernel->create ? call->kernel->create(&call->ask, &call->state) : CVY_OK;
        return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s (%s)", call->node->name, call->kernel->name);
    }
    case CVY_CALL_REFERENCE: return reference_create(opts, u, call, &call->state);
    case CVY_CALL_REORDER: {
        const cvy_instance *from = &u->instance[call->src[0]], *to = &u->instance[call->dst[0]];
        cvy_reorder *reorder = NULL;
        CVY_TRY(cvy_reorder_create(&from->value->shape, &(cvy_memory_format){from->dtype, from->layout},
                                   &(cvy_memory_format){to->dtype, to->layout}, opts->threads, &reorder));
        call->state = reorder;
        return CVY_OK;
    }
    default: return CVY_OK;
    }
}

void cvy_call_release(cvy_call *call)
{
    cvy_reorder *reorder = call->state;
    if (!call->state)
        return;
    switch (call->kind) {
    case CVY_CALL_KERNEL:
        if (call->kernel->destroy)
            call->kernel->destroy(call->state);
        break;
    case CVY_CALL_REORDER: cvy_reorder_destroy(&reorder); break;
    case CVY_CALL_REFERENCE: cvy_mem_free(&call->state); break;
    default: break;
    }
    call->state = NULL;
}

cvy_run_fn cvy_call_run(const cvy_call *call)
{
    switch (call->kind) {
    case CVY_CALL_KERNEL: return call->kernel->run;
    case CVY_CALL_REFERENCE: return reference_run;
    case CVY_CALL_REORDER: return reorder_run;
    default: return NULL;
    }
}

const cvy_call_kind_def *cvy_call_kind_of(cvy_call_kind kind)
{
    static const cvy_call_kind_def kinds[] = {
        [CVY_CALL_KERNEL] = {"kernel", .computes = 1},
        [CVY_CALL_REFERENCE] = {"reference", .computes = 1},
        [CVY_CALL_REORDER] = {"reorder", .computes = 1},
        [CVY_CALL_VIEW] = {.name = "view"},
        [CVY_CALL_COMM] = {"comm", .is_comm = 1},
        [CVY_CALL_ABSENT] = {.name = "absent"},
        [CVY_CALL_ACCUMULATE] = {"accumulate", .computes = 1},
        [CVY_CALL_ZERO] = {"zero", .computes = 1},
        [CVY_CALL_BARRIER] = {"barrier", .is_comm = 1},
    };
    return &kinds[kind];
}

int cvy_instr_computes(const cvy_instr *instr)
{
    return cvy_call_kind_of(instr->kind)->computes;
}

cvy_comm_role cvy_instr_role(const cvy_instr *instr)
{
    return instr->kind == CVY_CALL_COMM ? instr->call->node->op->comm->role : CVY_COMM_NO_BUCKET;
}

int cvy_instr_bucket(const cvy_instr *instr, cvy_comm_role role)
{
    const struct cvy_reduce_options *options = instr->kind == CVY_CALL_COMM ? instr->call->node->options : NULL;
    return options && cvy_instr_role(instr) == role ? (int)options->bucket : -1;
}

int cvy_instr_exchanges(const cvy_instr *instr)
{
    const cvy_comm_role role = cvy_instr_role(instr);
    return instr->kind == CVY_CALL_BARRIER || role == CVY_COMM_STARTS_BUCKET || role == CVY_COMM_WAITS_BUCKET;
}

/* A bucket over all ranks, which holds losses, waits for the other stages. Starting a message is not waiting. */
static void bind_axis(const cvy_plan *plan, cvy_instr *instr)
{
    const cvy_op_comm *comm = instr->kind == CVY_CALL_COMM ? instr->call->node->op->comm : NULL;
    const int bucket =
        comm ? CVY_MAX(cvy_instr_bucket(instr, CVY_COMM_STARTS_BUCKET), cvy_instr_bucket(instr, CVY_COMM_WAITS_BUCKET))
             : -1;
    instr->axis = !comm           ? CVY_COMM_DATA
                  : bucket >= 0   ? cvy_plan_bucket_axis(plan, bucket)
                  : comm->axis_of ? comm->axis_of(instr->call->node)
                                  : comm->axis;
    const cvy_comm_role role = cvy_instr_role(instr);
    instr->awaits_stage = comm && instr->axis == CVY_COMM_PIPELINE && role != CVY_COMM_STARTS_BUCKET &&
                          role != CVY_COMM_STARTS_SEND && role != CVY_COMM_STARTS_RECEIVE;
}

cvy_comm_axis cvy_plan_bucket_axis(const cvy_plan *plan, int bucket)
{
    const cvy_grid *grid = plan->opts.grid;
    const unsigned over = plan->buckets->bucket[bucket].over;
    return grid && grid->nstages > 1 && over & CVY_AXIS_BIT(CVY_AXIS_PIPELINE) ? CVY_COMM_PIPELINE : CVY_COMM_DATA;
}

/* Notes which weight an instruction writes, and whether it also writes the bf16 shadow copy. */
static void bind_weight(const cvy_plan *plan, cvy_instr *instr)
{
    for (int i = 0; i < instr->ndst; i++) {
        const cvy_buffer *b = instr->dst_buffer[i] >= 0 ? &plan->buffer[instr->dst_buffer[i]] : NULL;
        if (!b || (b->region != CVY_REGION_SHADOW && b->region != CVY_REGION_VARIABLE))
            continue;
        if (b->region == CVY_REGION_SHADOW || b->value->variable->role == CVY_ROLE_WEIGHT)
            instr->weight = b->value->variable;
        instr->writes_shadow |= b->region == CVY_REGION_SHADOW;
    }
}

static void advance(void **pointer, int64_t elems, size_t elem_bytes)
{
    if (*pointer)
        *pointer = (char *)*pointer + (size_t)elems * elem_bytes;
}

cvy_part cvy_plan_part(const cvy_plan *plan, const cvy_buffer *gradient)
{
    const cvy_bucket *bucket = &plan->buckets->bucket[gradient->bucket];
    const int64_t at = (int64_t)((gradient->offset - bucket->offset) / sizeof(float)),
                  n = (int64_t)(gradient->bytes / sizeof(float));
    const int64_t first = CVY_MAX(bucket->part.first - at, 0), end = CVY_MIN(bucket->part.end - at, n);
    return (cvy_part){first, CVY_MAX(first, end)};
}

/* Moves the pointers that bind_instr() has set to the start of the part. Scalar sources keep their pointers. */
static void bind_part(const cvy_plan *plan, cvy_instr *instr, cvy_part part)
{
    advance(&instr->src[CVY_OPTIM_WEIGHT], part.first, sizeof(float));
    advance(&instr->src[CVY_OPTIM_GRADIENT], part.first, sizeof(float));
    for (int s = CVY_OPTIM_STATE; s < instr->nsrc; s++)
        advance(&instr->src[s], part.first, sizeof(float));
    for (int d = 0; d < instr->ndst; d++)
        if (instr->dst_buffer[d] >= 0)
            advance(&instr->dst[d], part.first,
                    plan->buffer[instr->dst_buffer[d]].region == CVY_REGION_SHADOW ? sizeof(uint16_t) : sizeof(float));
    if (part.end == part.first)
        instr->run = noop_run;
}

static cvy_status make_addings(cvy_plan *plan)
{
    size_t n = 1;
    for (int i = 0; i < plan->ninstr; i++)
        n += plan->instr[i].kind == CVY_CALL_ACCUMULATE;
    return cvy_mem_alloc(n * sizeof *plan->accumulate.adding, &plan->accumulate.adding);
}

static struct cvy_adding *add_adding(cvy_plan *plan, const cvy_buffer *sum)
{
    struct cvy_adding *a = &plan->accumulate.adding[plan->accumulate.count++];
    const cvy_dtype dtype = sum->value->dtype;
    *a = (struct cvy_adding){(int64_t)(sum->bytes / cvy_dtype_bytes(dtype)), dtype, plan->opts.threads};
    return a;
}

/* A bound tensor as one flat row, padding included. */
static cvy_span flat_span(const cvy_lowered *u, int instance, void *data)
{
    const cvy_instance *at = &u->instance[instance];
    return (cvy_span){.dtype = at->value->dtype, .ndim = 1, .dim = {at->elems}, .elems = at->elems, .data = data};
}

static cvy_status bind_comm(cvy_plan *plan, cvy_instr *instr)
{
    const cvy_lowered *u = plan->lowered[instr->micro];
    const cvy_call *call = instr->call;
    cvy_span src[CVY_NODE_SRC_MAX] = {0}, dst[CVY_NODE_DST_MAX] = {0};
    const cvy_comm_binding binding = {
        .comm = plan->opts.comm,
        .grid = plan->opts.grid ? plan->opts.grid->over : NULL,
        .space = plan->opts.space,
        .reduce = &plan->opts.reduce,
        .buckets = plan->buckets,
        .messages = plan->messages.comm ? &plan->messages : NULL,
        .micro = instr->micro,
        .deterministic = plan->opts.deterministic,
        /* another rank may still wait for the previous step's buckets, or for those of layers that came before */
        .progresses = plan->opts.deferred || (plan->opts.grid && cvy_grid_splits(plan->opts.grid)),
        .blocking = plan->opts.blocking,
        .src = src,
        .dst = dst,
        .src_layout = call->nsrc > 0 && call->src[0] >= 0 ? &u->instance[call->src[0]].layout : NULL,
        .exchanges = &plan->exchanges};
    for (int i = 0; i < call->nsrc; i++)
        if (call->src[i] >= 0)
            src[i] = flat_span(u, call->src[i], instr->src[i]);
    for (int i = 0; i < call->ndst; i++)
        if (call->dst[i] >= 0)
            dst[i] = flat_span(u, call->dst[i], instr->dst[i]);
    instr->run = call->node->op->comm->run;
    return call->node->op->comm->create(call->node, &binding, &instr->state);
}

/* A rehearsal has nobody to exchange with. Integers are labels and numbers of rows: 0 is valid, and what happens to be
 * in the memory may not be. */
static void bind_no_comm(const cvy_plan *plan, cvy_instr *instr)
{
    const cvy_buffer *dst = instr->ndst > 0 && instr->dst_buffer[0] >= 0 ? &plan->buffer[instr->dst_buffer[0]] : NULL;
    const int is_integer = dst && dst->value && !cvy_dtype_is_real(dst->value->dtype);
    instr->run = is_integer ? zero_run : noop_run;
    instr->state = is_integer ? (void *)(uintptr_t)dst->bytes : NULL;
}

static cvy_status find_operands(cvy_plan *plan, cvy_instr *instr)
{
    CVY_TRY(cvy_pool_alloc(plan->pool, sizeof *instr->src * (size_t)(instr->nsrc + instr->ndst), &instr->src));
    instr->dst = instr->src + instr->nsrc;
    for (int i = 0; i < instr->nsrc; i++)
        instr->src[i] = instr->src_buffer[i] >= 0 ? plan->buffer[instr->src_buffer[i]].data : NULL;
    for (int i = 0; i < instr->ndst; i++)
        instr->dst[i] = instr->dst_buffer[i] >= 0 ? plan->buffer[instr->dst_buffer[i]].data : NULL;
    return CVY_OK;
}

static cvy_status bind_instr(cvy_plan *plan, cvy_instr *instr)
{
    cvy_call *call = (cvy_call *)(uintptr_t)instr->call; /* binding sets the state of its calls */
    const cvy_buffer *parted = plan->head.is_partitioned ? cvy_instr_parted(plan, instr) : NULL;
    const cvy_part part = parted ? cvy_plan_part(plan, parted) : (cvy_part){0, 0};
    if (plan->opts.clock && cvy_instr_computes(instr)) {
        bind_weight(plan, instr);
        return cvy_instr_bind_clock(
            plan, instr, parted ? (double)(part.end - part.first) * sizeof(float) / (double)parted->bytes : 1);
    }
    if (parted && call->ask.part_elems != part.end - part.first) {
        cvy_call_release(call); /* it may have been created for the whole weight */
        call->ask.part_elems = part.end - part.first;
    }
    if (call)
        CVY_TRY(cvy_call_ready(&plan->opts, plan->lowered[instr->micro], call));
    CVY_TRY(find_operands(plan, instr));
    bind_weight(plan, instr);
    instr->scratch = instr->scratch_buffer >= 0 ? plan->buffer[instr->scratch_buffer].data : NULL;
    instr->state = call ? call->state : NULL;
    switch (instr->kind) {
    case CVY_CALL_KERNEL:
    case CVY_CALL_REFERENCE:
    case CVY_CALL_REORDER: instr->run = cvy_call_run(call); break;
    case CVY_CALL_COMM:
        if (plan->opts.comm->pretended)
            bind_no_comm(plan, instr);
        else
            CVY_TRY(bind_comm(plan, instr));
        break;
    case CVY_CALL_ACCUMULATE:
        instr->run = accumulate_run;
        instr->state = add_adding(plan, &plan->buffer[instr->dst_buffer[0]]);
        break;
    case CVY_CALL_ZERO:
        instr->run = zero_run;
        instr->state = (void *)(uintptr_t)plan->buffer[instr->dst_buffer[0]].bytes;
        break;
    case CVY_CALL_BARRIER:
        instr->run = barrier_run;
        instr->state = plan;
        break;
    default: return cvy_error_set(CVY_E_INTERNAL, "an instruction of kind %d cannot run", (int)instr->kind);
    }
    if (parted)
        bind_part(plan, instr, part);
    CVY_CHECK(instr->run, CVY_E_INTERNAL, "instruction of %s cannot run", call ? call->node->name : "the plan");
    return CVY_OK;
}

static cvy_status place_feeds(cvy_plan *plan)
{
    const size_t bytes = CVY_MAX(plan->feeds.bytes, 64);
    for (int i = 0; plan->head.alternate && i < plan->feeds.count; i++)
        plan->feeds.feed[i].data = plan->head.alternate->feeds.feed[i].data;
    if (plan->head.alternate) {
        plan->feeds.tensors = plan->head.alternate->feeds.tensors;
        return CVY_OK;
    }
    CVY_TRY(plan->opts.clock ? cvy_mem_map_pages(bytes, &plan->feeds.host)
                             : cvy_mem_alloc_pages(bytes, &plan->feeds.host));
    size_t at = 0;
    for (int i = 0; i < plan->feeds.count; i++) {
        plan->feeds.feed[i].data = plan->feeds.host + at;
        at += cvy_round_to_line(plan->feeds.feed[i].bytes);
    }
    plan->feeds.tensors = plan->feeds.host;
    return cvy_space_is_host(plan->opts.space) ? CVY_OK
                                               : cvy_space_alloc(plan->opts.space, bytes, 0, &plan->feeds.tensors);
}

cvy_status cvy_plan_push_feeds(cvy_plan *plan)
{
    const cvy_plan *owner = plan->head.alternate ? plan->head.alternate : plan;
    return cvy_space_is_host(plan->opts.space) ? CVY_OK
                                               : cvy_space_write(plan->opts.space, owner->feeds.tensors,
                                                                 owner->feeds.host, CVY_MAX(owner->feeds.bytes, 64));
}

/* Losses, statistics and outputs: the host reads them by name. */
static int is_for_host(const cvy_buffer *b)
{
    return b->value && (b->value->is_output || (b->value->kind == CVY_VALUE_ACCUMULATOR && !b->value->variable));
}

static cvy_status make_copies(cvy_plan *plan)
{
    size_t at = 0;
    for (int i = 0; i < plan->nbuffer; i++)
        plan->buffer[i].host = plan->buffer[i].data;
    if (cvy_space_is_host(plan->opts.space))
        return CVY_OK;
    for (int i = 0; i < plan->nbuffer; i++)
        plan->host_copies.bytes += is_for_host(&plan->buffer[i]) ? cvy_round_to_line(plan->buffer[i].bytes) : 0;
    CVY_TRY(cvy_mem_alloc(plan->host_copies.bytes, &plan->host_copies.memory));
    for (int i = 0; i < plan->nbuffer; i++) {
        cvy_buffer *b = &plan->buffer[i];
        b->host = is_for_host(b) ? plan->host_copies.memory + at : NULL;
        at += b->host ? cvy_round_to_line(b->bytes) : 0;
    }
    return CVY_OK;
}

/* The content for the host, valid until the plan runs again; NULL: the host cannot read it. */
static void *host_copy(const cvy_plan *plan, const cvy_buffer *b)
{
    if (b->host && b->host != b->data && cvy_space_read(plan->opts.space, b->host, b->data, b->bytes) != CVY_OK)
        return NULL;
    return b->host;
}

/* The address of an offset in the arena; offsets of gradients are in this plan's own set. */
static char *in_arena(const cvy_plan *plan, void *arena, size_t offset)
{
    return (char *)arena + offset + (offset < plan->head.bytes ? plan->head.bytes * (size_t)plan->head.set : 0);
}

static cvy_status resolve_buffers(cvy_plan *plan, char *arena)
{
    const cvy_plan *owner = plan->head.alternate ? plan->head.alternate : plan;
    for (int i = 0; i < plan->nbuffer; i++) {
        cvy_buffer *b = &plan->buffer[i];
        const cvy_buffer *root = b;
        while (root != &plan->buffer[root->root])
            root = &plan->buffer[root->root];
        switch (root->region) {
        case CVY_REGION_ARENA:
        case CVY_REGION_STEP: b->data = in_arena(plan, arena, root->offset); break;
        case CVY_REGION_SHADOW:
            b->data = root->value->variable->shadow;
            CVY_CHECK(b->data, CVY_E_INTERNAL, "the copy of variable %s has no memory", root->value->variable->name);
            break;
        case CVY_REGION_FEED:
            b->data =
                plan->feeds.tensors + ((char *)plan->feeds.feed[root->feed].data - owner->feeds.host) + root->offset;
            break;
        case CVY_REGION_VARIABLE:
            b->data = root->value->variable->data;
            CVY_CHECK(b->data, CVY_E_INTERNAL, "variable %s has no memory", root->value->variable->name);
            break;
        }
        b->data = (char *)b->data + b->at;
    }
    return CVY_OK;
}

/* Sets which buckets are reduced in parts, and connects all buckets. */
static cvy_status connect_buckets(cvy_plan *plan, void *arena)
{
    for (int b = 0; b < plan->buckets->n; b++) {
        cvy_bucket *bucket = &plan->buckets->bucket[b];
        const int in_parts =
            plan->head.is_partitioned && bucket->dtype == CVY_DTYPE_F32 && (!plan->opts.zero1 || bucket->has_gradients);
        bucket->kind = in_parts ? CVY_BUCKET_PART : CVY_BUCKET_ALLREDUCE;
    }
    plan->buckets->space = plan->opts.space;
    plan->buckets->over = plan->opts.grid ? plan->opts.grid->over : NULL;
    plan->buckets->axes_in_turn = plan->opts.deterministic;
    return cvy_bucket_set_connect(plan->buckets, plan->opts.comm, &plan->opts.reduce, in_arena(plan, arena, 0));
}

cvy_status cvy_plan_bind(cvy_plan *plan, void *arena)
{
    CVY_TRY(place_feeds(plan));
    CVY_TRY(resolve_buffers(plan, arena));
    CVY_TRY(make_copies(plan));
    plan->messages.comm = plan->opts.grid ? plan->opts.grid->pipeline : NULL;
    plan->head.barrier = plan->head.is_partitioned && !plan->opts.zero1 ? arena : NULL;
    if (!plan->opts.comm->pretended)
        CVY_TRY(connect_buckets(plan, arena));
    if (plan->opts.clock)
        CVY_TRY(cvy_mem_alloc(sizeof *plan->times.wait * (size_t)plan->ninstr, &plan->times.wait));
    CVY_TRY(make_addings(plan));
    for (int i = 0; i < plan->ninstr; i++) {
        bind_axis(plan, &plan->instr[i]);
        CVY_TRY(bind_instr(plan, &plan->instr[i]));
    }
    CVY_TRY(cvy_mem_alloc(sizeof(double) * ((size_t)plan->ninstr + 1), &plan->times.memory));
    plan->times.end_s = plan->times.memory + 1;
    return CVY_OK;
}

/* ---- the plan as an object ---- */

cvy_status cvy_plan_create(cvy_lowered *const *lowered, int nmicro, const cvy_plan_opts *opts, cvy_plan **out)
{
    cvy_plan *plan = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *plan, &plan));
    plan->opts = *opts;
    plan->nmicro = nmicro;
    atomic_init(&plan->at, -1);
    CVY_TRY_OUT(cvy_pool_create(&plan->pool));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *plan->lowered * (size_t)nmicro, &plan->lowered));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *plan->first_row * (size_t)nmicro, &plan->first_row));
    for (int m = 0; m < nmicro; m++) {
        plan->lowered[m] = lowered[m];
        plan->first_row[m] = plan->rows;
        plan->rows += lowered[m]->graph->batch.local_n;
    }
    CVY_TRY_OUT(cvy_plan_schedule(plan));
    if (opts->deferred)
        CVY_TRY_OUT(cvy_plan_order_deferred(plan));
    CVY_TRY_OUT(cvy_plan_memory(plan));
    *out = plan;
    return CVY_OK;
out:
    cvy_plan_destroy(&plan);
    return status;
}

void cvy_plan_destroy(cvy_plan **plan)
{
    cvy_plan *p = *plan;
    if (!p)
        return;
    for (int i = 0; i < p->ninstr; i++)
        if (p->instr[i].kind == CVY_CALL_COMM && p->instr[i].state &&
            p->instr[i].run == p->instr[i].call->node->op->comm->run)
            p->instr[i].call->node->op->comm->destroy(&p->instr[i].state);
    cvy_bucket_set_destroy(&p->buckets);
    cvy_messages_free(&p->messages);
    if (p->feeds.host && p->feeds.tensors != p->feeds.host)
        cvy_space_free(p->opts.space, &p->feeds.tensors, CVY_MAX(p->feeds.bytes, 64));
    if (p->feeds.host)
        cvy_mem_free_pages(&p->feeds.host, CVY_MAX(p->feeds.bytes, 64));
    cvy_mem_free(&p->host_copies.memory);
    cvy_mem_free(&p->lowered);
    cvy_mem_free(&p->first_row);
    cvy_mem_free(&p->buffer);
    cvy_mem_free(&p->instr);
    cvy_pool_destroy(&p->pool);
    cvy_mem_free(&p->update.need);
    cvy_mem_free(&p->accumulate.adding);
    cvy_mem_free(&p->times.memory);
    cvy_mem_free(&p->times.wait);
    cvy_mem_free(&p->times.rehearsed_s);
    cvy_mem_free(plan);
}

cvy_plan_feed *cvy_plan_find_feed(cvy_plan *plan, const char *name)
{
    for (int i = 0; i < plan->feeds.count; i++)
        if (strcmp(plan->feeds.feed[i].name, name) == 0)
            return &plan->feeds.feed[i];
    return NULL;
}

void *cvy_plan_find(const cvy_plan *plan, const char *value_name, int micro)
{
    for (int i = 0; i < plan->nbuffer; i++)
        if (plan->buffer[i].region == CVY_REGION_STEP && strcmp(plan->buffer[i].name, value_name) == 0)
            return host_copy(plan, &plan->buffer[i]);
    return cvy_plan_find_part(plan, value_name, micro);
}

/* The value whose memory a view shares. No instruction writes a view. */
static const cvy_value *source_of_view(const cvy_value *v)
{
    while (v && v->producer && (v->producer->op->flags & CVY_OP_VIEW))
        v = v->producer->src[0];
    return v;
}

void *cvy_plan_find_part(const cvy_plan *plan, const char *value_name, int micro)
{
    const cvy_value *wanted = source_of_view(cvy_graph_find(plan->lowered[micro]->graph, value_name));
    const char *name = wanted ? wanted->name : value_name;
    /* It searches from the end: if a reorder has made a plain copy of an output, that copy is wanted. */
    for (int i = plan->ninstr - 1; i >= 0; i--) {
        const cvy_instr *instr = &plan->instr[i];
        for (int d = 0; instr->micro == micro && d < instr->ndst; d++) {
            const cvy_buffer *b = instr->dst_buffer[d] >= 0 ? &plan->buffer[instr->dst_buffer[d]] : NULL;
            if (b && b->value && b->value->is_output && strcmp(b->value->name, name) == 0)
                return host_copy(plan, b);
        }
    }
    return NULL;
}
