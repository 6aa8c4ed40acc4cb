/*
 * convoy/score.h: how good a trained network is: its scores on labelled data, and its outputs on any data, as `convoy
 * test` and `convoy predict` give them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_SCORE_H
#define CONVOY_SCORE_H

#include <convoy/job.h>

CVY_BEGIN_DECLS

/** A metric's value on the data. */
typedef struct cvy_test_metric {
    char name[48];
    double value;
} cvy_test_metric;

/** The scores of one number of a vector of outputs, or of one channel of a map. */
typedef struct cvy_test_output {
    double rmse, mae, r2;
} cvy_test_output;

/** The scores of a network. The caller sets size, and releases the contents with cvy_test_result_release();
 * all pointers in it are valid until then. */
typedef struct cvy_test_result {
    size_t size;
    /** "step-00004500", or "weights" for a .safetensors file; the data set's path or format. */
    char checkpoint[64], data[512];
    int64_t samples;
    /** Mean loss, NaN if the model has none; time of the pass, s. */
    double loss, seconds;
    /** The metrics of the job in its order, then those that a report shows. */
    int nmetric;
    const cvy_test_metric *metric;
    /** Names of the classes; 0: there are no classes, or they have no names. */
    int nclass;
    const char *const *class_name;
    /** [nconfusion, nconfusion], rows are true classes, columns the network's answers, in numbers of samples by weight;
     * 0: not a classifier. */
    int nconfusion;
    const double *confusion;
    /** All scores as one JSON object, as in test.json. */
    const char *json;
    /** Private to the library. A size that ends before this field is refused. */
    void *owned;
    /** Of a network with several outputs that are numbers: the scores of each, in the units of the targets; 0: it has
     * one output, or gives classes. */
    int noutput;
    const cvy_test_output *output;
    /** What a reader of the scores has to know, a line each: that the samples chose the checkpoint, or that r2 is a
     * mean of positions; NULL: nothing. */
    const char *note;
} cvy_test_result;
CVY_SIZED_STRUCT(cvy_test_result)

/**
 * cvy_run_test - score a trained network on labelled data
 * @target: a run folder (its best checkpoint, or its newest if none is recorded as the best), one of its checkpoints,
 * or a .safetensors file
 * @job: the job of a .safetensors file that has none; NULL: the job of the target
 * @data: a data source (a path or a YAML map); a path, also in a list, is read with the reader's options of the job's
 *        data.test or data.train; NULL: the job's data.test
 * @result_out: written on rank 0; emptied on others
 *
 * The scores of a run folder are also written to its test.json; the log warns if they cannot be. Collective: yes.
 * Errors: as cvy_run_train(), and CVY_E_ARGUMENT (size). After a fault the result is empty, or as it was if its size is
 * refused.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_test(cvy_context *context, const char *target, const cvy_job_source *job,
                                               const char *data, cvy_test_result *result_out);
/** All scores, with curves and samples, as one JSON object; the caller releases the text with cvy_text_release().
 * Collective: no. Errors: CVY_E_ARGUMENT (an empty result), CVY_E_MEMORY. */
CVY_API CVY_MUST_CHECK cvy_status cvy_test_result_json(const cvy_test_result *result, char **text_out);
/** Releases the contents and empties the result, which may be empty already. Its size stays. Collective: no. */
CVY_API void cvy_test_result_release(cvy_test_result *result);

/** A fitted temperature. Set size; the library fills the rest. */
typedef struct cvy_calibration_result {
    size_t size;
    /** The logits are divided by it before they become probabilities. Above 1: the network was too sure. */
    double temperature;
    /** Samples it was fitted on. */
    int64_t samples;
    /** Negative log-likelihood, nats, and expected calibration error (15 bins) on these samples, with temperature 1 and
     * with the fitted one. */
    double nll_before, nll_after, ece_before, ece_after;
} cvy_calibration_result;
CVY_SIZED_STRUCT(cvy_calibration_result)

