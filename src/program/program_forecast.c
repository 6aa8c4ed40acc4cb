/*
 * program_forecast.c: turns the plan of a rank into a list of work and exchanges with their times.
 *
 * Kernels take the times of a rehearsal, or else those of the wisdom. Exchanges take what their bytes cost on the
 * network. What the plan's instructions do not show is added where it happens in a step: the look at all gradients
 * before the update, and the agreement of all ranks (program_guard.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program_forecast.h"

#include <math.h>
#include <string.h>

#include "op/comm/op_message.h"
#include "op/comm/op_redistribute.h"
#include "plan/plan_offers.h"
#include "program/program_impl.h"

/* If no time is known: a core of today is so much faster than cvy_node_estimate_ms() assumes. */
#define USUAL 0.15

struct lister {
    const cvy_program *p;
    const cvy_plan *plan;
    const cvy_network *network;
    cvy_forecast_stage *out;
    cvy_forecast_basis *basis;
    double per_estimate; /* measured time of an estimated one */
    int *ranks;          /* [all ranks]: of a group */
    int update_parts;    /* ranks that share the update of each weight */
};

/* ---- kernels ---- */

static cvy_status find_ms(const struct lister *l, const cvy_instr *instr, double *ms_out)
{
    const double *rehearsed_s = l->plan->times.rehearsed_s;
    *ms_out = rehearsed_s ? 1e3 * rehearsed_s[instr - l->plan->instr] : CVY_MS_UNKNOWN;
    if (!rehearsed_s && l->p->kernel.wisdom)
        CVY_TRY(cvy_wisdom_find_call(l->p->kernel.wisdom, l->plan->lowered[instr->micro], instr->call,
                                     l->plan->opts.threads, ms_out));
    if (isinf(*ms_out))
        *ms_out = CVY_MS_UNKNOWN;
    return CVY_OK;
}

static size_t bytes_of(const cvy_plan *plan, int buffer)
{
    return buffer >= 0 ? plan->buffer[buffer].bytes : 0;
}

static size_t bytes_moved(const cvy_plan *plan, const cvy_instr *instr)
{
    size_t bytes = 0;
    for (int i = 0; i < instr->nsrc; i++)
        bytes += bytes_of(plan, instr->src_buffer[i]);
    for (int i = 0; i < instr->ndst; i++)
        bytes += bytes_of(plan, instr->dst_buffer[i]);
    return bytes;
}

/* Finds how estimates compare with the times that are known. */
static cvy_status compare_estimates(struct lister *l)
{
    double known = 0, estimated = 0;
    for (int i = 0; i < l->plan->ninstr; i++) {
        double ms = 0;
        if (!cvy_call_runs_node(l->plan->instr[i].call))
            continue;
        CVY_TRY(find_ms(l, &l->plan->instr[i], &ms));
        known += CVY_MAX(ms, 0);
        estimated += ms < 0 ? 0 : cvy_node_estimate_ms(l->plan->instr[i].call->node);
    }
    l->per_estimate = estimated > 0 ? known / estimated : USUAL / l->plan->opts.threads;
    return CVY_OK;
}

static cvy_status add_work(struct lister *l, double seconds)
{
    cvy_forecast_stage *s = l->out;
    if (s->n > 0 && s->item[s->n - 1].kind == CVY_FORECAST_WORK) {
        s->item[s->n - 1].work_s += seconds;
        return CVY_OK;
    }
    return cvy_forecast_add(s, &(cvy_forecast_item){.kind = CVY_FORECAST_WORK, .work_s = seconds});
}

/* Shadow copies are kept across steps. */
static cvy_status add_kernel(struct lister *l, const cvy_instr *instr)
{
    const cvy_lowered *u = l->plan->lowered[instr->micro];
    const int runs_node = cvy_call_runs_node(instr->call),
              is_update = runs_node && instr->call->phase == CVY_PHASE_UPDATE;
    double ms = 0;
    if (cvy_call_makes_shadow(u, instr->call))
        return CVY_OK;
    CVY_TRY(find_ms(l, instr, &ms));
    const int known = ms >= 0;
    if (!known)
        ms = runs_node ? l->per_estimate * cvy_node_estimate_ms(instr->call->node)
                       : 1e3 * (double)bytes_moved(l->plan, instr) * l->network->copy_s;
    if (is_update && cvy_instr_parted(l->plan, instr))
        ms /= l->update_parts;
    l->basis->ncall++;
    l->basis->nunknown += !known;
    *(known ? &l->basis->known_s : &l->basis->rough_s) += 1e-3 * ms;
    return add_work(l, 1e-3 * ms);
}

