/*
 * files.h: the runs below a folder, what a file holds, whether checkpoints are valid; conversion between formats of
 * data and weights; job files that are made from data, from networks of the zoo and from solvers of Caffe; lists of
 * what this build knows.
 *
 * Texts that a call returns belong to the caller and are released with cvy_text_release().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_FILES_H
#define CVY_FILES_H

#include <convoy/job.h>

/** How a run stands. */
typedef enum cvy_run_state {
    /** Its STATUS is missing or damaged. */
    CVY_RUN_STATE_UNKNOWN,
    CVY_RUN_STATE_RUNNING,
    /** Before its end, with everything saved: it can be resumed. */
    CVY_RUN_STATE_STOPPED,
    CVY_RUN_STATE_FINISHED,
    /** Finished before its last step, by train.stop. */
    CVY_RUN_STATE_EARLY_STOP,
    CVY_RUN_STATE_FAILED,
    /** STATUS says "running", but no process holds the folder. */
    CVY_RUN_STATE_KILLED
} cvy_run_state;

/** A run in a few figures. The caller sets size. A real number that is not known is NaN. */
typedef struct cvy_run_summary {
    size_t size;
    /** The folder, as it was found. */
    char folder[512];
    cvy_run_state state;
    /** The reason of a failure or of an early stop, and which files are damaged; "": none. */
    char why[1280];
    /** Steps done, of the total; the same in epochs. 0: not known. */
    int64_t step, steps;
    double epoch, epochs;
    /** The score of checkpoint.best or train.stop, otherwise accuracy or loss: its name in metrics.jsonl,
     * "val_accuracy"; "": none. Its best value and the epoch of it, NaN: it was finite in no epoch; 1: a higher value
     * is better. */
    char metric[80];
    double best, best_epoch;
    int best_higher;
    /** Training loss, the mean over the last epoch that has ended; if there is none, of the latest logged step. */
    double last_loss;
    /** Samples per second of all ranks, over all logged steps. */
    double images_per_s;
    /** Time taken by all parts of the run, s; time left at this speed, only of a run that is running. */
    double seconds, left_s;
    /** 0: not known. */
    int nodes, ranks;
    /** The latest change of one of the run's files, s since 1970; 0: not known. */
    double changed;
} cvy_run_summary;
CVY_SIZED_STRUCT(cvy_run_summary)

/**
 * cvy_run_summarize - read the figures of a run from its folder
 * @run: the folder of a run, which may have ended or not
 *
 * Damaged files are named in `why` and are not a fault. Collective: no. Errors: CVY_E_IO (not the folder of a run),
 * CVY_E_ARGUMENT (size), CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_run_summarize(const char *run, cvy_run_summary *summary_out);

/** The runs below a folder. The caller releases it with cvy_run_list_result_release(); all pointers in it are valid
 * until then. */
typedef struct cvy_run_list_result {
    /** [nruns], sorted by folder. */
    int nruns;
    cvy_run_summary *run;
    /** [nunreadable]: folders that cannot be read, with the reason. */
    int nunreadable;
    char **unreadable;
    /** Of the texts. */
    struct cvy_pool *pool;
} cvy_run_list_result;

/**
 * cvy_run_list - find the runs below a folder
 * @folder: is searched, with its folders; it may be a run itself
 *
 * Folders of a run are not searched further, hidden folders and links to other folders not at all. Collective: no.
 * Errors: CVY_E_IO (no such folder), CVY_E_ARGUMENT (no name), CVY_E_MEMORY. After a fault the result is empty.
 */
CVY_MUST_CHECK cvy_status cvy_run_list(const char *folder, cvy_run_list_result *result_out);
/** The list as one JSON object with the members "runs" and "unreadable". Collective: no. Errors: CVY_E_MEMORY. */
CVY_MUST_CHECK cvy_status cvy_run_list_result_json(const cvy_run_list_result *result, char **text_out);
/** The list as a table, a line for each run. Collective: no. Errors: as cvy_run_list_result_json(). */
CVY_MUST_CHECK cvy_status cvy_run_list_result_lines(const cvy_run_list_result *result, char **text_out);
/** Releases the contents and empties the result, which may be empty already. Collective: no. */
void cvy_run_list_result_release(cvy_run_list_result *result);

