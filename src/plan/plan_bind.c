/*
 * plan_bind.c: from a schedule on numbered buffers to instructions that run: kernels are created, every pointer is resolved.
 */
#include <string.h>

#include "op/op_reduce.h"
#include "optim/optim_update.h"
#include "plan/plan.h"

/* ---- the plain kernels of operators ---- */

struct reference {
    const cvy_node *node;
    cvy_span src[CVY_NODE_SRC_MAX], dst[CVY_NODE_DST_MAX];
};

/* Any common layout is seen as one flat row, padding included: only elementwise operators and updates are offered that. */
static cvy_span make_span(const cvy_loc *loc)
{
    cvy_span span = {.dtype = loc->dtype, .ndim = loc->value->shape.ndim, .elems = loc->elems};
    memcpy(span.dim, loc->value->shape.dim, sizeof span.dim);
    if (!cvy_layout_is_plain(&loc->layout)) {
        span.ndim = 1;
        span.dim[0] = loc->elems;
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
    return r->node->op->reference(r->node, r->src, r->dst);
}

static cvy_status reference_create(const cvy_unit *u, const cvy_call *call, void **state_out)
{
    struct reference *r = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *r, &r));
    r->node = call->node;
    for (int i = 0; i < call->nsrc; i++)
        if (call->src[i] >= 0)
            r->src[i] = make_span(&u->loc[call->src[i]]);
    for (int i = 0; i < call->ndst; i++)
        if (call->dst[i] >= 0)
            r->dst[i] = make_span(&u->loc[call->dst[i]]);
    *state_out = r;
    return CVY_OK;
}

/* ---- what the plan itself does ---- */

static cvy_status reorder_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)scratch;
    cvy_reorder_run(state, src[0], dst[0]);
    return CVY_OK;
}

static cvy_status push_sums(cvy_plan *plan)
{
    const cvy_comm_ops *ops = plan->opts.comm->ops;
    for (int b = 0; b < plan->nbucket; b++) {
        cvy_bucket *bucket = &plan->bucket[b];
        int done = 0;
        if (!bucket->active)
            continue;
        CVY_TRY(plan->exchange ? plan->exchange->test(plan->exchange->user, b, &done) : ops->request_test(bucket->request, &done));
        if (!done)
            continue;
        bucket->active = 0;
        plan->nactive--;
        bucket->end_s = cvy_clock_s();
    }
    return CVY_OK;
}

cvy_status cvy_plan_progress(cvy_plan *plan)
{
    if (plan->beside)
        CVY_TRY(push_sums(plan->beside));
    return push_sums(plan);
}

/* pushing: the plan whose sums go on meanwhile; NULL: nobody waits for them there. request: NULL: by the library. */
struct allreduce { cvy_comm *comm; int64_t elems; cvy_dtype dtype; cvy_plan *pushing; cvy_request *request; };

static cvy_status push_plan(void *plan)
{
    return cvy_plan_progress(plan);
}

static cvy_status allreduce_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct allreduce *a = state;
    (void)scratch;
    if (src[0] != dst[0])
        memcpy(dst[0], src[0], (size_t)a->elems * cvy_dtype_bytes(a->dtype));
    if (a->request)
        return cvy_comm_finish(a->comm, a->request);
    if (a->pushing)
        return a->comm->ops->allreduce_pushing(a->comm, dst[0], a->elems, a->dtype, CVY_REDUCE_SUM, push_plan, a->pushing);
    return a->comm->ops->allreduce(a->comm, dst[0], a->elems, a->dtype, CVY_REDUCE_SUM);
}

/* Whatever other ranks may need of this one goes on while it waits. */
cvy_status cvy_plan_wait(cvy_plan *plan, const cvy_bucket *bucket)
{
    for (int turn = 0; bucket->active; turn++) {
        CVY_TRY(cvy_plan_progress(plan));
        if (bucket->active)
            CVY_TRY(plan->opts.comm->ops->rest(plan->opts.comm, turn));
    }
    return CVY_OK;
}

cvy_status cvy_plan_wait_all(cvy_plan *plan)
{
    for (int b = 0; b < plan->nbucket; b++)
        CVY_TRY(cvy_plan_wait(plan, &plan->bucket[b]));
    return CVY_OK;
}

