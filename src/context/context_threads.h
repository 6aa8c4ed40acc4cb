/*
 * context_threads.h: chooses the number of compute threads of a rank.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CONTEXT_THREADS_H
#define CVY_CONTEXT_THREADS_H

#include "context/context.h"

/* Sets threads, cores, cores_each and sharing of the context from opts.threads and from what this process may use.
 * speaks: warns of numbers that differ. Collective. */
cvy_status cvy_threads_choose(cvy_context *context, int speaks);
/* The cores that the ranks of this node may use together. */
int cvy_threads_node_cores(const cvy_context *context);

#endif
