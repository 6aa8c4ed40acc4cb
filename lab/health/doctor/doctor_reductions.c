/*
 * doctor_reductions.c: measures the network: all-reduces by each method, and single messages.
 *
 * The all-reduces use the same requests as a training. The first one of each method is checked, element by element.
 * For the others the time of the slowest rank counts. The methods take turns, so that other work on the machines
 * affects all of them. All ranks see the same times, so they stop at the same time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm_allreduce.h"
#include "health/doctor/doctor.h"
#include "measure/measure_bench.h"

enum { TRIALS = 15, LEAST_TRIALS = 3, SIZE_RATIO = 4, SMALLEST = 1024 };
enum { PINGS = 20, LONG_PINGS = 5, LONG_BYTES = 256 << 10, LONGEST_MESSAGE = 4 << 20, HOPS = 4 };
/* The part of the remaining time that one size may take after its minimum number of trials. */
#define SIZE_SHARE 0.1

/* ---- methods ---- */

static void add_method(cvy_doctor *d, const char *algorithm, int by_node)
{
    cvy_doctor_method *method = &d->method[d->nmethods];
    if (d->nmethods == CVY_DOCTOR_METHODS)
        return;
    *method = (cvy_doctor_method){.algorithm = algorithm, .by_node = by_node};
    snprintf(method->name, sizeof method->name, "%s%s%s", by_node ? "node" : "", by_node && algorithm ? "+" : "",
             algorithm ? algorithm : "");
    d->nmethods++;
}

static void list_methods(cvy_doctor *d)
{
    int count = 0;
    const cvy_allreduce_def *const *def = cvy_allreduce_table(&count);
    for (int by_node = 0; by_node <= d->shared; by_node++) {
        if (by_node && d->context->comm->nnodes == 1) {
            add_method(d, NULL, 1);
            continue;
        }
        for (int i = 0; i < count; i++)
            add_method(d, def[i]->name, by_node);
        add_method(d, "library", by_node);
    }
}

/* Finds the method that a training would use. Collective. */
static cvy_status find_chosen(cvy_doctor *d, cvy_doctor_size *size)
{
    cvy_comm *comm = d->context->comm;
    const char *name = NULL;
    if (!d->shared || comm->nnodes > 1)
        CVY_TRY(comm->probe->choice(comm, &(cvy_allreduce_opts){.threads = d->context->threads}, d->shared, size->bytes,
                                    &name));
    for (int w = 0; w < d->nmethods; w++)
        if (d->method[w].by_node == d->shared && (!name || strcmp(d->method[w].algorithm, name) == 0))
            size->chosen = w;
    return CVY_OK;
}

int cvy_doctor_fastest(const cvy_doctor *d, const cvy_doctor_size *size)
{
    int fastest = 0;
    for (int w = 1; w < d->nmethods; w++)
        if (size->best_s[w] < size->best_s[fastest])
            fastest = w;
    return fastest;
}

/* ---- one size ---- */

struct trial {
    float *data;
    int64_t count;
    cvy_request *request[CVY_DOCTOR_METHODS];
    double seconds[CVY_DOCTOR_METHODS][TRIALS];
};

static cvy_status make_requests(cvy_doctor *d, struct trial *t)
{
    cvy_comm *comm = d->context->comm;
    for (int w = 0; w < d->nmethods; w++) {
        const cvy_allreduce_opts opts = {
            .algorithm = d->method[w].algorithm, .no_node = !d->method[w].by_node, .threads = d->context->threads};
        CVY_TRY(cvy_comm_agree(
            comm, comm->reduce->create(comm, &opts, t->data, t->count, CVY_DTYPE_F32, NULL, &t->request[w])));
    }
    return CVY_OK;
}

static cvy_status run_sum(cvy_comm *comm, cvy_request *request, double *seconds_out)
{
    CVY_TRY(comm->ops->barrier(comm));
    const double begin_s = cvy_clock_s();
    CVY_TRY(cvy_comm_finish(comm, request));
    *seconds_out = cvy_clock_s() - begin_s;
    return CVY_OK;
}

/* Small whole numbers, so that their sums are exact. */
static float number_of(int rank, int64_t i)
{
    return (float)((rank + i) % 13);
}

static cvy_status check_method(cvy_doctor *d, struct trial *t, int method, int64_t *wrong_out)
{
    cvy_comm *comm = d->context->comm;
    double seconds = 0;
    int64_t wrong = 0;
    float sums[13] = {0};
    for (int r = 0; r < comm->nranks; r++)
        for (int i = 0; i < CVY_COUNT(sums); i++)
            sums[i] += number_of(r, i);
    for (int64_t i = 0; i < t->count; i++)
        t->data[i] = number_of(comm->rank, i);
    CVY_TRY(run_sum(comm, t->request[method], &seconds));
    for (int64_t i = 0; i < t->count; i++)
        wrong += t->data[i] != sums[i % CVY_COUNT(sums)];
    CVY_TRY(comm->ops->allreduce(comm, &wrong, 1, CVY_DTYPE_I64, CVY_REDUCE_SUM));
    *wrong_out = wrong;
    return CVY_OK;
}

