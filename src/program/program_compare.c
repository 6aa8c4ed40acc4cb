/*
 * program_compare.c: times the step of the kernels that were chosen by measured times as a whole, in turns with the
 * step of the preferred kernels, and keeps the faster choice.
 *
 * Kernels are timed one by one (plan_measure.c), each with its tensors in the caches and with nothing before it. Such
 * times can mislead where kernels are nearly equal, or when other programs were busy during one of the measurements. A
 * step as a whole cannot. So planning by measurement never takes a plan that was slower here than the one without it.
 * Both times are kept as wisdom, and later runs make the same choice without timing again.
 *
 * The step runs without exchanges, in memory of its own that it gives back. Its tensors are zeros, on which kernels for
 * real numbers take the usual time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program_compare.h"

#include <math.h>
#include <string.h>

#include "base/base_hash.h"
#include "base/base_round.h"
#include "base/machine/base_machine.h"
#include "plan/plan_offers.h"
#include "plan/plan_timer.h"
#include "program/program_execute.h"
#include "program/program_impl.h"

enum { BEFORE, AFTER, PLANS };        /* the preferred kernels; those by measured times */
enum { ROUNDS_MIN = 3, ROUNDS = 50 }; /* of which the shortest counts, after one that takes the pages */
static const double enough_s = 2;     /* after this time there are no more rounds than ROUNDS_MIN */

struct comparison {
    cvy_program *p;
    cvy_graph *graph;
    cvy_plan_opts opts;
    cvy_comm alone; /* as the program's, but its other ranks do not exist */
    cvy_lowered *lowered[PLANS];
    cvy_text key[PLANS]; /* of the wisdom */
    double ms[PLANS];
    cvy_plan *plan[PLANS];
    char *had_shadow;        /* by variable */
    char *arena, *variables; /* both plans use the same memory, in turns */
    size_t arena_bytes, variable_bytes;
};

/* ---- the two plans ---- */

/* Variables stay as they were: choosing kernels gives layouts to those that have none. */
static cvy_status lower(struct comparison *c, const char *choices, int which)
{
    cvy_layouts before = {0};
    cvy_plan_opts opts = c->opts;
    cvy_tree *tree = NULL;
    if (choices)
        CVY_TRY(cvy_tree_parse_text(c->p->pool, "measured choices", choices, strlen(choices), &tree));
    opts.choices = tree;
    CVY_TRY(cvy_layouts_keep(c->graph->vars, &before));
    const cvy_status status = cvy_lowered_create(c->graph, &opts, &c->lowered[which]);
    cvy_layouts_restore(c->graph->vars, &before);
    cvy_mem_free(&before.at);
    return status;
}

/* A step is known by the keys of all its calls. */
static cvy_status find_key(struct comparison *c, int which)
{
    const cvy_lowered *u = c->lowered[which];
    cvy_text key = {0};
    cvy_hasher h;
    int ncall = 0;
    cvy_hash_begin(&h);
    for (int i = 0; i < u->ncall && key.status == CVY_OK; i++) {
        const cvy_call *call = &u->call[i];
        if (!cvy_call_is_timed(call))
            continue;
        key.bytes = 0;
        cvy_call_key(u, call, c->opts.threads, &key);
        cvy_hash_add(&h, key.data, key.bytes);
        ncall++;
    }
    const cvy_status status = key.status;
    cvy_text_free(&key);
    cvy_text_add(&c->key[which], "step of %d calls, %016llx, of %d", ncall, (unsigned long long)cvy_hash_end(&h),
                 c->opts.threads);
    return status == CVY_OK ? c->key[which].status : status;
}

/* ---- their times ---- */

static cvy_buffer *memory_of(const cvy_plan *plan, int i)
{
    cvy_buffer *b = &plan->buffer[i];
    return b->root == i && (b->region == CVY_REGION_VARIABLE || b->region == CVY_REGION_SHADOW) ? b : NULL;
}

