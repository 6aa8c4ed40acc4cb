/*
 * data_where.h: simple conditions on the numbers that belong to a sample: "met > 50 and (njet >= 2 or not loose)".
 *
 * Readers with named columns evaluate a condition once, when they make their index. It compares names and numbers by <
 * <= > >= == !=, also in chains (0 < x <= 1); comparisons are joined by and, or, not and brackets. A name alone is true
 * if its number is not 0. Names with characters other than letters, digits, _ . / need quotes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_WHERE_H
#define CVY_DATA_WHERE_H

#include "base/base_mem.h"

typedef struct cvy_where cvy_where;

/* All memory is in pool. CVY_E_CONFIG on a mistake; the message shows its place. */
cvy_status cvy_where_parse(cvy_pool *pool, const char *text, cvy_where **out);
int cvy_where_name_count(const cvy_where *w);
const char *cvy_where_name(const cvy_where *w, int i);
/* value: one number for each name. Comparisons with a NaN are false, except !=. */
int cvy_where_holds(const cvy_where *w, const double *value);

#endif
