/*
 * run_program.h: a program from the inside: the steps, their graphs, units and plans, over one set of variables.
 */
#ifndef CVY_RUN_PROGRAM_H
#define CVY_RUN_PROGRAM_H

#include <convoy/program.h>

#include "model/model.h"
#include "plan/plan_tune.h"
#include "run/run_context.h"
#include "run/run_execute.h"

typedef struct cvy_server cvy_server;  /* run_server.h */
typedef struct cvy_average cvy_average;
typedef struct cvy_shard cvy_shard;

typedef struct cvy_program_step_info {
    int training;
    const cvy_model *model;
    int64_t batch;                     /* global */
    int64_t accumulate;
    char *losses[16];
    int nloss;
    char *outputs[16];
    int noutput;
    char *loss_value[16], *output_value[16];   /* names of their values in the graphs */
    char *trains;                      /* NULL: all */
    cvy_optimise_opts optimise;
    int64_t *micro_n;                  /* global samples of each micro-batch; of a program in shards NULL */
    int nmicro;
    cvy_graph **graph;                 /* one for each distinct local size */
    cvy_unit **unit;
    int nunit;
    cvy_plan *plan;
    cvy_plan *twin;                    /* pipelined: on the other set of gradients; else NULL */
    const cvy_plan *latest;            /* of the two, the one that ran last; NULL: neither */
    int64_t first_row;                 /* of this rank in the global batch, or its first micro-batch */
    void *gathered[16];                /* outputs of several micro-batches, one behind the other; NULL: they lie so */
    size_t gathered_bytes[16];
    double loss_mean[16];              /* local: over all ranks */
    int loss_bucket[16];               /* which sum over ranks holds a loss, -1: none */
    int64_t count;                     /* training steps done; the feed "step" is the sum over `shares` */
    uint64_t shares;                   /* bit j is set where step j works on the same optimiser state; its own bit too */
    double *lr, *norm;                 /* scalar feeds, NULL where the step has none */
    int64_t *step_number;
    cvy_step_time time;                /* of the latest run */
    const char *lost;                  /* of a step that ended in CVY_E_NUMERIC: what was not finite, "the loss" or "a gradient" */
    cvy_recomputed recomputed;         /* in backward of a micro-batch, where memory was short */
} cvy_program_step_info;

/* Gradients that have been made and are not applied yet: run_pipeline.c. */
typedef struct cvy_pending {
    cvy_program_step_info *step;
    cvy_plan *plan;                    /* NULL: none are */
    double lr;
    int64_t number;                    /* of the step that made them, for the optimiser */
} cvy_pending;

struct cvy_program {
    cvy_context *context;
    cvy_pool *pool;
    cvy_program_opts opts;
    int64_t bn_group;                  /* as graphs have it */
    int pass_fuse_add, pass_fuse_relu, pass_fuse_batch_norm, pass_inplace, pass_reuse, pass_slices, pass_overlap, pass_recompute;
    int short_of_memory;               /* the plan did not fit: training is planned with recomputation */
    cvy_kernels kernels;
    const cvy_tree *choices, *kept_sums;       /* of an earlier plan, NULL: free */
    cvy_progress_by progress;
    cvy_comm_cost cost;                /* of sums over ranks; zeros where nobody asked */
    int by_clock;                      /* kernels only wait */
    cvy_plan_clock clock;
    cvy_offers *offers;
    cvy_planning planning;
    cvy_wisdom *wisdom;                /* rank 0, after planning */
    cvy_tuning tuning;                 /* rank 0, of the first step; if tuned */
    int tuned;
    cvy_vars *vars;
    cvy_program_step_info *step[64];
    int nstep;
    void *arena;
    size_t arena_bytes;
    void *common;                      /* weights and states that lie once on the node; NULL: every rank has its own */
    size_t common_bytes;
    void *idle;                        /* variables of a clock */
    size_t idle_bytes;
    cvy_server *server;                /* NULL: weights are updated by all ranks */
    cvy_comm *alone;                   /* local: of this rank, as which training steps are planned; else NULL */
    cvy_average *average;
    cvy_shard *shard;                  /* sharded, on several ranks; else NULL */
    cvy_part shards;                   /* of opts.shards, this rank's; each is one of its micro-batches */
    int planned, allocated;
    cvy_pending pending;
    const int64_t *sample;             /* numbers of this rank's samples in the step, for messages; NULL: not known. Borrowed */
    int late;                          /* updates are done when the next step needs them, and pending until then */
    /* Called for each new variable before the passes see it: the job's parameter groups. */
    void (*group)(void *user, cvy_variable *v);
    void *group_user;
};

/* Planning without memory: what `convoy plan` needs. cvy_program_plan() is this and cvy_program_allocate(). */
cvy_status cvy_program_prepare(cvy_program *program);
cvy_status cvy_program_allocate(cvy_program *program);
/* Graphs, units and plan of a step. */
void cvy_program_drop_plan(cvy_program_step_info *step);
/* Checks the option. */
cvy_status cvy_program_read_progress(cvy_program *program);
/* Tells the communicator how this program sums. */
void cvy_program_say_sums(const cvy_program *program);
/* The cost of a sum, where buckets are to be sized by it. Collective; before graphs are made. */
cvy_status cvy_program_size_buckets(cvy_program *program);
/* A member of an open JSON object: what a later run needs to sum as this one does. */
void cvy_program_sums_json(const cvy_program *program, cvy_json *json);
/* ---- deterministic: run_shards.c ---- */
/* Options that do not go with shards are refused; finds this rank's. */
cvy_status cvy_program_read_shards(cvy_program *program);
/* The samples of a shard among those of a step. */
cvy_batch cvy_program_shard(const cvy_program *program, const cvy_program_step_info *step, int64_t shard);
/* Of several micro-batches' outputs: memory for all rows, and filling it. */
cvy_status cvy_program_allocate_outputs(cvy_program_step_info *step);
void cvy_program_free_outputs(cvy_program_step_info *step);
void cvy_program_gather_output(const cvy_program_step_info *step, int output);
/* In how many parts a step leaves its losses: a forward step's one for each micro-batch, which stay apart; else 1. And part m of loss i, or NULL. */
int cvy_program_loss_parts(const cvy_program_step_info *step);
const double *cvy_program_loss_part(const cvy_program_step_info *step, int loss, int part);
/* A line: shards, samples, memory for partial sums, and how many kernels run on one thread so that sums are not split. Nothing for other programs. */
void cvy_program_say_shards(const cvy_program *program, int step, cvy_text *out);

