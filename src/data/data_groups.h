/*
 * data_groups.h: samples that belong together, such as those of one patient: the value of each sample in a column, a
 * data set or a pattern of its path.
 *
 * A reader lists the values when data.val asks for it; data_split.c decides where each group goes. Values are compared
 * as text: numbers in one form, so that 7, 7.0 and 007 are the same group.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_GROUPS_H
#define CVY_DATA_GROUPS_H

#include "base/base_index.h"

typedef struct cvy_groups {
    cvy_keys names; /* of the groups, in the order of their first samples */
    int32_t *of;    /* [n]: the group of each sample; -1: it has no value */
    int64_t n, room;
} cvy_groups; /* {0} is empty */

/* Adds the value of the next sample. Blanks at both ends do not count. Empty text, NA, NaN and the like are no value.
 */
cvy_status cvy_groups_add(cvy_groups *g, const char *text, size_t bytes);
cvy_status cvy_groups_add_number(cvy_groups *g, double value);
/* Adds the samples first .. first + n - 1 of other ones. */
cvy_status cvy_groups_append(cvy_groups *g, const cvy_groups *from, int64_t first, int64_t n);
/* Cuts the names, which are dates such as 2019-03-31, after so many characters: groups whose names become the same are
 * one. CVY_E_CONFIG: a name is no date. */
cvy_status cvy_groups_cut_dates(cvy_groups *g, int characters);
void cvy_groups_free(cvy_groups *g);

#endif
