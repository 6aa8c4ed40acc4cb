/*
 * base_option.c: fills a struct of options from a map, by the rows of a table. If that is not possible, the message
 * says exactly what is wrong.
 *
 * Defaults are texts that are parsed like the user's values. So the first test finds a default that is outside its own
 * bounds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/base_option.h"
#include "base/text/base_table.h"
#include "base/text/base_text.h"

typedef struct {
    cvy_pool *pool;
    const char *who;
    const cvy_option *row;
    const cvy_tree *node; /* the value; every message has its place */
} setting;

/* "job.yaml:3:9: layer conv1: kernel: ..." */
static cvy_status explain(const setting *s, const char *expected)
{
    const cvy_tree *n = s->node;
    const char *got = n->kind == CVY_TREE_LIST  ? "a list"
                      : n->kind == CVY_TREE_MAP ? "a map"
                      : n->text                 ? n->text
                                                : "nothing";
    const char *quote = n->kind == CVY_TREE_SCALAR ? "\"" : "";
    const char *unit = s->row->unit ? s->row->unit : "";
    CVY_FAIL(CVY_E_CONFIG, "%s: %s: %s is %s%s%s, expected %s%s%s%s", cvy_tree_where(n), s->who, s->row->name, quote,
             got, quote, expected, *unit ? " (" : "", unit, *unit ? ")" : "");
}

/* ---- bounds: terms separated by spaces: "1..", "0..1", ">0", "<1", "odd", "even" ---- */

/* The number of a bound, or `otherwise` if there is none. */
static double bound(const char *text, double otherwise)
{
    double value = otherwise;
    return *text && cvy_text_real(text, &value) == CVY_OK ? value : otherwise;
}

static int obeys_term(const char *term, size_t length, double value)
{
    char text[48];
    snprintf(text, sizeof text, "%.*s", (int)length, term);
    if (strcmp(text, "odd") == 0)
        return fmod(value, 2) != 0;
    if (strcmp(text, "even") == 0)
        return fmod(value, 2) == 0;
    if (text[0] == '>')
        return value > bound(text + 1, INFINITY);
    if (text[0] == '<')
        return value < bound(text + 1, -INFINITY);
    char *dots = strstr(text, "..");
    if (!dots)
        return 0; /* a mistake in the table: no value is accepted, so the first test finds it */
    *dots = 0;
    return value >= bound(text, -INFINITY) && value <= bound(dots + 2, INFINITY);
}

static cvy_status check_bounds(const setting *s, double value)
{
    for (const char *term = s->row->valid ? s->row->valid : ""; *term;) {
        const size_t length = strcspn(term, " ");
        if (!obeys_term(term, length, value))
            return explain(s, s->row->valid);
        term += length;
        term += strspn(term, " ");
    }
    return CVY_OK;
}

/* ---- one value, by its type ---- */

static cvy_status set_int(const setting *s, const cvy_tree *node, int64_t *out)
{
    int64_t value = 0;
    if (node->kind != CVY_TREE_SCALAR || node->quoted || cvy_text_int(node->text, &value) != CVY_OK)
        return explain(&(setting){s->pool, s->who, s->row, node}, "a whole number");
    CVY_TRY(check_bounds(&(setting){s->pool, s->who, s->row, node}, (double)value));
    *out = value;
    return CVY_OK;
}

static cvy_status set_real(const setting *s, const cvy_tree *node, double *out)
{
    double value = 0;
    if (node->kind != CVY_TREE_SCALAR || node->quoted || cvy_text_real(node->text, &value) != CVY_OK)
        return explain(&(setting){s->pool, s->who, s->row, node}, "a number");
    CVY_TRY(check_bounds(&(setting){s->pool, s->who, s->row, node}, value));
    *out = value;
    return CVY_OK;
}

/* A number or a list of numbers; a default "" is an empty list. */
static cvy_status check_list(const setting *s)
{
    if (s->node->kind == CVY_TREE_MAP)
        return explain(s, "a number or a list of numbers");
    CVY_CHECK(s->node->count <= CVY_LIST_MAX, CVY_E_CONFIG, "%s: %s: %s has %d numbers, expected at most %d",
              cvy_tree_where(s->node), s->who, s->row->name, s->node->count, CVY_LIST_MAX);
    return CVY_OK;
}

