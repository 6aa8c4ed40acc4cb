/*
 * plan_wisdom.h: what was measured on this machine, and the file that remembers it.
 *
 * The file is JSON that can be read, copied and kept: a head that says for which machine and build it holds, and a time
 * in milliseconds for each (operator, options, shapes, dtypes, layouts, kernel, threads). It is shared by whoever runs
 * here: writers take a lock, add what others have written meanwhile, and replace the file whole.
 */
#ifndef CVY_PLAN_WISDOM_H
#define CVY_PLAN_WISDOM_H

#include "base/base_index.h"
#include "plan/plan.h"

struct cvy_wisdom {
    char *path;    /* NULL: in memory only */
    char *machine; /* processor, instruction set, versions: what the times hold for */
    char *warning; /* of opening: the file was there and could not be taken; NULL: all is well */
    cvy_keys key;
    double *ms;       /* by key; INFINITY: the kernel could not run */
    int room, nfresh; /* nfresh: times that the file does not have yet */
};

/* where: a file, "off" for none, or NULL: the environment's CONVOY_WISDOM, which is either, or else a file for this
 * machine and build in $XDG_CACHE_HOME/convoy or ~/.cache/convoy. A file that is damaged or of another machine is left
 * aside with a warning, and replaced at the next save; only a lack of memory is a fault. */
cvy_status cvy_wisdom_open(const char *where, cvy_wisdom **out);
/* CVY_MS_UNKNOWN where there is none. */
double cvy_wisdom_find(const cvy_wisdom *w, const char *key);
/* The same for a call that computes, CVY_CALL_KERNEL, REFERENCE or REORDER. */
cvy_status cvy_wisdom_find_call(const cvy_wisdom *w, const cvy_lowered *u, const cvy_call *call, int threads,
                                double *ms_out);
cvy_status cvy_wisdom_add(cvy_wisdom *w, const char *key, double ms);
/* Brings what is new into the file. Does nothing where nothing is new or there is no file. */
cvy_status cvy_wisdom_save(cvy_wisdom *w);
void cvy_wisdom_close(cvy_wisdom **wisdom);

#endif
