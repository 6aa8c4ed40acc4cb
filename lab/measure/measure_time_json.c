/*
 * measure_time_json.c: prints the times of a step as JSON: layers, totals, and each instruction of the plan.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "measure/measure_time.h"

static void add_totals(const cvy_time_table *t, cvy_json *json)
{
    cvy_time_kind kind[CVY_TIME_KINDS];
    double multiplying = 0;
    const int n = cvy_time_kinds(t, kind, CVY_TIME_KINDS, &multiplying);
    char key[40];
    for (int part = 0; part < CVY_STEP_PARTS; part++) {
        snprintf(key, sizeof key, "%s_ms", cvy_time_part_name[part]);
        cvy_json_real(json, key, t->ms[part]);
    }
    double by_bytes = 0;
    cvy_json_real(json, "limit_ms", cvy_time_limit_ms(t, &by_bytes));
    cvy_json_real(json, "limit_by_bytes_ms", by_bytes);
    cvy_json_real(json, "conv_fc_share", t->all_ms > 0 ? multiplying / t->all_ms : 0);
    const cvy_column columns[] = {
        CVY_COLUMN_AS(cvy_time_kind, "op", STRING, name),
        CVY_COLUMN(cvy_time_kind, REAL, ms),
        CVY_COLUMN_AS(cvy_time_kind, "share", REAL, ms, .scale = t->all_ms > 0 ? 1 / t->all_ms : 1),
        {0},
    };
    cvy_table_json(columns, CVY_ROWS(kind, n), "operators", json);
}

/* Adds all instructions of the plan in their order. */
static void add_instructions(const cvy_time_table *t, cvy_json *json)
{
    const cvy_plan *plan = t->plan;
    cvy_json_open(json, "instructions", '[');
    for (int i = 0; i < plan->ninstr; i++) {
        const cvy_instr *instr = &plan->instr[i];
        const char *op = NULL, *name = cvy_time_name(plan, instr, &op);
        cvy_json_open(json, NULL, '{');
        cvy_json_string(json, "name", instr->call && instr->call->node ? instr->call->node->name : name);
        cvy_json_string(json, "op", op);
        cvy_json_string(json, "part", cvy_time_part_name[cvy_instr_part(plan, instr)]);
        cvy_json_string(json, "kernel", cvy_instr_runs_by(instr));
        cvy_json_real(json, "ms", t->instr_ms[i]);
        cvy_json_close(json, '}');
    }
    cvy_json_close(json, ']');
}

static void add_layers(const cvy_time_table *t, cvy_json *json)
{
    add_totals(t, json);
    cvy_table_json(cvy_time_columns, CVY_ROWS(t->row, t->count), "layers", json);
    add_instructions(t, json);
}

/* The tables of all turns. t: that of the first. */
static cvy_status add_turns(const cvy_time_table *t, cvy_json *json)
{
    cvy_status status = CVY_OK;
    if (t->b->nturn == 1)
        return CVY_OK;
    cvy_json_open(json, "turns", '[');
    for (int k = 0; k < t->b->nturn && status == CVY_OK; k++) {
        cvy_time_table own = {0};
        status = cvy_time_table_make(t->b, k, &own);
        cvy_json_open(json, NULL, '{');
        cvy_json_string(json, "label", cvy_time_label(&own));
        if (status == CVY_OK)
            add_layers(&own, json);
        cvy_json_close(json, '}');
        cvy_time_table_free(&own);
    }
    cvy_json_close(json, ']');
    return status;
}

cvy_status cvy_time_print_json(const cvy_time_table *t, double flop, cvy_text *to)
{
    cvy_bench_result times = {.size = sizeof times};
    cvy_json json = {0};
    cvy_json_open(&json, NULL, '{');
    cvy_bench_fill_head(t->b, &times);
    cvy_bench_fill_times(t->b, flop, &times);
    cvy_bench_add_times(&times, &json);
    if (cvy_time_grid(t->b)->nstages == 1)
        add_layers(t, &json);
    const cvy_status status = add_turns(t, &json);
    cvy_json_close(&json, '}');
    *to = json.text;
    return status == CVY_OK ? json.text.status : status;
}

cvy_status cvy_time_print_stage_json(const cvy_time_table *t, cvy_text *to)
{
    const cvy_bench *b = t->b;
    const double ms = 1e3 / (double)b->steps;
    cvy_json json = {0};
    cvy_json_open(&json, NULL, '{');
    cvy_json_int(&json, "stage", cvy_time_grid(b)->stage + 1);
    cvy_json_int(&json, "rank", cvy_time_grid(b)->all->rank);
    cvy_json_real(&json, "kernels_ms", ms * (b->own.total - b->own.exposed_comm));
    cvy_json_real(&json, "exposed_comm_ms", ms * b->own.exposed_comm);
    cvy_json_real(&json, "bubble", b->own.total > 0 ? b->own.bubble / b->own.total : 0);
    add_layers(t, &json);
    cvy_json_close(&json, '}');
    *to = json.text;
    return json.text.status;
}
