/*
 * job_doctor.c: cvy_run_doctor(): who is where, on which cores, how fast the network sums; and what of that is wrong.
 *
 * Every rank tells of itself, all hear it, rank 0 judges. Nothing that is judged depends on the network's absolute speed, which may be what
 * it is meant to be: only on what could be better with the same machines.
 */
#include <convoy/run.h>

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/base_processor.h"
#include "base/base_tree.h"
#include "job/job_bench.h"
#include "job/job_doctor.h"

#define MAX_DEFAULT "256 MiB"
#define SECONDS_DEFAULT 30.0
/* How much slower than the fastest way the chosen one may measure, best and median, from so many bytes on and below: beyond that it is no chance. */
#define FAR_BYTES (64 << 10)
#define FAR_LONG 1.15
#define FAR_SHORT 1.5
/* A link this much slower than the middle one of its kind is called slow. */
#define SLOW_LINK 1.5

/* ---- who is where ---- */

/* What the system would give this process: all cores are asked for, and the former mask comes back. */
static cpu_set_t permitted_cores(const cpu_set_t *mine)
{
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    if (sched_setaffinity(0, sizeof all, &all) != 0)
        return *mine;
    (void)!sched_getaffinity(0, sizeof all, &all);
    (void)!sched_setaffinity(0, sizeof *mine, mine);
    return all;
}

static cvy_doctor_rank tell_of_this_rank(const cvy_context *context)
{
    cvy_doctor_rank r = {.node = context->comm->node, .threads = context->threads, .memory_left_bytes = cvy_mem_left()};
    CPU_ZERO(&r.cores);
    if (gethostname(r.host, sizeof r.host - 1) != 0)
        snprintf(r.host, sizeof r.host, "unknown");
    cvy_machine_cpu(r.cpu, sizeof r.cpu);
    (void)!sched_getaffinity(0, sizeof r.cores, &r.cores);
    r.permitted = permitted_cores(&r.cores);
    return r;
}

static void sum_up_nodes(cvy_doctor *d)
{
    const cvy_comm *comm = d->context->comm;
    for (int r = comm->nranks - 1; r >= 0; r--) {
        const cvy_doctor_rank *rank = &d->rank[r];
        cvy_doctor_node *node = &d->node[rank->node];
        node->first = r;
        node->nranks++;
        node->threads += rank->threads;
        CPU_OR(&node->cores, &node->cores, &rank->cores);
        CPU_OR(&node->permitted, &node->permitted, &rank->permitted);
    }
    d->least_ranks = d->most_ranks = d->node[0].nranks;
    for (int n = 1; n < comm->nnodes; n++) {
        d->least_ranks = CVY_MIN(d->least_ranks, d->node[n].nranks);
        d->most_ranks = CVY_MAX(d->most_ranks, d->node[n].nranks);
    }
}

static cvy_status look_around(cvy_doctor *d)
{
    cvy_comm *comm = d->context->comm;
    const cvy_doctor_rank mine = tell_of_this_rank(d->context);
    cvy_status status = cvy_pool_alloc(d->pool, sizeof *d->rank * (size_t)comm->nranks, &d->rank);
    if (status == CVY_OK)
        status = cvy_pool_alloc(d->pool, sizeof *d->node * (size_t)comm->nnodes, &d->node);
    CVY_TRY(cvy_comm_agree(comm, status));
    CVY_TRY(comm->ops->allgather(comm, &mine, sizeof mine, d->rank));
    comm->ops->about(comm, &d->about);
    sum_up_nodes(d);
    return CVY_OK;
}

/* ---- what is wrong ---- */

static void find(cvy_doctor *d, const char *fmt, ...) CVY_PRINTF(2, 3);
static void find(cvy_doctor *d, const char *fmt, ...)
{
    char text[512];
    va_list args;
    if (d->nfinding == CVY_DOCTOR_FINDINGS)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (cvy_pool_strdup(d->pool, text, &d->finding[d->nfinding]) == CVY_OK)
        d->nfinding++;
}

static void judge_cores(cvy_doctor *d)
{
    for (int n = 0; n < d->context->comm->nnodes; n++) {
        const cvy_doctor_node *node = &d->node[n];
        const int cores = CPU_COUNT(&node->cores), permitted = CPU_COUNT(&node->permitted);
        const char *host = d->rank[node->first].host;
        if (cores < permitted)
            find(d, "the ranks of node %d (%s) are tied to %d of its %d cores; the others idle: start mpiexec with --bind-to none, or give each rank more cores", n,
                 host, cores, permitted);
        if (node->threads > cores)
            find(d, "node %d (%s) has %lld compute threads on %d cores: start fewer ranks, or give --threads", n, host, (long long)node->threads, cores);
    }
}

