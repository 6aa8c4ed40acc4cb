/*
 * score_prediction_file.c: makes the rows of a file of predictions: outputs, probabilities or classes. See
 * score_prediction_file.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "score/score_prediction_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- checks ---- */

static const cvy_prediction_format *find_format(const char *path)
{
    static const struct {
        const char *suffix;
        const cvy_prediction_format *format;
    } known[] = {{".csv", &cvy_prediction_csv},   {".npy", &cvy_prediction_npy},   {".h5", &cvy_prediction_hdf5},
                 {".hdf5", &cvy_prediction_hdf5}, {".nc", &cvy_prediction_netcdf}, {".nc4", &cvy_prediction_netcdf}};
    for (int i = 0; i < CVY_COUNT(known); i++)
        if (cvy_data_has_suffix(path, known[i].suffix))
            return known[i].format;
    return NULL;
}

static cvy_status check_format(const cvy_predict_request *ask, const cvy_ensemble *e)
{
    const cvy_prediction_format *format = find_format(ask->out);
    CVY_CHECK(format, CVY_E_ARGUMENT, "%s: predictions are written as .csv, .npy, .h5 or .nc", ask->out);
    CVY_CHECK(format == &cvy_prediction_csv || !ask->header, CVY_E_ARGUMENT,
              "%s: only a .csv file has a header: write one, or leave the header out", ask->out);
    CVY_CHECK(format != &cvy_prediction_npy || !ask->names, CVY_E_ARGUMENT,
              "%s: a .npy file has no names of samples: write a .csv, .h5 or .nc file", ask->out);
    CVY_CHECK(format != &cvy_prediction_npy || e->nanswer == 1, CVY_E_ARGUMENT,
              "%s: a .npy file holds one output, and %d are asked for%s: write a .h5, .nc or .csv file", ask->out,
              e->nanswer, e->nanswer_each > 1 ? " (an ensemble, or passes with dropout, also give their spread)" : "");
    return CVY_OK;
}

cvy_status cvy_prediction_file_check(const cvy_predict_request *ask, const cvy_ensemble *e)
{
    const cvy_network *network = e->member[0].network;
    const cvy_shape *sample = &network->output[0].shape;
    const int64_t elems = cvy_shape_elems(sample), nclasses = network->spec.data.nclasses;
    CVY_TRY(check_format(ask, e));
    CVY_CHECK(ask->what == CVY_PREDICT_OUTPUTS || ask->what == CVY_PREDICT_PROBABILITIES ||
                  ask->what == CVY_PREDICT_CLASSES,
              CVY_E_ARGUMENT, "request.what is %d, expected 0 .. 2", (int)ask->what);
    CVY_CHECK(ask->top == 0 || ask->what == CVY_PREDICT_CLASSES, CVY_E_ARGUMENT,
              "a number of best classes is given, but classes are not asked for");
    if (ask->what == CVY_PREDICT_OUTPUTS)
        return CVY_OK;
    if (e->in_place)
        return CVY_OK;
    CVY_CHECK(nclasses != 0 || network->output[0].kind != CVY_OUTPUT_YES_LOGITS, CVY_E_CONFIG,
              "each number of the output of %s is a yes or no, so it has no list of classes: ask for probabilities",
              ask->target);
    CVY_CHECK(
        nclasses > 1 || network->spec.knows_training, CVY_E_CONFIG,
        "%s does not say whether its output %s has classes: it does not end with softmax, log_softmax or sigmoid; "
        "ask for its outputs as they are",
        ask->target, network->output[0].of);
    CVY_CHECK(nclasses > 1, CVY_E_CONFIG, "%s was trained on numbers, so it gives no classes and no probabilities",
              ask->target);
    CVY_CHECK(network->noutput == 1, CVY_E_ARGUMENT,
              "classes and probabilities are those of one output, and %d are asked for", network->noutput);
    CVY_CHECK(network->output[0].kind != CVY_OUTPUT_VALUES, CVY_E_CONFIG,
              "the output %s of %s has values, which are neither logits nor probabilities of its classes",
              network->output[0].of, ask->target);
    CVY_CHECK(sample->ndim <= 1 && (elems >= nclasses || cvy_is_single_logit(elems, nclasses)), CVY_E_CONFIG,
              "the output of %s is %s for each sample, which is not one number for each of %lld classes", ask->target,
              cvy_shape_text(sample), (long long)nclasses);
    CVY_CHECK(e->by_class || e->nanswer_each == 1, CVY_E_ARGUMENT,
              "the spread of classes is that of the main output: leave out the names of outputs");
    CVY_CHECK(ask->top >= 0 && ask->top <= nclasses, CVY_E_ARGUMENT, "the %lld best of %lld classes are asked for",
              (long long)ask->top, (long long)nclasses);
    return CVY_OK;
}

