/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_ls.c: `convoy ls`: lists the runs below a folder. */
#include "cmd.h"
#include "files/files.h"

typedef struct verb_options {
    int json;
} verb_options;

static int print(const verb_options *o, const cvy_run_list_result *r, const char *folder)
{
    char *text = NULL;
    if (o->json)
        return cmd_print(cvy_run_list_result_json(r, &text), &text);
    if (r->nruns == 0 && r->nunreadable == 0) {
        cmd_say("there are no runs below %s\n", folder);
        return 0;
    }
    return cmd_print(cvy_run_list_result_lines(r, &text), &text);
}

static int run(const cmd_line *line)
{
    const char *folder = line->narg ? line->arg[0] : "runs";
    cvy_run_list_result r;
    const cvy_status status = cvy_run_list(folder, &r);
    const int code = status == CVY_OK ? print(line->options, &r, folder) : cmd_outcome(status);
    cvy_run_list_result_release(&r);
    return code;
}

static const cmd_option options[] = {
    CMD_OPTION_JSON(
        "prints one JSON object: a list of runs with a member for each figure, and of what is not readable"),
    {0},
};

const cmd_verb cmd_ls = {
    .name = "ls",
    .arguments = "[FOLDER] [--json]",
    .summary = "lists the runs below a folder (runs): state, best score, loss, time",
    .detail =
        "A run is a folder with the files of `convoy train`. Others are searched, to any depth that runs are kept "
        "in; what cannot be read is named.\n"
        "State: running; stopped, with everything saved, so that --resume continues it; finished; early stop "
        "(train.stop); failed; killed (it says \"running\", but no process holds the folder); unknown. A line below "
        "gives the reason.\n"
        "The score is the one of checkpoint.best or train.stop, otherwise accuracy or loss on the validation "
        "data, otherwise on the test data. The loss is that of the latest logged step. The time left is that of "
        "the steps to do at the mean speed so far.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_max = 1,
    .run = run,
};
