/*
 * base_tree_parse.c: makes a tree from YAML (and so JSON) text, from the events of libyaml.
 *
 * libyaml handles the grammar. This file has the rules that libyaml leaves open: one document, no tags, no duplicate
 * keys, keys are scalars, and limits on depth and size, because a job file or a manifest may come from anywhere. An
 * alias becomes a copy of the node that its anchor names.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/base_file.h"
#include "base/text/base_tree.h"

enum { DEPTH_MAX = 64, TEXT_MAX = 16 << 20, NODE_MAX = 4 << 20 };

typedef struct anchor {
    struct anchor *next;
    const char *name;
    cvy_tree *node;
} anchor;

typedef struct {
    cvy_pool *pool;
    const char *file; /* in the pool */
    yaml_parser_t yaml;
    yaml_event_t event; /* the current event; deleted before the next one is read */
    int has_event;
    anchor *anchors;
    int64_t nodes;
} parser;

static cvy_status parse_node(parser *p, int depth, cvy_tree **out);

static cvy_status next_event(parser *p)
{
    if (p->has_event)
        yaml_event_delete(&p->event);
    p->has_event = 0;
    if (yaml_parser_parse(&p->yaml, &p->event)) {
        p->has_event = 1;
        return CVY_OK;
    }
    if (p->yaml.error == YAML_MEMORY_ERROR)
        CVY_FAIL(CVY_E_MEMORY, "%s: out of memory while reading YAML", p->file);
    if (p->yaml.error == YAML_READER_ERROR)
        CVY_FAIL(CVY_E_CONFIG, "%s: byte %zu: %s; expected UTF-8 text", p->file, p->yaml.problem_offset,
                 p->yaml.problem);
    const yaml_mark_t at = p->yaml.problem_mark;
    CVY_FAIL(CVY_E_CONFIG, "%s:%zu:%zu: %s%s%s", p->file, at.line + 1, at.column + 1,
             p->yaml.problem ? p->yaml.problem : "bad YAML", p->yaml.context ? ", " : "",
             p->yaml.context ? p->yaml.context : "");
}

static cvy_status new_node(parser *p, cvy_tree_kind kind, cvy_tree **out)
{
    CVY_CHECK(++p->nodes <= NODE_MAX, CVY_E_CONFIG, "%s: more than %d values; is an alias repeated without end?",
              p->file, NODE_MAX);
    cvy_tree *node = NULL;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *node, &node));
    node->kind = kind;
    node->file = p->file;
    node->line = (int)p->event.start_mark.line + 1;
    node->column = (int)p->event.start_mark.column + 1;
    *out = node;
    return CVY_OK;
}

static cvy_status check_plain(const parser *p, const yaml_char_t *tag)
{
    CVY_CHECK(!tag, CVY_E_CONFIG, "%s:%zu:%zu: tag \"%s\" is not supported; write the value without it", p->file,
              p->event.start_mark.line + 1, p->event.start_mark.column + 1, (const char *)tag);
    return CVY_OK;
}

static cvy_status remember_anchor(parser *p, const char *name, cvy_tree *node)
{
    if (!name)
        return CVY_OK;
    anchor *a = NULL;
    char *copy = NULL;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *a, &a));
    CVY_TRY(cvy_pool_strdup(p->pool, name, &copy));
    a->name = copy;
    a->node = node;
    a->next = p->anchors;
    p->anchors = a;
    return CVY_OK;
}

static int64_t count_nodes(const cvy_tree *node)
{
    int64_t n = 1;
    for (int i = 0; i < node->count; i++)
        n += count_nodes(node->child[i]) + (node->kind == CVY_TREE_MAP);
    return n;
}

/* An anchor is known only once its node is complete, so an alias can never contain itself. */
static cvy_status parse_alias(parser *p, cvy_tree **out)
{
    const char *name = (const char *)p->event.data.alias.anchor;
    const anchor *a = p->anchors;
    while (a && strcmp(a->name, name) != 0)
        a = a->next;
    CVY_CHECK(a, CVY_E_CONFIG, "%s:%zu:%zu: alias *%s has no anchor &%s before it", p->file,
              p->event.start_mark.line + 1, p->event.start_mark.column + 1, name, name);
    p->nodes += count_nodes(a->node);
    CVY_CHECK(p->nodes <= NODE_MAX, CVY_E_CONFIG, "%s: more than %d values; is an alias repeated without end?", p->file,
              NODE_MAX);
    return cvy_tree_copy(p->pool, a->node, out);
}

