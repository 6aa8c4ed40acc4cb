/*
 * base_tree.c: operations on a parsed document: find, set, copy, read typed values, find keys that nobody used.
 *
 * base_tree_parse.c makes trees, base_tree_print.c prints them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_tree.h"

#include "base/text/base_table.h"
#include "base/text/base_text.h"

enum { WHERE_BYTES = 512, WHERE_RING = 8 };

const char *cvy_tree_where(const cvy_tree *node)
{
    static _Thread_local char ring[WHERE_RING][WHERE_BYTES];
    static _Thread_local unsigned next;
    char *text = ring[next++ % WHERE_RING];
    if (!node)
        snprintf(text, WHERE_BYTES, "(nowhere)");
    else if (node->line == 0)
        snprintf(text, WHERE_BYTES, "%s", node->file);
    else
        snprintf(text, WHERE_BYTES, "%s:%d:%d", node->file, node->line, node->column);
    return text;
}

int cvy_tree_is_null(const cvy_tree *node)
{
    if (!node || (node->kind == CVY_TREE_SCALAR && !node->text))
        return 1;
    if (node->kind != CVY_TREE_SCALAR || node->quoted)
        return 0;
    return node->text[0] == 0 || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0;
}

/* ---- find and build ---- */

static int find_key(const cvy_tree *map, const char *key)
{
    if (map && map->kind == CVY_TREE_MAP)
        for (int i = 0; i < map->count; i++)
            if (strcmp(map->key[i], key) == 0)
                return i;
    return -1;
}

cvy_tree *cvy_tree_get(const cvy_tree *map, const char *key)
{
    const int i = find_key(map, key);
    if (i < 0)
        return NULL;
    map->child[i]->used = 1;
    return map->child[i];
}

const cvy_tree *cvy_tree_at(const cvy_tree *map, const char *path)
{
    char key[64];
    while (map && *path) {
        const size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        map = map->kind == CVY_TREE_MAP ? cvy_tree_get(map, key) : NULL;
        path += n + (path[n] == '.');
    }
    return map;
}

static cvy_status new_node(cvy_pool *pool, const char *file, cvy_tree_kind kind, const char *text, cvy_tree **out)
{
    cvy_tree *node = NULL;
    char *copy = NULL, *file_copy = NULL;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *node, &node));
    CVY_TRY(cvy_pool_strdup(pool, file, &file_copy));
    if (text)
        CVY_TRY(cvy_pool_strdup(pool, text, &copy));
    node->kind = kind;
    node->file = file_copy;
    node->text = copy;
    *out = node;
    return CVY_OK;
}

cvy_status cvy_tree_new_map(cvy_pool *pool, const char *file, cvy_tree **out)
{
    return new_node(pool, file, CVY_TREE_MAP, NULL, out);
}

cvy_status cvy_tree_new_scalar(cvy_pool *pool, const char *file, const char *text, cvy_tree **out)
{
    return new_node(pool, file, CVY_TREE_SCALAR, text, out);
}

static cvy_status append_child(cvy_pool *pool, cvy_tree *map, const char *key, cvy_tree *value)
{
    const size_t count = (size_t)map->count;
    cvy_tree **child = NULL, **key_at = NULL, *where = NULL;
    const char **keys = NULL;
    CVY_TRY(cvy_pool_alloc(pool, (count + 1) * sizeof *child, &child));
    CVY_TRY(cvy_pool_alloc(pool, (count + 1) * sizeof *key_at, &key_at));
    CVY_TRY(cvy_pool_alloc(pool, (count + 1) * sizeof *keys, &keys));
    CVY_TRY(new_node(pool, value->file, CVY_TREE_SCALAR, key, &where));
    where->line = value->line;
    where->column = value->column;
    if (count > 0) {
        memcpy(child, map->child, count * sizeof *child);
        memcpy(key_at, map->key_at, count * sizeof *key_at);
        memcpy(keys, map->key, count * sizeof *keys);
    }
    child[count] = value;
    key_at[count] = where;
    keys[count] = where->text;
    map->child = child;
    map->key_at = key_at;
    map->key = keys;
    map->count++;
    return CVY_OK;
}

/* The map under key; it is created if there is no value. Another value there is an error, so that a mistyped path
 * cannot overwrite a list. */
