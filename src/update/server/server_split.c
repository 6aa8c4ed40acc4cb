/*
 * server_split.c: finds which instructions of a plan's update phase and which memory belong to which bucket of
 * gradients, from what they read.
 *
 * An update reads the gradient of one weight, which is in one bucket, so the rank that owns the bucket runs it. Running
 * statistics are the same on all ranks, so all ranks run the instructions that write them. An instruction that reads
 * nothing from a bucket makes constants.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "update/server/server_impl.h"

#include "program/program_impl.h"

enum { NONE = -1 };

struct split {
    cvy_server_plan *sp;
    cvy_plan *plan;
    cvy_pool *pool;
    int *made_of;  /* by buffer: the bucket from which a temporary of the update phase is made, or NONE */
    int *consumed; /* by buffer: an update reads it, so no other rank needs it */
};

static const cvy_buffer *root_of(const cvy_plan *plan, int buffer)
{
    while (plan->buffer[buffer].root != buffer)
        buffer = plan->buffer[buffer].root;
    return &plan->buffer[buffer];
}

static int is_update(const cvy_instr *instr)
{
    return instr->call && instr->call->phase == CVY_PHASE_UPDATE && !cvy_instr_exchanges(instr);
}

static cvy_status add(cvy_pool *pool, cvy_list *list, int room, int instr)
{
    if (!list->at)
        CVY_TRY(cvy_pool_alloc(pool, sizeof *list->at * (size_t)room, &list->at));
    list->at[list->count++] = instr;
    return CVY_OK;
}

static int bucket_of(const struct split *s, int buffer)
{
    const cvy_buffer *root = root_of(s->plan, buffer);
    return root->region == CVY_REGION_STEP ? root->bucket : s->made_of[buffer];
}

/* The variable with this role that an instruction writes, or NULL. */
static cvy_variable *written(const struct split *s, const cvy_instr *instr, int d, cvy_role role)
{
    const cvy_buffer *root = instr->dst_buffer[d] >= 0 ? root_of(s->plan, instr->dst_buffer[d]) : NULL;
    return root && root->region == CVY_REGION_VARIABLE && root->value->variable->role == role ? root->value->variable
                                                                                              : NULL;
}

static int writes(const struct split *s, const cvy_instr *instr, cvy_role role)
{
    int any = 0;
    for (int d = 0; d < instr->ndst; d++)
        any |= written(s, instr, d, role) != NULL;
    return any;
}

static cvy_status find_bucket(const struct split *s, const cvy_instr *instr, int *out)
{
    *out = NONE;
    for (int i = 0; i < instr->nsrc; i++) {
        const int b = instr->src_buffer[i] >= 0 ? bucket_of(s, instr->src_buffer[i]) : NONE;
        CVY_CHECK(b == NONE || *out == NONE || b == *out, CVY_E_CONFIG,
                  "opts.update_mode: parameter_server: %s needs gradients of several weights at once, but a server has "
                  "a part of "
                  "them; leave it out, or take sync",
                  instr->call->node ? instr->call->node->name : "a reorder");
        *out = b == NONE ? *out : b;
    }
    return CVY_OK;
}

/* Adds an instruction that the owner runs. It makes a new weight, and after it the gradient is not needed any more. */
static cvy_status add_update(struct split *s, int b, int at)
{
    cvy_server_bucket *bucket = &s->sp->bucket[b];
    const cvy_instr *instr = &s->plan->instr[at];
    CVY_TRY(add(s->pool, &bucket->update, s->plan->ninstr, at));
    for (int i = 0; i < instr->nsrc; i++)
        if (instr->src_buffer[i] >= 0)
            s->consumed[root_of(s->plan, instr->src_buffer[i]) - s->plan->buffer] = 1;
    for (int d = 0; d < instr->ndst; d++) {
        cvy_variable *v = written(s, instr, d, CVY_ROLE_WEIGHT);
        if (!v)
            continue;
        if (!bucket->weight)
            CVY_TRY(cvy_pool_alloc(s->pool, sizeof *bucket->weight * (size_t)s->plan->ninstr, &bucket->weight));
        bucket->weight[bucket->nweight++] = v;
    }
    return CVY_OK;
}

