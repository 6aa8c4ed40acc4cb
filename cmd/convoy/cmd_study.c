/*
 * cmd_study.c: `convoy study`: measurements of networks, batches, threads, ranks and frameworks that a file declares.
 *
 * A publication names several studies, and has a page that shows their results beside what it says itself. The studies
 * and publications that the command knows by name are files in studies/, built in. The descriptions of frameworks are
 * files of their own, because their programs are: beside the command in an installation, and in the source folder of a
 * build.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmd_machine.h"
#include "cmd_study.h"
#include "report/report.h"
#include "study/study.h"

enum { PATH_ROOM = 4096, EARLY_LEAST_S = 15, EARLY_MOST_S = 120, EARLY_SHARE = 10 };

typedef cmd_study_options verb_options; /* for the table of options */

static volatile int stopped;

static void stop(int signal)
{
    (void)signal;
    stopped = 1;
}

const volatile int *cmd_stop_by_signal(void)
{
    cmd_signals_on_end(stop);
    return &stopped;
}

void cmd_show_line(void *user, const char *line)
{
    if (*(const int *)user)
        return;
    cmd_say("%s\n", line);
    fflush(stdout);
}

/* ---- the study ---- */

char *cmd_study_read_file(const char *path)
{
    enum { MOST = 1 << 20 };
    FILE *file = cmd_open_stream(path, "r");
    char *text = file ? calloc(MOST + 1, 1) : NULL;
    const size_t bytes = text ? fread(text, 1, MOST, file) : 0;
    if (!text || ferror(file) || bytes == MOST) {
        cmd_error("%s cannot be read: %s", path,
                  !file           ? errno == EINVAL ? "it is no regular file" : strerror(errno)
                            : bytes == MOST ? "it has more than 1 MiB"
                                  : "an error of the file system");
        free(text);
        text = NULL;
    }
    if (file)
        fclose(file);
    return text;
}

/* Finds a study or a publication by name or reads its file. The caller frees *owned. Returns 0, or an exit code after a
 * message. */
static int find_study(const char *name, const char **text_out, char **owned)
{
    const char *const *names = NULL;
    const int n = cmd_shipped_studies(&names);
    *text_out = cmd_shipped_study(name);
    if (*text_out)
        return 0;
    if (cmd_is_file(name)) {
        *text_out = *owned = cmd_study_read_file(name);
        return *owned ? 0 : CMD_EXIT_FAULT;
    }
    cmd_unknown("study", name, names, n);
    return CMD_EXIT_USAGE;
}

/* ---- the folders ---- */

static int is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* Beside the command: PREFIX/bin/convoy and PREFIX/share/convoy/frameworks, or SOURCE/build/NAME/convoy. */
int cmd_find_frameworks(const char *given, const char *self, char *path, size_t room)
{
    static const char *const places[] = {"../share/convoy/frameworks", "../../frameworks"};
    const char *slash = strrchr(self, '/');
    if (given) {
        snprintf(path, room, "%s", given);
        return 0;
    }
    for (int i = 0; slash && i < CMD_COUNT(places); i++) {
        snprintf(path, room, "%.*s/%s", (int)(slash - self), self, places[i]);
        if (is_folder(path))
            return 0;
    }
    cmd_error("the descriptions of frameworks are not beside the command: name their folder with --frameworks-folder");
    return CMD_EXIT_FAULT;
}

void cmd_name_folder(const char *parent, const char *file, char *path, size_t room)
{
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    const int length = cmd_ends_with(base, ".yaml") ? (int)strlen(base) - 5 : (int)strlen(base);
    snprintf(path, room, "%s/%.*s", parent, length, base);
}

int cmd_study_job_time(double *begin_out, double *end_out)
{
    const char *source = NULL;
    *begin_out = (double)time(NULL);
    const int code = cmd_end_time(NULL, *begin_out, end_out, &source);
    if (!code && *end_out > 0)
        *end_out -= fmin(EARLY_MOST_S, fmax(EARLY_LEAST_S, (*end_out - *begin_out) / EARLY_SHARE));
    return code;
}

