/*
 * reduce_bucket.c: buckets under reduction: their requests, which ones are under way, progress and waits, and when each
 * exchange started and ended.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "reduce/reduce_bucket.h"

#include "base/base_mem.h"
#include "base/machine/base_clock.h"

cvy_status cvy_bucket_set_create(int n, cvy_bucket_set **out)
{
    cvy_bucket_set *set = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *set, &set));
    const cvy_status status = cvy_mem_alloc(sizeof *set->bucket * (size_t)CVY_MAX(n, 1), &set->bucket);
    if (status != CVY_OK) {
        cvy_mem_free(&set);
        return status;
    }
    set->n = n;
    *out = set;
    return CVY_OK;
}

static cvy_status make_request(cvy_comm *comm, const cvy_allreduce_opts *opts, cvy_bucket *b)
{
    const int64_t elems = cvy_bucket_elems(b);
    switch (b->kind) {
    case CVY_BUCKET_ALLREDUCE: return comm->reduce->create(comm, opts, b->host, elems, b->dtype, NULL, &b->request);
    case CVY_BUCKET_PART: return comm->reduce->create(comm, opts, b->host, elems, b->dtype, &b->part, &b->request);
    case CVY_BUCKET_GATHER: return comm->reduce->create_gather(comm, opts, b->host, elems, b->dtype, &b->request);
    case CVY_BUCKET_LOCAL: break;
    }
    return CVY_OK;
}

/* The copies have the same offsets as the buckets in the memory of the set. */
static cvy_status make_copies(cvy_bucket_set *set)
{
    for (int i = 0; i < set->n; i++)
        set->copies_bytes = CVY_MAX(set->copies_bytes, set->bucket[i].offset + set->bucket[i].bytes);
    CVY_TRY(cvy_mem_alloc(sizeof *set->leaving * (size_t)CVY_MAX(set->n, 1), &set->leaving));
    CVY_TRY(cvy_space_alloc_host(set->space, CVY_MAX(set->copies_bytes, 1), &set->copies));
    for (int i = 0; i < set->n; i++)
        CVY_TRY(cvy_stage_make(&set->bucket[i].stage, set->space, set->copies + set->bucket[i].offset,
                               set->bucket[i].bytes));
    return CVY_OK;
}

/* A set for one rank alone has no data axis. */
static cvy_status choose_comms(const cvy_bucket_set *set, cvy_comm *comm, int bucket)
{
    cvy_bucket *b = &set->bucket[bucket];
    const unsigned data = comm->nranks > 1 && !set->axes_in_turn ? CVY_AXIS_BIT(CVY_AXIS_DATA) : 0;
    cvy_comm *over = b->over ? set->over[b->over | data] : comm;
    CVY_CHECK(over, CVY_E_INTERNAL, "bucket %d has no communicator for the axes 0x%x", bucket, b->over | data);
    b->comm = set->axes_in_turn ? comm : over;
    b->then_over = set->axes_in_turn && b->over ? over : NULL;
    return CVY_OK;
}

/* ---- sums by NCCL ---- */

static int may_use_nccl(const cvy_bucket_set *set, const cvy_allreduce_opts *opts, const cvy_bucket *b)
{
    return cvy_nccl_may(set->space, b->comm, opts) && !set->exchange && !set->axes_in_turn &&
           b->kind != CVY_BUCKET_LOCAL && (b->kind != CVY_BUCKET_PART || opts->halves) &&
           (b->dtype == CVY_DTYPE_F32 || b->dtype == CVY_DTYPE_F64);
}

/* Collective over the communicator of the bucket. */
static cvy_status try_nccl(const cvy_bucket_set *set, const cvy_allreduce_opts *opts, cvy_bucket *b)
{
    const cvy_nccl_sum sum = {.kind = b->kind == CVY_BUCKET_PART     ? CVY_NCCL_SCATTER
                                      : b->kind == CVY_BUCKET_GATHER ? CVY_NCCL_GATHER
                                                                     : CVY_NCCL_ALL,
                              .data = b->data,
                              .count = cvy_bucket_elems(b),
                              .dtype = b->dtype,
                              .is_narrow = opts->wire == CVY_DTYPE_BF16 && b->has_gradients};
    if (!may_use_nccl(set, opts, b))
        return CVY_OK;
    CVY_TRY(cvy_nccl_open(b->comm, set->space, &b->nccl));
    return cvy_nccl_why(b->nccl)
               ? CVY_OK
               : cvy_nccl_sum_create(b->nccl, &sum, sum.kind == CVY_NCCL_ALL ? NULL : &b->part, &b->sum);
}

