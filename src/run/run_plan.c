/*
 * run_plan.c: planning a program: graphs for each micro-batch size, passes, units, plans; then memory and initial weights.
 *
 * Layouts of variables are chosen by the first graph that reads them. So that they are equal on all ranks, although shares may differ by a sample,
 * a rank whose share is not the largest plans the largest share first, for its choices only. In deterministic training a micro-batch is a shard of the
 * batch, the graph of which knows of no other shards.
 */
#include <fnmatch.h>
#include <string.h>

#include "optim/optim.h"
#include "run/run_program.h"
#include "run/run_server.h"
#include "run/run_team.h"
#include "run/run_tune.h"

/* ---- micro-batches ---- */

/* As even as it goes, larger ones first: 10 samples in 3 micro-batches are 4, 3, 3. */
static cvy_status split_batch(cvy_program *p, cvy_program_step_info *s)
{
    s->nmicro = p->opts.shards ? (int)(p->shards.end - p->shards.first) : (int)s->accumulate;
    if (!p->opts.shards)
        CVY_TRY(cvy_pool_alloc(p->pool, sizeof *s->micro_n * (size_t)s->nmicro, &s->micro_n));
    for (int m = 0; m < s->nmicro && !p->opts.shards; m++)
        s->micro_n[m] = s->batch / s->nmicro + (m < s->batch % s->nmicro);
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *s->graph * (size_t)s->nmicro, &s->graph));
    return cvy_pool_alloc(p->pool, sizeof *s->unit * (size_t)s->nmicro, &s->unit);
}

/* Samples of a micro-batch that this rank has, or the largest share of any. */
static cvy_batch share_of(const cvy_program *p, const cvy_program_step_info *s, int m, int largest)
{
    if (p->opts.shards)
        return cvy_program_shard(p, s, largest ? p->opts.shards - 1 : p->shards.first + m);
    const int nranks = s->training ? cvy_program_nworkers(p) : p->context->comm->nranks;
    return cvy_batch_share(s->micro_n[m], largest ? nranks - 1 : p->context->comm->rank, nranks);
}

/* The same as a graph is built for it: of a rank that trains on its own, and of a shard, it is all that there is. */
static cvy_batch batch_of(const cvy_program *p, const cvy_program_step_info *s, int m, int largest)
{
    const cvy_batch share = share_of(p, s, m, largest);
    if (!p->opts.shards && (!p->alone || !s->training))
        return share;
    return share.local_n > 0 ? cvy_batch_share(share.local_n, 0, 1) : cvy_batch_share(1, 0, 2);
}

/* ---- one graph ---- */

static int trains(void *user, const cvy_variable *v)
{
    const char *patterns = user;
    char pattern[128];
    for (const char *at = patterns; *at;) {
        at += strspn(at, ", ");
        const size_t n = strcspn(at, ", ");
        snprintf(pattern, sizeof pattern, "%.*s", (int)n, at);
        if (n && fnmatch(pattern, v->name, 0) == 0)
            return 1;
        at += n;
    }
    return 0;
}

static cvy_status check_trains(const cvy_program *p, cvy_program_step_info *s)
{
    int found = !s->trains;
    for (int i = 0; i < p->vars->count && !found; i++)
        found = trains(s->trains, p->vars->at[i]);
    CVY_CHECK(found, CVY_E_ARGUMENT, "trains: no variable of the model matches '%s'; its first one is %s", s->trains,
              p->vars->count ? p->vars->at[0]->name : "missing");
    return CVY_OK;
}

static cvy_status note_names(cvy_program *p, cvy_value *const *value, int count, char **names)
{
    for (int i = 0; i < count; i++) {
        value[i]->is_output = 1;
        if (!names[i])
            CVY_TRY(cvy_pool_strdup(p->pool, value[i]->name, &names[i]));
    }
    return CVY_OK;
}

