/*
 * health.h: the machines of the ranks: doctor measures them and names problems; selftest says whether convoy
 * works on them.
 *
 * Texts that a call returns belong to the caller and are released with cvy_text_release(). Collective calls are made by
 * all ranks of the context with equal arguments; all ranks return the same status.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_HEALTH_H
#define CVY_HEALTH_H

#include <convoy/train.h>

/** What cvy_run_doctor() measures. Zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_doctor_opts {
    size_t size;
    /** The largest all-reduce, such as "64MiB"; NULL: 256 MiB. */
    const char *max;
    /** Approximate time for all measurements, s; larger all-reduces are left out if they do not fit. 0: 30. */
    double seconds;
    /** A folder in which test files are written, with up to 64 MiB, or the nearest one above it if it does not exist
     * yet; NULL: the current one. Nothing is left in it. */
    const char *out;
    /** Not 0: also measure how fast a node trains and adds, and write the platform file of these measurements, for
     * `convoy simulate`. It takes ten seconds more, and needs two nodes. */
    int platform;
} cvy_doctor_opts;
CVY_SIZED_STRUCT(cvy_doctor_opts)

/** A node, as cvy_run_doctor() has found it. */
typedef struct cvy_doctor_result_node {
    /** Name of the host; model of the processor. */
    char host[64], cpu[64];
    /** Number of its first rank, of its ranks, and of the threads of all its ranks. */
    int64_t first_rank, ranks, threads;
    /** Hardware threads to which its ranks are bound, "0-3,8"; number of cores among them, and of cores that the ranks
     * could have. */
    char bound_to[96];
    int cores_used, cores_permitted;
    /** Rate of long messages from the node before, GB/s; NaN: not measured (the first node, fewer than three nodes). */
    double gb_per_s_from_the_node_before;
} cvy_doctor_result_node;

/** A rank. */
typedef struct cvy_doctor_result_rank {
    /** Number of its node; compute threads; hardware threads to which it is bound, "0-3,8". */
    int64_t node, threads;
    char bound_to[96];
} cvy_doctor_result_rank;

/** The clocks of all ranks. */
typedef struct cvy_doctor_result_clock {
    /** Largest difference of a wall clock from that of rank 0, s; above 0: it is ahead. */
    double apart_s;
    /** How often a monotonic clock went back, over all ranks. */
    int64_t went_back;
    /** Largest change of a wall clock during the measurements, s; time of the slowest reading of a clock, s. */
    double set_s, read_s;
} cvy_doctor_result_clock;

/** The file system. */
typedef struct cvy_doctor_result_files {
    /** The folder that was tried; ranks that do not see there what rank 0 writes. */
    const char *folder;
    int ranks_that_do_not_see_them;
    /** 1: rank 0 could write and read there; 0: all fields below are 0. */
    int is_known;
    /** Size of the file that was written; bytes that are free. */
    int64_t bytes, free_bytes;
    /** MB/s, with fsync; time until a small file that replaces another is safe on the disk, ms. */
    double write_mb_per_s, read_mb_per_s, small_ms;
} cvy_doctor_result_files;

/** Single messages from one rank to another. */
typedef struct cvy_doctor_result_link {
    int from, to;
    /** time = alpha_us + bytes / (1000 gb_per_s), in us. */
    double alpha_us, gb_per_s;
    /** [npoints]: sizes of the messages, and their best times. */
    int npoints;
    const int64_t *bytes;
    const double *us;
} cvy_doctor_result_link;

/** An algorithm of the all-reduce. Times are those of the slowest rank. */
typedef struct cvy_doctor_result_method {
    /** As comm.algorithm; with "node" the sum is made in the memory of each node first. */
    char name[32];
    double ms_best, ms_median;
    /** Bytes of the all-reduce divided by the best time. */
    double gb_per_s;
    /** Elements that were not the sum, over all ranks. */
    int64_t wrong;
} cvy_doctor_result_method;

