/*
 * program_split.c: the graphs of a program whose ranks share layers (tensor parallelism) or samples (spatial
 * parallelism). program_ways.c chooses how layers are split over a tensor axis.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "pass/pass_split.h"
#include "program/program_impl.h"

/* ---- graphs ---- */

static cvy_axis last_axis(const cvy_grid *grid)
{
    int last = CVY_AXIS_DATA;
    for (int a = CVY_AXIS_TENSOR; a < CVY_AXES; a++)
        if (grid->length[a] > 1)
            last = a;
    return (cvy_axis)last;
}

/* Replaces a graph by its part along one axis. */
static cvy_status split_axis(cvy_program *p, const cvy_program_task *task, cvy_axis axis, cvy_vars *vars,
                             cvy_value **value, int n, cvy_graph **g)
{
    const cvy_grid *grid = &p->grid;
    cvy_index of_layer = {0};
    const cvy_pass_split split = {.axis = axis,
                                  .parts = grid->length[axis],
                                  .me = p->pipeline.plans_largest ? grid->length[axis] - 1 : grid->at[axis],
                                  .nwhole = p->opts.outputs_in_parts && axis != CVY_AXIS_TENSOR ? task->nloss : n,
                                  .of_layer = axis == CVY_AXIS_TENSOR ? &of_layer : NULL};
    cvy_graph *whole = *g;
    *g = NULL;
    cvy_status status = axis == CVY_AXIS_TENSOR ? cvy_program_choose_ways(p, task, whole, &of_layer) : CVY_OK;
    if (status == CVY_OK)
        status = cvy_pass_split_graph(whole, &split, vars, value, n, g);
    else
        cvy_graph_destroy(&whole);
    cvy_index_free(&of_layer);
    return status;
}

/* Only the variables of the last part are those of the program. Graphs that are parts of other ranks, and graphs that
 * are split once more, have variables of their own. */
cvy_status cvy_program_instantiate(cvy_program *p, const cvy_program_task *s, const cvy_graph_opts *opts,
                                   const char *const *wanted, int nwanted, cvy_value **value_out, cvy_graph **out)
{
    const cvy_grid *grid = &p->grid;
    cvy_vars *vars = NULL;
    cvy_graph *g = NULL;
    if (!cvy_grid_splits(grid))
        return cvy_model_instantiate(s->model, p->vars, opts, wanted, nwanted, value_out, out);
    CVY_TRY(cvy_vars_create(&vars));
    cvy_status status = cvy_model_instantiate(s->model, vars, opts, wanted, nwanted, value_out, &g);
    for (int axis = CVY_AXIS_TENSOR; axis < CVY_AXES && status == CVY_OK; axis++) {
        const int is_own = axis != (int)last_axis(grid) || p->pipeline.plans_largest;
        if (grid->length[axis] == 1)
            continue;
        g->owns_vars = 1;
        vars = NULL;
        if (is_own)
            status = cvy_vars_create(&vars);
        if (status == CVY_OK)
            status = split_axis(p, s, (cvy_axis)axis, is_own ? vars : p->vars, value_out, nwanted, &g);
    }
    if (status == CVY_OK && p->pipeline.plans_largest)
        g->owns_vars = 1;
    if (status == CVY_OK)
        *out = g;
    else {
        cvy_graph_destroy(&g);
        cvy_vars_destroy(&vars);
    }
    return status;
}

/* ---- names ---- */

/* A line for each variable: its role, dtype, shape of the whole, and name. */
static void list_names(const cvy_program *p, cvy_text *out)
{
    for (int i = 0; i < p->vars->count; i++) {
        const cvy_variable *v = p->vars->at[i];
        cvy_text_add(out, "%d %d %s %s\n", (int)v->role, (int)v->dtype,
                     cvy_shape_text(v->tile ? &v->tile->whole : &v->shape), v->name);
    }
}

static cvy_status declare_line(cvy_program *p, char *line)
{
    char shape_text[128];
    int role = 0, dtype = 0, at = 0;
    cvy_shape shape;
    cvy_variable *v = NULL;
    CVY_CHECK(sscanf(line, "%d %d %127s %n", &role, &dtype, shape_text, &at) == 3 && at > 0 && line[at], CVY_E_INTERNAL,
              "a rank's list of variables has the line '%s'", line);
    const char *name = line + at;
    if (cvy_vars_find(p->vars, name))
        return CVY_OK;
    CVY_TRY(cvy_shape_parse(shape_text, &shape));
    CVY_TRY(cvy_vars_declare(p->vars, name, (cvy_role)role, (cvy_dtype)dtype, &shape, NULL, &v));
    v->elsewhere = 1;
    return CVY_OK;
}

static cvy_status declare_lines(cvy_program *p, char *text)
{
    for (char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        *end = '\0';
        CVY_TRY(declare_line(p, text));
    }
    return CVY_OK;
}

/* All ranks of one axis learn the names of all others. */
static cvy_status share_along(cvy_program *p, cvy_comm *comm)
{
    cvy_text mine = {0};
    char *padded = NULL, *all = NULL;
    list_names(p, &mine);
    int64_t bytes = mine.data ? (int64_t)strlen(mine.data) + 1 : 1;
    cvy_status status = comm->ops->allreduce(comm, &bytes, 1, CVY_DTYPE_I64, CVY_REDUCE_MAX);
    if (status == CVY_OK)
        status = mine.status;
    if (status == CVY_OK)
        status = cvy_mem_alloc((size_t)bytes, &padded);
    if (status == CVY_OK)
        status = cvy_mem_alloc((size_t)bytes * (size_t)comm->nranks, &all);
    status = cvy_comm_agree(comm, status);
    if (status == CVY_OK && mine.data)
        memcpy(padded, mine.data, strlen(mine.data));
    if (status == CVY_OK)
        status = comm->ops->allgather(comm, padded, (size_t)bytes, all);
    for (int r = 0; r < comm->nranks && status == CVY_OK; r++)
        status = declare_lines(p, all + (size_t)r * (size_t)bytes);
    cvy_text_free(&mine);
    cvy_mem_free(&padded);
    cvy_mem_free(&all);
    return cvy_comm_agree(comm, status);
}

cvy_status cvy_program_share_names(cvy_program *p)
{
    const cvy_grid *grid = &p->grid;
    cvy_comm *const along[] = {grid->over[CVY_AXIS_BIT(CVY_AXIS_TENSOR)], grid->pipeline};
    for (int i = 0; i < CVY_COUNT(along) && cvy_grid_splits(grid); i++)
        if (along[i])
            CVY_TRY(share_along(p, along[i]));
    return CVY_OK;
}
