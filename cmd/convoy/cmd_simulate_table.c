/*
 * cmd_simulate_table.c: the rows of `convoy simulate`, as a table or in JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>

#include "cmd_simulate.h"
#include "measure/measure.h"

/* An axis on which no rank waits has no time. */
static double or_zero(double ms)
{
    return isnan(ms) ? 0 : ms;
}

static int is_spatial(const cmd_simulation *s)
{
    return s->spatial[0] * s->spatial[1] * s->spatial[2] > 1;
}

/* "p2 t2 s2x1 d4": the axes that are used, and the ranks that are left for data. */
static const char *grid_text(const cmd_simulation *s, int64_t ranks, char *text, size_t room)
{
    size_t n = 0;
    text[0] = 0;
    if (s->stages > 1)
        n += (size_t)snprintf(text + n, room - n, "p%lld ", (long long)s->stages);
    if (s->tensor > 1)
        n += (size_t)snprintf(text + n, room - n, "t%lld ", (long long)s->tensor);
    if (is_spatial(s))
        n += (size_t)snprintf(text + n, room - n, "s%lldx%lld", (long long)s->spatial[0], (long long)s->spatial[1]);
    if (s->spatial[2] > 1)
        n += (size_t)snprintf(text + n, room - n, "x%lld", (long long)s->spatial[2]);
    snprintf(text + n, room - n, "%sd%lld", is_spatial(s) ? " " : "", (long long)(ranks / s->parts));
    return text;
}

static void show_grid_json(const cmd_simulation *s, const cvy_bench_result *r)
{
    cmd_say(", \"pipeline\": %d, \"micro_batches\": %d, \"tensor\": %lld, \"spatial\": [%lld, %lld, %lld], "
            "\"exposed_data_ms\": %.9g, \"exposed_pipeline_ms\": %.9g, \"exposed_tensor_ms\": %.9g, "
            "\"exposed_halo_ms\": %.9g",
            r->pipeline, r->micro_batches, (long long)s->tensor, (long long)s->spatial[0], (long long)s->spatial[1],
            (long long)s->spatial[2], or_zero(r->exposed_data_ms), or_zero(r->exposed_pipeline_ms),
            or_zero(r->exposed_tensor_ms), or_zero(r->exposed_spatial_ms));
    if (s->stages > 1)
        cmd_say(", \"bubble\": %.6g, \"bubble_predicted\": %.6g", r->bubble, r->bubble_predicted);
}

/* The columns of the axes that are used. */
static void show_grid(const cmd_simulation *s, int64_t ranks, const cvy_bench_result *r)
{
    char grid[96];
    if (s->parts <= 1)
        return;
    if (s->options->json) {
        show_grid_json(s, r);
        return;
    }
    cmd_say(" %16s %9.3f", grid_text(s, ranks, grid, sizeof grid), or_zero(r->exposed_data_ms));
    if (s->stages > 1)
        cmd_say(" %9.3f", or_zero(r->exposed_pipeline_ms));
    if (s->tensor > 1)
        cmd_say(" %9.3f", or_zero(r->exposed_tensor_ms));
    if (is_spatial(s))
        cmd_say(" %9.3f", or_zero(r->exposed_spatial_ms));
    if (s->stages > 1)
        cmd_say(" %9.1f %9.1f", 100 * r->bubble, 100 * r->bubble_predicted);
}

static void show_grid_head(const cmd_simulation *s)
{
    if (s->parts > 1)
        cmd_say(" %16s %9s", "grid", "data");
    if (s->stages > 1)
        cmd_say(" %9s", "pipeline");
    if (s->tensor > 1)
        cmd_say(" %9s", "tensor");
    if (is_spatial(s))
        cmd_say(" %9s", "halo");
    if (s->stages > 1)
        cmd_say(" %9s %9s", "bubble %", "predicted");
}

void cmd_simulate_show(const cmd_simulation *s, const cmd_simulated *row, const cvy_bench_result *r)
{
    const int64_t ranks = row->ranks;
    const int64_t batch = r->batch * s->node_ranks * (ranks / r->ranks);
    const double ms = r->ms_mean, rate = 1e3 * (double)batch / ms;
    const double efficiency = 100 * rate / ((double)ranks * s->ideal_rate);
    if (s->options->json)
        cmd_say("{\"model\": \"%s\", \"ranks\": %lld, \"node_ranks\": %lld, \"batch\": %lld, \"step_ms\": %.9g, "
                "\"ms_mean\": %.9g, "
                "\"forward_ms\": %.9g, \"backward_ms\": %.9g, \"update_ms\": %.9g, \"communication_ms\": %.9g, "
                "\"imbalance_ms\": %.9g, \"other_ms\": %.9g, "
                "\"images_per_s\": %.9g, \"images_per_s_rank\": %.9g, \"efficiency\": %.6g, \"exposed_comm_ms\": %.9g,"
                " \"hidden_comm_ms\": %.9g, \"wait_slowest_ms\": %.9g, \"spread_ms\": %.9g, \"clock_scale\": %.9g, "
                "\"node_images_per_s\": %.9g, \"ideal_images_per_s\": %.9g, \"serial\": %.6g",
                s->model, (long long)ranks, (long long)s->node_ranks, (long long)batch, ms, ms, r->forward_ms,
                r->backward_ms, r->update_ms, r->communication_ms, r->imbalance_ms, r->other_ms, rate,
                rate / (double)ranks, efficiency, r->exposed_comm_ms, r->hidden_comm_ms, r->wait_slowest_ms,
                r->spread_ms, row->scale, s->node_rate, s->ideal_rate, s->serial);
    else
        cmd_say("%7lld %9lld %10.3f %10.1f %10.1f %9.3f %9.3f %9.3f %9.3f", (long long)ranks, (long long)batch, ms,
                efficiency, rate, r->exposed_comm_ms, r->hidden_comm_ms, r->wait_slowest_ms, r->spread_ms);
    show_grid(s, ranks, r);
    cmd_say("%s\n", s->options->json ? "}" : "");
    fflush(stdout);
}

void cmd_simulate_show_head(const cmd_simulation *s)
{
    if (s->options->json)
        return;
    cmd_say("%s on %s: %s\n", s->model, s->platform_name, s->platform.summary);
    cmd_say("a node alone trains %.1f images/s (%s)", s->node_rate, s->rate_from);
    if (s->micro_batches > 1)
        cmd_say(", with %lld micro-batches %.1f", (long long)s->micro_batches, s->ideal_rate);
    cmd_say(": measured kernel times x %.4g; noise %.3g %%; %lld samples %s\n\n", s->scale, 100 * s->noise,
            (long long)s->batch,
            s->options->global_batch ? "in all"
            : s->parts > 1           ? "for the nodes that share them"
                                     : "a node");
    if (s->options->representatives > 0)
        cmd_say("at most %lld nodes are simulated, and stand for the others\n\n",
                (long long)s->options->representatives);
    if (s->node_ranks > 1)
        cmd_say("each node has %lld ranks; a row counts nodes\n\n", (long long)s->node_ranks);
    if (s->servers > 0)
        cmd_say("%lld of several nodes are servers, which train nothing\n\n", (long long)s->servers);
    if (s->serial > 0)
        cmd_say("one thread of a rank does %.3g %% of a step while the others wait\n\n", 100 * s->serial);
    cmd_say("%7s %9s %10s %10s %10s %9s %9s %9s %9s", "ranks", "batch", "step ms", "% of ideal", "images/s", "exposed",
            "hidden", "slowest", "spread");
    show_grid_head(s);
    cmd_say("\n");
}
