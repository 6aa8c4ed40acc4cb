/*
 * measure_bench.h: sets up a network to be timed on synthetic data. bench, time and check share it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MEASURE_BENCH_H
#define CVY_MEASURE_BENCH_H

#include "measure/measure.h"
#include "program/program_update.h"
#include "session/session.h"
#include "table/table.h"

typedef enum cvy_step_part { /* parts of a step */
                             CVY_STEP_FORWARD,
                             CVY_STEP_BACKWARD_DATA,
                             CVY_STEP_BACKWARD_WEIGHTS,
                             CVY_STEP_UPDATE,
                             CVY_STEP_PARTS
} cvy_step_part;

/* What a rank can do at most, measured while all ranks are busy. */
enum { CVY_LIMIT_LEVELS = 16 };
typedef struct cvy_limits {
    double flop_per_s; /* of a matrix product; NaN: not measured */
    /* bytes that are read or written a second, if an instruction has so many bytes; ascending */
    double bytes[CVY_LIMIT_LEVELS], bytes_per_s[CVY_LIMIT_LEVELS];
    int nlevel; /* 0: not measured */
} cvy_limits;
typedef struct cvy_limit {
    double ms; /* the least time */
    int by_bytes;
} cvy_limit;

struct cvy_bench_turn { /* a training of a step */
    int number;         /* of its task */
    int64_t every;
    double lr_mult;
};

/* Times of the parts of a step. */
struct cvy_bench_parts {
    double s[CVY_STEP_PARTS]; /* sums of this rank over the steps, without communication */
    int64_t steps;            /* the timed steps; on a device others, whose instructions are timed */
};

typedef struct cvy_bench {
    cvy_session session;
    cvy_bench_opts opts;
    cvy_dataset_info data;
    int number;      /* index of the task in the program; of the first turn */
    int takes_turns; /* whether a step takes the turns of train.turns, or trains all weights by all losses */
    struct cvy_bench_turn turn[CVY_TURNS_MAX]; /* [nturn]; without turns there is one */
    int nturn;
    cvy_step_time time;               /* of the latest step, the sum over its turns */
    int has_grid;                     /* `parallel: auto` has been looked at */
    int is_applied;                   /* the network has no loss and the data no target: opts.mode became forward */
    int64_t nstep;                    /* steps so far */
    int64_t foreseen[CVY_AXES];       /* with opts.foresee: the lengths of the axes of the job's grid */
    int64_t batch, steps, node_steps; /* global batch; timed steps; timed steps for which node_s is kept */
    /* planning time; speed of a matrix product on all ranks, NaN: not measured */
    double plan_s, peak_flop_per_s;
    cvy_limits limits;
    double joules; /* that the processors of all nodes have used in the timed steps; NaN: unknown */
    /* bytes that a rank sends in a timed step, for the rank that sends most */
    double bytes_wire;
    /* loss of the first step, with warm-up, and of the last step; NaN without losses */
    double loss_first, loss_last;
    /* one value per timed step; node_s: [node_steps, instructions of all turns] */
    double *step_s, *comm_s, *hidden_s, *node_s;
    double *busy_s, *busy_min_s;   /* time of a step without exposed communication: slowest rank, fastest rank */
    double *slowest_s;             /* time of a step spent waiting for the slowest rank, mean over the ranks */
    double *axis_s[CVY_COMM_AXES]; /* the parts of comm_s on each axis of the process grid, each the largest */
    cvy_step_time own;             /* sums of this rank over the timed steps */
    double *bubble_s; /* time of a step spent waiting for other stages of a pipeline, mean over the ranks */
    struct cvy_bench_parts part;
} cvy_bench;

/* Opens the job, or the built-in network. Call cvy_bench_close() afterwards, also after an error. This function and
 * those below that run or plan a step are collective. */
cvy_status cvy_bench_open(cvy_context *context, const cvy_bench_opts *opts, cvy_bench *b);
/* Makes the job of the network that opts.model names and opens it. */
cvy_status cvy_bench_open_network(cvy_context *context, const cvy_bench_opts *opts, cvy_session *out);
/* Replaces the place in that job by the option that is at fault, in the text of an error. Returns `status`. */
cvy_status cvy_bench_name_option(const cvy_bench_opts *opts, cvy_status status);
/* Makes the model and the program with its one task, not planned yet. kernels and passes_off: options of the program;
 * NULL: those of the bench. */
cvy_status cvy_bench_make_program(cvy_bench *b, const char *kernels, const char *passes_off);
/* With `parallel: auto`: changes the job to the fastest grid. Call it before the program is made. */
cvy_status cvy_bench_choose_grid(cvy_bench *b);
/* Chooses the grid, makes the program, plans the step and fills its inputs. */
cvy_status cvy_bench_plan(cvy_bench *b, const char *kernels, const char *passes_off);
/* Runs one step. *seconds_out is the time of this rank. */
cvy_status cvy_bench_step(cvy_bench *b, double *seconds_out);
/* Gives the sum of the losses of the latest step over the global batch; NaN for CVY_BENCH_FORWARD. Collective. */
cvy_status cvy_bench_loss(const cvy_bench *b, double *loss_out);
/* Runs the warm-up and the timed steps, and fills in all figures. step_s, comm_s and hidden_s are the largest over the
 * ranks. */
