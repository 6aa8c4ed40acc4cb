/*
 * convoy/inspect.h: the runs below a folder, what a file holds, and whether checkpoints are valid.
 *
 * Texts that a call returns belong to the caller and are released with cvy_text_release().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_INSPECT_H
#define CONVOY_INSPECT_H

#include <convoy/base.h>

#ifdef __cplusplus
extern "C" {
#endif

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
CVY_API CVY_MUST_CHECK cvy_status cvy_run_summarize(const char *run, cvy_run_summary *summary_out);

/** The runs below a folder. The caller sets size, and releases the contents with cvy_run_list_result_release(); all
 * pointers in it are valid until then. */
typedef struct cvy_run_list_result {
    size_t size;
    /** [nruns], sorted by folder. */
    int nruns;
    const cvy_run_summary *run;
    /** [nunreadable]: folders that cannot be read, with the reason. */
    int nunreadable;
    const char *const *unreadable;
    /** Private to the library. A size that ends before this field is refused. */
    void *owned;
} cvy_run_list_result;
CVY_SIZED_STRUCT(cvy_run_list_result)

/**
 * cvy_run_list - find the runs below a folder
 * @folder: is searched, with its folders; it may be a run itself
 *
 * Folders of a run are not searched further, hidden folders and links to other folders not at all. Collective: no.
 * Errors: CVY_E_IO (no such folder), CVY_E_ARGUMENT (size), CVY_E_MEMORY. After a fault the result is as it was.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_list(const char *folder, cvy_run_list_result *result_out);
/** The list as one JSON object with the members "runs" and "unreadable". Collective: no. Errors: CVY_E_ARGUMENT (size),
 * CVY_E_MEMORY. */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_list_result_json(const cvy_run_list_result *result, char **text_out);
/** The list as a table, a line for each run. Collective: no. Errors: as cvy_run_list_result_json(). */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_list_result_lines(const cvy_run_list_result *result, char **text_out);
/** Releases the contents and empties the result, which may be empty already. Its size stays. Collective: no. */
CVY_API void cvy_run_list_result_release(cvy_run_list_result *result);

/**
 * cvy_run_inspect - what a data set, a checkpoint, a safetensors file or a run folder holds, as text
 * @statistics: 1: for a data set also the number of samples of each class, and mean, standard deviation and range of
 *              each channel or column of x and y; the whole set is read for this
 *
 * Collective: no. Errors: CVY_E_IO, CVY_E_FORMAT, CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_inspect(const char *path, int statistics, char **text_out);

/**
 * cvy_run_verify - check every hash of a run folder's checkpoints, of one checkpoint, or of a safetensors file
 * @damaged_out: number of damaged checkpoints, or of damaged safetensors files
 * @text_out: a line for each of them; damaged files and tensors are named
 *
 * Damage is not a fault of the call. Collective: no. Errors: CVY_E_IO (nothing there to check), CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_verify(const char *path, int *damaged_out, char **text_out);

#ifdef __cplusplus
}
#endif
#endif
