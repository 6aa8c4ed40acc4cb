/*
 * gpu_sum.c: sums over some axes of a tensor of f32 or bf16, in f32.
 *
 * A block has several teams. A team has one result, and its threads add summands that are neighbours in memory. If
 * neighbours in memory belong to different results, so do neighbouring threads. If the tensor is a matrix whose columns
 * are summed, as for the bias of a convolution, a thread adds four columns. Long sums are cut into parts, whose sums a
 * second kernel adds. All of it is in an order that depends on shape and layout only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "backend/gpu/device.h"

struct sum {
    struct walk kept;  /* the results; a: their first summand, b: their place in the result */
    struct walk along; /* a: the summands of one result */
    i64 part, parts;   /* summands of a part, and number of parts */
    int team, across;  /* threads of a result; across: neighbouring threads have different results */
    int summand, to_f32;
    int width, whole; /* of a matrix: threads of a row in a block; four columns are read at once */
    float scale;
};

#ifdef CVY_DEVICE

INLINE float summand_of(int summand, float x, float y)
{
    return summand == 0 ? x : summand == 1 || y <= 0 ? x * y : 0.0f;
}

/* Blocks of 256 threads; BLOCK_Y is the part. With one part the sum is the result. */
KERNEL(sums)
(GLOBAL const act *x, GLOBAL const act *y, GLOBAL float *part, GLOBAL act *narrow, GLOBAL float *wide, struct sum o)
{
    SHARED float s[256];
    const int teams = THREADS / o.team, member = o.across ? THREAD / teams : THREAD % o.team;
    const int next = o.across ? teams : 1;
    const i64 k = (i64)BLOCK * teams + (o.across ? THREAD % teams : THREAD / o.team);
    const i64 end = k < o.kept.count ? MIN((i64)(BLOCK_Y + 1) * o.part, o.along.count) : 0;
    WALK(k, o.kept, first, to)
    float sum = 0;
    for (i64 r = (i64)BLOCK_Y * o.part + member; r < end; r += o.team) {
        WALK(r, o.along, at, unused)
        const float v = GET(x, first + at);
        sum += o.summand ? summand_of(o.summand, v, GET(y, first + at)) : v;
        (void)unused;
    }
    s[THREAD] = sum;
    BARRIER();
    for (int rest = o.team / 2; rest; rest /= 2) {
        if (member < rest)
            s[THREAD] += s[THREAD + rest * next];
        BARRIER();
    }
    if (member > 0 || k >= o.kept.count)
        return;
    if (o.parts > 1)
        part[BLOCK_Y * o.kept.count + k] = s[THREAD];
    else if (o.to_f32)
        wide[to] = o.scale * s[THREAD];
    else
        SET(narrow, to, o.scale * s[THREAD]);
}

/* Each result is the sum of a column. Grid: columns, parts. */
KERNEL(sums_of_columns)
(GLOBAL const act *x, GLOBAL float *part, GLOBAL act *narrow, GLOBAL float *wide, struct sum o)
{
    enum { AT_ONCE = 8 }; /* rows that a thread reads before it adds them */
    SHARED float s[FOUR][256];
    const i64 c = FOUR * ((i64)BLOCK * o.width + THREAD % o.width), end = MIN((BLOCK_Y + 1) * o.part, o.along.count);
    const int n = (int)MIN(o.kept.count - c, FOUR), step = THREADS / o.width;
    float sum[FOUR];
    for (int k = 0; k < FOUR; k++)
        sum[k] = 0;
    for (i64 row = BLOCK_Y * o.part + THREAD / o.width; row < end && n > 0; row += AT_ONCE * step) {
        float v[AT_ONCE][FOUR];
        for (int i = 0; i < AT_ONCE; i++)
            if (row + i * step < end)
                get_four(x, (row + i * step) * o.along.a[0] + c, n, o.whole, v[i]);
        for (int i = 0; i < AT_ONCE && row + i * step < end; i++)
            for (int k = 0; k < FOUR; k++)
                sum[k] += v[i][k];
    }
    COLUMN_SUMS(sum, s, o.width);
    for (int k = 0; k < n && THREAD < o.width; k++)
        if (o.parts > 1)
            part[BLOCK_Y * o.kept.count + c + k] = sum[k];
        else if (o.to_f32)
            wide[c + k] = o.scale * sum[k];
        else
            SET(narrow, c + k, o.scale * sum[k]);
}

