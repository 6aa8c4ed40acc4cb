/*
 * caffe_train.c: the keys of `train` that a solver of Caffe decides: optimiser, schedule, length, clipping, decay.
 *
 * Caffe divides the sum of the gradients of iter_size batches by iter_size after clipping, so its limit of the norm is
 * divided, too. Its learning rates are functions of the number of the step. Source: solver.cpp, sgd_solver.cpp and the
 * other solvers of Caffe.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "exchange/caffe/caffe_job.h"

#define AT(w, field) cvy_caffe_at(&(w)->solver, (w)->solver.message, field)
#define NEEDS(w, given, field, why)                                                                                    \
    CVY_CHECK(given, CVY_E_CONFIG, "%s: the solver has no %s, which %s needs", (w)->path, field, why)

/* ---- optimiser ---- */

static void add_number(cvy_text *t, const char *key, double value)
{
    cvy_text_add(t, ", %s: ", key);
    cvy_text_add_real(t, value);
}

static cvy_status add_sgd(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t, int nesterov)
{
    cvy_text_add(t, "sgd");
    add_number(t, "momentum", s->has_momentum ? CVY_CAFFE_REAL(s->momentum) : 0);
    if (s->momentum > 0)
        cvy_text_add(t, "%s, lr_inside: true", nesterov ? ", nesterov: true" : "");
    CVY_CHECK(!s->has_momentum || (s->momentum >= 0 && s->momentum < 1), CVY_E_CONFIG,
              "%s is %g, expected 0 or more, and less than 1", AT(w, "momentum"), (double)s->momentum);
    return CVY_OK;
}

static cvy_status add_plain_sgd(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t)
{
    return add_sgd(w, s, t, 0);
}

static cvy_status add_nesterov(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t)
{
    return add_sgd(w, s, t, 1);
}

static cvy_status check_delta(const cvy_caffe_work *w, const cvy_caffe_solver *s)
{
    CVY_CHECK(s->delta > 0, CVY_E_CONFIG, "%s is %g, expected more than 0", AT(w, "delta"), (double)s->delta);
    return CVY_OK;
}

static cvy_status no_momentum(const cvy_caffe_work *w, const cvy_caffe_solver *s, const char *name)
{
    CVY_CHECK(!(s->momentum != 0), CVY_E_CONFIG, "%s is %g, but %s has no momentum: leave it out", AT(w, "momentum"),
              (double)s->momentum, name);
    return check_delta(w, s);
}

static cvy_status add_adagrad(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t)
{
    cvy_text_add(t, "adagrad");
    add_number(t, "eps", CVY_CAFFE_REAL(s->delta));
    return no_momentum(w, s, "AdaGrad");
}

static cvy_status add_rmsprop(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t)
{
    cvy_text_add(t, "rmsprop");
    add_number(t, "alpha", CVY_CAFFE_REAL(s->rms_decay));
    add_number(t, "eps", CVY_CAFFE_REAL(s->delta));
    CVY_CHECK(s->rms_decay >= 0 && s->rms_decay < 1, CVY_E_CONFIG, "%s is %g, expected 0 or more, and less than 1",
              AT(w, "rms_decay"), (double)s->rms_decay);
    return no_momentum(w, s, "RMSProp");
}

static cvy_status check_share(const cvy_caffe_work *w, const char *field, double value)
{
    CVY_CHECK(value >= 0 && value < 1, CVY_E_CONFIG, "%s is %g, expected 0 or more, and less than 1", AT(w, field),
              value);
    return CVY_OK;
}

static cvy_status add_adadelta(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t)
{
    cvy_text_add(t, "adadelta");
    add_number(t, "rho", CVY_CAFFE_REAL(s->momentum));
    add_number(t, "eps", CVY_CAFFE_REAL(s->delta));
    CVY_TRY(check_share(w, "momentum", s->momentum));
    return check_delta(w, s);
}

static cvy_status add_adam(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t)
{
    cvy_text_add(t, "adam");
    add_number(t, "beta1", CVY_CAFFE_REAL(s->momentum));
    add_number(t, "beta2", CVY_CAFFE_REAL(s->momentum2));
    add_number(t, "eps", CVY_CAFFE_REAL(s->delta));
    cvy_text_add(t, ", eps_hat: true");
    CVY_TRY(check_share(w, "momentum", s->momentum));
    CVY_TRY(check_share(w, "momentum2", s->momentum2));
    return check_delta(w, s);
}

