/*
 * plan_bind.c: makes the instructions of a schedule runnable: it creates the kernels and resolves every pointer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_bind.h"

#include "kernel/kernel_library.h"
#include "optim/optim_update.h"
#include "plan/plan_record.h"

/* A bucket over all ranks, which holds losses, waits for the other stages. Starting a message is not waiting. */
static void bind_axis(const cvy_plan *plan, cvy_instr *instr)
{
    const cvy_op_comm *comm = cvy_instr_comm(instr);
    const int bucket = CVY_MAX(cvy_instr_starts_bucket(instr), cvy_instr_awaits_bucket(instr));
    instr->axis = !comm         ? CVY_COMM_DATA
                  : bucket >= 0 ? cvy_plan_bucket_axis(plan, bucket)
                                : cvy_node_comm_axis(instr->call->node);
    instr->awaits_stage = comm && instr->axis == CVY_COMM_PIPELINE && !comm->starts;
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
        instr->run = cvy_noop_run;
}

static cvy_status make_fillings(cvy_plan *plan)
{
    size_t n = 1;
    for (int i = 0; i < plan->ninstr; i++)
        n += plan->instr[i].kind == CVY_CALL_ACCUMULATE || plan->instr[i].kind == CVY_CALL_ZERO ||
             plan->instr[i].kind == CVY_CALL_COMM;
    return cvy_mem_alloc(n * sizeof *plan->fillings.filling, &plan->fillings.filling);
}

static struct cvy_filling *add_filling(cvy_plan *plan, const cvy_buffer *at)
{
    struct cvy_filling *f = &plan->fillings.filling[plan->fillings.count++];
    const cvy_dtype dtype = at->value ? at->value->dtype : CVY_DTYPE_U8;
    *f = (struct cvy_filling){plan->opts.space, (int64_t)(at->bytes / cvy_dtype_bytes(dtype)), at->bytes, dtype,
                              plan->opts.threads};
    return f;
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
static void bind_no_comm(cvy_plan *plan, cvy_instr *instr)
{
    const cvy_buffer *dst = instr->ndst > 0 && instr->dst_buffer[0] >= 0 ? &plan->buffer[instr->dst_buffer[0]] : NULL;
    const int is_integer = dst && dst->value && !cvy_dtype_is_real(dst->value->dtype);
    instr->run = is_integer ? cvy_zero_run : cvy_noop_run;
    instr->state = is_integer ? add_filling(plan, dst) : NULL;
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
    case CVY_CALL_STAGED:
    case CVY_CALL_REORDER: instr->run = cvy_call_run(call); break;
    case CVY_CALL_COMM:
        if (plan->opts.comm->pretended)
            bind_no_comm(plan, instr);
        else
            CVY_TRY(bind_comm(plan, instr));
        break;
    case CVY_CALL_ACCUMULATE:
        instr->run = cvy_accumulate_run;
        instr->state = add_filling(plan, &plan->buffer[instr->dst_buffer[0]]);
        break;
    case CVY_CALL_ZERO:
        instr->run = cvy_zero_run;
        instr->state = add_filling(plan, &plan->buffer[instr->dst_buffer[0]]);
        break;
    case CVY_CALL_BARRIER:
        instr->run = cvy_barrier_run;
        instr->state = plan;
        break;
    default: return cvy_error_set(CVY_E_INTERNAL, "an instruction of kind %d cannot run", (int)instr->kind);
    }
    if (parted)
        bind_part(plan, instr, part);
    CVY_CHECK(instr->run, CVY_E_INTERNAL, "instruction of %s cannot run", call ? call->node->name : "the plan");
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
    return cvy_bucket_set_connect(plan->buckets, plan->opts.comm, &plan->opts.reduce,
                                  cvy_plan_in_arena(plan, arena, 0));
}

/* Whether the instruction runs a kernel of this library; NULL: of any one that joins calls. */
static const cvy_library_def *joins(const cvy_instr *instr, const cvy_library_def *library)
{
    const cvy_kernel_def *kernel = cvy_call_kernel(instr->call);
    const cvy_library_def *own = kernel && instr->run == kernel->run ? cvy_kernel_library(kernel) : NULL;
    return own && own->join && (!library || own == library) ? own : NULL;
}

/* Tells libraries which calls of the update phase follow each other. With two sets of gradients (delayed and deferred
 * updates) two plans run the same kernels on other memory, so these are not joined. */
static cvy_status join_updates(const cvy_plan *plan)
{
    cvy_kernel_call *calls = NULL;
    cvy_status status = CVY_OK;
    if (cvy_space_is_host(plan->opts.space) || plan->opts.sets > 1 || plan->opts.clock)
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *calls * ((size_t)plan->ninstr + 1), &calls));
    for (int i = plan->update.first; i < plan->ninstr && status == CVY_OK;) {
        const cvy_library_def *library = joins(&plan->instr[i], NULL);
        int n = 0;
        for (; library && i + n < plan->ninstr && joins(&plan->instr[i + n], library); n++) {
            const cvy_instr *instr = &plan->instr[i + n];
            calls[n] = (cvy_kernel_call){cvy_call_kernel(instr->call), instr->state, instr->src, instr->dst};
        }
        if (n > 0)
            status = library->join(plan->opts.space, calls, n);
        i += CVY_MAX(n, 1);
    }
    cvy_mem_free(&calls);
    return status;
}

cvy_status cvy_plan_bind(cvy_plan *plan, void *arena)
{
    cvy_plan_free_records(plan);
    CVY_TRY(cvy_plan_place_feeds(plan));
    CVY_TRY(cvy_plan_resolve_buffers(plan, arena));
    CVY_TRY(cvy_plan_make_copies(plan));
    plan->messages.space = plan->opts.space;
    plan->messages.comm = plan->opts.grid ? plan->opts.grid->pipeline : NULL;
    plan->head.barrier = plan->head.is_partitioned && !plan->opts.zero1 ? arena : NULL;
    if (!plan->opts.comm->pretended)
        CVY_TRY(connect_buckets(plan, arena));
    if (plan->opts.clock)
        CVY_TRY(cvy_mem_alloc(sizeof *plan->times.wait * (size_t)plan->ninstr, &plan->times.wait));
    CVY_TRY(make_fillings(plan));
    for (int i = 0; i < plan->ninstr; i++) {
        bind_axis(plan, &plan->instr[i]);
        CVY_TRY(bind_instr(plan, &plan->instr[i]));
    }
    CVY_TRY(join_updates(plan));
    CVY_TRY(cvy_plan_make_records(plan));
    CVY_TRY(cvy_mem_alloc(sizeof(double) * ((size_t)plan->ninstr + 1), &plan->times.memory));
    plan->times.end_s = plan->times.memory + 1;
    return CVY_OK;
}
