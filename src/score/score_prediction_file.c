/*
 * score_prediction_file.c: writes predictions row by row: outputs, probabilities or classes. See
 * score_prediction_file.h.
 */
#include "score/score_prediction_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- checks ---- */

static int is_csv(const char *path)
{
    return cvy_data_has_suffix(path, ".csv");
}

static int64_t count_top(const cvy_predict_request *ask)
{
    return ask->top > 0 ? ask->top : 1;
}

/* A single output of a network for two classes is the logit of the second one. */
static int is_single(int64_t elems, int64_t nclasses)
{
    return elems == 1 && nclasses == 2;
}

cvy_status cvy_prediction_file_check(const cvy_predict_request *ask, const cvy_shape *sample, int64_t nclasses)
{
    const int64_t elems = cvy_shape_elems(sample);
    CVY_CHECK(is_csv(ask->out) || cvy_data_has_suffix(ask->out, ".npy"), CVY_E_ARGUMENT,
              "%s: predictions are written as .npy or .csv", ask->out);
    CVY_CHECK(is_csv(ask->out) || !(ask->header || ask->names), CVY_E_ARGUMENT,
              "%s: a .npy file has no header and no names of samples; write a .csv file", ask->out);
    CVY_CHECK(ask->what == CVY_PREDICT_OUTPUTS || ask->what == CVY_PREDICT_PROBABILITIES ||
                  ask->what == CVY_PREDICT_CLASSES,
              CVY_E_ARGUMENT, "request.what is %d, expected 0 .. 2", (int)ask->what);
    CVY_CHECK(ask->top == 0 || ask->what == CVY_PREDICT_CLASSES, CVY_E_ARGUMENT,
              "a number of best classes is given, but classes are not asked for");
    if (ask->what == CVY_PREDICT_OUTPUTS)
        return CVY_OK;
    CVY_CHECK(nclasses > 1, CVY_E_CONFIG, "%s was trained on numbers, so it gives no classes and no probabilities",
              ask->target);
    CVY_CHECK(sample->ndim <= 1 && (elems >= nclasses || is_single(elems, nclasses)), CVY_E_CONFIG,
              "the output of %s is %s for each sample, which is not one number for each of %lld classes", ask->target,
              cvy_shape_text(sample), (long long)nclasses);
    CVY_CHECK(ask->top >= 0 && ask->top <= nclasses, CVY_E_ARGUMENT, "the %lld best of %lld classes are asked for",
              (long long)ask->top, (long long)nclasses);
    return CVY_OK;
}

/* ---- the head ---- */

/* The header of NumPy's format, version 1.0: magic, length of the header, and a Python dict, padded so that all is 128
 * bytes, or 192 or more for many dimensions. */
static void write_npy_head(const cvy_prediction_file *t)
{
    enum { BEFORE = 10, UNIT = 64 };
    const int by_class = t->ask.what == CVY_PREDICT_CLASSES;
    char shape[CVY_NDIM_MAX * 24] = "", dict[BEFORE + UNIT + sizeof shape];
    int n = 0;
    if (by_class)
        n = snprintf(shape, sizeof shape, "%lld", (long long)count_top(&t->ask));
    else if (t->ask.what == CVY_PREDICT_PROBABILITIES)
        n = snprintf(shape, sizeof shape, "%lld", (long long)t->nclasses);
    else if (t->sample.ndim == 0)
        n = snprintf(shape, sizeof shape, "1");
    for (int i = 0; n == 0 && i < t->sample.ndim; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", i ? ", " : "",
                 (long long)t->sample.dim[i]);
    int bytes = snprintf(dict, sizeof dict, "{'descr': '<%s4', 'fortran_order': False, 'shape': (%lld, %s), }",
                         by_class ? "i" : "f", (long long)t->rows, shape);
    const int whole = (BEFORE + bytes + 1 + UNIT - 1) / UNIT * UNIT, padded = CVY_MAX(whole, 2 * UNIT) - BEFORE;
    fwrite("\x93NUMPY\x01\x00", 1, 8, t->file.stream);
    fputc(padded & 255, t->file.stream);
    fputc(padded >> 8, t->file.stream);
    fwrite(dict, 1, (size_t)bytes, t->file.stream);
    for (; bytes < padded - 1; bytes++)
        fputc(' ', t->file.stream);
    fputc('\n', t->file.stream);
}

/* Writes a text as a field of CSV: in quotes if it has a character that CSV uses itself. */
static void write_text(FILE *file, const char *text)
{
    const int plain = strpbrk(text, ",\"\n\r") == NULL;
    if (!plain)
        fputc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', file);
        fputc(*text, file);
    }
    if (!plain)
        fputc('"', file);
}

static void write_class(const cvy_prediction_file *t, int64_t label)
{
    if (t->class_name && label >= 0)
        write_text(t->file.stream, t->class_name[label]);
    else if (label >= 0)
        fprintf(t->file.stream, "%lld", (long long)label);
}