/* Seconds since the start of the doctor, the same on all ranks. */
static cvy_status time_so_far(cvy_doctor *d, double *seconds_out)
{
    double seconds = cvy_clock_s() - d->begin_s;
    CVY_TRY(d->context->comm->ops->allreduce(d->context->comm, &seconds, 1, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    *seconds_out = seconds;
    return CVY_OK;
}

static cvy_status time_methods(cvy_doctor *d, struct trial *t, cvy_doctor_size *size)
{
    cvy_comm *comm = d->context->comm;
    double begin_s = 0, now_s = 0;
    CVY_TRY(time_so_far(d, &begin_s));
    now_s = begin_s;
    memset(t->data, 0, (size_t)size->bytes); /* sums of zeros stay zero, however often they are computed */
    while (size->ntrials < TRIALS &&
           (size->ntrials < LEAST_TRIALS || now_s - begin_s < SIZE_SHARE * (d->seconds - now_s))) {
        double round_s[CVY_DOCTOR_METHODS] = {0};
        for (int w = 0; w < d->nmethods; w++)
            CVY_TRY(run_sum(comm, t->request[w], &round_s[w]));
        CVY_TRY(comm->ops->allreduce(comm, round_s, d->nmethods, CVY_DTYPE_F64, CVY_REDUCE_MAX));
        for (int w = 0; w < d->nmethods; w++)
            t->seconds[w][size->ntrials] = round_s[w];
        size->ntrials++;
        CVY_TRY(time_so_far(d, &now_s));
    }
    for (int w = 0; w < d->nmethods; w++) {
        size->median_s[w] = cvy_median(t->seconds[w], size->ntrials); /* sorts the times */
        size->best_s[w] = t->seconds[w][0];
    }
    return CVY_OK;
}

static cvy_status measure_size(cvy_doctor *d, float *data, cvy_doctor_size *size)
{
    struct trial t = {.data = data, .count = size->bytes / (int64_t)sizeof *data};
    cvy_status status = find_chosen(d, size);
    if (status == CVY_OK)
        status = make_requests(d, &t);
    for (int w = 0; w < d->nmethods && status == CVY_OK; w++)
        status = check_method(d, &t, w, &size->wrong[w]);
    if (status == CVY_OK)
        status = time_methods(d, &t, size);
    for (int w = 0; w < d->nmethods; w++)
        d->context->comm->reduce->destroy(&t.request[w]);
    return status;
}

/* ---- all sizes ---- */

/* Estimates whether the next size fits into the remaining time, from the time that the previous size took. */
static cvy_status has_time(cvy_doctor *d, int64_t bytes, int *has_out)
{
    double now_s = 0, iteration_s = 0;
    *has_out = 1;
    if (d->nsize == 0)
        return CVY_OK;
    CVY_TRY(time_so_far(d, &now_s));
    for (int w = 0; w < d->nmethods; w++)
        iteration_s += d->size[d->nsize - 1].best_s[w];
    *has_out = now_s + SIZE_RATIO * iteration_s * (LEAST_TRIALS + 1) <= d->seconds;
    if (!*has_out) {
        d->left_out_bytes = bytes;
        d->left_out_why = "the time would not suffice: --seconds allows more";
    }
    return CVY_OK;
}

static cvy_status measure_sizes(cvy_doctor *d, float *data)
{
    for (int64_t bytes = SMALLEST; bytes <= d->max_bytes && d->nsize < CVY_DOCTOR_SIZES; bytes *= SIZE_RATIO) {
        int has = 0;
        CVY_TRY(has_time(d, bytes, &has));
        if (!has)
            break;
        d->size[d->nsize] = (cvy_doctor_size){.bytes = bytes};
        CVY_TRY(measure_size(d, data, &d->size[d->nsize]));
        d->nsize++;
    }
    return CVY_OK;
}

/* Limits the size so that the buffers of a node's ranks use at most a quarter of its free memory, because the MPI
 * library may make copies. */
static void fit_into_memory(cvy_doctor *d)
{
    for (int r = 0; r < d->context->comm->nranks; r++) {
        const cvy_doctor_rank *rank = &d->rank[r];
        const int64_t room = rank->memory_left_bytes / (4 * d->node[d->topology[r].node].nranks);
        for (; rank->memory_left_bytes >= 0 && d->max_bytes > CVY_MAX(room, SMALLEST);
             d->left_out_why = "memory would not suffice") {
            d->left_out_bytes = d->max_bytes;
            d->max_bytes /= SIZE_RATIO;
        }
    }
}

cvy_status cvy_doctor_measure_reductions(cvy_doctor *d)
{
    cvy_comm *comm = d->context->comm;
    float *data = NULL;
    int shared = 0;
    if (comm->nranks == 1)
        return CVY_OK;
    fit_into_memory(d);
    const size_t bytes = (size_t)d->max_bytes;
    const cvy_allreduce_opts opts = {.threads = d->context->threads};
    cvy_status status = cvy_comm_agree(comm, cvy_mem_alloc_pages(bytes, &data));
    if (status == CVY_OK)
        status = comm->node_memory->share(comm, &opts, data, bytes, &shared);
    if (status == CVY_OK) {
        d->shared = shared;
        list_methods(d);
        status = cvy_comm_agree(comm, measure_sizes(d, data));
    }
    if (shared)
        comm->node_memory->unshare(comm, data);
    cvy_mem_free_pages(&data, bytes);
    return status;
}

/* ---- single messages ---- */

/* Measures the best of n messages there and back, after one that does not count. */
static cvy_status ping(cvy_comm *comm, int other, void *data, int64_t bytes, int n, double *best_out)
{
    double best = INFINITY;
    for (int i = 0; i <= n; i++) {
        double seconds = 0;
        CVY_TRY(comm->probe->ping(comm, other, data, (size_t)bytes, &seconds));
        best = i ? CVY_MIN(best, seconds) : best;
    }
    *best_out = best;
    return CVY_OK;
}

/* Takes alpha from the shortest message and beta from the longest. Between them the MPI library changes protocols and
 * buffers messages, so no line fits. */
static void fit(cvy_doctor_link *link)
{
    const int last = link->npoints - 1;
    link->alpha_s = link->best_s[0];
    const double more_s = link->best_s[last] - link->best_s[0];
    link->beta_s = more_s > 0 ? more_s / (double)(link->bytes[last] - link->bytes[0])
                              : link->best_s[last] / (double)link->bytes[last]; /* the machine was busy */
}

static cvy_status measure_link(cvy_doctor *d, int from, int to, void *data, cvy_doctor_link *link)
{
    cvy_comm *comm = d->context->comm;
    const int64_t longest = CVY_MIN(d->max_bytes, LONGEST_MESSAGE);
    cvy_status status = CVY_OK;
    *link = (cvy_doctor_link){.from = from, .to = to};
    for (int64_t bytes = 8; bytes <= longest && link->npoints < CVY_DOCTOR_POINTS;
         bytes = bytes == 8 ? SMALLEST : bytes * SIZE_RATIO)
        link->bytes[link->npoints++] = bytes;
    if (comm->rank == from || comm->rank == to)
        for (int i = 0; i < link->npoints && status == CVY_OK; i++)
            status = ping(comm, comm->rank == from ? to : from, data, link->bytes[i],
                          link->bytes[i] < LONG_BYTES ? PINGS : LONG_PINGS, &link->best_s[i]);
    CVY_TRY(cvy_comm_agree(comm, status));
    CVY_TRY(comm->ops->broadcast(comm, link->best_s, sizeof link->best_s, from));
    fit(link);
    return CVY_OK;
}

/* Measures messages from each node to the next one, one pair after the other. */
static cvy_status measure_hops(cvy_doctor *d, void *data)
{
    cvy_comm *comm = d->context->comm;
    double *hop_s = NULL;
    cvy_status status = cvy_pool_alloc(d->pool, sizeof *hop_s * (size_t)comm->nnodes, &hop_s);
    CVY_TRY(cvy_comm_agree(comm, status));
    d->hop_bytes = CVY_MIN(d->max_bytes, (int64_t)1 << 20);
    for (int n = 1; n < comm->nnodes && status == CVY_OK; n++) {
        const int from = (int)d->node[n - 1].first, to = (int)d->node[n].first;
        if (comm->rank == from || comm->rank == to)
            status = ping(comm, comm->rank == from ? to : from, data, d->hop_bytes, HOPS, &hop_s[n]);
        hop_s[n] = comm->rank == from ? hop_s[n] : 0;
    }
    CVY_TRY(cvy_comm_agree(comm, status));
    CVY_TRY(comm->ops->allreduce(comm, hop_s, comm->nnodes, CVY_DTYPE_F64, CVY_REDUCE_MAX));
    d->hop_s = hop_s;
    return CVY_OK;
}

/* Finds the first two ranks of the first node that has two; -1: there is none. */
static int second_of_a_node(const cvy_doctor *d, int *first_out)
{
    for (int r = 0; r < d->context->comm->nranks; r++) {
        const int first = (int)d->node[d->topology[r].node].first;
        if (first != r) {
            *first_out = first;
            return r;
        }
    }
    return -1;
}

cvy_status cvy_doctor_measure_messages(cvy_doctor *d)
{
    cvy_comm *comm = d->context->comm;
    void *data = NULL;
    int first = 0;
    const int second = second_of_a_node(d, &first);
    if (comm->nranks == 1)
        return CVY_OK;
    CVY_TRY(cvy_comm_alloc(comm, LONGEST_MESSAGE, &data));
    cvy_status status = second >= 0 ? measure_link(d, first, second, data, &d->inside) : CVY_OK;
    if (status == CVY_OK && comm->nnodes > 1)
        status = measure_link(d, (int)d->node[0].first, (int)d->node[1].first, data, &d->between);
    if (status == CVY_OK && comm->nnodes > 2)
        status = measure_hops(d, data);
    cvy_mem_free(&data);
    return status;
}
