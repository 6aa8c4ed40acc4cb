/*
 * train_request.h: the requests that a run gets from signal handlers and other threads (cvy_train_control). These are
 * the functions that the run itself calls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_TRAIN_REQUEST_H
#define CVY_TRAIN_REQUEST_H

#include <stdatomic.h>

#include <convoy/train.h>

struct cvy_train_control {
    atomic_int stop, save, is_stopping;
    atomic_llong longest_ns;
};

/* All of these functions accept NULL, which means that the run has no control. */
static inline int cvy_train_control_wants_stop(cvy_train_control *control)
{
    return control && atomic_load(&control->stop);
}

static inline int cvy_train_control_wants_save(cvy_train_control *control)
{
    return control && atomic_load(&control->save);
}

/* Returns whether a save is requested, and clears the request. */
static inline int cvy_train_control_take_save(cvy_train_control *control)
{
    return control && atomic_exchange(&control->save, 0);
}

/* Tells the control that all ranks have agreed to stop. */
static inline void cvy_train_control_say_stopping(cvy_train_control *control)
{
    if (control)
        atomic_store(&control->is_stopping, 1);
}

static inline void cvy_train_control_say_longest(cvy_train_control *control, double longest_s)
{
    if (control)
        atomic_store(&control->longest_ns, (long long)(1e9 * longest_s));
}

#endif
