/*
 * job_table.c: the option tables: one row for each key of the job file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "job/job_table.h"

#define DATA(field) CVY_FIELD(cvy_job_data, field)
#define TRAIN(field) CVY_FIELD(cvy_job_train, field)

const cvy_option cvy_job_top_rows[] = {
    {"name", CVY_TYPE_STRING, CVY_FIELD(cvy_job, name), "", "", "",
     "name of the run's folder; by default the name of the job file"},
    {"model", CVY_TYPE_TREE, CVY_FIELD(cvy_job, model), NULL, "", "",
     "the network: a name from `convoy models`, a map {name: ..., options}, a map with `layers`, or a file of another "
     "program: {onnx: FILE}, {caffe: FILE} (docs/reference/caffe-layers.md)"},
    {"libraries", CVY_TYPE_TREE, CVY_FIELD(cvy_job, libraries), "", "", "",
     "shared libraries of your own operators, such as [mine.so]; paths are relative to the folder of the job file. "
     "Their code runs in every process of the job: docs/guide/extend.md"},
    {"deterministic", CVY_TYPE_BOOL, CVY_FIELD(cvy_job, deterministic), "false", "", "",
     "the same bits on any number of ranks and threads, and with any MPI library; docs/internals/determinism.md says "
     "what it costs"},
    {"deterministic_shards", CVY_TYPE_INT, CVY_FIELD(cvy_job, deterministic_shards), "8", "1..4096", "",
     "with deterministic, the number of parts in which a step is computed on any number of ranks: a power of two, at "
     "least the number of ranks; another number gives other bits"},
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
    {"seed", CVY_TYPE_INT, TRAIN(seed), "1", "0..", "", "seed of all random numbers"},
    {"dtype", CVY_TYPE_CHOICE, TRAIN(dtype_word), "f32", "f32|f64|bf16", "",
     "type of activations; bf16 keeps weights, sums and statistics in f32, and is faster than f32 with AMX or "
     "AVX512_BF16; other CPUs compute in f32, so it saves memory but little time; f64 is slow and for checks"},
    {"precise", CVY_TYPE_BOOL, TRAIN(precise), "false", "", "",
     "use no algorithm that rounds more than a plain sum does: no Winograd convolutions"},
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
    {"patience", CVY_TYPE_INT, CVY_FIELD(cvy_job_stop, patience), NULL, "1..", "epochs",
     "how many epochs to continue without a better value"},
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
    {"every", CVY_TYPE_STRING, CVY_FIELD(cvy_job_checkpoint, every_text), "1 epoch", "", "",
     "how often to save: N steps, samples, epochs, s, min or h"},
    {"keep", CVY_TYPE_INT, CVY_FIELD(cvy_job_checkpoint, keep), "2", "1..", "",
     "how many of the newest checkpoints are kept, besides the best one"},
    {"background", CVY_TYPE_BOOL, CVY_FIELD(cvy_job_checkpoint, background), "true", "", "",
     "write a save from a copy while training continues; false: training waits, and needs no memory for the copy"},
    {"best", CVY_TYPE_STRING, CVY_FIELD(cvy_job_checkpoint, best), "", "", "",
     "metric on the validation data; its best checkpoint is kept, and `test` and `predict` use it"},
    {0},
};

static const cvy_option batch_norm_rows[] = {
    {"group", CVY_TYPE_STRING, CVY_FIELD(cvy_job_batch_norm, group_text), "32", "", "samples",
     "samples that share their statistics: at most this number; batch, the whole global batch; rank (results then "
     "depend on the number of ranks); or, with deterministic, shard, which is the default there; samples of weight 0 "
     "do not count"},
    {"frozen", CVY_TYPE_TREE, CVY_FIELD(cvy_job_batch_norm, frozen_tree), "", "", "",
     "layers that normalise by their running statistics in training too, and do not change them: true for all, or "
     "patterns of layer names, such as [block1_*, conv1_bn]; their scales and shifts are trained unless train.groups "
     "freezes them"},
    {0},
};

static const cvy_option plan_rows[] = {
    {"passes_off", CVY_TYPE_TREE, CVY_FIELD(cvy_job_plan, passes_off_tree), "", "", "",
     "list of optimising passes to turn off, or all"},
    {"kernels", CVY_TYPE_STRING, CVY_FIELD(cvy_job_plan, kernels_text), "auto", "", "",
     "which kernels may be used: auto (all), direct (all except Winograd), native (convoy's own), onednn (oneDNN's), "
     "both in order of preference (onednn, native), or reference (the operators' own, which also run what the chosen "
     "ones cannot); clock (for `convoy bench`): a step only waits for the measured times of its kernels"},
    {"clock_scale", CVY_TYPE_REAL, CVY_FIELD(cvy_job_plan, clock_scale), "1", ">0", "",
     "with kernels: clock, a factor on all times"},
    {"clock_noise", CVY_TYPE_REAL, CVY_FIELD(cvy_job_plan, clock_noise), "0", "0.. <1", "",
     "with kernels: clock, how much the times of a step vary by rank and step: the standard deviation as a share, such "
     "as 0.005"},
    {"planning", CVY_TYPE_CHOICE, CVY_FIELD(cvy_job_plan, planning), "estimate", "estimate|measure|patient", "",
     "how a kernel is chosen for each node: by preference and known times, by timing the plausible ones, or by timing "
     "all"},
    {"wisdom", CVY_TYPE_STRING, CVY_FIELD(cvy_job_plan, wisdom), "", "", "",
     "file of measured times, or off; by default that of the environment's CONVOY_WISDOM, otherwise one for this "
     "machine in ~/.cache/convoy"},
    {"memory_limit", CVY_TYPE_INT, CVY_FIELD(cvy_job_plan, memory_limit), "0", "0..", "bytes",
     "tensor memory that a rank may use, such as 8 GiB; a plan that needs more recomputes values in the backward pass, "
     "with as little work as it takes; 0 is no limit"},
    {0},
};

static const cvy_option comm_rows[] = {
    {"bucket", CVY_TYPE_STRING, CVY_FIELD(cvy_job_comm, bucket_text), "auto", "", "bytes",
     "gradients are reduced in buckets of about this size, such as 4 MiB; auto: by the cost of an all-reduce on this "
     "network"},
    {"overlap", CVY_TYPE_STRING, CVY_FIELD(cvy_job_comm, overlap_text), "true", "true|false|forward", "",
     "reduce during the backward pass; forward: also during the next step's forward pass, with each update just before "
     "it is needed"},
    {"blocking", CVY_TYPE_BOOL, CVY_FIELD(cvy_job_comm, blocking), "false", "", "",
     "for comparison: wait for each reduction where it starts"},
    {"algorithm", CVY_TYPE_STRING, CVY_FIELD(cvy_job_comm, algorithm), "auto", "", "",
     "algorithm of the all-reduce: auto, library (MPI_Iallreduce), ring, halving or doubling "
     "(docs/internals/reductions.md)"},
    {"progress", CVY_TYPE_STRING, CVY_FIELD(cvy_job_comm, progress), "poll", "", "",
     "what makes reductions progress while kernels run: poll (the rank itself, whenever a kernel ends) or thread "
     "(a progress thread, which needs a core)"},
    {"wire", CVY_TYPE_CHOICE, CVY_FIELD(cvy_job_comm, wire), "f32", "f32|bf16", "",
     "type of gradients in messages between nodes; bf16: half the bytes, rounded"},
    {"node_memory", CVY_TYPE_BOOL, CVY_FIELD(cvy_job_comm, node_memory), "true", "", "",
     "ranks of a node reduce in shared memory; if false, by messages as between nodes"},
    {0},
};

static const cvy_option parallel_rows[] = {
    {"strategy", CVY_TYPE_CHOICE, CVY_FIELD(cvy_job_parallel, strategy), "data", "data|auto", "",
     "data: the batch is split over the ranks, and what the keys below say. auto: the fastest grid of ranks, as "
     "`convoy "
     "plan --ranks` finds it, in place of pipeline, tensor, spatial and interleave, and of `train.accumulate` if that "
     "is "
     "not given. `parallel: auto` is short for it"},
    {"pipeline", CVY_TYPE_INT, CVY_FIELD(cvy_job_parallel, pipeline), "1", "1..", "",
     "stages of a pipeline, into which the layers are cut: the number of ranks is a multiple, and a rank holds one "
     "stage. "
     "Ranks with the same stage share the batch. Give `train.accumulate` several micro-batches for each stage"},
    {"order", CVY_TYPE_STRING, CVY_FIELD(cvy_job_parallel, order), "1f1b", "", "",
     "with pipeline, in which order a stage runs micro-batches: 1f1b (fewest activations) or gpipe (all forward "
     "first)"},
    {"tensor", CVY_TYPE_INT, CVY_FIELD(cvy_job_parallel, tensor), "1", "1..", "",
     "ranks that share the channels of layers with weights"},
    {"tensor_layers", CVY_TYPE_TREE, CVY_FIELD(cvy_job_parallel, tensor_layers_tree), "", "", "",
     "with tensor, which layers are split by channels: all, a list such as [fc6, fc7, fc8], or auto, which takes the "
     "last "
     "ones, as many as make ranks exchange the fewest bytes. Ranks share the samples of all other layers, as on the "
     "data axis"},
    {"spatial", CVY_TYPE_INTS, CVY_FIELD(cvy_job_parallel, spatial), "", "1..", "",
     "ranks that share each spatial dimension of a sample, in its order: [2, 2] cuts images into four parts. The "
     "number of ranks is a multiple of the product of pipeline, tensor and spatial; the rest shares the batch"},
    {"interleave", CVY_TYPE_INT, CVY_FIELD(cvy_job_parallel, interleave), "1", "1..1000", "",
     "with pipeline, stages of each rank: with 2, the layers are cut into twice as many stages, and of P ranks rank r "
     "has the stages r and r + P: less idle time and more messages"},
    {"first_layers", CVY_TYPE_TREE, CVY_FIELD(cvy_job_parallel, first_layers_tree), "", "", "",
     "with pipeline, a list of the layers with which the stages begin, the first layer of the network included, such "
     "as "
     "[conv1, conv3, fc]; without it the layers are cut into stages of equal time, with those that have a `stage: N` "
     "on "
     "theirs"},
    {0},
};

static const cvy_option watchdog_rows[] = {
    {"timeout", CVY_TYPE_STRING, CVY_FIELD(cvy_job_watchdog, timeout_text), "10 min", "", "",
     "a step that takes longer ends the run, and the message names the rank and node that it waits for, up to half a "
     "minute later; six times as long before the first step, and if training waits for a checkpoint: N s, min or h; 0 "
     "s is off"},
    {"replicas", CVY_TYPE_INT, CVY_FIELD(cvy_job_watchdog, replicas), "100", "0..", "",
     "ranks compare the hashes of their weights after this many steps; 0: never"},
    {0},
};

static const cvy_option log_rows[] = {
    {"every", CVY_TYPE_INT, CVY_FIELD(cvy_job_log, every), "50", "1..", "steps",
     "how often a line is written to metrics.jsonl"},
    {"trace", CVY_TYPE_STRING, CVY_FIELD(cvy_job_log, trace), "", "", "",
     "file for a trace of steps, for chrome://tracing and Perfetto"},
    {"tensorboard", CVY_TYPE_STRING, CVY_FIELD(cvy_job_log, tensorboard), "", "", "",
     "folder in which TensorBoard finds the run while it goes on: its event files are in a folder with the name of the "
     "run folder; the numbers of metrics.jsonl and the graph of the network; needs protobuf-c"},
    {"tensorboard_histograms", CVY_TYPE_INT, CVY_FIELD(cvy_job_log, tensorboard_histograms), "0", "0..", "epochs",
     "how often histograms of the weights are added to the event files; 0: never"},
    {0},
};

#define SECTION(key, help, table)                                                                                      \
    {                                                                                                                  \
#key, help, table, offsetof(cvy_job, key), sizeof(((cvy_job *)0)->key)                                         \
    }

const cvy_job_section cvy_job_sections[] = {
    SECTION(data, "data sets, augmentation and loading", data_rows),
    SECTION(train, "batch, optimiser, loss and metrics", train_rows),
    SECTION(checkpoint, "what is saved", checkpoint_rows),
    SECTION(batch_norm, "statistics of batch normalisation", batch_norm_rows),
    SECTION(plan, "kernels, planning and memory", plan_rows),
    SECTION(comm, "communication between ranks", comm_rows),
    SECTION(parallel, "how the work is split", parallel_rows),
    SECTION(watchdog, "what ends a run that hangs", watchdog_rows),
    SECTION(log, "logs and traces", log_rows),
    {0},
};
