/*
 * measure_time_print.c: prints the times of a step as a table: layers, operators, and how far the step is from the
 * least time that the machine allows (measure_limit.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "measure/measure_time.h"

/* ---- the columns of a layer ---- */

static void output_words(cvy_cell cell, cvy_text *out)
{
    const cvy_value *output = ((const cvy_time_row *)cell.row)->output;
    cvy_text_add(out, "%s", output ? cvy_shape_text(&output->shape) : "");
}

/* Nothing if nothing ran. */
static void ms_words(cvy_cell cell, cvy_text *out)
{
    const double ms = *(const double *)cell.value;
    if (ms > 0)
        cvy_text_add(out, "%.*f", ms < 10 ? 3 : ms < 100 ? 2 : 1, ms);
}

static void speed_words(cvy_cell cell, cvy_text *out)
{
    if (*(const double *)cell.value > 0)
        cvy_text_add(out, "%.1f", *(const double *)cell.value);
}

static int is_by_memory(const cvy_time_row *r)
{
    return r->memory_ms > 0.5 * r->limit_ms;
}

static void limited_by_words(cvy_cell cell, cvy_text *out)
{
    cvy_text_add(out, is_by_memory(cell.row) ? "memory" : "operations");
}

static void limit_words(cvy_cell cell, cvy_text *out)
{
    const cvy_time_row *r = cell.row;
    if (r->limit_ms > 0 && r->all_ms > 0)
        cvy_text_add(out, "%.0f %s", 100 * r->limit_ms / r->all_ms, is_by_memory(r) ? "mem" : "cpu");
}

static void kernel_words(cvy_cell cell, cvy_text *out)
{
    const cvy_time_row *r = cell.row;
    for (int part = 0; part < CVY_STEP_UPDATE; part++)
        cvy_text_add(out, "%s%s", part ? " " : "", r->kernel[part] ? r->kernel[part] : "-");
}

#define COLUMN(...) CVY_COLUMN_AS(cvy_time_row, __VA_ARGS__)

const cvy_column cvy_time_columns[] = {
    COLUMN("name", STRING, name, .title = "layer", .width = -22),
    COLUMN("op", STRING, op, .title = "operator", .width = -18),
    COLUMN("output", WORDS, output, .title = "output", .width = -16, .words = output_words),
    COLUMN("forward_ms", REAL, ms[CVY_STEP_FORWARD], .title = "forward", .width = 9, .words = ms_words),
    COLUMN("backward_data_ms", REAL, ms[CVY_STEP_BACKWARD_DATA], .title = "bwd data", .width = 9, .words = ms_words),
    COLUMN("backward_weights_ms", REAL, ms[CVY_STEP_BACKWARD_WEIGHTS], .title = "bwd wei", .width = 9,
           .words = ms_words),
    COLUMN("update_ms", REAL, ms[CVY_STEP_UPDATE], .title = "update", .width = 9, .words = ms_words),
    COLUMN("ms", REAL, all_ms, .title = "all", .width = 9, .words = ms_words),
    COLUMN("share", REAL, share, .title = "%", .width = 5, .format = "%.1f", .shown_times = 100),
    COLUMN("gflop_per_s", REAL, gflop_per_s, .title = "GFLOP/s", .width = 8, .words = speed_words),
    COLUMN("limit_ms", REAL, limit_ms, .title = "% of lim.", .width = 9, .words = limit_words),
    COLUMN("limited_by", WORDS, limit_ms, .words = limited_by_words),
    COLUMN("bytes", REAL, all_bytes, .title = "MB", .width = 8, .format = "%.2f", .shown_times = 1e-6),
    COLUMN("forward_kernel", STRING, kernel[CVY_STEP_FORWARD], .is_optional = 1),
    COLUMN("backward_data_kernel", STRING, kernel[CVY_STEP_BACKWARD_DATA], .is_optional = 1),
    COLUMN("backward_weights_kernel", STRING, kernel[CVY_STEP_BACKWARD_WEIGHTS], .is_optional = 1),
    COLUMN("update_kernel", STRING, kernel[CVY_STEP_UPDATE], .is_optional = 1),
    COLUMN(NULL, WORDS, kernel, .title = "kernels: forward, backward data, backward weights", .width = -1, .gap = 2,
           .words = kernel_words),
    {0},
};