static cvy_status set_ints(const setting *s, cvy_ints *out)
{
    CVY_TRY(check_list(s));
    const int is_list = s->node->kind == CVY_TREE_LIST;
    out->count = is_list ? s->node->count : 1;
    for (int i = 0; i < out->count; i++)
        CVY_TRY(set_int(s, is_list ? s->node->child[i] : s->node, &out->at[i]));
    return CVY_OK;
}

static cvy_status set_reals(const setting *s, cvy_reals *out)
{
    CVY_TRY(check_list(s));
    const int is_list = s->node->kind == CVY_TREE_LIST;
    out->count = is_list ? s->node->count : 1;
    for (int i = 0; i < out->count; i++)
        CVY_TRY(set_real(s, is_list ? s->node->child[i] : s->node, &out->at[i]));
    return CVY_OK;
}

static cvy_status set_choice(const setting *s, int *out)
{
    char words[512], *word[32], *rest = NULL;
    int count = 0;
    snprintf(words, sizeof words, "%s", s->row->valid);
    for (char *w = strtok_r(words, "|", &rest); w && count < CVY_COUNT(word); w = strtok_r(NULL, "|", &rest))
        word[count++] = w;
    if (s->node->kind == CVY_TREE_SCALAR)
        for (int i = 0; i < count; i++)
            if (strcmp(word[i], s->node->text) == 0 || strcmp(word[i], cvy_bool_word(s->node->text)) == 0) {
                *out = i;
                return CVY_OK;
            }
    cvy_name_hint hint = {""};
    if (s->node->kind == CVY_TREE_SCALAR)
        hint = cvy_hint_name('"', s->node->text, (const char *const *)word, count);
    char expected[600];
    snprintf(expected, sizeof expected, "%s%s", s->row->valid, hint.text);
    return explain(s, expected);
}

static cvy_status set_string(const setting *s, const char **out)
{
    char *copy = NULL;
    if (s->node->kind != CVY_TREE_SCALAR)
        return explain(s, "a word or text");
    if (s->node->text[0])
        CVY_TRY(cvy_pool_strdup(s->pool, s->node->text, &copy)); /* the map may be freed before the options are */
    *out = copy;
    return CVY_OK;
}

static cvy_status set_field(const setting *s, void *field)
{
    switch (s->row->type) {
    case CVY_TYPE_INT: return set_int(s, s->node, field);
    case CVY_TYPE_REAL: return set_real(s, s->node, field);
    case CVY_TYPE_BOOL:
        return s->node->kind == CVY_TREE_SCALAR && cvy_tree_bool(s->node, field) == CVY_OK
                   ? CVY_OK
                   : explain(s, "true or false");
    case CVY_TYPE_CHOICE: return set_choice(s, field);
    case CVY_TYPE_STRING: return set_string(s, field);
    case CVY_TYPE_INTS: return set_ints(s, field);
    case CVY_TYPE_REALS: return set_reals(s, field);
    case CVY_TYPE_TREE: *(const cvy_tree **)field = s->node; return CVY_OK;
    }
    CVY_FAIL(CVY_E_INTERNAL, "option %s has the unknown type %d", s->row->name, (int)s->row->type);
}

/* Makes a node of the default's text and sets the field from it. Lists and trees are YAML; words and numbers are taken
 * as they are. With an empty text the field stays zero. */
static cvy_status set_fallback(setting *s, const cvy_tree *map, void *field)
{
    CVY_CHECK(s->row->fallback, CVY_E_CONFIG, "%s: %s: the key \"%s\" is missing (%s)",
              map ? cvy_tree_where(map) : "(no options given)", s->who, s->row->name, s->row->help);
    if (!s->row->fallback[0])
        return CVY_OK;
    cvy_tree *node = NULL;
    const int is_yaml =
        s->row->type == CVY_TYPE_INTS || s->row->type == CVY_TYPE_REALS || s->row->type == CVY_TYPE_TREE;
    if (is_yaml)
        CVY_TRY(cvy_tree_parse_text(s->pool, "default", s->row->fallback, strlen(s->row->fallback), &node));
    else
        CVY_TRY(cvy_tree_new_scalar(s->pool, "default", s->row->fallback, &node));
    s->node = node;
    return set_field(s, field);
}

