/*
 * study_run.c: cvy_run_study(): makes the measurements that are missing, one after the other.
 *
 * Repeats are the outer loop and cases the inner one, so that other work on the machine, which comes and goes, disturbs
 * all cases alike.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_opts.h"
#include "study/study_measure.h"

struct study {
    cvy_study_opts o;
    cvy_pool *pool;
    cvy_study_spec spec;
    cvy_case *c;
    int ncase;
    cvy_measurer m;
};

/* ---- frameworks ---- */

/* The names of --frameworks take the place of those of the file. */
static cvy_status choose_frameworks(struct study *s)
{
    const char **name = NULL;
    int n = 0;
    if (!s->o.only)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(s->pool, sizeof *name * (strlen(s->o.only) + 1), &name));
    for (const char *at = s->o.only; *at; at += strcspn(at, ","), at += *at == ',') {
        char *copy = NULL;
        CVY_TRY(cvy_pool_printf(s->pool, &copy, "%.*s", (int)strcspn(at, ","), at));
        name[n++] = copy;
    }
    CVY_CHECK(n > 0, CVY_E_CONFIG, "--frameworks names none");
    for (int i = 0; i < s->spec.nexperiment; i++)
        for (int a = 0; a < s->spec.experiment[i].naxis; a++)
            if (strcmp(s->spec.experiment[i].axis[a].name, "framework") == 0) {
                s->spec.experiment[i].axis[a].value = name;
                s->spec.experiment[i].axis[a].nvalue = n;
            }
    return CVY_OK;
}

/* All frameworks are looked for at the beginning, so that one that is missing is known before hours have passed. */
static cvy_status open_frameworks(struct study *s)
{
    cvy_framework *f = NULL;
    for (int i = 0; i < s->ncase; i++)
        CVY_TRY(cvy_measurer_framework(&s->m, cvy_case_value(&s->c[i], "framework"), &f));
    return CVY_OK;
}

/* ---- which cases ---- */

#define EXPERIMENT "experiment" /* the name of a case's experiment counts as a value of this axis */

static int splits(const char *word, const char **value_out)
{
    *value_out = word + strcspn(word, "=");
    *value_out += **value_out == '=';
    return (int)(*value_out - word) - 1;
}

/* Whether the case has one of the values that are given for the axis of the i-th word. */
static int has_one(const struct study *s, const cvy_case *c, int i)
{
    const char *value = NULL, *other = NULL;
    const int n = splits(s->o.only_cases[i], &value);
    char axis[128];
    int found = 0;
    snprintf(axis, sizeof axis, "%.*s", n, s->o.only_cases[i]);
    const char *own = strcmp(axis, EXPERIMENT) == 0 ? c->of->name : cvy_case_value(c, axis);
    for (int k = 0; own && k < s->o.nonly; k++)
        if (splits(s->o.only_cases[k], &other) == n && strncmp(s->o.only_cases[k], axis, (size_t)n) == 0)
            found |= strcmp(own, other) == 0;
    return !own || found;
}

/* A word that no experiment knows is a mistake. */
static cvy_status check_only(const struct study *s, int i)
{
    const char *value = NULL;
    const int n = splits(s->o.only_cases[i], &value);
    for (int e = 0; e < s->spec.nexperiment; e++) {
        if (n == (int)strlen(EXPERIMENT) && strncmp(s->o.only_cases[i], EXPERIMENT, (size_t)n) == 0 &&
            strcmp(s->spec.experiment[e].name, value) == 0)
            return CVY_OK;
        for (int a = 0; a < s->spec.experiment[e].naxis; a++) {
            const cvy_study_axis *axis = &s->spec.experiment[e].axis[a];
            if ((int)strlen(axis->name) != n || strncmp(axis->name, s->o.only_cases[i], (size_t)n) != 0)
                continue;
            for (int v = 0; v < axis->nvalue; v++)
                if (strcmp(axis->value[v], value) == 0)
                    return CVY_OK;
        }
    }
    CVY_FAIL(CVY_E_CONFIG, "%s: no experiment has the value %s on the axis %.*s", s->spec.file, value, n,
             s->o.only_cases[i]);
}

/* Leaves out the cases that are not wanted now. */
static cvy_status choose_cases(struct study *s)
{
    int n = 0;
    for (int i = 0; i < s->o.nonly; i++)
        CVY_TRY(check_only(s, i));
    for (int i = 0; i < s->ncase; i++) {
        int wanted = 1;
        for (int k = 0; k < s->o.nonly; k++)
            wanted &= has_one(s, &s->c[i], k);
        if (wanted)
            s->c[n++] = s->c[i];
    }
    s->ncase = n;
    return CVY_OK;
}

static int is_in_part(const struct study *s, const cvy_framework *f)
{
    return s->o.part == CVY_STUDY_ALL || f->is_predicted == (s->o.part == CVY_STUDY_PREDICTED);
}

