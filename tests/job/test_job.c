/*
 * test_job.c: the job file: values and defaults, --set, every error with its position, the resolved file that parses
 * back to itself, the hash, and the page docs/reference/job-file.md against the tables (`test_job --write` updates it).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/base_file.h"
#include "job/job.h"
#include "program/program_update.h"
#include "test_util.h"

static const char head[] = "model: lenet\ndata: {train: mnist}\n";

static cvy_status parse(const char *text, cvy_job **out)
{
    return cvy_job_parse_text("job.yaml", text, NULL, 0, out);
}

static cvy_job *must_parse(const char *text)
{
    cvy_job *job = NULL;
    EXPECT_OK(parse(text, &job));
    if (!job)
        exit(test_end());
    return job;
}

static void defaults(void)
{
    cvy_job *job = must_parse(head);
    EXPECT_TEXT(job->name, "job");
    EXPECT_TEXT(job->model->text, "lenet");
    EXPECT_INT(job->data.shuffle, 1);
    EXPECT_INT(job->data.threads, -1);
    EXPECT(job->data.val == NULL && job->data.test == NULL && job->data.augment == NULL);
    EXPECT_INT(job->train.batch, 128);
    EXPECT(job->train.epochs == 1);
    EXPECT_INT(job->train.steps, 0);
    EXPECT_INT(job->program.seed, 1);
    EXPECT_INT(job->program.dtype, CVY_DTYPE_F32);
    EXPECT_TEXT(job->train.optimizer, "sgd");
    EXPECT(job->train.lr == 0.01);
    EXPECT_TEXT(cvy_tree_get(job->train.optimizer_tree, "momentum")->text, "0.9");
    EXPECT(job->train.optimizer_options == NULL); /* none is given */
    EXPECT_INT(job->train.nloss, 0);
    EXPECT_INT(job->train.nmetric, 0);
    EXPECT_INT(job->train.ngroup, 0);
    EXPECT_INT(job->train.stop.patience, 0);
    EXPECT(job->checkpoint.every.amount == 1 && job->checkpoint.every.unit == CVY_DURATION_EPOCHS);
    EXPECT_INT(job->checkpoint.keep, 2);
    EXPECT_INT(job->program.batch_norm_group, 32);
    EXPECT_INT(job->program.bucket_bytes, 0);
    EXPECT_INT(job->program.overlap, CVY_OVERLAP_BACKWARD);
    EXPECT(job->watchdog.timeout_s == 600);
    EXPECT_INT(job->log.every, 50);
    cvy_job_destroy(&job);
    EXPECT(job == NULL);
}

/* Words that YAML 1.1 has for true and false mean the same in keys that have other words, too, and in choices of
 * readers. */
static void words_for_true_and_false(void)
{
    static const char *const sets[] = {"data.shuffle=False", "data.sandbox=TRUE", "comm.overlap=Off",
                                       "comm.blocking=Yes"};
    cvy_job *job = NULL;
    char *text = NULL;
    EXPECT_OK(cvy_job_parse_text("job.yaml", head, sets, CVY_COUNT(sets), &job));
    if (!job)
        exit(test_end());
    EXPECT_INT(job->data.shuffle, 0);
    EXPECT_TEXT(job->data.sandbox, "true");
    EXPECT_INT(job->program.overlap, CVY_OVERLAP_NONE);
    EXPECT_INT(job->program.reduce_blocking, 1);
    EXPECT_OK(cvy_job_print(job, &text));
    EXPECT(text && strstr(text, "shuffle: false"));
    cvy_mem_free(&text);
    cvy_job_destroy(&job);
    EXPECT_OK(parse("model: lenet\ndata: {train: synthetic, shuffle: True}\n", &job));
    EXPECT_INT(job ? job->data.shuffle : -1, 1);
    cvy_job_destroy(&job);
    EXPECT_FAULT(parse("model: lenet\ndata: {train: synthetic, shuffle: tRUE}\n", &job), CVY_E_CONFIG,
                 "data.shuffle is \"tRUE\", expected true, false or window");
}

static const char full[] =
    "name: run-a\n"
    "model:\n  layers:\n    - {convolution: {kernel: 3}, name: c1}\n    - relu\n"
    "deterministic: false\nupdate: sync\n"
    "data: {train: {path: a, format: cifar}, val: 10%, test: b, augment: [mirror, {crop: 32}], shuffle: no, tail: "
    "drop,\n"
    "       on_bad_sample: skip, threads: 0, prefetch: 3}\n"
    "train:\n  batch_per_rank: 16\n  steps: 1k\n  seed: 7\n  dtype: f64\n  optimizer: adam\n"
    "  schedule: {name: cosine, warmup: 5 epochs}\n"
    "  loss: [{name: mse, output: o1, target: y, weight: 0.5}, {name: huber, delta: 2}]\n"
    "  accumulate: 4\n  clip_norm: 1.5\n  init: w.safetensors\n"
    "  groups: [{match: 'conv*', lr_mult: 0.1}, {match: '*', frozen: true}]\n"
    "  metrics: [accuracy, {name: top_k, k: 5}]\n"
    "  stop: {metric: accuracy, patience: 3, mode: max}\n"
    "checkpoint: {every: 10 min, keep: 5, best: accuracy}\n"
    "batch_norm: {group: rank}\n"
    "plan: {passes_off: [fuse-add, in-place], kernels: reference}\n"
    "comm: {bucket: 1 MiB, overlap: off}\nparallel: {strategy: data}\nwatchdog: {timeout: 2 min}\n"
    "log: {every: 1, trace: t.json}\n";

