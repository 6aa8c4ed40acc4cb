/*
 * collider_events.c: the events of a data set as features and labels, as text, and with the network's scores.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collider.h"

enum { BATCH = 256, LOADER_THREADS = 4, PATH_ROOM = 1024 };

/* Gives the shape of an image of the set, after checking that these are collider events. */
static cvy_shape check_events(cvy_data *data, const char *source, int64_t *n_out)
{
    cvy_data_about about = cvy_data_about_default();
    cvy_shape shape = {0};
    cvy_dtype dtype = CVY_DTYPE_F32;
    check(cvy_data_describe(data, &about));
    check(cvy_data_field(data, 0, NULL, &dtype, &shape));
    const char *background = cvy_data_class(data, 0), *signal = cvy_data_class(data, 1);
    if (about.classes != 2 || !background || strcmp(background, "background") != 0 || !signal ||
        strcmp(signal, "signal") != 0 || dtype != CVY_DTYPE_F32 || shape.ndim != 3 || shape.dim[0] != CHANNELS)
        fail("%s (format %s): these are no collider events, which are f32 images of 3 channels in the classes "
             "background and signal",
             source, about.format);
    *n_out = about.samples;
    return shape;
}

events events_read(cvy_context *context, const char *source)
{
    cvy_data_loader_opts opts = cvy_data_loader_opts_default();
    cvy_data_batch batch = cvy_data_batch_default();
    cvy_data_loader *loader = NULL;
    cvy_data *data = NULL;
    events e = {0};
    int64_t at = 0;
    check(cvy_data_open(source, NULL, &data));
    const cvy_shape shape = check_events(data, source, &e.n);
    const int64_t neta = shape.dim[1], nphi = shape.dim[2];
    float *work = allocate(neta * nphi, sizeof *work);
    e.feature = allocate(e.n * FEATURES, sizeof *e.feature);
    e.label = allocate(e.n, sizeof *e.label);
    opts.batch = e.n < BATCH ? e.n : BATCH, opts.epochs = 1, opts.keep_tail = 1;
    opts.shuffle = "false", opts.threads = LOADER_THREADS;
    check(cvy_data_loader_create(context, data, &opts, &loader));
    while (check(cvy_data_loader_next(loader, &batch)) == CVY_OK) {
        const float *image = batch.field[0];
        memcpy(e.label + at, batch.field[1], (size_t)batch.rows * sizeof *e.label);
        for (int64_t i = 0; i < batch.rows; i++)
            features_of(image + i * CHANNELS * neta * nphi, neta, nphi, work, e.feature + at++ * FEATURES);
    }
    free(work);
    cvy_data_loader_destroy(&loader);
    cvy_data_destroy(&data);
    return e;
}

void events_free(events *e)
{
    free(e->feature);
    free(e->label);
    *e = (events){0};
}

void events_write(const events *e, const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        fail("%s: %s", path, strerror(errno));
    fprintf(file, "label");
    for (int f = 0; f < FEATURES; f++)
        fprintf(file, ",%s", feature_name[f]);
    for (int64_t i = 0; i < e->n; i++) {
        fprintf(file, "\n%d", e->label[i]);
        for (int f = 0; f < FEATURES; f++)
            fprintf(file, ",%.7g", e->feature[i * FEATURES + f]);
    }
    fprintf(file, "\n");
    if (ferror(file) | fclose(file))
        fail("%s: %s", path, strerror(errno));
}

/* ---- the network ---- */

/* Reads rows of two numbers: the log odds of an event are the second number less the first. */
static int read_scores(FILE *file, int64_t n, float *score)
{
    unsigned char head[10];
    float row[2];
    /* NumPy's format, version 1.0: magic, length of the text that follows, which describes the array, the array. */
    if (fread(head, 1, sizeof head, file) != sizeof head || fseek(file, head[8] + 256 * head[9], SEEK_CUR) != 0)
        return 0;
    for (int64_t i = 0; i < n; i++) {
        if (fread(row, sizeof row, 1, file) != 1)
            return 0;
        score[i] = row[1] - row[0];
    }
    return fgetc(file) == EOF;
}

float *network_scores(cvy_context *context, const char *run, const char *source, int64_t n)
{
    char path[PATH_ROOM];
    float *score = allocate(n, sizeof *score);
    snprintf(path, sizeof path, "%s/analysis-scores.npy", run);
    const cvy_predict_request request = {.size = sizeof request, .target = run, .data = source, .out = path};
    check(cvy_run_predict(context, &request));
    FILE *file = fopen(path, "rb");
    const int complete = file && read_scores(file, n, score);
    if (file)
        fclose(file);
    remove(path);
    if (!complete)
        fail("%s: the network does not give two numbers for each of %lld events", run, (long long)n);
    return score;
}
