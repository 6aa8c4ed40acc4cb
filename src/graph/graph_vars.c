/*
 * graph_vars.c: the set of variables, which several graphs share and a checkpoint saves.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_index.h"
#include "graph/graph_copy.h"

cvy_status cvy_vars_create(cvy_vars **out)
{
    cvy_vars *vars = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *vars, &vars));
    const cvy_status status = cvy_pool_create(&vars->pool);
    if (status != CVY_OK)
        cvy_mem_free(&vars);
    else
        *out = vars;
    return status;
}

void cvy_vars_destroy(cvy_vars **vars)
{
    if (!*vars)
        return;
    for (int i = 0; i < (*vars)->count; i++) {
        if ((*vars)->at[i]->is_borrowed)
            continue;
        const cvy_space *space = (*vars)->at[i]->space;
        cvy_space_free(space, &(*vars)->at[i]->data, (*vars)->at[i]->bytes);
        cvy_space_free(space, &(*vars)->at[i]->shadow, cvy_variable_shadow_bytes((*vars)->at[i]));
    }
    cvy_mem_free(&(*vars)->at);
    cvy_index_free(&(*vars)->place);
    cvy_pool_destroy(&(*vars)->pool);
    cvy_mem_free(vars);
}

cvy_variable *cvy_vars_find(const cvy_vars *vars, const char *name)
{
    const int at = cvy_index_find(&vars->place, name);
    return at >= 0 ? vars->at[at] : NULL;
}

void cvy_vars_set_average(cvy_vars *vars, const cvy_variable *weight, const cvy_variable *average)
{
    vars->at[weight->index]->average = vars->at[average->index];
}

cvy_status cvy_layouts_keep(const cvy_vars *vars, cvy_layouts *out)
{
    CVY_TRY(cvy_mem_alloc(sizeof *out->at * ((size_t)vars->count + 1), &out->at));
    for (int i = 0; i < vars->count; i++)
        out->at[i] = (struct cvy_variable_layout){vars->at[i]->layout, vars->at[i]->layout_fixed};
    return CVY_OK;
}

void cvy_layouts_restore(const cvy_vars *vars, const cvy_layouts *layouts)
{
    for (int i = 0; i < vars->count && layouts->at; i++) {
        vars->at[i]->layout = layouts->at[i].layout;
        vars->at[i]->layout_fixed = layouts->at[i].fixed;
    }
}

int cvy_vars_have_averages(const cvy_vars *vars)
{
    int found = 0;
    for (int i = 0; i < vars->count; i++)
        found |= vars->at[i]->average != NULL;
    return found;
}

void cvy_variable_borrow(cvy_variable *v, const cvy_variable *from)
{
    v->layout = from->layout;
    v->space = from->space;
    v->data = from->data;
    v->bytes = from->bytes;
    v->is_borrowed = 1;
}

cvy_status cvy_vars_declare(cvy_vars *vars, const char *name, cvy_role role, cvy_dtype dtype, const cvy_shape *shape,
                            const cvy_init *init, cvy_variable **out)
{
    cvy_variable *v = cvy_vars_find(vars, name);
    if (v) {
        CVY_CHECK(cvy_shape_equal(&v->shape, shape) && v->dtype == dtype && v->role == role, CVY_E_SHAPE,
                  "variable %s is %s %s already, and is now declared as %s %s: layers that share a name must agree",
                  name, cvy_dtype_text(v->dtype), cvy_shape_text(&v->shape), cvy_dtype_text(dtype),
                  cvy_shape_text(shape));
        *out = v;
        return CVY_OK;
    }
    CVY_TRY(cvy_mem_reserve(&vars->at, &vars->room, vars->count, sizeof *vars->at));
    CVY_TRY(cvy_pool_alloc(vars->pool, sizeof *v, &v));
    CVY_TRY(cvy_pool_strdup(vars->pool, name, &v->name));
    *v = (cvy_variable){.name = v->name,
                        .role = role,
                        .dtype = dtype,
                        .shape = *shape,
                        .lr_mult = 1,
                        .decay_mult = 1,
                        .written = 1,
                        .index = vars->count};
    if (init) {
        char *method = NULL, *options = NULL;
        CVY_TRY(cvy_pool_strdup(vars->pool, init->method, &method));
        if (init->options)
            CVY_TRY(cvy_pool_strdup(vars->pool, init->options, &options));
        v->init = (cvy_init){.method = method, .options = options, .fan_in = init->fan_in, .fan_out = init->fan_out};
    }
    CVY_TRY(cvy_index_add(&vars->place, v->name, vars->count));
    vars->at[vars->count++] = v;
    *out = v;
    return CVY_OK;
}

size_t cvy_variable_shadow_bytes(const cvy_variable *v)
{
    cvy_blocking b;
    return v->has_shadow && cvy_blocking_make(&v->layout, &v->shape, &b) == CVY_OK
               ? (size_t)b.elems * cvy_dtype_bytes(CVY_DTYPE_BF16)
               : 0;
}

size_t cvy_variable_bytes(const cvy_variable *v)
{
    cvy_blocking b;
    if (cvy_blocking_make(&v->layout, &v->shape, &b) != CVY_OK)
        return 0;
    return (size_t)b.elems * cvy_dtype_bytes(v->dtype) + cvy_variable_shadow_bytes(v);
}

/* A part of a variable in its layout: whole blocks along dimension 0. */
struct slab {
    cvy_shape shape;  /* of its elements */
    int64_t skipped;  /* elements before it, in row-major order */
    size_t at, bytes; /* in the memory of the variable */
};

