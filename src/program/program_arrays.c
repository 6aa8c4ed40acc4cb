/*
 * program_arrays.c: arrays of the caller, of any dtype that fits, are copied into inputs and out of outputs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "program/program_convert.h"
#include "program/program_fill.h"
#include "program/program_impl.h"

/* Elements of n rows; inputs that are given once a step have all of theirs. */
static int64_t elems_of(const cvy_plan_feed *feed, int64_t n)
{
    return (int64_t)((feed->per_step ? feed->bytes : (size_t)n * feed->row_bytes) / cvy_dtype_bytes(feed->dtype));
}

static int is_planned(const cvy_program *p, int task)
{
    return p->allocated && cvy_program_find_task(p, task);
}

cvy_status cvy_program_check_planned(const cvy_program *p, int task)
{
    CVY_CHECK(is_planned(p, task), CVY_E_ARGUMENT,
              "task %d is not planned: the program has %d tasks, and cvy_program_plan() comes first", task, p->ntask);
    return CVY_OK;
}

int64_t cvy_program_samples(const cvy_program *p, int task)
{
    CVY_ENTRY();
    if (CVY_KNOWN(PROGRAM, p) != CVY_OK)
        return 0;
    const cvy_program_task *s = is_planned(p, task) ? p->task[task] : NULL;
    return !s ? 0 : s->has_padding ? s->samples : s->plan->rows;
}

/* Every loss of a training must leave padding out. */
static cvy_status check_losses(const cvy_program *p, int task)
{
    const cvy_graph *g = p->task[task]->split.graph[0];
    CVY_CHECK(!p->update.def->apart, CVY_E_UNSUPPORTED,
              "ranks with different numbers of samples go with the update modes sync, delayed and zero1: in the others "
              "each rank has steps or means of its own");
    for (int n = 0; n < g->nnode; n++) {
        const cvy_node *node = g->node[n];
        CVY_CHECK(node->removed || !(node->op->flags & CVY_OP_LOSS) || (node->nsrc > 3 && node->src[3]), CVY_E_ARGUMENT,
                  "loss %s does not read the input weight, so it would count padding: name it as a source, \"output, "
                  "target, weight\"",
                  node->name);
    }
    return CVY_OK;
}

/* The weight of each sample, 1 or 0, with which losses leave padding out. A stage of a pipeline, or a rank that never
 * has samples, may lack the input. */
static cvy_status set_weights(cvy_program *p, int task, int64_t rows)
{
    const cvy_plan *plan = p->task[task]->plan;
    cvy_plan_feed *weight = cvy_plan_find_feed(p->task[task]->plan, CVY_SAMPLE_WEIGHT);
    if (!weight && (!p->task[task]->training || plan->rows == 0 || cvy_grid_is_used(&p->grid)))
        return CVY_OK;
    if (!cvy_program_feed(p, task, CVY_SAMPLE_WEIGHT)) /* it has said why */
        return CVY_E_ARGUMENT;
    CVY_CHECK(cvy_dtype_is_real(weight->dtype) && weight->row_bytes == cvy_dtype_bytes(weight->dtype), CVY_E_SHAPE,
              "input weight of task %d has the shape %s of %s, expected a real number for each sample", task,
              cvy_shape_text(&weight->shape), cvy_dtype_text(weight->dtype));
    const cvy_span span = {.dtype = weight->dtype, .data = weight->data};
    for (int64_t i = 0; i < plan->rows; i++)
        cvy_set(&span, i, i < rows);
    return CVY_OK;
}

cvy_status cvy_program_set_rows(cvy_program *p, int task, int64_t rows)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    CVY_TRY(cvy_program_check_planned(p, task));
    cvy_program_task *s = p->task[task];
    CVY_CHECK(rows >= 0 && rows <= s->plan->rows, CVY_E_ARGUMENT,
              "%lld rows of task %d, but this rank has planned %lld: from 0 to these are possible", (long long)rows,
              task, (long long)s->plan->rows);
    if (s->training)
        CVY_TRY(check_losses(p, task));
    CVY_TRY(set_weights(p, task, rows));
    for (int i = 0; i < s->plan->feeds.count; i++) {
        const cvy_plan_feed *feed = &s->plan->feeds.feed[i];
        if (strcmp(feed->name, CVY_SAMPLE_WEIGHT) != 0 && strcmp(feed->name, "sample_id") != 0)
            cvy_feed_clear(s->plan, feed, rows);
    }
    s->has_padding = 1;
    s->samples = rows;
    return CVY_OK;
}

cvy_status cvy_program_write_input(cvy_program *p, int task, const char *input, cvy_dtype dtype, const void *data,
                                   int64_t elems)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    if (!input)
        return cvy_error_set(CVY_E_ARGUMENT, "cvy_program_write_input() got no name of an input");
    CVY_TRY(cvy_program_check_planned(p, task));
    if (p->task[task]->plan->rows == 0 && elems == 0) /* a rank that never has samples has no inputs */
        return CVY_OK;
    if (!cvy_program_feed(p, task, input)) /* it has said why */
        return CVY_E_ARGUMENT;
    const cvy_plan_feed *feed = cvy_plan_find_feed(p->task[task]->plan, input);
    const int64_t samples = cvy_program_samples(p, task), n = elems_of(feed, samples);
    CVY_TRY(cvy_convert_check(input, dtype, feed->dtype));
    CVY_CHECK(
        elems == n, CVY_E_SHAPE,
        "input %s of task %d has the shape %s on this rank, with %lld rows of samples: that is %lld elements, not "
        "%lld",
        input, task, cvy_shape_text(&feed->shape), (long long)samples, (long long)n, (long long)elems);
    CVY_TRY(cvy_convert_elems(input, data, dtype, feed->data, feed->dtype, n));
    cvy_feed_clear(p->task[task]->plan, feed, samples);
    return CVY_OK;
}

cvy_status cvy_program_read_output(const cvy_program *p, int task, const char *layer, cvy_dtype dtype, void *data_out,
                                   int64_t elems)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    const void *data = NULL;
    cvy_shape shape;
    if (!layer)
        return cvy_error_set(CVY_E_ARGUMENT, "cvy_program_read_output() got no name of a layer");
    CVY_TRY(cvy_program_output(p, task, layer, &data, &shape));
    const cvy_dtype own = p->opts.dtype == CVY_DTYPE_F64 ? CVY_DTYPE_F64 : CVY_DTYPE_F32;
    if (p->task[task]->has_padding && shape.ndim > 0 && shape.dim[0] == p->task[task]->plan->rows)
        shape.dim[0] = p->task[task]->samples;
    const int64_t n = cvy_shape_elems(&shape);
    CVY_TRY(cvy_convert_check(layer, dtype, own));
    CVY_CHECK(elems == n, CVY_E_SHAPE,
              "output %s of task %d has the shape %s on this rank, that is %lld elements, not %lld", layer, task,
              cvy_shape_text(&shape), (long long)n, (long long)elems);
    CVY_CHECK(data_out || n == 0, CVY_E_ARGUMENT, "cvy_program_read_output() got no memory for output %s", layer);
    if (n > 0)
        cvy_copy_elems(data, own, data_out, dtype, n);
    return CVY_OK;
}
