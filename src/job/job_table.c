/*
 * job_table.c: every key of the job file, a row each.
 */
#include "job/job_table.h"

#define DATA(field) CVY_FIELD(cvy_job_data, field)
#define TRAIN(field) CVY_FIELD(cvy_job_train, field)

const cvy_option cvy_job_top_rows[] = {
    {"name", CVY_TYPE_STRING, CVY_FIELD(cvy_job, name), "", "", "", "name of the run's folder; the job file's name if not given"},
    {"model", CVY_TYPE_TREE, CVY_FIELD(cvy_job, model), NULL, "", "",
     "the network: a name from `convoy models`, a map {name: ..., options}, or a map with `layers`"},
    {"deterministic", CVY_TYPE_BOOL, CVY_FIELD(cvy_job, deterministic), "false", "", "",
     "the same bits at any number of ranks and threads, and with any MPI library; what it costs: scaling.md"},
    {"deterministic_shards", CVY_TYPE_INT, CVY_FIELD(cvy_job, deterministic_shards), "8", "1..4096", "",
     "with deterministic, parts in which a step is computed on however many ranks: a power of two, at least as many as there are ranks; other shards give other bits"},
    {"update", CVY_TYPE_TREE, CVY_FIELD(cvy_job, update_tree), "sync", "", "",
     "how ranks update the weights: sync (all together, every step), or another way by name or as a map, see below"},
    {0},
};

static const cvy_option data_rows[] = {
    {"train", CVY_TYPE_TREE, DATA(train), NULL, "", "", "training data: a path, a map {path: ..., format: ..., range: ..., limit: ..., options of the reader}, or a list of these, one behind the other"},
    {"val", CVY_TYPE_TREE, DATA(val), "", "", "",
     "validation data: a source like `train`, or the share of `train` to set apart: 10% or 0.1, drawn by class and seed"},
    {"test", CVY_TYPE_TREE, DATA(test), "", "", "", "test data: a source like `train`; it never selects anything; without `val` it is scored after every epoch"},
    {"augment", CVY_TYPE_TREE, DATA(augment), "", "", "", "list of what is done to each sample, in order, such as [{random_crop: {pad: 4}}, mirror]"},
    {"normalize", CVY_TYPE_TREE, DATA(normalize), "", "", "",
     "what is done to x behind `augment`: auto takes mean and standard deviation of each channel of the training data, {mean: [...], std: [...]} those given, none nothing"},
    {"normalize_samples", CVY_TYPE_INT, DATA(normalize_samples), "50000", "0..", "samples",
     "how many samples `normalize: auto` reads, drawn by seed where there are more; 0: all"},
    {"shuffle", CVY_TYPE_STRING, DATA(shuffle_text), "true", "", "",
     "a new order every epoch: true over all samples, window within windows of neighbouring ones (for storage that is slow at random places), or false"},
    {"window", CVY_TYPE_INT, DATA(window), "0", "0..", "samples",
     "with shuffle: window, the samples of a block that stay together, 16 blocks to a window; 0: the format's own block, or 256"},
    {"balance", CVY_TYPE_CHOICE, DATA(balance), "none", "none|class", "",
     "class draws every class equally often; an epoch is as long as before, samples of rare classes repeat, some of frequent ones are left out"},
    {"tail", CVY_TYPE_CHOICE, DATA(tail), "keep", "keep|drop", "", "whether an epoch's last, smaller batch is used"},
    {"on_bad_sample", CVY_TYPE_CHOICE, DATA(on_bad_sample), "fail", "fail|skip", "",
     "what to do with a sample that cannot be read: stop, or count it and go on without it"},
    {"threads", CVY_TYPE_STRING, DATA(threads_text), "auto", "", "",
     "threads that read and decode: a number, auto takes the cores that the compute threads leave, one at least; 0 works inside the step"},
    {"prefetch", CVY_TYPE_INT, DATA(prefetch), "2", "1..1024", "steps", "steps kept ready ahead of the training"},
    {"cache", CVY_TYPE_CHOICE, DATA(cache), "none", "none|memory|decoded", "",
     "keep samples that were read in memory, as they are stored or with pictures decoded, while there is room"},
    {"cache_limit", CVY_TYPE_INT, DATA(cache_limit), "0", "0..", "bytes",
     "room for `cache` on each rank; 0: half of the node's free memory, shared by its ranks"},
    {"stage", CVY_TYPE_STRING, DATA(stage), "", "", "",
     "folder on each node, such as a local disk or /dev/shm: the files of `train` and `val` are copied there first, by all ranks of the node, and read from there"},
    {"stage_keep", CVY_TYPE_BOOL, DATA(stage_keep), "false", "", "", "leave the copies for the next run, which finds them"},
    {0},
};

