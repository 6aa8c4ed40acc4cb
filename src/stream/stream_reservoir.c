/*
 * stream_reservoir.c: a reservoir of samples. "uniform" is algorithm R of Vitter 1985, Random sampling with a
 * reservoir: sample number t, from 0, takes the place of a random one with the probability capacity / (t + 1).
 *
 * Random numbers are functions of the seed and of the number of the sample or of the draw. So the state is a few
 * counters and the samples.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/stream.h>

#include <math.h>
#include <string.h>

#include "base/base_hash.h"
#include "base/base_mem.h"
#include "base/base_opts.h"
#include "base/number/base_rng.h"
#include "data/data_finite.h"
#include "program/program_fill.h"

enum { FIELDS_MAX = 16 };
static const char magic[8] = "cvyresv1";

struct field {
    char *name;
    cvy_dtype dtype;
    cvy_shape shape;
    int64_t elems;  /* of a sample */
    size_t bytes;   /* of a sample */
    char *kept;     /* [capacity] samples */
    char *fresh;    /* [nfresh] samples that were put and not pushed */
    int64_t nfresh; /* -1: none were put */
    size_t room;    /* bytes at `fresh` */
};

struct cvy_reservoir {
    int64_t capacity, seen, draws;
    uint64_t seed;
    int newest;
    struct field field[FIELDS_MAX];
    int nfield;
    char *batch; /* samples of a field, for a task */
    size_t batch_room;
};

/* What precedes the samples in a saved state. */
struct header {
    char magic[8];
    uint32_t spec, sum; /* CRC-32C of the options and fields; of the counters and the samples */
    int64_t seen, draws;
};

cvy_status cvy_reservoir_create(const cvy_reservoir_opts *opts, cvy_reservoir **reservoir_out)
{
    cvy_reservoir_opts o;
    cvy_reservoir *r = NULL;
    CVY_TRY(CVY_OPTS_READ(cvy_reservoir_opts, opts, &o));
    CVY_CHECK(o.capacity > 0, CVY_E_ARGUMENT, "opts.capacity is %lld, expected a number of samples, at least 1",
              (long long)o.capacity);
    const int newest = o.keep && strcmp(o.keep, "newest") == 0;
    CVY_CHECK(!o.keep || newest || strcmp(o.keep, "uniform") == 0, CVY_E_ARGUMENT,
              "opts.keep is '%s', expected uniform or newest", o.keep);
    CVY_TRY(cvy_mem_alloc(sizeof *r, &r));
    r->capacity = o.capacity;
    r->newest = newest;
    r->seed = o.seed;
    *reservoir_out = r;
    return CVY_OK;
}

static void free_field(struct field *f, int64_t capacity)
{
    if (f->kept)
        cvy_mem_free_pages(&f->kept, (size_t)capacity * f->bytes);
    cvy_mem_free(&f->fresh);
    cvy_mem_free(&f->name);
}

void cvy_reservoir_destroy(cvy_reservoir **reservoir)
{
    cvy_reservoir *r = *reservoir;
    if (!r)
        return;
    for (int i = 0; i < r->nfield; i++)
        free_field(&r->field[i], r->capacity);
    cvy_mem_free(&r->batch);
    cvy_mem_free(reservoir);
}

/* ---- fields ---- */

static struct field *find_field(cvy_reservoir *r, const char *name)
{
    for (int i = 0; name && i < r->nfield; i++)
        if (strcmp(r->field[i].name, name) == 0)
            return &r->field[i];
    return NULL;
}

