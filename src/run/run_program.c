/*
 * run_program.c: the public program: steps are described, planned together, and run one at a time by the caller.
 */
#include "run/run_program.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/base_processor.h"
#include "comm/comm_sum.h"
#include "run/run_checkpoint.h"
#include "run/run_server.h"
#include "run/run_team.h"
#include "run/run_tune.h"

/* ---- describing ---- */

static int pass_is_off(const char *off, const char *name)
{
    if (!off)
        return 0;
    if (strcmp(off, "all") == 0)
        return 1;
    const size_t n = strlen(name);
    for (const char *at = off; (at = strstr(at, name)) != NULL; at += n)
        if ((at == off || strchr(", ", at[-1])) && (at[n] == '\0' || strchr(", ", at[n])))
            return 1;
    return 0;
}

static cvy_status check_passes(const char *off)
{
    static const char *const known[] = {"all", "fuse-add", "fuse-batch-norm", "fuse-relu", "in-place", "memory-reuse", "overlap", "recompute", "slices"};
    for (const char *at = off; at && *at;) {
        at += strspn(at, ", ");
        const size_t n = strcspn(at, ", ");
        int found = n == 0;
        for (int i = 0; i < CVY_COUNT(known); i++)
            found |= strlen(known[i]) == n && strncmp(known[i], at, n) == 0;
        CVY_CHECK(found, CVY_E_CONFIG, "there is no pass '%.*s' to switch off; the passes are fuse-add, fuse-batch-norm, fuse-relu, in-place, memory-reuse, overlap, recompute, slices, or all", (int)n, at);
        at += n;
    }
    return CVY_OK;
}

/* "clock" chooses as auto does; the kernels then only wait. */
static cvy_status parse_kernels(const char *text, cvy_kernels *out, int *by_clock_out)
{
    static const char *const names[] = {"auto", "reference", "native", "onednn", "direct"};
    *out = CVY_KERNELS_AUTO;
    *by_clock_out = text && strcmp(text, "clock") == 0;
    if (!text || *by_clock_out)
        return CVY_OK;
    for (int i = 0; i < CVY_COUNT(names); i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (cvy_kernels)i;
            return CVY_OK;
        }
    return cvy_error_set(CVY_E_CONFIG, "kernels: '%s' is none of auto, reference, native, onednn, direct, clock", text);
}

static cvy_status set_clock(cvy_program *p)
{
    const cvy_program_opts *o = &p->opts;
    CVY_CHECK(o->clock_scale >= 0 && o->clock_noise >= 0 && o->clock_noise < 1, CVY_E_CONFIG,
              "a clock with a scale of %g and noise of %g, expected a scale above 0 and noise from 0 to below 1", o->clock_scale, o->clock_noise);
    CVY_CHECK(!p->by_clock || o->dtype != CVY_DTYPE_F64, CVY_E_CONFIG, "kernels: clock, in f64: plain kernels are not measured; take f32 or bf16");
    p->clock.clock = (cvy_clock){.scale = o->clock_scale > 0 ? o->clock_scale : 1, .noise = o->clock_noise, .seed = o->seed, .rank = p->context->comm->rank};
    return CVY_OK;
}

static cvy_status read_choices(cvy_program *p)
{
    cvy_tree *tree = NULL;
    if (!p->opts.plan_file)
        return CVY_OK;
    CVY_TRY(cvy_tree_parse_file(p->pool, p->opts.plan_file, &tree));
    p->choices = tree->kind == CVY_TREE_MAP ? cvy_tree_get(tree, "choices") : NULL;
    CVY_CHECK(p->choices && p->choices->kind == CVY_TREE_MAP, CVY_E_FORMAT, "%s: not a plan: the map `choices` is missing", p->opts.plan_file);
    p->kept_sums = cvy_tree_get(tree, "sums");
    return CVY_OK;
}

