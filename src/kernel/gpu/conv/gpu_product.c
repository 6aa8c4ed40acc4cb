/*
 * gpu_product.c: the sums of convolutions and fully connected layers on a GPU.
 *
 * If there are few tiles, the summands are cut into parts, so that a device has enough blocks. The sums of the parts
 * are f32 in scratch memory; a second kernel adds them in their order. The number of parts depends on the shape only.
 *
 * Groups of few columns (depthwise convolutions) would leave most of a tile empty. Their results are computed one by
 * one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/gpu/conv/gpu_product.h"

enum { EACH_COLUMNS = 32 }; /* of a block that sums over the rows without tiles */

#ifdef CVY_DEVICE

struct tile {
    int m, n; /* its first row and column */
    int group, part;
};

INLINE struct tile tile_of(const cvy_gpu_window *w)
{
    struct tile t;
    int left = BLOCK / w->tiles_m;
    t.m = (BLOCK - left * w->tiles_m) * CVY_TILE;
    t.n = left % w->tiles_n * CVY_TILE;
    left /= w->tiles_n;
    t.group = left % w->groups;
    t.part = left / w->groups;
    return t;
}

INLINE int quotient(int n, cvy_gpu_divider d)
{
    return (int)((u64)(u32)n * d.mul >> d.shift);
}

/* Where the window begins in `from` at a row, as an element and along each axis, and the row's first element of `to`.
 */
struct row {
    i64 from, to;
    int at[3];
};

INLINE struct row row_of(const cvy_gpu_window *w, int group, int row)
{
    struct row r;
    int left = row, from = group * w->from_group, to = group * w->to_group;
    for (int d = 2; d >= 0; d--) {
        const int next = quotient(left, w->axis[d].rows), y = left - next * w->axis[d].rows.by;
        r.at[d] = y * w->axis[d].stride + w->axis[d].first;
        from += r.at[d] * w->axis[d].from_by;
        to += y * w->axis[d].to_by;
        left = next;
    }
    r.from = left * w->from_sample + from;
    r.to = w->to_first + left * w->to_sample + to;
    return r;
}

/* A place of the filter: elements from the beginning of the window and of the weights, and positions along each axis.
 */
struct place {
    int from, weight;
    int at[3];
};

INLINE struct place place_of(const cvy_gpu_window *w, int place)
{
    struct place p;
    int left = quotient(place, w->channels);
    const int channel = place - left * w->channels.by;
    p.from = channel;
    p.weight = channel * w->weight_channel;
    for (int d = 2; d >= 0; d--) {
        const int next = quotient(left, w->axis[d].taps), tap = left - next * w->axis[d].taps.by;
        p.at[d] = tap * w->axis[d].step;
        p.from += p.at[d] * w->axis[d].from_by;
        p.weight += tap * w->axis[d].weight_by;
        left = next;
    }
    return p;
}

INLINE int is_inside(const cvy_gpu_window *w, const struct row *r, const struct place *p)
{
    return (u32)(r->at[0] + p->at[0]) < (u32)w->axis[0].from && (u32)(r->at[1] + p->at[1]) < (u32)w->axis[1].from &&
           (u32)(r->at[2] + p->at[2]) < (u32)w->axis[2].from;
}

INLINE float ended(float x, cvy_gpu_ending e, GLOBAL const float *bias, int channel, GLOBAL const act *added, i64 at)
{
    if (e.bias)
        x += bias[channel];
    if (e.add)
        x += GET(added, at);
    return e.relu && !(x > 0) ? 0.0f : x;
}

