/*
 * op_redistribute_range.c: which entries of a dimension each rank of an axis of the grid has.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "op/comm/op_redistribute.h"

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

void cvy_slide_range(const cvy_slide *s, int part, int parts, int64_t *first_out, int64_t *end_out)
{
    const int64_t first = cvy_share_first(s->results, part, parts), end = cvy_share_first(s->results, part + 1, parts);
    if (s->transposed) {
        *first_out = floor_div(first + s->pad - s->reach, s->stride) + 1;
        *end_out = floor_div(end - 1 + s->pad, s->stride) + 1;
    } else {
        *first_out = first * s->stride - s->pad;
        *end_out = (end - 1) * s->stride - s->pad + s->reach;
    }
    if (end <= first)
        *end_out = *first_out;
}

void cvy_has_range(const struct cvy_redistribute *o, cvy_has has, int part, int64_t *first_out, int64_t *end_out)
{
    switch (has) {
    case CVY_HAS_WHOLE:
        *first_out = 0;
        *end_out = o->n;
        break;
    case CVY_HAS_SHARE:
        *first_out = cvy_share_first(o->n, part, o->parts);
        *end_out = cvy_share_first(o->n, part + 1, o->parts);
        break;
    case CVY_HAS_WINDOW: cvy_slide_range(&o->slide, part, o->parts, first_out, end_out); break;
    }
}
