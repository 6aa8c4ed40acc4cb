/*
 * stream_reservoir.c: a reservoir of samples. "uniform" is algorithm R of Vitter 1985, Random sampling with a
 * reservoir: sample number t, from 0, takes the place of a random one with the probability capacity / (t + 1).
 *
 * Random numbers are functions of the seed and of the number of the sample or of the draw. So the state is a few
 * counters and the samples.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "stream/stream_reservoir.h"

#include <math.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_hash.h"
#include "base/base_mem.h"
#include "base/base_opts.h"
#include "base/number/base_rng.h"
#include "program/program_view.h"

enum { CANDIDATES = 8 }; /* KEEP_LOSS: a new sample takes the place of the one of so many that has the smallest loss */
static const char magic[8] = "cvyresv3";
static const char owner[] = "the reservoir"; /* in messages */

typedef enum { KEEP_UNIFORM, KEEP_NEWEST, KEEP_LOSS } keep_policy;

/* The state, besides the samples and their losses. */
struct counters {
    int64_t seen, draws;
    int64_t drawn_of; /* number of samples that it held at the latest draw; 0: samples were added since */
    double loss_sum;  /* of all losses that were given, and their number */
    int64_t loss_count;
};

struct cvy_reservoir {
    int64_t capacity;
    uint64_t seed;
    keep_policy keep;
    cvy_sample_fields fields;
    int is_frozen;              /* a stream fills it, so its fields stay */
    char *kept[CVY_FIELDS_MAX]; /* of each field [capacity] samples */
    double *loss;               /* KEEP_LOSS: [capacity]; NaN: the sample was never drawn */
    struct counters count;
    int64_t drawn;   /* samples of the latest draw */
    cvy_bytes batch; /* samples of a field, for a task */
};

/* What precedes the samples in a saved state. */
struct header {
    char magic[8];
    uint32_t spec, sum; /* CRC-32C of the options and fields; of the counters, the samples and their losses */
    struct counters count;
};

cvy_status cvy_reservoir_create(const cvy_reservoir_opts *opts, cvy_reservoir **reservoir_out)
{
    CVY_ENTRY();
    cvy_reservoir_opts o;
    cvy_reservoir *r = NULL;
    static const char *const words[] = {"uniform", "newest", "loss"}; /* as keep_policy */
    int keep = 0;
    CVY_TRY(CVY_OPTS_READ(cvy_reservoir_opts, opts, &o));
    CVY_CHECK(o.capacity > 0 && o.capacity < INT64_MAX / 16, CVY_E_ARGUMENT,
              "opts.capacity is %lld, expected a number of samples, at least 1", (long long)o.capacity);
    CVY_TRY(cvy_stream_find_word("keep", o.keep, words, CVY_COUNT(words), &keep));
    CVY_TRY(cvy_handle_alloc(CVY_HANDLE_RESERVOIR, sizeof *r, &r));
    r->capacity = o.capacity;
    r->keep = (keep_policy)keep;
    r->seed = o.seed;
    const cvy_status status =
        keep == KEEP_LOSS ? cvy_mem_alloc((size_t)o.capacity * sizeof *r->loss, &r->loss) : CVY_OK;
    if (status != CVY_OK)
        cvy_reservoir_destroy(&r);
    else
        *reservoir_out = r;
    return status;
}

void cvy_reservoir_destroy(cvy_reservoir **reservoir)
{
    CVY_ENTRY();
    if (!CVY_IS_LIVE_AT(RESERVOIR, reservoir))
        return;
    cvy_reservoir *r = *reservoir;
    for (int i = 0; i < r->fields.n; i++)
        if (r->kept[i])
            cvy_mem_free_pages(&r->kept[i], (size_t)r->capacity * r->fields.field[i].bytes);
    cvy_sample_fields_free(&r->fields);
    cvy_mem_free(&r->loss);
    cvy_mem_free(&r->batch.data);
    cvy_handle_free(reservoir);
}

/* ---- fields and new samples ---- */

/* Memory for the samples of a new field. */
static cvy_status make_room(cvy_reservoir *r, int i)
{
    const cvy_sample_field *f = &r->fields.field[i];
    CVY_CHECK(f->bytes <= (size_t)(INT64_MAX / 2 / r->capacity), CVY_E_MEMORY,
              "field %s: %lld samples of %zu bytes are more than memory can hold", f->name, (long long)r->capacity,
              f->bytes);
    const cvy_status status = cvy_mem_alloc_pages((size_t)r->capacity * f->bytes, &r->kept[i]);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "field %s", f->name);
}

