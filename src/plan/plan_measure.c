/*
 * plan_measure.c: times one kernel with its real shapes, layouts and threads.
 *
 * It runs before the first step, in memory of its own in the space of the tensors. Real sources hold numbers of both
 * signs that are far from 0, as in a real network; zeros, denormals and infinities may be faster or slower. Integer
 * sources hold 0, which is a valid label, index and sample number everywhere. A kernel that cannot be created, or
 * fails, counts as slower than any other.
 *
 * Other programs can only make a time longer, so the shortest one counts, if another run confirms it. On a busy machine
 * it is measured again until two runs agree, within limits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_measure.h"

#include <math.h>
#include <string.h>

#include "base/base_round.h"
#include "base/number/base_rng.h"
#include "plan/plan_call.h"
#include "plan/plan_timer.h"

enum { RUNS_MIN = 2, RUNS_MAX = 10, PATIENT_RUNS_MIN = 5, PATIENT_RUNS_MAX = 40, DEVICE_CALLS = 4 };
static const double measure_ms = 20, patient_ms = 200; /* a call is repeated for this time */
/* In a call that takes this long other programs are felt alike by all kernels, so one run after that which warms up is
 * enough. */
static const double long_ms = 500;
/* Two runs agree if their times differ by at most this share. If the two shortest do not, up to AGAIN times as many
 * runs follow. */
static const double agree = 0.05;
enum { AGAIN = 4 };

typedef struct block { /* memory of the space */
    char *data;
    size_t bytes, used;
} block;

struct cvy_meter {
    cvy_plan_opts opts;
    int patient;
    /* By dtype, filled with values of it. The second half has positive values only, for targets of losses: some losses
     * take probabilities. */
    block source[2 * CVY_DTYPE_COUNT];
    block destination, scratch;
    cvy_stopwatch watch;
};

cvy_status cvy_meter_create(const cvy_plan_opts *opts, int patient, cvy_meter **out)
{
    cvy_meter *m = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *m, &m));
    m->opts = *opts;
    m->patient = patient;
    const cvy_status status = cvy_stopwatch_open(opts->space, &m->watch);
    if (status != CVY_OK)
        cvy_mem_free(&m);
    *out = m;
    return status;
}

static void free_block(const cvy_meter *m, block *b)
{
    if (b->data)
        cvy_space_free(m->opts.space, &b->data, b->bytes);
    *b = (block){0};
}

void cvy_meter_destroy(cvy_meter **meter)
{
    cvy_meter *m = *meter;
    if (!m)
        return;
    for (int i = 0; i < CVY_COUNT(m->source); i++)
        free_block(m, &m->source[i]);
    free_block(m, &m->destination);
    free_block(m, &m->scratch);
    cvy_stopwatch_close(&m->watch);
    cvy_mem_free(meter);
}

/* ---- memory ---- */

/* Fills with random numbers of +-1/4 .. +-1, or of 1/4 .. 1, which no branch predictor can learn; PATTERN_ELEMS are
 * drawn and repeated. */
static cvy_status fill(const cvy_space *space, const block *b, cvy_dtype dtype, int positive)
{
    enum { PATTERN_ELEMS = 4096 };
    const cvy_rng rng = cvy_rng_make(1, "measure", 0, 0);
    const size_t bytes = PATTERN_ELEMS * cvy_dtype_bytes(dtype);
    char *data = NULL;
    if (!cvy_dtype_is_real(dtype))
        return CVY_OK;
    CVY_TRY(cvy_space_map(space, b->data, b->bytes, &data));
    const cvy_span pattern = {.dtype = dtype, .data = data};
    for (int64_t i = 0; i < PATTERN_ELEMS; i++) {
        const uint32_t word = cvy_rng_u32(&rng, (uint64_t)i);
        const double size = 0.25 + 0.75 * (double)(word >> 1) / 2147483648.0;
        cvy_set(&pattern, i, word & 1 && !positive ? -size : size);
    }
    for (size_t at = bytes; at < b->bytes; at += bytes)
        memcpy(data + at, data, CVY_MIN(bytes, b->bytes - at));
    return cvy_space_unmap(space, b->data, b->bytes, 1, data);
}