/* Sets f->elems and f->bytes. */
static cvy_status measure_field(const cvy_reservoir *r, struct field *f)
{
    int64_t elems = 1;
    CVY_CHECK(f->shape.ndim >= 0 && f->shape.ndim < CVY_NDIM_MAX, CVY_E_SHAPE,
              "field %s: %d dimensions per sample, at most %d", f->name, f->shape.ndim, CVY_NDIM_MAX - 1);
    for (int d = 0; d < f->shape.ndim; d++) {
        CVY_CHECK(f->shape.dim[d] > 0 && f->shape.dim[d] <= INT64_MAX / 16 / elems, CVY_E_SHAPE,
                  "field %s: dimension %d of a sample is %lld", f->name, d, (long long)f->shape.dim[d]);
        elems *= f->shape.dim[d];
    }
    f->elems = elems;
    f->bytes = (size_t)elems * cvy_dtype_bytes(f->dtype);
    CVY_CHECK(f->bytes <= (size_t)(INT64_MAX / 2 / r->capacity), CVY_E_MEMORY,
              "field %s: %lld samples of %zu bytes are more than memory can hold", f->name, (long long)r->capacity,
              f->bytes);
    return CVY_OK;
}

static cvy_status make_field(const cvy_reservoir *r, const char *name, struct field *f)
{
    CVY_TRY(cvy_mem_strdup(name, &f->name));
    CVY_TRY(measure_field(r, f));
    const cvy_status status = cvy_mem_alloc_pages((size_t)r->capacity * f->bytes, &f->kept);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "field %s", name);
}

cvy_status cvy_reservoir_add_field(cvy_reservoir *r, const char *name, cvy_dtype dtype, const cvy_shape *sample_shape)
{
    CVY_CHECK(name && *name && sample_shape, CVY_E_ARGUMENT, "cvy_reservoir_add_field() got no %s",
              name && *name ? "shape" : "name");
    CVY_CHECK(!find_field(r, name), CVY_E_ARGUMENT, "the reservoir has a field %s already", name);
    CVY_CHECK(r->seen == 0, CVY_E_ARGUMENT, "field %s is added after samples have come", name);
    CVY_CHECK(r->nfield < FIELDS_MAX, CVY_E_ARGUMENT, "a reservoir has at most %d fields", FIELDS_MAX);
    CVY_CHECK((int)dtype >= 0 && dtype < CVY_DTYPE_COUNT && dtype != CVY_DTYPE_BF16, CVY_E_ARGUMENT,
              "field %s is of dtype number %d, expected f32, f64, i64, i32 or u8", name, (int)dtype);
    struct field *f = &r->field[r->nfield];
    *f = (struct field){.dtype = dtype, .shape = *sample_shape, .nfresh = -1};
    const cvy_status status = make_field(r, name, f);
    if (status != CVY_OK)
        free_field(f, r->capacity);
    else
        r->nfield++;
    return status;
}

cvy_status cvy_reservoir_field(const cvy_reservoir *r, int i, const char **name_out, cvy_dtype *dtype_out,
                               cvy_shape *shape_out)
{
    if (i < 0 || i >= r->nfield)
        return CVY_END;
    if (name_out)
        *name_out = r->field[i].name;
    if (dtype_out)
        *dtype_out = r->field[i].dtype;
    if (shape_out)
        *shape_out = r->field[i].shape;
    return CVY_OK;
}

/* ---- new samples ---- */

static cvy_status check_finite(const struct field *f, int64_t n)
{
    const cvy_span span = {.dtype = f->dtype, .data = f->fresh};
    if (!cvy_dtype_is_real(f->dtype) ||
        (f->dtype == CVY_DTYPE_F32 && cvy_all_finite((const float *)(void *)f->fresh, n * f->elems)))
        return CVY_OK;
    for (int64_t i = 0; i < n * f->elems; i++)
        CVY_CHECK(isfinite(cvy_get(&span, i)), CVY_E_NUMERIC, "element %lld of field %s of new sample %lld is %g in %s",
                  (long long)(i % f->elems), f->name, (long long)(i / f->elems), cvy_get(&span, i),
                  cvy_dtype_text(f->dtype));
    return CVY_OK;
}

static cvy_status need(char **block, size_t *room, size_t bytes)
{
    if (bytes <= *room)
        return CVY_OK;
    cvy_mem_free(block);
    *room = 0;
    CVY_TRY(cvy_mem_alloc(bytes, block));
    *room = bytes;
    return CVY_OK;
}

