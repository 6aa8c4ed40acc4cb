/*
 * program.c: makes a program and describes its tasks, which are planned together (program_plan.c) and run one at a time
 * by the caller (program_step.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_opts.h"
#include "comm/comm_allreduce.h"
#include "model/model_closing.h"
#include "program/program_options.h"
#include "program/program_reduce.h"
#include "program/program_tune.h"

/* ---- making a program ---- */

static cvy_status set_clock(cvy_program *p)
{
    const cvy_program_opts *o = &p->opts;
    CVY_CHECK(!p->kernel.by_clock || o->dtype != CVY_DTYPE_F64, CVY_E_CONFIG,
              "opts.kernels: clock does not support f64, because reference kernels are not measured: use f32 or bf16");
    p->kernel.clock.clock = (cvy_clock){.scale = o->clock_scale > 0 ? o->clock_scale : 1,
                                        .noise = o->clock_noise,
                                        .ranks = p->context->comm->simulated_ranks * p->context->comm->simulated_nodes,
                                        .seed = o->seed,
                                        .rank = p->context->comm->rank};
    return CVY_OK;
}

static cvy_status check_rounding(const cvy_program_opts *o)
{
    CVY_CHECK(!o->tf32 || !o->precise, CVY_E_CONFIG,
              "opts.tf32 rounds factors to TF32, which opts.precise excludes: set one of them");
    return CVY_OK;
}

/* Uses again what an earlier plan has chosen. */
static void take_choices(cvy_program *p, const cvy_tree *plan)
{
    const int is_map = plan->kind == CVY_TREE_MAP;
    p->kernel.choices = is_map ? cvy_tree_get(plan, "choices") : NULL;
    p->reduce.saved = is_map ? cvy_tree_get(plan, "sums") : NULL;
    p->pipeline.saved = is_map ? cvy_tree_get(plan, "pipeline") : NULL;
}

/* The device on which a plan was made; "host" if it says none; NULL: the text is no whole plan. */
static const char *device_of(const cvy_tree *plan)
{
    const cvy_tree *machine = plan->kind == CVY_TREE_MAP ? cvy_tree_get(plan, "machine") : NULL;
    const cvy_tree *device = machine && machine->kind == CVY_TREE_MAP ? cvy_tree_get(machine, "device") : NULL;
    return !machine ? NULL : device && device->text ? device->text : "host";
}

/* Kernels of the host cannot run on a device, and the other way; all drivers have the same kernels. */
static int fits_here(const cvy_program *p, const char *device)
{
    return !device || (strcmp(device, "host") == 0) == cvy_space_is_host(&p->context->space);
}

static cvy_status read_choices(cvy_program *p)
{
    cvy_tree *tree = NULL;
    if (!p->opts.plan_file)
        return CVY_OK;
    CVY_TRY(cvy_tree_parse_file(p->pool, p->opts.plan_file, &tree));
    take_choices(p, tree);
    CVY_CHECK(p->kernel.choices && p->kernel.choices->kind == CVY_TREE_MAP, CVY_E_FORMAT,
              "%s: not a plan: the map `choices` is missing", p->opts.plan_file);
    CVY_CHECK(
        fits_here(p, device_of(tree)), CVY_E_CONFIG,
        "%s: the plan was made on %s, and this run computes on %s, which has other kernels: leave the file out, or "
        "give its device",
        p->opts.plan_file, device_of(tree), p->context->device);
    return CVY_OK;
}

cvy_status cvy_program_take_plan(cvy_program *p, const char *name, const char *text)
{
    cvy_tree *tree = NULL;
    if (p->kernel.choices || p->update.shape.shards)
        return CVY_OK;
    CVY_TRY(cvy_tree_parse_text(p->pool, name, text, strlen(text), &tree));
    take_choices(p, tree);
    if (!fits_here(p, device_of(tree))) {
        p->kernel.choices = NULL;
        cvy_log(
            p->context, CVY_LOG_WARN,
            "%s was made on %s, and this run computes on %s: kernels are chosen anew, so results differ by rounding",
            name, device_of(tree), p->context->device);
    }
    return CVY_OK;
}

void cvy_program_group_variables(cvy_program *p, cvy_group_fn group, void *user)
{
    p->group = group;
    p->group_user = user;
}

void cvy_program_use_wisdom(cvy_program *p, cvy_wisdom *wisdom)
{
    p->kernel.wisdom = wisdom;
    p->kernel.borrows_wisdom = 1;
}

void cvy_program_name_samples(cvy_program *p, const int64_t *sample)
{
    p->sample = sample;
}

