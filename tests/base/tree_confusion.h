/*
 * tree_confusion.h: puts a value of each kind in place of each value of a YAML or JSON document, and lets a reader read
 * it. A reader gives an answer or a message, and does not crash.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef TEST_TREE_CONFUSION_H
#define TEST_TREE_CONFUSION_H

#include <stdio.h>
#include <string.h>

#include "base/text/base_tree.h"
#include "test_util.h"

typedef cvy_status (*confusion_fn)(cvy_pool *pool, const char *text);

static const char *const confusion[] = {
    "null",   "true", "0",         "-1",         "1e308", "9223372036854775807", ".nan", "\"\"", "word",
    "a/../b", "[]",   "[1, word]", "[[{a: 1}]]", "{}",    "{a: {b: [1]}}"};

/* Unlike cvy_file_replace() it does not wait for the disk. */
static inline void confuse_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    EXPECT(file && fputs(text, file) >= 0);
    if (file)
        fclose(file);
}

/* at: a value within root. Each kind of value takes its place for a moment. */
static void confuse_value(cvy_tree *root, cvy_tree *at, confusion_fn read)
{
    const cvy_tree was = *at;
    for (int i = 0; i < CVY_COUNT(confusion); i++) {
        cvy_pool *pool = NULL;
        cvy_tree *other = NULL;
        char *text = NULL;
        EXPECT_OK(cvy_pool_create(&pool));
        EXPECT_OK(cvy_tree_parse_text(pool, "other", confusion[i], strlen(confusion[i]), &other));
        *at = *other;
        EXPECT_OK(cvy_tree_print_line(root, &text));
        *at = was;
        const cvy_status status = read(pool, text);
        EXPECT(status >= 0 || *cvy_error_text());
        cvy_mem_free(&text);
        cvy_pool_destroy(&pool);
    }
    for (int i = 0; i < at->count; i++)
        confuse_value(root, at->child[i], read);
}

static void confuse(const char *document, confusion_fn read)
{
    cvy_pool *pool = NULL;
    cvy_tree *root = NULL;
    EXPECT_OK(cvy_pool_create(&pool));
    EXPECT_OK(cvy_tree_parse_text(pool, "document", document, strlen(document), &root));
    EXPECT_OK(read(pool, document));
    if (root)
        confuse_value(root, root, read);
    cvy_pool_destroy(&pool);
}

#endif
