/*
 * files_job.c: cvy_run_job_print(): a job with all its defaults, as YAML or JSON. Programs of others that train the
 * same job read it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/base_entry.h"
#include "base/text/base_json.h"
#include "base/text/base_tree.h"
#include "files/files.h"
#include "job/job_table.h"
#include "session/session.h"

/* A scalar of YAML has no type: what looks like a number or a truth value is one, unless it is in quotes. */
static void add_scalar(cvy_json *json, const char *key, const cvy_tree *node)
{
    double number = 0;
    int64_t whole = 0;
    int truth = 0;
    if (cvy_tree_is_null(node))
        cvy_json_string(json, key, NULL);
    else if (node->quoted)
        cvy_json_string(json, key, node->text);
    else if (cvy_text_int(node->text, &whole) == CVY_OK)
        cvy_json_int(json, key, whole);
    else if (cvy_text_real(node->text, &number) == CVY_OK)
        cvy_json_real(json, key, number);
    else if (cvy_tree_bool(node, &truth) == CVY_OK)
        cvy_json_bool(json, key, truth);
    else
        cvy_json_string(json, key, node->text);
}

static void add_node(cvy_json *json, const char *key, const cvy_tree *node)
{
    if (node->kind == CVY_TREE_SCALAR) {
        add_scalar(json, key, node);
        return;
    }
    const char bracket = node->kind == CVY_TREE_MAP ? '{' : '[';
    cvy_json_open(json, key, bracket);
    for (int i = 0; i < node->count; i++)
        add_node(json, node->kind == CVY_TREE_MAP ? node->key[i] : NULL, node->child[i]);
    cvy_json_close(json, node->kind == CVY_TREE_MAP ? '}' : ']');
}

static cvy_status print_json(const cvy_tree *root, char **text_out)
{
    cvy_json json = {0};
    add_node(&json, NULL, root);
    cvy_text_add(&json.text, "\n");
    return cvy_text_take(&json.text, text_out);
}

static cvy_status print_job(const cvy_job *job, int as_json, char **text_out)
{
    cvy_pool *pool = NULL;
    cvy_tree *root = NULL;
    CVY_TRY(cvy_pool_create(&pool));
    cvy_status status = cvy_job_tree(job, pool, 1, &root);
    if (status == CVY_OK)
        status = as_json ? print_json(root, text_out) : cvy_tree_print(root, text_out);
    cvy_pool_destroy(&pool);
    return status;
}

cvy_status cvy_run_job_print(const cvy_job_source *source, int as_json, char **text_out)
{
    CVY_ENTRY();
    cvy_job *job = NULL;
    CVY_CHECK(text_out, CVY_E_ARGUMENT, "cvy_run_job_print() needs a place for the text");
    CVY_TRY(cvy_job_read(source, &job));
    const cvy_status status = print_job(job, as_json, text_out);
    cvy_job_destroy(&job);
    return status;
}
