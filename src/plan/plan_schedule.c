/*
 * plan_schedule.c: makes the flat list of instructions of a step, on numbered buffers.
 *
 * The order is: the prepare phase of every micro-batch; forward and backward of every micro-batch in turn; the update
 * phase once. A node is never copied: an instruction points to its call, and each micro-batch has its own buffers. The
 * first micro-batch writes the accumulators and later ones add to them. With CVY_MICRO_TREE each micro-batch writes its
 * own part, and the parts are added as a binary tree. All-reduces start in the last micro-batch only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "comm/comm_shards.h"
#include "plan/plan.h"

/* Working state: the buffer of each tensor instance in each micro-batch. */
struct schedule {
    cvy_plan *plan;
    int **buffer_of;       /* [micro][instance], -1: not yet */
    cvy_index step_buffer; /* STEP buffers by the value's name; micro-batches share them */
};

static cvy_status new_buffer(cvy_plan *plan, const cvy_buffer *like, int *out)
{
    CVY_TRY(cvy_mem_reserve(&plan->buffer, &plan->buffer_room, plan->nbuffer, sizeof *plan->buffer));
    plan->buffer[plan->nbuffer] = *like;
    plan->buffer[plan->nbuffer].root = plan->nbuffer;
    plan->buffer[plan->nbuffer].first = plan->buffer[plan->nbuffer].last = -1;
    *out = plan->nbuffer++;
    return CVY_OK;
}

static cvy_status find_feed(cvy_plan *plan, const cvy_value *v, int *out)
{
    for (int i = 0; i < plan->feeds.count; i++)
        if (strcmp(plan->feeds.feed[i].name, v->name) == 0) {
            *out = i;
            return CVY_OK;
        }
    CVY_CHECK(plan->feeds.count < CVY_COUNT(plan->feeds.feed), CVY_E_UNSUPPORTED, "a step has more than %d inputs",
              CVY_COUNT(plan->feeds.feed));
    cvy_plan_feed *feed = &plan->feeds.feed[plan->feeds.count];
    *feed = (cvy_plan_feed){.name = v->name,
                            .dtype = cvy_plan_outside_dtype(v->dtype),
                            .shape = v->shape,
                            .tile = v->tile,
                            .per_step = v->per_step};
    int64_t row = 1;
    for (int i = v->per_step ? 0 : 1; i < v->shape.ndim; i++)
        row *= v->shape.dim[i];
    feed->row_bytes = (size_t)row * cvy_dtype_bytes(feed->dtype);
    if (!v->per_step)
        feed->shape.dim[0] = plan->rows;
    feed->bytes = feed->row_bytes * (size_t)(v->per_step ? 1 : plan->rows);
    *out = plan->feeds.count++;
    return CVY_OK;
}

/* Whether all micro-batches share the value, and it stays until the end of the step: accumulators, and results of
 * communication in the prepare phase. */
static int is_step_value(const cvy_value *v)
{
    return v->kind == CVY_VALUE_ACCUMULATOR ||
           (v->producer && v->producer->phase == CVY_PHASE_PREPARE && (v->producer->op->flags & CVY_OP_COMM));
}

/* The buffer of the same copy of a variable that this or an earlier micro-batch made already, maybe in another lowered
 * graph; -1: none. */
static int find_once(const struct schedule *s, int m, const cvy_instance *instance)
{
    for (int before = 0; before <= m; before++) {
        const cvy_lowered *u = s->plan->lowered[before];
        for (int l = 0; l < u->ninstance; l++)
            if (u->instance[l].is_once && s->buffer_of[before][l] >= 0 &&
                u->instance[l].value->variable == instance->value->variable &&
                u->instance[l].dtype == instance->dtype && cvy_layout_equal(&u->instance[l].layout, &instance->layout))
                return s->buffer_of[before][l];
    }
    return -1;
}

