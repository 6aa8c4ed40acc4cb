/*
 * data_split.h: which samples of the training data are set aside for validation: data.val of the job.
 *
 * A split is computed once from the source, the job's words and the seed, so it is the same on every rank and after
 * every start. data_split_choose.c chooses whole groups.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_SPLIT_H
#define CVY_DATA_SPLIT_H

#include "base/text/base_samples.h"
#include "base/text/base_text.h"
#include "data/data.h"

enum { CVY_SIDE_TRAIN, CVY_SIDE_VAL, CVY_SIDE_NONE };
typedef struct cvy_split {
    int64_t n;
    uint8_t *side; /* [n] */
} cvy_split;       /* {0} is empty */

/* Decides for each sample of d. Adds lines to notes that say what was done, unless it is NULL. Errors: CVY_E_CONFIG if
 * a side stays empty, a sample has no group, or there is one group only. */
cvy_status cvy_split_make(cvy_dataset *d, const cvy_split_spec *spec, uint64_t seed, cvy_text *notes, cvy_split *out);
void cvy_split_free(cvy_split *s);
/* The samples of d on this side. d stays open and is borrowed; side is not needed any more. */
cvy_status cvy_dataset_side(cvy_dataset *d, const cvy_split *s, int side, cvy_dataset **out);

/* Counts the groups of b, and those that a has, too, by the option `group` of both sources. shared_out: the first one.
 * *n_out 0: a source has no such option. */
cvy_status cvy_dataset_shared_groups(const cvy_dataset *a, const cvy_dataset *b, int64_t *n_out, int64_t *nshared_out,
                                     char shared_out[80]);

/* ---- choosing groups (data_split_choose.c) ---- */

/* Chooses groups whose samples are as near as possible to the share, of each class and in all. group, label: [n];
 * key: [ngroup], hashes that decide between equally good choices, and with which a choice begins. in_out: [ngroup], 1:
 * chosen. At least one group is chosen, and one is not. */
cvy_status cvy_split_choose(const int32_t *group, const int32_t *label, int64_t n, int64_t ngroup, int64_t nclasses,
                            const uint64_t *key, double share, uint8_t *in_out);

#endif
