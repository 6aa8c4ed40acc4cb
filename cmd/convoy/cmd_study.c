/*
 * cmd_study.c: `convoy study`: measurements of networks, batches, threads, ranks and frameworks that a file declares.
 *
 * The studies that the command knows by name are files in studies/, built in. The descriptions of frameworks are files
 * of their own, because their programs are: beside the command in an installation, and in the source folder of a build.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd_machine.h"
#include "cmd_study.h"
#include "report/report.h"
#include "study/study.h"

enum { PATH_ROOM = 4096 };

typedef cmd_study_options verb_options; /* for the table of options */

extern const char cmd_study_published[], cmd_study_node_throughput[], cmd_study_threads[], cmd_study_sp_mp_mn[],
    cmd_study_strong_scaling[], cmd_study_weak_scaling[], cmd_study_update_modes[], cmd_study_hybrid[],
    cmd_study_epochs[], cmd_study_time_to_solution[], cmd_study_communication[], cmd_study_data[], cmd_study_hindcast[];

static const struct shipped {
    const char *name, *text;
} shipped[] = {
    {"node-throughput", cmd_study_node_throughput},
    {"threads", cmd_study_threads},
    {"sp-mp-mn", cmd_study_sp_mp_mn},
    {"strong-scaling", cmd_study_strong_scaling},
    {"weak-scaling", cmd_study_weak_scaling},
    {"update-modes", cmd_study_update_modes},
    {"hybrid", cmd_study_hybrid},
    {"epochs", cmd_study_epochs},
    {"time-to-solution", cmd_study_time_to_solution},
    {"communication", cmd_study_communication},
    {"data", cmd_study_data},
    {"hindcast", cmd_study_hindcast},
};

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

/* The text of a file; NULL after a message. */
static char *read_file(const char *path)
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

