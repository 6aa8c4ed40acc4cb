/*
 * program_update.c: the update mode of a program: which one the options ask for, and calls of its functions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program_update.h"

#include "program/program_impl.h"

/* ---- choosing the mode ---- */

const cvy_update_def *cvy_update_by_mode(int mode)
{
    int count = 0;
    const cvy_update_def *const *table = cvy_update_table(&count);
    for (int i = 0; i < count; i++)
        if (table[i]->mode == mode)
            return table[i];
    return NULL;
}

static const cvy_update_def *asked_for(const cvy_program_opts *opts)
{
    int count = 0;
    const cvy_update_def *const *table = cvy_update_table(&count);
    for (int i = 0; i < count; i++)
        if (table[i]->asked_for && table[i]->asked_for(opts))
            return table[i];
    return cvy_update_by_mode((int)opts->update_mode);
}

static cvy_status check(const cvy_program *p, const cvy_update_def *def)
{
    cvy_update_conflict c = {0};
    if (def->plan.conflict && def->plan.conflict(&p->opts, &c)) {
        const cvy_update_def *mode = cvy_update_by_mode((int)p->opts.update_mode);
        return cvy_error_set(CVY_E_CONFIG, "opts.%s is %s, which does not go with %s updates: it %s", c.option,
                             c.value ? c.value
                             : mode  ? mode->name
                                     : "unknown",
                             def->name, c.why);
    }
    return def->plan.check ? def->plan.check(p) : CVY_OK;
}

static cvy_update_shape plain_shape(const cvy_program *p)
{
    return (cvy_update_shape){.comm = p->grid.data, /* NULL: not connected yet */
                              .nworkers = p->grid.ndata,
                              .gradient_sets = 1,
                              .state_parts = 1,
                              .shares_memory = 1,
                              .shares_weights = 1};
}

cvy_status cvy_program_open_update(cvy_program *p)
{
    const cvy_update_def *def = asked_for(&p->opts);
    CVY_CHECK(def && (int)p->opts.update_mode >= 0, CVY_E_CONFIG, "opts.update_mode is %d, and there is no such mode",
              (int)p->opts.update_mode);
    CVY_TRY(check(p, def));
    CVY_CHECK(!def->apart || !cvy_grid_is_used(&p->grid), CVY_E_CONFIG,
              "opts.update_mode: %s has each rank train a whole model by itself, which does not go with opts.pipeline, "
              "tensor and spatial, whose ranks compute a step together: take sync, delayed or zero1",
              def->name);
    if (def->many_ranks && p->grid.ndata == 1)
        def = cvy_update_find("sync");
    p->update.def = def;
    if (def->plan.create)
        CVY_TRY(def->plan.create(p));
    p->update.shape = plain_shape(p);
    if (def->plan.shape)
        def->plan.shape(p, &p->update.shape);
    return CVY_OK;
}

/* ---- calls of the mode's functions ---- */

const cvy_update_def *cvy_program_update(const cvy_program *p)
{
    return p->update.def;
}

int cvy_program_nworkers(const cvy_program *p)
{
    return p->update.shape.nworkers;
}

int cvy_program_is_flushed(const cvy_program *p)
{
    return !p->update.def->is_flushed || p->update.def->is_flushed(p);
}

cvy_status cvy_program_abandon(cvy_program *p)
{
    return p->update.def->abandon ? p->update.def->abandon(p) : CVY_OK;
}

cvy_status cvy_program_collect(cvy_program *p, cvy_vars **pending_out)
{
    *pending_out = NULL;
    const cvy_status status = p->update.def->save.begin ? p->update.def->save.begin(p, pending_out) : CVY_OK;
    return cvy_comm_agree(p->context->comm, status);
}

void cvy_program_release(cvy_program *p)
{
    if (p->update.def->save.release)
        p->update.def->save.release(p);
}

const cvy_pending *cvy_program_pending(const cvy_program *p)
{
    const cvy_pending *pending = p->update.def->save.pending ? p->update.def->save.pending(p) : NULL;
    return pending && pending->plan ? pending : NULL;
}

int cvy_program_pending_task(const cvy_program *p)
{
    const cvy_pending *pending = cvy_program_pending(p);
    for (int i = 0; i < p->ntask && pending; i++)
        if (p->task[i] == pending->task)
            return i;
    return -1;
}

cvy_status cvy_program_resume_pending(cvy_program *p, int task, double lr, int64_t number, cvy_vars **pending_out)
{
    CVY_CHECK(p->update.def->save.resume, CVY_E_CONFIG,
              "an update is pending, but opts.update_mode: %s leaves none pending", p->update.def->name);
    return p->update.def->save.resume(p, task, lr, number, pending_out);
}

void cvy_program_describe_update(const cvy_program *p, int task, cvy_text *out)
{
    if (p->update.def->watch.describe)
        p->update.def->watch.describe(p, task, out);
}

const cvy_update_async *cvy_program_async(const cvy_program *p)
{
    const cvy_update_async *async = p->update.def->watch.async;
    return async && async->is_on(p) ? async : NULL;
}
