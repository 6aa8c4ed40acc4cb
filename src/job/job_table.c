/*
 * job_table.c: the option tables: one row for each key of the job file. Keys that are options of a program have their
 * rows in program/program_options.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "job/job_table.h"

/* Where the options of the program that belong to the section stand among its rows. */
#define PROGRAM_ROWS                                                                                                   \
    {                                                                                                                  \
        "", CVY_TYPE_TREE, 0, "", "", "", ""                                                                           \
    }
#define DATA(field) offsetof(cvy_job, data.field)
#define TRAIN(field) offsetof(cvy_job, train.field)

const cvy_option cvy_job_top_rows[] = {
    {"name", CVY_TYPE_STRING, CVY_FIELD(cvy_job, name), "", "", "",
     "name of the run's folder; by default the name of the job file"},
    {"model", CVY_TYPE_TREE, CVY_FIELD(cvy_job, model), NULL, "", "",
     "the network: a name from `convoy models`, a map {name: ..., options}, a map with `layers`, or a file of another "
     "program: {onnx: FILE}, {caffe: FILE} (docs/reference/caffe-layers.md)"},
    {"libraries", CVY_TYPE_TREE, CVY_FIELD(cvy_job, libraries), "", "", "",
     "shared libraries of your own operators, such as [mine.so]; paths are relative to the folder of the job file. "
     "Their code runs in every process of the job: docs/guide/extend.md"},
    {"device", CVY_TYPE_STRING, CVY_FIELD(cvy_job, device), "", "", "",
     "what computes: host (the processor, the default), cuda or opencl for a GPU by this driver, cuda:1 for the one of "
     "this number, or auto for a GPU if there is one; without a number the ranks of a node take its devices in turns: "
     "docs/guide/gpu.md"},
    {"deterministic", CVY_TYPE_BOOL, CVY_FIELD(cvy_job, deterministic), "false", "", "",
     "the same bits on any number of ranks and threads, and with any MPI library; docs/internals/determinism.md says "
     "what it costs"},
    PROGRAM_ROWS,
    {"update", CVY_TYPE_TREE, CVY_FIELD(cvy_job, update_tree), "sync", "", "",
     "how ranks update the weights: sync (all together, every step), or another mode by name or as a map, see below"},
    {0},
};

