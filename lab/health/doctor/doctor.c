/*
 * doctor.c: cvy_run_doctor(): lists nodes, ranks and cores, measures files and network, and reports problems.
 *
 * Each rank describes itself, all ranks receive this, and rank 0 judges it. The absolute speed of the network is not
 * judged, because it may be as intended. Only what could be better on the same machines is a finding. For clocks and
 * files, a finding is what makes a run wrong or noticeably slow.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "base/base_protection.h"
#include "base/machine/base_clock.h"
#include "base/machine/base_cores.h"
#include "base/machine/base_machine.h"
#include "base/text/base_text.h"
#include "base/text/base_tree.h"
#include "context/context_device.h"
#include "health/doctor/doctor.h"
#include "health/health.h"
#include "measure/measure_bench.h"

#define MAX_DEFAULT "256 MiB"
#define SECONDS_DEFAULT 30.0
/* Limits for the chosen method's time relative to the fastest one. Both the best time and the median must exceed the
 * limit, so it is not chance. FAR_LONG is for at least FAR_BYTES, FAR_SHORT for fewer. */
#define FAR_BYTES (64 << 10)
#define FAR_LONG 1.15
#define FAR_SHORT 1.5
/* A link is called slow if it is slower than the median of its kind by this factor. */
#define SLOW_LINK 1.5
/* Clocks: a difference that people notice in logs and file times; a reading so slow that it must be a syscall; a change
 * that is larger than the slew of a time service. */
#define CLOCKS_APART_S 1.0
#define SLOW_READ_S 1e-6
#define CLOCK_SET_S 0.1
/* Files: beyond these limits a checkpoint of 1 GB takes a minute, or each small file that must be on disk causes a
 * noticeable delay. */
#define SLOW_DISK 16e6
#define SLOW_SMALL_S 0.5
#define LITTLE_ROOM (1 << 30)
/* Cores: other programs use this much of a core. */
#define OTHERS_MIN 0.3

/* ---- nodes, ranks and cores ---- */

static void sum_up_nodes(cvy_doctor *d)
{
    const cvy_comm *comm = d->context->comm;
    for (int r = comm->nranks - 1; r >= 0; r--) {
        const cvy_rank_topology *place = &d->topology[r];
        cvy_doctor_node *node = &d->node[place->node];
        node->first = r;
        node->nranks++;
        node->threads += place->threads;
        CPU_OR(&node->mask, &node->mask, &place->mask);
        CPU_OR(&node->cores, &node->cores, &place->cores);
        CPU_OR(&node->permitted, &node->permitted, &place->permitted);
    }
    d->least_ranks = d->most_ranks = d->node[0].nranks;
    for (int n = 1; n < comm->nnodes; n++) {
        d->least_ranks = CVY_MIN(d->least_ranks, d->node[n].nranks);
        d->most_ranks = CVY_MAX(d->most_ranks, d->node[n].nranks);
    }
}

static cvy_status look_for_devices(cvy_doctor_rank *mine)
{
    cvy_text lines = {0}, libraries = {0};
    const char *file = cvy_device_file();
    cvy_status status = cvy_device_print(&lines, &mine->gpus);
    if (status == CVY_OK)
        status = cvy_device_libraries(&libraries);
    snprintf(mine->libraries, sizeof mine->libraries, "%s", status == CVY_OK && libraries.data ? libraries.data : "");
    snprintf(mine->devices, sizeof mine->devices, "%s", status == CVY_OK && lines.data ? lines.data : "");
    snprintf(mine->gpu_file, sizeof mine->gpu_file, "%s", file ? file : "");
    mine->is_masked = cvy_device_is_masked();
    cvy_text_free(&libraries);
    cvy_text_free(&lines);
    return status;
}

static cvy_status gather_topology(cvy_doctor *d)
{
    cvy_comm *comm = d->context->comm;
    cvy_doctor_rank mine = {.memory_left_bytes = cvy_mem_left()};
    cvy_machine_cpu(mine.cpu, sizeof mine.cpu);
    cvy_status status = look_for_devices(&mine);
    if (status == CVY_OK)
        status = cvy_pool_alloc(d->pool, sizeof *d->rank * (size_t)comm->nranks, &d->rank);
    if (status == CVY_OK)
        status = cvy_pool_alloc(d->pool, sizeof *d->topology * (size_t)comm->nranks, &d->topology);
    if (status == CVY_OK)
        status = cvy_pool_alloc(d->pool, sizeof *d->node * (size_t)comm->nnodes, &d->node);
    CVY_TRY(cvy_comm_agree(comm, status));
    CVY_TRY(cvy_topology_gather(d->context, d->topology));
    CVY_TRY(comm->ops->allgather(comm, &mine, sizeof mine, d->rank));
    d->about = (cvy_comm_about){.threads = ""};
    if (comm->probe)
        comm->probe->about(comm, &d->about);
    sum_up_nodes(d);
    return CVY_OK;
}

