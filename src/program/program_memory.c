/*
 * program_memory.c: lets a program that exceeds its memory limit recompute values in its backward pass, and checks
 * before tensor memory is allocated whether it stays within its limit and fits into the machine. A batch that is too
 * large is then refused with numbers, and the system does not kill the run later.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdio.h>

#include "base/machine/base_machine.h"
#include "program/program_impl.h"

struct need {
    double fixed, by_batch;
}; /* bytes on this rank: variables and gradients; activations and inputs, which grow with the batch */

/* Prices of memory, in flop per byte: nothing costs less than the lowest, and all that can be recomputed costs less
 * than the highest. With so many trials prices are found within 12 %, and shares of values within 1/16. */
enum { LOWEST_PRICE = 8, HIGHEST_PRICE = 1 << 22, PRICE_STEP = 16, PRICES = 7, SHARES = 4 };

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
        n.by_batch += (double)cvy_plan_feed_bytes(p->task[i]->plan);
    return n;
}

int64_t cvy_program_need(const cvy_program *p)
{
    if (p->ntask == 0 || !p->task[p->ntask - 1]->plan)
        return 0;
    const struct need n = needed(p);
    return (int64_t)(n.fixed + n.by_batch);
}

static int64_t largest_scratch(const cvy_plan *plan)
{
    size_t largest = 0;
    for (int i = 0; i < plan->nbuffer; i++)
        if (!plan->buffer[i].value)
            largest = CVY_MAX(largest, plan->buffer[i].bytes);
    return (int64_t)largest;
}

cvy_memory_use cvy_program_memory_use(const cvy_program *p, const int *task, int ntask)
{
    const int parts = p->update.shape.state_parts;
    int64_t by_role[3] = {0};
    cvy_memory_use use = {.arena = (int64_t)CVY_MAX(p->memory.arena_bytes, 64), .state_parts = parts};
    for (int i = 0; i < p->vars->count; i++) {
        const cvy_variable *v = p->vars->at[i];
        const int64_t copy = v->elsewhere ? 0 : (int64_t)cvy_variable_shadow_bytes(v);
        by_role[v->role] += v->elsewhere ? 0 : (int64_t)cvy_variable_bytes(v) - copy;
        use.copies += copy;
    }
    for (int i = 0; i < p->ntask; i++)
        use.feeds += (int64_t)cvy_plan_feed_bytes(p->task[i]->plan);
    for (int k = 0; k < ntask; k++)
        use.head = CVY_MAX(use.head, (int64_t)cvy_plan_head_bytes(p->task[task[k]]->plan));
    for (int k = 0; k < ntask; k++)
        use.workspace = CVY_MAX(use.workspace, largest_scratch(p->task[task[k]]->plan));
    use.weights = by_role[CVY_ROLE_WEIGHT];
    use.statistics = by_role[CVY_ROLE_STATISTIC];
    use.states = by_role[CVY_ROLE_STATE] / parts;
    use.total = use.arena + use.weights + use.copies + use.statistics + use.states + use.feeds;
    use.recomputed = p->memory.price.high > 0 ? &p->task[task[0]]->recomputed : NULL;
    return use;
}

/* Writes advice for a rank that has only `room` bytes. */
static void advise(const cvy_program *p, struct need n, double room, char *text, size_t text_room)
{
    /* Scratch memory is the same for a smaller batch, unless it is large: then it shrinks, too. Padding shrinks less
     * than the batch, so the estimate leaves a margin. */
    const double scratch =
        CVY_MIN((double)largest_scratch(largest_step(p)->plan), CVY_MIN(n.by_batch, room - n.fixed) / 4);
    const int64_t fits =
        (int64_t)((double)largest_step(p)->batch * (room - n.fixed - scratch) / (n.by_batch - scratch) * 0.95);
    if (p->update.shape.shards) {
        snprintf(text, text_room, "use more opts.shards, one of which is computed at a time, or a smaller batch");
        return;
    }
    snprintf(text, text_room, "not even a batch of one sample fits");
    if (room > n.fixed && fits >= 1)
        snprintf(text, text_room, "a batch of about %lld would fit, or use opts.accumulate", (long long)fits);
}

static cvy_status check_limit(const cvy_program *p)
{
    const struct need n = needed(p);
    const int64_t need = cvy_program_need(p), limit = p->opts.memory_limit;
    char advice[96];
    advise(p, n, (double)limit, advice, sizeof advice);
    CVY_CHECK(
        need <= limit, CVY_E_MEMORY,
        "%s with a batch of %lld needs %lld bytes (%.2f GiB) on a rank%s, but opts.memory_limit is %lld (%.2f GiB): %s",
        largest_step(p)->model->name, (long long)largest_step(p)->batch, (long long)need, (double)need / gib,
        p->memory.price.high > 0 ? ", although activations are recomputed in the backward pass" : "", (long long)limit,
        (double)limit / gib, advice);
    return CVY_OK;
}

/* The need of the rank that needs most. */
static cvy_status most_needed(const cvy_program *p, int64_t *out)
{
    *out = cvy_program_need(p);
    return p->context->comm->ops->allreduce(p->context->comm, out, 1, CVY_DTYPE_I64, CVY_REDUCE_MAX);
}

static cvy_status fits(const cvy_program *p, int *out)
{
    int64_t need = 0;
    CVY_TRY(most_needed(p, &need));
    *out = need <= p->opts.memory_limit;
    return CVY_OK;
}

