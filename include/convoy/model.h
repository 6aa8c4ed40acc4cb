/*
 * convoy/model.h: describing a network: named inputs and a list of layers, without a batch size.
 *
 * A layer is an operator of the table that `convoy models --layers` prints, with options as YAML text:
 *
 *     cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {3, 32, 32}});
 *     cvy_model_add(m, "conv", "conv1", "channels: 32, kernel: 5, pad: 2", "x");
 *     cvy_model_add(m, "relu", NULL, NULL, NULL);
 *     cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label");
 */
#ifndef CONVOY_MODEL_H
#define CONVOY_MODEL_H

#include <convoy/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cvy_model cvy_model;

/** Makes an empty model; the caller destroys it. Errors: CVY_E_MEMORY. Collective: no. */
CVY_API CVY_MUST_CHECK cvy_status cvy_model_create(const char *name, cvy_model **model_out);

/**
 * cvy_model_zoo - a network of the zoo, without a loss
 * @name: one of `convoy models`
 * @options: of the network, YAML text, or NULL
 * @input: sample shape [C, positions...], or NULL for the network's own
 * @classes: number of outputs, 0 for the network's own
 *
 * The input is "x"; cvy_model_output() names the result. Auxiliary heads, where the options ask for them, are the outputs "aux1" and "aux2": give each a
 * loss of its own; steps that do not train go without them. Errors: CVY_E_CONFIG (unknown name or option: the nearest is named), CVY_E_SHAPE, CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_model_zoo(const char *name, const char *options, const cvy_shape *input, int64_t classes, cvy_model **model_out);

/** Destroys and sets to NULL; NULL is accepted. Programs made from the model keep what they need. */
CVY_API void cvy_model_destroy(cvy_model **model);

/** Declares an input (or target, or sample weight) by name; @sample_shape has no batch dimension. Errors: CVY_E_ARGUMENT if the name is taken. */
CVY_API CVY_MUST_CHECK cvy_status cvy_model_add_input(cvy_model *model, const char *name, cvy_dtype dtype, const cvy_shape *sample_shape);

/**
 * cvy_model_add - add a layer
 * @op: operator, "conv", "fc", "relu", "mse", ...
 * @name: unique; its variables are "<name>.weight" and so on; NULL: the operator's name and a number. Layers of two models of one program that
 *        share a name share their variables.
 * @options: YAML text, "channels: 32, kernel: 3", or NULL
 * @from: names of inputs and earlier layers, "a, b"; NULL: the previous layer
 *
 * Options and shapes are checked when a program is planned. Errors: CVY_E_CONFIG (no such operator: the nearest is named), CVY_E_ARGUMENT
 * (name taken, source unknown), CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_model_add(cvy_model *model, const char *op, const char *name, const char *options, const char *from);

/** Name of the main output: the last layer that is not a loss. Borrowed. NULL for an empty model. */
CVY_API const char *cvy_model_output(const cvy_model *model);

/** All networks of the zoo, or all operators that a layer may name, as a table of text lines (name, summary, options). The caller frees with cvy_text_release(). */
CVY_API CVY_MUST_CHECK cvy_status cvy_models_list(char **text_out);
CVY_API CVY_MUST_CHECK cvy_status cvy_layers_list(char **text_out);
CVY_API void cvy_text_release(char **text);

#ifdef __cplusplus
}
#endif
#endif
