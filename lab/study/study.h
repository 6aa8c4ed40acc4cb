/*
 * study.h: studies: many measurements of networks, batches, threads, ranks and frameworks that one file
 * declares, with a report.
 *
 * Each measurement is a command of its own (convoy bench, or that of another framework), so a fault of one leaves the
 * others alone. Results are lines of results.jsonl in the study's folder. A study that was interrupted goes on where it
 * was. docs/guide/studies.md describes study files.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_STUDY_H
#define CVY_STUDY_H

#include <convoy/base.h>

/** Which cases of a study are meant: all, those of frameworks that predict, or those that are measured. */
typedef enum cvy_study_part { CVY_STUDY_ALL, CVY_STUDY_PREDICTED, CVY_STUDY_MEASURED } cvy_study_part;

/** How to run a study. Set size. */
typedef struct cvy_study_opts {
    size_t size;
    /** The study file: its name in messages, and its text. Required. */
    const char *name, *text;
    /** The folder for results and report; it is made if it does not exist. Required. */
    const char *out;
    /** The folder with the descriptions of frameworks, and the program convoy. Required. */
    const char *frameworks, *program;
    /** These frameworks, as a list with commas, instead of those of the study file; NULL: those of the file. */
    const char *only;
    /** Not NULL: published figures, as studies/published.csv. Those of the study that the file names in `published` are
     * copied into the folder, and shown beside the results. */
    const char *published;
    /** Not 0: the smaller axes that the study file gives for a quick look. */
    int quick;
    /** Not 0: measurements that failed are made again. */
    int retry;
    /** Not 0: each case is measured once; a later call without it makes the repeats. */
    int once;
    /** Not NULL: the commit of this program, which the results name. */
    const char *commit;
    /** Not NULL: the study ends after the current measurement's process is ended, as soon as *stop is not 0. A signal
     * handler may set it. */
    const volatile int *stop;
    /** Not NULL: called with each line of progress, without a newline, and with user. */
    void (*show)(void *user, const char *line);
    void *user;
    /** [ndata] "NAME=PATH": what ${NAME} in the study file stands for. Cases whose values have a name that is not given
     * are left out. */
    const char *const *data;
    int ndata;
    /** [nonly] "AXIS=VALUE": only cases that have one of the given values on each of these axes. A case whose
     * experiment has no such axis is taken, too. The axis `experiment` is the name of the experiment. */
    const char *const *only_cases;
    int nonly;
    /** In a job of a batch system: its nodes, and the most ranks that a measurement has on a node. Only the cases that
     * need so many nodes are measured. The results have a file of their own, results-nodes-N.jsonl, so that jobs may
     * run at the same time, and nodes whose names differ only in digits count as one machine. 0: there is only this
     * machine, and cases with more ranks times threads than cores are left out. */
    int64_t nodes, ranks_per_node;
    /** The predictions alone have a file of their own, results-predictions.jsonl. */
    cvy_study_part part;
    /** Not 0: when the job began in which the study runs, and when it has to have ended, in seconds since 1970. No
     * measurement begins that would take longer, as far as those before it tell. One that is still running at the end
     * is ended, and made again by the next call; if it had most of the time of the job, it counts as failed, because it
     * would not fit into another such job either. */
    double begin, end;
} cvy_study_opts;
CVY_SIZED_STRUCT(cvy_study_opts)

/** What has become of a study. Set size. */
typedef struct cvy_study_result {
    size_t size;
    /** Measurements of the study: in all, made now, made before, failed, and left out because a framework is not
     * installed or cannot do what the case asks, or because there are too few cores. */
    int64_t total, measured, earlier, failed, skipped;
    /** Those that are still to be made; more than 0 only if the study was stopped. */
    int64_t left;
} cvy_study_result;
CVY_SIZED_STRUCT(cvy_study_result)

/**
 * cvy_run_study - make all measurements of a study that are not in its folder yet
 * @out: its size is the caller's; written also if the study was stopped
 *
 * The folder also gets a copy of the study file, study.yaml, the jobs of the study, and what its commands prepare. A
 * measurement that fails is a line with its error, and the rest goes on. Results of another machine in the same folder
 * stay, and count as those of another machine.
 *
 * Collective: no; call it on one process outside of MPI. Errors: CVY_E_ARGUMENT, CVY_E_CONFIG with file, line and
 * column, CVY_E_IO, CVY_E_MEMORY, CVY_E_UNSUPPORTED (the program ignores SIGCHLD, or waits for all child processes, so
 * that no exit code is known); CVY_STOPPED: *stop was set, and all results are saved.
 */
CVY_MUST_CHECK cvy_status cvy_run_study(const cvy_study_opts *opts, cvy_study_result *out);