static cvy_status descend(cvy_pool *pool, cvy_tree *map, const char *key, const cvy_tree *value, cvy_tree **out)
{
    const int i = find_key(map, key);
    cvy_tree *next = i < 0 ? NULL : map->child[i];
    if (!next || cvy_tree_is_null(next)) {
        CVY_TRY(cvy_tree_new_map(pool, value->file, &next));
        if (i < 0)
            CVY_TRY(append_child(pool, map, key, next));
        else
            map->child[i] = next;
    }
    CVY_CHECK(next->kind == CVY_TREE_MAP, CVY_E_CONFIG,
              "%s: cannot set a key below \"%s\": the value at %s is not a map", cvy_tree_where(value), key,
              cvy_tree_where(next));
    *out = next;
    return CVY_OK;
}

cvy_status cvy_tree_set(cvy_pool *pool, cvy_tree *map, const char *path, cvy_tree *value)
{
    CVY_EXPECT(map->kind == CVY_TREE_MAP);
    char *word = NULL;
    CVY_TRY(cvy_pool_strdup(pool, path, &word));
    for (char *dot = strchr(word, '.'); dot; dot = strchr(word, '.')) {
        *dot = 0;
        CVY_CHECK(*word, CVY_E_CONFIG, "%s: empty word in the key \"%s\"", cvy_tree_where(value), path);
        CVY_TRY(descend(pool, map, word, value, &map));
        word = dot + 1;
    }
    CVY_CHECK(*word, CVY_E_CONFIG, "%s: empty word in the key \"%s\"", cvy_tree_where(value), path);
    const int i = find_key(map, word);
    if (i < 0)
        return append_child(pool, map, word, value);
    map->child[i] = value;
    return CVY_OK;
}

cvy_status cvy_tree_copy(cvy_pool *pool, const cvy_tree *node, cvy_tree **out)
{
    cvy_tree *copy = NULL;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *copy, &copy));
    *copy = *node; /* the texts are shared, because they never change */
    copy->used = 0;
    const size_t count = (size_t)node->count;
    CVY_TRY(cvy_pool_alloc(pool, count * sizeof *copy->child, &copy->child));
    for (int i = 0; i < node->count; i++)
        CVY_TRY(cvy_tree_copy(pool, node->child[i], &copy->child[i]));
    if (node->kind == CVY_TREE_MAP) {
        CVY_TRY(cvy_pool_alloc(pool, count * sizeof *copy->key, &copy->key));
        CVY_TRY(cvy_pool_alloc(pool, count * sizeof *copy->key_at, &copy->key_at));
        for (int i = 0; i < node->count; i++) {
            copy->key[i] = node->key[i];
            copy->key_at[i] = node->key_at[i];
        }
    }
    *out = copy;
    return CVY_OK;
}

/* ---- typed scalars ---- */

