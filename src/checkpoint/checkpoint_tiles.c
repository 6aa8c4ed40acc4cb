/*
 * checkpoint_tiles.c: gathers the parts of variables for a save, and takes parts out of whole variables when a
 * checkpoint is read. So a checkpoint holds whole variables, whatever the grid of ranks.
 *
 * One variable at a time is gathered over the tensor axis, by the rank that saves. Only this rank needs memory for
 * whole variables, and only until it has written them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "checkpoint/checkpoint_tiles.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_mem.h"

static int by_name(const void *a, const void *b)
{
    const cvy_variable *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

cvy_status cvy_vars_by_name(const cvy_vars *vars, cvy_variable ***out)
{
    CVY_TRY(cvy_mem_alloc(sizeof **out * (size_t)CVY_MAX(vars->count, 1), out));
    if (vars->count > 0) /* without variables there is no array */
        memcpy(*out, vars->at, sizeof **out * (size_t)vars->count);
    qsort(*out, (size_t)vars->count, sizeof **out, by_name);
    return CVY_OK;
}

/* Copies between a part in plain layout and the whole variable, in runs along the last dimension. */
static void copy_tile(const cvy_tile *tile, const cvy_shape *part, size_t size, char *whole, char *plain, int to_whole)
{
    const int64_t n = cvy_shape_elems(part), run = part->ndim ? part->dim[part->ndim - 1] : 1;
    for (int64_t i = 0; i < n; i += run) {
        char *inside = whole + (size_t)cvy_tile_index(tile, part, i) * size, *own = plain + (size_t)i * size;
        memcpy(to_whole ? inside : own, to_whole ? own : inside, (size_t)run * size);
    }
}

cvy_status cvy_tile_write(cvy_variable *v, const void *whole)
{
    const size_t size = cvy_dtype_bytes(v->dtype);
    void *plain = NULL;
    if (!v->tile)
        return cvy_variable_write(v, whole);
    CVY_TRY(cvy_mem_alloc((size_t)cvy_shape_elems(&v->shape) * size, &plain));
    copy_tile(v->tile, &v->shape, size, (char *)(uintptr_t)whole, plain, 0);
    const cvy_status status = cvy_variable_write(v, plain);
    cvy_mem_free(&plain);
    return status;
}

/* ---- gathering ---- */

/* A variable of another stage of a pipeline has no memory here. */
static int is_gathered(const cvy_variable *v)
{
    return v->tile && !v->elsewhere;
}

/* What a rank has of a variable. */
struct piece {
    cvy_shape shape;
    cvy_tile tile;
};

/* Memory for the parts of all ranks, on the root. */
struct gathering {
    cvy_comm *comm;
    struct piece *piece;
    size_t *bytes;
    char *mine, *all;
};

static void free_gathering(struct gathering *g)
{
    cvy_mem_free(&g->piece);
    cvy_mem_free(&g->bytes);
    cvy_mem_free(&g->mine);
    cvy_mem_free(&g->all);
}

static cvy_status prepare(struct gathering *g, const cvy_variable *v)
{
    const size_t size = cvy_dtype_bytes(v->dtype);
    size_t total = 0;
    for (int r = 0; r < g->comm->nranks; r++) {
        g->bytes[r] = (size_t)cvy_shape_elems(&g->piece[r].shape) * size;
        total += g->bytes[r];
    }
    CVY_TRY(cvy_mem_alloc((size_t)cvy_shape_elems(&v->shape) * size, &g->mine));
    if (g->comm->rank == 0)
        CVY_TRY(cvy_mem_alloc(total, &g->all));
    return cvy_variable_read(v, g->mine);
}

/* Gathers one variable into whole->data on rank 0 of the tensor axis. */
static cvy_status gather(struct gathering *g, const cvy_variable *v, cvy_variable *whole)
{
    const struct piece mine = {v->shape, *v->tile};
    const size_t size = cvy_dtype_bytes(v->dtype);
    CVY_TRY(g->comm->ops->allgather(g->comm, &mine, sizeof mine, g->piece));
    CVY_TRY(cvy_comm_agree(g->comm, prepare(g, v)));
    CVY_TRY(g->comm->ops->gatherv(g->comm, g->mine, g->bytes[g->comm->rank], g->all, g->bytes, 0));
    char *at = g->all;
    for (int r = 0; r < g->comm->nranks && whole; r++) {
        copy_tile(&g->piece[r].tile, &g->piece[r].shape, size, whole->data, at, 1);
        at += g->bytes[r];
    }
    cvy_mem_free(&g->mine);
    cvy_mem_free(&g->all);
    return CVY_OK;
}

/* A variable of the new set: memory of its own if it is gathered, else that of v. */
static cvy_status add_whole(cvy_vars *set, cvy_variable *v, cvy_variable **out)
{
    cvy_variable *w = NULL;
    CVY_TRY(cvy_vars_declare(set, v->name, v->role, v->dtype, cvy_whole_shape(v), NULL, &w));
    w->elsewhere = v->elsewhere;
    *out = w;
    if (is_gathered(v)) {
        w->bytes = (size_t)cvy_shape_elems(&w->shape) * cvy_dtype_bytes(w->dtype);
        return cvy_space_alloc(NULL, w->bytes, 0, &w->data);
    }
    cvy_variable_borrow(w, v);
    return CVY_OK;
}

static cvy_status add_all(const cvy_vars *vars, cvy_vars **set)
{
    CVY_TRY(cvy_vars_create(set));
    for (int i = 0; i < vars->count; i++) {
        cvy_variable *w = NULL;
        CVY_TRY(add_whole(*set, vars->at[i], &w));
    }
    return CVY_OK;
}

cvy_status cvy_tiles_gather(const cvy_vars *vars, const cvy_grid *grid, cvy_vars **whole_out)
{
    struct gathering g = {.comm = grid->over[CVY_AXIS_BIT(CVY_AXIS_TENSOR)]};
    cvy_variable **sorted = NULL;
    cvy_vars *set = NULL;
    const int takes_part = grid->data_rank == 0 && grid->at[CVY_AXIS_SPACE0] == 0 && grid->at[CVY_AXIS_SPACE1] == 0 &&
                           grid->at[CVY_AXIS_SPACE2] == 0;
    cvy_status status = cvy_grid_saves(grid) ? add_all(vars, &set) : CVY_OK;
    if (status == CVY_OK)
        status = cvy_vars_by_name(vars, &sorted);
    if (status == CVY_OK && g.comm)
        status = cvy_mem_alloc(sizeof *g.piece * (size_t)g.comm->nranks, &g.piece);
    if (status == CVY_OK && g.comm)
        status = cvy_mem_alloc(sizeof *g.bytes * (size_t)g.comm->nranks, &g.bytes);
    status = cvy_comm_agree(grid->all, status);
    for (int i = 0; i < vars->count && status == CVY_OK && takes_part; i++)
        if (is_gathered(sorted[i]))
            status = gather(&g, sorted[i], set ? cvy_vars_find(set, sorted[i]->name) : NULL);
    free_gathering(&g);
    cvy_mem_free(&sorted);
    status = cvy_comm_agree(grid->all, status);
    if (status != CVY_OK)
        cvy_vars_destroy(&set);
    *whole_out = set;
    return status;
}
