/*
 * study_time.c: cvy_run_time(): shows where a step's time goes. Each layer has a row with its time for forward,
 * backward to the source, backward to the weights, and update. That is what caffe's `time` shows, and more.
 *
 * The time of an instruction is its median over the timed steps, on rank 0; with a pipeline there is a table for each
 * stage, of its first rank. An instruction belongs to the layer from
 * which its node was made, and an update to the layer that reads the weight. Layout changes have their own rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "study/study.h"

#define NODE_STEPS_MAX 256 /* maximum number of steps for which times of instructions are kept */

static const char *const part_name[CVY_STEP_PARTS] = {"forward", "backward_data", "backward_weights", "update"};

struct row { /* a layer, or instructions that belong to no layer */
    const char *name, *op;
    const cvy_value *output; /* output of its last forward node; NULL: none */
    /* place: order in the network, 2 x layer; multiplies: it is a convolution or fully connected layer */
    int place, multiplies;
    double ms[CVY_STEP_PARTS], flop[CVY_STEP_PARTS], bytes[CVY_STEP_PARTS];
    const char *kernel[CVY_STEP_PARTS]; /* kernel of the longest instruction of each part */
    double longest_ms[CVY_STEP_PARTS];
    /* the least time that the machine allows: of each instruction the longer one of its operations at the speed of a
     * matrix product and of its bytes at the speed of the memory; memory_ms: the part of it that is bytes */
    double limit_ms, memory_ms;
};

struct table { /* of a turn */
    const cvy_bench *b;
    const cvy_program_task *task;
    int first;        /* its first instruction among those of all turns */
    double *instr_ms; /* median of each instruction */
    struct row *row;
    int count, room;
    double ms[CVY_STEP_PARTS], all_ms, step_ms;
};

static const cvy_grid *grid_of(const cvy_bench *b)
{
    return &b->session.program->pipeline.grid;
}

static double row_ms(const struct row *r)
{
    return r->ms[CVY_STEP_FORWARD] + r->ms[CVY_STEP_BACKWARD_DATA] + r->ms[CVY_STEP_BACKWARD_WEIGHTS] +
           r->ms[CVY_STEP_UPDATE];
}

/* ---- rows and parts of instructions ---- */

static const char *kernel_of(const cvy_instr *instr)
{
    if (instr->kind == CVY_CALL_COMM)
        return instr->call->node->op->name;
    return instr->call && instr->call->kernel ? instr->call->kernel->name : cvy_call_kind_of(instr->kind)->name;
}

/* The layer that reads the weight which an update writes. NULL: none (clipping, constants). */
static const char *owner(const cvy_node *update)
{
    const cvy_graph *g = update->graph;
    for (int i = 0; i < update->nsrc; i++) {
        const cvy_value *v = update->src[i];
        if (!v || v->kind != CVY_VALUE_VARIABLE || v->variable->role != CVY_ROLE_WEIGHT)
            continue;
        for (int k = 0; k < g->nnode; k++)
            for (int s = 0; s < g->node[k]->nsrc; s++)
                if (g->node[k]->src[s] == v && g->node[k]->phase == CVY_PHASE_MICRO && !g->node[k]->backward)
                    return g->node[k]->layer;
    }
    return NULL;
}

/* Communication on these axes happens in the middle of layers, but a layer's time is that of its kernels. */
static const char *const axis_row[CVY_COMM_AXES] = {[CVY_COMM_PIPELINE] = "messages of stages",
                                                    [CVY_COMM_TENSOR] = "parts of layers",
                                                    [CVY_COMM_SPATIAL] = "parts of samples"};

/* The name of the instruction's row. *op_out: its operator, or the kind of the instruction. */
static const char *name_of(const cvy_plan *plan, const cvy_instr *instr, const char **op_out)
{
    const cvy_node *node = instr->call ? instr->call->node : NULL;
    const cvy_value *value = cvy_instr_moved(plan, instr);
    *op_out = node ? node->op->name : kernel_of(instr);
    if (cvy_instr_exchanges(instr)) {
        *op_out = "allreduce";
        return "sums over ranks";
    }
    if (instr->kind == CVY_CALL_COMM && instr->axis != CVY_COMM_DATA)
        return axis_row[instr->axis];
    if (!node)
        return value ? value->name : "step";
    if (node->phase == CVY_PHASE_UPDATE) {
        const char *layer = owner(node);
        return layer ? layer : "update";
    }
    return node->layer ? node->layer : node->name;
}