cvy_status cvy_bench_measure(cvy_bench *b, int64_t node_steps_max);
void cvy_bench_close(cvy_bench *b);

/* "train", "forward" or "forward-backward". */
const char *cvy_bench_mode_text(cvy_bench_mode mode);

/* Fill in the parts of the result that say what was timed, and how long the steps took. */
void cvy_bench_fill_head(const cvy_bench *b, cvy_bench_result *result);
void cvy_bench_fill_times(const cvy_bench *b, double flop, cvy_bench_result *result);
/* Sums the work of all ranks, and writes the whole result on rank 0. Collective. */
cvy_status cvy_bench_report(const cvy_bench *b, cvy_bench_result *result_out);
/* Adds these parts as members of an open object. */
void cvy_bench_add_times(const cvy_bench_result *result, cvy_json *json);

/* Words of columns: of a cvy_bench_mode, a cvy_dtype, a cvy_shape, and of an int that is 1 if nothing was computed. */
void cvy_words_of_mode(cvy_cell cell, cvy_text *out);
void cvy_words_of_dtype(cvy_cell cell, cvy_text *out);
void cvy_words_of_shape(cvy_cell cell, cvy_text *out);
void cvy_words_of_clock(cvy_cell cell, cvy_text *out);
/* Columns for the first members of every result of a network. */
#define CVY_BENCH_HEAD_COLUMNS(type)                                                                                   \
    CVY_COLUMN(type, TEXT, model), CVY_COLUMN(type, COUNT, batch),                                                     \
        CVY_COLUMN(type, WORDS, mode, .words = cvy_words_of_mode),                                                     \
        CVY_COLUMN(type, WORDS, dtype, .words = cvy_words_of_dtype),                                                   \
        CVY_COLUMN(type, WORDS, input, .words = cvy_words_of_shape), CVY_COLUMN(type, INT, threads),                   \
        CVY_COLUMN(type, INT, ranks), CVY_COLUMN(type, INT, deterministic_shards, .is_optional = 1),                   \
    {                                                                                                                  \
        .key = "kernels", .kind = CVY_CELL_WORDS, .offset = offsetof(type, by_clock), .is_optional = 1,                \
        .words = cvy_words_of_clock                                                                                    \
    }
/* The median of x; sorts x. */
double cvy_median(double *x, int64_t n);

/* Work of this rank's step: all operations, and the multiply-adds of forward operators whose weights have two or more
 * dimensions. */
typedef struct cvy_work {
    double flop, macs;
} cvy_work;
cvy_work cvy_step_work(const cvy_plan *plan);
/* Whether the node multiplies by a matrix of weights: forward convolutions and fully connected layers. */
int cvy_node_multiplies(const cvy_node *node);

/* Measures the speed of a large matrix product (a fully connected layer's forward step) on all ranks at once, in
 * operations per second. It repeats the product for about 0.1 s and takes the fastest run of each rank. */
cvy_status cvy_bench_peak(cvy_context *context, cvy_dtype dtype, double *flop_per_s_out);

/* ---- measure_limit.c ---- */
/* Measures the speeds of the caches and of the memory. peak_flop_per_s: of all ranks, as cvy_bench_peak() measures it.
 * Collective. */
cvy_status cvy_limits_measure(cvy_context *context, double peak_flop_per_s, cvy_limits *out);
/* The least time for so many operations and bytes of a rank. */
cvy_limit cvy_limit_of(const cvy_limits *limits, double flop, double bytes);

/* ---- measure_parts.c ---- */
/* The part of the step to which an instruction belongs. */
cvy_step_part cvy_instr_part(const cvy_plan *plan, const cvy_instr *instr);
/* The value that an instruction without a node moves, or NULL. */
const cvy_value *cvy_instr_moved(const cvy_plan *plan, const cvy_instr *instr);
/* Adds the latest step to b->part_s. */
void cvy_bench_add_parts(cvy_bench *b);
/* The ranks that train, which are the first ones; the others are parameter servers. */
int cvy_bench_trainers(const cvy_bench *b);
/* Whether this rank is a server. */
int cvy_bench_serves(const cvy_bench *b);
/* Fills in the parts of a step, after ms_mean. Collective. */
cvy_status cvy_bench_fill_parts(const cvy_bench *b, cvy_bench_result *result);

/* ---- measure_turns.c ---- */
/* Adds the turns of the job to the program. CVY_E_CONFIG: they do not go with the update mode or the grid. */
cvy_status cvy_bench_add_turns(cvy_bench *b, const cvy_training_opts *opts);
/* The plan of a turn's task. */
cvy_plan *cvy_bench_turn_plan(const cvy_bench *b, int turn);
/* Runs the turns that are due in step b->nstep, and adds their times to b->time. */
cvy_status cvy_bench_take_turns(cvy_bench *b);
/* The work of a step of this rank, a mean over the steps. */
cvy_work cvy_bench_work(const cvy_bench *b);
/* The number of instructions of the first nturn turns. */
int cvy_bench_ninstr(const cvy_bench *b, int nturn);

#endif