static const cvy_option train_rows[] = {
    {"preset", CVY_TYPE_STRING, TRAIN(preset), "", "", "",
     "a published recipe for large batches, which fills in what `train` leaves open: goyal2017 or you2017, see below"},
    {"batch", CVY_TYPE_INT, TRAIN(batch), "", "1..", "samples", "global batch, split over the ranks; 128 if neither this nor batch_per_rank is given"},
    {"batch_per_rank", CVY_TYPE_INT, TRAIN(batch_per_rank), "", "1..", "samples", "batch of each rank, in place of `batch`; results then depend on the ranks"},
    {"epochs", CVY_TYPE_REAL, TRAIN(epochs), "", ">0", "", "passes over the training data; 1 if neither this nor steps is given"},
    {"steps", CVY_TYPE_INT, TRAIN(steps), "", "1..", "", "updates of the weights, in place of `epochs`"},
    {"seed", CVY_TYPE_INT, TRAIN(seed), "1", "0..", "", "all random numbers come from this"},
    {"dtype", CVY_TYPE_CHOICE, TRAIN(dtype_word), "f32", "f32|f64|bf16", "", "type of activations; bf16: with weights, sums and statistics in f32, needs AMX or AVX512_BF16; f64 is slow and for checking"},
    {"precise", CVY_TYPE_BOOL, TRAIN(precise), "false", "", "", "no algorithm that rounds more than the plain sum does: no Winograd convolutions"},
    {"optimizer", CVY_TYPE_TREE, TRAIN(optimizer_tree), "{name: sgd, lr: 0.01, momentum: 0.9}", "", "", "a name or a map, see below"},
    {"schedule", CVY_TYPE_TREE, TRAIN(schedule), "constant", "", "", "how the learning rate goes: a name or a map {name: ..., warmup: ..., options}"},
    {"lr_rule", CVY_TYPE_CHOICE, TRAIN(lr_rule), "none", "none|linear|sqrt", "",
     "what a larger global batch does to the learning rate: multiplies it by batch / base_batch, or by the square root of that; a warm-up then begins at the rate for base_batch"},
    {"base_batch", CVY_TYPE_INT, TRAIN(base_batch), "", "1..", "samples",
     "with an lr_rule, the global batch that the optimiser's lr is meant for; 256 if not given"},
    {"loss", CVY_TYPE_TREE, TRAIN(loss_tree), "", "", "", "a name, a map or a list of maps, see below; if not given, softmax_cross_entropy for classes, mse for numbers"},
    {"accumulate", CVY_TYPE_INT, TRAIN(accumulate), "1", "1..4096", "", "micro-batches of a step; their gradients are added, to save memory"},
    {"clip_norm", CVY_TYPE_REAL, TRAIN(clip_norm), "0", "0..", "", "longest gradient over all weights; longer ones are scaled down; 0 is off"},
    {"clip_value", CVY_TYPE_REAL, TRAIN(clip_value), "0", "0..", "", "largest element of a gradient; larger ones are cut; 0 is off"},
    {"groups", CVY_TYPE_TREE, TRAIN(groups_tree), "", "", "", "list of groups of weights with rates of their own, see below"},
    {"init", CVY_TYPE_STRING, TRAIN(init), "", "", "", "safetensors file to start from; weights that are not in it are initialised"},
    {"metrics", CVY_TYPE_TREE, TRAIN(metrics_tree), "", "", "", "list of names or maps {name: ..., options}; if not given, what suits the data"},
    {"stop", CVY_TYPE_TREE, TRAIN(stop_tree), "", "", "", "when to stop before the end, see below"},
    {0},
};

const cvy_option cvy_job_optimizer_rows[] = {
    {"name", CVY_TYPE_STRING, CVY_FIELD(cvy_job_optimizer, name), NULL, "", "", "the optimiser"},
    {"lr", CVY_TYPE_REAL, CVY_FIELD(cvy_job_optimizer, lr), "", ">0", "",
     "learning rate before the schedule; 0.001 for adam and adamw, 1 for lars, else 0.01, if not given"},
    {"decay_on", CVY_TYPE_CHOICE, CVY_FIELD(cvy_job_optimizer, decay_on), "weights", "weights|all", "", "what weight_decay pulls at: not at biases and norms, or at all that is learnt"},
    {0},
};

