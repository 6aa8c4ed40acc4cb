/*
 * job_names.c: reads the names of a list in a job file, as one text in which commas separate them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "job/job_table.h"

static void add_word(cvy_text *t, const char *word)
{
    cvy_text_add(t, "%s%s", t->bytes ? ", " : "", word);
}

static cvy_status add_names(const cvy_tree *tree, const cvy_job_names *n, cvy_text *t)
{
    const int is_list = tree->kind == CVY_TREE_LIST, count = is_list ? tree->count : 1;
    CVY_CHECK(is_list ? count > 0 : n->may_be_one && tree->kind == CVY_TREE_SCALAR, CVY_E_CONFIG,
              "%s: %s is %s, expected a list of names, such as %s", cvy_tree_where(tree), n->key,
              is_list      ? "an empty list"
              : tree->text ? tree->text
                           : "a map",
              n->example);
    for (int i = 0; i < count; i++) {
        const cvy_tree *item = is_list ? tree->child[i] : tree;
        CVY_CHECK(item->kind == CVY_TREE_SCALAR && item->text && *item->text, CVY_E_CONFIG,
                  "%s: %s: expected %s, such as %s", cvy_tree_where(item), n->key,
                  n->may_be_one ? "a name or a list of names" : "a name", n->example);
        (n->add ? n->add : add_word)(t, item->text);
    }
    return t->status;
}

cvy_status cvy_job_join_names(cvy_job *job, const cvy_tree *tree, const cvy_job_names *names, const char **out)
{
    cvy_text t = {0};
    char *text = NULL;
    *out = NULL;
    if (cvy_tree_is_null(tree))
        return CVY_OK;
    cvy_status status = add_names(tree, names, &t);
    if (status == CVY_OK)
        status = cvy_pool_strdup(job->pool, t.data ? t.data : "", &text);
    cvy_text_free(&t);
    *out = text;
    return status;
}