static int layer_of(const cvy_model *m, const char *name)
{
    for (int i = 0; i < m->nlayer; i++)
        if (strcmp(m->layer[i].output, name) == 0 || strcmp(m->layer[i].name, name) == 0)
            return i;
    return -1;
}

/* Finds the row of this name, or makes it. A layer has one row of its own, and one for its layout changes. */
static cvy_status row_for(struct table *t, const char *name, const char *op, struct row **out)
{
    const cvy_model *m = t->b->session.model;
    const int layer = layer_of(m, name), moves = strcmp(op, "reorder") == 0;
    const char *what = layer >= 0 && !moves ? m->layer[layer].op->name : op;
    for (int i = 0; i < t->count; i++)
        if (strcmp(t->row[i].name, name) == 0 && strcmp(t->row[i].op, what) == 0) {
            *out = &t->row[i];
            return CVY_OK;
        }
    CVY_TRY(cvy_mem_reserve(&t->row, &t->room, t->count, sizeof *t->row));
    *out = &t->row[t->count++];
    **out = (struct row){.name = name, .op = what, .place = layer >= 0 ? 2 * layer + moves : 2 * m->nlayer + 1};
    return CVY_OK;
}

/* Bytes of a tensor, with padding. A slice has no padding. Its own elements are counted, and not the channels beside it
 * in the tensor that holds it. */
static double instance_bytes(const cvy_instance *instance)
{
    return cvy_layout_whole(&instance->layout)
               ? (double)cvy_shape_elems(&instance->value->shape) * (double)cvy_dtype_bytes(instance->dtype)
               : (double)instance->bytes;
}

/* Bytes of the tensors that a call reads and writes. */
static double bytes_of(const cvy_plan *plan, const cvy_instr *instr)
{
    const cvy_lowered *u = plan->lowered[instr->micro];
    const cvy_call *call = instr->call;
    double bytes = 0;
    for (int i = 0; call && i < call->nsrc; i++)
        bytes += call->src[i] >= 0 ? instance_bytes(&u->instance[call->src[i]]) : 0;
    for (int i = 0; call && i < call->ndst; i++)
        bytes += call->dst[i] >= 0 ? instance_bytes(&u->instance[call->dst[i]]) : 0;
    return bytes;
}

/* Values that are still in a cache are read faster than from memory, so an instruction may beat its limit. */
static void add_limit(const cvy_bench *b, double flop, double bytes, struct row *r)
{
    const double ranks = b->session.context->comm->nranks;
    const double compute = b->peak_flop_per_s > 0 ? 1e3 * flop * ranks / b->peak_flop_per_s : 0,
                 memory = b->memory_bytes_per_s > 0 ? 1e3 * bytes * ranks / b->memory_bytes_per_s : 0;
    r->limit_ms += CVY_MAX(compute, memory);
    r->memory_ms += memory > compute ? memory : 0;
}

static cvy_status add_instr(struct table *t, int i)
{
    const cvy_plan *plan = t->task->plan;
    const cvy_instr *instr = &plan->instr[i];
    const cvy_node *node = instr->call ? instr->call->node : NULL;
    const int part = cvy_instr_part(plan, instr),
              computes = instr->kind == CVY_CALL_KERNEL || instr->kind == CVY_CALL_REFERENCE;
    const char *op = NULL, *name = name_of(plan, instr, &op);
    struct row *r = NULL;
    if (!cvy_instr_runs(instr)) /* the kept copy is still up to date, so nothing ran */
        return CVY_OK;
    CVY_TRY(row_for(t, name, op, &r));
    r->ms[part] += t->instr_ms[i];
    r->flop[part] += computes ? (double)cvy_node_cost(node).flop : 0;
    r->bytes[part] += bytes_of(plan, instr);
    add_limit(t->b, computes ? (double)cvy_node_cost(node).flop : 0, bytes_of(plan, instr), r);
    if (!r->kernel[part] || t->instr_ms[i] > r->longest_ms[part]) {
        r->kernel[part] = kernel_of(instr);
        r->longest_ms[part] = t->instr_ms[i];
    }
    if (node && part == CVY_STEP_FORWARD) {
        r->multiplies |= cvy_node_multiplies(node);
        /* the largest output, so for batch norm not its statistics */
        if (!r->output || cvy_shape_elems(&node->dst[0]->shape) > cvy_shape_elems(&r->output->shape))
            r->output = node->dst[0];
    }
    t->ms[part] += t->instr_ms[i];
    t->all_ms += t->instr_ms[i];
    return CVY_OK;
}