static const cvy_option data_rows[] = {
    {"train", CVY_TYPE_TREE, DATA(train), NULL, "", "",
     "training data: a path, a map {path: ..., format: ..., range: ..., limit: ..., options of the reader}, or a list "
     "of these, which are concatenated"},
    {"val", CVY_TYPE_TREE, DATA(val), "", "", "",
     "validation data: a source like `train`, or the share of `train` to set aside: 10% or 0.1, drawn by class and "
     "seed; or a map that says which samples: {share: 20%, group: patient}, {last: 10%}, see below"},
    {"test", CVY_TYPE_TREE, DATA(test), "", "", "",
     "test data: a source like `train`; it never selects anything; without `val` it is scored after every epoch"},
    {"roles", CVY_TYPE_TREE, DATA(roles), "", "", "",
     "what targets are, so that they move with x under `augment`: {y: field}, or label_map, point, vector, none; "
     "points and vectors have an order: {y: {role: vector, order: x_y}}; {x: {role: vector, order: x_y, components: "
     "[u10, v10]}}: these channels of x turn with the picture; {x: target}: the output imitates x, as those of a "
     "generator or an autoencoder do, and predictions and scores have the units that x has before `augment`"},
    {"augment", CVY_TYPE_TREE, DATA(augment), "", "", "",
     "list of operations on each sample, in order, such as [{random_crop: {pad: 4}}, mirror]"},
    {"normalize", CVY_TYPE_TREE, DATA(normalize), "", "", "",
     "normalisation of x after `augment`: auto uses mean and standard deviation of each channel of the training data, "
     "{mean: [...], std: [...]} those given, none turns it off"},
    {"normalize_targets", CVY_TYPE_TREE, DATA(normalize_targets), "", "", "",
     "normalisation of targets that are numbers, undone in predictions and scores: auto uses mean and standard "
     "deviation of each number, or channel of a map, of the training data; {mean: [...], std: [...]} those given; none "
     "turns it off"},
    {"normalize_samples", CVY_TYPE_INT, DATA(normalize_samples), "50000", "0..", "samples",
     "how many samples `auto` of the normalisations reads, drawn by seed if there are more; 0: all"},
    {"shuffle", CVY_TYPE_STRING, DATA(shuffle_text), "true", "", "",
     "a new order every epoch: true over all samples, window within windows of neighbouring ones (for storage that is "
     "slow in random order), or false"},
    {"window", CVY_TYPE_INT, DATA(window), "0", "0..", "samples",
     "with shuffle: window, the number of samples of a block, which stay together, with 16 blocks in a window; 0: the "
     "format's own block, or 256"},
    {"balance", CVY_TYPE_CHOICE, DATA(balance), "none", "none|class", "",
     "class draws every class equally often; an epoch is as long as before, samples of rare classes repeat, and some "
     "of frequent ones are left out"},
    {"tail", CVY_TYPE_CHOICE, DATA(tail), "keep", "keep|drop", "", "whether an epoch's last, smaller batch is used"},
    {"on_bad_sample", CVY_TYPE_CHOICE, DATA(on_bad_sample), "fail", "fail|skip", "",
     "what to do with a sample that cannot be read: stop, or count it and continue without it"},
    {"threads", CVY_TYPE_STRING, DATA(threads_text), "auto", "", "",
     "threads that read and decode: a number, or auto for the cores that the compute threads leave, at least one; 0 "
     "does the work inside the step"},
    {"prefetch", CVY_TYPE_INT, DATA(prefetch), "2", "1..1024", "steps", "steps kept ready ahead of the training"},
    {"cache", CVY_TYPE_CHOICE, DATA(cache), "none", "none|memory|decoded", "",
     "keep samples in memory as they are stored (memory) or with pictures decoded (decoded), while there is room"},
    {"cache_limit", CVY_TYPE_INT, DATA(cache_limit), "0", "0..", "bytes",
     "room for `cache` on each rank; 0: half of the node's free memory, shared by its ranks"},
    {"stage", CVY_TYPE_STRING, DATA(stage), "", "", "",
     "folder on each node, such as a local disk or /dev/shm: the files of `train` and `val` are copied there first, by "
     "all ranks of the node, and read from there"},
    {"sandbox", CVY_TYPE_STRING, DATA(sandbox), "auto", "", "",
     "read HDF5 files by libhdf5 in a process of its own, which a damaged file may crash without the run: true, false, "
     "or auto for true if that process can be started"},
    {0},
};

static const cvy_option train_rows[] = {
    {"batch", CVY_TYPE_INT, TRAIN(batch), "", "1..", "samples",
     "global batch, split over the ranks; 128 if neither this nor batch_per_rank is given"},
    {"batch_per_rank", CVY_TYPE_INT, TRAIN(batch_per_rank), "", "1..", "samples",
     "batch of each rank, instead of `batch`; results then depend on the number of ranks"},
    {"epochs", CVY_TYPE_REAL, TRAIN(epochs), "", ">0", "",
     "passes over the training data; 1 if neither this nor steps is given"},
    {"steps", CVY_TYPE_INT, TRAIN(steps), "", "1..", "", "updates of the weights, instead of `epochs`"},
    PROGRAM_ROWS,
    {"optimizer", CVY_TYPE_TREE, TRAIN(optimizer_tree), "sgd", "", "", "a name or a map, see below"},
    {"schedule", CVY_TYPE_TREE, TRAIN(schedule), "constant", "", "",
     "how the learning rate changes: a name or a map {name: ..., warmup: ..., options}"},
    {"lr_rule", CVY_TYPE_CHOICE, TRAIN(lr_rule), "none", "none|linear|sqrt", "",
     "how the learning rate follows the global batch: multiplied by batch / base_batch (linear), or by its square root "
     "(sqrt); a warm-up then begins at the rate for base_batch"},
    {"base_batch", CVY_TYPE_INT, TRAIN(base_batch), "", "1..", "samples",
     "with an lr_rule, the global batch for which the optimiser's lr is given; 256 by default"},
    {"loss", CVY_TYPE_TREE, TRAIN(loss_tree), "", "", "",
     "a name, a map or a list of maps, see below; by default softmax_cross_entropy for classes, mse for numbers"},
    {"accumulate", CVY_TYPE_INT, TRAIN(accumulate), "1", "1..4096", "",
     "number of micro-batches of a step; their gradients are added, which saves memory"},
    {"clip_norm", CVY_TYPE_REAL, TRAIN(clip_norm), "0", "0..", "",
     "largest norm of the gradient over all weights; larger ones are scaled down; 0 is off"},
    {"clip_value", CVY_TYPE_REAL, TRAIN(clip_value), "0", "0..", "",
     "largest element of a gradient; larger ones are clipped; 0 is off"},
    {"l1", CVY_TYPE_REAL, TRAIN(l1), "0", "0..", "",
     "factor of an L1 norm of the weights: the gradient of a weight gets this much, with the weight's sign; for the "
     "weights that decay_on names, and with the decay_mult of their group; 0 is off"},
    {"groups", CVY_TYPE_TREE, TRAIN(groups_tree), "", "", "",
     "list of groups of weights with rates of their own, see below"},
    {"turns", CVY_TYPE_TREE, TRAIN(turns_tree), "", "", "",
     "list of trainings that a step takes one after the other, each of its own weights by its own losses, see below"},
    {"init", CVY_TYPE_TREE, TRAIN(init_tree), "", "", "",
     "weights to start from: a safetensors file, the folder of a run, or a map, see below"},
    {"metrics", CVY_TYPE_TREE, TRAIN(metrics_tree), "", "", "",
     "list of names or maps {name: ..., options}, or none; the default depends on the data"},
    {"validate_every", CVY_TYPE_INT, TRAIN(validate_every), "0", "0..", "steps",
     "how often the validation data are scored within an epoch, too, for the log; 0: at the end of an epoch only"},
    {"stop", CVY_TYPE_TREE, TRAIN(stop_tree), "", "", "", "when to stop before the end, see below"},
    {0},
};

