/*
 * gpu_update.c: the optimisers, each in one pass over the memory of a weight; lars and lamb in two, because they need
 * norms first. The formulas are in src/optim.
 *
 * Rates, the step number and the scale of the gradient are in device memory, so a recorded step needs no new arguments.
 * So is the number that holds updates of gradients that are not finite; what writes no variable does not look at it.
 * Squares are summed in two stages: each block writes the sums of its elements, and each block of the update adds all
 * of these in the same order. So the bits depend only on the number of elements.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "kernel/gpu/update/gpu_update.h"

#ifdef CVY_DEVICE

#define MEMORY(m)                                                                                                      \
    struct update_memory m;                                                                                            \
    m.weight = weight;                                                                                                 \
    m.gradient = gradient;                                                                                             \
    m.state0 = state0;                                                                                                 \
    m.state1 = state1;                                                                                                 \
    m.state2 = state2;                                                                                                 \
    m.average = average;                                                                                               \
    m.weight_out = weight_out;                                                                                         \
    m.state0_out = state0_out;                                                                                         \
    m.state1_out = state1_out;                                                                                         \
    m.state2_out = state2_out;                                                                                         \
    m.average_out = average_out;                                                                                       \
    m.shadow = shadow

KERNEL(update)
(GLOBAL const float *weight, GLOBAL const float *gradient, GLOBAL const double *lr, GLOBAL const double *scale,
 GLOBAL const i64 *step, GLOBAL const float *state0, GLOBAL const float *state1, GLOBAL const float *state2,
 GLOBAL const float *average, GLOBAL float *weight_out, GLOBAL float *state0_out, GLOBAL float *state1_out,
 GLOBAL float *state2_out, GLOBAL float *average_out, GLOBAL u16 *shadow, GLOBAL const int *hold, struct update u)
{
    if (hold[0])
        return;
    MEMORY(m);
    update_range(u, update_begin(u, lr[0], scale[0], (double)step[0], 1), m, BLOCK, BLOCKS);
}

/* part: two sums for each block. */
KERNEL(update_squares)
(GLOBAL const float *weight, GLOBAL const float *gradient, GLOBAL const double *scale, GLOBAL const i64 *step,
 GLOBAL const float *state0, GLOBAL const float *state1, GLOBAL double *part, struct update u)
{
    SHARED double s[UPDATE_THREADS];
    struct update_memory m;
    m.weight = weight;
    m.gradient = gradient;
    m.state0 = state0;
    m.state1 = state1;
    struct update_sums sums = update_squares_range(u, scale[0], (double)step[0], m, BLOCK, BLOCKS);
    BLOCK_SUM(sums.weights, s);
    BLOCK_SUM(sums.others, s);
    if (THREAD == 0) {
        part[2 * BLOCK] = sums.weights;
        part[2 * BLOCK + 1] = sums.others;
    }
}

KERNEL(update_adapted)
(GLOBAL const float *weight, GLOBAL const float *gradient, GLOBAL const double *lr, GLOBAL const double *scale,
 GLOBAL const i64 *step, GLOBAL const float *state0, GLOBAL const float *state1, GLOBAL const float *state2,
 GLOBAL const float *average, GLOBAL float *weight_out, GLOBAL float *state0_out, GLOBAL float *state1_out,
 GLOBAL float *state2_out, GLOBAL float *average_out, GLOBAL u16 *shadow, GLOBAL const int *hold,
 GLOBAL const double *part, struct update u)
{
    SHARED double s[UPDATE_THREADS];
    if (hold[0])
        return;
    struct update_sums sums = update_parts(u, part);
    BLOCK_SUM(sums.weights, s);
    BLOCK_SUM(sums.others, s);
    MEMORY(m);
    const double trust = update_trust(u, sums.weights, sums.others);
    update_range(u, update_begin(u, lr[0], scale[0], (double)step[0], trust), m, BLOCK, BLOCKS);
}

