/*
 * convoy/operator.h: operators of your own, in a shared library that convoy loads (an extension), or in the program
 * that calls convoy (cvy_context_add_operator).
 *
 * An extension needs these headers and the C library only, and is not linked with libconvoy. It exports one function,
 * convoy_extension(), which returns a table of operators:
 *
 *     static const cvy_operator scale = {.size = sizeof scale, .name = "my_scale", .nsrc_min = 1, .nsrc_max = 1,
 *                                        .splits = CVY_OPERATOR_SPLIT_SAMPLES, .shape = ..., .forward = ..., ...};
 *     static const cvy_operator *const operators[] = {&scale, NULL};
 *     static const cvy_extension mine = {.abi = CVY_EXTENSION_ABI, .version = CVY_VERSION_NUMBER,
 *                                        .size = sizeof mine, .name = "mine", .operators = operators};
 *     const cvy_extension *convoy_extension(void) { return &mine; }
 *
 *     cc -shared -fPIC $(pkg-config --cflags convoy) mine.c -o mine.so
 *
 * A job that has `libraries: [mine.so]` may name my_scale among its layers; a program calls cvy_context_load_library().
 * `convoy check-op mine.so` tests the operators. docs/guide/extend.md has a complete example.
 *
 * Every function of an operator returns 0, or another number after it has written what is wrong to `message`. convoy
 * calls the functions of one context from one thread at a time. They must not keep pointers that they were given.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_OPERATOR_H
#define CONVOY_OPERATOR_H

#include <convoy/partition.h>

CVY_BEGIN_DECLS

/** The kind of the structs below. An extension of another kind is refused; it must be compiled with the headers of the
 * convoy that loads it. */
#define CVY_EXTENSION_ABI 1

/** The largest numbers of sources, parameters and saved results of an operator. */
#define CVY_OPERATOR_SOURCES_MAX 4
#define CVY_OPERATOR_PARAMS_MAX 4
#define CVY_OPERATOR_SAVED_MAX 2

/** A tensor as the functions of an operator see it: row-major, without gaps. Real tensors are all f32, or all f64 if
 * the job trains in f64. A job that trains in bf16 cannot have such a layer, and the error says so. */
typedef struct cvy_operator_tensor {
    cvy_dtype dtype;
    int ndim;
    /** dim[0] of a source is the number of samples of this rank; it may be 0 where no data are given. */
    int64_t dim[CVY_NDIM_MAX];
    int64_t elems;
    /** NULL: not given, or not wanted. */
    void *data;
} cvy_operator_tensor;

/** Types of options. */
typedef enum cvy_operator_option_type {
    /** The field is an int64_t. */
    CVY_OPERATOR_INT = 0,
    /** The field is a double. */
    CVY_OPERATOR_REAL,
    /** The field is an int, 0 or 1. */
    CVY_OPERATOR_BOOL,
    /** The field is an int: the index of the word in `valid`, "zero|wrap". */
    CVY_OPERATOR_CHOICE
} cvy_operator_option_type;

/** An option of a layer, as in `my_scale: {factor: 2}`. convoy fills the operator's own struct of options from it. */
typedef struct cvy_operator_option {
    /** Not "name", "from", "output" or "stage", which belong to the layer. NULL ends the table. An operator that can be
     * split by CVY_OPERATOR_SPLIT_OUTPUTS has the number of its outputs in "channels". */
    const char *name;
    cvy_operator_option_type type;
    /** offsetof(struct my_options, field). */
    size_t offset;
    /** The default as text; NULL: the option must be given. */
    const char *fallback;
    /** NULL or "": any value; bounds that must all hold: "1..", "0..1", ">0", "odd 1.."; the words of a CHOICE. */
    const char *valid;
    /** One sentence without a full stop, for `convoy models --layers` and messages; may be NULL. */
    const char *help;
} cvy_operator_option;

