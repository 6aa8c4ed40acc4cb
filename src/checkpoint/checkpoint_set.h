/*
 * checkpoint_set.h: names of the files within a set, and the list of sets in a folder; used for saving and for finding.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CHECKPOINT_SET_H
#define CVY_CHECKPOINT_SET_H

#include "base/base_mem.h"

/* Stems of tensor files: "weights.safetensors", or "weights-00001-of-00004.safetensors" and so on if several ranks have
 * written. */
#define CVY_SET_WEIGHTS "weights"
#define CVY_SET_STATES "state"
#define CVY_SET_PENDING "pending"
#define CVY_TENSOR_FILE ".safetensors"
#define CVY_SET_STATE "state.json"
#define CVY_SET_PLAN "plan.json"

typedef enum {
    CVY_SET_WHOLE,    /* "step-00001234": complete by construction */
    CVY_SET_REPLACED, /* "step-00001234.replaced": a new set of the same step was being put in its place; complete too
                       */
    CVY_SET_PARTIAL,  /* "step-00001234.aside": being written, or being deleted */
} cvy_set_kind;

typedef struct cvy_set {
    char *name, *path;
    int64_t step;
    cvy_set_kind kind;
} cvy_set;

/* Parses the number in "step-1234" and the kind. Returns 0 if the name is not the name of a set. */
int cvy_set_parse(const char *name, int64_t *step_out, cvy_set_kind *kind_out);
cvy_status cvy_set_name(cvy_pool *pool, int64_t step, char **name_out);
/* All sets in dir, newest first; of the same step WHOLE before REPLACED before PARTIAL. A missing folder has no sets.
 */
cvy_status cvy_set_list(cvy_pool *pool, const char *dir, cvy_set **sets_out, int64_t *count_out);
/* Checks the set's files against its manifest. */
cvy_status cvy_set_verify(const cvy_set *set);
/* Paths of the files of a stem in a set's folder, in the order of their parts; *count_out is 0 if there are none. */
cvy_status cvy_set_files(cvy_pool *pool, const char *path, const char *stem, const char ***paths_out, int *count_out);
/* Name of the set that dir/best names, or NULL. */
cvy_status cvy_set_best(cvy_pool *pool, const char *dir, char **name_out);

#endif
