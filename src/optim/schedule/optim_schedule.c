/*
 * optim_schedule.c: the learning rate as a function of the samples seen: one schedule of the table, multiplied by a
 * linear warm-up. Before each step, the step loop asks for the rate and passes it to the updates. Everything is counted
 * in samples, so the rate at a point of the run does not depend on the batch size.
 *
 *     lr = base_lr * batch_factor * factor(samples) * ramp
 *
 * ramp rises linearly from warmup_from to 1 over the samples of the warm-up, and is 1 afterwards. If batch_factor
 * multiplies the rate, the default of warmup_from is its inverse: the warm-up begins at the rate that suits the base
 * batch (Goyal et al. 2017, section 2.2).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/text/base_table.h"
#include "optim/optim.h"

struct warmup {
    double warmup, warmup_from;
};

static const cvy_option warmup_opts[] = {
    {"warmup", CVY_TYPE_REAL, CVY_FIELD(warmup, warmup), "0", "0..", "samples", "length of the linear warm-up"},
    {"warmup_from", CVY_TYPE_REAL, CVY_FIELD(warmup, warmup_from), "", "0..1", "",
     "share of the rate at its start; 0 if not given, with an lr_rule the rate for base_batch"},
    {0},
};

struct cvy_schedule {
    cvy_pool *pool;
    const cvy_schedule_def *def;
    void *options;
    struct warmup ramp;
    double lr, total, epoch;
};

typedef struct units {
    double epoch, batch;
} units;

/* Samples in one of this unit; 0: there is no such unit. */
static double samples_in(const units *u, const char *unit)
{
    if (strcmp(unit, "samples") == 0 || strcmp(unit, "sample") == 0)
        return 1;
    if (strcmp(unit, "epochs") == 0 || strcmp(unit, "epoch") == 0)
        return u->epoch;
    return strcmp(unit, "steps") == 0 || strcmp(unit, "step") == 0 ? u->batch : 0;
}

/* "10 epochs", "500 steps", "4096 samples" become numbers of samples. A number needs its unit, because `warmup: 100`
 * would look like steps; only 0 is the same in all units. */
static cvy_status duration_to_samples(cvy_pool *pool, const units *u, const char *key, cvy_tree *node)
{
    char *text = NULL, *end = NULL;
    const double number = strtod(node->text, &end);
    const char *unit = end + strspn(end, " ");
    const double each = samples_in(u, unit);
    if (end == node->text || (number == 0 && !*unit))
        return CVY_OK; /* the option's own parser accepts or rejects it */
    CVY_CHECK(*unit, CVY_E_CONFIG,
              "%s: schedule: %s is %s, a number without a unit; write \"%s steps\", \"%s epochs\" or \"%s samples\"",
              cvy_tree_where(node), key, node->text, node->text, node->text, node->text);
    CVY_CHECK(
        each > 0, CVY_E_CONFIG,
        "%s: schedule: %s is \"%s\", which is not a duration; expected a number of steps, epochs or samples, such "
        "as \"10 epochs\"",
        cvy_tree_where(node), key, node->text);
    CVY_CHECK(number >= 0, CVY_E_CONFIG, "%s: schedule: %s is \"%s\", expected a duration that is not negative",
              cvy_tree_where(node), key, node->text);
    CVY_TRY(cvy_pool_printf(pool, &text, "%.17g", number * each));
    node->text = text;
    node->quoted = 0;
    return CVY_OK;
}