KERNEL(window_sum)
(GLOBAL const act *from, GLOBAL const float *weight, GLOBAL const float *bias, GLOBAL const act *added, GLOBAL act *to,
 GLOBAL float *parts, cvy_gpu_window w)
{
    SHARED float a[CVY_STEP][ROOM], b[CVY_STEP][ROOM];
    const struct tile t = tile_of(&w);
    const int first = t.part * w.sums_of_part, end = MIN(first + w.sums_of_part, w.filter);
    /* Neighbouring threads read neighbouring weights: those of the columns, or those of the filter. */
    const int columns_first = w.weight_column == 1;
    GLOBAL const float *weights = weight + w.weight_first + t.group * w.weight_group;
    struct row row[4];
    float sum[4][4];
    for (int i = 0; i < 4; i++) {
        const int m = t.m + THREAD / CVY_STEP + 16 * i;
        row[i] = row_of(&w, t.group, m);
        if (m >= w.rows)
            row[i].at[0] = -(1 << 30); /* outside for each tap */
        for (int j = 0; j < 4; j++)
            sum[i][j] = 0;
    }
    for (int at = first; at < end; at += CVY_STEP) {
        const int k = THREAD % CVY_STEP;
        const struct place p = place_of(&w, at + k);
        for (int i = 0; i < 4; i++)
            a[k][THREAD / CVY_STEP + 16 * i] =
                at + k < end && is_inside(&w, &row[i], &p) ? GET(from, row[i].from + p.from) : 0.0f;
        for (int e = THREAD; e < CVY_STEP * CVY_TILE; e += THREADS) {
            const int l = columns_first ? e / CVY_TILE : e % CVY_STEP, n = columns_first ? e % CVY_TILE : e / CVY_STEP;
            const struct place q = place_of(&w, at + l);
            b[l][n] = at + l < end && t.n + n < w.columns ? weights[q.weight + (t.n + n) * w.weight_column] : 0.0f;
        }
        BARRIER();
        ADD_PRODUCTS(sum, a, b);
        BARRIER();
    }
    for (int i = 0; i < 4; i++) {
        const int m = t.m + ROW_OF(i);
        const struct row r = row_of(&w, t.group, m);
        for (int j = 0; j < 4; j++) {
            const int n = t.n + COLUMN_OF(j);
            if (m >= w.rows || n >= w.columns)
                continue;
            if (w.parts > 1)
                parts[t.part * w.elems + ((i64)m * w.groups + t.group) * w.columns + n] = sum[i][j];
            else
                SET(to, r.to + n, ended(sum[i][j], w.ending, bias, t.group * w.columns + n, added, r.to + n));
        }
    }
}

/* The same without tiles and parts. */
KERNEL(window_each)
(GLOBAL const act *from, GLOBAL const float *weight, GLOBAL const float *bias, GLOBAL const act *added, GLOBAL act *to,
 cvy_gpu_window w)
{
    const int channels = w.groups * w.columns;
    FOR_EACH (i, (i64)w.rows * channels) {
        const int channel = (int)(i % channels), group = channel / w.columns, n = channel - group * w.columns;
        const struct row r = row_of(&w, group, (int)(i / channels));
        GLOBAL const float *weights = weight + w.weight_first + group * w.weight_group + n * w.weight_column;
        float sum = 0;
        for (int f = 0; f < w.filter; f++) {
            const struct place p = place_of(&w, f);
            if (is_inside(&w, &r, &p))
                sum = FMA(GET(from, r.from + p.from), weights[p.weight], sum);
        }
        SET(to, r.to + n, ended(sum, w.ending, bias, channel, added, r.to + n));
    }
}

/* Adds the parts of a window. */
KERNEL(window_finish)
(GLOBAL const float *parts, GLOBAL const float *bias, GLOBAL const act *added, GLOBAL act *to, cvy_gpu_window w)
{
    const int channels = w.groups * w.columns;
    FOR_EACH (i, w.elems) {
        const int channel = (int)(i % channels), group = channel / w.columns;
        const i64 at = row_of(&w, group, (int)(i / channels)).to + channel - group * w.columns;
        float x = parts[i];
        for (int part = 1; part < w.parts; part++)
            x += parts[part * w.elems + i];
        SET(to, at, ended(x, w.ending, bias, channel, added, at));
    }
}

/* The first matrix is `to`, transposed: tile rows are columns of the window, and tile columns are places of the
 * filter. */