/* ---- one study ---- */

static void print_end(const cvy_study_result *r, cvy_status status, const char *folder)
{
    cmd_say("%s: %lld measurements: %lld now, %lld before, %lld failed, %lld left out\n",
            status == CVY_STOPPED ? "stopped" : "done", (long long)r->total, (long long)r->measured,
            (long long)r->earlier, (long long)r->failed, (long long)r->skipped);
    if (status == CVY_STOPPED)
        cmd_say("all results are saved; the same command continues\n");
    cmd_say("%s/report.html shows them, results.csv and results.jsonl have the numbers\n", folder);
}

/* Makes the measurements of a study that are missing, and writes its report. */
static int run_study(const cmd_line *line, const char *name, const char *text, const char *folder)
{
    const verb_options *o = line->options;
    char self[PATH_ROOM], frameworks[PATH_ROOM];
    cvy_study_result result = {.size = sizeof result};
    if (!cmd_self(self, sizeof self)) {
        cmd_error("the path of this program is not known");
        return CMD_EXIT_FAULT;
    }
    double begin = 0, end = 0;
    int code = cmd_find_frameworks(o->frameworks_folder, self, frameworks, sizeof frameworks);
    code = code || o->nodes == 0 ? code : cmd_study_job_time(&begin, &end);
    if (code)
        return code;
    const cvy_study_opts opts = {.size = sizeof opts,
                                 .name = name,
                                 .text = text,
                                 .out = folder,
                                 .frameworks = frameworks,
                                 .program = self,
                                 .only = o->frameworks,
                                 .published = cmd_study_published,
                                 .quick = o->quick,
                                 .retry = o->retry,
                                 .once = o->once,
                                 .commit = cmd_commit,
                                 .stop = cmd_stop_by_signal(),
                                 .show = cmd_show_line,
                                 .user = (void *)(uintptr_t)&o->quiet,
                                 .data = o->data.word,
                                 .ndata = o->data.count,
                                 .only_cases = o->only.word,
                                 .nonly = o->only.count,
                                 .nodes = o->nodes,
                                 .ranks_per_node = o->ppn,
                                 .begin = begin,
                                 .end = end};
    if (o->job_scripts)
        return cmd_study_write_scripts(line, o, &opts);
    const cvy_status status = cvy_run_study(&opts, &result);
    if (status != CVY_OK && status != CVY_STOPPED)
        return cmd_outcome(status);
    if (cvy_report_study(folder) != CVY_OK)
        cmd_note("convoy: warning: no page: %s\n", cvy_error_text());
    print_end(&result, status, folder);
    return status == CVY_STOPPED ? CMD_EXIT_STOPPED : 0;
}

/* ---- a publication ---- */

/* Runs a study that a publication names, or writes its report again: its file is beside that of the publication, or it
 * is one of those that the command knows. */
static int run_named(const cmd_line *line, const char *name, const char *parent)
{
    const verb_options *o = line->options;
    const char *slash = strrchr(line->arg[0], '/');
    char path[PATH_ROOM], folder[PATH_ROOM], *owned = NULL;
    snprintf(folder, sizeof folder, "%s/%s", parent, name);
    if (o->only_report) {
        snprintf(path, sizeof path, "%s/%s/study.yaml", parent, name);
        return access(path, F_OK) == 0 ? cmd_outcome(cvy_report_study(folder)) : 0; /* it was never run */
    }
    const char *text = cmd_shipped_study(name);
    if (slash || cmd_ends_with(line->arg[0], ".yaml")) {
        snprintf(path, sizeof path, "%.*s%s.yaml", slash ? (int)(slash - line->arg[0]) + 1 : 0, line->arg[0], name);
        if (access(path, F_OK) == 0)
            text = owned = cmd_study_read_file(path);
        else if (!text)
            cmd_error("%s names the study %s: convoy knows none of this name, and there is no %s", line->arg[0], name,
                      path);
    }
    int code = CMD_EXIT_FAULT;
    if (text) {
        cmd_say("== %s\n", name);
        code = run_study(line, name, text, folder);
    }
    free(owned);
    return code;
}