/* Bytes of tensor memory that a planned program needs: arena, variables, feeds. */
int64_t cvy_program_need(const cvy_program *program);
/* CVY_E_MEMORY, with what is needed and what batch would fit: where that is larger than memory_limit; than the memory that is left on this node. */
cvy_status cvy_program_check_limit(const cvy_program *program);
cvy_status cvy_program_check_memory(const cvy_program *program);
/* CVY_E_DISAGREE, with the first difference, where the ranks' weights, layouts or sums are not the same. Collective. */
cvy_status cvy_program_check_alike(const cvy_program *program);
/* What a step will take by the times that are known, communication left out, and how many calls have none. CVY_NOT_APPLICABLE if nothing was
 * ever measured; the first step only, on rank 0. */
cvy_status cvy_program_predict(const cvy_program *program, int step, double *ms_out, int *nunknown_out);
/* As if `updates` steps had been done on this one's optimiser state: a run that goes on. */
void cvy_program_set_updates(cvy_program *program, int step, int64_t updates);
/* ---- pipelined: run_pipeline.c ---- */
/* After planning: where the losses are, and what the plans of a pipelined program must be like. The others do nothing for one that is not pipelined. */
cvy_status cvy_pipeline_check(cvy_program *program);
/* Until the sums of the losses are there. */
cvy_status cvy_step_wait_losses(const cvy_program_step_info *s, cvy_plan *plan, cvy_step_time *time);
cvy_status cvy_pipeline_step(cvy_program *program, cvy_program_step_info *step, double lr);
cvy_status cvy_pipeline_settle(cvy_program *program);
/* Instead, before the program is destroyed for a fault that all ranks have: what is under way still writes its memory. The update is not done. Collective. */
cvy_status cvy_pipeline_drop(cvy_program *program);
/* Rate and step number of the gradients that are pending, for the update that applies them. */
void cvy_pending_feed(const cvy_pending *pending);
/* Forward and backward of `plan` with the update of `late` between them, piece by piece, each just before its weights are read: run_late.c. */
cvy_status cvy_late_run(cvy_plan *plan, const cvy_pending *pending, cvy_step_time *time);
/* For a checkpoint: waits for the sums that are pending, and gives them as variables, complete on rank 0; NULL where none are. The variables lie in the
 * arena: save them before the next step, and destroy them. Collective. */
cvy_status cvy_pipeline_save(cvy_program *program, cvy_vars **out);
/* For a resumed run, on every rank: as if `step` had been run and were pending; the variables are to be filled with its sums. */
cvy_status cvy_pipeline_resume(cvy_program *program, int step, double lr, int64_t number, cvy_vars **out);

/* ---- run_guard.c ---- */
/* A training step whose weights stay as they are where a loss or a gradient is not finite: CVY_E_NUMERIC on all ranks then, and the text says where such a number was made
 * first. */
cvy_status cvy_guarded_step(cvy_program *program, cvy_program_step_info *step);
/* Its first part: forward, backward, all sums; what is left is to update. */
cvy_status cvy_guard_update(cvy_program *program, cvy_program_step_info *step);
/* ---- run_finite.c: of the sums that this rank has, before the update; all must have come ---- */
int cvy_gradients_finite(const cvy_plan *plan);

/* ---- local: run_average.c ---- */
/* Behind the plans and the memory of variables. Collective. */
cvy_status cvy_average_create(cvy_program *program);
void cvy_average_destroy(cvy_average **average);
/* A training step of this rank's share, and the losses of all ranks. */
cvy_status cvy_average_step(cvy_program *program, cvy_program_step_info *step);
/* All ranks take the average of what training changes. Nothing is done where they have it already. */
cvy_status cvy_average_settle(cvy_program *program);
/* Whether all ranks have the same weights. */
int cvy_program_is_settled(const cvy_program *program);

/* ---- sharded: run_shard.c ---- */
int cvy_program_is_sharded(const cvy_program *program);
/* Of how many parts of the optimiser's state a rank keeps at most one; 1: all of it. */
int cvy_program_state_parts(const cvy_program *program);
/* Before the plans are bound: CVY_E_CONFIG where updates cannot be done in parts. Collective. */
cvy_status cvy_shard_check(const cvy_program *program);
/* Behind it. Collective. */
cvy_status cvy_shard_create(cvy_program *program);
void cvy_shard_destroy(cvy_shard **shard);
cvy_status cvy_shard_step(cvy_program *program, cvy_program_step_info *step);
/* For a checkpoint: the optimiser's states whole on rank 0. Collective. */
cvy_status cvy_shard_collect(cvy_program *program);
/* Forgets what other ranks keep, behind that and behind reading a checkpoint. */
void cvy_shard_drop(cvy_program *program);

/* Fills every variable that has an initialiser from the seed; others with zero. */
cvy_status cvy_program_initialise(cvy_program *program);

#endif
