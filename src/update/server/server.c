/*
 * server.c: makes what parameter servers need, before the first step: owners of buckets, and all messages. It also
 * collects weights and states.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "update/server/server_impl.h"

#include <stdio.h>
#include <string.h>

#include "program/program_impl.h"

/* ---- who owns what ---- */

/* Gives the buckets to the servers in order, so that each server has about the same number of bytes, and at least one
 * bucket. */
static void share_out(cvy_server_plan *sp)
{
    const cvy_server *s = sp->server;
    const int n = sp->plan->buckets->n;
    double all = 0, before = 0;
    int server = 0, has = 0;
    for (int b = 0; b < n; b++)
        all += (double)sp->bucket[b].range.bytes;
    for (int b = 0; b < n; b++) {
        const double middle = before + 0.5 * (double)sp->bucket[b].range.bytes;
        const int left = s->nservers - 1 - server;
        if (has && left > 0 && (n - b <= left || middle * s->nservers > all * (server + 1))) {
            server++;
            has = 0;
        }
        sp->bucket[b].owner = s->nworkers + server;
        before += (double)sp->bucket[b].range.bytes;
        has = 1;
    }
}

/* If another step trains the same weights (the tail of an epoch), they keep their owner. */
static cvy_status follow_owners(cvy_server_plan *sp)
{
    const cvy_server *s = sp->server;
    for (int b = 0; b < sp->plan->buckets->n; b++) {
        cvy_server_bucket *bucket = &sp->bucket[b];
        int owner = -1;
        for (int w = 0; w < bucket->nweight; w++) {
            const int known = s->owner[bucket->weight[w]->index];
            CVY_CHECK(known < 0 || owner < 0 || known == owner, CVY_E_UNSUPPORTED,
                      "opts.update_mode: parameter_server: %s and another weight of its bucket belong to two servers: "
                      "take one "
                      "server, or the same weights in all training steps",
                      bucket->weight[w]->name);
            owner = known >= 0 ? known : owner;
        }
        bucket->owner = owner >= 0 ? owner : bucket->owner;
    }
    return CVY_OK;
}

static void note_owners(const cvy_server_plan *sp)
{
    const cvy_server *s = sp->server;
    for (int b = 0; b < sp->plan->buckets->n; b++) {
        const cvy_server_bucket *bucket = &sp->bucket[b];
        for (int w = 0; w < bucket->nweight; w++)
            s->owner[bucket->weight[w]->index] = bucket->owner;
    }
}

static void note_states(const cvy_server *s)
{
    const cvy_vars *vars = s->program->vars;
    for (int i = 0; i < vars->count; i++)
        if (vars->at[i]->role == CVY_ROLE_STATE && vars->at[i]->of)
            s->owner[i] = s->owner[vars->at[i]->of->index];
}

/* ---- setup ---- */

static cvy_status create_plan(cvy_server *s, int step)
{
    cvy_program *p = s->program;
    cvy_server_plan *sp = NULL;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *sp, &sp));
    sp->server = s;
    sp->task = p->task[step];
    sp->plan = p->task[step]->plan;
    sp->nbucket = sp->plan->buckets->n;
    sp->exchange = (cvy_exchange){cvy_worker_start, cvy_worker_test, sp};
    sp->plan->buckets->exchange = &sp->exchange;
    s->plan[step] = sp;
    return CVY_OK;
}

cvy_status cvy_server_create(cvy_program *p)
{
    cvy_server *s = NULL;
    int training = 0;
    for (int i = 0; i < p->ntask; i++)
        training += p->task[i]->training;
    if (!training)
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    p->update.state = s;
    *s = (cvy_server){.program = p,
                      .comm = p->context->comm,
                      .nworkers = cvy_program_nworkers(p),
                      .staleness = p->opts.update_staleness,
                      .synchronised = 1};
    s->nservers = s->comm->nranks - s->nworkers;
    atomic_init(&s->waits_bucket, -1);
    atomic_init(&s->waits_rank, -1);
    atomic_init(&s->moved, 0);
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof(cvy_server_plan *) * (size_t)p->ntask, &s->plan));
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *s->owner * ((size_t)p->vars->count + 1), &s->owner));
    for (int i = 0; i < p->vars->count; i++)
        s->owner[i] = -1;
    for (int i = 0; i < p->ntask; i++)
        if (p->task[i]->training)
            CVY_TRY(create_plan(s, i));
    return CVY_OK;
}

/* ---- messages ---- */

/* Lists where this rank has the sums of a bucket: in place, or in other memory if it is an owner whose workers do not
 * wait for each other. */
