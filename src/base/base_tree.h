/*
 * base_tree.h: a parsed YAML or JSON document (JSON is read as the YAML that it is) whose every node knows its file,
 * line and column.
 *
 * Job files, plan.json, manifests, option texts all come through here. libyaml parses; anchors and aliases are resolved
 * with a bound on the size of the result, tags are refused. Depth is bounded (64), size is bounded (16 MiB of text).
 */
#ifndef CVY_BASE_TREE_H
#define CVY_BASE_TREE_H

#include "base/base_mem.h"

typedef enum { CVY_TREE_SCALAR, CVY_TREE_LIST, CVY_TREE_MAP } cvy_tree_kind;

typedef struct cvy_tree {
    cvy_tree_kind kind;
    const char *file;         /* as given to the parser: a path, or "--set", "options of conv1" */
    int line, column;         /* 1-based */
    const char *text;         /* scalar: its text, NUL-terminated; else NULL */
    int quoted;               /* scalar: was in quotes (then "true" and "12" are strings) */
    int used;                 /* set by whoever consumed it: an unused key is reported */
    int count;                /* list, map: number of children */
    struct cvy_tree **child;  /* list: items; map: values */
    const char **key;         /* map: the key of child[i] */
    struct cvy_tree **key_at; /* map: where the key stands (scalar nodes) */
} cvy_tree;

/* Everything lives in pool. A fault names file, line and column. An empty document is a NULL-text scalar. */
cvy_status cvy_tree_parse_text(cvy_pool *pool, const char *file, const char *text, size_t bytes, cvy_tree **out);
cvy_status cvy_tree_parse_file(cvy_pool *pool, const char *path, cvy_tree **out);
/* The child of a map under key and marks it used, or NULL. Does not descend. */
cvy_tree *cvy_tree_get(const cvy_tree *map, const char *key);
/* Nothing was said: no node, an empty document, or a plain `key:`, `~` or `null`. */
int cvy_tree_is_null(const cvy_tree *node);
/* Builders, for defaults and --set: an empty map, a scalar; cvy_tree_set replaces or adds. path "a.b.c" creates maps on
 * the way (set only). */
cvy_status cvy_tree_new_map(cvy_pool *pool, const char *file, cvy_tree **out);
cvy_status cvy_tree_new_scalar(cvy_pool *pool, const char *file, const char *text, cvy_tree **out);
cvy_status cvy_tree_set(cvy_pool *pool, cvy_tree *map, const char *path, cvy_tree *value);
/* Typed scalars; a fault says what was expected, got, and where. Integers accept 1_000, 64k (=64000), 1e6. */
cvy_status cvy_tree_int(const cvy_tree *node, int64_t *out);
cvy_status cvy_tree_real(const cvy_tree *node, double *out);
cvy_status cvy_tree_bool(const cvy_tree *node, int *out);
/* "file:line:column", for messages; in a small ring of static per-thread buffers. */
const char *cvy_tree_where(const cvy_tree *node);
/* CVY_E_CONFIG naming the first unused key below node and the nearest of the known names (NULL-terminated, may be
 * NULL). */
cvy_status cvy_tree_check_used(const cvy_tree *node, const char *const *known);
/* A deep copy that keeps the places. */
cvy_status cvy_tree_copy(cvy_pool *pool, const cvy_tree *node, cvy_tree **out);
/* The same from a word rather than a node. CVY_E_ARGUMENT without a place; the callers above add it. */
cvy_status cvy_text_int(const char *text, int64_t *out);
cvy_status cvy_text_real(const char *text, double *out);
/* Writes the tree as block YAML (for job.resolved.yaml) into a string of its own (cvy_mem_free). */
cvy_status cvy_tree_print(const cvy_tree *node, char **text_out);

#endif
