/*
 * data_split.c: see data_split.h. It runs when the training data are opened.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_split.h"

#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number/base_rng.h"
#include "data/data_agrees.h"
#include "data/data_dataset.h"
#include "data/data_groups.h"

enum { NAME_ROOM = 4200 };

void cvy_split_free(cvy_split *s)
{
    cvy_mem_free(&s->side);
    s->n = 0;
}

/* ---- classes ---- */

struct labels {
    int32_t *of; /* [n]; zeros without classes */
    int64_t nclasses;
};

static cvy_status read_labels(cvy_dataset *d, struct labels *out)
{
    const int64_t n = d->info.nsamples;
    const int has_label = cvy_dataset_reader_info(d)->has_label;
    out->nclasses = has_label ? d->info.nclasses : 1;
    CVY_TRY(cvy_mem_alloc((size_t)n * sizeof *out->of, &out->of));
    for (int64_t i = 0; i < n && has_label; i++)
        CVY_TRY(cvy_dataset_label(d, i, &out->of[i]));
    return CVY_OK;
}

/* ---- a drawn share, of samples ---- */

/* How many of the first `count` samples belong to the share. It rounds running sums, so the counts are right for each
 * class and for the whole set. */
static int64_t share_of(int64_t count, double share)
{
    return (int64_t)((double)count * share + 0.5);
}

/* Fills sorted[] with the numbers sorted by class, and first[] with the start of each class. */
static void sort_by_class(const struct labels *l, int64_t n, int64_t *sorted, int64_t *first)
{
    for (int64_t i = 0; i < n; i++)
        first[l->of[i] + 1]++;
    for (int64_t c = 0; c < l->nclasses; c++)
        first[c + 1] += first[c];
    for (int64_t i = 0; i < n; i++)
        sorted[first[l->of[i]]++] = i;
    for (int64_t c = l->nclasses; c > 0; c--)
        first[c] = first[c - 1];
    first[0] = 0;
}

static cvy_status draw_samples(const struct labels *l, double share, uint64_t seed, cvy_split *out)
{
    int64_t *sorted = NULL, *first = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_mem_alloc((size_t)out->n * sizeof *sorted, &sorted));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)(l->nclasses + 1) * sizeof *first, &first));
    sort_by_class(l, out->n, sorted, first);
    for (int64_t c = 0; c < l->nclasses; c++) {
        const int64_t take = share_of(first[c + 1], share) - share_of(first[c], share);
        const cvy_permutation p = cvy_permutation_make(seed, (uint64_t)c, (uint64_t)(first[c + 1] - first[c]));
        for (int64_t i = 0; i < take; i++)
            out->side[sorted[first[c] + (int64_t)cvy_permutation_at(&p, (uint64_t)i)]] = CVY_SIDE_VAL;
    }
out:
    cvy_mem_free(&sorted);
    cvy_mem_free(&first);
    return status;
}

/* ---- what samples belong to ---- */

static cvy_status find_in_paths(cvy_dataset *d, const char *pattern, cvy_groups *to)
{
    regex_t regex;
    regmatch_t at[2];
    char name[NAME_ROOM];
    cvy_status status = CVY_OK;
    CVY_CHECK(regcomp(&regex, pattern, REG_EXTENDED) == 0, CVY_E_CONFIG,
              "\"%s\" is no regular expression, as in `group: {path: \"patient_([0-9]+)\"}`", pattern);
    for (int64_t i = 0; i < d->info.nsamples; i++) {
        cvy_reader_name_sample(d->reader, d->state, i, name, sizeof name);
        if (regexec(&regex, name, 2, at, 0) != 0)
            CVY_FAIL_OUT(CVY_E_CONFIG, "%s: its path has no match of \"%s\"", name, pattern);
        const regmatch_t *m = regex.re_nsub > 0 && at[1].rm_so >= 0 ? &at[1] : &at[0];
        if (m->rm_eo == m->rm_so)
            CVY_FAIL_OUT(CVY_E_CONFIG, "%s: \"%s\" matches an empty part of its path", name, pattern);
        CVY_TRY_OUT(cvy_groups_add(to, name + m->rm_so, (size_t)(m->rm_eo - m->rm_so)));
    }
out:
    regfree(&regex);
    return status;
}

