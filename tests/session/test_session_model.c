/*
 * test_session_model.c: from a job and the description of the data to a model: which losses, on which output and field,
 * with how many outputs; and the options of a program and its training step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>

#include "program/program_impl.h"
#include "session/session_model.h"
#include "test_util.h"

static char x[] = "x", label[] = "label", y[] = "y", weight[] = "weight";

static cvy_dataset_info classes(void)
{
    cvy_dataset_info d = {.nfield = 2, .nclasses = 5, .path = "pictures"};
    d.field[0] = (cvy_field){x, CVY_DTYPE_F32, {3, {3, 8, 8}}};
    d.field[1] = (cvy_field){label, CVY_DTYPE_I32, {0}};
    return d;
}

static cvy_dataset_info numbers(void)
{
    cvy_dataset_info d = {.nfield = 3, .path = "arrays"};
    d.field[0] = (cvy_field){x, CVY_DTYPE_F32, {1, {6}}};
    d.field[1] = (cvy_field){y, CVY_DTYPE_F32, {1, {2}}};
    d.field[2] = (cvy_field){weight, CVY_DTYPE_F32, {0}};
    return d;
}

static cvy_job *must_parse(const char *text)
{
    cvy_job *job = NULL;
    EXPECT_OK(cvy_job_parse_text("job.yaml", text, NULL, 0, &job));
    if (!job)
        exit(test_end());
    return job;
}

/* Returns the inputs and the losses of the model that this job makes for the data, as "x label |
 * loss=softmax_cross_entropy(fc,label)". */
static const char *losses_of(const char *text, const cvy_dataset_info *data, int64_t *outputs_out)
{
    static char line[512];
    cvy_job *job = must_parse(text);
    cvy_model *m = NULL;
    int at = 0;
    const cvy_status status = cvy_job_model(job, NULL, data, 1, &m);
    for (int i = 0; m && i < m->ninput; i++)
        at += snprintf(line + at, sizeof line - (size_t)at, "%s ", m->input[i].name);
    at += snprintf(line + at, sizeof line - (size_t)at, "%s", status == CVY_OK ? "|" : cvy_error_text());
    for (int i = 0; m && i < m->nlayer; i++) {
        const cvy_layer *l = &m->layer[i];
        int64_t n = 0;
        if (outputs_out && strcmp(l->op->name, "fc") == 0 &&
            cvy_tree_int(cvy_tree_get(l->options, "channels"), &n) == CVY_OK)
            *outputs_out = n;
        if (!(l->op->flags & CVY_OP_LOSS))
            continue;
        at += snprintf(line + at, sizeof line - (size_t)at, " %s=%s(", l->output, l->op->name);
        for (int k = 0; k < l->nfrom; k++)
            at += snprintf(line + at, sizeof line - (size_t)at, "%s%s", k ? "," : "", l->from[k]);
        at += snprintf(line + at, sizeof line - (size_t)at, ")");
    }
    cvy_model_destroy(&m);
    cvy_job_destroy(&job);
    return line;
}

static void what_suits_the_data(void)
{
    const cvy_dataset_info c = classes(), n = numbers();
    int64_t outputs = 0;
    EXPECT_TEXT(losses_of("model: linear\ndata: {train: a}\n", &c, &outputs),
                "x label | loss=softmax_cross_entropy(fc,label)");
    EXPECT_INT(outputs, 5);
    EXPECT_TEXT(losses_of("model: linear\ndata: {train: a}\n", &n, &outputs), "x y weight | loss=mse(fc,y,weight)");
    EXPECT_INT(outputs, 2);
    /* no options, as a run's own description writes them */
    EXPECT_TEXT(
        losses_of("model: {layers: [{flatten: null}, {relu: }, {fc: {channels: 5}}]}\ndata: {train: a}\n", &c, NULL),
        "x label | loss=softmax_cross_entropy(fc1,label)");
    EXPECT_TEXT(losses_of("model: linear\ndata: {train: a, on_bad_sample: skip}\n", &c, NULL),
                "x label weight | loss=softmax_cross_entropy(fc,label,weight)");
}