static cvy_status buffer_for(struct schedule *s, int m, int instance, int *out)
{
    cvy_plan *plan = s->plan;
    int *known = &s->buffer_of[m][instance];
    if (*known >= 0) {
        *out = *known;
        return CVY_OK;
    }
    const cvy_instance *l = &plan->lowered[m]->instance[instance];
    cvy_value *v = l->value;
    cvy_buffer b = {.region = CVY_REGION_ARENA, .value = v, .name = v->name, .bytes = l->bytes, .bucket = -1};
    if (l->canonical && v->kind == CVY_VALUE_FEED) {
        b.region = CVY_REGION_FEED;
        CVY_TRY(find_feed(plan, v, &b.feed));
        b.offset = v->per_step ? 0 : plan->feeds.feed[b.feed].row_bytes * (size_t)plan->first_row[m];
    } else if (l->canonical && v->kind == CVY_VALUE_VARIABLE) {
        b.region = CVY_REGION_VARIABLE;
    } else if (l->canonical && is_step_value(v)) {
        b.region = CVY_REGION_STEP;
        b.bucket = v->reduced ? v->bucket : -1;
        *known = cvy_index_find(&s->step_buffer, v->name);
    } else if (l->is_once) {
        *known = find_once(s, m, l);
        if (l->is_shadow) {
            b.region = CVY_REGION_SHADOW;
            v->variable->has_shadow = 1;
        }
    }
    if (*known < 0) {
        CVY_TRY(new_buffer(plan, &b, known));
        if (b.region == CVY_REGION_STEP)
            CVY_TRY(cvy_index_add(&s->step_buffer, v->name, *known));
    }
    if (l->view_of >= 0) {
        int root = -1;
        CVY_TRY(buffer_for(s, m, l->view_of, &root));
        cvy_buffer *view = &plan->buffer[s->buffer_of[m][instance]];
        view->root = plan->buffer[root].root;
        view->at = plan->buffer[root].at + l->view_at;
        view->slice = cvy_layout_whole(&l->layout) > 0;
    }
    *out = s->buffer_of[m][instance];
    return CVY_OK;
}

static cvy_status new_instr(cvy_plan *plan, cvy_call_kind kind, const cvy_call *call, int m, int nsrc, int ndst,
                            cvy_instr **out)
{
    int *lists = NULL;
    CVY_TRY(cvy_pool_alloc(plan->pool, sizeof *lists * (size_t)(nsrc + ndst), &lists));
    CVY_TRY(cvy_mem_reserve(&plan->instr, &plan->instr_room, plan->ninstr, sizeof *plan->instr));
    cvy_instr *instr = &plan->instr[plan->ninstr++];
    memset(instr, 0, sizeof *instr);
    instr->kind = kind;
    instr->call = call;
    instr->micro = m;
    instr->scratch_buffer = -1;
    instr->src_buffer = lists;
    instr->dst_buffer = lists + nsrc;
    instr->nsrc = nsrc;
    instr->ndst = ndst;
    for (int i = 0; i < nsrc + ndst; i++)
        lists[i] = -1;
    *out = instr;
    return CVY_OK;
}

static cvy_status add_zero(struct schedule *s, int m, int buffer)
{
    cvy_instr *instr = NULL;
    CVY_TRY(new_instr(s->plan, CVY_CALL_ZERO, NULL, m, 0, 1, &instr));
    instr->dst_buffer[0] = buffer;
    return CVY_OK;
}

/* Gives a destination memory of its own. */
static cvy_status make_separate(cvy_plan *plan, int instr_at, int dst, int *part_out)
{
    cvy_buffer separate = plan->buffer[plan->instr[instr_at].dst_buffer[dst]];
    separate.region = CVY_REGION_ARENA;
    separate.bucket = -1;
    CVY_TRY(new_buffer(plan, &separate, part_out));
    plan->instr[instr_at].dst_buffer[dst] = *part_out;
    return CVY_OK;
}

static cvy_status add_accumulate(cvy_plan *plan, int m, int part, int sum)
{
    cvy_instr *add = NULL;
    CVY_TRY(new_instr(plan, CVY_CALL_ACCUMULATE, NULL, m, 1, 1, &add));
    add->src_buffer[0] = part;
    add->dst_buffer[0] = sum;
    return CVY_OK;
}