/* ---- measuring ---- */

static cvy_status take_medians(struct table *t)
{
    const cvy_bench *b = t->b;
    const int n = t->task->plan->ninstr, all = cvy_bench_ninstr(b, b->nturn);
    double *column = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *column * (size_t)b->node_steps, &column));
    const cvy_status status = cvy_mem_alloc(sizeof *t->instr_ms * (size_t)n, &t->instr_ms);
    for (int i = 0; i < n && status == CVY_OK; i++) {
        for (int64_t s = 0; s < b->node_steps; s++)
            column[s] = b->node_s[s * all + t->first + i];
        t->instr_ms[i] = 1e3 * cvy_median(column, b->node_steps);
    }
    cvy_mem_free(&column);
    return status;
}

/* Sorts rows in the order of the network. Rows without a layer are last, in the order in which they were made. */
static void sort_rows(struct table *t)
{
    for (int i = 1; i < t->count; i++)
        for (int k = i; k > 0 && t->row[k].place < t->row[k - 1].place; k--) {
            const struct row r = t->row[k];
            t->row[k] = t->row[k - 1];
            t->row[k - 1] = r;
        }
}

static cvy_status make_table(const cvy_bench *b, int turn, struct table *t)
{
    *t = (struct table){.b = b,
                        .task = cvy_bench_task(b, turn),
                        .first = cvy_bench_ninstr(b, turn),
                        .step_ms = 1e3 * cvy_median(b->step_s, b->steps)};
    CVY_TRY(take_medians(t));
    for (int i = 0; i < t->task->plan->ninstr; i++)
        CVY_TRY(add_instr(t, i));
    sort_rows(t);
    return CVY_OK;
}

static void free_table(struct table *t)
{
    cvy_mem_free(&t->instr_ms);
    cvy_mem_free(&t->row);
}

/* ---- totals by operator ---- */

struct kind {
    const char *name;
    double ms;
};

/* Adds up the milliseconds of each operator's layers. All updates together count as one kind. Sorts by time, longest
 * first. */
static int count_kinds(const struct table *t, struct kind *kind, int room, double *multiplying_ms_out)
{
    int n = 0;
    *multiplying_ms_out = 0;
    kind[n++] = (struct kind){"update", t->ms[CVY_STEP_UPDATE]};
    for (int i = 0; i < t->count; i++) {
        const struct row *r = &t->row[i];
        const double ms = row_ms(r) - r->ms[CVY_STEP_UPDATE];
        int k = 1;
        while (k < n && strcmp(kind[k].name, r->op) != 0)
            k++;
        *multiplying_ms_out += r->multiplies ? ms : 0;
        if (k == n && n == room)
            continue;
        if (k == n)
            kind[n++] = (struct kind){r->op, 0};
        kind[k].ms += ms;
    }
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && kind[k].ms > kind[k - 1].ms; k--) {
            const struct kind one = kind[k];
            kind[k] = kind[k - 1];
            kind[k - 1] = one;
        }
    return n;
}

#define KINDS_MAX 48

/* ---- for people ---- */

struct cell {
    char text[24];
};

/* Empty if nothing ran. */
static struct cell ms_cell(double ms)
{
    struct cell c = {""};
    if (ms > 0)
        snprintf(c.text, sizeof c.text, "%.*f", ms < 10 ? 3 : ms < 100 ? 2 : 1, ms);
    return c;
}

static double row_flop(const struct row *r)
{
    return r->flop[CVY_STEP_FORWARD] + r->flop[CVY_STEP_BACKWARD_DATA] + r->flop[CVY_STEP_BACKWARD_WEIGHTS];
}

static const char *output_text(const struct row *r)
{
    return r->output ? cvy_shape_text(&r->output->shape) : "";
}

