/* rows: clang asan */
/*
 * test_job_refused.c: a job with a typing error or a value out of range is refused before the first step, with
 * position, value and what was expected, and leaves no run folder. Each case is one change of a valid job.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <convoy/convoy.h>

#include "base/base_file.h"
#include "base/tree_confusion.h"
#include "job/job.h"
#include "measure/measure.h"
#include "test_util.h"

static const char job_text[] = "model:\n"
                               "  layers:\n"
                               "    - conv: {channels: 4, kernel: 3, pad: 1}\n"
                               "    - relu\n"
                               "    - max_pool: {kernel: 2}\n"
                               "    - fc: {channels: 4}\n"
                               "data:\n"
                               "  train: {format: synthetic, samples: 64, shape: [3, 8, 8], classes: 4}\n"
                               "  val: 25%\n"
                               "  augment: [mirror, {random_crop: {size: 8, pad: 1}}]\n"
                               "train:\n"
                               "  batch: 16\n"
                               "  epochs: 2\n"
                               "  optimizer: {name: sgd, lr: 0.01, momentum: 0.9}\n"
                               "  schedule: {name: step, every: 1 epoch, factor: 0.5}\n"
                               "  loss: softmax_cross_entropy\n"
                               "  metrics: [accuracy]\n"
                               "checkpoint: {every: 2 steps}\n";

struct change {
    const char *from, *to; /* the first `from` in the job is replaced by `to` */
    const char *said;      /* part of the message */
};

/* ---- keys: the position and the nearest known key ---- */
static const struct change keys[] = {
    {"epochs:", "epoch:", "job:13:3: train: unknown key \"epoch\"; did you mean \"epochs\"?"},
    {"\ncheckpoint", "\nchekpoint", "job:18:1: job: unknown key \"chekpoint\"; did you mean \"checkpoint\"?"},
    {"\ndata:", "\ndaten: 1\ndata:", "job:7:1: job: unknown key \"daten\", expected one of: name, model"},
    {"  layers", "  layerz", "job:2:3: unknown key 'layerz' in `model`, did you mean 'layers'?"},
    {"channels: 4, kernel", "chanels: 4, kernel",
     "job:3:14: conv1: unknown key \"chanels\"; did you mean \"channels\"?"},
    {"kernel: 2", "kernal: 2", "job:5:18: max_pool1: unknown key \"kernal\"; did you mean \"kernel\"?"},
    {"max_pool", "max_pol", "job:5:7: there is no layer type 'max_pol', did you mean 'max_pool'?"},
    {"- relu", "- relu: {name: a b}", "the name of layer 'a b' or of its output 'a b' has a blank or a comma"},
    {"- relu", "- relu: {from: nowhere}", "layer relu1: there is no input and no earlier layer 'nowhere'"},
    {"momentum", "momemtum", "job:14:36: sgd: unknown key \"momemtum\"; did you mean \"momentum\"?"},
    {"name: sgd", "name: fc_grad_sgd", "train.optimizer: there is no optimiser 'fc_grad_sgd'"},
    {"name: sgd", "name: sdg", "job:14:14: train.optimizer: there is no optimiser 'sdg', did you mean 'sgd'?"},
    {"factor", "facter", "job:15:42: schedule: unknown key \"facter\"; did you mean \"factor\"?"},
    {"name: step", "name: stepp", "job:15:20: there is no schedule 'stepp', did you mean 'step'?; there are "},
    {"softmax_cross_entropy", "softmax_crossentropy",
     "job:16:9: train.loss: there is no loss 'softmax_crossentropy', did you mean 'softmax_cross_entropy'?"},
    {"loss: softmax_cross_entropy", "loss: {name: softmax_cross_entropy, label_smothing: 0.1}",
     "job:16:39: loss: unknown key \"label_smothing\"; did you mean \"label_smoothing\"?"},
    {"[accuracy]", "[acuracy]",
     "job:17:13: train.metrics: there is no metric 'acuracy', did you mean 'accuracy'?; there are "},
    {"[accuracy]", "[{name: top_k, kk: 3}]", "job:17:27: top_k: unknown key \"kk\"; did you mean \"k\"?"},
    {"[accuracy]", "[rmse]",
     "train.metrics: rmse compares numbers, but the target in synthetic is labels of classes; take accuracy"},
    {"mirror", "miror", "job:10:13: there is no augmentation 'miror', did you mean 'mirror'?"},
    {"pad: 1}}]", "padd: 1}}]", "job:10:45: augmentation random_crop: unknown key \"padd\"; did you mean \"pad\"?"},
    {"format: synthetic", "format: synthetik",
     "job:8:19: there is no data format 'synthetik', did you mean 'synthetic'?"},
    {"shape: [3", "shap: [3", "job:8:43: data format synthetic: unknown key \"shap\"; did you mean \"shape\"?"},
    {"every: 2 steps", "every: 2 steps, best: acuracy",
     "job:18:36: checkpoint.best: validation has no score 'acuracy', did you mean 'accuracy'?"},
    {"epochs: 2", "epochs: 2\n  stop: {metric: los, patience: 1}",
     "job:14:9: train.stop: validation has no score 'los', did you mean 'loss'? it has loss, accuracy (train.metrics)"},
    {"metrics: [accuracy]", "metrics: [{name: top_k, k: 1}, {name: top_k, k: 3}]\n  stop: {metric: top_k, patience: 1}",
     "train.stop: validation has no score 'top_k', did you mean 'top_k_1'? it has loss, top_k_1, top_k_3 (train"},
    {"[accuracy]", "[accuracy, accuracy]", "job:17:12: train.metrics has accuracy twice with the same options"},
    {"[accuracy]", "[top_k, accuracy, {name: top_k, k: 5}]", "train.metrics has top_k twice with the same options"},
    {"batch: 16", "batch: 16\n  batch: 16", "job:13:3: key \"batch\" is given twice, first at job:12:3"},
    {"batch: 16", "batch: 16\n  batch_per_rank: 16",
     "train.batch is 16 and train.batch_per_rank is 16; give one of them"},
    {"val:", ": :", "job:9:3: did not find expected key, while parsing a block mapping"},
};