/* A later micro-batch writes its part into a separate buffer, which is then added. */
static cvy_status accumulate_separate(struct schedule *s, int m, int instr_at, int dst)
{
    const int sum = s->plan->instr[instr_at].dst_buffer[dst];
    int part = -1;
    CVY_TRY(make_separate(s->plan, instr_at, dst, &part));
    return add_accumulate(s->plan, m, part, sum);
}

/* The buffer of the part that micro-batch m has of an accumulator; -1: none. */
static int part_in(const struct schedule *s, int m, const cvy_value *accumulator)
{
    const cvy_lowered *u = s->plan->lowered[m];
    const cvy_value *v = cvy_graph_find(u->graph, accumulator->name); /* m may have another graph */
    int l = v ? u->newest[v->index] : -1;
    while (l >= 0 && !u->instance[l].canonical)
        l = u->instance[l].before;
    return l >= 0 ? s->buffer_of[m][l] : -1;
}

/* All micro-batches but the last have separate parts. When a part is ready, the sums of the subtrees that end before it
 * are added to it. The sum of a subtree is in the part of its last micro-batch. */
static cvy_status accumulate_as_tree(struct schedule *s, int m, int instr_at, int dst, int instance, cvy_phase phase)
{
    cvy_plan *plan = s->plan;
    const cvy_value *v = plan->lowered[m]->instance[instance].value;
    if (m < plan->nmicro - 1)
        CVY_TRY(make_separate(plan, instr_at, dst, &s->buffer_of[m][instance]));
    if (plan->opts.micro_sums == CVY_MICRO_SEPARATE && phase == CVY_PHASE_MICRO)
        return CVY_OK;
    const int sum = s->buffer_of[m][instance], merges = cvy_shards_merges(m);
    for (int level = 0; level < merges; level++) {
        const int part = part_in(s, m - (1 << level), v);
        CVY_CHECK(part >= 0 && part != sum, CVY_E_INTERNAL, "%s has no part in micro-batch %d", v->name,
                  m - (1 << level));
        CVY_TRY(add_accumulate(plan, m, part, sum));
    }
    return CVY_OK;
}

/* Adds the accumulation after an instruction whose destination dst is the canonical instance of an accumulator. */
static cvy_status accumulate(struct schedule *s, int m, int instr_at, int dst, int instance, cvy_phase phase)
{
    if (s->plan->opts.micro_sums != CVY_MICRO_IN_ORDER)
        return accumulate_as_tree(s, m, instr_at, dst, instance, phase);
    return m > 0 ? accumulate_separate(s, m, instr_at, dst) : CVY_OK;
}

static int reads(const cvy_node *node, const cvy_value *v)
{
    int found = 0;
    for (int i = 0; i < node->nsrc; i++)
        found |= node->src[i] == v;
    return found;
}

/* For a node that does not run on this rank: accumulators and values that are sent to other ranks are set to zero. */
static cvy_status add_absent(struct schedule *s, int m, const cvy_call *call)
{
    const int in_order = s->plan->opts.micro_sums == CVY_MICRO_IN_ORDER;
    const cvy_lowered *u = s->plan->lowered[m];
    for (int i = 0; i < call->ndst; i++) {
        if (call->dst[i] < 0)
            continue;
        const cvy_value *v = u->instance[call->dst[i]].value;
        const int adds_up = v->kind == CVY_VALUE_ACCUMULATOR;
        int sent = adds_up && (m == 0 || !in_order); /* in order: only the first is set to zero */
        for (int c = 0; c < u->ncall && !adds_up && !sent; c++)
            sent = u->call[c].kind == CVY_CALL_COMM && reads(u->call[c].node, v);
        int buffer = -1;
        if (!sent)
            continue;
        CVY_TRY(buffer_for(s, m, call->dst[i], &buffer));
        CVY_TRY(add_zero(s, m, buffer));
        if (adds_up)
            CVY_TRY(accumulate(s, m, s->plan->ninstr - 1, 0, call->dst[i], call->phase));
    }
    return CVY_OK;
}