static void everything(void)
{
    cvy_job *job = must_parse(full);
    EXPECT_TEXT(job->name, "run-a");
    EXPECT_INT(job->deterministic, 0);
    EXPECT_NEAR(job->data.val_share, 0.1, 1e-15);
    EXPECT_INT(job->data.tail, CVY_TAIL_DROP);
    EXPECT_INT(job->data.on_bad_sample, CVY_BAD_SAMPLE_SKIP);
    EXPECT_INT(job->data.augment->count, 2);
    EXPECT_INT(job->train.batch, 0);
    EXPECT_INT(job->train.steps, 1000);
    EXPECT(job->train.epochs == 0);
    EXPECT_INT(job->program.dtype, CVY_DTYPE_F64);
    EXPECT(job->train.lr == 0.001 && !job->train.optimizer_options);
    EXPECT_INT(job->train.nloss, 2);
    EXPECT_TEXT(job->train.loss[0].target, "y");
    EXPECT(job->train.loss[0].weight == 0.5 && !job->train.loss[0].options);
    EXPECT_TEXT(cvy_tree_get(job->train.loss[1].options, "delta")->text, "2");
    EXPECT_INT(job->train.ngroup, 2);
    EXPECT(job->train.group[0].lr_mult == 0.1 && job->train.group[0].decay_mult == 1);
    EXPECT_INT(job->train.group[1].frozen, 1);
    EXPECT_INT(job->train.nmetric, 2);
    EXPECT_TEXT(job->train.metric[1].name, "top_k");
    EXPECT_TEXT(cvy_tree_get(job->train.metric[1].options, "k")->text, "5");
    EXPECT_INT(job->train.stop.mode, CVY_STOP_MAX);
    EXPECT(job->checkpoint.every.amount == 600 && job->checkpoint.every.unit == CVY_DURATION_SECONDS);
    const cvy_kernels kernels = cvy_job_kernels(job);
    EXPECT_INT(job->program.batch_norm_group, -1);
    EXPECT_TEXT(job->program.passes_off, "fuse-add, in-place");
    EXPECT(cvy_kernels_are_reference(&kernels));
    EXPECT_INT(job->program.overlap, CVY_OVERLAP_NONE);
    EXPECT(job->watchdog.timeout_s == 120);
    EXPECT_TEXT(job->log.trace, "t.json");
    cvy_job_destroy(&job);
}

static void resolved_parses_back(void)
{
    const char *const texts[] = {
        head,
        full,
        "model: a\ndata: {train: b}\ntrain: {turns: [{losses: d, train: critic, optimizer: rmsprop}, {losses: [g, h], "
        "train: [a, 'b.*'], every: 2, optimizer: {name: adam, lr: 0.1, beta1: 0.5}}]}\n",
        "model: a\ndata: {train: b}\ntrain: {turns: {losses: d, train: critic, clip_weights: 0.1}}\n",
    };
    for (int i = 0; i < CVY_COUNT(texts); i++) {
        char *once = NULL, *twice = NULL;
        uint64_t hash = 0, hash_again = 1;
        cvy_job *job = must_parse(texts[i]);
        EXPECT_OK(cvy_job_print(job, &once));
        EXPECT_OK(cvy_job_hash(job, &hash));
        cvy_job_destroy(&job);
        job = must_parse(once);
        EXPECT_OK(cvy_job_print(job, &twice));
        EXPECT_OK(cvy_job_hash(job, &hash_again));
        EXPECT_TEXT(twice, once);
        EXPECT(hash == hash_again);
        cvy_job_destroy(&job);
        cvy_mem_free(&once);
        cvy_mem_free(&twice);
    }
}

static const char *option(const cvy_tree *map, const char *key)
{
    const cvy_tree *value = map ? cvy_tree_get(map, key) : NULL;
    return value && value->text ? value->text : "(none)";
}

/* A file that a run of version 0.2 has kept names a preset, and has all of its keys. */
static void kept_presets_are_left_out(void)
{
    cvy_job *job =
        must_parse("model: a\ndata: {train: b}\ntrain: {preset: goyal2017, batch: 8k, epochs: 90, lr_rule: linear, "
                   "optimizer: {name: sgd, lr: 0.2, momentum: 0.9}, schedule: constant, base_batch: 256}\n");
    EXPECT(job->train.lr == 0.2 && cvy_job_lr_factor(job, 8192) == 32 && cvy_job_lr_factor(job, 64) == 0.25);
    EXPECT(!job->renamed);
    cvy_job_destroy(&job);
    job = must_parse("model: a\ndata: {train: b}\ntrain: {optimizer: lars, lr_rule: sqrt, base_batch: 64}\n");
    EXPECT(job->train.lr == 1 && cvy_job_lr_factor(job, 1024) == 4);
    EXPECT(job->train.decay_on == CVY_DECAY_WEIGHTS);
    cvy_job_destroy(&job);
}

