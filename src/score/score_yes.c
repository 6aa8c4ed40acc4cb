/*
 * score_yes.c: see score_yes.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "score/score_yes.h"

static cvy_status allocate(cvy_score_yes *yes, int64_t numbers)
{
    const size_t n = (size_t)CVY_MAX(numbers, 1);
    CVY_TRY(cvy_bytes_need(&yes->logits, 2 * n * sizeof(double)));
    CVY_TRY(cvy_bytes_need(&yes->label, 2 * n * sizeof(int32_t)));
    CVY_TRY(cvy_bytes_need(&yes->weight, 2 * n * sizeof(double)));
    return cvy_bytes_need(&yes->probability, n * sizeof(double));
}

static cvy_status fill_number(cvy_score_yes *yes, int64_t at, double logit, double target, double weight)
{
    CVY_CHECK(weight == 0 || (target >= 0 && target <= 1), CVY_E_FORMAT,
              "target %g, expected a number from 0 (no) to 1 (yes)", target);
    for (int is_yes = 0; is_yes < 2; is_yes++) {
        const double share = is_yes ? target : 1 - target;
        ((double *)yes->logits.data)[2 * at + is_yes] = logit;
        ((int32_t *)yes->label.data)[2 * at + is_yes] = is_yes;
        ((double *)yes->weight.data)[2 * at + is_yes] = weight == 0 ? 0 : weight * share;
    }
    ((double *)yes->probability.data)[at] = cvy_sigmoid(logit);
    return CVY_OK;
}

cvy_status cvy_score_yes_fill(cvy_score_yes *yes, const cvy_metric_rows *rows)
{
    const int64_t numbers = rows->output->elems, each = rows->n > 0 ? numbers / rows->n : 0;
    CVY_CHECK(rows->target->elems == numbers, CVY_E_SHAPE, "%lld targets for %lld numbers that are a yes or no each",
              (long long)rows->target->elems, (long long)numbers);
    CVY_TRY(allocate(yes, numbers));
    for (int64_t i = 0; i < numbers; i++) {
        const cvy_status status = fill_number(yes, i, cvy_get(rows->output, i), cvy_get(rows->target, i),
                                              cvy_rows_weight(rows, i / each, i % each));
        if (status != CVY_OK)
            return cvy_error_prefix(status, "row %lld of the batch", (long long)(i / each));
    }
    yes->rows_each = 2 * each;
    yes->output = (cvy_span){
        .dtype = CVY_DTYPE_F64, .ndim = 2, .dim = {2 * numbers, 1}, .elems = 2 * numbers, .data = yes->logits.data};
    yes->target = (cvy_span){
        .dtype = CVY_DTYPE_I32, .ndim = 1, .dim = {2 * numbers}, .elems = 2 * numbers, .data = yes->label.data};
    yes->numbers = *rows->output;
    yes->numbers.dtype = CVY_DTYPE_F64;
    yes->numbers.data = yes->probability.data;
    yes->of_labels = (cvy_metric_rows){
        .n = 2 * numbers, .output = &yes->output, .target = &yes->target, .weight = yes->weight.data, .weight_each = 1};
    yes->of_numbers = *rows;
    yes->of_numbers.output = &yes->numbers;
    return CVY_OK;
}

cvy_status cvy_score_yes_add(const cvy_score_yes *yes, cvy_metric *metric, int64_t first, int64_t n)
{
    if (cvy_metric_wants_labels(metric))
        return cvy_metric_add_part(metric, &yes->of_labels, first * yes->rows_each, n * yes->rows_each);
    return cvy_metric_add_part(metric, &yes->of_numbers, first, n);
}

void cvy_score_yes_free(cvy_score_yes *yes)
{
    cvy_mem_free(&yes->logits.data);
    cvy_mem_free(&yes->label.data);
    cvy_mem_free(&yes->weight.data);
    cvy_mem_free(&yes->probability.data);
}
