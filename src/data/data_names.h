/*
 * data_names.h: names of classes and of columns: lists of them in messages, and how two lists fit together.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_NAMES_H
#define CVY_DATA_NAMES_H

#include "base/base_mem.h"

enum { CVY_DATA_NAMES_TEXT = 400 };
/* Lists names for a message: the first ones, and how many more there are. Returns text. */
const char *cvy_data_names_text(const char *const *name, int64_t n, char text[CVY_DATA_NAMES_TEXT]);
/* How names b are related to names a. */
typedef enum {
    CVY_DATA_NAMES_OTHER,     /* b has a name that a lacks, or a list has a name twice */
    CVY_DATA_NAMES_SAME,      /* they are the same in the same order */
    CVY_DATA_NAMES_REORDERED, /* they are the same in another order */
    CVY_DATA_NAMES_FEWER      /* b has some of the names of a */
} cvy_data_names;
cvy_status cvy_data_names_relate(const char *const *a, int64_t na, const char *const *b, int64_t nb,
                                 cvy_data_names *out);

#endif
