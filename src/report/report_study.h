/*
 * report_study.h: what the parts of the page of a study share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_REPORT_STUDY_H
#define CVY_REPORT_STUDY_H

#include <convoy/experiment.h>

#include "base/text/base_text.h"
#include "experiment/experiment.h"

typedef struct cvy_study_row { /* the measurements of a case on one machine */
    const cvy_study_result_line *first;
    const char *failed; /* why its last measurement failed, if none is good */
    int n;              /* good ones */
    const cvy_study_result_line **line;
} cvy_study_row;

typedef struct cvy_study_page {
    cvy_pool *pool;
    const char *folder;
    cvy_study_spec spec;
    cvy_study_results results;
    cvy_study_row *row;
    int nrow;
    const char *machine; /* whose rows are shown: that of the last line */
    cvy_text html;
} cvy_study_page;

typedef struct cvy_spread {
    double median, low, high;
    int n;
} cvy_spread;

/* Median and range of a number in the results of a row; n is 0 if it has none. */
cvy_spread cvy_study_spread(const cvy_study_row *row, const char *member);
/* The value of an axis, or "". */
const char *cvy_study_value(const cvy_study_row *row, const char *axis);

/* The figures. */
cvy_status cvy_study_figures(cvy_study_page *p);
/* What others have published, from published.csv of the folder. */
cvy_status cvy_study_published(cvy_study_page *p);

#endif
