/*
 * doctor.h: what `convoy doctor` finds out about ranks, their cores, clocks and files, and the network between them.
 *
 *   doctor.c         cvy_run_doctor(): who is where, on which cores; what is wrong
 *   doctor_clock.c   clocks: do they go forward, do those of the nodes agree
 *   doctor_files.c   the file system that a run would write into
 *   doctor_reductions.c    the measurements: sums over all ranks by every way, single messages
 *   doctor_print.c   the result for people, and for programs
 */
#ifndef CVY_DOCTOR_H
#define CVY_DOCTOR_H

#include "context/context_topology.h"

enum { CVY_DOCTOR_WAYS = 16, CVY_DOCTOR_SIZES = 16, CVY_DOCTOR_POINTS = 8, CVY_DOCTOR_FINDINGS = 32 };

typedef struct cvy_doctor_rank { /* what each rank tells of itself, besides its place */
    char cpu[64];
    int64_t memory_left_bytes;
} cvy_doctor_rank;

typedef struct cvy_doctor_node {
    int64_t first, nranks, threads;   /* its first rank; threads of all its ranks */
    cpu_set_t mask, cores, permitted; /* of any of its ranks, as in cvy_rank_topology */
} cvy_doctor_node;

typedef struct cvy_doctor_clock {
    int is_known; /* not where time is simulated */
    double begin_wall_s;
    double apart_s, read_s, set_s; /* wall clocks from rank 0's, the farthest; one look, the slowest; by how much a wall
                                      clock was set meanwhile */
    int64_t back;                  /* how often a clock went back */
    int apart_rank, read_rank, set_rank, back_rank;
} cvy_doctor_clock;

typedef struct cvy_doctor_files {
    const char *folder;
    int is_known;                    /* rank 0 has written and read there */
    char fault[512];                 /* why it could not */
    int64_t bytes, free_bytes;       /* of the large file; that anybody may write still */
    double write_s, read_s, small_s; /* with fsync; from the disk, where the system lets its cache go; median of small
                                        files that replace each other */
    int64_t wrong_at;                /* byte that was not read as it was written, -1: none */
    int nunseen, unseen_rank;        /* ranks that do not see what rank 0 has made; the first one */
} cvy_doctor_files;

typedef struct cvy_doctor_way { /* a column */
    char name[32];
    const char *algorithm; /* NULL: nothing goes between nodes */
    int by_node;           /* through the memory of the node */
} cvy_doctor_way;

typedef struct cvy_doctor_size { /* a row: sums of so many bytes of f32 */
    int64_t bytes;
    int ntrials, chosen;                                       /* chosen: the way of `algorithm: auto` */
    int64_t wrong[CVY_DOCTOR_WAYS];                            /* numbers that were not the sum, on all ranks */
    double best_s[CVY_DOCTOR_WAYS], median_s[CVY_DOCTOR_WAYS]; /* of the slowest rank */
} cvy_doctor_size;

typedef struct cvy_doctor_link { /* messages between two ranks; from < 0: there is no such pair */
    int from, to, npoints;
    int64_t bytes[CVY_DOCTOR_POINTS];
    double best_s[CVY_DOCTOR_POINTS];
    double alpha_s, beta_s; /* time = alpha + beta bytes, at both ends of the sizes */
} cvy_doctor_link;

typedef struct cvy_doctor {
    cvy_context *context;
    cvy_pool *pool;
    int64_t max_bytes;
    double seconds, begin_s;
    cvy_comm_about about;
    cvy_rank_topology *place;
    cvy_doctor_rank *rank;
    cvy_doctor_node *node;
    int64_t least_ranks, most_ranks; /* of a node */
    int shared;                      /* ranks of a node share memory */
    int nway, nsize;
    cvy_doctor_way way[CVY_DOCTOR_WAYS];
    cvy_doctor_size size[CVY_DOCTOR_SIZES];
    int64_t left_out_bytes; /* sizes from here on were not tried; 0: none is missing */
    const char *left_out_why;
    cvy_doctor_link inside, between;
    cvy_doctor_clock clock;
    cvy_doctor_files files;
    double *hop_s; /* [nnodes]: of a long message from the first rank of node k - 1 to that of node k; NULL below three
                      nodes */
    int64_t hop_bytes;
    char *finding[CVY_DOCTOR_FINDINGS];
    int nfinding;
} cvy_doctor;

/* Collective. */
cvy_status cvy_doctor_measure_messages(cvy_doctor *d);
cvy_status cvy_doctor_measure_sums(cvy_doctor *d);
/* Behind all other measurements: it sees whether a clock was set meanwhile. */
cvy_status cvy_doctor_measure_clock(cvy_doctor *d);
cvy_status cvy_doctor_measure_files(cvy_doctor *d);
/* The fastest way of a row. */
int cvy_doctor_fastest(const cvy_doctor *d, const cvy_doctor_size *size);

cvy_status cvy_doctor_print_table(const cvy_doctor *d, char **text_out);
cvy_status cvy_doctor_print_json(const cvy_doctor *d, char **text_out);

#endif