/* ---- the whole map ---- */

static const cvy_option *find_row(const cvy_option *rows, const char *name)
{
    for (const cvy_option *row = rows; row && row->name; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

static int is_listed(const char *const *names, const char *name)
{
    for (int i = 0; names && names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return 1;
    return 0;
}

static cvy_status unknown_key(const char *who, const cvy_option *rows, const char *const *extra, const cvy_tree *key)
{
    enum { NAME_MAX_COUNT = 128 };
    const char *names[NAME_MAX_COUNT] = {0};
    int count = 0;
    cvy_text list = {0};
    for (const cvy_option *row = rows; row && row->name && count < NAME_MAX_COUNT; row++)
        names[count++] = row->name;
    for (int i = 0; extra && extra[i] && count < NAME_MAX_COUNT; i++)
        names[count++] = extra[i];
    for (int i = 0; i < count; i++)
        cvy_text_add(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    const char *near = cvy_text_nearest(key->text, names, count);
    if (near)
        cvy_error_set(CVY_E_CONFIG, "%s: %s: unknown key \"%s\"; did you mean \"%s\"?", cvy_tree_where(key), who,
                      key->text, near);
    else if (count > 0)
        cvy_error_set(CVY_E_CONFIG, "%s: %s: unknown key \"%s\", expected one of: %s", cvy_tree_where(key), who,
                      key->text, list.data ? list.data : "");
    else
        cvy_error_set(CVY_E_CONFIG, "%s: %s: unknown key \"%s\"; it has no options", cvy_tree_where(key), who,
                      key->text);
    cvy_text_free(&list);
    return CVY_E_CONFIG;
}

static cvy_status check_keys(const char *who, const cvy_option *rows, const cvy_tree *map, const char *const *extra)
{
    CVY_CHECK(map->kind == CVY_TREE_MAP, CVY_E_CONFIG, "%s: %s: expected keys and values, got a %s",
              cvy_tree_where(map), who, map->kind == CVY_TREE_LIST ? "list" : "single value");
    for (int i = 0; i < map->count; i++)
        if (!find_row(rows, map->key[i]) && !is_listed(extra, map->key[i]))
            return unknown_key(who, rows, extra, map->key_at[i]);
    return CVY_OK;
}

cvy_status cvy_options_parse(cvy_pool *pool, const char *who, const cvy_option *rows, const cvy_tree *map,
                             const char *const *extra, void *fields, size_t size)
{
    if (cvy_tree_is_null(map))
        map = NULL;
    if (size > 0)
        memset(fields, 0, size);
    if (map)
        CVY_TRY(check_keys(who, rows, map, extra));
    for (const cvy_option *row = rows; row && row->name; row++) {
        void *field = (char *)fields + row->offset;
        setting s = {pool, who, row, map ? cvy_tree_get(map, row->name) : NULL};
        if (cvy_tree_is_null(s.node)) /* not given, or given as null */
            CVY_TRY(set_fallback(&s, map, field));
        else
            CVY_TRY(set_field(&s, field));
    }
    return CVY_OK;
}

cvy_status cvy_options_parse_text(cvy_pool *pool, const char *who, const cvy_option *rows, const char *text,
                                  void *fields, size_t size)
{
    cvy_tree *map = NULL;
    char *file = NULL, *braced = NULL;
    text = text ? text + strspn(text, " \t\n") : "";
    if (*text) {
        CVY_TRY(cvy_pool_printf(pool, &file, "options of %s", who));
        CVY_TRY(cvy_pool_printf(pool, &braced, *text == '{' ? "%s" : "{%s}", text));
        CVY_TRY(cvy_tree_parse_text(pool, file, braced, strlen(braced), &map));
    }
    return cvy_options_parse(pool, who, rows, map, NULL, fields, size);
}
