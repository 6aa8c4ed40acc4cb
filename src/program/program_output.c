/*
 * program_output.c: what a step leaves for the caller: its losses, and the outputs of all micro-batches in one piece.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/number/base_exact.h"
#include "context/context_device.h"
#include "program/program_impl.h"

/* ---- outputs: each micro-batch has its own ---- */

static size_t row_bytes(const cvy_program_task *s, int m, int output)
{
    const cvy_value *v = cvy_graph_find(s->plan->lowered[m]->graph, s->output[output].value);
    size_t bytes = cvy_dtype_bytes(cvy_plan_outside_dtype(v->dtype));
    for (int d = 1; d < v->shape.ndim; d++)
        bytes *= (size_t)v->shape.dim[d];
    return bytes;
}

static const cvy_value *value_of(const cvy_program_task *s, int output)
{
    return cvy_graph_find(s->plan->lowered[0]->graph, s->output[output].value);
}

/* Whether a layer of another stage of a pipeline makes the output. */
static int is_elsewhere(const cvy_program_task *s, int output)
{
    const cvy_value *v = value_of(s, output);
    return v && v->elsewhere;
}

cvy_status cvy_program_allocate_outputs(cvy_program_task *s)
{
    for (int i = 0; i < s->noutput && s->nmicro > 1; i++) {
        if (is_elsewhere(s, i))
            continue;
        s->output[i].gathered_bytes = CVY_MAX(row_bytes(s, 0, i) * (size_t)s->plan->rows, 64);
        CVY_TRY(cvy_mem_alloc_pages(s->output[i].gathered_bytes, &s->output[i].gathered));
    }
    return CVY_OK;
}

void cvy_program_free_outputs(cvy_program_task *s)
{
    for (int i = 0; i < s->noutput; i++)
        if (s->output[i].gathered)
            cvy_mem_free_pages(&s->output[i].gathered, s->output[i].gathered_bytes);
}

/* Copies the rows of all micro-batches to the memory for all, if the task has that. */
static void gather(const cvy_program_task *s, int output)
{
    for (int m = 0; m < s->nmicro && s->output[output].gathered; m++) {
        const size_t row = row_bytes(s, m, output), bytes = row * (size_t)s->plan->lowered[m]->graph->batch.local_n;
        const void *from = cvy_plan_find_part(s->plan, s->output[output].value, m);
        if (bytes > 0 && from)
            memcpy((char *)s->output[output].gathered + row * (size_t)s->plan->first_row[m], from, bytes);
    }
}

/* The number of the output with this name; -1: there is none. */
static int find_output(const cvy_program_task *s, const char *layer)
{
    for (int i = 0; i < s->noutput; i++)
        if (strcmp(s->output[i].name, layer) == 0 && value_of(s, i))
            return i;
    return -1;
}

const cvy_value *cvy_program_output_value(const cvy_program_task *s, const char *layer)
{
    const int i = find_output(s, layer);
    return i >= 0 ? value_of(s, i) : NULL;
}

cvy_status cvy_program_output(const cvy_program *p, int task, const char *layer, const void **data_out,
                              cvy_shape *shape_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    CVY_CHECK(layer && data_out, CVY_E_ARGUMENT,
              "cvy_program_output() needs the name of a layer and a place for the address");
    const cvy_program_task *s = cvy_program_find_task(p, task);
    CVY_CHECK(s, CVY_E_ARGUMENT, "step %d is not planned", task);
    CVY_CHECK(s->nmicro == 1 || p->update.shape.shards || !s->training, CVY_E_UNSUPPORTED,
              "outputs of a step of several micro-batches cannot be read");
    const int i = find_output(s, layer);
    CVY_CHECK(i >= 0, CVY_E_ARGUMENT, "step %d keeps no output '%s': name it in `outputs`", task, layer);
    const cvy_value *v = value_of(s, i);
    CVY_CHECK(!v->elsewhere, CVY_E_ARGUMENT, "output '%s' is made on another stage of the pipeline, not on this rank",
              layer);
    gather(s, i);
    const void *data = s->output[i].gathered ? s->output[i].gathered : cvy_plan_find(s->plan, s->output[i].value, 0);
    if (!data && s->plan->rows > 0 && v->producer && !cvy_space_is_host(&p->context->space)) /* copied in vain */
        return cvy_device_explain(p->context, cvy_error_prefix(CVY_E_INTERNAL, "the output %s cannot be read", layer));
    CVY_CHECK(data || s->plan->rows == 0, CVY_E_UNSUPPORTED,
              "output '%s' is an input of the step: no layer computes it", layer);
    *data_out = data;
    if (shape_out) {
        *shape_out = v->shape;
        shape_out->dim[0] = s->nmicro > 1 && v->shape.ndim > 0 ? s->plan->rows : v->shape.dim[0];
    }
    return CVY_OK;
}