/* Each sample must have a value. */
static cvy_status check_values(const cvy_dataset *d, const cvy_groups *g, const char *what)
{
    char where[NAME_ROOM];
    int64_t missing = 0, first = -1;
    CVY_CHECK(g->n == d->info.nsamples, CVY_E_INTERNAL, "%lld values of %s for %lld samples", (long long)g->n, what,
              (long long)d->info.nsamples);
    for (int64_t i = g->n; i-- > 0;)
        if (g->of[i] < 0) {
            missing++;
            first = i;
        }
    if (missing == 0)
        return CVY_OK;
    cvy_dataset_where(d, first, where, sizeof where);
    CVY_FAIL(CVY_E_CONFIG,
             "%lld of %lld samples have no value of %s, the first is %s: give each a value, or leave these samples out",
             (long long)missing, (long long)g->n, what, where);
}

static cvy_status find_values(cvy_dataset *d, const cvy_split_spec *spec, const char *what, cvy_groups *out)
{
    static const int characters[] = {
        [CVY_SPLIT_BY_DAY] = 10, [CVY_SPLIT_BY_MONTH] = 7, [CVY_SPLIT_BY_YEAR] = 4, [CVY_SPLIT_BY_VALUE] = 0};
    CVY_TRY(spec->pattern ? find_in_paths(d, spec->pattern, out)
                          : cvy_reader_groups(d->reader, d->state, cvy_dataset_name(&d->info), out));
    CVY_TRY(check_values(d, out, what));
    return spec->by == CVY_SPLIT_BY_VALUE ? CVY_OK : cvy_groups_cut_dates(out, characters[spec->by]);
}

cvy_status cvy_dataset_shared_groups(const cvy_dataset *a, const cvy_dataset *b, int64_t *n_out, int64_t *nshared_out,
                                     char shared_out[80])
{
    const cvy_dataset *const d[] = {a, b};
    cvy_groups g[2];
    cvy_status status = CVY_OK;
    *n_out = *nshared_out = 0;
    memset(g, 0, sizeof g);
    for (int i = 0; i < 2; i++)
        if (d[i]->reader->groups)
            CVY_TRY_OUT(d[i]->reader->groups(d[i]->state, &g[i]));
    if (g[0].n == 0)
        goto out;
    *n_out = g[1].names.count;
    for (int k = 0; k < g[1].names.count; k++)
        if (cvy_keys_find(&g[0].names, g[1].names.text[k]) >= 0 && (*nshared_out)++ == 0)
            snprintf(shared_out, 80, "%.79s", g[1].names.text[k]);
out:
    cvy_groups_free(&g[0]);
    cvy_groups_free(&g[1]);
    return status;
}

/* ---- a drawn share, of groups ---- */

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

struct counts {
    int64_t samples[3]; /* by side */
};

static struct counts count_sides(const cvy_split *s)
{
    struct counts c = {{0}};
    for (int64_t i = 0; i < s->n; i++)
        c.samples[s->side[i]]++;
    return c;
}

/* Says that the sizes of the groups do not allow the share. */
static cvy_status note_sizes(const cvy_groups *g, double share, int64_t nval, cvy_text *notes)
{
    const double wanted = share * (double)g->n;
    int64_t *size = NULL;
    int largest = 0;
    if (fabs((double)nval - wanted) <= CVY_MAX(0.1 * wanted, 1))
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc((size_t)g->names.count * sizeof *size, &size));
    for (int64_t i = 0; i < g->n; i++)
        size[g->of[i]]++;
    for (int i = 1; i < g->names.count; i++)
        largest = size[i] > size[largest] ? i : largest;
    cvy_text_add(
        notes,
        "data.val: the sizes of the groups do not allow %.3g%% of the samples: the largest, \"%.80s\", has %lld "
        "of %lld (%.1f%%)\n",
        100 * share, g->names.text[largest], (long long)size[largest], (long long)g->n,
        100.0 * (double)size[largest] / (double)g->n);
    cvy_mem_free(&size);
    return CVY_OK;
}