/* Leaves out the cases of the other part and, in a job of a batch system, those that need another number of nodes. */
static cvy_status choose_nodes(struct study *s)
{
    cvy_framework *f = NULL;
    int n = 0;
    for (int i = 0; i < s->ncase; i++) {
        CVY_TRY(cvy_measurer_framework(&s->m, cvy_case_value(&s->c[i], "framework"), &f));
        if (is_in_part(s, f) &&
            (s->o.nodes == 0 || cvy_framework_nodes(f, &s->c[i], s->o.ranks_per_node) == s->o.nodes))
            s->c[n++] = s->c[i];
    }
    s->ncase = n;
    return CVY_OK;
}

/* ---- the folder ---- */

/* A folder belongs to one study; with --quick or other frameworks it may grow. */
static cvy_status keep_file(struct study *s)
{
    char *path = NULL, *data = NULL;
    size_t bytes = 0;
    CVY_TRY(cvy_file_make_folder(s->o.out));
    CVY_TRY(cvy_pool_printf(s->pool, &path, "%s/study.yaml", s->o.out));
    if (!cvy_file_exists(path))
        return cvy_file_replace(path, s->o.text, strlen(s->o.text));
    CVY_TRY(cvy_file_read(path, 16 << 20, &data, &bytes));
    const int same = strcmp(data, s->o.text) == 0;
    cvy_mem_free(&data);
    CVY_CHECK(same, CVY_E_CONFIG,
              "%s holds the results of another study, or of an earlier version of %s: take another folder, or compare "
              "%s with it",
              s->o.out, s->o.name, path);
    return CVY_OK;
}

/* The published figures of this study, and the head of the table, become a file of the folder. */
static cvy_status keep_published(struct study *s)
{
    const size_t n = s->spec.published ? strlen(s->spec.published) : 0;
    cvy_text text = {0};
    char *path = NULL;
    if (!s->o.published || n == 0)
        return CVY_OK;
    for (const char *at = s->o.published; *at;) {
        const size_t length = strcspn(at, "\n");
        if (strncmp(at, "study,", 6) == 0 || (strncmp(at, s->spec.published, n) == 0 && at[n] == ','))
            cvy_text_add(&text, "%.*s\n", (int)length, at);
        at += length + (at[length] == '\n');
    }
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_pool_printf(s->pool, &path, "%s/published.csv", s->o.out);
    if (status == CVY_OK && text.bytes > 0)
        status = cvy_file_replace(path, text.data, text.bytes);
    cvy_text_free(&text);
    return status;
}

static cvy_status prepare(struct study *s)
{
    CVY_TRY(cvy_study_write_jobs(&s->spec, &s->m.paths));
    for (int i = 0; i < s->spec.ntarget; i++)
        CVY_TRY(cvy_make_target(&s->m, &s->spec.target[i]));
    return CVY_OK;
}

/* ---- all ---- */

static int64_t repeats_of(const struct study *s, const cvy_case *c)
{
    return s->o.once ? 1 : c->of->repeats;
}

static cvy_status run_all(struct study *s)
{
    int64_t most = 0;
    for (int i = 0; i < s->ncase; i++)
        most = CVY_MAX(most, repeats_of(s, &s->c[i]));
    for (int i = 0; i < s->ncase; i++)
        for (int64_t repeat = 1; repeat <= repeats_of(s, &s->c[i]); repeat++) {
            int is_due = 0;
            CVY_TRY(cvy_measure_is_due(&s->m, &s->c[i], repeat, &is_due));
            s->m.left += is_due;
        }
    for (int64_t repeat = 1; repeat <= most; repeat++)
        for (int i = 0; i < s->ncase; i++)
            if (repeat <= repeats_of(s, &s->c[i]))
                CVY_TRY(cvy_measure(&s->m, &s->c[i], repeat, NULL));
    return CVY_OK;
}

/* What is to be measured, before the framework of each case is known. */
static cvy_status list_cases(struct study *s)
{
    CVY_TRY(cvy_study_read(s->pool, s->o.name, s->o.text, s->o.quick, &s->spec));
    CVY_TRY(choose_frameworks(s));
    CVY_TRY(cvy_study_cases(&s->spec, &s->c, &s->ncase));
    return choose_cases(s);
}

static cvy_status run(struct study *s)
{
    CVY_TRY(list_cases(s));
    CVY_TRY(keep_file(s));
    CVY_TRY(keep_published(s));
    CVY_TRY(cvy_measurer_open(&s->m));
    CVY_TRY(choose_nodes(s));
    CVY_TRY(open_frameworks(s));
    CVY_TRY(prepare(s));
    return run_all(s);
}

