/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_models.c: `convoy models`: lists the networks of the zoo, and the layers that a job file may use. */
#include "cmd.h"
#include "files/files.h"

typedef struct verb_options {
    int layers;
    const char *as_job;
} verb_options;

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    char *text = NULL;
    if (o->as_job)
        return cmd_print(cvy_run_model_job(o->as_job, &text), &text);
    const cvy_status status = o->layers ? cvy_layers_list(&text) : cvy_models_list(&text);
    return cmd_print(status, &text);
}

static const cmd_option options[] = {
    {"--layers", NULL, CMD_FLAG, CMD_FIELD(layers),
     "the layers and losses with their options, instead of the networks"},
    {"--as-job", "NETWORK", CMD_TEXT, CMD_FIELD(as_job), "a job with all layers of this network, to change them"},
    {0},
};

const cmd_verb cmd_models = {
    .name = "models",
    .arguments = "[--layers] [--as-job NETWORK]",
    .summary = "lists the networks of the zoo, or the layers that a job file may use",
    .options = options,
    .options_size = sizeof(verb_options),
    .run = run,
};
