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
    cvy_train_control *outer; /* requests to a search of which the run is a part hold for the run, too; or NULL */
};

/* Makes a control without requests, in the memory of the caller. */
static inline void cvy_train_control_begin(cvy_train_control *control, cvy_train_control *outer)
{
    atomic_init(&control->stop, 0);
    atomic_init(&control->save, 0);
    atomic_init(&control->is_stopping, 0);
    atomic_init(&control->longest_ns, 0);
    control->outer = outer;
}

/* The flag that a stop sets. A signal sets that of the outermost control. */
static inline const atomic_int *cvy_train_control_stop_flag(const cvy_train_control *control)
{
    while (control && control->outer)
        control = control->outer;
    return control ? &control->stop : NULL;
}

/* All of these functions accept NULL, which means that the run has no control. */
static inline int cvy_train_control_wants_stop(cvy_train_control *control)
{
    return control && (atomic_load(&control->stop) || cvy_train_control_wants_stop(control->outer));
}

static inline int cvy_train_control_wants_save(cvy_train_control *control)
{
    return control && (atomic_load(&control->save) || cvy_train_control_wants_save(control->outer));
}

/* Returns whether a save is requested, and clears the request. */
static inline int cvy_train_control_take_save(cvy_train_control *control)
{
    if (!control)
        return 0;
    const int mine = atomic_exchange(&control->save, 0), others = cvy_train_control_take_save(control->outer);
    return mine || others;
}

/* Tells the control that all ranks have agreed to stop. The end of a run is the end of its search only if the search
 * was asked to stop. */
static inline void cvy_train_control_say_stopping(cvy_train_control *control)
{
    if (control)
        atomic_store(&control->is_stopping, 1);
    if (control && cvy_train_control_wants_stop(control->outer))
        cvy_train_control_say_stopping(control->outer);
}

/* Whether this rank has nothing that a stop could lose, because it waits for work. A signal then needs no answer. */
static inline void cvy_train_control_say_idle(cvy_train_control *control, int is_idle)
{
    if (control)
        atomic_store(&control->is_stopping, is_idle);
}

static inline void cvy_train_control_say_longest(cvy_train_control *control, double longest_s)
{
    if (!control)
        return;
    atomic_store(&control->longest_ns, (long long)(1e9 * longest_s));
    cvy_train_control_say_longest(control->outer, longest_s);
}

#endif