KERNEL(window_weight)(GLOBAL const act *from, GLOBAL const act *to, GLOBAL float *weight, cvy_gpu_window w)
{
    SHARED float a[CVY_STEP][ROOM], b[CVY_STEP][ROOM];
    const struct tile t = tile_of(&w);
    const int first = t.part * w.sums_of_part, end = MIN(first + w.sums_of_part, w.rows);
    const int m = t.m + THREAD % CVY_TILE, n = t.n + THREAD % CVY_TILE;
    const struct place p = place_of(&w, n);
    GLOBAL float *weights = weight + t.part * w.elems + w.weight_first + t.group * w.weight_group;
    float sum[4][4];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            sum[i][j] = 0;
    for (int at = first; at < end; at += CVY_STEP) {
        for (int k = THREAD / CVY_TILE; k < CVY_STEP; k += THREADS / CVY_TILE) {
            const struct row r = row_of(&w, t.group, at + k);
            a[k][THREAD % CVY_TILE] = at + k < end && m < w.columns ? GET(to, r.to + m) : 0.0f;
            b[k][THREAD % CVY_TILE] =
                at + k < end && n < w.filter && is_inside(&w, &r, &p) ? GET(from, r.from + p.from) : 0.0f;
        }
        BARRIER();
        ADD_PRODUCTS(sum, a, b);
        BARRIER();
    }
    for (int j = 0; j < 4; j++) {
        const struct place q = place_of(&w, t.n + COLUMN_OF(j));
        for (int i = 0; i < 4; i++)
            if (t.m + ROW_OF(i) < w.columns && t.n + COLUMN_OF(j) < w.filter)
                weights[q.weight + (t.m + ROW_OF(i)) * w.weight_column] = sum[i][j];
    }
}

/* The same without tiles: a block has EACH_COLUMNS columns of any groups, which change fastest among its threads, one
 * place of the filter, and a part of the rows. */
KERNEL(window_weight_each)(GLOBAL const act *from, GLOBAL const act *to, GLOBAL float *weight, cvy_gpu_window w)
{
    SHARED float s[256];
    const int left = BLOCK / w.tiles_m, part = left / w.filter, place = left - part * w.filter;
    const int channel = BLOCK % w.tiles_m * EACH_COLUMNS + THREAD % EACH_COLUMNS, group = channel / w.columns,
              n = channel - group * w.columns;
    const int first = part * w.sums_of_part, end = group < w.groups ? MIN(first + w.sums_of_part, w.rows) : 0;
    const struct place p = place_of(&w, place);
    float sum = 0;
    for (int m = first + THREAD / EACH_COLUMNS; m < end; m += THREADS / EACH_COLUMNS) {
        const struct row r = row_of(&w, group, m);
        if (is_inside(&w, &r, &p))
            sum = FMA(GET(to, r.to + n), GET(from, r.from + p.from), sum);
    }
    COLUMN_SUM(sum, s, EACH_COLUMNS);
    if (THREAD < EACH_COLUMNS && group < w.groups)
        weight[part * w.elems + w.weight_first + group * w.weight_group + n * w.weight_column + p.weight] = sum;
}

KERNEL(add_parts)(GLOBAL const float *parts, GLOBAL float *sum, i64 n, int count)
{
    FOR_EACH (i, n) {
        float x = parts[i];
        for (int part = 1; part < count; part++)
            x += parts[part * n + i];
        sum[i] = x;
    }
}

#else
CVY_GPU_SOURCE_DECLARE(gpu_product);

enum {
    BLOCKS = 512,     /* tiles and parts of a sum, at most, if it has fewer tiles */
    PART_LEAST = 128, /* summands of a part */
    EACH_MOST = 4,    /* columns of a group that are computed one by one */
};

/* ---- windows ---- */

cvy_gpu_divider cvy_gpu_divider_make(int64_t by)
{
    cvy_gpu_divider d = {.by = (int)by};
    if (by <= 0 || by > INT32_MAX)
        return d;
    int log = 0;
    while ((INT64_C(1) << log) < by)
        log++;
    d.shift = 31 + log;
    d.mul = (u32)(((UINT64_C(1) << d.shift) + (uint64_t)by - 1) / (uint64_t)by);
    return d;
}

