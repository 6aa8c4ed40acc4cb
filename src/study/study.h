/*
 * study.h: a network set up to be timed on synthetic data: what bench, time and check share.
 */
#ifndef CVY_STUDY_H
#define CVY_STUDY_H

#include <convoy/study.h>

#include "base/base_json.h"
#include "session/session.h"

typedef struct cvy_bench {
    cvy_session session;
    cvy_bench_opts opts;
    cvy_dataset_info data;
    cvy_program_task *step;
    int number;                                  /* of the step in the program */
    int64_t nstep;                               /* all so far */
    int64_t batch, steps, node_steps;            /* global; timed; timed of which single instructions are remembered */
    double plan_s, peak_flop_per_s;              /* of a matrix product on all ranks; NaN: not measured */
    double bytes_wire;                           /* sent by a rank in a timed step; the rank that sends most */
    double loss_first, loss_last;                /* of the first step at all, and of the last; NaN without losses */
    double *step_s, *comm_s, *hidden_s, *node_s; /* node_s: [node_steps, instructions] */
    double *busy_s, *busy_min_s; /* a step without exposed communication: of the slowest rank, and of the fastest */
    double *slowest_s;           /* mean over the ranks: until the slowest had come */
} cvy_bench;

/* Opens the job or the zoo's network. Collective, as all below. End it with cvy_bench_close(), also after a fault. */
cvy_status cvy_bench_open(cvy_context *context, const cvy_bench_opts *opts, cvy_bench *b);
/* The model and the program with its one step, not yet planned; kernels and passes_off are the program's options, NULL:
 * those of the bench. */
cvy_status cvy_bench_make_program(cvy_bench *b, const char *kernels, const char *passes_off);
/* Makes the program, plans the step and fills its inputs. */
cvy_status cvy_bench_plan(cvy_bench *b, const char *kernels, const char *passes_off);
/* One step; the time is this rank's. */
cvy_status cvy_bench_step(cvy_bench *b, double *seconds_out);
/* The sum of the losses of the latest step; NaN for forward steps. */
cvy_status cvy_bench_loss(const cvy_bench *b, double *loss_out);
/* Warm-up, then the timed steps: fills all of the figures; step_s and comm_s are of the slowest rank, hidden_s of the
 * one that hid most. */
cvy_status cvy_bench_measure(cvy_bench *b, int64_t node_steps_max);
void cvy_bench_close(cvy_bench *b);

/* What was timed, and how long steps took, of the result. */
void cvy_bench_fill_head(const cvy_bench *b, cvy_bench_result *result);
void cvy_bench_fill_times(const cvy_bench *b, double flop, cvy_bench_result *result);
/* Their rows, as members of an open object. */
void cvy_bench_add_times(const cvy_bench_result *result, cvy_json *json);

/* Rows for what every result of a network begins with. */
#define CVY_BENCH_HEAD_ROWS(type)                                                                                      \
    {"model", CVY_RESULT_TEXT, offsetof(type, model), 0}, {"batch", CVY_RESULT_COUNT, offsetof(type, batch), 0},       \
        {"mode", CVY_RESULT_MODE, offsetof(type, forward), 0}, {"dtype", CVY_RESULT_DTYPE, offsetof(type, dtype), 0},  \
        {"input", CVY_RESULT_SHAPE, offsetof(type, input), 0},                                                         \
        {"threads", CVY_RESULT_INT, offsetof(type, threads), 0}, {"ranks", CVY_RESULT_INT, offsetof(type, ranks), 0},  \
        {"deterministic_shards", CVY_RESULT_INT, offsetof(type, deterministic_shards), 1},                             \
    {                                                                                                                  \
        "kernels", CVY_RESULT_CLOCK, offsetof(type, by_clock), 1                                                       \
    }
/* Sorts. */
double cvy_median(double *x, int64_t n);

/* Work of this rank's step: all operations, and multiply-adds of forward in operators with weights of two and more
 * dimensions. */
typedef struct cvy_work {
    double flop, macs;
} cvy_work;
cvy_work cvy_step_work(const cvy_plan *plan);
/* Whether the node multiplies by a matrix of weights: convolutions and fully connected layers, forward. */
int cvy_node_multiplies(const cvy_node *node);

/* Operations a second of a large matrix product (a fully connected layer's forward step) on all ranks at once: the best
 * of some tenths of a second. */
cvy_status cvy_bench_peak(cvy_context *context, cvy_dtype dtype, double *flop_per_s_out);

#endif
