/*
 * cmd_step.h: options about a network's training step, which bench, time, plan and simulate share, and their rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CMD_STEP_H
#define CMD_STEP_H

#include "cmd.h"
#include "measure/measure.h"

typedef struct cmd_step {
    const char *model_options, *mode, *kernels, *passes_off, *planning, *trace;
    cvy_shape input;
    cvy_dtype dtype;
    int64_t classes, steps, warmup;
    cmd_numbers batches;
} cmd_step;

#define CMD_MODE_WORDS "train|forward|forward-backward"
#define CMD_MODE_HELP                                                                                                  \
    "train: a whole training step; forward: an evaluation; forward-backward: forward and all gradients on each rank "  \
    "by itself, without their reduction and without the update"

/* Rows for a table whose verb_options have the field `step`. */
#define CMD_OPTIONS_STEP(batch_value, batch_help)                                                                      \
    {"--options", "TEXT", CMD_TEXT, CMD_FIELD(step.model_options),                                                     \
     "the network's own options, such as 'filters: 64'"},                                                              \
        {"--input", "C,H,W", CMD_SHAPE, CMD_FIELD(step.input),                                                         \
         "shape of a sample; the network's or the job's own if not given"},                                            \
        {"--classes", "K", CMD_NUMBER, CMD_FIELD(step.classes), "number of outputs"},                                  \
        {"--batch", batch_value, CMD_NUMBERS, CMD_FIELD(step.batches), batch_help},                                    \
        {"--mode", CMD_MODE_WORDS, CMD_CHOICE, CMD_FIELD(step.mode), CMD_MODE_HELP},                                   \
        {"--dtype", "f32|bf16|f64", CMD_DTYPE, CMD_FIELD(step.dtype),                                                  \
         "type of activations; with bf16, weights are f32"},                                                           \
        {"--steps", "N", CMD_NUMBER, CMD_FIELD(step.steps),                                                            \
         "timed steps; as many as take 5 s, at least 5 (2 of long ones), if not given"},                               \
        {"--warmup", "N", CMD_NUMBER, CMD_FIELD(step.warmup), "steps before them; 2 if not given"},                    \
        {"--kernels", "NAMES", CMD_TEXT, CMD_FIELD(step.kernels),                                                      \
         "which kernels may be used, as plan.kernels; clock: none, a step only waits for their measured times"},       \
        {"--passes-off", "LIST", CMD_TEXT, CMD_FIELD(step.passes_off),                                                 \
         "optimising passes to leave out, such as fuse-relu; or all"},                                                 \
        {"--planning", CMD_PLANNING_WORDS, CMD_CHOICE, CMD_FIELD(step.planning), CMD_PLANNING_HELP},                   \
    {                                                                                                                  \
        "--trace", "FILE", CMD_TEXT, CMD_FIELD(step.trace),                                                            \
            "writes the last step of all ranks for chrome://tracing or Perfetto"                                       \
    }

/* Gives a network of Caffe the shape of its samples. */
void cmd_step_job(const cmd_step *step, cvy_job_source *job);
/* The options as the library takes them. job is NULL if a network of the zoo is named. */
cvy_bench_opts cmd_step_opts(const cmd_step *step, const cmd_sets *sets, const cvy_job_source *job, const char *model,
                             int64_t batch);

#endif
