/*
 * server_mode.c: parameter servers as an update mode: options, conflicting options, and the mode's functions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/text/base_tree.h"
#include "program/program_impl.h"
#include "update/server/server.h"

static cvy_server *state_of(const cvy_program *p)
{
    return p->update.state;
}

/* ---- planning ---- */

/* Messages have no contents in a simulation, but what an asynchronous server does depends on them. */
static cvy_status check_simulated(const cvy_program *p)
{
    const cvy_comm *comm = p->context->comm;
    CVY_CHECK(comm->simulated_cores == 0 || p->opts.update_staleness == 0, CVY_E_UNSUPPORTED,
              "opts.update_mode: parameter_server with staleness %lld cannot be simulated: set staleness: 0, so that "
              "workers wait for each other in every step",
              (long long)p->opts.update_staleness);
    CVY_CHECK(comm->simulated_nodes <= 1 && comm->simulated_ranks <= 1, CVY_E_UNSUPPORTED,
              "opts.update_mode: parameter_server cannot be simulated with nodes that stand for others or have several "
              "ranks, since a server's work grows with the workers: simulate all nodes, one rank each");
    return CVY_OK;
}

/* Training tasks are checked here, because a program that only evaluates runs on any number of ranks. */
static cvy_status check_task(const cvy_program *p, const cvy_optimise_opts *optimise)
{
    const int nranks = p->context->comm->nranks;
    const long long servers = (long long)p->opts.update_servers;
    CVY_TRY(check_simulated(p));
    CVY_CHECK(nranks > 1, CVY_E_CONFIG,
              "opts.update_mode: parameter_server needs a rank that trains and one that serves, but there is one rank: "
              "start 2 or more (mpiexec -n), or take sync");
    CVY_CHECK(servers >= 1 && servers < nranks, CVY_E_CONFIG,
              "opts.update_mode: parameter_server: servers is %lld, but at least one of %d ranks must train: expected "
              "1 .. %d",
              servers, nranks, nranks - 1);
    CVY_CHECK(p->opts.reduce_wire != CVY_DTYPE_BF16, CVY_E_CONFIG,
              "opts.update_mode: parameter_server does not round gradients and weights when it sends them, but "
              "opts.reduce_wire is bf16: leave opts.reduce_wire out, or use sync");
    CVY_CHECK(!(optimise->clip_norm > 0), CVY_E_CONFIG,
              "opts.update_mode: parameter_server does not go with clip_norm, which needs all gradients at once, while "
              "a server has a part of them: take clip_value, or sync");
    return CVY_OK;
}

static void shape(const cvy_program *p, cvy_update_shape *shape)
{
    const cvy_comm *comm = p->context->comm;
    shape->nworkers = comm->nranks - (int)CVY_MIN(CVY_MAX(p->opts.update_servers, 1), comm->nranks - 1);
    shape->state_elsewhere = comm->rank < shape->nworkers;
    shape->shares_memory = 0;
}

static cvy_status connect(cvy_program *p)
{
    return state_of(p) ? cvy_comm_agree(p->context->comm, cvy_server_connect(state_of(p))) : CVY_OK;
}

static void destroy(cvy_program *p)
{
    cvy_server *server = state_of(p);
    cvy_server_destroy(&server);
    p->update.state = NULL;
}

/* ---- running ---- */

static cvy_status step(cvy_program *p, cvy_program_task *task, double lr)
{
    return cvy_server_step(state_of(p), task, lr);
}

static cvy_status flush(cvy_program *p)
{
    return state_of(p) ? cvy_server_collect(state_of(p)) : CVY_OK;
}

static cvy_status save(cvy_program *p, cvy_vars **pending_out)
{
    (void)pending_out;
    return flush(p);
}

static void waits_for(const cvy_program *p, char *text, size_t room)
{
    if (state_of(p))
        cvy_server_waits_for(state_of(p), text, room);
}

static long long progress(const cvy_program *p)
{
    return state_of(p) ? cvy_server_progress(state_of(p)) : 0;
}

/* ---- workers that do not wait for each other ---- */

static int is_on(const cvy_program *p)
{
    return cvy_server_runs_free(state_of(p));
}

static int serves(const cvy_program *p)
{
    return cvy_server_serves(state_of(p));
}

static void request_sync(cvy_program *p)
{
    cvy_server_request_sync(state_of(p));
}

static int64_t next_sync(const cvy_program *p)
{
    return cvy_server_next_sync(state_of(p));
}

static cvy_status leave(cvy_program *p, int64_t steps_done)
{
    return cvy_server_leave(state_of(p), steps_done);
}

static cvy_status serve(cvy_program *p, int64_t *steps_done)
{
    return cvy_server_serve(state_of(p), steps_done);
}

static void staleness(const cvy_program *p, double *mean, int64_t *most)
{
    cvy_server_staleness(state_of(p), mean, most);
}

static const cvy_update_async async = {is_on, serves, request_sync, next_sync, leave, serve, staleness};

static const char *no_effect(const char *option, const char *value)
{
    (void)value;
    return strcmp(option, "reduce") == 0
               ? "applies to all-reduces, but with update: parameter_server gradients are sent to a server"
               : NULL;
}

CVY_UPDATE_DEFINE(parameter_server) = {
    .name = "parameter_server",
    .summary = "some ranks hold the weights and update them; the others compute gradients",
    .mode = CVY_UPDATE_PARAMETER_SERVER,
    .flush_before_forward = 1,
    .saves_on_root = 1,
    .no_replicas = 1,
    .apart = 1,
    .job.has_program_keys = 1,
    .plan.no_effect = no_effect,
    .plan.shape = shape,
    .plan.check_task = check_task,
    .plan.prepare = cvy_server_create,
    .plan.connect = connect,
    .step = step,
    .flush = flush,
    .save.begin = save,
    .watch.waits_for = waits_for,
    .watch.progress = progress,
    .watch.async = &async,
    .destroy = destroy,
};