/* Copies the value of `key`, a duration or a list of them, with its durations in samples. */
static cvy_status to_samples(cvy_pool *pool, const units *u, const char *key, const cvy_tree *node, cvy_tree **out)
{
    cvy_tree *copy = NULL;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *copy, &copy));
    *copy = *node;
    *out = copy;
    if (node->kind == CVY_TREE_SCALAR && node->text)
        return duration_to_samples(pool, u, key, copy);
    if (node->kind != CVY_TREE_LIST)
        return CVY_OK;
    CVY_CHECK(node->count > 0, CVY_E_CONFIG, "%s: schedule: %s is an empty list, expected at least one duration",
              cvy_tree_where(node), key);
    CVY_TRY(cvy_pool_alloc(pool, sizeof *copy->child * (size_t)CVY_MAX(node->count, 1), &copy->child));
    for (int i = 0; i < node->count; i++)
        CVY_TRY(to_samples(pool, u, key, node->child[i], &copy->child[i]));
    return CVY_OK;
}

static const cvy_option *find_row(const cvy_option *rows, const char *key)
{
    for (; rows && rows->name; rows++)
        if (strcmp(rows->name, key) == 0)
            return rows;
    return NULL;
}

/* Separates the keys of the user's map into those of the warm-up and those of the schedule, and turns durations into
 * samples. */
static cvy_status sort_keys(cvy_schedule *s, const units *u, const cvy_tree *map, cvy_tree *warmup, cvy_tree *own)
{
    for (int i = 0; i < map->count; i++) {
        if (strcmp(map->key[i], "name") == 0)
            continue;
        const cvy_option *row = find_row(warmup_opts, map->key[i]);
        cvy_tree *to = row ? warmup : own, *value = map->child[i];
        if (!row)
            row = find_row(s->def->options, map->key[i]);
        if (row && strcmp(row->unit, "samples") == 0)
            CVY_TRY(to_samples(s->pool, u, map->key[i], value, &value));
        value->used = 1;
        map->child[i]->used = 1;
        CVY_TRY(cvy_tree_set(s->pool, to, map->key[i], value));
        if (map->key_at)
            to->key_at[to->count - 1] = map->key_at[i]; /* so that the message of an unknown key shows its line */
    }
    return CVY_OK;
}

static cvy_status find_schedule(const cvy_tree *name, const cvy_schedule_def **out)
{
    static const cvy_table_query query = {.what = "schedule"};
    int count = 0;
    const cvy_schedule_def *const *table = cvy_schedule_table(&count);
    const cvy_status status = cvy_table_find(table, count, &query, name ? name->text : "constant", out);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s", name ? cvy_tree_where(name) : "(default)");
}

static cvy_status parse(cvy_schedule *s, const units *u, double batch_factor, const cvy_tree *tree)
{
    const int is_map = tree && tree->kind == CVY_TREE_MAP;
    const cvy_tree *name = is_map ? cvy_tree_get(tree, "name") : tree;
    cvy_tree *warmup = NULL, *own = NULL;
    CVY_CHECK(!tree || (name && name->kind == CVY_TREE_SCALAR && name->text), CVY_E_CONFIG,
              "%s: a schedule is a name, or a map with the key \"name\"", cvy_tree_where(tree));
    CVY_TRY(find_schedule(name, &s->def));
    CVY_TRY(cvy_tree_new_map(s->pool, tree ? tree->file : "schedule", &warmup));
    CVY_TRY(cvy_tree_new_map(s->pool, tree ? tree->file : "schedule", &own));
    if (tree) {
        own->line = tree->line;
        own->column = tree->column;
    }
    if (is_map)
        CVY_TRY(sort_keys(s, u, tree, warmup, own));
    CVY_TRY(cvy_options_parse(s->pool, "schedule", warmup_opts, warmup, NULL, &s->ramp, sizeof s->ramp));
    if (batch_factor > 0 && cvy_tree_is_null(cvy_tree_get(warmup, "warmup_from")))
        s->ramp.warmup_from = CVY_MIN(1, 1 / batch_factor);
    CVY_TRY(cvy_pool_alloc(s->pool, s->def->options_size, &s->options));
    CVY_TRY(cvy_options_parse(s->pool, "schedule", s->def->options, own, NULL, s->options, s->def->options_size));
    const cvy_status status = s->def->check ? s->def->check(s->options) : CVY_OK;
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s: schedule", cvy_tree_where(own));
}

