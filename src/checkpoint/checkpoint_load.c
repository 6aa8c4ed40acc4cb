/*
 * checkpoint_load.c: fills variables from a checkpoint set, after checking all of them.
 *
 * No step calls it. It runs before step 0 of a resumed run, and of `test` and `predict`. Weights of other networks are
 * read by checkpoint_adopt.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_average.h"
#include "checkpoint/checkpoint_files.h"
#include "checkpoint/checkpoint_set.h"
#include "checkpoint/checkpoint_tiles.h"

typedef enum { PART_WEIGHTS, PART_STATES } part;

static int belongs(const cvy_variable *v, part which)
{
    return (v->role == CVY_ROLE_STATE) == (which == PART_STATES);
}

/* ---- tensors in one file or in several ---- */

cvy_status cvy_tensor_files_open(const char *const *path, int count, cvy_tensor_files *f)
{
    f->path = count ? path[0] : "?";
    CVY_TRY(cvy_mem_alloc(sizeof *f->file * (size_t)CVY_MAX(count, 1), &f->file));
    for (; f->count < count; f->count++)
        CVY_TRY(cvy_safetensors_open(path[f->count], &f->file[f->count]));
    return CVY_OK;
}

void cvy_tensor_files_close(cvy_tensor_files *f)
{
    for (int i = 0; f->file && i < f->count; i++)
        cvy_safetensors_close(&f->file[i]);
    cvy_mem_free(&f->file);
}

/* The place of a tensor; its file is NULL if no file has it. */
static cvy_tensor_place find_tensor(const cvy_tensor_files *f, const char *name)
{
    for (int i = 0; i < f->count; i++) {
        const int at = cvy_safetensors_index(f->file[i], name);
        if (at >= 0)
            return (cvy_tensor_place){f->file[i], at};
    }
    return (cvy_tensor_place){NULL, -1};
}

/* Checks that the files have every variable with its dtype and shape; with `exactly`, that they have no other tensor.
 */
static cvy_status check_all(const cvy_tensor_files *f, const cvy_vars *vars, cvy_variable *const *list, part which,
                            int exactly, cvy_tensor_place *place)
{
    for (int i = 0; i < vars->count; i++) {
        const cvy_variable *v = list[i];
        if (!belongs(v, which))
            continue;
        const cvy_tensor_place found = find_tensor(f, v->name);
        const cvy_shape *whole = cvy_whole_shape(v);
        CVY_CHECK(found.file, CVY_E_FORMAT, "%s lacks %s (%s %s): it was written by another network or optimiser",
                  f->path, v->name, cvy_dtype_text(v->dtype), cvy_shape_text(whole));
        const cvy_tensor_entry *e = cvy_safetensors_at(found.file, found.at);
        CVY_CHECK(e->dtype == v->dtype && cvy_shape_equal(&e->shape, whole), CVY_E_SHAPE,
                  "%s is %s %s in this job and %s %s in %s", v->name, cvy_dtype_text(v->dtype), cvy_shape_text(whole),
                  cvy_safetensors_dtype(found.file, found.at), cvy_shape_text(&e->shape), f->path);
        place[i] = found;
    }
    for (int k = 0; exactly && k < f->count; k++)
        for (int i = 0; i < cvy_safetensors_count(f->file[k]); i++) {
            const char *name = cvy_safetensors_at(f->file[k], i)->name;
            const cvy_variable *v = cvy_vars_find(vars, name);
            CVY_CHECK(v && belongs(v, which), CVY_E_FORMAT,
                      "%s has %s, which this job does not: it was written by another network or optimiser", f->path,
                      name);
        }
    return CVY_OK;
}

static size_t whole_bytes(const cvy_variable *v)
{
    return (size_t)cvy_shape_elems(cvy_whole_shape(v)) * cvy_dtype_bytes(v->dtype);
}

static cvy_status read_and_write(const cvy_tensor_place *place, cvy_comm *comm, cvy_variable *v, cvy_status read,
                                 void *plain, cvy_status *read_out)
{
    if (read == CVY_OK && (!comm || comm->rank == 0))
        read = cvy_safetensors_read(place->file, place->at, v->dtype, plain);
    if (comm)
        CVY_TRY(comm->ops->broadcast(comm, plain, whole_bytes(v), 0));
    if (read == CVY_OK && !v->elsewhere)
        read = cvy_tile_write(v, plain);
    *read_out = read;
    return CVY_OK;
}