/* ---- findings ---- */

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

static cvy_status check_topology(cvy_doctor *d)
{
    cvy_text bad = {0};
    const cvy_status status = cvy_topology_check(d->topology, d->context->comm->nranks, &bad);
    for (const char *line = bad.data; status == CVY_OK && line && *line; line = strchr(line, '\n') + 1)
        find(d, "%.*s", (int)strcspn(line, "\n"), line);
    cvy_text_free(&bad);
    return status;
}

static const char *host_of(const cvy_doctor *d, int rank)
{
    return d->topology[rank].host;
}

static void check_clock(cvy_doctor *d)
{
    const cvy_doctor_clock *c = &d->clock;
    if (!c->is_known)
        return;
    if (fabs(c->apart_s) > CLOCKS_APART_S)
        find(d,
             "the clock of %s (rank %d) is %.1f s %s that of %s: the times of files and log lines cannot be compared, "
             "and limits "
             "count from different moments: have a time"
             " service (chrony, ntpd) set it",
             host_of(d, c->apart_rank), c->apart_rank, fabs(c->apart_s), c->apart_s > 0 ? "ahead of" : "behind",
             host_of(d, 0));
    if (c->back > 0)
        find(d,
             "the monotonic clock of %s (rank %d) went back, %lld times over all ranks: times measured there, and "
             "timeouts, are wrong: see /sys/devices/system/clocksource/clocksource0, and do not use that node",
             host_of(d, c->back_rank), c->back_rank, (long long)c->back);
    if (fabs(c->set_s) > CLOCK_SET_S)
        find(d, "the wall clock of %s (rank %d) was set by %.2f s while this ran", host_of(d, c->set_rank), c->set_rank,
             c->set_s);
    if (c->read_s > SLOW_READ_S)
        find(d,
             "reading the clock of %s (rank %d) takes %.1f us: its clock source is slow (current_clocksource in "
             "/sys/devices/system/clocksource/clocksource0,"
             " expected tsc)",
             host_of(d, c->read_rank), c->read_rank, 1e6 * c->read_s);
}

static void check_files(cvy_doctor *d)
{
    const cvy_doctor_files *f = &d->files;
    char guard[CVY_PROTECTION_TEXT];
    while (cvy_protection_take(guard))
        find(d, "%s", guard);
    if (*f->fault)
        find(d, "%s: a run could not write its checkpoints in %s: name a folder by --out that can be written", f->fault,
             f->folder);
    if (f->wrong_at >= 0)
        find(d, "byte %lld of a file in %s was not read as it was written: do not trust this file system",
             (long long)f->wrong_at, f->folder);
    if (f->nunseen > 0)
        find(d,
             "rank %d on %s (%d rank%s in all) does not see what rank 0 on %s makes in %s: the folder is not shared, "
             "and the parts of a checkpoint that the nodes write would not be in one place: start in a shared folder",
             f->unseen_rank, host_of(d, f->unseen_rank), f->nunseen, f->nunseen == 1 ? "" : "s", host_of(d, 0),
             f->folder);
    if (!f->is_known)
        return;
    if (f->free_bytes < LITTLE_ROOM)
        find(d, "%s has room for %.0f MB only", f->folder, 1e-6 * (double)f->free_bytes);
    if ((double)f->bytes < SLOW_DISK * f->write_s)
        find(d, "%s takes %.1f MB/s: a checkpoint of 1 GB needs %.0f s; is there a faster file system for --out?",
             f->folder, 1e-6 * (double)f->bytes / f->write_s, 1e9 * f->write_s / (double)f->bytes);
    if (f->small_s > SLOW_SMALL_S)
        find(d, "a small file in %s takes %.2f s to be safe on the disk: each save waits for some of them", f->folder,
             f->small_s);
}

static void check_nodes(cvy_doctor *d)
{
    const cvy_comm *comm = d->context->comm;
    if (d->least_ranks != d->most_ranks)
        find(d,
             "nodes have %lld to %lld ranks: only %lld of each take part in all-reduces between nodes, and cores of a "
             "node with few ranks may idle",
             (long long)d->least_ranks, (long long)d->most_ranks, (long long)d->least_ranks);
    if (d->most_ranks > 1 && !d->shared)
        find(d, "ranks of a node reduce by messages, which is slower than by shared memory (%s)", comm->unshared);
    for (int n = 1; n < comm->nnodes; n++) {
        const cvy_doctor_rank *first = &d->rank[d->node[0].first], *here = &d->rank[d->node[n].first];
        const char *host = host_of(d, (int)d->node[n].first);
        if (strcmp(host_of(d, 0), host) == 0) {
            find(d, "nodes 0 and %d are both on host %s: ranks in separate containers, or CONVOY_NODE_RANKS is set", n,
                 host);
            break;
        }
        if (strcmp(first->cpu, here->cpu) != 0 || CPU_COUNT(&d->node[0].cores) != CPU_COUNT(&d->node[n].cores)) {
            find(d, "node %d (%s) has %d cores of %s, node 0 has %d of %s: a step takes as long as on the slower one",
                 n, host, CPU_COUNT(&d->node[n].cores), here->cpu, CPU_COUNT(&d->node[0].cores), first->cpu);
            break;
        }
    }
    if (comm->nranks > 1 && d->context->threads > 1 && strcmp(d->about.threads, "single") == 0)
        find(d,
             "the MPI library gives thread level single, and ranks have several threads: ask for MPI_THREAD_FUNNELED");
}