cvy_status cvy_reservoir_add_field(cvy_reservoir *r, const char *name, cvy_dtype dtype, const cvy_shape *sample_shape)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(RESERVOIR, r));
    CVY_CHECK(r->count.seen == 0 && !r->is_frozen, CVY_E_ARGUMENT, "field %s is added after %s", name ? name : "",
              r->is_frozen ? "the reservoir was given to a stream" : "samples have come");
    CVY_TRY(cvy_sample_fields_add(&r->fields, owner, name, dtype, sample_shape));
    const cvy_status status = make_room(r, r->fields.n - 1);
    if (status != CVY_OK)
        cvy_sample_fields_remove_last(&r->fields);
    return status;
}

cvy_status cvy_reservoir_field(const cvy_reservoir *r, int i, const char **name_out, cvy_dtype *dtype_out,
                               cvy_shape *shape_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(RESERVOIR, r));
    return cvy_sample_fields_get(&r->fields, i, name_out, dtype_out, shape_out);
}

void cvy_reservoir_freeze(cvy_reservoir *r)
{
    r->is_frozen = 1;
}

const cvy_sample_fields *cvy_reservoir_fields(const cvy_reservoir *r)
{
    return &r->fields;
}

cvy_status cvy_reservoir_put(cvy_reservoir *r, const char *field, cvy_dtype dtype, const void *data, int64_t elems)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(RESERVOIR, r));
    return cvy_sample_fields_put(&r->fields, owner, field, dtype, data, elems);
}

/* A sample that was never drawn counts as if it had the mean of all losses. */
static double loss_of(const cvy_reservoir *r, int64_t at)
{
    if (!isnan(r->loss[at]))
        return r->loss[at];
    return r->count.loss_count > 0 ? r->count.loss_sum / (double)r->count.loss_count : 0;
}

/* Of some random samples, the one with the smallest loss. */
static int64_t easiest(const cvy_reservoir *r, const cvy_rng *rng, int64_t t)
{
    int64_t best = -1;
    for (int i = 0; i < CANDIDATES; i++) {
        const int64_t at = (int64_t)cvy_rng_below(rng, (uint64_t)t * CANDIDATES + (uint64_t)i, (uint64_t)r->capacity);
        if (best < 0 || loss_of(r, at) < loss_of(r, best))
            best = at;
    }
    return best;
}

/* The place of sample number t; -1: it is not kept. */
static int64_t place_of(const cvy_reservoir *r, const cvy_rng *rng, int64_t t)
{
    if (t < r->capacity)
        return t;
    if (r->keep == KEEP_NEWEST)
        return t % r->capacity;
    if (r->keep == KEEP_LOSS)
        return easiest(r, rng, t);
    const int64_t at = (int64_t)cvy_rng_below(rng, (uint64_t)t, (uint64_t)t + 1);
    return at < r->capacity ? at : -1;
}

/* The place of the next sample, which it counts; -1: it is not kept. */
static int64_t next_place(cvy_reservoir *r, const cvy_rng *rng)
{
    const int64_t at = place_of(r, rng, r->count.seen++);
    if (at >= 0 && r->loss)
        r->loss[at] = NAN;
    r->count.drawn_of = 0;
    return at;
}

static cvy_rng keep_numbers(const cvy_reservoir *r)
{
    return cvy_rng_make(r->seed, "reservoir keep", 0, 0);
}

cvy_status cvy_reservoir_push(cvy_reservoir *r)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(RESERVOIR, r));
    int64_t n = 0;
    CVY_TRY(cvy_sample_fields_count(&r->fields, owner, &n));
    const cvy_rng rng = keep_numbers(r);
    for (int64_t s = 0; s < n; s++) {
        const int64_t at = next_place(r, &rng);
        for (int i = 0; i < r->fields.n && at >= 0; i++) {
            const cvy_sample_field *f = &r->fields.field[i];
            memcpy(r->kept[i] + (size_t)at * f->bytes, (const char *)f->fresh.data + (size_t)s * f->bytes, f->bytes);
        }
    }
    cvy_sample_fields_clear(&r->fields);
    return CVY_OK;
}

void cvy_reservoir_add_records(cvy_reservoir *r, const char *record, int64_t n)
{
    const cvy_rng rng = keep_numbers(r);
    for (int64_t s = 0; s < n; s++, record += r->fields.record_bytes) {
        const int64_t at = next_place(r, &rng);
        const char *from = record;
        for (int i = 0; i < r->fields.n && at >= 0; i++) {
            const size_t bytes = r->fields.field[i].bytes;
            memcpy(r->kept[i] + (size_t)at * bytes, from, bytes);
            from += bytes;
        }
    }
}