const cvy_option cvy_job_optimizer_rows[] = {
    {"name", CVY_TYPE_STRING, CVY_FIELD(cvy_job_optimizer, name), NULL, "", "", "the optimiser"},
    {"lr", CVY_TYPE_REAL, CVY_FIELD(cvy_job_optimizer, lr), "", ">0", "",
     "learning rate before the schedule; by default 0.001 for adam, adamw and lamb, 1 for lars, otherwise 0.01"},
    {"decay_on", CVY_TYPE_CHOICE, CVY_FIELD(cvy_job_optimizer, decay_on), "weights", "weights|all", "",
     "what weight_decay applies to: weights without biases and norms, or all trained variables"},
    {0},
};

const cvy_option cvy_job_turn_optimizer_rows[] = {
    {"name", CVY_TYPE_STRING, CVY_FIELD(cvy_job_optimizer, name), NULL, "", "", "the optimiser"},
    {"lr", CVY_TYPE_REAL, CVY_FIELD(cvy_job_optimizer, lr), "", ">0", "",
     "learning rate before the schedule, which has the form of that of train.optimizer"},
    {0},
};

#define LOSS(field) offsetof(cvy_job_loss, field)

const cvy_option cvy_job_loss_rows[] = {
    {"name", CVY_TYPE_STRING, LOSS(name), NULL, "", "", "the loss"},
    {"output", CVY_TYPE_STRING, LOSS(output), "", "", "",
     "output of the model that the loss reads; by default the main one"},
    {"target", CVY_TYPE_STRING, LOSS(target), "", "", "",
     "field of the data with the true values; by default the first after the input"},
    {"weight", CVY_TYPE_REAL, LOSS(weight), "1", "", "", "factor in the sum of the losses"},
    {0},
};

const cvy_option cvy_job_metric_rows[] = {
    {"name", CVY_TYPE_STRING, offsetof(cvy_job_metric, name), NULL, "", "", "the metric"},
    {0},
};

#define GROUP(field) offsetof(cvy_job_group, field)

const cvy_option cvy_job_group_rows[] = {
    {"match", CVY_TYPE_STRING, GROUP(match), NULL, "", "",
     "pattern of weight names with * and ?, such as conv*.bias, or several with commas; the first group that matches a "
     "weight is used, and one that gets no weight is refused"},
    {"lr_mult", CVY_TYPE_REAL, GROUP(lr_mult), "1", "0..", "", "factor on the learning rate"},
    {"decay_mult", CVY_TYPE_REAL, GROUP(decay_mult), "1", "0..", "", "factor on the weight decay"},
    {"frozen", CVY_TYPE_BOOL, GROUP(frozen), "false", "", "", "do not train these weights"},
    {0},
};

