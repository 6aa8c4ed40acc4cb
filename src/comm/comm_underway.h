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
    const void *token; /* with the number of the micro-batch: by which its wait finds it */
    int micro;
    struct cvy_underway *next_known;
} cvy_underway;

typedef struct cvy_underway_set {
    cvy_underway *first; /* under way; NULL: none */
    cvy_underway *known; /* all of the plan */
} cvy_underway_set;

/* Adds an exchange when it is created. */
static inline void cvy_underway_know(cvy_underway_set *set, cvy_underway *exchange, const void *token, int micro)
{
    exchange->token = token;
    exchange->micro = micro;
    exchange->next_known = set->known;
    set->known = exchange;
}

static inline cvy_underway *cvy_underway_find(const cvy_underway_set *set, const void *token, int micro)
{
    cvy_underway *x = set->known;
    while (x && (x->token != token || x->micro != micro))
        x = x->next_known;
    return x;
}

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