/* ---- exchanges ---- */

static int group(const struct lister *l, unsigned set)
{
    return cvy_grid_members(&l->p->grid, set, l->ranks);
}

/* Ranks of a node that reduce at the same time share its link to others. */
static int crowd(const struct lister *l)
{
    return CVY_MIN(l->network->node_ranks, l->p->context->comm->nranks);
}

/* by_memory: as the buckets of gradients are summed, in the shared memory of a node, and between nodes maybe rounded.
 */
static cvy_status price_sum(const struct lister *l, unsigned set, int64_t bytes, int by_memory, cvy_forecast_item *item)
{
    cvy_network network = *l->network;
    cvy_exchange_time time = {0};
    const int n = group(l, set);
    if (by_memory && l->p->reduce.opts.wire == CVY_DTYPE_BF16)
        network.across.beta_s /= 2;
    CVY_TRY(cvy_network_allreduce(&network, l->ranks, n, bytes, by_memory && !l->p->reduce.opts.no_node,
                                  l->p->reduce.opts.algorithm, crowd(l), &time));
    item->work_s = time.work_s;
    item->wire_s = time.wire_s;
    return CVY_OK;
}

/* A reduction over the pipeline axis, of losses, ends when all stages have come to it. */
static cvy_status add_bucket(struct lister *l, int number, int starts)
{
    const cvy_bucket *bucket = &l->plan->buckets->bucket[number];
    const unsigned set = bucket->over | CVY_AXIS_BIT(CVY_AXIS_DATA);
    const int meets = cvy_plan_bucket_axis(l->plan, number) == CVY_COMM_PIPELINE,
              blocks = starts && l->plan->opts.blocking;
    cvy_forecast_item item = {.kind = meets    ? CVY_FORECAST_MEET
                                      : blocks ? CVY_FORECAST_EXCHANGE
                                      : starts ? CVY_FORECAST_START
                                               : CVY_FORECAST_WAIT,
                              .axis = meets ? CVY_COMM_PIPELINE : CVY_COMM_DATA,
                              .number = number};
    if ((meets && starts) || (!starts && l->plan->opts.blocking && !meets))
        return CVY_OK;
    if (starts || meets)
        CVY_TRY(price_sum(l, set, (int64_t)bucket->bytes, 1, &item));
    return cvy_forecast_add(l->out, &item);
}

static cvy_status add_sum(struct lister *l, const cvy_instr *instr)
{
    const struct cvy_allreduce_axis *o = instr->call->node->options;
    cvy_forecast_item item = {.kind = o->axis == CVY_AXIS_PIPELINE ? CVY_FORECAST_MEET : CVY_FORECAST_EXCHANGE,
                              .axis = cvy_comm_axis_of(o->axis)};
    CVY_TRY(price_sum(l, CVY_AXIS_BIT(o->axis), (int64_t)bytes_of(l->plan, instr->dst_buffer[0]), 0, &item));
    return cvy_forecast_add(l->out, &item);
}

/* The entries that this rank sends to part p, or receives from it. */
static int64_t entries(const struct cvy_redistribute *o, int p, int sends)
{
    int64_t from, from_end, to, to_end;
    cvy_has_range(o, o->from, sends ? o->me : p, &from, &from_end);
    cvy_has_range(o, o->to, sends ? p : o->me, &to, &to_end);
    return CVY_MAX(CVY_MIN(CVY_MIN(from_end, to_end), o->n) - CVY_MAX(CVY_MAX(from, to), 0), 0);
}

/* The number of an exchange in two halves: that of the value between them, after the numbers of the buckets. */
static int number_of_halves(const struct lister *l, const cvy_instr *instr, const cvy_value *token)
{
    const cvy_graph *g = instr->call->node->graph;
    return l->plan->buckets->n + instr->micro * g->nvalue + token->index;
}