static cvy_status add_call(struct schedule *s, int m, const cvy_call *call)
{
    cvy_plan *plan = s->plan;
    const cvy_lowered *u = plan->lowered[m];
    cvy_instr *instr = NULL;
    CVY_TRY(new_instr(plan, call->kind, call, m, call->nsrc, call->ndst, &instr));
    const int at = plan->ninstr - 1;
    for (int i = 0; i < call->nsrc; i++)
        if (call->src[i] >= 0) {
            int buffer = -1;
            CVY_TRY(buffer_for(s, m, call->src[i], &buffer));
            plan->instr[at].src_buffer[i] = buffer;
        }
    for (int i = 0; i < call->ndst; i++)
        if (call->dst[i] >= 0) {
            int buffer = -1;
            CVY_TRY(buffer_for(s, m, call->dst[i], &buffer));
            plan->instr[at].dst_buffer[i] = buffer;
        }
    if (call->ask.scratch_bytes) {
        const cvy_buffer scratch = {
            .region = CVY_REGION_ARENA, .name = "scratch", .bytes = call->ask.scratch_bytes, .bucket = -1};
        int buffer = -1;
        CVY_TRY(new_buffer(plan, &scratch, &buffer));
        plan->instr[at].scratch_buffer = buffer;
    }
    for (int i = 0; i < call->ndst; i++) {
        const cvy_instance *l = call->dst[i] >= 0 ? &u->instance[call->dst[i]] : NULL;
        if (l && l->canonical && l->value->kind == CVY_VALUE_ACCUMULATOR)
            CVY_TRY(accumulate(s, m, at, i, call->dst[i], call->phase));
    }
    return CVY_OK;
}

static int only_last(const cvy_call *call)
{
    const unsigned flags = call->node ? call->node->op->flags : 0;
    return (flags & CVY_OP_ONCE) || (call->phase == CVY_PHASE_PREPARE && (flags & CVY_OP_COMM));
}

/* The instructions of a micro-batch that are added together. */
typedef struct part_of_phase {
    cvy_phase phase;
    int passes; /* a bit set: forward, backward */
    int roles;  /* a bit set: which messages between stages; all other instructions are added if it is 0 */
    int chunk;  /* of this stage of the rank; EVERY_CHUNK: of all */
} part_of_phase;
enum { FORWARD = 1, BACKWARD = 2, RECEIVES = 1, SENDS_DONE = 2, EVERY_CHUNK = -1 };

/* Starts of receives and waits for sends have places of their own; 0: another instruction. */
static int role_of(const cvy_call *call)
{
    const cvy_op_comm *comm = call->kind == CVY_CALL_COMM ? call->node->op->comm : NULL;
    return !comm || comm->exchange != CVY_EXCHANGE_MESSAGE || comm->receives != comm->starts ? 0
           : comm->receives                                                                  ? RECEIVES
                                                                                             : SENDS_DONE;
}

static int is_in(const cvy_call *call, const part_of_phase *part)
{
    const int role = role_of(call);
    return call->phase == part->phase && part->passes & (call->backward ? BACKWARD : FORWARD) &&
           (part->chunk == EVERY_CHUNK || part->chunk == call->chunk) && (role ? part->roles & role : !part->roles);
}

static cvy_status add_part(struct schedule *s, int m, const part_of_phase *part)
{
    const cvy_plan *plan = s->plan;
    const cvy_lowered *u = plan->lowered[m];
    for (int c = 0; c < u->ncall; c++) {
        const cvy_call *call = &u->call[c];
        if (!is_in(call, part) || call->kind == CVY_CALL_VIEW || (only_last(call) && m != plan->nmicro - 1))
            continue;
        if (call->kind == CVY_CALL_REORDER && u->instance[call->dst[0]].is_once &&
            find_once(s, m, &u->instance[call->dst[0]]) >= 0)
            continue;
        if (call->kind == CVY_CALL_ABSENT)
            CVY_TRY(add_absent(s, m, call));
        else
            CVY_TRY(add_call(s, m, call));
    }
    return CVY_OK;
}

