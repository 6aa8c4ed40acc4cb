/*
 * convoy/run.h: whole runs from a job file, as the command makes them: train, test, predict, bench, time, plan, doctor; job files; data: convert, inspect; the report.
 *
 * Each call is what the command's verb of the same name does, so a C program can do all that the command can. Texts that a call returns are released
 * with cvy_text_release(). Collective calls are made by all ranks of the context with equal arguments; all return the same status.
 */
#ifndef CONVOY_RUN_H
#define CONVOY_RUN_H

#include <convoy/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where a run stands; given to the progress callback on rank 0 after a step. */
typedef struct cvy_progress {
    size_t size;
    int64_t step, steps;          /* done, of */
    double epoch, epochs;
    double loss;                  /* of the latest logged step; NaN before the first */
    double images_per_s;          /* over the latest steps */
    double elapsed_s, left_s;
    const char *event;            /* NULL: a step; else a sentence: "epoch 3: train loss ..., val accuracy ...", "checkpoint saved" */
} cvy_progress;
typedef void (*cvy_progress_fn)(void *user, const cvy_progress *progress);

/** Where a job comes from and what overrides it. Zero-initialise, set size. */
typedef struct cvy_job_source {
    size_t size;
    const char *path;             /* a YAML file; NULL: text */
    const char *text;             /* the job itself; its name in messages is "job" */
    const char *const *sets;      /* "train.batch=64": override keys, in order */
    int nsets;
} cvy_job_source;

/** What the world tells a run while it goes on. Signal handlers and other threads set it, on any rank; the run looks before each step. Zero-initialise. */
typedef struct cvy_train_orders {
    volatile int stop;            /* save behind the step at hand, on all ranks, and return CVY_STOPPED */
    volatile int save;            /* save behind it, and go on; the run sets it back to 0 */
    volatile int heard;           /* set by the run: all ranks know that they stop, and are about to save */
    volatile double step_s;       /* set by the run: the longest time between two of its looks so far, s */
} cvy_train_orders;

typedef struct cvy_train_opts {
    size_t size;
    const char *out;              /* run folder; NULL: runs/<job>-NNN, the next free number */
    int resume;                   /* go on in `out` from its newest sound checkpoint */
    const char *plan_file;        /* take kernels from this plan.json */
    cvy_train_orders *orders;     /* may be NULL */
    double end_time;              /* when the allocation ends, s since 1970 (rank 0's counts): the run saves and stops in time. 0: no limit */
    cvy_progress_fn progress;
    void *user;
} cvy_train_opts;

typedef struct cvy_train_result {
    char out[512];                /* the run folder */
    int64_t steps;
    double seconds, train_loss, val_loss;   /* NaN where there is none */
} cvy_train_result;

/** What a job file asks for, as far as it is known without its data. */
typedef struct cvy_job_about {
    char name[256];               /* the job's own; longer ones are cut off */
    int64_t batch;                /* global */
    int64_t workers;              /* ranks that share it: all but parameter servers */
} cvy_job_about;

