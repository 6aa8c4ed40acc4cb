/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_doctor.c: `convoy doctor`: reports what the ranks run on, how fast their files and network are, and what is wrong
 * with them. */
#include <errno.h>
#include <string.h>

#include "cmd.h"
#include "health/health.h"
#include "measure/measure.h"

typedef struct verb_options {
    const char *max, *out, *platform;
    int64_t seconds;
    int json;
    cmd_sets sets;
    cmd_ranks ranks;
} verb_options;

static int write_platform(const char *path, const char *text)
{
    FILE *file = cmd_open_stream(path, "w");
    const int bad = !file || fputs(text, file) < 0;
    if ((file && fclose(file)) || bad) {
        cmd_error("%s cannot be written: %s", path, strerror(errno));
        return CMD_EXIT_FAULT;
    }
    cmd_note("convoy: %s is the platform: convoy simulate MODEL --platform %s\n", path, path);
    return 0;
}

/* Whether the job can be trained by these ranks: its keys, data and network, and the memory that it takes. */
static int check_job(const cmd_line *line, cvy_context *context)
{
    const verb_options *o = line->options;
    const cvy_job_source job = cmd_job(&o->sets, line->arg[0], NULL);
    char *text = NULL;
    cvy_status status = cvy_run_plan(context, &job, NULL, "summary", &text);
    if (o->json)
        cvy_text_release(&text);
    else if (text)
        cmd_say("job %s\n", line->arg[0]);
    const int code = cmd_print(status, &text);
    if (!code && !o->json && cvy_context_rank(context) == 0)
        putchar('\n');
    return code;
}

static int doctor(const cmd_line *line, cvy_context *context, void *user)
{
    const verb_options *o = line->options;
    const int wrong = line->narg ? check_job(line, context) : 0;
    if (wrong)
        return wrong;
    const cvy_doctor_opts opts = {.size = sizeof opts,
                                  .max = o->max,
                                  .seconds = (double)o->seconds,
                                  .out = o->out,
                                  .platform = o->platform != NULL};
    cvy_doctor_report report;
    (void)user;
    const cvy_status status = cvy_run_doctor(context, &opts, &report);
    int code = cmd_print(status, o->json ? &report.json : &report.lines);
    if (!code && report.platform)
        code = write_platform(o->platform, report.platform);
    cvy_doctor_report_release(&report);
    return code;
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    if (o->sets.count > 0 && !line->narg) {
        cmd_error("--set and --device change keys of a job: name one, convoy doctor JOB.yaml");
        return CMD_EXIT_USAGE;
    }
    return cmd_on_ranks(line, &o->ranks, doctor, NULL);
}

static const cmd_option options[] = {
    {"--max", "BYTES", CMD_TEXT, CMD_FIELD(max), "the longest reduction, such as 64MiB; 256MiB if not given"},
    {"--out", "FOLDER", CMD_TEXT, CMD_FIELD(out),
     "where files are tried: the folder of future runs, or the nearest one above it that exists; the current one "
     "if not given"},
    {"--seconds", "S", CMD_NUMBER, CMD_FIELD(seconds),
     "for all measurements, about; longer reductions are left out if they do not fit; 30 if not given"},
    {"--platform", "FILE", CMD_TEXT, CMD_FIELD(platform),
     "also measures how fast a node trains and adds, and writes a platform file for `convoy simulate`; it needs two "
     "nodes"},
    CMD_OPTION_SET,
    CMD_OPTION_DEVICE,
    CMD_OPTION_JSON("prints one JSON object, with medians and all nodes and ranks"),
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_doctor = {
    .name = "doctor",
    .arguments = "[JOB.yaml] [--set KEY=VALUE]... [--max BYTES] [--seconds S] [--json]",
    .summary = "checks ranks, cores, clocks, files and network before a training needs them",
    .detail =
        "Start it as a training would be started: mpiexec -n N convoy doctor. It prints on which nodes and cores the "
        "ranks are; which devices could compute; how far their clocks agree; how fast files are written, and whether "
        "all ranks see them; the time "
        "of single messages as alpha + beta bytes; and the time of reductions over all ranks, from 1 KiB to --max.\n"
        "Each reduction runs with each algorithm, with the MPI library, and through the memory of the nodes (node; "
        "between several nodes node+ring and so on). The star marks what `comm.algorithm: auto` takes. The first "
        "result of every algorithm is checked number by number. What could be better is listed at the end.\n"
        "With a job, its keys, data, network and memory are checked first, as `convoy plan` does; if it cannot be "
        "trained, nothing is measured.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_max = 1,
    .idle_cores = CMD_WARN_NEVER, /* doctor reports them itself */
    .run = run,
};