static cvy_status parse_scalar(parser *p, cvy_tree **out)
{
    cvy_tree *node = NULL;
    CVY_TRY(check_plain(p, p->event.data.scalar.tag));
    CVY_TRY(new_node(p, CVY_TREE_SCALAR, &node));
    const char *value = (const char *)p->event.data.scalar.value;
    const size_t length = p->event.data.scalar.length;
    CVY_CHECK(!memchr(value, 0, length), CVY_E_CONFIG, "%s: the text holds a zero byte", cvy_tree_where(node));
    char *text = NULL;
    CVY_TRY(cvy_pool_alloc(p->pool, length + 1, &text));
    memcpy(text, value, length);
    node->text = text;
    node->quoted = p->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    CVY_TRY(remember_anchor(p, (const char *)p->event.data.scalar.anchor, node));
    *out = node;
    return CVY_OK;
}

/* Makes room for one more child. The arrays double; the old ones stay in the pool until it is freed. */
static cvy_status reserve_child(parser *p, cvy_tree *node)
{
    if (node->count > 0 && (node->count < 4 || (node->count & (node->count - 1)) != 0))
        return CVY_OK;
    const size_t room = node->count == 0 ? 4 : (size_t)node->count * 2;
    cvy_tree **child = NULL, **key_at = NULL;
    const char **key = NULL;
    CVY_TRY(cvy_pool_alloc(p->pool, room * sizeof *child, &child));
    if (node->count > 0)
        memcpy(child, node->child, (size_t)node->count * sizeof *child);
    node->child = child;
    if (node->kind != CVY_TREE_MAP)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(p->pool, room * sizeof *key, &key));
    CVY_TRY(cvy_pool_alloc(p->pool, room * sizeof *key_at, &key_at));
    if (node->count > 0) {
        memcpy(key, node->key, (size_t)node->count * sizeof *key);
        memcpy(key_at, node->key_at, (size_t)node->count * sizeof *key_at);
    }
    node->key = key;
    node->key_at = key_at;
    return CVY_OK;
}

static cvy_status parse_list(parser *p, int depth, cvy_tree **out)
{
    cvy_tree *node = NULL;
    char *name = NULL;
    CVY_TRY(check_plain(p, p->event.data.sequence_start.tag));
    CVY_TRY(new_node(p, CVY_TREE_LIST, &node));
    if (p->event.data.sequence_start.anchor)
        CVY_TRY(cvy_pool_strdup(p->pool, (const char *)p->event.data.sequence_start.anchor, &name));
    CVY_TRY(next_event(p));
    while (p->event.type != YAML_SEQUENCE_END_EVENT) {
        CVY_TRY(reserve_child(p, node));
        CVY_TRY(parse_node(p, depth + 1, &node->child[node->count]));
        node->count++;
        CVY_TRY(next_event(p));
    }
    CVY_TRY(remember_anchor(p, name, node));
    *out = node;
    return CVY_OK;
}

static int compare_keys(const void *a, const void *b)
{
    const cvy_tree *const *x = a, *const *y = b;
    const int order = strcmp((*x)->text, (*y)->text);
    return order                      ? order
           : (*x)->line != (*y)->line ? ((*x)->line > (*y)->line) - ((*x)->line < (*y)->line)
                                      : ((*x)->column > (*y)->column) - ((*x)->column < (*y)->column);
}

/* The keys are sorted first, so that a long map costs only n log n. */
static cvy_status check_duplicates(parser *p, const cvy_tree *map)
{
    if (map->count < 2)
        return CVY_OK;
    cvy_tree **sorted = NULL;
    CVY_TRY(cvy_pool_alloc(p->pool, (size_t)map->count * sizeof *sorted, &sorted));
    memcpy(sorted, map->key_at, (size_t)map->count * sizeof *sorted);
    qsort(sorted, (size_t)map->count, sizeof *sorted, compare_keys);
    for (int i = 1; i < map->count; i++)
        CVY_CHECK(strcmp(sorted[i - 1]->text, sorted[i]->text) != 0, CVY_E_CONFIG,
                  "%s: key \"%s\" is given twice, first at %s", cvy_tree_where(sorted[i]), sorted[i]->text,
                  cvy_tree_where(sorted[i - 1]));
    return CVY_OK;
}

