/*
 * reducer.c: reductions over ranks for programs that compute their own gradients (convoy/reducer.h), on a bucket set
 * like those of plans.
 *
 * Reduction number step * buckets + bucket is the same on all ranks, and reductions begin in this order, in whatever
 * order the buffers are started. Those before `oldest` are done; those from `next` on have not begun. Each of the
 * `depth` copies of the buffers has its own buckets, so a ring of depth * buckets serves all steps. A reducer counts
 * how often a buffer was started and waited for: the copy of its next round is the number of starts, modulo depth.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/reducer.h>

#include <math.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "base/machine/base_machine.h"
#include "base/machine/base_parallel.h"
#include "base/text/base_text.h"
#include "comm/comm_allreduce.h"
#include "context/context.h"
#include "reduce/reduce_bucket.h"

enum { DEPTH_MAX = 16, LINE_BYTES = 64 };

struct buffer {
    char *name;
    cvy_dtype dtype;
    int64_t count;
    int bucket;
    size_t offset;           /* in a copy */
    int64_t started, waited; /* counts; they differ by at most depth */
};

struct bucket { /* neighbouring buffers of one dtype, padded with zeros to whole cache lines */
    cvy_dtype dtype;
    int nbuffer;
    size_t offset, bytes; /* in a copy */
};

struct round {    /* the state of one bucket in one copy */
    int nstarted; /* buffers started for its next reduction */
    int open;     /* its reduction has begun, and is not known to be done and multiplied by the factor */
};

struct cvy_reducer {
    cvy_context *context;
    cvy_pool *pool; /* of names */
    cvy_reducer_opts opts;
    cvy_progress_by progress;
    cvy_comm_cost cost; /* for sizing buckets; unused if the caller gave a size */
    double factor;
    struct buffer *buffer;
    struct bucket *bucket;
    cvy_allreduce_opts reduce;
    cvy_bucket_set *ring; /* reduction number q is at q % ring->n */
    struct round *round;  /* one for each bucket of the ring */
    int nbuffer, buffer_room, nbucket;
    int64_t oldest, next;
    int64_t open; /* starts that have not been waited for */
    char *arena;  /* the copies, one after the other */
    size_t copy_bytes;
    int ready;
};