/* All studies of a publication, and then its page. */
static int run_publication(const cmd_line *line, const char *text, char *names)
{
    const verb_options *o = line->options;
    const char *parent = o->out ? o->out : "studies";
    int code = 0;
    if (o->only.count > 0 || o->nodes > 0 || o->job_scripts) {
        cmd_error(
            "%s is a publication with several studies; --only, --nodes and --job-scripts are for one: convoy study "
            "%.*s",
            line->arg[0], (int)strcspn(names, "\n"), names);
        return CMD_EXIT_USAGE;
    }
    for (char *at = names; *at && !code; at += strlen(at) + 1) {
        at[strcspn(at, "\n")] = '\0';
        code = run_named(line, at, parent);
    }
    if (code)
        return code;
    const cvy_status status = cvy_report_publication(line->arg[0], text, cmd_study_published, parent);
    if (status == CVY_OK)
        cmd_say("the page is in %s\n", parent);
    return status == CVY_OK ? 0 : cmd_outcome(status);
}

/* ---- the verb ---- */

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    const char *text = NULL;
    char *owned = NULL, *names = NULL, folder[PATH_ROOM];
    if (o->kit || o->predict || o->measure || o->collect)
        return cmd_study_kit(line, o);
    if (line->narg != 1) {
        cmd_error("study needs one name or file, but there are %d; usage: convoy study %s", line->narg,
                  line->verb->arguments);
        return CMD_EXIT_USAGE;
    }
    if (o->only_report && is_folder(line->arg[0])) {
        const cvy_status status = cvy_report_study(line->arg[0]);
        if (status == CVY_OK)
            cmd_say("%s/report.html\n", line->arg[0]);
        return status == CVY_OK ? 0 : cmd_outcome(status);
    }
    int code = find_study(line->arg[0], &text, &owned);
    code = code ? code : cmd_outcome(cvy_publication_studies(line->arg[0], text, &names));
    if (o->out)
        snprintf(folder, sizeof folder, "%s", o->out);
    else
        cmd_name_folder("studies", line->arg[0], folder, sizeof folder);
    if (!code && o->only_report && !names) {
        cmd_error("--report needs the folder of a study, such as %s, or the name of a publication", folder);
        code = CMD_EXIT_USAGE;
    }
    if (!code)
        code = names ? run_publication(line, text, names) : run_study(line, line->arg[0], text, folder);
    cvy_text_release(&names);
    free(owned);
    return code;
}