static int add_sums(const cvy_server_bucket *b, cvy_range *range)
{
    char *other = b->served ? b->served->total : NULL;
    for (int i = 0; i < b->nsum; i++) {
        range[i] = (cvy_range){other ? other : b->sum[i].data, b->sum[i].bytes};
        other += other ? b->sum[i].bytes : 0;
    }
    return b->nsum;
}

/* Makes the message of an answer for a bucket, with this rank's memory: weights, if it goes to a worker; sums; and a
 * note, if workers do not wait for each other. */
static cvy_status make_answer(const cvy_server_plan *sp, const cvy_server_bucket *b, int to, cvy_message **out)
{
    const cvy_server *s = sp->server;
    const int to_worker = to < s->nworkers;
    cvy_range *range = NULL;
    int n = 0;
    CVY_TRY(cvy_mem_alloc(sizeof *range * (size_t)(b->nweight + b->nsum + 1), &range));
    for (int w = 0; w < b->nweight && to_worker; w++)
        range[n++] = (cvy_range){b->weight[w]->data, b->weight[w]->bytes};
    if (to_worker || !cvy_server_is_free(s))
        n += add_sums(b, range + n);
    if (to_worker && b->reply_info)
        range[n++] = (cvy_range){b->served ? &b->reply_info[to] : b->reply_info, sizeof *b->reply_info};
    const cvy_status status = n || to_worker ? s->comm->message->create(s->comm, range, n, out) : CVY_OK;
    cvy_mem_free(&range);
    return status;
}

static cvy_status connect_bucket(cvy_server_plan *sp, int number)
{
    cvy_server *s = sp->server;
    cvy_comm *comm = s->comm;
    cvy_server_bucket *b = &sp->bucket[number];
    if (cvy_server_is_worker(s))
        CVY_TRY(comm->message->create(comm, &b->range, 1, &b->gradient));
    if (cvy_server_is_free(s))
        CVY_TRY(cvy_server_free_bucket(sp, b));
    if (b->owner != comm->rank)
        return make_answer(sp, b, comm->rank, &b->answer);
    sp->mine.at[sp->mine.count++] = number;
    s->slot_bytes = CVY_MAX(s->slot_bytes, b->range.bytes);
    CVY_TRY(comm->message->create(comm, &b->range, 1, &b->first));
    CVY_TRY(cvy_pool_alloc(s->program->pool, sizeof(cvy_message *) * (size_t)comm->nranks, &b->to));
    for (int r = 0; r < comm->nranks; r++)
        if (r != comm->rank)
            CVY_TRY(make_answer(sp, b, r, &b->to[r]));
    return CVY_OK;
}

/* In a worker's plan this replaces an instruction that makes new weights: the owner runs it. */
static cvy_status left_to_owner(void *state, void *const *src, void *const *dst, void *scratch)
{
    (void)state, (void)src, (void)dst, (void)scratch;
    return CVY_OK;
}

static void leave_updates(const cvy_server_plan *sp)
{
    for (int b = 0; b < sp->plan->buckets->n; b++)
        for (int i = 0; i < sp->bucket[b].update.count; i++) {
            cvy_instr *instr = &sp->plan->instr[sp->bucket[b].update.at[i]];
            instr->run = left_to_owner;
            instr->weight = NULL;
            instr->writes_shadow = 0;
        }
}

/* If workers do not wait for each other, one may run a full step while another runs the tail of an epoch. So no step
 * may need all workers at once, and all training steps must have the same buckets. */
static cvy_status check_free(const cvy_server_plan *sp, const cvy_server_plan *first)
{
    const cvy_plan *plan = sp->plan;
    int same_buckets = plan->buckets->n == first->plan->buckets->n;
    for (int i = 0; i < plan->ninstr; i++)
        CVY_CHECK(!cvy_instr_is_comm(&plan->instr[i]) || cvy_instr_exchanges(&plan->instr[i]), CVY_E_CONFIG,
                  "opts.update_mode: parameter_server: %s is a sum over all workers within a step, but with staleness "
                  "other than "
                  "0 they do not wait for each other: for batch norm set opts.batch_norm_group to samples that divide "
                  "a worker's share, or to rank; losses must not use sample "
                  "weights; or set staleness: 0",
                  plan->instr[i].call->node->name);
    for (int b = 0; b < plan->buckets->n && same_buckets; b++)
        same_buckets = sp->bucket[b].range.bytes == first->bucket[b].range.bytes &&
                       sp->bucket[b].owner == first->bucket[b].owner &&
                       sp->bucket[b].nweight == first->bucket[b].nweight && sp->bucket[b].nsum == first->bucket[b].nsum;
    CVY_CHECK(same_buckets, CVY_E_UNSUPPORTED,
              "opts.update_mode: parameter_server: gradients of two training steps are in different buckets, which is "
              "not possible with staleness other than 0: "
              "leave out the smaller last batch of an epoch (data.tail: drop in a job), or set staleness: 0");
    return CVY_OK;
}