static cvy_status start_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_bucket *bucket = state;
    const cvy_exchange *exchange = bucket->plan ? bucket->plan->exchange : NULL;
    (void)src, (void)dst, (void)scratch;
    if (!bucket->request && !exchange)
        return CVY_OK;
    bucket->active = 1;
    bucket->plan->nactive++;
    bucket->start_s = cvy_clock_s();
    if (exchange)
        return exchange->start(exchange->user, (int)(bucket - bucket->plan->bucket));
    CVY_TRY(bucket->plan->opts.comm->ops->request_start(bucket->request));
    return bucket->plan->opts.blocking ? cvy_plan_wait(bucket->plan, bucket) : CVY_OK;
}

static cvy_status wait_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const cvy_bucket *bucket = state;
    (void)src, (void)dst, (void)scratch;
    return cvy_plan_wait(bucket->plan, bucket);
}

static cvy_status meet_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    cvy_plan *plan = state;
    cvy_comm *comm = plan->opts.comm;
    (void)src, (void)dst, (void)scratch;
    if (!plan->meeting)
        return CVY_OK;
    comm->ops->arrive(comm, plan->meeting);
    for (int turn = 0; !comm->ops->all_arrived(comm, plan->meeting); turn++) {
        CVY_TRY(cvy_plan_progress(plan));
        CVY_TRY(comm->ops->rest(comm, turn));
    }
    return CVY_OK;
}

static cvy_status nothing_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)state, (void)src, (void)dst, (void)scratch;
    return CVY_OK;
}

/* A part of an accumulator that is added to it. */
struct cvy_adding { int64_t elems; cvy_dtype dtype; int threads; };
enum { ADDED_AT_ONCE = 1 << 15 };      /* elements that are worth a thread */

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

/* Not by cvy_parallel_for(), in which the least numbers count as zero: sums over ranks keep them, and those in shards must be the same on any number of ranks. */
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

cvy_status cvy_call_ready(const cvy_plan_opts *opts, const cvy_unit *u, cvy_call *call)
{
    if (call->state)
        return CVY_OK;
    switch (call->kind) {
    case CVY_CALL_KERNEL: {
        const cvy_status status = call->kernel->create ? call->kernel->create(&call->ask, &call->state) : CVY_OK;
        return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s (%s)", call->node->name, call->kernel->name);
    }
    case CVY_CALL_REFERENCE: return reference_create(u, call, &call->state);
    case CVY_CALL_REORDER: {
        const cvy_loc *from = &u->loc[call->src[0]], *to = &u->loc[call->dst[0]];
        cvy_reorder *reorder = NULL;
        CVY_TRY(cvy_reorder_create(&from->value->shape, &(cvy_lie){from->dtype, from->layout}, &(cvy_lie){to->dtype, to->layout}, opts->threads, &reorder));
        call->state = reorder;
        return CVY_OK;
    }
    case CVY_CALL_ALLREDUCE: {
        struct allreduce *a = NULL;
        CVY_TRY(cvy_mem_alloc(sizeof *a, &a));
        *a = (struct allreduce){.comm = opts->comm, .elems = u->loc[call->dst[0]].elems, .dtype = u->loc[call->dst[0]].value->dtype};
        call->state = a;
        return CVY_OK;
    }
    default: return CVY_OK;
    }
}

void cvy_call_release(cvy_call *call)
{
    cvy_reorder *reorder = call->state;
    struct allreduce *allreduce = call->state;
    if (!call->state)
        return;
    switch (call->kind) {
    case CVY_CALL_KERNEL:
        if (call->kernel->destroy)
            call->kernel->destroy(call->state);
        break;
    case CVY_CALL_REORDER: cvy_reorder_destroy(&reorder); break;
    case CVY_CALL_ALLREDUCE:
        if (allreduce->request)
            allreduce->comm->ops->request_destroy(&allreduce->request);
        cvy_mem_free(&call->state);
        break;
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
    case CVY_CALL_ALLREDUCE: return allreduce_run;
    default: return NULL;
    }
}

static void *bucket_state(cvy_plan *plan, const cvy_call *call)
{
    const struct cvy_reduce_options *options = call->node->options;
    return options->bucket < plan->nbucket ? &plan->bucket[options->bucket] : NULL;
}

