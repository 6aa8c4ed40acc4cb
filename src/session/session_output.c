/*
 * session_output.c: what the numbers of an output of a network are: see session_output.h.
 *
 *     loss                          softmax        log_softmax        sigmoid  nothing closes it
 *     softmax_cross_entropy, focal,
 *     dice                          probabilities  log-probabilities  refused  logits
 *     bce                           refused        refused            yes      logits of yes
 *     hinge, others on labels       probabilities  log-probabilities  values   logits
 *     mse, mae, .. on labels        probabilities  log-probabilities  values   values
 *     others on numbers             values         values             values   values
 *     none                          probabilities  log-probabilities  values   values
 *
 * Of one output for two classes, sigmoid is the probability of the second one with any loss. Without a loss, the data
 * may say that there are classes: then an output that nothing closes has logits. Of a network of another program, of
 * which no loss is known, sigmoid gives probabilities of yes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "session/session_output.h"

#include <string.h>

#include "context/context.h"
#include "model/model_closing.h"
#include "op/loss/op_loss.h"

const char *cvy_output_kind_text(cvy_output_kind kind)
{
    static const char *const text[] = {[CVY_OUTPUT_VALUES] = "values",
                                       [CVY_OUTPUT_LOGITS] = "logits of the classes",
                                       [CVY_OUTPUT_LOG_PROBABILITIES] = "log-probabilities of the classes",
                                       [CVY_OUTPUT_PROBABILITIES] = "probabilities of the classes",
                                       [CVY_OUTPUT_YES_LOGITS] = "logits of yes",
                                       [CVY_OUTPUT_YES_PROBABILITIES] = "probabilities of yes"};
    return (int)kind >= 0 && (int)kind < CVY_COUNT(text) ? text[kind] : "unknown";
}

void cvy_model_describe_output(const cvy_model *m, cvy_text *t)
{
    const char *output = cvy_model_output(m);
    if (!output || !m->scored)
        return;
    cvy_text_add(t, "output %s: %s", output, cvy_output_kind_text(m->output_kind));
    if (strcmp(m->scored, output) != 0)
        cvy_text_add(t, "; scores read %s", m->scored);
}

/* ---- losses ---- */

/* Whether the loss applies the function that closes the output, along its classes. */
static int applies(cvy_closing_kind by_loss, const cvy_closing *c)
{
    if (by_loss == CVY_CLOSED_BY_SIGMOID)
        return c->kind == CVY_CLOSED_BY_SIGMOID;
    return by_loss == CVY_CLOSED_BY_SOFTMAX && c->axis == 1 &&
           (c->kind == CVY_CLOSED_BY_SOFTMAX || c->kind == CVY_CLOSED_BY_LOG_SOFTMAX);
}

static cvy_status refuse(const cvy_op_def *loss, const cvy_model *m, const cvy_closing *c, const char *output)
{
    const char *function = m->layer[c->at].op->name;
    const int is_sigmoid = c->kind == CVY_CLOSED_BY_SIGMOID, wants_sigmoid = strcmp(loss->name, "bce") == 0;
    if (!is_sigmoid && !wants_sigmoid)
        return cvy_error_set(CVY_E_CONFIG,
                             "the loss %s applies softmax over axis 1 of the output %s, whose numbers are made by the "
                             "%s '%s' over another axis, or are no longer in the order of its classes: give '%s' the "
                             "axis of the classes (axis: 1), or leave it out",
                             loss->name, output, function, c->layer, c->layer);
    return cvy_error_set(CVY_E_CONFIG,
                         "the loss %s applies %s, and the numbers of the output %s are probabilities already, made by "
                         "the %s '%s': leave this layer out, or take %s",
                         loss->name, wants_sigmoid ? "sigmoid" : "softmax", output, function, c->layer,
                         wants_sigmoid ? "softmax_cross_entropy, for one class of several"
                                       : "bce, for numbers each of which is a yes or no");
}

cvy_status cvy_loss_source(const cvy_op_def *loss, cvy_model *m, const char *output, int is_old, const char **out)
{
    const cvy_closing_kind by_loss = cvy_loss_applies(loss);
    cvy_closing c;
    *out = output;
    if (by_loss == CVY_CLOSED_BY_NOTHING)
        return CVY_OK;
    CVY_TRY(cvy_model_closing(m, output, &c));
    if (applies(by_loss, &c)) {
        m->layer[cvy_index_find(&m->layer_at, output)].is_looked_through = 1;
        return cvy_model_before_closing(m, &c, out);
    }
    return c.kind == CVY_CLOSED_BY_NOTHING || is_old ? CVY_OK : refuse(loss, m, &c, output);
}

cvy_status cvy_job_correct_losses(const cvy_context *context, cvy_model *m, int is_old)
{
    for (int i = 0; i < m->nlayer; i++) {
        const char *source = NULL, *output = m->layer[i].nfrom > 0 ? m->layer[i].from[0] : NULL;
        if (!(m->layer[i].op->flags & CVY_OP_LOSS) || !output)
            continue;
        const cvy_status status = cvy_loss_source(m->layer[i].op, m, output, is_old, &source);
        if (status != CVY_OK)
            return cvy_error_prefix(status, "layer %s", m->layer[i].output);
        if (strcmp(source, output) == 0)
            continue;
        if (context)
            cvy_log(context, CVY_LOG_WARN, "the loss %s applies the function that makes %s itself, so it reads %s",
                    m->layer[i].output, output, source);
        CVY_TRY(cvy_pool_strdup(m->pool, source, &m->layer[i].from[0]));
        if (cvy_index_find(&m->layer_at, source) > i) { /* a copy, which is after the loss */
            CVY_TRY(cvy_model_put_last(m, i));
            i--;
        }
    }
    return CVY_OK;
}

