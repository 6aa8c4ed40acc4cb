/*
 * context.c: creates contexts of one rank or of the ranks of a user's communicator; writes the log.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "context/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_hash.h"
#include "base/base_mem.h"
#include "base/base_opts.h"
#include "base/base_printable.h"
#include "base/base_process.h"
#include "base/base_protection.h"
#include "base/base_signals.h"
#include "base/machine/base_team.h"
#include "comm/mpi/comm_mpi.h"
#include "context/context_device.h"
#include "context/context_threads.h"
#include <convoy/mpi.h>

static cvy_status check_watchdog(double limit_s)
{
    CVY_CHECK(limit_s >= 0 && limit_s <= 1e9, CVY_E_ARGUMENT,
              "watchdog_s is %g, expected seconds, or 0 for a wait without limit", limit_s);
    return CVY_OK;
}

/* A rank waits longer than opts.watchdog_s. */
static void report_stall(void *user, const char *text)
{
    const cvy_context *context = user;
    if (!context->opts.fatal) {
        cvy_log_local(context, CVY_LOG_ERROR, "%s", text);
        return;
    }
    CVY_CALLBACK();
    context->opts.fatal(context->opts.fatal_user, CVY_E_COMM, text);
}

static cvy_status start_watchdog(cvy_context *context)
{
    const cvy_comm_watch_opts opts = {context->opts.watchdog_s, report_stall, context};
    CVY_TRY(cvy_comm_agree(context->comm, check_watchdog(opts.limit_s)));
    return cvy_comm_watch(context->comm, &opts);
}

static cvy_status open_device(cvy_context *context)
{
    const cvy_context_opts *o = &context->opts;
    cvy_device_use use;
    CVY_TRY(cvy_device_open(context, o->device ? o->device : o->backend, &use));
    cvy_device_put(context, &use);
    return CVY_OK;
}

/* speaks: warns if the number of threads is not what this process may use. */
static cvy_status create_over(cvy_comm *comm, const cvy_context_opts *opts, int speaks, cvy_context **out)
{
    cvy_context *context = NULL;
    cvy_status status = cvy_handle_alloc(CVY_HANDLE_CONTEXT, sizeof *context, &context);
    if (status != CVY_OK) {
        comm->ops->destroy(comm);
        return status;
    }
    context->comm = comm;
    status = cvy_comm_agree(comm, CVY_OPTS_READ(cvy_context_opts, opts, &context->opts));
    if (status == CVY_OK)
        status = cvy_threads_choose(context, speaks);
    if (context->threads > 1)
        cvy_process_bind();
    status = cvy_comm_agree(comm, status);
    context->turn = comm->node_rank;
    if (status == CVY_OK)
        status = open_device(context);
    if (status == CVY_OK)
        status = start_watchdog(context);
    if (status != CVY_OK) {
        cvy_context_destroy(&context);
        return status;
    }
    if (cvy_math_was_unusual())
        cvy_team_start(context->threads);
    *out = context;
    return CVY_OK;
}

cvy_status cvy_context_create_over(cvy_comm *comm, const cvy_context_opts *opts, cvy_context **out)
{
    return create_over(comm, opts, 0, out);
}

cvy_status cvy_context_create(const cvy_context_opts *opts, cvy_context **context_out)
{
    CVY_ENTRY();
    cvy_comm *comm = NULL;
    CVY_CHECK(context_out, CVY_E_ARGUMENT, "cvy_context_create() needs a place for the context");
    CVY_TRY(cvy_comm_create_self(&comm));
    return create_over(comm, opts, 1, context_out);
}

void cvy_mpi_prepare(void)
{
    CVY_ENTRY();
    cvy_comm_prepare_mpi();
}

cvy_status cvy_context_create_mpi(MPI_Comm user, const cvy_context_opts *opts, cvy_context **context_out)
{
    CVY_ENTRY();
    cvy_comm *comm = NULL;
    CVY_CHECK(context_out, CVY_E_ARGUMENT, "cvy_context_create_mpi() needs a place for the context");
    CVY_TRY(cvy_comm_create_mpi(user, &comm));
    return create_over(comm, opts, 1, context_out);
}

cvy_status cvy_context_create_mpi_fortran(int comm, const cvy_context_opts *opts, cvy_context **context_out)
{
    CVY_ENTRY();
    CVY_TRY(cvy_comm_check_mpi()); /* without MPI there is nothing to convert with */
    return cvy_context_create_mpi(MPI_Comm_f2c((MPI_Fint)comm), opts, context_out);
}

void cvy_context_destroy(cvy_context **context)
{
    CVY_ENTRY();
    if (!CVY_IS_LIVE_AT(CONTEXT, context))
        return;
    cvy_context_say_protections(*context);
    cvy_extensions_unload(&(*context)->extensions);
    cvy_space_close(&(*context)->space);
    (*context)->comm->ops->destroy((*context)->comm);
    cvy_handle_free(context);
}

cvy_status cvy_context_use(cvy_context *context, const cvy_backend_def *backend)
{
    cvy_space_close(&context->space);
    cvy_device_use use = {.ranks = 1};
    CVY_TRY(cvy_space_open_def(backend, NULL, &use.space));
    cvy_device_put(context, &use);
    return CVY_OK;
}

