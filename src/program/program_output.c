/*
 * program_output.c: what a step leaves for the caller: its losses, and the outputs of all micro-batches in one piece.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "program/program.h"

/* ---- outputs: each micro-batch has its own ---- */

static size_t row_bytes(const cvy_program_task *s, int m, int output)
{
    const cvy_value *v = cvy_graph_find(s->plan->lowered[m]->graph, s->output[output].value);
    size_t bytes = cvy_dtype_bytes(cvy_plan_outside_dtype(v->dtype));
    for (int d = 1; d < v->shape.ndim; d++)
        bytes *= (size_t)v->shape.dim[d];
    return bytes;
}

/* Whether a layer of another stage of a pipeline makes the output. */
static int is_elsewhere(const cvy_program_task *s, int output)
{
    const cvy_value *v = cvy_graph_find(s->plan->lowered[0]->graph, s->output[output].value);
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

void cvy_program_gather_output(const cvy_program_task *s, int output)
{
    for (int m = 0; m < s->nmicro && s->output[output].gathered; m++) {
        const size_t row = row_bytes(s, m, output), bytes = row * (size_t)s->plan->lowered[m]->graph->batch.local_n;
        const void *from = cvy_plan_find_part(s->plan, s->output[output].value, m);
        if (bytes > 0 && from)
            memcpy((char *)s->output[output].gathered + row * (size_t)s->plan->first_row[m], from, bytes);
    }
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