cvy_status cvy_reservoir_put(cvy_reservoir *r, const char *field, cvy_dtype dtype, const void *data, int64_t elems)
{
    struct field *f = find_field(r, field);
    CVY_CHECK(f, CVY_E_ARGUMENT, "the reservoir has no field %s", field ? field : "without a name");
    f->nfresh = -1;
    CVY_CHECK(elems >= 0 && elems % f->elems == 0, CVY_E_SHAPE,
              "%lld elements for field %s, expected a multiple of %lld, those of a sample of %s", (long long)elems,
              field, (long long)f->elems, cvy_shape_text(&f->shape));
    const int64_t n = elems / f->elems;
    CVY_TRY(need(&f->fresh, &f->room, (size_t)n * f->bytes));
    CVY_TRY(cvy_convert_elems(field, data, dtype, f->fresh, f->dtype, elems));
    CVY_TRY(check_finite(f, n));
    f->nfresh = n;
    return CVY_OK;
}

/* The place of sample number t; -1: it is not kept. */
static int64_t place_of(const cvy_reservoir *r, const cvy_rng *rng, int64_t t)
{
    if (t < r->capacity)
        return t;
    if (r->newest)
        return t % r->capacity;
    const int64_t at = (int64_t)cvy_rng_below(rng, (uint64_t)t, (uint64_t)t + 1);
    return at < r->capacity ? at : -1;
}

cvy_status cvy_reservoir_push(cvy_reservoir *r)
{
    CVY_CHECK(r->nfield > 0, CVY_E_ARGUMENT, "the reservoir has no fields: add them first");
    const int64_t n = r->field[0].nfresh;
    for (int i = 0; i < r->nfield; i++) {
        const struct field *f = &r->field[i];
        CVY_CHECK(f->nfresh >= 0, CVY_E_SHAPE, "there are no new samples of field %s", f->name);
        CVY_CHECK(f->nfresh == n, CVY_E_SHAPE, "there are %lld new samples of field %s, but %lld of field %s",
                  (long long)f->nfresh, f->name, (long long)n, r->field[0].name);
    }
    const cvy_rng rng = cvy_rng_make(r->seed, "reservoir keep", 0, 0);
    for (int64_t s = 0; s < n; s++) {
        const int64_t at = place_of(r, &rng, r->seen + s);
        for (int i = 0; i < r->nfield && at >= 0; i++) {
            const struct field *f = &r->field[i];
            memcpy(f->kept + (size_t)at * f->bytes, f->fresh + (size_t)s * f->bytes, f->bytes);
        }
    }
    r->seen += n;
    for (int i = 0; i < r->nfield; i++)
        r->field[i].nfresh = -1;
    return CVY_OK;
}

int64_t cvy_reservoir_held(const cvy_reservoir *r)
{
    return CVY_MIN(r->seen, r->capacity);
}

int64_t cvy_reservoir_seen(const cvy_reservoir *r)
{
    return r->seen;
}

/* ---- batches ---- */

static cvy_status draw_field(cvy_reservoir *r, const struct field *f, const cvy_permutation *order, int64_t rows,
                             cvy_program *p, int task)
{
    CVY_TRY(need(&r->batch, &r->batch_room, (size_t)p->task[task]->plan->rows * f->bytes));
    for (int64_t i = 0; i < rows; i++) {
        const uint64_t at = cvy_permutation_at(order, (uint64_t)i % order->count);
        memcpy(r->batch + (size_t)i * f->bytes, f->kept + (size_t)at * f->bytes, f->bytes);
    }
    return cvy_program_write_input(p, task, f->name, f->dtype, r->batch, rows * f->elems);
}

cvy_status cvy_reservoir_draw(cvy_reservoir *r, cvy_program *p, int task)
{
    CVY_CHECK(r->seen > 0, CVY_E_ARGUMENT, "the reservoir is empty: nothing was pushed yet");
    CVY_CHECK(task >= 0 && task < p->ntask && p->allocated, CVY_E_ARGUMENT, "task %d is not planned", task);
    CVY_CHECK(
        !cvy_grid_is_used(&p->pipeline.grid), CVY_E_UNSUPPORTED,
        "ranks that share samples or layers cannot draw, because each would draw other samples: write the inputs");
    const int64_t rows = cvy_program_samples(p, task);
    for (int i = 0; i < r->nfield && p->task[task]->plan->rows > 0; i++)
        if (!cvy_program_feed(p, task, r->field[i].name)) /* it has said why */
            return CVY_E_ARGUMENT;
    const cvy_permutation order = cvy_permutation_make(r->seed ^ cvy_rng_name("reservoir draw"), (uint64_t)r->draws,
                                                       (uint64_t)cvy_reservoir_held(r));
    for (int i = 0; i < r->nfield; i++)
        CVY_TRY(draw_field(r, &r->field[i], &order, rows, p, task));
    r->draws++;
    return CVY_OK;
}