static cvy_status split_updates(struct split *s)
{
    for (int i = 0; i < s->plan->ninstr; i++) {
        const cvy_instr *instr = &s->plan->instr[i];
        int b = NONE;
        if (!is_update(instr))
            continue;
        CVY_TRY(find_bucket(s, instr, &b));
        for (int d = 0; d < instr->ndst; d++)
            if (instr->dst_buffer[d] >= 0)
                s->made_of[instr->dst_buffer[d]] = b;
        if (writes(s, instr, CVY_ROLE_STATISTIC))
            CVY_TRY(add(s->pool, &s->sp->statistics_updates, s->plan->ninstr, i));
        else if (b == NONE)
            CVY_TRY(add(s->pool, &s->sp->constants, s->plan->ninstr, i));
        else
            CVY_TRY(add_update(s, b, i));
    }
    return CVY_OK;
}

/* Finds the values in buckets that are not gradients, such as losses. */
static cvy_status find_sums(struct split *s)
{
    for (int i = 0; i < s->plan->nbuffer; i++) {
        const cvy_buffer *b = &s->plan->buffer[i];
        if (b->region != CVY_REGION_STEP || b->root != i || b->bucket < 0 || (s->consumed[i] && !b->value->is_output))
            continue;
        cvy_server_bucket *bucket = &s->sp->bucket[b->bucket];
        if (!bucket->sum)
            CVY_TRY(cvy_pool_alloc(s->pool, sizeof *bucket->sum * (size_t)s->plan->nbuffer, &bucket->sum));
        bucket->sum[bucket->nsum++] = (cvy_range){b->data, b->bytes};
    }
    return CVY_OK;
}

/* Finds the last instruction of a worker's forward and backward pass that reads a weight of the bucket. */
static void find_ready(struct split *s, cvy_server_bucket *bucket)
{
    for (int i = 0; i < s->plan->ninstr; i++) {
        const cvy_instr *instr = &s->plan->instr[i];
        for (int k = 0; k < instr->nsrc && !is_update(instr); k++) {
            const cvy_buffer *root = instr->src_buffer[k] >= 0 ? root_of(s->plan, instr->src_buffer[k]) : NULL;
            for (int w = 0; w < bucket->nweight && root && root->region == CVY_REGION_VARIABLE; w++)
                if (root->value->variable == bucket->weight[w])
                    bucket->ready = i;
        }
    }
}

/* A server has no samples: of forward and backward it runs only the reductions over all ranks. Gradients come by
 * message, so their memory is not zeroed. */
static cvy_status find_forward(struct split *s)
{
    for (int i = 0; i < s->plan->ninstr; i++) {
        const cvy_instr *instr = &s->plan->instr[i];
        const cvy_buffer *zeroed = cvy_instr_zeroes(instr) ? root_of(s->plan, instr->dst_buffer[0]) : NULL;
        const int gradient = zeroed && zeroed->region == CVY_REGION_STEP && zeroed->bucket >= 0;
        if (!is_update(instr) && !cvy_instr_exchanges(instr) && !gradient)
            CVY_TRY(add(s->pool, &s->sp->forward, s->plan->ninstr, i));
    }
    return CVY_OK;
}

cvy_status cvy_server_split(cvy_server_plan *sp, cvy_pool *pool)
{
    struct split s = {.sp = sp, .plan = sp->plan, .pool = pool};
    const size_t n = (size_t)CVY_MAX(sp->plan->nbuffer, 1);
    CVY_TRY(cvy_pool_alloc(pool, sizeof *s.made_of * n, &s.made_of));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *s.consumed * n, &s.consumed));
    for (int i = 0; i < sp->plan->nbuffer; i++)
        s.made_of[i] = NONE;
    CVY_TRY(split_updates(&s));
    CVY_TRY(find_sums(&s));
    for (int b = 0; b < sp->plan->buckets->n; b++)
        find_ready(&s, &sp->bucket[b]);
    return find_forward(&s);
}