static void what_the_job_says(void)
{
    const cvy_dataset_info c = classes(), n = numbers();
    int64_t outputs = 0;
    EXPECT_TEXT(losses_of("model: linear\ndata: {train: a}\ntrain: {loss: bce}\n", &c, &outputs),
                "x label | loss=bce(fc,label)");
    EXPECT_INT(outputs, 1);
    EXPECT_TEXT(losses_of("model: linear\ndata: {train: a}\ntrain: {loss: gaussian_nll}\n", &n, &outputs),
                "x y weight | loss=gaussian_nll(fc,y,weight)");
    EXPECT_INT(outputs, 4); /* mean and log variance of two targets */
    EXPECT_TEXT(losses_of("model: linear\ndata: {train: a}\ntrain: {loss: {name: quantile, levels: [0.1, 0.5, 0.9]}}\n",
                          &n, &outputs),
                "x y weight | loss=quantile(fc,y,weight)");
    EXPECT_INT(outputs, 6);
    EXPECT_TEXT(
        losses_of(
            "model: linear\ndata: {train: a}\ntrain: {loss: [{name: mse, weight: 0.5}, {name: huber, delta: 2}]}\n", &n,
            NULL),
        "x y weight | fc_loss=mse(fc,y,weight) fc_loss2=huber(fc,y,weight)");
    EXPECT(strstr(losses_of("model: linear\ndata: {train: a}\ntrain: {loss: {name: mse, target: z}}\n", &n, NULL),
                  "compares with 'z'") != NULL);
    EXPECT(strstr(losses_of("model: linear\ndata: {train: a}\ntrain: {loss: relu}\n", &c, NULL),
                  "there is no loss 'relu'") != NULL);
    EXPECT(strstr(losses_of("model: linear\ndata: {train: a}\ntrain: {loss: mean}\n", &n, NULL),
                  "mean compares nothing with a target") != NULL);
    EXPECT(strstr(losses_of("model: linear\ndata: {train: a}\ntrain: {loss: {name: mse, output: nothing}}\n", &n, NULL),
                  "'nothing'") != NULL);
}

static void what_the_network_says(void)
{
    const cvy_dataset_info c = classes(), n = numbers();
    EXPECT_TEXT(
        losses_of(
            "model: {layers: [{fc: {name: a, channels: 2}}, {mse: {name: own, from: [a, y]}}]}\ndata: {train: a}\n", &n,
            NULL),
        "x y | own=mse(a,y)");
    EXPECT(strstr(losses_of("model: {inputs: {x: 3x9x9}, layers: [{fc: {channels: 5}}]}\ndata: {train: a}\n", &c, NULL),
                  "input x is 3x9x9, but the data of pictures have 3x8x8") != NULL);
    EXPECT(strstr(losses_of("model: {inputs: {x: 3x8x8, mask: 1x8x8}, layers: [{fc: {channels: 5, from: "
                            "mask}}]}\ndata: {train: a}\n",
                            &c, NULL),
                  "reads 'mask'") != NULL);
    EXPECT(strstr(losses_of("model: {inputs: {x: 8x3x8}, layers: [{fc: {channels: 5}}]}\ndata: {train: a}\n", &c, NULL),
                  "channels: last") != NULL);
}

