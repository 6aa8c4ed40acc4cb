/* ranks: 1 2 4 */
/*
 * test_network_shared.c: ranks that hold no network apply one that others hold, with different numbers of samples and
 * none at all; the results are those of a network of their own. Faults of one rank reach the others that are served
 * with it, and the next call works.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <convoy/mpi.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base_file.h"
#include "test_util.h"

enum { FEATURES = 5, CLASSES = 3, MOST = 40 };

static const char job_text[] = "model:\n"
                               "  layers:\n"
                               "    - fc: {name: hidden, channels: 8}\n"
                               "    - tanh\n"
                               "    - fc: {name: last, channels: 3}\n"
                               "data:\n"
                               "  train: {path: data.csv, label: label, shape: [5]}\n"
                               "  normalize: auto\n"
                               "train: {batch: 30, epochs: 1, optimizer: {name: sgd, lr: 0.05}}\n";

static cvy_context *world, *alone;
static int rank, nranks;

static double feature(int64_t sample, int i)
{
    return sin((double)(sample * 7 + i * 3)) + (double)(sample % CLASSES);
}

static void train_network(void)
{
    const cvy_job_source job = {.size = sizeof job, .text = job_text};
    const cvy_train_opts opts = {.size = sizeof opts, .out = "run"};
    if (rank == 0) {
        FILE *file = fopen("data.csv", "w");
        fprintf(file, "a,b,c,d,e,label\n");
        for (int s = 0; s < 90; s++) {
            for (int i = 0; i < FEATURES; i++)
                fprintf(file, "%.9g,", feature(s, i));
            fprintf(file, "%d\n", s % CLASSES);
        }
        fclose(file);
        EXPECT_OK(cvy_run_train(alone, &job, &opts, NULL));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Samples of this rank in a call, and their results. */
struct samples {
    int64_t n;
    double x[MOST * FEATURES];
    double y[MOST * CLASSES];
};

static void make_samples(struct samples *s, int64_t n, int64_t first)
{
    s->n = n;
    for (int64_t k = 0; k < n; k++)
        for (int i = 0; i < FEATURES; i++)
            s->x[k * FEATURES + i] = feature(first + 100 * rank + k, i);
}

static cvy_network_in input_of(const struct samples *s)
{
    return (cvy_network_in){.dtype = CVY_DTYPE_F64, .elems = s->n * FEATURES, .data = s->x};
}

static cvy_network_out output_of(struct samples *s)
{
    return (cvy_network_out){.name = "last", .dtype = CVY_DTYPE_F64, .elems = s->n * CLASSES, .data = s->y};
}

static cvy_status apply(cvy_shared_network *shared, struct samples *s)
{
    const cvy_network_in in = input_of(s);
    const cvy_network_out out = output_of(s);
    return cvy_shared_network_apply(shared, s->n, &in, 1, &out, 1);
}

static void same_results(cvy_shared_network *shared, cvy_network *own)
{
    static struct samples s, expected;
    for (int call = 0; call < 6; call++) {
        const int64_t n = call == 5 ? 0 : (rank * 3 + call * 7) % MOST;
        make_samples(&s, n, call);
        expected = s;
        EXPECT_OK(apply(shared, &s));
        const cvy_network_in in = input_of(&expected);
        const cvy_network_out out = output_of(&expected);
        EXPECT_OK(cvy_network_apply(own, n, &in, 1, &out, 1));
        for (int64_t i = 0; i < n * CLASSES; i++)
            EXPECT_NEAR(s.y[i], expected.y[i], 1e-5 * (1 + fabs(expected.y[i])));
    }
}

/* The last rank makes a mistake; it is in the only group, or in the last of two. */
static void faults(cvy_shared_network *shared, int holders)
{
    static struct samples s;
    const int last = rank == nranks - 1, with_last = nranks < 4 || holders == 1 || rank > 1;
    char text[64];
    make_samples(&s, 4, 0);
    cvy_network_in in = input_of(&s);
    cvy_network_out out = output_of(&s);
    if (last)
        s.x[3] = NAN;
    cvy_status status = apply(shared, &s);
    EXPECT(status == (with_last ? CVY_E_NUMERIC : CVY_OK));
    s.x[3] = 0;
    if (last)
        in.elems = 7;
    status = cvy_shared_network_apply(shared, s.n, &in, 1, &out, 1);
    EXPECT(status == (with_last ? CVY_E_ARGUMENT : CVY_OK));
    EXPECT(!with_last || strstr(cvy_error_text(), "7 elements, which 4 samples cannot have"));
    in.elems = s.n * FEATURES;
    if (last)
        out.name = "first";
    status = cvy_shared_network_apply(shared, s.n, &in, 1, &out, 1);
    EXPECT(status == (!with_last ? CVY_OK : nranks == 1 ? CVY_E_ARGUMENT : CVY_E_DISAGREE));
    snprintf(text, sizeof text, "rank %d gives other arrays than rank ", nranks - 1);
    EXPECT(!with_last || nranks == 1 || strstr(cvy_error_text(), text));
    EXPECT_OK(apply(shared, &s));
}

static void shared_by(int holders)
{
    cvy_network *own = NULL;
    cvy_shared_network *shared = NULL;
    EXPECT_OK(cvy_network_open(alone, "run", NULL, &own));
    const int holds = rank == 0 || (holders == 2 && rank == 2) || holders == nranks;
    EXPECT_OK(cvy_shared_network_create(world, holds ? own : NULL, &shared));
    same_results(shared, own);
    if (holders < nranks || nranks == 1)
        faults(shared, holders);
    cvy_shared_network_destroy(&shared);
    EXPECT(shared == NULL);
    cvy_shared_network_destroy(&shared);
    cvy_network_destroy(&own);
}

int main(int argc, char **argv)
{
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
    char folder[] = "/tmp/test-network-XXXXXX";
    cvy_shared_network *shared = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (rank == 0)
        EXPECT(mkdtemp(folder) != NULL);
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    EXPECT(chdir(folder) == 0);
    EXPECT_OK(cvy_context_create_mpi(MPI_COMM_WORLD, &opts, &world));
    EXPECT_OK(cvy_context_create(&opts, &alone));
    train_network();
    const int64_t bytes = cvy_memory_bytes();
    EXPECT_FAULT(cvy_shared_network_create(world, NULL, &shared), CVY_E_ARGUMENT, "no rank of the context holds");
    shared_by(1);
    if (nranks == 4)
        shared_by(2);
    shared_by(nranks);
    EXPECT(cvy_memory_bytes() == bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        EXPECT_OK(cvy_file_remove_tree(folder));
    cvy_context_destroy(&alone);
    cvy_context_destroy(&world);
    MPI_Finalize();
    return test_end();
}
