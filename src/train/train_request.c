/*
 * train_request.c: cvy_train_control: flags that signal handlers and other threads set and that a run reads.
 *
 * The flags are C11 atomics. A signal handler may use only atomics that need no lock. Therefore the build fails on a
 * machine whose integer atomics need one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "train/train_request.h"

#include "base/base_entry.h"
#include "base/base_handle.h"

_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2, "signal handlers need atomics without locks");

cvy_status cvy_train_control_create(cvy_train_control **control_out)
{
    CVY_ENTRY();
    cvy_train_control *control = NULL;
    CVY_CHECK(control_out, CVY_E_ARGUMENT, "cvy_train_control_create() needs an output pointer for the control");
    CVY_TRY(cvy_handle_alloc(CVY_HANDLE_TRAIN_CONTROL, sizeof *control, &control));
    cvy_train_control_begin(control, NULL);
    *control_out = control;
    return CVY_OK;
}

void cvy_train_control_destroy(cvy_train_control **control)
{
    CVY_ENTRY();
    if (CVY_IS_LIVE_AT(TRAIN_CONTROL, control))
        cvy_handle_free(control);
}

/* Without an error text, because signal handlers may not format one. */
static int is_live(const cvy_train_control *control)
{
    return cvy_handle_is(control, CVY_HANDLE_TRAIN_CONTROL);
}

void cvy_train_control_request(cvy_train_control *control, cvy_train_request request)
{
    if (!is_live(control))
        return;
    if (request == CVY_TRAIN_STOP)
        atomic_store(&control->stop, 1);
    else if (request == CVY_TRAIN_SAVE)
        atomic_store(&control->save, 1);
}

int cvy_train_control_is_stopping(const cvy_train_control *control)
{
    return is_live(control) ? atomic_load(&control->is_stopping) : 0;
}

double cvy_train_control_longest_s(const cvy_train_control *control)
{
    return is_live(control) ? 1e-9 * (double)atomic_load(&control->longest_ns) : 0;
}
