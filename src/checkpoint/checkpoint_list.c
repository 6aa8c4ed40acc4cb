/*
 * checkpoint_list.c: cvy_checkpoint_list(): the sets in a folder, for programs that choose one or show them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/checkpoint.h>

#include "base/base_entry.h"
#include "base/base_opts.h"
#include "checkpoint/checkpoint_set.h"

/* The size of the struct's first version; without `owned` the caller could not release what it is given. */
#define ENTRIES_FIRST_SIZE (offsetof(cvy_checkpoint_entries, owned) + sizeof(void *))

/* A set of which there is a newer copy of the same step is left out: it is about to be deleted. */
static int is_listed(const cvy_set *sets, int64_t i)
{
    return sets[i].kind == CVY_SET_WHOLE ||
           (sets[i].kind == CVY_SET_REPLACED && (i == 0 || sets[i - 1].step != sets[i].step));
}

static cvy_status list(cvy_pool *pool, const char *folder, int check, cvy_checkpoint_entries *out)
{
    cvy_checkpoint_entry *at = NULL;
    cvy_set *sets = NULL;
    char *best = NULL, *name = NULL;
    int64_t nsets = 0, best_step = -1;
    cvy_set_kind kind = CVY_SET_WHOLE;
    CVY_TRY(cvy_set_list(pool, folder, &sets, &nsets));
    CVY_TRY(cvy_set_best(pool, folder, &best));
    if (best && !cvy_set_parse(best, &best_step, &kind))
        best_step = -1;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *at * (size_t)(nsets + 1), &at));
    for (int64_t i = 0; i < nsets; i++) {
        if (!is_listed(sets, i))
            continue;
        const cvy_status valid = check ? cvy_set_verify(&sets[i]) : CVY_OK;
        if (valid == CVY_E_MEMORY)
            return valid;
        CVY_TRY(cvy_set_name(pool, sets[i].step, &name));
        at[out->count++] = (cvy_checkpoint_entry){.name = name,
                                                  .step = sets[i].step,
                                                  .is_best = sets[i].step == best_step,
                                                  .is_valid = check ? valid == CVY_OK : -1};
    }
    out->at = at;
    return CVY_OK;
}

cvy_status cvy_checkpoint_list(const char *folder, int check, cvy_checkpoint_entries *entries_out)
{
    CVY_ENTRY();
    cvy_checkpoint_entries own = cvy_checkpoint_entries_default();
    cvy_pool *pool = NULL;
    CVY_CHECK(folder && entries_out, CVY_E_ARGUMENT,
              "cvy_checkpoint_list() needs a folder and a place for what it finds");
    CVY_TRY(CVY_RESULT_CHECK(cvy_checkpoint_entries, entries_out));
    CVY_CHECK(entries_out->size >= ENTRIES_FIRST_SIZE, CVY_E_ARGUMENT,
              "the size of cvy_checkpoint_entries is %zu, and its first version had %zu", entries_out->size,
              ENTRIES_FIRST_SIZE);
    CVY_TRY(cvy_pool_create(&pool));
    const cvy_status status = list(pool, folder, check, &own);
    if (status == CVY_OK) {
        own.owned = pool;
        cvy_result_write(entries_out, &own, sizeof own);
    } else
        cvy_pool_destroy(&pool);
    return status;
}

void cvy_checkpoint_entries_release(cvy_checkpoint_entries *entries)
{
    CVY_ENTRY();
    const cvy_checkpoint_entries empty = {0};
    if (entries->size < ENTRIES_FIRST_SIZE)
        return;
    cvy_pool *pool = entries->owned;
    cvy_pool_destroy(&pool);
    cvy_result_write(entries, &empty, sizeof empty);
}