static cvy_status set_up(cvy_program *p, const cvy_program_opts *opts)
{
    if (opts)
        memcpy(&p->opts, opts, CVY_MIN(opts->size ? opts->size : sizeof *opts, sizeof *opts));
    CVY_CHECK(cvy_dtype_is_real(p->opts.dtype), CVY_E_CONFIG, "a program computes in f32, bf16 or f64, not in %s",
              cvy_dtype_text(p->opts.dtype));
    if (p->opts.update.mode == CVY_UPDATE_LOCAL)
        CVY_TRY(cvy_comm_create_self(&p->alone));
    if (p->alone)
        p->alone->rank = p->context->comm->rank; /* for traces */
    CVY_TRY(check_passes(p->opts.passes_off));
    CVY_TRY(parse_kernels(p->opts.kernels, &p->kernels, &p->by_clock));
    CVY_TRY(set_clock(p));
    CVY_TRY(cvy_planning_parse(p->opts.planning, &p->planning));
    p->pass_fuse_relu = !pass_is_off(p->opts.passes_off, "fuse-relu");
    p->pass_fuse_add = !pass_is_off(p->opts.passes_off, "fuse-add");
    p->pass_fuse_batch_norm = !pass_is_off(p->opts.passes_off, "fuse-batch-norm");
    p->pass_inplace = !pass_is_off(p->opts.passes_off, "in-place");
    p->pass_reuse = !pass_is_off(p->opts.passes_off, "memory-reuse");
    p->pass_slices = !pass_is_off(p->opts.passes_off, "slices");
    p->pass_overlap = !pass_is_off(p->opts.passes_off, "overlap");
    p->pass_recompute = !pass_is_off(p->opts.passes_off, "recompute");
    const int64_t group = p->opts.batch_norm_group;
    p->bn_group = group == 0 ? 32 : group == -2 ? 0 : group;
    CVY_TRY(cvy_sum_check_name(p->opts.reduce));
    CVY_TRY(cvy_program_read_progress(p));
    CVY_CHECK(!p->opts.overlap_forward || (p->opts.update.mode == CVY_UPDATE_SYNC && p->pass_overlap), CVY_E_CONFIG,
              "comm.overlap: forward goes with update: sync and the pass overlap");
    p->late = p->opts.overlap_forward && p->context->comm->nranks > 1;
    CVY_TRY(cvy_program_read_shards(p));
    CVY_TRY(read_choices(p));
    CVY_TRY(cvy_offers_create(&p->offers));
    return cvy_vars_create(&p->vars);
}

cvy_status cvy_program_create(cvy_context *context, const cvy_program_opts *opts, cvy_program **program_out)
{
    cvy_program *p = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *p, &p));
    p->context = context;
    cvy_status status = cvy_pool_create(&p->pool);
    if (status == CVY_OK)
        status = set_up(p, opts);
    if (status != CVY_OK)
        cvy_program_destroy(&p);
    else
        *program_out = p;
    return status;
}

void cvy_program_drop_plan(cvy_program_step_info *s)
{
    cvy_program_free_outputs(s);
    cvy_plan_destroy(&s->twin);
    cvy_plan_destroy(&s->plan);
    for (int i = 0; i < s->nunit; i++) {
        cvy_unit_destroy(&s->unit[i]);
        cvy_graph_destroy(&s->graph[i]);
    }
    s->nunit = 0;
}

void cvy_program_destroy(cvy_program **program)
{
    cvy_program *p = *program;
    if (!p)
        return;
    if (p->context->pending == p)
        p->context->pending = NULL;
    cvy_server_destroy(&p->server);
    cvy_average_destroy(&p->average);
    cvy_shard_destroy(&p->shard);
    for (int i = 0; i < p->nstep; i++)
        cvy_program_drop_plan(p->step[i]);
    cvy_offers_destroy(&p->offers);
    cvy_wisdom_close(&p->wisdom);
    cvy_mem_free(&p->tuning.choices);
    cvy_vars_destroy(&p->vars);
    if (p->alone)
        p->alone->ops->destroy(p->alone);
    if (p->common)
        p->context->comm->ops->common_free(p->context->comm, &p->common, p->common_bytes);
    if (p->idle)
        cvy_mem_free_pages(&p->idle, p->idle_bytes);
    if (p->arena) {
        p->context->comm->ops->unshare(p->context->comm, p->arena);
        cvy_mem_free_pages(&p->arena, p->arena_bytes);
    }
    cvy_pool_destroy(&p->pool);
    cvy_mem_free(program);
}