/* Makes a block at least this large. Its size is a whole number of patterns of any dtype. */
static cvy_status reserve_block(const cvy_meter *m, block *b, size_t bytes)
{
    enum { STEP = 64 << 10 };
    if (bytes <= b->bytes && b->data)
        return CVY_OK;
    free_block(m, b);
    const size_t room = (bytes / STEP + 1) * STEP;
    const int64_t left = cvy_space_left(m->opts.space);
    CVY_CHECK(left < 0 || (int64_t)room < left, CVY_E_MEMORY, "%zu bytes to time a kernel in, %lld are left", room,
              (long long)left);
    CVY_TRY(cvy_space_alloc(m->opts.space, room, 0, &b->data));
    b->bytes = room;
    return CVY_OK;
}

static void *carve(block *b, size_t bytes)
{
    char *data = b->data + b->used;
    b->used += cvy_round_to_line(bytes);
    return data;
}

/* The block that source i is in: indices are zeros, which name a row of any table, and
 * targets of losses are positive. */
static block *source_block(cvy_meter *m, const cvy_lowered *u, const cvy_call *call, int i)
{
    const unsigned flags = call->node ? call->node->op->flags : 0;
    const int is_index = i == 0 && flags & CVY_OP_INDICES, is_target = i == 1 && flags & CVY_OP_LOSS;
    return &m->source[is_index ? CVY_DTYPE_I64 : u->instance[call->src[i]].dtype + (is_target ? CVY_DTYPE_COUNT : 0)];
}

static cvy_status reserve_blocks(cvy_meter *m, const cvy_lowered *u, const cvy_call *call)
{
    size_t need[2 * CVY_DTYPE_COUNT] = {0}, destination = 0;
    for (int i = 0; i < call->nsrc; i++)
        if (call->src[i] >= 0)
            need[source_block(m, u, call, i) - m->source] += cvy_round_to_line(u->instance[call->src[i]].bytes);
    for (int i = 0; i < call->ndst; i++)
        destination += call->dst[i] >= 0 ? cvy_round_to_line(u->instance[call->dst[i]].bytes) : 0;
    for (int i = 0; i < CVY_COUNT(need); i++) {
        const size_t before = m->source[i].bytes;
        if (need[i])
            CVY_TRY(reserve_block(m, &m->source[i], need[i]));
        if (m->source[i].bytes != before &&
            fill(m->opts.space, &m->source[i], (cvy_dtype)(i % CVY_DTYPE_COUNT), i >= CVY_DTYPE_COUNT) != CVY_OK) {
            free_block(m, &m->source[i]);
            return CVY_E_MEMORY;
        }
        m->source[i].used = 0;
    }
    m->destination.used = m->scratch.used = 0;
    CVY_TRY(reserve_block(m, &m->destination, destination));
    return reserve_block(m, &m->scratch, call->ask.scratch_bytes);
}

/* A variable that is assigned is updated in place, as in the step: its source's memory, or NULL. */
static void *assigned_memory(const cvy_lowered *u, const cvy_call *call, const cvy_value *dst, void *const *src)
{
    for (int i = 0; dst->kind == CVY_VALUE_VARIABLE && i < call->nsrc; i++)
        if (call->src[i] >= 0 && u->instance[call->src[i]].value->kind == CVY_VALUE_VARIABLE &&
            u->instance[call->src[i]].value->variable == dst->variable)
            return src[i];
    return NULL;
}

static void place(cvy_meter *m, const cvy_lowered *u, const cvy_call *call, void **src, void **dst)
{
    for (int i = 0; i < call->nsrc; i++) {
        int same = 0;
        while (same < i && call->src[same] != call->src[i])
            same++;
        if (call->src[i] < 0)
            continue;
        const size_t bytes = u->instance[call->src[i]].bytes;
        src[i] = same < i ? src[same] : carve(source_block(m, u, call, i), bytes);
    }
    for (int i = 0; i < call->ndst; i++) {
        if (call->dst[i] < 0)
            continue;
        const cvy_instance *instance = &u->instance[call->dst[i]];
        void *at = instance->dtype == instance->value->dtype ? assigned_memory(u, call, instance->value, src) : NULL;
        dst[i] = at ? at : carve(&m->destination, instance->bytes);
    }
}

/* ---- time ---- */