/* One block: sum[0] and sum[1] from the parts. */
KERNEL(update_squares_sum)(GLOBAL const double *part, GLOBAL double *sum, struct update u)
{
    SHARED double s[UPDATE_THREADS];
    struct update_sums sums = update_parts(u, part);
    BLOCK_SUM(sums.weights, s);
    BLOCK_SUM(sums.others, s);
    if (THREAD == 0) {
        sum[0] = sums.weights;
        sum[1] = sums.others;
    }
}

/* The learning rate of a weight from the squares of all its parts. */
KERNEL(update_rate)(GLOBAL const double *squares, GLOBAL const double *lr, GLOBAL double *rate, struct update u)
{
    if (BLOCK == 0 && THREAD == 0)
        rate[0] = lr[0] * update_trust(u, squares[0], squares[1]);
}

#else
#include <math.h>
#include <string.h>

#include "optim/optim_update.h"

CVY_GPU_SOURCE_DECLARE(gpu_update);

/* ---- from options to struct update ---- */

/* The options that all optimisers have, which are the last ones of each. */
#define TAKE_COMMON(u, o)                                                                                              \
    ((u)->weight_decay = (o)->weight_decay, (u)->lr_mult = (o)->lr_mult, (u)->limit = (float)(o)->clip_weights,        \
     (u)->average = (o)->average)

static void take_sgd(const cvy_node *node, struct update *u)
{
    const struct cvy_sgd *o = node->options;
    const cvy_sgd_share share = cvy_sgd_direction(o);
    TAKE_COMMON(u, o);
    u->f = UPDATE_SGD;
    u->a = o->momentum;
    u->states = o->momentum > 0;
    u->of_gradient = share.gradient;
    u->of_momentum = share.momentum;
    u->flag = o->lr_inside;
}

/* Of adam, adamw and lamb. */
static void take_adam(const cvy_node *node, struct update *u, int f)
{
    const struct cvy_adam *o = node->options;
    TAKE_COMMON(u, o);
    u->f = f;
    u->a = o->beta1;
    u->b = o->beta2;
    u->log_a = log(o->beta1);
    u->log_b = log(o->beta2);
    u->eps = o->eps;
    u->states = 3;
    u->flag = f != UPDATE_LAMB && o->eps_hat;
}

static void take_rmsprop(const cvy_node *node, struct update *u)
{
    const struct cvy_rmsprop *o = node->options;
    TAKE_COMMON(u, o);
    u->f = UPDATE_RMSPROP;
    u->a = o->alpha;
    u->b = o->momentum;
    u->eps = o->eps;
    u->states = 1 | (o->centered ? 2 : 0) | (o->momentum > 0 ? 4 : 0);
}

static void take_adagrad(const cvy_node *node, struct update *u)
{
    const struct cvy_adagrad *o = node->options;
    TAKE_COMMON(u, o);
    u->f = UPDATE_ADAGRAD;
    u->a = o->lr_decay;
    u->eps = o->eps;
    u->states = 1;
}

static void take_adadelta(const cvy_node *node, struct update *u)
{
    const struct cvy_adadelta *o = node->options;
    TAKE_COMMON(u, o);
    u->f = UPDATE_ADADELTA;
    u->a = o->rho;
    u->eps = o->eps;
    u->states = 3;
}

static void take_lars(const cvy_node *node, struct update *u)
{
    const struct cvy_lars *o = node->options;
    TAKE_COMMON(u, o);
    u->f = UPDATE_LARS;
    u->a = o->momentum;
    u->b = o->trust_coefficient;
    u->states = 1;
}

/* The optimiser of an operator; NAME_squares and NAME_rate have its options. */
static struct update options_of(const cvy_node *node)
{
    const char *name = node->op->name;
    struct update u = {.of_gradient = 0};
    if (strcmp(name, "sgd") == 0)
        take_sgd(node, &u);
    else if (strcmp(name, "adam") == 0)
        take_adam(node, &u, UPDATE_ADAM);
    else if (strcmp(name, "adamw") == 0)
        take_adam(node, &u, UPDATE_ADAMW);
    else if (strcmp(name, "rmsprop") == 0)
        take_rmsprop(node, &u);
    else if (strcmp(name, "adagrad") == 0)
        take_adagrad(node, &u);
    else if (strcmp(name, "adadelta") == 0)
        take_adadelta(node, &u);
    else if (strncmp(name, "lars", 4) == 0)
        take_lars(node, &u);
    else
        take_adam(node, &u, UPDATE_LAMB);
    return u;
}

