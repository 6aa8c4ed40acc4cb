/*
 * update_zero1.c: ZeRO-1, a sharded optimiser: each rank gets the sums of a part of each bucket of gradients and
 * updates the weights of that part. Only this rank keeps their optimiser state. Then all ranks get all new weights.
 *
 * It is the all-reduce of sync cut in two (comm_allreduce.h: scatter and gather) with the update in between, so it
 * sends the same number of bytes. The new weights are sent through the memory of their gradients. The weights of one
 * bucket are sent while those of the next are updated. The other ranks' parts of the states are memory that is never
 * touched, so the system never provides pages for it; on a device they take memory.
 *
 *     backward, scatter b0, b1 | update my part of b0, gather b0 | update my part of b1, gather b1 | write weights
 *
 * Source: Rajbhandari et al. 2020, ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, stage 1.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "optim/optim_update.h"
#include "program/program_guard.h"
#include "program/program_impl.h"

enum { STATES_MAX = 3 };

struct piece { /* a weight, and the position of its gradient in a bucket */
    int bucket, instr;
    int64_t at, count; /* elements */
    cvy_variable *weight, *state[STATES_MAX];
    int nstate;
};

struct shard_plan {
    cvy_plan *plan;
    cvy_bucket_set *gather; /* gathers the new weights, through the memory of their gradients */
    struct piece *piece;
    int npiece;
    int *last; /* of each bucket: the instruction that ends its updates; -1: it has no updates */
};

typedef struct cvy_zero1 {
    cvy_comm *comm;
    struct shard_plan *at; /* one for each training task */
    int n, nstate;
} cvy_zero1;

static cvy_zero1 *state_of(const cvy_program *p)
{
    return p->update.state;
}

/* On a grid all of this is among the ranks of a data axis; and for gradients that are sums over a spatial axis, too,
 * among the ranks of both, because all of them have the weight. The ring algorithm cuts a reduction into as many parts
 * as there are ranks. Otherwise halving is used, also in place of algorithms that cannot be cut, and makes as many
 * parts as the largest power of two. */
static int state_parts(const cvy_program *p)
{
    const int n = p->grid.ndata;
    int parts = 1;
    if (p->opts.reduce && strcmp(p->opts.reduce, "ring") == 0)
        return n;
    while (2 * parts <= n)
        parts *= 2;
    return parts;
}

static void shape(const cvy_program *p, cvy_update_shape *shape)
{
    shape->halves = 1;
    shape->state_parts = cvy_space_is_host(&p->context->space) ? state_parts(p) : 1;
    shape->state_elsewhere = 1;
}

/* A stage of a pipeline may have no weights. */
static int has_updates(const cvy_plan *plan)
{
    int found = 0;
    for (int i = plan->update.first; i < plan->ninstr; i++)
        found |= plan->instr[i].call && plan->instr[i].call->node &&
                 (plan->instr[i].call->node->op->flags & CVY_OP_OPTIMIZER) != 0;
    return found;
}

/* Checks, before the plans are bound, whether updates can be done in parts. */
static cvy_status prepare(cvy_program *p)
{
    cvy_status status = CVY_OK;
    for (int i = 0; i < p->ntask && status == CVY_OK; i++)
        if (p->task[i]->training && has_updates(p->task[i]->plan) && !cvy_plan_can_part(p->task[i]->plan))
            status = cvy_error_set(CVY_E_CONFIG,
                                   "opts.update_mode: zero1 does not suit the optimiser %s%s: each number must be "
                                   "updated by itself, by a native kernel; sgd, adam and adamw do so in f32 and bf16, "
                                   "without clip_norm, clip_value, l1 and opts.kernels: reference",
                                   p->task[i]->train.optimise.op,
                                   p->task[i]->train.optimise.clip_norm > 0    ? " with clip_norm"
                                   : p->task[i]->train.optimise.clip_value > 0 ? " with clip_value"
                                   : p->task[i]->train.optimise.l1 > 0         ? " with l1"
                                                                               : "");
    return status;
}

/* ---- setup ---- */

