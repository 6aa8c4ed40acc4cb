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

/** What cvy_run_doctor() has found, as texts that the caller releases by cvy_doctor_report_release(). */
typedef struct cvy_doctor_report {
    /** Tables for people, with a mark at the algorithm that a training uses; the same as one JSON object. */
    char *lines, *json;
    /** The platform file, if it was asked for; else NULL. */
    char *platform;
} cvy_doctor_report;

/**
 * cvy_run_doctor - the machines of the ranks, the speed of their network, and problems that were found
 * @opts: NULL for the defaults
 * @report_out: written on rank 0; emptied on others
 *
 * Nodes, ranks, threads, cores and binding; the MPI library; clocks; the file system as rank 0 writes to it and all
 * ranks see it; latency and bandwidth of single messages within a node and between nodes; all-reduces from 1 KiB on by
 * every algorithm, checked and timed. A problem that was found is not a fault of the call, nor is a folder that cannot
 * be written. Allocates the largest all-reduce on each rank. Collective: yes. Errors: CVY_E_ARGUMENT, CVY_E_CONFIG (a
 * platform of one node), CVY_E_MEMORY, CVY_E_COMM. After a fault the report is empty.
 */
CVY_MUST_CHECK cvy_status cvy_run_doctor(cvy_context *context, const cvy_doctor_opts *opts,
                                         cvy_doctor_report *report_out);
/** A line for each library of a vendor that computes or sums on the devices that are there: "cudnn 9.19.0, " and its
 * file, or "nccl none: " and why it is not used. Released by cvy_text_release(). Collective: no. Errors: CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_run_libraries(char **text_out);
/** Releases the texts and empties the report, which may be empty already. Collective: no. */
void cvy_doctor_report_release(cvy_doctor_report *report);

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

/** What cvy_run_selftest() has found. The caller releases it with cvy_selftest_result_release(); all pointers in it are
 * valid until then. */
typedef struct cvy_selftest_result {
    int passed, failed, skipped, ranks;
    double seconds;
    /** [nchecks], in the order in which they ran. */
    int nchecks;
    const cvy_selftest_result_check *check;
    /** All of it is in there. */
    struct cvy_pool *pool;
} cvy_selftest_result;

/**
 * cvy_run_selftest - whether this copy of the library works on these ranks, processors, networks and files
 * @opts: NULL for the defaults
 * @result_out: written on rank 0; emptied on others
 *
 * Versions, clocks, the kernels of this processor, sums over the ranks, a small training in several modes, a checkpoint
 * in a folder, data formats, and signals (docs/reference/command.md). It needs no file. A check that fails is not a
 * fault of the call; if a rank fails, all ranks go on together. Takes about half a minute. Collective: yes. Errors:
 * CVY_E_ARGUMENT, CVY_E_MEMORY, CVY_E_COMM (ranks do not answer), CVY_E_IO (the folder cannot be removed). CVY_STOPPED:
 * a stop was requested. Then, and after a fault, the result is empty.
 */
CVY_MUST_CHECK cvy_status cvy_run_selftest(cvy_context *context, const cvy_selftest_opts *opts,
                                           cvy_selftest_result *result_out);
/** The result as one JSON object. Collective: no. Errors: CVY_E_MEMORY. */
CVY_MUST_CHECK cvy_status cvy_selftest_result_json(const cvy_selftest_result *result, char **text_out);
/** Releases the contents and empties the result, which may be empty already. Collective: no. */
void cvy_selftest_result_release(cvy_selftest_result *result);

#endif
