/*
 * measure_time.c: cvy_run_time(): shows where a step's time goes. Each layer has a row with its time for forward,
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

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "measure/measure_time.h"

#define NODE_STEPS_MAX 256 /* maximum number of steps for which times of instructions are kept */

const char *const cvy_time_part_name[CVY_STEP_PARTS] = {"forward", "backward_data", "backward_weights", "update"};

/* ---- rows and parts of instructions ---- */

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

const char *cvy_time_name(const cvy_plan *plan, const cvy_instr *instr, const char **op_out)
{
    const cvy_node *node = instr->call ? instr->call->node : NULL;
    const cvy_value *value = cvy_instr_moved(plan, instr);
    *op_out = node ? node->op->name : cvy_instr_runs_by(instr);
    if (cvy_instr_exchanges(instr)) {
        *op_out = "allreduce";
        return "sums over ranks";
    }
    if (cvy_instr_comm(instr) && instr->axis != CVY_COMM_DATA)
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
static cvy_status row_for(cvy_time_table *t, const char *name, const char *op, cvy_time_row **out)
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
    **out = (cvy_time_row){.name = name, .op = what, .place = layer >= 0 ? 2 * layer + moves : 2 * m->nlayer + 1};
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
double cvy_time_bytes(const cvy_plan *plan, const cvy_instr *instr)
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

cvy_limit cvy_time_limit(const cvy_time_table *t, int i)
{
    const cvy_instr *instr = &t->plan->instr[i];
    const int computes = cvy_call_runs_node(instr->call);
    return cvy_limit_of(&t->b->limits, computes ? (double)cvy_node_cost(instr->call->node).flop : 0,
                        cvy_time_bytes(t->plan, instr));
}

static cvy_status add_instr(cvy_time_table *t, int i)
{
    const cvy_plan *plan = t->plan;
    const cvy_instr *instr = &plan->instr[i];
    const cvy_node *node = instr->call ? instr->call->node : NULL;
    const int part = cvy_instr_part(plan, instr), computes = cvy_call_runs_node(instr->call);
    const char *op = NULL, *name = cvy_time_name(plan, instr, &op);
    cvy_time_row *r = NULL;
    if (!cvy_instr_runs(instr)) /* the kept copy is still up to date, so nothing ran */
        return CVY_OK;
    CVY_TRY(row_for(t, name, op, &r));
    r->ms[part] += t->instr_ms[i];
    r->flop[part] += computes ? (double)cvy_node_cost(node).flop : 0;
    r->bytes[part] += cvy_time_bytes(plan, instr);
    const cvy_limit limit = cvy_time_limit(t, i);
    r->limit_ms += limit.ms;
    r->memory_ms += limit.by_bytes ? limit.ms : 0;
    if (!r->kernel[part] || t->instr_ms[i] > r->longest_ms[part]) {
        r->kernel[part] = cvy_instr_runs_by(instr);
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

static cvy_status take_medians(cvy_time_table *t)
{
    const cvy_bench *b = t->b;
    const int n = t->plan->ninstr, all = cvy_bench_ninstr(b, b->nturn);
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
static void sort_rows(cvy_time_table *t)
{
    for (int i = 1; i < t->count; i++)
        for (int k = i; k > 0 && t->row[k].place < t->row[k - 1].place; k--) {
            const cvy_time_row r = t->row[k];
            t->row[k] = t->row[k - 1];
            t->row[k - 1] = r;
        }
}

static void finish_row(cvy_time_row *r, double step_ms)
{
    double flop = 0;
    for (int part = 0; part < CVY_STEP_PARTS; part++) {
        r->all_ms += r->ms[part];
        r->all_bytes += r->bytes[part];
        flop += part < CVY_STEP_UPDATE ? r->flop[part] : 0;
    }
    const double computing = r->all_ms - r->ms[CVY_STEP_UPDATE];
    r->share = step_ms > 0 ? r->all_ms / step_ms : 0;
    r->gflop_per_s = computing > 0 ? 1e-6 * flop / computing : 0;
}

cvy_status cvy_time_table_make(const cvy_bench *b, int turn, cvy_time_table *t)
{
    *t = (cvy_time_table){.b = b,
                          .turn = turn,
                          .plan = cvy_bench_turn_plan(b, turn),
                          .first = cvy_bench_ninstr(b, turn),
                          .step_ms = 1e3 * cvy_median(b->step_s, b->steps)};
    CVY_TRY(take_medians(t));
    for (int i = 0; i < t->plan->ninstr; i++)
        CVY_TRY(add_instr(t, i));
    for (int i = 0; i < t->count; i++)
        finish_row(&t->row[i], t->all_ms);
    sort_rows(t);
    return CVY_OK;
}

void cvy_time_table_free(cvy_time_table *t)
{
    cvy_mem_free(&t->instr_ms);
    cvy_mem_free(&t->row);
}

/* ---- totals by operator ---- */

int cvy_time_kinds(const cvy_time_table *t, cvy_time_kind *kind, int room, double *multiplying_ms_out)
{
    int n = 0;
    *multiplying_ms_out = 0;
    kind[n++] = (cvy_time_kind){"update", t->ms[CVY_STEP_UPDATE]};
    for (int i = 0; i < t->count; i++) {
        const cvy_time_row *r = &t->row[i];
        const double ms = r->all_ms - r->ms[CVY_STEP_UPDATE];
        int k = 1;
        while (k < n && strcmp(kind[k].name, r->op) != 0)
            k++;
        *multiplying_ms_out += r->multiplies ? ms : 0;
        if (k == n && n == room)
            continue;
        if (k == n)
            kind[n++] = (cvy_time_kind){r->op, 0};
        kind[k].ms += ms;
    }
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && kind[k].ms > kind[k - 1].ms; k--) {
            const cvy_time_kind one = kind[k];
            kind[k] = kind[k - 1];
            kind[k - 1] = one;
        }
    return n;
}

/* ---- the call ---- */

/* The part of the text that the first rank of each stage writes; rank 0 also writes the head. */
static cvy_status print_part(const cvy_bench *b, const char *how, double flop, cvy_text *head, cvy_text *part)
{
    const int is_json = strcmp(how, "json") == 0, is_limit = strcmp(how, "limit") == 0;
    const cvy_grid *grid = cvy_time_grid(b);
    cvy_time_table t = {0};
    if (grid->data_rank != 0)
        return CVY_OK;
    cvy_status status = cvy_time_table_make(b, 0, &t);
    if (status == CVY_OK && grid->nstages > 1 && is_json)
        status = cvy_time_print_stage_json(&t, part);
    for (int k = 0; k < b->nturn && status == CVY_OK && !is_json; k++) {
        cvy_time_table_free(&t);
        status = cvy_time_table_make(b, k, &t);
        if (status == CVY_OK)
            status = is_limit ? cvy_time_print_limit(&t, part) : cvy_time_print_table(&t, part);
    }
    if (status == CVY_OK && grid->all->rank == 0) {
        if (is_json)
            status = cvy_time_print_json(&t, flop, head);
        else
            cvy_time_print_head(&t, flop, head);
    }
    cvy_time_table_free(&t);
    return status == CVY_OK ? head->status : status;
}

/* Appends the parts of all ranks to the head. cvy_time_bytes: of each part. */
static cvy_status join(int is_json, cvy_text *head, const char *parts, const size_t *cvy_time_bytes, int nranks)
{
    size_t end = head->bytes, at = 0;
    while (end > 0 && head->data[end - 1] != '}')
        end--;
    if (is_json)
        head->bytes = end - 1;
    cvy_text_add(head, "%s", is_json ? ", \"stages\": [" : "");
    for (int r = 0; r < nranks; at += cvy_time_bytes[r++]) {
        cvy_text_add(head, "%s", is_json && at > 0 && cvy_time_bytes[r] > 0 ? ", " : "");
        cvy_text_add_bytes(head, parts + at, cvy_time_bytes[r]);
    }
    cvy_text_add(head, "%s", is_json ? "]}" : "");
    return head->status;
}

/* Rank 0 gets the parts of all ranks, in their order. */
static cvy_status gather(cvy_comm *comm, int is_json, cvy_text *head, const cvy_text *part)
{
    const size_t bytes = part->bytes;
    size_t *cvy_time_bytes = NULL, total = 0;
    char *all = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_comm_alloc(comm, sizeof *cvy_time_bytes * (size_t)comm->nranks, &cvy_time_bytes));
    CVY_TRY_OUT(comm->ops->allgather(comm, &bytes, sizeof bytes, cvy_time_bytes));
    for (int r = 0; r < comm->nranks; r++)
        total += cvy_time_bytes[r];
    CVY_TRY_OUT(cvy_comm_agree(comm, comm->rank == 0 ? cvy_mem_alloc(total + 1, &all) : CVY_OK));
    CVY_TRY_OUT(comm->ops->gatherv(comm, part->data, bytes, all, cvy_time_bytes, 0));
    if (comm->rank == 0 && total > 0)
        status = join(is_json, head, all, cvy_time_bytes, comm->nranks);
out:
    cvy_mem_free(&cvy_time_bytes);
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
    cvy_status status = cvy_comm_agree(comm, print_part(b, how, flop, &head, &part));
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
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
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
    if (status == CVY_OK && !cvy_program_by_clock(b.session.program))
        status = cvy_limits_measure(context, b.peak_flop_per_s, &b.limits);
    if (status == CVY_OK)
        status = cvy_comm_agree(context->comm, report(&b, how, text_out));
    cvy_bench_close(&b);
    return status;
}