static cvy_status list_pieces(struct shard_plan *s)
{
    const cvy_plan *plan = s->plan;
    CVY_TRY(cvy_mem_alloc(sizeof *s->piece * (size_t)plan->ninstr, &s->piece));
    CVY_TRY(cvy_mem_alloc(sizeof *s->last * (size_t)CVY_MAX(plan->buckets->n, 1), &s->last));
    for (int b = 0; b < plan->buckets->n; b++)
        s->last[b] = -1;
    for (int i = plan->update.first; i < plan->ninstr; i++) {
        const cvy_instr *instr = &plan->instr[i];
        const cvy_buffer *gradient = cvy_instr_parted(plan, instr);
        if (!gradient)
            continue;
        struct piece *p = &s->piece[s->npiece++];
        *p = (struct piece){
            .bucket = gradient->bucket,
            .instr = i,
            .at = (int64_t)((gradient->offset - plan->buckets->bucket[gradient->bucket].offset) / sizeof(float)),
            .count = (int64_t)(gradient->bytes / sizeof(float)),
            .weight = plan->buffer[instr->src_buffer[CVY_OPTIM_WEIGHT]].value->variable};
        for (int k = CVY_OPTIM_STATE; k < instr->nsrc; k++) {
            CVY_EXPECT(p->nstate < STATES_MAX);
            p->state[p->nstate++] = plan->buffer[instr->src_buffer[k]].value->variable;
        }
        s->last[p->bucket] = i;
    }
    return CVY_OK;
}

static cvy_status make_gathers(cvy_comm *comm, struct shard_plan *s)
{
    const cvy_bucket_set *sums = s->plan->buckets;
    CVY_TRY(cvy_bucket_set_create(sums->n, &s->gather));
    for (int b = 0; b < sums->n; b++) {
        cvy_bucket *bucket = &s->gather->bucket[b];
        *bucket = (cvy_bucket){
            .offset = sums->bucket[b].offset, .bytes = sums->bucket[b].bytes, .over = sums->bucket[b].over};
        bucket->dtype = sums->bucket[b].dtype;
        bucket->part = sums->bucket[b].part;
        bucket->kind = s->last[b] >= 0 ? CVY_BUCKET_GATHER : CVY_BUCKET_LOCAL;
    }
    s->gather->over = sums->over;
    s->gather->space = sums->space;
    return cvy_bucket_set_connect(s->gather, comm, &s->plan->opts.reduce, sums->memory);
}

/* The elements of a piece that this rank updates. */
static cvy_part own_part(const struct shard_plan *s, const struct piece *p)
{
    const cvy_part part = s->plan->buckets->bucket[p->bucket].part;
    const int64_t first = CVY_MIN(CVY_MAX(part.first - p->at, 0), p->count),
                  end = CVY_MIN(CVY_MAX(part.end - p->at, 0), p->count);
    return (cvy_part){first, CVY_MAX(first, end)};
}

static cvy_status compare_owners(const struct shard_plan *one, const struct shard_plan *other)
{
    for (int i = 0; i < other->npiece; i++)
        for (int k = 0; k < one->npiece; k++) {
            const struct piece *a = &one->piece[k], *b = &other->piece[i];
            const cvy_part x = own_part(one, a), y = own_part(other, b);
            CVY_CHECK(a->weight != b->weight || (x.first == y.first && x.end == y.end), CVY_E_UNSUPPORTED,
                      "zero1 updates need training steps that partition the weights in the same way, but two partition "
                      "%s differently: "
                      "give both the same outputs and weights",
                      a->weight->name);
        }
    return CVY_OK;
}

/* A state must belong to one rank, whichever training step updates it: that of a full batch or of the tail. */
static cvy_status check_owners(const cvy_zero1 *shard)
{
    for (int s = 1; s < shard->n; s++)
        for (int r = 0; r < s; r++)
            CVY_TRY(compare_owners(&shard->at[r], &shard->at[s]));
    return CVY_OK;
}

static cvy_status add_plan(cvy_zero1 *shard, cvy_plan *plan)
{
    struct shard_plan *s = &shard->at[shard->n++];
    s->plan = plan;
    CVY_TRY(list_pieces(s));
    CVY_TRY(make_gathers(shard->comm, s));
    for (int i = 0; i < s->npiece; i++)
        shard->nstate = CVY_MAX(shard->nstate, s->piece[i].nstate);
    return CVY_OK;
}