/* Which weight an instruction writes, and whether the copy in bf16 that is kept beside it follows. */
static void bind_weight(const cvy_plan *plan, cvy_instr *instr)
{
    for (int i = 0; i < instr->ndst; i++) {
        const cvy_buffer *b = instr->dst_buffer[i] >= 0 ? &plan->buffer[instr->dst_buffer[i]] : NULL;
        if (!b || (b->region != CVY_REGION_ROUNDED && b->region != CVY_REGION_VARIABLE))
            continue;
        if (b->region == CVY_REGION_ROUNDED || b->value->variable->role == CVY_ROLE_WEIGHT)
            instr->weight = b->value->variable;
        instr->rounds |= b->region == CVY_REGION_ROUNDED;
    }
}

static void move_on(void **pointer, int64_t elems, size_t elem_bytes)
{
    if (*pointer)
        *pointer = (char *)*pointer + (size_t)elems * elem_bytes;
}

cvy_part cvy_plan_part(const cvy_plan *plan, const cvy_buffer *gradient)
{
    const cvy_bucket *bucket = &plan->bucket[gradient->bucket];
    const int64_t at = (int64_t)((gradient->offset - bucket->offset) / sizeof(float)), n = (int64_t)(gradient->bytes / sizeof(float));
    const int64_t first = CVY_MAX(bucket->part.first - at, 0), end = CVY_MIN(bucket->part.end - at, n);
    return (cvy_part){first, CVY_MAX(first, end)};
}

/* Behind bind_instr's pointers: they move to the part. Scalars among the sources stay where they are. */
static void bind_part(const cvy_plan *plan, cvy_instr *instr, cvy_part part)
{
    move_on(&instr->src[CVY_UPDATE_WEIGHT], part.first, sizeof(float));
    move_on(&instr->src[CVY_UPDATE_GRADIENT], part.first, sizeof(float));
    for (int s = CVY_UPDATE_STATE; s < instr->nsrc; s++)
        move_on(&instr->src[s], part.first, sizeof(float));
    for (int d = 0; d < instr->ndst; d++)
        if (instr->dst_buffer[d] >= 0)
            move_on(&instr->dst[d], part.first, plan->buffer[instr->dst_buffer[d]].region == CVY_REGION_ROUNDED ? sizeof(uint16_t) : sizeof(float));
    if (part.end == part.first)
        instr->run = nothing_run;
}

static cvy_status make_addings(cvy_plan *plan)
{
    size_t n = 1;
    for (int i = 0; i < plan->ninstr; i++)
        n += plan->instr[i].kind == CVY_CALL_ACCUMULATE;
    return cvy_mem_alloc(n * sizeof *plan->adding, &plan->adding);
}

static struct cvy_adding *add_adding(cvy_plan *plan, const cvy_buffer *sum)
{
    struct cvy_adding *a = &plan->adding[plan->nadding++];
    const cvy_dtype dtype = sum->value->dtype;
    *a = (struct cvy_adding){(int64_t)(sum->bytes / cvy_dtype_bytes(dtype)), dtype, plan->opts.threads};
    return a;
}

/* By the library, in an order of its own; or as buckets are summed. */
static cvy_status bind_allreduce(cvy_plan *plan, const cvy_instr *instr)
{
    struct allreduce *a = instr->state;
    a->pushing = plan->opts.late ? plan : NULL; /* a rank may wait for the last step's sums before it comes here */
    if (!plan->opts.steady || a->comm->nranks == 1)
        return CVY_OK;
    return a->comm->ops->request_create(a->comm, instr->dst[0], a->elems, a->dtype, NULL, &a->request);
}