cvy_server_plan *cvy_server_first(const cvy_server *s)
{
    int i = 0;
    while (!s->plan[i])
        i++;
    return s->plan[i];
}

static cvy_status connect_plan(cvy_server_plan *sp)
{
    cvy_server *s = sp->server;
    cvy_pool *pool = s->program->pool;
    cvy_plan *plan = sp->plan;
    const int n = CVY_MAX(plan->buckets->n, 1);
    CVY_CHECK(plan->buckets->n >= s->nservers, CVY_E_CONFIG,
              "opts.update_mode: parameter_server: gradients are in %d bucket%s, too few for %d servers: take fewer "
              "servers, or "
              "set opts.bucket_bytes lower",
              plan->buckets->n, plan->buckets->n == 1 ? "" : "s", s->nservers);
    CVY_CHECK(plan->buckets->n < CVY_TAGS, CVY_E_CONFIG,
              "gradients are in %d buckets, more than %d: set opts.bucket_bytes higher", plan->buckets->n,
              CVY_TAGS - 1);
    CVY_TRY(cvy_pool_alloc(pool, sizeof *sp->bucket * (size_t)n, &sp->bucket));
    CVY_TRY(cvy_pool_alloc(pool, sizeof *sp->mine.at * (size_t)n, &sp->mine.at));
    for (int b = 0; b < plan->buckets->n; b++) {
        sp->bucket[b].range = (cvy_range){(char *)s->program->memory.arena + plan->buckets->bucket[b].offset,
                                          plan->buckets->bucket[b].bytes};
        sp->bucket[b].dtype = plan->buckets->bucket[b].dtype;
    }
    CVY_TRY(cvy_server_split(sp, pool));
    share_out(sp);
    CVY_TRY(follow_owners(sp));
    note_owners(sp);
    if (cvy_server_is_free(s))
        CVY_TRY(check_free(sp, cvy_server_first(s)));
    for (int b = 0; b < plan->buckets->n; b++)
        CVY_TRY(connect_bucket(sp, b));
    if (cvy_server_is_worker(s))
        leave_updates(sp);
    return CVY_OK;
}

static cvy_status make_slots(cvy_server *s)
{
    for (int i = 0; i < CVY_SERVER_SLOTS && s->nworkers > 1 && s->slot_bytes > 0; i++) {
        CVY_TRY(cvy_mem_alloc_pages(s->slot_bytes, &s->slot[i]));
        const cvy_range range = {s->slot[i], s->slot_bytes};
        CVY_TRY(s->comm->message->create(s->comm, &range, 1, &s->into[i]));
    }
    return CVY_OK;
}

cvy_status cvy_server_connect(cvy_server *s)
{
    for (int i = 0; i < s->program->ntask; i++)
        if (s->plan[i])
            CVY_TRY(connect_plan(s->plan[i]));
    note_states(s);
    if (cvy_server_is_free(s))
        return cvy_server_free_connect(s);
    return make_slots(s);
}

static void disconnect_plan(const cvy_server_plan *sp)
{
    const cvy_comm *comm = sp->server->comm;
    for (int b = 0; sp->bucket && b < sp->nbucket; b++) {
        cvy_server_bucket *bucket = &sp->bucket[b];
        comm->message->destroy(&bucket->gradient);
        comm->message->destroy(&bucket->answer);
        comm->message->destroy(&bucket->first);
        for (int r = 0; bucket->to && r < comm->nranks; r++)
            comm->message->destroy(&bucket->to[r]);
    }
}

void cvy_server_destroy(cvy_server **server)
{
    cvy_server *s = *server;
    if (!s)
        return;
    for (int i = 0; s->plan && i < s->program->ntask; i++)
        if (s->plan[i])
            disconnect_plan(s->plan[i]);
    cvy_server_free_destroy(s);
    for (int i = 0; i < CVY_SERVER_SLOTS; i++) {
        s->comm->message->destroy(&s->into[i]);
        cvy_mem_free_pages(&s->slot[i], s->slot_bytes);
    }
    cvy_mem_free(server);
}

/* ---- steps ---- */