/* The barrier does nothing if binding finds that the ranks need none. */
static cvy_status add_barrier(cvy_plan *plan)
{
    cvy_instr *instr = NULL;
    return plan->opts.comm->node_nranks > 1 ? new_instr(plan, CVY_CALL_BARRIER, NULL, plan->nmicro - 1, 0, 0, &instr)
                                            : CVY_OK;
}

static cvy_status add_phase(struct schedule *s, int m, cvy_phase phase)
{
    return add_part(s, m, &(part_of_phase){phase, FORWARD | BACKWARD, 0, EVERY_CHUNK});
}

/* One pass of one micro-batch, as a stage of a pipeline runs it. */
typedef struct turn {
    int micro, pass, chunk;
} turn;

static int chunks_of(const cvy_plan *plan)
{
    return CVY_MAX(plan->opts.nchunks, 1);
}

/* Pass k in the order of interleaved stages: as many micro-batches as there are ranks go through the first chunk, then
 * through the next one, and so on; backward begins with the last chunk. */
static turn interleaved_turn(const cvy_plan *plan, int pass, int k)
{
    const int nranks = plan->opts.grid->nstages, nchunks = chunks_of(plan), group = k / (nranks * nchunks) * nranks,
              width = CVY_MIN(nranks, plan->nmicro - group), at = k - group * nchunks, chunk = at / width;
    return (turn){group + at % width, pass, pass == FORWARD ? chunk : nchunks - 1 - chunk};
}

/* The order of a rank with several stages. A rank runs as many forward passes first as it needs until its first
 * gradient can be there. That order works for whole groups of micro-batches only; otherwise all forward passes are
 * first. Source: Narayanan et al. 2021, Efficient large-scale language model training on GPU clusters, section 2.2. */
static int list_interleaved(const cvy_plan *plan, turn *list)
{
    const cvy_grid *grid = plan->opts.grid;
    const int training = plan->lowered[0]->graph->training, all = plan->nmicro * chunks_of(plan);
    int n = 0, ahead = all, forward = 0, backward = 0;
    if (training && plan->opts.order == CVY_PIPELINE_1F1B && plan->nmicro % grid->nstages == 0)
        ahead = CVY_MIN(2 * (grid->nstages - grid->stage - 1) + (chunks_of(plan) - 1) * grid->nstages + 1, all);
    while (forward < ahead)
        list[n++] = interleaved_turn(plan, FORWARD, forward++);
    while (training && backward < all) {
        list[n++] = interleaved_turn(plan, BACKWARD, backward++);
        if (forward < all)
            list[n++] = interleaved_turn(plan, FORWARD, forward++);
    }
    return n;
}

/* The order in which this stage runs its passes. With 1F1B a stage runs as many forward passes first as there are
 * stages after it; then each backward pass frees the activations that the next forward pass needs.
 * Source: Narayanan et al. 2019, PipeDream, section 3.2. */
static int list_turns(const cvy_plan *plan, turn *list)
{
    const cvy_grid *grid = plan->opts.grid;
    const int training = plan->lowered[0]->graph->training;
    int n = 0, ahead = plan->nmicro, forward = 0, backward = 0;
    if (chunks_of(plan) > 1)
        return list_interleaved(plan, list);
    if (training && plan->opts.order == CVY_PIPELINE_1F1B)
        ahead = CVY_MIN(grid->nstages - grid->stage, plan->nmicro);
    while (forward < ahead)
        list[n++] = (turn){forward++, FORWARD, 0};
    while (training && backward < plan->nmicro) {
        list[n++] = (turn){backward++, BACKWARD, 0};
        if (forward < plan->nmicro)
            list[n++] = (turn){forward++, FORWARD, 0};
    }
    return n;
}

static cvy_status add_messages(struct schedule *s, const turn *of, int roles)
{
    return add_part(s, of->micro, &(part_of_phase){CVY_PHASE_MICRO, of->pass, roles, of->chunk});
}