static cvy_status run_passes(cvy_program *p, cvy_program_step_info *s, cvy_graph *g, cvy_value **losses, cvy_value **outputs)
{
    cvy_gradients gradients = {0};
    int nbucket = 0;
    CVY_TRY(note_names(p, losses, s->nloss, s->loss_value));
    CVY_TRY(note_names(p, outputs, s->noutput, s->output_value));
    for (int i = 0; p->group && i < p->vars->count; i++)
        p->group(p->group_user, p->vars->at[i]);
    if (s->training) {
        CVY_TRY(check_trains(p, s));
        CVY_TRY(cvy_pass_autodiff(g, losses, s->nloss, s->trains ? trains : NULL, s->trains, &gradients));
        const cvy_reduce_opts reduce = {p->alone ? 1 : p->context->comm->nranks, (size_t)p->opts.bucket_bytes, p->cost, p->pass_overlap, cvy_program_is_sharded(p)};
        CVY_TRY(cvy_pass_reduce(g, &reduce, &nbucket));
        CVY_TRY(cvy_pass_optimise(g, &gradients, &s->optimise));
        CVY_TRY(cvy_pass_late_waits(g));
    }
    CVY_TRY(cvy_pass_prune(g));
    if (p->pass_fuse_add)
        CVY_TRY(cvy_pass_fuse_add(g));
    if (p->pass_fuse_relu)
        CVY_TRY(cvy_pass_fuse_relu(g));
    if (p->pass_fuse_batch_norm)
        CVY_TRY(cvy_pass_fuse_batch_norm(g));
    return s->training && p->short_of_memory ? cvy_pass_recompute(g, &s->recomputed) : CVY_OK;
}

static cvy_status build_graph(cvy_program *p, cvy_program_step_info *s, const cvy_batch *batch, cvy_graph **out)
{
    const cvy_graph_opts opts = {.name = s->model->name, .batch = *batch, .training = s->training, .dtype = p->opts.dtype, .bn_group = p->bn_group,
                                 .precise = p->opts.precise, .seed = p->opts.seed};
    const char *wanted[32];
    cvy_value *value[32] = {0};
    cvy_graph *g = NULL;
    for (int i = 0; i < s->nloss; i++)
        wanted[i] = s->losses[i];
    for (int i = 0; i < s->noutput; i++)
        wanted[s->nloss + i] = s->outputs[i];
    CVY_TRY(cvy_model_instantiate(s->model, p->vars, &opts, wanted, s->nloss + s->noutput, value, &g));
    const cvy_status status = run_passes(p, s, g, value, value + s->nloss);
    if (status != CVY_OK)
        cvy_graph_destroy(&g);
    else
        *out = g;
    return status;
}

static cvy_plan_opts plan_opts(cvy_program *p)
{
    return (cvy_plan_opts){.comm = p->context->comm, .threads = p->context->threads, .kernels = p->opts.dtype == CVY_DTYPE_F64 ? CVY_KERNELS_REFERENCE : p->kernels,
                           .no_inplace = !p->pass_inplace, .no_reuse = !p->pass_reuse, .no_slices = !p->pass_slices, .choices = p->choices, .offers = p->offers,
                           .clock = p->by_clock ? &p->clock : NULL, .blocking = p->opts.reduce_blocking, .no_push = p->progress == CVY_PROGRESS_MPI,
                           .steady = p->opts.shards > 0};
}

static cvy_plan_opts step_opts(cvy_program *p, const cvy_program_step_info *s)
{
    cvy_plan_opts opts = plan_opts(p);
    opts.comm = p->alone && s->training ? p->alone : opts.comm;
    opts.micro_sums = !p->opts.shards ? CVY_MICRO_IN_ORDER : s->training ? CVY_MICRO_TREE : CVY_MICRO_APART;
    opts.late = s->training && p->late;
    opts.sharded = s->training && cvy_program_is_sharded(p);
    opts.sets = opts.late || (s->training && p->opts.update.mode == CVY_UPDATE_PIPELINED) ? 2 : 1;
    return opts;
}