/** All-reduces of one size. */
typedef struct cvy_doctor_result_sum {
    int64_t bytes;
    int trials;
    /** [nmethods]; numbers of the one that `comm.algorithm: auto` uses, and of the fastest one. */
    int nmethods;
    const cvy_doctor_result_method *method;
    int chosen, fastest;
} cvy_doctor_result_sum;

/** What cvy_run_doctor() has found. The caller sets size, and releases the contents with cvy_doctor_result_release();
 * all pointers in it are valid until then. */
typedef struct cvy_doctor_result {
    size_t size;
    /** [nnodes] and [nranks]. */
    int nnodes, nranks;
    const cvy_doctor_result_node *node;
    const cvy_doctor_result_rank *rank;
    /** Ranks of each node that reduce between nodes; 0: the ranks of a node do not share memory. */
    int64_t leaders;
    /** "shared", "not shared" or "one rank a node". */
    char node_memory[24];
    /** First line of the version text of the MPI library, and its thread level; "" without MPI. */
    char mpi_library[192], mpi_threads[24];
    /** NULL: time is simulated. */
    const cvy_doctor_result_clock *clock;
    /** Never NULL on rank 0. */
    const cvy_doctor_result_files *files;
    /** NULL: there are no two ranks on a node, or no two nodes. */
    const cvy_doctor_result_link *inside_a_node, *between_nodes;
    /** [nsums], from 1 KiB on; 0: one rank. */
    int nsums;
    const cvy_doctor_result_sum *sum;
    /** All-reduces from this size on were left out; 0: none were. */
    int64_t left_out_from_bytes;
    /** [nfindings]: problems, a sentence each. */
    int nfindings;
    const char *const *finding;
    /** Private to the library. A size that ends before this field is refused. */
    void *owned;
    /** The platform file, if it was asked for; else NULL. */
    const char *platform;
} cvy_doctor_result;
CVY_SIZED_STRUCT(cvy_doctor_result)

/**
 * cvy_run_doctor - the machines of the ranks, the speed of their network, and problems that were found
 * @opts: NULL for the defaults
 * @result_out: written on rank 0; emptied on others
 *
 * Nodes, ranks, threads, cores and binding; the MPI library; clocks; the file system as rank 0 writes to it and all
 * ranks see it; latency and bandwidth of single messages within a node and between nodes; all-reduces from 1 KiB on by
 * every algorithm, checked and timed. A problem that was found is not a fault of the call, nor is a folder that cannot
 * be written. Allocates the largest all-reduce on each rank. Collective: yes. Errors: CVY_E_ARGUMENT, CVY_E_CONFIG (a
 * platform of one node), CVY_E_MEMORY, CVY_E_COMM. After a fault the result is empty, or as it was if its size is
 * refused.
 */
CVY_MUST_CHECK cvy_status cvy_run_doctor(cvy_context *context, const cvy_doctor_opts *opts,
                                         cvy_doctor_result *result_out);
/** The result as one JSON object. Collective: no. Errors: CVY_E_ARGUMENT (an empty result; size), CVY_E_MEMORY. */
CVY_MUST_CHECK cvy_status cvy_doctor_result_json(const cvy_doctor_result *result, char **text_out);
/** The result as tables for people, with a mark at the algorithm that a training uses. Collective: no. Errors: as
 * cvy_doctor_result_json(). */
CVY_MUST_CHECK cvy_status cvy_doctor_result_lines(const cvy_doctor_result *result, char **text_out);
/** Releases the contents and empties the result, which may be empty already. Its size stays. Collective: no. */
void cvy_doctor_result_release(cvy_doctor_result *result);

/** The verdict of a check of cvy_run_selftest(). */
typedef enum cvy_selftest_verdict {
    CVY_SELFTEST_PASSED,
    CVY_SELFTEST_FAILED,
    CVY_SELFTEST_SKIPPED
} cvy_selftest_verdict;

