/*
 * selftest_sums.c: reductions on this network, compared with their exact values: by each algorithm, through memory of
 * the node and by messages, in f32, f64, and f32 that travels as bf16; memory that the ranks of a node share; and sums
 * over groups of ranks.
 *
 * Each rank contributes small whole numbers, which differ from rank to rank and from element to element. Their sums are
 * exact in every dtype and in every order of additions, so each element has one right value.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "comm/comm_allreduce.h"
#include "health/selftest/selftest.h"

enum { PERIOD = 13, PERIOD_BF16 = 3, BF16_RANKS = 256 };
enum { MOST_BYTES = 4 << 20, NODE_BYTES = 1 << 16 };

static const int64_t sizes[] = {1, 2, 3, 17, 1000, 4099, 65537, 524288}; /* the last one is 4 MiB of f64 */
static const cvy_dtype wires[] = {CVY_DTYPE_F32, CVY_DTYPE_F64, CVY_DTYPE_BF16};

/* ---- numbers with exact sums ---- */

/* bf16 holds whole numbers up to 256, so the numbers are -1, 0 and 1, and there are at most 256 ranks. */
static double number_of(cvy_dtype wire, int rank, int64_t i)
{
    return wire == CVY_DTYPE_BF16 ? (double)((rank + i) % PERIOD_BF16) - 1 : (double)((rank + i) % PERIOD);
}

static double sum_of(cvy_dtype wire, int nranks, int64_t i)
{
    double sum = 0;
    for (int r = 0; r < nranks; r++)
        sum += number_of(wire, r, i);
    return sum;
}