cvy_status cvy_schedule_create(const cvy_tree *tree, const cvy_schedule_run *run, cvy_schedule **out)
{
    cvy_schedule *s = NULL;
    cvy_status status = CVY_OK;
    const units u = {run->epoch_samples, run->batch};
    if (cvy_tree_is_null(tree))
        tree = NULL;
    CVY_TRY(cvy_handle_alloc(CVY_HANDLE_SCHEDULE, sizeof *s, &s));
    s->lr = run->lr * (run->batch_factor > 0 ? run->batch_factor : 1);
    s->total = run->total_samples;
    s->epoch = run->epoch_samples;
    CVY_TRY_OUT(cvy_pool_create(&s->pool));
    CVY_TRY_OUT(parse(s, &u, run->batch_factor, tree));
    *out = s;
    return CVY_OK;
out:
    cvy_schedule_destroy(&s);
    return status;
}

double cvy_schedule_lr(const cvy_schedule *s, double samples)
{
    CVY_ENTRY();
    if (CVY_KNOWN(SCHEDULE, s) != CVY_OK)
        return 0;
    const double factor = s->def->factor(s->options, samples, s->total, s->epoch), from = s->ramp.warmup_from;
    const double ramp = samples < s->ramp.warmup ? from + (1 - from) * samples / s->ramp.warmup : 1;
    return s->lr * factor * ramp;
}

/* Whether the factor is the same in all steps. Of a long training a thousand of them are looked at, and the last. */
static int is_constant(const cvy_schedule *s, int64_t steps)
{
    const int64_t n = CVY_MIN(steps, 1000);
    const double each = s->total / (double)steps, first = s->def->factor(s->options, 0, s->total, s->epoch);
    for (int64_t i = 1; i < n; i++) {
        const double step = i == n - 1 ? (double)(steps - 1) : floor((double)i * (double)steps / (double)n);
        if (s->def->factor(s->options, step * each, s->total, s->epoch) != first)
            return 0;
    }
    return 1;
}

void cvy_schedule_list_idle(const cvy_schedule *s, int64_t steps, cvy_text *out)
{
    const size_t before = out->bytes;
    for (const cvy_option *row = s->def->options; row && row->name; row++) {
        const cvy_reals *times = (const cvy_reals *)((const char *)s->options + row->offset);
        for (int i = 0; row->type == CVY_TYPE_REALS && strcmp(row->unit, "samples") == 0 && i < times->count; i++)
            if (times->at[i] >= s->total)
                cvy_text_add(out, "%s%s: %s at epoch %.6g has no effect: the training ends at epoch %.6g",
                             out->bytes > before ? "; " : "", s->def->name, row->name, times->at[i] / s->epoch,
                             s->total / s->epoch);
    }
    if (out->bytes == before && steps > 1 && strcmp(s->def->name, "constant") != 0 && is_constant(s, steps))
        cvy_text_add(out,
                     "%s has no effect: it does not change the learning rate within the %.6g epochs of the training",
                     s->def->name, s->total / s->epoch);
}

double cvy_schedule_warmup(const cvy_schedule *s)
{
    return s->ramp.warmup;
}

double cvy_schedule_warmup_from(const cvy_schedule *s)
{
    return s->ramp.warmup_from;
}

const char *cvy_schedule_name(const cvy_schedule *s)
{
    return s->def->name;
}

const void *cvy_schedule_field(const cvy_schedule *s, const char *name, cvy_option_type type)
{
    const cvy_option *row = find_row(s->def->options, name);
    return row && row->type == type ? (const char *)s->options + row->offset : NULL;
}

void cvy_schedule_destroy(cvy_schedule **s)
{
    CVY_ENTRY();
    if (!CVY_IS_LIVE_AT(SCHEDULE, s))
        return;
    cvy_pool_destroy(&(*s)->pool);
    cvy_handle_free(s);
}