/* Finds a study by name or reads its file. The caller frees *owned. Returns 0, or an exit code after a message. */
static int find_study(const char *name, const char **text_out, char **owned)
{
    const char *names[CMD_COUNT(shipped)];
    for (int i = 0; i < CMD_COUNT(shipped); i++) {
        names[i] = shipped[i].name;
        if (strcmp(shipped[i].name, name) == 0) {
            *text_out = shipped[i].text;
            return 0;
        }
    }
    if (cmd_is_file(name)) {
        *text_out = *owned = read_file(name);
        return *owned ? 0 : CMD_EXIT_FAULT;
    }
    cmd_unknown("study", "study", name, names, CMD_COUNT(names));
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

/* ---- the verb ---- */

static void print_end(const cvy_study_result *r, cvy_status status, const char *folder)
{
    cmd_say("%s: %lld measurements: %lld now, %lld before, %lld failed, %lld left out\n",
            status == CVY_STOPPED ? "stopped" : "done", (long long)r->total, (long long)r->measured,
            (long long)r->earlier, (long long)r->failed, (long long)r->skipped);
    if (status == CVY_STOPPED)
        cmd_say("all results are saved; the same command continues\n");
    cmd_say("%s/report.html shows them, results.csv and results.jsonl have the numbers\n", folder);
}

static int run_study(const cmd_line *line, const char *text, const char *folder)
{
    const verb_options *o = line->options;
    char self[PATH_ROOM], frameworks[PATH_ROOM];
    cvy_study_result result = {.size = sizeof result};
    if (!cmd_self(self, sizeof self)) {
        cmd_error("the path of this program is not known");
        return CMD_EXIT_FAULT;
    }
    const int code = cmd_find_frameworks(o->frameworks_folder, self, frameworks, sizeof frameworks);
    if (code)
        return code;
    const cvy_study_opts opts = {.size = sizeof opts,
                                 .name = line->arg[0],
                                 .text = text,
                                 .out = folder,
                                 .frameworks = frameworks,
                                 .program = self,
                                 .only = o->frameworks,
                                 .published = cmd_study_published,
                                 .quick = o->quick,
                                 .retry = o->retry,
                                 .stop = cmd_stop_by_signal(),
                                 .show = cmd_show_line,
                                 .user = (void *)(uintptr_t)&o->quiet,
                                 .data = o->data.word,
                                 .ndata = o->data.count,
                                 .only_cases = o->only.word,
                                 .nonly = o->only.count,
                                 .nodes = o->nodes,
                                 .ranks_per_node = o->ppn};
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

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    const char *text = NULL;
    char *owned = NULL, folder[PATH_ROOM];
    if (o->only_report) {
        const cvy_status status = cvy_report_study(line->arg[0]);
        if (status == CVY_OK)
            cmd_say("%s/report.html\n", line->arg[0]);
        return status == CVY_OK ? 0 : cmd_outcome(status);
    }
    int code = find_study(line->arg[0], &text, &owned);
    if (o->out)
        snprintf(folder, sizeof folder, "%s", o->out);
    else
        cmd_name_folder("studies", line->arg[0], folder, sizeof folder);
    code = code ? code : run_study(line, text, folder);
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
     "only cases with this value, such as ranks=64; may be given several times"},
    {"--quick", NULL, CMD_FLAG, CMD_FIELD(quick), "fewer values and repeats: minutes instead of hours"},
    {"--retry", NULL, CMD_FLAG, CMD_FIELD(retry), "makes measurements again that failed"},
    {"--nodes", "N", CMD_NUMBER, CMD_FIELD(nodes),
     "in a job of a batch system: measures only the cases that need N nodes with --ppn ranks each"},
    {"--ppn", "P", CMD_NUMBER, CMD_FIELD(ppn), "the most ranks of a measurement on a node; 1 if not given"},
    {"--job-scripts", NULL, CMD_FLAG, CMD_FIELD(job_scripts),
     "measures nothing: writes a job script for each number of nodes, with --ppn and:"},
    {"--scheduler", "slurm|pbs|lsf|flux|sge", CMD_CHOICE, CMD_FIELD(scheduler),
     "whose script; that of the site file if not given"},
    {"--time", "T", CMD_TEXT, CMD_FIELD(time), "limit of a job: HH:MM:SS, D-HH:MM:SS or minutes"},
    {"--account", "A", CMD_TEXT, CMD_FIELD(account), "whom the time is charged to"},
    {"--queue", "Q", CMD_TEXT, CMD_FIELD(queue), "the queue, or Slurm's partition"},
    {"--pe", "NAME", CMD_TEXT, CMD_FIELD(pe), "SGE's parallel environment"},
    {"--threads", "T", CMD_NUMBER, CMD_FIELD(threads), "cores of each rank, for a scheduler that counts cores (SGE)"},
    {"--report", NULL, CMD_FLAG, CMD_FIELD(only_report),
     "writes only the report again: the argument is the folder of a study"},
    {"--quiet", NULL, CMD_FLAG, CMD_FIELD(quiet), "no line for each measurement"},
    {0},
};

const cmd_verb cmd_study = {
    .name = "study",
    .arguments = "NAME | STUDY.yaml [--quick] [--frameworks convoy,pytorch,tensorflow]",
    .summary = "measures networks, batches, threads, ranks and frameworks that a file declares",
    .detail = "Built-in studies: node-throughput, threads, sp-mp-mn, strong-scaling, weak-scaling, update-modes, "
              "hybrid, epochs, time-to-solution, communication, data, hindcast. Most repeat tables of a publication. "
              "epochs and "
              "time-to-solution need --data cifar=FOLDER, epochs also flowers=FOLDER, and data needs images=FOLDER.\n"
              "Each measurement is a command of its own. One that fails is kept with its error, and the rest goes on.\n"
              "The same command after an interruption makes only the measurements that are missing.\n"
              "Frameworks that are not installed are named and left out.\n"
              "docs/guide/studies.md describes study files and how to describe a framework.",
    .options = options,
    .options_size = sizeof(verb_options),
    .narg_min = 1,
    .narg_max = 1,
    .idle_cores = CMD_WARN_NEVER,
    .run = run,
};
