/*
 * cmd_study_scripts.c: `convoy study --job-scripts`: a job script for each number of nodes that the cases of a study
 * need. In a job, the command measures the cases of this number of nodes; each measurement starts its ranks through a
 * script of its own, because launchers differ.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd_jobscript.h"
#include "cmd_study.h"

enum { NODES_MAX = 256, PATH_ROOM = 4096 };

/* ---- what a job runs ---- */

static void put_option(const char *option, const char *value)
{
    if (!value)
        return;
    cmd_say(" %s ", option);
    cmd_put_word(value);
}

static void put_job(const jobscript *s, const cmd_study_options *o, const char *study)
{
    const char *const path[] = {"study", study, "out", s->out, NULL};
    cmd_say(
        "#!/bin/bash\n"
        "# Made by `convoy study --job-scripts`: the measurements of a study that need %lld nodes. Submit it by `%s "
        "SCRIPT` in the folder in which the\n# paths of the study begin. A job that reached its limit has kept its "
        "results: submit its script again, and it goes on.\n",
        (long long)s->nodes, s->scheduler->submit);
    jobscript_put_head(s);
    jobscript_put_modules(s);
    jobscript_put_paths(path);
    jobscript_put_place(s, "out", "the study");
    cmd_say("export CONVOY_MPIEXEC\n"
            "CONVOY_MPIEXEC=$(cd -- \"$out/scripts\" && pwd)/launch-%lld || exit 1\n"
            "exec convoy study \"$study\" --out \"$out\" --nodes %lld --ppn %lld",
            (long long)s->nodes, (long long)s->nodes, (long long)s->ppn);
    cmd_say("%s%s", o->quick ? " --quick" : "", o->retry ? " --retry" : "");
    put_option("--frameworks", o->frameworks);
    put_option("--frameworks-folder", o->frameworks_folder);
    for (int i = 0; i < o->data.count; i++)
        put_option("--data", o->data.word[i]);
    for (int i = 0; i < o->only.count; i++)
        put_option("--only", o->only.word[i]);
    putchar('\n');
}

/* ---- files ---- */

/* The parts of job scripts print to stdout, which is the file meanwhile. */
static int open_script(const char *path, int *terminal)
{
    fflush(stdout);
    *terminal = dup(STDOUT_FILENO);
    const int fd = cmd_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0777);
    if (*terminal >= 0 && fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0) {
        close(fd);
        return 0;
    }
    cmd_error("%s cannot be written: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    if (*terminal >= 0)
        close(*terminal);
    return CMD_EXIT_FAULT;
}

static int close_script(const char *path, int terminal)
{
    const int bad = fflush(stdout) != 0 || ferror(stdout);
    const int why = errno;
    clearerr(stdout);
    dup2(terminal, STDOUT_FILENO);
    close(terminal);
    if (!bad)
        return 0;
    cmd_error("%s cannot be written: %s", path, strerror(why));
    return CMD_EXIT_FAULT;
}

static int write_scripts(const jobscript *s, const cmd_study_options *o, const char *study)
{
    char path[PATH_ROOM];
    int terminal = -1;
    snprintf(path, sizeof path, "%.512s/scripts/launch-%lld", s->out, (long long)s->nodes);
    int code = open_script(path, &terminal);
    if (code)
        return code;
    jobscript_put_launcher(s);
    code = close_script(path, terminal);
    snprintf(path, sizeof path, "%.512s/scripts/nodes-%lld.sh", s->out, (long long)s->nodes);
    code = code ? code : open_script(path, &terminal);
    if (code)
        return code;
    put_job(s, o, study);
    code = close_script(path, terminal);
    if (!code)
        cmd_say("%s %s\n", s->scheduler->submit, path);
    return code;
}

/* Makes the folder and those above it. */
static int make_folder(const char *path)
{
    char part[PATH_ROOM];
    for (size_t n = 1; n <= strlen(path); n++)
        if (!path[n] || path[n] == '/') {
            snprintf(part, sizeof part, "%.*s", (int)n, path);
            if (mkdir(part, 0777) != 0 && errno != EEXIST) {
                cmd_error("%s cannot be made: %s", part, strerror(errno));
                return CMD_EXIT_FAULT;
            }
        }
    return 0;
}

int cmd_study_write_scripts(const cmd_line *line, const cmd_study_options *o, const cvy_study_opts *study)
{
    jobscript s = {.site = cvy_site_about_default()};
    jobscript_request request = {.scheduler = o->scheduler,
                                 .time = o->time,
                                 .account = o->account,
                                 .queue = o->queue,
                                 .pe = o->pe,
                                 .nodes = 1,
                                 .ppn = o->ppn,
                                 .threads = o->threads};
    cvy_study_opts opts = *study;
    cvy_site *site = NULL;
    char folder[PATH_ROOM];
    int64_t nodes[NODES_MAX];
    int n = 0;
    int code = cmd_open_site(&site, &s.site);
    code = code ? code : jobscript_read(line, &request, &s);
    opts.nodes = 0;
    opts.ranks_per_node = s.ppn;
    code = code ? code : cmd_outcome(cvy_study_nodes(&opts, nodes, NODES_MAX, &n));
    if (!code && n > NODES_MAX) {
        cmd_error("%s needs %d numbers of nodes, expected at most %d", line->arg[0], n, NODES_MAX);
        code = CMD_EXIT_USAGE;
    }
    snprintf(folder, sizeof folder, "%s/scripts", study->out);
    code = code ? code : make_folder(folder);
    snprintf(s.out, sizeof s.out, "%s", study->out);
    s.signal_s = 0;
    for (int i = 0; !code && i < n; i++) {
        char name[64];
        s.nodes = nodes[i];
        snprintf(name, sizeof name, "%.40s-%lld", study->name, (long long)nodes[i]);
        jobscript_make_name(name, s.name, sizeof s.name);
        code = write_scripts(&s, o, line->arg[0]);
    }
    cvy_site_destroy(&site);
    return code;
}