/* A network that gives probabilities ends with what the loss applies itself: then the loss reads what comes before. */
static void probabilities(void)
{
    const cvy_dataset_info c = classes(), n = numbers();
    EXPECT_TEXT(losses_of("model: {layers: [{fc: {name: a, channels: 5}}, softmax]}\ndata: {train: a}\n", &c, NULL),
                "x label | loss=softmax_cross_entropy(a,label)");
    EXPECT_TEXT(losses_of("model: {layers: [{fc: {name: a, channels: 1}}, {sigmoid: {name: p}}]}\ndata: {train: a}\n"
                          "train: {loss: [bce, mse]}\n",
                          &c, NULL),
                "x label | p_loss=bce(a,label) p_loss2=mse(p,label)");
    EXPECT_TEXT(losses_of("model: {layers: [{fc: {name: a, channels: 2}}, softmax]}\ndata: {train: a}\n", &n, NULL),
                "x y weight | loss=mse(softmax1,y,weight)");
    EXPECT_TEXT(losses_of("model: {layers: [{fc: {name: a, channels: 5}}, {softmax: {axis: -1}}]}\ndata: {train: a}\n",
                          &c, NULL),
                "x label | loss=softmax_cross_entropy(a,label)");
    EXPECT_TEXT(
        losses_of("model: {layers: [{fc: {name: a, channels: 5}}, {softmax: {name: p}}, {softmax_cross_entropy: "
                  "{name: own, from: [p, label]}}]}\ndata: {train: a}\n",
                  &c, NULL),
        "x label | own=softmax_cross_entropy(a,label)");
    EXPECT_TEXT(
        losses_of("model: {layers: [{fc: {name: a, channels: 5}}, softmax, {flatten: {name: p}}, {focal: {name: "
                  "one, from: [p, label]}}, {softmax_cross_entropy: {name: two, from: [p, label]}}]}\n"
                  "data: {train: a}\n",
                  &c, NULL),
        "x label | one=focal(p_logits,label) two=softmax_cross_entropy(p_logits,label)");
    EXPECT(
        strstr(losses_of("model: {layers: [{fc: {name: a, channels: 5}}, softmax, {flatten: {name: p}}, {focal: {name: "
                         "one, from: [p, label]}}, {scale: {by: 2, from: one}}]}\ndata: {train: a}\n",
                         &c, NULL),
               "change their order") != NULL);
}

/* Layers between the function and the output that only move its numbers are copied for the loss. */
static void moved_probabilities(void)
{
    const cvy_dataset_info c = classes();
    EXPECT_TEXT(losses_of("model: {layers: [{conv: {name: a, channels: 5, kernel: 8}}, softmax, {flatten: {name: p}}, "
                          "{dropout: {p: 0.5}}]}\ndata: {train: a}\n",
                          &c, NULL),
                "x label | loss=softmax_cross_entropy(p_logits,label)");
    EXPECT_TEXT(losses_of("model: {layers: [{fc: {name: a, channels: 5}}, softmax, {log: {name: p}}]}\n"
                          "data: {train: a}\n",
                          &c, NULL),
                "x label | loss=softmax_cross_entropy(a,label)");
    EXPECT_TEXT(losses_of("model: {layers: [{fc: {name: a, channels: 5}}, softmax, {scale: {name: s, by: 3}}]}\n"
                          "data: {train: a}\n",
                          &c, NULL),
                "x label | loss=softmax_cross_entropy(s,label)");
}

/* The layer that makes an output is not left out, although its loss reads what comes before it. */
static void looked_through(void)
{
    const cvy_dataset_info c = classes();
    cvy_job *job =
        must_parse("model: {layers: [{fc: {name: a, channels: 5}}, {softmax: {name: p}}, {fc: {name: b, "
                   "channels: 5, from: a}}, {softmax: {name: q}}, {relu: {name: idle, from: a}}], output: p}\n"
                   "data: {train: a}\n"
                   "train: {loss: [softmax_cross_entropy, {name: focal, output: q}]}\n");
    cvy_model *m = NULL;
    cvy_text unused = {0};
    int count = 0;
    EXPECT_OK(cvy_job_model(job, NULL, &c, CVY_LOSSES_NEEDED, &m));
    EXPECT_OK(cvy_model_list_unused(m, &unused, &count));
    EXPECT_INT(count, 1);
    EXPECT_TEXT(unused.data, "idle");
    cvy_text_free(&unused);
    cvy_model_destroy(&m);
    cvy_job_destroy(&job);
}