#define LOSS(field) offsetof(cvy_job_loss, field)

const cvy_option cvy_job_loss_rows[] = {
    {"name", CVY_TYPE_STRING, LOSS(name), NULL, "", "", "the loss"},
    {"output", CVY_TYPE_STRING, LOSS(output), "", "", "", "output of the model that it judges; the main one if not given"},
    {"target", CVY_TYPE_STRING, LOSS(target), "", "", "", "field of the data that is the truth; the first after the input if not given"},
    {"weight", CVY_TYPE_REAL, LOSS(weight), "1", "", "", "factor in the sum of the losses"},
    {0},
};

const cvy_option cvy_job_metric_rows[] = {
    {"name", CVY_TYPE_STRING, offsetof(cvy_job_metric, name), NULL, "", "", "the metric"},
    {0},
};

#define GROUP(field) offsetof(cvy_job_group, field)

const cvy_option cvy_job_group_rows[] = {
    {"match", CVY_TYPE_STRING, GROUP(match), NULL, "", "", "pattern of weight names with * and ?, such as conv*.bias; the first group that matches counts"},
    {"lr_mult", CVY_TYPE_REAL, GROUP(lr_mult), "1", "0..", "", "factor on the learning rate"},
    {"decay_mult", CVY_TYPE_REAL, GROUP(decay_mult), "1", "0..", "", "factor on the weight decay"},
    {"frozen", CVY_TYPE_BOOL, GROUP(frozen), "false", "", "", "leave these weights as they are"},
    {0},
};

const cvy_option cvy_job_stop_rows[] = {
    {"metric", CVY_TYPE_STRING, CVY_FIELD(cvy_job_stop, metric), "loss", "", "", "what is watched, on the validation data"},
    {"patience", CVY_TYPE_INT, CVY_FIELD(cvy_job_stop, patience), NULL, "1..", "epochs", "how long without a better value"},
    {"mode", CVY_TYPE_CHOICE, CVY_FIELD(cvy_job_stop, mode), "auto", "auto|min|max", "", "which way is better; auto knows by the metric"},
    {0},
};

static const cvy_option checkpoint_rows[] = {
    {"every", CVY_TYPE_STRING, CVY_FIELD(cvy_job_checkpoint, every_text), "1 epoch", "", "", "how often to save: N steps, samples, epochs, s, min or h"},
    {"keep", CVY_TYPE_INT, CVY_FIELD(cvy_job_checkpoint, keep), "2", "1..", "", "newest checkpoints that stay, besides the best"},
    {"background", CVY_TYPE_BOOL, CVY_FIELD(cvy_job_checkpoint, background), "true", "", "", "a save is written from a copy while training goes on; false: training waits, and needs no memory for the copy"},
    {"best", CVY_TYPE_STRING, CVY_FIELD(cvy_job_checkpoint, best), "", "", "", "metric on the validation data whose best checkpoint stays, and is taken by `test` and `predict`"},
    {0},
};

static const cvy_option batch_norm_rows[] = {
    {"group", CVY_TYPE_STRING, CVY_FIELD(cvy_job_batch_norm, group_text), "32", "", "samples",
     "samples that share their statistics: a number, batch for the whole global batch, rank (results then depend on the ranks), or, with deterministic and taken there if not given, shard"},
    {0},
};

static const cvy_option plan_rows[] = {
    {"passes_off", CVY_TYPE_TREE, CVY_FIELD(cvy_job_plan, passes_off_tree), "", "", "", "list of optimising passes to leave out, or all"},
    {"kernels", CVY_TYPE_CHOICE, CVY_FIELD(cvy_job_plan, kernels), "auto", "auto|reference|native|onednn|clock", "",
     "which kernels may be used; clock (for `convoy bench`): none, a step only waits for the measured times of its kernels"},
    {"clock_scale", CVY_TYPE_REAL, CVY_FIELD(cvy_job_plan, clock_scale), "1", ">0", "", "with kernels: clock, a factor on all times"},
    {"clock_noise", CVY_TYPE_REAL, CVY_FIELD(cvy_job_plan, clock_noise), "0", "0.. <1", "",
     "with kernels: clock, how much a step's times vary, by rank and step: standard deviation as a share, such as 0.005"},
    {"planning", CVY_TYPE_CHOICE, CVY_FIELD(cvy_job_plan, planning), "estimate", "estimate|measure|patient", "",
     "how a kernel is chosen for each node: by preference and known times, by timing the plausible ones, by timing all"},
    {"wisdom", CVY_TYPE_STRING, CVY_FIELD(cvy_job_plan, wisdom), "", "", "",
     "file of measured times, or off; if not given, that of the environment's CONVOY_WISDOM, else one for this machine in ~/.cache/convoy"},
    {"memory_limit", CVY_TYPE_INT, CVY_FIELD(cvy_job_plan, memory_limit), "0", "0..", "bytes",
     "tensor memory that a rank may have, such as 8 GiB; a plan that needs more makes cheap values again in the backward pass; 0 is no limit"},
    {0},
};

