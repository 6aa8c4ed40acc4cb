/*
 * report_published.h: figures that others have published.
 *
 * published.csv has a line for each statement: study, system, framework, network, metric, setting, kind, value, unit.
 * The kind is "exact", "about", or "bounds" for a range low..high.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_REPORT_PUBLISHED_H
#define CVY_REPORT_PUBLISHED_H

#include "base/text/base_text.h"
#include "base/text/base_tree.h"

typedef struct cvy_published {
    const char *study, *system, *framework, *network, *metric, *setting, *unit;
    int is_about;
    double low, high;       /* the same number twice if it is no range; NaN if it is no number */
    const char *value_text; /* "1.4 to 3.7", "about 125" */
} cvy_published;

typedef struct cvy_published_list {
    cvy_published *row;
    int n;
} cvy_published_list;

/* Reads the rows of these studies (names with spaces between them), or of all if it is NULL, from the text of such a
 * file. Lines that have too few columns are left out. All of it is in the pool. */
cvy_status cvy_published_read(cvy_pool *pool, const char *text, const char *studies, cvy_published_list *out);

#endif
