/*
 * program_block.c: arrays of the caller that have ghost cells around them, as the blocks of a decomposed field have.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_entry.h"
#include "base/base_handle.h"
#include "program/program_convert.h"
#include "program/program_fill.h"
#include "program/program_impl.h"

/* The inside of an array, line by line; a line is a run of its last dimension. */
struct block {
    cvy_shape array, inside;
    const int64_t *ghost;
    int64_t line, at[CVY_NDIM_MAX]; /* of the inside */
};

static cvy_status start_block(const char *name, const cvy_shape *array, const int64_t *ghost, struct block *b)
{
    CVY_CHECK(array && ghost && array->ndim > 0 && array->ndim <= CVY_NDIM_MAX, CVY_E_ARGUMENT,
              "the block for %s has no shape or no numbers of ghost cells", name);
    *b = (struct block){.array = *array, .inside = *array, .ghost = ghost};
    for (int d = 0; d < array->ndim; d++) {
        b->inside.dim[d] = array->dim[d] - 2 * ghost[d];
        CVY_CHECK(ghost[d] >= 0 && b->inside.dim[d] >= (d > 0), CVY_E_SHAPE, /* there may be no samples */
                  "the block for %s has %lld cells in dimension %d, and %lld of them on each side are ghost cells",
                  name, (long long)array->dim[d], d, (long long)ghost[d]);
    }
    b->line = b->inside.dim[array->ndim - 1];
    return CVY_OK;
}

/* The first element of the current line in the array. */
static int64_t line_at(const struct block *b)
{
    int64_t at = 0;
    for (int d = 0; d < b->array.ndim; d++)
        at = at * b->array.dim[d] + b->ghost[d] + b->at[d];
    return at;
}

/* Goes on to the next line; 0: there is none. */
static int next_line(struct block *b)
{
    for (int d = b->array.ndim - 2; d >= 0; d--) {
        if (++b->at[d] < b->inside.dim[d])
            return 1;
        b->at[d] = 0;
    }
    return 0;
}

/* The inside must be what the tensor has on this rank; `rows` of its first dimension are samples. */
static cvy_status check_inside(const char *name, const cvy_shape *own, int64_t rows, const struct block *b)
{
    cvy_shape expected = *own;
    if (expected.ndim > 0)
        expected.dim[0] = rows;
    CVY_CHECK(cvy_shape_equal(&expected, &b->inside), CVY_E_SHAPE,
              "the block for %s is %s without its ghost cells, but %s has the shape %s on this rank", name,
              cvy_shape_text(&b->inside), name, cvy_shape_text(&expected));
    return CVY_OK;
}

cvy_status cvy_program_write_block(cvy_program *p, int task, const char *input, cvy_dtype dtype, const void *data,
                                   const cvy_shape *array, const int64_t *ghost)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    struct block b;
    CVY_CHECK(input, CVY_E_ARGUMENT, "cvy_program_write_block() got no name of an input");
    CVY_TRY(start_block(input, array, ghost, &b));
    CVY_CHECK(data || b.inside.dim[0] == 0, CVY_E_ARGUMENT, "cvy_program_write_block() got no data");
    CVY_TRY(cvy_program_check_planned(p, task));
    if (p->task[task]->plan->rows == 0 && b.inside.dim[0] == 0) /* a rank that never has samples has no inputs */
        return CVY_OK;
    if (!cvy_program_feed(p, task, input)) /* it has said why */
        return CVY_E_ARGUMENT;
    const cvy_plan_feed *feed = cvy_plan_find_feed(p->task[task]->plan, input);
    const int64_t rows = cvy_program_samples(p, task);
    CVY_TRY(check_inside(input, &feed->shape, rows, &b));
    CVY_TRY(cvy_convert_check(input, dtype, feed->dtype));
    int64_t to = 0;
    for (int more = rows > 0; more; more = next_line(&b)) {
        const char *from = (const char *)data + (size_t)line_at(&b) * cvy_dtype_bytes(dtype);
        CVY_TRY(cvy_convert_elems(input, from, dtype, (char *)feed->data + (size_t)to * cvy_dtype_bytes(feed->dtype),
                                  feed->dtype, b.line));
        to += b.line;
    }
    cvy_feed_clear(p->task[task]->plan, feed, rows);
    return CVY_OK;
}

cvy_status cvy_program_read_block(const cvy_program *p, int task, const char *layer, cvy_dtype dtype, void *data,
                                  const cvy_shape *array, const int64_t *ghost)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    struct block b;
    const void *out = NULL;
    cvy_shape shape;
    const cvy_dtype own = p->opts.dtype == CVY_DTYPE_F64 ? CVY_DTYPE_F64 : CVY_DTYPE_F32;
    CVY_CHECK(layer, CVY_E_ARGUMENT, "cvy_program_read_block() got no name of a layer");
    CVY_CHECK(dtype == CVY_DTYPE_F32 || dtype == CVY_DTYPE_F64, CVY_E_ARGUMENT,
              "output %s is read into an array of dtype number %d, expected f32 or f64", layer, (int)dtype);
    CVY_TRY(start_block(layer, array, ghost, &b));
    CVY_CHECK(data || b.inside.dim[0] == 0, CVY_E_ARGUMENT, "cvy_program_read_block() got no memory");
    CVY_TRY(cvy_program_output(p, task, layer, &out, &shape));
    CVY_TRY(check_inside(layer, &shape, cvy_program_samples(p, task), &b));
    int64_t from = 0;
    for (int more = b.inside.dim[0] > 0; more; more = next_line(&b)) {
        cvy_copy_elems((const char *)out + (size_t)from * cvy_dtype_bytes(own), own,
                       (char *)data + (size_t)line_at(&b) * cvy_dtype_bytes(dtype), dtype, b.line);
        from += b.line;
    }
    return CVY_OK;
}