static const cmd_option options[] = {
    {"--out", "FOLDER", CMD_TEXT, CMD_FIELD(out), "for results and report; studies/NAME if not given"},
    {"--frameworks", "NAME[,NAME...]", CMD_TEXT, CMD_FIELD(frameworks),
     "these frameworks instead of those that the study names"},
    {"--frameworks-folder", "FOLDER", CMD_TEXT, CMD_FIELD(frameworks_folder),
     "where their descriptions are, instead of those that belong to convoy"},
    {"--data", "NAME=PATH", CMD_SET, CMD_FIELD(data),
     "the path that ${NAME} in the study stands for, such as cifar=FOLDER; may be given several times"},
    {"--only", "AXIS=VALUE", CMD_SET, CMD_FIELD(only),
     "only cases with this value, such as ranks=64 or experiment=NAME; may be given several times"},
    {"--quick", NULL, CMD_FLAG, CMD_FIELD(quick), "fewer values and repeats: minutes instead of hours"},
    {"--retry", NULL, CMD_FLAG, CMD_FIELD(retry), "makes measurements again that failed"},
    {"--once", NULL, CMD_FLAG, CMD_FIELD(once), "each case once; the same command without it makes the repeats"},
    {"--nodes", "N", CMD_NUMBER, CMD_FIELD(nodes),
     "in a job of a batch system: measures only the cases that need N nodes with --ppn ranks each"},
    {"--ppn", "P", CMD_NUMBER, CMD_FIELD(ppn), "the most ranks of a measurement on a node; 1 if not given"},
    {"--job-scripts", NULL, CMD_FLAG, CMD_FIELD(job_scripts),
     "measures nothing: writes a job script for each number of nodes, with --ppn and:"},
    {"--scheduler", "slurm|pbs|lsf|flux|sge", CMD_CHOICE, CMD_FIELD(scheduler),
     "whose script; that of the site file if not given"},
    JOBSCRIPT_FLAGS,
    {"--time", "T", CMD_TEXT, CMD_FIELD(time), "limit of a job: HH:MM:SS, D-HH:MM:SS or minutes"},
    {"--account", "A", CMD_TEXT, CMD_FIELD(account), "whom the time is charged to"},
    {"--queue", "Q", CMD_TEXT, CMD_FIELD(queue), "the queue, or Slurm's partition"},
    {"--pe", "NAME", CMD_TEXT, CMD_FIELD(pe), "SGE's parallel environment"},
    {"--threads", "T", CMD_NUMBER, CMD_FIELD(threads), "cores of each rank, for a scheduler that counts cores (SGE)"},
    {"--kit", "FOLDER", CMD_TEXT, CMD_FIELD(kit),
     "measures nothing: makes a folder for a cluster, with job scripts of the studies that are named for 1, 2, 4 .. "
     "--nodes nodes, and with what makes and keeps predictions before; needs the options of job scripts"},
    {"--platform", "NAME|FILE", CMD_TEXT, CMD_FIELD(platform),
     "the machine that the predictions of a kit are for, as for simulate; its first job measures it if not given"},
    {"--predict", "KIT", CMD_TEXT, CMD_FIELD(predict), "makes the predictions of a kit and seals them"},
    {"--measure", "KIT", CMD_TEXT, CMD_FIELD(measure), "in a job of --nodes nodes: makes its measurements"},
    {"--collect", "KIT", CMD_TEXT, CMD_FIELD(collect),
     "writes the page of what there is, and an archive to send: --out FILE, KIT-results.tar.gz if not given"},
    {"--report", NULL, CMD_FLAG, CMD_FIELD(only_report),
     "writes only the report again: the argument is the folder of a study, or the name of a publication"},
    {"--quiet", NULL, CMD_FLAG, CMD_FIELD(quiet), "no line for each measurement"},
    {0},
};

const cmd_verb cmd_study = {
    .name = "study",
    .arguments =
        "NAME | FILE.yaml [--quick] [--frameworks convoy,pytorch] | --kit FOLDER [NAME | STUDY.yaml]... --nodes N "
        "--ppn P --time T",
    .summary = "measures networks, batches, threads, ranks and frameworks that a file declares",
    .detail =
        "Built-in studies: node-throughput, threads, sp-mp-mn, many-nodes, strong-scaling, weak-scaling, "
        "parameter-server, settings, update-modes, hybrid, epochs, time-to-solution, communication, data, hindcast, "
        "mlperf-hpc. Most repeat tables of a publication. epochs and time-to-solution need --data cifar=FOLDER, epochs "
        "also "
        "flowers=FOLDER, and data needs images=FOLDER.\n"
        "Publications: stony-brook, cug, cineca, ohio-state, tacc; best-settings is made likewise. Each runs the "
        "studies that it needs and writes a page in Markdown that puts their results beside what was published.\n"
        "Each measurement is a command of its own. One that fails is kept with its error, and the rest goes on.\n"
        "The same command after an interruption makes only the measurements that are missing.\n"
        "Frameworks that are not installed are named and left out.\n"
        "docs/guide/studies.md describes study files and how to describe a framework, and docs/guide/study-kit.md "
        "kits for a cluster.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 0,
    .narg_max = CMD_ARGS_MAX,
    .idle_cores = CMD_WARN_NEVER,
    .run = run,
};