int64_t cvy_reservoir_held(const cvy_reservoir *r)
{
    CVY_ENTRY();
    if (CVY_KNOWN(RESERVOIR, r) != CVY_OK)
        return 0;
    return CVY_MIN(r->count.seen, r->capacity);
}

int64_t cvy_reservoir_seen(const cvy_reservoir *r)
{
    CVY_ENTRY();
    if (CVY_KNOWN(RESERVOIR, r) != CVY_OK)
        return 0;
    return r->count.seen;
}

/* ---- batches ---- */

/* The order of draw number `draw` from `held` samples: its row i is sample order[i % held]. */
static cvy_permutation order_of(const cvy_reservoir *r, int64_t draw, int64_t held)
{
    return cvy_permutation_make(r->seed ^ cvy_rng_name("reservoir draw"), (uint64_t)draw, (uint64_t)held);
}

static cvy_status draw_field(cvy_reservoir *r, int field, const cvy_permutation *order, int64_t rows, cvy_program *p,
                             int task)
{
    const cvy_sample_field *f = &r->fields.field[field];
    CVY_TRY(cvy_bytes_need(&r->batch, (size_t)cvy_program_rows(p, task) * f->bytes));
    for (int64_t i = 0; i < rows; i++) {
        const uint64_t at = cvy_permutation_at(order, (uint64_t)i % order->count);
        memcpy((char *)r->batch.data + (size_t)i * f->bytes, r->kept[field] + (size_t)at * f->bytes, f->bytes);
    }
    return cvy_program_write_input(p, task, f->name, f->dtype, r->batch.data, rows * f->elems);
}

cvy_status cvy_reservoir_draw(cvy_reservoir *r, cvy_program *p, int task)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(RESERVOIR, r));
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    CVY_CHECK(r->count.seen > 0, CVY_E_ARGUMENT, "the reservoir is empty: nothing was pushed yet");
    CVY_TRY(cvy_program_check_planned(p, task));
    CVY_CHECK(
        !cvy_grid_is_used(cvy_program_grid(p)), CVY_E_UNSUPPORTED,
        "ranks that share samples or layers cannot draw, because each would draw other samples: write the inputs");
    const int64_t rows = cvy_program_samples(p, task);
    for (int i = 0; i < r->fields.n && cvy_program_rows(p, task) > 0; i++)
        if (!cvy_program_feed(p, task, r->fields.field[i].name)) /* it has said why */
            return CVY_E_ARGUMENT;
    const cvy_permutation order = order_of(r, r->count.draws, cvy_reservoir_held(r));
    for (int i = 0; i < r->fields.n; i++)
        CVY_TRY(draw_field(r, i, &order, rows, p, task));
    r->count.draws++;
    r->count.drawn_of = cvy_reservoir_held(r);
    r->drawn = rows;
    return CVY_OK;
}

cvy_status cvy_reservoir_set_losses(cvy_reservoir *r, const double *losses, int64_t n)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(RESERVOIR, r));
    CVY_CHECK(r->keep == KEEP_LOSS, CVY_E_ARGUMENT, "the reservoir does not keep by loss: set opts.keep");
    CVY_CHECK(r->count.drawn_of > 0, CVY_E_ARGUMENT,
              "losses are given before a draw, or after samples were added to the reservoir");
    CVY_CHECK((losses || n == 0) && n == r->drawn, CVY_E_SHAPE, "%lld losses, but the latest batch has %lld samples",
              (long long)n, (long long)r->drawn);
    for (int64_t i = 0; i < n; i++)
        CVY_CHECK(isfinite(losses[i]), CVY_E_NUMERIC, "loss %lld is %g", (long long)i, losses[i]);
    const cvy_permutation order = order_of(r, r->count.draws - 1, r->count.drawn_of);
    for (int64_t i = 0; i < n; i++) {
        r->loss[cvy_permutation_at(&order, (uint64_t)i % order.count)] = losses[i];
        r->count.loss_sum += losses[i];
    }
    r->count.loss_count += n;
    return CVY_OK;
}

/* ---- the state ---- */

