/* SPDX-License-Identifier: BSD-3-Clause */
/* session_like.h: what the weights were trained on with which a training begins: those of another run, or of its own
 * checkpoint. */
#ifndef CVY_SESSION_LIKE_H
#define CVY_SESSION_LIKE_H

#include "data/data.h"
#include "job/job.h"

typedef struct cvy_session_like {
    const char *from;   /* the run or the file, for messages */
    cvy_data_form form; /* columns and classes are brought into its order; info NULL: it is not known */
    int all_classes;    /* 1: data that have some of its classes get the others, too */
    const cvy_job *job; /* whose normalisation is taken over if this job has none; NULL: none is taken over */
} cvy_session_like;

#endif
