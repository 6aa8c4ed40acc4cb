/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_tune.c: `convoy tune`: finds the ranks, threads, batch and keys of communication with which a network trains
 * fastest on this machine, and writes them as a profile. */
#include <stdlib.h>
#include <string.h>

#include "cmd_machine.h"
#include "cmd_study.h"
#include "report/report.h"
#include "study/study.h"

enum { PATH_ROOM = 4096 };

typedef struct verb_options {
    const char *out, *batches, *frameworks_folder;
    int64_t seconds;
    cmd_sets sets;
    int json, quiet;
} verb_options;

/* ---- the batches ---- */

/* The global batch of the job; 0: it has train.batch_per_rank; -1 after a message. */
static int64_t batch_of_job(const verb_options *o, const char *file)
{
    const cvy_job_source job = cmd_job(&o->sets, file, NULL);
    char *text = NULL;
    int64_t batch = -1;
    if (cvy_run_job_value(&job, "train.batch", &text) != CVY_OK)
        (void)cmd_outcome(CVY_E_CONFIG);
    else
        batch = text ? strtoll(text, NULL, 10) : 0;
    cvy_text_release(&text);
    return batch;
}

/* The number of the batch in the list "32,64"; -1: it is not in it. */
static int find_batch(const char *list, int64_t batch)
{
    int n = 0;
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',', n++)
        if (strtoll(at, NULL, 10) == batch)
            return n;
    return -1;
}

/* ---- the verb ---- */

static void print_end(const cvy_tune_result *r, const char *folder)
{
    cmd_say("\nthe fastest of %lld settings, in %lld measurements: %d rank%s of %d thread%s, batch %lld",
            (long long)r->settings, (long long)r->measurements, r->ranks, r->ranks > 1 ? "s" : "", r->threads,
            r->threads > 1 ? "s" : "", (long long)r->batch);
    if (r->ranks > 1)
        cmd_say(", comm.progress %s, comm.overlap %s, comm.bucket %s", r->progress, r->overlap, r->bucket);
    cmd_say("\n%.4g images/s; the default (one rank, all cores, the first batch) has %.4g: %.2f times as fast\n",
            r->images_per_s, r->images_per_s_default, r->images_per_s / r->images_per_s_default);
    cmd_say("%s/profile.yaml has the settings, for ", folder);
    if (r->ranks > 1)
        cmd_say("mpiexec -n %d ", r->ranks);
    cmd_say("convoy train JOB.yaml --profile %s/profile.yaml\n%s/report.html shows all measurements\n", folder, folder);
}

static void print_json(const cvy_tune_result *r)
{
    cmd_say("{\"ranks\": %d, \"threads\": %d, \"batch\": %lld, \"progress\": \"%s\", \"overlap\": \"%s\", \"bucket\": "
            "\"%s\", "
            "\"settings\": %lld, \"measurements\": %lld, \"images_per_s\": %.9g, \"images_per_s_default\": %.9g}\n",
            r->ranks, r->threads, (long long)r->batch, r->progress, r->overlap, r->bucket, (long long)r->settings,
            (long long)r->measurements, r->images_per_s, r->images_per_s_default);
}

static int tune(const verb_options *o, cvy_tune_opts *opts)
{
    char self[PATH_ROOM], frameworks[PATH_ROOM];
    const int quiet = o->quiet || o->json;
    cvy_tune_result r = {.size = sizeof r};
    if (!cmd_self(self, sizeof self)) {
        cmd_error("the path of this program is not known");
        return CMD_EXIT_FAULT;
    }
    const int code = cmd_find_frameworks(o->frameworks_folder, self, frameworks, sizeof frameworks);
    if (code)
        return code;
    opts->program = self;
    opts->frameworks = frameworks;
    opts->stop = cmd_stop_by_signal();
    opts->show = cmd_show_line;
    opts->user = (void *)(uintptr_t)&quiet;
    const cvy_status status = cvy_run_tune(opts, &r);
    if (status == CVY_STOPPED) {
        cmd_say("stopped: all measurements are saved in %s; the same command continues\n", opts->out);
        return CMD_EXIT_STOPPED;
    }
    if (status != CVY_OK)
        return cmd_outcome(status);
    if (cvy_report_study(opts->out) != CVY_OK)
        cmd_note("convoy: warning: no page: %s\n", cvy_error_text());
    if (o->json)
        print_json(&r);
    else
        print_end(&r, opts->out);
    return 0;
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    const char *network = line->arg[0];
    const int is_job = cmd_is_file(network) && !cmd_ends_with(network, ".onnx");
    char folder[PATH_ROOM], batch[32];
    int64_t usual = is_job ? batch_of_job(o, network) : 0;
    if (usual < 0)
        return CMD_EXIT_FAULT;
    if (is_job && usual == 0 && !o->batches) {
        cmd_error("%s: train.batch_per_rank is given, and tune compares batches of all ranks together: name them with "
                  "--batch",
                  network);
        return CMD_EXIT_FAULT;
    }
    if (!o->out)
        cmd_name_folder("tune", network, folder, sizeof folder);
    snprintf(batch, sizeof batch, "%lld", (long long)(usual > 0 ? usual : 32));
    const char *batches = o->batches ? o->batches : batch;
    const int first = usual > 0 ? find_batch(batches, usual) : 0;
    cvy_tune_opts opts = {.size = sizeof opts,
                          .network = network,
                          .is_job = is_job,
                          .batches = batches,
                          .first_batch = first < 0 ? 0 : first,
                          .sets = o->sets.word,
                          .nsets = o->sets.count,
                          .seconds = o->seconds,
                          .out = o->out ? o->out : folder};
    return tune(o, &opts);
}

static const cmd_option options[] = {
    {"--batch", "N[,N...]", CMD_TEXT, CMD_FIELD(batches),
     "global batches that the training may use, in ascending order; only that of the job, or 32, if not given"},
    {"--out", "FOLDER", CMD_TEXT, CMD_FIELD(out), "for results and profile; tune/NAME if not given"},
    {"--seconds", "S", CMD_NUMBER, CMD_FIELD(seconds), "how long the steps of a measurement are timed; 2 if not given"},
    CMD_OPTION_SET,
    CMD_OPTION_DEVICE,
    {"--frameworks-folder", "FOLDER", CMD_TEXT, CMD_FIELD(frameworks_folder),
     "where convoy.yaml and convoy-job.yaml are, instead of those that belong to convoy"},
    {"--quiet", NULL, CMD_FLAG, CMD_FIELD(quiet), "no line for each measurement"},
    CMD_OPTION_JSON("prints one JSON object, and no line for each measurement"),
    {0},
};

const cmd_verb cmd_tune = {
    .name = "tune",
    .arguments = "NETWORK | JOB.yaml [--batch 32,64,128] [--out FOLDER]",
    .summary = "finds the fastest ranks, threads, batch and communication for this machine",
    .detail =
        "Each measurement is a short `convoy bench` of its own. First all splits of the cores into ranks and threads "
        "are measured, then other batches as long as they gain, then splits that were near the best one, and then, if "
        "ranks wait for each other, comm.overlap, comm.progress and comm.bucket. What is near the best is measured "
        "three times.\n"
        "A larger batch changes what is learned, so only the batches of --batch are tried.\n"
        "`convoy train --profile FOLDER/profile.yaml` takes the result. An interrupted search goes on with the same "
        "command.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 1,
    .narg_max = 1,
    .idle_cores = CMD_WARN_NEVER,
    .run = run,
};