/* Of the first node that has one of these faults. */
static void check_devices(cvy_doctor *d)
{
    for (int n = 0; n < d->context->comm->nnodes; n++) {
        const cvy_doctor_node *node = &d->node[n];
        const cvy_doctor_rank *first = &d->rank[node->first];
        const char *host = host_of(d, (int)node->first);
        if (first->gpus == 0 && *first->gpu_file) {
            find(d,
                 "node %s has a GPU (%s), but no driver of convoy reaches it (%.*s): install the OpenCL driver of its "
                 "maker and libOpenCL.so.1",
                 host, first->gpu_file, (int)strcspn(first->devices, "\n"), first->devices);
            return;
        }
        if (first->gpus != d->rank[0].gpus) {
            find(
                d,
                "rank %lld on %s finds %d GPUs, and rank 0 on %s finds %d: with `device: auto` all ranks need the same "
                "driver",
                (long long)node->first, host, first->gpus, host_of(d, 0), d->rank[0].gpus);
            return;
        }
        if (first->gpus > 0 && !first->is_masked && node->nranks > first->gpus) {
            find(d,
                 "node %s has %lld ranks and %d GPU%s: with `device: auto` several ranks compute on one GPU, in turns, "
                 "and share its memory: start %d there",
                 host, (long long)node->nranks, first->gpus, first->gpus == 1 ? "" : "s", first->gpus);
            return;
        }
    }
}

/* The libraries of a vendor that a node has devices for and lacks; of the first such node. */
static void check_libraries(cvy_doctor *d)
{
    for (int n = 0, found = 0; n < d->context->comm->nnodes && !found; n++) {
        const cvy_doctor_node *node = &d->node[n];
        for (const char *at = d->rank[node->first].libraries; *at; at += strcspn(at, "\n") + 1) {
            const int length = (int)strcspn(at, "\n"), key = (int)strcspn(at, " \n");
            if (strncmp(at + key, " none: ", 7) != 0)
                continue;
            find(d, "node %s has a device of CUDA and no %.*s, with which it is faster: %.*s",
                 host_of(d, (int)node->first), key, at, length - key - 7, at + key + 7);
            found = 1;
        }
    }
}

static void check_links(cvy_doctor *d)
{
    const int nnodes = d->context->comm->nnodes;
    double *sorted = NULL;
    if (!d->hop_s || cvy_pool_alloc(d->pool, sizeof *sorted * (size_t)nnodes, &sorted) != CVY_OK)
        return;
    memcpy(sorted, d->hop_s + 1, sizeof *sorted * (size_t)(nnodes - 1));
    const double middle = cvy_median(sorted, nnodes - 1);
    for (int n = 1; n < nnodes; n++)
        if (d->hop_s[n] > SLOW_LINK * middle)
            find(d, "a message from node %d (%s) to node %d (%s) takes %.1f times as long as between other nodes",
                 n - 1, host_of(d, (int)d->node[n - 1].first), n, host_of(d, (int)d->node[n].first),
                 d->hop_s[n] / middle);
}

static void check_reductions(cvy_doctor *d)
{
    for (int i = 0; i < d->nsize; i++) {
        const cvy_doctor_size *size = &d->size[i];
        const int fastest = cvy_doctor_fastest(d, size);
        const double ratio = CVY_MIN(size->best_s[size->chosen] / size->best_s[fastest],
                                     size->median_s[size->chosen] / size->median_s[fastest]);
        for (int w = 0; w < d->nmethods; w++)
            if (size->wrong[w])
                find(d,
                     "all-reduces of %lld bytes by %s have %lld wrong numbers: avoid this algorithm with "
                     "comm.algorithm, and report it",
                     (long long)size->bytes, d->method[w].name, (long long)size->wrong[w]);
        if (ratio > (size->bytes >= FAR_BYTES ? FAR_LONG : FAR_SHORT))
            find(d,
                 "for all-reduces of %lld bytes `algorithm: auto` uses %s, and %s was %.2f times as fast: other work "
                 "on the "
                 "machines, or set comm.algorithm",
                 (long long)size->bytes, d->method[size->chosen].name, d->method[fastest].name, ratio);
    }
}

