/*
 * selftest_train.c: trains a small network on all ranks: the loss must fall, all ranks must have the same weights, and
 * in deterministic mode a second training, and one on a single rank, must give the same bits. On a device the losses
 * must be those of the host.
 *
 * The samples and labels are random and the same in every step, so the network learns them by heart. A wrong gradient,
 * a sum that is lost, or ranks that differ show in the loss or in the hashes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "health/selftest/selftest_train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_hash.h"
#include "base/machine/base_machine.h"
#include "comm/comm_shards.h"
#include "kernel/kernel_library.h"

enum { STEPS = 30, SHARDS = 8, SAMPLES_OF_A_RANK = 4, LEAST_BATCH = 32, ALONE_RANKS = 16 };
/* The loss after STEPS steps must be less than this part of the first one. */
#define FALLS_TO 0.8

static const char network[] = "name: selftest\n"
                              "model:\n"
                              "  layers:\n"
                              "    - conv: {channels: 8, kernel: 3, pad: 1}\n"
                              "    - relu\n"
                              "    - max_pool: {kernel: 2}\n"
                              "    - conv: {channels: 16, kernel: 3, pad: 1}\n"
                              "    - relu\n"
                              "    - avg_pool: {kernel: 2}\n"
                              "    - fc: {channels: 10}\n"
                              "data: {train: {format: synthetic, samples: 1000000, shape: [3, 16, 16], classes: 10}}\n";

/* ---- the small network ---- */

static int64_t shards_for(int64_t nranks)
{
    int64_t n = SHARDS;
    while (n < nranks)
        n *= 2;
    return n;
}

cvy_status cvy_selftest_train_open(cvy_context *context, int64_t deterministic_ranks, const char *more, cvy_bench *b)
{
    cvy_text text = {0};
    const int64_t nranks = CVY_MAX(deterministic_ranks, context->comm->nranks),
                  batch = CVY_MAX(CVY_MAX(nranks * SAMPLES_OF_A_RANK, shards_for(nranks)), LEAST_BATCH);
    *b = (cvy_bench){0};
    cvy_text_add(&text, "%s%s\ntrain: {batch: %lld, steps: 1000, loss: softmax_cross_entropy, ", network, more,
                 (long long)batch);
    cvy_text_add(&text, "optimizer: {name: sgd, lr: 0.05, momentum: 0.9}}\n");
    if (deterministic_ranks)
        cvy_text_add(&text, "deterministic: true\ndeterministic_shards: %lld\n",
                     (long long)shards_for(deterministic_ranks));
    cvy_status status = text.status;
    const cvy_job_source job = {.size = sizeof job, .text = text.data};
    const cvy_bench_opts opts = {.size = sizeof opts, .job = &job};
    status = cvy_comm_agree(context->comm, status);
    if (status == CVY_OK)
        status = cvy_bench_open(context, &opts, b);
    if (status == CVY_OK)
        status = cvy_bench_plan(b, NULL, NULL);
    cvy_text_free(&text);
    return status;
}

cvy_status cvy_selftest_train_steps(const cvy_selftest *t, cvy_bench *b, int64_t n, double *first_out, double *last_out)
{
    double seconds = 0, loss = NAN;
    for (int64_t i = 0; i < n; i++) {
        CVY_TRY(cvy_bench_step(b, &seconds));
        CVY_TRY(cvy_bench_loss(b, &loss));
        if (i == 0)
            *first_out = loss;
        cvy_selftest_alive(t);
    }
    *last_out = loss;
    return CVY_OK;
}

cvy_status cvy_selftest_train_hash(const cvy_bench *b, int all, uint64_t *hash_out)
{
    const cvy_vars *vars = cvy_program_vars(b->session.program);
    cvy_hasher hasher;
    cvy_hash_begin(&hasher);
    for (int i = 0; i < vars->count; i++) {
        const cvy_variable *v = vars->at[i];
        const size_t bytes = (size_t)cvy_shape_elems(&v->shape) * cvy_dtype_bytes(v->dtype);
        void *data = NULL;
        if (v->role != CVY_ROLE_WEIGHT && !all)
            continue;
        CVY_TRY(cvy_mem_alloc(bytes, &data));
        const cvy_status status = cvy_variable_read(v, data);
        if (status == CVY_OK)
            cvy_hash_add(&hasher, data, bytes);
        cvy_mem_free(&data);
        CVY_TRY(status);
    }
    *hash_out = cvy_hash_end(&hasher);
    return CVY_OK;
}