/* ---- values: out of range, too much, too little ---- */
static const struct change values[] = {
    {"batch: 16", "batch: -4", "job:12:10: train: batch is \"-4\", expected 1.. (samples)"},
    {"batch: 16", "batch: 0", "job:12:10: train: batch is \"0\", expected 1.. (samples)"},
    {"loss: softmax_cross_entropy", "loss: {name: softmax_cross_entropy, label_smoothing: 1.5}",
     "job:16:56: loss: label_smoothing is \"1.5\", expected 0..1"},
    {"every: 1 epoch", "every: 30",
     "job:15:33: schedule: every is 30, a number without a unit; write \"30 steps\", \"30 epochs\" or \"30 samples\""},
    {"name: sgd, lr: 0.01", "name: lars, trust_coefficient: 0",
     "job:14:46: lars: trust_coefficient is \"0\", expected >0"},
    {"name: sgd, lr: 0.01", "name: lars, nesterov: true", "job:14:27: lars: unknown key \"nesterov\""},
    {"batch: 16", "batch: 16\n  lr_rule: sqrtt",
     "job:13:12: train: lr_rule is \"sqrtt\", expected none|linear|sqrt; did you mean \"sqrt\"?"},
    {"epochs: 2", "epochs: 0", "job:13:11: train: epochs is \"0\", expected >0"},
    {"epochs: 2", "epochs: 1e300", "job:13:11: train.epochs: "},
    {"lr: 0.01", "lr: -1", "job:14:30: train.optimizer: lr is \"-1\", expected >0"},
    {"lr: 0.01", "lr: nan", "job:14:30: train.optimizer: lr is \"nan\", expected a number"},
    {"epochs: 2", "seed: -1", "job:13:9: train: seed is \"-1\", expected 0.."},
    {"metrics: [accuracy]", "metrics: [accuracy]\nlog: {trace: nowhere/trace.json}", "nowhere/trace.json.aside"},
    {"val: 25%", "val: 250%", "data.val is 250%, expected a share of the training data between 0 and 1"},
    {"every: 2 steps", "every: 2 stepps",
     "job:18:21: checkpoint.every: \"2 stepps\" is not a duration, expected a number and a unit: steps"},
    {"kernel: 2", "kernel: 0", "job:5:26: max_pool1: kernel is \"0\", expected 1.."},
    {"channels: 4, kernel", "channels: 0, kernel", "job:3:24: conv1: channels is \"0\", expected 1.."},
    {"samples: 64", "samples: 0", "job:8:39: data format synthetic: samples is \"0\", expected 1.."},
    {"samples: 64", "samples: many", "job:8:39: data format synthetic: samples is \"many\", expected a whole number"},
    {"[3, 8, 8]", "[3, 0, 8]", "job:8:54: data format synthetic: shape is \"0\", expected 1.."},
    {"classes: 4", "classes: -1", "job:8:70: data format synthetic: classes is \"-1\", expected 0.."},
    {"classes: 4", "classes: 0",
     "job:8:70: a loss needs a target, but the data of synthetic have no labels, since classes is 0"},
    {"size: 8", "size: 0", "job:10:42: augmentation random_crop: size is \"0\", expected 1.. (pixels)"},
    {"size: 8", "size: 100", "job:10:21: random_crop of 100x100 does not fit into a picture of 8x8 with pad 1"},
    {"kernel: 2", "kernel: 20",
     "layer max_pool1 (max_pool): max_pool: a window of 20 positions does not fit spatial dimension 0 of source "
     "16x4x8x8"},
    {"- fc: {channels: 4}", "- fc: {channels: 3}", "gives 3 outputs for each sample, but the data have 4 classes"},
    {"samples: 64, shape: [3, 8, 8], classes: 4}\n  val: 25%\n  augment: [mirror, {random_crop: {size: 8, pad: "
     "1}}]\ntrain:\n  batch: 16",
     "samples: 4e12, shape: [3, 8, 8], classes: 4}\ntrain:\n  batch: 1e12",
     "network with a batch of 1000000000000 needs "},
    {"channels: 4, kernel", "channels: 1e12, kernel",
     "conv1 would be 16x1000000000000x8x8, more elements than any memory can hold"},
    {"[3, 8, 8]", "[3000000, 3000000, 3000000]", "bytes is more than this machine can address"},
};