#define TURN(field) offsetof(cvy_job_turn, field)

const cvy_option cvy_job_turn_rows[] = {
    {"losses", CVY_TYPE_TREE, TURN(losses_tree), "", "", "",
     "name or list of names of the losses whose sum is minimised; by default all"},
    {"train", CVY_TYPE_TREE, TURN(train_tree), "", "", "",
     "what is trained: a network of model.networks, or a pattern of weight names with * and ?, or a list of these; by "
     "default all weights on which the losses depend"},
    {"every", CVY_TYPE_INT, TURN(every), "1", "1..", "steps", "the turn is taken in every so many steps"},
    {"lr_mult", CVY_TYPE_REAL, TURN(lr_mult), "1", ">0", "", "factor on the learning rate"},
    {"optimizer", CVY_TYPE_TREE, TURN(optimizer_tree), "", "", "",
     "a name or a map {name: ..., lr: ..., options}, as train.optimizer, which it replaces in this turn"},
    {"clip_weights", CVY_TYPE_REAL, TURN(clip_weights), "0", "0..", "",
     "largest magnitude of a trained weight: after an update, weights beyond it are set to it; 0: none"},
    {0},
};

const cvy_option cvy_job_stop_rows[] = {
    {"metric", CVY_TYPE_STRING, CVY_FIELD(cvy_job_stop, metric), "loss", "", "",
     "the metric that is watched, on the validation data"},
    {"patience", CVY_TYPE_INT, CVY_FIELD(cvy_job_stop, patience), "", "1..", "epochs",
     "how many epochs to continue without a better value; this or `target` is required"},
    {"target", CVY_TYPE_REAL, CVY_FIELD(cvy_job_stop, target), "", "", "",
     "value that ends the run after the epoch in which the metric reaches it"},
    {"mode", CVY_TYPE_CHOICE, CVY_FIELD(cvy_job_stop, mode), "auto", "auto|min|max", "",
     "whether smaller (min) or larger (max) is better; auto decides by the metric"},
    {0},
};

const cvy_option cvy_job_init_rows[] = {
    {"from", CVY_TYPE_STRING, CVY_FIELD(cvy_job_init, from), NULL, "", "",
     "a safetensors file, or the folder of a run, of which the best checkpoint is taken"},
    {"names", CVY_TYPE_CHOICE, CVY_FIELD(cvy_job_init, names), "own", "own|torchvision|timm", "",
     "whose names the weights have: convoy's, or those of the state_dict of a network of torchvision or timm"},
    {"rename", CVY_TYPE_TREE, CVY_FIELD(cvy_job_init, rename), "", "", "",
     "map of regular expressions (POSIX, extended) and replacements, \\1 for a group: the first match in each name of "
     "the file is replaced before names are compared, such as {'^module\\.': ''}"},
    {"skip", CVY_TYPE_TREE, CVY_FIELD(cvy_job_init, skip_tree), "", "", "",
     "patterns with * and ?, such as [fc.*]: variables that keep their first values, and tensors of the file that are "
     "not used"},
    {"on_mismatch", CVY_TYPE_CHOICE, CVY_FIELD(cvy_job_init, on_mismatch), "error", "error|skip", "",
     "what to do with a variable that is not in the file or has another shape there, and with a tensor that no "
     "variable "
     "takes: stop, or leave it out and say so"},
    {0},
};

static const cvy_option checkpoint_rows[] = {
    {"every", CVY_TYPE_STRING, offsetof(cvy_job, checkpoint.every_text), "1 epoch", "", "",
     "how often to save: N steps, samples, epochs, s, min or h"},
    {"keep", CVY_TYPE_INT, offsetof(cvy_job, checkpoint.keep), "2", "1..", "",
     "how many of the newest checkpoints are kept, besides the best one"},
    {"background", CVY_TYPE_BOOL, offsetof(cvy_job, checkpoint.background), "true", "", "",
     "write a save from a copy while training continues; false: training waits, and needs no memory for the copy"},
    {"best", CVY_TYPE_STRING, offsetof(cvy_job, checkpoint.best), "", "", "",
     "metric on the validation data; its best checkpoint is kept, and `test` and `predict` use it"},
    {0},
};

static const cvy_option program_rows[] = {PROGRAM_ROWS, {0}};