static void print_row(const struct table *t, const struct row *r, cvy_text *out)
{
    const double ms = row_ms(r), computing = ms - r->ms[CVY_STEP_UPDATE];
    cvy_text_add(out, "%-22s %-18s %-16s", r->name, r->op, output_text(r));
    for (int part = 0; part < CVY_STEP_PARTS; part++)
        cvy_text_add(out, " %9s", ms_cell(r->ms[part]).text);
    cvy_text_add(out, " %9s %5.1f", ms_cell(ms).text, t->all_ms > 0 ? 100 * ms / t->all_ms : 0);
    if (computing > 0 && row_flop(r) > 0)
        cvy_text_add(out, " %8.1f", 1e-6 * row_flop(r) / computing);
    else
        cvy_text_add(out, " %8s", "");
    if (r->limit_ms > 0 && ms > 0)
        cvy_text_add(out, " %5.0f %s", 100 * r->limit_ms / ms, r->memory_ms > 0.5 * r->limit_ms ? "mem" : "cpu");
    else
        cvy_text_add(out, " %5s %3s", "", "");
    cvy_text_add(out, " %8.2f ",
                 1e-6 * (r->bytes[CVY_STEP_FORWARD] + r->bytes[CVY_STEP_BACKWARD_DATA] +
                         r->bytes[CVY_STEP_BACKWARD_WEIGHTS] + r->bytes[CVY_STEP_UPDATE]));
    for (int part = 0; part < CVY_STEP_UPDATE; part++)
        cvy_text_add(out, " %s", r->kernel[part] ? r->kernel[part] : "-");
    cvy_text_add(out, "\n");
}

static void print_totals(const struct table *t, cvy_text *out)
{
    struct kind kind[KINDS_MAX];
    double multiplying = 0;
    const int n = count_kinds(t, kind, KINDS_MAX, &multiplying);
    const double all = t->all_ms > 0 ? t->all_ms : 1;
    cvy_text_add(out, "\nby operator:");
    for (int i = 0; i < n; i++)
        cvy_text_add(out, "%s %s %.1f %%", i ? "," : "", kind[i].name, 100 * kind[i].ms / all);
    cvy_text_add(out, "\nconvolution and fully connected %.1f %%, all else %.1f %%\n", 100 * multiplying / all,
                 100 - 100 * multiplying / all);
    double limit = 0;
    for (int i = 0; i < t->count; i++)
        limit += t->row[i].limit_ms;
    if (limit > 0)
        cvy_text_add(out, "the least time of these instructions, each alone, is %.3f ms: %.0f %% of what they take\n",
                     limit, 100 * limit / all);
    cvy_text_add(out,
                 "forward %.3f ms, backward %.3f ms (data %.3f, weights %.3f), update %.3f ms; sum of the medians %.3f "
                 "ms, median step %.3f ms%s\n",
                 t->ms[CVY_STEP_FORWARD], t->ms[CVY_STEP_BACKWARD_DATA] + t->ms[CVY_STEP_BACKWARD_WEIGHTS],
                 t->ms[CVY_STEP_BACKWARD_DATA], t->ms[CVY_STEP_BACKWARD_WEIGHTS], t->ms[CVY_STEP_UPDATE], t->all_ms,
                 t->step_ms, t->b->nturn > 1 ? " with all turns" : "");
}

static void print_head(const struct table *t, double flop, cvy_text *out)
{
    const cvy_bench *b = t->b;
    const cvy_session *s = &b->session;
    cvy_text_add(out, "%s, %s, %s, batch %lld, %d rank%s of %d thread%s: medians of %lld steps, ms; layers of %s\n",
                 s->model->name, b->opts.mode == CVY_BENCH_TRAIN ? "training" : cvy_bench_mode_text(b->opts.mode),
                 cvy_dtype_text(s->program->opts.dtype), (long long)b->batch, s->context->comm->nranks,
                 s->context->comm->nranks > 1 ? "s" : "", s->context->threads, s->context->threads > 1 ? "s" : "",
                 (long long)b->node_steps, grid_of(b)->nstages > 1 ? "the first rank of each stage" : "rank 0");
    cvy_text_add(
        out, "%.2f images/s, %.1f GFLOP/s; a matrix product runs at %.1f GFLOP/s here, and memory moves %.1f GB/s\n",
        1e3 * (double)b->batch / t->step_ms, 1e-6 * flop / t->step_ms, 1e-9 * b->peak_flop_per_s,
        1e-9 * b->memory_bytes_per_s);
    if (grid_of(b)->nstages > 1)
        cvy_text_add(out, "pipeline: %d micro-batches; predicted idle share (bubble) of forward and backward %.1f %%\n",
                     b->step->nmicro, 100 * cvy_program_bubble(s->program, b->number));
}