static cvy_status create(cvy_program *p)
{
    cvy_zero1 *shard = NULL;
    CVY_CHECK(
        p->context->comm->simulated_nodes <= 1, CVY_E_UNSUPPORTED,
        "opts.update_mode: zero1 cannot be simulated with nodes that stand for others, since each node owns a part "
        "of the weights: leave --representatives out");
    CVY_TRY(cvy_mem_alloc(sizeof *shard, &shard));
    p->update.state = shard;
    return CVY_OK;
}

static cvy_status connect(cvy_program *p)
{
    cvy_zero1 *shard = state_of(p);
    shard->comm = p->grid.data;
    cvy_status status = cvy_mem_alloc(sizeof *shard->at * (size_t)p->ntask, &shard->at);
    for (int i = 0; i < p->ntask && status == CVY_OK; i++)
        if (p->task[i]->training)
            status = add_plan(shard, p->task[i]->plan);
    if (status == CVY_OK)
        status = check_owners(shard);
    return cvy_comm_agree(p->context->comm, status);
}

static void destroy(cvy_program *p)
{
    cvy_zero1 *s = state_of(p);
    for (int i = 0; i < s->n; i++) {
        cvy_bucket_set_destroy(&s->at[i].gather);
        cvy_mem_free(&s->at[i].piece);
        cvy_mem_free(&s->at[i].last);
    }
    cvy_mem_free(&s->at);
    cvy_mem_free(&p->update.state);
}

/* ---- copies between variables and the memory of their gradients ---- */

static cvy_variable *variable_of(const struct piece *p, int state)
{
    return state < 0 ? p->weight : state < p->nstate ? p->state[state] : NULL;
}

static cvy_status copy(const struct shard_plan *s, const struct piece *p, cvy_variable *v, int64_t first, int64_t end,
                       int packs)
{
    float *own = (float *)v->data + first, *packed = (float *)s->plan->buckets->bucket[p->bucket].data + p->at + first;
    return end > first ? cvy_space_copy(s->plan->opts.space, CVY_LANE_COMPUTE, packs ? packed : own,
                                        packs ? own : packed, (size_t)(end - first) * sizeof *own)
                       : CVY_OK;
}

static cvy_status send_bucket(const struct shard_plan *s, int b, int state)
{
    for (int i = 0; i < s->npiece; i++) {
        const struct piece *p = &s->piece[i];
        const cvy_part own = own_part(s, p);
        if (p->bucket == b && variable_of(p, state))
            CVY_TRY(copy(s, p, variable_of(p, state), own.first, own.end, 1));
    }
    return cvy_bucket_set_start(s->gather, b);
}

/* writes 0: this rank does not need the values, but another rank does. */
static cvy_status receive_bucket(const struct shard_plan *s, int b, int state, int writes)
{
    CVY_TRY(cvy_bucket_set_wait(s->gather, b));
    for (int i = 0; i < s->npiece && writes; i++) {
        const struct piece *p = &s->piece[i];
        const cvy_part own = own_part(s, p);
        cvy_variable *v = p->bucket == b ? variable_of(p, state) : NULL;
        if (!v)
            continue;
        CVY_TRY(copy(s, p, v, 0, own.first, 0));
        CVY_TRY(copy(s, p, v, own.end, p->count, 0));
        v->written++; /* its shadow copy has this rank's part only */
    }
    return CVY_OK;
}

/* ---- a step ---- */

static cvy_status update_and_send(struct shard_plan *s, cvy_step_time *time)
{
    cvy_plan *plan = s->plan;
    int from = plan->update.first;
    for (int i = plan->update.first; i < plan->ninstr; i++)
        for (int b = 0; b < plan->buckets->n; b++) {
            if (s->last[b] != i)
                continue;
            CVY_TRY(cvy_plan_run_part(plan, from, i + 1, time));
            from = i + 1;
            CVY_TRY(send_bucket(s, b, -1));
        }
    return cvy_plan_run_part(plan, from, plan->ninstr, time);
}

