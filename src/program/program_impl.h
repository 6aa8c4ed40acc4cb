/*
 * program_impl.h: the inside of a program: its tasks over one set of variables, and what they share. Only src/program
 * and src/update include it; other folders see program_view.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PROGRAM_IMPL_H
#define CVY_PROGRAM_IMPL_H

#include "plan/plan_cut.h"
#include "program/program_task.h"
#include "program/program_update.h"
#include "program/program_view.h"

/* Which kernels may run, and what is known of their times (program_tune.c). */
typedef struct cvy_program_kernels {
    cvy_kernels allowed;
    int by_clock; /* kernels compute nothing and only wait */
    cvy_plan_clock clock;
    cvy_offers *offers;
    const cvy_tree *choices; /* node name -> kernel, from an earlier plan; NULL: all kernels are open */
    cvy_planning planning;
    cvy_wisdom *wisdom; /* on rank 0, after planning; on all ranks if by_clock */
    int borrows_wisdom; /* it belongs to the caller: cvy_program_use_wisdom() */
    cvy_tuning tuning;  /* on rank 0, for the first task; valid if tuned */
    int tuned;
    double timed_share;   /* of the first task's samples, which kernels were timed with; 0: all */
    int fuses_updates;    /* 1: in some graph, updates compute gradients */
    int stores_gradients; /* 1, while kernels of plans without fused updates are measured */
} cvy_program_kernels;

/* Layers that the user has placed on stages (program_place.c). */
typedef struct cvy_program_places {
    cvy_keys layer;
    int *stage, room; /* of each layer, from 1 */
} cvy_program_places;

/* How the layers are cut into the stages of a pipeline (program_pipeline.c). */
typedef struct cvy_program_pipeline {
    cvy_pipeline_order order;
    int nchunks, nstages;  /* stages of each rank; of all: grid.nstages times as many */
    cvy_keys layer;        /* of the model, in order; empty with one stage */
    int *first;            /* [nstages]: the first layer of each stage; stage s is on rank s % grid.nstages */
    cvy_index of_layer;    /* the stage of each layer */
    const cvy_tree *saved; /* the cut of an earlier plan; NULL: none */
    char note[200];        /* why it is not used; "": it is, or there is none */
    char *choices;         /* on the first stage: the kernels of all stages, for the plan file */
    size_t choices_bytes;
    int plans_largest;         /* 1: graphs are those of the last part, so that they are the same on all ranks */
    double slowest_ms, all_ms; /* of a micro-batch, as predicted: of the slowest stage, and of all layers */
} cvy_program_pipeline;

/* How layers are split over the tensor axis (program_ways.c). */
typedef struct cvy_program_ways {
    cvy_index of_layer;    /* how the layers of all graphs so far are split: CVY_SPLIT_*, 0: they are not */
    cvy_keys tensor_layer; /* layers that are split by channels over the tensor axis; others share samples */
    int are_named;         /* 0: all layers are split by channels, or the choice is not made yet */
    int ntensor, nsamples; /* layers of each kind in the latest graph */
} cvy_program_ways;

/* How gradients are reduced (program_reduce.c). */
typedef struct cvy_program_reduce {
    cvy_progress_by progress;
    cvy_allreduce_opts opts;
    cvy_comm_cost cost;    /* of a reduction; zeros if it was not needed */
    const cvy_tree *saved; /* the algorithms and cost of an earlier plan; NULL: none */
    int nccl_version;      /* of the NCCL that all ranks have, 22809 is 2.28.9; 0: it was not asked for */
    char why_staged[480];  /* why the host exchanges copies of a device's tensors; "": it does not */
    int by_choice;         /* the job says so, or the device has no such library */
    cvy_nccl *nccl;        /* of the data axis, if its cost was measured */
} cvy_program_reduce;

/* What all tasks share of the memory of tensors (program_allocate.c), and its limit (program_memory.c). */
typedef struct cvy_program_memory {
    void *arena;
    size_t arena_bytes;
    void *node_shared; /* memory of node-shared weights and states; NULL: every rank has its own */
    size_t node_shared_bytes;
    void *idle; /* memory of all variables if by_clock */
    size_t idle_bytes;
    cvy_memory_price price; /* not 0 if a plan exceeded memory_limit */
} cvy_program_memory;

/* How ranks update the weights (program_update.c). */
typedef struct cvy_program_updates {
    const cvy_update_def *def; /* NULL until the options are read */
    cvy_update_shape shape;
    void *state; /* owned by the mode; NULL: it has none */
} cvy_program_updates;

struct cvy_program {
    cvy_context *context;
    cvy_pool *pool;
    cvy_program_opts opts;
    int64_t bn_group; /* batch_norm.group in the form that graphs use */
    cvy_grid grid;
    int64_t foreseen[CVY_AXES]; /* see cvy_program_foresee() */
    cvy_program_kernels kernel;
    cvy_program_places placed;
    cvy_program_pipeline pipeline;
    cvy_program_ways ways;
    cvy_program_reduce reduce;
    cvy_program_memory memory;
    cvy_program_updates update;
    cvy_vars *vars;
    cvy_program_task **task;
    int ntask;
    int planned, allocated;
    int keeps_dropout;     /* see cvy_program_keep_dropout() */
    const int64_t *sample; /* borrowed; see cvy_program_name_samples() */
    cvy_group_fn group;
    void *group_user;
};

