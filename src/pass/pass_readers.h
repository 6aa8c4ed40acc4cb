/*
 * pass_readers.h: lists of the readers of each value, for the passes that fuse nodes. The lists are made once and
 * updated while the pass rewrites the graph. A query looks only at the readers of its value, never at the whole graph.
 *
 * A pass that changes a node's sources calls cvy_readers_forget before and cvy_readers_note after the change. To remove
 * a node it calls cvy_readers_remove.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PASS_READERS_H
#define CVY_PASS_READERS_H

#include "pass/pass.h"

/* A place is one source of one node: node index * CVY_NODE_SRC_MAX + source. The places that read a value form a
 * list. */
typedef struct cvy_readers {
    const cvy_graph *graph;
    int64_t *first; /* by value: 1 + the first place of its list, 0: no reader */
    int64_t *next;  /* by place: 1 + the next place of the same value, 0: end */
    int *count;     /* by value: number of places that read it */
} cvy_readers;

cvy_status cvy_readers_create(const cvy_graph *g, cvy_readers *out);
void cvy_readers_free(cvy_readers *r);

void cvy_readers_note(cvy_readers *r, const cvy_node *node);
void cvy_readers_forget(cvy_readers *r, const cvy_node *node);
/* Forgets the node and marks it as removed. The caller must first give destinations that are still needed to another
 * node. */
void cvy_readers_remove(cvy_readers *r, cvy_node *node);

int cvy_readers_count(const cvy_readers *r, const cvy_value *v);
/* Index of the first node in graph order that reads the value; the number of nodes if none does. */
int cvy_readers_first(const cvy_readers *r, const cvy_value *v);
/* Whether a temporary value has exactly one reader and is no output, so that it may be fused away. */
int cvy_readers_is_between(const cvy_readers *r, const cvy_value *v);
/* The only reader of such a value; for other values NULL. */
cvy_node *cvy_readers_only(const cvy_readers *r, const cvy_value *v);

/* Whether a node is not NULL, is not removed, and has the operator of this name. */
int cvy_pass_is_op(const cvy_node *node, const char *op);

#endif