/** A weight that training changes. It is the variable "<layer>.<name>" of checkpoints. */
typedef struct cvy_operator_param {
    /** "weight"; NULL ends the table. */
    const char *name;
    /** An initialiser as in the job file: "he", "xavier", "gaussian", "constant"; NULL: zeros. */
    const char *init;
    /** Its options as YAML text, "value: 1"; may be NULL. */
    const char *init_options;
    /** 1: weight decay applies by default. */
    int decay;
} cvy_operator_param;

/** What the shape function is given, and what it sets. */
typedef struct cvy_operator_shapes {
    /** Of this struct, as the calling convoy knows it. */
    size_t size;
    /** The operator's struct of options, filled; NULL if it has none. */
    const void *options;
    int nsrc;
    /** [nsrc], without data. */
    const cvy_operator_tensor *src;
    /** To be set: dst[0] is the shape of the result, dst[1] and so on those of the saved results. */
    cvy_shape dst[1 + CVY_OPERATOR_SAVED_MAX];
    /** To be set: the shapes of the parameters. They must not depend on the number of samples. */
    cvy_shape param[CVY_OPERATOR_PARAMS_MAX];
    /** May be set, for the initialisers "he" and "xavier": numbers of inputs and outputs of a weight. */
    int64_t fan_in[CVY_OPERATOR_PARAMS_MAX], fan_out[CVY_OPERATOR_PARAMS_MAX];
    /** What is wrong with the sources or options, if the function does not return 0. */
    char message[256];
    /** That of the cvy_operator. */
    void *user;
} cvy_operator_shapes;

/** What the other functions of an operator are given. Pointers to tensors have as many elements as the layer has. */
typedef struct cvy_operator_call {
    /** Of this struct, as the calling convoy knows it. */
    size_t size;
    const void *options;
    /** Threads that the function may use. It is 1 in deterministic training. */
    int threads;
    /** 1: the layer is trained; 0: the network is only applied. */
    int training;
    int nsrc;
    const cvy_operator_tensor *src, *param;
    /** dst[0] is the result, dst[1] and so on are the saved ones, whose data are NULL if no gradient needs them. */
    const cvy_operator_tensor *dst;
    /** backward: the gradient of the loss for the result. */
    const cvy_operator_tensor *ddst;
    /** backward: the gradients for sources and parameters, to be written and not added to. One without data is not
     * wanted. */
    const cvy_operator_tensor *dsrc, *dparam;
    /** What is wrong, if the function does not return 0; room for message_bytes. */
    char *message;
    size_t message_bytes;
    /** That of the cvy_operator. */
    void *user;
} cvy_operator_call;

/** The cost of one call of a layer. */
typedef struct cvy_operator_cost {
    /** Floating-point operations; a multiplication and an addition count as two. */
    int64_t forward_flop, backward_flop;
} cvy_operator_cost;

/**
 * The axes along which a layer may be split over ranks. Each part is the same operator on its part of the sources.
 * `convoy check-op` cuts the samples along each declared axis, and compares the parts with the whole.
 */
enum {
    /** Axis 0 of sources and result: each sample is computed by itself. Data parallelism needs it: a layer without it
     * can be trained on one rank only. */
    CVY_OPERATOR_SPLIT_SAMPLES = 1,
    /** Axis 1 of all sources and of the result: each channel is computed by itself. */
    CVY_OPERATOR_SPLIT_CHANNELS = 2,
    /** The option "channels", so axis 1 of the result; every rank has the whole source. */
    CVY_OPERATOR_SPLIT_OUTPUTS = 4,
    /** Axis 1 of the source; the results of the parts are added up. */
    CVY_OPERATOR_SPLIT_INPUTS = 8,
    /** Any axis from 2 on of all sources, and the same axis of the result, if no part needs elements of another. */
    CVY_OPERATOR_SPLIT_SPACE = 16
};

/** Which tensors of the forward pass `backward` reads; all others may be overwritten before it runs. Parameters, saved
 * results and shapes are always there. */
enum { CVY_OPERATOR_READS_SOURCES = 1, CVY_OPERATOR_READS_RESULT = 2 };