/* ---- files that do not exist, or have other contents ---- */
static const struct change files[] = {
    {"{format: synthetic, samples: 64, shape: [3, 8, 8], classes: 4}", "nowhere", "nowhere: no such file or folder"},
    {"{format: synthetic, samples: 64, shape: [3, 8, 8], classes: 4}", "empty",
     "empty: an empty data folder, expected pictures (*.jpg, *.jpeg, *.png) or one folder of them for each class"},
    {"{format: synthetic, samples: 64, shape: [3, 8, 8], classes: 4}", "none",
     "none: this folder is not in any format that is known"},
    {"{format: synthetic, samples: 64, shape: [3, 8, 8], classes: 4}", "job.yaml",
     "job.yaml: this file is not in any format that is known"},
    {"epochs: 2", "init: nowhere.safetensors", "nowhere.safetensors: cannot open: No such file or directory"},
    {"epochs: 2", "init: job.yaml", "truncated, or not safetensors"},
    {"epochs: 2", "init: empty", "job:13:9: train.init: empty is a folder without a checkpoint"},
    {"epochs: 2", "init: [a, b]", "job:13:9: train.init is a list, expected a file, the folder of a run, or a map"},
    {"epochs: 2", "init: {from: a, skip: [[b]]}", "train.init.skip: expected a pattern or a list of patterns"},
    {"epochs: 2", "init: {from: a, rename: [b]}", "train.init.rename: expected a map of regular expressions"},
};

static cvy_context *context;

static cvy_status train(const char *text, const char *set)
{
    const cvy_job_source job = {.size = sizeof job, .text = text, .sets = &set, .nsets = set != NULL};
    const cvy_train_opts opts = {.size = sizeof opts, .out = "run"};
    return cvy_run_train(context, &job, &opts, NULL);
}

static void refuse(const struct change *change, int count)
{
    for (int i = 0; i < count; i++) {
        char text[2048];
        const char *at = strstr(job_text, change[i].from);
        EXPECT(at != NULL);
        if (!at)
            continue;
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - job_text), job_text, change[i].to,
                 at + strlen(change[i].from));
        const cvy_status status = train(text, NULL);
        const int said = status < 0 && strstr(cvy_error_text(), change[i].said), left = cvy_file_exists("run");
        if (!said || left)
            printf("\"%s\" as \"%s\": %s: %s%s\n", change[i].from, change[i].to, cvy_status_text(status),
                   status < 0 ? cvy_error_text() : "", left ? "; the run folder is left" : "");
        EXPECT(said);
        EXPECT(!left);
        (void)!cvy_file_remove_tree("run");
    }
}

static void mistyped_keys(void)
{
    refuse(keys, CVY_COUNT(keys));
}

static void bad_values(void)
{
    refuse(values, CVY_COUNT(values));
}

static void missing_files(void)
{
    EXPECT_OK(cvy_file_make_folder("empty"));
    EXPECT_OK(cvy_file_make_folder("none/a"));
    EXPECT_OK(cvy_file_replace("job.yaml", job_text, strlen(job_text)));
    refuse(files, CVY_COUNT(files));
}

/* The same errors on the command line, where there are no line numbers. */
static void overrides(void)
{
    EXPECT_FAULT(train(job_text, "train.batchh=3"), CVY_E_CONFIG,
                 "--set train.batchh=3: train: unknown key \"batchh\"; did you mean \"batch\"?");
    EXPECT_FAULT(train(job_text, "train.batch=[1, 2]"), CVY_E_CONFIG,
                 "--set train.batch=[1, 2]: train: batch is a list, expected a whole number (samples)");
    EXPECT_FAULT(train(job_text, "train.optimizer.lr.x=3"), CVY_E_CONFIG,
                 "cannot set a key below \"lr\": the value at job:14:30 is not a map");
    EXPECT_FAULT(train(job_text, "=3"), CVY_E_CONFIG, "--set =3: expected key=value, such as train.batch=64");
    EXPECT_FAULT(train(job_text, "model="), CVY_E_CONFIG, "job: the key \"model\" is missing");
}

