/*
 * measure_result.c: words that stand for values of results in lines and in JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "graph/graph.h"
#include "measure/measure_bench.h"

const char *cvy_bench_mode_text(cvy_bench_mode mode)
{
    switch (mode) {
    case CVY_BENCH_FORWARD: return "forward";
    case CVY_BENCH_FORWARD_BACKWARD: return "forward-backward";
    case CVY_BENCH_TRAIN: break;
    }
    return "train";
}

void cvy_words_of_mode(cvy_cell cell, cvy_text *out)
{
    cvy_text_add(out, "%s", cvy_bench_mode_text(*(const cvy_bench_mode *)cell.value));
}

void cvy_words_of_dtype(cvy_cell cell, cvy_text *out)
{
    cvy_text_add(out, "%s", cvy_dtype_text(*(const cvy_dtype *)cell.value));
}

void cvy_words_of_shape(cvy_cell cell, cvy_text *out)
{
    cvy_text_add(out, "%s", cvy_shape_text(cell.value));
}

void cvy_words_of_clock(cvy_cell cell, cvy_text *out)
{
    if (*(const int *)cell.value)
        cvy_text_add(out, "clock: nothing was computed, no loss");
}
