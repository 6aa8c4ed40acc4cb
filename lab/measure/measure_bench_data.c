/*
 * measure_bench_data.c: cvy_run_bench_data(): measures how fast samples of a source are read, decoded and augmented. It
 * uses the loader of training, without a network.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_opts.h"
#include "base/machine/base_clock.h"
#include "base/machine/base_machine.h"
#include "data/data_reader.h"
#include "measure/measure_bench.h"
#include "session/session_source.h"

enum { LOOKED_AT = 256 }; /* number of samples whose stored size is read */

struct share_state { /* the data of next_batch(), a cvy_share_fn */
    int64_t nsamples, batch;
};

/* Gives whole batches only, so that all steps do the same work. */
static cvy_status next_batch(void *user, int64_t step, cvy_share *shares, int max, int *nshare_out)
{
    const struct share_state *c = user;
    const int64_t steps = c->nsamples / c->batch;
    (void)max;
    shares[0] = (cvy_share){.epoch = step / steps, .first_position = step % steps * c->batch, .n = c->batch};
    *nshare_out = 1;
    return CVY_OK;
}

/* Runs steps until `seconds` are over and at least `least` steps are done. */
static cvy_status run_for(cvy_loader *l, double seconds, int64_t least, int64_t *step, double *took_out)
{
    const double start = cvy_clock_s();
    const int64_t first = *step;
    do {
        const cvy_rows *rows = NULL;
        CVY_TRY(cvy_loader_get(l, *step, &rows, NULL));
        cvy_loader_release(l, rows);
        (*step)++;
    } while (cvy_clock_s() - start < seconds || *step - first < least);
    *took_out = cvy_clock_s() - start;
    return CVY_OK;
}

static cvy_status parse_shuffle(const char *text, cvy_shuffle *out)
{
    *out = !text || strcmp(text, "true") == 0 ? CVY_SHUFFLE_ALL
           : strcmp(text, "window") == 0      ? CVY_SHUFFLE_WINDOW
                                              : CVY_SHUFFLE_NONE;
    CVY_CHECK(*out != CVY_SHUFFLE_NONE || strcmp(text, "false") == 0, CVY_E_CONFIG,
              "the order is \"%s\", expected true, window or false", text);
    return CVY_OK;
}

static cvy_status time_loader(cvy_dataset *d, const struct share_state *share_state, cvy_shuffle shuffle, int threads,
                              double seconds, double *took_out, int64_t *steps_out)
{
    const cvy_loader_opts opts = {.shuffle = shuffle,
                                  .seed = 1,
                                  .threads = threads,
                                  .depth = 4,
                                  .share = next_batch,
                                  .share_user = (void *)share_state};
    cvy_loader *l = NULL;
    int64_t step = 0, warm = 0;
    double took = 0;
    CVY_TRY(cvy_loader_create(d, &opts, &l));
    /* Read the data set once, so that its files are in memory, but for no longer than the timed part. */
    cvy_status status = CVY_OK;
    const double start = cvy_clock_s();
    do
        status = run_for(l, 0, 1, &step, &took);
    while (status == CVY_OK && step < share_state->nsamples / share_state->batch && cvy_clock_s() - start < seconds);
    warm = step;
    if (status == CVY_OK)
        status = run_for(l, seconds, 1, &step, &took);
    cvy_loader_destroy(&l);
    *took_out = took;
    *steps_out = step - warm;
    return status;
}