/* ---- connecting ---- */

static int needs_copies(const cvy_bucket_set *set)
{
    int needs = 0;
    for (int i = 0; i < set->n; i++)
        needs |= !set->bucket[i].sum && (set->comm->nranks > 1 || set->over);
    return needs && !cvy_space_is_host(set->space);
}

static cvy_status place_bucket(cvy_bucket_set *set, cvy_comm *comm, const cvy_allreduce_opts *opts, int bucket)
{
    cvy_bucket *b = &set->bucket[bucket];
    b->data = (char *)set->memory + b->offset;
    if (b->kind != CVY_BUCKET_GATHER || b->part.end == 0)
        b->part = (cvy_part){0, cvy_bucket_elems(b)};
    CVY_TRY(choose_comms(set, comm, bucket));
    return try_nccl(set, opts, b);
}

cvy_status cvy_bucket_set_connect(cvy_bucket_set *set, cvy_comm *comm, const cvy_allreduce_opts *opts, void *memory)
{
    set->comm = comm;
    set->memory = memory;
    for (int i = 0; i < set->n; i++)
        CVY_TRY(place_bucket(set, comm, opts, i));
    if (needs_copies(set))
        CVY_TRY(make_copies(set));
    for (int i = 0; i < set->n; i++) {
        cvy_bucket *b = &set->bucket[i];
        b->host = set->copies ? set->copies + b->offset : b->data;
        if (cvy_comm_sums(b->comm) && !set->exchange && !b->sum)
            CVY_TRY(make_request(b->comm, opts, b));
        if (b->then_over)
            CVY_TRY(b->then_over->reduce->create(b->then_over, opts, b->host, cvy_bucket_elems(b), b->dtype, NULL,
                                                 &b->then));
    }
    return CVY_OK;
}

/* ---- copies of memory that the host cannot read ---- */

static void *at(const cvy_bucket *b, void *memory, int64_t elem)
{
    return (char *)memory + (size_t)elem * cvy_dtype_bytes(b->dtype);
}

static size_t part_bytes(const cvy_bucket *b)
{
    return (size_t)(b->part.end - b->part.first) * cvy_dtype_bytes(b->dtype);
}

/* What the other ranks have of a gathered bucket comes from them. */
static cvy_status copy_out(cvy_bucket_set *set, int bucket)
{
    const cvy_bucket *b = &set->bucket[bucket];
    const int own = b->kind == CVY_BUCKET_GATHER;
    set->leaving[set->nleaving++] = bucket;
    return own ? cvy_stage_out(&b->stage, (size_t)b->part.first * cvy_dtype_bytes(b->dtype),
                               at(b, b->data, b->part.first), part_bytes(b))
               : cvy_stage_out(&b->stage, 0, b->data, b->bytes);
}

static cvy_status copy_back(cvy_bucket *b)
{
    const int own = b->kind == CVY_BUCKET_PART;
    b->is_returning = 1;
    return own ? cvy_stage_in(&b->stage, at(b, b->data, b->part.first),
                              (size_t)b->part.first * cvy_dtype_bytes(b->dtype), part_bytes(b))
               : cvy_stage_in(&b->stage, b->data, 0, b->bytes);
}

static cvy_status await_returning(const cvy_bucket_set *set)
{
    for (int i = 0; i < set->n && set->copies; i++)
        if (set->bucket[i].is_returning) {
            set->bucket[i].is_returning = 0;
            CVY_TRY(cvy_stage_await(&set->bucket[i].stage));
        }
    return CVY_OK;
}

/* ---- exchanges ---- */

static cvy_status begin(const cvy_bucket_set *set, int bucket)
{
    cvy_bucket *b = &set->bucket[bucket];
    b->is_out = 1;
    if (b->sum)
        return cvy_nccl_start(b->sum);
    if (set->exchange)
        return set->exchange->start(set->exchange->user, bucket);
    b->in_second = !b->request;
    return b->in_second ? b->then_over->reduce->start(b->then) : b->comm->reduce->start(b->request);
}

/* Begins exchanges in the order in which they were started, as far as their copies are there. wait: it waits for all.
 */
static cvy_status begin_leaving(cvy_bucket_set *set, int wait)
{
    int n = 0, there = 1;
    cvy_status status = CVY_OK;
    while (n < set->nleaving && there && status == CVY_OK) {
        status = cvy_stage_is_reached(&set->bucket[set->leaving[n]].stage, wait, &there);
        if (status == CVY_OK && there)
            status = begin(set, set->leaving[n++]);
    }
    set->nleaving -= n;
    for (int i = 0; i < set->nleaving; i++)
        set->leaving[i] = set->leaving[i + n];
    return status;
}

