/*
 * study_measure.h: makes measurements and keeps them in results.jsonl of a folder. Studies and `convoy tune` share
 * it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_STUDY_MEASURE_H
#define CVY_STUDY_MEASURE_H

#include "base/base_index.h"
#include "study/study_file.h"

enum { CVY_FRAMEWORKS_MAX = 32 };

typedef struct cvy_study_times {
    double begin_s, end_s;    /* as `begin` and `end` of cvy_study_opts */
    double mean_s, longest_s; /* what the measurements of this run took */
} cvy_study_times;

/* Fill in the first members, call cvy_measurer_open(), and cvy_measurer_close() in any case. */
typedef struct cvy_measurer {
    cvy_pool *pool;
    cvy_study_paths paths;            /* paths.out: the folder */
    const char *frameworks, *program; /* as in cvy_study_opts */
    int retry;                        /* whether measurements that failed are made again */
    int quick;                        /* whether the cases are those of a quick look */
    const char *commit;               /* as in cvy_study_opts */
    int64_t nodes, ranks_per_node;    /* as in cvy_study_opts */
    cvy_study_part part;              /* likewise */
    cvy_study_times time;
    char *results; /* the path of the file for results */
    const volatile int *stop;
    void (*show)(void *user, const char *line);
    void *user;
    cvy_framework framework[CVY_FRAMEWORKS_MAX];
    int nframework;
    char *devices; /* as cvy_device_list() gives them, when a case has first asked for one */
    cvy_keys away; /* the devices that have been named as missing */
    cvy_study_results before;
    cvy_keys done; /* "KEY #REPEAT @MACHINE" of measurements that are there; done_line: which line of `before` it is */
    int *done_line;
    cvy_keys slow; /* the cases that took too long in this run to be repeated */
    char cpu[128], host[128], system[128], machine[32];
    int cores;
    int64_t left; /* measurements that are still to be made; 0: not counted */
    cvy_study_result result;
} cvy_measurer;

/* Learns about the machine and reads the results that are there. */
cvy_status cvy_measurer_open(cvy_measurer *m);
void cvy_measurer_close(cvy_measurer *m);
/* Prints a line of progress. */
void cvy_measurer_say(const cvy_measurer *m, const char *fmt, ...) CVY_PRINTF(2, 3);
/* The framework of this name; it is asked for its version when it is first wanted. */
cvy_status cvy_measurer_framework(cvy_measurer *m, const char *name, cvy_framework **out);
/* Whether there is neither a result, nor a reason to leave the measurement out before it is tried. */
cvy_status cvy_measure_is_due(cvy_measurer *m, const cvy_case *c, int64_t repeat, int *out);
/* Makes the measurement if it is not there. *result_out: what the command printed; NULL: it failed or was left out. May
 * be NULL. CVY_STOPPED: *stop was set. */
cvy_status cvy_measure(cvy_measurer *m, const cvy_case *c, int64_t repeat, const cvy_tree **result_out);
/* Makes a part of the folder that is not there. One that fails is named; the cases that need it will say so, too. */
cvy_status cvy_make_target(cvy_measurer *m, const cvy_study_target *target);

#endif