/* Says that a class is on one side only. */
static cvy_status note_classes(const cvy_dataset *d, const struct labels *l, const cvy_split *s, cvy_text *notes)
{
    int64_t *count = NULL;
    CVY_TRY(cvy_mem_alloc((size_t)l->nclasses * 2 * sizeof *count, &count));
    for (int64_t i = 0; i < s->n; i++)
        if (s->side[i] != CVY_SIDE_NONE)
            count[2 * l->of[i] + s->side[i]]++;
    for (int64_t c = 0; c < l->nclasses; c++)
        for (int side = 0; side < 2; side++)
            if (count[2 * c + side] == 0 && count[2 * c + 1 - side] > 0)
                cvy_text_add(notes, "data.val: class \"%s\" has no sample %s: all %lld are %s\n", d->info.class_name[c],
                             side ? "for validation" : "to train on", (long long)count[2 * c + 1 - side],
                             side ? "trained on" : "for validation");
    cvy_mem_free(&count);
    return CVY_OK;
}

/* Says how many groups are on each side. */
static cvy_status note_groups(const cvy_groups *g, const cvy_split_spec *spec, const uint8_t *in, const cvy_split *s,
                              cvy_text *notes)
{
    const char *by = spec->pattern ? "path" : spec->group;
    const struct counts c = count_sides(s);
    const int64_t nval = c.samples[CVY_SIDE_VAL], ntrain = c.samples[CVY_SIDE_TRAIN];
    const int count = g->names.count;
    int nin = 0;
    for (int i = 0; i < count; i++)
        nin += in[i];
    cvy_text_add(notes,
                 "data.val: %d groups by %s: %d in validation with %lld sample%s (%.1f%%), %d in training with %lld\n",
                 count, by, nin, (long long)nval, plural(nval), 100.0 * (double)nval / (double)g->n, count - nin,
                 (long long)ntrain);
    if (count == g->n)
        cvy_text_add(notes, "data.val: each sample is a group of its own, so groups by %s keep nothing together\n", by);
    return note_sizes(g, spec->share, nval, notes);
}

/* Random numbers that depend on the seed and on the names of the groups. */
static void draw_keys(const cvy_groups *g, uint64_t seed, uint64_t *key)
{
    for (int i = 0; i < g->names.count; i++) {
        const cvy_rng rng = cvy_rng_make(seed, g->names.text[i], 0, 0);
        key[i] = (uint64_t)cvy_rng_u32(&rng, 0) << 32 | cvy_rng_u32(&rng, 1);
    }
}

static cvy_status draw_groups(cvy_dataset *d, const struct labels *l, const cvy_split_spec *spec, uint64_t seed,
                              cvy_text *notes, cvy_split *out)
{
    cvy_groups g = {0};
    uint64_t *key = NULL;
    uint8_t *in = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(find_values(d, spec, spec->pattern ? "the pattern of its path" : spec->group, &g));
    if (g.names.count < 2)
        CVY_FAIL_OUT(CVY_E_CONFIG,
                     "all %lld samples belong to one group, \"%.80s\", so none of them can be set aside: name what "
                     "differs between samples",
                     (long long)g.n, g.names.text[0]);
    CVY_TRY_OUT(cvy_mem_alloc((size_t)g.names.count * sizeof *key, &key));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)g.names.count, &in));
    draw_keys(&g, seed, key);
    CVY_TRY_OUT(cvy_split_choose(g.of, l->of, g.n, g.names.count, l->nclasses, key, spec->share, in));
    for (int64_t i = 0; i < g.n; i++)
        out->side[i] = in[g.of[i]] ? CVY_SIDE_VAL : CVY_SIDE_TRAIN;
    status = notes ? note_groups(&g, spec, in, out, notes) : CVY_OK;
out:
    cvy_groups_free(&g);
    cvy_mem_free(&key);
    cvy_mem_free(&in);
    return status;
}

/* ---- a share at an end ---- */

struct place { /* of a sample in the order */
    double value;
    const char *text; /* NULL: the values are numbers */
    int64_t number;
};

static int same_value(const struct place *a, const struct place *b)
{
    return a->text ? strcmp(a->text, b->text) == 0 : a->value == b->value;
}