/* Both directions are under way at the same time. What is sent is packed before, and what came is unpacked. The first
 * half of an exchange in two halves counts all of this; the second one waits. */
static cvy_status add_redistribution(struct lister *l, const cvy_instr *instr)
{
    const struct cvy_redistribute *o = instr->call->node->options;
    const int halves = cvy_instr_comm(instr)->starts;
    const cvy_grid *grid = &l->p->grid;
    const cvy_shape *shape = cvy_node_src(instr->call->node, 0);
    const double entry = (double)bytes_of(l->plan, instr->src_buffer[0]) / (double)CVY_MAX(shape->dim[o->dim], 1);
    double packed = (double)bytes_of(l->plan, instr->src_buffer[0]), wire_s[2] = {0};
    int at[CVY_AXES];
    memcpy(at, grid->at, sizeof at);
    for (int p = 0; p < o->parts && o->from != CVY_HAS_WHOLE; p++) {
        at[o->axis] = p;
        const cvy_link *link = cvy_network_link(l->network, grid->all->rank, cvy_grid_rank(grid, at));
        for (int sends = 0; sends < 2 && p != o->me; sends++) {
            const double bytes = entry * (double)entries(o, p, sends);
            wire_s[sends] += bytes > 0 ? link->alpha_s + bytes * link->beta_s : 0;
            packed += bytes;
        }
    }
    return cvy_forecast_add(
        l->out, &(cvy_forecast_item){.kind = halves ? CVY_FORECAST_START : CVY_FORECAST_EXCHANGE,
                                     .axis = cvy_comm_axis_of(o->axis),
                                     .number = halves ? number_of_halves(l, instr, instr->call->node->dst[0]) : 0,
                                     .work_s = 2 * packed * l->network->copy_s,
                                     .wire_s = CVY_MAX(wire_s[0], wire_s[1])});
}

static cvy_status add_end_of_halves(struct lister *l, const cvy_instr *instr)
{
    const struct cvy_redistribute *o = instr->call->node->options;
    return cvy_forecast_add(l->out,
                            &(cvy_forecast_item){.kind = CVY_FORECAST_WAIT,
                                                 .axis = cvy_comm_axis_of(o->axis),
                                                 .number = number_of_halves(l, instr, instr->call->node->src[1])});
}

/* Within a node the rank itself copies what it receives, while it waits. */
static cvy_status add_message(struct lister *l, const cvy_instr *instr)
{
    static const cvy_forecast_kind kinds[2][2] = {{CVY_FORECAST_SENT, CVY_FORECAST_SEND},
                                                  {CVY_FORECAST_RECEIVED, CVY_FORECAST_RECEIVE}};
    const struct cvy_message_options *o = instr->call->node->options;
    const cvy_grid *grid = &l->p->grid;
    const cvy_op_comm *comm = cvy_instr_comm(instr);
    int at[CVY_AXES];
    memcpy(at, grid->at, sizeof at);
    at[CVY_AXIS_PIPELINE] = (int)o->stage;
    const int other = cvy_grid_rank(grid, at);
    const cvy_link *link = cvy_network_link(l->network, grid->all->rank, other);
    const int copies = link == &l->network->inside;
    const double bytes_s = comm->starts != comm->receives
                               ? (double)bytes_of(l->plan, instr->src_buffer[0]) * link->beta_s
                               : 0,
                 send_s = comm->receives ? 0 : bytes_s, copy_s = comm->receives ? bytes_s : 0;
    CVY_TRY(cvy_forecast_add(l->out, &(cvy_forecast_item){.kind = kinds[comm->receives][comm->starts],
                                                          .axis = CVY_COMM_PIPELINE,
                                                          .wire_s = copies ? 0 : send_s,
                                                          .latency_s = link->alpha_s,
                                                          .peer = (int)o->stage,
                                                          .number = (int)o->tag,
                                                          .micro = instr->micro}));
    return copies && copy_s > 0 ? add_work(l, copy_s) : CVY_OK;
}

