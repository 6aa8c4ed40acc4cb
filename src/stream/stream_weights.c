/*
 * stream_weights.c: the variables of a program as one block of memory, which a stream sends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_mem.h"
#include "program/program_view.h"
#include "stream/stream.h"

/* Bytes that a variable has in the block; the optimiser's state stays with the trainers. */
static size_t plain_bytes(const cvy_variable *v)
{
    return v->role == CVY_ROLE_STATE ? 0 : (size_t)cvy_shape_elems(&v->shape) * cvy_dtype_bytes(v->dtype);
}

void cvy_stream_list_weights(const cvy_program *p, cvy_text *text)
{
    for (int i = 0; p && i < cvy_program_vars(p)->count; i++) {
        const cvy_variable *v = cvy_program_vars(p)->at[i];
        if (plain_bytes(v) > 0)
            cvy_text_add(text, "%s %s %s\n", v->name, cvy_dtype_text(v->dtype), cvy_shape_text(&v->shape));
    }
    if (!p)
        cvy_text_add(text, "no program\n");
}

cvy_status cvy_stream_alloc_weights(const cvy_program *p, cvy_stream_weights *w)
{
    w->bytes = 0;
    for (int i = 0; p && i < cvy_program_vars(p)->count; i++)
        w->bytes += plain_bytes(cvy_program_vars(p)->at[i]);
    return w->bytes > 0 ? cvy_mem_alloc(w->bytes, &w->data) : CVY_OK;
}

cvy_status cvy_stream_get_weights(const cvy_program *p, cvy_stream_weights *w)
{
    const cvy_vars *vars = cvy_program_vars(p);
    char *at = w->data;
    for (int i = 0; i < vars->count; i++) {
        const cvy_variable *v = vars->at[i];
        if (plain_bytes(v) > 0)
            CVY_TRY(cvy_variable_read(v, at));
        at += plain_bytes(v);
    }
    return CVY_OK;
}

cvy_status cvy_stream_set_weights(cvy_program *p, const cvy_stream_weights *w)
{
    const cvy_vars *vars = cvy_program_vars(p);
    const char *at = w->data;
    for (int i = 0; i < vars->count; i++) {
        cvy_variable *v = vars->at[i];
        if (plain_bytes(v) > 0)
            CVY_TRY(cvy_variable_write(v, at));
        at += plain_bytes(v);
    }
    return CVY_OK;
}