/**
 * cvy_run_read_job - check a job file for a training on so many ranks, before there are any
 *
 * Data and model are not looked at. Collective: no. Errors: CVY_E_IO, CVY_E_CONFIG with file, line and column, also where a rank would have no sample of a batch.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_read_job(const cvy_job_source *job, int nranks, cvy_job_about *out);

/**
 * cvy_run_train - train what a job file describes, into a run folder
 *
 * Writes job.resolved.yaml, plan.json, metrics.jsonl, checkpoints/ and STATUS; cvy_report_write() makes the page of them. Collective: yes.
 * Errors: CVY_E_CONFIG, CVY_E_IO (an existing folder without resume; a disk that is full), CVY_E_FORMAT (data), CVY_E_SHAPE, CVY_E_DISAGREE (ranks were
 * started with different jobs), CVY_E_COMM, CVY_E_MEMORY, CVY_STOPPED (as ordered, or the allocation ends; all is saved).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_train(cvy_context *context, const cvy_job_source *job, const cvy_train_opts *opts, cvy_train_result *result_out);

/**
 * cvy_run_test - score a trained network on labelled data
 * @target: a run folder (its best checkpoint, else its newest) or a .safetensors file (then @job is needed)
 * @job: NULL for a run folder
 * @data: a data source (path or YAML map), or NULL for the job's data.test
 * @json_out: all scores as one JSON object (rank 0; NULL on others)
 *
 * For a run folder the scores are also written to test.json. Collective: yes. Errors: as cvy_run_train().
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_test(cvy_context *context, const char *target, const cvy_job_source *job, const char *data, char **json_out);

/** Writes the network's output for each sample of @data, in its order, labels not needed, to @out: .npy [N, K] f32 or .csv. As cvy_run_test() otherwise. */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_predict(cvy_context *context, const char *target, const cvy_job_source *job, const char *data, const char *out);

/** What to time. Zero-initialise, set size. */
typedef struct cvy_bench_opts {
    size_t size;
    const cvy_job_source *job;    /* its model, batch and optimiser; or NULL and: */
    const char *model;            /* a network of the zoo */
    const char *model_options;    /* YAML text or NULL */
    cvy_shape input;              /* ndim 0: the network's own */
    int64_t classes;              /* 0: the network's own */
    int64_t batch;                /* global; 0: the job's */
    int forward;                  /* 1: forward only */
    cvy_dtype dtype;
    int64_t steps, warmup;        /* timed steps, 0: as many as take 5 s, at least 5; steps before them, 0: 2 */
    const char *kernels, *passes_off;
    const char *trace;            /* file for a Chrome trace of the last step, or NULL */
    const char *planning;         /* "estimate", "measure" or "patient"; NULL: the job's */
    const char *const *sets;      /* with model: keys of the job that it stands for, as in cvy_job_source */
    int nsets;
} cvy_bench_opts;

/**
 * cvy_run_bench - time training or forward steps on synthetic data, with the plan and executor of cvy_run_train() (SGD, momentum 0.9)
 * @json_out: one JSON object (rank 0; NULL on others): model batch mode dtype threads ranks; images_per_s (mean) images_per_s_best ms_median ms_mean ms_sd
 *            update bytes_wire exposed_comm_ms hidden_comm_ms wait_slowest_ms spread_ms (docs/timing.md); parameters, macs (multiply-adds of a sample's forward pass); gflop_per_s and peak_share, its share of a matrix product's
 *            speed on the same ranks in the same run (f32 Winograd does fewer operations than are counted, so it may pass 1); loss_first loss_last;
 *            peak_rss_bytes (sum over the ranks), arena_bytes; predicted_ms where the times of all kernels are known
 *
 * Collective: yes. Errors: CVY_E_CONFIG, CVY_E_SHAPE, CVY_E_MEMORY (what is needed and what batch would fit); another call may follow a fault.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_bench(cvy_context *context, const cvy_bench_opts *opts, char **json_out);

/**
 * cvy_run_time - where a step's time goes, layer by layer; arguments and steps as cvy_run_bench()
 * @how: "table" or "json" (layers, totals by operator, and each instruction of the plan)
 * @text_out: medians over the timed steps, of rank 0 (NULL on others)
 *
 * Collective: yes. Errors: as cvy_run_bench().
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_time(cvy_context *context, const cvy_bench_opts *opts, const char *how, char **text_out);

/**
 * cvy_run_check - compare three training steps with those of the plain plan: every pass off, one kind of kernels
 * @against: "direct" (NULL: all but Winograd), "native", "onednn" or "reference": the plain plan's kernels
 * @json_out: relative differences of the first step: its loss, all weights, and their change, each with its bound; of the later losses; "agrees" (rank 0; NULL on others)
 *
 * That the plans disagree is no fault of the call. Collective: yes. Errors: as cvy_run_bench(), CVY_E_ARGUMENT for forward steps.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_check(cvy_context *context, const cvy_bench_opts *opts, const char *against, char **json_out);

/** The plan of a job without training: @how "table" (layers, shapes, parameters, flop, memory to the byte), "json", "text", "dot" or "explain". Collective: yes; text on rank 0. */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_plan(cvy_context *context, const cvy_job_source *job, const char *plan_file, const char *how, char **text_out);

