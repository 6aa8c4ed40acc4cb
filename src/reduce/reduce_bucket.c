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
    return cvy_mem_alloc_pages(set->copies_bytes, &set->copies);
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

cvy_status cvy_bucket_set_connect(cvy_bucket_set *set, cvy_comm *comm, const cvy_allreduce_opts *opts, void *memory)
{
    set->comm = comm;
    set->memory = memory;
    if (!cvy_space_is_host(set->space) && (comm->nranks > 1 || set->over))
        CVY_TRY(make_copies(set));
    for (int i = 0; i < set->n; i++) {
        cvy_bucket *b = &set->bucket[i];
        b->data = (char *)memory + b->offset;
        b->host = set->copies ? set->copies + b->offset : b->data;
        b->part = (cvy_part){0, cvy_bucket_elems(b)};
        CVY_TRY(choose_comms(set, comm, i));
        if (cvy_comm_sums(b->comm) && !set->exchange)
            CVY_TRY(make_request(b->comm, opts, b));
        if (b->then_over)
            CVY_TRY(b->then_over->reduce->create(b->then_over, opts, b->host, cvy_bucket_elems(b), b->dtype, NULL,
                                                 &b->then));
    }
    return CVY_OK;
}

cvy_status cvy_bucket_set_start(cvy_bucket_set *set, int bucket)
{
    cvy_bucket *b = &set->bucket[bucket];
    if (!b->request && !b->then && !set->exchange)
        return CVY_OK;
    if (set->copies)
        CVY_TRY(cvy_space_read(set->space, b->host, b->data, b->bytes));
    b->active = 1;
    set->nactive++;
    b->start_s = cvy_clock_s();
    if (set->exchange)
        return set->exchange->start(set->exchange->user, bucket);
    b->in_second = !b->request;
    return b->in_second ? b->then_over->reduce->start(b->then) : b->comm->reduce->start(b->request);
}

static cvy_status test(const cvy_bucket_set *set, int bucket, int *done)
{
    cvy_bucket *b = &set->bucket[bucket];
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

static cvy_status test_active(cvy_bucket_set *set)
{
    for (int i = 0; i < set->n; i++) {
        cvy_bucket *b = &set->bucket[i];
        int done = 0;
        if (!b->active)
            continue;
        CVY_TRY(test(set, i, &done));
        if (!done)
            continue;
        if (set->copies)
            CVY_TRY(cvy_space_write(set->space, b->data, b->host, b->bytes));
        b->active = 0;
        set->nactive--;
        b->end_s = cvy_clock_s();
    }
    return CVY_OK;
}

cvy_status cvy_bucket_set_progress(cvy_bucket_set *set)
{
    if (set->concurrent)
        CVY_TRY(test_active(set->concurrent));
    return test_active(set);
}

cvy_status cvy_bucket_set_wait(cvy_bucket_set *set, int bucket)
{
    const cvy_bucket *b = &set->bucket[bucket];
    cvy_status status = CVY_OK;
    atomic_store_explicit(&set->waits, bucket + 1, memory_order_relaxed);
    for (int round = 0; b->active && status == CVY_OK; round++) {
        status = cvy_bucket_set_progress(set);
        if (b->active && status == CVY_OK)
            status = set->comm->ops->rest(set->comm, round);
    }
    atomic_store_explicit(&set->waits, 0, memory_order_relaxed);
    return status;
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
    cvy_mem_free_pages(&s->copies, s->copies_bytes);
    cvy_mem_free(&s->bucket);
    cvy_mem_free(set);
}
