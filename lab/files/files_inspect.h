/*
 * files_inspect.h: what `convoy inspect` says about the samples of a data set.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_FILES_INSPECT_H
#define CVY_FILES_INSPECT_H

#include "base/text/base_text.h"
#include "data/data.h"

/* Lists the classes by name. count: the number of samples of each class; NULL: unknown. */
void cvy_inspect_classes(const cvy_dataset_info *info, const int64_t *count, cvy_text *t);
/* Reads all samples as they are stored, with pictures as 0 to 255. Adds the counts of classes, and mean, standard
 * deviation, minimum and maximum for each channel, or column, of x and y. */
cvy_status cvy_inspect_values(cvy_dataset *d, cvy_text *t);

#endif
