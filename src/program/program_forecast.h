/*
 * program_forecast.h: what a rank of a planned program does in a step, with times, for plan_forecast.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PROGRAM_FORECAST_H
#define CVY_PROGRAM_FORECAST_H

#include "comm/comm_network.h"
#include "plan/plan_forecast.h"
#include "program/program_view.h"

/* How well the times of the kernels are known. */
typedef struct cvy_forecast_basis {
    int ncall, nunknown;     /* calls that take time; those without a measured time */
    double known_s, rough_s; /* their times: measured, and estimated */
} cvy_forecast_basis;

/* Appends what this rank of a planned program does in a step of a training task. The times of kernels are those of the
 * program's wisdom, others are estimates. Adds to *basis. */
cvy_status cvy_program_forecast(const cvy_program *program, int task, const cvy_network *network,
                                cvy_forecast_stage *out, cvy_forecast_basis *basis);

#endif