/* In training a weight changes between two calls, so a kernel that keeps a copy of it makes the copy again. */
static void mark_weights(const cvy_lowered *u, const cvy_call *call)
{
    for (int i = 0; i < call->nsrc && u->graph->training; i++)
        if (call->src[i] >= 0 && u->instance[call->src[i]].value->kind == CVY_VALUE_VARIABLE)
            u->instance[call->src[i]].value->variable->written++;
}

/* A device gets several calls at once: then the time in which the host puts one there is hidden, as in a step. */
static cvy_status run_once(cvy_meter *m, const cvy_call *call, void *const *src, void *const *dst, double *ms_out)
{
    const int calls = cvy_space_is_host(m->opts.space) ? 1 : DEVICE_CALLS;
    CVY_TRY(cvy_stopwatch_start(&m->watch));
    for (int i = 0; i < calls; i++)
        CVY_TRY(cvy_call_run(call)(call->state, src, dst, m->scratch.data));
    CVY_TRY(cvy_stopwatch_stop(&m->watch, ms_out));
    *ms_out *= 1e3 / calls;
    return CVY_OK;
}

/* The shortest times so far. */
struct shortest {
    double ms, second;
};

static int is_confirmed(const struct shortest *s)
{
    return s->second <= (1 + agree) * s->ms;
}

static cvy_status add_run(cvy_meter *m, const cvy_lowered *u, const cvy_call *call, void *const *src, void *const *dst,
                          struct shortest *s, double *sum)
{
    double ms = 0;
    mark_weights(u, call);
    CVY_TRY(run_once(m, call, src, dst, &ms));
    s->second = CVY_MIN(s->second, CVY_MAX(s->ms, ms));
    s->ms = CVY_MIN(s->ms, ms);
    *sum += ms;
    return CVY_OK;
}

static cvy_status add_long_run(cvy_meter *m, const cvy_lowered *u, const cvy_call *call, void *const *src,
                               void *const *dst, struct shortest *s, cvy_metered *out)
{
    double sum = 0;
    CVY_TRY(add_run(m, u, call, src, dst, s, &sum));
    out->ms = s->ms;
    return CVY_OK;
}

/* The first run warms up. */
static cvy_status best_of(cvy_meter *m, const cvy_lowered *u, const cvy_call *call, void *const *src, void *const *dst,
                          double hopeless_ms, cvy_metered *out)
{
    const int least = m->patient ? PATIENT_RUNS_MIN : RUNS_MIN, most = m->patient ? PATIENT_RUNS_MAX : RUNS_MAX;
    const double enough = m->patient ? patient_ms : measure_ms;
    struct shortest s = {.second = (double)INFINITY};
    double sum = 0;
    int runs = 0;
    CVY_TRY(run_once(m, call, src, dst, &s.ms));
    if (s.ms >= long_ms && s.ms <= hopeless_ms && !m->patient)
        return add_long_run(m, u, call, src, dst, &s, out);
    for (; s.ms <= hopeless_ms && runs < most && (runs < least || sum < enough); runs++)
        CVY_TRY(add_run(m, u, call, src, dst, &s, &sum));
    out->varied = s.ms <= hopeless_ms && !is_confirmed(&s);
    for (; s.ms <= hopeless_ms && !is_confirmed(&s) && runs < AGAIN * most &&
           (runs < AGAIN * least || sum < AGAIN * enough);
         runs++)
        CVY_TRY(add_run(m, u, call, src, dst, &s, &sum));
    out->ms = s.ms;
    return CVY_OK;
}

cvy_status cvy_meter_time(cvy_meter *m, cvy_lowered *u, cvy_call *call, double hopeless_ms, cvy_metered *out)
{
    void *src[CVY_NODE_SRC_MAX] = {NULL}, *dst[CVY_NODE_DST_MAX] = {NULL};
    *out = (cvy_metered){0};
    if (reserve_blocks(m, u, call) != CVY_OK)
        return cvy_error_prefix(CVY_NOT_APPLICABLE, "no memory to time it in");
    place(m, u, call, src, dst);
    cvy_status status = cvy_call_ready(&m->opts, u, call);
    if (status == CVY_OK)
        status = best_of(m, u, call, src, dst, hopeless_ms, out);
    cvy_call_release(call);
    if (status != CVY_OK)
        *out = (cvy_metered){.ms = (double)INFINITY};
    return CVY_OK;
}