/** Flags of a sample. */
enum {
    /** The values of real sources are drawn from (0.1, 1) instead of (-1, 1). */
    CVY_OPERATOR_SAMPLE_POSITIVE = 1,
    /** The gradient is not compared with finite differences: the operator is not smooth there. */
    CVY_OPERATOR_SAMPLE_NO_GRADIENT = 2
};

/** A case of the operator's test. */
typedef struct cvy_operator_sample {
    /** Shapes of the sources, "2x7x3x5" or "4x3,4:i32": a dtype may follow. NULL ends the table. */
    const char *src;
    /** Options of the layer as YAML text, "factor: 2"; NULL: the defaults. */
    const char *options;
    /** CVY_OPERATOR_SAMPLE_*. */
    unsigned flags;
    /** Values of integer sources are 0 .. int_bound - 1; 0 means 2. */
    int64_t int_bound;
} cvy_operator_sample;

/** An operator: everything that convoy knows about it. Zero-initialise, set size. Its tables and their texts are used
 * as long as the context lives; those of an extension are static. */
typedef struct cvy_operator {
    size_t size;
    /** The layer's word in a job: lower-case letters, digits and '_'. No operator of convoy or of another extension may
     * have it. "<name>_grad" is taken, too. */
    const char *name;
    /** A phrase, as `convoy models --layers` prints it. */
    const char *summary;
    /** sizeof the operator's struct of options, and its table, which ends with {0}; 0 and NULL: there are none. */
    size_t options_size;
    const cvy_operator_option *options;
    int nsrc_min, nsrc_max;
    /** Bit i: source i holds integers (i32, i64 or u8), such as labels, and gets no gradient. All others are real. */
    unsigned integer_src;
    /** Results besides dst[0] that `forward` keeps for `backward`. They exist in training only. */
    int nsaved;
    /** The parameters, which every layer has; the table ends with {0}. NULL: there are none. */
    const cvy_operator_param *params;
    /** CVY_OPERATOR_SPLIT_*. */
    unsigned splits;
    /** CVY_OPERATOR_READS_*. */
    unsigned reads;
    /** Checks the sources and sets the shapes. NULL: there are neither parameters nor saved results, and the result is
     * [n, result...] for n samples. */
    int (*shape)(cvy_operator_shapes *shapes);
    /** Writes every element of the results. */
    int (*forward)(const cvy_operator_call *call);
    /** Writes every element of the gradients that are wanted. NULL: nothing before the layer can be trained. */
    int (*backward)(const cvy_operator_call *call);
    /** Sets the cost; the tensors have no data. It decides how layers are shared out to the stages of a pipeline. NULL:
     * one operation for each element of the result. */
    void (*cost)(const cvy_operator_call *call, cvy_operator_cost *cost_out);
    /** Cases for `convoy check-op`; the table ends with {0}. */
    const cvy_operator_sample *samples;
    /** Passed to the functions: data of the program. It must be valid as long as the context lives. NULL: there are
     * none. */
    void *user;
    /** Without a shape function: the shape of the result for one sample; ndim 0: one number. */
    cvy_shape result;
} cvy_operator;
CVY_SIZED_STRUCT(cvy_operator)

/** What an extension has. The first three fields are the same in every version. */
typedef struct cvy_extension {
    /** CVY_EXTENSION_ABI. */
    int abi;
    /** CVY_VERSION_NUMBER, for messages. */
    int version;
    /** sizeof(cvy_extension). */
    size_t size;
    /** For messages. */
    const char *name;
    /** Ends with NULL; NULL: there are none. */
    const cvy_operator *const *operators;
    /** Passes that place layers on the stages of a pipeline (convoy/partition.h). Ends with NULL; NULL: there are
     * none. */
    const cvy_partition *const *partitions;
} cvy_extension;

/** The function that an extension defines and exports. convoy calls it once for each context that loads the file.
 * Collective: no. */
CVY_API const cvy_extension *convoy_extension(void);