static cvy_status split_list(cvy_pool *pool, const char *text, char **names, int room, int *count_out)
{
    *count_out = 0;
    for (const char *at = text; at && *at;) {
        at += strspn(at, ", \t\n");
        const size_t n = strcspn(at, ", \t\n");
        if (n == 0)
            break;
        CVY_CHECK(*count_out < room, CVY_E_ARGUMENT, "'%s' has more than %d names", text, room);
        CVY_TRY(cvy_pool_printf(pool, &names[(*count_out)++], "%.*s", (int)n, at));
        at += n;
    }
    return CVY_OK;
}

static cvy_status new_step(cvy_program *p, const cvy_model *model, int64_t batch, cvy_program_step_info **out)
{
    cvy_program_step_info *s = NULL;
    CVY_CHECK(!p->planned, CVY_E_ARGUMENT, "the program is planned already: add all steps first");
    CVY_CHECK(p->nstep < CVY_COUNT(p->step), CVY_E_ARGUMENT, "a program holds at most %d steps", CVY_COUNT(p->step));
    CVY_CHECK(batch >= 1, CVY_E_ARGUMENT, "a batch of %lld samples; at least 1 is needed", (long long)batch);
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *s, &s));
    s->model = model;
    s->batch = batch;
    s->accumulate = 1;
    *out = s;
    return CVY_OK;
}

static cvy_status read_optimizer(cvy_program *p, const cvy_training_opts *o, cvy_program_step_info *s)
{
    cvy_tree *tree = NULL;
    char *text = NULL, *name = NULL;
    CVY_TRY(cvy_pool_strdup(p->pool, o->optimizer ? o->optimizer : "sgd", &name));
    if (o->optimizer_options && *o->optimizer_options) {
        /* Block YAML is taken as it is; a flow map may leave out its braces. */
        const int is_block = o->optimizer_options[0] == '{' || strchr(o->optimizer_options, '\n') != NULL;
        CVY_TRY(cvy_pool_printf(p->pool, &text, is_block ? "%s" : "{%s}", o->optimizer_options));
        CVY_TRY(cvy_tree_parse_text(p->pool, "optimizer_options", text, strlen(text), &tree));
    }
    s->optimise = (cvy_optimise_opts){name, tree, o->weight_decay, o->clip_norm, o->clip_value};
    return CVY_OK;
}

/* All that the step's graphs have: auxiliary heads belong to training. */
static cvy_status all_losses(cvy_program *p, const cvy_model *model, cvy_program_step_info *s)
{
    for (int i = 0; i < model->nlayer; i++)
        if ((model->layer[i].op->flags & CVY_OP_LOSS) && (s->training || !model->layer[i].training_only)) {
            CVY_CHECK(s->nloss < CVY_COUNT(s->losses), CVY_E_ARGUMENT, "model %s has more than %d losses", model->name, CVY_COUNT(s->losses));
            CVY_TRY(cvy_pool_strdup(p->pool, model->layer[i].output, &s->losses[s->nloss++]));
        }
    return CVY_OK;
}

cvy_status cvy_program_add_training(cvy_program *p, const cvy_model *model, int64_t batch, const cvy_training_opts *opts, int *step_out)
{
    cvy_training_opts o = {0};
    cvy_program_step_info *s = NULL;
    if (opts)
        memcpy(&o, opts, CVY_MIN(opts->size ? opts->size : sizeof *opts, sizeof *opts));
    CVY_TRY(new_step(p, model, batch, &s));
    s->training = 1;
    s->accumulate = o.accumulate > 0 ? o.accumulate : 1;
    CVY_CHECK(s->accumulate == 1 || !p->opts.shards, CVY_E_ARGUMENT, "accumulate is %lld, but deterministic training computes a step in shards already: leave it out, or take more shards",
              (long long)s->accumulate);
    CVY_CHECK(s->accumulate <= batch, CVY_E_ARGUMENT, "%lld micro-batches of a batch of %lld samples", (long long)s->accumulate, (long long)batch);
    CVY_TRY(split_list(p->pool, o.losses, s->losses, CVY_COUNT(s->losses), &s->nloss));
    if (s->nloss == 0)
        CVY_TRY(all_losses(p, model, s));
    CVY_CHECK(s->nloss > 0, CVY_E_ARGUMENT, "model %s has no loss to train with", model->name);
    CVY_TRY(split_list(p->pool, o.outputs, s->outputs, CVY_COUNT(s->outputs), &s->noutput));
    if (o.trains)
        CVY_TRY(cvy_pool_strdup(p->pool, o.trains, &s->trains));
    CVY_TRY(read_optimizer(p, &o, s));
    CVY_TRY(cvy_server_check(p, &s->optimise));
    *step_out = p->nstep;
    p->step[p->nstep++] = s;
    return CVY_OK;
}

