/*
 * run_shard.c: sharded updates: each rank gets the sums of a part of each bucket of gradients, updates the weights behind it, and alone keeps the
 * optimiser's state of that part; then all ranks get all new weights.
 *
 * It is the sum of sync cut in two (comm_sum.h: scatter and gather) with the update in between, so it moves the same bytes.
 * The new weights travel through the memory of their gradients. A bucket's weights are on their way while the next ones are updated. The other ranks' parts of
 * the states are memory that is never touched, so the system never gives it.
 *
 *     backward  scatter b0   scatter b1   |   update my part of b0, gather b0   update my part of b1, gather b1   |   weights of b0, b1 written
 *
 * Source: Rajbhandari et al. 2020, ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, stage 1.
 */
#include <string.h>

#include "optim/optim_update.h"
#include "run/run_program.h"

enum { STATES_MAX = 3 };

struct piece {                         /* a weight, and where its gradient lies in a bucket */
    int bucket, instr;
    int64_t at, count;                 /* elements */
    cvy_variable *weight, *state[STATES_MAX];
    int nstate;
};

struct shard_plan {
    cvy_plan *plan;
    cvy_plan *gather;                  /* nothing but buckets: sums of this kind are pushed on like others */
    struct piece *piece;
    int npiece;
    int *last;                         /* of each bucket: the instruction that ends its updates, -1: it has none */
};

struct cvy_shard {
    cvy_comm *comm;
    struct shard_plan at[64];          /* by the program's step */
    int n, nstate;
};

int cvy_program_is_sharded(const cvy_program *p)
{
    return p->opts.update.mode == CVY_UPDATE_SHARDED && p->context->comm->nranks > 1;
}

int cvy_program_state_parts(const cvy_program *p)
{
    const int n = p->context->comm->nranks;
    int parts = 1;
    if (!cvy_program_is_sharded(p))
        return 1;
    if (p->opts.reduce && strcmp(p->opts.reduce, "ring") == 0)
        return n;
    while (2 * parts <= n)             /* by halving, which stands in for all that have no halves */
        parts *= 2;
    return parts;
}

cvy_status cvy_shard_check(const cvy_program *p)
{
    cvy_status status = CVY_OK;
    for (int i = 0; i < p->nstep && cvy_program_is_sharded(p) && status == CVY_OK; i++)
        if (p->step[i]->training && !cvy_plan_can_part(p->step[i]->plan))
            status = cvy_error_set(CVY_E_CONFIG, "update: sharded does not suit the optimiser %s%s: each number must be updated by itself, by a native kernel; sgd, adam and "
                                   "adamw do so in f32 and bf16, without clip_norm, clip_value and plan.kernels: reference", p->step[i]->optimise.op,
                                   p->step[i]->optimise.clip_norm > 0 ? " with clip_norm" : p->step[i]->optimise.clip_value > 0 ? " with clip_value" : "");
    return cvy_program_is_sharded(p) ? cvy_comm_agree(p->context->comm, status) : CVY_OK;
}

/* ---- making ---- */

static cvy_status list_pieces(struct shard_plan *s)
{
    const cvy_plan *plan = s->plan;
    CVY_TRY(cvy_mem_alloc(sizeof *s->piece * (size_t)plan->ninstr, &s->piece));
    CVY_TRY(cvy_mem_alloc(sizeof *s->last * (size_t)CVY_MAX(plan->nbucket, 1), &s->last));
    for (int b = 0; b < plan->nbucket; b++)
        s->last[b] = -1;
    for (int i = plan->update_at; i < plan->ninstr; i++) {
        const cvy_instr *instr = &plan->instr[i];
        const cvy_buffer *gradient = cvy_instr_parted(plan, instr);
        if (!gradient)
            continue;
        struct piece *p = &s->piece[s->npiece++];
        *p = (struct piece){.bucket = gradient->bucket, .instr = i, .at = (int64_t)((gradient->offset - plan->bucket[gradient->bucket].offset) / sizeof(float)),
                            .count = (int64_t)(gradient->bytes / sizeof(float)), .weight = plan->buffer[instr->src_buffer[CVY_UPDATE_WEIGHT]].value->variable};
        for (int k = CVY_UPDATE_STATE; k < instr->nsrc; k++) {
            CVY_EXPECT(p->nstate < STATES_MAX);
            p->state[p->nstate++] = plan->buffer[instr->src_buffer[k]].value->variable;
        }
        s->last[p->bucket] = i;
    }
    return CVY_OK;
}