/* The receives of a pass are started one pass earlier, so that values arrive while kernels run; a value that was sent
 * is kept for one pass more. With interleaved stages it is kept until all ranks have had a turn, because its reader may
 * first work on other chunks. */
static cvy_status add_turns(struct schedule *s, const turn *list, int n)
{
    const int kept = chunks_of(s->plan) > 1 ? 2 * s->plan->opts.grid->nstages : 1;
    for (int t = 0; t < n; t++) {
        if (t == 0)
            CVY_TRY(add_messages(s, &list[t], RECEIVES));
        if (t < n - 1)
            CVY_TRY(add_messages(s, &list[t + 1], RECEIVES));
        CVY_TRY(add_part(s, list[t].micro, &(part_of_phase){CVY_PHASE_MICRO, list[t].pass, 0, list[t].chunk}));
        if (t >= kept)
            CVY_TRY(add_messages(s, &list[t - kept], SENDS_DONE));
    }
    for (int t = CVY_MAX(n - kept, 0); t < n; t++)
        CVY_TRY(add_messages(s, &list[t], SENDS_DONE));
    return CVY_OK;
}

static cvy_status add_pipeline(struct schedule *s)
{
    turn *list = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *list * (size_t)(2 * s->plan->nmicro * chunks_of(s->plan)), &list));
    const cvy_status status = add_turns(s, list, list_turns(s->plan, list));
    cvy_mem_free(&list);
    return status;
}

static cvy_status run_phases(struct schedule *s)
{
    cvy_plan *plan = s->plan;
    const int in_stages = plan->opts.grid && plan->opts.grid->nstages > 1;
    for (int m = 0; m < plan->nmicro; m++)
        CVY_TRY(add_phase(s, m, CVY_PHASE_PREPARE));
    for (int m = 0; m < plan->nmicro && !in_stages; m++)
        CVY_TRY(add_phase(s, m, CVY_PHASE_MICRO));
    if (in_stages)
        CVY_TRY(add_pipeline(s));
    plan->update.first = plan->ninstr;
    CVY_TRY(add_barrier(plan));
    CVY_TRY(add_phase(s, plan->nmicro - 1, CVY_PHASE_UPDATE));
    return add_barrier(plan);
}

static cvy_status schedule(struct schedule *s)
{
    cvy_plan *plan = s->plan;
    for (int m = 0; m < plan->nmicro; m++) {
        CVY_TRY(
            cvy_mem_alloc(sizeof **s->buffer_of * (size_t)CVY_MAX(plan->lowered[m]->ninstance, 1), &s->buffer_of[m]));
        for (int l = 0; l < plan->lowered[m]->ninstance; l++)
            s->buffer_of[m][l] = -1;
    }
    /* Feeds are first. They have memory even if a rank has no samples, so the caller may always fill them. */
    for (int m = 0; m < plan->nmicro; m++)
        for (int v = 0; v < plan->lowered[m]->graph->nvalue; v++) {
            int feed = -1;
            if (plan->lowered[m]->graph->value[v]->kind == CVY_VALUE_FEED)
                CVY_TRY(find_feed(plan, plan->lowered[m]->graph->value[v], &feed));
        }
    return run_phases(s);
}

cvy_status cvy_plan_schedule(cvy_plan *plan)
{
    struct schedule s = {.plan = plan};
    CVY_TRY(cvy_mem_alloc(sizeof *s.buffer_of * (size_t)plan->nmicro, &s.buffer_of));
    cvy_status status = schedule(&s);
    if (status == CVY_OK)
        status = cvy_mem_trim(&plan->instr, &plan->instr_room, plan->ninstr, sizeof *plan->instr);
    if (status == CVY_OK)
        status = cvy_mem_trim(&plan->buffer, &plan->buffer_room, plan->nbuffer, sizeof *plan->buffer);
    for (int m = 0; m < plan->nmicro; m++)
        cvy_mem_free(&s.buffer_of[m]);
    cvy_mem_free(&s.buffer_of);
    cvy_index_free(&s.step_buffer);
    return status;
}