cvy_status cvy_program_add_forward(cvy_program *p, const cvy_model *model, int64_t batch, const char *outputs, int *step_out)
{
    cvy_program_step_info *s = NULL;
    CVY_TRY(new_step(p, model, batch, &s));
    CVY_TRY(split_list(p->pool, outputs ? outputs : cvy_model_output(model), s->outputs, CVY_COUNT(s->outputs), &s->noutput));
    CVY_TRY(all_losses(p, model, s));
    *step_out = p->nstep;
    p->step[p->nstep++] = s;
    return CVY_OK;
}

/* ---- running ---- */

static cvy_program_step_info *find_step(const cvy_program *p, int step)
{
    return step >= 0 && step < p->nstep && p->step[step]->plan ? p->step[step] : NULL;
}

int64_t cvy_program_rows(const cvy_program *p, int step)
{
    const cvy_program_step_info *s = find_step(p, step);
    return s ? s->plan->rows : 0;
}

int64_t cvy_program_first_row(const cvy_program *p, int step)
{
    const cvy_program_step_info *s = find_step(p, step);
    return s ? s->first_row : 0;
}

void *cvy_program_feed(cvy_program *p, int step, const char *input)
{
    cvy_program_step_info *s = find_step(p, step);
    cvy_plan_feed *feed = s ? cvy_plan_find_feed(s->plan, input) : NULL;
    return feed ? feed->data : NULL;
}

/* Updates by the optimiser's state of a step, whichever step made them: the tail batch goes on where the full ones stand. */
static int64_t updates_done(const cvy_program *p, const cvy_program_step_info *s)
{
    int64_t sum = 0;
    for (int j = 0; j < p->nstep; j++)
        sum += s->shares >> j & 1 ? p->step[j]->count : 0;
    return sum;
}

void cvy_program_set_updates(cvy_program *p, int step, int64_t updates)
{
    for (int j = 0; j < p->nstep; j++)
        if (p->step[step]->shares >> j & 1)
            p->step[j]->count = 0;
    p->step[step]->count = updates;
}

/* In the middle of a step there is no way back, and the other ranks wait. */
static cvy_status report_fault(const cvy_program *p, cvy_status status)
{
    if (status != CVY_OK && p->context->opts.fatal)
        p->context->opts.fatal(p->context->opts.fatal_user, status, cvy_error_text());
    return status;
}

cvy_status cvy_program_step(cvy_program *p, int step, double learning_rate)
{
    cvy_program_step_info *s = find_step(p, step);
    CVY_CHECK(s && p->allocated, CVY_E_ARGUMENT, "step %d is not planned", step);
    CVY_TRY(cvy_context_check_idle(p->context, p));
    if (s->lr)
        *s->lr = learning_rate;
    if (s->norm)
        *s->norm = (double)s->batch;
    if (s->step_number)
        *s->step_number = updates_done(p, s);
    if (p->late && !s->training)
        CVY_TRY(cvy_program_settle(p));
    if (p->server && !s->training)
        CVY_TRY(cvy_server_collect(p->server));
    const int before = cvy_team_enter(p->context->threads);
    s->plan->beside = p->pending.plan; /* its sums go on while validation runs */
    const cvy_status status = s->twin                    ? cvy_pipeline_step(p, s, learning_rate)
                              : p->server && s->training ? cvy_server_step(p->server, step, learning_rate)
                              : p->alone && s->training  ? cvy_average_step(p, s)
                              : p->shard && s->training  ? cvy_shard_step(p, s)
                                                         : cvy_plan_execute(s->plan, &s->time);
    cvy_team_leave(before);
    if (status == CVY_OK)
        s->count++;
    return report_fault(p, status);
}