/* The smallest slab that has the elements [first, first + n). If dimension 0 is not the outermost in memory, it is the
 * whole variable. */
static cvy_status find_slab(const cvy_variable *v, int64_t first, int64_t n, struct slab *out)
{
    const int64_t each = v->shape.ndim > 0 && v->shape.dim[0] > 0 ? cvy_shape_elems(&v->shape) / v->shape.dim[0] : 0;
    cvy_blocking b;
    *out = (struct slab){.shape = v->shape, .bytes = v->bytes};
    CVY_TRY(cvy_blocking_make(&v->layout, &v->shape, &b));
    int outermost = n > 0 && each > 0 && cvy_layout_whole(&v->layout) == 0;
    for (int d = 1; d < v->shape.ndim; d++)
        outermost = outermost && (b.stride[d] < b.stride[0] || b.padded[d] == b.dim_block[d]);
    if (!outermost)
        return CVY_OK;
    const int64_t block = b.dim_block[0], from = first / each / block, end = (first + n - 1) / each / block + 1;
    const size_t size = (size_t)b.stride[0] * cvy_dtype_bytes(v->dtype);
    out->shape.dim[0] = CVY_MIN(end * block, v->shape.dim[0]) - from * block;
    out->skipped = from * block * each;
    out->at = (size_t)from * size;
    out->bytes = (size_t)(end - from) * size;
    return CVY_OK;
}

static cvy_status copy_blocked(const cvy_variable *v, const struct slab *slab, char *data, int64_t first, int64_t n,
                               char *plain, int to_plain)
{
    cvy_copy c = {.ndim = v->shape.ndim, .from_dtype = v->dtype, .to_dtype = v->dtype};
    cvy_offsets offsets;
    CVY_TRY(cvy_offsets_make(&v->layout, &slab->shape, &offsets));
    memcpy(c.dim, slab->shape.dim, sizeof c.dim);
    memcpy(to_plain ? c.from : c.to, offsets.term, sizeof c.from);
    cvy_copy_run(&c, first - slab->skipped, n, to_plain ? data : plain, to_plain ? plain : data);
    cvy_offsets_free(&offsets);
    return CVY_OK;
}

/* Copies the elements [first, first + n), in row-major order, between the variable's layout and plain layout. Of memory
 * that the host cannot read, only the part that has them is moved, so that a copy in pieces costs no more than one of
 * all. */
static cvy_status copy_plain(const cvy_variable *v, int64_t first, int64_t n, char *plain, int to_plain)
{
    CVY_CHECK(v->data, CVY_E_INTERNAL, "variable %s has no memory yet: plan the program first", v->name);
    const size_t size = cvy_dtype_bytes(v->dtype), bytes = (size_t)n * size;
    char *data = (char *)v->data + (size_t)first * size;
    struct slab slab = {.shape = v->shape, .bytes = v->bytes};
    if (cvy_layout_is_plain(&v->layout))
        return to_plain ? cvy_space_read(v->space, plain, data, bytes) : cvy_space_write(v->space, data, plain, bytes);
    if (cvy_space_is_host(v->space))
        return copy_blocked(v, &slab, v->data, first, n, plain, to_plain);
    CVY_TRY(find_slab(v, first, n, &slab));
    CVY_TRY(cvy_space_map(v->space, (char *)v->data + slab.at, slab.bytes, &data));
    const cvy_status status = copy_blocked(v, &slab, data, first, n, plain, to_plain);
    const cvy_status back =
        cvy_space_unmap(v->space, (char *)v->data + slab.at, slab.bytes, !to_plain && status == CVY_OK, data);
    return status == CVY_OK ? back : status;
}

cvy_status cvy_variable_read(const cvy_variable *v, void *plain_out)
{
    return copy_plain(v, 0, cvy_shape_elems(&v->shape), plain_out, 1);
}

cvy_status cvy_variable_write(cvy_variable *v, const void *plain)
{
    v->written++;
    return copy_plain(v, 0, cvy_shape_elems(&v->shape), (char *)(uintptr_t)plain, 0);
}

cvy_status cvy_variable_write_part(cvy_variable *v, int64_t first, int64_t n, const void *plain)
{
    v->written++;
    return copy_plain(v, first, n, (char *)(uintptr_t)plain, 0);
}