static size_t whole_lines(size_t bytes)
{
    return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

static size_t buffer_bytes(const struct buffer *b)
{
    return (size_t)b->count * cvy_dtype_bytes(b->dtype);
}

static size_t arena_bytes(const cvy_reducer *r)
{
    return r->copy_bytes * (size_t)r->opts.depth;
}

/* ---- options and buffers ---- */

static cvy_status set_up(cvy_reducer *r, const cvy_reducer_opts *opts)
{
    cvy_reducer_opts *o = &r->opts;
    char *algorithm = NULL;
    CVY_TRY(CVY_OPTS_READ(cvy_reducer_opts, opts, o));
    CVY_TRY(cvy_allreduce_check_name(o->algorithm));
    CVY_CHECK(o->wire == CVY_DTYPE_F32 || o->wire == CVY_DTYPE_BF16, CVY_E_CONFIG,
              "%s on the wire between nodes; a reducer sends f32 as f32 or bf16", cvy_dtype_text(o->wire));
    CVY_CHECK(o->bucket_bytes >= 0, CVY_E_CONFIG,
              "buckets of %lld bytes: expected a number above 0, or 0 to choose it by the cost on this network",
              (long long)o->bucket_bytes);
    CVY_TRY(cvy_progress_parse(o->progress, &r->progress));
    CVY_CHECK(o->depth >= 0 && o->depth <= DEPTH_MAX, CVY_E_CONFIG, "%d sets of buffers (depth); a reducer has 1 .. %d",
              o->depth, DEPTH_MAX);
    CVY_CHECK(isfinite(o->factor), CVY_E_CONFIG, "a reducer cannot multiply by a factor of %g", o->factor);
    if (o->algorithm && strcmp(o->algorithm, "auto") != 0)
        CVY_TRY(cvy_pool_strdup(r->pool, o->algorithm, &algorithm));
    o->algorithm = algorithm;
    o->depth = CVY_MAX(o->depth, 1);
    r->factor = (o->factor != 0 ? o->factor : 1) / (o->average ? r->context->comm->nranks : 1);
    return CVY_OK;
}

cvy_status cvy_reducer_create(cvy_context *context, const cvy_reducer_opts *opts, cvy_reducer **reducer_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_reducer *r = NULL;
    CVY_TRY(cvy_handle_alloc(CVY_HANDLE_REDUCER, sizeof *r, &r));
    r->context = context;
    cvy_status status = cvy_pool_create(&r->pool);
    if (status == CVY_OK)
        status = set_up(r, opts);
    if (status != CVY_OK)
        cvy_reducer_destroy(&r);
    else
        *reducer_out = r;
    return status;
}

/* Frees what cvy_reducer_ready has made. */
static void drop_memory(cvy_reducer *r)
{
    cvy_comm *comm = r->context->comm;
    cvy_bucket_set_destroy(&r->ring);
    if (r->arena) {
        if (comm->node_memory)
            comm->node_memory->unshare(comm, r->arena);
        cvy_mem_free_pages(&r->arena, arena_bytes(r));
    }
    cvy_mem_free(&r->round);
    cvy_mem_free(&r->bucket);
    r->nbucket = 0;
    r->copy_bytes = 0;
}

void cvy_reducer_destroy(cvy_reducer **reducer)
{
    CVY_ENTRY();
    if (!CVY_IS_LIVE_AT(REDUCER, reducer))
        return;
    cvy_reducer *r = *reducer;
    if (r->context->summing == r)
        r->context->summing = NULL;
    drop_memory(r);
    cvy_mem_free(&r->buffer);
    cvy_pool_destroy(&r->pool);
    cvy_handle_free(reducer);
}

cvy_status cvy_reducer_add(cvy_reducer *r, const char *name, int64_t count, cvy_dtype dtype, int *index_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(REDUCER, r));
    struct buffer b = {.dtype = dtype, .count = count};
    size_t before = 0;
    CVY_CHECK(!r->ready, CVY_E_ARGUMENT, "buffer '%s' comes too late: add all buffers before cvy_reducer_ready",
              name ? name : "");
    CVY_CHECK(name && *name, CVY_E_ARGUMENT, "buffer %d of a reducer has no name", r->nbuffer);
    CVY_CHECK(dtype == CVY_DTYPE_F32 || dtype == CVY_DTYPE_F64, CVY_E_ARGUMENT,
              "buffer '%s' is of %s; a reducer sums f32 and f64", name, cvy_dtype_text(dtype));
    CVY_CHECK(count >= 1, CVY_E_ARGUMENT, "buffer '%s' has %lld elements; at least 1 is needed", name,
              (long long)count);
    for (int i = 0; i < r->nbuffer; i++) {
        CVY_CHECK(strcmp(r->buffer[i].name, name) != 0, CVY_E_ARGUMENT, "two buffers, %d and %d, are named '%s'", i,
                  r->nbuffer, name);
        before += whole_lines(buffer_bytes(&r->buffer[i]));
    }
    const size_t most = SIZE_MAX / 4 / DEPTH_MAX, room = before < most ? most - before : 0;
    CVY_CHECK((uint64_t)count <= room / sizeof(double), CVY_E_MEMORY,
              "buffer '%s' of %lld elements is larger than any memory", name, (long long)count);
    CVY_TRY(cvy_mem_reserve(&r->buffer, &r->buffer_room, r->nbuffer, sizeof *r->buffer));
    CVY_TRY(cvy_pool_strdup(r->pool, name, &b.name));
    r->buffer[r->nbuffer] = b;
    *index_out = r->nbuffer++;
    return CVY_OK;
}

/* ---- ready: consistency check of all ranks ---- */

/* Writes all that must be the same on all ranks, one line each: the options, then the buffers. */
static void describe(const cvy_reducer *r, cvy_text *t)
{
    const cvy_reducer_opts *o = &r->opts;
    cvy_text_add(
        t, "bucket_bytes %lld, algorithm %s, progress %d, wire %s, no_node %d, depth %d, average %d, factor %.17g\n",
        (long long)o->bucket_bytes, o->algorithm ? o->algorithm : "auto", (int)r->progress, cvy_dtype_text(o->wire),
        o->no_node != 0, o->depth, o->average != 0, o->factor);
    for (int i = 0; i < r->nbuffer; i++)
        cvy_text_add(t, "'%s', %lld elements of %s\n", r->buffer[i].name, (long long)r->buffer[i].count,
                     cvy_dtype_text(r->buffer[i].dtype));
}

