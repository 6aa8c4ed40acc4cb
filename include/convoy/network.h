/*
 * convoy/network.h: use a trained network inside a program: it takes inputs as they are in the data, and gives outputs.
 *
 *     cvy_network_open(context, "runs/demo", NULL, &network);          // or "model.safetensors", from convoy export
 *     cvy_network_in in = {"x", CVY_DTYPE_U8, n * 3 * 32 * 32, pixels};
 *     cvy_network_out out = {NULL, CVY_DTYPE_F32, n * 10, scores};
 *     cvy_network_apply(network, n, &in, 1, &out, 1);
 *
 * What the job does to its data before training, it does here, too: the scaling of pixels, data.normalize, resizing and
 * central crops. The scaling of targets (data.normalize_targets) is undone. Random augmentation and dropout are left
 * out. Each rank opens and applies its own network; no call waits for another rank. Several threads may each use a
 * network of their own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_NETWORK_H
#define CONVOY_NETWORK_H

#include <convoy/job.h>
#include <convoy/model.h>

CVY_BEGIN_DECLS

/** A trained network that is ready to be applied. */
typedef struct cvy_network cvy_network;

/** Options of an open network; zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_network_opts {
    size_t size;
    /** The job that the weights belong to. NULL: the one that the files hold; only files of another program need it.
     * Its data.train is opened, for the shapes of inputs and outputs. */
    const cvy_job_source *job;
    /** Of a run folder: "best", "step-1234", or NULL: the best checkpoint, or the newest if none is recorded as the
     * best. */
    const char *checkpoint;
    /** "layer1, layer2": the layers that are the outputs; NULL: the network's main output. */
    const char *outputs;
    /** The largest number of samples that are computed at once; 0: the job's batch, at most 64. More need more memory.
     */
    int64_t batch;
    /** Of a network of Caffe, a .prototxt file: the .caffemodel file with its weights. */
    const char *weights;
} cvy_network_opts;
CVY_SIZED_STRUCT(cvy_network_opts)

/** What a network is. Set size; the library fills the rest. Strings are valid until the network is destroyed. */
typedef struct cvy_network_about {
    size_t size;
    /** Name of the job. */
    const char *name;
    /** Training steps of the weights; -1: not known. */
    int64_t step;
    /** Number of weights on which the outputs depend. */
    int64_t parameters;
    /** Number of classes; 0: the outputs are numbers. */
    int64_t classes;
    /** Numbers of inputs and outputs, see cvy_network_input() and cvy_network_output(). */
    int64_t inputs, outputs;
    /** Of a calibrated classifier (`convoy test --calibrate`): the probabilities are the softmax of the logits divided
     * by this; 0: it is not calibrated. */
    double temperature;
} cvy_network_about;
CVY_SIZED_STRUCT(cvy_network_about)

/** An input of cvy_network_apply(): n samples, one after the other, row-major. */
typedef struct cvy_network_in {
    /** Name of the input; NULL: "x". */
    const char *name;
    /** CVY_DTYPE_U8 for pictures (0 .. 255); F32 or F64 for numbers, which are computed with as F32 if the data sets of
     * convoy hold F32; I32 for labels. */
    cvy_dtype dtype;
    /** Number of elements at @data, which must be n times those of a sample. */
    int64_t elems;
    const void *data;
    /** Shape of a sample; ndim 0: that of cvy_network_input(). Another one is accepted if the job resizes pictures of
     * any size. */
    cvy_shape shape;
} cvy_network_in;

/** An output of cvy_network_apply(): memory for n samples, one after the other, row-major. */
typedef struct cvy_network_out {
    /** Name of the layer; NULL: the first output. */
    const char *name;
    /** CVY_DTYPE_F32 or CVY_DTYPE_F64. */
    cvy_dtype dtype;
    /** Number of elements at @data, which must be n times those of a sample. */
    int64_t elems;
    void *data;
} cvy_network_out;

