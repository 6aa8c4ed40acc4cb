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
#include <stdlib.h>
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

/* "job.yaml:3:9: layer conv1: kernel is "x", expected ..." */
static cvy_status explain_with(const setting *s, const char *expected, const char *hint)
{
    const cvy_tree *n = s->node;
    const char *got = n->kind == CVY_TREE_LIST  ? "a list"
                      : n->kind == CVY_TREE_MAP ? "a map"
                      : n->text                 ? n->text
                                                : "nothing";
    const char *quote = n->kind == CVY_TREE_SCALAR ? "\"" : "";
    const char *unit = s->row->unit ? s->row->unit : "";
    if (!s->who)
        CVY_FAIL(CVY_E_CONFIG, "%s is %s%s%s, expected %s%s%s%s%s", s->row->name, quote, got, quote, expected,
                 *unit ? " (" : "", unit, *unit ? ")" : "", hint);
    CVY_FAIL(CVY_E_CONFIG, "%s: %s: %s is %s%s%s, expected %s%s%s%s%s", cvy_tree_where(n), s->who, s->row->name, quote,
             got, quote, expected, *unit ? " (" : "", unit, *unit ? ")" : "", hint);
}

static cvy_status explain(const setting *s, const char *expected)
{
    return explain_with(s, expected, "");
}

/* The same with what the row accepts, and the word that was probably meant. */
static cvy_status explain_words(const setting *s)
{
    enum { WORDS_MAX = 32, WORD_ROOM = 40 };
    char room[WORDS_MAX][WORD_ROOM];
    const char *word[WORDS_MAX], *at = s->row->valid;
    int count = 0;
    cvy_option_term term;
    cvy_text expected = {0};
    cvy_name_hint hint = {""};
    for (; count < WORDS_MAX && cvy_option_next_word(s->row, &at, &term); count++) {
        snprintf(room[count], WORD_ROOM, "%.*s", term.word_length, term.word);
        word[count] = room[count];
    }
    cvy_option_print_valid(s->row, &expected);
    if (s->node->kind == CVY_TREE_SCALAR && s->node->text)
        hint = cvy_hint_name('"', s->node->text, word, count);
    const cvy_status status = expected.status == CVY_OK ? explain_with(s, expected.data, hint.text) : expected.status;
    cvy_text_free(&expected);
    return status;
}

/* ---- what a row accepts: terms with spaces or bars between them ---- */

/* The number of a bound, or `otherwise` if there is none. */
static double bound(const char *text, double otherwise)
{
    double value = otherwise;
    return *text && cvy_text_real(text, &value) == CVY_OK ? value : otherwise;
}

