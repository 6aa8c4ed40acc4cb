/*
 * checkpoint_average.c: which of a weight and its running average a checkpoint set gives which name.
 *
 * Others use weights.safetensors: predict, test, and programs that are not convoy. So it has the averages under the
 * names of the weights, and the weights with which training goes on are states: NAME.trained.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "checkpoint/checkpoint_average.h"

static cvy_status add(cvy_vars *view, const cvy_variable *v, const char *name, cvy_role role)
{
    cvy_variable *w = NULL;
    CVY_TRY(cvy_vars_declare(view, name, role, v->dtype, &v->shape, NULL, &w));
    w->tile = v->tile;
    w->elsewhere = v->elsewhere;
    cvy_variable_borrow(w, v);
    return CVY_OK;
}

static cvy_status fill(const cvy_vars *vars, cvy_vars *view)
{
    for (int i = 0; i < vars->count; i++) {
        const cvy_variable *v = vars->at[i];
        char *name = NULL;
        if (!v->average) {
            if (!v->of || v->of->average != v)
                CVY_TRY(add(view, v, v->name, v->role));
            continue;
        }
        CVY_TRY(cvy_pool_printf(view->pool, &name, "%s.trained", v->name));
        CVY_TRY(add(view, v->average, v->name, CVY_ROLE_WEIGHT));
        CVY_TRY(add(view, v, name, CVY_ROLE_STATE));
    }
    return CVY_OK;
}

cvy_status cvy_vars_as_saved(const cvy_vars *vars, cvy_vars **view_out)
{
    *view_out = NULL;
    if (!cvy_vars_have_averages(vars))
        return CVY_OK;
    CVY_TRY(cvy_vars_create(view_out));
    const cvy_status status = fill(vars, *view_out);
    if (status != CVY_OK)
        cvy_vars_destroy(view_out);
    return status;
}
