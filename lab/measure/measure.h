/*
 * measure.h: measurements and checks of networks and data without training: bench, time, check, plan.
 *
 * Texts that a call returns belong to the caller and are released with cvy_text_release(). Collective calls are made by
 * all ranks of the context with equal arguments; all ranks return the same status.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MEASURE_H
#define CVY_MEASURE_H

#include <convoy/job.h>

/** What a timed step consists of. */
typedef enum cvy_bench_mode {
    /** A step of training: forward, backward, reduction of the gradients over the ranks, update. */
    CVY_BENCH_TRAIN,
    /** The forward pass of an evaluation. */
    CVY_BENCH_FORWARD,
    /** Forward and backward with all gradients. Each rank works on its share of the batch by itself: no gradient is
     * reduced or applied, and nothing is sent. Batch normalisation takes its statistics within the rank. */
    CVY_BENCH_FORWARD_BACKWARD
} cvy_bench_mode;

/** What to time. Zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_bench_opts {
    size_t size;
    /** The job whose model, batch and optimiser are timed; NULL: the network that `model` names. */
    const cvy_job_source *job;
    /** A network of the zoo, and its options as YAML text or NULL; or the path of an ONNX file, which ends in .onnx. */
    const char *model;
    const char *model_options;
    /** Shape of a sample [C, positions...]; ndim 0: the network's own. */
    cvy_shape input;
    /** Number of outputs; 0: the network's own. */
    int64_t classes;
    /** Samples of the global batch; 0: the job's. */
    int64_t batch;
    /** What a step consists of; 0: CVY_BENCH_TRAIN. */
    cvy_bench_mode mode;
    /** Type of the activations. */
    cvy_dtype dtype;
    /** Number of timed steps; 0: as many as take `seconds`, at least 5. Number of steps before them; 0: 2. */
    int64_t steps, warmup;
    /** As in cvy_program_opts; NULL: the defaults. */
    const char *kernels, *passes_off;
    /** File for a Chrome trace of the last step, or NULL. */
    const char *trace;
    /** "estimate", "measure" or "patient"; NULL: the job's. */
    const char *planning;
    /** With `model`: keys of the job that it stands for, as in cvy_job_source. */
    const char *const *sets;
    int nsets;
    /** How long steps are timed if `steps` is 0; 0: 5 s. */
    double seconds;
    /** With kernels "clock" on one rank: 1: the axes of the job's grid (parallel.pipeline, tensor and spatial) are
     * those of later runs on simulated ranks. This rank has the whole network, and the times of the kernels of each
     * part are found too. `batch` is what the ranks that share samples or layers have together; 0: for each of them the
     * job's. */
    int foresee;
} cvy_bench_opts;
CVY_SIZED_STRUCT(cvy_bench_opts)

/** What cvy_run_bench() has measured. The caller sets size; a time in ms is the median over the timed steps. */
typedef struct cvy_bench_result {
    size_t size;
    /** The network's name, "cifar-convnet"; the global batch. */
    char model[128];
    int64_t batch;
    /** What a step consists of. */
    cvy_bench_mode mode;
    /** Type of the activations, and shape of a sample. */
    cvy_dtype dtype;
    cvy_shape input;
    /** Compute threads of each rank, and ranks. */
    int threads, ranks;
    /** Shards of the deterministic mode; 0: it is off. */
    int deterministic_shards;
    /** 1: steps only waited for measured times; nothing was computed, and there are no losses. */
    int by_clock;
    /** Samples of the global batch per second: over all timed steps, and in the fastest one. */
    double images_per_s, images_per_s_best;
    /** Time of a step on the slowest rank. */
    double ms_median, ms_mean, ms_sd, ms_best;
    /** Number of timed steps. */
    int64_t steps;
    /** 10^9 operations of a step, and per second. */
    double gflop, gflop_per_s;
    /** Speed of a matrix product on the same ranks in the same run, and the network's share of it; NaN: not measured.
     * f32 Winograd kernels do fewer operations than are counted, so the share may exceed 1. */
    double peak_gflop_per_s, peak_share;
    /** The update mode and comm.progress of the job. */
    char update[32], progress[16];
    /** Bytes that a rank sends in a step (docs/guide/speed.md says what the four times are). */
    double bytes_wire, exposed_comm_ms, hidden_comm_ms, wait_slowest_ms, spread_ms;
    /** Number of elements of all weights, and multiply-adds of one sample's forward pass. */
    int64_t parameters, macs;
    /** Loss of the very first step, and of the last one; NaN for CVY_BENCH_FORWARD. */
    double loss_first, loss_last;
    /** Memory: sum over the ranks, the largest rank, and the arena of rank 0. */
    double peak_rss_bytes, peak_rss_bytes_largest_rank;
    int64_t arena_bytes;
    /** Time to plan the step. */
    double plan_s;
    /** Predicted time of a step; NaN: the time of some kernel is not known. */
    double predicted_ms;
    /** Number of nodes; images_per_s by nodes and by ranks. */
    int nodes;
    double images_per_s_node, images_per_s_rank;
    /** Stages of the pipeline (1: there is none), and micro-batches of a step. */
    int pipeline, micro_batches;
    /** exposed_comm_ms by the axis of the process grid along which ranks wait, each on the rank with most of it; NaN:
     * no rank waits there, or the data axis has all ranks. */
    double exposed_data_ms, exposed_pipeline_ms, exposed_tensor_ms, exposed_spatial_ms;
    /** Share of a step in which a rank waits for other stages, mean over the ranks; and the share that was predicted
     * for forward and backward. NaN: no pipeline. */
    double bubble, bubble_predicted;
    /** The parts of a step in ms, means over steps and ranks, which add up to ms_mean: the kernels of the forward and
     * of the backward pass and of the update; exposed communication but for the wait for the slowest rank, which is
     * imbalance_ms; and the rest, between the instructions. */
    double forward_ms, backward_ms, update_ms, communication_ms, imbalance_ms, other_ms;
    /** Energy that the processors of all nodes have used for a sample, in J, with what other programs on them did; NaN:
     * the system does not tell it (RAPL). */
    double joules_per_image;
    /** Where rank 0 has computed, "opencl:0 NVIDIA H200"; "": on the host. */
    char device[192];
    /** What rank 0 takes of the memory of its device: arena, variables, feeds; NaN: it computes on the host. */
    double device_peak_bytes;
} cvy_bench_result;
CVY_SIZED_STRUCT(cvy_bench_result)