static const cvy_option comm_rows[] = {
    {"bucket", CVY_TYPE_STRING, CVY_FIELD(cvy_job_comm, bucket_text), "auto", "", "bytes",
     "gradients are summed in pieces of about this size, such as 4 MiB; auto: by what sums cost on this network"},
    {"overlap", CVY_TYPE_STRING, CVY_FIELD(cvy_job_comm, overlap_text), "true", "true|false|forward", "",
     "sum while the backward pass goes on; forward: and while the next step's forward pass does, each update just before it is needed"},
    {"blocking", CVY_TYPE_BOOL, CVY_FIELD(cvy_job_comm, blocking), "false", "", "", "for comparison: each sum is waited for where it starts"},
    {"algorithm", CVY_TYPE_STRING, CVY_FIELD(cvy_job_comm, algorithm), "auto", "", "",
     "how ranks sum gradients: auto, library (MPI_Iallreduce), ring, halving or doubling; see scaling.md"},
    {"progress", CVY_TYPE_STRING, CVY_FIELD(cvy_job_comm, progress), "poll", "", "",
     "what moves sums while kernels run: poll (the rank itself, whenever a kernel ends), thread (one of its own, which wants a core) or mpi (the library)"},
    {"wire", CVY_TYPE_CHOICE, CVY_FIELD(cvy_job_comm, wire), "f32", "f32|bf16", "", "gradients between nodes: as they are, or in half the bytes, rounded"},
    {"node_memory", CVY_TYPE_BOOL, CVY_FIELD(cvy_job_comm, node_memory), "true", "", "",
     "ranks of a node sum in memory that they share; if false, by messages as between nodes"},
    {0},
};

static const cvy_option parallel_rows[] = {
    {"strategy", CVY_TYPE_CHOICE, CVY_FIELD(cvy_job_parallel, strategy), "data", "data", "", "what is split over ranks: the batch"},
    {0},
};

static const cvy_option watchdog_rows[] = {
    {"timeout", CVY_TYPE_STRING, CVY_FIELD(cvy_job_watchdog, timeout_text), "10 min", "", "", "a step that takes longer ends the run, with the rank and node that it waits for, after up to half a minute more in which ranks tell each other where they are; before the first step, and for a checkpoint that is waited for, six times as long: N s, min or h; 0 s is off"},
    {"replicas", CVY_TYPE_INT, CVY_FIELD(cvy_job_watchdog, replicas), "100", "0..", "", "every so many steps ranks compare the hashes of their weights; 0: never"},
    {0},
};

static const cvy_option log_rows[] = {
    {"every", CVY_TYPE_INT, CVY_FIELD(cvy_job_log, every), "50", "1..", "steps", "how often a line is written to metrics.jsonl"},
    {"trace", CVY_TYPE_STRING, CVY_FIELD(cvy_job_log, trace), "", "", "", "file for a trace of steps, which chrome://tracing and Perfetto open"},
    {0},
};

#define SECTION(key, help, table) {#key, help, table, offsetof(cvy_job, key), sizeof(((cvy_job *)0)->key)}

const cvy_job_section cvy_job_sections[] = {
    SECTION(data, "what is learnt from", data_rows),
    SECTION(train, "how it is learnt", train_rows),
    SECTION(checkpoint, "what is saved", checkpoint_rows),
    SECTION(batch_norm, "statistics of batch normalisation", batch_norm_rows),
    SECTION(plan, "how a step is carried out", plan_rows),
    SECTION(comm, "communication between ranks", comm_rows),
    SECTION(parallel, "how the work is split", parallel_rows),
    SECTION(watchdog, "what ends a run that hangs", watchdog_rows),
    SECTION(log, "what is written down", log_rows),
    {0},
};