/* The largest share of any rank, for its layouts. */
static cvy_status settle_layouts(cvy_program *p, cvy_program_step_info *s, int m)
{
    const cvy_batch largest = batch_of(p, s, m, 1), mine = batch_of(p, s, m, 0);
    const cvy_plan_opts opts = step_opts(p, s);
    cvy_graph *g = NULL;
    cvy_unit *u = NULL;
    int settled = 1;
    for (int i = 0; i < p->vars->count; i++)
        settled &= p->vars->at[i]->layout_fixed;
    if (largest.local_n == mine.local_n || (settled && p->vars->count))
        return CVY_OK;
    CVY_TRY(build_graph(p, s, &largest, &g));
    const cvy_status status = cvy_unit_create(g, &opts, &u);
    cvy_unit_destroy(&u);
    cvy_graph_destroy(&g);
    return status;
}

/* Micro-batches of one size on this rank share graph and unit, if their batch-norm groups lie alike: the global size and the share are then equal too. */
static cvy_status unit_for(cvy_program *p, cvy_program_step_info *s, int m, cvy_unit **out)
{
    const cvy_batch batch = batch_of(p, s, m, 0);
    const cvy_plan_opts opts = step_opts(p, s);
    for (int i = 0; i < s->nunit; i++)
        if (s->graph[i]->batch.global_n == batch.global_n && s->graph[i]->batch.local_n == batch.local_n) {
            *out = s->unit[i];
            return CVY_OK;
        }
    CVY_TRY(settle_layouts(p, s, m));
    cvy_graph *g = NULL;
    CVY_TRY(build_graph(p, s, &batch, &g));
    const cvy_status status = cvy_unit_create(g, &opts, &s->unit[s->nunit]);
    if (status != CVY_OK) {
        cvy_graph_destroy(&g);
        return status;
    }
    s->graph[s->nunit] = g;
    *out = s->unit[s->nunit++];
    return CVY_OK;
}

static cvy_status plan_step(cvy_program *p, cvy_program_step_info *s)
{
    const cvy_plan_opts opts = step_opts(p, s);
    cvy_unit **unit = NULL;
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *unit * (size_t)s->nmicro, &unit));
    for (int m = 0; m < s->nmicro; m++)
        CVY_TRY(unit_for(p, s, m, &unit[m]));
    s->first_row = share_of(p, s, 0, 0).first;
    CVY_TRY(cvy_plan_create(unit, s->nmicro, &opts, &s->plan));
    return opts.sets > 1 ? cvy_plan_create(unit, s->nmicro, &opts, &s->twin) : CVY_OK;
}

/* All steps use the same memory, one after the other. But gradients that wait for their update stay where they are: evaluation begins behind them. */
static size_t place_of(const cvy_program *p, const cvy_program_step_info *s)
{
    size_t head = 0;
    for (int i = 0; i < p->nstep && !s->training; i++)
        head = CVY_MAX(head, p->step[i]->twin ? cvy_plan_head_bytes(p->step[i]->plan) : 0);
    return head;
}

/* The largest share of the first step: what its kernels are chosen for. Others take them by name, where they apply. */
static cvy_status first_graph(cvy_program *p, cvy_graph **out)
{
    const cvy_batch largest = batch_of(p, p->step[0], 0, 1);
    return build_graph(p, p->step[0], &largest, out);
}

static cvy_status choose_kernels(cvy_program *p)
{
    const cvy_plan_opts opts = plan_opts(p);
    /* With shards by preference alone: times that were measured would choose otherwise elsewhere. */
    return opts.kernels == CVY_KERNELS_REFERENCE || p->opts.shards ? CVY_OK : cvy_program_tune(p, &opts, first_graph);
}

/* Which training steps have an optimiser's state in common: they count their updates together. */
static cvy_status find_shares(cvy_program *p)
{
    uint64_t *users = NULL;            /* of each variable: a bit for each step that writes it */
    CVY_TRY(cvy_pool_alloc(p->pool, sizeof *users * ((size_t)p->vars->count + 1), &users));
    for (int collect = 1; collect >= 0; collect--)
        for (int i = 0; i < p->nstep; i++) {
            const cvy_graph *g = p->step[i]->graph[0];
            p->step[i]->shares |= UINT64_C(1) << i;
            for (int v = 0; v < g->nvalue; v++) {
                const cvy_value *value = g->value[v];
                if (value->kind != CVY_VALUE_VARIABLE || value->variable->role != CVY_ROLE_STATE)
                    continue;
                if (collect)
                    users[value->variable->index] |= UINT64_C(1) << i;
                else
                    p->step[i]->shares |= users[value->variable->index];
            }
        }
    return CVY_OK;
}