/* The resolved job has the options of the optimiser of each turn, and the learning rate that it has by default. */
static void turns_are_printed(void)
{
    const cvy_tree *turn = NULL, *optimizer = NULL;
    cvy_job *job =
        must_parse("model: a\ndata: {train: b}\ntrain: {turns: [{losses: d}, {losses: g, train: h, optimizer: "
                   "{name: adam, beta1: 0.5}}]}\n");
    EXPECT_INT(job->train.turns_tree->count, 2);
    turn = job->train.turns_tree->child[0];
    EXPECT_TEXT(option(turn, "every"), "1");
    EXPECT_TEXT(option(turn, "losses"), "d");
    turn = job->train.turns_tree->child[1];
    optimizer = cvy_tree_get(turn, "optimizer");
    EXPECT_TEXT(option(optimizer, "name"), "adam");
    EXPECT_TEXT(option(optimizer, "lr"), "0.001");
    EXPECT_TEXT(option(optimizer, "beta1"), "0.5");
    EXPECT_TEXT(option(optimizer, "beta2"), "0.999");
    cvy_job_destroy(&job);
}

static uint64_t hash_with(const char *set)
{
    uint64_t hash = 0;
    cvy_job *job = NULL;
    EXPECT_OK(cvy_job_parse_text("job.yaml", head, &set, 1, &job));
    if (job)
        EXPECT_OK(cvy_job_hash(job, &hash));
    cvy_job_destroy(&job);
    return hash;
}

static void hash_is_of_what_counts(void)
{
    EXPECT(hash_with("train.seed=1") == hash_with("train.seed="));
    EXPECT(hash_with("train.seed=2") != hash_with("train.seed=1"));
    EXPECT(hash_with("model=vgg-a") != hash_with("model=lenet"));
    EXPECT(hash_with("log.trace=x") == hash_with("log.trace=y"));
}

static void overrides(void)
{
    const char *const sets[] = {"train.batch=64",         "data.val=0.25",       "train.optimizer={name: sgd, lr: 0.5}",
                                "train.batch=32",         "plan.passes_off=all", "train.optimizer.momentum=0.8",
                                "batch_norm.group=batch", "train.epochs=2.5"};
    cvy_job *job = NULL;
    EXPECT_OK(cvy_job_parse_text("job.yaml", head, sets, CVY_COUNT(sets), &job));
    if (!job)
        return;
    EXPECT_INT(job->train.batch, 32);
    EXPECT(job->data.val_share == 0.25 && job->train.lr == 0.5 && job->train.epochs == 2.5);
    EXPECT_TEXT(cvy_tree_get(job->train.optimizer_options, "momentum")->text, "0.8");
    EXPECT_TEXT(job->program.passes_off, "all");
    EXPECT_INT(job->program.batch_norm_group, -2);
    cvy_job_destroy(&job);
}

/* A key below a word that stands for a map, or below one that the job does not have. */
static void overrides_of_short_forms(void)
{
    static const char text[] = "model: lenet\ndata: {train: mnist}\ntrain: {optimizer: adam}\nupdate: local\n";
    const char *const sets[] = {"model.classes=7", "data.train.limit=20", "train.optimizer.lr=0.5",
                                "train.schedule.warmup=3 epochs", "update.every=9"};
    cvy_job *job = NULL;
    EXPECT_OK(cvy_job_parse_text("job.yaml", text, sets, CVY_COUNT(sets), &job));
    if (!job)
        return;
    EXPECT_TEXT(job->train.optimizer, "adam");
    EXPECT(job->train.lr == 0.5);
    EXPECT_TEXT(cvy_tree_get(job->model, "name")->text, "lenet");
    EXPECT_TEXT(cvy_tree_get(job->model, "classes")->text, "7");
    EXPECT_TEXT(cvy_tree_get(job->data.train, "path")->text, "mnist");
    EXPECT_TEXT(cvy_tree_get(job->train.schedule, "name")->text, "constant");
    cvy_job_destroy(&job);
}

