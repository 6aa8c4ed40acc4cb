/*
 * doctor.h: what `convoy doctor` measures of ranks, their cores, clocks and files, and of the network between them.
 *
 *   doctor.c         cvy_run_doctor(): nodes, ranks and cores; the findings
 *   doctor_clock.c   clocks: whether they go forward, and whether those of the nodes agree
 *   doctor_files.c   the file system that a run would write to
 *   doctor_reductions.c    the network: all-reduces by each method, and single messages
 *   doctor_platform.c      what `convoy simulate` needs to know of the machine
 *   doctor_print.c   the result as text, for people and as JSON
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DOCTOR_H
#define CVY_DOCTOR_H

#include "context/context_topology.h"
#include "health/health.h"

enum { CVY_DOCTOR_METHODS = 16, CVY_DOCTOR_SIZES = 16, CVY_DOCTOR_POINTS = 8, CVY_DOCTOR_FINDINGS = 32 };

typedef struct cvy_doctor_rank { /* what each rank says about itself, besides its topology */
    char cpu[64];
    int64_t memory_left_bytes;
    char devices[640];    /* a line for each device that it could compute on, or why there is none */
    char libraries[1400]; /* a line for each library of the vendor on its devices, or why there is none */
    char gpu_file[32];    /* by which the system offers a GPU; "": none */
    int gpus, is_masked;  /* GPUs that drivers find; whether the launcher has chosen them for this rank */
} cvy_doctor_rank;

typedef struct cvy_doctor_node {
    int64_t first, nranks, threads;   /* rank number of its first rank; number of ranks; threads of all its ranks */
    cpu_set_t mask, cores, permitted; /* union over its ranks, as in cvy_rank_topology */
} cvy_doctor_node;

typedef struct cvy_doctor_clock {
    int is_known; /* 0 if time is simulated */
    double begin_wall_s;
    /* largest difference of a wall clock from rank 0's; slowest reading of a clock; largest change of a wall clock that
     * was set during the measurements */
    double apart_s, read_s, set_s;
    int64_t back; /* how often a clock went back, over all ranks */
    int apart_rank, read_rank, set_rank, back_rank;
} cvy_doctor_clock;

typedef struct cvy_doctor_files {
    const char *folder;
    int is_known;              /* rank 0 has written and read there */
    char fault[512];           /* why it could not */
    int64_t bytes, free_bytes; /* size of the large file; bytes that are still free for users */
    /* seconds: writing with fsync; reading from the disk, if the system drops its cache; median for a small file that
     * replaces another */
    double write_s, read_s, small_s;
    int64_t wrong_at;         /* first byte that was not read as it was written; -1: none */
    int nunseen, unseen_rank; /* number of ranks that do not see rank 0's files; the first of them */
} cvy_doctor_files;

typedef struct cvy_doctor_method { /* a column of the table: a method of the all-reduce */
    char name[32];
    const char *algorithm; /* NULL: nothing is sent between nodes */
    int by_node;           /* through the shared memory of a node */
} cvy_doctor_method;

typedef struct cvy_doctor_size { /* a row of the table: all-reduces of so many bytes of f32 */
    int64_t bytes;
    int ntrials, chosen; /* chosen: the method that `algorithm: auto` uses */
    /* number of elements that were not the sum, over all ranks */
    int64_t wrong[CVY_DOCTOR_METHODS];
    double best_s[CVY_DOCTOR_METHODS], median_s[CVY_DOCTOR_METHODS]; /* seconds of the slowest rank */
} cvy_doctor_size;

typedef struct cvy_doctor_link { /* messages between two ranks; from < 0: there is no such pair */
    int from, to, npoints;
    int64_t bytes[CVY_DOCTOR_POINTS];
    double best_s[CVY_DOCTOR_POINTS];
    double alpha_s, beta_s; /* time = alpha + beta * bytes: alpha from the smallest size, beta from the largest one */
} cvy_doctor_link;

typedef struct cvy_doctor_platform { /* what a node can do, for `convoy simulate` */
    int is_measured;
    double images_per_s, gflop_per_s, memory_bytes_per_s, add_bytes_per_s;
} cvy_doctor_platform;

typedef struct cvy_doctor {
    cvy_context *context;
    cvy_pool *pool;
    int64_t max_bytes;
    double seconds, begin_s;
    int wants_platform;
    cvy_comm_about about;
    cvy_rank_topology *topology;
    cvy_doctor_rank *rank;
    cvy_doctor_node *node;
    int64_t least_ranks, most_ranks; /* least and most ranks of a node */
    int shared;                      /* ranks of a node share memory */
    int nmethods, nsize;
    cvy_doctor_method method[CVY_DOCTOR_METHODS];
    cvy_doctor_size size[CVY_DOCTOR_SIZES];
    int64_t left_out_bytes; /* sizes from here on were not measured; 0: all sizes were */
    const char *left_out_why;
    cvy_doctor_link inside, between;
    cvy_doctor_clock clock;
    cvy_doctor_files files;
    /* [nnodes]: seconds of a long message from the first rank of node k - 1 to that of node k; NULL: fewer than three
     * nodes */
    double *hop_s;
    int64_t hop_bytes;
    cvy_doctor_platform platform;
    char *finding[CVY_DOCTOR_FINDINGS];
    int nfinding;
} cvy_doctor;

/* All of these measure and fill in their part of *d. Collective. */
cvy_status cvy_doctor_measure_messages(cvy_doctor *d);
cvy_status cvy_doctor_measure_reductions(cvy_doctor *d);
/* Call it after all other measurements, because it checks whether a clock was set meanwhile. */
cvy_status cvy_doctor_measure_clock(cvy_doctor *d);
cvy_status cvy_doctor_measure_files(cvy_doctor *d);
/* Only if it is asked for. CVY_E_CONFIG: there is one node. */
cvy_status cvy_doctor_measure_platform(cvy_doctor *d);
/* The index of the fastest method in a row. */
int cvy_doctor_fastest(const cvy_doctor *d, const cvy_doctor_size *size);

/* "shared", "not shared" or "one rank a node" */
const char *cvy_doctor_memory_text(const cvy_doctor *d);
cvy_status cvy_doctor_print_table(const cvy_doctor *d, char **text_out);
cvy_status cvy_doctor_print_json(const cvy_doctor *d, char **text_out);
/* The platform file. */
cvy_status cvy_doctor_print_platform(const cvy_doctor *d, char **text_out);

#endif