/* ---- planning ---- */

static int64_t elems_of(const cvy_node *node)
{
    return cvy_shape_elems(&node->src[CVY_OPTIM_WEIGHT]->shape);
}

static int64_t parts_of(int64_t elems)
{
    return CVY_MIN(cvy_gpu_blocks((elems + UPDATE_WORK - 1) / UPDATE_WORK), UPDATE_PARTS);
}

static int needs_norms(const cvy_node *node)
{
    return node->op->flags & CVY_OP_LAYER_NORMS && cvy_update_adapts(node);
}

static cvy_status kernel(const cvy_kernel_ask *ask, const char *name, cvy_gpu_kernel *out)
{
    return cvy_gpu_kernel_get(ask->space, CVY_GPU_SOURCE(gpu_update), name, CVY_DTYPE_F32, out);
}

/* Weight, gradient and states have one layout, that of the weight. */
static cvy_status same_layout(cvy_kernel_ask *ask)
{
    const cvy_node *node = ask->node;
    const cvy_layout layout = ask->src[CVY_OPTIM_WEIGHT];
    cvy_blocking b;
    CVY_CHECK(node->src[CVY_OPTIM_WEIGHT]->dtype == CVY_DTYPE_F32, CVY_NOT_APPLICABLE,
              "this kernel updates weights in f32; this one is %s", cvy_dtype_text(node->src[CVY_OPTIM_WEIGHT]->dtype));
    CVY_CHECK(cvy_blocking_make(&layout, &node->src[CVY_OPTIM_WEIGHT]->shape, &b) == CVY_OK && b.nblock == 0,
              CVY_NOT_APPLICABLE, "this kernel updates weights in layouts without blocks, not in '%s'", layout.tag);
    ask->src[CVY_OPTIM_GRADIENT] = layout;
    for (int i = CVY_OPTIM_STATE; i < node->nsrc; i++)
        ask->src[i] = layout;
    return CVY_OK;
}

static cvy_status update_offer(cvy_kernel_ask *ask)
{
    const int norms = needs_norms(ask->node);
    cvy_gpu_kernel k;
    CVY_TRY(same_layout(ask));
    CVY_TRY(kernel(ask, norms ? "update_adapted" : "update", &k));
    for (int i = 0; i < ask->node->ndst; i++)
        if (ask->node->dst[i])
            ask->dst[i] = ask->src[CVY_OPTIM_WEIGHT];
    ask->scratch_bytes = norms ? 2 * sizeof(double) * (size_t)parts_of(elems_of(ask->node)) : 0;
    return CVY_OK;
}

static cvy_status call_create(const cvy_kernel_ask *ask, cvy_gpu_update **out)
{
    cvy_gpu_update *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    c->u = options_of(ask->node);
    c->u.n = ask->part_elems ? ask->part_elems : elems_of(ask->node);
    c->u.parts = (int)parts_of(c->u.n);
    for (int k = 0; k < CVY_GPU_UPDATE_STATES; k++)
        if (c->u.states >> k & 1)
            c->slot[c->nstate++] = k;
    *out = c;
    return CVY_OK;
}

static cvy_status update_create(const cvy_kernel_ask *ask, void **state_out)
{
    cvy_gpu_update *c = NULL;
    const int norms = needs_norms(ask->node);
    CVY_TRY(call_create(ask, &c));
    *state_out = c;
    c->u.flag |= norms && c->u.f >= UPDATE_LARS;
    c->u.blocks = norms ? c->u.parts : (int)cvy_gpu_blocks((c->u.n + UPDATE_WORK - 1) / UPDATE_WORK);
    c->u.has_average = c->u.average > 0;
    c->u.has_shadow = ask->writes_shadow;
    c->shadow_at = ask->node->ndst;
    if (norms)
        CVY_TRY(kernel(ask, "update_squares", &c->squares));
    CVY_TRY(cvy_gpu_hold(ask->space, &c->hold));
    return kernel(ask, norms ? "update_adapted" : "update", &c->update);
}