cvy_status cvy_program_settle(cvy_program *p)
{
    CVY_CHECK(p->allocated, CVY_E_ARGUMENT, "plan the program first");
    CVY_TRY(cvy_context_check_idle(p->context, p));
    const int before = cvy_team_enter(p->context->threads);
    const cvy_status status = p->server ? cvy_server_collect(p->server) : p->average ? cvy_average_settle(p) : cvy_pipeline_settle(p);
    cvy_team_leave(before);
    return report_fault(p, status);
}

cvy_status cvy_program_loss(const cvy_program *p, int step, const char *loss, double *value_out)
{
    const cvy_program_step_info *s = find_step(p, step);
    const int nparts = s ? cvy_program_loss_parts(s) : 0;
    double sum = 0;
    int found = 0;
    for (int i = 0; s && i < s->nloss; i++)
        for (int m = 0; m < nparts && strcmp(s->losses[i], loss) == 0; m++) {
            const double *value = p->alone && s->training ? &s->loss_mean[i] : cvy_program_loss_part(s, i, m);
            found |= value != NULL;
            sum += value ? *value : 0;
        }
    CVY_CHECK(found, CVY_E_ARGUMENT, "step %d has no loss '%s'", step, loss);
    *value_out = p->by_clock ? (double)NAN : sum;
    return CVY_OK;
}

cvy_status cvy_program_output(const cvy_program *p, int step, const char *layer, const void **data_out, cvy_shape *shape_out)
{
    const cvy_program_step_info *s = find_step(p, step);
    CVY_CHECK(s, CVY_E_ARGUMENT, "step %d is not planned", step);
    CVY_CHECK(s->nmicro == 1 || p->opts.shards, CVY_E_UNSUPPORTED, "outputs of a step of several micro-batches cannot be read");
    for (int i = 0; i < s->noutput; i++) {
        const cvy_value *v = strcmp(s->outputs[i], layer) == 0 ? cvy_graph_find(s->plan->unit[0]->graph, s->output_value[i]) : NULL;
        if (!v)
            continue;
        cvy_program_gather_output(s, i);
        *data_out = s->gathered[i] ? s->gathered[i] : cvy_plan_find(s->plan, s->output_value[i], 0);
        if (shape_out) {
            *shape_out = v->shape;
            shape_out->dim[0] = s->nmicro > 1 && v->shape.ndim > 0 ? s->plan->rows : v->shape.dim[0];
        }
        return CVY_OK;
    }
    return cvy_error_set(CVY_E_ARGUMENT, "step %d keeps no output '%s': name it in `outputs`", step, layer);
}

/* ---- variables ---- */

static cvy_status find_variable(const cvy_program *p, const char *name, int64_t elems, cvy_variable **out)
{
    cvy_variable *v = cvy_vars_find(p->vars, name);
    CVY_CHECK(v && p->allocated, CVY_E_ARGUMENT, "the program has no variable '%s'%s", name, p->allocated ? "" : " yet: plan it first");
    CVY_CHECK(elems == cvy_shape_elems(&v->shape), CVY_E_ARGUMENT, "variable %s is %s, that is %lld elements, not %lld", name, cvy_shape_text(&v->shape),
              (long long)cvy_shape_elems(&v->shape), (long long)elems);
    *out = v;
    return CVY_OK;
}

cvy_status cvy_program_get(const cvy_program *p, const char *variable, void *plain_out, int64_t elems)
{
    cvy_variable *v = NULL;
    CVY_TRY(find_variable(p, variable, elems, &v));
    return cvy_variable_read(v, plain_out);
}