static int64_t tiles(int64_t n)
{
    return (n + CVY_TILE - 1) / CVY_TILE;
}

cvy_status cvy_gpu_window_count(cvy_gpu_window *w, int64_t samples, int64_t columns)
{
    int64_t rows = samples, filter = w->channels.by, from = 1;
    for (int d = 0; d < 3; d++) {
        rows *= w->axis[d].rows.by;
        filter *= w->axis[d].taps.by;
        from *= w->axis[d].from;
    }
    CVY_CHECK(CVY_MAX(CVY_MAX(rows, filter), CVY_MAX(from, columns * w->groups)) <= INT32_MAX / 2 &&
                  CVY_MAX(w->from_sample, w->to_sample) <= INT32_MAX / 2 &&
                  tiles(rows) * tiles(columns) * w->groups <= INT32_MAX / 2 &&
                  tiles(filter) * tiles(columns) * w->groups <= INT32_MAX / 2,
              CVY_NOT_APPLICABLE,
              "this kernel counts up to 2^30; there are %lld rows of %lld products, and samples of up to %lld elements",
              (long long)rows, (long long)filter, (long long)CVY_MAX(w->from_sample, w->to_sample));
    w->rows = (int)rows;
    w->filter = (int)filter;
    w->columns = (int)columns;
    return CVY_OK;
}

cvy_status cvy_gpu_weight_strides(const cvy_shape *shape, int given, cvy_layout *layout, cvy_blocking *out)
{
    if (!given || cvy_blocking_make(layout, shape, out) != CVY_OK || out->nblock > 0) {
        *layout = cvy_layout_channels_last(shape->ndim);
        CVY_TRY(cvy_blocking_make(layout, shape, out));
    }
    CVY_CHECK(out->elems <= INT32_MAX / 2, CVY_NOT_APPLICABLE, "this kernel counts up to 2^30; the weight has %lld",
              (long long)out->elems);
    return CVY_OK;
}

/* How many parts of the summands give a device enough blocks. */
static int64_t parts_of(int64_t blocks, int64_t sums)
{
    return CVY_MAX(1, CVY_MIN(BLOCKS / CVY_MAX(blocks, 1), sums / PART_LEAST));
}

static void cut(cvy_gpu_window *w, int64_t parts, int64_t sums, int64_t elems)
{
    const int64_t steps = (sums + CVY_STEP - 1) / CVY_STEP;
    w->parts = (int)parts;
    w->sums_of_part = (int)((steps + parts - 1) / parts * CVY_STEP);
    w->elems = elems;
}

/* Whether results are computed one by one. */
static int is_each(const cvy_gpu_window *w)
{
    return w->groups > 1 && w->columns <= EACH_MOST;
}

/* ---- the sum over the filter ---- */

struct sum {
    cvy_gpu_kernel each, tiled, finish;
    int is_each, n;
    cvy_gpu_window window[];
};

static cvy_status sum_kernels(const cvy_kernel_ask *ask, struct sum *s)
{
    const cvy_gpu_source *source = CVY_GPU_SOURCE(gpu_product);
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act(ask->node, &act));
    CVY_CHECK(ask->node->src[1]->dtype == CVY_DTYPE_F32 && ask->node->dst[0]->dtype == act, CVY_NOT_APPLICABLE,
              "this kernel needs weights of f32 and one dtype of activations");
    CVY_TRY(cvy_gpu_offer(ask, source, "window_each", act, &s->each));
    CVY_TRY(cvy_gpu_offer(ask, source, "window_sum", act, &s->tiled));
    return cvy_gpu_offer(ask, source, "window_finish", act, &s->finish);
}

/* Cuts the sums of n windows, which have the blocks of all of them. */
static void cut_all(cvy_gpu_window *w, int n)
{
    int64_t blocks = 0;
    for (int i = 0; i < n; i++) {
        w[i].tiles_m = (int)tiles(w[i].rows);
        w[i].tiles_n = (int)tiles(w[i].columns);
        blocks += (int64_t)w[i].tiles_m * w[i].tiles_n * w[i].groups;
    }
    for (int i = 0; i < n; i++)
        cut(&w[i], is_each(&w[i]) ? 1 : parts_of(blocks, w[i].filter), w[i].filter,
            (int64_t)w[i].rows * w[i].columns * w[i].groups);
}

