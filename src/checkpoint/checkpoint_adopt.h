/*
 * checkpoint_adopt.h: weights of another network, or of another program, to start from.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CHECKPOINT_ADOPT_H
#define CVY_CHECKPOINT_ADOPT_H

#include "base/text/base_text.h"
#include "comm/comm.h"
#include "model/model.h"

/* What to read, and how. Patterns have * and ?. */
typedef struct cvy_adopt_opts {
    const char *from;        /* the file or run, for messages */
    const char *const *path; /* the safetensors files */
    int npath;
    cvy_names names;        /* whose names the files have */
    const cvy_model *model; /* for names that are not our own */
    /* Before names are compared, the first match of regular expression k (POSIX, extended) in a name of the files is
     * replaced; \1 is its first group. */
    const char *const *pattern, *const *replacement;
    int nrename;
    /* Variables, or tensors of the files, that are left out. A pattern must match something. */
    const char *const *skip;
    int nskip;
    int lenient;     /* 1: whatever does not match is left out; 0: it is an error */
    int others_stay; /* 1: the files may have tensors that no variable takes */
} cvy_adopt_opts;

/**
 * cvy_weights_adopt - fill weights and statistics from files of other networks
 * @comm: rank 0 reads for all ranks; NULL: this process reads alone
 * @vars: allocated; with a comm, equal on all ranks but for their order
 * @report: may be NULL; on rank 0 it gets a line with the number of variables that were taken, and a line for each
 * variable that keeps its first values and for each tensor that is not used
 *
 * All names, shapes and dtypes are compared before the first variable is filled, and an error leaves all of them as
 * they were, unless a file cannot be read. With foreign names, counters (num_batches_tracked) and auxiliary heads that
 * this job does not have may be left over. Collective: yes, over comm. Errors: CVY_E_SHAPE, CVY_E_FORMAT (with the
 * first variables that do not match, and the nearest names), CVY_E_CONFIG (a wrong pattern), CVY_E_UNSUPPORTED (that
 * program has no network that computes the same), CVY_E_IO, CVY_E_MEMORY.
 */
cvy_status cvy_weights_adopt(const cvy_adopt_opts *opts, cvy_comm *comm, cvy_vars *vars, cvy_text *report);

#endif