static cvy_status parse_map(parser *p, int depth, cvy_tree **out)
{
    cvy_tree *node = NULL;
    char *name = NULL;
    CVY_TRY(check_plain(p, p->event.data.mapping_start.tag));
    CVY_TRY(new_node(p, CVY_TREE_MAP, &node));
    if (p->event.data.mapping_start.anchor)
        CVY_TRY(cvy_pool_strdup(p->pool, (const char *)p->event.data.mapping_start.anchor, &name));
    CVY_TRY(next_event(p));
    while (p->event.type != YAML_MAPPING_END_EVENT) {
        CVY_TRY(reserve_child(p, node));
        cvy_tree *key = NULL;
        CVY_TRY(parse_node(p, depth + 1, &key));
        CVY_CHECK(key->kind == CVY_TREE_SCALAR, CVY_E_CONFIG, "%s: a key must be a word, not a list or map",
                  cvy_tree_where(key));
        CVY_TRY(next_event(p));
        CVY_TRY(parse_node(p, depth + 1, &node->child[node->count]));
        node->key[node->count] = key->text;
        node->key_at[node->count] = key;
        node->count++;
        CVY_TRY(next_event(p));
    }
    CVY_TRY(check_duplicates(p, node));
    CVY_TRY(remember_anchor(p, name, node));
    *out = node;
    return CVY_OK;
}

static cvy_status parse_node(parser *p, int depth, cvy_tree **out)
{
    CVY_CHECK(depth <= DEPTH_MAX, CVY_E_CONFIG, "%s:%zu:%zu: nested deeper than %d levels", p->file,
              p->event.start_mark.line + 1, p->event.start_mark.column + 1, DEPTH_MAX);
    switch (p->event.type) {
    case YAML_ALIAS_EVENT: return parse_alias(p, out);
    case YAML_SCALAR_EVENT: return parse_scalar(p, out);
    case YAML_SEQUENCE_START_EVENT: return parse_list(p, depth, out);
    case YAML_MAPPING_START_EVENT: return parse_map(p, depth, out);
    default: CVY_FAIL(CVY_E_INTERNAL, "%s: unexpected YAML event %d", p->file, (int)p->event.type);
    }
}

static cvy_status parse_stream(parser *p, cvy_tree **out)
{
    CVY_TRY(next_event(p)); /* stream start */
    CVY_TRY(next_event(p));
    if (p->event.type == YAML_STREAM_END_EVENT)
        return new_node(p, CVY_TREE_SCALAR, out);
    cvy_tree *root = NULL;
    CVY_TRY(next_event(p)); /* the document's start */
    CVY_TRY(parse_node(p, 1, &root));
    CVY_TRY(next_event(p)); /* the document's end */
    CVY_TRY(next_event(p));
    CVY_CHECK(p->event.type == YAML_STREAM_END_EVENT, CVY_E_CONFIG,
              "%s:%zu:1: a second document begins here; expected one", p->file, p->event.start_mark.line + 1);
    *out = root;
    return CVY_OK;
}

cvy_status cvy_tree_parse_text(cvy_pool *pool, const char *file, const char *text, size_t bytes, cvy_tree **out)
{
    CVY_CHECK(bytes <= TEXT_MAX, CVY_E_CONFIG, "%s: %zu bytes, expected at most %d", file, bytes, TEXT_MAX);
    parser p = {.pool = pool};
    char *name = NULL;
    CVY_TRY(cvy_pool_strdup(pool, file, &name));
    p.file = name;
    CVY_CHECK(yaml_parser_initialize(&p.yaml), CVY_E_MEMORY, "%s: out of memory while reading YAML", file);
    yaml_parser_set_input_string(&p.yaml, (const unsigned char *)text, bytes);
    const cvy_status status = parse_stream(&p, out);
    if (p.has_event)
        yaml_event_delete(&p.event);
    yaml_parser_delete(&p.yaml);
    return status;
}

cvy_status cvy_tree_parse_file(cvy_pool *pool, const char *path, cvy_tree **out)
{
    char *text = NULL;
    size_t bytes = 0;
    CVY_TRY(cvy_file_read(path, TEXT_MAX, &text, &bytes));
    const cvy_status status = cvy_tree_parse_text(pool, path, text, bytes, out);
    cvy_mem_free(&text);
    return status;
}