/* Says which stage this is, and where its time went. */
static void print_stage(const cvy_bench *b, cvy_text *out)
{
    const cvy_grid *grid = grid_of(b);
    const cvy_step_time *own = &b->own;
    const double ms = 1e3 / (double)b->steps;
    cvy_text_add(out,
                 "stage %d of %d (rank %d), from layer %s: kernels %.3f ms, messages and waits %.3f ms; %.3f ms waits "
                 "for other stages, %.1f %% of the step\n",
                 grid->stage + 1, grid->nstages, grid->all->rank,
                 b->session.program->pipeline.layer.text[b->session.program->pipeline.first[grid->stage]],
                 ms * (own->total - own->exposed_comm), ms * own->exposed_comm, ms * own->bubble,
                 own->total > 0 ? 100 * own->bubble / own->total : 0);
}

static cvy_status print_table(const struct table *t, cvy_text *to)
{
    cvy_text out = {0};
    cvy_text_add(&out, "\n");
    if (grid_of(t->b)->nstages > 1)
        print_stage(t->b, &out);
    if (t->task->label)
        cvy_text_add(&out, "%s\n", t->task->label);
    cvy_text_add(&out, "%-22s %-18s %-16s %9s %9s %9s %9s %9s %5s %8s %9s %8s  %s\n", "layer", "operator", "output",
                 "forward", "bwd data", "bwd wei", "update", "all", "%", "GFLOP/s", "% of lim.", "MB",
                 "kernels: forward, backward data, backward weights");
    for (int i = 0; i < t->count; i++)
        print_row(t, &t->row[i], &out);
    print_totals(t, &out);
    if (out.status == CVY_OK)
        cvy_text_add_bytes(to, out.data, out.bytes);
    cvy_text_free(&out);
    return out.status == CVY_OK ? to->status : out.status;
}

/* ---- for programs ---- */

static void add_row(const struct table *t, const struct row *r, cvy_json *json)
{
    const double ms = row_ms(r), computing = ms - r->ms[CVY_STEP_UPDATE];
    char key[40];
    cvy_json_open(json, NULL, '{');
    cvy_json_string(json, "name", r->name);
    cvy_json_string(json, "op", r->op);
    cvy_json_string(json, "output", output_text(r));
    for (int part = 0; part < CVY_STEP_PARTS; part++) {
        snprintf(key, sizeof key, "%s_ms", part_name[part]);
        cvy_json_real(json, key, r->ms[part]);
    }
    cvy_json_real(json, "ms", ms);
    cvy_json_real(json, "share", t->all_ms > 0 ? ms / t->all_ms : 0);
    cvy_json_real(json, "gflop_per_s", computing > 0 ? 1e-6 * row_flop(r) / computing : 0);
    cvy_json_real(json, "limit_ms", r->limit_ms);
    cvy_json_string(json, "limited_by", r->memory_ms > 0.5 * r->limit_ms ? "memory" : "operations");
    cvy_json_real(json, "bytes",
                  r->bytes[CVY_STEP_FORWARD] + r->bytes[CVY_STEP_BACKWARD_DATA] + r->bytes[CVY_STEP_BACKWARD_WEIGHTS] +
                      r->bytes[CVY_STEP_UPDATE]);
    for (int part = 0; part < CVY_STEP_PARTS; part++) {
        snprintf(key, sizeof key, "%s_kernel", part_name[part]);
        if (r->kernel[part])
            cvy_json_string(json, key, r->kernel[part]);
    }
    cvy_json_close(json, '}');
}

