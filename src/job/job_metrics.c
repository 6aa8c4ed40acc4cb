/*
 * job_metrics.c: names the scores of train.metrics. A metric that the list has once gives a score of its own name. Of
 * several of one name, such as top_k for two k, each has the options that it gives in the name of its score: top_k_1,
 * top_k_5. Two that are the same are refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <ctype.h>
#include <string.h>

#include "job/job_table.h"
#include "metric/metric.h"

enum { TITLE_MAX = 40 }; /* the columns of metrics.jsonl have room for so much, after "test_" */

static int is_same_kind(const cvy_job_metric *a, const cvy_job_metric *b)
{
    return strcmp(a->name, b->name) == 0;
}

/* All options of a metric as one text, also those that it does not give. The caller frees it. */
static cvy_status print_options(cvy_job *job, const cvy_job_metric *m, char **out)
{
    const cvy_metric_def *def = cvy_metric_find(m->name);
    void *fields = NULL;
    CVY_TRY(cvy_pool_alloc(job->pool, CVY_MAX(def->options_size, 1), &fields));
    CVY_TRY(cvy_options_parse(job->pool, def->name, def->options, m->options, NULL, fields, def->options_size));
    return cvy_options_print(def->options, fields, out);
}

static cvy_status check_different(cvy_job *job, const cvy_job_metric *a, const cvy_job_metric *b)
{
    char *one = NULL, *other = NULL;
    cvy_status status = print_options(job, a, &one);
    if (status == CVY_OK)
        status = print_options(job, b, &other);
    if (status == CVY_OK && strcmp(one, other) == 0)
        status = cvy_error_set(CVY_E_CONFIG,
                               "%s: train.metrics has %s twice with the same options%s%s: leave one of them out, or "
                               "give it other options",
                               cvy_job_where(job, "train", "metrics"), b->name, *one ? ", " : "", one);
    cvy_mem_free(&one);
    cvy_mem_free(&other);
    return status;
}

/* Adds a value: "_5", or "_0.1-0.9" of a list. Characters that names do not have become "_". */
static void add_value(cvy_text *t, const cvy_tree *node)
{
    const int is_list = node->kind == CVY_TREE_LIST, n = is_list ? node->count : 1;
    for (int i = 0; i < n; i++) {
        const cvy_tree *item = is_list ? node->child[i] : node;
        cvy_text_add(t, i ? "-" : "_");
        for (const char *c = item->kind == CVY_TREE_SCALAR && item->text ? item->text : ""; *c; c++)
            cvy_text_add(t, "%c", isalnum((unsigned char)*c) || strchr("+-.", *c) ? *c : '_');
    }
}

static int ends_in(const char *name, const char *key)
{
    const size_t n = strlen(name), k = strlen(key);
    return n > k && name[n - k - 1] == '_' && strcmp(name + n - k, key) == 0;
}

/* The name of a metric with the options that it gives; an option that ends the name is not repeated: top_k_5. If this
 * is too long, the number among those of its name, which no value can be mistaken for: coverage.2. */
static cvy_status make_title(cvy_job *job, cvy_job_metric *m, int nth)
{
    const cvy_tree *map = m->options;
    cvy_text t = {0};
    char *title = NULL;
    cvy_text_add(&t, "%s", m->name);
    for (int i = 0; map && i < map->count; i++) {
        if (!ends_in(m->name, map->key[i]))
            cvy_text_add(&t, "_%s", map->key[i]);
        add_value(&t, map->child[i]);
    }
    const cvy_status status = t.status != CVY_OK     ? t.status
                              : t.bytes <= TITLE_MAX ? cvy_pool_strdup(job->pool, t.data, &title)
                                                     : cvy_pool_printf(job->pool, &title, "%s.%d", m->name, nth);
    cvy_text_free(&t);
    m->title = title;
    return status;
}

cvy_status cvy_job_name_metrics(cvy_job *job)
{
    struct cvy_job_train *t = &job->train;
    for (int i = 0; i < t->nmetric; i++) {
        cvy_job_metric *m = &t->metric[i];
        int before = 0, all = 0;
        for (int k = 0; k < t->nmetric; k++) {
            all += is_same_kind(&t->metric[k], m);
            before += k < i && is_same_kind(&t->metric[k], m);
            if (k < i && is_same_kind(&t->metric[k], m))
                CVY_TRY(check_different(job, &t->metric[k], m));
        }
        m->is_further = before > 0;
        m->title = m->name;
        if (all > 1)
            CVY_TRY(make_title(job, m, before + 1));
    }
    return CVY_OK;
}
