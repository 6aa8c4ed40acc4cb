/*
 * plan_wisdom.h: the kernel times that were measured on this machine, and the file that keeps them.
 *
 * The file is JSON that can be read, copied and kept. It names the machine and the build for which it is valid, and has
 * a time in milliseconds for each (operator, options, shapes, dtypes, layouts, kernel, threads). All processes here
 * share it: a writer takes a lock, adds what others have written in the meantime, and replaces the whole file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PLAN_WISDOM_H
#define CVY_PLAN_WISDOM_H

#include "base/base_index.h"
#include "plan/plan.h"

/* The checksum of the sources of all kernels, which the build makes (tools/sum_kernels.sh). */
extern const unsigned cvy_kernel_sum;

struct cvy_wisdom {
    char *path;    /* NULL: in memory only */
    char *machine; /* processor, libraries and build for which the times are valid */
    char *warning; /* set by opening, if the file could not be used; NULL: no problem */
    cvy_keys key;
    double *ms;       /* by key; INFINITY: the kernel could not run */
    int room, nfresh; /* nfresh: number of times that are not in the file yet */
};

/* where: a file, or "off" for none. If it is NULL, the environment variable CONVOY_WISDOM says so; if that is not set,
 * it is a file for this machine and build in $XDG_CACHE_HOME/convoy or ~/.cache/convoy. A file that is damaged or of
 * another machine is ignored with a warning, and replaced at the next save; only a lack of memory is an error. space:
 * where the kernels run; a device and its driver are a machine of their own. NULL: the host. */
cvy_status cvy_wisdom_open(const char *where, const cvy_space *space, cvy_wisdom **out);
/* The time in ms; CVY_MS_UNKNOWN: there is none. */
double cvy_wisdom_find(const cvy_wisdom *w, const char *key);
/* The same for a call, cvy_call_is_timed(). */
cvy_status cvy_wisdom_find_call(const cvy_wisdom *w, const cvy_lowered *u, const cvy_call *call, int threads,
                                double *ms_out);
cvy_status cvy_wisdom_add(cvy_wisdom *w, const char *key, double ms);
/* Writes new times into the file. Does nothing if nothing is new or there is no file. */
cvy_status cvy_wisdom_save(cvy_wisdom *w);
void cvy_wisdom_close(cvy_wisdom **wisdom);

#endif