cvy_status cvy_tensor_files_fill(const cvy_tensor_place *place, cvy_comm *comm, cvy_variable *const *list, int count)
{
    cvy_status status = CVY_OK, read = CVY_OK;
    void *plain = NULL;
    char *take = NULL;
    size_t room = 0;
    status = cvy_mem_alloc((size_t)count + 1, &take);
    for (int i = 0; i < count && status == CVY_OK; i++)
        take[i] = place[i].file != NULL;
    if (comm)
        status = cvy_comm_agree(comm, status);
    CVY_TRY_OUT(status);
    if (comm)
        CVY_TRY_OUT(comm->ops->broadcast(comm, take, (size_t)count, 0));
    for (int i = 0; i < count; i++)
        if (take[i])
            room = CVY_MAX(room, whole_bytes(list[i]));
    status = cvy_mem_alloc_pages(room, &plain);
    if (comm)
        status = cvy_comm_agree(comm, status);
    CVY_TRY_OUT(status);
    for (int i = 0; i < count; i++)
        if (take[i])
            CVY_TRY_OUT(read_and_write(&place[i], comm, list[i], read, plain, &read));
    status = comm ? cvy_comm_agree(comm, read) : read;
out:
    cvy_mem_free_pages(&plain, room);
    cvy_mem_free(&take);
    return status;
}

/* ---- a set ---- */

struct wanted {
    part which;
    const char *const *path;
    int npath, exactly;
};

/* Opens and checks all files before it fills any variable, so that a bad file changes nothing. Only rank 0 opens files.
 */
static cvy_status load(const struct wanted *w, int n, cvy_comm *comm, cvy_vars *vars)
{
    cvy_status status = CVY_OK;
    cvy_tensor_files files[2] = {{0}};
    cvy_tensor_place *place = NULL;
    cvy_variable **list = NULL; /* ranks may have created their variables in another order */
    status = cvy_mem_alloc(sizeof *place * (size_t)(n * vars->count + 1), &place);
    if (status == CVY_OK)
        status = cvy_vars_by_name(vars, &list);
    for (int i = 0; i < n && status == CVY_OK && (!comm || comm->rank == 0); i++) {
        status = cvy_tensor_files_open(w[i].path, w[i].npath, &files[i]);
        if (status == CVY_OK)
            status = check_all(&files[i], vars, list, w[i].which, w[i].exactly, place + i * vars->count);
    }
    if (comm)
        status = cvy_comm_agree(comm, status);
    CVY_TRY_OUT(status);
    for (int i = 0; i < n; i++)
        CVY_TRY_OUT(cvy_tensor_files_fill(place + i * vars->count, comm, list, vars->count));
out:
    for (int i = 0; i < n; i++)
        cvy_tensor_files_close(&files[i]);
    cvy_mem_free(&list);
    cvy_mem_free(&place);
    return status;
}

cvy_status cvy_checkpoint_load(const cvy_checkpoint *c, cvy_comm *comm, cvy_vars *vars, int with_state)
{
    const struct wanted w[] = {{PART_WEIGHTS, c->weights_path, c->nweights, with_state},
                               {PART_STATES, c->states_path, c->nstates, 1}};
    cvy_vars *view = NULL;
    cvy_status status = with_state ? cvy_vars_as_saved(vars, &view) : CVY_OK;
    if (comm)
        status = cvy_comm_agree(comm, status);
    if (status == CVY_OK)
        status = load(w, with_state ? 2 : 1, comm, view ? view : vars);
    for (int i = 0; view && i < vars->count; i++)
        vars->at[i]->written++;
    cvy_vars_destroy(&view);
    return status;
}

cvy_status cvy_checkpoint_load_pending(const cvy_checkpoint *c, cvy_comm *comm, cvy_vars *pending, int of_grid)
{
    cvy_pool *pool = NULL;
    struct wanted w = {.which = PART_STATES, .exactly = !of_grid};
    const char **path = NULL;
    cvy_status status = cvy_pool_create(&pool);
    if (status == CVY_OK && (!comm || comm->rank == 0))
        status = cvy_set_files(pool, c->path, CVY_SET_PENDING, &path, &w.npath);
    w.path = path;
    if (comm)
        status = cvy_comm_agree(comm, status);
    if (status == CVY_OK)
        status = load(&w, 1, comm, pending);
    cvy_pool_destroy(&pool);
    return status;
}

/* ---- weights alone ---- */

int cvy_tensor_converts(const char *from, cvy_dtype to)
{
    static const char *const real[] = {"F32", "F64", "F16", "BF16"};
    if (to != CVY_DTYPE_F32 && to != CVY_DTYPE_F64)
        return 0;
    for (int i = 0; i < CVY_COUNT(real); i++)
        if (strcmp(from, real[i]) == 0)
            return 1;
    return 0;
}