cvy_status cvy_program_set(cvy_program *p, const char *variable, const void *plain, int64_t elems)
{
    cvy_variable *v = NULL;
    CVY_TRY(find_variable(p, variable, elems, &v));
    return cvy_variable_write(v, plain);
}

cvy_status cvy_program_variable(const cvy_program *p, int i, const char **name_out, cvy_shape *shape_out)
{
    if (i < 0 || i >= p->vars->count)
        return CVY_END;
    *name_out = p->vars->at[i]->name;
    if (shape_out)
        *shape_out = p->vars->at[i]->shape;
    return CVY_OK;
}

cvy_status cvy_program_save(const cvy_program *p, const char *path)
{
    return cvy_weights_save(path, p->vars);
}

cvy_status cvy_program_load(cvy_program *p, const char *path)
{
    CVY_CHECK(p->allocated, CVY_E_ARGUMENT, "plan the program before loading weights");
    return cvy_weights_load(path, p->vars, 0, NULL);
}

/* ---- printing ---- */

static void add_machine(const cvy_program *p, cvy_json *json)
{
    char cpu[128], number[24];
    const struct { const char *key; int value; } counts[] = {
        {"ranks", p->context->comm->nranks}, {"ranks of this node", p->context->comm->node_nranks}, {"threads of a rank", p->context->threads}};
    cvy_json_open(json, "machine", '{');
    cvy_machine_cpu(cpu, sizeof cpu);
    cvy_json_string(json, "processor", cpu);
    for (int i = 0; i < CVY_COUNT(counts); i++) {
        snprintf(number, sizeof number, "%d", counts[i].value);
        cvy_json_string(json, counts[i].key, number);
    }
    cvy_json_close(json, '}');
}

static cvy_status print_json(const cvy_program *p, int step, char **text_out)
{
    const cvy_program_step_info *s = p->step[step];
    cvy_json json = {0};
    double predicted_ms = 0;
    int nunknown = 0;
    cvy_json_open(&json, NULL, '{');
    cvy_json_string(&json, "version", cvy_version());
    add_machine(p, &json);
    cvy_program_sums_json(p, &json);
    cvy_plan_json(s->plan, &json);
    if (cvy_program_predict(p, step, &predicted_ms, &nunknown) == CVY_OK && nunknown == 0)
        cvy_json_real(&json, "predicted_ms", predicted_ms);
    cvy_json_open(&json, "choices", '{');
    const cvy_unit *u = s->plan->unit[s->nmicro - 1];
    for (int i = 0; i < u->ncall; i++)
        if (u->call[i].kind == CVY_CALL_KERNEL || u->call[i].kind == CVY_CALL_REFERENCE)
            cvy_json_string(&json, u->call[i].node->name, u->call[i].kernel ? u->call[i].kernel->name : "reference");
    cvy_json_close(&json, '}');
    cvy_json_close(&json, '}');
    *text_out = json.text.data;
    return json.text.status;
}

cvy_status cvy_program_print(const cvy_program *p, int step, const char *how, char **text_out)
{
    const cvy_program_step_info *s = find_step(p, step);
    CVY_CHECK(s, CVY_E_ARGUMENT, "step %d is not planned", step);
    const cvy_unit *u = s->plan->unit[s->nmicro - 1];
    if (strcmp(how, "dot") == 0)
        return cvy_graph_print_dot(u->graph, text_out);
    if (strcmp(how, "json") == 0)
        return print_json(p, step, text_out);
    if (strcmp(how, "explain") == 0)
        return cvy_plan_explain(u, &s->plan->opts, p->wisdom, text_out);
    CVY_CHECK(strcmp(how, "text") == 0, CVY_E_ARGUMENT, "print as text, dot, json or explain, not '%s'", how);
    return cvy_graph_print(u->graph, text_out);
}

int64_t cvy_program_bytes(const cvy_program *p)
{
    int64_t bytes = (int64_t)p->arena_bytes;
    for (int i = 0; i < p->vars->count; i++)
        bytes += (int64_t)p->vars->at[i]->bytes;
    for (int i = 0; i < p->nstep; i++)
        bytes += p->step[i]->plan ? (int64_t)p->step[i]->plan->feed_bytes : 0;
    return bytes;
}