/**
 * cvy_run_inspect - what a data set, a checkpoint, a safetensors file or a run folder holds, as text
 * @statistics: 1: for a data set also the number of samples of each class, and mean, standard deviation and range of
 *              each channel or column of x and y; the whole set is read for this
 *
 * Collective: no. Errors: CVY_E_IO, CVY_E_FORMAT, CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_run_inspect(const char *path, int statistics, char **text_out);

/**
 * cvy_run_verify - check every hash of a run folder's checkpoints, of one checkpoint, or of a safetensors file
 * @damaged_out: number of damaged checkpoints, or of damaged safetensors files
 * @text_out: a line for each of them; damaged files and tensors are named
 *
 * Damage is not a fault of the call. Collective: no. Errors: CVY_E_IO (nothing there to check), CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_run_verify(const char *path, int *damaged_out, char **text_out);

/* ---- conversion ---- */

/** What to convert, and into which format. Zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_convert_request {
    size_t size;
    /** The data set: a path, or a map in YAML: {path: ..., format: ..., options}. */
    const char *source;
    /** A folder that is new, empty, or holds the beginning of the same conversion. */
    const char *destination;
    /** "pack" (NULL), "tfrecord", "lmdb", "hdf5", "folder" ... */
    const char *format;
    /** Options of the format as YAML text, or NULL. */
    const char *options;
    /** Number of files; 0: chosen by the size of the data. */
    int64_t parts;
    /** Pictures are resized to this; 0: they stay as they are. */
    int64_t height, width;
    /** 1: pictures are not decoded to check whether they are valid. */
    int unchecked;
    /** 1: damaged samples are left out and counted; 0: they are faults. */
    int skip_bad;
    /** Called on rank 0 from time to time with the number of its own samples that are done, and of all its samples; or
     * NULL. */
    void (*progress)(void *user, int64_t done, int64_t of);
    /** Given to `progress`. */
    void *user;
} cvy_convert_request;
CVY_SIZED_STRUCT(cvy_convert_request)

/**
 * cvy_run_convert - write a data set in another format
 * @request: equal on all ranks
 * @report_out: one line: samples, classes, bytes, parts, damaged samples, time (rank 0; NULL on others); the caller
 *              releases it with cvy_text_release()
 *
 * Encoded pictures stay encoded, so nothing is lost and nothing grows. The parts are distributed over the ranks and do
 * not depend on their number. A conversion that was interrupted continues when it is requested again. Collective: yes.
 * Errors: CVY_E_CONFIG, CVY_E_IO, CVY_E_FORMAT, CVY_E_UNSUPPORTED (what the format cannot hold), CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_run_convert(cvy_context *context, const cvy_convert_request *request, char **report_out);

/**
 * cvy_run_export - write a run's weights and running statistics as one safetensors file, after checking the checkpoint
 * @run: the run folder
 * @which: "best", "step-1234", or NULL: the best one if one is recorded, else the newest valid one
 * @out: the file; it is written whole or not at all
 * @replace: 1: if the file exists already, it is replaced; 0: that is an error
 * @step_out: the training step of the checkpoint
 * @notes_out: a line for each newer checkpoint that is damaged and was skipped, or NULL; the caller releases it
 *             with cvy_text_release(). May be NULL itself
 *
 * Collective: no. Errors: CVY_E_IO (no such checkpoint; @out exists), CVY_E_FORMAT (damaged), CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_run_export(const char *run, const char *which, const char *out, int replace,
                                         int64_t *step_out, char **notes_out);

/** The data formats that this build reads and writes: two lines, "reads" and "writes", each followed by names. The
 * caller releases the text with cvy_text_release(). Collective: no. Errors: CVY_E_MEMORY. */