static cvy_status plan_steps(cvy_program *p)
{
    p->arena_bytes = 0;
    for (int i = 0; i < p->nstep; i++) {
        cvy_program_drop_plan(p->step[i]);
        CVY_TRY(plan_step(p, p->step[i]));
    }
    for (int i = 0; i < p->nstep; i++)
        p->arena_bytes = CVY_MAX(p->arena_bytes, place_of(p, p->step[i]) + p->step[i]->plan->arena_bytes);
    CVY_TRY(cvy_pipeline_check(p));
    return find_shares(p);
}

/* All ranks decide alike, as their plans must be alike. */
static cvy_status fit_limit(cvy_program *p)
{
    int64_t need = cvy_program_need(p);
    CVY_TRY(p->context->comm->ops->allreduce(p->context->comm, &need, 1, CVY_DTYPE_I64, CVY_REDUCE_MAX));
    if (need <= p->opts.memory_limit)
        return CVY_OK;
    p->short_of_memory = p->pass_recompute;
    return p->short_of_memory ? plan_steps(p) : CVY_OK;
}

cvy_status cvy_program_prepare(cvy_program *p)
{
    CVY_CHECK(!p->planned && p->nstep > 0, CVY_E_ARGUMENT, "a program is planned once, after at least one step was added");
    if (p->opts.dtype == CVY_DTYPE_BF16 && p->kernels != CVY_KERNELS_REFERENCE)
        CVY_TRY(cvy_comm_agree(p->context->comm, cvy_kernel_check_bf16()));
    const int before = cvy_team_enter(p->context->threads);
    cvy_status status = CVY_OK;
    for (int i = 0; i < p->nstep && status == CVY_OK; i++)
        status = split_batch(p, p->step[i]);
    status = cvy_comm_agree(p->context->comm, status);
    if (status == CVY_OK)
        status = cvy_program_size_buckets(p);
    if (status == CVY_OK)
        status = choose_kernels(p);
    if (status == CVY_OK)
        status = cvy_comm_agree(p->context->comm, plan_steps(p));
    if (status == CVY_OK && p->opts.memory_limit > 0) {
        status = fit_limit(p);
        if (status == CVY_OK)
            status = cvy_program_check_limit(p);
    }
    cvy_team_leave(before);
    p->planned = 1;
    CVY_TRY(cvy_comm_agree(p->context->comm, status));
    return cvy_program_check_alike(p);
}

/* ---- memory and first values ---- */

enum { INIT_PIECE = 1 << 18 }; /* elements */

static size_t common_bytes(const cvy_variable *v)
{
    return (cvy_variable_bytes(v) + 127) & ~(size_t)63; /* the copy in bf16 begins on a line of its own */
}

/* Tensor memory. A clock has no use for it, and so it stays virtual. */
static cvy_status take_pages(const cvy_program *p, size_t bytes, void *out)
{
    return p->by_clock ? cvy_mem_map_pages(bytes, out) : cvy_mem_alloc_pages(bytes, out);
}

/* The optimiser's state of who leaves updates to servers, or but for a part to other ranks: virtual too, until it is written, or a checkpoint is read or
 * written by rank 0. */
static int is_left_to_others(const cvy_program *p, const cvy_variable *v)
{
    return v->role == CVY_ROLE_STATE && (cvy_program_is_sharded(p) || (p->server && !cvy_server_serves(p->server)));
}

/* All variables of a clock in one piece, never touched: a thousand simulated ranks would need more mappings than a process may have. */
static cvy_status map_idle(cvy_program *p)
{
    for (int i = 0; i < p->vars->count; i++) {
        p->vars->at[i]->in_common = 1;
        p->idle_bytes += common_bytes(p->vars->at[i]);
    }
    return cvy_mem_map_pages(p->idle_bytes, &p->idle);
}

