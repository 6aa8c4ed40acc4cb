/*
 * data_where.h: simple conditions on the numbers that belong to a sample: "met > 50 and (njet >= 2 or not loose)".
 *
 * Readers with named columns evaluate them once, while they make their index. A condition compares names and numbers by
 * < <= > >= == !=, also in chains (0 < x <= 1); comparisons are joined by and, or, not and brackets. A name alone holds
 * where its number is not 0. Names with other signs than letters, digits, _ . / stand in quotes.
 */
#ifndef CVY_DATA_WHERE_H
#define CVY_DATA_WHERE_H

#include "base/base_mem.h"

typedef struct cvy_where cvy_where;

/* Everything lives in pool. CVY_E_CONFIG shows the place of a mistake. */
cvy_status cvy_where_parse(cvy_pool *pool, const char *text, cvy_where **out);
int cvy_where_name_count(const cvy_where *w);
const char *cvy_where_name(const cvy_where *w, int i);
/* value: one of each name. Comparisons with a NaN do not hold, but for !=. */
int cvy_where_holds(const cvy_where *w, const double *value);

#endif