/* ---- one training ---- */

struct outcome {
    double first, last;
    uint64_t hash;
};

static cvy_status train(const cvy_selftest *t, cvy_context *context, int64_t deterministic_ranks, const char *more,
                        struct outcome *out)
{
    cvy_bench b;
    cvy_status status = cvy_selftest_train_open(context, deterministic_ranks, more, &b);
    if (status == CVY_OK)
        status = cvy_selftest_train_steps(t, &b, STEPS, &out->first, &out->last);
    if (status == CVY_OK)
        status = cvy_program_flush(b.session.program);
    if (status == CVY_OK)
        status = cvy_comm_agree(context->comm, cvy_selftest_train_hash(&b, 0, &out->hash));
    cvy_bench_close(&b);
    return status;
}

static void check_loss(cvy_selftest *t, const char *mode, const struct outcome *o)
{
    if (!(o->last < FALLS_TO * o->first))
        cvy_selftest_fail(
            t,
            "%s: the loss is %.6g after %d steps and was %.6g, expected less than %.6g: look at the checks "
            "of kernels and reductions, and report it",
            mode, o->last, STEPS, o->first, FALLS_TO * o->first);
}

/* Whether this rank has rank 0's value. */
static cvy_status same_as_rank_0(cvy_comm *comm, uint64_t mine, int *same_out)
{
    uint64_t first = mine;
    CVY_TRY(comm->ops->broadcast(comm, &first, sizeof first, 0));
    *same_out = mine == first;
    return CVY_OK;
}

static cvy_status check_replicas(cvy_selftest *t, const char *mode, const struct outcome *o)
{
    int same = 1;
    CVY_TRY(same_as_rank_0(t->context->comm, o->hash, &same));
    if (!same)
        cvy_selftest_fail(
            t,
            "%s: after %d steps this rank has other weights than rank 0 on %s: look at the check of "
            "reductions; if the nodes have different processors, set ONEDNN_MAX_CPU_ISA to what both have",
            mode, STEPS, t->host[0]);
    return CVY_OK;
}

/* Whether ranks have different processors or kernels, so that the last digits of their results may differ. */
static cvy_status has_mixed_kernels(cvy_comm *comm, int *mixed_out)
{
    char text[320] = "", libraries[160] = "", cpu[64];
    cvy_machine_cpu(cpu, sizeof cpu);
    cvy_kernel_libraries_about(NULL, libraries, sizeof libraries);
    snprintf(text, sizeof text, "%s %s %s", cpu, libraries, cvy_selftest_isa_text());
    const int64_t hash = (int64_t)(cvy_hash(text, strlen(text)) >> 1);
    int64_t ends[2] = {hash, -hash};
    CVY_TRY(comm->ops->allreduce(comm, ends, 2, CVY_DTYPE_I64, CVY_REDUCE_MAX));
    *mixed_out = ends[0] != -ends[1];
    return CVY_OK;
}

/* Whether two losses differ by no more than this part of them, or of 0.1: small losses have been summed from larger
 * terms. */
static int is_near(double a, double b, double part)
{
    return fabs(a - b) <= part * fmax(fabs(b), 0.1);
}

/* Trains on the host as well. Sums in another order differ by rounding, and training amplifies it: on the emulated GPU
 * and on PoCL the first losses have eight equal digits, and the last ones are 1e-4 apart. */
static cvy_status compare_with_host(cvy_selftest *t, const struct outcome *o)
{
    struct outcome host = {0};
    CVY_TRY(train(t, t->context, 0, "device: host", &host));
    if (!is_near(o->first, host.first, 1e-5) || !is_near(o->last, host.last, 1e-2))
        cvy_selftest_fail(t,
                          "on %s the loss falls from %.8g to %.8g in %d steps, on the host from %.8g to %.8g: look at "
                          "the check of kernels, and report it",
                          t->context->device, o->first, o->last, STEPS, host.first, host.last);
    return CVY_OK;
}

/* ---- checks ---- */

cvy_status cvy_selftest_training(cvy_selftest *t)
{
    const int is_host = cvy_space_is_host(&t->context->space);
    struct outcome o = {0};
    CVY_TRY(train(t, t->context, 0, "", &o));
    check_loss(t, "sync", &o);
    CVY_TRY(check_replicas(t, "sync", &o));
    if (!is_host)
        CVY_TRY(compare_with_host(t, &o));
    cvy_selftest_pass(t, "the loss falls from %.4g to %.4g in %d steps%s%s", o.first, o.last, STEPS,
                      is_host ? "" : ", as on the host",
                      t->context->comm->nranks > 1 ? ", with the same weights on all ranks" : "");
    return CVY_OK;
}