/* Bounds: "1..", "0..1", ">0", "<1", "odd", "even", "2^n". */
static int obeys_term(const char *term, size_t length, double value)
{
    char text[48];
    int exponent = 0;
    snprintf(text, sizeof text, "%.*s", (int)length, term);
    if (strchr(text, '=')) /* a word */
        return 1;
    if (strcmp(text, "odd") == 0)
        return fmod(value, 2) != 0;
    if (strcmp(text, "even") == 0)
        return fmod(value, 2) == 0;
    if (strcmp(text, "2^n") == 0)
        return value >= 1 && frexp(value, &exponent) == 0.5;
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

static int is_within(const cvy_option *row, double value)
{
    for (const char *term = row->valid ? row->valid : ""; *term; term += strspn(term, " ")) {
        const size_t length = strcspn(term, " ");
        if (!obeys_term(term, length, value))
            return 0;
        term += length;
    }
    return 1;
}

/* Whether a scalar is this word. All words that YAML has for true and false are the same. */
static int is_word(const cvy_tree *node, const cvy_option_term *term)
{
    const char *text = node->kind == CVY_TREE_SCALAR && node->text ? node->text : "";
    const char *const same[] = {text, cvy_bool_word(text)};
    for (int i = 0; i < CVY_COUNT(same); i++)
        if (strlen(same[i]) == (size_t)term->word_length && strncmp(same[i], term->word, strlen(same[i])) == 0)
            return 1;
    return 0;
}

/* Finds the word that the scalar is. index_out: its place in `valid`. */
static int find_word(const cvy_option *row, const cvy_tree *node, cvy_option_term *out, int *index_out)
{
    const char *at = row->valid;
    for (*index_out = 0; cvy_option_next_word(row, &at, out); ++*index_out)
        if (is_word(node, out))
            return 1;
    return 0;
}

static int has_words(const cvy_option *row)
{
    const char *at = row->valid;
    cvy_option_term term;
    return cvy_option_next_word(row, &at, &term);
}

/* The number that a word of an INT row stands for. */
static int64_t word_number(const cvy_option_term *term)
{
    return term->value ? strtoll(term->value, NULL, 10) : 0;
}

/* ---- one value, by its type ---- */

static cvy_status set_int(const setting *s, const cvy_tree *node, int64_t *out)
{
    const setting at = {s->pool, s->who, s->row, node};
    cvy_option_term term;
    int64_t value = 0;
    int index = 0;
    if (find_word(s->row, node, &term, &index)) {
        *out = word_number(&term);
        return CVY_OK;
    }
    if (node->kind != CVY_TREE_SCALAR || node->quoted || cvy_text_int(node->text, &value) != CVY_OK)
        return has_words(s->row) ? explain_words(&at) : explain(&at, "a whole number");
    if (!is_within(s->row, (double)value))
        return explain_words(&at);
    *out = value;
    return CVY_OK;
}

static cvy_status set_real(const setting *s, const cvy_tree *node, double *out)
{
    const setting at = {s->pool, s->who, s->row, node};
    double value = 0;
    if (node->kind != CVY_TREE_SCALAR || node->quoted || cvy_text_real(node->text, &value) != CVY_OK)
        return explain(&at, "a number");
    if (!is_within(s->row, value))
        return explain(&at, s->row->valid);
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

/* "2", [2, 2], or in a text "2,2". */
static cvy_status set_int3(const setting *s, int64_t out[3])
{
    const cvy_tree *node = s->node;
    cvy_tree *list = NULL;
    cvy_ints numbers = {0};
    char *text = NULL;
    if (node->kind == CVY_TREE_SCALAR && !node->quoted && node->text && strpbrk(node->text, ",[")) {
        cvy_pool *pool = NULL;
        CVY_TRY(cvy_pool_create(&pool));
        cvy_status status = cvy_pool_printf(pool, &text, *node->text == '[' ? "%s" : "[%s]", node->text);
        if (status == CVY_OK && cvy_tree_parse_text(pool, s->row->name, text, strlen(text), &list) != CVY_OK)
            status = explain(s, "up to three whole numbers");
        if (status == CVY_OK)
            status = set_int3(&(setting){pool, s->who, s->row, list}, out);
        cvy_pool_destroy(&pool);
        return status;
    }
    CVY_TRY(set_ints(s, &numbers));
    if (numbers.count > 3)
        return explain(s, "up to three whole numbers");
    for (int i = 0; i < 3; i++)
        out[i] = i < numbers.count ? numbers.at[i] : 0;
    return CVY_OK;
}

static cvy_status set_choice(const setting *s, int *out)
{
    cvy_option_term term;
    return find_word(s->row, s->node, &term, out) ? CVY_OK : explain_words(s);
}

static cvy_status set_dtype(const setting *s, cvy_dtype *out)
{
    cvy_option_term term;
    int index = 0;
    return find_word(s->row, s->node, &term, &index) ? cvy_dtype_parse(s->node->text, out) : explain_words(s);
}

/* Copies the text, because the map may be freed before the options are. */
static cvy_status keep_text(const setting *s, const char *text, const char **out)
{
    char *copy = NULL;
    *out = *text ? text : NULL;
    if (!*text || !s->pool)
        return CVY_OK;
    CVY_TRY(cvy_pool_strdup(s->pool, text, &copy));
    *out = copy;
    return CVY_OK;
}

static cvy_status set_string(const setting *s, const char **out)
{
    if (s->node->kind != CVY_TREE_SCALAR)
        return explain(s, "a word or text");
    return keep_text(s, s->node->text, out);
}

static cvy_status set_word(const setting *s, const char **out)
{
    cvy_option_term term;
    int index = 0;
    const int is_empty = s->node->kind == CVY_TREE_SCALAR && !*s->node->text;
    return is_empty || find_word(s->row, s->node, &term, &index) ? set_string(s, out) : explain_words(s);
}

/* Joins the names of a list, "a, b". A word of the row may stand for other names, if there is a pool for them. */
static cvy_status set_names(const setting *s, const char **out)
{
    const cvy_tree *node = s->node;
    cvy_option_term term;
    cvy_text joined = {0};
    char *copy = NULL;
    int index = 0;
    if (s->pool && !node->quoted && find_word(s->row, node, &term, &index) && term.value) {
        CVY_TRY(cvy_pool_printf(s->pool, &copy, "%.*s", term.value_length, term.value));
        *out = *copy ? copy : NULL;
        return CVY_OK;
    }
    if (node->kind == CVY_TREE_SCALAR)
        return keep_text(s, node->text, out);
    if (node->kind == CVY_TREE_MAP)
        return explain(s, "a list of names");
    for (int i = 0; i < node->count; i++) {
        const cvy_tree *name = node->child[i];
        if (name->kind != CVY_TREE_SCALAR || !name->text || !*name->text)
            return explain(&(setting){s->pool, s->who, s->row, name}, "a name");
        cvy_text_add(&joined, "%s%s", i ? ", " : "", name->text);
    }
    cvy_status status = joined.status;
    if (status == CVY_OK)
        status = cvy_pool_strdup(s->pool, joined.data ? joined.data : "", &copy);
    cvy_text_free(&joined);
    *out = copy && *copy ? copy : NULL;
    return status;
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
    case CVY_TYPE_DTYPE: return set_dtype(s, field);
    case CVY_TYPE_WORD: return set_word(s, field);
    case CVY_TYPE_NAMES: return set_names(s, field);
    case CVY_TYPE_INT3: return set_int3(s, field);
    }
    CVY_FAIL(CVY_E_INTERNAL, "option %s has the unknown type %d", s->row->name, (int)s->row->type);
}

cvy_status cvy_option_set(cvy_pool *pool, const char *who, const cvy_option *row, const cvy_tree *value, void *fields)
{
    return set_field(&(setting){pool, who, row, value}, (char *)fields + row->offset);
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

/* ---- a field that a program has set ---- */

static int stands_for(const cvy_option *row, int64_t number)
{
    const char *at = row->valid;
    cvy_option_term term;
    while (cvy_option_next_word(row, &at, &term))
        if (word_number(&term) == number)
            return 1;
    return 0;
}

static int fits_int(const cvy_option *row, int64_t value)
{
    return value == 0 || stands_for(row, value) || is_within(row, (double)value);
}

static int is_known_word(const cvy_option *row, const char *text)
{
    const cvy_tree node = {.kind = CVY_TREE_SCALAR, .text = text ? text : ""};
    cvy_option_term term;
    int index = 0;
    return !text || find_word(row, &node, &term, &index);
}

static int count_words(const cvy_option *row)
{
    const char *at = row->valid;
    cvy_option_term term;
    int n = 0;
    while (cvy_option_next_word(row, &at, &term))
        n++;
    return n;
}

static int fits(const cvy_option *row, const void *field)
{
    const int64_t *whole = field;
    const double *real = field;
    const int *index = field;
    switch (row->type) {
    case CVY_TYPE_INT: return fits_int(row, *whole);
    case CVY_TYPE_INT3: return fits_int(row, whole[0]) && fits_int(row, whole[1]) && fits_int(row, whole[2]);
    case CVY_TYPE_REAL: return *real == 0 || is_within(row, *real);
    case CVY_TYPE_CHOICE: return *index >= 0 && *index < count_words(row);
    case CVY_TYPE_DTYPE: return is_known_word(row, cvy_dtype_text(*(const cvy_dtype *)field));
    case CVY_TYPE_WORD: return is_known_word(row, *(const char *const *)field);
    default: return 1;
    }
}

cvy_status cvy_option_check(const char *name, const cvy_option *row, const void *fields)
{
    const char *field = (const char *)fields + row->offset;
    cvy_text value = {0}, expected = {0};
    if (fits(row, field))
        return CVY_OK;
    if (row->type == CVY_TYPE_CHOICE)
        cvy_text_add(&value, "%d", *(const int *)(const void *)field);
    else
        cvy_option_print(row, fields, &value);
    cvy_option_print_valid(row, &expected);
    const cvy_status status =
        value.status == CVY_OK && expected.status == CVY_OK
            ? cvy_error_set(CVY_E_CONFIG, "%s is %s, expected %s%s%s%s", name, value.data, expected.data,
                            *row->unit ? " (" : "", row->unit, *row->unit ? ")" : "")
            : CVY_E_MEMORY;
    cvy_text_free(&value);
    cvy_text_free(&expected);
    return status;
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