static cvy_status bind_instr(cvy_plan *plan, cvy_instr *instr)
{
    cvy_call *call = (cvy_call *)(uintptr_t)instr->call;      /* the plan owns its units' states while it binds */
    const cvy_buffer *parted = plan->in_parts ? cvy_instr_parted(plan, instr) : NULL;
    const cvy_part part = parted ? cvy_plan_part(plan, parted) : (cvy_part){0, 0};
    if (plan->opts.clock && cvy_instr_computes(instr)) {
        bind_weight(plan, instr);
        return cvy_instr_bind_clock(plan, instr, parted ? (double)(part.end - part.first) * sizeof(float) / (double)parted->bytes : 1);
    }
    if (parted && call->ask.part_elems != part.end - part.first) {
        cvy_call_release(call); /* measuring may have made it for all of the weight */
        call->ask.part_elems = part.end - part.first;
    }
    if (call)
        CVY_TRY(cvy_call_ready(&plan->opts, plan->unit[instr->micro], call));
    for (int i = 0; i < instr->nsrc; i++)
        instr->src[i] = instr->src_buffer[i] >= 0 ? plan->buffer[instr->src_buffer[i]].data : NULL;
    for (int i = 0; i < instr->ndst; i++)
        instr->dst[i] = instr->dst_buffer[i] >= 0 ? plan->buffer[instr->dst_buffer[i]].data : NULL;
    bind_weight(plan, instr);
    instr->scratch = instr->scratch_buffer >= 0 ? plan->buffer[instr->scratch_buffer].data : NULL;
    instr->state = call ? call->state : NULL;
    switch (instr->kind) {
    case CVY_CALL_KERNEL:
    case CVY_CALL_REFERENCE:
    case CVY_CALL_REORDER: instr->run = cvy_call_run(call); break;
    case CVY_CALL_ALLREDUCE:
        instr->run = cvy_call_run(call);
        CVY_TRY(bind_allreduce(plan, instr));
        break;
    case CVY_CALL_REDUCE_START:
        instr->run = start_run;
        instr->state = bucket_state(plan, call);
        break;
    case CVY_CALL_REDUCE_WAIT:
        instr->run = wait_run;
        instr->state = bucket_state(plan, call);
        break;
    case CVY_CALL_ACCUMULATE:
        instr->run = accumulate_run;
        instr->state = add_adding(plan, &plan->buffer[instr->dst_buffer[0]]);
        break;
    case CVY_CALL_ZERO:
        instr->run = zero_run;
        instr->state = (void *)(uintptr_t)plan->buffer[instr->dst_buffer[0]].bytes;
        break;
    case CVY_CALL_MEET:
        instr->run = meet_run;
        instr->state = plan;
        break;
    default: return cvy_error_set(CVY_E_INTERNAL, "an instruction of kind %d cannot run", (int)instr->kind);
    }
    if (parted)
        bind_part(plan, instr, part);
    CVY_CHECK(instr->run && (instr->state || instr->kind != CVY_CALL_REDUCE_START), CVY_E_INTERNAL, "instruction of %s cannot run",
              call ? call->node->name : "the plan");
    return CVY_OK;
}

static cvy_status place_feeds(cvy_plan *plan)
{
    const size_t bytes = CVY_MAX(plan->feed_bytes, 64);
    for (int i = 0; plan->twin && i < plan->nfeed; i++)
        plan->feed[i].data = plan->twin->feed[i].data;
    if (plan->twin)
        return CVY_OK;
    CVY_TRY(plan->opts.clock ? cvy_mem_map_pages(bytes, &plan->feed_memory) : cvy_mem_alloc_pages(bytes, &plan->feed_memory));
    size_t at = 0;
    for (int i = 0; i < plan->nfeed; i++) {
        plan->feed[i].data = plan->feed_memory + at;
        at += (plan->feed[i].bytes + 63) & ~(size_t)63;
    }
    return CVY_OK;
}

/* A place in the arena as it was planned, in this plan's own set of gradients. */
static char *in_arena(const cvy_plan *plan, void *arena, size_t offset)
{
    return (char *)arena + offset + (offset < plan->step_bytes ? plan->step_bytes * (size_t)plan->set : 0);
}

static cvy_status resolve_buffers(cvy_plan *plan, char *arena)
{
    for (int i = 0; i < plan->nbuffer; i++) {
        cvy_buffer *b = &plan->buffer[i];
        const cvy_buffer *root = b;
        while (root != &plan->buffer[root->root])
            root = &plan->buffer[root->root];
        switch (root->region) {
        case CVY_REGION_ARENA:
        case CVY_REGION_STEP: b->data = in_arena(plan, arena, root->offset); break;
        case CVY_REGION_ROUNDED:
            b->data = root->value->variable->rounded;
            CVY_CHECK(b->data, CVY_E_INTERNAL, "the copy of variable %s has no memory", root->value->variable->name);
            break;
        case CVY_REGION_FEED: b->data = (char *)plan->feed[root->feed].data + root->offset; break;
        case CVY_REGION_VARIABLE:
            b->data = root->value->variable->data;
            CVY_CHECK(b->data, CVY_E_INTERNAL, "variable %s has no memory", root->value->variable->name);
            break;
        }
        b->data = (char *)b->data + b->at;
    }
    return CVY_OK;
}

