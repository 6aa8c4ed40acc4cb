/*
 * search.h: finds the process grid on which a job trains fastest: predicts time and memory of each grid, without
 * running a step and without other ranks.
 *
 * A grid is predicted from the plans of its ranks: one rank of each stage is planned among ranks that do not exist
 * (comm/pretend), and their lists of work and exchanges are played against each other (plan_forecast.h). The kernels of
 * the best grids are rehearsed (program_rehearse.c), unless plan.planning is estimate; the times of the others are
 * corrected by what the rehearsals have shown.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SEARCH_H
#define CVY_SEARCH_H

#include "data/data.h"
#include "job/job.h"
#include "plan/plan_forecast.h"
#include "program/program_forecast.h"
#include "program/program_view.h"
#include "search/search_grids.h"

typedef struct cvy_search_opts {
    cvy_context *context;
    const cvy_job *job;           /* its own grid is not looked at, unless only_given */
    const cvy_dataset_info *data; /* the shape of a sample */
    int nranks;
    cvy_network network;
    int threads;           /* of each rank */
    int cores;             /* of each node; 0: enough for all ranks */
    int64_t memory_limit;  /* bytes of each rank; 0: plan.memory_limit */
    int64_t micro_batches; /* of a run that is resumed; 0: as the job says, or free */
    int64_t nscored;       /* samples of validation, whose inputs need memory too; 0: none; INT64_MAX: not known */
    int only_given;        /* 1: only the grid of the job is predicted */
} cvy_search_opts;

typedef struct cvy_search_candidate {
    cvy_search_grid grid;
    int number;          /* in the order in which grids are tried: simple ones first */
    cvy_status status;   /* CVY_OK: it is predicted; CVY_E_MEMORY: too large for the limit; else it cannot be used */
    char why[512];       /* if it is not CVY_OK */
    int64_t other_bytes; /* of inputs of other tasks than the step */
    int64_t batch;       /* samples of a step */
    double samples_per_s;
    int64_t need_bytes; /* memory of the rank that needs most; 0: not known */
    cvy_forecast_result time;
    cvy_forecast_basis basis;
    int is_rehearsed; /* 1: the times of its kernels are those of a rehearsal */
} cvy_search_candidate;

typedef struct cvy_search {
    cvy_search_candidate *at; /* [n], the fastest first; then those that do not fit, and those that cannot be used */
    int n, room;
} cvy_search;

/* Predicts all grids, or the one of the job. The caller frees *out with cvy_search_free(). A grid that cannot be used
 * is no fault. Runs in this process only. */
cvy_status cvy_search_run(const cvy_search_opts *opts, cvy_search *out);
void cvy_search_free(cvy_search *search);
/* The fastest grid that fits. CVY_E_MEMORY: none fits; the message has the least memory that a grid needs, and which.
 * CVY_E_CONFIG: none can be used. */
cvy_status cvy_search_best(const cvy_search *search, const cvy_search_opts *opts, const cvy_search_candidate **out);
/* Changes the job to this grid. */
void cvy_search_apply(const cvy_search_grid *grid, cvy_job *job);

/* ---- search_choose.c ---- */
/* Measures the links between the ranks of a communicator. Collective. */
cvy_status cvy_search_measure_network(cvy_comm *comm, cvy_network *out);
/* Measures how fast one rank copies memory, in seconds for each byte that it reads or writes. */
cvy_status cvy_search_measure_copy(double *copy_s_out);

/* ---- search_words.c ---- */
/* Seconds of a step in which a rank waits for exchanges, on all axes. */
double cvy_search_exposed_s(const cvy_search_candidate *candidate);
/* The share of a part of a step, in %: each part is a mean over stages, and together they are about the step. */
double cvy_search_share(const cvy_search_candidate *candidate, double seconds);
/* "1.2 GiB" */
void cvy_search_bytes_text(int64_t bytes, cvy_text *out);
/* Whether much of the time of the kernels is an estimate. */
int cvy_search_is_rough(const cvy_search_candidate *candidate);
/* A sentence about what the time of a step is made of. */
void cvy_search_explain(const cvy_search_candidate *candidate, cvy_text *out);

#endif