static void write_csv_head(const cvy_prediction_file *t)
{
    FILE *file = t->file.stream;
    const int64_t top = count_top(&t->ask), columns = t->ask.what == CVY_PREDICT_PROBABILITIES ? t->nclasses : t->elems;
    if (t->ask.names)
        fprintf(file, "sample,");
    if (t->ask.what == CVY_PREDICT_CLASSES) {
        for (int64_t k = 1; k <= top; k++)
            fprintf(file, "class_%lld,probability_%lld%s", (long long)k, (long long)k, k < top ? "," : "\n");
        return;
    }
    for (int64_t k = 0; k < columns; k++) {
        if (t->nclasses == columns)
            write_class(t, k);
        else
            fprintf(file, "output_%lld", (long long)k);
        fputc(k + 1 < columns ? ',' : '\n', file);
    }
}

cvy_status cvy_prediction_file_begin(cvy_prediction_file *t)
{
    t->is_csv = is_csv(t->ask.out);
    t->elems = cvy_shape_elems(&t->sample);
    CVY_TRY(cvy_mem_alloc(sizeof *t->probability * (size_t)CVY_MAX(t->nclasses, 1), &t->probability));
    CVY_TRY(cvy_mem_alloc(sizeof *t->best * (size_t)CVY_MAX(t->nclasses, 1), &t->best));
    CVY_TRY(cvy_file_temporary_open(t->ask.out, &t->file));
    if (!t->is_csv)
        write_npy_head(t);
    else if (t->ask.header)
        write_csv_head(t);
    return CVY_OK;
}

/* ---- rows ---- */

/* Softmax in f64, after the largest logit is subtracted, so that no exponential overflows. Outputs beyond the classes
 * belong to no class and are left out. */
static void find_probabilities(const cvy_prediction_file *t, const float *output, int is_bad)
{
    double largest = -INFINITY, sum = 0, *p = t->probability;
    for (int64_t k = 0; k < t->nclasses; k++) {
        p[k] = is_single(t->elems, t->nclasses) ? (k == 1 ? output[0] : 0) : output[k];
        largest = fmax(largest, p[k]);
    }
    for (int64_t k = 0; k < t->nclasses; k++)
        sum += p[k] = exp(p[k] - largest);
    for (int64_t k = 0; k < t->nclasses; k++)
        p[k] = is_bad ? NAN : p[k] / sum;
}

/* Sorts the first `top` classes by probability; of equal ones the first comes first. */
static void find_best(const cvy_prediction_file *t, int64_t top)
{
    for (int64_t k = 0; k < t->nclasses; k++)
        t->best[k] = (int32_t)k;
    for (int64_t i = 0; i < top; i++) {
        int64_t at = i;
        for (int64_t k = i + 1; k < t->nclasses; k++)
            if (t->probability[t->best[k]] > t->probability[t->best[at]])
                at = k;
        const int32_t chosen = t->best[at];
        memmove(t->best + i + 1, t->best + i, sizeof *t->best * (size_t)(at - i));
        t->best[i] = chosen;
    }
}

static void write_classes(const cvy_prediction_file *t, int is_bad)
{
    const int64_t top = count_top(&t->ask);
    find_best(t, top);
    for (int64_t i = 0; i < top; i++) {
        const int32_t label = is_bad ? -1 : t->best[i];
        if (!t->is_csv) {
            fwrite(&label, sizeof label, 1, t->file.stream);
            continue;
        }
        write_class(t, label);
        fprintf(t->file.stream, ",%.9g%c", t->probability[t->best[i]], i + 1 < top ? ',' : '\n');
    }
}

static void write_number(const cvy_prediction_file *t, float value, int is_last)
{
    if (t->is_csv)
        fprintf(t->file.stream, "%.9g%c", value, is_last ? '\n' : ',');
    else
        fwrite(&value, sizeof value, 1, t->file.stream);
}

static void write_row(const cvy_prediction_file *t, const float *output, int is_bad)
{
    if (t->ask.what != CVY_PREDICT_OUTPUTS)
        find_probabilities(t, output, is_bad);
    if (t->ask.what == CVY_PREDICT_CLASSES)
        write_classes(t, is_bad);
    for (int64_t k = 0; t->ask.what == CVY_PREDICT_PROBABILITIES && k < t->nclasses; k++)
        write_number(t, (float)t->probability[k], k + 1 == t->nclasses);
    for (int64_t k = 0; t->ask.what == CVY_PREDICT_OUTPUTS && k < t->elems; k++)
        write_number(t, is_bad ? NAN : output[k], k + 1 == t->elems);
}

cvy_status cvy_prediction_file_add(cvy_prediction_file *t, const float *output, const uint8_t *is_bad, int64_t n)
{
    char name[1024];
    for (int64_t i = 0; i < n; i++, t->written++) {
        if (t->ask.names) {
            cvy_dataset_where(t->data, t->written, name, sizeof name);
            write_text(t->file.stream, name);
            fputc(',', t->file.stream);
        }
        write_row(t, output + i * t->elems, is_bad[i]);
    }
    CVY_CHECK(!ferror(t->file.stream), CVY_E_IO, "%s: %s", t->file.path, strerror(errno));
    return CVY_OK;
}

cvy_status cvy_prediction_file_end(cvy_prediction_file *t, cvy_status status)
{
    if (t->file.stream && status == CVY_OK)
        status = cvy_file_temporary_commit(&t->file);
    else if (t->file.stream)
        cvy_file_temporary_drop(&t->file);
    cvy_mem_free(&t->probability);
    cvy_mem_free(&t->best);
    return status;
}