cvy_status cvy_gpu_window_offer(cvy_kernel_ask *ask, cvy_gpu_window *w, int n)
{
    struct sum s;
    int64_t floats = 0;
    CVY_TRY(sum_kernels(ask, &s));
    cut_all(w, n);
    for (int i = 0; i < n; i++)
        floats = CVY_MAX(floats, w[i].parts > 1 ? w[i].parts * w[i].elems : 0);
    ask->scratch_bytes = sizeof(float) * (size_t)floats;
    return CVY_OK;
}

cvy_status cvy_gpu_window_create(const cvy_kernel_ask *ask, cvy_gpu_window *w, int n, void **state_out)
{
    struct sum *s = NULL, made = {.is_each = is_each(w), .n = n};
    CVY_TRY(sum_kernels(ask, &made));
    CVY_TRY(cvy_mem_alloc(sizeof *s + sizeof *w * (size_t)n, &s));
    *s = made;
    cut_all(w, n);
    for (int i = 0; i < n; i++)
        s->window[i] = w[i];
    *state_out = s;
    return CVY_OK;
}

static cvy_status run_window(const struct sum *s, const cvy_gpu_window *w, void *const *src, void *to, void *scratch)
{
    /* A pointer that a kernel does not use is a valid one all the same. */
    void *const bias = w->ending.bias ? src[2] : src[1], *const added = w->ending.add ? src[2] : src[0],
                *const parts = w->parts > 1 ? scratch : to;
    if (s->is_each)
        return CVY_GPU_LAUNCH(&s->each, cvy_gpu_blocks(w->elems), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(src[0]),
                              CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(bias), CVY_GPU_POINTER(added),
                              CVY_GPU_POINTER(to), CVY_GPU_VALUE(*w));
    CVY_TRY(CVY_GPU_LAUNCH(&s->tiled, (int64_t)w->tiles_m * w->tiles_n * w->groups * w->parts, 1, 1, CVY_GPU_THREADS,
                           CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[1]), CVY_GPU_POINTER(bias),
                           CVY_GPU_POINTER(added), CVY_GPU_POINTER(to), CVY_GPU_POINTER(parts), CVY_GPU_VALUE(*w)));
    return w->parts == 1
               ? CVY_OK
               : CVY_GPU_LAUNCH(&s->finish, cvy_gpu_blocks(w->elems), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(parts),
                                CVY_GPU_POINTER(bias), CVY_GPU_POINTER(added), CVY_GPU_POINTER(to), CVY_GPU_VALUE(*w));
}

cvy_status cvy_gpu_window_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct sum *s = state;
    for (int i = 0; i < s->n; i++)
        if (s->window[i].elems > 0)
            CVY_TRY(run_window(s, &s->window[i], src, dst[0], scratch));
    return CVY_OK;
}

/* ---- the sum over the rows ---- */

struct weight {
    cvy_gpu_kernel sum, add;
    cvy_gpu_window window;
    int64_t blocks;
    int from, has_bias;
    size_t scratch; /* bytes, before those of the bias */
    cvy_gpu_sum *bias;
};

