/*
 * plan_forecast.h: predicts the time of a step over all stages of a pipeline, by playing what each stage does against
 * the others.
 *
 * A stage is a list of items in the order of its plan: work, and exchanges that start early and are waited for late.
 * All ranks of a stage do the same at the same time, so one list stands for them. Without a pipeline there is one
 * stage.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PLAN_FORECAST_H
#define CVY_PLAN_FORECAST_H

#include "graph/graph_op.h"

typedef enum {
    CVY_FORECAST_WORK,     /* kernels, copies, additions: work_s */
    CVY_FORECAST_EXCHANGE, /* a blocking exchange among the ranks of the stage: work_s, then wire_s */
    CVY_FORECAST_START, /* starts exchange `number` among the ranks of the stage: work_s at once, wire_s beside work */
    CVY_FORECAST_WAIT,  /* waits for it */
    CVY_FORECAST_SEND,  /* starts message `number` of micro-batch `micro` to stage `peer`: wire_s beside work */
    CVY_FORECAST_SENT,  /* waits until it is sent */
    CVY_FORECAST_RECEIVE,  /* starts to receive it */
    CVY_FORECAST_RECEIVED, /* waits for it */
    CVY_FORECAST_MEET,     /* waits for all stages, and then wire_s */
} cvy_forecast_kind;

typedef struct cvy_forecast_item {
    cvy_forecast_kind kind;
    cvy_comm_axis axis; /* for which a wait counts */
    double work_s;      /* the rank is busy */
    double wire_s;      /* an exchange is under way */
    double latency_s;   /* of a message, besides wire_s, for which its link is free for others */
    int peer, number, micro;
} cvy_forecast_item;

typedef struct cvy_forecast_stage {
    cvy_forecast_item *item;
    int n, room;
    int node;  /* stages with the same number share the cores of a node */
    int ranks; /* ranks of this stage on that node */
} cvy_forecast_stage;

typedef struct cvy_forecast {
    cvy_forecast_stage *stage;
    int nstages;
    int threads, cores; /* of each rank; of each node, 0: enough for all ranks */
} cvy_forecast;

/* Of a step, in seconds. The parts are means over the stages and together about step_s. */
typedef struct cvy_forecast_result {
    double step_s;
    double work_s;                   /* work, also that of exchanges; longer if ranks share cores */
    double exposed_s[CVY_COMM_AXES]; /* waiting for exchanges on each axis but that of the pipeline */
    double bubble_s;                 /* waiting for other stages */
} cvy_forecast_result;

/* Appends an item. */
cvy_status cvy_forecast_add(cvy_forecast_stage *stage, const cvy_forecast_item *item);
/* Plays two steps, and gives the time of the second one, in which stages begin when they are ready. CVY_E_INTERNAL: the
 * stages would wait for each other for ever. */
cvy_status cvy_forecast_run(const cvy_forecast *forecast, cvy_forecast_result *out);
void cvy_forecast_free(cvy_forecast *forecast);

#endif