/**
 * cvy_run_calibrate - fit a temperature to the probabilities of a trained classifier
 * @run: a run folder; the checkpoint is the one that cvy_run_test() takes
 * @data: a data source with labels, which neither the training nor the test has seen; NULL: the validation data of the
 *        job (data.val)
 * @result_out: written on all ranks
 *
 * The temperature is the one with the least negative log-likelihood. It is kept in the run's calibration.json, for
 * this checkpoint: cvy_run_test(), cvy_run_predict(), `convoy export` and cvy_network_open() find it there. The class
 * with the largest probability stays the same. The result is the same to the bit on any number of ranks. Collective:
 * yes. Errors: as cvy_run_predict(), and CVY_E_CONFIG (no classes, no validation data), CVY_E_NUMERIC (an output is not
 * finite).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_calibrate(cvy_context *context, const char *run, const char *data,
                                                    cvy_calibration_result *result_out);

/**
 * cvy_run_checkpoint - the checkpoint of a run that cvy_run_test() and cvy_run_predict() take
 * @run: a run folder
 * @name_out: "step-00004500": the best one, or the newest valid one if the run has noted none as the best; the caller
 *            releases it with cvy_text_release()
 *
 * Checks the hashes of the checkpoint. Collective: no. Threads: any. Errors: CVY_E_IO (no run folder, no checkpoint),
 * CVY_E_FORMAT (damaged), CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_checkpoint(const char *run, char **name_out);

/** What cvy_run_predict() writes for each sample. */
typedef enum cvy_predict_what {
    /** The network's output as it is: for classes, logits or probabilities (cvy_network_output_kind()). */
    CVY_PREDICT_OUTPUTS,
    /** The probability of each class: the softmax of the logits, or the sigmoid of a single one, once, whether the
     * network ends with that function or not. For outputs each of which is a yes or no, and for maps of classes, the
     * probabilities have the shape of the output. */
    CVY_PREDICT_PROBABILITIES,
    /** The most probable classes, the best first. A .csv file has their names and probabilities, a .npy file their
     * numbers, a .h5 or .nc file numbers and probabilities. */
    CVY_PREDICT_CLASSES
} cvy_predict_what;

/** What to predict; zero-initialise, set size. Strings are borrowed for the call. Equal on all ranks. */
typedef struct cvy_predict_request {
    size_t size;
    /** The network, as cvy_network_open() takes it; required. */
    const char *target;
    /** The job of weights from another program; NULL: the one that the files hold. */
    const cvy_job_source *job;
    /** A data source, a path or a YAML map; labels are not needed; required unless @samples is given. A path, also in a
     * list, is read with the reader's options of the network's data.train (names of data sets, columns, shapes). */
    const char *data;
    /** The file, by its ending: .csv, a line for each sample; .npy, little-endian f32 [samples, shape of an output] or,
     * for classes, i32 [samples, top]; .h5, the same arrays as data sets with the names of the outputs; .nc, a NetCDF-4
     * file with them. Both have the axes and coordinates of the data if these have some. Required; written on rank 0,
     * whole or not at all. */
    const char *out;
    cvy_predict_what what;
    /** Number of classes that are written for each sample, with CVY_PREDICT_CLASSES; 0: 1. */
    int64_t top;
    /** 1: the first line of a .csv file has the names of the columns. */
    int header;
    /** 1: the first column of a .csv file, or the data set `sample` of a .h5 or .nc file, says which sample it is: file
     * and record, as messages name it. Without it these have the numbers of the samples. */
    int names;
    /** "layer1, layer2": the layers whose outputs are written; NULL: the network's main output. */
    const char *outputs;
    /** Of a network of Caffe, a .prototxt file: the .caffemodel file with its weights. */
    const char *weights;
    /** [nmember] Further networks, which make an ensemble with @target; or NULL. A folder that is not a run, here or as
     * @target, stands for the runs in it. */
    const char *const *member;
    int nmember;
    /** 2 or more: dropout stays active, and each network is applied so many times; 0: once, without dropout. */
    int64_t passes;
    /** 1: probabilities are those of the logits as they are; 0: of the logits divided by the temperature of the run. */
    int no_calibration;
    /** Instead of @data: the number of samples that a network draws which reads only random numbers, such as a
     * generator; 0: none. Sample i is always the same. */
    int64_t samples;
} cvy_predict_request;
CVY_SIZED_STRUCT(cvy_predict_request)

/**
 * cvy_run_predict - write what a trained network says to each sample of a data set, in the order of the data
 *
 * The result is the same to the bit on any number of ranks, and as from cvy_network_apply() on all samples at once. A
 * sample that data.on_bad_sample: skip leaves out has NaN for its outputs, and no class (an empty name, number -1).
 *
 * With an ensemble, or several passes with dropout, each sample has several answers. For numbers the mean of each
 * output is written, and then their standard deviations (with the divisor answers - 1), as further columns or as a data
 * set NAME_std. For classes it is the mean probability of each class, its entropy, and the mutual information of class
 * and answer (both in nats); with CVY_PREDICT_CLASSES the classes of the largest mean probabilities, and these two
 * numbers. Masks of dropout depend on the seed of the job, the pass and the number of the sample. Collective: yes.
 * Errors: as cvy_run_train(), and CVY_E_CONFIG (classes or probabilities of a network that has none, passes of a
 * network without dropout, networks that make no ensemble).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_predict(cvy_context *context, const cvy_predict_request *request);

CVY_END_DECLS
#endif
