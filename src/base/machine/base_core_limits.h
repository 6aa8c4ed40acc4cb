/*
 * base_core_limits.h: what limits the number of cores that this process should use, besides its affinity mask, and who
 * says so: quotas of control groups, the batch system, and OMP_NUM_THREADS.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_CORE_LIMITS_H
#define CVY_BASE_CORE_LIMITS_H

#include <stdint.h>

enum { CVY_CORE_LIMITS_MAX = 24 };

typedef enum cvy_core_limit_kind {
    CVY_LIMIT_GROUP,   /* processor time that all processes of a control group share */
    CVY_LIMIT_NODE,    /* cores of the batch job on this node, which its ranks share */
    CVY_LIMIT_PROCESS, /* cores of the batch job for each rank */
    CVY_LIMIT_OPENMP   /* threads that the user wants for each process */
} cvy_core_limit_kind;

typedef struct cvy_core_limit {
    cvy_core_limit_kind kind;
    int is_exact;   /* hardware threads that the process should have, so that fewer are a mistake; 0: at most so many */
    double cores;   /* 0: what the source says is no number of cores */
    uint64_t group; /* CVY_LIMIT_GROUP: its number (cvy_group_id()) */
    char source[256]; /* the file or "VARIABLE=value" */
} cvy_core_limit;

/* Finds the limits of this process and returns their number. root: "", or the folder of a described machine: see
 * cvy_groups_visit(). */
int cvy_core_limits(const char *root, cvy_core_limit limit_out[CVY_CORE_LIMITS_MAX]);

#endif
