/*
 * base_tree_print.c: prints a tree as block YAML that is parsed back to the same tree. job.resolved.yaml in the run
 * folder is written this way.
 *
 * A list of plain values stays on one line, [0.49, 0.48, 0.45]; everything else gets its own lines.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/text/base_text.h"
#include "base/text/base_tree.h"

/* Whether a text can be printed without quotes, in a block or in the brackets of a list, and be read back unchanged. */
static int can_stand_plain(const char *text)
{
    const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-./_";
    const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-./_%:()<>=*^~@ ";
    const size_t length = strlen(text);
    if (length == 0 || !strchr(first, text[0]) || strspn(text, rest) != length || text[length - 1] == ' ' ||
        text[length - 1] == ':')
        return 0;
    if (strstr(text, ": ") || strncmp(text, "---", 3) == 0 || strncmp(text, "...", 3) == 0)
        return 0;
    return text[0] != '-' || (text[1] != ' ' && text[1] != 0);
}

static void print_scalar(cvy_text *t, const cvy_tree *node)
{
    if (cvy_tree_is_null(node))
        cvy_text_add(t, "null");
    else if (!node->quoted && can_stand_plain(node->text))
        cvy_text_add(t, "%s", node->text);
    else
        cvy_text_add_quoted(t, node->text);
}

/* Whether YAML would take no ':' after the key: it may have 1024 characters, of which a byte becomes at most six. */
static int is_long(const char *key)
{
    return strlen(key) > 160;
}

/* Prints "key:", or "? key", a line break and ":" in the same column. column: -1 if all is on one line. */
static void print_key(cvy_text *t, const char *key, int column)
{
    if (is_long(key))
        cvy_text_add(t, "? ");
    if (can_stand_plain(key))
        cvy_text_add(t, "%s", key);
    else
        cvy_text_add_quoted(t, key);
    if (is_long(key))
        column < 0 ? cvy_text_add(t, " ") : cvy_text_add(t, "\n%*s", column, "");
    cvy_text_add(t, ":");
}

static int fits_on_a_line(const cvy_tree *node)
{
    if (node->kind == CVY_TREE_SCALAR || node->count == 0)
        return 1;
    for (int i = 0; i < node->count; i++)
        if (node->kind == CVY_TREE_MAP || node->child[i]->kind != CVY_TREE_SCALAR)
            return 0;
    return 1;
}

static void print_on_a_line(cvy_text *t, const cvy_tree *node)
{
    if (node->kind == CVY_TREE_SCALAR) {
        print_scalar(t, node);
        return;
    }
    cvy_text_add(t, node->kind == CVY_TREE_MAP ? "{" : "[");
    for (int i = 0; i < node->count; i++) {
        cvy_text_add(t, i > 0 ? ", " : "");
        if (node->kind == CVY_TREE_MAP) {
            print_key(t, node->key[i], -1);
            cvy_text_add(t, " ");
        }
        print_on_a_line(t, node->child[i]);
    }
    cvy_text_add(t, node->kind == CVY_TREE_MAP ? "}" : "]");
}

static void indent(cvy_text *t, int columns)
{
    cvy_text_add(t, "%*s", columns, "");
}

/* Prints a map or list of several lines. The cursor is at the column when it begins; every line ends with a newline. */
static void print_block(cvy_text *t, const cvy_tree *node, int column)
{
    for (int i = 0; i < node->count; i++) {
        const cvy_tree *child = node->child[i];
        if (i > 0)
            indent(t, column);
        if (node->kind == CVY_TREE_MAP) {
            print_key(t, node->key[i], column);
        } else {
            cvy_text_add(t, "-");
        }
        if (fits_on_a_line(child)) {
            cvy_text_add(t, " ");
            print_on_a_line(t, child);
            cvy_text_add(t, "\n");
        } else if (node->kind == CVY_TREE_LIST) {
            cvy_text_add(t, " ");
            print_block(t, child, column + 2);
        } else {
            cvy_text_add(t, "\n");
            indent(t, column + 2);
            print_block(t, child, column + 2);
        }
    }
}

static cvy_status finish(cvy_text *t, char **text_out)
{
    const cvy_status status = t->status;
    if (status != CVY_OK)
        cvy_text_free(t);
    else
        *text_out = t->data;
    return status;
}

cvy_status cvy_tree_print(const cvy_tree *node, char **text_out)
{
    cvy_text t = {0};
    if (fits_on_a_line(node)) {
        print_on_a_line(&t, node);
        cvy_text_add(&t, "\n");
    } else {
        print_block(&t, node, 0);
    }
    return finish(&t, text_out);
}

cvy_status cvy_tree_print_line(const cvy_tree *node, char **text_out)
{
    cvy_text t = {0};
    print_on_a_line(&t, node);
    return finish(&t, text_out);
}
