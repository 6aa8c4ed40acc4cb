/*
 * program_fill.c: copies rows of a data set into the feeds of a task, for the training loop and for cvy_program_fill()
 * of the public API.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program_fill.h"

#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "data/data_public.h"
#include "program/program_convert.h"
#include "program/program_impl.h"

cvy_shape cvy_feed_part(const cvy_plan_feed *feed, cvy_tile *tile_out)
{
    const cvy_shape part = cvy_shape_make(feed->shape.ndim - 1, feed->shape.dim + 1);
    *tile_out = (cvy_tile){.whole = part};
    if (feed->tile)
        tile_out->whole = cvy_shape_make(part.ndim, feed->tile->whole.dim + 1);
    for (int d = 0; d < part.ndim && feed->tile; d++)
        tile_out->first[d] = feed->tile->first[d + 1];
    return part;
}

/* Copies this rank's part of n samples, in runs along the last dimension. */
static void copy_parts(const void *from, cvy_dtype dtype, const cvy_plan_feed *feed, int64_t n)
{
    cvy_tile tile;
    const cvy_shape shape = cvy_feed_part(feed, &tile);
    const int64_t part = cvy_shape_elems(&shape), whole = cvy_shape_elems(&tile.whole);
    const int64_t run = part > 0 ? shape.dim[shape.ndim - 1] : 1;
    for (int64_t i = 0; i < n * part; i += run) {
        const int64_t at = i / part * whole + cvy_tile_index(&tile, &shape, i % part);
        cvy_copy_elems((const char *)from + (size_t)at * cvy_dtype_bytes(dtype), dtype,
                       (char *)feed->data + (size_t)i * cvy_dtype_bytes(feed->dtype), feed->dtype, run);
    }
}

/* A skipped sample has weight 0. Others have the weight in the data, own [n, own_elems], or 1. A mask is filled from
 * one number for each sample, too. */
static void fill_weights(const cvy_plan_feed *feed, int64_t n, const double *weight, const float *own,
                         int64_t own_elems)
{
    const cvy_span dst = {.dtype = feed->dtype, .data = feed->data};
    const int64_t elems = (int64_t)(feed->row_bytes / cvy_dtype_bytes(feed->dtype));
    for (int64_t i = 0; i < n * elems; i++)
        cvy_set(&dst, i, weight[i / elems] * (own ? own[i / elems * own_elems + i % elems % own_elems] : 1.0));
}

static int64_t field_elems(const cvy_dataset_info *data, int f, const cvy_field_part *part)
{
    return cvy_shape_elems(part && part[f].is_part ? &part[f].shape : &data->field[f].shape);
}

/* Samples of a field have as many elements as the feed has for each row, which is a part of them for ranks that share
 * samples. */
static cvy_status check_elems(const cvy_plan_feed *feed, const cvy_dataset_info *data, int f,
                              const cvy_field_part *part)
{
    const int64_t row = (int64_t)(feed->row_bytes / cvy_dtype_bytes(feed->dtype)), elems = field_elems(data, f, part);
    cvy_tile tile;
    int64_t expected = row;
    if (feed->tile && !(part && part[f].is_part)) {
        cvy_feed_part(feed, &tile);
        expected = cvy_shape_elems(&tile.whole);
    }
    CVY_CHECK(elems == expected, CVY_E_SHAPE, "%s: a sample's %s has %lld elements, and the network reads %lld",
              data->path ? data->path : data->format, data->field[f].name, (long long)elems, (long long)expected);
    return CVY_OK;
}

cvy_status cvy_program_fill_rows(cvy_program *p, int task, const cvy_dataset_info *data, int64_t n,
                                 const void *const *field, const cvy_field_part *part, const int64_t *draw,
                                 const double *sample_weight)
{
    cvy_plan *plan = p->task[task]->plan;
    const void *own_weight = NULL;
    int64_t weight_elems = 1;
    if (n == 0) /* a rank that never has samples has no memory for them */
        return CVY_OK;
    for (int f = 0; f < data->nfield; f++) {
        const cvy_field *from = &data->field[f];
        cvy_plan_feed *feed = cvy_plan_find_feed(plan, from->name);
        if (strcmp(from->name, CVY_SAMPLE_WEIGHT) == 0) {
            own_weight = from->dtype == CVY_DTYPE_F32 ? field[f] : NULL;
            weight_elems = cvy_shape_elems(&from->shape);
            continue;
        }
        if (!feed || !field[f])
            continue;
        CVY_TRY(check_elems(feed, data, f, part));
        if (feed->tile && !(part && part[f].is_part))
            copy_parts(field[f], from->dtype, feed, n);
        else
            cvy_copy_elems(field[f], from->dtype, feed->data, feed->dtype, n * field_elems(data, f, part));
    }
    cvy_plan_feed *weight = cvy_plan_find_feed(plan, CVY_SAMPLE_WEIGHT), *id = cvy_plan_find_feed(plan, "sample_id");
    if (weight)
        fill_weights(weight, n, sample_weight, own_weight, weight_elems);
    if (id)
        memcpy(id->data, draw, (size_t)n * sizeof *draw);
    return CVY_OK;
}