static cvy_status make_gathers(cvy_comm *comm, struct shard_plan *s)
{
    CVY_TRY(cvy_mem_alloc(sizeof *s->gather, &s->gather));
    s->gather->opts.comm = comm;
    CVY_TRY(cvy_mem_alloc(sizeof *s->gather->bucket * (size_t)CVY_MAX(s->plan->nbucket, 1), &s->gather->bucket));
    s->gather->nbucket = s->plan->nbucket;
    for (int b = 0; b < s->plan->nbucket; b++) {
        const cvy_bucket *sums = &s->plan->bucket[b];
        s->gather->bucket[b].plan = s->gather;
        if (s->last[b] >= 0)
            CVY_TRY(comm->ops->gather_create(comm, sums->data, (int64_t)(sums->bytes / sizeof(float)), CVY_DTYPE_F32, &s->gather->bucket[b].request));
    }
    return CVY_OK;
}

/* The elements of a piece that are this rank's to update. */
static cvy_part own_part(const struct shard_plan *s, const struct piece *p)
{
    const cvy_part part = s->plan->bucket[p->bucket].part;
    const int64_t first = CVY_MIN(CVY_MAX(part.first - p->at, 0), p->count), end = CVY_MIN(CVY_MAX(part.end - p->at, 0), p->count);
    return (cvy_part){first, CVY_MAX(first, end)};
}

static cvy_status compare_owners(const struct shard_plan *one, const struct shard_plan *other)
{
    for (int i = 0; i < other->npiece; i++)
        for (int k = 0; k < one->npiece; k++) {
            const struct piece *a = &one->piece[k], *b = &other->piece[i];
            const cvy_part x = own_part(one, a), y = own_part(other, b);
            CVY_CHECK(a->weight != b->weight || (x.first == y.first && x.end == y.end), CVY_E_UNSUPPORTED,
                      "sharded updates need training steps that cut the weights alike, but two cut %s differently: give both the same outputs and weights",
                      a->weight->name);
        }
    return CVY_OK;
}

/* A state must belong to one rank, whichever step it is that updates it: a full batch or the tail of an epoch. */
static cvy_status check_owners(const cvy_shard *shard)
{
    for (int s = 1; s < shard->n; s++)
        for (int r = 0; r < s; r++)
            CVY_TRY(compare_owners(&shard->at[r], &shard->at[s]));
    return CVY_OK;
}

static cvy_status add_plan(cvy_shard *shard, cvy_plan *plan)
{
    struct shard_plan *s = &shard->at[shard->n++];
    s->plan = plan;
    CVY_TRY(list_pieces(s));
    CVY_TRY(make_gathers(shard->comm, s));
    for (int i = 0; i < s->npiece; i++)
        shard->nstate = CVY_MAX(shard->nstate, s->piece[i].nstate);
    return CVY_OK;
}

cvy_status cvy_shard_create(cvy_program *p)
{
    cvy_status status = cvy_mem_alloc(sizeof *p->shard, &p->shard);
    if (status == CVY_OK)
        p->shard->comm = p->context->comm;
    for (int i = 0; i < p->nstep && status == CVY_OK; i++)
        if (p->step[i]->training)
            status = add_plan(p->shard, p->step[i]->plan);
    if (status == CVY_OK)
        status = check_owners(p->shard);
    return cvy_comm_agree(p->context->comm, status);
}

void cvy_shard_destroy(cvy_shard **shard)
{
    cvy_shard *s = *shard;
    for (int i = 0; s && i < s->n; i++) {
        cvy_plan_destroy(&s->at[i].gather);
        cvy_mem_free(&s->at[i].piece);
        cvy_mem_free(&s->at[i].last);
    }
    cvy_mem_free(shard);
}

/* ---- between variables and the memory of their gradients ---- */

static cvy_variable *variable_of(const struct piece *p, int state)
{
    return state < 0 ? p->weight : state < p->nstate ? p->state[state] : NULL;
}