static cvy_status zero1_step(cvy_program *p, cvy_program_task *step, double lr)
{
    struct shard_plan *s = state_of(p)->at;
    (void)lr;
    while (s->plan != step->plan)
        s++;
    step->time = (cvy_step_time){0};
    s->plan->buckets->concurrent = s->gather;
    cvy_status status = cvy_guard_update(p, step);
    if (status == CVY_OK)
        status = update_and_send(s, &step->time);
    if (status != CVY_OK) {
        s->plan->buckets->concurrent = NULL;
        return status;
    }
    const double begin = cvy_clock_s();
    for (int b = 0; b < s->plan->buckets->n; b++)
        if (s->last[b] >= 0)
            CVY_TRY(receive_bucket(s, b, -1, 1));
    s->plan->buckets->concurrent = NULL;
    const double waited = cvy_clock_s() - begin;
    step->time.total += waited;
    step->time.exposed_comm += waited;
    return CVY_OK;
}

/* ---- checkpoints ---- */

static int has_weight(const struct shard_plan *s, const cvy_variable *weight)
{
    int found = 0;
    for (int i = 0; i < s->npiece; i++)
        found |= s->piece[i].weight == weight;
    return found;
}

/* Whether earlier plans update all weights of this one, as the plan of a full batch does those of the tail. Turns have
 * other weights. */
static int is_repeated(const cvy_zero1 *shard, const struct shard_plan *s)
{
    for (int i = 0; i < s->npiece; i++) {
        int found = 0;
        for (const struct shard_plan *earlier = shard->at; earlier < s; earlier++)
            found |= has_weight(earlier, s->piece[i].weight);
        if (!found)
            return 0;
    }
    return 1;
}

static cvy_status save_states(const struct shard_plan *s, int nstate, int is_root)
{
    for (int state = 0; state < nstate; state++) {
        for (int b = 0; b < s->plan->buckets->n; b++)
            if (s->last[b] >= 0)
                CVY_TRY(send_bucket(s, b, state));
        for (int b = 0; b < s->plan->buckets->n; b++)
            if (s->last[b] >= 0)
                CVY_TRY(receive_bucket(s, b, state, is_root));
    }
    return CVY_OK;
}

static cvy_status save(cvy_program *p, cvy_vars **pending_out)
{
    const cvy_zero1 *shard = state_of(p);
    (void)pending_out;
    for (int i = 0; i < shard->n; i++)
        if (!is_repeated(shard, &shard->at[i]))
            CVY_TRY(save_states(&shard->at[i], shard->nstate, p->grid.data_rank == 0));
    return CVY_OK;
}

static void release_states(const struct shard_plan *s)
{
    for (int i = 0; i < s->npiece; i++)
        for (int k = 0; k < s->piece[i].nstate; k++) {
            const cvy_part own = own_part(s, &s->piece[i]);
            float *data = s->piece[i].state[k]->data;
            cvy_mem_drop_pages(data, (size_t)own.first * sizeof *data);
            cvy_mem_drop_pages(data + own.end, (size_t)(s->piece[i].count - own.end) * sizeof *data);
        }
}

/* On a device all memory is taken when it is allocated. */
static void release(cvy_program *p)
{
    const cvy_zero1 *shard = state_of(p);
    for (int i = 0; i < shard->n && cvy_space_is_host(&p->context->space); i++)
        release_states(&shard->at[i]);
}

static const char *no_effect(const char *option, const char *value)
{
    const int has_halves = strcmp(value, "halving") == 0 || strcmp(value, "ring") == 0;
    return strcmp(option, "reduce") == 0 && !has_halves ? "cannot be split into a reduce-scatter and an all-gather, "
                                                          "which update: zero1 needs: it uses halving instead"
                                                        : NULL;
}

CVY_UPDATE_DEFINE(zero1) = {
    .name = "zero1",
    .summary = "as sync, but each rank updates a part of the weights and alone keeps the optimiser's state of that "
               "part (ZeRO stage 1)",
    .mode = CVY_UPDATE_ZERO1,
    .many_ranks = 1,
    .any_space = 1,
    .saves_on_root = 1,
    .takes_turns = 1,
    .meets_in = 1,
    .plan.no_effect = no_effect,
    .plan.create = create,
    .plan.shape = shape,
    .plan.prepare = prepare,
    .plan.connect = connect,
    .step = zero1_step,
    .save.begin = save,
    .save.release = release,
    .destroy = destroy,
};