static void bad_overrides(void)
{
    static const struct {
        const char *set, *text;
    } rows[] = {
        {"train.batch", "--set train.batch: expected key=value"},
        {"=3", "--set =3: expected key=value"},
        {"train.bacth=3", "--set train.bacth=3: train: unknown key \"bacth\"; did you mean \"batch\"?"},
        {"trian.batch=3", "--set trian.batch=3: job: unknown key \"trian\"; did you mean \"train\"?"},
        {"train.batch=many", "--set train.batch=many: train: batch is \"many\", expected a whole number (samples)"},
        {"train.batch=0", "batch is \"0\", expected 1.."},
        {"model.name.of=3",
         "--set model.name.of=3: cannot set a key below \"name\": the value at job.yaml:1:8 is not a map"},
        {"data.threads=-1", "data.threads is \"-1\", expected auto or a number 0 .. 1024"},
        {"train.loss=[a", "--set train.loss=[a:2:1: did not find"},
        {"train.steps=5", NULL},
    };
    for (int i = 0; i < CVY_COUNT(rows); i++) {
        cvy_job *job = NULL;
        if (rows[i].text)
            EXPECT_FAULT(cvy_job_parse_text("job.yaml", head, &rows[i].set, 1, &job), CVY_E_CONFIG, rows[i].text);
        else
            EXPECT_OK(cvy_job_parse_text("job.yaml", head, &rows[i].set, 1, &job));
        cvy_job_destroy(&job);
    }
}

