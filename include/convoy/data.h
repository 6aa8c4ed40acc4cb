/*
 * convoy/data.h: convoy's data sets and loader for a program with its own training loop.
 *
 *     cvy_data_open("data/cifar-10", NULL, &data);
 *     cvy_data_loader_opts opts = cvy_data_loader_opts_default();
 *     opts.batch = 128, opts.epochs = 10, opts.seed = 1;
 *     cvy_data_loader_create(context, data, &opts, &loader);
 *     while ((status = cvy_data_loader_next(loader, &batch)) == CVY_OK) {
 *         cvy_program_fill(program, task, &batch);
 *         cvy_program_step(program, task, rate);
 *     }                                                             // CVY_END after the last epoch
 *
 * A sample is known by its number in the data set. Its place in an epoch is a seeded permutation, and what augmentation
 * does to it depends on seed, epoch and number only. So any number of ranks sees the same batches in the same order,
 * and a loader that begins at a later step gives the same batches as one that has reached that step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_DATA_H
#define CONVOY_DATA_H

#include <convoy/program.h>

CVY_BEGIN_DECLS

/** An open data set. Several loaders may use it at a time. */
typedef struct cvy_data cvy_data;

/** Options of an open data set; zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_data_opts {
    size_t size;
    /** A list in YAML, as data.augment of a job: "[{random_crop: {pad: 4}}, mirror]"; NULL: none. */
    const char *augment;
    /** 1: the random steps of `augment` are done too, as in training; 0: only those that are not random. */
    int random;
    /** Seed of augmentation. */
    uint64_t seed;
} cvy_data_opts;
CVY_SIZED_STRUCT(cvy_data_opts)

/** What a data set holds. Set size; the library fills the rest. Strings are valid until the set is destroyed. */
typedef struct cvy_data_about {
    size_t size;
    int64_t samples;
    /** Number of classes; 0: there are none, targets are numbers. */
    int64_t classes;
    /** Number of fields, see cvy_data_field(). */
    int64_t fields;
    /** Name of the format, "cifar10". */
    const char *format;
} cvy_data_about;
CVY_SIZED_STRUCT(cvy_data_about)

/**
 * cvy_data_open - open a data set
 * @source: a path, or a map or list in YAML as data.train of a job: "{path: ..., format: ..., range: ..., limit: ...}"
 * @opts: NULL for the defaults
 * @data_out: the set; the caller destroys it
 *
 * Reads what describes the set, not the samples. Collective: no; each rank opens the set itself. Errors:
 * CVY_E_ARGUMENT, CVY_E_CONFIG (a key or an option, the nearest is named), CVY_E_IO, CVY_E_FORMAT, CVY_E_UNSUPPORTED,
 * CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_data_open(const char *source, const cvy_data_opts *opts, cvy_data **data_out);

/**
 * cvy_data_split - a part of a data set, drawn by class and seed
 * @share: between 0 and 1
 * @part: 1: this share of the samples; 0: the rest. Both calls with the same share and seed give sets without a common
 *        sample
 * @part_out: uses @data, which must be destroyed after it
 *
 * Collective: no. Errors: CVY_E_ARGUMENT, CVY_E_CONFIG, CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_data_split(cvy_data *data, double share, uint64_t seed, int part,
                                                 cvy_data **part_out);

/** Destroys the object and sets the pointer to NULL; NULL is accepted. Loaders of the set must be destroyed before.
 * Collective: no. */
CVY_API void cvy_data_destroy(cvy_data **data);

/** Number of samples, classes and fields. Collective: no. Errors: CVY_E_ARGUMENT. */
CVY_API CVY_MUST_CHECK cvy_status cvy_data_describe(const cvy_data *data, cvy_data_about *about_out);
/** Field i of a sample: its name ("x", "label", "y", "weight"), dtype and shape without a batch dimension; field 0 is
 * the input "x". The set owns the name. Outputs may be NULL. CVY_END after the last. Collective: no. Errors: none. */
CVY_API cvy_status cvy_data_field(const cvy_data *data, int i, const char **name_out, cvy_dtype *dtype_out,
                                  cvy_shape *shape_out);
/** Name of a class, or NULL if there is none. Valid until the set is destroyed. Collective: no. */
CVY_API const char *cvy_data_class(const cvy_data *data, int64_t label);