static void destroy(void *state)
{
    cvy_gpu_update *c = state;
    if (c)
        cvy_gpu_update_group_free(&c->group);
    cvy_mem_free(&c);
}

/* ---- running ---- */

static cvy_status run_squares(const cvy_gpu_update *c, void *const *src, void *part)
{
    void *const state0 = src[CVY_OPTIM_STATE], *const state1 = src[CVY_OPTIM_STATE + (c->u.f == UPDATE_LAMB)];
    return CVY_GPU_LAUNCH(&c->squares, c->u.parts, 1, 1, UPDATE_THREADS, CVY_GPU_POINTER(src[CVY_OPTIM_WEIGHT]),
                          CVY_GPU_POINTER(src[CVY_OPTIM_GRADIENT]), CVY_GPU_POINTER(src[CVY_OPTIM_SCALE]),
                          CVY_GPU_POINTER(src[CVY_OPTIM_STEP]), CVY_GPU_POINTER(state0), CVY_GPU_POINTER(state1),
                          CVY_GPU_POINTER(part), CVY_GPU_VALUE(c->u));
}

cvy_gpu_update_tensors cvy_gpu_update_tensors_of(const cvy_gpu_update *c, void *const *src, void *const *dst)
{
    enum { AVERAGE = CVY_GPU_UPDATE_STATES };
    cvy_gpu_update_tensors t = {.shadow = c->u.has_shadow ? dst[c->shadow_at] : dst[0]};
    for (int k = 0; k <= AVERAGE; k++) {
        t.from[k] = src[CVY_OPTIM_WEIGHT];
        t.to[k] = dst[0];
    }
    for (int k = 0; k < c->nstate; k++) {
        t.from[c->slot[k]] = src[CVY_OPTIM_STATE + k];
        t.to[c->slot[k]] = dst[1 + k];
    }
    if (c->u.has_average) {
        t.from[AVERAGE] = src[CVY_OPTIM_STATE + c->nstate];
        t.to[AVERAGE] = dst[1 + c->nstate];
    }
    return t;
}

static cvy_status run_alone(const cvy_gpu_update *c, void *const *src, void *const *dst, void *scratch)
{
    const cvy_gpu_update_tensors t = cvy_gpu_update_tensors_of(c, src, dst);
    const int norms = c->squares.handle != NULL;
    if (norms)
        CVY_TRY(run_squares(c, src, scratch));
    cvy_gpu_arg args[] = {CVY_GPU_POINTER(src[CVY_OPTIM_WEIGHT]),
                          CVY_GPU_POINTER(src[CVY_OPTIM_GRADIENT]),
                          CVY_GPU_POINTER(src[CVY_OPTIM_LR]),
                          CVY_GPU_POINTER(src[CVY_OPTIM_SCALE]),
                          CVY_GPU_POINTER(src[CVY_OPTIM_STEP]),
                          CVY_GPU_POINTER(t.from[0]),
                          CVY_GPU_POINTER(t.from[1]),
                          CVY_GPU_POINTER(t.from[2]),
                          CVY_GPU_POINTER(t.from[3]),
                          CVY_GPU_POINTER(dst[0]),
                          CVY_GPU_POINTER(t.to[0]),
                          CVY_GPU_POINTER(t.to[1]),
                          CVY_GPU_POINTER(t.to[2]),
                          CVY_GPU_POINTER(t.to[3]),
                          CVY_GPU_POINTER(t.shadow),
                          CVY_GPU_POINTER(c->hold),
                          CVY_GPU_POINTER(scratch),
                          CVY_GPU_VALUE(c->u)};
    const int n = CVY_COUNT(args);
    if (!norms) /* this kernel has no parts */
        args[n - 2] = args[n - 1];
    return cvy_gpu_launch(&c->update, c->u.blocks, 1, 1, UPDATE_THREADS, args, norms ? n : n - 1);
}

/* The first update of a group runs all of them. */
cvy_status cvy_gpu_update_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const cvy_gpu_update *c = state;
    CVY_CHECK(!c->led || c->led == dst[0], CVY_E_INTERNAL, "an update of a group has got another weight");
    return c->led ? CVY_OK : c->group ? cvy_gpu_update_group_run(c->group) : run_alone(c, src, dst, scratch);
}

