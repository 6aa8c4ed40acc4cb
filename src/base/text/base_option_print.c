/*
 * base_option_print.c: prints the values of fields as text or as a tree, and the rows of an option table as help.
 *
 * A printed value is parsed back to the same field; the resolved job file and plan.json rely on this.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/text/base_option.h"
#include "base/text/base_text.h"

static const char *type_word(cvy_option_type type)
{
    static const char *const words[] = {
        [CVY_TYPE_INT] = "integer",   [CVY_TYPE_REAL] = "number", [CVY_TYPE_BOOL] = "true|false",
        [CVY_TYPE_CHOICE] = "word",   [CVY_TYPE_STRING] = "text", [CVY_TYPE_INTS] = "integers",
        [CVY_TYPE_REALS] = "numbers", [CVY_TYPE_TREE] = "tree",   [CVY_TYPE_DTYPE] = "word",
        [CVY_TYPE_WORD] = "word",     [CVY_TYPE_NAMES] = "names", [CVY_TYPE_INT3] = "integers",
    };
    return words[type];
}

/* ---- words ---- */

int cvy_option_next_word(const cvy_option *row, const char **at, cvy_option_term *out)
{
    const int may_be_bound = row->type == CVY_TYPE_INT || row->type == CVY_TYPE_INT3 || row->type == CVY_TYPE_INTS;
    for (const char *term = *at ? *at : "", *end; *(term += strspn(term, " |")); term = end) {
        end = term + strcspn(term, " |");
        const char *equals = memchr(term, '=', (size_t)(end - term));
        if (may_be_bound && !equals)
            continue;
        *out = (cvy_option_term){.word = term,
                                 .word_length = (int)((equals ? equals : end) - term),
                                 .value = equals ? equals + 1 : NULL,
                                 .value_length = equals ? (int)(end - equals - 1) : 0};
        *at = end;
        return 1;
    }
    return 0;
}

/* "auto or 1..", "a power of two, 1..4096". */
void cvy_option_print_valid(const cvy_option *row, cvy_text *out)
{
    const char *at = row->valid ? row->valid : "";
    while (*at) {
        const size_t n = strcspn(at, " |"), word = CVY_MIN(strcspn(at, "="), n);
        if (n == 3 && strncmp(at, "2^n", 3) == 0)
            cvy_text_add(out, "a power of two,");
        else
            cvy_text_add_bytes(out, at, word);
        at += n;
        if (*at)
            cvy_text_add(out, "%s", word < n && *at == ' ' ? " or " : *at == ' ' ? " " : "|");
        at += *at != '\0';
    }
}

/* The word that stands for a value of an INT or NAMES row; 0: there is none. */
static int word_of(const cvy_option *row, const char *value, cvy_option_term *out)
{
    const size_t n = strlen(value);
    for (const char *at = row->valid; cvy_option_next_word(row, &at, out);)
        if (out->value ? n == (size_t)out->value_length && strncmp(value, out->value, n) == 0
                       : n == (size_t)out->word_length && strncmp(value, out->word, n) == 0)
            return 1;
    return 0;
}

/* Word number `value` of "a|b|c": its start, and its length in *length. */
static const char *choice_word(const char *valid, int value, int *length)
{
    for (; value > 0 && strchr(valid, '|'); value--)
        valid = strchr(valid, '|') + 1;
    *length = (int)strcspn(valid, "|");
    return valid;
}

cvy_status cvy_option_word(cvy_pool *pool, const cvy_option *row, int value, const char **out)
{
    int length = 0;
    char *copy = NULL;
    const char *word = choice_word(row->valid, value, &length);
    CVY_TRY(cvy_pool_printf(pool, &copy, "%.*s", length, word));
    *out = copy;
    return CVY_OK;
}

/* ---- to a tree ---- */

static cvy_status number_node(cvy_pool *pool, int is_real, int64_t whole, double real, cvy_tree **out)
{
    cvy_text t = {0};
    if (is_real)
        cvy_text_add_real(&t, real);
    else
        cvy_text_add(&t, "%lld", (long long)whole);
    const cvy_status status = t.status == CVY_OK ? cvy_tree_new_scalar(pool, "options", t.data, out) : t.status;
    cvy_text_free(&t);
    return status;
}

/* A list with one number is printed as that number, which means the same. */
static cvy_status numbers_node(cvy_pool *pool, const cvy_ints *ints, const cvy_reals *reals, cvy_tree **out)
{
    const int count = ints ? ints->count : reals->count;
    if (count == 1)
        return number_node(pool, !ints, ints ? ints->at[0] : 0, ints ? 0 : reals->at[0], out);
    cvy_tree *list = NULL;
    CVY_TRY(cvy_tree_new_map(pool, "options", &list));
    list->kind = CVY_TREE_LIST;
    CVY_TRY(cvy_pool_alloc(pool, (size_t)count * sizeof *list->child, &list->child));
    list->count = count;
    for (int i = 0; i < count; i++)
        CVY_TRY(number_node(pool, !ints, ints ? ints->at[i] : 0, ints ? 0 : reals->at[i], &list->child[i]));
    *out = list;
    return CVY_OK;
}

