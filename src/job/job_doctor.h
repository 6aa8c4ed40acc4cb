/*
 * job_doctor.h: what `convoy doctor` finds out about ranks, their cores and the network between them.
 *
 *   job_doctor.c         cvy_run_doctor(): who is where, on which cores; what is wrong
 *   job_doctor_sums.c    the measurements: sums over all ranks by every way, single messages
 *   job_doctor_print.c   the result for people, and for programs
 */
#ifndef CVY_JOB_DOCTOR_H
#define CVY_JOB_DOCTOR_H

#include <sched.h>

#include "base/base_util.h"
#include "run/run_context.h"

enum { CVY_DOCTOR_WAYS = 16, CVY_DOCTOR_SIZES = 16, CVY_DOCTOR_POINTS = 8, CVY_DOCTOR_FINDINGS = 32 };

typedef struct cvy_doctor_rank {       /* what each rank tells of itself */
    char host[64], cpu[64];
    int64_t node, threads, memory_left_bytes;
    cpu_set_t cores, permitted;        /* by the affinity mask; what the system would give, if it were asked */
} cvy_doctor_rank;

typedef struct cvy_doctor_node {
    int64_t first, nranks, threads;    /* its first rank; threads of all its ranks */
    cpu_set_t cores, permitted;        /* of any of its ranks */
} cvy_doctor_node;

typedef struct cvy_doctor_way {        /* a column */
    char name[32];
    const char *algorithm;             /* NULL: nothing goes between nodes */
    int by_node;                       /* through the memory of the node */
} cvy_doctor_way;

typedef struct cvy_doctor_size {       /* a row: sums of so many bytes of f32 */
    int64_t bytes;
    int ntrials, chosen;               /* chosen: the way of `algorithm: auto` */
    int64_t wrong[CVY_DOCTOR_WAYS];    /* numbers that were not the sum, on all ranks */
    double best_s[CVY_DOCTOR_WAYS], median_s[CVY_DOCTOR_WAYS];     /* of the slowest rank */
} cvy_doctor_size;

typedef struct cvy_doctor_link {       /* messages between two ranks; from < 0: there is no such pair */
    int from, to, npoints;
    int64_t bytes[CVY_DOCTOR_POINTS];
    double best_s[CVY_DOCTOR_POINTS];
    double alpha_s, beta_s;            /* time = alpha + beta bytes, at both ends of the sizes */
} cvy_doctor_link;

typedef struct cvy_doctor {
    cvy_context *context;
    cvy_pool *pool;
    int64_t max_bytes;
    double seconds, begin_s;
    cvy_comm_about about;
    cvy_doctor_rank *rank;
    cvy_doctor_node *node;
    int64_t least_ranks, most_ranks;   /* of a node */
    int shared;                        /* ranks of a node share memory */
    int nway, nsize;
    cvy_doctor_way way[CVY_DOCTOR_WAYS];
    cvy_doctor_size size[CVY_DOCTOR_SIZES];
    int64_t left_out_bytes;            /* sizes from here on were not tried; 0: none is missing */
    const char *left_out_why;
    cvy_doctor_link inside, between;
    double *hop_s;                     /* [nnodes]: of a long message from the first rank of node k - 1 to that of node k; NULL below three nodes */
    int64_t hop_bytes;
    char *finding[CVY_DOCTOR_FINDINGS];
    int nfinding;
} cvy_doctor;

/* Collective. */
cvy_status cvy_doctor_measure_messages(cvy_doctor *d);
cvy_status cvy_doctor_measure_sums(cvy_doctor *d);
/* The fastest way of a row. */
int cvy_doctor_fastest(const cvy_doctor *d, const cvy_doctor_size *size);

cvy_status cvy_doctor_print_table(const cvy_doctor *d, char **text_out);
cvy_status cvy_doctor_print_json(const cvy_doctor *d, char **text_out);

#endif
