/*
 * predict_grids.c: cvy_run_plan_grids(): predicts the process grids of a job or a network for ranks that need not
 * exist.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "context/context_threads.h"
#include "job/job_table.h"
#include "measure/measure_bench.h"
#include "predict/predict.h"
#include "predict/predict_table.h"

enum { SHOWN = 8 };

/* Whether the job asks for one grid. */
static int has_grid(const cvy_job *job)
{
    static const char *const keys[] = {"parallel.pipeline", "parallel.tensor", "parallel.spatial"};
    int given = 0;
    for (int i = 0; i < CVY_COUNT(keys); i++)
        given |= cvy_tree_at(job->given, keys[i]) != NULL;
    return given && job->parallel.strategy != CVY_PARALLEL_AUTO;
}

static void set_network(const cvy_grids_opts *g, cvy_network *network)
{
    const int has_link = g->latency_s > 0 || g->bytes_per_s > 0;
    const int64_t node_ranks = g->node_ranks > 0 ? g->node_ranks : has_link ? 1 : g->ranks;
    *network = cvy_network_of_node((int)CVY_MIN(node_ranks, g->ranks));
    if (g->latency_s > 0)
        network->across.alpha_s = g->latency_s;
    if (g->bytes_per_s > 0)
        network->across.beta_s = 1 / g->bytes_per_s;
}

static cvy_status print(const cvy_search *found, const cvy_search_opts *o, const cvy_grids_opts *g, char **text_out)
{
    const cvy_search_candidate *best = NULL;
    cvy_text text = {0};
    CVY_TRY(cvy_search_best(found, o, &best));
    if (g->json)
        return cvy_predict_json(found, o, text_out);
    cvy_predict_table(found, o, g->shown > 0 ? (int)CVY_MIN(g->shown, INT32_MAX) : SHOWN, &text);
    *text_out = text.data;
    return text.status;
}

static cvy_status find(cvy_bench *b, const cvy_grids_opts *g, char **text_out)
{
    cvy_session *s = &b->session;
    cvy_search found = {0};
    cvy_search_opts o = {.context = s->context,
                         .job = s->job,
                         .data = &b->data,
                         .nranks = (int)g->ranks,
                         .nscored = s->job->data.val || s->job->data.test ? INT64_MAX : 0,
                         .memory_limit = g->memory_bytes,
                         .cores = cvy_threads_node_cores(s->context),
                         .only_given = has_grid(s->job)};
    set_network(g, &o.network);
    o.threads = g->threads > 0 ? (int)CVY_MIN(g->threads, INT32_MAX) : CVY_MAX(o.cores / o.network.node_ranks, 1);
    CVY_TRY(cvy_search_run(&o, &found));
    const cvy_status status = print(&found, &o, g, text_out);
    cvy_search_free(&found);
    return status;
}

cvy_status cvy_run_plan_grids(cvy_context *context, const cvy_bench_opts *what, const cvy_grids_opts *opts,
                              char **text_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_grids_opts g;
    cvy_bench b;
    *text_out = NULL;
    cvy_status status = CVY_OPTS_READ(cvy_grids_opts, opts, &g);
    if (status == CVY_OK && (g.ranks < 1 || g.ranks > INT32_MAX || g.node_ranks < 0))
        status = cvy_error_set(CVY_E_ARGUMENT, "opts.ranks is %lld and opts.node_ranks %lld, expected at least 1 rank",
                               (long long)g.ranks, (long long)g.node_ranks);
    CVY_TRY(cvy_comm_agree(context->comm, status));
    status = cvy_bench_open(context, what, &b);
    if (status == CVY_OK && context->comm->rank == 0)
        status = find(&b, &g, text_out);
    status = cvy_comm_agree(context->comm, status);
    cvy_bench_close(&b);
    return status;
}