cvy_status cvy_plan_bind(cvy_plan *plan, void *arena)
{
    const cvy_comm_ops *ops = plan->opts.comm->ops;
    CVY_TRY(place_feeds(plan));
    CVY_TRY(resolve_buffers(plan, arena));
    plan->meeting = plan->in_parts && !plan->opts.sharded ? arena : NULL;
    for (int b = 0; b < plan->nbucket; b++) {
        plan->bucket[b].data = in_arena(plan, arena, plan->bucket[b].offset);
        plan->bucket[b].plan = plan;
    }
    for (int b = 0; b < plan->nbucket && plan->opts.comm->nranks > 1; b++) {
        cvy_bucket *bucket = &plan->bucket[b];
        const int in_parts = plan->in_parts && bucket->dtype == CVY_DTYPE_F32 && (!plan->opts.sharded || bucket->gradients);
        if (plan->exchange)
            continue;
        CVY_TRY(ops->request_create(plan->opts.comm, bucket->data, (int64_t)(bucket->bytes / cvy_dtype_bytes(bucket->dtype)),
                                    bucket->dtype, in_parts ? &bucket->part : NULL, &bucket->request));
    }
    if (plan->opts.clock)
        CVY_TRY(cvy_mem_alloc(sizeof *plan->wait * (size_t)plan->ninstr, &plan->wait));
    CVY_TRY(make_addings(plan));
    for (int i = 0; i < plan->ninstr; i++)
        CVY_TRY(bind_instr(plan, &plan->instr[i]));
    CVY_TRY(cvy_mem_alloc(sizeof(double) * ((size_t)plan->ninstr + 1), &plan->clock_memory));
    plan->end_s = plan->clock_memory + 1;
    return CVY_OK;
}

/* ---- the plan as an object ---- */

cvy_status cvy_plan_create(cvy_unit *const *unit, int nmicro, const cvy_plan_opts *opts, cvy_plan **out)
{
    cvy_plan *plan = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *plan, &plan));
    plan->opts = *opts;
    plan->nmicro = nmicro;
    atomic_init(&plan->at, -1);
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *plan->unit * (size_t)nmicro, &plan->unit));
    CVY_TRY_OUT(cvy_mem_alloc(sizeof *plan->first_row * (size_t)nmicro, &plan->first_row));
    for (int m = 0; m < nmicro; m++) {
        plan->unit[m] = unit[m];
        plan->first_row[m] = plan->rows;
        plan->rows += unit[m]->graph->batch.local_n;
    }
    CVY_TRY_OUT(cvy_plan_schedule(plan));
    if (opts->late)
        CVY_TRY_OUT(cvy_plan_order_late(plan));
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
    for (int b = 0; b < p->nbucket; b++)
        if (p->bucket[b].request)
            p->opts.comm->ops->request_destroy(&p->bucket[b].request);
    if (p->feed_memory)
        cvy_mem_free_pages(&p->feed_memory, CVY_MAX(p->feed_bytes, 64));
    cvy_mem_free(&p->unit);
    cvy_mem_free(&p->first_row);
    cvy_mem_free(&p->buffer);
    cvy_mem_free(&p->instr);
    cvy_mem_free(&p->need);
    cvy_mem_free(&p->bucket);
    cvy_mem_free(&p->adding);
    cvy_mem_free(&p->clock_memory);
    cvy_mem_free(&p->wait);
    cvy_mem_free(plan);
}

cvy_plan_feed *cvy_plan_find_feed(cvy_plan *plan, const char *name)
{
    for (int i = 0; i < plan->nfeed; i++)
        if (strcmp(plan->feed[i].name, name) == 0)
            return &plan->feed[i];
    return NULL;
}

void *cvy_plan_find(const cvy_plan *plan, const char *value_name, int micro)
{
    for (int i = 0; i < plan->nbuffer; i++)
        if (plan->buffer[i].region == CVY_REGION_STEP && strcmp(plan->buffer[i].name, value_name) == 0)
            return plan->buffer[i].data;
    return cvy_plan_find_part(plan, value_name, micro);
}

void *cvy_plan_find_part(const cvy_plan *plan, const char *value_name, int micro)
{
    /* From the end: where a reorder has brought an output to plain layout, that one is meant. */
    for (int i = plan->ninstr - 1; i >= 0; i--) {
        const cvy_instr *instr = &plan->instr[i];
        for (int d = 0; instr->micro == micro && d < instr->ndst; d++) {
            const cvy_buffer *b = instr->dst_buffer[d] >= 0 ? &plan->buffer[instr->dst_buffer[d]] : NULL;
            if (b && b->value && b->value->is_output && strcmp(b->value->name, value_name) == 0)
                return b->data;
        }
    }
    return NULL;
}