/* Softmax or sigmoid of probabilities is refused, but a network that was trained so by an older version is scored. */
static void functions_twice(void)
{
    static const struct {
        const char *text, *says;
    } row[] = {
        {"model: {layers: [{fc: {channels: 5}}, {sigmoid: {name: p}}]}\ndata: {train: a}\n", "leave this layer out"},
        {"model: {layers: [{fc: {channels: 5}}, {sigmoid: {name: p}}, {dropout: {p: 0.5}}]}\ndata: {train: a}\n"
         "train: {loss: focal}\n",
         "made by the sigmoid 'p'"},
        {"model: {layers: [{fc: {channels: 1}}, {softmax: {name: p}}]}\ndata: {train: a}\ntrain: {loss: bce}\n",
         "the loss bce applies sigmoid"},
        {"model: {layers: [{conv: {channels: 5, kernel: 1}}, {softmax: {name: p, axis: 3}}]}\ndata: {train: a}\n",
         "give 'p' the axis of the classes"},
        {"model: {layers: [{conv: {channels: 5, kernel: 1}}, {softmax: {name: p}}, flatten]}\ndata: {train: a}\n",
         "no longer in the order of its classes"},
        {"model: {layers: [{fc: {name: a, channels: 5}}, {sigmoid: {name: p}}, {softmax_cross_entropy: {name: own, "
         "from: [p, label]}}]}\ndata: {train: a}\n",
         "layer own: the loss softmax_cross_entropy"},
    };
    const cvy_dataset_info c = classes();
    for (int i = 0; i < CVY_COUNT(row); i++) {
        cvy_job *job = must_parse(row[i].text);
        cvy_model *m = NULL;
        EXPECT_FAULT(cvy_job_model(job, NULL, &c, CVY_LOSSES_NEEDED, &m), CVY_E_CONFIG, row[i].says);
        EXPECT_OK(cvy_job_model(job, NULL, &c, CVY_LOSSES_SCORED, &m));
        EXPECT(m && strcmp(m->scored, cvy_model_output(m)) == 0);
        cvy_model_destroy(&m);
        cvy_job_destroy(&job);
    }
}

