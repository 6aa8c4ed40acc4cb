/*
 * base_samples.h: what a job says of its samples: in which order they come, and which are set aside for validation.
 * src/job reads the words, and src/data carries them out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_SAMPLES_H
#define CVY_BASE_SAMPLES_H

#include <stdint.h>

typedef enum cvy_shuffle { /* checkpoints store these values */
                           CVY_SHUFFLE_NONE = 0,
                           CVY_SHUFFLE_ALL = 1,
                           CVY_SHUFFLE_WINDOW = 2
} cvy_shuffle;

/* Which samples are set aside. */
enum { CVY_SPLIT_DRAWN, CVY_SPLIT_LAST, CVY_SPLIT_FIRST };
/* Of groups that are dates: what is one group. */
enum { CVY_SPLIT_BY_VALUE, CVY_SPLIT_BY_DAY, CVY_SPLIT_BY_MONTH, CVY_SPLIT_BY_YEAR };

typedef struct cvy_split_spec { /* {0} is none */
    double share;               /* of the samples */
    int where, by;
    /* Groups of samples that stay together, of a drawn share: the values that the source's option `group` names,
     * whose name is `group`; or what a pattern, a POSIX extended regular expression, finds in their paths. NULL: none
     */
    const char *group, *pattern;
    const char
        *order;  /* of a share at an end: the values of the same option, which order the samples. NULL: the source */
    int64_t gap; /* of a share at an end: samples between the two that are left out */
} cvy_split_spec;

#endif
