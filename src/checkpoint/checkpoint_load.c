/*
 * checkpoint_load.c: fills variables from a checkpoint set or from any safetensors file, after checking all of them.
 *
 * No step calls it. It runs before step 0 of a resumed run, of `test` and `predict`, and for `train.init`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_set.h"
#include "checkpoint/checkpoint_tiles.h"

typedef enum { PART_WEIGHTS, PART_STATES } part;

static int belongs(const cvy_variable *v, part which)
{
    return (v->role == CVY_ROLE_STATE) == (which == PART_STATES);
}

/* ---- tensors in one file or in several ---- */

struct tensor_files {
    const char *path; /* of the first file, for messages */
    cvy_safetensors **file;
    int count;
};

static cvy_status open_files(const char *const *path, int count, struct tensor_files *f)
{
    f->path = count ? path[0] : "?";
    CVY_TRY(cvy_mem_alloc(sizeof *f->file * (size_t)CVY_MAX(count, 1), &f->file));
    for (; f->count < count; f->count++)
        CVY_TRY(cvy_safetensors_open(path[f->count], &f->file[f->count]));
    return CVY_OK;
}

static void close_files(struct tensor_files *f)
{
    for (int i = 0; f->file && i < f->count; i++)
        cvy_safetensors_close(&f->file[i]);
    cvy_mem_free(&f->file);
}

/* The file that has the tensor, and the tensor's index in it; NULL if no file has it. */
static const cvy_safetensors *find_file(const struct tensor_files *f, const char *name, int *at_out)
{
    for (int i = 0; i < f->count; i++)
        if ((*at_out = cvy_safetensors_index(f->file[i], name)) >= 0)
            return f->file[i];
    return NULL;
}

/* Checks that the files have every variable with its dtype and shape; with `exactly`, that they have no other tensor.
 */
