/*
 * base_option_print.c: prints the values of fields as text or as a tree, and the rows of an option table as help.
 *
 * A printed value is parsed back to the same field; the resolved job file and plan.json rely on this.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/text/base_option.h"
#include "base/text/base_text.h"

static const char *type_word(cvy_option_type type)
{
    static const char *const words[] = {
        [CVY_TYPE_INT] = "integer",   [CVY_TYPE_REAL] = "number", [CVY_TYPE_BOOL] = "true|false",
        [CVY_TYPE_CHOICE] = "word",   [CVY_TYPE_STRING] = "text", [CVY_TYPE_INTS] = "integers",
        [CVY_TYPE_REALS] = "numbers", [CVY_TYPE_TREE] = "tree",
    };
    return words[type];
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

/* The node of a field, or NULL if the field has no value. */
static cvy_status field_node(cvy_pool *pool, const cvy_option *row, const void *field, cvy_tree **out)
{
    const char *word = NULL;
    *out = NULL;
    if (is_absent(row, field))
        return CVY_OK;
    switch (row->type) {
    case CVY_TYPE_INT: return number_node(pool, 0, *(const int64_t *)field, 0, out);
    case CVY_TYPE_REAL: return number_node(pool, 1, 0, *(const double *)field, out);
    case CVY_TYPE_BOOL: return cvy_tree_new_scalar(pool, "options", *(const int *)field ? "true" : "false", out);
    case CVY_TYPE_CHOICE:
        CVY_TRY(cvy_option_word(pool, row, *(const int *)field, &word));
        return cvy_tree_new_scalar(pool, "options", word, out);
    case CVY_TYPE_STRING:
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

static void print_field(cvy_text *t, const cvy_option *row, const void *field)
{
    int length = 0;
    const char *word = NULL;
    switch (row->type) {
    case CVY_TYPE_INT: cvy_text_add(t, "%lld", (long long)*(const int64_t *)field); break;
    case CVY_TYPE_REAL: cvy_text_add_real(t, *(const double *)field); break;
    case CVY_TYPE_BOOL: cvy_text_add(t, "%s", *(const int *)field ? "true" : "false"); break;
    case CVY_TYPE_CHOICE:
        word = choice_word(row->valid, *(const int *)field, &length);
        cvy_text_add(t, "%.*s", length, word);
        break;
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
        const int is_choice = row->type == CVY_TYPE_CHOICE;
        cvy_text_add(&t, "  %-*s  %s", width, row->name, is_choice ? row->valid : type_word(row->type));
        if (!row->fallback)
            cvy_text_add(&t, ", required");
        else if (row->fallback[0])
            cvy_text_add(&t, " = %s", row->fallback);
        cvy_text_add(&t, ": %s", row->help);
        const int has_unit = row->unit && row->unit[0], has_valid = !is_choice && row->valid && row->valid[0];
        if (has_unit || has_valid)
            cvy_text_add(&t, " (%s%s%s)", has_unit ? row->unit : "", has_unit && has_valid ? ", " : "",
                         has_valid ? row->valid : "");
        cvy_text_add(&t, "\n");
    }
    return finish(&t, text_out);
}