static const struct {
    const char *type;
    cvy_status (*add)(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t);
} solvers[] = {/* in the order of the old enum solver_type */
               {"SGD", add_plain_sgd},   {"Nesterov", add_nesterov}, {"AdaGrad", add_adagrad},
               {"RMSProp", add_rmsprop}, {"AdaDelta", add_adadelta}, {"Adam", add_adam}};

/* CVY_E_CONFIG for a word that is not known, with the nearest one. */
static cvy_status unknown(const cvy_caffe_work *w, const char *field, const char *word, const char *const *names, int n)
{
    cvy_text known = {0};
    cvy_text_add_known(&known, word, names, n);
    const cvy_status status =
        cvy_error_set(CVY_E_CONFIG, "%s is \"%s\"%s", AT(w, field), word, known.data ? known.data : "");
    cvy_text_free(&known);
    return status;
}

static cvy_status find_type(const cvy_caffe_work *w, const cvy_caffe_solver *s, int *out)
{
    const char *names[CVY_COUNT(solvers)];
    const int by_enum = s->has_solver_type && !cvy_caffe_line_of(&w->solver, s, "type");
    CVY_CHECK(!s->has_solver_type || by_enum, CVY_E_CONFIG, "%s: the solver has type, too; leave solver_type out",
              AT(w, "solver_type"));
    for (int i = 0; i < CVY_COUNT(solvers); i++) {
        names[i] = solvers[i].type;
        if (by_enum ? (int)s->solver_type == i : strcmp(s->type, solvers[i].type) == 0) {
            *out = i;
            return CVY_OK;
        }
    }
    return unknown(w, "type", s->type, names, CVY_COUNT(solvers));
}

cvy_status cvy_caffe_solver_type(const cvy_caffe_work *w, const char **out)
{
    int type = 0;
    CVY_TRY(find_type(w, cvy_caffe_solver_of(w), &type));
    *out = solvers[type].type;
    return CVY_OK;
}

/* Weight decay of L2 is an option of the optimiser, that of L1 a key of its own. */
static cvy_status add_decay(const cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t, double *l1_out)
{
    static const char *const names[] = {"L1", "L2"};
    const int is_l1 = strcmp(s->regularization_type, "L1") == 0;
    if (!is_l1 && strcmp(s->regularization_type, "L2") != 0)
        return unknown(w, "regularization_type", s->regularization_type, names, CVY_COUNT(names));
    CVY_CHECK(s->weight_decay >= 0, CVY_E_CONFIG, "%s is %g, expected 0 or more", AT(w, "weight_decay"),
              (double)s->weight_decay);
    const double decay = CVY_CAFFE_REAL(s->weight_decay);
    add_number(t, "weight_decay", is_l1 ? 0 : decay);
    cvy_text_add(t, ", decay_on: all");
    *l1_out = is_l1 ? decay : 0;
    return CVY_OK;
}

static cvy_status add_optimizer(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t)
{
    int type = 0;
    double l1 = 0;
    CVY_CHECK(s->base_lr > 0, CVY_E_CONFIG, "%s is %g, expected more than 0", AT(w, "base_lr"), (double)s->base_lr);
    CVY_TRY(find_type(w, s, &type));
    cvy_text_add(t, "  optimizer: {name: ");
    CVY_TRY(solvers[type].add(w, s, t));
    add_number(t, "lr", CVY_CAFFE_REAL(s->base_lr));
    CVY_TRY(add_decay(w, s, t, &l1));
    cvy_text_add(t, "}   # %s; weight decay is for biases, too\n", solvers[type].type);
    if (l1 > 0) {
        cvy_text_add(t, "  l1: ");
        cvy_text_add_real(t, l1);
        cvy_text_add(t, "   # weight_decay, of regularization_type L1\n");
    }
    return CVY_OK;
}

/* ---- schedule ---- */

static cvy_status add_fixed(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t)
{
    (void)w;
    (void)s;
    cvy_text_add(t, "constant");
    return CVY_OK;
}

static cvy_status add_step(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t)
{
    NEEDS(w, s->has_gamma, "gamma", "lr_policy \"step\"");
    CVY_CHECK(s->stepsize > 0, CVY_E_CONFIG, "%s is %d, expected more than 0", AT(w, "stepsize"), s->stepsize);
    cvy_text_add(t, "{name: step, every: %d steps", s->stepsize);
    add_number(t, "factor", CVY_CAFFE_REAL(s->gamma));
    cvy_text_add(t, "}");
    return CVY_OK;
}

