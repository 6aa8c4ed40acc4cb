/*
 * score_predict.c: cvy_run_predict(): writes the network's output for each sample, in the order of the data, as .npy
 * or .csv.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base_file.h"
#include "score/score_run.h"

struct table { /* the file being written, on rank 0 */
    cvy_file_temporary file;
    int is_csv;
};

static cvy_status write_rows(void *user, const float *rows, int64_t n, int64_t row_elems)
{
    struct table *t = user;
    if (!t->is_csv) {
        fwrite(rows, sizeof *rows, (size_t)(n * row_elems), t->file.stream);
    } else {
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < row_elems; k++)
                fprintf(t->file.stream, "%.9g%c", rows[i * row_elems + k], k + 1 < row_elems ? ',' : '\n');
    }
    CVY_CHECK(!ferror(t->file.stream), CVY_E_IO, "%s: %s", t->file.path, strerror(errno));
    return CVY_OK;
}

/* Writes the header of NumPy's format, version 1.0: magic, header length, and a Python dict padded so that the header
 * is 128 bytes. */
static void write_npy_head(FILE *file, int64_t rows, int64_t row_elems)
{
    char dict[118];
    const int n = snprintf(dict, sizeof dict, "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %lld), }",
                           (long long)rows, (long long)row_elems);
    memset(dict + n, ' ', sizeof dict - (size_t)n);
    dict[sizeof dict - 1] = '\n';
    fwrite("\x93NUMPY\x01\x00", 1, 8, file);
    fputc((int)sizeof dict, file);
    fputc(0, file);
    fwrite(dict, 1, sizeof dict, file);
}

static cvy_status open_table(const char *out, int64_t rows, int64_t row_elems, struct table *t)
{
    const char *dot = strrchr(out, '.');
    t->is_csv = dot && strcmp(dot, ".csv") == 0;
    CVY_CHECK(t->is_csv || (dot && strcmp(dot, ".npy") == 0), CVY_E_ARGUMENT,
              "%s: predictions are written as .npy or .csv", out);
    CVY_TRY(cvy_file_temporary_open(out, &t->file));
    if (!t->is_csv)
        write_npy_head(t->file.stream, rows, row_elems);
    return CVY_OK;
}

cvy_status cvy_run_predict(cvy_context *context, const char *target, const cvy_job_source *job, const char *data,
                           const char *out)
{
    cvy_scoring s = {0};
    cvy_gathered gathered = {0};
    struct table table = {0};
    cvy_scores scores;
    int is_open = 0;
    cvy_status status = cvy_scoring_open(context, target, job, data, 0, &s);
    if (status == CVY_OK) {
        status = cvy_gathered_begin(&s, 0, write_rows, &table, &gathered);
        if (status == CVY_OK && context->comm->rank == 0) {
            status = open_table(out, s.scorer.order.nsamples, gathered.output_elems, &table);
            is_open = status == CVY_OK;
        }
        status = cvy_comm_agree(context->comm, status);
    }
    if (status == CVY_OK)
        status = cvy_scorer_run(&s.scorer, &scores, NULL, cvy_gathered_add, &gathered);
    if (is_open && status == CVY_OK)
        status = cvy_file_temporary_commit(&table.file);
    else if (is_open)
        cvy_file_temporary_drop(&table.file);
    cvy_gathered_end(&gathered);
    cvy_scoring_close(&s);
    return status;
}