static cvy_status make_plan(struct comparison *c, int which)
{
    size_t bytes = 0;
    CVY_TRY(cvy_plan_create(&c->lowered[which], 1, &c->opts, &c->plan[which]));
    for (int i = 0; i < c->plan[which]->nbuffer; i++)
        bytes += memory_of(c->plan[which], i) ? cvy_round_to_line(memory_of(c->plan[which], i)->bytes) : 0;
    c->variable_bytes = CVY_MAX(c->variable_bytes, bytes);
    c->arena_bytes = CVY_MAX(c->arena_bytes, CVY_MAX(c->plan[which]->arena_bytes, 64));
    return CVY_OK;
}

static int is_possible(const struct comparison *c)
{
    const double left = (double)cvy_space_left(&c->p->context->space), limit = (double)c->p->opts.memory_limit,
                 need = (double)c->arena_bytes + (double)c->variable_bytes;
    for (int i = 0; i < c->graph->vars->count; i++)
        if (c->graph->vars->at[i]->data)
            return 0;
    return (left < 0 || need < left) && (limit <= 0 || need <= limit);
}

/* The variables have memory only while the pointers of a plan are resolved. */
static cvy_status bind(struct comparison *c, int which)
{
    cvy_plan *plan = c->plan[which];
    char *at = c->variables;
    for (int i = 0; i < plan->nbuffer; i++) {
        const cvy_buffer *b = memory_of(plan, i);
        if (!b)
            continue;
        *(b->region == CVY_REGION_SHADOW ? &b->value->variable->shadow : &b->value->variable->data) = at;
        at += cvy_round_to_line(b->bytes);
    }
    const cvy_status status = cvy_plan_bind(plan, c->arena);
    for (int i = 0; i < plan->nbuffer; i++)
        if (memory_of(plan, i))
            plan->buffer[i].value->variable->data = plan->buffer[i].value->variable->shadow = NULL;
    return status;
}

static cvy_status run_once(cvy_stopwatch *watch, cvy_plan *plan, double *ms_out)
{
    CVY_TRY(cvy_stopwatch_start(watch));
    for (int i = 0; i < plan->ninstr; i++)
        CVY_TRY(cvy_plan_run(plan, i));
    CVY_TRY(cvy_stopwatch_stop(watch, ms_out));
    *ms_out *= 1e3;
    return CVY_OK;
}

static cvy_status run_rounds(struct comparison *c, cvy_stopwatch *watch)
{
    double ms = 0;
    for (int k = 0; k < PLANS; k++) {
        CVY_TRY(run_once(watch, c->plan[k], &ms));
        c->ms[k] = (double)INFINITY;
    }
    const double begin = cvy_clock_s();
    for (int round = 0; round < ROUNDS_MIN || (round < ROUNDS && cvy_clock_s() - begin < enough_s); round++)
        for (int k = 0; k < PLANS; k++) {
            CVY_TRY(run_once(watch, c->plan[k], &ms));
            c->ms[k] = CVY_MIN(c->ms[k], ms);
        }
    return CVY_OK;
}

/* The plans of the training make shadow copies of their own, which may be others: memory that ranks share is laid out
 * by the variables that have one. */
static void restore_shadows(const struct comparison *c)
{
    const cvy_vars *vars = c->graph->vars;
    for (int i = 0; i < vars->count && c->had_shadow; i++) {
        vars->at[i]->has_shadow = c->had_shadow[i];
        vars->at[i]->shadow_of = 0;
    }
}

static cvy_status note_shadows(struct comparison *c)
{
    const cvy_vars *vars = c->graph->vars;
    CVY_TRY(cvy_mem_alloc((size_t)vars->count + 1, &c->had_shadow));
    for (int i = 0; i < vars->count; i++)
        c->had_shadow[i] = (char)vars->at[i]->has_shadow;
    return CVY_OK;
}

static cvy_status time_plans(struct comparison *c)
{
    const cvy_space *space = &c->p->context->space;
    for (int k = 0; k < PLANS; k++)
        CVY_TRY(make_plan(c, k));
    CVY_CHECK(is_possible(c), CVY_NOT_APPLICABLE, "there is no memory to time steps in");
    CVY_TRY(cvy_space_alloc(space, c->arena_bytes, 0, &c->arena));
    CVY_TRY(cvy_space_alloc(space, CVY_MAX(c->variable_bytes, 64), 0, &c->variables));
    for (int k = 0; k < PLANS; k++)
        CVY_TRY(bind(c, k));
    cvy_stopwatch watch;
    CVY_TRY(cvy_stopwatch_open(space, &watch));
    const cvy_status status = run_rounds(c, &watch);
    cvy_stopwatch_close(&watch);
    return status;
}

