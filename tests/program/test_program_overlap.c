/* ranks: 2 3 */
/* rows: mpich mpi asan */
/*
 * test_program_overlap.c: the all-reduces of gradients run during the backward pass.
 *
 * In the plan the first all-reduce starts before the last backward node, and the trace of a real step shows the same on
 * every rank. With the pass "overlap" switched off, all of them start after the last backward node. The weights are the
 * same to the bit, because the buckets and the order of summation are the same. The test prints the time of a step and
 * its communication time for both settings.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base_file.h"
#include "monitor/monitor_trace.h"
#include "program/program_view.h"
#include "test_util.h"

enum { BATCH = 12, STEPS = 12, WEIGHTS = 16 * 16 * 9 };

static cvy_context *context;

static cvy_model *new_network(void)
{
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("overlap", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {3, 16, 16}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "conv%d", i);
        EXPECT_OK(cvy_model_add(m, "conv", name, "channels: 16, kernel: 3, pad: 1", i ? NULL : "x"));
        EXPECT_OK(cvy_model_add(m, "relu", NULL, NULL, NULL));
    }
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 10", NULL));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    return m;
}

/* Finds the instructions of the first start, the last backward node and the first wait. */
static void find_places(const cvy_plan *plan, int *start_out, int *backward_out, int *wait_out, int *nstart_out)
{
    *start_out = *backward_out = *wait_out = -1;
    *nstart_out = 0;
    for (int i = 0; i < plan->ninstr; i++) {
        const cvy_instr *instr = &plan->instr[i];
        if (cvy_instr_starts_bucket(instr) >= 0) {
            *start_out = *start_out < 0 ? i : *start_out;
            ++*nstart_out;
        } else if (cvy_instr_awaits_bucket(instr) >= 0) {
            *wait_out = *wait_out < 0 ? i : *wait_out;
        } else if (instr->call && instr->call->node && instr->call->node->backward) {
            *backward_out = i;
        }
    }
}

static double number(const cvy_tree *event, const char *key)
{
    const cvy_tree *value = cvy_tree_get(event, key);
    return value && value->text ? strtod(value->text, NULL) : NAN;
}

static const char *word(const cvy_tree *event, const char *key)
{
    const cvy_tree *value = cvy_tree_get(event, key);
    return value && value->text ? value->text : "";
}

/* Checks in the trace file whether the first all-reduce of this rank starts before the last backward node begins, and
 * whether all events lie within the step and in order. */
static void check_trace(const cvy_tree *file, int rank, int overlap)
{
    const cvy_tree *events = cvy_tree_get(file, "traceEvents");
    double first_start = NAN, last_backward = NAN, end = -INFINITY, begun[64];
    int count = 0, sums = 0;
    for (int b = 0; b < CVY_COUNT(begun); b++)
        begun[b] = NAN;
    for (int i = 0; events && i < events->count; i++) {
        const cvy_tree *e = events->child[i];
        if ((int)number(e, "pid") != rank)
            continue;
        if (strcmp(word(e, "cat"), "sums") == 0) {
            double *at = &begun[(int)number(e, "id") % 64];
            const int ends = strcmp(word(e, "ph"), "e") == 0;
            EXPECT(ends ? number(e, "ts") >= *at : isnan(*at)); /* NaN: no event has begun */
            *at = number(e, "ts");
            sums += ends;
        }
        if (strcmp(word(e, "ph"), "X") != 0)
            continue;
        const double begin = number(e, "ts");
        EXPECT(begin >= end - 1e-3);
        end = begin + number(e, "dur");
        count++;
        if (strstr(word(e, "name"), "reduce") && strstr(word(e, "name"), "start") && isnan(first_start))
            first_start = begin;
        if (strcmp(word(e, "cat"), "backward") == 0)
            last_backward = begin;
    }
    EXPECT(count > 10 && sums >= 3);
    EXPECT(overlap ? first_start < last_backward : first_start > last_backward);
}

static void check_trace_file(cvy_program *p, int step, int overlap)
{
    char path[] = "/tmp/convoy-trace-XXXXXX", *text = NULL;
    const int root = cvy_context_rank(context) == 0, fd = root ? mkstemp(path) : -1;
    size_t bytes = 0;
    cvy_pool *pool = NULL;
    cvy_tree *file = NULL;
    EXPECT_OK(cvy_trace_write(p, step, path));
    if (!root)
        return;
    close(fd);
    EXPECT_OK(cvy_pool_create(&pool));
    EXPECT_OK(cvy_file_read(path, 1 << 24, &text, &bytes));
    EXPECT_OK(cvy_tree_parse_text(pool, "trace", text, bytes, &file));
    for (int r = 0; file && r < cvy_context_nranks(context); r++)
        check_trace(file, r, overlap);
    cvy_mem_free(&text);
    cvy_pool_destroy(&pool);
    unlink(path);
}

static void train(int overlap, float *weights)
{
    const cvy_program_opts opts = {
        .size = sizeof opts, .bucket_bytes = 8 << 10, .passes_off = overlap ? NULL : "overlap"};
    cvy_model *m = new_network();
    cvy_program *p = NULL;
    int step = 0, start, backward, wait, nstart;
    double seconds = 0, exposed = 0, hidden = 0;
    EXPECT_OK(cvy_program_create(context, &opts, &p));
    EXPECT_OK(cvy_program_add_training(p, m, BATCH, NULL, &step));
    EXPECT_OK(cvy_program_plan(p));
    find_places(cvy_program_task_plan(p, step), &start, &backward, &wait, &nstart);
    EXPECT(nstart >= 3);
    EXPECT(start >= 0 && (overlap ? start < backward : start > backward));
    EXPECT(wait > backward && wait > start);
    float *x = cvy_program_feed(p, step, "x");
    const int64_t rows = cvy_program_rows(p, step), first = cvy_program_first_row(p, step);
    for (int64_t i = 0; i < rows * 768; i++)
        x[i] = (float)((i + first * 768) * 7919 % 1000) / 500 - 1;
    for (int i = 0; i < STEPS; i++) {
        EXPECT_OK(cvy_program_step(p, step, 0.01));
        seconds += i >= 2 ? cvy_program_time(p, step)->total : 0;
        exposed += i >= 2 ? cvy_program_time(p, step)->exposed_comm : 0;
        hidden += cvy_program_time(p, step)->hidden_comm;
    }
    if (cvy_context_rank(context) == 0)
        printf("       overlap %-3s: %d buckets, first start %d, last backward node %d of %d; a step %.2f ms, exposed "
               "communication %.2f ms\n",
               overlap ? "on" : "off", nstart, start, backward, cvy_program_task_plan(p, step)->ninstr,
               seconds * 1e3 / (STEPS - 2), exposed * 1e3 / (STEPS - 2));
    EXPECT(!overlap || hidden > 0);
    check_trace_file(p, step, overlap);
    EXPECT_OK(cvy_program_get(p, "conv2.weight", weights, WEIGHTS));
    cvy_program_destroy(&p);
    cvy_model_destroy(&m);
}

static void overlap(void)
{
    static float on[WEIGHTS], off[WEIGHTS];
    train(1, on);
    train(0, off);
    EXPECT(memcmp(on, off, sizeof on) == 0);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &context));
    TEST(overlap);
    cvy_context_destroy(&context);
    const int failed = test_end();
    MPI_Finalize();
    return failed;
}