/* ---- opening ---- */

static cvy_status add_set(cvy_prediction_file *t, const cvy_answer *a)
{
    const int several = t->ensemble->member[0].network->noutput > 1;
    cvy_prediction_set *set = &t->set[t->nset++];
    char *name = NULL;
    *set = (cvy_prediction_set){a->name, a->shape, a->elems, a->by_class, a->name, a->of != NULL};
    if (a->of) {
        CVY_TRY(cvy_pool_printf(t->pool, &name, "%s_%s", a->name, a->of));
        set->name = name;
        set->column = several ? name : a->of;
    } else if (!several && !t->ensemble->by_class) {
        set->column = a->by_class ? NULL : "output";
    }
    return CVY_OK;
}

/* Probabilities are columns of classes, and those of one answer are made here from its logits. */
static cvy_status list_sets(cvy_prediction_file *t)
{
    const cvy_ensemble *e = t->ensemble;
    const int names_classes = t->ask.what == CVY_PREDICT_CLASSES,
              of_logits = !e->by_class && !e->in_place && t->ask.what;
    t->nlabel = names_classes ? CVY_MAX(t->ask.top, 1) : 0;
    if (!names_classes && (e->by_class || of_logits))
        t->set[t->nset++] = (cvy_prediction_set){"probability", {1, {t->nclasses}}, t->nclasses, 1, NULL, 0};
    for (int k = e->by_class ? 1 : 0; k < e->nanswer && !of_logits; k++)
        CVY_TRY(add_set(t, &e->answer[k]));
    return CVY_OK;
}

cvy_status cvy_prediction_file_begin(cvy_prediction_file *t)
{
    const cvy_network_spec *spec = &t->ensemble->member[0].network->spec;
    int64_t elems = 1;
    t->nclasses = spec->data.nclasses;
    t->class_name = spec->data.class_name;
    t->rows = t->ensemble->member[0].nsamples;
    t->format = find_format(t->ask.out);
    CVY_TRY(cvy_pool_create(&t->pool));
    CVY_TRY(list_sets(t));
    for (int k = 0; k < t->nset; k++)
        elems = CVY_MAX(elems, t->set[k].elems);
    CVY_TRY(cvy_mem_alloc(sizeof *t->number * (size_t)elems, &t->number));
    CVY_TRY(cvy_mem_alloc(sizeof *t->probability * (size_t)CVY_MAX(t->nclasses, 1), &t->probability));
    CVY_TRY(cvy_mem_alloc(sizeof *t->share * (size_t)CVY_MAX(t->nlabel, 1), &t->share));
    CVY_TRY(cvy_mem_alloc(sizeof *t->best * (size_t)CVY_MAX(t->nclasses, 1), &t->best));
    return t->format->begin(t);
}

/* ---- rows ---- */

