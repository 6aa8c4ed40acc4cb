/*
 * convoy/score.h: what a trained network is worth: scores on labelled data, and its outputs on any data, as
 * `convoy test` and `convoy predict` do it.
 */
#ifndef CONVOY_SCORE_H
#define CONVOY_SCORE_H

#include <convoy/job.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A metric's value on the data. */
typedef struct cvy_test_metric {
    char name[48];
    double value;
} cvy_test_metric;

/** A method that tells two classes apart: the network, or a simpler one on the same data. Errors are standard errors;
 * a gain is the network's lead, with the error of the pair, and NaN for the network itself. */
typedef struct cvy_test_method {
    char name[64];
    /** Area under the ROC curve. */
    double area, area_error, area_gain, area_gain_error;
    /** Share of true positives at the false-positive rate at_fpr. */
    double at_fpr, efficiency, efficiency_error, efficiency_gain, efficiency_gain_error;
} cvy_test_method;

/** The scores of a network. The caller sets size, and releases what it holds by cvy_test_result_release(). */
typedef struct cvy_test_result {
    size_t size;
    /** "step-00004500", or "weights" for a .safetensors file; the data set's path or format. */
    char checkpoint[64], data[512];
    int64_t samples;
    /** NaN without losses; time of the pass, s. */
    double loss, seconds;
    /** In the order of the job, then those that a report shows. */
    int nmetric;
    const cvy_test_metric *metric;
    /** Classes by name; 0: none, or without names. */
    int nclass;
    const char *const *class_name;
    /** [nconfusion, nconfusion], rows are true classes, columns answers, in samples by weight; 0: not a classifier. */
    int nconfusion;
    const double *confusion;
    /** The network first, then simpler methods; 0: the data have none. */
    int nmethod;
    const cvy_test_method *method;
    /** All scores as one JSON object, as test.json has it. */
    const char *json;
    /** The library's. */
    void *owned;
} cvy_test_result;
CVY_SIZED_STRUCT(cvy_test_result)

/**
 * cvy_run_test - score a trained network on labelled data
 * @target: a run folder (its best checkpoint, or its newest if none is noted as the best) or a .safetensors file
 * @job: the job of a .safetensors file; NULL for a run folder
 * @data: a data source (a path or a YAML map); NULL: the job's data.test
 * @result_out: written on rank 0; emptied on others
 *
 * The scores of a run folder are also written to its test.json. Collective: yes. Errors: as cvy_run_train(), and
 * CVY_E_ARGUMENT (size).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_test(cvy_context *context, const char *target, const cvy_job_source *job,
                                               const char *data, cvy_test_result *result_out);
/** All scores, with curves and samples, as one JSON object; the caller releases the text with cvy_text_release().
 * Collective: no. Errors: CVY_E_ARGUMENT (an empty result), CVY_E_MEMORY. */
CVY_API CVY_MUST_CHECK cvy_status cvy_test_result_json(const cvy_test_result *result, char **text_out);
/** Empties the result, which may be empty already. */
CVY_API void cvy_test_result_release(cvy_test_result *result);

/**
 * cvy_run_predict - write the network's output for each sample of a data set
 * @target, @job: as for cvy_run_test()
 * @data: a data source; labels are not needed
 * @out: the file: .npy [samples, outputs] f32, or .csv; rows in the order of the data set
 *
 * Collective: yes. Errors: as cvy_run_train().
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_predict(cvy_context *context, const char *target, const cvy_job_source *job,
                                                  const char *data, const char *out);

#ifdef __cplusplus
}
#endif
#endif
