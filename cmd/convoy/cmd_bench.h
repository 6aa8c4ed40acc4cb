/*
 * cmd_bench.h: what cmd_bench.c and cmd_bench_sweep.c share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CMD_BENCH_H
#define CMD_BENCH_H

#include "cmd_step.h"
#include "measure/measure.h"

typedef struct cmd_bench_options {
    cmd_step step;
    cmd_sets sets;
    cmd_numbers threads;
    int verbose;
    const char *model, *against;
    int json, check, sweep;
    const char *data, *augment, *shuffle; /* for --data only */
    int64_t seconds;
} cmd_bench_options;

/* `convoy simulate` runs bench on simulated ranks. This variable names the file into which rank 0 then writes its
 * cvy_bench_result, as it is in memory. */
#define CMD_RESULT_VARIABLE "CONVOY_SIMULATED_RESULT"
#define CMD_RESULT_FILE "result"

/* Prints the head of the table, or one row of it (with --json one JSON line). */
void cmd_bench_head(void);
void cmd_bench_row(const cmd_bench_options *o, const cvy_bench_result *r);
/* Whether several networks, batches or numbers of threads are named. */
int cmd_bench_is_list(const cmd_bench_options *o);
/* Times every network with every batch that the command line names, and calls `row` on rank 0 with each result. Returns
 * the exit code. */
typedef void (*cmd_row_fn)(void *user, const cvy_bench_result *r);
int cmd_bench_each(const cmd_line *line, const cmd_bench_options *o, cvy_context *context, cmd_row_fn row, void *user);
/* `bench --sweep`. */
int cmd_bench_sweep(const cmd_line *line);

#endif
