/*
 * collider.c: what a network gains over the classic analysis of collider events.
 *
 *     collider RUN                        compares the network of a run folder with three baselines on the test events
 *     collider --features SOURCE FILE     writes the ten features of a data set's events as comma-separated text
 *
 * The baselines are fitted to the run's training events. The program prints a table and writes RUN/analysis.json, which
 * `convoy report RUN` shows. It uses convoy's public interface alone: data sets and predictions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collider.h"

enum { REPLICAS = 400, SEED = 1, JOB_PATH_ROOM = 1024 };
static const double FPR = 0.01;

/* Reads the events of a key of the run's job, such as "data.test". The caller frees the source. */
static events read_source(cvy_context *context, const char *run, const char *key, char **source_out)
{
    char path[JOB_PATH_ROOM];
    cvy_job_source job = cvy_job_source_default();
    snprintf(path, sizeof path, "%s/job.resolved.yaml", run);
    job.path = path;
    check(cvy_run_job_value(&job, key, source_out));
    if (strncmp(*source_out, "null", 4) == 0)
        fail("%s: the job has no %s", run, key);
    const events e = events_read(context, *source_out);
    const totals all = totals_of(e.label, NULL, e.n);
    if (all.signal == 0 || all.background == 0)
        fail("%s: %s has %.0f events of signal and %.0f of background; both are needed", run, key, all.signal,
             all.background);
    return e;
}

static void analyse(cvy_context *context, const char *run)
{
    static const int three[] = {FEATURE_HT, FEATURE_NJET, FEATURE_LEAD};
    int ten[FEATURES];
    char *train_source = NULL, *test_source = NULL, *checkpoint = NULL;
    events train = read_source(context, run, "data.train", &train_source),
           test = read_source(context, run, "data.test", &test_source);
    float *score = network_scores(context, run, test_source, test.n);
    analysis a = {.test = &test, .fpr = FPR};
    for (int k = 0; k < FEATURES; k++)
        ten[k] = k;
    a.network = classifier_by_score("network", "", score, test.label, test.n);
    a.baseline[0] = cuts_fit(&train, &test);
    a.baseline[1] = linear_fit("linear", "logistic regression on HT, number of jets and leading jet", &train, &test,
                               three, COUNT(three));
    a.baseline[2] = linear_fit("linear-10", "logistic regression on all ten features", &train, &test, ten, COUNT(ten));
    for (int i = 0; i < BASELINES; i++)
        a.against[i] = compare(&a.network, &a.baseline[i], test.label, test.n, REPLICAS, SEED, FPR);
    print_table(&a);
    check(cvy_run_checkpoint(run, &checkpoint));
    write_analysis(&a, checkpoint, run);
    for (int i = 0; i < BASELINES; i++)
        classifier_free(&a.baseline[i]);
    classifier_free(&a.network);
    free(score);
    events_free(&train);
    events_free(&test);
    cvy_text_release(&checkpoint);
    cvy_text_release(&train_source);
    cvy_text_release(&test_source);
}

int main(int argc, char **argv)
{
    const int features = argc == 4 && strcmp(argv[1], "--features") == 0;
    cvy_context *context = NULL;
    if (!features && (argc != 2 || argv[1][0] == '-')) {
        fprintf(stderr, "usage: collider RUN\n       collider --features SOURCE FILE\n");
        return 2;
    }
    check(cvy_context_create(NULL, &context));
    if (features) {
        events e = events_read(context, argv[2]);
        events_write(&e, argv[3]);
        events_free(&e);
    } else {
        analyse(context, argv[1]);
    }
    cvy_context_destroy(&context);
    return 0;
}