/* The kind of the main output, and the layer that scores read. */
static void kinds(void)
{
#define LAYERS(list) "model: {layers: [" list "]}\ndata: {train: a}\n"
    static const struct {
        const char *text;
        int of_numbers;
        cvy_output_kind kind;
        const char *scored;
    } row[] = {
        {LAYERS("{fc: {name: a, channels: 5}}"), 0, CVY_OUTPUT_LOGITS, "a"},
        {LAYERS("{fc: {name: a, channels: 5}}, softmax"), 0, CVY_OUTPUT_PROBABILITIES, "a"},
        {LAYERS("{fc: {name: a, channels: 5}}, log_softmax"), 0, CVY_OUTPUT_LOG_PROBABILITIES, "a"},
        {LAYERS("{fc: {name: a, channels: 5}}, softmax, log"), 0, CVY_OUTPUT_LOG_PROBABILITIES, "a"},
        {LAYERS("{fc: {name: a, channels: 5}}, log_softmax, exp"), 0, CVY_OUTPUT_PROBABILITIES, "a"},
        {LAYERS("{fc: {name: a, channels: 5}}, softmax, log, {exp: {name: e}}"), 0, CVY_OUTPUT_LOGITS, "e"},
        {LAYERS("{fc: {name: a, channels: 5}}, softmax, {scale: {name: s, by: 2}}"), 0, CVY_OUTPUT_LOGITS, "s"},
        {LAYERS("{fc: {name: a, channels: 5}}, {softmax: {name: p}}") "train: {loss: hinge}\n", 0,
         CVY_OUTPUT_PROBABILITIES, "a"},
        {LAYERS("{conv: {name: a, channels: 5, kernel: 1}}, softmax, {transpose: {order: [1, 3, 2]}}, {crop: {name: c, "
                "before: [1, 1]}}"),
         0, CVY_OUTPUT_PROBABILITIES, "c_logits"},
        {LAYERS("{fc: {name: a, channels: 1}}, {sigmoid: {name: p}}") "train: {loss: bce}\n", 0,
         CVY_OUTPUT_YES_PROBABILITIES, "a"},
        {LAYERS("{fc: {name: a, channels: 2}}") "train: {loss: bce}\n", 1, CVY_OUTPUT_YES_LOGITS, "a"},
        {LAYERS("{fc: {name: a, channels: 2}}, {sigmoid: {name: p}}") "train: {loss: mse}\n", 1, CVY_OUTPUT_VALUES,
         "p"},
        {LAYERS("{fc: {name: a, channels: 2}}, {softmax: {name: p}}"), 1, CVY_OUTPUT_VALUES, "p"},
        {LAYERS("{fc: {name: a, channels: 1}}") "train: {loss: mse}\n", 0, CVY_OUTPUT_VALUES, "a"},
    };
#undef LAYERS
    const cvy_dataset_info c = classes(), n = numbers();
    for (int i = 0; i < CVY_COUNT(row); i++) {
        cvy_job *job = must_parse(row[i].text);
        cvy_model *m = NULL;
        EXPECT_OK(cvy_job_model(job, NULL, row[i].of_numbers ? &n : &c, CVY_LOSSES_NEEDED, &m));
        EXPECT_TEXT(m ? cvy_output_kind_text(m->output_kind) : "", cvy_output_kind_text(row[i].kind));
        EXPECT_TEXT(m ? m->scored : "", row[i].scored);
        cvy_model_destroy(&m);
        cvy_job_destroy(&job);
    }
}

/* A loss of the main output is also added to the auxiliary heads. A loss that names its output is not. */
static void auxiliary_heads(void)
{
    cvy_dataset_info c = classes();
    c.field[0].shape = (cvy_shape){3, {3, 80, 80}};
    EXPECT_TEXT(losses_of("model: googlenet\ndata: {train: a}\n", &c, NULL),
                "x label | loss=softmax_cross_entropy(fc,label) aux1_loss=softmax_cross_entropy(aux1,label) "
                "aux2_loss=softmax_cross_entropy(aux2,label)");
    EXPECT_TEXT(losses_of("model: {name: googlenet, aux: false}\ndata: {train: a}\n", &c, NULL),
                "x label | loss=softmax_cross_entropy(fc,label)");
    EXPECT_TEXT(
        losses_of("model: googlenet\ndata: {train: a}\ntrain: {loss: {name: softmax_cross_entropy, output: fc}}\n", &c,
                  NULL),
        "x label | loss=softmax_cross_entropy(fc,label)");
}

static void data_without_targets(void)
{
    cvy_dataset_info d = classes();
    cvy_job *job = must_parse("model: linear\ndata: {train: a}\n");
    cvy_model *m = NULL;
    d.nfield = 1;
    EXPECT_FAULT(cvy_job_model(job, NULL, &d, 1, &m), CVY_E_CONFIG, "pictures have no labels");
    EXPECT_OK(cvy_job_model(job, NULL, &d, 0, &m));
    EXPECT_INT(m ? m->ninput : 0, 1);
    cvy_model_destroy(&m);
    cvy_job_destroy(&job);
}

