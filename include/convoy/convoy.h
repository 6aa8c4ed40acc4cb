/* SPDX-License-Identifier: BSD-3-Clause */
/* convoy/convoy.h: all public headers except convoy/mpi.h (include that too for a context over several ranks). */
#ifndef CONVOY_CONVOY_H
#define CONVOY_CONVOY_H

#include <convoy/base.h>
#include <convoy/checkpoint.h>
#include <convoy/data.h>
#include <convoy/job.h>
#include <convoy/metric.h>
#include <convoy/model.h>
#include <convoy/network.h>
#include <convoy/operator.h>
#include <convoy/partition.h>
#include <convoy/program.h>
#include <convoy/reducer.h>
#include <convoy/schedule.h>
#include <convoy/score.h>
#include <convoy/stream.h>
#include <convoy/train.h>

#endif