/* Other programs on the cores of rank 0. Ranks that share their cores would take each other for other programs. */
static void check_others(cvy_doctor *d, const cvy_cores_use *begin)
{
    const cvy_context *c = d->context;
    const cvy_cores_use end = cvy_cores_use_now();
    double busy = 0, others = 0;
    if (c->sharing == 1 && cvy_cores_used(begin, &end, &busy, &others) && others > OTHERS_MIN)
        find(
            d,
            "other programs use %.1f of the %d core%s of rank 0 on %s: steps with threads on all cores would be slowed "
            "down by more than that; use fewer threads, or set OMP_WAIT_POLICY=passive",
            others, c->cores, c->cores == 1 ? "" : "s", host_of(d, 0));
}

/* ---- the call ---- */

static cvy_status read_opts(const cvy_doctor_opts *opts, cvy_doctor *d)
{
    cvy_doctor_opts o;
    CVY_TRY(CVY_OPTS_READ(cvy_doctor_opts, opts, &o));
    d->seconds = o.seconds > 0 ? o.seconds : SECONDS_DEFAULT;
    d->wants_platform = o.platform;
    d->files.folder = o.out && *o.out ? o.out : ".";
    if (cvy_text_int(o.max ? o.max : MAX_DEFAULT, &d->max_bytes) != CVY_OK || d->max_bytes < 1024)
        CVY_FAIL(CVY_E_ARGUMENT,
                 "the largest all-reduce is '%s', expected a number of bytes, at least 1 KiB, such as 64MiB",
                 o.max ? o.max : MAX_DEFAULT);
    return CVY_OK;
}

static cvy_status examine(cvy_doctor *d, const cvy_doctor_opts *opts)
{
    const cvy_cores_use begin = cvy_cores_use_now();
    CVY_TRY(cvy_comm_agree(d->context->comm, read_opts(opts, d)));
    CVY_TRY(gather_topology(d));
    if (d->wants_platform)
        CVY_TRY(cvy_doctor_measure_platform(d));
    CVY_TRY(cvy_doctor_measure_files(d));
    CVY_TRY(cvy_doctor_measure_messages(d));
    CVY_TRY(cvy_doctor_measure_reductions(d));
    CVY_TRY(cvy_doctor_measure_clock(d));
    CVY_TRY(cvy_comm_agree(d->context->comm, check_topology(d)));
    check_clock(d);
    check_files(d);
    check_nodes(d);
    check_devices(d);
    check_libraries(d);
    check_links(d);
    check_reductions(d);
    check_others(d, &begin);
    return CVY_OK;
}

/* ---- the report ---- */

void cvy_doctor_report_release(cvy_doctor_report *report)
{
    cvy_mem_free(&report->lines);
    cvy_mem_free(&report->json);
    cvy_mem_free(&report->platform);
}

static cvy_status print(const cvy_doctor *d, cvy_doctor_report *out)
{
    CVY_TRY(cvy_doctor_print_json(d, &out->json));
    CVY_TRY(cvy_doctor_print_table(d, &out->lines));
    return d->platform.is_measured ? cvy_doctor_print_platform(d, &out->platform) : CVY_OK;
}

cvy_status cvy_run_libraries(char **text_out)
{
    CVY_ENTRY();
    cvy_text text = {0};
    cvy_text_add(&text, "%s", "");
    (void)cvy_device_libraries(&text);
    return cvy_text_take(&text, text_out);
}

cvy_status cvy_run_doctor(cvy_context *context, const cvy_doctor_opts *opts, cvy_doctor_report *report_out)
{
    CVY_ENTRY();
    cvy_doctor *d = NULL;
    cvy_pool *pool = NULL;
    *report_out = (cvy_doctor_report){0};
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_status status = cvy_pool_create(&pool);
    if (status == CVY_OK)
        status = cvy_pool_alloc(pool, sizeof *d, &d);
    status = cvy_comm_agree(context->comm, status);
    if (status == CVY_OK) {
        *d = (cvy_doctor){.context = context,
                          .pool = pool,
                          .begin_s = cvy_clock_s(),
                          .clock.begin_wall_s = cvy_clock_wall_s(),
                          .files.wrong_at = -1,
                          .inside.from = -1,
                          .between.from = -1};
        status = examine(d, opts);
    }
    if (status == CVY_OK && context->comm->rank == 0)
        status = print(d, report_out);
    cvy_pool_destroy(&pool);
    status = cvy_comm_agree(context->comm, status);
    if (status != CVY_OK)
        cvy_doctor_report_release(report_out);
    return status;
}
