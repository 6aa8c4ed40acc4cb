/*
 * score_rows.c: see score_rows.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "score/score_rows.h"

#include <string.h>

static cvy_span span_of(const cvy_field *field, const cvy_rows *rows, void *data)
{
    cvy_span span = {.dtype = field->dtype, .ndim = field->shape.ndim + 1, .dim = {rows->n}, .data = data};
    memcpy(span.dim + 1, field->shape.dim, sizeof *field->shape.dim * (size_t)field->shape.ndim);
    span.elems = cvy_span_prod(&span, 0, span.ndim);
    return span;
}

/* own: [n, each], or NULL. */
static cvy_status make_weights(const cvy_rows *rows, const float *own, int64_t each, cvy_bytes *room,
                               cvy_score_rows *out)
{
    double *weight = NULL;
    CVY_TRY(cvy_bytes_need(room, sizeof *weight * (size_t)CVY_MAX(rows->n * each, 1)));
    weight = room->data;
    for (int64_t i = 0; i < rows->n * each; i++)
        weight[i] = rows->weight[i / each] * (own ? own[i] : 1.0);
    out->weight = weight;
    out->weight_each = each;
    return CVY_OK;
}

cvy_status cvy_score_rows_of(const cvy_dataset_info *info, const cvy_rows *rows, cvy_bytes *room, cvy_score_rows *out)
{
    const float *own = NULL;
    int64_t each = 1;
    *out = (cvy_score_rows){.field = cvy_dataset_target(info)};
    for (int f = 0; f < info->nfield; f++) {
        const cvy_field *field = &info->field[f];
        if (field == out->field)
            out->target = span_of(field, rows, rows->field[f]);
        else if (strcmp(field->name, CVY_SAMPLE_WEIGHT) == 0 && rows->field[f]) {
            own = rows->field[f];
            each = cvy_shape_elems(&field->shape);
        }
    }
    if (out->field && (info->target_is_input || strcmp(out->field->name, "y") == 0) && info->scaling.n > 0 &&
        rows->n > 0)
        cvy_scaling_undo(&info->scaling, rows->n, cvy_shape_elems(&out->field->shape), out->field->dtype,
                         out->target.data);
    return make_weights(rows, own, each, room, out);
}
