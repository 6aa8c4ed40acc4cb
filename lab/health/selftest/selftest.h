/*
 * selftest.h: what `convoy selftest` checks of an installed copy: this program, the processor, the network and the file
 * system of the ranks that run it.
 *
 *   selftest.c           cvy_run_selftest(): the table of checks; runs them and agrees on their verdicts
 *   selftest_result.c    the result: lines and JSON
 *   selftest_launch.c    the number of ranks, the versions, the system
 *   selftest_clocks.c    clocks
 *   selftest_kernels.c   kernels of this processor against the reference kernels
 *   selftest_sums.c      reductions, the memory of the node, groups of ranks
 *   selftest_train.c     a small training, in deterministic mode and with other ways to update
 *   selftest_files.c     the folder: writing, renaming, locks, what other ranks see
 *   selftest_save.c      a checkpoint: written, read back, resumed
 *   selftest_data.c      data formats
 *   selftest_signals.c   signals during a training
 *
 * A check is collective. Each rank says what it found, and rank 0 makes a line of it. A rank that finds a fault goes on
 * with the others: a check calls cvy_comm_agree() before a rank may leave it early.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SELFTEST_H
#define CVY_SELFTEST_H

#include "context/context.h"
#include "health/health.h"
#include "monitor/monitor_watchdog.h"

enum { CVY_SELFTEST_CHECKS = 32, CVY_SELFTEST_TEXT = 600 };

typedef struct cvy_selftest_said { /* by one rank about one check */
    cvy_selftest_verdict verdict;
    int stop; /* it was asked to stop */
    char text[CVY_SELFTEST_TEXT], note[CVY_SELFTEST_TEXT];
} cvy_selftest_said;

typedef struct cvy_selftest {
    cvy_context *context;
    cvy_pool *pool;
    cvy_selftest_opts opts;
    char (*host)[64];  /* [nranks] */
    char folder[512];  /* a new folder for all files of the self-test, the same on all ranks; "": there is none */
    char nowhere[512]; /* why there is none */
    double begin_s;
    cvy_selftest_said mine; /* what this rank says about the present check */
    cvy_watchdog *watchdog;
    const char *doing; /* the present check, for the watchdog */
    int ncheck;
    cvy_selftest_result_check check[CVY_SELFTEST_CHECKS];
    char *note[CVY_SELFTEST_CHECKS]; /* of each check; NULL: there is none */
} cvy_selftest;

typedef struct cvy_selftest_check {
    const char *name, *summary;
    int needs_folder;
    /* A fault is the verdict "failed" with the error text; CVY_E_COMM ends the self-test. */
    cvy_status (*run)(cvy_selftest *t);
} cvy_selftest_check;

/* What this rank says. The first failure stays. Of a check that passed, rank 0's text is printed. */
void cvy_selftest_pass(cvy_selftest *t, const char *fmt, ...) CVY_PRINTF(2, 3);
void cvy_selftest_skip(cvy_selftest *t, const char *fmt, ...) CVY_PRINTF(2, 3);
void cvy_selftest_fail(cvy_selftest *t, const char *fmt, ...) CVY_PRINTF(2, 3);
/* A sentence about something that is as it may be, but that users should know of. */
void cvy_selftest_note(cvy_selftest *t, const char *fmt, ...) CVY_PRINTF(2, 3);

/* Tells the watchdog that the present check makes progress. */
void cvy_selftest_alive(const cvy_selftest *t);

/* "rank 3 on node7", in `text`, which has 96 bytes. */
const char *cvy_selftest_rank_text(const cvy_selftest *t, int rank, char *text);

/* The instruction sets that kernels use here, as words. */
const char *cvy_selftest_isa_text(void);

/* Makes the folder of the self-test, on rank 0, and removes it. */
cvy_status cvy_selftest_folder_make(cvy_selftest *t);
cvy_status cvy_selftest_folder_remove(cvy_selftest *t);

cvy_status cvy_selftest_ranks(cvy_selftest *t);
cvy_status cvy_selftest_versions(cvy_selftest *t);
cvy_status cvy_selftest_system(cvy_selftest *t);
cvy_status cvy_selftest_clocks(cvy_selftest *t);
cvy_status cvy_selftest_kernels(cvy_selftest *t);
cvy_status cvy_selftest_node_memory(cvy_selftest *t);
cvy_status cvy_selftest_sums(cvy_selftest *t);
cvy_status cvy_selftest_groups(cvy_selftest *t);
cvy_status cvy_selftest_training(cvy_selftest *t);
cvy_status cvy_selftest_deterministic(cvy_selftest *t);
cvy_status cvy_selftest_updates(cvy_selftest *t);
cvy_status cvy_selftest_files(cvy_selftest *t);
cvy_status cvy_selftest_checkpoint(cvy_selftest *t);
cvy_status cvy_selftest_data(cvy_selftest *t);
cvy_status cvy_selftest_signals(cvy_selftest *t);

/* ---- parts of checks, which have tests of their own ---- */

struct cvy_kernel_def;
typedef struct cvy_selftest_kernels_found {
    int64_t runs, wrong;
    int64_t samples, of_samples; /* samples that were tried; fewer than all if the time was over */
    char first[CVY_SELFTEST_TEXT];
} cvy_selftest_kernels_found;
/* Compares kernels with the reference kernels on the samples of all operators, for about `seconds` at most. */
cvy_status cvy_selftest_compare_kernels(const cvy_space *space, const struct cvy_kernel_def *const *table, int count,
                                        double seconds, cvy_selftest_kernels_found *out);

/* The number of elements that are not the sum over `nranks` ranks of what cvy_selftest_sum_fill() wrote on each, and
 * the first of them (-1: none). */
void cvy_selftest_sum_fill(cvy_dtype dtype, void *data, int64_t count, int rank);
int64_t cvy_selftest_sum_check(cvy_dtype dtype, const void *data, int64_t count, int nranks, int64_t *first_out);

/* ---- the result ---- */

/* Makes the result, on rank 0, which then owns the pool of *t, with all that is in it. */
void cvy_selftest_result_make(cvy_selftest *t, cvy_selftest_result *out);
/* The line of a check, and that of its note. The text is in the pool. */
cvy_status cvy_selftest_line(cvy_selftest *t, const cvy_selftest_result_check *check, char **text_out);

#endif