static cvy_status keep_times(const struct comparison *c)
{
    for (int k = 0; k < PLANS; k++)
        CVY_TRY(cvy_wisdom_add(c->p->kernel.wisdom, c->key[k].data, c->ms[k]));
    return CVY_OK;
}

/* A step that cannot be timed here, for want of memory or because a kernel refuses zeros, leaves the choice as it is.
 */
static cvy_status measure(struct comparison *c)
{
    CVY_TRY(note_shadows(c));
    const cvy_status status = time_plans(c);
    restore_shadows(c);
    if (status != CVY_OK) {
        cvy_log(c->p->context, CVY_LOG_INFO, "planning: whole steps are not timed: %s", cvy_error_text());
        c->ms[BEFORE] = c->ms[AFTER] = CVY_MS_UNKNOWN;
        return CVY_OK;
    }
    return keep_times(c);
}

/* ---- the choice ---- */

static cvy_status find_times(struct comparison *c, int measures, const double *known)
{
    for (int k = 0; k < PLANS; k++)
        CVY_TRY(find_key(c, k));
    if (strcmp(c->key[BEFORE].data, c->key[AFTER].data) == 0)
        return CVY_OK;
    for (int k = 0; k < PLANS; k++)
        c->ms[k] = cvy_wisdom_find(c->p->kernel.wisdom, c->key[k].data);
    if (c->ms[BEFORE] >= 0 && c->ms[AFTER] >= 0)
        return CVY_OK;
    c->ms[BEFORE] = c->ms[AFTER] = CVY_MS_UNKNOWN;
    if (measures)
        return measure(c);
    if (!known || known[BEFORE] <= 0 || known[AFTER] <= 0)
        return CVY_OK;
    memcpy(c->ms, known, sizeof c->ms);
    return keep_times(c);
}

static void end(struct comparison *c)
{
    const cvy_space *space = &c->p->context->space;
    for (int k = 0; k < PLANS; k++) {
        cvy_plan_destroy(&c->plan[k]);
        cvy_lowered_destroy(&c->lowered[k]);
        cvy_text_free(&c->key[k]);
    }
    cvy_mem_free(&c->had_shadow);
    if (c->arena)
        cvy_space_free(space, &c->arena, c->arena_bytes);
    if (c->variables)
        cvy_space_free(space, &c->variables, CVY_MAX(c->variable_bytes, 64));
}

static cvy_status compare(struct comparison *c, const char *before, const char *after, int measures,
                          const double *known)
{
    CVY_TRY(lower(c, before, BEFORE));
    CVY_TRY(lower(c, after, AFTER));
    return find_times(c, measures, known);
}

cvy_status cvy_program_compare(cvy_program *p, const cvy_plan_opts *opts, cvy_graph *graph, const char *before,
                               const char *after, int measures, const double *known, double *ms, int *slower_out)
{
    struct comparison c = {
        .p = p, .graph = graph, .opts = *opts, .alone = *opts->comm, .ms = {CVY_MS_UNKNOWN, CVY_MS_UNKNOWN}};
    c.alone.pretended = 1;
    c.opts.comm = &c.alone;
    c.opts.grid = NULL;
    c.opts.clock = NULL;
    c.opts.settled = NULL;
    c.opts.overlays = 0;
    *slower_out = 0;
    const cvy_status status = compare(&c, before, after, measures, known);
    memcpy(ms, c.ms, sizeof c.ms);
    if (status == CVY_OK && c.ms[BEFORE] >= 0 && c.ms[AFTER] > c.ms[BEFORE]) {
        *slower_out = 1;
        if (!known)
            cvy_log(
                p->context, CVY_LOG_INFO,
                "planning: a step of the kernels that are fastest one by one takes %.1f ms, a step of the preferred "
                "kernels %.1f ms: these are used",
                c.ms[AFTER], c.ms[BEFORE]);
    }
    end(&c);
    return status;
}