static void copy(const struct shard_plan *s, const struct piece *p, cvy_variable *v, int64_t first, int64_t end, int packs)
{
    float *own = (float *)v->data + first, *packed = (float *)s->plan->bucket[p->bucket].data + p->at + first;
    if (end > first)
        memcpy(packs ? packed : own, packs ? own : packed, (size_t)(end - first) * sizeof *own);
}

static cvy_status send_bucket(const struct shard_plan *s, int b, int state)
{
    cvy_bucket *bucket = &s->gather->bucket[b];
    for (int i = 0; i < s->npiece; i++) {
        const struct piece *p = &s->piece[i];
        const cvy_part own = own_part(s, p);
        if (p->bucket == b && variable_of(p, state))
            copy(s, p, variable_of(p, state), own.first, own.end, 1);
    }
    bucket->active = 1;
    s->gather->nactive++;
    bucket->start_s = cvy_clock_s();
    return s->gather->opts.comm->ops->request_start(bucket->request);
}

/* writes 0: another rank wants them. */
static cvy_status receive_bucket(const struct shard_plan *s, int b, int state, int writes)
{
    CVY_TRY(cvy_plan_wait(s->gather, &s->gather->bucket[b]));
    for (int i = 0; i < s->npiece && writes; i++) {
        const struct piece *p = &s->piece[i];
        const cvy_part own = own_part(s, p);
        cvy_variable *v = p->bucket == b ? variable_of(p, state) : NULL;
        if (!v)
            continue;
        copy(s, p, v, 0, own.first, 0);
        copy(s, p, v, own.end, p->count, 0);
        v->written++;                  /* its copy in bf16 has this rank's part only */
    }
    return CVY_OK;
}

/* ---- a step ---- */

static cvy_status update_and_send(struct shard_plan *s, cvy_step_time *time)
{
    cvy_plan *plan = s->plan;
    int from = plan->update_at;
    for (int i = plan->update_at; i < plan->ninstr; i++)
        for (int b = 0; b < plan->nbucket; b++) {
            if (s->last[b] != i)
                continue;
            CVY_TRY(cvy_plan_run_part(plan, from, i + 1, time));
            from = i + 1;
            CVY_TRY(send_bucket(s, b, -1));
        }
    return cvy_plan_run_part(plan, from, plan->ninstr, time);
}

cvy_status cvy_shard_step(cvy_program *p, cvy_program_step_info *step)
{
    struct shard_plan *s = p->shard->at;
    while (s->plan != step->plan)
        s++;
    step->time = (cvy_step_time){0};
    s->plan->beside = s->gather;
    cvy_status status = cvy_guard_update(p, step);
    if (status == CVY_OK)
        status = update_and_send(s, &step->time);
    if (status != CVY_OK) {
        s->plan->beside = NULL;
        return status;
    }
    const double begin = cvy_clock_s();
    for (int b = 0; b < s->plan->nbucket; b++)
        if (s->last[b] >= 0)
            CVY_TRY(receive_bucket(s, b, -1, 1));
    s->plan->beside = NULL;
    const double waited = cvy_clock_s() - begin;
    step->time.total += waited;
    step->time.exposed_comm += waited;
    return CVY_OK;
}

/* ---- checkpoints ---- */

cvy_status cvy_shard_collect(cvy_program *p)
{
    const struct shard_plan *s = &p->shard->at[0];
    for (int state = 0; state < p->shard->nstate; state++) {
        for (int b = 0; b < s->plan->nbucket; b++)
            if (s->last[b] >= 0)
                CVY_TRY(send_bucket(s, b, state));
        for (int b = 0; b < s->plan->nbucket; b++)
            if (s->last[b] >= 0)
                CVY_TRY(receive_bucket(s, b, state, p->context->comm->rank == 0));
    }
    return CVY_OK;
}

void cvy_shard_drop(cvy_program *p)
{
    const struct shard_plan *s = p->shard ? &p->shard->at[0] : NULL;
    for (int i = 0; s && i < s->npiece; i++)
        for (int k = 0; k < s->piece[i].nstate; k++) {
            const cvy_part own = own_part(s, &s->piece[i]);
            float *data = s->piece[i].state[k]->data;
            cvy_mem_drop_pages(data, (size_t)own.first * sizeof *data);
            cvy_mem_drop_pages(data + own.end, (size_t)(s->piece[i].count - own.end) * sizeof *data);
        }
}