static cvy_status allocate_variables(const cvy_program *p)
{
    char *common = p->common ? p->common : p->idle;
    for (int i = 0; i < p->vars->count; i++) {
        cvy_variable *v = p->vars->at[i];
        cvy_blocking b;
        if (v->data)
            continue;
        CVY_TRY(cvy_blocking_make(&v->layout, &v->shape, &b));
        v->layout_fixed = 1;
        v->bytes = (size_t)b.elems * cvy_dtype_bytes(v->dtype);
        if (v->in_common) {
            v->data = common;
            v->rounded = v->keeps_rounded ? common + ((v->bytes + 63) & ~(size_t)63) : NULL;
            common += common_bytes(v);
            continue;
        }
        const cvy_status status = is_left_to_others(p, v) ? cvy_mem_map_pages(v->bytes, &v->data) : take_pages(p, v->bytes, &v->data);
        if (status != CVY_OK)
            return cvy_error_prefix(status, "memory of %s", v->name);
        if (v->keeps_rounded)
            CVY_TRY(take_pages(p, cvy_variable_rounded_bytes(v), &v->rounded));
    }
    return CVY_OK;
}

/* In pieces: a plain copy of the largest variable would be a part of the process's peak memory. */
static cvy_status initialise(const cvy_program *p, cvy_variable *v, void *piece)
{
    const int64_t n = cvy_shape_elems(&v->shape);
    for (int64_t i = 0; i < n && v->init.method && !is_left_to_others(p, v); i += INIT_PIECE) {
        const int64_t count = CVY_MIN(INIT_PIECE, n - i);
        CVY_TRY(cvy_init_fill(v, p->opts.seed, i, count, piece));
        CVY_TRY(cvy_variable_write_part(v, i, count, piece));
    }
    return CVY_OK;
}

cvy_status cvy_program_initialise(cvy_program *p)
{
    void *piece = NULL;
    cvy_status status = cvy_mem_alloc(INIT_PIECE * sizeof(double), &piece);
    for (int i = 0; i < p->vars->count && status == CVY_OK; i++)
        status = initialise(p, p->vars->at[i], piece);
    cvy_mem_free(&piece);
    return status;
}

static void *feed_data(cvy_plan *plan, const char *name)
{
    cvy_plan_feed *feed = cvy_plan_find_feed(plan, name);
    return feed ? feed->data : NULL;
}

/* Until the caller says better, a sample is known by its place in the global batch. */
static void number_samples(const cvy_program *p, const cvy_program_step_info *s)
{
    int64_t *id = feed_data(s->plan, "sample_id"), before = 0;
    for (int m = 0; id && m < s->nmicro; m++) {
        const cvy_batch share = share_of(p, s, m, 0);
        for (int64_t i = 0; i < share.local_n; i++)
            id[s->plan->first_row[m] + i] = before + share.first + i;
        before += p->opts.shards ? 0 : share.global_n;
    }
}

/* Gradients lie at the head of the arena, at the same place on all ranks: memory of the node, where there are several ranks on one. */
static cvy_status share_gradients(cvy_program *p, int *shared_out)
{
    cvy_comm *comm = p->context->comm;
    size_t bytes = 0;
    cvy_program_say_sums(p);
    for (int i = 0; i < p->nstep; i++)
        if (p->step[i]->plan->nbucket > 0)
            bytes = CVY_MAX(bytes, cvy_plan_head_bytes(p->step[i]->plan));
    *shared_out = 0;
    return comm->nranks > 1 && bytes > 0 && !p->server ? comm->ops->share(comm, p->arena, bytes, shared_out) : CVY_OK;
}

static void count_common(cvy_variable *v, void *arg)
{
    size_t *bytes = arg;
    *bytes += v->in_common ? 0 : common_bytes(v);
    v->in_common = 1;
}

