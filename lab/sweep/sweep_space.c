/*
 * sweep_space.c: the part of a sweep file that says which keys of the job vary, over which values, and which keys all
 * trials override in the same way.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sweep/sweep_search.h"

cvy_status cvy_sweep_print_node(cvy_pool *pool, const char *before, const cvy_tree *node, const char **out)
{
    char *line = NULL, *copy = NULL;
    if (node)
        CVY_TRY(cvy_tree_print_line(node, &line));
    const cvy_status status = cvy_pool_printf(pool, &copy, "%s%s", before, line ? line : "");
    cvy_mem_free(&line);
    CVY_TRY(status);
    *out = copy;
    return CVY_OK;
}

/* ---- lists ---- */

static cvy_status read_list(const cvy_sweep_spec *spec, const cvy_tree *list, cvy_sweep_key *key)
{
    CVY_CHECK(list->count > 0, CVY_E_CONFIG, "%s: space.%s is an empty list: give it values, or leave it out",
              key->where, key->name);
    CVY_CHECK(list->count <= CVY_SWEEP_TRIALS_MAX, CVY_E_CONFIG,
              "%s: space.%s has %d values, expected at most %d: take a range, such as {uniform: [0, 1]}", key->where,
              key->name, list->count, CVY_SWEEP_TRIALS_MAX);
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *key->value * (size_t)list->count, &key->value));
    for (int i = 0; i < list->count; i++) {
        const char **value = &key->value[key->nvalues++];
        CVY_TRY(cvy_sweep_print_node(spec->pool, "", list->child[i], value));
        for (int k = 0; k < i; k++)
            CVY_CHECK(strcmp(key->value[k], *value) != 0, CVY_E_CONFIG,
                      "%s: space.%s has the value %s twice, and equal trials would be trained: leave one out",
                      cvy_tree_where(list->child[i]), key->name, *value);
    }
    return CVY_OK;
}

/* ---- ranges ---- */

static const char *const range_words[] = {"uniform", "log_uniform", "int_uniform", "int_log_uniform", "points", NULL};

/* Finds the kind of a range, and the list of its ends. */
static cvy_status find_range(const cvy_tree *map, cvy_sweep_key *key, const cvy_tree **ends_out)
{
    const cvy_tree *ends = NULL;
    const char *first = NULL;
    for (int i = 0; map->kind == CVY_TREE_MAP && i < 4; i++) {
        const cvy_tree *node = cvy_tree_get(map, range_words[i]);
        CVY_CHECK(!node || !ends, CVY_E_CONFIG, "%s: space.%s is a range of two kinds, %s and %s: leave one out",
                  key->where, key->name, first, range_words[i]);
        if (!node)
            continue;
        ends = node;
        first = range_words[i];
        key->kind = i % 2 ? CVY_SWEEP_LOG_UNIFORM : CVY_SWEEP_UNIFORM;
        key->is_whole = i >= 2;
    }
    for (int i = 0; ends && i < ends->count; i++)
        ends->child[i]->used = 1;
    CVY_TRY(cvy_tree_check_used(map, range_words));
    CVY_CHECK(ends && ends->kind == CVY_TREE_LIST && ends->count == 2, CVY_E_CONFIG,
              "%s: space.%s: expected a list of values, or a range such as {uniform: [0, 1]} or {log_uniform: [1e-4, "
              "0.1]}",
              key->where, key->name);
    *ends_out = ends;
    return CVY_OK;
}

