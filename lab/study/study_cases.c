/*
 * study_cases.c: all combinations of the values of an experiment's axes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "study/study_file.h"

static int64_t count_cases(const cvy_experiment *e)
{
    int64_t n = 1;
    for (int a = 0; a < e->naxis && n <= CVY_CASES_MAX; a++)
        n *= e->axis[a].nvalue;
    return n;
}

/* The axes in the order in which they change, the fastest one first: framework, then from the last to the first. */
static void order_axes(const cvy_experiment *e, int *order)
{
    int n = 0;
    for (int a = e->naxis - 1; a >= 0; a--)
        if (strcmp(e->axis[a].name, "framework") == 0)
            order[n++] = a;
    for (int a = e->naxis - 1; a >= 0; a--)
        if (strcmp(e->axis[a].name, "framework") != 0)
            order[n++] = a;
}

static cvy_status make_key(cvy_pool *pool, cvy_case *c)
{
    cvy_text text = {0};
    char *key = NULL;
    cvy_text_add(&text, "%s", c->of->name);
    for (int a = 0; a < c->of->naxis; a++)
        cvy_text_add(&text, " %s=%s", c->of->axis[a].name, c->value[a]);
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_pool_strdup(pool, text.data, &key);
    cvy_text_free(&text);
    c->key = key;
    return status;
}

static cvy_status list_cases(cvy_pool *pool, const cvy_experiment *e, int64_t n, cvy_case *out)
{
    int order[CVY_AXES_MAX];
    order_axes(e, order);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i;
        out[i].of = e;
        CVY_TRY(cvy_pool_alloc(pool, sizeof *out[i].value * ((size_t)e->naxis + 1), &out[i].value));
        for (int k = 0; k < e->naxis; k++) {
            const cvy_study_axis *axis = &e->axis[order[k]];
            out[i].value[order[k]] = axis->value[rest % axis->nvalue];
            rest /= axis->nvalue;
        }
        CVY_TRY(make_key(pool, &out[i]));
    }
    return CVY_OK;
}

cvy_status cvy_study_cases(const cvy_study_spec *spec, cvy_case **out, int *count_out)
{
    int64_t total = 0;
    cvy_case *all = NULL;
    for (int i = 0; i < spec->nexperiment; i++)
        total += count_cases(&spec->experiment[i]);
    CVY_CHECK(total <= CVY_CASES_MAX, CVY_E_CONFIG, "%s: more than %d cases", spec->file, CVY_CASES_MAX);
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *all * (size_t)total, &all));
    *out = all;
    *count_out = (int)total;
    for (int i = 0; i < spec->nexperiment; i++) {
        const int64_t n = count_cases(&spec->experiment[i]);
        CVY_TRY(list_cases(spec->pool, &spec->experiment[i], n, all));
        all += n;
    }
    return CVY_OK;
}

const char *cvy_case_value(const cvy_case *c, const char *axis)
{
    for (int a = 0; a < c->of->naxis; a++)
        if (strcmp(c->of->axis[a].name, axis) == 0)
            return c->value[a];
    return NULL;
}

int64_t cvy_case_ranks(const cvy_case *c)
{
    const char *ranks = cvy_case_value(c, "ranks");
    int64_t n = 1;
    return ranks && cvy_text_int(ranks, &n) == CVY_OK && n > 0 ? n : 1;
}

int64_t cvy_case_threads(const cvy_case *c)
{
    const char *threads = cvy_case_value(c, "threads");
    int64_t n = 1;
    return threads && cvy_text_int(threads, &n) == CVY_OK ? n : 1;
}