/* Sorts the first classes by probability; of equal ones the first comes first. */
static void find_best(const cvy_prediction_file *t)
{
    for (int64_t k = 0; k < t->nclasses; k++)
        t->best[k] = (int32_t)k;
    for (int64_t i = 0; i < t->nlabel; i++) {
        int64_t at = i;
        for (int64_t k = i + 1; k < t->nclasses; k++)
            if (t->probability[t->best[k]] > t->probability[t->best[at]])
                at = k;
        const int32_t chosen = t->best[at];
        memmove(t->best + i + 1, t->best + i, sizeof *t->best * (size_t)(at - i));
        t->best[i] = chosen;
        t->share[i] = t->probability[chosen];
    }
}

static void fill_nan(float *number, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        number[k] = NAN;
}

/* A skipped sample has NaN for its numbers, and no class. */
static void make_bad(cvy_prediction_file *t, cvy_prediction_row *row)
{
    for (int k = 0; k < t->nset; k++) {
        fill_nan(t->number, t->set[k].elems);
        row->value[k] = t->number;
    }
    for (int64_t i = 0; i < t->nlabel; i++) {
        t->best[i] = -1;
        t->share[i] = NAN;
    }
}

/* The probabilities of the classes of row `at`: those of the ensemble, or made from the logits of one network. */
static void find_probabilities(cvy_prediction_file *t, const float *const *answer, int64_t at)
{
    const cvy_ensemble *e = t->ensemble;
    const float *first = answer[0] + at * e->answer[0].elems;
    if (!e->by_class)
        cvy_class_probabilities(first, e->answer[0].elems, t->nclasses,
                                e->is_calibrated ? e->member[0].network->spec.temperature : 0, t->probability);
    for (int64_t k = 0; k < t->nclasses && e->by_class; k++)
        t->probability[k] = first[k];
    for (int64_t k = 0; k < t->nclasses && t->nlabel == 0; k++)
        t->number[k] = (float)t->probability[k];
}

static void make_good(cvy_prediction_file *t, const float *const *answer, int64_t at, cvy_prediction_row *row)
{
    const cvy_ensemble *e = t->ensemble;
    const int gives_classes = e->by_class || (t->ask.what != CVY_PREDICT_OUTPUTS && !e->in_place),
              skipped = t->nlabel > 0;
    if (gives_classes)
        find_probabilities(t, answer, at);
    if (t->nlabel > 0)
        find_best(t);
    for (int k = 0; k < t->nset; k++)
        row->value[k] = gives_classes && k == 0 && !skipped ? t->number : answer[k + skipped] + at * t->set[k].elems;
}

cvy_status cvy_prediction_file_add(cvy_prediction_file *t, const float *const *answer, const uint8_t *is_bad, int64_t n)
{
    char name[1024];
    for (int64_t i = 0; i < n; i++) {
        cvy_prediction_row row = {.number = t->written, .label = t->best, .share = t->share};
        if (is_bad[i])
            make_bad(t, &row);
        else
            make_good(t, answer, i, &row);
        if (t->ask.names) {
            cvy_dataset_where(t->ensemble->member[0].data, t->written, name, sizeof name);
            row.name = name;
        }
        CVY_TRY(t->format->row(t, &row));
        t->written++;
    }
    char why[CVY_WRITE_WHY];
    const int reason = errno;
    CVY_CHECK(!t->file.stream || !ferror(t->file.stream), CVY_E_IO, "%s: cannot write: %s", t->file.path,
              cvy_write_why(fileno(t->file.stream), reason, why));
    return CVY_OK;
}

cvy_status cvy_prediction_file_end(cvy_prediction_file *t, cvy_status status)
{
    if (t->file.stream && status == CVY_OK)
        status = cvy_file_temporary_commit(&t->file);
    else if (t->file.stream)
        cvy_file_temporary_drop(&t->file);
    status = cvy_h5_table_end(&t->table, status);
    cvy_mem_free(&t->number);
    cvy_mem_free(&t->probability);
    cvy_mem_free(&t->share);
    cvy_mem_free(&t->best);
    cvy_text_free(&t->mixed);
    cvy_pool_destroy(&t->pool);
    return status;
}