static cvy_status add_exp(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t)
{
    NEEDS(w, s->has_gamma, "gamma", "lr_policy \"exp\"");
    cvy_text_add(t, "{name: exponential, every: 1 steps");
    add_number(t, "factor", CVY_CAFFE_REAL(s->gamma));
    cvy_text_add(t, "}");
    return CVY_OK;
}

static cvy_status add_inv(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t)
{
    NEEDS(w, s->has_gamma, "gamma", "lr_policy \"inv\"");
    NEEDS(w, s->has_power, "power", "lr_policy \"inv\"");
    cvy_text_add(t, "{name: inverse, every: 1 steps");
    add_number(t, "gamma", CVY_CAFFE_REAL(s->gamma));
    add_number(t, "power", CVY_CAFFE_REAL(s->power));
    cvy_text_add(t, "}");
    return CVY_OK;
}

static cvy_status add_multistep(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t)
{
    NEEDS(w, s->has_gamma, "gamma", "lr_policy \"multistep\"");
    if (s->n_stepvalue == 0)
        return add_fixed(w, s, t);
    cvy_text_add(t, "{name: multi_step, at: [");
    for (size_t i = 0; i < s->n_stepvalue; i++)
        cvy_text_add(t, "%s%d steps", i ? ", " : "", s->stepvalue[i]);
    cvy_text_add(t, "]");
    add_number(t, "factor", CVY_CAFFE_REAL(s->gamma));
    cvy_text_add(t, "}");
    return CVY_OK;
}

static cvy_status add_poly(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t)
{
    NEEDS(w, s->has_power, "power", "lr_policy \"poly\"");
    cvy_text_add(t, "{name: polynomial");
    add_number(t, "power", CVY_CAFFE_REAL(s->power));
    cvy_text_add(t, "}");
    return CVY_OK;
}

static cvy_status add_sigmoid(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t)
{
    NEEDS(w, s->has_gamma, "gamma", "lr_policy \"sigmoid\"");
    NEEDS(w, s->has_stepsize, "stepsize", "lr_policy \"sigmoid\"");
    cvy_text_add(t, "{name: sigmoid, middle: %d steps, every: 1 steps", s->stepsize);
    add_number(t, "slope", CVY_CAFFE_REAL(s->gamma));
    cvy_text_add(t, "}");
    return CVY_OK;
}

static const struct {
    const char *policy;
    cvy_status (*add)(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t);
} policies[] = {{"fixed", add_fixed}, {"step", add_step},           {"exp", add_exp},        {"inv", add_inv},
                {"poly", add_poly},   {"multistep", add_multistep}, {"sigmoid", add_sigmoid}};

static cvy_status add_schedule(cvy_caffe_work *w, const cvy_caffe_solver *s, cvy_text *t)
{
    const char *names[CVY_COUNT(policies)];
    NEEDS(w, s->lr_policy, "lr_policy", "a training");
    for (int i = 0; i < CVY_COUNT(policies); i++) {
        names[i] = policies[i].policy;
        if (strcmp(s->lr_policy, policies[i].policy) != 0)
            continue;
        cvy_text_add(t, "  schedule: ");
        CVY_TRY(policies[i].add(w, s, t));
        cvy_text_add(t, "   # lr_policy \"%s\"\n", s->lr_policy);
        return CVY_OK;
    }
    return unknown(w, "lr_policy", s->lr_policy, names, CVY_COUNT(policies));
}

/* ---- all ---- */

cvy_status cvy_caffe_add_training(cvy_caffe_work *w, cvy_text *t)
{
    const cvy_caffe_solver *s = cvy_caffe_solver_of(w);
    CVY_CHECK(s->max_iter > 0, CVY_E_CONFIG, "%s is %d, expected the number of steps", AT(w, "max_iter"), s->max_iter);
    cvy_text_add(t, "  steps: %d   # max_iter\n", s->max_iter);
    if (s->random_seed >= 0)
        cvy_text_add(t, "  seed: %lld   # random_seed\n", (long long)s->random_seed);
    if (s->iter_size > 1)
        cvy_text_add(t, "  accumulate: %d   # iter_size\n", s->iter_size);
    CVY_TRY(add_optimizer(w, s, t));
    CVY_TRY(add_schedule(w, s, t));
    if (s->clip_gradients > 0) {
        cvy_text_add(t, "  clip_norm: ");
        cvy_text_add_real(t, CVY_CAFFE_REAL(s->clip_gradients) / s->iter_size);
        cvy_text_add(t, "   # clip_gradients%s\n", s->iter_size > 1 ? " / iter_size" : "");
    }
    return t->status;
}