static uint32_t spec_of(const cvy_reservoir *r)
{
    uint32_t crc = cvy_crc32c(0, &r->capacity, sizeof r->capacity);
    crc = cvy_crc32c(crc, &r->seed, sizeof r->seed);
    crc = cvy_crc32c(crc, &r->keep, sizeof r->keep);
    for (int i = 0; i < r->fields.n; i++) {
        const cvy_sample_field *f = &r->fields.field[i];
        crc = cvy_crc32c(crc, f->name, strlen(f->name) + 1);
        crc = cvy_crc32c(crc, &f->dtype, sizeof f->dtype);
        crc = cvy_crc32c(crc, f->shape.dim, sizeof *f->shape.dim * (size_t)f->shape.ndim);
    }
    return crc;
}

static uint32_t sum_of(const struct header *head, const char *samples, size_t bytes)
{
    return cvy_crc32c(cvy_crc32c(0, &head->count, sizeof head->count), samples, bytes);
}

/* Bytes of so many samples and their losses. */
static size_t bytes_of(const cvy_reservoir *r, int64_t held)
{
    return (size_t)held * (r->fields.record_bytes + (r->loss ? sizeof *r->loss : 0));
}

int64_t cvy_reservoir_bytes(const cvy_reservoir *r)
{
    CVY_ENTRY();
    if (CVY_KNOWN(RESERVOIR, r) != CVY_OK)
        return 0;
    return (int64_t)(sizeof(struct header) + bytes_of(r, cvy_reservoir_held(r)));
}

/* Copies `held` samples and their losses between the reservoir and a saved state. */
static void move_samples(const cvy_reservoir *r, char *state, int64_t held, int loads)
{
    for (int i = 0; i < r->fields.n + (r->loss != NULL); i++) {
        char *const mine = i < r->fields.n ? r->kept[i] : (char *)r->loss;
        const size_t n = (size_t)held * (i < r->fields.n ? r->fields.field[i].bytes : sizeof *r->loss);
        memcpy(loads ? mine : state, loads ? state : mine, n);
        state += n;
    }
}

cvy_status cvy_reservoir_save(const cvy_reservoir *r, void *memory, int64_t bytes)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(RESERVOIR, r));
    const int64_t all = cvy_reservoir_bytes(r), held = cvy_reservoir_held(r);
    struct header head = {.spec = spec_of(r), .count = r->count};
    CVY_CHECK(memory && bytes >= all, CVY_E_ARGUMENT, "%lld bytes for the reservoir, which needs %lld",
              (long long)(memory ? bytes : 0), (long long)all);
    head.count.drawn_of = 0; /* the order of the latest draw is not saved */
    char *samples = (char *)memory + sizeof head;
    move_samples(r, samples, held, 0);
    memcpy(head.magic, magic, sizeof magic);
    head.sum = sum_of(&head, samples, bytes_of(r, held));
    memcpy(memory, &head, sizeof head);
    return CVY_OK;
}

/* Copies the header, if the memory holds a whole state of this reservoir. */
static cvy_status check_state(const cvy_reservoir *r, const void *memory, int64_t bytes, struct header *head)
{
    CVY_CHECK(memory && bytes >= (int64_t)sizeof *head, CVY_E_FORMAT, "%lld bytes are no state of a reservoir",
              (long long)(memory ? bytes : 0));
    memcpy(head, memory, sizeof *head);
    CVY_CHECK(memcmp(head->magic, magic, sizeof magic) == 0, CVY_E_FORMAT,
              "the memory holds no state of a reservoir of this version");
    CVY_CHECK(head->spec == spec_of(r), CVY_E_SHAPE,
              "the state is of a reservoir with other fields, another capacity, keep or seed");
    CVY_CHECK(head->count.seen >= 0 && head->count.draws >= 0, CVY_E_FORMAT, "the state of the reservoir is damaged");
    const size_t samples = bytes_of(r, CVY_MIN(head->count.seen, r->capacity));
    CVY_CHECK((uint64_t)bytes - sizeof *head >= samples &&
                  head->sum == sum_of(head, (const char *)memory + sizeof *head, samples),
              CVY_E_FORMAT, "the state of the reservoir is damaged: its checksum or its length is wrong");
    return CVY_OK;
}

cvy_status cvy_reservoir_load(cvy_reservoir *r, const void *memory, int64_t bytes)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(RESERVOIR, r));
    struct header head;
    CVY_TRY(check_state(r, memory, bytes, &head));
    r->count = head.count;
    r->count.drawn_of = 0;
    move_samples(r, (char *)memory + sizeof head, cvy_reservoir_held(r), 1);
    cvy_sample_fields_clear(&r->fields);
    return CVY_OK;
}
