/*
 * program_allocate.c: takes the memory of a planned program, shares it among the ranks of a node, binds the plans to
 * it, and fills the variables with their first values.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_round.h"
#include "base/machine/base_team.h"
#include "data/data.h"
#include "optim/optim.h"
#include "program/program_impl.h"
#include "program/program_reduce.h"

enum { INIT_PIECE = 1 << 18 }; /* elements */

static size_t aligned_bytes(const cvy_variable *v)
{
    return cvy_round_to_line(cvy_variable_bytes(v)) + CVY_LINE_BYTES; /* the bf16 copy begins on a new cache line */
}

/* Allocates tensor memory. With the kernel clock nothing uses it, so it stays virtual. */
static cvy_status take_pages(const cvy_program *p, size_t bytes, void *out)
{
    return cvy_space_alloc(&p->context->space, bytes, p->kernel.by_clock, out);
}

/* Whether other ranks keep this optimiser state, all of it or all but a part. Its memory stays virtual too, until it is
 * written, or rank 0 reads or writes a checkpoint. A device has no virtual memory. */
static int is_left_to_others(const cvy_program *p, const cvy_variable *v)
{
    return v->role == CVY_ROLE_STATE && p->update.shape.state_elsewhere && cvy_space_is_host(&p->context->space);
}

/* With the kernel clock, all variables are in one mapping that is never touched: a thousand simulated ranks would
 * otherwise need more mappings than a process may have. */
static cvy_status map_idle(cvy_program *p)
{
    for (int i = 0; i < p->vars->count; i++) {
        p->vars->at[i]->is_borrowed = 1;
        p->memory.idle_bytes += p->vars->at[i]->elsewhere ? 0 : aligned_bytes(p->vars->at[i]);
    }
    return cvy_space_alloc(&p->context->space, p->memory.idle_bytes, 1, &p->memory.idle);
}

cvy_status cvy_program_allocate_variables(const cvy_program *p)
{
    char *shared = p->memory.node_shared ? p->memory.node_shared : p->memory.idle;
    for (int i = 0; i < p->vars->count; i++) {
        cvy_variable *v = p->vars->at[i];
        cvy_blocking b;
        if (v->data || v->elsewhere)
            continue;
        CVY_TRY(cvy_blocking_make(&v->layout, &v->shape, &b));
        v->layout_fixed = 1;
        v->space = &p->context->space;
        v->bytes = (size_t)b.elems * cvy_dtype_bytes(v->dtype);
        if (v->is_borrowed) {
            v->data = shared;
            v->shadow = v->has_shadow ? shared + cvy_round_to_line(v->bytes) : NULL;
            shared += aligned_bytes(v);
            continue;
        }
        const cvy_status status =
            cvy_space_alloc(v->space, v->bytes, p->kernel.by_clock || is_left_to_others(p, v), &v->data);
        if (status != CVY_OK)
            return cvy_error_prefix(status, "memory of %s", v->name);
        if (v->has_shadow)
            CVY_TRY(take_pages(p, cvy_variable_shadow_bytes(v), &v->shadow));
    }
    return CVY_OK;
}

/* It works in pieces, because a plain copy of the largest variable would add to the process's peak memory. */
static cvy_status initialise(const cvy_program *p, cvy_variable *v, void *piece)
{
    const int64_t n = cvy_shape_elems(&v->shape);
    for (int64_t i = 0; i < n && v->init.method && !v->elsewhere && !is_left_to_others(p, v); i += INIT_PIECE) {
        const int64_t count = CVY_MIN(INIT_PIECE, n - i);
        CVY_TRY(cvy_init_fill(v, p->opts.seed, i, count, piece));
        CVY_TRY(cvy_variable_write_part(v, i, count, piece));
    }
    return CVY_OK;
}