static cvy_status differ(int line, const char *here, const char *there)
{
    CVY_CHECK(line > 0, CVY_E_DISAGREE, "a reducer has the options %s here, but %s on rank 0", here, there);
    return cvy_error_set(
        CVY_E_DISAGREE,
        "buffer %d of a reducer is %s here, but %s on rank 0: add the same buffers in the same order on all ranks",
        line - 1, here ? here : "not there", there ? there : "not there");
}

static cvy_status check_same(const cvy_reducer *r)
{
    cvy_text mine = {0};
    describe(r, &mine);
    const cvy_status status = cvy_comm_compare(r->context->comm, &mine, differ);
    cvy_text_free(&mine);
    return status;
}

/* ---- ready: memory and requests ---- */

/* Fills buckets as a plan does with its gradients (pass_reduce.c): a bucket is closed when it is large enough, and
 * there are at least four unless all buffers are tiny. */
static cvy_status fill_buckets(cvy_reducer *r)
{
    size_t total = 0;
    int open = 0;
    CVY_TRY(cvy_mem_alloc(sizeof *r->bucket * (size_t)r->nbuffer, &r->bucket));
    for (int i = 0; i < r->nbuffer; i++)
        total += buffer_bytes(&r->buffer[i]);
    const size_t enough = cvy_allreduce_bucket_bytes(total, (size_t)r->opts.bucket_bytes, &r->cost);
    for (int i = 0; i < r->nbuffer; i++) {
        struct buffer *b = &r->buffer[i];
        if (!open || r->bucket[r->nbucket - 1].dtype != b->dtype)
            r->bucket[r->nbucket++] = (struct bucket){.dtype = b->dtype, .offset = r->copy_bytes};
        struct bucket *bucket = &r->bucket[r->nbucket - 1];
        b->bucket = r->nbucket - 1;
        b->offset = r->copy_bytes;
        r->copy_bytes += whole_lines(buffer_bytes(b));
        bucket->bytes = r->copy_bytes - bucket->offset;
        bucket->nbuffer++;
        open = bucket->bytes < enough;
    }
    return CVY_OK;
}

static cvy_status take_memory(cvy_reducer *r)
{
    CVY_TRY(fill_buckets(r));
    CVY_TRY(cvy_bucket_set_create(r->nbucket * r->opts.depth, &r->ring));
    CVY_TRY(cvy_mem_alloc(sizeof *r->round * (size_t)r->ring->n, &r->round));
    for (int q = 0; q < r->ring->n; q++) {
        const struct bucket *from = &r->bucket[q % r->nbucket];
        r->ring->bucket[q] = (cvy_bucket){.offset = (size_t)(q / r->nbucket) * r->copy_bytes + from->offset,
                                          .bytes = from->bytes,
                                          .dtype = from->dtype};
    }
    char source[256];
    const double left = (double)cvy_mem_left_by(source, sizeof source),
                 all = (double)arena_bytes(r) * r->context->comm->node_nranks, gib = 1073741824.0;
    CVY_CHECK(left < 0 || all <= left, CVY_E_MEMORY,
              "the buffers of a reducer need %.2f GiB on this node (%d ranks, %d sets), but %.2f GiB are free by %s",
              all / gib, r->context->comm->node_nranks, r->opts.depth, left / gib, source);
    return cvy_mem_alloc_pages(arena_bytes(r), &r->arena);
}

static struct round *round_at(const cvy_reducer *r, int64_t number)
{
    return &r->round[number % r->ring->n];
}

static const cvy_bucket *bucket_at(const cvy_reducer *r, int64_t number)
{
    return &r->ring->bucket[number % r->ring->n];
}

/* Shares the memory, which also measures the algorithms on this network, and makes the requests. */
static cvy_status connect(cvy_reducer *r)
{
    cvy_comm *comm = r->context->comm;
    int shared = 0;
    if (comm->nranks > 1)
        CVY_TRY(comm->node_memory->share(comm, &r->reduce, r->arena, arena_bytes(r), &shared));
    return cvy_comm_agree(comm, cvy_bucket_set_connect(r->ring, comm, &r->reduce, r->arena));
}

static cvy_status check_ready(const cvy_reducer *r)
{
    CVY_CHECK(!r->ready, CVY_E_ARGUMENT, "a reducer is made ready once");
    CVY_CHECK(r->nbuffer > 0, CVY_E_ARGUMENT, "a reducer without buffers: add them before cvy_reducer_ready");
    return cvy_context_check_idle(r->context, r);
}

