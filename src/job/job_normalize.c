/*
 * job_normalize.c: interprets the key data.normalize: `auto`, `none`, or numbers, which become the last operation of
 * data.augment. session/session_normalize.c computes the numbers for `auto`.
 */
#include <string.h>

#include "job/job_table.h"

/* Sets data.steps to data.augment with the normalisation as one more operation at its end. */
static cvy_status append(cvy_job *job, const cvy_tree *values)
{
    cvy_pool *pool = job->pool;
    cvy_tree *list = NULL, *item = NULL, *copy = NULL, **child = NULL;
    if (job->data.augment)
        CVY_TRY(cvy_tree_copy(pool, job->data.augment, &list));
    else
        CVY_TRY(cvy_tree_parse_text(pool, "data.augment", "[]", 2, &list));
    CVY_TRY(cvy_tree_new_map(pool, values->file, &item));
    CVY_TRY(cvy_tree_copy(pool, values, &copy));
    CVY_TRY(cvy_tree_set(pool, item, "normalize", copy));
    CVY_TRY(cvy_pool_alloc(pool, (size_t)(list->count + 1) * sizeof(cvy_tree *), &child));
    for (int i = 0; i < list->count; i++)
        child[i] = list->child[i];
    child[list->count++] = item;
    list->child = child;
    job->data.steps = list;
    return CVY_OK;
}

cvy_status cvy_job_interpret_normalize(cvy_job *job)
{
    struct cvy_job_data *d = &job->data;
    const cvy_tree *n = d->normalize;
    const int is_word = n && n->kind == CVY_TREE_SCALAR;
    d->steps = d->augment;
    d->normalize_auto = is_word && strcmp(n->text ? n->text : "", "auto") == 0;
    if (is_word && strcmp(n->text ? n->text : "", "none") == 0)
        d->normalize = n = NULL;
    if (!n || d->normalize_auto)
        return CVY_OK;
    CVY_CHECK(n->kind == CVY_TREE_MAP, CVY_E_CONFIG,
              "%s: data.normalize is neither auto, none nor a map {mean: [..], std: [..]}", cvy_tree_where(n));
    return append(job, n);
}