void cvy_program_parts(const cvy_program *p, int task, const cvy_dataset_info *data, cvy_field_part *part_out)
{
    for (int f = 0; f < data->nfield; f++) {
        const cvy_plan_feed *feed = cvy_plan_find_feed(p->task[task]->plan, data->field[f].name);
        part_out[f] = (cvy_field_part){0};
        if (!feed || !feed->tile || feed->per_step)
            continue;
        part_out[f].shape = cvy_feed_part(feed, &part_out[f].tile);
        /* a field of the same elements may have another shape: it stays whole */
        part_out[f].is_part = cvy_shape_equal(&part_out[f].tile.whole, &data->field[f].shape);
    }
}

cvy_row_needs cvy_program_row_needs(const cvy_program *p, int task)
{
    const cvy_plan *plan = p->task[task]->plan;
    cvy_row_needs needs = CVY_NEEDS_NUMBERS;
    for (int i = 0; i < plan->nbuffer; i++) {
        const cvy_plan_feed *feed =
            plan->buffer[i].region == CVY_REGION_FEED ? &plan->feeds.feed[plan->buffer[i].feed] : NULL;
        if (feed && !feed->per_step && strcmp(feed->name, "sample_id") != 0)
            needs = CVY_MIN(needs, strcmp(feed->name, "label") == 0 ? CVY_NEEDS_LABELS : CVY_NEEDS_FIELDS);
    }
    return needs;
}

/* ---- public ---- */

/* A feed and a field of one name must have samples of one size. Labels must also have the same dtype. */
static cvy_status check_feeds(cvy_plan *plan, const cvy_dataset_info *data)
{
    for (int f = 0; f < data->nfield; f++) {
        const cvy_field *from = &data->field[f];
        const cvy_plan_feed *feed = cvy_plan_find_feed(plan, from->name);
        if (!feed || (strcmp(from->name, CVY_SAMPLE_WEIGHT) == 0 && from->shape.ndim == 0))
            continue;
        cvy_tile tile;
        if (!feed->per_step)
            cvy_feed_part(feed, &tile);
        const int64_t elems =
            feed->per_step ? (int64_t)(feed->row_bytes / cvy_dtype_bytes(feed->dtype)) : cvy_shape_elems(&tile.whole);
        CVY_CHECK(elems == cvy_shape_elems(&from->shape), CVY_E_SHAPE,
                  "a sample's %s has %lld elements, %s, in the data set and %lld in the input of the task", from->name,
                  (long long)cvy_shape_elems(&from->shape), cvy_shape_text(&from->shape), (long long)elems);
        CVY_CHECK(from->dtype == feed->dtype || cvy_dtype_is_real(from->dtype) == cvy_dtype_is_real(feed->dtype),
                  CVY_E_SHAPE, "%s is %s in the data set and %s in the input of the task", from->name,
                  cvy_dtype_text(from->dtype), cvy_dtype_text(feed->dtype));
    }
    return CVY_OK;
}

void cvy_feed_clear(const cvy_plan *plan, const cvy_plan_feed *feed, int64_t first)
{
    if (!feed->per_step && feed->data && first < plan->rows)
        memset((char *)feed->data + (size_t)first * feed->row_bytes, 0, (size_t)(plan->rows - first) * feed->row_bytes);
}

cvy_status cvy_program_fill(cvy_program *program, int task, const cvy_data_batch *batch)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, program));
    cvy_data_batch b;
    CVY_TRY(CVY_OPTS_READ(cvy_data_batch, batch, &b));
    CVY_CHECK(b.data, CVY_E_ARGUMENT, "cvy_program_fill() needs a batch that cvy_data_loader_next() has filled");
    CVY_TRY(cvy_handle_check(b.data, CVY_HANDLE_DATA, "batch.data"));
    CVY_TRY(cvy_program_check_planned(program, task));
    cvy_program_task *s = program->task[task];
    const cvy_dataset_info *info = cvy_dataset_describe(b.data->set);
    cvy_plan *plan = s->plan;
    CVY_CHECK(b.rows == plan->rows ||
                  (!s->training && (s->nmicro == 1 || !program->update.shape.shards) && b.rows < plan->rows),
              CVY_E_ARGUMENT,
              "a batch of %lld rows for a %s task of %lld rows: give loader and task the same batch and accumulate",
              (long long)b.rows, s->training ? "training" : "forward", (long long)plan->rows);
    CVY_TRY(check_feeds(plan, info));
    CVY_TRY(cvy_program_fill_rows(program, task, info, b.rows, b.field, NULL, b.sample, b.weight));
    /* A forward task accepts a smaller batch. Its other rows are cleared: old contents could be labels out of range, or
     * not finite. */
    for (int i = 0; i < plan->feeds.count; i++)
        cvy_feed_clear(plan, &plan->feeds.feed[i], b.rows);
    s->has_padding = 0;
    return CVY_OK;
}
