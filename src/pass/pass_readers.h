/*
 * pass_readers.h: who reads each value of a graph, for the passes that fuse nodes. Read off the graph once, then kept
 * true while the pass rewrites it, so that a question costs as much as it has answers and never a walk through the
 * graph.
 *
 * A pass that changes a node's sources calls cvy_readers_forget before and cvy_readers_note after; one that removes a
 * node cvy_readers_remove.
 */
#ifndef CVY_PASS_READERS_H
#define CVY_PASS_READERS_H

#include "pass/pass.h"

/* A place is one source of one node: node index * CVY_NODE_SRC_MAX + source. The places that read a value are a list.
 */
typedef struct cvy_readers {
    const cvy_graph *graph;
    int64_t *first; /* by value: 1 + its place that was noted last, 0: nobody reads it */
    int64_t *next;  /* by place: 1 + the next one of the same value */
    int *count;     /* by value: sources of nodes that it is */
} cvy_readers;

cvy_status cvy_readers_create(const cvy_graph *g, cvy_readers *out);
void cvy_readers_free(cvy_readers *r);

void cvy_readers_note(cvy_readers *r, const cvy_node *node);
void cvy_readers_forget(cvy_readers *r, const cvy_node *node);
/* Forgets the node and marks it as removed. Destinations that somebody still needs have been given to another node
 * before. */
void cvy_readers_remove(cvy_readers *r, cvy_node *node);

int cvy_readers_count(const cvy_readers *r, const cvy_value *v);
/* Index of the first node in order that reads the value; the number of nodes if nobody does. */
int cvy_readers_first(const cvy_readers *r, const cvy_value *v);
/* Whether a value only stands between its producer and one reader: nothing else would miss it. */
int cvy_readers_is_between(const cvy_readers *r, const cvy_value *v);
/* The one reader of such a value, else NULL. */
cvy_node *cvy_readers_only(const cvy_readers *r, const cvy_value *v);

/* Whether a node is there and runs the operator of this name. */
int cvy_pass_is_op(const cvy_node *node, const char *op);

#endif