/* Each text is appended to a valid beginning of two lines. */
static void errors(void)
{
    static const struct {
        const char *yaml, *text;
    } rows[] = {
        {"trian: {batch: 1}", "job.yaml:3:1: job: unknown key \"trian\"; did you mean \"train\"?"},
        {"train:\n  bach: 12", "job.yaml:4:3: train: unknown key \"bach\"; did you mean \"batch\"?"},
        {"train: {batch: 1.5}", "job.yaml:3:16: train: batch is \"1.5\", expected a whole number (samples)"},
        {"train: {batch: 8, batch_per_rank: 4}",
         "job.yaml:3:35: train.batch is 8 and train.batch_per_rank is 4; give one of them"},
        {"train: {epochs: 8, steps: 4}", "job.yaml:3:27: train.epochs is 8 and train.steps is 4; give one of them"},
        {"train: {epochs: 0}", "epochs is \"0\", expected >0"},
        {"train: {seed: -1}", "seed is \"-1\", expected 0.."},
        {"train: {dtype: f16}", "dtype is \"f16\", expected f32|f64"},
        {"train: {batch: 4, accumulate: 8}", "job.yaml:3:31: train.accumulate is 8, expected at most the batch, 4"},
        {"train: {lr_rule: linaer}",
         "job.yaml:3:18: train: lr_rule is \"linaer\", expected none|linear|sqrt; did you mean \"linear\"?"},
        {"train: {lr_rule: linear, base_batch: 0}",
         "job.yaml:3:38: train: base_batch is \"0\", expected 1.. (samples)"},
        {"train: {base_batch: 64}",
         "job.yaml:3:21: train.base_batch is 64, but without a train.lr_rule the rate does not follow the batch"},
        {"train: {preset: goyal2017, optimizer: {lr: 0.2}}",
         "job.yaml:3:17: train.preset is gone; write its keys where it is, but for those that train has: epochs: 90, "
         "lr_rule: linear, optimizer: {name: sgd, lr: 0.1,"},
        {"train: {optimizer: {name: sgd, decay_on: bias}}",
         "job.yaml:3:42: train.optimizer: decay_on is \"bias\", expected weights|all"},
        {"train: {clip_norm: -1}", "clip_norm is \"-1\", expected 0.."},
        {"train: {optimizer: [sgd]}", "job.yaml:3:20: train.optimizer: expected a name or a map"},
        {"train: {optimizer: {lr: 1}}", "job.yaml:3:20: train.optimizer: the key \"name\" is missing"},
        {"train: {optimizer: {name: sgd, lr: -1}}", "job.yaml:3:36: train.optimizer: lr is \"-1\", expected >0"},
        {"train: {schedule: [a]}", "train.schedule is a list"},
        {"train: {loss: []}", "train.loss is an empty list"},
        {"train: {loss: [{weight: 2}]}", "job.yaml:3:16: train.loss: the key \"name\" is missing"},
        {"train: {loss: {name: mse, weight: x}}", "train.loss: weight is \"x\", expected a number"},
        {"train: {loss: [[a]]}", "job.yaml:3:16: train.loss: expected a name or a map"},
        {"train: {metrics: [[a]]}", "train.metrics: expected a name or a map"},
        {"train: {groups: [{lr_mult: 2}]}", "job.yaml:3:18: train.groups: the key \"match\" is missing"},
        {"train: {groups: [{match: a, lrmult: 2}]}",
         "job.yaml:3:29: train.groups: unknown key \"lrmult\"; did you mean \"lr_mult\"?"},
        {"train: {groups: [a]}", "train.groups: expected keys and values"},
        {"train: {stop: {patience: 3}}",
         "job.yaml:3:15: train.stop watches loss on validation data, but there is none; give data.val"},
        {"train: {stop: {metric: a}}", "train.stop: neither `patience` nor `target` is given"},
        {"train: 3", "job.yaml:3:8: train: expected keys and values, got a single value"},
        {"checkpoint: {every: 500}",
         "job.yaml:3:21: checkpoint.every: \"500\" is not a duration, expected a number and a "
         "unit: steps, samples, epochs"},
        {"checkpoint: {every: ten steps}", "\"ten steps\" is not a duration"},
        {"checkpoint: {every: 0 steps}", "job.yaml:3:21: checkpoint.every is \"0 steps\", expected more than 0"},
        {"checkpoint: {keep: 0}", "keep is \"0\", expected 1.."},
        {"checkpoint: {best: accuracy}", "job.yaml:3:20: checkpoint.best is accuracy, but there is no validation data"},
        {"batch_norm: {group: 0}",
         "job.yaml:3:21: batch_norm: group is \"0\", expected batch or rank or shard or 1.. (samples)"},
        {"batch_norm: {group: ranks}",
         "group is \"ranks\", expected batch or rank or shard or 1.. (samples); did you mean \"rank\"?"},
        {"plan: {passes_off: {a: b}}", "passes_off is a map, expected a list of names"},
        {"plan: {passes_off: [[a]]}", "passes_off is a list, expected a name"},
        {"plan: {kernels: refrence}", "did you mean \"reference\"?"},
        {"comm: {bucket: 0}", "bucket is \"0\", expected auto or 1.. (bytes)"},
        {"update: async", "job.yaml:3:9: update: mode is \"async\", expected "
                          "sync|delayed|local|parameter_server|zero1; did you mean \"sync\"?"},
        {"update: [sync]", "job.yaml:3:9: update is a list, expected a word or a map {mode: ...}"},
        {"update: {every: 8}", "job.yaml:3:9: update: the key \"mode\" is missing"},
        {"update: {mode: sync, every: 8}", "job.yaml:3:22: update (sync): unknown key \"every\""},
        {"update: {mode: local, every: 0}", "update (local): every is \"0\", expected 1.. (steps)"},
        {"update: {mode: local, evry: 8}", "update (local): unknown key \"evry\"; did you mean \"every\"?"},
        {"update: {mode: delayed, warm_up: 10}", "job.yaml:3:34: update.warm_up is \"10\", expected a share of the "
                                                 "run such as 5 %, or a number of steps or epochs"},
        {"update: {mode: delayed, warm_up: 10 s}", "update.warm_up is \"10 s\", expected a share of the run"},
        {"update: {mode: delayed, cool_down: 120 %}", "update.cool_down is \"120 %\", expected a share of the run"},
        {"update: {mode: parameter_server, servers: 0}",
         "update (parameter_server): servers is \"0\", expected 1.. (ranks)"},
        {"update: {mode: parameter_server, staleness: -1}",
         "job.yaml:3:45: update (parameter_server): staleness is \"-1\", expected none or 0.. (steps)"},
        {"parallel: {strategy: tensor}", "strategy is \"tensor\", expected data"},
        {"watchdog: {timeout: 5 steps}",
         "job.yaml:3:21: watchdog.timeout is \"5 steps\", expected a number of s, min or h"},
        {"watchdog: {timeout: soon}", "watchdog.timeout is \"soon\", expected a number of s, min or h: at least 1 s"},
        {"deterministic: true\ndeterministic_shards: 6",
         "job.yaml:4:23: job: deterministic_shards is \"6\", expected a power of two, 1..4096"},
        {"deterministic: true\ntrain: {batch: 4}",
         "train.batch is 4, but with deterministic: true a step is computed in 8 parts (deterministic_shards)"},
        {"deterministic: true\ntrain: {batch_per_rank: 4}",
         "train.batch_per_rank is given, which does not go with deterministic: true: it makes the batch depend on the "
         "ranks"},
        {"deterministic: true\ntrain: {accumulate: 2}",
         "train.accumulate is more than 1, which does not go with deterministic: true"},
        {"deterministic: true\nupdate: local", "update is local, which does not go with deterministic: true"},
        {"deterministic: true\ncomm: {overlap: forward}",
         "comm.overlap is forward, which does not go with deterministic: true"},
        {"deterministic: true\ncomm: {wire: bf16}", "comm.wire is bf16, which does not go with deterministic: true"},
        {"deterministic: true\ncomm: {algorithm: ring}",
         "comm.algorithm is ring, which does not go with deterministic: true"},
        {"deterministic: true\nplan: {planning: patient}",
         "plan.planning is patient, which does not go with deterministic: true"},
        {"deterministic: true\nbatch_norm: {group: rank}",
         "batch_norm.group is rank, which does not go with deterministic: true"},
        {"deterministic: true\nbatch_norm: {group: 32}",
         "batch_norm.group is 32 samples, but with deterministic: true a shard has 16"},
        {"batch_norm: {group: shard}", "batch_norm.group is shard, but only deterministic: true has shards"},
        {"deterministic: perhaps", "deterministic is \"perhaps\", expected true or false"},
        {"name: a/b", "job.yaml:3:7: name is \"a/b\", expected a word without /"},
        {"log: {every: 0}", "every is \"0\", expected 1.. (steps)"},
        {"model: vgg-a", "job.yaml:3:1: key \"model\" is given twice, first at job.yaml:1:1"},
    };
    for (int i = 0; i < CVY_COUNT(rows); i++) {
        char text[512];
        cvy_job *job = NULL;
        snprintf(text, sizeof text, "%s%s\n", head, rows[i].yaml);
        EXPECT_FAULT(parse(text, &job), CVY_E_CONFIG, rows[i].text);
        EXPECT(job == NULL);
    }
}

