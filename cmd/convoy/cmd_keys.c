/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_keys.c: `convoy keys`: lists every key of the job file, or all keys of one job with their values. */
#include "cmd.h"
#include "files/files.h"

typedef struct verb_options {
    cmd_sets sets;
    int json;
} verb_options;

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    char *text = NULL;
    if (line->narg) {
        const cvy_job_source job = cmd_job(&o->sets, line->arg[0], NULL);
        return cmd_print(cvy_run_job_print(&job, o->json, &text), &text);
    }
    if (o->json || o->sets.count) {
        cmd_error("keys: %s needs a job file: convoy keys JOB", o->json ? "--json" : "--set");
        return CMD_EXIT_USAGE;
    }
    return cmd_print(cvy_run_keys(&text), &text);
}

static const cmd_option options[] = {
    CMD_OPTION_SET, CMD_OPTION_JSON("prints the job as one JSON object, for other programs"), {0}};

const cmd_verb cmd_keys = {
    .name = "keys",
    .arguments = "[JOB]",
    .summary = "lists the keys of a job file with their defaults",
    .detail = "With a job file: that job with the values of all keys, defaults included, as YAML, which is a job file "
              "again. Neither its data nor its model are opened.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_max = 1,
    .run = run,
};
