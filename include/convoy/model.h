/*
 * convoy/model.h: the description of a network: named inputs and a list of layers, without a batch size.
 *
 * A layer is an operator of the table that `convoy models --layers` prints, with options as YAML text:
 *
 *     cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){3, {3, 32, 32}});
 *     cvy_model_add(m, "conv", "conv1", "channels: 32, kernel: 5, pad: 2", "x");
 *     cvy_model_add(m, "relu", NULL, NULL, NULL);
 *     cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label");
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_MODEL_H
#define CONVOY_MODEL_H

#include <convoy/base.h>

CVY_BEGIN_DECLS

/** The description of a network. */
typedef struct cvy_model cvy_model;

/** What the numbers of an output are. It follows from the last layers of the network and from the loss. Of classes, one
 * axis has a number for each of them; "yes" is the second of two classes, or the target 1 of the loss bce, and each
 * number of the output stands for itself. */
typedef enum cvy_output_kind {
    /** Predicted numbers, or numbers of which nothing is known. */
    CVY_OUTPUT_VALUES,
    /** Their softmax has the probabilities of the classes. */
    CVY_OUTPUT_LOGITS,
    /** The logarithms of the probabilities of the classes. */
    CVY_OUTPUT_LOG_PROBABILITIES,
    /** The probabilities of the classes. */
    CVY_OUTPUT_PROBABILITIES,
    /** Their sigmoid has the probabilities of yes. */
    CVY_OUTPUT_YES_LOGITS,
    /** The probabilities of yes. */
    CVY_OUTPUT_YES_PROBABILITIES
} cvy_output_kind;
/** The kind in words, "probabilities of the classes". Collective: no. */
CVY_API const char *cvy_output_kind_text(cvy_output_kind kind);

/** Makes an empty model; the caller destroys it. @name: for messages; copied. Collective: no. Errors: CVY_E_MEMORY. */
CVY_API CVY_MUST_CHECK cvy_status cvy_model_create(const char *name, cvy_model **model_out);

/**
 * cvy_model_zoo - a network of the zoo, without a loss
 * @name: one of `convoy models`
 * @options: options of the network as YAML text; NULL: its defaults
 * @input: shape of a sample, [channels, positions...], without the batch; NULL: the network's own
 * @classes: number of outputs; 0: the network's own
 * @model_out: the model; the caller destroys it
 *
 * The input is "x", f32; cvy_model_output() names the result. If the options ask for auxiliary heads, these are the
 * outputs "aux1" and "aux2": give each a loss of its own; forward tasks leave them out. Collective: no. Errors:
 * CVY_E_CONFIG (unknown name or option: the nearest is named), CVY_E_SHAPE, CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_model_zoo(const char *name, const char *options, const cvy_shape *input,
                                                int64_t classes, cvy_model **model_out);

/**
 * cvy_model_from_file - a network in the file of another program
 * @path: an .onnx file, or the .prototxt file of a network of Caffe
 * @options: the keys that `model: {onnx: FILE}` of a job has beside the file, as YAML text, "constants: kept"; NULL:
 *           the defaults
 * @model_out: the model; the caller destroys it
 *
 * Its first input is "x", without a batch size. cvy_program_load() reads the weights of the same .onnx file.
 * Collective: no. Errors: CVY_E_ARGUMENT (another suffix: the known ones are named), CVY_E_CONFIG (an option),
 * CVY_E_IO, CVY_E_FORMAT, CVY_E_UNSUPPORTED (all operators or layers that are not known; a build without protobuf-c),
 * CVY_E_SHAPE, CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_model_from_file(const char *path, const char *options, cvy_model **model_out);

/** Destroys the object and sets the pointer to NULL; NULL is accepted. Programs that have been planned do not need the
 * model any more. Collective: no. */
CVY_API void cvy_model_destroy(cvy_model **model);

/**
 * cvy_model_use_context - let layers name the operators of the libraries that a context has loaded
 * @context: borrowed; it must live as long as the model, and programs of the model must be made on it
 *
 * Call it before cvy_model_add() names such an operator (convoy/operator.h). Libraries that the context loads later are
 * found, too. Collective: no. Errors: CVY_E_ARGUMENT (the model uses another context already).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_model_use_context(cvy_model *model, const cvy_context *context);

/**
 * cvy_model_add_input - declare an input, a target or a sample weight
 * @name: unique in the model; copied
 * @dtype: a real input has the program's dtype in its feed, whichever real dtype is given here
 * @sample_shape: shape of a sample, without the batch dimension; ndim 0: one element for each sample
 *
 * Collective: no. Errors: CVY_E_ARGUMENT (the name is taken, the dtype), CVY_E_SHAPE (too many dimensions, or one below
 * 1), CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_model_add_input(cvy_model *model, const char *name, cvy_dtype dtype,
                                                      const cvy_shape *sample_shape);

/**
 * cvy_model_add - add a layer
 * @op: the operator, "conv", "fc", "relu", "mse", ...
 * @name: unique in the model, at most 120 characters without blanks and commas; its variables are "<name>.weight" and
 *        so on; NULL: the operator's name and a number.
 *        Layers of the same name in two models of one program share their variables
 * @options: options of the operator as YAML text, "channels: 32, kernel: 3"; NULL: its defaults
 * @from: names of inputs and earlier layers, "a, b"; NULL: the previous layer
 *
 * All strings are copied. Options and shapes are checked when a program is planned. Collective: no. Errors:
 * CVY_E_CONFIG (no such operator: the nearest is named), CVY_E_ARGUMENT (the name is taken, or a source is unknown),
 * CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_model_add(cvy_model *model, const char *op, const char *name, const char *options,
                                                const char *from);

/**
 * cvy_model_set_stage - place a layer on a stage of a pipeline by hand
 * @layer: the name of a layer that has been added
 * @stage: from 1 to the number of stages (opts.pipeline of the program)
 *
 * Layers that are not placed go where the stages take the same time. A layer may be on the stage of the layers that it
 * reads, or on a later one. In a program of one stage it has no effect. cvy_program_plan() checks it, for the model of
 * the first task of a program. Collective: no. Errors: CVY_E_ARGUMENT (no such layer: the nearest is named; a stage
 * below 1), CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_model_set_stage(cvy_model *model, const char *layer, int64_t stage);

/** Name of the main output: the last layer that is not a loss; NULL for an empty model. The model owns it. Collective:
 * no. */
CVY_API const char *cvy_model_output(const cvy_model *model);

/** Releases a text that a call has returned, and sets the pointer to NULL; NULL is accepted. Collective: no. */
CVY_API void cvy_text_release(char **text);

CVY_END_DECLS
#endif