static cvy_status make_ready(cvy_reducer *r)
{
    cvy_comm *comm = r->context->comm;
    CVY_TRY(cvy_comm_agree(comm, check_ready(r)));
    CVY_TRY(check_same(r));
    r->reduce = (cvy_allreduce_opts){.algorithm = r->opts.algorithm,
                                     .no_node = r->opts.no_node,
                                     .wire = r->opts.wire,
                                     .threads = r->progress == CVY_PROGRESS_THREAD ? 1 : r->context->threads,
                                     .progress = r->progress};
    if (comm->nranks > 1 && !r->opts.bucket_bytes)
        CVY_TRY(comm->probe->cost(comm, &r->reduce, &r->cost));
    CVY_TRY(cvy_comm_agree(comm, take_memory(r)));
    return connect(r);
}

cvy_status cvy_reducer_ready(cvy_reducer *r)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(REDUCER, r));
    const int was_ready = r->ready;
    const cvy_status status = make_ready(r);
    if (status == CVY_OK)
        r->ready = 1;
    else if (!was_ready)
        drop_memory(r);
    return status;
}

/* ---- buffers ---- */

static cvy_status find(const cvy_reducer *r, int index, struct buffer **out)
{
    CVY_CHECK(r->ready, CVY_E_ARGUMENT, "a reducer is used before cvy_reducer_ready");
    CVY_CHECK(index >= 0 && index < r->nbuffer, CVY_E_ARGUMENT, "there is no buffer %d; this reducer has 0 .. %d",
              index, r->nbuffer - 1);
    *out = &r->buffer[index];
    return CVY_OK;
}

/* Finds a buffer of which one copy is free to write or read. */
static cvy_status find_idle(const cvy_reducer *r, int index, struct buffer **out)
{
    CVY_TRY(find(r, index, out));
    const struct buffer *b = *out;
    CVY_CHECK(b->started - b->waited < r->opts.depth, CVY_E_ARGUMENT,
              "'%s' (buffer %d) was started and is being summed: wait for it first", b->name, index);
    return CVY_OK;
}

static void *data_of(const cvy_reducer *r, const struct buffer *b, int64_t round)
{
    return r->arena + (size_t)(round % r->opts.depth) * r->copy_bytes + b->offset;
}

void *cvy_reducer_buffer(cvy_reducer *r, int index)
{
    CVY_ENTRY();
    if (CVY_LIVE(REDUCER, r) != CVY_OK)
        return NULL;
    struct buffer *b = NULL;
    return find_idle(r, index, &b) == CVY_OK ? data_of(r, b, b->started) : NULL;
}

void *cvy_reducer_sum(cvy_reducer *r, int index)
{
    CVY_ENTRY();
    if (CVY_LIVE(REDUCER, r) != CVY_OK)
        return NULL;
    struct buffer *b = NULL;
    if (find_idle(r, index, &b) != CVY_OK)
        return NULL;
    if (b->waited > 0)
        return data_of(r, b, b->waited - 1);
    cvy_error_set(CVY_E_ARGUMENT, "'%s' (buffer %d) has not been summed yet", b->name, index);
    return NULL;
}

/* ---- reductions ---- */

struct scaling {
    float *f32;
    double *f64, factor;
};

static void scale_range(int64_t first, int64_t last, void *arg)
{
    const struct scaling *s = arg;
    for (int64_t i = first; i < last; i++)
        if (s->f64)
            s->f64[i] *= s->factor;
        else
            s->f32[i] = (float)(s->f32[i] * s->factor);
}

static void multiply(const cvy_reducer *r, int64_t number)
{
    enum { GRAIN = 1 << 14 };
    const cvy_bucket *b = bucket_at(r, number);
    const int is_f64 = b->dtype == CVY_DTYPE_F64;
    struct scaling s = {is_f64 ? NULL : b->data, is_f64 ? b->data : NULL, r->factor};
    if (r->factor != 1)
        cvy_parallel_for(r->context->threads, cvy_bucket_elems(b), GRAIN, scale_range, &s);
}

/* Makes progress on all reductions under way, and multiplies those that are done. */
static cvy_status progress(cvy_reducer *r)
{
    CVY_TRY(cvy_bucket_set_progress(r->ring));
    for (int64_t q = r->oldest; q < r->next; q++)
        if (round_at(r, q)->open && !bucket_at(r, q)->active) {
            multiply(r, q);
            round_at(r, q)->open = 0;
        }
    while (r->oldest < r->next && !round_at(r, r->oldest)->open)
        r->oldest++;
    return CVY_OK;
}