/* ---- the limit of the step ---- */

#define FURTHEST 5

/* The instruction that loses most time beyond its limit, but less than those before. -1: none. */
static int next_furthest(const cvy_time_table *t, const int *before, int n)
{
    int found = -1;
    double most = 0;
    for (int i = 0; i < t->plan->ninstr; i++) {
        const double lost = t->instr_ms[i] - cvy_time_limit(t, i).ms;
        int is_new = cvy_instr_runs(&t->plan->instr[i]);
        for (int k = 0; k < n; k++)
            is_new &= before[k] != i;
        if (is_new && lost > most) {
            most = lost;
            found = i;
        }
    }
    return found;
}

double cvy_time_limit_ms(const cvy_time_table *t, double *by_bytes_out)
{
    double all = 0, bytes = 0;
    for (int i = 0; i < t->count; i++) {
        all += t->row[i].limit_ms;
        bytes += t->row[i].memory_ms;
    }
    *by_bytes_out = bytes;
    return all;
}

/* How fast each level of the caches is, and the memory, in a few sizes. */
static void print_levels(const cvy_limits *limits, cvy_text *out)
{
    cvy_text_add(out, "bytes that are read and written, GB/s a rank:");
    for (int i = 0; i < limits->nlevel; i += 2)
        cvy_text_add(out, "%s %.0f at %.4g MB", i ? "," : "", 1e-9 * limits->bytes_per_s[i], 1e-6 * limits->bytes[i]);
    cvy_text_add(out, "\n");
}

static void print_limit(const cvy_time_table *t, cvy_text *out)
{
    double bytes = 0;
    const double limit = cvy_time_limit_ms(t, &bytes), all = t->all_ms > 0 ? t->all_ms : 1;
    int at[FURTHEST];
    if (limit <= 0)
        return;
    cvy_text_add(out,
                 "limit of the step: %.3f ms, %.0f %% of the %.3f ms that its instructions take; %.3f ms of it are "
                 "bytes, %.3f ms operations\n",
                 limit, 100 * limit / all, all, bytes, limit - bytes);
    for (int n = 0; n < FURTHEST && (at[n] = next_furthest(t, at, n)) >= 0; n++) {
        const cvy_instr *instr = &t->plan->instr[at[n]];
        const cvy_limit own = cvy_time_limit(t, at[n]);
        const char *op = NULL, *name = cvy_time_name(t->plan, instr, &op);
        const double bytes_mb = 1e-6 * cvy_time_bytes(t->plan, instr);
        cvy_text_add(out, "%s %d. %s, %s by %s: %.3f ms, limit %.3f ms (%s", n ? "" : "furthest from their limits:\n",
                     n + 1, name, instr->call && instr->call->node ? instr->call->node->op->name : op,
                     cvy_instr_runs_by(instr), t->instr_ms[at[n]], own.ms, own.by_bytes ? "bytes: " : "operations: ");
        if (own.by_bytes)
            cvy_text_add(out, "%.2f MB at %.1f GB/s)\n", bytes_mb, bytes_mb / own.ms);
        else
            cvy_text_add(out, "%.1f GFLOP/s)\n", 1e-9 * t->b->limits.flop_per_s);
    }
}