static void errors_of_the_whole(void)
{
    cvy_job *job = NULL;
    EXPECT_FAULT(parse("", &job), CVY_E_CONFIG, "job.yaml: job: the key \"model\" is missing");
    EXPECT_FAULT(parse("- a\n", &job), CVY_E_CONFIG, "job.yaml:1:1: a job file is a map");
    EXPECT_FAULT(parse("data: {train: a}\n", &job), CVY_E_CONFIG, "the key \"model\" is missing");
    EXPECT_FAULT(parse("model: lenet\n", &job), CVY_E_CONFIG, "job.yaml: data: the key \"train\" is missing");
    EXPECT_FAULT(parse("model: [a]\ndata: {train: a}\n", &job), CVY_E_CONFIG, "job.yaml:1:8: model is a list");
    EXPECT_FAULT(parse("model: a\ndata: {train: []}\n", &job), CVY_E_CONFIG,
                 "job.yaml:2:15: data.train is an empty list");
    EXPECT_FAULT(parse("model: a\ndata: {train: a, val: 1.5}\n", &job), CVY_E_CONFIG,
                 "job.yaml:2:23: data.val is 1.5, expected a share");
    EXPECT_FAULT(parse("model: a\ndata: {train: a, val: 100%}\n", &job), CVY_E_CONFIG,
                 "data.val is 100%, expected a share");
    EXPECT_FAULT(parse("model: a\ndata: {train: a, augment: mirror}\n", &job), CVY_E_CONFIG,
                 "data.augment is not a list");
    EXPECT_FAULT(parse("model: a\ndata: {train: a, tail: kep}\n", &job), CVY_E_CONFIG,
                 "tail is \"kep\", expected keep|drop; did you mean \"keep\"?");
    EXPECT_FAULT(cvy_job_parse_file("/nowhere/x.yaml", NULL, 0, &job), CVY_E_IO, "/nowhere/x.yaml: cannot open");
    EXPECT(job == NULL);
}

static void sources_for_validation(void)
{
    static const struct {
        const char *val;
        double share;
    } rows[] = {{"10%", .1},  {"'12.5%'", .125}, {"0.3", .3}, {"val.pack", 0},
                {"'0.3'", 0}, {"{path: x}", 0},  {"null", 0}};
    for (int i = 0; i < CVY_COUNT(rows); i++) {
        char text[100];
        snprintf(text, sizeof text, "model: a\ndata: {train: a, val: %s}\n", rows[i].val);
        cvy_job *job = must_parse(text);
        EXPECT_NEAR(job->data.val_share, rows[i].share, 1e-15);
        cvy_job_destroy(&job);
    }
}

/* What a C program asks a job for by name. */
static void values_by_key(void)
{
    static const struct {
        const char *key, *value;
    } rows[] = {
        {"model", "lenet"},
        {"train.batch", "128"},
        {"data.test", "null"},
        {"data.train", "{format: lmdb, path: \"a: b\", range: [0, 3], options: {x: [1, {y: 2}]}}"},
        {"train.groups", "[{match: \"*\", frozen: true}]"},
    };
    cvy_job *job = must_parse("model: lenet\ndata:\n  train: {format: lmdb, path: 'a: b', range: [0, 3], options: {x: "
                              "[1, {y: 2}]}}\ntrain: {groups: [{match: '*', frozen: true}]}\n");
    char *text = NULL;
    for (int i = 0; i < CVY_COUNT(rows); i++) {
        EXPECT_OK(cvy_job_value(job, rows[i].key, &text));
        EXPECT_TEXT(text, rows[i].value);
        cvy_mem_free(&text);
    }
    EXPECT_FAULT(cvy_job_value(job, "train.bacth", &text), CVY_E_ARGUMENT,
                 "a job has no key \"train.bacth\"; did you mean \"batch\"?");
    EXPECT_FAULT(cvy_job_value(job, "model.name.x", &text), CVY_E_ARGUMENT, "a job has no key \"model.name.x\"");
    EXPECT(text == NULL);
    cvy_job_destroy(&job);
}

static void durations(void)
{
    static const struct {
        const char *text;
        double amount;
        cvy_duration_unit unit;
    } rows[] = {{"500 steps", 500, CVY_DURATION_STEPS},     {"1 step", 1, CVY_DURATION_STEPS},
                {"1 epoch", 1, CVY_DURATION_EPOCHS},        {"0.5 epochs", .5, CVY_DURATION_EPOCHS},
                {"5epochs", 5, CVY_DURATION_EPOCHS},        {"30 s", 30, CVY_DURATION_SECONDS},
                {"10 min", 600, CVY_DURATION_SECONDS},      {"2h", 7200, CVY_DURATION_SECONDS},
                {"1e3 samples", 1000, CVY_DURATION_SAMPLES}};
    static const char *const bad[] = {"", "5", "steps", "-1 steps", "1 parsec", "1 2 steps", "1 steps more"};
    cvy_duration d = {0};
    for (int i = 0; i < CVY_COUNT(rows); i++) {
        EXPECT_OK(cvy_duration_parse(rows[i].text, &d));
        EXPECT(d.amount == rows[i].amount && d.unit == rows[i].unit);
    }
    for (int i = 0; i < CVY_COUNT(bad); i++)
        EXPECT_FAULT(cvy_duration_parse(bad[i], &d), CVY_E_ARGUMENT, "is not a duration");
}