/* Whether a number has no default and was not given. Its value is 0, which its bounds need not allow. */
static int is_absent(const cvy_option *row, const void *field)
{
    if (!row->fallback || row->fallback[0])
        return 0;
    return (row->type == CVY_TYPE_INT && *(const int64_t *)field == 0) ||
           (row->type == CVY_TYPE_REAL && *(const double *)field == 0);
}

static cvy_status word_node(cvy_pool *pool, const cvy_option_term *term, cvy_tree **out)
{
    char *word = NULL;
    CVY_TRY(cvy_pool_printf(pool, &word, "%.*s", term->word_length, term->word));
    return cvy_tree_new_scalar(pool, "options", word, out);
}

static cvy_status int_node(cvy_pool *pool, const cvy_option *row, int64_t value, cvy_tree **out)
{
    char text[32];
    cvy_option_term term;
    snprintf(text, sizeof text, "%lld", (long long)value);
    return word_of(row, text, &term) ? word_node(pool, &term, out) : cvy_tree_new_scalar(pool, "options", text, out);
}

static cvy_status int3_node(cvy_pool *pool, const int64_t value[3], cvy_tree **out)
{
    cvy_ints list = {0};
    for (int i = 0; i < 3; i++)
        if (value[i] != 0) {
            list.count = i + 1;
            list.at[i] = value[i];
        }
    return list.count ? numbers_node(pool, &list, NULL, out) : CVY_OK;
}

/* A list of the names of "a, b", or a word that the row has. */
static cvy_status names_node(cvy_pool *pool, const cvy_option *row, const char *names, cvy_tree **out)
{
    cvy_option_term term;
    cvy_tree *list = NULL;
    int count = 1;
    if (!names)
        return CVY_OK;
    if (word_of(row, names, &term))
        return word_node(pool, &term, out);
    for (const char *c = names; *c; c++)
        count += strchr(", \t\n", *c) != NULL;
    CVY_TRY(cvy_tree_new_map(pool, "options", &list));
    list->kind = CVY_TREE_LIST;
    CVY_TRY(cvy_pool_alloc(pool, (size_t)count * sizeof *list->child, &list->child));
    for (const char *at = names; *(at += strspn(at, ", \t\n")); at += strcspn(at, ", \t\n")) {
        const cvy_option_term name = {.word = at, .word_length = (int)strcspn(at, ", \t\n")};
        CVY_TRY(word_node(pool, &name, &list->child[list->count++]));
    }
    *out = list;
    return CVY_OK;
}

/* The node of a field, or NULL if the field has no value. */
static cvy_status field_node(cvy_pool *pool, const cvy_option *row, const void *field, cvy_tree **out)
{
    const char *word = NULL;
    *out = NULL;
    if (is_absent(row, field))
        return CVY_OK;
    switch (row->type) {
    case CVY_TYPE_INT: return int_node(pool, row, *(const int64_t *)field, out);
    case CVY_TYPE_REAL: return number_node(pool, 1, 0, *(const double *)field, out);
    case CVY_TYPE_BOOL: return cvy_tree_new_scalar(pool, "options", *(const int *)field ? "true" : "false", out);
    case CVY_TYPE_CHOICE:
        CVY_TRY(cvy_option_word(pool, row, *(const int *)field, &word));
        return cvy_tree_new_scalar(pool, "options", word, out);
    case CVY_TYPE_DTYPE: return cvy_tree_new_scalar(pool, "options", cvy_dtype_text(*(const cvy_dtype *)field), out);
    case CVY_TYPE_NAMES: return names_node(pool, row, *(const char *const *)field, out);
    case CVY_TYPE_INT3: return int3_node(pool, field, out);
    case CVY_TYPE_STRING:
    case CVY_TYPE_WORD:
        word = *(const char *const *)field;
        return word ? cvy_tree_new_scalar(pool, "options", word, out) : CVY_OK;
    case CVY_TYPE_INTS: return ((const cvy_ints *)field)->count ? numbers_node(pool, field, NULL, out) : CVY_OK;
    case CVY_TYPE_REALS: return ((const cvy_reals *)field)->count ? numbers_node(pool, NULL, field, out) : CVY_OK;
    case CVY_TYPE_TREE: {
        const cvy_tree *tree = *(const cvy_tree *const *)field;
        return tree ? cvy_tree_copy(pool, tree, out) : CVY_OK;
    }
    }
    CVY_FAIL(CVY_E_INTERNAL, "option %s has the unknown type %d", row->name, (int)row->type);
}

