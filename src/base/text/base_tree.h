/*
 * base_tree.h: a parsed YAML or JSON document (JSON is read as YAML). Every node knows its file, line and column.
 *
 * Job files, plan.json, manifests and option texts are all parsed here, by libyaml. Anchors and aliases are resolved,
 * with a limit on the size of the result; tags are refused. The depth is limited to 64, the text to 16 MiB.
 *
 * SPDX-License-Identifier: BSD-3-Clause
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
    int used;                 /* set by the code that read it: an unused key is reported */
    int count;                /* list, map: number of children */
    struct cvy_tree **child;  /* list: items; map: values */
    const char **key;         /* map: the key of child[i] */
    struct cvy_tree **key_at; /* map: the place of the key (scalar nodes) */
} cvy_tree;

/* Everything is allocated in pool. Error messages have file, line and column. An empty document is a scalar with text
 * NULL. */
cvy_status cvy_tree_parse_text(cvy_pool *pool, const char *file, const char *text, size_t bytes, cvy_tree **out);
cvy_status cvy_tree_parse_file(cvy_pool *pool, const char *path, cvy_tree **out);
/* Returns the child of a map under key, or NULL, and marks it as used. It does not descend. */
cvy_tree *cvy_tree_get(const cvy_tree *map, const char *key);
/* Returns the descendant of a map by "a.b.c", or NULL, and marks the nodes on the way as used. */
const cvy_tree *cvy_tree_at(const cvy_tree *map, const char *path);
/* Whether there is no value: no node, an empty document, or a plain `key:`, `~` or `null`. */
int cvy_tree_is_null(const cvy_tree *node);
/* For files that may be damaged: the value at a path, such as "network.area". */
const char *cvy_tree_text_at(const cvy_tree *map, const char *path); /* NULL if absent, empty or not a scalar */
double cvy_tree_real_at(const cvy_tree *map, const char *path);      /* NaN if absent or not a number */
double cvy_tree_real_or_nan(const cvy_tree *node);
/* Builders, for defaults and --set: an empty map, and a scalar. cvy_tree_set replaces or adds a value; with the path
 * "a.b.c" it creates the maps on the way. */
cvy_status cvy_tree_new_map(cvy_pool *pool, const char *file, cvy_tree **out);
cvy_status cvy_tree_new_scalar(cvy_pool *pool, const char *file, const char *text, cvy_tree **out);
cvy_status cvy_tree_set(cvy_pool *pool, cvy_tree *map, const char *path, cvy_tree *value);
/* Typed scalars. The message of an error says what was expected, what was found, and where. Integers may be 1_000, 64k
 * (=64000), 1e6. */
cvy_status cvy_tree_int(const cvy_tree *node, int64_t *out);
cvy_status cvy_tree_real(const cvy_tree *node, double *out);
cvy_status cvy_tree_bool(const cvy_tree *node, int *out);
/* "file:line:column", for messages; the text is in a small ring of static buffers per thread. */
const char *cvy_tree_where(const cvy_tree *node);
/* Checks that all keys below node were used. CVY_E_CONFIG: the message has the first unused key and the nearest of the
 * known names (NULL-terminated, may be NULL). */
cvy_status cvy_tree_check_used(const cvy_tree *node, const char *const *known);
/* A deep copy. The nodes keep their file, line and column. */
cvy_status cvy_tree_copy(cvy_pool *pool, const cvy_tree *node, cvy_tree **out);
/* The same for a text instead of a node. The message of CVY_E_ARGUMENT has no place; the functions above add it. */
cvy_status cvy_text_int(const char *text, int64_t *out);
cvy_status cvy_text_real(const char *text, double *out);
/* Prints the tree as block YAML (for job.resolved.yaml). The caller frees the text with cvy_mem_free. */
cvy_status cvy_tree_print(const cvy_tree *node, char **text_out);
/* The same in flow style, on one line without a newline: {a: 1, b: [x, y]}. */
cvy_status cvy_tree_print_line(const cvy_tree *node, char **text_out);

#endif