static void print_totals(const cvy_time_table *t, cvy_text *out)
{
    cvy_time_kind kind[CVY_TIME_KINDS];
    double multiplying = 0;
    const int n = cvy_time_kinds(t, kind, CVY_TIME_KINDS, &multiplying);
    const double all = t->all_ms > 0 ? t->all_ms : 1;
    cvy_text_add(out, "\nby operator:");
    for (int i = 0; i < n; i++)
        cvy_text_add(out, "%s %s %.1f %%", i ? "," : "", kind[i].name, 100 * kind[i].ms / all);
    cvy_text_add(out, "\nconvolution and fully connected %.1f %%, all else %.1f %%\n", 100 * multiplying / all,
                 100 - 100 * multiplying / all);
    cvy_text_add(out,
                 "forward %.3f ms, backward %.3f ms (data %.3f, weights %.3f), update %.3f ms; sum of the medians %.3f "
                 "ms, median step %.3f ms%s\n",
                 t->ms[CVY_STEP_FORWARD], t->ms[CVY_STEP_BACKWARD_DATA] + t->ms[CVY_STEP_BACKWARD_WEIGHTS],
                 t->ms[CVY_STEP_BACKWARD_DATA], t->ms[CVY_STEP_BACKWARD_WEIGHTS], t->ms[CVY_STEP_UPDATE], t->all_ms,
                 t->step_ms, t->b->nturn > 1 ? " with all turns" : "");
}

void cvy_time_print_head(const cvy_time_table *t, double flop, cvy_text *out)
{
    const cvy_bench *b = t->b;
    const cvy_session *s = &b->session;
    cvy_text_add(out, "%s, %s, %s, batch %lld, %d rank%s of %d thread%s: medians of %lld steps, ms; layers of %s\n",
                 s->model->name, b->opts.mode == CVY_BENCH_TRAIN ? "training" : cvy_bench_mode_text(b->opts.mode),
                 cvy_dtype_text(cvy_program_options(s->program)->dtype), (long long)b->batch, s->context->comm->nranks,
                 s->context->comm->nranks > 1 ? "s" : "", s->context->threads, s->context->threads > 1 ? "s" : "",
                 (long long)b->node_steps, cvy_time_grid(b)->nstages > 1 ? "the first rank of each stage" : "rank 0");
    cvy_text_add(
        out,
        "%.2f images/s, %.1f GFLOP/s; a matrix product runs at %.1f GFLOP/s here, and memory moves %.1f GB/s a rank\n",
        1e3 * (double)b->batch / t->step_ms, 1e-6 * flop / t->step_ms, 1e-9 * b->peak_flop_per_s,
        b->limits.nlevel > 0 ? 1e-9 * b->limits.bytes_per_s[b->limits.nlevel - 1] : 0.0);
    if (cvy_time_grid(b)->nstages > 1)
        cvy_text_add(out, "pipeline: %d micro-batches; predicted idle share (bubble) of forward and backward %.1f %%\n",
                     t->plan->nmicro, 100 * cvy_program_bubble(s->program, b->number));
}

/* Says which stage this is, and where its time went. */
static void print_stage(const cvy_bench *b, cvy_text *out)
{
    const cvy_grid *grid = cvy_time_grid(b);
    const cvy_step_time *own = &b->own;
    const double ms = 1e3 / (double)b->steps;
    cvy_text_add(out,
                 "stage %d of %d (rank %d), from layer %s: kernels %.3f ms, messages and waits %.3f ms; %.3f ms waits "
                 "for other stages, %.1f %% of the step\n",
                 grid->stage + 1, grid->nstages, grid->all->rank, cvy_program_first_layer(b->session.program),
                 ms * (own->total - own->exposed_comm), ms * own->exposed_comm, ms * own->bubble,
                 own->total > 0 ? 100 * own->bubble / own->total : 0);
}

cvy_status cvy_time_print_table(const cvy_time_table *t, cvy_text *to)
{
    cvy_text out = {0};
    cvy_text_add(&out, "\n");
    if (cvy_time_grid(t->b)->nstages > 1)
        print_stage(t->b, &out);
    if (cvy_time_label(t))
        cvy_text_add(&out, "%s\n", cvy_time_label(t));
    cvy_table_print(cvy_time_columns, CVY_ROWS(t->row, t->count), NULL, &out);
    print_totals(t, &out);
    print_limit(t, &out);
    if (out.status == CVY_OK)
        cvy_text_add_bytes(to, out.data, out.bytes);
    cvy_text_free(&out);
    return out.status == CVY_OK ? to->status : out.status;
}

cvy_status cvy_time_print_limit(const cvy_time_table *t, cvy_text *to)
{
    print_levels(&t->b->limits, to);
    print_limit(t, to);
    return to->status;
}