const char *cvy_program_output_name(const cvy_program *p, int task, int output)
{
    return output < p->task[task]->noutput ? p->task[task]->output[output].name : NULL;
}

int cvy_program_makes_output(const cvy_program *p, int task, int output)
{
    const cvy_value *v = value_of(p->task[task], output);
    return v && !v->elsewhere;
}

cvy_shape cvy_program_output_sample(const cvy_program *p, int task, int output)
{
    const cvy_shape *shape = &value_of(p->task[task], output)->shape;
    return cvy_shape_make(shape->ndim - 1, shape->dim + 1);
}

/* ---- losses ---- */

int cvy_program_loss_parts(const cvy_program_task *s)
{
    return s->plan->opts.micro_sums == CVY_MICRO_SEPARATE ? s->nmicro : 1;
}

const double *cvy_program_loss_part(const cvy_program_task *s, int loss, int part)
{
    if (cvy_program_loss_parts(s) > 1)
        return cvy_plan_find_part(s->plan, s->loss[loss].value, part);
    return cvy_plan_find(s->latest ? s->latest : s->plan, s->loss[loss].value, 0);
}

cvy_status cvy_program_loss(const cvy_program *p, int task, const char *loss, double *value_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    CVY_CHECK(loss && value_out, CVY_E_ARGUMENT,
              "cvy_program_loss() needs the name of a loss and a place for its value");
    CVY_CHECK(p->allocated, CVY_E_ARGUMENT, "plan the program first");
    const cvy_program_task *s = cvy_program_find_task(p, task);
    const int nparts = s ? cvy_program_loss_parts(s) : 0;
    double sum = 0;
    int found = 0, is_named = 0;
    for (int i = 0; s && i < s->nloss; i++) {
        is_named |= strcmp(s->loss[i].name, loss) == 0;
        for (int m = 0; m < nparts && strcmp(s->loss[i].name, loss) == 0; m++) {
            const double *value =
                s->training && p->update.def->loss ? p->update.def->loss(p, s, i) : cvy_program_loss_part(s, i, m);
            found |= value != NULL;
            sum += value ? *value : 0;
        }
    }
    if (is_named && !found && !cvy_space_is_host(&p->context->space)) /* it was copied from the device in vain */
        return cvy_error_prefix(CVY_E_INTERNAL, "the loss %s cannot be read", loss);
    CVY_CHECK(found, CVY_E_ARGUMENT, "step %d has no loss '%s'", task, loss);
    *value_out = p->kernel.by_clock ? (double)NAN : sum;
    return CVY_OK;
}

int cvy_program_nlosses(const cvy_program *p, int task)
{
    return p->task[task]->nloss;
}

const char *cvy_program_loss_name(const cvy_program *p, int task, int loss)
{
    return p->task[task]->loss[loss].name;
}

cvy_status cvy_program_losses(const cvy_program *p, int task, double *value_out)
{
    for (int i = 0; i < p->task[task]->nloss; i++)
        CVY_TRY(cvy_program_report_fault(p, cvy_program_loss(p, task, p->task[task]->loss[i].name, &value_out[i])));
    return CVY_OK;
}

double cvy_program_loss_norm(const cvy_program *p, int task, int loss)
{
    const cvy_program_task *s = p->task[task];
    char name[160];
    snprintf(name, sizeof name, "%s.norm", s->loss[loss].value);
    const double *weights = cvy_plan_find(s->latest ? s->latest : s->plan, name, 0);
    return weights ? *weights : (double)s->batch;
}

/* Whether the loss of this rank counts. Ranks that share samples have the same loss, of which the first counts, or each
 * its share of the loss along the axes over which the value is summed. */
static int counts_loss(const cvy_grid *grid, const cvy_value *value)
{
    int counts = 1;
    for (int a = CVY_AXIS_TENSOR; a < CVY_AXES; a++)
        counts = counts && (grid->at[a] == 0 || (value && value->over & CVY_AXIS_BIT(a)));
    return counts;
}

/* The normaliser is global, so only one rank counts it: the first one of the stage that has the loss, which is 0 on
 * other stages. */
void cvy_program_add_loss(const cvy_program *p, int task, int loss, cvy_exact *sum, cvy_exact *norm)
{
    const cvy_program_task *s = p->task[task];
    const cvy_grid *grid = &p->grid;
    const cvy_value *value = cvy_graph_find(s->plan->lowered[0]->graph, s->loss[loss].value);
    const int counts = counts_loss(grid, value),
              is_first = grid->data_rank == 0 && cvy_grid_is_first_part(grid) && value && !value->elsewhere;
    const double n = cvy_program_loss_norm(p, task, loss);
    for (int m = 0; m < cvy_program_loss_parts(s); m++) {
        const double *part = cvy_program_loss_part(s, loss, m);
        cvy_exact_add(sum, part && counts ? *part * n : 0);
    }
    cvy_exact_add(norm, is_first ? n : 0);
}