void cvy_program_keep_dropout(cvy_program *p, int keeps)
{
    p->keeps_dropout = keeps;
}

void cvy_program_foresee(cvy_program *p, const int64_t *length)
{
    memcpy(p->foreseen, length, sizeof p->foreseen);
}

/* Without overlap, the pass of that name is off. */
static cvy_status turn_overlap_off(cvy_program *p)
{
    const char *off = p->opts.passes_off;
    char *both = NULL;
    if (p->opts.overlap != CVY_OVERLAP_NONE || !cvy_pass_is_on(off, "overlap"))
        return CVY_OK;
    CVY_TRY(cvy_pool_printf(p->pool, &both, "%s%soverlap", off ? off : "", off ? ", " : ""));
    p->opts.passes_off = both;
    return CVY_OK;
}

static cvy_status set_up(cvy_program *p, const cvy_program_opts *opts)
{
    CVY_TRY(CVY_OPTS_READ(cvy_program_opts, opts, &p->opts));
    CVY_TRY(cvy_program_opts_check(&p->opts));
    CVY_TRY(turn_overlap_off(p));
    cvy_status kernels = cvy_kernels_parse(p->opts.kernels, &p->kernel.allowed);
    if (kernels == CVY_OK)
        kernels = cvy_kernels_tie(&p->kernel.allowed, &p->context->space);
    if (kernels != CVY_OK)
        return cvy_error_prefix(kernels, "kernels");
    p->kernel.by_clock = p->kernel.allowed.by_clock;
    CVY_TRY(check_rounding(&p->opts));
    CVY_TRY(set_clock(p));
    p->kernel.planning = (cvy_planning)cvy_program_word_index("planning", p->opts.planning);
    const int64_t group = p->opts.batch_norm_group;
    p->bn_group = group == 0 ? 32 : group < -1 ? 0 : group;
    CVY_TRY(cvy_progress_parse(p->opts.reduce_progress, &p->reduce.progress));
    CVY_TRY(cvy_program_open_pipeline(p));
    CVY_TRY(cvy_program_open_update(p));
    CVY_CHECK(
        cvy_space_is_host(&p->context->space) || p->update.def->any_space, CVY_E_UNSUPPORTED,
        "opts.update_mode: %s exchanges weights in the host's memory, and those of %s are on the device: take sync, "
        "zero1, delayed or local, or device: host",
        p->update.def->name, p->context->device);
    CVY_TRY(read_choices(p));
    CVY_TRY(cvy_offers_create(&p->kernel.offers));
    return cvy_vars_create(&p->vars);
}

cvy_status cvy_program_create(cvy_context *context, const cvy_program_opts *opts, cvy_program **program_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_program *p = NULL;
    CVY_TRY(cvy_handle_alloc(CVY_HANDLE_PROGRAM, sizeof *p, &p));
    p->context = context;
    context->nprograms++;
    cvy_status status = cvy_pool_create(&p->pool);
    if (status == CVY_OK)
        status = set_up(p, opts);
    if (status != CVY_OK)
        cvy_program_destroy(&p);
    else
        *program_out = p;
    return status;
}

void cvy_program_drop_plan(cvy_program_task *s)
{
    cvy_program_free_outputs(s);
    cvy_plan_destroy(&s->alternate);
    cvy_plan_destroy(&s->plan);
    for (int i = 0; i < s->split.nlowered; i++) {
        cvy_lowered_destroy(&s->split.lowered[i]);
        cvy_graph_destroy(&s->split.graph[i]);
    }
    s->split.nlowered = 0;
}

void cvy_program_destroy(cvy_program **program)
{
    CVY_ENTRY();
    if (!CVY_IS_LIVE_AT(PROGRAM, program))
        return;
    cvy_program *p = *program;
    if (p->context->pending == p)
        p->context->pending = NULL;
    for (int i = 0; i < p->ntask; i++)
        cvy_program_drop_plan(p->task[i]);
    if (p->update.state)
        p->update.def->destroy(p);
    cvy_offers_destroy(&p->kernel.offers);
    if (!p->kernel.borrows_wisdom)
        cvy_wisdom_close(&p->kernel.wisdom);
    cvy_mem_free(&p->kernel.tuning.choices);
    cvy_vars_destroy(&p->vars);
    if (p->memory.node_shared)
        p->grid.data->node_memory->free(p->grid.data, &p->memory.node_shared, p->memory.node_shared_bytes);
    if (p->memory.idle)
        cvy_space_free(&p->context->space, &p->memory.idle, p->memory.idle_bytes);
    if (p->memory.arena) {
        const cvy_comm *comm = p->grid.data;
        if (comm && comm->node_memory)
            comm->node_memory->unshare(p->grid.data, p->memory.arena);
        cvy_space_free(&p->context->space, &p->memory.arena, p->memory.arena_bytes);
    }
    cvy_nccl_close(&p->reduce.nccl);
    cvy_program_close_pipeline(p);
    p->context->nprograms--;
    cvy_pool_destroy(&p->pool);
    cvy_handle_free(program);
}