KERNEL(sums_of_parts)(GLOBAL const float *part, GLOBAL act *narrow, GLOBAL float *wide, struct sum o)
{
    FOR_EACH (k, o.kept.count) {
        WALK(k, o.kept, unused, to)
        float sum = 0;
        for (i64 p = 0; p < o.parts; p++)
            sum += part[p * o.kept.count + k];
        if (o.to_f32)
            wide[to] = o.scale * sum;
        else
            SET(narrow, to, o.scale * sum);
        (void)unused;
    }
}

#else
#include "kernel/gpu/tensor/gpu_sum.h"

CVY_GPU_SOURCE_DECLARE(gpu_sum);

enum {
    THREADS = 256,
    TEAMS_ACROSS = 32, /* neighbours that are read at once, if neighbours have different results */
    BLOCKS = 1024,     /* enough for any device */
    SUMMANDS = 16,     /* of a thread, before a sum is cut into parts */
    PARTS = 256,
    COLUMN_PARTS = 512, /* the same for a matrix */
};

struct cvy_gpu_sum {
    cvy_gpu_kernel sums, of_parts; /* sums: of walks, or of columns */
    int64_t blocks;
    struct sum o;
    cvy_dtype act;
};

static int power_of_two_from(int64_t n, int most)
{
    int p = 1;
    while (p < n && p < most)
        p *= 2;
    return p;
}

/* How many threads add one result, and in how many parts. */
static void set_teams(struct sum *o, int across, int64_t *blocks_out)
{
    o->across = across;
    o->team = across ? THREADS / power_of_two_from(o->kept.count, TEAMS_ACROSS)
                     : power_of_two_from(o->along.count / 4, THREADS);
    if (across && o->along.count < o->team)
        o->team = power_of_two_from(o->along.count, o->team);
    const int64_t teams = THREADS / o->team, blocks = (o->kept.count + teams - 1) / teams;
    const int64_t most = CVY_MIN((int64_t)PARTS, o->along.count / ((int64_t)o->team * SUMMANDS));
    o->parts = CVY_MAX((int64_t)1, CVY_MIN(most, BLOCKS / CVY_MAX(blocks, 1)));
    o->part = (o->along.count + o->parts - 1) / o->parts;
    *blocks_out = blocks;
}

/* A matrix with neighbouring columns, whose sums are neighbours too. */
static int is_matrix(const struct sum *o)
{
    return o->summand == CVY_GPU_SUM_OF && o->kept.ndim == 1 && o->along.ndim == 1 && o->kept.a[0] == 1 &&
           o->kept.b[0] == 1 && o->kept.count > 1;
}

static void set_columns(struct sum *o, int64_t *blocks_out)
{
    const int64_t quads = cvy_gpu_tiles(o->kept.count, FOUR);
    o->width = cvy_gpu_columns(quads);
    o->parts = CVY_MIN(cvy_gpu_row_parts(o->along.count, quads, o->width, 1), COLUMN_PARTS);
    o->part = cvy_gpu_tiles(o->along.count, o->parts);
    *blocks_out = cvy_gpu_tiles(quads, o->width);
}