/** Gives each rank its rows of each batch, epoch by epoch; background threads read and decode ahead. */
typedef struct cvy_data_loader cvy_data_loader;

/** Options of a loader; zero-initialise, set size. Equal on all ranks. */
typedef struct cvy_data_loader_opts {
    size_t size;
    /** Samples of the global batch, over all ranks; required. If it is larger than the data set, the data set's size is
     * used. */
    int64_t batch;
    /** Micro-batches of a batch, as cvy_training_opts.accumulate of the task that takes it; 0: 1. */
    int64_t accumulate;
    /** Number of epochs; 0: no end. */
    int64_t epochs;
    /** Number of the first batch, counted from the start of epoch 0: where an earlier run stopped. */
    int64_t first_step;
    /** Order, as data.shuffle of a job: "true" (NULL), "window" or "false". */
    const char *shuffle;
    /** Seed of the order. */
    uint64_t seed;
    /** 1: an epoch's last batch may be smaller; 0: it is left out if it would be. */
    int keep_tail;
    /** 1: a sample that cannot be read becomes zeros with weight 0; 0: it is a fault. */
    int skip_bad;
    /** Background threads of each rank; 0: 1; -1: none, rows are read in cvy_data_loader_next(). */
    int threads;
    /** Number of batches that are prepared ahead; 0: 2. */
    int prefetch;
} cvy_data_loader_opts;
CVY_SIZED_STRUCT(cvy_data_loader_opts)

/** A rank's rows of a batch. Set size; the library fills the rest. The loader owns the memory, which is valid until its
 * next call. */
typedef struct cvy_data_batch {
    size_t size;
    /** Number of the batch from the start of epoch 0, and its epoch. */
    int64_t step, epoch;
    /** Samples of the global batch; rows of this rank, which may be 0. */
    int64_t batch, rows;
    /** For each field of the data set [rows, shape...], of its dtype; their number is cvy_data_about.fields. */
    const void *const *field;
    /** [rows]: numbers of the samples in the data set. */
    const int64_t *sample;
    /** [rows]: 1, or 0 for a sample that could not be read. */
    const double *weight;
    /** The loader's data set, for cvy_program_fill(). */
    const cvy_data *data;
} cvy_data_batch;
CVY_SIZED_STRUCT(cvy_data_batch)

/**
 * cvy_data_loader_create - make a loader over the ranks of a context
 * @context, @data: must outlive the loader
 * @opts: the batch is required
 *
 * Starts the background threads. Collective: logically (the same calls on all ranks; nothing is exchanged). Errors:
 * CVY_E_ARGUMENT, CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_data_loader_create(cvy_context *context, cvy_data *data,
                                                         const cvy_data_loader_opts *opts,
                                                         cvy_data_loader **loader_out);
/** Stops the threads, destroys the loader and sets the pointer to NULL; NULL is accepted. Collective: no. */
CVY_API void cvy_data_loader_destroy(cvy_data_loader **loader);

/**
 * cvy_data_loader_next - this rank's rows of the next batch
 * @batch_out: its size is the caller's; rows are in the order that cvy_program_feed() wants them
 *
 * Waits until they are ready. Returns CVY_END after the last epoch. Collective: logically. Errors: CVY_E_ARGUMENT,
 * CVY_E_IO, CVY_E_FORMAT (a damaged sample), CVY_E_MEMORY; a rank's fault is not told to the others.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_data_loader_next(cvy_data_loader *loader, cvy_data_batch *batch_out);

/** Batches of an epoch. Collective: no. */
CVY_API int64_t cvy_data_loader_steps(const cvy_data_loader *loader);

/**
 * cvy_program_fill - copy a batch into the feeds of a task
 * @task: its inputs with the name of a field get that field; "sample_id" gets the sample numbers
 *
 * Real fields are converted to the dtype of the feed. A forward task may have more rows than the batch: the rest
 * becomes zero, and only the first batch->rows rows of its outputs are meaningful. A training task must have exactly
 * as many rows as the batch. It ends the effect of cvy_program_set_rows(). Collective: no. Errors: CVY_E_ARGUMENT
 * (rows), CVY_E_SHAPE (a field and its feed differ).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_program_fill(cvy_program *program, int task, const cvy_data_batch *batch);

CVY_END_DECLS
#endif