static const struct {
    const char *text;
    double factor;
} suffixes[] = {{"", 1},         {"k", 1e3},      {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
                {"Ki", 0x1p10},  {"Mi", 0x1p20},  {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"KiB", 0x1p10},
                {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};

/* Copies a number without its underscores. */
static int clean_number(const char *text, char *out, size_t room)
{
    size_t n = 0;
    for (const char *c = text; *c; c++) {
        if (*c == '_' && c > text && strchr("0123456789", c[-1]) && c[1] && strchr("0123456789", c[1]))
            continue;
        if (!strchr("0123456789+-.eEkMGTiKB ", *c) || n + 1 >= room)
            return 0; /* also excludes hexadecimal numbers, inf and nan */
        out[n++] = *c;
    }
    out[n] = 0;
    return n > 0 && *out != ' ';
}

static int parse_number(const char *text, double *out)
{
    char clean[64], *end = NULL;
    if (!text || !clean_number(text, clean, sizeof clean))
        return 0;
    errno = 0;
    const double value = strtod(clean, &end);
    if (end == clean || (errno == ERANGE && fabs(value) > 1))
        return 0;
    while (*end == ' ')
        end++;
    for (int i = 0; i < CVY_COUNT(suffixes); i++)
        if (strcmp(end, suffixes[i].text) == 0) {
            *out = value * suffixes[i].factor;
            return 1;
        }
    return 0;
}

const char *cvy_tree_text_at(const cvy_tree *map, const char *path)
{
    const cvy_tree *at = cvy_tree_at(map, path);
    return at && at->kind == CVY_TREE_SCALAR && at->text && at->text[0] ? at->text : NULL;
}

double cvy_tree_real_or_nan(const cvy_tree *node)
{
    char *end = NULL;
    if (!node || node->kind != CVY_TREE_SCALAR || !node->text)
        return NAN;
    const double x = strtod(node->text, &end);
    return end == node->text || *end ? NAN : x;
}

double cvy_tree_real_at(const cvy_tree *map, const char *path)
{
    return cvy_tree_real_or_nan(cvy_tree_at(map, path));
}

cvy_status cvy_text_real(const char *text, double *out)
{
    CVY_CHECK(parse_number(text, out), CVY_E_ARGUMENT, "expected a number, got \"%s\"", text ? text : "");
    return CVY_OK;
}

cvy_status cvy_text_int(const char *text, int64_t *out)
{
    double value = 0;
    char *end = NULL;
    errno = 0;
    const long long exact = strtoll(text ? text : "", &end, 10); /* a double would lose digits beyond 2^53 */
    if (end != text && *end == 0 && text[0] != ' ' && errno == 0) {
        *out = exact;
        return CVY_OK;
    }
    CVY_CHECK(parse_number(text, &value) && value == floor(value), CVY_E_ARGUMENT,
              "expected a whole number, got \"%s\"", text ? text : "");
    CVY_CHECK(fabs(value) <= 9007199254740992.0, CVY_E_ARGUMENT, "expected a whole number below 2^53, got \"%s\"",
              text);
    *out = (int64_t)value;
    return CVY_OK;
}

static cvy_status check_unquoted(const cvy_tree *node, const char *expected)
{
    CVY_CHECK(node->kind == CVY_TREE_SCALAR, CVY_E_CONFIG, "%s: expected %s, got a %s", cvy_tree_where(node), expected,
              node->kind == CVY_TREE_LIST ? "list" : "map");
    CVY_CHECK(!cvy_tree_is_null(node), CVY_E_CONFIG, "%s: expected %s, got nothing", cvy_tree_where(node), expected);
    CVY_CHECK(!node->quoted, CVY_E_CONFIG, "%s: expected %s, got the text \"%s\"; remove the quotes",
              cvy_tree_where(node), expected, node->text);
    return CVY_OK;
}

cvy_status cvy_tree_int(const cvy_tree *node, int64_t *out)
{
    CVY_TRY(check_unquoted(node, "a whole number"));
    const cvy_status status = cvy_text_int(node->text, out);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(CVY_E_CONFIG, "%s", cvy_tree_where(node));
}

cvy_status cvy_tree_real(const cvy_tree *node, double *out)
{
    CVY_TRY(check_unquoted(node, "a number"));
    const cvy_status status = cvy_text_real(node->text, out);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(CVY_E_CONFIG, "%s", cvy_tree_where(node));
}

cvy_status cvy_tree_bool(const cvy_tree *node, int *out)
{
    CVY_TRY(check_unquoted(node, "true or false"));
    const char *word = cvy_bool_word(node->text);
    const int is_true = strcmp(word, "true") == 0;
    CVY_CHECK(is_true || strcmp(word, "false") == 0, CVY_E_CONFIG, "%s: expected true or false, got \"%s\"",
              cvy_tree_where(node), node->text);
    *out = is_true;
    return CVY_OK;
}

/* ---- unused keys ---- */

cvy_status cvy_tree_check_used(const cvy_tree *node, const char *const *known)
{
    int nknown = 0;
    while (known && known[nknown])
        nknown++;
    for (int i = 0; node && i < node->count; i++) {
        if (node->kind == CVY_TREE_MAP && !node->child[i]->used) {
            CVY_FAIL(CVY_E_CONFIG, "%s: unknown key \"%s\"%s", cvy_tree_where(node->key_at[i]), node->key[i],
                     cvy_hint_name('"', node->key[i], known, nknown).text);
        }
        CVY_TRY(cvy_tree_check_used(node->child[i], known));
    }
    return CVY_OK;
}
