/*
 * program_print.c: a task's graph or plan as text: for `convoy plan`, and for plan.json of a run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/machine/base_machine.h"
#include "program/program_impl.h"
#include "program/program_reduce.h"
#include "program/program_tune.h"

static void add_machine(const cvy_program *p, cvy_json *json)
{
    char cpu[128], number[24], exchanges[700];
    const struct {
        const char *key;
        int value;
    } counts[] = {{"nodes", p->context->comm->nnodes},
                  {"ranks", p->context->comm->nranks},
                  {"ranks of this node", p->context->comm->node_nranks},
                  {"threads of a rank", p->context->threads}};
    cvy_json_open(json, "machine", '{');
    cvy_machine_cpu(cpu, sizeof cpu);
    cvy_json_string(json, "processor", cpu);
    for (int i = 0; i < CVY_COUNT(counts); i++) {
        snprintf(number, sizeof number, "%d", counts[i].value);
        cvy_json_string(json, counts[i].key, number);
    }
    if (!cvy_space_is_host(&p->context->space)) {
        cvy_device device;
        cvy_space_about(&p->context->space, &device);
        cvy_json_string(json, "device", p->context->device);
        cvy_json_string(json, "device name", device.name);
        cvy_json_string(json, "driver", device.driver);
        if (cvy_program_say_exchanges(p, exchanges, sizeof exchanges))
            cvy_json_string(json, "tensors are exchanged", exchanges);
    }
    cvy_json_close(json, '}');
}

static void add_plan(const cvy_program *p, int task, cvy_json *json)
{
    cvy_prediction predicted;
    cvy_plan_json(p->task[task]->plan, json);
    if (cvy_program_predict(p, task, &predicted) == CVY_OK && predicted.nunknown == 0)
        cvy_json_real(json, "predicted_ms", predicted.ms);
}

/* The plans of all turns of a step, of which this task is one; those of smaller batches are left out. */
static void add_turns(const cvy_program *p, int task, cvy_json *json)
{
    if (!p->task[task]->label)
        return;
    cvy_json_open(json, "turns", '[');
    for (int i = 0; i < p->ntask; i++) {
        const cvy_program_task *s = p->task[i];
        if (!cvy_program_is_turn(p, i))
            continue;
        cvy_json_open(json, NULL, '{');
        cvy_json_string(json, "label", s->label);
        cvy_json_string(json, "optimizer", s->train.optimise.op);
        add_plan(p, i, json);
        cvy_json_close(json, '}');
    }
    cvy_json_close(json, ']');
}

static cvy_status print_json(const cvy_program *p, int task, char **text_out)
{
    cvy_json json = {0};
    cvy_json_open(&json, NULL, '{');
    cvy_json_string(&json, "version", cvy_version());
    add_machine(p, &json);
    cvy_program_sums_json(p, &json);
    cvy_program_cut_json(p, &json);
    add_plan(p, task, &json);
    add_turns(p, task, &json);
    cvy_json_open(&json, "choices", '{');
    cvy_status status = cvy_program_choices_json(p, task, &json);
    cvy_json_close(&json, '}');
    cvy_json_close(&json, '}');
    if (status == CVY_OK)
        status = json.text.status;
    if (status == CVY_OK)
        *text_out = json.text.data;
    else
        cvy_text_free(&json.text);
    return status;
}

cvy_status cvy_program_print(const cvy_program *p, int task, const char *how, char **text_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    CVY_CHECK(how && text_out, CVY_E_ARGUMENT, "cvy_program_print() needs a form and a place for the text");
    const cvy_program_task *s = task >= 0 && task < p->ntask && p->task[task]->plan ? p->task[task] : NULL;
    CVY_CHECK(s, CVY_E_ARGUMENT, "step %d is not planned", task);
    const cvy_lowered *u = s->plan->lowered[s->nmicro - 1];
    if (strcmp(how, "dot") == 0)
        return cvy_graph_print_dot(u->graph, text_out);
    if (strcmp(how, "json") == 0)
        return print_json(p, task, text_out);
    if (strcmp(how, "explain") == 0)
        return cvy_plan_explain(u, &s->plan->opts, p->kernel.wisdom, text_out);
    CVY_CHECK(strcmp(how, "text") == 0, CVY_E_ARGUMENT, "print as text, dot, json or explain, not '%s'", how);
    return cvy_graph_print(u->graph, text_out);
}