/** The plan of a step that cvy_run_bench() would time, without running it; @how as cvy_run_plan(). Collective: yes; text on rank 0. Errors: as cvy_run_bench(). */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_bench_plan(cvy_context *context, const cvy_bench_opts *opts, const char *how, char **text_out);

/** What cvy_run_bench_data() times. Zero-initialise, set size. */
typedef struct cvy_bench_data_opts {
    size_t size;
    const char *source;           /* a path, or a map in YAML */
    const char *augment;          /* a list in YAML as data.augment, or NULL */
    int threads;                  /* that read and decode; 0: as many as the affinity mask allows */
    int64_t batch;                /* 0: 32, at most the data set */
    double seconds;               /* 0: 5; before them comes one round through the set, at most as long */
    const char *shuffle;          /* the order, as data.shuffle: "true" (also NULL), "window" or "false" */
} cvy_bench_data_opts;

/**
 * cvy_run_bench_data - how fast samples come: read, in random order if not told otherwise, decoded and augmented by background threads as in training, without a network
 * @json_out: one JSON object: data format samples shape shuffle threads batch seconds images; images_per_s, stored_mb_per_s (bytes of x as they are stored),
 *            output_mb_per_s (f32 after augmentation)
 *
 * Collective: no. Errors: CVY_E_CONFIG, CVY_E_IO, CVY_E_FORMAT, CVY_E_SHAPE, CVY_E_MEMORY.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_bench_data(const cvy_bench_data_opts *opts, char **json_out);

/** A machine that is not there, for a simulation. Zero-initialise, set size. */
typedef struct cvy_platform_opts {
    size_t size;
    const char *file;             /* YAML: topology, links, what a node does (docs/simulate.md); or NULL: */
    const char *name, *text;      /* its text, and what messages call it */
    const char *model;            /* a network whose rate is looked for, or NULL */
    double latency_factor, bandwidth_factor;   /* on those of all links; 0: 1 */
} cvy_platform_opts;

typedef struct cvy_platform {
    int64_t nodes;                /* hosts node0, node1 ..: one rank each */
    double images_per_s;          /* that a node trains the network with; 0: the file does not say */
    double gflop_per_s;           /* ... and any other network */
    double add_bytes_per_s;       /* of sums */
    int64_t cores;                /* of a node */
    double message_s;             /* that a node is busy with a message */
    char summary[160];
    char *xml;                    /* a platform of SimGrid; released with cvy_text_release() */
} cvy_platform;

/** cvy_run_platform - read a platform file and write it as SimGrid reads it. Collective: no. Errors: CVY_E_IO, CVY_E_CONFIG with file, line and column. */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_platform(const cvy_platform_opts *opts, cvy_platform *out);

/** What cvy_run_doctor() measures. Zero-initialise, set size. */
typedef struct cvy_doctor_opts {
    size_t size;
    const char *max;              /* the longest sum, such as "64MiB"; NULL: 256 MiB */
    double seconds;               /* for all measurements, about; longer sums are left out where they do not fit. 0: 30 */
    const char *out;              /* folder in which files are tried, with up to 64 MiB; NULL: the current one */
} cvy_doctor_opts;