/* A metric compares the main output with the target, so their sizes must fit. That is checked before the first step,
 * and by a plan. Defaults that do not fit are left out. Without validation data, names and options are checked too. */
static void metrics_that_do_not_fit(void)
{
    static const char two_outputs[] =
        "model: {layers: [{fc: {channels: 3, name: answer}}, {fc: {channels: 2}}]}\n"
        "data: {train: {format: synthetic, samples: 32, shape: [6], targets: 3}, val: 25%}\n"
        "train: {batch: 8, epochs: 1, loss: {name: mse, output: answer}}\n";
    static const char said[] = "train.metrics: rmse compares an output of 2 with 2 targets, but y has 3 in each sample";
    const char *rmse = "train.metrics=[rmse]";
    const cvy_job_source job = {.size = sizeof job, .text = two_outputs, .sets = &rmse, .nsets = 1};
    char *plan = NULL;
    EXPECT_FAULT(train(two_outputs, rmse), CVY_E_SHAPE, said);
    EXPECT_FAULT(cvy_run_plan(context, &job, NULL, "table", &plan), CVY_E_SHAPE, said);
    EXPECT(!cvy_file_exists("run"));
    for (int i = 0; i < 3; i++) {
        static const char *const sets[] = {NULL, "train.metrics=none", "train.metrics=[]"};
        EXPECT_OK(train(two_outputs, sets[i]));
        EXPECT_OK(cvy_file_remove_tree("run"));
    }
    EXPECT_FAULT(train(job_text, "train={metrics: none, stop: {metric: accuracy, patience: 1}}"), CVY_E_CONFIG,
                 "train.stop: validation has no score 'accuracy'");
    static const char no_validation[] = "model: {layers: [{fc: {channels: 2}}]}\n"
                                        "data: {train: {format: synthetic, samples: 32, shape: [6], classes: 2}}\n"
                                        "train: {batch: 8}\n";
    EXPECT_FAULT(train(no_validation, "train.metrics=acuracy"), CVY_E_CONFIG, "did you mean 'accuracy'?");
    EXPECT_FAULT(train(no_validation, "train.metrics={name: top_k, kk: 3}"), CVY_E_CONFIG,
                 "unknown key \"kk\"; did you mean \"k\"?");
}

/* Checks that the job without a change is valid, so that the change makes a test fail. */
static void sound(void)
{
    EXPECT_OK(train(job_text, NULL));
    EXPECT_FAULT(train(job_text, NULL), CVY_E_IO,
                 "run exists already: choose another --out, or continue in it with --resume");
}

static cvy_status read_job(cvy_pool *pool, const char *text)
{
    cvy_job *job = NULL;
    (void)pool;
    const cvy_status status = cvy_job_parse_text("job", text, NULL, 0, &job);
    cvy_job_destroy(&job);
    return status;
}

/* Each kind of value in place of each value of a job. */
static void confusion_of_kinds(void)
{
    confuse(job_text, read_job);
    confuse(
        "{model: {layers: [{conv: {channels: 4, kernel: 3, name: c, trained: [weight]}}, {repeat: {times: 2, layers: "
        "[relu]}}, {fc: {channels: 4}}]}, data: {train: [{format: synthetic, samples: 8, shape: [3, 8, 8], classes: "
        "4}], "
        "val: 25%, augment: [mirror, {random_crop: {size: 8}}]}, train: {batch: 4, epochs: 1, loss: {name: "
        "softmax_cross_entropy, label_smoothing: 0.1}, metrics: [accuracy, {name: top_k, k: 2}], optimizer: {name: "
        "sgd, "
        "lr: 0.1}, schedule: {name: step, every: 1 epoch, factor: 0.5}}, plan: {passes_off: []}}",
        read_job);
}

int main(void)
{
    char folder[] = "/tmp/convoy-bad-job-XXXXXX";
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1, .log_level = CVY_LOG_ERROR};
    EXPECT(mkdtemp(folder) != NULL && chdir(folder) == 0);
    EXPECT_OK(cvy_context_create(&opts, &context));
    TEST(mistyped_keys);
    TEST(bad_values);
    TEST(missing_files);
    TEST(overrides);
    TEST(metrics_that_do_not_fit);
    TEST(sound);
    TEST(confusion_of_kinds);
    cvy_context_destroy(&context);
    (void)!cvy_file_remove_tree(folder);
    return test_end();
}