/* ---- the state ---- */

static uint32_t spec_of(const cvy_reservoir *r)
{
    uint32_t crc = cvy_crc32c(0, &r->capacity, sizeof r->capacity);
    crc = cvy_crc32c(crc, &r->seed, sizeof r->seed);
    crc = cvy_crc32c(crc, &r->newest, sizeof r->newest);
    for (int i = 0; i < r->nfield; i++) {
        const struct field *f = &r->field[i];
        crc = cvy_crc32c(crc, f->name, strlen(f->name) + 1);
        crc = cvy_crc32c(crc, &f->dtype, sizeof f->dtype);
        crc = cvy_crc32c(crc, f->shape.dim, sizeof *f->shape.dim * (size_t)f->shape.ndim);
    }
    return crc;
}

static uint32_t sum_of(const struct header *head, const char *samples, size_t bytes)
{
    const uint32_t crc = cvy_crc32c(cvy_crc32c(0, &head->seen, sizeof head->seen), &head->draws, sizeof head->draws);
    return cvy_crc32c(crc, samples, bytes);
}

static size_t sample_bytes(const cvy_reservoir *r)
{
    size_t sum = 0;
    for (int i = 0; i < r->nfield; i++)
        sum += r->field[i].bytes;
    return sum;
}

int64_t cvy_reservoir_bytes(const cvy_reservoir *r)
{
    return (int64_t)(sizeof(struct header) + (size_t)cvy_reservoir_held(r) * sample_bytes(r));
}

cvy_status cvy_reservoir_save(const cvy_reservoir *r, void *memory, int64_t bytes)
{
    const int64_t all = cvy_reservoir_bytes(r);
    struct header head = {.spec = spec_of(r), .seen = r->seen, .draws = r->draws};
    CVY_CHECK(memory && bytes >= all, CVY_E_ARGUMENT, "%lld bytes for the reservoir, which needs %lld",
              (long long)(memory ? bytes : 0), (long long)all);
    char *samples = (char *)memory + sizeof head, *to = samples;
    for (int i = 0; i < r->nfield; i++) {
        const size_t n = (size_t)cvy_reservoir_held(r) * r->field[i].bytes;
        memcpy(to, r->field[i].kept, n);
        to += n;
    }
    memcpy(head.magic, magic, sizeof magic);
    head.sum = sum_of(&head, samples, (size_t)(to - samples));
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
    CVY_CHECK(head->seen >= 0 && head->draws >= 0, CVY_E_FORMAT, "the state of the reservoir is damaged");
    const size_t samples = (size_t)CVY_MIN(head->seen, r->capacity) * sample_bytes(r);
    CVY_CHECK((uint64_t)bytes - sizeof *head >= samples &&
                  head->sum == sum_of(head, (const char *)memory + sizeof *head, samples),
              CVY_E_FORMAT, "the state of the reservoir is damaged: its checksum or its length is wrong");
    return CVY_OK;
}

cvy_status cvy_reservoir_load(cvy_reservoir *r, const void *memory, int64_t bytes)
{
    struct header head;
    CVY_TRY(check_state(r, memory, bytes, &head));
    const char *from = (const char *)memory + sizeof head;
    r->seen = head.seen;
    r->draws = head.draws;
    for (int i = 0; i < r->nfield; i++) {
        const size_t n = (size_t)cvy_reservoir_held(r) * r->field[i].bytes;
        memcpy(r->field[i].kept, from, n);
        from += n;
        r->field[i].nfresh = -1;
    }
    return CVY_OK;
}