static cvy_status check_all(const struct tensor_files *f, const cvy_vars *vars, cvy_variable *const *list, part which,
                            int exactly, char *take)
{
    for (int i = 0; i < vars->count; i++) {
        const cvy_variable *v = list[i];
        int at = -1;
        if (!belongs(v, which))
            continue;
        const cvy_safetensors *file = find_file(f, v->name, &at);
        const cvy_shape *whole = cvy_whole_shape(v);
        CVY_CHECK(file, CVY_E_FORMAT, "%s lacks %s (%s %s): it was written by another network or optimiser", f->path,
                  v->name, cvy_dtype_text(v->dtype), cvy_shape_text(whole));
        const cvy_tensor_entry *e = cvy_safetensors_at(file, at);
        CVY_CHECK(e->dtype == v->dtype && cvy_shape_equal(&e->shape, whole), CVY_E_SHAPE,
                  "%s is %s %s in this job and %s %s in %s", v->name, cvy_dtype_text(v->dtype), cvy_shape_text(whole),
                  cvy_safetensors_dtype(file, at), cvy_shape_text(&e->shape), f->path);
        take[i] = 1;
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

/* Fills the variables whose take[i] is set, in the order of the list, through one buffer. comm: rank 0 reads for all
 * ranks; they agree on its errors after the last variable. */
static cvy_status fill(const struct tensor_files *f, cvy_comm *comm, cvy_variable *const *list, int count,
                       const char *take)
{
    cvy_status status = CVY_OK, read = CVY_OK;
    void *plain = NULL;
    size_t room = 0;
    int at = -1;
    for (int i = 0; i < count; i++)
        if (take[i])
            room = CVY_MAX(room, whole_bytes(list[i]));
    status = cvy_mem_alloc_pages(room, &plain);
    if (comm)
        status = cvy_comm_agree(comm, status);
    CVY_TRY_OUT(status);
    for (int i = 0; i < count; i++) {
        if (!take[i])
            continue;
        if (read == CVY_OK && (!comm || comm->rank == 0)) {
            const cvy_safetensors *file = find_file(f, list[i]->name, &at);
            read = cvy_safetensors_read(file, at, list[i]->dtype, plain);
        }
        if (comm)
            CVY_TRY_OUT(comm->ops->broadcast(comm, plain, whole_bytes(list[i]), 0));
        if (read == CVY_OK && !list[i]->elsewhere)
            read = cvy_tile_write(list[i], plain);
    }
    status = comm ? cvy_comm_agree(comm, read) : read;
out:
    cvy_mem_free_pages(&plain, room);
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
    struct tensor_files files[2] = {{0}};
    char *take = NULL;
    cvy_variable **list = NULL; /* ranks may have created their variables in another order */
    status = cvy_mem_alloc((size_t)(n * vars->count + 1), &take);
    if (status == CVY_OK)
        status = cvy_vars_by_name(vars, &list);
    for (int i = 0; i < n && status == CVY_OK && (!comm || comm->rank == 0); i++) {
        status = open_files(w[i].path, w[i].npath, &files[i]);
        if (status == CVY_OK)
            status = check_all(&files[i], vars, list, w[i].which, w[i].exactly, take + i * vars->count);
    }
    if (comm)
        status = cvy_comm_agree(comm, status);
    CVY_TRY_OUT(status);
    if (comm)
        CVY_TRY_OUT(comm->ops->broadcast(comm, take, (size_t)(n * vars->count), 0));
    for (int i = 0; i < n; i++)
        CVY_TRY_OUT(fill(&files[i], comm, list, vars->count, take + i * vars->count));
out:
    for (int i = 0; i < n; i++)
        close_files(&files[i]);
    cvy_mem_free(&list);
    cvy_mem_free(&take);
    return status;
}

cvy_status cvy_checkpoint_load(const cvy_checkpoint *c, cvy_comm *comm, cvy_vars *vars, int with_state)
{
    const struct wanted w[] = {{PART_WEIGHTS, c->weights_path, c->nweights, with_state},
                               {PART_STATES, c->states_path, c->nstates, 1}};
    return load(w, with_state ? 2 : 1, comm, vars);
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

static int converts(const char *from, cvy_dtype to)
{
    static const char *const real[] = {"F32", "F64", "F16", "BF16"};
    if (to != CVY_DTYPE_F32 && to != CVY_DTYPE_F64)
        return 0;
    for (int i = 0; i < CVY_COUNT(real); i++)
        if (strcmp(from, real[i]) == 0)
            return 1;
    return 0;
}

static void note(cvy_text *report, const char *name, const char *what, const char *shape)
{
    if (report)
        cvy_text_add(report, "%s %s (%s)\n", name, what, shape);
}

/* Decides for each variable whether it is loaded; *ntaken_out of *nwanted_out match. The first that does not match is
 * recorded as the error text. */
static void match(const cvy_safetensors *f, const char *path, const cvy_vars *vars, cvy_text *report, char *take,
                  int *ntaken_out, int *nwanted_out)
{
    int ntaken = 0, nwanted = 0;
    for (int i = 0; i < vars->count; i++) {
        const cvy_variable *v = vars->at[i];
        if (!belongs(v, PART_WEIGHTS))
            continue;
        const int at = cvy_safetensors_index(f, v->name), first = ntaken == nwanted;
        const cvy_tensor_entry *e = cvy_safetensors_at(f, at);
        nwanted++;
        if (!e) {
            note(report, v->name, "is not in the file and keeps its first values", cvy_shape_text(&v->shape));
            if (first)
                cvy_error_set(CVY_E_FORMAT, "%s lacks %s (%s)", path, v->name, cvy_shape_text(&v->shape));
        } else if (!cvy_shape_equal(&e->shape, cvy_whole_shape(v)) ||
                   (e->dtype != v->dtype && !converts(cvy_safetensors_dtype(f, at), v->dtype))) {
            note(report, v->name, "has another shape or dtype in the file and keeps its first values",
                 cvy_shape_text(&e->shape));
            if (first)
                cvy_error_set(CVY_E_SHAPE, "%s is %s %s in this job and %s %s in %s", v->name, cvy_dtype_text(v->dtype),
                              cvy_shape_text(&v->shape), cvy_safetensors_dtype(f, at), cvy_shape_text(&e->shape), path);
        } else {
            take[i] = 1;
            ntaken++;
        }
    }
    *ntaken_out = ntaken;
    *nwanted_out = nwanted;
}

static void note_unused(const cvy_safetensors *f, const cvy_vars *vars, const char *take, cvy_text *report)
{
    for (int i = 0; i < cvy_safetensors_count(f); i++) {
        const cvy_tensor_entry *e = cvy_safetensors_at(f, i);
        const cvy_variable *v = cvy_vars_find(vars, e->name);
        if (!v || !take[v->index])
            note(report, e->name, "of the file is not used", cvy_shape_text(&e->shape));
    }
}

cvy_status cvy_weights_load(const char *path, cvy_vars *vars, int partial, cvy_text *report)
{
    cvy_status status = CVY_OK;
    cvy_safetensors *f = NULL;
    char *take = NULL;
    int ntaken = 0, nwanted = 0;
    CVY_TRY_OUT(cvy_mem_alloc((size_t)vars->count, &take));
    CVY_TRY_OUT(cvy_safetensors_open(path, &f));
    match(f, path, vars, report, take, &ntaken, &nwanted);
    note_unused(f, vars, take, report);
    if (ntaken < nwanted && !partial)
        CVY_FAIL_OUT(CVY_E_SHAPE, "%s; %d of %d variables agree", cvy_error_text(), ntaken, nwanted);
    if (ntaken == 0)
        CVY_FAIL_OUT(CVY_E_FORMAT,
                     "%s: none of the %d variables of this job agrees in name and shape with its %d tensors", path,
                     nwanted, cvy_safetensors_count(f));
    CVY_TRY_OUT(fill(&(struct tensor_files){.path = path, .file = &f, .count = 1}, NULL, vars->at, vars->count, take));
    if (report)
        status = report->status;
out:
    cvy_safetensors_close(&f);
    cvy_mem_free(&take);
    return status;
}