/* A worker's gradients are the mean over its own share, because the server applies them alone. */
static cvy_status free_step(cvy_server_plan *sp, double rate)
{
    cvy_server *s = sp->server;
    CVY_TRY(cvy_worker_send_request(s, &(cvy_server_request){.requests_sync = s->requests_sync, .rate = rate}));
    if (sp->task->feed.norm)
        *sp->task->feed.norm = (double)sp->task->batch / s->nworkers;
    CVY_TRY(cvy_plan_execute(sp->plan, &sp->task->time));
    cvy_worker_keep_reply_info(sp);
    return CVY_OK;
}

static cvy_server_plan *plan_of(const cvy_server *s, const cvy_program_task *step)
{
    int i = 0;
    while (s->program->task[i] != step)
        i++;
    return s->plan[i];
}

cvy_status cvy_server_step(cvy_server *s, const cvy_program_task *step, double learning_rate)
{
    cvy_server_plan *sp = plan_of(s, step);
    s->collected = s->synchronised = 0;
    if (!cvy_server_is_worker(s))
        return cvy_server_is_free(s) ? CVY_OK
                                     : cvy_server_serve_step(sp); /* an asynchronous server serves in synchronise() */
    return cvy_server_is_free(s) ? free_step(sp, learning_rate) : cvy_plan_execute(sp->plan, &sp->task->time);
}

static cvy_status synchronise(cvy_server *s)
{
    int64_t steps = 0;
    for (int i = 0; i < s->program->ntask; i++)
        steps += s->program->task[i]->training ? s->program->task[i]->count : 0;
    if (cvy_server_is_worker(s))
        return cvy_server_leave(s, steps);
    return cvy_server_serve(s, &s->steps_at_sync);
}

/* ---- collecting ---- */

/* Sends a variable from its owner to all ranks. */
static cvy_status spread(const cvy_server *s, cvy_variable *v, int owner)
{
    v->written += s->comm->rank != owner;
    return s->comm->ops->broadcast(s->comm, v->data, v->bytes, owner);
}

static cvy_status collect(const cvy_server *s, size_t *bytes_of)
{
    const int rank = s->comm->rank;
    for (int i = 0; i < s->program->vars->count; i++) {
        cvy_variable *v = s->program->vars->at[i];
        const int owner = s->owner[i];
        if (v->role == CVY_ROLE_STATISTIC)
            CVY_TRY(spread(s, v, 0));
        else if (owner >= 0 && v->role == CVY_ROLE_WEIGHT)
            CVY_TRY(spread(s, v, owner));
        else if (owner >= 0) {
            bytes_of[owner] = v->bytes;
            CVY_TRY(s->comm->ops->gatherv(s->comm, v->data, rank == owner ? v->bytes : 0, v->data, bytes_of, 0));
            bytes_of[owner] = 0;
        }
    }
    return CVY_OK;
}

cvy_status cvy_server_collect(cvy_server *s)
{
    size_t *bytes_of = NULL;
    if (s->collected || s->comm->simulated_cores > 0) /* a simulation has no weights */
        return CVY_OK;
    if (cvy_server_is_free(s) && !s->synchronised)
        CVY_TRY(synchronise(s));
    CVY_TRY(cvy_comm_alloc(s->comm, sizeof *bytes_of * (size_t)s->comm->nranks, &bytes_of));
    const cvy_status status = collect(s, bytes_of);
    s->collected = status == CVY_OK;
    cvy_mem_free(&bytes_of);
    return status;
}

/* ---- for the watchdog ---- */

/* Finds the bucket whose new weights a worker waits for, and its owner. Returns 0 if there is none. */
static int worker_waits(const cvy_server *s, int *bucket_out, int *owner_out)
{
    for (int i = 0; i < s->program->ntask; i++) {
        const cvy_server_plan *sp = s->plan[i];
        const int at = sp ? atomic_load_explicit(&sp->plan->at, memory_order_relaxed) : -1;
        const int bucket = at < 0 ? -1 : cvy_instr_awaits_bucket(&sp->plan->instr[at]);
        if (bucket < 0)
            continue;
        *bucket_out = bucket;
        *owner_out = sp->bucket[*bucket_out].owner;
        return 1;
    }
    return 0;
}

void cvy_server_waits_for(const cvy_server *s, char *text, size_t room)
{
    int bucket = atomic_load_explicit(&s->waits_bucket, memory_order_relaxed),
        rank = atomic_load_explicit(&s->waits_rank, memory_order_relaxed);
    *text = '\0';
    if (bucket >= 0)
        snprintf(text, room, ", waiting for the gradients of bucket %d from rank %d", bucket, rank);
    else if (cvy_server_is_worker(s) && worker_waits(s, &bucket, &rank))
        snprintf(text, room, ", waiting for the weights of bucket %d from rank %d", bucket, rank);
}