static cvy_status read_ends(const cvy_tree *ends, cvy_sweep_key *key)
{
    double *const ends_of[] = {&key->low, &key->high};
    for (int i = 0; i < 2; i++)
        if (cvy_text_real(ends->child[i]->text, ends_of[i]) != CVY_OK)
            return cvy_error_prefix(CVY_E_CONFIG, "%s: space.%s, the %s end of its range",
                                    cvy_tree_where(ends->child[i]), key->name, i ? "second" : "first");
    CVY_CHECK(key->low <= key->high, CVY_E_CONFIG,
              "%s: space.%s goes from %g down to %g: exchange the ends, the lower one is first", key->where, key->name,
              key->low, key->high);
    CVY_CHECK(key->low < key->high, CVY_E_CONFIG,
              "%s: space.%s goes from %g to %g, which is one value: a fixed value belongs in set", key->where,
              key->name, key->low, key->high);
    CVY_CHECK(isfinite(key->high - key->low), CVY_E_CONFIG,
              "%s: space.%s goes from %g to %g, and the distance is no finite number: take ends that are nearer",
              key->where, key->name, key->low, key->high);
    CVY_CHECK(key->kind != CVY_SWEEP_LOG_UNIFORM || key->low > 0, CVY_E_CONFIG,
              "%s: space.%s begins at %g: the ends of a logarithmic range are above 0; take another end, or uniform",
              key->where, key->name, key->low);
    CVY_CHECK(!key->is_whole || (key->low == floor(key->low) && key->high == floor(key->high)), CVY_E_CONFIG,
              "%s: space.%s goes from %g to %g, expected integers: take whole ends, or uniform for real numbers",
              key->where, key->name, key->low, key->high);
    CVY_CHECK(!key->is_whole || (fabs(key->low) <= 0x1p53 && fabs(key->high) <= 0x1p53), CVY_E_CONFIG,
              "%s: space.%s goes from %g to %g: integers of a range are below 2^53", key->where, key->name, key->low,
              key->high);
    return CVY_OK;
}

/* The points of a range in a grid: both ends and points between, at equal distances or equal factors. */
static cvy_status read_points(const cvy_sweep_spec *spec, const cvy_tree *node, cvy_sweep_key *key)
{
    int64_t n = 0;
    if (cvy_text_int(node->text, &n) != CVY_OK)
        return cvy_error_prefix(CVY_E_CONFIG, "%s: space.%s, its points", cvy_tree_where(node), key->name);
    CVY_CHECK(n >= 2 && n <= CVY_SWEEP_TRIALS_MAX, CVY_E_CONFIG, "%s: space.%s has %lld points, expected 2 .. %d",
              key->where, key->name, (long long)n, CVY_SWEEP_TRIALS_MAX);
    CVY_CHECK(!key->is_whole || (double)n <= key->high - key->low + 1, CVY_E_CONFIG,
              "%s: space.%s has %lld points, but there are only %.0f integers from %.0f to %.0f: take fewer points",
              key->where, key->name, (long long)n, key->high - key->low + 1, key->low, key->high);
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *key->value * (size_t)n, &key->value));
    for (int64_t i = 0; i < n; i++) {
        const double x = cvy_sweep_between(key, key->high, (double)i / (double)(n - 1));
        CVY_TRY(cvy_sweep_print(spec->pool, key, key->is_whole ? round(x) : x, &key->value[i]));
    }
    key->nvalues = (int)n;
    return CVY_OK;
}

/* {uniform: [a, b]}, {log_uniform: [a, b], points: 4} */
static cvy_status read_range(const cvy_sweep_spec *spec, const cvy_tree *map, cvy_sweep_key *key)
{
    const cvy_tree *ends = NULL, *points = map->kind == CVY_TREE_MAP ? cvy_tree_get(map, "points") : NULL;
    CVY_TRY(find_range(map, key, &ends));
    CVY_TRY(read_ends(ends, key));
    return points ? read_points(spec, points, key) : CVY_OK;
}

/* ---- the space ---- */

/* Whether `name` is the key `map`, or a key of the map `map`: "train.optimizer.lr" of "train.optimizer". */
static int is_within(const char *name, size_t length, const char *map)
{
    const size_t n = strlen(map);
    return length >= n && strncmp(name, map, n) == 0 && (length == n || name[n] == '.');
}

