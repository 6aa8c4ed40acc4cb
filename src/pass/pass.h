/*
 * pass.h: passes that rewrite a graph, mostly one per file. The verifier runs after each.
 *
 *   autodiff (-> stages, in a pipeline) -> reduce -> optimise -> prune -> fuse (-> recompute, if memory is short)
 *
 * A file defines its pass with CVY_PASS_DEFINE, and tools/make_registry.sh finds it. cvy_passes_run() runs all passes
 * in order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PASS_H
#define CVY_PASS_H

#include "comm/comm.h"
#include "graph/graph_op.h"
#include "pass/pass_recompute_choose.h"

typedef struct cvy_gradient {
    cvy_variable *variable;
    cvy_value *value;
} cvy_gradient;
typedef struct cvy_gradients { /* in the order in which backward makes them; memory of the graph's pool */
    cvy_gradient *at;
    int count;
} cvy_gradients;

/* Says which variables a loss trains. Only variables with CVY_ROLE_WEIGHT that are not frozen are asked about; NULL:
 * all of them are trained. */
typedef int (*cvy_trains_fn)(void *user, const cvy_variable *v);

/* Adds the backward nodes for the sum of the losses (scalar accumulators made by loss operators) and lists the gradient
 * of every trained variable that the losses depend on. The gradients become accumulators with reduced = 1.
 * CVY_E_ARGUMENT if nothing is trained, or an operator on the way has no gradient. */
cvy_status cvy_pass_autodiff(cvy_graph *g, cvy_value *const *loss, int nloss, cvy_trains_fn trains, void *user,
                             cvy_gradients *out);

/* The stages of a pipeline. */
typedef struct cvy_stages {
    int mine, nranks;          /* this rank has the stages s with s % nranks == mine, which count from 0 */
    const cvy_index *of_layer; /* the stage of each layer, by its name */
    int own_losses; /* 1: a loss is not summed over stages by the graph: cvy_program_share_losses() does it */
} cvy_stages;
/* Keeps the nodes of this rank's stages and adds messages for the values that cross between stages. gradients: those of
 * other stages are taken out. Run it after cvy_pass_autodiff and before all other passes. CVY_E_UNSUPPORTED: layers of
 * several stages share a weight, or layers of interleaved stages are out of order. */
cvy_status cvy_pass_stages(cvy_graph *g, const cvy_stages *stages, cvy_gradients *gradients);

typedef struct cvy_reduce_opts {
    int nranks;
    size_t bucket_bytes; /* least size of a bucket; 0: chosen from `cost` */
    cvy_comm_cost cost;  /* of an all-reduce; beta 0: not known */
    int overlap;
    int apart; /* 1: gradients have buckets of their own; 0: a bucket may also hold running statistics */
} cvy_reduce_opts;
/* Groups the reduced accumulators of the micro-batch phase into buckets of at least bucket_bytes, in the order in which
 * they are ready. For each bucket it adds a `reduce_start` after the last node that writes into it, and a `reduce_wait`
 * at the start of the update phase. With overlap 0 all starts are after the last backward node. With one rank it only
 * assigns buckets. Run it before cvy_pass_optimise. *nbucket_out: the number of buckets, which are numbered from 0. */
cvy_status cvy_pass_reduce(cvy_graph *g, const cvy_reduce_opts *opts, int *nbucket_out);

typedef struct cvy_optimise_opts {
    const char *op;          /* "sgd", "adam", ... */
    const cvy_tree *options; /* options of the optimiser, without lr and weight_decay; may be NULL */
    double weight_decay;
    double clip_norm, clip_value, l1; /* 0: off */
    double clip_weights;              /* largest magnitude of a weight after its update; 0: any */
    unsigned over; /* ranks along these axes have other gradients, or other parts, which belong to the norm too */
} cvy_optimise_opts;
/* Adds the nodes of gradient clipping, and after them one update node for each gradient, with the variable's lr_mult
 * and decay_mult. It makes the feeds "(lr)" and "(step)". */
