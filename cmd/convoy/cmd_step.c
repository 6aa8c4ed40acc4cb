/* cmd_step.c: see cmd_step.h. */
#include "cmd_step.h"

#include <string.h>

int cmd_is_file(const char *word)
{
    return strpbrk(word, "./") != NULL;
}

cvy_bench_opts cmd_step_opts(const cmd_step *step, const cmd_sets *sets, const cvy_job_source *job, const char *model,
                             int64_t batch)
{
    return (cvy_bench_opts){
        .size = sizeof(cvy_bench_opts),
        .job = job,
        .model = model,
        .model_options = step->model_options,
        .input = step->input,
        .classes = step->classes,
        .batch = batch,
        .forward = step->mode && strcmp(step->mode, "forward") == 0,
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
