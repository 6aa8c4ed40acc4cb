/*
 * program_memory.c: checks before tensor memory is allocated whether a planned program stays within its limit and fits
 * into the machine. A batch that is too large is then refused with numbers, and the system does not kill the run later.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "base/machine/base_machine.h"
#include "program/program.h"

struct need {
    double fixed, by_batch;
}; /* bytes on this rank: variables and gradients; activations and inputs, which grow with the batch */

static const double gib = 1073741824.0;

static const cvy_program_task *largest_step(const cvy_program *p)
{
    const cvy_program_task *largest = p->task[0];
    for (int i = 1; i < p->ntask; i++)
        largest = p->task[i]->plan->arena_bytes > largest->plan->arena_bytes ? p->task[i] : largest;
    return largest;
}

static struct need needed(const cvy_program *p)
{
    const size_t step_bytes = cvy_plan_head_bytes(largest_step(p)->plan), arena = CVY_MAX(p->memory.arena_bytes, 64);
    struct need n = {(double)step_bytes, (double)(arena - CVY_MIN(arena, step_bytes))};
    for (int i = 0; i < p->vars->count; i++) {
        const int shards = p->vars->at[i]->role == CVY_ROLE_STATE ? p->update.shape.state_parts : 1;
        n.fixed += p->vars->at[i]->elsewhere ? 0 : (double)cvy_variable_bytes(p->vars->at[i]) / shards;
    }
    for (int i = 0; i < p->ntask; i++)
        n.by_batch += (double)p->task[i]->plan->feeds.bytes;
    return n;
}

int64_t cvy_program_need(const cvy_program *p)
{
    const struct need n = needed(p);
    return (int64_t)(n.fixed + n.by_batch);
}

/* Writes advice for a rank that has only `room` bytes. */
static void advise(const cvy_program *p, struct need n, double room, char *text, size_t text_room)
{
    /* Scratch memory and padding shrink less than the batch does, so the estimate leaves a margin. */
    const int64_t fits = (int64_t)((double)largest_step(p)->batch * (room - n.fixed) / n.by_batch * 0.95);
    if (p->update.shape.shards) {
        snprintf(text, text_room, "use more opts.shards, one of which is computed at a time, or a smaller batch");
        return;
    }
    snprintf(text, text_room, "not even a batch of one sample fits");
    if (room > n.fixed && fits >= 1)
        snprintf(text, text_room, "a batch of about %lld would fit, or use opts.accumulate", (long long)fits);
}

cvy_status cvy_program_check_limit(const cvy_program *p)
{
    const struct need n = needed(p);
    const int64_t need = cvy_program_need(p), limit = p->opts.memory_limit;
    char advice[96];
    advise(p, n, (double)limit, advice, sizeof advice);
    CVY_CHECK(
        need <= limit, CVY_E_MEMORY,
        "%s with a batch of %lld needs %lld bytes (%.2f GiB) on a rank%s, but opts.memory_limit is %lld (%.2f GiB): %s",
        largest_step(p)->model->name, (long long)largest_step(p)->batch, (long long)need, (double)need / gib,
        p->memory.is_short ? ", although activations are recomputed in the backward pass" : "", (long long)limit,
        (double)limit / gib, advice);
    return CVY_OK;
}

cvy_status cvy_program_check_memory(const cvy_program *p)
{
    const double left = (double)cvy_mem_left(), ranks = (double)p->context->comm->node_nranks;
    const struct need n = needed(p);
    const double all = ranks * (n.fixed + n.by_batch);
    char advice[96];
    if (left < 0 || all <= left)
        return CVY_OK;
    advise(p, n, left / ranks, advice, sizeof advice);
    return cvy_error_set(CVY_E_MEMORY,
                         "%s with a batch of %lld needs %.2f GiB on this node (%.2f GiB for weights and gradients, "
                         "%.2f GiB for activations"
                         "%s), but %.2f GiB are free: %s",
                         largest_step(p)->model->name, (long long)largest_step(p)->batch, all / gib,
                         ranks * n.fixed / gib, ranks * n.by_batch / gib, ranks > 1 ? ", over its ranks" : "",
                         left / gib, advice);
}