/* Trains on this rank alone, with the shards of all ranks. */
static cvy_status train_alone(cvy_selftest *t, struct outcome *out)
{
    cvy_comm *comm = NULL;
    cvy_context *alone = NULL;
    cvy_context_opts opts = cvy_context_opts_default();
    opts.threads = t->context->threads;
    opts.device = t->context->device;
    opts.log_level = t->context->opts.log_level;
    opts.log = t->context->opts.log;
    opts.log_user = t->context->opts.log_user;
    CVY_TRY(cvy_comm_create_self(&comm));
    CVY_TRY(cvy_context_create_over(comm, &opts, &alone));
    const cvy_status status = train(t, alone, t->context->comm->nranks, "", out);
    cvy_context_destroy(&alone);
    return status;
}

cvy_status cvy_selftest_deterministic(cvy_selftest *t)
{
    cvy_comm *comm = t->context->comm;
    struct outcome one = {0}, two = {0}, alone = {0};
    const int tries_alone = comm->nranks > 1 && comm->nranks <= ALONE_RANKS;
    if (comm->nranks > CVY_SHARDS_MAX) {
        cvy_selftest_skip(t, "deterministic training is for at most %d ranks", CVY_SHARDS_MAX);
        return CVY_OK;
    }
    CVY_TRY(train(t, t->context, comm->nranks, "", &one));
    CVY_TRY(train(t, t->context, comm->nranks, "", &two));
    check_loss(t, "deterministic", &one);
    CVY_TRY(check_replicas(t, "deterministic", &one));
    if (one.hash != two.hash)
        cvy_selftest_fail(
            t,
            "a second training has weights with the hash %016llx, the first one %016llx: memory, processor "
            "or network are faulty, or this is a fault of convoy: compare nodes, and report it",
            (unsigned long long)two.hash, (unsigned long long)one.hash);
    if (tries_alone)
        CVY_TRY(cvy_comm_agree(comm, train_alone(t, &alone)));
    int mixed = 0;
    CVY_TRY(has_mixed_kernels(comm, &mixed));
    if (tries_alone && one.hash != alone.hash && mixed)
        cvy_selftest_note(t,
                          "the ranks have different processors, and a rank alone computes other bits than all ranks: "
                          "set ONEDNN_MAX_CPU_ISA to what all have");
    else if (tries_alone && one.hash != alone.hash)
        cvy_selftest_fail(t,
                          "this rank alone computes weights with the hash %016llx, all ranks together %016llx: look at "
                          "the check of reductions, and report it",
                          (unsigned long long)alone.hash, (unsigned long long)one.hash);
    cvy_selftest_pass(t, "weights %016llx %s twice%s", (unsigned long long)one.hash,
                      comm->nranks > 1 ? "on all ranks," : "computed",
                      tries_alone && !mixed ? ", and on each rank alone" : "");
    return CVY_OK;
}

cvy_status cvy_selftest_updates(cvy_selftest *t)
{
    cvy_comm *comm = t->context->comm;
    static const struct {
        const char *name, *job;
        int is_for_several;
    } modes[] = {
        {"delayed", "update: {mode: delayed, warm_up: 0 steps, cool_down: 0 steps}", 0},
        {"local", "update: {mode: local, every: 5}", 0},
        {"zero1", "update: zero1", 1},
        {"parameter_server", "update: {mode: parameter_server, servers: 1}", 1},
        {"bf16 on the wire", "comm: {wire: bf16}", 1},
    };
    char tried[160] = "";
    for (int i = 0; i < CVY_COUNT(modes); i++) {
        struct outcome o = {0};
        if (modes[i].is_for_several && comm->nranks == 1)
            continue;
        const cvy_status status = train(t, t->context, 0, modes[i].job, &o);
        if (status < 0)
            return cvy_error_prefix(status, "%s", modes[i].name);
        check_loss(t, modes[i].name, &o);
        CVY_TRY(check_replicas(t, modes[i].name, &o));
        snprintf(tried + strlen(tried), sizeof tried - strlen(tried), "%s%s", *tried ? ", " : "", modes[i].name);
    }
    cvy_selftest_pass(t, "the loss falls with %s", tried);
    return CVY_OK;
}
