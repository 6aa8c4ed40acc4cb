/*
 * pass.h: rewrites of a graph, one a file; the verifier runs after each.
 *
 *   autodiff -> reduce -> optimise -> prune -> fuse (-> recompute, if memory is short)
 *
 * A file defines its pass with CVY_PASS_DEFINE; tools/make_registry.sh finds it. cvy_passes_run() runs them in order.
 */
#ifndef CVY_PASS_H
#define CVY_PASS_H

#include "comm/comm.h"
#include "graph/graph_op.h"

typedef struct cvy_gradient {
    cvy_variable *variable;
    cvy_value *value;
} cvy_gradient;
typedef struct cvy_gradients { /* in the order in which backward makes them; in the graph's pool */
    cvy_gradient *at;
    int count;
} cvy_gradients;

/* Which variables a loss trains: CVY_ROLE_WEIGHT, not frozen, and `trains` (NULL: all) says so. */
typedef int (*cvy_trains_fn)(void *user, const cvy_variable *v);

/* Adds the backward nodes for the sum of the losses (scalar accumulators made by loss operators) and lists the gradient
 * of every trained variable that the losses depend on. The gradients become accumulators with reduced = 1.
 * CVY_E_ARGUMENT if nothing is trained, or an operator on the way has no gradient. */
cvy_status cvy_pass_autodiff(cvy_graph *g, cvy_value *const *loss, int nloss, cvy_trains_fn trains, void *user,
                             cvy_gradients *out);

typedef struct cvy_reduce_opts {
    int nranks;
    size_t bucket_bytes; /* 0: by what sums cost: */
    cvy_comm_cost cost;  /* beta 0: not known */
    int overlap;
    int apart; /* gradients have buckets of their own; else running statistics may be among them */
} cvy_reduce_opts;
/* Groups the reduced accumulators of the micro-batch phase into buckets of at least such bytes in the order in which
 * they are ready, and adds for each a `reduce_start` behind the last node that writes into it and a `reduce_wait` at
 * the head of the update phase. With one rank it only assigns buckets. overlap 0: all starts stand behind the last
 * backward node. Run it before cvy_pass_optimise. *nbucket_out: buckets are numbered from 0. */
cvy_status cvy_pass_reduce(cvy_graph *g, const cvy_reduce_opts *opts, int *nbucket_out);

typedef struct cvy_optimise_opts {
    const char *op;          /* "sgd", "adam", ... */
    const cvy_tree *options; /* of the optimiser, without lr and weight_decay; may be NULL */
    double weight_decay;
    double clip_norm, clip_value; /* 0: off */
} cvy_optimise_opts;
/* Adds one update node for each gradient (its lr_mult and decay_mult are applied), behind clipping. Feeds made: "lr",
 * "step". */
cvy_status cvy_pass_optimise(cvy_graph *g, const cvy_gradients *gradients, const cvy_optimise_opts *opts);

/* Folds a ReLU into the node before it where that operator has the option `relu` and nobody else reads its result. */
cvy_status cvy_pass_fuse_relu(cvy_graph *g);

/* Makes batch norm in training one node each way, with the addition of a residual and the ReLU behind it. Run it behind
 * cvy_pass_fuse_relu. */
cvy_status cvy_pass_fuse_batch_norm(cvy_graph *g);

/* Makes a sum of sums one sum, with the addends in the same order. */
cvy_status cvy_pass_fuse_add(cvy_graph *g);

/* Removes nodes whose results nobody reads and that are neither outputs, accumulators nor writes. */
cvy_status cvy_pass_prune(cvy_graph *g);

typedef struct cvy_recomputed {
    int nodes;
    int64_t flop;
} cvy_recomputed;
/* Moves each wait to the first node that reads what it waits for: updates of one bucket are done while the sums of the
 * next go on. Behind cvy_pass_optimise. */
cvy_status cvy_pass_late_waits(cvy_graph *g);

/* Backward makes cheap values again instead of keeping them: less memory, more work, the same bits. Run it last.
 * *done_out: what is run twice. */
cvy_status cvy_pass_recompute(cvy_graph *g, cvy_recomputed *done_out);

/* ---- the table ---- */

/* A graph on its way through the passes: what they are asked, and what they leave for each other. */
typedef struct cvy_pass_run {
    cvy_graph *graph;
    const char *off;               /* names of passes that are switched off, or "all"; NULL: none */
    int training, short_of_memory; /* what the graph is for; backward is to recompute cheap values */
    cvy_value *const *loss;
    int nloss;
    cvy_trains_fn trains; /* NULL: all weights */
    void *trains_user;
    cvy_reduce_opts reduce;
    const cvy_optimise_opts *optimise;
    cvy_gradients gradients;   /* out: of autodiff */
    cvy_recomputed recomputed; /* out: of recompute */
} cvy_pass_run;

typedef struct cvy_pass_def {
    const char *name, *help;
    int order;                          /* passes run in ascending order */
    unsigned can_be_off : 1;            /* opts.passes_off may name it */
    unsigned training : 1;              /* for training graphs only */
    cvy_status (*run)(cvy_pass_run *r); /* NULL: a part of planning that asks cvy_pass_is_on() */
} cvy_pass_def;
#define CVY_PASS_DEFINE(id) const cvy_pass_def cvy_pass_##id##_def

/* All passes, sorted by id (generated). */
const cvy_pass_def *const *cvy_pass_table(int *count_out);
/* off: names, separated by commas or spaces, or "all"; NULL: none. CVY_E_CONFIG: a name is not a pass that can be
 * switched off. */
cvy_status cvy_passes_check(const char *off);
int cvy_pass_is_on(const char *off, const char *name);
cvy_status cvy_passes_run(cvy_pass_run *r);

/* Moves a node to `index`, renumbering. For passes. */
void cvy_pass_move(cvy_graph *g, cvy_node *node, int index);

#endif