/**
 * cvy_run_bench - time steps on synthetic data, with the plan and executor of cvy_run_train()
 * @result_out: written on rank 0 only
 *
 * A model of the zoo is trained by SGD with momentum 0.9. Collective: yes. Errors: CVY_E_ARGUMENT, CVY_E_CONFIG (also
 * CVY_BENCH_FORWARD_BACKWARD of a deterministic job), CVY_E_SHAPE, CVY_E_MEMORY (how much is needed, and which batch
 * would fit). Another call may follow a fault.
 */
CVY_MUST_CHECK cvy_status cvy_run_bench(cvy_context *context, const cvy_bench_opts *opts, cvy_bench_result *result_out);
/** The result as one JSON object with a member for each field: deterministic_shards and predicted_ms only if there are
 * any, "mode" is "train", "forward" or "forward-backward", "kernels" if by_clock. Collective: no. Errors:
 * CVY_E_ARGUMENT (size), CVY_E_MEMORY. */
CVY_MUST_CHECK cvy_status cvy_bench_result_json(const cvy_bench_result *result, char **text_out);
/** The result as text, a line for each field. Collective: no. Errors: as cvy_bench_result_json(). */
CVY_MUST_CHECK cvy_status cvy_bench_result_lines(const cvy_bench_result *result, char **text_out);

/**
 * cvy_run_time - where the time of a step goes, layer by layer
 * @opts: as for cvy_run_bench()
 * @how: "table", "limit" (the least time that this machine allows for the step) or "json" (layers, totals by operator,
 * and each instruction of the plan)
 * @text_out: medians over the timed steps of rank 0; NULL on other ranks
 *
 * Collective: yes. Errors: as cvy_run_bench().
 */
CVY_MUST_CHECK cvy_status cvy_run_time(cvy_context *context, const cvy_bench_opts *opts, const char *how,
                                       char **text_out);

/** What cvy_run_check() has found. The caller sets size. Differences are relative, in the Euclidean norm. */
typedef struct cvy_check_result {
    size_t size;
    /** As in cvy_bench_result. */
    char model[128];
    int64_t batch;
    cvy_bench_mode mode;
    cvy_dtype dtype;
    cvy_shape input;
    int threads, ranks, deterministic_shards, by_clock;
    /** Kernels that the plain plan may use; how many nodes of each plan run on which, "native 12, reference 3". */
    char against[32], kernels[160], kernels_plain[160];
    /** Steps of each plan. */
    int steps;
    /** The loss of the last step with both plans. */
    double loss, loss_plain;
    /** Difference of the first step's loss, with its bound; difference of the later losses, which has no bound. */
    double difference_loss, bound_loss, difference_later_losses;
    /** Difference of all weights after the first step, and of the changes that this step has made to them. */
    double difference_weights, bound_weights, difference_change, bound_change;
    /** The weight whose change differs most. */
    double difference_change_worst;
    char worst_weight[128];
    /** 1: all differences are within their bounds. */
    int agrees;
} cvy_check_result;
CVY_SIZED_STRUCT(cvy_check_result)

