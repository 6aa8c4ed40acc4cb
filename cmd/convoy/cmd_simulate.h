/*
 * cmd_simulate.h: what the parts of `convoy simulate` share: cmd_simulate.c has the options,
 * cmd_simulate_node.c the times of a node, cmd_simulate_child.c runs the simulator, and cmd_simulate_table.c prints the
 * rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CMD_SIMULATE_H
#define CMD_SIMULATE_H

#include "cmd_bench.h"
#include "predict/predict.h"

enum { CMD_SIMULATED_COUNTS = 64, CMD_SIMULATE_PATH = 1024, CMD_PLATFORMS_MAX = 64 };

/* A machine that `convoy simulate` knows by name: a file of platforms/, as text. A NULL name ends the list. */
typedef struct cmd_platform_text {
    const char *name, *text;
} cmd_platform_text;
extern const cmd_platform_text cmd_platforms[]; /* tools/embed_platforms.sh writes them */

typedef struct cmd_simulate_options {
    cmd_step step;
    cmd_sets sets;
    const char *platform, *ranks, *noise, *add, *overlap, *latency_factor, *bandwidth_factor, *rate, *serial,
        *memory_bound, *pages;
    int64_t global_batch, node_ranks, threads, representatives, rate_batch;
    int blocking, json, verbose;
} cmd_simulate_options;

/* A row of the result. */
typedef struct cmd_simulated {
    int64_t ranks;
    double scale; /* factor on the times of kernels of a whole node, with the samples that it has in this row */
} cmd_simulated;

typedef struct cmd_simulation {
    const cmd_line *line;
    const cmd_simulate_options *options;
    const char *network; /* of the zoo, or a job file */
    cmd_simulated row[CMD_SIMULATED_COUNTS];
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
    int64_t servers;                    /* ranks that hold the weights and train nothing */
    int is_measured;                    /* --rate measured */
    int64_t node_ranks;                 /* ranks of a node; one simulated rank stands for all of them */
    double serial, memory_bound;        /* shares of a step: of one thread; of waiting for memory */
    int one_socket;                     /* the memory of a rank is on one of its sockets */
    double scale, node_rate;            /* of the first row: of a whole node; images/s of one node alone */
    double ideal_rate;                  /* the same with the job's micro-batches: % of ideal is relative to it */
    const char *rate_from;
} cmd_simulation;

int cmd_is_power_of_two(int64_t n);

/* ---- cmd_simulate_node.c; they return exit codes ---- */
/* The text of a platform that convoy ships; NULL: the name is that of a file. Prints a message if it is neither. */
int cmd_find_platform(const char *name, const char **text_out);
/* Reads the platform, with the rates of the network if it is known by then. */
int cmd_simulate_platform(cmd_simulation *s);
/* Reads the grid and the servers of the job. */
int cmd_simulate_grid(cmd_simulation *s);
/* Finds all kernel times, and from them the factor of each row. */
int cmd_simulate_predict(cmd_simulation *s, cvy_context *context);
/* Kernels of a rank take so many times as long as those of a node that is one rank, with the same samples. */
double cmd_simulate_rank_time(const cmd_simulation *s);
/* The threads of a rank. */
int64_t cmd_simulate_threads(const cmd_simulation *s);
/* The parameter servers among so many ranks. */
int64_t cmd_simulate_servers(const cmd_simulation *s, int64_t ranks);

/* ---- cmd_simulate_child.c; they return exit codes ---- */
/* Finds convoy-sim beside this program, or where CONVOY_SIM says. */
int cmd_simulate_find(cmd_simulation *s);
/* Makes s->folder, in which the simulator finds its files. cmd_simulate_close() removes it. */
int cmd_simulate_open(cmd_simulation *s);
/* Writes the platform. From now on a signal that ends this process ends the
 * simulator, too. */
int cmd_simulate_begin(const cmd_simulation *s);
/* Simulates so many ranks. */
int cmd_simulate_ranks(const cmd_simulation *s, const cmd_simulated *row, cvy_bench_result *result_out);
void cmd_simulate_close(const cmd_simulation *s);

/* ---- cmd_simulate_table.c ---- */
void cmd_simulate_show_head(const cmd_simulation *s);
void cmd_simulate_show(const cmd_simulation *s, const cmd_simulated *row, const cvy_bench_result *r);

#endif