cvy_status cvy_bucket_set_settle(cvy_bucket_set *set)
{
    CVY_TRY(begin_leaving(set, 1));
    return await_returning(set);
}

cvy_status cvy_bucket_set_start(cvy_bucket_set *set, int bucket)
{
    cvy_bucket *b = &set->bucket[bucket];
    if (!b->request && !b->sum && !b->then && !set->exchange)
        return CVY_OK;
    b->active = 1;
    b->is_out = 0;
    set->nactive++;
    b->start_s = cvy_clock_s();
    return set->copies && !b->sum ? copy_out(set, bucket) : begin(set, bucket);
}

static cvy_status test(const cvy_bucket_set *set, int bucket, int *done)
{
    cvy_bucket *b = &set->bucket[bucket];
    if (b->sum)
        return cvy_nccl_test(b->sum, done);
    if (set->exchange)
        return set->exchange->test(set->exchange->user, bucket, done);
    if (b->in_second)
        return b->then_over->reduce->test(b->then, done);
    CVY_TRY(b->comm->reduce->test(b->request, done));
    if (!*done || !b->then)
        return CVY_OK;
    *done = 0;
    b->in_second = 1;
    return b->then_over->reduce->start(b->then);
}

static void end(cvy_bucket_set *set, cvy_bucket *b)
{
    b->active = 0;
    set->nactive--;
    b->end_s = cvy_clock_s();
}

static cvy_status test_active(cvy_bucket_set *set)
{
    CVY_TRY(begin_leaving(set, 0));
    for (int i = 0; i < set->n; i++) {
        cvy_bucket *b = &set->bucket[i];
        int done = 0;
        if (!b->active || !b->is_out)
            continue;
        CVY_TRY(test(set, i, &done));
        if (!done)
            continue;
        if (set->copies && !b->sum)
            CVY_TRY(copy_back(b));
        end(set, b);
    }
    return CVY_OK;
}

cvy_status cvy_bucket_set_progress(cvy_bucket_set *set)
{
    if (set->concurrent)
        CVY_TRY(test_active(set->concurrent));
    return test_active(set);
}

/* The device waits, and the host goes on. */
static cvy_status await_sum(cvy_bucket_set *set, cvy_bucket *b)
{
    CVY_TRY(cvy_nccl_await(b->sum));
    end(set, b);
    return CVY_OK;
}

cvy_status cvy_bucket_set_wait(cvy_bucket_set *set, int bucket)
{
    cvy_bucket *b = &set->bucket[bucket];
    cvy_status status = CVY_OK;
    if (b->sum && b->active)
        CVY_TRY(await_sum(set, b));
    atomic_store_explicit(&set->waits, bucket + 1, memory_order_relaxed);
    for (int round = 0; b->active && status == CVY_OK; round++) {
        status = cvy_bucket_set_progress(set);
        if (b->active && status == CVY_OK)
            status = set->comm->ops->rest(set->comm, round);
    }
    atomic_store_explicit(&set->waits, 0, memory_order_relaxed);
    return status == CVY_OK ? await_returning(set) : status;
}

cvy_status cvy_bucket_set_wait_all(cvy_bucket_set *set)
{
    for (int i = 0; i < set->n; i++)
        CVY_TRY(cvy_bucket_set_wait(set, i));
    return CVY_OK;
}

void cvy_bucket_set_destroy(cvy_bucket_set **set)
{
    cvy_bucket_set *s = *set;
    if (!s)
        return;
    for (int i = 0; i < s->n; i++)
        if (s->bucket[i].request)
            s->bucket[i].comm->reduce->destroy(&s->bucket[i].request);
    for (int i = 0; i < s->n; i++)
        if (s->bucket[i].then)
            s->bucket[i].then_over->reduce->destroy(&s->bucket[i].then);
    for (int i = 0; i < s->n; i++)
        cvy_nccl_exchange_destroy(&s->bucket[i].sum);
    for (int i = 0; i < s->n; i++)
        cvy_nccl_close(&s->bucket[i].nccl);
    for (int i = 0; i < s->n; i++)
        cvy_stage_free(&s->bucket[i].stage);
    cvy_space_free_host(s->space, &s->copies, CVY_MAX(s->copies_bytes, 1));
    cvy_mem_free(&s->leaving);
    cvy_mem_free(&s->bucket);
    cvy_mem_free(set);
}
