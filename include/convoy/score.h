/*
 * convoy/score.h: how good a trained network is: its scores on labelled data, and its outputs on any data, as `convoy
 * test` and `convoy predict` give them.
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
} cvy_test_result;
CVY_SIZED_STRUCT(cvy_test_result)

/**
 * cvy_run_test - score a trained network on labelled data
 * @target: a run folder (its best checkpoint, or its newest if none is recorded as the best) or a .safetensors file
 * @job: the job of a .safetensors file; NULL for a run folder
 * @data: a data source (a path or a YAML map); NULL: the job's data.test
 * @result_out: written on rank 0; emptied on others
 *
 * The scores of a run folder are also written to its test.json. Collective: yes. Errors: as cvy_run_train(), and
 * CVY_E_ARGUMENT (size). After a fault the result is empty, or as it was if its size is refused.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_test(cvy_context *context, const char *target, const cvy_job_source *job,
                                               const char *data, cvy_test_result *result_out);
/** All scores, with curves and samples, as one JSON object; the caller releases the text with cvy_text_release().
 * Collective: no. Errors: CVY_E_ARGUMENT (an empty result), CVY_E_MEMORY. */
CVY_API CVY_MUST_CHECK cvy_status cvy_test_result_json(const cvy_test_result *result, char **text_out);
/** Releases the contents and empties the result, which may be empty already. Its size stays. Collective: no. */
CVY_API void cvy_test_result_release(cvy_test_result *result);

/**
 * cvy_run_checkpoint - the checkpoint of a run that cvy_run_test(), cvy_run_predict() and cvy_run_export() take
 * @run: a run folder
 * @name_out: "step-00004500": the best one, or the newest valid one if the run has noted none as the best; the caller
 *            releases it with cvy_text_release()
 *
 * Checks the hashes of the checkpoint. Collective: no. Threads: any. Errors: CVY_E_IO (no run folder, no checkpoint),
 * CVY_E_FORMAT (damaged), CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_checkpoint(const char *run, char **name_out);

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