/**
 * cvy_network_open - open what was trained
 * @context: gives the threads and the log; borrowed until the network is destroyed
 * @target: a run folder, a checkpoint ("runs/demo/checkpoints/step-00004500"), a .safetensors file, an .onnx file,
 *          or a .prototxt file of Caffe, with opts.weights
 * @opts: NULL for the defaults
 * @network_out: the network; the caller destroys it
 *
 * Reads the weights and plans the network for a few batch sizes up to opts.batch. Layers on which no output depends,
 * such as those that only lead to a loss, are left out. A checkpoint is checked first.
 * Collective: no. Errors: CVY_E_ARGUMENT (@target is none of these), CVY_E_IO, CVY_E_FORMAT (damaged, or no network),
 * CVY_E_CONFIG (the job), CVY_E_SHAPE (weights of another network), CVY_E_UNSUPPORTED, CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_network_open(cvy_context *context, const char *target,
                                                   const cvy_network_opts *opts, cvy_network **network_out);
/** Destroys the network and sets the pointer to NULL; NULL is accepted. Collective: no. */
CVY_API void cvy_network_destroy(cvy_network **network);

/** What the network is. Collective: no. Errors: CVY_E_ARGUMENT. */
CVY_API CVY_MUST_CHECK cvy_status cvy_network_describe(const cvy_network *network, cvy_network_about *about_out);
/** Input i: its name, dtype, and the shape of a sample. The network owns the name. Outputs of the call may be NULL.
 * CVY_END after the last one. Collective: no. Errors: none. */
CVY_API cvy_status cvy_network_input(const cvy_network *network, int i, const char **name_out, cvy_dtype *dtype_out,
                                     cvy_shape *shape_out);
/** Output i: its name and the shape of a sample, as cvy_network_input(). Collective: no. Errors: none. */
CVY_API cvy_status cvy_network_output(const cvy_network *network, int i, const char **name_out, cvy_shape *shape_out);
/** What the numbers of output i are: for classes, whether logits or probabilities. Collective: no. Errors:
 * CVY_E_ARGUMENT (there is no such output). */
CVY_API CVY_MUST_CHECK cvy_status cvy_network_output_kind(const cvy_network *network, int i, cvy_output_kind *kind_out);
/** Name of a class, or NULL if there is none. Valid until the network is destroyed. Collective: no. */
CVY_API const char *cvy_network_class(const cvy_network *network, int64_t label);

/**
 * cvy_network_apply - compute the outputs of @n samples
 * @n: any number of samples; they are computed in pieces of the planned sizes
 * @in: [nin], one for each input
 * @out: [nout], the outputs that are wanted, in any order
 *
 * The output for a sample does not depend on the others. Outputs are those of the network's last layer: for classes,
 * these are logits, or probabilities if it ends with softmax (cvy_network_output_kind()); for targets, numbers in the
 * units of the data. Allocates nothing after the
 * first call with arrays of these dtypes. Collective: no. Errors: CVY_E_ARGUMENT (an array that is missing, unknown, of
 * another size or dtype), CVY_E_NUMERIC (an input is not finite), CVY_E_SHAPE (a picture of another size),
 * CVY_E_MEMORY. After a fault, outputs may be partly written.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_network_apply(cvy_network *network, int64_t n, const cvy_network_in *in, int nin,
                                                    const cvy_network_out *out, int nout);

/**
 * cvy_network_check_input - compare what a program knows of an array beside its numbers with the data of the training
 * @described: a map as JSON or YAML, such as {columns: [a, b], described: {x: [{name: tas, units: K, samples: {name:
 *             time, n: 6}, axes: [{name: lat, units: degrees_north, n: 4, at: [-60, -20, 20, 60]}, {name: lon, n:
 *             8}]}], y: []}}; each part may be left out. columns: names along the first axis of a sample. axes: those
 *             of a sample; n: length, at: the coordinates along it
 * @notes_out: sentences on differences that may be meant, such as other latitudes, a line each, or NULL; the caller
 *             releases it with cvy_text_release(). May be NULL itself
 *
 * cvy_network_apply() takes numbers as they are. What is known of both is compared: units, order and direction of axes,
 * names of columns. Collective: no. Errors: CVY_E_CONFIG (the array is not like the data; the message has both),
 * CVY_E_ARGUMENT, CVY_E_FORMAT (@described is no such map), CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_network_check_input(const cvy_network *network, const char *described,
                                                          char **notes_out);

/** A network that some ranks hold and all ranks apply. */
typedef struct cvy_shared_network cvy_shared_network;