cvy_status cvy_context_check_idle(const cvy_context *context, const void *who)
{
    CVY_CHECK(!context->pending || context->pending == who, CVY_E_ARGUMENT,
              "an update of a program on this context is pending: apply it first (cvy_program_flush), or create "
              "another context");
    CVY_CHECK(!context->summing, CVY_E_ARGUMENT,
              "all-reduces of a reducer are in progress on this context: wait for them first (cvy_reducer_wait), or "
              "create another context");
    return CVY_OK;
}

cvy_status cvy_extensions_compare(cvy_comm *comm, const cvy_extensions *x)
{
    uint64_t mine = 0, *all = NULL;
    cvy_hasher h;
    int other = 0;
    cvy_hash_begin(&h);
    for (int i = 0; i < x->nfile; i++)
        cvy_hash_add(&h, &x->file[i]->hash, sizeof x->file[i]->hash);
    mine = cvy_hash_end(&h);
    cvy_status status = cvy_comm_agree(comm, cvy_mem_alloc(sizeof *all * (size_t)comm->nranks, &all));
    if (status == CVY_OK)
        status = comm->ops->allgather(comm, &mine, sizeof mine, all);
    for (int r = comm->nranks - 1; r > 0 && status == CVY_OK; r--)
        if (all[r] != all[0])
            other = r;
    cvy_mem_free(&all);
    CVY_TRY(status);
    CVY_CHECK(!other, CVY_E_DISAGREE,
              "rank %d has loaded other libraries than rank 0, or added other operators: name the same files on all "
              "ranks, copy the same versions to all nodes, and add the same operators in the same order",
              other);
    return CVY_OK;
}

/* All ranks keep what they have added to the first files and operators, if each could and has the same; else none. */
static cvy_status keep_if_equal(cvy_context *context, cvy_status added, int nfile, int nop)
{
    cvy_status status = cvy_comm_agree(context->comm, added);
    if (status == CVY_OK)
        status = cvy_extensions_compare(context->comm, &context->extensions);
    if (status != CVY_OK)
        cvy_extensions_cut(&context->extensions, nfile, nop);
    return status;
}

cvy_status cvy_context_load_library(cvy_context *context, const char *path)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_extensions *x = &context->extensions;
    const int nfile = x->nfile, nop = x->nop;
    return keep_if_equal(context, cvy_extensions_load(x, path, NULL), nfile, nop);
}

cvy_status cvy_context_add_operator(cvy_context *context, const cvy_operator *op)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_extensions *x = &context->extensions;
    const int nfile = x->nfile, nop = x->nop;
    return keep_if_equal(context, cvy_extensions_add(x, op), nfile, nop);
}

int cvy_context_rank(const cvy_context *context)
{
    CVY_ENTRY();
    if (CVY_KNOWN(CONTEXT, context) != CVY_OK)
        return 0;
    return context->comm->rank;
}

int cvy_context_nranks(const cvy_context *context)
{
    CVY_ENTRY();
    if (CVY_KNOWN(CONTEXT, context) != CVY_OK)
        return 0;
    return context->comm->nranks;
}

int cvy_context_threads(const cvy_context *context)
{
    CVY_ENTRY();
    if (CVY_KNOWN(CONTEXT, context) != CVY_OK)
        return 0;
    return context->threads;
}

static void say(const cvy_context *context, cvy_log_level level, const char *fmt, va_list args)
{
    char line[1024];
    if (level > context->opts.log_level)
        return;
    vsnprintf(line, sizeof line, fmt, args);
    cvy_make_printable(line);
    if (context->opts.log) {
        CVY_CALLBACK();
        context->opts.log(context->opts.log_user, level, line);
    } else {
        sigset_t before;
        cvy_signals_hold(&before); /* stderr may be a pipe that nobody reads any more */
        fprintf(stderr, "convoy: %s%s\n",
                level == CVY_LOG_WARN    ? "warning: "
                : level == CVY_LOG_ERROR ? "error: "
                                         : "",
                line);
        cvy_signals_release(&before);
    }
}

void cvy_context_say_protections(const cvy_context *context)
{
    char text[CVY_PROTECTION_TEXT];
    while (context->comm->rank == 0 && cvy_protection_take(text))
        cvy_log(context, CVY_LOG_WARN, "%s", text);
}

cvy_context cvy_context_for_planning(const cvy_context *context, cvy_comm *comm)
{
    cvy_context planning = *context;
    planning.comm = comm;
    planning.of = context;
    planning.summing = planning.pending = NULL;
    planning.opts.log_level = CVY_LOG_ERROR;
    return planning;
}

void cvy_log(const cvy_context *context, cvy_log_level level, const char *fmt, ...)
{
    va_list args;
    if (context->comm->rank != 0)
        return;
    va_start(args, fmt);
    say(context, level, fmt, args);
    va_end(args);
}

void cvy_log_local(const cvy_context *context, cvy_log_level level, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(context, level, fmt, args);
    va_end(args);
}