/* Numbers that travel as bf16 are f32 in memory. */
static double get(cvy_dtype wire, const void *data, int64_t i)
{
    return wire == CVY_DTYPE_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

void cvy_selftest_sum_fill(cvy_dtype wire, void *data, int64_t count, int rank)
{
    for (int64_t i = 0; i < count; i++)
        if (wire == CVY_DTYPE_F64)
            ((double *)data)[i] = number_of(wire, rank, i);
        else
            ((float *)data)[i] = (float)number_of(wire, rank, i);
}

int64_t cvy_selftest_sum_check(cvy_dtype wire, const void *data, int64_t count, int nranks, int64_t *first_out)
{
    double sums[PERIOD * PERIOD_BF16];
    int64_t wrong = 0;
    *first_out = -1;
    for (int i = 0; i < CVY_COUNT(sums); i++)
        sums[i] = sum_of(wire, nranks, i);
    for (int64_t i = 0; i < count; i++)
        if (get(wire, data, i) != sums[i % CVY_COUNT(sums)] && wrong++ == 0)
            *first_out = i;
    return wrong;
}

/* ---- reductions by each algorithm ---- */

struct plan {
    const char *algorithm; /* NULL: the one that a training would take */
    int by_node;
    cvy_dtype wire;
    int64_t count;
};

static const char *plan_text(const struct plan *p, char text[96])
{
    snprintf(text, 96, "all-reduce of %lld elements of %s by %s%s", (long long)p->count, cvy_dtype_text(p->wire),
             p->algorithm ? p->algorithm : "auto", p->by_node ? " through the node's memory" : "");
    return text;
}

/* Judges what a reduction left in this rank's memory. */
static void judge(cvy_selftest *t, const struct plan *p, const void *data)
{
    int64_t first = -1;
    char text[96];
    const int nranks = t->context->comm->nranks;
    const int64_t wrong = cvy_selftest_sum_check(p->wire, data, p->count, nranks, &first);
    if (wrong)
        cvy_selftest_fail(t,
                          "%s: %lld elements are wrong, first element %lld is %.9g, expected %.9g: avoid it by "
                          "comm.algorithm, try another version of the MPI library, and report it",
                          plan_text(p, text), (long long)wrong, (long long)first, get(p->wire, data, first),
                          sum_of(p->wire, nranks, first));
}

static cvy_status try_plan(cvy_selftest *t, const struct plan *p, void *data, int64_t *done)
{
    cvy_comm *comm = t->context->comm;
    cvy_request *request = NULL;
    char text[96];
    const cvy_dtype dtype = p->wire == CVY_DTYPE_F64 ? CVY_DTYPE_F64 : CVY_DTYPE_F32;
    const cvy_allreduce_opts opts = {
        .algorithm = p->algorithm, .no_node = !p->by_node, .threads = t->context->threads, .wire = p->wire};
    cvy_status status = cvy_comm_agree(comm, comm->reduce->create(comm, &opts, data, p->count, dtype, NULL, &request));
    if (status == CVY_OK) {
        cvy_selftest_sum_fill(p->wire, data, p->count, comm->rank);
        status = comm->ops->barrier(comm); /* other ranks of the node read this memory */
    }
    if (status == CVY_OK)
        status = cvy_comm_finish(comm, request);
    if (status == CVY_OK) {
        judge(t, p, data);
        status = comm->ops->barrier(comm);
    }
    comm->reduce->destroy(&request);
    *done += 1;
    cvy_selftest_alive(t);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s", plan_text(p, text));
}

static cvy_status try_algorithms(cvy_selftest *t, void *data, int shared, int64_t *done)
{
    int count = 0;
    const int nranks = t->context->comm->nranks, nnodes = t->context->comm->nnodes;
    const cvy_allreduce_def *const *def = cvy_allreduce_table(&count);
    for (int by_node = 0; by_node <= shared; by_node++)
        for (int a = -1; a <= count; a++)
            for (int w = 0; w < CVY_COUNT(wires); w++)
                for (int s = 0; s < CVY_COUNT(sizes); s++) {
                    const struct plan p = {.algorithm = a < 0        ? NULL
                                                        : a == count ? "library"
                                                                     : def[a]->name,
                                           .by_node = by_node,
                                           .wire = wires[w],
                                           .count = sizes[s]};
                    if (by_node && nnodes == 1 && a >= 0)
                        continue; /* nothing is sent between nodes, so all algorithms are the same */
                    if (p.wire == CVY_DTYPE_BF16 && nranks > BF16_RANKS)
                        continue;
                    CVY_TRY(try_plan(t, &p, data, done));
                }
    return CVY_OK;
}

/* The blocking collectives, with which ranks agree on errors and requests. */
static cvy_status try_blocking(cvy_selftest *t)
{
    cvy_comm *comm = t->context->comm;
    const int64_t n = comm->nranks;
    int64_t number[3] = {comm->rank + 1, comm->rank + 1, -(comm->rank + 1)};
    double real = comm->rank + 0.5;
    CVY_TRY(comm->ops->allreduce(comm, number, 1, CVY_DTYPE_I64, CVY_REDUCE_SUM));
    CVY_TRY(comm->ops->allreduce(comm, number + 1, 2, CVY_DTYPE_I64, CVY_REDUCE_MAX));
    CVY_TRY(comm->ops->allreduce(comm, &real, 1, CVY_DTYPE_F64, CVY_REDUCE_SUM));
    if (number[0] != n * (n + 1) / 2 || number[1] != n || number[2] != -1 || real != 0.5 * (double)(n * n))
        cvy_selftest_fail(
            t,
            "a blocking all-reduce gives sum %lld, largest %lld, smallest %lld and real sum %.9g, expected "
            "%lld, %lld, 1 and %.9g: try another version of the MPI library",
            (long long)number[0], (long long)number[1], -(long long)number[2], real, (long long)(n * (n + 1) / 2),
            (long long)n, 0.5 * (double)(n * n));
    return CVY_OK;
}

cvy_status cvy_selftest_sums(cvy_selftest *t)
{
    cvy_comm *comm = t->context->comm;
    const cvy_allreduce_opts opts = {.threads = t->context->threads};
    void *data = NULL;
    int shared = 0;
    int64_t done = 0;
    if (comm->nranks == 1) {
        cvy_selftest_skip(t, "there is one rank");
        return CVY_OK;
    }
    cvy_status status = cvy_comm_agree(comm, cvy_mem_alloc_pages(MOST_BYTES, &data));
    if (status == CVY_OK)
        status = try_blocking(t);
    if (status == CVY_OK)
        status = comm->node_memory->share(comm, &opts, data, MOST_BYTES, &shared);
    if (status == CVY_OK)
        status = try_algorithms(t, data, shared, &done);
    if (shared)
        comm->node_memory->unshare(comm, data);
    cvy_mem_free_pages(&data, MOST_BYTES);
    cvy_selftest_pass(t, "%lld all-reduces over %d ranks are exact, of 1 element to 4 MiB, by %s", (long long)done,
                      comm->nranks, shared ? "messages and the node's memory" : "messages");
    return status;
}

/* ---- memory that the ranks of a node share ---- */

static int64_t word_of(const cvy_comm *comm, int node_rank, int64_t i)
{
    return ((int64_t)comm->node * 1000003 + node_rank) * 65537 + i;
}

/* Each rank writes a part, and all read the parts of all. */
static cvy_status try_node_memory(cvy_selftest *t, int64_t *memory)
{
    cvy_comm *comm = t->context->comm;
    const int64_t each = NODE_BYTES / (int64_t)sizeof *memory / comm->node_nranks;
    for (int64_t i = 0; i < each; i++)
        memory[comm->node_rank * each + i] = word_of(comm, comm->node_rank, i);
    CVY_TRY(comm->ops->barrier(comm));
    for (int r = 0; r < comm->node_nranks; r++)
        for (int64_t i = 0; i < each; i++)
            if (memory[r * each + i] != word_of(comm, r, i)) {
                cvy_selftest_fail(
                    t,
                    "word %lld of what rank %d of this node wrote into shared memory is not seen here: do "
                    "not use this node",
                    (long long)i, r);
                return comm->ops->barrier(comm);
            }
    return comm->ops->barrier(comm);
}

cvy_status cvy_selftest_node_memory(cvy_selftest *t)
{
    cvy_comm *comm = t->context->comm;
    void *memory = NULL;
    if (!comm->shares_nodes || !comm->node_memory) {
        cvy_selftest_skip(t, comm->nranks == 1 ? "there is one rank" : "each node has one rank");
        return CVY_OK;
    }
    CVY_TRY(comm->node_memory->alloc(comm, NODE_BYTES, &memory));
    if (!memory) {
        cvy_selftest_skip(t, "the ranks of a node exchange messages, which is slower than memory that they share (%s)",
                          *comm->unshared ? comm->unshared : "it cannot be made");
        return CVY_OK;
    }
    const cvy_status status = try_node_memory(t, memory);
    comm->node_memory->free(comm, &memory, NODE_BYTES);
    cvy_selftest_pass(t, "%d ranks of this node see what the others write", comm->node_nranks);
    return status;
}

/* ---- groups ---- */

/* The ranks of the group must be those of this color, in reverse order, and their sum must be that of these ranks. */
static cvy_status try_group(cvy_selftest *t, cvy_comm *part, int ncolors)
{
    const cvy_comm *comm = t->context->comm;
    const int color = comm->rank % ncolors, n = (comm->nranks - color + ncolors - 1) / ncolors;
    int64_t sum = comm->rank, expected = 0;
    int *member = NULL;
    CVY_TRY(cvy_comm_alloc(part, sizeof *member * (size_t)part->nranks, &member));
    cvy_status status = part->ops->allgather(part, &comm->rank, sizeof comm->rank, member);
    int in_order = part->nranks == n;
    for (int i = 0; i < n && status == CVY_OK && in_order; i++) {
        expected += color + i * ncolors;
        in_order = member[i] == color + (n - 1 - i) * ncolors;
    }
    cvy_mem_free(&member);
    if (status == CVY_OK)
        status = part->ops->allreduce(part, &sum, 1, CVY_DTYPE_I64, CVY_REDUCE_SUM);
    if (status == CVY_OK && (!in_order || sum != expected))
        cvy_selftest_fail(
            t,
            "the group of every %dth rank from %d has %d ranks with the sum %lld, expected %d and %lld: try "
            "another version of the MPI library",
            ncolors, color, part->nranks, (long long)sum, n, (long long)expected);
    return status;
}

cvy_status cvy_selftest_groups(cvy_selftest *t)
{
    cvy_comm *comm = t->context->comm;
    static const int colors[] = {1, 2, 3};
    if (comm->nranks == 1) {
        cvy_selftest_skip(t, "there is one rank");
        return CVY_OK;
    }
    for (int i = 0; i < CVY_COUNT(colors); i++) {
        cvy_comm *part = NULL;
        CVY_TRY(cvy_comm_split(comm, comm->rank % colors[i], -comm->rank, &part));
        const cvy_status status = try_group(t, part, colors[i]);
        part->ops->destroy(part);
        CVY_TRY(cvy_comm_agree(comm, status));
    }
    cvy_selftest_pass(t, "sums over all, every second and every third rank, in reverse order, are exact");
    return CVY_OK;
}