/**
 * cvy_shared_network_create - let all ranks of a context apply a network that some of them hold
 * @context: over all these ranks; borrowed until the object is destroyed
 * @network: on ranks that hold the network, opened with a context of this rank; borrowed. NULL on all others
 * @shared_out: the caller destroys it
 *
 * For many ranks with few samples each: a batch of all their samples takes less time than a batch on each rank, and
 * only some ranks need memory for the network. Each rank that holds it serves itself and an equal share of the others,
 * in the order of ranks. Collective: yes, over @context. Errors: CVY_E_ARGUMENT (no rank holds a network), CVY_E_COMM,
 * CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_shared_network_create(cvy_context *context, cvy_network *network,
                                                            cvy_shared_network **shared_out);
/** Destroys the object, not the network, and sets the pointer to NULL; NULL is accepted. Collective: yes. */
CVY_API void cvy_shared_network_destroy(cvy_shared_network **shared);
/**
 * cvy_shared_network_apply - compute the outputs of this rank's samples on the rank that serves it
 * @n, @in, @out: of this rank, as for cvy_network_apply(); @n may be 0. Names, dtypes and shapes are the same on all
 *                ranks
 *
 * The results are those of cvy_network_apply(). Collective: yes, over the ranks that are served together. Errors: those
 * of cvy_network_apply(), on all of these ranks; CVY_E_DISAGREE (ranks give different arrays), CVY_E_COMM. Messages
 * number these ranks from 0, which is the one that holds the network, and samples in the batch of all of them.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_shared_network_apply(cvy_shared_network *shared, int64_t n,
                                                           const cvy_network_in *in, int nin,
                                                           const cvy_network_out *out, int nout);

/** Options of a file for other programs; zero-initialise, set size. */
typedef struct cvy_network_export_opts {
    size_t size;
    /** ONNX: the operator set, 13 to 21; 0: 21. */
    int64_t opset;
    /** 1: the input of a network on pictures is f32, 0 .. 255, and not u8. Other inputs are f32 anyway. */
    int float_input;
    /** 1: if the file exists already, it is replaced; 0: that is an error. */
    int replace;
    /** A caffemodel: the text of its network, whose layers the trained network has. */
    const char *net;
} cvy_network_export_opts;
CVY_SIZED_STRUCT(cvy_network_export_opts)

/**
 * cvy_network_export - write an open network as an ONNX file, with its weights, or its weights as a caffemodel
 * @path: the file, which ends with .onnx or .caffemodel; it is written whole or not at all
 * @opts: NULL for the defaults
 * @notes_out: sentences on what is not in the file, a line each, or NULL; the caller releases it with
 *             cvy_text_release(). May be NULL itself
 *
 * The inputs and outputs of the file have the names of those of the network, and a first dimension "N" that is free.
 * The file does what cvy_network_apply() does, in f32: the scaling of pixels, data.normalize and the scaling of targets
 * are inside; dropout is left out; batch norm uses its running statistics. Only resizing and crops are not inside: then
 * x is a picture of the size that the network takes. The initialisers have the names and shapes of the variables, and
 * `model: {onnx: FILE}` reads the file back. A caffemodel has the weights of the layers of opts.net, a .prototxt file,
 * from which the job was made. Collective: no. Errors: CVY_E_UNSUPPORTED (a layer that has no ONNX form,
 * named; a build without protobuf-c; more than 2 GiB), CVY_E_ARGUMENT (another operator set or suffix, no opts.net for
 * a caffemodel), CVY_E_SHAPE (opts.net is another network), CVY_E_IO (@path exists, or cannot be written),
 * CVY_E_MEMORY. After a fault there is no new file.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_network_export(const cvy_network *network, const char *path,
                                                     const cvy_network_export_opts *opts, char **notes_out);

CVY_END_DECLS
#endif