/* ---- the loss of an output ---- */

static int is_main(const cvy_model *m, const char *output)
{
    int is_aux = 0;
    for (int i = 0; i < m->naux; i++)
        is_aux |= strcmp(m->aux[i].output, output) == 0;
    return is_aux || strcmp(cvy_model_output(m), output) == 0;
}

/* A loss of the network itself that reads one of these, or NULL. */
static const cvy_layer *own_loss(const cvy_model *m, const char *output, const char *source)
{
    for (int i = 0; i < m->nlayer; i++)
        if ((m->layer[i].op->flags & CVY_OP_LOSS) && m->layer[i].nfrom > 1 &&
            (strcmp(m->layer[i].from[0], output) == 0 || strcmp(m->layer[i].from[0], source) == 0))
            return &m->layer[i];
    return NULL;
}

/* The first loss of the output, and the field that it compares with; NULL: there is none. */
static const cvy_op_def *loss_of(const cvy_job *job, const cvy_dataset_info *data, const cvy_model *m,
                                 const char *output, const char *source, const char **target_out)
{
    const cvy_field *target = cvy_dataset_target(data);
    const cvy_layer *own = own_loss(m, output, source);
    *target_out = target ? target->name : NULL;
    for (int i = 0; i < job->train.nloss; i++) {
        const cvy_job_loss *loss = &job->train.loss[i];
        if (loss->output ? strcmp(loss->output, output) == 0 : is_main(m, output)) {
            *target_out = loss->target ? loss->target : *target_out;
            return cvy_op_find(loss->name);
        }
    }
    if (own) {
        *target_out = own->from[1];
        return own->op;
    }
    if (!target || job->train.nloss > 0 || cvy_model_has_loss(m) || !is_main(m, output))
        return NULL;
    return cvy_op_find(cvy_dtype_is_real(target->dtype) ? "mse" : "softmax_cross_entropy");
}

static int is_real_field(const cvy_dataset_info *data, const char *name)
{
    for (int i = 0; name && i < data->nfield; i++)
        if (strcmp(data->field[i].name, name) == 0)
            return cvy_dtype_is_real(data->field[i].dtype);
    return 0;
}

/* ---- the kind ---- */

static cvy_output_kind of_classes(const cvy_closing *c)
{
    if (c->axis == 1)
        return c->kind == CVY_CLOSED_BY_SOFTMAX ? CVY_OUTPUT_PROBABILITIES : CVY_OUTPUT_LOG_PROBABILITIES;
    return CVY_OUTPUT_VALUES;
}

/* Losses on numbers that are used on labels compare the output with the number of the class. */
static int compares_numbers(const cvy_op_def *loss)
{
    return loss && loss->build == cvy_loss_each_build;
}

static cvy_output_kind kind_of(const cvy_op_def *loss, int is_real_target, int is_foreign, int64_t nclasses,
                               const cvy_closing *c)
{
    const cvy_closing_kind by_loss = cvy_loss_applies(loss);
    if (by_loss == CVY_CLOSED_BY_SIGMOID)
        return c->kind == CVY_CLOSED_BY_SIGMOID ? CVY_OUTPUT_YES_PROBABILITIES : CVY_OUTPUT_YES_LOGITS;
    if (by_loss == CVY_CLOSED_BY_SOFTMAX)
        return applies(by_loss, c) ? of_classes(c) : CVY_OUTPUT_LOGITS;
    if (loss && is_real_target)
        return CVY_OUTPUT_VALUES;
    if (c->kind == CVY_CLOSED_BY_SIGMOID)
        return is_foreign || (nclasses == 2 && cvy_shape_elems(&c->shape) == 1) ? CVY_OUTPUT_YES_PROBABILITIES
                                                                                : CVY_OUTPUT_VALUES;
    if (c->kind != CVY_CLOSED_BY_NOTHING)
        return of_classes(c);
    return nclasses > 1 && !compares_numbers(loss) ? CVY_OUTPUT_LOGITS : CVY_OUTPUT_VALUES;
}

/* An output that nobody compares with anything and nothing closes: a layer inside the network, unless it is what the
 * scores of the main output read. */
static cvy_output_kind kind_inside(const cvy_model *m, const char *output)
{
    if (!m->scored || strcmp(m->scored, output) != 0)
        return CVY_OUTPUT_VALUES;
    return cvy_output_is_of_yes(m->output_kind) ? CVY_OUTPUT_YES_LOGITS : CVY_OUTPUT_LOGITS;
}

cvy_status cvy_job_output_meaning(const cvy_job *job, const cvy_dataset_info *data, cvy_model *m, const char *output,
                                  cvy_output_meaning *out)
{
    const char *target = NULL, *source = output;
    cvy_closing c;
    CVY_TRY(cvy_model_closing(m, output, &c));
    if (c.kind != CVY_CLOSED_BY_NOTHING)
        CVY_TRY(cvy_model_before_closing(m, &c, &source));
    const cvy_op_def *loss = loss_of(job, data, m, output, source, &target);
    const cvy_output_kind kind =
        !loss && c.kind == CVY_CLOSED_BY_NOTHING && !is_main(m, output)
            ? kind_inside(m, output)
            : kind_of(loss, is_real_field(data, target), !loss && job->import, data->nclasses, &c);
    const int is_closed = kind == CVY_OUTPUT_LOG_PROBABILITIES || kind == CVY_OUTPUT_PROBABILITIES ||
                          kind == CVY_OUTPUT_YES_PROBABILITIES;
    *out = (cvy_output_meaning){kind, is_closed ? source : output, c.shape};
    return CVY_OK;
}