static void batches(void)
{
    int64_t batch = 0;
    cvy_job *job = must_parse("model: a\ndata: {train: a}\ntrain: {batch: 3}\n");
    EXPECT_OK(cvy_job_batch(job, 3, &batch));
    EXPECT_INT(batch, 3);
    EXPECT_FAULT(cvy_job_batch(job, 4, &batch), CVY_E_CONFIG, "train.batch is 3, but there are 4 ranks");
    cvy_job_destroy(&job);
    job = must_parse("model: a\ndata: {train: a}\ntrain: {batch_per_rank: 3}\n");
    EXPECT_OK(cvy_job_batch(job, 4, &batch));
    EXPECT_INT(batch, 12);
    cvy_job_destroy(&job);
}

static cvy_status parse_and_print(void)
{
    cvy_job *job = NULL;
    char *text = NULL;
    uint64_t hash = 0;
    const char *const set = "train.seed=3";
    CVY_TRY(cvy_job_parse_text("job.yaml", full, &set, 1, &job));
    cvy_status status = cvy_job_print(job, &text);
    if (status == CVY_OK)
        status = cvy_job_hash(job, &hash);
    cvy_mem_free(&text);
    if (status == CVY_OK)
        status = cvy_job_help(&text);
    cvy_mem_free(&text);
    if (status == CVY_OK)
        status = cvy_job_manual(&text);
    cvy_mem_free(&text);
    cvy_job_destroy(&job);
    return status;
}

/* Scores of metrics that come once have their names; further options are in the names of the others. */
static void names_of_scores(void)
{
    static const struct {
        const char *metrics, *titles;
    } rows[] = {
        {"accuracy", "accuracy"},
        {"[accuracy, {name: top_k, k: 3}]", "accuracy top_k"},
        {"[{name: top_k, k: 1}, {name: top_k, k: 5}]", "top_k_1 top_k_5"},
        {"[top_k, auc, {name: top_k, k: 3}]", "top_k auc top_k_3"},
        {"[{name: efficiency_at_fpr, fpr: 0.01}, {name: efficiency_at_fpr, fpr: 0.1, positive: 0}]",
         "efficiency_at_fpr_0.01 efficiency_at_fpr_0.1_positive_0"},
        {"[{name: iou, leave_out: [0, 2]}, iou, {name: dice, leave_out: [1]}]", "iou_leave_out_0-2 iou dice"},
        {"[{name: r2, average: variance}, {name: r2}]", "r2_average_variance r2"},
        {"[coverage, {name: coverage, levels: [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95]}]", "coverage coverage.2"},
        {"[{name: top_k, k: 3, ignore_label: [-1000001, -1000002, -1000003, -1000004]}, {name: top_k, k: 1}]",
         "top_k.1 top_k_1"},
    };
    for (int i = 0; i < CVY_COUNT(rows); i++) {
        char text[256], titles[256] = "";
        snprintf(text, sizeof text, "model: lenet\ndata: {train: x}\ntrain: {metrics: %s}\n", rows[i].metrics);
        cvy_job *job = must_parse(text);
        for (int k = 0; job && k < job->train.nmetric; k++)
            snprintf(titles + strlen(titles), sizeof titles - strlen(titles), "%s%s", k ? " " : "",
                     job->train.metric[k].title);
        if (strcmp(titles, rows[i].titles) != 0)
            TEST_FAIL("%s: '%s', expected '%s'", rows[i].metrics, titles, rows[i].titles);
        cvy_job_destroy(&job);
    }
}

static void no_memory(void)
{
    EXPECT_SURVIVES_NO_MEMORY(parse_and_print());
}

static void help(void)
{
    char *text = NULL;
    EXPECT_OK(cvy_job_help(&text));
    EXPECT(text && strstr(text, "\ncheckpoint: what is saved\n  every       text = 1 epoch: how often to save"));
    EXPECT(text && strstr(text, "\ntrain.optimizer: "));
    cvy_mem_free(&text);
}

/* ---- the page ---- */

static const char *manual_path(char *buffer, size_t room)
{
    const char *source = getenv("CONVOY_SOURCE"), *here = strstr(__FILE__, "tests/job/");
    if (source)
        snprintf(buffer, room, "%s/docs/reference/job-file.md", source);
    else
        snprintf(buffer, room, "%.*sdocs/reference/job-file.md", here ? (int)(here - __FILE__) : 0, __FILE__);
    return buffer;
}