static void judge_nodes(cvy_doctor *d)
{
    const cvy_comm *comm = d->context->comm;
    if (d->least_ranks != d->most_ranks)
        find(d, "nodes have %lld to %lld ranks: only %lld of each sum between nodes, and a node with few ranks may idle", (long long)d->least_ranks,
             (long long)d->most_ranks, (long long)d->least_ranks);
    if (d->most_ranks > 1 && !d->shared)
        find(d, "ranks of a node cannot open each other's memory through /proc (separate containers, hidepid, a hardened kernel): they sum by messages, which is slower");
    for (int n = 1; n < comm->nnodes; n++) {
        const cvy_doctor_rank *first = &d->rank[d->node[0].first], *here = &d->rank[d->node[n].first];
        if (strcmp(first->host, here->host) == 0) {
            find(d, "nodes 0 and %d are both on host %s: ranks in separate containers, or CONVOY_NODE_RANKS is set", n, first->host);
            break;
        }
        if (strcmp(first->cpu, here->cpu) != 0 || CPU_COUNT(&d->node[0].cores) != CPU_COUNT(&d->node[n].cores)) {
            find(d, "node %d (%s) has %d cores of %s, node 0 has %d of %s: a step takes as long as on the slower one", n, here->host,
                 CPU_COUNT(&d->node[n].cores), here->cpu, CPU_COUNT(&d->node[0].cores), first->cpu);
            break;
        }
    }
    if (comm->nranks > 1 && d->context->threads > 1 && strcmp(d->about.threads, "single") == 0)
        find(d, "the MPI library gives thread level single, and ranks have several threads: ask for MPI_THREAD_FUNNELED");
}

static void judge_links(cvy_doctor *d)
{
    const int nnodes = d->context->comm->nnodes;
    double *sorted = NULL;
    if (!d->hop_s || cvy_pool_alloc(d->pool, sizeof *sorted * (size_t)nnodes, &sorted) != CVY_OK)
        return;
    memcpy(sorted, d->hop_s + 1, sizeof *sorted * (size_t)(nnodes - 1));
    const double middle = cvy_median(sorted, nnodes - 1);
    for (int n = 1; n < nnodes; n++)
        if (d->hop_s[n] > SLOW_LINK * middle)
            find(d, "a message from node %d (%s) to node %d (%s) takes %.1f times as long as between other nodes", n - 1, d->rank[d->node[n - 1].first].host, n,
                 d->rank[d->node[n].first].host, d->hop_s[n] / middle);
}

static void judge_sums(cvy_doctor *d)
{
    for (int i = 0; i < d->nsize; i++) {
        const cvy_doctor_size *size = &d->size[i];
        const int fastest = cvy_doctor_fastest(d, size);
        const double ratio = CVY_MIN(size->best_s[size->chosen] / size->best_s[fastest], size->median_s[size->chosen] / size->median_s[fastest]);
        for (int w = 0; w < d->nway; w++)
            if (size->wrong[w])
                find(d, "sums of %lld bytes by %s have %lld wrong numbers: keep away from it with comm.algorithm, and report it", (long long)size->bytes,
                     d->way[w].name, (long long)size->wrong[w]);
        if (ratio > (size->bytes >= FAR_BYTES ? FAR_LONG : FAR_SHORT))
            find(d, "for sums of %lld bytes `algorithm: auto` takes %s, and %s was %.2f times as fast: other work on the machines, or set comm.algorithm",
                 (long long)size->bytes, d->way[size->chosen].name, d->way[fastest].name, ratio);
    }
}

/* ---- the call ---- */

static cvy_status read_opts(const cvy_doctor_opts *opts, cvy_doctor *d)
{
    cvy_doctor_opts o = {0};
    memcpy(&o, opts, CVY_MIN(opts->size ? opts->size : sizeof o, sizeof o));
    d->seconds = o.seconds > 0 ? o.seconds : SECONDS_DEFAULT;
    if (cvy_text_int(o.max ? o.max : MAX_DEFAULT, &d->max_bytes) != CVY_OK || d->max_bytes < 1024)
        CVY_FAIL(CVY_E_ARGUMENT, "the longest sum is '%s', expected a number of bytes, at least 1 KiB, such as 64MiB", o.max ? o.max : MAX_DEFAULT);
    return CVY_OK;
}

static cvy_status examine(cvy_doctor *d, const cvy_doctor_opts *opts)
{
    CVY_TRY(cvy_comm_agree(d->context->comm, read_opts(opts, d)));
    CVY_TRY(look_around(d));
    CVY_TRY(cvy_doctor_measure_messages(d));
    CVY_TRY(cvy_doctor_measure_sums(d));
    judge_cores(d);
    judge_nodes(d);
    judge_links(d);
    judge_sums(d);
    return CVY_OK;
}

cvy_status cvy_run_doctor(cvy_context *context, const cvy_doctor_opts *opts, const char *how, char **text_out)
{
    cvy_doctor *d = NULL;
    cvy_pool *pool = NULL;
    const int is_json = strcmp(how, "json") == 0;
    *text_out = NULL;
    CVY_CHECK(is_json || strcmp(how, "table") == 0, CVY_E_ARGUMENT, "the result is wanted as '%s', expected table or json", how);
    cvy_status status = cvy_pool_create(&pool);
    if (status == CVY_OK)
        status = cvy_pool_alloc(pool, sizeof *d, &d);
    status = cvy_comm_agree(context->comm, status);
    if (status == CVY_OK) {
        *d = (cvy_doctor){.context = context, .pool = pool, .begin_s = cvy_clock_s(), .inside.from = -1, .between.from = -1};
        status = examine(d, opts);
    }
    if (status == CVY_OK && context->comm->rank == 0)
        status = is_json ? cvy_doctor_print_json(d, text_out) : cvy_doctor_print_table(d, text_out);
    cvy_pool_destroy(&pool);
    return cvy_comm_agree(context->comm, status);
}