static void set_up(const cvy_gpu_sum_def *def, cvy_gpu_sum *s)
{
    cvy_gpu_axes kept = {0}, along = {0};
    int64_t step[CVY_NDIM_MAX], least_kept = INT64_MAX, least_along = INT64_MAX;
    cvy_gpu_steps(def->shape, def->layout, step);
    for (int d = 0; d < def->shape->ndim; d++) {
        const int summed = def->axes >> d & 1;
        cvy_gpu_axes *to = summed ? &along : &kept;
        to->dim[to->ndim] = def->shape->dim[d];
        to->a[to->ndim] = step[d];
        to->b[to->ndim++] = summed ? 0 : def->step[d];
        if (def->shape->dim[d] > 1 && summed)
            least_along = CVY_MIN(least_along, step[d]);
        else if (def->shape->dim[d] > 1)
            least_kept = CVY_MIN(least_kept, step[d]);
    }
    cvy_gpu_axes_sort(&kept, 0);
    cvy_gpu_axes_sort(&along, 0);
    s->o = (struct sum){.kept = cvy_gpu_walk_make(&kept), .along = cvy_gpu_walk_make(&along)};
    s->o.summand = (int)def->summand;
    s->o.to_f32 = def->to_f32;
    s->o.scale = (float)def->scale;
    s->act = def->act;
    if (is_matrix(&s->o))
        set_columns(&s->o, &s->blocks);
    else
        set_teams(&s->o, least_kept < least_along, &s->blocks);
}

static cvy_status kernels_get(const cvy_kernel_ask *ask, const cvy_gpu_sum_def *def, cvy_gpu_sum *s)
{
    CVY_TRY(cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_sum), s->o.width ? "sums_of_columns" : "sums", def->act, &s->sums));
    return cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_sum), "sums_of_parts", def->act, &s->of_parts);
}

cvy_status cvy_gpu_sum_offer(const cvy_kernel_ask *ask, const cvy_gpu_sum_def *def, size_t *scratch_out)
{
    cvy_gpu_sum s;
    set_up(def, &s);
    *scratch_out = s.o.parts > 1 ? sizeof(float) * (size_t)(s.o.parts * s.o.kept.count) : 0;
    return kernels_get(ask, def, &s);
}

cvy_status cvy_gpu_sum_create(const cvy_kernel_ask *ask, const cvy_gpu_sum_def *def, cvy_gpu_sum **out)
{
    CVY_TRY(cvy_mem_alloc(sizeof **out, out));
    set_up(def, *out);
    const cvy_status status = kernels_get(ask, def, *out);
    if (status != CVY_OK)
        cvy_mem_free(out);
    return status;
}

void cvy_gpu_sum_destroy(cvy_gpu_sum **sum)
{
    cvy_mem_free(sum);
}

static cvy_status run_columns(const cvy_gpu_sum *s, const void *x, void *part, void *dst)
{
    struct sum o = s->o;
    o.whole = o.kept.count % FOUR == 0 && o.along.a[0] % FOUR == 0 &&
              cvy_gpu_are_aligned(FOUR * cvy_dtype_bytes(s->act), &x, 1);
    return CVY_GPU_LAUNCH(&s->sums, s->blocks, o.parts, 1, THREADS, CVY_GPU_POINTER(x), CVY_GPU_POINTER(part),
                          CVY_GPU_POINTER(dst), CVY_GPU_POINTER(dst), CVY_GPU_VALUE(o));
}

/* A pointer that a kernel does not use is another valid one. */
static cvy_status run_walks(const cvy_gpu_sum *s, const void *x, const void *y, void *part, void *dst)
{
    const void *other = y ? y : x;
    return CVY_GPU_LAUNCH(&s->sums, s->blocks, s->o.parts, 1, THREADS, CVY_GPU_POINTER(x), CVY_GPU_POINTER(other),
                          CVY_GPU_POINTER(part), CVY_GPU_POINTER(dst), CVY_GPU_POINTER(dst), CVY_GPU_VALUE(s->o));
}

cvy_status cvy_gpu_sum_run(const cvy_gpu_sum *s, const void *x, const void *y, void *dst, void *scratch)
{
    void *part = s->o.parts > 1 ? scratch : dst;
    CVY_TRY(s->o.width ? run_columns(s, x, part, dst) : run_walks(s, x, y, part, dst));
    if (s->o.parts == 1)
        return CVY_OK;
    return CVY_GPU_LAUNCH(&s->of_parts, cvy_gpu_blocks(s->o.kept.count), 1, 1, THREADS, CVY_GPU_POINTER(part),
                          CVY_GPU_POINTER(dst), CVY_GPU_POINTER(dst), CVY_GPU_VALUE(s->o));
}
#endif