static void add_totals(const struct table *t, cvy_json *json)
{
    struct kind kind[KINDS_MAX];
    double multiplying = 0;
    const int n = count_kinds(t, kind, KINDS_MAX, &multiplying);
    char key[40];
    for (int part = 0; part < CVY_STEP_PARTS; part++) {
        snprintf(key, sizeof key, "%s_ms", part_name[part]);
        cvy_json_real(json, key, t->ms[part]);
    }
    cvy_json_real(json, "conv_fc_share", t->all_ms > 0 ? multiplying / t->all_ms : 0);
    cvy_json_open(json, "operators", '[');
    for (int i = 0; i < n; i++) {
        cvy_json_open(json, NULL, '{');
        cvy_json_string(json, "op", kind[i].name);
        cvy_json_real(json, "ms", kind[i].ms);
        cvy_json_real(json, "share", t->all_ms > 0 ? kind[i].ms / t->all_ms : 0);
        cvy_json_close(json, '}');
    }
    cvy_json_close(json, ']');
}

/* Adds all instructions of the plan in their order. */
static void add_instructions(const struct table *t, cvy_json *json)
{
    const cvy_plan *plan = t->task->plan;
    cvy_json_open(json, "instructions", '[');
    for (int i = 0; i < plan->ninstr; i++) {
        const cvy_instr *instr = &plan->instr[i];
        const char *op = NULL, *name = name_of(plan, instr, &op);
        cvy_json_open(json, NULL, '{');
        cvy_json_string(json, "name", instr->call && instr->call->node ? instr->call->node->name : name);
        cvy_json_string(json, "op", op);
        cvy_json_string(json, "part", part_name[cvy_instr_part(plan, instr)]);
        cvy_json_string(json, "kernel", kernel_of(instr));
        cvy_json_real(json, "ms", t->instr_ms[i]);
        cvy_json_close(json, '}');
    }
    cvy_json_close(json, ']');
}

static void add_layers(const struct table *t, cvy_json *json)
{
    add_totals(t, json);
    cvy_json_open(json, "layers", '[');
    for (int i = 0; i < t->count; i++)
        add_row(t, &t->row[i], json);
    cvy_json_close(json, ']');
    add_instructions(t, json);
}

/* The tables of all turns. t: that of the first. */
static cvy_status add_turns(const struct table *t, cvy_json *json)
{
    cvy_status status = CVY_OK;
    if (t->b->nturn == 1)
        return CVY_OK;
    cvy_json_open(json, "turns", '[');
    for (int k = 0; k < t->b->nturn && status == CVY_OK; k++) {
        struct table own = {0};
        status = make_table(t->b, k, &own);
        cvy_json_open(json, NULL, '{');
        cvy_json_string(json, "label", own.task->label);
        if (status == CVY_OK)
            add_layers(&own, json);
        cvy_json_close(json, '}');
        free_table(&own);
    }
    cvy_json_close(json, ']');
    return status;
}

static cvy_status print_json(const struct table *t, double flop, cvy_text *to)
{
    cvy_bench_result times = {.size = sizeof times};
    cvy_json json = {0};
    cvy_json_open(&json, NULL, '{');
    cvy_bench_fill_head(t->b, &times);
    cvy_bench_fill_times(t->b, flop, &times);
    cvy_bench_add_times(&times, &json);
    if (grid_of(t->b)->nstages == 1)
        add_layers(t, &json);
    const cvy_status status = add_turns(t, &json);
    cvy_json_close(&json, '}');
    *to = json.text;
    return status == CVY_OK ? json.text.status : status;
}

static cvy_status print_stage_json(const struct table *t, cvy_text *to)
{
    const cvy_bench *b = t->b;
    const double ms = 1e3 / (double)b->steps;
    cvy_json json = {0};
    cvy_json_open(&json, NULL, '{');
    cvy_json_int(&json, "stage", grid_of(b)->stage + 1);
    cvy_json_int(&json, "rank", grid_of(b)->all->rank);
    cvy_json_real(&json, "kernels_ms", ms * (b->own.total - b->own.exposed_comm));
    cvy_json_real(&json, "exposed_comm_ms", ms * b->own.exposed_comm);
    cvy_json_real(&json, "bubble", b->own.total > 0 ? b->own.bubble / b->own.total : 0);
    add_layers(t, &json);
    cvy_json_close(&json, '}');
    *to = json.text;
    return json.text.status;
}

/* ---- the call ---- */

