/*
 * comm_underway.h: exchanges between ranks that one instruction of a plan starts and a later one waits for. The
 * executor makes progress on them between kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_COMM_UNDERWAY_H
#define CVY_COMM_UNDERWAY_H

#include "base/base_status.h"

typedef struct cvy_underway {
    cvy_status (*progress)(struct cvy_underway *exchange);
    struct cvy_underway *next;
} cvy_underway;

typedef struct cvy_underway_set {
    cvy_underway *first; /* under way; NULL: none */
} cvy_underway_set;

static inline void cvy_underway_add(cvy_underway_set *set, cvy_underway *exchange)
{
    exchange->next = set->first;
    set->first = exchange;
}

static inline void cvy_underway_remove(cvy_underway_set *set, const cvy_underway *exchange)
{
    cvy_underway **at = &set->first;
    while (*at && *at != exchange)
        at = &(*at)->next;
    if (*at)
        *at = exchange->next;
}

static inline cvy_status cvy_underway_progress(const cvy_underway_set *set)
{
    for (cvy_underway *x = set->first; x; x = x->next)
        CVY_TRY(x->progress(x));
    return CVY_OK;
}

#endif
