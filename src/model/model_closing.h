/*
 * model_closing.h: whether an output of a network is made by softmax, log_softmax or sigmoid, and the numbers that this
 * function reads.
 *
 * The function may be before layers that only move its results: flatten, reshape, transpose, crop, slice, and dropout;
 * and before those that leave probabilities as they are: relu, abs, and clamp to 0.0001 .. 0.9999 or more. log after
 * softmax is log_softmax, and exp after log_softmax is softmax. Any other layer makes new numbers, of which
 * nothing is known.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MODEL_CLOSING_H
#define CVY_MODEL_CLOSING_H

#include "model/model.h"

enum { CVY_CLOSING_MOVES = 16 };

typedef enum cvy_closing_kind {
    CVY_CLOSED_BY_NOTHING,
    CVY_CLOSED_BY_SOFTMAX,
    CVY_CLOSED_BY_LOG_SOFTMAX,
    CVY_CLOSED_BY_SIGMOID
} cvy_closing_kind;

typedef struct cvy_closing {
    cvy_closing_kind kind;
    const char *layer; /* the function, for messages */
    int at;            /* its index among the layers */
    int axis; /* of the output, along which the probabilities sum to 1; 0: along none, because a layer has moved the
                 classes apart or has cut some off, or because the function is sigmoid */
    cvy_shape shape;                      /* of the output for one sample */
    int moved[CVY_CLOSING_MOVES], nmoved; /* layers between the function and the output, from the output back */
} cvy_closing;

/* Finds the function of an output. If there is one, a graph of the model is made for the shapes: its errors are those
 * of cvy_model_instantiate(). */
cvy_status cvy_model_closing(const cvy_model *m, const char *output, cvy_closing *out);
/* The function that a loss applies to what it reads. */
cvy_closing_kind cvy_loss_applies(const cvy_op_def *loss);
/* Warns of losses that apply softmax or sigmoid to what softmax or sigmoid has made, or to numbers that layers without
 * weights make of that alone: in a program of the caller's, and
 * in a run of an older version, whose networks are as they are. */
cvy_status cvy_model_warn_of_losses(const cvy_model *m, const cvy_context *context);
/* Sets *out to the name of the layer, or input, that gives what the function reads in the shape of the output. Layers
 * that move numbers are copied for it; dropout is not, so it has no effect there. */
cvy_status cvy_model_before_closing(cvy_model *m, const cvy_closing *c, const char **out);

#endif