static int by_value(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    const int order = x->text ? strcmp(x->text, y->text) : (x->value > y->value) - (x->value < y->value);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

/* Whether a text begins as 31/12/2019, 12-31-2019 or 31.12.2019 does. */
static int ends_with_year(const char *text)
{
    static const char digits[] = "0123456789";
    const size_t a = strspn(text, digits), b = text[a] ? strspn(text + a + 1, digits) : 0;
    return a >= 1 && a <= 2 && b >= 1 && b <= 2 && strchr("/-.", text[a]) && text[a + 1 + b] == text[a] &&
           strspn(text + a + b + 2, digits) == 4;
}

/* By the values that the source names: as numbers if all are. */
static cvy_status order_by_values(cvy_dataset *d, const cvy_split_spec *spec, cvy_groups *g, struct place *at)
{
    double value = 0;
    int numbers = 1;
    CVY_TRY(find_values(d, spec, spec->order, g));
    for (int i = 0; i < g->names.count && numbers; i++)
        numbers = cvy_text_real(g->names.text[i], &value) == CVY_OK;
    for (int i = 0; i < g->names.count; i++)
        CVY_CHECK(!ends_with_year(g->names.text[i]), CVY_E_CONFIG,
                  "\"%.40s\" of %s is a date that is not in the order of its characters: write it as 2019-12-31",
                  g->names.text[i], spec->order);
    for (int64_t i = 0; i < g->n; i++) {
        const char *name = g->names.text[g->of[i]];
        at[i] = (struct place){0, numbers ? NULL : name, i};
        if (numbers)
            CVY_TRY(cvy_text_real(name, &at[i].value));
    }
    return CVY_OK;
}

/* By the coordinate of the samples, such as time, if the source has one; else as they are. */
static cvy_status order_by_source(cvy_dataset *d, struct place *at, char *what, size_t room)
{
    const int64_t n = d->info.nsamples;
    cvy_coordinates c = {0};
    int is_ordered = 1;
    for (int64_t i = 0; i < n; i++)
        at[i] = (struct place){(double)i, NULL, i};
    snprintf(what, room, "the order of the source");
    CVY_TRY(cvy_dataset_coordinates(d, CVY_ALONG_SAMPLES, 0, d->pool, &c));
    if (!c.value || c.n != n)
        return CVY_OK;
    for (int64_t i = 0; i < n; i++) {
        CVY_CHECK(!isnan(c.value[i]), CVY_E_CONFIG, "%s: sample %lld has no value of %s, which orders the samples",
                  cvy_dataset_name(&d->info), (long long)i, c.name);
        is_ordered &= i == 0 || c.value[i] >= c.value[i - 1];
    }
    snprintf(what, room, "the order of %s%s", c.name, is_ordered ? "" : ", which is not that of the source");
    for (int64_t i = 0; i < n; i++)
        at[i].value = c.value[i];
    return CVY_OK;
}

/* The border between the two sides nearest to `cut`, at which the value changes: samples at[cut ..] are on one side. */
static int64_t nearest_border(const struct place *at, int64_t n, int64_t cut)
{
    for (int64_t step = 0; step < n; step++)
        for (int sign = -1; sign <= 1; sign += 2) {
            const int64_t to = cut + sign * step;
            if (to > 0 && to < n && !same_value(&at[to - 1], &at[to]))
                return to;
        }
    return 0;
}

/* Sets the sides of samples in this order; at[cut ..] are the last ones. */
static void set_sides(const struct place *at, int64_t cut, const cvy_split_spec *spec, cvy_split *out)
{
    const int is_last = spec->where == CVY_SPLIT_LAST;
    for (int64_t i = 0; i < out->n; i++) {
        const int is_val = is_last ? i >= cut : i < cut;
        const int64_t away = is_last ? cut - 1 - i : i - cut; /* samples between it and the validation */
        out->side[at[i].number] = is_val ? CVY_SIDE_VAL : away < spec->gap ? CVY_SIDE_NONE : CVY_SIDE_TRAIN;
    }
}

/* what: the order. */
static void note_end(const cvy_split *s, const cvy_split_spec *spec, const char *what, cvy_text *notes)
{
    const struct counts c = count_sides(s);
    if (c.samples[CVY_SIDE_TRAIN] == 0)
        return;
    cvy_text_add(notes, "data.val: the %s %lld of %lld samples (%.1f%%) are for validation, in %s",
                 spec->where == CVY_SPLIT_LAST ? "last" : "first", (long long)c.samples[CVY_SIDE_VAL], (long long)s->n,
                 100.0 * (double)c.samples[CVY_SIDE_VAL] / (double)s->n, what);
    if (spec->gap > 0)
        cvy_text_add(notes, ", and %lld between them and the training are left out",
                     (long long)c.samples[CVY_SIDE_NONE]);
    cvy_text_add(notes, "\n");
}

static cvy_status take_end(cvy_dataset *d, const cvy_split_spec *spec, cvy_text *notes, cvy_split *out)
{
    const int64_t n = out->n;
    const int is_last = spec->where == CVY_SPLIT_LAST;
    struct place *at = NULL;
    cvy_groups g = {0};
    char what[240];
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_mem_alloc((size_t)n * sizeof *at, &at));
    snprintf(what, sizeof what, "the order of %s", spec->order ? spec->order : "");
    CVY_TRY_OUT(spec->order ? order_by_values(d, spec, &g, at) : order_by_source(d, at, what, sizeof what));
    qsort(at, (size_t)n, sizeof *at, by_value);
    if (at[0].text)
        snprintf(what, sizeof what, "the order of the texts of %.60s, from \"%.40s\" to \"%.40s\"", spec->order,
                 at[0].text, at[n - 1].text);
    const int64_t want = CVY_MIN(CVY_MAX(share_of(n, spec->share), 1), n - 1);
    const int64_t cut = nearest_border(at, n, is_last ? n - want : want);
    if (cut == 0)
        CVY_FAIL_OUT(CVY_E_CONFIG, "all %lld samples have the same value of %s, so none of them is the %s",
                     (long long)n, spec->order ? spec->order : "their coordinate", is_last ? "last" : "first");
    set_sides(at, cut, spec, out);
    if (notes)
        note_end(out, spec, what, notes);
out:
    cvy_groups_free(&g);
    cvy_mem_free(&at);
    return status;
}