cvy_status cvy_pass_optimise(cvy_graph *g, const cvy_gradients *gradients, const cvy_optimise_opts *opts);

/* Fuses a ReLU into the node before it, if that operator has the option `relu` and no other node reads its result. */
cvy_status cvy_pass_fuse_relu(cvy_graph *g);

/* Fuses batch norm in training into one forward and one backward node, together with the addition of a residual and the
 * ReLU after it. Run it after cvy_pass_fuse_relu. */
cvy_status cvy_pass_fuse_batch_norm(cvy_graph *g);

/* Fuses a sum of sums into one sum, with the addends in the same order. */
cvy_status cvy_pass_fuse_add(cvy_graph *g);

/* Fuses the gradient of a large fully connected weight with its update by sgd. Run it after cvy_pass_optimise, only for
 * a graph that runs once a step (one micro-batch), on one rank. count_out: the updates that were fused. */
cvy_status cvy_pass_fuse_update(cvy_graph *g, int *count_out);

/* Removes nodes that communicate and assign nothing, and whose results are not read and are neither outputs nor
 * accumulators. */
cvy_status cvy_pass_prune(cvy_graph *g);

/* Moves each wait to just before the first node that reads its bucket, so that the updates of one bucket overlap with
 * the all-reduce of the next. Run it after cvy_pass_optimise. */
cvy_status cvy_pass_defer_waits(cvy_graph *g);

typedef struct cvy_recomputed {
    int nodes;
    int64_t flop;
} cvy_recomputed;
/* Lets backward recompute values instead of keeping them (activation checkpointing): less memory, more work, the same
 * bits. Run it last. price, follows: pass_recompute_choose.h. *done_out: the nodes that run twice. */
cvy_status cvy_pass_recompute(cvy_graph *g, const cvy_memory_price *price, int follows, cvy_recomputed *done_out);

/* ---- the table ---- */

/* The arguments of the passes for one graph, and what they pass on to each other. */
typedef struct cvy_pass_run {
    cvy_graph *graph;
    const char *off;               /* names of passes that are switched off, or "all"; NULL: none */
    int training;                  /* 1: the graph is for training */
    cvy_memory_price memory_price; /* backward recomputes values that cost less */
    cvy_value *const *loss;
    int nloss;
    cvy_trains_fn trains; /* NULL: all weights are trained */
    void *trains_user;
    const cvy_stages *stages; /* NULL: the graph is not cut into stages */
    unsigned split_over;      /* axes of the grid along which weights are split */
    cvy_reduce_opts reduce;
    const cvy_optimise_opts *optimise; /* NULL: no weight is updated */
    int may_fuse_updates;              /* 1: gradients are complete after one run of the graph, and nothing else reads
                                          them */
    cvy_gradients gradients;           /* out: set by autodiff */
    cvy_recomputed recomputed;         /* out: set by recompute */
    int fused_updates;                 /* out: number of updates that fuse-update fused */
} cvy_pass_run;

typedef struct cvy_pass_def {
    const char *name, *help;
    int order;                          /* passes run in ascending order */
    unsigned can_be_off : 1;            /* opts.passes_off may name it */
    unsigned training : 1;              /* for training graphs only */
    cvy_status (*run)(cvy_pass_run *r); /* NULL: a step of planning, which asks cvy_pass_is_on() itself */
} cvy_pass_def;
#define CVY_PASS_DEFINE(id) const cvy_pass_def cvy_pass_##id##_def

/* All passes, sorted by id (generated). */
const cvy_pass_def *const *cvy_pass_table(int *count_out);
/* off: names, separated by commas or spaces, or "all"; NULL: none. CVY_E_CONFIG: a name is not that of a pass that can
 * be switched off. */
cvy_status cvy_passes_check(const char *off);
int cvy_pass_is_on(const char *off, const char *name);
cvy_status cvy_passes_run(cvy_pass_run *r);

#endif