CVY_MUST_CHECK cvy_status cvy_run_formats(char **text_out);

/* ---- job files ---- */

/**
 * cvy_run_keys - all keys of the job file with types, defaults and help
 * @text_out: the text; the caller releases it with cvy_text_release()
 *
 * Collective: no. Threads: any. Errors: CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_run_keys(char **text_out);

/**
 * cvy_run_job_print - a job with all its defaults and overrides
 * @job: the job; borrowed
 * @as_json: 1: one line of JSON; 0: YAML, a job file again
 * @text_out: the text; the caller releases it with cvy_text_release()
 *
 * Data and model are not opened. Collective: no. Threads: any. Errors: as cvy_run_read_job().
 */
CVY_MUST_CHECK cvy_status cvy_run_job_print(const cvy_job_source *job, int as_json, char **text_out);

/**
 * cvy_run_new_job - a job with comments that trains a network on a data set
 * @source: a path, or a map in YAML: {path: ..., format: ..., options}; of a folder with train and val or test in it,
 *          these are used
 * @task: "classify", "regress" or "segment"; NULL: classify if samples have labels, segment if targets are maps of
 *        labels, else regress
 * @text_out: the job, with a network, batch, augmentation, normalisation and a split for validation that suit the data.
 *            The caller releases it with cvy_text_release()
 *
 * Some samples are read. Collective: no. Errors: CVY_E_ARGUMENT (task), CVY_E_CONFIG (the data do not fit the task, or
 * have nothing to learn), CVY_E_IO, CVY_E_FORMAT, CVY_E_UNSUPPORTED, CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_run_new_job(const char *source, const char *task, char **text_out);

/** Options of cvy_run_import(); zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_import_opts {
    size_t size;
    /** A caffemodel whose weights are written, too; NULL: none. */
    const char *weights;
    /** The folder for the files, which is made if it does not exist; NULL: the current one. */
    const char *out;
    /** 1: replace files that exist. */
    int replace;
    /** As cvy_job_source.caffe_input. */
    cvy_shape input;
} cvy_import_opts;
CVY_SIZED_STRUCT(cvy_import_opts)

/**
 * cvy_run_import - write a solver or a network of Caffe as a job
 * @path: the text of a solver, or of a network (.prototxt)
 * @opts: NULL for the defaults
 * @text_out: what was written and decided, a sentence a line. The caller releases it with cvy_text_release()
 *
 * Writes job.yaml, with comments, and with opts->weights weights.safetensors, which the job then begins with. The job
 * is that of cvy_job_source.caffe. Collective: no. Errors: CVY_E_ARGUMENT (size), CVY_E_IO (also a file that exists),
 * CVY_E_FORMAT, CVY_E_CONFIG (a value of the solver), CVY_E_UNSUPPORTED (layers or data that convoy does not have, all
 * of them with their lines), CVY_E_SHAPE (weights of another network), CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_run_import(const char *path, const cvy_import_opts *opts, char **text_out);

/**
 * cvy_run_model_job - a job with all layers of a network of the zoo, to change them
 * @name: "resnet-50"
 * @text_out: the job, which trains on generated samples. The caller releases it with cvy_text_release()
 *
 * Auxiliary heads are left out. Collective: no. Errors: CVY_E_CONFIG or CVY_E_ARGUMENT (no such network: the nearest is
 * named), CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_run_model_job(const char *name, char **text_out);

/* ---- lists ---- */

/** All networks of the zoo as lines of text: name, summary, options. The caller releases the text by
 * cvy_text_release(). Collective: no. Errors: CVY_E_MEMORY. */
CVY_MUST_CHECK cvy_status cvy_models_list(char **text_out);
/** All operators that a layer may name, in the same form and with the same ownership. Collective: no. Errors:
 * CVY_E_MEMORY. */
CVY_MUST_CHECK cvy_status cvy_layers_list(char **text_out);

#endif