/* The part of the text that the first rank of each stage writes; rank 0 also writes the head. */
static cvy_status print_part(const cvy_bench *b, int is_json, double flop, cvy_text *head, cvy_text *part)
{
    const cvy_grid *grid = grid_of(b);
    struct table t = {0};
    if (grid->data_rank != 0)
        return CVY_OK;
    cvy_status status = make_table(b, 0, &t);
    if (status == CVY_OK && grid->nstages > 1 && is_json)
        status = print_stage_json(&t, part);
    for (int k = 0; k < b->nturn && status == CVY_OK && !is_json; k++) {
        free_table(&t);
        status = make_table(b, k, &t);
        if (status == CVY_OK)
            status = print_table(&t, part);
    }
    if (status == CVY_OK && grid->all->rank == 0) {
        if (is_json)
            status = print_json(&t, flop, head);
        else
            print_head(&t, flop, head);
    }
    free_table(&t);
    return status == CVY_OK ? head->status : status;
}

/* Appends the parts of all ranks to the head. bytes_of: of each part. */
static cvy_status join(int is_json, cvy_text *head, const char *parts, const size_t *bytes_of, int nranks)
{
    size_t end = head->bytes, at = 0;
    while (end > 0 && head->data[end - 1] != '}')
        end--;
    if (is_json)
        head->bytes = end - 1;
    cvy_text_add(head, "%s", is_json ? ", \"stages\": [" : "");
    for (int r = 0; r < nranks; at += bytes_of[r++]) {
        cvy_text_add(head, "%s", is_json && at > 0 && bytes_of[r] > 0 ? ", " : "");
        cvy_text_add_bytes(head, parts + at, bytes_of[r]);
    }
    cvy_text_add(head, "%s", is_json ? "]}" : "");
    return head->status;
}

/* Rank 0 gets the parts of all ranks, in their order. */
static cvy_status gather(cvy_comm *comm, int is_json, cvy_text *head, const cvy_text *part)
{
    const size_t bytes = part->bytes;
    size_t *bytes_of = NULL, total = 0;
    char *all = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_comm_alloc(comm, sizeof *bytes_of * (size_t)comm->nranks, &bytes_of));
    CVY_TRY_OUT(comm->ops->allgather(comm, &bytes, sizeof bytes, bytes_of));
    for (int r = 0; r < comm->nranks; r++)
        total += bytes_of[r];
    CVY_TRY_OUT(cvy_comm_agree(comm, comm->rank == 0 ? cvy_mem_alloc(total + 1, &all) : CVY_OK));
    CVY_TRY_OUT(comm->ops->gatherv(comm, part->data, bytes, all, bytes_of, 0));
    if (comm->rank == 0 && total > 0)
        status = join(is_json, head, all, bytes_of, comm->nranks);
out:
    cvy_mem_free(&bytes_of);
    cvy_mem_free(&all);
    return status;
}

static cvy_status report(const cvy_bench *b, const char *how, char **text_out)
{
    cvy_comm *comm = b->session.context->comm;
    const int is_json = strcmp(how, "json") == 0;
    double flop = cvy_bench_work(b).flop;
    cvy_text head = {0}, part = {0};
    CVY_TRY(comm->ops->allreduce(comm, &flop, 1, CVY_DTYPE_F64, CVY_REDUCE_SUM));
    cvy_status status = cvy_comm_agree(comm, print_part(b, is_json, flop, &head, &part));
    if (status == CVY_OK)
        status = gather(comm, is_json, &head, &part);
    cvy_text_free(&part);
    if (status != CVY_OK || comm->rank != 0)
        cvy_text_free(&head);
    else
        *text_out = head.data;
    return status;
}

cvy_status cvy_run_time(cvy_context *context, const cvy_bench_opts *opts, const char *how, char **text_out)
{
    cvy_bench b;
    *text_out = NULL;
    cvy_status status = cvy_bench_open(context, opts, &b);
    b.takes_turns = 1;
    if (status == CVY_OK)
        cvy_job_update_in_sync(b.session.job); /* a row must be the time of one step, from forward to update */
    if (status == CVY_OK)
        status = cvy_bench_plan(&b, NULL, NULL);
    if (status == CVY_OK)
        status = cvy_bench_measure(&b, NODE_STEPS_MAX);
    if (status == CVY_OK && !b.session.program->kernel.by_clock)
        status = cvy_bench_memory(context, &b.memory_bytes_per_s);
    if (status == CVY_OK)
        status = cvy_comm_agree(context->comm, report(&b, how, text_out));
    cvy_bench_close(&b);
    return status;
}
