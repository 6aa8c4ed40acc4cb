/*
 * twist.c: a library of one operator, right or with the fault that is named by a macro, for the tests in this folder.
 *
 *     twist: dst = weight[c] * src * gain, of sources [N, C, ...]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/operator.h>

#include <stdio.h>
#include <stdlib.h>

struct twist {
    double gain;
    int64_t refuse; /* 1: forward fails */
};

static const cvy_operator_option options[] = {
#ifdef OPTION_OUTSIDE
    {"gain", CVY_OPERATOR_REAL, sizeof(struct twist), "1", NULL, "factor"},
#elif defined OPTION_NAME
    {"from", CVY_OPERATOR_REAL, offsetof(struct twist, gain), "1", NULL, "factor"},
#else
    {"gain", CVY_OPERATOR_REAL, offsetof(struct twist, gain), "1", "0..", "factor"},
#endif
    {"refuse", CVY_OPERATOR_INT, offsetof(struct twist, refuse), "0", "0..1", "1: forward fails"},
    {0},
};

#ifndef INIT
#define INIT "constant"
#endif
static const cvy_operator_param params[] = {{"weight", INIT, "value: 1", 0}, {0}};

static int shape(cvy_operator_shapes *s)
{
    s->dst[0].ndim = s->src[0].ndim;
    for (int d = 0; d < s->src[0].ndim; d++)
        s->dst[0].dim[d] = s->src[0].dim[d];
#ifdef WRONG_SHAPE
    s->dst[0].ndim = 9;
#endif
#ifdef LOSES_SAMPLES
    s->dst[0].dim[0] = 1;
#endif
    if (s->src[0].ndim < 2) {
        snprintf(s->message, sizeof s->message, "twist needs channels, got %d dimensions", s->src[0].ndim);
        return 1;
    }
    s->param[0].ndim = 1;
    s->param[0].dim[0] = s->src[0].dim[1];
    return 0;
}

static double get(const cvy_operator_tensor *t, int64_t i)
{
    return t->dtype == CVY_DTYPE_F64 ? ((const double *)t->data)[i] : ((const float *)t->data)[i];
}

static void set(const cvy_operator_tensor *t, int64_t i, double x)
{
    if (t->dtype == CVY_DTYPE_F64)
        ((double *)t->data)[i] = x;
    else
        ((float *)t->data)[i] = (float)x;
}

static int64_t channel(const cvy_operator_call *c, int64_t i)
{
    int64_t positions = 1;
    for (int d = 2; d < c->src[0].ndim; d++)
        positions *= c->src[0].dim[d];
    return i / positions % c->src[0].dim[1];
}

static int forward(const cvy_operator_call *c)
{
    const struct twist *o = c->options;
    double all = 0;
    if (o->refuse || getenv("TWIST_REFUSES")) {
        snprintf(c->message, c->message_bytes, "it was asked to");
        return 1;
    }
#ifdef MIXES_CHANNELS /* but it declares that channels may be split */
    for (int64_t i = 0; i < c->src[0].elems; i++)
        all += get(&c->src[0], i);
#endif
    for (int64_t i = 0; i < c->dst[0].elems; i++) {
#ifdef LEAVES_OUT
        if (i == 1)
            continue;
#endif
        set(&c->dst[0], i, get(&c->param[0], channel(c, i)) * get(&c->src[0], i) * o->gain + all);
    }
#ifdef WRITES_BEHIND
    set(&c->dst[0], c->dst[0].elems, 1);
#endif
    return 0;
}

static int backward(const cvy_operator_call *c)
{
    const struct twist *o = c->options;
    double scale = o->gain;
#ifdef WRONG_GRADIENT
    scale *= 1.001;
#endif
    for (int64_t i = 0; i < c->dparam[0].elems && c->dparam[0].data; i++)
        set(&c->dparam[0], i, 0);
    for (int64_t i = 0; i < c->src[0].elems; i++) {
        const int64_t k = channel(c, i);
        const double d = get(c->ddst, i);
        if (c->dsrc[0].data)
            set(&c->dsrc[0], i, scale * get(&c->param[0], k) * d);
        if (c->dparam[0].data)
            set(&c->dparam[0], k, get(&c->dparam[0], k) + o->gain * get(&c->src[0], i) * d);
    }
    return 0;
}

static void cost(const cvy_operator_call *c, cvy_operator_cost *cost_out)
{
    cost_out->forward_flop = 2 * c->dst[0].elems;
    cost_out->backward_flop = 4 * c->dst[0].elems;
}

#ifndef SAMPLE
#define SAMPLE "3x2"
#endif
#ifndef SAMPLE_OPTIONS
#define SAMPLE_OPTIONS NULL
#endif
static const cvy_operator_sample samples[] = {{"2x3x4", "gain: 2", 0, 0}, {SAMPLE, SAMPLE_OPTIONS, 0, 0}, {0}};

static const cvy_operator twist = {
#ifdef NO_SIZE
    .size = 0,
#else
    .size = sizeof twist,
#endif
#ifdef NAME_TAKEN
    .name = "relu",
#else
    .name = "twist",
#endif
    .summary = "each channel times a weight",
    .options_size = sizeof(struct twist),
    .options = options,
    .nsrc_min = 1,
    .nsrc_max = 1,
    .params = params,
#ifndef NO_SPLITS
#ifdef UNTRIED_SPLIT
    .splits = CVY_OPERATOR_SPLIT_SAMPLES | CVY_OPERATOR_SPLIT_OUTPUTS,
#else
    .splits = CVY_OPERATOR_SPLIT_SAMPLES | CVY_OPERATOR_SPLIT_CHANNELS | CVY_OPERATOR_SPLIT_SPACE,
#endif
#endif
    .reads = CVY_OPERATOR_READS_SOURCES,
    .shape = shape,
#ifndef NO_FORWARD
    .forward = forward,
#endif
#ifndef NO_BACKWARD
    .backward = backward,
#endif
#ifndef NO_COST
    .cost = cost,
#endif
#ifndef NO_SAMPLES
    .samples = samples,
#endif
};

static const cvy_operator *const operators[] = {&twist, NULL};

static const cvy_extension extension = {
#ifdef OTHER_KIND
    .abi = CVY_EXTENSION_ABI + 1,
    .version = 10203,
#else
    .abi = CVY_EXTENSION_ABI,
    .version = CVY_VERSION_NUMBER,
#endif
    .size = sizeof extension,
    .name = "twist",
    .operators = operators,
};

#ifdef NO_ENTRY
CVY_API int another_entry(void);
int another_entry(void)
{
    return extension.abi;
}
#else
const cvy_extension *convoy_extension(void)
{
    return &extension;
}
#endif