cvy_status cvy_options_tree(cvy_pool *pool, const cvy_option *rows, const void *fields, cvy_tree **out)
{
    cvy_tree *map = NULL;
    CVY_TRY(cvy_tree_new_map(pool, "options", &map));
    for (const cvy_option *row = rows; row && row->name; row++) {
        cvy_tree *node = NULL;
        CVY_TRY(field_node(pool, row, (const char *)fields + row->offset, &node));
        if (!node)
            continue;
        if (row->type == CVY_TYPE_STRING && cvy_tree_is_null(node))
            node->quoted = 1; /* a text that happens to be "null" */
        CVY_TRY(cvy_tree_set(pool, map, row->name, node));
    }
    *out = map;
    return CVY_OK;
}

/* ---- to text ---- */

static void print_int(cvy_text *t, const cvy_option *row, int64_t value)
{
    char text[32];
    cvy_option_term term;
    snprintf(text, sizeof text, "%lld", (long long)value);
    if (word_of(row, text, &term))
        cvy_text_add_bytes(t, term.word, (size_t)term.word_length);
    else
        cvy_text_add(t, "%s", text);
}

static void print_field(cvy_text *t, const cvy_option *row, const void *field)
{
    int length = 0;
    const char *word = NULL;
    switch (row->type) {
    case CVY_TYPE_INT: print_int(t, row, *(const int64_t *)field); break;
    case CVY_TYPE_INT3: cvy_text_add_ints(t, field, 3); break;
    case CVY_TYPE_DTYPE: cvy_text_add(t, "%s", cvy_dtype_text(*(const cvy_dtype *)field)); break;
    case CVY_TYPE_REAL: cvy_text_add_real(t, *(const double *)field); break;
    case CVY_TYPE_BOOL: cvy_text_add(t, "%s", *(const int *)field ? "true" : "false"); break;
    case CVY_TYPE_CHOICE:
        word = choice_word(row->valid, *(const int *)field, &length);
        cvy_text_add(t, "%.*s", length, word);
        break;
    case CVY_TYPE_WORD:
    case CVY_TYPE_NAMES:
    case CVY_TYPE_STRING: cvy_text_add_quoted(t, *(const char *const *)field ? *(const char *const *)field : ""); break;
    case CVY_TYPE_INTS: {
        const cvy_ints *list = field;
        for (int i = 0; i < list->count; i++)
            cvy_text_add(t, "%s%lld", i > 0 ? ", " : "[", (long long)list->at[i]);
        cvy_text_add(t, "%s", list->count ? "]" : "[]");
        break;
    }
    case CVY_TYPE_REALS: {
        const cvy_reals *list = field;
        cvy_text_add(t, "[");
        for (int i = 0; i < list->count; i++) {
            cvy_text_add(t, "%s", i > 0 ? ", " : "");
            cvy_text_add_real(t, list->at[i]);
        }
        cvy_text_add(t, "]");
        break;
    }
    case CVY_TYPE_TREE: cvy_text_add(t, "%s", *(const cvy_tree *const *)field ? "..." : "null"); break;
    }
}

void cvy_option_print(const cvy_option *row, const void *fields, cvy_text *out)
{
    print_field(out, row, (const char *)fields + row->offset);
}

static cvy_status finish(cvy_text *t, char **text_out)
{
    if (t->status == CVY_OK && !t->data)
        cvy_text_add_bytes(t, "", 0);
    const cvy_status status = t->status;
    if (status != CVY_OK)
        cvy_text_free(t);
    else
        *text_out = t->data;
    return status;
}

cvy_status cvy_options_print(const cvy_option *rows, const void *fields, char **text_out)
{
    cvy_text t = {0};
    for (const cvy_option *row = rows; row && row->name; row++) {
        cvy_text_add(&t, "%s%s: ", row > rows ? ", " : "", row->name);
        print_field(&t, row, (const char *)fields + row->offset);
    }
    return finish(&t, text_out);
}

/* "  lr         number = 0.01   learning rate (>0)" */
cvy_status cvy_options_help(const cvy_option *rows, char **text_out)
{
    cvy_text t = {0};
    int width = 8;
    for (const cvy_option *row = rows; row && row->name; row++)
        width = CVY_MAX(width, (int)strlen(row->name));
    for (const cvy_option *row = rows; row && row->name; row++) {
        const int is_choice = row->type == CVY_TYPE_CHOICE || row->type == CVY_TYPE_DTYPE || row->type == CVY_TYPE_WORD;
        cvy_text_add(&t, "  %-*s  %s", width, row->name, is_choice ? row->valid : type_word(row->type));
        if (!row->fallback)
            cvy_text_add(&t, ", required");
        else if (row->fallback[0])
            cvy_text_add(&t, " = %s", row->fallback);
        cvy_text_add(&t, ": %s", row->help);
        const int has_unit = row->unit && row->unit[0], has_valid = !is_choice && row->valid && row->valid[0];
        if (has_unit || has_valid)
            cvy_text_add(&t, " (%s%s", has_unit ? row->unit : "", has_unit && has_valid ? ", " : "");
        if (has_valid)
            cvy_option_print_valid(row, &t);
        if (has_unit || has_valid)
            cvy_text_add(&t, ")");
        cvy_text_add(&t, "\n");
    }
    return finish(&t, text_out);
}
