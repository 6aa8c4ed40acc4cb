/*
 * score_result.c: see score_result.h. Metrics write their details (a confusion matrix, curves) as members of
 * test.json, so the struct is read from there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "score/score_result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_opts.h"
#include "base/text/base_tree.h"

/* The size of the struct's first version; later fields are added at the end. */
#define FIRST_SIZE (offsetof(cvy_test_result, owned) + sizeof(void *))

struct owned {
    cvy_pool *pool;
    char *json;
};

/* NaN if the key is missing or its value is null, which stands for a number that is not finite. */
static double number(const cvy_tree *map, const char *key)
{
    const cvy_tree *node = cvy_tree_get(map, key);
    double value = NAN;
    return node && node->text && strcmp(node->text, "null") != 0 && cvy_tree_real(node, &value) == CVY_OK ? value : NAN;
}

static void copy_text(const cvy_tree *map, const char *key, char *to, size_t room)
{
    const cvy_tree *node = cvy_tree_get(map, key);
    snprintf(to, room, "%s", node && node->text ? node->text : "");
}

static cvy_status read_metrics(cvy_pool *pool, const cvy_tree *root, cvy_test_result *r)
{
    const cvy_tree *map = cvy_tree_get(root, "metrics");
    cvy_test_metric *metric = NULL;
    if (!map || map->kind != CVY_TREE_MAP || map->count == 0)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *metric * (size_t)map->count, &metric));
    for (int i = 0; i < map->count; i++) {
        snprintf(metric[i].name, sizeof metric[i].name, "%s", map->key[i]);
        metric[i].value = number(map, map->key[i]);
    }
    r->nmetric = map->count;
    r->metric = metric;
    return CVY_OK;
}

static cvy_status read_classes(cvy_pool *pool, const cvy_tree *root, cvy_test_result *r)
{
    const cvy_tree *list = cvy_tree_get(root, "classes");
    const char **name = NULL;
    if (!list || list->kind != CVY_TREE_LIST || list->count == 0)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *name * (size_t)list->count, &name));
    for (int i = 0; i < list->count; i++)
        name[i] = list->child[i]->text ? list->child[i]->text : "";
    r->nclass = list->count;
    r->class_name = name;
    return CVY_OK;
}

static cvy_status read_confusion(cvy_pool *pool, const cvy_tree *root, cvy_test_result *r)
{
    const cvy_tree *rows = cvy_tree_get(root, "confusion");
    double *matrix = NULL;
    if (!rows || rows->kind != CVY_TREE_LIST || rows->count == 0)
        return CVY_OK;
    const int n = rows->count;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *matrix * (size_t)n * (size_t)n, &matrix));
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n && k < rows->child[i]->count; k++)
            CVY_TRY(cvy_tree_real(rows->child[i]->child[k], &matrix[i * n + k]));
    r->nconfusion = n;
    r->confusion = matrix;
    return CVY_OK;
}

static double item(const cvy_tree *list, int i)
{
    double value = NAN;
    const cvy_tree *node = list && list->kind == CVY_TREE_LIST && i < list->count ? list->child[i] : NULL;
    return node && node->text && strcmp(node->text, "null") != 0 && cvy_tree_real(node, &value) == CVY_OK ? value : NAN;
}

static cvy_status read_outputs(cvy_pool *pool, const cvy_tree *root, cvy_test_result *r)
{
    const cvy_tree *rmse = cvy_tree_get(root, "rmse_by_output"), *mae = cvy_tree_get(root, "mae_by_output");
    const cvy_tree *r2 = cvy_tree_get(root, "r2_by_output");
    cvy_test_output *output = NULL;
    if (!rmse || rmse->kind != CVY_TREE_LIST || rmse->count == 0)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *output * (size_t)rmse->count, &output));
    for (int i = 0; i < rmse->count; i++)
        output[i] = (cvy_test_output){item(rmse, i), item(mae, i), item(r2, i)};
    r->noutput = rmse->count;
    r->output = output;
    return CVY_OK;
}