static const cvy_option parallel_rows[] = {
    {"strategy", CVY_TYPE_CHOICE, offsetof(cvy_job, parallel.strategy), "data", "data|auto", "",
     "data: the batch is split over the ranks, and what the keys below say. auto: the fastest grid of ranks, as "
     "`convoy "
     "plan --ranks` finds it, in place of pipeline, tensor, spatial and interleave, and of `train.accumulate` if that "
     "is "
     "not given. `parallel: auto` is short for it"},
    PROGRAM_ROWS,
    {0},
};

static const cvy_option watchdog_rows[] = {
    {"timeout", CVY_TYPE_STRING, offsetof(cvy_job, watchdog.timeout_text), "10 min", "", "",
     "a step that takes longer ends the run, and the message names the rank and node that it waits for, up to half a "
     "minute later; six times as long before the first step, and if training waits for a checkpoint: N s, min or h; 0 "
     "s is off"},
    {"replicas", CVY_TYPE_INT, offsetof(cvy_job, watchdog.replicas), "100", "0..", "",
     "ranks compare the hashes of their weights after this many steps; 0: never"},
    {0},
};

#define MLPERF(field) offsetof(struct cvy_job_mlperf, field)

const cvy_option cvy_job_mlperf_rows[] = {
    {"benchmark", CVY_TYPE_STRING, MLPERF(benchmark), NULL, "", "",
     "what is measured, such as cosmoflow or deepcam; deepcam also gets the names that its own rules have for the "
     "optimiser and the schedule"},
    {"division", CVY_TYPE_CHOICE, MLPERF(division), "open", "closed|open", "", "the division of the submission"},
    {"org", CVY_TYPE_STRING, MLPERF(org), "none", "", "", "who submits"},
    {"platform", CVY_TYPE_STRING, MLPERF(platform), "", "", "",
     "the machine; by default the name of the host of rank 0"},
    {"status", CVY_TYPE_WORD, MLPERF(status), "onprem", "onprem|cloud|preview|research", "",
     "whose machine it is, or how far the system is from being sold"},
    {"metric", CVY_TYPE_STRING, MLPERF(metric), "", "", "",
     "the score that is logged after each validation; by default that of train.stop, or else the first of "
     "train.metrics"},
    {"cache_clear", CVY_TYPE_BOOL, MLPERF(cache_clear), "false", "", "",
     "whether the caches of the system were cleared before the run: the job says it, convoy does not clear them"},
    {"also", CVY_TYPE_TREE, MLPERF(also), "", "", "",
     "map of further keys and their values, each a line of the log, such as {number_of_nodes: 4}; a key that convoy "
     "writes gets this value"},
    {0},
};

static const cvy_option log_rows[] = {
    {"every", CVY_TYPE_INT, offsetof(cvy_job, log.every), "50", "1..", "steps",
     "how often a line is written to metrics.jsonl"},
    {"trace", CVY_TYPE_STRING, offsetof(cvy_job, log.trace), "", "", "",
     "file for a trace of steps, for chrome://tracing and Perfetto"},
    {"tensorboard", CVY_TYPE_STRING, offsetof(cvy_job, log.tensorboard), "", "", "",
     "folder in which TensorBoard finds the run while it goes on: its event files are in a folder with the name of the "
     "run folder; the numbers of metrics.jsonl and the graph of the network; needs protobuf-c"},
    {"tensorboard_histograms", CVY_TYPE_INT, offsetof(cvy_job, log.tensorboard_histograms), "0", "0..", "epochs",
     "how often histograms of the weights are added to the event files; 0: never"},
    {"mlperf", CVY_TYPE_TREE, offsetof(cvy_job, log.mlperf_tree), "", "", "",
     "map {benchmark: ..}, see below: rank 0 writes mlperf.log into the run folder, the log lines of an MLPerf "
     "training"},
    {0},
};

const cvy_job_section cvy_job_sections[] = {
    {"data", "data sets, augmentation and loading", data_rows},
    {"train", "batch, optimiser, loss and metrics", train_rows},
    {"checkpoint", "what is saved", checkpoint_rows},
    {"batch_norm", "statistics of batch normalisation", program_rows},
    {"plan", "kernels, planning and memory", program_rows},
    {"comm", "communication between ranks", program_rows},
    {"parallel", "how the work is split", parallel_rows},
    {"watchdog", "what ends a run that hangs", watchdog_rows},
    {"log", "logs and traces", log_rows},
    {0},
};
