/*
 * data_seen.h: finds exact copies of samples: hashes of the samples that a data set reads, and their comparison over
 * all ranks.
 *
 * What is compared is x as it is stored: the bytes of an encoded picture, or the numbers before augmentation and
 * normalisation. So nothing is read for it; a data set is watched while an epoch or a validation reads it. If there are
 * many samples, those with certain hashes stand for all of them: copies have the same hash.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_SEEN_H
#define CVY_DATA_SEEN_H

#include "data/data_reader.h"

typedef struct cvy_seen cvy_seen;

enum { CVY_SEEN_MAX = 1 << 20 }; /* hashes that are kept, over all ranks: 24 bytes each */

/* nsamples: of all data sets that are compared; it is the same on all ranks, and decides which hashes are kept. */
cvy_status cvy_seen_create(int64_t nsamples, cvy_seen **out);
void cvy_seen_destroy(cvy_seen **s);
/* From now on d notes what it reads, until the comparison. Call it before threads read. s must outlive the reads. */
void cvy_dataset_watch(cvy_dataset *d, cvy_seen *s);
/* Where a sample is stored that was noted by d. */
void cvy_seen_where(const cvy_dataset *d, int64_t number, char *text, size_t room);
/* Notes a whole sample, unless its weight is 0. Out of memory is kept for cvy_seen_compare(). Thread-safe. */
void cvy_seen_note(cvy_seen *s, int64_t number, const cvy_reader_info *info, const cvy_raw *raw);
/* Only a part of a sample was read, so that nothing can be said. */
void cvy_seen_note_part(cvy_seen *s);

typedef struct cvy_copies {
    int64_t every;              /* one of so many samples was looked at */
    int64_t ntrain, nother;     /* samples that were looked at, on all ranks */
    int64_t shared, relabelled; /* of the other set: copies of training samples; those with another label or target */
    int64_t example[2];         /* such a sample, and a training sample: numbers in the sources */
    int64_t within, within_relabelled; /* of the training: copies of earlier samples */
    int64_t within_example[2];         /* the later and the earlier one */
} cvy_copies;
/* Compares the samples that were read for training with those of another data set. Collective; the result is the same
 * on all ranks. CVY_NOT_APPLICABLE: a rank reads parts of samples. */
cvy_status cvy_seen_compare(cvy_comm *comm, cvy_seen *train, cvy_seen *other, cvy_copies *out);

#endif
