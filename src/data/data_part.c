/*
 * data_part.c: parts of samples, for ranks that share each sample (spatial parallelism): which elements of a row-major
 * array a part has, and how to cut or read them.
 *
 * The loader's threads call it, for each sample.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_file.h"
#include "data/data_reader.h"

enum { SHORT_RUN = 4096 }; /* bytes that are not worth a read of their own */

/* The first of the dimensions that form one run: those behind it are whole. 0 dimensions have one element. */
static int run_dim(const cvy_field_part *part)
{
    int d = part->shape.ndim - 1;
    while (d > 0 && part->shape.dim[d] == part->tile.whole.dim[d])
        d--;
    return CVY_MAX(d, 0);
}

int cvy_part_next(const cvy_field_part *part, int64_t *at, cvy_part_run *run_out)
{
    const int64_t elems = cvy_shape_elems(&part->shape);
    int64_t n = 1;
    if (*at >= elems)
        return 0;
    for (int d = run_dim(part); d < part->shape.ndim; d++)
        n *= part->shape.dim[d];
    *run_out = (cvy_part_run){.in_whole = cvy_tile_index(&part->tile, &part->shape, *at), .in_part = *at, .n = n};
    *at += n;
    return 1;
}

void cvy_part_cut(const cvy_field_part *part, size_t elem, const void *whole, void *to)
{
    cvy_part_run run;
    for (int64_t at = 0; cvy_part_next(part, &at, &run);)
        memmove((char *)to + (size_t)run.in_part * elem, (const char *)whole + (size_t)run.in_whole * elem,
                (size_t)run.n * elem);
}

/* The first run's start, and the last run's end, in the whole. */
static void span_of(const cvy_field_part *part, int64_t *first_out, int64_t *end_out)
{
    const int64_t elems = cvy_shape_elems(&part->shape);
    *first_out = elems ? cvy_tile_index(&part->tile, &part->shape, 0) : 0;
    *end_out = elems ? cvy_tile_index(&part->tile, &part->shape, elems - 1) + 1 : 0;
}

size_t cvy_part_work_bytes(const cvy_field_part *part, size_t elem)
{
    cvy_part_run run = {0};
    int64_t at = 0, first, end;
    if (!cvy_part_next(part, &at, &run) || at == cvy_shape_elems(&part->shape) || (size_t)run.n * elem >= SHORT_RUN)
        return 0;
    span_of(part, &first, &end);
    return (size_t)(end - first) * elem;
}

cvy_status cvy_part_read(const cvy_field_part *part, size_t elem, int fd, int64_t offset, const char *what, void *work,
                         void *to)
{
    const size_t bytes = cvy_part_work_bytes(part, elem);
    cvy_part_run run;
    int64_t first, end;
    span_of(part, &first, &end);
    if (bytes > 0)
        CVY_TRY(cvy_pread_all(fd, work, bytes, offset + first * (int64_t)elem, what));
    for (int64_t at = 0; cvy_part_next(part, &at, &run);)
        if (bytes > 0)
            memcpy((char *)to + (size_t)run.in_part * elem, (const char *)work + (size_t)(run.in_whole - first) * elem,
                   (size_t)run.n * elem);
        else
            CVY_TRY(cvy_pread_all(fd, (char *)to + (size_t)run.in_part * elem, (size_t)run.n * elem,
                                  offset + run.in_whole * (int64_t)elem, what));
    return CVY_OK;
}