static cvy_status bench(cvy_pool *pool, const cvy_bench_data_opts *opts, cvy_bench_data_result *result_out)
{
    cvy_tree *source = NULL, *augment = NULL;
    cvy_dataset *d = NULL;
    cvy_status status = CVY_OK;
    double took = 0, stored = 0;
    int64_t steps = 0;
    cvy_shuffle shuffle = CVY_SHUFFLE_ALL;
    CVY_TRY(parse_shuffle(opts->shuffle, &shuffle));
    CVY_TRY(cvy_job_parse_source(pool, opts->source, &source));
    if (opts->augment)
        CVY_TRY(cvy_tree_parse_text(pool, "augment", opts->augment, strlen(opts->augment), &augment));
    CVY_TRY(cvy_dataset_open(source, augment, 1, 1, &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    const cvy_shape *shape = &info->field[0].shape;
    const int64_t batch = CVY_MIN(opts->batch > 0 ? opts->batch : 32, info->nsamples);
    const int threads = opts->threads > 0 ? opts->threads : cvy_machine_cores();
    const double seconds = opts->seconds > 0 ? opts->seconds : 5;
    const struct share_state share_state = {info->nsamples, batch};
    CVY_TRY_OUT(time_loader(d, &share_state, shuffle, threads, seconds, &took, &steps));
    CVY_TRY_OUT(cvy_dataset_stored_bytes(d, LOOKED_AT, &stored));
    const double per_s = (double)(steps * batch) / took;
    cvy_bench_data_result r = {.samples = info->nsamples,
                               .shape = *shape,
                               .threads = threads,
                               .batch = batch,
                               .seconds = took,
                               .images = steps * batch,
                               .images_per_s = per_s,
                               .stored_mb_per_s = 1e-6 * per_s * stored,
                               .output_mb_per_s = 1e-6 * per_s * (double)cvy_shape_elems(shape) * sizeof(float)};
    snprintf(r.data, sizeof r.data, "%s", opts->source);
    snprintf(r.format, sizeof r.format, "%s", info->format);
    snprintf(r.shuffle, sizeof r.shuffle, "%s", opts->shuffle ? opts->shuffle : "true");
    status = CVY_RESULT_CHECK(cvy_bench_data_result, result_out);
    if (status == CVY_OK)
        cvy_result_write(result_out, &r, sizeof r);
out:
    cvy_dataset_destroy(&d);
    return status;
}

cvy_status cvy_run_bench_data(const cvy_bench_data_opts *opts, cvy_bench_data_result *result_out)
{
    CVY_ENTRY();
    cvy_pool *pool = NULL;
    cvy_bench_data_opts o;
    CVY_TRY(CVY_OPTS_READ(cvy_bench_data_opts, opts, &o));
    CVY_CHECK(o.source, CVY_E_ARGUMENT, "no data source to time");
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = bench(pool, &o, result_out);
    cvy_pool_destroy(&pool);
    return status;
}

static const cvy_column columns[] = {
    CVY_COLUMN(cvy_bench_data_result, TEXT, data),
    CVY_COLUMN(cvy_bench_data_result, TEXT, format),
    CVY_COLUMN(cvy_bench_data_result, COUNT, samples),
    CVY_COLUMN(cvy_bench_data_result, WORDS, shape, .words = cvy_words_of_shape),
    CVY_COLUMN(cvy_bench_data_result, TEXT, shuffle),
    CVY_COLUMN(cvy_bench_data_result, INT, threads),
    CVY_COLUMN(cvy_bench_data_result, COUNT, batch),
    CVY_COLUMN(cvy_bench_data_result, REAL, seconds),
    CVY_COLUMN(cvy_bench_data_result, COUNT, images),
    CVY_COLUMN(cvy_bench_data_result, REAL, images_per_s),
    CVY_COLUMN(cvy_bench_data_result, REAL, stored_mb_per_s),
    CVY_COLUMN(cvy_bench_data_result, REAL, output_mb_per_s),
    {0},
};

cvy_status cvy_bench_data_result_json(const cvy_bench_data_result *result, char **text_out)
{
    CVY_ENTRY();
    cvy_bench_data_result r;
    CVY_TRY(CVY_OPTS_READ(cvy_bench_data_result, result, &r));
    return cvy_row_json_text(columns, &r, text_out);
}

cvy_status cvy_bench_data_result_lines(const cvy_bench_data_result *result, char **text_out)
{
    CVY_ENTRY();
    cvy_bench_data_result r;
    CVY_TRY(CVY_OPTS_READ(cvy_bench_data_result, result, &r));
    return cvy_row_lines_text(columns, &r, text_out);
}