/* Weights that the ranks of a node update in parts lie once on the node. All training steps of the program do so, or none. */
static cvy_status make_common(cvy_program *p, int shared)
{
    cvy_comm *comm = p->context->comm;
    size_t bytes = 0;
    int training = 0, can = shared && p->opts.share_weights && !p->alone && !p->late;
    for (int i = 0; i < p->nstep; i++)
        if (p->step[i]->plan->nbucket > 0) {
            training++;
            can = can && cvy_plan_can_part(p->step[i]->plan);
        }
    int64_t all = can && training > 0;
    if (comm->nranks > 1)
        CVY_TRY(comm->ops->allreduce(comm, &all, 1, CVY_DTYPE_I64, CVY_REDUCE_MIN));
    for (int i = 0; i < p->nstep && all; i++)
        if (p->step[i]->plan->nbucket > 0)
            cvy_plan_each_parted(p->step[i]->plan, count_common, &bytes);
    p->common_bytes = bytes;
    if (all)
        CVY_TRY(comm->ops->common(comm, bytes, &p->common));
    for (int i = 0; i < p->vars->count && !p->common; i++)
        p->vars->at[i]->in_common = 0;
    for (int i = 0; i < p->nstep; i++) {
        cvy_plan *const plans[] = {p->step[i]->plan, p->step[i]->twin};
        for (int k = 0; k < CVY_COUNT(plans) && plans[k]; k++)
            plans[k]->in_parts = (p->common || plans[k]->opts.sharded) && plans[k]->nbucket > 0;
    }
    return CVY_OK;
}

static cvy_status bind_plans(cvy_program *p)
{
    for (int i = 0; i < p->nstep; i++) {
        cvy_program_step_info *s = p->step[i];
        CVY_TRY(cvy_plan_bind(s->plan, (char *)p->arena + place_of(p, s)));
        if (s->twin) {
            s->twin->set = 1;
            s->twin->twin = s->plan;
            CVY_TRY(cvy_plan_bind(s->twin, p->arena));
        }
        s->lr = feed_data(s->plan, "lr");
        s->norm = feed_data(s->plan, "norm");
        s->step_number = feed_data(s->plan, "step");
        CVY_TRY(cvy_program_allocate_outputs(s));
        number_samples(p, s);
    }
    return CVY_OK;
}

static cvy_status allocate(cvy_program *p)
{
    cvy_comm *comm = p->context->comm;
    int shared = 0;
    p->arena_bytes = CVY_MAX(p->arena_bytes, 64);
    CVY_TRY(cvy_comm_agree(comm, take_pages(p, p->arena_bytes, &p->arena)));
    CVY_TRY(cvy_comm_agree(comm, cvy_server_create(p)));
    CVY_TRY(share_gradients(p, &shared));
    CVY_TRY(make_common(p, shared));
    CVY_TRY(cvy_shard_check(p));
    if (p->by_clock && !p->common)
        CVY_TRY(cvy_comm_agree(comm, map_idle(p)));
    CVY_TRY(cvy_comm_agree(comm, allocate_variables(p)));
    CVY_TRY(cvy_comm_agree(comm, bind_plans(p)));
    if (p->server)
        CVY_TRY(cvy_comm_agree(comm, cvy_server_connect(p->server)));
    if (p->alone)
        CVY_TRY(cvy_average_create(p));
    if (cvy_program_is_sharded(p))
        CVY_TRY(cvy_shard_create(p));
    return p->by_clock ? CVY_OK : cvy_program_initialise(p);
}

cvy_status cvy_program_allocate(cvy_program *p)
{
    if (!p->by_clock)
        CVY_TRY(cvy_comm_agree(p->context->comm, cvy_program_check_memory(p)));
    const int before = cvy_team_enter(p->context->threads);
    const cvy_status status = allocate(p);
    cvy_team_leave(before);
    p->allocated = status == CVY_OK;
    return cvy_comm_agree(p->context->comm, status);
}

cvy_status cvy_program_plan(cvy_program *p)
{
    CVY_TRY(cvy_context_check_idle(p->context, p));
    CVY_TRY(cvy_program_prepare(p));
    return cvy_program_allocate(p);
}