static void options(void)
{
    cvy_program_opts p;
    cvy_training_opts t;
    cvy_job *job = must_parse(
        "model: linear\ndata: {train: a}\ncomm: {overlap: false}\nplan: {passes_off: [fuse-relu], kernels: "
        "native}\nbatch_norm: {group: batch}\n"
        "train: {seed: 9, accumulate: 2, clip_norm: 3, optimizer: {name: sgd, momentum: 0.5, weight_decay: 0.25}}\n");
    p = cvy_job_program_opts(job, "plan.json");
    EXPECT_TEXT(p.passes_off, "fuse-relu");
    EXPECT_INT(p.overlap, CVY_OVERLAP_NONE);
    EXPECT_TEXT(p.kernels, "native");
    EXPECT_TEXT(p.plan_file, "plan.json");
    EXPECT_INT(p.batch_norm_group, -2);
    EXPECT_INT(p.seed, 9);
    EXPECT_OK(cvy_job_training_opts(job, &t));
    EXPECT_TEXT(t.optimizer, "sgd");
    EXPECT(strstr(t.optimizer_options, "momentum: 0.5") != NULL);
    EXPECT(t.weight_decay == 0.25 && t.clip_norm == 3 && t.accumulate == 2);
    cvy_job_destroy(&job);

    job = must_parse("model: linear\ndata: {train: a}\ntrain:\n  optimizer: {name: adam, momentum: 0.5}\n");
    EXPECT_FAULT(cvy_job_training_opts(job, &t), CVY_E_CONFIG, "job.yaml:4:");
    cvy_job_destroy(&job);
    job = must_parse("model: linear\ndata: {train: a}\ntrain: {optimizer: {name: sgd, lr_mult: 2}}\n");
    EXPECT_FAULT(cvy_job_training_opts(job, &t), CVY_E_CONFIG, "group of weights");
    cvy_job_destroy(&job);
    job = must_parse("model: linear\ndata: {train: a}\ntrain: {optimizer: adagard}\n");
    EXPECT_FAULT(cvy_job_training_opts(job, &t), CVY_E_CONFIG, "did you mean 'adagrad'?");
    cvy_job_destroy(&job);
}

/* Returns what the `train` section of a job makes of a variable that is declared without weight decay. */
static cvy_variable after_groups(const char *train, cvy_role role)
{
    char text[256], name[] = "fc.bias";
    cvy_program program = {0};
    cvy_variable v = {.name = name, .role = role, .lr_mult = 1, .decay_mult = 1};
    snprintf(text, sizeof text, "model: linear\ndata: {train: a}\ntrain: {%s}\n", train);
    cvy_job *job = must_parse(text);
    cvy_job_group_variables(job, &program);
    program.group(program.group_user, &v);
    cvy_job_destroy(&job);
    v.name = NULL;
    return v;
}

static void groups_of_variables(void)
{
    EXPECT_INT(after_groups("epochs: 1", CVY_ROLE_WEIGHT).decay, 0);
    EXPECT_INT(after_groups("optimizer: {name: sgd, decay_on: weights}", CVY_ROLE_WEIGHT).decay, 0);
    EXPECT_INT(after_groups("optimizer: {name: sgd, decay_on: all}", CVY_ROLE_WEIGHT).decay, 1);
    EXPECT_INT(after_groups("optimizer: {name: sgd, decay_on: all}", CVY_ROLE_STATISTIC).decay, 0);
    const cvy_variable v = after_groups("optimizer: {name: sgd, decay_on: all}, groups: [{match: 'conv*', lr_mult: 2}, "
                                        "{match: '*.bias', lr_mult: 3, decay_mult: 0.5}, {match: '*', frozen: true}]",
                                        CVY_ROLE_WEIGHT);
    EXPECT_INT(v.decay, 1);
    EXPECT(v.lr_mult == 3 && v.decay_mult == 0.5 && !v.frozen);
    EXPECT(after_groups("groups: [{match: '*', lr_mult: 3}]", CVY_ROLE_STATISTIC).lr_mult == 1);
}

int main(void)
{
    TEST(what_suits_the_data);
    TEST(what_the_job_says);
    TEST(what_the_network_says);
    TEST(probabilities);
    TEST(moved_probabilities);
    TEST(looked_through);
    TEST(functions_twice);
    TEST(kinds);
    TEST(auxiliary_heads);
    TEST(data_without_targets);
    TEST(options);
    TEST(groups_of_variables);
    return test_end();
}