/* Files, overrides and resolved jobs of older versions are still read. */
static void old_words_are_read(void)
{
    static const struct {
        const char *text, *set, *mode, *note;
    } rows[] = {
        {"update: pipelined", NULL, "delayed", "job.yaml:3:9: update: pipelined is called delayed now"},
        {"update: {mode: pipelined, warm_up: 0 %}", NULL, "delayed",
         "job.yaml:3:16: update.mode: pipelined is called delayed now"},
        {"update: sharded", NULL, "zero1", "job.yaml:3:9: update: sharded is called zero1 now"},
        {"seed: 1", "update=sharded", "zero1", "--set update=sharded: update: sharded is called zero1 now"},
        {"update: {mode: sync}", "update.mode=pipelined", "delayed",
         "--set update.mode=pipelined: update.mode: pipelined is called delayed now"},
        {"update: delayed", NULL, "delayed", NULL},
        {"data: {train: x, stage: d, stage_keep: true}", NULL, "sync",
         "job.yaml:2:40: the key data.stage_keep is gone: copies are removed at the end; to keep them, copy the files "
         "in "
         "the job script and name the copies in data.train"},
        {"comm: {progress: mpi}", NULL, "sync",
         "job.yaml:3:18: comm.progress: mpi is gone, and poll takes its place: comm.algorithm: library uses "
         "all-reduces "
         "of the MPI library"},
        {"data: {stage_keep: false, train: x}", NULL, "sync", NULL},
        {"seed: 1", "data.stage_keep=on", "sync",
         "--set data.stage_keep=on: the key data.stage_keep is gone: copies are removed at the end; to keep them, copy "
         "the files in the job script and name the copies in data.train"},
    };
    for (int i = 0; i < CVY_COUNT(rows); i++) {
        cvy_job *job = NULL;
        char text[200];
        const char *const sets[] = {rows[i].set};
        snprintf(text, sizeof text, "model: lenet\n%s%s\n", strstr(rows[i].text, "data:") ? "" : "data: {train: x}\n",
                 strcmp(rows[i].text, "seed: 1") == 0 ? "" : rows[i].text);
        const cvy_status status = cvy_job_parse_text("job.yaml", text, sets, rows[i].set != NULL, &job);
        if (rows[i].mode) {
            EXPECT_OK(status);
            EXPECT_TEXT(job->update.def->name, rows[i].mode);
            EXPECT((rows[i].note == NULL) == (job->renamed == NULL));
            if (rows[i].note)
                EXPECT_TEXT(job->renamed, rows[i].note);
        }
        cvy_job_destroy(&job);
    }
}

static void page_is_up_to_date(void)
{
    char path[1024], *page = NULL, *wanted = NULL;
    size_t bytes = 0;
    EXPECT_OK(cvy_job_manual(&wanted));
    EXPECT_OK(cvy_file_read(manual_path(path, sizeof path), 1 << 20, &page, &bytes));
    size_t same = 0;
    while (page && wanted && page[same] && page[same] == wanted[same])
        same++;
    if (page && wanted && page[same] != wanted[same])
        printf("docs/reference/job-file.md differs from the tables; run test_job --write.\nthe page: %.200s\nthe "
               "tables: %.200s\n",
               page + same, wanted + same);
    EXPECT(page && wanted && strcmp(page, wanted) == 0);
    cvy_mem_free(&page);
    cvy_mem_free(&wanted);
}

/* The text between ```yaml and ``` must be a valid job. */
static void example_of_the_page_parses(void)
{
    char *page = NULL;
    EXPECT_OK(cvy_job_manual(&page));
    char *begin = page ? strstr(page, "```yaml\n") : NULL, *end = begin ? strstr(begin + 8, "```") : NULL;
    EXPECT(begin && end);
    if (begin && end) {
        *end = 0;
        cvy_job *job = must_parse(begin + 8);
        EXPECT_TEXT(job->train.optimizer, "adam");
        cvy_job_destroy(&job);
    }
    cvy_mem_free(&page);
}

static int write_page(void)
{
    char path[1024], *page = NULL;
    EXPECT_OK(cvy_job_manual(&page));
    if (page)
        EXPECT_OK(cvy_file_replace(manual_path(path, sizeof path), page, strlen(page)));
    cvy_mem_free(&page);
    return test_end();
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--write") == 0)
        return write_page();
    TEST(defaults);
    TEST(words_for_true_and_false);
    TEST(everything);
    TEST(resolved_parses_back);
    TEST(kept_presets_are_left_out);
    TEST(turns_are_printed);
    TEST(hash_is_of_what_counts);
    TEST(overrides);
    TEST(overrides_of_short_forms);
    TEST(bad_overrides);
    TEST(errors);
    TEST(errors_of_the_whole);
    TEST(sources_for_validation);
    TEST(values_by_key);
    TEST(durations);
    TEST(batches);
    TEST(names_of_scores);
    TEST(no_memory);
    TEST(help);
    TEST(old_words_are_read);
    TEST(page_is_up_to_date);
    TEST(example_of_the_page_parses);
    return test_end();
}