/* ---- the split ---- */

static cvy_status check_sides(const cvy_dataset *d, const cvy_split_spec *spec, const cvy_split *s)
{
    const struct counts c = count_sides(s);
    CVY_CHECK(c.samples[CVY_SIDE_TRAIN] > 0 && c.samples[CVY_SIDE_VAL] > 0, CVY_E_CONFIG,
              "%s: a share of %g%s leaves one part of the %lld samples empty", cvy_dataset_name(&d->info), spec->share,
              spec->gap > 0 ? " and the gap" : "", (long long)s->n);
    return CVY_OK;
}

static cvy_status make(cvy_dataset *d, const cvy_split_spec *spec, uint64_t seed, struct labels *l, cvy_text *notes,
                       cvy_split *out)
{
    cvy_status status = CVY_OK;
    const int is_grouped = spec->group || spec->pattern;
    out->n = d->info.nsamples;
    CVY_TRY(cvy_mem_alloc((size_t)out->n, &out->side));
    CVY_TRY(read_labels(d, l));
    if (spec->where != CVY_SPLIT_DRAWN)
        status = take_end(d, spec, notes, out);
    else if (is_grouped)
        status = draw_groups(d, l, spec, seed, notes, out);
    else
        status = draw_samples(l, spec->share, seed, out);
    if (status != CVY_OK)
        return is_grouped || spec->where != CVY_SPLIT_DRAWN ? cvy_error_prefix(status, "data.val") : status;
    CVY_TRY(check_sides(d, spec, out));
    return notes && l->nclasses > 1 && (is_grouped || spec->where != CVY_SPLIT_DRAWN) ? note_classes(d, l, out, notes)
                                                                                      : CVY_OK;
}

cvy_status cvy_split_make(cvy_dataset *d, const cvy_split_spec *spec, uint64_t seed, cvy_text *notes, cvy_split *out)
{
    struct labels labels = {0};
    cvy_split split = {0};
    CVY_EXPECT(!d->whole || (!spec->group && !spec->pattern && spec->where == CVY_SPLIT_DRAWN));
    cvy_status status = make(d, spec, seed, &labels, notes, &split);
    if (status == CVY_OK && notes)
        status = notes->status;
    cvy_mem_free(&labels.of);
    if (status == CVY_OK)
        *out = split;
    else
        cvy_split_free(&split);
    return status;
}