static cvy_status weight_make(const cvy_kernel_ask *ask, const cvy_gpu_window *w, struct weight *out)
{
    const cvy_node *node = ask->node;
    const int each = is_each(w);
    struct weight s = {.window = *w, .has_bias = node->ndst > 1 && node->dst[1]};
    cvy_dtype act;
    CVY_TRY(cvy_gpu_act(node, &act));
    CVY_CHECK(node->dst[0] && node->dst[0]->dtype == CVY_DTYPE_F32 && node->src[1]->dtype == act, CVY_NOT_APPLICABLE,
              "this kernel needs weights of f32 and one dtype of activations");
    CVY_TRY(
        cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_product), each ? "window_weight_each" : "window_weight", act, &s.sum));
    CVY_TRY(cvy_gpu_offer(ask, CVY_GPU_SOURCE(gpu_product), "add_parts", act, &s.add));
    const int64_t elems = cvy_shape_elems(&node->dst[0]->shape);
    s.window.tiles_m =
        (int)(each ? ((int64_t)w->columns * w->groups + EACH_COLUMNS - 1) / EACH_COLUMNS : tiles(w->columns));
    s.window.tiles_n = (int)(each ? w->filter : tiles(w->filter));
    s.blocks = (int64_t)s.window.tiles_m * s.window.tiles_n * (each ? 1 : w->groups);
    const int64_t parts = parts_of(s.blocks, w->rows);
    cut(&s.window, parts, w->rows, elems);
    s.blocks *= parts;
    s.scratch = parts > 1 ? sizeof(float) * (size_t)cvy_whole_lines(parts * elems) : 0;
    *out = s;
    return CVY_OK;
}

cvy_gpu_sum_def cvy_gpu_bias_sum(const cvy_kernel_ask *ask, int ddst, int channels)
{
    const cvy_shape *shape = &ask->node->src[ddst]->shape;
    cvy_gpu_sum_def def = {.summand = CVY_GPU_SUM_OF,
                           .shape = shape,
                           .layout = &ask->src[ddst],
                           .axes = ((1u << shape->ndim) - 1) & ~(1u << channels),
                           .scale = 1,
                           .act = ask->node->src[ddst]->dtype,
                           .to_f32 = 1};
    def.step[channels] = 1;
    return def;
}

cvy_status cvy_gpu_filter_offer(cvy_kernel_ask *ask, const cvy_gpu_window *w, int channels)
{
    struct weight s;
    size_t scratch = 0;
    CVY_TRY(weight_make(ask, w, &s));
    if (s.has_bias) {
        const cvy_gpu_sum_def def = cvy_gpu_bias_sum(ask, 1, channels);
        CVY_TRY(cvy_gpu_sum_offer(ask, &def, &scratch));
    }
    ask->scratch_bytes = s.scratch + scratch;
    return CVY_OK;
}

cvy_status cvy_gpu_filter_create(const cvy_kernel_ask *ask, const cvy_gpu_window *w, int from, int channels,
                                 void **state_out)
{
    struct weight *s = NULL, made;
    CVY_TRY(weight_make(ask, w, &made));
    made.from = from;
    if (made.has_bias) {
        const cvy_gpu_sum_def def = cvy_gpu_bias_sum(ask, 1, channels);
        CVY_TRY(cvy_gpu_sum_create(ask, &def, &made.bias));
    }
    const cvy_status status = cvy_mem_alloc(sizeof *s, &s);
    if (status == CVY_OK)
        *s = made;
    else
        cvy_gpu_sum_destroy(&made.bias);
    *state_out = s;
    return status;
}

void cvy_gpu_filter_destroy(void *state)
{
    struct weight *s = state;
    if (s)
        cvy_gpu_sum_destroy(&s->bias);
    cvy_mem_free(&s);
}

cvy_status cvy_gpu_filter_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const struct weight *s = state;
    const cvy_gpu_window *w = &s->window;
    void *const from = src[s->from], *const to = src[1 - s->from], *const sum = w->parts > 1 ? scratch : dst[0];
    const int64_t elems = w->elems;
    CVY_TRY(CVY_GPU_LAUNCH(&s->sum, s->blocks, 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(from), CVY_GPU_POINTER(to),
                           CVY_GPU_POINTER(sum), CVY_GPU_VALUE(*w)));
    if (w->parts > 1)
        CVY_TRY(CVY_GPU_LAUNCH(&s->add, cvy_gpu_blocks(elems), 1, 1, CVY_GPU_THREADS, CVY_GPU_POINTER(sum),
                               CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(elems), CVY_GPU_VALUE(w->parts)));
    return s->has_bias ? cvy_gpu_sum_run(s->bias, src[1], NULL, dst[1], scratch ? (char *)scratch + s->scratch : NULL)
                       : CVY_OK;
}
#endif