/** What cvy_run_selftest() checks, and with what. Zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_selftest_opts {
    size_t size;
    /** Folder in which files are tried, or the nearest one above it if it does not exist yet; they are removed again.
     * NULL: the current one. */
    const char *out;
    /** The number of ranks that must have been started; 0: any. */
    int64_t ranks;
    /** Names of checks, separated by commas: only these run. NULL: all. */
    const char *only;
    /** Seconds for the comparison of kernels, the longest check; 0: 20. */
    double kernel_s;
    /** A check that takes longer hangs: cvy_context_opts.fatal is called. 0: 60 s. */
    double limit_s;
    /** The control to which the program's signal handlers make requests: SIGUSR2 a save; SIGUSR1 and SIGTERM a stop.
     * NULL: there are no handlers, and the check of signals is skipped, which is the last one. A stop that is requested
     * before it ends the call. The control cannot be used for a run afterwards. */
    cvy_train_control *control;
    /** Called on rank 0 with the line of each check, and with that of its note, when it is done; may be NULL. */
    void (*line)(void *user, const char *line);
    /** Given to `line`. */
    void *user;
} cvy_selftest_opts;
CVY_SIZED_STRUCT(cvy_selftest_opts)

/** A check of cvy_run_selftest(). */
typedef struct cvy_selftest_result_check {
    /** "kernels". */
    const char *name;
    cvy_selftest_verdict verdict;
    /** What was found; of a failure what, where, the value and what to do; of a check that was skipped the reason. */
    const char *text;
    /** What is as it may be but is good to know, or NULL. */
    const char *note;
    double seconds;
} cvy_selftest_result_check;

/** What cvy_run_selftest() has found. The caller sets size, and releases the contents with
 * cvy_selftest_result_release(); all pointers in it are valid until then. */
typedef struct cvy_selftest_result {
    size_t size;
    int passed, failed, skipped, ranks;
    double seconds;
    /** [nchecks], in the order in which they ran. */
    int nchecks;
    const cvy_selftest_result_check *check;
    /** Private to the library. A size that ends before this field is refused. */
    void *owned;
} cvy_selftest_result;
CVY_SIZED_STRUCT(cvy_selftest_result)

/**
 * cvy_run_selftest - whether this copy of the library works on these ranks, processors, networks and files
 * @opts: NULL for the defaults
 * @result_out: written on rank 0; emptied on others
 *
 * Versions, clocks, the kernels of this processor, sums over the ranks, a small training in several modes, a checkpoint
 * in a folder, data formats, and signals (docs/reference/command.md). It needs no file. A check that fails is not a
 * fault of the call; if a rank fails, all ranks go on together. Takes about half a minute. Collective: yes. Errors:
 * CVY_E_ARGUMENT, CVY_E_MEMORY, CVY_E_COMM (ranks do not answer), CVY_E_IO (the folder cannot be removed). CVY_STOPPED:
 * a stop was requested. Then, and after a fault, the result is empty, or as it was if its size is refused.
 */
CVY_MUST_CHECK cvy_status cvy_run_selftest(cvy_context *context, const cvy_selftest_opts *opts,
                                           cvy_selftest_result *result_out);
/** The result as one JSON object. Collective: no. Errors: CVY_E_ARGUMENT (an empty result; size), CVY_E_MEMORY. */
CVY_MUST_CHECK cvy_status cvy_selftest_result_json(const cvy_selftest_result *result, char **text_out);
/** The result as lines for people, the last of which counts the verdicts. Collective: no. Errors: as
 * cvy_selftest_result_json(). */
CVY_MUST_CHECK cvy_status cvy_selftest_result_lines(const cvy_selftest_result *result, char **text_out);
/** Releases the contents and empties the result, which may be empty already. Its size stays. Collective: no. */
void cvy_selftest_result_release(cvy_selftest_result *result);

#endif