cvy_status cvy_program_initialise(cvy_program *p)
{
    void *piece = NULL;
    cvy_status status = cvy_mem_alloc(INIT_PIECE * sizeof(double), &piece);
    for (int i = 0; i < p->vars->count && status == CVY_OK; i++)
        status = initialise(p, p->vars->at[i], piece);
    cvy_mem_free(&piece);
    return status;
}

static void *feed_data(cvy_plan *plan, const char *name)
{
    cvy_plan_feed *feed = cvy_plan_find_feed(plan, name);
    return feed ? feed->data : NULL;
}

/* Until the caller gives sample numbers, a sample is known by its place in the global batch. */
static void number_samples(const cvy_program *p, const cvy_program_task *s)
{
    int64_t *id = feed_data(s->plan, "sample_id"), before = 0;
    for (int m = 0; id && m < s->nmicro; m++) {
        const cvy_batch share = cvy_program_share(p, s, m, 0);
        for (int64_t i = 0; i < share.local_n; i++)
            id[s->plan->first_row[m] + i] = before + share.first + i;
        before += p->update.shape.shards || cvy_program_cuts_own_rows(p, s) ? 0 : share.global_n;
    }
}

/* Until the caller gives other weights, all samples count alike. */
static void weigh_samples(const cvy_program_task *s)
{
    const cvy_plan_feed *weight = cvy_plan_find_feed(s->plan, CVY_SAMPLE_WEIGHT);
    if (!weight || weight->per_step || !cvy_dtype_is_real(weight->dtype) || s->plan->opts.clock)
        return;
    const cvy_span span = {.dtype = weight->dtype, .data = weight->data};
    for (int64_t i = 0; i < (int64_t)(weight->bytes / cvy_dtype_bytes(weight->dtype)); i++)
        cvy_set(&span, i, 1);
}

/* Gradients are at the head of the arena, at the same offset on all ranks. If a node has several ranks, this memory is
 * shared by them. */
static cvy_status share_gradients(cvy_program *p, int *shared_out)
{
    cvy_comm *comm = p->grid.data;
    const int has_reason = *comm->unshared != 0; /* an earlier program, or a check, has said it */
    size_t bytes = 0;
    for (int i = 0; i < p->ntask; i++)
        if (p->task[i]->plan->buckets->n > 0)
            bytes = CVY_MAX(bytes, cvy_plan_head_bytes(p->task[i]->plan));
    *shared_out = 0;
    if (comm->nranks == 1 || bytes == 0 || !p->update.shape.shares_memory || !cvy_space_is_host(&p->context->space))
        return CVY_OK;
    CVY_TRY(comm->node_memory->share(comm, &p->reduce.opts, p->memory.arena, bytes, shared_out));
    if (*comm->unshared && !has_reason)
        cvy_log(p->context, CVY_LOG_WARN,
                "ranks of a node reduce by messages, which is slower than by shared memory (%s)", comm->unshared);
    return CVY_OK;
}

static void count_shared(cvy_variable *v, void *arg)
{
    size_t *bytes = arg;
    *bytes += v->is_borrowed ? 0 : aligned_bytes(v);
    v->is_borrowed = 1;
}

int cvy_program_can_share_update(const cvy_program *p, const cvy_plan *plan)
{
    return p->opts.share_weights && p->update.shape.shares_weights && p->update.shape.shares_memory &&
           plan->buckets->n > 0 && cvy_plan_can_part(plan);
}

/* Weights that the ranks of a node update in parts exist once per node. Either all training steps of the program work
 * so, or none. */
