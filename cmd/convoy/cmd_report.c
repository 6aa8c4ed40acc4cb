/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_report.c: `convoy report`: writes the report page of a run again, or a page that compares several runs. */
#include "cmd.h"
#include "report/report.h"

typedef struct verb_options {
    const char *out;
    int json;
} verb_options;

static int has_file(const char *folder, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = cmd_open_stream(path, "r");
    if (file)
        fclose(file);
    return file != NULL;
}

static int compare_studies(const cmd_line *line, const char *path)
{
    int moved = 0;
    const cvy_status status = cvy_report_study_compare(line->arg[0], line->arg[1], path, &moved);
    if (status == CVY_OK)
        cmd_say("%d case%s moved beyond the noise: %s\n", moved, moved == 1 ? "" : "s", path);
    return cmd_outcome(status);
}

static int compare(const cmd_line *line, const char *path)
{
    if (line->narg == 2 && has_file(line->arg[0], "study.yaml") && has_file(line->arg[1], "study.yaml"))
        return compare_studies(line, path);
    const cvy_status status = cvy_report_compare(line->arg, line->narg, path);
    if (status == CVY_OK)
        cmd_say("the page is %s\n", path);
    return cmd_outcome(status);
}

/* The pages of a folder: of a study, of a search, of an ensemble, which a search may be too, or of a run. */
static int write_pages(const char *folder)
{
    if (has_file(folder, "study.yaml")) {
        const cvy_status written = cvy_report_study(folder);
        if (written == CVY_OK)
            cmd_say("the page is %s/report.html\n", folder);
        return cmd_outcome(written);
    }
    const int sweeps = has_file(folder, "sweep.json"), is_ensemble = has_file(folder, "ensemble.json");
    cvy_status status = CVY_OK;
    if (sweeps)
        status = cvy_report_sweep(folder);
    if (status == CVY_OK && is_ensemble)
        status = cvy_report_ensemble(folder);
    if (!sweeps && !is_ensemble)
        status = cvy_report_write(folder);
    if (status == CVY_OK && sweeps)
        cmd_say("the page is %s/sweep.html\n", folder);
    if (status == CVY_OK && is_ensemble)
        cmd_say("the page is %s/ensemble.html\n", folder);
    if (status == CVY_OK && !sweeps && !is_ensemble)
        cmd_say("the page is %s/report.html\n", folder);
    return cmd_outcome(status);
}

static int print_json(const char *folder)
{
    char *text = NULL;
    return cmd_print(cvy_report_json(folder, &text), &text);
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    if (o->json && line->narg == 1)
        return print_json(line->arg[0]);
    if (line->narg > 1)
        return compare(line, o->out ? o->out : "comparison.html");
    if (o->out) {
        cmd_error("--out names the page of several runs; the page of one is %s/report.html", line->arg[0]);
        return CMD_EXIT_USAGE;
    }
    return write_pages(line->arg[0]);
}

static const cmd_option options[] = {
    {"--out", "FILE", CMD_TEXT, CMD_FIELD(out), "with several runs: the page; comparison.html if not given"},
    CMD_OPTION_JSON("of one run: prints what it has reached, its curves and where its time went, and writes no page"),
    {0},
};

const cmd_verb cmd_report = {
    .name = "report",
    .arguments = "RUN | RUN RUN... [--out FILE.html]",
    .summary = "writes the page of a run, a sweep or an ensemble again, or one page that compares runs",
    .detail =
        "The page of a run is RUN/report.html, that of a sweep SWEEP/sweep.html, and that of an ensemble, which "
        "`convoy test "
        "FOLDER` has scored, FOLDER/ensemble.html.\n"
        "The page of several runs, up to eight, lays their losses, scores and learning rates over each other, over "
        "epochs and over time. A table has the keys of the jobs that differ, and the scores.\n"
        "Of two folders of `convoy study` it lists what has moved beyond the noise, such as before and after a change, "
        "or "
        "on two machines.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 1,
    .narg_max = CMD_ARGS_MAX,
    .run = run,
};
