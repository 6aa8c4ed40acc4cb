/* SPDX-License-Identifier: BSD-3-Clause */
/* graph_eval.h: for tests that compare with the reference kernels of a graph's operators (sample_eval.h). */
#ifndef CVY_TEST_GRAPH_EVAL_H
#define CVY_TEST_GRAPH_EVAL_H

#include "sample/sample_eval.h"
#include "test_util.h"

#endif