/**
 * cvy_run_check - compare three training steps with those of a plain plan: all passes off, kernels of one kind
 * @opts: as for cvy_run_bench(); training steps only
 * @against: kernels of the plain plan: "direct" (NULL: all except Winograd), "native", "onednn" or "reference"
 * @result_out: written on rank 0 only
 *
 * Plans that disagree are not a fault of the call. Collective: yes. Errors: as cvy_run_bench(), and CVY_E_ARGUMENT for
 * a mode other than CVY_BENCH_TRAIN.
 */
CVY_MUST_CHECK cvy_status cvy_run_check(cvy_context *context, const cvy_bench_opts *opts, const char *against,
                                        cvy_check_result *result_out);
/** As cvy_bench_result_json() and cvy_bench_result_lines(). Collective: no. Errors: CVY_E_ARGUMENT, CVY_E_MEMORY. */
CVY_MUST_CHECK cvy_status cvy_check_result_json(const cvy_check_result *result, char **text_out);
CVY_MUST_CHECK cvy_status cvy_check_result_lines(const cvy_check_result *result, char **text_out);

/**
 * cvy_run_plan - the plan of a job, without training
 * @plan_file: a plan.json whose choices of kernels are used, or NULL
 * @how: "table" (layers, shapes, parameters, flop, memory to the byte), "summary" (the same without the layers),
 * "json", "text", "dot" or "explain"
 * @text_out: on rank 0; NULL on others
 *
 * Collective: yes. Errors: as cvy_run_train().
 */
CVY_MUST_CHECK cvy_status cvy_run_plan(cvy_context *context, const cvy_job_source *job, const char *plan_file,
                                       const char *how, char **text_out);

/** The plan of the step that cvy_run_bench() would time, without running it; @how as for cvy_run_plan(). Collective:
 * yes; the text is on rank 0. Errors: as cvy_run_bench(). */
CVY_MUST_CHECK cvy_status cvy_run_bench_plan(cvy_context *context, const cvy_bench_opts *opts, const char *how,
                                             char **text_out);

/** What cvy_run_bench_data() times. Zero-initialise, set size. Strings are borrowed for the call. */
typedef struct cvy_bench_data_opts {
    size_t size;
    /** The data set: a path, or a map in YAML. */
    const char *source;
    /** A list in YAML as data.augment of a job, or NULL. */
    const char *augment;
    /** Threads that read and decode; 0: as many as the affinity mask allows. */
    int threads;
    /** Samples of a batch; 0: 32, at most the data set. */
    int64_t batch;
    /** Time to measure, s; 0: 5. One round through the set comes before it, at most as long. */
    double seconds;
    /** The order, as data.shuffle of a job: "true" (NULL), "window" or "false". */
    const char *shuffle;
} cvy_bench_data_opts;
CVY_SIZED_STRUCT(cvy_bench_data_opts)

/** What cvy_run_bench_data() has measured. The caller sets size. */
typedef struct cvy_bench_data_result {
    size_t size;
    /** The source as given, cut off if it is longer; its format. */
    char data[512], format[32];
    /** Number of samples in the set; shape of a sample after augmentation. */
    int64_t samples;
    cvy_shape shape;
    /** The order, threads and batch that were used. */
    char shuffle[16];
    int threads;
    int64_t batch;
    /** Measured time, and number of samples read in it. */
    double seconds;
    int64_t images;
    /** Bytes of x are counted as they are stored, and as f32 after augmentation. */
    double images_per_s, stored_mb_per_s, output_mb_per_s;
} cvy_bench_data_result;
CVY_SIZED_STRUCT(cvy_bench_data_result)

/**
 * cvy_run_bench_data - how fast samples are read, decoded and augmented by background threads, without a network
 *
 * Collective: no. Errors: CVY_E_ARGUMENT, CVY_E_CONFIG, CVY_E_IO, CVY_E_FORMAT, CVY_E_SHAPE, CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_run_bench_data(const cvy_bench_data_opts *opts, cvy_bench_data_result *result_out);
/** As cvy_bench_result_json() and cvy_bench_result_lines(). Collective: no. Errors: CVY_E_ARGUMENT, CVY_E_MEMORY. */
CVY_MUST_CHECK cvy_status cvy_bench_data_result_json(const cvy_bench_data_result *result, char **text_out);
CVY_MUST_CHECK cvy_status cvy_bench_data_result_lines(const cvy_bench_data_result *result, char **text_out);

#endif