/* What a reader of the numbers has to know. */
static cvy_status make_note(cvy_pool *pool, const cvy_tree *root, cvy_test_result *r)
{
    const char *role = cvy_tree_text_at(root, "role"), *mean_of = cvy_tree_text_at(root, "r2_mean_of"), *by_role = "";
    char *note = NULL;
    if (role && strcmp(role, "chose") == 0)
        by_role =
            "These samples are data.val of the job, which chose the checkpoint or the end of the training: this is "
            "no test, and new samples are likely to have worse scores.\n";
    else if (role)
        by_role = "These samples are data.train of the job: this is no test, and new samples are likely to have worse "
                  "scores.\n";
    if (!role && !mean_of)
        return CVY_OK;
    CVY_TRY(cvy_pool_printf(pool, &note, "%s%s%s%s", by_role, mean_of ? "r2 is the mean of " : "",
                            mean_of ? mean_of : "", mean_of ? ", each with a variance of its own.\n" : ""));
    r->note = note;
    return CVY_OK;
}

static cvy_status read_all(cvy_pool *pool, const char *json, cvy_test_result *r)
{
    cvy_tree *root = NULL;
    CVY_TRY(cvy_tree_parse_text(pool, "test.json", json, strlen(json), &root));
    copy_text(root, "checkpoint", r->checkpoint, sizeof r->checkpoint);
    copy_text(root, "data", r->data, sizeof r->data);
    r->samples = (int64_t)number(root, "samples");
    r->loss = number(root, "loss");
    r->seconds = number(root, "seconds");
    CVY_TRY(read_metrics(pool, root, r));
    CVY_TRY(read_classes(pool, root, r));
    CVY_TRY(read_outputs(pool, root, r));
    CVY_TRY(make_note(pool, root, r));
    return read_confusion(pool, root, r);
}

static void release_owned(struct owned **owned)
{
    if (!*owned)
        return;
    cvy_mem_free(&(*owned)->json);
    cvy_pool_destroy(&(*owned)->pool);
    cvy_mem_free(owned);
}

/* ---- the caller's struct ---- */

cvy_status cvy_test_result_check(const cvy_test_result *given)
{
    CVY_CHECK(given, CVY_E_ARGUMENT, "cvy_run_test() needs a place for the scores");
    CVY_TRY(CVY_RESULT_CHECK(cvy_test_result, given));
    CVY_CHECK(given->size >= FIRST_SIZE, CVY_E_ARGUMENT,
              "the size of cvy_test_result is %zu, and its first version had %zu: set it to sizeof(cvy_test_result)",
              given->size, FIRST_SIZE);
    return CVY_OK;
}

void cvy_test_result_clear(cvy_test_result *given)
{
    const cvy_test_result empty = {.loss = NAN};
    cvy_result_write(given, &empty, sizeof empty);
}

cvy_status cvy_test_result_make(char **json_take, cvy_test_result *given)
{
    cvy_test_result own = {.size = sizeof own};
    struct owned *owned = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *owned, &owned));
    own.owned = owned;
    own.json = owned->json = *json_take;
    *json_take = NULL;
    cvy_status status = cvy_pool_create(&owned->pool);
    if (status == CVY_OK)
        status = read_all(owned->pool, owned->json, &own);
    if (status == CVY_OK)
        cvy_result_write(given, &own, sizeof own);
    else
        release_owned(&owned);
    return status;
}

cvy_status cvy_test_result_json(const cvy_test_result *result, char **text_out)
{
    CVY_ENTRY();
    *text_out = NULL;
    CVY_TRY(cvy_test_result_check(result));
    CVY_CHECK(result->owned && result->json, CVY_E_ARGUMENT, "the result is empty: cvy_run_test() fills it on rank 0");
    const size_t bytes = strlen(result->json) + 1;
    CVY_TRY(cvy_mem_alloc(bytes, text_out));
    memcpy(*text_out, result->json, bytes);
    return CVY_OK;
}

/* A struct that cvy_run_test() has refused holds nothing. */
void cvy_test_result_release(cvy_test_result *result)
{
    CVY_ENTRY();
    const cvy_test_result empty = {0};
    if (result->size < FIRST_SIZE)
        return;
    struct owned *owned = result->owned;
    release_owned(&owned);
    cvy_result_write(result, &empty, sizeof empty);
}