/* ---- its tasks ---- */

/* Returns the length of the word at *text, or 0 if there is none, and moves *text to the end of the word. */
static size_t next_word(const char **text, const char **word_out)
{
    *word_out = *text + strspn(*text, ", \t\n");
    const size_t n = strcspn(*word_out, ", \t\n");
    *text = *word_out + n;
    return n;
}

static int count_words(const char *text)
{
    const char *word;
    int n = 0;
    while (text && next_word(&text, &word) > 0)
        n++;
    return n;
}

static cvy_status list_losses(cvy_pool *pool, const char *text, cvy_program_task *s)
{
    const char *word;
    const int count = count_words(text);
    CVY_TRY(cvy_pool_alloc(pool, sizeof *s->loss * ((size_t)count + 1), &s->loss));
    for (size_t n; s->nloss < count && (n = next_word(&text, &word)) > 0;)
        CVY_TRY(cvy_pool_printf(pool, &s->loss[s->nloss++].name, "%.*s", (int)n, word));
    return CVY_OK;
}

static cvy_status list_outputs(cvy_pool *pool, const char *text, cvy_program_task *s)
{
    const char *word;
    const int count = count_words(text);
    CVY_TRY(cvy_pool_alloc(pool, sizeof *s->output * ((size_t)count + 1), &s->output));
    for (size_t n; s->noutput < count && (n = next_word(&text, &word)) > 0;)
        CVY_TRY(cvy_pool_printf(pool, &s->output[s->noutput++].name, "%.*s", (int)n, word));
    return CVY_OK;
}

static cvy_status new_step(cvy_program *p, const cvy_model *model, int64_t batch, cvy_program_task **out)
{
    cvy_program_task *s = NULL;
    CVY_CHECK(!p->planned, CVY_E_ARGUMENT, "the program is planned already: add all steps first");
    CVY_CHECK(p->ntask < CVY_TASKS_MAX, CVY_E_ARGUMENT, "a program holds at most %d tasks", CVY_TASKS_MAX);
    CVY_CHECK(batch >= 1, CVY_E_ARGUMENT, "a batch of %lld samples; at least 1 is needed", (long long)batch);
    CVY_CHECK(!model->extensions || cvy_context_has(p->context, model->extensions), CVY_E_ARGUMENT,
              "model %s uses the libraries of another context than that of the program", model->name);
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *s, &s));
    s->model = model;
    s->batch = batch;
    s->accumulate = 1;
    *out = s;
    return CVY_OK;
}

static cvy_status read_optimizer(cvy_program *p, const cvy_training_opts *o, cvy_program_task *s)
{
    cvy_tree *tree = NULL;
    char *text = NULL, *name = NULL;
    CVY_TRY(cvy_pool_strdup(p->pool, o->optimizer ? o->optimizer : "sgd", &name));
    if (o->optimizer_options && *o->optimizer_options) {
        /* Block YAML is taken as it is; the braces of a flow map may be left out. */
        const int is_block = o->optimizer_options[0] == '{' || strchr(o->optimizer_options, '\n') != NULL;
        CVY_TRY(cvy_pool_printf(p->pool, &text, is_block ? "%s" : "{%s}", o->optimizer_options));
        CVY_TRY(cvy_tree_parse_text(p->pool, "optimizer_options", text, strlen(text), &tree));
        CVY_CHECK(tree->kind == CVY_TREE_MAP, CVY_E_CONFIG,
                  "optimizer_options are no map of options and values, such as \"momentum: 0.5\"");
    }
    s->train.optimise = (cvy_optimise_opts){.op = name,
                                            .options = tree,
                                            .weight_decay = o->weight_decay,
                                            .clip_norm = o->clip_norm,
                                            .clip_value = o->clip_value,
                                            .clip_weights = o->clip_weights,
                                            .l1 = o->l1};
    return CVY_OK;
}

