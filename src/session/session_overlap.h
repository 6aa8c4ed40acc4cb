/* SPDX-License-Identifier: BSD-3-Clause */
/* session_overlap.h: whether two sources of a job read the same samples. */
#ifndef CVY_SESSION_OVERLAP_H
#define CVY_SESSION_OVERLAP_H

#include "session/session.h"

/* Whether two sources are the same samples: the same path, of which they choose in the same way. Other options say how
 * it is read. */
int cvy_source_is_same(const cvy_tree *a, const cvy_tree *b);
/* Warns of files that two of data.train, data.val and data.test read, also by links, patterns and lists, unless they
 * are known to choose other samples of them. */
cvy_status cvy_session_warn_of_overlap(const cvy_session *s);
/* Warns if groups of the training data are also in `other`, whose sources both have the option `group`. key: that of
 * the other source, such as "val". */
cvy_status cvy_session_note_groups(const cvy_session *s, const char *key, const cvy_tree *source,
                                   const cvy_dataset *other);

#endif
