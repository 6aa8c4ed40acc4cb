/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_step.c: see cmd_step.h. */
#include "cmd_step.h"
#include "measure/measure.h"

#include <string.h>

/* The words of --mode, in the order of cvy_bench_mode. */
static const char *const modes[] = {"train", "forward", "forward-backward"};

static cvy_bench_mode mode_of(const char *word)
{
    int i = 0;
    while (word && strcmp(modes[i], word) != 0)
        i++;
    return (cvy_bench_mode)i;
}

int cmd_is_file(const char *word)
{
    return strpbrk(word, "./") != NULL;
}

void cmd_step_job(const cmd_step *step, cvy_job_source *job)
{
    if (job->caffe)
        job->caffe_input = step->input;
}

cvy_bench_opts cmd_step_opts(const cmd_step *step, const cmd_sets *sets, const cvy_job_source *job, const char *model,
                             int64_t batch)
{
    return (cvy_bench_opts){
        .size = sizeof(cvy_bench_opts),
        .job = job,
        .model = model,
        .model_options = step->model_options,
        .input = job && job->caffe ? (cvy_shape){0} : step->input, /* cmd_step_job() */
        .classes = step->classes,
        .batch = batch,
        .mode = mode_of(step->mode),
        .dtype = step->dtype,
        .steps = step->steps,
        .warmup = step->warmup,
        .kernels = step->kernels,
        .passes_off = step->passes_off,
        .trace = step->trace,
        .planning = step->planning,
        .sets = sets->word,
        .nsets = sets->count,
    };
}