/* Begins the next reductions, as long as all their buffers have been started. */
static cvy_status begin(cvy_reducer *r)
{
    for (struct round *s; (s = round_at(r, r->next))->nstarted == r->bucket[r->next % r->nbucket].nbuffer; r->next++) {
        CVY_TRY(cvy_bucket_set_start(r->ring, (int)(r->next % r->ring->n)));
        s->nstarted = 0;
        s->open = 1;
    }
    return CVY_OK;
}

cvy_status cvy_reducer_start(cvy_reducer *r, int index)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(REDUCER, r));
    struct buffer *b = NULL;
    CVY_TRY(find_idle(r, index, &b));
    if (r->context->summing != r)
        CVY_TRY(cvy_context_check_idle(r->context, r));
    r->context->summing = r;
    r->open++;
    const int64_t number = b->started++ * r->nbucket + b->bucket;
    round_at(r, number)->nstarted++;
    CVY_TRY(begin(r));
    return progress(r);
}

cvy_status cvy_reducer_progress(cvy_reducer *r)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(REDUCER, r));
    CVY_CHECK(r->ready, CVY_E_ARGUMENT, "a reducer is used before cvy_reducer_ready");
    return progress(r);
}

static int64_t awaited(const cvy_reducer *r, const struct buffer *b)
{
    return b->waited * r->nbucket + b->bucket;
}

/* Makes sure that a wait will end: either the reduction has begun, or the error names the buffer that has not been
 * started. */
static cvy_status check_begun(const cvy_reducer *r, const struct buffer *b)
{
    const int index = (int)(b - r->buffer);
    CVY_CHECK(b->started > b->waited, CVY_E_ARGUMENT, "'%s' (buffer %d) is waited for, but has not been started",
              b->name, index);
    for (int i = 0; i < r->nbuffer && awaited(r, b) >= r->next; i++) {
        const struct buffer *missing = &r->buffer[i];
        CVY_CHECK(
            missing->bucket != r->next % r->nbucket || missing->started > r->next / r->nbucket, CVY_E_ARGUMENT,
            "'%s' (buffer %d) is waited for, but its sum begins after '%s' (buffer %d), which has not been started",
            b->name, index, missing->name, i);
    }
    return CVY_OK;
}

static cvy_status finish(cvy_reducer *r, struct buffer *b)
{
    const int64_t number = awaited(r, b);
    for (int round = 0; number >= r->oldest && round_at(r, number)->open; round++) {
        CVY_TRY(progress(r));
        CVY_TRY(r->context->comm->ops->rest(r->context->comm, round));
    }
    b->waited++;
    if (--r->open == 0)
        r->context->summing = NULL;
    return CVY_OK;
}

cvy_status cvy_reducer_wait(cvy_reducer *r, int index)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(REDUCER, r));
    struct buffer *b = NULL;
    CVY_TRY(find(r, index == CVY_REDUCER_ALL ? 0 : index, &b));
    const int first = index == CVY_REDUCER_ALL ? 0 : index, end = index == CVY_REDUCER_ALL ? r->nbuffer : index + 1;
    int64_t step = b->waited;
    for (int i = first; i < end; i++)
        step = CVY_MIN(step, r->buffer[i].waited);
    r->context->comm->step = step + 1;
    for (int i = first; i < end; i++)
        if (r->buffer[i].waited == step)
            CVY_TRY(check_begun(r, &r->buffer[i]));
    for (int i = first; i < end; i++)
        if (r->buffer[i].waited == step)
            CVY_TRY(finish(r, &r->buffer[i]));
    cvy_comm_met(r->context->comm);
    return CVY_OK;
}

/* ---- broadcasts ---- */

cvy_status cvy_context_broadcast(cvy_context *context, void *data, size_t bytes, int root)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_comm *comm = context->comm;
    CVY_CHECK(root >= 0 && root < comm->nranks, CVY_E_ARGUMENT,
              "there is no rank %d to send from; the ranks are 0 .. %d", root, comm->nranks - 1);
    CVY_CHECK(data || bytes == 0, CVY_E_ARGUMENT, "%zu bytes to send, but no memory", bytes);
    return comm->ops->broadcast(comm, data, bytes, root);
}