/**
 * cvy_study_nodes - which numbers of nodes the cases of a study need
 * @opts: as for cvy_run_study(), with ranks_per_node; nodes does not matter
 * @nodes_out: [room] ascending; predictions need one node
 * @count_out: how many numbers there are; if more than room, the first ones are written
 *
 * Collective: no. Errors: as those of cvy_run_study().
 */
CVY_MUST_CHECK cvy_status cvy_study_nodes(const cvy_study_opts *opts, int64_t *nodes_out, int room, int *count_out);

/**
 * cvy_publication_studies - which studies a publication needs
 * @name: of the file, for messages
 * @text: the file: that of a publication (docs/guide/studies.md), or that of a study
 * @names_out: the names, each on a line of its own, released by the caller with cvy_text_release(); NULL: this is no
 * publication, because it has no member `parts`
 *
 * Collective: no. Errors: CVY_E_ARGUMENT, CVY_E_CONFIG with file, line and column, CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_publication_studies(const char *name, const char *text, char **names_out);
/** The work for a number of nodes. Set size. */
typedef struct cvy_study_effort {
    size_t size;
    /** Measurements at most, the seconds of their timed steps, and the seconds that they may take before they are
     * ended. How many there are depends on the cores of a node. */
    int64_t count;
    double seconds, limit_s;
} cvy_study_effort;
CVY_SIZED_STRUCT(cvy_study_effort)

/** cvy_study_count - what the cases of a study that need so many nodes take. Arguments and errors: as those of
 * cvy_run_study(). Nothing is run but the question for the version of each framework. */
CVY_MUST_CHECK cvy_status cvy_study_count(const cvy_study_opts *opts, cvy_study_effort *out);

/** What cvy_run_tune() tries. Zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_tune_opts {
    size_t size;
    /** A network of the zoo, or the path of a job file if is_job is not 0. Required. */
    const char *network;
    int is_job;
    /** Global batches in ascending order, "32,64,128", and the number of the one to begin with, from 0. Required: what
     * the training may use is not for a search to decide. */
    const char *batches;
    int first_batch;
    /** [nsets] "key=value": keys of the job, as in cvy_job_source. */
    const char *const *sets;
    int nsets;
    /** Seconds of timed steps in a measurement; 0: 2. */
    int64_t seconds;
    /** As in cvy_study_opts. Required: out, frameworks and program. */
    const char *out, *frameworks, *program;
    const volatile int *stop;
    void (*show)(void *user, const char *line);
    void *user;
} cvy_tune_opts;
CVY_SIZED_STRUCT(cvy_tune_opts)

/** What cvy_run_tune() has found. Set size. */
typedef struct cvy_tune_result {
    size_t size;
    /** The fastest settings. */
    int ranks, threads;
    int64_t batch;
    /** Its keys comm.progress, comm.overlap and comm.bucket, which matter with more than one rank. */
    char progress[16], overlap[16], bucket[16];
    /** Settings that were tried, and measurements of them. */
    int64_t settings, measurements;
    /** Speed, by the median step: of the fastest settings; of one rank with all cores, the first batch and no keys. */
    double images_per_s, images_per_s_default;
} cvy_tune_result;
CVY_SIZED_STRUCT(cvy_tune_result)

/**
 * cvy_run_tune - find the ranks, threads, batch and keys of communication with which a network trains fastest here
 * @out: its size is the caller's
 *
 * Each measurement is a command of its own, under mpiexec or what CONVOY_MPIEXEC names if it has several ranks. It
 * writes the fastest settings into the folder as profile.yaml (cvy_profile_read()), and all measurements as
 * results.jsonl, from which cvy_report_study() makes a page. A search that was interrupted goes on.
 *
 * Collective: no; call it on one process outside of MPI. Errors: CVY_E_ARGUMENT, CVY_E_CONFIG (the first setting cannot
 * be measured), CVY_E_IO, CVY_E_MEMORY; CVY_STOPPED: *stop was set.
 */
CVY_MUST_CHECK cvy_status cvy_run_tune(const cvy_tune_opts *opts, cvy_tune_result *out);

/** The most keys of a profile. */
enum { CVY_PROFILE_KEYS = 32 };

/** Settings for a training. Set size. */
typedef struct cvy_profile {
    size_t size;
    /** Ranks of a node, and compute threads of each. */
    int ranks, threads;
    /** [nkeys] "key=value": keys of the job. */
    char key[CVY_PROFILE_KEYS][128];
    int nkeys;
} cvy_profile;
CVY_SIZED_STRUCT(cvy_profile)

/** Reads a profile that cvy_run_tune() has written. Collective: no. Errors: CVY_E_ARGUMENT, CVY_E_IO, CVY_E_CONFIG,
 * CVY_E_MEMORY. */
CVY_MUST_CHECK cvy_status cvy_profile_read(const char *path, cvy_profile *out);

#endif
