/*
 * program_fill.h: copies rows of a data set into the feeds of a task.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PROGRAM_FILL_H
#define CVY_PROGRAM_FILL_H

#include "data/data.h"
#include "program/program_view.h"

/* Copies n rows into the feeds that have the names of the fields, and into "weight" and "sample_id". The task must have
 * at least n rows. draw: [n] for "sample_id". CVY_E_SHAPE if a field has another number of elements than its feed. A
 * field that is NULL is left out. part: [nfield], the fields of which rows have only this rank's part; NULL: all are
 * whole. */
cvy_status cvy_program_fill_rows(cvy_program *program, int task, const cvy_dataset_info *data, int64_t n,
                                 const void *const *field, const cvy_field_part *part, const int64_t *draw,
                                 const double *sample_weight);

/* The parts of the fields that this rank's feeds of the task have, if ranks share samples; [nfield]. A field without a
 * feed, or whose feed has all of it, is whole. */
void cvy_program_parts(const cvy_program *program, int task, const cvy_dataset_info *data, cvy_field_part *part_out);

/* Clears the rows of a feed from this one on. */
void cvy_feed_clear(const cvy_plan *plan, const cvy_plan_feed *feed, int64_t first);

/* What the nodes of the task read of the data on this rank. */
cvy_row_needs cvy_program_row_needs(const cvy_program *program, int task);

/* This rank's part of a sample in a feed that has rows: its shape, and where it is in the whole sample. */
cvy_shape cvy_feed_part(const cvy_plan_feed *feed, cvy_tile *tile_out);

#endif