/* Overrides are applied in their order, so a map that comes later would take a value back. */
static cvy_status check_order(const cvy_sweep_spec *spec, const cvy_sweep_key *key)
{
    for (const cvy_sweep_key *other = spec->key; other < key; other++)
        CVY_CHECK(!is_within(other->name, strlen(other->name), key->name), CVY_E_CONFIG,
                  "%s: space.%s would replace the value of %s: write it before that key", key->where, key->name,
                  other->name);
    return CVY_OK;
}

cvy_status cvy_sweep_read_space(cvy_sweep_spec *spec, const cvy_tree *space)
{
    CVY_CHECK(!cvy_tree_is_null(space) && space->kind == CVY_TREE_MAP && space->count > 0, CVY_E_CONFIG,
              "%s: space is %s, expected a map of keys and values, such as {train.batch: [32, 64]}",
              space ? cvy_tree_where(space) : spec->file,
              cvy_tree_is_null(space) || space->kind == CVY_TREE_MAP ? "empty" : "no map");
    CVY_CHECK(space->count <= CVY_SWEEP_KEYS_MAX, CVY_E_CONFIG, "%s: space has %d keys, at most %d can be searched",
              cvy_tree_where(space), space->count, CVY_SWEEP_KEYS_MAX);
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *spec->key * (size_t)space->count, &spec->key));
    for (int i = 0; i < space->count; i++) {
        cvy_sweep_key *key = &spec->key[spec->nkey++];
        char *where = NULL;
        const cvy_tree *values = cvy_tree_get(space, space->key[i]);
        CVY_TRY(cvy_pool_strdup(spec->pool, cvy_tree_where(space->key_at[i]), &where));
        key->name = space->key[i];
        key->where = where;
        CVY_TRY(check_order(spec, key));
        CVY_CHECK(values->kind != CVY_TREE_SCALAR, CVY_E_CONFIG,
                  "%s: space.%s is one value, expected a list or a range; a fixed value belongs in set", where,
                  key->name);
        CVY_TRY(values->kind == CVY_TREE_LIST ? read_list(spec, values, key) : read_range(spec, values, key));
    }
    return CVY_OK;
}

/* ---- overrides ---- */

/* An override of a key that trials vary, or of a key in a map that they replace, would have no effect. */
static cvy_status check_set(const cvy_sweep_spec *spec, const char *set)
{
    const size_t length = strcspn(set, "=");
    for (int i = 0; i < spec->nkey; i++)
        CVY_CHECK(!is_within(set, length, spec->key[i].name), CVY_E_CONFIG,
                  "%s: space.%s has the values of the trials, so the override %s has no effect: leave one of them out",
                  spec->key[i].where, spec->key[i].name, set);
    return CVY_OK;
}

cvy_status cvy_sweep_read_sets(cvy_sweep_spec *spec, const cvy_tree *map, const char *const *sets, int nsets)
{
    const int nown = cvy_tree_is_null(map) ? 0 : map->count;
    CVY_CHECK(!nown || map->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: set is a list, expected a map of keys and values",
              cvy_tree_where(map));
    CVY_TRY(cvy_pool_alloc(spec->pool, sizeof *spec->set * (size_t)(nown + nsets + 1), &spec->set));
    for (int i = 0; i < nown; i++) {
        char *before = NULL;
        CVY_TRY(cvy_pool_printf(spec->pool, &before, "%s=", map->key[i]));
        CVY_TRY(cvy_sweep_print_node(spec->pool, before, map->child[i], &spec->set[spec->nset++]));
    }
    for (int i = 0; i < nsets; i++) {
        char *set = NULL;
        CVY_TRY(cvy_pool_strdup(spec->pool, sets[i], &set));
        spec->set[spec->nset++] = set;
    }
    for (int i = 0; i < spec->nset; i++)
        CVY_TRY(check_set(spec, spec->set[i]));
    return CVY_OK;
}
