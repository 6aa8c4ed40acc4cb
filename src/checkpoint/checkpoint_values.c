/*
 * checkpoint_values.c: fills variables with values that are in memory: those of a network that was imported.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_tiles.h"

/* The values in the variable's dtype, in `room`, which has space for them. */
static void convert(const cvy_tensor_entry *e, cvy_dtype to, void *room)
{
    const int64_t n = cvy_shape_elems(&e->shape);
    if (e->dtype == to)
        memcpy(room, e->data, (size_t)n * cvy_dtype_bytes(to));
    else if (to == CVY_DTYPE_F64)
        for (int64_t i = 0; i < n; i++)
            ((double *)room)[i] = (double)((const float *)e->data)[i];
    else
        for (int64_t i = 0; i < n; i++)
            ((float *)room)[i] = (float)((const double *)e->data)[i];
}

cvy_status cvy_weights_set(const cvy_tensor_entry *entry, int count, const cvy_vars *vars)
{
    for (int i = 0; i < count; i++) {
        const cvy_tensor_entry *e = &entry[i];
        cvy_variable *v = cvy_vars_find(vars, e->name);
        void *room = NULL;
        if (!v || v->elsewhere)
            continue;
        CVY_CHECK(cvy_shape_equal(&e->shape, cvy_whole_shape(v)), CVY_E_SHAPE,
                  "%s is %s in this job and %s where it was imported", v->name, cvy_shape_text(cvy_whole_shape(v)),
                  cvy_shape_text(&e->shape));
        CVY_TRY(cvy_mem_alloc((size_t)cvy_shape_elems(&e->shape) * cvy_dtype_bytes(v->dtype) + 1, &room));
        convert(e, v->dtype, room);
        const cvy_status status = cvy_tile_write(v, room);
        cvy_mem_free(&room);
        CVY_TRY(status);
    }
    return CVY_OK;
}
