/*
 * cmd_simulate.h: what the parts of `convoy simulate` share: cmd_simulate.c has the options and the time of a node,
 * cmd_simulate_child.c runs the simulator, and cmd_simulate_table.c prints the rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CMD_SIMULATE_H
#define CMD_SIMULATE_H

#include "cmd_bench.h"
#include "predict/predict.h"

enum { CMD_SIMULATED_COUNTS = 64, CMD_SIMULATE_PATH = 1024 };

typedef struct cmd_simulate_options {
    cmd_step step;
    cmd_sets sets;
    const char *platform, *ranks, *noise, *add, *overlap, *latency_factor, *bandwidth_factor, *rate;
    int64_t global_batch, node_ranks, representatives;
    int blocking, json, verbose;
} cmd_simulate_options;

typedef struct cmd_simulation {
    const cmd_line *line;
    const cmd_simulate_options *options;
    const char *network; /* of the zoo, or a job file */
    int64_t ranks[CMD_SIMULATED_COUNTS];
    int nranks;
    double noise, add, latency_factor, bandwidth_factor, rate;
    const char *overlap;
    char folder[64], sim[CMD_SIMULATE_PATH];
    const char *platform_name; /* of a platform that convoy knows, or a file */
    cvy_platform platform;
    char model[128];
    int64_t stages, tensor, spatial[3]; /* the axes of the grid but that of data; 1: it is not used */
    int64_t micro_batches;              /* train.accumulate */
    int64_t parts;                      /* their product: the ranks that share samples or layers */
    int64_t batch;                      /* of these ranks together; with --global-batch the global batch */
    int is_measured;                    /* --rate measured */
    int64_t node_ranks;                 /* ranks of a node; one simulated rank stands for all of them */
    double scale, node_rate;            /* factor on kernel times of a whole node; images/s of one node alone */
    double ideal_rate;                  /* the same with the job's micro-batches: % of ideal is relative to it */
    const char *rate_from;
} cmd_simulation;

/* ---- cmd_simulate_child.c; they return exit codes ---- */
/* Finds convoy-sim beside this program, or where CONVOY_SIM says. */
int cmd_simulate_find(cmd_simulation *s);
/* Makes s->folder, in which the simulator finds its files. cmd_simulate_close() removes it. */
int cmd_simulate_open(cmd_simulation *s);
/* Writes the platform. From now on a signal that ends this process ends the
 * simulator, too. */
int cmd_simulate_begin(const cmd_simulation *s);
/* Simulates so many ranks. */
int cmd_simulate_ranks(const cmd_simulation *s, int64_t ranks, cvy_bench_result *result_out);
void cmd_simulate_close(const cmd_simulation *s);

/* ---- cmd_simulate_table.c ---- */
void cmd_simulate_show_head(const cmd_simulation *s);
void cmd_simulate_show(const cmd_simulation *s, int64_t ranks, const cvy_bench_result *r);

#endif