/* ---- program_pipeline.c ---- */
cvy_status cvy_program_open_pipeline(cvy_program *program);
/* Runs the partitioning passes of the context's extensions on the whole graph; they place layers. */
cvy_status cvy_program_run_partitions(cvy_program *program, const cvy_graph *graph);
/* The same on a forward graph; they choose the layers that are split over the tensor axis. */
cvy_status cvy_program_run_splits(cvy_program *program, const cvy_graph *graph);
/* Cuts the layers into stages. make: makes the whole graph of the largest share of the first task. Collective. */
cvy_status cvy_program_cut(cvy_program *program, const cvy_plan_opts *opts,
                           cvy_status (*make)(cvy_program *program, cvy_graph **out));
/* ---- program_place.c ---- */
/* Collects all layers that are placed: by cvy_program_set_stage(), by the model of the first task and by
 * opts.first_layers. CVY_E_CONFIG: the model lacks one, or values would go back to an earlier stage. Free it with
 * cvy_program_free_places(). */
cvy_status cvy_program_list_places(cvy_program *program, cvy_cut_places *out);
void cvy_program_free_places(cvy_cut_places *places);
/* CVY_E_CONFIG if a layer reads what a later stage makes, which happens if layers share their variables. */
cvy_status cvy_program_check_stages(const cvy_program *program);
/* Adds up the losses of a training task over the stages, if its update mode has own_losses. Collective over the ranks
 * of the pipeline axis. */
cvy_status cvy_program_share_losses(const cvy_program *program, const cvy_program_task *task);
/* Gathers the kernels of the first task from all stages. Collective. */
cvy_status cvy_program_gather_choices(cvy_program *program);
/* Adds the kernel of each node of a task as members to an open JSON object; of the first task, on the first stage,
 * those of all stages. */
cvy_status cvy_program_choices_json(const cvy_program *program, int task, cvy_json *json);
/* Adds the member "pipeline", with the first layer of each stage; nothing with one stage. */
void cvy_program_cut_json(const cvy_program *program, cvy_json *json);
void cvy_program_close_pipeline(cvy_program *program);
/* ---- program_ways.c ---- */
/* Chooses how each layer with weights of a whole graph is split over the tensor axis: CVY_SPLIT_OUTPUTS, INPUTS or
 * SAMPLES. CVY_E_CONFIG: opts.tensor_layers names a layer that cannot be split. */
cvy_status cvy_program_choose_ways(cvy_program *program, const cvy_program_task *task, const cvy_graph *graph,
                                   cvy_index *of_layer);
/* Whether the node has weights that can be split by channels. */
int cvy_program_can_split(const cvy_node *node);
/* Adds a line about these layers; nothing without a tensor axis. */
void cvy_program_describe_ways(const cvy_program *program, cvy_text *out);
/* ---- program_split.c ---- */
/* Declares the variables that only other ranks have, so that all ranks know all names. Collective. */
cvy_status cvy_program_share_names(cvy_program *program);
/* Makes the graph of a task for this rank: the whole model, or its part if ranks share layers or samples. wanted,
 * value_out: as in cvy_model_instantiate(). */
cvy_status cvy_program_instantiate(cvy_program *program, const cvy_program_task *task, const cvy_graph_opts *opts,
                                   const char *const *wanted, int nwanted, cvy_value **value_out, cvy_graph **out);
/* Whether ranks of one node, real or simulated, may update a part of the weights each in this plan. */
int cvy_program_can_share_update(const cvy_program *program, const cvy_plan *plan);
/* Takes the memory of all variables that have none yet. */
cvy_status cvy_program_allocate_variables(const cvy_program *program);
/* If a planned program exceeds memory_limit, plans it again so that backward recomputes as much as it takes: `plan`
 * plans all tasks. Collective. CVY_E_MEMORY: no plan fits; the message says how much is needed and what batch would
 * fit. */
cvy_status cvy_program_fit_limit(cvy_program *program, cvy_status (*plan)(cvy_program *));
/* A fault of one rank that the others do not know of goes to opts.fatal of the context; returns it. */
cvy_status cvy_program_report_fault(const cvy_program *program, cvy_status status);
/* CVY_E_MEMORY: the program needs more than the free memory of this node, or of its device. The message says the same.
 */
cvy_status cvy_program_check_memory(const cvy_program *program);
/* Returns CVY_E_DISAGREE, with the first difference, if the options or tasks of the ranks are not the same.
 * Collective. */
cvy_status cvy_program_compare_options(const cvy_program *program);
/* Returns CVY_E_DISAGREE, with the first difference, if the weights, layouts or reductions of the ranks are not the
 * same. Collective. */
cvy_status cvy_program_check_consistency(const cvy_program *program);
/* Returns CVY_E_INTERNAL if the stages of a pipeline would wait for each other for ever. Collective. */
cvy_status cvy_program_check_messages(const cvy_program *program);
/* Fills every variable that has an initialiser, from the seed. All other variables stay zero. */
cvy_status cvy_program_initialise(cvy_program *program);

#endif