static cvy_status add_comm(struct lister *l, const cvy_instr *instr)
{
    const cvy_op_comm *comm = cvy_instr_comm(instr);
    switch (comm->exchange) {
    case CVY_EXCHANGE_SUM: return add_sum(l, instr);
    case CVY_EXCHANGE_PARTS: return comm->waits ? add_end_of_halves(l, instr) : add_redistribution(l, instr);
    case CVY_EXCHANGE_MESSAGE: return add_message(l, instr);
    case CVY_EXCHANGE_BUCKET:
        return add_bucket(l, CVY_MAX(cvy_instr_starts_bucket(instr), cvy_instr_awaits_bucket(instr)), comm->starts);
    }
    return CVY_OK;
}

/* ---- the step ---- */

static cvy_status add_instr(struct lister *l, const cvy_instr *instr)
{
    const int passes = cvy_instr_passes(instr);
    if (cvy_call_is_timed(instr->call) || (l->plan->times.rehearsed_s && cvy_instr_computes(instr)))
        return add_kernel(l, instr);
    if (cvy_instr_comm(instr))
        return add_comm(l, instr);
    return passes > 0 ? add_work(l, passes * (double)bytes_of(l->plan, instr->dst_buffer[0]) * l->network->copy_s)
                      : CVY_OK;
}

/* Before the update each rank looks whether its gradients are finite, and with more than a data axis all ranks agree on
 * it. */
static cvy_status add_agreement(struct lister *l)
{
    cvy_forecast_item meet = {.kind = CVY_FORECAST_MEET, .axis = CVY_COMM_PIPELINE};
    double bytes = 0;
    for (int i = 0; i < l->plan->nbuffer; i++) {
        const cvy_buffer *b = &l->plan->buffer[i];
        if (b->region == CVY_REGION_STEP && b->root == i && b->value && b->value->kind == CVY_VALUE_ACCUMULATOR &&
            b->value->variable)
            bytes += (double)b->bytes / l->update_parts;
    }
    CVY_TRY(add_work(l, bytes * l->network->copy_s));
    if (!cvy_grid_is_used(&l->p->grid))
        return CVY_OK;
    const unsigned all = (1u << CVY_AXES) - 1;
    CVY_TRY(price_sum(l, all, (int64_t)sizeof(int64_t), 0, &meet));
    return cvy_forecast_add(l->out, &meet);
}

static cvy_status list(struct lister *l)
{
    CVY_TRY(compare_estimates(l));
    for (int i = 0; i < l->plan->ninstr; i++) {
        if (i == l->plan->update.first)
            CVY_TRY(add_agreement(l));
        CVY_TRY(add_instr(l, &l->plan->instr[i]));
    }
    return CVY_OK;
}

/* The ranks of a node that share weights, as program_allocate.c decides it: each updates a part. */
static int update_parts(const cvy_program *p, const cvy_plan *plan)
{
    const cvy_comm *comm = p->update.shape.comm;
    const int shares = cvy_program_can_share_update(p, plan) && !p->reduce.opts.no_node;
    return p->update.shape.state_parts > 1 ? p->update.shape.state_parts : shares ? comm->node_nranks : 1;
}

cvy_status cvy_program_forecast(const cvy_program *p, int task, const cvy_network *network, cvy_forecast_stage *out,
                                cvy_forecast_basis *basis)
{
    struct lister l = {.p = p, .plan = p->task[task]->plan, .network = network, .out = out, .basis = basis};
    CVY_CHECK(!p->update.def->apart, CVY_E_UNSUPPORTED,
              "opts.update_mode is %s, whose exchanges are not predicted: take sync, delayed or zero1",
              p->update.def->name);
    CVY_TRY(cvy_mem_alloc(sizeof *l.ranks * (size_t)p->context->comm->nranks, &l.ranks));
    l.update_parts = update_parts(p, l.plan);
    out->ranks = group(&l, (1u << CVY_AXES) - 1 - CVY_AXIS_BIT(CVY_AXIS_PIPELINE));
    out->node = l.ranks[0] / network->node_ranks;
    out->ranks = CVY_MIN(out->ranks, network->node_ranks);
    const cvy_status status = list(&l);
    cvy_mem_free(&l.ranks);
    return status;
}
