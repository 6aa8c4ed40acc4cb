/*
 * program.h: a program from the inside: tasks over one set of variables, and what they share.
 */
#ifndef CVY_PROGRAM_H
#define CVY_PROGRAM_H

#include <convoy/program.h>

#include "base/base_json.h"
#include "context/context.h"
#include "plan/plan_tune.h"
#include "program/program_task.h"
#include "program/program_update.h"

typedef void (*cvy_group_fn)(void *user, cvy_variable *v);

struct cvy_program {
    cvy_context *context;
    cvy_pool *pool;
    cvy_program_opts opts;
    int64_t bn_group; /* as graphs have it */
    struct {
        cvy_kernels allowed;
        int by_clock; /* kernels only wait */
        cvy_plan_clock clock;
        cvy_offers *offers;
        const cvy_tree *choices; /* of an earlier plan, NULL: free */
        cvy_planning planning;
        cvy_wisdom *wisdom; /* rank 0, after planning */
        cvy_tuning tuning;  /* rank 0, of the first task; if tuned */
        int tuned;
    } kernel;
    struct {
        cvy_progress_by progress;
        cvy_allreduce_opts opts; /* how gradients are reduced */
        cvy_comm_cost cost;      /* of reductions; zeros if it was not needed */
        const cvy_tree *kept;    /* of an earlier plan, NULL: nothing */
    } reduce;
    cvy_vars *vars;
    cvy_program_task **task;
    int ntask;
    struct {
        void *arena;
        size_t arena_bytes;
        void *common; /* node-shared weights and states; NULL: every rank has its own */
        size_t common_bytes;
        void *idle; /* variables of a clock */
        size_t idle_bytes;
        int is_short; /* the plan did not fit: training is planned with recomputation */
    } memory;
    struct {
        const cvy_update_def *def; /* how ranks update the weights; NULL until the options are read */
        cvy_update_shape shape;
        void *state; /* the mode's own; NULL: it has none */
    } update;
    int planned, allocated;
    const int64_t *sample; /* see cvy_program_name_samples() */
    cvy_group_fn group;
    void *group_user;
};

/* Before planning: called for each new variable before the passes see it, for parameter groups. */
void cvy_program_group_variables(cvy_program *program, cvy_group_fn group, void *user);
/* Before planning: kernels and reductions of an earlier plan's JSON text are taken again, unless another plan was
 * given. Deterministic programs choose by a fixed rule, so they ignore it. name: of the text, for messages. */
cvy_status cvy_program_take_plan(cvy_program *program, const char *name, const char *text);
/* The numbers of this rank's samples in the steps to come, for messages; borrowed. NULL: they are not known. */
void cvy_program_name_samples(cvy_program *program, const int64_t *sample);
/* Planning without memory: what `convoy plan` needs. cvy_program_plan() is this and cvy_program_allocate(). */
cvy_status cvy_program_prepare(cvy_program *program);
cvy_status cvy_program_allocate(cvy_program *program);
/* Bytes of tensor memory that a planned program needs: arena, variables, feeds. */
int64_t cvy_program_need(const cvy_program *program);
/* CVY_E_MEMORY, with what is needed and what batch would fit: where that is larger than memory_limit; than the memory
 * that is left on this node. */
cvy_status cvy_program_check_limit(const cvy_program *program);
cvy_status cvy_program_check_memory(const cvy_program *program);
/* CVY_E_DISAGREE, with the first difference, where the ranks' weights, layouts or sums are not the same. Collective. */
cvy_status cvy_program_check_consistency(const cvy_program *program);
/* What a step will take by the times that are known, communication left out, and how many calls have none.
 * CVY_NOT_APPLICABLE if nothing was ever measured; the first step only, on rank 0. */
cvy_status cvy_program_predict(const cvy_program *program, int task, double *ms_out, int *nunknown_out);
/* As if `updates` steps had been done on this one's optimiser state: a run that goes on. */
void cvy_program_set_updates(cvy_program *program, int task, int64_t updates);
/* Fills every variable that has an initialiser from the seed; others with zero. */
cvy_status cvy_program_initialise(cvy_program *program);

#endif