#define UPDATE_FIELDS(of)                                                                                              \
    CVY_GPU_FIELDS(of, update_offer, update_create, cvy_gpu_update_run, destroy), .writes_shadow = 1, .can_hold = 1

CVY_KERNEL_DEFINE(gpu_sgd) = {UPDATE_FIELDS("sgd"), .in_parts = 1};
CVY_KERNEL_DEFINE(gpu_adam) = {UPDATE_FIELDS("adam"), .in_parts = 1};
CVY_KERNEL_DEFINE(gpu_adamw) = {UPDATE_FIELDS("adamw"), .in_parts = 1};
CVY_KERNEL_DEFINE(gpu_rmsprop) = {UPDATE_FIELDS("rmsprop"), .in_parts = 1};
CVY_KERNEL_DEFINE(gpu_adagrad) = {UPDATE_FIELDS("adagrad"), .in_parts = 1};
CVY_KERNEL_DEFINE(gpu_adadelta) = {UPDATE_FIELDS("adadelta"), .in_parts = 1};
CVY_KERNEL_DEFINE(gpu_lars) = {UPDATE_FIELDS("lars")}; /* the norm needs the whole weight */
CVY_KERNEL_DEFINE(gpu_lamb) = {UPDATE_FIELDS("lamb")};

/* ---- of a weight that is split over ranks ---- */

static cvy_status squares_offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel k;
    CVY_TRY(same_layout(ask));
    CVY_TRY(kernel(ask, "update_squares", &k));
    ask->dst[0] = cvy_layout_plain();
    ask->scratch_bytes = 2 * sizeof(double) * (size_t)parts_of(elems_of(ask->node));
    return CVY_OK;
}

static cvy_status squares_create(const cvy_kernel_ask *ask, void **state_out)
{
    cvy_gpu_update *c = NULL;
    CVY_TRY(call_create(ask, &c));
    *state_out = c;
    CVY_TRY(kernel(ask, "update_squares", &c->squares));
    return kernel(ask, "update_squares_sum", &c->sum);
}

static cvy_status squares_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const cvy_gpu_update *c = state;
    CVY_TRY(run_squares(c, src, scratch));
    return CVY_GPU_LAUNCH(&c->sum, 1, 1, 1, UPDATE_THREADS, CVY_GPU_POINTER(scratch), CVY_GPU_POINTER(dst[0]),
                          CVY_GPU_VALUE(c->u));
}

static cvy_status rate_offer(cvy_kernel_ask *ask)
{
    cvy_gpu_kernel k;
    return kernel(ask, "update_rate", &k);
}

static cvy_status rate_create(const cvy_kernel_ask *ask, void **state_out)
{
    cvy_gpu_update *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    *state_out = c;
    c->u = options_of(ask->node);
    return kernel(ask, "update_rate", &c->update);
}

static cvy_status rate_run(void *state, void *const *src, void *const *dst, void *scratch)
{
    const cvy_gpu_update *c = state;
    (void)scratch;
    return CVY_GPU_LAUNCH(&c->update, 1, 1, 1, 1, CVY_GPU_POINTER(src[0]), CVY_GPU_POINTER(src[1]),
                          CVY_GPU_POINTER(dst[0]), CVY_GPU_VALUE(c->u));
}

CVY_KERNEL_DEFINE(gpu_lars_squares) = {
    CVY_GPU_FIELDS("lars_squares", squares_offer, squares_create, squares_run, destroy)};
CVY_KERNEL_DEFINE(gpu_lamb_squares) = {
    CVY_GPU_FIELDS("lamb_squares", squares_offer, squares_create, squares_run, destroy)};
CVY_KERNEL_DEFINE(gpu_lars_rate) = {CVY_GPU_FIELDS("lars_rate", rate_offer, rate_create, rate_run, destroy)};
CVY_KERNEL_DEFINE(gpu_lamb_rate) = {CVY_GPU_FIELDS("lamb_rate", rate_offer, rate_create, rate_run, destroy)};
#endif
