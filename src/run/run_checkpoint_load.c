/*
 * run_checkpoint_load.c: fills variables from a checkpoint set or from any safetensors file, after checking all of them.
 *
 * In the step: never; before step 0 of a resumed run, of `test`, `predict`, and for `train.init`.
 */
#include <string.h>

#include "run/run_checkpoint.h"
#include "run/run_checkpoint_set.h"

typedef enum { PART_WEIGHTS, PART_STATES } part;

static int belongs(const cvy_variable *v, part which)
{
    return (v->role == CVY_ROLE_STATE) == (which == PART_STATES);
}

/* Fills the variables whose take[index] is set, through one buffer. */
static cvy_status fill(const cvy_safetensors *f, cvy_vars *vars, const char *take)
{
    cvy_status status = CVY_OK;
    void *plain = NULL;
    size_t room = 0;
    for (int i = 0; i < vars->count; i++)
        if (take[i])
            room = CVY_MAX(room, (size_t)cvy_shape_elems(&vars->at[i]->shape) * cvy_dtype_bytes(vars->at[i]->dtype));
    CVY_TRY_OUT(cvy_mem_alloc_pages(room, &plain));
    for (int i = 0; i < vars->count; i++) {
        if (!take[i])
            continue;
        CVY_TRY_OUT(cvy_safetensors_read(f, cvy_safetensors_index(f, vars->at[i]->name), vars->at[i]->dtype, plain));
        CVY_TRY_OUT(cvy_variable_write(vars->at[i], plain));
    }
out:
    cvy_mem_free_pages(&plain, room);
    return status;
}

/* Every variable of the part is in the file with its dtype and shape; with `exactly`, the file has no other. */
static cvy_status check_all(const cvy_safetensors *f, const char *path, const cvy_vars *vars, part which, int exactly, char *take)
{
    for (int i = 0; i < vars->count; i++) {
        const cvy_variable *v = vars->at[i];
        if (!belongs(v, which))
            continue;
        const int at = cvy_safetensors_index(f, v->name);
        CVY_CHECK(at >= 0, CVY_E_FORMAT, "%s lacks %s (%s %s): it was written by another network or optimiser", path, v->name,
                  cvy_dtype_text(v->dtype), cvy_shape_text(&v->shape));
        const cvy_tensor_entry *e = cvy_safetensors_at(f, at);
        CVY_CHECK(e->dtype == v->dtype && cvy_shape_equal(&e->shape, &v->shape), CVY_E_SHAPE, "%s is %s %s in this job and %s %s in %s", v->name,
                  cvy_dtype_text(v->dtype), cvy_shape_text(&v->shape), cvy_safetensors_dtype(f, at), cvy_shape_text(&e->shape), path);
        take[i] = 1;
    }
    for (int i = 0; exactly && i < cvy_safetensors_count(f); i++) {
        const char *name = cvy_safetensors_at(f, i)->name;
        const cvy_variable *v = cvy_vars_find(vars, name);
        CVY_CHECK(v && belongs(v, which), CVY_E_FORMAT, "%s has %s, which this job does not: it was written by another network or optimiser", path, name);
    }
    return CVY_OK;
}

cvy_status cvy_checkpoint_load(const cvy_checkpoint *c, cvy_vars *vars, int with_state)
{
    cvy_status status = CVY_OK;
    cvy_safetensors *weights = NULL, *states = NULL;
    char *take = NULL, *take_states = NULL, *states_path = NULL;
    CVY_TRY_OUT(cvy_mem_printf(&states_path, "%s/%s", c->path, CVY_SET_STATES));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)vars->count, &take));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)vars->count, &take_states));
    CVY_TRY_OUT(cvy_safetensors_open(c->weights_path, &weights));
    CVY_TRY_OUT(check_all(weights, c->weights_path, vars, PART_WEIGHTS, with_state, take));
    if (with_state) {
        CVY_TRY_OUT(cvy_safetensors_open(states_path, &states));
        CVY_TRY_OUT(check_all(states, states_path, vars, PART_STATES, 1, take_states));
        CVY_TRY_OUT(fill(states, vars, take_states));
    }
    CVY_TRY_OUT(fill(weights, vars, take));
out:
    cvy_safetensors_close(&states);
    cvy_safetensors_close(&weights);
    cvy_mem_free(&take_states);
    cvy_mem_free(&take);
    cvy_mem_free(&states_path);
    return status;
}

cvy_status cvy_checkpoint_load_pending(const cvy_checkpoint *c, cvy_vars *pending)
{
    cvy_status status = CVY_OK;
    cvy_safetensors *sums = NULL;
    char *take = NULL, *path = NULL;
    CVY_TRY_OUT(cvy_mem_printf(&path, "%s/%s", c->path, CVY_SET_PENDING));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)pending->count, &take));
    CVY_TRY_OUT(cvy_safetensors_open(path, &sums));
    CVY_TRY_OUT(check_all(sums, path, pending, PART_STATES, 1, take));
    CVY_TRY_OUT(fill(sums, pending, take));
out:
    cvy_safetensors_close(&sums);
    cvy_mem_free(&take);
    cvy_mem_free(&path);
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

/* Decides for each variable; *ntaken_out of *nwanted_out agree. The first that does not is recorded as the fault's text. */
static void match(const cvy_safetensors *f, const char *path, const cvy_vars *vars, cvy_text *report, char *take, int *ntaken_out, int *nwanted_out)
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
        } else if (!cvy_shape_equal(&e->shape, &v->shape) || (e->dtype != v->dtype && !converts(cvy_safetensors_dtype(f, at), v->dtype))) {
            note(report, v->name, "has another shape or dtype in the file and keeps its first values", cvy_shape_text(&e->shape));
            if (first)
                cvy_error_set(CVY_E_SHAPE, "%s is %s %s in this job and %s %s in %s", v->name, cvy_dtype_text(v->dtype), cvy_shape_text(&v->shape),
                              cvy_safetensors_dtype(f, at), cvy_shape_text(&e->shape), path);
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
        CVY_FAIL_OUT(CVY_E_FORMAT, "%s: none of the %d variables of this job agrees in name and shape with its %d tensors", path, nwanted,
                     cvy_safetensors_count(f));
    CVY_TRY_OUT(fill(f, vars, take));
    if (report)
        status = report->status;
out:
    cvy_safetensors_close(&f);
    cvy_mem_free(&take);
    return status;
}