static cvy_status open_study(const cvy_study_opts *opts, struct study *s)
{
    CVY_TRY(CVY_OPTS_READ(cvy_study_opts, opts, &s->o));
    CVY_CHECK(s->o.name && s->o.text && s->o.out && s->o.frameworks && s->o.program, CVY_E_ARGUMENT,
              "a study needs name, text, out, frameworks and program");
    CVY_CHECK(s->o.nodes >= 0 && s->o.ranks_per_node >= 0, CVY_E_ARGUMENT,
              "%lld nodes with %lld ranks each, expected none or more", (long long)s->o.nodes,
              (long long)s->o.ranks_per_node);
    s->o.ranks_per_node = CVY_MAX(s->o.ranks_per_node, 1);
    CVY_TRY(cvy_pool_create(&s->pool));
    s->m = (cvy_measurer){.pool = s->pool,
                          .paths = {.out = s->o.out, .given = s->o.data, .ngiven = s->o.ndata, .nodes = s->o.nodes},
                          .frameworks = s->o.frameworks,
                          .program = s->o.program,
                          .retry = s->o.retry,
                          .quick = s->o.quick,
                          .commit = s->o.commit,
                          .nodes = s->o.nodes,
                          .ranks_per_node = s->o.ranks_per_node,
                          .part = s->o.part,
                          .time = {.begin_s = s->o.begin, .end_s = s->o.end},
                          .stop = s->o.stop,
                          .show = s->o.show,
                          .user = s->o.user};
    return CVY_OK;
}

static void close_study(struct study *s)
{
    cvy_measurer_close(&s->m);
    cvy_pool_destroy(&s->pool);
}

cvy_status cvy_run_study(const cvy_study_opts *opts, cvy_study_result *out)
{
    CVY_ENTRY();
    struct study s = {.ncase = 0};
    CVY_TRY(CVY_RESULT_CHECK(cvy_study_result, out));
    CVY_TRY(open_study(opts, &s));
    const cvy_status status = run(&s);
    s.m.result.left = s.m.left;
    if (status == CVY_OK || status == CVY_STOPPED)
        cvy_result_write(out, &s.m.result, sizeof s.m.result);
    close_study(&s);
    return status;
}

/* ---- jobs of a batch system ---- */

/* Puts a number that is not there yet in its place. */
static void insert_number(int64_t *at, int room, int *n, int64_t number)
{
    int i = 0;
    while (i < CVY_MIN(*n, room) && at[i] < number)
        i++;
    if (i < CVY_MIN(*n, room) && at[i] == number)
        return;
    for (int k = CVY_MIN(*n, room - 1); k > i; k--)
        at[k] = at[k - 1];
    if (i < room)
        at[i] = number;
    ++*n;
}

static cvy_status count_nodes(struct study *s, int64_t *nodes_out, int room, int *count_out)
{
    cvy_framework *f = NULL;
    *count_out = 0;
    CVY_TRY(list_cases(s));
    for (int i = 0; i < s->ncase; i++) {
        CVY_TRY(cvy_measurer_framework(&s->m, cvy_case_value(&s->c[i], "framework"), &f));
        if (is_in_part(s, f))
            insert_number(nodes_out, room, count_out, cvy_framework_nodes(f, &s->c[i], s->o.ranks_per_node));
    }
    return CVY_OK;
}

static cvy_status count_work(struct study *s, cvy_study_effort *work)
{
    cvy_framework *f = NULL;
    CVY_TRY(list_cases(s));
    CVY_TRY(choose_nodes(s));
    for (int i = 0; i < s->ncase; i++) {
        const cvy_experiment *e = s->c[i].of;
        CVY_TRY(cvy_measurer_framework(&s->m, cvy_case_value(&s->c[i], "framework"), &f));
        const int64_t n = f->is_exact ? 1 : repeats_of(s, &s->c[i]);
        work->count += n;
        work->seconds += (double)(n * e->seconds);
        work->limit_s += (double)n * e->limit_s;
    }
    return CVY_OK;
}

cvy_status cvy_study_count(const cvy_study_opts *opts, cvy_study_effort *out)
{
    CVY_ENTRY();
    struct study s = {.ncase = 0};
    cvy_study_effort work = {.size = sizeof work};
    CVY_TRY(CVY_RESULT_CHECK(cvy_study_effort, out));
    CVY_TRY(open_study(opts, &s));
    const cvy_status status = count_work(&s, &work);
    if (status == CVY_OK)
        cvy_result_write(out, &work, sizeof work);
    close_study(&s);
    return status;
}

cvy_status cvy_study_nodes(const cvy_study_opts *opts, int64_t *nodes_out, int room, int *count_out)
{
    CVY_ENTRY();
    struct study s = {.ncase = 0};
    CVY_CHECK(nodes_out && room > 0 && count_out, CVY_E_ARGUMENT, "a place for at least one number is needed");
    CVY_TRY(open_study(opts, &s));
    const cvy_status status = count_nodes(&s, nodes_out, room, count_out);
    close_study(&s);
    return status;
}