/* Lists all losses of the task's graphs. Auxiliary heads belong to training only. */
static cvy_status all_losses(cvy_program *p, const cvy_model *model, cvy_program_task *s)
{
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *s->loss * ((size_t)model->nlayer + 1), &s->loss));
    for (int i = 0; i < model->nlayer; i++)
        if ((model->layer[i].op->flags & CVY_OP_LOSS) && (s->training || !model->layer[i].training_only))
            CVY_TRY(cvy_pool_strdup(p->pool, model->layer[i].output, &s->loss[s->nloss++].name));
    return CVY_OK;
}

/* The array doubles when it is full. */
static cvy_status add_task(cvy_program *p, cvy_program_task *s, int *number_out)
{
    if ((p->ntask & (p->ntask - 1)) == 0) {
        cvy_program_task **grown = NULL;
        CVY_TRY(cvy_pool_alloc(p->pool, sizeof(cvy_program_task *) * (size_t)CVY_MAX(2 * p->ntask, 1), &grown));
        for (int i = 0; i < p->ntask; i++)
            grown[i] = p->task[i];
        p->task = grown;
    }
    *number_out = p->ntask;
    p->task[p->ntask++] = s;
    return CVY_OK;
}

/* weight_decay is an option of the optimiser, which checks it. */
static cvy_status check_training(const cvy_training_opts *o, int64_t batch)
{
    enum { MICRO_MAX = 1 << 16 }; /* the plan has instructions for each of them */
    const double number[] = {o->clip_norm, o->clip_value, o->clip_weights, o->l1};
    const char *const name[] = {"clip_norm", "clip_value", "clip_weights", "l1"};
    for (int i = 0; i < CVY_COUNT(number); i++)
        CVY_CHECK(isfinite(number[i]) && number[i] >= 0, CVY_E_ARGUMENT, "%s is %g, expected a number of at least 0",
                  name[i], number[i]);
    CVY_CHECK(o->accumulate <= CVY_MIN(batch, (int64_t)MICRO_MAX), CVY_E_ARGUMENT,
              "%lld micro-batches of a batch of %lld samples, expected at most %lld", (long long)o->accumulate,
              (long long)batch, (long long)CVY_MIN(batch, (int64_t)MICRO_MAX));
    return CVY_OK;
}

cvy_status cvy_program_add_training(cvy_program *p, const cvy_model *model, int64_t batch,
                                    const cvy_training_opts *opts, int *task_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    CVY_TRY(CVY_LIVE(MODEL, model));
    cvy_training_opts o;
    cvy_program_task *s = NULL;
    CVY_TRY(CVY_OPTS_READ(cvy_training_opts, opts, &o));
    CVY_TRY(cvy_model_warn_of_losses(model, p->context));
    CVY_TRY(new_step(p, model, batch, &s));
    s->training = 1;
    s->accumulate = o.accumulate > 0 ? o.accumulate : 1;
    CVY_CHECK(s->accumulate == 1 || !p->update.shape.shards, CVY_E_ARGUMENT,
              "accumulate is %lld, but deterministic training computes a step in shards already: leave it out, or take "
              "more shards",
              (long long)s->accumulate);
    CVY_TRY(check_training(&o, batch));
    CVY_TRY(list_losses(p->pool, o.losses, s));
    if (s->nloss == 0)
        CVY_TRY(all_losses(p, model, s));
    CVY_CHECK(s->nloss > 0, CVY_E_ARGUMENT, "model %s has no loss to train with", model->name);
    CVY_TRY(list_outputs(p->pool, o.outputs, s));
    if (o.label)
        CVY_TRY(cvy_pool_strdup(p->pool, o.label, (char **)(uintptr_t)&s->label));
    CVY_TRY(cvy_program_read_groups(p->pool, &o, s));
    CVY_TRY(read_optimizer(p, &o, s));
    CVY_TRY(cvy_program_check_average(p, &s->train.optimise));
    if (p->update.def->plan.check_task)
        CVY_TRY(p->update.def->plan.check_task(p, &s->train.optimise));
    return add_task(p, s, task_out);
}

cvy_status cvy_program_add_forward(cvy_program *p, const cvy_model *model, int64_t batch, const char *outputs,
                                   int *task_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    CVY_TRY(CVY_LIVE(MODEL, model));
    cvy_program_task *s = NULL;
    CVY_TRY(new_step(p, model, batch, &s));
    CVY_TRY(list_outputs(p->pool, outputs ? outputs : cvy_model_output(model), s));
    CVY_TRY(all_losses(p, model, s));
    return add_task(p, s, task_out);
}