typedef cvy_status (*plan_fn)(cvy_program *);

/* Plans again with a price of memory, and says whether the plan fits on all ranks. */
static cvy_status try_price(cvy_program *p, plan_fn plan, double low, double high, double share, int *fits_out)
{
    p->memory.price = (cvy_memory_price){low, high, share};
    CVY_TRY(cvy_comm_agree(p->context->comm, plan(p)));
    return fits(p, fits_out);
}

/* Finds the highest price at which the plan fits. A higher one may need more, because recomputed values need scratch
 * memory, too. If no plan fits, the smallest one stays. */
static cvy_status find_highest(cvy_program *p, plan_fn plan, double *price_out, int *fits_out)
{
    double smallest = HIGHEST_PRICE;
    int64_t least = INT64_MAX, need = 0;
    for (double price = HIGHEST_PRICE; price > LOWEST_PRICE; price /= PRICE_STEP) {
        CVY_TRY(try_price(p, plan, price, price, 1, fits_out));
        *price_out = price;
        if (*fits_out)
            return CVY_OK;
        CVY_TRY(most_needed(p, &need));
        if (need < least) {
            least = need;
            smallest = price;
        }
    }
    return try_price(p, plan, smallest, smallest, 1, fits_out);
}

/* Finds the lowest price of memory at which the plan fits, and the smallest share of the values that have it
 * (pass_recompute_choose.h). If none fits, check_limit() says what the smallest needs. All ranks make the same
 * decisions, because their plans must be consistent. */
static cvy_status find_price(cvy_program *p, plan_fn plan)
{
    double low = LOWEST_PRICE, high = 0, least = 0, share = 1;
    int is_enough = 0;
    CVY_TRY(fits(p, &is_enough));
    if (is_enough || !cvy_pass_is_on(p->opts.passes_off, "recompute"))
        return CVY_OK;
    CVY_TRY(find_highest(p, plan, &high, &is_enough));
    if (!is_enough)
        return CVY_OK;
    for (int i = 0; i < PRICES; i++) {
        const double middle = sqrt(low * high);
        CVY_TRY(try_price(p, plan, middle, middle, 1, &is_enough));
        *(is_enough ? &high : &low) = middle;
    }
    for (int i = 0; i < SHARES; i++) {
        const double middle = (least + share) / 2;
        CVY_TRY(try_price(p, plan, low, high, middle, &is_enough));
        *(is_enough ? &share : &least) = middle;
    }
    return is_enough ? CVY_OK : try_price(p, plan, low, high, share, &is_enough);
}

cvy_status cvy_program_fit_limit(cvy_program *p, plan_fn plan)
{
    CVY_TRY(find_price(p, plan));
    return check_limit(p);
}

/* Bytes as in "1.50 GiB" or "820 KiB". */
static cvy_label bytes_text(double bytes)
{
    static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    int i = 0;
    for (; bytes >= 1000 && i + 1 < CVY_COUNT(unit); i++)
        bytes /= 1024;
    return cvy_labelf(i == 0 || bytes >= 100 ? "%.0f %s" : "%.2f %s", bytes, unit[i]);
}

/* What a device has left may be unknown: then all of its memory is taken for free. */
static cvy_status check_device(const cvy_program *p)
{
    const double ranks = CVY_MAX(p->context->device_ranks, 1);
    const struct need n = needed(p);
    const double all = ranks * (n.fixed + n.by_batch);
    cvy_device device;
    char advice[96];
    cvy_space_about(&p->context->space, &device);
    const double left = (double)(device.bytes_left >= 0 ? device.bytes_left : device.bytes);
    if (left < 0 || all <= left)
        return CVY_OK;
    advise(p, n, left / ranks, advice, sizeof advice);
    return cvy_error_set(CVY_E_MEMORY,
                         "%s with a batch of %lld needs %s on %s, %s (%s for weights and gradients, %s for "
                         "activations%s), but %s are free there: %s",
                         largest_step(p)->model->name, (long long)largest_step(p)->batch, bytes_text(all).text,
                         p->context->device, device.name, bytes_text(ranks * n.fixed).text,
                         bytes_text(ranks * n.by_batch).text, ranks > 1 ? "; of all ranks that compute on it" : "",
                         bytes_text(left).text, advice);
}

cvy_status cvy_program_check_memory(const cvy_program *p)
{
    char source[256];
    if (!cvy_space_is_host(&p->context->space))
        return check_device(p);
    const double left = (double)cvy_mem_left_by(source, sizeof source), ranks = (double)p->context->comm->node_nranks;
    const struct need n = needed(p);
    const double all = ranks * (n.fixed + n.by_batch);
    char advice[96];
    if (left < 0 || all <= left)
        return CVY_OK;
    advise(p, n, left / ranks, advice, sizeof advice);
    return cvy_error_set(CVY_E_MEMORY,
                         "%s with a batch of %lld needs %.2f GiB on this node (%.2f GiB for weights and gradients, "
                         "%.2f GiB for activations"
                         "%s), but %.2f GiB are free by %s: %s",
                         largest_step(p)->model->name, (long long)largest_step(p)->batch, all / gib,
                         ranks * n.fixed / gib, ranks * n.by_batch / gib, ranks > 1 ? ", over its ranks" : "",
                         left / gib, source, advice);
}