static cvy_status allocate_shared(cvy_program *p, int shared)
{
    cvy_comm *comm = p->grid.data;
    size_t bytes = 0;
    int training = 0, can = shared && p->opts.share_weights && p->update.shape.shares_weights;
    for (int i = 0; i < p->ntask; i++)
        if (p->task[i]->plan->buckets->n > 0) {
            training++;
            can = can && cvy_plan_can_part(p->task[i]->plan);
        }
    int64_t all = can && training > 0;
    if (comm->nranks > 1)
        CVY_TRY(comm->ops->allreduce(comm, &all, 1, CVY_DTYPE_I64, CVY_REDUCE_MIN));
    for (int i = 0; i < p->ntask && all; i++)
        if (p->task[i]->plan->buckets->n > 0)
            cvy_plan_each_parted(p->task[i]->plan, count_shared, &bytes);
    p->memory.node_shared_bytes = bytes;
    if (all)
        CVY_TRY(comm->node_memory->alloc(comm, bytes, &p->memory.node_shared));
    for (int i = 0; i < p->vars->count && !p->memory.node_shared; i++)
        p->vars->at[i]->is_borrowed = 0;
    for (int i = 0; i < p->ntask; i++) {
        cvy_plan *const plans[] = {p->task[i]->plan, p->task[i]->alternate};
        for (int k = 0; k < CVY_COUNT(plans) && plans[k]; k++) {
            plans[k]->head.simulated_parts = cvy_program_can_share_update(p, plans[k]) ? comm->simulated_ranks : 0;
            plans[k]->head.is_partitioned = (p->memory.node_shared || plans[k]->opts.zero1) && plans[k]->buckets->n > 0;
        }
    }
    return CVY_OK;
}

static cvy_status bind_plans(cvy_program *p)
{
    for (int i = 0; i < p->ntask; i++) {
        cvy_program_task *s = p->task[i];
        CVY_TRY(cvy_plan_bind(s->plan, (char *)p->memory.arena + cvy_program_arena_offset(p, s)));
        if (s->alternate) {
            s->alternate->head.set = 1;
            s->alternate->head.alternate = s->plan;
            CVY_TRY(cvy_plan_bind(s->alternate, p->memory.arena));
        }
        s->feed.lr = feed_data(s->plan, "(lr)");
        s->feed.norm = feed_data(s->plan, "(norm)");
        s->feed.number = feed_data(s->plan, "(step)");
        CVY_TRY(cvy_program_allocate_outputs(s));
        number_samples(p, s);
        weigh_samples(s);
    }
    return CVY_OK;
}

static cvy_status allocate(cvy_program *p)
{
    cvy_comm *comm = p->context->comm;
    int shared = 0;
    p->memory.arena_bytes = CVY_MAX(p->memory.arena_bytes, 64);
    CVY_TRY(cvy_comm_agree(comm, take_pages(p, p->memory.arena_bytes, &p->memory.arena)));
    CVY_TRY(cvy_comm_agree(comm, p->update.def->plan.prepare ? p->update.def->plan.prepare(p) : CVY_OK));
    CVY_TRY(share_gradients(p, &shared));
    CVY_TRY(allocate_shared(p, shared));
    if (p->kernel.by_clock && !p->memory.node_shared)
        CVY_TRY(cvy_comm_agree(comm, map_idle(p)));
    CVY_TRY(cvy_comm_agree(comm, cvy_program_allocate_variables(p)));
    CVY_TRY(cvy_comm_agree(comm, bind_plans(p)));
    cvy_program_note_sums(p);
    if (p->update.def->plan.connect)
        CVY_TRY(p->update.def->plan.connect(p));
    return p->kernel.by_clock ? CVY_OK : cvy_program_initialise(p);
}

cvy_status cvy_program_allocate(cvy_program *p)
{
    if (!p->kernel.by_clock)
        CVY_TRY(cvy_comm_agree(p->context->comm, cvy_program_check_memory(p)));
    cvy_team before;
    cvy_status status = cvy_team_enter(p->context->threads, &before);
    if (status == CVY_OK)
        status = cvy_team_count(p->context->threads);
    status = cvy_comm_agree(p->context->comm, status);
    if (status == CVY_OK)
        status = allocate(p);
    cvy_team_leave(&before);
    p->allocated = status == CVY_OK;
    return cvy_comm_agree(p->context->comm, status);
}