/**
 * cvy_run_doctor - what the ranks run on and how fast their network is, and what of that is wrong
 * @how: "table" or "json"
 * @text_out: nodes, ranks, threads, cores and binding; the MPI library; clocks; the file system, as rank 0 writes to it and all ranks see it; alpha and beta of single messages, inside a node and between nodes; sums from 1 KiB on by every
 *            way there is, checked and timed, the one marked that a training takes (comm.algorithm: auto); findings (rank 0; NULL on others)
 *
 * A finding is no fault of the call, and neither is a folder that cannot be written. Nothing is left in it. Needs memory for the longest sum on each rank. Collective: yes. Errors: CVY_E_ARGUMENT, CVY_E_MEMORY, CVY_E_COMM.
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_doctor(cvy_context *context, const cvy_doctor_opts *opts, const char *how, char **text_out);

/** What to convert into what. Zero-initialise, set size. */
typedef struct cvy_convert_request {
    size_t size;
    const char *source;           /* a path, or a map in YAML: {path: ..., format: ..., options} */
    const char *destination;      /* a folder that is new, empty, or holds the beginning of the same conversion */
    const char *format;           /* "pack" (also NULL), "tfrecord", "lmdb", "hdf5", "folder" ... */
    const char *options;          /* the format's own, YAML text; or NULL */
    int64_t parts;                /* files; 0: as the size asks for */
    int64_t height, width;        /* pictures are resized to it; 0: as they are */
    int unchecked;                /* 1: pictures are not decoded to see whether they are sound */
    int skip_bad;                 /* 1: damaged samples are left out and counted; 0: they are faults */
    void (*progress)(void *user, int64_t done, int64_t of);    /* rank 0, now and then, of its own samples; or NULL */
    void *user;
} cvy_convert_request;

/**
 * cvy_run_convert - write a data set in another format
 * @report_out: a line: samples, classes, bytes, parts, damaged samples, time (rank 0; NULL on others)
 *
 * Encoded pictures stay encoded, so nothing is lost and nothing grows. The parts are dealt out over the ranks and do not depend on their number. A
 * conversion that was cut off goes on where it was when it is asked for again. Collective: yes. Errors: CVY_E_CONFIG, CVY_E_IO, CVY_E_FORMAT,
 * CVY_E_UNSUPPORTED (what the format cannot hold).
 */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_convert(cvy_context *context, const cvy_convert_request *request, char **report_out);
/** Says what a data set, a checkpoint, a safetensors file or a run folder holds, as text. @statistics: of a data set also the samples of each class, mean,
 * standard deviation and range of each channel, for which all of it is read. Collective: no. Errors: CVY_E_IO, CVY_E_FORMAT. */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_inspect(const char *path, int statistics, char **text_out);
/** Checks every hash of a run folder's checkpoints, of one of them, or of a safetensors file of convoy's: a line each, files and tensors that are damaged
 * named. @damaged_out: how many are. Collective: no. Errors: CVY_E_IO (nothing there to check), CVY_E_MEMORY; that something is damaged is none. */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_verify(const char *path, int *damaged_out, char **text_out);
/** Writes a run's weights and running statistics as one safetensors file, after checking the checkpoint. @which: "best", "step-1234", or NULL: the best one if the
 * run has noted one, else the newest sound one. @notes_out: a line for each newer one that is damaged and was passed over, or NULL; release it by cvy_text_release(); @notes_out may be NULL.
 * Collective: no. Errors: CVY_E_IO (no such checkpoint; @out exists), CVY_E_FORMAT (damaged), CVY_E_MEMORY. */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_export(const char *run, const char *which, const char *out, int64_t *step_out, char **notes_out);
/** Writes the ten classic features of each event of a collider data set to @file as comma-separated text, a head line first. Collective: no. Errors: CVY_E_ARGUMENT for other data, CVY_E_IO. */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_features(const char *source, const char *file);
/** All keys of the job file with types, defaults and help, as text. */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_keys(char **text_out);
/** The data formats that this build reads and writes: two lines, "reads" and "writes", each with the names behind it. */
CVY_API CVY_MUST_CHECK cvy_status cvy_run_formats(char **text_out);

#ifdef __cplusplus
}
#endif
#endif
