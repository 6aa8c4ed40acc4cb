/*
 * program_variables.c: the variables of a program for the caller: reading and writing them, the part of a variable, an
 * input or an output that this rank has, and the memory of all.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_entry.h"
#include "base/base_handle.h"
#include "program/program_fill.h"
#include "program/program_impl.h"

static cvy_status find_variable(const cvy_program *p, const char *name, const void *data, int64_t elems,
                                cvy_variable **out)
{
    CVY_CHECK(name, CVY_E_ARGUMENT, "the name of a variable is NULL");
    cvy_variable *v = cvy_vars_find(p->vars, name);
    CVY_CHECK(v && p->allocated, CVY_E_ARGUMENT, "the program has no variable '%s'%s", name,
              p->allocated ? "" : " yet: plan it first");
    CVY_CHECK(elems == cvy_shape_elems(&v->shape), CVY_E_ARGUMENT, "variable %s is %s, that is %lld elements, not %lld",
              name, cvy_shape_text(&v->shape), (long long)cvy_shape_elems(&v->shape), (long long)elems);
    CVY_CHECK(data || elems == 0, CVY_E_ARGUMENT, "the array for variable %s is NULL", name);
    CVY_CHECK(!v->elsewhere, CVY_E_ARGUMENT, "variable %s is on another stage of the pipeline, not on this rank", name);
    *out = v;
    return CVY_OK;
}

cvy_status cvy_program_get(const cvy_program *p, const char *variable, void *plain_out, int64_t elems)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    cvy_variable *v = NULL;
    CVY_TRY(find_variable(p, variable, plain_out, elems, &v));
    return cvy_variable_read(v, plain_out);
}

cvy_status cvy_program_set(cvy_program *p, const char *variable, const void *plain, int64_t elems)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    cvy_variable *v = NULL;
    CVY_TRY(find_variable(p, variable, plain, elems, &v));
    return cvy_variable_write(v, plain);
}

/* This rank's part of a sample in an output: its shape is that of the whole sample. */
static cvy_tile output_part(const cvy_value *output)
{
    const cvy_shape *whole = output->tile ? &output->tile->whole : &output->shape;
    cvy_tile tile = {.whole = {.ndim = CVY_MAX(whole->ndim - 1, 0)}};
    for (int d = 1; d < whole->ndim; d++) {
        tile.whole.dim[d - 1] = whole->dim[d];
        tile.first[d - 1] = output->tile ? output->tile->first[d] : 0;
    }
    return tile;
}

cvy_status cvy_program_part(const cvy_program *p, int task, const char *name, cvy_shape *whole_out, int64_t *first_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    CVY_CHECK(name, CVY_E_ARGUMENT, "cvy_program_part() needs the name of a variable, an input or an output");
    const cvy_variable *v = cvy_vars_find(p->vars, name);
    const cvy_program_task *s = cvy_program_find_task(p, task);
    const cvy_plan_feed *feed = s ? cvy_plan_find_feed(s->plan, name) : NULL;
    const cvy_value *output = s ? cvy_program_output_value(s, name) : NULL;
    CVY_CHECK(p->allocated && (v || output || (feed && !feed->per_step)), CVY_E_ARGUMENT,
              "the program has no variable '%s', and task %d no such input or output%s", name, task,
              p->allocated ? "" : " yet: plan it first");
    cvy_tile tile = {.whole = v ? v->shape : (cvy_shape){0}};
    if (v && v->tile)
        tile = *v->tile;
    else if (!v && feed)
        cvy_feed_part(feed, &tile);
    else if (!v)
        tile = output_part(output);
    if (whole_out)
        *whole_out = tile.whole;
    for (int d = 0; d < tile.whole.ndim && first_out; d++)
        first_out[d] = tile.first[d];
    return CVY_OK;
}

cvy_status cvy_program_variable(const cvy_program *p, int i, const char **name_out, cvy_shape *shape_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    CVY_CHECK(name_out, CVY_E_ARGUMENT, "cvy_program_variable() needs a place for the name");
    if (i < 0 || i >= p->vars->count)
        return CVY_END;
    *name_out = p->vars->at[i]->name;
    if (shape_out)
        *shape_out = p->vars->at[i]->shape;
    return CVY_OK;
}

int64_t cvy_program_bytes(const cvy_program *p)
{
    CVY_ENTRY();
    if (CVY_KNOWN(PROGRAM, p) != CVY_OK)
        return 0;
    int64_t bytes = (int64_t)p->memory.arena_bytes;
    for (int i = 0; i < p->vars->count; i++) {
        const cvy_variable *v = p->vars->at[i];
        bytes += (int64_t)(v->bytes + (v->shadow ? cvy_variable_shadow_bytes(v) : 0));
    }
    for (int i = 0; i < p->ntask; i++)
        bytes += p->task[i]->plan ? (int64_t)cvy_plan_feed_bytes(p->task[i]->plan) : 0;
    return bytes;
}
