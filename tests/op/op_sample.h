/*
 * op_sample.h: for the tests that go through the samples of all operators (sample_graph.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_TEST_OP_SAMPLE_H
#define CVY_TEST_OP_SAMPLE_H

#include <stdlib.h>

#include "op/graph_eval.h"
#include "sample/sample_graph.h"

static inline void complain(const cvy_sample_graph *b, const char *what)
{
    test_failures++;
    printf("FAILED %s(%s; %s) %s: %s\n", b->op->name, b->sample->src, b->sample->options ? b->sample->options : "",
           cvy_dtype_text(b->dtype), what);
}

/* The same, for a cvy_sample_report. */
static inline void complain_of(void *user, const cvy_sample_graph *b, const char *what)
{
    (void)user;
    complain(b, what);
}

#endif