/**
 * cvy_context_load_library - load an extension, so that models may have its operators
 * @context: models that use it get its operators (cvy_model_use_context)
 * @path: the file. A path without '/' is in the current folder; no search path is used
 *
 * The code of the file runs in this process. It stays loaded until the process ends. A file that the context has
 * already is not loaded again. All ranks load the same file: its content is compared, so that copies on local disks are
 * possible.
 * Collective: yes. Errors: CVY_E_IO (the file cannot be read or loaded, or is no extension), CVY_E_UNSUPPORTED (built
 * for another version), CVY_E_ARGUMENT (a wrong descriptor, or a name that is taken), CVY_E_DISAGREE (ranks have
 * different files), CVY_E_MEMORY. After a fault the context has the operators that it had before; after
 * CVY_E_DISAGREE destroy it.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_context_load_library(cvy_context *context, const char *path);

/**
 * cvy_context_add_operator - add an operator whose functions are in this program
 * @context: models that use it get the operator (cvy_model_use_context)
 * @op: name and summary are copied; all else must be valid as long as the context lives
 *
 * It is like an operator of an extension, and its functions may read and write the program's own data through `user`.
 * The loss `mean` makes the result of any operator a loss: the mean over the samples of all ranks. forward runs once
 * for each micro-batch of a step, and is not run again to save memory; it is run again if a number was not finite, to
 * find the layer. A function that does not return 0 ends the call that runs it, such as cvy_program_step(), with its
 * message and CVY_E_ARGUMENT on this rank. Other ranks wait for it in MPI, so return the same on all of them.
 * cvy_run_check_operators() compares the gradient with finite differences.
 * Collective: yes, with the same operators in the same order. Errors: CVY_E_ARGUMENT (a wrong descriptor, or a name
 * that is taken), CVY_E_DISAGREE (ranks have different operators), CVY_E_MEMORY. After a fault the context has the
 * operators that it had before.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_context_add_operator(cvy_context *context, const cvy_operator *op);

/** What cvy_run_check_operators() checks. Zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_operators_opts {
    size_t size;
    /** The name of one operator; NULL: all of the library. */
    const char *only;
    /** Called with a line for each check, "ok      my_scale: gradient: ...", or FAILED with what is wrong; may be
     * NULL. */
    void (*line)(void *user, const char *line);
    /** Given to `line`. */
    void *user;
    /** Shapes of sources as in a cvy_operator_sample, "8x9,8x1", which are tried instead of the samples of the
     * operator; NULL: its samples. */
    const char *sources;
    /** With `sources`: the values of each source, row-major, integers as well; values[i] NULL, or NULL: random ones. */
    const double *const *values;
} cvy_operators_opts;
CVY_SIZED_STRUCT(cvy_operators_opts)

/** What cvy_run_check_operators() has found. Set size; the library fills the rest. */
typedef struct cvy_operators_result {
    size_t size;
    int operators, checks, failed;
} cvy_operators_result;
CVY_SIZED_STRUCT(cvy_operators_result)

/**
 * cvy_run_check_operators - test the operators of a library, or of the program, on their samples
 * @path: the library; it is loaded into the context on this rank. NULL: the operators of cvy_context_add_operator()
 * @opts: NULL for the defaults
 * @result_out: written on success only
 *
 * The checks of each operator: shapes; results (all elements are written, and nothing else); gradient (against finite
 * differences, in f64); f32 (against f64); splits (the parts of a layer together are the whole); cost. convoy's own
 * operators are tested by the same code. A check that fails is not a fault of the call. The line of a wrong gradient
 * names the source, the element and both values. An operator of the program need not have a cost.
 * Collective: no. Errors: those of cvy_context_load_library() for one rank; CVY_E_ARGUMENT (no such operator);
 * CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_check_operators(cvy_context *context, const char *path,
                                                          const cvy_operators_opts *opts,
                                                          cvy_operators_result *result_out);

CVY_END_DECLS
#endif
